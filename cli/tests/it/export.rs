//! `punctual export`: what it writes is read back by the programs that it is for.
//!
//! Made-up recordings: sample files and results that the tests know by heart.

use std::fs::{self};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use punctual_core::sample::{Flags, Sample};
use punctual_core::time::Span;
use punctual_testkit::{python, skip};
use serde_json::{Value, json};

use crate::{
    Dir, EPOCH_NS, N, PERIOD_NS, PROGRAM, json_file, punctual, recording_of, refused, run, stderr,
    stdout,
};

const NAMES: [&str; 3] = ["idle", "cpu:under load", "timer:under load"];

/// The figures that a table of samples must have for the runs of the file with these numbers.
fn expected(runs: &[u64], conditions: &[&str]) -> Value {
    let samples_of_runs: Vec<_> = runs.iter().flat_map(|&run| samples(run)).collect();
    let mut late: Vec<i64> = samples_of_runs.iter().map(|sample| sample.lateness.as_ns()).collect();
    late.sort_unstable();
    let wake = |k: u64, ns: i64| (EPOCH_NS + k * PERIOD_NS).cast_signed() + ns;
    let wakes: i64 = samples_of_runs.iter().map(|s| wake(s.cycle, s.lateness.as_ns())).sum();
    // Between two wakes of a run lie so many periods and the sum of its intervals.
    let interval = |run: &u64| {
        let run_samples = samples(*run);
        let (first, last) = (run_samples.first().expect("some"), run_samples.last().expect("some"));
        let apart =
            wake(last.cycle, last.lateness.as_ns()) - wake(first.cycle, first.lateness.as_ns());
        apart - ((N - 1) * PERIOD_NS).cast_signed()
    };
    let quantiles: Vec<i64> = [0.0, 0.01, 0.5, 0.9, 0.99, 1.0]
        .map(|p: f64| late[(p * (late.len() - 1) as f64).floor() as usize])
        .to_vec();
    let mut missed: Vec<i64> = runs.iter().flat_map(|&run| missed(run)).collect();
    missed.sort_unstable();
    json!({
        "missed": missed, "censored": 0,
        "n": samples_of_runs.len(), "conditions": conditions, "cpu": runs[0],
        "min": late[0], "max": late[late.len() - 1], "quantiles": quantiles, "wakes": wakes,
        "intervals": samples_of_runs.len() - runs.len(),
        "interval_sum": runs.iter().map(interval).sum::<i64>(),
        "gaps": 2 * runs.len(), "cold": 10 * runs.len(),
    })
}

fn both() -> Value {
    json!({ "idle": expected(&[0], &["idle"]),
            "under load": expected(&[1, 2], &["cpu", "timer"]) })
}

#[test]
fn pandas_reads_the_samples_of_a_csv() {
    let dir = Dir::new("export-csv");
    let file = exported(&dir, &["--csv", &recorded(&dir, &NAMES)]);
    let Some(read) = read_back("csv", &file) else { return };
    assert_eq!(read["runs"], both());
    assert_eq!(read["columns"][5], "lateness_ns");
}

#[test]
fn duckdb_reads_the_samples_of_a_parquet() {
    let dir = Dir::new("export-parquet");
    let file = exported(&dir, &["--parquet", &recorded(&dir, &NAMES)]);
    let Some(read) = read_back("parquet", &file) else { return };
    assert_eq!(read["runs"], both());
    let big = "BIGINT";
    let (text, flag) = ("VARCHAR", "BOOLEAN");
    let types = [text, text, "INTEGER", big, big, big, big, big, flag, flag, text];
    assert_eq!(read["types"], json!(types));
    assert_eq!(read["facts"]["punctual.schema"], "2");
    assert_eq!(read["facts"]["punctual.incomplete"], "false");
    let runs = read["facts"]["punctual.runs"].as_str().expect("the setups");
    let runs: Value = serde_json::from_str(runs).expect("JSON");
    assert_eq!(runs[1]["policy"], "SCHED_FIFO");
    for (at, run) in ["idle", "under load"].into_iter().enumerate() {
        let row = &both()[run];
        let row = json!([run, row["n"], row["min"], row["max"], row["wakes"].to_string()]);
        assert_eq!(read["duckdb"][at], row);
    }
}

