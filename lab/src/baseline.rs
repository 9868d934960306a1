//! Ways to keep periodic tasks, as others do it: what the executive's table is compared with.
//!
//! Each is written to be as quick as its design lets it be, in arrays without allocation, and is
//! tested against one slow model: the same releases in the same order. [`ArtLinux`]: the sorted
//! wait queue of differences. [`Ant`]: the six tables of *Sophisticated periodic execution
//! control*. [`Heap`]: a 4-ary heap of releases. [`Wheel`]: a hierarchical timing wheel.
//! [`Punctual`]: the executive's own table, behind the same contract. Reads no clock.

mod ant;
mod art_linux;
mod heap;
mod wheel;

use std::time::Duration;

use punctual_core::cycle::{Decision, Job};
use punctual_core::dispatch::{TableState, finish, step};
use punctual_core::table::Table;
use punctual_core::time::{Instant, Span};
use punctual_engine::periodic::{self, BuildError, Period, Periodic, Plan, PlanStorage};

pub use ant::Ant;
pub use art_linux::ArtLinux;
pub use heap::Heap;
pub use punctual_core::ready::Visit;
pub use wheel::Wheel;

/// Priorities of the baselines: one word of a bitmap.
pub const LEVELS: usize = 64;

/// No task, no link.
const NONE: u32 = u32::MAX;

/// A periodic task; its number is its place in a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BaselineTask {
    /// Ticks from release to release, at least 1.
    pub period: u32,
    /// The tick of its first release, below the period.
    pub phase: u32,
    /// Its priority, below [`LEVELS`]; 0 is the most urgent.
    pub level: u8,
}

/// What releases periodic tasks, says which is next, and makes them wait.
pub trait Design {
    /// A task that is to run now.
    type Job: Copy;

    /// The timer's next interrupt, the first being that of tick 0: all tasks whose release this is
    /// become ready.
    fn release(&mut self);

    /// The most urgent task that is ready.
    fn dispatch(&mut self) -> Option<Self::Job>;

    /// The design's own number of that task.
    fn number(job: &Self::Job) -> usize;

    /// A task that was dispatched waits until its next release.
    fn wait(&mut self, job: Self::Job);

    /// Shows all memory that it lies in.
    fn visit(&self, visit: &mut impl Visit);
}

/// What can stand in a queue.
trait Node {
    /// The link to the one behind it.
    fn next(&mut self) -> &mut u32;
}

/// First and last of a queue.
#[derive(Clone, Copy, Debug)]
struct Queue {
    head: u32,
    tail: u32,
}

/// Ready tasks.
///
/// The quickest of the common ready queues, so that no baseline loses by it: a queue a level and a
/// bitmap of the levels that have one. The links lie in the nodes themselves.
#[derive(Debug)]
struct Levels {
    queues: Vec<Queue>,
    /// A bit a level that has tasks.
    bitmap: u64,
}

impl Levels {
    fn new() -> Self {
        Self { queues: vec![Queue { head: NONE, tail: NONE }; LEVELS], bitmap: 0 }
    }

    /// Behind all others of its level.
    #[inline]
    fn push(&mut self, nodes: &mut [impl Node], level: u8, node: u32) {
        let bit = 1 << level;
        let queue = &mut self.queues[usize::from(level)];
        *nodes[node as usize].next() = NONE;
        if self.bitmap & bit == 0 {
            queue.head = node;
        } else {
            *nodes[queue.tail as usize].next() = node;
        }
        queue.tail = node;
        self.bitmap |= bit;
    }

    /// The first of the most urgent level.
    #[inline]
    fn first(&self) -> Option<u32> {
        (self.bitmap != 0).then(|| self.queues[self.bitmap.trailing_zeros() as usize].head)
    }

    /// Takes the first of a level out.
    #[inline]
    fn pop(&mut self, nodes: &mut [impl Node], level: u8) {
        let queue = &mut self.queues[usize::from(level)];
        if queue.head == queue.tail {
            self.bitmap &= !(1 << level);
        }
        queue.head = *nodes[queue.head as usize].next();
    }

    /// Takes any one of a level out.
    fn unlink(&mut self, nodes: &mut [impl Node], level: u8, gone: u32) {
        let mut left = Vec::new();
        let mut at = self.queues[usize::from(level)].head;
        while self.bitmap >> level & 1 == 1 && at != NONE {
            left.push(at);
            at = *nodes[at as usize].next();
        }
        self.bitmap &= !(1 << level);
        for node in left.into_iter().filter(|&node| node != gone) {
            self.push(nodes, level, node);
        }
    }

