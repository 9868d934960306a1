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
//! started only where its budget fits before the next unit. `punctual::Calendar` adds the bodies.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use punctual_core::calendar::{CalendarState, TaskProgress, UNITS_MAX, UnitSlot, UnitTable};
use punctual_core::dispatch::TableState;
use punctual_core::executive::Schedule;
use punctual_core::table::{OnOverrun, Table};
use punctual_core::time::{Instant, Period, Span};

use crate::budgets::ROUNDING;
use crate::duration::ns;
use crate::error::{CalendarError, LateUnit, UnitPlace};
use crate::offline::{Job, LateJob, NoPlaces, Offline};
use crate::periodic;

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
    /// The first setting that cannot be, with the names of its units.
    ///
    /// # Real-time: setup only
    pub fn build(&self) -> Result<CalendarPlan, CalendarError> {
        let names = self.check()?;
        let unplaced =
            self.units.iter().find(|unit| unit.period_ns.is_some() || !unit.excludes.is_empty());
        if let Some(unit) = unplaced {
            return Err(CalendarError::Unscheduled(unit.name.clone()));
        }
        let ready = ready_instants(&self.units, &names, self.frame.as_ns())?;
        let mut order: Vec<(u64, usize)> = ready.into_iter().zip(0..).collect();
        order.sort_unstable();
        for pair in order.windows(2) {
            let [first, second] = [pair[0], pair[1]].map(|(at, i)| placed(&self.units[i], at));
            if first.to_ns > second.from_ns {
                return Err(CalendarError::Overlap(first, second));
            }
        }
        self.check_policies()?;
        self.check_turns(&order)?;
        Ok(CalendarPlan::of(self.frame, &self.units, &order))
    }

    /// The same units with places that keep to all that is asked, found beforehand (Maruti's
    /// offline scheduler): each runs once in its period ([`Unit::every`]), not before its
    /// [`Unit::at`] and not later than its deadline, behind those that it is [`Unit::after`], and
    /// no task has a unit between two of one that excludes it ([`Unit::excludes`]). Units are not
    /// interrupted and never overlap. Further runs of a unit are units of their own, "read 2"
    /// behind "read", of further cycles of the same task, whose units all have one period.
    ///
    /// Of few units it finds places wherever there are some; of many it may have to give up, and
    /// says that it does not know. It takes seconds at most.
    ///
    /// # Errors
    ///
    /// The settings that cannot be met, with the names of their units, or that no places were
    /// found.
    ///
    /// # Real-time: setup only
    pub fn schedule(&self) -> Result<Self, CalendarError> {
        let names = self.check()?;
        if let Some(unit) = self.units.iter().find(|unit| unit.turn.count > 1) {
            return Err(CalendarError::Scheduled(unit.name.clone()));
        }
        let runs = self.runs(&names)?;
        let jobs: Vec<Job> = runs.iter().map(|run| run.job.clone()).collect();
        let excluded = self.excluded(&runs)?;
        let starts = Offline::new(&jobs, &excluded).and_then(|offline| offline.places());
        let starts = starts.map_err(|why| self.explained(&runs, why))?;
        let mut scheduled = Self::new(self.frame);
        for (run, start_ns) in runs.into_iter().zip(starts) {
            let deadline_ns = run.job.deadline_ns - start_ns;
            scheduled.units.push(Unit {
                task: Some(self.units[run.unit].task().to_owned()),
                place: Place::At(start_ns),
                deadline_ns: Some(deadline_ns),
                period_ns: None,
                excludes: Vec::new(),
                name: run.name,
                turn: run.turn,
                ..self.units[run.unit].clone()
            });
        }
        Ok(scheduled)
    }

    /// Each unit of each of its periods.
    fn runs(&self, names: &HashMap<&str, usize>) -> Result<Vec<UnitRun>, CalendarError> {
        let frame_ns = self.frame.as_ns();
        let mut first_runs = Vec::with_capacity(self.units.len());
        let mut count: usize = 0;
        for unit in &self.units {
            let period_ns = unit.period_ns.unwrap_or(frame_ns);
            if period_ns == 0 || !frame_ns.is_multiple_of(period_ns) {
                return Err(CalendarError::Period(unit.name.clone(), period_ns, frame_ns));
            }
            first_runs.push(count);
            let runs = usize::try_from(frame_ns / period_ns).unwrap_or(usize::MAX);
            count = count.saturating_add(runs);
        }
        if count > UNITS_MAX {
            return Err(CalendarError::TooMany(count));
        }
        let mut tasks: HashMap<&str, (usize, &Unit)> = HashMap::new();
        let mut runs: Vec<UnitRun> = Vec::with_capacity(count);
        for unit in &self.units {
            let period_ns = unit.period_ns.unwrap_or(frame_ns);
            let (offset_ns, before) = match &unit.place {
                Place::At(offset_ns) => (*offset_ns, None),
                Place::After(name, gap_ns) => {
                    let unknown = || CalendarError::Unknown(unit.name.clone(), name.clone());
                    let before = *names.get(name.as_str()).ok_or_else(unknown)?;
                    if self.units[before].period_ns.unwrap_or(frame_ns) != period_ns {
                        return Err(CalendarError::Rates(unit.name.clone(), name.clone()));
                    }
                    (0, Some((first_runs[before], *gap_ns)))
                }
            };
            if offset_ns >= period_ns {
                return Err(CalendarError::Offset(unit.name.clone(), offset_ns, period_ns));
            }
            let next = tasks.len();
            let (task, first) = *tasks.entry(unit.task()).or_insert((next, unit));
            if first.period_ns.unwrap_or(frame_ns) != period_ns {
                return Err(CalendarError::Rates(unit.name.clone(), first.name.clone()));
            }
            let left_ns = period_ns - offset_ns;
            if let Some(deadline_ns) = unit.deadline_ns.filter(|&deadline_ns| deadline_ns > left_ns)
            {
                let name = unit.name.clone();
                return Err(CalendarError::Deadline(name, deadline_ns, unit.budget_ns, left_ns));
            }
            for number in 0..frame_ns / period_ns {
                let ready_ns = (number * period_ns).saturating_add(offset_ns);
                let due_ns = match unit.deadline_ns {
                    Some(deadline_ns) => ready_ns.saturating_add(deadline_ns),
                    None => (number + 1) * period_ns,
                };
                let run = usize::try_from(number).unwrap_or(usize::MAX);
                let after = before.map(|(first, gap_ns)| (first + run, gap_ns));
                runs.push(UnitRun {
                    name: match number {
                        0 => unit.name.clone(),
                        _ => format!("{} {}", unit.name, number + 1),
                    },
                    unit: names[unit.name.as_str()],
                    task,
                    turn: Turn {
                        number: u32::try_from(number).unwrap_or(u32::MAX),
                        count: u32::try_from(frame_ns / period_ns).unwrap_or(u32::MAX),
                    },
                    job: Job {
                        ready_ns,
                        deadline_ns: due_ns,
                        budget_ns: unit.budget_ns,
                        after: after.into_iter().collect(),
                        part_of: 0,
                    },
                });
            }
        }
        let mut taken = HashSet::with_capacity(count);
        if let Some(run) = runs.iter().find(|run| !taken.insert(run.name.as_str())) {
            return Err(CalendarError::RunName(run.name.clone()));
        }
        drop(taken);
        // Units of a task in the same period are parts of one run of it.
        let mut parts: HashMap<(usize, u32), usize> = HashMap::new();
        for run in &mut runs {
            let next = parts.len();
            let key = (run.task, run.turn.number);
            run.job.part_of = *parts.entry(key).or_insert(next);
        }
        Ok(runs)
    }

    /// Pairs of runs of tasks of which one excludes the other, where they can meet: a run lies
    /// within its period, and only one of several parts can be left half done.
    fn excluded(&self, runs: &[UnitRun]) -> Result<Vec<(usize, usize)>, CalendarError> {
        let frame_ns = self.frame.as_ns();
        let mut paces: HashMap<&str, TaskPace> = HashMap::new();
        for run in runs {
            let pace = paces.entry(self.units[run.unit].task()).or_insert_with(|| TaskPace {
                period_ns: frame_ns / u64::from(run.turn.count),
                units: 0,
                runs: Vec::new(),
            });
            pace.units += usize::from(run.turn.number == 0);
            // Those of each unit come in the order of their periods.
            if pace.runs.len() == run.turn.number as usize {
                pace.runs.push(run.job.part_of);
            }
        }
        let mut pairs = HashSet::new();
        for unit in &self.units {
            let own = &paces[unit.task()];
            for other in &unit.excludes {
                let unknown = || CalendarError::Excluded(unit.name.clone(), other.clone());
                let others = paces.get(other.as_str()).ok_or_else(unknown)?;
                if other == unit.task() || own.units.max(others.units) < 2 {
                    continue;
                }
                for (number, &one) in (0..).zip(&own.runs) {
                    let [from_ns, to_ns] = [number, number + 1].map(|at: u64| at * own.period_ns);
                    let first = usize::try_from(from_ns / others.period_ns).unwrap_or(usize::MAX);
                    let end = usize::try_from(to_ns.div_ceil(others.period_ns));
                    let met = others.runs.get(first..end.unwrap_or(usize::MAX));
                    pairs
                        .extend(met.into_iter().flatten().map(|&two| (one.min(two), one.max(two))));
                }
            }
        }
        let mut pairs: Vec<(usize, usize)> = pairs.into_iter().collect();
        pairs.sort_unstable();
        Ok(pairs)
    }

    /// The error for units without places, with their names.
    fn explained(&self, runs: &[UnitRun], why: NoPlaces) -> CalendarError {
        let named = |jobs: Vec<usize>| jobs.into_iter().map(|job| runs[job].name.clone()).collect();
        let late = |late: LateJob| LateUnit {
            place: UnitPlace {
                name: runs[late.job].name.clone(),
                from_ns: late.end_ns.saturating_sub(runs[late.job].job.budget_ns),
                to_ns: late.end_ns,
            },
            deadline_ns: runs[late.job].job.deadline_ns,
            behind: late.behind.map(|job| runs[job].name.clone()),
            is_kept_out: late.is_kept_out,
        };
        match why {
            NoPlaces::Circle(job) => CalendarError::Circle(self.units[runs[job].unit].name.clone()),
            NoPlaces::Chain { jobs, needs_ns, has_ns } => {
                CalendarError::Chain { units: named(jobs), needs_ns, has_ns }
            }
            NoPlaces::Demand { jobs, from_ns, to_ns, needs_ns } => {
                CalendarError::Demand { units: named(jobs), from_ns, to_ns, needs_ns }
            }
            NoPlaces::NoOrder(job) => CalendarError::NoOrder(late(job)),
            NoPlaces::Unknown { tried, late: job } => {
                CalendarError::OrderUnknown { tried, late: late(job) }
            }
        }
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

    /// All units of a task are of its cycles in their order: one that is added to a scheduled
    /// calendar is not.
    fn check_turns(&self, order: &[(u64, usize)]) -> Result<(), CalendarError> {
        let mut last: HashMap<&str, &Unit> = HashMap::new();
        for &(_, index) in order {
            let unit = &self.units[index];
            let Some(before) = last.insert(unit.task(), unit) else { continue };
            if before.turn.count != unit.turn.count || before.turn.number > unit.turn.number {
                return Err(CalendarError::Scheduled(unit.name.clone()));
            }
        }
        Ok(())
    }

    /// Checks that all units of a task have one policy, and one that a fixed place allows.
    fn check_policies(&self) -> Result<(), CalendarError> {
        let mut by_task: HashMap<&str, &Unit> = HashMap::new();
        for unit in &self.units {
            let Some(policy) = unit.policy else { continue };
            if matches!(policy, OnOverrun::Delay | OnOverrun::Burst(_)) {
                return Err(CalendarError::OnOverrun(unit.name.clone(), policy));
            }
            let first = by_task.entry(unit.task()).or_insert(unit);
            if first.policy != Some(policy) {
                let [earlier, later] = [first.name.clone(), unit.name.clone()];
                return Err(CalendarError::Policies(unit.task().to_owned(), earlier, later));
            }
        }
        Ok(())
    }
}

