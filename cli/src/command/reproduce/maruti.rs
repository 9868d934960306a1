//! *Temporal accuracy on the Pentium Pro* (Maruti).

use anyhow::Result;
use punctual_lab::accuracy::{AccuracyOutcome, AccuracyRow, SHARE_MIN};
use punctual_lab::timer::{Background, TimerOutcome, TimerRow};
use punctual_report::reproduced::ReproducedRow;

use super::Bench;
use super::row;

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
    rows.extend(corrections(of));
    let timer = bench.timer(
        &[100_000, 15_000],
        &[Background::Nop, Background::Cpuid],
        ("none", bench.share(0.4)),
    )?;
    rows.extend(timers(timer.as_ref(), of.map(|of| of.tick_ns)));
    rows.extend(dispatch(timer.as_ref()));
    bench.draw(of.map(|of| super::waits(of, COUNTERS)).unwrap_or_default());
    bench.draw(timer.as_ref().map(super::timers).unwrap_or_default());
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

/// Why there is no period of these errors.
fn no_period(row: &AccuracyRow) -> String {
    let known: Vec<f64> = row.curve.iter().flatten().copied().collect();
    let offsets = row.curve.len();
    if known.len() * 2 < offsets {
        let known = known.len();
        return format!(
            "not measured: only {known} of {offsets} offsets have an exit that nothing interrupted"
        );
    }
    if known.iter().all(|error| *error == known[0]) {
        return format!("not measured: the median error is the same at all {offsets} offsets");
    }
    format!(
        "not measured: no period stands out of {} offsets, the best explains less than {:.0} % of \
         the variance of their median errors",
        known.len(),
        SHARE_MIN * 100.0
    )
}

/// Figures 2 to 6.
fn waits(of: Option<&AccuracyOutcome>) -> Vec<ReproducedRow> {
    let [plain, fenced] = COUNTERS;
    let at = |exit, code: Option<&str>, cache| of.and_then(|of| row(of, (exit, code, cache)));
    let aligned = at(plain, Some("aligned"), "warm");
    // Without a counter that is trusted, no way to read it is measured.
    let no_counter = "not measured: the processor's counter is not trusted here, which the \
                      warnings explain";
    let no_period = aligned.map_or_else(|| no_counter.to_owned(), no_period);
    // Where nothing was measured at all, that is no fault of the counter.
    let or = |row: ReproducedRow, value: Option<f64>, why: &str| match of {
        Some(_) => row.measured_or(value, why),
        None => row.measured(value),
    };
    let new = |id: &str, what: &str, published: &str| {
        ReproducedRow::new(format!("maruti.{id}"), what, "cycles", published)
    };
    let step = "where this counter advances in coarse steps, their period hides the loop's";
    vec![
        new("fig2", "the loop's comparison, bits", "").formula(64.0).note(
            "the paper's loop compares the low 32 bits only, which is right within 2³¹ cycles \
                 of the target; not measured: the loop here compares 64",
        ),
        or(
            new("fig3.period", "period of the errors over the offset", "32"),
            aligned.and_then(|row| row.period).map(|of| of.ticks),
            &no_period,
        )
        .note("31 or 33 in some runs there")
        .note(step),
        or(
            new("fig3.poll", "from poll to poll", "31 to 33"),
            aligned.and_then(|row| row.poll_ticks),
            no_counter,
        ),
        or(
            new("fig3.spread", "range of the errors, 5 to 95 %", "32"),
            aligned.map(spread),
            no_counter,
        ),
        or(
            new("fig4", "the same with the cache disabled", "256"),
            at(plain, Some("aligned"), "cold code").map(spread),
            no_counter,
        )
        .note("the loop's lines are flushed before each wait: user space disables no cache"),
        or(
            new("fig5", "from poll to poll with the slower read", ""),
            at(fenced, Some("aligned"), "warm").and_then(|row| row.poll_ticks),
            no_counter,
        )
        .note("RDMSR needs the kernel: a fenced read stands in; a plot without numbers there"),
        or(
            new("fig6", "range of the errors, code not aligned", ""),
            at(plain, Some("split"), "warm").map(spread),
            no_counter,
        )
        .note("larger than fig3.spread there; a plot without numbers"),
    ]
}

