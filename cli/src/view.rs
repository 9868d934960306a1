//! Views: a report as text, as a page and as Markdown for people, as JSON for machines, as JUnit
//! XML for build servers. No arithmetic here.
//!
//! The document for each kind of result is made in [`kinds`]; `punctual_document` renders it.

mod junit;
pub(crate) mod kinds;
mod page;
pub(crate) mod plots;

use anyhow::Result;
use punctual_analysis::plain::{plain_json, plain_spaces};
use punctual_document::terminal::Styled;
use punctual_document::{html, markdown, text};
use punctual_plot::chart::Chart;
use punctual_report::Report;
use schemars::schema_for;
use serde::Serialize;

use crate::args::Detail;
use crate::pages::Page;

/// A report for a terminal; `results` is the directory that it is written to.
pub(crate) fn text(report: &Report, results: Option<&str>, detail: Detail) -> Styled {
    if detail == Detail::Line
        && let Some(line) = kinds::line(report)
    {
        return line.into();
    }
    text::rendered(&kinds::document(report, results, detail))
}

/// A report with everything that it shows, of many causes the first ones, under a heading.
pub(crate) fn markdown(report: &Report) -> String {
    let heading = format!("punctual {}", report.envelope.experiment);
    markdown::headed(&heading, &kinds::complete(report))
}

/// The judgements of a report, as test cases in JUnit XML.
pub(crate) fn junit(report: &Report) -> String {
    junit::rendered(report, &jiff::Timestamp::now().to_string())
}

/// The page of one, two or many results.
pub(crate) fn html(page: &Page) -> String {
    html::rendered(&page::of(page))
}

/// The plots of a page, each with its name for a file.
pub(crate) fn figures(page: &Page) -> Vec<(String, Chart)> {
    page::figures(page).into_iter().map(|figure| (figure.id, figure.chart)).collect()
}

/// Any report as JSON text, with a line end and plain spaces; what steers a reader of the text is
/// escaped in it.
pub(crate) fn json(report: &impl Serialize) -> Result<String> {
    Ok(plain_spaces(&json_verbatim(report)?))
}

/// Facts as JSON text with every space as it is, for what others wrote: a hard space in the
/// kernel's command line is a mistake that should be seen.
pub(crate) fn json_verbatim(facts: &impl Serialize) -> Result<String> {
    Ok(plain_json(&serde_json::to_string_pretty(facts)?) + "\n")
}

