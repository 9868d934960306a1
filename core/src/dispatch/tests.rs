//! The dispatcher, alone, in its loop and while tables follow one another, against a model that
//! keeps every release in a list.

use core::sync::atomic::AtomicBool;
use std::boxed::Box;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::vec;
use std::vec::Vec;

use super::*;
use crate::clock::Clock;
use crate::cycle::{Cycle, Ended, Flow, Missed, Observe};
use crate::earliest::{Entry, entries};
use crate::executive::{Dispatch, Many};
use crate::ready::words;
use crate::table::{Mask, OnOverrun, PeriodClass, PhaseGroup, TaskSlot};
use crate::testing::Random;
use crate::time::Period;
use crate::wait::Wait;

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
        let same_class = before.is_some_and(|earlier| key(earlier) == key(rank));
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

/// Storage of a state.
struct Backing {
    cursors: Vec<Cursor>,
    matches: Vec<Entry>,
    words: Vec<u64>,
    released: Vec<Released>,
    paces: Vec<TaskPace>,
    counters: Vec<Counters>,
}

impl Backing {
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
    let mut backing = Backing::of(&table);
    let mut random = Random::new(seed);
    let mut now = epoch + random.below(200);
    let mut state =
        TableState::begin(&table, backing.lend(), Instant::from_ns(now)).expect("it fits");
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
    let mut random = Random::new(11);
    for seed in 0..60 {
        for policy in policies.into_iter().map(Some).chain([None]) {
            agree(&some(&mut random, policy), seed, 3_000);
        }
    }
}

/// A table's parts and its storage, as they are kept while the table runs.
struct Leg {
    parts: Parts,
    backing: Backing,
}

impl Leg {
    fn of(tasks: &[Task], epoch: u64) -> Self {
        let parts = parts(tasks);
        let backing = Backing::of(&parts.table(epoch));
        Self { parts, backing }
    }
}

impl<'m> Model<'m> {
    /// Makes the model of other tasks at `now`, those of `ranks` going on.
    fn follow(&mut self, tasks: &'m [Task], ranks: &[Option<u32>], now: u64) -> Self {
        self.release(now);
        let mut next = Model::new(tasks, self.epoch, now + 1);
        for (rank, from) in ranks.iter().enumerate() {
            let Some(from) = from.map(|from| from as usize) else { continue };
            next.next[rank] = self.next[from];
            next.waiting[rank] = std::mem::take(&mut self.waiting[from]);
            next.uncounted[rank] = self.uncounted[from];
            next.moved[rank] = self.moved[from];
            next.held[rank] = self.held[from];
            next.missed[rank] = self.missed[from];
            next.ran[rank] = self.ran[from];
        }
        next
    }
}

/// Some tasks removed, some added, all at other ranks.
fn changed(random: &mut Random, tasks: &[Task]) -> (Vec<Task>, Vec<Option<u32>>) {
    let kept = |random: &mut Random| random.below(4) > 0;
    let mut next: Vec<(Task, Option<u32>)> = Vec::new();
    for (rank, task) in tasks.iter().enumerate() {
        if kept(random) {
            next.push((*task, Some(rank as u32)));
        }
    }
    let new = if random.below(3) > 0 { some(random, None) } else { Vec::new() };
    next.extend(new.into_iter().take(8).map(|task| (task, None)));
    for at in (1..next.len()).rev() {
        next.swap(at, random.below(at as u64 + 1) as usize);
    }
    next.truncate(80);
    next.into_iter().unzip()
}

#[test]
fn a_table_that_follows_another_agrees_with_the_model() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let epoch = 1_000 + seed % 97;
        let mut now = epoch + random.below(200);
        let mut tasks: &[Task] = Box::leak(some(&mut random, None).into());
        let mut leg = Leg::of(tasks, epoch);
        let mut model = Model::new(tasks, epoch, now);
        let table = leg.parts.table(epoch);
        TableState::begin(&table, leg.backing.lend(), Instant::from_ns(now)).expect("it fits");
        for _ in 0..100 {
            let steps = random.below(200) as u32;
            let (next, ranks) = changed(&mut random, tasks);
            let mut leg_after = Leg::of(&next, epoch);
            let table = leg.parts.table(epoch);
            let mut state = TableState::resume(&table, leg.backing.lend()).expect("left there");
            side_by_side((&table, &mut state), &mut model, &mut random, &mut now, steps);
            now += random.below(300) / 100;
            let table_after = leg_after.parts.table(epoch);
            let before = Before { table: &table, state: &mut state, ranks: &ranks };
            let at = Instant::from_ns(now);
            let state_after =
                TableState::follow(&table_after, leg_after.backing.lend(), before, at);
            tasks = Box::leak(next.into());
            drop(state_after.unwrap_or_else(|why| panic!("{why:?}: {tasks:?}")));
            model = model.follow(tasks, &ranks, now);
            drop(state);
            leg = leg_after;
        }
    }
}

