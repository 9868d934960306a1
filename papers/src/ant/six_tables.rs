//! AnT's six tables: *Sophisticated periodic execution control*, §3.3 and figure 6.
//!
//! The periodic control table has an entry a tick of the least common multiple of all periods, and
//! a release element in it for each release of a task. Elements have two links: one into their
//! entry, which stays, and one into the execution management table while the task is ready. So a
//! release moves nothing out of a queue, and a wait takes the first element off its level. A task
//! that is still ready at its next release is terminated.

use punctual_core::time::gcd;
use punctual_lab::baseline::{BaselineTask, Design, Levels, NONE, Node, Visit};
use punctual_lab::executive::{DesignName, DesignUnderTest, MeasuredDesign, Rival};

/// Set in `rflag` from release to wait; the rest of it is the period.
const RELEASED: u32 = 1 << 31;
/// The most entries of the periodic control table, and the most elements.
const ENTRIES_MAX: u64 = 1 << 24;

/// Release management table: where the timer is.
#[derive(Clone, Copy, Debug)]
struct ReleaseManagement {
    /// The entry of the coming tick.
    current: u32,
    /// The number of entries.
    size: u32,
}

/// An entry of the periodic control table.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The first of its elements.
    head: u32,
    /// Number of its elements.
    count: u32,
}

/// A release element.
#[derive(Clone, Copy, Debug)]
struct Element {
    /// The one behind it in its entry.
    next: u32,
    /// The one behind it in the execution management table.
    next_ready: u32,
    /// The task.
    process: u32,
}

impl Node for Element {
    #[inline]
    fn next(&mut self) -> &mut u32 {
        &mut self.next_ready
    }
}

/// An entry of the real-time information table, whose index is the task's number.
#[derive(Clone, Copy, Debug)]
struct Information {
    rflag: u32,
    level: u8,
}

/// Release element management table: those that are not used.
#[derive(Clone, Copy, Debug)]
struct ElementManagement {
    unused: u32,
    most: u32,
}

/// The six tables.
#[derive(Debug)]
pub struct Ant {
    management: ReleaseManagement,
    control: Vec<Entry>,
    elements: Vec<Element>,
    /// The execution management table, with its bitmap.
    execution: Levels,
    information: Vec<Information>,
    element_management: ElementManagement,
    terminated: Vec<u32>,
}

impl Ant {
    /// For `measure executive`.
    pub const RIVAL: Rival = Rival { name: DesignName::Ant, keep: Self::measured };

    fn measured(tasks: &[BaselineTask]) -> Option<Box<dyn MeasuredDesign>> {
        Some(Box::new(DesignUnderTest::new(Self::new(tasks)?, tasks.len())))
    }

    /// Registers all tasks in turn, each in the entries that have the fewest elements; the phases
    /// that they are given are not used. `None` where the least common multiple of the periods or
    /// the number of elements is beyond 2²⁴: the design has no table for these.
    pub fn new(tasks: &[BaselineTask]) -> Option<Self> {
        let entries = tasks.iter().try_fold(1u64, |lcm, task| {
            let period = u64::from(task.period);
            let common = lcm / (gcd(lcm.into(), period.into()) as u64) * period;
            (common <= ENTRIES_MAX).then_some(common)
        })?;
        let most: u64 = tasks.iter().map(|task| entries / u64::from(task.period)).sum();
        if most > ENTRIES_MAX {
            return None;
        }
        let unused = Element { next: NONE, next_ready: NONE, process: NONE };
        let information = tasks.iter().map(|t| Information { rflag: t.period, level: t.level });
        let mut ant = Self {
            management: ReleaseManagement { current: 0, size: entries as u32 },
            control: vec![Entry { head: NONE, count: 0 }; entries as usize],
            elements: vec![unused; most as usize],
            execution: Levels::new(),
            information: information.collect(),
            element_management: ElementManagement { unused: most as u32, most: most as u32 },
            terminated: Vec::with_capacity(tasks.len()),
        };
        // Where the search for an unused element goes on, and the last element, of each entry.
        let mut ends: Vec<(u32, u32)> =
            (0..entries).map(|entry| ((most / entries * entry) as u32, NONE)).collect();
        (0..).take(tasks.len()).for_each(|task| ant.register(task, &mut ends));
        Some(ant)
    }

