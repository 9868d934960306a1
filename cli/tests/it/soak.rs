//! Campaigns: begun, gone on with, killed, rebooted, refused.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use punctual_os::process::EndSignal;
use punctual_testkit::skip::need_program;
use serde_json::Value;

use crate::{
    Dir, PROGRAM, json, json_file, punctual, refused, run, signal, stderr, stdout, text, until,
};

/// A short campaign's options; the directory comes first.
fn soak(dir: &Path, more: &[&str]) -> Output {
    punctual().arg("soak").arg("--campaign").arg(dir).args(more).output().expect("it starts")
}

const SHORT: [&str; 4] = ["--duration", "2s", "--every", "1s"];

fn endless(dir: &Path, more: &[&str]) -> Child {
    punctual()
        .args(["soak", "--every", "1s", "--save-every", "1s", "--campaign"])
        .arg(dir)
        .args(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts")
}

fn show(dir: &Path) -> Value {
    json(&run([
        "soak".as_ref(),
        "--json".as_ref(),
        "-".as_ref(),
        "--show".as_ref(),
        dir.as_os_str(),
    ]))
}

fn cycles(report: &Value) -> u64 {
    let runs = report["runs"].as_array().expect("runs");
    runs.iter().map(|run| run["cycles"].as_u64().expect("a count")).sum()
}

/// A tree of facts: a machine by its identifier, one boot of it, and its kernel.
fn machine(dir: &Dir, name: &str, id: &str, boot: &str, kernel: &str) -> PathBuf {
    let root = dir.path(name);
    let write = |path: &str, text: &str| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("below the root")).expect("writable");
        fs::write(path, text).expect("writable");
    };
    write("etc/machine-id", id);
    write("proc/sys/kernel/random/boot_id", boot);
    write("proc/sys/kernel/osrelease", kernel);
    root
}

#[test]
fn a_campaign_has_a_line_a_batch_a_result_and_an_end() {
    let dir = Dir::new("soak");
    let campaign = dir.path("night");
    let out = soak(&campaign, &[&SHORT[..], &["--limit", "max<10s", "--name", "first"]].concat());
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let printed = stdout(&out);
    let lines: Vec<&str> = printed.lines().filter(|line| line.contains(" in all ")).collect();
    assert!(lines.len() >= 2, "{printed}");
    for word in ["Z first: idle: ", "cycles", "missed", "p99.9", "max", "load none"] {
        assert!(lines[0].contains(word), "{word}: {}", lines[0]);
    }
    let result = json_file(&campaign.join("result.json"));
    assert_eq!((&result["experiment"], &result["incomplete"]), (&"soak".into(), &false.into()));
    let own = &result["campaign"];
    assert_eq!((&own["name"], &own["boots"][0]["ended"]), (&"first".into(), &true.into()));
    let in_rows: u64 = own["stretches"]
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| row["cycles"].as_u64().expect("a count"))
        .sum();
    assert_eq!(in_rows, cycles(&result));
    // The rows have every release that counts and whose lateness is known.
    let rows = own["stretches"].as_array().expect("rows");
    let pairs = rows.iter().flat_map(|row| row["by_lateness"].as_array().expect("pairs"));
    let late: u64 = pairs.map(|pair| pair[1].as_u64().expect("a count")).sum();
    let count = |key: &str| result["runs"][0][key].as_u64().expect("a count");
    assert_eq!(late, in_rows + count("missed") - count("cold") - count("censored"));
    let page = dir.path("night.html");
    let out = run(["report", text(&campaign), "-o", text(&page)]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let page = fs::read_to_string(page).expect("written");
    assert!(page.contains("Lateness over the campaign: idle"), "a heat map");
    assert!(result["runs"][0]["claims"].as_array().is_some_and(|claims| claims.len() > 2));
    assert!(own["outliers"][0]["at_unix_ns"].as_i64().is_some_and(|ns| ns > 1_000_000_000));
    // It is complete: going on measures nothing more, and longer does.
    let again = soak(&campaign, &[]);
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    assert_eq!(cycles(&show(&campaign)), cycles(&result));
    // What it takes to begin and to end a batch is not measured time.
    assert_eq!(own["measured_ns"], own["duration_ns"]);
    let measured_s = own["measured_ns"].as_u64().expect("a time") / 1_000_000_000;
    let duration = format!("{}s", measured_s + 2);
    let longer = soak(&campaign, &["--duration", &duration, "--json", "-"]);
    assert!(cycles(&json(&longer)) > cycles(&result), "{}", stderr(&longer));
    assert!(stderr(&longer).contains(" in all "), "lines make way for the JSON");
}

