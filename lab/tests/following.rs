//! The periodic experiment on the time of another clock: one that drifts, steps and stops.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use punctual::RtThread;
use punctual::follow::{ClockReading, Reference};
use punctual_core::sample::{Flags, Sample};
use punctual_core::time::{Instant, Period, Span};
use punctual_engine::drain::{SampleFile, Sink};
use punctual_lab::experiment::{BackgroundLoads, ExperimentProgress};
use punctual_lab::periodic::{
    Condition, LoopsOutcome, PeriodicPlan, Prepared, Stream, WaitKind, follow, interleave,
};
use punctual_os::clock::{ClockId, now_ns};

/// Distance of a made-up clock ahead of CLOCK_MONOTONIC before it does anything, ns.
const AHEAD_NS: u64 = 1 << 55;
const PERIOD_NS: u64 = 1_000_000;

#[derive(Default)]
struct Kept(Vec<Sample>);

impl Sink for Kept {
    fn take(&mut self, _: usize, samples: &[Sample]) {
        self.0.extend(samples);
    }
}

/// A clock 30 parts in a million fast, and more by what is added to it; it stands still where it
/// is once that is [`STOPPED`].
fn made_up(added_ns: Arc<AtomicU64>) -> Reference {
    let mut last = Instant::from_ns(0);
    Reference::Callback(Box::new(move || {
        let ns = now_ns(ClockId::Monotonic);
        let added = added_ns.load(Ordering::Relaxed);
        if added != STOPPED {
            last = Instant::from_ns(ns + ns / 1_000_000 * 30 + AHEAD_NS + added);
        }
        Some(ClockReading::new(Instant::from_ns(ns), last, Span::ZERO))
    }))
}

const STOPPED: u64 = u64::MAX;

/// Adds to the clock once it was followed for a second.
struct Meddler(Arc<AtomicU64>, u64);

impl BackgroundLoads for Meddler {
    fn begin(&mut self, _: usize, _: Span) -> Result<(), String> {
        Ok(())
    }

    fn end(&mut self, _: usize) {}

    fn progress(&mut self, progress: &ExperimentProgress) {
        if progress.left < Span::from_ms(1_500) {
            self.0.store(self.1, Ordering::Relaxed);
        }
    }
}

/// Two and a half seconds on a clock that has `meddled` added after one.
fn run(meddled: u64) -> (LoopsOutcome<Kept>, Instant) {
    let added = Arc::new(AtomicU64::new(0));
    let stream = Stream {
        thread: RtThread::any().other().wait(WaitKind::Sleep),
        period: Period::from_ns(PERIOD_NS).expect("positive"),
        phase_ns: 200_000,
    };
    let plan = PeriodicPlan {
        streams: vec![stream],
        conditions: vec![Condition {
            name: "idle".to_owned(),
            wait: None,
            library: None,
            loads: vec![],
        }],
        blocks: interleave(0, 1, Span::from_ms(2_500)),
        housekeeping: vec![],
        cold: 3,
    };
    let follower = follow(made_up(Arc::clone(&added)), &plan);
    let follower = follower.every(Span::from_ms(50), Span::from_ms(10)).start().expect("readable");
    let prepared = Prepared::new(plan).following(follower);
    let epoch = prepared.run_grids()[0].first();
    let mut meddler = Meddler(added, meddled);
    let none = None::<SampleFile<Vec<u8>>>;
    let stop = AtomicBool::new(false);
    (prepared.run(Kept::default(), none, &mut meddler, &stop).expect("threads"), epoch)
}

/// Each release ran or was missed, in order, and no wake was before its release: nothing jumped.
fn went_on(outcome: &LoopsOutcome<Kept>) {
    let samples = &outcome.sink.0;
    let (first, last) = (samples.first().expect("cycles"), samples.last().expect("cycles"));
    let spanned = last.cycle - first.cycle + 1;
    let run = &outcome.runs[0];
    assert_eq!(samples.len() as u64, run.cycles);
    assert!(spanned - run.cycles <= run.missed, "{spanned} {run:?}");
    assert!(samples.windows(2).all(|pair| pair[0].cycle < pair[1].cycle));
    assert!(samples.iter().all(|sample| sample.lateness >= Span::ZERO));
    assert_eq!(samples.iter().filter(|sample| sample.flags.has(Flags::FIRST)).count(), 1);
    // No more releases than the time has room for: a step is no crowd of them.
    assert!(spanned <= 2_501, "{spanned}");
}

#[test]
fn the_grid_lies_on_the_clocks_time_and_has_its_rate() {
    let (outcome, epoch) = run(0);
    went_on(&outcome);
    assert!(epoch.as_ns() > AHEAD_NS);
    assert_eq!(epoch.as_ns() % PERIOD_NS, 200_000);
    let followed = outcome.followed.expect("it was");
    let gained = (followed.ended.grid - followed.began.grid).as_ns()
        - (followed.ended.monotonic - followed.began.monotonic).as_ns();
    let share =
        gained as f64 / (followed.ended.monotonic - followed.began.monotonic).as_ns() as f64;
    assert!((share - 30e-6).abs() < 3e-6, "{share}");
    assert!((followed.status.drift_ppb - 30_000.0).abs() < 3_000.0, "{followed:?}");
    assert_eq!((followed.status.steps, followed.status.stops, followed.unread), (0, 0, 0));
    assert!(followed.status.readings > 10);
}

#[test]
fn a_step_of_the_clock_is_counted_and_no_release_jumps() {
    let (outcome, _) = run(3_600_000_000_000 + 400_000);
    went_on(&outcome);
    let followed = outcome.followed.expect("it was");
    assert_eq!((followed.status.steps, followed.status.stops), (1, 0));
    // An hour and 0.4 ms: 0.4 ms are slewed in, the hour never is.
    let stepped = followed.status.stepped_ns;
    assert_eq!(stepped, 3_600_000_000_000, "{followed:?}");
}

#[test]
fn a_clock_that_stops_is_counted_and_the_grid_goes_on() {
    let (outcome, _) = run(STOPPED);
    went_on(&outcome);
    let followed = outcome.followed.expect("it was");
    assert_eq!((followed.status.steps, followed.status.stops), (0, 1));
}
