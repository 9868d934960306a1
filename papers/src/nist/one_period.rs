//! One period of NIST's wait as it ran: figure 4, which the paper draws without numbers.
//!
//! The wait itself runs, on a clock that notes when the thread went to sleep and when it woke.
//! Never prints.

use std::sync::atomic::AtomicBool;

use punctual::RtThread;
use punctual_core::clock::Clock;
use punctual_core::releases::Releases;
use punctual_core::time::{Instant, Period};
use punctual_core::wait::{Rearm, Wait};
use punctual_engine::clocks::MachineClock;
use punctual_lab::experiment::{
    Context, Demand, Experiment, ExperimentError, ExperimentOutcome, demand, on_measuring_thread,
};
use punctual_lab::load::LoadSpec;

use crate::figure::Drawing;
use crate::row::PaperRow;

/// Periods that run; the last of them is drawn.
const PERIODS: usize = 100;
/// Stamps of a period that are kept: an early wake has two.
const STAMPS: usize = 1_024;
/// The share of the CPU that it takes at most: for the judgement of what it risks.
const BUSY: f64 = 0.9;

/// NIST's wait over some periods.
#[derive(Clone, Debug)]
pub(super) struct OnePeriodExperiment {
    /// The thread: its CPU, and the policy to request.
    pub(super) thread: RtThread,
    /// From release to release, T.
    pub(super) period: Period,
    /// From one early wake to the next, A.
    pub(super) every: Period,
}

/// When a thread woke, or went to sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    at: Instant,
    is_awake: bool,
}

/// A period as it ran: from the wait's begin to its return.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct OnePeriod {
    every: Period,
    /// The release before the one that was waited for, and that one.
    from: Instant,
    release: Instant,
    /// When the wait was over.
    woken: Instant,
    stamps: Vec<Stamp>,
}

impl Experiment for OnePeriodExperiment {
    type Outcome = Option<OnePeriod>;

    fn demands(&self) -> Vec<Demand> {
        vec![demand(&self.thread, self.period, BUSY)]
    }

    fn conditions(&self) -> Vec<(String, Vec<LoadSpec>)> {
        Vec::new()
    }

    fn run(
        self,
        context: Context<'_, '_>,
    ) -> Result<ExperimentOutcome<Self::Outcome>, ExperimentError> {
        let stop = context.stop;
        on_measuring_thread(&self.thread, stop, |clock: &mut MachineClock| {
            last_period(clock, (self.period, self.every), stop)
        })
    }
}

/// Waits for release after release; the last one as it ran, `None` where `stop` came before.
fn last_period<C: Clock>(
    clock: &mut C,
    (period, every): (Period, Period),
    stop: &AtomicBool,
) -> Option<OnePeriod> {
    let stamps = || Vec::with_capacity(STAMPS);
    let mut noting = NotingClock { clock, stamps: stamps() };
    let mut last = stamps();
    let releases = Releases::new(noting.now() + period.as_span(), period);
    let (mut wait, mut number, mut ran) = (Rearm::new(every), 0, None);
    for _ in 0..PERIODS {
        noting.stamps.clear();
        let release = releases.release(number);
        let Some(woken) = wait.until(&mut noting, release, stop) else { break };
        ran = Some((release, woken));
        std::mem::swap(&mut noting.stamps, &mut last);
        number = releases.next(number, woken);
    }
    let (release, woken) = ran?;
    Some(OnePeriod { every, from: release - period.as_span(), release, woken, stamps: last })
}

/// A clock that notes each sleep and each wake, in memory that it has from the begin.
struct NotingClock<'c, C> {
    clock: &'c mut C,
    stamps: Vec<Stamp>,
}

impl<C> NotingClock<'_, C> {
    fn note(&mut self, at: Instant, is_awake: bool) {
        if self.stamps.len() < STAMPS {
            self.stamps.push(Stamp { at, is_awake });
        }
    }
}

impl<C: Clock> Clock for NotingClock<'_, C> {
    fn now(&mut self) -> Instant {
        self.clock.now()
    }
    fn poll(&mut self) -> Instant {
        self.clock.poll()
    }
    fn fine(&mut self) -> u64 {
        self.clock.fine()
    }
    fn fine_now(&mut self) -> u64 {
        self.clock.fine_now()
    }
    fn sleep_until(&mut self, at: Instant) {
        let asleep = self.clock.now();
        self.note(asleep, false);
        self.clock.sleep_until(at);
    }
    fn wake(&mut self) -> Instant {
        let awake = self.clock.wake();
        self.note(awake, true);
        awake
    }
    fn at_monotonic(&mut self, at: Instant) -> Option<Instant> {
        self.clock.at_monotonic(at)
    }
    fn relax(&mut self) {
        self.clock.relax();
    }
    fn pause_until(&mut self, at: Instant) -> bool {
        self.clock.pause_until(at)
    }
}

impl OnePeriod {
    /// µs after the release before.
    fn us(&self, at: Instant) -> f64 {
        (at - self.from).as_ns() as f64 / 1e3
    }

