//! The command line as a user meets it: real runs of the real program.
//!
//! Short ones: nothing here asserts a time. One file a subject.

mod accuracy;
mod analyse;
mod attack;
mod bad_input;
mod blame;
mod capture;
mod check;
mod claims;
mod compare;
mod completions;
mod counts;
mod crash;
mod dead_loads;
mod executive;
mod export;
mod follow;
mod guide;
mod hostile;
mod impact;
mod junit;
mod lateness;
mod limits;
mod measure;
mod noise;
mod outputs;
mod outside;
mod question;
mod quiet;
mod report;
mod reproduce;
mod response;
mod run;
mod saturation;
mod sched;
mod soak;
mod stop_over;
mod task;
mod terminal;
mod timer;
mod top;
mod tune;
mod wait;
mod work;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use punctual_core::file::{BlockHeader, BlockKind, FILE_VERSION, FileHeader};
use punctual_core::ring::{SplitRing, split, words};
use punctual_core::sample::{Flags, Sample};
use punctual_core::time::Span;
use punctual_engine::drain::{Drainage, SampleFile, Sink};
use punctual_os::descriptor::Descriptor;
use punctual_os::events;
use punctual_os::process::{EndSignal, end};
use punctual_testkit::skip;
use serde_json::Value;

/// The program under test, for what starts it by another program; else [`punctual`].
const PROGRAM: &str = env!("CARGO_BIN_EXE_punctual");

/// The program under test.
fn punctual() -> Command {
    let mut command = Command::new(if hang_up_is_ignored() { "env" } else { PROGRAM });
    if hang_up_is_ignored() {
        command.args(["--default-signal=HUP", PROGRAM]);
    }
    // What a run keeps for the next one belongs to the tests, not to the machine.
    command.env("XDG_STATE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/state"));
    command
}

/// That a page fits a screen of 80 columns, and of 40 lines where nothing is refused and no other
/// test changes settings meanwhile: without SCHED_FIFO times are so long that columns move to a
/// second table, and what changed is named.
fn fits(page: &str) {
    assert!(page.lines().all(|line| line.chars().count() <= 80), "80 columns: {page}");
    let has_more =
        page.contains("\nrefused: ") || page.contains("settings changed while it measured");
    // The directory of a test has a longer name than one beside which somebody measures, so that it
    // may take a line of its own.
    let is_path = |line: &str| line.trim().starts_with('/') && line.ends_with("report.html");
    let lines = page.lines().filter(|line| !is_path(line)).count();
    assert!(has_more || lines <= 40, "40 lines: {page}");
}

/// Returns true where the tests themselves ignore SIGHUP, as under nohup(1): what they start would
/// inherit that, and never end by it.
fn hang_up_is_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & 1 == 1)
}

/// A run of it with `args`.
fn run<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Output {
    punctual().args(args).output().expect("the program starts")
}

/// The result of `args` as JSON, measured for the first of these durations that is long enough: on
/// a machine that others use a short one can pass without a cycle.
fn measured(args: &[&str], durations: &[&str], enough: impl Fn(&Value) -> bool) -> Value {
    for duration in durations {
        let out = run(args.iter().chain(&["--duration", duration, "--json", "-"]));
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        let result = json(&out);
        if enough(&result) {
            return result;
        }
    }
    panic!("{args:?}: nothing was measured in {durations:?}");
}

/// A pseudo-terminal as a source of stimuli, with a plug that sends back what it gets and is pulled
/// at this byte; the end that keeps its name until it is opened.
fn plugged_line(last: u8) -> (String, Descriptor, JoinHandle<()>) {
    let (near, far) = events::line().expect("a pseudo-terminal");
    let path = fs::read_link(format!("/proc/self/fd/{}", far.number())).expect("it is open");
    let plug = thread::spawn(move || {
        let mut bytes = [0; 64];
        while let Ok(count) = events::read(&near, &mut bytes)
            && !bytes[..count].contains(&last)
        {
            events::write(&near, &bytes[..count]).expect("it is open");
        }
    });
    (format!("serial:{}", path.display()), far, plug)
}

/// The standard output.
fn stdout(output: &Output) -> String {
    searchable(String::from_utf8(output.stdout.clone()).expect("UTF-8"))
}

/// The standard error.
fn stderr(output: &Output) -> String {
    searchable(String::from_utf8(output.stderr.clone()).expect("UTF-8"))
}

