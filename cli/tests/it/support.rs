//! What the tests share: the program, a directory that goes away, JSON by path, sample files.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use punctual_core::file::{BlockHeader, BlockKind, FILE_VERSION, FileHeader};
use punctual_core::sample::Sample;
use punctual_core::time::Span;
use punctual_os::descriptor::Descriptor;
use punctual_os::events;
use punctual_os::process::{EndSignal, end};
use serde_json::Value;

/// The program under test.
pub(crate) fn punctual() -> Command {
    let program = env!("CARGO_BIN_EXE_punctual");
    let mut command = Command::new(if hang_up_is_ignored() { "env" } else { program });
    if hang_up_is_ignored() {
        command.args(["--default-signal=HUP", program]);
    }
    // What a run keeps for the next one belongs to the tests, not to the machine.
    command.env("XDG_STATE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/state"));
    command
}

/// That a page fits a screen of 80 columns, and of 40 lines where nothing is refused: without
/// SCHED_FIFO times are so long that columns move to a second table.
pub(crate) fn fits(page: &str) {
    assert!(page.lines().all(|line| line.chars().count() <= 80), "80 columns: {page}");
    let has_refusals = page.contains("\nrefused: ");
    assert!(has_refusals || page.lines().count() <= 40, "40 lines: {page}");
}

/// Whether the tests themselves ignore SIGHUP, as under nohup(1): what they start would inherit
/// that, and never end by it.
fn hang_up_is_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & 1 == 1)
}

/// A run of it with `args`.
pub(crate) fn run<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Output {
    punctual().args(args).output().expect("the program starts")
}

/// The result of `args` as JSON, measured for the first of these durations that is long enough: on
/// a machine that others use a short one can pass without a cycle.
pub(crate) fn measured(
    args: &[&str],
    durations: &[&str],
    enough: impl Fn(&Value) -> bool,
) -> Value {
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
pub(crate) fn plugged_line(last: u8) -> (String, Descriptor, JoinHandle<()>) {
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

/// What it wrote to standard output.
pub(crate) fn stdout(output: &Output) -> String {
    searchable(String::from_utf8(output.stdout.clone()).expect("UTF-8"))
}

/// What it wrote to standard error.
pub(crate) fn stderr(output: &Output) -> String {
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
pub(crate) fn json(output: &Output) -> Value {
    serde_json::from_str(&stdout(output))
        .unwrap_or_else(|why| panic!("{why}: {} {}", stdout(output), stderr(output)))
}

/// The JSON of a file.
pub(crate) fn json_file(path: &Path) -> Value {
    let text = searchable(fs::read_to_string(path).expect("readable"));
    serde_json::from_str(&text).expect("JSON")
}

/// Asks a child that was not yet waited for to end.
pub(crate) fn signal(child: &Child, how: EndSignal) {
    end(child.id().cast_signed(), how).expect("its number is its own");
}

/// Held by a test that changes settings of this machine, or compares them.
pub(crate) fn settings_of_this_machine() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits, at most 60 s, until `ready`.
pub(crate) fn until(what: &str, mut ready: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !ready() {
        assert!(begun.elapsed() < Duration::from_secs(60), "waited for {what}");
        // Polling a process from outside: there is nothing to wait on.
        thread::sleep(Duration::from_millis(20));
    }
}

/// What `attempt` gives where its signals were sent within half a second, which makes them one:
/// this program can be kept waiting for longer between two of them, and then it tries again.
pub(crate) fn at_once<T>(attempt: impl Fn() -> (Duration, T)) -> T {
    let soon = |(took, made)| (took < Duration::from_millis(400)).then_some(made);
    (0..10).find_map(|_| soon(attempt())).expect("two signals within half a second")
}

/// A directory of this test's own, which goes away with it.
pub(crate) struct Dir(pub(crate) PathBuf);

impl Dir {
    /// A new one; `name` is unique among the tests.
    pub(crate) fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("punctual-{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("writable");
        Self(dir)
    }

    /// A path in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
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
pub(crate) fn refused(output: &Output, words: &[&str]) {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(said.trim_end().lines().count(), 1, "one line: {said}");
    for word in words {
        assert!(said.contains(word), "{word:?} in {said:?}");
    }
}

/// Writes a sample file with this description, and each run's latenesses in ns.
pub(crate) fn sample_file(path: &Path, info: &Value, latenesses: &[&[i64]]) -> String {
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

/// Whether the process catches SIGINT by now.
pub(crate) fn catches_interrupt(child: &Child) -> bool {
    fs::read_to_string(format!("/proc/{}/status", child.id())).is_ok_and(|status| {
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        caught
            .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
            .is_some_and(|mask| mask & 2 != 0)
    })
}