/// The beginning of a unit's place.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// This many nanoseconds after the start of the frame.
    At(u64),
    /// This many nanoseconds after the end of the named unit's place.
    After(String, u64),
}

/// A task's period, ns, the number of its units, and the numbers of its runs.
struct TaskPace {
    period_ns: u64,
    units: usize,
    runs: Vec<usize>,
}

/// A unit in one of its periods.
struct UnitRun {
    name: String,
    /// Its index.
    unit: usize,
    /// The number of its task.
    task: usize,
    turn: Turn,
    job: Job,
}

/// An elemental unit: a place in the frame, and the task that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    name: String,
    task: Option<String>,
    place: Place,
    budget_ns: u64,
    deadline_ns: Option<u64>,
    start_ns: Option<u64>,
    policy: Option<OnOverrun>,
    period_ns: Option<u64>,
    excludes: Vec<String>,
    turn: Turn,
}

/// The cycle of its task in the frame that a unit belongs to, and the number of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Turn {
    number: u32,
    count: u32,
}

impl Unit {
    /// A unit of a name that no other has, ready at the start of the frame, of a task of the same
    /// name, with its budget as deadline and [`OnOverrun::Skip`]. The budget is its longest
    /// execution, above 0.
    ///
    /// # Real-time: setup only
    pub fn new(name: impl Into<String>, budget: Duration) -> Self {
        Self {
            name: name.into(),
            task: None,
            place: Place::At(0),
            budget_ns: ns(budget),
            deadline_ns: None,
            start_ns: None,
            policy: None,
            period_ns: None,
            excludes: Vec::new(),
            turn: Turn { number: 0, count: 1 },
        }
    }

