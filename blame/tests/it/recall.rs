//! A capture that was cut down to its late wakes gives the answer that the whole one gave.

use punctual_blame::blame::Blame;
use punctual_blame::cause::{CauseKind, LateCause, RuleId};
use punctual_blame::config::{
    BlameConfig, LateThreshold, Platform, RecordingBegin, RunnableThread,
};
use punctual_blame::keep::LateWake;
use punctual_blame::outcome::BlameOutcome;
use punctual_blame::part::WakePart;
use punctual_blame::recall::Recall;
use punctual_trace::event::{TraceEvent, TraceKind};

use crate::scenario::{
    APIC, CONSOLE, MS, PERIOD, Scenario, TIMER, UNLOCK, US, WAKEUP, cat, config, config_of, hog,
    run, servo,
};

/// Forty wakes on time, then late ones: behind a hog, after a gap of the host, and twice at one
/// address of the kernel.
fn scenario() -> Scenario {
    let mut scenario = Scenario::new();
    scenario.normals(40);
    let release = scenario.sleep(hog());
    scenario.timer_entry(release + 5 * US, 0);
    scenario.expire(release + 6 * US, 0, TIMER, WAKEUP);
    scenario.wake(release + 7 * US, 0, servo(), 0).timer_exit(release + 10 * US, 0);
    scenario.switch(release + 300 * US, 0, 1, servo());
    for chain in [vec![APIC, 0x7010], vec![APIC, CONSOLE + 601], vec![APIC, CONSOLE + 601]] {
        scenario.normals(3);
        let release = scenario.sleep(cat());
        scenario.timer_entry_with(release + 400 * US, 0, &chain);
        scenario.expire(release + 401 * US, 0, TIMER, WAKEUP);
        scenario.wake(release + 402 * US, 0, servo(), 0).timer_exit(release + 405 * US, 0);
        scenario.switch(release + 406 * US, 0, 0, servo());
    }
    scenario.normals(3);
    let release = scenario.sleep(cat());
    scenario.timer_entry_with(release + 200 * US, 0, &[APIC, UNLOCK + 3, CONSOLE + 8]);
    scenario.expire(release + 201 * US, 0, TIMER, WAKEUP);
    scenario.wake(release + 202 * US, 0, servo(), 0).timer_exit(release + 205 * US, 0);
    scenario.switch(release + 206 * US, 0, 0, servo());
    // One that follows a late one, whose cause is a function of the kernel.
    scenario.normals(3);
    let release = scenario.sleep(cat());
    scenario.timer_entry_with(release + PERIOD, 0, &[APIC, UNLOCK + 3, CONSOLE + 8]);
    scenario.expire(release + PERIOD + US, 0, TIMER, WAKEUP);
    scenario
        .wake(release + PERIOD + 2 * US, 0, servo(), 0)
        .timer_exit(release + PERIOD + 5 * US, 0);
    let late = release + PERIOD + 6 * US;
    scenario.switch(late, 0, 0, servo());
    let next = scenario.release;
    scenario.release += PERIOD;
    scenario.arm(late + 60 * US, 0, next);
    scenario.fire(late + 61 * US).timer_exit(late + 66 * US, 0);
    scenario
}

/// The events around late wakes, from more than a period before each.
fn cut(events: &[TraceEvent], outcome: &BlameOutcome) -> Vec<TraceEvent> {
    let wakes = || outcome.worst.iter().chain(&outcome.sample);
    let is_near = |event: &&TraceEvent| {
        let at_ns = event.at_ns;
        wakes().any(|wake| (wake.release_ns - PERIOD - MS..=wake.ran_ns).contains(&at_ns))
    };
    events.iter().filter(is_near).cloned().collect()
}

/// As a file has it.
fn written(recall: &Recall) -> Recall {
    let text = serde_json::to_string(recall).expect("plain data");
    serde_json::from_str(&text).expect("what was written")
}

#[test]
fn windows_of_late_wakes_give_the_same_answer_again() {
    let scenario = scenario();
    for late in [LateThreshold::Above(50 * US), LateThreshold::Quantile(0.9)] {
        let outcome = run(&scenario.events, BlameConfig { late, ..config() });
        assert!(outcome.worst.len() >= 5, "{}", outcome.worst.len());
        let recall = written(&outcome.recall(|_, _| true, |address| address));
        assert_eq!(recall.wakes(), outcome.worst.len());
        assert_eq!(recall.thresholds().map(|(tid, _)| tid).collect::<Vec<_>>(), [servo().tid]);
        let events = cut(&scenario.events, &outcome);
        assert!(events.len() < scenario.events.len() / 2);
        let plain = config_of(|machine| machine.platform = Platform::Unknown);
        let plain = BlameConfig { late, ..plain };
        let alone = run(&events, plain.clone());
        assert_ne!(alone.worst, outcome.worst, "without what was known it is another answer");
        let again = run(&events, plain.recalling(recall));
        assert_eq!(again.worst, outcome.worst);
        let (first, second) = (&outcome.threads[0], &again.threads[0]);
        assert_eq!(first.figures.wakes, second.figures.wakes);
        assert_eq!(first.figures.p99, second.figures.p99);
        assert_eq!(first.table.threshold_ns, second.table.threshold_ns);
        assert_eq!(again.duration_ns, outcome.duration_ns);
    }
}

