//! *Tuning the kernel for LinuxCNC*.

mod claims;

use punctual_analysis::histogram::Histogram;
use punctual_analysis::quantile::Probability;
use punctual_analysis::recording::RunFigures;
use punctual_engine::wait_policy::WaitKind;
use punctual_host::facts::MachineFacts;

use crate::Reproduction;
use crate::bench::{Bench, COLD_CYCLES, LoopCondition, LoopPhase, LoopSet, MeasuredLoop};
use crate::figure::Drawing;
use crate::row::PaperRow;
use claims::Missing;

/// Length of the paper's runs, s.
const RUN_S: f64 = 1_500.0;

/// A thread of latency-histogram.
struct Thread {
    /// The end of ids of its figure, and what ids of its rows begin with.
    key: &'static str,
    prefix: &'static str,
    name: &'static str,
    period_ns: u64,
    /// Where its releases lie.
    lies: &'static str,
}

/// Where both threads lie, one beside the other.
const AT_THE_TICK: &str =
    "both threads at once, at multiples of their periods, where the kernel's tick is";

/// The share of the time that both threads are measured, and that the servo thread alone is.
const SHARE: f64 = 0.9;
const QUIET_SHARE: f64 = 0.1;

/// The base thread, which makes steps, and the servo thread.
const THREADS: [Thread; 2] = [
    Thread {
        key: "base",
        prefix: "base.",
        name: "25 µs base",
        period_ns: 25_000,
        lies: AT_THE_TICK,
    },
    Thread {
        key: "servo",
        prefix: "",
        name: "1 ms servo",
        period_ns: 1_000_000,
        lies: AT_THE_TICK,
    },
];

/// The servo thread where no tick meets it: a machine with a step generator in hardware needs no
/// base thread, and may choose its phase.
const QUIET: Thread = Thread {
    key: "quiet",
    prefix: "quiet.",
    name: "1 ms servo",
    period_ns: THREADS[1].period_ns,
    lies: "without a base thread, at a quiet phase, away from the kernel's tick",
};

/// The time in which both threads run as long under each condition as there, s.
pub(crate) fn full_seconds(is_tuned: bool) -> f64 {
    RUN_S * conditions_of(is_tuned) as f64 / SHARE
}

/// Idle and loaded, and both again with the settings.
const fn conditions_of(is_tuned: bool) -> usize {
    if is_tuned { 4 } else { 2 }
}

/// Its rows and claims.
///
/// # Errors
/// Why it cannot be measured.
pub fn reproduce<B: Bench>(bench: &mut B) -> Result<Reproduction, B::Error> {
    let loaded =
        LoopCondition { load: "linuxcnc", ..LoopCondition::idle("linuxcnc", WaitKind::Sleep) };
    let conditions = [
        LoopCondition::idle("idle", WaitKind::Sleep),
        loaded,
        LoopCondition { tuned: true, ..LoopCondition::idle("idle tuned", WaitKind::Sleep) },
        LoopCondition { name: "linuxcnc tuned", tuned: true, ..loaded },
    ];
    let tuned = bench.tuned().map(|paths| (paths.len(), paths.join(", ")));
    let conditions = &conditions[..conditions_of(tuned.is_some())];
    let (length, keep) = (bench.share(SHARE), 0);
    let periods_ns = THREADS.each_ref().map(|thread| thread.period_ns);
    let (cold, phase, period_ns) = (COLD_CYCLES, LoopPhase::Zero, periods_ns[0]);
    let loops = LoopSet { period_ns, conditions, length, cold, phase, keep };
    // Both at once on one CPU, as latency-histogram runs them.
    let mut of_threads = bench.together(&periods_ns, &loops)?;
    bench.draw(histograms(&of_threads, conditions));
    let mut rows = Vec::new();
    let none = Vec::new();
    for (thread, runs) in THREADS.iter().zip(of_threads.iter().chain(std::iter::repeat(&none))) {
        rows.extend(thread_rows(thread, conditions, runs));
    }
    let quiet_conditions = [
        LoopCondition { name: "idle quiet", ..conditions[0] },
        LoopCondition { name: "linuxcnc quiet", ..conditions[1] },
    ];
    let quiet_loops = LoopSet {
        period_ns: QUIET.period_ns,
        conditions: &quiet_conditions,
        length: bench.share(QUIET_SHARE),
        phase: LoopPhase::Quiet,
        ..loops
    };
    rows.extend(thread_rows(&QUIET, &quiet_conditions, &bench.loops(&quiet_loops)?));
    let runs = of_threads.pop().unwrap_or_default();
    rows.push(duration(&runs));
    let changed = PaperRow::new("linuxcnc.tuned", "settings changed at run time", "", "");
    rows.push(match &tuned {
        Some((count, paths)) => changed.measured(Some(*count as f64)).note(paths),
        None => changed.note(
            "not measured: --tune writes settings of this machine for some blocks, and puts them \
             back; histograms without numbers there",
        ),
    });
    rows.extend(recipe(bench.machine()));
    let claims = claims::claims(&runs, &Missing::of(bench.machine(), bench.cpu()));
    Ok(Reproduction { rows, claims })
}

