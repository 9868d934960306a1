//! `measure saturation`, for real: what must add up, whatever the machine does.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use punctual_os::affinity;
use punctual_os::process::EndSignal;
use punctual_testkit::skip;
use serde_json::Value;

use crate::tune::{may_mount, run_with};
use crate::{
    Dir, as_user, catches_interrupt, fits, guide, json, json_file, plugged_line, punctual, refused,
    run, settings_of_this_machine, signal, stderr, stdout, text,
};

/// Returns true where this machine has the two CPUs that it needs.
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
        assert_eq!(share.is_null(), trial["condition"] != "loaded", "{trial}");
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
    let body = &stored["saturation"];
    assert_eq!(
        body["rows"].as_array().map(Vec::len),
        Some(12),
        "two conditions, stages, three goals"
    );
    assert!(body["trials"].as_array().is_some_and(|trials| !trials.is_empty()));
    assert!(body["background"]["rate"].as_f64().is_some_and(|rate| rate > 0.0), "{body}");
    adds_up(body);
    let out = run(["report", &result.display().to_string(), "-o", &page.display().to_string()]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    assert!(fs::read_to_string(page).expect("written").contains("Highest frequencies"));
}

#[test]
fn a_competitor_of_equal_priority_is_searched_beside_the_others() {
    if !two_cpus() {
        return;
    }
    let args = ["measure", "saturation", "--duration", "6s", "--stage2", "rr"];
    let out = run(args.into_iter().chain(["--competitor=polygons", "--json", "-"]));
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let saturation = &json(&out)["saturation"];
    let stage = &saturation["stage_2"];
    assert_eq!((&stage["policy"], &stage["priority"]), (&"SCHED_RR".into(), &70.into()));
    assert_eq!(stage["competitor"], "polygons");
    assert_eq!(saturation["highest_hz"], 400_000.0);
    let conditions = |key: &str| {
        let rows = saturation[key].as_array().expect("rows").iter();
        let mut names: Vec<&str> = rows.filter_map(|row| row["condition"].as_str()).collect();
        names.dedup();
        names.join(" ")
    };
    // Each has its part of the time, so that each has trials.
    assert_eq!(conditions("rows"), "unloaded loaded equal");
    assert_eq!(conditions("trials"), "unloaded loaded equal");
    adds_up(saturation);
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
    let mut child = command.stdout(Stdio::null()).spawn().expect("it starts");
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
    let body = &result["saturation"];
    assert!(body["lost"].as_str().is_some_and(|why| why.contains("closed")), "{body}");
    assert_eq!(body["source"], source.as_str());
    adds_up(body);
}

#[test]
fn bad_input_is_refused_with_the_reason() {
    let with = |args: &[&str]| run(["measure", "saturation"].iter().chain(args));
    refused(&with(&["--source", "timerfd"]), &["timerfd", "timer"]);
    refused(&with(&["--source", "gpio"]), &["gpio", "eventfd"]);
    refused(&with(&["--cpu", "0", "--stimulus-cpu", "0"]), &["two CPUs"]);
    refused(&with(&["--duration", "0s"]), &["--duration"]);
    refused(&with(&["--stage2-priority", "99"]), &["--stage2-priority", "98"]);
    refused(&with(&["--competitor=draws"]), &["--competitor", "draws", "polygons"]);
    // The process of --unsafe-no-throttle, which changes nothing without all of its words.
    for words in [&["__unthrottle"][..], &["__unthrottle", "/tmp", "cpu", "1"]] {
        let out = run(words);
        assert_eq!((out.status.code(), stderr(&out)), (Some(2), String::new()), "{words:?}");
        assert!(!stdout(&out).contains("off") && !stdout(&out).is_empty(), "{words:?}");
    }
}

const NO_THROTTLE: [&str; 5] =
    ["measure", "saturation", "--duration=1s", "--unsafe-no-throttle", "--state"];

#[test]
fn no_throttle_says_where_it_was_tested_and_that_it_does_not_check() {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let help = words(&stdout(&run(["measure", "saturation", "--help"])));
    let said = "Tested in virtual machines only; that this is one is not checked";
    assert!(help.contains(said), "{help}");
    let page = words(&guide::text("docs/experiments.md"));
    for said in [
        "tested in virtual machines only; the option does not check that it runs in one",
        "(it needs `/sys/kernel/debug` mounted)",
    ] {
        assert!(page.contains(said), "{said}");
    }
}

#[test]
fn no_throttle_is_refused_without_rights_and_changes_nothing() {
    if !two_cpus()
        || !skip::need("root", skip::is_root())
        || !skip::need_program("setpriv")
        || !skip::need_program("prlimit")
    {
        return;
    }
    let _turn = settings_of_this_machine();
    let throttling = || fs::read_to_string("/proc/sys/kernel/sched_rt_runtime_us").ok();
    let (dir, before) = (Dir::new("no-throttle-user"), throttling());
    let user = as_user(&dir);
    let mut command = Command::new("prlimit");
    command.arg("--rtprio=0").arg(user.get_program()).args(user.get_args());
    let out = command.args(NO_THROTTLE).arg(dir.path("state")).output().expect("it starts");
    refused(&out, &["cannot switch throttling off", "SCHED_FIFO 99, which is not permitted"]);
    assert_eq!(throttling(), before);
}

/// Debugfs, and the setting itself, are hidden meanwhile: nothing could be switched off by mistake.
#[test]
fn no_throttle_asks_for_debugfs_and_not_for_a_virtual_machine() {
    let dir = Dir::new("no-throttle-debugfs");
    let debugfs = Path::new("/sys/kernel/debug");
    if !two_cpus()
        || !skip::need_fifo()
        || !may_mount(&dir)
        || !skip::need_device("/sys/kernel/debug", debugfs.is_dir())
    {
        return;
    }
    let _turn = settings_of_this_machine();
    let (empty, limit, metal) = (dir.path("empty"), dir.path("limit"), dir.path("cpuinfo"));
    fs::create_dir(&empty).expect("writable");
    fs::write(&limit, "950000\n").expect("writable");
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").expect("readable");
    fs::write(&metal, cpuinfo.replace(" hypervisor", "")).expect("writable");
    let hidden = [
        (empty.as_path(), "/sys/kernel/debug"),
        (limit.as_path(), "/proc/sys/kernel/sched_rt_runtime_us"),
        (metal.as_path(), "/proc/cpuinfo"),
    ];
    let state = dir.path("state");
    let facts = json(&run_with(&hidden, &["facts", "--json", "-"]));
    // Elsewhere than on x86 a flag of the processor does not decide that.
    let is_metal = facts["virtualization"]["value"] == "none";
    for hidden in [&hidden[..2], &hidden].into_iter().take(1 + usize::from(is_metal)) {
        let out = run_with(hidden, &[&NO_THROTTLE[..], &[text(&state)]].concat());
        refused(&out, &["cannot switch throttling off", "mount -t debugfs debugfs"]);
        assert!(!stderr(&out).contains("virtual"), "{}", stderr(&out));
        assert_eq!(fs::read_to_string(&limit).expect("readable"), "950000\n");
        let status = run(["tune", "status", "--state", text(&state)]);
        assert!(stdout(&status).contains("nothing is applied"), "{}", stdout(&status));
    }
}
