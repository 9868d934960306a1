//! `measure response`, for real: what must add up, whatever the machine does.

use std::fs;

use punctual_os::affinity;
use punctual_os::process::EndSignal;
use punctual_testkit::skip;
use serde_json::Value;

use crate::{
    Dir, catches_interrupt, fits, json_file, measured, plugged_line, punctual, refused, run,
    signal, stderr, stdout, until,
};

fn number(object: &Value, key: &str) -> u64 {
    object[key].as_u64().unwrap_or_else(|| panic!("{key} in {object}"))
}

#[test]
fn datagrams_have_a_stage_0_in_text_json_and_page() {
    if skip::is_emulated() {
        return;
    }
    let dir = Dir::new("response-udp");
    let (result, page) = (dir.path("result.json"), dir.path("page.html"));
    let args = ["measure", "response", "--source", "udp", "--duration", "300ms", "--json"];
    let out = run(args.map(str::to_owned).into_iter().chain([result.display().to_string()]));
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let text = stdout(&out);
    let row = &json_file(&result)["response"]["rows"][0];
    if number(&row["stages"][0], "answered") == 0 {
        return;
    }
    // It is left out where the time of day was set meanwhile.
    let shown = match row["kernel_left_out"].as_str() {
        None => "idle: stage 0, the kernel's own stamp",
        Some(_) => "idle: stage 0 is left out",
    };
    assert!(row["kernel_ns"].is_null() != row["kernel_left_out"].is_null(), "{row}");
    assert!(text.contains(shown), "{text}");
    fits(&text);
    let out = run(["report", &result.display().to_string(), "-o", &page.display().to_string()]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let page = fs::read_to_string(page).expect("written");
    assert!(page.contains("stage 0"), "{page}");
}

/// Counts and times of each stage belong together.
fn adds_up(row: &Value) {
    let stimuli = number(row, "stimuli");
    let stages = row["stages"].as_array().expect("stages");
    assert_eq!(stages.len(), 2, "{row}");
    for (at, stage) in (1..).zip(stages) {
        assert_eq!(number(stage, "stage"), at);
        let answered = number(stage, "answered");
        assert_eq!(answered + number(stage, "skipped"), stimuli, "{stage}");
        assert!(number(stage, "served") <= answered, "{stage}");
        if answered == 0 {
            continue;
        }
        let time = |value: &str, key: &str| stage[value][key].as_f64().expect("a time");
        assert!(time("start_ns", "min") >= 0.0, "no answer before its stimulus: {stage}");
        assert!(time("complete_ns", "max") >= time("start_ns", "max"), "{stage}");
        let range = time("start_ns", "max") - time("start_ns", "min");
        assert_eq!(stage["response_range_ns"].as_f64(), Some(range));
    }
    let answered: Vec<u64> = stages.iter().map(|stage| number(stage, "answered")).collect();
    assert!(answered[1] <= answered[0], "stage 2 answers what stage 1 hands on: {row}");
}

#[test]
fn each_source_raises_stimuli_that_both_stages_answer() {
    let cpus = affinity::get(0).expect("own").count();
    for source in ["eventfd", "futex", "timerfd", "udp", "pty"] {
        let args = ["measure", "response", "--source", source];
        // Another program of real-time priority may take a CPU from the floor's short trips.
        let has_floor = |entry: &Value| !entry["floor"].is_null() || cpus == 1;
        let raised = |result: &Value| {
            let response = &result["response"];
            number(&response["rows"][0], "stimuli") > 0 && has_floor(response)
        };
        let result = measured(&args, &["300ms", "1s", "5s", "20s"], raised);
        assert_eq!(
            (&result["experiment"], &result["incomplete"]),
            (&"measure response".into(), &false.into())
        );
        let response = &result["response"];
        assert_eq!(
            (&response["source"], number(response, "period_ns")),
            (&source.into(), 1_000_000)
        );
        let rows = response["rows"].as_array().expect("rows");
        assert_eq!(rows.len(), 1);
        let row = &rows[0];
        let raised = number(row, "stimuli") + number(row, "not_raised");
        let due = [300, 1_000, 5_000, 20_000].contains(&raised);
        assert!(row["condition"] == "idle" && due, "one each millisecond: {row}");
        assert!(row["lost"].is_null(), "{row}");
        adds_up(row);
        // The kernel stamps datagrams: after the stimulus, before its answer.
        let stamp = |at: &str| row["kernel_ns"][at].as_f64();
        let within = row["kernel_within_ns"].as_f64().expect("a bound");
        // An emulator of user mode knows no stamps.
        let stamps = source == "udp" && !skip::is_emulated();
        assert_eq!(stamp("min").is_some(), stamps, "{row}");
        if let (Some(min), Some(max)) = (stamp("min"), stamp("max")) {
            let latest = row["stages"][0]["start_ns"]["max"].as_f64().expect("it answered");
            assert!(min >= -within && max <= latest + within && within > 0.0, "{row}");
        }
        let by_timer = source == "timerfd";
        assert_eq!(response["stimulus_cpu"].is_null(), by_timer, "{response}");
        if cpus > 1 {
            assert!(number(&response["floor"], "n") > 0, "{response}");
        }
    }
}

#[test]
fn a_competitor_of_equal_priority_and_a_load_are_conditions_of_their_own() {
    let dir = Dir::new("response");
    let (result, page) = (dir.path("result.json"), dir.path("page.html"));
    let args = [
        "measure",
        "response",
        "--stage2",
        "rr",
        "--competitor",
        "--load",
        "syscall",
        "--duration",
        "200ms",
        "--json",
    ];
    let out = run(args.map(str::to_owned).into_iter().chain([result.display().to_string()]));
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let text = stdout(&out);
    assert!(text.contains("start of stage 1 (") && text.contains("load syscall"), "{text}");
    fits(&text);
    let stored = json_file(&result);
    let rows = stored["response"]["rows"].as_array().expect("rows");
    let names: Vec<&str> = rows.iter().filter_map(|row| row["condition"].as_str()).collect();
    let beside = "beside an equal";
    assert_eq!(names, [beside.to_owned(), format!("syscall, {beside}")]);
    rows.iter().for_each(adds_up);
    assert_eq!(stored["loads"][0]["name"], "syscall");
    let out = run(["report", &result.display().to_string(), "-o", &page.display().to_string()]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    assert!(fs::read_to_string(page).expect("written").contains("Answers to a stimulus"));
}

#[test]
fn a_load_that_does_not_start_leaves_what_was_measured_before_it() {
    let dir = Dir::new("response-no-load");
    let file = dir.path("result.json");
    for kind in ["response", "work"] {
        let mut command = punctual();
        command.args(["measure", kind, "--duration", "100ms", "--load", "disk", "--json"]);
        // The load writes there.
        let out = command.arg(&file).env("TMPDIR", dir.path("missing")).output();
        let out = out.expect("the program starts");
        assert_eq!(out.status.code(), Some(2), "{}", stderr(&out));
        assert!(stderr(&out).contains("load disk did not start"), "{}", stderr(&out));
        let result = json_file(&file);
        assert_eq!((&result["incomplete"], &result["ended_by"]), (&true.into(), &"load".into()));
        let rows = result[kind]["rows"].as_array().expect("rows");
        assert_eq!(rows.len(), 1, "{result}");
        assert_eq!(rows[0]["condition"], "idle");
    }
}

#[test]
fn an_interrupt_keeps_what_there_is() {
    let dir = Dir::new("response-interrupted");
    let file = dir.path("result.json");
    let mut command = punctual();
    command
        .args(["measure", "response", "--period", "1s", "--duration", "1h", "--json"])
        .arg(&file);
    let mut child = command.stdout(std::process::Stdio::null()).spawn().expect("it starts");
    until("signals to be caught", || catches_interrupt(&child));
    signal(&child, EndSignal::Interrupt);
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    let result = json_file(&file);
    assert_eq!(result["incomplete"], true);
    result["response"]["rows"].as_array().expect("rows").iter().for_each(adds_up);
}

#[test]
fn a_plugged_line_is_a_source_until_the_plug_is_pulled() {
    const LAST: u8 = 12;
    let dir = Dir::new("response-pulled");
    let file = dir.path("result.json");
    let (source, far, plug) = plugged_line(LAST);
    let args = ["measure", "response", "--period", "20ms", "--duration", "1min", "--source"];
    let out = run(args.iter().copied().chain([&*source, "--json", &*file.to_string_lossy()]));
    drop(far);
    plug.join().expect("it was pulled");
    assert_eq!(out.status.code(), Some(2), "{}", stderr(&out));
    assert!(stderr(&out).contains("the source was lost"), "{}", stderr(&out));
    let result = json_file(&file);
    let row = &result["response"]["rows"][0];
    assert_eq!(
        (&result["incomplete"], &result["response"]["source"]),
        (&true.into(), &source.into())
    );
    assert!(row["lost"].as_str().is_some_and(|why| why.contains("closed")), "{row}");
    assert!(row["kernel_ns"].is_null() && row["unexpected"] == 0, "{row}");
    let answered = number(&row["stages"][0], "answered");
    assert!((1..u64::from(LAST)).contains(&answered), "{row}");
    adds_up(row);
}

#[test]
fn bad_input_is_refused_with_the_reason() {
    let with = |args: &[&str]| run(["measure", "response"].iter().chain(args));
    refused(&with(&["--source", "gpio"]), &["gpio", "eventfd", "GPIO"]);
    refused(&with(&["--source", "gpio:/dev/gpiochip0:3:3"]), &["--source", "CHIP:IN:OUT", "two"]);
    refused(
        &with(&["--source", "gpio:/dev/null:0:1"]),
        &["source gpio:/dev/null:0:1", "GPIO chip"],
    );
    refused(&with(&["--source", "cable:eth0"]), &["--source", "SENDER:RECEIVER", "eth1:eth2"]);
    refused(&with(&["--source", "modem:/dev/null"]), &["source modem", "not a serial line"]);
    refused(&with(&["--source", "parport:/dev/null"]), &["source parport", "not a parallel port"]);
    refused(&with(&["--source", "serial:/dev/none"]), &["source serial:/dev/none", "No such file"]);
    refused(&with(&["--source", "serial:/dev/null:9"]), &["--source", "9600"]);
    refused(&with(&["--period", "10us"]), &["--period", "10 µs", "20 µs"]);
    refused(&with(&["--period", "20us", "--duration", "1h"]), &["stimuli", "at most"]);
    refused(&with(&["--duration", "0s"]), &["--duration"]);
    refused(&with(&["--cpu", "0-1"]), &["--cpu", "one CPU"]);
    refused(&with(&["--stimulus-cpu", "8191"]), &["--stimulus-cpu", "8191"]);
    refused(&with(&["--stage2", "idle"]), &["idle", "fifo"]);
    refused(&with(&["--stage2-priority", "99"]), &["--stage2-priority", "98"]);
    refused(&with(&["--load", "disco"]), &["disco"]);
}
