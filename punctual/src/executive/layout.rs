//! An executive laid out: which loop has which tasks, at which phases, behind which ranks.
//!
//! For the builder. What cannot be is refused here, with its reason; starts nothing.

use std::collections::HashMap;
use std::sync::Arc;

use punctual_core::clock::Clock;
use punctual_core::stats::PageKind;
use punctual_core::table::OnOverrun;
use punctual_core::time::Span;

use super::body::{Body, Ranked};
use super::builder::ExecutiveBuilder;
use super::built::Executive;
use super::calendar::Calendar;
use super::cpus::{cpus_of, places};
use super::entries::Entries;
use super::entries::Entry;
use super::error::ExecutiveError;
use super::id::TaskId;
use super::lane::Lane;
use super::outside::supervised;
use super::pace::Pace;
use super::shared::{AllTasks, Closing, IDLE, LaneShared, LaneTasks, Rules, Shared};
use super::sorted::{Sorted, check_load, sort};
use super::thread_task::ThreadTask;
use super::work::Work;
use crate::calendar::{CalendarBuilder, Combination};
use crate::checks::check_demands;
use crate::counting::{Stats as Memory, blank};
use crate::error::Error;
use crate::periodic::{BuildError, Plan};
use crate::rt_thread::RtThread;
use crate::task::{Offset, Task};

/// A task of a loop, its number and its body.
type Own<'env> = (usize, Task, Body<'env>);
/// A task in a thread of its own, its number and its work.
type Elsewhere<'env> = (usize, Task, Work<'env>);
/// The tasks of the threads, each with its work, and those that the main loop releases.
type Threads<'env> = (Vec<(ThreadTask, Work<'env>)>, Vec<Task>);

