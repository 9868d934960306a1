//! Killed, or out of room, at every call that changes a file: the old file or the new one is there,
//! and the next run cleans up. Settings of a machine of files are old or new too, and a revert
//! brings back each.
//!
//! Every call that the program makes is known here as one that changes files or one that does not:
//! a new one fails until it has its place, and with it its faults.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Output;

use punctual_engine::named;
use punctual_testkit::skip;

use super::Attack;
use crate::tune::{Files, Laptop, files};
use crate::{Dir, Writes, commands, may_trace, names, result, run, stderr, stdout, text, traced};

/// Calls that make, change, name or remove files, as far as the program can come to make them.
pub(super) const CHANGING: [&str; 22] = [
    "openat",
    "openat2",
    "creat",
    "write",
    "pwrite64",
    "writev",
    "copy_file_range",
    "ftruncate",
    "fallocate",
    "fsync",
    "fdatasync",
    "fchmod",
    "fchmodat",
    "fchown",
    "fchownat",
    "flock",
    "linkat",
    "unlinkat",
    "mkdirat",
    "renameat",
    "renameat2",
    "symlinkat",
];

/// Calls that change no file.
const HARMLESS: &str = "\
    access arch_prctl brk clock_gettime clock_nanosleep clone clone3 close epoll_create1 epoll_ctl \
    epoll_wait execve exit exit_group faccessat faccessat2 fcntl fstat futex getcwd getdents64 \
    getegid geteuid getgid getpid getpriority getrandom getrusage gettid getuid ioctl lseek \
    madvise membarrier mlock mlockall mmap mprotect mremap munlock munlockall munmap nanosleep \
    newfstatat pipe2 poll ppoll prctl pread64 prlimit64 read readlink readlinkat readv \
    restart_syscall rseq rt_sigaction rt_sigprocmask rt_sigreturn sched_getaffinity sched_getattr \
    sched_getparam sched_getscheduler sched_setaffinity sched_setattr sched_setscheduler \
    sched_yield set_robust_list set_tid_address setpriority sigaltstack statfs fstatfs statx \
    syslog \
    sysinfo tgkill uname wait4 waitid";

