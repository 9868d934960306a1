//! A Rust file taken apart: its code, its comments and its strings, each at its own place.
//!
//! For the checks, so that none is misled by a brace in a string or a word in a comment. Works on
//! text alone. It knows tokens, not grammar: macros are read as if they were plain code.

use std::ops::Range;

/// A Rust file. `code`, `comments` and `strings` are as long as the text: what belongs to another
/// of them is blank, line breaks stay, so that an offset means the same in all.
pub(crate) struct Source {
    /// Code, with the contents of strings and characters blank and their quotes kept.
    pub code: String,
    /// Comments with their slashes and stars.
    pub comments: String,
    /// The text between the quotes of strings.
    pub strings: String,
    /// Byte ranges that are compiled for tests only.
    tests: Vec<Range<usize>>,
    line_starts: Vec<usize>,
}

/// The kind of a stretch of the text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Code,
    Comment,
    Text,
}

impl Source {
    /// Takes `text` apart.
    pub(crate) fn new(text: &str) -> Self {
        let mut parts = Parts::new(text);
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            at = parts.take(bytes, at);
        }
        let code = unblank(parts.code);
        let line_starts =
            std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let tests = test_ranges(&code);
        Self {
            code,
            comments: unblank(parts.comments),
            strings: unblank(parts.strings),
            tests,
            line_starts,
        }
    }

    /// The line, from 1, that holds the byte `offset`.
    pub(crate) fn line(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|&start| start <= offset)
    }

    /// The bytes of a line, from 1, without its line break.
    pub(crate) fn line_range(&self, line: usize) -> Range<usize> {
        let start = self.line_starts[line - 1];
        let end = self.line_starts.get(line).map_or(self.code.len(), |next| next - 1);
        start..end
    }

    /// Returns true where the byte `offset` is compiled for tests only.
    pub(crate) fn is_test(&self, offset: usize) -> bool {
        self.tests.iter().any(|range| range.contains(&offset))
    }

    /// Returns true where a comment stands on the line, from 1, or on the one before it.
    pub(crate) fn has_comment_near(&self, line: usize) -> bool {
        (line.saturating_sub(1).max(1)..=line)
            .any(|near| !self.comments[self.line_range(near)].trim().is_empty())
    }
}

/// The three masks while they are filled.
struct Parts {
    code: Vec<u8>,
    comments: Vec<u8>,
    strings: Vec<u8>,
}

impl Parts {
    fn new(text: &str) -> Self {
        let blank: Vec<u8> =
            text.bytes().map(|byte| if byte == b'\n' { byte } else { b' ' }).collect();
        Self { code: blank.clone(), comments: blank.clone(), strings: blank }
    }

    fn copy(&mut self, bytes: &[u8], range: Range<usize>, kind: Kind) {
        let mask = match kind {
            Kind::Code => &mut self.code,
            Kind::Comment => &mut self.comments,
            Kind::Text => &mut self.strings,
        };
        mask[range.clone()].copy_from_slice(&bytes[range]);
    }

    /// Takes the token at `at` and returns where the next begins.
    fn take(&mut self, bytes: &[u8], at: usize) -> usize {
        let rest = &bytes[at..];
        if rest.starts_with(b"//") {
            let end = at + rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
            self.copy(bytes, at..end, Kind::Comment);
            return end;
        }
        if rest.starts_with(b"/*") {
            let end = at + block_comment_bytes(rest);
            self.copy(bytes, at..end, Kind::Comment);
            return end;
        }
        if let Some([open, close, end]) = string_bytes(rest) {
            self.copy(bytes, at..at + open, Kind::Code);
            self.copy(bytes, at + open..at + close, Kind::Text);
            self.copy(bytes, at + close..at + end, Kind::Code);
            return at + end;
        }
        if let Some(length) = char_bytes(rest) {
            self.copy(bytes, at..at + 1, Kind::Code);
            self.copy(bytes, at + length - 1..at + length, Kind::Code);
            return at + length;
        }
        // A whole word at once: the `r` inside `var"` opens no raw string.
        let word = rest.iter().take_while(|&&byte| is_word(byte)).count().max(1);
        self.copy(bytes, at..at + word, Kind::Code);
        at + word
    }
}

/// Masks hold whole tokens, so that they are text again; a stray byte becomes a question mark.
fn unblank(mask: Vec<u8>) -> String {
    String::from_utf8(mask).unwrap_or_else(|error| {
        error
            .into_bytes()
            .iter()
            .map(|&byte| if byte.is_ascii() { byte as char } else { '?' })
            .collect()
    })
}

/// Returns true where the byte can stand in an identifier.
pub(crate) fn is_word(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric() || byte >= 0x80
}

