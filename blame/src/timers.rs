//! Timers that were programmed, by their address, and the clocks that they count on.
//!
//! A timer on a stack has another address each time, and not every cancel is recorded: so the table
//! has a fixed size, and the longest programmed of four neighbours makes way.

use punctual_trace::event::{CodeAddress, TaskName};

use crate::release::{Activation, LAST_NS, ReleaseAnchor};

/// Sets of the table, each of four timers: some 0.7 MB.
const SETS: usize = 1 << 11;
const WAYS: usize = 4;

/// A timer as `hrtimer_start` programmed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arm {
    pub(crate) timer: u64,
    pub(crate) function: CodeAddress,
    /// ns of the timer's own clock.
    pub(crate) expires_ns: i64,
    /// The earliest expiry, the requested one, ns of the timer's own clock.
    pub(crate) soft_expires_ns: i64,
    pub(crate) armer: TaskName,
    pub(crate) armed_ns: u64,
    pub(crate) cpu: u32,
}

impl Arm {
    /// The release by its expiry, where its clock is ahead of the events' by so much, ns.
    pub(crate) fn activation(&self, ahead_ns: i64) -> Activation {
        let on_events_clock = |expires_ns: i64| {
            // Before the begin of the events' clock, its begin.
            let at_ns = u64::try_from(expires_ns.saturating_sub(ahead_ns)).unwrap_or(0);
            at_ns.min(LAST_NS)
        };
        Activation {
            anchor: ReleaseAnchor::Timer { timer: self.timer, function: self.function },
            release_ns: on_events_clock(self.soft_expires_ns),
            latest_ns: on_events_clock(self.expires_ns),
            armed_ns: Some(self.armed_ns),
            is_whole: true,
        }
    }
}

/// All timers that wait.
#[derive(Debug, Clone)]
pub(crate) struct TimerTable {
    /// A set is there from its first timer on.
    sets: Vec<Option<Box<[Option<Arm>; WAYS]>>>,
    displaced: u64,
}

impl Default for TimerTable {
    fn default() -> Self {
        Self { sets: vec![None; SETS], displaced: 0 }
    }
}

impl TimerTable {
    /// Programs a timer, again where it was.
    pub(crate) fn insert(&mut self, arm: Arm) {
        let set = self.sets[Self::set(arm.timer)].get_or_insert_with(|| Box::new([None; WAYS]));
        let known = set.iter().position(|way| way.is_some_and(|old| old.timer == arm.timer));
        let way = known.or_else(|| set.iter().position(Option::is_none)).unwrap_or_else(|| {
            self.displaced += 1;
            let armed_ns = |way: &usize| set[*way].map_or(0, |old| old.armed_ns);
            (0..WAYS).min_by_key(armed_ns).unwrap_or(0)
        });
        set[way] = Some(arm);
    }

    /// Takes out a timer that expires; `None` where it was not seen to be programmed.
    pub(crate) fn take(&mut self, timer: u64) -> Option<Arm> {
        let set = self.sets[Self::set(timer)].as_mut()?;
        set.iter_mut().find(|way| way.is_some_and(|arm| arm.timer == timer))?.take()
    }

    /// Nothing is known of any of them.
    pub(crate) fn forget(&mut self) {
        self.sets.fill(None);
    }

    /// Timers that made way for others while they waited, or after a cancel that was not seen.
    pub(crate) const fn displaced(&self) -> u64 {
        self.displaced
    }

    const fn set(timer: u64) -> usize {
        // Fibonacci hashing: the upper bits of the product depend on all bits of the address.
        (timer.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SETS.trailing_zeros())) as usize
    }
}

/// A clock that timers count on, by its offset ahead of the events' clock.
#[derive(Debug, Clone, Copy)]
struct ClockBase {
    /// The largest `now` − event time that was seen. The interrupt reads its clock before the event
    /// is recorded, so that the true one is no smaller.
    ahead_ns: i64,
}

/// Clocks further apart than this are different ones, ns. A step of one by less shows as lateness.
const APART_NS: i64 = 100_000_000;
/// Clocks that are kept apart: MONOTONIC, REALTIME, TAI, BOOTTIME, and steps.
const BASES: usize = 8;
/// The longest time from the reading of a clock to the expiries by it, ns.
const STALE_NS: i64 = 10_000_000_000;
/// Offset below which a clock counts as the events' own, ns.
const OWN_NS: i64 = 100_000_000;

