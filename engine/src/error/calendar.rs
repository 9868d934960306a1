//! The faults of units that cannot be a calendar.
//!
//! Plain data and words, for [`CalendarBuilder::build`](crate::calendar::CalendarBuilder::build).

use std::fmt;

use punctual_core::block::PLACES_MAX;
use punctual_core::calendar::UNITS_MAX;
use punctual_core::table::OnOverrun;
use punctual_core::time::{Period, Span};

/// The fault of units that cannot be a calendar.
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
    /// A unit's deadline, ns after it is ready, is below its budget or above what its frame or
    /// period leaves, ns.
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
    /// Units and periodic tasks together ask for this share of a CPU, which is this one where that
    /// is known.
    Overload(f64, Option<u32>),
    /// A unit has a period or excludes a task, and its places were not made.
    Unscheduled(String),
    /// The places of a unit were made already, or it is not of the cycles of its task.
    Scheduled(String),
    /// The name of a further run of a unit is that of another unit.
    RunName(String),
    /// A unit's period, ns, does not divide the frame, ns.
    Period(String, u64, u64),
    /// A unit's earliest start, ns after the start of its period, is not within the period, ns.
    Offset(String, u64, u64),
    /// A unit is after one of another period, or of a task with one.
    Rates(String, String),
    /// A unit excludes a task that is not there.
    Excluded(String, String),
    /// A task that is a process has so many places in a frame, more than its block has room for.
    Places(String, usize),
    /// A task of the calendar has no process to be released at its places.
    NoProcess(String),
    /// A process is to be released at the places of a task, at another period than these have.
    ProcessPeriod(String, Period, Period),
    /// These units, one after the other, take longer than they have.
    Chain {
        /// In their order.
        units: Vec<String>,
        /// The time that they take, ns.
        needs_ns: u64,
        /// From the earliest start of the first to the deadline of the last, ns.
        has_ns: u64,
    },
    /// These units are ready and due within an interval of the frame that is too short for them.
    Demand {
        /// By their deadlines.
        units: Vec<String>,
        /// The start of the interval, ns after that of the frame.
        from_ns: u64,
        /// The end of the interval, ns after the start of the frame.
        to_ns: u64,
        /// The time that they take, ns.
        needs_ns: u64,
    },
    /// No order of the units meets all deadlines, where none is interrupted.
    NoOrder(LateUnit),
    /// No order was found, and not shown that there is none.
    OrderUnknown {
        /// Choices that were tried.
        tried: usize,
        /// The unit that stands in the way.
        late: LateUnit,
    },
}

