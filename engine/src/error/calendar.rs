//! Why units cannot be a calendar.
//!
//! Plain data and words, for [`CalendarBuilder::build`](crate::calendar::CalendarBuilder::build).

use std::fmt;

use punctual_core::calendar::UNITS_MAX;
use punctual_core::table::OnOverrun;
use punctual_core::time::{Period, Span};

/// Why units cannot be a calendar.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CalendarError {
    /// There is no unit.
    Empty,
    /// More units than fit.
    TooMany(usize),
    /// The frame is no whole number of nanoseconds.
    Frame(Period),
    /// A unit has no name.
    NoName,
    /// Two units have this name.
    SameName(String),
    /// A unit's budget is nothing.
    Budget(String),
    /// A unit is not within the frame, ns.
    Outside(UnitPlace, u64),
    /// Two units want one time.
    Overlap(UnitPlace, UnitPlace),
    /// A unit's deadline, ns after it is ready, is below its budget or above the frame, ns.
    Deadline(String, u64, u64, u64),
    /// A unit is after one that is not there.
    Unknown(String, String),
    /// A unit is after itself, directly or through others.
    Circle(String),
    /// A unit has a policy that a fixed place does not allow.
    OnOverrun(String, OnOverrun),
    /// Two units of one task, named first, have different policies.
    Policies(String, String, String),
    /// A periodic task beside the calendar has no budget.
    NoBudget(String),
    /// A periodic task's budget, ns, fits into no gap between units; the longest of them, ns, less
    /// the time before each unit in which nothing runs.
    NoGap(String, u64, u64),
    /// A time before each unit, ns, in which nothing runs, of less than nothing.
    Gap(i64),
    /// A task of the calendar and a periodic one have this name.
    Shared(String),
    /// Units and periodic tasks together ask for this share of the CPU.
    Overload(f64),
}

fn span(ns: u64) -> Span {
    Span::from_ns(i64::try_from(ns).unwrap_or(i64::MAX))
}

impl fmt::Display for UnitPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unit {:?} at {} to {} ns", self.name, self.from_ns, self.to_ns)
    }
}

impl fmt::Display for CalendarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("no unit was given: a calendar needs at least one"),
            Self::TooMany(n) => write!(f, "a calendar has at most {UNITS_MAX} units (got {n})"),
            Self::Frame(frame) => {
                write!(f, "a frame must be a whole number of nanoseconds (got {frame})")
            }
            Self::NoName => f.write_str("a unit's name must not be empty"),
            Self::SameName(name) => write!(f, "two units are named {name:?}"),
            Self::Budget(name) => write!(f, "unit {name:?}: budget must be greater than 0"),
            Self::Outside(placed, frame) => {
                write!(f, "{placed} must lie within the frame of {frame} ns")
            }
            Self::Overlap(first, second) => write!(f, "{first} and {second} overlap"),
            Self::Deadline(name, deadline, budget, frame) => write!(
                f,
                "unit {name:?}: deadline must be from its budget of {budget} ns to the frame of \
                 {frame} ns (got {deadline} ns)"
            ),
            Self::Unknown(name, of) => {
                write!(f, "unit {name:?} is after {of:?}, and no unit has that name")
            }
            Self::Circle(name) => write!(f, "unit {name:?} is after itself"),
            Self::OnOverrun(name, policy) => write!(
                f,
                "unit {name:?}: {policy:?} would move its place: use Skip, Terminate or Stop"
            ),
            Self::Policies(task, first, second) => {
                write!(f, "units {first:?} and {second:?} of task {task:?} have different policies")
            }
            Self::NoBudget(name) => write!(
                f,
                "task {name:?} has no budget: beside a calendar a task is started only where its \
                 budget fits"
            ),
            Self::NoGap(name, budget, gap) => write!(
                f,
                "task {name:?}: a budget of {} fits nowhere between the units; the longest gap is \
                 {}",
                span(*budget),
                span(*gap)
            ),
            Self::Gap(ns) => write!(f, "gap before each unit must not be negative (got {ns} ns)"),
            Self::Shared(name) => {
                write!(f, "a task of the calendar and a periodic one are both named {name:?}")
            }
            Self::Overload(load) => {
                write!(f, "units and tasks add up to {load:.3} of the CPU: at most 1 is possible")
            }
        }
    }
}

impl std::error::Error for CalendarError {}

/// A unit and its place in the frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitPlace {
    /// The unit's name.
    pub name: String,
    /// From the start of the frame to the start of its place, ns.
    pub from_ns: u64,
    /// From the start of the frame to the end of its place, ns.
    pub to_ns: u64,
}
