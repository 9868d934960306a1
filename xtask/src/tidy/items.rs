//! What a file declares: its items by name, line by line.
//!
//! Works on code masked by [`Source`]: an item that a macro makes is not seen.

use super::source::Source;
use super::words::split;

/// What a file declares by name.
pub(crate) struct Item<'t> {
    /// `fn`, `struct`, `mod` …, or `field` for one that is not private.
    pub(crate) keyword: &'t str,
    pub(crate) name: &'t str,
    /// Byte offset of the name.
    pub(crate) at: usize,
    /// Whether its line begins with plain `pub`.
    pub(crate) public: bool,
}

/// Words before the name of an item.
const ITEMS: &[&str] =
    &["fn", "struct", "enum", "union", "trait", "type", "mod", "const", "static", "macro_rules"];

/// Every item that the file declares, its public fields too.
pub(crate) fn items(rust: &Source) -> impl Iterator<Item = Item<'_>> {
    let mut start = 0;
    rust.code.split_inclusive('\n').filter_map(move |line| {
        let from = start;
        start += line.len();
        item(line).map(|item| Item { at: from + item.at, ..item })
    })
}

fn item(line: &str) -> Option<Item<'_>> {
    let head = line.trim_start();
    let public = head.starts_with("pub ");
    let restricted = head.starts_with("pub(");
    let from = line.len() - head.len() + if restricted { head.find(')')? + 1 } else { 0 };
    let mut keyword = "";
    for (at, word) in split(&line[from..], |c| c == '_' || c.is_alphanumeric()) {
        let at = from + at;
        let ends_field = (public || restricted) && line[at + word.len()..].starts_with(':');
        match word {
            "pub" | "unsafe" | "async" | "extern" => {}
            word if ITEMS.contains(&word) => keyword = word,
            name if !keyword.is_empty() => return Some(Item { keyword, name, at, public }),
            name if ends_field => return Some(Item { keyword: "field", name, at, public }),
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let source = Source::new(text);
        let show = |item: Item<'_>| {
            assert!(source.code[item.at..].starts_with(item.name));
            let public = if item.public { "pub " } else { "" };
            format!("{public}{} {}", item.keyword, item.name)
        };
        items(&source).map(show).collect()
    }

    #[test]
    fn items_are_found_with_their_kind() {
        let text = "pub struct A<T> {\n    pub a: T,\n    b: u8,\n}\npub(crate) mod c;\n\
                    pub const unsafe fn d() {}\n    pub(in crate::x) type E = u8;\n\
                    static F: u8 = 1;\npub const G: u8 = 1;\npub unsafe trait H {}\n\
                    pub unsafe extern \"C\" fn i() {}\n";
        let want = [
            "pub struct A",
            "pub field a",
            "mod c",
            "pub fn d",
            "type E",
            "static F",
            "pub const G",
            "pub trait H",
            "pub fn i",
        ];
        assert_eq!(shown(text), want);
    }

    #[test]
    fn statements_and_uses_are_no_items() {
        let text = "use a::b;\npub use c::d;\nlet e = f(|g: u8| g);\nmatch h { I => j }\n\
                    // fn k() {}\nimpl L for M {}\nwhere\n    N: Fn(u8),\n";
        assert_eq!(shown(text), Vec::<String>::new());
    }
}
