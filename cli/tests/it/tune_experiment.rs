//! `tune experiment` on this machine, with a setting that disturbs nobody: what it says, and that
//! everything is as before, also after a signal and a kill.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use punctual_os::process::EndSignal;
use punctual_testkit::skip;

use crate::support::{
    Dir, json, punctual, refused, run, settings_of_this_machine, signal, stderr, until,
};
use crate::tune_apply::Laptop;

/// Settings that no other test depends on.
const HARMLESS: [(&str, &str); 2] = [
    ("vm.stat_interval", "/proc/sys/vm/stat_interval"),
    ("vm.compaction_proactiveness", "/proc/sys/vm/compaction_proactiveness"),
];

/// One that the plan of this machine would change and this process may; its file.
fn harmless() -> Option<(&'static str, &'static str)> {
    let plan = json(&run(["tune", "plan", "--json", "-"]));
    let planned = |knob: &str| {
        let steps = plan["runtime"].as_array().expect("an array").iter();
        steps.clone().any(|step| step["knob"] == knob)
    };
    let writable = |path: &str| fs::OpenOptions::new().write(true).open(path).is_ok();
    let found = HARMLESS.into_iter().find(|(knob, path)| planned(knob) && writable(path));
    skip::need_device("a setting that may be tried", found.is_some()).then_some(())?;
    found
}

#[test]
fn a_setting_is_tried_and_all_is_as_before() {
    let _turn = settings_of_this_machine();
    let Some((knob, path)) = harmless() else { return };
    let before = fs::read_to_string(path).expect("readable");
    let dir = Dir::new("tune-experiment");
    let state = dir.path("state");
    let args = ["tune", "experiment", "--only", knob, "--duration", "9s", "--json", "-"];
    let out = punctual().args(args).arg("--dry-run").arg("--state").arg(&state).output();
    let out = out.expect("it starts");
    let result = json(&out);
    assert_eq!(out.status.code(), Some(0), "{} {}", result["changed"], stderr(&out));
    assert_eq!(result["experiment"], "tune experiment");
    let setting = &result["settings"][0];
    assert_eq!(setting["knob"], knob);
    let first = &setting["first"];
    assert!(first["n_a"].as_u64() > Some(0) && first["n_b"].as_u64() > Some(0), "{first}");
    assert!(result["threshold_ns"].as_i64() > Some(0), "{result}");
    assert_eq!(result["kept"].as_array().map(Vec::len), Some(0));
    assert_eq!(fs::read_to_string(path).expect("readable"), before);
    let journal = fs::read(state.join("experiment.journal")).expect("it was locked");
    assert!(journal.is_empty());
}

#[test]
fn a_setting_that_somebody_else_changes_meanwhile_is_void_and_left() {
    let _turn = settings_of_this_machine();
    let Some((knob, path)) = harmless() else { return };
    let text = || fs::read_to_string(path).expect("readable");
    let before = text();
    let dir = Dir::new("tune-experiment-changed");
    let state = dir.path("state");
    let mut command = punctual();
    command.args(["tune", "experiment", "--only", knob, "--duration", "9s", "--json", "-"]);
    command.arg("--state").arg(&state).stdout(Stdio::piped());
    let child = command.spawn().expect("it starts");
    until("the setting", || text() != before);
    fs::write(path, "7\n").expect("writable");
    let out = child.wait_with_output().expect("ours");
    let after = text();
    fs::write(path, &before).expect("writable");
    assert_eq!(after, "7\n", "what somebody else set is left");
    assert_eq!(out.status.code(), Some(1), "{}", stderr(&out));
    let result = json(&out);
    assert_eq!(result["settings"][0]["verdict"], "void", "{result}");
    assert_eq!(result["changed"][0], format!("{path}: 7"), "{result}");
    assert_eq!(result["kept"].as_array().map(Vec::len), Some(0));
    let reason = result["verdict"]["reasons"][0].as_str().expect("a reason");
    assert!(reason.contains("changed by somebody else") && reason.contains(path), "{reason}");
}

#[test]
fn a_paper_is_measured_with_and_without_the_plan_and_all_is_as_before() {
    let _turn = settings_of_this_machine();
    if harmless().is_none() {
        return;
    }
    let dir = Dir::new("tune-reproduce");
    let state = dir.path("state");
    let files = || {
        let paths = HARMLESS.map(|(_, path)| path);
        let more = ["/proc/irq/default_smp_affinity", "/proc/sys/kernel/timer_migration"];
        paths.into_iter().chain(more).map(fs::read_to_string).collect::<Result<Vec<_>, _>>().ok()
    };
    let before = files();
    let args = ["reproduce", "linuxcnc", "--quick", "--tune", "--json", "-", "--state"];
    let out = punctual().args(args).arg(&state).output().expect("it starts");
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let result = json(&out);
    let rows = result["rows"].as_array().expect("rows");
    let row = |id: &str| rows.iter().find(|row| row["id"] == id).unwrap_or_else(|| panic!("{id}"));
    for name in ["idle", "idle-tuned", "linuxcnc", "linuxcnc-tuned"] {
        assert!(row(&format!("linuxcnc.{name}.latency"))["measured"].is_f64(), "{result}");
    }
    let note = row("linuxcnc.idle-tuned.latency")["note"].as_str().expect("a note");
    assert!(note.contains("settings: /"), "{note}");
    assert_eq!(files(), before);
    assert!(fs::read(state.join("experiment.journal")).expect("it was locked").is_empty());
}

