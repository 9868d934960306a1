//! *Sophisticated periodic execution control* (AnT, against ART-Linux).

mod art_linux;
mod claims;
mod process;
mod registration;
mod six_tables;

use punctual_analysis::histogram::{Histogram, HistogramView};
use punctual_analysis::interval::Interval;
use punctual_analysis::summary::SummaryStats;
use punctual_core::time::Span;
use punctual_engine::wait_policy::WaitKind;
use punctual_lab::executive::{
    DesignName, ExecutiveExperiment, ExecutiveOutcome, ExecutiveRow, Rival,
};

use crate::Reproduction;
use crate::bench::{Bench, COLD_CYCLES, LoopCondition, LoopPhase, LoopSet, MeasuredLoop};
use crate::figure::{Drawing, RangeAt};
use crate::row::PaperRow;
use claims::Evidence;
use process::PAIR_MS;

pub use art_linux::ArtLinux;
pub use process::{
    OverrunExperiment, OverrunRow, Overrunning, ProcessExperiment, ProcessRow, TaskSet,
};
pub use registration::{AtTick, RegistrationExperiment, RegistrationRow};
pub use six_tables::Ant;

/// The designs that are compared; the last is not in the paper.
const DESIGNS: [DesignName; 3] = [DesignName::ArtLinux, DesignName::Ant, DesignName::Punctual];
/// The numbers of tasks of figures 9 and 10 that are measured, and those that have rows.
const SIZES: [u32; 12] = [1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 85, 100];
const SIZES_IN_ROWS: [u32; 3] = [1, 50, 100];
/// The periods of figure 3, ms.
const PERIODS_MS: [u64; 5] = [1, 2, 4, 5, 10];
/// The timer's period there, where 1 ms was meant.
const TICK_MS: f64 = 0.996;

/// The designs of the paper, for `measure executive`.
pub const RIVALS: [Rival; 2] = [ArtLinux::RIVAL, Ant::RIVAL];

/// Its rows and claims.
///
/// # Errors
/// Why it cannot be measured.
pub fn reproduce<B: Bench>(bench: &mut B) -> Result<Reproduction, B::Error> {
    // 100 releases and what is left out before them.
    let length = Span::from_ms(i64::from(100 + COLD_CYCLES));
    let process = one_loop(bench, "process", 1, length, LoopPhase::Zero)?;
    let quiet_process = one_loop(bench, "process quiet", 1, length, LoopPhase::Quiet)?;
    let mut intervals = Vec::new();
    for period_ms in PERIODS_MS {
        let length = bench.share(0.055);
        intervals
            .push((period_ms, one_loop(bench, "interval", period_ms, length, LoopPhase::Zero)?));
    }
    let executive = bench.measure(ExecutiveExperiment {
        thread: bench.thread(),
        sizes: SIZES.to_vec(),
        duration: bench.share(0.2),
        rivals: RIVALS.to_vec(),
    })?;
    let executive = executive.map(|(executive, _)| executive);
    let registration = bench.measure(RegistrationExperiment { thread: bench.thread() })?;
    let registration = registration.map(|(rows, _)| rows).unwrap_or_default();
    let on_timer =
        bench.measure(ProcessExperiment { thread: bench.thread(), duration: bench.share(0.2) })?;
    let on_timer = on_timer.map(|(rows, _)| rows).unwrap_or_default();
    let overruns =
        bench.measure(OverrunExperiment { thread: bench.thread(), duration: bench.share(0.32) })?;
    let overruns = overruns.map(|(rows, _)| rows).unwrap_or_default();
    let mut rows = table2(process.as_ref(), quiet_process.as_ref());
    rows.extend(first_tasks(&on_timer));
    rows.extend(overrun(&overruns));
    rows.extend(intervals.iter().map(|(period_ms, run)| interval(*period_ms, run.as_ref())));
    rows.push(tick(intervals.first().and_then(|(_, run)| run.as_ref())));
    rows.extend(designs(executive.as_ref()));
    rows.extend(released(&registration));
    let errors = intervals
        .iter()
        .filter_map(|(ms, run)| Some([*ms as f64, drift_ns(run.as_ref()?, *ms)?.abs() / 1e3]));
    bench.draw([distribution(process.as_ref().map(|run| &run.figures.histogram))]);
    bench.draw([distributions(&on_timer), intervals_beside(&overruns)]);
    bench.draw(drawn(errors.collect(), executive.as_ref(), &registration));
    rows.extend(table3(&registration));
    let claims = Evidence {
        process: process.as_ref(),
        intervals: &intervals,
        executive: executive.as_ref(),
        registration: &registration,
        on_timer: &on_timer,
        overruns: &overruns,
    }
    .claims();
    Ok(Reproduction { rows, claims })
}

