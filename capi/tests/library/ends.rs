//! Every way to end that C has: the counts, the sample file and `punctual analyse` agree on each
//! release of the span.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::built::{compile, installed, need, output, program};
use crate::programs::source;

/// Ends that C does not have: kind, way, reason.
const ABSENT: [(&str, &str, &str); 6] = [
    ("loop", "time", "it ends by its owner or by a stop"),
    ("loop", "error", "it has no body that could return one"),
    ("loop", "policy", "it has none: its owner sees `missed`"),
    ("loop", "removal", "it is in no executive"),
    ("thread, triggered, unit", "removal", "those of before the run stay as long as it does"),
    ("process", "each", "a program in C is the task, and its executive counts: testkit/tests/ends"),
];

/// The fields of one line.
struct Line<'l> {
    kind: &'l str,
    way: &'l str,
    by: &'l str,
    least: u64,
    most: u64,
    /// Ran and missed; none where the counts are gone.
    counted: Option<(u64, u64)>,
    file: Option<&'l Path>,
}

impl<'l> Line<'l> {
    fn new(line: &'l str) -> Self {
        let words: Vec<&str> = line.split(' ').collect();
        let [kind, way, by, least, most, ran, missed, file, _] = words[..] else {
            panic!("nine words: {line}")
        };
        let number = |word: &str| word.parse::<u64>().ok();
        Self {
            kind,
            way,
            by,
            least: number(least).expect("a number"),
            most: number(most).expect("a number"),
            counted: number(ran).zip(number(missed)),
            file: (file != "-").then(|| Path::new(file)),
        }
    }

    /// The figures of `punctual analyse`: ran, missed, and those of them that are censored.
    fn analysed(&self) -> Option<(u64, u64, u64)> {
        let mut analyse = Command::new(installed("bin/punctual"));
        let result = output(analyse.arg("analyse").arg(self.file?).args(["--json", "-"]));
        let result: Value = serde_json::from_str(&result).expect("JSON");
        let runs = result["runs"].as_array().expect("runs");
        let run = runs.iter().find(|run| run["name"] == self.kind).expect("its run");
        assert_eq!((&result["incomplete"], &run["unrecorded"]), (&false.into(), &0.into()));
        let number = |key: &str| run[key].as_u64().expect(key);
        Some((number("cycles"), number("missed"), number("censored")))
    }
}

#[test]
#[expect(clippy::disallowed_macros, reason = "a test's table, for whoever wants to see it")]
fn each_release_counts_once_in_c_in_the_file_and_in_json_however_it_ends() {
    if !need(&[]) {
        return;
    }
    let built = compile("counts", &program("gcc"), &source("counts.c"), &["-std=c11"]);
    let directory = built.with_extension("samples");
    let _old = fs::remove_dir_all(&directory);
    fs::create_dir(&directory).expect("made here");
    let printed = output(Command::new(built).arg(&directory));
    println!("kind way disturbed releases | ran missed in C | ran missed censored in JSON");
    let mut wrong = Vec::new();
    for line in printed.lines().map(Line::new) {
        let Line { kind, way, by, least, most, counted, .. } = line;
        let analysed = line.analysed();
        let shown = format!("{kind} {way} {by} {least}-{most} | {counted:?} | {analysed:?}");
        println!("{shown}");
        let is_due = |(ran, missed): (u64, u64)| (least..=most).contains(&(ran + missed));
        let in_json = analysed.map(|(ran, missed, _)| (ran, missed));
        let is_right = counted.is_none_or(is_due)
            && in_json.is_none_or(is_due)
            && analysed.is_none_or(|(_, missed, censored)| censored <= missed)
            && (counted.is_none() || in_json.is_none_or(|in_json| Some(in_json) == counted));
        if !is_right {
            wrong.push(shown);
        }
    }
    for (kind, way, reason) in ABSENT {
        println!("{kind} {way} cannot be: {reason}");
    }
    // Five tasks of each of eighteen runs, nine loops, and one task that was removed.
    assert_eq!(printed.lines().count(), 5 * 18 + 9 + 1, "{printed}");
    assert!(wrong.is_empty(), "{wrong:#?}");
    let _gone = fs::remove_dir_all(directory);
}
