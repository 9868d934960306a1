//! Sentences that judge runs: answers for applications, limits, claims, caveats.

use punctual_analysis::claim::Level;
use punctual_analysis::claim::judge::Holds;
use punctual_document::{Block, Item, Items, ItemsKind, Table, numbers};
use punctual_report::{About, Answer, Report, Stands, Verdict, longer};

use crate::format::{self, Paint};

/// The least width of the word that says how a limit or a claim came out.
const WORD: usize = 7;

/// Caveats about the numbers.
pub(super) fn warnings(report: &Report) -> Vec<Block> {
    warnings_but(report, None)
}

/// Likewise, without the note that is said elsewhere.
pub(super) fn warnings_but(report: &Report, said: Option<&str>) -> Vec<Block> {
    let during =
        report.envelope.disturbances.iter().map(|event| ("during the run:", event.what.as_str()));
    let notes = report.envelope.warnings.iter().map(|warning| ("note:", warning.text()));
    let notes = notes.filter(|(_, text)| Some(*text) != said);
    let sentences = during.chain(notes);
    let sentences = sentences.map(|(label, text)| Block::words_at(1, format!("{label} {text}")));
    let mut blocks: Vec<Block> = sentences.collect();
    if !blocks.is_empty() {
        blocks.insert(0, Block::Break);
    }
    blocks
}

/// The question that the verdicts answer, and all of them.
pub(super) fn good_for(report: &Report) -> Vec<Block> {
    let question = report.body.headline().and_then(|headline| headline.question.as_ref());
    let question = question.map_or("What it is good for", String::as_str);
    answered(question, &report.body.verdicts().iter().collect::<Vec<_>>())
}

/// The question and its answers: those measured, and one neighbour.
pub(super) fn answers(report: &Report) -> Vec<Block> {
    let question = report.body.headline().and_then(|headline| headline.question.as_ref());
    question.map_or_else(Vec::new, |question| answered(question, &telling(report.body.verdicts())))
}

fn answered(question: &str, verdicts: &[&Verdict]) -> Vec<Block> {
    if verdicts.is_empty() {
        return Vec::new();
    }
    let items = verdicts.iter().map(|verdict| answer(verdict)).collect();
    let items = Items::new(ItemsKind::Answers, items).spaced(WORD, 2);
    vec![Block::Heading(question.to_owned()), items.into()]
}

/// One answer, its word in its colour.
fn answer(verdict: &Verdict) -> Item {
    let paint = match verdict.answer {
        Answer::Yes => Paint::Good,
        Answer::No => Paint::Bad,
        Answer::Unknown => Paint::Open,
    };
    Item {
        command: verdict.command.clone(),
        paint: (!verdict.lead.is_empty()).then(|| (verdict.lead.clone(), paint)),
        ..Item::new(&verdict.subject, &verdict.statement)
    }
}

/// All that was measured; where all of it holds the next shorter period, else the shortest longer
/// one that is expected to.
fn telling(verdicts: &[Verdict]) -> Vec<&Verdict> {
    let is = |verdict: &&Verdict, stands| verdict.stands == Some(stands);
    let mut telling: Vec<&Verdict> =
        verdicts.iter().filter(|verdict| verdict.is_measured()).collect();
    let good = telling.iter().all(|verdict| verdict.answer == Answer::Yes);
    let is_shorter = |verdict: &&Verdict| {
        telling.first().is_none_or(|first| verdict.period_ns < first.period_ns)
    };
    let next = match good && !telling.is_empty() {
        true => {
            verdicts.iter().rfind(|verdict| is(verdict, Stands::Unmeasured) && is_shorter(verdict))
        }
        false => {
            let expected = verdicts.iter().find(|verdict| is(verdict, Stands::Expected));
            expected.or_else(|| verdicts.iter().rfind(|verdict| is(verdict, Stands::Unmeasured)))
        }
    };
    telling.extend(next);
    telling
}