#[test]
fn histograms_are_tables_too() {
    let dir = Dir::new("export-histogram");
    let result = result(&dir, &NAMES);
    let result = result.to_str().expect("UTF-8");
    let file = exported(&dir, &["--parquet", "--histogram", "--keep-cold", result]);
    let Some(read) = read_back("histogram", &file) else { return };
    let rows = read["rows"].as_array().expect("rows");
    let lookup = |run: &str| rows.iter().filter(|row| row[0] == run).collect::<Vec<_>>();
    let count = |rows: &[&Value]| rows.iter().filter_map(|row| row[4].as_u64()).sum::<u64>();
    let releases = N + MISSED;
    assert_eq!((count(&lookup("idle")), count(&lookup("under load"))), (releases, 2 * releases));
    let first = lookup("idle")[0];
    assert_eq!((&first[2], &first[3], &first[4]), (&json!(-40), &json!(-39), &json!(1)));
    // Without the samples: as coarse as the result, and what was cold is left out.
    fs::remove_file(dir.path("samples.punctual")).expect("it was there");
    let file = exported(&dir, &["--csv", "--histogram", result]);
    let Some(read) = read_back("histogram_csv", &file) else { return };
    assert_eq!(read, json!({ "idle": releases - 10, "under load": 2 * (releases - 10) }));
}

/// An option that would change nothing is refused with the way out.
#[test]
fn cold_cycles_are_asked_for_only_where_a_histogram_is_made() {
    let dir = Dir::new("export-cold");
    let result = result(&dir, &NAMES);
    let result = result.to_str().expect("UTF-8");
    let export = |format: &[&str]| run([&["export", "--keep-cold", result], format].concat());
    refused(&export(&["--csv"]), &["--keep-cold", "column cold", "leave it out"]);
    refused(&export(&["--openmetrics"]), &[result, "analyse ", " --keep-cold --json FILE"]);
    let samples = dir.path("samples.punctual");
    let own = run(["export", "--openmetrics", "--keep-cold", samples.to_str().expect("UTF-8")]);
    let releases = format!("_count{{run=\"idle\",cpu=\"0\"}} {}\n", N + MISSED);
    assert!(stdout(&own).contains(&releases), "{}{}", stdout(&own), stderr(&own));
    fs::remove_file(samples).expect("it was there");
    for format in [&["--hdr"][..], &["--csv", "--histogram"], &["--openmetrics"]] {
        refused(&export(format), &[result, "--keep-cold needs the samples", "leave it out"]);
    }
}

#[test]
fn the_hdr_package_reads_every_count() {
    let dir = Dir::new("export-hdr");
    let file = exported(&dir, &["--hdr", "--keep-cold", &recorded(&dir, &NAMES)]);
    let log = fs::read_to_string(&file).expect("text");
    assert!(log.contains("exact min_ns = -40, exact max_ns = 2500000"), "{log}");
    assert!(log.contains("1 below zero (woken early) are counted as 0"), "{log}");
    let Some(read) = read_back("hdr", &file) else { return };
    // 2026-11-21T20:01:07.5Z.
    assert_eq!(read["started"], 1_795_291_267.5);
    let idle = &read["runs"]["idle"];
    assert_eq!((&idle["n"], &idle["seconds"]), (&json!(N + MISSED), &json!(3.0)));
    assert_eq!(read["runs"]["under_load"]["n"], 2 * (N + MISSED));
    for pair in idle["counts"].as_array().expect("counts") {
        let (upper, count) = (pair[0].as_i64().expect("ns"), pair[1].as_u64().expect("a count"));
        let width = if upper < 2_048 { 1 } else { 1 << (upper.ilog2() - 10) };
        let inside = |ns: i64| ns.max(0) <= upper && ns.max(0) > upper - width;
        let wakes = samples(0).into_iter().map(|sample| sample.lateness.as_ns());
        let ours = wakes.chain(missed(0)).filter(|&ns| inside(ns)).count();
        assert_eq!(count, ours as u64, "up to {upper} ns");
    }
}