    /// Sets its period, of which the frame is a whole multiple [default: the frame]. Its places are
    /// made by [`CalendarBuilder::schedule`]: [`Unit::at`] is then its earliest start in its
    /// period, [`Unit::after`] the unit before it there, and the deadline counts from that earliest
    /// start, of a unit that comes after another from the start of the period; without one it is
    /// the end of the period.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn every(mut self, period: Duration) -> Self {
        self.period_ns = Some(ns(period));
        self
    }

    /// Lets no unit of this other task be placed between two units of its own task that are of the
    /// same period: for what both use and neither may leave half done. For
    /// [`CalendarBuilder::schedule`].
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn excludes(mut self, task: impl Into<String>) -> Self {
        self.excludes.push(task.into());
        self
    }

    /// Sets the instant at which it is ready, after the start of the frame.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn at(mut self, offset: Duration) -> Self {
        self.place = Place::At(ns(offset));
        self
    }

    /// Sets it to be ready this long after the place of another unit ends: for orders such as read,
    /// compute, write.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn after(mut self, unit: impl Into<String>, gap: Duration) -> Self {
        self.place = Place::After(unit.into(), ns(gap));
        self
    }

    /// Makes it a unit of the task of this name, which may have several in a frame: one that breaks
    /// off goes on in the next.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn of(mut self, task: impl Into<String>) -> Self {
        self.task = Some(task.into());
        self
    }

    /// Sets the time from when it is ready to its latest finish: at least the budget, at most the
    /// frame. A unit that could not start by then is missed. Where places are made for it, see
    /// [`Unit::every`].
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline_ns = Some(ns(deadline));
        self
    }

    /// Sets the latest start, after it is ready, that is not counted as late.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn start_within(mut self, limit: Duration) -> Self {
        self.start_ns = Some(ns(limit));
        self
    }

    /// Sets the effect of a time-out on its task: [`OnOverrun::Skip`], [`OnOverrun::Terminate`] or
    /// [`OnOverrun::Stop`]. All units of a task that set one set the same.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn on_overrun(mut self, then: OnOverrun) -> Self {
        self.policy = Some(then);
        self
    }

    /// Returns true where its task is to be terminated at a time-out.
    ///
    /// # Real-time: setup only
    pub fn terminates(&self) -> bool {
        self.policy == Some(OnOverrun::Terminate)
    }

    /// The name of the task that it belongs to.
    ///
    /// # Real-time: setup only
    pub fn task(&self) -> &str {
        self.task.as_deref().unwrap_or(&self.name)
    }
}