#[test]
fn what_does_not_fit_is_refused_and_nothing_is_changed() {
    let task = |num_ns, policy| Task { num_ns, den: 1, phase_ns: 0, policy };
    let old = [task(40, OnOverrun::Skip), task(60, OnOverrun::Delay), task(100, OnOverrun::Skip)];
    let mut leg = Leg::of(&old, 1_000);
    let table = leg.parts.table(1_000);
    let mut storage = Backing::of(&table);
    let mut state =
        TableState::begin(&table, storage.lend(), Instant::from_ns(1_030)).expect("fits");
    let now = Instant::from_ns(1_035);
    let mut refused = |tasks: &[Task], epoch: u64, ranks: &[Option<u32>]| {
        let parts = parts(tasks);
        let next = parts.table(epoch);
        let mut backing = Backing::of(&next);
        let before = Before { table: &table, state: &mut state, ranks };
        TableState::follow(&next, backing.lend(), before, now).err()
    };
    let tasks = [task(40, OnOverrun::Skip)];
    assert_eq!(refused(&tasks, 999, &[None]), Some(Mismatch::Epoch));
    assert_eq!(refused(&tasks, 1_000, &[]), Some(Mismatch::Ranks));
    for from in [1, 2, 3, u32::MAX] {
        assert_eq!(refused(&tasks, 1_000, &[Some(from)]), Some(Mismatch::Task(0)), "{from}");
    }
    let two = [tasks[0], tasks[0]];
    assert_eq!(refused(&two, 1_000, &[Some(0), Some(0)]), Some(Mismatch::Task(1)));
    let moved = [Task { phase_ns: 1, ..tasks[0] }];
    assert_eq!(refused(&moved, 1_000, &[Some(0)]), Some(Mismatch::Task(0)));
    assert_eq!(refused(&tasks, 1_000, &[Some(0)]), None, "the marks are gone");
    let early = Before { table: &table, state: &mut state, ranks: &[Some(0), Some(1), Some(2)] };
    let small =
        TableState::follow(&table, Backing::of(&parts(&tasks).table(1_000)).lend(), early, now)
            .err();
    assert_eq!(small, Some(Mismatch::Storage));
    assert_eq!(step(&table, &mut state, now), Decision::Idle(Instant::from_ns(1_040)));
    // Before the first release of a state that begins later.
    let mut later = Backing::of(&table);
    let from = Instant::from_ns(1_900);
    let mut later = TableState::begin(&table, later.lend(), from).expect("fits");
    let ranks = [Some(0), Some(1), Some(2)];
    let before = Before { table: &table, state: &mut later, ranks: &ranks };
    let early = TableState::follow(&table, leg.backing.lend(), before, now).err();
    assert_eq!(early, Some(Mismatch::Early(0)));
    assert_eq!(step(&table, &mut later, now), Decision::Idle(Instant::from_ns(1_900)));
}

#[test]
fn storage_of_no_state_or_of_another_is_not_resumed() {
    let mut random = Random::new(5);
    for _ in 0..200 {
        let (a, b) = (some(&mut random, None), some(&mut random, None));
        let (mut a, b) = (Leg::of(&a, 7), Leg::of(&b, 7));
        let table = a.parts.table(7);
        assert!(TableState::resume(&table, a.backing.lend()).is_none(), "never begun");
        let now = Instant::from_ns(500);
        drop(TableState::begin(&table, a.backing.lend(), now).expect("it fits"));
        let foreign = b.parts.table(7);
        if let Some(mut state) = TableState::resume(&foreign, a.backing.lend()) {
            // By all that is known it is one, and then it runs.
            for at in 0..1_000 {
                let now = Instant::from_ns(500 + at * 3);
                if let Decision::Run(job) = step(&foreign, &mut state, now) {
                    finish(&foreign, &mut state, &job, now, now);
                }
            }
        }
        assert!(TableState::resume(&table, a.backing.lend()).is_some());
    }
}

