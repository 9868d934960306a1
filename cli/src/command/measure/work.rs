//! `punctual measure work`: how long a fixed piece of work takes, idle and under loads. Its
//! arguments, and what is shown of a result.

use std::path::Path;

use anyhow::{Result, bail};
use clap::ValueEnum;
use punctual::RtThread;
use punctual_analysis::summary::SummaryStats;
use punctual_document::{Block, Figure, Section, Table, numbers, words};
use punctual_lab::load::Loads;
use punctual_lab::work::{WORK_SHARE_MAX, WorkExperiment, WorkKind, WorkOutcome, WorkRow};
use punctual_plot::chart::Chart;
use punctual_report::measured::WorkBody;

use crate::args::{RequestedPolicyArgs, RootArgs};
use crate::experiment::Machine;
use crate::measuring::{CpuArgs, MeasuredBody, Measuring, Outcome, Planned, with_idle};
use crate::output::OutputArgs;
use crate::view::kinds::head::rate_line;
use crate::view::plots::boxes::{self, BoxSeries, Boxes};
use crate::{format, parse};

/// `punctual measure work`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// What kind of work
    #[arg(long, value_enum, default_value = "mixed")]
    kind: KindName,
    /// How long the work takes when nothing disturbs it; at most 80 % of the period
    #[arg(
        long,
        default_value = "200us",
        value_name = "TIME",
        allow_hyphen_values = true,
        value_parser = parse::duration
    )]
    work: parse::Duration,
    /// The period
    #[arg(
        long,
        short,
        default_value = "1ms",
        allow_hyphen_values = true,
        value_parser = parse::period
    )]
    period: parse::Duration,
    /// How long to measure each condition: idle, and under each load
    #[arg(
        long,
        short,
        default_value = "10s",
        allow_hyphen_values = true,
        value_parser = parse::duration
    )]
    duration: parse::Duration,
    #[command(flatten)]
    cpu: CpuArgs,
    #[command(flatten)]
    policy: RequestedPolicyArgs,
    /// Loads to run after the idle measurement, as for 'measure periodic'
    #[arg(long, default_value = "none", value_parser = parse::loads)]
    load: Loads,
    #[command(flatten)]
    root: RootArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Kinds of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum KindName {
    /// A chain of multiplications, each of which needs the result of the one before
    Integer,
    /// Loads and stores all over 4 MiB
    Memory,
    /// Both in turn
    Mixed,
}

impl KindName {
    fn kind(self) -> WorkKind {
        match self {
            Self::Integer => WorkKind::Integer,
            Self::Memory => WorkKind::Memory,
            Self::Mixed => WorkKind::Mixed,
        }
    }
}

impl Measuring for Args {
    const NAME: &'static str = "measure work";
    type Experiment = WorkExperiment;

    fn output(&self) -> &OutputArgs {
        &self.output
    }

    fn captured(&self) -> Option<&Path> {
        self.root.path()
    }

    fn plan(&self, machine: &Machine) -> Result<Planned<WorkExperiment>> {
        let (cpu, choice) = self.cpu.choose(machine, "work is measured")?;
        let period = self.period.period()?;
        let share = self.work.0.as_ns() as f64 / period.as_ns() as f64;
        if share > WORK_SHARE_MAX {
            bail!(
                "--work {} takes {} of --period {}; at most {} may be work",
                format::ns(Some(self.work.0.as_ns() as f64)),
                format::share(share),
                format::period(period.as_ns()),
                format::share(WORK_SHARE_MAX),
            );
        }
        let experiment = WorkExperiment {
            thread: RtThread::cpu(cpu).with_policy(self.policy.policy()),
            period,
            kind: self.kind.kind(),
            work: self.work.0,
            duration: self.duration.0,
            conditions: with_idle(&self.load),
        };
        Ok(Planned { experiment, choice })
    }

    fn body(&self, outcome: Outcome<'_, WorkExperiment>) -> MeasuredBody {
        let loads = outcome.load_rows();
        MeasuredBody::of(WorkBody { work: outcome.figures, loads })
    }
}

