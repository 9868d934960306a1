//! The calendar against a model that keeps every place of every frame in a list.

use super::*;
use crate::cycle::{Decision, Flow};
use std::collections::{BTreeSet, VecDeque};
use std::vec;
use std::vec::Vec;

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888);
        (self.0 >> 33) % n
    }
}

/// One place of one frame.
#[derive(Clone, Copy, Debug)]
struct Place {
    frame: u64,
    ready: u64,
    latest: u64,
    task: usize,
}

/// The slow model: every place in a list, every cycle in a set.
struct Model<'m> {
    units: &'m [UnitSlot],
    policies: &'m [OnOverrun],
    frame_ns: u64,
    places: VecDeque<Place>,
    frames: u64,
    epoch: u64,
    /// For each task: cycles begun or given up, the one broken off and its breaks, missed cycles
    /// not yet counted, the frame from which on it is to be looked for, and what it did.
    used: Vec<BTreeSet<u64>>,
    broken: Vec<Option<(u64, u32)>>,
    uncounted: Vec<u64>,
    first: Vec<Option<u64>>,
    counters: Vec<UnitCounters>,
}

impl<'m> Model<'m> {
    fn new(calendar: &'m UnitTable<'m>, from: u64) -> Self {
        let tasks = calendar.tasks();
        let mut model = Self {
            units: calendar.units,
            policies: calendar.tasks,
            frame_ns: calendar.frame_ns,
            places: VecDeque::new(),
            frames: 0,
            epoch: calendar.epoch.as_ns(),
            used: vec![BTreeSet::new(); tasks],
            broken: vec![None; tasks],
            uncounted: vec![0; tasks],
            first: vec![None; tasks],
            counters: vec![UnitCounters::default(); tasks],
        };
        while model.first.iter().any(Option::is_none) {
            model.fill();
            model.places.retain(|place| place.ready >= from);
            for task in 0..tasks {
                let of = model.places.iter().find(|place| place.task == task);
                model.first[task] = of.map(|place| place.frame);
            }
        }
        model
    }

    fn fill(&mut self) {
        let start = self.epoch + self.frames * self.frame_ns;
        self.places.extend(self.units.iter().map(|unit| Place {
            frame: self.frames,
            ready: start + unit.ready_ns,
            latest: start + unit.deadline_ns,
            task: unit.task as usize,
        }));
        self.frames += 1;
    }

    /// Rank, cycle, part, release, missed; or when the next unit is ready.
    fn step(&mut self, now: u64) -> Result<(usize, u64, u32, u64, u64), u64> {
        loop {
            if self.places.len() <= self.units.len() {
                self.fill();
            }
            let place = self.places[0];
            let Place { frame, ready, latest, task } = place;
            if self.broken[task].is_none() && self.used[task].contains(&frame) {
                self.counters[task].spare_units += 1;
                self.places.pop_front();
                continue;
            }
            if ready > now {
                return Err(ready);
            }
            self.places.pop_front();
            if now >= latest {
                self.counters[task].missed_units += 1;
                continue;
            }
            let missed = self.begin(task, frame);
            let (cycle, part) = self.broken[task].unwrap_or((frame, 0));
            return Ok((task, cycle, part, ready, missed));
        }
    }

    fn begin(&mut self, task: usize, frame: u64) -> u64 {
        let new_frame = !self.used[task].contains(&frame);
        if self.broken[task].is_some() && new_frame {
            self.counters[task].over_frame += 1;
            if self.policies[task] == OnOverrun::Terminate {
                self.counters[task].terminated += 1;
                self.broken[task] = None;
            }
        }
        let resumed = self.broken[task].is_some();
        let from = self.first[task].expect("set");
        for other in from..=frame {
            if self.used[task].insert(other) && (other < frame || resumed) {
                self.counters[task].missed += 1;
                self.uncounted[task] += 1;
            }
        }
        // All before this one are settled.
        self.first[task] = Some(frame);
        if resumed { 0 } else { std::mem::take(&mut self.uncounted[task]) }
    }

    fn finish(&mut self, task: usize, cycle: u64, part: u32, flow: Flow, over_budget: bool) {
        self.counters[task].ran += 1;
        self.broken[task] = None;
        if flow == Flow::Break {
            self.counters[task].breaks += 1;
            if over_budget && self.policies[task] == OnOverrun::Terminate {
                self.counters[task].terminated += 1;
            } else {
                self.broken[task] = Some((cycle, part + 1));
            }
        }
    }
}