/// The instants at which units are ready, ns after the start of the frame.
fn ready_instants(
    units: &[Unit],
    names: &HashMap<&str, usize>,
    frame_ns: u64,
) -> Result<Vec<u64>, CalendarError> {
    let mut ready: Vec<Option<u64>> = vec![None; units.len()];
    let mut chain = Vec::new();
    for first in 0..units.len() {
        let mut at = first;
        // Down to one whose place is known, then back up.
        let mut end_ns = loop {
            if let Some(ready_ns) = ready[at] {
                break ready_ns.saturating_add(units[at].budget_ns);
            }
            chain.push(at);
            match &units[at].place {
                Place::At(_) => break 0,
                Place::After(..) if chain.len() > units.len() => {
                    return Err(CalendarError::Circle(units[first].name.clone()));
                }
                Place::After(before, _) => {
                    let unknown = || CalendarError::Unknown(units[at].name.clone(), before.clone());
                    at = *names.get(before.as_str()).ok_or_else(unknown)?;
                }
            }
        };
        while let Some(index) = chain.pop() {
            let ready_ns = match units[index].place {
                Place::At(ready_ns) => ready_ns,
                Place::After(_, gap_ns) => end_ns.saturating_add(gap_ns),
            };
            ready[index] = Some(ready_ns);
            end_ns = ready_ns.saturating_add(units[index].budget_ns);
        }
    }
    let ready: Vec<u64> = ready.into_iter().flatten().collect();
    for (unit, &from_ns) in units.iter().zip(&ready) {
        let placed = placed(unit, from_ns);
        if placed.to_ns > frame_ns {
            return Err(CalendarError::Outside(placed, frame_ns));
        }
    }
    Ok(ready)
}

/// A unit and its place.
fn placed(unit: &Unit, from_ns: u64) -> UnitPlace {
    let to_ns = from_ns.saturating_add(unit.budget_ns);
    UnitPlace { name: unit.name.clone(), from_ns, to_ns }
}

/// The calendar of an executive: units at their places, each with its task. Never changes once
/// made.
#[derive(Clone, Debug, PartialEq)]
pub struct CalendarPlan {
    frame: Period,
    /// The names of the tasks, by rank.
    names: Vec<String>,
    policies: Vec<OnOverrun>,
    /// The names of the units, in the order of the frame.
    units: Vec<String>,
    places: Vec<UnitSlot>,
}

