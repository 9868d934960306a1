//! Documents of each kind of result: one for a terminal and for Markdown, and the section of a
//! page.
//!
//! A kind has a file here and a row in [`document`] or [`section`]; an experiment of `measure` has
//! its section in the file of its command, but for `periodic` and `wait`, whose loops are runs.

pub(crate) mod blame;
pub(crate) mod campaign;
mod compare;
pub(crate) mod grid;
pub(crate) mod head;
mod histogram;
pub(crate) mod impact;
mod judged;
pub(crate) mod loops;
mod outside;
pub(crate) mod reproduced;
pub(crate) mod schedule;
mod supervised;
mod trials;
pub(crate) mod tune;
pub(crate) mod wait;

pub(super) use compare::{how_sure, not_idle};
pub(super) use histogram::peak;
use punctual_document::{Block, Section};
use punctual_report::measured::{Measured, ResponseBody};
use punctual_report::reproduced::PaperFigure;
use punctual_report::{Body, Report};

use crate::args::Detail;
use crate::command::measure::{self, executive, response};
use crate::format;

use blame::CausesShown;
pub(crate) use blame::stop_words;
pub(crate) use judged::plans;

/// The document of a report; `results` is the directory that it is written to.
pub(crate) fn document(report: &Report, results: Option<&str>, detail: Detail) -> Vec<Block> {
    let is_short = detail != Detail::Long;
    let has_loops = report.body.headline().is_some_and(|headline| !headline.loops.is_empty());
    // What was to be measured and was not is shown as briefly.
    if is_short && (has_loops || matches!(report.body, Body::Check(_))) {
        return loops::short(report, results);
    }
    match &report.body {
        Body::Wait(body) if is_short => wait::document(report, body),
        Body::Check(_) => loops::check(report, results, CausesShown::All),
        Body::Measured(Measured::Blame(body)) if is_short => blame::short(report, body),
        Body::Measured(Measured::Executive(body)) => {
            let mut blocks = head::brief(report);
            blocks.extend(executive::document(body));
            blocks
        }
        Body::Soak(body) => loops::soak(report, body),
        Body::Run(body) => supervised::document(report, &body.supervised),
        Body::Compare(body) => compare::document(report, &body.compare),
        Body::Impact(body) => {
            let mut blocks = impact::document(body);
            blocks.extend(judged::warnings(report));
            blocks
        }
        Body::Periodic(_) | Body::Wait(_) | Body::Recorded(_) => {
            loops::measured(report, CausesShown::All)
        }
        Body::Reproduce(body) => reproduced::document(report, body, results, is_short),
        Body::Measured(_) | Body::Tune(_) => without_runs(report),
    }
}

/// The runs of a report against a baseline, or beside another result, a sentence each; and the way
/// to wait that holds a deadline.
pub(crate) fn held(report: &Report) -> Vec<String> {
    match &report.body {
        Body::Wait(waits) if waits.has_deadline() && waits.recommendation.is_some() => {
            waits.advice().into_iter().collect()
        }
        body => body.compare().map(compare::held).unwrap_or_default(),
    }
}

/// The document of a report with everything that it shows, for readers who do not have the machine;
/// of many causes the first ones.
pub(crate) fn complete(report: &Report) -> Vec<Block> {
    match &report.body {
        Body::Check(_) => loops::check(report, None, CausesShown::First),
        Body::Periodic(_) | Body::Recorded(_) => loops::measured(report, CausesShown::First),
        Body::Wait(body) => [head::measured(report), wait::document(report, body)].concat(),
        Body::Tune(body) => {
            let section = tune::shown(body);
            [tune::about(&report.envelope, body), section.blocks, tune::next(body)].concat()
        }
        _ => document(report, None, Detail::Long),
    }
}

/// The document of a kind without runs: its section between the head and the caveats.
fn without_runs(report: &Report) -> Vec<Block> {
    let mut blocks = Vec::new();
    if let Body::Measured(Measured::Noise(body)) = &report.body {
        let answer = body.answer().map(Block::words);
        blocks.extend(answer.into_iter().flat_map(|answer| [answer, Block::Break]));
    }
    blocks.extend(head::brief(report));
    let mut is_new = true;
    let shown = section(&report.body).into_iter().flat_map(|section| section.blocks);
    for mut block in shown.filter(|block| !block.is_picture_alone()) {
        if let Block::Words(words) = &mut block {
            words.level = 1;
        }
        let is_table = matches!(block, Block::Table(_));
        if is_new && !is_table {
            blocks.push(Block::Break);
        }
        is_new = false;
        blocks.push(block);
    }
    blocks.extend(judged::warnings(report));
    blocks
}

/// A result in one line a loop, a followed thread, or a result that is compared; `None` for one
/// without.
pub(crate) fn line(report: &Report) -> Option<String> {
    match &report.body {
        Body::Measured(Measured::Blame(body)) if !body.blame.runs.is_empty() => {
            Some(blame::lines(&body.blame))
        }
        Body::Measured(Measured::Noise(body)) => {
            body.answer().map(|answer| format::plain(&answer) + "\n")
        }
        Body::Compare(body) => Some(compare::lines(&body.compare)),
        _ => loops::line(report),
    }
}

/// The section of a kind without runs; `None` for the others, whose page has sections of its own.
pub(crate) fn section(body: &Body) -> Option<Section> {
    match body {
        Body::Measured(measured) => of_measured(measured),
        Body::Reproduce(body) => Some(reproduced::shown(body)),
        Body::Tune(body) => Some(tune::shown(body)),
        Body::Run(body) => Some(supervised::shown(&body.supervised)),
        Body::Impact(body) => Some(impact::shown(body)),
        _ => None,
    }
}

/// The section that only a page has of a result: a terminal is too small for it.
pub(crate) fn on_page_alone(body: &Body) -> Option<Section> {
    match body {
        Body::Reproduce(body) => reproduced::behind(body),
        _ => tune::found(body.headline()?),
    }
}

/// Answers to stimuli as traces, to be drawn.
pub(crate) fn traces(body: &ResponseBody) -> Vec<PaperFigure> {
    response::traces(body)
}

/// The section of an experiment of the lab; of those of `measure` their table has it.
fn of_measured(measured: &Measured) -> Option<Section> {
    Some(match measured {
        Measured::Blame(body) => blame::shown(body),
        Measured::Stimulate(body) => outside::stimulated(body),
        Measured::Respond(body) => outside::responded(body),
        Measured::Trials(body) => trials::shown(body),
        experiment => return measure::section(experiment),
    })
}