/// The row of the length of a run: of the condition that ran shortest, by the releases that it had.
fn duration(runs: &[MeasuredLoop]) -> PaperRow {
    let seconds = |run: &MeasuredLoop| {
        let RunFigures { cycles, missed, unrecorded, .. } = &run.figures;
        let releases = cycles + missed.unwrap_or(0) + unrecorded;
        releases as f64 * THREADS[1].period_ns as f64 / 1e9
    };
    let shortest_s = runs.iter().map(seconds).reduce(f64::min);
    let row = PaperRow::new("linuxcnc.duration", "length of a run", "s", "1500")
        .formula(RUN_S)
        .measured(shortest_s);
    match shortest_s {
        Some(each_s) if each_s < RUN_S * 0.99 => row.note(&format!(
            "scaled: {each_s:.0} s a condition here, so rarer latencies are not seen"
        )),
        _ => row,
    }
}

/// The rows of a thread. What the page of LinuxCNC prints of tuned machines stands beside the tuned
/// loop under load, and beside the untuned one where none was tuned.
fn thread_rows(
    thread: &Thread,
    conditions: &[LoopCondition],
    runs: &[MeasuredLoop],
) -> Vec<PaperRow> {
    let is_any_tuned = conditions.iter().any(|condition| condition.tuned);
    let mut rows = Vec::new();
    for LoopCondition { name, load, tuned, .. } in conditions {
        let is_printed = *load == "linuxcnc" && *tuned == is_any_tuned && thread.prefix.is_empty();
        let published = if is_printed { ["1000s", "100"] } else { ["", ""] };
        let run = runs.iter().find(|run| run.name == *name);
        let found = histogram(thread, (name, *tuned), published, run);
        match tuned {
            true => rows.extend(
                found.map(|row| row.note("settings: the row of those changed at run time")),
            ),
            false => rows.extend(found),
        }
    }
    rows
}

/// The columns of a histogram to each side of zero, and the share of the intervals that they show
/// at each side, where most of them lie no nearer to zero than the tenth of that.
const COLUMNS: usize = 40;
const SHOWN: f64 = 0.999;
const MOST: f64 = 0.95;
const FARTHEST: u64 = 10;

/// The paper's figure: both threads beside each other, and where --tune was given each before
/// tuning and after it.
fn histograms(of_threads: &[Vec<MeasuredLoop>], conditions: &[LoopCondition]) -> Vec<Drawing> {
    let is_any_tuned = conditions.iter().any(|condition| condition.tuned);
    let side = |thread: &Thread, is_after: bool| {
        let (end, when) = if is_after { (".tuned", ", tuned") } else { ("", "") };
        let title = format!("histograms of the {} thread{when}", thread.name);
        let id = format!("linuxcnc.fig.{}{end}", thread.key);
        Drawing::new(id, &title, "interval less the period, µs", "intervals (log)")
            .log([false, true])
    };
    let threads = || THREADS.iter().zip(of_threads);
    match is_any_tuned {
        true => threads()
            .flat_map(|(thread, runs)| {
                let sides = [false, true]
                    .map(|is_after| (side(thread, is_after), views(runs, conditions, is_after)));
                signed(sides.into())
            })
            .collect(),
        false => signed(
            threads()
                .map(|(thread, runs)| (side(thread, false), views(runs, conditions, false)))
                .collect(),
        ),
    }
}

