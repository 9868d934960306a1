//! The loads of an experiment, block by block, and the way to its observer.
//!
//! For the thread that coordinates. What a load did in several blocks is added up.

use std::time::Duration;

use punctual_core::time::Span;
use punctual_host::facts::MachineFacts;
use punctual_os::affinity;

use super::event::{ExperimentEvent, ExperimentProgress, LoopSoFar, Observer};
use crate::load::{DEATHS_MAX, Launcher, LoadBounds, LoadReport, LoadSpec, READY, RunningLoads};

/// A load ends by itself this much after its block, whatever becomes of its parent: as long as the
/// others of its block may take to be ready, and as much again for a machine that is behind.
const GRACE: Duration = READY.saturating_mul(2);

/// What else the machine does: started before a block's loop, ended after it.
pub trait BackgroundLoads {
    /// Starts what condition `condition` names and returns once it is at work. It must end by
    /// itself soon after `length`, whatever becomes of the caller.
    ///
    /// # Errors
    /// In one line, why it could not be started.
    fn begin(&mut self, condition: usize, length: Span) -> Result<(), String>;

    /// Ends it.
    fn end(&mut self, condition: usize);

    /// Called about ten times a second with how far the experiment is.
    fn progress(&mut self, _: &ExperimentProgress) {}
}

/// Changes the machine for a condition before its loads start, and back after they ended.
pub trait ConditionChanges {
    /// Changes what condition `condition` needs.
    ///
    /// # Errors
    /// In one line, why the experiment cannot go on.
    fn begin(&mut self, condition: usize) -> Result<(), String>;

    /// Puts everything back.
    fn end(&mut self);
}

/// One condition: its name, its loads, what each has done.
struct Condition {
    name: String,
    specs: Vec<LoadSpec>,
    done: Vec<Tally>,
}

/// What one load did in all blocks so far.
#[derive(Clone, Debug)]
struct Tally {
    report: LoadReport,
    rates: f64,
    blocks: u32,
}

/// The loads of each condition, and what they did.
pub struct Loading<'l> {
    conditions: Vec<Condition>,
    bounds: LoadBounds,
    launcher: &'l dyn Launcher,
    running: Option<RunningLoads>,
    observer: &'l mut dyn Observer,
}

impl<'l> Loading<'l> {
    /// Loads within `bounds`, nothing running yet.
    pub(super) fn new(
        conditions: Vec<(String, Vec<LoadSpec>)>,
        bounds: LoadBounds,
        launcher: &'l dyn Launcher,
        observer: &'l mut dyn Observer,
    ) -> Self {
        let condition = |(name, specs)| Condition { name, specs, done: Vec::new() };
        let conditions = conditions.into_iter().map(condition).collect();
        Self { conditions, bounds, launcher, running: None, observer }
    }

    /// Reports to the observer how far the experiment and each of its loops is.
    pub fn report(&mut self, progress: &ExperimentProgress, loops: &[LoopSoFar]) {
        let condition = self.conditions.get(progress.condition).map_or("", |of| of.name.as_str());
        self.observer.event(&ExperimentEvent::Progress { progress, condition, loops });
    }

    /// What the loads of each condition did: the mean rate over the blocks that gave one.
    pub(super) fn finish(self) -> Vec<Vec<LoadReport>> {
        self.observer.event(&ExperimentEvent::Ended);
        let mean = |tally: &Tally| LoadReport {
            rate: (tally.blocks > 0).then(|| tally.rates / f64::from(tally.blocks)),
            ..tally.report.clone()
        };
        self.conditions.iter().map(|of| of.done.iter().map(mean).collect()).collect()
    }
}

impl BackgroundLoads for Loading<'_> {
    fn begin(&mut self, condition: usize, length: Span) -> Result<(), String> {
        let specs = &self.conditions[condition].specs;
        if specs.is_empty() {
            return Ok(());
        }
        let limit = Duration::from_nanos(length.as_ns().unsigned_abs()) + GRACE;
        let bounds = LoadBounds { limit, ..self.bounds.clone() };
        let running = RunningLoads::start(specs, self.launcher, &bounds);
        self.running = Some(running.map_err(|why| why.to_string())?);
        Ok(())
    }

    fn end(&mut self, condition: usize) {
        let Some(running) = self.running.take() else { return };
        let tallies = &mut self.conditions[condition].done;
        for report in running.stop() {
            let rate = report.rate;
            let at = tallies
                .iter()
                .position(|t| t.report.name == report.name && t.report.unit == report.unit);
            let at = at.unwrap_or_else(|| {
                let report = LoadReport { deaths: Vec::new(), ..report.clone() };
                tallies.push(Tally { report, rates: 0.0, blocks: 0 });
                tallies.len() - 1
            });
            let tally = &mut tallies[at];
            tally.report.note = report.note.or(tally.report.note.take());
            tally.report.deaths.extend(report.deaths);
            tally.report.deaths.truncate(DEATHS_MAX);
            if let Some(rate) = rate {
                tally.rates += rate;
                tally.blocks += 1;
            }
        }
    }

    fn progress(&mut self, progress: &ExperimentProgress) {
        self.report(progress, &[]);
    }
}

/// Loads may use every CPU that this process may; each block sets its own limit of time.
pub fn bounds(here: &MachineFacts) -> LoadBounds {
    let cpus: Vec<u32> =
        affinity::get(0).map(|mask| mask.iter().collect()).unwrap_or_else(|_| vec![0]);
    let isolated = here.isolation.isolated();
    let unisolated = cpus.iter().filter(|&&cpu| !isolated.contains(cpu)).count();
    LoadBounds { unisolated: unisolated.max(1), ..LoadBounds::new(GRACE, cpus) }
}

/// Starts each load for a moment: those that start, and why the others do not. For loads that were
/// not requested by name, so that a machine without one of them is measured all the same.
pub fn startable(
    specs: Vec<LoadSpec>,
    launcher: &dyn Launcher,
    bounds: &LoadBounds,
) -> (Vec<LoadSpec>, Vec<String>) {
    let (mut loads, mut left_out) = (Vec::new(), Vec::new());
    for spec in specs {
        match RunningLoads::start(std::slice::from_ref(&spec), launcher, bounds) {
            Ok(running) => {
                running.stop();
                loads.push(spec);
            }
            Err(why) => left_out.push(why.to_string()),
        }
    }
    (loads, left_out)
}
