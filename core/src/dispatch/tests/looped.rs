//! The whole loop of many tasks in a simulated clock, against the same model.
//!
//! Ten million cycles of each policy take a minute:
//! `PUNCTUAL_CYCLES=10000000 cargo test --release -p punctual-core --lib loop_agrees`.

use std::cell::RefCell;

use super::*;
use crate::clock::Clock;
use crate::cycle::{Cycle, Ended, Flow, Missed, Observe};
use crate::executive::{Dispatch, Many};
use crate::wait::Wait;
use core::sync::atomic::AtomicBool;

/// The simulated machine and the model beside it.
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
        let expected = (rank, cycle.n, cycle.release.as_ns(), cycle.next.as_ns(), cycle.missed);
        assert_eq!(world.model.step(now), Ok(expected), "at {now}");
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
/// How many cycles ran.
fn agree_in_loop(tasks: &[Task], seed: u64, end: u64) -> u64 {
    let parts = parts(tasks);
    let epoch = 1_000 + seed % 97;
    let table = parts.table(epoch);
    let (mut from, mut cycles) = (epoch + seed % 200, 0);
    while from < end {
        let mut room = Room::of(&table);
        let mut state =
            TableState::begin(&table, room.lend(), Instant::from_ns(from)).expect("it fits");
        let firsts: Vec<Counters> = (0..tasks.len()).map(|rank| state.counters(rank)).collect();
        assert!(firsts.iter().all(|counters| counters.ran == 0 && counters.missed == 0));
        let mut model = Model::new(tasks, epoch, from);
        model.last = end - 1;
        let random = Random(seed ^ from);
        let never_ran = vec![0; tasks.len()];
        let world = World { now: from, model, random, cycles: 0, overran: None, never_ran };
        let world = RefCell::new(world);
        let all = In(&world);
        let mut many = Many { clock: all, wait: all, tasks: all, observe: all };
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
        let mut random = Random(17);
        let (mut cycles, mut seed) = (0, 0);
        while cycles < cycles_asked() || seed < 10 {
            let end = if cycles_asked() > 1_000_000 { 2_000_000 } else { 20_000 };
            cycles += agree_in_loop(&some(&mut random, policy), seed, end);
            seed += 1;
        }
    }
}
