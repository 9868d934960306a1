//! The question that loops are measured for: kept with the data, answered again, and as a gate; and
//! results whose samples are gone.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::{Dir, N, json, json_file, recorded_result, refused, run, stderr, stdout, text};

/// The question that a result answers: the heading, and the deadline of its first loop, in ns.
fn heading_and_deadline(result: &Value) -> (String, f64) {
    let heading = result["headline"]["question"].as_str().expect("a question").to_owned();
    (heading, result["verdicts"][0]["deadline_ns"].as_f64().expect("a deadline"))
}

#[test]
fn a_recording_keeps_its_question_and_another_may_be_asked() {
    let dir = Dir::new("question-kept");
    let samples = dir.path("night.punctual");
    let measured = ["measure", "periodic", "-d", "500ms", "--for", "ros", "--miss", "20%"];
    let out = run([&measured[..], &["--samples", text(&samples), "--json", "-"]].concat());
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let (heading, deadline_ns) = heading_and_deadline(&json(&out));
    assert!(heading.starts_with("A robot's control loop that may be late by 100 µs"), "{heading}");
    assert_eq!(json(&out)["headline"]["question_spec"]["miss"], 0.2);
    let analyse = |args: &[&str]| {
        let out = run([&["analyse", text(&samples), "--json", "-"], args].concat());
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        json(&out)
    };
    assert_eq!(heading_and_deadline(&analyse(&[])), (heading, deadline_ns));
    let (heading, deadline_ns) = heading_and_deadline(&analyse(&["--deadline", "7ms"]));
    assert!(heading.starts_with("A loop that may be late by 7 ms once in 1 000"), "{heading}");
    assert_eq!(deadline_ns, 7e6);
    // Only what has such a loop can answer.
    refused(
        &run(["analyse", text(&samples), "--for", "linuxcnc"]),
        &["data of 1 ms", "--period 25us,1ms"],
    );
    refused(&run([&measured[..], &["--period", "2ms"]].concat()), &["--for", "--period"]);
}

#[test]
fn data_without_a_period_pass_no_gate_unseen_and_are_told_no_time() {
    let dir = Dir::new("question-without-period");
    let file = |name: &str, lines: String| {
        let path = dir.path(name);
        fs::write(&path, lines).expect("writable");
        path
    };
    let late = file("late.csv", "200\n".repeat(20_000));
    let analysed = |path: &Path, more: &[&str]| {
        run([&["analyse", text(path), "--column", "lateness:us", "--json", "-"], more].concat())
    };
    let why = ["--gate", "do not state their period", "--deadline TIME"];
    refused(&analysed(&late, &["--for", "linuxcnc", "--gate"]), &why);
    assert_eq!(analysed(&late, &["--for", "mesa", "--gate"]).status.code(), Some(1));
    // Nor where the question was kept.
    let kept = dir.path("kept.json");
    let analyse =
        ["analyse", text(&late), "--column", "lateness:us", "--for", "linuxcnc", "--json"];
    assert_eq!(run(analyse.iter().chain(&[text(&kept)])).status.code(), Some(0));
    refused(&run(["analyse", text(&kept), "--gate"]), &why);
    for purpose in ["linuxcnc", "mesa"] {
        let given = ["--for", purpose, "--deadline", "50us", "--gate"];
        assert_eq!(analysed(&late, &given).status.code(), Some(1), "{purpose}");
        assert_eq!(analysed(&late, &["--for", purpose]).status.code(), Some(0), "{purpose}");
    }
    let answer = |path: &Path, more: &[&str]| {
        let result = json(&analysed(path, more));
        let mut verdicts = result["verdicts"].as_array().expect("answers").iter();
        let open = verdicts.find(|verdict| verdict["stands"] == "open").expect("an open one");
        open["statement"].as_str().expect("a sentence").to_owned()
    };
    let few = file("few.csv", "8\n".repeat(50));
    let given = ["--deadline", "50us"];
    let statement = answer(&few, &given);
    assert!(statement.ends_with("50 µs; measure at least 2 996 cycles"), "{statement}");
    let timed = answer(&few, &["--deadline", "50us", "--period", "1ms"]);
    assert!(timed.contains("; measure ") && timed.ends_with(" s"), "{timed}");
    let claim = ["--claim", "p(lateness>50us)<1e-3"];
    let column = ["--column", "lateness:us"];
    let page = stdout(&run([&["analyse", text(&few)], &column[..], &claim].concat()));
    assert!(!page.contains("0 ns"), "{page}");
    // Of a share that is too large already the answer has it, as the claim has.
    let line = |cycle: u32| if cycle % 100 == 7 { "60\n" } else { "8\n" };
    let many = file("many.csv", (0..2_000).map(line).collect());
    let seen = "the share seen is 1.00e-2 already, so ";
    let miss = ["--deadline", "50us", "--miss", "9e-3"];
    for (period, ends) in [(&[][..], "measure longer"), (&["--period", "1ms"], "measure 60 s")] {
        let statement = answer(&many, &[&miss[..], period].concat());
        assert!(statement.starts_with("not shown yet: 20 of 2 000 wakes"), "{statement}");
        assert!(statement.contains(seen) && statement.ends_with(ends), "{statement}");
    }
    let claim = ["--claim", "p(lateness>50us)<9e-3"];
    let claimed = json(&analysed(&many, &claim));
    let reason = claimed["verdict"]["claims"][0]["reason"].as_str().expect("a reason");
    assert!(reason.contains(seen), "{reason}");
}

