//! How the claims stand while an experiment runs: computed on the drain's thread, reported with the
//! progress.
//!
//! The loops' threads know nothing of it: the drain's thread puts a standing here some times a
//! second, the coordinator reads it. LoadBounds are those that hold at every look.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use punctual_analysis::claim::anytime;
use punctual_analysis::claim::ask::Ask;
use punctual_analysis::recording::Recording;

/// How often a standing is computed anew, for each run.
const EVERY: Duration = Duration::from_millis(500);

/// How one claim stands on one run.
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

/// The standings of all runs, shared.
#[derive(Clone, Debug)]
pub struct Standings {
    asks: Vec<Ask>,
    /// By run: the claim that is farthest from being shown.
    standings: Arc<Mutex<Vec<Option<Standing>>>>,
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
        Self { asks: asks.to_vec(), standings: Arc::new(Mutex::new(vec![None; runs])) }
    }

    /// How many runs there are.
    pub fn runs(&self) -> usize {
        self.standings.lock().map_or(0, |standings| standings.len())
    }

    /// The end that the drain holds.
    pub fn writer(&self) -> StandingsWriter {
        StandingsWriter { standings: self.clone(), last: vec![None; self.runs()] }
    }

    /// The claim farthest from being shown among some runs.
    pub fn farthest(&self, runs: impl IntoIterator<Item = usize>) -> Option<Standing> {
        let standings = self.standings.lock().ok()?;
        let of = runs.into_iter().filter_map(|run| standings.get(run)?.clone());
        of.max_by(|a, b| a.distance().total_cmp(&b.distance()))
    }
}

impl Standing {
    /// How many times what was claimed the bound is.
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
    /// Computes how run `run` stands, unless that was done just now.
    pub fn look(&mut self, run: usize, recording: &Recording) {
        let now = Instant::now();
        if self.standings.asks.is_empty() || self.last[run].is_some_and(|last| now - last < EVERY) {
            return;
        }
        self.last[run] = Some(now);
        let of = self.standings.asks.iter().filter_map(|ask| Standing::of(ask, recording));
        let farthest = of.max_by(|a, b| a.distance().total_cmp(&b.distance()));
        if let Ok(mut all) = self.standings.standings.lock() {
            all[run] = farthest;
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
        assert_eq!(standings.farthest(0..2), None);
        let mut writer = standings.writer();
        writer.look(1, &recording);
        let standing = standings.farthest(0..2).expect("computed");
        assert_eq!((standing.ask, standing.seen, standing.n), (asks[1], 0, 10_000));
        assert!((3.5e-4..4.5e-4).contains(&standing.p_upper), "{}", standing.p_upper);
        // At once again: not computed.
        writer.look(1, &Recording::new(RecordingConfig::default()));
        assert_eq!(standings.farthest([1]), Some(standing));
        assert_eq!(standings.farthest([0]), None);
    }
}
