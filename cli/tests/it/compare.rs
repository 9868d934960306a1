//! `punctual compare`: what is told apart, what is said beside, what is refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use punctual_os::process::EndSignal;
use serde_json::{Value, json};

use crate::{
    Dir, catches_interrupt, json, json_file, only_result, punctual, refused, run, sample_file,
    signal, stderr, stdout, until,
};

/// One run of a sample file that is made here.
struct Made<'a> {
    name: &'a str,
    latenesses: Vec<i64>,
    phase_ns: u64,
}

impl<'a> Made<'a> {
    /// `n` cycles of 5 to 6 µs, of which one in `every` is 90 µs late, at scattered places.
    fn new(name: &'a str, n: u64, every: u64) -> Self {
        let mut state = n ^ every;
        let latenesses = (0..n)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let draw = state >> 33;
                if draw.is_multiple_of(every) { 90_000 } else { 5_000 + (draw % 1_000) as i64 }
            })
            .collect();
        Self { name, latenesses, phase_ns: 0 }
    }
}

/// Writes a sample file.
fn samples(path: &Path, started_at: &str, runs: &[Made<'_>]) -> String {
    samples_of(path, started_at, runs, 1_000_000)
}

/// Writes a sample file of loops of this period.
fn samples_of(path: &Path, started_at: &str, runs: &[Made<'_>], period_ns: u64) -> String {
    let described = |run: &Made<'_>| {
        json!({
            "name": run.name, "cpu": 0, "period_ns": period_ns, "phase_ns": run.phase_ns,
            "policy": "SCHED_FIFO", "priority": 90, "wait": "sleep", "load": []
        })
    };
    let info = json!({
        "tool": "punctual", "version": "0.1.0", "started_at": started_at,
        "runs": runs.iter().map(described).collect::<Vec<_>>()
    });
    let latenesses: Vec<&[i64]> = runs.iter().map(|run| &run.latenesses[..]).collect();
    sample_file(path, &info, &latenesses)
}

/// A page without its line ends.
fn flowing(page: &str) -> String {
    page.split_whitespace().collect::<Vec<_>>().join(" ")
}

const EARLIER: &str = "2026-11-21T20:01:00Z";
const LATER: &str = "2026-11-21T20:02:00Z";

#[test]
fn a_ratio_of_five_is_told_with_its_interval_and_what_differs() {
    let dir = Dir::new("compare-told");
    let a = samples(&dir.path("a.punctual"), EARLIER, &[Made::new("idle", 20_000, 500)]);
    let worse = Made { phase_ns: 300_000, ..Made::new("idle", 20_000, 100) };
    let b = samples(&dir.path("b.punctual"), LATER, &[worse, Made::new("cpu", 100, 50)]);
    let out = run(["compare", &a, &b]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let page = stdout(&out).replace('\u{a0}', " ");
    for words in [
        "idle: later than 100 µs, the deadline: A 0 of 20 000, B 0 of 20 000: none on either side",
        " times as often [",
        "; overall worse: later than",
        "the deadline is that of the question kept with each: a tenth of the period",
        "differs: phase: 0 s → 300 µs",
        "not compared, only in B: cpu",
        "one side was measured after the other",
        "are not compared: maxima",
        "together with a confidence of 95 % (Holm)",
    ] {
        assert!(flowing(&page).contains(words), "{words:?} in {page}");
    }
    let wide = page.lines().find(|line| line.chars().count() > 80 && !line.contains(&a[..8]));
    assert_eq!(wide, None, "eighty columns");

    let out = run(["compare", &a, &b, "--fail-if-worse", "--json", "-", "--threshold", "50us"]);
    assert_eq!(out.status.code(), Some(1), "{}", stderr(&out));
    let report = json(&out);
    let pair = &report["compare"]["pairs"][0];
    assert_eq!(
        (&pair["verdict"], &pair["a"], &pair["b"]),
        (&json!("worse"), &json!("A"), &json!("B"))
    );
    let rates = pair["runs"][0]["rates"].as_array().expect("rates");
    let rate = rates.iter().find(|rate| {
        rate["threshold_ns"].as_f64().is_some_and(|ns| (50_000.0..50_500.0).contains(&ns))
    });
    let rate = rate.expect("the threshold that was asked for");
    let number = |key: &str| rate[key].as_f64().expect("a number");
    let late = |every: u64| {
        let made = Made::new("idle", 20_000, every);
        made.latenesses.iter().filter(|&&ns| ns > 50_000).count() as f64
    };
    assert_eq!(number("exceedances_a"), late(500), "counts are exact");
    assert_eq!(number("exceedances_b"), late(100));
    assert!(number("lower") > 1.0 && number("lower") < number("ratio"));
    assert_eq!(run(["compare", &b, &a, "--fail-if-worse"]).status.code(), Some(0), "better");

    // In a line, with what fails beside it.
    let line = |args: &[&str], code: i32| {
        let out = run(["compare", &a, &b, "-q"].iter().chain(args));
        assert_eq!(out.status.code(), Some(code), "{out:?}");
        assert_eq!(stdout(&out), format!("B compared with A: worse ({b})\n"));
        stderr(&out)
    };
    assert_eq!(line(&[], 0), "");
    // Who says what an open comparison counts as has it judged.
    assert!(line(&["--undecided", "pass"], 1).contains("FAILS B against A"));
    let named = line(&["--fail-if-worse"], 1);
    assert!(named.contains("FAILS B against A: idle: later than"), "{named}");
    assert!(named.contains("; overall worse: later than"), "{named}");
    assert_eq!(named.lines().count(), 1, "{named}");
}

#[test]
fn results_without_samples_are_told_apart_by_how_several_scatter() {
    let dir = Dir::new("compare-counts");
    let counts = |name: &str, minute: usize, every: u64| {
        let samples_file = dir.path(&format!("{name}.punctual"));
        let started = format!("2026-11-21T20:{minute:02}:00Z");
        let made = Made::new("idle", 20_000 + minute as u64, every);
        let recorded = samples(&samples_file, &started, &[made]);
        let result = dir.path(&format!("{name}.json"));
        let out = run(["analyse", &recorded, "--json", crate::text(&result)]);
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        fs::remove_file(samples_file).expect("written");
        crate::text(&result).to_owned()
    };
    let side = |name: &str, first: usize, every: u64| -> Vec<String> {
        (0..3).map(|at| counts(&format!("{name}{at}"), first + 2 * at, every)).collect()
    };
    let (a, b) = (side("a", 1, 500), side("b", 2, 50));
    // One of each says nothing, and what it takes.
    let page = flowing(&stdout(&run(["compare", &a[0], &b[0]])));
    for words in [
        "undecided: keep samples (one result a side is enough), or give 3 results a side: without",
        "a0.json has counts alone, whose order is not known: keep samples",
        "give 3 results a side with 'punctual compare --a A1,A2,A3 --b B1,B2,B3'",
    ] {
        assert!(page.contains(words), "{words:?} in {page}");
    }
    for (judged, code) in [
        (&[][..], 0),
        (&["--fail-if-worse"][..], 3),
        (&["--undecided", "fail"][..], 1),
        (&["--undecided", "pass"][..], 0),
    ] {
        let out = run(["compare", &a[0], &b[0], "-q"].iter().chain(judged));
        assert_eq!(out.status.code(), Some(code), "{judged:?} {}", stderr(&out));
    }
    let out = run(["compare", "--a", &a.join(","), "--b", &b.join(","), "--fail-if-worse"]);
    assert_eq!(out.status.code(), Some(1), "{}", stderr(&out));
    let page = flowing(&stdout(&out));
    assert!(page.contains("; overall worse: later than"), "{page}");
    assert!(!page.contains("counts alone"), "{page}");
}

#[test]
fn samples_that_were_cut_off_do_not_take_the_place_of_the_counts_of_their_result() {
    let dir = Dir::new("compare-cut-off");
    let file = |name: &str, at: &str, made: &Made<'_>| {
        let [recorded, result] = ["punctual", "json"].map(|end| dir.path(&format!("{name}.{end}")));
        samples(&recorded, at, std::slice::from_ref(made));
        let out = run(["analyse", crate::text(&recorded), "--json", crate::text(&result)]);
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        (recorded, crate::text(&result).to_owned())
    };
    let (_, a) = file("a", EARLIER, &Made::new("idle", 20_000, 500));
    let (recorded, b) = file("b", LATER, &Made::new("idle", 20_001, 50));
    let compared = || {
        let out = run(["compare", &a, &b, "--json", "-"]);
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        json(&out)["compare"]["pairs"][0].clone()
    };
    let whole = compared();
    assert!(!whole["notes"].to_string().contains("are used"), "{whole}");
    let bytes = fs::read(&recorded).expect("written");
    // Inside the one block of its samples.
    fs::write(&recorded, &bytes[..bytes.len() / 2]).expect("writable");
    let cut = compared();
    let (run_of_whole, run_of_cut) = (&whole["runs"][0], &cut["runs"][0]);
    assert_eq!(run_of_cut["n_b"], 20_001, "{cut}");
    assert_eq!(run_of_cut["n_b"], run_of_whole["n_b"]);
    let notes = cut["notes"].to_string();
    for words in ["b.punctual was cut off and has 0 of the 20 001 releases of", "b.json are used"] {
        assert!(notes.contains(words), "{words:?} in {notes}");
    }
    // By name it is what it is.
    let page = flowing(&stdout(&run(["compare", &a, crate::text(&recorded)])));
    assert!(page.contains("b.punctual ended early"), "{page}");
    // One that ends as it should, and has fewer.
    samples(&recorded, LATER, &[Made::new("idle", 5_000, 50)]);
    let fewer = compared();
    assert_eq!(fewer["runs"][0]["n_b"], 20_001, "{fewer}");
    let notes = fewer["notes"].to_string();
    assert!(notes.contains("b.punctual has 5 000 of the 20 001 releases"), "{notes}");
}

/// 20 000 cycles, of which shares of a thousandth are later than 20 µs and later than 150 µs, at
/// scattered places.
fn in_two_places(some: u64, late: u64) -> Vec<i64> {
    let mut made = Made::new("", 20_000, u64::MAX).latenesses;
    for lateness in &mut made {
        let draw = (*lateness as u64 - 5_000) % 1_000;
        *lateness = match draw {
            draw if draw < late => 150_000,
            draw if draw < late + some => 20_000,
            _ => 5_000,
        };
    }
    made
}

/// The result of recorded runs with its samples beside it, while others had so much of its CPU.
fn analysed(dir: &Dir, name: &str, at: &str, runs: &[Made<'_>], share: f64) -> String {
    let [recorded, result] = ["punctual", "json"].map(|end| dir.path(&format!("{name}.{end}")));
    samples(&recorded, at, runs);
    let out = run(["analyse", crate::text(&recorded), "--json", crate::text(&result)]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let mut made = json_file(&result);
    for run in made["runs"].as_array_mut().expect("runs") {
        run["others"] = json!({ "share": share, "threads": [] });
    }
    fs::write(&result, made.to_string()).expect("writable");
    crate::text(&result).to_owned()
}

#[test]
fn a_directory_of_results_is_refused_with_their_names() {
    let dir = Dir::new("compare-directory");
    let results = dir.path("punctual-results");
    let inside = ["1", "2", "3", "4", "5", "latest"].map(|name| results.join(name));
    for (made, path) in inside.iter().enumerate() {
        fs::create_dir_all(path).expect("writable");
        fs::write(path.join("result.json"), "{}").expect("writable");
        let named = |names: &[usize]| -> Vec<String> {
            names.iter().map(|&at| inside[at].display().to_string()).collect()
        };
        let named = match made {
            0..4 => named(&(0..=made).collect::<Vec<_>>()),
            _ => [named(&[0, 1, 2]), vec!["2 more".to_owned()]].concat(),
        };
        let list = format!(": {}; name one of them, e.g. {}", named.join(", "), named[0]);
        let results = crate::text(&results);
        for command in [&["compare", results, results, "--anyway"][..], &["analyse", results]] {
            refused(&run(command.iter().copied()), &[results, "no result.json in it", &list]);
        }
    }
}

#[test]
fn what_is_better_does_not_hide_what_others_may_account_for() {
    let dir = Dir::new("compare-withheld");
    let made = |latenesses| [Made { name: "idle", latenesses, phase_ns: 0 }];
    let a = analysed(&dir, "a", EARLIER, &made(in_two_places(200, 5)), 0.0);
    let b = analysed(&dir, "b", LATER, &made(in_two_places(50, 30)), 0.94);
    // Better and worse by the tests; others may be why it is worse.
    for (judged, code) in [
        (&[][..], 0),
        (&["--fail-if-worse"][..], 3),
        (&["--undecided", "fail"][..], 1),
        (&["--undecided", "pass"][..], 0),
    ] {
        let out = run(["compare", &a, &b, "-q"].iter().chain(judged));
        assert_eq!(out.status.code(), Some(code), "{judged:?} {}", stderr(&out));
        assert_eq!(stdout(&out), format!("B compared with A: undecided ({b})\n"));
        let words = "idle: undecided: measure B again with nothing else on its CPU, or name it as \
                     the change that you compare with --changed others; later than 100";
        assert_eq!(stderr(&out).contains(words), !judged.is_empty(), "{}", stderr(&out));
    }
    let result = dir.path("compared.json");
    let forms = ["--json", crate::text(&result), "--junit", "-", "--fail-if-worse"];
    let out = run(["compare", &a, &b].iter().chain(&forms));
    assert_eq!(out.status.code(), Some(3), "{}", stderr(&out));
    assert!(stdout(&out).contains("<error message=\"idle: undecided: "), "{}", stdout(&out));
    let pair = json_file(&result)["compare"]["pairs"][0].take();
    let compared = &pair["runs"][0];
    let verdicts = [&pair["verdict"], &compared["verdict"], &compared["withheld"]];
    assert_eq!(verdicts, [&json!("undecided"), &json!("undecided"), &json!("mixed")]);
    // A test has the word of its row.
    let rates = compared["rates"].as_array().expect("rates");
    assert!(rates.iter().all(|rate| rate["verdict"] != "worse"), "{rates:?}");
    assert!(rates.iter().any(|rate| rate["withheld"] == "worse"), "{rates:?}");
    let statement = compared["statement"].as_str().expect("a sentence");
    for words in ["; better, later than ", ", but undecided whether worse, at the deadline: "] {
        assert!(statement.contains(words), "{words:?} in {statement}");
    }
}

#[test]
fn what_else_ran_may_be_the_change_that_is_compared() {
    let dir = Dir::new("compare-changed");
    let made = |latenesses| [Made { name: "idle", latenesses, phase_ns: 0 }];
    // A program that took most of the CPU is gone.
    let a = analysed(&dir, "a", EARLIER, &made(in_two_places(200, 30)), 0.94);
    let b = analysed(&dir, "b", LATER, &made(in_two_places(50, 5)), 0.0);
    let out = run(["compare", &a, &b, "--fail-if-worse"]);
    assert_eq!(out.status.code(), Some(3), "{}", stderr(&out));
    assert!(flowing(&stdout(&out)).contains("compare with --changed others"), "{}", stdout(&out));
    let changed = ["--changed", "others", "--fail-if-worse"];
    let out = run(["compare", &a, &b].iter().chain(&changed));
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let page = flowing(&stdout(&out).replace('\u{a0}', " "));
    for words in [
        "not idle: A: others used at least 94 % of CPU 0 (the change that is compared)",
        "; overall better; A was not idle, which is the change",
    ] {
        assert!(page.contains(words), "{words:?} in {page}");
    }
    let out = run(["compare", &a, &b, "--json", "-"].iter().chain(&changed));
    let compared = json(&out)["compare"].take();
    assert_eq!(
        (&compared["pairs"][0]["verdict"], &compared["changed"]),
        (&json!("better"), &json!(["others"]))
    );
    assert_eq!(compared["pairs"][0]["runs"][0]["withheld"], Value::Null);
    let out = run(["compare", &b, &b, "--anyway", "--changed", "loads,others"]);
    let page = flowing(&stdout(&out));
    for words in [
        "note: --changed loads: the loads of both sides ran alike",
        "note: --changed others: others had as much of the CPU on both sides, to within 5 % of it",
    ] {
        assert!(page.contains(words), "{words:?} in {page}");
    }
    refused(&run(["compare", &a, &b, "--changed", "hog"]), &["hog", "loads, others, period"]);
}

#[test]
fn what_else_ran_is_unknown_of_samples() {
    let dir = Dir::new("compare-unknown");
    let made = |latenesses| [Made { name: "idle", latenesses, phase_ns: 0 }];
    let a = samples(&dir.path("a.punctual"), EARLIER, &made(in_two_places(50, 5)));
    let b = samples(&dir.path("b.punctual"), LATER, &made(in_two_places(50, 300)));
    let page = flowing(&stdout(&run(["compare", &a, &b])));
    for words in [
        "; what else ran on the CPUs of A and B is unknown, and may account for that",
        "note: what else ran on the CPUs of A and B is unknown, and a difference may be of that; \
         samples do not hold it: give the result in JSON that was written with them",
    ] {
        assert!(page.contains(words), "{words:?} in {page}");
    }
    let changed = ["compare", &a, &b, "--changed", "others", "--json", "-"];
    let pair = json(&run(changed))["compare"]["pairs"][0].take();
    let notes = pair["notes"].to_string();
    assert!(notes.contains("unknown whether it differs"), "{notes}");
    assert!(!notes.contains("others had"), "{notes}");
    assert_eq!(pair["runs"][0]["disturbance"]["unknown"], json!(["a", "b"]));
}

#[test]
fn loops_of_different_periods_are_judged_only_where_that_is_the_change() {
    let dir = Dir::new("compare-period");
    let made = |latenesses| [Made { name: "idle", latenesses, phase_ns: 0 }];
    let a = samples(&dir.path("a.punctual"), EARLIER, &made(in_two_places(50, 5)));
    let b = dir.path("b.punctual");
    let b = samples_of(&b, LATER, &made(in_two_places(50, 300)), 2_000_000);
    let out = run(["compare", &a, &b, "--fail-if-worse"]);
    assert_eq!(out.status.code(), Some(3), "{}", stderr(&out));
    let page = flowing(&stdout(&out).replace('\u{a0}', " "));
    for words in [
        "differs: period: 1 ms → 2 ms",
        "idle: undecided: measure both with the same --period, or name it as the change that you \
         compare with --changed period: the loop of",
        "note: no deadline of 'idle' is compared, as the periods of its loops differ",
    ] {
        assert!(page.contains(words), "{words:?} in {page}");
    }
    assert!(!page.contains("the deadline: A"), "{page}");
    let out = run(["compare", &a, &b, "--fail-if-worse", "--changed", "period"]);
    assert_eq!(out.status.code(), Some(1), "{}", stderr(&out));
    let page = flowing(&stdout(&out).replace('\u{a0}', " "));
    assert!(page.contains("1 ms → 2 ms (the change that is compared)"), "{page}");
    let page = flowing(&stdout(&run(["compare", &a, &a, "--anyway", "--changed", "period"])));
    assert!(page.contains("the loops of both sides have the same period"), "{page}");
}

#[test]
fn missed_releases_that_nobody_recorded_are_unknown() {
    let dir = Dir::new("compare-missed");
    let histogram =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/peers/cyclictest/histogram.json");
    let [a, b] = ["a.json", "b.json"].map(|name| {
        let result = dir.path(name);
        let out = run(["analyse", histogram, "--json", crate::text(&result), "-q"]);
        assert_ne!(out.status.code(), Some(2), "{}", stderr(&out));
        crate::text(&result).to_owned()
    });
    let page = flowing(&stdout(&run(["compare", &a, &b, "--anyway"])));
    assert!(page.contains(", missed unknown and unknown; the largest"), "{page}");
    let own = samples(&dir.path("own.punctual"), EARLIER, &[Made::new("thread 0", 20_000, 500)]);
    let page = flowing(&stdout(&run(["compare", &a, &own, "--anyway"])));
    assert!(page.contains(", missed unknown and 0; the largest"), "{page}");
}

#[test]
fn a_deadline_that_both_sides_counted_is_compared_as_it_was_counted() {
    let dir = Dir::new("compare-exact");
    // One in a hundred of B lies behind the deadline and before the end of its bucket.
    let made = |latenesses| [Made { name: "idle", latenesses, phase_ns: 0 }];
    let late = |every: usize| -> Vec<i64> {
        let beside =
            |k: usize| if k % every == every - 1 { 100_200 } else { 5_000 + (k % 700) as i64 };
        (0..20_000).map(|k| if k % 400 == 0 { 150_000 } else { beside(k) }).collect()
    };
    let (a, b) = (
        samples(&dir.path("a.punctual"), EARLIER, &made(late(usize::MAX))),
        samples(&dir.path("b.punctual"), LATER, &made(late(100))),
    );
    // Samples, and results of them without the samples.
    let counts = ["a", "b"].map(|name| {
        let (from, to) = (dir.path(&format!("{name}.punctual")), dir.path(&format!("{name}.json")));
        run(["analyse", crate::text(&from), "--json", crate::text(&to)]);
        crate::text(&to).to_owned()
    });
    for [a, b] in [[&a, &b], [&counts[0], &counts[1]]] {
        let out = run(["compare", a, b, "--anyway", "--json", "-"]);
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        let compared = json(&out)["compare"]["pairs"][0]["runs"][0].take();
        let statement = compared["statement"].as_str().expect("words").replace('\u{a0}', " ");
        let words = "later than 100 µs, the deadline: A 50 of 20 000, B 250 of 20 000: more, ";
        assert!(statement.contains(words), "{statement}");
    }
}

#[test]
fn page_and_json_have_one_verdict_where_one_run_is_better_and_another_open() {
    let dir = Dir::new("compare-one-verdict");
    let runs = |n, every| [Made::new("idle", n, every), Made::new("cpu", 300, 50)];
    let a = samples(&dir.path("a.punctual"), EARLIER, &runs(20_000, 100));
    let b = samples(&dir.path("b.punctual"), LATER, &runs(20_001, 1_000));
    let out = run(["compare", &a, &b, "--json", "-", "--fail-if-worse"]);
    assert_eq!(out.status.code(), Some(3), "{}", stderr(&out));
    let pair = json(&out)["compare"]["pairs"][0].take();
    let verdicts = [&pair["runs"][0]["verdict"], &pair["runs"][1]["verdict"], &pair["verdict"]];
    assert_eq!(verdicts, [&json!("better"), &json!("undecided"), &json!("undecided")]);
    let line = stdout(&run(["compare", &a, &b, "-q"]));
    assert_eq!(line, format!("B compared with A: undecided ({b})\n"));
}

#[test]
fn a_run_that_is_interrupted_is_no_baseline_and_ends_as_any_that_is() {
    let dir = Dir::new("baseline-interrupted");
    let (baselines, results) = (dir.path("baselines"), dir.path("results"));
    let check = ["check", "--results", crate::text(&results)];
    for (command, how, number, words) in [
        (&check[..], EndSignal::Interrupt, 130, "interrupted (SIGINT)"),
        (&["measure", "periodic"], EndSignal::Terminate, 143, "ended by SIGTERM"),
    ] {
        let kept = ["-q", "-d", "300s", "--baseline", "cut", "--baselines"];
        let mut measuring = punctual();
        measuring.args(command).args(kept).arg(&baselines);
        let measuring = measuring.stdout(Stdio::null()).stderr(Stdio::piped());
        let measuring = measuring.spawn().expect("it starts");
        until("its handlers", || catches_interrupt(&measuring));
        signal(&measuring, how);
        let out = measuring.wait_with_output().expect("it ends");
        let said = stderr(&out);
        assert_eq!(out.status.code(), Some(number), "{said}");
        assert!(said.contains("not saved as baseline cut: incomplete: "), "{said}");
        assert!(said.contains(words), "{said}");
        assert!(!baselines.join("cut.json").exists());
    }
}

#[test]
fn a_baseline_of_root_holds_for_whoever_may_read_less_of_the_machine() {
    let dir = Dir::new("baseline-rights");
    let (baselines, file) = baseline(&dir);
    let mut kept = json_file(&file);
    let hypervisor = kept["recorded"]["machine"]["virtualization"].clone();
    let name = hypervisor["value"].as_str().unwrap_or("unknown hypervisor").to_owned();
    let (short, _) = name.split_once(" (").unwrap_or((&name, ""));
    for same in [short.to_owned(), format!("{short} (firecracker)")] {
        kept["recorded"]["machine"]["virtualization"] = json!({ "value": same, "origin": "test" });
        // A policy is what such a user is refused, and is named.
        kept["recorded"]["runs"][0]["setup"]["policy"] = json!("SCHED_RR");
        fs::write(&file, kept.to_string()).expect("writable");
        let out = measure(&baselines, &["--against", "before", "--undecided", "pass"]);
        assert!(!stderr(&out).contains("another machine"), "{same}: {}", stderr(&out));
        let page = flowing(&stdout(&out));
        assert!(page.contains("differs: policy: SCHED_RR → SCHED_"), "{page}");
        assert!(!page.contains("differs: virtualization"), "{page}");
    }
    let other = if short == "none" { "kvm" } else { "none" };
    kept["recorded"]["machine"]["virtualization"] = json!({ "value": other, "origin": "test" });
    fs::write(&file, kept.to_string()).expect("writable");
    let words = ["another machine", &format!("virtualization was {other}")];
    refused(&measure(&baselines, &["--against", "before"]), &words);
}

/// The result of a file of latenesses, imported; one in `every` is late.
fn imported(dir: &Dir, name: &str, every: u64) -> String {
    let (csv, result) = (format!("{name}.csv"), dir.path(&format!("{name}.json")));
    let lines = Made::new("", 5_000, every).latenesses;
    let lines: String = lines.iter().map(|ns| format!("{ns}\n")).collect();
    fs::write(dir.path(&csv), lines).expect("writable");
    // A run has the name that its file was given by.
    let args = ["analyse", &csv, "--column", "lateness:ns", "--period", "1ms", "--json"];
    let out = punctual().current_dir(&dir.0).args(args).arg(&result).output().expect("it starts");
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    crate::text(&result).to_owned()
}

#[test]
fn imports_of_one_run_each_are_compared_whatever_their_files_are_called() {
    let dir = Dir::new("compare-imports");
    let [a1, a2, a3, b1, b2, b3] =
        [("a1", 500), ("a2", 490), ("a3", 480), ("b1", 50), ("b2", 49), ("b3", 48)]
            .map(|(name, every)| imported(&dir, name, every));
    let compared = |args: &[&str]| {
        let out = run(["compare", "--json", "-"].iter().chain(args));
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        json(&out)["compare"]["pairs"].clone()
    };
    let pair = compared(&[&a1, &b1])[0].take();
    assert_eq!(pair["runs"][0]["name"], "a1.csv and b1.csv", "{pair}");
    assert_eq!((&pair["only_in_a"], &pair["only_in_b"]), (&json!([]), &json!([])));
    // Several: one name, and a note of the others.
    let (a, b) = ([&a1[..], &a2, &a3].join(","), [&b1[..], &b2, &b3].join(","));
    let pair = compared(&["--a", &a, "--b", &b])[0].take();
    assert_eq!((&pair["runs"][0]["name"], &pair["verdict"]), (&json!("a1.csv"), &json!("worse")));
    assert_eq!(pair["runs"][0]["n_a"], 15_000);
    let notes = pair["notes"].to_string();
    let words = "A has 'a1.csv', 'a2.csv', 'a3.csv'; B has 'b1.csv', 'b2.csv', 'b3.csv'";
    assert!(notes.contains(words), "{notes}");
    let three = compared(&[&a1, &b1, &b2]);
    assert!(three[1]["notes"].to_string().contains("A has 'a1.csv'; C has 'b2.csv'"), "{three}");
    // What this program measured keeps its names, beside an import too.
    let own = samples(&dir.path("own.punctual"), EARLIER, &[Made::new("idle", 2_000, 300)]);
    let words = "no run with the same name: the first has 'a1.csv'; the second has 'idle'; \
                 'punctual compare A B --anyway' compares them";
    refused(&run(["compare", &a1, &own]), &[words]);
}

#[test]
fn a_page_of_a_run_and_what_it_was_held_against_compares_them_once() {
    let dir = Dir::new("compared-once");
    let baselines = dir.path("baselines");
    let [a, b, c, page] = ["a.json", "b.json", "c.json", "page.html"]
        .map(|name| crate::text(&dir.path(name)).to_owned());
    for more in [["--baseline", "before", &a], ["--against", "before", &b]] {
        let [option, name, json] = more;
        let args = [option, name, "--undecided", "pass", "--json", json];
        let out = measure(crate::text(&baselines), &args);
        assert!(Path::new(json).is_file(), "{}", stderr(&out));
    }
    let out = measure(crate::text(&baselines), &["--json", &c]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let compared = |first: &str, second: &str| {
        let out = run(["report", first, second, "-o", &page]);
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        let html = fs::read_to_string(&page).expect("written");
        let section = html.split_once("id=\"compared\"").expect("a comparison").1;
        let section = section.split_once("</section>").map_or(section, |(own, _)| own).to_owned();
        section.matches(" compared with ").count()
    };
    assert_eq!((compared(&a, &b), compared(&b, &a)), (1, 1));
    // With another run it is two comparisons.
    assert_eq!(compared(&c, &b), 2);
}

#[test]
fn recorded_data_are_held_against_a_baseline() {
    let dir = Dir::new("baseline-recorded");
    let baselines = dir.path("baselines").to_str().expect("UTF-8").to_owned();
    let (recorded, result) = (dir.path("run.punctual"), dir.path("run.json"));
    let (recorded, result) = (crate::text(&recorded), crate::text(&result));
    let kept = ["--baseline", "before", "--samples", recorded, "--json", result];
    let out = measure(&baselines, &kept);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let file = dir.path("baselines").join("before.json");
    let analyse = |args: &[&str]| {
        let against = ["--against", "before", "--baselines", &baselines];
        run(["analyse"].iter().chain(args).chain(&against))
    };
    // With itself: the same counts.
    let out = analyse(&[recorded, "--undecided", "pass", "--json", "-", "--deadline", "300s"]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let same = json(&out)["compare"]["pairs"][0]["runs"][0].clone();
    assert_eq!((&same["verdict"], &same["n_a"]), (&json!("undecided"), &same["n_b"]), "{same}");
    let tested = same["rates"].as_array().expect("rates").last().expect("the deadline").clone();
    assert!(tested["threshold_ns"].as_f64() >= Some(300e9), "{tested}");
    // Everything at one nanosecond: no recording is as good as that.
    move_to(&file, 2);
    let out = analyse(&[recorded, "-q"]);
    assert_eq!(out.status.code(), Some(1), "{}", stderr(&out));
    assert!(stderr(&out).contains("FAILS against before: idle: later than 100 µs, the deadline"));
    let page = stdout(&analyse(&[recorded]));
    assert!(page.contains("this run compared with baseline before: worse"), "{page}");
    // With its samples beside it a result is as good as they are.
    let out = analyse(&[result, "-q"]);
    assert_eq!(out.status.code(), Some(1), "{}", stderr(&out));
    // One that has its histogram alone decides nothing, and says what would.
    let alone = dir.path("alone.json");
    fs::copy(result, &alone).expect("written");
    let out = analyse(&[crate::text(&alone), "-v"]);
    assert_eq!(out.status.code(), Some(3), "{}", stderr(&out));
    assert!(flowing(&stdout(&out)).contains("alone.json has counts alone"), "{}", stdout(&out));
    // What is no run of this program, or of another machine, is refused.
    let csv = dir.path("loop.csv");
    fs::write(&csv, "lateness\n5\n").expect("writable");
    let out = analyse(&[crate::text(&csv), "--column", "lateness:us"]);
    refused(&out, &["--against takes a result or a sample file of punctual"]);
    let mut kept = json_file(&file);
    kept["recorded"]["machine"]["cpu_model"]["value"] = json!("another");
    fs::write(&file, kept.to_string()).expect("writable");
    refused(&analyse(&[recorded]), &["another machine", "cpu_model was another"]);
    // A baseline is no result, and says how it is used.
    let file = crate::text(&file).to_owned();
    for command in [["compare", &file, recorded], ["compare", recorded, &file]] {
        refused(&run(command), &["before.json", "this is a baseline", "--against before"]);
    }
    refused(&run(["analyse", &file]), &["this is a baseline", "analyse RESULT --against before"]);
}

#[test]
fn where_nothing_can_be_told_it_says_what_it_would_take() {
    let dir = Dir::new("compare-untold");
    let a = samples(&dir.path("a.punctual"), EARLIER, &[Made::new("idle", 10_000, 300)]);
    let b = samples(&dir.path("b.punctual"), LATER, &[Made::new("idle", 10_001, 300)]);
    let out = run(["compare", &a, &b]);
    let page = flowing(&stdout(&out));
    assert!(page.contains("; overall no significant difference: twice as often "), "{page}");
    assert!(page.contains("; run both sides about "), "{page}");
    assert!(page.contains("[0.51, 2.08] undecided"), "it may be twice as often: {page}");
    let few = "p99.9 not tested: 10 of 10 000 releases lie beyond it; 20 are needed on each side";
    assert!(page.contains(few), "{page}");
    assert!(
        page.contains(" of 'idle' each), in turn, to tell twice as often later than"),
        "{page}"
    );
    assert_eq!(run(["compare", &a, &b, "--fail-if-worse"]).status.code(), Some(0));
}

#[test]
fn several_results_a_side_measured_in_turn() {
    let dir = Dir::new("compare-turns");
    let file = |name: &str, minute: u32, n: u64, every: u64| {
        let at = format!("2026-11-21T20:{minute:02}:00Z");
        samples(&dir.path(name), &at, &[Made::new("idle", n, every)])
    };
    let a = [file("a1", 0, 20_000, 400), file("a2", 2, 20_001, 400), file("a3", 4, 20_002, 400)];
    let b = [file("b1", 1, 20_003, 90), file("b2", 3, 20_004, 90), file("b3", 5, 20_005, 90)];
    let out = run(["compare", "--a", &a.join(","), "--b", &b.join(","), "--json", "-"]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let report = json(&out);
    let pair = &report["compare"]["pairs"][0];
    assert_eq!(pair["verdict"], "worse");
    assert_eq!(pair["runs"][0]["n_a"], 60_003);
    assert!(!pair["notes"].to_string().contains("after the other"), "{}", pair["notes"]);
    // Three against the first one: two pairs.
    let out = run(["compare", &a[0], &a[1], &b[0], "--json", "-"]);
    let pairs = json(&out)["compare"]["pairs"].as_array().expect("pairs").len();
    assert_eq!(pairs, 2);
}

#[test]
fn what_cannot_be_compared_is_refused_with_the_reason() {
    let dir = Dir::new("compare-refused");
    let a = samples(&dir.path("a.punctual"), EARLIER, &[Made::new("idle", 2_000, 300)]);
    let another = samples(&dir.path("o.punctual"), LATER, &[Made::new("cpu", 2_001, 300)]);
    let empty = samples(&dir.path("e.punctual"), LATER, &[Made::new("idle", 0, 1)]);
    refused(&run(["compare", &a]), &["at least two results"]);
    for side in ["--a", "--b"] {
        refused(&run(["compare", &a, side, &another]), &["cannot be used with", side]);
    }
    refused(&run(["compare", &a, "/nonexistent"]), &["cannot read /nonexistent"]);
    refused(&run(["compare", &a, &a]), &["a.punctual", "given twice"]);
    let copy = dir.path("copy.punctual");
    fs::copy(&a, &copy).expect("writable");
    let copy = copy.to_str().expect("UTF-8");
    refused(&run(["compare", &a, copy]), &["contain the same recording"]);
    let same = run(["compare", &a, copy, "--anyway"]);
    assert!(stdout(&same).contains("no significant difference"), "{}", stderr(&same));
    refused(
        &run(["compare", &a, &another]),
        &["no run with the same name: the first has 'idle'; the second has 'cpu'"],
    );
    assert!(
        stdout(&run(["compare", &a, &another, "--anyway"])).contains("differs: run: idle → cpu")
    );
    let out = run(["compare", &a, &empty]);
    assert!(stdout(&out).contains("a run has no cycles"), "{}", stderr(&out));
    let directory = dir.0.to_str().expect("UTF-8");
    refused(&run(["compare", &a, directory]), &["result.json"]);
    refused(&run(["compare", &a, &another, "--json", &a]), &["would overwrite an input"]);
    refused(&run(["compare", &a, &another, "--threshold", "50"]), &["--threshold"]);
    let newer = dir.path("newer.json");
    fs::write(&newer, r#"{"schema":3,"tool":"punctual"}"#).expect("writable");
    refused(&run(["compare", &a, newer.to_str().expect("UTF-8")]), &["newer.json", "schema 3"]);
    let cut = dir.path("damaged.punctual");
    let mut bytes = fs::read(&a).expect("readable");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&cut, bytes).expect("writable");
    refused(&run(["compare", &a, cut.to_str().expect("UTF-8")]), &["damaged at byte"]);
    let made = std::process::Command::new("mkfifo").arg(dir.path("fifo")).status();
    if made.is_ok_and(|status| status.success()) {
        let fifo = dir.path("fifo");
        refused(&run(["compare", &a, fifo.to_str().expect("UTF-8")]), &["fifo"]);
    }
}

#[test]
fn a_hostile_name_does_not_reach_the_terminal() {
    let dir = Dir::new("compare-hostile");
    let name = "\u{1b}[2J\u{7}idle";
    let a = samples(&dir.path("a.punctual"), EARLIER, &[Made::new(name, 2_000, 300)]);
    let b = samples(&dir.path("b.punctual"), LATER, &[Made::new(name, 2_001, 300)]);
    let out = run(["compare", &a, &b]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    assert!(!stdout(&out).contains('\u{1b}') && stdout(&out).contains("\\u{1b}[2J"));
}

#[test]
fn hard_spaces_in_the_names_of_earlier_results_are_spaces() {
    let dir = Dir::new("compare-spaces");
    let made = |name: &str, at: &str, run: &str, n: u64| {
        samples(&dir.path(name), at, &[Made::new(run, n, 300)])
    };
    let a = made("a.punctual", EARLIER, "CPU 1, 25\u{a0}µs", 2_000);
    let b = made("b.punctual", LATER, "CPU 1, 25 µs", 2_001);
    for pair in [[&a, &b], [&b, &a]] {
        let out = run(["compare", pair[0], pair[1], "--json", "-"]);
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        let compared = json(&out)["compare"]["pairs"][0].take();
        assert_eq!(compared["runs"][0]["name"], "CPU 1, 25 µs");
        assert_eq!(compared["only_in_a"], json!([]), "{compared}");
    }
    let (baselines, file) = baseline(&dir);
    let mut kept = json_file(&file);
    kept["recorded"]["runs"][0]["name"] = json!("id\u{a0}le");
    fs::write(&file, kept.to_string()).expect("writable");
    let out = measure(&baselines, &["--against", "before"]);
    refused(&out, &["its runs are 'id le', not 'idle'"]);
}

/// A measured run kept as a baseline.
fn baseline(dir: &Dir) -> (String, PathBuf) {
    let baselines = dir.path("baselines").to_str().expect("UTF-8").to_owned();
    let out = measure(&baselines, &["--baseline", "before"]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let file = dir.path("baselines").join("before.json");
    assert!(file.is_file(), "{}", stderr(&out));
    (baselines, file)
}

fn measure(baselines: &str, more: &[&str]) -> std::process::Output {
    let mut command = punctual();
    command.args(["measure", "periodic", "--duration", "1500ms", "--baselines", baselines]);
    command.args(more).output().expect("the program starts")
}

/// All counts of a baseline moved to one cell, and its quantiles left to them. Others had all of
/// its CPU where that is good, and none where it is bad, so that no verdict is theirs.
fn move_to(file: &Path, cell: u16) {
    let mut kept = json_file(file);
    let runs = kept["recorded"]["runs"].as_array_mut().expect("runs");
    for run in runs.iter_mut() {
        run["lateness_ns"] = Value::Null;
        let is_good = cell < 100;
        run["others"] = if is_good { json!({ "share": 2.0, "threads": [] }) } else { Value::Null };
    }
    for chunk in runs
        .iter_mut()
        .flat_map(|run| run["parts"].as_array_mut().expect("parts"))
        .flat_map(|part| part["chunks"].as_array_mut().expect("chunks"))
    {
        let count: u64 =
            chunk.as_array().expect("cells").iter().filter_map(|c| c[1].as_u64()).sum();
        *chunk = json!([[cell, count]]);
    }
    fs::write(file, kept.to_string()).expect("writable");
}

/// Keeps the counts of a baseline, and not the order of its cycles.
fn forget_order(file: &Path) {
    let mut kept = json_file(file);
    let runs = kept["recorded"]["runs"].as_array_mut().expect("runs");
    for part in runs.iter_mut().flat_map(|run| run["parts"].as_array_mut().expect("parts")) {
        part["ordered"] = json!(false);
    }
    fs::write(file, kept.to_string()).expect("writable");
}

#[test]
fn a_baseline_is_kept_listed_held_against_and_removed() {
    let dir = Dir::new("baseline-life");
    let (baselines, file) = baseline(&dir);
    let size = fs::metadata(&file).expect("there").len();
    assert!(size < 300_000, "{size} bytes");
    refused(
        &measure(&baselines, &["--baseline", "before"]),
        &["the baseline exists already", "--force"],
    );
    let list = run(["baseline", "list", "--baselines", &baselines]);
    assert!(stdout(&list).contains("before"), "{}", stdout(&list));
    let shown = run(["baseline", "show", "before", "--baselines", &baselines]);
    assert!(stdout(&shown).contains("cpu_model"), "{}", stdout(&shown));

    // Everything at one nanosecond: no machine is as good as that.
    move_to(&file, 2);
    let out = measure(&baselines, &["--against", "before", "--json", "-"]);
    assert_eq!(out.status.code(), Some(1), "{}", stderr(&out));
    let report = json(&out);
    assert_eq!(report["compare"]["pairs"][0]["verdict"], "worse");
    let reasons = report["verdict"]["reasons"].to_string();
    assert!(reasons.contains("against before: idle: later than 100 µs, the deadline"), "{reasons}");
    assert!(reasons.contains("; overall worse"), "{reasons}");
    let page = stdout(&measure(&baselines, &["--against", "before"])).replace('\u{a0}', " ");
    assert!(
        page.contains("not idle: baseline before: others used at least 200 % of CPU "),
        "{page}"
    );
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("against before: one run compared with one: a drift"), "{warnings}");
    let out = measure(&baselines, &["--against", "before", "-q"]);
    assert_eq!((out.status.code(), stdout(&out).lines().count()), (Some(1), 1), "{out:?}");
    let fails: Vec<_> =
        stderr(&out).lines().filter(|line| line.contains("FAILS")).map(str::to_owned).collect();
    assert_eq!(fails.len(), 1, "{fails:?}");
    assert!(fails[0].contains("FAILS against before: idle: later than 100 µs"), "{out:?}");
    let out = measure(&baselines, &["--against", "before", "--undecided", "maybe"]);
    refused(&out, &["--undecided", "pass, fail"]);
    // Everything later than half an hour: any machine is better, and another kernel is said.
    move_to(&file, 4_000);
    let mut kept = json_file(&file);
    kept["recorded"]["machine"]["kernel"] = json!({ "value": "6.1.0-old", "origin": "test" });
    fs::write(&file, kept.to_string()).expect("writable");
    let out = measure(&baselines, &["--against", "before"]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    assert!(stdout(&out).contains("differs: kernel: 6.1.0-old →"), "{}", stdout(&out));
    assert!(stdout(&out).contains("compared with baseline before: better"), "{}", stdout(&out));
    // A gate that holds is no silent one.
    let out = measure(&baselines, &["--against", "before", "-q"]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    assert!(stderr(&out).contains("compared with baseline before: better"), "{}", stderr(&out));
    // Counts whose order is not known decide nothing, whatever they are.
    forget_order(&file);
    let undecided = ["--against", "before", "-q"];
    for (counts_as, code, word) in [
        (&[][..], 3, "OPEN"),
        (&["--undecided", "pass"][..], 0, "OPEN"),
        (&["--undecided", "fail"][..], 1, "FAILS"),
    ] {
        let out = measure(&baselines, &[&undecided[..], counts_as].concat());
        assert_eq!(out.status.code(), Some(code), "{}", stderr(&out));
        // What to do is said first.
        let why = format!("{word} against before: idle: undecided: keep samples (");
        let named = stderr(&out);
        assert!(named.contains(&why) && named.contains("; later than 100 µs, the dead"), "{named}");
    }

    let out = measure(&baselines, &["--baseline", "before", "--force"]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let out = run(["baseline", "remove", "before", "--baselines", &baselines]);
    assert_eq!((out.status.code(), file.exists()), (Some(0), false));
    refused(&measure(&baselines, &["--against", "before"]), &["there is no baseline before"]);
}

#[test]
fn a_baseline_is_held_against_at_the_deadline_and_at_thresholds() {
    let dir = Dir::new("baseline-deadline");
    let (baselines, _) = baseline(&dir);
    let tested_ns = |more: &[&str]| -> Vec<f64> {
        let out = measure(&baselines, &[&["--against", "before", "--json", "-"], more].concat());
        let report = json(&out);
        let rates = report["compare"]["pairs"][0]["runs"][0]["rates"].as_array().cloned();
        let rates = rates.unwrap_or_else(|| panic!("{}", stderr(&out)));
        let tested = rates.iter().map(|rate| {
            assert!(rate["p_adjusted"].is_f64(), "{rate}");
            rate["threshold_ns"].as_f64().expect("ns")
        });
        tested.collect()
    };
    // Up to the end of its bucket.
    let is_at = |tested_ns: &[f64], ns: f64| {
        tested_ns.iter().any(|tested| (ns..ns * (1.0 + 1.0 / 128.0)).contains(tested))
    };
    // Later than any rank that is compared by itself.
    let (deadline_ns, threshold_ns) = (300e9, 600e9);
    assert!(!is_at(&tested_ns(&[]), deadline_ns));
    let tested = tested_ns(&["--deadline", "300s", "--threshold", "600s"]);
    assert!(is_at(&tested, deadline_ns) && is_at(&tested, threshold_ns), "{tested:?}");
    // What it is for has a deadline too: 100 µs of a robot's loop.
    assert!(is_at(&tested_ns(&["--for", "ros"]), 100_000.0));
    let alone = measure(&baselines, &["--threshold", "200us"]);
    refused(&alone, &["--threshold 200us", "name that with --against NAME"]);
}

#[test]
fn a_baseline_of_other_runs_is_refused_before_an_hour_is_measured() {
    let dir = Dir::new("baseline-other");
    let (baselines, _) = baseline(&dir);
    let results = dir.path("results");
    let results = results.to_str().expect("UTF-8");
    let against = ["--against", "before", "--baselines", &baselines];
    let long = |command: &[&str]| run(command.iter().chain(&against).chain(&["-d", "1h"]));
    let check = long(&["check", "--for", "linuxcnc", "--results", results]);
    let words = ["baseline before was measured otherwise", "its runs are 'idle', not 'CPU "];
    refused(&check, &words);
    assert!(!stderr(&check).contains("--anyway"), "it has no such option: {}", stderr(&check));
    assert!(!Path::new(results).exists(), "nothing was begun");
    let slower = long(&["measure", "periodic", "-p", "2ms"]);
    refused(&slower, &["'idle' had period 1 ms, not 2 ms", "--baseline NAME"]);
    refused(&long(&["measure", "periodic", "--wait", "spin"]), &["had wait sleep, not spin"]);
    refused(&long(&["measure", "periodic", "--keep-cold"]), &["had cold cycles left out, not"]);
    let loaded = long(&["measure", "periodic", "-p", "1ms,2ms", "--load", "cpu"]);
    refused(&loaded, &["its runs are 'idle'"]);
}

#[test]
fn loads_in_another_arrangement_are_named_before_they_are_measured() {
    let dir = Dir::new("baseline-loads");
    let (baselines, results) = (dir.path("baselines"), dir.path("results"));
    let check = |more: &[&str]| {
        let mut command = punctual();
        command.arg("check").args(["--results", crate::text(&results)]);
        command.arg("--baselines").arg(&baselines).args(more);
        command.output().expect("the program starts")
    };
    let kept = check(&["-d", "2s", "-q", "--baseline", "short"]);
    assert!(stderr(&kept).contains("baseline saved as"), "{}", stderr(&kept));
    // Nothing is measured.
    let long = ["-d", "40s", "--plan", "--against", "short"];
    let planned = check(&long);
    let words = "'under load' will be undecided: the loads of baseline short ran all at once, \
                 those of this run one after the other; measure with the same --duration or \
                 --load, or name it as the change that you compare with --changed loads";
    assert!(flowing(&stderr(&planned)).contains(words), "{}", stderr(&planned));
    let changed = check(&[&long[..], &["--changed", "loads"]].concat());
    assert!(!stderr(&changed).contains("will be undecided"), "{}", stderr(&changed));
    assert_eq!((planned.status.code(), changed.status.code()), (Some(0), Some(0)));
    refused(&check(&["--changed", "loads"]), &["--changed loads is about the comparison"]);
}

#[test]
fn a_run_that_cannot_be_compared_is_written_all_the_same() {
    let dir = Dir::new("baseline-written");
    let (baselines, file) = baseline(&dir);
    // Wakes beside releases from which none can be taken: no comparison has both.
    let mut kept = json_file(&file);
    let parts = kept["recorded"]["runs"][0]["parts"].as_array_mut().expect("parts");
    let mut wakes = parts[0].clone();
    (parts[0]["missed"], parts[0]["missed_chunks"]) = (json!(5), json!([]));
    wakes["of_wakes"] = json!(true);
    parts.push(wakes);
    fs::write(&file, kept.to_string()).expect("writable");
    let result = dir.path("result.json");
    let out =
        measure(&baselines, &["--against", "before", "--json", result.to_str().expect("UTF-8")]);
    assert_eq!(out.status.code(), Some(2), "{}", stderr(&out));
    assert!(stderr(&out).contains("cannot be separated"), "{}", stderr(&out));
    assert!(stdout(&out).contains("1 in 1000"), "the page is shown: {}", stdout(&out));
    let result = json_file(&result);
    assert!(result["runs"][0]["cycles"].as_u64() > Some(0), "{result}");
    let verdict = &result["verdict"];
    assert!(verdict["ok"] == false, "{verdict}");
    assert!(verdict["reasons"].to_string().contains("against before: "), "{verdict}");

    let results = dir.path("results");
    let results = results.to_str().expect("UTF-8");
    let check = ["check", "-d", "2s", "--results", results, "--baselines", &baselines];
    let out = run(check.iter().chain(&["--against", "before", "-q"]));
    assert_eq!(out.status.code(), Some(2), "{}", stderr(&out));
    let made = only_result(results.as_ref());
    assert!(made.join("report.html").is_file() && made.join("result.json").is_file());
}

#[test]
fn a_baseline_of_another_machine_or_of_nothing_is_refused() {
    let dir = Dir::new("baseline-refused");
    let (baselines, file) = baseline(&dir);
    let kept = json_file(&file);
    let refused_as = |change: &dyn Fn(&mut Value), words: &[&str]| {
        let mut changed = kept.clone();
        change(&mut changed);
        fs::write(&file, changed.to_string()).expect("writable");
        refused(&measure(&baselines, &["--against", "before"]), words);
    };
    refused_as(
        &|kept| kept["recorded"]["machine"]["cpu_model"]["value"] = json!("Another \u{1b}[2J CPU"),
        &["another machine", "cpu_model", "Another"],
    );
    if kept["machine_id"].is_string() {
        refused_as(&|kept| kept["machine_id"] = json!("0"), &["another machine", "identifier"]);
    }
    refused_as(&|kept| kept["baseline"] = json!(1), &["before.json", "layout 1"]);
    refused_as(&|kept| kept["baseline"] = json!(3), &["before.json", "layout 3"]);
    refused_as(&|kept| kept["tool"] = json!("other"), &["not a baseline of punctual"]);
    refused_as(
        &|kept| kept["recorded"]["runs"][0]["parts"][0]["chunks"] = json!([[[60_000, 1]]]),
        &["baseline is corrupt"],
    );
    fs::write(&file, "{").expect("writable");
    refused(&measure(&baselines, &["--against", "before"]), &["before.json", "line 1"]);
    for name in ["../x", "a/b", "", ".", "-x y"] {
        let option = format!("--baseline={name}");
        refused(&measure(&baselines, &[&option]), &["--baseline", "letters, digits"]);
        let option = format!("--against={name}");
        refused(&measure(&baselines, &[&option]), &["--against", "letters, digits"]);
    }
}

/// A stored result of a kind, as if it had been measured at another time.
fn of_kind(dir: &Dir, kind: &str, name: &str, started_at: &str) -> String {
    let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/results/kinds/{kind}"));
    let mut result = json_file(&stored.with_extension("json"));
    result["started_at"] = started_at.into();
    let path = dir.path(name);
    fs::write(&path, result.to_string()).expect("writable");
    path.display().to_string()
}

#[test]
fn results_without_runs_stand_side_by_side_on_one_grid() {
    let dir = Dir::new("compare-grid");
    for kind in ["response", "saturation", "accuracy", "executive", "reproduce"] {
        let [a, b, c] = [EARLIER, LATER, "2026-11-21T20:03:00Z"]
            .map(|at| of_kind(&dir, kind, &format!("{kind}-{}.json", &at[14..16]), at));
        let out = run(["compare", &a, &b, &c, "--json", "-", "--fail-if-worse"]);
        assert_eq!(out.status.code(), Some(0), "{kind}: {}", stderr(&out));
        let compared = json(&out)["compare"].clone();
        let rows = compared["grid"]["rows"].as_array().expect("rows").clone();
        assert!(!rows.is_empty(), "{kind}");
        for row in &rows {
            assert_eq!(row["cells"].as_array().map(Vec::len), Some(3), "{row}");
            assert_eq!(
                row["relations"],
                json!(["undecided", "undecided"]),
                "they are alike: {row}"
            );
        }
        assert_eq!(compared["pairs"].as_array().map(Vec::len), Some(2), "{kind}");
        let page = stdout(&run(["compare", &a, &b]));
        assert!(page.contains("undecided") && page.contains("verdict"), "{kind}: {page}");
        assert_eq!(page.contains("claims: "), kind == "reproduce", "{kind}: {page}");
        let html = dir.path(&format!("{kind}.html"));
        let out = run(["report", &a, &b, &c, "-o", crate::text(&html)]);
        assert_eq!(out.status.code(), Some(0), "{kind}: {}", stderr(&out));
        let html = fs::read_to_string(html).expect("written");
        assert!(html.contains("Figures side by side"), "{kind}");
    }
}

#[test]
fn plots_of_two_results_stand_beside_each_other() {
    let dir = Dir::new("compare-plots");
    let [a, b] = [("a.json", EARLIER), ("b.json", LATER)]
        .map(|(name, at)| of_kind(&dir, "saturation", name, at));
    let html = dir.path("both.html");
    let out = run(["report", &a, &b, "-o", crate::text(&html)]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let html = fs::read_to_string(html).expect("written");
    let titles = html.split("<h3>").skip(1).filter_map(|part| part.split('<').next());
    let titles: Vec<&str> = titles.filter(|title| title.contains("Loss over frequency")).collect();
    assert_eq!(
        titles[..2],
        ["a: Loss over frequency: unloaded", "b: Loss over frequency: unloaded"]
    );
    let last_plot = html.rfind("Loss over frequency").expect("drawn");
    assert!(last_plot < html.find("In kHz. MF").expect("a table"), "plots behind a table");
}

#[test]
fn a_machine_whose_intervals_lie_above_is_worse() {
    let dir = Dir::new("compare-grid-worse");
    let a = of_kind(&dir, "accuracy", "a.json", EARLIER);
    let b = of_kind(&dir, "accuracy", "b.json", LATER);
    for (file, ticks) in [(&a, 40.0), (&b, 50.0)] {
        let mut result = json_file(Path::new(file));
        let interval =
            |value: f64| json!({"value": value, "low": value - 2.0, "high": value + 2.0});
        result["accuracy"]["rows"][0]["scatter"] = json!({
            "n": 9_000, "independent": 9_000, "least": 1.0, "largest": 900.0,
            "p5": interval(20.0), "p50": interval(ticks), "p95": interval(80.0), "p99": null
        });
        fs::write(file, result.to_string()).expect("writable");
    }
    let out = run(["compare", &a, &b, "--fail-if-worse"]);
    assert_eq!(out.status.code(), Some(1), "{}", stderr(&out));
    assert!(stdout(&out).contains("worse"), "{}", stdout(&out));
    let out = run(["compare", &a, &b, "--fail-if-worse", "-q"]);
    assert_eq!(stdout(&out), format!("B compared with A: worse ({b})\n"));
    assert!(stderr(&out).contains("FAILS B against A: "), "{}", stderr(&out));
    let out = run(["compare", &b, &a, "--fail-if-worse"]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    assert!(stdout(&out).contains("better"), "{}", stdout(&out));
}

#[test]
fn what_has_no_place_on_a_grid_is_refused_with_the_way_out() {
    let dir = Dir::new("compare-grid-refused");
    let a = of_kind(&dir, "response", "a.json", EARLIER);
    let b = of_kind(&dir, "response", "b.json", LATER);
    let other = of_kind(&dir, "accuracy", "other.json", LATER);
    let words = ["a.json is a result of 'measure response'", "'measure accuracy'", "by itself"];
    refused(&run(["compare", &a, &other]), &words);
    refused(&run(["compare", &a, &a]), &["given twice"]);
    let copy = dir.path("copy.json");
    fs::copy(&a, &copy).expect("writable");
    refused(&run(["compare", &a, crate::text(&copy)]), &["one measurement", "--anyway"]);
    assert_eq!(run(["compare", &a, crate::text(&copy), "--anyway"]).status.code(), Some(0));
    let args = ["compare", &a, &b, "--threshold", "50us"];
    refused(&run(args), &["--threshold 50us", "figure by figure", "leave it out"]);
    refused(&run(["compare", "--a", &a, "--b", &b]), &["--a and --b", "punctual compare A B"]);
    let older = dir.path("older.json");
    fs::write(&older, r#"{"tool":"punctual","schema":1}"#).expect("writable");
    refused(&run(["compare", &a, crate::text(&older)]), &["older.json", "schema 1"]);
    fs::write(&older, "nonsense").expect("writable");
    refused(&run(["compare", &a, crate::text(&older)]), &["older.json", "not a result"]);
    let recorded = samples(&dir.path("c.punctual"), EARLIER, &[Made::new("idle", 2_000, 500)]);
    refused(&run(["compare", &a, &recorded]), &["c.punctual", "samples, not a result"]);
    let mut papers = json_file(Path::new(&of_kind(&dir, "reproduce", "p.json", EARLIER)));
    papers["papers"] = json!(["ant"]);
    papers["started_at"] = LATER.into();
    let q = dir.path("q.json");
    fs::write(&q, papers.to_string()).expect("writable");
    let args = ["compare", crate::text(&dir.path("p.json")), crate::text(&q)].map(str::to_owned);
    refused(&run(args), &["q.json reproduces ant", "no paper in common"]);
}
