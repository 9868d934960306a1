//! `punctual measure executive`: what the executive's table costs, compared with the ways of
//! others. Its arguments, and what is shown of a result.
//!
//! One thread on one CPU; the designs take turns in short blocks. Reports also what a turn of the
//! loop adds to the bare wait.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use punctual::RtThread;
use punctual_analysis::interval::Interval;
use punctual_core::time::Span;
use punctual_document::{Block, Column, Frame, Section, Table, numbers, words};
use punctual_lab::executive::{DesignName, ExecutiveExperiment, ExecutiveRow, LoopOverhead, Ratio};
use punctual_papers::ant;
use punctual_plot::axis::Axis;
use punctual_plot::chart::{BandPoint, Chart, ChartSeries, Mark, NamedPoint};
use punctual_report::measured::ExecutiveBody;

use crate::args::{RequestedPolicyArgs, RootArgs};
use crate::experiment::Machine;
use crate::measuring::{CpuArgs, MeasuredBody, Measuring, Outcome, Planned};
use crate::output::OutputArgs;
use crate::view::plots::{self, ONE_OF_TWO};
use crate::{format, parse};

/// `punctual measure executive`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    cpu: CpuArgs,
    /// How long to measure, in all; each number of tasks has an equal share of it, with warm and
    /// with cold caches. At least three blocks of each design are measured: about 10 s with all
    /// numbers of tasks; where that takes twice this time or longer, the result has a warning
    #[arg(
        long,
        short,
        default_value = "30s",
        allow_hyphen_values = true,
        value_parser = parse::duration
    )]
    duration: parse::Duration,
    /// The numbers of tasks, all due at once, separated by commas: up to 100000 each
    #[arg(
        long,
        value_name = "N,…",
        value_delimiter = ',',
        default_value = "1,10,50,100,1000,10000,100000",
        value_parser = clap::value_parser!(u32).range(1..=100_000)
    )]
    tasks: Vec<u32>,
    #[command(flatten)]
    policy: RequestedPolicyArgs,
    #[command(flatten)]
    root: RootArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// The warning that the least number of blocks took twice `wanted` or longer; `None` where it did
/// not.
fn took_longer(wanted: Span, took: Duration) -> Option<String> {
    let wanted_ns = wanted.as_ns().max(0).unsigned_abs();
    (took.as_nanos() >= 2 * u128::from(wanted_ns)).then(|| {
        format!(
            "measured for {}, not for the {} of --duration: each design has at least three blocks \
             with each number of tasks; fewer --tasks take less time",
            format::long(took.as_nanos() as f64),
            format::period(wanted_ns),
        )
    })
}

impl Measuring for Args {
    const NAME: &'static str = "measure executive";
    const HAS_PROGRESS: bool = false;
    type Experiment = ExecutiveExperiment;

    fn output(&self) -> &OutputArgs {
        &self.output
    }

    fn captured(&self) -> Option<&Path> {
        self.root.path()
    }

    fn plan(&self, machine: &Machine) -> Result<Planned<ExecutiveExperiment>> {
        let (cpu, choice) = self.cpu.choose(machine, "the executive is measured")?;
        let experiment = ExecutiveExperiment {
            thread: RtThread::cpu(cpu).with_policy(self.policy.policy()),
            sizes: self.tasks.clone(),
            duration: self.duration.0,
            rivals: ant::RIVALS.to_vec(),
        };
        Ok(Planned { experiment, choice })
    }

    fn body(&self, outcome: Outcome<'_, ExecutiveExperiment>) -> MeasuredBody {
        let warnings = took_longer(self.duration.0, outcome.took).into_iter().collect();
        let figures = outcome.figures;
        let body = ExecutiveBody { rows: figures.rows, ratios: figures.ratios, turn: figures.turn };
        MeasuredBody { warnings, ..MeasuredBody::of(body) }
    }
}

/// For a page: what each design costs, how they compare, and what a turn of the loop costs.
pub(super) fn shown(body: &ExecutiveBody) -> Section {
    let mut blocks = charts(body);
    blocks.push(costs(body).into());
    if !body.ratios.is_empty() {
        blocks.push(compared(body).into());
    }
    blocks.extend(body.turn.as_ref().map(|turn| Block::words(overhead(turn))));
    Section { id: "executive", heading: "What an executive costs", blocks }
}

/// A part of a cycle that is drawn over the number of tasks.
struct Part {
    title: &'static str,
    cost: fn(&ExecutiveRow) -> f64,
    interval: fn(&ExecutiveRow) -> Option<Interval>,
}