/// The simulated machine and the model beside it, for the whole loop of many tasks. Ten million
/// cycles of each policy take a minute:
/// `PUNCTUAL_CYCLES=10000000 cargo test --release -p punctual-core --lib loop_agrees`.
struct World<'m> {
    now: u64,
    model: Model<'m>,
    random: Random,
    cycles: u64,
    /// The task that ran last, where it ran past its next release.
    overran: Option<usize>,
    /// Releases of each task that no cycle counted before the end.
    never_ran: Vec<u64>,
}

/// The clock, the wait, the tasks and the observer of a loop, all of one world.
#[derive(Clone, Copy)]
struct In<'w, 'm>(&'w RefCell<World<'m>>);

impl Clock for In<'_, '_> {
    fn now(&mut self) -> Instant {
        Instant::from_ns(self.0.borrow().now)
    }
    fn poll(&mut self) -> Instant {
        self.now()
    }
    fn sleep_until(&mut self, _: Instant) {}
    fn wake(&mut self) -> Instant {
        self.now()
    }
    fn relax(&mut self) {}
}

impl Wait for In<'_, '_> {
    /// Now and then there is time for warm-ups, which are not observed.
    fn near<C: Clock>(&mut self, _: &mut C, release: Instant, _: &AtomicBool) -> Option<Instant> {
        let ahead = self.0.borrow_mut().random.below(2) * 10_000;
        Some(Instant::from_ns(release.as_ns().saturating_sub(ahead)))
    }

    fn until<C: Clock>(&mut self, _: &mut C, release: Instant, _: &AtomicBool) -> Option<Instant> {
        let mut world = self.0.borrow_mut();
        let now = world.now;
        assert_eq!(world.model.step(now), Err(release.as_ns()), "at {now}");
        let stall = if world.random.below(50) == 0 { world.random.below(5_000) } else { 0 };
        world.now = release.as_ns() + world.random.below(4) + stall;
        Some(Instant::from_ns(world.now))
    }
}

impl Dispatch for In<'_, '_> {
    fn run(&mut self, rank: usize, cycle: &mut Cycle<'_>) -> Flow {
        let mut world = self.0.borrow_mut();
        let now = world.now;
        let got = (rank, cycle.n, cycle.release.as_ns(), cycle.next.as_ns(), cycle.missed);
        let mut expected = world.model.step(now);
        if let Ok((_, _, _, next, _)) = &mut expected
            && world.model.tasks[rank].policy == OnOverrun::Delay
            && *next <= now
        {
            *next = now + world.model.tasks[rank].num_ns / world.model.tasks[rank].den;
        }
        assert_eq!(expected, Ok(got), "at {now}");
        assert_eq!(cycle.lateness.as_ns(), (now - cycle.release.as_ns()).cast_signed());
        let long = if world.random.below(20) == 0 { world.random.below(400) } else { 1 };
        world.now += world.random.below(5) + long;
        world.cycles += 1;
        Flow::Continue
    }
}

impl Observe for In<'_, '_> {
    fn ran(&mut self, job: &Job, start: Instant, finish: Instant, overruns: Overruns) {
        let mut world = self.0.borrow_mut();
        let right = Overruns {
            started_late: (start - job.release).as_ns() > 3,
            over_budget: (finish - start).as_ns() > 9,
            over_release: finish >= job.next,
            over_deadline: (finish - job.release).as_ns() > 50,
        };
        assert_eq!(overruns, right);
        world.overran = right.over_release.then_some(job.rank);
        world.model.finish(job.rank, job.cycle, finish.as_ns());
    }

    fn never_ran(&mut self, rank: usize, missed: Missed, end: Instant) {
        let mut world = self.0.borrow_mut();
        world.never_ran[rank] += missed.count;
        let last = missed.first + missed.count - 1;
        assert_eq!(missed.releases.release(last).as_ns(), world.model.at(rank, last));
        assert!(missed.releases.release(last) <= end);
    }
}

