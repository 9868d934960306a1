//! *Temporal accuracy on the Pentium Pro* (Maruti).

mod claims;
mod dispatch;
pub mod spin_exit;

use punctual_analysis::plain::significant;
use punctual_core::time::Period;
use punctual_engine::wait_policy::WaitKind;
use punctual_host::facts::Frequency;
use punctual_lab::accuracy::{
    AccuracyExperiment, AccuracyOutcome, AccuracyRow, Calibrate, LoopPeriod, SHARE_MIN,
    period_of_blocks,
};
use punctual_lab::timer::{
    Background, ProcessorCount, SERIES, StampStore, TimerExperiment, TimerOutcome, TimerPath,
    TimerRow,
};

use crate::bench::{Bench, COLD_CYCLES, LoopCondition, LoopPhase, LoopSet};
use crate::figure::Drawing;
use crate::row::PaperRow;
use crate::{Reproduction, expiry};
use claims::Evidence;
use dispatch::Dispatch;

/// The reads of the counter: the plain one, and a fenced one.
const COUNTERS: [&str; 2] = match cfg!(target_arch = "aarch64") {
    true => ["cntvct", "isb+cntvct"],
    false => ["rdtsc", "lfence+rdtsc"],
};

/// The share of the CPU that the wait that learns may take.
const BUDGET: f64 = 0.5;

/// The exits of the paper, for `measure accuracy`.
pub const RIVALS: [Calibrate; 1] = [spin_exit::corrected];

/// Its rows and claims.
///
/// # Errors
/// Why it cannot be measured.
pub fn reproduce<B: Bench>(bench: &mut B) -> Result<Reproduction, B::Error> {
    let accuracy = bench.measure(AccuracyExperiment {
        thread: bench.thread(),
        duration: bench.share(0.45),
        rivals: RIVALS.to_vec(),
    })?;
    let accuracy = accuracy.map(|(accuracy, _)| accuracy);
    let accuracy = accuracy.as_ref();
    let mut rows = waits(accuracy);
    rows.extend(exit_counts(accuracy));
    rows.extend(corrections(accuracy));
    let timer = bench.measure(TimerExperiment {
        thread: bench.thread(),
        periods: PERIODS.iter().filter_map(|(_, ns)| Period::from_ns(*ns)).collect(),
        backgrounds: vec![Background::Nop, Background::Cpuid],
        duration: bench.share(0.35),
        in_a_row: SERIES,
        loads: Vec::new(),
    })?;
    let timer = timer.map(|(timer, _)| timer);
    rows.extend(timers(timer.as_ref(), accuracy.map(|accuracy| accuracy.tick_ns)));
    for (suffix, period_ns) in PERIODS {
        rows.extend(expiry::measured(bench, &format!("maruti.fig10.{suffix}.expiry"), period_ns)?);
    }
    let length = bench.share(0.1);
    let learned = bench.loops(&LoopSet {
        period_ns: dispatch::PERIOD_NS,
        conditions: &[LoopCondition::idle("learned", WaitKind::Adaptive(BUDGET))],
        length,
        cold: COLD_CYCLES,
        phase: LoopPhase::Quiet,
        keep: 0,
    })?;
    let ways = Dispatch::ways(timer.as_ref(), learned.first());
    rows.extend(ways.iter().flat_map(Dispatch::rows));
    bench.draw(accuracy.map(wait_figures).unwrap_or_default());
    bench.draw(timer.as_ref().map(timer_figures).unwrap_or_default());
    rows.extend(dispatch::goal(&ways));
    let cycles_in_tick =
        accuracy.and_then(|accuracy| cycles_in_tick(&bench.machine().frequency, accuracy.tick_ns));
    let claims = Evidence { accuracy, timer: timer.as_ref(), ways: &ways, cycles_in_tick }.claims();
    Ok(Reproduction { rows, claims })
}

/// The most cycles of the core in a tick of the counter, by the highest frequency that a governor
/// may choose; `None` where the machine does not show it.
fn cycles_in_tick(frequency: &Frequency, tick_ns: f64) -> Option<f64> {
    // This driver may show the nominal frequency as the highest, and boost beyond it.
    let is_driver = frequency.frequency_driver.value().is_some_and(|name| name == "acpi-cpufreq");
    let is_beyond = is_driver && frequency.boost.value().is_none_or(|boost| *boost);
    let range = frequency.frequency.value().filter(|_| !is_beyond)?;
    Some(range.max_khz as f64 / 1e6 * tick_ns)
}

/// The note on the unit of a row that the paper has in cycles of the core.
fn in_ticks(row: PaperRow, tick_ns: Option<f64>) -> PaperRow {
    match tick_ns {
        Some(ns) => row.note(&format!(
            "in ticks of {} ns, the counter's: no cycles of the core on today's processors",
            significant(ns)
        )),
        None => row,
    }
}

/// Why no way to read the counter is measured.
const NO_COUNTER: &str =
    "not measured: the processor's counter is not trusted here, which the warnings explain";

/// A way to wait as one of the figures has it.
#[derive(Clone, Copy)]
struct ExitKind {
    exit: &'static str,
    /// The placement of its code; `None` where the compiler places it.
    code: Option<&'static str>,
    cache: &'static str,
}

