//! `--stop-over`: the run ends at the first release that is later, says which, and is kept.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::junit::case;
use crate::{Dir, json, json_file, run, stderr, stdout, text};

/// The release that ended a run: which, how late, and when.
fn stopped(result: &Value) -> (&str, u64, f64) {
    let stopped = &result["stop_over"]["stopped_by"];
    let run = stopped["run"].as_str().unwrap_or_else(|| panic!("{result}"));
    let late_ns = stopped["lateness_ns"].as_f64().expect("a time");
    (run, stopped["cycle"].as_u64().expect("a number"), late_ns)
}

#[test]
fn a_run_ends_at_the_first_release_that_is_too_late_and_is_kept() {
    let dir = Dir::new("stop-over");
    let (samples, junit) = (dir.path("loop.punctual"), dir.path("junit.xml"));
    // Far longer than it may take; any release is later than that.
    let over = ["-d", "300s", "--stop-over", "1ns"];
    let files = ["--samples", text(&samples), "--junit", text(&junit), "--json", "-"];
    let out = run([&["measure", "periodic"], &over[..], &files].concat());
    assert_eq!(out.status.code(), Some(1), "{}", stderr(&out));
    let result = json(&out);
    assert_eq!((&result["incomplete"], &result["ended_by"]), (&true.into(), &"late".into()));
    assert_eq!(result["stop_over"]["above_ns"], 1);
    let (name, cycle, late_ns) = stopped(&result);
    assert_eq!(name, "idle");
    // Cold ones ended nothing, and it is the last that was recorded.
    let own = &result["runs"][0];
    // One that let releases pass on a busy machine was no cold one.
    let cold = own["cold"].as_u64().expect("a count");
    assert!(own["cycles"] == cold + 1 && cold <= 10, "{own}");
    // Of its wakes: on a busy machine releases were missed before it, which are later.
    assert_eq!(own["wakes"]["max"].as_f64(), Some(late_ns), "{own}");
    let reason = result["verdict"]["reasons"][0].as_str().expect("a reason").replace(' ', "");
    let expected = format!("endedbyrelease{cycle}of\"idle\"");
    assert!(reason.starts_with(&expected) && reason.contains("Z:laterthan1"), "{reason}");
    let xml = fs::read_to_string(&junit).expect("written");
    let late = case(&xml, "no release later than 1 ns (--stop-over)");
    assert!(late.contains("<failure message=\"ended by release"), "{late}");
    // Its samples say that they end early.
    let analysed = json(&run(["analyse", text(&samples), "--json", "-"]));
    assert_eq!(analysed["ended_by"], "recording");
    // The result beside them says why.
    let kept = dir.path("loop.json");
    fs::write(&kept, &out.stdout).expect("writable");
    let analysed = json(&run(["analyse", text(&kept), "--json", "-"]));
    assert_eq!(analysed["ended_by"], "late");
    // One that nothing is later than.
    let out = run(["measure", "periodic", "-d", "200ms", "--stop-over", "60s", "--json", "-"]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let result = json(&out);
    assert!(
        result["stop_over"]["stopped_by"].is_null() && !result["incomplete"].as_bool().unwrap()
    );
    let out = run(["measure", "periodic", "-d", "200ms", "--json", "-"]);
    assert!(json(&out).get("stop_over").is_none(), "it was not requested");
}

#[test]
fn a_check_that_a_late_release_ends_keeps_its_result_and_says_which() {
    let dir = Dir::new("stop-over-check");
    let results = dir.path("results");
    let over = ["-d", "300s", "--stop-over", "1ns", "--results", text(&results)];
    let out = run([&["check"], &over[..]].concat());
    assert_eq!(out.status.code(), Some(1), "{}", stderr(&out));
    let kept = results.join("latest");
    let result = json_file(&kept.join("result.json"));
    let (name, ..) = stopped(&result);
    assert_eq!(name, "idle", "the first block");
    let words = stdout(&out).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("incomplete: ended by release"), "{words}");
    assert!(
        words.contains(" of \"idle\" (its number in the samples, cold ones ")
            && words.contains("--stop-over"),
        "{words}"
    );
    let page = fs::read_to_string(kept.join("report.html")).expect("a page");
    assert!(page.contains("ended by release") && is_there(&kept.join("samples.punctual")));
    // With -q its line, and the reason beside it.
    let out = run([&["check", "-q"], &over[..]].concat());
    assert_eq!(stdout(&out).lines().count(), 1, "{}", stdout(&out));
    assert!(stderr(&out).contains("FAILS ended by release"), "{}", stderr(&out));
}

#[test]
fn a_run_that_a_late_release_ends_is_no_baseline_and_is_compared_by_what_it_has() {
    let dir = Dir::new("stop-over-baseline");
    let baselines = dir.path("baselines");
    let (before, results) = (["--baselines", text(&baselines)], dir.path("results"));
    let over = ["-d", "300s", "--stop-over", "1ns"];
    let check = ["check", "--results", text(&results)];
    for (command, name) in [(&["measure", "periodic"][..], "one"), (&check, "two")] {
        let kept = ["-d", "300ms", "--baseline", name];
        let out = run([command, &kept, &before].concat());
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        // What was to be kept is said, and the release decides: that is no error of the command.
        let out = run([command, &over, &["--baseline", "late"], &before].concat());
        assert_eq!(out.status.code(), Some(1), "{}", stderr(&out));
        let said = stderr(&out);
        assert!(said.contains("not saved as baseline late: incomplete: a release"), "{said}");
        assert!(!baselines.join("late.json").exists());
        // Held against one: so few releases decide nothing, and the late one fails it.
        let out = run([command, &over, &["--against", name, "--json", "-"], &before].concat());
        assert_eq!(out.status.code(), Some(1), "{}", stderr(&out));
        let result = json(&out);
        let reasons = result["verdict"]["reasons"].as_array().expect("reasons");
        assert_eq!(reasons.len(), 1, "{reasons:?}");
        assert_eq!(result["compare"]["pairs"][0]["verdict"], "undecided");
        assert!(result["verdict"]["open"][0].as_str().is_some(), "{}", result["verdict"]);
    }
}

fn is_there(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.len() > 0)
}
