//! Loading: the loads of each condition of an experiment, started and ended with its blocks, and
//! what they did.

use std::time::Duration;

use punctual_core::time::Span;
use punctual_host::facts::MachineFacts;
use punctual_os::affinity;

use super::{
    BackgroundLoads, ConditionBlock, ExperimentEvent, ExperimentProgress, LoopSoFar, Observer,
};
use crate::load::{
    DEATHS_MAX, LIMIT_GRACE, Launcher, LoadBounds, LoadReport, LoadSpec, RunningLoads,
};

/// A condition of loads: its name, its loads, what each has done.
struct LoadedCondition {
    name: String,
    specs: Vec<LoadSpec>,
    done: Vec<LoadTally>,
}

/// The work of one load in all blocks so far.
#[derive(Clone, Debug)]
struct LoadTally {
    report: LoadReport,
    rates: f64,
    blocks: u32,
}

/// The loads of each condition, and what they did.
///
/// For the thread that coordinates. What a load did in several blocks is added up.
pub struct Loading<'l> {
    conditions: Vec<LoadedCondition>,
    bounds: LoadBounds,
    launcher: &'l dyn Launcher,
    running: Option<RunningLoads>,
    /// True once the measurement is over: the work of loads after it is not counted.
    is_over: bool,
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
        let condition = |(name, specs)| LoadedCondition { name, specs, done: Vec::new() };
        let conditions = conditions.into_iter().map(condition).collect();
        Self { conditions, bounds, launcher, running: None, is_over: false, observer }
    }

    /// Reports to the observer how far the experiment and each of its loops is.
    pub fn report(&mut self, progress: &ExperimentProgress, loops: &[LoopSoFar]) {
        let condition =
            self.conditions.get(progress.condition).map_or("", |condition| condition.name.as_str());
        let is_over = self.is_over;
        self.observer.event(&ExperimentEvent::Progress { progress, condition, is_over, loops });
    }

    /// The reports of the loads of each condition: the mean rate over the blocks that gave one.
    pub(super) fn finish(self) -> Vec<Vec<LoadReport>> {
        self.observer.event(&ExperimentEvent::Ended);
        let mean = |tally: &LoadTally| LoadReport {
            rate: (tally.blocks > 0).then(|| tally.rates / f64::from(tally.blocks)),
            ..tally.report.clone()
        };
        self.conditions.iter().map(|condition| condition.done.iter().map(mean).collect()).collect()
    }
}

impl BackgroundLoads for Loading<'_> {
    fn begin(&mut self, condition: usize, length: Span) -> Result<(), String> {
        let specs = &self.conditions[condition].specs;
        if specs.is_empty() {
            return Ok(());
        }
        let limit = Duration::from_nanos(length.as_ns().unsigned_abs()) + LIMIT_GRACE;
        let bounds = LoadBounds { limit, ..self.bounds.clone() };
        let running = RunningLoads::start(specs, self.launcher, &bounds);
        self.running = Some(running.map_err(|why| why.to_string())?);
        Ok(())
    }

    fn end(&mut self, condition: usize) {
        let Some(running) = self.running.take() else { return };
        let reports = running.stop();
        if self.is_over {
            return;
        }
        let tallies = &mut self.conditions[condition].done;
        for report in reports {
            let rate = report.rate;
            let at = tallies
                .iter()
                .position(|t| t.report.name == report.name && t.report.unit == report.unit);
            let at = at.unwrap_or_else(|| {
                let report = LoadReport { notes: Vec::new(), deaths: Vec::new(), ..report.clone() };
                tallies.push(LoadTally { report, rates: 0.0, blocks: 0 });
                tallies.len() - 1
            });
            let tally = &mut tallies[at];
            add_notes(&mut tally.report.notes, report.notes);
            tally.report.deaths.extend(report.deaths);
            tally.report.deaths.truncate(DEATHS_MAX);
            if let Some(rate) = rate {
                tally.rates += rate;
                tally.blocks += 1;
            }
        }
    }

    fn measured(&mut self) -> Vec<ConditionBlock> {
        self.is_over = true;
        Vec::new()
    }

    fn progress(&mut self, progress: &ExperimentProgress) {
        self.report(progress, &[]);
    }
}

/// Notes that a load has at most over its blocks.
const NOTES_MAX: usize = 8;

/// Adds the notes of one more block to those of earlier ones, each once.
fn add_notes(notes: &mut Vec<String>, of_block: Vec<String>) {
    for note in of_block {
        if !notes.contains(&note) && notes.len() < NOTES_MAX {
            notes.push(note);
        }
    }
}

/// Loads may use every CPU that this process may, so none of `isolcpus=` unless it was started
/// there; each block sets its own limit of time.
pub fn bounds(machine: &MachineFacts) -> LoadBounds {
    let cpus: Vec<u32> =
        affinity::get(0).map(|mask| mask.iter().collect()).unwrap_or_else(|_| vec![0]);
    let isolated = machine.isolation.isolated();
    let unisolated = cpus.iter().filter(|&&cpu| !isolated.contains(cpu)).count();
    LoadBounds { unisolated: unisolated.max(1), ..LoadBounds::new(LIMIT_GRACE, cpus) }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_block_takes_no_note_of_an_earlier_one_away() {
        // A part of a note may hold what separates notes elsewhere.
        let (fallen, usual) = ("over loopback: ip link add: failed; 1", "between two namespaces");
        let mut notes = Vec::new();
        for of_block in [&[][..], &[fallen], &[], &[usual, fallen], &["1"]] {
            add_notes(&mut notes, of_block.iter().map(ToString::to_string).collect());
        }
        assert_eq!(notes, [fallen, usual, "1"], "each once");
        (0..100).for_each(|at| add_notes(&mut notes, vec![format!("note {at}")]));
        assert_eq!(notes.len(), NOTES_MAX, "as many as fit");
        assert_eq!(notes.last().map(String::as_str), Some("note 4"));
    }
}
