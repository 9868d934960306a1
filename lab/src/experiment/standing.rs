//! The figures of each loop and how the claims stand while an experiment runs: computed on the
//! drain's thread, reported with the progress.
//!
//! The loops' threads know nothing of it: the drain's thread puts them here twice a second, the
//! coordinator reads them. Bounds of claims are those that hold at every look.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use punctual_analysis::claim::anytime;
use punctual_analysis::claim::ask::Ask;
use punctual_analysis::plot::HeatColumn;
use punctual_analysis::recording::Recording;
use punctual_analysis::summary::SummaryStats;

/// Time between two computations of figures and standing, for each run.
const EVERY: Duration = Duration::from_millis(500);

/// The standing of one claim on one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// The claim.
    pub ask: Ask,
    /// The bound that holds at any look.
    pub p_upper: f64,
    /// Exceedances so far, of how many.
    pub seen: u64,
    /// Cycles, or intervals, so far.
    pub n: u64,
    /// Extremal index that the bound is adjusted by; 1: independent cycles.
    pub theta: f64,
}

/// The figures of one run so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunSoFar {
    /// Lateness of its releases, missed ones included.
    pub lateness_ns: SummaryStats,
    /// The releases by their lateness.
    pub by_lateness: HeatColumn,
    /// Its releases: those that ran, and those that were missed.
    pub releases: u64,
    /// Missed releases.
    pub missed: u64,
    /// The claim that is farthest from being shown.
    pub standing: Option<Standing>,
}

/// The figures of all runs, shared.
#[derive(Clone, Debug)]
pub struct Standings {
    asks: Vec<Ask>,
    /// By run; `None` until there are samples.
    runs: Arc<Mutex<Vec<Option<RunSoFar>>>>,
}

/// The drain's end: when each run was computed last.
#[derive(Debug)]
pub struct StandingsWriter {
    standings: Standings,
    last: Vec<Option<Instant>>,
}

impl Standings {
    /// Nothing is known of `runs` runs yet.
    pub fn new(asks: &[Ask], runs: usize) -> Self {
        Self { asks: asks.to_vec(), runs: Arc::new(Mutex::new(vec![None; runs])) }
    }

    /// The end that the drain holds.
    pub fn writer(&self) -> StandingsWriter {
        let runs = self.runs.lock().map_or(0, |runs| runs.len());
        StandingsWriter { standings: self.clone(), last: vec![None; runs] }
    }

    /// The figures of every `step`th run from `first` on: those of each loop under one condition.
    pub fn so_far(&self, first: usize, step: usize) -> Vec<Option<RunSoFar>> {
        let Ok(runs) = self.runs.lock() else { return Vec::new() };
        runs.iter().skip(first).step_by(step.max(1)).cloned().collect()
    }
}

impl Standing {
    /// The one farthest from being shown.
    pub fn farthest<'a>(standings: impl IntoIterator<Item = &'a Self>) -> Option<&'a Self> {
        standings.into_iter().max_by(|a, b| a.distance().total_cmp(&b.distance()))
    }

    /// The bound over the probability claimed: how far it is from being shown.
    fn distance(&self) -> f64 {
        self.p_upper / self.ask.p()
    }

    fn of(ask: &Ask, recording: &Recording) -> Option<Self> {
        let counted = recording.counted_so_far(ask).ok()?;
        let p_upper =
            anytime::p_upper_dependent(counted.most, counted.n, counted.theta, ask.confidence());
        Some(Self { ask: *ask, p_upper, seen: counted.most, n: counted.n, theta: counted.theta })
    }
}

impl StandingsWriter {
    /// Computes the figures of run `run`, unless that was done just now.
    pub fn look(&mut self, run: usize, recording: &Recording) {
        let now = Instant::now();
        if self.last[run].is_some_and(|last| now - last < EVERY) {
            return;
        }
        self.last[run] = Some(now);
        let standing = |ask| Standing::of(ask, recording);
        let standings: Vec<Standing> = self.standings.asks.iter().filter_map(standing).collect();
        let (samples, missed) = (recording.samples(), recording.gaps());
        let (lateness_ns, by_lateness) = recording.lateness_so_far();
        let so_far = RunSoFar {
            lateness_ns,
            by_lateness,
            releases: samples.saturating_add(missed),
            missed,
            standing: Standing::farthest(&standings).cloned(),
        };
        if let Ok(mut runs) = self.standings.runs.lock() {
            runs[run] = Some(so_far);
        }
    }
}

#[cfg(test)]
mod tests {
    use punctual_analysis::recording::RecordingConfig;
    use punctual_core::sample::{Flags, Sample};
    use punctual_core::time::Span;

    use super::*;

    #[test]
    fn the_claim_farthest_from_being_shown_stands_there() {
        let asks = ["p(lateness>50us)<1e-2", "p(missed)<1e-3"].map(|t| Ask::parse(t).expect(t));
        let setup = RecordingConfig { thresholds_ns: vec![50_000], ..RecordingConfig::default() };
        let mut recording = Recording::new(setup).watching(&asks);
        for cycle in 0..10_000 {
            let lateness = Span::from_us(if cycle % 2_000 == 77 { 60 } else { 5 });
            recording.push(&Sample { cycle, lateness, flags: Flags::NONE });
        }
        let standings = Standings::new(&asks, 2);
        assert_eq!(standings.so_far(0, 1), [None, None]);
        let mut writer = standings.writer();
        writer.look(1, &recording);
        let so_far = standings.so_far(0, 1)[1].clone().expect("computed");
        assert_eq!((so_far.releases, so_far.missed), (10_000, 0));
        let lateness = &so_far.lateness_ns;
        assert_eq!((lateness.min, lateness.max), (Some(5_000.0), Some(60_000.0)));
        assert!(lateness.p50.is_some_and(|ns| (5_000.0..5_010.0).contains(&ns)), "{lateness:?}");
        let standing = so_far.standing.clone().expect("two claims");
        assert_eq!((standing.ask, standing.seen, standing.n), (asks[1], 0, 10_000));
        assert!((3.5e-4..4.5e-4).contains(&standing.p_upper), "{}", standing.p_upper);
        // At once again: not computed.
        writer.look(1, &Recording::new(RecordingConfig::default()));
        assert_eq!(standings.so_far(1, 2), [Some(so_far)]);
        assert_eq!(standings.so_far(0, 2), [None]);
    }
}
