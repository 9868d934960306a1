//! The text of a file: its shape, marks left behind, messages that a user would have to guess at,
//! titles and links of Markdown, the glossary, and places that exist on one machine only.
//!
//! Looks at one file's text at a time; links and the glossary are held against the whole tree. How
//! long a file is decides nothing: a noun is one file.

use std::collections::BTreeSet;
use std::path::Path;

use super::source::{Source, split};
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
pub(crate) fn check(file: &File, machine: &Machine, found: &mut Vec<Finding>) {
    places(file, machine, found);
    if !file.is_data() {
        layout(file, found);
        title(file, found);
        if let Some(rust) = &file.rust {
            messages(file, rust, found);
        }
    }
}

fn layout(file: &File, found: &mut Vec<Finding>) {
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

/// One title a document.
fn title(file: &File, found: &mut Vec<Finding>) {
    if !file.path.ends_with(".md") {
        return;
    }
    let titles: Vec<usize> = lines_outside_code(&file.text)
        .filter(|(_, line)| line.starts_with("# "))
        .map(|(number, _)| number)
        .collect();
    if titles.len() != 1 {
        found.push(file.finding(
            "title",
            titles.get(1).copied().unwrap_or(1),
            format!("{} lines begin with `# `", titles.len()),
            "a document has one subject",
            "exactly one `# Title`",
        ));
    }
}

/// Links from one document to another, or to a folder.
pub(crate) fn check_links(files: &[File], found: &mut Vec<Finding>) {
    for file in files.iter().filter(|file| file.path.ends_with(".md") && !file.is_data()) {
        let folder = file.path.rfind('/').map_or("", |end| &file.path[..end]);
        for (number, line) in lines_outside_code(&file.text) {
            for goal in line.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
                let goal = goal.split('#').next().unwrap_or_default();
                if goal.is_empty() || goal.contains("://") || goal.starts_with("mailto:") {
                    continue;
                }
                let path = join(folder, goal);
                let inside = format!("{path}/");
                if !files.iter().any(|file| file.path == path || file.path.starts_with(&inside)) {
                    let problem = format!("a link to `{goal}`");
                    let why = "there is no such file";
                    found.push(file.finding("link", number, problem, why, "the path from here"));
                }
            }
        }
    }
}

/// Names of the code in the first column of the glossary's tables: each is in use.
pub(crate) fn check_glossary(files: &[File], found: &mut Vec<Finding>) {
    let Some(glossary) = files.iter().find(|file| file.path == "docs/glossary.md") else { return };
    let is_name = |c: char| c == '_' || c.is_alphanumeric();
    let used: BTreeSet<&str> = files
        .iter()
        .filter_map(|file| file.rust.as_ref())
        .flat_map(|rust| split(&rust.code, is_name))
        .map(|(_, name)| name)
        .collect();
    for (number, line) in lines_outside_code(&glossary.text) {
        let term = line.strip_prefix("| ").and_then(|row| row.split('|').next()).unwrap_or("");
        for name in term.split('`').skip(1).step_by(2).filter(|name| !used.contains(name)) {
            let why = "the glossary says what the words of the code mean";
            let instead = "the name that the code has, or no row";
            found.push(glossary.finding("glossary", number, format!("`{name}`"), why, instead));
        }
    }
}

/// `goal` as seen from `folder`, without dots.
fn join(folder: &str, goal: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in goal.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Lines, numbered from 1, outside fenced blocks.
fn lines_outside_code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fence && !fenced).then_some((index + 1, line))
    })
}

/// Hosts that a link may lead to.
const HOSTS: &[&str] = &[
    "apache.org",
    "debian.org",
    "docs.rs",
    "doi.org",
    "example.com",
    "github.com",
    "json-schema.org",
    "kernel.org",
    "linuxcnc.org",
    "man7.org",
    "nist.gov",
    "rust-lang.org",
    "w3.org",
];
/// The prefix by which cargo writes that a locked dependency comes from its own registry, not from
/// a mirror.
const REGISTRY: &str = "registry+https://github.com/rust-lang/";

