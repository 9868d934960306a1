//! Loads as real processes: this program starts itself as each load (`__load`), and as a process in
//! the middle that is killed (`__middle`), so it has a main function of its own.
//!
//! Writes in the format of the standard test harness; an argument selects tests by a part of their
//! name.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use punctual_core::time::Span;
use punctual_engine::clocks::{MachineClock, StampCost};
use punctual_host::facts::MachineFacts;
use punctual_host::root::Root;
use punctual_lab::experiment::{
    self, BackgroundLoads as _, ClockFacts, Context, Demand, Experiment, ExperimentError,
    ExperimentOutcome, Setting, on_one_thread,
};
use punctual_lab::load::{
    Launcher, LoadBounds, LoadError, LoadReport, LoadSpec, Reexec, RunningLoads, run_child,
};
use punctual_os::process::{EndSignal, end};
use punctual_os::scheduler::{self, SchedPolicy};
use punctual_testkit::skip;

/// Whatever ends does so within this time, or the test fails.
const PATIENCE: Duration = Duration::from_secs(20);

fn launcher() -> Reexec {
    Reexec::new(&["__load"])
}

fn bounds() -> LoadBounds {
    let cpus = punctual_os::affinity::get(0).expect("own affinity").iter().collect();
    LoadBounds::new(Duration::from_secs(60), cpus)
}

fn specs(list: &str) -> Vec<LoadSpec> {
    LoadSpec::parse_list(list).expect("a good list")
}

fn sleep(duration: Duration) {
    std::thread::sleep(duration);
}

/// Waits until `done`, and says whether it came.
fn wait_until(mut done: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        if Instant::now() > deadline {
            return false;
        }
        sleep(Duration::from_millis(20));
    }
    true
}

/// A process as /proc shows it.
struct ProcessStat {
    parent: u32,
    /// 'R', 'S', 'Z' and so on.
    state: char,
    /// In ticks since the boot: a number that is used again has another.
    start: u64,
}

fn stat(pid: u32) -> Option<ProcessStat> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = after_name.split(' ').collect();
    Some(ProcessStat {
        parent: fields[1].parse().ok()?,
        state: fields[0].chars().next()?,
        start: fields[19].parse().ok()?,
    })
}

/// All descendants of `top` with their start times.
fn descendants(top: u32) -> HashMap<u32, u64> {
    let processes: Vec<(u32, ProcessStat)> = std::fs::read_dir("/proc")
        .expect("procfs")
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|pid| Some((pid, stat(pid)?)))
        .collect();
    let mut found = HashMap::new();
    let mut next = vec![top];
    while let Some(parent) = next.pop() {
        for (pid, child) in processes.iter().filter(|(_, process)| process.parent == parent) {
            found.insert(*pid, child.start);
            next.push(*pid);
        }
    }
    found
}

/// Returns true once it runs no more; nobody may have waited for it yet.
fn is_gone(pid: u32, start: u64) -> bool {
    stat(pid).is_none_or(|now| now.start != start || matches!(now.state, 'Z' | 'X'))
}

fn kill(pid: u32) {
    end(pid.cast_signed(), EndSignal::Kill).expect("it lives");
}

/// A directory of our own, removed at the end.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("punctual-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).expect("a new directory");
        Self(path)
    }

    /// A program of that name which runs `script`.
    fn script(&self, name: &str, script: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = self.0.join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("ours");
    }

    /// `PATH` with this directory first.
    fn path(&self) -> String {
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
fn middle(list: &str, path: &str, at_least: usize) -> (Child, HashMap<u32, u64>) {
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
fn killing_the_middle_ends_all(list: &str, path: &str, at_least: usize) {
    let (mut child, found) = middle(list, path, at_least);
    child.kill().expect("it lives");
    child.wait().expect("ours");
    let gone = wait_until(|| found.iter().all(|(&pid, &start)| is_gone(pid, start)));
    let left: Vec<_> = found.iter().filter(|(pid, start)| !is_gone(**pid, **start)).collect();
    assert!(gone, "left of {list}: {left:?}");
}

/// Runs loads until they are at work: what counts only at its end counts then.
fn run_once(list: &str) -> Vec<LoadReport> {
    run(list, |_| ())
}

/// Runs loads until all have counted something; what never counts is seen in its report.
fn run_until_counted(list: &str) -> Vec<LoadReport> {
    run(list, until_counted)
}

/// Waits until all loads have counted something.
fn until_counted(running: &RunningLoads) {
    let counted = |report: &LoadReport| report.rate.is_some_and(|rate| rate > 0.0);
    let _in_vain = wait_until(|| running.reports().iter().all(counted));
}

/// The CPU time of a process, in ticks of 10 ms.
fn cpu_ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields).split(' ');
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}

