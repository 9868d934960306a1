//! `punctual measure accuracy`: how exactly a wait ends at an instant of the processor's counter.
//! Its arguments, and what is shown of a result.
//!
//! Maruti's experiment: polling loops of known code, targets that sweep all offsets.

use std::path::Path;

use anyhow::Result;
use punctual::RtThread;
use punctual_analysis::plot::extent;
use punctual_document::{Block, Figure, Section, Table, numbers, words};
use punctual_lab::accuracy::{AccuracyExperiment, AccuracyOutcome, AccuracyRow};
use punctual_papers::maruti;
use punctual_plot::axis::Axis;
use punctual_plot::chart::{BandPoint, Chart, ChartSeries, Mark, QuantileBox};
use punctual_report::measured::AccuracyBody;

use super::timer;
use crate::args::{RequestedPolicyArgs, RootArgs};
use crate::experiment::Machine;
use crate::measuring::{CpuArgs, MeasuredBody, Measuring, Outcome, Planned};
use crate::output::OutputArgs;
use crate::view::plots::boxes::{BoxSeries, Boxes};
use crate::view::plots::{ONE_OF_TWO, beside};
use crate::{format, parse};

/// `punctual measure accuracy`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    cpu: CpuArgs,
    /// How long to measure, in all; the ways to wait take turns, and each is swept at least once
    #[arg(
        long,
        short,
        default_value = "10s",
        allow_hyphen_values = true,
        value_parser = parse::duration
    )]
    duration: parse::Duration,
    #[command(flatten)]
    policy: RequestedPolicyArgs,
    #[command(flatten)]
    root: RootArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Measuring for Args {
    const NAME: &'static str = "measure accuracy";
    const HAS_PROGRESS: bool = false;
    type Experiment = AccuracyExperiment;

    fn output(&self) -> &OutputArgs {
        &self.output
    }

    fn captured(&self) -> Option<&Path> {
        self.root.path()
    }

    fn plan(&self, machine: &Machine) -> Result<Planned<AccuracyExperiment>> {
        let (cpu, choice) = self.cpu.choose(machine, "accuracy is measured")?;
        let thread = RtThread::cpu(cpu).with_policy(self.policy.policy());
        let rivals = maruti::RIVALS.to_vec();
        let experiment = AccuracyExperiment { thread, duration: self.duration.0, rivals };
        Ok(Planned { experiment, choice })
    }

    fn body(&self, outcome: Outcome<'_, AccuracyExperiment>) -> MeasuredBody {
        MeasuredBody::of(AccuracyBody { accuracy: outcome.figures })
    }
}

/// The errors of each exit, and how they were measured.
pub(super) fn shown(body: &AccuracyBody) -> Section {
    let outcome = &body.accuracy;
    let chart = compared(outcome).map(|chart| Figure::still("accuracy-1".to_owned(), chart));
    let mut parts: Vec<Block> = chart.into_iter().collect();
    parts.extend(over_offset(outcome));
    parts.push(errors(outcome));
    parts.extend(own_step(outcome).map(Block::words));
    parts.push(Block::words(about(outcome)));
    Section { id: "accuracy", heading: "How exactly a wait ends", blocks: parts }
}

/// The key to boxes of errors.
const ERRORS: &str = "box: 5 to 95 %, thick line: median, thin line: from the least, dot: the \
                      largest of those that nothing interrupted";

