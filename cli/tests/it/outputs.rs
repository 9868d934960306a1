//! Files that the program writes: whole or as they were, whatever ends it; where they were meant,
//! whoever plants links; never in the place of what is read.

mod ended;
mod inputs;
mod planted;
mod strangers;

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Dir, refused, run, stderr, stdout};

/// A result of three latenesses, in a directory as `check` leaves it.
pub(crate) fn result(dir: &Dir, name: &str) -> PathBuf {
    let made = dir.path(name);
    fs::create_dir_all(&made).expect("writable");
    fs::write(dir.path("a.csv"), "1\n2\n3\n").expect("writable");
    let out = run([
        "analyse".as_ref(),
        dir.path("a.csv").as_os_str(),
        "--column".as_ref(),
        "lateness:us".as_ref(),
        "--json".as_ref(),
        made.join("result.json").as_os_str(),
    ]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    made
}

/// A command that writes one file, and what it reads.
pub(crate) struct Writes {
    pub(crate) args: Vec<String>,
    pub(crate) file: PathBuf,
}

/// Commands that write a file that the user named, one whose name the program chose, and one as
/// Markdown.
pub(crate) fn commands(dir: &Dir) -> [Writes; 3] {
    let made = result(dir, "made");
    let json = dir.path("out/analysis.json");
    fs::create_dir(dir.path("out")).expect("writable");
    let csv = dir.path("a.csv");
    let analyse = ["analyse", text(&csv), "--column", "lateness:us", "--json", text(&json)];
    let report = ["report", text(&made)];
    let markdown = dir.path("issue/analysis.md");
    fs::create_dir(dir.path("issue")).expect("writable");
    let issue = ["analyse", text(&csv), "--column", "lateness:us", "--markdown", text(&markdown)];
    let of = |args: &[&str], file: &Path| Writes {
        args: args.iter().map(|&arg| arg.to_owned()).collect(),
        file: file.to_owned(),
    };
    [of(&analyse, &json), of(&report, &made.join("report.html")), of(&issue, &markdown)]
}

/// What is in a directory, sorted.
pub(crate) fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("readable").flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn a_name_as_long_as_one_may_be_is_written() {
    let dir = Dir::new("outputs-long");
    let made = result(&dir, "made");
    for bytes in [239, 241, 255] {
        let json = made.join("j".repeat(bytes));
        let csv = dir.path("a.csv");
        let out = run(["analyse", text(&csv), "--column", "lateness:us", "--json", text(&json)]);
        assert_eq!(out.status.code(), Some(0), "{bytes}: {}", stderr(&out));
        assert!(json.is_file(), "{bytes}");
    }
}

#[test]
fn markdown_goes_where_it_is_asked_for_and_nowhere_else() {
    let dir = Dir::new("outputs-markdown");
    let csv = dir.path("a.csv");
    fs::write(&csv, "1\n2\n3\n").expect("writable");
    let analyse = ["analyse", text(&csv), "--column", "lateness:us"];
    let with = |more: &[&str]| run([&analyse, more].concat());
    let page = stdout(&with(&[]));
    let markdown = stdout(&with(&["--markdown", "-"]));
    assert!(markdown.starts_with("## punctual analyse\n\n"), "{markdown}");
    assert!(markdown.contains("\n| --- | ---: |"), "{markdown}");
    let (md, json) = (dir.path("a.md"), dir.path("a.json"));
    let out = with(&["--markdown", text(&md), "--json", text(&json)]);
    assert_eq!(stdout(&out), page);
    assert_eq!(fs::read_to_string(&md).expect("written"), markdown);
    let kept = fs::read_to_string(&json).expect("written");
    let out = with(&["--markdown", text(&md), "--json", "-"]);
    assert_eq!(stdout(&out), kept);
    refused(&with(&["--markdown", "-", "--json", "-"]), &["--json - and --markdown -", "a file"]);
    let same = with(&["--markdown", text(&md), "--json", text(&md)]);
    refused(&same, &["--markdown", "a.md", "used for another output"]);
    let none = with(&["--markdown", text(&dir.path("none/a.md"))]);
    refused(&none, &["cannot write", "none/a.md"]);
}
