//! Whether the processor's timed pause keeps to its deadline, and how early it is to end.
//!
//! For the counter's clock, which lets spins pause by it. Measures once, at setup; decides nothing
//! in the loop.

use punctual_core::time::Span;
use punctual_os::cycles;
use punctual_os::timed_pause::TimedPause;

/// A pause may come back this late, but for 1 in 100: what is spun after it does the rest.
const LATE_MAX: Span = Span::from_ns(500);
/// How long the pauses of the trial are, in turn. An intercepted instruction takes the same time
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

/// What the trial of a processor's timed pauses found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PauseTrial {
    /// The processor has none.
    Absent,
    /// One that is not used, and why.
    Off(TimedPause, PauseFault),
    /// The one that is used.
    Used(UsedPause),
}

/// Why a timed pause is not used.
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
    /// Which.
    pub instruction: TimedPause,
    /// How long before the instant it is to end.
    pub lead: Span,
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
    pub(super) fn of(pauses: impl Iterator<Item = TimedPause>, hz: f64) -> Self {
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
    /// Pauses until the counter is the lead before `at`; `false` at once where that is too near.
    #[inline]
    pub(super) fn until(&self, at: u64) -> bool {
        let deadline = at.wrapping_sub(self.lead_ticks);
        let left = deadline.wrapping_sub(cycles::unordered()).cast_signed();
        if left < self.worth_ticks.cast_signed() {
            return false;
        }
        self.instruction.until(deadline);
        true
    }
}

/// How late 1 in 100 of the best round is.
fn lead(pause: TimedPause, hz: f64) -> Result<Span, PauseFault> {
    let lengths = LENGTHS.map(|length| ticks(length, hz));
    let rounds = (0..ROUNDS).filter_map(|_| round(pause, lengths));
    let late_ticks = rounds.min().ok_or(PauseFault::Early)?;
    let late = Span::from_ns((late_ticks as f64 / hz * 1e9).ceil() as i64);
    if late > LATE_MAX { Err(PauseFault::Late(late)) } else { Ok(late) }
}

/// How late 1 in 100 is, in ticks; `None` where they return early.
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
    (span.as_ns() as f64 / 1e9 * hz) as u64
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use punctual_core::clock::Clock;
    use punctual_core::wait::{Spin, Wait};
    use punctual_testkit::skip;

    use super::*;
    use crate::clocks::MachineClock;

    #[test]
    fn a_timed_pause_of_this_processor_does_not_end_a_spin_early() {
        let has = TimedPause::ALL.iter().any(|pause| pause.is_supported());
        let mut clock = MachineClock::best();
        assert_eq!(clock.pauses() == PauseTrial::Absent, !has || clock.rate().is_none());
        if !skip::need_device("a processor with TPAUSE, MWAITX or WFET", has) {
            return;
        }
        let mut wait = Spin::new(Span::from_us(100));
        for _ in 0..50 {
            let release = clock.wake() + Span::from_us(150);
            let wake = wait.until(&mut clock, release, &AtomicBool::new(false));
            assert!(wake.is_some_and(|wake| wake >= release), "{wake:?} {:?}", clock.pauses());
        }
    }
}
