//! Signals stop loops, and nothing of what they did is lost.
//!
//! In processes of their own: each test starts this program again as the one that is signalled.
#![allow(clippy::disallowed_macros, reason = "a program prints what a library must not")]

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use punctual::{End, Executive, Loop, Period, Phase, RtThread, Summary, Task, WaitPolicy};
use punctual_os::pidfd;
use punctual_os::process::EndSignal;

/// Names the case that the started program is to run.
const CASE: &str = "PUNCTUAL_SIGNAL_CASE";
/// The cycle after which it says that it runs.
const READY: u64 = 20;

fn thread() -> RtThread {
    RtThread::any().wait(WaitPolicy::sleep())
}

fn period() -> Period {
    Period::hz(1_000).expect("in range")
}

/// Reports that the process may be signalled now.
fn ready(cycles: u64) {
    if cycles == READY {
        println!("ready");
    }
}

/// The counts are those of the body, and a request ended the loop.
fn assert_whole(summary: &Summary, bodies: u64) {
    assert_eq!(summary.end, End::Stopped);
    assert_eq!(summary.tasks[0].counts.ran, bodies);
    assert!(bodies >= READY, "{bodies}");
    println!("whole");
}

/// Runs until a signal stops it, where the environment says so: whether it did.
fn is_case(case: &str) -> bool {
    if std::env::var(CASE).is_ok_and(|named| named == case) {
        punctual_os::process::alarm_s(60);
        true
    } else {
        false
    }
}

/// Starts this program again with the test of this name alone, signals it once it runs, and sees
/// that it ended well.
fn signalled(case: &str, how: EndSignal) {
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args([case, "--exact", "--nocapture"])
        .env(CASE, case)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let output = BufReader::new(child.stdout.take().expect("piped"));
    let mut lines = output.lines().map(|line| line.expect("text"));
    assert!(lines.any(|line| line.ends_with("ready")), "it never ran");
    let process = pidfd::open(child.id().cast_signed()).expect("it lives");
    pidfd::end(&process, how).expect("it can be signalled");
    let is_whole = lines.any(|line| line == "whole");
    lines.for_each(drop);
    let status = child.wait().expect("ours");
    assert!(is_whole && status.success(), "{status}");
}

#[test]
fn a_loop_ends_at_ctrl_c_with_its_counts() {
    let case = "a_loop_ends_at_ctrl_c_with_its_counts";
    if !is_case(case) {
        return signalled(case, EndSignal::Interrupt);
    }
    let builder = Loop::builder(period()).phase(Phase::Zero).thread(thread());
    let mut single = builder.start().expect("it starts");
    let handle = single.handle();
    handle.stop_on_signals().expect("there is room");
    let mut bodies = 0;
    while single.wait().is_some() {
        bodies += 1;
        ready(bodies);
    }
    assert!(handle.stopped());
    assert_whole(&single.finish(), bodies);
    // Whoever starts another one after the signal finds it stopped.
    let builder = Loop::builder(period()).phase(Phase::Zero).thread(thread());
    let mut late = builder.start().expect("it starts");
    late.handle().stop_on_signals().expect("there is room");
    assert!(late.wait().is_none());
    // And one that says so before its setup has none.
    let builder = Loop::builder(period()).thread(RtThread::any()).stop_on_signals();
    let mut late = builder.start().expect("it starts");
    assert!(late.wait().is_none());
    assert!(late.wait_status().learned.is_some_and(|learned| learned.cycles == 0));
    assert_eq!(late.finish().end, End::Stopped);
}

#[test]
fn an_executive_ends_at_a_signal_with_its_counts() {
    let case = "an_executive_ends_at_a_signal_with_its_counts";
    if !is_case(case) {
        return signalled(case, EndSignal::Terminate);
    }
    let mut bodies = 0;
    let builder = Executive::builder().phase(Phase::Zero).thread(thread());
    let builder = builder.task(Task::every("servo", period()), |_| {
        bodies += 1;
        ready(bodies);
    });
    let (executive, _ids) = builder.build().expect("it can be");
    executive.stop_handle().stop_on_signals().expect("there is room");
    let summary = executive.run().expect("it starts");
    assert_whole(&summary, bodies);
}
