//! `blame`, for real: what must add up whatever the machine does, a disturbance that is known, and
//! captures of others.

use std::io::{BufRead as _, Read as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use punctual_os::affinity::{self, CpuMask};
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual_os::process::{self, EndSignal};
use punctual_os::scheduler::{self, SchedPolicy};
use punctual_testkit::skip;
use serde_json::Value;

use crate::{json, only_result, punctual, run, stderr, stdout};

/// Each late wake's parts, without gaps, add up to its lateness.
fn add_up(result: &Value) {
    for wake in result["worst"].as_array().expect("wakes") {
        let mut end_ns = 0;
        for part in wake["parts"].as_array().expect("parts") {
            assert_eq!(part["after_ns"].as_u64(), Some(end_ns), "{wake}");
            end_ns += part["length_ns"].as_u64().expect("a length");
        }
        assert_eq!(wake["lateness_ns"].as_u64(), Some(end_ns), "{wake}");
    }
}

fn sum(causes: &Value, key: &str) -> f64 {
    causes.as_array().expect("causes").iter().filter_map(|cause| cause[key].as_f64()).sum()
}

#[test]
fn the_parts_of_each_wake_add_up_and_so_do_the_shares() {
    if !skip::need_tracing() {
        return;
    }
    let out = run(["blame", "-d", "3s", "--load", "cpu", "--json", "-"]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let result = json(&out);
    assert_eq!(result["experiment"], "blame");
    add_up(&result);
    let runs = result["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 1, "{runs:?}");
    assert_eq!(runs[0]["name"], "punctual-loop");
    let late = runs[0]["late"].as_u64().expect("a count");
    if late > 0 {
        assert!((sum(&result["causes"], "share_of_late") - 1.0).abs() < 1e-6, "{result}");
        assert_eq!(sum(&result["causes"], "wakes"), late as f64);
        in_order(&result);
    }
    assert!(result["price"]["recorded"].as_u64().is_some_and(|wakes| wakes > 0), "{result}");
    assert!(result["evidence"]["events"].as_u64().is_some_and(|events| events > 0));
}

/// Takes its CPU above everything for 2 ms of each 50, until it is told to end, for a minute at
/// most.
fn hog(cpu: u32, ends: &AtomicBool) -> i32 {
    affinity::set(0, &CpuMask::one(cpu)).expect("a CPU that may be used");
    scheduler::set(0, SchedPolicy::Fifo(97)).expect("root");
    let ends_ns = now_ns(ClockId::Monotonic) + 60_000_000_000;
    while !ends.load(Ordering::Relaxed) && now_ns(ClockId::Monotonic) < ends_ns {
        let until_ns = now_ns(ClockId::Monotonic) + 2_000_000;
        while now_ns(ClockId::Monotonic) < until_ns {}
        let _signal = sleep_until_ns(until_ns + 48_000_000);
    }
    process::tid()
}

#[test]
fn a_thread_that_takes_the_cpu_is_named() {
    if !skip::need_tracing() {
        return;
    }
    let cpu = affinity::get(0).expect("known").iter().next().expect("one");
    let ends = AtomicBool::new(false);
    let (out, tid) = thread::scope(|scope| {
        let hogs = thread::Builder::new().name("late-hog".to_owned());
        let hogs = hogs.spawn_scoped(scope, || hog(cpu, &ends)).expect("a thread");
        let on = cpu.to_string();
        let out = run(["blame", "-d", "4s", "--cpu", &on, "--over", "900us", "--json", "-"]);
        ends.store(true, Ordering::Relaxed);
        (out, hogs.join().expect("no panic"))
    });
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let result = json(&out);
    add_up(&result);
    let causes = result["causes"].as_array().expect("causes");
    let program = std::fs::read_to_string("/proc/self/comm").expect("a process");
    // Beside the hog of another test it is one of the threads of this program.
    let names = ["late-hog", program.trim_end()].map(|name| format!("{name} (priority 97"));
    let named = causes.iter().find(|cause| {
        let name = cause["name"].as_str().unwrap_or_default();
        names.iter().any(|named| name.starts_with(named))
    });
    let named = named.unwrap_or_else(|| panic!("{}", result["sentence"]));
    let is_alone = named["threads"] == 1;
    let name = named["name"].as_str().expect("a name");
    assert_eq!(name.contains(&tid.to_string()), is_alone, "{named}");
    // Less where records of a wake are missing.
    assert!(named["confidence"].as_f64().is_some_and(|sure| sure > 0.9), "{named}");
    // 40 releases or so fell into it; others may be late for reasons of their own.
    assert!(named["wakes"].as_u64().is_some_and(|wakes| wakes >= 5), "{named}");
    // A command has the number of one thread.
    let advice = named["advice"].as_str().expect("words");
    assert!(advice.starts_with("Lower it below the loop"), "{named}");
    assert!(advice.contains("chrt") || !is_alone, "{named}");
    // By the process that it belongs to, which is that of the tests.
    assert_eq!(named["processes"], 1, "{named}");
    assert_eq!(named["owner"], "stranger");
    assert_eq!(named["program"].as_str(), Some(program.trim_end()));
    in_order(&result);
}

/// Causes stand in the order of the time that they took, which adds up; the latest wake has one.
fn in_order(result: &Value) {
    let causes = result["causes"].as_array().expect("causes");
    let time_ns = |cause: &Value| cause["time_ns"].as_u64().expect("a time");
    let open = ["normal-path", "unexplained", "no-single-cause"];
    let named = causes.iter().filter(|cause| !open.iter().any(|kind| cause["cause"] == *kind));
    assert!(named.map(time_ns).is_sorted_by(|a, b| a >= b), "{result}");
    assert!((sum(&result["causes"], "share_of_time") - 1.0).abs() < 1e-6, "{result}");
    let latest: Vec<&Value> = causes.iter().filter(|cause| cause["is_of_latest"] == true).collect();
    assert_eq!(latest.len(), 1, "{result}");
    let sentence = result["sentence"].as_str().expect("one");
    let worst = sentence.split(" The worst was ").nth(1).unwrap_or_else(|| panic!("{sentence}"));
    let name = latest[0]["name"].as_str().expect("a name");
    assert!(worst.contains(&format!("of it: {name}.")), "{sentence}");
}

#[test]
fn a_page_has_the_answer_in_forty_lines_of_eighty_columns_and_a_line_is_a_line() {
    let from = capture("perf.data");
    let read = |more: &[&str]| {
        let out = run(["blame", "--from", &from, "--over", "1us"]
            .into_iter()
            .chain(more.iter().copied()));
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        stdout(&out)
    };
    let page = read(&[]);
    assert!(page.lines().count() <= 40, "{}: {page}", page.lines().count());
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    let head = page.lines().find(|line| line.contains("cause, and what shows it"));
    assert!(head.is_some_and(|head| head.contains(" sure ")), "{page}");
    assert!(page.contains("--verbose") && page.contains("What helps"), "{page}");
    let verbose = read(&["--verbose"]);
    assert!(verbose.lines().count() > page.lines().count(), "{verbose}");
    assert!(verbose.contains("The latest wakes") && verbose.contains("What helps"), "{verbose}");
    let line = read(&["-q"]);
    let runs =
        json(&run(["blame", "--from", &from, "--over", "1us", "--json", "-"]))["runs"].clone();
    assert_eq!(line.lines().count(), runs.as_array().map_or(0, Vec::len), "{line}");
    assert!(line.contains(" of the time lost: "), "{line}");
    crate::refused(&run(["blame", "--from", &from, "-q", "-v"]), &["--quiet", "--verbose"]);
}

#[test]
fn another_loop_of_the_run_is_no_stranger() {
    if !skip::need_tracing() {
        return;
    }
    let cpu = affinity::get(0).expect("known").iter().next().expect("one").to_string();
    // Two loops on one CPU at the same phase: one waits for the other, each cycle.
    let loops = ["--cpu", &cpu, "--period", "2ms,4ms", "--phase", "zero"];
    let args = ["measure", "periodic", "--blame", "-d", "3s", "--json", "-"];
    let name = "another loop of this measurement (";
    let is_other = |cause: &Value| cause["name"].as_str().is_some_and(|text| text.contains(name));
    let look = || {
        let out = run(args.into_iter().chain(loops));
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        let runs = json(&out)["runs"].as_array().expect("runs").clone();
        let causes = runs.iter().filter_map(|run| run["causes"].as_array()).flatten();
        let mut own = causes.filter(|cause| cause["owner"] == "measurement");
        let named = own.find(|cause| is_other(cause)).cloned();
        named.ok_or_else(|| runs.iter().map(|run| run["blame"].clone()).collect::<Vec<_>>())
    };
    // Of a busy machine the latest wakes of 3 s may all be somebody else's, or events be lost.
    let named = look().or_else(|_| look()).or_else(|_| look());
    let named = named.unwrap_or_else(|blames| panic!("{blames:?}"));
    let advice = named["advice"].as_str().expect("advice");
    assert!(advice.contains("--phase") && !advice.contains("chrt"), "{advice}");
}

/// Returns true where this is the hog's row or words.
fn is_hog(name: &Value, tid: i32) -> bool {
    let name = name.as_str().unwrap_or_default();
    name.contains("-hog (priority 97") && name.contains(&tid.to_string())
}

#[test]
fn check_names_what_made_its_worst_cycles_late() {
    if !skip::need_tracing() {
        return;
    }
    let dir = crate::Dir::new("check-blame");
    let results = dir.path("results");
    let cpu = affinity::get(0).expect("known").iter().next().expect("one");
    let ends = AtomicBool::new(false);
    let (out, tid) = thread::scope(|scope| {
        let hogs = thread::Builder::new().name("check-hog".to_owned());
        let hogs = hogs.spawn_scoped(scope, || hog(cpu, &ends)).expect("a thread");
        let (on, results) = (cpu.to_string(), results.to_str().expect("UTF-8"));
        let out = run(["check", "--blame", "-d", "5s", "--cpu", &on, "--results", results]);
        ends.store(true, Ordering::Relaxed);
        (out, hogs.join().expect("no panic"))
    });
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let made = only_result(&results);
    let result = crate::json_file(&made.join("result.json"));
    let recording = &result["blame"];
    assert_eq!((&recording["is_recorded"], &recording["is_asked"]), (&true.into(), &true.into()));
    assert!(recording["price"]["unrecorded"].as_u64().is_some_and(|wakes| wakes > 50));
    assert!(recording["evidence"]["events"].as_u64().is_some_and(|events| events > 1_000));
    let runs = result["runs"].as_array().expect("runs");
    let (mut of_hog, mut is_named) = (0, false);
    for run in runs {
        assert!(run["blame"]["sentence"].is_string(), "{run}");
        add_up(&run["blame"]);
        // Of a busy machine a run may have no wake that is later than nearly all others.
        let Some(causes) = run["causes"].as_array() else { continue };
        assert!((sum(&run["causes"], "share_of_late") - 1.0).abs() < 1e-6, "{run}");
        is_named |= causes.iter().any(|row| is_hog(&row["name"], tid));
        let worst = run["worst"].as_array().expect("releases");
        let cycles = run["blame"]["cycles"].as_array().expect("cycles");
        of_hog += cycles.iter().filter(|late| is_hog(&late["cause"], tid)).count();
        // Each that is named stands there with its parts.
        let kept = run["blame"]["worst"].as_array().expect("wakes");
        for late in worst.iter().filter(|late| late["cause"] != Value::Null) {
            assert!(kept.iter().any(|wake| wake["cause"] == late["cause"]), "{late}");
        }
    }
    // It takes 2 ms of each 50; others may take more, and then the very worst are theirs.
    if !is_named || of_hog < 5 {
        return;
    }
    let first = &result["headline"]["advice"][0];
    assert_eq!(first["topic"], "cause", "{first}");
    assert!(first["command"].as_str().is_some_and(|command| command.contains("punctual ")));
    let page = stdout(&out);
    let why = page.split("Why, and what next").nth(1).unwrap_or_else(|| panic!("{page}"));
    assert!(why.trim_start().starts_with("cause"), "{why}");
    assert!(page.contains("the kernel's events were recorded: that made the median"), "{page}");
    let html = std::fs::read_to_string(made.join("report.html")).expect("beside it");
    assert!(html.contains("Why releases were late"), "its section");
    assert!(html.contains(", as it passed: "), "the timelines");
    assert!(html.contains(&format!("check-hog (priority 97, {tid})")), "by name");
    let long = run(["analyse", made.to_str().expect("UTF-8")]);
    assert_eq!(long.status.code(), Some(0), "{}", stderr(&long));
}

#[test]
fn without_being_asked_short_runs_are_not_recorded() {
    let dir = crate::Dir::new("check-unasked");
    let results = dir.path("results");
    let args = ["check", "-d", "1s", "--json", "-", "--results", results.to_str().expect("UTF-8")];
    for more in [&[][..], &["--blame", "off"], &["--blame", "auto"]] {
        let result = json(&run(args.iter().chain(more).copied()));
        if more.contains(&"off") {
            assert_eq!(result["blame"], Value::Null, "{more:?}");
        } else {
            let why = result["blame"]["why_not"].as_str().expect("a reason");
            assert!(why.contains("less than 10 s") && why.contains("--blame on"), "{why}");
            assert_eq!(result["blame"]["is_recorded"], false, "{more:?}");
        }
        for run in result["runs"].as_array().expect("runs") {
            assert_eq!((&run["causes"], &run["blame"]), (&Value::Null, &Value::Null), "{more:?}");
            let worst = run["worst"].as_array().expect("releases");
            assert!(worst.iter().all(|late| late["cause"] == Value::Null));
        }
    }
    crate::refused(&run(["check", "--blame", "maybe"]), &["maybe", "auto"]);
}

/// Arguments of a run whose figures are kept as a baseline, so that causes are recorded behind it.
fn kept<'a>(cpu: &'a str, baselines: &'a str, samples: &'a str) -> Vec<&'a str> {
    let run = ["measure", "periodic", "--blame", "auto", "-d", "10s", "--cpu", cpu, "--json", "-"];
    let kept = ["--baseline", "here", "--baselines", baselines, "--samples", samples];
    run.into_iter().chain(kept).collect()
}

/// The measurement is whole, and nothing of what was recorded behind it is in it.
fn is_undisturbed(result: &Value) {
    assert_eq!(result["incomplete"], false, "{result}");
    assert_eq!(result["blame"]["is_asked"], false);
    let run = &result["runs"][0];
    // Releases of 10 s, and none of what came after.
    let releases = run["cycles"].as_u64().expect("a count") + run["missed"].as_u64().expect("one");
    assert!((9_900..=10_001).contains(&releases), "{releases}");
    let worst = run["worst"].as_array().expect("releases");
    assert!(!worst.is_empty() && worst.iter().all(|late| late["cause"] == Value::Null), "{run}");
}

#[test]
fn figures_that_are_compared_are_recorded_behind_the_measurement() {
    if !skip::need_tracing() {
        return;
    }
    let dir = crate::Dir::new("blame-behind");
    let [baselines, samples] = ["baselines", "run.punctual"].map(|name| dir.path(name));
    let [baselines, samples] = [&baselines, &samples].map(|path| crate::text(path));
    let cpu = affinity::get(0).expect("known").iter().next().expect("one");
    let (ends, on) = (AtomicBool::new(false), cpu.to_string());
    let (out, tid) = thread::scope(|scope| {
        let hogs = thread::Builder::new().name("behind-hog".to_owned());
        let hogs = hogs.spawn_scoped(scope, || hog(cpu, &ends)).expect("a thread");
        let out = run(kept(&on, baselines, samples));
        ends.store(true, Ordering::Relaxed);
        (out, hogs.join().expect("no panic"))
    });
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let result = json(&out);
    is_undisturbed(&result);
    let recording = &result["blame"];
    assert_eq!((&recording["is_recorded"], &recording["place"]), (&true.into(), &"behind".into()));
    assert!(recording["price"]["recorded"].as_u64().is_some_and(|wakes| wakes > 50));
    let causes = &result["runs"][0]["causes"];
    let blame = &result["runs"][0]["blame"];
    assert!(blame["behind_ns"].as_u64().is_some_and(|ns| ns > 0), "{blame}");
    assert_eq!((&blame["cycles"], &blame["worst"]), (&Value::Array(vec![]), &Value::Array(vec![])));
    // It takes 2 ms of each 50: more than a hundredth of the wakes, so that the line of the
    // measurement is in the midst of them.
    let sentence = blame["sentence"].as_str().expect("one");
    assert!(sentence.starts_with("recorded in "), "{sentence}");
    let page = run(["analyse", samples]);
    assert_eq!(page.status.code(), Some(0), "the samples are whole: {}", stderr(&page));
    let Some(causes) = causes.as_array() else {
        // On a busy machine that line may lie beyond all of a second behind it.
        assert!(sentence.contains("one of the "), "{blame}");
        return;
    };
    if !causes.iter().any(|cause| is_hog(&cause["name"], tid)) {
        // Or what was later than it is all of others.
        return;
    }
    // The latest of those wakes are told as they passed.
    let latest = blame["latest"].as_array().expect("wakes");
    add_up(&serde_json::json!({ "worst": latest }));
    let advice = result["headline"]["advice"].as_array().expect("a list").iter();
    let mut texts = advice.filter_map(|advice| advice["text"].as_str());
    // What the watchdog saw, where others took the CPU for long, comes before them.
    let first = texts.find(|text| !text.contains("was seen waiting"));
    assert!(first.is_none_or(|text| text.contains("behind the measurement")), "{first:?}");
}

#[test]
fn a_stop_behind_the_measurement_leaves_it_whole() {
    if !skip::need_tracing() {
        return;
    }
    let dir = crate::Dir::new("blame-behind-stop");
    let [baselines, samples] = ["baselines", "run.punctual"].map(|name| dir.path(name));
    let [baselines, samples] = [&baselines, &samples].map(|path| crate::text(path));
    let cpu = affinity::get(0).expect("known").iter().next().expect("one").to_string();
    let mut command = punctual();
    command.args(kept(&cpu, baselines, samples));
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let child = command.spawn().expect("it starts");
    // The reader of events has a thread only behind it.
    crate::until("events to be read", || {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id())).expect("it lives");
        let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm"));
        tasks.flatten().any(|task| name(task).is_ok_and(|name| name.trim() == "punctual-trace"))
    });
    crate::signal(&child, EndSignal::Interrupt);
    let out = child.wait_with_output().expect("it ends");
    // What was interrupted says so, as everywhere; its result says that it is whole.
    assert_eq!(out.status.code(), Some(130), "{}", stderr(&out));
    let result = json(&out);
    is_undisturbed(&result);
    assert_eq!(result["blame"]["place"], "behind", "{}", result["blame"]);
    assert_eq!(run(["analyse", samples]).status.code(), Some(0), "the samples are whole");
    let kept = run(["baseline", "show", "here", "--baselines", baselines]);
    assert_eq!(kept.status.code(), Some(0), "it is kept: {}", stderr(&kept));
}