/// The folders that exist on this machine only.
pub(crate) struct Machine {
    folders: Vec<String>,
}

impl Machine {
    /// The machine on which the tree lies at `root`.
    pub(crate) fn of(root: &Path) -> Self {
        let home = std::env::var("HOME").unwrap_or_default();
        let shared =
            ["/", "/tmp", "/home", "/root", "/usr/src", "/var/tmp", "/opt", "/srv", "/mnt", ""];
        let above = root.ancestors().take(2).map(|folder| folder.display().to_string());
        let folders = above.chain([home]).filter(|at| !shared.contains(&at.as_str())).collect();
        Self { folders }
    }
}

/// Paths of this machine, hosts that nobody knows, and dependencies locked to a mirror.
fn places(file: &File, machine: &Machine, found: &mut Vec<Finding>) {
    let mut start = 0;
    for (index, line) in file.text.split_inclusive('\n').enumerate() {
        // Tests invent addresses.
        let is_test = file.rust.as_ref().is_some_and(|rust| file.is_test() || rust.is_test(start));
        paths(file, machine, index + 1, line, found);
        if file.path.ends_with("Cargo.lock") {
            locked(file, index + 1, line.trim_end(), found);
        } else if !is_test {
            hosts(file, index + 1, line, found);
        }
        start += line.len();
    }
}

fn paths(file: &File, machine: &Machine, number: usize, line: &str, found: &mut Vec<Finding>) {
    for folder in &machine.folders {
        let bytes = line.as_bytes();
        let names_it = line.match_indices(folder.as_str()).any(|(at, _)| {
            let part = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
            let before = at.checked_sub(1).is_some_and(|b| part(bytes[b]) || bytes[b] == b'/');
            !before && !bytes.get(at + folder.len()).is_some_and(|&after| part(after))
        });
        if names_it {
            let why = "that folder is on this machine only";
            let instead = "a path from the root of the tree";
            found.push(file.finding("place", number, format!("`{folder}`"), why, instead));
        }
    }
}

fn locked(file: &File, number: usize, line: &str, found: &mut Vec<Finding>) {
    if let Some(source) = line.strip_prefix("source = ")
        && !source.trim_matches('"').starts_with(REGISTRY)
    {
        let why = "everybody must be able to fetch it";
        found.push(file.finding("place", number, source, why, format!("`{REGISTRY}`")));
    }
}

fn hosts(file: &File, number: usize, line: &str, found: &mut Vec<Finding>) {
    for (at, scheme) in line.match_indices("https://").chain(line.match_indices("http://")) {
        let host: String = line[at + scheme.len()..]
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || ".-".contains(*c))
            .collect();
        let known = |known: &str| {
            host.strip_suffix(known).is_some_and(|sub| sub.is_empty() || sub.ends_with('.'))
        };
        if !host.is_empty() && !HOSTS.iter().any(|host| known(host)) {
            let why = "a link must lead everybody to the same place";
            let instead = "a public host; if this is one, add it to xtask/src/tidy/text.rs";
            found.push(file.finding("place", number, format!("the host `{host}`"), why, instead));
        }
    }
}

/// This file, which must name the phrases that it refuses.
const HERE: &str = "xtask/src/tidy/text.rs";
/// Phrases that a user would have to guess at, and what to write instead.
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