    fn visit(&self, visit: &mut impl Visit) {
        visit.part(&self.queues);
        visit.part(std::slice::from_ref(&self.bitmap));
    }
}

/// A tick, ns.
const TICK: Span = Span::from_ms(1);

/// The plan of these tasks, a tick being a millisecond; each is named by its number.
///
/// # Errors
///
/// Where the tasks cannot be an executive.
pub fn plan(tasks: &[BaselineTask]) -> Result<Plan, BuildError> {
    let tick_ns = TICK.as_ns().unsigned_abs();
    let planned = tasks.iter().enumerate().map(|(at, task)| {
        let period = Period::from_ns(u64::from(task.period) * tick_ns)?;
        let phase = Duration::from_nanos(u64::from(task.phase) * tick_ns);
        // The kernel's way: the highest number first.
        let task = periodic::Task::every(at.to_string(), period).priority(u8::MAX - task.level);
        Some(task.at(phase))
    });
    planned.flatten().fold(Periodic::new(), Periodic::task).build()
}

/// A table and its state.
///
/// As the executive's loop calls them: `dispatch` tells the task its cycle, its release, the next
/// one and what was missed; `wait` judges lateness, budget, deadline and overrun and counts them.
/// The baselines do none of that.
#[derive(Debug)]
pub struct Punctual<'p> {
    table: Table<'p>,
    state: TableState<'p>,
    /// The coming tick.
    tick: Instant,
    /// The last one.
    now: Instant,
}

impl<'p> Punctual<'p> {
    /// All tasks of a plan wait for their first release.
    ///
    /// # Panics
    ///
    /// When the storage is another plan's.
    pub fn new(plan: &'p Plan, storage: &'p mut PlanStorage) -> Self {
        let now = Instant::from_ns(0);
        let table = plan.table(now);
        let state = TableState::begin(&table, storage.lend(), now).expect("the plan's own storage");
        Self { table, state, tick: now, now }
    }
}

impl Design for Punctual<'_> {
    type Job = Job;

    #[inline(always)]
    fn release(&mut self) {
        self.now = self.tick;
        self.tick = self.tick + TICK;
        self.state.release(&self.table, self.now);
    }

    #[inline(always)]
    fn dispatch(&mut self) -> Option<Job> {
        match step(&self.table, &mut self.state, self.now) {
            Decision::Run(job) => Some(job),
            Decision::Idle(_) => None,
        }
    }

    #[inline(always)]
    fn number(job: &Job) -> usize {
        job.rank
    }

    #[inline(always)]
    fn wait(&mut self, job: Job) {
        let _counted = finish(&self.table, &mut self.state, &job, self.now, self.now);
    }

    fn visit(&self, visit: &mut impl Visit) {
        self.table.visit(visit);
        self.state.visit(visit);
    }
}

#[cfg(test)]
mod tests {
    //! Every design against one slow model, which writes down each release of each task.

    use super::*;

    /// At each tick: the tasks that are due, the most urgent first.
    fn model(tasks: &[BaselineTask], ticks: u64) -> Vec<Vec<usize>> {
        let mut due = vec![Vec::new(); ticks as usize];
        let mut order: Vec<usize> = (0..tasks.len()).collect();
        order.sort_by_key(|&number| (tasks[number].level, number));
        for number in order {
            let task = tasks[number];
            let releases = (task.phase as usize..due.len()).step_by(task.period as usize);
            releases.for_each(|tick| due[tick].push(number));
        }
        due
    }

    /// The releases that a design ran, by tick, each task finishing within its tick.
    fn ran<D: Design>(mut design: D, ticks: u64) -> Vec<Vec<usize>> {
        let mut at = |_| {
            design.release();
            let mut ran = Vec::new();
            while let Some(job) = design.dispatch() {
                ran.push(D::number(&job));
                design.wait(job);
            }
            ran
        };
        (0..ticks).map(&mut at).collect()
    }

    /// The executive's, with the numbers that the tasks have outside.
    fn ran_in_executive(tasks: &[BaselineTask], ticks: u64) -> Vec<Vec<usize>> {
        let plan = plan(tasks).expect("a plan");
        let mut storage = plan.storage();
        let number = |rank: &usize| plan.name(*rank).parse::<usize>().expect("a number");
        let ran = ran(Punctual::new(&plan, &mut storage), ticks);
        ran.iter().map(|ranks| ranks.iter().map(number).collect()).collect()
    }

