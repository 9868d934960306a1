//! NIST, *Timing jitter of real-time Linux and its effect on motor control*.

mod claims;
mod one_period;
mod samples;

use punctual_analysis::histogram::clusters::Cluster;
use punctual_analysis::histogram::{Bucket, HistogramView};
use punctual_analysis::impact::stepper::torque_lost_ratio;
use punctual_analysis::interval::Interval;
use punctual_analysis::quantile::Probability;
use punctual_core::time::{Period, Span};
use punctual_engine::wait_policy::WaitKind;
use punctual_lab::load::{LoadReport, LoadSpec};
use punctual_lab::timer::{
    Background, StampStore, TimerExperiment, TimerOutcome, TimerPath, TimerRow,
};

use crate::Reproduction;
use crate::bench::{Bench, COLD_CYCLES, LoopCondition, LoopPhase, LoopSet, MeasuredLoop};
use crate::figure::{Drawing, quantiles};
use crate::row::PaperRow;
use claims::Evidence;
use one_period::{OnePeriod, OnePeriodExperiment};
use samples::{FEW, MANY, Samples};

/// T and S of figure 5, µs.
const T: f64 = 500.0;
const S: f64 = 5.0;
/// T, ns.
const PERIOD_NS: u64 = 500_000;
/// The paper's jitter without and with compensation, µs.
const UNCOMPENSATED: f64 = 3.6;
const COMPENSATED: f64 = 0.098;

/// The intervals of figure 5 that are measured, µs: none has a divisor in common with T. Early
/// wakes lie on multiples of A of the clock, so that where A divides T the last one is always as
/// long before its release, by the phase of the releases alone; here it takes every distance up to
/// A in turn, each of whole microseconds once in A cycles.
const INTERVALS: [(&str, u64); 12] = [
    ("each 21 us", 21),
    ("each 27 us", 27),
    ("each 33 us", 33),
    ("each 41 us", 41),
    ("each 51 us", 51),
    ("each 63 us", 63),
    ("each 77 us", 77),
    ("each 93 us", 93),
    ("each 109 us", 109),
    ("each 123 us", 123),
    ("each 171 us", 171),
    ("each 247 us", 247),
];
/// The interval of equation 1, µs.
const EQ1_AT: u64 = 50;
/// It divides T, so that the phase of the releases alone sets how long the last poll is: loops at
/// these, ns after the quiet phase, have every tenth of it once, and their mean is the mean poll's.
const EQ1_PHASES: [(&str, u64); 5] = [
    ("each 50 us", 0),
    ("each 50 us, 10 us later", 10_000),
    ("each 50 us, 20 us later", 20_000),
    ("each 50 us, 30 us later", 30_000),
    ("each 50 us, 40 us later", 40_000),
];
/// The share of the time that they take together.
const EQ1_SHARE: f64 = 0.05;

/// A load that was measured at an interval of figure 5.
#[derive(Clone, Copy, Debug)]
struct LoadAt {
    /// The interval, µs.
    us: u64,
    /// CPU time of the loop, %; its lower end is less what may have been others'.
    percent: Interval,
}

/// A loading of figure 3.
struct Loading {
    /// The end of its ids.
    key: &'static str,
    /// The load, as --load has it.
    load: &'static str,
    /// Its name in the paper.
    name: &'static str,
    published: &'static str,
    note: &'static str,
}

const LOADINGS: [Loading; 3] = [
    Loading {
        key: "normal",
        load: "none",
        name: "normal loading",
        published: "",
        note: "a histogram without numbers there; all services run here",
    },
    Loading {
        key: "disk",
        load: "disk:heavy",
        name: "heavy disk loading",
        published: "ten microseconds",
        note: "\"on the order of\"",
    },
    Loading {
        key: "net",
        load: "net:heavy",
        name: "heavy network loading",
        published: "ten microseconds",
        note: "\"on the order of\"; between network namespaces here",
    },
];

/// A scheduler of figure 3.
struct Scheduler {
    /// The end of its ids.
    id: &'static str,
    /// Its path in a timer's rows.
    path: TimerPath,
    name: &'static str,
    note: &'static str,
}

const SCHEDULERS: [Scheduler; 2] = [
    Scheduler {
        id: "",
        path: TimerPath::Sleep,
        name: "SCHED_FIFO",
        note: "RTL there, a module in the kernel; SCHED_FIFO here, a thread",
    },
    Scheduler {
        id: "second.",
        path: TimerPath::Deadline,
        name: "SCHED_DEADLINE",
        note: "RTAI there, a module in the kernel; SCHED_DEADLINE here, a thread pinned to no CPU",
    },
];

/// The loop without compensation and with it, under one condition.
#[derive(Clone, Copy, Debug, Default)]
struct Pair<'r> {
    plain: Option<&'r MeasuredLoop>,
    compensated: Option<&'r MeasuredLoop>,
}

impl<'r> Pair<'r> {
    /// The runs with these names.
    fn of(runs: &'r [MeasuredLoop], [plain, compensated]: [&str; 2]) -> Self {
        let run = |name: &str| runs.iter().find(|run| run.name == name);
        Self { plain: run(plain), compensated: run(compensated) }
    }
}

/// The names of the loops: without compensation and with it, at a quiet phase and at phase zero.
const QUIET: [&str; 2] = ["idle", "rearm"];
const ZERO: [&str; 2] = ["idle at the tick", "rearm at the tick"];

