//! A grid that follows another clock: AnT's open problem of two clocks that drift apart.
//!
//! For executives whose releases lie on the timescale of a PTP clock, of TAI or of a bus. Another
//! thread reads that clock; a [`Servo`] makes a [`Map`] of the readings, which bends by no more
//! than a limit and never jumps; [`Shared`] hands it to the loop, and [`Following`] is a clock that
//! runs on it, so that executives need no change. Nothing here waits.

mod servo;

use core::sync::atomic::{Ordering, fence};

use crate::atomic::{AtomicI64, AtomicU64};
use crate::clock::Clock;
use crate::time::{Instant, Span};
pub use servo::{ClockReading, Servo, ServoEvent, ServoStatus, Settings, WINDOW};

/// Parts in a whole, for rates.
pub const PPB: i64 = 1_000_000_000;

/// The grid's time as a function of CLOCK_MONOTONIC, two straight lines that meet: before the bend
/// with one rate, after it with another, and at the bend with one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Map {
    /// The instant of the bend, on CLOCK_MONOTONIC.
    pub at: Instant,
    /// The grid's time there.
    pub grid: Instant,
    /// The rate by which the grid's time is faster than CLOCK_MONOTONIC until then, in parts of
    /// 10⁹.
    pub before_ppb: i64,
    /// The same from then on.
    pub after_ppb: i64,
}

impl Map {
    /// The map that shifts by a constant.
    ///
    /// # Real-time: in loop
    pub const fn shifted(monotonic: Instant, grid: Instant) -> Self {
        Self { at: monotonic, grid, before_ppb: 0, after_ppb: 0 }
    }

    /// The grid's time at an instant of CLOCK_MONOTONIC, rounded down.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn grid(&self, monotonic: Instant) -> Instant {
        let away = (monotonic - self.at).as_ns();
        let ppb = if away < 0 { self.before_ppb } else { self.after_ppb };
        let bent = (i128::from(away) * i128::from(ppb)).div_euclid(i128::from(PPB));
        shift(self.grid, i128::from(away) + bent)
    }

    /// The first instant of CLOCK_MONOTONIC at which the grid's time is `grid`.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn monotonic(&self, grid: Instant) -> Instant {
        let away = i128::from((grid - self.grid).as_ns());
        let ppb = if away <= 0 { self.before_ppb } else { self.after_ppb };
        let whole = i128::from(PPB) + i128::from(ppb);
        let numerator = away * i128::from(PPB);
        // Rounded up: never before it.
        shift(self.at, -((-numerator).div_euclid(whole.max(1))))
    }

    /// This map with another rate from `at` on; an instant before its own bend is taken as that.
    ///
    /// # Real-time: in loop
    #[must_use]
    pub fn bent(&self, at: Instant, after_ppb: i64) -> Self {
        let at = at.max(self.at);
        Self { at, grid: self.grid(at), before_ppb: self.after_ppb, after_ppb }
    }
}

fn shift(from: Instant, by: i128) -> Instant {
    let ns = (i128::from(from.as_ns()) + by).clamp(0, i128::from(u64::MAX));
    Instant::from_ns(ns as u64)
}

/// A clock on the grid's timescale: the machine's, seen through a shared map, which it borrows or
/// has a share in.
///
/// For executives that follow. All instants are the grid's; sleeps are on CLOCK_MONOTONIC, which
/// never steps, so that a reference that does can neither end a sleep early nor prolong it.
#[derive(Clone, Debug)]
pub struct Following<S, C> {
    clock: C,
    shared: S,
    turn: u64,
    map: Map,
    lead: Option<Span>,
}

impl<S: AsRef<Shared>, C: Clock> Following<S, C> {
    /// The machine's clock through the map that is shared; `None` where none is yet.
    ///
    /// # Real-time: setup only
    pub fn new(clock: C, shared: S) -> Option<Self> {
        let turn = shared.as_ref().turn();
        let map = shared.as_ref().view()?.map;
        Some(Self { clock, shared, turn, map, lead: None })
    }