    fn random(seed: &mut u64, below: u64) -> u64 {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888);
        (*seed >> 33) % below
    }

    /// Tasks of these periods with random phases, each with a level of its own.
    fn some(seed: &mut u64, periods: &[u32], n: u8) -> Vec<BaselineTask> {
        let task = |level| {
            let period = periods[random(seed, periods.len() as u64) as usize];
            BaselineTask { period, phase: random(seed, u64::from(period)) as u32, level }
        };
        (0..n).map(task).collect()
    }

    #[test]
    fn each_releases_the_same_tasks_in_the_same_order() {
        let mut seed = 5;
        for (periods, ticks) in [
            (&[1, 2, 5, 10][..], 500),
            (&[1, 63, 64, 65, 70], 5_000),
            (&[3, 7, 11, 13], 10_000),
            (&[64, 4_096, 4_097, 5_000, 300_000], 700_000),
        ] {
            for n in [1, 2, 7, 20] {
                let tasks = some(&mut seed, periods, n);
                let slow = model(&tasks, ticks);
                assert_eq!(ran(ArtLinux::new(&tasks), ticks), slow, "{tasks:?}");
                assert_eq!(ran(Heap::new(&tasks), ticks), slow, "{tasks:?}");
                assert_eq!(ran(Wheel::new(&tasks), ticks), slow, "{tasks:?}");
                assert_eq!(ran_in_executive(&tasks, ticks), slow, "{tasks:?}");
            }
        }
    }

    #[test]
    fn ant_releases_by_the_phases_that_registration_found() {
        let mut seed = 9;
        for (periods, ticks) in
            [(&[1, 2, 5, 10][..], 500), (&[1, 64, 96], 2_000), (&[3, 7, 11], 5_000)]
        {
            for n in [1, 2, 7, 40] {
                let mut tasks = some(&mut seed, periods, n);
                let ant = Ant::new(&tasks).expect("a short table");
                for (number, task) in (0..).zip(&mut tasks) {
                    task.phase = ant.phase(number).expect("registered");
                }
                let slow = model(&tasks, ticks);
                assert_eq!(ran(ant, ticks), slow, "{tasks:?}");
                assert_eq!(ran_in_executive(&tasks, ticks), slow, "{tasks:?}");
            }
        }
    }

    #[test]
    fn many_tasks_due_at_once_run_in_order_of_level_and_number() {
        let n = 1_000;
        let tasks: Vec<BaselineTask> = (0..n)
            .map(|at| BaselineTask { period: 1, phase: 0, level: (at * 64 / n) as u8 })
            .collect();
        let slow = model(&tasks, 5);
        assert_eq!(ran(ArtLinux::new(&tasks), 5), slow);
        assert_eq!(ran(Ant::new(&tasks).expect("one entry"), 5), slow);
        assert_eq!(ran(Heap::new(&tasks), 5), slow);
        assert_eq!(ran(Wheel::new(&tasks), 5), slow);
        assert_eq!(ran_in_executive(&tasks, 5), slow);
    }

    #[test]
    fn ant_spreads_what_it_registers() {
        // §4.5: 100 tasks of a period of 100 in a table of 100 entries; one each, not "3 or 4".
        let tasks = [BaselineTask { period: 100, phase: 0, level: 0 }; 100];
        let ran = ran(Ant::new(&tasks).expect("100 entries"), 300);
        assert!(ran.iter().all(|tick| tick.len() == 1));
        // And has no table for periods whose common multiple is long.
        let long = [1_009, 1_013, 1_019].map(|period| BaselineTask { period, phase: 0, level: 0 });
        assert!(Ant::new(&long).is_none());
    }

    #[test]
    fn ant_terminates_what_is_still_ready_at_its_next_release() {
        let tasks = [(1, 0), (3, 1), (1, 2)].map(|(period, level)| BaselineTask {
            period,
            phase: 0,
            level,
        });
        let mut ant = Ant::new(&tasks).expect("a table of 3");
        ant.release();
        let job = ant.dispatch().expect("ready");
        ant.wait(job);
        // BaselineTask 2 never came to run.
        ant.release();
        assert_eq!(ant.terminated(), [2]);
        while let Some(job) = ant.dispatch() {
            ant.wait(job);
        }
        let rest = ran(ant, 9).concat();
        let count = |task: usize| rest.iter().filter(|&&number| number == task).count();
        assert_eq!([0, 1, 2].map(count), [9, 3, 0]);
    }

    #[test]
    fn art_linux_lets_a_late_task_wait_for_the_release_after_the_one_it_missed() {
        // §2.3, problem 3: waits until t₂, not t₁.
        let tasks = [BaselineTask { period: 2, phase: 0, level: 0 }];
        let mut art = ArtLinux::new(&tasks);
        art.release();
        let job = art.dispatch().expect("ready");
        (0..3).for_each(|_| art.release());
        art.wait(job);
        assert_eq!(ran(art, 3), [vec![0], vec![], vec![0]]);
    }
}
