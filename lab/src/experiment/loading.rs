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
                let report = LoadReport { deaths: Vec::new(), ..report.clone() };
                tallies.push(LoadTally { report, rates: 0.0, blocks: 0 });
                tallies.len() - 1
            });
            let tally = &mut tallies[at];
            tally.report.note = joined(tally.report.note.take(), report.note);
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

/// The parts of a note, and how they are joined where a load has several.
const NOTE_PARTS: &str = "; ";
/// Parts that a note over several blocks has at most.
const NOTE_PARTS_MAX: usize = 8;

/// The notes of earlier blocks and of one more, each part once.
fn joined(earlier: Option<String>, more: Option<String>) -> Option<String> {
    let (Some(earlier), Some(more)) = (&earlier, &more) else { return earlier.or(more) };
    let mut parts: Vec<&str> = Vec::new();
    for part in earlier.split(NOTE_PARTS).chain(more.split(NOTE_PARTS)) {
        if !parts.contains(&part) && parts.len() < NOTE_PARTS_MAX {
            parts.push(part);
        }
    }
    Some(parts.join(NOTE_PARTS))
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
        let note = |text: &str| Some(text.to_owned());
        let (fallen, usual) = ("over loopback: ip link add: failed", "between two namespaces");
        let both = joined(note(fallen), note(usual));
        assert_eq!(both, note(&format!("{fallen}; {usual}")));
        assert_eq!(joined(both.clone(), note(fallen)), both, "each once");
        assert_eq!(joined(None, note(usual)), note(usual));
        assert_eq!(joined(note(usual), None), note(usual));
        assert_eq!(joined(None, None), None);
        let many = (0..100).fold(None, |earlier, at| joined(earlier, note(&format!("note {at}"))));
        assert!(many.is_some_and(|many| many.ends_with("note 7")), "as many as fit");
    }
}
