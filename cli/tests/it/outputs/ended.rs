//! Killed, or out of room, at every call that changes a file: the old file or the new one is there,
//! and the next run cleans up.
//!
//! By strace, which ends the program as it enters a call, or fails the call in its place.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use punctual_os::process::EndSignal;
use punctual_testkit::skip;

use super::{names, result, text};
use crate::support::{Dir, punctual, refused, signal, stderr, stdout, until};

/// Calls that make, change, name or remove files, as far as the program can come to make them.
const CHANGING: [&str; 20] = [
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
    "fchown",
    "flock",
    "linkat",
    "unlinkat",
    "mkdirat",
    "renameat",
    "renameat2",
    "symlinkat",
];

/// More calls of one kind than any of these commands makes.
const CALLS_MAX: u32 = 60;

/// A command that writes one file, and what it reads.
struct Writes {
    args: Vec<String>,
    file: PathBuf,
}

/// Commands that write a file that the user named, and one whose name the program chose.
fn commands(dir: &Dir) -> [Writes; 2] {
    let made = result(dir, "made");
    let json = dir.path("out/analysis.json");
    fs::create_dir(dir.path("out")).expect("writable");
    let csv = dir.path("a.csv");
    let analyse = ["analyse", text(&csv), "--column", "lateness:us", "--json", text(&json)];
    let report = ["report", text(&made)];
    let of = |args: &[&str], file: &Path| Writes {
        args: args.iter().map(|&arg| arg.to_owned()).collect(),
        file: file.to_owned(),
    };
    [of(&analyse, &json), of(&report, &made.join("report.html"))]
}

/// The command under strace, which does `what` to calls named `call`.
fn traced(command: &Writes, log: &Path, call: &str, what: Option<&str>) -> Output {
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o"]).arg(log).args(["-e", &format!("trace={call}")]);
    strace.args(["-e", "signal=none"]);
    if let Some(what) = what {
        strace.args(["-e", &format!("inject={call}:{what}")]);
    }
    strace.arg(punctual().get_program()).args(&command.args);
    // What cargo's path for libraries has the loader look for is no call of the program's.
    strace.env_remove("LD_LIBRARY_PATH");
    strace.stdin(Stdio::null()).output().expect("strace starts")
}

/// Whether the program may be traced here.
fn may_trace(dir: &Dir) -> bool {
    let log = dir.path("probe");
    let mut strace = Command::new("strace");
    let traced = strace.args(["-qq", "-o"]).arg(&log).arg("true").output();
    let may = traced.is_ok_and(|out| out.status.success());
    let _none = fs::remove_file(log);
    skip::need("the right to trace (ptrace)", may)
}

/// The calls of `CHANGING` that a whole run of the command makes.
fn calls(command: &Writes, log: &Path) -> Vec<&'static str> {
    let out = traced(command, log, "all", None);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let text = fs::read_to_string(log).expect("a log");
    let made = |call: &&&str| text.contains(&format!(" {call}("));
    CHANGING.iter().filter(made).copied().collect()
}

/// Ends or fails the command at every call that changes a file, by `what`; how often that was.
fn at_every_call(dir: &Dir, what: &str, check: impl Fn(&Output, bool)) -> u32 {
    let log = dir.path("log");
    let mut points = 0;
    for command in commands(dir) {
        let at = command.file.parent().expect("a directory");
        let new = {
            let _whole = calls(&command, &log);
            fs::read(&command.file).expect("written")
        };
        let usual = names(at);
        for call in calls(&command, &log) {
            for nth in 1.. {
                assert!(nth < CALLS_MAX, "{call} without end");
                fs::write(&command.file, "the old one").expect("writable");
                let out = traced(&command, &log, call, Some(&format!("{what}:when={nth}")));
                let there = fs::read(&command.file).expect("one of the two is there");
                let is_new = there == new;
                assert!(is_new || there == b"the old one", "{call} {nth}: {} bytes", there.len());
                check(&out, is_new);
                let failed = fs::read_to_string(&log).expect("a log").contains("INJECTED");
                // strace ends as what it traces does.
                if !failed && out.status.signal().is_none() {
                    break;
                }
                points += 1;
            }
        }
        // Whatever was left behind, a run that comes to its end removes.
        let out = traced(&command, &log, "write", None);
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        assert_eq!(names(at), usual);
        assert_eq!(fs::read(&command.file).expect("there"), new);
    }
    points
}

