//! A document as Markdown, as issue trackers render it: GitHub Flavored Markdown without raw HTML.
//!
//! Every word is escaped, so that it is seen as it is; tables are whole.

use punctual_analysis::plain::{plain, plain_lines, plain_spaces};

use crate::{Block, Cells, Item, Items, ItemsKind, Table, Words};

/// A document under a heading.
pub fn headed(heading: &str, blocks: &[Block]) -> String {
    let page = format!("## {}\n", escaped(heading)) + &rendered(blocks);
    page.trim_end().to_owned() + "\n"
}

/// Blocks as paragraphs, lists and tables, each after a blank line.
pub fn rendered(blocks: &[Block]) -> String {
    let mut page = String::new();
    let mut in_list = false;
    for block in blocks.iter().filter(|block| !block.is_picture_alone()) {
        let is_item = match block {
            Block::Words(words) => words.level > 0,
            Block::Items(list) => !list.items.is_empty(),
            Block::Break => continue,
            _ => false,
        };
        if !(in_list && is_item) {
            page.push('\n');
        }
        in_list = is_item;
        match block {
            Block::Heading(heading) => page += &format!("### {}\n", escaped(heading)),
            Block::Words(words) if words.level > 0 => page += &format!("- {}\n", sentences(words)),
            Block::Words(words) => page += &format!("{}\n", sentences(words)),
            Block::Items(list) => page += &items(list),
            Block::Table(table) => page += &self::table(table),
            Block::Drawing(lines) => page += &drawing(lines),
            Block::Break => {}
            Block::Figure(figure) => page += &format!("{}\n", escaped(&figure.brief)),
            Block::Row(_, groups) => page.extend(groups.iter().map(|blocks| rendered(blocks))),
            Block::Folded(summary, blocks) => {
                page += &format!("### {}\n{}", escaped(summary), rendered(blocks));
            }
        }
    }
    page
}

/// Sentences on one line, coloured words in bold.
fn sentences(words: &Words) -> String {
    let text = escaped(&words.text);
    match &words.paint {
        Some((word, _)) if !word.is_empty() => {
            let word = escaped(word);
            text.replacen(&word, &format!("**{word}**"), 1)
        }
        _ => text,
    }
}

fn items(list: &Items) -> String {
    list.items.iter().map(|item| self::item(item, list.kind)).collect()
}

fn item(item: &Item, kind: ItemsKind) -> String {
    let (label, text) = (escaped(item.label.trim()), escaped(&item.text));
    let command = item.command.as_ref();
    let command = command.map(|command| format!(": {}", code(command))).unwrap_or_default();
    match kind {
        ItemsKind::Links => format!("- [{text}](<{}>)\n", item.label.replace(['<', '>', '\n'], "")),
        _ if label.is_empty() || item.label == "-" => format!("- {text}{command}\n"),
        ItemsKind::Plain => format!("- {label} {text}{command}\n"),
        ItemsKind::Notes | ItemsKind::Answers => format!("- **{label}** {text}{command}\n"),
    }
}

/// A table under its caption, with all its columns and rows.
fn table(table: &Table) -> String {
    let row = |cells: &mut dyn Iterator<Item = &str>| -> String {
        let cells = cells.map(|cell| format!(" {} |", inside(cell)));
        format!("|{}\n", cells.collect::<String>())
    };
    let mut text = match table.caption.as_str() {
        "" => String::new(),
        caption => format!("{}\n\n", escaped(caption)),
    };
    text += &row(&mut table.columns.iter().map(|column| column.head.as_str()));
    let rule = |cells| if cells == Cells::Numbers { " ---: |" } else { " --- |" };
    let rules = table.columns.iter().map(|column| rule(column.cells));
    text += &format!("|{}\n", rules.collect::<String>());
    let rows = table.rows.iter().map(|cells| row(&mut cells.iter().map(String::as_str)));
    text + &rows.collect::<String>()
}

/// Lines of one width, as they are.
fn drawing(lines: &str) -> String {
    let lines = plain_lines(lines);
    let fence = fence(&lines, 3);
    format!("{fence}\n{}\n{fence}\n", lines.trim_end_matches('\n'))
}

/// A command, as it is.
fn code(command: &str) -> String {
    let command = plain_spaces(&plain(command));
    let fence = fence(&command, 1);
    let space = if command.starts_with('`') || command.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{command}{space}{fence}")
}

/// Backquotes that are more than any in the text have in a row.
fn fence(text: &str, least: usize) -> String {
    let most = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(least.max(most + 1))
}

/// Words on one line as they are, with nothing in them that is markup, also not where it is at the
/// beginning of a line.
fn escaped(text: &str) -> String {
    let text = inside(text);
    let number = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let begins = if number.len() < text.len() { &['.', ')'][..] } else { &['-', '+', '#', '='] };
    let at = text.len() - number.len();
    match number.starts_with(begins) {
        true => format!("{}\\{number}", &text[..at]),
        false => text,
    }
}

/// Words as they are inside a line, or in a cell of a table, where nothing begins a line.
fn inside(text: &str) -> String {
    let text = plain_spaces(&plain(text));
    let text = text.trim();
    let mut shown = String::with_capacity(text.len());
    let is_in_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    for (at, c) in text.char_indices() {
        let (before, after) = (&text[..at], &text[at + c.len_utf8()..]);
        let is_markup = match c {
            '\\' | '`' | '*' | '[' | ']' | '<' | '>' | '|' | '~' | '&' => true,
            // Inside a word it is one of its letters.
            '_' => !is_in_word(before.chars().next_back()) || !is_in_word(after.chars().next()),
            _ => false,
        };
        if is_markup {
            shown.push('\\');
        }
        shown.push(c);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{numbers, words};

    #[test]
    fn nothing_in_words_is_markup() {
        assert_eq!(escaped("a|b <c> *d* `e` \\"), "a\\|b \\<c\\> \\*d\\* \\`e\\` \\\\");
        assert_eq!(
            ["- a", "+ b", "# c", "1. d", "a. e"].map(escaped),
            ["\\- a", "\\+ b", "\\# c", "1\\. d", "a. e"]
        );
        assert_eq!(escaped("SCHED_FIFO _a_ b__c"), "SCHED_FIFO \\_a\\_ b\\_\\_c");
        assert_eq!(escaped("a\n\nb\u{1b}"), "a\\\\n\\\\nb\\\\u{1b}", "nothing ends its line");
        assert_eq!(code("a `b`"), "`` a `b` ``");
        assert_eq!(drawing("```\n"), "````\n```\n````\n");
    }

    #[test]
    fn a_table_has_its_caption_heads_and_all_rows() {
        let rows = vec![vec!["a|b".to_owned(), "1 µs".to_owned()]];
        let table = Table::new("What", [words("x"), numbers("p99")], rows).folded();
        assert_eq!(
            rendered(&[table.into()]),
            "\nWhat\n\n| x | p99 |\n| --- | ---: |\n| a\\|b | 1 µs |\n"
        );
    }
}
