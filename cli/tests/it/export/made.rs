//! Made-up recordings: sample files and results that the tests know by heart.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicU64;

use punctual_core::ring::{split, words};
use punctual_core::sample::{Flags, Sample};
use punctual_core::time::Span;
use punctual_engine::drain::{Drainage, SampleFile, Sink};
use punctual_testkit::python;
use serde_json::Value;

use crate::support::{Dir, json_file, run, stderr};

/// Samples of each run.
pub(super) const N: u64 = 3_000;
/// Releases that were missed in each run.
pub(super) const MISSED: u64 = 2;
/// Period of each run, ns.
pub(crate) const PERIOD_NS: u64 = 1_000_000;
/// Instant of release 0, ns.
pub(super) const EPOCH_NS: u64 = 5_000_000_000;

/// Run `run`: a body of whole microseconds and some ns, a release missed, an early wake.
pub(super) fn samples(run: u64) -> Vec<Sample> {
    let flags = |k: u64| match k {
        0 => Flags::FIRST.with(Flags::COLD),
        1..10 => Flags::COLD,
        _ => Flags::NONE,
    };
    let late = |k: u64| match k {
        17 => 2_500_000 + run as i64,
        18 => -40,
        _ => (7_000 + k * 7_919 % 4_099 + run * 100_000) as i64,
    };
    // After the one that is late by two and a half periods, two releases are missing.
    let cycle = |k: u64| if k > 17 { k + 2 } else { k };
    let sample = |k| Sample { cycle: cycle(k), lateness: Span::from_ns(late(k)), flags: flags(k) };
    (0..N).map(sample).collect()
}

/// The latenesses of the releases of run `run` that were missed: what was left of the late wake,
/// and a period at least.
pub(super) fn missed(run: u64) -> [i64; MISSED as usize] {
    [1_000_000, 1_500_000 + run as i64]
}

struct Nowhere;

impl Sink for Nowhere {
    fn take(&mut self, _: usize, _: &[Sample]) {}
}

/// Writes a sample file of runs with these names, each a part of the run after the colon, if any.
pub(super) fn recording(path: &Path, names: &[&str]) {
    let all: Vec<(Vec<Sample>, u64)> =
        (0..names.len()).map(|at| (samples(at as u64), MISSED)).collect();
    recording_of(path, names, &all);
}

/// The same of these samples, with how many releases each run missed.
pub(crate) fn recording_of(path: &Path, names: &[&str], all: &[(Vec<Sample>, u64)]) {
    let runs: Vec<Value> = names
        .iter()
        .enumerate()
        .map(|(at, name)| {
            let (name, part_of) = name.split_once(':').map_or((*name, None), |(a, b)| (a, Some(b)));
            // What counts as one run is of one loop.
            let cpu = part_of.map_or(at, |_| 1);
            serde_json::json!({ "name": name, "part_of": part_of, "cpu": cpu, "load": [],
                "period_ns": PERIOD_NS, "epoch_ns": EPOCH_NS, "duration_ns": N * PERIOD_NS,
                "policy": "SCHED_FIFO", "priority": 90, "wait": "sleep" })
        })
        .collect();
    let info = serde_json::json!({ "tool": "punctual", "version": "0.1.0", "runs": runs,
        "started_at": "2026-11-21T20:01:07.5Z" });
    let storage: Vec<Vec<AtomicU64>> =
        names.iter().map(|_| (0..words(1 << 13)).map(|_| AtomicU64::new(0)).collect()).collect();
    let file = File::create(path).expect("writable");
    let file = SampleFile::begin(file, &info.to_string(), names.len()).expect("writable");
    let (mut recorders, mut drains) = (Vec::new(), Vec::new());
    for storage in &storage {
        let (recorder, drain, view) = split(storage).expect("enough storage");
        recorders.push(recorder);
        drains.push((drain, view));
    }
    let mut drainage = Drainage::new(drains, Nowhere, Some(file));
    for (recorder, (samples, missed)) in recorders.iter_mut().zip(all) {
        recorder.miss(*missed);
        for some in samples.chunks(1 << 12) {
            some.iter().for_each(|sample| recorder.push(*sample));
            drainage.empty();
        }
    }
    let (_, trouble) = drainage.finish(false);
    assert!(trouble.is_none(), "{trouble:?}");
}

/// A directory with a sample file of these runs.
pub(super) fn recorded(dir: &Dir, names: &[&str]) -> String {
    let path = dir.path("made.punctual");
    recording(&path, names);
    text(&path)
}

/// A directory as `punctual check` leaves it: result and samples.
pub(super) fn result(dir: &Dir, names: &[&str]) -> PathBuf {
    recording(&dir.path("samples.punctual"), names);
    let result = dir.path("result.json");
    let out = run(["analyse", &text(&dir.path("samples.punctual")), "--json", &text(&result)]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    assert_eq!(json_file(&result)["schema"], 2);
    result
}

/// Exports to a file and returns its path.
pub(super) fn exported(dir: &Dir, args: &[&str]) -> String {
    let file = text(&dir.path("exported"));
    let out = run(["export", "-o", &file].iter().chain(args));
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    assert_eq!(stderr(&out), "", "nothing to complain about");
    assert!(out.stdout.is_empty(), "only to the file");
    file
}

/// What the packages find in a file; none where they are not installed, which is counted.
#[track_caller]
pub(super) fn read_back(format: &str, file: &str) -> Option<Value> {
    let python = python::need()?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/export/read_back.py");
    let out = Command::new(python).arg(script).args([format, file]).output().expect("it starts");
    assert!(out.status.success(), "{}", stderr(&out));
    Some(serde_json::from_slice(&out.stdout).expect("JSON"))
}

/// A path as text.
pub(super) fn text(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}