impl CalendarPlan {
    /// Lays out units that were checked: `order` are their indices and places in the order of the
    /// frame. Tasks are numbered as they come in it.
    fn of(frame: Period, units: &[Unit], order: &[(u64, usize)]) -> Self {
        let mut numbers = HashMap::new();
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
            plan.places.push(UnitSlot {
                ready_ns,
                budget_ns: unit.budget_ns,
                deadline_ns: ready_ns + unit.deadline_ns.unwrap_or(unit.budget_ns),
                start_ns: unit.start_ns.unwrap_or(u64::MAX),
                task: u32::try_from(task).unwrap_or(u32::MAX),
                turn: unit.turn.number,
                turns: unit.turn.count,
                period: Period::ratio(frame.as_ns(), u64::from(unit.turn.count)).unwrap_or(frame),
            });
        }
        plan
    }

    /// The same places for tasks that run in processes of their own, which the loop only releases:
    /// each place is a cycle of its task, whose policy the loop leaves to whoever watches it.
    ///
    /// # Errors
    ///
    /// More places of a task than there are numbers for them.
    pub(crate) fn released(&self) -> Result<Self, CalendarError> {
        let mut counts: Vec<u32> = vec![0; self.names.len()];
        let mut plan = self.clone();
        plan.policies.fill(OnOverrun::Skip);
        for place in &mut plan.places {
            let count = &mut counts[place.task as usize];
            place.turn = *count;
            *count += 1;
        }
        for place in &mut plan.places {
            let task = place.task as usize;
            place.turns = counts[task];
            let period = Period::ratio(plan.frame.as_ns(), u64::from(place.turns));
            let too_many =
                || CalendarError::Places(self.names[task].clone(), counts[task] as usize);
            place.period = period.ok_or_else(too_many)?;
        }
        Ok(plan)
    }

    /// The calendar whose frame 0 starts at `epoch`; at the zero of CLOCK_MONOTONIC, separate
    /// processes agree on all places without talking.
    ///
    /// # Panics
    ///
    /// Never: the builder made what the calendar checks.
    ///
    /// # Real-time: setup only
    pub fn calendar(&self, epoch: Instant) -> UnitTable<'_> {
        UnitTable::new(epoch, self.frame, &self.places, &self.policies)
            .expect("the builder makes whole calendars")
    }

    /// Storage for a run of this plan.
    ///
    /// # Real-time: setup only
    pub fn storage(&self) -> Vec<TaskProgress> {
        vec![TaskProgress::default(); self.names.len()]
    }

    /// The period of the frame.
    ///
    /// # Real-time: setup only
    pub fn frame(&self) -> Period {
        self.frame
    }

    /// The frame and the place of the first unit in it, ns; `None` without units.
    ///
    /// # Real-time: setup only
    pub fn grid(&self) -> Option<(Period, u64)> {
        self.units().next().map(|(_, first)| (self.frame, first.ready_ns))
    }

    /// The number of tasks.
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
    pub fn units(&self) -> impl ExactSizeIterator<Item = (&str, &UnitSlot)> {
        self.units.iter().map(String::as_str).zip(&self.places)
    }

    /// The instant at which the first unit of this task is ready, ns after the start of the frame;
    /// `None` for no such task.
    ///
    /// # Real-time: setup only
    pub fn ready_ns(&self, task: usize) -> Option<u64> {
        let is_of = |place: &&UnitSlot| place.task as usize == task;
        self.places.iter().find(is_of).map(|place| place.ready_ns)
    }

    /// The time from one cycle of this task to the next: the frame, where it has one in that.
    ///
    /// # Real-time: setup only
    pub fn period(&self, task: usize) -> Period {
        let own = self.places.iter().find(|place| place.task as usize == task);
        own.map_or(self.frame, |place| place.period)
    }

    /// The share of the CPU that all budgets take.
    ///
    /// # Real-time: setup only
    pub fn load(&self) -> f64 {
        (0..self.names.len()).map(|task| self.share(task)).sum()
    }

    /// The share of the CPU that the budgets of this task's units take.
    ///
    /// # Real-time: setup only
    pub fn share(&self, task: usize) -> f64 {
        self.budgets_ns(task) as f64 / self.frame.as_ns() as f64
    }

    /// The budgets of this task's units in a frame, ns.
    ///
    /// # Real-time: setup only
    pub fn budgets_ns(&self, task: usize) -> u64 {
        let own = self.places.iter().filter(|place| place.task as usize == task);
        own.map(|place| place.budget_ns).fold(0, u64::saturating_add)
    }

    /// The longest time between two units, ns: that from the last one to the first one of the next
    /// frame counts too.
    ///
    /// # Real-time: setup only
    pub fn longest_gap_ns(&self) -> u64 {
        let end_ns = |place: &UnitSlot| place.ready_ns + place.budget_ns;
        let between = self.places.windows(2).map(|pair| pair[1].ready_ns - end_ns(&pair[0]));
        let around = match (self.places.first(), self.places.last()) {
            (Some(first), Some(last)) => self.frame.as_ns() - end_ns(last) + first.ready_ns,
            _ => 0,
        };
        between.fold(around, u64::max)
    }
}

/// The default time before a unit in which nothing else runs: for one turn of the loop and the
/// start of a wait.
const GAP: Span = Span::from_us(2);

/// A calendar and periodic tasks that go together.
#[derive(Clone, Copy, Debug)]
pub struct Combination<'p> {
    calendar: &'p CalendarPlan,
    periodic: &'p periodic::Plan,
    gap: Span,
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
        Self::with_gap(calendar, periodic, GAP)
    }

    /// As [`Combination::new`], with this time before each unit in which nothing else runs, 0 at
    /// least.
    ///
    /// # Errors
    ///
    /// As [`Combination::new`].
    ///
    /// # Real-time: setup only
    pub fn with_gap(
        calendar: &'p CalendarPlan,
        periodic: &'p periodic::Plan,
        gap: Span,
    ) -> Result<Self, CalendarError> {
        if gap < Span::ZERO {
            return Err(CalendarError::Gap(gap.as_ns()));
        }
        let longest_ns = calendar.longest_gap_ns().saturating_sub(gap.as_ns().unsigned_abs());
        let taken: HashSet<&str> = (0..calendar.tasks()).map(|task| calendar.name(task)).collect();
        for rank in 0..periodic.tasks() {
            let name = || periodic.name(rank).to_owned();
            match periodic.budget_ns(rank) {
                None => return Err(CalendarError::NoBudget(name())),
                Some(ns) if ns > longest_ns => {
                    return Err(CalendarError::NoGap(name(), ns, longest_ns));
                }
                Some(_) => {}
            }
            if taken.contains(periodic.name(rank)) {
                return Err(CalendarError::Shared(name()));
            }
        }
        let load = calendar.load() + periodic.load();
        if load > 1.0 + ROUNDING {
            return Err(CalendarError::Overload(load, None));
        }
        Ok(Self { calendar, periodic, gap })
    }

    /// The time before each unit in which nothing else runs.
    ///
    /// # Real-time: setup only
    pub fn gap(&self) -> Span {
        self.gap
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
        Schedule::of_calendar(calendar, units).with_table(table, tasks, self.gap)
    }
}