impl<'env, C> ExecutiveBuilder<'env, C> {
    /// Checks all of it and lays it out: the executive, and the ids of its tasks in the order in
    /// which they were given; those of a calendar come last, in the order of its frame.
    ///
    /// # Errors
    /// The first thing that cannot be, with the names of the tasks that it is about.
    ///
    /// # Real-time: setup only
    pub fn build(self) -> Result<(Executive<'env, C>, Vec<TaskId>), Error>
    where
        C: Clock + Clone + Send + 'env,
    {
        let Self { given, calendar, idle, thread, phase, clocking, samples, cpus, .. } = self;
        let Self { tick, grace, most, overload, name, .. } = self;
        if !(most > 0.0 && most <= 1.0) {
            return Err(BuildError::Share(most).into());
        }
        let mut rules = Rules { thread: thread.clone(), overload, most, tick, calendar: None };
        let mut entries: Vec<Entry> = Vec::new();
        let Sorted { bodies, threads, processes } = sort(given, &mut entries, thread.policy())?;
        let cpus = cpus_of(&thread, cpus, &bodies)?;
        if calendar.is_some() && cpus.len() > 1 {
            return Err(ExecutiveError::CalendarCpus.into());
        }
        let mut of_lane: Vec<Vec<Own<'env>>> = cpus.iter().map(|_| Vec::new()).collect();
        let at = places(&bodies, &cpus, most);
        bodies.into_iter().zip(at).for_each(|(body, at)| of_lane[at].push(body));
        let main = Main::of(&of_lane[0], &threads, &rules)?;
        let (threads, remote) = main.threads(threads, grace, &mut entries, &rules)?;

        let (mut lanes, lane_tasks) = lanes(of_lane, &cpus, (&main, &remote), &rules)?;
        lanes[0].idle = idle;
        let is_cancelled = |task: &Task| task.policy == OnOverrun::Terminate;
        let mut cancels = lane_tasks.iter().any(|lane| lane.tasks.iter().any(is_cancelled));
        if let Some(calendar) = calendar {
            cancels |= add_calendar(calendar, &mut lanes[0], &mut entries)?;
            rules.calendar = lanes[0].calendar.clone();
        }
        thread.check(lanes.iter().map(Lane::adapts_to).min().unwrap_or(IDLE))?;
        pages(&lanes, &mut entries);
        let supervisor = supervised(processes, name, &thread, clocking.is_machine)?;

        let own = lanes.iter().map(Lane::demand).chain(threads.iter().map(|(of, _)| of.demand()));
        let of_processes = supervisor.iter().flat_map(|(supervisor, _)| supervisor.demands());
        let all: Vec<_> = own.chain(of_processes).collect();
        let cautions = check_demands(&all)?;
        let tasks =
            AllTasks { entries: Entries::new(entries), lanes: lane_tasks, late: Vec::new() };
        let lanes_shared = cpus.iter().map(|cpu| LaneShared::new(*cpu)).collect();
        let shared = Shared::new(lanes_shared, threads.len(), rules, tasks, (cancels, all));
        let shared = Arc::new(shared);
        let ids = shared.ids();
        let (closing, peak) = (Closing(Arc::clone(&shared)), main.joint.peak());
        let plan = Executive {
            shared,
            closing,
            lanes,
            threads,
            supervisor,
            clocking,
            phase,
            samples,
            peak,
            cautions,
        };
        Ok((plan, ids))
    }
}

/// The memory of the statistics of all tasks that loops count.
fn pages(lanes: &[Lane<'_>], entries: &mut [Entry]) {
    for task in lanes.iter().flat_map(Lane::counted) {
        let page = match &entries[task].units[..] {
            [(_, _, only)] => only.clone(),
            _ => blank(PageKind::Lateness),
        };
        entries[task].stats = Some(Memory::Own(page));
    }
}

/// The main loop's tasks, and those that it releases: their phases are balanced together.
struct Main {
    joint: Plan,
    thread: RtThread,
}

impl Main {
    fn of(own: &[Own<'_>], threads: &[Elsewhere<'_>], rules: &Rules) -> Result<Self, Error> {
        let released = threads.iter().filter(|(_, _, work)| matches!(work, Work::Body(_)));
        let released = released.map(|(_, task, _)| task);
        let all: Vec<Task> = own.iter().map(|(_, task, _)| task).chain(released).cloned().collect();
        check_load(&rules.thread, all.iter(), rules.overload)?;
        let joint = rules.periodic(all).allow_overload().build()?;
        Ok(Self { joint, thread: rules.thread.clone() })
    }

    fn rank(&self, task: &Task) -> Option<usize> {
        (0..self.joint.tasks()).find(|&rank| self.joint.name(rank) == task.name())
    }

    fn phase_ns(&self, task: &Task) -> u64 {
        self.rank(task).map_or(0, |rank| self.joint.phase_ns(rank))
    }

    /// The task at its phase.
    fn fixed(&self, task: &Task) -> Task {
        task.clone().phase(Offset::At(self.phase_ns(task)))
    }

    /// The tasks in threads of their own.
    fn threads<'env>(
        &self,
        all: Vec<Elsewhere<'env>>,
        grace: Option<Span>,
        entries: &mut [Entry],
        rules: &Rules,
    ) -> Result<Threads<'env>, Error> {
        let (mut threads, mut remote) = (Vec::new(), Vec::new());
        for (entry, task, work) in all {
            let phase_ns = self.phase_ns(&task);
            let pace = match &work {
                Work::Triggered(..) => Pace::Triggered,
                _ if task.policy == OnOverrun::Delay => {
                    Pace::Own(Box::new(rules.periodic([self.fixed(&task)]).build()?))
                }
                _ => {
                    remote.push(task.remote(phase_ns));
                    Pace::remote(&task, phase_ns, grace)
                }
            };
            let rank = self.rank(&task);
            let of = ThreadTask::new(entry, task, pace, (&self.thread, rank));
            entries[entry].stats = Some(Memory::Own(blank(of.kind())));
            threads.push((of, work));
        }
        Ok((threads, remote))
    }

