//! The one error of the library: what was wrong, the value it had, what is accepted.
//!
//! For whoever starts a loop or an executive. The kinds are private, so that more of them can come;
//! a program tells errors apart by [`Error::errno`] at most, a person by their words.

use std::fmt;
use std::io;
use std::path::PathBuf;

use punctual_core::time::{Period, Span};

use punctual_os::Errno;

use crate::calendar::CalendarError;
use crate::error_kind::ErrorKind;
use crate::executive::ExecutiveError;
use crate::follow::FollowError;
use crate::handover::Refused;
use crate::periodic::BuildError;
use crate::process::{SetupError, TaskError};
use crate::safety::{NoCpuLeft, STAMPS_IN_A_PERIOD};
use crate::session::Refusal;
use crate::spawn;
use crate::wait_policy::SPIN_PERIOD_MIN;

/// Why something cannot be, cannot start, or ended badly.
///
/// `{:?}` is its sentence too, so that a `main` that returns it and an `unwrap` say what was wrong;
/// `{:#?}` shows its parts.
pub struct Error {
    kind: Kind,
}

/// What was wrong.
#[derive(Debug)]
pub(crate) enum Kind {
    Priority(u8),
    Policy(u32),
    Watchdog(Span, Period),
    Phase(u64, Period),
    Margin(Span, Period),
    Rearm(Period, Period),
    SpinPeriod(Period),
    Budget(f64),
    LateShare(f64),
    /// A period, and what one stamp of its clock takes, ns.
    ShortPeriod(Period, f64),
    NoCpuLeft(NoCpuLeft),
    /// As [`spawn`] says it.
    Thread(io::Error),
    Samples(PathBuf, io::Error),
    Refused(Vec<Refusal>),
    Tasks(BuildError),
    Calendar(CalendarError),
    Forced(&'static str),
    Panicked(String, String),
    Cpu(u32, Errno, Vec<u32>),
    Setup(SetupError),
    Task(TaskError),
    Follow(FollowError),
    Change(Refused),
    Executive(ExecutiveError),
    Overran(String),
    /// It is another process's: fork(2) made this one.
    Forked,
}

impl Error {
    /// The error number of the kernel, where one of its calls failed.
    ///
    /// # Real-time: setup only
    pub fn errno(&self) -> Option<i32> {
        match &self.kind {
            Kind::Thread(why) | Kind::Follow(FollowError::Thread(why)) => spawn::errno(why),
            Kind::Samples(_, why) => why.raw_os_error(),
            Kind::Refused(refused) => refused.first().map(|refusal| refusal.errno.0),
            Kind::Cpu(_, why, _) => Some(why.0),
            Kind::Follow(FollowError::Device(_, why)) => why.raw_os_error(),
            Kind::Task(why) => Some(why.errno()),
            _ => None,
        }
    }

    /// What kind of thing it is, for the C API and the command line.
    ///
    /// # Real-time: setup only
    #[doc(hidden)]
    pub fn kind(&self) -> ErrorKind {
        match &self.kind {
            Kind::Thread(..) => ErrorKind::Thread,
            Kind::Samples(..) => ErrorKind::Samples,
            Kind::Refused(_) => ErrorKind::Refused,
            Kind::Tasks(BuildError::SameName(_))
            | Kind::Calendar(CalendarError::SameName(_) | CalendarError::Shared(_)) => {
                ErrorKind::SameName
            }
            Kind::Tasks(BuildError::TooMany(_)) | Kind::Calendar(CalendarError::TooMany(_)) => {
                ErrorKind::TooMany
            }
            Kind::Tasks(BuildError::Unknown(..)) | Kind::Calendar(CalendarError::Unknown(..)) => {
                ErrorKind::Unknown
            }
            Kind::Executive(why) => why.kind(),
            Kind::Follow(why) => why.kind(),
            Kind::Task(why) => why.kind(),
            Kind::Tasks(BuildError::Overload(_))
            | Kind::Calendar(
                CalendarError::Outside(..)
                | CalendarError::Overlap(..)
                | CalendarError::NoGap(..)
                | CalendarError::Overload(_),
            ) => ErrorKind::NoTime,
            Kind::Change(Refused::Busy) => ErrorKind::Busy,
            Kind::Change(Refused::Ended) => ErrorKind::NotRunning,
            Kind::Forced(_) => ErrorKind::Forced,
            Kind::Panicked(..) => ErrorKind::Panicked,
            Kind::Overran(_) => ErrorKind::Overran,
            Kind::Forked => ErrorKind::Forked,
            _ => ErrorKind::Setting,
        }
    }

    /// The task of a supervisor that could not be set up, where it is one.
    ///
    /// # Real-time: setup only
    pub fn task(&self) -> Option<&str> {
        if let Kind::Setup(why) = &self.kind { why.task() } else { None }
    }

    /// Whether a thread could not be started.
    ///
    /// # Real-time: setup only
    #[doc(hidden)]
    pub fn is_thread(&self) -> bool {
        self.kind() == ErrorKind::Thread
    }

