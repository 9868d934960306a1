//! The attack: faults, signals, hostile neighbours, planted links and mutated inputs, as many as a
//! time allows, in an order that a seed decides.
//!
//! `cargo xtask attack` runs it for longer and prints a table. PUNCTUAL_ATTACK_SECONDS is the time
//! of each attack (2), PUNCTUAL_ATTACK_SEED the seed (1), PUNCTUAL_ATTACK_LOG a file that gets a
//! line for each attack. Only the number of trials depends on time; each asserts what must hold.

mod boot;
mod ends;
mod faults;
mod inputs;
mod journals;
mod links;
mod missing;
mod neighbours;
mod pairs;
mod signals;
mod sticky;
mod stopped;
mod threads;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use punctual_os::process::EndSignal;
use punctual_testkit::random::Random;

use crate::{Dir, PROGRAM, json, json_file, names, run, settings_of_this_machine, signal, until};

/// One attack while it runs.
struct Attack {
    name: &'static str,
    random: Random,
    until: Instant,
    /// Ends of the trials, and how many had each.
    outcomes: BTreeMap<String, u64>,
}

impl Attack {
    /// Begins; its time counts from now.
    fn begin(name: &'static str) -> Self {
        let number = |name: &str, or: u64| {
            std::env::var(name).map_or(or, |text| text.parse().expect("a whole number"))
        };
        let seconds = number("PUNCTUAL_ATTACK_SECONDS", 2);
        let random = Random::named(number("PUNCTUAL_ATTACK_SEED", 1), name);
        let until = Instant::now() + Duration::from_secs(seconds);
        Self { name, random, until, outcomes: BTreeMap::new() }
    }

    /// Returns true where there is time for another trial; there is for the first.
    fn goes_on(&self) -> bool {
        self.outcomes.is_empty() || Instant::now() < self.until
    }

    /// Returns true where nothing else runs meanwhile, as in `cargo xtask attack`: then a trial may
    /// also do what others would notice.
    fn is_alone(&self) -> bool {
        std::env::var_os("PUNCTUAL_ATTACK_LOG").is_some()
    }

    /// A trial came out like this.
    fn note(&mut self, outcome: impl Into<String>) {
        *self.outcomes.entry(outcome.into()).or_default() += 1;
    }

    /// All trials so far.
    fn trials(&self) -> u64 {
        self.outcomes.values().sum()
    }

    /// Over, and everything held.
    fn end(self) {
        let outcomes: Vec<String> =
            self.outcomes.iter().map(|(outcome, count)| format!("{count} {outcome}")).collect();
        let line = format!("{}\t{}\t{}\n", self.name, self.trials(), outcomes.join(", "));
        print!("attack {line}");
        let Some(log) = std::env::var_os("PUNCTUAL_ATTACK_LOG") else { return };
        let file = fs::OpenOptions::new().create(true).append(true).open(log);
        file.and_then(|mut file| file.write_all(line.as_bytes())).expect("a writable log");
    }
}

/// Where control groups are made: in versions 1 and 2.
const GROUPS: [&str; 3] = ["/sys/fs/cgroup/cpuset", "/sys/fs/cgroup/unified", "/sys/fs/cgroup"];

/// Settings of this machine that `tune apply` and `isolate` change, as they were; one trial at a
/// time has them.
struct Settings {
    texts: BTreeMap<PathBuf, String>,
    groups: Vec<PathBuf>,
    _turn: MutexGuard<'static, ()>,
}

impl Settings {
    /// Waits for its turn, and reads them: those of plans for each of the first two CPUs, the
    /// settings of which differ, and `more`.
    fn read(more: &[&str]) -> Self {
        let turn = settings_of_this_machine();
        let mut paths: Vec<PathBuf> = more.iter().map(PathBuf::from).collect();
        for cpu in ["0", "1"] {
            let out = run(["tune", "plan", "--cpus", cpu, "--json", "-"]);
            // Where there is no second CPU nothing is planned for it.
            let plan = if out.status.success() { json(&out) } else { continue };
            let steps = plan["runtime"].as_array().expect("steps").iter();
            paths.extend(steps.filter_map(|step| step["change"]["path"].as_str()).map(Into::into));
        }
        let read = |path: PathBuf| Some((path.clone(), fs::read_to_string(path).ok()?));
        let texts = paths.into_iter().filter_map(read).collect();
        Self { texts, groups: groups(), _turn: turn }
    }

    /// Settings that are not as they were: setting, now, before.
    fn changed(&self) -> Vec<String> {
        let mut changed = Vec::new();
        for (path, before) in &self.texts {
            let now = fs::read_to_string(path).unwrap_or_default();
            if now != *before {
                changed.push(format!("{}: {now:?}, it was {before:?}", path.display()));
            }
        }
        let made = groups().into_iter().filter(|group| !self.groups.contains(group));
        changed.extend(made.map(|group| format!("{} is left", group.display())));
        changed
    }