#[test]
fn loops_that_spin_have_no_causes_of_their_own() {
    if !skip::need_tracing() {
        return;
    }
    let args = ["measure", "periodic", "--blame", "-d", "2s", "-p", "2ms", "--json", "-"];
    for (wait, tells) in [("sleep", true), ("fixed", false)] {
        let out = run(args.iter().chain(&["--wait", wait]).copied());
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        let result = json(&out);
        assert_eq!(result["blame"]["is_recorded"], true, "{}", result["blame"]);
        let run = &result["runs"][0];
        // Of a loop that sleeps there are causes where one wake at least was late.
        assert!(tells || run["causes"].is_null(), "{wait}: {run}");
        assert_eq!(run["blame"]["sentence"].is_string(), tells, "{wait}: {run}");
        add_up(&run["blame"]);
    }
}

#[test]
fn ways_to_wait_are_compared_without_the_price_and_the_one_that_sleeps_has_causes() {
    if !skip::need_tracing() {
        return;
    }
    let dir = crate::Dir::new("wait-blame");
    let file = dir.path("page.md");
    let args = ["measure", "wait", "--blame", "auto", "-d", "10s", "--json", "-", "--markdown"];
    let out = run(args.into_iter().chain([crate::text(&file)]));
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let result = json(&out);
    assert_eq!(result["blame"]["place"], "behind", "{}", result["blame"]);
    let runs = result["runs"].as_array().expect("runs");
    assert!(runs.len() >= 4, "{runs:?}");
    for run in runs {
        let sleeps = run["name"] == "sleep";
        assert_eq!(run["blame"]["sentence"].is_string(), sleeps, "{run}");
        assert_eq!(run["blame"]["behind_ns"].is_u64(), sleeps, "{run}");
    }
    let page = std::fs::read_to_string(&file).expect("written");
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains("sleep: recorded in "), "{page}");
    assert!(page.contains("were recorded behind the measurement"), "{page}");
}

