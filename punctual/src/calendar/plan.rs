//! A calendar's parts in memory of their own, and the storage that running it takes.
//!
//! For the builder, which makes it, and for whoever runs it. Never changes once made.

use punctual_core::calendar::{self, TaskProgress, UnitSlot as Place};
use punctual_core::table::OnOverrun;
use punctual_core::time::{Instant, Period};

use super::unit::Unit;

/// What an executive runs: units at their places, and whose they are.
#[derive(Clone, Debug, PartialEq)]
pub struct CalendarPlan {
    frame: Period,
    /// By task.
    names: Vec<String>,
    policies: Vec<OnOverrun>,
    /// In the order of the frame.
    units: Vec<String>,
    places: Vec<Place>,
}

impl CalendarPlan {
    /// Lays out units that were checked: `order` are their indices and places in the order of the
    /// frame. Tasks are numbered as they come in it.
    pub(super) fn of(frame: Period, units: &[Unit], order: &[(u64, usize)]) -> Self {
        let mut numbers = std::collections::HashMap::new();
        let mut plan = Self {
            frame,
            names: Vec::new(),
            policies: Vec::new(),
            units: Vec::with_capacity(units.len()),
            places: Vec::with_capacity(units.len()),
        };
        for &(ready_ns, index) in order {
            let unit = &units[index];
            let task = *numbers.entry(unit.task()).or_insert_with(|| {
                plan.names.push(unit.task().to_owned());
                plan.policies.push(OnOverrun::Skip);
                plan.names.len() - 1
            });
            if let Some(policy) = unit.policy {
                plan.policies[task] = policy;
            }
            plan.units.push(unit.name.clone());
            plan.places.push(Place {
                ready_ns,
                budget_ns: unit.budget_ns,
                deadline_ns: ready_ns + unit.deadline_ns.unwrap_or(unit.budget_ns),
                start_ns: unit.start_ns.unwrap_or(u64::MAX),
                task: u32::try_from(task).unwrap_or(u32::MAX),
            });
        }
        plan
    }

    /// The calendar whose frame 0 starts at `epoch`; at the zero of CLOCK_MONOTONIC, separate
    /// processes agree on all places without talking.
    ///
    /// # Panics
    ///
    /// Never: the builder made what the calendar checks.
    ///
    /// # Real-time: setup only
    pub fn calendar(&self, epoch: Instant) -> calendar::UnitTable<'_> {
        calendar::UnitTable::new(epoch, self.frame, &self.places, &self.policies)
            .expect("the builder makes whole calendars")
    }

    /// Storage for a run of this plan.
    ///
    /// # Real-time: setup only
    pub fn storage(&self) -> Vec<TaskProgress> {
        vec![TaskProgress::default(); self.names.len()]
    }

    /// The frame.
    ///
    /// # Real-time: setup only
    pub fn frame(&self) -> Period {
        self.frame
    }

    /// How many tasks there are.
    ///
    /// # Real-time: setup only
    pub fn tasks(&self) -> usize {
        self.names.len()
    }

    /// The name of this task, which is its rank in the loop; they are numbered as they first come
    /// in the frame.
    ///
    /// # Real-time: setup only
    pub fn name(&self, task: usize) -> &str {
        &self.names[task]
    }

    /// The units in the order of the frame, each with its name.
    ///
    /// # Real-time: setup only
    pub fn units(&self) -> impl ExactSizeIterator<Item = (&str, &Place)> {
        self.units.iter().map(String::as_str).zip(&self.places)
    }

    /// When the first unit of this task is ready, ns after the start of the frame.
    pub(crate) fn ready_ns(&self, task: usize) -> Option<u64> {
        let of = |place: &&Place| place.task as usize == task;
        self.places.iter().find(of).map(|place| place.ready_ns)
    }

    /// The share of the CPU that all budgets take.
    ///
    /// # Real-time: setup only
    pub fn load(&self) -> f64 {
        let budgets = self.places.iter().map(|place| place.budget_ns as f64);
        budgets.sum::<f64>() / self.frame.as_ns() as f64
    }

    /// The longest time between two units, ns: that from the last one to the first one of the next
    /// frame counts too.
    ///
    /// # Real-time: setup only
    pub fn longest_gap_ns(&self) -> u64 {
        let end_ns = |place: &Place| place.ready_ns + place.budget_ns;
        let between = self.places.windows(2).map(|pair| pair[1].ready_ns - end_ns(&pair[0]));
        let around = match (self.places.first(), self.places.last()) {
            (Some(first), Some(last)) => self.frame.as_ns() - end_ns(last) + first.ready_ns,
            _ => 0,
        };
        between.fold(around, u64::max)
    }
}
