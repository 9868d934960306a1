//! `punctual check`, for real, in a few seconds.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use punctual_os::affinity;
use punctual_testkit::skip;

use crate::{
    Dir, KernelSetting, fits, json, json_file, names, only_result, punctual, refused, run,
    settings_of_this_machine, stderr, stdout, text, until,
};

#[test]
fn writes_a_result_and_samples_that_tell_the_same() {
    let dir = Dir::new("check");
    let results = dir.path("results");
    let results = results.to_str().expect("UTF-8");
    let out = run(["check", "--duration", "3s", "--results", results]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let page = stdout(&out);
    for line in ["lateness", "idle", "under load", "A loop that may be late", "next", "details"] {
        assert!(page.contains(line), "{line} in {page}");
    }
    let wide = page.lines().find(|line| line.chars().count() > 80 && !line.contains(results));
    assert_eq!(wide, None, "eighty columns, but for paths");
    let made = only_result(results.as_ref());
    let result = json_file(&made.join("result.json"));
    assert_eq!(result["experiment"], "check");
    let names: Vec<_> =
        result["runs"].as_array().expect("runs").iter().map(|run| run["name"].clone()).collect();
    assert_eq!(names, ["idle", "under load"]);
    assert!(!result["verdicts"].as_array().expect("verdicts").is_empty());
    assert!(result["recording"]["hot_ns"].as_f64().expect("measured") > 0.0);

    assert!(made.join("samples.punctual").is_file());
    let out = run(["analyse", made.to_str().expect("UTF-8"), "--json", "-"]);
    let again = json(&out);
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
    let facts = json(&out);
    assert_eq!(facts["preemption"]["value"], "PREEMPT_RT");
    let args =
        ["measure", "periodic", "--cpu", "0", "--duration", "100ms", "--json", "-", "--root"];
    let out = run(args.into_iter().chain([machine.to_str().expect("UTF-8")]));
    let result = json(&out);
    assert_eq!(result["machine"]["preemption"]["value"], "PREEMPT_RT");
    assert!(result["warnings"].to_string().contains("the facts come from"));
}

#[test]
fn says_first_what_was_measured_and_never_more() {
    let dir = Dir::new("check-brief");
    let results = dir.path("results");
    let results = results.to_str().expect("UTF-8");
    let args = ["check", "-d", "2s", "-p", "1ms,10ms", "--results", results];
    let out = run(args);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let page = stdout(&out);
    assert!(page.starts_with("1 kHz on CPU "), "{page}");
    fits(&page);
    let made = only_result(results.as_ref());
    let result = json_file(&made.join("result.json"));
    let loops = result["headline"]["loops"].as_array().expect("lines");
    assert_eq!(loops.len(), 2, "one a period: {loops:?}");
    for line in loops {
        let counts = line["counts"].as_str().expect("a sentence");
        let joined = page.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(joined.contains(counts), "{counts} in {page}");
    }
    // What did not run is not measured, whatever ran.
    for verdict in result["verdicts"].as_array().expect("verdicts") {
        let measured = [1e6, 1e7].contains(&verdict["period_ns"].as_f64().expect("a period"));
        let stands = verdict["stands"].as_str().expect("a word");
        assert_eq!(!["expected", "unmeasured"].contains(&stands), measured, "{verdict}");
        // Ten milliseconds for two seconds are too few cycles to show anything.
        assert!(stands != "shown" || verdict["period_ns"] == 1e6, "{verdict}");
    }
    let quiet = run(args.into_iter().chain(["-q"]));
    assert_eq!(stdout(&quiet).lines().count(), 2, "one line a loop: {}", stdout(&quiet));
    let long = run(["analyse", "-v", made.to_str().expect("UTF-8")]);
    for part in ["What can be claimed", "same data as other tools report"] {
        assert!(stdout(&long).contains(part), "{part} in {}", stdout(&long));
    }
}

#[test]
fn what_else_ran_on_the_cpu_is_named_where_it_was_to_be_idle() {
    let cpu = affinity::get(0).expect("known").iter().next().expect("one").to_string();
    let mut busy = Command::new("taskset");
    busy.args(["-c", &cpu, "sh", "-c", "ulimit -t 60; while :; do :; done"]);
    let mut busy = busy.spawn().expect("it starts");
    let out = run(["measure", "periodic", "-d", "3s", "--cpu", &cpu, "--json", "-"]);
    let quiet = run(["measure", "periodic", "-d", "2s", "--cpu", &cpu, "-q"]);
    busy.kill().expect("ours");
    busy.wait().expect("ours");
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let result = json(&out);
    let others = &result["runs"][0]["others"];
    assert!(others["share"].as_f64() > Some(0.05), "{others}");
    // Beside other tests more than that one ran.
    let most = others["threads"][0]["name"].as_str().expect("a name");
    let sentence = result["headline"]["not_idle"][0].as_str().expect("a sentence");
    assert!(sentence.starts_with("Not idle: others used at least "), "{sentence}");
    assert!(sentence.contains(&format!(" of CPU {cpu}: {most} ")), "{sentence}");
    assert!(stdout(&quiet).contains("Not idle: others used at least "), "{}", stdout(&quiet));
    // Under a load that was wanted nothing of the kind is said.
    let out = run(["measure", "periodic", "-d", "1s", "--load", "cpu", "--json", "-"]);
    let result = json(&out);
    assert!(result["runs"][0]["others"].is_null(), "{result}");
}

#[test]
fn who_has_the_cpu_of_a_loop_that_waits_is_named_though_it_ends_before_the_loop() {
    if !skip::need_fifo() {
        return;
    }
    let cpu = affinity::get(0).expect("known").iter().next().expect("one").to_string();
    let mut measured = punctual();
    measured.args(["measure", "periodic", "-d", "10s", "--cpu", &cpu, "--json", "-"]);
    let measured = measured.stdout(Stdio::piped()).stderr(Stdio::piped());
    let measured = measured.spawn().expect("it starts");
    let pid = measured.id().to_string();
    until("the loop", || stdout(&run(["sched", "show", &pid])).contains("SCHED_FIFO 90"));
    // Bursts, each of a process of its own, that no census at the end of the block finds.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(9) {
        let mut burst = punctual();
        burst.args(["sched", "run", "--fifo", "95", "--cpu", &cpu, "--"]);
        // Whatever becomes of this test, it ends.
        burst.args(["sh", "-c", "ulimit -t 2; while :; do :; done"]);
        let mut burst = burst.spawn().expect("it starts");
        let pid = burst.id().to_string();
        until("the burst", || stdout(&run(["sched", "show", &pid])).contains("SCHED_FIFO 95"));
        // In so long a burst a busy machine looks twice; between two the loop has its CPU.
        thread::sleep(Duration::from_millis(700));
        burst.kill().expect("ours");
        burst.wait().expect("ours");
        thread::sleep(Duration::from_millis(500));
    }
    let out = measured.wait_with_output().expect("it ends");
    let result = json(&out);
    let seen = &result["runs"][0]["kept_waiting"];
    assert!(seen["waited_ns"].as_u64() > Some(100_000_000), "{seen} {}", stderr(&out));
    let threads = seen["threads"].as_array().expect("threads");
    assert!(threads.iter().any(|thread| thread["name"] == "sh (SCHED_FIFO 95)"), "{seen}");
    // Beside other tests none may have had most of the time.
    if threads[0]["share"].as_f64() > Some(0.5) {
        let advice = result["headline"]["advice"].as_array().expect("advice");
        let first = advice.iter().find(|advice| advice["topic"] == "cause").expect("a cause");
        let text = first["text"].as_str().expect("words");
        assert!(text.contains(&format!(" had CPU {cpu} for ")), "{text}");
    }
}