#[test]
fn prometheus_and_its_client_read_the_metrics() {
    let dir = Dir::new("export-metrics");
    let result = result(&dir, &["idle", "a\"b\\c\nd\u{1b}[2J"]);
    let file = exported(&dir, &["--openmetrics", result.to_str().expect("UTF-8")]);
    let text = fs::read_to_string(&file).expect("text");
    assert!(text.ends_with("\n# EOF\n") && !text.contains('\u{1b}') && !text.contains("NaN"));
    if let Some(read) = read_back("openmetrics", &file) {
        let lateness = &read["punctual_lateness_seconds"];
        assert_eq!(
            (&lateness["type"], &lateness["unit"]),
            (&json!("histogram"), &json!("seconds"))
        );
        let samples = lateness["samples"].as_array().expect("samples");
        let lookup = |name: &str, le: &str| {
            let wanted = |s: &&Value| {
                s[0] == format!("punctual_lateness_seconds_{name}")
                    && s[1]["run"] == "idle"
                    && (le.is_empty() || s[1]["le"] == le)
            };
            samples.iter().find(wanted).and_then(|s| s[2].as_f64())
        };
        let warm = self::samples(0).into_iter().skip(10).map(|s| s.lateness.as_ns());
        let warm: Vec<i64> = warm.chain(missed(0)).collect();
        let up_to = |ns: i64| Some(warm.iter().filter(|&&late| late <= ns).count() as f64);
        assert_eq!(lookup("bucket", "0.000000255"), up_to(255));
        assert_eq!(lookup("bucket", "0.000008191"), up_to(8_191));
        assert_eq!(lookup("bucket", "+Inf"), Some(warm.len() as f64));
        assert_eq!(lookup("count", ""), Some(warm.len() as f64));
        let sum = warm.iter().sum::<i64>() as f64 / 1e9;
        assert!((lookup("sum", "").expect("a sum") - sum).abs() < 1e-12);
        let judged = read["punctual_judgement"]["samples"].as_array().expect("samples");
        let states: Vec<(&str, f64)> = judged
            .iter()
            .filter(|sample| sample[1]["kind"] == "measurement")
            .map(|sample| {
                let state = sample[1]["state"].as_str().expect("a state");
                (state, sample[2].as_f64().expect("a number"))
            })
            .collect();
        let holds = ["holds", "fails", "undecided", "does-not-count"]
            .map(|state| (state, f64::from(u8::from(state == "holds"))));
        assert_eq!(states, holds);
        let hostile = &read["punctual_cycles"]["samples"][1];
        assert_eq!(hostile[1]["run"], "a\"b\\c\\nd\\u{1b}[2J");
        assert_eq!(hostile[2].as_f64(), Some(N as f64));
    }
    if skip::need_program("promtool") {
        let text = fs::File::open(&file).expect("readable");
        let check = Command::new("promtool").args(["check", "metrics"]).stdin(text).output();
        let check = check.expect("it starts");
        assert!(check.status.success(), "{}{}", stdout(&check), stderr(&check));
        assert_eq!((stdout(&check), stderr(&check)), (String::new(), String::new()));
    }
}

