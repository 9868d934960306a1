//! The processor's counter on the timescale of CLOCK_MONOTONIC, anchored anew at each wake.
//!
//! For loops. Interpolates from the last anchor only: an error of the rate acts for the time since
//! the last wake (1 ppm over 1 ms is 1 ns) and never accumulates. The rate itself is judged over
//! the whole time since calibration.

use punctual_core::clock::Clock;
use punctual_core::time::{Instant, Span};
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::cycles;
use punctual_os::timed_pause::TimedPause;

/// Ticks to nanoseconds are `ticks · mult >> SHIFT`: a resolution of 2⁻³² ns a tick.
const SHIFT: u32 = 32;

/// The length of the calibration: with brackets of 100 ns the rate is bounded to a few ppm at once.
const CALIBRATION: Span = Span::from_ms(50);

/// Readings at each end of the calibration; the one in the narrowest bracket counts.
const READINGS: usize = 50;

/// A bracket wider than this was interrupted, and is taken again.
const BRACKET_MAX_NS: u64 = 1_000;

/// NTP slews by up to 500 ppm: a rate that changed by more than twice that is measured anew.
const DRIFT_MAX: f64 = 1e-3;

/// The times that a wide bracket is taken again at a wake before the old anchor is kept.
const RETRIES: usize = 3;

/// A pause may come back this late, but for 1 in 100: what is spun after it does the rest.
const LATE_MAX: Span = Span::from_ns(500);

/// The lengths of the trial's pauses, in turn. An intercepted instruction takes the same time
/// whatever its deadline is, and two of them (MONITORX and MWAITX) twice that: too short for one of
/// these or too long for another.
const LENGTHS: [Span; 4] =
    [Span::from_us(3), Span::from_us(5), Span::from_us(8), Span::from_us(12)];
/// Pauses of a round, and rounds: the best one counts, for an interrupt is not the processor's.
const ROUND: usize = 200;

const ROUNDS: usize = 3;

/// More than so many of a round that ended before three quarters of their time are not interrupts,
/// nor the kernel's event stream on AArch64 (one event in 100 µs).
const EARLY_MAX: usize = ROUND / 5;

/// The shortest pause that is worth its entry and its exit.
const WORTH: Span = Span::from_us(1);

/// One reading of CLOCK_MONOTONIC between two of the counter.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    /// The middle of the two counter readings.
    ticks: u64,
    /// CLOCK_MONOTONIC then, in ns.
    ns: u64,
    /// Distance of the two counter readings.
    width_ticks: u64,
}

impl Anchor {
    #[inline]
    fn after(before: u64) -> Self {
        let ns = now_ns(ClockId::Monotonic);
        let width_ticks = cycles::ordered().wrapping_sub(before);
        Self { ticks: before.wrapping_add(width_ticks / 2), ns, width_ticks }
    }

    fn narrowest() -> Self {
        (0..READINGS)
            .map(|_| Self::after(cycles::ordered()))
            .min_by_key(|anchor| anchor.width_ticks)
            .unwrap_or_else(|| Self::after(cycles::ordered()))
    }
}

/// The rate of the counter, with the bound of its error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CounterRate {
    /// Ticks in a second of CLOCK_MONOTONIC.
    pub hz: f64,
    /// The relative error is at most this, in parts per billion: both brackets over the time
    /// between.
    pub bound_ppb: f64,
    /// The time between the two readings that it comes from.
    pub over: Span,
}

/// The counter as a [`Clock`].
#[derive(Clone, Debug)]
pub struct Anchored {
    mult: u64,
    anchor: Anchor,
    /// The reading that calibration began with.
    origin: Anchor,
    rate: CounterRate,
    pauses: PauseTrial,
}

impl Anchored {
    /// Measures the counter's rate against CLOCK_MONOTONIC for about 50 ms.
    ///
    /// # Real-time: setup only
    pub fn calibrate() -> Self {
        let origin = Anchor::narrowest();
        let mut anchored = Self {
            mult: 1 << SHIFT,
            anchor: origin,
            origin,
            rate: rate(&origin, &origin),
            pauses: PauseTrial::Absent,
        };
        super::sleep_until(Instant::from_ns(origin.ns) + CALIBRATION);
        anchored.discipline();
        anchored
    }