impl CalendarError {
    /// The same, of what runs on this CPU, where that is known.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn on_cpu(mut self, cpu: Option<u32>) -> Self {
        if let Self::Overload(_, overfull) = &mut self {
            *overfull = cpu;
        }
        self
    }

    /// The unit or the task that it is about, of several the first; `None` for all together. A
    /// further run of a unit has its number behind its name.
    ///
    /// # Real-time: setup only
    pub fn unit(&self) -> Option<&str> {
        match self {
            Self::Empty
            | Self::TooMany(_)
            | Self::Frame(_)
            | Self::NoName
            | Self::Gap(_)
            | Self::Overload(..) => None,
            Self::SameName(name)
            | Self::Budget(name)
            | Self::Deadline(name, ..)
            | Self::Unknown(name, _)
            | Self::Circle(name)
            | Self::OnOverrun(name, _)
            | Self::NoBudget(name)
            | Self::NoGap(name, ..)
            | Self::Shared(name)
            | Self::Unscheduled(name)
            | Self::Scheduled(name)
            | Self::RunName(name)
            | Self::Period(name, ..)
            | Self::Offset(name, ..)
            | Self::Rates(name, _)
            | Self::Excluded(name, _)
            | Self::Places(name, _)
            | Self::NoProcess(name)
            | Self::ProcessPeriod(name, ..)
            | Self::Policies(_, _, name) => Some(name),
            Self::Outside(place, _) | Self::Overlap(_, place) => Some(&place.name),
            Self::Chain { units, .. } | Self::Demand { units, .. } => {
                units.first().map(String::as_str)
            }
            Self::NoOrder(late) | Self::OrderUnknown { late, .. } => Some(&late.place.name),
        }
    }
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
                "unit {name:?}: deadline must be from its budget of {budget} ns to {frame} ns, the \
                 end of its frame or period (got {deadline} ns)"
            ),
            Self::Unknown(name, before) => {
                write!(f, "unit {name:?} is after {before:?}, and no unit has that name")
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
            Self::Overload(load, cpu) => write!(
                f,
                "units and tasks add up to {load:.3} of {}: at most 1 is possible; shorten budgets",
                cpu.map_or_else(|| "the CPU".to_owned(), |cpu| format!("CPU {cpu}"))
            ),
            Self::Unscheduled(name) => write!(
                f,
                "unit {name:?} has a period or excludes a task: its calendar must be scheduled"
            ),
            Self::Scheduled(name) => write!(
                f,
                "unit {name:?}: its calendar was scheduled already; add all units, then schedule \
                 it once"
            ),
            Self::RunName(name) => write!(
                f,
                "two units would be named {name:?}: so a further run of a unit is called, its \
                 number behind its name"
            ),
            Self::Period(name, period, frame) => write!(
                f,
                "unit {name:?}: its period must divide the frame of {frame} ns (got {period} ns)"
            ),
            Self::Offset(name, offset, period) => write!(
                f,
                "unit {name:?}: its earliest start must lie within its period of {period} ns (got \
                 {offset} ns)"
            ),
            Self::Rates(name, other) => write!(
                f,
                "units {name:?} and {other:?} of one task, or one after the other, must \
                 have one period"
            ),
            Self::Excluded(name, task) => {
                write!(f, "unit {name:?} excludes task {task:?}, and no unit is of that task")
            }
            Self::Places(task, count) => write!(
                f,
                "task {task:?}: its units have {count} places in the frame; the process of a task \
                 has at most {PLACES_MAX}: give it a longer period or a shorter frame"
            ),
            Self::NoProcess(task) => {
                write!(f, "task {task:?} of the calendar has no process: give it one of its name")
            }
            Self::ProcessPeriod(task, got, due) => write!(
                f,
                "task {task:?}: the period of its process must be {due}, the frame over its places \
                 (got {got})"
            ),
            Self::Chain { units, needs_ns, has_ns } if units.len() == 1 => {
                let [needs, has] = [*needs_ns, *has_ns].map(span);
                write!(f, "{} takes {needs}, and has {has}", Units(units))
            }
            Self::Chain { units, needs_ns, has_ns } => write!(
                f,
                "{} one after the other take {}, and have {}",
                Units(units),
                span(*needs_ns),
                span(*has_ns)
            ),
            Self::Demand { units, from_ns, to_ns, needs_ns } => write!(
                f,
                "{} take {}, and are ready and due from {} to {} of the frame, which is {}",
                Units(units),
                span(*needs_ns),
                span(*from_ns),
                span(*to_ns),
                span(to_ns.saturating_sub(*from_ns))
            ),
            Self::NoOrder(late) => write!(
                f,
                "no order of the units meets all deadlines, as none is interrupted: {late}; split \
                 the longest units, or give a later deadline"
            ),
            Self::OrderUnknown { tried, late } => write!(
                f,
                "it is not known whether the units have places ({tried} choices were tried): \
                 {late}; split the longest units, or give a later deadline"
            ),
        }
    }
}

impl std::error::Error for CalendarError {}

/// Names of units, of many the first ones.
struct Units<'n>(&'n [String]);

impl fmt::Display for Units<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 6;
        let Self(names) = self;
        f.write_str(if names.len() == 1 { "unit " } else { "units " })?;
        for (place, name) in names.iter().take(SHOWN).enumerate() {
            let is_last = place + 1 == names.len();
            let join = match place {
                0 => "",
                _ if is_last => " and ",
                _ => ", ",
            };
            write!(f, "{join}{name:?}")?;
        }
        match names.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// A unit that is late where units come by their deadlines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LateUnit {
    /// Its place then.
    pub place: UnitPlace,
    /// From the start of the frame to its deadline, ns.
    pub deadline_ns: u64,
    /// The unit before it; `None` where there is none.
    pub behind: Option<String>,
    /// True where it is not late, but kept out for ever by a task that excludes its own.
    pub is_kept_out: bool,
}

impl fmt::Display for LateUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, deadline_ns, behind, is_kept_out } = self;
        write!(f, "by their deadlines unit {:?}", place.name)?;
        if *is_kept_out {
            let task = behind.as_deref().unwrap_or("another");
            return write!(
                f,
                " comes between {task:?} and the rest of a task that excludes its own"
            );
        }
        if let Some(behind) = behind {
            write!(f, ", behind {behind:?},")?;
        }
        write!(f, " ends at {} and is due at {}", span(place.to_ns), span(*deadline_ns))
    }
}

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
