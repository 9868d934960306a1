//! Documents of `blame`: one sentence, the causes by the time that they took, the help against
//! them, the threads, the worst wakes as they passed, and the cost of recording.
//!
//! A terminal has the first of it, in 40 lines, and with `--verbose` more; a page and Markdown have
//! all.

use std::collections::BTreeSet;

use punctual_document::text;
use punctual_document::{Block, Frame, Item, Items, ItemsKind, Section, Table, numbers, words};
use punctual_lab::blame::{
    Blamed, BlamedCause, BlamedFlaw, BlamedRun, BlamedStop, BlamedWake, CaptureEvidence,
    CountedWake, CountedWork, KeptCounts, RecordingPrice, WakeStretch,
};
use punctual_lab::periodic::RecordedWhere;
use punctual_report::measured::BlameBody;
use punctual_report::{BlameRecording, Report, Run, RunBlame, WorstWake};

use super::head::{self, Named, rate_line};
use super::judged;
use crate::format;

/// Late wakes whose parts are shown.
const TIMELINES: usize = 3;
/// The least share of the time of a cause that is explained.
const EXPLAINED: f64 = 0.02;
/// Causes that are explained at most.
const EXPLAINED_MAX: usize = 6;
/// Causes of the short page, of which it has as many as it has lines for.
const BRIEF: std::ops::RangeInclusive<usize> = 1..=6;
/// Notes of the short page.
const BRIEF_NOTES: usize = 3;
/// Threads of the short page.
const BRIEF_RUNS: usize = 4;
/// Lines of that page.
const LINES: usize = 40;
/// The kind of what wakes on time take too.
const NORMAL_PATH: &str = "normal-path";
/// The share of a thread's wakes whose begin is not recorded, from which on that is said.
const CENSORED: f64 = 0.1;

/// The causes that a list or a table has.
#[derive(Debug, Clone, Copy)]
enum CauseList {
    /// Those of late wakes.
    Late,
    /// What counters tell of them.
    Coincided,
    /// Those of releases that passed before their threads waited again.
    Passed,
}

impl CauseList {
    const fn title(self) -> &'static str {
        match self {
            Self::Late => "Causes of late wakes, by the time lost",
            Self::Coincided => "What came at the same time, by the lateness of these wakes",
            Self::Passed => "What let releases pass, by the time that cycles went on too long",
        }
    }

    /// What the rows count.
    const fn counted(self) -> &'static str {
        match self {
            Self::Late | Self::Coincided => "wakes",
            Self::Passed => "cycles",
        }
    }
}

/// The short page: the answer, what shows it and what helps.
pub(super) fn short(report: &Report, body: &BlameBody) -> Vec<Block> {
    let page = |most: usize| {
        let mut blocks = head::brief(report);
        blocks.push(Block::Break);
        blocks.extend(brief(&body.blame, most));
        blocks.extend(notes(report, body.blame.fallback.as_deref()));
        blocks
    };
    let fits = |most: &usize| text::rendered(&page(*most)).lines() <= LINES;
    page(BRIEF.rev().find(fits).unwrap_or(*BRIEF.start()))
}

/// The first notes, without one that is said elsewhere; the blank line above them is the first
/// block.
fn notes(report: &Report, said: Option<&str>) -> Vec<Block> {
    let mut notes = judged::warnings_but(report, said);
    let more = notes.len().saturating_sub(1 + BRIEF_NOTES);
    if more > 1 {
        notes.truncate(1 + BRIEF_NOTES);
        notes.push(Block::words_at(1, format!("{more} more notes: --verbose")));
    }
    notes
}

/// The blocks of the short page, with so many causes at most.
fn brief(blame: &Blamed, most: usize) -> Vec<Block> {
    let mut blocks = vec![Block::words(blame.sentence.clone())];
    blocks.extend(blame.stopped_by.as_ref().map(|stop| Block::words(stop_words(stop))));
    blocks.push(runs(blame, BRIEF_RUNS));
    match blame.fallback {
        None => blocks.extend(caused(&blame.causes, &blame.busy_causes, most)),
        // What gives causes stands in the first sentence.
        Some(_) if blame.causes.iter().any(BlamedCause::is_known) => {
            blocks.extend(listed(CauseList::Coincided, &blame.causes, most));
        }
        Some(_) => {}
    }
    let gaps = gaps(blame).collect::<Vec<_>>();
    let kept = blame.kept.as_ref().map(kept_words);
    let price = blame.price.as_ref().and_then(brief_price).filter(|_| blame.fallback.is_none());
    let lines: Vec<String> = gaps.into_iter().chain(kept).chain(price).collect();
    if !lines.is_empty() {
        blocks.push(Block::Break);
        blocks.extend(lines.into_iter().map(Block::words));
    }
    if !blame.worst.is_empty() {
        let more = "--verbose has the latest wakes as they passed, --json all causes";
        blocks.push(Block::words(more));
    }
    blocks
}