#[test]
fn threads_above_the_loop_are_named_before_it_runs() {
    if !skip::need_fifo() {
        return;
    }
    let cpu = affinity::get(0).expect("known").iter().next().expect("one").to_string();
    let mut above = punctual();
    above.args(["sched", "run", "--fifo", "92", "--cpu", &cpu, "--", "sleep", "60"]);
    let mut above = above.spawn().expect("it starts");
    let is_there = || stdout(&run(["sched", "show"])).contains("SCHED_FIFO 92");
    until("the thread", is_there);
    let args = ["measure", "periodic", "-d", "300ms", "--cpu", &cpu];
    let out = run([&args[..], &["--json", "-"]].concat());
    let quiet = run([&args[..], &["-q"]].concat());
    let below = run([&args[..], &["--priority", "93"]].concat());
    above.kill().expect("ours");
    above.wait().expect("ours");
    let begins = format!("CPU {cpu} at priority 90, requested for the loop, or above: ");
    let is_named = |text: &str| {
        let line = text.lines().find(|line| line.contains(&begins)).unwrap_or_default();
        line.contains("sleep (") && line.contains("SCHED_FIFO 92")
    };
    assert!(is_named(&stderr(&out)), "{}", stderr(&out));
    let warnings = json(&out)["warnings"].to_string();
    assert!(is_named(&warnings), "{warnings}");
    assert!(!stderr(&quiet).contains("real-time threads"), "{}", stderr(&quiet));
    assert!(!stderr(&below).contains("sleep ("), "{}", stderr(&below));
}