/// The intervals of loops before tuning or after it, each with its name.
fn views<'h>(
    runs: &'h [MeasuredLoop],
    conditions: &[LoopCondition],
    is_after: bool,
) -> NamedIntervals<'h> {
    let names = conditions.iter().filter(|condition| condition.tuned == is_after);
    let names: Vec<&str> = names.map(|condition| condition.name).collect();
    let own = runs.iter().filter(|run| names.contains(&&*run.name));
    own.map(|run| (run.name.clone(), &run.figures.intervals)).collect()
}

/// The intervals of loops, each with its name.
type NamedIntervals<'h> = Vec<(String, &'h Histogram)>;

/// Histograms about zero in figures beside each other, all in the same columns, as far as nearly
/// all values of all of them lie, and no farther than leaves four columns to each side to most of
/// the widest; what lies beyond is counted in their names.
fn signed(figures: Vec<(Drawing, NamedIntervals<'_>)>) -> Vec<Drawing> {
    // Of few values all are shown.
    let far = |histogram: &Histogram, share: f64| {
        let at = |share| histogram.quantile(Probability::from_share(share)?);
        let ends = [at(1.0 - share).or(histogram.min()), at(share).or(histogram.max())];
        ends.into_iter().flatten().map(i64::unsigned_abs).max()
    };
    let farthest = |share: f64| {
        let of_all = figures.iter().flat_map(|(_, views)| views);
        of_all.filter_map(|(_, histogram)| far(histogram, share)).max().unwrap_or(0)
    };
    let farthest_ns = farthest(SHOWN).min(farthest(MOST).saturating_mul(FARTHEST));
    let width_ns = (farthest_ns as f64 * 1.01 / COLUMNS as f64).max(1.0);
    let edge = |column: usize| (column as f64 - COLUMNS as f64) * width_ns / 1e3;
    let edges_us: Vec<f64> = (0..=2 * COLUMNS).map(edge).collect();
    let drawn = |figure: Drawing, (name, histogram): (String, &Histogram)| {
        let (mut counts, mut beyond) = (vec![0; 2 * COLUMNS], histogram.overflow());
        for bucket in histogram.buckets() {
            let middle_ns = (bucket.lowest_ns as f64 + bucket.highest_ns as f64) / 2.0;
            let column = (middle_ns / width_ns).floor() + COLUMNS as f64;
            let column = (column >= 0.0).then_some(column as usize);
            match column.and_then(|column| counts.get_mut(column)) {
                Some(count) => *count += bucket.count,
                None => beyond += bucket.count,
            }
        }
        let name = match beyond {
            _ if histogram.count() == 0 => format!("here: {name} (no two releases in a row ran)"),
            0 => format!("here: {name}"),
            more => format!("here: {name} ({more} beyond)"),
        };
        figure.steps(&name, &edges_us, &counts)
    };
    let figure = |(at, (figure, views)): (usize, (Drawing, NamedIntervals<'_>))| {
        // A figure of none at all has no scale.
        let has_any = views.iter().any(|(_, histogram)| histogram.count() > 0);
        let views = if has_any { views } else { Vec::new() };
        let figure = views.into_iter().fold(figure, drawn);
        Drawing { beside: at > 0, ..figure }
    };
    figures.into_iter().enumerate().map(figure).collect()
}

/// The name of a condition in titles.
fn titled(name: &str) -> String {
    match name.strip_prefix("linuxcnc") {
        Some(rest) => format!("loaded{rest}"),
        None => name.to_owned(),
    }
}

/// Largest latency and deviation of the interval.
fn histogram(
    thread: &Thread,
    (name, is_tuned): (&str, bool),
    published: [&str; 2],
    run: Option<&MeasuredLoop>,
) -> [PaperRow; 2] {
    let note = run.map(|run| run.load_notes.join("; ")).unwrap_or_default();
    let jitters = run.map(|run| &run.figures.jitters);
    let new = |key: &str, title: &str, published: &str| {
        let condition = name.trim_end_matches(" quiet").replace(' ', "-");
        let id = format!("linuxcnc.{}{condition}.{key}", thread.prefix);
        let title = format!("{title} of a {} thread, {}", thread.name, titled(name));
        let row = PaperRow::new(id, &title, "ns", published);
        let row = if note.is_empty() { row } else { row.note(&note) };
        let row = match (published.is_empty(), is_tuned) {
            (true, _) => row.note("a histogram without numbers there"),
            (false, true) => row.note("tuned desktops there, settings of run time alone here"),
            (false, false) => row.note("tuned desktops there, no settings changed here"),
        };
        row.note(thread.lies)
    };
    [
        new("latency", "largest |interval less period|", published[0])
            .measured(jitters.and_then(|jitters| jitters.interval_max_abs_ns)),
        new("deviation", "standard deviation of the interval", published[1])
            .measured(jitters.and_then(|jitters| jitters.interval_stddev_ns)),
    ]
}

/// The recipe where it is wrong, and what is right here.
fn recipe(machine: &MachineFacts) -> Vec<PaperRow> {
    let online = machine.cpu.online_cpus.value();
    let cpus = online.map_or_else(|| "unknown CPUs".to_owned(), |cpus| format!("CPUs {cpus}"));
    let runtime = machine.limits.rt_throttling.value();
    let runtime = runtime.map(|throttling| throttling.runtime_us as f64);
    let new = |key: &str, title: &str, published: &str, note: &str| {
        PaperRow::new(format!("linuxcnc.recipe.{key}"), title, "", published).note(note)
    };
    let parameter = machine.isolation.isolcpus_parameter.value();
    let parameter = match parameter {
        Some(value) => format!("this boot has isolcpus={value}"),
        None => "this boot has none".to_owned(),
    };
    let unknown = "not measured: no kernel does anything on it";
    vec![
        new(
            "isolcpus",
            "CPUs for real-time tasks",
            "isolcpus=(N/2)-N",
            &format!(
                "CPUs are numbered from 0, so the list must end at N-1 (or names an SMT sibling); \
                 the kernel rejects a list with a CPU that does not exist; here: {cpus}; the flag \
                 form is older than 6.6 (4.15, 5.6), and without flags it still means domain"
            ),
        )
        .note(&parameter)
        .note("not measured: what it does takes a result of a boot with it and of one without"),
        new(
            "kthread_cpus",
            "CPUs for kernel threads",
            "kthread_cpus=0-(N/2-1)",
            "no mainline kernel knows it (6.1, 6.12, 7.2): it is passed to init",
        )
        .note(unknown),
        new(
            "amd_idle",
            "idle states of AMD processors",
            "amd_idle.max_cstate=1",
            "names no mainline driver; a parameter with a dot is never reported as unknown",
        )
        .note(unknown),
        PaperRow::new(
            "linuxcnc.recipe.rt_runtime",
            "real-time runtime in each period",
            "µs",
            "kernel.sched_rt_runtime_us=-1",
        )
        .formula(950_000.0)
        .measured(runtime)
        .note(
            "a sysctl, not sysfs; its default is 0.95 s in each second, not at a time; where the \
             fair server throttles (6.12 and newer), -1 does not end that; measured: the value \
             now, which punctual leaves alone",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A loop with this name whose lateness is so much in turns, ns.
    fn run(name: &str, lateness_ns: [i64; 2]) -> MeasuredLoop {
        let values: Vec<i64> = (0..400).map(|at| lateness_ns[at % 2]).collect();
        MeasuredLoop { name: name.to_owned(), ..MeasuredLoop::of_latenesses(&values, 0.1, 1) }
    }

    fn conditions(tuned: bool) -> Vec<LoopCondition> {
        let loaded =
            LoopCondition { load: "linuxcnc", ..LoopCondition::idle("linuxcnc", WaitKind::Sleep) };
        let with = LoopCondition { name: "linuxcnc tuned", tuned: true, ..loaded };
        let conditions = vec![LoopCondition::idle("idle", WaitKind::Sleep), loaded];
        if tuned { conditions.into_iter().chain([with]).collect() } else { conditions }
    }

    #[test]
    fn what_is_printed_of_tuned_machines_stands_beside_the_tuned_loop() {
        let runs = [run("linuxcnc", [9_000, 1_000]), run("linuxcnc tuned", [2_000, 1_000])];
        let printed = |tuned: bool, thread: &Thread| {
            let rows = thread_rows(thread, &conditions(tuned), &runs);
            let rows = rows.into_iter().filter(|row| !row.published.is_empty());
            rows.map(|row| (row.id, row.published, row.measured)).collect::<Vec<_>>()
        };
        let [base, servo] = &THREADS;
        for tuned in [false, true] {
            assert!(printed(tuned, base).is_empty());
            let (name, largest) =
                if tuned { ("linuxcnc-tuned", 1_000.0) } else { ("linuxcnc", 8_000.0) };
            let rows = printed(tuned, servo);
            let ids: Vec<&str> = rows.iter().map(|row| row.0.as_str()).collect();
            let wanted = ["latency", "deviation"].map(|key| format!("linuxcnc.{name}.{key}"));
            assert_eq!(ids, wanted);
            assert_eq!((rows[0].1.as_str(), rows[0].2), ("1000s", Some(largest)));
        }
        let rows = thread_rows(servo, &conditions(false), &runs);
        assert!(rows.iter().all(|row| row.note.contains("both threads at once")), "{rows:?}");
        assert!(rows.iter().all(|row| row.note.contains("where the kernel's tick is")));
    }

    #[test]
    fn a_run_is_as_long_as_it_ran_whatever_was_planned() {
        let row = duration(&[run("idle", [1_000, 2_000]), run("linuxcnc", [1_000, 2_000])]);
        // 400 releases of 1 ms.
        assert!(row.measured.is_some_and(|s| (s - 0.4).abs() < 1e-9), "{row:?}");
        assert!(row.note.contains("scaled: 0 s a condition here"), "{row:?}");
        let mut whole = run("idle", [1_000, 2_000]);
        (whole.figures.cycles, whole.figures.missed) = (1_499_000, Some(1_000));
        let row = duration(std::slice::from_ref(&whole));
        assert_eq!((row.measured, row.note.as_str()), (Some(1_500.0), ""));
        assert!(duration(&[]).note.contains("not measured"));
    }

    #[test]
    fn histograms_are_of_intervals_with_shorter_ones_below_zero() {
        let threads = [vec![run("idle", [2_000, 5_000])], vec![run("idle", [1_000, 9_000])]];
        let figures = histograms(&threads, &conditions(false));
        let [base, servo] = &figures[..] else { panic!("{figures:?}") };
        assert_eq!((base.id.as_str(), base.beside), ("linuxcnc.fig.base", false));
        assert_eq!((servo.id.as_str(), servo.beside), ("linuxcnc.fig.servo", true));
        for (figure, us) in [(base, 3.0), (servo, 8.0)] {
            let points = &figure.series[0].points;
            let held: Vec<&[[f64; 2]]> =
                points.windows(2).filter(|pair| pair[0][1] > 0.0).collect();
            let [short, long] = held[..] else { panic!("{held:?}") };
            // In turns so much longer and so much shorter than the period.
            assert!(short[0][0] <= -us && -us <= short[1][0], "{short:?}");
            assert!(long[0][0] <= us && us <= long[1][0], "{long:?}");
            assert_eq!(short[0][1] + long[0][1], 399.0);
        }
        let edges =
            |figure: &Drawing| figure.series[0].points.iter().map(|at| at[0]).collect::<Vec<_>>();
        assert_eq!(edges(base), edges(servo), "the same columns");
        // A few far ones do not press the others into two columns.
        let mut values: Vec<i64> = (0..4_000).map(|at| [0, 3_000][at % 2]).collect();
        for stall in 0..10 {
            values[400 * stall + 200] = 2_000_000;
        }
        let stalled = MeasuredLoop {
            name: "idle".to_owned(),
            ..MeasuredLoop::of_latenesses(&values, 0.1, 1)
        };
        let figures = histograms(&[vec![stalled], Vec::new()], &conditions(false));
        let series = &figures[0].series[0];
        let last_us = series.points.last().expect("columns")[0];
        assert!((29.0..35.0).contains(&last_us), "{last_us}");
        assert_eq!(series.name, "here: idle (20 beyond)");
        // A loop of which no two releases in a row ran is named beside one that has intervals.
        let mut gaps = run("linuxcnc", [1_000, 1_000]);
        gaps.figures.intervals = Histogram::new();
        let beside =
            histograms(&[vec![run("idle", [2_000, 5_000]), gaps], Vec::new()], &conditions(false));
        let names: Vec<&str> = beside[0].series.iter().map(|series| &*series.name).collect();
        assert_eq!(names, ["here: idle", "here: linuxcnc (no two releases in a row ran)"]);
        let empty = histograms(&[Vec::new(), Vec::new()], &conditions(false));
        assert!(empty.iter().all(|figure| figure.series.is_empty()));
    }
}
