//! Maps and servos against references that drift, scatter, step and stop.

use super::*;
use crate::clock::Clock;
use crate::time::{Instant, Span};

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888);
        (self.0 >> 33) % n
    }
    fn within(&mut self, n: i64) -> i64 {
        self.below(2 * n.unsigned_abs() + 1).cast_signed() - n
    }
}

fn at(ns: u64) -> Instant {
    Instant::from_ns(ns)
}

#[test]
fn there_and_back_is_never_early_and_off_by_one_at_most() {
    let mut random = Random(3);
    for _ in 0..20_000 {
        let mut map = Map::shifted(at(1 << 50), at(1_700_000_000_000_000_000));
        map.before_ppb = random.within(100_000_000);
        map.after_ppb = random.within(100_000_000);
        let grid = map.grid + Span::from_ns(random.within(1 << 40));
        let there = map.monotonic(grid);
        assert!(map.grid(there) >= grid, "{map:?} {grid:?}");
        assert!(map.grid(there - Span::from_ns(1)) < grid, "{map:?} {grid:?}");
    }
}

#[test]
fn a_bend_is_continuous_and_changes_nothing_before_it() {
    let map = Map { before_ppb: 5, after_ppb: 90_000, ..Map::shifted(at(1 << 40), at(7 << 40)) };
    let bent = map.bent(at((1 << 40) + 12_345_678), -90_000);
    assert_eq!(bent.grid(bent.at), map.grid(bent.at));
    for before in [0, 1, 999, 12_345_000] {
        let then = bent.at - Span::from_ns(before);
        assert!((bent.grid(then) - map.grid(then)).as_ns().abs() <= 1);
    }
    // No bend lies before one that the loop may have seen already.
    assert_eq!(bent.bent(at(0), 3).at, bent.at);
    let end = Map { after_ppb: 100_000_000, ..Map::shifted(at(0), at(u64::MAX - 5)) };
    assert_eq!(end.grid(at(u64::MAX)), at(u64::MAX));
}

/// A reference that runs `drift_ppb` faster, from `shift` on.
struct World {
    drift_ppb: i64,
    scatter_ns: i64,
    shift_ns: i64,
    random: Random,
}

impl World {
    fn reference(&self, monotonic: u64) -> u64 {
        let gained = i128::from(monotonic) * i128::from(self.drift_ppb) / i128::from(PPB);
        (i128::from(monotonic) + gained + i128::from(self.shift_ns)) as u64
    }

    fn read(&mut self, monotonic: u64) -> ClockReading {
        let off = if self.scatter_ns == 0 { 0 } else { self.random.within(self.scatter_ns) };
        let reference = self.reference(monotonic).saturating_add_signed(off);
        let width = Span::from_ns(2 * self.scatter_ns);
        ClockReading { monotonic: at(monotonic), reference: at(reference), width }
    }
}

const SECOND: u64 = 1_000_000_000;

/// Follows for so many readings a second apart, and holds each map against the one before it.
fn follow(servo: &mut Servo, world: &mut World, now: &mut u64, readings: u32) {
    for _ in 0..readings {
        *now += SECOND;
        let before = servo.map();
        servo.follow(world.read(*now), at(*now + SECOND / 10));
        let map = servo.map();
        assert!(map.after_ppb.abs() <= 100_000 && map.before_ppb.abs() <= 100_000, "{map:?}");
        // Until the bend both are one, whatever the reference did.
        for until in [0, SECOND / 20, SECOND / 10] {
            let then = at(*now + until);
            assert!((map.grid(then) - before.grid(then)).as_ns().abs() <= 1, "{before:?} {map:?}");
        }
    }
}

fn started(drift_ppb: i64, scatter_ns: i64, settings: Settings) -> (Servo, World, u64) {
    let shift_ns = 1 << 50;
    let mut world = World { drift_ppb, scatter_ns, shift_ns, random: Random(drift_ppb as u64) };
    let now = 1_000 * SECOND;
    (Servo::new(settings, world.read(now)), world, now)
}