impl ExitKind {
    /// The loop of figures 3 to 6.
    const LOOP: Self = Self { exit: COUNTERS[0], code: Some("aligned"), cache: "warm" };
    /// With a read of the counter that waits for what is before it.
    const FENCED: Self = Self { exit: COUNTERS[1], ..Self::LOOP };
    /// With its code out of the cache at each poll.
    const COLD: Self = Self { cache: "cold polls", ..Self::LOOP };
    /// With its code in two cache lines.
    const SPLIT: Self = Self { code: Some("split"), ..Self::LOOP };
    /// The loop of the library's clock.
    const PLAIN: Self = Self { exit: "plain", code: None, ..Self::LOOP };
    /// That with a computed delay.
    const CORRECTED: Self = Self { exit: "corrected", ..Self::PLAIN };

    /// Its row; those that enter late are left aside where the cache is warm.
    fn row(self, accuracy: &AccuracyOutcome) -> Option<&AccuracyRow> {
        accuracy.rows.iter().find(|row| {
            row.exit == self.exit
                && row.code.as_deref() == self.code
                && row.cache == self.cache
                && (self.cache != "warm" || row.lead_ticks > 0.0)
        })
    }
}

/// The errors from 5 to 95 %, ticks.
fn spread(row: &AccuracyRow) -> f64 {
    row.p95_ticks - row.p5_ticks
}

/// Why there is no period of these errors, in single sweeps.
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
         the variance of single sweeps",
        known.len(),
        SHARE_MIN * 100.0
    )
}

/// Figures 2 to 6.
fn waits(accuracy: Option<&AccuracyOutcome>) -> Vec<PaperRow> {
    let row = |kind: ExitKind| accuracy.and_then(|accuracy| kind.row(accuracy));
    let aligned = row(ExitKind::LOOP);
    let no_period = aligned.map_or_else(|| NO_COUNTER.to_owned(), no_period);
    // Where nothing was measured at all, that is no fault of the counter.
    let or = |row: PaperRow, value: Option<f64>, why: &str| match accuracy {
        Some(_) => row.measured_or(value, why),
        None => row.measured(value),
    };
    let new = |id: &str, title: &str, published: &str| {
        let row = PaperRow::new(format!("maruti.{id}"), title, "ticks", published);
        in_ticks(row, accuracy.map(|accuracy| accuracy.tick_ns))
    };
    let cold = row(ExitKind::COLD);
    let noted =
        |row: PaperRow, note: Option<String>| note.iter().fold(row, |row, note| row.note(note));
    vec![
        PaperRow::new("maruti.fig2", "the loop's comparison", "bits", "").formula(32.0).note(
            "the paper's loop compares the low 32 bits only, which is right within 2³¹ cycles \
                 of the target; not measured: the loop here compares 64",
        ),
        noted(
            or(
                new("fig3.period", "period of the errors over the offset", "32 clock cycles"),
                aligned.and_then(|row| row.period).map(|period| period.ticks),
                &no_period,
            )
            .note("31 or 33 in some runs there"),
            step_note(accuracy),
        ),
        or(
            new("fig3.poll", "from poll to poll", "31 to 33 clock cycles"),
            aligned.and_then(|row| row.poll_ticks),
            NO_COUNTER,
        ),
        quiet(
            or(
                new("fig3.spread", "range of the errors, 5 to 95 %", "32 clock cycles"),
                aligned.map(spread),
                NO_COUNTER,
            ),
            accuracy,
            aligned,
        ),
        or(
            new("fig4", "the same with the cache disabled", "256 clock cycles"),
            cold.map(spread),
            NO_COUNTER,
        )
        .note("the loop's lines are flushed before each poll: user space disables no cache"),
        noted(
            or(
                new("fig4.period", "period of the errors with the cache disabled", ""),
                cold.and_then(|row| row.period).map(|period| period.ticks),
                &cold.map_or_else(|| NO_COUNTER.to_owned(), self::no_period),
            )
            .note("none is named there: 256 is the range of the errors"),
            cold.map(swept_cold),
        ),
        or(
            new("fig5", "from poll to poll with the slower read", ""),
            row(ExitKind::FENCED).and_then(|row| row.poll_ticks),
            NO_COUNTER,
        )
        .note("RDMSR needs the kernel: a fenced read stands in; a plot without numbers there"),
        or(
            new("fig6", "range of the errors, code not aligned", ""),
            row(ExitKind::SPLIT).map(spread),
            NO_COUNTER,
        )
        .note("larger than fig3.spread there; a plot without numbers"),
    ]
}

/// The note on a counter whose steps hide the period of the loop of figure 3, and what the loop
/// with a slower read shows beside it; `None` where they do not.
fn step_note(accuracy: Option<&AccuracyOutcome>) -> Option<String> {
    let accuracy = accuracy?;
    let step = accuracy.counter_step()?;
    let plain = ExitKind::LOOP.row(accuracy).filter(|row| !row.shows_polls(step))?;
    let poll = plain.poll_ticks.map_or_else(String::new, |poll| format!("{poll:.1} ticks, "));
    let hidden = format!(
        "the counter advances by {step:.1} ticks here, and this period is its own: a poll is \
         {poll}less than two such steps"
    );
    let fenced = ExitKind::FENCED.row(accuracy).filter(|row| row.shows_polls(step));
    let beside = fenced.and_then(|row| {
        let (period, poll) = (row.period?.ticks, row.poll_ticks?);
        Some(format!("; with the slower read errors repeat every {period:.1} at {poll:.1} a poll"))
    });
    Some(hidden + &beside.unwrap_or_default())
}