#[test]
fn check_without_rights_says_the_setting_and_measures() {
    if !skip::need("root", skip::is_root()) || !skip::need_program("setpriv") {
        return;
    }
    let dir = crate::Dir::new("check-blame-user");
    let args = ["measure", "periodic", "--blame", "-d", "500ms"];
    let out = crate::as_user(&dir).args(args).output().expect("it starts");
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let page = stdout(&out);
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains("causes of late releases were not recorded: "), "{page}");
    assert!(crate::names_what_forbids_recording(&page), "{page}");
}

#[test]
fn a_program_that_runs_is_followed_without_a_period() {
    if !skip::need_tracing() || !skip::need_program("python3") {
        return;
    }
    // It ends by itself after 30 s.
    let program = "import time\nprint(flush=True)\nnext = time.monotonic()\n\
                   for _ in range(15000):\n    next += 0.002\n    \
                   time.sleep(max(0, next - time.monotonic()))\n";
    let mut python = std::process::Command::new("python3");
    let python = python.args(["-c", program]).stdout(std::process::Stdio::piped());
    let mut child = python.spawn().expect("it starts");
    let mut ready = [0];
    child.stdout.as_mut().expect("piped").read_exact(&mut ready).expect("a line");
    let pid = child.id();
    let out = run(["blame", "--pid", &pid.to_string(), "-d", "2s", "--json", "-"]);
    child.kill().expect("it runs");
    child.wait().expect("ours");
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let result = json(&out);
    add_up(&result);
    let runs = result["runs"].as_array().expect("runs");
    let python = runs.iter().find(|run| run["tid"] == pid);
    let python = python.unwrap_or_else(|| panic!("{result}"));
    assert!(python["wakes"].as_u64().is_some_and(|wakes| wakes > 10), "{python}");
    assert_eq!(result["session"]["idle_states_held"], false, "it keeps what it runs under");
}

