//! A document as a page: one file, offline, readable without scripts.
//!
//! Every word is escaped; scripts and styles are this crate's own, and the page's policy lets no
//! other run, nor anything load.

use punctual_analysis::plain::{figures, plain_json, steers};
use punctual_plot::chart::Chart;
use punctual_plot::svg;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{Block, Cells, Figure, Item, Items, ItemsKind, Row, Section, Table, Tone, Words};

const FRAME: &str = include_str!("html/assets/page.html");
const STYLE: &str = include_str!("html/assets/style.css");
const SCRIPT: &str = include_str!("html/assets/script.js");
const UPLOT: &str = include_str!("html/assets/vendor/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("html/assets/vendor/uPlot.min.css");

/// A document with what stands around it on a page.
#[derive(Clone, Debug)]
pub struct Page {
    /// Its title, as a window or a search shows it.
    pub title: String,
    /// The heading of it all.
    pub heading: String,
    /// The results or recordings it was made from, one line each.
    pub origins: Vec<Origin>,
    /// In their order; contents link to each.
    pub sections: Vec<Section>,
    /// The numbers that the page's script draws figures from again: `edges`, `beyond` and, for each
    /// figure with [`Figure::data`], one of `charts`.
    pub data: Value,
    /// The version of the program that writes it.
    pub version: &'static str,
}

/// Where something on a page comes from.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The label by which the page refers to it; `None` where it is the only one.
    pub label: Option<String>,
    /// Its description: kind, and when and where it was made.
    pub text: String,
    /// Where it was, as a reader may look for it.
    pub place: String,
    /// Its fault, as a sentence.
    pub caveat: Option<String>,
}

/// The whole page.
pub fn rendered(page: &Page) -> String {
    let contents: String = page
        .sections
        .iter()
        .map(|section| format!("<li><a href=\"#{}\">{}</a></li>", section.id, section.heading))
        .collect();
    let sections: String = page.sections.iter().map(section).collect();
    let style = [UPLOT_STYLE, STYLE].concat();
    fill(
        FRAME,
        &[
            ("policy", &policy(&[UPLOT, SCRIPT], &[&style])),
            ("title", &escape(&page.title)),
            ("style", &style),
            ("head", &head(page)),
            ("contents", &contents),
            ("sections", &sections),
            ("data", &safe(&page.data.to_string())),
            ("uplot", UPLOT),
            ("script", SCRIPT),
            ("version", page.version),
        ],
    )
}

/// The heading, and where the page comes from.
fn head(page: &Page) -> String {
    let heading = format!("<h1>{}</h1>", prose(&page.heading));
    heading + &page.origins.iter().map(origin).collect::<String>()
}

fn origin(origin: &Origin) -> String {
    let label = match &origin.label {
        Some(label) => format!("<strong>{}</strong> · ", escape(label)),
        None => String::new(),
    };
    let caveat = origin.caveat.as_ref().map(|text| sentences(&Words::new(text).toned(Tone::Bad)));
    format!(
        "<p class=\"origin\">{label}{}<br><span class=\"muted\">{}</span></p>{}",
        prose(&origin.text),
        escape(&origin.place),
        caveat.unwrap_or_default()
    )
}

fn section(section: &Section) -> String {
    let Section { id, heading, blocks } = section;
    format!(
        "<section id=\"{id}\" aria-labelledby=\"{id}-h\"><h2 id=\"{id}-h\">{heading}</h2>\
         {}</section>\n",
        sequence(blocks)
    )
}

/// Blocks in their order.
fn sequence(blocks: &[Block]) -> String {
    blocks.iter().map(block).collect()
}

