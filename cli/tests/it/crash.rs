//! Interrupted runs: Ctrl-C keeps what there is, `kill -9` all but the last block, and no load
//! outlives its parent.
//!
//! Runs that were interrupted: that is said, no other cause, and the exit status has the signal.
//!
//! Signals that come in pairs, microseconds apart, as a terminal that closes sends them: one
//! request, and the result is written.

use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use punctual_os::process::EndSignal;

use crate::{
    Dir, PROGRAM, at_once, catches_interrupt, json, json_file, punctual, run, signal, stderr,
    stdout, until,
};

fn start(samples: &Path, load: &str) -> Child {
    punctual()
        .args(["measure", "periodic", "--duration", "1h", "--period", "200us", "--load", load])
        .arg("--samples")
        .arg(samples)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts")
}

/// Processes whose parent, or its parent, is `pid`.
fn descendants(pid: u32) -> Vec<u32> {
    let children = |pid: u32| -> Vec<u32> {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        tasks
            .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
            .flat_map(|text| text.split_whitespace().flat_map(str::parse).collect::<Vec<u32>>())
            .collect()
    };
    let mut found = children(pid);
    let grandchildren: Vec<u32> = found.iter().flat_map(|&child| children(child)).collect();
    found.extend(grandchildren);
    found
}

#[test]
fn after_kill_9_all_but_the_last_block_is_readable_and_no_load_is_left() {
    let dir = Dir::new("kill");
    let file = dir.path("samples");
    let mut child = start(&file, "cpu,fork");
    until("a few blocks", || fs::metadata(&file).is_ok_and(|meta| meta.len() > 200_000));
    let loads = descendants(child.id());
    assert!(!loads.is_empty(), "the loads run");
    signal(&child, EndSignal::Kill);
    child.wait().expect("it ends");
    until("the loads to end", || {
        loads.iter().all(|pid| {
            fs::read_to_string(format!("/proc/{pid}/stat"))
                .map_or(true, |stat| stat.contains(") Z "))
        })
    });
    let out = run(["analyse", file.to_str().expect("UTF-8"), "--json", "-"]);
    assert_eq!(out.status.code(), Some(0));
    let result = json(&out);
    assert_eq!(result["incomplete"], true);
    let written = fs::read(&file).expect("there");
    let json_bytes = u32::from_le_bytes(written[12..16].try_into().expect("four"));
    let samples_written = (written.len() - 24 - json_bytes as usize) as u64 / 16;
    let cycles = result["runs"][0]["cycles"].as_u64().expect("a count");
    // All but the last block, which is closed after 0.2 s: 1 000 samples, more if the drain was
    // late.
    assert!(cycles > 5_000 && cycles + 5_000 > samples_written, "{cycles} of {samples_written}");
    assert!(result["machine"]["kernel"]["value"].is_string(), "the facts survive too");
}

#[test]
fn an_interrupt_ends_it_early_with_what_there_is() {
    for how in [EndSignal::Interrupt, EndSignal::Terminate] {
        let dir = Dir::new(&format!("interrupt-{how:?}"));
        let file = dir.path("samples");
        let child = start(&file, "none");
        until("samples", || fs::metadata(&file).is_ok_and(|meta| meta.len() > 8_000));
        signal(&child, how);
        let out = child.wait_with_output().expect("it ends");
        assert_eq!(out.status.code(), Some(128 + how as i32));
        assert!(stdout(&out).contains("incomplete"), "{}", stdout(&out));
        let read = run(["analyse", file.to_str().expect("UTF-8"), "--json", "-"]);
        let result = json(&read);
        assert_eq!(result["incomplete"], true);
        assert!(result["warnings"].to_string().contains("the recording ended early"), "{result}");
    }
}

#[test]
fn signals_within_half_a_second_are_one() {
    // A terminal that closes sends two SIGHUPs, timeout(1) sends its signal to the group as well.
    for how in [EndSignal::HangUp, EndSignal::Interrupt, EndSignal::Terminate] {
        let dir = Dir::new(&format!("pair-{how:?}"));
        let out = at_once(|| {
            let file = dir.path("samples");
            let child = start(&file, "none");
            until("samples", || fs::metadata(&file).is_ok_and(|meta| meta.len() > 8_000));
            let begun = Instant::now();
            for pause_ms in [0, 1, 5] {
                std::thread::sleep(Duration::from_millis(pause_ms));
                signal(&child, how);
            }
            let took = begun.elapsed();
            (took, child.wait_with_output().expect("it ends"))
        });
        assert_eq!(out.status.code(), Some(128 + how as i32), "{how:?}: {}", out.status);
        assert!(stdout(&out).contains("incomplete"), "{}", stdout(&out));
    }
}