/// A loop that sleeps; `None` where it was not measured.
fn one_loop<B: Bench>(
    bench: &mut B,
    name: &'static str,
    period_ms: u64,
    length: Span,
    phase: LoopPhase,
) -> Result<Option<MeasuredLoop>, B::Error> {
    let runs = bench.loops(&LoopSet {
        period_ns: period_ms * 1_000_000,
        conditions: &[LoopCondition::idle(name, WaitKind::Sleep)],
        length,
        cold: COLD_CYCLES,
        phase,
        keep: 0,
    })?;
    Ok(runs.into_iter().next())
}

/// Table 2 and figure 2: from the timer interrupt to the process.
fn table2(run: Option<&MeasuredLoop>, quiet_run: Option<&MeasuredLoop>) -> Vec<PaperRow> {
    let lateness = run.map(|run| &run.figures.lateness_ns);
    let quiet = |value: fn(&SummaryStats) -> Option<f64>| {
        quiet_run.and_then(|run| value(&run.figures.lateness_ns)).map(|ns| ns / 1e3)
    };
    let away = |key: &str, title: &str, value| {
        let title = format!("timer interrupt to process, {title} of 100, at a quiet phase");
        PaperRow::new(format!("ant.table2.quiet.{key}"), &title, "µs", "")
            .measured(quiet(value))
            .note("the same loop where the kernel's tick does not meet it")
    };
    let us = |ns: Option<f64>| ns.map(|ns| ns / 1e3);
    let new = |key: &str, title: &str, published: &str| {
        let title = format!("timer interrupt to process, {title} of 100");
        PaperRow::new(format!("ant.table2.{key}"), &title, "µs", published).note(
            "ART-Linux there; here a wake after its release, the highest priority, 1 ms, at \
                 phase zero, where the kernel's tick meets it",
        )
    };
    let variance = run.and_then(|run| run.figures.jitters.lateness_variance_ns2);
    vec![
        new("max", "maximum", "5.47").measured(us(lateness.and_then(|lateness| lateness.max))),
        new("avg", "average", "2.84")
            .measured(us(lateness.and_then(|lateness| lateness.mean)))
            .note("100 samples support only p ≤ 3 % for a larger one than the maximum"),
        new("min", "minimum", "2.57").measured(us(lateness.and_then(|lateness| lateness.min))),
        away("max", "maximum", |lateness| lateness.max),
        away("avg", "average", |lateness| lateness.mean),
        away("min", "minimum", |lateness| lateness.min),
        PaperRow::new("ant.table2.dispersion", "its variance", "µs²", "0.12")
            .measured(variance.map(|ns2| ns2 / 1e6))
            .note("measured for ART-Linux only there; each design stands below"),
        PaperRow::new("ant.fig2", "its median", "µs", "")
            .measured(us(lateness.and_then(|lateness| lateness.p50)))
            .note("a distribution without numbers there; its ends are those of table 2"),
    ]
}

/// Problem 4: from the timer to the first task in each design.
fn first_tasks(rows: &[ProcessRow]) -> Vec<PaperRow> {
    let cell = |set: TaskSet, design: DesignName| {
        let row = rows.iter().find(|row| (row.set, row.design) == (set, design));
        let scatter = row.and_then(ProcessRow::scatter);
        let id = format!("ant.table2.{}.{design}", set.id());
        let title = format!("timer to first task, {design}, {}, from 5 to 95 %", set.title());
        let range = scatter.map_or_else(String::new, |scatter| {
            format!("; range {:.1} µs, n {}", scatter.range() / 1e3, scatter.n)
        });
        PaperRow::new(id, &title, "µs", "")
            .measured(scatter.and_then(|scatter| Some(scatter.middle()?.value / 1e3)))
            .note(&format!("not measured there; here on the kernel's timer of 1 ms{range}"))
    };
    let cells = |set| DESIGNS.map(|design| cell(set, design));
    TaskSet::ALL.into_iter().flat_map(cells).collect()
}