/// The clocks of timers, learnt from their expiries.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClockBases {
    known: Vec<ClockBase>,
    /// Offsets that the caller read beside the capture, exact to its reading.
    given_ns: Vec<i64>,
    /// True where the events have a clock that timers do not count on: then each is learnt, however
    /// near it is. The clock of the scheduler is a few milliseconds from MONOTONIC.
    is_foreign: bool,
    steps: u64,
}

impl ClockBases {
    /// The clocks, with offsets that were read beside the capture, ns.
    pub(crate) fn new(given_ns: &[i64], is_foreign: bool) -> Self {
        let given_ns = given_ns.iter().copied().take(BASES).collect();
        Self { known: Vec::new(), given_ns, is_foreign, steps: 0 }
    }

    /// Expiries on clocks beyond the room for them: steps, or a broken capture.
    pub(crate) const fn steps(&self) -> u64 {
        self.steps
    }

    /// The offset, ns, of the clock of which an expiry at the event time `at_ns` read `now_ns`, no
    /// earlier than at `since_ns`, of a timer that was programmed so.
    pub(crate) fn offset_at_expiry(
        &mut self,
        now_ns: i64,
        since_ns: u64,
        at_ns: u64,
        arm: Option<&Arm>,
    ) -> i64 {
        let seen_ns = now_ns.saturating_sub_unsigned(at_ns);
        // Read before that it is another clock, or one that was set back.
        let is_old = |ahead_ns: &i64| {
            (APART_NS..STALE_NS).contains(&ahead_ns.saturating_sub(seen_ns))
                && now_ns.saturating_sub(*ahead_ns) >= since_ns.min(LAST_NS).cast_signed()
        };
        // On another clock than it was programmed for it would have expired long before that.
        let may_be_its = |ahead_ns: &i64| {
            arm.is_none_or(|arm| {
                let release_ns = arm.expires_ns.saturating_sub(*ahead_ns);
                release_ns >= arm.armed_ns.cast_signed().saturating_sub(APART_NS)
            })
        };
        let is_near = self.offsets().any(|ahead_ns| ahead_ns.abs_diff(seen_ns) < APART_NS as u64);
        let old = self.offsets().filter(is_old).filter(may_be_its).min();
        match old.filter(|_| !is_near) {
            Some(ahead_ns) => ahead_ns,
            None => self.learn(now_ns, at_ns),
        }
    }

    /// The offset, ns, of the clock of which an expiry read `now_ns` at the event time `at_ns`.
    fn learn(&mut self, now_ns: i64, at_ns: u64) -> i64 {
        let seen_ns = now_ns.saturating_sub_unsigned(at_ns);
        let near = |ahead_ns: i64| ahead_ns.abs_diff(seen_ns) < APART_NS.unsigned_abs();
        if !self.is_foreign && seen_ns.unsigned_abs() < OWN_NS.unsigned_abs() {
            return 0;
        }
        if let Some(&given_ns) =
            self.given_ns.iter().filter(|&&given| near(given)).min_by_key(|g| g.abs_diff(seen_ns))
        {
            return given_ns;
        }
        if let Some(base) = self.known.iter_mut().find(|base| near(base.ahead_ns)) {
            base.ahead_ns = base.ahead_ns.max(seen_ns);
            return base.ahead_ns;
        }
        if self.known.len() < BASES {
            self.known.push(ClockBase { ahead_ns: seen_ns });
        } else {
            self.steps += 1;
        }
        seen_ns
    }

    /// The offset, ns, of the clock that an expiry beyond now is on, as far as that can be seen
    /// before: the one that brings it nearest to now.
    pub(crate) fn guess(&self, expires_ns: i64, at_ns: u64) -> i64 {
        let seen_ns = expires_ns.saturating_sub_unsigned(at_ns);
        self.offsets().min_by_key(|ahead_ns| ahead_ns.abs_diff(seen_ns)).unwrap_or(0)
    }