#[test]
fn a_wake_without_its_events_comes_as_it_was_judged_and_is_not_whole() {
    let scenario = scenario();
    let outcome = run(&scenario.events, config());
    let latest = outcome.worst[0].release_ns;
    let recall = outcome.recall(|_, release_ns| release_ns == latest, |address| address);
    let again = run(&scenario.events, config().recalling(recall.clone()));
    // Of the others there are no events: they are what they were judged to be.
    assert_eq!(
        (again.table.late, again.table.rows.len()),
        (outcome.table.late, outcome.table.rows.len())
    );
    let whole: Vec<u64> =
        again.worst.iter().filter(|wake| wake.is_whole).map(|wake| wake.release_ns).collect();
    assert_eq!(whole, [latest]);
    for (again, before) in again.worst.iter().zip(&outcome.worst) {
        assert_eq!(booked(again), booked(before));
        assert_eq!((again.main, &again.chain), (before.main, &before.chain));
    }
    for (again, before) in again.table.rows.iter().zip(&outcome.table.rows) {
        assert_eq!((&again.name, again.time_ns), (&before.name, before.time_ns));
        assert!(again.confidence < before.confidence, "{}", again.name);
        assert!(again.evidence.contains("; records are missing of "), "{}", again.evidence);
    }
    let none = run(&scenario.events, config().recalling(recall.over(3 * MS)));
    assert!(none.worst.is_empty());
    let sentence = &none.table.sentence;
    let wakes = outcome.table.wakes;
    assert!(sentence.starts_with(&format!("None of the {wakes} wakes was later")), "{sentence}");
}

/// From where to where a wake is booked to what.
fn booked(wake: &LateWake) -> Vec<(u64, u64, LateCause, RuleId)> {
    let named = |part: &WakePart| {
        // Whether an address came again is decided.
        let cause = match part.cause {
            LateCause::HostOrInterruptsOff { task, inside, .. } => {
                LateCause::HostOrInterruptsOff { task, at: 0, inside }
            }
            cause => cause,
        };
        (part.from_ns, part.to_ns, cause, part.rule)
    };
    wake.parts.iter().map(named).collect()
}

/// Name, wakes and time of each row.
fn rows(outcome: &BlameOutcome) -> Vec<(String, u64, u64)> {
    let rows = outcome.table.rows.iter();
    rows.map(|row| (row.name.clone(), row.wakes, row.time_ns)).collect()
}

#[test]
fn a_wait_longer_than_the_memory_comes_as_it_was_judged() {
    let mut scenario = scenario();
    scenario.normals(3);
    let release = scenario.sleep(hog());
    scenario.fire(release + 5 * US).timer_exit(release + 10 * US, 0);
    for step in 0..3_000 {
        let at = release + 20 * US + step * 10 * US;
        scenario.event(at, 0, TraceKind::SoftirqEntry(9));
        scenario.event(at + 4 * US, 0, TraceKind::SoftirqExit(9));
    }
    scenario.switch(release + 40 * MS, 0, 1, servo());
    let outcome = run(&scenario.events, config());
    assert!(outcome.worst[0].is_condensed && outcome.worst[0].release_ns == release);
    let recall = written(&outcome.recall(|_, _| true, |address| address));
    assert_eq!(recall.wakes(), outcome.worst.len());
    // Of its events the last are enough, or none.
    let events = cut(&scenario.events, &outcome);
    for begin in [0, release + 20 * MS, release + 50 * MS] {
        let is_kept = |event: &&TraceEvent| event.at_ns < release - PERIOD || event.at_ns >= begin;
        let events: Vec<TraceEvent> = events.iter().filter(is_kept).cloned().collect();
        let again = run(&events, config().recalling(recall.clone()));
        assert_eq!(booked(&again.worst[0]), booked(&outcome.worst[0]));
        assert!(again.worst[0].is_condensed && again.worst[0].is_whole);
        assert_eq!(again.worst[1..], outcome.worst[1..]);
        assert_eq!(rows(&again), rows(&outcome));
    }
}

