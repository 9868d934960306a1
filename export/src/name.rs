//! Names of runs, made safe to print: a name can never change the layout of a file.
//!
//! For every format here. A name keeps its letters; what steers a terminal or a reader is escaped,
//! and long names are cut.

use std::collections::BTreeSet;

use punctual_analysis::plain;

/// The most characters of a name that are kept: it stands in every row of a table.
pub const NAME_CHARS_MAX: usize = 200;

/// A name as one plain line: what steers a reader escaped as in Rust (`\n`, `\u{1b}`), hard
/// spaces plain, at most [`NAME_CHARS_MAX`] characters of it, the last one "…" when it was longer.
pub fn plain(name: &str) -> String {
    let mut kept = String::new();
    let mut chars = 0;
    for c in name.chars() {
        let shown = plain::plain_spaces(&plain::plain(c.encode_utf8(&mut [0; 4])));
        let more = shown.chars().count();
        if chars + more > NAME_CHARS_MAX - 1 {
            kept.push('…');
            break;
        }
        chars += more;
        kept.push_str(&shown);
    }
    kept
}

/// Names that differ: a later one that stood before gets a number.
#[derive(Debug, Default)]
pub struct Distinct(BTreeSet<String>);

impl Distinct {
    /// `name`, or the first of "name (2)", "name (3)", … that was not given out yet.
    pub fn name(&mut self, name: String) -> String {
        self.numbered(name, |name, number| format!("{name} ({number})"))
    }

    /// As [`Self::unique`], but `form` makes the numbered names.
    pub(crate) fn numbered(&mut self, name: String, form: impl Fn(&str, u64) -> String) -> String {
        let numbered = (2_u64..).map(|number| form(&name, number));
        let free = std::iter::once(name.clone()).chain(numbered).find(|n| !self.0.contains(n));
        let free = free.unwrap_or(name);
        self.0.insert(free.clone());
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plain::steers;
    use proptest::prelude::*;

    #[test]
    fn what_steers_is_shown_and_not_done() {
        assert_eq!(plain("under load"), "under load");
        assert_eq!(plain("CPU 1, 25.0 µs"), "CPU 1, 25.0 µs");
        assert_eq!(plain("1\u{a0}kHz"), "1 kHz");
        assert_eq!(plain("a\nb\u{1b}[2Jc\u{202e}"), "a\\nb\\u{1b}[2Jc\\u{202e}");
        assert_eq!(plain(&"x".repeat(NAME_CHARS_MAX + 1)).chars().count(), NAME_CHARS_MAX);
    }

    #[test]
    fn names_that_stood_before_are_numbered() {
        let mut distinct = Distinct::default();
        let names: Vec<String> =
            ["a", "a", "b", "a (2)", "a"].map(|name| distinct.name(name.to_owned())).into();
        assert_eq!(names, ["a", "a (2)", "b", "a (2) (2)", "a (3)"]);
    }

    proptest! {
        #[test]
        fn any_name_becomes_one_short_line(name in any::<String>(), times in 1usize..50) {
            let plain = plain(&name.repeat(times));
            prop_assert!(plain.chars().count() <= NAME_CHARS_MAX);
            prop_assert!(!plain.chars().any(steers));
        }
    }
}
