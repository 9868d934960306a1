//! The tables of the page: how late a wake is, by run and by load, and by the names that others
//! use.

use std::fmt::Write as _;

use punctual_analysis::imported::ImportedQuantity;

use crate::format;
use crate::report::{Approach, Load, LoadRow, Report, Run};
use crate::view::followed;

/// The name of a run or measure, padded to its column.
const NAME: usize = 24;

/// One row per run: median, one in a thousand, worst, cycles, missed.
pub(super) fn of(report: &Report) -> String {
    let mut page = format!(
        "\n  {:NAME$}{:>10} {:>11} {:>21} {:>8}\n",
        "lateness", "median", "1 in 1000", "worst     cycles", "missed"
    );
    for run in report.body.runs() {
        let imported = run.outcome.imported.as_ref();
        let lateness = imported.map_or(&run.outcome.lateness_ns, |imported| &imported.values_ns);
        let judged = match imported {
            Some(_) => run.outcome.cycles,
            None => run.outcome.releases(),
        };
        let most = format::largest(lateness.max, run.outcome.unknown());
        let worst = format!("{most} {:>10}", format::count(judged));
        let other = imported.filter(|imported| imported.holds != ImportedQuantity::Lateness);
        let name = match other {
            Some(imported) => format!("{} ({})", run.name, imported.holds.many()),
            None => run.name.clone(),
        };
        let name = format::plain(&name);
        // Writing to a String cannot fail.
        let _infallible = writeln!(
            page,
            "  {name:NAME$}{:>10} {:>11} {worst:>21} {:>8}",
            format::ns(lateness.p50),
            format::ns(lateness.p99_9),
            format::count_or_dash(run.outcome.missed),
        );
    }
    page + &notes(report)
}

/// What of a run does not stand in the table.
fn notes(report: &Report) -> String {
    let follow = report.body.loops().and_then(|loops| loops.follow.as_ref());
    let mut page = String::new();
    for run in report.body.runs() {
        let mut parts = Vec::new();
        let (cold, worst) = (run.outcome.cold_max_ns, run.outcome.lateness_ns.max);
        if cold.is_some_and(|cold| cold > worst.unwrap_or(0.0)) {
            parts.push(format!(
                "worst of the {} cold cycles that were left out: {}",
                format::count(run.outcome.cold),
                format::ns(cold)
            ));
        }
        let missed = run.outcome.missed.unwrap_or_default();
        if let (1.., None) = (missed, &run.outcome.imported) {
            let wakes = &run.outcome.wakes.stats;
            parts.push(format!(
                "of wakes alone, without the {} missed: 1 in 1000 {}, worst {}",
                format::count(missed),
                format::ns(wakes.p99_9),
                format::ns(wakes.max)
            ));
        }
        if run.outcome.censored > 0 {
            parts.push(format!(
                "{} releases were missed with no wake after them: their lateness is at least one \
                 period",
                format::count(run.outcome.censored)
            ));
        }
        if run.outcome.unrecorded > 0 {
            parts.push(format!("{} cycles unrecorded", format::count(run.outcome.unrecorded)));
        }
        if follow.is_none()
            && let Some(clock) = &run.setup.follows
        {
            parts.push(format!("the grid follows {clock}"));
        }
        if let Some(stalled) = run.stalled.filter(|&stalled| stalled > 0) {
            parts.push(format!(
                "{} stalls inside the spin, longest {}",
                format::count(stalled),
                format::ns(run.stall_max_ns)
            ));
        }
        if let Some(approach) = &run.approach {
            parts.push(self::approach(approach, run.cpu_load));
        }
        if !parts.is_empty() {
            let text = format!("    {}: {}", run.name, parts.join(" · "));
            page += &(format::wrap(&text, 6) + "\n");
        }
    }
    if let Some(follow) = follow {
        page += &(format::wrap(&format!("    {}", followed::words(follow)), 6) + "\n");
    }
    page
}

/// How a wait that spins comes to its releases, and what that costs.
fn approach(approach: &Approach, cpu_load: Option<f64>) -> String {
    let margin = format!("{} early", format::ns(Some(approach.margin_ns as f64)));
    let hop = approach.hop_ns.map(|hop| format::ns(Some(hop as f64)));
    let mut text = match (hop, approach.hops) {
        (Some(hop), None) => format!("sleeps of {hop} at most, the last ends {margin}"),
        (Some(hop), Some(1)) => format!("a long sleep and one of {hop}, which ends {margin}"),
        (Some(hop), Some(n)) => format!("a long sleep and {n} of {hop}, which end {margin}"),
        (None, _) => format!("one sleep, which ends {margin}"),
    };
    if let Some(load) = cpu_load {
        text += &format!(", costs {} of the CPU", format::share(load));
    }
    if let Some(share) = approach.paused_share {
        text += &format!(", {} of its spins in timed pauses", format::share(share));
    }
    if approach.reachable == Some(false) {
        text += "; its target exceeds its budget on this machine";
    }
    text
}