    /// Each bend of the map is shared so long before it.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn known_ahead(self, lead: Span) -> Self {
        Self { lead: Some(lead), ..self }
    }

    /// The map that it runs on.
    ///
    /// # Real-time: in loop
    pub fn map(&self) -> Map {
        self.map
    }

    /// The clock beneath.
    ///
    /// # Real-time: setup only
    pub fn clock_mut(&mut self) -> &mut C {
        &mut self.clock
    }

    /// Takes a new map where there is one. Bends lie ahead when they are published, so that time is
    /// continuous for readers that look before.
    #[inline]
    fn refresh(&mut self) {
        let shared = self.shared.as_ref();
        let turn = shared.turn();
        if turn != self.turn
            && let Some(view) = shared.view()
        {
            (self.turn, self.map) = (turn, view.map);
        }
    }
}

impl<S: AsRef<Shared>, C: Clock> Clock for Following<S, C> {
    #[inline]
    fn now(&mut self) -> Instant {
        self.map.grid(self.clock.now())
    }

    #[inline]
    fn poll(&mut self) -> Instant {
        self.map.grid(self.clock.poll())
    }

    #[inline]
    fn sleep_until(&mut self, at: Instant) {
        self.refresh();
        self.clock.sleep_until(self.map.monotonic(at));
    }

    #[inline]
    fn wake(&mut self) -> Instant {
        let wake = self.clock.wake();
        self.refresh();
        self.map.grid(wake)
    }

    fn at_monotonic(&mut self, at: Instant) -> Option<Instant> {
        Some(self.map.grid(self.clock.at_monotonic(at)?))
    }

    fn lead(&self) -> Option<Span> {
        self.lead
    }

    #[inline]
    fn relax(&mut self) {
        self.clock.relax();
    }

    #[inline]
    fn pause_until(&mut self, at: Instant) -> bool {
        self.clock.pause_until(self.map.monotonic(at))
    }
}

/// A map and a status in one piece: written by one thread, read by any, without a lock.
///
/// For the thread that follows and the loops that run on it. A seqlock of atomics: a reader that
/// meets a writer gets nothing, keeps the map that it has, and looks again at its next wake.
#[derive(Debug, Default)]
pub struct Shared {
    /// Odd while it is written.
    turn: AtomicU64,
    at_ns: AtomicU64,
    grid_ns: AtomicU64,
    before_ppb: AtomicI64,
    after_ppb: AtomicI64,
    drift_bits: AtomicU64,
    phase_ns: AtomicI64,
    rms_bits: AtomicU64,
    max_ns: AtomicU64,
    readings: AtomicU64,
    steps: AtomicU64,
    stepped_ns: AtomicI64,
    stops: AtomicU64,
    limited: AtomicU64,
}

/// A map with the status of the servo that made it, both of one edition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MapView {
    /// The map.
    pub map: Map,
    /// The drift and the errors of the grid up to now.
    pub status: ServoStatus,
}

impl AsRef<Self> for Shared {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl Shared {
    /// Shares what a servo has. By one thread alone.
    ///
    /// # Real-time: reader side
    pub fn publish(&self, servo: &Servo) {
        let (map, status) = (servo.map(), servo.status());
        let turn = self.turn.load(Ordering::Relaxed);
        self.turn.store(turn | 1, Ordering::Relaxed);
        // What follows is seen after the odd turn.
        fence(Ordering::Release);
        self.at_ns.store(map.at.as_ns(), Ordering::Relaxed);
        self.grid_ns.store(map.grid.as_ns(), Ordering::Relaxed);
        self.before_ppb.store(map.before_ppb, Ordering::Relaxed);
        self.after_ppb.store(map.after_ppb, Ordering::Relaxed);
        self.drift_bits.store(status.drift_ppb.to_bits(), Ordering::Relaxed);
        self.phase_ns.store(status.phase_ns, Ordering::Relaxed);
        self.rms_bits.store(status.phase_rms_ns.to_bits(), Ordering::Relaxed);
        self.max_ns.store(status.phase_max_ns, Ordering::Relaxed);
        self.readings.store(status.readings, Ordering::Relaxed);
        self.steps.store(status.steps, Ordering::Relaxed);
        self.stepped_ns.store(status.stepped_ns, Ordering::Relaxed);
        self.stops.store(status.stops, Ordering::Relaxed);
        self.limited.store(status.limited, Ordering::Relaxed);
        self.turn.store((turn | 1).wrapping_add(1), Ordering::Release);
    }

