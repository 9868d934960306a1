//! The servo that keeps a grid on its reference: a pure function of readings.
//!
//! For the thread that follows. The rate comes from a line of least squares through the last
//! readings, the phase error is slewed in over a few of them, and both together never exceed the
//! limit, so that no period is ever longer or shorter than that. There is no integrator that could
//! wind up. A reference that steps or stops is counted, never followed at once. Reads no clock.

use super::{Map, PPB};
use crate::time::{Instant, Span};

/// Readings that the rate is taken from: with one a second and 20 ns of scatter it is good to about
/// 1 part in 10⁹.
pub const WINDOW: usize = 16;
/// A phase error is to be gone after so many times the distance of two readings.
const SETTLE: f64 = 4.0;

/// Both clocks at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClockReading {
    /// CLOCK_MONOTONIC.
    pub monotonic: Instant,
    /// The reference.
    pub reference: Instant,
    /// The time between the two at most.
    pub width: Span,
}

impl ClockReading {
    /// The reference's time at an instant of CLOCK_MONOTONIC, the two read within `width`.
    ///
    /// # Real-time: in loop
    pub const fn new(monotonic: Instant, reference: Instant, width: Span) -> Self {
        Self { monotonic, reference, width }
    }
}

/// The limits of a grid that follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// By how much the grid's time may run faster or slower than CLOCK_MONOTONIC at most, in parts
    /// of 10⁹: 0 to 10⁸.
    pub limit_ppb: i64,
    /// A reading this far from where the reference should be is a step.
    pub step: Span,
    /// The grid's period in whole nanoseconds, if it has one: of a step only what is left over
    /// whole periods is slewed in, and without one nothing.
    pub period_ns: Option<u64>,
}

impl Default for Settings {
    /// 100 parts in a million, steps from a millisecond on, no period.
    fn default() -> Self {
        Self { limit_ppb: 100_000, step: Span::from_ms(1), period_ns: None }
    }
}

impl Settings {
    /// Sets the limit, in parts of 10⁹.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub const fn with_limit_ppb(mut self, limit_ppb: i64) -> Self {
        self.limit_ppb = limit_ppb;
        self
    }

    /// Sets from where on a reading is a step.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub const fn with_step(mut self, step: Span) -> Self {
        self.step = step;
        self
    }

    /// Sets the grid's period in whole nanoseconds.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub const fn with_period_ns(mut self, period_ns: Option<u64>) -> Self {
        self.period_ns = period_ns;
        self
    }
}

/// The result of a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServoEvent {
    /// It was followed.
    Followed,
    /// The reference has stepped by this much; the grid goes on as it was.
    Stepped(Span),
    /// The reference stands still, or goes at less than half of its pace; the grid goes on.
    Stopped,
    /// The clocks were read in the wrong order, or too soon: the reading is ignored.
    Ignored,
}

/// The drift and the errors of a grid up to now.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ServoStatus {
    /// The rate by which the reference is faster than CLOCK_MONOTONIC, in parts of 10⁹.
    pub drift_ppb: f64,
    /// Reference − grid at the last reading, steps left out, ns.
    pub phase_ns: i64,
    /// The root of its mean square over all readings, ns.
    pub phase_rms_ns: f64,
    /// Its largest amount, ns.
    pub phase_max_ns: u64,
    /// Readings that were followed.
    pub readings: u64,
    /// Steps of the reference.
    pub steps: u64,
    /// The part of them that the grid does not follow, in all, ns: so far the reference is ahead of
    /// it.
    pub stepped_ns: i64,
    /// Stops of the reference.
    pub stops: u64,
    /// Readings at which the limit held the grid back.
    pub limited: u64,
}

/// Makes maps of readings.
#[derive(Clone, Debug)]
pub struct Servo {
    settings: Settings,
    map: Map,
    status: ServoStatus,
    /// The last readings, from the first one on: CLOCK_MONOTONIC, and the reference without its
    /// steps, relative to that.
    window: [(i64, i64); WINDOW],
    filled: usize,
    origin: ClockReading,
    /// The last reading that was taken in, as followed or as stepped to.
    last: ClockReading,
    /// The last reading of all, also of a reference that stands still.
    previous: ClockReading,
    stopped: bool,
}