const PARTS: [Part; 3] = [
    Part {
        title: "release of all tasks",
        cost: |row| row.release_ns,
        interval: |row| row.release_interval_ns,
    },
    Part {
        title: "wait of the last task",
        cost: |row| row.wait_ns,
        interval: |row| row.wait_interval_ns,
    },
    Part { title: "whole cycle", cost: |row| row.cycle_ns, interval: |row| row.cycle_interval_ns },
];

/// Charts of the cost of each part over the number of tasks, warm beside cold, all on one scale.
fn charts(body: &ExecutiveBody) -> Vec<Block> {
    let costs = body.rows.iter().flat_map(|row| PARTS.iter().map(|part| (part.cost)(row)));
    let costs: Vec<f64> = costs.filter(|ns| ns.is_finite() && *ns > 0.0).collect();
    let Some(low) = costs.iter().copied().reduce(f64::min) else { return Vec::new() };
    let high = costs.into_iter().fold(low, f64::max);
    let row = |(at, part): (usize, &Part)| {
        let sides = [false, true].into_iter().enumerate();
        let figures = sides.filter_map(|(column, cold)| {
            let chart = part.chart(body, cold, (low, high))?;
            Some((format!("executive-{}-{}", at + 1, column + 1), chart))
        });
        plots::beside(figures.collect())
    };
    PARTS.iter().enumerate().filter_map(row).collect()
}

/// There is no half a task.
fn whole(tasks: f64) -> String {
    if tasks < 1.0 || tasks.fract() > 0.0 { String::new() } else { plots::count(tasks) }
}

impl Part {
    /// Its cost in one state of the caches, a line for each design; `None` where there is none.
    fn chart(&self, body: &ExecutiveBody, cold: bool, (low, high): (f64, f64)) -> Option<Chart> {
        let rows: Vec<&ExecutiveRow> = body.rows.iter().filter(|row| row.cold == cold).collect();
        let sizes = || rows.iter().map(|row| row.n as f64);
        let (least, most) = (sizes().reduce(f64::min)?, sizes().reduce(f64::max)?);
        let mut designs: Vec<DesignName> = Vec::new();
        for row in &rows {
            if !designs.contains(&row.design) {
                designs.push(row.design);
            }
        }
        let series = |(ink, design): (usize, &DesignName)| {
            let mut own: Vec<&&ExecutiveRow> =
                rows.iter().filter(|row| row.design == *design).collect();
            own.sort_by_key(|row| row.n);
            let band = |row: &&&ExecutiveRow| {
                let cost = (self.cost)(row);
                let interval = (self.interval)(row);
                let (low, high) = interval.map_or((cost, cost), |ends| {
                    (ends.low.unwrap_or(cost), ends.high.unwrap_or(cost))
                });
                Some(BandPoint { x: row.n as f64, low, middle: cost, high })
            };
            let points = own.iter().map(|row| NamedPoint {
                x: row.n as f64,
                y: (self.cost)(row),
                name: String::new(),
            });
            let marks =
                vec![Mark::Band(own.iter().map(band).collect()), Mark::Points(points.collect())];
            ChartSeries { name: design.to_string(), ink, marks }
        };
        let largest = rows.iter().filter(|row| row.n as f64 == most);
        let sentences: Vec<String> = largest
            .map(|row| format!("{} {}", row.design, format::ns(Some((self.cost)(row)))))
            .collect();
        let caches = if cold { "cold caches" } else { "warm caches" };
        Some(Chart {
            title: format!("Cost of the {}, {caches}", self.title),
            titled: false,
            description: format!(
                "Median with {} task{}, two stamps included: {}.",
                format::count(most as u64),
                if most == 1.0 { "" } else { "s" },
                sentences.join(", ")
            ),
            size: ONE_OF_TWO,
            x: Axis::log("tasks, all due at once (log)", least * 0.8, most * 1.25, whole),
            y: Axis::log("cost (log)", low * 0.7, high * 1.4, plots::ns),
            series: designs.iter().enumerate().map(series).collect(),
            notes: vec!["line: median, band: its interval over blocks".to_owned()],
        })
    }
}

/// For a terminal, which has a table for each number of tasks, warm and cold.
pub(crate) fn document(body: &ExecutiveBody) -> Vec<Block> {
    let mut costs = costs(body);
    for rows in body.rows.chunk_by(|a, b| (a.n, a.cold) == (b.n, b.cold)) {
        let heads = brief_heads(&rows[0]);
        costs = costs.brief(Frame::Titled, heads, rows.iter().map(brief_cells).collect());
    }
    let mut blocks = vec![costs.into()];
    if !body.ratios.is_empty() {
        let title = "time relative to punctual, warm: as measured, and less the floor";
        let columns = [words("").at_least(36), numbers("").at_least(6), numbers("").at_least(7)];
        let indented = |ratio: &Ratio| {
            let mut cells = ratio_cells(ratio);
            cells[0].insert_str(0, "  ");
            cells
        };
        let rows = body.ratios.iter().map(indented).collect();
        blocks.extend([Block::Break, Block::words_at(1, title)]);
        blocks.push(compared(body).brief(Frame::Headless, columns, rows).into());
    }
    if let Some(turn) = &body.turn {
        blocks.extend([Block::Break, Block::words_at(1, overhead(turn))]);
    }
    blocks
}

