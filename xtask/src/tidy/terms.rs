//! Terms: names that the project once made up, each with the standard term that replaces it.
//!
//! Looks at what a file declares and at the documentation of its public items, beside tests. Words
//! that also have a plain meaning (`turn`, `exit`, `lead`) are refused as the whole name of a type
//! or module only; `unit`, `place` and `frame` are standard in calendars and are not refused.

use super::source::Source;
use super::source::{Item, items};
use super::words::{LAWS, words};
use super::{File, Finding, functions};

/// Refused as a part of any declared name and in the documentation of public items.
const EVERYWHERE: &[(&str, &str)] = &[
    ("asked", "`request`, `config`"),
    ("told", "`stats`, `imported`, `stated`"),
    ("said", "`message`, `reply`"),
    ("heard", "`observed`, `received`"),
    ("keeper", "`supervisor` (of loads), `checkpointer` (of a soak)"),
    ("crew", "`threads`"),
    ("fleet", "`executives`"),
    ("roster", "`handle`"),
    ("desk", "`entry`"),
    ("seat", "`task_block`: the shared memory of a task that runs elsewhere"),
    ("sitter", "`client`"),
    ("releaser", "`server`"),
    ("occupant", "`child`"),
    ("vigil", "`poller`"),
    ("bury", "`reap`"),
    ("vain", "`unclaimed`"),
    ("rubbish", "`invalid`"),
    ("vacant", "`unattended`"),
    ("looped", "`loop`, `thread_bound`"),
    ("rehearsal", "`warm_up`"),
    ("rehearse", "`warm_up`"),
    ("stretch", "`run` (of a campaign), `span`"),
    ("beside", "`companion` (a thread), else say how they relate"),
];

/// Refused as the whole name of a type or module: in which crates (all where none is named), and
/// what to write instead.
const WHOLE: &[(&str, &[&str], &str)] = &[
    ("door", &[], "`gate`"),
    ("guard", &[], "`monitor`"),
    ("held", &[], "`lock`, or `compared`"),
    ("lead", &[], "`supervisor_loop`"),
    ("life", &[], "`lifecycle`"),
    ("posts", &[], "`remote_releases`"),
    ("site", &[], "`run_context`"),
    ("stage", &[], "`setup`"),
    ("turn", &[], "`dispatch`"),
    ("way", &[], "`wait_policy`"),
    ("ways", &[], "`wait_policies`"),
    ("aim", &["core", "engine", "punctual"], "`target`"),
    ("approach", &["core", "engine", "punctual"], "`wake_plan`"),
    ("exit", &["core", "engine", "punctual"], "`spin_exit`"),
    ("rate", &["core", "engine", "punctual"], "`Period`"),
    ("book", &["capi"], "`registry`"),
    ("border", &["capi"], "`ffi`"),
    ("owned", &["capi"], "`thread_bound`"),
    ("room", &["capi"], "`stats_buffer`"),
    ("shares", &["capi"], "`process_session`"),
];

const WHY: &str = "the field has a term for it (docs/glossary.md)";

/// All checks of one Rust file.
pub(crate) fn check(file: &File, rust: &Source, found: &mut Vec<Finding>) {
    if file.is_test() || LAWS.contains(&file.path.as_str()) {
        return;
    }
    for item in items(rust).filter(|item| !rust.is_test(item.at)) {
        if let Some(instead) = refused(file.member(), &item) {
            let problem = format!("the name `{}`", item.name);
            found.push(file.finding("term", rust.line(item.at), problem, WHY, instead));
        }
        if item.public {
            documentation(file, rust, &item, found);
        }
    }
}

fn refused(member: &str, item: &Item<'_>) -> Option<&'static str> {
    let parts = parts(item.name);
    let part = EVERYWHERE.iter().find(|(old, _)| parts.iter().any(|part| part == old));
    if ["fn", "const", "static", "field"].contains(&item.keyword) {
        return part.map(|(_, instead)| *instead);
    }
    let applies = |members: &[&str]| members.is_empty() || members.contains(&member);
    let whole = || WHOLE.iter().find(|(old, members, _)| parts == [*old] && applies(members));
    part.map(|(_, instead)| *instead).or_else(|| whole().map(|(.., instead)| *instead))
}

fn documentation(file: &File, rust: &Source, item: &Item<'_>, found: &mut Vec<Finding>) {
    let line = rust.line(item.at);
    for doc in functions::doc_above(rust, line) {
        for word in words(doc).into_iter().filter(|word| !word.marked) {
            let lower = word.text.to_lowercase();
            if let Some((old, instead)) = EVERYWHERE.iter().find(|(old, _)| *old == lower) {
                let problem = format!("the word \"{old}\" in the documentation of `{}`", item.name);
                found.push(file.finding("term", line, problem, WHY, *instead));
            }
        }
    }
}

/// The words of a name in snake or camel case, in small letters.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut before = '_';
    for c in name.chars() {
        let starts = c == '_' || (c.is_uppercase() && before.is_lowercase());
        if starts && parts.last().is_some_and(|part| !part.is_empty()) {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut().filter(|_| c != '_') {
            part.extend(c.to_lowercase());
        }
        before = c;
    }
    parts
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
    fn a_name_is_split_into_its_words() {
        assert_eq!(parts("LoadKeeper"), ["load", "keeper"]);
        assert_eq!(parts("MAX_CREW_ns"), ["max", "crew", "ns"]);
        assert_eq!(parts("_seated"), ["seated"]);
    }

    #[test]
    fn every_old_word_is_found_in_a_declared_name() {
        for (old, _) in EVERYWHERE {
            for text in [
                format!("fn set_{old}() {{}}\n"),
                format!("struct A {{\n    pub {old}: u8,\n}}\n"),
                format!("pub(crate) mod {old};\n"),
            ] {
                assert_eq!(whats("a/src/b.rs", &text).len(), 1, "{text}");
            }
        }
        for (old, members, _) in WHOLE {
            let at = format!("{}/src/b.rs", members.first().unwrap_or(&"a"));
            assert_eq!(whats(&at, &format!("mod {old};\n")).len(), 1, "{old}");
            assert!(whats(&at, &format!("fn {old}() {{}}\n")).is_empty(), "{old}");
            assert!(whats(&at, &format!("mod {old}_{old};\n")).is_empty(), "{old}");
            let there = whats("cli/src/b.rs", &format!("mod {old};\n"));
            assert_eq!(there.is_empty(), !members.is_empty(), "{old}");
        }
    }

    #[test]
    fn uses_tests_and_longer_words_are_let_alone() {
        assert!(whats("a/src/b.rs", "let a = keeper.seat();\nfn seated() {}\n").is_empty());
        assert!(whats("a/src/b.rs", "#[test]\nfn what_is_asked() {}\n").is_empty());
        assert!(whats("a/tests/b.rs", "fn asked() {}\n").is_empty());
    }

    #[test]
    fn the_documentation_of_public_items_is_read() {
        let text = "/// What was asked for.\n#[inline]\npub fn a() {}\n";
        assert_eq!(
            whats("a/src/b.rs", text),
            ["3: the word \"asked\" in the documentation of `a`"]
        );
        assert!(whats("a/src/b.rs", "/// What was asked for.\nfn a() {}\n").is_empty());
        assert!(whats("a/src/b.rs", "/// The key `asked`.\npub fn a() {}\n").is_empty());
    }
}
