//! *Tuning the kernel for LinuxCNC*.

use anyhow::Result;
use punctual_engine::wait_policy::WaitKind;
use punctual_report::Run;
use punctual_report::reproduced::{PaperFigure, ReproducedRow};

use super::{Bench, LoopCondition};
use crate::experiment::COLD_CYCLES;

/// How long the paper's runs are.
const RUN_S: f64 = 1_500.0;

/// Its rows.
pub(super) fn rows(bench: &mut Bench<'_>) -> Result<Vec<ReproducedRow>> {
    let loaded =
        LoopCondition { load: "linuxcnc", ..LoopCondition::idle("linuxcnc", WaitKind::Sleep) };
    let conditions = [
        LoopCondition::idle("idle", WaitKind::Sleep),
        loaded,
        LoopCondition { tuned: true, ..LoopCondition::idle("idle tuned", WaitKind::Sleep) },
        LoopCondition { name: "linuxcnc tuned", tuned: true, ..loaded },
    ];
    let tuned = bench.tuned().map(|paths| paths.join(", "));
    let conditions = &conditions[..if tuned.is_some() { 4 } else { 2 }];
    let length = bench.share(0.9);
    let runs = bench.loops(1_000_000, conditions, (length, COLD_CYCLES))?;
    bench.draw([histograms(&runs)]);
    let each_s = length.as_ns() as f64 / 1e9 / conditions.len() as f64;
    let mut rows = Vec::new();
    for LoopCondition { name, tuned: is_tuned, .. } in conditions {
        let published = if *name == "linuxcnc" { ["1000s", "100"] } else { ["", ""] };
        let found = histogram(name, published, runs.iter().find(|run| run.name == *name));
        match tuned.as_ref().filter(|_| *is_tuned) {
            Some(paths) => rows.extend(found.map(|row| row.note(&format!("settings: {paths}")))),
            None => rows.extend(found),
        }
    }
    let scaled = format!("scaled: {each_s:.0} s a condition here, so rarer latencies are not seen");
    rows.push(
        ReproducedRow::new("linuxcnc.duration", "length of a run", "s", "1500")
            .formula(RUN_S)
            .measured((!runs.is_empty()).then_some(each_s))
            .note(&scaled),
    );
    if tuned.is_none() {
        let what = "the same after tuning at run time";
        rows.push(ReproducedRow::new("linuxcnc.tuned", what, "ns", "").note(
            "not measured: --tune writes settings of this machine for some blocks, and puts them \
             back; histograms without numbers there",
        ));
    }
    rows.extend(recipe(bench));
    Ok(rows)
}

/// The paper's figure: before and after tuning, where --tune was given.
fn histograms(runs: &[Run]) -> PaperFigure {
    let what = "histograms of a 1 ms thread, all conditions";
    let figure = PaperFigure::new("linuxcnc.fig", what, "lateness, µs (log)", "wakes (log)");
    let views: Vec<_> = runs.iter().map(|run| (&*run.name, &run.outcome.histogram)).collect();
    super::histograms(figure.log([true; 2]), &views)
}

/// Largest latency and deviation of the interval.
fn histogram(name: &str, published: [&str; 2], run: Option<&Run>) -> [ReproducedRow; 2] {
    let of = |value: fn(&Run) -> Option<f64>| run.and_then(value);
    let note = run
        .map(|run| run.loads.iter().filter_map(|load| load.note.clone()).collect::<Vec<_>>())
        .unwrap_or_default()
        .join("; ");
    let new = |key: &str, what: &str, published: &str| {
        let id = format!("linuxcnc.{}.{key}", name.replace(' ', "-"));
        let row = ReproducedRow::new(id, what, "ns", published);
        let row = if note.is_empty() { row } else { row.note(&note) };
        if published.is_empty() {
            row.note("a histogram without numbers there")
        } else {
            row.note("tuned desktops there, no kernel parameters set here")
        }
    };
    [
        new("latency", "largest |interval| of a 1 ms thread", published[0])
            .measured(of(|run| run.outcome.jitters.interval_max_abs_ns)),
        new("deviation", "standard deviation of the interval", published[1])
            .measured(of(|run| run.outcome.jitters.interval_stddev_ns)),
    ]
}

/// The recipe where it is wrong, and what is right here.
fn recipe(bench: &Bench<'_>) -> Vec<ReproducedRow> {
    let here = bench.here();
    let online = here.cpu.online_cpus.value();
    let cpus = online.map_or_else(|| "unknown CPUs".to_owned(), |cpus| format!("CPUs {cpus}"));
    let runtime = here.limits.rt_throttling.value().map(|of| of.runtime_us as f64);
    let new = |key: &str, what: &str, published: &str, note: &str| {
        ReproducedRow::new(format!("linuxcnc.recipe.{key}"), what, "", published)
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
        ReproducedRow::new(
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
