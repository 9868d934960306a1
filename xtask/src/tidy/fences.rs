//! Rules between crates that the compiler does not hold: unsafe code, lints switched off, wildcard
//! imports, relative sleeps, threads, files and clocks of pure crates, who prints, ignored tests,
//! and what keeps `core` apart.
//!
//! Looks at one file's code at a time, and at the crate roots.

use std::collections::BTreeSet;

use super::source::{Source, is_word};
use super::{File, Finding};

/// Where unsafe code may stand.
const UNSAFE_MEMBERS: &[&str] = &["os", "capi"];
/// And the one file of a board's firmware, whose registers nothing else can reach.
const UNSAFE_FILE: &str = "stimulator/board/src/registers.rs";
/// Where threads are started.
const THREAD_DOOR: &str = "engine/src/spawn.rs";
/// Crates that take everything as an argument: they open no file and read no clock.
const PURE: &[&str] =
    &["analysis", "blame", "core", "document", "export", "import", "plot", "report", "trace"];
/// Ways to a file or a clock.
const FILES_AND_CLOCKS: &[&str] =
    &["std::fs", "fs::", "File::open", "File::create", "Instant::now", "SystemTime::now"];
/// Crates that print: the command line alone, beside what is run by people who work on the project.
const PRINTS: &str = "cli";
/// Ways to print.
const PRINTING: &[&str] = &["println!", "print!", "eprintln!", "eprint!", "dbg!"];
/// Run by people who work on the project, who may see a panic.
const TOOLS: &[&str] = &["testkit", "xtask", "peers", "fuzz", "stimulator"];

/// All checks of one Rust file.
pub(crate) fn check(file: &File, rust: &Source, found: &mut Vec<Finding>) {
    unsafe_code(file, rust, found);
    unreasoned(file, rust, found);
    wildcards(file, rust, found);
    sleeps(file, rust, found);
    threads(file, rust, found);
    purity(file, rust, found);
    ignored(file, rust, found);
}

/// Checks the attributes of the crate roots: `core` has neither `std` nor unsafe code, every other
/// crate beside the door has no unsafe code.
pub(crate) fn check_roots(files: &[File], found: &mut Vec<Finding>) {
    let is_root = |path: &str| {
        let parts: Vec<&str> = path.split('/').collect();
        matches!(parts[..], [_, "src", "lib.rs" | "main.rs"])
    };
    for file in files.iter().filter(|file| is_root(&file.path)) {
        let Some(rust) = &file.rust else { continue };
        let mut wanted = Vec::new();
        if !UNSAFE_MEMBERS.contains(&file.member()) {
            wanted.push(("#![forbid(unsafe_code)]", "all unsafe code lives behind the doors"));
        }
        if ["core", "os"].contains(&file.member()) {
            wanted.push(("#![no_std]", "what cannot name `std` cannot allocate, lock or print"));
        }
        for (attribute, why) in wanted {
            if !rust.code.contains(attribute) {
                let problem = format!("no `{attribute}`");
                found.push(file.finding("root", 1, problem, why, "write it below the `//!` lines"));
            }
        }
    }
    for file in files.iter().filter(|file| file.path.starts_with("core/src/")) {
        let Some(rust) = &file.rust else { continue };
        for (at, _) in rust.code.match_indices("extern crate alloc") {
            let why = "nothing in `core` can allocate";
            let problem = "`extern crate alloc`";
            found.push(file.finding(
                "root",
                rust.line(at),
                problem,
                why,
                "borrow the caller's storage",
            ));
        }
    }
}

fn unsafe_code(file: &File, rust: &Source, found: &mut Vec<Finding>) {
    if UNSAFE_MEMBERS.contains(&file.member()) || file.path == UNSAFE_FILE {
        return;
    }
    let bytes = rust.code.as_bytes();
    for (at, word) in rust.code.match_indices("unsafe") {
        let before = at.checked_sub(1).is_some_and(|before| is_word(bytes[before]));
        if !before && !bytes.get(at + word.len()).is_some_and(|&after| is_word(after)) {
            found.push(file.finding(
                "unsafe",
                rust.line(at),
                "`unsafe`",
                "all unsafe code lives behind two doors, `os` and `capi`",
                "a safe function of `punctual-os`",
            ));
        }
    }
}

fn unreasoned(file: &File, rust: &Source, found: &mut Vec<Finding>) {
    for opening in ["#[allow(", "#![allow(", "#[expect(", "#![expect("] {
        for (at, _) in rust.code.match_indices(opening) {
            let line = rust.line(at);
            let close = rust.code[at..].find(']').map_or(rust.code.len(), |length| at + length);
            if !rust.code[at..close].contains("reason") && !rust.has_comment_near(line) {
                found.push(file.finding(
                    "allow",
                    line,
                    format!("`{opening}…)]` without a reason"),
                    "a lint is switched off for a reason or not at all",
                    "add `reason = \"…\"`, or a comment on this line or the one before",
                ));
            }
        }
    }
}