#[cfg(test)]
mod tests {
    //! Refusals, and the layout of a calendar.

    use super::*;
    use crate::periodic::{Period, Periodic, Task};
    use punctual_core::time::{Instant, Span};
    use std::time::Duration;

    fn frame(ns: u64) -> Period {
        Period::from_ns(ns).expect("positive")
    }

    fn said(calendar: &CalendarBuilder) -> String {
        calendar.build().expect_err("refused").to_string()
    }

    fn of(units: impl IntoIterator<Item = Unit>) -> CalendarBuilder {
        units.into_iter().fold(CalendarBuilder::new(frame(1_000)), CalendarBuilder::unit)
    }

    #[test]
    fn each_refusal_names_what_it_is_about() {
        assert_eq!(said(&of([])), "no unit was given: a calendar needs at least one");
        assert_eq!(
            said(&of([Unit::new("", Duration::from_nanos(1))])),
            "a unit's name must not be empty"
        );
        assert_eq!(
            said(&of([Unit::new("a", Duration::ZERO)])),
            "unit \"a\": budget must be greater than 0"
        );
        let twice = of([
            Unit::new("a", Duration::from_nanos(1)),
            Unit::new("a", Duration::from_nanos(1)).at(Duration::from_nanos(5)),
        ]);
        assert_eq!(said(&twice), "two units are named \"a\"");
        let outside = of([Unit::new("a", Duration::from_nanos(101)).at(Duration::from_nanos(900))]);
        assert_eq!(
            said(&outside),
            "unit \"a\" at 900 to 1001 ns must lie within the frame of 1000 ns"
        );
        let far = of([Unit::new("a", Duration::from_nanos(1)).at(Duration::MAX)]);
        assert!(said(&far).ends_with("must lie within the frame of 1000 ns"));
        let before =
            of([Unit::new("a", Duration::from_nanos(100)).deadline(Duration::from_nanos(99))]);
        let deadline =
            "from its budget of 100 ns to 1000 ns, the end of its frame or period (got 99 ns)";
        assert!(said(&before).contains(deadline), "{}", said(&before));
        assert!(
            said(&of([
                Unit::new("a", Duration::from_nanos(100)).deadline(Duration::from_nanos(1_001))
            ]))
            .contains("1001 ns")
        );
        let over = of([
            Unit::new("b", Duration::from_nanos(100)).at(Duration::from_nanos(250)),
            Unit::new("a", Duration::from_nanos(251)),
        ]);
        assert_eq!(
            said(&over),
            "unit \"a\" at 0 to 251 ns and unit \"b\" at 250 to 350 ns overlap"
        );
        let unknown = of([Unit::new("a", Duration::from_nanos(1)).after("b", Duration::ZERO)]);
        assert_eq!(said(&unknown), "unit \"a\" is after \"b\", and no unit has that name");
        let circle = of([
            Unit::new("a", Duration::from_nanos(1)).after("b", Duration::ZERO),
            Unit::new("b", Duration::from_nanos(1)).after("a", Duration::ZERO),
        ]);
        assert_eq!(said(&circle), "unit \"a\" is after itself");
        assert!(
            said(&of([Unit::new("a", Duration::from_nanos(1)).on_overrun(OnOverrun::Delay)]))
                .contains("would move its place")
        );
        let two = |one, other| {
            let second = Unit::new("b", Duration::from_nanos(1))
                .at(Duration::from_nanos(5))
                .of("t")
                .on_overrun(other);
            of([Unit::new("a", Duration::from_nanos(1)).of("t").on_overrun(one), second])
        };
        assert!(two(OnOverrun::Stop, OnOverrun::Stop).build().is_ok());
        let differ = "units \"a\" and \"b\" of task \"t\" have different policies";
        assert_eq!(said(&two(OnOverrun::Stop, OnOverrun::Skip)), differ);
        let third = CalendarBuilder::new(Period::hz(3).expect("in range"))
            .unit(Unit::new("a", Duration::from_nanos(1)));
        assert!(said(&third).contains("333 ms (3 Hz)"));
        let many = (0..=UNITS_MAX).map(|n| Unit::new(n.to_string(), Duration::from_nanos(1)));
        assert_eq!(said(&of(many)), "a calendar has at most 65536 units (got 65537)");
    }

    #[test]
    fn units_are_laid_out_in_the_order_of_the_frame() {
        let plan = of([
            Unit::new("write", Duration::from_nanos(50))
                .after("compute", Duration::from_nanos(100))
                .of("control")
                .start_within(Duration::from_nanos(7)),
            Unit::new("compute", Duration::from_nanos(200))
                .after("read", Duration::from_nanos(10))
                .of("control")
                .on_overrun(OnOverrun::Terminate),
            Unit::new("read", Duration::from_nanos(40))
                .at(Duration::from_nanos(100))
                .deadline(Duration::from_nanos(300)),
        ])
        .build()
        .expect("a plan");
        let laid: Vec<_> =
            plan.units().map(|(name, unit)| (name, unit.ready_ns, unit.task)).collect();
        assert_eq!(laid, [("read", 100, 0), ("compute", 150, 1), ("write", 450, 1)]);
        assert_eq!((plan.tasks(), plan.name(0), plan.name(1)), (2, "read", "control"));
        let deadlines: Vec<_> = plan.units().map(|(_, unit)| unit.deadline_ns).collect();
        assert_eq!(deadlines, [400, 350, 500]);
        assert_eq!(plan.longest_gap_ns(), 600);
        assert!((plan.load() - 0.29).abs() < 1e-9);
        assert_eq!(plan.calendar(Instant::from_ns(3)).units(), 3);
        assert_eq!(plan.storage().len(), 2);
    }

