//! Why tasks cannot be an executive, in words for a person.

use std::fmt;

use punctual_core::ready::RANKS_MAX;

use punctual_core::time::Period;

/// Why tasks cannot be an executive.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum BuildError {
    /// There is none.
    NoTask,
    /// A task has no name.
    NoName,
    /// A tick of nothing.
    Tick,
    /// Two tasks have this name.
    SameName(String),
    /// More tasks than ranks.
    TooMany(usize),
    /// A budget, ns, of nothing or above the period.
    Budget(String, u64, Period),
    /// A deadline of nothing.
    Deadline(String),
    /// A burst of nothing.
    Burst(String),
    /// A phase, ns, that is not below the period.
    Phase(String, u64, Period),
    /// A task is after one that is not there.
    Unknown(String, String),
    /// A task is after one of another period, whose phase may move, or after itself.
    After(String, String),
    /// The first has a priority, the second none.
    SomePriorities(String, String),
    /// The budgets ask for this share of the CPU.
    Overload(f64),
    /// The executive's SCHED_FIFO priority, and the lowest and highest that it may be.
    Priority(u8, u8, u8),
    /// A share of a CPU that is not in (0, 1].
    Share(f64),
    /// There is no CPU to run on.
    NoCpu,
    /// Two executives want this CPU.
    SameCpu(u32),
    /// A grace, ns, below nothing.
    Grace(i64),
    /// What a task asks for cannot be where it runs, and why.
    Cannot(String, &'static str),
}

impl BuildError {
    /// The task that it is about, or the first of two; `None` for all together.
    ///
    /// # Real-time: setup only
    pub fn task(&self) -> Option<&str> {
        match self {
            Self::SameName(name)
            | Self::Budget(name, ..)
            | Self::Deadline(name)
            | Self::Burst(name)
            | Self::Phase(name, ..)
            | Self::Unknown(name, _)
            | Self::After(name, _)
            | Self::SomePriorities(name, _)
            | Self::Cannot(name, _) => Some(name),
            _ => None,
        }
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTask => f.write_str("there is no task"),
            Self::NoName => f.write_str("a task without a name"),
            Self::Tick => f.write_str("a tick of nothing"),
            Self::SameName(name) => write!(f, "two tasks are named {name:?}"),
            Self::TooMany(n) => write!(f, "{n} tasks; an executive has at most {RANKS_MAX}"),
            Self::Budget(name, 0, _) => write!(f, "task {name:?}: a budget of nothing"),
            Self::Budget(name, budget, period) => {
                write!(f, "task {name:?}: a budget of {budget} ns in a period of {period}")
            }
            Self::Deadline(name) => write!(f, "task {name:?}: a deadline at its own release"),
            Self::Burst(name) => write!(f, "task {name:?}: a burst of no cycle"),
            Self::Phase(name, phase, period) => {
                write!(f, "task {name:?}: a phase of {phase} ns is not in a period of {period}")
            }
            Self::Unknown(name, of) => write!(f, "task {name:?} is after {of:?}, which is no task"),
            Self::After(name, of) => write!(
                f,
                "task {name:?} cannot be after {of:?}: both need one period and phases that stay, \
                 and no task is after itself"
            ),
            Self::SomePriorities(with, without) => write!(
                f,
                "task {with:?} has a priority and task {without:?} has none: give all tasks one, \
                 or none of them (rate-monotonic)"
            ),
            Self::Priority(priority, least, most) => {
                write!(f, "an executive's priority of {priority} is not in [{least}, {most}]")
            }
            Self::Share(share) => write!(f, "a share of {share} of each CPU: above 0, at most 1"),
            Self::NoCpu => f.write_str("there is no CPU to run on"),
            Self::SameCpu(cpu) => write!(f, "two executives on CPU {cpu}"),
            Self::Grace(ns) => write!(f, "a grace of {ns} ns: from 0 on"),
            Self::Cannot(name, why) => write!(f, "task {name:?}: {why}"),
            Self::Overload(load) => {
                write!(f, "the budgets add up to {load:.3} of the CPU, which is more than there is")
            }
        }
    }
}

impl std::error::Error for BuildError {}
