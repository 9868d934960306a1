//! A 4-ary heap of the next releases: what most timer libraries are.
//!
//! A release takes the due ones off the top, a wait puts one back; both walk at most log₄ n levels.
//! Release and task are one number, so that a comparison is one instruction.

use super::{BaselineTask, Design, NONE, Visit};
use super::{Levels, Node};

/// Bits of a key that name the task.
const TASK_BITS: u32 = 20;

/// A task.
#[derive(Clone, Copy, Debug)]
struct Known {
    next: u32,
    period: u32,
    /// The tick of its next release.
    release: u64,
    level: u8,
}

impl Node for Known {
    #[inline]
    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }
}

/// The heap and the ready queue.
#[derive(Debug)]
pub struct Heap {
    /// Release and task, the least at the top; the children of i are 4i + 1 to 4i + 4.
    keys: Vec<u64>,
    tasks: Vec<Known>,
    ready: Levels,
    /// The tick that comes next.
    tick: u64,
}

impl Heap {
    /// All tasks wait for their first release.
    ///
    /// # Panics
    ///
    /// With 2²⁰ tasks or more.
    pub fn new(tasks: &[BaselineTask]) -> Self {
        assert!(tasks.len() < 1 << TASK_BITS, "a key has room for fewer tasks");
        let known = |task: &BaselineTask| Known {
            next: NONE,
            period: task.period,
            release: u64::from(task.phase),
            level: task.level,
        };
        let tasks: Vec<Known> = tasks.iter().map(known).collect();
        let keys = Vec::with_capacity(tasks.len());
        let mut heap = Self { keys, tasks, ready: Levels::new(), tick: 0 };
        (0..).take(heap.tasks.len()).for_each(|task| heap.push(task));
        heap
    }

    #[inline]
    fn push(&mut self, task: u32) {
        let key = self.tasks[task as usize].release << TASK_BITS | u64::from(task);
        let mut at = self.keys.len();
        self.keys.push(key);
        while at > 0 {
            let above = (at - 1) / 4;
            if self.keys[above] <= key {
                break;
            }
            self.keys[at] = self.keys[above];
            at = above;
        }
        self.keys[at] = key;
    }

    #[inline]
    fn pop(&mut self) {
        let Some(key) = self.keys.pop() else { return };
        let n = self.keys.len();
        if n == 0 {
            return;
        }
        let mut at = 0;
        loop {
            let first = 4 * at + 1;
            if first >= n {
                break;
            }
            let mut least = first;
            for child in first + 1..(first + 4).min(n) {
                if self.keys[child] < self.keys[least] {
                    least = child;
                }
            }
            if key <= self.keys[least] {
                break;
            }
            self.keys[at] = self.keys[least];
            at = least;
        }
        self.keys[at] = key;
    }
}

impl Design for Heap {
    type Job = u32;

    fn release(&mut self) {
        let now = self.tick;
        self.tick += 1;
        while let Some(&key) = self.keys.first() {
            if key >> TASK_BITS > now {
                return;
            }
            self.pop();
            let task = (key & ((1 << TASK_BITS) - 1)) as u32;
            let level = self.tasks[task as usize].level;
            self.ready.push(&mut self.tasks, level, task);
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

    #[inline]
    fn wait(&mut self, task: u32) {
        let Known { period, level, .. } = self.tasks[task as usize];
        self.ready.pop(&mut self.tasks, level);
        self.tasks[task as usize].release += u64::from(period);
        self.push(task);
    }

    fn visit(&self, visit: &mut impl Visit) {
        visit.part(&self.keys);
        visit.part(&self.tasks);
        self.ready.visit(visit);
    }
}
