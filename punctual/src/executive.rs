//! Many tasks: one builder, whatever runs them and wherever they run.
//!
//! For whoever has more than one loop. The parts are laid out and checked before anything runs;
//! then each CPU's tasks share one loop, tasks that take long have threads or processes of their
//! own, and one monitor watches them all. Between the first release and the last nothing is
//! allocated in a loop, and nothing called but the clock, the bodies and, where a task runs
//! elsewhere, futex.

mod builder;
mod built;
mod calendar;
mod drive;
mod ending;
mod error;
mod facts;
mod handle;
mod idle;
mod lane;
mod process;
mod run;
mod running;
mod shared;
mod slot;
mod thread;

pub use builder::ExecutiveBuilder;
pub use built::Executive;
pub use calendar::Calendar;
pub use ending::StopHandle;
pub(crate) use error::ExecutiveError;
pub use handle::Handle;
pub use handle::{Placed, TaskId};
pub use process::Process;
pub use running::Running;
pub use thread::Trigger;

#[cfg(test)]
mod tests;