    fn named(name: &str, budget_us: u64) -> Unit {
        Unit::new(name, us(budget_us))
    }

    const fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    fn frame_of(frame_us: u64, units: impl IntoIterator<Item = Unit>) -> CalendarBuilder {
        let frame = Period::from_ns(frame_us * 1_000).expect("in range");
        units.into_iter().fold(CalendarBuilder::new(frame), CalendarBuilder::unit)
    }

    #[test]
    fn units_with_periods_get_places_that_keep_to_all_that_is_asked() {
        let builder = frame_of(
            4_000,
            [
                named("read", 100).every(us(1_000)).deadline(us(300)),
                named("control", 300).every(us(1_000)).after("read", us(50)).start_within(us(5)),
                named("write", 100).every(us(1_000)).after("control", us(0)).deadline(us(700)),
                named("log 1", 150).at(us(200)).of("log").excludes("control"),
                named("log 2", 150).after("log 1", us(0)).of("log").on_overrun(OnOverrun::Stop),
            ],
        );
        assert_eq!(
            said(&builder),
            "unit \"read\" has a period or excludes a task: its calendar \
                                    must be scheduled"
        );
        let plan = builder.schedule().and_then(|units| units.build()).expect("1.25 of 4 ms");
        let place = |name: &str| {
            let (_, unit) = plan.units().find(|(known, _)| *known == name).expect(name);
            (unit.ready_ns / 1_000, unit.deadline_ns / 1_000)
        };
        assert_eq!(plan.units().len(), 4 * 3 + 2);
        let (log_from, log_to) = (place("log 1").0, place("log 2").0 + 150);
        for number in 0..4_u64 {
            let run = |name: &str| match number {
                0 => place(name),
                _ => place(&format!("{name} {}", number + 1)),
            };
            let [read, control, write] = ["read", "control", "write"].map(run);
            let begin = number * 1_000;
            assert!((begin..=begin + 200).contains(&read.0), "{number}");
            assert_eq!((read.1, control.1, write.1), (begin + 300, begin + 1_000, begin + 700));
            assert!(control.0 >= read.0 + 150 && write.0 >= control.0 + 300, "{number}");
            assert!(write.0 + 100 <= begin + 700, "{number}");
            // No control between the two parts of the log.
            assert!(control.0 >= log_to || control.0 + 300 <= log_from, "{number}");
        }
        assert!(log_from >= 200 && place("log 2").0 >= log_from + 150, "{log_from} {log_to}");
        assert_eq!(plan.tasks(), 4);
    }

    #[test]
    fn what_cannot_be_scheduled_is_named() {
        let why = |frame_us: u64, units: Vec<Unit>| {
            frame_of(frame_us, units).schedule().expect_err("it cannot be").to_string()
        };
        let odd = why(1_000, vec![named("a", 1).every(us(300))]);
        assert_eq!(
            odd,
            "unit \"a\": its period must divide the frame of 1000000 ns (got 300000 ns)"
        );
        let late = why(1_000, vec![named("a", 1).every(us(500)).at(us(500))]);
        assert!(late.contains("within its period of 500000 ns (got 500000 ns)"), "{late}");
        let rates = [named("a", 1).every(us(500)), named("b", 1).after("a", us(0))];
        let rates = why(1_000, rates.to_vec());
        assert!(rates.starts_with("units \"b\" and \"a\" of one task, or"), "{rates}");
        let unknown = why(1_000, vec![named("a", 1).after("b", us(0))]);
        assert_eq!(unknown, "unit \"a\" is after \"b\", and no unit has that name");
        let nobody = why(1_000, vec![named("a", 1).excludes("b")]);
        assert_eq!(nobody, "unit \"a\" excludes task \"b\", and no unit is of that task");
        let circle = [named("a", 1).after("b", us(0)), named("b", 1).after("a", us(0))];
        assert_eq!(why(1_000, circle.to_vec()), "unit \"a\" is after itself");
        let chain = [named("a", 300), named("b", 500).after("a", us(10)).deadline(us(700))];
        assert_eq!(
            why(1_000, chain.to_vec()),
            "units \"a\" and \"b\" one after the other take 810 µs, and have 700 µs"
        );
        let demand = [named("a", 30).every(us(100)), named("b", 75).every(us(100))];
        assert_eq!(
            why(100, demand.to_vec()),
            "units \"a\" and \"b\" take 105 µs, and are ready and due from 0 ns to 100 µs of the \
             frame, which is 100 µs"
        );
        let long = [named("fast", 20).every(us(100)).deadline(us(30)), named("slow", 100)];
        assert_eq!(
            why(200, long.to_vec()),
            "no order of the units meets all deadlines, as none is interrupted: by their deadlines \
             unit \"fast 2\", behind \"slow\", ends at 140 µs and is due at 130 µs; split the \
             longest units, or give a later deadline"
        );
        let endless = [named("a", 10), named("b", 10).after("a", Duration::MAX)];
        assert!(why(1_000, endless.to_vec()).contains("one after the other take 9"), "saturated");
        let alone = why(1_000, vec![named("a", 300).every(us(200))]);
        assert_eq!(alone, "unit \"a\" takes 300 µs, and has 200 µs");
        let same = [named("a", 1).every(us(500)), named("a 2", 1)];
        assert!(why(1_000, same.to_vec()).starts_with("two units would be named \"a 2\": so a"));
        let apart = [
            named("a 1", 10).of("a").excludes("c"),
            named("a 2", 10).after("c", us(0)).of("a"),
            named("c", 10).after("a 1", us(0)),
        ];
        assert!(
            why(1_000, apart.to_vec()).contains("unit \"c\" comes between \"a 1\" and the rest"),
        );
        // Once scheduled it is not scheduled again, and nothing is added to its tasks.
        let twice = frame_of(1_000, [named("a", 1).every(us(500))]).schedule().expect("little");
        let again = twice.schedule().expect_err("scheduled").to_string();
        assert!(again.starts_with("unit \"a\": its calendar was scheduled already"), "{again}");
        let added = twice.clone().unit(named("b", 1).at(us(900)).of("a")).build();
        assert_eq!(
            added.expect_err("no cycle of its").to_string(),
            again.replace("\"a\"", "\"b\"")
        );
        assert!(twice.build().is_ok());
        let many = named("a", 1).every(Duration::from_nanos(1_000));
        assert!(why(66_000_000, vec![many]).contains("at most 65536 units"));
    }

