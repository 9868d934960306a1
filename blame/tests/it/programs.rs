//! Threads of one program are one cause, and those of the measurement itself are no strangers.

use punctual_blame::blame::Blame;
use punctual_blame::cause::CauseKind;
use punctual_blame::config::Platform;
use punctual_blame::outcome::BlameOutcome;
use punctual_blame::programs::{ProgramOwner, ThreadProgram};
use punctual_trace::event::{ShortName, TaskName};

use crate::scenario::{Scenario, US, assert_exact, config, config_of, hog, run, servo, task};

/// Late wakes behind each of these threads, one after the other, each `rounds` times.
fn behind(tasks: &[TaskName], rounds: usize) -> Scenario {
    let mut scenario = Scenario::new();
    scenario.normals(40);
    for task in std::iter::repeat_n(tasks, rounds).flatten() {
        let release = scenario.sleep(*task);
        scenario.fire(release + 5 * US).timer_exit(release + 10 * US, 0);
        scenario.switch(release + 300 * US, 0, 1, servo());
        scenario.normal();
    }
    scenario
}

/// The outcome where these threads belong to these programs.
fn judged(scenario: &Scenario, programs: &[(TaskName, ThreadProgram)]) -> BlameOutcome {
    let mut blame = Blame::new(config());
    for (task, program) in programs {
        blame.set_program(task.tid, *program);
    }
    scenario.sorted().iter().for_each(|event| blame.push(event));
    let outcome = blame.finish();
    assert_exact(&outcome);
    outcome
}

fn program(pid: u32, name: &str, owner: ProgramOwner) -> ThreadProgram {
    ThreadProgram { pid, name: ShortName::new(name.as_bytes()), owner }
}

#[test]
fn threads_of_one_program_are_one_row_with_their_number() {
    let threads = [task("rustc", 500, 2), task("opt cgu.0", 501, 2), task("opt cgu.1", 502, 2)];
    let scenario = behind(&[threads[0], threads[1], threads[2], hog()], 4);
    let rustc = program(500, "rustc", ProgramOwner::Stranger);
    let outcome = judged(&scenario, &threads.map(|task| (task, rustc)));
    let rows: Vec<_> = outcome.table.rows.iter().take(2).collect();
    assert_eq!(rows[0].name, "rustc (priority 97, 3 threads) ran above");
    assert_eq!((rows[0].wakes, rows[0].touched, rows[0].culprits.count()), (12, 12, 3));
    assert_eq!(rows[0].culprits.processes(), [500]);
    assert_eq!(rows[0].family, "rustc (priority 97) ran above");
    assert_eq!(rows[1].name, "hog (priority 97, 200) ran above");
    // Nobody says whose they are: three rows of their own.
    let unknown = judged(&scenario, &[]);
    let names = unknown.table.rows.iter().filter(|row| row.wakes == 4).count();
    assert_eq!(names, 4, "{}", unknown.table.sentence);
    // Each wake names the thread that it was.
    let named = outcome.worst.iter().map(|wake| outcome.main_name(wake));
    assert!(named.into_iter().any(|name| name == "opt cgu.1 (priority 97, 502) ran above"));
}

#[test]
fn the_sentence_names_the_largest_of_several_threads() {
    let threads = [task("rustc", 500, 2), task("opt cgu.0", 501, 2)];
    let scenario = behind(&[threads[0], threads[1], threads[1], threads[1]], 4);
    let rustc = program(500, "rustc", ProgramOwner::Stranger);
    let outcome = judged(&scenario, &threads.map(|task| (task, rustc)));
    let sentence = &outcome.table.sentence;
    let named = "rustc (priority 97, 2 threads, 75 % by opt cgu.0 501) ran above on CPU 0";
    assert!(sentence.contains(named), "{sentence}");
    let largest = outcome.table.rows[0].culprits.largest(outcome.table.rows[0].time_ns);
    assert_eq!(largest.map(|largest| (largest.task.tid, largest.share)), Some((501, 0.75)));
    // One alone has no other.
    let alone = judged(&behind(&threads[..1], 12), &[(threads[0], rustc)]);
    assert!(alone.table.sentence.contains(": rustc (priority 97, 500) ran above on CPU 0"));
}

#[test]
fn a_name_that_begins_alike_is_another_program() {
    let threads = [task("worker-1", 500, 2), task("worker-2", 501, 2)];
    let scenario = behind(&threads, 6);
    let programs = [
        (threads[0], program(499, "alpha", ProgramOwner::Stranger)),
        (threads[1], program(498, "beta", ProgramOwner::Stranger)),
    ];
    let outcome = judged(&scenario, &programs);
    let names: Vec<_> = outcome.table.rows.iter().take(2).map(|row| row.name.as_str()).collect();
    let expected =
        ["worker-1 (priority 97, 500) ran above", "worker-2 (priority 97, 501) ran above"];
    assert_eq!(names, expected);
}

