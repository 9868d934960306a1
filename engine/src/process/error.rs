//! Why a supervisor cannot be set up, and why a process is not its task: kinds of
//! [`Error`](crate::error::Error).
//!
//! Plain data and words.

use std::fmt;
use std::io;

use punctual_core::block::TaskBlockError;
use punctual_core::stats::PageError;
use punctual_os::Errno;

use super::BLOCK_VARIABLE;
use super::name::invalid_name;
use crate::error::{BuildError, CalendarError, ErrorKind};

/// The reason why a supervisor cannot be set up.
#[derive(Debug)]
pub enum SetupError {
    /// The tasks do not fit together.
    Build(BuildError),
    /// The tasks do not go with their calendar.
    Calendar(CalendarError),
    /// An invalid name of a task or a supervisor.
    Name(String),
    /// A task's priority is not below its supervisor's.
    Priority(String, u8, u8),
    /// A task with surroundings that cannot be, and the reason.
    Surroundings(String, String),
    /// No memory for a task.
    Memory(String, Errno),
    /// The supervisor's socket cannot be made.
    Socket(String, io::Error),
    /// A supervisor of this name runs already.
    Running(String),
}

impl SetupError {
    /// The task that it is about; `None` for all together.
    ///
    /// # Real-time: setup only
    pub fn task(&self) -> Option<&str> {
        match self {
            Self::Build(why) => why.task(),
            Self::Calendar(why) => why.unit(),
            Self::Priority(task, ..) | Self::Memory(task, _) | Self::Surroundings(task, _) => {
                Some(task)
            }
            Self::Name(_) | Self::Socket(..) | Self::Running(_) => None,
        }
    }
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Build(why) => why.fmt(f),
            Self::Calendar(why) => why.fmt(f),
            Self::Name(name) => f.write_str(&invalid_name(name)),
            Self::Priority(name, fifo, supervisor) => write!(
                f,
                "task {name:?}: priority must be in [1, {}], below the supervisor's (got {fifo})",
                supervisor.saturating_sub(1)
            ),
            Self::Surroundings(name, why) => write!(f, "task {name:?}: {why}"),
            Self::Memory(name, why) => {
                let why = io::Error::from_raw_os_error(why.0);
                write!(f, "task {name:?}: cannot create shared memory: {why}")
            }
            Self::Socket(path, why) => write!(f, "{path}: {why}"),
            Self::Running(name) => write!(f, "a supervisor named {name:?} runs already"),
        }
    }
}

impl std::error::Error for SetupError {}

impl From<CalendarError> for SetupError {
    fn from(why: CalendarError) -> Self {
        Self::Calendar(why)
    }
}

impl From<BuildError> for SetupError {
    fn from(why: BuildError) -> Self {
        Self::Build(why)
    }
}

/// The reason why a process is not a task of a supervisor's, or is one no more.
#[derive(Debug)]
pub enum TaskError {
    /// No supervisor started it.
    NotStarted,
    /// The supervisor, which is this process, is not its parent.
    NotChild(i32),
    /// The task that it requested, and the one that it was started as.
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
    /// The supervisor refused the request, for this reason.
    Refused(String),
    /// The supervisor ended this task's loop.
    Ended,
    /// The supervisor is gone.
    Gone,
}

impl TaskError {
    /// The errno that the C interface returns for it.
    ///
    /// # Real-time: setup only
    pub fn errno(&self) -> i32 {
        let errno = match self {
            Self::NotStarted | Self::NotChild(_) => Errno::NOTCONN,
            Self::OtherTask(..) => Errno::INVAL,
            Self::Memory(errno) => *errno,
            Self::Taken => Errno::BUSY,
            Self::Supervisor(_, why) => Errno(why.raw_os_error().unwrap_or(Errno::INVAL.0)),
            Self::Stranger(_) => Errno::ACCES,
            Self::Refused(_) => Errno::CONNREFUSED,
            Self::Block(_) | Self::Page(_) => Errno::PROTO,
            Self::Ended => Errno::CANCELED,
            Self::Gone => Errno::PIPE,
        };
        errno.0
    }

    /// The kind of error, by which callers decide.
    ///
    /// # Real-time: setup only
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotStarted | Self::NotChild(_) | Self::Supervisor(..) => ErrorKind::NotRunning,
            Self::Ended | Self::Gone => ErrorKind::NotRunning,
            Self::Taken => ErrorKind::Busy,
            Self::Refused(_) | Self::Stranger(_) => ErrorKind::Refused,
            _ => ErrorKind::Setting,
        }
    }
}

impl fmt::Display for TaskError {
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
            Self::Ended => f.write_str("the supervisor ended this task"),
            Self::Gone => f.write_str("the supervisor is gone"),
        }
    }
}

impl std::error::Error for TaskError {}