#[test]
fn an_end_in_the_middle_leaves_nothing() {
    let _turn = settings_of_this_machine();
    let Some((knob, path)) = harmless() else { return };
    let before = fs::read_to_string(path).expect("readable");
    let dir = Dir::new("tune-experiment-ended");
    let state = dir.path("state");
    for (how, code) in [(EndSignal::Interrupt, Some(130)), (EndSignal::Kill, None)] {
        let mut command = punctual();
        command.args(["tune", "experiment", "--only", knob, "--duration", "60s"]);
        command.arg("--state").arg(&state).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("it starts");
        let journal = state.join("experiment.journal");
        // In a block with the setting, or while it is tried for a moment before any block.
        let applied = || {
            let journal = fs::read_to_string(&journal).unwrap_or_default();
            journal.contains(path) && fs::read_to_string(path).expect("readable") != before
        };
        until("the setting", applied);
        signal(&child, how);
        assert_eq!(child.wait().expect("ours").code(), code, "{how:?}");
        if how == EndSignal::Kill {
            let out = punctual().args(["tune", "revert", "--state"]).arg(&state).output();
            assert_eq!(out.expect("it starts").status.code(), Some(0));
        }
        assert_eq!(fs::read_to_string(path).expect("readable"), before, "{how:?}");
    }
}

#[test]
fn what_could_not_be_kept_in_the_end_is_refused_at_the_beginning() {
    let _turn = settings_of_this_machine();
    let Some((knob, path)) = harmless() else { return };
    let before = fs::read_to_string(path).expect("readable");
    let laptop = Laptop::new("tune-experiment-keep");
    assert_eq!(laptop.tune("apply").status.code(), Some(0));
    // Too short for an experiment, which is found out later.
    let args = ["tune", "experiment", "--only", knob, "--duration", "1s", "--state"];
    let experiment = || run(args.iter().copied().chain([laptop.state.as_str()]));
    refused(&experiment(), &["tune.journal", "it is about files of ", &laptop.root]);
    assert_eq!(laptop.tune("revert").status.code(), Some(0));
    refused(&experiment(), &["1 settings take at least 8.0 s"]);
    assert_eq!(fs::read_to_string(path).expect("readable"), before);
}

#[test]
fn an_error_in_the_middle_leaves_the_result_so_far() {
    let _turn = settings_of_this_machine();
    let Some((knob, path)) = harmless() else { return };
    let text = || fs::read_to_string(path).expect("readable");
    let (before, dir) = (text(), Dir::new("tune-experiment-error"));
    let state = dir.path("state");
    let mut command = punctual();
    command.args(["tune", "experiment", "--only", knob, "--duration", "9s", "--json", "-"]);
    command.arg("--state").arg(&state).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("it starts");
    let tasks = format!("/proc/{}/task", child.id());
    let threads = || fs::read_dir(&tasks).map_or(0, Iterator::count);
    // Not while it is tried for a moment before any block.
    until("the setting in a block", || text() != before && threads() > 1);
    let journal = state.join("experiment.journal");
    let file = fs::OpenOptions::new().append(true).open(journal).expect("there");
    { file }.write_all(b"somebody else's line\n").expect("writable");
    let out = child.wait_with_output().expect("ours");
    fs::write(path, &before).expect("writable");
    assert_eq!(out.status.code(), Some(2), "{}", stderr(&out));
    assert!(stderr(&out).contains("journal is corrupt"), "{}", stderr(&out));
    let result = json(&out);
    assert_eq!(result["experiment"], "tune experiment", "{result}");
    assert_eq!(result["incomplete"], true, "{result}");
    assert!(result["threshold_ns"].as_i64() > Some(0), "{result}");
}

#[test]
fn what_cannot_be_tried_is_refused() {
    let refused = |args: &[&str], why: &str| {
        let out = run(["tune", "experiment"].iter().chain(args));
        assert_eq!(out.status.code(), Some(2), "{args:?}");
        assert!(stderr(&out).contains(why), "{args:?}: {}", stderr(&out));
    };
    refused(&["--tail", "p100"], "neither a time (50us) nor a quantile");
    refused(&["--tail", "soon"], "neither a time (50us) nor a quantile");
    refused(&["--only", "no.such"], "no such setting");
    refused(&["--root", "/nowhere"], "--root: settings are tried on this machine only");
    let _turn = settings_of_this_machine();
    let Some((knob, _)) = harmless() else { return };
    let dir = Dir::new("tune-experiment-short");
    let state = dir.path("state").display().to_string();
    refused(
        &["--only", knob, "--duration", "1s", "--state", &state],
        "1 settings take at least 8.0 s; try fewer with --only",
    );
}