#[test]
fn a_kill_at_any_call_leaves_the_old_file_or_the_new_one() {
    let dir = Dir::new("outputs-kill");
    if !skip::need_program("strace") || !may_trace(&dir) {
        return;
    }
    let points = at_every_call(&dir, "signal=KILL", |out, is_new| {
        // Where nothing killed it, it did what it was for.
        assert!(is_new || out.status.code() != Some(0), "{}", stderr(out));
    });
    assert!(points > 40, "killed at {points} calls only");
}

#[test]
fn a_full_disk_at_any_call_leaves_the_old_file_or_the_new_one() {
    let dir = Dir::new("outputs-full");
    if !skip::need_program("strace") || !may_trace(&dir) {
        return;
    }
    let points = at_every_call(&dir, "error=ENOSPC", |out, is_new| {
        assert!(is_new || out.status.code() != Some(0), "{}", stderr(out));
        assert!(out.status.code() != Some(1), "no limit failed: {}", stderr(out));
    });
    assert!(points > 40, "failed at {points} calls only");
}

#[test]
fn a_file_is_synced_before_it_is_renamed_and_its_directory_after() {
    let dir = Dir::new("outputs-sync");
    if !skip::need_program("strace") || !may_trace(&dir) {
        return;
    }
    let log = dir.path("log");
    for command in commands(&dir) {
        let out = traced(&command, &log, "fsync,renameat,renameat2", None);
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        let text = fs::read_to_string(&log).expect("a log");
        let call = |line: &str| Some(line.split_whitespace().nth(1)?.split_once('(')?.0.to_owned());
        let calls: Vec<String> = text.lines().filter_map(call).collect();
        assert_eq!(calls, ["fsync", "renameat", "fsync"], "{text}");
    }
}

