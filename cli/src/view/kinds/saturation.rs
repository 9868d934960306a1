//! What `measure saturation` gives: the highest frequencies served, and what is left for others.

use punctual_document::{Block, Section, Table, numbers, words};
use punctual_lab::saturation::{
    BackgroundRow, SaturationOutcome, SaturationRow, SearchEnd, TrialRow,
};
use punctual_report::measured::SaturationBody;

use crate::format;

/// The highest frequencies, what is left for others, and the trials.
pub(super) fn shown(body: &SaturationBody) -> Section {
    let outcome = &body.saturation;
    let mut parts = vec![frequencies(outcome)];
    parts.extend(outcome.background.as_ref().map(|row| Block::words(background(row))));
    parts.push(trials(outcome));
    let lost = |why: &String| format!("the source was lost: {}", format::plain(why));
    parts.extend(outcome.lost.as_ref().map(lost).map(Block::words));
    parts.push(Block::words(about(outcome)));
    Section { id: "saturation", heading: "Highest frequencies", blocks: parts }
}

fn hz(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |hz| format!("{:.2} kHz", hz / 1e3))
}

fn frequencies(outcome: &SaturationOutcome) -> Block {
    let heads = [
        words("condition"),
        numbers("stage"),
        numbers("loss limit"),
        numbers("MF"),
        numbers("fails at"),
        numbers("first loss"),
        numbers("n"),
        words("search"),
    ];
    let row = |row: &SaturationRow| {
        let end = match row.end {
            SearchEnd::Found => "found",
            SearchEnd::GeneratorLimited => "generator",
            SearchEnd::BelowLowest => "below all",
            SearchEnd::Unfinished => "unfinished",
        };
        vec![
            row.condition.clone(),
            row.stage.to_string(),
            format!("{}", row.goal),
            hz(row.pass_hz),
            hz(row.fail_hz),
            hz(row.first_loss_hz),
            format::count(row.stimuli),
            end.to_owned(),
        ]
    };
    let caption = "MF: the highest frequency at which the share of lost stimuli stays within the \
                   limit; unfinished: it is only known to lie between MF and \"fails at\"";
    Table::new(caption, heads, outcome.rows.iter().map(row).collect()).into()
}

fn background(background: &BackgroundRow) -> String {
    let share = background.least_share.map_or_else(|| "-".to_owned(), format::share);
    let cost = background.cost_ns.map_or_else(String::new, |ns| {
        let predicted = hz(background.predicted_hz);
        format!("; a stimulus costs {}, which predicts SF {predicted}", format::ns(Some(ns)))
    });
    format!(
        "background: {} polygons/s alone; less than half of that is left from {} on (SF50), less \
         than a tenth from {} on (SF10), nothing from {} on (SF); the smallest share left in a \
         trial is {share}{cost}",
        format::rate(background.rate),
        hz(background.sf50_hz),
        hz(background.sf10_hz),
        hz(background.dead_hz),
    )
}

fn trials(outcome: &SaturationOutcome) -> Block {
    let heads = [
        words("condition"),
        numbers("frequency"),
        numbers("stimuli"),
        numbers("not raised"),
        numbers("loss 1"),
        numbers("loss 2"),
        numbers("left"),
    ];
    let row = |row: &TrialRow| {
        let loss = |at: usize| {
            row.loss.get(at).map_or_else(|| "-".to_owned(), |loss| format!("{loss:.2e}"))
        };
        vec![
            row.condition.clone(),
            hz(Some(row.hz)),
            format::count(row.stimuli),
            format::count(row.not_raised),
            loss(0),
            loss(1),
            row.background_share.map_or_else(|| "-".to_owned(), format::share),
        ]
    };
    let rows: Vec<Vec<String>> = outcome.trials.iter().map(row).collect();
    // The last of all, which the search closed in on.
    let last = (rows.len().saturating_sub(4)..rows.len()).collect();
    let columns = heads.len();
    Table::new("Trials", heads, rows).fitted(columns, last).into()
}

fn about(outcome: &SaturationOutcome) -> String {
    format!(
        "stimuli by {} from CPU {} to CPU {}, trials of {}, up to {}; served: the answer is \
         complete before the next stimulus is due; a frequency passes or fails by the majority of \
         three trials (RFC 9971); none lost among n supports a share of 3/n",
        outcome.source,
        outcome.stimulus_cpu,
        outcome.cpu,
        format::period(outcome.trial_ns),
        hz(Some(outcome.highest_hz)),
    )
}