    /// The offsets of all clocks that are known, ns.
    fn offsets(&self) -> impl Iterator<Item = i64> + '_ {
        let has_own = !self.is_foreign;
        let known = self.known.iter().map(|base| base.ahead_ns);
        known.chain(self.given_ns.iter().copied()).chain(has_own.then_some(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(timer: u64, armed_ns: u64) -> Arm {
        Arm {
            timer,
            function: 1,
            expires_ns: 2,
            soft_expires_ns: 2,
            armer: TaskName::default(),
            armed_ns,
            cpu: 0,
        }
    }

    #[test]
    fn a_timer_is_there_until_it_expires() {
        let mut timers = TimerTable::default();
        timers.insert(arm(0xffff_8880_0000_1000, 5));
        timers.insert(arm(0xffff_8880_0000_1000, 9));
        assert_eq!(timers.take(0xffff_8880_0000_1000).map(|arm| arm.armed_ns), Some(9));
        assert_eq!(timers.take(0xffff_8880_0000_1000), None);
    }

    #[test]
    fn the_oldest_of_four_makes_way_and_is_counted() {
        let mut timers = TimerTable::default();
        let same_set: Vec<u64> = (0..1_000_000).filter(|&t| TimerTable::set(t) == 7).collect();
        for (at, &timer) in same_set.iter().take(5).enumerate() {
            timers.insert(arm(timer, 10 - at as u64));
        }
        assert_eq!(timers.displaced(), 1);
        let left = same_set[..5].iter().map(|&timer| timers.take(timer).is_some());
        assert_eq!(left.collect::<Vec<_>>(), [true, true, true, false, true]);
    }

    #[test]
    fn the_events_own_clock_needs_no_learning() {
        let mut bases = ClockBases::default();
        assert_eq!(bases.learn(1_000_050, 1_000_900), 0);
        assert_eq!(bases.guess(2_000_000, 1_000_900), 0);
    }

    #[test]
    fn another_clock_is_learnt_from_its_quickest_interrupt() {
        let mut bases = ClockBases::default();
        let ahead = 1_700_000_000_000_000_000;
        assert_eq!(bases.learn(ahead + 1_000, 1_700), ahead - 700);
        assert_eq!(bases.learn(ahead + 2_000, 2_200), ahead - 200);
        assert_eq!(bases.learn(ahead + 3_000, 4_000), ahead - 200);
        assert_eq!(bases.guess(ahead + 5_000, 4_500), ahead - 200);
        assert_eq!(bases.guess(5_000, 4_500), 0);
        let mut given = ClockBases::new(&[ahead], false);
        assert_eq!(given.learn(ahead + 1_000, 1_700), ahead);
    }

    #[test]
    fn a_foreign_clock_is_learnt_however_near_it_is() {
        let mut bases = ClockBases::new(&[], true);
        assert_eq!(bases.learn(9_000_300, 1_000), 8_999_300);
        assert_eq!(bases.learn(14_000_000, 5_000_500), 8_999_500);
        assert_eq!(bases.guess(19_000_000, 5_001_000), 8_999_500);
    }

    #[test]
    fn a_clock_that_was_read_long_before_is_no_other_clock() {
        let ahead = 1_700_000_000_000_000_000;
        let mut bases = ClockBases::new(&[ahead], false);
        let armed = |expires_ns| Arm { expires_ns, ..arm(1, 5_000_000) };
        // Read at 6 ms; the thread that serves timers goes on 150 ms later.
        let (read_ns, at_ns) = (6_000_000, 156_000_000);
        let own = armed(5_500_000);
        assert_eq!(bases.offset_at_expiry(read_ns, 0, at_ns, Some(&own)), 0);
        let other = armed(ahead + 5_500_000);
        assert_eq!(bases.offset_at_expiry(ahead + read_ns, 5_900_000, at_ns, Some(&other)), ahead);
        assert_eq!(bases.offset_at_expiry(read_ns, 0, at_ns, None), 0);
        assert!(bases.known.is_empty(), "nothing is learnt of it");
        // Another one, 3 s behind: the timer would have expired before it was programmed.
        let third = ahead - 3_000_000_000;
        let behind = armed(third + 5_500_000);
        assert_eq!(
            bases.offset_at_expiry(third + 6_000_000, 0, 6_000_300, Some(&behind)),
            third - 300
        );
        assert_eq!((bases.known.len(), bases.steps()), (1, 0));
        // One that was set back by 150 ms: it was read in the interrupt that calls the function.
        let back = ahead - 150_000_000;
        let (now_ns, since_ns) = (back + at_ns.cast_signed() - 300, at_ns - 1_000);
        assert_eq!(bases.offset_at_expiry(now_ns, since_ns, at_ns, Some(&other)), back - 300);
        assert_eq!((bases.known.len(), bases.steps()), (2, 0));
    }

    #[test]
    fn more_clocks_than_there_are_count_as_steps() {
        let mut bases = ClockBases::default();
        for step in 1..12 {
            bases.learn(step * 1_000_000_000, 0);
        }
        assert_eq!(bases.steps(), 3);
    }
}
