//! The lines between a load and its parent.
//!
//! Child to parent, on standard output: `ready`, `count COUNT AT_NS UNIT`, `note TEXT`,
//! `failed TEXT`. Parent to child, on standard input: `stop`; its end means that the parent is
//! gone. A line that is none of these is ignored. Pure text.

use std::fmt;
use std::io::Write;

/// The longest text of a note or failure, in characters.
const TEXT_MAX: usize = 200;
/// What a load says that nobody stopped: why it ended, in its notes and its death.
pub const LIMIT: &str = "it ended at its time limit";
/// What the parent writes to end a load in order.
pub(super) const STOP: &str = "stop";

/// One line from a child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Set up; work begins now.
    Ready,
    /// So much was done since `ready`.
    Count {
        /// How many, since `ready`.
        count: u64,
        /// When, in ns since `ready`.
        at_ns: u64,
        /// Of what: `polygons`.
        unit: String,
    },
    /// What a reader of the report should know.
    Note(String),
    /// It cannot run.
    Failed(String),
}

impl Line {
    /// Reads one line; `None` for anything else.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        Some(match word {
            "ready" if rest.is_empty() => Self::Ready,
            "count" => {
                let (count, rest) = rest.split_once(' ')?;
                let (at_ns, unit) = rest.split_once(' ')?;
                Self::Count {
                    count: count.parse().ok()?,
                    at_ns: at_ns.parse().ok()?,
                    unit: text(unit),
                }
            }
            "note" => Self::Note(text(rest)),
            "failed" => Self::Failed(text(rest)),
            _ => return None,
        })
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready => f.write_str("ready"),
            Self::Count { count, at_ns, unit } => write!(f, "count {count} {at_ns} {}", text(unit)),
            Self::Note(note) => write!(f, "note {}", text(note)),
            Self::Failed(why) => write!(f, "failed {}", text(why)),
        }
    }
}

/// Writes one line.
///
/// # Errors
/// When nobody reads any more.
pub(super) fn say(out: &mut dyn Write, line: &Line) -> Result<(), String> {
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|why| why.to_string())
}

/// `raw` on one line, without control characters, cut at [`TEXT_MAX`].
fn text(raw: &str) -> String {
    let one_line: String =
        raw.chars().map(|c| if c.is_control() { ' ' } else { c }).take(TEXT_MAX).collect();
    one_line.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn other_lines_are_ignored() {
        for line in ["", "ready now", "count", "count 1", "count 1 2", "count -1 2 x", "hello"] {
            assert_eq!(Line::parse(line), None, "{line}");
        }
    }

    proptest! {
        #[test]
        fn lines_read_back(count: u64, at_ns: u64, words in ".*") {
            let unit = "polygons".to_owned();
            for line in [
                Line::Ready,
                Line::Count { count, at_ns, unit },
                Line::Note(text(&words)),
                Line::Failed(text(&words)),
            ] {
                let written = line.to_string();
                prop_assert_eq!(written.lines().count(), 1);
                prop_assert_eq!(Line::parse(&written), Some(line));
            }
        }

        #[test]
        fn anything_can_be_read(line in ".*") {
            let _ = Line::parse(&line);
        }
    }
}
