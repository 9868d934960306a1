//! `measure noise`, for real: what must add up, whatever the machine does.

use std::fs;

use punctual_os::affinity;
use punctual_os::process::EndSignal;
use serde_json::Value;

use crate::{
    Dir, catches_interrupt, json, json_file, punctual, refused, run, signal, stderr, stdout, until,
};

/// Measured above the loops of other tests, which would keep it from running for longer than its
/// watchdog bears.
fn noise(args: &[&str]) -> Value {
    let out = run(["measure", "noise", "--priority", "98", "--json", "-"].iter().chain(args));
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    json(&out)
}

fn number(object: &Value, key: &str) -> u64 {
    object[key].as_u64().unwrap_or_else(|| panic!("{key} in {object}"))
}

#[test]
fn counts_lengths_and_overlaps_add_up_on_every_cpu() {
    let result = noise(&["--duration", "600ms"]);
    assert_eq!(result["experiment"], "measure noise");
    assert_eq!(result["incomplete"], false, "ended by {}", result["ended_by"]);
    let noise = &result["noise"];
    assert_eq!((number(noise, "threshold_ns"), number(noise, "windows")), (1_000, 7));
    // 0.3 s of spinning are no answer.
    let undecided = result["undecided"].as_str().expect("why");
    assert!(undecided.ends_with("measure longer: -d 2s"), "{undecided}");
    assert!(result["sentence"].is_null(), "{result}");
    let cpus = noise["cpus"].as_array().expect("CPUs");
    let mine: Vec<u64> = affinity::get(0).expect("own").iter().map(u64::from).collect();
    let measured: Vec<u64> = cpus.iter().map(|entry| number(entry, "cpu")).collect();
    assert!(mine.iter().all(|cpu| measured.contains(cpu)), "{mine:?} in {measured:?}");
    for (at, entry) in cpus.iter().enumerate() {
        let (gaps, lost, spun) =
            (number(entry, "gaps"), number(entry, "lost_ns"), number(entry, "spun_ns"));
        assert!(spun > 0 && lost <= spun, "CPU {at}: {lost} of {spun} ns");
        let counts = noise["lengths"].as_array().expect("rows").iter();
        let listed: u64 = counts.map(|row| row["counts"][at].as_u64().expect("a count")).sum();
        assert_eq!(listed + number(entry, "unlisted"), gaps);
        let buckets = entry["histogram"]["buckets"].as_array().expect("buckets").iter();
        let bucketed: u64 = buckets.map(|bucket| bucket[2].as_u64().expect("a count")).sum();
        assert_eq!(bucketed + number(&entry["histogram"], "overflow"), listed);
        if gaps > 0 {
            let worst = number(&entry["worst"], "length_ns");
            assert!(worst >= 1_000 && worst <= lost && worst * gaps >= lost, "{worst} {lost}");
            assert_eq!(entry["gap_ns"]["max"].as_f64(), Some(worst as f64));
        }
        assert!(entry["interrupts"].is_u64() && entry["steal_ns"].is_u64(), "CPU {at}");
        assert!(entry["read_ns"].as_f64().is_some_and(|ns| ns > 0.0 && ns < 1_000.0), "CPU {at}");
    }
    let once = &noise["at_once"];
    if cpus.len() == 1 {
        assert!(once.is_null(), "{once}");
    } else {
        let (gaps, elsewhere) =
            (number(&once["all"], "count"), number(&once["elsewhere"], "count"));
        let tick = once["tick"]["count"].as_u64().unwrap_or(0);
        assert_eq!(gaps, elsewhere + tick, "{once}");
        let least = cpus.iter().map(|entry| number(entry, "lost_ns")).min().expect("CPUs");
        assert!(number(&once["all"], "total_ns") <= least, "{once}");
    }
}