#[test]
fn a_use_sets_its_periods_its_deadline_and_its_words() {
    let dir = Dir::new("check-use");
    let results = dir.path("results");
    let results = results.to_str().expect("UTF-8");
    let out = run(["check", "-d", "2s", "--for", "linuxcnc", "--results", results]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let page = stdout(&out);
    assert_eq!(page.matches("software stepping").count(), 1, "one answer: {page}");
    assert!(page.contains("base thread, 25 µs") && page.contains("servo thread, 1 ms"), "{page}");
    let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("late by 50 µs or a tenth of a longer period once in"), "{page}");
    // Each thread by its own.
    assert!(words.contains("over 50 µs late") && words.contains("over 100 µs late"), "{page}");
    assert!(!page.contains("not measured"), "its own periods alone: {page}");
    let own = ["--deadline", "50ms", "--miss", "1e-2", "--json", "-", "--results", results];
    let result = json(&run(["check", "-d", "1s", "--for", "1kHz"].into_iter().chain(own)));
    for verdict in result["verdicts"].as_array().expect("verdicts") {
        assert_eq!((&verdict["deadline_ns"], &verdict["p"]), (&5e7.into(), &1e-2.into()));
        let command = verdict["command"].as_str().unwrap_or("--deadline 50ms --miss 1e-2");
        assert!(command.contains("--deadline 50ms --miss 1e-2"), "{command}");
    }
    // A servo thread alone does not wait for a base thread.
    let out = run(["check", "-d", "1s", "--for", "mesa", "--results", results]);
    let page = stdout(&out);
    assert!(
        page.contains("servo thread, 1 ms on CPU") && !page.contains("base thread, "),
        "{page}"
    );
    assert!(!page.contains("software stepping"), "{page}");
    refused(&run(["check", "--for", "cnc"]), &["cnc", "linuxcnc", "1kHz"]);
    refused(&run(["check", "--for", "audio", "--period", "1ms"]), &["--for", "--period"]);
    // LinuxCNC's threads have the periods that its configuration says.
    let own = ["--for", "linuxcnc", "-p", "50us,2ms", "--results", results];
    let page = stdout(&run(["check", "-d", "2s"].into_iter().chain(own)));
    assert!(page.contains("base thread, 50 µs") && page.contains("servo thread, 2 ms"), "{page}");
    let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("over 50 µs late") && words.contains("over 200 µs late"), "{page}");
    let out = run(["check", "--for", "linuxcnc", "-p", "50us", "--results", results]);
    refused(&out, &["--period 50us", "--period 25us,1ms", "--for mesa"]);
}

