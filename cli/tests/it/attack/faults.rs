//! Killed, or out of room, at every call that changes a file: the old file or the new one is there,
//! and the next run cleans up.
//!
//! Every call that the program makes is known here as one that changes files or one that does not:
//! a new one fails until it has its place, and with it its faults.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Output;

use punctual_testkit::skip;

use super::Attack;
use crate::{Dir, Writes, commands, may_trace, names, result, stderr, text, traced};

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

/// A command and what is to be found after it.
struct Target {
    args: Vec<String>,
    /// The files that it writes.
    files: Vec<PathBuf>,
    /// What they hold after a whole run; empty where each run gives another result.
    new: Vec<Vec<u8>>,
    /// What is in their directories after a whole run.
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

    /// How many of its files are new; each is whole.
    fn renewed(&self, point: &str) -> usize {
        let mut renewed = 0;
        for (at, file) in self.files.iter().enumerate() {
            let there = fs::read(file).unwrap_or_else(|why| panic!("{point}: {why}"));
            if there == b"the old one" {
                continue;
            }
            renewed += 1;
            match self.new.get(at) {
                Some(new) => assert!(there == *new, "{point}: {} bytes", there.len()),
                // Samples may end early; a result is whole.
                None if there.starts_with(b"PUNCTUAL") => {}
                None => drop(
                    serde_json::from_slice::<serde_json::Value>(&there)
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

/// Runs a command to its end; how often it makes which changing call.
fn whole(args: &[String], log: &Path) -> BTreeMap<&'static str, u32> {
    let out = traced(args, log, "all", &[]);
    assert_eq!(out.status.code(), Some(0), "{args:?}: {}", stderr(&out));
    let harmless: BTreeSet<&str> = HARMLESS.split_whitespace().collect();
    let mut calls = BTreeMap::new();
    for line in fs::read_to_string(log).expect("a log").lines() {
        // `PID call(…`; a line that goes on (`<... call resumed>`) or tells an end was counted.
        let Some((call, _)) = line.split_whitespace().nth(1).and_then(|call| call.split_once('('))
        else {
            continue;
        };
        match CHANGING.iter().find(|known| **known == call) {
            Some(known) => *calls.entry(*known).or_default() += 1,
            None => assert!(
                harmless.contains(call),
                "{args:?} makes the call {call}: list it in CHANGING, for faults, or in HARMLESS"
            ),
        }
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
        for (call, count) in whole(&target.args, &log) {
            points.extend((1..=count).map(|nth| (at, call, nth)));
        }
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
        let all = || target.renewed("after all") == target.files.len();
        until_written(&target.args, &log, all);
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