/// The note on how far a sweep of cold polls goes.
fn swept_cold(row: &AccuracyRow) -> String {
    let poll = row.poll_ticks.map_or_else(String::new, |poll| {
        format!("; a poll takes {poll:.0} at least, with what flushes it")
    });
    let longest = row.periods.first().map_or_else(String::new, |period| {
        format!("; periods were tried up to {:.0}", period.ticks)
    });
    let swept = row.offsets as f64 * row.stride_ticks;
    format!("offsets over {swept:.0} ticks{longest}{poll}")
}

/// A row with notes: what stands in for a bare machine without interrupts, and the interrupts that
/// came in spite of it.
fn quiet(
    row: PaperRow,
    accuracy: Option<&AccuracyOutcome>,
    measured: Option<&AccuracyRow>,
) -> PaperRow {
    let row = row.note(
        "a kernel of its own on a bare machine there, interrupts disabled, which its counters \
         confirmed; here a thread of SCHED_FIFO",
    );
    let Some((accuracy, measured)) = accuracy.zip(measured) else { return row };
    let apart = format!(
        "{} exits of {} are more than {} ns late and left out",
        measured.interrupted,
        measured.interrupted + measured.n,
        accuracy.interrupted_from_ns
    );
    let row = row.note(&apart);
    let Some(sweeps) = measured.quiet_sweeps else {
        return row.note("the kernel counts no interrupts here, so no sweep is known to be quiet");
    };
    let row =
        row.note(&format!("no interrupt was counted in {sweeps} of {} sweeps", measured.sweeps));
    let row = accuracy.no_counters.iter().fold(row, |row, why| row.note(why));
    match measured.quiet.and_then(|quiet| quiet.middle()) {
        Some(middle) => {
            row.note(&format!("{:.1} ticks in these, of which claims are", middle.value))
        }
        None => row.note("claims are of all sweeps"),
    }
}

/// Counts of the processor's own counters beside the sweeps of figure 3, a row for each; none where
/// the processor shows none, which the row of the spread says.
fn exit_counts(accuracy: Option<&AccuracyOutcome>) -> Vec<PaperRow> {
    let Some(row) = accuracy.and_then(|accuracy| ExitKind::LOOP.row(accuracy)) else {
        return Vec::new();
    };
    let new = |count: &ProcessorCount| {
        let title = format!("{} of the CPU for each exit", count.event.replace('-', " "));
        let exits = row.n + row.interrupted;
        PaperRow::new(format!("maruti.fig3.{}", count.event), &title, "", "")
            .measured(Some(count.count / exits as f64))
            .note(
                "read there, and printed nowhere; by the processor's own counters, with all that \
                 ran on the CPU",
            )
    };
    row.counters.iter().map(new).collect()
}

/// Figures 7 and 8.
fn corrections(accuracy: Option<&AccuracyOutcome>) -> [PaperRow; 2] {
    let spread = |kind: ExitKind| accuracy.and_then(|accuracy| kind.row(accuracy)).map(spread);
    let new = |id: &str, title: &str, published: &str| {
        let row = PaperRow::new(format!("maruti.{id}"), title, "ticks", published);
        in_ticks(row, accuracy.map(|accuracy| accuracy.tick_ns))
    };
    let corrected = new("fig8", "range of the errors with the delay table", "2 clock cycles");
    let trial = accuracy.and_then(|accuracy| ExitKind::CORRECTED.row(accuracy)?.note.as_ref());
    let corrected = match accuracy {
        Some(_) => corrected.measured_or(
            spread(ExitKind::CORRECTED),
            "not measured: no delay could be calibrated, polls of one length were too rare",
        ),
        None => corrected.measured(None),
    };
    [
        new("fig7", "range of the errors without correction", "")
            .measured(spread(ExitKind::PLAIN))
            .note("the loop of punctual's clock; a plot without numbers there"),
        trial.iter().fold(corrected, |row, trial| row.note(trial)).note(
            "best case of a table tuned by hand there, which delays the entry into the polls, so \
             that one of them meets the target; here 5 to 95 % of a delay that is computed when \
             the polls are left, and polls again what is left where it is too early",
        ),
    ]
}

/// A figure of timer interrupts: what runs behind, and whether the cache is on.
struct TimerFigure {
    id: &'static str,
    behind: Background,
    cached: bool,
    published: &'static str,
    note: &'static str,
}

const FIGURES: [TimerFigure; 4] = [
    TimerFigure { id: "fig9", behind: Background::Cpuid, cached: true, published: "", note: "" },
    TimerFigure {
        id: "fig10",
        behind: Background::Nop,
        cached: true,
        published: "11 clock cycle",
        note: "\"periodicity of 512 clock cycles\" must be 512 samples, a page of 8-byte stamps; \
               \"200 MHz bus clock\" is the core clock",
    },
    TimerFigure { id: "fig11", behind: Background::Cpuid, cached: false, published: "", note: "" },
    TimerFigure { id: "fig12", behind: Background::Nop, cached: false, published: "", note: "" },
];

/// The periods of the timer: the ends of their ids, ns.
const PERIODS: [(&str, u64); 2] = [("100us", 100_000), ("15us", 15_000)];

