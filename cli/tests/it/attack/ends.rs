//! Every way to end, at any time: the machine after it as before, and no process left.
//!
//! Compares settings of the kernel, network interfaces, mounts, cgroups of supervisors, and a
//! directory for temporary files and one for sockets that are each trial's own. Processes are found
//! by the name of that directory in their environment.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::MutexGuard;

use punctual_os::process::EndSignal;

use super::Attack;
use crate::outputs::names;
use crate::support::{Dir, json_file, punctual, settings_of_this_machine, signal, until};

/// Files below /proc and /sys that hold what a program like this could change.
fn settings() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = ["sched_rt_runtime_us", "sched_rt_period_us", "timer_migration"]
        .iter()
        .map(|name| Path::new("/proc/sys/kernel").join(name))
        .collect();
    files.push("/proc/mounts".into());
    let below = |dir: &Path| -> Vec<PathBuf> {
        fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
    };
    for cpu in below(Path::new("/sys/devices/system/cpu")) {
        files.push(cpu.join("cpufreq/scaling_governor"));
        files.extend(below(&cpu.join("cpuidle")).iter().map(|state| state.join("disable")));
    }
    files
}

/// The machine, as far as a run may not change it.
struct Machine {
    settings: BTreeMap<PathBuf, String>,
    interfaces: Vec<String>,
}

impl Machine {
    fn now() -> Self {
        let read = |path: PathBuf| Some((path.clone(), fs::read_to_string(path).ok()?));
        Self {
            settings: settings().into_iter().filter_map(read).collect(),
            interfaces: names(Path::new("/sys/class/net")),
        }
    }

    /// Asserts that it is what it was.
    fn is_still(&self, before: &Self, trial: &str) {
        for (path, text) in &before.settings {
            assert_eq!(self.settings.get(path), Some(text), "{trial}: {}", path.display());
        }
        assert_eq!(self.settings.len(), before.settings.len(), "{trial}");
        assert_eq!(self.interfaces, before.interfaces, "{trial}");
    }
}

/// What a Rust program exits with after a panic.
pub(super) const PANICKED: i32 = 101;

/// A place of one trial's own.
pub(super) struct Place {
    dir: Dir,
    machine: Machine,
    /// Nobody else changes what it compares.
    _turn: Option<MutexGuard<'static, ()>>,
}

impl Place {
    pub(super) fn new(name: &str) -> Self {
        let turn = settings_of_this_machine();
        Self { _turn: Some(turn), ..Self::within_turn(name) }
    }

    /// One for a caller whose turn with the settings of this machine it is already.
    pub(super) fn within_turn(name: &str) -> Self {
        let dir = Dir::new(&format!("attack-{name}"));
        for name in ["tmp", "run", "out"] {
            fs::create_dir(dir.path(name)).expect("writable");
        }
        fs::set_permissions(dir.path("run"), fs::Permissions::from_mode(0o700)).expect("ours");
        Self { dir, machine: Machine::now(), _turn: None }
    }

    /// A path in it.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path(name)
    }

    /// The program here with no arguments yet, started by a shell after `limits`, which may be
    /// any of its commands.
    pub(super) fn shell(&self, limits: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{limits} exec \"$0\" \"$@\"")]);
        command.arg(punctual().get_program());
        command.env("TMPDIR", self.dir.path("tmp"));
        command.env("PUNCTUAL_RUNTIME_DIR", self.dir.path("run"));
        command
    }

    /// One of the commands that take time, here, under a shell's `limits` where there are some.
    pub(super) fn command(&self, which: usize, limits: &str) -> Command {
        let out = self.dir.path("out");
        let mut command = self.shell(limits);
        match which % COMMANDS {
            0 => {
                command.args(["measure", "periodic", "--duration", "1s", "--load"]);
                command.arg("cpu,timer,disk,net").arg("--samples").arg(out.join("samples"));
            }
            1 => {
                let tasks = self.dir.path("tasks.toml");
                let text = "[supervisor]\nname = \"attacked\"\n[[task]]\nname = \"a\"\n\
                            period = \"5ms\"\nregister_within = \"60s\"\n\
                            safe = \"ff\"\ncommand = [\"sh\", \"-c\", \"sleep 60 & sleep 60\"]\n";
                fs::write(&tasks, text).expect("writable");
                command.arg("run").arg(&tasks).args(["--duration", "500ms"]);
            }
            2 => {
                command.args(["soak", "--every", "1s", "--duration", "1s", "--load", "cpu"]);
                command.arg("--campaign").arg(out.join("c"));
                return command;
            }
            which => {
                command.args(OTHERS[which - OWN].split(' '));
            }
        }
        command.arg("--json").arg(out.join("result.json"));
        command
    }

    /// The processes of this trial that live.
    fn processes(&self) -> Vec<String> {
        let own = self.dir.path("tmp").to_str().expect("UTF-8").to_owned();
        let lives = |pid: &String| {
            let proc = Path::new("/proc").join(pid);
            let environ = fs::read(proc.join("environ")).unwrap_or_default();
            let ended = fs::read_to_string(proc.join("stat"))
                .map_or(true, |stat| stat.contains(") Z ") || stat.contains(") X "));
            !ended && String::from_utf8_lossy(&environ).contains(&own)
        };
        let all = names(Path::new("/proc")).into_iter();
        all.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())).filter(lives).collect()
    }

    /// What must hold after `pid` ended like this, whatever was done to it: no panic, and the
    /// machine as before.
    pub(super) fn left_nothing(&self, trial: &str, pid: u32, status: ExitStatus) {
        assert_ne!(status.code(), Some(PANICKED), "{trial}: it panicked");
        until(&format!("the processes of {trial} to end"), || self.processes().is_empty());
        Machine::now().is_still(&self.machine, trial);
        let uncaught = status.signal().is_some();
        let sockets = names(&self.dir.path("run"));
        assert!(uncaught || sockets.is_empty(), "{trial}: {sockets:?}");
        let temporary = names(&self.dir.path("tmp"));
        assert!(temporary.is_empty(), "{trial}: {temporary:?}");
        let groups = Path::new("/sys/fs/cgroup/unified");
        let groups = if groups.is_dir() { groups } else { Path::new("/sys/fs/cgroup") };
        let prefix = format!("punctual-{pid}-");
        let left = names(groups).into_iter().any(|name| name.starts_with(&prefix));
        assert!(uncaught || !left, "{trial}: its cgroups are left");
    }

    /// The same, and that a result is whole; in a word, how it ended.
    pub(super) fn check(self, what: &str, pid: u32, status: ExitStatus) -> &'static str {
        self.left_nothing(what, pid, status);
        let killed = status.signal() == Some(EndSignal::Kill as i32);
        for file in [self.dir.path("out/result.json"), self.dir.path("out/c/result.json")] {
            if file.is_file() {
                let result = json_file(&file);
                assert!(result["experiment"].is_string(), "{what}: {result}");
                return if killed { "killed, result whole" } else { "result whole" };
            }
        }
        match status.code() {
            None => "ended by the signal before there was a result",
            Some(0) => panic!("{what}: no result"),
            Some(_) => "refused, nothing written",
        }
    }
}

