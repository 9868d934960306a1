//! Words: the glossary as a test. A thing has one name, and its synonyms are refused.
//!
//! Looks at identifiers, comments, sentences in strings and Markdown. Names in code marks or
//! quotation marks are other people's and are let alone; so are single words in strings (the
//! kernel's names, the keys of other tools).

use super::source::Source;
use super::{File, Finding};

/// Files that must name what they refuse.
pub(super) const LAWS: &[&str] = &[
    "docs/glossary.md",
    "docs/compare.md",
    "xtask/src/tidy/messages.rs",
    "xtask/src/tidy/terms.rs",
    "xtask/src/tidy/words.rs",
];

/// Identifiers that are refused, and what to call the thing instead.
const IDENTIFIERS: &[(&str, &str)] = &[
    ("jitter", "`jitter_pp`, `rms`, or the interval's: say which"),
    ("jitter_ns", "`jitter_pp_ns`, `rms_ns`, or the interval's: say which"),
    ("jitter_us", "`jitter_pp_us`, or the interval's: say which"),
    ("tardiness", "`lateness`"),
    ("tardiness_ns", "`lateness_ns`"),
    ("lateness_time", "`lateness_ns`"),
    ("wakeup_time", "`wake`"),
    ("wake_time", "`wake`"),
    ("wake_up", "`wake`"),
    ("release_time", "`release`"),
    ("cycle_time", "`period`"),
    ("cycle_time_ns", "`period_ns`"),
    ("period_time", "`period`"),
    ("deadline_time", "`release` of the next cycle"),
    ("deadline_miss", "`overrun` (still ran at the next release) or `missed` (never ran)"),
    ("deadline_misses", "`overruns` (still ran at the next release) or `missed` (never ran)"),
    ("missed_deadlines", "`overruns` (still ran at the next release) or `missed` (never ran)"),
    ("response_time", "`response`"),
    ("execution_time", "`execution`"),
    ("exec_time", "`execution`"),
    ("laxity", "`slack`"),
    ("slack_time", "`slack`"),
    ("skipped_cycles", "`missed`"),
    ("lost_cycles", "`missed`"),
    ("lost_samples", "`unrecorded`"),
    ("dropped_samples", "`unrecorded`"),
    ("spin_margin", "`margin`"),
    ("guard_time", "`margin`"),
];

/// Words of prose that are refused, and what to write instead.
const PROSE: &[(&str, &str)] = &[("tardiness", "lateness"), ("laxity", "slack")];

/// Words that never stand alone in prose.
const NEVER_ALONE: &[(&str, &str)] =
    &[("jitter", "say which: peak-to-peak or rms about the grid, or of the interval")];

/// Words that say which, when they stand before one that never stands alone.
const QUALIFIERS: &[&str] = &[
    "peak-to-peak",
    "pp",
    "rms",
    "timing",
    "interval",
    "lateness",
    "period",
    "wakeup",
    "wake-up",
    "scheduling",
    "response",
    "base",
    "servo",
];

/// Endings of identifiers that say a scale the project does not use.
const ENDINGS: &[(&str, &str)] = &[
    ("_percent", "a share in 0..1: `_share`"),
    ("_pct", "a share in 0..1: `_share`"),
    ("_percentage", "a share in 0..1: `_share`"),
    ("_nanos", "`_ns`"),
    ("_micros", "`_us`"),
    ("_millis", "`_ms`"),
    ("_usec", "`_us`"),
    ("_nsec", "`_ns`"),
    ("_msec", "`_ms`"),
];

/// Identifiers with such an ending that belong to others: the standard library and the kernel.
const FOREIGN: &[&str] = &[
    "as_nanos",
    "as_micros",
    "as_millis",
    "from_nanos",
    "from_micros",
    "from_millis",
    "subsec_nanos",
    "subsec_micros",
    "subsec_millis",
    "tv_nsec",
    "tv_usec",
];

/// A word at its place in prose.
pub(super) struct Word<'t> {
    pub(super) text: &'t str,
    at: usize,
    /// In code marks, quotation marks or emphasis.
    pub(super) marked: bool,
}

/// All checks of this file.
pub(crate) fn check(file: &File, found: &mut Vec<Finding>) {
    if LAWS.contains(&file.path.as_str()) {
        return;
    }
    if let Some(rust) = &file.rust {
        identifiers(file, rust, found);
        prose(file, &rust.comments, found);
        prose(file, &sentences(&rust.strings), found);
    } else if file.path.ends_with(".md") {
        prose(file, &without_code_blocks(&file.text), found);
    }
}

fn line(file: &File, at: usize) -> usize {
    file.text.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count() + 1
}

fn identifiers(file: &File, rust: &Source, found: &mut Vec<Finding>) {
    let is_word = |c: char| c == '_' || c.is_alphanumeric();
    for (at, name) in split(&rust.code, is_word) {
        let lower = name.to_lowercase();
        let refused = IDENTIFIERS.iter().find(|(banned, _)| *banned == lower).or_else(|| {
            // The name of a test is a sentence.
            let free = FOREIGN.contains(&lower.as_str()) || file.is_test() || rust.is_test(at);
            ENDINGS.iter().find(|(ending, _)| !free && lower.ends_with(ending))
        });
        if let Some((_, instead)) = refused {
            let problem = format!("the name `{name}`");
            let why = "a thing has one name (docs/glossary.md)";
            found.push(file.finding("word", line(file, at), problem, why, *instead));
        }
    }
}

