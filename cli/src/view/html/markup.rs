//! Markup that all sections use: escaped words, tables, a frame with its slots.
//!
//! Nothing here knows a result.

use punctual_analysis::plain::steers;
use punctual_plot::chart::Chart;
use punctual_plot::svg;

/// Words as they may stand between tags and in quoted attributes.
pub(super) fn escape(text: &str) -> String {
    svg::escape(text, steers)
}

/// A drawing, for this page; `id` is unique in it.
pub(super) fn drawing(chart: &Chart, id: &str) -> String {
    svg::inline(&chart.scene(), id, steers)
}

/// A frame with `{{name}}` in it, each replaced once; what is filled in is not looked at again.
pub(super) fn fill(frame: &str, slots: &[(&str, &str)]) -> String {
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

/// A table of words, which are escaped here. A heading that begins with `>` is that of numbers;
/// the first column heads its row.
pub(super) fn table(caption: &str, heads: &[&str], rows: &[Vec<String>]) -> String {
    let class = |column: usize| if heads[column].starts_with('>') { " class=\"num\"" } else { "" };
    let mut html = format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\"><table>\
         <caption>{caption}</caption><thead><tr>",
        caption = escape(caption)
    );
    for (column, head) in heads.iter().enumerate() {
        let words = escape(head.trim_start_matches('>'));
        html += &format!("<th scope=\"col\"{}>{words}</th>", class(column));
    }
    html += "</tr></thead><tbody>";
    for row in rows {
        html += "<tr>";
        for (column, cell) in row.iter().enumerate().take(heads.len()) {
            let cell = escape(cell);
            html += &match column {
                0 => format!("<th scope=\"row\">{cell}</th>"),
                _ => format!("<td{}>{cell}</td>", class(column)),
            };
        }
        html += "</tr>";
    }
    html + "</tbody></table></div>"
}

/// Something that is shown when a reader opens it.
pub(super) fn details(summary: &str, body: &str) -> String {
    format!("<details><summary>{}</summary>{body}</details>", escape(summary))
}

/// A paragraph of words.
pub(super) fn paragraph(class: &str, words: &str) -> String {
    format!("<p class=\"{class}\">{}</p>", escape(words))
}

/// A drawing that stays as it is; `id` is unique in the page.
pub(super) fn still(chart: &Chart, id: &str) -> String {
    format!(
        "<figure class=\"plot\"><h3>{}</h3>{}<figcaption>{}</figcaption></figure>",
        escape(&chart.title),
        drawing(chart, id),
        escape(&chart.description)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let html = table("a \"b\"", &["name", ">n"], &[vec![hostile, "<1>".to_owned()]]);
        assert!(!html.contains("<script") && html.contains("&lt;/table&gt;"), "{html}");
        assert!(html.contains("aria-label=\"a &quot;b&quot;\""));
        assert!(html.contains("<td class=\"num\">&lt;1&gt;</td>"));
    }
}
