//! Loads work: each counts, within its bounds.

use std::path::{Path, PathBuf};

use punctual_lab::load::{LoadBounds, LoadError, LoadSpec, RunningLoads};
use punctual_os::scheduler::{self, SchedPolicy};
use punctual_testkit::skip;

use crate::common::{
    Directory, bounds, descendants, launcher, run_once, run_until_counted, specs, wait_until,
};

pub(crate) fn each_load_runs_and_counts() {
    for spec in LoadSpec::all() {
        let reports = run_until_counted(spec.name());
        let [report] = reports.as_slice() else { panic!("{reports:?}") };
        assert_eq!(report.name, spec.name());
        assert!(report.rate.is_some_and(|rate| rate > 0.0), "{report:?}");
        assert!(report.unit.ends_with("/s"), "{report:?}");
        assert_eq!(report.note.is_some(), spec.name() == "net", "{report:?}");
        println!(
            "  {} {:.0} {} {:?}",
            report.name,
            report.rate.unwrap_or(0.0),
            report.unit,
            report.note
        );
    }
}

pub(crate) fn several_run_at_once_and_none_is_none() {
    let reports = run_until_counted("cpu,timer,fork");
    assert!(reports.iter().all(|report| report.rate.is_some_and(|rate| rate > 0.0)), "{reports:?}");
    assert_eq!(reports.len(), 3);
    assert_eq!(run_once("none"), []);
}

pub(crate) fn counts_can_be_read_while_it_runs_and_from_another_thread() {
    let running = std::thread::spawn(|| RunningLoads::start(&specs("cpu"), &launcher(), &bounds()))
        .join()
        .expect("no panic")
        .expect("it starts");
    // The thread that started it has ended; the load has not.
    let counted = || running.reports()[0].rate.is_some_and(|rate| rate > 0.0);
    assert!(wait_until(counted), "{:?}", running.reports());
    assert_eq!(running.reports()[0].note, None);
}

pub(crate) fn a_load_does_not_run_where_it_cannot() {
    let nowhere = LoadBounds { cpus: vec![8191], unisolated: 1, ..bounds() };
    let refused = RunningLoads::start(&specs("cpu"), &launcher(), &nowhere).err();
    assert!(matches!(refused, Some(LoadError::Start { .. })), "{refused:?}");
    let no_directory = LoadBounds { temp: PathBuf::from("/nonexistent"), ..bounds() };
    let refused = RunningLoads::start(&specs("cpu,disk"), &launcher(), &no_directory).err();
    let Some(LoadError::Start { name, why }) = refused else { panic!("{refused:?}") };
    assert!(name == "disk" && why.contains("/nonexistent"), "{name}: {why}");
    assert!(descendants(std::process::id()).is_empty(), "the other one was left");
}

pub(crate) fn an_inherited_policy_is_left() {
    let before = scheduler::get(0).expect("own policy");
    let fifo = SchedPolicy::Fifo(1);
    if !skip::need("SCHED_FIFO", scheduler::set(0, fifo).is_ok()) {
        return;
    }
    let running = RunningLoads::start(&specs("cpu"), &launcher(), &bounds());
    scheduler::set(0, before).expect("taken back");
    let running = running.expect("it starts");
    let pid = running.pids()[0];
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).expect("it lives").flatten() {
        let tid = task.file_name().to_string_lossy().parse().expect("a number");
        assert_eq!(scheduler::get(tid), Ok(SchedPolicy::Other));
    }
}

pub(crate) fn nothing_is_left_in_the_directory() {
    let own = Directory::new("left");
    let there = LoadBounds { temp: own.0.clone(), ..bounds() };
    let running = RunningLoads::start(&specs("disk"), &launcher(), &there).expect("it starts");
    assert!(is_empty(&own.0), "the file has a name");
    drop(running);
    assert!(is_empty(&own.0));
}

pub(crate) fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).expect("readable").next().is_none()
}