#[test]
fn a_rest_too_short_to_measure_leaves_no_campaign_open() {
    let dir = Dir::new("soak-rest");
    let campaign = dir.path("c");
    let args = ["-d", "1050ms", "--every", "1s", "--period", "50ms", "--limit", "max<10s"];
    let out = soak(&campaign, &args);
    assert_eq!(out.status.code(), Some(0), "{}{}", stdout(&out), stderr(&out));
    let result = json_file(&campaign.join("result.json"));
    let ended = [&result["incomplete"], &result["ended_by"]];
    assert_eq!(ended, [&Value::Bool(false), &Value::Null]);
    let out = run(["analyse".as_ref(), campaign.as_os_str()]);
    assert_eq!(out.status.code(), Some(0), "{}", stdout(&out));
    // One that is no longer than such a rest is measured all the same.
    let tiny = dir.path("tiny");
    let out = soak(&tiny, &["-d", "5ms"]);
    assert_eq!(out.status.code(), Some(0), "{}{}", stdout(&out), stderr(&out));
    assert_eq!(json_file(&tiny.join("result.json"))["campaign"]["measured_ns"], 5_000_000);
}

#[test]
fn after_kill_9_it_goes_on_and_a_stop_ends_it_well() {
    let dir = Dir::new("soak-kill");
    let campaign = dir.path("c");
    let mut first = endless(&campaign, &[]);
    until("a batch", || json_rows(&campaign) >= 1);
    refused(&soak(&campaign, &[]), &["is already running this campaign", &first.id().to_string()]);
    signal(&first, EndSignal::Kill);
    first.wait().expect("it ends");
    let before = cycles(&show(&campaign));
    assert!(before > 0);
    for how in [EndSignal::Terminate, EndSignal::Interrupt] {
        let mut next = endless(&campaign, &[]);
        // Once it says where it is, it holds the directory and catches the signal.
        until("it to begin", || {
            fs::read_to_string(campaign.join("lock"))
                .is_ok_and(|pid| pid.trim() == next.id().to_string())
        });
        let rows = json_rows(&campaign);
        until("another batch", || json_rows(&campaign) > rows);
        signal(&next, how);
        let status = next.wait().expect("it ends");
        assert_eq!(status.code(), Some(128 + how as i32), "{how:?}: written, then as shells say");
    }
    let after = show(&campaign);
    assert!(cycles(&after) > before);
    let boot = &after["campaign"]["boots"][0];
    assert_eq!((&boot["sessions"], &boot["ended"]), (&3.into(), &true.into()));
    let events = after["campaign"]["events"].to_string();
    assert_eq!(events.matches("was cut off").count(), 1, "{events}");
    assert_eq!(after["incomplete"], false);
}

/// Rows of the state on disk; none before there is one.
fn json_rows(dir: &Path) -> usize {
    let out =
        run(["soak".as_ref(), "--json".as_ref(), "-".as_ref(), "--show".as_ref(), dir.as_os_str()]);
    let report: Value = serde_json::from_slice(&out.stdout).unwrap_or_default();
    report["campaign"]["stretches"].as_array().map_or(0, Vec::len)
}

#[test]
fn boots_are_one_campaign_and_a_new_kernel_is_kept_apart() {
    let dir = Dir::new("soak-boots");
    let campaign = dir.path("c");
    let boots = [("a", "boot-1", "6.1"), ("b", "boot-2", "6.1"), ("c", "boot-3", "6.12")];
    for (at, (name, boot, kernel)) in boots.into_iter().enumerate() {
        let root = machine(&dir, name, "11111111111111111111111111111111", boot, kernel);
        let total = format!("{}s", at + 1);
        let root = root.to_str().expect("UTF-8");
        let out = soak(&campaign, &["--duration", &total, "--every", "1s", "--root", root]);
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        assert_eq!(stdout(&out).contains("kept apart"), kernel == "6.12", "{}", stdout(&out));
    }
    let report = show(&campaign);
    let kernels: Vec<&str> = report["campaign"]["boots"]
        .as_array()
        .expect("boots")
        .iter()
        .map(|boot| boot["kernel"].as_str().expect("text"))
        .collect();
    assert_eq!(kernels, ["6.1", "6.1", "6.12"]);
    let names: Vec<&str> = report["runs"]
        .as_array()
        .expect("runs")
        .iter()
        .map(|run| run["name"].as_str().expect("text"))
        .collect();
    assert_eq!(names, ["idle, setup 1", "idle, setup 2"]);
    // Of releases, as a busy machine may leave two boots fewer cycles than one.
    let count = |run: &Value, key: &str| run[key].as_u64().expect("a count");
    let releases = |at: usize| {
        let run = &report["runs"][at];
        count(run, "cycles") + count(run, "missed")
    };
    assert!(releases(0) > releases(1), "two boots pooled: {report}");

    let second = machine(&dir, "d", "22222222222222222222222222222222", "boot-9", "6.1");
    let second = second.to_str().expect("UTF-8");
    refused(
        &soak(&campaign, &["--duration", "9s", "--root", second]),
        &["another machine", "identifier"],
    );
    let allowed = ["--duration", "4s", "--root", second, "--allow-change"];
    assert_eq!(soak(&campaign, &allowed).status.code(), Some(0));
}