    /// Number of its sleeps.
    fn calls(&self) -> usize {
        self.stamps.iter().filter(|stamp| !stamp.is_awake).count()
    }

    /// Time that it polled in the end, µs; `None` where no stamp lies before the release.
    fn polled_us(&self) -> Option<f64> {
        let last = self.stamps.iter().rfind(|stamp| stamp.is_awake && stamp.at < self.release)?;
        Some((self.woken - last.at).as_ns() as f64 / 1e3)
    }

    /// Steps of 1 where the thread runs and 0 where it sleeps, over µs after the release before.
    fn runs(&self) -> Vec<[f64; 2]> {
        let mut points: Vec<[f64; 2]> = Vec::new();
        let mut level = 0.0;
        let ends = Stamp { at: self.woken, is_awake: false };
        for stamp in self.stamps.iter().filter(|stamp| stamp.at < self.woken).chain([&ends]) {
            let (x, next) = (self.us(stamp.at), f64::from(u8::from(stamp.is_awake)));
            points.extend([[x, level], [x, next]]);
            level = next;
        }
        points
    }
}

/// Figure 4: the thread of one period, and the releases at both ends.
pub(super) fn figure(ran: &OnePeriod) -> Drawing {
    let title = "one period of early wakes and polling, as it ran";
    let [from, release] = [ran.from, ran.release].map(|at| ran.us(at));
    let edges = [[from, 0.0], [from, 1.0], [from, 0.0], [release, 0.0], [release, 1.0]];
    Drawing::new("nist.fig4", title, "µs after a release", "")
        .channels(["thread", "releases"])
        .line("here: the thread runs, last of all it polls", ran.runs())
        .in_channel(0)
        .line("here: releases", edges.to_vec())
        .in_channel(1)
}

/// The row of figure 4.
pub(super) fn row(ran: Option<&OnePeriod>, period: Period) -> PaperRow {
    let title = "calls each A within a period T, the last of them polls";
    let row = PaperRow::new("nist.fig4", title, "calls", "")
        .measured(ran.map(|ran| ran.calls() as f64))
        .note(
            "a schematic without numbers there; one real period here, by the wait of --wait rearm",
        );
    match ran {
        Some(ran) => {
            let row = row.formula((period.as_ns() as f64 / ran.every.as_ns() as f64).floor());
            let polled = ran.polled_us().map_or(0.0, |us| us.max(0.0));
            let every = ran.every.as_ns() as f64 / 1e3;
            row.note(&format!("formula: T / A, A = {every:.1} µs; polled {polled:.1} µs"))
        }
        None => row,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock that a look moves on by 100 ns, and a sleep to its end.
    struct Exact(u64);

    impl Clock for Exact {
        fn now(&mut self) -> Instant {
            Instant::from_ns(self.0)
        }
        fn poll(&mut self) -> Instant {
            self.0 += 100;
            Instant::from_ns(self.0)
        }
        fn sleep_until(&mut self, at: Instant) {
            self.0 = self.0.max(at.as_ns());
        }
        fn wake(&mut self) -> Instant {
            self.0 += 1_000;
            Instant::from_ns(self.0)
        }
        fn relax(&mut self) {}
    }

    fn ns(ns: u64) -> Period {
        Period::from_ns(ns).expect("positive")
    }

    #[test]
    fn a_period_is_drawn_from_the_stamps_of_its_wakes() {
        let ways = (ns(500_000), ns(51_000));
        let ran = last_period(&mut Exact(7_000), ways, &AtomicBool::new(false)).expect("it ran");
        assert!((9..=10).contains(&ran.calls()), "{ran:?}");
        assert!(ran.polled_us().is_some_and(|us| (0.0..51.0).contains(&us)), "{ran:?}");
        let figure = figure(&ran);
        assert_eq!(figure.channels, ["thread", "releases"]);
        let [thread, releases] = &figure.series[..] else { panic!("{figure:?}") };
        assert_eq!((thread.channel, releases.channel), (0, 1));
        // It rises once for each wake, the first after the release before, and ends at the release.
        let rises = thread.points.windows(2).filter(|pair| pair[0][1] < pair[1][1]).count();
        assert_eq!(rises, ran.calls() + 1);
        assert!(thread.points.windows(2).all(|pair| pair[0][0] <= pair[1][0]), "{thread:?}");
        let end = thread.points.last().expect("points")[0];
        assert!((500.0..502.0).contains(&end), "{end}");
        let row = row(Some(&ran), ns(500_000));
        assert_eq!((row.measured, row.formula), (Some(ran.calls() as f64), Some(9.0)));
        assert!(row.note.contains("A = 51.0 µs"), "{row:?}");
    }

    #[test]
    fn a_stop_before_the_first_release_draws_nothing() {
        let ways = (ns(500_000), ns(51_000));
        assert_eq!(last_period(&mut Exact(7_000), ways, &AtomicBool::new(true)), None);
        let row = row(None, ns(500_000));
        assert!(row.measured.is_none() && row.note.contains("not measured"), "{row:?}");
        assert!(row.note.contains("schematic") && row.note.contains("--wait rearm"), "{row:?}");
    }
}