#[test]
fn a_setting_that_somebody_else_changes_meanwhile_is_named_with_both_values() {
    const PATH: &str = "/proc/sys/vm/stat_interval";
    if !skip::need("root", skip::is_root()) {
        return;
    }
    let may_write = fs::OpenOptions::new().write(true).open(PATH).is_ok();
    if !skip::need_device("a writable /proc/sys", may_write) {
        return;
    }
    let _turn = settings_of_this_machine();
    let dir = Dir::new("setting-changed");
    let (results, samples) = (dir.path("results"), dir.path("samples"));
    let json = dir.path("result.json");
    // Where `check` keeps them is named after the time.
    let kept = || -> Option<PathBuf> {
        let made = results.is_dir().then(|| names(&results).pop()).flatten()?;
        Some(results.join(made).join("samples.punctual"))
    };
    let check = ["check", "--duration", "3s", "--results", text(&results)];
    let measure = ["measure", "periodic", "--duration", "3s", "--samples", text(&samples)];
    for args in [&check[..], &measure] {
        let setting = KernelSetting::of(PATH);
        let was = setting.before.trim_end().to_owned();
        let other = if was == "77" { "78" } else { "77" };
        let mut command = punctual();
        command.args(args).arg("--json").arg(&json).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().expect("it starts");
        until("samples", || {
            let file = if args == check { kept() } else { Some(samples.clone()) };
            file.is_some_and(|file| fs::metadata(file).is_ok_and(|meta| meta.len() > 0))
        });
        setting.set(other);
        let out = child.wait_with_output().expect("it ends");
        drop(setting);
        assert_eq!(out.status.code(), Some(0), "{args:?}: {}", stderr(&out));
        let warnings = json_file(&json)["warnings"].clone();
        let page = stdout(&out).split_whitespace().collect::<Vec<_>>().join(" ");
        for words in ["settings changed while it measured", "so the figures are of both"] {
            assert!(page.contains(words), "{args:?}: {words:?} in {page}");
            assert!(warnings.to_string().contains(words), "{args:?}: {words:?} in {warnings}");
        }
        let change = format!("vm.stat_interval was {was} and is {other}");
        assert!(page.contains(&change), "{args:?}: {change:?} in {page}");
        assert!(warnings.to_string().contains(&change), "{args:?}: {change:?} in {warnings}");
    }
}

#[test]
fn a_measurement_without_a_cycle_is_open() {
    let dir = Dir::new("check-unmeasured");
    let results = text(&dir.path("results")).to_owned();
    let out = run(["check", "-d", "1ms", "--results", &results]);
    let page = stdout(&out);
    assert_eq!(out.status.code(), Some(3), "{page}");
    assert!(page.contains("nothing was measured: no run has a cycle"), "{page}");
}

#[test]
fn an_interruption_before_the_first_cycle_leaves_no_empty_directory() {
    let dir = Dir::new("check-early-stop");
    let results = dir.path("results");
    let mut check = punctual();
    check.args(["check", "-d", "60s", "--results", text(&results)]);
    let mut check = check.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    // Its own directory is made just before it measures.
    let made = || fs::read_dir(&results).ok()?.flatten().next().map(|entry| entry.path());
    until("its directory", || made().is_some());
    let pid = check.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().is_ok_and(|kill| kill.success()));
    check.wait().expect("it ends");
    if let Some(kept) = made() {
        let result = json_file(&kept.join("result.json"));
        assert_eq!(result["ended_by"], "interrupt", "{result}");
        let is_measured = result["runs"][0]["lateness_ns"]["max"].is_number();
        assert_eq!(results.join("latest").exists(), is_measured, "{result}");
    }
}

#[test]
fn the_latest_result_is_one_that_measured_a_cycle() {
    let dir = Dir::new("check-latest");
    let results = dir.path("results");
    let check = |length| run(["check", "-d", length, "--results", text(&results)]);
    let latest = || fs::read_link(results.join("latest")).ok();
    let nothing = stderr(&check("1ms"));
    assert!(nothing.contains("nothing was measured: the result is kept in "), "{nothing}");
    assert_eq!(latest(), None);
    let measured = check("2s");
    assert!(!stderr(&measured).contains("nothing was measured"), "{}", stderr(&measured));
    let kept = latest().expect("a link");
    check("1ms");
    assert_eq!(latest(), Some(kept), "it stays");
}
