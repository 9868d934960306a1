//! *Sophisticated periodic execution control* (AnT, against ART-Linux).

use anyhow::Result;
use punctual_core::time::Span;
use punctual_engine::wait_policy::WaitKind;
use punctual_lab::executive::{ExecutiveOutcome, ExecutiveRow, RegistrationRow};
use punctual_report::Run;
use punctual_report::reproduced::ReproducedRow;

use super::{Bench, LoopCondition};
use crate::experiment::COLD_CYCLES;

/// The numbers of tasks of figures 9 and 10 that are measured.
const SIZES: [u32; 3] = [1, 50, 100];
/// The periods of figure 3, ms.
const PERIODS_MS: [u64; 5] = [1, 2, 4, 5, 10];
/// The timer's period there, where 1 ms was meant.
const TICK_MS: f64 = 0.996;
/// The mean of the most tasks at a slot, of 100 that choose one of 100 at random (simulated).
const RANDOM_MOST: f64 = 4.3;

/// Its rows.
pub(super) fn rows(bench: &mut Bench<'_>) -> Result<Vec<ReproducedRow>> {
    // 100 releases and what is left out before them.
    let length = Span::from_ms(i64::from(100 + COLD_CYCLES));
    let process = [LoopCondition::idle("process", WaitKind::Sleep)];
    let process = bench.loops(1_000_000, &process, (length, COLD_CYCLES))?;
    let conditions = [LoopCondition::idle("interval", WaitKind::Sleep)];
    let mut intervals = Vec::new();
    for period_ms in PERIODS_MS {
        let length = bench.share(0.08);
        let runs = bench.loops(period_ms * 1_000_000, &conditions, (length, COLD_CYCLES))?;
        intervals.push((period_ms, runs.into_iter().next()));
    }
    let executive = bench.executive(&SIZES, bench.share(0.45))?;
    let registration = bench.registration()?;
    let mut rows = table2(process.first());
    rows.extend(intervals.iter().map(|(period_ms, run)| interval(*period_ms, run.as_ref())));
    rows.push(tick(intervals.first().and_then(|(_, run)| run.as_ref())));
    rows.extend(designs(executive.as_ref()));
    rows.extend(released(&registration));
    let errors = intervals
        .iter()
        .filter_map(|(ms, run)| Some([*ms as f64, drift_ns(run.as_ref()?, *ms)? / 1e3]));
    bench.draw([super::distribution(process.first().map(|run| &run.outcome.histogram))]);
    bench.draw(super::ant(errors.collect(), executive.as_ref(), &registration));
    rows.extend(table3(&registration));
    Ok(rows)
}

/// Table 2 and figure 2: from the timer interrupt to the process.
fn table2(run: Option<&Run>) -> Vec<ReproducedRow> {
    let lateness = run.map(|run| &run.outcome.lateness_ns);
    let us = |ns: Option<f64>| ns.map(|ns| ns / 1e3);
    let new = |key: &str, what: &str, published: &str| {
        let what = format!("timer interrupt to process, {what} of 100");
        ReproducedRow::new(format!("ant.table2.{key}"), &what, "µs", published)
            .note("ART-Linux there; here a wake after its release, the highest priority, 1 ms")
    };
    let variance = run.and_then(|run| run.outcome.jitters.lateness_variance_ns2);
    vec![
        new("max", "maximum", "5.47").measured(us(lateness.and_then(|of| of.max))),
        new("avg", "average", "2.84")
            .measured(us(lateness.and_then(|of| of.mean)))
            .note("100 samples support only p ≤ 3 % for a larger one than the maximum"),
        new("min", "minimum", "2.57").measured(us(lateness.and_then(|of| of.min))),
        ReproducedRow::new("ant.table2.dispersion", "its variance", "µs²", "0.12")
            .measured(variance.map(|ns2| ns2 / 1e6))
            .note(
                "measured for ART-Linux only there: the conclusion that AnT's is smaller was not",
            ),
        ReproducedRow::new("ant.fig2", "its median", "µs", "")
            .measured(us(lateness.and_then(|of| of.p50)))
            .note("a distribution without numbers there; its ends are those of table 2"),
    ]
}

/// Mean interval minus the period, ns: the drift of the fitted grid.
fn drift_ns(run: &Run, period_ms: u64) -> Option<f64> {
    let grid = run.outcome.grid.as_ref()?;
    Some(grid.drift_ppb * 1e-9 * period_ms as f64 * 1e6)
}

/// Figure 3.
fn interval(period_ms: u64, run: Option<&Run>) -> ReproducedRow {
    let published = if period_ms == 1 { "4" } else { "" };
    let what = format!("error of the mean interval, period {period_ms} ms");
    let row = ReproducedRow::new(format!("ant.fig3.{period_ms}ms"), &what, "µs", published)
        .formula((1.0 - TICK_MS) * period_ms as f64 * 1e3)
        .measured(run.and_then(|run| drift_ns(run, period_ms)).map(|ns| ns / 1e3));
    if period_ms == 1 {
        row.note(
            "releases on one clock and judged by another there; here the grid is on \
             CLOCK_MONOTONIC and never adds up",
        )
    } else {
        row.note("a plot without numbers there; the formula is 0.4 % of the period")
    }
}

