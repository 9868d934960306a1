//! Threads that ran before the first switch, and threads that still wait at the end.

use punctual_blame::blame::Blame;
use punctual_blame::cause::CauseKind;
use punctual_blame::config::{BlameConfig, LateThreshold, RecordingBegin, RunnableThread};
use punctual_blame::outcome::BlameOutcome;
use punctual_blame::release::ReleaseAnchor;
use punctual_trace::event::{TaskName, TraceEvent, TraceKind};

use crate::scenario::{
    MS, Scenario, TIMER, US, WAKEUP, assert_exact, cat, config, hog, idle, run, servo, task,
};

const BEGIN: u64 = 9 * MS;

/// CPU 0 belongs to the hog, the servo's waking comes from CPU 1, where it was before.
fn woken_behind_the_hog(release: u64) -> Scenario {
    let mut scenario = Scenario::on([hog(), servo()]);
    scenario.arm(BEGIN + 10 * US, 1, release);
    scenario.switch(BEGIN + 12 * US, 1, 1, idle());
    scenario.timer_entry(release + 5 * US, 1);
    scenario.expire(release + 6 * US, 1, TIMER, WAKEUP);
    scenario.wake(release + 7 * US, 1, servo(), 0);
    scenario.timer_exit(release + 9 * US, 1);
    scenario
}

fn beginning(runnable: &[TaskName]) -> RecordingBegin {
    let runnable = runnable.iter().map(|&task| RunnableThread { task, cpu: 0 });
    RecordingBegin { at_ns: BEGIN, runnable: runnable.collect() }
}

fn begun(beginning: &RecordingBegin, events: &[TraceEvent], config: BlameConfig) -> BlameOutcome {
    let mut blame = Blame::new(config);
    blame.begin(beginning);
    events.iter().for_each(|event| blame.push(event));
    let outcome = blame.finish();
    assert_exact(&outcome);
    outcome
}

/// Of the only late wake, the time behind the hog, and the name of that.
fn behind_the_hog(outcome: &BlameOutcome) -> (u64, String) {
    assert_eq!(outcome.table.late, 1, "{}", outcome.table.sentence);
    let row = &outcome.table.rows[0];
    assert_eq!(row.cause.kind(), CauseKind::HigherPriority, "{}", outcome.table.sentence);
    (row.time_ns, row.name.clone())
}

#[test]
fn whoever_the_first_switch_ends_ran_since_the_beginning() {
    let mut scenario = woken_behind_the_hog(10 * MS);
    // Nothing of CPU 0 before.
    scenario.switch(14 * MS, 0, 1, servo());
    let outcome = scenario.run(config());
    let (time_ns, name) = behind_the_hog(&outcome);
    assert_eq!((time_ns, name.as_str()), (4 * MS - 7 * US, "hog (priority 97, 200) ran above"));
    let row = &outcome.table.rows[0];
    assert!(row.evidence.contains("a later event of its CPU shows who ran"), "{}", row.evidence);
    assert!((row.confidence - 0.9).abs() < 1e-3, "it is inferred: {}", row.confidence);
    assert!(outcome.table.rows.iter().all(|row| row.cause.kind() != CauseKind::Unexplained));
}

#[test]
fn what_happens_after_the_first_event_is_no_inference() {
    let mut scenario = woken_behind_the_hog(10 * MS);
    scenario.timer_entry(BEGIN + 500 * US, 0).timer_exit(BEGIN + 505 * US, 0);
    scenario.switch(14 * MS, 0, 1, servo());
    let outcome = scenario.run(config());
    assert_eq!(behind_the_hog(&outcome).0, 4 * MS - 7 * US);
    let row = &outcome.table.rows[0];
    assert!(!row.evidence.contains("when the recording began"), "{}", row.evidence);
    assert!((row.confidence - 0.99).abs() < 1e-3, "{}", row.confidence);
}

