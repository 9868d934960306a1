//! The releases of a supervisor: the units of a calendar at their places, and tasks by rank.
//!
//! For its loop, which only posts releases: the work is done in the processes. The ranks are the
//! tasks of the calendar, as they come in the frame, then the periodic ones.

use punctual_core::block::{PLACES_MAX, Places};
use punctual_core::calendar::{CalendarState, TaskProgress, UnitSlot};
use punctual_core::clock::Clock;
use punctual_core::cycle::{Ended, Observe};
use punctual_core::dispatch::TableState;
use punctual_core::executive::{Dispatch, Many, Schedule};
use punctual_core::releases::Releases;
use punctual_core::stop::StopRequest;
use punctual_core::time::{Instant, Period, Span};
use punctual_core::wait::Wait;

use crate::calendar::CalendarPlan;
use crate::duration::ns;
use crate::error::CalendarError;
use crate::periodic::{Plan, PlanStorage};
use crate::release_span::{ReleaseSpan, RunLength};
use crate::remote::{Limits, POST};

/// The time before a unit in which no other release is posted: one turn of the loop.
const TURNAROUND: Span = Span::from_us(2);

/// The units of a calendar and the periodic tasks beside them.
#[derive(Clone, Debug)]
pub(super) struct ReleasePlan {
    /// Each place a cycle of its own.
    units: Option<CalendarPlan>,
    tasks: Plan,
}

/// Storage for a run of a [`ReleasePlan`].
#[derive(Debug)]
pub(super) struct ReleaseStorage {
    units: Vec<TaskProgress>,
    tasks: PlanStorage,
}

impl ReleasePlan {
    /// The plan of these periodic tasks, and of a calendar whose tasks run in processes.
    ///
    /// # Errors
    /// A task has more places in a frame than its block; or a periodic one would never be released,
    /// as the units begin too close to each other.
    pub(super) fn new(units: Option<&CalendarPlan>, tasks: Plan) -> Result<Self, CalendarError> {
        let units = units.map(CalendarPlan::released).transpose()?;
        let plan = Self { units, tasks };
        for rank in 0..plan.units() {
            let count = plan.places(rank).count();
            if count > PLACES_MAX {
                return Err(CalendarError::Places(plan.name(rank).to_owned(), count));
            }
        }
        let (post_ns, turn_ns) = (ns(POST), TURNAROUND.as_ns().unsigned_abs());
        match plan.longest_distance_ns() {
            Some(longest_ns) if longest_ns < post_ns + turn_ns && plan.tasks.tasks() > 0 => {
                let name = plan.tasks.name(0).to_owned();
                Err(CalendarError::NoGap(name, post_ns, longest_ns.saturating_sub(turn_ns)))
            }
            _ => Ok(plan),
        }
    }

    /// The longest time from the start of one place to that of the next, ns; `None` without any.
    fn longest_distance_ns(&self) -> Option<u64> {
        let calendar = self.units.as_ref()?;
        let starts: Vec<u64> = calendar.units().map(|(_, place)| place.ready_ns).collect();
        let around = calendar.frame().as_ns() - starts.last()? + starts.first()?;
        Some(starts.windows(2).map(|pair| pair[1] - pair[0]).fold(around, u64::max))
    }

    /// The number of the first ranks that are tasks of the calendar.
    pub(super) fn units(&self) -> usize {
        self.units.as_ref().map_or(0, CalendarPlan::tasks)
    }

    /// The number of ranks.
    pub(super) fn ranks(&self) -> usize {
        self.units() + self.tasks.tasks()
    }

    /// The periodic tasks.
    pub(super) fn tasks(&self) -> &Plan {
        &self.tasks
    }

    /// The calendar, where the task of this rank is one of it.
    fn unit(&self, rank: usize) -> Option<&CalendarPlan> {
        self.units.as_ref().filter(|plan| rank < plan.tasks())
    }