fn block_comment_bytes(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest[at..].starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// For a string literal at the start of `rest`: where its contents begin, where they end, and
/// where the literal does.
fn string_bytes(rest: &[u8]) -> Option<[usize; 3]> {
    let prefix = rest.iter().take_while(|byte| matches!(byte, b'b' | b'c' | b'r')).count();
    let raw = prefix > 0 && rest[prefix - 1] == b'r';
    let hashes = rest[prefix..].iter().take_while(|&&byte| byte == b'#').count();
    if prefix > 2 || (hashes > 0 && !raw) || rest.get(prefix + hashes) != Some(&b'"') {
        return None;
    }
    let open = prefix + hashes + 1;
    if raw {
        let closing: Vec<u8> =
            std::iter::once(b'"').chain(std::iter::repeat_n(b'#', hashes)).collect();
        let inside = rest[open..].windows(closing.len()).position(|window| window == closing);
        let close = inside.map_or(rest.len(), |inside| open + inside);
        return Some([open, close, (close + closing.len()).min(rest.len())]);
    }
    let mut at = open;
    while at < rest.len() && rest[at] != b'"' {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    let close = at.min(rest.len());
    Some([open, close, (close + 1).min(rest.len())])
}

/// Bytes of a character literal at the start of `rest`; `None` for a lifetime.
fn char_bytes(rest: &[u8]) -> Option<usize> {
    if rest.first() != Some(&b'\'') {
        return None;
    }
    if rest.get(1) == Some(&b'\\') {
        return rest.iter().skip(3).position(|&byte| byte == b'\'').map(|inside| inside + 4);
    }
    let text = std::str::from_utf8(&rest[1..rest.len().min(6)]);
    let text = text.or_else(|error| std::str::from_utf8(&rest[1..1 + error.valid_up_to()])).ok()?;
    let width = text.chars().next()?.len_utf8();
    (rest.get(1 + width) == Some(&b'\'')).then_some(width + 2)
}

/// The end of the block that the brace at `open` begins, behind its closing brace.
pub(crate) fn block_end(code: &str, open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    code.len()
}

/// The opening brace of the item whose head begins at `from`; `None` when it ends at a semicolon.
pub(crate) fn item_open(code: &str, from: usize) -> Option<usize> {
    let mut depth = 0_i32;
    for (at, byte) in code.bytes().enumerate().skip(from) {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b'{' if depth == 0 => return Some(at),
            b';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// The items behind `#[cfg(test)]` and `#[test]`.
fn test_ranges(code: &str) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let mut marks: Vec<usize> = ["#[cfg(test)]", "#[cfg(all(test", "#[test]"]
        .iter()
        .flat_map(|mark| code.match_indices(mark))
        .map(|(at, _)| at)
        .collect();
    marks.sort_unstable();
    for start in marks {
        if ranges.last().is_some_and(|last| last.contains(&start)) {
            continue;
        }
        if let Some(open) = item_open(code, start) {
            ranges.push(start..block_end(code, open));
        }
    }
    ranges
}

/// Maximal runs of characters that `belongs` accepts, with their offsets.
pub(crate) fn split(text: &str, belongs: impl Fn(char) -> bool) -> Vec<(usize, &str)> {
    let mut runs = Vec::new();
    let mut start = None;
    for (at, c) in text.char_indices().chain([(text.len(), '\0')]) {
        match (start, belongs(c)) {
            (None, true) => start = Some(at),
            (Some(from), false) => {
                runs.push((from, &text[from..at]));
                start = None;
            }
            _ => {}
        }
    }
    runs
}

/// An item that a file declares by name.
pub(crate) struct Item<'t> {
    /// `fn`, `struct`, `mod` …, or `field` for one that is not private.
    pub keyword: &'t str,
    pub name: &'t str,
    /// Byte offset of the name.
    pub at: usize,
    /// True where its line begins with plain `pub`.
    pub public: bool,
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

    #[test]
    fn strings_comments_and_characters_leave_the_code() {
        let text = "let a = \"{ // no\"; // { yes\nlet b = '{'; let c: &'static str = \
                    r#\"}\"}\"#; /* } /* } */ */ d";
        let source = Source::new(text);
        assert!(!source.code.contains('{') && !source.code.contains('}'), "{}", source.code);
        assert!(source.code.contains("&'static str") && source.code.ends_with(" d"));
        assert!(
            source.comments.contains("// { yes") && source.comments.contains("/* } /* } */ */")
        );
        assert!(source.strings.contains("{ // no") && source.strings.contains("}\"}"));
        assert_eq!(source.code.len(), text.len());
    }

    #[test]
    fn escapes_do_not_end_a_literal() {
        let source =
            Source::new(r#"let a = "\"{"; let b = '\''; let c = b'\\'; let d = "µ{"; fn e() {}"#);
        assert_eq!(source.code.matches('{').count(), 1);
    }

    #[test]
    fn tests_are_found_with_their_lines() {
        let text = "fn a() {}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn b() {}\n}\n";
        let source = Source::new(text);
        assert!(!source.is_test(0));
        assert!(source.is_test(text.find("fn b").unwrap()));
        assert_eq!(source.line(text.find("mod").unwrap()), 4);
    }

    #[test]
    fn an_attribute_on_a_declaration_without_body_is_no_range() {
        let source = Source::new("#[cfg(test)]\nextern crate std;\nfn a() {}\n");
        assert!(!source.is_test(source.code.find("fn a").unwrap()));
    }

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
