//! Functions: what the public ones say of real time, and a note on long ones.
//!
//! Finds functions by their brackets. A function that a macro makes is not seen.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{Source, block_end, is_word, item_open, items};
use super::{File, Finding};

/// Lines of a function, from its head to its closing brace, above which a note is printed.
const LINES: usize = 70;
/// Crates whose public functions carry the label.
const LABELLED: &[&str] = &["core", "os", "engine", "punctual"];
/// The texts that the label may have.
const LABELS: &[&str] = &["in loop", "in loop, waits", "setup only", "reader side"];

/// A function in a file.
struct Function {
    name: String,
    /// Byte offset of the word `fn`.
    at: usize,
    /// Byte offset behind its body; `None` when it has none.
    end: Option<usize>,
}

/// All checks of this file.
pub(crate) fn check(file: &File, rust: &Source, found: &mut Vec<Finding>) {
    if file.is_test() {
        return;
    }
    let traits = public_traits(&rust.code);
    for function in functions(&rust.code) {
        if rust.is_test(function.at) {
            continue;
        }
        let promised = is_public(&rust.code, function.at)
            || traits.iter().any(|range| range.contains(&function.at));
        if promised && LABELLED.contains(&file.member()) {
            label(file, rust, &function, found);
        }
    }
}

fn functions(code: &str) -> Vec<Function> {
    words(code, "fn")
        .filter_map(|at| {
            let name: String = code[at + 2..]
                .trim_start()
                .chars()
                .take_while(|c| *c == '_' || c.is_alphanumeric())
                .collect();
            let end = item_open(code, at).map(|open| block_end(code, open));
            (!name.is_empty()).then_some(Function { name, at, end })
        })
        .collect()
}

/// Offsets at which `word` stands alone.
fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = code.as_bytes();
    code.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        !at.checked_sub(1).is_some_and(|before| is_word(bytes[before]))
            && !bytes.get(at + word.len()).is_some_and(|&after| is_word(after))
    })
}

/// The blocks of traits that other crates see.
fn public_traits(code: &str) -> Vec<std::ops::Range<usize>> {
    code.match_indices("pub trait ")
        .chain(code.match_indices("pub unsafe trait "))
        .filter_map(|(at, _)| item_open(code, at).map(|open| open..block_end(code, open)))
        .collect()
}

/// Returns true where the head before the word `fn` at `at` says plain `pub`.
fn is_public(code: &str, at: usize) -> bool {
    let head_start = code[..at].rfind(['\n', ';', '{', '}']).map_or(0, |before| before + 1);
    code[head_start..at].split_whitespace().next() == Some("pub")
}

/// A note on each function that is longer than a reader holds in the head. It is no finding: no
/// function is split to pass a count.
pub(crate) fn long_functions(file: &File) -> Vec<String> {
    let Some(rust) = file.rust.as_ref().filter(|_| !file.is_test()) else { return Vec::new() };
    let note = |function: Function| {
        let line = rust.line(function.at);
        let lines = rust.line(function.end? - 1) - line + 1;
        let name = function.name;
        let is_long = lines > LINES && !rust.is_test(function.at);
        is_long.then(|| format!("{}:{line}: `{name}` has {lines} lines", file.path))
    };
    functions(&rust.code).into_iter().filter_map(note).collect()
}

fn label(file: &File, rust: &Source, function: &Function, found: &mut Vec<Finding>) {
    let line = rust.line(function.at);
    let labels: Vec<String> = doc_above(rust, line)
        .iter()
        .filter_map(|doc| doc.split("# Real-time:").nth(1))
        .map(|label| label.replace('*', "").trim().to_owned())
        .collect();
    let known = |label: &str| {
        LABELS.iter().any(|known| {
            label.strip_prefix(known).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
        })
    };
    let problem = match &labels[..] {
        [label] if known(label) => return,
        [] => format!("`{}` has no line `# Real-time:`", function.name),
        [label] => format!("`{}` has the line `# Real-time: {label}`", function.name),
        _ => format!("`{}` has {} lines `# Real-time:`", function.name, labels.len()),
    };
    found.push(file.finding(
        "real-time",
        line,
        problem,
        "a caller must know where it may be called",
        format!("one of: {}", LABELS.join(" · ")),
    ));
}

/// The lines of documentation above a head, through its attributes.
fn doc_above(rust: &Source, head: usize) -> Vec<&str> {
    let mut docs = Vec::new();
    let mut brackets = 0_i32;
    for line in (1..head).rev() {
        let range = rust.line_range(line);
        let (code, comment) = (rust.code[range.clone()].trim(), rust.comments[range].trim());
        brackets += code.matches(']').count() as i32 - code.matches('[').count() as i32;
        if comment.starts_with("///") && code.is_empty() {
            docs.push(comment);
        } else if !(code.starts_with("#[")
            || brackets > 0
            || !comment.is_empty() && code.is_empty())
        {
            break;
        }
    }
    docs
}

/// The words that declare a type that can have methods.
const TYPES: &[&str] = &["struct", "enum", "union"];

/// One note for each file that implements a type of its crate that other files declare.
pub(crate) fn scattered_impls(files: &[File]) -> Vec<String> {
    let sources = || files.iter().filter(|file| !file.is_test() && !file.is_data());
    let mut declared: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for file in sources() {
        for item in file.rust.iter().flat_map(items).filter(|item| TYPES.contains(&item.keyword)) {
            declared.entry((file.member(), item.name)).or_default().insert(&file.path);
        }
    }
    let mut notes = Vec::new();
    for file in sources() {
        let Some(rust) = &file.rust else { continue };
        let mut seen = BTreeSet::new();
        for (line, name) in implemented(&rust.code) {
            let Some(homes) = declared.get(&(file.member(), name)) else { continue };
            if !homes.contains(file.path.as_str()) && seen.insert(name) {
                let homes: Vec<&str> = homes.iter().copied().collect();
                let home = homes.join(" or ");
                notes.push(format!("{}:{line}: `impl {name}`, a type of {home}", file.path));
            }
        }
    }
    notes
}

