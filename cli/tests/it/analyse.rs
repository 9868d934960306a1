//! `punctual analyse`: recorded data judged without measuring, and damage told.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use punctual_testkit::skip;

use crate::support::{Dir, json, punctual, refused, run, sample_file, stderr};

fn recorded(dir: &Dir) -> String {
    let file = dir.path("samples");
    let file = file.to_str().expect("UTF-8").to_owned();
    // A busy machine misses most releases; a block has 1024 samples at most, and a third of the
    // file must hold more than one.
    for duration in ["1s", "4s", "16s", "60s"] {
        let loops = ["measure", "periodic", "--period", "250us", "--duration", duration];
        let out = run(loops.iter().copied().chain(["--json", "-", "--samples", file.as_str()]));
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        if json(&out)["runs"][0]["cycles"].as_u64() > Some(3 * 1_024) {
            return file;
        }
    }
    panic!("too few cycles in 60 s");
}

#[test]
fn a_cut_or_damaged_file_is_read_up_to_there() {
    let dir = Dir::new("damage");
    let file = recorded(&dir);
    let whole = fs::read(&file).expect("written");
    let read = |bytes: &[u8]| {
        fs::write(&file, bytes).expect("writable");
        let out = run(["analyse", &file, "--json", "-"]);
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        let result = json(&out);
        let cycles = result["runs"][0]["cycles"].as_u64().unwrap_or(0);
        (cycles, result["incomplete"].clone(), result["warnings"].to_string())
    };
    let (all, incomplete, _) = read(&whole);
    assert!(all > 0 && incomplete == false);
    let (cut, incomplete, warnings) = read(&whole[..whole.len() * 2 / 3]);
    assert!(cut > 0 && cut < all && incomplete == true, "{cut} of {all}");
    assert!(warnings.contains("cut off"), "{warnings}");
    let mut damaged = whole.clone();
    let at = whole.len() * 2 / 3;
    damaged[at] ^= 0x10;
    let (before, incomplete, warnings) = read(&damaged);
    assert!(before > 0 && before < all && incomplete == true, "{before} of {all}");
    assert!(warnings.contains("damaged at byte"), "{warnings}");
    let mut newer = whole;
    newer[8] = 2;
    fs::write(&file, newer).expect("writable");
    refused(&run(["analyse", &file]), &["newer"]);
    fs::write(&file, "PUNCTUAL").expect("writable");
    refused(&run(["analyse", &file]), &[&file]);
    fs::write(&file, "").expect("writable");
    refused(&run(["analyse", &file]), &[&file, "--column"]);
    refused(&run(["analyse", &file, "--period", "1ms"]), &["--period"]);
}

#[test]
fn csv_of_lateness_gives_its_numbers() {
    let dir = Dir::new("lateness");
    let file = dir.path("file.csv");
    let file = file.to_str().expect("UTF-8");
    let lines: String = (0..1000).map(|k| format!("{k},{}.5\r\n", k % 100)).collect();
    fs::write(file, format!("cycle,lateness\r\n{lines}")).expect("writable");
    let result = json(&run(["analyse", file, "--column", "lateness:us", "--json", "-"]));
    let lateness = &result["runs"][0]["lateness_ns"];
    assert_eq!(lateness["min"], 500.0);
    assert_eq!(lateness["max"], 99_500.0);
    assert_eq!(result["runs"][0]["cycles"], 1000);
    assert!((lateness["mean"].as_f64().expect("a mean") - 50_000.0).abs() < 1e-6);
    let failed = run(["analyse", file, "--column", "lateness:us", "--limit", "max<10us"]);
    assert_eq!(failed.status.code(), Some(1));
    refused(&run(["analyse", file, "--column", "lateness"]), &["unit"]);
    refused(&run(["analyse", file, "--column", "other:us"]), &["other"]);
    fs::write(file, "lateness\n1\nx\n").expect("writable");
    refused(&run(["analyse", file, "--column", "lateness:us"]), &[file, "line 3"]);
}