/// Its rows and claims.
///
/// # Errors
/// Why it cannot be measured.
pub fn reproduce<B: Bench>(bench: &mut B) -> Result<Reproduction, B::Error> {
    // 100 releases of each and a little, then 10 000, none left out.
    let few = consecutive(
        bench,
        &[
            LoopCondition::idle("100 samples", WaitKind::Sleep),
            LoopCondition::idle("100 compensated", WaitKind::Rearm(None)),
        ],
        FEW,
    )?;
    let few = [0, 1].map(|at| Samples::of(few.get(at), FEW));
    let many = unbroken(bench)?;
    let conditions = |[plain, compensated]: [&'static str; 2]| {
        [
            LoopCondition::idle(plain, WaitKind::Sleep),
            LoopCondition::idle(compensated, WaitKind::Rearm(None)),
        ]
    };
    let quiet_runs = loops(bench, &conditions(QUIET), LoopPhase::Quiet, 0.2)?;
    let zero_runs = loops(bench, &conditions(ZERO), LoopPhase::Zero, 0.15)?;
    let (quiet, zero) = (Pair::of(&quiet_runs, QUIET), Pair::of(&zero_runs, ZERO));
    let [plain, compensated] = &few;
    let mut rows = jitters(plain.as_ref(), many.as_ref());
    bench.draw(plain.iter().flat_map(samples::few));
    bench.draw(many.iter().map(|(samples, _)| samples::many(samples)));
    let mut timers = Vec::new();
    for loading in &LOADINGS {
        timers.push(timer(bench, loading.load)?);
    }
    rows.extend(
        LOADINGS.iter().zip(&timers).flat_map(|(loading, timer)| ranges(loading, timer.as_ref())),
    );
    let timers: Vec<Option<&TimerOutcome>> =
        timers.iter().map(|timer| timer.as_ref().map(|(timer, _)| timer)).collect();
    bench.draw([loadings_figure(&timers)]);
    bench.draw(loading_histograms(&timers));
    rows.push(uncached());
    let sweep = INTERVALS
        .map(|(name, us)| LoopCondition::idle(name, WaitKind::Rearm(Period::from_ns(us * 1_000))));
    let sweep = loops(bench, &sweep, LoopPhase::Quiet, 0.15)?;
    let cost: Vec<LoadAt> = INTERVALS
        .iter()
        .zip(&sweep)
        .filter_map(|((_, us), run)| Some(LoadAt { us: *us, percent: run.cpu_percent()? }))
        .collect();
    let at_eq1 = at_equation_1(bench)?;
    rows.extend(loading(quiet.compensated, at_eq1));
    let period = one_period(bench, own_optimum(quiet.compensated))?;
    rows.extend(Period::from_ns(PERIOD_NS).map(|t| one_period::row(period.as_ref(), t)));
    bench.draw(period.iter().map(one_period::figure));
    rows.extend(interval_rows(&cost));
    bench.draw([load_figure(&cost, own_optimum(quiet.compensated))]);
    let sides = plain.as_ref().zip(compensated.as_ref());
    bench.draw(sides.map(|(plain, compensated)| samples::overlaid(plain, compensated)));
    rows.extend(compensation(quiet, few.each_ref().map(Option::as_ref)));
    rows.extend(ticks(quiet, zero));
    rows.extend(table1([quiet.plain, quiet.compensated].map(StepErrors::of)));
    let claims = Evidence { quiet, zero, timers: &timers }.claims();
    Ok(Reproduction { rows, claims })
}

/// The load at the interval of equation 1, %: the mean of loops at each of its phases; `None` where
/// one was not measured.
fn at_equation_1<B: Bench>(bench: &mut B) -> Result<Option<Interval>, B::Error> {
    let every = WaitKind::Rearm(Period::from_ns(EQ1_AT * 1_000));
    let each = EQ1_SHARE / EQ1_PHASES.len() as f64;
    let mut percents = Vec::new();
    for (name, after_ns) in EQ1_PHASES {
        let condition = [LoopCondition::idle(name, every)];
        let runs = loops(bench, &condition, LoopPhase::AfterQuiet(after_ns), each)?;
        percents.push(runs.first().and_then(MeasuredLoop::cpu_percent));
    }
    Ok(mean(&percents))
}

/// The mean of values of which none is missing.
fn mean(values: &[Option<Interval>]) -> Option<Interval> {
    let sum = values.iter().copied().reduce(|a, b| Some(a?.plus(b?)))?;
    sum.map(|sum| sum.times(1.0 / values.len() as f64))
}

/// The runs in which 10 000 samples are looked for that follow each other: no more, for a machine
/// that misses releases all the time never has them, and together no longer than a share of the
/// time, but one at least.
const TRIES: [&str; 3] = ["10 000 samples", "10 000 samples, again", "10 000 samples, once more"];

/// The share of the time that these may take together.
const TRIES_SHARE: f64 = 0.2;

/// Number of those runs that there is time for; at least one.
fn tries(time: Span) -> usize {
    let each_ns = releases(MANY) as u64 * PERIOD_NS;
    let fit = time.as_ns().max(0).unsigned_abs() / each_ns;
    usize::try_from(fit).unwrap_or(usize::MAX).clamp(1, TRIES.len())
}

/// Figure 2: 10 000 samples that follow each other, or after all runs those with fewest missed
/// releases among them; and in how many runs.
fn unbroken<B: Bench>(bench: &mut B) -> Result<Option<(Samples, usize)>, B::Error> {
    let mut best: Option<Samples> = None;
    let tries = tries(bench.share(TRIES_SHARE));
    for (number, name) in (1..).zip(TRIES.into_iter().take(tries)) {
        let runs = consecutive(bench, &[LoopCondition::idle(name, WaitKind::Sleep)], MANY)?;
        // None where an end was requested.
        let Some(run) = runs.first() else { break };
        let found = Samples::of(Some(run), MANY);
        best = found.into_iter().chain(best).min_by_key(|samples| samples.missed);
        if let Some(samples) = best.take_if(|samples| samples.missed == 0) {
            return Ok(Some((samples, number)));
        }
    }
    Ok(best.map(|samples| (samples, tries)))
}

/// The releases of a loop that is to have so many samples: one that was missed has none, so 5 %
/// more of them, and 100 ms, so that one stall does not lose all.
const fn releases(samples: usize) -> usize {
    samples * 105 / 100 + 200
}

/// Loops of the paper's period, so many samples of each and a little.
fn consecutive<B: Bench>(
    bench: &mut B,
    conditions: &[LoopCondition],
    count: usize,
) -> Result<Vec<MeasuredLoop>, B::Error> {
    let each = releases(count);
    let releases = i64::try_from(each * conditions.len()).unwrap_or(i64::MAX);
    bench.loops(&LoopSet {
        period_ns: PERIOD_NS,
        conditions,
        length: Span::from_ns(releases * PERIOD_NS.cast_signed()),
        cold: 0,
        phase: LoopPhase::Quiet,
        keep: each,
    })
}

/// Loops of the paper's period under these conditions, for a share of the time.
fn loops<B: Bench>(
    bench: &mut B,
    conditions: &[LoopCondition],
    phase: LoopPhase,
    share: f64,
) -> Result<Vec<MeasuredLoop>, B::Error> {
    let (length, cold) = (bench.share(share), COLD_CYCLES);
    bench.loops(&LoopSet { period_ns: PERIOD_NS, conditions, length, cold, phase, keep: 0 })
}

/// Measures the lateness of timers of the paper's period beside a load; `None` once an end was
/// requested.
fn timer<B: Bench>(bench: &mut B, load: &str) -> Result<Option<Loaded>, B::Error> {
    let experiment = TimerExperiment {
        thread: bench.thread(),
        periods: Period::from_ns(PERIOD_NS).into_iter().collect(),
        backgrounds: vec![Background::None],
        duration: bench.share(0.15),
        in_a_row: 0,
        loads: LoadSpec::parse_list(load)?,
    };
    let measured = bench.measure(experiment)?;
    Ok(measured.map(|(timer, loads)| (timer, loads.into_iter().flatten().collect())))
}

/// The outcome of a timer, and the reports of the loads beside it.
type Loaded = (TimerOutcome, Vec<LoadReport>);

