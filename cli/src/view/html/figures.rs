//! The figures: how late a wake is, every number with its n and unit, and what others call it.

use super::markup::{details, table};
use super::section::{Section, Source};
use crate::format;
use crate::pages::Page;
use crate::report::Run;

/// The section; an overview has a table of its own.
pub(super) fn section(source: &Source<'_>) -> Option<Section> {
    let page = source.page;
    if page.results.len() > 2 || runs(page).is_empty() {
        return None;
    }
    // Another program may have left the missed ones out without counting them.
    let known = runs(page).iter().all(|(_, run)| run.outcome.missed.is_some());
    let (n, caption) = match known {
        true => (">releases", "Lateness of releases, missed ones included"),
        false => (">values", "Lateness of wakes where missed releases are not known"),
    };
    let heads = [
        "run",
        n,
        ">median",
        ">p99",
        ">1 in 1000 (p99.9)",
        ">p99.99",
        ">worst",
        ">missed",
        ">unrecorded",
        ">CPU of the loop",
    ];
    let rows: Vec<Vec<String>> = runs(page).iter().map(|(name, run)| row(name, run)).collect();
    let mut body = table(caption, &heads, &rows);
    let releases = "The lateness of a release that ran ends at its wake; that of a missed release \
                    ends at the first wake after it, and is at least one period. Unrecorded \
                    cycles ran, but the memory for samples was full: quantiles count them as the \
                    latest. ";
    body += &format!(
        "<p class=\"muted\">A dash means that n is too small, or that it is not in the data. {}≥ \
         means that some values are only known to be at least this.</p>",
        if known { releases } else { "" }
    );
    body += &details("The same recordings in the measures of other tools", &other_names(page));
    body += &details("Cycles that were left out, faults, preemption, floor", &other_figures(page));
    Some(Section { id: "figures", heading: "Figures", body })
}

/// Every run with its name on the page; those of one name next to each other.
pub(super) fn runs(page: &Page) -> Vec<(String, &Run)> {
    let several = page.results.len() > 1;
    let mut runs: Vec<(&str, &Run)> = Vec::new();
    for shown in &page.results {
        for run in shown.report.body.runs() {
            let same = runs.iter().rposition(|(_, other)| other.name == run.name);
            let at = same.map_or(runs.len(), |at| at + 1);
            runs.insert(at, (&shown.label, run));
        }
    }
    let named = |(label, run): (&str, &Run)| {
        if several { format!("{}, {label}", run.name) } else { run.name.clone() }
    };
    runs.into_iter().map(|(label, run)| (named((label, run)), run)).collect()
}

fn row(name: &str, run: &Run) -> Vec<String> {
    let (outcome, lateness) = (&run.outcome, &run.outcome.lateness_ns);
    vec![
        name.to_owned(),
        format::count(outcome.releases()),
        format::ns(lateness.p50),
        format::ns(lateness.p99),
        format::ns(lateness.p99_9),
        format::ns(lateness.p99_99),
        format::largest(lateness.max, outcome.unknown()),
        format::count_or_dash(outcome.missed),
        format::count(outcome.unrecorded),
        run.cpu_load.map_or_else(|| "-".to_owned(), format::share),
    ]
}

fn other_names(page: &Page) -> String {
    let heads = [
        "run",
        ">peak-to-peak about grid (NIST)",
        ">rms about grid (NIST)",
        ">largest |interval| (LinuxCNC)",
        ">deviation of interval (LinuxCNC)",
        ">variance of lateness (AnT)",
        ">drift of the grid",
    ];
    let row = |(name, run): &(String, &Run)| {
        let measures = &run.outcome.jitters;
        let drift = run.outcome.grid.as_ref().map(|grid| format!("{:.1} ppb", grid.drift_ppb));
        let variance = measures.lateness_variance_ns2.map(|ns2| format!("{ns2:.3e} ns²"));
        vec![
            name.clone(),
            format::ns(measures.grid_pp_ns),
            format::ns(measures.grid_rms_ns),
            format::ns(measures.interval_max_abs_ns),
            format::ns(measures.interval_stddev_ns),
            variance.unwrap_or_else(|| "-".to_owned()),
            drift.unwrap_or_else(|| "-".to_owned()),
        ]
    };
    let rows: Vec<_> = runs(page).iter().map(row).collect();
    table("Same data as other tools report it", &heads, &rows)
}

fn other_figures(page: &Page) -> String {
    let heads = [
        "run",
        ">cycles in all",
        ">cold, left out or marked",
        ">worst cold",
        ">stalls in the spin",
        ">page faults",
        ">preempted",
        ">floor (cost of a timestamp)",
    ];
    let counted = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), format::count);
    let row = |(name, run): &(String, &Run)| {
        vec![
            name.clone(),
            format::count(run.outcome.cycles),
            format::count(run.outcome.cold),
            format::ns(run.outcome.cold_max_ns),
            counted(run.stalled),
            counted(run.page_faults),
            counted(run.preempted),
            format::ns(run.floor_ns),
        ]
    };
    let rows: Vec<_> = runs(page).iter().map(row).collect();
    table("Apart from lateness", &heads, &rows)
}
