//! What `measure saturation` gives: the highest frequencies served, and what is left for others.

use punctual_document::{Block, Section, Table, numbers, words};
use punctual_lab::response::Competitor;
use punctual_lab::saturation::{
    BackgroundRow, SaturationOutcome, SaturationRow, SearchEnd, Stage2, TrialRow,
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

/// As [`hz`], without its unit.
fn khz(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |hz| format!("{:.2}", hz / 1e3))
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
            khz(row.pass_hz),
            khz(row.fail_hz),
            khz(row.first_loss_hz),
            format::count(row.stimuli),
            end.to_owned(),
        ]
    };
    let caption = "In kHz. MF: the highest at which the share of lost stimuli stays within the \
                   limit; unfinished: it lies between MF and \"fails at\"";
    Table::new(caption, heads, outcome.rows.iter().map(row).collect()).into()
}

fn background(background: &BackgroundRow) -> String {
    // Each by the share that it leaves less of; what was not reached is told by the cost.
    let from = |found: Option<f64>, left: f64| match (found, background.predicted_hz) {
        (Some(_), _) => format!("from {} on", hz(found)),
        (None, Some(none_left)) => {
            format!("not reached, {} by cost", hz(Some(none_left * (1.0 - left))))
        }
        (None, None) => "not reached".to_owned(),
    };
    let tried = background
        .tried_hz
        .map_or_else(String::new, |_| format!("; tried up to {}", hz(background.tried_hz)));
    let share = background.least_share.map_or_else(String::new, |share| {
        format!("; the least that a trial left is {}", format::share(share))
    });
    let cost = background
        .cost_ns
        .map_or_else(String::new, |ns| format!("; a stimulus costs {}", format::ns(Some(ns))));
    format!(
        "background: {} polygons/s alone; less than half left (SF50): {}; less than a tenth \
         (SF10): {}; nothing (SF): {}{tried}{share}{cost}",
        format::rate(background.rate),
        from(background.sf50_hz, 0.5),
        from(background.sf10_hz, 0.1),
        from(background.dead_hz, 0.0),
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

/// What stage 2 was, and what ran beside it.
fn second(stage: &Stage2) -> String {
    let priority = stage.priority.map_or_else(String::new, |priority| format!(" {priority}"));
    let beside = match stage.competitor {
        None => String::new(),
        Some(Competitor::Computes) => {
            "; equal: beside a thread of the same that computes for 14 ms of each 20".to_owned()
        }
        Some(Competitor::Polygons) => "; equal: beside a thread of the same that draws polygons \
             for 14 ms of each 20 and gives way after each"
            .to_owned(),
    };
    format!("stage 2 is {}{priority}{beside}; ", stage.policy)
}

fn about(outcome: &SaturationOutcome) -> String {
    let second = outcome.stage_2.as_ref().map_or_else(String::new, second);
    let generator = outcome.generator_hz.map_or_else(String::new, |_| {
        let most = hz(outcome.generator_hz);
        format!(" (the generator can {most})")
    });
    format!(
        "{second}stimuli by {} from CPU {} to CPU {}, trials of {}, up to {}{generator}; served: \
         answered before the next is due; a frequency passes by the majority of three trials (RFC \
         9971); none lost of n supports a share of 3/n",
        outcome.source,
        outcome.stimulus_cpu,
        outcome.cpu,
        format::period(outcome.trial_ns),
        hz(Some(outcome.highest_hz)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_reached_is_told_by_the_cost() {
        let mut row = BackgroundRow {
            rate: 70_000.0,
            sf50_hz: Some(15_000.0),
            sf10_hz: None,
            dead_hz: None,
            least_share: Some(0.42),
            cost_ns: Some(31_250.0),
            predicted_hz: Some(32_000.0),
            tried_hz: Some(49_780.0),
        };
        let text = background(&row);
        for said in [
            "(SF50): from 15.00 kHz on",
            "(SF10): not reached, 28.80 kHz by cost",
            "(SF): not reached, 32.00 kHz by cost",
            "tried up to 49.78 kHz",
        ] {
            assert!(text.contains(said), "{said}: {text}");
        }
        (row.predicted_hz, row.cost_ns, row.least_share) = (None, None, None);
        let text = background(&row);
        assert!(text.contains("(SF): not reached; tried") && !text.contains(" -"), "{text}");
    }

    #[test]
    fn the_competitor_of_stage_2_is_said() {
        let stage =
            |competitor| Stage2 { policy: "SCHED_RR".into(), priority: Some(70), competitor };
        assert_eq!(second(&stage(None)), "stage 2 is SCHED_RR 70; ");
        let text = second(&stage(Some(Competitor::Polygons)));
        assert!(text.contains("SCHED_RR 70; equal: beside") && text.contains("polygons"), "{text}");
    }
}
