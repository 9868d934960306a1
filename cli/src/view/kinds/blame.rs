//! What `blame` gives: one sentence, the causes with what to do, the threads, the worst wakes as
//! they passed, and what recording cost.

use punctual_document::{Block, Frame, Section, Table, numbers, words};
use punctual_lab::blame::{
    Blamed, BlamedCause, BlamedRun, BlamedStop, BlamedWake, CaptureEvidence, KeptCounts,
    RecordingPrice, WakeStretch,
};
use punctual_lab::periodic::RecordedWhere;
use punctual_report::measured::BlameBody;
use punctual_report::{BlameRecording, Report, Run, RunBlame, WorstWake};

use super::head::{Named, rate_line};
use crate::format;

/// Late wakes whose parts are shown.
const TIMELINES: usize = 3;
/// The least share of late wakes or of their time of a cause that is explained.
const EXPLAINED: f64 = 0.02;
/// Causes that are explained at most.
const EXPLAINED_MAX: usize = 6;
/// The share of a thread's wakes whose begin is not recorded, from which on that is said.
const CENSORED: f64 = 0.1;

/// What is shown.
pub(super) fn shown(body: &BlameBody) -> Section {
    let blame = &body.blame;
    let mut blocks = vec![Block::words(blame.sentence.clone())];
    blocks.extend(blame.stopped_by.as_ref().map(|stop| Block::words(stop_words(stop))));
    blocks.push(runs(blame));
    if !blame.causes.is_empty() {
        blocks.push(causes(&blame.causes));
        blocks.extend(explained(&blame.causes).into_iter().map(Block::words));
    }
    if blame.runs.len() > 1 {
        let late = blame.runs.iter().filter(|run| run.late > 0 && !run.causes.is_empty());
        blocks.extend(late.map(|run| {
            let sentence = format!("{}: {}", run.name, run.sentence);
            Block::Folded(sentence, vec![causes(&run.causes)])
        }));
    }
    if !blame.worst.is_empty() {
        blocks.push(worst(&blame.worst));
        let (first, others) = blame.worst.split_at(1);
        blocks.extend(first.iter().flat_map(timeline));
        let others: Vec<Block> = others.iter().take(TIMELINES - 1).flat_map(timeline).collect();
        if !others.is_empty() {
            blocks.push(Block::Folded("The next latest".to_owned(), others));
        }
    }
    if !blame.senders.is_empty() {
        blocks.push(senders(blame));
    }
    blocks.extend(blame.price.as_ref().map(|price| Block::words(price_words(price))));
    blocks.extend(blame.evidence.as_ref().map(|evidence| Block::words(evidence_words(evidence))));
    blocks.extend(blame.kept.as_ref().map(|kept| Block::words(kept_words(kept))));
    blocks.extend(gaps(blame).map(Block::words));
    blocks.extend(body.loads.iter().map(|load| Block::words(rate_line(load))));
    Section { id: "blame", heading: "Why wakes were late", blocks }
}

/// What is shown of one thread alone, while it is recorded.
pub(crate) fn thread(run: &BlamedRun) -> Vec<Block> {
    let mut blocks = vec![Block::words(run.sentence.clone())];
    if !run.causes.is_empty() {
        blocks.push(causes(&run.causes));
        blocks.extend(explained(&run.causes).into_iter().map(Block::words));
    }
    blocks
}

/// Whether causes were recorded beside loops, and what that cost, in a line; `None` where it was
/// not asked for and nobody misses it.
pub(super) fn recorded(report: &Report) -> Option<String> {
    Some(recording(report.body.loops()?.blame.as_ref()?, "its worst releases have no cause"))
}

