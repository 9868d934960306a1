//! A document as a page: one file, offline, readable without scripts.
//!
//! Every word that came from a result is escaped; scripts and styles are this program's own, and
//! the page's policy lets no other run, nor anything load. Knows no kind of result.

mod data;
mod policy;

use punctual_analysis::plain::steers;
use punctual_plot::chart::Chart;
use punctual_plot::svg;

use super::document::{
    Block, Cells, Figure, Item, Items, ItemsKind, Row, Section, Table, Tone, Words,
};
use super::page::{self, Source};
use super::plots::Axes;
use crate::pages::{Page, Shown};

const FRAME: &str = include_str!("html/assets/page.html");
const STYLE: &str = include_str!("html/assets/style.css");
const SCRIPT: &str = include_str!("html/assets/script.js");
const UPLOT: &str = include_str!("html/assets/vendor/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("html/assets/vendor/uPlot.min.css");

/// The whole page.
pub(crate) fn page(page: &Page) -> String {
    let source = Source { page, axes: Axes::of(page) };
    let sections = page::sections(&source);
    let contents: String = sections
        .iter()
        .map(|section| format!("<li><a href=\"#{}\">{}</a></li>", section.id, section.heading))
        .collect();
    let body: String = sections.iter().map(section).collect();
    let style = [UPLOT_STYLE, STYLE].concat();
    fill(
        FRAME,
        &[
            ("policy", &policy::of(&[UPLOT, SCRIPT], &[&style])),
            ("title", &escape(&page::title(page))),
            ("style", &style),
            ("head", &head(page)),
            ("contents", &contents),
            ("sections", &body),
            ("data", &data::json(&source)),
            ("uplot", UPLOT),
            ("script", SCRIPT),
            ("version", env!("CARGO_PKG_VERSION")),
        ],
    )
}

/// The headline, and where each result comes from.
fn head(page: &Page) -> String {
    let headline = match page.results.as_slice() {
        [shown] => shown.report.envelope.experiment.clone(),
        [a, b] => format!("{} and {}", a.label, b.label),
        many => format!("{} results", many.len()),
    };
    let mut html = format!("<h1>Punctuality of {}</h1>", escape(&headline));
    if page.results.len() <= 2 {
        for shown in &page.results {
            html += &origin(shown, page.results.len() > 1);
        }
    }
    html
}

fn origin(shown: &Shown, labelled: bool) -> String {
    let report = &shown.report;
    let label = match labelled {
        true => format!("<strong>{}</strong> · ", escape(&shown.label)),
        false => String::new(),
    };
    let started = report.envelope.started_at.as_deref().unwrap_or("at an unknown time");
    let cpu = report.envelope.choice.as_ref().map_or_else(String::new, |choice| {
        format!(" · CPU {} ({})", escape(&choice.cpus), escape(&choice.why))
    });
    let cut = page::incomplete(report).map(|text| sentences(&Words::new(text).toned(Tone::Bad)));
    format!(
        "<p class=\"origin\">{label}{} · {} · {}{cpu}<br><span class=\"muted\">{}</span></p>{}",
        escape(&report.envelope.experiment),
        escape(started),
        escape(&page::machine(report)),
        escape(&shown.place),
        cut.unwrap_or_default()
    )
}

fn section(section: &Section) -> String {
    let Section { id, heading, blocks } = section;
    format!(
        "<section id=\"{id}\" aria-labelledby=\"{id}-h\"><h2 id=\"{id}-h\">{heading}</h2>\
         {}</section>\n",
        all(blocks)
    )
}

/// Blocks in their order.
fn all(blocks: &[Block]) -> String {
    blocks.iter().map(block).collect()
}

fn block(block: &Block) -> String {
    match block {
        Block::Heading(heading) => format!("<h3>{}</h3>", escape(heading)),
        Block::Words(words) => sentences(words),
        Block::Items(list) => items(list),
        Block::Table(table) => self::table(table),
        Block::Drawing(lines) => format!("<pre>{}</pre>", svg::escape(lines, |_| false)),
        Block::Break => String::new(),
        Block::Figure(figure) => self::figure(figure),
        Block::Row(kind, groups) => side_by_side(*kind, groups),
        Block::Folded(summary, blocks) => folded(summary, blocks),
    }
}

/// Words as they may stand between tags and in quoted attributes.
fn escape(text: &str) -> String {
    svg::escape(text, steers)
}

/// A drawing; `id` is unique in the page.
fn drawing(chart: &Chart, id: &str) -> String {
    svg::inline(&chart.scene(), id, steers)
}

/// A frame with `{{name}}` in it, each replaced once; what is filled in is not looked at again.
fn fill(frame: &str, slots: &[(&str, &str)]) -> String {
    let mut parts = frame.split("{{");
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once("}}").unwrap_or((part, ""));
        let slot = slots.iter().find(|(slot, _)| *slot == name);
        filled.push_str(slot.map_or("", |(_, text)| text));
        filled.push_str(rest);
    }
    filled
}

fn sentences(words: &Words) -> String {
    let class = match words.tone {
        Tone::Plain => "",
        Tone::Muted => " class=\"muted\"",
        Tone::Good => " class=\"banner good\"",
        Tone::Bad => " class=\"banner bad\"",
    };
    format!("<p{class}>{}</p>", escape(&words.text))
}