    /// The number of the edition: another one than before means that a look is due. 0 for none yet.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn turn(&self) -> u64 {
        self.turn.load(Ordering::Acquire)
    }

    /// The last edition; `None` before the first one, and while one is written.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn view(&self) -> Option<MapView> {
        let turn = self.turn.load(Ordering::Acquire);
        if turn == 0 || turn & 1 == 1 {
            return None;
        }
        let map = Map {
            at: Instant::from_ns(self.at_ns.load(Ordering::Relaxed)),
            grid: Instant::from_ns(self.grid_ns.load(Ordering::Relaxed)),
            before_ppb: self.before_ppb.load(Ordering::Relaxed),
            after_ppb: self.after_ppb.load(Ordering::Relaxed),
        };
        let status = ServoStatus {
            drift_ppb: f64::from_bits(self.drift_bits.load(Ordering::Relaxed)),
            phase_ns: self.phase_ns.load(Ordering::Relaxed),
            phase_rms_ns: f64::from_bits(self.rms_bits.load(Ordering::Relaxed)),
            phase_max_ns: self.max_ns.load(Ordering::Relaxed),
            readings: self.readings.load(Ordering::Relaxed),
            steps: self.steps.load(Ordering::Relaxed),
            stepped_ns: self.stepped_ns.load(Ordering::Relaxed),
            stops: self.stops.load(Ordering::Relaxed),
            limited: self.limited.load(Ordering::Relaxed),
        };
        fence(Ordering::Acquire);
        (self.turn.load(Ordering::Relaxed) == turn).then_some(MapView { map, status })
    }
}

/// The last reading of a reference that a loop itself takes, passed to the thread that follows.
///
/// For buses whose time comes back with each frame (EtherCAT's distributed clocks), and for drivers
/// that stamp a buffer. One writer, which never waits, and one reader; only the latest counts.
#[derive(Debug, Default)]
pub struct Last {
    /// Odd while it is written; 0 before the first one.
    turn: AtomicU64,
    /// The turn that the reader took.
    taken: AtomicU64,
    monotonic_ns: AtomicU64,
    reference_ns: AtomicU64,
    width_ns: AtomicI64,
}

impl Last {
    /// Without a reading.
    ///
    /// # Real-time: setup only
    pub const fn new() -> Self {
        Self {
            turn: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            monotonic_ns: AtomicU64::new(0),
            reference_ns: AtomicU64::new(0),
            width_ns: AtomicI64::new(0),
        }
    }

