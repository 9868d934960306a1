//! The one error of the library: what was wrong, the value it had, what is accepted.
//!
//! For whoever starts a loop or an executive. More kinds can come: a program tells errors apart by
//! [`Error::kind`] and [`Error::errno`], a person by their words.

mod calendar;
mod follow;
mod kind;
mod periodic;

use std::fmt;
use std::io;
use std::path::PathBuf;

use punctual_core::dispatch::Mismatch;
use punctual_core::time::{Period, Span};

use punctual_os::Errno;
use punctual_os::signal::MOST_STOPS;

use crate::process::{SetupError, TaskError};
use crate::session::{Refusal, ways_out};
use crate::spawn;

pub use calendar::{CalendarError, LateUnit, UnitPlace};
pub use follow::FollowError;
pub use kind::ErrorKind;
pub use periodic::{BuildError, Overfull};

/// An error of this library: a setting that cannot be, a start that failed, an end not planned.
///
/// `{:?}` is its sentence too, so that a `main` that returns it and an `unwrap` say what was wrong,
/// and below it the summary of a loop or an executive that did not end as planned; `{:#?}` shows
/// its parts.
pub struct Error {
    kind: Kind,
    /// What did not end as planned did until then, as text.
    summary: Option<Box<str>>,
}

/// The fault, with the values that it is about.
#[derive(Debug)]
#[non_exhaustive]
pub enum Kind {
    /// A SCHED_FIFO or SCHED_RR priority outside [1, 98].
    Priority(u8),
    /// The number of a policy that no loop can have.
    Policy(u32),
    /// A watchdog's bound below two of these periods.
    Watchdog(Span, Period),
    /// A phase, ns, not below the period.
    Phase(u64, Period),
    /// A wait's margin outside [0, period).
    Margin(Span, Period),
    /// A re-arm interval above the period.
    Rearm(Period, Period),
    /// A period too short for a wait that spins, and the shortest.
    SpinPeriod {
        /// The period.
        got: Period,
        /// The shortest that it may be.
        least: Span,
    },
    /// A wait's share of the CPU outside (0, 1].
    Budget(f64),
    /// A share of late wakes outside [0, 1).
    LateShare(f64),
    /// A period too short for the stamps of its clock.
    ShortPeriod {
        /// The period.
        got: Period,
        /// The time that one stamp of the clock takes, ns.
        stamp_ns: f64,
        /// The number of stamps that must fit into a period.
        stamps: f64,
    },
    /// Threads that would leave others no CPU.
    NoCpuLeft(NoCpuLeft),
    /// A thread that cannot be started, in the words of [`spawn`].
    Thread(io::Error),
    /// A sample file that cannot be written.
    Samples(PathBuf, io::Error),
    /// Requests of a strict thread that the kernel refused.
    Refused(Vec<Refusal>),
    /// Tasks of which no table can be built.
    Tasks(BuildError),
    /// Units of which no calendar can be built.
    Calendar(CalendarError),
    /// The watchdog stopped the loop, for this reason.
    Forced(&'static str),
    /// The name of a task that panicked, and the text of the panic.
    Panicked(String, String),
    /// A CPU that a thread may not run on.
    Cpu {
        /// The CPU.
        cpu: u32,
        /// The kernel's error.
        why: Errno,
        /// The CPUs that it may run on.
        allowed: Vec<u32>,
        /// The task whose thread it is, where it is one of several.
        task: Option<String>,
    },
    /// A supervisor's task that cannot be set up.
    Setup(SetupError),
    /// A task's own process that cannot register.
    Task(TaskError),
    /// A clock that cannot be followed.
    Follow(FollowError),
    /// A change of a running table that was refused.
    Change(ChangeRefused),
    /// A setting that cannot be in an executive, or a change that it refused.
    Executive(ExecutiveError),
    /// The name of a task that overran, and its policy is to stop.
    Overran(String),
    /// An object of another process, of which fork(2) made this one.
    Forked,
    /// Signals that cannot stop a loop; `EBUSY` where as many loops as can be are stopped by them.
    Signals(Errno),
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
            Kind::Cpu { why, .. } | Kind::Signals(why) => Some(why.0),
            Kind::Follow(FollowError::Device(_, why)) => why.raw_os_error(),
            Kind::Task(why) => Some(why.errno()),
            _ => None,
        }
    }

    /// The kind of the error, by which a program decides what to do.
    ///
    /// # Real-time: setup only
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
            Kind::Tasks(BuildError::Unknown(..))
            | Kind::Calendar(CalendarError::Unknown(..) | CalendarError::Excluded(..)) => {
                ErrorKind::Unknown
            }
            Kind::Executive(why) => why.kind(),
            Kind::Follow(why) => why.kind(),
            Kind::Task(why) => why.kind(),
            Kind::Tasks(BuildError::Overload(..) | BuildError::Late(..))
            | Kind::Calendar(
                CalendarError::Outside(..)
                | CalendarError::Overlap(..)
                | CalendarError::NoGap(..)
                | CalendarError::Overload(..)
                | CalendarError::Chain { .. }
                | CalendarError::Demand { .. }
                | CalendarError::NoOrder(_)
                | CalendarError::OrderUnknown { .. },
            ) => ErrorKind::NoTime,
            Kind::Change(ChangeRefused::Busy) => ErrorKind::Busy,
            Kind::Change(ChangeRefused::Ended) => ErrorKind::NotRunning,
            Kind::Forced(_) => ErrorKind::Forced,
            Kind::Panicked(..) => ErrorKind::Panicked,
            Kind::Overran(_) => ErrorKind::Overran,
            Kind::Forked => ErrorKind::Forked,
            Kind::Signals(Errno::BUSY) => ErrorKind::TooMany,
            Kind::Signals(_) => ErrorKind::Refused,
            _ => ErrorKind::Setting,
        }
    }

    /// The task of a supervisor that could not be set up, where it is one.
    ///
    /// # Real-time: setup only
    pub fn task(&self) -> Option<&str> {
        if let Kind::Setup(why) = &self.kind { why.task() } else { None }
    }

    /// The same, with the summary of the loop or the executive that it ended, for `{:?}`.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn with_summary(self, summary: &impl fmt::Display) -> Self {
        Self { summary: Some(summary.to_string().into()), ..self }
    }

    /// The same, with the name of the task whose CPU it is about, where it is about one.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn of_task(mut self, name: &str) -> Self {
        if let Kind::Cpu { task, .. } = &mut self.kind {
            *task = Some(name.to_owned());
        }
        self
    }
}