/// The errors of all exits below each other.
fn compared(outcome: &AccuracyOutcome) -> Option<Chart> {
    let own = |row: &AccuracyRow| QuantileBox {
        place: 0.0,
        half: 0.0,
        line: (row.min_ticks, row.p95_ticks),
        body: (row.p5_ticks, row.p95_ticks),
        middle: row.p50_ticks,
        far: (row.max_ticks > row.p95_ticks).then_some(row.max_ticks),
    };
    let boxes = outcome.rows.iter().map(own).enumerate().collect();
    let sentences = |row: &AccuracyRow| {
        let [low, middle, high] = [row.p5_ticks, row.p50_ticks, row.p95_ticks].map(format::whole);
        format!("{}: {} exits, {low} to {high}, median {middle}", row.name(), format::count(row.n))
    };
    let sentences: Vec<String> = outcome.rows.iter().map(sentences).collect();
    Boxes {
        title: "Error of each exit".to_owned(),
        description: format!("Ticks after the target, 5 to 95 %. {}.", sentences.join("; ")),
        reading: ERRORS,
        quantity: "error, ticks of the counter",
        is_log: false,
        words: format::whole,
        names: outcome.rows.iter().map(AccuracyRow::name).collect(),
        series: vec![BoxSeries { name: "error".to_owned(), boxes }],
        bound: None,
    }
    .chart()
}

/// Exits whose loop is warm and begins a cache line, or is where the compiler places it: the error
/// over the offset, all on one scale.
fn over_offset(outcome: &AccuracyOutcome) -> Option<Block> {
    let is_drawn = |row: &&AccuracyRow| {
        row.cache == "warm" && row.lead_ticks > 0.0 && row.code.as_deref() != Some("split")
    };
    let rows: Vec<&AccuracyRow> = outcome.rows.iter().filter(is_drawn).collect();
    let errors = rows.iter().flat_map(|row| [&row.curve, &row.p5_curve, &row.p95_curve]);
    let errors = errors.flatten().flatten().copied();
    let shared = extent(errors, false)?;
    let figure = |(at, row): (usize, &&AccuracyRow)| {
        let chart = offsets(row, (shared.low, shared.high));
        (format!("accuracy-{}", at + 2), chart)
    };
    beside(rows.iter().enumerate().map(figure).collect())
}

/// The error of an exit at each offset: the median of all sweeps in a band of 5 to 95 %.
fn offsets(row: &AccuracyRow, (low, high): (f64, f64)) -> Chart {
    let at = |errors: &[Option<f64>], offset: usize| errors.get(offset).copied().flatten();
    let band = (0..row.curve.len()).map(|offset| {
        let middle = at(&row.curve, offset)?;
        let ends = [at(&row.p5_curve, offset), at(&row.p95_curve, offset)];
        let [low, high] = ends.map(|end| end.unwrap_or(middle));
        Some(BandPoint { x: row.at_ticks(offset), low, middle, high })
    });
    let last = row.at_ticks(row.curve.len().saturating_sub(1));
    let repeats = row.period.map_or_else(
        || "no period stands out".to_owned(),
        |period| format!("repeats every {:.1} ticks", period.ticks),
    );
    let name = row.name();
    Chart {
        title: format!("Error over the offset: {name}"),
        titled: false,
        description: format!(
            "{name}: median error of {} sweeps at each of {} offsets, in a band of 5 to 95 %; all \
             of them from {} to {} ticks; {repeats}.",
            format::count(row.sweeps),
            row.curve.len(),
            format::whole(row.p5_ticks),
            format::whole(row.p95_ticks),
        ),
        size: ONE_OF_TWO,
        x: Axis::even("offset of the target, ticks", row.lead_ticks, last, 5, format::whole),
        y: Axis::even("error, ticks", low, high, 6, format::whole),
        series: vec![ChartSeries { name, ink: 0, marks: vec![Mark::Band(band.collect())] }],
        notes: vec!["line: median at the offset, band: 5 to 95 %".to_owned()],
    }
}