/// Problem 3 and figure 4: the interval of a task beside one that overruns.
fn overrun(rows: &[OverrunRow]) -> Vec<PaperRow> {
    let cell = |overrunning: Overrunning| {
        let row = rows.iter().find(|row| row.overrunning == overrunning);
        let scatter = row.and_then(OverrunRow::scatter);
        let id = format!("ant.fig4.{}", overrunning.id());
        let title =
            format!("error of A's interval that 95 % do not exceed, {}", overrunning.title());
        let row = PaperRow::new(id, &title, "µs", "")
            .measured(scatter.and_then(|scatter| Some(scatter.p95?.value / 1e3)))
            .note("drawn and not measured there; here two tasks of 5 ms");
        let row = match overrunning {
            Overrunning::None => row,
            Overrunning::Ended => row.note("B's fifth cycle takes 8 ms"),
            _ => row.note("every fifth cycle of B takes 8 ms"),
        };
        match overrunning {
            Overrunning::Ended => row
                .note("its body is cancelled within 2 ms of its next release, and never runs again")
                .note(
                    "the rule of §3.1 ends whoever is still ready at its next release: that may be \
                     a task which another kept from the CPU, and not the one that overran",
                ),
            _ => row,
        }
    };
    Overrunning::ALL.map(cell).into()
}

/// Mean interval minus the period, ns, signed: the drift of the fitted grid.
fn drift_ns(run: &MeasuredLoop, period_ms: u64) -> Option<f64> {
    let grid = run.figures.grid.as_ref()?;
    Some(grid.drift_ppb * 1e-9 * period_ms as f64 * 1e6)
}

/// Figure 3.
fn interval(period_ms: u64, run: Option<&MeasuredLoop>) -> PaperRow {
    let published = if period_ms == 1 { "4" } else { "" };
    let title = format!("error of the mean interval, period {period_ms} ms");
    let row = PaperRow::new(format!("ant.fig3.{period_ms}ms"), &title, "µs", published)
        .formula((1.0 - TICK_MS) * period_ms as f64 * 1e3)
        .measured(run.and_then(|run| drift_ns(run, period_ms)).map(|ns| ns.abs() / 1e3))
        .note("without its sign: intervals are short of the period there");
    if period_ms == 1 {
        row.note(
            "releases on one clock and judged by another there; here the grid is on \
             CLOCK_MONOTONIC and never adds up",
        )
    } else {
        row.note("a plot without numbers there; the formula is 0.4 % of the period")
    }
}

/// The timer's interrupt.
fn tick(run: Option<&MeasuredLoop>) -> PaperRow {
    let measured = run.and_then(|run| drift_ns(run, 1)).map(|ns| 1.0 + ns / 1e6);
    PaperRow::new("ant.tick", "timer interval for 1 ms", "ms", "0.996")
        .formula(TICK_MS)
        .measured(measured)
}

/// The state of the caches that rows are of.
#[derive(Clone, Copy)]
struct Caches {
    is_cold: bool,
    /// The end of ids.
    end: &'static str,
    /// Its word in titles.
    word: &'static str,
}

/// The paper evicts the caches before each measurement (§4.2).
const CACHES: [Caches; 2] = [
    Caches { is_cold: true, end: "", word: "cold" },
    Caches { is_cold: false, end: ".warm", word: "warm" },
];

