//! The shape of a file: what it opens with, its name, its width, and marks left behind.
//!
//! Looks at one file's text at a time. How long a file is decides nothing: a noun is one file.

use super::{File, Finding};

/// Columns of a line of Rust, as in `rustfmt.toml`; only what rustfmt gives up on gets past it.
const COLUMNS: usize = 100;

/// Marks of work not done, with what to do about each. Split, so that this file has none.
const MARKS: &[(&str, &str)] = &[
    (concat!("TO", "DO"), "do it, or say in plain words what the code does not do"),
    (concat!("FIX", "ME"), "mend it, or say in plain words what is wrong"),
    (concat!("XX", "X"), "mend it, or say in plain words what is wrong"),
    (concat!("HA", "CK"), "say in plain words why it is done this way"),
    (concat!("to", "do!("), "write the code"),
    (concat!("unimple", "mented!("), "write the code, or return what says that it is not there"),
    (concat!("db", "g!("), "remove it"),
];

/// All checks of this file.
pub(crate) fn check(file: &File, found: &mut Vec<Finding>) {
    marks(file, found);
    if file.rust.is_some() {
        opening(file, found);
        columns(file, found);
        module(file, found);
    }
}

fn marks(file: &File, found: &mut Vec<Finding>) {
    for (index, line) in file.text.lines().enumerate() {
        for (mark, instead) in MARKS {
            let alone = line.match_indices(mark).any(|(at, _)| {
                let word = |byte: Option<&u8>| {
                    byte.is_some_and(|&b| b == b'_' || b.is_ascii_alphanumeric())
                };
                let ends_open = mark.ends_with('(');
                !word(line.as_bytes()[..at].last())
                    && (ends_open || !word(line.as_bytes().get(at + mark.len())))
            });
            if alone {
                let why = "a mark left behind is work that is never done";
                found.push(file.finding("mark", index + 1, format!("`{mark}`"), why, *instead));
            }
        }
    }
}

fn opening(file: &File, found: &mut Vec<Finding>) {
    if !file.text.starts_with("//!") {
        found.push(file.finding(
            "opening",
            1,
            "the file does not open with `//!`",
            "a file says first what it is for, what it may touch and what it never does",
            "open it with such a paragraph",
        ));
    }
}

fn columns(file: &File, found: &mut Vec<Finding>) {
    for (index, line) in file.text.lines().enumerate() {
        let width = line.chars().count();
        // A link cannot be broken.
        if width > COLUMNS && !line.contains("://") {
            let problem = format!("{width} columns");
            let instead = format!("break it at {COLUMNS}");
            found.push(file.finding(
                "columns",
                index + 1,
                problem,
                "two files fit side by side",
                instead,
            ));
        }
    }
}

/// One module style: `noun.rs`, with `noun/` beside it. Where cargo takes each file of a folder for
/// a program of its own (`tests`, `benches`, `examples`), what they share is `NAME/mod.rs`.
fn module(file: &File, found: &mut Vec<Finding>) {
    let Some(folder) = file.path.strip_suffix("/mod.rs") else { return };
    let parent = folder.rsplit('/').nth(1);
    if !parent.is_some_and(|parent| ["tests", "benches", "examples"].contains(&parent)) {
        let why = "a module is `noun.rs`, and `noun/` beside it holds its parts";
        found.push(file.finding("module", 1, "`mod.rs`", why, format!("move it to {folder}.rs")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checks(path: &str, text: &str) -> Vec<&'static str> {
        let mut found = Vec::new();
        check(&File::new(path, text), &mut found);
        found.iter().map(|finding| finding.check).collect()
    }

    #[test]
    fn a_plain_file_passes() {
        assert_eq!(checks("core/src/a.rs", "//! A.\n\nfn todo_list() {}\n"), Vec::<&str>::new());
    }

    #[test]
    fn a_missing_opening_is_found_in_rust_only() {
        assert_eq!(checks("core/src/a.rs", "fn a() {}\n"), ["opening"]);
        assert_eq!(checks("a.sh", "true\n"), Vec::<&str>::new());
    }

    #[test]
    fn columns_are_characters_and_a_link_may_be_long() {
        let wide = |c: &str| format!("//! {}\n", c.repeat(97));
        assert_eq!(checks("a/a.rs", &wide("x")), ["columns"]);
        assert_eq!(checks("a/a.rs", &format!("//! {}\n", "µ".repeat(96))), Vec::<&str>::new());
        assert_eq!(
            checks("a/a.rs", &format!("//! https://{}\n", "x".repeat(99))),
            Vec::<&str>::new()
        );
    }

    #[test]
    fn each_mark_is_found_and_part_of_a_word_is_not() {
        for (mark, _) in MARKS {
            assert_eq!(checks("a/a.rs", &format!("//! A.\n// {mark} b\n")), ["mark"], "{mark}");
            assert_eq!(checks("a/a.rs", &format!("//! A.\n// A{mark} b\n")), Vec::<&str>::new());
        }
    }

    #[test]
    fn a_module_is_named_by_its_file() {
        assert_eq!(checks("a/src/b/mod.rs", "//! B.\n"), ["module"]);
        assert_eq!(checks("a/tests/b/c/mod.rs", "//! C.\n"), ["module"]);
        assert_eq!(checks("a/src/b.rs", "//! B.\n"), Vec::<&str>::new());
        assert_eq!(checks("a/tests/common/mod.rs", "//! Shared.\n"), Vec::<&str>::new());
    }
}
