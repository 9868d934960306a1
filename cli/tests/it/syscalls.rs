//! The system calls of a loop: between its second cycle and its last, none but the wait's own.
//!
//! By strace, from outside: whatever the code says, this is what the kernel saw.

use std::collections::HashMap;
use std::fs;
use std::process::Command;

use crate::support::{Dir, punctual, stderr};
use punctual_testkit::skip;

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
    let out = Command::new("strace")
        .args(["-f", "-qq", "-e", "signal=none", "-o"])
        .arg(&log)
        .arg(punctual().get_program())
        .args(["measure", "periodic", "--period", "2ms", "--duration", "1s"])
        .output()
        .expect("strace starts");
    if !skip::need("the right to trace (ptrace)", out.status.code() == Some(0) || log.is_file()) {
        return;
    }
    let text = fs::read_to_string(&log).unwrap_or_default();
    let traced = by_thread(&text);
    let sleeps =
        |calls: &&Vec<&str>| calls.iter().filter(|&&call| call == "clock_nanosleep").count();
    // The loop asked for a policy and slept 500 times; the cost of recording is measured in 200.
    let is_loop = |calls: &&Vec<&str>| calls.contains(&"sched_setattr") && sleeps(calls) > 300;
    let loops: Vec<_> = traced.values().filter(is_loop).collect();
    assert_eq!(loops.len(), 1, "one loop of 500 cycles: {}", stderr(&out));
    let at: Vec<usize> =
        (0..loops[0].len()).filter(|&at| loops[0][at] == "clock_nanosleep").collect();
    let (second, last) = (at[1], at[at.len() - 1]);
    let others: Vec<_> =
        loops[0][second..last].iter().filter(|&&call| call != "clock_nanosleep").collect();
    assert!(others.is_empty(), "{others:?}");
}