#[test]
fn a_later_signal_ends_what_does_not_end_by_itself() {
    let dir = Dir::new("later-signal");
    let file = dir.path("samples");
    // A pipe that is full, and that nobody reads: its page can never be written.
    let (_reader, mut writer) = std::io::pipe().expect("a pipe");
    writer.write_all(&[b'x'; 65_536]).expect("as much as one holds");
    let mut child = punctual()
        .args(["measure", "periodic", "--duration", "1h", "--period", "200us", "--samples"])
        .arg(&file)
        .stdout(writer)
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    until("samples", || fs::metadata(&file).is_ok_and(|meta| meta.len() > 8_000));
    let mut status = None;
    until("its end", || {
        signal(&child, EndSignal::Interrupt);
        // Longer than what makes two signals one.
        std::thread::sleep(Duration::from_millis(600));
        status = child.try_wait().expect("ours");
        status.is_some()
    });
    assert_eq!(status.and_then(|status| status.signal()), Some(EndSignal::Interrupt as i32));
}

fn cut_in_half(path: &Path) {
    let file = fs::OpenOptions::new().write(true).open(path).expect("there");
    file.set_len(file.metadata().expect("there").len() / 2).expect("ours");
}

#[test]
fn a_sample_file_that_is_removed_or_cut_off_meanwhile_is_noticed_and_all_else_is_written() {
    type Change = fn(&Path);
    let changes: [(&str, Change, &str); 3] = [
        ("remove", |path| fs::remove_file(path).expect("there"), "removed or replaced"),
        (
            "replace",
            |path| {
                let new = path.with_extension("new");
                fs::write(&new, "x").expect("writable");
                fs::rename(new, path).expect("ours");
            },
            "removed or replaced",
        ),
        ("truncate", cut_in_half, "another program changed it"),
    ];
    for (how, change, words) in changes {
        let dir = Dir::new(&format!("changed-{how}"));
        let (file, result) = (dir.path("samples"), dir.path("result.json"));
        let child = punctual()
            .args(["measure", "periodic", "--duration", "3s", "--limit", "max<10s", "--json"])
            .arg(&result)
            .arg("--samples")
            .arg(&file)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        until("samples", || fs::metadata(&file).is_ok_and(|meta| meta.len() > 8_000));
        change(&file);
        let out = child.wait_with_output().expect("it ends");
        assert_eq!(out.status.code(), Some(2), "{how}: {}", stderr(&out));
        let page = stdout(&out).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(stderr(&out).contains(words), "{how}: {}", stderr(&out));
        assert!(page.contains("incomplete") && page.contains(words), "{how}: {page}");
        let result = json_file(&result);
        assert_eq!(result["incomplete"], true, "{how}");
        assert!(result["warnings"].to_string().contains(words), "{how}: {result}");
        // What was measured is whole.
        assert_eq!(result["verdict"]["ok"], true, "{how}");
        let lookup = |key: &str| result["runs"][0][key].as_u64().expect("a count");
        assert!(
            lookup("cycles") > 0 && lookup("cycles") + lookup("missed") > 2_900,
            "{how}: {result}"
        );
    }
}

#[test]
fn a_disk_that_is_full_is_said_in_the_result_and_all_else_is_written() {
    let dir = Dir::new("full-disk");
    let (file, result) = (dir.path("samples"), dir.path("result.json"));
    // A limit on the length of files stands for the disk; in blocks of 512 bytes. A result has up
    // to some 100 KB, the samples 1.4 MB.
    let limited = "ulimit -f 1024 && exec \"$0\" measure periodic --period 100us --duration 4s \
                   --samples \"$1\" --json \"$2\"";
    let mut shell = Command::new("sh");
    let out = shell.args(["-c", limited]).arg(PROGRAM).arg(&file).arg(&result).output();
    let out = out.expect("sh starts");
    assert_eq!(out.status.code(), Some(2), "{}", stderr(&out));
    assert!(stderr(&out).contains("ends early"), "{}", stderr(&out));
    assert!(stdout(&out).contains("incomplete"), "{}", stdout(&out));
    let result = json_file(&result);
    assert_eq!(result["incomplete"], true);
    assert!(result["warnings"].to_string().contains("ends early"), "{result}");
}

