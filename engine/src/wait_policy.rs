//! The wait of a loop for its releases, as a person chooses it: a name and its parameters.
//!
//! For programs that take the choice from their user ([`WaitKind`]), and for loops
//! ([`WaitPolicy`]). Turns a choice into a strategy for a period; runs nothing itself.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use punctual_core::clock::Clock;
use punctual_core::releases::Releases;
use punctual_core::time::{Period, Span};
use punctual_core::wait::adaptive::{LearnPhase, Target};
use punctual_core::wait::{Adaptive, Learned, Rearm, Sleep, Spin, Strategy, Wait, WaitStatus};

use crate::clocks::wake_cost;
use crate::comb::Comb;
use crate::duration::span;
use crate::error::{Error, Kind};
use crate::monitor::Watched;
use crate::quiet::{self, KernelTick, Quiet};

/// From the first wait to the first release, at least: time to get into the wait.
pub const LEAD: Span = Span::from_us(100);

/// A kind of wait for releases.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum WaitKind {
    /// An absolute sleep.
    Sleep,
    /// A sleep of a tenth of the period, and 20 µs at least, then a spin.
    Spin,
    /// A sleep that ends this much before the release, then a spin.
    Fixed(Span),
    /// A long sleep and a short one of the first, which ends the second before the release, then a
    /// spin: from a short sleep a CPU comes back sooner.
    Hop(Span, Span),
    /// NIST's: early calls this far apart, √(T·S) if that is not said, then a spin.
    Rearm(Option<Period>),
    /// Learned: hops and margin, for this share of the CPU at most.
    Adaptive(f64),
}

/// The share of each period in which a spinning loop sleeps: twice what Linux's real-time
/// throttling keeps for others by default (5 %, `sched_rt_runtime_us`).
const SPIN_REST: f64 = 0.1;

/// The shortest such sleep: a shorter one is over before the thread has left the CPU.
const SPIN_REST_MIN: Span = Span::from_us(20);

/// The shortest period that a spinning loop can have: half of it rest.
pub const SPIN_PERIOD_MIN: Span = Span::from_us(40);

/// The share of its CPU that a spinning loop of this period leaves to others, from 0.1 to 0.5; of a
/// shorter period than one can have, that of the shortest.
pub(crate) fn rest_share(period: Period) -> f64 {
    let period = period.as_span().max(SPIN_PERIOD_MIN);
    rest_of_spin(period).as_ns() as f64 / period.as_ns() as f64
}

impl WaitKind {
    /// Returns true where it spins before a release.
    ///
    /// # Real-time: setup only
    pub const fn spins(self) -> bool {
        !matches!(self, Self::Sleep)
    }

    /// Its name on the command line and in results.
    ///
    /// # Real-time: setup only
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sleep => "sleep",
            Self::Spin => "spin",
            Self::Fixed(_) => "fixed",
            Self::Hop(..) => "hop",
            Self::Rearm(_) => "rearm",
            Self::Adaptive(_) => "adaptive",
        }
    }

    /// The share of a CPU that it takes by its plan, at most; for a sleeping loop next to nothing.
    ///
    /// # Real-time: setup only
    pub fn cpu_share(self, period: Period) -> f64 {
        let period_ns = period.as_ns() as f64;
        match self {
            Self::Sleep => 0.0,
            Self::Spin => margin_of_spin(period).as_ns() as f64 / period_ns,
            Self::Fixed(margin) | Self::Hop(_, margin) => {
                (margin.as_ns() as f64 / period_ns).min(1.0)
            }
            Self::Rearm(every) => every.map_or(0.5, |a| (a.as_ns() as f64 / period_ns).min(1.0)),
            Self::Adaptive(budget) => budget,
        }
    }
}

/// The wait of a loop for its releases: its kind, and the aims of one that learns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WaitPolicy {
    kind: WaitKind,
    late_share: f64,
    learned: Option<Learned>,
    learn_first: bool,
}

impl WaitPolicy {
    /// Learns how early to wake on this machine, and spins for the rest: for a tenth of the CPU at
    /// most and one late wake in a thousand. It learns for a third of a second before the first
    /// cycle, and goes on in the loop.
    ///
    /// # Real-time: setup only
    pub const fn adaptive() -> Self {
        let kind = WaitKind::Adaptive(Target::BUDGET);
        Self { kind, late_share: Target::LATE, learned: None, learn_first: true }
    }