/// Text of a pipe or a file, in which `grep '1 kHz'` finds what a reader sees: without hard spaces.
fn searchable(text: String) -> String {
    let hard = text.lines().find(|line| line.contains(['\u{a0}', '\u{202f}', '\u{2007}']));
    assert_eq!(hard, None, "a hard space");
    assert!(!text.contains("\\u00a0") && !text.contains("\\u202f"), "a hard space in JSON");
    text
}

/// Its standard output as JSON; shows what it said when there is none.
fn json(output: &Output) -> Value {
    serde_json::from_str(&stdout(output))
        .unwrap_or_else(|why| panic!("{why}: {} {}", stdout(output), stderr(output)))
}

/// The JSON of a file.
fn json_file(path: &Path) -> Value {
    let text = searchable(fs::read_to_string(path).expect("readable"));
    serde_json::from_str(&text).expect("JSON")
}

/// Asks a child that was not yet waited for to end.
fn signal(child: &Child, how: EndSignal) {
    end(child.id().cast_signed(), how).expect("its number is its own");
}

/// Held by a test that changes settings of this machine, or compares them.
fn settings_of_this_machine() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A setting of this machine that a test changes as somebody else would, in its turn with them;
/// once this is dropped it is as before.
struct KernelSetting {
    path: &'static str,
    before: String,
}

impl KernelSetting {
    fn of(path: &'static str) -> Self {
        Self { path, before: fs::read_to_string(path).expect("readable") }
    }

    /// The value of the setting now.
    fn text(&self) -> String {
        fs::read_to_string(self.path).expect("readable")
    }

    fn set(&self, text: &str) {
        fs::write(self.path, text).expect("writable");
    }
}

impl Drop for KernelSetting {
    fn drop(&mut self) {
        // The test that fails here asserts it elsewhere: two panics would end all tests.
        let _refused = fs::write(self.path, &self.before);
    }
}

/// Waits, at most 60 s, until `ready`.
fn until(awaited: &str, mut ready: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !ready() {
        assert!(begun.elapsed() < Duration::from_secs(60), "waited for {awaited}");
        // Polling a process from outside: there is nothing to wait on.
        thread::sleep(Duration::from_millis(20));
    }
}

/// The result of `attempt` where its signals were sent within half a second, which makes them one:
/// this program can be kept waiting for longer between two of them, and then it tries again.
fn at_once<T>(attempt: impl Fn() -> (Duration, T)) -> T {
    let soon = |(took, made)| (took < Duration::from_millis(400)).then_some(made);
    (0..10).find_map(|_| soon(attempt())).expect("two signals within half a second")
}

/// A directory of this test's own, which goes away with it.
struct Dir(PathBuf);

impl Dir {
    /// A new one; `name` is unique among the tests.
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("punctual-{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("writable");
        Self(dir)
    }

    /// A path in it.
    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        // What is left in the temporary directory harms nobody.
        let _left = fs::remove_dir_all(&self.0);
    }
}

/// Asserts exit 2 and one line on standard error that has all of `words`.
fn refused(output: &Output, words: &[&str]) {
    let errors = stderr(output);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    // Loops of tests beside this one may be named before it.
    let others = "punctual: real-time threads may run on CPU";
    let lines = errors.trim_end().lines().filter(|line| !line.starts_with(others));
    assert_eq!(lines.count(), 1, "one line: {errors}");
    for word in words {
        assert!(errors.contains(word), "{word:?} in {errors:?}");
    }
}

