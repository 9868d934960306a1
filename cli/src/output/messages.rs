//! Messages on standard error: errors, warnings, notes.
//!
//! Results and pages go to standard output; the line of progress has a module of its own.

use std::io::{self, Write};

/// Writes one line to standard error, whatever the text holds. Where standard error is closed, the
/// line is dropped.
pub(crate) fn message(text: &str) {
    let line: String = text.chars().flat_map(plain).collect();
    let _closed = writeln!(io::stderr(), "punctual: {line}");
}

/// A character as it is, or escaped where it would steer a terminal or break the line.
fn plain(c: char) -> impl Iterator<Item = char> {
    let (kept, escaped) =
        if c.is_control() { (None, Some(c.escape_default())) } else { (Some(c), None) };
    kept.into_iter().chain(escaped.into_iter().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_cannot_steer_the_terminal() {
        let shown: String = "a\n\u{1b}[2J µ".chars().flat_map(plain).collect();
        assert_eq!(shown, "a\\n\\u{1b}[2J µ");
    }
}