#[test]
fn every_drift_within_the_limit_is_followed_to_the_scatter() {
    for drift_ppb in [-90_000, -4_000, -1, 0, 3, 777, 50_000, 90_000] {
        for scatter_ns in [0, 20, 1_000] {
            let (mut servo, mut world, mut now) =
                started(drift_ppb, scatter_ns, Settings::default());
            follow(&mut servo, &mut world, &mut now, 60);
            let status = servo.status();
            let off = (at(world.reference(now)) - servo.map().grid(at(now))).as_ns();
            assert!(off.abs() <= 5 + 2 * scatter_ns, "{drift_ppb} {scatter_ns}: {off} {status:?}");
            let rate = (status.drift_ppb - drift_ppb as f64).abs();
            assert!(rate <= 0.2 + 0.2 * scatter_ns as f64, "{drift_ppb} {scatter_ns}: {status:?}");
            assert_eq!((status.steps, status.stops), (0, 0));
        }
    }
}

#[test]
fn a_grid_begun_anew_has_the_rate_and_counts_from_there() {
    let (mut servo, mut world, mut now) = started(80_000, 0, Settings::default());
    // A quick look first: sixteen readings, 5 ms apart.
    for _ in 0..16 {
        now += SECOND / 200;
        servo.follow(world.read(now), at(now));
    }
    let learning = servo.status();
    assert!(learning.phase_max_ns > 0 && learning.readings > 0, "{learning:?}");
    servo.begin();
    assert!((servo.status().drift_ppb - 80_000.0).abs() < 500.0, "{:?}", servo.status());
    assert_eq!((servo.status().readings, servo.status().phase_max_ns), (0, 0));
    // A hundred times slower from here on, and no swinging.
    for _ in 0..60 {
        now += SECOND / 2;
        servo.follow(world.read(now), at(now + SECOND / 10));
        let off = (at(world.reference(now)) - servo.map().grid(at(now))).as_ns();
        assert!(off.abs() < 200, "{off}");
    }
    let status = servo.status();
    assert!(status.phase_max_ns < 200 && status.readings == 60, "{status:?}");
}

#[test]
fn a_reference_that_stood_still_from_the_start_is_counted() {
    let (mut servo, mut world, mut now) = started(0, 0, Settings::default());
    let still = world.read(now).reference;
    let mut read = |servo: &mut Servo| {
        now += SECOND / 10;
        servo.follow(ClockReading { reference: still, ..world.read(now) }, at(now + SECOND / 20))
    };
    assert_eq!(read(&mut servo), ServoEvent::Stopped);
    servo.begin();
    assert_eq!(servo.status().stops, 0);
    assert_eq!((read(&mut servo), read(&mut servo)), (ServoEvent::Stopped, ServoEvent::Stopped));
    assert_eq!(servo.status().stops, 1);
}

#[test]
fn a_drift_beyond_the_limit_is_held_back_and_said() {
    let (mut servo, mut world, mut now) = started(300_000, 0, Settings::default());
    follow(&mut servo, &mut world, &mut now, 30);
    assert_eq!(servo.map().after_ppb, 100_000);
    let status = servo.status();
    assert!(status.limited >= 29 && (status.drift_ppb - 300_000.0).abs() < 1.0, "{status:?}");
    // And once it is within again, what was lost is made up for, without winding up.
    let lost = status.phase_ns;
    world.shift_ns += (i128::from(now) * 300_000 / 1_000_000_000) as i64;
    world.drift_ppb = 0;
    follow(&mut servo, &mut world, &mut now, 200);
    let off = (at(world.reference(now)) - servo.map().grid(at(now))).as_ns();
    assert!(lost > 5_000_000 && off.abs() < 10, "{lost} {off}");
}

