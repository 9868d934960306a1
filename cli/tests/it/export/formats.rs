//! Each format, read back: the same counts, extremes and quantiles.

use std::fs;
use std::process::Command;

use punctual_testkit::skip;
use serde_json::{Value, json};

use super::made::{
    EPOCH_NS, MISSED, N, PERIOD_NS, exported, missed, read_back, recorded, result, samples,
};
use crate::support::{Dir, run, stderr, stdout};

const NAMES: [&str; 3] = ["idle", "cpu:under load", "timer:under load"];

/// What a table of samples must say of the runs of the file with these numbers.
fn expected(runs: &[u64], conditions: &[&str]) -> Value {
    let all: Vec<_> = runs.iter().flat_map(|&run| samples(run)).collect();
    let mut late: Vec<i64> = all.iter().map(|sample| sample.lateness.as_ns()).collect();
    late.sort_unstable();
    let wake = |k: u64, ns: i64| (EPOCH_NS + k * PERIOD_NS).cast_signed() + ns;
    let wakes: i64 = all.iter().map(|s| wake(s.cycle, s.lateness.as_ns())).sum();
    // Between two wakes of a run lie so many periods and the sum of its intervals.
    let interval = |run: &u64| {
        let of = samples(*run);
        let (first, last) = (of.first().expect("some"), of.last().expect("some"));
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
        "n": all.len(), "conditions": conditions, "cpu": runs[0],
        "min": late[0], "max": late[late.len() - 1], "quantiles": quantiles, "wakes": wakes,
        "intervals": all.len() - runs.len(),
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
        let of = &both()[run];
        let row = json!([run, of["n"], of["min"], of["max"], of["wakes"].to_string()]);
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
    let of = |run: &str| rows.iter().filter(|row| row[0] == run).collect::<Vec<_>>();
    let count = |rows: &[&Value]| rows.iter().filter_map(|row| row[4].as_u64()).sum::<u64>();
    let releases = N + MISSED;
    assert_eq!((count(&of("idle")), count(&of("under load"))), (releases, 2 * releases));
    let first = of("idle")[0];
    assert_eq!((&first[2], &first[3], &first[4]), (&json!(-40), &json!(-39), &json!(1)));
    // Without the samples: as coarse as the result, and what was cold is left out.
    fs::remove_file(dir.path("samples.punctual")).expect("it was there");
    let file = exported(&dir, &["--csv", "--histogram", result]);
    let Some(read) = read_back("histogram_csv", &file) else { return };
    assert_eq!(read, json!({ "idle": releases - 10, "under load": 2 * (releases - 10) }));
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
        let of = |name: &str, le: &str| {
            let wanted = |s: &&Value| {
                s[0] == format!("punctual_lateness_seconds_{name}")
                    && s[1]["run"] == "idle"
                    && (le.is_empty() || s[1]["le"] == le)
            };
            samples.iter().find(wanted).and_then(|s| s[2].as_f64())
        };
        let warm = super::made::samples(0).into_iter().skip(10).map(|s| s.lateness.as_ns());
        let warm: Vec<i64> = warm.chain(missed(0)).collect();
        let up_to = |ns: i64| Some(warm.iter().filter(|&&late| late <= ns).count() as f64);
        assert_eq!(of("bucket", "0.000000255"), up_to(255));
        assert_eq!(of("bucket", "0.000008191"), up_to(8_191));
        assert_eq!(of("bucket", "+Inf"), Some(warm.len() as f64));
        assert_eq!(of("count", ""), Some(warm.len() as f64));
        let sum = warm.iter().sum::<i64>() as f64 / 1e9;
        assert!((of("sum", "").expect("a sum") - sum).abs() < 1e-12);
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