/// The program as a user without rights runs it, from a copy in `dir`. Needs root and setpriv.
fn as_user(dir: &Dir) -> Command {
    let program = dir.path("punctual");
    if !program.exists() {
        copy_program(&program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=54321", "--regid=54321", "--clear-groups"]).arg(&program);
    command
}

/// Returns true where it names what keeps an ordinary user from recording the kernel's events: a
/// right, or, where it is not mounted, the file system that describes them.
fn names_what_forbids_recording(words: &str) -> bool {
    ["root", "CAP_PERFMON", "mount -t tracefs"].iter().any(|named| words.contains(named))
}

/// Writes a sample file with this description, and each run's latenesses in ns.
fn sample_file(path: &Path, info: &Value, latenesses: &[&[i64]]) -> String {
    let info = info.to_string();
    let header = FileHeader {
        version: FILE_VERSION,
        json_bytes: info.len() as u32,
        json_crc: crc32fast::hash(info.as_bytes()),
    };
    let mut bytes = [&header.to_bytes()[..], info.as_bytes()].concat();
    for (run, latenesses) in latenesses.iter().enumerate() {
        let sample = |(cycle, &ns): (u64, &i64)| {
            let lateness = Span::from_ns(ns);
            Sample { cycle, lateness, ..Sample::default() }.to_bytes()
        };
        let payload: Vec<u8> = (0..).zip(*latenesses).flat_map(sample).collect();
        bytes.extend(block(BlockKind::Data, run as u32, latenesses.len() as u32, &payload));
        bytes.extend(payload);
    }
    bytes.extend(block(BlockKind::End, 0, 0, &[]));
    fs::write(path, bytes).expect("writable");
    path.to_str().expect("UTF-8").to_owned()
}

fn block(kind: BlockKind, run: u32, samples: u32, payload: &[u8]) -> Vec<u8> {
    let payload_crc = crc32fast::hash(payload);
    let (first, missed, unrecorded) = (0, 0, 0);
    let header = BlockHeader { kind, run, samples, first, missed, unrecorded, payload_crc };
    header.to_bytes(crc32fast::hash).to_vec()
}

/// Returns true where the process catches SIGINT by now, and catches or ignores SIGTERM and SIGHUP.
fn catches_interrupt(child: &Child) -> bool {
    /// SIGHUP, SIGINT and SIGTERM, which are caught one after the other.
    const ENDS: u64 = 1 << 0 | 1 << 1 | 1 << 14;
    fs::read_to_string(format!("/proc/{}/status", child.id())).is_ok_and(|status| {
        let mask = |key| {
            let mask = status.lines().find_map(|line| line.strip_prefix(key));
            mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
        };
        // nohup(1) has SIGHUP ignored, and so it stays.
        (mask("SigCgt:") | mask("SigIgn:")) & ENDS == ENDS && mask("SigCgt:") & 2 != 0
    })
}

/// Copies the program to where anybody may read. Another process does that: what this one has open
/// for writing, a child of another test has too until it becomes its program, and such a file
/// cannot be run.
fn copy_program(to: &Path) {
    let status = Command::new("cp").arg(PROGRAM).arg(to).status();
    assert!(status.expect("cp starts").success(), "copied");
}

/// A result of three latenesses, in a directory as `check` leaves it.
fn result(dir: &Dir, name: &str) -> PathBuf {
    let made = dir.path(name);
    fs::create_dir_all(&made).expect("writable");
    fs::write(dir.path("a.csv"), "1\n2\n3\n").expect("writable");
    let out = run([
        "analyse".as_ref(),
        dir.path("a.csv").as_os_str(),
        "--column".as_ref(),
        "lateness:us".as_ref(),
        "--json".as_ref(),
        made.join("result.json").as_os_str(),
    ]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    made
}

/// A command that writes one file, and what it reads.
struct Writes {
    args: Vec<String>,
    file: PathBuf,
}

/// Commands that write a file that the user named, one whose name the program chose, and one as
/// Markdown.
fn commands(dir: &Dir) -> [Writes; 3] {
    let made = result(dir, "made");
    let json = dir.path("out/analysis.json");
    fs::create_dir(dir.path("out")).expect("writable");
    let csv = dir.path("a.csv");
    let analyse = ["analyse", text(&csv), "--column", "lateness:us", "--json", text(&json)];
    let report = ["report", text(&made)];
    let markdown = dir.path("issue/analysis.md");
    fs::create_dir(dir.path("issue")).expect("writable");
    let issue = ["analyse", text(&csv), "--column", "lateness:us", "--markdown", text(&markdown)];
    let writes = |args: &[&str], file: &Path| Writes {
        args: args.iter().map(|&arg| arg.to_owned()).collect(),
        file: file.to_owned(),
    };
    [writes(&analyse, &json), writes(&report, &made.join("report.html")), writes(&issue, &markdown)]
}

/// The names in a directory, sorted.
fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("readable").flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// The children of a process that have not ended.
fn children(process: &Child) -> Vec<i32> {
    let parent = process.id().to_string();
    let stat = |pid: i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let mut fields = stat.rsplit_once(") ")?.1.split(' ');
        Some((fields.next()?.to_owned(), fields.next()?.to_owned()))
    };
    let entries = fs::read_dir("/proc").expect("procfs").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let lives =
        |&pid: &i32| stat(pid).is_some_and(|(state, above)| state != "Z" && above == parent);
    pids.filter(lives).collect()
}

/// Runs the program with `args` under strace, which logs `calls` and does each of `faults`: a call
/// and what happens to it, as `--inject` takes it.
fn traced(args: &[String], log: &Path, calls: &str, faults: &[(&str, String)]) -> Output {
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o"]).arg(log).args(["-e", &format!("trace={calls}")]);
    strace.args(["-e", "signal=none"]);
    for (call, fault) in faults {
        strace.args(["-e", &format!("inject={call}:{fault}")]);
    }
    strace.arg(PROGRAM).args(args);
    // What cargo's path for libraries has the loader look for is no call of the program's.
    strace.env_remove("LD_LIBRARY_PATH");
    strace.stdin(Stdio::null()).output().expect("strace starts")
}

/// Returns true where the program may be traced here.
fn may_trace(dir: &Dir) -> bool {
    let log = dir.path("probe");
    let mut strace = Command::new("strace");
    let traced = strace.args(["-qq", "-o"]).arg(&log).arg("true").output();
    let may = traced.is_ok_and(|out| out.status.success());
    let _none = fs::remove_file(log);
    skip::need("the right to trace (ptrace)", may)
}

/// Period of each run, ns.
const PERIOD_NS: u64 = 1_000_000;

/// Instant of release 0, ns.
const EPOCH_NS: u64 = 5_000_000_000;

/// Samples of each run.
const N: u64 = 3_000;

struct Nowhere;

impl Sink for Nowhere {
    fn take(&mut self, _: usize, _: &[Sample]) {}
}

/// The only run in a directory of results, to which `latest` leads.
fn only_result(results: &Path) -> PathBuf {
    let entries = fs::read_dir(results).expect("made").flatten();
    let runs = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let runs: Vec<PathBuf> = runs.map(|run| run.path()).collect();
    let [run] = runs.as_slice() else { panic!("one run only: {runs:?}") };
    assert_eq!(
        fs::read_link(results.join("latest")).ok().as_deref(),
        run.file_name().map(Path::new)
    );
    run.clone()
}

/// The same of these samples, with how many releases each run missed.
fn recording_of(path: &Path, names: &[&str], recorded: &[(Vec<Sample>, u64)]) {
    let runs: Vec<Value> = names
        .iter()
        .enumerate()
        .map(|(at, name)| {
            let (name, part_of) = name.split_once(':').map_or((*name, None), |(a, b)| (a, Some(b)));
            // What counts as one run is of one loop.
            let cpu = part_of.map_or(at, |_| 1);
            serde_json::json!({ "name": name, "part_of": part_of, "cpu": cpu, "load": [],
                "period_ns": PERIOD_NS, "epoch_ns": EPOCH_NS, "duration_ns": N * PERIOD_NS,
                "policy": "SCHED_FIFO", "priority": 90, "wait": "sleep" })
        })
        .collect();
    let info = serde_json::json!({ "tool": "punctual", "version": "0.1.0", "runs": runs,
        "started_at": "2026-11-21T20:01:07.5Z" });
    let storage: Vec<Vec<AtomicU64>> =
        names.iter().map(|_| (0..words(1 << 13)).map(|_| AtomicU64::new(0)).collect()).collect();
    let file = File::create(path).expect("writable");
    let file = SampleFile::begin(file, &info.to_string(), names.len()).expect("writable");
    let (mut recorders, mut drains) = (Vec::new(), Vec::new());
    for storage in &storage {
        let SplitRing { ring: recorder, drain, view } = split(storage).expect("enough storage");
        recorders.push(recorder);
        drains.push((drain, view));
    }
    let mut drainage = Drainage::new(drains, Nowhere, Some(file));
    for (recorder, (samples, missed)) in recorders.iter_mut().zip(recorded) {
        recorder.miss(*missed);
        for some in samples.chunks(1 << 12) {
            some.iter().for_each(|sample| recorder.push(*sample));
            drainage.empty();
        }
    }
    let (_, trouble) = drainage.finish(false);
    assert!(trouble.is_none(), "{trouble:?}");
}

/// The result of `N` releases that are each so late, `result.json` beside its `samples.punctual`.
fn recorded_result(dir: &Dir, late_ns: fn(u64) -> u64) -> PathBuf {
    result_of(dir, N, late_ns)
}

/// [`recorded_result`] of as many releases.
fn result_of(dir: &Dir, cycles: u64, late_ns: fn(u64) -> u64) -> PathBuf {
    let sample = |cycle| Sample {
        cycle,
        lateness: Span::from_ns(late_ns(cycle).cast_signed()),
        flags: if cycle == 0 { Flags::FIRST } else { Flags::NONE },
    };
    let samples = dir.path("samples.punctual");
    recording_of(&samples, &["idle"], &[((0..cycles).map(sample).collect(), 0)]);
    let result = dir.path("result.json");
    let out = run(["analyse", text(&samples), "--json", text(&result)]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    result
}
