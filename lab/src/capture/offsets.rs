//! The offsets of the other clocks from the one that events are stamped with.
//!
//! Timers expire on their own clock: the expiry of one for the time of day in `hrtimer_start` is
//! placed by these. Reads clocks, nothing else.

use punctual_os::clock::{ClockId, now_ns};

/// The offsets of the other clocks ahead of CLOCK_MONOTONIC, ns, and the instant at which they were
/// read. A step of the time of day is a step of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockOffsets {
    /// The instant at which they were read, ns on CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// CLOCK_REALTIME.
    pub realtime_ns: i64,
    /// CLOCK_TAI.
    pub tai_ns: i64,
    /// CLOCK_BOOTTIME.
    pub boottime_ns: i64,
    /// The bound of their error, ns: half of the longest time that a pair of reads took.
    pub uncertain_ns: u64,
}

/// Pairs of reads of each clock, of which the quickest counts.
const PAIRS: usize = 5;

impl ClockOffsets {
    /// Those of the three clocks, ns, as attribution takes them.
    pub fn all_ns(&self) -> Vec<i64> {
        vec![self.realtime_ns, self.tai_ns, self.boottime_ns]
    }

    /// Reads all clocks.
    pub fn take() -> Self {
        let realtime = nearest(ClockId::Realtime);
        let tai = nearest(ClockId::Tai);
        let boottime = nearest(ClockId::Boottime);
        Self {
            at_ns: now_ns(ClockId::Monotonic),
            realtime_ns: realtime.offset_ns(),
            tai_ns: tai.offset_ns(),
            boottime_ns: boottime.offset_ns(),
            uncertain_ns: realtime.half_ns().max(tai.half_ns()).max(boottime.half_ns()),
        }
    }
}

/// A read of another clock between two of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug)]
struct Bracket {
    before_ns: u64,
    clock_ns: u64,
    after_ns: u64,
}

impl Bracket {
    /// Half of the time between the outer reads.
    fn half_ns(self) -> u64 {
        self.after_ns.saturating_sub(self.before_ns) / 2
    }

    /// The clock's distance from the middle between them.
    fn offset_ns(self) -> i64 {
        self.clock_ns.wrapping_sub(self.before_ns + self.half_ns()).cast_signed()
    }
}

/// The quickest of some brackets.
fn nearest(clock: ClockId) -> Bracket {
    let bracket = || {
        let before_ns = now_ns(ClockId::Monotonic);
        let clock_ns = now_ns(clock);
        Bracket { before_ns, clock_ns, after_ns: now_ns(ClockId::Monotonic) }
    };
    let first = bracket();
    (1..PAIRS)
        .map(|_| bracket())
        .fold(first, |best, next| if next.half_ns() < best.half_ns() { next } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_is_from_the_middle() {
        let bracket = Bracket { before_ns: 100, clock_ns: 1_000, after_ns: 140 };
        assert_eq!((bracket.half_ns(), bracket.offset_ns()), (20, 880));
        let behind = Bracket { before_ns: 1_000, clock_ns: 10, after_ns: 1_001 };
        assert_eq!(behind.offset_ns(), -990);
    }

    #[test]
    fn the_clocks_agree_with_their_definitions() {
        let offsets = ClockOffsets::take();
        let again = ClockOffsets::take();
        assert!(again.at_ns >= offsets.at_ns);
        let slack = (offsets.uncertain_ns + 1).cast_signed();
        assert!(offsets.boottime_ns >= -slack, "it counts suspended time too: {offsets:?}");
        // TAI is ahead by whole seconds, where anybody set that.
        let ahead = offsets.tai_ns - offsets.realtime_ns;
        let off = ahead.rem_euclid(1_000_000_000);
        assert!(off.min(1_000_000_000 - off) <= 2 * slack, "{offsets:?}");
    }
}