/// The schema of results, as JSON text.
pub(crate) fn schema() -> Result<String> {
    json(&schema_for!(Report))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
    use punctual_analysis::summary::SummaryStats;
    use punctual_document::{Block, Table};
    use punctual_host::facts::MachineFacts;
    use punctual_host::root::Root;
    use punctual_lab::timer::{Background, StampStore, TimerOutcome, TimerPath, TimerRow};
    use punctual_plot::axis::{Axis, Scale};
    use punctual_plot::chart::Mark;
    use punctual_plot::scene::Item;
    use punctual_report::measured::{Measured, TimerBody};
    use punctual_report::{Body, Choice, Clock, Envelope, Session, Warning};
    use serde_json::Value;

    use super::*;
    use crate::format;
    use crate::program::PROGRAM;

    /// A timer outcome of a processor with these kinds of work; SERIALIZE delays most.
    fn timers(
        backgrounds: &[Background],
        reserved: bool,
        periods: &[u64],
        unit_ns: f64,
    ) -> TimerOutcome {
        let row = |period_ns: u64, path: TimerPath, store: StampStore, background: Background| {
            let ns = unit_ns * if background == Background::Serialize { 3.0 } else { 2.0 };
            let [min, p50, p99, max] = [0.1, 0.5, 1.0, 9.0].map(|times| Some(ns * times));
            TimerRow {
                path,
                period_ns,
                background,
                store,
                n: 1_234_567,
                missed: 12_345,
                interrupts: Some(23_456),
                counters: Vec::new(),
                lateness_ns: SummaryStats { min, p50, p99, max, ..SummaryStats::default() },
                scatter: None,
                cpu_share: Some(0.5),
                lateness: Default::default(),
                series: Vec::new(),
                series_missed: 0,
            }
        };
        let mut rows = Vec::new();
        for &period_ns in periods {
            let paths = TimerPath::ALL.map(|path| (path, StampStore::Array));
            let paths = paths.into_iter().chain([(TimerPath::Sleep, StampStore::Hot)]);
            for (path, store) in paths.filter(|(path, _)| reserved || *path != TimerPath::Deadline)
            {
                let behind = backgrounds.iter();
                rows.extend(behind.map(|&behind| row(period_ns, path, store, behind)));
            }
        }
        TimerOutcome {
            cpu: 1,
            policy: "SCHED_FIFO".to_owned(),
            priority: Some(90),
            rows,
            deadline_refused: (!reserved).then_some(1),
            no_counters: None,
        }
    }

    /// A result of it on a captured machine.
    fn report(machine: &Path, timer: TimerOutcome) -> Report {
        let root = Root::captured(machine).expect("a machine");
        let clock = Clock {
            source: "tsc".to_owned(),
            untrusted: None,
            rate_hz: None,
            rate_bound_ppb: None,
            slew_ppb: None,
            slew_bound_ppb: None,
            stamp_ns: 39.0,
            poll_ns: 20.0,
            wake_ns: 40.0,
            timed_pause: None,
            timed_pause_off: None,
            timed_pause_lead_ns: None,
        };
        let (cpus, why) = ("1".to_owned(), "last allowed, none isolated".to_owned());
        let envelope = Envelope {
            machine: Some(MachineFacts::collect(&root)),
            choice: Some(Choice { cpus, why }),
            clock: Some(clock),
            session: Some(Session {
                memory_locked: true,
                idle_states_held: true,
                refused: Vec::new(),
                restless: Vec::new(),
                load_cpus: None,
            }),
            warnings: [Warning::Guest].into_iter().collect(),
            ..Envelope::of(PROGRAM, "measure timer")
        };
        Report { envelope, body: Body::Measured(TimerBody { timer }.into()) }
    }

    #[test]
    fn a_page_of_timers_fits_for_every_processor() {
        let machines = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/machines");
        let machines = std::fs::read_dir(machines).expect("machines").flatten();
        let machines: Vec<_> =
            machines.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
        // With SERIALIZE, and AArch64, which has its own of all kinds; without.
        let kinds: [&[Background]; 2] =
            [&Background::ALL, &[Background::None, Background::Nop, Background::Cpuid]];
        for (machine, kind) in machines.iter().flat_map(|machine| kinds.map(|kind| (machine, kind)))
        {
            for reserved in [true, false] {
                for (periods, unit_ns) in [(&[100_000][..], 100.0), (&[100_000], 12_345_678.0)] {
                    let timer = timers(kind, reserved, periods, unit_ns);
                    let page = text(&report(machine, timer), None, Detail::Short).to_string();
                    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
                    assert!(page.lines().count() <= 40, "{}: {page}", page.lines().count());
                    // Every path alone, and with what delays it most, is there.
                    let count = |path: &str, behind: &str| {
                        let begins = |line: &&str| {
                            line.trim_start().strip_prefix(path).is_some_and(|rest| {
                                rest.trim_start().starts_with(&format!("{behind} "))
                            })
                        };
                        page.lines().filter(begins).count()
                    };
                    let most = if kind.len() == 4 { "serialize" } else { "nop" };
                    for path in ["sleep", "timerfd", "posix", "mdelay", "sleep hot"] {
                        assert_eq!(
                            (count(path, "none"), count(path, most)),
                            (1, 1),
                            "{path}: {page}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let machine = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/machines/amd-smt-32cpu");
        let timer = timers(&Background::ALL, true, &[100_000, 200_000, 500_000], 100.0);
        let text = text(&report(Path::new(machine), timer.clone()), None, Detail::Short);
        let text = text.to_string();
        let rows = text.lines().filter(|line| line.contains(" 12\u{a0}345 ")).count();
        assert!((6..timer.rows.len()).contains(&rows), "{text}");
        let more = format!("{} more rows, and the other columns,", timer.rows.len() - rows);
        assert!(text.contains(&more), "{text}");
        assert!(text.lines().count() <= 40, "{text}");
    }

    /// The cells of all tables of a text, heads first, as an independent reader of GFM has them;
    /// it finds no raw HTML.
    fn tables(text: &str) -> Vec<Vec<Vec<String>>> {
        let (mut tables, mut cell) = (Vec::new(), None);
        for event in Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH) {
            match event {
                Event::Start(Tag::Table(_)) => tables.push(Vec::new()),
                Event::Start(Tag::TableHead | Tag::TableRow) => {
                    tables.last_mut().expect("in a table").push(Vec::new());
                }
                Event::Start(Tag::TableCell) => cell = Some(String::new()),
                Event::End(TagEnd::TableCell) => {
                    let row =
                        tables.last_mut().and_then(|rows: &mut Vec<Vec<String>>| rows.last_mut());
                    row.expect("in a row").extend(cell.take());
                }
                Event::Text(text) => {
                    if let Some(cell) = &mut cell {
                        cell.push_str(&text);
                    }
                }
                Event::Html(html) | Event::InlineHtml(html) => panic!("raw HTML: {html}"),
                markup if cell.is_some() => panic!("markup in a cell: {markup:?}"),
                _ => {}
            }
        }
        tables
    }

    /// All blocks, those too that a reader of a page opens.
    fn opened(blocks: &[Block]) -> Vec<&Block> {
        let mut found = Vec::new();
        for block in blocks {
            match block {
                Block::Folded(_, inside) => found.extend(opened(inside)),
                block => found.push(block),
            }
        }
        found
    }

    /// The tables of blocks, as a reader should have them.
    fn shown(blocks: &[Block]) -> Vec<Vec<Vec<String>>> {
        let read = |text: &String| plain_spaces(&format::plain(text)).trim().to_owned();
        let tables = opened(blocks).into_iter().filter_map(|block| match block {
            Block::Table(table) => Some(table),
            _ => None,
        });
        let rows = |table: &Table| {
            let heads = table.columns.iter().map(|column| read(&column.head)).collect();
            let rows = table.rows.iter().map(|row| row.iter().map(read).collect());
            std::iter::once(heads).chain(rows).collect()
        };
        tables.map(rows).collect()
    }

    /// Gives every name in a result markup of all kinds.
    fn made_hostile(result: &mut Value) {
        match result {
            Value::Object(fields) => fields.iter_mut().for_each(|(key, value)| match value {
                Value::String(text) if ["name", "run", "knob", "label", "id"].contains(&&**key) => {
                    *text +=
                        " |\\| \\\\| <b> `c| &lt; *d* _e_ ~~f~~ [g](h) ![i](j)\n# k\u{1b}[2J \\";
                }
                value => made_hostile(value),
            }),
            Value::Array(values) => values.iter_mut().for_each(made_hostile),
            _ => {}
        }
    }

    #[test]
    fn each_kind_of_result_keeps_its_tables_and_holds_no_raw_html() {
        let kinds = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/results/kinds");
        let files = std::fs::read_dir(kinds).expect("results").flatten();
        let mut experiments = Vec::new();
        for file in files.map(|file| file.path()) {
            let text = std::fs::read_to_string(&file).expect("a result");
            let mut hostile: Value = serde_json::from_str(&text).expect("JSON");
            made_hostile(&mut hostile);
            for text in [text, hostile.to_string()] {
                let report = Report::parse(&text).unwrap_or_else(|why| panic!("{file:?}: {why:?}"));
                let parts =
                    [serde_json::to_value(&report.envelope), serde_json::to_value(&report.body)];
                let [envelope, body] = parts.map(|part| part.expect("plain data"));
                let keys = body.as_object().expect("an object").keys();
                let twice: Vec<&String> = keys.filter(|key| envelope.get(key).is_some()).collect();
                assert!(twice.is_empty(), "{file:?}: {twice:?} stand twice in a result");
                let written = serde_json::to_string(&report).expect("plain data");
                Report::parse(&written).unwrap_or_else(|why| panic!("{file:?} again: {why:?}"));
                let (blocks, page) = (kinds::complete(&report), markdown(&report));
                let has_section = kinds::section(&report.body).is_some();
                assert!(has_section || !matches!(report.body, Body::Measured(_)), "{file:?}");
                assert_eq!(tables(&page), shown(&blocks), "{file:?}: {page}");
                assert!(page.starts_with("## punctual ") && page.ends_with('\n'), "{page}");
                assert!(!page.contains(['\u{1b}', '\u{a0}']), "{page}");
                experiments.push(report.envelope.experiment);
            }
        }
        experiments.sort();
        experiments.dedup();
        let others = "analyse,check,compare,impact servo,impact stepper,measure periodic,\
                      measure wait,reproduce,run,soak,tune check";
        let mut known: Vec<&str> =
            others.split(',').chain(Measured::NAMES.iter().copied()).collect();
        known.sort_unstable();
        assert_eq!(experiments, known, "each kind has a result in {kinds}");
    }

    /// The plots of a stored result of this kind.
    fn plots(kind: &str) -> Vec<Chart> {
        let kinds = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/results/kinds");
        let file = format!("{kinds}/{kind}.json");
        let text = std::fs::read_to_string(&file).unwrap_or_else(|why| panic!("{file}: {why}"));
        let report = Report::parse(&text).unwrap_or_else(|why| panic!("{file}: {why:?}"));
        let section = kinds::section(&report.body).expect("a section");
        let figures = section.blocks.iter().flat_map(Block::figures);
        figures.map(|figure| figure.chart.clone()).collect()
    }

    /// The names of the series of a chart.
    fn series(chart: &Chart) -> Vec<&str> {
        chart.series.iter().map(|series| series.name.as_str()).collect()
    }

    /// The words at the ticks of an axis.
    fn ticks(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().filter_map(|tick| tick.label.as_deref()).collect()
    }

    #[test]
    fn every_measurement_has_its_chart_with_words_on_both_axes_and_what_it_shows() {
        // Answers to stimuli are drawn with the figures of papers, whose form their traces have.
        let names = Measured::NAMES.iter().filter_map(|name| name.strip_prefix("measure "));
        for kind in names.filter(|name| *name != "response") {
            let plots = plots(kind);
            assert!(!plots.is_empty(), "{kind}");
            for chart in &plots {
                assert!(!chart.title.is_empty() && !chart.series.is_empty(), "{kind}: {chart:?}");
                assert!(chart.description.contains(|c: char| c.is_ascii_digit()), "{chart:?}");
                for axis in [&chart.x, &chart.y] {
                    let has_words = !axis.label.is_empty() || axis.scale == Scale::Names;
                    assert!(has_words && !ticks(axis).is_empty(), "{kind}: {axis:?}");
                }
                for series in &chart.series {
                    assert!(!series.name.is_empty() && !series.marks.is_empty(), "{chart:?}");
                }
                let scene = chart.scene();
                let shown = |wanted: &str| {
                    let begin: String = wanted.chars().take(8).collect();
                    scene.items.iter().any(|item| match item {
                        Item::Text { text, .. } => text.starts_with(&begin),
                        _ => false,
                    })
                };
                let names = [&chart.x, &chart.y].into_iter();
                let names = names.filter(|axis| axis.scale == Scale::Names).flat_map(ticks);
                let legend = series(chart).into_iter().filter(|_| chart.series.len() > 1);
                for wanted in names.chain(legend) {
                    assert!(shown(wanted), "{kind}: {wanted} is not in the picture");
                }
            }
        }
    }

    #[test]
    fn paths_conditions_and_exits_stand_by_name_with_a_box_each() {
        let boxes = |chart: &Chart| -> usize {
            let count = |mark: &Mark| match mark {
                Mark::Boxes(boxes) => boxes.len(),
                _ => 0,
            };
            chart.series.iter().flat_map(|series| &series.marks).map(count).sum()
        };
        let timers = &plots("timer")[0];
        let names = ticks(&timers.y);
        assert_eq!(names, ["sleep"]);
        assert!(series(timers).iter().all(|name| name.ends_with(" behind")));
        assert!(boxes(timers) >= names.len() && timers.x.scale == Scale::Log);
        let work = &plots("work")[0];
        assert_eq!(boxes(work), 2 * ticks(&work.y).len());
        assert!(series(work).contains(&"the period"));
        let exits = plots("accuracy");
        assert_eq!(boxes(&exits[0]), ticks(&exits[0].y).len());
        // The error over the offset in a band, all exits on one scale.
        let bands: Vec<&Chart> = exits[1..].iter().collect();
        assert!(!bands.is_empty());
        for chart in bands {
            assert!(matches!(chart.series[0].marks[..], [Mark::Band(_)]), "{chart:?}");
            assert_eq!(chart.y, exits[1].y);
        }
    }

    #[test]
    fn frequencies_have_their_losses_and_limits_and_designs_their_costs_over_tasks() {
        let saturation = plots("saturation");
        for chart in saturation.iter().filter(|chart| chart.title.starts_with("Loss")) {
            let wanted = ["stage 1", "stage 2", "MF of stage 1", "MF of stage 2"];
            assert_eq!(series(chart), wanted);
            assert_eq!(ticks(&chart.y)[0], "none");
            assert_eq!(chart.x, saturation[0].x, "one scale");
        }
        let costs = plots("executive");
        assert!(
            ["release", "wait", "cycle"]
                .iter()
                .all(|part| { costs.iter().any(|chart| chart.title.contains(part)) })
        );
        for chart in &costs {
            assert!(series(chart).contains(&"punctual") && series(chart).contains(&"ant"));
            assert_eq!(chart.y, costs[0].y, "one scale");
        }
        let noise = &plots("noise")[0];
        assert!(series(noise)[0].starts_with("CPU "), "{noise:?}");
    }
}