/// Lateness of releases of which the last 30 are beyond a tenth of a millisecond, in ns.
const fn late_at_the_end_ns(cycle: u64) -> u64 {
    if cycle < N - 30 { 20_000 } else { 400_000 }
}

/// A directory with such a result, and without its samples.
fn archived(dir: &Dir) -> String {
    recorded_result(dir, late_at_the_end_ns);
    fs::remove_file(dir.path("samples.punctual")).expect("written");
    text(&dir.0).to_owned()
}

#[test]
fn an_archived_result_is_held_to_new_limits_claims_and_questions() {
    let dir = Dir::new("question-archived");
    let kept = archived(&dir);
    let judged = |args: &[&str]| {
        let out = run([&["analyse", &kept, "--json", "-"], args].concat());
        (out.status.code(), json(&out)["verdict"].clone())
    };
    assert_eq!(judged(&[]).0, Some(0));
    assert_eq!(judged(&["--limit", "max<1ms", "--limit", "p50<21us"]).0, Some(0));
    let (code, verdict) = judged(&["--limit", "max<300us"]);
    assert_eq!((code, &verdict["limits"][0]["measured"]), (Some(1), &4e5.into()));
    // 30 of 3 000.
    assert_eq!(judged(&["--claim", "p(lateness>100us)<5%"]).0, Some(0));
    assert_eq!(judged(&["--claim", "p(lateness>100us)<0.01%"]).0, Some(1));
    // They may all be of one burst: the counts do not have their order.
    assert_eq!(judged(&["--claim", "p(lateness>100us)<0.1%"]).0, Some(3));
    for (counts_as, code) in
        [(&[][..], 3), (&["--undecided", "pass"], 0), (&["--undecided", "fail"], 1)]
    {
        let open = ["--claim", "p(missed)<1e-9", "--claim", "p(|interval|>20us)<1e-3"];
        let (given, verdict) = judged(&[&open[..], counts_as].concat());
        assert_eq!(given, Some(code), "{verdict}");
        let (failed, left) = if code == 1 { (2, 0) } else { (0, 2) };
        let count = |key: &str| verdict[key].as_array().map(Vec::len);
        assert_eq!((count("reasons"), count("open")), (Some(failed), Some(left)), "{verdict}");
    }
    // The answer decides only where that is wanted.
    let ros = ["--for", "ros", "--miss", "1e-4"];
    assert_eq!(judged(&ros).0, Some(0));
    let (code, verdict) = judged(&[&ros[..], &["--gate"]].concat());
    let reason = verdict["reasons"][0].as_str().expect("a reason");
    assert!(code == Some(1) && reason.starts_with("1 kHz: no: 30 of 3 000"), "{reason}");
    let out = run(["analyse", &kept, "--deadline", "350us", "--miss", "1e-6", "--gate", "-q"]);
    assert_eq!(out.status.code(), Some(1), "{}", stderr(&out));
    let out = run(["analyse", &kept, "--deadline", "500us", "--miss", "1e-6", "--gate", "-q"]);
    assert_eq!((out.status.code(), stdout(&out).lines().count()), (Some(3), 1));
    assert!(stderr(&out).contains("OPEN 1 kHz: not shown yet: none of 3 000"), "{}", stderr(&out));
}