impl TimerFigure {
    /// Its wakes with this period, in titles.
    fn condition(&self, period_ns: u64) -> String {
        let cache = if self.cached { "enabled" } else { "disabled" };
        format!("each {} µs, {} behind, cache {cache}", period_ns / 1_000, self.behind.name())
    }

    /// Where its stamps go: beside a cache that is disabled there, it is cold here.
    fn store(&self) -> StampStore {
        if self.cached { StampStore::Array } else { StampStore::Cold }
    }

    /// Its row, of wakes by an absolute sleep.
    fn row<'t>(&self, timer: &'t TimerOutcome, period_ns: u64) -> Option<&'t TimerRow> {
        timer_row(timer, (TimerPath::Sleep, self.store()), self.behind, period_ns)
    }
}

/// The row of a path with its stamps there and this work behind.
fn timer_row(
    timer: &TimerOutcome,
    (path, store): (TimerPath, StampStore),
    behind: Background,
    period_ns: u64,
) -> Option<&TimerRow> {
    timer.rows.iter().find(|row| {
        row.path == path
            && row.store == store
            && row.background == behind
            && row.period_ns == period_ns
    })
}

/// Figures 9 to 12: how far timer interrupts scatter.
fn timers(timer: Option<&TimerOutcome>, tick_ns: Option<f64>) -> Vec<PaperRow> {
    let spread = |figure: &TimerFigure, period_ns: u64| {
        let row = figure.row(timer?, period_ns)?;
        let ns = &row.lateness_ns;
        let range = ns.p99.zip(ns.min).zip(tick_ns).map(|((p99, min), tick)| (p99 - min) / tick);
        Some(range.ok_or(row.n))
    };
    let measured = |row: PaperRow, figure, period_ns| match spread(figure, period_ns) {
        Some(Err(n)) => row.note(&format!("not measured: {n} wakes, too few for 1 in 100")),
        found => row.measured(found.and_then(Result::ok)),
    };
    let mut rows = Vec::new();
    for figure in &FIGURES {
        for (suffix, period_ns) in PERIODS {
            let &TimerFigure { id, cached, published, note, .. } = figure;
            let title = format!("range of timer interrupts, {}", figure.condition(period_ns));
            let row = PaperRow::new(format!("maruti.{id}.{suffix}"), &title, "ticks", published);
            let row = in_ticks(row, tick_ns);
            let row = if note.is_empty() {
                row.note("a plot without numbers there")
            } else {
                row.note(note)
            };
            let row = measured(row, figure, period_ns).note(
                "an interrupt handler on a bare machine there; here the wake of a thread by an \
                 absolute sleep, quantile 0.99 less the least",
            );
            rows.push(match cached {
                true => row,
                false => row.note(
                    "user space disables no cache: here 2 MiB are read before each wait, and the \
                     expiries that pass meanwhile left out",
                ),
            });
            rows.push(interrupts(timer, figure, (suffix, period_ns)));
            rows.extend(counted(timer, figure, (suffix, period_ns)));
        }
    }
    rows.extend(PERIODS.map(|period| stores(timer, tick_ns, period)));
    rows.extend(PERIODS.map(|period| spikes(timer, period)));
    rows
}

/// The row of interrupts for each wake, for which the paper reads the processor's own counters.
fn interrupts(
    timer: Option<&TimerOutcome>,
    figure: &TimerFigure,
    (suffix, period_ns): (&str, u64),
) -> PaperRow {
    let row = timer.and_then(|timer| figure.row(timer, period_ns));
    let each = row.and_then(|row| Some(row.interrupts? as f64 / row.n as f64));
    let id = format!("maruti.{}.{suffix}.interrupts", figure.id);
    let title = format!("interrupts of the CPU for each wake, {}", figure.condition(period_ns));
    let measured = PaperRow::new(id, &title, "", "").measured(each);
    let why = timer.and_then(|timer| timer.no_counters.as_ref());
    why.iter().fold(measured, |row, why| row.note(why)).note(
        "by /proc/interrupts, all kinds: one a wake is the timer's own, and all others were \
               disabled there",
    )
}

/// Counts of the processor's own counters beside these wakes, a row for each; none where the
/// processor shows none, which the row of interrupts says.
fn counted(
    timer: Option<&TimerOutcome>,
    figure: &TimerFigure,
    (suffix, period_ns): (&str, u64),
) -> Vec<PaperRow> {
    let Some(row) = timer.and_then(|timer| figure.row(timer, period_ns)) else { return Vec::new() };
    let new = |count: &ProcessorCount| {
        let id = format!("maruti.{}.{suffix}.{}", figure.id, count.event);
        let event = count.event.replace('-', " ");
        let title = format!("{event} of the CPU for each wake, {}", figure.condition(period_ns));
        PaperRow::new(id, &title, "", "").measured(Some(count.count / row.n as f64)).note(
            "read there without insight into the cause, and printed nowhere; by the processor's \
             own counters, with all that ran on the CPU, the work behind as well",
        )
    };
    row.counters.iter().map(new).collect()
}

