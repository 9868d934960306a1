//! Documents of loops: `check`, `measure periodic`, `analyse` and `soak`.
//!
//! The short document has the verdict first, then the figures, then what next, and fits a screen;
//! the long one has everything.

use punctual_analysis::imported::{Imported, ImportedQuantity};
use punctual_analysis::summary::SummaryStats;
use punctual_document::{Block, Frame, Item, Items, ItemsKind, Table, numbers, words};
use punctual_report::{
    Advice, Approach, Body, EndedBy, Follow, Headline, LoadRow, LoopLine, Report, Run, SoakBody,
};

use super::blame::CausesShown;
use super::head::{self, Named};
use super::{blame, campaign, compare, histogram, judged};
use crate::format;

/// The most runs whose histogram is drawn in a short document.
const DRAWN: usize = 2;

/// The narrowest page with a column for one in a hundred.
const WIDE: usize = 72;

/// Of a result whose loops have no cycle.
pub(crate) const NOTHING: &str = "Nothing was measured";

/// The least width of the name of a run in the long tables.
const NAME: usize = 24;

/// The short document; `results` is the directory that it is written to.
pub(super) fn short(report: &Report, results: Option<&str>) -> Vec<Block> {
    let mut blocks = first(report);
    blocks.extend(head::refused_briefly(report));
    blocks.extend(notes(report));
    blocks.push(Block::Break);
    blocks.push(briefly(report).into());
    blocks.extend(histograms(report));
    if let Body::Soak(body) = &report.body {
        blocks.extend(campaign::blocks(&body.campaign));
    }
    blocks.extend(judged::unmeasured(report));
    blocks.extend(judged::answers(report));
    blocks.extend(judged::limits(report));
    blocks.extend(judged::claims(report));
    blocks.extend(compare::against_briefly(report));
    blocks.extend(next(report, results, Advice::short));
    blocks
}

/// The document of `check`: everything, with so many causes, and what to do next.
pub(super) fn check(report: &Report, results: Option<&str>, causes: CausesShown) -> Vec<Block> {
    [
        first(report),
        head::whole(report),
        lateness(report),
        under_loads(report),
        caused(report, causes),
        histogram::lines(report),
        other_names(report),
        instruments(report),
        judged::warnings(report),
        judged::unmeasured(report),
        judged::good_for(report),
        judged::limits(report),
        judged::claims(report),
        compare::against(report),
        next(report, results, Advice::whole),
    ]
    .concat()
}

/// The document of `soak`: as `measure`, with what is a campaign's alone.
pub(super) fn soak(report: &Report, body: &SoakBody) -> Vec<Block> {
    [
        head::whole(report),
        lateness(report),
        campaign::blocks(&body.campaign),
        histogram::drawn(report),
        other_names(report),
        loads(report),
        all_claims(report),
    ]
    .concat()
}

/// The document of `measure` and `analyse`: with so many causes, a drawn histogram and all claims.
pub(super) fn measured(report: &Report, causes: CausesShown) -> Vec<Block> {
    [
        first(report),
        head::whole(report),
        lateness(report),
        imported(report),
        caused(report, causes),
        histogram::drawn(report),
        other_names(report),
        instruments(report),
        loads(report),
        all_claims(report),
        compare::against(report),
    ]
    .concat()
}

/// The end of documents that have every claim.
fn all_claims(report: &Report) -> Vec<Block> {
    [
        judged::warnings(report),
        judged::supported(report),
        judged::good_for(report),
        judged::limits(report),
        judged::claims(report),
    ]
    .concat()
}

/// One line a measured period, in counts, with its worst; where none was judged a line a run, and
/// nothing without runs.
pub(super) fn line(report: &Report) -> Option<String> {
    let loops = report.body.headline().map_or(&[][..], |headline| &headline.loops);
    let judged =
        |line: &LoopLine| [&line.counts[..], line.worst.as_deref().unwrap_or("")].join(" ");
    let mut lines: Vec<String> = match loops {
        [] => report.body.runs().iter().map(run_in_a_line).collect(),
        loops => loops.iter().map(judged).collect(),
    };
    let not_idle = report.body.headline().map_or(&[][..], |headline| &headline.not_idle);
    if let Some(first) = lines.first_mut() {
        not_idle.iter().for_each(|sentence| *first = format!("{} {sentence}", first.trim_end()));
    }
    let end = match report.envelope.incomplete {
        true => format!(" {}", format::sentence(&EndedBy::brief(report.envelope.ended_by))),
        false => String::new(),
    };
    let lines: String =
        lines.iter().map(|line| format::plain(line.trim_end()) + &end + "\n").collect();
    (!lines.is_empty()).then_some(lines)
}