    /// Asserts that all are as before.
    fn are_as_before(&self, trial: &str) {
        let changed = self.changed();
        assert!(changed.is_empty(), "{trial}: not as before: {}", changed.join("; "));
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        // Only after a failed trial is there anything to do; it was reported.
        for group in groups().iter().filter(|group| !self.groups.contains(group)) {
            let above = group.parent().expect("a group is in one").join("cgroup.procs");
            let members = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
            let moved = members.lines().map(|pid| fs::write(&above, pid));
            let _busy = (moved.filter(Result::is_err).count(), fs::remove_dir(group));
        }
        for (path, before) in &self.texts {
            if fs::read_to_string(path).is_ok_and(|now| now != *before) {
                // Of a choice the word in brackets is the setting.
                let choice = before.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
                let _refused = fs::write(path, choice.map_or(before.trim_end(), |(word, _)| word));
            }
        }
    }
}

/// The control groups that this program made: their names begin with its own.
fn groups() -> Vec<PathBuf> {
    let made_in = |above: &str| -> Vec<PathBuf> {
        let names = if Path::new(above).is_dir() { names(Path::new(above)) } else { Vec::new() };
        let ours = names.into_iter().filter(|name| name.starts_with("punctual."));
        ours.map(|name| Path::new(above).join(name)).collect()
    };
    GROUPS.into_iter().flat_map(made_in).collect()
}

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

/// Exit status of a Rust program after a panic.
const PANICKED: i32 = 101;

/// A place of one trial's own.
struct Place {
    dir: Dir,
    machine: Machine,
    /// Nobody else changes what it compares.
    _turn: Option<MutexGuard<'static, ()>>,
}

impl Place {
    fn new(name: &str) -> Self {
        let turn = settings_of_this_machine();
        Self { _turn: Some(turn), ..Self::within_turn(name) }
    }

    /// One for a caller whose turn with the settings of this machine it is already.
    fn within_turn(name: &str) -> Self {
        let dir = Dir::new(&format!("attack-{name}"));
        for name in ["tmp", "run", "out"] {
            fs::create_dir(dir.path(name)).expect("writable");
        }
        fs::set_permissions(dir.path("run"), fs::Permissions::from_mode(0o700)).expect("ours");
        Self { dir, machine: Machine::now(), _turn: None }
    }

    /// A path in it.
    fn path(&self, name: &str) -> PathBuf {
        self.dir.path(name)
    }

    /// The program here with no arguments yet, started by a shell after `limits`, which may be
    /// any of its commands.
    fn shell(&self, limits: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{limits} exec \"$0\" \"$@\"")]);
        command.arg(PROGRAM);
        command.env("TMPDIR", self.dir.path("tmp"));
        command.env("PUNCTUAL_RUNTIME_DIR", self.dir.path("run"));
        command
    }

    /// One of the commands that take time, here, under a shell's `limits` where there are some.
    fn command(&self, which: usize, limits: &str) -> Command {
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
        let pids = names(Path::new("/proc")).into_iter();
        pids.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())).filter(lives).collect()
    }

    /// Checks what must hold after `pid` ended like this, whatever was done to it: no panic, and
    /// the machine as before.
    fn left_nothing(&self, trial: &str, pid: u32, status: ExitStatus) {
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
    fn check(self, described: &str, pid: u32, status: ExitStatus) -> &'static str {
        self.left_nothing(described, pid, status);
        let killed = status.signal() == Some(EndSignal::Kill as i32);
        for file in [self.dir.path("out/result.json"), self.dir.path("out/c/result.json")] {
            if file.is_file() {
                let result = json_file(&file);
                assert!(result["experiment"].is_string(), "{described}: {result}");
                return if killed { "killed, result whole" } else { "result whole" };
            }
        }
        match status.code() {
            None => "ended by the signal before there was a result",
            Some(0) => panic!("{described}: no result"),
            Some(_) => "refused, nothing written",
        }
    }
}

/// The commands of [`Place::command`] that name files of their own.
const OWN: usize = 3;

/// The others.
const OTHERS: [&str; 11] = [
    "blame --duration 500ms --load fork",
    "top --once 1",
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
const COMMANDS: usize = OWN + OTHERS.len();

/// Time that a command may work before it is signalled to end.
const LONG: Duration = Duration::from_secs(3);

/// Runs a command in a place to its end, which is requested after a time: it is never a signal or a
/// panic, and a refusal has words. In a word, how it ended; the place is as before.
fn ended(mut command: Command, place: &Place, trial: &str) -> &'static str {
    let errors = place.path("errors");
    let file = fs::File::create(&errors).expect("writable");
    let mut child = command.stdout(Stdio::null()).stderr(file).spawn().expect("a shell");
    let begun = Instant::now();
    let mut requested = false;
    until(trial, || {
        if !requested && begun.elapsed() > LONG {
            requested = true;
            signal(&child, EndSignal::Terminate);
        }
        child.try_wait().expect("ours").is_some()
    });
    let status = child.wait().expect("ours");
    let errors = fs::read(errors).expect("readable");
    let errors = String::from_utf8_lossy(&errors);
    // A thread that panics does not end the program always.
    assert!(!errors.contains("panicked at"), "{trial}: {errors}");
    assert!(status.code() != Some(2) || errors.contains("punctual: "), "{trial}: {errors}");
    place.left_nothing(trial, child.id(), status);
    match status.code() {
        Some(0) => "worked",
        Some(1) => "worked, with a fault that it names",
        Some(2) => "refused",
        Some(143) if requested => "worked until its end was requested",
        _ => panic!("{trial}: {status}: {errors}"),
    }
}
