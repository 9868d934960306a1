//! The exit of a spin, corrected: off the polling loop a little early, and over the rest by a
//! computed delay.
//!
//! An experiment: loops poll. On a KVM guest (EPYC) polling without the processor's hint in the
//! last microsecond left at p50 5, p99 9 to 18 ns, this at 0, 38 (n 2 312 each, in turns). A loop
//! that polls can only leave at one of its polls, so that its exit scatters by a poll and by the
//! counter's step. Maruti (*Temporal accuracy on the Pentium Pro*, §4) removed that before the
//! loop: a look-up table of delays, by the target's remainder, made by hand and invalid after any
//! change of the code, delays the entry so that a poll meets the target, and the polls still end
//! the wait. Here the delay comes after the polls, and is arithmetic on the time left, a chain of
//! dependent multiplications; [`SpinExit::calibrate`] measures all parameters. A counter of coarse
//! step is read with a finer resolution than its step, from the polls between two steps.
//! Calibration tries whether the delay helps; where it does not, it returns why and the plain loop
//! stays. Never allocates; calls only the clock.

use std::hint::black_box;

use punctual_core::clock::Clock;
use punctual_core::time::{Instant, Span};
use punctual_engine::clocks::MachineClock;
use punctual_lab::accuracy::{FINE, RivalExit, error_ns, plain};

/// Exits in each half of the trial, and in a measurement of what leaving takes.
const TRIALS: usize = 384;
/// Length of a batch of polls, links of a measurement of the chain, and batches of each.
const POLLING: u64 = 20_000 * FINE;
const BATCH: u64 = 2_000;
const BATCHES: usize = 15;
/// The links that an exit takes at least: the processor then always guesses that there are more, so
/// that leaving the chain costs the same each time.
const LINKS_MIN: u64 = 32;
/// Time from the start of a trial's exit to its target; each has up to 100 ns more.
const AHEAD: Span = Span::from_us(3);
/// Distance of the middle one of all exits after its target, so that few are before it.
const AFTER: i64 = 3 * FINE.cast_signed();
/// A gap between two polls above which an exit is given up: the CPU was elsewhere.
const GAP: u64 = 1_000 * FINE;

/// Why an exit is not corrected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Uncorrected {
    /// Polls or links were not of one length when they were measured.
    Unsteady,
    /// The trial: the spread of both exits, p5 to p95, ns.
    NoGain {
        /// By polling alone.
        plain_ns: f64,
        /// Corrected.
        corrected_ns: f64,
    },
}

/// The result of the trial: the exit, or why the plain loop stays.
pub type Trial = Result<SpinExit, Uncorrected>;

/// Where an approach ended.
struct Left {
    now: u64,
    left: i64,
    polls: u64,
    /// The CPU was elsewhere.
    away: bool,
}

/// The parameters of a corrected exit: all in [`FINE`]ths of a nanosecond.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpinExit {
    /// From one poll to the next, at least.
    poll: u64,
    /// The counter's step, 0 where it is finer than a poll is long.
    quantum: u64,
    /// Time of leaving without any link.
    fixed: u64,
    /// Links a unit of time, in 2⁻³².
    links: u64,
    /// The most time before the target at which the polls end.
    reach: u64,
    plain: u64,
    corrected: u64,
}

impl SpinExit {
    /// Measures the loop, the chain and the counter, then tries both exits in turn: about 5 ms, on
    /// the CPU and with the policy that the spin will have.
    ///
    /// # Errors
    ///
    /// Why the plain loop stays: the measurements were not steady enough, or the trial showed no
    /// gain.
    ///
    /// # Real-time: setup only
    pub fn calibrate<C: Clock>(clock: &mut C) -> Trial {
        Self::measure(clock)?.judge(clock)
    }

    /// Measures the parameters of a corrected exit, without a trial of whether it helps: for
    /// callers that try it themselves.
    ///
    /// # Errors
    ///
    /// The measurements were not steady enough.
    ///
    /// # Real-time: setup only
    pub fn measure<C: Clock>(clock: &mut C) -> Result<Self, Uncorrected> {
        clock.wake();
        let mut polls = [0; BATCHES];
        let mut links = [0; BATCHES];
        for (poll, link) in polls.iter_mut().zip(&mut links) {
            *poll = poll_took(clock);
            *link = links_took(clock);
        }
        let (poll, link) = (steady(&mut polls)?, steady(&mut links)?);
        let links = ((u128::from(BATCH) << 32) / u128::from(link.max(1))) as u64;
        let quantum = quantum(clock);
        // A little short, so that it never runs ahead of the clock.
        let poll = (poll - poll / 256) >> 16;
        let mut exit = Self { poll, quantum, fixed: 0, links, reach: 0, plain: 0, corrected: 0 };
        let mut errors = [0; TRIALS];
        for _ in 0..3 {
            exit.reach = exit.fixed + (LINKS_MIN << 32) / links.max(1) + 2 * poll.max(quantum);
            exit.trial(clock, &mut errors, |exit, clock, target| exit.leave(clock, target));
            // A stamp of a coarse counter is half a step behind on average.
            let late = errors[TRIALS / 2] + (quantum / 2).cast_signed() - AFTER;
            exit.fixed = exit.fixed.saturating_add_signed(late);
        }
        Ok(exit)
    }