    /// An absolute sleep and nothing else: what a plain loop does.
    ///
    /// # Real-time: setup only
    pub const fn sleep() -> Self {
        Self { kind: WaitKind::Sleep, ..Self::adaptive() }
    }

    /// A sleep of a tenth of the period, and 20 µs at least, then a spin: takes nine tenths of the
    /// CPU. For periods from 40 µs up.
    ///
    /// # Real-time: setup only
    pub const fn spin() -> Self {
        Self { kind: WaitKind::Spin, ..Self::adaptive() }
    }

    /// A sleep that ends this much before the release, below the period, then a spin.
    ///
    /// # Real-time: setup only
    pub fn fixed(margin: Duration) -> Self {
        Self { kind: WaitKind::Fixed(span(margin)), ..Self::adaptive() }
    }

    /// NIST's: calls the clock this often, at most a period apart, and spins from the last call
    /// before the release on; `None` for the interval that its formula gives, √(T·S) with the cost
    /// of a wake S measured here.
    ///
    /// # Real-time: setup only
    pub const fn rearm(every: Option<Period>) -> Self {
        Self { kind: WaitKind::Rearm(every), ..Self::adaptive() }
    }

    /// Sets the share of the CPU that an adaptive wait may take, above 0 and at most 1.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub const fn cpu_budget(mut self, share: f64) -> Self {
        self.kind = WaitKind::Adaptive(share);
        self
    }

    /// Sets the share of late wakes that an adaptive wait aims at, below 1, for the least CPU that
    /// this takes; 0 for the least lateness that its budget pays.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub const fn late_share(mut self, share: f64) -> Self {
        self.late_share = share;
        self
    }

    /// Has an adaptive wait begin with what another start learned of this machine
    /// (`punctual::Summary::learned`): it need not learn first, checks it as it
    /// goes, and learns anew where it does not hold.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub const fn learned(mut self, learned: Learned) -> Self {
        self.learned = Some(learned);
        self
    }

    /// Sets whether an adaptive wait learns before the first cycle; otherwise the first cycles
    /// teach it.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub const fn learn_first(mut self, first: bool) -> Self {
        self.learn_first = first;
        self
    }

    /// A warning where a wait by this policy cannot reach its aim, as far as it saw.
    ///
    /// # Real-time: setup only
    pub fn out_of_reach(&self, status: &WaitStatus) -> Option<String> {
        let (WaitKind::Adaptive(budget), Some(learned)) = (self.kind, status.learned) else {
            return None;
        };
        let is_known = learned.phase != LearnPhase::Calibrating && learned.cycles >= JUDGED_CYCLES;
        (is_known && !learned.reachable).then(|| {
            format!(
                "at most one late wake in {:.0} for {:.0} % of the CPU is out of reach of the wait \
                 on this machine: of {} wakes {:.2} % were late, for {:.1} %; cpu_budget() and \
                 late_share() set its aim",
                1.0 / self.late_share.max(1e-9),
                budget * 100.0,
                learned.cycles,
                learned.late * 100.0,
                learned.cpu * 100.0,
            )
        })
    }

    /// Its name on the command line and in results.
    ///
    /// # Real-time: setup only
    pub const fn name(self) -> &'static str {
        self.kind.name()
    }

    /// Its kind.
    ///
    /// # Real-time: setup only
    pub const fn kind(self) -> WaitKind {
        self.kind
    }

    /// Checks that it fits in this period.
    ///
    /// # Real-time: setup only
    pub fn check(&self, period: Period) -> Result<(), Error> {
        let within = |ns: i64| u64::try_from(ns).is_ok_and(|ns| ns < period.as_ns());
        match self.kind {
            WaitKind::Fixed(margin) | WaitKind::Hop(_, margin) if !within(margin.as_ns()) => {
                Err(Kind::Margin(margin, period))
            }
            WaitKind::Rearm(Some(every)) if every > period => Err(Kind::Rearm(every, period)),
            WaitKind::Spin if period.as_ns() < SPIN_PERIOD_MIN.as_ns().unsigned_abs() => {
                Err(Kind::SpinPeriod { got: period, least: SPIN_PERIOD_MIN })
            }
            // Not a number is neither.
            WaitKind::Adaptive(budget) if !(budget > 0.0 && budget <= 1.0) => {
                Err(Kind::Budget(budget))
            }
            _ if !(self.late_share >= 0.0 && self.late_share < 1.0) => {
                Err(Kind::LateShare(self.late_share))
            }
            _ => Ok(()),
        }
        .map_err(Error::from)
    }
}

