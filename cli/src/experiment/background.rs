//! The loads of an experiment, block by block, and the progress line.
//!
//! For the coordinator. Starts this program again for each load; what a load did in several blocks
//! is added up.

use std::time::Duration;

use punctual::core::time::Span;
use punctual_lab::load::{Bounds, LoadReport, LoadSpec, Running};
use punctual_lab::periodic::{Background, Progress};

use super::live::Live;
use crate::command::load;
use crate::progress::Line;

/// A load ends by itself this much after its block, whatever becomes of its parent.
const GRACE: Duration = Duration::from_secs(5);

/// The loads of each condition, and what they did.
pub(crate) struct Loading {
    /// Names of the conditions, for the progress line.
    names: Vec<String>,
    /// By condition.
    specs: Vec<Vec<LoadSpec>>,
    /// What each has done, by condition.
    done: Vec<Vec<Tally>>,
    bounds: Bounds,
    running: Option<Running>,
    line: Line,
    live: Live,
}

/// What one load did in all blocks so far.
#[derive(Clone, Debug)]
struct Tally {
    report: LoadReport,
    rates: f64,
    blocks: u32,
}

impl Loading {
    /// Loads on `bounds`, nothing running yet.
    pub(crate) fn new(
        names: Vec<String>,
        specs: Vec<Vec<LoadSpec>>,
        bounds: Bounds,
        live: Live,
    ) -> Self {
        let done = specs.iter().map(|_| Vec::new()).collect();
        Self { names, specs, done, bounds, running: None, line: Line::new(), live }
    }

    /// What the loads of each condition did: the mean rate over the blocks that said one.
    pub(crate) fn finish(mut self) -> Vec<Vec<LoadReport>> {
        self.line.clear();
        let mean = |tally: &Tally| LoadReport {
            rate: (tally.blocks > 0).then(|| tally.rates / f64::from(tally.blocks)),
            ..tally.report.clone()
        };
        self.done.iter().map(|tallies| tallies.iter().map(mean).collect()).collect()
    }
}

/// Starts each load for a moment: those that start, and why the others do not. For loads that
/// nobody asked for by name, so that a machine without one of them is measured all the same.
pub(crate) fn startable(specs: Vec<LoadSpec>, bounds: &Bounds) -> (Vec<LoadSpec>, Vec<String>) {
    let (mut loads, mut left_out) = (Vec::new(), Vec::new());
    for spec in specs {
        match Running::start(std::slice::from_ref(&spec), &load::launcher(), bounds) {
            Ok(running) => {
                running.stop();
                loads.push(spec);
            }
            Err(why) => left_out.push(format!("left out: {why}")),
        }
    }
    (loads, left_out)
}

impl Background for Loading {
    fn begin(&mut self, condition: usize, length: Span) -> Result<(), String> {
        let specs = &self.specs[condition];
        if specs.is_empty() {
            return Ok(());
        }
        let limit = Duration::from_nanos(length.as_ns().unsigned_abs()) + GRACE;
        let bounds = Bounds { limit, ..self.bounds.clone() };
        let running = Running::start(specs, &load::launcher(), &bounds);
        self.running = Some(running.map_err(|why| why.to_string())?);
        Ok(())
    }

    fn end(&mut self, condition: usize) {
        let Some(running) = self.running.take() else { return };
        let tallies = &mut self.done[condition];
        for report in running.stop() {
            let rate = report.rate;
            let at = tallies
                .iter()
                .position(|t| t.report.name == report.name && t.report.unit == report.unit);
            let at = at.unwrap_or_else(|| {
                tallies.push(Tally { report: report.clone(), rates: 0.0, blocks: 0 });
                tallies.len() - 1
            });
            let tally = &mut tallies[at];
            tally.report.note = report.note.or(tally.report.note.take());
            if let Some(rate) = rate {
                tally.rates += rate;
                tally.blocks += 1;
            }
        }
    }

    fn progress(&mut self, progress: &Progress) {
        let condition = self.names.get(progress.condition).map_or("", String::as_str);
        let conditions = self.names.len();
        let runs = (progress.condition..)
            .step_by(conditions.max(1))
            .take(self.live.runs() / conditions.max(1));
        let standing = self.live.farthest(runs);
        self.line.show(progress, condition, standing.as_ref());
    }
}