fn run_in_a_line(run: &Run) -> String {
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
    let n = match run.known_cycles() {
        Some(n) => format::count(n),
        None => "an unknown number of".to_owned(),
    };
    let (typical, worst) = (imported.values_ns.p50, imported.values_ns.max);
    let holds = imported.holds.many();
    format!("{name}: {n} {holds}, typical {}, worst {}.", format::ns(typical), format::ns(worst))
}

/// Each measured period in counts, and its worst.
fn first(report: &Report) -> Vec<Block> {
    let Some(headline) = report.body.headline() else { return Vec::new() };
    let loops = headline.loops.iter();
    let sentences = loops.flat_map(|line| std::iter::once(&line.counts).chain(&line.worst));
    let is_empty = report.body.runs().iter().all(Run::is_empty);
    let nothing = is_empty.then(|| Block::words(format!("{NOTHING}.")));
    nothing.into_iter().chain(sentences.chain(&headline.not_idle).map(Block::words)).collect()
}

/// Notes for the reader that stand nowhere else in the short document.
fn notes(report: &Report) -> Vec<Block> {
    let mut blocks: Vec<Block> = head::incomplete(report).into_iter().collect();
    let follow = report.body.loops().and_then(|loops| loops.follow.as_ref());
    blocks.extend(follow.map(|follow| Block::words(followed(follow))));
    let events = report.envelope.disturbances.iter();
    let events = events.map(|event| format!("during the run: {}", event.what));
    let warnings = report.envelope.warnings.iter();
    let warnings = warnings.filter(|warning| !warning.is_shown_elsewhere());
    blocks
        .extend(events.chain(warnings.map(|warning| format!("note: {warning}"))).map(Block::words));
    let recorded = blame::recorded_caveat(report);
    blocks.extend(recorded.map(|text| Block::words(format!("note: {text}"))));
    blocks
}

/// The causes of the late wakes of each run, where they were recorded.
fn caused(report: &Report, causes: CausesShown) -> Vec<Block> {
    let mut blocks = blame::of_runs(&named(report), causes);
    blocks.extend(blame::recorded(report).map(Block::words));
    if !blocks.is_empty() {
        blocks.insert(0, Block::Break);
    }
    blocks
}

/// The names of the runs, without the CPU where there is one: by their periods, and their
/// conditions where these differ. Those that do not have both have their whole names.
fn names(runs: &[Run]) -> Vec<String> {
    let parts = |run: &Run| Some((run.setup.cpu?, run.setup.period_ns?, run.condition.clone()?));
    let known: Option<Vec<(u32, u64, String)>> = runs.iter().map(parts).collect();
    let is_on_one = |known: &Vec<(u32, u64, String)>| known.windows(2).all(|w| w[0].0 == w[1].0);
    let Some(known) = known.filter(is_on_one) else {
        return runs.iter().map(|run| format::plain(&run.name)).collect();
    };
    let differ = known.windows(2).any(|pair| pair[0].2 != pair[1].2);
    let name = |(_, period_ns, condition): &(u32, u64, String)| match differ {
        true => format!("{}, {}", format::period(*period_ns), format::plain(condition)),
        false => format::period(*period_ns),
    };
    known.iter().map(name).collect()
}

/// The runs of a report by their names.
fn named(report: &Report) -> Vec<Named<'_>> {
    report.body.runs().iter().map(|run| (run.name.clone(), run)).collect()
}

