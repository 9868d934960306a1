//! *Tuning the kernel for LinuxCNC*.

mod claims;

use punctual_analysis::histogram::HistogramView;
use punctual_engine::wait_policy::WaitKind;
use punctual_host::facts::MachineFacts;

use crate::Reproduction;
use crate::bench::{Bench, COLD_CYCLES, LoopCondition, LoopPhase, LoopSet, MeasuredLoop};
use crate::figure::{Drawing, beside_each_other};
use crate::row::PaperRow;

/// How long the paper's runs are.
const RUN_S: f64 = 1_500.0;

/// A thread of latency-histogram.
struct Thread {
    /// The end of ids of its figure, and what ids of its rows begin with.
    key: &'static str,
    prefix: &'static str,
    name: &'static str,
    period_ns: u64,
}

/// The share of the time that each thread is measured.
const SHARE: f64 = 0.45;

/// The base thread, which makes steps, and the servo thread.
const THREADS: [Thread; 2] = [
    Thread { key: "base", prefix: "base.", name: "25 µs base", period_ns: 25_000 },
    Thread { key: "servo", prefix: "", name: "1 ms servo", period_ns: 1_000_000 },
];

/// The time in which each thread runs as long under each condition as there, s.
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
    let (cold, phase) = (COLD_CYCLES, LoopPhase::Zero);
    let mut of_threads = Vec::new();
    for thread in &THREADS {
        let (period_ns, length) = (thread.period_ns, bench.share(SHARE));
        of_threads.push(bench.loops(&LoopSet {
            period_ns,
            conditions,
            length,
            cold,
            phase,
            keep: 0,
        })?);
    }
    bench.draw(histograms(&of_threads, tuned.is_some()));
    let mut rows = Vec::new();
    for (thread, runs) in THREADS.iter().zip(&of_threads) {
        for LoopCondition { name, tuned: is_tuned, .. } in conditions {
            let is_printed = *name == "linuxcnc" && thread.prefix.is_empty();
            let published = if is_printed { ["1000s", "100"] } else { ["", ""] };
            let run = runs.iter().find(|run| run.name == *name);
            let found = histogram(thread, name, published, run);
            match is_tuned {
                true => rows.extend(found.map(|row| row.note("settings: row linuxcnc.tuned"))),
                false => rows.extend(found),
            }
        }
    }
    let runs = of_threads.pop().unwrap_or_default();
    let each_s = bench.share(SHARE).as_secs_f64() / conditions.len() as f64;
    let scaled = match each_s < RUN_S * 0.99 {
        true => format!("scaled: {each_s:.0} s a condition here, so rarer latencies are not seen"),
        false => String::new(),
    };
    rows.push(
        PaperRow::new("linuxcnc.duration", "length of a run", "s", "1500")
            .formula(RUN_S)
            .measured((!runs.is_empty()).then_some(each_s))
            .note(&scaled),
    );
    let changed = PaperRow::new("linuxcnc.tuned", "settings changed at run time", "", "");
    rows.push(match &tuned {
        Some((count, paths)) => changed.measured(Some(*count as f64)).note(paths),
        None => changed.note(
            "not measured: --tune writes settings of this machine for some blocks, and puts them \
             back; histograms without numbers there",
        ),
    });
    rows.extend(recipe(bench.machine()));
    let claims = claims::claims(&runs, &claims::missing(bench.machine(), bench.cpu()));
    Ok(Reproduction { rows, claims })
}

/// The paper's figure: both threads beside each other, and where --tune was given each before
/// tuning and after it.
fn histograms(of_threads: &[Vec<MeasuredLoop>], tuned: bool) -> Vec<Drawing> {
    let side = |thread: &Thread, is_after: bool| {
        let (end, when) = if is_after { (".tuned", ", tuned") } else { ("", "") };
        let title = format!("histograms of the {} thread{when}", thread.name);
        let id = format!("linuxcnc.fig.{}{end}", thread.key);
        Drawing::new(id, &title, "lateness, µs (log)", "wakes (log)").log([true, true])
    };
    let threads = || THREADS.iter().zip(of_threads);
    match tuned {
        true => threads()
            .flat_map(|(thread, runs)| {
                let sides =
                    [false, true].map(|is_after| (side(thread, is_after), views(runs, is_after)));
                beside_each_other(sides.into())
            })
            .collect(),
        false => beside_each_other(
            threads().map(|(thread, runs)| (side(thread, false), views(runs, false))).collect(),
        ),
    }
}

/// The histograms of loops before tuning or after it, each with its name.
fn views(runs: &[MeasuredLoop], is_after: bool) -> Vec<(String, &HistogramView)> {
    let is_of = |run: &&MeasuredLoop| run.name.ends_with("tuned") == is_after;
    let own = runs.iter().filter(is_of);
    own.map(|run| (run.name.clone(), &run.figures.histogram)).collect()
}

/// Largest latency and deviation of the interval.
fn histogram(
    thread: &Thread,
    name: &str,
    published: [&str; 2],
    run: Option<&MeasuredLoop>,
) -> [PaperRow; 2] {
    let note = run.map(|run| run.load_notes.join("; ")).unwrap_or_default();
    let jitters = run.map(|run| &run.figures.jitters);
    let new = |key: &str, title: &str, published: &str| {
        let id = format!("linuxcnc.{}{}.{key}", thread.prefix, name.replace(' ', "-"));
        let title = format!("{title} of a {} thread", thread.name);
        let row = PaperRow::new(id, &title, "ns", published);
        let row = if note.is_empty() { row } else { row.note(&note) };
        if published.is_empty() {
            row.note("a histogram without numbers there")
        } else {
            row.note("tuned desktops there, no kernel parameters set here")
        }
    };
    [
        new("latency", "largest |interval|", published[0])
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
        PaperRow::new(format!("linuxcnc.recipe.{key}"), title, "", published)
            .note(note)
            .note("not measured: it takes effect at boot")
    };
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
        ),
        new(
            "kthread_cpus",
            "CPUs for kernel threads",
            "kthread_cpus=0-(N/2-1)",
            "no mainline kernel knows it (6.1, 6.12, 7.2): it is passed to init",
        ),
        new(
            "amd_idle",
            "idle states of AMD processors",
            "amd_idle.max_cstate=1",
            "names no mainline driver; a parameter with a dot is never reported as unknown",
        ),
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