/// Figures 9 and 10, and punctual's table as a third curve.
fn designs(executive: Option<&ExecutiveOutcome>) -> Vec<PaperRow> {
    type Cost = fn(&ExecutiveRow) -> f64;
    let cost = |design: DesignName, n: u32, cold: bool, value: Cost| {
        let rows = executive.map_or(&[][..], |executive| &executive.rows);
        let own =
            |row: &&ExecutiveRow| row.design == design && row.n == n as usize && row.cold == cold;
        rows.iter().find(own).map(|row| value(row) / 1e3)
    };
    let mut rows = Vec::new();
    let figures: [(&str, &str, Cost); 2] = [
        ("fig9", "processing time of release", |row| row.release_ns),
        ("fig10", "processing time of wait", |row| row.wait_ns),
    ];
    for caches in CACHES {
        let Caches { is_cold, end, word } = caches;
        for (figure, title, value) in figures {
            for n in SIZES_IN_ROWS {
                for design in DESIGNS {
                    let title = format!("{title}, N = {n}, {design}, {word} caches");
                    let id = format!("ant.{figure}.{design}.{n}{end}");
                    let note = match (figure, design) {
                        (_, DesignName::Punctual) => "not in the paper: a third curve",
                        _ if !is_cold => "not in the paper, which evicts the cache before",
                        ("fig9", _) => {
                            "a plot without numbers; both designs alike there, in the kernel; here \
                             the same lists and tables in a thread"
                        }
                        _ => {
                            "a plot without numbers; constant for AnT, linear for ART-Linux there, \
                             in the kernel; here the same lists and tables in a thread"
                        }
                    };
                    let row = PaperRow::new(id, &title, "µs", "");
                    let row = row.measured(cost(design, n, is_cold, value)).note(note);
                    rows.push(match (figure, design, is_cold) {
                        ("fig10", DesignName::Ant, true) => row.note(
                            "§3.1(4) has a wait take its element off the periodic control table, \
                             which would end the task's releases; §3.4 off the execution \
                             management table, as here",
                        ),
                        _ => row,
                    });
                }
            }
        }
        rows.extend(saved(caches, |design| cost(design, 100, is_cold, |row| row.cycle_ns)));
    }
    rows
}

/// Rows of the time that AnT saves in a cycle, µs and %; `whole` has the whole cycle of a design,
/// µs.
fn saved(caches: Caches, whole: impl Fn(DesignName) -> Option<f64>) -> [PaperRow; 2] {
    let saved = whole(DesignName::ArtLinux).zip(whole(DesignName::Ant)).map(|(art, ant)| art - ant);
    let Caches { is_cold, end, word } = caches;
    let published = if is_cold { ["50", "5%"] } else { ["", ""] };
    let title = format!("saved by AnT in a cycle of N = 100, {word} caches");
    let row = PaperRow::new(format!("ant.fig10.saved{end}"), &title, "µs", published[0]);
    let saved_row =
        row.measured(saved).note("until the 100th process runs there; a whole cycle here");
    let title = format!("the same as a share of 1 ms, {word} caches");
    let row = PaperRow::new(format!("ant.fig10.share{end}"), &title, "%", published[1]);
    let row = if is_cold { row.formula(5.0) } else { row };
    [saved_row, row.measured(saved.map(|us| us / 10.0))]
}

/// Figures 11 and 12: tasks released at a tick.
fn released(rows: &[RegistrationRow]) -> Vec<PaperRow> {
    let row = |design: DesignName| rows.iter().find(|row| row.design == design);
    let new = |id: &str, title: &str, published: &str| {
        PaperRow::new(format!("ant.{id}"), title, "tasks", published)
    };
    vec![
        new("fig11.most", "most released at a tick, AnT", "3 or 4")
            .formula(1.0)
            .measured(row(DesignName::Ant).map(|row| row.released_most))
            .note(
                "100 tasks over 100 slots average exactly 1 a tick, and balanced placement gives \
                 1 everywhere: \"3 or 4\" is what random phases give",
            ),
        new("fig11.fewest", "fewest released at a tick, AnT", "3 or 4")
            .formula(1.0)
            .measured(row(DesignName::Ant).map(|row| row.released_fewest))
            .note("as above: not every tick can have 3 or 4")
            .note(
                "§3.1 has as many entries as the longest period, and two sentences on as the least \
                 common multiple of all: this is right, 100 for these tasks",
            ),
        new("fig11.punctual", "most released at a tick, punctual", "")
            .measured(row(DesignName::Punctual).map(|row| row.released_most))
            .note("not in the paper: a third curve, phases one a tick"),
        new("fig12.most", "most released at a tick, ART-Linux", "")
            .measured(row(DesignName::ArtLinux).map(|row| row.released_most))
            .note(
                "a plot without numbers there; delays of 0 to 99 ticks at random, the same 10 \
                 repetitions on each machine; the mean maximum of random phases is 4.24 \
                 (20 000 simulated)",
            ),
    ]
}