#[test]
fn a_step_is_counted_and_the_grid_goes_on() {
    for step_ns in [-3_600_000_000_000, -2_000_000, 2_000_000, 1 << 49] {
        let (mut servo, mut world, mut now) = started(500, 0, Settings::default());
        follow(&mut servo, &mut world, &mut now, 30);
        let grid = servo.map().grid(at(now + 100 * SECOND));
        world.shift_ns += step_ns;
        follow(&mut servo, &mut world, &mut now, 100);
        let status = servo.status();
        assert_eq!((status.steps, status.stops), (1, 0), "{step_ns}");
        assert!((status.stepped_ns - step_ns).abs() < 1_000, "{status:?}");
        assert!((servo.map().grid(at(now)) - grid).as_ns().abs() < 1_000, "{step_ns}");
        assert!(status.phase_ns.abs() < 10, "{step_ns} {status:?}");
    }
}

#[test]
fn of_a_step_what_is_left_over_whole_periods_is_slewed_in() {
    let settings = Settings { period_ns: Some(1_000_000), ..Settings::default() };
    for (step_ns, left) in [(7_300_000, 300_000), (7_700_000, -300_000), (-5_000_000, 0)] {
        let (mut servo, mut world, mut now) = started(0, 0, settings);
        follow(&mut servo, &mut world, &mut now, 20);
        let grid = servo.map().grid(at(now)) - at(now);
        world.shift_ns += step_ns;
        follow(&mut servo, &mut world, &mut now, 100);
        assert_eq!(servo.status().steps, 1);
        let moved = (servo.map().grid(at(now)) - at(now)).as_ns() - grid.as_ns();
        assert!((moved - left).abs() < 10, "{step_ns}: {moved}");
        // The grid's releases are the reference's again.
        let apart = (at(world.reference(now)) - servo.map().grid(at(now))).as_ns();
        assert!(apart.rem_euclid(1_000_000).min(1_000_000 - apart.rem_euclid(1_000_000)) < 10);
    }
}

#[test]
fn a_reference_that_stops_is_counted_once_and_the_grid_goes_on() {
    let (mut servo, mut world, mut now) = started(2_000, 0, Settings::default());
    follow(&mut servo, &mut world, &mut now, 30);
    let still = world.read(now).reference;
    let map = servo.map();
    for _ in 0..20 {
        now += SECOND;
        let reading = ClockReading { reference: still, ..world.read(now) };
        assert_eq!(servo.follow(reading, at(now + SECOND / 10)), ServoEvent::Stopped);
        assert_eq!(servo.map(), map);
    }
    assert_eq!(servo.status().stops, 1);
    // On again where it stopped: as far behind as it stood still.
    world.shift_ns -= 20_000_000_000;
    follow(&mut servo, &mut world, &mut now, 30);
    let status = servo.status();
    assert_eq!((status.steps, status.stops), (1, 1));
    assert!(status.phase_ns.abs() < 10, "{status:?}");
    let backwards = ClockReading { monotonic: at(5), ..world.read(now) };
    assert_eq!(servo.follow(backwards, at(now)), ServoEvent::Ignored);
}

/// Anything at all: no panic, no jump, no rate beyond the limit.
#[test]
fn whatever_is_read_the_limit_holds() {
    let mut random = Random(99);
    for _ in 0..300 {
        let (mut servo, _, mut now) = started(0, 0, Settings::default());
        for _ in 0..200 {
            now += 1 + random.below(3 * SECOND);
            let before = servo.map();
            let reference = match random.below(4) {
                0 => random.below(u64::MAX >> 33) << 33,
                1 => u64::MAX,
                2 => 0,
                _ => now.saturating_add_signed(random.within(1 << 22)),
            };
            let width = Span::from_ns(random.within(1 << 20));
            let reading = ClockReading { monotonic: at(now), reference: at(reference), width };
            servo.follow(reading, at(now + random.below(SECOND)));
            let map = servo.map();
            assert!(map.after_ppb.abs() <= 100_000, "{map:?}");
            assert!((map.grid(map.at) - before.grid(map.at)).as_ns().abs() <= 1);
            assert!((map.at - before.at).as_ns() >= 0);
        }
    }
}

/// A clock that stands still but for sleeps.
struct Still(u64);

