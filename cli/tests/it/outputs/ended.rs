//! Ended or out of room while files are written: the old file or the new one is there.
//!
//! What happens at every single call that changes a file is in [`crate::attack`].

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use punctual_os::process::EndSignal;
use punctual_testkit::skip;

use super::{commands, names};
use crate::support::{Dir, punctual, refused, signal, stderr, stdout, until};
use crate::traced::{may_trace, run};

#[test]
fn a_file_is_synced_before_it_is_renamed_and_its_directory_after() {
    let dir = Dir::new("outputs-sync");
    if !skip::need_program("strace") || !may_trace(&dir) {
        return;
    }
    let log = dir.path("log");
    for command in commands(&dir) {
        let out = run(&command.args, &log, "fsync,renameat,renameat2", &[]);
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        let text = fs::read_to_string(&log).expect("a log");
        let call = |line: &str| Some(line.split_whitespace().nth(1)?.split_once('(')?.0.to_owned());
        let calls: Vec<String> = text.lines().filter_map(call).collect();
        assert_eq!(calls, ["fsync", "renameat", "fsync"], "{text}");
    }
}

#[test]
fn a_limit_on_the_size_of_files_leaves_the_old_json() {
    if !skip::need_native("a limit of the size of files") {
        return;
    }
    let dir = Dir::new("outputs-limit");
    let [analyse, report, _] = commands(&dir);
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
    let [analyse, ..] = commands(&dir);
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
    assert_eq!(names(&dir.0), ["a.csv", "all", "issue", "made", "out"]);
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
