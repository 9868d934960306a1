//! A table's parts in memory of their own, and the storage that running it takes.
//!
//! For the builder, which makes it, and for whoever runs it. Never changes once made.

use punctual_core::dispatch::{Counters, Cursor, Released, Storage, TaskPace};
use punctual_core::earliest::{self, Entry};
use punctual_core::ready;
use punctual_core::table::{Mask, OnOverrun, PeriodClass, PhaseGroup, Table, TaskSlot};
use punctual_core::time::{Instant, Period};

use super::Peak;
use crate::task::Task;

/// The table of an executive: tasks by rank, each with its period and phase.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    names: Vec<String>,
    phases: Vec<u64>,
    classes: Vec<PeriodClass>,
    groups: Vec<PhaseGroup>,
    masks: Vec<Mask>,
    slots: Vec<TaskSlot>,
    /// By rank, true where the body runs elsewhere.
    remote: Vec<bool>,
    peak: Peak,
}

/// Storage for the state of one plan.
#[derive(Clone, Debug)]
pub struct PlanStorage {
    cursors: Vec<Cursor>,
    matches: Vec<Entry>,
    words: Vec<u64>,
    released: Vec<Released>,
    paces: Vec<TaskPace>,
    counters: Vec<Counters>,
}

impl PlanStorage {
    /// The storage as the dispatcher takes it.
    ///
    /// # Real-time: setup only
    pub fn lend(&mut self) -> Storage<'_> {
        Storage {
            cursors: &mut self.cursors,
            matches: &mut self.matches,
            words: &mut self.words,
            released: &mut self.released,
            paces: &mut self.paces,
            counters: &mut self.counters,
        }
    }
}

impl Plan {
    /// Lays out tasks that were checked, with their phases.
    pub(super) fn of(tasks: &[Task], phases: &[u64], peak: Peak) -> Self {
        let mut ranks: Vec<usize> = (0..tasks.len()).collect();
        let urgency = |index: usize| u8::MAX - tasks[index].named_priority().unwrap_or(0);
        // Within a priority by period and phase, so that the ranks of a run lie side by side.
        ranks.sort_by_key(|&i| (urgency(i), tasks[i].period(), phases[i]));
        let moves = |rank: usize| tasks[ranks[rank]].overrun_policy() == OnOverrun::Delay;
        let class = |rank: usize| {
            let alone = if moves(rank) { rank + 1 } else { 0 };
            (tasks[ranks[rank]].period(), alone)
        };
        let phase = |rank: usize| phases[ranks[rank]];
        let mut order: Vec<usize> = (0..tasks.len()).collect();
        order.sort_by_key(|&rank| (class(rank), phase(rank), rank));
        let mut plan = Self {
            names: ranks.iter().map(|&index| tasks[index].name().to_owned()).collect(),
            phases: ranks.iter().map(|&index| phases[index]).collect(),
            classes: Vec::new(),
            groups: Vec::new(),
            masks: Vec::new(),
            slots: ranks.iter().map(|&index| slot(&tasks[index])).collect(),
            remote: ranks.iter().map(|&index| tasks[index].is_remote()).collect(),
            peak,
        };
        let mut before: Option<usize> = None;
        for rank in order {
            let same_class = before.is_some_and(|before| class(before) == class(rank));
            if !same_class {
                plan.push_class(&tasks[ranks[rank]], moves(rank));
            }
            if !same_class || before.is_some_and(|before| phase(before) != phase(rank)) {
                plan.push_run(phase(rank));
            }
            plan.push_rank(rank);
            before = Some(rank);
        }
        plan
    }

    fn push_class(&mut self, task: &Task, moves: bool) {
        let run = index(self.groups.len());
        self.classes.push(PeriodClass { period: task.period(), groups: (run, run), moves });
    }

    fn push_run(&mut self, phase_ns: u64) {
        let mask = index(self.masks.len());
        self.groups.push(PhaseGroup { phase_ns, masks: (mask, mask) });
        if let Some(class) = self.classes.last_mut() {
            class.groups.1 += 1;
        }
    }

    fn push_rank(&mut self, rank: usize) {
        let (word, bit) = (index(rank / 64), 1 << (rank % 64));
        let Some(run) = self.groups.last_mut() else { return };
        match self.masks.last_mut() {
            Some(mask) if run.masks.0 < run.masks.1 && mask.word == word => mask.bits |= bit,
            _ => {
                self.masks.push(Mask { word, bits: bit });
                run.masks.1 += 1;
            }
        }
        self.slots[rank].class = index(self.classes.len() - 1);
        self.slots[rank].group = index(self.groups.len() - 1);
    }