/// Table 3: what a release costs with 100 tasks of a period of 100 ticks.
fn table3(rows: &[RegistrationRow]) -> Vec<PaperRow> {
    let published = [
        (DesignName::Ant, ["0.95", "1.15", "1.50"]),
        (DesignName::ArtLinux, ["0.43", "0.66", "2.42"]),
        (DesignName::Punctual, ["", "", ""]),
    ];
    let mut table = Vec::new();
    for (design, cells) in published {
        let row = rows.iter().find(|row| row.design == design);
        let stamps = row.map_or_else(String::new, |row| {
            format!("; without both stamps, which take {:.3} µs", row.floor_ns / 1e3)
        });
        for (at, (key, cell)) in ["min", "avg", "max"].into_iter().zip(cells).enumerate() {
            let title = format!("processing time of release, 100 tasks of 100 ms, {design}, {key}");
            let id = format!("ant.table3.{design}.{key}");
            let cell = PaperRow::new(id, &title, "µs", cell)
                .measured(row.map(|row| row.release_ns[at] / 1e3))
                .note(&format!(
                    "cold caches: its lines are flushed before each, as memory is read \
                     there{stamps}"
                ));
            let cell = match row {
                Some(row) => cell.note(&format!("warm {:.3} µs", row.warm_ns[at] / 1e3)),
                None => cell,
            };
            table.push(match design {
                DesignName::Punctual => cell.note("not in the paper: a third curve"),
                DesignName::Ant if key == "avg" => {
                    cell.note("74 % above ART-Linux's there: only the maximum is smaller")
                }
                _ => cell,
            });
        }
    }
    table
}

/// A figure of costs: its name, what it shows, the cost in ns and the interval of its median.
struct Costs {
    id: &'static str,
    title: &'static str,
    value: fn(&ExecutiveRow) -> f64,
    interval: fn(&ExecutiveRow) -> Option<Interval>,
}

impl Costs {
    /// Over the number of tasks: with cold caches, as the paper evicts them, and beside it warm.
    fn figures(&self, rows: &[ExecutiveRow]) -> [Drawing; 2] {
        [true, false].map(|cold| {
            let (end, caches) = if cold { ("", "cold") } else { (".warm", "warm") };
            let title = format!("{}, {caches} caches", self.title);
            let figure = Drawing::new(format!("{}{end}", self.id), &title, "tasks", "µs");
            let drawn = DESIGNS.iter().fold(figure, |figure, design| {
                let own = rows.iter().filter(|row| row.design == *design && row.cold == cold);
                let mut band: Vec<RangeAt> = own.map(|row| self.ends(row)).collect();
                band.sort_by(|a, b| a.0.total_cmp(&b.0));
                figure.band(&format!("here: {design}"), band)
            });
            if cold { drawn } else { drawn.beside() }
        })
    }

    /// The median of a row in its interval, µs.
    fn ends(&self, row: &ExecutiveRow) -> RangeAt {
        let value = (self.value)(row);
        let interval = (self.interval)(row);
        let [low, high] = [interval.and_then(|ends| ends.low), interval.and_then(|ends| ends.high)];
        let ends = [low.unwrap_or(value), value, high.unwrap_or(value)];
        (row.n as f64, ends.map(|ns| ns / 1e3))
    }
}

/// Figure 2, with what table 2 says of the same distribution.
fn distribution(histogram: Option<&HistogramView>) -> Drawing {
    let (x, y) = ("from the timer interrupt to the process, µs (log)", "wakes, of 100");
    let figure = Drawing::new("ant.fig2", "time from timer interrupt to process", x, y);
    let published = [(2.57, "minimum"), (2.84, "average"), (5.47, "maximum")];
    let measured = histogram.map(|histogram| ("a wake after its release", histogram));
    figure
        .log([true, false])
        .histograms(measured.as_slice())
        .points("published in table 2", published.map(|(us, name)| ([us, 0.0], name)))
}

/// Beside figure 2: each design with tasks that registered at irregular times.
fn distributions(rows: &[ProcessRow]) -> Drawing {
    let views: Vec<(String, HistogramView)> = rows
        .iter()
        .filter(|row| row.set == TaskSet::Irregular)
        .map(|row| {
            let mut histogram = Histogram::new();
            row.times_ns.iter().for_each(|&ns| histogram.push(ns));
            (row.design.to_string(), HistogramView::of(&histogram))
        })
        .collect();
    let measured: Vec<(&str, &HistogramView)> =
        views.iter().map(|(name, view)| (name.as_str(), view)).collect();
    let (x, y) = ("from the timer's instant to the first task, µs (log)", "ticks");
    let title = "timer to first task, 100 irregular tasks";
    Drawing::new("ant.fig2.designs", title, x, y).log([true, false]).histograms(&measured)
}