fn block(block: &Block) -> String {
    match block {
        Block::Heading(heading) => format!("<h3>{}</h3>", prose(heading)),
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

/// Words as they may stand between tags, where no line breaks between a number and its unit. Its
/// spaces stay plain, so that what searches or copies the text finds them.
fn prose(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    let mut done = 0;
    for figure in figures(text) {
        html += &escape(&text[done..figure.start]);
        html += &format!("<span class=\"figure\">{}</span>", escape(&text[figure.clone()]));
        done = figure.end;
    }
    html + &escape(&text[done..])
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
    format!("<p{class}>{}</p>", prose(&words.text))
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

/// A command that breaks between its words, on a narrow page too: a word with hyphens is kept whole
/// as long as a line holds it.
fn command(text: &str) -> String {
    let word = |word: &str| match word.contains('-') {
        true => format!("<span class=\"word\">{}</span>", escape(word)),
        false => escape(word),
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

fn item(item: &Item, kind: ItemsKind) -> String {
    let (label, text) = (escape(&item.label), prose(&item.text));
    let command = item.command.as_ref();
    let command = command.map(|command| format!(": <code>{}</code>", self::command(command)));
    let command = command.unwrap_or_default();
    let rows: String = item.rows.iter().map(|row| format!("<li>{}</li>", prose(row))).collect();
    let rows = if rows.is_empty() { rows } else { format!("<ul>{rows}</ul>") };
    match kind {
        // A dash is what a list begins its lines with in a terminal.
        ItemsKind::Plain if label.is_empty() || label == "-" => {
            format!("<li>{text}{command}{rows}</li>")
        }
        ItemsKind::Plain => format!("<li>{label} {text}{command}</li>"),
        ItemsKind::Notes => format!("<li><strong>{label}</strong> {text}{command}{rows}</li>"),
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
         <caption>{}</caption><thead><tr>",
        prose(&table.caption),
        caption = escape(&table.caption)
    );
    for (at, column) in table.columns.iter().enumerate() {
        html += &format!("<th scope=\"col\"{}>{}</th>", class(at), escape(&column.head));
    }
    html += "</tr></thead><tbody>";
    for row in &table.rows {
        html += "<tr>";
        for (at, cell) in row.iter().enumerate().take(table.columns.len()) {
            // Cells of numbers never break.
            let is_words = matches!(table.columns[at].cells, Cells::Words);
            let cell = if is_words { prose(cell) } else { escape(cell) };
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
    let Figure { id, title, chart, data, behind, .. } = figure;
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
        prose(title),
        drawing(chart, id),
        prose(&chart.description),
    )
}

fn side_by_side(kind: Row, groups: &[Vec<Block>]) -> String {
    let group = |blocks: &Vec<Block>| match kind {
        Row::Results => format!("<div class=\"card\">{}</div>", sequence(blocks)),
        Row::Plots => sequence(blocks),
    };
    let class = if kind == Row::Results || groups.len() > 1 { "side" } else { "alone" };
    let groups: String = groups.iter().map(group).collect();
    format!("<div class=\"{class}\">{groups}</div>")
}

/// Blocks that are shown when a reader opens them.
fn folded(summary: &str, blocks: &[Block]) -> String {
    format!("<details><summary>{}</summary>{}</details>", prose(summary), sequence(blocks))
}

/// JSON in which no markup can begin or end, and nothing steers a reader.
fn safe(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for c in plain_json(json).chars() {
        match c {
            '<' | '>' | '&' => {
                safe += &format!("\\u{:04x}", u32::from(c));
            }
            c => safe.push(c),
        }
    }
    safe
}

/// The content security policy of a page with these scripts and styles, to be put in an attribute:
/// nothing loads, and only what has these digests runs. CSP Level 3 (w3.org/TR/CSP3), hash sources:
/// the SHA-256 of what stands between the tags.
fn policy(scripts: &[&str], styles: &[&str]) -> String {
    format!(
        "default-src 'none'; script-src {}; style-src {}; base-uri 'none'; form-action 'none'",
        sources(scripts),
        sources(styles)
    )
}

fn sources(texts: &[&str]) -> String {
    let source =
        |text: &&str| format!("'sha256-{}'", base64(Sha256::digest(text.as_bytes()).as_slice()));
    texts.iter().map(source).collect::<Vec<_>>().join(" ")
}

/// RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let at = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let word = at(0) << 16 | at(1) << 8 | at(2);
        for place in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= chunk.len() { letter as char } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{numbers, words};

    #[test]
    fn a_list_has_one_mark_and_rows_stand_below_their_sentence() {
        let dashed = Items::new(ItemsKind::Plain, vec![Item::new("-", "isolate it")]);
        assert_eq!(items(&dashed), "<ul><li>isolate it</li></ul>");
        let rows = vec!["63 %: <sh>".to_owned(), "3 %: the rest".to_owned()];
        let cause = Item { rows, command: Some("run".to_owned()), ..Item::new("cause", "late") };
        assert_eq!(
            item(&cause, ItemsKind::Notes),
            "<li><strong>cause</strong> late: <code>run</code>\
             <ul><li><span class=\"figure\">63 %:</span> &lt;sh&gt;</li>\
             <li><span class=\"figure\">3 %:</span> the rest</li></ul></li>"
        );
    }

    #[test]
    fn what_is_filled_in_is_not_a_slot() {
        let slots = [("a", "{{b}}"), ("b", "secret")];
        assert_eq!(fill("x {{a}} y {{b}}{{c}}", &slots), "x {{b}} y secret");
    }

    #[test]
    fn a_number_and_its_unit_stay_on_one_line_and_commands_as_they_are() {
        let html = sentences(&Words::new("2 of 61 091 were over 100 µs late"));
        let figure = |text: &str| format!("<span class=\"figure\">{text}</span>");
        let shown = format!("2 of {} were over {} late", figure("61 091"), figure("100 µs"));
        assert_eq!(html, format!("<p>{shown}</p>"));
        assert_eq!(prose("<9 s> &"), format!("{} &amp;", figure("&lt;9 s&gt;")));
        let longer = Item { command: Some("wait 5 s".to_owned()), ..Item::new("a", "b") };
        assert!(item(&longer, ItemsKind::Notes).ends_with("<code>wait 5 s</code></li>"));
        // Copied, it is what it was: the words and the spaces between them.
        assert_eq!(
            command("sudo run --cpu 1 & x"),
            "sudo run <span class=\"word\">--cpu</span> 1 &amp; x"
        );
        let rows = vec![vec!["over 5 ms".to_owned(), "6 ms".to_owned()]];
        let table = table(&Table::new("5 s", [words("name"), numbers("n")], rows));
        assert!(table.contains("aria-label=\"5 s\"") && table.contains(&figure("5 ms")), "{table}");
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

    #[test]
    fn base64_is_that_of_the_rfc() {
        let encoded = |text: &str| base64(text.as_bytes());
        assert_eq!(
            [encoded(""), encoded("f"), encoded("fo"), encoded("foo")],
            ["", "Zg==", "Zm8=", "Zm9v"]
        );
        assert_eq!(encoded("foobar"), "Zm9vYmFy");
    }

    #[test]
    fn uplot_is_the_published_one() {
        let digest = |text: &str| {
            let bytes = Sha256::digest(text.as_bytes());
            bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        assert_eq!(
            digest(UPLOT),
            "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f"
        );
        assert_eq!(
            digest(UPLOT_STYLE),
            "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04"
        );
    }

    #[test]
    fn no_markup_begins_or_ends_in_it() {
        let text =
            safe(&serde_json::json!({ "a": "</script><img onerror=x>&\u{2028}" }).to_string());
        assert!(!text.contains(['<', '>', '&', '\u{2028}']), "{text}");
        let back: Value = serde_json::from_str(&text).expect("still JSON");
        assert_eq!(back["a"], "</script><img onerror=x>&\u{2028}");
    }
}
