//! What scenarios judge printed text with.
//!
//! Pure; an error says what was looked for and what was there.

use super::guest::Console;

/// The console of the first guest.
pub(super) fn only(consoles: &[Console]) -> Result<&Console, String> {
    consoles.first().ok_or_else(|| "nothing was booted".to_owned())
}

/// An error names the lines of which the other text has none.
pub(super) fn same(what: &str, a: &str, b: &str) -> Result<(), String> {
    let only = |sign, of: &str, other: &str| -> String {
        let lines = of.lines().filter(|line| other.lines().all(|of| of != *line));
        lines.map(|line| format!("\n  {sign} {line}")).collect()
    };
    match a == b {
        true => Ok(()),
        false => Err(format!("{what} differ:{}{}", only('-', a, b), only('+', b, a))),
    }
}

/// That a step printed it.
pub(super) fn has(step: &str, output: &str, word: &str) -> Result<(), String> {
    match output.contains(word) {
        true => Ok(()),
        false => Err(format!("{step} lacks {word:?}: {output}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_differ_are_named_by_their_lines() {
        assert_eq!(same("settings", "a 1\nb 2\n", "a 1\nb 2\n"), Ok(()));
        let error = same("settings", "a 1\nb 2\n", "a 1\nb 3\n").unwrap_err();
        assert_eq!(error, "settings differ:\n  - b 2\n  + b 3");
    }
}