/// Where a fault hits: which command, which call, which one of them.
type Point = (usize, &'static str, u32);

/// A call of a run that may change a file.
struct ChangingCall {
    name: &'static str,
    /// Which one of this name it is, from 1.
    nth: u32,
    /// It opens what is there, to read it or to find names in it.
    only_reads: bool,
}

/// A command and what is to be found after it.
struct Target {
    args: Vec<String>,
    /// The files that it writes.
    files: Vec<PathBuf>,
    /// Contents after a whole run; empty where each run gives another result.
    new: Vec<Vec<u8>>,
    /// Names in their directories after a whole run.
    usual: Vec<Vec<String>>,
}

impl Target {
    /// Runs it once, whole.
    fn of(args: Vec<String>, files: Vec<PathBuf>, repeats: bool, log: &Path) -> Self {
        until_written(&args, log, || files.iter().all(|file| file.exists()));
        let usual = files.iter().map(|file| names(folder(file))).collect();
        let read = |file: &PathBuf| fs::read(file).expect("written");
        let new = if repeats { files.iter().map(read).collect() } else { Vec::new() };
        Self { args, files, new, usual }
    }

    /// Puts old files in the place of the new ones.
    fn age(&self) {
        for file in &self.files {
            fs::write(file, "the old one").expect("writable");
        }
    }

    /// The number of its files that are new; each is whole.
    fn renewed(&self, point: &str) -> usize {
        let mut renewed = 0;
        for (at, file) in self.files.iter().enumerate() {
            let bytes = fs::read(file).unwrap_or_else(|why| panic!("{point}: {why}"));
            if bytes == b"the old one" {
                continue;
            }
            renewed += 1;
            match self.new.get(at) {
                Some(new) => assert!(bytes == *new, "{point}: {} bytes", bytes.len()),
                // Samples may end early; a result is whole.
                None if bytes.starts_with(b"PUNCTUAL") => {}
                None => drop(
                    serde_json::from_slice::<serde_json::Value>(&bytes)
                        .unwrap_or_else(|why| panic!("{point}: {}: {why}", file.display())),
                ),
            }
        }
        renewed
    }
}

fn folder(file: &Path) -> &Path {
    file.parent().expect("a directory")
}

/// Runs a command to its end, until all is written: on a busy machine a short measurement can be
/// over before its first cycle, and has no samples then.
fn until_written(args: &[String], log: &Path, written: impl Fn() -> bool) {
    for _ in 0..10 {
        whole(args, log);
        if written() {
            return;
        }
    }
    panic!("{args:?}: ten runs, and not all of its files");
}

/// Runs a command to its end; the changing calls that it makes.
fn whole(args: &[String], log: &Path) -> Vec<ChangingCall> {
    let out = traced(args, log, "all", &[]);
    assert_eq!(out.status.code(), Some(0), "{args:?}: {}", stderr(&out));
    let harmless: BTreeSet<&str> = HARMLESS.split_whitespace().collect();
    let mut counts: BTreeMap<&'static str, u32> = BTreeMap::new();
    let mut calls = Vec::new();
    for line in fs::read_to_string(log).expect("a log").lines() {
        // `PID call(…`; a line that goes on (`<... call resumed>`) or tells an end was counted.
        let Some((call, _)) = line.split_whitespace().nth(1).and_then(|call| call.split_once('('))
        else {
            continue;
        };
        let Some(name) = CHANGING.into_iter().find(|known| *known == call) else {
            assert!(
                harmless.contains(call),
                "{args:?} makes the call {call}: list it in CHANGING, for faults, or in HARMLESS"
            );
            continue;
        };
        let count = counts.entry(name).or_default();
        *count += 1;
        let writes = ["O_WRONLY", "O_RDWR", "O_CREAT"].iter().any(|flag| line.contains(flag));
        let only_reads = name.starts_with("openat") && !writes;
        calls.push(ChangingCall { name, nth: *count, only_reads });
    }
    calls
}

/// The commands that are attacked.
fn targets(dir: &Dir, log: &Path) -> Vec<Target> {
    let owned = |args: &[&str]| -> Vec<String> { args.iter().map(|&arg| arg.to_owned()).collect() };
    let mut targets: Vec<Target> = commands(dir)
        .into_iter()
        .map(|Writes { args, file }| Target::of(args, vec![file], true, log))
        .collect();
    let made = result(dir, "exported").join("result.json");
    let csv = dir.path("tables/histogram.csv");
    fs::create_dir(folder(&csv)).expect("writable");
    let export = ["export", "--csv", "--histogram", text(&made), "-o", text(&csv)];
    targets.push(Target::of(owned(&export), vec![csv], true, log));
    let files = [dir.path("measured/samples"), dir.path("measured/result.json")];
    fs::create_dir(folder(&files[0])).expect("writable");
    let mut measure = owned(&["measure", "periodic", "--duration", "100ms", "--samples"]);
    measure.extend([text(&files[0]), "--json", text(&files[1])].map(str::to_owned));
    targets.push(Target::of(measure, files.to_vec(), false, log));
    targets
}

/// So many of the commands, the first ones, are hit at every point whatever the time.
const ALWAYS: usize = 2;

/// Does `what` at every changing call, and then, while there is time, kills at a second one too.
fn at_every_call(name: &'static str, described: &str, check: impl Fn(&Output, bool)) {
    let dir = Dir::new(&format!("attack-{name}"));
    if !skip::need_program("strace") || !may_trace(&dir) {
        return;
    }
    let log = dir.path("log");
    let mut attack = Attack::begin(name);
    let targets = targets(&dir, &log);
    let mut points: Vec<Point> = Vec::new();
    for (at, target) in targets.iter().enumerate() {
        points.extend(whole(&target.args, &log).iter().map(|call| (at, call.name, call.nth)));
    }
    attack.random.shuffle(&mut points);
    let always = |point: &&Point| point.0 < ALWAYS;
    let (first, later): (Vec<&Point>, Vec<&Point>) = points.iter().partition(always);
    assert!(first.len() > 40, "{} calls only", first.len());
    let mut covered = BTreeSet::new();
    for (number, &&(at, call, nth)) in first.iter().chain(&later).enumerate() {
        if number >= first.len() && !attack.goes_on() {
            break;
        }
        let target = &targets[at];
        target.age();
        let out = traced(&target.args, &log, call, &[(call, format!("{described}:when={nth}"))]);
        let hit = fs::read_to_string(&log).expect("a log").contains("INJECTED")
            || out.status.signal().is_some();
        let renewed = target.renewed(&format!("{:?}, {call} {nth}", target.args));
        check(&out, renewed == target.files.len());
        if hit {
            covered.insert((at, call, nth));
        }
        attack.note(match (hit, renewed) {
            (false, _) => "not reached",
            (true, 0) => "old file there",
            (true, _) => "new file there",
        });
    }
    // Threads take turns differently from run to run in the commands that measure.
    let missed = first.iter().find(|point| !covered.contains(**point));
    assert_eq!(missed, None, "a call that no fault reached");
    while attack.goes_on() {
        let &(at, call, nth) = attack.random.one_of(&points);
        let others: Vec<Point> = points.iter().filter(|value| value.0 == at).copied().collect();
        let &(_, second, second_nth) = attack.random.one_of(&others);
        let target = &targets[at];
        target.age();
        let faults = [
            (call, format!("{described}:when={nth}")),
            (second, format!("signal=KILL:when={second_nth}")),
        ];
        traced(&target.args, &log, "all", &faults[..if call == second { 1 } else { 2 }]);
        target.renewed(&format!("{:?}, {faults:?}", target.args));
        attack.note("two faults, files whole");
    }
    // Whatever was left behind, a run that comes to its end removes.
    for target in &targets {
        let is_whole = || target.renewed("after all") == target.files.len();
        until_written(&target.args, &log, is_whole);
        let found: Vec<Vec<String>> = target.files.iter().map(|file| names(folder(file))).collect();
        assert_eq!(found, target.usual);
    }
    attack.end();
}

#[test]
fn kill() {
    at_every_call("kill", "signal=KILL", |out, is_new| {
        // Where nothing killed it, it did what it was for.
        assert!(is_new || out.status.code() != Some(0), "{}", stderr(out));
    });
}

#[test]
fn enospc() {
    at_every_call("enospc", "error=ENOSPC", refused_or_done);
}

#[test]
fn edquot() {
    at_every_call("edquot", "error=EDQUOT", refused_or_done);
}

fn refused_or_done(out: &Output, is_new: bool) {
    assert!(is_new || out.status.code() != Some(0), "{}", stderr(out));
    assert!(out.status.code() != Some(1), "no limit failed: {}", stderr(out));
}

/// Settings that a plan for the laptop changes: a number, and one word of several.
const SETTINGS: [&str; 2] = ["vm.swappiness", "transparent_hugepage"];

/// A machine of files whose settings are changed and put back.
struct TunedTree {
    laptop: Laptop,
    log: PathBuf,
    /// Its files while nothing is applied.
    before: Files,
    /// And after a whole `tune apply`.
    after: Files,
}

/// A command that changes its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Apply,
    Revert,
}