/// Intervals of figure 4 that are drawn.
const DRAWN: usize = 60;

/// Figure 4, measured: consecutive intervals of A.
fn intervals_beside(rows: &[OverrunRow]) -> Drawing {
    let title = "intervals of a task A of 5 ms beside a task B that overruns";
    let figure = Drawing::new("ant.fig4", title, "interval", "ms");
    rows.iter().fold(figure, |figure, row| {
        let errors = row.errors.iter().take(DRAWN).enumerate();
        let points = errors.map(|(at, error)| [at as f64, PAIR_MS + *error as f64 / 1e6]);
        figure.line(&format!("here: {}", row.overrunning.title()), points.collect())
    })
}

/// Figures 3 and 9 to 12. `errors` has periods in ms and errors of the mean interval in µs.
fn drawn(
    errors: Vec<[f64; 2]>,
    executive: Option<&ExecutiveOutcome>,
    registration: &[RegistrationRow],
) -> Vec<Drawing> {
    let error = "error of the mean interval, µs";
    let fig3 = Drawing::new("ant.fig3", "error of the interval", "period, ms", error)
        .line("formula: 0.4 % of the period", vec![[0.0, 0.0], [10.0, 40.0]])
        .points("published", [([1.0, 4.0], "4 µs")])
        .points("here", errors.into_iter().map(|at| (at, "")));
    let costs = [
        Costs {
            id: "ant.fig9",
            title: "processing time of release",
            value: |row| row.release_ns,
            interval: |row| row.release_interval_ns,
        },
        Costs {
            id: "ant.fig10",
            title: "processing time of wait",
            value: |row| row.wait_ns,
            interval: |row| row.wait_interval_ns,
        },
    ];
    let rows = executive.map_or(&[][..], |executive| &executive.rows);
    let costs = costs.iter().flat_map(|costs| costs.figures(rows));
    std::iter::once(fig3).chain(costs).chain(released_figures(registration)).collect()
}

