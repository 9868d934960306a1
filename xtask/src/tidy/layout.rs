//! The shape of a file: its door, its width, its length, and marks left behind.
//!
//! Looks at one file's text at a time.

use super::{File, Finding};

/// Columns of a line of Rust, as in `rustfmt.toml`; only what rustfmt gives up on gets past it.
const COLUMNS: usize = 100;
/// Lines of a file, tests included.
const LINES: usize = 400;
/// Lines of a file beside its tests, above which a note is printed.
const LINES_NOTED: usize = 300;

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
        door(file, found);
        columns(file, found);
        length(file, found);
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

fn door(file: &File, found: &mut Vec<Finding>) {
    if !file.text.starts_with("//!") {
        found.push(file.finding(
            "door",
            1,
            "the file does not open with `//!`",
            "a file says at its door what it is for, what it may touch and what it never does",
            "open it with such a paragraph",
        ));
    }
}

fn columns(file: &File, found: &mut Vec<Finding>) {
    for (index, line) in file.text.lines().enumerate() {
        let width = line.chars().count();
        // A link cannot be broken.
        if width > COLUMNS && !line.contains("://") {
            let what = format!("{width} columns");
            let instead = format!("break it at {COLUMNS}");
            found.push(file.finding(
                "columns",
                index + 1,
                what,
                "two files fit side by side",
                instead,
            ));
        }
    }
}

fn length(file: &File, found: &mut Vec<Finding>) {
    let lines = file.text.lines().count();
    if lines > LINES {
        found.push(file.finding(
            "length",
            LINES + 1,
            format!("{lines} lines, at most {LINES}"),
            "a file holds one noun",
            "when a noun grows, it becomes a folder",
        ));
    }
}

/// A note on a file that is on its way to being too long.
pub(crate) fn long_file_note(file: &File) -> Option<String> {
    let rust = file.rust.as_ref().filter(|_| !file.is_test())?;
    let lines = rust.lines_outside_tests(file.text.lines().count());
    (lines > LINES_NOTED)
        .then(|| format!("{}: {lines} lines beside its tests, over {LINES_NOTED}", file.path))
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
    fn a_missing_door_is_found_in_rust_only() {
        assert_eq!(checks("core/src/a.rs", "fn a() {}\n"), ["door"]);
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
    fn a_long_file_fails_and_a_growing_one_is_noted() {
        let lines = |count: usize| format!("//! A.\n{}", "// b\n".repeat(count - 1));
        assert_eq!(checks("a/a.rs", &lines(LINES)), Vec::<&str>::new());
        assert_eq!(checks("a/a.rs", &lines(LINES + 1)), ["length"]);
        assert!(long_file_note(&File::new("a/a.rs", &lines(LINES_NOTED + 1))).is_some());
        assert!(long_file_note(&File::new("a/a.rs", &lines(LINES_NOTED))).is_none());
    }
}