/// The note on what stands here in for the paper's module of the kernel.
const STANDS_IN: &str = "a task in the kernel there, a module of RTL that the timer's interrupt \
                         starts; here a thread of SCHED_FIFO that the kernel wakes";

/// Figures 1 and 2; `many`: with the runs that it took.
fn jitters(few: Option<&Samples>, many: Option<&(Samples, usize)>) -> Vec<PaperRow> {
    let new = |id: &str, title: &str, published: &str| {
        PaperRow::new(format!("nist.{id}"), title, "µs", published)
    };
    let (runs, many) = (many.map(|(_, runs)| *runs), many.map(|(samples, _)| samples));
    let range = |samples: Option<&Samples>| samples.map(Samples::range_us);
    let at_99 = |samples: Option<&Samples>| samples.and_then(Samples::at_99_us);
    let beside = "without the stall that may be all of the range";
    let fewer = "not measured: no run had 10 000 samples, for releases were missed";
    let of_many = |row: PaperRow, value: Option<f64>| match few {
        // Where nothing at all was measured, none was missed.
        Some(_) => row.measured_or(value, fewer),
        None => row.measured(value),
    };
    let not_first = "not measured: a release among the first 100 was missed";
    let first = new("fig1.first", "the first sample less the median", "");
    let first = match few {
        Some(samples) => {
            let row = first.measured_or(samples.first_us(), not_first);
            match (samples.first_us(), samples.is_first_late()) {
                (Some(_), true) => row.note("code that is in no cache yet"),
                (Some(_), false) => row.note("no later than 95 % of all: its code was in a cache"),
                (None, _) => row,
            }
        }
        None => first.measured(None),
    };
    let in_row = match (many, runs) {
        (Some(samples), Some(runs)) if samples.missed > 0 => format!(
            "10 000 samples between which {} missed, {}; consecutive ones there",
            match samples.missed {
                1 => "1 release was".to_owned(),
                more => format!("{more} releases were"),
            },
            match runs {
                1 => "of one run, for which alone there was time".to_owned(),
                more => format!("the fewest of {more} runs"),
            }
        ),
        (Some(_), Some(runs)) if runs > 1 => {
            format!("10 000 consecutive samples, 5 s, as there; the first that run {runs} had")
        }
        _ => "10 000 consecutive samples, 5 s, as there".to_owned(),
    };
    vec![
        new("fig1", "peak-to-peak about the grid, 100 samples, T = 500 µs", "3.60")
            .measured(range(few))
            .note("single-user mode there; here all services run")
            .note(STANDS_IN),
        new("fig1.p99", "99 % of the 100 samples less the least", "")
            .measured(at_99(few))
            .note(beside),
        first.note("a plot without numbers there"),
        clusters(few),
        of_many(new("fig2", "the same, 10,000 samples", "3.5"), range(many))
            .note(&in_row)
            .note("the figure's maximum supports only p ≤ 3·10⁻⁴ for a larger one"),
        of_many(new("fig2.p99", "99 % of the 10 000 samples less the least", ""), at_99(many))
            .note(beside),
    ]
}

/// Figure 1b: how many clusters the 100 samples fall into.
fn clusters(few: Option<&Samples>) -> PaperRow {
    let found = few.map(Samples::clusters);
    let row = PaperRow::new("nist.fig1b.clusters", "clusters of the 100 samples", "", "")
        .measured(found.as_ref().map(|found| found.len() as f64));
    let row = match found.as_deref() {
        Some([_]) => row.note(
            "one cluster: no valley between two peaks is deeper than 100 samples explain by chance",
        ),
        Some(several) => {
            let words = |cluster: &Cluster| {
                format!("{:.0} % about {:.1} µs", cluster.share * 100.0, cluster.peak_ns / 1e3)
            };
            row.note(&several.iter().map(words).collect::<Vec<_>>().join(", "))
        }
        None => row,
    };
    row.note("each the trace of a path through the code there; a plot without numbers")
}

/// Figure 6, uncompensated and compensated: the range of 100 samples about their grid, as there,
/// which one stall makes, and beside it the spreads of the longer loops, which it does not.
fn compensation(quiet: Pair<'_>, few: [Option<&Samples>; 2]) -> Vec<PaperRow> {
    let [plain, compensated] = few;
    let sides = [
        ("uncompensated", "uncompensated", "3.60", (quiet.plain, plain)),
        (
            "compensated",
            "compensated by early wakes and polling",
            "0.098",
            (quiet.compensated, compensated),
        ),
    ];
    let new = |id: &str, title: String, published: &str| {
        PaperRow::new(format!("nist.fig6.{id}"), &title, "µs", published)
    };
    let mut rows = Vec::new();
    for (id, title, published, (run, samples)) in sides {
        let n = run.map_or(0, |run| run.figures.cycles);
        let range = new(id, format!("{title}: peak to peak"), published)
            .measured(samples.map(Samples::range_us))
            .note("of 100 samples about their grid, as there: one stall is all of it");
        let range = match samples.map_or(0, |samples| samples.missed) {
            0 => range,
            missed => range.note(&format!("releases missed among them: {missed}")),
        };
        rows.push(match id {
            "compensated" => range.note(
                "the paper polls with interrupts disabled, which user space cannot: here \
                     releases lie away from the kernel's tick",
            ),
            _ => range,
        });
        let spreads = [("p99", "99 % less the least", 0.0, 0.99), ("p90", "5 to 95 %", 0.05, 0.95)];
        rows.extend(spreads.map(|(key, share, from, to)| {
            new(&format!("{id}.{key}"), format!("{title}: {share}"), "")
                .measured(run.and_then(|run| spread_us(run, from, to)))
                .note(&format!("lateness of {n} cycles; a plot without numbers there"))
        }));
    }
    let sides = [quiet.plain, quiet.compensated];
    let p99 = sides.map(|run| run.and_then(|run| spread_us(run, 0.0, 0.99)));
    let factor = p99[0].zip(p99[1]).filter(|(_, with)| *with > 0.0);
    let factor = factor.map(|(without, with)| without / with);
    rows.push(
        PaperRow::new("nist.fig6.factor", "gain of the compensation", "times", "40")
            .formula(UNCOMPENSATED / COMPENSATED)
            .measured(factor)
            .note("\"about 40 times\" is 36.7 times; measured: by the spreads of 99 %"),
    );
    rows
}

