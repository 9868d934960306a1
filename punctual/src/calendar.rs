//! Units at fixed places of a frame: the builder of an executive's calendar.
//!
//! For whoever knows at which instant each piece of work has to begin: Maruti's way (*Temporal
//! accuracy on the Pentium Pro*, §6.1). A frame comes round for ever; in it each elemental unit has
//! a place, which no other overlaps. A task with several units may *break off* at the end of one
//! and go on in the next; one that is done early hands the rest back. A unit that runs longer than
//! its budget is *timed out*: it is counted as the culprit, its cancel token is set where its
//! policy is to be terminated, and the next unit starts late, which is counted too. Everything is
//! checked here and nothing later. Reads no clock, starts nothing.
//!
//! In addition to a calendar the same loop can run periodic tasks ([`Combination`]): each is
//! started only where its budget fits before the next unit. [`crate::Calendar`] adds the bodies.

mod combination;
mod error;
mod place;
mod plan;
mod unit;

use std::collections::HashMap;

use punctual_core::calendar::UNITS_MAX;
use punctual_core::table::OnOverrun;
use punctual_core::time::Period;

pub use combination::Combination;
pub use error::{CalendarError, UnitPlace};
pub use plan::CalendarPlan;
pub use unit::Unit;

/// Collects units; [`CalendarBuilder::build`] checks them and lays them out.
#[derive(Clone, Debug)]
pub struct CalendarBuilder {
    frame: Period,
    units: Vec<Unit>,
}

impl CalendarBuilder {
    /// A frame without units.
    ///
    /// # Real-time: setup only
    pub fn new(frame: Period) -> Self {
        Self { frame, units: Vec::new() }
    }

    /// One more unit.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn unit(mut self, unit: Unit) -> Self {
        self.units.push(unit);
        self
    }

    /// Checks all units and lays them out.
    ///
    /// # Errors
    ///
    /// The first thing that cannot be, with the names of the units it is about.
    ///
    /// # Real-time: setup only
    pub fn build(&self) -> Result<CalendarPlan, CalendarError> {
        let names = self.check()?;
        let ready = place::of(&self.units, &names, self.frame.as_ns())?;
        let mut order: Vec<(u64, usize)> = ready.into_iter().zip(0..).collect();
        order.sort_unstable();
        for pair in order.windows(2) {
            let [one, other] = [pair[0], pair[1]].map(|(at, i)| place::placed(&self.units[i], at));
            if one.to_ns > other.from_ns {
                return Err(CalendarError::Overlap(one, other));
            }
        }
        self.check_policies()?;
        Ok(CalendarPlan::of(self.frame, &self.units, &order))
    }

    /// Each unit on its own; the index of each name.
    fn check(&self) -> Result<HashMap<&str, usize>, CalendarError> {
        let frame_ns = self.frame.as_ns();
        match self.units.len() {
            0 => return Err(CalendarError::Empty),
            n if n > UNITS_MAX => return Err(CalendarError::TooMany(n)),
            _ if self.frame.den() != 1 => return Err(CalendarError::Frame(self.frame)),
            _ => {}
        }
        let mut names = HashMap::new();
        for (index, unit) in self.units.iter().enumerate() {
            let name = || unit.name.clone();
            if unit.name.is_empty() || unit.task().is_empty() {
                return Err(CalendarError::NoName);
            }
            if names.insert(unit.name.as_str(), index).is_some() {
                return Err(CalendarError::SameName(name()));
            }
            if unit.budget_ns == 0 {
                return Err(CalendarError::Budget(name()));
            }
            let (budget, deadline) = (unit.budget_ns, unit.deadline_ns.unwrap_or(unit.budget_ns));
            let dated = (budget..=frame_ns).contains(&deadline);
            if unit.deadline_ns.is_some() && !dated {
                return Err(CalendarError::Deadline(name(), deadline, budget, frame_ns));
            }
        }
        Ok(names)
    }

    /// What a time-out does is one thing for all units of a task.
    fn check_policies(&self) -> Result<(), CalendarError> {
        let mut said: HashMap<&str, &Unit> = HashMap::new();
        for unit in &self.units {
            let Some(policy) = unit.policy else { continue };
            if matches!(policy, OnOverrun::Delay | OnOverrun::Burst(_)) {
                return Err(CalendarError::OnOverrun(unit.name.clone(), policy));
            }
            let first = said.entry(unit.task()).or_insert(unit);
            if first.policy != Some(policy) {
                let [one, other] = [first.name.clone(), unit.name.clone()];
                return Err(CalendarError::Policies(unit.task().to_owned(), one, other));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
