//! A hierarchical timing wheel (Varghese and Lauck, 1987): wheels of 64 slots, each slot of one as
//! long as a turn of the wheel below.
//!
//! A wait files a task by the highest digit in which its release differs from now; when a wheel
//! comes to a slot its tasks are filed anew, one wheel down. Each task is in one list at any time.

use super::{BaselineTask, Design, NONE, Visit};
use super::{Levels, Node};

/// Bits of a digit, and digits: periods up to 2³⁰ ticks.
const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
const WHEELS: usize = 5;

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

/// The tasks of a slot, first and last.
#[derive(Clone, Copy, Debug)]
struct Slot {
    head: u32,
    tail: u32,
}

/// A slot without tasks.
const EMPTY: Slot = Slot { head: NONE, tail: NONE };

/// The wheels and the ready queue.
#[derive(Debug)]
pub struct Wheel {
    slots: Vec<Slot>,
    tasks: Vec<Known>,
    ready: Levels,
    /// The tick that comes next.
    tick: u64,
}

impl Wheel {
    /// All tasks wait for their first release.
    ///
    /// # Panics
    ///
    /// With a period of 2³⁰ ticks or more.
    pub fn new(tasks: &[BaselineTask]) -> Self {
        let within = |task: &BaselineTask| u64::from(task.period) < 1 << (BITS * WHEELS as u32);
        assert!(tasks.iter().all(within), "a period is longer than a turn of the highest wheel");
        let known = |task: &BaselineTask| Known {
            next: NONE,
            period: task.period,
            release: u64::from(task.phase),
            level: task.level,
        };
        let mut wheel = Self {
            slots: vec![EMPTY; SLOTS * WHEELS],
            tasks: tasks.iter().map(known).collect(),
            ready: Levels::new(),
            tick: 0,
        };
        (0..).take(tasks.len()).for_each(|task| wheel.file(task));
        wheel
    }

    /// Files a task, whose release is at the coming tick or later.
    #[inline]
    fn file(&mut self, task: u32) {
        let release = self.tasks[task as usize].release;
        let differs = (release ^ self.tick) | 1;
        let wheel = ((63 - differs.leading_zeros()) / BITS).min(WHEELS as u32 - 1);
        let digit = (release >> (wheel * BITS)) as usize % SLOTS;
        let slot = &mut self.slots[wheel as usize * SLOTS + digit];
        self.tasks[task as usize].next = NONE;
        if slot.head == NONE {
            slot.head = task;
        } else {
            self.tasks[slot.tail as usize].next = task;
        }
        slot.tail = task;
    }

    /// Files anew what the coming tick brings down.
    fn cascade(&mut self) {
        for wheel in (1..WHEELS as u32).rev() {
            let below = (1u64 << (wheel * BITS)) - 1;
            if self.tick & below == 0 {
                let digit = (self.tick >> (wheel * BITS)) as usize % SLOTS;
                let slot = &mut self.slots[wheel as usize * SLOTS + digit];
                let mut at = std::mem::replace(slot, EMPTY).head;
                while at != NONE {
                    let next = self.tasks[at as usize].next;
                    self.file(at);
                    at = next;
                }
            }
        }
    }
}

impl Design for Wheel {
    type Job = u32;

    fn release(&mut self) {
        if self.tick.is_multiple_of(SLOTS as u64) {
            self.cascade();
        }
        let slot = &mut self.slots[self.tick as usize % SLOTS];
        let mut at = std::mem::replace(slot, EMPTY).head;
        self.tick += 1;
        while at != NONE {
            let Known { next, level, .. } = self.tasks[at as usize];
            self.ready.push(&mut self.tasks, level, at);
            at = next;
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
        self.file(task);
    }

    fn visit(&self, visit: &mut impl Visit) {
        visit.part(&self.slots);
        visit.part(&self.tasks);
        self.ready.visit(visit);
    }
}