impl From<WaitKind> for WaitPolicy {
    fn from(kind: WaitKind) -> Self {
        Self { kind, ..Self::adaptive() }
    }
}

/// The time before each release at which a spinning loop ends its sleep.
fn margin_of_spin(period: Period) -> Span {
    let period = period.as_span();
    Span::from_ns(period.as_ns().saturating_sub(rest_of_spin(period).as_ns()).max(0))
}

/// The time for which a spinning loop sleeps in each period.
fn rest_of_spin(period: Span) -> Span {
    Span::from_ns((period.as_ns() as f64 * SPIN_REST) as i64).max(SPIN_REST_MIN)
}

/// Before so many cycles it is not said that an aim is out of reach.
const JUDGED_CYCLES: u64 = 1_000;

/// The longest that a wait learns before the first cycle; what it has not learned by then, it
/// learns in the loop. Long enough for the kernel's tick to be found at 500 Hz and more
/// ([`Comb::certain_after`]).
pub const WARM_UP_MAX: Span = Span::from_ms(350);

/// The strategy of this kind of wait, for a loop of this period. `cost` measures what a sleep and
/// its wake cost ([`crate::clocks::wake_cost`]), and is called where that is needed.
///
/// # Real-time: setup only
pub fn strategy_of(kind: WaitKind, period: Period, cost: impl FnOnce() -> Span) -> Strategy {
    match kind {
        WaitKind::Sleep => Strategy::Sleep(Sleep),
        WaitKind::Spin => Strategy::Spin(Spin::new(margin_of_spin(period))),
        WaitKind::Fixed(margin) => Strategy::Spin(Spin::new(margin)),
        WaitKind::Hop(hop, margin) => Strategy::Spin(Spin::new(margin).hop(hop)),
        WaitKind::Rearm(every) => {
            let every = every.unwrap_or_else(|| Rearm::best(period, cost()));
            Strategy::Rearm(Rearm::new(every))
        }
        WaitKind::Adaptive(budget) => {
            let target = Target { budget, wake_cost: cost(), ..Target::of(period) };
            Strategy::Adaptive(Adaptive::new(target))
        }
    }
}

/// The strategy of a wait policy for a loop of this period, on the calling thread; measures the
/// cost of a wake where that is needed. Also warnings about settings that cannot be kept.
///
/// # Real-time: setup only
pub fn strategy<C: Clock>(
    wait: &WaitPolicy,
    period: Period,
    clock: &mut C,
) -> (Strategy, Vec<String>) {
    let WaitKind::Adaptive(budget) = wait.kind else {
        return (strategy_of(wait.kind, period, || wake_cost(clock)), Vec::new());
    };
    let cost = wake_cost(clock);
    let target = Target { budget, late: wait.late_share, wake_cost: cost, ..Target::of(period) };
    // A sleep and its wake in each period are the least that waiting takes.
    let least = cost.as_ns() as f64 / period.as_ns_f64();
    let warnings = (least > budget).then(|| {
        format!(
            "waiting takes at least {:.0} % of the CPU, more than its budget of {:.0} %: one sleep \
             and wake take {cost} of each period of {period}",
            least * 100.0,
            budget * 100.0
        )
    });
    let adaptive = Adaptive::new(target);
    let strategy = Strategy::Adaptive(match &wait.learned {
        Some(learned) => adaptive.resume(learned),
        None => adaptive,
    });
    (strategy, warnings.into_iter().collect())
}

/// The place of the releases on which a wait learns.
#[derive(Clone, Copy, Debug)]
pub struct LearnPlace {
    /// The time from one of them to the next.
    pub period: Period,
    /// Their offset from multiples of the period, ns; of a grid of another period, from those of
    /// that one.
    pub phase_ns: u64,
    /// The quiet place of the grid that they belong to, and the period of that: where they meet the
    /// tick all the same, it is moved. `None` for one that stays where it is.
    pub quiet: Option<(Quiet, Period)>,
}

/// A wait that is ready to be used, with warnings, and the place that its grid was moved to.
#[derive(Debug)]
pub struct ReadyWait {
    /// It has learned what it can before the loop begins.
    pub wait: Strategy,
    /// Settings of the policy that cannot be kept, and releases that met the kernel's tick, in
    /// words.
    pub warnings: Vec<String>,
    /// The place that the grid was moved to, away from the kernel's tick.
    pub moved: Option<Quiet>,
}

