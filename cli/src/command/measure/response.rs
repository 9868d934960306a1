//! `punctual measure response`: how fast threads answer a stimulus. Its arguments, and what
//! is shown of a result.
//!
//! The full loop of the Windows CE benchmark, with the sources that this machine has.

use std::path::Path;

use anyhow::{Result, bail};
use punctual_document::{Block, Section, Table, numbers, words};
use punctual_lab::load::Loads;
use punctual_lab::response::{
    ResponseExperiment, ResponseOutcome, ResponseRow, SOURCES, STIMULI_MAX, SourceName, StageRow,
};
use punctual_papers::figure::averaged;
use punctual_report::measured::ResponseBody;
use punctual_report::reproduced::PaperFigure;

use crate::args::RootArgs;
use crate::experiment::{self, Machine};
use crate::measuring::{
    MeasuredBody, Measuring, Outcome, Planned, StageArgs, lost_source, stimulus_cpu, with_idle,
};
use crate::output::OutputArgs;
use crate::view::kinds::head::rate_line;
use crate::{format, papers, parse};

/// The shortest period: threads that answer more often would leave their CPU no rest.
const PERIOD_MIN_NS: u64 = 20_000;

/// `punctual measure response`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[arg(long, default_value_t, help = help())]
    source: SourceName,
    /// The CPU of both stages [default: an isolated one, else the last that is allowed]
    #[arg(long, short, value_name = "CPU")]
    cpu: Option<String>,
    /// The CPU that raises stimuli [default: another core]
    #[arg(long, value_name = "CPU")]
    stimulus_cpu: Option<String>,
    /// From one stimulus to the next, 20us or more
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
    stages: StageArgs,
    /// Loads to run after the idle measurement, as for 'measure periodic'
    #[arg(long, default_value = "none", value_parser = parse::loads)]
    load: Loads,
    #[command(flatten)]
    root: RootArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// The help of `--source`.
fn help() -> String {
    let sources: Vec<String> =
        SOURCES.iter().map(|row| format!("'{}': {}", row.form(), row.help)).collect();
    format!("What raises stimuli; {}", sources.join("; "))
}

/// The reason why a condition has no stage 0 though its source has one.
fn left_out(row: &ResponseRow) -> Option<String> {
    let why = row.kernel_left_out.as_ref()?;
    Some(format!("{}: stage 0 is left out: {why}", row.condition))
}

impl Measuring for Args {
    const NAME: &'static str = "measure response";
    type Experiment = ResponseExperiment;

    fn output(&self) -> &OutputArgs {
        &self.output
    }

    fn captured(&self) -> Option<&Path> {
        self.root.path()
    }

    fn plan(&self, machine: &Machine) -> Result<Planned<ResponseExperiment>> {
        let facts = &machine.measuring;
        let (cpu, choice) = experiment::one_cpu(self.cpu.as_deref(), facts, "both stages run")?;
        let stimulus_cpu = stimulus_cpu(self.stimulus_cpu.as_deref(), cpu, facts)?;
        let period = self.period.period()?;
        if period.as_ns() < PERIOD_MIN_NS {
            let got = format::period(period.as_ns());
            bail!("--period {got}: it must be at least {}", format::period(PERIOD_MIN_NS));
        }
        let experiment = ResponseExperiment {
            source: self.source.clone(),
            cpu,
            stimulus_cpu,
            period,
            duration: self.duration.0,
            first: self.stages.first(),
            second: self.stages.second(),
            competitor: self.stages.competitor(),
            conditions: with_idle(&self.load),
        };
        if experiment.stimuli() > STIMULI_MAX {
            bail!(
                "--duration and --period give {} stimuli for each condition; at most {} are kept",
                format::count(experiment.stimuli()),
                format::count(STIMULI_MAX)
            );
        }
        Ok(Planned { experiment, choice })
    }

    fn body(&self, outcome: Outcome<'_, ResponseExperiment>) -> MeasuredBody {
        let loads = outcome.load_rows();
        let rows = &outcome.figures.rows;
        let warnings = rows.iter().filter_map(left_out).collect();
        let trouble = rows.iter().any(|row| row.lost.is_some()).then(lost_source);
        MeasuredBody {
            warnings,
            trouble,
            ..MeasuredBody::of(ResponseBody { response: outcome.figures, loads })
        }
    }
}

/// A generator whose usual delay exceeds this share of the period limits the result.
const LIMITED: f64 = 0.1;