#[test]
fn instants_of_a_drifting_clock_are_drift_never_a_miss() {
    let dir = Dir::new("instants");
    let file = dir.path("file.csv");
    let file = file.to_str().expect("UTF-8");
    // 500 µs by a clock that is 1000 ppm fast; every tenth wake 3 µs late.
    let wake = |k: u64| 1_000 + k * 500_500 + if k % 10 == 9 { 3_000 } else { 0 };
    let lines: String = (0..20_000).map(|k| format!("{}\n", wake(k))).collect();
    fs::write(file, lines).expect("writable");
    let args = ["analyse", file, "--column", "instant:ns", "--period", "500us", "--json", "-"];
    let result = json(&run(args));
    let run0 = &result["runs"][0];
    assert_eq!(run0["missed"], 0);
    let drift = run0["grid"]["drift_ppb"].as_f64().expect("fitted");
    assert!((drift / 1e6 - 1.0).abs() < 1e-3, "{drift}");
    let peak = run0["grid"]["jitter_pp_ns"].as_f64().expect("fitted");
    assert!((peak - 3_000.0).abs() < 2.0, "{peak}");
    refused(&run(["analyse", file, "--column", "instant:ns"]), &["--period"]);
    fs::write(file, "5\n3\n").expect("writable");
    refused(&run(args), &[file, "line 2"]);
}

#[test]
fn reads_standard_input() {
    let mut child = punctual()
        .args(["analyse", "-", "--column", "lateness:ns", "--json", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    child.stdin.take().expect("piped").write_all(b"10\n20\n30\n").expect("it reads");
    let out = child.wait_with_output().expect("it ends");
    assert_eq!(json(&out)["runs"][0]["lateness_ns"]["max"], 30.0);
}

/// What the program may take for 1024 runs without samples, in KiB: itself, and some 32 KiB a run.
const MEMORY_KIB: u32 = 64 << 10;

/// The same for 1024 runs of three samples: some 270 KiB a run, half of it never touched.
const THREE_KIB: u32 = 336 << 10;

#[test]
fn many_runs_are_refused_and_as_many_as_are_read_take_little_memory() {
    let dir = Dir::new("analyse-runs");
    let file = |runs: usize| {
        let run = |n| serde_json::json!({ "name": format!("run {n}"), "period_ns": 1_000_000 });
        let info = serde_json::json!({ "runs": (0..runs).map(run).collect::<Vec<_>>() });
        sample_file(&dir.path("samples"), &info, &[])
    };
    let many = file(1_025);
    for command in [&["analyse", &many][..], &["export", "--csv", &many], &["report", &many]] {
        refused(&run(command), &[&many]);
    }
    refused(&run(["analyse", &many]), &["describes 1025 runs; at most 1024 are read"]);
    let compared = run(["compare", &many, &many, "--anyway"]);
    refused(&compared, &["describes 1025 runs; at most 1024 are read"]);
    if !skip::need_native("a limit of its memory") {
        return;
    }
    let run = |n| serde_json::json!({ "name": format!("run {n}"), "period_ns": 1_000_000 });
    let info = serde_json::json!({ "runs": (0..1_024).map(run).collect::<Vec<_>>() });
    let three = sample_file(&dir.path("three"), &info, &[&[20_000, 30_000, 25_000][..]; 1_024]);
    for (most, memory) in [(file(1_024), MEMORY_KIB), (three, THREE_KIB)] {
        let program = punctual().get_program().to_owned();
        let limited = format!("ulimit -v {memory} && exec \"$0\" analyse \"$1\" --json -");
        let out = Command::new("sh").args(["-c", &limited]).arg(program).arg(&most).output();
        let out = out.expect("sh starts");
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        assert_eq!(json(&out)["runs"].as_array().map(Vec::len), Some(1_024));
    }
}

#[test]
fn a_decimal_comma_is_no_second_column_and_no_whole_number() {
    let dir = Dir::new("decimal-comma");
    let file = dir.path("file.csv");
    let file = file.to_str().expect("UTF-8");
    let ways = ["for a decimal comma write a point", "for several columns name each"];
    for text in ["lateness\n1,5\n2,5\n", "lateness\n1;2\n", "1;2\n3;4\n", "1,5\n2,5\n"] {
        fs::write(file, text).expect("writable");
        let out = run(["analyse", file, "--column", "lateness:us"]);
        refused(&out, &[ways[0], ways[1], file]);
    }
    fs::write(file, "cpu;lateness\n1;1.5\n").expect("writable");
    let result = json(&run(["analyse", file, "--column", "lateness:us", "--json", "-"]));
    assert_eq!(result["runs"][0]["lateness_ns"]["max"], 1_500.0);
}
