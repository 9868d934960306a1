//! Where the samples of measured loops go: into recordings, and into the sample file.
//!
//! Writes what the file says of itself, before the first sample.

use std::error::Error;
use std::io;

use anyhow::{Result, bail};
use punctual::drain::SampleFile;
use punctual_host::facts::MachineFacts;
use punctual_import::samples::{FileInfo, RUNS_MAX, RunInfo};
use punctual_lab::experiment::{RunSoFar, Standings};
use punctual_lab::periodic::{Begun, Destination, EvaluationConfig, Prepared, Recordings};
use punctual_os::scheduler::SchedPolicy;

use super::runs::{UNDER_LOAD, length_ns, run_name};
use crate::output::{GrowingFile, Opened};
use crate::report::policy_words;

/// The destination of samples.
pub(super) struct Samples<'a> {
    file: Option<Opened>,
    watch: EvaluationConfig,
    machine: &'a MachineFacts,
    follows: Option<String>,
    started: jiff::Timestamp,
    /// The figures so far, once it has begun, and how many conditions there are.
    standings: Option<(Standings, usize)>,
}

impl<'a> Samples<'a> {
    /// Samples into `file`, of loops that follow the clock `follows`.
    pub(super) fn new(
        file: Option<Opened>,
        watch: EvaluationConfig,
        machine: &'a MachineFacts,
        follows: Option<String>,
        started: jiff::Timestamp,
    ) -> Self {
        Self { file, watch, machine, follows, started, standings: None }
    }

    /// What an error of the sample file leaves of it.
    pub(super) fn cut_off(&self, why: &io::Error) -> Option<anyhow::Error> {
        self.file.as_ref().map(|file| file.cut_off(why))
    }

    /// Ends the sample file; the work `failed` where that is reported elsewhere.
    pub(super) fn finish(&self, failed: bool) -> Result<()> {
        self.file.as_ref().map_or(Ok(()), |file| file.finish(failed))
    }

    /// The sample file, with what it says of itself, where there is to be one.
    fn begin_file(
        &self,
        prepared: &Prepared,
        granted: &[SchedPolicy],
    ) -> Result<Option<SampleFile<GrowingFile>>> {
        let Some(opened) = &self.file else { return Ok(None) };
        let runs = prepared.plan().runs();
        if runs > RUNS_MAX {
            bail!("{runs} runs: a sample file has at most {RUNS_MAX}; use fewer CPUs or loads");
        }
        let info = serde_json::to_string(&self.describe(prepared, granted)?)?;
        let (file, place) = opened.begin(|to| SampleFile::begin(to, &info, runs))?;
        Ok(Some(file.at_first_samples(place)))
    }

    /// What the sample file says of itself.
    fn describe(&self, prepared: &Prepared, granted: &[SchedPolicy]) -> Result<FileInfo> {
        let plan = prepared.plan();
        let mut runs = Vec::new();
        let streams = plan.streams.iter().zip(prepared.grids()).zip(granted);
        for ((stream, grid), &policy) in streams {
            for (index, condition) in plan.conditions.iter().enumerate() {
                let (policy, priority) = policy_words(policy);
                let merged = self.watch.merge && plan.counts_as_one(index);
                runs.push(RunInfo {
                    name: run_name(plan, stream, &condition.name),
                    part_of: merged.then(|| run_name(plan, stream, UNDER_LOAD)),
                    cpu: stream.thread.pinned_to().unwrap_or_default(),
                    period_ns: grid.period().as_ns(),
                    epoch_ns: grid.first().as_ns(),
                    phase_ns: grid.phase_ns(),
                    follows: self.follows.clone(),
                    policy: policy.to_owned(),
                    priority,
                    wait: plan.wait(stream, index).name().to_owned(),
                    load: condition.loads.iter().map(ToString::to_string).collect(),
                    duration_ns: length_ns(plan, index),
                    floor_ns: Some(prepared.cost().now_ns),
                    clock: prepared.clock_name().to_owned(),
                });
            }
        }
        Ok(FileInfo {
            tool: "punctual".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: self.started.to_string(),
            machine: Some(serde_json::to_value(self.machine)?),
            runs,
        })
    }
}

impl Destination for Samples<'_> {
    type Sink = Recordings;
    type File = GrowingFile;

    fn begin(
        &mut self,
        prepared: &Prepared,
        granted: &[SchedPolicy],
    ) -> Result<Begun<Recordings, GrowingFile>, Box<dyn Error + Send + Sync>> {
        let file = self.begin_file(prepared, granted)?;
        let conditions = prepared.plan().conditions.len();
        let standings = Standings::new(&self.watch.claims, prepared.plan().runs());
        let sink = Recordings::new(prepared.grids(), prepared.plan(), &self.watch, &standings);
        self.standings = Some((standings, conditions));
        Ok(Begun { sink, file })
    }

    fn so_far(&self, condition: usize) -> Vec<Option<RunSoFar>> {
        let of = self.standings.as_ref();
        of.map_or_else(Vec::new, |(standings, conditions)| standings.so_far(condition, *conditions))
    }
}