    /// Leaves a reading in place of the one before. By one thread alone.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn put(&self, reading: ClockReading) {
        let turn = self.turn.load(Ordering::Relaxed);
        self.turn.store(turn | 1, Ordering::Relaxed);
        // What follows is seen after the odd turn.
        fence(Ordering::Release);
        self.monotonic_ns.store(reading.monotonic.as_ns(), Ordering::Relaxed);
        self.reference_ns.store(reading.reference.as_ns(), Ordering::Relaxed);
        self.width_ns.store(reading.width.as_ns(), Ordering::Relaxed);
        self.turn.store((turn | 1).wrapping_add(1), Ordering::Release);
    }

    /// The last reading; `None` where none came since it was last taken, so that a loop which has
    /// ended can be distinguished from a reference that stands still. By one thread alone.
    ///
    /// # Real-time: reader side
    pub fn take(&self) -> Option<ClockReading> {
        // One that is just written is there a few nanoseconds later.
        for _ in 0..TRIES {
            let turn = self.turn.load(Ordering::Acquire);
            if turn & 1 == 0 {
                let reading = ClockReading {
                    monotonic: Instant::from_ns(self.monotonic_ns.load(Ordering::Relaxed)),
                    reference: Instant::from_ns(self.reference_ns.load(Ordering::Relaxed)),
                    width: Span::from_ns(self.width_ns.load(Ordering::Relaxed)),
                };
                fence(Ordering::Acquire);
                if self.turn.load(Ordering::Relaxed) == turn {
                    let new = self.taken.swap(turn, Ordering::Relaxed) != turn;
                    return new.then_some(reading);
                }
            }
            core::hint::spin_loop();
        }
        None
    }
}

/// Looks at a reading that is being written.
const TRIES: usize = 1_000;

#[cfg(test)]
mod tests {
    //! Maps and servos against references that drift, scatter, step and stop.

    use super::*;
    use crate::clock::Clock;
    use crate::testing::Random;
    use crate::time::{Instant, Span};

    fn at(ns: u64) -> Instant {
        Instant::from_ns(ns)
    }

    #[test]
    fn there_and_back_is_never_early_and_off_by_one_at_most() {
        let mut random = Random::new(3);
        for _ in 0..20_000 {
            let mut map = Map::shifted(at(1 << 50), at(1_700_000_000_000_000_000));
            map.before_ppb = random.within(100_000_000);
            map.after_ppb = random.within(100_000_000);
            let grid = map.grid + Span::from_ns(random.within(1 << 40));
            let instant = map.monotonic(grid);
            assert!(map.grid(instant) >= grid, "{map:?} {grid:?}");
            assert!(map.grid(instant - Span::from_ns(1)) < grid, "{map:?} {grid:?}");
        }
    }

    #[test]
    fn a_bend_is_continuous_and_changes_nothing_before_it() {
        let map =
            Map { before_ppb: 5, after_ppb: 90_000, ..Map::shifted(at(1 << 40), at(7 << 40)) };
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
                assert!(
                    (map.grid(then) - before.grid(then)).as_ns().abs() <= 1,
                    "{before:?} {map:?}"
                );
            }
        }
    }

    fn started(drift_ppb: i64, scatter_ns: i64, settings: Settings) -> (Servo, World, u64) {
        let shift_ns = 1 << 50;
        let mut world =
            World { drift_ppb, scatter_ns, shift_ns, random: Random::new(drift_ppb as u64) };
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
                assert!(
                    off.abs() <= 5 + 2 * scatter_ns,
                    "{drift_ppb} {scatter_ns}: {off} {status:?}"
                );
                let rate = (status.drift_ppb - drift_ppb as f64).abs();
                assert!(
                    rate <= 0.2 + 0.2 * scatter_ns as f64,
                    "{drift_ppb} {scatter_ns}: {status:?}"
                );
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
            servo
                .follow(ClockReading { reference: still, ..world.read(now) }, at(now + SECOND / 20))
        };
        assert_eq!(read(&mut servo), ServoEvent::Stopped);
        servo.begin();
        assert_eq!(servo.status().stops, 0);
        assert_eq!(
            (read(&mut servo), read(&mut servo)),
            (ServoEvent::Stopped, ServoEvent::Stopped)
        );
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
        // On again where it stopped: as far behind as it stood still, and followed from then on.
        world.shift_ns -= 20_000_000_000;
        now += SECOND;
        let resumed = servo.follow(world.read(now), at(now + SECOND / 10));
        assert!(matches!(resumed, ServoEvent::Stepped(_)), "{resumed:?}");
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
        let mut random = Random::new(99);
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
            release += Span::from_ms(1);
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
}
