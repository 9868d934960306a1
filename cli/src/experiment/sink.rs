//! Where the samples of an experiment go: one recording a run, and one for all loads together.
//!
//! For the drain's thread, as they come. Constant memory; touches no file.

use punctual::core::releases;
use punctual::core::sample::Sample;
use punctual::drain::Sink;
use punctual_analysis::claim::ask::Ask;
use punctual_analysis::compare::series::Builder;
use punctual_analysis::recording::{Recording, Releases, Setup};

use super::live::{Live, Reckoner};

/// All recordings of an experiment.
#[derive(Debug)]
pub(crate) struct Recordings {
    /// By run, as the plan counts them.
    pub(crate) runs: Vec<Recording>,
    /// By stream: all conditions but the first, together. Empty unless asked for.
    pub(crate) merged: Vec<Recording>,
    /// By run, as `runs`: what a comparison needs.
    pub(crate) series: Vec<Builder>,
    conditions: usize,
    /// How the claims stand, by run; those of a merged run stand at each of its conditions.
    reckoner: Reckoner,
}

impl Recordings {
    /// Recordings for each stream, given by its grid, and condition.
    pub(crate) fn new(
        grids: &[releases::Releases],
        conditions: usize,
        merge: bool,
        keep_cold: bool,
        thresholds_ns: &[i64],
        (asks, live): (&[Ask], &Live),
    ) -> Self {
        let setup = |grid: &releases::Releases| Setup {
            period: Some(grid.period()),
            epoch: grid.first(),
            leave_out_cold: !keep_cold,
            thresholds_ns: thresholds_ns.to_vec(),
            releases: Releases::Known,
        };
        let recording = |grid: &releases::Releases| Recording::new(setup(grid)).watching(asks);
        let all = || grids.iter().map(recording);
        Self {
            runs: grids
                .iter()
                .flat_map(|grid| (0..conditions).map(move |_| recording(grid)))
                .collect(),
            merged: if merge { all().collect() } else { Vec::new() },
            series: grids
                .iter()
                .flat_map(|grid| {
                    let builder = Builder::new(grid.period().as_ns(), !keep_cold);
                    std::iter::repeat_n(builder, conditions)
                })
                .collect(),
            conditions,
            reckoner: live.reckoner(),
        }
    }
}

impl Sink for Recordings {
    fn take(&mut self, run: usize, samples: &[Sample]) {
        self.runs[run].extend(samples);
        samples.iter().for_each(|sample| self.series[run].push(sample));
        let idle = run.is_multiple_of(self.conditions);
        if !idle && let Some(merged) = self.merged.get_mut(run / self.conditions) {
            merged.extend(samples);
            self.reckoner.look(run, merged);
        } else {
            self.reckoner.look(run, &self.runs[run]);
        }
    }
}
