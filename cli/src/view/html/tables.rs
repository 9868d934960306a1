//! Tables below the plots: latest cycles, loads, claims, limits.

use punctual_analysis::claim::Claim;
use punctual_analysis::recording::ReleaseKind;

use super::figures;
use super::markup::{details, table};
use super::section::{Section, Source};
use crate::format;
use crate::report::{Load, Run};

/// The runs whose details a page has room for: the drawn ones where there are many.
fn runs<'a>(source: &'a Source<'_>) -> Vec<(String, &'a Run)> {
    let page = source.page;
    if page.results.len() > 2 {
        return Vec::new();
    }
    let drawn = |run: &Run| {
        page.drawn
            .iter()
            .any(|&(result, at)| std::ptr::eq(&page.results[result].report.body.runs()[at], run))
    };
    let all = figures::runs(page).into_iter();
    all.filter(|(_, run)| page.left_out.is_empty() || drawn(run)).collect()
}

/// The latest releases of each run; a column in which nothing is known is left out.
pub(super) fn worst(source: &Source<'_>) -> Option<Section> {
    let heads = ["run", ">seconds into the run", ">lateness", "load", "cause", ">cycle"];
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (name, run) in runs(source) {
        for worst in &run.outcome.worst {
            let at_s = run.setup.period_ns.map(|ns| worst.cycle as f64 * ns as f64 / 1e9);
            let missed = match worst.kind {
                ReleaseKind::Ran => "",
                ReleaseKind::Missed => " (missed)",
            };
            rows.push(vec![
                name.clone(),
                at_s.map_or_else(String::new, |at| format!("{at:.3} s")),
                format::ns(Some(worst.lateness_ns)) + missed,
                source.page.load_at(run, worst.cycle).unwrap_or_default(),
                worst.cause.clone().unwrap_or_default(),
                format::count(worst.cycle),
            ]);
        }
    }
    let known = |column: &usize| rows.iter().any(|row| !row[*column].is_empty());
    let columns: Vec<usize> = (0..heads.len()).filter(known).collect();
    let heads: Vec<&str> = columns.iter().map(|&column| heads[column]).collect();
    let cell = |cell: &String| if cell.is_empty() { "-".to_owned() } else { cell.clone() };
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| columns.iter().map(|&column| cell(&row[column])).collect()).collect();
    let caption = "The latest of each run, latest first; seconds from the first release";
    let body = table(caption, &heads, &rows);
    (!rows.is_empty()).then_some(Section { id: "worst", heading: "Worst cycles", body })
}

/// What ran next to the loop, and the worst under each.
pub(super) fn loads(source: &Source<'_>) -> Option<Section> {
    let mut rows = Vec::new();
    let results = &source.page.results;
    let several = results.len() > 1;
    for shown in results.iter().filter(|_| results.len() <= 2) {
        let label = |name: &str| {
            if several { format!("{name}, {}", shown.label) } else { name.to_owned() }
        };
        for row in shown.report.body.load_rows() {
            rows.push(vec![
                label(&row.load),
                format::count(row.cycles),
                format::ns(row.lateness_ns.p50),
                format::ns(row.lateness_ns.p99_9),
                row.worst(),
                format::count(row.missed),
                row.loads.iter().map(rate).collect::<Vec<_>>().join(" · "),
            ]);
        }
        let covered = !shown.report.body.load_rows().is_empty();
        for run in shown.report.body.runs().iter().filter(|run| !covered && !run.loads.is_empty()) {
            let lateness = &run.outcome.lateness_ns;
            rows.push(vec![
                label(&run.name),
                format::count(run.outcome.cycles),
                format::ns(lateness.p50),
                format::ns(lateness.p99_9),
                format::largest(lateness.max, run.outcome.unknown()),
                format::count_or_dash(run.outcome.missed),
                run.loads.iter().map(rate).collect::<Vec<_>>().join(" · "),
            ]);
        }
    }
    let heads = ["load", ">cycles", ">median", ">1 in 1000", ">worst", ">missed", "what it did"];
    let body = table("Lateness under each load", &heads, &rows);
    (!rows.is_empty()).then_some(Section { id: "loads", heading: "Loads", body })
}

fn rate(load: &Load) -> String {
    let note = load.note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
    match load.rate {
        Some(rate) => format!("{} {} {}{note}", load.name, format::rate(rate), load.unit),
        None => format!("{} reported no rate{note}", load.name),
    }
}

/// Everything that the runs support.
pub(super) fn claims(source: &Source<'_>) -> Option<Section> {
    let heads = ["run", "level", "claim", ">n", "sure", "assumes"];
    let row = |name: &str, claim: &Claim| {
        let given = if claim.given { "" } else { "refused: " };
        vec![
            name.to_owned(),
            format!("{:?}", claim.level),
            format!("{given}{}", claim.statement),
            format::count(claim.n),
            claim.confidence.map_or_else(
                || if claim.given { "observed" } else { "refused" }.to_owned(),
                format::share,
            ),
            claim.conditions.clone(),
        ]
    };
    let mut body =
        "<p>L0 was observed. L1 is a bound on how often a release is later than a given time, L2 \
         an interval for a quantile; both hold for the machine as it was, under the loads that \
         ran. L3 is a model's estimate for rarer releases, or the reason why there is none.</p>"
            .to_owned();
    let mut any = false;
    for (name, run) in runs(source) {
        let rows: Vec<_> = run.outcome.claims.iter().map(|claim| row(&name, claim)).collect();
        any |= !rows.is_empty();
        if !rows.is_empty() {
            let of_run = table(&format!("What {name} supports"), &heads, &rows);
            body += &details(&format!("{name}: {} claims", rows.len()), &of_run);
        }
    }
    any.then_some(Section { id: "claims", heading: "Claims", body })
}

/// Each limit, and each claim, on each run.
pub(super) fn limits(source: &Source<'_>) -> Option<Section> {
    let heads = ["limit or claim", "run", "result", "why"];
    let results = &source.page.results;
    let mut rows = Vec::new();
    for shown in results {
        for limit in &shown.report.envelope.verdict.limits {
            let of = if results.len() > 1 { format!(", {}", shown.label) } else { String::new() };
            rows.push(vec![
                limit.judgement.text.clone(),
                format!("{}{of}", limit.run),
                if limit.judgement.ok { "holds" } else { "FAILS" }.to_owned(),
                limit.judgement.reason.clone(),
            ]);
        }
        for claim in &shown.report.envelope.verdict.claims {
            let of = if results.len() > 1 { format!(", {}", shown.label) } else { String::new() };
            rows.push(vec![
                claim.judged.statement.clone(),
                format!("{}{of}", claim.run),
                claim.word().to_owned(),
                claim.judged.reason.clone(),
            ]);
        }
    }
    let body = table("Requested limits and claims, each on each run", &heads, &rows);
    let heading = "Requested limits and claims";
    (!rows.is_empty()).then_some(Section { id: "limits", heading, body })
}