/// A calendar of up to 12 units in a frame of 1 000 ns.
fn some(random: &mut Random) -> (Vec<UnitSlot>, Vec<OnOverrun>) {
    let kinds = [OnOverrun::Skip, OnOverrun::Terminate, OnOverrun::Stop];
    let tasks: Vec<OnOverrun> =
        (0..=random.below(4)).map(|_| kinds[random.below(3) as usize]).collect();
    let mut units = Vec::new();
    let mut at = 0;
    while units.len() < 12 {
        let ready_ns = at + random.below(2) * random.below(150);
        let budget_ns = 1 + random.below(200);
        at = ready_ns + budget_ns;
        if at > 1_000 {
            break;
        }
        let latest = at + random.below(ready_ns + 1_000 - at + 1);
        let deadline_ns = if random.below(2) == 0 { at } else { latest };
        let task = if units.len() < tasks.len() { units.len() as u64 } else { random.below(9) };
        let task = (task % tasks.len() as u64) as u32;
        units.push(UnitSlot { ready_ns, budget_ns, deadline_ns, start_ns: 3, task });
    }
    let named = units.iter().map(|unit| unit.task + 1).max().unwrap_or(0) as usize;
    (units, tasks[..named].to_vec())
}

/// Runs both for `steps` decisions; tasks are done, break off, overrun and stall at random.
fn agree(units: &[UnitSlot], policies: &[OnOverrun], seed: u64, steps: u32) {
    let frame = Period::from_ns(1_000).expect("positive");
    let epoch = Instant::from_ns(5_000 + seed % 777);
    let calendar = UnitTable::new(epoch, frame, units, policies).expect("a calendar");
    let mut random = Random(seed);
    let from = 4_000 + random.below(4_000);
    let mut now = from;
    let mut storage = vec![TaskProgress::default(); policies.len()];
    let mut state =
        CalendarState::begin(&calendar, &mut storage, Instant::from_ns(now)).expect("it fits");
    let mut model = Model::new(&calendar, now);
    for at in 0..steps {
        let shown = (at, now, units, policies);
        match (step(&calendar, &mut state, Instant::from_ns(now)), model.step(now)) {
            (Decision::Idle(until), Err(slow)) => {
                assert_eq!(until.as_ns(), slow, "{shown:?}");
                let stall = if random.below(40) == 0 { random.below(9_000) } else { 0 };
                now = slow + random.below(4) + stall;
            }
            (Decision::Run(job), Ok((task, cycle, part, release, missed))) => {
                let fast = (job.rank, job.cycle, job.part, job.release.as_ns(), job.missed);
                assert_eq!(fast, (task, cycle, part, release, missed), "{shown:?}");
                let budget = job.next.as_ns() - now;
                assert!(units.iter().any(|u| u.budget_ns == budget && u.task as usize == task));
                let took = match random.below(12) {
                    0 => budget + 1 + random.below(900),
                    _ => random.below(budget + 1),
                };
                let flow = [Flow::Continue, Flow::Break][(random.below(3) / 2) as usize];
                let (start, end) = (Instant::from_ns(now), Instant::from_ns(now + took));
                let overruns = finish(&calendar, &mut state, &job, start, end, flow);
                assert_eq!(overruns.over_budget, took > budget, "{shown:?}");
                assert_eq!(overruns.started_late, now - release > 3, "{shown:?}");
                now += took;
                model.finish(task, cycle, part, flow, took > budget);
            }
            (fast, slow) => panic!("{fast:?} against {slow:?}: {shown:?}"),
        }
    }
    // At the end each frame in which a task had a place by then ran or was missed.
    let over = now + random.below(2) * random.below(3_000);
    for task in 0..policies.len() {
        let start = |frame| epoch.as_ns() + frame * 1_000;
        let has_place = |frame: &u64| {
            let places = units.iter().filter(|unit| unit.task as usize == task);
            places.map(|unit| start(*frame) + unit.ready_ns).any(|at| (from..=over).contains(&at))
        };
        let frames = (0..).take_while(|&frame| start(frame) <= over).filter(has_place);
        let unused = frames.filter(|frame| !model.used[task].contains(frame)).count() as u64;
        let missed = state.never_ran(&calendar, task, Instant::from_ns(over));
        let count = missed.map_or(0, |missed| missed.count);
        assert_eq!(count, model.uncounted[task] + unused, "{task} of {units:?} {policies:?}");
        model.counters[task].missed += unused;
        assert!(state.never_ran(&calendar, task, Instant::from_ns(over)).is_none(), "once");
    }
    for (task, slow) in model.counters.iter().enumerate() {
        let fast = state.counters(task);
        let late = (fast.started_late, fast.over_budget, fast.over_release, fast.over_deadline);
        let (started_late, over_budget, over_release, over_deadline) = late;
        let whole =
            UnitCounters { started_late, over_budget, over_release, over_deadline, ..*slow };
        assert_eq!(*fast, whole, "{task} of {units:?} {policies:?}");
    }
}