/// The types of the file's inherent implementations, with the line of each, from 1.
fn implemented(code: &str) -> impl Iterator<Item = (usize, &str)> {
    code.lines().enumerate().filter_map(|(index, line)| {
        let head = line.strip_prefix("unsafe ").unwrap_or(line).strip_prefix("impl")?;
        let head = match head.strip_prefix('<') {
            Some(generics) => after_generics(generics)?,
            None => head,
        };
        let head = head.strip_prefix(' ')?;
        let end = head.find(|c: char| c != '_' && c != ':' && !c.is_alphanumeric());
        let name = head[..end.unwrap_or(head.len())].rsplit("::").next()?;
        (!name.is_empty() && !head.contains(" for ")).then_some((index + 1, name))
    })
}

/// The text after the generics whose `<` was taken off.
fn after_generics(head: &str) -> Option<&str> {
    let mut depth = 1_u32;
    for (at, byte) in head.bytes().enumerate() {
        match byte {
            b'<' => depth += 1,
            // Not the arrow of a function's type.
            b'>' if at == 0 || head.as_bytes()[at - 1] != b'-' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(&head[at + 1..]);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whats(path: &str, text: &str) -> Vec<String> {
        let file = File::new(path, text);
        let mut found = Vec::new();
        check(&file, file.rust.as_ref().unwrap(), &mut found);
        found.into_iter().map(|finding| format!("{}: {}", finding.check, finding.problem)).collect()
    }

    fn function_of(lines: usize) -> String {
        format!(
            "fn long(a: [u8; 2]) -> [u8; 2] {{\n{}}}\n",
            "    step('{', \"}\");\n".repeat(lines - 2)
        )
    }

    #[test]
    fn a_long_function_is_noted_but_in_a_test() {
        let long_notes = |path: &str, text: &str| long_functions(&File::new(path, text));
        assert!(long_notes("lab/src/a.rs", &function_of(LINES)).is_empty());
        let long = function_of(LINES + 1);
        assert_eq!(long_notes("lab/src/a.rs", &long), ["lab/src/a.rs:1: `long` has 71 lines"]);
        let text = format!("#[cfg(test)]\nmod tests {{\n{long}}}\n");
        assert!(long_notes("lab/src/a.rs", &text).is_empty());
        assert!(long_notes("lab/tests/a.rs", &long).is_empty());
        assert!(whats("lab/src/a.rs", &long).is_empty());
    }

    #[test]
    fn a_public_function_says_where_it_may_be_called() {
        let labelled =
            "/// Reads.\n///\n/// # Real-time: **in loop**\n#[inline]\npub const fn a() {}\n";
        assert!(whats("core/src/a.rs", labelled).is_empty());
        let waits = "/// # Real-time: in loop, waits (a syscall)\npub fn a() {}\n";
        assert!(whats("os/src/a.rs", waits).is_empty());
        let bare = "/// Reads.\npub fn a() {}\n";
        assert_eq!(whats("core/src/a.rs", bare), ["real-time: `a` has no line `# Real-time:`"]);
        assert!(whats("host/src/a.rs", bare).is_empty(), "only the loop's crates");
        assert!(whats("core/src/a.rs", "pub(crate) fn a() {}\nfn b() {}\n").is_empty());
    }

    #[test]
    fn an_invented_label_is_refused() {
        let text = "/// # Real-time: sometimes\npub unsafe fn a() {}\n";
        assert_eq!(
            whats("os/src/a.rs", text),
            ["real-time: `a` has the line `# Real-time: sometimes`"]
        );
        let text = "/// # Real-time: in loopy\npub fn a() {}\n";
        assert_eq!(whats("os/src/a.rs", text).len(), 1);
    }

    #[test]
    fn the_label_of_the_function_before_does_not_count() {
        let text = "/// # Real-time: in loop\npub fn a() {}\n\npub fn b() {}\n";
        assert_eq!(whats("core/src/a.rs", text), ["real-time: `b` has no line `# Real-time:`"]);
    }

    #[test]
    fn what_a_public_trait_asks_for_is_public() {
        let text = "/// A clock.\npub trait Clock {\n    /// Now.\n    fn now(&self) -> u64;\n}\n";
        assert_eq!(whats("core/src/a.rs", text), ["real-time: `now` has no line `# Real-time:`"]);
        let text = "impl Clock for X {\n    fn now(&self) -> u64 { 0 }\n}\n";
        assert!(whats("core/src/a.rs", text).is_empty());
    }

    #[test]
    fn an_attribute_over_several_lines_is_passed() {
        let text = "/// # Real-time: in loop\n#[cfg(any(\n    a,\n    b[0],\n))]\npub fn a() {}\n";
        assert!(whats("core/src/a.rs", text).is_empty());
    }

    #[test]
    fn methods_away_from_their_type_are_noted() {
        let files = [
            File::new("a/src/b.rs", "pub struct B<T>(T);\nimpl<T: Fn(u8) -> u8> B<T> {\n}\n"),
            File::new("a/src/b/c.rs", "impl<T> super::B<T> {\n}\nimpl D for B<u8> {\n}\n"),
            File::new("e/src/f.rs", "impl B {\n}\n"),
            File::new("a/tests/g.rs", "impl B<u8> {\n}\n"),
        ];
        assert_eq!(scattered_impls(&files), ["a/src/b/c.rs:1: `impl B`, a type of a/src/b.rs"]);
    }
}
