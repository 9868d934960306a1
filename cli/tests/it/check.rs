//! `punctual check`, for real, in a few seconds.

use std::fs;

use crate::support::{Dir, json_file, run, stderr, stdout};

#[test]
fn writes_a_result_and_samples_that_tell_the_same() {
    let dir = Dir::new("check");
    let results = dir.path("results");
    let results = results.to_str().expect("UTF-8");
    let out = run(["check", "--duration", "3s", "--results", results]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let page = stdout(&out);
    for line in ["lateness", "idle", "under load", "What it is good for", "Next steps"] {
        assert!(page.contains(line), "{line} in {page}");
    }
    let wide = page.lines().find(|line| line.chars().count() > 80 && !line.contains(results));
    assert_eq!(wide, None, "eighty columns, but for paths");
    let mut runs = fs::read_dir(results).expect("made").flatten();
    let made = runs.next().expect("one run").path();
    assert!(runs.next().is_none(), "one run only");
    let result = json_file(&made.join("result.json"));
    assert_eq!(result["experiment"], "check");
    let names: Vec<_> =
        result["runs"].as_array().expect("runs").iter().map(|run| run["name"].clone()).collect();
    assert_eq!(names, ["idle", "under load"]);
    assert!(!result["verdicts"].as_array().expect("verdicts").is_empty());
    assert!(result["recording"]["hot_ns"].as_f64().expect("measured") > 0.0);

    assert!(made.join("samples.punctual").is_file());
    let out = run(["analyse", made.to_str().expect("UTF-8"), "--json", "-"]);
    let again = crate::support::json(&out);
    assert_eq!(again["incomplete"], false);
    for (live, read) in result["runs"]
        .as_array()
        .into_iter()
        .flatten()
        .zip(again["runs"].as_array().into_iter().flatten())
    {
        for key in [
            "name",
            "cycles",
            "cold",
            "missed",
            "unrecorded",
            "lateness_ns",
            "interval_ns",
            "grid",
            "claims",
            "worst",
        ] {
            assert_eq!(live[key], read[key], "{key}");
        }
    }
}

#[test]
fn takes_facts_of_another_machine_and_says_so() {
    let machines = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/machines");
    let machine = fs::read_dir(machines)
        .expect("fixtures")
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().contains("arm64")))
        .expect("a machine written by hand");
    let out = run(["facts", "--root", machine.to_str().expect("UTF-8"), "--json", "-"]);
    let facts = crate::support::json(&out);
    assert_eq!(facts["preemption"]["value"], "PREEMPT_RT");
    let args =
        ["measure", "periodic", "--cpu", "0", "--duration", "100ms", "--json", "-", "--root"];
    let out = run(args.into_iter().chain([machine.to_str().expect("UTF-8")]));
    let result = crate::support::json(&out);
    assert_eq!(result["machine"]["preemption"]["value"], "PREEMPT_RT");
    assert!(result["warnings"].to_string().contains("the facts come from"));
}