/// Start and completion of both stages, the floor, and what limits the result.
pub(super) fn shown(body: &ResponseBody) -> Section {
    let outcome = &body.response;
    let mut parts = vec![starts(outcome), completions(outcome), Block::words(floor(outcome))];
    parts.extend(outcome.rows.iter().filter_map(kernel).map(Block::words));
    parts.extend(competitors(&outcome.rows).into_iter().map(Block::words));
    parts.extend(
        outcome.rows.iter().filter_map(|row| limited(row, outcome.period_ns)).map(Block::words),
    );
    parts.extend(body.loads.iter().map(|load| Block::words(rate_line(load))));
    parts.push(Block::words(about(outcome)));
    Section { id: "response", heading: "Answers to a stimulus", blocks: parts }
}

/// Averaged traces: a figure for each condition.
pub(crate) fn traces(body: &ResponseBody) -> Vec<PaperFigure> {
    let figure = |(at, row): (usize, &ResponseRow)| {
        let title = format!("averaged traces, {}", format::plain(&row.condition));
        let stages = row.stages.iter().map(|stage| (format!("stage {}", stage.stage), stage));
        papers::figure(averaged(&format!("response.{}", at + 1), &title, stages))
    };
    body.response.rows.iter().enumerate().map(figure).collect()
}

/// `idle, 1`.
fn name(row: &ResponseRow, stage: &StageRow) -> String {
    format!("{}, {}", format::plain(&row.condition), stage.stage)
}

/// `stage 1 (FIFO 90) and stage 2 (RR 70)`: the same in each condition.
fn stages(outcome: &ResponseOutcome) -> String {
    let stages = outcome.rows.first().map_or(&[][..], |row| &row.stages);
    let scheduled = |stage: &StageRow| {
        let policy = stage.policy.trim_start_matches("SCHED_");
        let priority = stage.priority.map_or_else(String::new, |priority| format!(" {priority}"));
        format!("stage {} ({policy}{priority})", stage.stage)
    };
    stages.iter().map(scheduled).collect::<Vec<_>>().join(" and ")
}

fn rows(outcome: &ResponseOutcome, cells: impl Fn(&StageRow) -> Vec<String>) -> Vec<Vec<String>> {
    let row = |row: &ResponseRow| -> Vec<Vec<String>> {
        let stage = |stage| [vec![name(row, stage)], cells(stage)].concat();
        row.stages.iter().map(stage).collect()
    };
    outcome.rows.iter().flat_map(row).collect()
}

fn starts(outcome: &ResponseOutcome) -> Block {
    let heads = [
        words("condition, stage"),
        numbers("min"),
        numbers("mean"),
        numbers("median"),
        numbers("1 in 1000"),
        numbers("worst"),
        numbers("range"),
        numbers("n"),
    ];
    let cells = |stage: &StageRow| {
        let ns = &stage.start_ns;
        let times = [ns.min, ns.mean, ns.p50, ns.p99_9, ns.max, stage.response_range_ns];
        let mut cells: Vec<String> = times.map(format::ns).into();
        cells.push(format::count(stage.answered));
        cells
    };
    let caption = format!("From the stimulus to the start of {}", stages(outcome));
    Table::new(&caption, heads, rows(outcome, cells)).into()
}

fn completions(outcome: &ResponseOutcome) -> Block {
    let heads = [
        words("condition, stage"),
        numbers("median"),
        numbers("1 in 1000"),
        numbers("worst"),
        numbers("served"),
        numbers("skipped"),
    ];
    let cells = |stage: &StageRow| {
        let ns = &stage.complete_ns;
        let mut cells: Vec<String> = [ns.p50, ns.p99_9, ns.max].map(format::ns).into();
        let counts = [stage.served, stage.skipped];
        cells.extend(counts.map(format::count));
        cells
    };
    let caption = "To the complete answer; served: before the next stimulus is due; skipped: \
                   no answer; the others came late";
    Table::new(caption, heads, rows(outcome, cells)).into()
}

fn floor(outcome: &ResponseOutcome) -> String {
    let Some(floor) = &outcome.floor else {
        return "no floor was measured: one CPU raises stimuli and answers them".to_owned();
    };
    let bare = floor.half_round_trip_ns.p50;
    let idle = outcome.rows.first().and_then(|row| row.stages.first());
    let ratio = idle.and_then(|stage| stage.start_ns.p50).zip(bare).map(|(own, bare)| own / bare);
    let ratio = ratio.map_or_else(String::new, |ratio| {
        format!("; the start of stage 1 takes {ratio:.2} times that")
    });
    format!(
        "floor: half a round trip of a bare futex ping-pong between both CPUs takes {} (median of \
         {}){ratio}",
        format::ns(bare),
        format::count(floor.n)
    )
}

