//! The page of one, two or many results, as sections of a document.
//!
//! A page holds results next to each other, so its sections are by what they show, and not by
//! result. What a kind of result shows is in [`super::kinds`].

mod data;
mod plots;
mod runs;
mod sides;
mod source;
mod verdict;

use punctual_document::{
    Block, Figure, Item, Items, ItemsKind, Section, Table, html, numbers, words,
};
use punctual_report::strategies::FrontComparison;
use punctual_report::{Body, Campaign, Comparison, Pair, Report, Run, Verdict};
use serde_json::Value;

use super::kinds::{self, campaign, loops, wait};
use super::plots::{boxes, day, front, paper};
use crate::format;
use crate::pages::{Page, Shown};
use crate::program::PROGRAM;
use source::{Source, some};

/// The sections in their order; each is there when it has something to say. What later pages add
/// is a line here.
const SECTIONS: &[fn(&Source<'_>) -> Option<Section>] = &[
    overview,
    verdict::verdicts,
    compared,
    verdict::warnings,
    imported,
    campaigns,
    runs::figures,
    without_runs,
    drawn,
    waits,
    plots::histograms,
    plots::curves,
    plots::times,
    plots::heat_maps,
    runs::worst,
    runs::causes,
    runs::loads,
    runs::claims,
    runs::limits,
    behind,
    runs::setup,
    facts,
];

/// The page of results.
pub(super) fn of(page: &Page) -> html::Page {
    let source = Source::of(page);
    let several = page.results.len() > 1;
    let few = source.few().iter();
    html::Page {
        title: verdict::title(page),
        heading: verdict::heading(page),
        origins: few.map(|shown| verdict::origin(shown, several)).collect(),
        sections: SECTIONS.iter().filter_map(|section| section(&source)).collect(),
        data: data::json(&source),
        version: PROGRAM.version,
    }
}

/// The sections that have plots: all that are written as files.
const DRAWN: &[fn(&Source<'_>) -> Option<Section>] = &[
    plots::histograms,
    plots::curves,
    plots::times,
    plots::heat_maps,
    runs::worst,
    waits,
    without_runs,
    campaigns,
    drawn,
];

/// The plots of a page, each with its name for a file: those of every result, however many there
/// are.
pub(super) fn figures(page: &Page) -> Vec<Figure> {
    let source = Source::for_files(page);
    let sections = DRAWN.iter().filter_map(|section| section(&source));
    let blocks: Vec<Block> = sections.flat_map(|section| section.blocks).collect();
    blocks.iter().flat_map(Block::figures).cloned().collect()
}

/// Many results in one table: the first thing on a page of more than two.
fn overview(source: &Source<'_>) -> Option<Section> {
    let page = source.page;
    if page.results.len() <= 2 {
        return None;
    }
    let columns = [
        words("result"),
        words("started"),
        words("run"),
        numbers("n"),
        numbers("median"),
        numbers("1 in 1000"),
        numbers("worst"),
        numbers("missed"),
        words("good enough"),
        words("verdict"),
    ];
    let runs = |shown| {
        let shown: &Shown = shown;
        shown.report.body.runs().iter().map(move |run| overview_cells(shown, run))
    };
    let rows: Vec<Vec<String>> = page.results.iter().flat_map(runs).collect();
    let mut blocks: Vec<Block> = Vec::new();
    blocks.extend(boxes::of_results(page).map(|chart| Figure::still("results".to_owned(), chart)));
    if rows.is_empty() {
        blocks.push(without_any_run(page).into());
    } else {
        blocks.push(Table::new("Every run of every result", columns, rows).into());
        blocks.extend(page.left_out.iter().map(Block::muted));
    }
    let link = |shown: &Shown| Some(Item::new(shown.link.as_ref()?, &shown.label));
    let links: Vec<Item> = page.results.iter().filter_map(link).collect();
    if !links.is_empty() {
        blocks.push(Block::words("Pages of their own:"));
        blocks.push(Items::new(ItemsKind::Links, links).into());
    }
    some("overview", "Overview", blocks)
}

fn overview_cells(shown: &Shown, run: &Run) -> Vec<String> {
    let report = &shown.report;
    let lateness = &run.outcome.lateness_ns;
    let verdict = &report.envelope.verdict;
    let criteria = verdict.limits.len() + verdict.claims.len();
    let is_incomplete = report.envelope.incomplete;
    let word = match (verdict.ok, criteria == 0) {
        (false, _) if verdict.is_undecided() => "undecided",
        (false, _) if verdict.fails_by_criteria() => "a limit fails",
        _ if is_incomplete => "incomplete",
        (false, _) if verdict.is_uncompared() => "not compared",
        (false, _) if verdict.fails_by_comparison() => "worse",
        (false, _) => "failed",
        (true, true) => "no limits",
        (true, false) => "limits hold",
    };
    vec![
        shown.label.clone(),
        started(report),
        run.name.clone(),
        format::count_or_dash(run.known_cycles().map(|_| run.outcome.releases())),
        format::ns(lateness.p50),
        format::ns(lateness.p99_9),
        format::largest(lateness.max, run.outcome.unknown()),
        format::count_or_dash(run.outcome.missed),
        answer(report, run),
        word.to_owned(),
    ]
}

/// Many results that have no runs: what each is.
fn without_any_run(page: &Page) -> Table {
    let row = |shown: &Shown| {
        let report = &shown.report;
        let experiment = report.envelope.experiment.clone();
        vec![shown.label.clone(), started(report), experiment, verdict::machine(report)]
    };
    let rows = page.results.iter().map(row).collect();
    Table::new("Every result", ["result", "started", "experiment", "machine"].map(words), rows)
}

fn started(report: &Report) -> String {
    report.envelope.started().unwrap_or_else(|| "-".to_owned())
}

/// The answer of a result to its question, for loops of the run's period: "no".
fn answer(report: &Report, run: &Run) -> String {
    let period_ns = run.setup.period_ns.map(|ns| ns as f64);
    let mut verdicts = report.body.verdicts().iter();
    let own = verdicts.find(|verdict| period_ns.is_some() && verdict.period_ns == period_ns);
    own.map_or("-", Verdict::word).to_owned()
}

/// The comparisons of the results, in their own sentences.
fn compared(source: &Source<'_>) -> Option<Section> {
    let page = source.page.compared.iter().map(|compared| (String::new(), compared));
    let own = source
        .few()
        .iter()
        .filter_map(|shown| Some((source.prefix(shown), shown.report.body.compare()?)));
    let blocks = page.chain(own).flat_map(|(prefix, compared)| comparison(&prefix, compared));
    some("compared", "Comparison", blocks.collect())
}

/// A comparison; `prefix` names the result that has it, where it is one of several.
fn comparison(prefix: &str, comparison: &Comparison) -> Vec<Block> {
    let mut blocks: Vec<Block> =
        comparison.pairs.iter().flat_map(|compared| pair(prefix, compared)).collect();
    if let Some(grid) = &comparison.grid {
        blocks.extend(kinds::grid::blocks(comparison, grid));
        return blocks;
    }
    let sure = kinds::how_sure(comparison);
    blocks.push(Block::muted(format!("{sure} punctual compare gives every interval.")));
    blocks
}

fn pair(prefix: &str, pair: &Pair) -> Vec<Block> {
    let mut blocks = vec![Block::words(format!("{prefix}{} compared with {}", pair.b, pair.a))];
    let runs = pair.runs.iter();
    blocks.extend(runs.map(|run| Block::words(format!("{}: {}", run.name, run.statement))));
    for (only, side) in [(&pair.only_in_a, &pair.a), (&pair.only_in_b, &pair.b)] {
        if !only.is_empty() {
            let names = only.join(", ");
            blocks.push(Block::muted(format!("not compared, only in {side}: {names}")));
        }
    }
    for difference in &pair.differences {
        let (name, a, b) = (&difference.what, &difference.a, &difference.b);
        blocks.push(Block::muted(format!("differs: {name}: {a} → {b}")));
    }
    blocks.extend(kinds::not_idle(pair).into_iter().map(Block::words));
    blocks.extend(pair.notes.iter().map(|note| Block::muted(format!("note: {note}"))));
    blocks
}

/// The facts that imported data lack, and the values beyond their histogram.
fn imported(source: &Source<'_>) -> Option<Section> {
    let mut lines: Vec<String> = Vec::new();
    for run in source.few().iter().flat_map(|shown| shown.report.body.runs()) {
        let Some(imported) = &run.outcome.imported else { continue };
        let lacks = imported.cannot_know.iter().map(|line| format!("not in these data: {line}"));
        for line in lacks.chain(loops::beyond(run, imported)) {
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    some("imported", "Imported data", lines.into_iter().map(Block::words).collect())
}

/// Campaigns: their boots and batches, with the time of day.
fn campaigns(source: &Source<'_>) -> Option<Section> {
    let campaigns = source.drawn().iter().enumerate().filter_map(|(at, shown)| {
        let Body::Soak(soak) = &shown.report.body else { return None };
        Some(campaign(&soak.campaign, &format!("day-{}", at + 1)))
    });
    let is_shown = |block: &Block| !source.has_plots_alone() || block.is_plot();
    some("campaign", "Campaign", campaigns.flatten().filter(is_shown).collect())
}

fn campaign(campaign: &Campaign, id: &str) -> Vec<Block> {
    let at = campaign::at;
    let boots = campaign.boots.iter().map(|boot| {
        let (from, to) = (at(boot.from_unix_s), at(boot.to_unix_s));
        vec![
            boot.number.to_string(),
            from,
            to,
            boot.kernel.clone(),
            campaign::setup_of(campaign, boot),
        ]
    });
    let columns = ["boot", "from (UTC)", "to (UTC)", "Linux", "setup"].map(words);
    let caption = format!("Boots of campaign {}", campaign.name);
    let mut blocks = vec![Table::new(caption, columns, boots.collect()).into()];
    let charts = day::charts(campaign).into_iter().enumerate();
    blocks.extend(charts.map(|(at, chart)| Figure::still(format!("{id}-{}", at + 1), chart)));
    // Where the list was full, neighbours stand in one row.
    let is_merged = campaign.stretches.iter().any(|row| row.batches > 1);
    let mut columns = vec![
        words("from (UTC)"),
        words("to (UTC)"),
        words("run"),
        numbers("boot"),
        numbers("cycles"),
        numbers("missed"),
        numbers("median"),
        numbers("p99"),
        numbers("worst"),
    ];
    if is_merged {
        columns.insert(4, numbers("batches"));
    }
    let batches = campaign.stretches.iter().map(|row| {
        let time = |ns: Option<i64>| format::ns(ns.map(|ns| ns as f64));
        let mut cells = vec![
            at(row.from_unix_s),
            at(row.to_unix_s),
            campaign::run_name(campaign, (row.setup, row.run)),
            row.boot.to_string(),
            format::count(row.cycles),
            format::count(row.missed),
            time(row.p50_ns),
            time(row.p99_ns),
            time(row.max_ns),
        ];
        if is_merged {
            cells.insert(4, row.batches.to_string());
        }
        cells
    });
    let batches: Vec<Vec<String>> = batches.collect();
    let words = campaign::batches_words(campaign);
    let rows = batches.len();
    let (summary, caption) = match is_merged {
        true => (
            format!("{words}, in {rows} rows"),
            "Batches of each run, oldest first; of several in a row the largest quantiles",
        ),
        false => (words, "Batches of each run, oldest first"),
    };
    let table = Table::new(caption, columns, batches);
    blocks.push(Block::Folded(summary, vec![table.into()]));
    blocks
}

/// Kinds of results without runs: their tables and sentences.
fn without_runs(source: &Source<'_>) -> Option<Section> {
    sides::joined(source, kinds::section)
}

/// The section behind the figures of runs.
fn behind(source: &Source<'_>) -> Option<Section> {
    sides::joined(source, kinds::on_page_alone)
}

/// Figures of papers, and traces of answers, drawn from what was measured.
fn drawn(source: &Source<'_>) -> Option<Section> {
    some("figures-drawn", "Drawn from the data", paper::drawn(source.drawn()))
}

/// The ways to wait that were compared: the front as a picture, their table, and the learned wait
/// against others.
fn waits(source: &Source<'_>) -> Option<Section> {
    let mut blocks = Vec::new();
    for (at, shown) in source.drawn().iter().enumerate() {
        let Body::Wait(body) = &shown.report.body else { continue };
        let chart = front(&shown.report);
        blocks.extend(chart.map(|chart| Figure::still(format!("front-{}", at + 1), chart)));
        if source.has_plots_alone() {
            continue;
        }
        blocks.push(wait::ways(&body.strategies).into());
        let held = body.front.iter().map(FrontComparison::sentence);
        let held: Vec<Item> = held.map(|text| Item::new("", text)).collect();
        if !held.is_empty() {
            blocks.push(Items::new(ItemsKind::Plain, held).into());
        }
    }
    some("waits", "Ways to wait", blocks)
}

/// The facts of the machine, each with its origin; a table a machine.
fn facts(source: &Source<'_>) -> Option<Section> {
    let mut blocks = Vec::new();
    for shown in source.few() {
        let Some(rows) = fact_rows(&shown.report) else { continue };
        let label = source.suffix(shown);
        let summary = format!("{} facts{label}, each with its origin", rows.len());
        let columns = ["fact", "value", "read from"].map(words);
        let table = Table::new(format!("Facts of the machine{label}"), columns, rows);
        blocks.push(Block::Folded(summary, vec![table.into()]));
    }
    some("facts", "Machine", blocks)
}

/// Every fact, as the result has it; `None` where the machine is not known.
fn fact_rows(report: &Report) -> Option<Vec<Vec<String>>> {
    let facts = serde_json::to_value(report.envelope.machine.as_ref()?).ok()?;
    let row = |(key, fact): (&String, &Value)| {
        let value = match (&fact["value"], fact["why"].as_str()) {
            (Value::Null, Some(why)) => format!("unreadable: {why}"),
            (Value::Null, None) => "not there".to_owned(),
            (Value::String(text), _) => text.clone(),
            (value, _) => value.to_string(),
        };
        let origin = fact["origin"].as_str().unwrap_or("-").to_owned();
        vec![key.replace('_', " "), value, origin]
    };
    Some(facts.as_object()?.iter().map(row).collect())
}
