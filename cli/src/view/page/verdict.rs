//! The top of a page: what it is of, what came out, and caveats.

use punctual_analysis::claim::judge::Holds;
use punctual_document::html::Origin;
use punctual_document::{Block, Item, Items, ItemsKind, Row, Section, Tone, Words};
use punctual_report::measured::Measured;
use punctual_report::{About, Advice, Answer, Body, EndedBy, Reason, Report, Run, Stands, Verdict};

use super::source::{Source, some};
use crate::format;
use crate::pages::{Page, Shown};
use crate::view::kinds::{blame, held, impact, loops, reproduced};

/// The most notes of a page.
const NOTES: usize = 200;

/// The page's title: its heading, and the machine of a single result.
pub(super) fn title(page: &Page) -> String {
    match page.results.as_slice() {
        [] => "no result".to_owned(),
        [shown] => {
            let started = shown.report.envelope.started_at.as_deref();
            let started = started.and_then(|at| at.get(..16)).unwrap_or("an unknown time");
            format!("{}, {}", heading(page), started.replace('T', " "))
        }
        _ => heading(page),
    }
}

/// The heading of the page: what it is of.
pub(super) fn heading(page: &Page) -> String {
    match page.results.as_slice() {
        [shown] => {
            let Report { envelope, .. } = &shown.report;
            let Some(facts) = &envelope.machine else {
                return format!("Punctuality of {}", shown.label);
            };
            let (cpu, kernel) = (facts.cpu.cpu_model.value(), facts.kernel.kernel.value());
            format!("Punctuality of {}, Linux {}", known(cpu), known(kernel))
        }
        [a, b] => format!("Punctuality of {} and {}", a.label, b.label),
        many => format!("Punctuality of {} results", many.len()),
    }
}

/// Where a result comes from, behind its name where it is one of several.
pub(super) fn origin(shown: &Shown, named: bool) -> Origin {
    let envelope = &shown.report.envelope;
    let started = envelope.started().unwrap_or_else(|| "at an unknown time".to_owned());
    let cpu = envelope
        .choice
        .as_ref()
        .map_or_else(String::new, |choice| format!(" · CPU {} ({})", choice.cpus, choice.why));
    let machine = machine(&shown.report);
    Origin {
        label: named.then(|| shown.label.clone()),
        text: format!("{} · {started} · {machine}{cpu}", envelope.experiment),
        place: shown.place.clone(),
        caveat: incomplete(&shown.report),
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

/// The reason why it is incomplete, as a sentence; `None` where it is whole.
fn incomplete(report: &Report) -> Option<String> {
    let words = || format::sentence(&EndedBy::words(report.envelope.ended_by));
    report.envelope.incomplete.then(words)
}

/// The applications that it is good for, and the judgement by limits and claims.
pub(super) fn verdicts(source: &Source<'_>) -> Option<Section> {
    let results = source.few();
    let is_silent = |shown: &Shown| card(shown, false).is_empty();
    if !results.is_empty() && results.iter().all(is_silent) {
        return None;
    }
    let cards = results.iter().map(|shown| card(shown, results.len() > 1)).collect();
    let blocks = vec![Block::Row(Row::Results, cards)];
    let section = Section { id: "verdict", heading: "Verdict", blocks };
    (!results.is_empty() || source.page.results.is_empty()).then_some(section)
}

fn card(shown: &Shown, labelled: bool) -> Vec<Block> {
    let report = &shown.report;
    let mut blocks = Vec::new();
    if labelled {
        blocks.push(Block::Heading(shown.label.clone()));
    }
    blocks.extend(criteria(report));
    if let Some(headline) = report.body.headline() {
        for line in &headline.loops {
            let worst = line.worst.as_deref().unwrap_or_default();
            blocks.push(Block::words(format!("{} {worst}", line.counts)));
        }
        blocks.extend(headline.not_idle.iter().map(Block::words));
        let answered = !report.body.verdicts().is_empty();
        let question = headline.question.as_ref().filter(|_| answered);
        blocks.extend(question.cloned().map(Block::Heading));
    }
    blocks.extend(answers(report.body.verdicts()));
    blocks.extend(next(report));
    blocks.extend(body_sentences(report));
    blocks
}

/// The judgement by limits and claims; empty where none were given and nothing failed.
fn criteria(report: &Report) -> Vec<Block> {
    let verdict = &report.envelope.verdict;
    let banner = |text: String, tone| Block::from(Words::new(text).toned(tone));
    let listed = |reasons: Vec<String>| {
        let reasons = reasons.into_iter().map(|reason| Item::new("", reason)).collect();
        Block::from(Items::new(ItemsKind::Plain, reasons))
    };
    let mut blocks = Vec::new();
    let (failed, open) = (once(report, verdict.reasons()), once(report, verdict.open()));
    if !failed.is_empty() && !verdict.ok && !verdict.is_undecided() {
        blocks.push(banner(failure(report).to_owned(), Tone::Bad));
        blocks.push(listed(failed));
    }
    if !open.is_empty() {
        blocks.push(banner("Not decided by this run:".to_owned(), Tone::Plain));
        blocks.push(listed(open));
    }
    if !blocks.is_empty() || verdict.limits.len() + verdict.claims.len() == 0 {
        return blocks;
    }
    let claims = verdict.claims.iter();
    let alone = match claims.filter(|claim| claim.judged.holds == Holds::IfAlone).count() {
        0 => String::new(),
        some => format!(" {some} of them only if late releases come alone."),
    };
    vec![banner(format!("Every limit and claim holds.{alone}"), Tone::Good)]
}

/// The heading of what failed.
fn failure(report: &Report) -> &'static str {
    let verdict = &report.envelope.verdict;
    match (verdict.fails_by_criteria(), verdict.fails_by_comparison(), &report.body) {
        (true, true, _) => "A limit or claim, and the comparison, failed:",
        (true, false, _) => "A limit or claim failed:",
        (false, true, _) | (false, false, Body::Compare(_)) => "The comparison failed:",
        // Nothing ran.
        (false, false, Body::Tune(_)) => "A setting conflicts or has no effect:",
        (false, false, _) => "The run failed:",
    }
}

/// Reasons, without the answers, which stand below, and in which what the section of the comparison
/// says of its runs is that it is compared: once is enough.
fn once<'a>(report: &Report, reasons: impl Iterator<Item = Reason<'a>>) -> Vec<String> {
    let is_said = |reason: &Reason<'_>| matches!(reason.about, About::Run { .. });
    let reasons = reasons.filter(|reason| !is_answer(report, reason));
    let (compared, others): (Vec<_>, Vec<_>) = reasons.partition(is_said);
    let held = if compared.is_empty() { Vec::new() } else { held(report) };
    held.into_iter().chain(others.into_iter().map(|reason| reason.text.to_owned())).collect()
}