/// The cost of the kernel's tick where it meets releases, µs, without and with compensation.
fn ticks(quiet: Pair<'_>, zero: Pair<'_>) -> [PaperRow; 2] {
    let sides = [
        ("uncompensated", quiet.plain, zero.plain),
        ("compensated", quiet.compensated, zero.compensated),
    ];
    sides.map(|(side, quiet, zero)| {
        let us = |run: Option<&MeasuredLoop>| spread_us(run?, 0.0, 0.99);
        let (away, met) = (us(quiet), us(zero));
        let title = format!("{side}: what the tick costs, 99 % less the least");
        let row = PaperRow::new(format!("nist.tick.{side}"), &title, "µs", "")
            .measured(met.zip(away).map(|(met, away)| met - away));
        let row = match met.zip(away) {
            Some((met, away)) => row.note(&format!(
                "{met:.3} µs where releases are multiples of the period, {away:.3} µs away from \
                 the tick"
            )),
            None => row,
        };
        row.note("not in the paper, which disables interrupts")
    })
}

/// From one quantile of a run's lateness to another, µs; a share of 0 is the least.
fn spread_us(run: &MeasuredLoop, from: f64, to: f64) -> Option<f64> {
    let lateness = &run.figures.lateness;
    let at = |share| lateness.quantile(Probability::from_share(share)?);
    let least = if from == 0.0 { lateness.min() } else { at(from) };
    Some((at(to)? - least?) as f64 / 1e3)
}

/// The wakes of a scheduler in figure 3.
fn wakes(timer: Option<&TimerOutcome>, path: TimerPath) -> Option<&TimerRow> {
    timer?.rows.iter().find(|row| row.path == path && row.store == StampStore::Array)
}

/// Figure 3 under one loading: both schedulers, by one definition.
fn ranges(loading: &Loading, timer: Option<&Loaded>) -> [PaperRow; 2] {
    let rate =
        |load: &LoadReport| Some(format!("{:.0} {} of {}", load.rate?, load.unit, load.name));
    let loads = timer.iter().flat_map(|timer| &timer.1);
    let rates: Vec<String> = loads.clone().filter_map(rate).collect();
    // Such as that no device takes part.
    let noted = |load: &LoadReport| {
        (!load.notes.is_empty()).then(|| format!("{}: {}", load.name, load.notes.join("; ")))
    };
    let notes: Vec<String> = loads.filter_map(noted).collect();
    let timer = timer.map(|(timer, _)| timer);
    SCHEDULERS.map(|Scheduler { id, path, name, note }| {
        let wakes = wakes(timer, path);
        let range = wakes.and_then(|row| Some((row.lateness_ns.max? - row.lateness_ns.min?) / 1e3));
        let id = format!("nist.fig3.{id}{}", loading.key);
        let title = format!("latest wake less earliest, {name}, {}", loading.name);
        let row = PaperRow::new(id, &title, "µs", loading.published).measured(range);
        let n = wakes.map_or(0, |row| row.n);
        let row = row.note(&format!(
            "{note}; {n} wakes, in turns with the other scheduler; figures 1 and 2 are about the \
             grid"
        ));
        let least = |row: &TimerRow| Some((row.lateness_ns.p99? - row.lateness_ns.min?) / 1e3);
        let row = match wakes.and_then(least) {
            Some(us) => row.note(&format!("99 % less the least {us:.1} µs")),
            None => row,
        };
        let row = row.note(loading.note);
        let row = if rates.is_empty() { row } else { row.note(&rates.join(", ")) };
        let row = notes.iter().fold(row, |row, note| row.note(note));
        match timer.and_then(|timer| timer.deadline_refused).filter(|_| path == TimerPath::Deadline)
        {
            Some(errno) => row.note(&format!("the kernel refused SCHED_DEADLINE (errno {errno})")),
            None => row,
        }
    })
}

/// Figure 3, as curves: the loadings in the order of [`LOADINGS`].
fn loadings_figure(timers: &[Option<&TimerOutcome>]) -> Drawing {
    let title = "lateness of wakes by loading and scheduler";
    let figure = Drawing::new("nist.fig3", title, "1 in … is later (log)", "lateness, ns (log)");
    let curves = LOADINGS.iter().zip(timers).flat_map(|(loading, timer)| {
        SCHEDULERS.map(|Scheduler { path, name, .. }| {
            (format!("here: {name}, {}", loading.key), wakes(*timer, path))
        })
    });
    curves.fold(figure.log([true; 2]), |figure, (name, row)| {
        figure.line(&name, row.map(quantiles).unwrap_or_default())
    })
}

/// Figure 3 as the paper has it: histograms by loading for each scheduler, and both under the disk.
fn loading_histograms(timers: &[Option<&TimerOutcome>]) -> Vec<Drawing> {
    let view = |loading: usize, path: TimerPath| {
        let row = wakes(timers.get(loading).copied().flatten(), path)?;
        Some(HistogramView::of(&row.lateness))
    };
    let panel = |id: &str, title: &str, shown: Vec<(String, Option<HistogramView>)>| {
        let views = shown.iter().filter_map(|(name, view)| Some((name.as_str(), view.as_ref()?)));
        let views: Vec<(&str, &HistogramView)> = views.collect();
        Drawing::new(id, title, "lateness, µs (log)", "wakes (log)")
            .log([true; 2])
            .histograms(&views)
    };
    let by_loading = |path: TimerPath| {
        let loadings = LOADINGS.iter().enumerate();
        loadings.map(|(at, loading)| (loading.name.to_owned(), view(at, path))).collect()
    };
    let [first, second] = &SCHEDULERS;
    let by_scheduler =
        [first, second].map(|scheduler| (scheduler.name.to_owned(), view(1, scheduler.path)));
    vec![
        panel("nist.fig3a", "wakes by loading, SCHED_FIFO (RTL there)", by_loading(first.path)),
        panel(
            "nist.fig3b",
            "wakes by loading, SCHED_DEADLINE (RTAI there)",
            by_loading(second.path),
        ),
        panel("nist.fig3c", "wakes under disk loading, both schedulers", by_scheduler.into()),
    ]
}

/// Figure 4: one period with the interval that the loop chose.
fn one_period<B: Bench>(
    bench: &mut B,
    own: Option<Optimum>,
) -> Result<Option<OnePeriod>, B::Error> {
    let every_ns = own.map_or(INTERVALS[4].1 * 1_000, |own| (own.a * 1e3) as u64);
    let ways = Period::from_ns(PERIOD_NS).zip(Period::from_ns(every_ns));
    let Some((period, every)) = ways else { return Ok(None) };
    let thread = bench.thread();
    let ran = bench.measure(OnePeriodExperiment { thread, period, every })?;
    Ok(ran.and_then(|(ran, _)| ran))
}

/// §1: a processor without its cache.
fn uncached() -> PaperRow {
    let title = "speed with the cache disabled, of the BYTE benchmark";
    PaperRow::new("nist.cache", title, "", "twenty-fold decrease").note(
        "not measured: user space disables no cache; measure executive and measure accuracy flush \
         the lines of what they measure",
    )
}

/// Equation 1: the load of waking each `a` µs where a wake takes `s` µs, in %.
fn load(a: f64, s: f64) -> f64 {
    ((T / a - 1.0) * s + a) / T * 100.0
}

