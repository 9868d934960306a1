//! How the claims stand while an experiment runs: reckoned beside the drain, shown by the progress
//! line.
//!
//! The loops' threads know nothing of it: the drain's thread puts a standing here some times a
//! second, the coordinator reads it. Bounds are those that hold at every look.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use punctual_analysis::claim::anytime;
use punctual_analysis::claim::ask::Ask;
use punctual_analysis::recording::Recording;

/// How often a standing is reckoned anew, for each run.
const EVERY: Duration = Duration::from_millis(500);

/// How one claim stands on one run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Standing {
    /// The claim.
    pub(crate) ask: Ask,
    /// The bound that holds at any look.
    pub(crate) p_upper: f64,
    /// Exceedances so far, of how many.
    pub(crate) seen: u64,
    /// Cycles, or intervals, so far.
    pub(crate) n: u64,
    /// Extremal index that the bound is adjusted by; 1: independent cycles.
    pub(crate) theta: f64,
}

/// The standings of all runs, shared.
#[derive(Clone, Debug)]
pub(crate) struct Live {
    asks: Vec<Ask>,
    /// By run: the claim that is farthest from being shown.
    standings: Arc<Mutex<Vec<Option<Standing>>>>,
}

/// The drain's end: when each run was reckoned last.
#[derive(Debug)]
pub(crate) struct Reckoner {
    live: Live,
    last: Vec<Option<Instant>>,
}

impl Live {
    /// Nothing is known of `runs` runs yet.
    pub(crate) fn new(asks: &[Ask], runs: usize) -> Self {
        Self { asks: asks.to_vec(), standings: Arc::new(Mutex::new(vec![None; runs])) }
    }

    /// How many runs there are.
    pub(crate) fn runs(&self) -> usize {
        self.standings.lock().map_or(0, |standings| standings.len())
    }

    /// The end that the drain holds.
    pub(crate) fn reckoner(&self) -> Reckoner {
        Reckoner { live: self.clone(), last: vec![None; self.runs()] }
    }

    /// The claim farthest from being shown among some runs.
    pub(crate) fn farthest(&self, runs: impl IntoIterator<Item = usize>) -> Option<Standing> {
        let standings = self.standings.lock().ok()?;
        let of = runs.into_iter().filter_map(|run| standings.get(run)?.clone());
        of.max_by(|a, b| a.distance().total_cmp(&b.distance()))
    }
}

impl Standing {
    /// How many times what was asked the bound is.
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

impl Reckoner {
    /// Reckons how run `run` stands, unless that was done just now.
    pub(crate) fn look(&mut self, run: usize, recording: &Recording) {
        let now = Instant::now();
        if self.live.asks.is_empty() || self.last[run].is_some_and(|last| now - last < EVERY) {
            return;
        }
        self.last[run] = Some(now);
        let of = self.live.asks.iter().filter_map(|ask| Standing::of(ask, recording));
        let farthest = of.max_by(|a, b| a.distance().total_cmp(&b.distance()));
        if let Ok(mut standings) = self.live.standings.lock() {
            standings[run] = farthest;
        }
    }
}

#[cfg(test)]
mod tests {
    use punctual::core::sample::{Flags, Sample};
    use punctual::core::time::Span;
    use punctual_analysis::recording::Setup;

    use super::*;

    #[test]
    fn the_claim_farthest_from_being_shown_stands_there() {
        let asks = ["p(lateness>50us)<1e-2", "p(missed)<1e-3"].map(|t| Ask::parse(t).expect(t));
        let setup = Setup { thresholds_ns: vec![50_000], ..Setup::default() };
        let mut recording = Recording::new(setup).watching(&asks);
        for cycle in 0..10_000 {
            let lateness = Span::from_us(if cycle % 2_000 == 77 { 60 } else { 5 });
            recording.push(&Sample { cycle, lateness, flags: Flags::NONE });
        }
        let live = Live::new(&asks, 2);
        assert_eq!(live.farthest(0..2), None);
        let mut reckoner = live.reckoner();
        reckoner.look(1, &recording);
        let standing = live.farthest(0..2).expect("reckoned");
        assert_eq!((standing.ask, standing.seen, standing.n), (asks[1], 0, 10_000));
        assert!((3.5e-4..4.5e-4).contains(&standing.p_upper), "{}", standing.p_upper);
        // At once again: not reckoned.
        reckoner.look(1, &Recording::new(Setup::default()));
        assert_eq!(live.farthest([1]), Some(standing));
        assert_eq!(live.farthest([0]), None);
    }
}
