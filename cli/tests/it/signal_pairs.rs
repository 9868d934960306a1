//! Signals that come in pairs, microseconds apart, as a terminal that closes sends them: one
//! request, and the result is written.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use punctual_os::process::EndSignal;

use crate::support::{Dir, at_once, json_file, punctual, signal, stderr, until};

/// The first file of this name below a directory.
fn find(dir: &Path, name: &str) -> Option<PathBuf> {
    let entries: Vec<PathBuf> = fs::read_dir(dir).ok()?.flatten().map(|of| of.path()).collect();
    let here = entries.iter().find(|path| path.ends_with(name)).cloned();
    here.or_else(|| entries.iter().find_map(|path| find(path, name)))
}

/// Sends both signals once `begun`, and waits for a result that is whole; in a directory of this
/// name.
fn pair(
    name: &str,
    pair: [EndSignal; 2],
    command: impl Fn(&Dir) -> Command,
    begun: impl Fn(&Dir) -> bool,
) {
    let (dir, out) = at_once(|| {
        let dir = Dir::new(name);
        let mut command = command(&dir);
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let child = child.expect("it starts");
        until(name, || begun(&dir));
        let sent = Instant::now();
        for how in pair {
            signal(&child, how);
        }
        let took = sent.elapsed();
        (took, (dir, child.wait_with_output().expect("it ends")))
    });
    let what = format!("{name} {pair:?}: {} {}", out.status, stderr(&out));
    assert!(out.status.code().is_some(), "{what}");
    let result = find(&dir.0, "result.json").unwrap_or_else(|| panic!("no result: {what}"));
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
        let check = |dir: &Dir| {
            let mut check = punctual();
            check.args(["check", "--duration", "1h", "--period", "200us", "--results"]);
            check.arg(&dir.0);
            check
        };
        pair(&format!("pairs-check-{trial}"), signals, check, |dir| has_samples(&dir.0));
    }
}

#[test]
fn a_closed_terminal_leaves_the_result_of_all_that_measures() {
    let measure = |dir: &Dir| {
        let mut measure = punctual();
        measure.args(["measure", "periodic", "--duration", "1h", "--period", "200us"]);
        measure.arg("--samples").arg(dir.path("samples.punctual"));
        measure.arg("--json").arg(dir.path("result.json"));
        measure
    };
    let soak = |dir: &Dir| {
        let mut soak = punctual();
        soak.args(["soak", "--every", "1s", "--save-every", "1s", "--campaign"]);
        soak.arg(dir.path("c"));
        soak
    };
    let run = |dir: &Dir| {
        let (tasks, started) = (dir.path("tasks.toml"), dir.path("started"));
        let script = format!("touch {}; exec sleep 600", started.display());
        let task = format!(
            "[[task]]\nname = \"a\"\nperiod = \"5ms\"\nregister_within = \"60s\"\n\
             command = [\"sh\", \"-c\", {script:?}]\n"
        );
        fs::write(&tasks, task).expect("writable");
        let mut run = punctual();
        run.arg("run").arg(&tasks).arg("--json").arg(dir.path("result.json"));
        run
    };
    for (trial, signals) in PAIRS.into_iter().enumerate() {
        let of = |what: &str| format!("pairs-{what}-{trial}");
        pair(&of("measure"), signals, measure, |dir| has_samples(&dir.0));
        pair(&of("soak"), signals, soak, |dir| find(&dir.0, "result.json").is_some());
        pair(&of("run"), signals, run, |dir| dir.path("started").exists());
    }
}