/// Interrupts a run of `args` as soon as it can be, and looks at its page, its result and the page
/// of its result.
fn interrupted(args: &[&str]) {
    let dir = Dir::new(&format!("interrupted-{}", args.join("-").replace([' ', '/'], "-")));
    let (json, page) = (dir.path("of.json"), dir.path("of.html"));
    let mut command = punctual();
    command.args(args).arg("--json").arg(&json);
    match args[0] {
        "check" => command.arg("--results").arg(dir.path("results")),
        "soak" => command.arg("--campaign").arg(dir.path("campaign")),
        _ => &mut command,
    };
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    until("signals to be caught", || catches_interrupt(&child));
    signal(&child, EndSignal::Interrupt);
    let out = child.wait_with_output().expect("it ends");
    let text = stdout(&out);
    assert_eq!(out.status.code(), Some(130), "{args:?}: {text} {}", stderr(&out));
    let result = json_file(&json);
    assert_eq!((&result["incomplete"], &result["ended_by"]), (&true.into(), &"interrupt".into()));
    let report = run(["report", &json.display().to_string(), "-o", &page.display().to_string()]);
    assert_eq!(report.status.code(), Some(0), "{}", stderr(&report));
    let html = fs::read_to_string(&page).expect("written");
    assert!(
        html.contains("Incomplete: interrupted (SIGINT); these are the results so far."),
        "{args:?}"
    );
    let warnings = result["warnings"].to_string();
    assert!(
        text.contains("incomplete: interrupted (SIGINT); these are the results so far"),
        "{args:?}: {text}"
    );
    for words in ["cut off", "longer --duration", "too short", "ended early, or", "so short"] {
        let line_text = [&text, &warnings].into_iter().find(|value| value.contains(words));
        assert_eq!(line_text, None, "{args:?}: {words}");
    }
}

#[test]
fn each_signal_has_the_exit_status_that_the_help_names() {
    let help = stdout(&run(["--help"]));
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for (how, name, status) in [
        (EndSignal::Interrupt, "SIGINT", 130),
        (EndSignal::Terminate, "SIGTERM", 143),
        (EndSignal::HangUp, "SIGHUP", 129),
    ] {
        let mut command = punctual();
        command
            .args(["measure", "accuracy", "-d", "1h", "--policy", "other"])
            .stdout(Stdio::null());
        let mut child = command.spawn().expect("it starts");
        until("signals to be caught", || catches_interrupt(&child));
        signal(&child, how);
        assert_eq!(child.wait().expect("it ends").code(), Some(status), "{name}");
        assert!(help.contains(&format!("{status} by {name}")), "{help}");
    }
}

#[test]
fn an_interrupted_run_says_that_and_no_other_cause() {
    interrupted(&["measure", "periodic", "-d", "1h", "--load", "cpu"]);
    interrupted(&["measure", "periodic", "-d", "1h", "-p", "1ms,25us", "--load", "cpu"]);
    interrupted(&["measure", "wait", "-d", "1h", "--front"]);
    interrupted(&["measure", "timer", "-d", "1h"]);
    interrupted(&["measure", "accuracy", "-d", "1h"]);
    interrupted(&["measure", "work", "-d", "1h", "--load", "cpu"]);
    interrupted(&["reproduce", "nist", "--quick"]);
    interrupted(&["check", "-d", "1h", "-p", "1ms,25us"]);
    interrupted(&["soak", "-d", "1h"]);
}

#[test]
fn limits_of_an_interrupted_run_are_open_and_the_status_is_that_of_the_signal() {
    for (how, status, cause) in [
        (EndSignal::Interrupt, 130, "interrupt"),
        (EndSignal::Terminate, 143, "terminate"),
        (EndSignal::HangUp, 129, "hangup"),
    ] {
        let dir = Dir::new(&format!("crash-limits-{status}"));
        let (samples, json) = (dir.path("samples.punctual"), dir.path("result.json"));
        let mut command = punctual();
        command.args(["measure", "periodic", "-d", "1h", "--limit", "max<60s"]);
        command.args(["--limit", "p99.9999<60s", "--junit"]).arg(dir.path("junit.xml"));
        command.arg("--samples").arg(&samples).arg("--json").arg(&json);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = child.expect("it starts");
        until("samples", || {
            let begun = fs::metadata(&samples).is_ok_and(|meta| meta.len() > 8_000);
            begun && catches_interrupt(&child)
        });
        signal(&child, how);
        let out = child.wait_with_output().expect("it ends");
        assert_eq!(out.status.code(), Some(status), "{} {}", stdout(&out), stderr(&out));
        let result = json_file(&json);
        assert_eq!(result["ended_by"], cause);
        for limit in result["verdict"]["limits"].as_array().expect("limits") {
            assert_eq!((&limit["ok"], &limit["open"]), (&false.into(), &true.into()), "{limit}");
        }
        let junit = fs::read_to_string(dir.path("junit.xml")).expect("written");
        // Not the hour that was planned.
        assert!(!junit.contains("time=\"3600."), "{junit}");
        assert!(junit.contains(" failures=\"0\" ") && junit.contains("<error "), "{junit}");
        // A limit that is broken is broken all the same.
        let args = ["analyse", samples.to_str().expect("UTF-8"), "--limit", "max<1ns"];
        assert_eq!(run(args).status.code(), Some(1));
    }
}