/// Phrases of [`PHRASES`] in strings beside tests, and in the comments that are the manual of the
/// command line.
fn messages(file: &File, rust: &Source, found: &mut Vec<Finding>) {
    if file.is_test() || file.path == HERE {
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

/// Returns true where `text` begins with a string that is this word alone: a name, such as the user
/// `nobody`.
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

/// Returns true where `words` of `text` begin with `phrase`, in one sentence of one string or
/// comment.
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

/// Returns true where the gap between two words joins them: a blank, or the break of a string or
/// comment that goes on in the next line.
fn joined(gap: &str) -> bool {
    let goes_on = gap.trim_start_matches(' ').starts_with('\\') || gap.contains("//");
    gap == " " || (goes_on && gap.chars().all(|c| c.is_whitespace() || "\\/!".contains(c)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout_checks(path: &str, text: &str) -> Vec<&'static str> {
        let mut found = Vec::new();
        layout(&File::new(path, text), &mut found);
        found.iter().map(|finding| finding.check).collect()
    }

    #[test]
    fn a_plain_file_passes() {
        assert_eq!(
            layout_checks("core/src/a.rs", "//! A.\n\nfn todo_list() {}\n"),
            Vec::<&str>::new()
        );
    }

    #[test]
    fn a_missing_opening_is_found_in_rust_only() {
        assert_eq!(layout_checks("core/src/a.rs", "fn a() {}\n"), ["opening"]);
        assert_eq!(layout_checks("a.sh", "true\n"), Vec::<&str>::new());
    }

    #[test]
    fn columns_are_characters_and_a_link_may_be_long() {
        let wide = |c: &str| format!("//! {}\n", c.repeat(97));
        assert_eq!(layout_checks("a/a.rs", &wide("x")), ["columns"]);
        assert_eq!(
            layout_checks("a/a.rs", &format!("//! {}\n", "µ".repeat(96))),
            Vec::<&str>::new()
        );
        assert_eq!(
            layout_checks("a/a.rs", &format!("//! https://{}\n", "x".repeat(99))),
            Vec::<&str>::new()
        );
    }

    #[test]
    fn each_mark_is_found_and_part_of_a_word_is_not() {
        for (mark, _) in MARKS {
            assert_eq!(
                layout_checks("a/a.rs", &format!("//! A.\n// {mark} b\n")),
                ["mark"],
                "{mark}"
            );
            assert_eq!(
                layout_checks("a/a.rs", &format!("//! A.\n// A{mark} b\n")),
                Vec::<&str>::new()
            );
        }
    }

    #[test]
    fn a_module_is_named_by_its_file() {
        assert_eq!(layout_checks("a/src/b/mod.rs", "//! B.\n"), ["module"]);
        assert_eq!(layout_checks("a/tests/b/c/mod.rs", "//! C.\n"), ["module"]);
        assert_eq!(layout_checks("a/src/b.rs", "//! B.\n"), Vec::<&str>::new());
        assert_eq!(layout_checks("a/tests/common/mod.rs", "//! Shared.\n"), Vec::<&str>::new());
    }

    #[test]
    fn a_document_has_one_title() {
        let count = |text: &str| {
            let mut found = Vec::new();
            title(&File::new("a.md", text), &mut found);
            found.len()
        };
        assert_eq!(count("# A\n\n## B\n\n```sh\n# a comment\n```\n"), 0);
        assert_eq!(count("# A\n\n# B\n"), 1);
        assert_eq!(count("A\n"), 1);
    }

    #[test]
    fn a_name_in_the_glossary_is_in_use() {
        let glossary = "| Word | `old` |\n|---|---|\n| spread, `rms_ns` | `lost` |\n| `gone` | |\n";
        let files =
            [File::new("docs/glossary.md", glossary), File::new("a/a.rs", "let rms_ns = 1;\n")];
        let mut found = Vec::new();
        check_glossary(&files, &mut found);
        let shown: Vec<_> = found.iter().map(|finding| (finding.line, &*finding.problem)).collect();
        assert_eq!(shown, [(4, "`gone`")]);
    }

    #[test]
    fn a_link_leads_somewhere() {
        let broken = |text: &str| {
            let files = [File::new("docs/a.md", text), File::new("core/src/lib.rs", "")];
            let mut found = Vec::new();
            check_links(&files, &mut found);
            found.len()
        };
        assert_eq!(broken("[a](../core/src/lib.rs) [b](a.md#part) [c](../core) [d](#part)"), 0);
        assert_eq!(broken("[a](https://docs.rs/x) and `x[i](y)`"), 1, "known limit: code marks");
        assert_eq!(broken("[a](b.md)"), 1);
    }

    fn places_found(path: &str, text: &str) -> Vec<String> {
        let machine = Machine { folders: vec!["/data/tree".to_owned(), "/data".to_owned()] };
        let mut found = Vec::new();
        places(&File::new(path, text), &machine, &mut found);
        found.into_iter().map(|finding| finding.problem).collect()
    }

    #[test]
    fn a_path_of_this_machine_is_found() {
        assert_eq!(places_found("a.md", "see /data/tree/core\n"), ["`/data/tree`", "`/data`"]);
        assert_eq!(places_found("a.sh", "x=\"/data/x\"\n"), ["`/data`"]);
        assert!(places_found("a.md", "see /sys/data/x, /database and other/data/x\n").is_empty());
    }

    #[test]
    fn shared_folders_belong_to_every_machine() {
        let machine = Machine::of(Path::new("/tmp/clone"));
        assert!(machine.folders.contains(&"/tmp/clone".to_owned()));
        assert!(!machine.folders.contains(&"/tmp".to_owned()));
    }

    #[test]
    fn an_unknown_host_is_found() {
        let link = |to: &str| places_found("a.rs", &format!("// <https://{to}>\n"));
        assert!(link("man7.org/x").is_empty() && link("www.kernel.org/doc").is_empty());
        assert_eq!(link("mirror.invalid/x"), ["the host `mirror.invalid`"]);
        assert_eq!(link("notgithub.com"), ["the host `notgithub.com`"]);
        assert!(places_found("a/tests/a.rs", "const A: &str = \"http://box/x\";\n").is_empty());
    }

    #[test]
    fn locked_sources_are_the_public_registry() {
        let locked =
            |from: &str| places_found("fuzz/Cargo.lock", &format!("source = \"{from}\"\n"));
        assert!(locked(REGISTRY).is_empty());
        assert_eq!(locked("sparse+https://mirror.example.com/").len(), 1);
    }

    fn phrases_found(path: &str, text: &str) -> Vec<String> {
        let file = File::new(path, text);
        let mut found = Vec::new();
        messages(&file, file.rust.as_ref().unwrap(), &mut found);
        found.into_iter().map(|finding| format!("{}: {}", finding.line, finding.problem)).collect()
    }

    #[test]
    fn every_phrase_is_found_in_a_string() {
        for (phrase, _) in PHRASES {
            let text = format!("let a = \"unit {{name:?}}: {phrase}, so\";\n");
            assert_eq!(phrases_found("a/src/b.rs", &text), [format!("1: the phrase \"{phrase}\"")]);
        }
    }

    #[test]
    fn a_string_over_two_lines_is_one() {
        let text = "let a = \"it ended in \\\n         good order\";\n";
        assert_eq!(phrases_found("a/src/b.rs", text), ["1: the phrase \"in good order\""]);
        assert!(phrases_found("a/src/b.rs", "f(\"it is of\", \"nothing\");\n").is_empty());
        assert!(phrases_found("a/src/b.rs", "f(\"It is of. Nothing.\");\n").is_empty());
    }

    #[test]
    fn a_string_of_one_word_is_a_name() {
        assert!(phrases_found("a/src/b.rs", "f([\"root\", \"nobody\"]);\n").is_empty());
        assert_eq!(phrases_found("a/src/b.rs", "f(\"nobody.\");\n"), ["1: the phrase \"nobody\""]);
    }

    #[test]
    fn only_the_manual_is_read_of_comments() {
        let text = "/// What nobody\n/// there reads.\nfn a() {}\n";
        assert_eq!(phrases_found("cli/src/args/run.rs", text), ["1: the phrase \"nobody there\""]);
        assert!(phrases_found("cli/src/view.rs", text).is_empty());
    }

    #[test]
    fn tests_and_longer_words_are_let_alone() {
        assert!(phrases_found("a/src/b.rs", "#[test]\nfn a() { f(\"of nothing\") }\n").is_empty());
        assert!(phrases_found("a/tests/b.rs", "fn a() { f(\"of nothing\") }\n").is_empty());
        assert!(phrases_found("a/src/b.rs", "f(\"of nothingness\");\n").is_empty());
    }
}
