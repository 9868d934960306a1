//! Messages: phrases that a user would have to guess at, each with what to write instead.
//!
//! Looks at strings beside tests, and at the comments that are the manual of the command line.

use super::source::Source;
use super::words::{LAWS, split};
use super::{File, Finding};

/// Phrases that are refused, and what to write instead.
const PHRASES: &[(&str, &str)] = &[
    ("a budget of nothing", "budget must be greater than 0"),
    ("of nothing", "must be greater than 0 (got …)"),
    ("of none", "must be greater than 0, or: there is no …"),
    ("from 0 on", "must not be negative (got …)"),
    ("from 1 on", "must be at least 1 (got …)"),
    ("early calls every", "re-arm interval exceeds the period"),
    ("is full of runs", "cannot create a unique result directory"),
    ("counts are none", "… is corrupt: invalid counts"),
    ("that is none", "invalid …"),
    ("is none that", "unknown …"),
    ("ended well", "succeeded"),
    ("in good order", "exited normally"),
    ("nobody there", "before the task was ready"),
    ("nobody", "no user, no process, no thread: which"),
    ("no cycle that counts", "no cycles measured: and why"),
    ("this is a guest", "virtual machine: stalls caused by the host are included"),
    ("is there at the release", "waits for a release"),
    ("ends at its end", "stops at its end time"),
    ("nothing to us", "is ignored"),
    ("nothing of it", "none of …"),
    ("who hears", "who receives it"),
    ("is told", "receives, or is notified"),
    ("are told", "are stated, or are notified"),
    ("was told", "was started with …"),
    ("not tell", "does not state, or does not record"),
    ("not say", "does not state, or does not record"),
    ("cannot tell", "does not record"),
    ("says nothing", "has no …: and why"),
    ("say nothing", "have no …: and why"),
    ("says so", "prints it, or returns it"),
    ("said so", "printed it, or returned it"),
    ("said no", "refused: and why"),
    ("was asked", "was requested, or: requires …"),
    ("were asked", "were requested"),
    ("asked otherwise", "configuration changed"),
    ("strictly asked", "strict mode"),
];

/// All checks of one Rust file.
pub(crate) fn check(file: &File, rust: &Source, found: &mut Vec<Finding>) {
    if file.is_test() || LAWS.contains(&file.path.as_str()) {
        return;
    }
    let mut masks = vec![&rust.strings];
    if file.member() == "cli" && (file.path.contains("/args/") || file.path.ends_with("/args.rs")) {
        masks.push(&rust.comments);
    }
    for mask in masks {
        for Refused { phrase, instead, at } in refused(mask) {
            if !rust.is_test(at)
                && !is_name(file.text.get(at.saturating_sub(1)..).unwrap_or(""), phrase)
            {
                let problem = format!("the phrase \"{phrase}\"");
                let why = "a message says what is wrong, the value, and what is accepted";
                let instead = format!("for instance \"{instead}\"");
                found.push(file.finding("message", rust.line(at), problem, why, instead));
            }
        }
    }
}

/// Whether `text` begins with a string that is this word alone: a name, such as the user `nobody`.
fn is_name(text: &str, phrase: &str) -> bool {
    let rest = text.strip_prefix('"').and_then(|text| text.strip_prefix(phrase));
    rest.is_some_and(|rest| rest.starts_with('"')) && !phrase.contains(' ')
}

/// A phrase of [`PHRASES`] in a text.
#[derive(Debug, PartialEq, Eq)]
struct Refused {
    phrase: &'static str,
    instead: &'static str,
    /// The byte at which it begins.
    at: usize,
}

/// The refused phrases in `text`; of several at one place the first.
fn refused(text: &str) -> Vec<Refused> {
    let words = split(text, |c| c.is_alphanumeric() || c == '-' || c == '\'');
    let mut found = Vec::new();
    let mut after = 0;
    for (index, (at, _)) in words.iter().enumerate() {
        let hit = PHRASES.iter().find(|(phrase, _)| begins(text, &words[index..], phrase));
        if let Some((phrase, instead)) = hit.filter(|_| index >= after) {
            found.push(Refused { phrase, instead, at: *at });
            after = index + phrase.split(' ').count();
        }
    }
    found
}

/// Whether `words` of `text` begin with `phrase`, in one sentence of one string or comment.
fn begins(text: &str, words: &[(usize, &str)], phrase: &str) -> bool {
    let mut end = None;
    let mut wanted = 0;
    for (part, (at, word)) in phrase.split(' ').zip(words) {
        if !word.eq_ignore_ascii_case(part) || end.is_some_and(|end| !joined(&text[end..*at])) {
            return false;
        }
        end = Some(at + word.len());
        wanted += 1;
    }
    wanted == phrase.split(' ').count()
}

/// Whether what stands between two words joins them: a blank, or the break of a string or comment
/// that goes on in the next line.
fn joined(gap: &str) -> bool {
    let goes_on = gap.trim_start_matches(' ').starts_with('\\') || gap.contains("//");
    gap == " " || (goes_on && gap.chars().all(|c| c.is_whitespace() || "\\/!".contains(c)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whats(path: &str, text: &str) -> Vec<String> {
        let file = File::new(path, text);
        let mut found = Vec::new();
        check(&file, file.rust.as_ref().unwrap(), &mut found);
        found.into_iter().map(|finding| format!("{}: {}", finding.line, finding.problem)).collect()
    }

    #[test]
    fn every_phrase_is_found_in_a_string() {
        for (phrase, _) in PHRASES {
            let text = format!("let a = \"unit {{name:?}}: {phrase}, so\";\n");
            assert_eq!(whats("a/src/b.rs", &text), [format!("1: the phrase \"{phrase}\"")]);
        }
    }

    #[test]
    fn a_string_over_two_lines_is_one() {
        let text = "let a = \"it ended in \\\n         good order\";\n";
        assert_eq!(whats("a/src/b.rs", text), ["1: the phrase \"in good order\""]);
        assert!(whats("a/src/b.rs", "f(\"it is of\", \"nothing\");\n").is_empty());
        assert!(whats("a/src/b.rs", "f(\"It is of. Nothing.\");\n").is_empty());
    }

    #[test]
    fn a_string_of_one_word_is_a_name() {
        assert!(whats("a/src/b.rs", "f([\"root\", \"nobody\"]);\n").is_empty());
        assert_eq!(whats("a/src/b.rs", "f(\"nobody.\");\n"), ["1: the phrase \"nobody\""]);
    }

    #[test]
    fn only_the_manual_is_read_of_comments() {
        let text = "/// What nobody\n/// there reads.\nfn a() {}\n";
        assert_eq!(whats("cli/src/args/run.rs", text), ["1: the phrase \"nobody there\""]);
        assert!(whats("cli/src/view.rs", text).is_empty());
    }

    #[test]
    fn tests_and_longer_words_are_let_alone() {
        assert!(whats("a/src/b.rs", "#[test]\nfn a() { f(\"of nothing\") }\n").is_empty());
        assert!(whats("a/tests/b.rs", "fn a() { f(\"of nothing\") }\n").is_empty());
        assert!(whats("a/src/b.rs", "f(\"of nothingness\");\n").is_empty());
    }
}