#[test]
fn what_is_no_run_is_not_judged_again() {
    let dir = Dir::new("question-none");
    let kept = archived(&dir);
    let result = dir.path("result.json");
    let mut wrong = json_file(&result);
    wrong["runs"][0]["histogram"]["buckets"] = serde_json::json!([[0, 1, u64::MAX], [1, 2, 9]]);
    fs::write(&result, wrong.to_string()).expect("writable");
    refused(&run(["analyse", &kept]), &["result.json", "releases"]);
    wrong["runs"] = Value::Array(Vec::new());
    fs::write(&result, wrong.to_string()).expect("writable");
    refused(&run(["analyse", &kept]), &["no runs", "punctual report"]);
}

#[test]
fn a_check_keeps_no_samples_where_none_are_wanted_and_is_the_latest() {
    let dir = Dir::new("question-samples");
    let results = dir.path("results");
    let check = |args: &[&str]| {
        let out =
            run([&["check", "-q", "-d", "500ms", "--results", text(&results)], args].concat());
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    };
    check(&["--samples", "none"]);
    let latest = results.join("latest");
    let page = fs::read_to_string(latest.join("report.html")).expect("a page");
    assert!(page.contains("time-1-1") && !latest.join("samples.punctual").exists());
    let first = fs::read_link(&latest).expect("a link");
    check(&[]);
    assert!(latest.join("samples.punctual").exists());
    assert_ne!(fs::read_link(&latest).expect("a link"), first);
    // The link is no third result.
    let out = run(["report", text(&results), "-o", text(&dir.path("both.html"))]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let both = fs::read_to_string(dir.path("both.html")).expect("a page");
    assert!(!both.contains(">latest<"), "{both}");
}

#[test]
fn a_campaign_keeps_its_question_over_sessions() {
    let dir = Dir::new("question-campaign");
    let campaign = dir.path("campaign");
    let begin =
        ["soak", "--campaign", text(&campaign), "--every", "1s", "-d", "1s", "--for", "plc"];
    let out = run([&begin[..], &["--deadline", "3ms"]].concat());
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let show = |args: &[&str]| {
        let out = run([&["soak", "--show", text(&campaign), "--json", "-"], args].concat());
        (out.status.code(), json(&out))
    };
    let (code, result) = show(&[]);
    let (heading, deadline_ns) = heading_and_deadline(&result);
    assert!(heading.starts_with("A PLC task that may be late by 3 ms"), "{heading}");
    assert_eq!((code, deadline_ns), (Some(0), 3e6));
    assert_eq!(result["verdicts"][0]["period_ns"], 1e7);
    // A hundred cycles show no share of one in a thousand.
    assert!(matches!(show(&["--gate"]).0, Some(1 | 3)));
    let other = run(["analyse", text(&campaign), "--deadline", "4ms", "--json", "-"]);
    assert_eq!(heading_and_deadline(&json(&other)).1, 4e6);
}