/// The learning of a wait before its loop begins.
#[derive(Clone, Copy, Debug)]
pub struct WarmUp<'a> {
    /// The longest that it may take: a wait that needs longer learns the rest in its loop.
    /// [`WARM_UP_MAX`] for the loops of this library.
    pub longest: Span,
    /// The request that ends it early.
    pub stop: &'a AtomicBool,
    /// The progress that a watchdog sees; the caller arms it.
    pub watched: Option<&'a Watched>,
}

impl<'a> WarmUp<'a> {
    /// As the loops of this library learn, until `stop` is set.
    ///
    /// # Real-time: setup only
    pub fn until(stop: &'a AtomicBool) -> Self {
        Self { longest: WARM_UP_MAX, stop, watched: None }
    }
}

impl WarmUp<'_> {
    /// A wait by this policy for releases at `place`, on the calling thread; where those meet the
    /// kernel's tick and may be moved, for releases away from it. `discipline` takes in what was
    /// learned of the clock's rate meanwhile.
    ///
    /// # Real-time: setup only
    pub fn ready<C: Clock>(
        &self,
        policy: &WaitPolicy,
        place: LearnPlace,
        clock: &mut C,
        discipline: impl Fn(&mut C),
    ) -> ReadyWait {
        let (mut wait, mut warnings) = strategy(policy, place.period, clock);
        discipline(clock);
        let mut moved = None;
        if policy.learn_first {
            let mut unlearned = wait.clone();
            if let Some(tick) = self.learn(&mut wait, clock, (place.period, place.phase_ns)) {
                let away = |(before, period)| Some((before, quiet::moved(&before, &tick, period)?));
                // A place that was given stays.
                match place.quiet.and_then(away) {
                    Some((before, quiet)) => {
                        warnings.push(quiet::moved_words(&before, &quiet));
                        let phase_ns = quiet.phase_ns % place.period.as_ns();
                        self.learn(&mut unlearned, clock, (place.period, phase_ns));
                        (wait, moved) = (unlearned, Some(quiet));
                    }
                    None => warnings.push(quiet::met_words(&tick)),
                }
            }
            discipline(clock);
        }
        ReadyWait { wait, warnings, moved }
    }

    /// Lets a wait learn on the releases of `period` and `phase_ns`, on the calling thread, and
    /// long enough to see whether they meet the kernel's tick: that, where they do. Does nothing
    /// with a wait that learns nothing, or has learned.
    ///
    /// # Real-time: setup only
    pub fn learn<C: Clock>(
        &self,
        wait: &mut impl Wait,
        clock: &mut C,
        (period, phase_ns): (Period, u64),
    ) -> Option<KernelTick> {
        if !is_learning(wait) {
            return None;
        }
        let start = clock.now() + LEAD;
        let releases = Releases::aligned(start, period, phase_ns);
        let (mut k, mut comb, mut met) = (0, Comb::new(period), None);
        // A cycle without a sleep teaches nothing, so that it may take longer than it should.
        while (is_learning(wait) || k < comb.certain_after())
            && !self.stop.load(Ordering::Relaxed)
            && releases.release(k) < start + self.longest
        {
            let release = releases.release(k);
            let wake = wait.until(clock, release, self.stop);
            if let Some(wake) = wake {
                met = comb.cycle(k, release, wake - release).or(met);
            }
            k = releases.next(k, wake.unwrap_or(start));
            self.watched.inspect(|watched| watched.beat());
        }
        let _not_counted = wait.take_stalls();
        met
    }
}

