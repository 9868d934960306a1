//! What the tests of loads share: processes as /proc shows them, and this program as others of
//! them.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use punctual_lab::load::{LoadBounds, LoadReport, LoadSpec, Reexec, RunningLoads};
use punctual_os::process::{EndSignal, end};

/// Whatever ends does so within this time, or the test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn launcher() -> Reexec {
    Reexec::new(&["__load"])
}

pub(crate) fn bounds() -> LoadBounds {
    let cpus = punctual_os::affinity::get(0).expect("own affinity").iter().collect();
    LoadBounds::new(Duration::from_secs(60), cpus)
}

pub(crate) fn specs(list: &str) -> Vec<LoadSpec> {
    LoadSpec::parse_list(list).expect("a good list")
}

pub(crate) fn sleep(duration: Duration) {
    std::thread::sleep(duration);
}

/// Waits until `done`, and says whether it came.
pub(crate) fn wait_until(mut done: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        if Instant::now() > deadline {
            return false;
        }
        sleep(Duration::from_millis(20));
    }
    true
}

/// A process as /proc shows it: parent, state, and start time (a number used again has another).
pub(crate) fn stat(pid: u32) -> Option<(u32, char, u64)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = after_name.split(' ').collect();
    Some((fields[1].parse().ok()?, fields[0].chars().next()?, fields[19].parse().ok()?))
}

/// All descendants of `top` with their start times.
pub(crate) fn descendants(top: u32) -> HashMap<u32, u64> {
    let all: Vec<(u32, u32, u64)> = std::fs::read_dir("/proc")
        .expect("procfs")
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|pid| stat(pid).map(|(parent, _, start)| (pid, parent, start)))
        .collect();
    let mut found = HashMap::new();
    let mut next = vec![top];
    while let Some(parent) = next.pop() {
        for &(pid, _, start) in all.iter().filter(|(_, of, _)| *of == parent) {
            found.insert(pid, start);
            next.push(pid);
        }
    }
    found
}

/// Whether it runs no more; nobody may have waited for it yet.
pub(crate) fn is_gone(pid: u32, start: u64) -> bool {
    stat(pid).is_none_or(|(_, state, now)| now != start || matches!(state, 'Z' | 'X'))
}

pub(crate) fn kill(pid: u32) {
    end(pid.cast_signed(), EndSignal::Kill).expect("it lives");
}

/// A directory of our own, removed at the end.
pub(crate) struct Directory(pub(crate) PathBuf);

impl Directory {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("punctual-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).expect("a new directory");
        Self(path)
    }

    /// A program of that name which runs `script`.
    pub(crate) fn script(&self, name: &str, script: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = self.0.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("ours");
    }

    /// `PATH` with this directory first.
    pub(crate) fn path(&self) -> String {
        format!("{}:{}", self.0.display(), std::env::var("PATH").unwrap_or_default())
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs `list` in a process in the middle, with `path` to find programs; gives it, and its
/// descendants once there are `at_least` of them.
pub(crate) fn middle(list: &str, path: &str, at_least: usize) -> (Child, HashMap<u32, u64>) {
    let mut child = Command::new(std::env::current_exe().expect("own path"))
        .args(["__middle", list])
        .env("PATH", path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("ourselves");
    let mut line = String::new();
    let out = child.stdout.take().expect("piped");
    BufReader::new(out).read_line(&mut line).expect("it says that it is ready");
    assert_eq!(line, "started\n");
    let mut found = HashMap::new();
    let enough = wait_until(|| {
        found = descendants(child.id());
        found.len() >= at_least
    });
    assert!(enough, "only {found:?}");
    (child, found)
}

/// Kills the process in the middle and waits for all its descendants.
pub(crate) fn killing_the_middle_ends_all(list: &str, path: &str, at_least: usize) {
    let (mut child, found) = middle(list, path, at_least);
    child.kill().expect("it lives");
    child.wait().expect("ours");
    let gone = wait_until(|| found.iter().all(|(&pid, &start)| is_gone(pid, start)));
    let left: Vec<_> = found.iter().filter(|(pid, start)| !is_gone(**pid, **start)).collect();
    assert!(gone, "left of {list}: {left:?}");
}

/// Runs loads until they are at work: what counts only at its end counts then.
pub(crate) fn run_once(list: &str) -> Vec<LoadReport> {
    run(list, |_| ())
}

/// Runs loads until all have counted something; what never counts is seen in its report.
pub(crate) fn run_until_counted(list: &str) -> Vec<LoadReport> {
    run(list, until_counted)
}

/// Waits until all loads have counted something.
pub(crate) fn until_counted(running: &RunningLoads) {
    let counted = |report: &LoadReport| report.rate.is_some_and(|rate| rate > 0.0);
    let _in_vain = wait_until(|| running.reports().iter().all(counted));
}

/// The CPU time of a process, in ticks of 10 ms.
pub(crate) fn cpu_ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields).split(' ');
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}

fn run(list: &str, and_then: impl FnOnce(&RunningLoads)) -> Vec<LoadReport> {
    let running = RunningLoads::start(&specs(list), &launcher(), &bounds()).expect("it starts");
    let pids: Vec<(u32, u64)> =
        running.pids().iter().map(|&pid| (pid, stat(pid).expect("it lives").2)).collect();
    and_then(&running);
    let reports = running.stop();
    for (pid, start) in pids {
        assert!(stat(pid).is_none_or(|(.., now)| now != start), "{pid} is not waited for");
    }
    reports
}