fn wildcards(file: &File, rust: &Source, found: &mut Vec<Finding>) {
    for (at, _) in rust.code.match_indices("::*") {
        let head = rust.code[..at].rfind(['\n', ';', '}']).map_or(0, |before| before + 1);
        let path = rust.code[head..at].trim();
        let imports = path.starts_with("use ") || path.starts_with("pub use ");
        let in_tests = file.is_test() || rust.is_test(at);
        let known = path.ends_with("prelude") || (in_tests && path.ends_with("super"));
        if imports && !known {
            found.push(file.finding(
                "wildcard",
                rust.line(at),
                format!("`{path}::*`"),
                "a reader must see where each name comes from",
                "name what is used (`use super::*` is for tests)",
            ));
        }
    }
}

fn sleeps(file: &File, rust: &Source, found: &mut Vec<Finding>) {
    for (at, _) in rust.code.match_indices("thread::sleep") {
        let line = rust.line(at);
        if !file.is_test() && !rust.is_test(at) && !rust.has_comment_near(line) {
            found.push(file.finding(
                "sleep",
                line,
                "`thread::sleep` without a reason",
                "a relative sleep drifts by its own lateness",
                "sleep until an instant, or say in a comment here why it does not matter",
            ));
        }
    }
}

/// Checks that threads are started through their door alone. A process has no argument where it is
/// started, a thread what it runs.
fn threads(file: &File, rust: &Source, found: &mut Vec<Finding>) {
    if file.path == THREAD_DOOR || TOOLS.contains(&file.member()) || file.is_test() {
        return;
    }
    for start in ["thread::spawn", "thread::Builder", ".spawn_scoped(", ".spawn("] {
        for (at, _) in rust.code.match_indices(start) {
            let is_process = start == ".spawn(" && rust.code[at + start.len()..].starts_with(')');
            if !is_process && !rust.is_test(at) {
                found.push(file.finding(
                    "thread",
                    rust.line(at),
                    format!("`{start}`"),
                    "where no thread can be had it panics, or the limit is not named",
                    "`punctual_engine::spawn`: named threads, and an error in words",
                ));
            }
        }
    }
}

/// Checks that a pure crate takes its arguments alone, and that only the command prints.
fn purity(file: &File, rust: &Source, found: &mut Vec<Finding>) {
    let is_source = file.path.split('/').nth(1) == Some("src");
    let (member, is_tool) = (file.member(), TOOLS.contains(&file.member()));
    if !is_source || is_tool || file.is_test() {
        return;
    }
    let mut forbid = |words: &[&str], why, instead| {
        // A path may hold several of them.
        let mut lines = BTreeSet::new();
        for word in words {
            for (at, _) in rust.code.match_indices(word) {
                let before = at.checked_sub(1).map(|before| rust.code.as_bytes()[before]);
                let is_whole = !before.is_some_and(is_word);
                if is_whole && !rust.is_test(at) && lines.insert(rust.line(at)) {
                    let problem = format!("`{word}` in `{member}`");
                    found.push(file.finding("pure", rust.line(at), problem, why, instead));
                }
            }
        }
    };
    if PURE.contains(&member) {
        let why = "this crate is pure: the same arguments give the same result";
        forbid(FILES_AND_CLOCKS, why, "take bytes, a reader or an instant as an argument");
    }
    if member != PRINTS {
        let why = "only the command line prints";
        forbid(PRINTING, why, "return it");
    }
}

