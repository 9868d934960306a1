//! The loop in a simulated clock against a slow model that looks at every single release.
//!
//! Everything here is deterministic; no test reads the machine's clock.

use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use punctual_core::clock::Clock;
use punctual_core::cycle::{Ended, Job, Missed, Observe, Overruns};
use punctual_core::gate::Gate;
use punctual_core::releases::Releases;
use punctual_core::sample::{Beginning, Flags, Sample};
use punctual_core::time::{Instant, Period, Span};
use punctual_core::wait::{Sleep, Spin, Wait};
use punctual_testkit::sim::{SimClock, SleepNoise};

#[derive(Debug)]
struct Kept {
    samples: Vec<Sample>,
    missed: u64,
    beginning: Beginning,
}

impl Kept {
    fn new() -> Self {
        Self { samples: Vec::new(), missed: 0, beginning: Beginning::new(3) }
    }
}

impl Observe for Kept {
    fn ran(&mut self, job: &Job, start: Instant, _: Instant, _: Overruns) {
        self.missed += job.missed;
        self.samples.push(self.beginning.sample(job, start));
    }

    fn never_ran(&mut self, _: usize, missed: Missed, _: Instant) {
        self.missed += missed.count;
    }
}

/// Some releases and their end.
#[derive(Clone, Copy, Debug)]
struct Segment {
    grid: Releases,
    end: Instant,
}

fn segment(epoch: u64, period: u64, cycles: u64) -> Segment {
    let grid = Releases::new(Instant::from_ns(epoch), Period::from_ns(period).expect("positive"));
    Segment { grid, end: grid.release(cycles) }
}

/// Looks at every release in turn: one that lies behind the last wake is missed, any other runs.
fn slow_model(segment: &Segment, lateness: &[i64]) -> Kept {
    let mut kept = Kept::new();
    let mut script = lateness.iter();
    let mut busy_until = 0;
    for cycle in 0.. {
        let release = segment.grid.release(cycle).as_ns();
        if release >= segment.end.as_ns() {
            return kept;
        }
        if cycle > 0 && release <= busy_until {
            kept.missed += 1;
            continue;
        }
        let late = script.next().copied().unwrap_or(0);
        busy_until = release + late.unsigned_abs();
        let first = if kept.samples.is_empty() { Flags::FIRST } else { Flags::NONE };
        // One that lets a release pass is not cold.
        let next = segment.grid.release(cycle + 1).as_ns();
        let lets_pass = next <= busy_until && next < segment.end.as_ns();
        let is_cold = kept.samples.len() < 3 && !lets_pass;
        let flags = if is_cold { first.with(Flags::COLD) } else { first };
        kept.samples.push(Sample { cycle, lateness: Span::from_ns(late), flags });
    }
    kept
}

fn run<W: Wait>(wait: W, segment: &Segment, script: Vec<SleepNoise>, poll_cost: Span) -> (Kept, W) {
    let mut clock = SimClock::new(segment.grid.first() - Span::from_ns(1), script.into_iter());
    clock.poll_cost = poll_cost;
    let mut gate = Gate::new(clock, wait, Kept::new(), segment.grid, 0).until(segment.end);
    let ended = gate.run(&AtomicBool::new(false));
    assert_eq!(ended, Ended::Finished);
    (gate.observe, gate.wait)
}