    /// Takes the rate anew, over all the time since calibration began; where that gives another
    /// rate altogether, calibrates once more, for 50 ms.
    ///
    /// # Real-time: setup only
    pub fn discipline(&mut self) {
        let now = Anchor::narrowest();
        let fresh = rate(&self.origin, &now);
        if self.drifted(&fresh) {
            // The counter went on in a suspend in which CLOCK_MONOTONIC stood still, say: what lies
            // before tells nothing of the rate any more.
            *self = Self { pauses: self.pauses, ..Self::calibrate() };
            return;
        }
        self.rate = fresh;
        if self.rate.hz > 0.0 {
            // At most a few GHz against 2³²: fits, and is exact to 2⁻³² ns a tick.
            self.mult = (1e9 / self.rate.hz * (1u64 << SHIFT) as f64) as u64;
        }
        self.anchor = now;
    }

    /// Returns true where a rate is further from the one in use than any oscillator or NTP goes.
    fn drifted(&self, fresh: &CounterRate) -> bool {
        let (old, new) = (self.rate.hz, fresh.hz);
        let bound = (self.rate.bound_ppb + fresh.bound_ppb) / 1e9;
        old > 0.0 && new > 0.0 && (new / old - 1.0).abs() > DRIFT_MAX + bound
    }

    /// The rate, with the bound of its error.
    ///
    /// # Real-time: setup only
    pub fn rate(&self) -> CounterRate {
        self.rate
    }

    pub(super) fn try_pauses(&mut self, pauses: impl Iterator<Item = TimedPause>) {
        self.pauses = PauseTrial::of(pauses, self.rate.hz);
    }

    pub(super) fn pauses(&self) -> PauseTrial {
        self.pauses
    }

    #[inline]
    fn ns(&self, ticks: u64) -> u64 {
        ((u128::from(ticks) * u128::from(self.mult)) >> SHIFT) as u64
    }

    /// In 256ths of a nanosecond, modulo 2⁶⁴.
    #[inline]
    fn fine_of(&self, ticks: u64) -> u64 {
        let ahead = i128::from(ticks.wrapping_sub(self.anchor.ticks).cast_signed());
        let fine = (ahead * i128::from(self.mult)) >> (SHIFT - 8);
        (self.anchor.ns << 8).wrapping_add(fine as u64)
    }

    #[inline]
    fn instant(&self, ticks: u64) -> Instant {
        let ahead = ticks.wrapping_sub(self.anchor.ticks);
        // A stamp may lie before the anchor: the wake's does, by half a bracket.
        if ahead.cast_signed() >= 0 {
            Instant::from_ns(self.anchor.ns + self.ns(ahead))
        } else {
            Instant::from_ns(self.anchor.ns.saturating_sub(self.ns(ahead.wrapping_neg())))
        }
    }
}

/// Zero when no time lies between the readings.
fn rate(from: &Anchor, to: &Anchor) -> CounterRate {
    let ticks = to.ticks.wrapping_sub(from.ticks) as f64;
    let over_ns = to.ns.saturating_sub(from.ns);
    if over_ns == 0 || ticks <= 0.0 {
        return CounterRate { hz: 0.0, bound_ppb: f64::INFINITY, over: Span::ZERO };
    }
    // Each reading lies somewhere in its bracket: off by at most half its width.
    let off_ticks = (from.width_ticks + to.width_ticks) as f64 / 2.0;
    CounterRate {
        hz: ticks / (over_ns as f64) * 1e9,
        bound_ppb: off_ticks / ticks * 1e9,
        over: Instant::from_ns(to.ns) - Instant::from_ns(from.ns),
    }
}

impl Clock for Anchored {
    #[inline]
    fn now(&mut self) -> Instant {
        self.instant(cycles::ordered())
    }

    #[inline]
    fn poll(&mut self) -> Instant {
        self.instant(cycles::unordered())
    }

    #[inline]
    fn fine(&mut self) -> u64 {
        self.fine_of(cycles::unordered())
    }

    #[inline]
    fn fine_now(&mut self) -> u64 {
        self.fine_of(cycles::ordered())
    }

    #[inline]
    fn sleep_until(&mut self, at: Instant) {
        super::sleep_until(at);
    }

