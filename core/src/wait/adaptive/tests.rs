//! The adaptive wait on machines that are made up: what it finds, what it says, how it recovers.

use super::*;
use crate::clock::Clock;

/// A machine whose sleeps come back late by how long they were.
struct Machine {
    now: u64,
    seed: u64,
    /// Lateness of a sleep of this length, ns, with a random number below a million.
    late: fn(u64, u64) -> u64,
    /// Whether a long sleep makes the one after it late too.
    remembers: bool,
    before: u64,
    /// In these ns every sleep is this late, whatever it was.
    burst: (core::ops::Range<u64>, u64),
    sleeps: u64,
    spun: u64,
}

impl Machine {
    fn new(late: fn(u64, u64) -> u64) -> Self {
        let (now, burst) = (1_000_000, (0..0, 0));
        Self { now, seed: 9, late, remembers: false, before: 0, burst, sleeps: 0, spun: 0 }
    }
}

impl Clock for Machine {
    fn now(&mut self) -> Instant {
        Instant::from_ns(self.now)
    }
    fn poll(&mut self) -> Instant {
        // Coarse, so that a test of many cycles is short.
        self.now += 500;
        self.spun += 500;
        Instant::from_ns(self.now)
    }
    fn sleep_until(&mut self, at: Instant) {
        if at.as_ns() <= self.now {
            return;
        }
        self.sleeps += 1;
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let random = (self.seed >> 33) % 1_000_000;
        let length = at.as_ns() - self.now;
        let deep = if self.remembers { length.max(self.before) } else { length };
        self.before = length;
        let (during, by_ns) = &self.burst;
        let late = if during.contains(&self.now) { *by_ns } else { (self.late)(deep, random) };
        self.now = at.as_ns() + late;
    }
    fn wake(&mut self) -> Instant {
        Instant::from_ns(self.now)
    }
    fn relax(&mut self) {}
}

/// Runs cycles of 1 ms; the share of late ones (1 µs or more) among the last half.
fn run(wait: &mut Adaptive, machine: &mut Machine, cycles: u64) -> f64 {
    let first = machine.now / 1_000_000 + 2;
    let mut late = 0;
    for cycle in 0..cycles {
        let release = Instant::from_ns((first + cycle) * 1_000_000);
        let wake = wait.until(machine, release, &AtomicBool::new(false)).expect("not stopped");
        assert!(wake >= release);
        late += u64::from(cycle >= cycles / 2 && (wake - release).as_ns() >= 1_000);
        machine.now += 10_000;
    }
    late as f64 / (cycles - cycles / 2) as f64
}

fn learned_by(wait: &Adaptive) -> Learned {
    Wait::<Machine>::status(wait).learned.expect("it learns")
}

fn wait() -> Adaptive {
    Adaptive::new(Target::of(Period::from_ns(1_000_000).expect("positive")))
}

/// A CPU that does not go deep: a few µs, whatever the length.
fn bare(_: u64, random: u64) -> u64 {
    2_000 + random % 1_500 + if random < 500 { 20_000 } else { 0 }
}

/// A virtual CPU that is halted in long sleeps.
fn virtual_cpu(slept: u64, random: u64) -> u64 {
    if slept > 250_000 { 10_000 + random / 5 } else { 3_000 + random % 4_000 }
}

/// Nothing helps.
fn hopeless(_: u64, random: u64) -> u64 {
    random
}

#[test]
fn a_machine_that_wakes_well_gets_one_sleep_and_a_small_margin() {
    let (mut wait, mut machine) = (wait(), Machine::new(bare));
    let late = run(&mut wait, &mut machine, 200_000);
    let learned = learned_by(&wait);
    assert_eq!(learned.approach.hop_ns, 0, "{learned:?}");
    assert!(learned.approach.margin_ns < 10_000, "{learned:?}");
    assert!(learned.reachable && late < 2e-3, "{late} {learned:?}");
}

#[test]
fn a_machine_that_sinks_into_idle_gets_a_hop() {
    let (mut wait, mut machine) = (wait(), Machine::new(virtual_cpu));
    let late = run(&mut wait, &mut machine, 60_000);
    let learned = learned_by(&wait);
    assert_eq!((learned.approach.hop_ns, learned.approach.hops), (200_000, 1), "{learned:?}");
    assert!(late < 2e-3 && learned.cpu < 0.1, "{late} {learned:?}");
}