fn errors(outcome: &AccuracyOutcome) -> Block {
    let heads = [
        words("exit"),
        numbers("best"),
        numbers("median"),
        numbers("95 %"),
        numbers("period"),
        numbers("poll"),
        numbers("ns"),
        numbers("5-95 %"),
        numbers("cut"),
    ];
    let tenths = |value: f64| format!("{value:.1}");
    let row = |row: &AccuracyRow| {
        let mut cells = vec![row.name()];
        cells.extend([row.min_ticks, row.p50_ticks, row.p95_ticks].map(format::whole));
        cells.push(row.period.map_or_else(|| "-".to_owned(), |period| tenths(period.ticks)));
        cells.push(row.poll_ticks.map_or_else(|| "-".to_owned(), tenths));
        cells.push(tenths(row.p50_ticks * outcome.tick_ns));
        cells.push(tenths((row.p95_ticks - row.p5_ticks) * outcome.tick_ns));
        cells.push(format::count(row.interrupted));
        cells
    };
    let caption = "Error of the exit (stamp after it minus target), in ticks: best, median, 95 %, \
                   its period over the offset; ticks per poll; in ns: median, 5 to 95 %";
    Table::new(caption, heads, outcome.rows.iter().map(row).collect()).folded().into()
}

/// The step of a coarse counter, and the loops that repeat with it and not with their polls.
fn own_step(outcome: &AccuracyOutcome) -> Option<String> {
    let step = outcome.counter_step()?;
    let is_hidden = |row: &&AccuracyRow| row.poll_ticks.is_some() && !row.shows_polls(step);
    let hidden: Vec<String> =
        outcome.rows.iter().filter(is_hidden).map(AccuracyRow::name).collect();
    (!hidden.is_empty()).then(|| {
        format!(
            "this counter advances in steps of {step:.1} ticks, which hide the period of loops \
             whose polls are shorter than two of them: {}",
            hidden.join(", ")
        )
    })
}

fn about(outcome: &AccuracyOutcome) -> String {
    let n: u64 = outcome.rows.iter().map(|row| row.n).sum();
    let worst = outcome.rows.iter().filter_map(|row| row.interrupted_worst_ns).fold(0.0, f64::max);
    // Those of results of before are not known.
    let sweeps = match outcome.rows.iter().map(|row| row.sweeps).max().unwrap_or(0) {
        0 => String::new(),
        sweeps => format!(" in up to {} sweeps each", format::count(sweeps)),
    };
    let counters = match &outcome.no_counters {
        Some(why) => format!("; {why}"),
        None => {
            let rows = outcome.rows.iter();
            let each =
                timer::for_each(rows.map(|row| (row.n + row.interrupted, &row.counters[..])));
            each.map_or_else(String::new, |each| format!("; of the CPU for each exit: {each}"))
        }
    };
    format!(
        "{} exits{sweeps}; a tick is {:.3} ns; {} offsets a tick apart, farther of cold polls; \
         cut: exits that were interrupted (later than {}), worst {}; \"at once\" and \
         cold: the first targets are due at the entry{counters}",
        format::count(n),
        outcome.tick_ns,
        outcome.rows.first().map_or(0, |row| row.offsets),
        format::period(outcome.interrupted_from_ns),
        format::ns(Some(worst)),
    )
}

#[cfg(test)]
mod tests {
    use punctual_lab::processor::ProcessorCount;
    use punctual_report::measured::Measured;
    use punctual_report::{Body, Report};

    use super::*;

    #[test]
    fn what_the_processor_counted_is_said_for_each_exit_or_why_it_was_not() {
        let text = include_str!("../../../tests/results/kinds/accuracy.json");
        let report = Report::parse(text).expect("a result");
        let Body::Measured(Measured::Accuracy(mut body)) = report.body else { panic!("of exits") };
        assert!(about(&body.accuracy).ends_with("due at the entry"), "a result of before");
        body.accuracy.no_counters = Some("none here".to_owned());
        assert!(about(&body.accuracy).ends_with("; none here"));
        body.accuracy.no_counters = None;
        let row = &mut body.accuracy.rows[0];
        let count = (row.n + row.interrupted) as f64 * 3.0;
        row.counters = vec![ProcessorCount { event: "cache-misses".to_owned(), count }];
        let said = "; of the CPU for each exit: 3.00 cache-misses";
        assert!(about(&body.accuracy).ends_with(said), "{}", about(&body.accuracy));
    }
}
