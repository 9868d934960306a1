//! The top of the page: what it is of, what came out, and caveats.

use punctual_analysis::claim::judge::Holds;

use super::markup::{escape, paragraph};
use super::section::{Section, Source};
use crate::format;
use crate::pages::{Page, Shown};
use crate::report::{Advice, Answer, Body, EndedBy, Report, Stands, Verdict};

/// The most notes of a page.
const NOTES: usize = 200;

/// The page's title.
pub(super) fn title(page: &Page) -> String {
    match page.results.as_slice() {
        [] => "no result".to_owned(),
        [one] => {
            format!("Punctuality of {}, {}", one.report.envelope.experiment, machine(&one.report))
        }
        [a, b] => format!("Punctuality of {} and {}", a.label, b.label),
        many => format!("Punctuality of {} results", many.len()),
    }
}

fn known<T: ToString>(value: Option<&T>) -> String {
    value.map_or_else(|| "unknown".to_owned(), ToString::to_string)
}

/// Which machine, in a line.
pub(super) fn machine(report: &Report) -> String {
    let Some(facts) = &report.envelope.machine else {
        return "an unknown machine".into();
    };
    format!(
        "{}, {} CPUs, Linux {}, {}",
        known(facts.cpu.cpu_model.value()),
        known(facts.cpu.cpus.value()),
        known(facts.kernel.kernel.value()),
        known(facts.preemption.preemption.value()),
    )
}

/// The headline, and where each result comes from.
pub(super) fn of(page: &Page) -> String {
    let headline = match page.results.as_slice() {
        [one] => one.report.envelope.experiment.clone(),
        [a, b] => format!("{} and {}", a.label, b.label),
        many => format!("{} results", many.len()),
    };
    let mut html = format!("<h1>Punctuality of {}</h1>", escape(&headline));
    if page.results.len() <= 2 {
        for shown in &page.results {
            html += &origin(shown, page.results.len() > 1);
        }
    }
    html
}

/// Why there is not all of it, as a sentence.
fn incomplete(report: &Report) -> String {
    format::sentence(&EndedBy::words(report.envelope.ended_by))
}

fn origin(shown: &Shown, labelled: bool) -> String {
    let report = &shown.report;
    let label = match labelled {
        true => format!("<strong>{}</strong> · ", escape(&shown.label)),
        false => String::new(),
    };
    let started = report.envelope.started_at.as_deref().unwrap_or("at an unknown time");
    let cpu = report.envelope.choice.as_ref().map_or_else(String::new, |choice| {
        format!(" · CPU {} ({})", escape(&choice.cpus), escape(&choice.why))
    });
    let cut = match report.envelope.incomplete {
        true => paragraph("banner bad", &incomplete(report)),
        false => String::new(),
    };
    format!(
        "<p class=\"origin\">{label}{} · {} · {}{cpu}<br><span class=\"muted\">{}</span></p>{cut}",
        escape(&report.envelope.experiment),
        escape(started),
        escape(&machine(report)),
        escape(&shown.place)
    )
}

/// What it is good for, and whether the limits hold.
pub(super) fn verdicts(source: &Source<'_>) -> Option<Section> {
    let results = &source.page.results;
    if results.len() > 2 {
        return None;
    }
    let cards: String = results.iter().map(|shown| card(shown, results.len() > 1)).collect();
    let body = format!("<div class=\"side\">{cards}</div>");
    Some(Section { id: "verdict", heading: "Verdict", body })
}

fn card(shown: &Shown, labelled: bool) -> String {
    let report = &shown.report;
    let mut html = "<div class=\"card\">".to_owned();
    if labelled {
        html += &format!("<h3>{}</h3>", escape(&shown.label));
    }
    let criteria = report.envelope.verdict.limits.len() + report.envelope.verdict.claims.len();
    if !report.envelope.verdict.ok {
        html += "<p class=\"banner bad\">A limit or claim failed:</p><ul>";
        for reason in &report.envelope.verdict.reasons {
            html += &format!("<li>{}</li>", escape(reason));
        }
        html += "</ul>";
    } else if criteria > 0 {
        let alone = report.envelope.verdict.claims.iter();
        let alone = alone.filter(|claim| claim.judged.holds == Holds::IfAlone).count();
        let alone = match alone {
            0 => String::new(),
            some => format!(" {some} of them only if late cycles come alone."),
        };
        html += &format!("<p class=\"banner good\">Every limit and claim holds.{alone}</p>");
    }
    if let Some(headline) = report.body.headline() {
        for of in &headline.loops {
            let worst = of.worst.as_deref().unwrap_or_default();
            html += &paragraph("", &format!("{} {worst}", of.counts));
        }
        let answered = !report.body.verdicts().is_empty();
        if let Some(question) = headline.question.as_ref().filter(|_| answered) {
            html += &format!("<h3>{}</h3>", escape(question));
        }
    }
    html += &answers(report);
    html += &next(report);
    match &report.body {
        Body::Wait(waits) => {
            let advice =
                waits.advice().unwrap_or_else(|| "No way to wait is recommended.".to_owned());
            html += &paragraph("", &advice);
        }
        body if body.verdicts().is_empty() => {
            let runs = report.body.runs();
            let lateness = runs.iter().any(|run| run.outcome.lateness_ns.max.is_some());
            let lack = if lateness { "do not state their period" } else { "contain no lateness" };
            let words = format!("These data {lack}, so there is no verdict.");
            html += &paragraph("muted", &words);
        }
        _ => {}
    }
    if let Body::Impact(impacted) = &report.body {
        html += &paragraph("", impacted.impact.statement());
        for words in impacted.step_generation.iter().map(|steps| &steps.statement) {
            html += &paragraph("", words);
        }
    }
    html + "</div>"
}