impl TunedTree {
    /// One to which nothing is applied.
    fn new(dir: &Dir) -> Self {
        let laptop = Laptop::new("attack-settings-machine");
        let before = files(Path::new(&laptop.root));
        let mut tree = Self { laptop, log: dir.path("log"), before, after: Files::new() };
        tree.to_end(Change::Apply, "a whole apply");
        tree.after = files(Path::new(&tree.laptop.root));
        let changed = tree.before.iter().filter(|(path, old)| tree.after[*path] != **old);
        assert_eq!(changed.count(), SETTINGS.len());
        tree.to_end(Change::Revert, "a whole revert");
        tree.is_as_before("a whole revert");
        tree
    }

    fn args(&self, change: Change) -> Vec<String> {
        let Laptop { root, state, .. } = &self.laptop;
        let mut args = match change {
            Change::Apply => vec!["tune", "apply"],
            Change::Revert => vec!["tune", "revert"],
        };
        if change == Change::Apply {
            args.extend(SETTINGS.iter().flat_map(|&setting| ["--only", setting]));
        }
        args.extend(["--root", root, "--state", state]);
        args.into_iter().map(str::to_owned).collect()
    }

    /// Runs a command whole, after what `trial` names.
    fn to_end(&self, change: Change, trial: &str) {
        let out = run(self.args(change));
        let words = stdout(&out) + &stderr(&out);
        assert_eq!(out.status.code(), Some(0), "{trial}, then {change:?}: {words}");
    }