/// The stamps that miss the cache: what a large array adds to a small one, with NOPs behind.
fn stores(
    timer: Option<&TimerOutcome>,
    tick_ns: Option<f64>,
    (suffix, period_ns): (&str, u64),
) -> PaperRow {
    let spread = |store| {
        let row = timer_row(timer?, (TimerPath::Sleep, store), Background::Nop, period_ns)?;
        Some((row.lateness_ns.p99? - row.lateness_ns.min?) / tick_ns?)
    };
    let more = spread(StampStore::Array).zip(spread(StampStore::Hot));
    let title = format!(
        "range of timer interrupts each {} µs, stamps in a large array less in one that stays \
         cached",
        period_ns / 1_000
    );
    let row = PaperRow::new(format!("maruti.fig10.{suffix}.store"), &title, "ticks", "");
    in_ticks(row, tick_ns)
        .measured(more.map(|(array, hot)| array - hot))
        .note("quantile 0.99 less the least of each; the spikes there, a plot without numbers")
}

/// The spikes of figure 10: the period with which consecutive wakes repeat.
fn spikes(timer: Option<&TimerOutcome>, (suffix, period_ns): (&str, u64)) -> PaperRow {
    let way = (TimerPath::Sleep, StampStore::Array);
    let row = timer.and_then(|timer| timer_row(timer, way, Background::Nop, period_ns));
    let new = PaperRow::new(
        format!("maruti.fig10.{suffix}.spikes"),
        &format!("period of the lateness of consecutive wakes each {} µs", period_ns / 1_000),
        "samples",
        "512",
    );
    let note = "a page of 8-byte stamps; \"clock cycles\" there must be samples";
    let Some(row) = row else { return new.measured(None).note(note) };
    let found = period_of_blocks(&row.series);
    let sine = found.sine.map(|sine| (sine, "a sine of it"));
    let pattern = found.pattern.map(|pattern| {
        let period = LoopPeriod { ticks: pattern.samples as f64, share: pattern.share };
        (period, "a pattern that repeats with it")
    });
    let period =
        [sine, pattern].into_iter().flatten().max_by(|(a, _), (b, _)| a.share.total_cmp(&b.share));
    let (longest_sine, longest_pattern) = (found.longest_sine, found.longest_pattern);
    let none = format!(
        "not measured: neither a sine of up to {longest_sine} samples nor a pattern of up to \
         {longest_pattern} that repeats explains {:.0} % of the variance",
        SHARE_MIN * 100.0
    );
    let found = new.measured_or(period.map(|(period, _)| period.ticks), &none).note(note);
    let in_a_row = row.series.iter().map(Vec::len).max().unwrap_or(0);
    let found = found.note(&format!("of {in_a_row} wakes in a row"));
    let found = match row.series_missed {
        0 => found,
        missed => found.note(&format!("{missed} expiries passed unseen among them")),
    };
    match period {
        Some((period, shape)) => found.note(&format!(
            "{shape} explains {:.0} % of the variance; sines were tried up to {longest_sine} \
             samples, patterns up to {longest_pattern}",
            period.share * 100.0
        )),
        None => found,
    }
}

/// Figures 3 to 8: the error over the offset of the target.
fn wait_figures(accuracy: &AccuracyOutcome) -> Vec<Drawing> {
    let figures = [
        ("maruti.fig3", "error of the loop over the offset", ExitKind::LOOP),
        ("maruti.fig4", "the same with code that is cold at each poll", ExitKind::COLD),
        ("maruti.fig5", "the same with a slower read", ExitKind::FENCED),
        ("maruti.fig6", "the same with code not aligned", ExitKind::SPLIT),
        ("maruti.fig7", "error without correction", ExitKind::PLAIN),
        ("maruti.fig8", "error with a computed delay", ExitKind::CORRECTED),
    ];
    let figure = |(id, title, kind): (&'static str, &str, ExitKind)| {
        let row = kind.row(accuracy);
        let points = |errors: fn(&AccuracyRow) -> &[Option<f64>]| {
            row.map(|row| over_offset(row, errors(row))).unwrap_or_default()
        };
        let single = points(|row| &row.single).into_iter().map(|at| (at, ""));
        let figure = Drawing::new(id, title, "offset of the target, ticks", "error, ticks")
            .line("here: median at each offset", points(|row| &row.curve))
            .points("here: one sweep", single);
        // The paper compares it with the one before.
        if id == "maruti.fig8" { figure.beside() } else { figure }
    };
    let drawn = figures.into_iter().flat_map(|own| {
        let periods = PERIODOGRAMS.iter().find(|(id, ..)| *id == own.0);
        let periods = periods.and_then(|way| periodogram(way, own.2.row(accuracy)?));
        std::iter::once(figure(own)).chain(periods)
    });
    drawn.collect()
}

/// The figures whose errors may repeat over the offset: the period that the paper names, cycles.
const PERIODOGRAMS: [(&str, Option<f64>); 3] =
    [("maruti.fig3", Some(32.0)), ("maruti.fig4", None), ("maruti.fig6", None)];