/// The load that was measured at an interval of so many µs, %.
fn load_at(loads: &[LoadAt], us: u64) -> Option<Interval> {
    loads.iter().find(|at| at.us == us).map(|at| at.percent)
}

/// Figure 5, a row for each interval.
fn interval_rows(loads: &[LoadAt]) -> Vec<PaperRow> {
    let row = |(_, us): &(&str, u64)| {
        let percent = load_at(loads, *us);
        let title = format!("load at an interval of {us} µs");
        let row = PaperRow::new(format!("nist.fig5.{us}us"), &title, "%", "")
            .formula(load(*us as f64, S))
            .measured(percent.map(|percent| percent.value))
            .note("a plot without numbers there; here the CPU time of the loop's thread")
            .note(
                "A does not divide T: else the phase of the releases alone would set how long the \
                 last poll is, from nothing to a whole A",
            );
        match percent.and_then(|percent| percent.low) {
            Some(low) if percent.is_some_and(|percent| low < percent.value) => row.note(&format!(
                "{low:.1} % less what the host may have taken and the longest gap in a poll"
            )),
            _ => row,
        }
    };
    INTERVALS.iter().map(row).collect()
}

/// The interval of least load that the loop chose for this machine, and its load.
#[derive(Clone, Copy, Debug)]
struct Optimum {
    /// Its interval of least load, A, µs.
    a: f64,
    /// Time of a wake, S, µs.
    s: f64,
    /// Its load, %.
    load: Option<f64>,
}

/// The interval that a compensated loop chose, from what a wake takes on this machine.
fn own_optimum(compensated: Option<&MeasuredLoop>) -> Option<Optimum> {
    let run = compensated?;
    let a = run.hop_ns? as f64 / 1e3;
    Some(Optimum { a, s: a * a / T, load: run.cpu_load.map(|share| share * 100.0) })
}

/// The measured series of figure 5.
const MEASURED: &str = "here: CPU time of the loop, down to that less what others may have had";

/// From the load less what may have been others' to all of it, %.
fn error_bar(at: &LoadAt) -> Option<[f64; 3]> {
    let (low, value) = (at.percent.low?, at.percent.value);
    Some([low, value, at.percent.high.unwrap_or(value)])
}

/// Figure 5; `own`: with the S of this machine.
fn load_figure(loads: &[LoadAt], own: Option<Optimum>) -> Drawing {
    let curve = |value: &dyn Fn(f64) -> f64| -> Vec<[f64; 2]> {
        (5..=60).map(|step| f64::from(step) * 5.0).map(|a| [a, value(a)]).collect()
    };
    let figure =
        Drawing::new("nist.fig5", "load over the interval of waking", "interval, µs", "load, %")
            .line("formula: equation 1, T = 500 µs, S = 5 µs", curve(&|a| load(a, S)));
    let figure = match own {
        Some(Optimum { a, s, load: own_load }) => {
            let chosen = own_load.map(|percent| ([a, percent], ""));
            figure
                .line(
                    &format!("formula: with the S of this machine, {s:.1} µs"),
                    curve(&|a| load(a, s)),
                )
                .line(
                    "formula: that with the mean poll, A/2",
                    curve(&|a| load(a, s) - a / T * 50.0),
                )
                .points("here: the interval that the loop chose", chosen)
        }
        None => figure,
    };
    figure
        .points("published: the least load, 19 %", [([50.0, 19.0], "")])
        .points(MEASURED, loads.iter().map(|at| ([at.us as f64, at.percent.value], "")))
        .ranges(MEASURED, loads.iter().filter_map(|at| Some((at.us as f64, error_bar(at)?))))
}

/// Equations 1 to 3; `at_eq1`: the load at the interval of equation 1, %.
fn loading(rearm: Option<&MeasuredLoop>, at_eq1: Option<Interval>) -> Vec<PaperRow> {
    let best = (T * S).sqrt();
    let worst_case = "the last poll is taken to last a whole A; with its mean, A/2, the optimum is \
                      √(2TS) = 70.7 µs at 13.1 %; A must also exceed the scatter of wakes";
    let own = rearm.and_then(|run| run.cpu_load).map(|share| share * 100.0);
    let optimum = own_optimum(rearm);
    let (own_a, own_s) = (optimum.map(|own| own.a), optimum.map(|own| own.s));
    let at_own = match (own_a, own_s) {
        (Some(a), Some(s)) => format!("load at the A of this machine, {a:.1} µs for S = {s:.1} µs"),
        _ => "load at the A of this machine".to_owned(),
    };
    let own_wake =
        own_s.map_or_else(String::new, |s| format!(" with S = {s:.1} µs of this machine"));
    let at_own = PaperRow::new("nist.eq1.own", &at_own, "%", "").measured(own);
    vec![
        PaperRow::new(
            "nist.eq1",
            "load at A = 50 µs, T = 500 µs; S = 5 µs in the formula",
            "%",
            "",
        )
        .formula(load(50.0, S))
        .measured(at_eq1.map(|percent| percent.value))
        .note(worst_case)
        .note(&format!(
            "measured at A = {EQ1_AT} µs{own_wake}: 50 µs divides T, so that the phase of the \
                 releases sets how long the last poll is, and this is the mean of five phases \
                 10 µs apart"
        )),
        match own_a.zip(own_s) {
            Some((a, s)) => at_own.formula(load(a, s)),
            None => at_own,
        },
        PaperRow::new("nist.s", "service time S: what a wake takes", "µs", "5")
            .measured(own_s)
            .note(
                "assumed for figure 5 there; here the CPU time of a short sleep, from which the \
                 loop computes its interval, where the paper means the time from the timer's \
                 interrupt to the task's output",
            ),
        PaperRow::new("nist.eq2", "the interval of least load", "µs", "50")
            .formula(best)
            .measured(own_a)
            .note("measured: by the same equation, from what a wake takes here"),
        PaperRow::new("nist.eq3", "the least load", "%", "19%")
            .formula((2.0 * best - S) / T * 100.0)
            .measured(own)
            .note("the text has \"about 20%\" for the cost; measured: CPU time of the loop")
            .note("at the interval of equation 2; its formula stands at the A of this machine"),
    ]
}