#[test]
fn a_loss_tells_nothing_of_what_was_before() {
    let mut scenario = woken_behind_the_hog(10 * MS);
    scenario.event(12 * MS, 0, TraceKind::Lost { count: 3 });
    scenario.switch(14 * MS, 0, 1, servo());
    let outcome = scenario.run(config());
    assert_eq!((outcome.table.wakes, outcome.threads[0].unseen.wakes), (0, 1));
    assert!(outcome.table.rows.is_empty(), "{}", outcome.table.sentence);
    assert!(outcome.table.sentence.contains("No wake was seen: "), "{}", outcome.table.sentence);
}

#[test]
fn a_wait_that_does_not_end_is_finished_once_and_read_again_as_it_was() {
    let mut scenario = woken_behind_the_hog(10 * MS);
    scenario.timer_entry(12 * MS, 0).timer_exit(12 * MS + 5 * US, 0);
    scenario.timer_entry(16 * MS, 0).timer_exit(16 * MS + 5 * US, 0);
    let events = scenario.sorted();
    let mut blame = Blame::new(config());
    events.iter().for_each(|event| blame.push(event));
    while blame.take_finished().is_some() {}
    blame.end_waits();
    let finished = blame.take_finished().expect("it waits since 6 ms");
    assert_eq!((finished.release_ns, finished.is_late), (10 * MS, true));
    blame.end_waits();
    assert_eq!(blame.take_finished(), None);
    let outcome = blame.finish();
    assert_eq!((outcome.table.late, outcome.threads[0].open.waiting), (1, 1));
    // Of its window alone; and what lies behind the end of the recording counts for nothing.
    let recall = outcome.recall(|_, _| true, |address| address);
    for behind in [false, true] {
        let mut kept = scenario.clone();
        if behind {
            kept.switch(16 * MS + 100 * US, 0, 1, servo());
        }
        let again = kept.run(config().recalling(recall.clone()));
        assert_eq!(again.worst, outcome.worst, "{behind}");
        assert_eq!(again.threads[0].open, outcome.threads[0].open);
    }
}

#[test]
fn a_wait_that_does_not_end_is_judged_up_to_the_end() {
    let mut scenario = woken_behind_the_hog(10 * MS);
    // The tick, which alone shows who runs.
    for at in [11 * MS, 15 * MS, 19 * MS, 23 * MS] {
        scenario.timer_entry(at, 0).timer_exit(at + 2 * US, 0);
    }
    let outcome = begun(&beginning(&[hog()]), &scenario.sorted(), config());
    let (time_ns, name) = behind_the_hog(&outcome);
    assert_eq!(name, "hog (priority 97, 200) ran above");
    assert_eq!(outcome.worst[0].lateness_ns(), 13 * MS + 2 * US);
    assert!(time_ns > 12 * MS);
    assert_eq!((outcome.threads[0].open.begun, outcome.threads[0].open.waiting), (0, 1));
    let sentence = &outcome.table.sentence;
    assert!(sentence.ends_with("does not count: 1 wake still waited at its end."), "{sentence}");
}

#[test]
fn without_an_event_the_look_at_the_beginning_names_the_highest() {
    let mut scenario = woken_behind_the_hog(10 * MS);
    let switch = TraceKind::Switch { previous: idle(), previous_state: 0, next: cat() };
    scenario.event(16 * MS, 1, switch);
    let outcome = begun(&beginning(&[cat(), hog()]), &scenario.sorted(), config());
    assert_eq!(behind_the_hog(&outcome).1, "hog (priority 97, 200) ran above");
    // Without that look nobody is named.
    let outcome = scenario.run(config());
    assert!(outcome.table.rows.iter().all(|row| row.cause.culprit().is_none()));
}