/// Returns true for a wait that learns, and has not learned yet.
///
/// # Real-time: in loop
pub fn is_learning(wait: &impl Wait) -> bool {
    wait.status().learned.is_some_and(|learned| learned.phase == LearnPhase::Calibrating)
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::time::Instant;
    use punctual_core::wait::WakePlan;
    use punctual_testkit::sim::{SimClock, SleepNoise};

    #[test]
    fn a_spin_rests_a_tenth_of_its_period_and_never_less_than_a_sleep_takes() {
        let period = |ns| Period::from_ns(ns).expect("positive");
        let share = |ns| WaitKind::Spin.cpu_share(period(ns));
        assert!((share(1_000_000) - 0.9).abs() < 1e-9);
        assert!((share(40_000) - 0.5).abs() < 1e-9);
        assert_eq!((share(5_000), WaitKind::Sleep.cpu_share(period(5_000))), (0.0, 0.0));
    }

    /// A clock on which each multiple of `tick_ns` takes 17 µs from whoever spins over it.
    struct Ticking {
        clock: SimClock<std::iter::Empty<SleepNoise>>,
        tick_ns: u64,
    }

    impl Ticking {
        /// Lets the ticks since `before` have their time.
        fn tick(&mut self, before: Instant) {
            if before.as_ns() / self.tick_ns != self.clock.now.as_ns() / self.tick_ns {
                self.clock.now += Span::from_us(17);
            }
        }
    }

    impl Clock for Ticking {
        fn now(&mut self) -> Instant {
            self.clock.now()
        }

        fn poll(&mut self) -> Instant {
            let before = self.clock.now;
            self.clock.poll();
            self.tick(before);
            self.clock.now
        }

        fn sleep_until(&mut self, at: Instant) {
            let before = self.clock.now;
            self.clock.sleep_until(at);
            self.tick(before);
        }

        fn wake(&mut self) -> Instant {
            self.clock.wake()
        }

        fn relax(&mut self) {}
    }

    #[test]
    fn an_aim_that_is_out_of_reach_is_said_with_its_figures() {
        let learned = |reachable, cycles| {
            let mut learned = Learned::kept(WakePlan::default(), 0.02);
            (learned.cycles, learned.cpu, learned.reachable) = (cycles, 0.12, reachable);
            learned
        };
        let status = |learned| {
            let mut status = WaitStatus::default();
            status.learned = Some(learned);
            status
        };
        let words = |status| WaitPolicy::adaptive().out_of_reach(&status);
        let said = words(status(learned(false, 5_000))).expect("out of reach");
        assert!(said.starts_with("at most one late wake in 1000 for 10 % of the CPU"), "{said}");
        assert!(said.contains("of 5000 wakes 2.00 % were late, for 12.0 %"), "{said}");
        assert_eq!(words(status(learned(true, 5_000))), None);
        assert_eq!(words(status(learned(false, 10))), None, "too early");
        assert_eq!(WaitPolicy::sleep().out_of_reach(&status(learned(false, 5_000))), None);
    }

    #[test]
    fn the_tick_that_releases_meet_while_a_wait_learns_is_found_and_a_quiet_grid_is_moved() {
        let period = Period::from_ns(1_000_000).expect("positive");
        let ready_wait = |phase_ns, quiet: Option<Quiet>| {
            let clock = SimClock::new(Instant::from_ns(77), std::iter::empty());
            let mut clock = Ticking { clock, tick_ns: 4_000_000 };
            let never = AtomicBool::new(false);
            let place = LearnPlace { period, phase_ns, quiet: quiet.map(|quiet| (quiet, period)) };
            WarmUp::until(&never).ready(&WaitPolicy::adaptive(), place, &mut clock, |_| {})
        };
        let stays = ready_wait(0, None);
        assert!(stays.warnings.join("").contains("meet what comes every 4.00 ms"), "{stays:?}");
        assert_eq!((stays.moved, ready_wait(562_500, None).warnings), (None, Vec::new()));
        let mistaken = KernelTick { period_ns: 4_000_000, phase_ns: 437_500, share: 1.0 };
        let mistaken = quiet::place_beside(&mistaken, period).expect("a place");
        let moved = ready_wait(mistaken.phase_ns, Some(mistaken));
        assert_eq!(moved.moved.map(|quiet| quiet.phase_ns), Some(781_250), "{moved:?}");
        assert!(moved.warnings.join("").contains(" met what comes every 4.00 ms"), "{moved:?}");
        assert!(!is_learning(&moved.wait));
    }

    #[test]
    fn the_cost_of_a_wake_is_measured_only_where_it_is_needed() {
        let period = Period::from_ns(500_000).expect("positive");
        let measured = |kind: WaitKind| {
            let mut called = false;
            let _strategy = strategy_of(kind, period, || {
                called = true;
                Span::from_us(5)
            });
            called
        };
        assert!(measured(WaitKind::Rearm(None)) && measured(WaitKind::Adaptive(0.1)));
        assert!(!measured(WaitKind::Rearm(Some(period))));
        assert!(!measured(WaitKind::Sleep) && !measured(WaitKind::Spin));
        assert!(!measured(WaitKind::Fixed(Spin::FIXED)));
    }
}
