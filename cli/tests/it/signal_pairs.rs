//! Signals that come in pairs, microseconds apart, as a terminal that closes sends them: one
//! request, and the result is written.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use punctual_os::process::EndSignal;

use crate::support::{Dir, json_file, punctual, signal, stderr, until};

/// The first file of this name below a directory.
fn find(dir: &Path, name: &str) -> Option<PathBuf> {
    let entries: Vec<PathBuf> = fs::read_dir(dir).ok()?.flatten().map(|of| of.path()).collect();
    let here = entries.iter().find(|path| path.ends_with(name)).cloned();
    here.or_else(|| entries.iter().find_map(|path| find(path, name)))
}

/// Sends both signals once `begun`, and waits for a result that is whole.
fn pair(mut command: Command, dir: &Dir, pair: [EndSignal; 2], begun: impl Fn(&Child) -> bool) {
    let what = format!("{command:?} {pair:?}");
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    until(&what, || begun(&child));
    for how in pair {
        signal(&child, how);
    }
    let out = child.wait_with_output().expect("it ends");
    assert!(out.status.code().is_some(), "{what}: {} {}", out.status, stderr(&out));
    let result = find(&dir.0, "result.json");
    let result = result.unwrap_or_else(|| panic!("{what}: no result; {}", stderr(&out)));
    assert!(json_file(&result)["experiment"].is_string(), "{what}");
}

/// Whether samples were written.
fn has_samples(dir: &Path) -> bool {
    let samples = find(dir, "samples.punctual");
    samples.is_some_and(|path| fs::metadata(path).is_ok_and(|meta| meta.len() > 8_000))
}

const PAIRS: [[EndSignal; 2]; 4] = [
    [EndSignal::HangUp, EndSignal::HangUp],
    [EndSignal::HangUp, EndSignal::Terminate],
    [EndSignal::Interrupt, EndSignal::Interrupt],
    [EndSignal::Terminate, EndSignal::HangUp],
];

#[test]
fn a_closed_terminal_leaves_the_result_of_check() {
    for (trial, signals) in PAIRS.into_iter().cycle().take(12).enumerate() {
        let dir = Dir::new(&format!("pairs-check-{trial}"));
        let mut check = punctual();
        check.args(["check", "--duration", "1h", "--period", "200us", "--results"]).arg(&dir.0);
        pair(check, &dir, signals, |_| has_samples(&dir.0));
    }
}

#[test]
fn a_closed_terminal_leaves_the_result_of_all_that_measures() {
    for (trial, signals) in PAIRS.into_iter().enumerate() {
        let dir = Dir::new(&format!("pairs-measure-{trial}"));
        let mut measure = punctual();
        measure.args(["measure", "periodic", "--duration", "1h", "--period", "200us"]);
        measure.arg("--samples").arg(dir.path("samples.punctual"));
        measure.arg("--json").arg(dir.path("result.json"));
        pair(measure, &dir, signals, |_| has_samples(&dir.0));

        let dir = Dir::new(&format!("pairs-soak-{trial}"));
        let mut soak = punctual();
        soak.args(["soak", "--every", "1s", "--save-every", "1s", "--campaign"]);
        soak.arg(dir.path("c"));
        pair(soak, &dir, signals, |_| find(&dir.0, "result.json").is_some());

        let dir = Dir::new(&format!("pairs-run-{trial}"));
        let (tasks, started) = (dir.path("tasks.toml"), dir.path("started"));
        let script = format!("touch {}; exec sleep 600", started.display());
        let task = format!(
            "[[task]]\nname = \"a\"\nperiod = \"5ms\"\nregister_within = \"60s\"\n\
             command = [\"sh\", \"-c\", {script:?}]\n"
        );
        fs::write(&tasks, task).expect("writable");
        let mut run = punctual();
        run.arg("run").arg(&tasks).arg("--json").arg(dir.path("result.json"));
        pair(run, &dir, signals, |_| started.exists());
    }
}