/// A motor of table 1: holding torque (oz-in), steps per second, and its four cells.
struct Motor {
    id: &'static str,
    holding: f64,
    step_hz: f64,
    cells: [&'static str; 4],
}

/// Table 1: Tu, Tu%, Tc, Tc%. A step is 0.9°, 400 to a turn.
const MOTORS: [Motor; 3] = [
    Motor {
        id: "23ozin",
        holding: 23.0,
        step_hz: 6_000.0,
        cells: ["0.88", "7.6%", "0.021", "0.18%"],
    },
    Motor {
        id: "80ozin",
        holding: 80.0,
        step_hz: 2_680.0,
        cells: ["1.3", "3.2%", "0.033", "0.082%"],
    },
    Motor {
        id: "500ozin",
        holding: 500.0,
        step_hz: 6_000.0,
        cells: ["19", "7.6%", "0.46", "0.18%"],
    },
];

impl Motor {
    /// The share of its holding torque that an error of so many µs takes.
    fn lost(&self, us: f64) -> f64 {
        torque_lost_ratio(self.step_hz * us * 1e-6).0
    }
}

/// A step that loses more of its torque than this is counted apart, %.
const LOSSY: f64 = 10.0;

/// The errors of a loop's releases: what a motor loses at each step by them.
#[derive(Clone, Copy, Debug, Default)]
struct StepErrors<'a> {
    run: Option<&'a MeasuredLoop>,
}

impl<'a> StepErrors<'a> {
    fn of(run: Option<&'a MeasuredLoop>) -> Self {
        Self { run }
    }

    /// The error that this share of the steps stays below, less the least, µs.
    fn at(self, share: f64) -> Option<f64> {
        spread_us(self.run?, 0.0, share)
    }

    /// The steps at which a motor loses more than [`LOSSY`], % of all, by the lateness of each less
    /// the least; releases that never ran are among them where they are late enough.
    fn lossy(self, motor: &Motor) -> Option<f64> {
        let lateness = &self.run?.figures.lateness;
        let least = lateness.min()?;
        let loses = |bucket: &Bucket| {
            // A bucket is as late as its middle.
            let late_ns = bucket.lowest_ns.midpoint(bucket.highest_ns).saturating_sub(least);
            motor.lost(late_ns as f64 / 1e3) * 200.0 > LOSSY
        };
        let lossy: u64 = lateness.buckets().filter(loses).map(|bucket| bucket.count).sum();
        Some((lossy + lateness.overflow()) as f64 / lateness.count().max(1) as f64 * 100.0)
    }
}