/// The worst under each load, worst first.
pub(super) fn rows(report: &Report) -> String {
    let mut rows: Vec<&LoadRow> = report.body.load_rows().iter().collect();
    if rows.is_empty() {
        return String::new();
    }
    let worst = |row: &&LoadRow| row.lateness_ns.max.unwrap_or(0.0);
    rows.sort_by(|a, b| worst(b).total_cmp(&worst(a)));
    let parts: Vec<String> =
        rows.iter().map(|row| format!("{} {}", row.load, row.worst())).collect();
    let mut page = format::wrap(&format!("    worst under {}", parts.join(" · ")), 6) + "\n";
    let rates: Vec<String> = rows.iter().flat_map(|row| &row.loads).map(rate).collect();
    page += &(format::wrap(&format!("    the loads ran at {}", rates.join(" · ")), 6) + "\n");
    page
}

fn rate(load: &Load) -> String {
    let note = load.note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
    match load.rate {
        Some(rate) => format!("{} {} {}{note}", load.name, format::rate(rate), load.unit),
        None => format!("{} reported no rate{note}", load.name),
    }
}

/// What each load did.
pub(super) fn loads(report: &Report) -> String {
    let rated: Vec<&Run> = report.body.runs().iter().filter(|run| !run.loads.is_empty()).collect();
    let mut page = String::new();
    for run in rated {
        let rates: Vec<String> = run.loads.iter().map(rate).collect();
        page += &format::wrap(&format!("  load in {}: {}", run.name, rates.join(" · ")), 4);
        page.push('\n');
    }
    page
}

/// What the instruments themselves cost: no number of the page is finer.
pub(super) fn instruments(report: &Report) -> String {
    let recording = report.body.loops().and_then(|loops| loops.recording.as_ref());
    let (Some(clock), Some(recording)) = (&report.envelope.clock, recording) else {
        return String::new();
    };
    let slew = match (clock.slew_ppb, clock.slew_bound_ppb) {
        (Some(ppb), Some(bound)) => {
            format!(" · CLOCK_MONOTONIC slewed by {} ppb (± {bound:.0})", format::whole(ppb))
        }
        _ => String::new(),
    };
    let text = format!(
        "  a timestamp costs {}, recording a sample {:.1} ns, in a cold cycle {:.0} ns{slew}",
        format::ns(Some(clock.stamp_ns)),
        recording.hot_ns,
        recording.cold_ns,
    );
    format!("\n{}\n", format::wrap(&text, 4))
}

/// The same recordings by the names that papers and other tools use; three runs to a table.
pub(super) fn other_names(report: &Report) -> String {
    type Measure = fn(&Run) -> String;
    let measures: [(&str, Measure); 6] = [
        ("peak-to-peak about grid", |run| format::ns(run.outcome.jitters.grid_pp_ns)),
        ("rms about grid", |run| format::ns(run.outcome.jitters.grid_rms_ns)),
        ("largest |interval|", |run| format::ns(run.outcome.jitters.interval_max_abs_ns)),
        ("deviation of interval", |run| format::ns(run.outcome.jitters.interval_stddev_ns)),
        ("variance of lateness", |run| variance(run.outcome.jitters.lateness_variance_ns2)),
        ("drift of the grid", |run| drift(run)),
    ];
    let source = ["NIST", "NIST", "LinuxCNC", "LinuxCNC", "AnT", ""];
    let mut page = String::new();
    // Of another program's data only what they hold stands under its name.
    let own: Vec<&Run> =
        report.body.runs().iter().filter(|run| run.outcome.imported.is_none()).collect();
    for runs in own.chunks(3) {
        page += &format!("\n  {:33}", "same data as other tools report");
        page += &runs.iter().map(|run| format!("{:>14}", cut(&run.name))).collect::<String>();
        page.push('\n');
        for ((name, value), by) in measures.iter().zip(source) {
            page += &format!("  {name:NAME$}{by:9}");
            page += &runs.iter().map(|run| format!("{:>14}", value(run))).collect::<String>();
            page.push('\n');
        }
    }
    page
}

fn cut(name: &str) -> String {
    format::plain(name).chars().take(13).collect()
}

fn variance(ns2: Option<f64>) -> String {
    match ns2.map(|ns2| ns2 / 1e6) {
        None => "-".to_owned(),
        Some(us2) if us2 >= 1e5 => format!("{us2:.2e} µs²"),
        Some(us2) => format!("{us2:.1} µs²"),
    }
}

fn drift(run: &Run) -> String {
    run.outcome
        .grid
        .as_ref()
        .map_or_else(|| "-".to_owned(), |grid| format!("{:.1} ppb", grid.drift_ppb))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_wait_does_is_shown_as_other_times_are() {
        let hops = Approach {
            hop_ns: Some(141_449),
            hops: None,
            margin_ns: 20_000,
            late_share: None,
            trials_late: None,
            reachable: None,
            extrapolated: None,
            resumed: None,
            paused_share: Some(0.9),
        };
        let text = approach(&hops, None);
        assert_eq!(
            text,
            "sleeps of 141 µs at most, the last ends 20.0 µs early, 90 % of its spins in timed \
             pauses"
        );
    }
}