/// Runs the loop over `tasks` until `end`, anew after each end by a task that stops everything.
/// Returns the number of cycles that ran.
fn agree_in_loop(tasks: &[Task], seed: u64, end: u64) -> u64 {
    let parts = parts(tasks);
    let epoch = 1_000 + seed % 97;
    let table = parts.table(epoch);
    let (mut from, mut cycles) = (epoch + seed % 200, 0);
    while from < end {
        let mut backing = Backing::of(&table);
        let mut state =
            TableState::begin(&table, backing.lend(), Instant::from_ns(from)).expect("it fits");
        let firsts: Vec<Counters> = (0..tasks.len()).map(|rank| state.counters(rank)).collect();
        assert!(firsts.iter().all(|counters| counters.ran == 0 && counters.missed == 0));
        let mut model = Model::new(tasks, epoch, from);
        model.last = end - 1;
        let random = Random::new(seed ^ from);
        let never_ran = vec![0; tasks.len()];
        let world = World { now: from, model, random, cycles: 0, overran: None, never_ran };
        let world = RefCell::new(world);
        let world_parts = In(&world);
        let mut many = Many {
            clock: world_parts,
            wait: world_parts,
            tasks: world_parts,
            observe: world_parts,
        };
        let ended = many.run(&table, &mut state, Instant::from_ns(end), &AtomicBool::new(false));
        let mut world = world.into_inner();
        let given: u64 = (0..tasks.len()).map(|rank| state.counters(rank).ran).sum();
        let now = world.now;
        match ended {
            Ended::Finished => assert!(world.model.step(now).is_err_and(|until| until >= end)),
            Ended::Overran(rank) => {
                assert_eq!(tasks[rank].policy, OnOverrun::Stop);
                let overran = state.counters(rank).over_release > 0;
                assert!(overran, "{rank} at {now}");
                // At its end; or before it ran, of a cycle that was due twice, which is missed too.
                if world.overran != Some(rank) {
                    let unrun = world.model.step(now);
                    let twice = |cycle| world.model.at(rank, cycle + 1) <= now;
                    let due = unrun.is_ok_and(|job| job.0 == rank && twice(job.1));
                    assert!(due, "{unrun:?}");
                    // It never ran, and what it would have counted nobody did.
                    world.model.missed[rank] += 1;
                    world.model.uncounted[rank] += 1 + unrun.map_or(0, |job| job.4);
                }
            }
            Ended::Stopped => panic!("it was not stopped"),
        }
        assert_eq!(given, world.cycles);
        world.model.release(now);
        for rank in 0..tasks.len() {
            let counters = state.counters(rank);
            let waiting = world.model.waiting[rank].len() as u64;
            let pending = world.model.uncounted[rank] + waiting;
            assert_eq!(world.never_ran[rank], pending, "{rank} of {tasks:?}");
            world.model.missed[rank] += waiting;
            assert_eq!(counters.missed, world.model.missed[rank], "{rank} of {tasks:?}");
            assert_eq!(counters.moved_ns, world.model.moved[rank], "{rank} of {tasks:?}");
        }
        cycles += world.cycles;
        from = now + 1;
    }
    cycles
}

/// Every policy alone, and all but stopping mixed.
const POLICIES: [Option<OnOverrun>; 6] = [
    Some(OnOverrun::Skip),
    Some(OnOverrun::Burst(3)),
    Some(OnOverrun::Delay),
    Some(OnOverrun::Terminate),
    Some(OnOverrun::Stop),
    None,
];

/// Cycles of each policy at least: `PUNCTUAL_CYCLES`, or few enough for a test of every day.
fn cycles_asked() -> u64 {
    std::env::var("PUNCTUAL_CYCLES").ok().and_then(|n| n.parse().ok()).unwrap_or(10_000)
}

#[test]
fn the_loop_agrees_with_the_model_for_every_policy() {
    for policy in POLICIES {
        let mut random = Random::new(17);
        let (mut cycles, mut seed) = (0, 0);
        while cycles < cycles_asked() || seed < 10 {
            let end = if cycles_asked() > 1_000_000 { 2_000_000 } else { 20_000 };
            cycles += agree_in_loop(&some(&mut random, policy), seed, end);
            seed += 1;
        }
    }
}