#[test]
fn a_thread_that_waits_at_the_beginning_is_late_since_then() {
    let mut scenario = Scenario::on([hog(), idle()]);
    scenario.timer_entry(BEGIN + MS, 0).timer_exit(BEGIN + MS + 2 * US, 0);
    scenario.switch(BEGIN + 5 * MS, 0, 1, servo());
    let outcome = begun(&beginning(&[hog(), servo()]), &scenario.sorted(), config());
    // But for the timer's interrupt.
    let time_ns = 5 * MS - 2 * US;
    assert_eq!(behind_the_hog(&outcome), (time_ns, "hog (priority 97, 200) ran above".to_owned()));
    assert_eq!(outcome.worst[0].anchor, ReleaseAnchor::Unseen);
    assert_eq!((outcome.threads[0].open.begun, outcome.threads[0].open.waiting), (1, 0));
    assert!(outcome.table.sentence.ends_with("1 wake waited before it began."));
}

#[test]
fn a_timer_from_before_the_beginning_is_late_since_its_expiry() {
    let mut scenario = Scenario::on([hog(), idle()]);
    scenario.fire(10 * MS).timer_exit(10 * MS + 7 * US, 0);
    scenario.switch(13 * MS, 0, 1, servo());
    let outcome = scenario.run(config());
    let (time_ns, name) = behind_the_hog(&outcome);
    assert_eq!(name, "hog (priority 97, 200) ran above");
    assert_eq!(time_ns, 3 * MS - 7 * US);
    assert_eq!(outcome.counts.unknown_releases, 1);
}

#[test]
fn who_ran_or_slept_at_the_beginning_did_not_wait() {
    // It ran.
    let mut scenario = Scenario::new();
    scenario.timer_entry(BEGIN + 4 * MS, 0).timer_exit(BEGIN + 4 * MS + 2 * US, 0);
    scenario.switch(BEGIN + 6 * MS, 0, 1, idle());
    let outcome = begun(&beginning(&[servo(), cat()]), &scenario.sorted(), config());
    assert!(outcome.table.sentence.starts_with("No wake was seen: record for longer"));
    // It slept: else nobody could wake it.
    let mut scenario = Scenario::on([idle(), cat()]);
    scenario.timer_entry(BEGIN + MS, 0).timer_exit(BEGIN + MS + 2 * US, 0);
    scenario.wake(BEGIN + 4 * MS, 1, servo(), 0);
    scenario.switch(BEGIN + 4 * MS + 5 * US, 0, 0, servo());
    let outcome = begun(&beginning(&[servo()]), &scenario.sorted(), config());
    assert_eq!((outcome.table.wakes, outcome.table.late), (1, 0), "{}", outcome.table.sentence);
}

#[test]
fn a_short_wait_at_the_end_is_left_out() {
    let events = |wait_ns: u64| {
        let mut scenario = woken_behind_the_hog(10 * MS);
        scenario.timer_entry(10 * MS + wait_ns, 0);
        scenario.sorted()
    };
    let late = |late: LateThreshold, wait_ns: u64| {
        let config = BlameConfig { late, ..config() };
        run(&events(wait_ns), config).table.wakes
    };
    assert_eq!(late(LateThreshold::Above(50 * US), MS), 0, "it may still be on time");
    assert_eq!(late(LateThreshold::Above(50 * US), MS + 1), 1);
    assert_eq!(late(LateThreshold::Above(3 * MS), 3 * MS), 0);
    assert_eq!(late(LateThreshold::Above(3 * MS), 3 * MS + 1), 1);
    assert_eq!(late(LateThreshold::Quantile(0.9), MS), 0);
    assert_eq!(late(LateThreshold::Quantile(0.9), MS + 1), 1);
}

#[test]
fn a_beginning_that_cannot_be_is_refused() {
    let mut blame = Blame::new(config());
    blame.begin(&RecordingBegin { at_ns: u64::MAX, runnable: Vec::new() });
    assert_eq!(blame.counts().refused, 1);
    let far = RunnableThread { task: task("far", 7, 2), cpu: u32::MAX };
    blame.begin(&RecordingBegin { at_ns: 5, runnable: vec![far] });
    assert!(blame.finish().table.sentence.starts_with("No wake was seen: "));
}