/// The sentences of a kind of result about itself.
fn body_sentences(report: &Report) -> Vec<Block> {
    let mut blocks = Vec::new();
    match &report.body {
        Body::Wait(waits) => {
            let none = || "No way to wait is recommended.".to_owned();
            let advice = Words::new(waits.advice().unwrap_or_else(none));
            blocks.push(advice.toned(answer_tone(report)).into());
        }
        Body::Measured(Measured::Blame(body)) => {
            let mut rows = rows(&body.blame.sentence).into_iter();
            blocks.extend(rows.next().map(Block::words));
            let rest: Vec<Item> = rows.map(|row| Item::new("", row)).collect();
            if !rest.is_empty() {
                blocks.push(Items::new(ItemsKind::Plain, rest).into());
            }
        }
        Body::Measured(Measured::Noise(body)) => blocks.extend(body.answer().map(Block::words)),
        Body::Reproduce(body) => blocks.extend(reproduced::claims(body, false)),
        Body::Impact(body) => {
            let statement = Words::new(impact::answered(&body.impact));
            blocks.push(statement.toned(answer_tone(report)).into());
        }
        // What it measures is no loop: its figures say it all, as the sentences of a comparison do.
        Body::Measured(_) | Body::Compare(_) | Body::Run(_) | Body::Tune(_) => {}
        body if body.verdicts().is_empty() => {
            let runs = report.body.runs();
            let lateness = runs.iter().any(|run| run.outcome.lateness_ns.max.is_some());
            let lack = match runs.iter().all(Run::is_empty) {
                true => loops::NOTHING,
                false if lateness => "These data do not state their period",
                false => "These data contain no lateness",
            };
            blocks.push(Block::muted(format!("{lack}, so there is no verdict.")));
        }
        _ => {}
    }
    blocks
}

/// The tone of a sentence that is the answer of a result: bad where that failed it.
fn answer_tone(report: &Report) -> Tone {
    let mut reasons = report.envelope.verdict.reasons();
    if reasons.any(|reason| is_answer(report, &reason)) { Tone::Bad } else { Tone::Plain }
}

/// True where a reason is an answer, which stands in the verdict itself. Results of before do not
/// say what a reason is about, and in one of `impact` there is no other.
fn is_answer(report: &Report, reason: &Reason<'_>) -> bool {
    let is_impact = matches!(report.body, Body::Impact(_));
    is_impact || matches!(reason.about, About::Answer { .. })
}