    /// Where a whole run of a command changes files.
    fn points(&self, change: Change) -> Vec<(Change, &'static str, u32)> {
        if change == Change::Revert {
            self.to_end(Change::Apply, "nothing");
        }
        let calls = whole(&self.args(change), &self.log);
        if change == Change::Apply {
            self.to_end(Change::Revert, "an apply");
        }
        let changing = calls.iter().filter(|call| !call.only_reads);
        changing.map(|call| (change, call.name, call.nth)).collect()
    }

    /// Kills a command at a call; whether it was reached.
    fn kill(&self, (change, call, nth): (Change, &'static str, u32)) -> bool {
        let faults = [(call, format!("signal=KILL:when={nth}"))];
        traced(&self.args(change), &self.log, call, &faults).status.signal().is_some()
    }

    /// Every setting is the old one or the new one, whole, and `tune status` can tell which.
    fn is_whole(&self, trial: &str) {
        let now = files(Path::new(&self.laptop.root));
        for (path, old) in &self.before {
            let text = now.get(path).unwrap_or_else(|| panic!("{trial}: {path} is missing"));
            let is_whole = text == old || *text == self.after[path];
            assert!(is_whole, "{trial}: {path}: {:?}", String::from_utf8_lossy(text));
        }
        let unknown = |path: &&String| !self.before.contains_key(*path) && !is_unfinished(path);
        assert_eq!(now.keys().find(unknown), None, "{trial}: a file that nobody knows");
        let status = self.laptop.tune("status");
        let words = stdout(&status) + &stderr(&status);
        assert_eq!(status.status.code(), Some(0), "{trial}: {words}");
        assert!(!words.contains("changed since"), "{trial}: taken for another's: {words}");
    }

    /// After a revert: every byte is as before, and no journal has anything to put back.
    fn is_as_before(&self, trial: &str) {
        let mut now = files(Path::new(&self.laptop.root));
        // What a killed command was writing: the next one that writes there removes it.
        now.retain(|path, _| !is_unfinished(path));
        let changed = now.iter().find(|(path, text)| self.before.get(*path) != Some(text));
        assert_eq!((changed, now.len()), (None, self.before.len()), "{trial}");
        let again = stdout(&self.laptop.tune("revert"));
        assert!(again.contains("nothing is applied"), "{trial}: {again}");
    }
}

fn is_unfinished(path: &str) -> bool {
    let name = Path::new(path).file_name().expect("a file");
    named::is_temporary(name.as_encoded_bytes())
}

#[test]
fn settings() {
    let dir = Dir::new("attack-settings");
    if !skip::need_program("strace") || !may_trace(&dir) {
        return;
    }
    let mut attack = Attack::begin("settings");
    let tree = TunedTree::new(&dir);
    let mut points = tree.points(Change::Apply);
    points.extend(tree.points(Change::Revert));
    attack.random.shuffle(&mut points);
    assert!(points.len() > 40, "{} calls only", points.len());
    for &point in &points {
        if point.0 == Change::Revert {
            tree.to_end(Change::Apply, "nothing");
        }
        let trial = format!("killed at {point:?}");
        assert!(tree.kill(point), "{trial}: a call that no fault reached");
        tree.is_whole(&trial);
        tree.to_end(Change::Revert, &trial);
        tree.is_as_before(&trial);
        attack.note(match point.0 {
            Change::Apply => "apply killed, all as before",
            Change::Revert => "revert killed, all as before",
        });
    }
    // Two kills, with whatever is applied by then.
    while attack.goes_on() {
        let killed = [(); 2].map(|()| *attack.random.one_of(&points));
        let trial = format!("killed at {killed:?}");
        for point in killed {
            tree.kill(point);
            tree.is_whole(&trial);
        }
        tree.to_end(Change::Revert, &trial);
        tree.is_as_before(&trial);
        attack.note("two killed, all as before");
    }
    // Whatever was left behind, a run that comes to its end removes.
    tree.to_end(Change::Apply, "after all");
    tree.to_end(Change::Revert, "after all");
    assert_eq!(files(Path::new(&tree.laptop.root)), tree.before);
    attack.end();
}