fn tick(run: Option<&Run>) -> ReproducedRow {
    let measured = run.and_then(|run| drift_ns(run, 1)).map(|ns| 1.0 + ns / 1e6);
    ReproducedRow::new("ant.tick", "timer interval for 1 ms", "ms", "0.996")
        .formula(TICK_MS)
        .measured(measured)
}

/// Figures 9 and 10, and punctual's table as a third curve.
fn designs(of: Option<&ExecutiveOutcome>) -> Vec<ReproducedRow> {
    type Cost = fn(&ExecutiveRow) -> f64;
    let cost = |design: &str, n: u32, value: Cost| {
        let rows = of.map_or(&[][..], |of| &of.rows);
        let found =
            rows.iter().find(|row| row.design == design && row.n == n as usize && !row.cold);
        found.map(|row| value(row) / 1e3)
    };
    let mut rows = Vec::new();
    let figures: [(&str, &str, Cost); 2] = [
        ("fig9", "processing time of release", |row| row.release_ns),
        ("fig10", "processing time of wait", |row| row.wait_ns),
    ];
    for (figure, what, value) in figures {
        for n in SIZES {
            for design in ["art-linux", "ant", "punctual"] {
                let what = format!("{what}, N = {n}, {design}");
                let row = ReproducedRow::new(format!("ant.{figure}.{design}.{n}"), &what, "µs", "");
                let note = match (figure, design) {
                    (_, "punctual") => "not in the paper: a third curve",
                    ("fig9", _) => "a plot without numbers; both designs alike there",
                    _ => "a plot without numbers; constant for AnT, linear for ART-Linux there",
                };
                rows.push(row.measured(cost(design, n, value)).note(note));
            }
        }
    }
    let whole = |design| cost(design, 100, |row| row.cycle_ns);
    let saved = whole("art-linux").zip(whole("ant")).map(|(art, ant)| art - ant);
    rows.push(
        ReproducedRow::new("ant.fig10.saved", "saved by AnT in a cycle of N = 100", "µs", "50")
            .measured(saved)
            .note("until the 100th process runs there; a whole cycle here"),
    );
    rows.push(
        ReproducedRow::new("ant.fig10.share", "the same as a share of 1 ms", "%", "5%")
            .formula(5.0)
            .measured(saved.map(|us| us / 10.0)),
    );
    rows
}

/// Figures 11 and 12: tasks released at a tick.
fn released(rows: &[RegistrationRow]) -> Vec<ReproducedRow> {
    let of = |design: &str| rows.iter().find(|row| row.design == design);
    let new = |id: &str, what: &str, published: &str| {
        ReproducedRow::new(format!("ant.{id}"), what, "tasks", published)
    };
    vec![
        new("fig11.most", "most released at a tick, AnT", "3 or 4")
            .formula(1.0)
            .measured(of("ant").map(|row| row.released_most))
            .note(
                "100 tasks over 100 slots average exactly 1 a tick, and balanced placement gives \
                 1 everywhere: \"3 or 4\" is what random phases give",
            ),
        new("fig11.fewest", "fewest released at a tick, AnT", "3 or 4")
            .formula(1.0)
            .measured(of("ant").map(|row| row.released_fewest))
            .note("as above: not every tick can have 3 or 4"),
        new("fig11.punctual", "most released at a tick, punctual", "")
            .measured(of("punctual").map(|row| row.released_most))
            .note("not in the paper: a third curve, phases one a tick"),
        new("fig12.most", "most released at a tick, ART-Linux", "")
            .formula(RANDOM_MOST)
            .measured(of("art-linux").map(|row| row.released_most))
            .note(
                "a plot without numbers there; delays of 0 to 99 ticks at random, 10 repetitions; \
                 the formula is the mean maximum of uniform phases",
            ),
    ]
}

/// Table 3: what a release costs with 100 tasks of a period of 100 ticks.
fn table3(rows: &[RegistrationRow]) -> Vec<ReproducedRow> {
    let published = [
        ("ant", ["0.95", "1.15", "1.50"]),
        ("art-linux", ["0.43", "0.66", "2.42"]),
        ("punctual", ["", "", ""]),
    ];
    let mut table = Vec::new();
    for (design, cells) in published {
        let of = rows.iter().find(|row| row.design == design);
        for (at, (key, cell)) in ["min", "avg", "max"].into_iter().zip(cells).enumerate() {
            let what = format!("processing time of release, 100 tasks of 100 ms, {design}, {key}");
            let id = format!("ant.table3.{design}.{key}");
            let row = ReproducedRow::new(id, &what, "µs", cell)
                .measured(of.map(|row| row.release_ns[at] / 1e3));
            table.push(match design {
                "punctual" => row.note("not in the paper: a third curve"),
                "ant" if key == "avg" => {
                    row.note("74 % above ART-Linux's there: only the maximum is smaller")
                }
                _ => row,
            });
        }
    }
    table
}