/// The table, with the errors of today, uncompensated and compensated.
fn table1(errors: [StepErrors<'_>; 2]) -> Vec<PaperRow> {
    MOTORS.iter().flat_map(|motor| torques(motor, errors)).collect()
}

/// A row of table 1: four cells, and beside the torque in % what the paper does not have: that of 1
/// step in 1 000, and the steps that lose a tenth.
fn torques(motor: &Motor, errors: [StepErrors<'_>; 2]) -> Vec<PaperRow> {
    let small = |us: f64| std::f64::consts::FRAC_PI_2 * motor.step_hz * us * 1e-6;
    let published_us = [UNCOMPENSATED, COMPENSATED];
    let kinds = ["Tu", "Tc"];
    let sides = ["uncompensated", "compensated"];
    let name = motor.id.replace("ozin", " oz-in");
    let mut rows = Vec::new();
    for at in 0..2 {
        // Half of the holding torque is available.
        let cells = [
            ("", "torque lost", "oz-in", motor.holding),
            ("%", "share of its torque lost", "%", 200.0),
        ];
        let whose = format!("{name} motor, {}", sides[at]);
        for (cell, (suffix, quantity, unit, times)) in cells.into_iter().enumerate() {
            let title = format!("{whose}: {quantity}");
            let id = format!("nist.table1.{}.{}{suffix}", motor.id, kinds[at]);
            let row = PaperRow::new(id, &title, unit, motor.cells[2 * at + cell])
                .formula(small(published_us[at]) * times)
                .measured(errors[at].at(0.99).map(|us| motor.lost(us) * times))
                .note("here the error that 1 step in 100 exceeds: one stall is all of the range");
            rows.push(match at {
                0 => row.note(
                    "the printed value is 5.6 to 12.8 % above equation 7 at 3.6 µs, and no single \
                     time error explains all of them",
                ),
                _ if motor.id == "80ozin" && cell == 1 => {
                    row.note("equation 7 gives 0.0825, which rounds to 0.083")
                }
                _ => row.note("the caption's 0.0988 µs should be 0.098"),
            });
        }
        let new = |part: &str, title: &str| {
            let id = format!("nist.table1.{}.{}.{part}", motor.id, kinds[at]);
            PaperRow::new(id, title, "%", "").note("not in the paper, which has one error alone")
        };
        let title = format!("{whose}: torque that 1 step in 1 000 loses more than");
        let rare = errors[at].at(0.999).map(|us| motor.lost(us) * 200.0);
        rows.push(new("p99.9", &title).measured(rare));
        let title = format!("{whose}: steps that lose more than {LOSSY:.0} %");
        rows.push(new("lossy", &title).measured(errors[at].lossy(motor)));
    }
    rows
}

#[cfg(test)]
mod tests {
    use punctual_analysis::summary::SummaryStats;

    use super::*;
    use crate::{Paper, PaperLength};

    /// Loads at these intervals, of which 2 % may have been others'.
    fn loads(measured: &[(u64, f64)]) -> Vec<LoadAt> {
        let load = |&(us, value): &(u64, f64)| LoadAt {
            us,
            percent: Interval::between(value - 2.0, value, value),
        };
        measured.iter().map(load).collect()
    }

    #[test]
    fn the_last_poll_takes_every_length_at_each_interval_of_figure_5() {
        // As the wait does it: early wakes on multiples of the interval of the clock.
        let lengths = |us: u64, phase: u64| {
            let mut lengths: Vec<u64> = (0..us).map(|k| (phase + k * T as u64) % us).collect();
            lengths.sort_unstable();
            lengths.dedup();
            lengths.len() as u64
        };
        assert_eq!(INTERVALS.len(), 12);
        for (name, us) in INTERVALS {
            assert_eq!(name, format!("each {us} us"));
            assert!([0, 30, 123].iter().all(|&phase| lengths(us, phase) == us), "{us}");
        }
        assert_eq!(lengths(250, 30), 1, "one that divides T has one length");
        let rows = interval_rows(&loads(&[(247, 31.0)]));
        assert_eq!(rows.len(), 12);
        let last = rows.last().expect("a row");
        assert_eq!((last.id.as_str(), last.measured), ("nist.fig5.247us", Some(31.0)));
        assert!(last.note.contains("does not divide T"), "{last:?}");
        assert!(last.note.contains("29.0 % less what the host may have taken"), "{last:?}");
        assert_eq!(rows[0].measured, None);
    }

    #[test]
    fn the_formulas_give_what_the_paper_prints_where_it_is_right() {
        let rows = loading(None, None);
        let value = |id: &str| rows.iter().find(|row| row.id == id).and_then(|row| row.formula);
        assert_eq!(value("nist.eq2"), Some(50.0));
        assert!(value("nist.eq3").is_some_and(|share| (share - 19.0).abs() < 1e-9));
        assert!(value("nist.eq1").is_some_and(|share| (share - 19.0).abs() < 1e-9));
        for motor in &MOTORS {
            let rows = torques(motor, [StepErrors::default(); 2]);
            for row in rows.iter().filter(|row| !row.published.is_empty()) {
                let published: f64 = row.published.trim_end_matches('%').parse().expect("a number");
                let off = published / row.formula.expect("equation 7") - 1.0;
                let bounds = if row.id.contains(".Tu") { 0.05..0.13 } else { -0.03..0.03 };
                assert!(bounds.contains(&off), "{}: {off}", row.id);
            }
        }
    }

    #[test]
    fn a_load_stands_beside_the_interval_that_it_was_measured_at() {
        let rearm = MeasuredLoop::of_latenesses(&[5, 6, 7], 0.267, 86_800);
        let at_eq1 = |shares: [f64; 5]| mean(&shares.map(|share| Some(Interval::exact(share))));
        let rows = loading(Some(&rearm), at_eq1([30.4, 32.4, 34.4, 36.4, 38.4]));
        let row = |id: &str| rows.iter().find(|row| row.id == id).expect("a row");
        assert!(row("nist.eq1").measured.is_some_and(|share| (share - 34.4).abs() < 1e-9));
        assert!(row("nist.eq1").note.contains("at A = 50 µs with S = 15.1 µs of this machine"));
        assert_eq!((mean(&[Some(Interval::exact(1.0)), None]), mean(&[])), (None, None));
        let own = row("nist.eq1.own");
        assert!(own.title.contains("86.8 µs for S = 15.1 µs"), "{own:?}");
        assert!(own.measured.is_some_and(|share| (share - 26.7).abs() < 1e-9), "{own:?}");
        assert!(own.formula.is_some_and(|share| (share - 31.7).abs() < 0.05), "{own:?}");
        assert_eq!(row("nist.eq2").measured, Some(86.8));
        assert!(row("nist.s").measured.is_some_and(|us| (us - 15.07).abs() < 0.01));
        assert_eq!(loading(Some(&rearm), None)[0].measured, None);
        // The phases are all tenths of the interval, each once.
        let mut after: Vec<u64> =
            EQ1_PHASES.map(|(_, ns)| ns % (EQ1_AT * 1_000)).into_iter().collect();
        after.dedup();
        assert_eq!(after, [0, 10_000, 20_000, 30_000, 40_000]);
    }

    #[test]
    fn one_stall_reverses_the_range_of_figure_6_and_not_its_spreads() {
        let idle: Vec<i64> = (0..2_000).map(|at| 20_000 + at % 1_000 * 10).collect();
        let mut rearm: Vec<i64> = (0..2_000).map(|at| 5 + at % 100).collect();
        rearm[1_234] = 400_000;
        let runs = [
            MeasuredLoop::of_latenesses(&idle, 0.1, 1),
            MeasuredLoop::of_latenesses(&rearm, 0.1, 1),
        ];
        // The hundreds, of which the compensated one has the stall, too.
        let hundreds = [&idle[..], &rearm[1_200..]].map(|latenesses| {
            Samples::of(Some(&MeasuredLoop::of_latenesses(latenesses, 0.1, 1)), FEW)
        });
        let few = hundreds.each_ref().map(Option::as_ref);
        let rows = compensation(Pair { plain: Some(&runs[0]), compensated: Some(&runs[1]) }, few);
        let us = |id: &str| {
            let row = rows.iter().find(|row| row.id == format!("nist.fig6.{id}")).expect("a row");
            row.measured.unwrap_or_else(|| panic!("{row:?}"))
        };
        for key in ["p99", "p90"] {
            let [plain, with] =
                ["uncompensated", "compensated"].map(|side| us(&format!("{side}.{key}")));
            assert!(plain > 8.0 && with < 0.11, "{key}: {plain} {with}");
        }
        assert!(us("factor") > 80.0);
        // The ranges are of a hundred each: 1 µs of 10 that the long loop has, and the stall.
        let (plain, with) = (us("uncompensated"), us("compensated"));
        assert!(plain < 1.1 && with > 390.0, "{plain} {with}");
        let ranges = rows.iter().filter(|row| row.title.ends_with("peak to peak"));
        assert!(ranges.clone().all(|row| row.note.contains("of 100 samples")), "{rows:?}");
        assert_eq!(ranges.count(), 2);
    }

    #[test]
    fn what_the_tick_costs_is_the_difference_of_both_phases() {
        let calm: Vec<i64> = (0..2_000).map(|at| 5 + at % 100).collect();
        // One release in eight meets the tick.
        let met: Vec<i64> =
            calm.iter().map(|ns| ns + if ns % 8 == 0 { 17_000 } else { 0 }).collect();
        let runs =
            [MeasuredLoop::of_latenesses(&calm, 0.1, 1), MeasuredLoop::of_latenesses(&met, 0.1, 1)];
        let [quiet, zero] = [0, 1].map(|at| Pair { plain: None, compensated: Some(&runs[at]) });
        let [plain, compensated] = ticks(quiet, zero);
        assert_eq!(plain.measured, None);
        assert!(
            compensated.measured.is_some_and(|us| (16.5..17.5).contains(&us)),
            "{compensated:?}"
        );
        assert!(compensated.note.contains("away from the tick"), "{}", compensated.note);
    }

    #[test]
    fn figure_5_has_the_curve_its_minimum_and_what_was_measured() {
        let loads = loads(&[(51, 31.0)]);
        let figure = load_figure(&loads, None);
        let points: Vec<usize> = figure.series.iter().map(|series| series.points.len()).collect();
        // The bar of the last goes from what is left where others took their part.
        assert_eq!(points, [56, 1, 1, 3]);
        let bar: Vec<f64> = figure.series[3].points.iter().map(|at| at[1]).collect();
        assert_eq!(bar, [29.0, 31.0, 31.0]);
        // With the S of this machine the curve has its least where the loop is.
        let own = Optimum { a: 86.8, s: 15.07, load: Some(26.7) };
        let beside = load_figure(&loads, Some(own));
        let points: Vec<usize> = beside.series.iter().map(|series| series.points.len()).collect();
        assert_eq!(points, [56, 56, 56, 1, 1, 1, 3]);
        let least = |at: usize| {
            let points = beside.series[at].points.iter();
            points.min_by(|a, b| a[1].total_cmp(&b[1])).expect("a curve")[0]
        };
        // √(TS), and √(2TS) where the last poll takes A/2.
        assert_eq!((least(0), least(1), least(2)), (50.0, 85.0, 125.0));
        let least = figure.series[0].points.iter().min_by(|a, b| a[1].total_cmp(&b[1]));
        let [at, share] = *least.expect("a curve");
        assert!((at - 50.0).abs() < 1e-9 && (share - 19.0).abs() < 1e-9, "{at} {share}");
    }

    #[test]
    fn a_refused_scheduler_is_no_measurement_and_the_other_is_one() {
        let lateness_ns = SummaryStats {
            min: Some(2_000.0),
            p50: Some(5_000.0),
            max: Some(12_000.0),
            ..SummaryStats::default()
        };
        let row = |path: TimerPath, store: StampStore| TimerRow {
            path,
            store,
            period_ns: 500_000,
            background: Background::None,
            n: 40,
            missed: 0,
            interrupts: None,
            counters: Vec::new(),
            lateness_ns: lateness_ns.clone(),
            scatter: None,
            cpu_share: None,
            lateness: Default::default(),
            series: Vec::new(),
            series_missed: 0,
        };
        let rows =
            [StampStore::Array, StampStore::Hot].map(|store| row(TimerPath::Sleep, store)).to_vec();
        let (cpu, policy) = (1, "SCHED_FIFO".to_owned());
        let timer = TimerOutcome {
            cpu,
            policy,
            priority: Some(90),
            rows,
            deadline_refused: Some(1),
            no_counters: None,
        };
        let load = LoadReport {
            name: "disk:heavy".to_owned(),
            rate: Some(812.4),
            unit: "fsyncs/s".to_owned(),
            notes: Vec::new(),
            deaths: Vec::new(),
        };
        let mut timer = (timer, vec![load]);
        for loading in &LOADINGS {
            let [fifo, deadline] = ranges(loading, Some(&timer));
            assert_eq!((fifo.measured, deadline.measured), (Some(10.0), None));
            assert_eq!(fifo.title.replace("FIFO", "DEADLINE"), deadline.title);
            assert!(fifo.note.contains("40 wakes") && !fifo.note.contains("errno"), "{fifo:?}");
            assert!(deadline.note.contains("not measured: "), "{deadline:?}");
            assert!(deadline.note.contains("errno 1"), "{deadline:?}");
            assert!(fifo.note.contains("812 fsyncs/s of disk:heavy"), "{fifo:?}");
        }
        timer.0.rows.push(row(TimerPath::Deadline, StampStore::Array));
        let [fifo, deadline] = ranges(&LOADINGS[0], Some(&timer));
        assert_eq!(fifo.measured, deadline.measured);
        let figure = loadings_figure(&[Some(&timer.0), None, None]);
        let names: Vec<&str> = figure.series.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(names, ["here: SCHED_FIFO, normal", "here: SCHED_DEADLINE, normal"]);
        assert_eq!(figure.series[0].points, [[1.0, 2e3], [2.0, 5e3], [40.0, 12e3]]);
    }

    #[test]
    fn a_large_error_of_today_loses_all_torque_and_no_more() {
        let loop_of = |late_ns: i64| {
            let latenesses: Vec<i64> = (0..2_000i64).map(|at| at % 2 * late_ns).collect();
            MeasuredLoop::of_latenesses(&latenesses, 0.1, 1)
        };
        let (bad, good) = (loop_of(8_000_000), loop_of(100));
        let rows = torques(&MOTORS[0], [&bad, &good].map(|run| StepErrors::of(Some(run))));
        assert_eq!(rows[0].measured, Some(MOTORS[0].holding));
    }

    #[test]
    fn table_1_has_the_rare_steps_and_how_many_lose_a_tenth() {
        let mut latenesses = vec![1_000; 9_940];
        latenesses.extend([2_000; 40]);
        latenesses.extend([51_000; 20]);
        let run = MeasuredLoop::of_latenesses(&latenesses, 0.1, 1);
        let motor = &MOTORS[0];
        let rows = torques(motor, [StepErrors::of(Some(&run)), StepErrors::default()]);
        let row = |part: &str| {
            let id = format!("nist.table1.{}.{part}", motor.id);
            rows.iter().find(|row| row.id == id).expect("a row")
        };
        let near = |part: &str, us: f64, within: f64| {
            let measured = row(part).measured.expect("measured");
            assert!(
                (measured / (motor.lost(us) * 200.0) - 1.0).abs() < within,
                "{part} {measured}"
            );
        };
        // A bucket's ends differ by 1 in 64 at most.
        near("Tu.p99.9", 50.0, 0.05);
        assert_eq!(row("Tu%").measured, Some(0.0), "1 in 100 is no later than the least");
        assert_eq!(row("Tu.lossy").measured, Some(0.2));
        for part in ["Tc.p99.9", "Tc.lossy"] {
            assert!(row(part).measured.is_none() && row(part).note.contains("not measured"));
            assert!(row(part).published.is_empty() && row(part).formula.is_none());
        }
    }

    /// Samples of which these releases were missed.
    fn missing(releases: &[u64]) -> Samples {
        let mut run = MeasuredLoop::of_latenesses(&crate::claim::evenly(9, 90, 300, false), 0.1, 1);
        run.first.retain(|sample| !releases.contains(&sample.cycle));
        Samples::of(Some(&run), FEW).expect("enough")
    }

    #[test]
    fn figure_2_is_tried_again_only_where_there_is_time() {
        let of_paper = |length| {
            tries(Span::from_ns((Paper::Nist.seconds(length, false) * TRIES_SHARE * 1e9) as i64))
        };
        assert_eq!(of_paper(PaperLength::Quick), 1);
        assert_eq!(of_paper(PaperLength::Usual), TRIES.len());
        assert_eq!((tries(Span::ZERO), tries(Span::from_ns(11_000_000_000))), (1, 2));
    }

    #[test]
    fn rows_of_figures_1_and_2_say_whether_the_samples_follow_each_other() {
        let (whole, broken) = (missing(&[]), missing(&[40, 45, 130, 220]));
        let note = |few: &Samples, many: (Samples, usize), id: &str| {
            let rows = jitters(Some(few), Some(&many));
            let row = rows.into_iter().find(|row| row.id == format!("nist.{id}")).expect("a row");
            (row.measured.is_some(), row.note)
        };
        let (_, text) = note(&whole, (whole.clone(), 1), "fig2");
        assert!(text.contains("consecutive samples, 5 s, as there; the figure's"), "{text}");
        let (_, text) = note(&whole, (whole.clone(), 3), "fig2");
        assert!(text.contains("that run 3 had"), "{text}");
        let (is_measured, text) = note(&whole, (broken.clone(), 3), "fig2");
        assert!(is_measured && text.contains("which 1 release was missed"), "{text}");
        assert!(text.contains("the fewest of 3 runs"), "{text}");
        let (_, text) = note(&whole, (broken.clone(), 1), "fig2");
        assert!(text.contains("of one run, for which alone there was time"), "{text}");
        let (is_measured, text) = note(&broken, (whole.clone(), 1), "fig1.first");
        assert!(!is_measured && text.contains("among the first 100 was missed"), "{text}");
        let (_, text) = note(&whole, (whole.clone(), 1), "fig1b.clusters");
        assert!(text.contains("one cluster"), "{text}");
    }
}
