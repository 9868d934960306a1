//! The loop over plans that follow one another.
//!
//! In the executive's thread. Never allocates, never frees, never waits but for releases: what is
//! no longer needed stays in the place that the change came in.

use std::sync::atomic::{AtomicU64, Ordering};

use punctual_core::calendar::{CalendarPosition, CalendarState, TaskProgress, UnitTable};
use punctual_core::clock::Clock;
use punctual_core::dispatch::{Before, TableState};
use punctual_core::executive::Ended;
use punctual_core::executive::many::{Dispatch, Many, Observe};
use punctual_core::executive::schedule::Schedule;
use punctual_core::releases::Releases;
use punctual_core::stop::StopRequest;
use punctual_core::table::Table;
use punctual_core::time::{Instant, Span};
use punctual_core::wait::Wait;

use super::{Change, Exchange, Handover, LOOK, RunningPlan};
use crate::calendar::CalendarPlan;

/// A look that never comes: waits are as long as they are.
const NEVER: Span = Span::from_ns(i64::MAX);

/// When a run of the loop ends, and what may end it.
#[derive(Debug)]
pub struct LoopRun<'s, S> {
    /// The first release is at or after this instant, as given to [`RunningPlan::new`].
    pub from: Instant,
    /// Releases at or after this instant do not run.
    pub end: Instant,
    /// Ends it.
    pub stop: &'s S,
    /// Counts the moments in which there was nothing to do: progress for a watchdog, at least
    /// every [`LOOK`] while tasks return.
    pub turns: &'s AtomicU64,
}

/// The units of a calendar that run in the same loop as the plan, and never change.
#[derive(Debug)]
pub struct RunningUnits<'c> {
    table: UnitTable<'c>,
    progress: Vec<TaskProgress>,
    position: CalendarPosition,
    guard: Span,
}

impl<'c> RunningUnits<'c> {
    /// The units of `plan`, whose first frame is the first one at or after `from`; tasks of the
    /// other plan run until `guard` before a unit.
    ///
    /// # Real-time: setup only
    pub fn new(plan: &'c CalendarPlan, epoch: Instant, from: Instant, guard: Span) -> Self {
        let (table, mut progress) = (plan.calendar(epoch), plan.storage());
        // No frame is begun in its middle.
        let frames = Releases::new(epoch, plan.frame());
        let from = frames.release(frames.at_or_after(from));
        let state = CalendarState::begin(&table, &mut progress, from);
        let position = state.expect("the plan's own storage is large enough").position();
        Self { table, progress, position, guard }
    }
}

impl<B> Handover<B> {
    /// Runs `running` by `many` as [`Many::run`] does, and takes each change on the way; at the end
    /// `running` is what ran last. Then no change is taken any more ([`Handover::close`] where a
    /// task may panic).
    ///
    /// # Real-time: in loop, waits
    pub fn run<C, W, D, O>(
        &self,
        many: &mut Many<C, W, D, O>,
        running: &mut RunningPlan,
        run: &LoopRun<'_, impl StopRequest>,
    ) -> Ended
    where
        C: Clock,
        W: Wait<C>,
        D: Dispatch,
        O: Observe,
        B: Exchange<D, O>,
    {
        self.run_with(many, running, None, run)
    }

    /// The same with the units of a calendar, which stay: changes are of the plan alone.
    ///
    /// # Real-time: in loop, waits
    pub fn run_with<C, W, D, O>(
        &self,
        many: &mut Many<C, W, D, O>,
        running: &mut RunningPlan,
        mut units: Option<RunningUnits<'_>>,
        run: &LoopRun<'_, impl StopRequest>,
    ) -> Ended
    where
        C: Clock,
        W: Wait<C>,
        D: Dispatch,
        O: Observe,
        B: Exchange<D, O>,
    {
        let ended = loop {
            if let Some(ended) = self.leg(many, running, units.as_mut(), run) {
                break ended;
            }
        };
        self.close();
        ended
    }

    /// Runs until the end, or until there is something to change; `None` where it goes on.
    fn leg<C, W, D, O>(
        &self,
        many: &mut Many<C, W, D, O>,
        running: &mut RunningPlan,
        units: Option<&mut RunningUnits<'_>>,
        run: &LoopRun<'_, impl StopRequest>,
    ) -> Option<Ended>
    where
        C: Clock,
        W: Wait<C>,
        D: Dispatch,
        O: Observe,
        B: Exchange<D, O>,
    {
        let RunningPlan { plan, storage, epoch } = running;
        let table = plan.table(*epoch);
        // Its own storage, in which a state was begun.
        let Some(mut state) = TableState::resume(&table, storage.lend()) else {
            return Some(Ended::Finished);
        };
        let first = units.as_ref().map_or(0, |units| units.table.tasks());
        let look = if self.last.load(Ordering::Acquire) { NEVER } else { LOOK };
        let (mut unit_state, position) = match units {
            Some(RunningUnits { table, progress, position, guard }) => {
                let unit_state = CalendarState::resume(progress, *position);
                (Some((&*table, unit_state, *guard)), Some(position))
            }
            None => (None, None),
        };
        let mut schedule = match &mut unit_state {
            None => Schedule::of_table(&table, &mut state),
            Some((units, unit_state, guard)) => {
                let schedule = Schedule::of_calendar(units, unit_state);
                match table.tasks() {
                    0 => schedule,
                    _ => schedule.with_table(&table, &mut state, *guard),
                }
            }
        };
        schedule = schedule.leave_on(&self.request_ns, run.turns, look);
        let ended = many.obey(&mut schedule, run.end, run.stop);
        if !schedule.left() {
            return Some(ended);
        }
        if let (Some((_, unit_state, _)), Some(position)) = (&unit_state, position) {
            *position = unit_state.position();
        }
        // No release before the first one, also where there is a change before that.
        let now = many.clock.now().max(run.from - Span::from_ns(1));
        let Ok(mut place) = self.place.try_lock() else { return None };
        if let Some(change) = &mut *place
            && change.take((&table, &mut state, first), many, now)
        {
            drop(state);
            std::mem::swap(running, &mut change.running);
        }
        drop(place);
        self.request_ns.store(0, Ordering::Release);
        None
    }
}

impl<B> Change<B> {
    /// Goes on in the new plan from where the old one is, whose ranks begin at `first`; whether
    /// that fits. What a task that goes was due for and did not run is missed.
    fn take<C, W, D, O>(
        &mut self,
        (table, state, first): (&Table<'_>, &mut TableState<'_>, usize),
        many: &mut Many<C, W, D, O>,
        now: Instant,
    ) -> bool
    where
        O: Observe,
        B: Exchange<D, O>,
    {
        let RunningPlan { plan, storage, epoch } = &mut self.running;
        let before = Before { table, state: &mut *state, ranks: &self.ranks };
        match TableState::follow(&plan.table(*epoch), storage.lend(), before, now) {
            Ok(_left_in_its_storage) => {
                let mut stay = self.stay.iter().peekable();
                for rank in 0..table.tasks() {
                    if stay.next_if(|stays| **stays as usize == rank).is_some() {
                        continue;
                    }
                    if let Some(missed) = state.never_ran(table, rank, now) {
                        many.observe.never_ran(first + rank, missed, now);
                    }
                }
                self.parts.exchange(&mut many.tasks, &mut many.observe, &self.ranks);
                true
            }
            Err(why) => {
                self.refused = Some(why);
                false
            }
        }
    }
}