impl Servo {
    /// A servo whose grid has the reference's time at a first reading. Settings out of range are
    /// taken as their ends.
    ///
    /// # Real-time: setup only
    pub fn new(settings: Settings, first: ClockReading) -> Self {
        let limit_ppb = settings.limit_ppb.clamp(0, PPB / 10);
        Self {
            settings: Settings { limit_ppb, ..settings },
            map: Map::shifted(first.monotonic, first.reference),
            status: ServoStatus::default(),
            window: [(0, 0); WINDOW],
            filled: 1,
            origin: first,
            last: first,
            previous: first,
            stopped: false,
        }
    }

    /// Begins the grid anew at the last reading, with the rate that is known by now, and counts
    /// anew. For use before the first reader of the map: it may jump.
    ///
    /// # Real-time: setup only
    pub fn begin(&mut self) {
        let drift_ppb = self.status.drift_ppb;
        self.status = ServoStatus { drift_ppb, ..ServoStatus::default() };
        // A reference that stands still is reported with the counters from now on.
        self.stopped = false;
        let limit = self.settings.limit_ppb as f64;
        let ppb = drift_ppb.clamp(-limit, limit) as i64;
        self.map = Map {
            before_ppb: ppb,
            after_ppb: ppb,
            ..Map::shifted(self.last.monotonic, self.last.reference)
        };
    }

    /// The map at present.
    ///
    /// # Real-time: reader side
    pub fn map(&self) -> Map {
        self.map
    }

    /// The drift and the errors of a grid up to now.
    ///
    /// # Real-time: reader side
    pub fn status(&self) -> ServoStatus {
        self.status
    }

    /// Takes a reading in, and bends the map at `bend`: an instant to come, by which the loop has
    /// seen the new map, so that its time is continuous. An earlier bend that is not over yet
    /// stays, and this reading counts for the rate alone.
    ///
    /// # Real-time: reader side
    pub fn follow(&mut self, reading: ClockReading, bend: Instant) -> ServoEvent {
        if reading.monotonic <= self.previous.monotonic {
            return ServoEvent::Ignored;
        }
        let before = core::mem::replace(&mut self.previous, reading);
        let since_ns = (reading.monotonic - before.monotonic).as_ns();
        let went_ns = (reading.reference - before.reference).as_ns();
        let passed_ns = (reading.monotonic - self.last.monotonic).as_ns();
        let moved_ns = (reading.reference - self.last.reference).as_ns();
        let off_ns = moved_ns.saturating_sub(passed_ns.saturating_add(self.drift(passed_ns)));
        let patience_ns = self.settings.step.as_ns().saturating_add(reading.width.as_ns());
        let far = off_ns.saturating_abs() > patience_ns;
        if far && (0..since_ns / 2).contains(&went_ns) {
            self.status.stops += u64::from(!self.stopped);
            self.stopped = true;
            return ServoEvent::Stopped;
        }
        self.stopped = false;
        self.last = reading;
        if far {
            self.step(reading, off_ns);
            return ServoEvent::Stepped(Span::from_ns(off_ns));
        }
        self.keep(reading);
        self.steer(reading, bend);
        ServoEvent::Followed
    }

    /// The gain of the reference in so many nanoseconds.
    fn drift(&self, ns: i64) -> i64 {
        (self.status.drift_ppb * ns as f64 / PPB as f64) as i64
    }

    /// The reference has stepped: what is whole periods, or all of it, is not followed.
    fn step(&mut self, reading: ClockReading, by_ns: i64) {
        self.status.steps += 1;
        let period = self.settings.period_ns.and_then(|ns| i64::try_from(ns).ok());
        let kept_ns = match period {
            // To the nearest: half a period at most is slewed.
            Some(period) if period > 0 => {
                let half = period / 2;
                (by_ns.saturating_add(half)).div_euclid(period).saturating_mul(period)
            }
            _ => by_ns,
        };
        self.status.stepped_ns = self.status.stepped_ns.saturating_add(kept_ns);
        // The rate comes only from readings between two steps.
        self.origin = reading;
        self.filled = 1;
        self.window[0] = (0, 0);
    }

