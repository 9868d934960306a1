//! What a `punctual_calendar` is: units while they are added, then a plan with a page a task.
//!
//! Setup and readers; the run is `run.rs`'s.

use std::collections::HashMap;
use std::sync::Arc;
#[expect(
    clippy::disallowed_types,
    reason = "filled by build, a call of setup; then only read"
)]
use std::sync::OnceLock;

use punctual::calendar::{Calendar as Builder, CalendarError, Plan};
use punctual::core::page::View;
use punctual::core::time::Period;
use punctual::loops::Control;

use super::counts::UnitCounts;
use super::unit::Added;
use crate::border::{Exclusive, Failure};
use crate::room::Room;
use crate::run::Told;
use crate::task::Callback;

/// A calendar.
#[expect(clippy::disallowed_types, reason = "filled by build, a call of setup; then only read")]
pub(crate) struct Calendar {
    frame: Period,
    pub(super) setup: Exclusive<Setup>,
    built: OnceLock<Built>,
    pub(super) remote: Control,
}

/// What one call at a time may touch.
#[derive(Default)]
pub(super) struct Setup {
    units: Vec<Added>,
    pub(super) told: Told,
    /// By task, of the last run; none before the first one is over.
    pub(super) counts: Vec<UnitCounts>,
}

/// What is fixed once it is built.
pub(super) struct Built {
    pub(super) plan: Plan,
    /// The task and the place of each unit, in the order of adding.
    units: Vec<(usize, (u64, u64))>,
    /// By task.
    pub(super) callbacks: Vec<Callback>,
    pub(super) rooms: Vec<Arc<Room>>,
    /// From one unit to the next in the mean.
    pub(super) period: Period,
    /// Whether there is a task that is to be terminated.
    pub(super) terminates: bool,
}

/// The errno of what cannot be built or run together.
pub(super) fn failure(why: &CalendarError) -> Failure {
    let errno = match why {
        CalendarError::SameName(_) | CalendarError::Shared(_) => libc::EEXIST,
        CalendarError::TooMany(_) => libc::E2BIG,
        CalendarError::Unknown(..) => libc::ENOENT,
        CalendarError::Outside(..)
        | CalendarError::Overlap(..)
        | CalendarError::NoGap(..)
        | CalendarError::Overload(_) => libc::ENOSPC,
        _ => libc::EINVAL,
    };
    Failure::new(errno, why.to_string())
}

impl Calendar {
    /// A frame without units.
    #[expect(clippy::disallowed_types, reason = "filled by build, a call of setup")]
    pub(super) fn new(frame_ns: u64) -> Result<Self, Failure> {
        let bad = || format!("a frame of {frame_ns} ns: from 1 ns to 2^62 ns (146 years)");
        let frame = Period::from_ns(frame_ns).ok_or_else(|| Failure::invalid(bad()))?;
        let (setup, built, remote) = (Exclusive::default(), OnceLock::new(), Control::default());
        Ok(Self { frame, setup, built, remote })
    }

    /// One more unit; its index.
    pub(super) fn add(&self, added: Added) -> Result<u32, Failure> {
        self.setup.with(|setup| {
            self.not_yet_built()?;
            let index = u32::try_from(setup.units.len())
                .map_err(|_| Failure::new(libc::E2BIG, "too many units"))?;
            setup.units.push(added);
            Ok(index)
        })
    }

    fn not_yet_built(&self) -> Result<(), Failure> {
        match self.built.get() {
            None => Ok(()),
            Some(_) => Err(Failure::new(libc::EBUSY, "the calendar is built already")),
        }
    }

    /// Checks all units and lays them out.
    pub(super) fn build(&self) -> Result<(), Failure> {
        self.setup.with(|setup| {
            self.not_yet_built()?;
            let built = Built::of(self.frame, &setup.units)?;
            // Nobody else is in here.
            let _first = self.built.set(built);
            Ok(())
        })
    }

    /// What was built.
    pub(super) fn built(&self) -> Result<&Built, Failure> {
        self.built.get().ok_or_else(|| Failure::invalid("the calendar is not built yet"))
    }
}

impl Built {
    fn of(frame: Period, units: &[Added]) -> Result<Self, Failure> {
        let builder =
            units.iter().fold(Builder::new(frame), |all, added| all.unit(added.unit.clone()));
        let plan = builder.build().map_err(|why| failure(&why))?;
        // Names are unique in a plan.
        let ranks: HashMap<&str, usize> =
            (0..plan.tasks()).map(|task| (plan.name(task), task)).collect();
        let places: HashMap<&str, (u64, u64)> = plan
            .units()
            .map(|(name, place)| (name, (place.ready_ns, place.ready_ns + place.budget_ns)))
            .collect();
        let rank = |task: &str| ranks.get(task).copied().unwrap_or(0);
        let place = |unit: &str| places.get(unit).copied().unwrap_or_default();
        let callbacks = callbacks(&plan, units, rank)?;
        let units_ns = units.len() as u64;
        let period = Period::ratio(frame.as_ns(), units_ns.clamp(1, frame.as_ns()));
        Ok(Self {
            units: units.iter().map(|unit| (rank(&unit.task), place(&unit.name))).collect(),
            callbacks,
            rooms: (0..plan.tasks()).map(|_| Room::new()).collect(),
            period: period.ok_or_else(|| Failure::invalid("a frame that is no period"))?,
            terminates: units.iter().any(|unit| unit.terminates),
            plan,
        })
    }

    /// The task of a unit.
    pub(super) fn task(&self, unit: u32) -> Result<usize, Failure> {
        self.units.get(unit as usize).map(|(task, _)| *task).ok_or(Failure::bare(libc::ENOENT))
    }

    /// The place of a unit.
    pub(super) fn place(&self, unit: u32) -> Result<(u64, u64), Failure> {
        self.units.get(unit as usize).map(|(_, place)| *place).ok_or(Failure::bare(libc::ENOENT))
    }

    /// The page of a unit's task; `None` in the moment in which a run empties it.
    pub(super) fn view(&self, unit: u32) -> Result<Option<View<'_>>, Failure> {
        Ok(self.rooms[self.task(unit)?].view())
    }
}

/// The body of each task: that of all of its units that give one.
fn callbacks(
    plan: &Plan,
    units: &[Added],
    rank: impl Fn(&str) -> usize,
) -> Result<Vec<Callback>, Failure> {
    let mut first: Vec<Option<(&str, Callback)>> = vec![None; plan.tasks()];
    for Added { name, task, callback, .. } in units {
        let Some(callback) = callback else { continue };
        match first[rank(task)].get_or_insert((name, *callback)) {
            (_, same) if same.is(callback) => {}
            (other, _) => {
                let text = format!(
                    "units {other:?} and {name:?} of task {task:?} have different functions to run"
                );
                return Err(Failure::invalid(text));
            }
        }
    }
    let named = first.into_iter().enumerate().map(|(task, body)| {
        let without = || format!("task {:?}: no function to run", plan.name(task));
        body.map(|(_, callback)| callback).ok_or_else(|| Failure::invalid(without()))
    });
    named.collect()
}
