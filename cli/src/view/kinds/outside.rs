//! Documents of `stimulate` and `respond`: latencies, losses, and frames of others.

use punctual_analysis::summary::SummaryStats;
use punctual_document::{Block, Column, Section, Table, numbers, words};
use punctual_lab::outside::{Others, RespondOutcome, StimulateOutcome};
use punctual_report::measured::{RespondBody, StimulateBody};

use crate::format;

/// The section of the side that stimulates: latencies, counts of stimuli, frames of others.
pub(super) fn stimulated(body: &StimulateBody) -> Section {
    let outcome = &body.stimulate;
    let mut parts = vec![
        times(&[
            ("answer", &outcome.latency_ns),
            ("sent late", &outcome.sent_late_ns),
            ("loopback", &outcome.loopback.time_ns),
        ]),
        counts(outcome),
        others(&outcome.others),
    ];
    parts.extend(
        outcome.ended.as_ref().map(|why| Block::words(format!("ended: {}", format::plain(why)))),
    );
    parts.push(Block::words(format!(
        "stimuli to {} every {}; an answer is timed from before its stimulus was sent until after \
         it was read; loopback: this machine alone, from one end to the other of a link of the \
         same kind, {} frames; it is not subtracted",
        format::plain(&outcome.link),
        format::period(outcome.period_ns),
        format::count(outcome.loopback.n),
    )));
    Section { id: "stimulate", heading: "Answers of another machine", blocks: parts }
}

/// The section of the side that responds: its own times, counts of stimuli, frames of others.
pub(super) fn responded(body: &RespondBody) -> Section {
    let outcome = &body.respond;
    let mut parts = vec![
        times(&[("read to sent", &outcome.answer_ns)]),
        answered(outcome),
        others(&outcome.others),
    ];
    parts.extend(
        outcome.ended.as_ref().map(|why| Block::words(format!("ended: {}", format::plain(why)))),
    );
    let link = format::plain(&outcome.link);
    parts.push(Block::words(format!(
        "answers at {link}; how fast the machine is, only the one who stimulates can tell: the \
         time before a stimulus is read is not in these numbers"
    )));
    Section { id: "respond", heading: "Stimuli that were answered", blocks: parts }
}

fn times(rows: &[(&str, &SummaryStats)]) -> Block {
    let heads = [
        words("time"),
        numbers("min"),
        numbers("mean"),
        numbers("median"),
        numbers("1 in 100"),
        numbers("1 in 1000"),
        numbers("worst"),
    ];
    let row = |(name, ns): &(&str, &SummaryStats)| {
        let times = [ns.min, ns.mean, ns.p50, ns.p99, ns.p99_9, ns.max];
        [vec![(*name).to_owned()], times.map(format::ns).into()].concat()
    };
    Table::new("Times", heads, rows.iter().map(row).collect()).into()
}

fn counted<const N: usize>(caption: &str, heads: [Column; N], counts: [u64; N]) -> Block {
    Table::new(caption, heads, vec![counts.map(format::count).into()]).into()
}

fn counts(outcome: &StimulateOutcome) -> Block {
    let heads = [
        numbers("sent"),
        numbers("answered"),
        numbers("late"),
        numbers("lost"),
        numbers("not sent"),
    ];
    let caption = "Stimuli; late: answered when the next one was due, or later";
    counted(
        caption,
        heads,
        [outcome.stimuli, outcome.answered, outcome.late, outcome.lost, outcome.not_sent],
    )
}

fn answered(outcome: &RespondOutcome) -> Block {
    let heads = [numbers("sessions"), numbers("answered"), numbers("skipped"), numbers("not sent")];
    let caption = "Stimuli; skipped: numbers that never arrived";
    counted(caption, heads, [outcome.sessions, outcome.answered, outcome.skipped, outcome.not_sent])
}

fn others(frames: &Others) -> Block {
    let heads =
        [numbers("duplicates"), numbers("replayed"), numbers("foreign"), numbers("wrong version")];
    let counts = [frames.duplicates, frames.replayed, frames.foreign, frames.wrong_version];
    counted("What else arrived", heads, counts)
}