    /// One more reading, and the rate anew.
    fn keep(&mut self, reading: ClockReading) {
        if self.filled == WINDOW {
            self.window.copy_within(1.., 0);
            self.filled -= 1;
        }
        let at_ns = (reading.monotonic - self.origin.monotonic).as_ns();
        let gained_ns = (reading.reference - self.origin.reference).as_ns().saturating_sub(at_ns);
        self.window[self.filled] = (at_ns, gained_ns);
        self.filled += 1;
        if let Some(slope) = slope(&self.window[..self.filled]) {
            // What an oscillator can be off by, and far beyond: 1 in 10.
            self.status.drift_ppb = (slope * PPB as f64).clamp(-1e8, 1e8);
        }
    }

    /// Bends the map so that the phase error goes.
    fn steer(&mut self, reading: ClockReading, bend: Instant) {
        let reference = reading.reference - Span::from_ns(self.status.stepped_ns);
        self.status.judge((reference - self.map.grid(reading.monotonic)).as_ns());
        // A bend to come stays where the loop has seen it.
        if reading.monotonic < self.map.at || bend <= self.map.at {
            return;
        }
        let ahead_ns = (bend - reading.monotonic).as_ns().max(0);
        let then = reference + Span::from_ns(ahead_ns.saturating_add(self.drift(ahead_ns)));
        let left_ns = (then - self.map.grid(bend)).as_ns();
        let apart_ns = self.distance_ns();
        // Within the width of the reading there is nothing to correct.
        let dead = left_ns.saturating_abs() <= reading.width.as_ns() / 2;
        let phase_ppb = if dead { 0.0 } else { left_ns as f64 / (SETTLE * apart_ns) * PPB as f64 };
        let wanted = self.status.drift_ppb + phase_ppb;
        let limit = self.settings.limit_ppb as f64;
        self.status.limited += u64::from(wanted.abs() > limit);
        self.map = self.map.bent(bend, wanted.clamp(-limit, limit) as i64);
    }

    /// The distance of readings, ns: the mean, or that of the last two where they come slower now.
    fn distance_ns(&self) -> f64 {
        let kept = &self.window[..self.filled];
        let last = kept[self.filled - 1].0;
        let mean = (last - kept[0].0) as f64 / (self.filled as f64 - 1.0).max(1.0);
        let before = kept[self.filled.saturating_sub(2)].0;
        mean.max((last - before) as f64).max(1.0)
    }
}

impl ServoStatus {
    /// One more phase error.
    fn judge(&mut self, phase_ns: i64) {
        self.phase_ns = phase_ns;
        self.phase_max_ns = self.phase_max_ns.max(phase_ns.unsigned_abs());
        self.readings += 1;
        let mean = self.phase_rms_ns * self.phase_rms_ns;
        let square = phase_ns as f64 * phase_ns as f64;
        self.phase_rms_ns = root(mean + (square - mean) / self.readings as f64);
    }
}

/// The slope of the line of least squares; `None` for less than two readings.
fn slope(readings: &[(i64, i64)]) -> Option<f64> {
    let n = readings.len() as f64;
    let first = readings.first()?;
    let x = |reading: &(i64, i64)| (reading.0 - first.0) as f64;
    let y = |reading: &(i64, i64)| reading.1.saturating_sub(first.1) as f64;
    let mean_x = readings.iter().map(x).sum::<f64>() / n;
    let mean_y = readings.iter().map(y).sum::<f64>() / n;
    let mut sums = (0.0, 0.0);
    for reading in readings {
        let away = x(reading) - mean_x;
        sums = (sums.0 + away * (y(reading) - mean_y), sums.1 + away * away);
    }
    (sums.1 > 0.0).then(|| sums.0 / sums.1)
}

/// The square root, by Newton's steps: there is none in `core`.
fn root(square: f64) -> f64 {
    if square <= 0.0 || !square.is_finite() {
        return 0.0;
    }
    // Half of the exponent is within a factor of two.
    let mut root = f64::from_bits((square.to_bits() >> 1) + (1023 << 51));
    for _ in 0..5 {
        root = 0.5 * (root + square / root);
    }
    root
}
