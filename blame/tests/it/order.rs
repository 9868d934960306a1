//! The causes that are named first: the one that took most time, and that of the latest wake.

use punctual_blame::cause::CauseKind;
use punctual_blame::config::LateThreshold;
use punctual_blame::outcome::BlameOutcome;

use crate::scenario::{APIC, CONSOLE, TIMER, US, WAKEUP, cat, config, equal, hog, servo};
use crate::scenario::{Scenario, idle};

/// A wake behind a thread that ran for so long.
fn behind(scenario: &mut Scenario, task: punctual_trace::event::TaskName, took_ns: u64) {
    let release = scenario.sleep(task);
    scenario.fire(release + 5 * US).timer_exit(release + 10 * US, 0);
    scenario.switch(release + took_ns, 0, 1, servo());
    scenario.normal();
}

/// Twelve wakes that are a little late, and one that is very late.
fn often_and_once() -> BlameOutcome {
    let mut scenario = Scenario::new();
    scenario.normals(40);
    (0..12).for_each(|_| behind(&mut scenario, equal(), 60 * US));
    behind(&mut scenario, hog(), 900 * US);
    scenario.run(config())
}

#[test]
fn causes_stand_in_the_order_of_the_time_that_they_took() {
    let outcome = often_and_once();
    let rows = &outcome.table.rows;
    let found: Vec<_> = rows.iter().map(|row| (row.cause.kind(), row.wakes)).collect();
    assert_eq!(found[..2], [(CauseKind::HigherPriority, 1), (CauseKind::EqualPriority, 12)]);
    assert!(rows[0].time_ns > rows[1].time_ns && rows[1].time_ns > 12 * 40 * US);
    assert_eq!(rows.last().map(|row| row.cause.kind()), Some(CauseKind::NormalPath));
    let sentence = &outcome.table.sentence;
    let first = "% of the 1.62 ms lost by the 13 wakes later than 50 µs: hog (priority 97, 200) \
                 ran above on CPU 0 (in 1 wake)";
    assert!(sentence.contains(first), "{sentence}");
    assert!(
        sentence.contains("equal (priority 90, 201) ran at the same priority on CPU 0 (in 12 ")
    );
}

#[test]
fn the_cause_of_the_latest_wake_is_named_also_where_it_took_little() {
    let mut scenario = Scenario::new();
    scenario.normals(40);
    (0..90).for_each(|_| behind(&mut scenario, equal(), 500 * US));
    behind(&mut scenario, hog(), 700 * US);
    let outcome = scenario.run(config());
    let worst = outcome.table.worst_cause.as_ref().expect("there are late wakes");
    assert_eq!(worst.lateness_ns, 700 * US);
    assert_eq!(worst.name, "hog (priority 97, 200) ran above");
    assert!(worst.time_ns > 600 * US && worst.time_ns < 700 * US);
    let sentence = &outcome.table.sentence;
    let named = sentence.split(" The worst was ").nth(1).unwrap_or_else(|| panic!("{sentence}"));
    assert!(named.starts_with("700 µs late, 69"), "{sentence}");
    assert!(named.ends_with("of it: hog (priority 97, 200) ran above."), "{sentence}");
    let before = sentence.split(" The worst was ").next();
    assert!(before.is_some_and(|before| !before.contains("hog")), "1.5 % of the time: {sentence}");
    // Of a share too: what is late is known in the end alone.
    let late = LateThreshold::Quantile(0.5);
    let outcome = scenario.run(punctual_blame::config::BlameConfig { late, ..config() });
    assert_eq!(outcome.table.worst_cause.as_ref(), Some(worst));
}

#[test]
fn the_latest_wake_is_that_of_an_address_once_this_came_again() {
    let mut scenario = Scenario::new();
    scenario.normals(40);
    for late in [900 * US, 300 * US] {
        let release = scenario.sleep(cat());
        scenario.timer_entry_with(release + late, 0, &[APIC, CONSOLE + 601]);
        scenario.expire(release + late + US, 0, TIMER, WAKEUP);
        scenario.wake(release + late + 2 * US, 0, servo(), 0).start(release + late + 2 * US);
        scenario.normal();
    }
    let outcome = scenario.run(config());
    let worst = outcome.table.worst_cause.as_ref().expect("there are late wakes");
    assert_eq!(worst.group.kind(), CauseKind::InterruptsOff, "{}", outcome.table.sentence);
    assert!(worst.name.starts_with("interrupts off in console_flush_all of cat"), "{worst:?}");
}

#[test]
fn without_a_late_wake_none_is_the_latest() {
    let mut scenario = Scenario::new();
    scenario.normals(40);
    let release = scenario.sleep(idle());
    scenario.fire(release + 5 * US).start(release + 6 * US);
    assert_eq!(scenario.run(config()).table.worst_cause, None);
}