impl Clock for Still {
    fn now(&mut self) -> Instant {
        at(self.0)
    }
    fn poll(&mut self) -> Instant {
        at(self.0)
    }
    fn sleep_until(&mut self, until: Instant) {
        self.0 = self.0.max(until.as_ns());
    }
    fn wake(&mut self) -> Instant {
        at(self.0)
    }
    fn relax(&mut self) {}
}

#[test]
fn a_loop_on_a_followed_grid_has_periods_within_the_limit() {
    let shared = Shared::default();
    let (mut servo, mut world, mut now) = started(40_000, 200, Settings::default());
    assert!(Following::new(Still(now), &shared).is_none());
    shared.publish(&servo);
    let mut clock = Following::new(Still(now), &shared).expect("published");
    let mut release = clock.now();
    let (mut last, mut next_reading) = (now, now + SECOND);
    for cycle in 0..200_000u64 {
        release = release + Span::from_ms(1);
        clock.sleep_until(release);
        assert!(clock.wake() >= release);
        let woke = clock.clock_mut().0;
        let period = (woke - last).cast_signed();
        // 100 parts in a million of a millisecond are 100 ns; rounding is 1 at each end.
        assert!(cycle == 0 || (period - 1_000_000).abs() <= 102, "{cycle}: {period}");
        last = woke;
        if woke >= next_reading {
            now = woke;
            next_reading = now + SECOND;
            if cycle == 100_000 {
                world.shift_ns += 1 << 40;
            }
            servo.follow(world.read(now), at(now + 20_000_000));
            shared.publish(&servo);
        }
    }
    let view = shared.view().expect("published");
    assert_eq!((view.map, view.status), (servo.map(), servo.status()));
    assert!((view.status.drift_ppb - 40_000.0).abs() < 50.0, "{view:?}");
}

#[test]
fn a_reader_beside_a_writer_sees_whole_maps() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let shared = Shared::default();
    let (mut servo, mut world, mut now) = started(1_000, 0, Settings::default());
    shared.publish(&servo);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..20_000 {
                now += SECOND;
                servo.follow(world.read(now), at(now + 1_000));
                shared.publish(&servo);
            }
            done.store(true, Ordering::Release);
        });
        while !done.load(Ordering::Acquire) {
            if let Some(view) = shared.view() {
                // The grid is 2⁵⁰ ns and what it gained ahead: no mix of two maps is.
                let ahead = (view.map.grid - view.map.at).as_ns() - (1 << 50);
                let gained = view.map.at.as_ns() as f64 * 1e-6;
                assert!((ahead as f64 - gained).abs() < 10_000.0, "{view:?}");
            }
        }
    });
}

use std::sync::atomic::AtomicBool;

fn reading(ns: u64) -> ClockReading {
    let at = Instant::from_ns(ns);
    ClockReading { monotonic: at, reference: at + Span::from_ns(7), width: Span::from_ns(2) }
}

#[test]
fn each_reading_is_taken_once_and_the_latest_counts() {
    let last = Last::new();
    assert_eq!(last.take(), None);
    last.put(reading(1));
    last.put(reading(2));
    assert_eq!(last.take(), Some(reading(2)));
    assert_eq!(last.take(), None);
    last.put(reading(2));
    assert_eq!(last.take(), Some(reading(2)));
}

#[test]
fn a_reader_beside_the_writer_sees_whole_readings_in_order() {
    let (last, done) = (Last::new(), AtomicBool::new(false));
    let taken = std::thread::scope(|scope| {
        scope.spawn(|| {
            (1..=100_000).for_each(|ns| last.put(reading(ns)));
            done.store(true, Ordering::Release);
        });
        let mut taken = std::vec::Vec::new();
        loop {
            // Before the last look: what was put before it is then seen.
            let over = done.load(Ordering::Acquire);
            taken.extend(last.take());
            if over {
                return taken;
            }
        }
    });
    assert_eq!(taken.last(), Some(&reading(100_000)));
    assert!(taken.iter().all(|seen| *seen == reading(seen.monotonic.as_ns())));
    assert!(taken.windows(2).all(|pair| pair[0].monotonic < pair[1].monotonic));
}