fn items(list: &Items) -> String {
    let items: String = list.items.iter().map(|item| self::item(item, list.kind)).collect();
    match list.kind {
        ItemsKind::Plain => format!("<ul>{items}</ul>"),
        ItemsKind::Notes => format!("<ul class=\"notes\">{items}</ul>"),
        ItemsKind::Answers => format!("<dl class=\"verdicts\">{items}</dl>"),
        ItemsKind::Links => format!("<ul class=\"links\">{items}</ul>"),
    }
}

fn item(item: &Item, kind: ItemsKind) -> String {
    let (label, text) = (escape(&item.label), escape(&item.text));
    let command = item.command.as_ref();
    let command = command.map(|command| format!(": <code>{}</code>", escape(command)));
    let command = command.unwrap_or_default();
    match kind {
        ItemsKind::Plain if label.is_empty() => format!("<li>{text}{command}</li>"),
        ItemsKind::Plain => format!("<li>{label} {text}{command}</li>"),
        ItemsKind::Notes => format!("<li><strong>{label}</strong> {text}{command}</li>"),
        ItemsKind::Links => format!("<li><a href=\"{label}\">{text}</a></li>"),
        ItemsKind::Answers => {
            let class = match item.tone {
                Tone::Good => "yes",
                Tone::Bad => "no",
                Tone::Plain | Tone::Muted => "unknown",
            };
            format!("<dt><span class=\"badge {class}\">{label}</span></dt><dd>{text}{command}</dd>")
        }
    }
}

/// A table; one that is too wide for the reader is scrolled.
fn table(table: &Table) -> String {
    let class = |column: usize| match table.columns[column].cells {
        Cells::Numbers => " class=\"num\"",
        Cells::Words => "",
    };
    let mut html = format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\"><table>\
         <caption>{caption}</caption><thead><tr>",
        caption = escape(&table.caption)
    );
    for (at, column) in table.columns.iter().enumerate() {
        html += &format!("<th scope=\"col\"{}>{}</th>", class(at), escape(&column.head));
    }
    html += "</tr></thead><tbody>";
    for row in &table.rows {
        html += "<tr>";
        for (at, cell) in row.iter().enumerate().take(table.columns.len()) {
            let cell = escape(cell);
            html += &match at {
                0 => format!("<th scope=\"row\">{cell}</th>"),
                _ => format!("<td{}>{cell}</td>", class(at)),
            };
        }
        html += "</tr>";
    }
    html + "</tbody></table></div>"
}

/// A plot: its picture, and what a reader opens behind it.
fn figure(figure: &Figure) -> String {
    let Figure { id, title, chart, data, behind } = figure;
    let begin = match data {
        Some(kind) => format!("<figure id=\"{id}\" class=\"plot\" data-kind=\"{kind}\">"),
        None => "<figure class=\"plot\">".to_owned(),
    };
    let behind = match behind.as_slice() {
        [] => String::new(),
        blocks => folded("Numbers behind this plot", blocks),
    };
    format!(
        "{begin}<h3>{}</h3>{}<figcaption>{}</figcaption>{behind}</figure>",
        escape(title),
        drawing(chart, id),
        escape(&chart.description),
    )
}

fn side_by_side(kind: Row, groups: &[Vec<Block>]) -> String {
    let group = |blocks: &Vec<Block>| match kind {
        Row::Results => format!("<div class=\"card\">{}</div>", all(blocks)),
        Row::Plots => all(blocks),
    };
    let class = if kind == Row::Results || groups.len() > 1 { "side" } else { "alone" };
    let groups: String = groups.iter().map(group).collect();
    format!("<div class=\"{class}\">{groups}</div>")
}

/// Blocks that are shown when a reader opens them.
fn folded(summary: &str, blocks: &[Block]) -> String {
    format!("<details><summary>{}</summary>{}</details>", escape(summary), all(blocks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::document::{numbers, words};

    #[test]
    fn what_is_filled_in_is_not_a_slot() {
        let slots = [("a", "{{b}}"), ("b", "secret")];
        assert_eq!(fill("x {{a}} y {{b}}{{c}}", &slots), "x {{b}} y secret");
    }

    #[test]
    fn what_steers_a_reader_is_escaped_in_the_page_as_in_text() {
        for c in (char::MIN..=char::MAX).filter(|&c| steers(c)) {
            let shown = escape(&c.to_string());
            let space = matches!(c, '\n' | '\t');
            assert!(if space { shown == " " } else { shown.starts_with("\\u{") }, "{shown:?}");
        }
    }

    #[test]
    fn cells_and_captions_are_words() {
        let hostile = "</table><script>".to_owned();
        let rows = vec![vec![hostile, "<1>".to_owned()]];
        let html = table(&Table::new("a \"b\"", [words("name"), numbers("n")], rows));
        assert!(!html.contains("<script") && html.contains("&lt;/table&gt;"), "{html}");
        assert!(html.contains("aria-label=\"a &quot;b&quot;\""));
        assert!(html.contains("<td class=\"num\">&lt;1&gt;</td>"));
    }
}