#[test]
fn a_thread_that_another_one_wakes_is_followed() {
    if !skip::need_tracing() || !skip::need_program("python3") {
        return;
    }
    // It ends by itself after 30 s: one thread sleeps, and hands on to one without a timer.
    let program = "import queue, threading, time\nq = queue.SimpleQueue()\n\
                   def answer():\n    print(threading.get_native_id(), flush=True)\n    \
                   while q.get(): pass\n\
                   threading.Thread(target=answer, daemon=True).start()\n\
                   for _ in range(15000):\n    time.sleep(0.002)\n    q.put(1)\n";
    let mut python = std::process::Command::new("python3");
    let python = python.args(["-c", program]).stdout(std::process::Stdio::piped());
    let mut child = python.spawn().expect("it starts");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("piped");
    std::io::BufReader::new(stdout).read_line(&mut line).expect("a line");
    let out = run(["blame", "--tid", line.trim(), "-d", "2s", "--json", "-"]);
    child.kill().expect("it runs");
    child.wait().expect("ours");
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let result = json(&out);
    add_up(&result);
    let wakes = &result["runs"][0]["wakes"];
    assert!(wakes.as_u64().is_some_and(|wakes| wakes > 10), "{result}");
}

/// A capture of the fixtures.
fn capture(name: &str) -> String {
    format!("{}/../fixtures/trace/6.18/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn captures_of_others_are_read() {
    for name in ["perf.data", "ftrace.txt", "trace-6.dat", "trace-7-zstd.dat"] {
        let out = run(["blame", "--from", &capture(name), "--over", "1us", "--json", "-"]);
        assert_eq!(out.status.code(), Some(0), "{name}: {}", stderr(&out));
        let result = json(&out);
        add_up(&result);
        assert!(result["sentence"].as_str().is_some_and(|text| !text.is_empty()), "{name}");
        assert_eq!(result["price"], Value::Null);
        let page = run(["blame", "--from", &capture(name), "--over", "1us"]);
        let is_answered = ["Causes of late wakes", "was later than"];
        let page = stdout(&page);
        assert!(is_answered.iter().any(|words| page.contains(words)), "{page}");
    }
}

#[test]
fn the_first_wake_that_is_later_ends_it() {
    if !skip::need_tracing() {
        return;
    }
    // Each wake is later than that.
    let out = run(["blame", "-d", "60s", "--stop-over", "100ns", "--json", "-"]);
    assert_eq!(out.status.code(), Some(1), "as of check: {}", stderr(&out));
    let result = json(&out);
    add_up(&result);
    let stop = &result["stopped_by"];
    assert_eq!(stop["name"], "punctual-loop", "{result}");
    assert_eq!((&result["incomplete"], &result["ended_by"]), (&true.into(), &"late".into()));
    assert_eq!(result["verdict"]["ok"], false);
    assert_eq!(result["verdict"]["reasons_about"][0]["kind"], "stop-over");
    let reason = result["verdict"]["reasons"][0].as_str().expect("a reason");
    assert!(reason.contains("punctual-loop") && reason.contains("--stop-over"), "{reason}");
    let worst = result["worst"].as_array().expect("wakes");
    assert_eq!(worst.len(), 1, "nothing behind it counts");
    for key in ["release_ns", "tid", "name"] {
        assert_eq!(worst[0][key], stop[key], "{key}");
    }
    // Where the switch to it was not recorded it was as late as the one, and at most as the other.
    let late_ns = |wake: &Value| wake["lateness_ns"].as_u64().expect("a lateness");
    assert!((101..=late_ns(&worst[0])).contains(&late_ns(stop)), "{stop} {}", worst[0]);
    assert_eq!(result["runs"][0]["late"], 1);
    assert_eq!(result["kept"], Value::Null);
}

/// The latest wakes in a result.
fn worst(result: &Value) -> &Vec<Value> {
    result["worst"].as_array().expect("wakes")
}

#[test]
fn what_is_kept_gives_the_same_answer_again() {
    if !skip::need_tracing() {
        return;
    }
    let dir = crate::Dir::new("blame-keep");
    let [kept, again, perfetto, ndjson, plain] =
        ["kept", "again.ndjson", "trace.pftrace", "trace.ndjson", "trace.txt"]
            .map(|name| dir.path(name));
    let [kept, again, perfetto, ndjson, plain] =
        [&kept, &again, &perfetto, &ndjson, &plain].map(|path| crate::text(path));
    let record = ["blame", "-d", "2s", "--over", "5us", "--load", "cpu", "--json", "-"];
    let files = ["--keep", kept, "--perfetto", perfetto, "--ndjson", ndjson, "--text", plain];
    let out = run(record.into_iter().chain(files));
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let result = json(&out);
    let counts = &result["kept"];
    assert!(counts["wakes"].as_u64().is_some_and(|wakes| wakes > 20), "{counts}");
    assert_eq!(crate::json_file(&dir.path("kept/result.json")), result);
    for from in [kept, &format!("{kept}/perf.data")] {
        let out = run(["blame", "--from", from, "--json", "-"]);
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        let read = json(&out);
        add_up(&read);
        assert_eq!(worst(&read).len(), worst(&result).len());
        for (read, recorded) in worst(&read).iter().zip(worst(&result)) {
            assert_eq!(read, recorded);
        }
        let (read, recorded) = (&read["runs"][0], &result["runs"][0]);
        for key in ["tid", "name", "wakes", "p50_ns", "p99_ns", "max_ns", "threshold_ns"] {
            assert_eq!(read[key], recorded[key], "{key}");
        }
        // Of a machine with many events some windows found no room: these come as they were judged.
        let there = ["wakes", "dropped"].map(|key| counts[key].as_u64().expect("a count"));
        assert_eq!(read["late"], there.iter().sum::<u64>(), "those that were kept: {counts}");
    }
    // A higher threshold takes the later ones of them.
    let out = run(["blame", "--from", kept, "--over", "1s", "--json", "-"]);
    assert!(worst(&json(&out)).is_empty(), "{}", stdout(&out));
    // No address of the kernel is in it: also in a form that would show one.
    let out = run(["blame", "--from", kept, "--ndjson", again]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let events = std::fs::read_to_string(again).expect("written");
    assert!(events.lines().count() > 100 && !events.contains("\"0xffff"), "{events}");
    // What others read has the same events, without what was known beside them.
    for from in [ndjson, plain] {
        let out = run(["blame", "--from", from, "--over", "5us", "--json", "-"]);
        assert_eq!(out.status.code(), Some(0), "{from}: {}", stderr(&out));
        add_up(&json(&out));
        assert!(!worst(&json(&out)).is_empty(), "{from}");
    }
    as_perfetto_reads_it(perfetto, &events_of(ndjson), worst(&result));
    if skip::need_program("perf") {
        let perf = std::process::Command::new("perf")
            .args(["script", "-i", &format!("{kept}/perf.data")])
            .output();
        let perf = perf.expect("it starts");
        assert!(perf.status.success(), "{}", stderr(&perf));
        let shown = stdout(&perf);
        assert!(shown.contains("sched:sched_switch") && shown.contains("timer:hrtimer_start"));
    }
}

/// The number of lines of an NDJSON file that have this event.
fn events_of(ndjson: &str) -> impl Fn(&str) -> u64 {
    let lines = std::fs::read_to_string(ndjson).expect("written");
    let lines: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    move |key| lines.iter().filter(|line| !line["event"][key].is_null()).count() as u64
}

/// Reads a trace by Perfetto's own definitions: it has no field that they do not have, nothing that
/// Perfetto would count as an error or lost, no event that the NDJSON file does not have, and a
/// slice as long as each of the `worst` wakes was late.
#[track_caller]
fn as_perfetto_reads_it(trace: &str, count: &impl Fn(&str) -> u64, worst: &[Value]) {
    let Some(read) = crate::export::read_back("perfetto", trace) else { return };
    assert_eq!(read["unknown"], serde_json::json!({}));
    assert_eq!((&read["unordered"], &read["open"]), (&0.into(), &0.into()), "{}", read["events"]);
    assert_eq!((&read["faults"], &read["unended"]), (&serde_json::json!({}), &0.into()));
    assert_eq!(read["snapshots"], 1, "which clock it is");
    assert_eq!(read["kernel"], true);
    // What lies before a window is left out, but for who ran when it began.
    for (theirs, ours) in [("sched_waking", "waking"), ("hrtimer_start", "timer_start")] {
        let shown = read["events"][theirs].as_u64().expect("some");
        assert!(shown <= count(ours) && shown > 20, "{theirs}: {shown} of {}", count(ours));
    }
    assert!(read["events"]["sched_switch"].as_u64().is_some_and(|shown| shown > 20));
    let slices = read["slices"].as_array().expect("slices");
    for wake in worst {
        let lateness = &wake["lateness_ns"];
        let is_its = |slice: &&Value| {
            (&slice[0], &slice[1], &slice[3]) == (&wake["tid"], &"late wakes".into(), lateness)
        };
        let found = slices.iter().find(is_its);
        assert!(!read["processes"][wake["tid"].to_string()].is_null(), "{}", read["processes"]);
        assert!(found.is_some(), "no slice of {lateness} ns: {wake}");
    }
}

#[test]
fn a_capture_is_written_in_other_forms() {
    let dir = crate::Dir::new("blame-forms");
    let (ndjson, plain) = (dir.path("a.ndjson"), dir.path("a.txt"));
    let [ndjson, plain] = [&ndjson, &plain].map(|path| crate::text(path));
    let from = capture("perf.data");
    let over = ["--over", "1us"];
    let forms = ["--ndjson", ndjson, "--text", plain, "--json", "-"];
    let out = run(["blame", "--from", &from].into_iter().chain(forms).chain(over));
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    // The ends of page faults are no tracepoints: ftrace has no line for them.
    let left_out = format!("punctual: {plain}: without 24 events that its form has no place for\n");
    assert_eq!(stderr(&out), left_out, "NDJSON has a place for all");
    let first = json(&out);
    assert!(!worst(&first).is_empty(), "{first}");
    let out = run(["blame", "--from", ndjson, "--json", "-"].into_iter().chain(over));
    let lateness = |result: &Value| -> Vec<Value> {
        worst(result).iter().map(|wake| wake["lateness_ns"].clone()).collect()
    };
    assert_eq!(lateness(&json(&out)), lateness(&first), "all of it is in NDJSON");
    let out = run(["blame", "--from", plain, "--json", "-"].into_iter().chain(over));
    assert_eq!(lateness(&json(&out)), lateness(&first), "times are to the nanosecond");
    let same = ["--text", plain, "--ndjson", plain];
    let out = run(["blame", "--from", &from].into_iter().chain(same));
    assert_eq!(out.status.code(), Some(2));
    assert!(stderr(&out).contains("already used"), "{}", stderr(&out));
    let out = run(["blame", "--from", plain, "--text", plain]);
    assert_eq!(out.status.code(), Some(2));
    assert!(stderr(&out).contains("overwrite an input"), "{}", stderr(&out));
}

#[test]
fn what_cannot_be_followed_or_read_is_said() {
    let (binary, text) = (capture("perf.data"), capture("ftrace.txt"));
    let refusals: [(&[&str], &str); 23] = [
        (&["--stop-over", "100us", "--over", "1ms"], "at most that"),
        (&["--stop-over", "100us", "--over", "p99"], "at most that"),
        (&["--from", "/dev/null", "--keep", "/tmp/x"], "cannot be used with"),
        (&["--raw"], "required"),
        (&["--from", "/dev/null", "--stop-over", "1ms"], "cannot be used with"),
        (&["--over", "p100"], "above p0 and below p100"),
        (&["--over", "px"], "write p99.9"),
        (&["--over", "fast"], "as p99.9"),
        (&["--pid", "0"], "0 is not in"),
        (&["--pid", "1", "--all"], "cannot be used with"),
        (&["--pid", "1", "--policy", "rr"], "cannot be used with"),
        (&["--all", "--period", "2ms"], "cannot be used with"),
        (&["--name", "servo", "--cpu", "0"], "cannot be used with"),
        (&["--from", "/dev/null", "--duration", "2s"], "cannot be used with"),
        (&["python3"], "--name python3, --pid or --tid"),
        (&["python3", "-u", "x.py"], "--name python3, --pid or --tid"),
        (&["--name", "no-such-name-here"], "no thread or process is called"),
        (&["--from", "/dev/null"], "no capture that is known"),
        (&["--from", "/nowhere/at/all"], "cannot read /nowhere/at/all"),
        (&["--from", &binary, "--pid", "2000000000"], "it has no thread of that process"),
        (&["--from", &text, "--pid", "1"], "--tid N or --name NAME"),
        (&["--from", &binary, "--tid", "2000000000"], "it has no such thread; without that"),
        (&["--from", &binary, "--name", "no-such-name"], "no thread that is called so"),
    ];
    for (arguments, why) in refusals {
        let out = punctual().arg("blame").args(arguments).output().expect("it starts");
        assert_eq!(out.status.code(), Some(2), "{arguments:?}: {}", stdout(&out));
        assert!(stderr(&out).contains(why), "{arguments:?}: {}", stderr(&out));
    }
    let compressed = run(["blame", "--from", &capture("perf-compressed.data")]);
    assert_eq!(compressed.status.code(), Some(2));
    assert!(stderr(&compressed).contains("compress"), "{}", stderr(&compressed));
}

#[test]
fn without_rights_counters_around_late_wakes_are_what_is_left() {
    if !skip::need("root", skip::is_root()) || !skip::need_program("setpriv") {
        return;
    }
    let dir = crate::Dir::new("blame-counters");
    let args = ["blame", "-d", "2s", "--over", "1us", "--json", "-"];
    let out = crate::as_user(&dir).args(args).output().expect("it starts");
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let result = json(&out);
    add_up(&result);
    let fallback = result["fallback"].as_str().expect("why").to_owned();
    assert!(["root", "CAP_PERFMON", "tracefs"].iter().any(|word| fallback.contains(word)));
    assert!(fallback.contains("coincided") && !fallback.contains('\n'), "{fallback}");
    let warnings = result["warnings"].as_array().expect("warnings");
    assert!(warnings.iter().any(|warning| *warning == Value::String(fallback.clone())), "{result}");
    assert!(result["runs"][0]["late"].as_u64().is_some_and(|late| late > 0), "{result}");
    assert!(!worst(&result).is_empty());
    for wake in worst(&result) {
        assert_eq!(wake["parts"].as_array().map(Vec::len), Some(1), "{wake}");
        assert!(wake["counters"]["length_ns"].as_u64().is_some_and(|ns| ns > 0), "{wake}");
    }
    assert!((sum(&result["causes"], "share_of_late") - 1.0).abs() < 1e-6, "{result}");
    for cause in result["causes"].as_array().expect("causes") {
        assert_eq!(cause["rule"], "coincided", "{cause}");
        assert!(cause["confidence"].as_f64().is_some_and(|sure| sure <= 0.4), "{cause}");
        assert!(cause["name"].as_str().is_some_and(|name| name.contains("coincided")), "{cause}");
    }
    let out = crate::as_user(&dir).args(["blame", "-d", "60s", "--stop-over", "100ns"]).output();
    let out = out.expect("it starts");
    assert_eq!(out.status.code(), Some(1), "{}", stderr(&out));
    let page = stdout(&out);
    assert!(page.contains("--stop-over"), "{page}");
    // What is missing comes first, and the way to get it.
    let first = page.split("No cause can be ").nth(1).unwrap_or_else(|| panic!("{page}"));
    let first = first.split("\n\n").next().unwrap_or_default().replace("\n  ", " ");
    assert!(first.contains("for the kernel's events may not be recorded: "), "{page}");
    assert!(crate::names_what_forbids_recording(&first), "{page}");
    assert!(!page.contains("What helps"), "{page}");
}

#[test]
fn what_counters_cannot_tell_is_refused_with_the_setting() {
    if !skip::need("root", skip::is_root()) || !skip::need_program("setpriv") {
        return;
    }
    let dir = crate::Dir::new("blame-user");
    let pid = std::process::id().to_string();
    let refused: [&[&str]; 3] = [&["--all"], &["--pid", &pid], &["--text", "/dev/null"]];
    for args in refused {
        let out = crate::as_user(&dir).args(["blame", "-d", "500ms"]).args(args).output();
        let out = out.expect("it starts");
        assert_eq!(out.status.code(), Some(2), "{args:?}: {}", stdout(&out));
        let words = stderr(&out);
        assert!(crate::names_what_forbids_recording(&words), "{words}");
        assert_eq!(words.lines().count(), 1, "{words}");
    }
}