fn costs(body: &ExecutiveBody) -> Table {
    let columns = [
        words("design"),
        numbers("tasks"),
        words("caches"),
        numbers("release"),
        numbers("dispatch"),
        numbers("wait"),
        numbers("cycle"),
        numbers("floor"),
        numbers("n"),
    ];
    Table::new("What each design costs", columns, body.rows.iter().map(cells).collect())
}

fn compared(body: &ExecutiveBody) -> Table {
    let columns =
        [words("time relative to punctual"), numbers("as measured"), numbers("less the floor")];
    Table::new("The designs compared", columns, body.ratios.iter().map(ratio_cells).collect())
}

fn caches(row: &ExecutiveRow) -> &'static str {
    if row.cold { "cold" } else { "warm" }
}

fn times(row: &ExecutiveRow) -> [String; 4] {
    [row.release_ns, row.dispatch_ns, row.wait_ns, row.cycle_ns].map(|ns| format::ns(Some(ns)))
}

fn cells(row: &ExecutiveRow) -> Vec<String> {
    let mut cells =
        vec![row.design.to_string(), format::count(row.n as u64), caches(row).to_owned()];
    cells.extend(times(row));
    cells.push(format::ns(Some(row.floor_ns)));
    cells.push(format::count(row.cycles as u64));
    cells
}

/// The heads of a table of one number of tasks: it and the floor stand in them.
fn brief_heads(row: &ExecutiveRow) -> Vec<Column> {
    let tasks = if row.n == 1 { "task" } else { "tasks" };
    let name = format!("{} {tasks}, {}", format::count(row.n as u64), caches(row));
    let mut heads = vec![words(&name).at_least(22)];
    let widths = [("release", 8), ("dispatch", 9), ("wait", 9), ("cycle", 9)];
    heads.extend(widths.map(|(head, width)| numbers(head).at_least(width)));
    heads.push(numbers(&format!("({})", format::ns(Some(row.floor_ns)))).at_least(8));
    heads
}

fn brief_cells(row: &ExecutiveRow) -> Vec<String> {
    let mut cells = vec![format!("  {}", row.design)];
    cells.extend(times(row));
    cells.push(format!("n {}", format::count(row.cycles as u64)));
    cells
}

/// The cost and design that a ratio is of.
fn ratio_name(ratio: &Ratio) -> String {
    match ratio.design {
        DesignName::Punctual => format!(
            "{} of {} against {}",
            ratio.what,
            format::count(ratio.n as u64),
            format::count(ratio.n_punctual as u64)
        ),
        design => format!("{} of {}, {design}", ratio.what, format::count(ratio.n as u64)),
    }
}

fn ratio_cells(ratio: &Ratio) -> Vec<String> {
    vec![
        ratio_name(ratio),
        format::rate(ratio.raw),
        ratio.less_floor.map_or_else(|| "-".to_owned(), format::rate),
    ]
}

/// The cost of a turn of the loop, in a sentence.
fn overhead(turn: &LoopOverhead) -> String {
    format!(
        "loop overhead with one task and adaptive wait, {}: adds {} to the bare wait ({} instead \
         of {}, median of {} cycles)",
        format::period(turn.period_ns),
        format::ns(Some(turn.adds_ns)),
        format::ns(Some(turn.executive_ns)),
        format::ns(Some(turn.bare_ns)),
        format::count(turn.cycles as u64),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measurement_of_twice_the_wanted_time_has_a_warning_with_both() {
        let took_longer = |took| took_longer(Span::from_ms(600), Duration::from_millis(took));
        assert_eq!((took_longer(500), took_longer(1_199)), (None, None));
        let warning = took_longer(8_123).expect("much longer");
        assert!(warning.contains("for 8.1 s, not for the 600 ms of --duration"), "{warning}");
        assert!(took_longer(1_200).is_some());
    }

    #[test]
    fn a_result_names_designs_as_the_terminal_does() {
        let designs = [
            DesignName::Punctual,
            DesignName::ArtLinux,
            DesignName::Ant,
            DesignName::Heap,
            DesignName::Wheel,
        ];
        for design in designs {
            assert_eq!(serde_json::to_value(design).expect("a name"), design.to_string());
        }
    }
}
