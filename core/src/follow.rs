//! A grid that follows another clock: AnT's open problem of two clocks that drift apart.
//!
//! For executives whose releases lie on the timescale of a PTP clock, of TAI or of a bus. Another
//! thread reads that clock; a [`Servo`] makes a [`Map`] of the readings, which bends by no more
//! than a limit and never jumps; [`Shared`] hands it to the loop, and [`Following`] is a clock that
//! runs on it, so that executives need no change. Nothing here waits.

mod servo;

use core::sync::atomic::{AtomicI64, AtomicU64, Ordering, fence};

use crate::clock::Clock;
use crate::time::{Instant, Span};
pub use servo::{ClockReading, Servo, ServoEvent, ServoStatus, Settings, WINDOW};

/// Parts in a whole, for rates.
pub const PPB: i64 = 1_000_000_000;

/// The grid's time as a function of CLOCK_MONOTONIC, two straight lines that meet: before the bend
/// with one rate, after it with another, and at the bend with one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Map {
    /// Where it bends, on CLOCK_MONOTONIC.
    pub at: Instant,
    /// The grid's time there.
    pub grid: Instant,
    /// By how much the grid's time runs faster than CLOCK_MONOTONIC until then, in parts of 10⁹.
    pub before_ppb: i64,
    /// And from then on.
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
}

impl<S: AsRef<Shared>, C: Clock> Following<S, C> {
    /// The machine's clock through the map that is shared; `None` where none is yet.
    ///
    /// # Real-time: setup only
    pub fn new(clock: C, shared: S) -> Option<Self> {
        let turn = shared.as_ref().turn();
        let map = shared.as_ref().view()?.map;
        Some(Self { clock, shared, turn, map })
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
    /// How well the grid follows.
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

    /// Which edition there is: another one than before means a look is due. 0 for none yet.
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
mod tests;
