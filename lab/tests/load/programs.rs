//! Loads that are other people's programs: the real ones when installed, and stand-ins.

use std::process::{Command, Stdio};

use punctual_lab::load::{LoadError, LoadReport, RunningLoads};
use punctual_testkit::skip;

use crate::common::{
    Directory, bounds, cpu_ticks, descendants, killing_the_middle_ends_all, launcher, specs,
    wait_until,
};

pub(crate) fn in_place_of_stress_ng(script: &str) -> Vec<LoadReport> {
    let programs = Directory::new("stand-in");
    programs.script("stress-ng", script);
    let mut command = Command::new(std::env::current_exe().expect("own path"));
    command.args(["__report", "stress-ng:--cpu 1 --fork 1"]).env("PATH", programs.path());
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output().expect("ourselves");
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().map(read_report).collect()
}

/// One report as a line between two processes of this test: `rate TAB unit TAB note`.
pub(crate) fn write_report(report: &LoadReport) -> String {
    let rate = report.rate.map_or_else(String::new, |rate| rate.to_string());
    format!("{rate}\t{}\t{}", report.unit, report.note.clone().unwrap_or_default())
}

pub(crate) fn read_report(line: &str) -> LoadReport {
    let fields: Vec<&str> = line.split('\t').collect();
    let [rate, unit, note] = fields.as_slice() else { panic!("{line}") };
    let note = (!note.is_empty()).then(|| (*note).to_owned());
    LoadReport {
        name: String::new(),
        rate: rate.parse().ok(),
        unit: (*unit).to_owned(),
        note,
        deaths: Vec::new(),
    }
}

pub(crate) fn counts_of_a_program_are_read_at_its_end() {
    let reports = in_place_of_stress_ng(
        "trap 'echo \"stress-ng: metrc: [7] cpu 1000 2.00 0.59 0.00 500.00 1706.53\"
               echo \"stress-ng: info:  [7] fork 30 2.00 0.07 0.05 15.00 250.00\"
               exit 0' INT
         echo 'stress-ng: info:  [7] dispatching hogs: 1 cpu, 1 fork'
         while :; do sleep 0.05; done",
    );
    let rates: Vec<_> = reports.iter().map(|r| (r.rate, r.unit.as_str(), &r.note)).collect();
    let expected = [(Some(500.0), "cpu bogo ops/s", &None), (Some(15.0), "fork bogo ops/s", &None)];
    assert_eq!(rates, expected);
}

pub(crate) fn what_a_program_did_not_count_is_named() {
    let reports = in_place_of_stress_ng(
        "trap 'echo \"stress-ng: metrc: [7] cpu 1000 2.00 0.59 0.00 500.00 1706.53\"
               exit 0' INT
         echo 'stress-ng: info:  [7] dispatching hogs: 1 cpu, 1 fork'
         while :; do sleep 0.05; done",
    );
    let rates: Vec<_> = reports.iter().map(|r| (r.rate, r.unit.as_str())).collect();
    assert_eq!(rates, [(Some(500.0), "cpu bogo ops/s"), (None, "fork bogo ops/s")]);
    assert_eq!(reports[1].note.as_deref(), Some("stress-ng gave no count of fork"));
}

pub(crate) fn a_program_that_does_not_run_is_seen() {
    let reports = in_place_of_stress_ng("echo no such stressor >&2; exit 1");
    let [cpu, fork] = reports.as_slice() else { panic!("{reports:?}") };
    for report in [cpu, fork] {
        assert_eq!(report.rate, None);
        assert!(report.note.as_deref().is_some_and(|note| note.contains("no such stressor")));
    }
}

/// Ticks of CPU time after which a stressor has done something that it counts.
const WORKED: u64 = 20;

pub(crate) fn stress_ng_itself_counts() {
    let list = "stress-ng:\"--cpu 1 --fork 1\"";
    let running = match RunningLoads::start(&specs(list), &launcher(), &bounds()) {
        Err(LoadError::Missing { program }) => {
            assert!(!skip::need(program, false));
            return;
        }
        other => other.expect("it starts"),
    };
    // It writes its counts at its end: by then one stressor has worked.
    let own = std::process::id();
    let works = || descendants(own).keys().any(|&pid| cpu_ticks(pid) >= WORKED);
    assert!(wait_until(works), "no stressor works");
    let reports = running.stop();
    let units: std::collections::BTreeSet<&str> = reports.iter().map(|r| r.unit.as_str()).collect();
    assert_eq!(units, ["cpu bogo ops/s", "fork bogo ops/s"].into(), "{reports:?}");
    // It leaves out a stressor that it had to kill, as on a busy machine; never all of them.
    let counted = |report: &LoadReport| report.rate.is_some_and(|rate| rate > 0.0);
    assert!(reports.iter().any(counted), "{reports:?}");
    let named =
        |report: &LoadReport| report.note.as_deref().is_some_and(|n| n.contains("no count"));
    assert!(reports.iter().all(|report| report.rate.is_some() || named(report)), "{reports:?}");
    let path = std::env::var("PATH").unwrap_or_default();
    killing_the_middle_ends_all(list, &path, 4);
}

/// The sockets of displays.
fn displays() -> Vec<std::ffi::OsString> {
    let sockets = std::fs::read_dir("/tmp/.X11-unix").into_iter().flatten().flatten();
    let mut names: Vec<_> = sockets.map(|socket| socket.file_name()).collect();
    names.sort();
    names
}

pub(crate) fn linuxcnc_runs_with_what_is_installed() {
    let before = displays();
    let running =
        RunningLoads::start(&specs("linuxcnc"), &launcher(), &bounds()).expect("it starts");
    let installed = running.pids().len() == 3;
    // glxgears writes its count every 5 s; without it there is a note instead.
    let parts = if installed { 3 } else { 2 };
    let counted = |report: &LoadReport| report.rate.is_some_and(|rate| rate > 0.0);
    let _in_vain =
        wait_until(|| running.reports().iter().filter(|of| counted(of)).count() >= parts);
    let reports = running.stop();
    let [cpu, fork, gears] = reports.as_slice() else { panic!("{reports:?}") };
    for own in [cpu, fork] {
        assert!(own.rate.is_some_and(|rate| rate > 0.0), "{own:?}");
    }
    if installed {
        assert!(gears.rate.is_some_and(|rate| rate > 0.0), "{gears:?}");
        let path = std::env::var("PATH").unwrap_or_default();
        // Those of other programs come and go meanwhile.
        let none_left = || displays().iter().all(|name| before.contains(name));
        assert!(wait_until(none_left), "{:?} was {before:?}", displays());
        killing_the_middle_ends_all("linuxcnc", &path, 5);
        assert!(wait_until(none_left), "{:?} was {before:?}", displays());
    } else {
        assert_eq!(gears.rate, None);
        let note = gears.note.as_deref().unwrap_or_default();
        let programs = note.strip_prefix("not installed: ").expect("it says what is missing");
        assert!(!skip::need(programs, false));
    }
}
