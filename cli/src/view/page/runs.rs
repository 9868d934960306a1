//! The tables of runs on a page: figures, latest cycles, loads, claims, limits, setup.

use punctual_analysis::claim::Claim;
use punctual_analysis::recording::ReleaseKind;
use punctual_document::{Block, Column, Figure, Section, Table, numbers, words};
use punctual_report::{LoadRow, Report, Run};

use super::source::{Source, some};
use crate::format;
use crate::pages::{Page, Shown};
use crate::view::kinds::blame;
use crate::view::kinds::head::{self, Named};
use crate::view::kinds::loops;
use crate::view::plots;

/// The lateness of wakes, every number with its n and unit, and the names of others for it; an
/// overview has a table of its own.
pub(super) fn figures(source: &Source<'_>) -> Option<Section> {
    let page = source.page;
    let runs = named(page);
    if page.results.len() > 2 || runs.is_empty() {
        return None;
    }
    let releases = "The lateness of a release that ran ends at its wake; that of a missed release \
                    ends at the first wake after it, and is at least one period. Unrecorded \
                    cycles ran, but the memory for samples was full: quantiles count them as the \
                    latest. ";
    let explained = format!(
        "A dash means that n is too small, or that it is not in the data. {}≥ means that some \
         values are only known to be at least this.",
        if loops::missed_are_known(&runs) { releases } else { "" }
    );
    let folded =
        |summary: &str, table: Table| Block::Folded(summary.to_owned(), vec![table.into()]);
    let blocks = vec![
        loops::figures(&runs).into(),
        Block::muted(explained),
        folded("The same recordings in the measures of other tools", loops::other_measures(&runs)),
        folded("Cycles that were left out, faults, preemption, floor", other_figures(&runs)),
    ];
    some("figures", "Figures", blocks)
}

/// Every run with its name on the page; those of one name next to each other.
fn named(page: &Page) -> Vec<Named<'_>> {
    let several = page.results.len() > 1;
    let mut runs: Vec<(&Shown, &Run)> = Vec::new();
    for shown in &page.results {
        for run in shown.report.body.runs() {
            let same = runs.iter().rposition(|(_, before)| before.name == run.name);
            let at = same.map_or(runs.len(), |at| at + 1);
            runs.insert(at, (shown, run));
        }
    }
    let name = |shown: &Shown, run: &Run| match several {
        true => format!("{}, {}", run.name, shown.label),
        false => run.name.clone(),
    };
    runs.into_iter().map(|(shown, run)| (name(shown, run), run)).collect()
}

/// The runs whose details a page has room for: the drawn ones where there are many.
fn detailed<'a>(source: &'a Source<'_>) -> Vec<Named<'a>> {
    let page = source.page;
    if page.results.len() > 2 {
        return Vec::new();
    }
    let is_drawn = |run: &Run| {
        page.drawn
            .iter()
            .any(|&(result, at)| std::ptr::eq(&page.results[result].report.body.runs()[at], run))
    };
    let mut runs = named(page);
    runs.retain(|(_, run)| page.left_out.is_empty() || is_drawn(run));
    runs
}

fn other_figures(runs: &[Named<'_>]) -> Table {
    let columns = [
        words("run"),
        numbers("cycles in all"),
        numbers("cold, left out or marked"),
        numbers("worst cold"),
        numbers("stalls in the spin"),
        numbers("page faults"),
        numbers("preempted"),
        numbers("floor (cost of a timestamp)"),
    ];
    let row = |(name, run): &Named<'_>| {
        vec![
            name.clone(),
            format::count_or_dash(run.known_cycles()),
            format::count(run.outcome.cold),
            format::ns(run.outcome.cold_max_ns),
            format::count_or_dash(run.stalled),
            format::count_or_dash(run.page_faults),
            format::count_or_dash(run.preempted),
            format::ns(run.floor_ns),
        ]
    };
    Table::new("Apart from lateness", columns, runs.iter().map(row).collect())
}