/// The same of any recording; `lacks` says what one behind the measurement lacks.
pub(super) fn recording(recording: &BlameRecording, lacks: &str) -> String {
    let BlameRecording { why_not, price, is_asked, place, .. } = recording;
    if let Some(why) = why_not {
        // In results of before: what costs too much can be had all the same.
        let could = price.is_some() && !is_asked && *place == RecordedWhere::Within;
        let way_out = if could { "; --blame on records them all the same" } else { "" };
        return format!("causes of late releases were not recorded: {why}{way_out}");
    }
    let cost = price.as_ref().and_then(|price| {
        let (more_ns, before_ns) = (price.median_ns()?, price.unrecorded_ns.p50?);
        let sign = if more_ns < 0.0 { "earlier" } else { "later" };
        Some(format!(
            "that made the median of a sleeping loop {} {sign}, of {}",
            format::ns(Some(more_ns.abs())),
            format::ns(Some(before_ns)),
        ))
    });
    let cost = cost.unwrap_or_else(|| "what that cost is not known".to_owned());
    match place {
        RecordedWhere::Within => format!("the kernel's events were recorded: {cost}"),
        RecordedWhere::Behind => format!(
            "causes were recorded behind the measurement, so that no figure contains the price: \
             {cost}. So {lacks}; --blame on records while it measures"
        ),
    }
}

/// What made each of these runs late, in a sentence each, and whether that was recorded.
pub(super) fn sentences(report: &Report) -> impl Iterator<Item = String> + '_ {
    let sentence = |run: &Run| {
        let sentence = run.blame.as_ref()?.sentence.as_ref()?;
        Some(format!("{}: {sentence}", run.name))
    };
    report.body.runs().iter().filter_map(sentence).chain(recorded(report))
}

