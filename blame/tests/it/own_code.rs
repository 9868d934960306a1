//! The end of a wake, where its thread first can run its own code, and the end of its cycle.

use punctual_blame::blame::Blame;
use punctual_blame::cause::CauseKind;
use punctual_blame::config::{BlameConfig, LateThreshold};
use punctual_blame::outcome::BlameOutcome;
use punctual_blame::wake::FinishedWake;
use punctual_trace::event::{TraceEvent, TraceKind};

use crate::scenario::{MS, PERIOD, Scenario, US, config, disturbed, hog, idle, run, servo};

/// The servo enters a call right behind the last event.
fn call(scenario: &mut Scenario, number: u32) {
    let last = scenario.events.last().map_or(0, |event| event.at_ns);
    scenario.event(last + US, 0, TraceKind::SyscallEntry { number });
}

/// Attribution of all events, and what it finished on the way.
fn finished(scenario: &Scenario) -> (Blame, Vec<FinishedWake>) {
    let mut blame = Blame::new(config());
    let mut wakes = Vec::new();
    for event in &scenario.sorted() {
        blame.push(event);
        wakes.extend(std::iter::from_fn(|| blame.take_finished()));
    }
    (blame, wakes)
}

/// Events around late wakes, as a capture of them has: from 11 ms before a release on, and before
/// that the call, the timer's start and the switch of the sleep.
fn cut(events: &[TraceEvent], outcome: &BlameOutcome) -> Vec<TraceEvent> {
    let is_near = |event: &&TraceEvent| {
        let begins_sleep = matches!(
            event.kind,
            TraceKind::SyscallEntry { .. }
                | TraceKind::TimerStart { .. }
                | TraceKind::Switch { .. }
        );
        let before_ns = if begins_sleep { 31 * MS } else { 11 * MS };
        outcome.worst.iter().any(|wake| {
            (wake.release_ns - before_ns..=wake.ran_ns + 200 * US).contains(&event.at_ns)
        })
    };
    events.iter().filter(is_near).cloned().collect()
}

#[test]
fn a_wake_that_was_taken_on_its_way_out_is_late_in_a_capture_of_it_too() {
    let mut scenario = Scenario::new();
    scenario.normals(40);
    for _ in 0..5 {
        let last = scenario.events.last().map_or(0, |event| event.at_ns);
        scenario.release = last + 30 * MS;
        call(&mut scenario, 230);
        let release = scenario.sleep(idle());
        scenario.fire(release + 5 * US).start(release + 6 * US);
        scenario.switch(release + 20 * US, 0, 0, hog()).switch(release + 3 * MS, 0, 1, servo());
        let out = release + 3 * MS + 2 * US;
        scenario.event(out, 0, TraceKind::SyscallExit { number: 230 });
        call(&mut scenario, 1);
        scenario.event(out + 2 * US, 0, TraceKind::SyscallExit { number: 1 });
        scenario.release = release + 8 * MS;
    }
    scenario.normals(3);
    let events = scenario.sorted();
    let outcome = run(&events, config());
    assert_eq!(outcome.table.late, 5, "{}", outcome.table.sentence);
    let recall = outcome.recall(|_, _| true, |address| address);
    let again = run(&cut(&events, &outcome), config().recalling(recall));
    assert_eq!(again.worst, outcome.worst, "{}", again.table.sentence);
}

#[test]
fn who_is_stopped_on_its_way_out_until_the_end_is_late() {
    let mut scenario = Scenario::new();
    scenario.normals(40);
    call(&mut scenario, 230);
    let release = scenario.sleep(idle());
    scenario.fire(release + 5 * US).start(release + 6 * US);
    // SIGSTOP reaches it before it leaves the call.
    scenario.switch(release + 20 * US, 0, 4, idle());
    let end = release + 9 * MS;
    scenario.timer_entry(end, 1).timer_exit(end + US, 1);
    let outcome = scenario.run(config());
    assert_eq!(outcome.table.late, 1, "{}", outcome.table.sentence);
    let worst = &outcome.worst[0];
    assert_eq!((worst.release_ns, worst.ran_ns), (release, end + US));
    let row = &outcome.table.rows[0];
    assert_eq!(row.cause.kind(), CauseKind::Stopped, "{}", outcome.table.sentence);
}

#[test]
fn who_runs_in_a_call_for_long_has_answered_however_often_it_is_preempted() {
    let mut scenario = Scenario::new();
    scenario.normals(40);
    // ioctl: it runs its guest.
    call(&mut scenario, 16);
    let release = scenario.sleep(idle());
    scenario.fire(release + 5 * US).start(release + 6 * US);
    for turn in 1..1_000 {
        let from = release + turn * 820 * US;
        scenario.switch(from, 0, 0, hog()).switch(from + 20 * US, 0, 1, servo());
    }
    let (blame, wakes) = finished(&scenario);
    assert_eq!(wakes.last().map(|wake| (wake.release_ns, wake.least_ns)), Some((release, 14 * US)));
    assert_eq!(blame.finish().table.late, 0);
}

