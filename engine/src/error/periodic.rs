//! The faults of periodic tasks of which no table can be built.
//!
//! Plain data and words, for [`Periodic::build`](crate::periodic::Periodic::build).

use std::fmt;
use std::time::Duration;

use punctual_core::ready::RANKS_MAX;
use punctual_core::time::Period;

use super::exact;
use crate::duration::span;

/// The fault of tasks that cannot be an executive.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum BuildError {
    /// There is no task.
    NoTask,
    /// A task has no name.
    NoName,
    /// A tick of zero length.
    Tick,
    /// Two tasks have this name.
    SameName(String),
    /// More tasks than ranks.
    TooMany(usize),
    /// A budget of zero or above the period, ns.
    Budget(String, u64, Period),
    /// A deadline of zero.
    Deadline(String),
    /// A budget, ns, that no deadline of this length, ns, leaves room for.
    OverDeadline(String, u64, u64),
    /// More than one calendar.
    TwoCalendars,
    /// Background work more than once.
    TwoIdles,
    /// A burst of zero cycles.
    Burst(String),
    /// A phase, ns, that is not below the period.
    Phase(String, u64, Period),
    /// A task is after one that is not there.
    Unknown(String, String),
    /// A task is after one of another period, whose phase may move, or after itself.
    After(String, String),
    /// The first has a priority, the second none.
    SomePriorities(String, String),
    /// The budgets ask for this share of CPUs; the tasks that have one, with it in ns.
    Overload(f64, Overfull, Vec<(String, u64, Period)>),
    /// A task is late whatever the phases, behind one that cannot be preempted: its name, and the
    /// words of [`LateTask`](crate::periodic::LateTask).
    Late(String, String),
    /// The executive's SCHED_FIFO priority, and the lowest and highest that it may be.
    Priority(u8, u8, u8),
    /// Background work in slices of zero length.
    Slice,
    /// A share of a CPU that is not in (0, 1].
    Share(f64),
    /// There is no CPU to run on.
    NoCpu,
    /// Two executives want this CPU.
    SameCpu(u32),
    /// A grace, ns, below nothing.
    Grace(i64),
    /// A task with a setting that cannot be in the place where it runs, and the reason.
    Cannot(String, &'static str),
}

/// The CPUs of which budgets ask for more than there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Overfull {
    /// One, whichever that is.
    One,
    /// This one.
    Cpu(u32),
    /// All that are allowed, so many.
    All(usize),
}

impl fmt::Display for Overfull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One => f.write_str("a CPU"),
            Self::Cpu(cpu) => write!(f, "CPU {cpu}"),
            Self::All(1) => f.write_str("the only CPU that is allowed"),
            Self::All(cpus) => write!(f, "the {cpus} CPUs that are allowed"),
        }
    }
}

impl BuildError {
    /// The same, of the tasks of this CPU, where an overload's is known.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn on_cpu(mut self, cpu: Option<u32>) -> Self {
        if let (Self::Overload(_, overfull, _), Some(cpu)) = (&mut self, cpu) {
            *overfull = Overfull::Cpu(cpu);
        }
        self
    }

    /// The task that it is about, or the first of several; `None` for all together.
    ///
    /// # Real-time: setup only
    pub fn task(&self) -> Option<&str> {
        match self {
            Self::SameName(name)
            | Self::Budget(name, ..)
            | Self::Deadline(name)
            | Self::OverDeadline(name, ..)
            | Self::Burst(name)
            | Self::Phase(name, ..)
            | Self::Unknown(name, _)
            | Self::After(name, _)
            | Self::SomePriorities(name, _)
            | Self::Cannot(name, _)
            | Self::Late(name, _) => Some(name),
            Self::Overload(_, _, budgets) => budgets.first().map(|(name, ..)| name.as_str()),
            _ => None,
        }
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTask => f.write_str(
                "no task was given: at least one is needed, also where others are added later",
            ),
            Self::NoName => f.write_str("a task's name must not be empty"),
            Self::Tick => f.write_str("tick must be greater than 0"),
            Self::SameName(name) => write!(f, "two tasks are named {name:?}"),
            Self::TooMany(n) => write!(f, "an executive has at most {RANKS_MAX} tasks (got {n})"),
            Self::Budget(name, 0, _) => write!(f, "task {name:?}: budget must be greater than 0"),
            Self::Budget(name, budget, period) => {
                let period = exact(*period);
                write!(
                    f,
                    "task {name:?}: budget must be at most its period of {period} (got {budget} ns)"
                )
            }
            Self::Deadline(name) => write!(f, "task {name:?}: deadline must be greater than 0"),
            Self::OverDeadline(name, budget_ns, deadline_ns) => write!(
                f,
                "task {name:?}: its budget must not be above its deadline of {} (got {})",
                span(Duration::from_nanos(*deadline_ns)),
                span(Duration::from_nanos(*budget_ns)),
            ),
            Self::TwoCalendars => f.write_str(
                "an executive has one calendar, and a second was given: put all units in one",
            ),
            Self::TwoIdles => f.write_str(
                "an executive has background work once, and `idle` was called twice: call both \
                 functions from one",
            ),
            Self::Burst(name) => write!(f, "task {name:?}: burst must be at least 1"),
            Self::Phase(name, phase, period) => {
                let period = exact(*period);
                write!(
                    f,
                    "task {name:?}: phase must be below its period of {period} (got {phase} ns)"
                )
            }
            Self::Unknown(name, before) => {
                write!(f, "task {name:?} is after {before:?}, and no task has that name")
            }
            Self::After(name, before) => write!(
                f,
                "task {name:?} cannot be after {before:?}: both need one period and phases that \
                 stay, and no task is after itself"
            ),
            Self::SomePriorities(with, without) => write!(
                f,
                "task {with:?} has a priority and task {without:?} has none: give all tasks one, \
                 or none of them (rate-monotonic)"
            ),
            Self::Priority(priority, least, most) => {
                write!(f, "an executive's priority must be from {least} to {most} (got {priority})")
            }
            Self::Late(_, why) => write!(f, "{why}; without `strict` this is a warning"),
            Self::Share(share) => {
                write!(f, "share of each CPU must be above 0 and at most 1 (got {share})")
            }
            Self::NoCpu => f.write_str(
                "no CPU was given: at least one is needed; leave the list away for any CPU",
            ),
            Self::SameCpu(cpu) => write!(f, "CPU {cpu} is given twice: each needs one loop"),
            Self::Grace(ns) => write!(f, "grace must not be negative (got {ns} ns)"),
            Self::Cannot(name, why) => write!(f, "task {name:?}: {why}"),
            Self::Slice => f.write_str(
                "a slice of background work must be longer than 0 (got 0 ns): say how long one \
                 takes at most",
            ),
            Self::Overload(load, overfull, budgets) => {
                let most = match overfull {
                    Overfull::All(cpus) => *cpus,
                    _ => 1,
                };
                write!(f, "the budgets add up to {load:.3} of {overfull}: ")?;
                write!(f, "at most {most} is possible (")?;
                for (at, (name, budget_ns, period)) in budgets.iter().enumerate() {
                    let budget = span(Duration::from_nanos(*budget_ns));
                    let comma = if at == 0 { "" } else { ", " };
                    write!(f, "{comma}{name:?} {budget} of {}", period.as_span())?;
                }
                f.write_str("); shorten budgets or name more CPUs")
            }
        }
    }
}

impl std::error::Error for BuildError {}