    /// Whether the kernel refused something that was to be strictly had.
    ///
    /// # Real-time: setup only
    pub fn is_refusal(&self) -> bool {
        matches!(self.kind, Kind::Refused(_))
    }
}

impl From<Kind> for Error {
    fn from(kind: Kind) -> Self {
        Self { kind }
    }
}

impl From<BuildError> for Error {
    fn from(why: BuildError) -> Self {
        Self { kind: Kind::Tasks(why) }
    }
}

impl From<ExecutiveError> for Error {
    fn from(why: ExecutiveError) -> Self {
        Self { kind: Kind::Executive(why) }
    }
}

impl From<FollowError> for Error {
    fn from(why: FollowError) -> Self {
        Self { kind: Kind::Follow(why) }
    }
}

impl From<TaskError> for Error {
    fn from(why: TaskError) -> Self {
        Self { kind: Kind::Task(why) }
    }
}

impl From<SetupError> for Error {
    fn from(why: SetupError) -> Self {
        Self { kind: Kind::Setup(why) }
    }
}

impl From<CalendarError> for Error {
    fn from(why: CalendarError) -> Self {
        Self { kind: Kind::Calendar(why) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Priority(got) => write!(
                f,
                "a loop's priority must be from 1 to 98 (got {got}): 99 is its watchdog's"
            ),
            Kind::Policy(got) => {
                write!(f, "policy must be SCHED_FIFO, SCHED_RR or SCHED_OTHER (got number {got})")
            }
            Kind::Watchdog(bound, period) => write!(
                f,
                "the watchdog's bound must be at least two periods of {period} (got {bound})"
            ),
            Kind::Phase(got, of) => {
                write!(f, "phase must be below the period of {of} (got {got} ns)")
            }
            Kind::Margin(got, period) => {
                write!(f, "margin must be from 0 to below the period of {period} (got {got})")
            }
            Kind::Rearm(got, period) => {
                write!(f, "re-arm interval exceeds the period of {period} (got {got})")
            }
            Kind::SpinPeriod(got) => write!(
                f,
                "a loop that spins must sleep in between: its period must be at least \
                 {SPIN_PERIOD_MIN} (got {got})"
            ),
            Kind::Budget(got) => {
                write!(f, "CPU budget of the wait must be above 0 and at most 1 (got {got})")
            }
            Kind::LateShare(got) => write!(f, "share of late wakes must be in [0, 1) (got {got})"),
            Kind::ShortPeriod(got, stamp) => write!(
                f,
                "period must be at least {STAMPS_IN_A_PERIOD} of the clock's stamps of {stamp:.0} \
                 ns (got {got})"
            ),
            Kind::NoCpuLeft(why) => why.fmt(f),
            Kind::Thread(why) => why.fmt(f),
            Kind::Samples(path, why) => {
                write!(f, "cannot record samples in {}: {why}", path.display())
            }
            Kind::Refused(refused) => write!(f, "the kernel refused: {}", listed(refused)),
            Kind::Tasks(why) => why.fmt(f),
            Kind::Calendar(why) => why.fmt(f),
            Kind::Forced(how) => write!(f, "the watchdog stopped the loop: {how}"),
            Kind::Panicked(task, text) => write!(f, "task {task:?} panicked: {text}"),
            Kind::Cpu(cpu, why, allowed) => {
                let allowed = listed(allowed);
                write!(f, "cannot run on CPU {cpu}: {why}; this process may run on CPUs {allowed}")
            }
            Kind::Setup(why) => why.fmt(f),
            Kind::Task(why) => why.fmt(f),
            Kind::Follow(why) => why.fmt(f),
            Kind::Change(why) => why.fmt(f),
            Kind::Executive(why) => why.fmt(f),
            Kind::Overran(task) => write!(f, "task {task:?} overran, and its policy is to stop"),
            Kind::Forked => f.write_str(FORKED),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            f.debug_struct("Error").field("kind", &self.kind).finish()
        } else {
            fmt::Display::fmt(self, f)
        }
    }
}

/// What is said in a child.
const FORKED: &str = "it was made by another process, of which fork(2) made this one: its threads \
                      and priorities stayed there; make another one here";

/// All of them, as one text.
fn listed(all: &[impl ToString]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            Kind::Samples(_, why) => Some(why),
            Kind::Tasks(why) => Some(why),
            Kind::Calendar(why) => Some(why),
            Kind::Setup(why) => Some(why),
            Kind::Task(why) => Some(why),
            Kind::Follow(why) => Some(why),
            Kind::Change(why) => Some(why),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_main_that_returns_an_error_prints_its_sentence() {
        let priority = Error::from(Kind::Priority(99));
        let sentence = "a loop's priority must be from 1 to 98 (got 99): 99 is its watchdog's";
        assert_eq!(format!("{priority:?}"), sentence);
        assert_eq!(format!("{priority}"), sentence);
        let parts = format!("{priority:#?}");
        assert!(parts.contains("Priority") && parts.contains("99"), "{parts}");
    }
}