    /// The table whose release 0 of phase 0 is at `epoch`; at the zero of CLOCK_MONOTONIC, separate
    /// processes agree on all releases without talking.
    ///
    /// # Panics
    ///
    /// Never: the builder made what the table checks.
    ///
    /// # Real-time: setup only
    pub fn table(&self, epoch: Instant) -> Table<'_> {
        Table::new(epoch, &self.classes, &self.groups, &self.masks, &self.slots)
            .expect("the builder makes whole tables")
    }

    /// Storage for a run of this plan.
    ///
    /// # Real-time: setup only
    pub fn storage(&self) -> PlanStorage {
        PlanStorage {
            cursors: vec![Cursor::default(); self.classes.len()],
            matches: vec![Entry::default(); earliest::entries(self.classes.len())],
            words: vec![0; ready::words(self.slots.len())],
            released: vec![Released::default(); self.groups.len()],
            paces: vec![TaskPace::default(); self.slots.len()],
            counters: vec![Counters::default(); self.slots.len()],
        }
    }

    /// The number of tasks.
    ///
    /// # Real-time: setup only
    pub fn tasks(&self) -> usize {
        self.names.len()
    }

    /// The name of the task of this rank; rank 0 is the most urgent.
    ///
    /// # Real-time: setup only
    pub fn name(&self, rank: usize) -> &str {
        &self.names[rank]
    }

    /// The phase of the task of this rank, ns after the epoch.
    ///
    /// # Real-time: setup only
    pub fn phase_ns(&self, rank: usize) -> u64 {
        self.phases[rank]
    }

    /// The period and the phase, ns, of each task, by rank.
    ///
    /// # Real-time: setup only
    pub fn grids(&self) -> impl Iterator<Item = (Period, u64)> {
        (0..self.tasks()).map(|rank| (self.period(rank), self.phase_ns(rank)))
    }

    /// The budget of the task of this rank, ns; `None` where it has none.
    ///
    /// # Real-time: setup only
    pub fn budget_ns(&self, rank: usize) -> Option<u64> {
        Some(self.slots[rank].budget_ns).filter(|&ns| ns != u64::MAX)
    }

    /// The deadline of the task of this rank after its release, ns: its period where it has none.
    ///
    /// # Real-time: setup only
    pub fn deadline_ns(&self, rank: usize) -> u64 {
        self.slots[rank].deadline_ns
    }

    /// Returns true where the body of the task of this rank runs elsewhere: its loop only releases
    /// it.
    ///
    /// # Real-time: setup only
    pub fn is_remote(&self, rank: usize) -> bool {
        self.remote[rank]
    }

    /// The share of the CPU that all budgets take.
    ///
    /// # Real-time: setup only
    pub fn load(&self) -> f64 {
        let share = |rank: usize| {
            let class = self.class(rank);
            let budget_ns = self.budget_ns(rank).unwrap_or(0) as f64;
            budget_ns / class.period.as_ns_f64()
        };
        (0..self.tasks()).map(share).sum()
    }

    /// The class of the task of this rank.
    fn class(&self, rank: usize) -> &PeriodClass {
        &self.classes[self.slots[rank].class as usize]
    }

    /// The period of the task of this rank, ns, rounded down.
    ///
    /// # Real-time: setup only
    pub fn period_ns(&self, rank: usize) -> u64 {
        self.class(rank).period.as_ns()
    }

    /// The most releases that fall on one instant; an upper bound of it where the periods have a
    /// long common multiple.
    ///
    /// # Real-time: setup only
    pub fn peak(&self) -> u64 {
        self.peak.releases
    }

    /// The highest sum of budgets of tasks that are released at one instant, ns; an upper bound of
    /// it where the periods have a long common multiple. Tasks without a budget are left out;
    /// `None` where no task has one.
    ///
    /// # Real-time: setup only
    pub fn peak_load_ns(&self) -> Option<u64> {
        self.peak.load_ns
    }

    /// Bytes of the table, without the names and what each task alone has.
    ///
    /// # Real-time: setup only
    pub fn table_bytes(&self) -> usize {
        size_of_val(&*self.classes) + size_of_val(&*self.groups) + size_of_val(&*self.masks)
    }

    /// The period of the task of this rank.
    ///
    /// # Real-time: setup only
    pub fn period(&self, rank: usize) -> Period {
        self.class(rank).period
    }

    pub(super) fn moves(&self, rank: usize) -> bool {
        self.class(rank).moves
    }
}

/// The slot of a task in a table; its class and group come later.
fn slot(task: &Task) -> TaskSlot {
    TaskSlot {
        class: 0,
        group: 0,
        deadline_ns: task.deadline_ns().unwrap_or_else(|| task.period().as_ns()),
        budget_ns: task.budget_ns().unwrap_or(u64::MAX),
        start_ns: task.start_ns().unwrap_or(u64::MAX),
        policy: task.overrun_policy(),
    }
}

/// An index that fits, because there are at most `RANKS_MAX` of anything.
fn index(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