    #[test]
    fn tasks_that_exclude_each_other_meet_within_their_periods_alone() {
        let part = |name: &str, task: &str| named(name, 1).of(task);
        let fast = [part("a 1", "a").every(us(10)).excludes("b"), part("a 2", "a").every(us(10))];
        let builder = frame_of(80_000, fast.into_iter().chain([part("b", "b").every(us(20))]));
        let names = builder.check().expect("fine");
        let runs = builder.runs(&names).expect("fine");
        let pairs = builder.excluded(&runs).expect("both are there");
        assert_eq!((runs.len(), pairs.len()), (20_000, 8_000));
        // Of one unit each nothing is left half done.
        let single = [named("a", 1).every(us(10)).excludes("b"), named("b", 1)];
        let builder = frame_of(80, single);
        let runs = builder.runs(&builder.check().expect("fine")).expect("fine");
        assert_eq!(builder.excluded(&runs), Ok(Vec::new()));
    }

    #[test]
    fn a_long_chain_is_laid_out_whichever_end_comes_first() {
        let chain = |n: u64| {
            let first = Unit::new("0", Duration::from_nanos(1));
            let others = (1..n).map(|k| {
                Unit::new(k.to_string(), Duration::from_nanos(1))
                    .after((k - 1).to_string(), Duration::ZERO)
            });
            let mut units: Vec<Unit> = std::iter::once(first).chain(others).collect();
            units.reverse();
            of(units)
        };
        let plan = chain(1_000).build().expect("it fits exactly");
        assert!(plan.units().enumerate().all(|(k, (_, unit))| unit.ready_ns == k as u64));
        assert_eq!(plan.longest_gap_ns(), 0);
        assert!(said(&chain(1_001)).contains("must lie within the frame"));
    }

    fn task(name: &str, period_ns: u64) -> Task {
        Task::every(name, Period::ratio(period_ns, 1).expect("in range"))
    }

    #[test]
    fn periodic_tasks_fit_between_the_units_or_are_refused() {
        let calendar = of([
            Unit::new("a", Duration::from_nanos(100)),
            Unit::new("b", Duration::from_nanos(100)).at(Duration::from_nanos(500)),
        ])
        .build();
        let calendar = calendar.expect("a plan");
        let beside = |task: Task, gap_ns: i64| {
            let periodic = Periodic::new().task(task).build().expect("a plan");
            let combined = Combination::with_gap(&calendar, &periodic, Span::from_ns(gap_ns));
            combined.map(|combined| combined.name(2).to_owned()).map_err(|why| why.to_string())
        };
        assert_eq!(
            beside(task("c", 2_000).budget(Duration::from_nanos(400)), 0),
            Ok("c".to_owned())
        );
        let gap =
            "task \"c\": a budget of 400 ns fits nowhere between the units; the longest gap is";
        assert_eq!(
            beside(task("c", 2_000).budget(Duration::from_nanos(400)), 1),
            Err(format!("{gap} 399 ns"))
        );
        let negative = beside(task("c", 2_000).budget(Duration::from_nanos(1)), -1);
        assert_eq!(
            negative,
            Err("gap before each unit must not be negative (got -1 ns)".to_owned())
        );
        assert!(beside(task("c", 2_000), 0).is_err_and(|why| why.contains("no budget")));
        assert!(
            beside(task("b", 2_000).budget(Duration::from_nanos(1)), 0)
                .is_err_and(|why| why.contains("both named"))
        );
        let full = beside(task("c", 400).budget(Duration::from_nanos(330)), 0);
        assert!(full.is_err_and(|why| why.contains("1.025 of the CPU")));
    }
}
