//! The guides of docs/guide: every command in them runs, in its order, and none is refused.
//!
//! With short durations, and without what installs or needs no measuring.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{Dir, punctual};

/// Runs a guide's commands one after the other in a directory of their own.
fn runs(name: &str) {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guide").join(name);
    let text = fs::read_to_string(&guide).expect("a guide");
    assert!(text.lines().count() <= 40, "{name}: one screen");
    let dir = Dir::new(&format!("guide-{name}"));
    let program = punctual().get_program().to_string_lossy().into_owned();
    let commands: Vec<String> = text.lines().filter_map(command).collect();
    assert!(commands.len() >= 2, "{name}: {commands:?}");
    for line in commands {
        let out = Command::new("sh")
            .args(["-c", &format!("{program}{line}")])
            .current_dir(&dir.0)
            .env("XDG_STATE_HOME", &dir.0)
            .output()
            .expect("sh starts");
        let said = String::from_utf8_lossy(&out.stderr);
        // 1: a limit or a claim failed, which is an answer too.
        assert!(matches!(out.status.code(), Some(0 | 1)), "{name}: punctual{line}: {said}");
    }
}

/// The arguments of an indented line that runs this program, for a short time.
fn command(line: &str) -> Option<String> {
    let line = line.strip_prefix("    ")?;
    let line = line.strip_prefix("sudo ").unwrap_or(line).strip_prefix("punctual")?;
    let words: Vec<&str> = line.split(' ').collect();
    let at = words.iter().position(|word| *word == "-d");
    let mut words: Vec<String> = words.into_iter().map(ToOwned::to_owned).collect();
    match at {
        Some(at) => "1s".clone_into(&mut words[at + 1]),
        None if line.starts_with(" check") => words.push("-d 1s".to_owned()),
        None => {}
    }
    Some(words.join(" "))
}

#[test]
fn linuxcnc_runs() {
    runs("linuxcnc.md");
}

#[test]
fn robot_runs() {
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