/// Figures 7 and 8.
fn corrections(of: Option<&AccuracyOutcome>) -> [ReproducedRow; 2] {
    let at = |exit| of.and_then(|of| row(of, (exit, None, "warm"))).map(spread);
    let new = |id: &str, what: &str, published: &str| {
        ReproducedRow::new(format!("maruti.{id}"), what, "cycles", published)
    };
    let corrected = new("fig8", "range of the errors with the delay table", "2");
    let corrected = match of {
        Some(_) => corrected.measured_or(
            at("corrected"),
            "not measured: no delay could be calibrated, polls of one length were too rare",
        ),
        None => corrected.measured(None),
    };
    [
        new("fig7", "range of the errors without correction", "")
            .measured(at("plain"))
            .note("the loop of punctual's clock; a plot without numbers there"),
        corrected
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
        let row = rows.iter().find(is)?;
        let ns = &row.lateness_ns;
        let range = ns.p99.zip(ns.min).zip(tick_ns).map(|((p99, min), tick)| (p99 - min) / tick);
        Some(range.ok_or(row.n))
    };
    let measured = |row: ReproducedRow, behind: &str, period_ns| match spread(behind, period_ns) {
        Some(Err(n)) => row.note(&format!("not measured: {n} wakes, too few for 1 in 100")),
        found => row.measured(found.and_then(Result::ok)),
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
                measured(row, behind, period_ns).note(
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

#[cfg(test)]
mod tests {
    use super::*;

    /// An aligned plain loop with these median errors, of which no period stands out.
    fn outcome(curve: Vec<Option<f64>>) -> AccuracyOutcome {
        let row = AccuracyRow {
            exit: COUNTERS[0].to_owned(),
            code: Some("aligned".to_owned()),
            cache: "warm".to_owned(),
            lead_ticks: 1_000.0,
            offsets: curve.len() as u64,
            sweeps: 4,
            n: 2_048,
            interrupted: 0,
            interrupted_worst_ns: None,
            min_ticks: 20.0,
            p5_ticks: 44.0,
            p50_ticks: 47.0,
            p95_ticks: 51.0,
            max_ticks: 99.0,
            poll_ticks: Some(31.0),
            period: None,
            curve,
        };
        AccuracyOutcome { tick_ns: 0.5, interrupted_from_ns: 1_000, rows: vec![row] }
    }

    fn note(of: Option<&AccuracyOutcome>, id: &str) -> String {
        let row =
            waits(of).into_iter().chain(corrections(of)).find(|row| row.id == id).expect("a row");
        assert_eq!(row.measured, None, "{row:?}");
        row.note
    }

    #[test]
    fn a_period_that_does_not_stand_out_is_no_interruption() {
        let period = |curve| note(Some(&outcome(curve)), "maruti.fig3.period");
        let noise = (0..512u32).map(|at| Some(f64::from(at * at % 7))).collect();
        let text = period(noise);
        assert!(text.contains("no period stands out of 512 offsets"), "{text}");
        assert!(text.contains("less than 5 %") && !text.contains("ended early"), "{text}");
        let few = (0..512).map(|at| (at < 200).then_some(44.0)).collect();
        assert!(period(few).contains("only 200 of 512 offsets"));
        assert!(period(vec![Some(44.0); 512]).contains("is the same at all 512 offsets"));
    }

    #[test]
    fn what_this_machine_does_not_have_is_named_and_an_interruption_only_where_there_was_one() {
        let none = AccuracyOutcome { tick_ns: 1.0, interrupted_from_ns: 1_000, rows: Vec::new() };
        for id in ["fig3.period", "fig3.poll", "fig3.spread", "fig4", "fig5", "fig6"] {
            let text = note(Some(&none), &format!("maruti.{id}"));
            assert!(text.contains("counter is not trusted"), "{id}: {text}");
        }
        assert!(note(Some(&none), "maruti.fig8").contains("no delay could be calibrated"));
        let rows = waits(None).into_iter().chain(corrections(None));
        for row in rows.filter(|row| row.id != "maruti.fig2") {
            let ended = row.clone().ended_early();
            assert!(!row.note.contains("ended early"), "{row:?}");
            assert!(ended.note.contains("not measured: the run ended early"), "{ended:?}");
        }
    }
}
