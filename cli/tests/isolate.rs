//! `punctual isolate` on this machine: in a program of its own, for the other threads of the
//! machine lose a CPU meanwhile. Skipped where no control groups with cpusets can be made.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use punctual_os::process::{EndSignal, end};
use punctual_testkit::control_group::ControlGroup;
use punctual_testkit::skip;

/// One at a time.
static TURN: Mutex<()> = Mutex::new(());

/// The groups above those that are made here.
const ABOVE: [&str; 2] = ["/sys/fs/cgroup/cpuset", "/sys/fs/cgroup"];

/// A directory for the journal, and the machine as it was.
struct Place {
    state: PathBuf,
    above: &'static str,
    before: Vec<String>,
    _turn: MutexGuard<'static, ()>,
}

impl Place {
    /// `None` where the test cannot run, which is noted.
    fn new(name: &str) -> Option<Self> {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let has = |above: &&&str| {
            let words = fs::read_to_string(format!("{above}/cgroup.controllers"));
            Path::new(above).join("cpuset.cpus").exists()
                || words.is_ok_and(|words| words.split_whitespace().any(|word| word == "cpuset"))
        };
        let above = ABOVE.iter().find(has);
        let probe = above.map(|above| Path::new(above).join("punctual.probe"));
        let writable = probe.is_some_and(|probe| {
            fs::create_dir(&probe).and_then(|()| fs::remove_dir(&probe)).is_ok()
        });
        let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
        let enough = online.starts_with("0-") && !online.starts_with("0-0");
        if !skip::need_device("two CPUs and a cpuset that may be divided", writable && enough) {
            return None;
        }
        let state = format!("punctual-isolate-{name}-{}", std::process::id());
        let state = std::env::temp_dir().join(state);
        fs::create_dir(&state).expect("new");
        let above = above.copied().unwrap_or_default();
        Some(Self { state, above, before: machine(above), _turn: turn })
    }

    fn group(&self) -> PathBuf {
        Path::new(self.above).join("punctual.isolated")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_punctual"));
        command.args(args).arg("--state").arg(&self.state);
        command
    }

    fn isolate(&self, args: &[&str], cpus: &str, program: &[&str]) -> Command {
        let mut command = self.command(&["isolate", "--cpus", cpus]);
        command.args(args).arg("--").args(program);
        command
    }

    /// Runs `sleep` isolated, and waits until it does.
    fn sleeper(&self) -> Child {
        let isolate = self.isolate(&[], "1", &["sleep", "60"]);
        // The tests may be a background job, which ignores SIGINT, and so would what they start.
        let mut command = Command::new("env");
        command.arg("--default-signal=INT").arg(isolate.get_program()).args(isolate.get_args());
        let child = command.stderr(Stdio::null()).spawn().expect("it starts");
        let members = self.group().join("cgroup.procs");
        until("the command to join its group", || {
            let members = fs::read_to_string(&members).unwrap_or_default();
            members.lines().any(|pid| {
                fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm == "sleep\n")
            })
        });
        child
    }

    fn is_as_before(&self) {
        assert_eq!(machine(self.above), self.before);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _left = self.command(&["tune", "revert"]).output();
        let _left = fs::remove_dir_all(&self.state);
    }
}

/// The settings that are changed, with their values, and the groups of this program.
fn machine(above: &str) -> Vec<String> {
    let mut files: Vec<PathBuf> = [
        "/proc/irq/default_smp_affinity",
        "/proc/sys/kernel/timer_migration",
        "/proc/sys/kernel/watchdog_cpumask",
        "/sys/devices/virtual/workqueue/cpumask",
        "/sys/devices/virtual/workqueue/writeback/cpumask",
    ]
    .map(PathBuf::from)
    .to_vec();
    files.extend(
        ["cgroup.subtree_control", "cpuset.sched_load_balance"]
            .map(|name| Path::new(above).join(name)),
    );
    let below = |dir: &str| fs::read_dir(dir).into_iter().flatten().flatten();
    files.extend(below("/proc/irq").map(|irq| irq.path().join("smp_affinity_list")));
    files.sort();
    let read =
        |path: &PathBuf| Some(format!("{} {}", path.display(), fs::read_to_string(path).ok()?));
    let mut lines: Vec<String> = files.iter().filter_map(read).collect();
    let groups =
        below(above).filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"punctual."));
    lines.extend(groups.map(|entry| entry.path().display().to_string()));
    lines
}

