//! Tasks as processes of their own: a supervisor releases them, sees them, ends them and starts
//! them again; a broken one leaves the others undisturbed.
//!
//! For programs that may be broken, in any language, and for the only true termination that Linux
//! has. Not a protection against code that is not trusted: a task is a process of the supervisor's
//! user, unless its [`Surroundings`] give it another, and can do what that user may do
//! (docs/running.md says what).
//! A process says three things (AnT, *Sophisticated periodic execution control*, §2): register
//! ([`Registration::from_env`] where a [`Supervisor`] started it, [`Registration::join`] where it
//! was started by hand), wait ([`Registration::wait`]), unregister. It shares one block
//! ([`punctual_core::block`]) with its supervisor, over memory that is handed to it, and nothing
//! else; it is released by futex. What it gives out ([`Registration::commit`]) others read whole
//! ([`Watch`]); when its process is gone, the safe value takes over.
//!
//! A process that a supervisor started ends with it, by the kernel where the supervisor is killed,
//! and takes along what it started; no thread keeps a real-time policy that nobody guards.
//!
//! Who may come: processes of the same user, or of root. Such a process could harm its supervisor
//! in other ways; the checks here are against broken ones. A process that unregisters and lives on
//! keeps its memory, and could write into the block of its successor.

mod cgroup;
mod error;
mod lifecycle;
mod listener;
mod memory;
mod name_lock;
mod place;
mod program;
mod registration;
mod request;
mod restart;
mod spec;
mod supervisor;
mod surroundings;
mod tie;
mod watch;

use std::fmt;
use std::io;

use punctual_core::block::TaskBlockError;
use punctual_core::stats::PageError;
use punctual_os::Errno;

pub use error::SetupError;
pub use lifecycle::{Cause, ProcessEnd};
pub(crate) use memory::Memory;
pub use place::{DIR_VARIABLE, NAME_MAX, directory, is_name, socket};
pub use program::program;
pub use registration::{Registration, WaitError};
pub use request::{LINE_MAX, Request, answer, answered};
pub use restart::{Restart, When};
pub use spec::Spec;
pub use supervisor::{Event, Figures, Finished, Over, Ready, Stop, Supervisor, TaskOutcome, What};
pub use surroundings::Surroundings;
pub use watch::Watch;

/// Names the descriptor of the task block, in the environment of a started process.
pub const BLOCK_VARIABLE: &str = "PUNCTUAL_BLOCK";
/// Names the task, in the environment of a started process.
pub const TASK_VARIABLE: &str = "PUNCTUAL_TASK";

/// Names the supervisor's process, in the environment of a started process.
pub const SUPERVISOR_VARIABLE: &str = "PUNCTUAL_SUPERVISOR";

/// Why a process cannot come to a supervisor.
#[derive(Debug)]
#[non_exhaustive]
pub enum RegisterError {
    /// No supervisor started it.
    NotStarted,
    /// The supervisor, which is this process, is not its parent.
    NotChild(i32),
    /// It was started as the second task, and asks for the first.
    OtherTask(String, String),
    /// The descriptor is no memory of a supervisor's.
    Memory(Errno),
    /// The memory is no task block.
    Block(TaskBlockError),
    /// The memory is no page.
    Page(PageError),
    /// Another process is registered as this task, or this one was already.
    Taken,
    /// No supervisor of this name runs, or it cannot be talked to.
    Supervisor(String, io::Error),
    /// The supervisor belongs to another user.
    Stranger(u32),
    /// The supervisor said no, and why.
    Refused(String),
}

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStarted => write!(
                f,
                "no supervisor started this process ({BLOCK_VARIABLE} is not set): start it by \
                 'punctual run', or join one by name"
            ),
            Self::NotChild(supervisor) => write!(
                f,
                "the supervisor, process {supervisor}, is not the parent of this process: it has \
                 ended, or the task's command starts this program as a child of its own; a script \
                 can use 'exec'"
            ),
            Self::OtherTask(wanted, is) => {
                write!(f, "this process was started as task {is:?}, not as {wanted:?}")
            }
            Self::Memory(why) => write!(f, "{BLOCK_VARIABLE} does not name shared memory: {why}"),
            Self::Block(why) => why.fmt(f),
            Self::Page(why) => why.fmt(f),
            Self::Taken => f.write_str("the task is registered already: it registers once"),
            Self::Supervisor(name, why) => write!(f, "supervisor {name:?}: {why}"),
            Self::Stranger(uid) => write!(f, "the supervisor belongs to user {uid}"),
            Self::Refused(why) => write!(f, "the supervisor refused: {why}"),
        }
    }
}

impl std::error::Error for RegisterError {}