#[test]
fn an_address_that_came_again_is_named_as_the_file_has_it() {
    let scenario = scenario();
    let outcome = run(&scenario.events, config());
    let is_off = |wake: &&LateWake| wake.main.kind() == CauseKind::InterruptsOff;
    let off = outcome.worst.iter().filter(is_off).count();
    assert!(off >= 2, "{off}");
    // As if the file had other addresses: then none of them came again.
    let recall = outcome.recall(|_, _| true, |address| address + 0x10_0000);
    let again = run(&scenario.events, config().recalling(recall));
    assert!(again.worst.iter().filter(is_off).count() < off);
}

#[test]
fn a_file_keeps_the_machine_beside_the_rest_and_nothing_else() {
    let outcome = run(&scenario().events, config());
    let recall = outcome.recall(|_, _| true, |address| address);
    let mut value = serde_json::to_value(&recall).expect("plain data");
    let machine = ["platform", "kernel", "smi_count", "kernel_files", "clock_offsets_ns"];
    assert!(machine.iter().all(|key| value.get(key).is_some()), "{value}");
    let read = |value: &serde_json::Value| serde_json::from_value::<Recall>(value.clone());
    assert_eq!(read(&value).expect("what was written"), recall);
    value["machine"] = serde_json::json!({});
    let error = read(&value).expect_err("an unknown key").to_string();
    assert!(error.contains("unknown field `machine`"), "{error}");
}

#[test]
fn facts_that_cannot_be_do_no_harm() {
    let scenario = scenario();
    let outcome = run(&scenario.events, config());
    let mut is_there = [true, true, false].into_iter().cycle();
    let is_there = std::cell::RefCell::new(&mut is_there);
    let has = |_, _| is_there.borrow_mut().next().expect("it goes on");
    let recall = outcome.recall(has, |address| address);
    let mut value = serde_json::to_value(&recall).expect("plain data");
    /// Each number of a value, one after the other.
    fn numbers<'a>(value: &'a mut serde_json::Value, into: &mut Vec<&'a mut serde_json::Value>) {
        match value {
            serde_json::Value::Array(values) => {
                values.iter_mut().for_each(|value| numbers(value, into));
            }
            serde_json::Value::Object(fields) => {
                fields.values_mut().for_each(|value| numbers(value, into));
            }
            serde_json::Value::Number(_) => into.push(value),
            _ => {}
        }
    }
    let count = {
        let mut found = Vec::new();
        numbers(&mut value, &mut found);
        found.len()
    };
    assert!(count > 30, "{count}");
    for place in 0..count {
        for wrong in [serde_json::json!(u64::MAX), serde_json::json!(0), serde_json::json!(-1)] {
            let mut wrongly = value.clone();
            let mut found = Vec::new();
            numbers(&mut wrongly, &mut found);
            *found.swap_remove(place) = wrong;
            if let Ok(recall) = serde_json::from_value::<Recall>(wrongly) {
                run(&scenario.events, config().recalling(recall));
            }
        }
    }
}

#[test]
fn a_finished_wake_is_told_once() {
    let mut blame = Blame::new(config());
    let mut wakes = Vec::new();
    for event in &scenario().events {
        blame.push(event);
        wakes.extend(std::iter::from_fn(|| blame.take_finished()));
    }
    let kept: Vec<_> = blame.kept().collect();
    let outcome = blame.finish();
    assert_eq!(wakes.len() as u64, outcome.threads[0].figures.wakes);
    let late: Vec<u64> =
        wakes.iter().filter(|wake| wake.is_late).map(|wake| wake.release_ns).collect();
    let mut worst: Vec<u64> = outcome.worst.iter().map(|wake| wake.release_ns).collect();
    worst.sort_unstable();
    assert_eq!(late, worst);
    assert!(late.iter().all(|&release_ns| kept.contains(&(servo().tid, release_ns))));
    assert!(wakes.iter().all(|wake| wake.armed_ns.is_some() && wake.ran_ns > wake.release_ns));
}

#[test]
fn a_wait_from_before_the_beginning_is_found_again() {
    let mut scenario = Scenario::on([hog(), cat()]);
    scenario.timer_entry(10 * MS, 0).timer_exit(10 * MS + 2 * US, 0);
    scenario.switch(14 * MS, 0, 1, servo());
    let mut blame = Blame::new(config());
    let runnable = [hog(), servo()].map(|task| RunnableThread { task, cpu: 0 }).into();
    blame.begin(&RecordingBegin { at_ns: 9 * MS, runnable });
    scenario.events.iter().for_each(|event| blame.push(event));
    let outcome = blame.finish();
    let recall = written(&outcome.recall(|_, _| true, |address| address));
    let again = run(&scenario.events, config().recalling(recall));
    assert_eq!((outcome.worst.len(), &again.worst), (1, &outcome.worst));
    assert_eq!(again.table.sentence, outcome.table.sentence);
}
