//! Files of other programs, as they wrote them: what is read from each stands beside it.
//!
//! `fixtures/peers/PROGRAM/FILE` is read and compared with `FILE.golden.json`, one line a run. With
//! PUNCTUAL_BLESS=1 in the environment the golden files are written anew, to be looked at.

use std::fs;
use std::path::{Path, PathBuf};

use punctual_import::formats::{self, HEAD_BYTES, Import, ImportRequest, detect, read};
use serde_json::{Value, json};

/// Every fixture and the format that it must be taken for.
const FIXTURES: &[(&str, &str)] = &[
    ("cyclictest/histogram.json", "threads"),
    ("cyclictest/no-histogram-ns.json", "threads"),
    ("cyclictest/histogram.txt", "cyclictest_histogram"),
    ("cyclictest/sum.txt", "cyclictest_histogram"),
    ("cyclictest/verbose.txt", "cyclictest_verbose"),
    ("cyclictest/verbose-ns.txt", "cyclictest_verbose"),
    ("jitterdebugger/results.json", "threads"),
    ("jitterdebugger/samples.raw", "jitterdebugger_samples"),
    ("oslat/overflow.json", "threads"),
    ("oslat/whole.json", "threads"),
    ("rtla/timerlat.txt", "rtla"),
    ("rtla/thread-only.txt", "rtla"),
    ("rtla/with-zeros.txt", "rtla"),
    ("rtla/all-over-ns.txt", "rtla"),
    ("rtla/no-summary-ns.txt", "rtla"),
    ("rtla/osnoise.txt", "rtla"),
    ("rtla/osnoise-10us.txt", "rtla"),
    ("rtla/stopped.txt", "rtla"),
    ("stress-ng/distribution.txt", "stress_ng"),
    ("stress-ng/percentiles.txt", "stress_ng"),
    ("stress-ng/few.txt", "stress_ng"),
    ("latmus/user.plot", "latmus"),
    ("latmus/outliers.plot", "latmus"),
    ("latmus/first-form.plot", "latmus"),
    ("latmus/series.plot", "latmus"),
    ("xenomai/histogram.txt", "xenomai_text"),
    ("xenomai/gnuplot.txt", "xenomai_gnuplot"),
    ("linuxcnc/latencybins.txt", "latencybins"),
    ("linuxcnc/latency-histogram.txt", "latency_histogram"),
    ("hdrhistogram/latenesses.hlog", "hdr"),
];

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/peers").join(name)
}

fn bytes(name: &str) -> Vec<u8> {
    fs::read(path(name)).unwrap_or_else(|why| panic!("{name}: {why}"))
}

/// The unit is requested where the file does not state it and the default is not the right one.
fn request(name: &str) -> ImportRequest {
    let ns = name.contains("verbose-ns") || name.starts_with("hdr");
    ImportRequest { unit_ns: ns.then_some(1), thresholds_ns: vec![37_500] }
}

fn import(name: &str, bytes: &[u8]) -> Result<Import, String> {
    let format = detect(&bytes[..bytes.len().min(HEAD_BYTES)]).ok_or("no format")?;
    read(format, bytes, &request(name)).map_err(|error| error.to_string())
}

fn golden(import: &Import) -> String {
    let runs = import.runs.iter().map(|run| {
        json!({
            "name": run.name, "cpu": run.cpu, "period_ns": run.period_ns,
            "policy": run.policy, "priority": run.priority, "outcome": run.outcome,
        })
    });
    let head = json!({ "started_at": import.started_at, "warnings": import.warnings });
    let lines: Vec<String> = std::iter::once(head).chain(runs).map(|v| v.to_string()).collect();
    lines.join("\n") + "\n"
}

