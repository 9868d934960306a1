//! `punctual measure periodic`, for real.
//!
//! The system calls of a loop: between its second cycle and its last, none but the wait's own.
//!
//! By strace, from outside: whatever the code says, this is what the kernel saw.

use std::collections::HashMap;
use std::fs;
use std::process::Command;

use punctual_testkit::skip;

use crate::{Dir, PROGRAM, json, json_file, punctual, refused, run, stderr, stdout};

#[test]
fn the_result_has_the_keys_of_the_schema_and_its_numbers_add_up() {
    let out = run(["measure", "periodic", "--duration", "600ms", "--json", "-", "--keep-cold"]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let result = json(&out);
    assert_eq!(result["schema"], 2);
    assert_eq!(result["tool"], "punctual");
    assert_eq!(result["experiment"], "measure periodic");
    assert_eq!(result["incomplete"], false);
    assert!(result["started_at"].as_str().is_some_and(|at| at.ends_with('Z')));
    for fact in ["cpu_model", "cpus", "kernel", "preemption", "virtualization", "clocksource"] {
        assert!(result["machine"][fact]["origin"].is_string(), "{fact}");
    }
    let run = &result["runs"][0];
    assert_eq!(run["name"], "idle");
    assert_eq!(run["setup"]["period_ns"], 1_000_000);
    assert_eq!(run["setup"]["phase_ns"], 0);
    assert_eq!(run["setup"]["wait"], "sleep");
    let cycles = run["cycles"].as_u64().expect("a count");
    let missed = run["missed"].as_u64().expect("a count");
    assert!(cycles > 0 && cycles + missed <= 600, "{cycles} + {missed}");
    let lateness = |key: &str| run["lateness_ns"][key].as_f64().expect(key);
    assert!(lateness("min") <= lateness("p50") && lateness("p50") <= lateness("p90"));
    assert!(lateness("p90") <= lateness("p99") && lateness("p99") <= lateness("max"));
    assert!(run["lateness_ns"]["p99_99"].is_null(), "600 cycles cannot support it");
    let buckets = run["histogram"]["buckets"].as_array().expect("buckets");
    let counted: u64 = buckets.iter().map(|b| b[2].as_u64().expect("a count")).sum();
    let [overflow, unknown] =
        ["overflow", "unknown"].map(|key| run["histogram"][key].as_u64().expect("a count"));
    let unrecorded = run["unrecorded"].as_u64().expect("a count");
    assert_eq!(counted + overflow + unknown, cycles + missed + unrecorded, "every release");
    let left_out = run["wakes"]["left_out"].as_u64().expect("a count");
    assert_eq!(left_out, missed + unrecorded);
    assert!(run["wakes"]["max"].as_f64() <= run["lateness_ns"]["max"].as_f64());
    assert!(run["grid"]["jitter_pp_ns"].as_f64().expect("fitted") >= 0.0);
    assert!(run["floor_ns"].as_f64().expect("measured") > 0.0);
    assert!(run["claims"].as_array().expect("claims").iter().any(|c| c["level"] == "L0"));
    assert!(run["response_ns"].is_null() && run.get("execution_ns").is_none());
    assert_eq!(result["verdict"]["ok"], true);
}

#[test]
fn two_periods_on_one_cpu_run_rate_monotonic_at_once() {
    let out =
        run(["measure", "periodic", "--period", "5ms,500us", "--duration", "500ms", "--json", "-"]);
    let result = json(&out);
    let runs = result["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 2);
    assert_eq!(runs[0]["setup"]["period_ns"], 500_000);
    assert_eq!(runs[1]["setup"]["period_ns"], 5_000_000);
    if runs[0]["setup"]["policy"] == "SCHED_FIFO" {
        assert_eq!(runs[0]["setup"]["priority"], 90);
        assert_eq!(runs[1]["setup"]["priority"], 89);
    }
    assert!(runs.iter().all(|run| run["cycles"].as_u64().is_some_and(|n| n > 0)));
}

#[test]
fn a_spin_states_its_stalls_its_price_and_its_phase() {
    // Others of its priority, which it does not preempt, may have its CPU for a while.
    let mut load = 0.0;
    for duration in ["300ms", "3s", "20s"] {
        let args = ["--wait", "spin", "--phase", "50us", "--duration", duration, "--json", "-"];
        let out = run(["measure", "periodic"].into_iter().chain(args));
        let result = json(&out);
        let run = &result["runs"][0];
        assert_eq!(run["setup"]["phase_ns"], 50_000);
        assert!(run["stalled"].is_u64());
        load = run["cpu_load"].as_f64().expect("measured");
        assert!(load > 0.0 && load <= 1.0, "{load}");
        if load > 0.1 || run["setup"]["policy"] != "SCHED_FIFO" {
            return;
        }
    }
    panic!("a loop that spins used {load} of its CPU in 20 s");
}

#[test]
fn a_load_says_its_rate() {
    let out =
        run(["measure", "periodic", "--load", "cpu,syscall", "--duration", "1s", "--json", "-"]);
    let result = json(&out);
    let loads = result["runs"][0]["loads"].as_array().expect("loads").clone();
    assert_eq!(loads.len(), 2, "{loads:?}");
    assert_eq!(loads[0]["unit"], "polygons/s");
    for load in loads {
        assert!(load["rate"].as_f64().expect("a rate") > 0.0, "{load}");
    }
}

#[test]
fn a_limit_makes_it_a_gate_and_an_unsupported_quantile_is_open() {
    let args = |limit| ["measure", "periodic", "--duration", "300ms", "--limit", limit];
    let holds = run(args("max<100s"));
    assert_eq!(holds.status.code(), Some(0), "{}", stderr(&holds));
    assert!(stdout(&holds).contains("holds"));
    let fails = run(args("max<1ns"));
    assert_eq!(fails.status.code(), Some(1));
    assert!(stdout(&fails).contains("FAILS"));
    let unsupported = run(args("p99.99<100s"));
    assert_eq!(unsupported.status.code(), Some(3));
    let page = stdout(&unsupported);
    assert!(page.contains("p99.99") && page.contains("OPEN"), "{page}");
}

#[test]
fn json_alone_goes_to_standard_output_or_beside_the_page() {
    let dir = Dir::new("json");
    let file = dir.path("result.json");
    let out = run([
        "measure",
        "periodic",
        "--duration",
        "200ms",
        "--json",
        file.to_str().expect("UTF-8"),
    ]);
    assert!(stdout(&out).contains("lateness"), "{}", stdout(&out));
    assert_eq!(json_file(&file)["schema"], 2);
}

#[test]
fn a_file_beyond_its_limit_loses_neither_numbers_nor_what_was_written() {
    let dir = Dir::new("full");
    let file = dir.path("samples");
    // 100 or 200 KiB, as the shell counts: the header and a second of samples fit; ten do not, even
    // where the machine is so busy that most releases are missed.
    let script = "ulimit -f 200; exec \"$0\" \"$@\"";
    let out = Command::new("sh")
        .args(["-c", script])
        .arg(PROGRAM)
        .args(["measure", "periodic", "--period", "200us", "--duration", "10s", "--samples"])
        .arg(&file)
        .output()
        .expect("sh starts");
    assert!(stdout(&out).contains("lateness"), "{}", stdout(&out));
    let errors = stderr(&out);
    assert_eq!(out.status.code(), Some(2), "{errors}");
    assert!(errors.contains("ends early"), "{errors}");
    let analysed = run(["analyse", file.to_str().expect("UTF-8"), "--json", "-"]);
    let result = json(&analysed);
    assert_eq!(result["incomplete"], true);
    assert!(fs::metadata(&file).expect("written").len() <= 200 * 1024);
}

#[test]
fn samples_of_which_not_even_the_first_fit_leave_the_older_file() {
    let dir = Dir::new("none-fit");
    let file = dir.path("samples");
    fs::write(&file, "an earlier one").expect("writable");
    // The header fits; a block of 1024 samples, which the first 0.2 s have, does not.
    let script = "ulimit -f 20; exec \"$0\" \"$@\"";
    let out = Command::new("sh")
        .args(["-c", script])
        .arg(PROGRAM)
        .args(["measure", "periodic", "--period", "20us", "--duration", "1s", "--samples"])
        .arg(&file)
        .output()
        .expect("sh starts");
    let errors = stderr(&out);
    assert_eq!(out.status.code(), Some(2), "{errors}");
    assert!(stdout(&out).contains("lateness"), "{}", stdout(&out));
    assert!(errors.contains("not written, because writing the first samples failed"), "{errors}");
    assert!(!errors.contains("ends early") && !errors.contains("nothing was recorded"), "{errors}");
    assert_eq!(fs::read_to_string(&file).expect("there"), "an earlier one");
    assert_eq!(fs::read_dir(&dir.0).expect("there").count(), 1);
}

#[test]
fn a_recording_is_not_replaced_without_a_word() {
    let dir = Dir::new("replaced");
    let file = dir.path("night.punctual");
    let said = || {
        let file = file.to_str().expect("UTF-8");
        let out = run(["measure", "periodic", "--duration", "100ms", "--samples", file]);
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        stderr(&out).contains("night.punctual: a recording is there, which this one replaces")
    };
    assert!(!said());
    assert!(said());
    fs::write(&file, "no recording").expect("writable");
    assert!(!said());
}

#[test]
fn an_offline_or_unknown_cpu_is_refused() {
    refused(&run(["measure", "periodic", "--cpu", "700"]), &["700"]);
}

#[test]
fn a_load_that_does_not_start_leaves_no_file_and_takes_none_away() {
    let dir = Dir::new("no-load");
    let (samples, result) = (dir.path("samples"), dir.path("result.json"));
    let measure = || {
        let mut command = punctual();
        command.args(["measure", "periodic", "--duration", "300ms", "--load", "disk", "--json"]);
        command.arg(&result).arg("--samples").arg(&samples);
        // The load writes there.
        command.env("TMPDIR", dir.path("missing")).output().expect("the program starts")
    };
    refused(&measure(), &["disk", "missing"]);
    assert!(!samples.exists() && !result.exists());
    fs::write(&result, "an earlier one").expect("writable");
    refused(&measure(), &["disk", "missing"]);
    assert_eq!(fs::read_to_string(&result).expect("readable"), "an earlier one");
}

/// Lines of an strace log by thread: `TID call(…`.
fn by_thread(log: &str) -> HashMap<&str, Vec<&str>> {
    let mut calls: HashMap<&str, Vec<&str>> = HashMap::new();
    for line in log.lines() {
        if let Some((tid, rest)) = line.split_once(' ') {
            // A call that another thread's interrupted in the log is finished in a second line.
            let call = rest.trim_start().trim_start_matches("<... ");
            calls.entry(tid).or_default().push(call.split(['(', ' ']).next().unwrap_or(call));
        }
    }
    calls
}

#[test]
fn a_sleeping_loop_makes_no_system_call_but_its_sleep() {
    if !skip::need_program("strace") {
        return;
    }
    let dir = Dir::new("syscalls");
    let log = dir.path("log");
    // A traced loop that others keep from its CPU misses most of its releases in a second.
    for duration in ["1s", "10s", "60s"] {
        let traced = Command::new("strace")
            .args(["-f", "-qq", "-e", "signal=none", "-o"])
            .arg(&log)
            .arg(PROGRAM)
            .args(["measure", "periodic", "--period", "2ms", "--duration", duration])
            .output()
            .expect("strace starts");
        let may_trace = traced.status.code() == Some(0) || log.is_file();
        if !skip::need("the right to trace (ptrace)", may_trace) {
            return;
        }
        let text = fs::read_to_string(&log).unwrap_or_default();
        let threads = by_thread(&text);
        let mut loop_calls = loop_threads(&text).into_iter().filter_map(|tid| threads.get(tid));
        let Some(calls) = loop_calls.find(|calls| is_loop(calls)) else { continue };
        let sleeps: Vec<usize> =
            (0..calls.len()).filter(|&index| calls[index] == "clock_nanosleep").collect();
        let between = &calls[sleeps[1]..sleeps[sleeps.len() - 1]];
        let more: Vec<_> = between.iter().filter(|&&call| call != "clock_nanosleep").collect();
        assert!(more.is_empty(), "{more:?}");
        return;
    }
    panic!("no loop of more than 300 cycles in 60 s");
}

/// The threads that are named as loops. The cost of a wake is measured on another one, which sleeps
/// too, and asks for its CPU time meanwhile.
fn loop_threads(log: &str) -> Vec<&str> {
    let names = log.lines().filter(|line| line.contains("PR_SET_NAME, \"punctual-loop\""));
    names.filter_map(|line| line.split_once(' ').map(|(tid, _)| tid)).collect()
}

/// True for the calls of a thread that asked for a policy and slept often.
fn is_loop(calls: &[&str]) -> bool {
    let sleeps = calls.iter().filter(|&&call| call == "clock_nanosleep").count();
    calls.contains(&"sched_setattr") && sleeps > 300
}

#[test]
fn every_experiment_takes_the_facts_of_a_captured_machine_and_says_so() {
    let machine =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/machines/arm64-preempt-rt-4cpu");
    for line in [
        "accuracy --duration 100ms",
        "executive --duration 100ms --tasks 1 --policy rr --priority 7",
        "response --duration 100ms",
        "timer --duration 100ms --background none --policy other",
        "work --duration 100ms",
    ] {
        let args = ["measure"].into_iter().chain(line.split(' '));
        let out = run(args.chain(["--root", machine, "--json", "-"]));
        assert_eq!(out.status.code(), Some(0), "{line}: {}", stderr(&out));
        let result = json(&out);
        assert_eq!(result["machine"]["preemption"]["value"], "PREEMPT_RT", "{line}");
        let warnings = result["warnings"].to_string();
        assert!(warnings.contains("the facts come from"), "{line}: {warnings}");
    }
    let refused_policy = run(["measure", "executive", "--policy", "deadline"]);
    refused(&refused_policy, &["--policy", "deadline"]);
}
