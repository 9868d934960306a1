//! The header says what there is, and how each thing behaves in a loop.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::built::{CAPI, installed, need, output};

const LABELS: [&str; 4] = ["in loop", "in loop, waits", "setup only", "reader side"];

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(CAPI).join(path)).expect("readable")
}

/// The functions that the header declares, each with the comment above it.
fn declared() -> Vec<(String, String)> {
    let text = read("include/punctual.h");
    let mut found = Vec::new();
    let mut comment = String::new();
    let mut inside = false;
    for line in text.lines() {
        if line.starts_with("/*") {
            (comment, inside) = (String::new(), true);
        }
        if inside {
            comment += line;
            comment.push('\n');
            inside = !line.contains("*/");
        } else if let Some((before, _)) = line.split_once('(')
            && let Some(at) = before.rfind("punctual_")
            && !before.starts_with([' ', '#', '}'])
            && !before.starts_with("typedef")
        {
            found.push((before[at..].to_owned(), std::mem::take(&mut comment)));
        }
    }
    found
}

/// Their names.
pub(crate) fn names() -> BTreeSet<String> {
    declared().into_iter().map(|(name, _)| name).collect()
}

#[test]
fn each_function_says_what_it_does_and_where_it_may_be_called() {
    let declared = declared();
    assert!(declared.len() > 30, "{declared:?}");
    for (name, comment) in declared {
        let labels: Vec<&str> =
            comment.lines().filter_map(|line| line.split("Real-time: ").nth(1)).collect();
        assert!(matches!(labels[..], [label] if LABELS.contains(&label)), "{name}: {labels:?}");
        assert!(comment.lines().count() >= 4, "{name} says nothing of itself: {comment}");
    }
}

/// The text between the brackets of each place that has `name(`, and the text after it.
fn calls<'t>(text: &'t str, name: &str) -> Vec<(&'t str, &'t str)> {
    let call = format!("{name}(");
    text.split(&call).skip(1).filter_map(|rest| rest.split_once(')')).collect()
}

#[test]
fn each_function_that_takes_a_pointer_is_tried_with_null() {
    let (text, bad) = (read("include/punctual.h"), read("tests/c/bad.c"));
    let mut tried = 0;
    for name in names() {
        let declared = calls(&text, &name);
        let mut declared = declared.iter().filter(|(_, after)| after.starts_with(" PUNCTUAL_NO"));
        let (parameters, _) = declared.next().expect("it is declared");
        if parameters.contains('*') {
            let null = calls(&bad, &name).iter().any(|(given, _)| given.contains("NULL"));
            assert!(null, "{name} is not called with null in tests/c/bad.c");
            tried += 1;
        }
    }
    assert!(tried > 40, "{tried}");
}

#[test]
fn the_list_of_exports_is_the_headers() {
    let map = read("punctual.map");
    let listed: BTreeSet<String> = map
        .lines()
        .filter_map(|line| line.trim().strip_suffix(';'))
        .filter(|name| name.starts_with("punctual_"))
        .map(str::to_owned)
        .collect();
    assert_eq!(listed, names());
}

/// All Rust files below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("readable"));
    let paths = entries.map(|entry| entry.path());
    paths
        .flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

#[test]
fn each_entry_catches_panics() {
    let mut entries = BTreeSet::new();
    for path in sources(&Path::new(CAPI).join("src")) {
        let text = fs::read_to_string(&path).expect("readable");
        let bodies: Vec<&str> = text.split("#[unsafe(no_mangle)]").skip(1).collect();
        for body in bodies {
            let name = body.split("fn ").nth(1).and_then(|rest| rest.split('(').next());
            let name = name.expect("a function").to_owned();
            let body = body.split("\n}\n").next().expect("its body");
            let first = body.contains("ffi::enter(||") || body.contains("ffi::value(");
            assert!(first, "{name} is open to a panic");
            entries.insert(name);
        }
    }
    assert_eq!(entries, names(), "what is exported is what is declared");
}

/// A static C library has each name once: a name of one version, as in `cfsetspeed@GLIBC_2.2.5`,
/// links with the shared one only.
#[test]
fn the_archive_needs_no_name_of_one_version() {
    if !need(&["nm"]) {
        return;
    }
    let archive = installed("lib/libpunctual.a");
    let needed = output(Command::new("nm").args(["--undefined-only"]).arg(&archive));
    assert!(needed.contains(" U clock_gettime"), "{needed}");
    let tied: Vec<&str> = needed.lines().filter(|line| line.contains('@')).collect();
    assert!(tied.is_empty(), "{tied:?}");
}

#[test]
fn header_and_library_are_of_one_version() {
    let wanted = format!("#define PUNCTUAL_VERSION \"{}\"", env!("CARGO_PKG_VERSION"));
    assert!(read("include/punctual.h").contains(&wanted), "{wanted}");
}