fn run(list: &str, and_then: impl FnOnce(&RunningLoads)) -> Vec<LoadReport> {
    let running = RunningLoads::start(&specs(list), &launcher(), &bounds()).expect("it starts");
    let pids: Vec<(u32, u64)> =
        running.pids().iter().map(|&pid| (pid, stat(pid).expect("it lives").start)).collect();
    and_then(&running);
    let reports = running.stop();
    for (pid, start) in pids {
        assert!(stat(pid).is_none_or(|now| now.start != start), "{pid} is not waited for");
    }
    reports
}

fn each_load_runs_and_counts() {
    for spec in LoadSpec::all() {
        let reports = run_until_counted(spec.name());
        let [report] = reports.as_slice() else { panic!("{reports:?}") };
        assert_eq!(report.name, spec.name());
        assert!(report.rate.is_some_and(|rate| rate > 0.0), "{report:?}");
        assert!(report.unit.ends_with("/s"), "{report:?}");
        let is_of_memory = |note: &String| note.starts_with("no device takes part");
        let in_memory = spec.name() == "disk" && report.notes.iter().any(is_of_memory);
        assert_eq!(!report.notes.is_empty(), spec.name() == "net" || in_memory, "{report:?}");
        println!(
            "  {} {:.0} {} {:?}",
            report.name,
            report.rate.unwrap_or(0.0),
            report.unit,
            report.notes
        );
    }
}

fn several_run_at_once_and_none_is_none() {
    let reports = run_until_counted("cpu,timer,fork");
    assert!(reports.iter().all(|report| report.rate.is_some_and(|rate| rate > 0.0)), "{reports:?}");
    assert_eq!(reports.len(), 3);
    assert_eq!(run_once("none"), []);
}

fn counts_can_be_read_while_it_runs_and_from_another_thread() {
    let running = std::thread::spawn(|| RunningLoads::start(&specs("cpu"), &launcher(), &bounds()))
        .join()
        .expect("no panic")
        .expect("it starts");
    // The thread that started it has ended; the load has not.
    let counted = || running.reports()[0].rate.is_some_and(|rate| rate > 0.0);
    assert!(wait_until(counted), "{:?}", running.reports());
    assert_eq!(running.reports()[0].notes, [""; 0]);
}

fn a_load_does_not_run_where_it_cannot() {
    let nowhere = LoadBounds { cpus: vec![8191], unisolated: 1, ..bounds() };
    let refused = RunningLoads::start(&specs("cpu"), &launcher(), &nowhere).err();
    assert!(matches!(refused, Some(LoadError::Start { .. })), "{refused:?}");
    let no_directory = LoadBounds { temp: PathBuf::from("/nonexistent"), ..bounds() };
    let refused = RunningLoads::start(&specs("cpu,disk"), &launcher(), &no_directory).err();
    let Some(LoadError::Start { name, why }) = refused else { panic!("{refused:?}") };
    assert!(name == "disk" && why.contains("/nonexistent"), "{name}: {why}");
    assert!(descendants(std::process::id()).is_empty(), "the other one was left");
}

fn an_inherited_policy_is_left() {
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

fn nothing_is_left_in_the_directory() {
    let own = Directory::new("left");
    let elsewhere = LoadBounds { temp: own.0.clone(), ..bounds() };
    let running = RunningLoads::start(&specs("disk"), &launcher(), &elsewhere).expect("it starts");
    assert!(is_empty(&own.0), "the file has a name");
    drop(running);
    assert!(is_empty(&own.0));
}

fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).expect("readable").next().is_none()
}

fn a_drop_ends_it() {
    let running =
        RunningLoads::start(&specs("cpu,net"), &launcher(), &bounds()).expect("it starts");
    let found = descendants(std::process::id());
    assert!(found.len() >= 2);
    drop(running);
    assert!(descendants(std::process::id()).is_empty());
}

