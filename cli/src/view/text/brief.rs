//! The short page of measured loops: the verdict first, then the figures, then what next.
//!
//! Fits eighty columns and forty lines, and sixty columns; everything else is in the long page.

use super::{claims, compare, head, histogram, verdict};
use crate::format::{self, Paint};
use crate::report::{
    Advice, Answer, EndedBy, Headline, LoopLine, NOTE_GUEST, NOTE_ORDINARY, Report, Run, Stands,
    Verdict,
};
use crate::view::followed;

/// The most runs whose histogram is drawn.
const DRAWN: usize = 2;

/// The narrowest page with a column for one in a hundred.
const WIDE: usize = 72;

/// The page; `results` is the directory that it is written to.
pub(super) fn page(report: &Report, headline: &Headline, results: Option<&str>) -> String {
    [
        first(report),
        head::refused_briefly(report),
        notes(report),
        table(report),
        histograms(report),
        answers(report, headline),
        verdict::limits(report),
        claims::judged(report),
        compare::against(report),
        next(report, results),
    ]
    .concat()
}

/// One line a measured period, in counts, with its worst; where none was judged a line a run, and
/// nothing without runs.
pub(super) fn line(report: &Report) -> Option<String> {
    let loops = report.body.headline().map_or(&[][..], |headline| &headline.loops);
    let judged = |of: &LoopLine| [&of.counts[..], of.worst.as_deref().unwrap_or("")].join(" ");
    let lines: Vec<String> = match loops {
        [] => report.body.runs().iter().map(figures).collect(),
        loops => loops.iter().map(judged).collect(),
    };
    let end = match report.envelope.incomplete {
        true => format!(" {}", format::sentence(&EndedBy::brief(report.envelope.ended_by))),
        false => String::new(),
    };
    let lines: String =
        lines.iter().map(|line| format::plain(line.trim_end()) + &end + "\n").collect();
    (!lines.is_empty()).then_some(lines)
}

/// A run in a line.
fn figures(run: &Run) -> String {
    let (name, outcome) = (&run.name, &run.outcome);
    let lateness = &outcome.lateness_ns;
    let Some(imported) = outcome.imported.as_ref().filter(|_| lateness.max.is_none()) else {
        return format!(
            "{name}: {} releases, {} missed, typical {}, worst {}.",
            format::count(outcome.releases()),
            format::count_or_dash(outcome.missed),
            format::ns(lateness.p50),
            format::largest(lateness.max, outcome.unknown()),
        );
    };
    let n = format::count(outcome.cycles);
    let (typical, worst) = (imported.values_ns.p50, imported.values_ns.max);
    let holds = imported.holds.many();
    format!("{name}: {n} {holds}, typical {}, worst {}.", format::ns(typical), format::ns(worst))
}

/// Each measured period in counts, and its worst.
pub(super) fn first(report: &Report) -> String {
    let mut page = String::new();
    for of in report.body.headline().iter().flat_map(|headline| &headline.loops) {
        page += &(format::wrap(&of.counts, 2) + "\n");
        page += &of.worst.as_ref().map_or_else(String::new, |worst| format::wrap(worst, 2) + "\n");
    }
    page
}

/// What a reader should know that stands nowhere else on the page.
fn notes(report: &Report) -> String {
    let mut page = head::incomplete(report);
    let follow = report.body.loops().and_then(|loops| loops.follow.as_ref());
    page += &follow.map_or_else(String::new, |of| format::wrap(&followed::words(of), 2) + "\n");
    let events = report.envelope.disturbances.iter();
    let events = events.map(|event| format!("during the run: {}", event.what));
    let elsewhere = [NOTE_GUEST, NOTE_ORDINARY];
    let warnings = report.envelope.warnings.iter();
    let warnings = warnings.filter(|text| !elsewhere.contains(&text.as_str())).cloned();
    for text in events.chain(warnings.map(|text| format!("note: {text}"))) {
        page += &(format::wrap(&text, 2) + "\n");
    }
    page
}

/// The names of the runs, without the CPU where there is one.
fn names(runs: &[Run]) -> Vec<String> {
    let cpu = |name: &str| name.split_once(", ").map(|(cpu, _)| cpu.to_owned());
    let first = runs.first().and_then(|run| cpu(&run.name));
    let same = first.filter(|first| {
        first.starts_with("CPU ") && runs.iter().all(|run| cpu(&run.name).as_ref() == Some(first))
    });
    let name = |run: &Run| match &same {
        Some(cpu) => run.name[cpu.len() + 2..].to_owned(),
        None => run.name.clone(),
    };
    runs.iter().map(|run| format::plain(&name(run))).collect()
}

