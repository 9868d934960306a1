//! Names and values that try to act on the terminal of whoever reads them: no command lets a
//! control character, a mark of direction or a forged line through.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use punctual_analysis::plain::steers;
use serde_json::json;

use crate::{Dir, run, sample_file};

/// Sets the title, clears the screen (C0 and C1), turns the direction, hides, forges a line.
const HOSTILE: &str =
    "x\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}2J\r\u{202e}\u{2066}\u{200b}\t\nFORGED line";

/// Asserts that what a person reads is plain.
fn plain(described: &str, text: &str) {
    let steering: Vec<char> = text.chars().filter(|&c| c != '\n' && steers(c)).collect();
    assert!(steering.is_empty(), "{described}: {steering:?} in {text:?}");
    assert!(!text.lines().any(|line| line.starts_with("FORGED")), "{described}: forged: {text}");
}

/// Runs a command and checks both its outputs.
fn shown(args: &[&str]) -> Output {
    let out = run(args);
    let words = args.join(" ").escape_default().to_string();
    for stream in [&out.stdout, &out.stderr] {
        plain(&words, std::str::from_utf8(stream).expect("UTF-8"));
    }
    out
}

/// As [`shown`], for one that has to do its work and to show the hostile text, escaped.
fn shows(args: &[&str]) {
    let out = shown(args);
    let text = String::from_utf8_lossy(&[&out.stdout[..], &out.stderr[..]].concat()).into_owned();
    assert!(matches!(out.status.code(), Some(0 | 1)), "{args:?}: {text}");
    let escaped = ["\\u{1b}", "\\u001b", "\\u{202e}"].iter().any(|word| text.contains(word));
    assert!(escaped, "{args:?}: {text}");
}

fn samples(path: &Path) -> String {
    let run = |name: &str| {
        json!({
            "name": name, "cpu": 0, "period_ns": 1_000_000, "policy": HOSTILE, "priority": 90,
            "wait": HOSTILE, "load": [HOSTILE], "follows": HOSTILE, "clock": HOSTILE
        })
    };
    let info = json!({
        "tool": HOSTILE, "version": HOSTILE, "started_at": HOSTILE,
        "runs": [run(HOSTILE), run("idle")]
    });
    let lateness: Vec<i64> = (0..3_000).map(|k| 5_000 + k % 700).collect();
    sample_file(path, &info, &[&lateness, &lateness])
}

#[test]
fn a_sample_file_cannot_steer_any_view_of_it() {
    let dir = Dir::new("hostile-samples");
    let below = dir.path(HOSTILE);
    fs::create_dir_all(&below).expect("writable");
    let file = samples(&below.join("samples.punctual"));
    let second = samples(&below.join("b.punctual"));
    let result = below.join("result.json");
    let result = result.to_str().expect("UTF-8");
    shows(&["analyse", &file, "--limit", "max<10us", "--claim", "p(lateness>50us)<1e-2"]);
    shows(&["analyse", &file, "--json", "-"]);
    shows(&["analyse", &file, "--json", result]);
    plain("result", &fs::read_to_string(result).expect("written"));
    shown(&["compare", &file, &second]);
    shows(&["compare", &file, &second, "--anyway"]);
    shows(&["compare", &file, &second, "--anyway", "--json", "-"]);
    let of_run = ["impact", "stepper", "--from", result, "--holding-torque", "23ozin"];
    let motor = ["--step-angle", "1.8deg", "--speed", "5rev/s"];
    shown(&[&of_run[..], &motor[..], &["--run", HOSTILE]].concat());
    shown(&[&of_run[..], &motor[..], &["--run", "none of them"]].concat());
    shown(&["impact", "audio", "--from", result]);
    for format in ["--csv", "--openmetrics", "--hdr"] {
        shown(&["export", format, "-o", "-", result]);
        shown(&["export", format, "-o", "-", &file]);
    }
    let plots = below.join("plots");
    shows(&["report", result, "--plots", plots.to_str().expect("UTF-8")]);
    // The program's own script stands in the page too: it holds such characters as escapes.
    plain("page", &fs::read_to_string(below.join("report.html")).expect("written"));
    let drawn = fs::read_dir(plots).expect("there").map(|entry| entry.expect("readable").path());
    for svg in drawn.filter(|path| path.extension().is_some_and(|ending| ending == "svg")) {
        plain("plot", &fs::read_to_string(svg).expect("written"));
    }
}

/// A captured machine whose every text is hostile.
fn machine(to: &Path) -> String {
    let fixture =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/machines/firecracker-guest-2cpu");
    let mut left = vec![PathBuf::new()];
    while let Some(dir) = left.pop() {
        fs::create_dir_all(to.join(&dir)).expect("writable");
        for entry in fs::read_dir(fixture.join(&dir)).expect("there") {
            let entry = entry.expect("readable");
            let path = dir.join(entry.file_name());
            if entry.path().is_dir() {
                left.push(path);
                continue;
            }
            let bytes = fs::read(entry.path()).expect("readable");
            let words = ["osrelease", "version", "current_clocksource", "cmdline", "name", "arch"];
            let word = words.iter().any(|name| path.file_name().is_some_and(|stem| stem == *name));
            // In lines of "name: value" each value; elsewhere the whole.
            let one_line = HOSTILE.replace('\n', " ");
            let hostile = match String::from_utf8(bytes) {
                Ok(_) if word => HOSTILE.to_owned().into_bytes(),
                Ok(text) if path.ends_with("cpuinfo") => {
                    text.replace("model name\t: ", &format!("model name\t: {one_line}")).into()
                }
                Ok(text) => text.into_bytes(),
                Err(packed) => packed.into_bytes(),
            };
            fs::write(to.join(&path), hostile).expect("writable");
        }
    }
    to.to_str().expect("UTF-8").to_owned()
}