/// The time of the work, and what is left of each period, by condition.
pub(super) fn shown(body: &WorkBody) -> Section {
    let outcome = &body.work;
    let chart = durations(outcome).map(|chart| Figure::still("work-1".to_owned(), chart));
    let mut parts: Vec<Block> = chart.into_iter().collect();
    parts.extend([times(outcome), usable(outcome)]);
    parts.extend(body.loads.iter().map(|load| Block::words(rate_line(load))));
    parts.push(Block::words(about(outcome)));
    Section { id: "work", heading: "Work in each period", blocks: parts }
}

/// The chart of the work's execution time and response under each condition, beside the period.
fn durations(outcome: &WorkOutcome) -> Option<Chart> {
    let names = outcome.rows.iter().map(|row| format::plain(&row.condition)).collect();
    let series = |name: &str, times: fn(&WorkRow) -> &SummaryStats| {
        let rows = outcome.rows.iter().enumerate();
        let boxes = rows.filter_map(|(at, row)| Some((at, boxes::of_times(times(row))?)));
        BoxSeries { name: name.to_owned(), boxes: boxes.collect() }
    };
    let series = vec![
        series("from the wake to the end of the work", |row| &row.time_ns),
        series("from the release to the end of the work", |row| &row.done_ns),
    ];
    let times = Boxes::of_times("Time of the work in each period", "time (log)", names);
    let bound = Some(("the period", outcome.period_ns as f64));
    Boxes { description: described(outcome), series, bound, ..times }.chart()
}

/// Each condition with its usual and its longest work.
fn described(outcome: &WorkOutcome) -> String {
    let row = |row: &WorkRow| {
        format!(
            "{}: {} cycles, half of them at most {}, the longest {}",
            format::plain(&row.condition),
            format::count(row.n),
            format::ns(row.time_ns.p50),
            format::ns(row.time_ns.max)
        )
    };
    let rows: Vec<String> = outcome.rows.iter().map(row).collect();
    format!("The same {} work. {}.", outcome.kind, rows.join("; "))
}

fn times(outcome: &WorkOutcome) -> Block {
    let heads = [
        words("condition"),
        numbers("least"),
        numbers("median"),
        numbers("1 in 100"),
        numbers("1 in 1000"),
        numbers("worst"),
        numbers("range"),
        numbers("n"),
    ];
    let row = |row: &WorkRow| {
        let ns = &row.time_ns;
        let mut cells = vec![format::plain(&row.condition)];
        cells.extend([ns.min, ns.p50, ns.p99, ns.p99_9, ns.max, row.time_range_ns].map(format::ns));
        cells.push(format::count(row.n));
        cells
    };
    let caption = "Time of the same piece of work, from the wake to its end";
    Table::new(caption, heads, outcome.rows.iter().map(row).collect()).into()
}

fn usable(outcome: &WorkOutcome) -> Block {
    let heads = [
        words("condition"),
        numbers("half"),
        numbers("99 %"),
        numbers("99.9 %"),
        numbers("all"),
        numbers("missed"),
    ];
    let row = |row: &WorkRow| {
        let usable = &row.usable_ns;
        let mut cells = vec![format::plain(&row.condition)];
        let times = [usable.half, usable.p99, usable.p99_9, usable.all];
        cells.extend(times.map(|ns| format::ns(ns.map(|ns| ns.max(0.0)))));
        cells.push(format::count(row.missed));
        cells
    };
    let caption = format!(
        "Usable part of each period of {}, by share of cycles that have it",
        format::period(outcome.period_ns)
    );
    Table::new(caption, heads, outcome.rows.iter().map(row).collect()).into()
}

fn about(outcome: &WorkOutcome) -> String {
    let policy = outcome
        .priority
        .map_or_else(|| outcome.policy.clone(), |at| format!("{} {at}", outcome.policy));
    format!(
        "{} steps of {} work on CPU {}, {policy}: {} undisturbed; usable: the period less \
         lateness and disturbance, 0 where they take all of it",
        format::count(outcome.steps),
        outcome.kind,
        outcome.cpu,
        format::ns(Some(outcome.least_ns as f64)),
    )
}
