//! The executive's own table and dispatcher, behind the contract of the baselines.
//!
//! As the executive's loop calls them: `dispatch` tells the task its cycle, its release, the next
//! one and what was missed; `wait` judges lateness, budget, deadline and overrun and counts them.
//! The baselines know nothing of that.

use ::punctual::periodic::{self, BuildError, Offset, Period, Periodic, Plan, PlanStorage};
use punctual_core::dispatch::{Decision, Job, TableState, finish, step};
use punctual_core::table::Table;
use punctual_core::time::{Instant, Span};

use super::design::{BaselineTask, Design, Visit};

/// A tick, ns.
const TICK: Span = Span::from_ms(1);

/// The plan of these tasks, a tick being a millisecond; each is named by its number.
///
/// # Errors
///
/// Where the tasks cannot be an executive.
pub fn plan(tasks: &[BaselineTask]) -> Result<Plan, BuildError> {
    let tick_ns = TICK.as_ns().unsigned_abs();
    let all = tasks.iter().enumerate().map(|(at, task)| {
        let period = Period::from_ns(u64::from(task.period) * tick_ns)?;
        let phase = Offset::At(u64::from(task.phase) * tick_ns);
        // The kernel's way: the highest number first.
        let task = periodic::Task::every(at.to_string(), period).priority(u8::MAX - task.level);
        Some(task.phase(phase))
    });
    all.flatten().fold(Periodic::new(), Periodic::task).build()
}

/// A table and its state.
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
