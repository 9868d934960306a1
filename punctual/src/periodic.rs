//! Many periodic tasks in one loop: the builder of an executive's table.
//!
//! For whoever runs more than one period. Everything is checked here and nothing later: a
//! [`Plan`] always makes a table. Periods are exact fractions, phases are balanced so that few
//! releases fall together (AnT, *Sophisticated periodic execution control*, §3.3), and the ranks
//! are those of priority, then of the shorter period. Reads no clock, starts nothing.
//!
//! ```
//! use punctual::periodic::{Periodic, Period, Task};
//!
//! let servo = Task::every("servo", Period::hz(1_000).expect("in range")).budget_ns(200_000);
//! let plan = Periodic::new()
//!     .task(servo)
//!     .task(Task::every("log", Period::hz(3).expect("in range")))
//!     .build()?;
//! assert_eq!(plan.name(0), "servo");
//! // Wherever the log is, one release of the servo falls on each of its own.
//! assert_eq!(plan.peak(), 2);
//! # Ok::<(), punctual::periodic::BuildError>(())
//! ```

mod balance;
mod error;
mod phases;
mod plan;
mod successor;

use std::collections::HashMap;

use punctual_core::ready::RANKS_MAX;
pub use punctual_core::table::OnOverrun;

pub use crate::task::{Offset, Task};
pub use error::BuildError;
pub use plan::{Plan, PlanStorage};
pub use punctual_core::time::Period;
pub use successor::Successor;

/// Collects tasks; [`Periodic::build`] checks them and lays them out.
#[derive(Clone, Debug, Default)]
pub struct Periodic {
    tasks: Vec<Task>,
    overload: bool,
    tick_ns: Option<u64>,
}

impl Periodic {
    /// No tasks yet.
    ///
    /// # Real-time: setup only
    pub fn new() -> Self {
        Self::default()
    }

    /// One more task.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn task(mut self, task: Task) -> Self {
        self.tasks.push(task);
        self
    }

    /// Lets balanced phases fall on multiples of `tick_ns` (of its greatest common divisor with all
    /// periods, exactly). Without it they fall on those of the periods' common divisor, so that
    /// tasks that all have one period are released together, with one wake.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn tick_ns(mut self, tick_ns: u64) -> Self {
        self.tick_ns = Some(tick_ns);
        self
    }

    /// Lets the budgets ask for more than the whole CPU: releases will be missed.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn allow_overload(mut self) -> Self {
        self.overload = true;
        self
    }

    /// Checks all tasks and lays them out.
    ///
    /// # Errors
    ///
    /// The first thing that cannot be, with the names of the tasks it is about.
    ///
    /// # Real-time: setup only
    pub fn build(&self) -> Result<Plan, BuildError> {
        let names = self.check()?;
        let (phases, peak) = phases::of(&self.tasks, &names, self.tick_ns)?;
        Ok(Plan::of(&self.tasks, &phases, peak))
    }

    /// Each task on its own, then all together; the index of each name.
    pub(crate) fn check(&self) -> Result<HashMap<&str, usize>, BuildError> {
        if self.tasks.len() > RANKS_MAX {
            return Err(BuildError::TooMany(self.tasks.len()));
        }
        if self.tick_ns == Some(0) {
            return Err(BuildError::Tick);
        }
        let mut names = HashMap::new();
        let mut load = 0.0;
        for (index, task) in self.tasks.iter().enumerate() {
            check_task(task)?;
            if names.insert(task.name.as_str(), index).is_some() {
                return Err(BuildError::SameName(task.name.clone()));
            }
            load += task.budget_ns.unwrap_or(0) as f64 / task.period.as_ns_f64();
        }
        let with = self.tasks.iter().find(|task| task.priority.is_some());
        let without = self.tasks.iter().find(|task| task.priority.is_none());
        if let (Some(with), Some(without)) = (with, without) {
            return Err(BuildError::SomePriorities(with.name.clone(), without.name.clone()));
        }
        // A sum of quotients may be off by a few parts in 10¹⁶.
        if load > 1.0 + 1e-9 && !self.overload {
            return Err(BuildError::Overload(load));
        }
        Ok(names)
    }
}

fn check_task(task: &Task) -> Result<(), BuildError> {
    let name = || task.name.clone();
    if task.name.is_empty() {
        return Err(BuildError::NoName);
    }
    match task.budget_ns {
        Some(budget) if budget == 0 || budget > task.period.as_ns() => {
            return Err(BuildError::Budget(name(), budget, task.period));
        }
        _ => {}
    }
    if task.deadline_ns == Some(0) {
        return Err(BuildError::Deadline(name()));
    }
    match task.phase {
        Offset::At(phase) if phase >= task.period.as_ns() => {
            Err(BuildError::Phase(name(), phase, task.period))
        }
        _ if task.policy == OnOverrun::Burst(0) => Err(BuildError::Burst(name())),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