/// Stage 0, where the kernel stamps events.
fn kernel(row: &ResponseRow) -> Option<String> {
    let ns = row.kernel_ns.as_ref()?;
    let times = [ns.min, ns.p50, ns.p99_9, ns.max].map(format::ns);
    let [min, median, p99_9, max] = times;
    let within = match row.kernel_within_ns {
        0 => String::new(),
        within_ns => format!(
            ", off by {} at most: it was on CLOCK_REALTIME",
            format::ns(Some(within_ns as f64))
        ),
    };
    Some(format!(
        "{}: stage 0, the kernel's own stamp of the event, {min} to {max} after the stimulus \
         (median {median}, 1 in 1000 {p99_9}){within}",
        format::plain(&row.condition)
    ))
}

/// Threads that ran with stage 2's priority, and the time that each had at a stretch; conditions
/// with the same words share a line.
fn competitors(rows: &[ResponseRow]) -> Vec<String> {
    let mut lines: Vec<(Vec<&str>, String)> = Vec::new();
    for row in rows {
        let drew = row.competitor_rate.map(|rate| {
            format!("the competitor drew {} polygons a second", format::count(rate.round() as u64))
        });
        let slice = row.stages.iter().find_map(|stage| stage.slice_ns).map(|ns| {
            format!("an equal has its turn after {} (SCHED_RR)", format::ns(Some(ns as f64)))
        });
        let said = drew.into_iter().chain(slice).collect::<Vec<_>>().join("; ");
        match lines.iter_mut().find(|(_, line)| *line == said) {
            _ if said.is_empty() => {}
            Some((conditions, _)) => conditions.push(&row.condition),
            None => lines.push((vec![&row.condition], said)),
        }
    }
    let line = |(conditions, said): (Vec<&str>, String)| {
        if conditions.len() == rows.len() {
            return said;
        }
        let conditions: Vec<String> = conditions.into_iter().map(format::plain).collect();
        format!("{}: {said}", conditions.join(" | "))
    };
    lines.into_iter().map(line).collect()
}

/// Where the one who raises stimuli is the limit.
fn limited(row: &ResponseRow, period_ns: u64) -> Option<String> {
    let late = row.raised_late_ns.p99.unwrap_or(0.0);
    let slow = late > LIMITED * period_ns as f64;
    (slow || row.not_raised > 0 || row.unexpected > 0 || row.lost.is_some()).then(|| {
        let mut limits = Vec::new();
        if slow {
            limits.push(format!("{} late (1 in 100)", format::ns(Some(late))));
        }
        if row.not_raised > 0 {
            limits.push(format!("{} not raised, late by a period", format::count(row.not_raised)));
        }
        if row.unexpected > 0 {
            let count = format::count(row.unexpected);
            limits.push(format!("{count} events that are none (noise, or another sender)"));
        }
        if let Some(lost) = &row.lost {
            limits.push(format!("source lost: {}", format::plain(lost)));
        }
        let condition = format::plain(&row.condition);
        format!("{condition}: limited by its stimuli: {}", limits.join(", "))
    })
}

fn about(outcome: &ResponseOutcome) -> String {
    let from = match outcome.stimulus_cpu {
        Some(cpu) => format!("raised by CPU {cpu}"),
        None => "raised by the kernel's timer".to_owned(),
    };
    let note = outcome
        .note
        .as_ref()
        .map_or_else(String::new, |note| format!(" ({})", format::plain(note)));
    format!(
        "stimuli by {}{note} every {}, {from}, answered on CPU {}; path: {}; stage 1 is a thread, \
         not an interrupt handler; answers are written to shared memory",
        outcome.source,
        format::period(outcome.period_ns),
        outcome.cpu,
        outcome.path
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_0_that_is_left_out_is_a_warning() {
        let why = Some("CLOCK_REALTIME, which it is on, was set by 1.00 s".to_owned());
        let row =
            ResponseRow { condition: "idle".to_owned(), kernel_left_out: why, ..<_>::default() };
        let warning = left_out(&row).expect("a reason");
        assert!(warning.starts_with("idle: stage 0 is left out: CLOCK_REALTIME"), "{warning}");
        assert_eq!(left_out(&ResponseRow::default()), None);
    }

    #[test]
    fn a_competitor_is_named_with_its_rate_and_the_slice_of_both() {
        let stage = StageRow { slice_ns: Some(100_000_000), ..StageRow::default() };
        let beside = |condition: &str| ResponseRow {
            condition: condition.to_owned(),
            competitor_rate: Some(1_234.4),
            stages: vec![StageRow::default(), stage.clone()],
            ..ResponseRow::default()
        };
        let drew = format!("the competitor drew {} polygons a second", format::count(1_234));
        let said =
            format!("{drew}; an equal has its turn after {} (SCHED_RR)", format::ns(Some(1e8)));
        let rows = [ResponseRow::default(), beside("one"), beside("two")];
        assert_eq!(competitors(&rows[..1]), Vec::<String>::new());
        assert_eq!(competitors(&rows[1..]).join(", "), said);
        assert_eq!(competitors(&rows), [format!("one | two: {said}")]);
    }
}
