//! A run of a calendar, alone or with the tasks of an executive between its units: [`crate::run`]
//! with the steps of both.

use std::sync::Arc;

use punctual::calendar::Beside;
use punctual::core::calendar::{State as UnitState, TaskProgress, UnitTable};
use punctual::core::dispatch::State;
use punctual::core::executive::Ended;
use punctual::core::executive::schedule::Schedule;

use super::counts::UnitCounts;
use super::frame::{Built, Calendar, Setup, failure};
use crate::border::Failure;
use crate::calls::Calls;
use crate::cancels::Cancels;
use crate::options::Options;
use crate::periodic::{self, Executive};
use crate::run::{Run, Stretch, overran, too_small};

impl Calendar {
    /// Runs for so long, or until it is stopped; `beside` runs between the units.
    pub(super) fn run(
        &self,
        beside: Option<&Executive>,
        options: &Options,
        duration_ns: u64,
    ) -> Result<(), Failure> {
        self.setup.with(|setup| {
            let built = self.built()?;
            match beside {
                None => self.alone(setup, built, options, duration_ns),
                Some(executive) => executive.lend(|tasks| {
                    if executive.remote.stopped() {
                        return Ok(());
                    }
                    self.together(setup, built, (executive, tasks), options, duration_ns)
                }),
            }
        })
    }

    fn alone(
        &self,
        setup: &mut Setup,
        built: &Built,
        options: &Options,
        duration_ns: u64,
    ) -> Result<(), Failure> {
        let run = Run {
            options,
            period: built.period,
            duration_ns,
            remote: &self.remote,
            terminates: built.terminates,
            calls: Calls::new(built.callbacks.clone()),
            rooms: built.rooms.clone(),
            cancels: &Cancels::default(),
        };
        let counts = &mut setup.counts;
        let ended = run.go(&mut setup.told, |many, stretch| {
            let places = built.plan.calendar(stretch.epoch);
            let mut progress = built.plan.storage();
            let mut state = begin(&places, &mut progress, stretch)?;
            let mut schedule = Schedule::of_calendar(&places, &mut state);
            let ended = many.obey(&mut schedule, stretch.end, self.remote.flag());
            *counts = counted(built, &state);
            Ok(ended)
        })?;
        judge(ended, |rank| built.plan.name(rank))
    }

    fn together(
        &self,
        setup: &mut Setup,
        built: &Built,
        (executive, tasks): (&Executive, &periodic::Built),
        options: &Options,
        duration_ns: u64,
    ) -> Result<(), Failure> {
        let beside = Beside::new(&built.plan, &tasks.plan).map_err(|why| failure(&why))?;
        // The calendar's tasks come first.
        let callbacks = built.callbacks.iter().chain(&tasks.callbacks).copied().collect();
        let rooms = built.rooms.iter().chain(&tasks.rooms).map(Arc::clone).collect();
        let run = Run {
            options,
            period: tasks.shortest.map_or(built.period, |shortest| built.period.min(shortest)),
            duration_ns,
            remote: &self.remote,
            terminates: built.terminates || tasks.terminates,
            calls: Calls::new(callbacks).stopped_by(&executive.remote),
            rooms,
            cancels: &Cancels::default(),
        };
        let counts = &mut setup.counts;
        let ended = run.go(&mut setup.told, |many, stretch| {
            let places = built.plan.calendar(stretch.epoch);
            let table = tasks.plan.table(stretch.epoch);
            let (mut progress, mut storage) = (built.plan.storage(), tasks.plan.storage());
            let mut unit_state = begin(&places, &mut progress, stretch)?;
            let state = State::begin(&table, storage.lend(), stretch.from);
            let mut state = state.ok_or_else(too_small)?;
            let mut schedule = beside.schedule((&places, &mut unit_state), (&table, &mut state));
            let ended = many.obey(&mut schedule, stretch.end, self.remote.flag());
            *counts = counted(built, &unit_state);
            Ok(ended)
        })?;
        judge(ended, |rank| beside.name(rank))
    }
}

/// Where the units of a run begin.
fn begin<'s>(
    places: &UnitTable<'_>,
    progress: &'s mut [TaskProgress],
    stretch: Stretch,
) -> Result<UnitState<'s>, Failure> {
    UnitState::begin(places, progress, stretch.from).ok_or_else(too_small)
}

/// What the units did.
fn counted(built: &Built, state: &UnitState<'_>) -> Vec<UnitCounts> {
    (0..built.plan.tasks()).map(|task| UnitCounts::of(state.counters(task))).collect()
}

fn judge<'n>(ended: Ended, name: impl Fn(usize) -> &'n str) -> Result<(), Failure> {
    match ended {
        Ended::Overran(rank) => Err(overran(name(rank))),
        Ended::Finished | Ended::Stopped => Ok(()),
    }
}