/// The first file of this name below a directory.
fn find(dir: &Path, name: &str) -> Option<PathBuf> {
    let entries: Vec<PathBuf> =
        fs::read_dir(dir).ok()?.flatten().map(|entry| entry.path()).collect();
    let own = entries.iter().find(|path| path.ends_with(name)).cloned();
    own.or_else(|| entries.iter().find_map(|path| find(path, name)))
}

/// Sends both signals once `begun`, and waits for a result that is whole; in a directory of this
/// name.
fn pair(
    name: &str,
    pair: [EndSignal; 2],
    command: impl Fn(&Dir) -> Command,
    begun: impl Fn(&Dir) -> bool,
) {
    let (dir, out) = at_once(|| {
        let dir = Dir::new(name);
        let mut command = command(&dir);
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let child = child.expect("it starts");
        until(name, || begun(&dir));
        let sent = Instant::now();
        for how in pair {
            signal(&child, how);
        }
        let took = sent.elapsed();
        (took, (dir, child.wait_with_output().expect("it ends")))
    });
    let trial = format!("{name} {pair:?}: {} {}", out.status, stderr(&out));
    assert!(out.status.code().is_some(), "{trial}");
    let result = find(&dir.0, "result.json").unwrap_or_else(|| panic!("no result: {trial}"));
    assert!(json_file(&result)["experiment"].is_string(), "{trial}");
}

/// Returns true where samples were written.
fn has_samples(dir: &Path) -> bool {
    let samples = find(dir, "samples.punctual");
    samples.is_some_and(|path| fs::metadata(path).is_ok_and(|meta| meta.len() > 8_000))
}

const PAIRS: [[EndSignal; 2]; 4] = [
    [EndSignal::HangUp, EndSignal::HangUp],
    [EndSignal::HangUp, EndSignal::Terminate],
    [EndSignal::Interrupt, EndSignal::Interrupt],
    [EndSignal::Terminate, EndSignal::HangUp],
];

#[test]
fn a_closed_terminal_leaves_the_result_of_check() {
    for (trial, signals) in PAIRS.into_iter().cycle().take(12).enumerate() {
        let check = |dir: &Dir| {
            let mut check = punctual();
            check.args(["check", "--duration", "1h", "--period", "200us", "--results"]);
            check.arg(&dir.0);
            check
        };
        pair(&format!("pairs-check-{trial}"), signals, check, |dir| has_samples(&dir.0));
    }
}

#[test]
fn a_closed_terminal_leaves_the_result_of_all_that_measures() {
    let measure = |dir: &Dir| {
        let mut measure = punctual();
        measure.args(["measure", "periodic", "--duration", "1h", "--period", "200us"]);
        measure.arg("--samples").arg(dir.path("samples.punctual"));
        measure.arg("--json").arg(dir.path("result.json"));
        measure
    };
    let soak = |dir: &Dir| {
        let mut soak = punctual();
        soak.args(["soak", "--every", "1s", "--save-every", "1s", "--campaign"]);
        soak.arg(dir.path("c"));
        soak
    };
    let run = |dir: &Dir| {
        let (tasks, started) = (dir.path("tasks.toml"), dir.path("started"));
        let script = format!("touch {}; exec sleep 600", started.display());
        let task = format!(
            "[[task]]\nname = \"a\"\nperiod = \"5ms\"\nregister_within = \"60s\"\n\
             command = [\"sh\", \"-c\", {script:?}]\n"
        );
        fs::write(&tasks, task).expect("writable");
        let mut run = punctual();
        run.arg("run").arg(&tasks).arg("--json").arg(dir.path("result.json"));
        run
    };
    for (trial, signals) in PAIRS.into_iter().enumerate() {
        let place = |command: &str| format!("pairs-{command}-{trial}");
        pair(&place("measure"), signals, measure, |dir| has_samples(&dir.0));
        pair(&place("soak"), signals, soak, |dir| find(&dir.0, "result.json").is_some());
        pair(&place("run"), signals, run, |dir| dir.path("started").exists());
    }
}