/// The latest releases of each run; a column in which nothing is known is left out.
pub(super) fn worst(source: &Source<'_>) -> Option<Section> {
    let columns = [
        words("run"),
        numbers("seconds into the run"),
        numbers("lateness"),
        words("load"),
        words("cause"),
        numbers("cycle"),
    ];
    let mut rows: Vec<Vec<String>> = Vec::new();
    let runs = detailed(source);
    for (name, run) in &runs {
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
    if rows.is_empty() {
        return None;
    }
    let is_known = |column: &usize| rows.iter().any(|row| !row[*column].is_empty());
    let kept: Vec<usize> = (0..columns.len()).filter(is_known).collect();
    let columns: Vec<Column> = kept.iter().map(|&column| columns[column].clone()).collect();
    let cell = |cell: &String| if cell.is_empty() { "-".to_owned() } else { cell.clone() };
    let row = |row: &Vec<String>| kept.iter().map(|&column| cell(&row[column])).collect();
    let rows = rows.iter().map(row).collect();
    let caption =
        "The worst wakes of each run, largest lateness first; seconds from the first release";
    let strip = plots::worst_strip(&runs, &source.axes);
    let strip = strip.map(|chart| Figure::still("worst-strip".to_owned(), chart));
    let table = Block::from(Table::new(caption, columns, rows));
    some("worst", "Worst cycles", strip.into_iter().chain([table]).collect())
}

/// The causes of late releases, and the latest wakes as they passed.
pub(super) fn causes(source: &Source<'_>) -> Option<Section> {
    some(
        "causes",
        "Why releases were late",
        blame::of_runs(&detailed(source), blame::CausesShown::All),
    )
}

/// The loads that ran next to the loop, with the worst lateness under each.
pub(super) fn loads(source: &Source<'_>) -> Option<Section> {
    let mut rows = Vec::new();
    for shown in source.few() {
        let label = |name: &str| format!("{name}{}", source.suffix(shown));
        let loads = |loads: &[_]| loads.iter().map(head::rate).collect::<Vec<_>>().join(" · ");
        let load_rows = shown.report.body.load_rows();
        let has_several = load_rows.windows(2).any(|pair| pair[0].period_ns != pair[1].period_ns);
        let of_load = |row: &LoadRow| {
            let period = row.period_ns.filter(|_| has_several);
            let period = period.map_or_else(String::new, |ns| format!(", {}", format::period(ns)));
            vec![
                label(&(row.load.clone() + &period)),
                format::count(row.cycles),
                format::ns(row.lateness_ns.p50),
                format::ns(row.lateness_ns.p99_9),
                row.worst(),
                format::count(row.missed),
                loads(&row.loads),
            ]
        };
        let of_run = |run: &Run| {
            let lateness = &run.outcome.lateness_ns;
            vec![
                label(&run.name),
                format::count_or_dash(run.known_cycles()),
                format::ns(lateness.p50),
                format::ns(lateness.p99_9),
                format::largest(lateness.max, run.outcome.unknown()),
                format::count_or_dash(run.outcome.missed),
                loads(&run.loads),
            ]
        };
        rows.extend(load_rows.iter().map(of_load));
        if load_rows.is_empty() {
            rows.extend(
                shown.report.body.runs().iter().filter(|run| !run.loads.is_empty()).map(of_run),
            );
        }
    }
    if rows.is_empty() {
        return None;
    }
    let columns = [
        words("load"),
        numbers("cycles"),
        numbers("median"),
        numbers("1 in 1000"),
        numbers("worst"),
        numbers("missed"),
        words("what it did"),
    ];
    let table = Table::new("Lateness under each load", columns, rows);
    some("loads", "Loads", vec![table.into()])
}

/// Everything that the runs support.
pub(super) fn claims(source: &Source<'_>) -> Option<Section> {
    let row = |name: &str, claim: &Claim| {
        let given = if claim.given { "" } else { "refused: " };
        let observed = || if claim.given { "observed" } else { "refused" }.to_owned();
        vec![
            name.to_owned(),
            format!("{:?}", claim.level),
            format!("{given}{}", claim.statement),
            format::count(claim.n),
            claim.confidence.map_or_else(observed, format::share),
            claim.conditions.clone(),
        ]
    };
    let mut blocks = vec![Block::words(
        "L0 was observed. L1 is a bound on how often a release is later than a given time, L2 an \
         interval for a quantile; both hold for the machine as it was, under the loads that ran. \
         L3 is a model's estimate for rarer releases, or the reason why there is none.",
    )];
    for (name, run) in detailed(source) {
        let rows: Vec<_> = run.outcome.claims.iter().map(|claim| row(&name, claim)).collect();
        if rows.is_empty() {
            continue;
        }
        let columns = [
            words("run"),
            words("level"),
            words("claim"),
            numbers("n"),
            words("sure"),
            words("assumes"),
        ];
        let summary = format!("{name}: {} claims", rows.len());
        let table = Table::new(format!("What {name} supports"), columns, rows);
        blocks.push(Block::Folded(summary, vec![table.into()]));
    }
    let is_any = blocks.len() > 1;
    is_any.then_some(Section { id: "claims", heading: "Claims", blocks })
}

/// Each limit, and each claim, on each run.
pub(super) fn limits(source: &Source<'_>) -> Option<Section> {
    let mut rows = Vec::new();
    for shown in &source.page.results {
        let (verdict, suffix) = (&shown.report.envelope.verdict, source.suffix(shown));
        for limit in &verdict.limits {
            rows.push(vec![
                limit.judgement.text.clone(),
                format!("{}{suffix}", limit.run),
                limit.word().to_owned(),
                limit.judgement.reason.clone(),
            ]);
        }
        for claim in &verdict.claims {
            rows.push(vec![
                claim.judged.statement.clone(),
                format!("{}{suffix}", claim.run),
                claim.word().to_owned(),
                claim.judged.reason.clone(),
            ]);
        }
    }
    if rows.is_empty() {
        return None;
    }
    let columns = ["limit or claim", "run", "result", "why"].map(words);
    let table = Table::new("Requested limits and claims, each on each run", columns, rows);
    some("limits", "Requested limits and claims", vec![table.into()])
}

/// The settings of each run, and the cost of the instruments.
pub(super) fn setup(source: &Source<'_>) -> Option<Section> {
    let results = source.few();
    if results.is_empty() {
        return None;
    }
    let columns = [
        words("run"),
        numbers("CPU"),
        numbers("period"),
        numbers("phase"),
        words("policy"),
        words("wait"),
        words("load"),
        numbers("requested duration"),
    ];
    let rows: Vec<Vec<String>> =
        named(source.page).iter().map(|(name, run)| setup_cells(name, run)).collect();
    let mut blocks = Vec::new();
    if !rows.is_empty() {
        blocks.push(Table::new("How each run was set up", columns, rows).into());
    }
    for shown in results {
        let words = instruments(&shown.report);
        blocks.push(Block::words(format!("{}{words}", source.prefix(shown))));
    }
    some("setup", "Setup", blocks)
}

fn setup_cells(name: &str, run: &Run) -> Vec<String> {
    let setup = &run.setup;
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    vec![
        name.to_owned(),
        or_dash(setup.cpu.map(|cpu| cpu.to_string())),
        or_dash(setup.period_ns.map(format::period)),
        or_dash(setup.phase_ns.map(|phase| self::phase(phase, setup.follows.as_ref()))),
        or_dash(setup.policy_words()),
        or_dash(setup.wait.clone()),
        if setup.load.is_empty() { "none".to_owned() } else { setup.load.join(", ") },
        or_dash(setup.duration_ns.map(format::period)),
    ]
}

fn phase(ns: u64, follows: Option<&String>) -> String {
    let on = follows.map(|clock| format!(" on {}", format::plain(clock))).unwrap_or_default();
    format::ns(Some(ns as f64)) + &on
}

/// The requests granted, and the cost of the instruments, in a line.
fn instruments(report: &Report) -> String {
    let mut parts = Vec::new();
    parts.extend(report.envelope.session.iter().flat_map(|session| session.granted_words()));
    if let Some(clock) = &report.envelope.clock {
        let stamp = format::ns(Some(clock.stamp_ns));
        parts.push(format!("timestamps {}, each {stamp}", clock.source));
        parts.extend(clock.pause_words());
        parts.extend(clock.slew_words());
    }
    let loops = report.body.loops();
    parts.extend(loops.and_then(|loops| loops.follow.as_ref()).map(loops::followed));
    if let Some(cost) = loops.and_then(|loops| loops.recording.as_ref()) {
        parts.push(format!(
            "recording a sample costs {:.1} ns, in a cold cycle {:.0} ns",
            cost.hot_ns, cost.cold_ns
        ));
    }
    parts.push(format!("punctual {}", report.envelope.version));
    parts.join(" · ")
}