proptest! {
    #[test]
    fn sleeping_agrees_with_the_slow_model(
        epoch in 1u64..1_000_000,
        period in 1u64..1_000,
        cycles in 0u64..200,
        lateness in prop::collection::vec(prop_oneof![4 => 0i64..100, 1 => 0i64..5_000], 0..200),
    ) {
        let segment = segment(epoch, period, cycles);
        let script = lateness.iter().map(|&ns| SleepNoise::Late(Span::from_ns(ns))).collect();
        let (kept, _) = run(Sleep, &segment, script, Span::ZERO);
        let slow = slow_model(&segment, &lateness);
        prop_assert_eq!(&kept.samples, &slow.samples);
        prop_assert_eq!(kept.missed, slow.missed);
        prop_assert_eq!(kept.samples.len() as u64 + kept.missed, cycles);
    }

    #[test]
    fn an_interrupted_sleep_changes_nothing(
        before in prop::collection::vec(0i64..2_000, 1..50),
    ) {
        let segment = segment(10_000, 1_000, 50);
        let script = before.iter().map(|&ns| SleepNoise::Interrupted(Span::from_ns(ns))).collect();
        let (kept, _) = run(Sleep, &segment, script, Span::ZERO);
        prop_assert_eq!(kept.missed, 0);
        prop_assert!(kept.samples.iter().all(|sample| sample.lateness == Span::ZERO));
    }

    #[test]
    fn a_spin_is_late_by_no_more_than_a_poll_while_the_margin_holds(
        margin in 100i64..900,
        lateness in prop::collection::vec(0i64..1_500, 1..100),
    ) {
        let segment = segment(10_000, 1_000, 100);
        let script = lateness.iter().map(|&ns| SleepNoise::Late(Span::from_ns(ns))).collect();
        let (kept, _) = run(Spin::new(Span::from_ns(margin)), &segment, script, Span::from_ns(20));
        prop_assert_eq!(kept.samples.len() as u64 + kept.missed, 100);
        for sample in &kept.samples {
            // The k-th sleep need not be that of the k-th sample: bounded by the worst of all.
            let worst = lateness.iter().max().expect("one at least") - margin;
            prop_assert!(sample.lateness.as_ns() <= worst.max(40), "{:?}", sample);
        }
    }
}

#[test]
fn stop_ends_the_loop_at_once() {
    let segment = segment(1_000, 10, 5);
    let clock = SimClock::new(Instant::from_ns(0), std::iter::empty());
    let mut gate = Gate::new(clock, Sleep, Kept::new(), segment.grid, 0).until(segment.end);
    assert_eq!(gate.run(&AtomicBool::new(true)), Ended::Stopped);
    assert!(gate.observe.samples.is_empty());
}

/// A clock under which the CPU goes away for a while, in the midst of a spin.
struct Gap {
    now: u64,
    at: u64,
    length: u64,
}

impl Clock for Gap {
    fn now(&mut self) -> Instant {
        Instant::from_ns(self.now)
    }

    fn poll(&mut self) -> Instant {
        let before = self.now;
        self.now += 20;
        if (before..self.now).contains(&self.at) {
            self.now += self.length;
        }
        Instant::from_ns(self.now)
    }

    fn sleep_until(&mut self, at: Instant) {
        self.now = self.now.max(at.as_ns());
    }

    fn wake(&mut self) -> Instant {
        Instant::from_ns(self.now)
    }

    fn relax(&mut self) {}
}

#[test]
fn a_stall_inside_a_spin_is_counted_and_measured() {
    let mut spin = Spin::new(Span::from_us(50));
    let mut clock = Gap { now: 0, at: 70_000, length: 10_000 };
    let release = Instant::from_ns(100_000);
    let stop = AtomicBool::new(false);
    let wake = spin.until(&mut clock, release, &stop).expect("not stopped");
    assert!(wake >= release && wake < release + Span::from_ns(40));
    let stalls = spin.take_stalls();
    assert_eq!(stalls.count, 1);
    assert_eq!(stalls.longest, Span::from_ns(10_020));
    stop.store(true, Ordering::Relaxed);
    assert_eq!(spin.until(&mut clock, Instant::from_ns(900_000), &stop), None);
}

#[test]
fn a_clock_that_leaps_ahead_makes_missed_releases_not_late_ones() {
    // An hour of a sleep that came back late: one sample an hour late, 3.6 million missed.
    let segment = segment(1_000_000, 1_000_000, 3_600_010);
    let hour = Span::from_ms(3_600_000);
    let (kept, _) = run(
        Sleep,
        &segment,
        vec![SleepNoise::Late(Span::ZERO), SleepNoise::Late(hour)],
        Span::ZERO,
    );
    assert_eq!(kept.samples[1].lateness, hour);
    assert_eq!(kept.missed, 3_600_000);
    assert_eq!(kept.samples.len(), 10);
}