/// Why it came out so, and what next.
fn next(report: &Report) -> String {
    let advice = report.body.headline().map_or(&[][..], |headline| &headline.advice);
    let item = |of: &Advice| {
        let command = of.command.as_ref();
        let command = command.map(|command| format!(": <code>{}</code>", escape(command)));
        let command = command.unwrap_or_default();
        format!("<li><strong>{}</strong> {}{command}</li>", escape(&of.topic), escape(&of.text))
    };
    match advice {
        [] => String::new(),
        some => format!(
            "<h3>Why, and what next</h3><ul class=\"notes\">{}</ul>",
            some.iter().map(item).collect::<String>()
        ),
    }
}

/// A word for each verdict, and its sentence.
fn answers(report: &Report) -> String {
    let mut html = "<dl class=\"verdicts\">".to_owned();
    let unmeasured = |of: &&Verdict| of.stands == Some(Stands::Unmeasured);
    let (rest, judged): (Vec<&Verdict>, Vec<&Verdict>) =
        report.body.verdicts().iter().partition(unmeasured);
    for verdict in judged {
        let word = verdict.word();
        // The badge has the word.
        let prefix = format!("{word}: ");
        let class = match verdict.answer {
            Answer::Yes => "yes",
            Answer::No => "no",
            Answer::Unknown => "unknown",
        };
        let subject = match verdict.subject.as_str() {
            "" => String::new(),
            subject => format!("{subject}: "),
        };
        html += &format!(
            "<dt><span class=\"badge {class}\">{word}</span></dt><dd>{}</dd>",
            escape(
                &(subject + verdict.statement.strip_prefix(&prefix).unwrap_or(&verdict.statement))
            )
        );
    }
    // One line: none of them has an answer.
    if let Some(first) = rest.first() {
        let rates: Vec<&str> = rest.iter().map(|of| of.subject.as_str()).collect();
        html += &format!(
            "<dt><span class=\"badge unknown\">{}</span></dt><dd>{}</dd>",
            first.word(),
            escape(&rates.join(", "))
        );
    }
    html + "</dl>"
}

/// What happened, what was refused, what a reader should know.
pub(super) fn warnings(source: &Source<'_>) -> Option<Section> {
    let results = &source.page.results;
    let (mut items, mut count) = (String::new(), 0);
    for shown in results {
        let label = if results.len() > 1 { format!("{}: ", shown.label) } else { String::new() };
        let mut add = |kind: &str, words: &str| {
            count += 1;
            if count > NOTES {
                return;
            }
            items +=
                &format!("<li><strong>{}{kind}</strong> {}</li>", escape(&label), escape(words));
        };
        let report = &shown.report;
        if results.len() > 2 && report.envelope.incomplete {
            add("", &incomplete(report));
        }
        for refused in report.envelope.session.iter().flat_map(|session| &session.refused) {
            let words = format!(
                "{} ({}): {} Consequence: {} Remedy: {}",
                refused.attempt,
                refused.errno,
                refused.explanation.why,
                refused.explanation.cost,
                refused.explanation.remedy
            );
            add("refused:", &words);
        }
        for disturbance in &report.envelope.disturbances {
            let at = format::ns(Some(disturbance.at_ns as f64));
            add("during the run:", &format!("{} (seen at {at})", disturbance.what));
        }
        report.envelope.warnings.iter().for_each(|warning| add("note:", warning));
        shown.notes.iter().for_each(|note| add("note:", note));
    }
    if items.is_empty() {
        return None;
    }
    if count > NOTES {
        items += &format!("<li>and {} more, in the results</li>", count - NOTES);
    }
    let body = format!("<ul class=\"notes\">{items}</ul>");
    Some(Section { id: "notes", heading: "Caveats", body })
}
