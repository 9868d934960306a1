//! The last reading of a reference that a loop itself takes, passed to the thread that follows.
//!
//! For buses whose time comes back with each frame (EtherCAT's distributed clocks), and for drivers
//! that stamp a buffer. One writer, which never waits, and one reader; only the latest counts.

use core::sync::atomic::{AtomicI64, AtomicU64, Ordering, fence};

use super::servo::ClockReading;
use crate::time::{Instant, Span};

/// The last reading, in one piece.
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
    use std::sync::atomic::AtomicBool;

    use super::*;

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