#[test]
fn a_captured_machine_cannot_steer_what_reads_it() {
    let dir = Dir::new("hostile-root");
    let root = machine(&dir.path("root"));
    shows(&["facts", "--root", &root]);
    shows(&["facts", "--root", &root, "--json", "-"]);
    // The short pages name few facts; the long ones all.
    let periodic = ["measure", "periodic", "--root", &root, "--duration", "100ms", "--cpu", "0"];
    let wait = ["measure", "wait", "--root", &root, "--duration", "200ms", "--cpu", "0"];
    for args in [&periodic, &wait] {
        shown(args);
        shows(&[&args[..], &["--verbose"]].concat());
    }
    shown(&["measure", "noise", "--root", &root, "--duration", "100ms", "--cpu", "0"]);
    let results = dir.path(HOSTILE);
    let results = results.to_str().expect("UTF-8");
    let check = ["check", "--root", &root, "--duration", "300ms", "--cpu", "0"];
    shows(&[&check[..], &["--results", results]].concat());
    let campaign = dir.path("campaign\u{1b}[2J\nFORGED");
    let campaign = campaign.to_str().expect("UTF-8");
    let soak = ["soak", "--campaign", campaign, "--root", &root, "--duration", "300ms"];
    shows(&[&soak[..], &["--cpu", "0"]].concat());
    // A campaign keeps no such character in the first place.
    assert_eq!(shown(&["soak", "--show", campaign]).status.code(), Some(0));
    let out = dir.path("captured\u{1b}[2J\nFORGED");
    shows(&["capture", "--root", &root, out.to_str().expect("UTF-8")]);
}

#[test]
fn a_baseline_of_another_hand_cannot_steer_what_lists_it() {
    let dir = Dir::new("hostile-baseline");
    let baselines = dir.path("baselines");
    let baselines = baselines.to_str().expect("UTF-8");
    let keep = ["measure", "periodic", "--duration", "100ms", "--baseline", "night"];
    assert_eq!(shown(&[&keep[..], &["--baselines", baselines]].concat()).status.code(), Some(0));
    let file = fs::read_dir(baselines).expect("there").next().expect("one").expect("readable");
    let text = fs::read_to_string(file.path()).expect("readable");
    let quoted = serde_json::to_string(HOSTILE).expect("JSON");
    let named = text.replace("\"name\":\"idle\"", &format!("\"name\":{quoted}"));
    assert_ne!(named, text);
    fs::write(file.path(), named).expect("writable");
    shown(&["baseline", "list", "--baselines", baselines]);
    let empty = dir.path(HOSTILE);
    fs::create_dir_all(&empty).expect("writable");
    shown(&["baseline", "list", "--baselines", empty.to_str().expect("UTF-8")]);
    shows(&["baseline", "show", "night", "--baselines", baselines]);
}

#[test]
fn arguments_tasks_and_columns_cannot_steer_the_errors_about_them() {
    let dir = Dir::new("hostile-files");
    let file = dir.path(HOSTILE);
    let path = file.to_str().expect("UTF-8");
    fs::write(&file, format!("\"{HOSTILE}\",b\u{202e}\n1,2\n")).expect("writable");
    let commands: &[&[&str]] = &[
        &["analyse", path],
        &["analyse", path, "--column", "c:us"],
        &["analyse", path, "--column", HOSTILE],
        &["analyse", "b", HOSTILE],
        &["compare", path, path],
        &["report", path],
        &["export", "--csv", path],
        &["run", path],
        &["soak", "--show", path],
        &["soak", "--campaign", path],
        &["facts", "--root", path],
        &["measure", "periodic", "--period", HOSTILE],
        &["measure", "periodic", "--samples", path, "--load", HOSTILE],
        &["check", "--against", HOSTILE],
        &["baseline", "show", HOSTILE],
        &["impact", "audio", "--from", path],
        &["man", path],
        &[HOSTILE],
    ];
    for command in commands {
        assert_eq!(shown(command).status.code(), Some(2), "{command:?}");
    }
    let quoted = serde_json::to_string(HOSTILE).expect("JSON");
    let task = format!("[[task]]\nname = {quoted}\nperiod = \"5ms\"\n");
    for more in ["", "command = [\"true\"]\n", "colour = 1\n"] {
        fs::write(&file, format!("{task}{more}")).expect("writable");
        shown(&["run", path, "--duration", "50ms"]);
    }
    let program = format!("[[task]]\nname = \"a\"\nperiod = \"5ms\"\ncommand = [{quoted}]\n");
    fs::write(&file, program).expect("writable");
    assert_eq!(shown(&["run", path, "--duration", "50ms"]).status.code(), Some(2));
    // The name of a thread is that of the other program.
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/peers/cyclictest");
    let text = fs::read_to_string(fixture.join("histogram.json")).expect("readable");
    let text = text.replacen("\"cyclictest", &format!("\"{}cyclictest", &quoted[1..9]), 1);
    fs::write(&file, text).expect("writable");
    shown(&["analyse", path]);
}