    /// The main loop.
    fn lane<'env>(
        &self,
        bodies: Vec<Own<'env>>,
        remote: &[Task],
        thread: RtThread,
        rules: &Rules,
    ) -> Result<(Lane<'env>, LaneTasks), Error> {
        let own = bodies.iter().map(|(_, task, _)| self.fixed(task));
        let tasks = own.chain(remote.iter().cloned()).collect();
        // Its load was checked, with what else runs on its CPU.
        lane((0, thread), tasks, bodies, remote, Rules { overload: true, ..rules.clone() })
    }
}

/// All loops, the main one first.
fn lanes<'env>(
    of_lane: Vec<Vec<Own<'env>>>,
    cpus: &[Option<u32>],
    (main, remote): (&Main, &[Task]),
    rules: &Rules,
) -> Result<(Vec<Lane<'env>>, Vec<LaneTasks>), Error> {
    let (mut lanes, mut all) = (Vec::new(), Vec::new());
    for (at, (bodies, cpu)) in of_lane.into_iter().zip(cpus).enumerate() {
        let thread = RtThread { cpu: *cpu, ..rules.thread.clone() };
        let (lane, tasks) = match at {
            0 => main.lane(bodies, remote, thread, rules)?,
            _ => {
                let tasks = bodies.iter().map(|(_, task, _)| task.clone()).collect();
                lane((at, thread), tasks, bodies, &[], rules.clone())?
            }
        };
        lanes.push(lane);
        all.push(tasks);
    }
    Ok((lanes, all))
}

/// One loop: its tasks by rank.
fn lane<'env>(
    (at, thread): (usize, RtThread),
    tasks: Vec<Task>,
    bodies: Vec<Own<'env>>,
    remote: &[Task],
    rules: Rules,
) -> Result<(Lane<'env>, LaneTasks), Error> {
    let plan = rules.periodic(tasks.iter().cloned()).build()?;
    let mut by_name: HashMap<String, (usize, Body<'env>)> =
        bodies.into_iter().map(|(entry, task, body)| (task.name, (entry, body))).collect();
    let mut lane = Lane::new(at, thread, plan.clone());
    for rank in 0..plan.tasks() {
        let name = plan.name(rank);
        match by_name.remove(name) {
            Some((entry, body)) => lane.push(name, Ranked::Here(body), Some(entry)),
            None => {
                let at = remote.iter().position(|task| task.name == name).unwrap_or(0);
                lane.push(name, Ranked::Remote(at), None);
            }
        }
    }
    Ok((lane, LaneTasks { tasks, plan }))
}

/// The calendar's tasks before those of the lane's table; whether one may have to be cancelled.
fn add_calendar<'env>(
    calendar: Calendar<'env>,
    lane: &mut Lane<'env>,
    entries: &mut Vec<Entry>,
) -> Result<bool, Error> {
    let Calendar { frame, units, bodies, gap } = calendar;
    let terminates = units.iter().any(|unit| unit.terminates());
    let plan =
        units.into_iter().fold(CalendarBuilder::new(frame), CalendarBuilder::unit).build()?;
    let beside = match gap {
        Some(gap) => Combination::with_guard(&plan, &lane.plan, gap),
        None => Combination::new(&plan, &lane.plan),
    };
    let gap = beside?.guard();
    let mut by_task: HashMap<String, Body<'env>> = HashMap::new();
    for (task, body) in bodies {
        if by_task.insert(task.clone(), body).is_some() {
            return Err(ExecutiveError::TwoBodies(task).into());
        }
    }
    let table = std::mem::take(&mut lane.ranks);
    for task in 0..plan.tasks() {
        let name = plan.name(task).to_owned();
        let body = by_task
            .remove(&name)
            .ok_or_else(|| Error::from(ExecutiveError::NoBody(name.clone())))?;
        lane.push(&name, Ranked::Here(body), Some(entries.len()));
        let own = plan.units().filter(|(_, place)| place.task as usize == task);
        let units =
            own.map(|(unit, place)| (unit.to_owned(), place.ready_ns, blank(PageKind::Lateness)));
        entries.push(Entry { units: units.collect(), ..Entry::new(name) });
    }
    lane.ranks.extend(table);
    lane.calendar = Some((Arc::new(plan), gap));
    Ok(terminates)
}
