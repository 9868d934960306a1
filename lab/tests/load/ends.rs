//! Loads end: when asked to, at their limit, and with whatever started them.

use std::process::{Command, Stdio};
use std::time::Duration;

use punctual_lab::load::{LoadBounds, LoadSpec, RunningLoads};

use crate::common::{
    Directory, bounds, descendants, is_gone, kill, killing_the_middle_ends_all, launcher, middle,
    specs, stat, wait_until,
};

pub(crate) fn a_drop_ends_it() {
    let running =
        RunningLoads::start(&specs("cpu,net"), &launcher(), &bounds()).expect("it starts");
    let found = descendants(std::process::id());
    assert!(found.len() >= 2);
    drop(running);
    assert!(descendants(std::process::id()).is_empty());
}

pub(crate) fn the_limit_ends_it() {
    let short = LoadBounds { limit: Duration::from_millis(300), ..bounds() };
    let running = RunningLoads::start(&specs("cpu,disk"), &launcher(), &short).expect("it starts");
    let pids = running.pids().to_vec();
    let over = wait_until(|| pids.iter().all(|&pid| stat(pid).is_none_or(|(_, s, _)| s == 'Z')));
    assert!(over, "it goes on after its limit");
    for report in running.stop() {
        assert!(report.rate.is_some_and(|rate| rate > 0.0), "{report:?}");
        assert!(report.note.as_deref() == Some("it ended at its time limit"));
    }
}

pub(crate) fn a_load_that_was_killed_is_seen() {
    let running = RunningLoads::start(&specs("cpu"), &launcher(), &bounds()).expect("it starts");
    let pid = running.pids()[0];
    kill(pid);
    assert!(wait_until(|| stat(pid).is_none_or(|(_, state, _)| state == 'Z')));
    let note = running.stop()[0].note.clone();
    assert!(note.as_deref().is_some_and(|note| note.contains("signal: 9")), "{note:?}");
}

pub(crate) fn a_load_that_dies_is_started_again_once() {
    let running = RunningLoads::start(&specs("cpu"), &launcher(), &bounds()).expect("it starts");
    let first = running.pids()[0];
    kill(first);
    // Not the zombie that is not reaped yet.
    let alive = || {
        let lives = |pid: &u32| stat(*pid).is_some_and(|(_, state, _)| state != 'Z');
        descendants(std::process::id()).into_keys().find(|pid| *pid != first && lives(pid))
    };
    assert!(wait_until(|| alive().is_some()), "not started again");
    let second = alive().expect("just seen");
    kill(second);
    let deaths = || running.reports()[0].deaths.clone();
    assert!(wait_until(|| deaths().len() == 2), "{:?}", deaths());
    let [one, two] = &deaths()[..] else { panic!("two deaths: {:?}", deaths()) };
    assert!(one.restarted && one.worked_ns.is_some() && one.why.contains("signal: 9"), "{one:?}");
    assert!(!two.restarted && two.at_ns > one.at_ns, "{two:?}");
    assert!(descendants(std::process::id()).is_empty());
    assert_eq!(running.stop()[0].deaths.len(), 2);
}

pub(crate) fn a_child_of_nobody_refuses() {
    let args = ["__load", "cpu", "--parent", "1", "--limit-ns", "1000000000"];
    let output = Command::new(std::env::current_exe().expect("own path"))
        .args(args)
        .stdin(Stdio::piped())
        .output()
        .expect("ourselves");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("failed its parent is process"));
}

pub(crate) fn a_child_ends_with_its_standard_input() {
    let me = std::process::id().to_string();
    let mut child = Command::new(std::env::current_exe().expect("own path"))
        .args(["__load", "cpu", "--parent", &me, "--limit-ns", "60000000000"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("ourselves");
    drop(child.stdin.take());
    assert!(wait_until(|| matches!(child.try_wait(), Ok(Some(_)))));
}

pub(crate) fn killing_the_parent_ends_every_load() {
    let list: Vec<&str> = LoadSpec::all().iter().map(LoadSpec::name).collect();
    let path = std::env::var("PATH").unwrap_or_default();
    killing_the_middle_ends_all(&list.join(","), &path, LoadSpec::all().len());
}

/// A stand-in for stress-ng, which leaves processes of its own that know nothing of their parent.
pub(crate) const FAMILY: &str = "sleep 600 & sleep 600 & sh -c 'sleep 600 & wait' &
    echo dispatching hogs; wait";

pub(crate) fn killing_the_parent_ends_the_family_of_a_program() {
    let programs = Directory::new("family");
    programs.script("stress-ng", FAMILY);
    // The guard, the script, a shell and three sleeps.
    killing_the_middle_ends_all("stress-ng:--cpu 1", &programs.path(), 6);
}

pub(crate) fn killing_the_guard_ends_the_family_of_a_program() {
    let programs = Directory::new("guard");
    programs.script("stress-ng", FAMILY);
    let (mut child, found) = middle("stress-ng:--cpu 1", &programs.path(), 6);
    let is_guard = |pid: &&u32| stat(**pid).is_some_and(|(parent, ..)| parent == child.id());
    kill(*found.keys().find(is_guard).expect("the guard"));
    let gone = wait_until(|| found.iter().all(|(&pid, &start)| is_gone(pid, start)));
    assert!(gone);
    assert!(matches!(child.try_wait(), Ok(None)), "the process in the middle goes on");
    child.kill().expect("it lives");
    child.wait().expect("ours");
}