impl From<Kind> for Error {
    fn from(kind: Kind) -> Self {
        Self { kind, summary: None }
    }
}

impl From<BuildError> for Error {
    fn from(why: BuildError) -> Self {
        Self::from(Kind::Tasks(why))
    }
}

impl From<ExecutiveError> for Error {
    fn from(why: ExecutiveError) -> Self {
        Self::from(Kind::Executive(why))
    }
}

impl From<FollowError> for Error {
    fn from(why: FollowError) -> Self {
        Self::from(Kind::Follow(why))
    }
}

impl From<TaskError> for Error {
    fn from(why: TaskError) -> Self {
        Self::from(Kind::Task(why))
    }
}

impl From<SetupError> for Error {
    fn from(why: SetupError) -> Self {
        Self::from(Kind::Setup(why))
    }
}

impl From<CalendarError> for Error {
    fn from(why: CalendarError) -> Self {
        Self::from(Kind::Calendar(why))
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
            Kind::Phase(got, period) => {
                let period = exact(*period);
                write!(f, "phase must be below the period of {period} (got {got} ns)")
            }
            Kind::Margin(got, period) => {
                write!(f, "margin must be from 0 to below the period of {period} (got {got})")
            }
            Kind::Rearm(got, period) => {
                write!(f, "re-arm interval exceeds the period of {period} (got {got})")
            }
            Kind::SpinPeriod { got, least } => write!(
                f,
                "a loop that spins must sleep in between: its period must be at least \
                 {least} (got {got})"
            ),
            Kind::Budget(got) => {
                write!(f, "CPU budget of the wait must be above 0 and at most 1 (got {got})")
            }
            Kind::LateShare(got) => write!(f, "share of late wakes must be in [0, 1) (got {got})"),
            Kind::ShortPeriod { got, stamp_ns, stamps } => write!(
                f,
                "period must be at least {stamps} of the clock's stamps of {stamp_ns:.0} \
                 ns (got {got})"
            ),
            Kind::NoCpuLeft(why) => why.fmt(f),
            Kind::Thread(why) => why.fmt(f),
            Kind::Samples(path, why) => {
                write!(f, "cannot record samples in {}: {why}", path.display())
            }
            Kind::Refused(refused) => {
                write!(f, "the kernel refused: {}", listed(refused))?;
                ways_out(refused).map_or(Ok(()), |ways_out| write!(f, ": {ways_out}"))
            }
            Kind::Tasks(why) => why.fmt(f),
            Kind::Calendar(why) => why.fmt(f),
            Kind::Forced(how) => write!(f, "the watchdog stopped the loop: {how}"),
            Kind::Panicked(task, text) => write!(f, "task {task:?} panicked: {text}"),
            Kind::Cpu { cpu, why, allowed, task } => {
                if let Some(task) = task {
                    write!(f, "task {task:?} ")?;
                }
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
            Kind::Signals(Errno::BUSY) => write!(
                f,
                "signals stop {MOST_STOPS} loops at a time, which run already: end one of them, or \
                 stop this one by its handle"
            ),
            Kind::Signals(why) => write!(f, "cannot handle SIGINT, SIGTERM and SIGHUP: {why}"),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            let mut parts = f.debug_struct("Error");
            parts.field("kind", &self.kind).field("summary", &self.summary).finish()
        } else {
            fmt::Display::fmt(self, f)?;
            self.summary.as_ref().map_or(Ok(()), |summary| write!(f, "\n{summary}"))
        }
    }
}