    /// Finds the phase whose entries have the fewest elements, and links an element into each.
    fn register(&mut self, task: u32, ends: &mut [(u32, u32)]) {
        let period = self.information[task as usize].rflag as usize;
        let most = |phase: &usize| {
            let entries = self.control.iter().skip(*phase).step_by(period);
            entries.map(|entry| entry.count).max()
        };
        let phase = (0..period).min_by_key(most).unwrap_or(0);
        for at in (phase..self.control.len()).step_by(period) {
            let (from, last) = ends[at];
            let element = self.unused(from);
            self.elements[element as usize].process = task;
            match last {
                NONE => self.control[at].head = element,
                last => self.elements[last as usize].next = element,
            }
            self.control[at].count += 1;
            ends[at] = (element, element);
        }
    }

    /// The first unused element from here on (figure 7: those of an entry lie together).
    fn unused(&mut self, from: u32) -> u32 {
        let mut at = from % self.element_management.most;
        while self.elements[at as usize].process != NONE {
            at = (at + 1) % self.element_management.most;
        }
        self.element_management.unused -= 1;
        at
    }

    /// The tick of a task's first release: the first entry that has an element of it.
    pub fn phase(&self, task: u32) -> Option<u32> {
        (0..self.management.size).find(|&entry| {
            let mut at = self.control[entry as usize].head;
            while at != NONE && self.elements[at as usize].process != task {
                at = self.elements[at as usize].next;
            }
            at != NONE
        })
    }

    /// The tasks that were terminated because they were still ready at their next release.
    pub fn terminated(&self) -> &[u32] {
        &self.terminated
    }

    /// Takes all elements of a task out of both tables.
    #[cold]
    fn terminate(&mut self, task: u32) {
        self.terminated.push(task);
        let level = self.information[task as usize].level;
        for element in 0..self.element_management.most {
            if self.elements[element as usize].process == task {
                self.execution.unlink(&mut self.elements, level, element);
            }
        }
        for entry in &mut self.control {
            let (mut before, mut at) = (NONE, entry.head);
            while at != NONE {
                let Element { next, process, .. } = self.elements[at as usize];
                if process != task {
                    before = at;
                } else {
                    match before {
                        NONE => entry.head = next,
                        before => self.elements[before as usize].next = next,
                    }
                    entry.count -= 1;
                    self.element_management.unused += 1;
                }
                at = next;
            }
        }
        let freed = |element: &&mut Element| element.process == task;
        self.elements.iter_mut().filter(freed).for_each(|element| element.process = NONE);
    }
}

impl Design for Ant {
    type Job = u32;

    fn release(&mut self) {
        let ReleaseManagement { current, size } = self.management;
        self.management.current = if current + 1 == size { 0 } else { current + 1 };
        let mut at = self.control[current as usize].head;
        while at != NONE {
            let Element { next, process, .. } = self.elements[at as usize];
            let information = &mut self.information[process as usize];
            if information.rflag & RELEASED == 0 {
                information.rflag |= RELEASED;
                self.execution.push(&mut self.elements, information.level, at);
            } else {
                self.terminate(process);
            }
            at = next;
        }
    }

    #[inline]
    fn dispatch(&mut self) -> Option<u32> {
        let element = self.execution.first()?;
        Some(self.elements[element as usize].process)
    }

    #[inline]
    fn number(job: &u32) -> usize {
        *job as usize
    }

    #[inline]
    fn wait(&mut self, task: u32) {
        let information = &mut self.information[task as usize];
        information.rflag &= !RELEASED;
        self.execution.pop(&mut self.elements, information.level);
    }

    fn visit(&self, visit: &mut impl Visit) {
        visit.part(std::slice::from_ref(&self.management));
        visit.part(&self.control);
        visit.part(&self.elements);
        visit.part(&self.information);
        self.execution.visit(visit);
    }
}