    /// Both exits, in turn.
    fn judge<C: Clock>(mut self, clock: &mut C) -> Result<Self, Uncorrected> {
        let mut errors = [0; TRIALS];
        let spread =
            |errors: &[i64; TRIALS]| errors[TRIALS - TRIALS / 20 - 1].abs_diff(errors[TRIALS / 20]);
        for _ in 0..4 {
            self.trial(clock, &mut errors, |_, clock, target| plain(clock, target));
            self.plain += spread(&errors) / 4;
            self.trial(clock, &mut errors, |exit, clock, target| exit.until(clock, target));
            self.corrected += spread(&errors) / 4;
        }
        if self.corrected > self.plain - self.plain / 8 {
            let (plain_ns, corrected_ns) = self.spreads_ns();
            return Err(Uncorrected::NoGain { plain_ns, corrected_ns });
        }
        Ok(self)
    }

    /// The spread, p5 to p95, of exits by polling alone and of corrected ones in the trial, ns, as
    /// the counter shows them; 0 without a trial.
    ///
    /// # Real-time: setup only
    pub fn spreads_ns(&self) -> (f64, f64) {
        (self.plain as f64 / FINE as f64, self.corrected as f64 / FINE as f64)
    }

    /// The counter's step, ns; 0 where it is finer than the loop can tell.
    ///
    /// # Real-time: setup only
    pub fn quantum_ns(&self) -> f64 {
        self.quantum as f64 / FINE as f64
    }

    /// Time before the release at which this takes over: a hundred polls or so before the polls
    /// end, in which it reads the counter ever sharper.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn before(&self) -> Span {
        Span::from_ns((self.reach / FINE).cast_signed().saturating_add(1_000))
    }

    /// The most that a stamp may be behind the time: the counter's step, rounded up to whole ns.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn behind(&self) -> Span {
        Span::from_ns((self.quantum.div_ceil(FINE)).cast_signed())
    }

    /// Returns at `target`, to which [`SpinExit::before`] is left; whether it did, or the CPU was
    /// elsewhere meanwhile.
    ///
    /// # Real-time: in loop, waits
    #[inline]
    pub fn leave<C: Clock>(&self, clock: &mut C, target: Instant) -> bool {
        let target = target.as_ns().wrapping_mul(FINE);
        let Left { now, left, away, .. } = self.approach(clock, target);
        if away {
            return false;
        }
        let over = left.saturating_sub_unsigned(self.fixed).max(0).unsigned_abs();
        let links = (u128::from(over) * u128::from(self.links)) >> 32;
        black_box(chain(now, links as u64));
        true
    }

    /// Returns at `target`, and never before it: an exit that was computed too early, or given up,
    /// polls what is left.
    ///
    /// # Real-time: in loop, waits
    #[inline]
    pub fn until<C: Clock>(&self, clock: &mut C, target: Instant) {
        self.leave(clock, target);
        plain(clock, target);
    }

    /// Polls until at most the reach is left, or the CPU was elsewhere. Never inlined: what is
    /// measured is to be the very code that runs.
    #[inline(never)]
    fn approach<C: Clock>(&self, clock: &mut C, target: u64) -> Left {
        let mut last = clock.fine();
        // What the time is at least: the last poll's, and what passed since.
        let mut now = last;
        let mut polls = 0;
        loop {
            let read = clock.fine();
            polls += 1;
            now = now.wrapping_add(self.poll);
            // Ahead by up to the counter's step it knows more than the counter; else it is wrong.
            let ahead = now.wrapping_sub(read).cast_signed();
            now = read.wrapping_add_signed(ahead.clamp(0, self.quantum.cast_signed()));
            let left = target.wrapping_sub(now).cast_signed();
            let away = read.wrapping_sub(last) > GAP;
            if left <= self.reach.cast_signed() || away {
                return Left { now, left, polls, away };
            }
            last = read;
        }
    }

    /// Exits at targets that sweep all offsets; the errors of the stamps after them, sorted.
    fn trial<C: Clock, R>(
        &self,
        clock: &mut C,
        errors: &mut [i64; TRIALS],
        mut exit: impl FnMut(&Self, &mut C, Instant) -> R,
    ) {
        for (at, error) in (0i64..).zip(errors.iter_mut()) {
            // 37 ns further each time, so that no step of a counter meets it in step.
            let target = clock.now() + AHEAD + Span::from_ns(at * 37 % 101);
            exit(self, clock, target);
            let stamp = clock.fine_now();
            *error = stamp.wrapping_sub(target.as_ns().wrapping_mul(FINE)).cast_signed();
        }
        errors.sort_unstable();
    }
}