/// Every claim that the runs support.
pub(super) fn supported(report: &Report) -> Vec<Block> {
    let level = |level| match level {
        Level::L0 => "L0",
        Level::L1 => "L1",
        Level::L2 => "L2",
        Level::L3 => "L3",
    };
    let mut items = Vec::new();
    for run in report.body.runs() {
        let claims = run.outcome.claims.iter();
        let item = |claim: &punctual_analysis::claim::Claim| {
            Item::new(level(claim.level), format!("{}: {}", run.name, claim.statement))
        };
        items.extend(claims.map(item));
    }
    let heading =
        "What can be claimed (L0: observed; L1 and L2: 95 % confidence; L3: from a model)";
    let items = Items::new(ItemsKind::Notes, items).spaced(2, 2);
    vec![Block::Heading(heading.to_owned()), items.into()]
}

/// That nothing was measured; empty where something was.
pub(super) fn unmeasured(report: &Report) -> Vec<Block> {
    let verdict = &report.envelope.verdict;
    let reasons = verdict.reasons().chain(verdict.open());
    let reasons = reasons.filter(|reason| reason.about == About::Unmeasured);
    reasons.flat_map(|reason| [Block::Break, Block::words(reason.text)]).collect()
}

/// Each limit on each run.
pub(super) fn limits(report: &Report) -> Vec<Block> {
    let verdict = &report.envelope.verdict;
    if verdict.limits.is_empty() {
        return Vec::new();
    }
    let limits = verdict.limits.iter().map(|limit| {
        let judgement = &limit.judgement;
        Item::new(
            limit.word(),
            format!("{} for {}: {}", judgement.text, limit.run, judgement.reason),
        )
    });
    let words = verdict.reasons().map(|reason| ("FAILS", reason));
    let words = words.chain(verdict.open().map(|reason| ("OPEN", reason)));
    let ended = words.filter(|(_, reason)| reason.about == About::EndedEarly);
    let items = limits.chain(ended.map(|(word, reason)| Item::new(word, reason.text))).collect();
    let items = Items::new(ItemsKind::Notes, items).spaced(WORD, 1);
    vec![Block::Heading("Limits".to_owned()), items.into()]
}

/// Each claim that was requested, on each run.
pub(super) fn claims(report: &Report) -> Vec<Block> {
    let claims = &report.envelope.verdict.claims;
    if claims.is_empty() {
        return Vec::new();
    }
    let items = claims.iter().map(|claim| {
        let judged = &claim.judged;
        let is_open = matches!(judged.holds, Holds::Undecided | Holds::IfAlone);
        let runs = report.body.runs();
        let run = runs.iter().find(|run| run.name == claim.run).filter(|_| is_open);
        let times = judged.n_needed.zip(judged.n.filter(|n| *n > 0));
        let takes = run.zip(times).map_or_else(String::new, |(run, (needed, n))| {
            let ns = longer::longer_ns(run, runs, needed as f64 / n as f64);
            format!("; {}", longer::words(ns))
        });
        let text = format!("{} for {}: {}{takes}", judged.statement, claim.run, judged.reason);
        Item::new(claim.word(), text)
    });
    let items = Items::new(ItemsKind::Notes, items.collect()).spaced(WORD, 1);
    vec![Block::Heading("Claims".to_owned()), items.into()]
}

/// The cycles that each claim needs, by exceedances; `reached` has for each plan a sentence whether
/// the run is long enough.
pub(crate) fn plans(report: &Report, reached: &[String]) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut before = None;
    for (plan, reached) in report.body.plans().iter().zip(reached) {
        let planned = &plan.planned;
        if before != Some((&planned.statement, planned.period_ns)) {
            before = Some((&planned.statement, planned.period_ns));
            let caption = format!(
                "{} (confidence {}, extremal index {})",
                planned.statement, planned.confidence, planned.theta
            );
            let columns = [
                numbers("exceedances").at_least(11),
                numbers("cycles").at_least(24),
                numbers(&format!("at {}", format::period(planned.period_ns))).at_least(14),
            ];
            let needs = planned.needs.iter().map(|need| {
                let n = format::count(need.n);
                vec![need.exceedances.to_string(), n, format::long(need.duration_ns)]
            });
            blocks.push(Block::words(&caption));
            blocks.push(Table::new(caption, columns, needs.collect()).bare().into());
        }
        blocks.push(Block::words_at(1, reached));
    }
    blocks
}