/// The causes that were seen, and what to do next.
fn next(report: &Report) -> Vec<Block> {
    let headline = report.body.headline().filter(|headline| !headline.advice.is_empty());
    headline.map_or_else(Vec::new, |headline| {
        let mut items = loops::advised(&headline.advice, Advice::short);
        for (item, advice) in items.iter_mut().zip(&headline.advice) {
            item.rows = rows(advice.detail.as_deref().unwrap_or_default());
        }
        let items = Items::new(ItemsKind::Notes, items);
        vec![Block::Heading(headline.advice_heading().to_owned()), items.into()]
    })
}

/// The sentences and clauses of a text, a row each: as a paragraph it is too long on a phone.
fn rows(text: &str) -> Vec<String> {
    let (mut rows, mut row, mut depth) = (Vec::new(), String::new(), 0_u32);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ' ' if depth == 0 => {
                let next = letters.peek().copied();
                // A sentence may begin with a number.
                let is_begin = |letter: char| letter.is_uppercase() || letter.is_ascii_digit();
                let is_end = row.ends_with('.') && next.is_some_and(is_begin);
                if row.ends_with(';') || is_end {
                    let done = std::mem::take(&mut row);
                    rows.push(done.trim_end_matches(['.', ';']).to_owned());
                    continue;
                }
                // A number and its sign stay together.
                if next == Some('%') && row.ends_with(|c: char| c.is_ascii_digit()) {
                    row.push('\u{a0}');
                    continue;
                }
            }
            _ => {}
        }
        row.push(letter);
    }
    rows.extend(Some(row.trim_end_matches('.').to_owned()).filter(|row| !row.is_empty()));
    rows
}

/// A word for each verdict, and its sentence.
fn answers(verdicts: &[Verdict]) -> Option<Block> {
    let is_unmeasured = |verdict: &&Verdict| verdict.stands == Some(Stands::Unmeasured);
    let (rest, judged): (Vec<&Verdict>, Vec<&Verdict>) = verdicts.iter().partition(is_unmeasured);
    let item = |verdict: &Verdict| {
        let word = verdict.word();
        // The label has the word.
        let is_said = verdict.lead == word;
        let statement = if is_said { verdict.reason() } else { &verdict.statement };
        let text = match verdict.subject.as_str() {
            "" => statement.to_owned(),
            subject => format!("{subject}: {statement}"),
        };
        Item { tone: tone(verdict.answer), ..Item::new(word, text) }
    };
    let mut items: Vec<Item> = judged.into_iter().map(item).collect();
    // One line: none of them has an answer.
    if let Some(first) = rest.first() {
        let rates: Vec<&str> = rest.iter().map(|verdict| verdict.subject.as_str()).collect();
        items.push(Item::new(first.word(), rates.join(", ")));
    }
    (!items.is_empty()).then(|| Items::new(ItemsKind::Answers, items).into())
}

fn tone(answer: Answer) -> Tone {
    match answer {
        Answer::Yes => Tone::Good,
        Answer::No => Tone::Bad,
        Answer::Unknown => Tone::Plain,
    }
}

/// Events, refused requests and warnings of the results.
pub(super) fn warnings(source: &Source<'_>) -> Option<Section> {
    let results = &source.page.results;
    let mut items: Vec<Item> = Vec::new();
    for shown in results {
        let prefix = source.prefix(shown);
        let mut add =
            |kind: &str, words: &str| items.push(Item::new(format!("{prefix}{kind}"), words));
        let report = &shown.report;
        if let Some(words) = incomplete(report).filter(|_| results.len() > 2) {
            add("", &words);
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
        report.envelope.warnings.iter().for_each(|warning| add("note:", warning.text()));
        blame::recorded_caveat(report).iter().for_each(|price| add("note:", price));
        shown.notes.iter().for_each(|note| add("note:", note));
    }
    if items.is_empty() {
        return None;
    }
    let more = items.len().saturating_sub(NOTES);
    items.truncate(NOTES);
    if more > 0 {
        items.push(Item::new("", format!("and {more} more, in the results")));
    }
    some("notes", "Caveats", vec![Items::new(ItemsKind::Notes, items).into()])
}

#[cfg(test)]
mod tests {
    use super::rows;

    #[test]
    fn a_cause_is_a_row_for_each_sentence_and_clause() {
        let text = "2 releases passed. Of 9 wakes: 63 %: sh (nice 0; 12) ran on CPU 1; 3 % the \
                    normal path. 4 have no cause. The worst was 2.2 ms late, 2.1 ms of it: v6.18 \
                    code.";
        let expected = [
            "2 releases passed",
            "Of 9 wakes: 63\u{a0}%: sh (nice 0; 12) ran on CPU 1",
            "3\u{a0}% the normal path",
            "4 have no cause",
            "The worst was 2.2 ms late, 2.1 ms of it: v6.18 code",
        ];
        assert_eq!(rows(text), expected);
        assert!(rows("").is_empty());
    }
}
