//! *Tuning the kernel for LinuxCNC*.

mod claims;

use punctual_engine::wait_policy::WaitKind;
use punctual_host::facts::MachineFacts;

use crate::Reproduction;
use crate::bench::{Bench, COLD_CYCLES, LoopCondition, LoopPhase, LoopSet, MeasuredLoop};
use crate::figure::Drawing;
use crate::row::PaperRow;

/// How long the paper's runs are.
const RUN_S: f64 = 1_500.0;

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
    let tuned = bench.tuned().map(|paths| paths.join(", "));
    let conditions = &conditions[..if tuned.is_some() { 4 } else { 2 }];
    let length = bench.share(0.9);
    let (cold, phase) = (COLD_CYCLES, LoopPhase::Zero);
    let runs =
        bench.loops(&LoopSet { period_ns: 1_000_000, conditions, length, cold, phase, keep: 0 })?;
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
        PaperRow::new("linuxcnc.duration", "length of a run", "s", "1500")
            .formula(RUN_S)
            .measured((!runs.is_empty()).then_some(each_s))
            .note(&scaled),
    );
    if tuned.is_none() {
        let title = "the same after tuning at run time";
        rows.push(PaperRow::new("linuxcnc.tuned", title, "ns", "").note(
            "not measured: --tune writes settings of this machine for some blocks, and puts them \
             back; histograms without numbers there",
        ));
    }
    rows.extend(recipe(bench.machine()));
    let claims = claims::claims(&runs, &claims::missing(bench.machine(), bench.cpu()));
    Ok(Reproduction { rows, claims })
}

/// The paper's figure: before and after tuning, where --tune was given.
fn histograms(runs: &[MeasuredLoop]) -> Drawing {
    let title = "histograms of a 1 ms thread, all conditions";
    let figure = Drawing::new("linuxcnc.fig", title, "lateness, µs (log)", "wakes (log)");
    let views: Vec<_> = runs.iter().map(|run| (&*run.name, &run.figures.histogram)).collect();
    figure.log([true; 2]).histograms(&views)
}

/// Largest latency and deviation of the interval.
fn histogram(name: &str, published: [&str; 2], run: Option<&MeasuredLoop>) -> [PaperRow; 2] {
    let note = run.map(|run| run.load_notes.join("; ")).unwrap_or_default();
    let jitters = run.map(|run| &run.figures.jitters);
    let new = |key: &str, title: &str, published: &str| {
        let id = format!("linuxcnc.{}.{key}", name.replace(' ', "-"));
        let row = PaperRow::new(id, title, "ns", published);
        let row = if note.is_empty() { row } else { row.note(&note) };
        if published.is_empty() {
            row.note("a histogram without numbers there")
        } else {
            row.note("tuned desktops there, no kernel parameters set here")
        }
    };
    [
        new("latency", "largest |interval| of a 1 ms thread", published[0])
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
