//! The dispatcher against a model that keeps every release in a list.

mod followed;
mod looped;

use super::*;
use crate::earliest::{Entry, entries};
use crate::ready::words;
use crate::table::{Mask, OnOverrun, PeriodClass, PhaseGroup, TaskSlot};
use crate::time::Period;
use std::collections::VecDeque;
use std::vec;
use std::vec::Vec;

/// A task as a person would write it down; its rank is its place.
#[derive(Clone, Copy, Debug)]
struct Task {
    num_ns: u64,
    den: u64,
    phase_ns: u64,
    policy: OnOverrun,
}

/// The parts of a table, and its storage.
struct Parts {
    classes: Vec<PeriodClass>,
    groups: Vec<PhaseGroup>,
    masks: Vec<Mask>,
    slots: Vec<TaskSlot>,
}

/// Sorts tasks into classes and runs, as a builder does.
fn parts(tasks: &[Task]) -> Parts {
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    let alone = |rank: usize| if tasks[rank].policy == OnOverrun::Delay { rank + 1 } else { 0 };
    let key = |rank: usize| (tasks[rank].num_ns, tasks[rank].den, alone(rank));
    order.sort_by_key(|&rank| (key(rank), tasks[rank].phase_ns, rank));
    let blank = TaskSlot {
        class: 0,
        group: 0,
        deadline_ns: 50,
        budget_ns: 9,
        start_ns: 3,
        policy: OnOverrun::Skip,
    };
    let mut made =
        Parts { classes: vec![], groups: vec![], masks: vec![], slots: vec![blank; tasks.len()] };
    let mut before: Option<usize> = None;
    for rank in order {
        let task = &tasks[rank];
        let same_class = before.is_some_and(|other| key(other) == key(rank));
        let same_run = same_class && before.is_some_and(|b| tasks[b].phase_ns == task.phase_ns);
        let (groups, masks) = (made.groups.len() as u32, made.masks.len() as u32);
        if !same_class {
            let moves = task.policy == OnOverrun::Delay;
            let (num_ns, den) = (task.num_ns, task.den);
            let period = Period::ratio(num_ns, den).expect("in range");
            made.classes.push(PeriodClass { period, groups: (groups, groups), moves });
        }
        if !same_run {
            made.groups.push(PhaseGroup { phase_ns: task.phase_ns, masks: (masks, masks) });
            made.classes.last_mut().expect("pushed").groups.1 += 1;
        }
        let group = made.groups.last_mut().expect("pushed");
        let word = (rank / 64) as u32;
        match made.masks.last_mut() {
            Some(mask) if same_run && mask.word == word => mask.bits |= 1 << (rank % 64),
            _ => {
                made.masks.push(Mask { word, bits: 1 << (rank % 64) });
                group.masks.1 += 1;
            }
        }
        made.slots[rank].class = made.classes.len() as u32 - 1;
        made.slots[rank].group = made.groups.len() as u32 - 1;
        made.slots[rank].policy = task.policy;
        before = Some(rank);
    }
    made
}

/// The slow model: a queue of released cycles for each task.
struct Model<'m> {
    tasks: &'m [Task],
    epoch: u64,
    /// The last instant at which there is a release.
    last: u64,
    /// For each task: the next cycle to be released, those that wait, missed ones not yet counted,
    /// the phase's move, and whether it is held until its finish.
    next: Vec<u64>,
    waiting: Vec<VecDeque<u64>>,
    uncounted: Vec<u64>,
    moved: Vec<u64>,
    held: Vec<bool>,
    missed: Vec<u64>,
    ran: Vec<u64>,
}

impl<'m> Model<'m> {
    fn new(tasks: &'m [Task], epoch: u64, from: u64) -> Self {
        let n = tasks.len();
        let mut model = Self {
            tasks,
            epoch,
            last: u64::MAX,
            next: vec![0; n],
            waiting: vec![VecDeque::new(); n],
            uncounted: vec![0; n],
            moved: vec![0; n],
            held: vec![false; n],
            missed: vec![0; n],
            ran: vec![0; n],
        };
        for rank in 0..n {
            while model.at(rank, model.next[rank]) < from {
                model.next[rank] += 1;
            }
        }
        model
    }