/// Lateness of the releases of each run.
fn table(report: &Report) -> String {
    let runs = report.body.runs();
    let names = names(runs);
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let wide = format::width() >= WIDE;
    let title = "lateness of releases";
    let width = width.max(if wide { title.len() } else { 8 });
    // Where names are long and the terminal is narrow, the first lines have the releases.
    let has_releases = wide || width + 47 <= format::width();
    let last = if has_releases { 15 } else { 10 };
    let head = |typical: &str, p99: &str, p999: &str, worst: &str, missed: &str, name: &str| {
        let p99 = if wide { format!("{p99:>10}") } else { String::new() };
        format!("  {name:width$}{typical:>9}{p99}{p999:>11}{worst:>10}{missed:>last$}\n")
    };
    let heading = if wide { title } else { "lateness" };
    let mut page =
        format!("\n{}", head("typical", "1 in 100", "1 in 1000", "worst", "missed", heading));
    for (run, name) in runs.iter().zip(&names) {
        let of = &run.outcome.lateness_ns;
        let n = format::count(run.outcome.releases());
        let missed = run.outcome.missed.map_or_else(|| "-".to_owned(), format::count);
        let missed = if has_releases { format!("{missed}/{n}") } else { missed };
        page += &head(
            &format::ns(of.p50),
            &format::ns(of.p99),
            &format::ns(of.p99_9),
            &format::largest(of.max, run.outcome.unknown()),
            &missed,
            name,
        );
    }
    page
}

fn histograms(report: &Report) -> String {
    let runs = report.body.runs();
    let names = names(runs);
    let width = names.iter().take(DRAWN).map(|name| name.chars().count()).max().unwrap_or(0);
    let drawn = runs.iter().zip(&names).take(DRAWN);
    drawn.filter_map(|(run, name)| histogram::line(run, &format!("{name:width$}"))).collect()
}

/// The question and its answers: those measured, and one neighbour.
fn answers(report: &Report, headline: &Headline) -> String {
    let verdicts = report.body.verdicts();
    let Some(question) = headline.question.as_ref().filter(|_| !verdicts.is_empty()) else {
        return String::new();
    };
    let mut page = format!("\n{}\n", format::wrap(question, 2));
    let shown: Vec<&Verdict> = shown(verdicts);
    let width = shown.iter().map(|of| of.subject.chars().count()).max().unwrap_or(0);
    for of in shown {
        page += &answer(of, width.max(7));
    }
    page
}

/// All that was measured; where all of it holds the next shorter period, else the shortest longer
/// one that is expected to.
fn shown(verdicts: &[Verdict]) -> Vec<&Verdict> {
    let is = |of: &&Verdict, stands| of.stands == Some(stands);
    let measured = |of: &&Verdict| !is(of, Stands::Expected) && !is(of, Stands::Unmeasured);
    let mut shown: Vec<&Verdict> = verdicts.iter().filter(measured).collect();
    let good = shown.iter().all(|of| of.answer == Answer::Yes);
    let first = |of: &&Verdict| shown.first().is_none_or(|first| of.period_ns < first.period_ns);
    let next = match good && !shown.is_empty() {
        true => verdicts.iter().rfind(|of| is(of, Stands::Unmeasured) && first(of)),
        false => {
            let expected = verdicts.iter().find(|of| is(of, Stands::Expected));
            expected.or_else(|| verdicts.iter().rfind(|of| is(of, Stands::Unmeasured)))
        }
    };
    shown.extend(next);
    shown
}

/// One answer, its word in its colour, its command behind it or on a line of its own.
pub(super) fn answer(of: &Verdict, width: usize) -> String {
    let subject = format::plain(&of.subject);
    let text = match &of.command {
        Some(command) => format!("{}: {}", of.statement, format::command(command)),
        None => of.statement.clone(),
    };
    let text = format::wrap(&format!("  {subject:width$}  {text}"), width + 4);
    let paint = match of.answer {
        Answer::Yes => Paint::Good,
        Answer::No => Paint::Bad,
        Answer::Unknown => Paint::Open,
    };
    format::painted(&text, of.first_word(), paint) + "\n"
}

/// Why, and what next; the details last.
pub(super) fn next(report: &Report, results: Option<&str>) -> String {
    let advice = report.body.headline().map_or(&[][..], |headline| &headline.advice);
    let title = if advice.is_empty() { "What next" } else { "Why, and what next" };
    let details = results.map(|results| {
        let path = format!("{}/report.html", format::plain(results));
        let open = if format::has_desktop() { "xdg-open " } else { "" };
        ("details".to_owned(), format!("{open}{path}"))
    });
    let advice = advice.iter().map(|Advice { topic, text, command }| {
        let command = command.as_ref().map(|command| format!(": {}", format::command(command)));
        (topic.clone(), text.clone() + &command.unwrap_or_default())
    });
    let lines: Vec<(String, String)> = advice.chain(details).collect();
    if lines.is_empty() {
        return String::new();
    }
    let line =
        |(topic, text): &(String, String)| format::wrap(&format!("  {topic:9}  {text}"), 13) + "\n";
    format!("\n{title}\n{}", lines.iter().map(line).collect::<String>())
}