#[test]
fn a_late_wake_shows_while_its_cpu_is_silent() {
    let mut scenario = Scenario::new();
    scenario.normals(40);
    call(&mut scenario, 230);
    let release = scenario.sleep(hog());
    scenario.fire(release + 5 * US).timer_exit(release + 9 * US, 0);
    scenario.switch(release + 3 * MS, 0, 1, servo());
    scenario.event(release + 3 * MS + 3 * US, 0, TraceKind::SyscallExit { number: 230 });
    for tick in 1..50 {
        let at = release + 3 * MS + tick * 4 * MS;
        scenario.timer_entry(at, 1).timer_exit(at + US, 1);
    }
    let (blame, wakes) = finished(&scenario);
    assert_eq!(wakes.last().map(|wake| wake.release_ns), Some(release));
    assert_eq!(blame.snapshot().threads[0].max.least_ns(), 3 * MS);
}

#[test]
fn a_timer_that_expires_in_a_sleep_that_goes_on_releases_once() {
    let outcome = disturbed(|scenario| {
        let release = scenario.sleep(idle());
        scenario.wake(release - 10 * US, 1, servo(), 0);
        scenario.switch(release - 5 * US, 0, 0, servo());
        scenario.fire(release + 5 * US).timer_exit(release + 9 * US, 0);
        scenario.resched[0] = false;
    });
    assert_eq!(outcome.table.wakes, 64, "{}", outcome.table.sentence);
}

#[test]
fn who_waits_of_its_own_will_lets_no_release_pass() {
    for (wait_ms, busy) in [(10_000, 0), (5, 5)] {
        let mut scenario = Scenario::new();
        scenario.normals(70);
        let last = scenario.events.last().map_or(0, |event| event.at_ns);
        for job in 0..2 {
            let from = last + job * wait_ms * MS;
            scenario.event(from + 5 * US, 0, TraceKind::SyscallEntry { number: 202 });
            scenario.switch(from + 10 * US, 0, 1, idle());
            scenario.wake(from + wait_ms * MS, 1, servo(), 0);
            scenario.switch(from + wait_ms * MS + 2 * US, 0, 0, servo());
            let exit = TraceKind::SyscallExit { number: 202 };
            scenario.event(from + wait_ms * MS + 3 * US, 0, exit);
        }
        scenario.release = last + 2 * wait_ms * MS + 2 * MS;
        scenario.normals(10);
        let outcome = scenario.run(config());
        assert_eq!(outcome.threads[0].busy.count, busy, "{}", outcome.table.sentence);
    }
}

#[test]
fn a_cycle_behind_a_loss_has_nothing_of_the_wait_before_it() {
    let mut config = config();
    config.bounds.pieces = 64;
    let mut scenario = Scenario::new();
    scenario.normals(70);
    // A wait in more parts than are kept.
    let release = scenario.sleep(hog());
    scenario.fire(release + 5 * US).timer_exit(release + 10 * US, 0);
    for step in 0..200 {
        let at = release + 20 * US + step * 5 * US;
        scenario.event(at, 0, TraceKind::SoftirqEntry(9));
        scenario.event(at + 4 * US, 0, TraceKind::SoftirqExit(9));
    }
    scenario.switch(release + 1_100 * US, 0, 1, servo());
    scenario.release = release + 2 * PERIOD;
    // Events are lost in the next one; its cycle lets releases pass, by its own work alone.
    let release = scenario.sleep(idle());
    scenario.fire(release + 5 * US);
    scenario.event(release + 6 * US, 0, TraceKind::Lost { count: 3 });
    scenario.start(release + 7 * US);
    let until = release + 5 * MS;
    scenario.timer_entry(until, 0).timer_exit(until + 2 * US, 0);
    scenario.release = release + 3 * PERIOD;
    scenario.normals(3);
    let outcome = scenario.run(config);
    assert!(outcome.threads[0].busy.count > 0, "{}", outcome.table.sentence);
    let first = &outcome.table.passed[0];
    assert_eq!(first.cause.kind(), CauseKind::OwnCode, "{}", outcome.table.sentence);
    assert!(first.share_of_time > 0.9, "{}", outcome.table.sentence);
}

#[test]
fn each_wake_that_counts_as_late_by_its_period_is_kept() {
    for late_us in [1_950, 1_990] {
        let late = LateThreshold::Quantile(0.99);
        let mut scenario = Scenario::new();
        scenario.normals(64);
        for round in 0..120 {
            let late_us = if round % 2 == 0 { 3_500 } else { late_us };
            let release = scenario.sleep(hog());
            scenario.fire(release + 5 * US).timer_exit(release + 9 * US, 0);
            scenario.switch(release + late_us * US, 0, 1, servo());
            scenario.release = release + 3 * PERIOD;
            scenario.normals(3);
        }
        let outcome = scenario.run(BlameConfig { late, ..config() });
        let kept = outcome.worst.len() as u64;
        assert!(outcome.table.late >= 60, "{}", outcome.table.sentence);
        assert_eq!(outcome.table.late, kept, "{late_us}: {}", outcome.table.sentence);
    }
}