#[test]
fn a_limit_on_the_size_of_files_leaves_the_old_json() {
    let dir = Dir::new("outputs-limit");
    let [analyse, report] = commands(&dir);
    for command in [analyse, report] {
        fs::write(&command.file, "the old one").expect("writable");
        let mut limited = Command::new("sh");
        limited.args(["-c", r#"ulimit -f 1; exec "$0" "$@""#, env!("CARGO_BIN_EXE_punctual")]);
        refused(&limited.args(&command.args).output().expect("a shell"), &["cannot write"]);
        assert_eq!(fs::read_to_string(&command.file).expect("there"), "the old one");
        let at = command.file.parent().expect("a directory");
        assert!(names(at).iter().all(|name| !name.starts_with('.')), "{:?}", names(at));
    }
}

#[test]
fn standard_output_by_its_name_is_added_to_and_not_replaced() {
    let dir = Dir::new("outputs-stdout");
    let [analyse, _] = commands(&dir);
    let all = dir.path("all");
    for name in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        fs::write(&all, "before\n").expect("writable");
        let appended = fs::OpenOptions::new().append(true).open(&all).expect("writable");
        let last = analyse.args.len() - 1;
        let mut command = punctual();
        command.args(&analyse.args[..last]).arg(name).stdout(appended);
        assert!(command.status().expect("it starts").success(), "{name}");
        let text = fs::read_to_string(&all).expect("there");
        let (json, page) = text.split_once("\n}\n").expect("JSON, then the page");
        assert!(json.starts_with("before\n{\n") && page.contains("lateness"), "{name}: {text}");
    }
    assert_eq!(names(&dir.0), ["a.csv", "all", "made", "out"]);
}

/// An hour's measurement onto `samples`.
fn measure(samples: &Path, json: &Path, load: &str) -> Command {
    let mut command = punctual();
    command.args(["measure", "periodic", "--duration", "1h", "--period", "200us", "--load", load]);
    command.arg("--samples").arg(samples).arg("--json").arg(json);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn samples_replace_older_ones_only_once_there_are_some() {
    let dir = Dir::new("outputs-samples");
    let (samples, json) = (dir.path("samples"), dir.path("result.json"));
    for file in [&samples, &json] {
        fs::write(file, "the old one").expect("writable");
    }
    let old = || [&samples, &json].map(|file| fs::read_to_string(file).unwrap_or_default());
    // A load that does not start: it writes where there is nothing.
    let mut failed = measure(&samples, &json, "disk");
    let out = failed.env("TMPDIR", dir.path("missing")).output().expect("it starts");
    refused(&out, &["disk", "missing"]);
    assert_eq!(old(), ["the old one", "the old one"]);
    // An end before the first sample: the program was asked to stop before it began to measure.
    let child = measure(&samples, &json, "none").spawn().expect("it starts");
    until("the signal to be caught", || catches_stop(child.id()));
    signal(&child, EndSignal::Interrupt);
    let out = child.wait_with_output().expect("it ends");
    let measured = fs::read(&samples).expect("there").starts_with(b"PUNCTUAL");
    assert_eq!(
        measured,
        !stderr(&out).contains("not written, because nothing was recorded"),
        "{}",
        stderr(&out)
    );
    assert!(measured || old()[0] == "the old one");
    // Once some are written they are there, however it ends.
    fs::write(&samples, "the old one").expect("writable");
    let mut child = measure(&samples, &json, "none").spawn().expect("it starts");
    until("samples", || fs::metadata(&samples).is_ok_and(|meta| meta.len() > 8_000));
    signal(&child, EndSignal::Kill);
    child.wait().expect("it ends");
    assert!(fs::read(&samples).expect("there").starts_with(b"PUNCTUAL"));
    assert_eq!(names(&dir.0), ["result.json", "samples"], "nothing beside them");
}

/// Whether a process catches SIGINT already: bit 1 of its mask (proc_pid_status(5)).
fn catches_stop(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 2 != 0)
}

#[test]
fn samples_that_are_removed_meanwhile_are_missed() {
    let dir = Dir::new("outputs-removed");
    let (samples, json) = (dir.path("samples"), dir.path("result.json"));
    let child = measure(&samples, &json, "none").spawn().expect("it starts");
    until("samples", || fs::metadata(&samples).is_ok_and(|meta| meta.len() > 8_000));
    fs::remove_file(&samples).expect("there");
    signal(&child, EndSignal::Interrupt);
    let out = child.wait_with_output().expect("it ends");
    refused_at_the_end(&out, "removed or replaced while it was written");
    assert!(json.is_file(), "all else is written");
}

#[test]
fn a_campaign_that_cannot_keep_its_result_fails() {
    let dir = Dir::new("outputs-soak");
    let campaign = dir.path("c");
    let mut soak = punctual();
    soak.args(["soak", "--every", "1s", "--save-every", "1s", "--campaign"]).arg(&campaign);
    let child = soak.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let result = campaign.join("result.json");
    until("a result", || result.is_file());
    // Moved away and put in place at once would be undone by the next batch.
    until("a directory in its place", || {
        let _gone = fs::remove_file(&result);
        fs::create_dir(&result).is_ok()
    });
    let rows = fs::metadata(campaign.join("state-0.punctual")).expect("there").modified().ok();
    until("another state", || {
        fs::metadata(campaign.join("state-0.punctual")).is_ok_and(|at| at.modified().ok() != rows)
    });
    signal(&child, EndSignal::Terminate);
    let out = child.wait_with_output().expect("it ends");
    refused_at_the_end(&out, "result.json could not be saved");
    assert!(stdout(&out).contains("it is a directory"), "{}", stdout(&out));
    // And it does not begin where it could not.
    let again = punctual().args(["soak", "--resume"]).arg(&campaign).output().expect("it starts");
    refused(&again, &["result.json", "it is a directory"]);
}

/// Asserts exit 2, and why in the last line of standard error.
fn refused_at_the_end(out: &Output, why: &str) {
    let said = stderr(out);
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(said.trim_end().lines().last().is_some_and(|line| line.contains(why)), "{said}");
}