    /// The name of the task of this rank.
    pub(super) fn name(&self, rank: usize) -> &str {
        match self.unit(rank) {
            Some(plan) => plan.name(rank),
            None => self.tasks.name(rank - self.units()),
        }
    }

    /// The period of the task of this rank; of one that is released at places of a frame, the frame
    /// over their number.
    pub(super) fn period(&self, rank: usize) -> Period {
        match self.unit(rank) {
            Some(plan) => plan.period(rank),
            None => self.tasks.period(rank - self.units()),
        }
    }

    /// The phase of the task of this rank, or its first place in the frame, ns after the epoch.
    pub(super) fn phase_ns(&self, rank: usize) -> u64 {
        match self.unit(rank) {
            Some(plan) => plan.ready_ns(rank).unwrap_or(0),
            None => self.tasks.phase_ns(rank - self.units()),
        }
    }

    /// A run of it that takes `duration`.
    pub(super) fn length(&self, duration: Option<Span>) -> RunLength {
        let units = self.units.as_ref();
        let grids = self.tasks.grids().chain(units.and_then(CalendarPlan::grid));
        RunLength::new(duration, units.map(CalendarPlan::frame), grids)
    }

    /// The shortest period.
    pub(super) fn shortest(&self) -> Option<Period> {
        (0..self.ranks()).map(|rank| self.period(rank)).min()
    }

    /// The longest time from one release to the next of any task, ns: places of a calendar may all
    /// lie at the beginning of its frame. 0 without tasks.
    pub(super) fn longest_rest_ns(&self) -> u64 {
        let periods = (0..self.tasks.tasks()).map(|rank| self.tasks.period(rank).as_ns());
        periods.chain(self.longest_distance_ns()).min().unwrap_or(0)
    }

    /// The places of the task of this rank in a frame, in their order; none of a periodic one.
    fn places(&self, rank: usize) -> impl Iterator<Item = &UnitSlot> {
        let places = self.unit(rank).into_iter().flat_map(CalendarPlan::units);
        places.map(|(_, place)| place).filter(move |place| place.task as usize == rank)
    }

    /// The releases of the task of this rank, with the grid at `epoch`: evenly, and where it has
    /// several places in a frame, at those.
    pub(super) fn releases(&self, rank: usize, epoch: Instant) -> (Releases, Places) {
        let first_ns = self.phase_ns(rank);
        let first = Instant::from_ns(epoch.as_ns().saturating_add(first_ns));
        let releases = Releases::new(first, self.period(rank));
        let offsets_ns: Vec<u64> =
            self.places(rank).map(|place| place.ready_ns - first_ns).collect();
        let places = match offsets_ns.len() {
            0 | 1 => Places::EVEN,
            // Whoever made this has counted them, and a calendar has them in their order.
            _ => Places::new(&releases, &offsets_ns).unwrap_or_default(),
        };
        (releases, places)
    }

    /// The limits at each place of the task of this rank; none of a periodic one.
    pub(super) fn limits(&self, rank: usize) -> Vec<Limits> {
        let limits = |place: &UnitSlot| Limits {
            start_ns: place.start_ns,
            budget_ns: place.budget_ns,
            deadline_ns: place.deadline_ns - place.ready_ns,
        };
        self.places(rank).map(limits).collect()
    }

    /// Storage for a run.
    pub(super) fn storage(&self) -> ReleaseStorage {
        let units = self.units.as_ref().map(CalendarPlan::storage).unwrap_or_default();
        ReleaseStorage { units, tasks: self.tasks.storage() }
    }