/// Lateness of the releases of each run, every quantile with its n.
pub(crate) fn figures(runs: &[Named<'_>]) -> Table {
    let figures = runs.iter().map(|(name, run)| {
        let outcome = &run.outcome;
        let n = run.known_cycles().map(|_| outcome.releases());
        Figures { name: name.clone(), run, times: &outcome.lateness_ns, n }
    });
    figures_of(figures.collect())
}

/// Returns true where all runs have a count of missed releases: another program may have left them
/// out without counting them.
pub(crate) fn missed_are_known(runs: &[Named<'_>]) -> bool {
    runs.iter().all(|(_, run)| run.outcome.missed.is_some())
}

/// The figures of a run: its times, and how many these are.
struct Figures<'a> {
    name: String,
    run: &'a Run,
    times: &'a SummaryStats,
    /// `None` where the data do not have it.
    n: Option<u64>,
}

fn figures_of(runs: Vec<Figures<'_>>) -> Table {
    let known = runs.iter().all(|figures| figures.run.outcome.missed.is_some());
    let (n, caption) = match known {
        true => ("releases", "Lateness of releases, missed ones included"),
        false => ("values", "Lateness of wakes where missed releases are not known"),
    };
    let columns = [
        words("run"),
        numbers(n),
        numbers("median"),
        numbers("p99"),
        numbers("1 in 1000 (p99.9)"),
        numbers("p99.99"),
        numbers("worst"),
        numbers("of the period"),
        numbers("missed"),
        numbers("unrecorded"),
        numbers("CPU of the loop"),
    ];
    let row = |Figures { name, run, times, n }: Figures<'_>| {
        vec![
            name,
            format::count_or_dash(n),
            format::ns(times.p50),
            format::ns(times.p99),
            format::ns(times.p99_9),
            format::ns(times.p99_99),
            format::largest(times.max, run.outcome.unknown()),
            of_period(times.max, run.setup.period_ns),
            format::count_or_dash(run.outcome.missed),
            format::count(run.outcome.unrecorded),
            run.cpu_load.map_or_else(|| "-".to_owned(), format::share),
        ]
    };
    Table::new(caption, columns, runs.into_iter().map(row).collect())
}

/// A lateness as a share of the period; a dash where either is not known.
fn of_period(ns: Option<f64>, period_ns: Option<u64>) -> String {
    let share = ns.zip(period_ns).map(|(ns, period_ns)| format::share(ns / period_ns as f64));
    share.unwrap_or_else(|| "-".to_owned())
}

/// The figures in the short document, as many as the terminal has columns for.
fn briefly(report: &Report) -> Table {
    let runs = report.body.runs();
    let names = names(runs);
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let wide = format::width() >= WIDE;
    let title = if wide { "lateness of releases" } else { "lateness" };
    // Where names are long and the terminal is narrow, the first lines have the releases.
    let has_releases = wide || width.max(title.len()) + 47 <= format::width();
    let mut columns = vec![
        words(title),
        numbers("typical").at_least(7),
        numbers("1 in 100").at_least(8),
        numbers("1 in 1000").at_least(9),
        numbers("worst").at_least(8),
        numbers("missed").at_least(if has_releases { 13 } else { 8 }),
    ];
    let row = |(run, name): (&Run, &String)| {
        let times = &run.outcome.lateness_ns;
        let n = format::count(run.outcome.releases());
        let missed = format::count_or_dash(run.outcome.missed);
        let quantiles = [times.p50, times.p99, times.p99_9].map(format::ns);
        let mut cells = vec![name.clone()];
        cells.extend(quantiles);
        cells.push(format::largest(times.max, run.outcome.unknown()));
        cells.push(if has_releases { format!("{missed}/{n}") } else { missed });
        cells
    };
    let mut rows: Vec<Vec<String>> = runs.iter().zip(&names).map(row).collect();
    if !wide {
        columns.remove(2);
        rows.iter_mut().for_each(|cells| drop(cells.remove(2)));
    }
    figures(&named(report)).brief(Frame::Bare, columns, rows)
}

fn histograms(report: &Report) -> Vec<Block> {
    let runs = report.body.runs();
    let names = names(runs);
    let width = names.iter().take(DRAWN).map(|name| name.chars().count()).max().unwrap_or(0);
    let drawn = runs.iter().zip(&names).take(DRAWN);
    let lines = drawn.filter_map(|(run, name)| histogram::line(run, &format!("{name:width$}")));
    let lines: String = lines.collect();
    if lines.is_empty() { Vec::new() } else { vec![Block::Drawing(lines)] }
}