fn the_limit_ends_it() {
    let short = LoadBounds { limit: Duration::from_millis(300), ..bounds() };
    let running = RunningLoads::start(&specs("cpu,disk"), &launcher(), &short).expect("it starts");
    let pids = running.pids().to_vec();
    let over = wait_until(|| pids.iter().all(|&pid| stat(pid).is_none_or(|now| now.state == 'Z')));
    assert!(over, "it goes on after its limit");
    for report in running.stop() {
        // A device may take longer than that for the first sync: none is counted then, and the end
        // of the process waits for it.
        assert!(report.rate.is_some(), "{report:?}");
        assert!(has_note(&report, "it ended at its time limit"), "{report:?}");
    }
}

fn a_load_that_was_killed_is_seen() {
    let running = RunningLoads::start(&specs("cpu"), &launcher(), &bounds()).expect("it starts");
    let pid = running.pids()[0];
    kill(pid);
    assert!(wait_until(|| stat(pid).is_none_or(|now| now.state == 'Z')));
    let reports = running.stop();
    assert!(has_note(&reports[0], "signal: 9"), "{reports:?}");
}

fn what_a_load_does_behind_the_measurement_is_not_counted() {
    for (is_behind, deaths) in [(false, 1), (true, 0)] {
        let finished = experiment::run(
            Killing { is_behind },
            Setting {
                facts: &MachineFacts::collect(&Root::live()),
                launcher: &launcher(),
                observer: &mut (),
            },
        );
        let loads = finished.expect("it runs").loads;
        let [load] = &loads[0][..] else { panic!("one load: {loads:?}") };
        assert_eq!(load.deaths.len(), deaths, "{is_behind}: {load:?}");
    }
}

/// Runs a load twice, and kills its process in the second block, which is behind the measurement or
/// not.
struct Killing {
    is_behind: bool,
}

impl Experiment for Killing {
    type Outcome = ();

    fn demands(&self) -> Vec<Demand> {
        Vec::new()
    }

    fn conditions(&self) -> Vec<(String, Vec<LoadSpec>)> {
        vec![("cpu".to_owned(), specs("cpu"))]
    }

    fn run(self, context: Context<'_, '_>) -> Result<ExperimentOutcome<()>, ExperimentError> {
        let Context { loading, stop } = context;
        loading.begin(0, Span::from_ms(10_000)).map_err(ExperimentError::Load)?;
        loading.end(0);
        if self.is_behind {
            assert_eq!(loading.measured(), []);
        }
        loading.begin(0, Span::from_ms(10_000)).map_err(ExperimentError::Load)?;
        let begun = descendants(std::process::id());
        begun.keys().for_each(|&pid| kill(pid));
        // That was seen where another has begun.
        let again = || descendants(std::process::id()).keys().any(|pid| !begun.contains_key(pid));
        assert!(wait_until(again), "not started again");
        loading.end(0);
        let mut clock = MachineClock::best();
        let cost = StampCost::measure(&mut clock);
        on_one_thread(stop, || {
            ExperimentOutcome::of_thread((), ClockFacts::of(&clock, cost, None), Vec::new())
        })
    }
}

fn a_load_that_dies_is_started_again_once() {
    let running = RunningLoads::start(&specs("cpu"), &launcher(), &bounds()).expect("it starts");
    let first = running.pids()[0];
    kill(first);
    // Not the zombie that is not reaped yet.
    let alive = || {
        let lives = |pid: &u32| stat(*pid).is_some_and(|now| now.state != 'Z');
        descendants(std::process::id()).into_keys().find(|pid| *pid != first && lives(pid))
    };
    assert!(wait_until(|| alive().is_some()), "not started again");
    let second = alive().expect("just seen");
    kill(second);
    let deaths = || running.reports()[0].deaths.clone();
    assert!(wait_until(|| deaths().len() == 2), "{:?}", deaths());
    let [earlier, later] = &deaths()[..] else { panic!("two deaths: {:?}", deaths()) };
    assert!(earlier.restarted && earlier.worked_ns.is_some(), "{earlier:?}");
    assert!(earlier.why.contains("signal: 9"), "{earlier:?}");
    assert!(!later.restarted && later.at_ns > earlier.at_ns, "{later:?}");
    assert!(descendants(std::process::id()).is_empty());
    assert_eq!(running.stop()[0].deaths.len(), 2);
}