/// The causes of each of these runs, and the latest releases as they passed; nothing where they
/// were not recorded.
pub(crate) fn of_runs(runs: &[Named<'_>]) -> Vec<Block> {
    runs.iter()
        .filter_map(|(name, run)| Some(of_run(name, run, run.blame.as_ref()?)))
        .flatten()
        .collect()
}

fn of_run(name: &str, run: &Run, blame: &RunBlame) -> Vec<Block> {
    let mut blocks = Vec::new();
    match &blame.sentence {
        Some(sentence) => blocks.push(Block::words(format!("{name}: {sentence}"))),
        None if blame.worst.is_empty() => {}
        None => blocks.push(Block::words(format!(
            "{name}: it spins before its releases, so that the kernel's events show only what made \
             its latest wakes late"
        ))),
    }
    if blame.late > 0 && !run.causes.is_empty() {
        blocks.push(causes(&run.causes));
        blocks.extend(explained(&run.causes).into_iter().map(Block::words));
    }
    // The script of a page finds them by these words.
    let passed = |worst: &WorstWake| {
        let (cycle, late) = (format::count(worst.cycle), ns(worst.wake.lateness_ns));
        let summary =
            format!("cycle {cycle} of {name}, as it passed: {late}, {}", worst.wake.cause);
        Block::Folded(summary, timeline(&worst.wake))
    };
    blocks.extend(blame.worst.iter().map(passed));
    let passed = |wake: &BlamedWake| {
        let late = ns(wake.lateness_ns);
        let summary = format!(
            "a wake of {name} behind the measurement, as it passed: {late}, {}",
            wake.cause
        );
        Block::Folded(summary, timeline(wake))
    };
    blocks.extend(blame.latest.iter().map(passed));
    if blame.censored as f64 > CENSORED * blame.wakes as f64 {
        blocks.push(Block::words(format!(
            "the kernel does not show when {} of the {} wakes ran: their lateness is a lower bound \
             here",
            format::count(blame.censored),
            format::count(blame.wakes)
        )));
    }
    if blame.broken > 0 {
        blocks.push(Block::words(format!(
            "records of {} wakes were lost",
            format::count(blame.broken)
        )));
    }
    blocks
}

fn ns(ns: u64) -> String {
    format::ns(Some(ns as f64))
}

/// A lateness that is known, else the bound that says more: what it is at least, or at most where
/// that is nothing.
fn figure(known_ns: Option<u64>, bounds: Option<(u64, u64)>) -> String {
    match (known_ns, bounds) {
        (Some(known_ns), _) => ns(known_ns),
        (None, None) => "-".to_owned(),
        (None, Some((0, most_ns))) => format!("≤ {}", ns(most_ns)),
        (None, Some((least_ns, _))) => format!("≥ {}", ns(least_ns)),
    }
}

/// As a person asks for it: FIFO 90, nice 0.
fn priority(kernel: i32) -> String {
    match kernel {
        ..0 => "deadline".to_owned(),
        0..=98 => format!("real-time {}", 99 - kernel),
        _ => format!("nice {}", kernel - 120),
    }
}

/// A period that was measured: whole where it is whole, else to three figures.
fn period(period_ns: u64) -> String {
    match period_ns.is_multiple_of(1_000) {
        true => format::period(period_ns),
        false => ns(period_ns),
    }
}

fn runs(blame: &Blamed) -> Block {
    let heads = [
        words("thread"),
        numbers("wakes"),
        numbers("median"),
        numbers("99 %"),
        numbers("worst"),
        numbers("late"),
        numbers("later than"),
        numbers("period"),
        numbers("CPU"),
        words("priority"),
        numbers("pid"),
    ];
    let row = |run: &BlamedRun| {
        vec![
            run.name.clone(),
            format::count(run.wakes),
            figure(run.p50_ns, run.bounds.map(|bounds| bounds.p50_ns)),
            figure(run.p99_ns, run.bounds.map(|bounds| bounds.p99_ns)),
            figure(run.max_ns, run.bounds.map(|bounds| bounds.max_ns)),
            format::count(run.late),
            run.threshold_ns.map_or_else(|| "-".to_owned(), ns),
            run.period_ns.map_or_else(|| "-".to_owned(), period),
            run.cpu.to_string(),
            priority(run.kernel_priority),
            run.tid.to_string(),
        ]
    };
    let caption = "Wakes, from the release to the first instruction";
    Table::new(caption, heads, blame.runs.iter().map(row).collect()).folded().into()
}

fn causes(causes: &[BlamedCause]) -> Block {
    let heads = [
        words("cause"),
        numbers("wakes"),
        numbers("of late"),
        numbers("of time"),
        numbers("worst"),
        numbers("sure"),
        numbers("CPU"),
        words("rule"),
    ];
    let brief = |cause: &BlamedCause| {
        vec![
            format::share(cause.share_of_late),
            cause.name.clone(),
            ns(cause.worst_ns),
            format::share(cause.confidence),
        ]
    };
    let shown = [numbers("of late"), words("cause"), numbers("worst"), numbers("sure")];
    let briefs: Vec<Vec<String>> = causes.iter().map(brief).collect();
    let row = |cause: &BlamedCause| {
        vec![
            cause.name.clone(),
            format::count(cause.wakes),
            format::share(cause.share_of_late),
            format::share(cause.share_of_time),
            ns(cause.worst_ns),
            format::share(cause.confidence),
            cause.cpu.map_or_else(|| "-".to_owned(), |cpu| cpu.to_string()),
            cause.rule.clone(),
        ]
    };
    let order = (0..causes.len()).collect();
    Table::new("Causes of late wakes", heads, causes.iter().map(row).collect())
        .brief(Frame::Fitted(order), shown, briefs)
        .into()
}

/// What shows each cause that matters, and what to do about it: once where several need the same.
fn explained(causes: &[BlamedCause]) -> Vec<String> {
    let matters =
        |cause: &&BlamedCause| cause.share_of_late >= EXPLAINED || cause.share_of_time >= EXPLAINED;
    let shown: Vec<&BlamedCause> = causes.iter().filter(matters).take(EXPLAINED_MAX).collect();
    let sentence = |(place, cause): (usize, &&BlamedCause)| {
        let (name, evidence, advice) = (&cause.name, cause.evidence.trim(), cause.advice.trim());
        let before = shown[..place].iter().find(|before| before.advice.trim() == advice);
        if let Some(before) = before.filter(|_| !advice.is_empty()) {
            return format!("{name}: {evidence}. What helps is the same as for {}.", before.name);
        }
        let rule = cause.tune_rule.as_ref();
        let rule = rule.map_or_else(String::new, |rule| format!(" (tune: {rule})"));
        format!("{name}: {evidence}. {advice}{rule}")
    };
    shown.iter().enumerate().map(sentence).collect()
}

fn worst(wakes: &[BlamedWake]) -> Block {
    let heads =
        [numbers("late"), words("cause"), words("thread"), numbers("CPU"), numbers("released at")];
    let row = |wake: &BlamedWake| {
        let mark = if wake.is_whole { "" } else { " (not whole)" };
        vec![
            ns(wake.lateness_ns),
            format!("{}{mark}", wake.cause),
            wake.name.clone(),
            wake.cpu.to_string(),
            format!("{:.6} s", wake.release_ns as f64 / 1e9),
        ]
    };
    let caption = "The latest wakes";
    Table::new(caption, heads, wakes.iter().map(row).collect()).folded().into()
}

/// What happened from the release to the first instruction; in a terminal without the CPUs.
fn timeline(wake: &BlamedWake) -> Vec<Block> {
    let stretches = wake.stretches();
    let brief = |stretch: &WakeStretch| {
        vec![ns(stretch.after_ns), ns(stretch.length_ns), stretch.cause.clone()]
    };
    let row = |stretch: &WakeStretch| {
        let mut cells = brief(stretch);
        cells.extend([stretch.cpu.to_string(), stretch.rules.join(", ")]);
        cells
    };
    let shown = [numbers("after"), numbers("for"), words("what")];
    let [after, length, cause] = shown.clone();
    let heads = [after, length, cause, numbers("CPU"), words("rules")];
    let at = format!("{:.6} s", wake.release_ns as f64 / 1e9);
    let caption = format!("{} released at {at}: {} late", wake.name, ns(wake.lateness_ns));
    let rows = stretches.iter().map(row).collect();
    let order = (0..stretches.len()).collect();
    let briefs = stretches.iter().map(brief).collect();
    let table = Table::new(caption, heads, rows).brief(Frame::Fitted(order), shown, briefs);
    let chain = (!wake.chain.is_empty())
        .then(|| Block::words(format!("in the kernel: {}", wake.chain.join(" ← "))));
    [Some(table.into()), chain].into_iter().flatten().collect()
}

fn senders(blame: &Blamed) -> Block {
    let heads = [words("thread"), numbers("interrupts sent"), words("to call"), numbers("pid")];
    let rows = blame.senders.iter().map(|sender| {
        let function = sender.function.clone().unwrap_or_else(|| "-".to_owned());
        vec![sender.name.clone(), format::count(sender.sends), function, sender.tid.to_string()]
    });
    Table::new("Who interrupted other CPUs", heads, rows.collect()).folded().into()
}

fn price_words(price: &RecordingPrice) -> String {
    let (before, meanwhile) = (&price.unrecorded_ns, &price.recorded_ns);
    let Some(median_ns) = price.median_ns() else {
        return "what recording cost the loop is not known: too few wakes before it".to_owned();
    };
    let sign = if median_ns < 0.0 { "less" } else { "more" };
    format!(
        "recording cost the loop {} {sign} at the median: {} before it (n {}), {} meanwhile \
         (n {}); 99 %: {} and {}",
        format::ns(Some(median_ns.abs())),
        format::ns(before.p50),
        format::count(price.unrecorded),
        format::ns(meanwhile.p50),
        format::count(price.recorded),
        format::ns(before.p99),
        format::ns(meanwhile.p99),
    )
}

fn evidence_words(evidence: &CaptureEvidence) -> String {
    let cpu = evidence.reader_cpu_share.map_or_else(|| "-".to_owned(), format::share);
    let mut text = format!(
        "{} events of the kernel, {} lost, read with {cpu} of a CPU",
        format::count(evidence.events),
        format::count(evidence.lost),
    );
    if evidence.shares_cpu {
        text += ", on the CPU that was measured: there is no other";
    }
    let missing = evidence.missing.len();
    if missing > 0 {
        text += &format!(
            "; {missing} kinds that this kernel does not have (the JSON says what is lost by that)"
        );
    }
    text
}

/// What ended the recording.
fn stop_words(stop: &BlamedStop) -> String {
    format!(
        "ended by a wake of {} ({}) that was {} late, released at {:.6} s: --stop-over",
        stop.name,
        stop.tid,
        ns(stop.lateness_ns),
        stop.release_ns as f64 / 1e9,
    )
}

/// What was kept, and what not.
fn kept_words(kept: &KeptCounts) -> String {
    let mut text = format!(
        "kept: {} events around {} late wakes",
        format::count(kept.events),
        format::count(kept.wakes),
    );
    if kept.dropped > 0 {
        text += &format!("; for {} more there was no room", format::count(kept.dropped));
    }
    if kept.cut > 0 {
        text += &format!("; {} windows lack their beginning", format::count(kept.cut));
    }
    text
}

/// What is not whole.
fn gaps(blame: &Blamed) -> impl Iterator<Item = String> + '_ {
    let lost = (blame.lost > 0).then(|| {
        format!("{} records were lost: wakes that they touch are marked", format::count(blame.lost))
    });
    let unseen = blame.evidence.as_ref().is_some_and(|evidence| evidence.unseen_cpus > 0);
    let unseen = unseen.then(|| "some CPUs were not seen: they came or went".to_owned());
    let more = (blame.more_runs > 0)
        .then(|| format!("{} more threads are left out", format::count(blame.more_runs)));
    let is_blind = |run: &&BlamedRun| run.censored as f64 > CENSORED * run.wakes as f64;
    let blind = blame.runs.iter().filter(is_blind).map(|run| {
        format!(
            "the kernel does not show when {} of the {} wakes of {} ran: their lateness is a \
             lower bound. On some virtual machines the idle task of a CPU records nothing: follow \
             it on another CPU, or keep CPU {} busy (--load cpu)",
            format::count(run.censored),
            format::count(run.wakes),
            run.name,
            run.cpu,
        )
    });
    [lost, unseen, more].into_iter().flatten().chain(blind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_that_is_only_bounded_is_shown_as_its_bound() {
        for (known_ns, bounds, shown) in [
            (Some(0), None, "0 ns"),
            (Some(14_000), Some((14_000, 14_100)), "14.0 µs"),
            (None, Some((0, 250_000)), "≤ 250 µs"),
            (None, Some((12_000, 250_000)), "≥ 12.0 µs"),
            (None, None, "-"),
        ] {
            assert_eq!(figure(known_ns, bounds), shown);
        }
    }

    #[test]
    fn advice_that_several_causes_share_is_given_once() {
        let cause = |name: &str, advice: &str| BlamedCause {
            cause: "ipi".to_owned(),
            name: name.to_owned(),
            cpu: None,
            wakes: 1,
            share_of_late: 0.3,
            share_between: (0.1, 0.5),
            share_of_time: 0.3,
            worst_ns: 1,
            confidence: 1.0,
            rule: "ipi".to_owned(),
            evidence: "in 1 wake".to_owned(),
            advice: advice.to_owned(),
            tune_rule: Some("isolation.isolcpus".to_owned()),
        };
        let causes = [cause("a", "Isolate it."), cause("b", "Wait."), cause("c", "Isolate it.")];
        let lines = explained(&causes);
        assert_eq!(lines[0], "a: in 1 wake. Isolate it. (tune: isolation.isolcpus)");
        assert_eq!(lines[1], "b: in 1 wake. Wait. (tune: isolation.isolcpus)");
        assert_eq!(lines[2], "c: in 1 wake. What helps is the same as for a.");
    }
}