/// The causes that were seen, and what to do next; the details last.
fn next(report: &Report, results: Option<&str>, words: fn(&Advice) -> String) -> Vec<Block> {
    let headline = report.body.headline().filter(|headline| !headline.advice.is_empty());
    let advice = headline.map_or(&[][..], |headline| &headline.advice);
    let title = headline.map_or("What next", Headline::advice_heading);
    let advised = advised(advice, words).into_iter();
    let items: Vec<Item> = advised.chain(results.map(head::details)).collect();
    if items.is_empty() {
        return Vec::new();
    }
    let items = Items::new(ItemsKind::Notes, items).spaced(9, 2);
    vec![Block::Heading(title.to_owned()), items.into()]
}

/// Advice as items: the topic, the fact in so many words, the command.
pub(crate) fn advised(advice: &[Advice], words: fn(&Advice) -> String) -> Vec<Item> {
    let item = |advice: &Advice| Item {
        command: advice.command.clone(),
        ..Item::new(&advice.topic, words(advice))
    };
    advice.iter().map(item).collect()
}

/// The long table of lateness: a row a run, of imported data their own quantity.
fn lateness(report: &Report) -> Vec<Block> {
    let figures = |run| {
        let run: &Run = run;
        let imported = run.outcome.imported.as_ref();
        let times = imported.map_or(&run.outcome.lateness_ns, |imported| &imported.values_ns);
        let n = match imported {
            Some(_) => run.known_cycles(),
            None => Some(run.outcome.releases()),
        };
        let otherwise = imported.filter(|data| data.holds != ImportedQuantity::Lateness);
        let name = match otherwise {
            Some(imported) => format!("{} ({})", run.name, imported.holds.many()),
            None => run.name.clone(),
        };
        Figures { name, run, times, n }
    };
    let runs: Vec<_> = report.body.runs().iter().map(figures).collect();
    let columns = [
        words("lateness").at_least(NAME),
        numbers("median").at_least(8),
        numbers("1 in 1000").at_least(10),
        numbers("worst").at_least(9),
        numbers("cycles").at_least(9),
        numbers("missed").at_least(7),
    ];
    let row = |Figures { name, run, times, n }: &Figures<'_>| {
        vec![
            name.clone(),
            format::ns(times.p50),
            format::ns(times.p99_9),
            format::largest(times.max, run.outcome.unknown()),
            format::count_or_dash(*n),
            format::count_or_dash(run.outcome.missed),
        ]
    };
    let rows = runs.iter().map(row).collect();
    let table = figures_of(runs).brief(Frame::Bare, columns, rows);
    let mut blocks = vec![Block::Break, table.into()];
    blocks.extend(run_notes(report));
    blocks
}

/// Notes on each run that do not stand in the table.
fn run_notes(report: &Report) -> Vec<Block> {
    let follow = report.body.loops().and_then(|loops| loops.follow.as_ref());
    let mut blocks = Vec::new();
    for run in report.body.runs() {
        let mut parts = counted_apart(run);
        let clock = run.setup.follows.as_ref().filter(|_| follow.is_none());
        parts.extend(clock.map(|clock| format!("the grid follows {clock}")));
        if let Some(stalled) = run.stalled.filter(|&stalled| stalled > 0) {
            parts.push(format!(
                "{} stalls inside the spin, longest {}",
                format::count(stalled),
                format::ns(run.stall_max_ns)
            ));
        }
        parts.extend(run.approach.as_ref().map(|plan| sleeps(plan, run.cpu_load)));
        if !parts.is_empty() {
            blocks.push(Block::words_at(2, format!("{}: {}", run.name, parts.join(" · "))));
        }
    }
    blocks.extend(follow.map(|follow| Block::words_at(2, followed(follow))));
    blocks
}

/// The cycles that the figures of a run leave out, or only bound.
fn counted_apart(run: &Run) -> Vec<String> {
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
    parts
}