/// Share of the variance of single sweeps that a sine of each period explains, over the period in
/// ticks; `None` where no sweep was searched.
fn periodogram(&(id, published): &(&str, Option<f64>), row: &AccuracyRow) -> Option<Drawing> {
    let points: Vec<[f64; 2]> =
        row.periods.iter().map(|tried| [tried.ticks, tried.share]).collect();
    let (longest, shortest) = (points.first()?[0], points.last()?[0]);
    let (x, y) = ("period, ticks", "share of the variance of one sweep");
    let least = [shortest, longest].map(|ticks| [ticks, SHARE_MIN]).to_vec();
    let title = "how much a sine of each period explains of the errors of one sweep";
    let figure = Drawing::new(format!("{id}.periods"), title, x, y)
        .log([true, false])
        .line("here: mean of single sweeps", points)
        .line("no period stands out below", least);
    // A period that no sweep is long enough for stands on no axis.
    let published = published.filter(|ticks| (shortest..=longest).contains(ticks));
    Some(match published {
        Some(ticks) => {
            let name = format!("published: {ticks} cycles");
            figure.points(&name, [([ticks, 0.0], "")])
        }
        None => figure,
    })
}

/// The error at each offset that has one, in ticks.
fn over_offset(row: &AccuracyRow, errors: &[Option<f64>]) -> Vec<[f64; 2]> {
    let at =
        |(offset, error): (usize, &Option<f64>)| error.map(|error| [row.at_ticks(offset), error]);
    errors.iter().enumerate().filter_map(at).collect()
}

/// Figures 9 to 12: how late consecutive wakes by a timer were, each period beside the other.
fn timer_figures(timer: &TimerOutcome) -> Vec<Drawing> {
    let figure = |(number, (suffix, period_ns)): (usize, (&str, u64)), own: &TimerFigure| {
        let cache = if own.cached { "" } else { ", caches cold" };
        let behind = own.behind.name().to_uppercase();
        let title = format!("wakes each {} µs, {behind} behind{cache}", period_ns / 1_000);
        let id = format!("maruti.{}.{suffix}", own.id);
        let (x, y) = ("consecutive sample", "later than the least, µs");
        let figure = Drawing::new(id, &title, x, y);
        let figure = match own.row(timer, period_ns) {
            Some(row) => consecutive(figure, &row.series),
            None => figure,
        };
        if number > 0 { figure.beside() } else { figure }
    };
    FIGURES
        .iter()
        .flat_map(|own| PERIODS.into_iter().enumerate().map(move |period| figure(period, own)))
        .collect()
}

/// Samples in the order of time, and where a block of them began; the others had their turns
/// between two blocks.
fn consecutive(figure: Drawing, blocks: &[Vec<i64>]) -> Drawing {
    let Some(least) = blocks.iter().flatten().min() else { return figure };
    let points = blocks.iter().flatten().zip(1u32..);
    let points = points.map(|(ns, at)| [f64::from(at), (ns - least) as f64 / 1e3]);
    let ends = blocks.iter().scan(1.0, |begins, block| {
        let begun = *begins;
        *begins += block.len() as f64;
        Some([begun, 0.0])
    });
    match blocks {
        [_] => figure.line("here", points.collect()),
        _ => figure.line("here, block after block", points.collect()).rug("blocks", ends.collect()),
    }
}

#[cfg(test)]
mod tests {
    use punctual_host::fact::Fact;
    use punctual_host::facts::FrequencyRange;
    use punctual_lab::accuracy::LoopPeriod;

    use super::*;

    /// An aligned plain loop with these median errors, of which no period stands out.
    fn outcome(curve: Vec<Option<f64>>) -> AccuracyOutcome {
        let row = AccuracyRow {
            exit: COUNTERS[0].to_owned(),
            code: Some("aligned".to_owned()),
            cache: "warm".to_owned(),
            lead_ticks: 1_000.0,
            offsets: curve.len() as u64,
            stride_ticks: 1.0,
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
            scatter: None,
            quiet_sweeps: None,
            quiet: None,
            counters: Vec::new(),
            poll_interval_ticks: None,
            period: None,
            period_ticks: None,
            curve,
            p5_curve: Vec::new(),
            p95_curve: Vec::new(),
            single: Vec::new(),
            periods: Vec::new(),
            note: None,
        };
        AccuracyOutcome {
            tick_ns: 0.5,
            interrupted_from_ns: 1_000,
            rows: vec![row],
            no_counters: None,
            step_ticks: None,
        }
    }

    #[test]
    fn figures_with_a_period_have_what_each_period_explains_beside_the_sweeps() {
        let mut exits = outcome(vec![Some(44.0); 512]);
        let ids = |exits: &AccuracyOutcome| -> Vec<String> {
            let drawn = wait_figures(exits).into_iter();
            drawn.filter(|figure| figure.id.ends_with("periods")).map(|figure| figure.id).collect()
        };
        assert!(ids(&exits).is_empty(), "no sweep was searched");
        let tried = [(128.0, 0.01), (32.0, 0.4), (3.0, 0.02)];
        let tried = tried.map(|(ticks, share)| LoopPeriod { ticks, share }).to_vec();
        let split = ExitKind::SPLIT.code.map(str::to_owned);
        exits.rows[0].periods = tried;
        exits.rows.push(AccuracyRow { code: split, ..exits.rows[0].clone() });
        assert_eq!(ids(&exits), ["maruti.fig3.periods", "maruti.fig6.periods"]);
        let drawn = wait_figures(&exits);
        let at = drawn.iter().position(|figure| figure.id == "maruti.fig3").expect("drawn");
        let figure = &drawn[at + 1];
        assert_eq!(figure.id, "maruti.fig3.periods");
        let [curve, least, published] = &figure.series[..] else { panic!("{figure:?}") };
        assert_eq!(curve.points, [[128.0, 0.01], [32.0, 0.4], [3.0, 0.02]]);
        assert_eq!(least.points, [[3.0, SHARE_MIN], [128.0, SHARE_MIN]]);
        assert_eq!(
            (&*published.name, &published.points[..]),
            ("published: 32 cycles", &[[32.0, 0.0]][..])
        );
        let beside: Vec<&str> =
            drawn.iter().filter(|figure| figure.beside).map(|figure| &*figure.id).collect();
        assert_eq!(beside, ["maruti.fig8"], "on the scales of figure 7");
    }

