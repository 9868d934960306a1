//! ART-Linux: one wait queue, sorted by release, each entry with its distance from the one before.
//!
//! *Sophisticated periodic execution control*, §2.1: at a timer interrupt the first entry's waiting
//! time is counted down, and entries are moved to the ready queue as long as theirs is over. A wait
//! walks the queue from its top to the place of the next release. All that is known of a task is in
//! one structure (§4.3). Here those lie side by side, which is better than an allocator does.

use punctual_lab::baseline::{BaselineTask, Design, Levels, NONE, Node, Visit};
use punctual_lab::executive::{DesignName, DesignUnderTest, MeasuredDesign, Rival};

/// The most tasks that are measured: a wait walks the queue, so that a cycle takes n² steps.
const WALKED_MAX: usize = 10_000;

/// All that is known of a task.
#[derive(Clone, Copy, Debug)]
struct Process {
    /// The one behind it, in the wait queue or in the ready queue.
    next: u32,
    /// Ticks from the release of the one before it in the wait queue to its own.
    waiting: u32,
    period: u32,
    level: u8,
    /// The tick of its next release.
    release: u64,
}

impl Node for Process {
    #[inline]
    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }
}

/// The wait queue and the ready queue.
#[derive(Debug)]
pub struct ArtLinux {
    processes: Vec<Process>,
    /// The first of the wait queue.
    head: u32,
    ready: Levels,
    /// The tick that comes next.
    tick: u64,
}

impl ArtLinux {
    /// For `measure executive`.
    pub const RIVAL: Rival = Rival { name: DesignName::ArtLinux, keep: Self::measured };

    fn measured(tasks: &[BaselineTask]) -> Option<Box<dyn MeasuredDesign>> {
        let n = tasks.len();
        (n <= WALKED_MAX)
            .then(|| Box::new(DesignUnderTest::new(Self::new(tasks), n)) as Box<dyn MeasuredDesign>)
    }

    /// All tasks wait for their first release.
    pub fn new(tasks: &[BaselineTask]) -> Self {
        let process = |task: &BaselineTask| Process {
            next: NONE,
            waiting: 0,
            period: task.period,
            level: task.level,
            release: u64::from(task.phase),
        };
        let processes = tasks.iter().map(process).collect();
        let mut queue = Self { processes, head: NONE, ready: Levels::new(), tick: 0 };
        // From the last release to the first, so that each walk is short.
        let mut order: Vec<u32> = (0..).take(tasks.len()).collect();
        order.sort_by_key(|&task| (tasks[task as usize].phase, task));
        let mut behind = NONE;
        for (at, &task) in order.iter().enumerate().rev() {
            let before = at.checked_sub(1).map_or(0, |at| tasks[order[at] as usize].phase);
            let process = &mut queue.processes[task as usize];
            (process.next, process.waiting) = (behind, tasks[task as usize].phase - before);
            behind = task;
        }
        queue.head = behind;
        queue
    }

    /// Puts a task in its place, `ticks` from now.
    fn insert(&mut self, task: u32, ticks: u32) {
        let (mut before, mut at, mut rest) = (NONE, self.head, ticks);
        while at != NONE && self.processes[at as usize].waiting <= rest {
            rest -= self.processes[at as usize].waiting;
            before = at;
            at = self.processes[at as usize].next;
        }
        if at != NONE {
            self.processes[at as usize].waiting -= rest;
        }
        let process = &mut self.processes[task as usize];
        (process.next, process.waiting) = (at, rest);
        if before == NONE {
            self.head = task;
        } else {
            self.processes[before as usize].next = task;
        }
    }
}

impl Design for ArtLinux {
    type Job = u32;

    fn release(&mut self) {
        // The waiting time of the first counts from the tick before; at tick 0 there was none.
        if self.head != NONE && self.tick > 0 {
            self.processes[self.head as usize].waiting -= 1;
        }
        self.tick += 1;
        while self.head != NONE && self.processes[self.head as usize].waiting == 0 {
            let task = self.head;
            let Process { next, level, .. } = self.processes[task as usize];
            self.head = next;
            self.ready.push(&mut self.processes, level, task);
        }
    }

    #[inline]
    fn dispatch(&mut self) -> Option<u32> {
        self.ready.first()
    }

    #[inline]
    fn number(job: &u32) -> usize {
        *job as usize
    }

    fn wait(&mut self, task: u32) {
        let now = self.tick - 1;
        let level = self.processes[task as usize].level;
        self.ready.pop(&mut self.processes, level);
        let process = &mut self.processes[task as usize];
        // From now to the next release: one that has passed is left out (problem 3).
        process.release += u64::from(process.period);
        while process.release <= now {
            process.release += u64::from(process.period);
        }
        let ticks = process.release - now;
        self.insert(task, u32::try_from(ticks).unwrap_or(u32::MAX));
    }

    fn visit(&self, visit: &mut impl Visit) {
        visit.part(&self.processes);
        visit.part(std::slice::from_ref(&self.head));
        self.ready.visit(visit);
    }
}