fn prose(file: &File, text: &str, found: &mut Vec<Finding>) {
    let mut before = String::new();
    for word in words(text) {
        let lower = word.text.to_lowercase();
        if !word.marked {
            let refused = PROSE.iter().find(|(banned, _)| *banned == lower).or_else(|| {
                let qualified = QUALIFIERS.contains(&before.as_str()) || before.ends_with("'s");
                NEVER_ALONE.iter().find(|(bare, _)| !qualified && *bare == lower)
            });
            if let Some((_, instead)) = refused {
                let problem = format!("the word \"{}\"", word.text);
                let why = "a thing has one name (docs/glossary.md)";
                found.push(file.finding("word", line(file, word.at), problem, why, *instead));
            }
        }
        before = lower;
    }
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

/// The words of prose. What stands between two marks of one line is marked.
pub(super) fn words(text: &str) -> Vec<Word<'_>> {
    let belongs = |c: char| c.is_alphanumeric() || "_-'’".contains(c);
    let mut marks = Vec::new();
    let mut line_start = 0;
    for text_line in text.split_inclusive('\n') {
        for mark in ['`', '"', '*'] {
            let places: Vec<usize> =
                text_line.match_indices(mark).map(|(at, _)| line_start + at).collect();
            marks.extend(places.chunks_exact(2).map(|pair| pair[0]..pair[1]));
        }
        for (open, close) in [('“', '”'), ('‘', '’')] {
            let places = text_line.find(open).zip(text_line.rfind(close));
            marks.extend(places.map(|(from, to)| line_start + from..line_start + to));
        }
        line_start += text_line.len();
    }
    split(text, belongs)
        .into_iter()
        .map(|(at, text)| Word { text, at, marked: marks.iter().any(|range| range.contains(&at)) })
        .collect()
}

/// The strings that are more than a word, the others blank.
fn sentences(strings: &str) -> String {
    // Code stands between two strings as more than one blank.
    let mut kept = String::with_capacity(strings.len());
    for text_line in strings.split_inclusive('\n') {
        let mut rest = text_line;
        while !rest.is_empty() {
            let end = rest.find("  ").unwrap_or(rest.len());
            let (piece, after) = rest.split_at(end);
            if piece.trim().contains(' ') {
                kept.push_str(piece);
            } else {
                kept.extend(piece.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
            }
            let blanks = after.bytes().take_while(|&byte| byte == b' ').count();
            kept.push_str(&after[..blanks]);
            rest = &after[blanks..];
        }
    }
    kept
}

/// Markdown with its fenced blocks blank.
fn without_code_blocks(text: &str) -> String {
    let mut fenced = false;
    text.split_inclusive('\n')
        .map(|text_line| {
            let fence = text_line.trim_start().starts_with("```");
            fenced ^= fence;
            if fence || fenced {
                text_line.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }).collect()
            } else {
                text_line.to_owned()
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whats(path: &str, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        check(&File::new(path, text), &mut found);
        found.into_iter().map(|finding| format!("{}: {}", finding.line, finding.problem)).collect()
    }

    #[test]
    fn bare_identifiers_are_refused_and_qualified_ones_are_not() {
        assert_eq!(whats("a/a.rs", "fn a() {\n    let jitter = 1;\n}\n"), ["2: the name `jitter`"]);
        assert_eq!(whats("a/a.rs", "struct A { wake_time: u64 }\n").len(), 1);
        assert!(whats("a/a.rs", "let jitter_pp_ns = cpu_dma_latency;\n").is_empty());
        assert!(whats("a/a.rs", "let a = get(\"jitter\");\n").is_empty(), "another's key");
    }

    #[test]
    fn every_banned_name_is_found() {
        for (banned, _) in IDENTIFIERS {
            assert_eq!(whats("a/a.rs", &format!("let {banned} = 1;\n")).len(), 1, "{banned}");
        }
        for (ending, _) in ENDINGS {
            assert_eq!(whats("a/a.rs", &format!("let idle{ending} = 1;\n")).len(), 1, "{ending}");
        }
        assert!(whats("a/a.rs", "d.as_nanos() + t.tv_nsec\n").is_empty());
        assert!(whats("a/tests/a.rs", "fn at_95_percent() {}\n").is_empty());
    }

    #[test]
    fn standard_terms_are_not_refused() {
        let code = "fn a(latency_ns: u64, activation: u64) { let hyperperiod = 1; }\n";
        assert!(whats("a/a.rs", code).is_empty());
        assert!(whats("a/a.rs", "// The latency of an activation, per hyperperiod.\n").is_empty());
    }

    #[test]
    fn bare_words_in_comments_are_refused() {
        assert_eq!(whats("a/a.rs", "//! A.\n// The jitter is 5.\n").len(), 1);
        assert!(whats("a/a.rs", "// `jitter`, peak-to-peak\n// jitter\n").is_empty());
        assert!(whats("a/a.rs", "// NIST's jitter; a tool's \"jitter\"; a-jitter\n").is_empty());
    }

    #[test]
    fn sentences_in_strings_are_prose() {
        assert_eq!(whats("a/a.rs", "let a = \"the jitter is {}\";\n").len(), 1);
        assert!(whats("a/a.rs", "let a = (\"jitter\", \"jitter\");\n").is_empty());
    }

    #[test]
    fn markdown_is_prose_beside_its_code() {
        assert_eq!(whats("a.md", "# A\n\nLow jitter.\n"), ["3: the word \"jitter\""]);
        assert!(whats("a.md", "# A\n\n```\njitter\n```\n\n`--jitter` and *jitter*\n").is_empty());
        assert!(whats("docs/glossary.md", "Jitter.\n").is_empty());
    }
}