/// The commands of [`Place::command`] that name files of their own.
const OWN: usize = 3;
/// The others.
const OTHERS: [&str; 9] = [
    "measure noise --duration 500ms --load fork",
    "measure response --duration 500ms --load fork",
    "measure timer --duration 500ms",
    "measure accuracy --duration 500ms",
    "measure saturation --duration 500ms",
    "measure work --duration 500ms --load fork",
    "measure wait --duration 500ms",
    "measure executive --duration 500ms",
    "respond udp:127.0.0.1:0 --duration 500ms",
];
/// All of them.
pub(super) const COMMANDS: usize = OWN + OTHERS.len();

/// How a run comes to its end.
#[derive(Clone, Copy, Debug)]
enum Way {
    Itself,
    Signal(EndSignal),
    /// Under these limits of a shell.
    Limit(&'static str),
    /// Nobody reads what it prints, or that cannot be written.
    Output(&'static str),
}

const WAYS: [Way; 14] = [
    Way::Itself,
    Way::Signal(EndSignal::Interrupt),
    Way::Signal(EndSignal::Terminate),
    Way::Signal(EndSignal::HangUp),
    Way::Signal(EndSignal::Kill),
    Way::Limit("ulimit -n 12;"),
    Way::Limit("ulimit -n 30;"),
    Way::Limit("ulimit -f 8;"),
    Way::Limit("ulimit -v 60000;"),
    Way::Limit("ulimit -t 1;"),
    Way::Limit("ulimit -r 0;"),
    Way::Limit("ulimit -l 64;"),
    Way::Output("/dev/full"),
    Way::Output("closed"),
];

#[test]
fn ends() {
    let mut attack = Attack::begin("ends");
    let mut trials: Vec<(usize, Way)> =
        (0..COMMANDS).flat_map(|which| WAYS.map(|way| (which, way))).collect();
    attack.random.shuffle(&mut trials);
    for number in 0.. {
        if !attack.goes_on() {
            break;
        }
        let (which, way) = trials[number % trials.len()];
        let place = Place::new(&format!("ends-{number}"));
        let limits = if let Way::Limit(limits) = way { limits } else { "" };
        let mut command = place.command(which, limits);
        let what = format!("{way:?}: {command:?}");
        command.stdout(Stdio::null()).stderr(Stdio::null());
        if let Way::Output(path) = way {
            match fs::OpenOptions::new().write(true).open(path) {
                Ok(full) => drop(command.stdout(full)),
                Err(_) => drop(command.stdout(std::io::pipe().expect("a pipe").1)),
            }
        }
        let mut child = command.spawn().expect("a shell");
        drop(command);
        if let Way::Signal(how) = way {
            // At any time: before it catches signals, while it measures, while it ends.
            let ms = attack.random.below(700) as u64;
            std::thread::sleep(std::time::Duration::from_millis(ms));
            signal(&child, how);
        }
        until(&what, || child.try_wait().expect("ours").is_some());
        let status = child.wait().expect("ours");
        let outcome = place.check(&what, child.id(), status);
        attack.note(outcome);
    }
    attack.end();
}