#[test]
fn a_short_measurement_is_exported_in_every_format() {
    let dir = Dir::new("export-real");
    let file = dir.path("real");
    let file = file.to_str().expect("UTF-8");
    let out =
        run(["measure", "periodic", "--period", "250us", "--duration", "1s", "--samples", file]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let csv = stdout(&run(["export", "--csv", file]));
    let rows = csv.lines().count() - 1;
    assert!(rows > 0 && csv.starts_with("run,condition,cpu,"), "{csv:.200}");
    for format in ["--parquet", "--hdr", "--openmetrics"] {
        let out = run(["export", format, file, "-o", "-"]);
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        assert!(!out.stdout.is_empty(), "{format}");
    }
}

#[test]
fn what_is_no_result_is_refused_by_name() {
    let dir = Dir::new("export-bad");
    let path = |name: &str| text(&dir.path(name));
    refused(&run(["export", "--csv", &path("absent")]), &["cannot read", "absent"]);
    refused(&run(["export", "--csv", &text(&dir.0)]), &["neither result.json nor samples"]);
    fs::write(dir.path("text"), "hello").expect("writable");
    refused(&run(["export", "--csv", &path("text")]), &["text", "not a result"]);
    fs::write(dir.path("empty"), "").expect("writable");
    refused(&run(["export", "--hdr", &path("empty")]), &["empty", "not a result"]);
    fs::write(dir.path("newer.json"), r#"{"schema":3,"tool":"punctual"}"#).expect("writable");
    refused(&run(["export", "--openmetrics", &path("newer.json")]), &["schema 3"]);
    let made = Command::new("mkfifo").arg(dir.path("pipe")).status().expect("it starts");
    assert!(made.success());
    refused(&run(["export", "--csv", &path("pipe")]), &["pipe", "neither a regular file"]);
    refused(&run(["export", "--csv", "/dev/zero"]), &["/dev/zero"]);
    refused(&run(["export", &path("text")]), &["--csv"]);
    refused(&run(["export", "--csv", "--hdr", &path("text")]), &["--hdr"]);
    refused(&run(["export", "--hdr", "--histogram", &path("text")]), &["--histogram"]);
    let peers = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/peers");
    let shared = format!("{peers}/oslat/whole.json");
    let programs = "a recording of cyclictest or oslat or jitterdebugger;";
    refused(&run(["export", "--hdr", &shared]), &[&shared, programs]);
}

#[test]
fn a_result_without_samples_says_what_is_missing_and_gives_the_rest() {
    let dir = Dir::new("export-without");
    let path = text(&result(&dir, &["idle"]));
    fs::remove_file(dir.path("samples.punctual")).expect("it was there");
    for format in ["--parquet", "--csv"] {
        let out = run(["export", format, &text(&dir.0), "-o", &text(&dir.path("out"))]);
        refused(&out, &["no samples", "--histogram", "--hdr"]);
        assert!(!dir.path("out").exists(), "nothing half done");
    }
    for format in ["--hdr", "--openmetrics"] {
        assert!(!stdout(&run(["export", format, &path])).is_empty());
    }
    let mut damaged = json_file(dir.path("result.json").as_path());
    damaged["runs"][0]["histogram"]["buckets"] = serde_json::json!([[5, 9, 1], [1, 5, 1]]);
    fs::write(&path, damaged.to_string()).expect("writable");
    refused(&run(["export", "--hdr", &path]), &["corrupt", "idle", "out of order"]);
    damaged["runs"] = serde_json::json!([]);
    fs::write(&path, damaged.to_string()).expect("writable");
    refused(&run(["export", "--openmetrics", &path]), &["no run"]);
}

/// LinuxCNC's latency-histogram prints the largest interval, and of how many not.
#[test]
fn a_number_of_cycles_that_is_not_known_is_not_exported() {
    let dir = Dir::new("export-uncounted");
    let peers = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/peers/linuxcnc");
    for (name, counted) in [("latency-histogram", false), ("latencybins", true)] {
        let (data, path) = (format!("{peers}/{name}.txt"), text(&dir.path(name)));
        let out = run(["analyse", &data, "--json", &path]);
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        let metrics = stdout(&run(["export", "--openmetrics", &path]));
        for metric in ["cycles", "lateness_seconds_bucket"] {
            let sample = format!("\npunctual_{metric}{{");
            assert_eq!(metrics.contains(&sample), counted, "{metrics}");
        }
    }
}

#[test]
fn an_answer_that_counts_for_nothing_is_exported_as_what_it_is() {
    let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/results/kinds/check.json");
    let metrics = stdout(&run(["export", "--openmetrics", kept]));
    let line = |start: &str| {
        let found = metrics.lines().find(|line| line.starts_with(start));
        found.unwrap_or_else(|| panic!("{start} in {metrics}")).to_owned()
    };
    let judged = line("punctual_judgement{kind=\"answer\",case=\"1 kHz\",state=\"fails\"}");
    assert!(judged.ends_with(" 0"), "{judged}");
    for (state, value) in [("holds", 0), ("fails", 1), ("open", 0)] {
        let answer = line(&format!("punctual_answer{{case=\"1 kHz\",state=\"{state}\"}}"));
        assert!(answer.ends_with(&format!(" {value}")), "{answer}");
    }
}

#[test]
fn samples_of_another_run_are_not_taken_for_those_of_a_result() {
    let dir = Dir::new("export-foreign");
    let path = result(&dir, &["idle"]);
    let mut second = json_file(&path);
    second["started_at"] = "2001-01-01T00:00:00Z".into();
    fs::write(&path, second.to_string()).expect("writable");
    let path = text(&path);
    for format in ["--csv", "--parquet"] {
        refused(&run(["export", format, &path]), &["another run", "samples.punctual"]);
    }
    let cold = ["export", "--hdr", "--keep-cold", &path];
    refused(&run(cold), &["another run", "samples.punctual", "name that file"]);
    // What the result itself holds is there.
    let out = stdout(&run(["export", "--csv", "--histogram", &path]));
    assert!(out.lines().count() > 1, "{out}");
}

#[test]
fn a_cut_or_damaged_file_is_exported_up_to_there_and_said() {
    let dir = Dir::new("export-cut");
    let file = recorded(&dir, &["idle", "cpu"]);
    let whole = fs::read(&file).expect("written");
    let rows = |out: &std::process::Output| stdout(out).lines().count() - 1;
    assert_eq!(rows(&run(["export", "--csv", &file])), 2 * (N + MISSED) as usize);
    // Behind the last samples stand 144 bytes: the final counters of both runs, and the end.
    let inside = whole.len() - 200;
    fs::write(&file, &whole[..inside]).expect("writable");
    for format in ["--csv", "--parquet", "--hdr", "--openmetrics"] {
        let out = run(["export", format, &file]);
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        assert!(stderr(&out).contains("cut off"), "{format}: {}", stderr(&out));
    }
    // Of the second run all but the last block, of which each has 1024 samples at most.
    let left = 2 * (N + MISSED) - N % 1024;
    assert_eq!(rows(&run(["export", "--csv", &file])), left as usize, "the second is cut");
    let mut damaged = whole;
    damaged[inside] ^= 1;
    fs::write(&file, &damaged).expect("writable");
    let out = run(["export", "--csv", &file]);
    assert!(stderr(&out).contains("damaged at byte"), "{}", stderr(&out));
    damaged[8] = 2;
    fs::write(&file, &damaged).expect("writable");
    refused(&run(["export", "--parquet", &file]), &[&file, "newer"]);
}

#[test]
fn hostile_names_stay_in_their_cells() {
    let dir = Dir::new("export-hostile");
    let names = ["=cmd|' /C calc'!A0", "a,\"b\"\n\u{1b}]0;x\u{7}", "<script>alert(1)</script>"];
    let csv = stdout(&run(["export", "--csv", &recorded(&dir, &names)]));
    assert_eq!(csv.lines().count(), 1 + 3 * (N + MISSED) as usize, "one line a release");
    assert!(!csv.contains('\u{1b}') && !csv.contains("\n="), "nothing raw, no formula");
    assert!(csv.contains("\n'=cmd|' /C calc'!A0,"));
    assert!(csv.contains("\n\"a,\"\"b\"\"\\n\\u{1b}]0;x\\u{7}\","));
    let long = "x".repeat(100_000);
    let csv = stdout(&run(["export", "--csv", &recorded(&dir, &[&long])]));
    assert!(csv.len() < 3_000_000, "{} bytes: a name is cut", csv.len());
}

#[test]
fn an_output_is_replaced_when_it_is_whole_and_the_input_never() {
    let dir = Dir::new("export-output");
    let file = recorded(&dir, &["idle"]);
    let names = || {
        let entries = fs::read_dir(&dir.0).expect("readable");
        entries.map(|entry| entry.expect("readable").file_name()).collect::<Vec<_>>()
    };
    refused(&run(["export", "--csv", &file, "-o", &file]), &["would overwrite an input"]);
    symlink(&file, dir.path("link")).expect("writable");
    refused(&run(["export", "--csv", &file, "-o", &text(&dir.path("link"))]), &["an input"]);
    assert_eq!(fs::read(&file).expect("there")[..8], *b"PUNCTUAL");
    let before = fs::read(exported(&dir, &["--csv", &file])).expect("written");
    // The disk is full in the middle of the work: what was there stays, and nothing else.
    let out = text(&dir.path("exported"));
    let mut full = Command::new("sh");
    full.args(["-c", "ulimit -f 8; exec \"$@\"", "sh", PROGRAM]);
    let full = full.args(["export", "--csv", &file, "-o", &out]).output().expect("it starts");
    refused(&full, &["cannot write", &out]);
    assert_eq!(fs::read(&out).expect("kept"), before);
    let nowhere = text(&dir.path("no/such/dir"));
    refused(&run(["export", "--csv", &file, "-o", &nowhere]), &["cannot write", &nowhere]);
    refused(&run(["export", "--csv", &file, "-o", &text(&dir.0)]), &["directory"]);
    assert!(names().iter().all(|name| !name.to_string_lossy().ends_with(".new")), "{:?}", names());
    for format in ["--csv", "--parquet", "--hdr", "--openmetrics"] {
        let full = run(["export", format, &file, "-o", "/dev/full"]);
        refused(&full, &["/dev/full", "space"]);
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let dir = Dir::new("export-pipe");
    let file = recorded(&dir, &["idle", "cpu"]);
    for format in ["--csv", "--parquet"] {
        let mut child = punctual()
            .args(["export", format, &file])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        drop(child.stdout.take());
        let out = child.wait_with_output().expect("it ends");
        assert_eq!((out.status.code(), stderr(&out).as_str()), (Some(0), ""), "{format}");
    }
}

/// Releases that were missed in each run.
const MISSED: u64 = 2;

/// Run `run`: a body of whole microseconds and some ns, a release missed, an early wake.
fn samples(run: u64) -> Vec<Sample> {
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
fn missed(run: u64) -> [i64; MISSED as usize] {
    [1_000_000, 1_500_000 + run as i64]
}

/// Writes a sample file of runs with these names, each a part of the run after the colon, if any.
fn recording(path: &Path, names: &[&str]) {
    let recorded: Vec<(Vec<Sample>, u64)> =
        (0..names.len()).map(|at| (samples(at as u64), MISSED)).collect();
    recording_of(path, names, &recorded);
}

/// A directory with a sample file of these runs.
fn recorded(dir: &Dir, names: &[&str]) -> String {
    let path = dir.path("made.punctual");
    recording(&path, names);
    text(&path)
}

/// A directory as `punctual check` leaves it: result and samples.
fn result(dir: &Dir, names: &[&str]) -> PathBuf {
    recording(&dir.path("samples.punctual"), names);
    let result = dir.path("result.json");
    let out = run(["analyse", &text(&dir.path("samples.punctual")), "--json", &text(&result)]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    assert_eq!(json_file(&result)["schema"], 2);
    result
}

/// Exports to a file and returns its path.
fn exported(dir: &Dir, args: &[&str]) -> String {
    let file = text(&dir.path("exported"));
    let out = run(["export", "-o", &file].iter().chain(args));
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    assert_eq!(stderr(&out), "", "nothing to complain about");
    assert!(out.stdout.is_empty(), "only to the file");
    file
}

/// The values that the packages read from a file; `None` where they are not installed, which is
/// counted.
#[track_caller]
pub(crate) fn read_back(format: &str, file: &str) -> Option<Value> {
    let python = python::need()?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/export/read_back.py");
    let out = Command::new(python).arg(script).args([format, file]).output().expect("it starts");
    assert!(out.status.success(), "{}", stderr(&out));
    Some(serde_json::from_slice(&out.stdout).expect("JSON"))
}

/// A path as text.
fn text(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}