/// Calibrations at most, 5 ms each, until one is steady: polls and links of one length are rare
/// where others disturb the CPU.
const CALIBRATIONS: usize = 20;

/// The corrected exit as a rival in `measure accuracy`, and what its trial found.
struct Tried {
    exit: SpinExit,
    trial: Trial,
}

/// The corrected exit as a rival in `measure accuracy`, whether its trial showed a gain or not;
/// `None` where it could not be calibrated.
pub fn corrected(clock: &mut MachineClock) -> Option<Box<dyn RivalExit>> {
    let exit = (0..CALIBRATIONS).find_map(|_| SpinExit::measure(clock).ok())?;
    Some(Box::new(Tried { exit, trial: exit.judge(clock) }))
}

/// A trial in words.
fn trial_words(trial: &Trial) -> String {
    match trial {
        Ok(exit) => {
            let (plain_ns, corrected_ns) = exit.spreads_ns();
            format!(
                "a trial before it: 5 to 95 % of the exits within {corrected_ns:.1} ns, \
                 {plain_ns:.1} ns by polling alone"
            )
        }
        Err(Uncorrected::NoGain { plain_ns, corrected_ns }) => format!(
            "no gain in a trial before it: 5 to 95 % of the exits within {corrected_ns:.1} ns, \
             {plain_ns:.1} ns by polling alone, to which a loop would keep"
        ),
        Err(Uncorrected::Unsteady) => "no trial before it: polls were not of one length".to_owned(),
    }
}

impl RivalExit for Tried {
    fn name(&self) -> &'static str {
        "corrected"
    }

    fn note(&self) -> Option<String> {
        Some(trial_words(&self.trial))
    }

    fn error_ns(&self, clock: &mut MachineClock, ns: f64) -> f64 {
        error_ns(clock, ns, |clock, target| {
            while target - clock.poll() > self.exit.before() {}
            self.exit.until(clock, target);
        })
    }
}

/// Multiplications of which each waits for the one before: nothing of them can be computed ahead,
/// for a square plus one has no shorter form. Never inlined, as the approach.
#[inline(never)]
fn chain(seed: u64, links: u64) -> u64 {
    let mut x = seed | 1;
    for _ in 0..links {
        x = x.wrapping_mul(x) | 1;
    }
    x
}

/// From one poll to the next over a batch of them, in 2⁻¹⁶ of a unit; 0 after a gap.
fn poll_took<C: Clock>(clock: &mut C) -> u64 {
    let never =
        SpinExit { poll: 1, quantum: FINE, fixed: 0, links: 0, reach: 0, plain: 0, corrected: 0 };
    let first = clock.fine();
    let Left { now, polls, away, .. } = never.approach(clock, first.wrapping_add(POLLING));
    if away { 0 } else { (now.wrapping_sub(first) << 16) / polls }
}

/// Time of [`BATCH`] links, in [`FINE`]ths of a nanosecond.
fn links_took<C: Clock>(clock: &mut C) -> u64 {
    let first = clock.fine_now();
    black_box(chain(first, black_box(BATCH)));
    clock.fine_now().wrapping_sub(first)
}

/// The shortest but one, where at least half of them are within an eighth of it: what disturbs them
/// makes them longer, and too short only loses a little where too long runs ahead of the clock.
fn steady(took: &mut [u64; BATCHES]) -> Result<u64, Uncorrected> {
    took.sort_unstable();
    let (shortest, middle) = (took[1], took[BATCHES / 2]);
    if shortest == 0 || middle - shortest > shortest / 8 {
        return Err(Uncorrected::Unsteady);
    }
    Ok(shortest)
}

/// The step of the counter: the widest hole among the distances of stamps at odd times. 0 where
/// that is less than a nanosecond or two.
fn quantum<C: Clock>(clock: &mut C) -> u64 {
    let mut apart = [0; TRIALS];
    for (links, apart) in (0u64..).zip(apart.iter_mut()) {
        let first = clock.fine_now();
        black_box(chain(first, black_box(links % 64)));
        *apart = clock.fine_now().wrapping_sub(first);
    }
    apart.sort_unstable();
    let usual = &apart[TRIALS / 20..TRIALS - TRIALS / 10];
    let widest = usual.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
    if widest < 3 * FINE { 0 } else { widest }
}