fn a_child_of_nobody_refuses() {
    let args = ["__load", "cpu", "--parent", "1", "--limit-ns", "1000000000"];
    let output = Command::new(std::env::current_exe().expect("own path"))
        .args(args)
        .stdin(Stdio::piped())
        .output()
        .expect("ourselves");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("failed its parent is process"));
}

fn a_child_ends_with_its_standard_input() {
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

fn killing_the_parent_ends_every_load() {
    let list: Vec<&str> = LoadSpec::all().iter().map(LoadSpec::name).collect();
    let path = std::env::var("PATH").unwrap_or_default();
    killing_the_middle_ends_all(&list.join(","), &path, LoadSpec::all().len());
}

/// A stand-in for stress-ng, which leaves processes of its own that know nothing of their parent.
const FAMILY: &str = "sleep 600 & sleep 600 & sh -c 'sleep 600 & wait' &
    echo dispatching hogs; wait";

fn killing_the_parent_ends_the_family_of_a_program() {
    let programs = Directory::new("family");
    programs.script("stress-ng", FAMILY);
    // The guard, the script, a shell and three sleeps.
    killing_the_middle_ends_all("stress-ng:--cpu 1", &programs.path(), 6);
}

fn killing_the_guard_ends_the_family_of_a_program() {
    let programs = Directory::new("guard");
    programs.script("stress-ng", FAMILY);
    let (mut child, found) = middle("stress-ng:--cpu 1", &programs.path(), 6);
    let is_guard = |pid: &&u32| stat(**pid).is_some_and(|process| process.parent == child.id());
    kill(*found.keys().find(is_guard).expect("the guard"));
    let gone = wait_until(|| found.iter().all(|(&pid, &start)| is_gone(pid, start)));
    assert!(gone);
    assert!(matches!(child.try_wait(), Ok(None)), "the process in the middle goes on");
    child.kill().expect("it lives");
    child.wait().expect("ours");
}

fn in_place_of_stress_ng(script: &str) -> Vec<LoadReport> {
    let programs = Directory::new("stand-in");
    programs.script("stress-ng", script);
    let mut command = Command::new(std::env::current_exe().expect("own path"));
    command.args(["__report", "stress-ng:--cpu 1 --fork 1"]).env("PATH", programs.path());
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output().expect("ourselves");
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().map(read_report).collect()
}

/// Returns true where a note of a load has these words.
fn has_note(report: &LoadReport, words: &str) -> bool {
    report.notes.iter().any(|note| note.contains(words))
}

/// One report as a line between two processes of this test: `rate TAB unit TAB note…`.
fn write_report(report: &LoadReport) -> String {
    let rate = report.rate.map_or_else(String::new, |rate| rate.to_string());
    let fields = [rate, report.unit.clone()];
    fields.iter().chain(&report.notes).map(String::as_str).collect::<Vec<_>>().join("\t")
}

fn read_report(line: &str) -> LoadReport {
    let fields: Vec<&str> = line.split('\t').collect();
    let [rate, unit, notes @ ..] = fields.as_slice() else { panic!("{line}") };
    LoadReport {
        name: String::new(),
        rate: rate.parse().ok(),
        unit: (*unit).to_owned(),
        notes: notes.iter().map(ToString::to_string).collect(),
        deaths: Vec::new(),
    }
}

fn counts_of_a_program_are_read_at_its_end() {
    let reports = in_place_of_stress_ng(
        "trap 'echo \"stress-ng: metrc: [7] cpu 1000 2.00 0.59 0.00 500.00 1706.53\"
               echo \"stress-ng: info:  [7] fork 30 2.00 0.07 0.05 15.00 250.00\"
               exit 0' INT
         echo 'stress-ng: info:  [7] dispatching hogs: 1 cpu, 1 fork'
         while :; do sleep 0.05; done",
    );
    let rates: Vec<_> = reports.iter().map(|r| (r.rate, r.unit.as_str())).collect();
    assert_eq!(rates, [(Some(500.0), "cpu bogo ops/s"), (Some(15.0), "fork bogo ops/s")]);
    assert!(reports.iter().all(|report| report.notes.is_empty()), "{reports:?}");
}

fn what_a_program_did_not_count_is_named() {
    let reports = in_place_of_stress_ng(
        "trap 'echo \"stress-ng: metrc: [7] cpu 1000 2.00 0.59 0.00 500.00 1706.53\"
               exit 0' INT
         echo 'stress-ng: info:  [7] dispatching hogs: 1 cpu, 1 fork'
         while :; do sleep 0.05; done",
    );
    let rates: Vec<_> = reports.iter().map(|r| (r.rate, r.unit.as_str())).collect();
    assert_eq!(rates, [(Some(500.0), "cpu bogo ops/s"), (None, "fork bogo ops/s")]);
    assert_eq!(reports[1].notes, ["stress-ng gave no count of fork"]);
}

fn a_program_that_does_not_run_is_seen() {
    let reports = in_place_of_stress_ng("echo no such stressor >&2; exit 1");
    let [cpu, fork] = reports.as_slice() else { panic!("{reports:?}") };
    for report in [cpu, fork] {
        assert_eq!(report.rate, None);
        assert!(has_note(report, "no such stressor"), "{report:?}");
    }
}

/// Ticks of CPU time after which a stressor has done something that it counts.
const WORKED: u64 = 20;

fn stress_ng_itself_counts() {
    let list = "stress-ng:\"--cpu 1 --fork 1\"";
    let running = match RunningLoads::start(&specs(list), &launcher(), &bounds()) {
        Err(LoadError::Missing { program }) => {
            assert!(!skip::need(program, false));
            return;
        }
        started => started.expect("it starts"),
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
    let is_explained = |report: &LoadReport| report.rate.is_some() || has_note(report, "no count");
    assert!(reports.iter().all(is_explained), "{reports:?}");
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

/// Loads whose environment names this display, or none.
struct OnDisplay(Option<String>);

impl Launcher for OnDisplay {
    fn command(&self, args: &[String]) -> Command {
        let mut command = launcher().command(args);
        match &self.0 {
            Some(display) => command.env("DISPLAY", display),
            None => command.env_remove("DISPLAY"),
        };
        command
    }
}

/// The report of glxgears where the environment names this display.
fn gears_on(display: &str) -> LoadReport {
    let on_display = OnDisplay(Some(display.to_owned()));
    let running =
        RunningLoads::start(&specs("linuxcnc"), &on_display, &bounds()).expect("it starts");
    until_counted(&running);
    running.stop().pop().expect("the last of three")
}

fn glxgears_draws_on_the_display_that_is_given_if_it_answers() {
    if !(skip::need_program("Xvfb") && skip::need_program("glxgears")) {
        return;
    }
    let args = ["-displayfd", "1", "-screen", "0", "640x480x24", "-nolisten", "tcp"];
    let mut command = Command::new("Xvfb");
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut screen = command.spawn().expect("Xvfb");
    let mut line = String::new();
    let out = screen.stdout.take().expect("piped");
    BufReader::new(out).read_line(&mut line).expect("its display");
    let display = format!(":{}", line.trim());
    let drawn = gears_on(&display);
    let _asked = end(screen.id().cast_signed(), EndSignal::Terminate);
    screen.wait().expect("ours");
    let words = format!("on the screen {display} of DISPLAY, drawn by ");
    assert!(has_note(&drawn, &words), "{drawn:?}");
    assert!(drawn.rate.is_some_and(|rate| rate > 0.0), "{drawn:?}");
    // Now it is gone, so that one nobody sees takes its place.
    let drawn = gears_on(&display);
    assert!(has_note(&drawn, "hidden screen (Xvfb): the screen "), "{drawn:?}");
    let words = format!("{display} of DISPLAY does not answer (");
    assert!(has_note(&drawn, &words), "{drawn:?}");
    assert!(drawn.rate.is_some_and(|rate| rate > 0.0), "{drawn:?}");
}

fn linuxcnc_runs_with_what_is_installed() {
    let before = displays();
    let hidden = OnDisplay(None);
    let running = RunningLoads::start(&specs("linuxcnc"), &hidden, &bounds()).expect("it starts");
    let installed = running.pids().len() == 3;
    // glxgears writes its count every 5 s; without it there is a note instead.
    let parts = if installed { 3 } else { 2 };
    let counted = |report: &LoadReport| report.rate.is_some_and(|rate| rate > 0.0);
    let _in_vain =
        wait_until(|| running.reports().iter().filter(|report| counted(report)).count() >= parts);
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
        // Without Xvfb where a display is given.
        let at_least = 5 - usize::from(std::env::var_os("DISPLAY").is_some());
        killing_the_middle_ends_all("linuxcnc", &path, at_least);
        assert!(wait_until(none_left), "{:?} was {before:?}", displays());
    } else {
        assert_eq!(gears.rate, None);
        let programs = gears.notes.iter().find_map(|note| note.strip_prefix("not installed: "));
        assert!(!skip::need(programs.expect("it says what is missing"), false));
    }
}

/// Starts loads and waits to be killed.
fn be_middle(list: &str) -> ExitCode {
    match RunningLoads::start(&specs(list), &launcher(), &bounds()) {
        Ok(_running) => {
            println!("started");
            sleep(3 * PATIENCE);
            ExitCode::SUCCESS
        }
        Err(why) => {
            println!("{why}");
            ExitCode::from(2)
        }
    }
}

/// Runs loads until they are at work and writes what they did.
///
/// Catches SIGINT as the tool does, so that a program that it starts gets the default action. Where
/// tests run in the background of a script SIGINT is ignored, and a shell cannot trap a signal that
/// was ignored when it started.
fn be_reporter(list: &str) -> ExitCode {
    punctual_os::signal::catch_stop().expect("a handler");
    for report in run_once(list) {
        println!("{}", write_report(&report));
    }
    ExitCode::SUCCESS
}

macro_rules! tests {
    ($($name:ident),* $(,)?) => {
        &[$((stringify!($name), $name as fn())),*]
    };
}

const TESTS: &[(&str, fn())] = tests![
    each_load_runs_and_counts,
    several_run_at_once_and_none_is_none,
    counts_can_be_read_while_it_runs_and_from_another_thread,
    a_drop_ends_it,
    the_limit_ends_it,
    a_load_that_was_killed_is_seen,
    a_load_that_dies_is_started_again_once,
    what_a_load_does_behind_the_measurement_is_not_counted,
    a_load_does_not_run_where_it_cannot,
    a_child_of_nobody_refuses,
    a_child_ends_with_its_standard_input,
    an_inherited_policy_is_left,
    killing_the_parent_ends_every_load,
    killing_the_parent_ends_the_family_of_a_program,
    killing_the_guard_ends_the_family_of_a_program,
    counts_of_a_program_are_read_at_its_end,
    what_a_program_did_not_count_is_named,
    a_program_that_does_not_run_is_seen,
    stress_ng_itself_counts,
    linuxcnc_runs_with_what_is_installed,
    glxgears_draws_on_the_display_that_is_given_if_it_answers,
    nothing_is_left_in_the_directory,
];

fn run_tests(args: &[String]) -> ExitCode {
    let filters: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    let chosen: Vec<_> = TESTS
        .iter()
        .filter(|(name, _)| filters.is_empty() || filters.iter().any(|f| name.contains(*f)))
        .collect();
    if args.iter().any(|arg| arg == "--list") {
        chosen.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    println!("\nrunning {} tests", chosen.len());
    let mut failed = 0;
    for (name, test) in &chosen {
        // In a thread of that name, as the standard harness does: messages and skips carry it.
        let thread = std::thread::Builder::new().name((*name).to_owned()).spawn(test);
        let fine = thread.expect("a thread").join().is_ok();
        println!("test {name} ... {}", if fine { "ok" } else { "FAILED" });
        failed += usize::from(!fine);
    }
    let result = if failed == 0 { "ok" } else { "FAILED" };
    let (passed, out) = (chosen.len() - failed, TESTS.len() - chosen.len());
    println!(
        "\ntest result: {result}. {passed} passed; {failed} failed; 0 ignored; 0 measured; \
         {out} filtered out\n"
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("__load") => run_child(&args[1..], &launcher(), &mut std::io::stdout().lock()).into(),
        Some("__middle") => be_middle(&args[1]),
        Some("__report") => be_reporter(&args[1]),
        _ => run_tests(&args),
    }
}