    #[inline]
    fn wake(&mut self) -> Instant {
        let stamp = cycles::ordered();
        let mut before = stamp;
        for _ in 0..RETRIES {
            let anchor = Anchor::after(before);
            if self.ns(anchor.width_ticks) <= BRACKET_MAX_NS {
                self.anchor = anchor;
                break;
            }
            before = cycles::ordered();
        }
        self.instant(stamp)
    }

    #[inline]
    fn at_monotonic(&mut self, at: Instant) -> Option<Instant> {
        Some(at)
    }

    #[inline]
    fn relax(&mut self) {
        cycles::relax();
    }

    #[inline]
    fn pause_until(&mut self, at: Instant) -> bool {
        let PauseTrial::Used(pause) = &self.pauses else { return false };
        let ahead_ns = u128::from(at.as_ns().saturating_sub(self.anchor.ns));
        let ticks = (ahead_ns << SHIFT) / u128::from(self.mult);
        pause.until(self.anchor.ticks.wrapping_add(ticks as u64))
    }
}

/// The result of the trial of a processor's timed pauses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PauseTrial {
    /// The processor has none.
    Absent,
    /// One that is not used, and why.
    Off(TimedPause, PauseFault),
    /// The one that is used.
    Used(UsedPause),
}

/// The reason why a timed pause is not used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PauseFault {
    /// It returns long before its deadline: a hypervisor intercepts it, or the kernel's limit
    /// (`umwait_control/max_time`) is a few microseconds.
    Early,
    /// 1 in 100 is later than 500 ns: this much.
    Late(Span),
}

/// A timed pause that keeps to its deadline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UsedPause {
    instruction: TimedPause,
    lead: Span,
    lead_ticks: u64,
    worth_ticks: u64,
}

impl std::fmt::Display for PauseFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Early => f.write_str(
                "it returns before its deadline: intercepted by a hypervisor, or limited by \
                 umwait_control/max_time",
            ),
            Self::Late(by) => write!(f, "1 in 100 is {by} late or more (at most {LATE_MAX})"),
        }
    }
}

impl PauseTrial {
    /// Tries these in turn, on a counter of this rate: the first that keeps to its deadline is
    /// used. Takes 5 ms each.
    fn of(pauses: impl Iterator<Item = TimedPause>, hz: f64) -> Self {
        let mut found = Self::Absent;
        for instruction in pauses {
            match lead(instruction, hz) {
                Ok(lead) => {
                    let [lead_ticks, worth_ticks] = [lead, WORTH].map(|span| ticks(span, hz));
                    return Self::Used(UsedPause { instruction, lead, lead_ticks, worth_ticks });
                }
                Err(fault) => found = Self::Off(instruction, fault),
            }
        }
        found
    }
}

impl UsedPause {
    /// The instruction.
    ///
    /// # Real-time: reader side
    pub fn instruction(&self) -> TimedPause {
        self.instruction
    }

    /// The time by which its deadline is before the instant: all but 1 in 100 are late by less.
    ///
    /// # Real-time: reader side
    pub fn lead(&self) -> Span {
        self.lead
    }

    /// Pauses until the counter is the lead before `at`; `false` at once where that is too near.
    #[inline]
    fn until(&self, at: u64) -> bool {
        let deadline = at.wrapping_sub(self.lead_ticks);
        let left = deadline.wrapping_sub(cycles::unordered()).cast_signed();
        if left < self.worth_ticks.cast_signed() {
            return false;
        }
        self.instruction.until(deadline);
        true
    }
}

/// The lateness that all but 1 in 100 pauses of the best round keep to.
fn lead(pause: TimedPause, hz: f64) -> Result<Span, PauseFault> {
    let lengths = LENGTHS.map(|length| ticks(length, hz));
    let rounds = (0..ROUNDS).filter_map(|_| round(pause, lengths));
    let late_ticks = rounds.min().ok_or(PauseFault::Early)?;
    let late = Span::from_ns((late_ticks as f64 / hz * 1e9).ceil() as i64);
    if late > LATE_MAX { Err(PauseFault::Late(late)) } else { Ok(late) }
}