#[test]
fn every_calendar_agrees_with_the_model() {
    let mut random = Random(5);
    for seed in 0..400 {
        let (units, policies) = some(&mut random);
        agree(&units, &policies, seed, 2_000);
    }
}

fn unit(ready_ns: u64, budget_ns: u64) -> UnitSlot {
    let end_ns = ready_ns.saturating_add(budget_ns);
    UnitSlot { ready_ns, budget_ns, deadline_ns: end_ns, start_ns: 0, task: 0 }
}

fn refusal(frame_ns: u64, units: &[UnitSlot], tasks: &[OnOverrun]) -> Option<UnitTableError> {
    let frame = Period::from_ns(frame_ns).expect("positive");
    UnitTable::new(Instant::from_ns(0), frame, units, tasks).err()
}

#[test]
fn what_cannot_be_is_refused() {
    use UnitTableError as E;
    let tasks = [OnOverrun::Skip];
    assert_eq!(refusal(100, &[], &tasks), Some(E::Units(0)));
    assert_eq!(refusal(100, &[unit(0, 100)], &tasks), None);
    assert_eq!(refusal(100, &[unit(0, 101)], &tasks), Some(E::Unit(0)));
    assert_eq!(refusal(100, &[unit(100, 1)], &tasks), Some(E::Unit(0)));
    assert_eq!(refusal(100, &[unit(u64::MAX, u64::MAX)], &tasks), Some(E::Unit(0)));
    assert_eq!(refusal(100, &[unit(5, 0)], &tasks), Some(E::Unit(0)));
    assert_eq!(refusal(100, &[unit(0, 10), unit(9, 10)], &tasks), Some(E::Overlap(1)));
    assert_eq!(refusal(100, &[unit(0, 10), unit(10, 10)], &tasks), None);
    assert_eq!(refusal(100, &[unit(0, 10)], &[]), Some(E::Unit(0)));
    let third = Period::hz(3).expect("in range");
    let refused = UnitTable::new(Instant::from_ns(0), third, &[unit(0, 10)], &tasks).err();
    assert_eq!(refused, Some(E::Frame));
    let late = |deadline_ns| [UnitSlot { deadline_ns, ..unit(10, 10) }];
    assert_eq!(refusal(100, &late(19), &tasks), Some(E::Unit(0)));
    assert_eq!(refusal(100, &late(20), &tasks), None);
    assert_eq!(refusal(100, &late(110), &tasks), None);
    assert_eq!(refusal(100, &late(111), &tasks), Some(E::Unit(0)));
    assert_eq!(refusal(100, &[unit(0, 10)], &[OnOverrun::Delay]), Some(E::OnOverrun(0)));
    assert_eq!(refusal(100, &[unit(0, 10)], &[OnOverrun::Burst(2)]), Some(E::OnOverrun(0)));
    assert_eq!(refusal(100, &vec![unit(0, 1); UNITS_MAX + 1], &tasks), Some(E::Units(65_537)));
}

#[test]
fn at_the_ends_of_the_clock_it_waits_for_ever() {
    let units = [unit(0, 10)];
    let frame = Period::from_ns(Period::MAX_NS).expect("positive");
    let epoch = Instant::from_ns(u64::MAX - 5);
    let calendar = UnitTable::new(epoch, frame, &units, &[OnOverrun::Skip]).expect("a calendar");
    let mut storage = [TaskProgress::default()];
    assert!(CalendarState::begin(&calendar, &mut [], epoch).is_none());
    let mut state = CalendarState::begin(&calendar, &mut storage, epoch).expect("it fits");
    let Decision::Run(job) = step(&calendar, &mut state, epoch) else { panic!("it is ready") };
    let end = Instant::from_ns(u64::MAX);
    finish(&calendar, &mut state, &job, epoch, end, Flow::Break);
    assert_eq!(step(&calendar, &mut state, end), Decision::Idle(end));
}
