//! The map as the loop sees it: written by one thread, read by any, without a lock.
//!
//! For the thread that follows and the loops that run on it. A seqlock of atomics: a reader that
//! meets a writer gets nothing, keeps the map that it has, and looks again at its next wake.

use core::sync::atomic::{AtomicI64, AtomicU64, Ordering, fence};

use super::map::Map;
use super::servo::{Servo, ServoStatus};
use crate::time::Instant;

/// A map and a status in one piece.
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

/// What a reader saw.
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