/// Figures 11 and 12 on one scale: the mean of all repetitions at each tick, in a band from the
/// fewest to the most.
fn released_figures(registration: &[RegistrationRow]) -> [Drawing; 2] {
    let released = |id: &str, designs: &[DesignName]| {
        let mut bands: Vec<(String, &[AtTick])> = Vec::new();
        for design in designs {
            let Some(row) = registration.iter().find(|row| row.design == *design) else { continue };
            // One that is the same would lie over it, and hide it.
            match bands.iter_mut().find(|(_, ticks)| *ticks == row.released) {
                Some((name, _)) => *name += &format!(" and {design}, alike"),
                None => bands.push((format!("here: {design}"), &row.released)),
            }
        }
        // The legend of a single one is left out.
        let names: Vec<&str> =
            bands.iter().map(|(name, _)| name.trim_start_matches("here: ")).collect();
        let title = format!("tasks released at a tick: {}", names.join("; "));
        let figure = Drawing::new(id, &title, "tick of 100", "tasks: fewest, mean, most of ten");
        bands.iter().fold(figure, |figure, (name, ticks)| {
            let at_tick = |(at, tick): (usize, &AtTick)| {
                (at as f64, [tick.fewest as f64, tick.mean, tick.most as f64])
            };
            figure.band(name, ticks.iter().enumerate().map(at_tick))
        })
    };
    [
        released("ant.fig11", &[DesignName::Ant, DesignName::Punctual]),
        released("ant.fig12", &[DesignName::ArtLinux]).beside(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_drawn_over_the_number_of_tasks_cold_beside_warm() {
        let row = |design, n: usize, cold| ExecutiveRow {
            design,
            n,
            cold,
            cycles: 9,
            release_ns: n as f64 * 100.0,
            dispatch_ns: 1.0,
            wait_ns: if cold { 900.0 } else { 90.0 },
            cycle_ns: 1.0,
            floor_ns: 1.0,
            release_interval_ns: None,
            wait_interval_ns: Some(Interval::between(80.0, 90.0, 99.0)).filter(|_| !cold),
            cycle_interval_ns: None,
        };
        let rows: Vec<ExecutiveRow> = DESIGNS
            .iter()
            .flat_map(|design| [50, 1].map(|n| (*design, n)))
            .flat_map(|(design, n)| [true, false].map(|cold| row(design, n, cold)))
            .collect();
        let ratios = Vec::new();
        let drawn = drawn(Vec::new(), Some(&ExecutiveOutcome { rows, ratios, turn: None }), &[]);
        let ids: Vec<(&str, bool)> =
            drawn.iter().map(|figure| (figure.id.as_str(), figure.beside)).collect();
        assert_eq!(
            ids,
            [
                ("ant.fig3", false),
                ("ant.fig9", false),
                ("ant.fig9.warm", true),
                ("ant.fig10", false),
                ("ant.fig10.warm", true),
                ("ant.fig11", false),
                ("ant.fig12", true),
            ]
        );
        for figure in &drawn[1..5] {
            assert_eq!(figure.series.len(), DESIGNS.len(), "{figure:?}");
        }
        // Lowest, middle and highest at each number of tasks, which rise.
        let warm = &drawn[4].series[0].points;
        assert_eq!(warm[..3], [[1.0, 0.08], [1.0, 0.09], [1.0, 0.099]]);
        assert_eq!((warm.len(), warm[3][0]), (6, 50.0));
    }

    #[test]
    fn rows_of_costs_are_cold_as_in_the_paper_and_warm_ones_say_it() {
        let row = |design, cold| ExecutiveRow {
            design,
            n: 100,
            cold,
            cycles: 9,
            release_ns: if cold { 2_000.0 } else { 1_000.0 },
            dispatch_ns: 1.0,
            wait_ns: 1.0,
            cycle_ns: match (design, cold) {
                (DesignName::ArtLinux, true) => 90_000.0,
                (DesignName::ArtLinux, false) => 30_000.0,
                _ => 10_000.0,
            },
            floor_ns: 1.0,
            release_interval_ns: None,
            wait_interval_ns: None,
            cycle_interval_ns: None,
        };
        let rows = DESIGNS.iter().flat_map(|design| [false, true].map(|cold| row(*design, cold)));
        let outcome = ExecutiveOutcome { rows: rows.collect(), ratios: Vec::new(), turn: None };
        let rows = designs(Some(&outcome));
        let found = |id: &str| rows.iter().find(|row| row.id == id).expect("a row");
        for (id, us) in [
            ("ant.fig9.ant.100", 2.0),
            ("ant.fig9.ant.100.warm", 1.0),
            ("ant.fig10.saved", 80.0),
            ("ant.fig10.saved.warm", 20.0),
            ("ant.fig10.share", 8.0),
        ] {
            assert_eq!(found(id).measured, Some(us), "{id}");
            let caches = if id.ends_with("warm") { "warm caches" } else { "cold caches" };
            assert!(found(id).title.ends_with(caches), "{id}");
        }
        assert!(found("ant.fig10.saved.warm").published.is_empty());
        let wait = &found("ant.fig10.ant.100").note;
        assert!(wait.contains("§3.1(4)") && wait.contains("§3.4"), "{wait}");
    }

    #[test]
    fn what_the_paper_errs_in_stands_in_notes_and_what_it_has_no_formula_for_in_none() {
        let rows = released(&[]);
        let row = |id: &str| rows.iter().find(|row| row.id == id).expect("a row");
        assert!(row("ant.fig11.fewest").note.contains("least common multiple"));
        assert_eq!(row("ant.fig12.most").formula, None);
        let rows = overrun(&[]);
        let ended = rows.iter().find(|row| row.id == "ant.fig4.ended").expect("a row");
        assert!(ended.note.contains("not the one that overran"), "{ended:?}");
    }

    fn registered(design: DesignName, released: Vec<AtTick>) -> RegistrationRow {
        RegistrationRow {
            design,
            released_most: 1.0,
            released_fewest: 1.0,
            release_ns: [90.0; 3],
            warm_ns: [40.0; 3],
            floor_ns: 25.0,
            release_scatter: None,
            ticks: 1_000,
            released,
        }
    }

    #[test]
    fn table_3_names_its_caches_and_what_its_stamps_take() {
        for row in table3(&[registered(DesignName::Ant, Vec::new())]) {
            assert!(row.note.contains("cold caches"), "{row:?}");
            let is_measured = row.measured.is_some();
            assert!(row.measured.is_none_or(|us| us == 0.09), "{row:?}");
            assert_eq!(row.note.contains("warm 0.040 µs"), is_measured, "{row:?}");
            assert_eq!(row.note.contains("which take 0.025 µs"), is_measured, "{row:?}");
        }
    }

    #[test]
    fn each_design_behind_the_timer_has_one_name() {
        let row = |design| ProcessRow {
            design,
            set: TaskSet::Irregular,
            times_ns: (0..40).map(|at| 20_000 + at).collect(),
        };
        let drawn = distributions(&[row(DesignName::ArtLinux), row(DesignName::Ant)]);
        let names: Vec<&str> = drawn.series.iter().map(|series| &*series.name).collect();
        assert_eq!(names, ["here: art-linux", "here: ant"]);
    }

    #[test]
    fn errors_of_intervals_have_no_sign_and_the_timer_s_is_as_it_is() {
        let latenesses: Vec<i64> = (0..2_000).map(|at| 9_000_000 - at * 4_000).collect();
        let run = MeasuredLoop::of_latenesses(&latenesses, 0.1, 1);
        let row = interval(1, Some(&run));
        let [formula, measured] = [row.formula, row.measured].map(Option::unwrap);
        assert!((formula - 4.0).abs() < 1e-9 && (measured - 4.0).abs() < 1e-3, "{row:?}");
        let tick = tick(Some(&run)).measured.expect("measured");
        assert!((tick - 0.996).abs() < 1e-6, "{tick}");
    }

    #[test]
    fn table_2_is_at_the_tick_and_says_it() {
        let rows = table2(None, None);
        for row in &rows[..3] {
            assert!(row.note.contains("at phase zero, where the kernel's tick meets it"));
        }
        let quiet: Vec<&str> = rows[3..6].iter().map(|row| row.id.as_str()).collect();
        let expected = ["max", "avg", "min"].map(|key| format!("ant.table2.quiet.{key}"));
        assert_eq!(quiet, expected);
    }

    #[test]
    fn designs_that_release_alike_are_one_band_with_both_names() {
        let tick = |most| AtTick { fewest: 1, mean: 1.0, most };
        let [alike, _] = released_figures(
            &[DesignName::Ant, DesignName::Punctual].map(|name| registered(name, vec![tick(1); 2])),
        );
        let names = |figure: &Drawing| -> Vec<String> {
            figure.series.iter().map(|series| series.name.clone()).collect()
        };
        assert_eq!(names(&alike), ["here: ant and punctual, alike"]);
        let [apart, _] = released_figures(&[
            registered(DesignName::Ant, vec![tick(1)]),
            registered(DesignName::Punctual, vec![tick(2)]),
        ]);
        assert_eq!(names(&apart), ["here: ant", "here: punctual"]);
    }

    #[test]
    fn figures_11_and_12_have_all_repetitions() {
        let tick = |fewest, mean, most| AtTick { fewest, mean, most };
        let row = registered;
        let rows = [
            row(DesignName::Ant, vec![tick(1, 1.0, 1); 2]),
            row(DesignName::ArtLinux, vec![tick(0, 1.2, 4), tick(1, 0.8, 3)]),
        ];
        let [balanced, random] = released_figures(&rows);
        assert_eq!(balanced.series.len(), 1);
        assert_eq!(random.series[0].points[..3], [[0.0, 0.0], [0.0, 1.2], [0.0, 4.0]]);
        assert!(random.beside && !balanced.beside);
    }

    #[test]
    fn figure_2_has_the_published_ends_beside_what_was_measured() {
        let mut histogram = Histogram::new();
        [3_000, 4_000].into_iter().for_each(|ns| histogram.push(ns));
        let drawn = distribution(Some(&HistogramView::of(&histogram)));
        assert_eq!(drawn.series.len(), 2);
        assert_eq!(drawn.series[1].points, [[2.57, 0.0], [2.84, 0.0], [5.47, 0.0]]);
        assert_eq!(distribution(None).series.len(), 1, "published alone");
    }
}