    fn at(&self, rank: usize, cycle: u64) -> u64 {
        let Task { num_ns, den, phase_ns, .. } = self.tasks[rank];
        self.epoch + self.moved[rank] + cycle * num_ns / den + phase_ns
    }

    fn release(&mut self, now: u64) {
        let now = now.min(self.last);
        for rank in 0..self.tasks.len() {
            while !self.held[rank] && self.at(rank, self.next[rank]) <= now {
                self.waiting[rank].push_back(self.next[rank]);
                self.next[rank] += 1;
                self.held[rank] = self.tasks[rank].policy == OnOverrun::Delay;
            }
        }
    }

    /// Rank, cycle, release, next release, missed; or when the next release is.
    fn step(&mut self, now: u64) -> Result<(usize, u64, u64, u64, u64), u64> {
        self.release(now);
        let Some(rank) = self.waiting.iter().position(|queue| !queue.is_empty()) else {
            let free = (0..self.tasks.len()).filter(|&rank| !self.held[rank]);
            return Err(free.map(|rank| self.at(rank, self.next[rank])).min().unwrap_or(u64::MAX));
        };
        let mut missed = std::mem::take(&mut self.uncounted[rank]);
        if let OnOverrun::Burst(most) = self.tasks[rank].policy {
            while self.waiting[rank].len() > most as usize {
                self.waiting[rank].pop_front();
                missed += 1;
                self.missed[rank] += 1;
            }
        }
        let cycle = self.waiting[rank].pop_front().expect("not empty");
        let mut passed = 0;
        if !matches!(self.tasks[rank].policy, OnOverrun::Burst(_)) {
            // The oldest one runs; the next cycle counts the others.
            passed = self.waiting[rank].drain(..).count() as u64;
            self.uncounted[rank] += passed;
            self.missed[rank] += passed;
        }
        self.ran[rank] += 1;
        Ok((rank, cycle, self.at(rank, cycle), self.at(rank, cycle + 1 + passed), missed))
    }

    fn finish(&mut self, rank: usize, cycle: u64, now: u64) {
        match self.tasks[rank].policy {
            OnOverrun::Delay => {
                let (planned, task) = (self.at(rank, cycle + 1), self.tasks[rank]);
                if planned <= now {
                    self.moved[rank] += now - planned + task.num_ns.div_ceil(task.den);
                }
                self.held[rank] = false;
            }
            OnOverrun::Burst(_) => {}
            _ if self.at(rank, cycle + 1) <= now => {
                self.release(now);
                self.uncounted[rank] += self.waiting[rank].len() as u64;
                self.missed[rank] += self.waiting[rank].len() as u64;
                self.waiting[rank].clear();
            }
            _ => {}
        }
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888);
        (self.0 >> 33) % n
    }
}

/// Storage of a state.
struct Room {
    cursors: Vec<Cursor>,
    matches: Vec<Entry>,
    words: Vec<u64>,
    released: Vec<Released>,
    paces: Vec<TaskPace>,
    counters: Vec<Counters>,
}

impl Room {
    fn of(table: &Table<'_>) -> Self {
        Self {
            cursors: vec![Cursor::default(); table.classes()],
            matches: vec![Entry::default(); entries(table.classes())],
            words: vec![0; words(table.tasks())],
            released: vec![Released::default(); table.groups.len()],
            paces: vec![TaskPace::default(); table.tasks()],
            counters: vec![Counters::default(); table.tasks()],
        }
    }

    fn lend(&mut self) -> Storage<'_> {
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

impl Parts {
    fn table(&self, epoch: u64) -> Table<'_> {
        let Self { classes, groups, masks, slots } = self;
        Table::new(Instant::from_ns(epoch), classes, groups, masks, slots).expect("a table")
    }
}

