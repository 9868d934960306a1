//! `measure work`, for real: what must add up, whatever the machine does.

use std::fs;

use punctual_os::process::EndSignal;
use serde_json::Value;

use crate::{
    Dir, catches_interrupt, fits, json_file, measured, punctual, refused, run, signal, stderr,
    stdout, until,
};

/// Checks what must hold of a row.
fn adds_up(work: &Value, row: &Value) {
    let number =
        |value: &Value, key: &str| value[key].as_f64().unwrap_or_else(|| panic!("{key}: {value}"));
    assert!(number(row, "n") > 0.0, "{row}");
    let (time, done) = (&row["time_ns"], &row["done_ns"]);
    let (least, period) = (number(work, "least_ns"), number(work, "period_ns"));
    assert!(number(time, "min") >= least, "{row}");
    assert!(number(done, "min") >= number(time, "min"), "{row}");
    assert!(number(row, "time_range_ns") <= number(time, "max"), "{row}");
    let usable = &row["usable_ns"];
    assert_eq!(number(usable, "all"), period - (number(done, "max") - least));
    assert!(number(usable, "half") >= number(usable, "all"), "{row}");
}

#[test]
fn each_kind_of_work_is_measured_idle_and_under_load() {
    for kind in ["integer", "memory", "mixed"] {
        let args = ["measure", "work", "--kind", kind, "--load", "cpu"];
        let ran = |row: &Value| row["n"].as_u64().is_some_and(|n| n > 0);
        let result = measured(&args, &["200ms", "1s", "5s", "20s"], |result| {
            result["work"]["rows"].as_array().expect("rows").iter().all(ran)
        });
        let work = &result["work"];
        assert_eq!((&result["experiment"], &work["kind"]), (&"measure work".into(), &kind.into()));
        assert!(work["steps"].as_u64().is_some_and(|steps| steps > 0), "{work}");
        let rows = work["rows"].as_array().expect("rows");
        let names: Vec<&str> = rows.iter().filter_map(|row| row["condition"].as_str()).collect();
        assert_eq!(names, ["idle", "cpu"]);
        rows.iter().for_each(|row| adds_up(work, row));
        assert_eq!(result["loads"][0]["name"], "cpu");
    }
}

#[test]
fn the_page_fits_and_a_report_has_the_tables() {
    let dir = Dir::new("work");
    let (result, page) = (dir.path("result.json"), dir.path("page.html"));
    let args = ["measure", "work", "--policy", "other", "--duration", "100ms", "--json"];
    let out = run(args.map(str::to_owned).into_iter().chain([result.display().to_string()]));
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let text = stdout(&out);
    assert!(text.contains("Usable part of each period of 1 ms"), "{text}");
    fits(&text);
    let out = run(["report", &result.display().to_string(), "-o", &page.display().to_string()]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    assert!(fs::read_to_string(page).expect("written").contains("Work in each period"));
}

#[test]
fn an_interrupt_keeps_what_there_is() {
    let dir = Dir::new("work-interrupted");
    let file = dir.path("result.json");
    let mut command = punctual();
    command.args(["measure", "work", "--duration", "1h", "--load", "cpu", "--json"]).arg(&file);
    let mut child = command.stdout(std::process::Stdio::null()).spawn().expect("it starts");
    until("signals to be caught", || catches_interrupt(&child));
    signal(&child, EndSignal::Interrupt);
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert_eq!(json_file(&file)["incomplete"], true);
}

#[test]
fn bad_input_is_refused_with_the_reason() {
    let with = |args: &[&str]| run(["measure", "work"].iter().chain(args));
    refused(&with(&["--work", "900us"]), &["--work", "900", "1 ms", "80"]);
    refused(&with(&["--work", "0us"]), &["--work"]);
    refused(&with(&["--kind", "hard"]), &["hard", "mixed"]);
    refused(&with(&["--duration", "0s"]), &["--duration"]);
    refused(&with(&["--cpu", "0-1"]), &["--cpu", "one CPU"]);
    refused(&with(&["--load", "disco"]), &["disco"]);
}
