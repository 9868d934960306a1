//! The saturation experiment as the lifecycle of all experiments runs it.

use std::sync::atomic::{AtomicBool, Ordering};

use punctual::clocks::{MachineClock, StampCost};
use punctual::safety::is_real_time;
use punctual::spawn;
use punctual_core::time::{Period, Span};
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual_os::scheduler::SchedPolicy;

use super::background::{self, Background};
use super::outcome::{SaturationOutcome, SaturationRow};
use super::trials::{HIGHEST, Kept, REST_NS, Search, TRIAL_NS};
use crate::experiment::{
    ClockFacts, Context, Demand, Experiment, ExperimentEnd, ExperimentError, Loading, Measured,
};
use crate::load::LoadSpec;
use crate::response::SourceName;

/// The highest frequencies that are served.
#[derive(Clone, Debug)]
pub struct SaturationExperiment {
    /// Where stimuli come from; not the kernel's timer.
    pub source: SourceName,
    /// The CPU of both stages.
    pub cpu: u32,
    /// The CPU that raises stimuli.
    pub stimulus_cpu: u32,
    /// The policy of stage 1, and of the thread that raises stimuli.
    pub first: SchedPolicy,
    /// The policy of stage 2.
    pub second: SchedPolicy,
    /// How long at most, in all: half unloaded, half loaded.
    pub duration: Span,
    /// Whether nothing limits real-time threads meanwhile, which is the caller's to see to: what is
    /// left for the background is then measured in longer trials.
    pub unthrottled: bool,
}

/// How often the background's first polygon is looked for, and how long at most.
const LOOK_NS: u64 = 1_000_000;
const PATIENCE_NS: u64 = 5_000_000_000;

/// What one condition's search found: its rows, the background's own rate, and why it lost its
/// source.
type Searched = (Vec<SaturationRow>, f64, Option<String>);

impl Experiment for SaturationExperiment {
    type Outcome = SaturationOutcome;

    fn demands(&self) -> Vec<Demand> {
        let share = TRIAL_NS as f64 / (TRIAL_NS + REST_NS) as f64;
        let demand = |(cpu, period)| Demand {
            cpu: Some(cpu),
            real_time: is_real_time(self.first),
            period,
            share,
        };
        let period = Period::from_ns(TRIAL_NS + REST_NS);
        let cpus = [self.cpu, self.stimulus_cpu];
        period.map_or_else(Vec::new, |period| cpus.map(|cpu| demand((cpu, period))).into())
    }

    fn conditions(&self) -> Vec<(String, Vec<LoadSpec>)> {
        vec![("unloaded".to_owned(), Vec::new()), ("loaded".to_owned(), Vec::new())]
    }

    fn run(self, context: Context<'_, '_>) -> Result<Measured<SaturationOutcome>, ExperimentError> {
        let Context { loading, stop } = context;
        let mut clock = MachineClock::best();
        let cost = StampCost::measure(&mut clock);
        let (mut trials, mut refused) = (Vec::new(), Vec::new());
        let mut alone = Search::new(&self, "unloaded", (&mut *loading, stop));
        let mut rows = alone.run((&mut trials, &mut refused))?;
        let (mut lost, mut rate) = (alone.lost.take(), 0.0);
        if lost.is_none() {
            let found = self.loaded((&mut *loading, stop), (&mut trials, &mut refused))?;
            rows.extend(found.0);
            (rate, lost) = (found.1, found.2);
        }
        clock.discipline();
        let end = if lost.is_some() {
            ExperimentEnd::Lost
        } else if stop.load(Ordering::Relaxed) {
            ExperimentEnd::Stopped
        } else {
            ExperimentEnd::Finished
        };
        let outcome = SaturationOutcome {
            source: self.source.to_string(),
            cpu: self.cpu,
            stimulus_cpu: self.stimulus_cpu,
            trial_ns: TRIAL_NS,
            unthrottled: self.unthrottled,
            highest_hz: HIGHEST,
            background: Some(background::row(&trials, rate)).filter(|_| rate > 0.0),
            rows,
            trials,
            lost,
        };
        let clock = ClockFacts::of(&clock, cost, None);
        let (disturbances, taken) = (Vec::new(), Vec::new());
        Ok(Measured { outcome, end, clock, refused, disturbances, taken })
    }
}

impl SaturationExperiment {
    /// The search beside the background.
    fn loaded(
        &self,
        (loading, stop): (&mut Loading<'_>, &AtomicBool),
        kept: Kept<'_>,
    ) -> Result<Searched, ExperimentError> {
        let behind = Background::default();
        std::thread::scope(|scope| {
            let drawing = spawn::scoped(scope, "punctual-load", || behind.draw(self.cpu))?;
            let rate = rate(&behind, stop);
            let mut search = Search::new(self, "loaded", (loading, stop));
            search.background = Some((&behind, rate));
            let found = search.run_and_rise(kept);
            behind.end();
            drawing.join().map_err(|_| ExperimentError::Panic)?;
            found.map(|found| (found, rate, search.lost.take()))
        })
    }
}

/// The background's rate without stimuli, from its first polygon on: beside others that keep its
/// CPU it may be long in starting, and stand still for longer than a trial.
fn rate(behind: &Background, stop: &AtomicBool) -> f64 {
    let drawn = || behind.drawn().load(Ordering::Relaxed);
    // Sleeps so long, and again while nothing was drawn; how long it was.
    let until_drawn_since = |before, step_ns| {
        let begun_ns = now_ns(ClockId::Monotonic);
        loop {
            let _interrupted = sleep_until_ns(now_ns(ClockId::Monotonic) + step_ns);
            let took_ns = now_ns(ClockId::Monotonic) - begun_ns;
            let over = took_ns >= PATIENCE_NS || stop.load(Ordering::Relaxed);
            if over || drawn() > before {
                return took_ns;
            }
        }
    };
    until_drawn_since(0, LOOK_NS);
    let before = drawn();
    let took_ns = until_drawn_since(before, TRIAL_NS);
    (drawn() - before) as f64 / (took_ns as f64 / 1e9)
}