/// The words for an object that another process made.
const FORKED: &str = "it was made by another process, of which fork(2) made this one: its threads \
                      and priorities stayed there; make another one here";

/// A period that is held against a number of nanoseconds, in the same unit: two that differ by less
/// than a figure that is shown would look alike.
fn exact(period: Period) -> String {
    match period.den() {
        1 => format!("{} ns", period.num_ns()),
        den => format!("{}/{den} ns", period.num_ns()),
    }
}

/// All of them, as one text.
fn listed(items: &[impl ToString]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
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

/// The reason why a change did not take effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeRefused {
    /// The executive has ended.
    Ended,
    /// Another thread publishes a change.
    Busy,
    /// It does not fit to what runs.
    Mismatch(Mismatch),
}

impl fmt::Display for ChangeRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended => f.write_str("the executive has ended"),
            Self::Busy => f.write_str("another change of the executive is under way"),
            Self::Mismatch(why) => write!(f, "the change does not fit to what runs: {why:?}"),
        }
    }
}

impl std::error::Error for ChangeRefused {}

/// No CPU is left for anything but these threads, and real-time throttling is off: nothing could
/// end one that does not yield.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoCpuLeft;

impl fmt::Display for NoCpuLeft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "real-time threads with short periods or large shares would leave no CPU to others, \
             and real-time throttling is off (kernel.sched_rt_runtime_us is -1, or as long as the \
             period): one that does not yield could not be stopped; leave a CPU free, or set it to \
             950000",
        )
    }
}

/// A setting that cannot be in an executive, or a change that it refused.
#[derive(Debug)]
pub enum ExecutiveError {
    /// A task that needs a period has none.
    NoPeriod(String),
    /// It has no such task.
    NoTask,
    /// A task is to be added on a CPU where no loop is.
    NoLane(String, u32),
    /// One more task is to be added with a thread of its own than there may be.
    AddedThreads(String, usize),
    /// A task that cannot be removed.
    Stays(String),
    /// A change from a task of a loop.
    FromLoop,
    /// It does not run yet, or no more.
    NotRunning,
    /// A calendar and several loops.
    CalendarCpus,
    /// No unit of this task has a body.
    NoBody(String),
    /// Two units of this task have one.
    TwoBodies(String),
    /// A task's priority, and the executive's, which is not above it.
    NotBelow(String, u8, u8),
    /// Processes, and a clock of its own.
    ProcessClock,
}

impl ExecutiveError {
    /// The kind of the error, by which callers decide.
    ///
    /// # Real-time: setup only
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoTask => ErrorKind::Unknown,
            Self::Stays(_) => ErrorKind::Busy,
            Self::AddedThreads(..) => ErrorKind::TooMany,
            Self::FromLoop => ErrorKind::FromLoop,
            Self::NotRunning => ErrorKind::NotRunning,
            _ => ErrorKind::Setting,
        }
    }
}

impl fmt::Display for ExecutiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPeriod(task) => {
                write!(f, "task {task:?} has no period: give it one, or a trigger")
            }
            Self::NoTask => f.write_str("the executive has no such task"),
            Self::NoLane(task, cpu) => write!(
                f,
                "task {task:?} cannot be added on CPU {cpu}: the executive has no loop there; name \
                 all its CPUs before it runs"
            ),
            Self::AddedThreads(task, most) => write!(
                f,
                "task {task:?} cannot be added with a thread of its own: {most} tasks with threads \
                 were already added while the executive runs, which is the most; remove one of \
                 them, or place it inline",
            ),
            Self::Stays(task) => {
                write!(
                    f,
                    "task {task:?} cannot be removed: it has its own thread or process, or belongs \
                     to the calendar"
                )
            }
            Self::FromLoop => f.write_str(
                "a task of a loop cannot add or remove tasks: the loop would wait for itself; do \
                 it from another thread",
            ),
            Self::NotRunning => f.write_str("the executive does not run"),
            Self::CalendarCpus => f.write_str(
                "an executive with a calendar has one loop: place its tasks inline or in threads",
            ),
            Self::NoBody(task) => {
                write!(f, "no unit of the calendar brings a body for task {task:?}")
            }
            Self::TwoBodies(task) => {
                write!(f, "two units of task {task:?} bring a body: only one of them may")
            }
            Self::NotBelow(task, got, main) => write!(
                f,
                "task {task:?}: the priority of its thread must be below the executive's {main} \
                 (got {got})"
            ),
            Self::ProcessClock => f.write_str(
                "the releases of processes are on CLOCK_MONOTONIC: an executive with processes has \
                 no clock of its own",
            ),
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
        let phase = Error::from(Kind::Phase(1_000_001, Period::from_ns(1_000_000).expect("fine")));
        let sentence = "phase must be below the period of 1000000 ns (got 1000001 ns)";
        assert_eq!(phase.to_string(), sentence, "one unit, in which they differ");
        let parts = format!("{priority:#?}");
        assert!(parts.contains("Priority") && parts.contains("99"), "{parts}");
    }
}