    /// Has `many` release all that is due in the span, with the grid at `epoch`.
    pub(super) fn run<C: Clock, W: Wait, D: Dispatch, O: Observe>(
        &self,
        many: &mut Many<C, W, D, O>,
        storage: &mut ReleaseStorage,
        (epoch, ReleaseSpan { from, end }): (Instant, ReleaseSpan),
        stop: &impl StopRequest,
    ) -> Ended {
        let table = self.tasks.table(epoch);
        let Some(mut tasks) = TableState::begin(&table, storage.tasks.lend(), from) else {
            return Ended::Stopped;
        };
        let Some(plan) = &self.units else { return many.run(&table, &mut tasks, end, stop) };
        let calendar = plan.calendar(epoch);
        let Some(mut units) = CalendarState::begin(&calendar, &mut storage.units, from) else {
            return Ended::Stopped;
        };
        let schedule = Schedule::of_calendar(&calendar, &mut units);
        let mut schedule = match self.tasks.tasks() {
            0 => schedule,
            _ => schedule.with_table(&table, &mut tasks, TURNAROUND),
        };
        many.obey(&mut schedule, end, stop)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::calendar::{CalendarBuilder, Unit};
    use crate::periodic::{Periodic, Task};

    const fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    fn frame() -> CalendarBuilder {
        CalendarBuilder::new(Period::from_ns(4_000_000).expect("in range"))
    }

    #[test]
    fn places_of_a_task_are_cycles_of_its_process_and_periodic_tasks_rank_behind() {
        let plan = frame()
            .unit(Unit::new("read", us(100)).at(us(500)).deadline(us(300)))
            .unit(Unit::new("write", us(200)).at(us(1_500)).of("read").start_within(us(50)))
            .unit(Unit::new("log", us(300)).at(us(2_000)))
            .build()
            .expect("apart");
        let tasks = Periodic::new().task(Task::every("slow", Period::hz(100).expect("in range")));
        let plan = ReleasePlan::new(Some(&plan), tasks.build().expect("fine")).expect("fine");
        assert_eq!((plan.units(), plan.ranks()), (2, 3));
        let names: Vec<&str> = (0..3).map(|rank| plan.name(rank)).collect();
        assert_eq!(names, ["read", "log", "slow"]);
        assert_eq!((plan.phase_ns(0), plan.period(0).as_ns()), (500_000, 2_000_000));
        let epoch = Instant::from_ns(1_000);
        let (even, places) = plan.releases(0, epoch);
        assert_eq!((even.first().as_ns(), places.offsets_ns()), (501_000, &[0, 1_000_000][..]));
        assert_eq!(plan.releases(1, epoch).1, Places::EVEN, "one place a frame");
        let [read, write] = plan.limits(0)[..] else { panic!("two") };
        assert_eq!((read.deadline_ns, read.budget_ns, read.start_ns), (300_000, 100_000, u64::MAX));
        assert_eq!((write.deadline_ns, write.start_ns), (200_000, 50_000));
        assert!(plan.limits(2).is_empty());
        // From the last place to the first one of the next frame of 4 ms.
        assert_eq!(plan.longest_rest_ns(), 2_500_000);
    }

    #[test]
    fn more_places_than_a_block_has_and_units_that_leave_no_time_are_refused() {
        let many = |n: u64| {
            let unit = |at| Unit::new(format!("u{at}"), us(10)).at(us(at * 20)).of("task");
            (0..n).map(unit).fold(frame(), CalendarBuilder::unit).build().expect("apart")
        };
        let none = || Periodic::new().build().expect("nothing");
        assert!(ReleasePlan::new(Some(&many(64)), none()).is_ok());
        let why = ReleasePlan::new(Some(&many(65)), none()).expect_err("one too many").to_string();
        assert_eq!(
            why,
            "task \"task\": its units have 65 places in the frame; the process of a task has at \
             most 64: give it a longer period or a shorter frame"
        );
        let period = Period::from_ns(6_000).expect("in range");
        let close = CalendarBuilder::new(period).unit(Unit::new("all", us(6))).build();
        let slow = Periodic::new().task(Task::every("slow", Period::hz(100).expect("in range")));
        let plan = ReleasePlan::new(Some(&close.expect("fits")), slow.build().expect("fine"));
        let why = plan.expect_err("never").to_string();
        assert!(why.contains("task \"slow\": a budget of 5.00 µs fits nowhere"), "{why}");
    }
}