#[test]
fn a_load_and_a_policy_are_taken_and_the_page_fits() {
    let dir = Dir::new("noise");
    let file = dir.path("result.json");
    let args = ["measure", "noise", "--duration", "300ms", "--policy", "other", "--load", "cpu"];
    let out =
        run(args.iter().copied().chain(["--cpu", "0", "--json", file.to_str().expect("UTF-8")]));
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let page = stdout(&out);
    for words in ["Gaps of 1 µs or more", "SCHED_OTHER", "load cpu", "polygons/s"] {
        assert!(page.contains(words), "{words:?} in {page}");
    }
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    let result = json_file(&file);
    assert_eq!(result["noise"]["cpus"][0]["policy"], "SCHED_OTHER");
    assert_eq!(result["loads"][0]["unit"], "polygons/s");
    assert!(result["noise"]["at_once"].is_null(), "one CPU has nothing at once");
    let html = dir.path("page.html");
    let args = ["report", file.to_str().expect("UTF-8"), "-o", html.to_str().expect("UTF-8")];
    let out = run(args);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let html = fs::read_to_string(html).expect("written");
    assert!(html.contains("Gaps in a spin") && html.contains("Gaps of 1 µs or more"));
}

#[test]
fn its_sentence_comes_first_wherever_it_is_shown() {
    let dir = Dir::new("noise-sentence");
    let stored = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/results/kinds/noise.json");
    let html = dir.path("page.html");
    let out = run(["report", stored, "-o", html.to_str().expect("UTF-8")]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let html = fs::read_to_string(html).expect("written").replace('\u{a0}', " ");
    let at = |words: &str| html.find(words).unwrap_or_else(|| panic!("{words:?} in {html}"));
    assert!(at("CPU 0 lost ") < at("Gaps of 1"));
    let args = ["measure", "noise", "--duration", "300ms", "--cpu", "0", "--policy", "other"];
    let markdown = dir.path("page.md");
    let more = ["-q", "--markdown", markdown.to_str().expect("UTF-8")];
    let out = run(args.iter().chain(&more));
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let line = stdout(&out);
    assert!(line.starts_with("Undecided: no CPU was spun on for 1.0") && line.lines().count() == 1);
    let markdown = fs::read_to_string(markdown).expect("written");
    assert!(markdown.contains(line.trim_end()), "{markdown}");
    let page = stdout(&run(args));
    assert!(page.starts_with("Undecided: no CPU was spun on for "), "{page}");
}

#[test]
fn an_interrupt_keeps_what_there_is() {
    let dir = Dir::new("noise-interrupted");
    let file = dir.path("result.json");
    let mut command = punctual();
    command.args(["measure", "noise", "--duration", "1h", "--json"]).arg(&file);
    let mut child = command.stdout(std::process::Stdio::null()).spawn().expect("it starts");
    // The line of progress comes once it measures; here it is enough that signals are caught.
    until("signals to be caught", || catches_interrupt(&child));
    signal(&child, EndSignal::Interrupt);
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    let result = json_file(&file);
    assert_eq!(result["incomplete"], true);
    let undecided = result["undecided"].as_str().expect("why");
    assert!(undecided.starts_with("it ended before its time, "), "{undecided}");
    assert!(!result["noise"]["cpus"].as_array().expect("CPUs").is_empty());
}

#[test]
fn bad_input_is_refused_with_the_reason() {
    let with = |args: &[&str]| run(["measure", "noise"].iter().chain(args));
    refused(&with(&["--threshold", "10ns"]), &["--threshold 10 ns", "stamp", "4 times"]);
    refused(&with(&["--threshold", "0us"]), &["--threshold"]);
    refused(&with(&["--threshold", "5"]), &["--threshold", "unit"]);
    refused(&with(&["--duty", "0"]), &["--duty"]);
    refused(&with(&["--duty", "150%"]), &["--duty"]);
    refused(&with(&["--duration", "0s"]), &["--duration"]);
    refused(&with(&["--cpu", "8191"]), &["--cpu", "8191"]);
    refused(&with(&["--priority", "99"]), &["--priority", "98"]);
    refused(&with(&["--policy", "idle"]), &["idle", "fifo"]);
    refused(&with(&["--load", "all"]), &["--load", "one load"]);
    refused(&with(&["--load", "disco"]), &["disco"]);
}