/// Each thread in a line: how late it was, and its first cause.
pub(super) fn lines(blame: &Blamed) -> String {
    let line = |run: &BlamedRun| {
        let worst = figure(run.max_ns, run.bounds.map(|bounds| bounds.max_ns));
        let (name, wakes) = (format::plain(&run.name), format::count(run.wakes));
        let Some(threshold_ns) = run.threshold_ns.filter(|_| run.late > 0) else {
            return format!("{name}: none of {wakes} wakes was late, worst {worst}\n");
        };
        let late = format!("{} of {wakes} wakes", format::count(run.late));
        let first = run.causes.iter().find(|cause| cause.is_known());
        let cause = match (first, &blame.fallback) {
            (Some(cause), _) => {
                let share = format::share(cause.share_of_time);
                format!("{share} of the time lost: {}", format::plain(&cause.name))
            }
            (None, Some(_)) => "no cause is known without the kernel's events".to_owned(),
            (None, None) => "no cause is known".to_owned(),
        };
        format!("{name}: {late} later than {}, worst {worst}; {cause}\n", ns(threshold_ns))
    };
    blame.runs.iter().map(line).collect()
}

/// The section of a page or of Markdown.
pub(super) fn shown(body: &BlameBody) -> Section {
    let blame = &body.blame;
    let mut blocks = vec![Block::words(blame.sentence.clone())];
    blocks.extend(blame.stopped_by.as_ref().map(|stop| Block::words(stop_words(stop))));
    blocks.push(runs(blame, blame.runs.len()));
    blocks.extend(whole(&blame.causes, &blame.busy_causes));
    if blame.runs.len() > 1 {
        blocks.extend(blame.runs.iter().filter_map(|run| {
            let sentence = format!("{}: {}", run.name, run.sentence);
            let late = (run.late > 0).then_some((CauseList::Late, &run.causes));
            let lists = late.into_iter().chain([(CauseList::Passed, &run.busy_causes)]);
            let lists = lists.filter(|(_, causes)| !causes.is_empty());
            let tables: Vec<Block> = lists.map(|(list, causes)| table(list, causes)).collect();
            (!tables.is_empty()).then_some(Block::Folded(sentence, tables))
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

/// The blocks of one thread alone, while it is recorded.
pub(crate) fn thread(run: &BlamedRun) -> Vec<Block> {
    let mut blocks = vec![Block::words(run.sentence.clone())];
    blocks.extend(caused(&run.causes, &run.busy_causes, EXPLAINED_MAX));
    blocks
}

/// The recording of causes beside loops and its price, in a line; `None` in results without one.
pub(super) fn recorded(report: &Report) -> Option<String> {
    Some(recording(report.body.blame_recording()?, "its worst releases have no cause"))
}

/// The same as a caveat. One that ended early says that, and not what it has not come to.
pub(in crate::view) fn recorded_caveat(report: &Report) -> Option<String> {
    let is_recorded = report.body.blame_recording()?.why_not.is_none();
    recorded(report).filter(|_| is_recorded || !report.envelope.incomplete)
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
        // No recording makes a loop earlier: then the machine was quieter.
        let before = format::ns(Some(before_ns));
        let median = match more_ns > 0.0 {
            true => format!(
                "that made the median of a sleeping loop {} later, of {before}",
                format::ns(Some(more_ns)),
            ),
            false => format!("that made the median of a sleeping loop, of {before}, no later"),
        };
        let missed = missed_words(price).filter(|_| price.makes_missed());
        Some(missed.map_or_else(|| median.clone(), |missed| format!("{median}; {missed}")))
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

/// The causes of the late wakes of each run, a sentence each, then the line about the recording.
pub(super) fn sentences(report: &Report) -> impl Iterator<Item = String> + '_ {
    let sentence = |run: &Run| {
        let sentence = run.blame.as_ref()?.sentence.as_ref()?;
        Some(format!("{}: {sentence}", run.name))
    };
    report.body.runs().iter().filter_map(sentence).chain(recorded(report))
}

/// How many of the causes of runs a document has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CausesShown {
    /// All, and the latest releases as they passed.
    All,
    /// The first ones of each run: for an issue tracker, which takes two screens or so.
    First,
}

/// The causes of a run that a document of few lines has.
const FIRST_CAUSES: usize = 4;

/// The causes of each of these runs; nothing where they were not recorded.
pub(crate) fn of_runs(runs: &[Named<'_>], causes: CausesShown) -> Vec<Block> {
    let blamed = || runs.iter().filter_map(|(name, run)| Some((name, *run, run.blame.as_ref()?)));
    match causes {
        CausesShown::All => {
            blamed().flat_map(|(name, run, blame)| of_run(name, run, blame)).collect()
        }
        CausesShown::First => {
            let mut blocks: Vec<Block> =
                blamed().flat_map(|(name, run, blame)| first_of_run(name, run, blame)).collect();
            let is_more = |blame: &RunBlame| !blame.worst.is_empty() || !blame.latest.is_empty();
            if blamed().any(|(_, run, blame)| is_more(blame) || run.causes.len() > FIRST_CAUSES) {
                blocks.push(Block::words(
                    "all causes, and the latest wakes as they passed: the page of 'punctual \
                     report', --json (runs[].causes, runs[].blame)",
                ));
            }
            blocks
        }
    }
}

/// The sentence about a run, its first causes and what helps against them.
fn first_of_run(name: &str, run: &Run, blame: &RunBlame) -> Vec<Block> {
    let sentence = blame.sentence.iter();
    let mut blocks: Vec<Block> =
        sentence.map(|sentence| Block::words(format!("{name}: {sentence}"))).collect();
    if blame.late == 0 || run.causes.is_empty() {
        return blocks;
    }
    let (first, rest) = run.causes.split_at(FIRST_CAUSES.min(run.causes.len()));
    blocks.push(table(CauseList::Late, first));
    if !rest.is_empty() {
        let share = format::share(rest.iter().map(|cause| cause.share_of_time).sum());
        let plural = if rest.len() == 1 { "" } else { "s" };
        let more = format!("{} more cause{plural}: {share} of the time", rest.len());
        blocks.push(Block::words_at(1, more));
    }
    blocks.extend(helps(&mattering(first, FIRST_CAUSES)));
    blocks
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
        blocks.extend(whole(&run.causes, &[]));
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
            "something is missing of {} wakes",
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

/// A kernel's priority as a person asks for it: FIFO 90, nice 0.
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

/// The threads, in a terminal at most so many.
fn runs(blame: &Blamed, most: usize) -> Block {
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
    let caption = match blame.runs.iter().any(|run| run.bounds.is_some()) {
        false => "Wakes, from the release to the first instruction",
        true => {
            "Wakes, from the release to the first instruction; ≤ at most, ≥ at least, where the \
             records do not show more"
        }
    };
    let order = (0..blame.runs.len().min(most)).collect();
    let columns = heads.len();
    let rows = blame.runs.iter().map(row).collect();
    Table::new(caption, heads, rows).fitted(columns, order).into()
}

/// All causes, what shows those that matter, and what helps against them.
fn whole(late: &[BlamedCause], passed: &[BlamedCause]) -> Vec<Block> {
    let evidence =
        |cause: &&BlamedCause| Block::words(format!("{}: {}.", cause.name, cause.evidence.trim()));
    let (mut blocks, mut matter) = (Vec::new(), Vec::new());
    for (list, causes) in [(CauseList::Late, late), (CauseList::Passed, passed)] {
        if causes.is_empty() {
            continue;
        }
        let mattering = mattering(causes, EXPLAINED_MAX);
        blocks.push(table(list, causes));
        blocks.extend(mattering.iter().map(evidence));
        matter.extend(mattering);
    }
    blocks.extend(helps(&matter));
    blocks
}

fn table(list: CauseList, causes: &[BlamedCause]) -> Block {
    let counted = list.counted();
    let heads = [
        words("cause"),
        numbers("time"),
        numbers("of time"),
        numbers(&format!("in {counted}")),
        numbers("main of"),
        numbers(&format!("of {counted}")),
        numbers("worst"),
        numbers("sure"),
        numbers("CPU"),
        words("rule"),
    ];
    let brief = |cause: &BlamedCause| {
        let [time, share, wakes, sure] = figures(cause);
        vec![time, share, wakes, sure, cause.name.clone()]
    };
    let shown =
        [numbers("time"), numbers("of it"), numbers(counted), numbers("sure"), words("cause")];
    let briefs: Vec<Vec<String>> = causes.iter().map(brief).collect();
    let row = |cause: &BlamedCause| {
        let [time, share, wakes, sure] = figures(cause);
        vec![
            cause.name.clone(),
            time,
            share,
            wakes,
            format::count(cause.wakes),
            format::share(cause.share_of_late),
            ns(cause.worst_ns),
            sure,
            cause.cpu.map_or_else(|| "-".to_owned(), |cpu| cpu.to_string()),
            cause.rule.clone(),
        ]
    };
    let order = (0..causes.len()).collect();
    Table::new(list.title(), heads, causes.iter().map(row).collect())
        .brief(Frame::Fitted(order), shown, briefs)
        .into()
}

/// The time that a cause took, its share of all, the wakes that have it, and how sure it is. Of
/// results of before the time is not known.
fn figures(cause: &BlamedCause) -> [String; 4] {
    let is_known = cause.time_ns > 0 || cause.share_of_time == 0.0;
    let time = if is_known { ns(cause.time_ns) } else { "-".to_owned() };
    let wakes = format::count(cause.touched.max(cause.wakes));
    [time, format::share(cause.share_of_time), wakes, format::share(cause.confidence)]
}

/// The causes that matter: those that took most time, at most so many, and in any case that of the
/// latest wake beside them.
fn mattering(causes: &[BlamedCause], most: usize) -> Vec<&BlamedCause> {
    let matters = |cause: &&BlamedCause| {
        let is_usual = cause.cause == NORMAL_PATH;
        !is_usual && cause.share_of_time >= EXPLAINED || cause.is_of_latest
    };
    let found = causes.iter().filter(matters).enumerate();
    found.filter(|(at, cause)| *at < most || cause.is_of_latest).map(|(_, cause)| cause).collect()
}

/// The causes that matter, each with its figures and what shows it, and what helps against them;
/// nothing where none is known.
fn caused(late: &[BlamedCause], passed: &[BlamedCause], most: usize) -> Vec<Block> {
    let (mut blocks, mut matter) = (Vec::new(), Vec::new());
    for (list, causes) in [(CauseList::Late, late), (CauseList::Passed, passed)] {
        if causes.iter().any(BlamedCause::is_known) {
            blocks.extend(listed(list, causes, most));
            matter.extend(mattering(causes, most));
        }
    }
    blocks.extend(helps(&matter));
    blocks
}

/// The causes of a list that matter, each with its figures and what shows it.
fn listed(list: CauseList, causes: &[BlamedCause], most: usize) -> Vec<Block> {
    let matter = mattering(causes, most);
    let label = |[time, share, counted, sure]: [&str; 4]| {
        format!("{time:>8}  {share:>6}  {counted:>6}  {sure:>6}")
    };
    let head =
        Item::new(label(["time", "of it", list.counted(), "sure"]), "cause, and what shows it");
    let item = |cause: &&BlamedCause| {
        let figures = figures(cause);
        let text = format!("{}: {}", cause.name, cause.evidence.trim());
        Item::new(label(figures.each_ref().map(String::as_str)), text)
    };
    let items = std::iter::once(head).chain(matter.iter().map(item)).collect();
    let items = Items::new(ItemsKind::Plain, items).spaced(0, 2);
    let mut blocks = vec![Block::Heading(list.title().to_owned()), items.into()];
    let rest = causes.len() - matter.len();
    if rest > 0 {
        let shown: f64 = matter.iter().map(|cause| cause.share_of_time).sum();
        let share = format::share((1.0 - shown).clamp(0.0, 1.0));
        let plural = if rest == 1 { "" } else { "s" };
        blocks.push(Block::words_at(1, format!("{rest} more cause{plural}: {share} of the time")));
    }
    blocks
}

/// The help against causes, each once, with the causes that it is against: most time first.
fn helps(causes: &[&BlamedCause]) -> Vec<Block> {
    let mut found: Vec<(&str, Vec<&BlamedCause>)> = Vec::new();
    let is_helped = |cause: &&&BlamedCause| cause.is_known() && !cause.advice.trim().is_empty();
    for cause in causes.iter().filter(is_helped) {
        let advice = cause.advice.trim();
        match found.iter_mut().find(|(known, _)| *known == advice) {
            Some((_, helped)) => helped.push(cause),
            None => found.push((advice, vec![cause])),
        }
    }
    if found.is_empty() {
        return Vec::new();
    }
    let item = |(advice, helped): (&str, Vec<&BlamedCause>)| {
        // One that made wakes late may have let releases pass too.
        let mut names: Vec<&str> = helped.iter().map(|cause| cause.name.as_str()).collect();
        let mut known = BTreeSet::new();
        names.retain(|name| known.insert(*name));
        let rule = helped.iter().find_map(|cause| cause.tune_rule.as_ref());
        let rule = rule.map_or_else(String::new, |rule| format!(" (tune: {rule})"));
        Item::new("-", format!("{}: {advice}{rule}", names.join("; ")))
    };
    let items = found.into_iter().map(item).collect();
    let list = Items::new(ItemsKind::Plain, items);
    vec![Block::Heading("What helps".to_owned()), list.into()]
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

/// The stretches of a wake from its release to its first instruction; in a terminal without the
/// CPUs.
fn timeline(wake: &BlamedWake) -> Vec<Block> {
    let stretches = wake.stretches();
    let brief = |stretch: &WakeStretch| {
        vec![ns(stretch.after_ns), ns(stretch.length_ns), stretch.marked_cause()]
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
    let note = stretches.iter().any(|stretch| stretch.is_sum).then(|| {
        Block::words(
            "A wait of more parts than are kept: those added up are as long as they say, and their \
             places are not known.",
        )
    });
    let chain = (!wake.chain.is_empty())
        .then(|| Block::words(format!("in the kernel: {}", wake.chain.join(" ← "))));
    let counted = wake.processor.as_ref().and_then(counted_words).map(Block::words);
    [Some(table.into()), note, chain, counted].into_iter().flatten().collect()
}

/// The processor's counts around a wake, in a line; `None` where it has none.
fn counted_words(counted: &CountedWake) -> Option<String> {
    let part = |place: &str, work: Option<CountedWork>| {
        let CountedWork { cycles, instructions, cache_misses, stalled_cycles } = work?;
        let of_cycle = cycles.zip(instructions).filter(|(cycles, _)| *cycles > 0);
        let rate = of_cycle
            .map(|(cycles, done)| format!(" ({:.2} a cycle)", done as f64 / cycles as f64))
            .unwrap_or_default();
        let counts = [
            cycles.map(|count| format!("{} cycles", format::count(count))),
            instructions.map(|count| format!("{} instructions{rate}", format::count(count))),
            cache_misses.map(|count| format!("{} cache misses", format::count(count))),
            stalled_cycles.map(|count| format!("{} stalled cycles", format::count(count))),
        ];
        let counts: Vec<String> = counts.into_iter().flatten().collect();
        (!counts.is_empty()).then(|| format!("{place} {}", counts.join(", ")))
    };
    let parts = [
        part("its CPU counted while it waited:", counted.wait),
        part("in its cycle before:", counted.cycle),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
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
    let missed = missed_words(price).map_or_else(String::new, |missed| format!("; {missed}"));
    format!(
        "{}: {} before it (n {}), {} meanwhile (n {}); 99 %: {} and {}{missed}",
        cost(median_ns),
        format::ns(before.p50),
        format::count(price.unrecorded),
        format::ns(meanwhile.p50),
        format::count(price.recorded),
        format::ns(before.p99),
        format::ns(meanwhile.p99),
    )
}

/// The same in a line; nothing where it is not known.
fn brief_price(price: &RecordingPrice) -> Option<String> {
    let (more_ns, before_ns) = (price.median_ns()?, price.unrecorded_ns.p50?);
    let median = format!("{}, of {}", cost(more_ns), format::ns(Some(before_ns)));
    let missed = missed_words(price).filter(|_| price.makes_missed());
    Some(missed.map_or_else(|| median.clone(), |missed| format!("{median}; {missed}")))
}

/// The releases that the loop missed without and with a recording; nothing where it missed none, or
/// where that is not known.
fn missed_words(price: &RecordingPrice) -> Option<String> {
    let (before, meanwhile) = price.missed_shares().filter(|shares| *shares != (0.0, 0.0))?;
    let [before, meanwhile] = [before, meanwhile].map(format::share);
    Some(format!("it missed {before} of its releases without, {meanwhile} with"))
}

/// What recording cost a loop at the median, of so many ns more: it makes no wake earlier, the
/// machine did.
fn cost(more_ns: f64) -> String {
    if more_ns <= 0.0 {
        return "what recording cost the loop at the median is less than what the machine did by \
                itself"
            .to_owned();
    }
    format!("recording cost the loop {} more at the median", format::ns(Some(more_ns)))
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
    if let Some(why) = &evidence.reader_refused {
        text += &format!(", without real-time priority ({why}): a busy machine may keep it away");
    }
    if evidence.damaged > 0 {
        text += &format!("; {} records were not understood", format::count(evidence.damaged));
    }
    let missing = evidence.missing.len();
    if missing > 0 {
        text += &format!(
            "; {missing} kinds of evidence are missing (the JSON says which, and what that costs)"
        );
    }
    text
}

/// The wake that ended the recording, in a sentence.
pub(crate) fn stop_words(stop: &BlamedStop) -> String {
    format!(
        "ended by a wake of {} ({}) that was {} late, released at {:.6} s: --stop-over",
        stop.name,
        stop.tid,
        ns(stop.lateness_ns),
        stop.release_ns as f64 / 1e9,
    )
}

/// The late wakes that were kept with their events, and those that had no room, in a sentence.
fn kept_words(kept: &KeptCounts) -> String {
    let mut text = format!(
        "kept: {} events around {} late {}",
        format::count(kept.events),
        format::count(kept.wakes),
        if kept.wakes == 1 { "wake" } else { "wakes" },
    );
    if kept.dropped > 0 {
        text += &format!("; for {} more there was no room", format::count(kept.dropped));
    }
    if kept.cut > 0 {
        let cut = format::count(kept.cut);
        text +=
            &format!("; of {cut} of them the beginning is missing: too much happened meanwhile");
    }
    text
}

/// Gaps of the recording, a sentence each: records lost, what else is not as it should be, CPUs
/// not seen, threads left out.
fn gaps(blame: &Blamed) -> impl Iterator<Item = String> + '_ {
    let lost = (blame.lost > 0).then(|| {
        format!("{} records were lost: wakes that they touch are marked", format::count(blame.lost))
    });
    let flaw = |flaw: &BlamedFlaw| format!("{} ({})", flaw.words, format::count(flaw.count));
    let flaws: Vec<String> = blame.flaws.iter().map(flaw).collect();
    let flawed = (!flaws.is_empty()).then(|| format!("not as it should be: {}", flaws.join("; ")));
    let unseen = blame.evidence.as_ref().is_some_and(|evidence| evidence.unseen_cpus > 0);
    let unseen = unseen.then(|| "some CPUs were not seen: they came or went".to_owned());
    let more = (blame.more_runs > 0)
        .then(|| format!("{} more threads are left out", format::count(blame.more_runs)));
    let is_blind = |run: &&BlamedRun| run.censored as f64 > CENSORED * run.wakes as f64;
    let blind = blame.runs.iter().filter(is_blind).map(|run| {
        format!(
            "when {} of the {} wakes of {} ran is not recorded (on some virtual machines an idle \
             CPU records nothing): their lateness is a lower bound. Another CPU, or --load cpu, \
             shows it",
            format::count(run.censored),
            format::count(run.wakes),
            run.name,
        )
    });
    [lost, flawed, unseen, more].into_iter().flatten().chain(blind)
}

#[cfg(test)]
mod tests {
    use punctual_analysis::summary::SummaryStats;
    use punctual_lab::blame::MissedReleases;

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

    fn cause(name: &str, share: f64, advice: &str) -> BlamedCause {
        BlamedCause {
            cause: "ipi".to_owned(),
            name: name.to_owned(),
            wakes: 1,
            touched: 3,
            time_ns: (share * 1e6) as u64,
            share_of_time: share,
            confidence: 0.9,
            evidence: format!("what shows {name}"),
            advice: advice.to_owned(),
            tune_rule: Some("isolation.isolcpus".to_owned()),
            ..BlamedCause::default()
        }
    }

    fn shown(blocks: &[Block]) -> String {
        spaced(&text::rendered(blocks).to_string())
    }

    /// A text whose spaces may all be broken.
    fn spaced(text: &str) -> String {
        let space = |c: char| if c != '\n' && c.is_whitespace() { ' ' } else { c };
        text.chars().map(space).collect()
    }

    #[test]
    fn an_issue_tracker_gets_the_first_causes_and_where_all_are() {
        let stored = include_str!("../../../tests/results/kinds/check.json");
        let mut stored: serde_json::Value = serde_json::from_str(stored).expect("JSON");
        let causes: Vec<BlamedCause> =
            (0..60).map(|number| cause(&format!("cause {number}"), 0.015, "Wait.")).collect();
        let part = serde_json::json!({
            "after_ns": 0, "length_ns": 5_000, "cpu": 1, "cause": "host", "rule": "host",
            "confidence": 0.9, "is_sum": false
        });
        let wake = serde_json::json!({
            "cycle": 5, "name": "punctual-loop", "tid": 9, "cpu": 1, "release_ns": 0,
            "lateness_ns": 5_000, "cause": "host", "is_whole": true, "parts": vec![part; 20],
            "chain": []
        });
        for run in stored["runs"].as_array_mut().expect("runs") {
            run["causes"] = serde_json::to_value(&causes).expect("plain data");
            run["blame"] = serde_json::json!({
                "sentence": "60 causes made it late.", "wakes": 5_000, "threshold_ns": 4_000,
                "late": 60, "censored": 0, "broken": 0, "cycles": [],
                "worst": vec![wake.clone(); 20]
            });
        }
        let report = Report::parse(&stored.to_string()).expect("a result");
        let page = crate::view::markdown(&report);
        assert!(page.lines().count() < 130, "{}: {page}", page.lines().count());
        assert!(page.contains("60 causes made it late.") && page.contains("| cause 3 |"), "{page}");
        assert!(page.contains("56 more causes: 84 % of the time"), "{page}");
        assert!(!page.contains("as it passed:") && page.contains("'punctual report'"), "{page}");
        let whole = crate::view::text(&report, None, crate::args::Detail::Long).to_string();
        let whole = whole.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(whole.contains("as it passed:"), "{whole}");
    }

    #[test]
    fn advice_that_several_causes_share_is_given_once() {
        let causes = [
            cause("a", 0.5, "Isolate it."),
            cause("b", 0.2, "Wait."),
            cause("c", 0.2, "Isolate it."),
        ];
        let page = shown(&helps(&mattering(&causes, 6)));
        let expected = "\nWhat helps\n  - a; c: Isolate it. (tune: isolation.isolcpus)\n  - b: \
                        Wait. (tune: isolation.isolcpus)\n";
        assert_eq!(page, expected);
    }

    #[test]
    fn each_cause_has_its_figures_how_sure_it_is_and_what_shows_it_in_eighty_columns() {
        let long = "cargo (nice 0, more than 64 threads of 12 processes) was not preempted in \
                    asm_exc_page_fault";
        let causes = [cause(long, 0.7, "Isolate it."), cause("host took the CPU", 0.2, "Wait.")];
        let page = shown(&caused(&causes, &[], 6));
        assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
        let head =
            page.lines().find(|line| line.contains("sure")).unwrap_or_else(|| panic!("{page}"));
        let row = page.lines().find(|line| line.contains("host took the CPU:"));
        let row = row.unwrap_or_else(|| panic!("{page}"));
        let figures: Vec<&str> = row.split("  ").filter(|cell| !cell.is_empty()).take(4).collect();
        let figures: Vec<&str> = figures.into_iter().map(str::trim).collect();
        assert_eq!(figures, ["200 µs", "20 %", "3", "90 %"], "{page}");
        assert_eq!(
            head.find("cause,").map(|at| head[..at].chars().count()),
            row.find("host").map(|at| row[..at].chars().count())
        );
        assert!(page.contains("12 processes") && page.contains("what shows host"), "{page}");
    }

    #[test]
    fn the_cause_of_the_latest_wake_is_shown_however_little_time_it_took() {
        let mut causes: Vec<BlamedCause> =
            (0..9).map(|number| cause(&format!("cause {number}"), 0.1, "Wait.")).collect();
        causes.push(BlamedCause { is_of_latest: true, ..cause("the latest", 0.001, "Look.") });
        let page = shown(&caused(&causes, &[], 3));
        // It stands beside larger ones, not in the place of one.
        assert!(page.contains("cause 2:") && !page.contains("cause 3:"), "{page}");
        assert!(page.contains("the latest:") && page.contains("Look."), "{page}");
        let more = page.lines().find(|line| line.contains("more causes:")).unwrap_or_default();
        assert!(more.contains("6 more causes: 70 % of the time"), "{page}");
    }

    #[test]
    fn what_let_releases_pass_is_a_list_of_its_own_and_its_advice_is_given_once() {
        let late = [cause("a", 0.9, "Isolate it.")];
        let passed = [cause("b", 0.5, "Isolate it."), cause("a", 0.4, "Isolate it.")];
        let page = shown(&caused(&late, &passed, 6));
        assert!(page.contains("What let releases pass") && page.contains(" cycles "), "{page}");
        assert!(page.ends_with("\n  - a; b: Isolate it. (tune: isolation.isolcpus)\n"), "{page}");
        assert!(!shown(&caused(&late, &[], 6)).contains("releases pass"));
        let alone = Blamed { busy_causes: passed.to_vec(), ..blamed(0) };
        let alone = shown(&brief(&alone, 3));
        assert!(alone.contains("What let releases pass") && alone.contains("b: "), "{alone}");
        assert!(!alone.contains("Causes of late wakes"), "{alone}");
    }

    /// A result with so many causes, as long as names and evidence are.
    fn blamed(causes: usize) -> Blamed {
        let long = "rustc (nice 0, 12 threads of 3 processes) was not preempted in fault";
        let evidence = "it ran in 31 wakes although a switch was wanted";
        let causes = (0..causes).map(|number| {
            let name = format!("{long} {number}");
            let advice = format!("Advice {number} of two lines or so: {}.", "words ".repeat(18));
            let evidence = evidence.to_owned();
            BlamedCause { evidence, ..cause(&name, 1.0 / causes as f64, &advice) }
        });
        let causes: Vec<BlamedCause> = causes.collect();
        let run = BlamedRun {
            name: "punctual-loop".to_owned(),
            tid: 7,
            cpu: 1,
            kernel_priority: 9,
            period_ns: Some(1_000_000),
            margin_ns: 0,
            wakes: 4_491,
            p50_ns: Some(15_200),
            p99_ns: Some(32_800),
            max_ns: Some(3_740_000),
            bounds: None,
            threshold_ns: Some(32_800),
            late: 43,
            censored: 4_282,
            broken: 0,
            unseen: None,
            begun: 0,
            waiting: 0,
            busy: 0,
            busy_longest_ns: 0,
            has_ended: false,
            sentence: String::new(),
            wanted: None,
            causes: causes.clone(),
            busy_causes: Vec::new(),
        };
        Blamed {
            sentence: "81 % of the 12.4 ms lost: ".to_owned() + &"some cause or other; ".repeat(20),
            duration_ns: 5_000_000_000,
            causes,
            busy_causes: Vec::new(),
            runs: vec![run],
            more_runs: 0,
            worst: Vec::new(),
            senders: Vec::new(),
            price: None,
            evidence: None,
            lost: 3,
            holes: 0,
            unknown_releases: 0,
            flaws: Vec::new(),
            stopped_by: None,
            kept: None,
            fallback: None,
        }
    }

    #[test]
    fn a_price_in_missed_releases_stands_beside_the_median() {
        let median = |ns| SummaryStats { p50: Some(ns), ..SummaryStats::default() };
        let missed = |releases| Some(MissedReleases { releases, gaps: releases });
        let mut price = RecordingPrice {
            unrecorded_ns: median(7_000.0),
            recorded_ns: median(8_500.0),
            unrecorded: 38_115,
            recorded: 31_013,
            unrecorded_missed: missed(1_885),
            recorded_missed: missed(8_987),
        };
        let line = |price: &RecordingPrice| {
            let recording = BlameRecording {
                is_recorded: true,
                why_not: None,
                is_asked: true,
                place: RecordedWhere::Within,
                price: Some(price.clone()),
                evidence: None,
            };
            super::recording(&recording, "").replace('\u{a0}', " ")
        };
        let both = "it missed 4.7 % of its releases without, 22 % with";
        assert!(line(&price).ends_with(&format!("of 7.00 µs; {both}")), "{}", line(&price));
        assert!(price_words(&price).replace('\u{a0}', " ").ends_with(both));
        price.recorded_missed = None;
        assert!(line(&price).ends_with("1.50 µs later, of 7.00 µs"), "not known before");
    }

    #[test]
    fn what_the_processor_counted_is_a_line() {
        let work = CountedWork {
            cycles: Some(2_000_000),
            instructions: Some(500_000),
            cache_misses: Some(7),
            stalled_cycles: None,
        };
        let none = CountedWork {
            cycles: None,
            instructions: None,
            cache_misses: None,
            stalled_cycles: None,
        };
        let counted = CountedWake { wait: Some(work), cycle: None };
        let line = counted_words(&counted).expect("it was counted");
        assert!(line.starts_with("its CPU counted while it waited: "), "{line}");
        assert!(line.contains("instructions (0.25 a cycle), 7 cache misses"), "{line}");
        assert!(!line.contains("stalled") && !line.contains("cycle before"), "{line}");
        assert_eq!(counted_words(&CountedWake { wait: Some(none), cycle: Some(none) }), None);
    }

    #[test]
    fn the_short_page_has_forty_lines_however_many_causes_there_are() {
        for causes in [0, 1, 3, 30] {
            let body = BlameBody { blame: blamed(causes), loads: Vec::new() };
            let envelope = punctual_report::Envelope::of(crate::program::PROGRAM, "blame");
            let report =
                Report { envelope, body: punctual_report::Body::Measured(body.clone().into()) };
            let page = shown(&short(&report, &body));
            assert!(page.lines().count() <= 40, "{}: {page}", page.lines().count());
            assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
            assert_eq!(page.contains("What helps"), causes > 0, "{page}");
        }
    }

    #[test]
    fn what_is_not_as_it_should_be_is_a_line() {
        let flaw = |count, words: &str| BlamedFlaw { count, words: words.to_owned() };
        let flaws = vec![flaw(1_200, "events of the future"), flaw(2, "timers without room")];
        let said: Vec<String> = gaps(&Blamed { flaws, ..blamed(0) }).map(|s| spaced(&s)).collect();
        let expected = [
            "3 records were lost: wakes that they touch are marked",
            "not as it should be: events of the future (1 200); timers without room (2)",
        ];
        assert_eq!(said[..2], expected);
    }

    #[test]
    fn a_recording_names_what_its_reader_lacks() {
        let evidence = CaptureEvidence {
            events: 10,
            bytes: 100,
            lost: 0,
            damaged: 4,
            fullest_bytes: 0,
            ring_bytes: 0,
            reader_cpu_share: None,
            unseen_cpus: 0,
            shares_cpu: false,
            reader_refused: Some("Operation not permitted".to_owned()),
            missing: Vec::new(),
        };
        let words = spaced(&evidence_words(&evidence));
        assert_eq!(
            words,
            "10 events of the kernel, 0 lost, read with - of a CPU, without real-time priority \
             (Operation not permitted): a busy machine may keep it away; 4 records were not \
             understood"
        );
    }

    #[test]
    fn in_one_line_each_thread_names_its_first_cause() {
        let blame = blamed(3);
        let line = spaced(&lines(&blame));
        assert_eq!(line.lines().count(), 1);
        let expected = "punctual-loop: 43 of 4 491 wakes later than 32.8 µs, worst \
                        3.74 ms; 33 % of the time lost: rustc (nice 0, 12 threads";
        assert!(line.starts_with(expected), "{line}");
        let unknown = Blamed { fallback: Some("no rights".to_owned()), ..blamed(0) };
        assert!(lines(&unknown).ends_with("no cause is known without the kernel's events\n"));
        let mut early = blamed(0);
        early.runs[0].late = 0;
        let line = spaced(&lines(&early));
        assert!(line.contains("none of 4 491 wakes was late"), "{line}");
    }
}
