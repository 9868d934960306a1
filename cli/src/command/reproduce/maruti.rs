//! *Temporal accuracy on the Pentium Pro* (Maruti).

use anyhow::Result;
use punctual_lab::accuracy::{AccuracyOutcome, AccuracyRow};
use punctual_lab::timer::{Background, TimerOutcome, TimerRow};

use super::bench::Bench;
use super::figures::{self, row};
use crate::report::reproduced::ReproducedRow;

/// The reads of the counter: the plain one, and a fenced one.
const COUNTERS: [&str; 2] = match cfg!(target_arch = "aarch64") {
    true => ["cntvct", "isb+cntvct"],
    false => ["rdtsc", "lfence+rdtsc"],
};

/// Its rows.
pub(super) fn rows(bench: &mut Bench<'_>) -> Result<Vec<ReproducedRow>> {
    let measured = bench.accuracy(bench.share(0.5))?;
    let of = measured.as_ref();
    let mut rows = waits(of);
    let timer = bench.timer(
        &[100_000, 15_000],
        &[Background::Nop, Background::Cpuid],
        ("none", bench.share(0.4)),
    )?;
    rows.extend(timers(timer.as_ref(), of.map(|of| of.tick_ns)));
    rows.extend(dispatch(timer.as_ref()));
    bench.draw(of.map(|of| figures::waits(of, COUNTERS)).unwrap_or_default());
    bench.draw(timer.as_ref().map(figures::timers).unwrap_or_default());
    let goal = of.and_then(|of| Some((of, row(of, ("corrected", None, "warm"))?)));
    rows.push(
        ReproducedRow::new("maruti.goal", "accuracy of a dispatch, 5 to 95 %", "ns", "100")
            .measured(goal.map(|(of, row)| spread(row) * of.tick_ns))
            .note("\"less than 100 nanoseconds\" is what the paper expects; measured: the exit"),
    );
    Ok(rows)
}

fn spread(row: &AccuracyRow) -> f64 {
    row.p95_ticks - row.p5_ticks
}

/// Figures 3 to 8.
fn waits(of: Option<&AccuracyOutcome>) -> Vec<ReproducedRow> {
    let [plain, fenced] = COUNTERS;
    let at = |exit, code: Option<&str>, cache| of.and_then(|of| row(of, (exit, code, cache)));
    let aligned = at(plain, Some("aligned"), "warm");
    let new = |id: &str, what: &str, published: &str| {
        ReproducedRow::new(format!("maruti.{id}"), what, "cycles", published)
    };
    let step = "where this counter advances in coarse steps, their period hides the loop's";
    vec![
        new("fig2", "the loop's comparison, bits", "").formula(64.0).note(
            "the paper's loop compares the low 32 bits only, which is right within 2³¹ cycles \
                 of the target; not measured: the loop here compares 64",
        ),
        new("fig3.period", "period of the errors over the offset", "32")
            .measured(aligned.and_then(|row| row.period).map(|of| of.ticks))
            .note("31 or 33 in some runs there")
            .note(step),
        new("fig3.poll", "from poll to poll", "31 to 33")
            .measured(aligned.and_then(|row| row.poll_ticks)),
        new("fig3.spread", "range of the errors, 5 to 95 %", "32").measured(aligned.map(spread)),
        new("fig4", "the same with the cache disabled", "256")
            .measured(at(plain, Some("aligned"), "cold code").map(spread))
            .note("the loop's lines are flushed before each wait: user space disables no cache"),
        new("fig5", "from poll to poll with the slower read", "")
            .measured(at(fenced, Some("aligned"), "warm").and_then(|row| row.poll_ticks))
            .note("RDMSR needs the kernel: a fenced read stands in; a plot without numbers there"),
        new("fig6", "range of the errors, code not aligned", "")
            .measured(at(plain, Some("split"), "warm").map(spread))
            .note("larger than fig3.spread there; a plot without numbers"),
        new("fig7", "range of the errors without correction", "")
            .measured(at("plain", None, "warm").map(spread))
            .note("the loop of punctual's clock; a plot without numbers there"),
        new("fig8", "range of the errors with the delay table", "2")
            .measured(at("corrected", None, "warm").map(spread))
            .note("best case of a table tuned by hand there; here 5 to 95 % of a computed delay"),
    ]
}

/// A figure of timer interrupts: what runs behind, and whether the cache is on.
struct Figure {
    id: &'static str,
    behind: &'static str,
    cached: bool,
    published: &'static str,
    note: &'static str,
}

const FIGURES: [Figure; 4] = [
    Figure { id: "fig9", behind: "cpuid", cached: true, published: "", note: "" },
    Figure {
        id: "fig10",
        behind: "nop",
        cached: true,
        published: "11",
        note: "\"periodicity of 512 clock cycles\" must be 512 samples, a page of 8-byte stamps; \
               \"200 MHz bus clock\" is the core clock",
    },
    Figure { id: "fig11", behind: "cpuid", cached: false, published: "", note: "" },
    Figure { id: "fig12", behind: "nop", cached: false, published: "", note: "" },
];

/// Figures 9 to 12: how far timer interrupts scatter.
fn timers(of: Option<&TimerOutcome>, tick_ns: Option<f64>) -> Vec<ReproducedRow> {
    let spread = |behind: &str, period_ns: u64| {
        let rows = of.map_or(&[][..], |of| &of.rows);
        let is = |row: &&TimerRow| {
            row.path == "sleep"
                && row.store == "array"
                && row.background == behind
                && row.period_ns == period_ns
        };
        let ns = &rows.iter().find(is)?.lateness_ns;
        Some((ns.p99? - ns.min?) / tick_ns?)
    };
    let mut rows = Vec::new();
    for figure in FIGURES {
        for (suffix, period_ns) in [("100us", 100_000), ("15us", 15_000)] {
            let Figure { id, behind, cached, published, note } = figure;
            let cache = if cached { "enabled" } else { "disabled" };
            let what = format!("range of timer interrupts, {behind} behind, cache {cache}");
            let row =
                ReproducedRow::new(format!("maruti.{id}.{suffix}"), &what, "cycles", published);
            let row = if note.is_empty() {
                row.note("a plot without numbers there")
            } else {
                row.note(note)
            };
            rows.push(if cached {
                row.measured(spread(behind, period_ns)).note(
                    "here the wake of a thread by an absolute sleep, quantile 0.99 less the least",
                )
            } else {
                row.note("not measured: user space disables no cache")
            });
        }
    }
    rows
}

/// The question that the paper leaves open: dispatch by `mdelay`, or by a timer?
fn dispatch(of: Option<&TimerOutcome>) -> Vec<ReproducedRow> {
    let mut rows = Vec::new();
    for path in ["mdelay", "sleep"] {
        let is = |row: &&TimerRow| {
            row.path == path
                && row.store == "array"
                && row.background == "nop"
                && row.period_ns == 100_000
        };
        let found = of.and_then(|of| of.rows.iter().find(is));
        let new = |key: &str, what: &str, unit: &str| {
            let what = format!("dispatch by {path} each 100 µs: {what}");
            ReproducedRow::new(format!("maruti.dispatch.{path}.{key}"), &what, unit, "")
                .note("an open question there: which is better?")
        };
        rows.push(
            new("median", "median lateness", "ns")
                .measured(found.and_then(|row| row.lateness_ns.p50)),
        );
        rows.push(new("p99", "1 in 100", "ns").measured(found.and_then(|row| row.lateness_ns.p99)));
        rows.push(
            new("cost", "share of the CPU", "%")
                .measured(found.and_then(|row| row.cpu_share).map(|share| share * 100.0)),
        );
    }
    rows
}