/// The sleeps of a wait that spins, and the CPU time that it takes.
fn sleeps(plan: &Approach, cpu_load: Option<f64>) -> String {
    let margin = format!("{} early", format::ns(Some(plan.margin_ns as f64)));
    let hop = plan.hop_ns.map(|hop| format::ns(Some(hop as f64)));
    let mut text = match (hop, plan.hops) {
        (Some(hop), None) => format!("sleeps of {hop} at most, the last ends {margin}"),
        (Some(hop), Some(1)) => format!("a long sleep and one of {hop}, which ends {margin}"),
        (Some(hop), Some(n)) => format!("a long sleep and {n} of {hop}, which end {margin}"),
        (None, _) => format!("one sleep, which ends {margin}"),
    };
    if let Some(load) = cpu_load {
        text += &format!(", costs {} of the CPU", format::share(load));
    }
    if let Some(share) = plan.paused_share {
        text += &format!(", {} of its spins in timed pauses", format::share(share));
    }
    if plan.reachable == Some(false) {
        text += "; its target exceeds its budget on this machine";
    }
    text
}

/// The clock that the grids followed, with its drift and phase error, in a line.
pub(crate) fn followed(follow: &Follow) -> String {
    let parts = [
        Some(format!("the grid follows {}", format::plain(&follow.clock))),
        follow
            .drift_ppb
            .map(|ppb| format!("drift {} ppb against CLOCK_MONOTONIC", format::whole(ppb))),
        follow.phase_error_ns.rms.map(|rms| {
            format!(
                "phase error rms {}, largest {} of {} readings",
                format::ns(Some(rms)),
                format::ns(follow.phase_error_ns.max.map(|max| max as f64)),
                format::count(follow.readings),
            )
        }),
        Some(format!(
            "steps {}, stops {}",
            format::count(follow.steps),
            format::count(follow.stops)
        )),
        Some(format!("slewed by {} ppb at most", format::count(follow.limit_ppb.unsigned_abs()))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// The worst under each load, worst first, and what the loads did.
fn under_loads(report: &Report) -> Vec<Block> {
    let ran = |row: &&LoadRow| row.lateness_ns.max.is_some();
    let mut rows: Vec<&LoadRow> = report.body.load_rows().iter().filter(ran).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let worst = |row: &&LoadRow| row.lateness_ns.max.unwrap_or(0.0);
    rows.sort_by(|a, b| worst(b).total_cmp(&worst(a)));
    let has_several = rows.windows(2).any(|pair| pair[0].period_ns != pair[1].period_ns);
    let of_loop = |row: &LoadRow| {
        let period = row.period_ns.filter(|_| has_several);
        period.map_or_else(String::new, |ns| format!(" ({})", format::period(ns)))
    };
    let part = |row: &&LoadRow| format!("{} {}{}", row.load, row.worst(), of_loop(row));
    let parts: Vec<String> = rows.iter().map(part).collect();
    // Loops that run at once have the same loads.
    let mut rates: Vec<String> = Vec::new();
    for rate in rows.iter().flat_map(|row| &row.loads).map(head::rate) {
        if !rates.contains(&rate) {
            rates.push(rate);
        }
    }
    // Those of a run that ended before its loads have none.
    let rates = Some(rates).filter(|rates| !rates.is_empty());
    let rates = rates.map(|rates| format!("the loads ran at {}", rates.join(" · ")));
    let worst = format!("worst under {}", parts.join(" · "));
    [Some(worst), rates].into_iter().flatten().map(|text| Block::words_at(2, text)).collect()
}

/// The rates of the loads of each run.
fn loads(report: &Report) -> Vec<Block> {
    let rated = report.body.runs().iter().filter(|run| !run.loads.is_empty());
    let words = |run: &Run| {
        let rates: Vec<String> = run.loads.iter().map(head::rate).collect();
        Block::words_at(1, format!("load in {}: {}", run.name, rates.join(" · ")))
    };
    rated.map(words).collect()
}

/// The cost of the instruments themselves: no number of the document is finer.
fn instruments(report: &Report) -> Vec<Block> {
    let recording = report.body.loops().and_then(|loops| loops.recording.as_ref());
    let (Some(clock), Some(recording)) = (&report.envelope.clock, recording) else {
        return Vec::new();
    };
    let slew = clock.slew_words().map_or_else(String::new, |words| format!(" · {words}"));
    let text = format!(
        "a timestamp costs {}, recording a sample {:.1} ns, in a cold cycle {:.0} ns{slew}",
        format::ns(Some(clock.stamp_ns)),
        recording.hot_ns,
        recording.cold_ns,
    );
    vec![Block::Break, Block::words_at(1, text)]
}

/// Each run in the measures that papers and other tools have, under their names.
pub(crate) fn other_measures(runs: &[Named<'_>]) -> Table {
    let columns = [
        words("run"),
        numbers("peak-to-peak about grid (NIST)"),
        numbers("rms about grid (NIST)"),
        numbers("largest |interval| (LinuxCNC)"),
        numbers("deviation of interval (LinuxCNC)"),
        numbers("variance of lateness (AnT)"),
        numbers("drift of the grid"),
    ];
    let row = |(name, run): &Named<'_>| {
        let measures = &run.outcome.jitters;
        let variance = measures.lateness_variance_ns2.map(|ns2| format!("{ns2:.3e} ns²"));
        vec![
            name.clone(),
            format::ns(measures.grid_pp_ns),
            format::ns(measures.grid_rms_ns),
            format::ns(measures.interval_max_abs_ns),
            format::ns(measures.interval_stddev_ns),
            variance.unwrap_or_else(|| "-".to_owned()),
            drift(run),
        ]
    };
    let rows = runs.iter().map(row).collect();
    Table::new("Same data as other tools report it", columns, rows)
}

/// The measures of other tools for a long document, where a terminal has a column for each run.
fn other_names(report: &Report) -> Vec<Block> {
    type Measure = fn(&Run) -> String;
    let measures: [(&str, &str, Measure); 6] = [
        ("peak-to-peak about grid", "NIST", |run| format::ns(run.outcome.jitters.grid_pp_ns)),
        ("rms about grid", "NIST", |run| format::ns(run.outcome.jitters.grid_rms_ns)),
        ("largest |interval|", "LinuxCNC", |run| {
            format::ns(run.outcome.jitters.interval_max_abs_ns)
        }),
        ("deviation of interval", "LinuxCNC", |run| {
            format::ns(run.outcome.jitters.interval_stddev_ns)
        }),
        ("variance of lateness", "AnT", |run| variance(run.outcome.jitters.lateness_variance_ns2)),
        ("drift of the grid", "", drift),
    ];
    // Of another program's data only what they hold stands under its name.
    let runs = report.body.runs();
    let own = runs.iter().zip(names(runs)).map(|(run, name)| (name, run));
    let own: Vec<Named<'_>> = own.filter(|(_, run)| run.outcome.imported.is_none()).collect();
    if own.is_empty() {
        return Vec::new();
    }
    // What has no room beside the others stands below them, under the names of its own runs.
    let mut columns = vec![words("")];
    columns.extend(own.iter().map(|(name, _)| numbers(name).at_least(12)));
    let row = |(name, source, value): &(&str, &str, Measure)| {
        let source = if source.is_empty() { String::new() } else { format!(" ({source})") };
        let mut cells = vec![format!("{name}{source}")];
        cells.extend(own.iter().map(|(_, run)| value(run)));
        cells
    };
    let rows = measures.iter().map(row).collect();
    let title = Block::words_at(1, "same data as other tools report");
    let table = other_measures(&own).brief(Frame::Bare, columns, rows);
    vec![Block::Break, title, table.into()]
}

fn variance(ns2: Option<f64>) -> String {
    match ns2.map(|ns2| ns2 / 1e6) {
        None => "-".to_owned(),
        Some(us2) if us2 >= 1e5 => format!("{us2:.2e} µs²"),
        Some(us2) => format!("{us2:.1} µs²"),
    }
}

fn drift(run: &Run) -> String {
    let drift = run.outcome.grid.as_ref().map(|grid| format!("{:.1} ppb", grid.drift_ppb));
    drift.unwrap_or_else(|| "-".to_owned())
}

/// The source of another program's data and the facts that they lack: once for the runs that share
/// it.
fn imported(report: &Report) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut sources: Vec<String> = Vec::new();
    for run in report.body.runs() {
        let Some(imported) = &run.outcome.imported else { continue };
        let source = source(imported);
        let key = format!("{source}\n{}", imported.cannot_know.join("\n"));
        if !sources.contains(&key) {
            sources.push(key);
            let lacks = imported.cannot_know.iter().map(|text| Item::new("-", text));
            let lacks = Items::new(ItemsKind::Plain, lacks.collect()).at(2);
            blocks.extend([Block::Break, Block::words_at(1, source)]);
            blocks.extend([Block::words_at(1, "not in these data"), lacks.into()]);
        }
        if let Some(beyond) = beyond(run, imported) {
            blocks.push(Block::words_at(2, format!("{beyond}; drawn at their maximum")));
        }
    }
    blocks
}

/// Which program's data these are, and what they hold.
fn source(imported: &Imported) -> String {
    let version = imported.version.as_ref().map(|text| format!(" {text}")).unwrap_or_default();
    let fine = match imported.resolution_ns {
        Some(ns) => format!("resolution {}", format::ns(Some(ns))),
        None => "in buckets that widen with the value".to_owned(),
    };
    let rounded = match imported.rounding_ns > 1.0 {
        true => " (a quantile is the upper end of its step, the worst is as printed)",
        false => "",
    };
    format!(
        "from {}{version} ({}): {}, {fine}{rounded}",
        imported.program,
        imported.format,
        imported.holds.many()
    )
}

/// The values beyond the histogram of another program, in a sentence; `None` where there are none.
pub(crate) fn beyond(run: &Run, imported: &Imported) -> Option<String> {
    let end = imported.limit_ns.map(|ns| format::ns(Some(ns as f64)));
    let end = end.map(|end| format!(", which ends at {end}")).unwrap_or_default();
    let (beyond, n) = (format::count(imported.overflow), format::count(run.outcome.cycles));
    let words = || format!("{}: {beyond} of {n} values are beyond the histogram{end}", run.name);
    (imported.overflow > 0).then(words)
}

#[cfg(test)]
mod tests {
    use punctual_analysis::recording::{Recording, RecordingConfig};
    use punctual_report::Setup;

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
        let text = sleeps(&hops, None);
        assert_eq!(
            text,
            "sleeps of 141 µs at most, the last ends 20.0 µs early, 90 % of its spins in timed \
             pauses"
        );
    }

    #[test]
    fn names_without_the_cpu_are_made_of_what_runs_are_and_not_of_their_names() {
        let run = |name: &str, cpu, condition: Option<&str>| {
            let setup = Setup { cpu: Some(cpu), period_ns: Some(25_000), ..Setup::default() };
            let recording = Recording::new(RecordingConfig::default());
            let run = Run::recorded(name.to_owned(), setup, recording.finish(0));
            Run { condition: condition.map(str::to_owned), ..run }
        };
        let idle = || run("CPU 1, 25 µs, idle", 1, Some("idle"));
        let loaded = run("CPU 1, 25 µs, under load", 1, Some("under load"));
        assert_eq!(names(&[idle()]), ["25 µs"]);
        assert_eq!(names(&[idle(), loaded]), ["25 µs, idle", "25 µs, under load"]);
        let other = run("CPU 2, 25 µs, idle", 2, Some("idle"));
        assert_eq!(names(&[idle(), other]), ["CPU 1, 25 µs, idle", "CPU 2, 25 µs, idle"]);
        // A name that somebody chose is no CPU.
        assert_eq!(names(&[run("CPU 1, mine", 1, None)]), ["CPU 1, mine"]);
    }

    #[test]
    fn the_long_tables_tell_loops_apart_and_have_what_they_share_once() {
        let stored = include_str!("../../../tests/results/kinds/check.json");
        let mut stored: serde_json::Value = serde_json::from_str(stored).expect("JSON");
        let (run, row) = (stored["runs"][0].clone(), stored["rows"][0].clone());
        let loops = [(25_000, "idle"), (25_000, "under load"), (1_000_000, "idle")];
        let runs = loops.map(|(period_ns, condition)| {
            let mut run = run.clone();
            run["name"] = format!("CPU 1, {}, {condition}", format::period(period_ns)).into();
            run["condition"] = condition.into();
            run["setup"]["period_ns"] = period_ns.into();
            run
        });
        let rows = [25_000, 1_000_000].map(|period_ns: u64| {
            let mut row = row.clone();
            row["period_ns"] = period_ns.into();
            row
        });
        (stored["runs"], stored["rows"]) = (serde_json::json!(runs), serde_json::json!(rows));
        let report = Report::parse(&stored.to_string()).expect("a result");
        let shown = |blocks: Vec<Block>| punctual_document::text::rendered(&blocks).to_string();
        let names = shown(other_names(&report));
        for name in ["  25 µs, idle", "  25 µs, under load", "  1 ms, idle"] {
            assert!(names.contains(name), "{name}: {names}");
        }
        assert!(names.contains("rms about grid (NIST)"), "{names}");
        let loads = shown(under_loads(&report));
        assert!(loads.contains("(25 µs)") && loads.contains("(1 ms)"), "{loads}");
        let rate = head::rate(&report.body.load_rows()[0].loads[0]);
        let rate = rate.split(' ').next().expect("a name");
        assert_eq!(loads.matches(&format!("{rate} ")).count(), 1, "{rate}: {loads}");
    }

    #[test]
    fn a_result_without_a_cycle_is_short_and_has_no_word_of_loads_that_did_not_run() {
        let stored = include_str!("../../../tests/results/kinds/check.json");
        let mut report = Report::parse(stored).expect("a result");
        let Body::Check(body) = &mut report.body else { unreachable!() };
        let empty = |name: &str| {
            let recording = Recording::new(RecordingConfig::default());
            Run::recorded(name.to_owned(), Setup::default(), recording.finish(0))
        };
        body.loops.judged.runs = ["idle", "under load"].map(empty).to_vec();
        body.loops.judged.headline.iter_mut().for_each(|headline| headline.loops.clear());
        for row in &mut body.rows {
            (row.cycles, row.lateness_ns.max) = (0, None);
            row.loads.clear();
        }
        report.envelope.end_early(EndedBy::Watchdog);
        let text = |detail| crate::view::text(&report, None, detail).to_string();
        let short = text(crate::args::Detail::Short);
        assert!(short.starts_with("Nothing was measured.\n"), "{short}");
        assert!(!short.contains("same data as other tools report"), "{short}");
        let long = text(crate::args::Detail::Long);
        assert!(!long.contains("worst under") && !long.contains("loads ran at"), "{long}");
    }

    #[test]
    fn a_hostile_name_stays_in_its_line() {
        let follow = Follow { clock: "/dev/\u{1b}[2J\nptp".to_owned(), ..Follow::default() };
        let line = followed(&follow);
        assert!(!line.contains(['\u{1b}', '\n']), "{line:?}");
    }

    #[test]
    fn a_cause_is_four_lines_at_most_in_the_first_page_and_whole_elsewhere() {
        let stored = include_str!("../../../tests/results/kinds/check.json");
        let mut stored: serde_json::Value = serde_json::from_str(stored).expect("JSON");
        let text = "under load: 2 018 of 3 207 wakes later than 40.0 µs: interrupt virtio1-req.0 \
                    of virtio_blk, worst 4.12 ms";
        stored["headline"]["advice"] = serde_json::json!([{
            "topic": "cause",
            "text": text,
            "detail": "50 % of the 3.20 s lost by the 3 207 wakes. ".repeat(4) + "Move it",
            "command": "punctual tune plan --cpus 1",
        }]);
        let report = Report::parse(&stored.to_string()).expect("a result");
        let page = crate::view::text(&report, None, crate::args::Detail::Short).to_string();
        let why = page.split("Why, and what next\n").nth(1).expect("its heading");
        assert!(why.lines().count() <= 4, "{why}");
        assert!(why.contains("worst 4.12 ms:") && !why.contains("Move it"), "{why}");
        let markdown = crate::view::markdown(&report);
        assert!(markdown.contains("worst 4.12 ms. 50 %") && markdown.contains("Move it"));
        let long = crate::view::text(&report, None, crate::args::Detail::Long).to_string();
        assert!(long.contains("Move it"), "{long}");
    }
}
