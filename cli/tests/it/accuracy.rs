//! `measure accuracy`, for real: what must hold of the rows, whatever the machine does.

use std::fs;
use std::process::Output;
use std::time::{Duration, Instant};

use punctual_os::process::EndSignal;
use serde_json::Value;

use crate::{
    Dir, catches_interrupt, fits, json, json_file, punctual, refused, run, signal, stderr, stdout,
    until,
};

fn number(object: &Value, key: &str) -> f64 {
    object[key].as_f64().unwrap_or_else(|| panic!("{key} in {object}"))
}

/// Measured without a real-time priority: it never sleeps, and would keep the loops of other tests
/// from their CPU for longer than a watchdog bears.
fn accuracy(duration: &str) -> Output {
    let lasting = ["--duration", duration, "--policy", "other", "--json", "-"];
    run([&["measure", "accuracy"], &lasting[..]].concat())
}

#[test]
fn each_way_to_wait_has_a_row_that_adds_up() {
    let out = accuracy("100ms");
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let result = json(&out);
    assert_eq!(
        (&result["experiment"], &result["incomplete"]),
        (&"measure accuracy".into(), &false.into())
    );
    let accuracy = &result["accuracy"];
    assert!(number(accuracy, "tick_ns") > 0.0);
    let step = &accuracy["step_ticks"];
    assert!(step.is_null() || number(accuracy, "step_ticks") >= 1.0, "{step}");
    let rows = accuracy["rows"].as_array().expect("rows");
    let exits: Vec<&str> = rows.iter().filter_map(|row| row["exit"].as_str()).collect();
    assert!(exits.contains(&"vdso") && exits.contains(&"plain"), "{exits:?}");
    if result["clock"]["source"] == "tsc" {
        for cache in ["warm", "cold data", "cold code", "cold polls"] {
            assert!(rows.iter().any(|row| row["exit"] == "rdtsc" && row["cache"] == cache));
        }
        for code in ["aligned", "split"] {
            assert!(rows.iter().any(|row| row["exit"] == "lfence+rdtsc" && row["code"] == code));
        }
    }
    for row in rows {
        let (n, interrupted) = (number(row, "n"), number(row, "interrupted"));
        let (swept, stride) = (number(row, "offsets"), number(row, "stride_ticks"));
        assert!(stride == 1.0 || (row["cache"] == "cold polls" && stride.fract() == 0.0), "{row}");
        assert!(n > 0.0 && (n + interrupted) % swept == 0.0, "whole sweeps: {row}");
        let errors = ["min_ticks", "p5_ticks", "p50_ticks", "p95_ticks", "max_ticks"];
        let errors = errors.map(|key| number(row, key));
        assert!(errors.is_sorted(), "{errors:?}");
        let polled = row["code"].is_string();
        // A polling loop cannot leave before its target.
        assert!(!polled || errors[0] >= 0.0, "{row}");
        assert!(polled || row["poll_ticks"].is_null(), "{row}");
        assert_eq!(interrupted > 0.0, row["interrupted_worst_ns"].is_f64(), "{row}");
        assert_eq!(row["curve"].as_array().map(Vec::len), Some(swept as usize));
        if let Some(period) = row["period"]["ticks"].as_f64() {
            assert!((3.0..=swept / 4.0).contains(&(period / stride)), "{row}");
        }
    }
}

#[test]
fn the_page_fits_and_a_report_has_the_tables() {
    let dir = Dir::new("accuracy");
    let (result, page) = (dir.path("result.json"), dir.path("page.html"));
    let args = ["measure", "accuracy", "--duration", "1ms", "--policy", "other", "--json"];
    let out = run(args.map(str::to_owned).into_iter().chain([result.display().to_string()]));
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let text = stdout(&out);
    assert!(text.contains("Error of the exit") && text.contains("vdso"), "{text}");
    fits(&text);
    let out = run(["report", &result.display().to_string(), "-o", &page.display().to_string()]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let html = fs::read_to_string(page).expect("written");
    assert!(html.contains("How exactly a wait ends"));
}

#[test]
fn it_lasts_as_long_as_was_requested() {
    let begun = Instant::now();
    let out = accuracy("5s");
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    // It ended after 3 s when its memory for sweeps was full.
    assert!(begun.elapsed() >= Duration::from_secs(5));
}

#[test]
fn an_interrupt_keeps_what_there_is() {
    let dir = Dir::new("accuracy-interrupted");
    let file = dir.path("result.json");
    let mut command = punctual();
    command.args(["measure", "accuracy", "--duration", "1h", "--json"]).arg(&file);
    let mut child = command.stdout(std::process::Stdio::null()).spawn().expect("it starts");
    until("signals to be caught", || catches_interrupt(&child));
    signal(&child, EndSignal::Interrupt);
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert_eq!(json_file(&file)["incomplete"], true);
}

#[test]
fn bad_input_is_refused_with_the_reason() {
    let with = |args: &[&str]| run(["measure", "accuracy"].iter().chain(args));
    refused(&with(&["--duration", "0s"]), &["--duration"]);
    refused(&with(&["--duration", "-1s"]), &["--duration"]);
    refused(&with(&["--cpu", "0-1"]), &["--cpu", "one CPU"]);
    refused(&with(&["--cpu", "8191"]), &["--cpu", "8191"]);
    refused(&with(&["--priority", "99"]), &["--priority", "98"]);
}
