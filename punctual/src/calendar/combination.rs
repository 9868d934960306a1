//! Periodic tasks beside a calendar, in one loop.
//!
//! For whoever has both. Checks that each task can ever start; decides nothing in the loop, which
//! starts a task only where its budget fits before the next unit.

use std::collections::HashSet;

use punctual_core::calendar::{CalendarState, UnitTable};
use punctual_core::dispatch::TableState;
use punctual_core::executive::schedule::Schedule;
use punctual_core::table::Table;
use punctual_core::time::Span;

use super::error::CalendarError;
use super::plan::CalendarPlan;
use crate::periodic;

/// How long before a unit nothing else runs, unless said otherwise: what one turn of the loop and
/// the start of a wait take.
const GUARD: Span = Span::from_us(2);

/// A calendar and periodic tasks that go together.
#[derive(Clone, Copy, Debug)]
pub struct Combination<'p> {
    calendar: &'p CalendarPlan,
    periodic: &'p periodic::Plan,
    guard: Span,
}

impl<'p> Combination<'p> {
    /// Checks that the two go together, with 2 µs before each unit in which nothing runs.
    ///
    /// # Errors
    ///
    /// The first periodic task without a budget, with one that fits into no gap, or with the name
    /// of a task of the calendar; or all that they ask for together, where that is more than the
    /// CPU.
    ///
    /// # Real-time: setup only
    pub fn new(
        calendar: &'p CalendarPlan,
        periodic: &'p periodic::Plan,
    ) -> Result<Self, CalendarError> {
        Self::with_guard(calendar, periodic, GUARD)
    }

    /// The same with a time of its own before each unit, not less than nothing.
    ///
    /// # Errors
    ///
    /// As [`Combination::new`].
    ///
    /// # Real-time: setup only
    pub fn with_guard(
        calendar: &'p CalendarPlan,
        periodic: &'p periodic::Plan,
        guard: Span,
    ) -> Result<Self, CalendarError> {
        if guard < Span::ZERO {
            return Err(CalendarError::Guard(guard.as_ns()));
        }
        let gap_ns = calendar.longest_gap_ns().saturating_sub(guard.as_ns().unsigned_abs());
        let taken: HashSet<&str> = (0..calendar.tasks()).map(|task| calendar.name(task)).collect();
        for rank in 0..periodic.tasks() {
            let name = || periodic.name(rank).to_owned();
            match periodic.budget_ns(rank) {
                None => return Err(CalendarError::NoBudget(name())),
                Some(ns) if ns > gap_ns => return Err(CalendarError::NoGap(name(), ns, gap_ns)),
                Some(_) => {}
            }
            if taken.contains(periodic.name(rank)) {
                return Err(CalendarError::Shared(name()));
            }
        }
        let load = calendar.load() + periodic.load();
        // A sum of quotients may be off by a few parts in 10¹⁶.
        if load > 1.0 + 1e-9 {
            return Err(CalendarError::Overload(load));
        }
        Ok(Self { calendar, periodic, guard })
    }

    /// How long before each unit nothing else runs.
    pub(crate) fn guard(&self) -> Span {
        self.guard
    }

    /// The name of a rank in the loop: the calendar's tasks, then the periodic ones.
    ///
    /// # Real-time: setup only
    pub fn name(&self, rank: usize) -> &'p str {
        match rank.checked_sub(self.calendar.tasks()) {
            Some(rank) => self.periodic.name(rank),
            None => self.calendar.name(rank),
        }
    }

    /// The schedule of both, with the states of both.
    ///
    /// # Real-time: setup only
    pub fn schedule<'r, 's>(
        &self,
        (calendar, units): (&'r UnitTable<'r>, &'r mut CalendarState<'s>),
        (table, tasks): (&'r Table<'r>, &'r mut TableState<'s>),
    ) -> Schedule<'r, 's> {
        Schedule::of_calendar(calendar, units).with_table(table, tasks, self.guard)
    }
}