/// The lateness that all but 1 in 100 keep to, ticks; `None` where they return early.
fn round(pause: TimedPause, lengths: [u64; LENGTHS.len()]) -> Option<u64> {
    let mut early = 0;
    let mut late = [0; ROUND];
    for (at, late) in late.iter_mut().enumerate() {
        let length = lengths[at % LENGTHS.len()];
        let deadline = cycles::ordered().wrapping_add(length);
        pause.until(deadline);
        let over = cycles::ordered().wrapping_sub(deadline).cast_signed();
        early += usize::from(over < -(length / 4).cast_signed());
        *late = over.max(0).unsigned_abs();
    }
    late.sort_unstable();
    (early <= EARLY_MAX).then_some(late[ROUND - 1 - ROUND / 100])
}

fn ticks(span: Span, hz: f64) -> u64 {
    (span.as_secs_f64() * hz) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    use punctual_core::clock::Clock;
    use punctual_core::wait::{Spin, Wait};
    use punctual_testkit::skip;

    use crate::clocks::{MachineClock, counter_rate, pause_trial};

    fn anchor(ticks: u64, ns: u64, width_ticks: u64) -> Anchor {
        Anchor { ticks, ns, width_ticks }
    }

    #[test]
    fn the_rate_and_its_bound_follow_from_two_readings() {
        let rate = rate(&anchor(1_000, 0, 100), &anchor(2_001_000, 1_000_000, 300));
        assert!((rate.hz - 2e9).abs() < 1.0);
        // 200 ticks of 2 000 000 are 100 ppm.
        assert!((rate.bound_ppb - 100_000.0).abs() < 1.0);
        assert_eq!(rate.over, Span::from_ms(1));
    }

    #[test]
    fn no_time_between_gives_no_rate() {
        let same = anchor(5, 5, 1);
        assert_eq!(rate(&same, &same).hz, 0.0);
    }

    #[test]
    fn a_suspend_does_not_make_another_rate() {
        let mut anchored = Anchored::calibrate();
        let rate = anchored.rate();
        // As if an hour had passed on CLOCK_MONOTONIC alone.
        anchored.origin.ns = anchored.origin.ns.saturating_sub(3_600_000_000_000).max(1);
        anchored.discipline();
        let again = anchored.rate().hz / rate.hz;
        assert!((again - 1.0).abs() < 1e-3, "{again}");
        assert!(anchored.rate().over < Span::from_ms(60_000), "from the new origin on");
    }

    #[test]
    fn stamps_before_and_after_the_anchor_are_both_right() {
        let anchored = Anchored {
            mult: 1 << (SHIFT - 1),
            anchor: anchor(1_000_000, 5_000, 10),
            origin: anchor(0, 0, 0),
            rate: rate(&anchor(0, 0, 0), &anchor(2, 1, 0)),
            pauses: PauseTrial::Absent,
        };
        assert_eq!(anchored.instant(1_000_200).as_ns(), 5_100);
        assert_eq!(anchored.instant(999_800).as_ns(), 4_900);
    }

    #[test]
    fn agrees_with_clock_monotonic_within_a_bracket() {
        if super::super::counter_trust().is_err() {
            return; // Nothing to agree with: the counter is not used on this machine.
        }
        let mut clock = Anchored::calibrate();
        let mut worst = 0;
        for _ in 0..1_000 {
            let before = now_ns(ClockId::Monotonic);
            let stamp = clock.wake().as_ns();
            let after = now_ns(ClockId::Monotonic);
            worst = worst.max(before.saturating_sub(stamp)).max(stamp.saturating_sub(after));
        }
        // Off by at most half of the widest bracket that a wake accepts.
        assert!(worst <= BRACKET_MAX_NS, "{worst} ns outside of its bracket");
    }

    #[test]
    fn a_timed_pause_of_this_processor_does_not_end_a_spin_early() {
        let has = TimedPause::ALL.iter().any(|pause| pause.is_supported());
        let mut clock = MachineClock::best();
        assert_eq!(
            pause_trial(&clock) == PauseTrial::Absent,
            !has || counter_rate(&clock).is_none()
        );
        if !skip::need_device("a processor with TPAUSE, MWAITX or WFET", has) {
            return;
        }
        let mut wait = Spin::new(Span::from_us(100));
        for _ in 0..50 {
            let release = clock.wake() + Span::from_us(150);
            let wake = wait.until(&mut clock, release, &AtomicBool::new(false));
            assert!(wake.is_some_and(|wake| wake >= release), "{wake:?} {:?}", pause_trial(&clock));
        }
    }
}
