//! Tables that follow one another while they run, against the same model.

use super::*;
use std::boxed::Box;

/// A table's parts and its storage, as they are kept while the table runs.
struct Leg {
    parts: Parts,
    room: Room,
}

impl Leg {
    fn of(tasks: &[Task], epoch: u64) -> Self {
        let parts = parts(tasks);
        let room = Room::of(&parts.table(epoch));
        Self { parts, room }
    }
}

impl<'m> Model<'m> {
    /// What the model of other tasks is at `now`, those of `ranks` going on.
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
        let mut random = Random(seed);
        let epoch = 1_000 + seed % 97;
        let mut now = epoch + random.below(200);
        let mut tasks: &[Task] = Box::leak(some(&mut random, None).into());
        let mut leg = Leg::of(tasks, epoch);
        let mut model = Model::new(tasks, epoch, now);
        let table = leg.parts.table(epoch);
        TableState::begin(&table, leg.room.lend(), Instant::from_ns(now)).expect("it fits");
        for _ in 0..100 {
            let steps = random.below(200) as u32;
            let (next, ranks) = changed(&mut random, tasks);
            let mut leg_after = Leg::of(&next, epoch);
            let table = leg.parts.table(epoch);
            let mut state = TableState::resume(&table, leg.room.lend()).expect("left there");
            side_by_side((&table, &mut state), &mut model, &mut random, &mut now, steps);
            now += random.below(300) / 100;
            let table_after = leg_after.parts.table(epoch);
            let before = Before { table: &table, state: &mut state, ranks: &ranks };
            let at = Instant::from_ns(now);
            let state_after = TableState::follow(&table_after, leg_after.room.lend(), before, at);
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
    let mut storage = Room::of(&table);
    let mut state =
        TableState::begin(&table, storage.lend(), Instant::from_ns(1_030)).expect("fits");
    let now = Instant::from_ns(1_035);
    let mut refused = |tasks: &[Task], epoch: u64, ranks: &[Option<u32>]| {
        let parts = parts(tasks);
        let next = parts.table(epoch);
        let mut room = Room::of(&next);
        let before = Before { table: &table, state: &mut state, ranks };
        TableState::follow(&next, room.lend(), before, now).err()
    };
    let one = [task(40, OnOverrun::Skip)];
    assert_eq!(refused(&one, 999, &[None]), Some(Mismatch::Epoch));
    assert_eq!(refused(&one, 1_000, &[]), Some(Mismatch::Ranks));
    for from in [1, 2, 3, u32::MAX] {
        assert_eq!(refused(&one, 1_000, &[Some(from)]), Some(Mismatch::Task(0)), "{from}");
    }
    let two = [one[0], one[0]];
    assert_eq!(refused(&two, 1_000, &[Some(0), Some(0)]), Some(Mismatch::Task(1)));
    let moved = [Task { phase_ns: 1, ..one[0] }];
    assert_eq!(refused(&moved, 1_000, &[Some(0)]), Some(Mismatch::Task(0)));
    assert_eq!(refused(&one, 1_000, &[Some(0)]), None, "the marks are gone");
    let early = Before { table: &table, state: &mut state, ranks: &[Some(0), Some(1), Some(2)] };
    let small =
        TableState::follow(&table, Room::of(&parts(&one).table(1_000)).lend(), early, now).err();
    assert_eq!(small, Some(Mismatch::Storage));
    assert_eq!(step(&table, &mut state, now), Decision::Idle(Instant::from_ns(1_040)));
    // Before the first release of a state that begins later.
    let mut later = Room::of(&table);
    let from = Instant::from_ns(1_900);
    let mut later = TableState::begin(&table, later.lend(), from).expect("fits");
    let ranks = [Some(0), Some(1), Some(2)];
    let before = Before { table: &table, state: &mut later, ranks: &ranks };
    let early = TableState::follow(&table, leg.room.lend(), before, now).err();
    assert_eq!(early, Some(Mismatch::Early(0)));
    assert_eq!(step(&table, &mut later, now), Decision::Idle(Instant::from_ns(1_900)));
}

#[test]
fn storage_of_no_state_or_of_another_is_not_resumed() {
    let mut random = Random(5);
    for _ in 0..200 {
        let (a, b) = (some(&mut random, None), some(&mut random, None));
        let (mut a, b) = (Leg::of(&a, 7), Leg::of(&b, 7));
        let table = a.parts.table(7);
        assert!(TableState::resume(&table, a.room.lend()).is_none(), "never begun");
        let now = Instant::from_ns(500);
        drop(TableState::begin(&table, a.room.lend(), now).expect("it fits"));
        let other = b.parts.table(7);
        if let Some(mut state) = TableState::resume(&other, a.room.lend()) {
            // By all that is known it is one, and then it runs.
            for at in 0..1_000 {
                let now = Instant::from_ns(500 + at * 3);
                if let Decision::Run(job) = step(&other, &mut state, now) {
                    finish(&other, &mut state, &job, now, now);
                }
            }
        }
        assert!(TableState::resume(&table, a.room.lend()).is_some());
    }
}