fn ignored(file: &File, rust: &Source, found: &mut Vec<Finding>) {
    for (at, _) in rust.code.match_indices("#[ignore") {
        found.push(file.finding(
            "ignored",
            rust.line(at),
            "`#[ignore]`",
            "a test that is not run tests nothing",
            "`punctual_testkit::skip::need`, which counts and names the skip",
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checks(path: &str, text: &str) -> Vec<&'static str> {
        let file = File::new(path, text);
        let mut found = Vec::new();
        check(&file, file.rust.as_ref().unwrap(), &mut found);
        found.iter().map(|finding| finding.check).collect()
    }

    fn roots(path: &str, text: &str) -> usize {
        let mut found = Vec::new();
        check_roots(&[File::new(path, text)], &mut found);
        found.len()
    }

    #[test]
    fn a_pure_crate_takes_arguments_and_only_the_command_prints() {
        for text in [
            "use std::fs;\n",
            "use std::fs::read;\n",
            "fn a() { std::fs::read(b); }\n",
            "fn a() { File::open(b); }\n",
            "fn a() { std::fs::File::open(b); }\n",
            "fn a() { Instant::now(); }\n",
            "fn a() { std::time::SystemTime::now(); }\n",
        ] {
            assert_eq!(checks("analysis/src/a.rs", text), ["pure"], "{text}");
            assert!(checks("host/src/a.rs", text).is_empty(), "{text}");
            assert!(checks("analysis/tests/a.rs", text).is_empty(), "{text}");
        }
        let prints = "fn a() { println!(); }\n";
        assert_eq!(checks("lab/src/a.rs", prints), ["pure"]);
        assert_eq!(checks("lab/src/a.rs", "fn a() { std::println!(); }\n"), ["pure"]);
        for path in ["cli/src/a.rs", "xtask/src/a.rs", "lab/examples/a.rs"] {
            assert!(checks(path, prints).is_empty(), "{path}");
        }
        let tested = "#[cfg(test)]\nmod tests {\n    fn a() { std::fs::read(b); }\n}\n";
        assert!(checks("analysis/src/a.rs", tested).is_empty());
    }

    #[test]
    fn unsafe_code_stays_behind_the_doors() {
        let text = "fn a() { unsafe { b() } }\n";
        assert_eq!(checks("host/src/a.rs", text), ["unsafe"]);
        assert_eq!(checks("stimulator/board/src/main.rs", text), ["unsafe"]);
        assert!(checks(UNSAFE_FILE, text).is_empty());
        assert!(checks("os/src/a.rs", text).is_empty());
        let words = "#![forbid(unsafe_code)] // no unsafe\nconst A: &str = \"unsafe\";\n";
        assert!(checks("host/src/a.rs", words).is_empty());
    }

    #[test]
    fn a_lint_is_switched_off_with_its_reason() {
        assert_eq!(checks("a/src/a.rs", "#[allow(dead_code)]\nfn a() {}\n"), ["allow"]);
        assert_eq!(checks("a/src/a.rs", "#![expect(unused)]\n"), ["allow"]);
        let reasoned = "#[allow(dead_code, reason = \"the kernel's field\")]\nfn a() {}\n";
        assert!(checks("a/src/a.rs", reasoned).is_empty());
        assert!(
            checks("a/src/a.rs", "// The kernel's.\n#[allow(dead_code)]\nfn a() {}\n").is_empty()
        );
    }

    #[test]
    fn wildcards_are_for_tests() {
        assert_eq!(checks("a/src/a.rs", "use b::c::*;\n"), ["wildcard"]);
        assert_eq!(checks("a/src/a.rs", "use super::*;\n"), ["wildcard"]);
        let in_tests =
            "#[cfg(test)]\nmod tests {\n    use super::*;\n    use proptest::prelude::*;\n}\n";
        assert!(checks("a/src/a.rs", in_tests).is_empty());
    }

    #[test]
    fn a_relative_sleep_says_why() {
        assert_eq!(checks("a/src/a.rs", "fn a() {\n\n    std::thread::sleep(d);\n}\n"), ["sleep"]);
        let text = "fn a() {\n    // Polls; nothing is measured.\n    std::thread::sleep(d);\n}\n";
        assert!(checks("a/src/a.rs", text).is_empty());
        assert!(checks("a/tests/a.rs", "fn a() {\n\n    std::thread::sleep(d);\n}\n").is_empty());
    }

    #[test]
    fn threads_are_started_through_their_door() {
        for start in ["std::thread::spawn(run)", "s.spawn(|| 1)", "b.spawn_scoped(s, run)"] {
            let text = format!("fn a() {{ {start}; }}\n");
            assert_eq!(checks("lab/src/a.rs", &text), ["thread"], "{start}");
            assert!(checks("lab/tests/a.rs", &text).is_empty());
            assert!(checks("lab/src/b/tests.rs", &text).is_empty());
            assert!(checks("engine/src/spawn.rs", &text).is_empty());
            assert!(checks("xtask/src/a.rs", &text).is_empty(), "a tool of the project");
            let test = format!("#[cfg(test)]\nmod tests {{\n    fn a() {{ {start}; }}\n}}\n");
            assert!(checks("lab/src/a.rs", &test).is_empty());
        }
        assert_eq!(checks("cli/src/a.rs", "use std::thread::Builder;\n"), ["thread"]);
        let process = "fn a() { command.spawn()?; spawn::plain(\"a\", run)?; }\n";
        assert!(checks("lab/src/a.rs", process).is_empty());
    }

    #[test]
    fn no_test_is_ignored() {
        assert_eq!(
            checks("a/tests/a.rs", "#[test]\n#[ignore = \"slow\"]\nfn a() {}\n"),
            ["ignored"]
        );
    }

    #[test]
    fn crate_roots_say_what_they_cannot_do() {
        assert_eq!(roots("core/src/lib.rs", "//! A.\n#![no_std]\n#![forbid(unsafe_code)]\n"), 0);
        assert_eq!(roots("core/src/lib.rs", "//! A.\n"), 2);
        assert_eq!(roots("os/src/lib.rs", "//! A.\n#![no_std]\n"), 0);
        assert_eq!(roots("cli/src/main.rs", "//! A.\n"), 1);
        assert_eq!(roots("core/src/a.rs", "extern crate alloc;\n"), 1);
    }
}
