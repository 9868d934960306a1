//! Why a supervisor cannot be set up, in words for a person.

use std::fmt;
use std::io;

use punctual_os::Errno;

use super::place::invalid_name;
use crate::periodic::BuildError;

/// Why a supervisor cannot be set up.
#[derive(Debug)]
#[non_exhaustive]
pub enum SetupError {
    /// The tasks do not fit together.
    Build(BuildError),
    /// An invalid name of a task or a supervisor.
    Name(String),
    /// A task's priority is not below its supervisor's.
    Priority(String, u8, u8),
    /// What a task is to run as or in cannot be.
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

impl From<BuildError> for SetupError {
    fn from(why: BuildError) -> Self {
        Self::Build(why)
    }
}
