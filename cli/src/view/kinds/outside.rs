//! What `stimulate` and `respond` give: latencies, what was lost, and what else arrived.

use punctual_analysis::summary::SummaryStats;
use punctual_lab::outside::{Others, RespondOutcome, StimulateOutcome};

use super::{Part, Shown};
use crate::format;
use crate::report::measured::{RespondBody, StimulateBody};

/// The tables of the one who stimulates.
pub(super) fn stimulated(body: &StimulateBody) -> Shown {
    let of = &body.stimulate;
    let mut parts = vec![
        times(&[
            ("answer", &of.latency_ns),
            ("sent late", &of.sent_late_ns),
            ("loopback", &of.loopback.time_ns),
        ]),
        counts(of),
        others(&of.others),
    ];
    parts
        .extend(of.ended.as_ref().map(|why| Part::Words(format!("ended: {}", format::plain(why)))));
    parts.push(Part::Words(format!(
        "stimuli to {} every {}; an answer is timed from before its stimulus was sent until after \
         it was read; loopback: this machine alone, from one end to the other of a link of the \
         same kind, {} frames; it is not subtracted",
        format::plain(&of.link),
        format::period(of.period_ns),
        format::count(of.loopback.n),
    )));
    Shown { id: "stimulate", heading: "Answers of another machine", parts }
}

/// The tables of the one who responds.
pub(super) fn responded(body: &RespondBody) -> Shown {
    let of = &body.respond;
    let mut parts =
        vec![times(&[("read to sent", &of.answer_ns)]), answered(of), others(&of.others)];
    parts
        .extend(of.ended.as_ref().map(|why| Part::Words(format!("ended: {}", format::plain(why)))));
    let link = format::plain(&of.link);
    parts.push(Part::Words(format!(
        "answers at {link}; how fast the machine is, only the one who stimulates can tell: the \
         time before a stimulus is read is not in these numbers"
    )));
    Shown { id: "respond", heading: "Stimuli that were answered", parts }
}

fn times(rows: &[(&str, &SummaryStats)]) -> Part {
    let heads = ["time", ">min", ">mean", ">median", ">1 in 100", ">1 in 1000", ">worst"];
    let row = |(name, ns): &(&str, &SummaryStats)| {
        let times = [ns.min, ns.mean, ns.p50, ns.p99, ns.p99_9, ns.max];
        [vec![(*name).to_owned()], times.map(format::ns).into()].concat()
    };
    Part::table("Times", &heads, rows.iter().map(row).collect())
}

fn counted(caption: &str, heads: &[&str], counts: &[u64]) -> Part {
    Part::table(caption, heads, vec![counts.iter().map(|&count| format::count(count)).collect()])
}

fn counts(of: &StimulateOutcome) -> Part {
    let heads = [">sent", ">answered", ">late", ">lost", ">not sent"];
    let caption = "Stimuli; late: answered when the next one was due, or later";
    counted(caption, &heads, &[of.stimuli, of.answered, of.late, of.lost, of.not_sent])
}

fn answered(of: &RespondOutcome) -> Part {
    let heads = [">sessions", ">answered", ">skipped", ">not sent"];
    let caption = "Stimuli; skipped: numbers that never arrived";
    counted(caption, &heads, &[of.sessions, of.answered, of.skipped, of.not_sent])
}

fn others(of: &Others) -> Part {
    let heads = [">duplicates", ">replayed", ">foreign", ">wrong version"];
    let counts = [of.duplicates, of.replayed, of.foreign, of.wrong_version];
    counted("What else arrived", &heads, &counts)
}
