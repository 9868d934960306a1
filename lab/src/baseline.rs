//! Ways to keep periodic tasks, as others do it: what the executive's table is compared with.
//!
//! Each is written to be as quick as its design lets it be, in arrays without allocation. [`Heap`]:
//! a 4-ary heap of releases. [`Wheel`]: a hierarchical timing wheel. [`Punctual`]: the executive's
//! own table, behind the same contract. Those of a paper are in `papers`, and so is the test of all
//! against one slow model (`papers/tests/designs.rs`): the same releases in the same order. Reads
//! no clock.

mod heap;
mod wheel;

use std::time::Duration;

use punctual_core::cycle::{Decision, Job};
use punctual_core::dispatch::{TableState, finish, step};
use punctual_core::table::Table;
use punctual_core::time::{Instant, Span};
use punctual_engine::error::BuildError;
use punctual_engine::periodic::{self, Period, Periodic, Plan, PlanStorage};

pub use heap::Heap;
pub use punctual_core::ready::Visit;
pub use wheel::Wheel;

/// Priorities of the baselines: one word of a bitmap.
pub const LEVELS: usize = 64;

/// In the place of a task or of a link: there is none.
pub const NONE: u32 = u32::MAX;

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

/// A way to keep periodic tasks: it releases them, finds the next one to run, and makes them wait.
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

/// A node of a queue of [`Levels`].
pub trait Node {
    /// The link to the one behind it.
    fn next(&mut self) -> &mut u32;
}

/// First and last of a queue.
#[derive(Clone, Copy, Debug)]
struct Queue {
    head: u32,
    tail: u32,
}

/// Ready tasks, by the level of their priority.
///
/// The quickest of the common ready queues, so that no baseline loses by it: a queue a level and a
/// bitmap of the levels that have one. The links lie in the nodes themselves.
#[derive(Debug)]
pub struct Levels {
    queues: Vec<Queue>,
    /// A bit a level that has tasks.
    bitmap: u64,
}

impl Default for Levels {
    fn default() -> Self {
        Self::new()
    }
}

impl Levels {
    /// None are ready.
    pub fn new() -> Self {
        Self { queues: vec![Queue { head: NONE, tail: NONE }; LEVELS], bitmap: 0 }
    }

    /// Behind all others of its level.
    #[inline]
    pub fn push(&mut self, nodes: &mut [impl Node], level: u8, node: u32) {
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
    pub fn first(&self) -> Option<u32> {
        (self.bitmap != 0).then(|| self.queues[self.bitmap.trailing_zeros() as usize].head)
    }

    /// Takes the first of a level out, which must have one.
    #[inline]
    pub fn pop(&mut self, nodes: &mut [impl Node], level: u8) {
        let queue = &mut self.queues[usize::from(level)];
        if queue.head == queue.tail {
            self.bitmap &= !(1 << level);
        }
        queue.head = *nodes[queue.head as usize].next();
    }

    /// Takes any one of a level out: walks the queue.
    pub fn unlink(&mut self, nodes: &mut [impl Node], level: u8, gone: u32) {
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

    /// Shows all memory that it lies in, without the nodes.
    pub fn visit(&self, visit: &mut impl Visit) {
        visit.part(&self.queues);
        visit.part(std::slice::from_ref(&self.bitmap));
    }
}

/// The length of a tick of the executive's table.
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
        self.tick += TICK;
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