/// Runs both for `steps` decisions; the machine is idle, busy or stalled at random.
fn agree(tasks: &[Task], seed: u64, steps: u32) {
    let parts = parts(tasks);
    let epoch = 1_000 + seed % 97;
    let table = parts.table(epoch);
    let mut room = Room::of(&table);
    let mut random = Random(seed);
    let mut now = epoch + random.below(200);
    let mut state = TableState::begin(&table, room.lend(), Instant::from_ns(now)).expect("it fits");
    let mut model = Model::new(tasks, epoch, now);
    side_by_side((&table, &mut state), &mut model, &mut random, &mut now, steps);
}

/// Runs both for `steps` decisions, and holds the counters against each other at the end.
fn side_by_side(
    (table, state): (&Table<'_>, &mut TableState<'_>),
    model: &mut Model<'_>,
    random: &mut Random,
    now: &mut u64,
    steps: u32,
) {
    let tasks = model.tasks;
    for at in 0..steps {
        let shown = (at, *now, tasks);
        match (step(table, state, Instant::from_ns(*now)), model.step(*now)) {
            (Decision::Idle(until), Err(slow)) => {
                assert_eq!(until.as_ns(), slow, "{shown:?}");
                let stall = if random.below(50) == 0 { random.below(5_000) } else { 0 };
                *now = slow.min(*now + 5_000) + random.below(4) + stall;
            }
            (Decision::Run(job), Ok((rank, cycle, release, next, missed))) => {
                let fast = (job.rank, job.cycle, job.release.as_ns(), job.next.as_ns(), job.missed);
                assert_eq!(fast, (rank, cycle, release, next, missed), "{shown:?}");
                let start = *now + random.below(3);
                let long = if random.below(20) == 0 { random.below(400) } else { 1 };
                *now = start + random.below(5) + long;
                let end = Instant::from_ns(*now);
                let overruns = finish(table, state, &job, Instant::from_ns(start), end);
                assert_eq!(overruns.over_release, *now >= next);
                assert_eq!(overruns.over_budget, *now - start > 9);
                assert_eq!(overruns.started_late, start - release > 3);
                assert_eq!(overruns.over_deadline, *now - release > 50);
                model.finish(rank, cycle, *now);
            }
            (fast, slow) => panic!("{fast:?} against {slow:?}: {shown:?}"),
        }
    }
    for rank in 0..tasks.len() {
        let counters = state.counters(rank);
        assert_eq!(counters.ran, model.ran[rank], "{rank} of {tasks:?}");
        assert_eq!(counters.missed, model.missed[rank], "{rank} of {tasks:?}");
        assert_eq!(counters.moved_ns, model.moved[rank], "{rank} of {tasks:?}");
    }
}

fn some(random: &mut Random, policy: Option<OnOverrun>) -> Vec<Task> {
    let mixed = [
        OnOverrun::Skip,
        OnOverrun::Burst(2),
        OnOverrun::Burst(5),
        OnOverrun::Delay,
        OnOverrun::Terminate,
    ];
    (0..=random.below(6))
        .map(|_| {
            let (num_ns, den) =
                [(40, 1), (60, 1), (100, 3), (97, 1), (500, 7), (40, 1)][random.below(6) as usize];
            let phase_ns = random.below(num_ns / den);
            let policy = policy.unwrap_or(mixed[random.below(5) as usize]);
            Task { num_ns, den, phase_ns, policy }
        })
        .collect()
}

#[test]
fn every_policy_agrees_with_the_model() {
    let policies = [
        OnOverrun::Skip,
        OnOverrun::Burst(3),
        OnOverrun::Delay,
        OnOverrun::Terminate,
        OnOverrun::Stop,
    ];
    let mut random = Random(11);
    for seed in 0..60 {
        for policy in policies.into_iter().map(Some).chain([None]) {
            agree(&some(&mut random, policy), seed, 3_000);
        }
    }
}