#[test]
fn each_is_read_as_its_golden_file_says() {
    for (name, format) in FIXTURES {
        let bytes = bytes(name);
        let found = detect(&bytes[..bytes.len().min(HEAD_BYTES)]);
        assert_eq!(found.map(|format| format.name), Some(*format), "{name}");
        let import = import(name, &bytes).unwrap_or_else(|why| panic!("{name}: {why}"));
        let text = golden(&import);
        let beside = path(&format!("{name}.golden.json"));
        if std::env::var_os("PUNCTUAL_BLESS").is_some() {
            fs::write(&beside, &text).expect("writable");
        }
        let golden = fs::read_to_string(&beside).unwrap_or_else(|why| panic!("{name}: {why}"));
        assert_eq!(text.lines().count(), golden.lines().count(), "{name}");
        for (now, then) in text.lines().zip(golden.lines()) {
            let [now, then]: [Value; 2] =
                [now, then].map(|line| serde_json::from_str(line).expect("JSON"));
            assert_eq!(now, then, "{name}");
        }
    }
}

#[test]
fn every_fixture_is_in_the_list() {
    for program in fs::read_dir(path("")).expect("readable").flatten() {
        for file in fs::read_dir(program.path()).into_iter().flatten().flatten() {
            let name = format!(
                "{}/{}",
                program.file_name().to_string_lossy(),
                file.file_name().to_string_lossy()
            );
            let known = FIXTURES.iter().any(|(fixture, _)| *fixture == name);
            assert!(known || name.ends_with(".golden.json"), "{name} is nobody's");
        }
    }
}

#[test]
fn every_format_has_a_fixture() {
    for format in formats::ALL {
        assert!(FIXTURES.iter().any(|(_, name)| *name == format.name), "{format:?}");
    }
}

#[test]
fn line_ends_of_windows_change_nothing() {
    for (name, format) in FIXTURES.iter().filter(|(_, f)| *f != "jitterdebugger_samples") {
        let text = String::from_utf8(bytes(name)).expect("text");
        let windows = import(name, text.replace('\n', "\r\n").as_bytes());
        let windows = windows.unwrap_or_else(|why| panic!("{name}: {why}"));
        let plain = import(name, text.as_bytes()).expect("read before");
        assert_eq!(golden(&windows), golden(&plain), "{name} {format:?}");
    }
}

#[test]
fn counts_and_extremes_are_those_that_the_programs_printed() {
    let outcome = |name: &str, run: usize| {
        let outcome = import(name, &bytes(name)).expect("readable").runs.remove(run).outcome;
        let imported = outcome.imported.clone().expect("imported");
        (outcome.cycles, imported.values_ns.min, imported.values_ns.max, imported.overflow)
    };
    // From the files themselves, by eye.
    assert_eq!(outcome("cyclictest/histogram.txt", 0), (2_000, Some(13e3), Some(4_565e3), 68));
    assert_eq!(outcome("cyclictest/histogram.json", 1).3, 63);
    assert_eq!(outcome("cyclictest/no-histogram-ns.json", 0).2, Some(2_234_796.0));
    assert_eq!(outcome("rtla/with-zeros.txt", 1), (4_191, Some(48e3), Some(77_164e3), 3_657));
    assert_eq!(
        outcome("rtla/all-over-ns.txt", 0),
        (3_955, Some(11_070.0), Some(10_470_250.0), 3_955)
    );
    assert_eq!(outcome("stress-ng/few.txt", 0), (1_754, Some(14_834.0), Some(9_181_449.0), 1));
    assert_eq!(outcome("latmus/first-form.plot", 0), (10_000, Some(1_050.0), Some(4_480.0), 0));
    assert_eq!(outcome("latmus/outliers.plot", 0), (2_000, Some(-120.0), Some(17_004.0), 5));
    assert_eq!(outcome("xenomai/gnuplot.txt", 0), (2_000, Some(560.0), Some(6_120.0), 0));
    assert_eq!(outcome("xenomai/histogram.txt", 0), outcome("xenomai/gnuplot.txt", 0));
    // By HdrHistogram's own package: 2 001 values an interval, median 21 743 ns of the first.
    let log = import("hdrhistogram/latenesses.hlog", &bytes("hdrhistogram/latenesses.hlog"));
    let counts: Vec<u64> = log.expect("read").runs.iter().map(|run| run.outcome.cycles).collect();
    assert_eq!(counts.iter().sum::<u64>(), 3 * 2_001);
}