    fn note(accuracy: Option<&AccuracyOutcome>, id: &str) -> String {
        let mut rows = waits(accuracy).into_iter().chain(corrections(accuracy));
        let row = rows.find(|row| row.id == id).expect("a row");
        assert_eq!(row.measured, None, "{row:?}");
        row.note
    }

    #[test]
    fn what_the_paper_has_in_cycles_is_in_ticks_here_and_says_it() {
        let exits = outcome(vec![Some(44.0); 512]);
        let rows = waits(Some(&exits)).into_iter().chain(corrections(Some(&exits)));
        let rows: Vec<PaperRow> = rows.chain(timers(None, Some(0.5))).collect();
        assert!(rows.iter().all(|row| row.unit != "cycles"), "{rows:?}");
        for row in rows.iter().filter(|row| row.unit == "ticks") {
            assert!(row.note.contains("in ticks of 0.5000 ns"), "{row:?}");
            assert!(row.published.is_empty() || row.published.contains("clock cycle"), "{row:?}");
        }
        let row = |id: &str| rows.iter().find(|row| row.id == id).expect("a row");
        // 256 is a range there.
        assert_eq!(row("maruti.fig4").published, "256 clock cycles");
        assert_eq!(row("maruti.fig4.period").published, "");
        assert_eq!(row("maruti.fig2").formula, Some(32.0));
        let note = &row("maruti.fig8").note;
        assert!(note.contains("delays the entry into the polls"), "{note}");
    }

    #[test]
    fn a_tick_has_as_many_cycles_as_the_fastest_core_makes_in_it() {
        let (shown, at) = (|khz| FrequencyRange { max_khz: khz, ..RANGE }, "/sys");
        let frequency = |driver: &str, boost| Frequency {
            frequency_driver: Fact::known(driver.to_owned(), at),
            governor: Fact::absent(at),
            frequency: Fact::known(shown(3_600_000), at),
            boost: Fact::known(boost, at),
        };
        let cycles = |frequency: &Frequency, tick_ns| cycles_in_tick(frequency, tick_ns);
        let known = cycles(&frequency("intel_pstate", true), 0.5).expect("cycles");
        assert!((known - 1.8).abs() < 1e-9, "{known}");
        assert_eq!(cycles(&frequency("acpi-cpufreq", true), 0.5), None);
        assert!(cycles(&frequency("acpi-cpufreq", false), 0.5).is_some());
        let guest = Frequency { frequency: Fact::absent(at), ..frequency("none", false) };
        assert_eq!(cycles(&guest, 0.5), None);
    }

    const RANGE: FrequencyRange = FrequencyRange {
        now_lowest_khz: 800_000,
        now_highest_khz: 800_000,
        min_khz: 800_000,
        max_khz: 0,
    };

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
        let none = AccuracyOutcome {
            tick_ns: 1.0,
            interrupted_from_ns: 1_000,
            rows: Vec::new(),
            no_counters: None,
            step_ticks: None,
        };
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

    #[test]
    fn the_spread_says_what_was_quiet_and_what_was_left_out() {
        let mut exits = outcome((0..512).map(|at| Some(f64::from(at % 31))).collect());
        let note = |exits: &AccuracyOutcome| {
            let row = waits(Some(exits)).into_iter().find(|row| row.id == "maruti.fig3.spread");
            row.expect("a row").note
        };
        assert!(note(&exits).contains("counts no interrupts here"), "{}", note(&exits));
        exits.rows[0] = AccuracyRow {
            interrupted: 12,
            quiet_sweeps: Some(3),
            quiet: punctual_analysis::scatter::Scatter::of_series((0..2_000).map(|at| at % 31)),
            ..exits.rows[0].clone()
        };
        let text = note(&exits);
        assert!(text.contains("12 exits of 2060 are more than 1000 ns late"), "{text}");
        assert!(text.contains("in 3 of 4 sweeps") && text.contains("ticks in these"), "{text}");
    }

    #[test]
    fn what_the_processor_counted_of_the_loop_has_rows_or_a_reason() {
        let mut exits = outcome(vec![Some(44.0); 512]);
        assert!(exit_counts(Some(&exits)).is_empty() && exit_counts(None).is_empty());
        exits.rows[0].quiet_sweeps = Some(3);
        exits.no_counters = Some("no counters of the processor".to_owned());
        let spread = |exits: &AccuracyOutcome| {
            let row = waits(Some(exits)).into_iter().find(|row| row.id == "maruti.fig3.spread");
            row.expect("a row").note
        };
        assert!(spread(&exits).contains("no counters of the processor"), "{}", spread(&exits));
        let count = ProcessorCount { event: "cache-misses".to_owned(), count: 4_096.0 };
        exits.rows[0].counters = vec![count];
        let rows = exit_counts(Some(&exits));
        let [row] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!((row.id.as_str(), row.measured), ("maruti.fig3.cache-misses", Some(2.0)));
    }