#[test]
fn threads_in_wakes_on_time_are_not_counted() {
    let threads = [task("rustc", 500, 2), task("opt cgu.0", 501, 2)];
    let mut scenario = behind(&threads[..1], 12);
    for _ in 0..12 {
        let release = scenario.sleep(threads[1]);
        scenario.fire(release + 5 * US).timer_exit(release + 10 * US, 0);
        scenario.switch(release + 20 * US, 0, 1, servo());
    }
    let rustc = program(500, "rustc", ProgramOwner::Stranger);
    let outcome = judged(&scenario, &threads.map(|task| (task, rustc)));
    assert_eq!(outcome.table.rows[0].name, "rustc (priority 97, 500) ran above");
}

#[test]
fn threads_of_the_measurement_are_no_strangers() {
    let other = task("punctual-loop", 600, 2);
    let scenario = behind(&[other], 12);
    let own = program(599, "punctual", ProgramOwner::Measurement);
    let outcome = judged(&scenario, &[(other, own)]);
    let row = &outcome.table.rows[0];
    let name = "another loop of this measurement (punctual-loop, priority 97, 600) ran above";
    assert_eq!((row.cause.kind(), row.name.as_str()), (CauseKind::HigherPriority, name));
    assert!(row.advice.text.contains("--cpu") && !row.advice.text.contains("chrt"));
    assert_eq!(row.advice.rule, None);
    let wake = &outcome.worst[0];
    assert_eq!(outcome.main_name(wake), name);
    let parts: Vec<_> =
        wake.parts.iter().map(|part| outcome.part_name(wake, &part.cause)).collect();
    assert!(parts.iter().any(|part| part == name), "{parts:?}");
    // A loop of somebody else's measurement is a thread like any other.
    let strange = program(599, "punctual", ProgramOwner::Stranger);
    let row = judged(&scenario, &[(other, strange)]).table.rows[0].clone();
    assert!(row.advice.text.contains("chrt"), "{}", row.advice.text);
}

#[test]
fn what_the_recording_itself_took_is_no_share_of_the_machine() {
    let reader = task("punctual-trace", 600, 2);
    let own = program(599, "punctual", ProgramOwner::Measurement);
    let judged = |scenario: &Scenario, owner| {
        let own = ThreadProgram { owner, ..own };
        judged(scenario, &[(reader, own)])
    };
    let outcome = judged(&behind(&[reader, hog()], 8), ProgramOwner::Measurement);
    let row = outcome.table.rows.iter().find(|row| row.is_of_recording()).expect("its row");
    assert_eq!(row.name, "the recording itself (punctual-trace, priority 97, 600) ran above");
    assert!(!row.advice.text.contains("chrt") && row.advice.rule.is_none(), "{:?}", row.advice);
    let sentence = &outcome.table.sentence;
    // Half of the time is the reader's: of the rest nearly all is the hog's.
    let first = "94 % of the 2.48 ms lost by the 16 wakes later than 50 µs: hog (priority 97, 200)";
    assert!(sentence.starts_with(first), "{sentence}");
    assert!(sentence.contains("the recording itself took 2.32 ms (48 % of all)"), "{sentence}");
    let shares: f64 = outcome.table.rows.iter().map(|row| row.share_of_time).sum();
    assert!((shares - 1.0).abs() < 1e-9, "rows have all of it: {shares}");
    // The reader of another recording is somebody's thread.
    let strange = judged(&behind(&[reader, hog()], 8), ProgramOwner::Stranger);
    assert!(!strange.table.rows.iter().any(|row| row.is_of_recording()));
    assert!(!strange.table.sentence.contains("recording itself"), "{}", strange.table.sentence);
}

#[test]
fn what_is_kept_names_the_same_programs() {
    let threads = [task("rustc", 500, 2), task("opt cgu.0", 501, 2)];
    let own = task("punctual-watch", 600, 2);
    let scenario = behind(&[threads[0], threads[1], own], 4);
    let rustc = program(500, "rustc", ProgramOwner::Stranger);
    let measured = program(599, "punctual", ProgramOwner::Measurement);
    let programs = [(threads[0], rustc), (threads[1], rustc), (own, measured)];
    let outcome = judged(&scenario, &programs);
    let recall = outcome.recall(|_, _| true, |address| address);
    let recall = serde_json::from_str(&serde_json::to_string(&recall).expect("plain data"));
    let plain = config_of(|machine| machine.platform = Platform::Unknown);
    let again = run(&scenario.sorted(), plain.recalling(recall.expect("what was written")));
    assert_eq!(again.worst, outcome.worst);
    let names = |outcome: &BlameOutcome| -> Vec<String> {
        outcome.table.rows.iter().map(|row| row.name.clone()).collect()
    };
    assert_eq!(names(&again), names(&outcome));
    assert!(
        names(&outcome)[0].starts_with("rustc (priority 97, 2 threads)"),
        "{:?}",
        names(&outcome)
    );
}
