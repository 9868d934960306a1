//! Loads that die or stand still while a run is under load: said, the dead ones started again once,
//! and nothing holds by it.
//!
//! Finds the processes of loads in /proc, as children of the program, and kills or stops them.

use std::fs;
use std::process::{Child, Command, Stdio};

use punctual_os::process::{EndSignal, end};
use punctual_testkit::control_group::ControlGroup;
use punctual_testkit::skip;

use crate::{Dir, children, json_file, punctual, settings_of_this_machine, stderr, stdout, until};

/// The children but for these, of which there are two at some time.
fn two(program: &Child, but: &[i32]) -> Vec<i32> {
    let mut found = Vec::new();
    until("two loads", || {
        found = children(program);
        found.retain(|pid| !but.contains(pid));
        found.len() == 2
    });
    found
}

fn kill_both(program: &Child, but: &[i32]) -> Vec<i32> {
    let found = two(program, but);
    for &pid in &found {
        end(pid, EndSignal::Kill).expect("it lives");
    }
    found
}

#[test]
fn loads_that_are_stopped_stand_still_and_no_limit_holds() {
    loads_stand_still("stopped-loads", |loads| {
        for pid in loads {
            let stop = Command::new("sh").arg("-c").arg(format!("kill -STOP {pid}")).status();
            assert!(stop.expect("a shell").success());
        }
    });
}

#[test]
fn loads_that_are_frozen_stand_still_and_no_limit_holds() {
    // Others compare which groups there are.
    let _turn = settings_of_this_machine();
    let group = ControlGroup::with("cgroup.freeze", "frozen-loads");
    if !skip::need_device("control groups with cgroup.freeze that can be made", group.is_some()) {
        return;
    }
    let Some(group) = group else { return };
    loads_stand_still("frozen-loads", |loads| {
        for pid in loads {
            group.write("cgroup.procs", pid).expect("writable");
        }
        group.write("cgroup.freeze", 1).expect("writable");
    });
}

/// Measures under two loads that `stop` stops, and asserts what is said of it.
fn loads_stand_still(name: &str, stop: impl FnOnce(&[i32])) {
    let dir = Dir::new(name);
    let (samples, json) = (dir.path("samples"), dir.path("result.json"));
    let mut command = punctual();
    command.args(["measure", "periodic", "--duration", "10s", "--load", "cpu,timer"]);
    command.args(["--limit", "max<60s", "--claim", "p(lateness>60s)<0.1"]);
    command.arg("--samples").arg(&samples).arg("--json").arg(&json);
    let program = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    until("1.2 s of samples", || fs::metadata(&samples).is_ok_and(|meta| meta.len() > 1_200 * 36));
    stop(&two(&program, &[]));
    let out = program.wait_with_output().expect("it ends");
    let text = stdout(&out);
    assert_eq!(out.status.code(), Some(3), "{text} {}", stderr(&out));
    let result = json_file(&json);
    let run = &result["runs"][0];
    assert_eq!(run["load_deaths"], 2, "{run}");
    for load in run["loads"].as_array().expect("loads") {
        let deaths = load["deaths"].as_array().expect("deaths");
        assert_eq!((deaths.len(), &deaths[0]["restarted"]), (1, &false.into()), "{load}");
        // Half a second before the end at least; how long it was depends on the machine.
        assert!(deaths[0]["stood_still_ns"].as_u64() >= Some(400_000_000), "{load}");
        let name = load["name"].as_str().expect("a name");
        for page in [text.clone(), result["warnings"].to_string()] {
            let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words.contains(&format!("load {name} stood still")), "{page}");
        }
    }
    let verdict = &result["verdict"];
    assert_eq!((&verdict["ok"], &verdict["limits"][0]["open"]), (&false.into(), &true.into()));
    assert_eq!(verdict["claims"][0]["holds"], "undecided", "{verdict}");
    assert_ne!(result["verdicts"][0]["answer"], "yes", "{result}");
}

#[test]
fn loads_that_die_are_started_again_once_and_no_limit_holds() {
    let dir = Dir::new("dead-loads");
    let (samples, json) = (dir.path("samples"), dir.path("result.json"));
    let mut command = punctual();
    command.args(["measure", "periodic", "--duration", "15s", "--load", "cpu,timer"]);
    command.args(["--limit", "max<60s", "--claim", "p(lateness>60s)<0.1"]);
    command.arg("--samples").arg(&samples).arg("--json").arg(&json);
    let program = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    // Of 36 bytes and more: 1.2 s of samples, each a millisecond.
    until("1.2 s of samples", || fs::metadata(&samples).is_ok_and(|meta| meta.len() > 1_200 * 36));
    let first = kill_both(&program, &[]);
    kill_both(&program, &first);
    let out = program.wait_with_output().expect("it ends");
    let text = stdout(&out);
    assert_eq!(out.status.code(), Some(3), "{text} {}", stderr(&out));
    let result = json_file(&json);
    let run = &result["runs"][0];
    assert_eq!(run["load_deaths"], 4, "{run}");
    for load in run["loads"].as_array().expect("loads") {
        let deaths = load["deaths"].as_array().expect("deaths");
        let restarted: Vec<bool> = deaths.iter().map(|death| death["restarted"] == true).collect();
        assert_eq!(restarted, [true, false], "{load}");
        assert!(deaths[0]["worked_ns"].as_u64() > Some(0), "{load}");
        assert!(deaths[0]["at_ns"].as_u64() < deaths[1]["at_ns"].as_u64(), "{load}");
        let name = load["name"].as_str().expect("a name");
        for words in [text.clone(), result["warnings"].to_string()] {
            assert!(words.contains(&format!("load {name} died")), "{words}");
        }
    }
    let verdict = &result["verdict"];
    assert_eq!((&verdict["ok"], &verdict["limits"][0]["open"]), (&false.into(), &true.into()));
    assert_eq!(verdict["claims"][0]["holds"], "undecided", "{verdict}");
    assert_ne!(result["verdicts"][0]["answer"], "yes", "{result}");
}