#[cfg(test)]
mod tests {
    //! The corrected exit in clocks that are made up: counters of coarse steps, and stalls.

    use super::*;

    /// A clock that shows each `step`th unit only, and moves on by `poll` at each look.
    struct Steps {
        now: u64,
        poll: u64,
        step: u64,
        /// At this look it moves on by so much.
        stall: (u64, u64),
        looks: u64,
    }

    impl Steps {
        fn new(now: u64, poll: u64, step: u64) -> Self {
            Self { now, poll, step, stall: (u64::MAX, 0), looks: 0 }
        }
    }

    impl Clock for Steps {
        fn now(&mut self) -> Instant {
            Instant::from_ns(self.fine_now() / FINE)
        }
        fn poll(&mut self) -> Instant {
            Instant::from_ns(self.fine() / FINE)
        }
        fn fine(&mut self) -> u64 {
            self.looks += 1;
            self.now += self.poll;
            if self.looks == self.stall.0 {
                self.now += self.stall.1;
            }
            self.fine_now()
        }
        fn fine_now(&mut self) -> u64 {
            self.now - self.now % self.step
        }
        fn sleep_until(&mut self, at: Instant) {
            self.now = self.now.max(at.as_ns() * FINE);
        }
        fn wake(&mut self) -> Instant {
            self.now()
        }
        fn relax(&mut self) {}
    }

    fn exit(poll: u64, quantum: u64, reach: u64) -> SpinExit {
        SpinExit { poll, quantum, fixed: reach, links: 1 << 32, reach, plain: 0, corrected: 0 }
    }

    #[test]
    fn a_coarse_counter_is_read_sharper_than_its_step_and_never_ahead() {
        let mut seed = 1u64;
        for case in 0..2_000u64 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let random = |shift: u32, below: u64| (seed >> shift) % below;
            let poll = 1_000 + random(20, 2_000);
            let step = 1 + random(33, 9_000);
            let mut clock = Steps::new((1 << 40) + random(40, 50_000), poll, step);
            // A hundredth short, as it is calibrated.
            let exit = exit(poll - poll / 100, step, 20_000);
            let target = clock.now + 400_000;
            let Left { now, left, .. } = exit.approach(&mut clock, target);
            assert!(now <= clock.now, "{case}: ahead by {}", now - clock.now);
            assert!((0..=20_000).contains(&left), "{case}: {left}");
            // Somewhere on the way a poll met an edge within a step of the pattern of both: what
            // was lost since is the hundredth of each poll.
            let behind = clock.now - now;
            assert!(behind < step.max(1), "{case}: {behind} behind with a step of {step}");
            if poll > 1_100 && step > 6_000 {
                assert!(behind < poll + 100 * (poll / 100), "{case}: {behind} behind, poll {poll}");
            }
        }
    }

    #[test]
    fn an_exit_that_is_computed_too_early_polls_what_is_left() {
        // What leaving takes is thought to be all that is left, so that no link runs.
        let early = exit(990, 1, 20_000);
        let mut clock = Steps::new(1 << 40, 1_000, 1);
        let target = Instant::from_ns(((1 << 40) + 400_000) / FINE);
        assert!(early.leave(&mut clock, target));
        assert!(clock.now < target.as_ns() * FINE, "the exit alone is too early");
        early.until(&mut clock, target);
        assert!(clock.now >= target.as_ns() * FINE);
        assert!(clock.now < target.as_ns() * FINE + 2_000, "one poll later at most");
    }

    #[test]
    fn a_trial_without_gain_is_said() {
        let no_gain = Err(Uncorrected::NoGain { plain_ns: 35.0, corrected_ns: 107.0 });
        let text = trial_words(&no_gain);
        assert!(text.starts_with("no gain") && text.contains("107.0 ns, 35.0 ns"), "{text}");
        let gain = Ok(SpinExit { plain: 9 * FINE, corrected: 2 * FINE, ..exit(1, 1, 1) });
        assert!(trial_words(&gain).contains("2.0 ns, 9.0 ns by polling"), "{gain:?}");
    }

    #[test]
    fn a_clock_that_the_delay_does_not_move_cannot_be_calibrated() {
        let mut clock = Steps::new(1 << 40, 2_560, 1);
        assert_eq!(SpinExit::calibrate(&mut clock), Err(Uncorrected::Unsteady));
    }
}