    #[test]
    fn the_delay_of_figure_8_has_what_its_trial_found() {
        let mut exits = outcome(vec![Some(44.0); 512]);
        exits.rows[0] = AccuracyRow {
            exit: ExitKind::CORRECTED.exit.to_owned(),
            code: None,
            note: Some("no gain in a trial before it".to_owned()),
            ..exits.rows[0].clone()
        };
        let [_, corrected] = corrections(Some(&exits));
        assert_eq!(corrected.measured, Some(7.0));
        assert!(corrected.note.contains("no gain in a trial before it"), "{corrected:?}");
    }

    /// Wakes of a sleep each 100 µs with NOPs behind: stamps there, 1 in 100 so late.
    fn wakes(store: StampStore, p99_ns: f64, series: Vec<Vec<i64>>) -> TimerRow {
        let ns = |ns: f64| Some(ns);
        let (min, p99) = (ns(1_000.0), ns(p99_ns));
        TimerRow {
            path: TimerPath::Sleep,
            store,
            period_ns: 100_000,
            background: Background::Nop,
            n: 200,
            missed: 0,
            interrupts: Some(500),
            counters: Vec::new(),
            lateness_ns: punctual_analysis::summary::SummaryStats {
                min,
                p99,
                ..Default::default()
            },
            scatter: None,
            cpu_share: None,
            lateness: Default::default(),
            series,
            series_missed: 0,
        }
    }

    #[test]
    fn the_paper_s_period_is_found_in_one_row_of_wakes_each_100_us() {
        // A quarter of each 512 misses the cache, and all vary by 1 µs.
        let late = |at: i64| at * at * 7_919 % 1_000 + if at % 512 < 128 { 4_000 } else { 0 };
        let mut own = wakes(StampStore::Array, 9_000.0, vec![(0..4_096).map(late).collect()]);
        own.series_missed = 3;
        let (policy, priority) = ("SCHED_FIFO".to_owned(), Some(90));
        let (deadline_refused, no_counters) = (None, None);
        let rows = vec![own];
        let timer = TimerOutcome { cpu: 1, policy, priority, rows, deadline_refused, no_counters };
        let row = spikes(Some(&timer), PERIODS[0]);
        assert!(row.measured.is_some_and(|samples| (samples - 512.0).abs() < 10.0), "{row:?}");
        assert!(row.note.contains("of 4096 wakes in a row; 3 expiries passed unseen"), "{row:?}");
        let drawn = timer_figures(&timer);
        let figure = drawn.iter().find(|figure| figure.id == "maruti.fig10.100us").expect("drawn");
        let [series] = &figure.series[..] else { panic!("{figure:?}") };
        assert_eq!((series.name.as_str(), series.points.len()), ("here", 4_096));
    }

    #[test]
    fn spikes_stores_and_interrupts_have_rows_and_a_reason_where_they_have_no_number() {
        let period = |number: usize| if number % 50 < 25 { 1_000 } else { 9_000 };
        let blocks = vec![(0..200).map(period).collect::<Vec<i64>>(); 3];
        let rows = vec![
            wakes(StampStore::Array, 9_000.0, blocks),
            wakes(StampStore::Hot, 3_000.0, Vec::new()),
        ];
        let no_counters = Some("no counters of the processor".to_owned());
        let (policy, priority) = ("SCHED_FIFO".to_owned(), Some(90));
        let timer =
            TimerOutcome { cpu: 1, policy, priority, rows, deadline_refused: None, no_counters };
        let rows = timers(Some(&timer), Some(0.5));
        let row = |id: &str| rows.iter().find(|row| row.id == id).expect("a row");
        let spikes = row("maruti.fig10.100us.spikes");
        assert!(spikes.measured.is_some_and(|samples| (samples - 50.0).abs() < 2.0), "{spikes:?}");
        assert_eq!(spikes.published, "512");
        assert!(spikes.note.contains("of 200 wakes in a row"), "{spikes:?}");
        assert_eq!(row("maruti.fig10.100us.store").measured, Some(12_000.0));
        let counted = row("maruti.fig10.100us.interrupts");
        assert_eq!(counted.measured, Some(2.5));
        assert!(counted.note.contains("no counters of the processor"), "{counted:?}");
        // With a processor that counts, each of its events has a row.
        let count = |event: &str, count| ProcessorCount { event: event.to_owned(), count };
        let mut counting = timer.clone();
        counting.no_counters = None;
        counting.rows[0].counters =
            vec![count("cache-misses", 700.0), count("branch-misses", 100.0)];
        let with = timers(Some(&counting), Some(0.5));
        let found = |id: &str| with.iter().find(|row| row.id == id).and_then(|row| row.measured);
        assert_eq!(found("maruti.fig10.100us.cache-misses"), Some(3.5));
        assert_eq!(found("maruti.fig10.100us.branch-misses"), Some(0.5));
        assert_eq!(with.len(), rows.len() + 2);
        for id in
            ["maruti.fig10.15us.spikes", "maruti.fig10.15us.store", "maruti.fig9.15us.interrupts"]
        {
            assert!(row(id).measured.is_none() && row(id).note.contains("not measured"), "{id}");
        }
    }
}