#[test]
fn a_machine_that_remembers_long_sleeps_gets_hops_all_the_way() {
    let (mut wait, mut machine) = (wait(), Machine::new(virtual_cpu));
    machine.remembers = true;
    let late = run(&mut wait, &mut machine, 60_000);
    let learned = learned_by(&wait);
    let approach = (learned.approach.hop_ns, learned.approach.hops);
    assert_eq!(approach, (200_000, u32::MAX), "{learned:?}");
    assert!(late < 2e-3 && learned.cpu < 0.1, "{late} {learned:?}");
}

#[test]
fn a_burst_of_stalls_meets_all_approaches_alike() {
    for start_ms in (0..2_000).step_by(100) {
        let (mut wait, mut machine) = (wait(), Machine::new(virtual_cpu));
        machine.burst = (start_ms * 1_000_000..(start_ms + 300) * 1_000_000, 150_000);
        // Long before anything is tried again.
        run(&mut wait, &mut machine, 20_000);
        let learned = learned_by(&wait);
        assert_eq!(
            (learned.approach.hop_ns, learned.approach.hops),
            (200_000, 1),
            "{start_ms} {learned:?}"
        );
    }
}

#[test]
fn what_cannot_be_reached_is_said_and_the_budget_holds() {
    let (mut wait, mut machine) = (wait(), Machine::new(hopeless));
    let (spun, cycles) = (machine.spun, 60_000);
    run(&mut wait, &mut machine, cycles);
    let learned = learned_by(&wait);
    assert!(!learned.reachable && learned.late > 1e-3, "{learned:?}");
    let share = (machine.spun - spun) as f64 / (cycles as f64 * 1e6);
    assert!(share < 0.1, "{share}");
}

/// Where stalls of the host are rarer than one sleep in fifty, all of them beyond any margin.
fn stalled(slept: u64, random: u64) -> u64 {
    if random % 50 == 7 { 2_000_000 } else { bare(slept, random) }
}

#[test]
fn what_no_margin_covers_is_not_paid_for() {
    let (mut wait, mut machine) = (wait(), Machine::new(stalled));
    run(&mut wait, &mut machine, 60_000);
    let learned = learned_by(&wait);
    assert!(!learned.reachable && learned.late > 1e-3, "{learned:?}");
    // As much as covers all the rest, though the budget would pay for 100 µs.
    assert!(learned.approach.margin_ns < 10_000 && learned.approach.hop_ns == 0, "{learned:?}");
}

#[test]
fn one_unlucky_start_locks_nothing_out_and_a_changed_machine_is_learned_anew() {
    let (mut wait, mut machine) = (wait(), Machine::new(hopeless));
    run(&mut wait, &mut machine, 20_000);
    machine.late = bare;
    let late = run(&mut wait, &mut machine, 400_000);
    let learned = learned_by(&wait);
    assert!(learned.reachable && learned.approach.margin_ns < 10_000, "{learned:?}");
    assert!(late < 2e-3, "{late}");
    machine.late = virtual_cpu;
    let late = run(&mut wait, &mut machine, 400_000);
    assert!(late < 2e-3, "{late} {:?}", learned_by(&wait));
    assert_eq!(learned_by(&wait).approach.hop_ns, 200_000);
}

#[test]
fn a_stop_ends_the_wait() {
    let mut machine = Machine::new(bare);
    let release = Instant::from_ns(50_000_000);
    assert_eq!(wait().until(&mut machine, release, &AtomicBool::new(true)), None);
}

#[test]
fn hops_end_at_the_margin() {
    let approach = WakePlan { hop_ns: 100, hops: u32::MAX, margin_ns: 20, corrected: false };
    let next = |now| approach.next(Instant::from_ns(now), Instant::from_ns(1_000));
    let at = |ns| Some(Instant::from_ns(ns));
    assert_eq!(next(0), at(80));
    assert_eq!(next(70), at(180));
    assert_eq!(next(880), at(980));
    assert_eq!(next(979), at(980));
    assert_eq!(next(980), None);
    let nap = WakePlan { hops: 1, ..approach };
    let then = |now| nap.next(Instant::from_ns(now), Instant::from_ns(1_000));
    assert_eq!([0, 870, 880, 980].map(then), [at(880), at(980), at(980), None]);
    let once = WakePlan { hop_ns: 0, ..approach };
    assert_eq!(once.next(Instant::from_ns(0), Instant::from_ns(1_000)), at(980));
}