/// Waits, at most 60 s, until `ready`.
fn until(event: &str, mut ready: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !ready() {
        assert!(begun.elapsed() < Duration::from_secs(60), "waited for {event}");
        // Polling a process from outside: there is nothing to wait on.
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The mask of ignored signals that the kernel shows of a process.
fn ignored(text: &str) -> u64 {
    let mask = text.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.unwrap_or_else(|| panic!("no mask in {text}"));
    u64::from_str_radix(mask.trim(), 16).expect("a mask")
}

#[test]
fn a_command_has_its_cpu_and_all_is_put_back_with_its_status() {
    let Some(place) = Place::new("status").filter(|_| skip::need_fifo()) else { return };
    let show =
        "cat /proc/self/cgroup; grep -E 'Cpus_allowed_list|SigIgn' /proc/self/status; exit 7";
    let out = place.isolate(&["--fifo", "40"], "1", &["sh", "-c", show]).output().expect("runs");
    let text = String::from_utf8_lossy(&out.stdout);
    let without = Command::new("sh").args(["-c", show]).output().expect("runs");
    let before = ignored(&String::from_utf8_lossy(&without.stdout));
    assert_eq!(ignored(&text), before, "the signals that it ignores: {text}");
    assert_eq!(out.status.code(), Some(7), "{}", stderr(&out));
    assert!(text.contains(":/punctual.isolated\n"), "{text}");
    assert!(text.contains("Cpus_allowed_list:\t1\n"), "{text}");
    assert!(stderr(&out).contains(" settings are as before, 0 are not"), "{}", stderr(&out));
    place.is_as_before();
}

#[test]
fn what_measures_in_it_knows_that_its_cpu_is_isolated() {
    let Some(place) = Place::new("knows") else { return };
    let own = env!("CARGO_BIN_EXE_punctual");
    let results = place.state.join("results");
    let measured = ["check", "--cpu", "1", "-d", "2s", "--json", "-", "--results"];
    let check = [&[own], &measured[..], &[results.to_str().expect("UTF-8")]].concat();
    let inside = place.isolate(&[], "1", &check).output().expect("runs");
    let text = String::from_utf8_lossy(&inside.stdout);
    assert!(text.contains("\"advice\""), "{}", stderr(&inside));
    assert!(!text.contains("no CPU is isolated; 'punctual isolate' keeps one"), "{text}");
    place.is_as_before();
}

#[test]
fn a_signal_that_a_shell_has_ignored_stays_so_for_the_command() {
    let Some(place) = Place::new("ignored") else { return };
    // As a background job of a script: what is sent to isolate is not passed on either, and the
    // second does not kill.
    let sent = "kill -INT $PPID; sleep 0.6; kill -INT $PPID; sleep 0.2; \
                grep SigIgn /proc/self/status; exit 7";
    let isolate = place.isolate(&[], "1", &["sh", "-c", sent]);
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' INT; exec \"$0\" \"$@\""]);
    let out = shell.arg(isolate.get_program()).args(isolate.get_args()).output().expect("runs");
    assert_eq!(out.status.code(), Some(7), "{}", stderr(&out));
    let text = String::from_utf8_lossy(&out.stdout);
    assert_ne!(ignored(&text) & 1 << (EndSignal::Interrupt as i32 - 1), 0, "{text}");
    place.is_as_before();
}

#[test]
fn a_signal_is_passed_on_and_all_is_put_back() {
    let Some(place) = Place::new("signal") else { return };
    let mut child = place.sleeper();
    end(child.id().cast_signed(), EndSignal::Terminate).expect("ours");
    assert_eq!(child.wait().expect("ours").code(), Some(143));
    place.is_as_before();
}

#[test]
fn after_a_kill_the_command_is_ended_and_both_ways_put_all_back() {
    let Some(place) = Place::new("kill") else { return };
    for way in ["revert", "isolate"] {
        let mut child = place.sleeper();
        end(child.id().cast_signed(), EndSignal::Kill).expect("ours");
        child.wait().expect("ours");
        until("the command to end with it", || {
            let members = fs::read_to_string(place.group().join("cgroup.procs"));
            members.is_ok_and(|members| members.is_empty())
        });
        assert_ne!(machine(place.above), place.before, "nothing was changed");
        let out = match way {
            "revert" => place.command(&["tune", "revert"]).output(),
            _ => place.isolate(&[], "1", &["true"]).output(),
        };
        let out = out.expect("runs");
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        place.is_as_before();
    }
}

#[test]
fn where_no_thread_can_be_started_all_is_put_back() {
    let Some(place) = Place::new("threads") else { return };
    // An emulator has threads of its own.
    if !skip::need_native("a process of one thread") {
        return;
    }
    let group = ControlGroup::with("pids.max", "isolate");
    if !skip::need_device("control groups with pids.max that can be made", group.is_some()) {
        return;
    }
    let Some(group) = group else { return };
    // Itself alone; and with the command, which has a status of its own.
    for (most, code) in [(1, 2), (2, 7), (3, 7), (4, 7)] {
        group.write("pids.max", most).expect("a limit");
        let mut limited = group.command(env!("CARGO_BIN_EXE_punctual"));
        limited.args(["isolate", "--cpus", "1", "--state"]).arg(&place.state);
        let out = limited.args(["--", "sh", "-c", "exit 7"]).output().expect("runs");
        assert_eq!(out.status.code(), Some(code), "pids.max {most}: {}", stderr(&out));
        assert_eq!(stderr(&out).contains("raise pids.max"), code == 2, "{}", stderr(&out));
        place.is_as_before();
    }
}

#[test]
fn while_one_runs_another_is_refused_and_so_is_a_revert() {
    let Some(place) = Place::new("two") else { return };
    let mut child = place.sleeper();
    for mut command in [place.isolate(&[], "1", &["true"]), place.command(&["tune", "revert"])] {
        let out = command.output().expect("runs");
        assert_eq!(out.status.code(), Some(2));
        assert!(stderr(&out).contains("is changing settings; wait"), "{}", stderr(&out));
    }
    end(child.id().cast_signed(), EndSignal::Interrupt).expect("ours");
    child.wait().expect("ours");
    place.is_as_before();
}

#[test]
fn what_cannot_be_is_refused_before_anything_changes() {
    let Some(place) = Place::new("refused") else { return };
    let online = fs::read_to_string("/sys/devices/system/cpu/online").expect("readable");
    for (cpus, why) in [(online.trim(), "no CPU is left"), ("4000", "no CPU 4000")] {
        let out = place.isolate(&[], cpus, &["true"]).output().expect("runs");
        assert_eq!(out.status.code(), Some(2));
        assert!(stderr(&out).contains(why), "{}", stderr(&out));
    }
    fs::create_dir(place.group()).expect("new");
    let out = place.isolate(&[], "1", &["true"]).output().expect("runs");
    fs::remove_dir(place.group()).expect("it was left");
    assert_eq!(out.status.code(), Some(2));
    assert!(
        stderr(&out).contains("is there already and is not in the journal"),
        "{}",
        stderr(&out)
    );
    let out = place.isolate(&[], "1", &["/no/such/program"]).output().expect("runs");
    assert_eq!(out.status.code(), Some(2));
    assert!(stderr(&out).contains("cannot run /no/such/program"), "{}", stderr(&out));
    place.is_as_before();
}
