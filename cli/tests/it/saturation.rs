//! `measure saturation`, for real: what must add up, whatever the machine does.

use std::fs;

use punctual_os::affinity;
use punctual_os::process::EndSignal;
use serde_json::Value;

use crate::{
    Dir, catches_interrupt, fits, json_file, plugged_line, punctual, refused, run, signal, stderr,
    stdout,
};

/// Whether this machine has the two CPUs that it needs.
fn two_cpus() -> bool {
    affinity::get(0).expect("own").count() > 1
}

/// Bounds, trials and ends belong together.
fn adds_up(object: &Value) {
    let trials = object["trials"].as_array().expect("trials");
    for row in object["rows"].as_array().expect("rows") {
        let hz = |key: &str| row[key].as_f64();
        if let (Some(pass), Some(fail)) = (hz("pass_hz"), hz("fail_hz")) {
            assert!(pass < fail, "{row}");
            assert!(row["end"] != "found" || fail / pass < 1.03, "neighbours: {row}");
        }
        let stage = row["stage"].as_u64().expect("a stage") as usize - 1;
        let own = || trials.iter().filter(|trial| trial["condition"] == row["condition"]);
        let valid = || own().filter(|trial| trial["generator_limited"] == false);
        let lossy = valid()
            .filter(|trial| trial["loss"][stage].as_f64().is_some_and(|object| object > 0.0));
        let first = lossy.filter_map(|trial| trial["hz"].as_f64()).min_by(f64::total_cmp);
        assert_eq!(hz("first_loss_hz"), first, "{row}");
        let at_pass = valid().filter(|trial| hz("pass_hz") == trial["hz"].as_f64());
        let stimuli: u64 = at_pass.filter_map(|trial| trial["stimuli"].as_u64()).sum();
        assert_eq!(row["stimuli"], stimuli, "{row}");
    }
    for trial in trials {
        let share = &trial["background_share"];
        assert_eq!(share.is_null(), trial["condition"] == "unloaded", "{trial}");
        let loss: Vec<f64> =
            trial["loss"].as_array().expect("two").iter().filter_map(Value::as_f64).collect();
        assert!(
            loss.len() == 2 && loss.iter().all(|object| (0.0..=1.0).contains(object)),
            "{trial}"
        );
        assert!(loss[1] >= loss[0] - 0.5, "stage 2 answers what stage 1 hands on: {trial}");
    }
}

#[test]
fn bounds_trials_and_background_add_up() {
    if !two_cpus() {
        return;
    }
    let dir = Dir::new("saturation");
    let (result, page) = (dir.path("result.json"), dir.path("page.html"));
    let args = ["measure", "saturation", "--duration", "6s", "--json"].map(str::to_owned);
    let out = run(args.into_iter().chain([result.display().to_string()]));
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let text = stdout(&out);
    assert!(text.contains("MF") && text.contains("SF50"), "{text}");
    fits(&text);
    let stored = json_file(&result);
    assert_eq!(stored["experiment"], "measure saturation");
    let of = &stored["saturation"];
    assert_eq!(
        of["rows"].as_array().map(Vec::len),
        Some(12),
        "two conditions, stages, three goals"
    );
    assert!(of["trials"].as_array().is_some_and(|trials| !trials.is_empty()));
    assert!(of["background"]["rate"].as_f64().is_some_and(|rate| rate > 0.0), "{of}");
    adds_up(of);
    let out = run(["report", &result.display().to_string(), "-o", &page.display().to_string()]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    assert!(fs::read_to_string(page).expect("written").contains("Highest frequencies"));
}

#[test]
fn an_interrupt_keeps_what_there_is() {
    if !two_cpus() {
        return;
    }
    let dir = Dir::new("saturation-interrupted");
    let file = dir.path("result.json");
    let mut command = punctual();
    command.args(["measure", "saturation", "--duration", "1h", "--json"]).arg(&file);
    let mut child = command.stdout(std::process::Stdio::null()).spawn().expect("it starts");
    while !catches_interrupt(&child) {
        std::thread::yield_now();
    }
    signal(&child, EndSignal::Interrupt);
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    let result = json_file(&file);
    assert_eq!(result["incomplete"], true);
    adds_up(&result["saturation"]);
}

#[test]
fn a_plug_that_is_pulled_ends_it_with_what_there_is() {
    if !two_cpus() {
        return;
    }
    let dir = Dir::new("saturation-pulled");
    let file = dir.path("result.json");
    let (source, far, plug) = plugged_line(12);
    let args = ["measure", "saturation", "--duration", "1min", "--source", &source, "--json"];
    let out = run(args.iter().copied().chain([&*file.to_string_lossy()]));
    drop(far);
    plug.join().expect("it was pulled");
    assert_eq!(out.status.code(), Some(2), "{}", stderr(&out));
    assert!(stderr(&out).contains("the source was lost"), "{}", stderr(&out));
    let result = json_file(&file);
    assert_eq!((&result["incomplete"], &result["ended_by"]), (&true.into(), &"link".into()));
    let of = &result["saturation"];
    assert!(of["lost"].as_str().is_some_and(|why| why.contains("closed")), "{of}");
    assert_eq!(of["source"], source.as_str());
    adds_up(of);
}

#[test]
fn bad_input_is_refused_with_the_reason() {
    let with = |args: &[&str]| run(["measure", "saturation"].iter().chain(args));
    refused(&with(&["--source", "timerfd"]), &["timerfd", "timer"]);
    refused(&with(&["--source", "gpio"]), &["gpio", "eventfd"]);
    refused(&with(&["--cpu", "0", "--stimulus-cpu", "0"]), &["two CPUs"]);
    refused(&with(&["--duration", "0s"]), &["--duration"]);
    refused(&with(&["--stage2-priority", "99"]), &["--stage2-priority", "98"]);
    // The process of --unsafe-no-throttle, which changes nothing without all of its words.
    for words in [&["__unthrottle"][..], &["__unthrottle", "/tmp", "cpu", "1"]] {
        let out = run(words);
        assert_eq!((out.status.code(), stderr(&out)), (Some(2), String::new()), "{words:?}");
        assert!(!stdout(&out).contains("off") && !stdout(&out).is_empty(), "{words:?}");
    }
}