#[test]
fn a_broken_limit_is_said_at_once_and_fails_at_the_end() {
    let dir = Dir::new("soak-limit");
    let campaign = dir.path("c");
    let mut child = endless(&campaign, &["--limit", "max<1ns", "--stop-on-fail"]);
    let status = child.wait().expect("it ends by itself");
    assert_eq!(status.code(), Some(1));
    let report = show(&campaign);
    let broken = report["campaign"]["broken"].as_array().expect("a list");
    assert!(
        broken.len() == 1 && broken[0].as_str().is_some_and(|b| b.contains("max<1ns")),
        "{broken:?}"
    );
    // What ended it is that limit, and no signal.
    let (dated, json) = (dir.path("dated"), dir.path("dated.json"));
    let args = ["-d", "1h", "--every", "1s", "--limit", "max<1ns", "--stop-on-fail", "--json"];
    let out = soak(&dated, &[&args[..], &[text(&json)]].concat());
    assert_eq!(out.status.code(), Some(1), "{}", stderr(&out));
    assert_eq!(json_file(&json)["ended_by"], "limit");
    assert!(stdout(&out).contains("boot 1, nothing measured yet, "), "{}", stdout(&out));
    assert!(!stdout(&out).contains("0 ns measured"), "{}", stdout(&out));
    // Its limits stay its own.
    assert_eq!(report["verdict"]["ok"], false);
    let out = soak(
        &dir.path("p50"),
        &[&SHORT[..], &["--limit", "p50<1ns", "--claim", "p(lateness>10s)<0.5"]].concat(),
    );
    assert_eq!(out.status.code(), Some(1));
    assert!(stdout(&out).contains("broken for good: idle: p50<1ns"), "{}", stdout(&out));
    let out =
        soak(&dir.path("claim"), &[&SHORT[..], &["--claim", "p(lateness>10s)<1e-9"]].concat());
    assert_eq!(out.status.code(), Some(3), "too little to tell is not shown");
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_written() {
    let dir = Dir::new("soak-bad");
    let (new, file) = (dir.path("new"), dir.path("file"));
    fs::write(&file, "x").expect("writable");
    refused(&soak(&file, &[]), &["not a directory, so not a campaign"]);
    for (more, words) in [
        (["--duration", "0s"], ["zero", "--duration"]),
        (["--every", "10ms"], ["--every", "1.00 s"]),
        (["--save-every", "1ms"], ["--save-every", "at least 1 s"]),
        (["--limit", "jitter_pp<1ms"], ["no grid", "--limit"]),
        (["--claim", "p(x)<1"], ["claim", "character"]),
        (["--cpu", "999"], ["--cpu", "999"]),
        (["--period", "2h"], ["--duration is shorter", "period"]),
        (["--name", "a\u{1b}b"], ["control character", "--name"]),
        (["--load", "nonsense"], ["--load", "nonsense"]),
    ] {
        refused(&soak(&new, &more), &words);
        assert!(!new.exists(), "{more:?}");
    }
    fs::create_dir(&new).expect("writable");
    refused(&run(["soak".as_ref(), "--resume".as_ref(), new.as_os_str()]), &["no campaign"]);
    refused(&run(["soak".as_ref(), "--show".as_ref(), new.as_os_str()]), &["no campaign"]);
    fs::write(new.join("mine.txt"), "x").expect("writable");
    refused(&soak(&new, &[]), &["mine.txt", "not empty"]);
}

#[test]
fn a_torn_state_is_told_and_two_torn_ones_are_refused() {
    let dir = Dir::new("soak-torn");
    let campaign = dir.path("c");
    assert_eq!(soak(&campaign, &SHORT).status.code(), Some(0));
    let whole = cycles(&show(&campaign));
    refused(
        &soak(&campaign, &["--period", "2ms"]),
        &["options differ", "period", "--allow-change"],
    );
    let slots = ["state-0.punctual", "state-1.punctual"].map(|slot| campaign.join(slot));
    let newest = slots.iter().max_by_key(|slot| fs::metadata(slot).and_then(|m| m.modified()).ok());
    let newest = newest.expect("two");
    let bytes = fs::read(newest).expect("there");
    fs::write(newest, &bytes[..bytes.len() / 2]).expect("writable");
    let out = soak(&campaign, &["--duration", "3s"]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    assert!(stdout(&out).contains("is corrupt, so the other one is used"), "{}", stdout(&out));
    assert!(cycles(&show(&campaign)) > whole / 2);
    for slot in &slots {
        fs::write(slot, "PCAMPAGN and no more").expect("writable");
    }
    for out in
        [soak(&campaign, &[]), run(["soak".as_ref(), "--show".as_ref(), campaign.as_os_str()])]
    {
        refused(&out, &["state-0.punctual"]);
    }
    assert_eq!(fs::read(&slots[0]).expect("there"), b"PCAMPAGN and no more", "left as it is");
}

#[test]
fn a_directory_that_cannot_be_written_is_refused() {
    // Nobody makes directories there, root included.
    refused(&soak(Path::new("/proc/punctual-campaign"), &SHORT), &["cannot make", "/proc"]);
}

#[test]
fn a_full_disk_is_said_and_measuring_goes_on() {
    let dir = Dir::new("soak-full");
    let campaign = dir.path("c");
    // Files of 4 KiB at most: the first state fits, and that of a batch does not.
    let limited = r#"ulimit -f 8; exec "$0" "$@""#;
    let out = Command::new("sh")
        .args(["-c", limited, PROGRAM, "soak", "--campaign"])
        .arg(&campaign)
        .args(SHORT)
        .output()
        .expect("a shell");
    let printed = stdout(&out);
    assert_eq!(printed.matches("Z c: cannot save the state").count(), 1, "once: {printed}");
    assert!(printed.lines().filter(|line| line.contains(" in all ")).count() >= 2, "{printed}");
    refused(&out, &["the state could not be saved"]);
    // What was saved before is whole, and goes on.
    let again = soak(&campaign, &SHORT);
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
}

#[test]
fn analyse_reads_a_campaign() {
    let dir = Dir::new("soak-analyse");
    let campaign = dir.path("c");
    assert_eq!(soak(&campaign, &SHORT).status.code(), Some(0));
    let read = ["analyse".as_ref(), campaign.as_os_str(), "--json".as_ref(), "-".as_ref()];
    let report = json(&run(read));
    assert_eq!(cycles(&report), cycles(&show(&campaign)));
    let written = json_file(&campaign.join("result.json"));
    assert!(written["machine"]["kernel"]["value"].is_string(), "it names its machine");
    let held = [&read[..], &["--limit".as_ref(), "max<1ns".as_ref()]].concat();
    assert_eq!(run(held).status.code(), Some(1));
    // Intervals and missed releases are watched, whether the campaign was asked for them or not.
    let events = ["p(|interval|>10s)<0.9", "p(missed)<1e-9"].map(OsStr::new);
    let args = [&read[..], &["--claim".as_ref(), events[0], "--claim".as_ref(), events[1]]];
    let out = run(args.concat());
    let claims = &json(&out)["verdict"]["claims"];
    assert_eq!(claims[0]["holds"], "if-alone", "{claims}");
    // A release may have been missed; so few cycles show nothing so rare.
    let is_open = claims[1]["holds"] == "undecided";
    assert!(is_open || claims[1]["holds"] == "no", "{claims}");
    assert_eq!(out.status.code(), Some(if is_open { 3 } else { 1 }), "{}", stderr(&out));
}

#[test]
fn the_unit_is_one_that_systemd_takes() {
    let unit =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/systemd/punctual-soak@.service");
    let text = fs::read_to_string(unit).expect("there");
    // What is over is not begun again, whatever came of it; what was killed is.
    let prevented = text.lines().find_map(|line| line.strip_prefix("RestartPreventExitStatus="));
    assert_eq!((prevented, text.contains("\nRestart=on-failure\n")), (Some("1 2 3"), true));
    let dir = Dir::new("soak-unit");
    let copy = dir.path("punctual-soak@night.service");
    fs::write(&copy, text.replace("@BINDIR@/punctual", PROGRAM)).expect("writable");
    if !need_program("systemd-analyze") {
        return;
    }
    let verified = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&copy).output();
    let Ok(out) = verified else { return };
    let errors = stderr(&out);
    let ours: Vec<&str> = errors.lines().filter(|line| line.contains("punctual")).collect();
    assert!(out.status.success() && ours.is_empty(), "{errors}");
}
