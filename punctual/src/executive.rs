//! Many tasks: one builder, whatever runs them and wherever they run.
//!
//! For whoever has more than one loop. The parts are laid out and checked before anything runs;
//! then each CPU's tasks share one loop, tasks that take long have threads or processes of their
//! own, and one monitor watches them all. Between the first release and the last nothing is
//! allocated in a loop, and nothing called but the clock, the bodies and, where a task runs
//! elsewhere, futex.

mod body;
mod builder;
mod built;
mod calendar;
mod changes;
mod clocking;
mod cpus;
mod drive;
mod ending;
mod entries;
mod error;
mod facts;
mod handle;
mod id;
mod idle;
mod lane;
mod late;
mod layout;
mod outside;
mod pace;
mod process;
mod released;
mod run;
mod running;
mod shared;
mod slot;
mod sorted;
mod team;
mod thread;
mod thread_task;
mod trigger;
mod watch;
mod work;

pub use builder::ExecutiveBuilder;
pub use built::Executive;
pub use calendar::Calendar;
pub use ending::StopHandle;
pub(crate) use error::ExecutiveError;
pub use handle::Handle;
pub use id::{Placed, TaskId};
pub use process::Process;
pub use running::Running;
pub use trigger::Trigger;

#[cfg(test)]
mod tests;
