//! Files that the program writes: whole or as they were, whatever ends it; where they were meant,
//! whoever plants links; never in the place of what is read.

mod ended;
mod inputs;
mod planted;
mod strangers;

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Dir, run, stderr};

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

/// Commands that write a file that the user named, and one whose name the program chose.
pub(crate) fn commands(dir: &Dir) -> [Writes; 2] {
    let made = result(dir, "made");
    let json = dir.path("out/analysis.json");
    fs::create_dir(dir.path("out")).expect("writable");
    let csv = dir.path("a.csv");
    let analyse = ["analyse", text(&csv), "--column", "lateness:us", "--json", text(&json)];
    let report = ["report", text(&made)];
    let of = |args: &[&str], file: &Path| Writes {
        args: args.iter().map(|&arg| arg.to_owned()).collect(),
        file: file.to_owned(),
    };
    [of(&analyse, &json), of(&report, &made.join("report.html"))]
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
