//! The guides of docs/guide and README.md: every command in them runs, in its order, and none is
//! refused.
//!
//! With short durations, and without what installs or needs no measuring.

use std::fs;
use std::path::Path;
use std::process::Command;

use punctual_testkit::skip;

use crate::{Dir, PROGRAM};

/// Runs a guide's commands one after the other in a directory of their own.
fn runs(name: &str) {
    let text = text(&format!("docs/guide/{name}"));
    assert!(text.lines().count() <= 60, "{name}: a page");
    commands_run(name, &text, false);
}

/// A page of this tree.
pub(crate) fn text(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)).expect("a page")
}

/// Runs the commands of a text; with `of_readers`, some read files that only a reader has.
fn commands_run(name: &str, text: &str, of_readers: bool) {
    let dir = Dir::new(&format!("guide-{name}"));
    // What another program wrote, which a guide has analysed.
    let recorded =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/peers/cyclictest/histogram.json");
    fs::copy(recorded, dir.path("cyclictest.json")).expect("copied");
    let commands: Vec<String> = text.lines().filter_map(command).collect();
    assert!(commands.len() >= 2, "{name}: {commands:?}");
    for line in commands {
        let out = Command::new("sh")
            .args(["-c", &format!("{PROGRAM}{line}")])
            .current_dir(&dir.0)
            .env("XDG_STATE_HOME", &dir.0)
            .output()
            .expect("sh starts");
        let errors = String::from_utf8_lossy(&out.stderr);
        // 1: a limit or a claim failed, 3: too little was measured; both are answers too.
        let is_missing = of_readers && errors.contains("No such file or directory");
        let is_answered = matches!(out.status.code(), Some(0 | 1 | 3)) || is_missing;
        assert!(is_answered, "{name}: punctual{line}: {errors}");
    }
}

/// The arguments of an indented line that runs this program, for a short time.
fn command(line: &str) -> Option<String> {
    let line = line.strip_prefix("    ")?;
    let line = line.strip_prefix("sudo ").unwrap_or(line).strip_prefix("punctual")?;
    let words: Vec<&str> = line.split(' ').collect();
    let at = words.iter().position(|word| ["-d", "--duration"].contains(word));
    let mut words: Vec<String> = words.into_iter().map(ToOwned::to_owned).collect();
    match at {
        Some(at) => "1s".clone_into(&mut words[at + 1]),
        None if line.starts_with(" check") => words.push("-d 1s".to_owned()),
        None => {}
    }
    Some(words.join(" "))
}

#[test]
fn readme_runs() {
    commands_run("README.md", &text("README.md"), true);
}

#[test]
fn linuxcnc_runs() {
    runs("linuxcnc.md");
}

#[test]
fn robot_runs() {
    if !skip::need_native("a clock that is read within 250 ns") {
        return;
    }
    runs("robot.md");
}

#[test]
fn audio_runs() {
    runs("audio.md");
}

#[test]
fn ci_runs() {
    runs("ci.md");
}

#[test]
fn library_runs() {
    runs("library.md");
}
