//! Evidence that confirms the host, and evidence that must not.

use punctual_blame::blame::Blame;
use punctual_blame::cause::{CauseKind, LateCause, RuleId};
use punctual_blame::config::{BlameConfig, LateThreshold, Platform};
use punctual_blame::outcome::BlameOutcome;
use punctual_trace::event::{TaskName, TraceKind};

use crate::scenario::{
    APIC, MS, Scenario, TICK, TIMER, US, WAKEUP, assert_exact, cat, config, config_of, equal, hog,
    idle, only_cause, servo, task,
};

/// The state of CPU 1 while CPU 0 stands still.
#[derive(Clone, Copy, PartialEq)]
enum Witness {
    /// It works, with an event each 20 µs, and stands still too.
    Silent,
    /// It works on.
    Busy,
    /// It has nothing to do: it is silent most of the time.
    Idle,
}

/// The scenario of twelve gaps of 240 µs that a program's own code or the kernel saw.
fn stalls(witness: Witness, chain: &[u64], steal: Option<u64>) -> Scenario {
    stalls_beside(cat(), witness, chain, steal)
}

fn stalls_beside(other: TaskName, witness: Witness, chain: &[u64], steal: Option<u64>) -> Scenario {
    let mut scenario = Scenario::new();
    scenario.switch(MS, 1, 0, task("busy", 700, 120));
    scenario.normals(40);
    for _ in 0..12 {
        let release = scenario.sleep(other);
        let entry = release + 240 * US;
        if let Some(booked) = steal {
            let start = TraceKind::RunTime { tid: cat().tid, took_ns: 100 * US };
            scenario.event(release - 798 * US, 0, start);
            let took_ns = 798 * US + 250 * US - booked;
            // At its end, just before it makes way.
            scenario.timer_entry_with(entry, 0, chain);
            scenario.expire(entry + US, 0, TIMER, WAKEUP);
            scenario.wake(entry + 2 * US, 0, servo(), 0).timer_exit(entry + 9 * US, 0);
            scenario.event(entry + 10 * US, 0, TraceKind::RunTime { tid: cat().tid, took_ns });
            scenario.switch(entry + 10 * US, 0, 0, servo());
        } else {
            scenario.timer_entry_with(entry, 0, chain);
            scenario.expire(entry + US, 0, TIMER, WAKEUP);
            scenario.wake(entry + 2 * US, 0, servo(), 0).start(entry + 2 * US);
        }
        scenario.normal();
    }
    if witness != Witness::Idle {
        let end = scenario.release;
        let stalled: Vec<u64> = scenario
            .events
            .iter()
            .filter(|event| !event.chain.is_empty())
            .map(|event| event.at_ns)
            .collect();
        let mut at = 2 * MS;
        while at < end {
            let is_stalled = stalled.iter().any(|&entry| at + 250 * US > entry && at < entry + US);
            if witness == Witness::Busy || !is_stalled {
                let start = TraceKind::TimerStart {
                    timer: 0x66_0000,
                    function: TICK,
                    expires_ns: i64::MAX / 4,
                    soft_expires_ns: i64::MAX / 4,
                };
                scenario.event(at, 1, start);
            }
            at += 20 * US;
        }
    }
    scenario
}

fn judged(witness: Witness, chain: &[u64], steal: Option<u64>) -> BlameOutcome {
    stalls(witness, chain, steal).run(config())
}

#[test]
fn a_stall_of_both_cpus_is_the_hosts() {
    let outcome = judged(Witness::Silent, &[APIC], None);
    let row = only_cause(&outcome, CauseKind::HostOrFirmware);
    assert_eq!(row.rule, RuleId::UserStallConfirmed, "{}", row.evidence);
    assert!((row.confidence - 0.9).abs() < 1e-9);
    assert!(
        row.evidence.contains("another CPU was silent in 12 of 12, more than by chance ("),
        "{}",
        row.evidence
    );
    // The rest of these wakes has nothing to do with it.
    let normal = outcome.table.rows.iter().find(|row| row.cause.kind() == CauseKind::NormalPath);
    let evidence = &normal.expect("each wake has it").evidence;
    assert!(!evidence.contains("silent"), "{evidence}");
}

#[test]
fn a_cpu_that_works_on_confirms_nothing() {
    let outcome = judged(Witness::Busy, &[APIC], None);
    let row = only_cause(&outcome, CauseKind::NoEvent);
    assert_eq!((row.rule, row.name.as_str()), (RuleId::UserStall, "no event in between"));
    assert!((row.confidence - 0.4).abs() < 1e-9);
    assert!(row.evidence.contains("no CPU time is missing, another CPU was silent in 0 of 12"));
    assert!(!outcome.table.sentence.contains("host"), "{}", outcome.table.sentence);
}

#[test]
fn an_idle_cpu_is_silent_by_chance() {
    let outcome = judged(Witness::Idle, &[APIC], None);
    let row = only_cause(&outcome, CauseKind::NoEvent);
    assert_eq!(row.rule, RuleId::UserStall);
    assert!(
        row.evidence.contains("silent in 12 of 12, no more than by chance (1"),
        "{}",
        row.evidence
    );
}

#[test]
fn kernel_code_is_the_hosts_only_where_another_test_agrees() {
    let chain = [APIC, 0x5008];
    let outcome = judged(Witness::Busy, &[APIC, 0x5008], None);
    // The same address each time.
    only_cause(&outcome, CauseKind::InterruptsOff);
    let outcome = judged(Witness::Silent, &chain, None);
    assert_eq!(only_cause(&outcome, CauseKind::HostOrFirmware).rule, RuleId::KernelStallConfirmed);
}

#[test]
fn missing_cpu_time_is_steal_beyond_half_of_the_gap() {
    for (missing, kind, rule, said) in [
        (
            130 * US,
            CauseKind::HostOrFirmware,
            RuleId::UserStallConfirmed,
            "missing in 12 of 12 stretches",
        ),
        // The bound itself: the gap is 240 µs.
        (
            120 * US + 1,
            CauseKind::HostOrFirmware,
            RuleId::UserStallConfirmed,
            "missing in 12 of 12 stretches",
        ),
        (120 * US, CauseKind::NoEvent, RuleId::UserStall, "no CPU time is missing"),
        (110 * US, CauseKind::NoEvent, RuleId::UserStall, "no CPU time is missing"),
    ] {
        let outcome = judged(Witness::Busy, &[APIC], Some(missing));
        let row = only_cause(&outcome, kind);
        assert_eq!(row.rule, rule, "{missing}");
        assert!(row.evidence.contains(said), "{}", row.evidence);
    }
}

#[test]
fn on_metal_only_a_count_of_smis_confirms_the_firmware() {
    let scenario = stalls(Witness::Silent, &[APIC], None);
    let confidence = |smi_count| {
        let outcome = scenario.run(config_of(|machine| {
            (machine.platform, machine.smi_count) = (Platform::Metal, smi_count);
        }));
        let row = only_cause(&outcome, CauseKind::HostOrFirmware);
        (row.confidence, row.name.clone(), row.evidence.clone())
    };
    let (uncounted, ..) = confidence(None);
    assert!((uncounted - 0.7).abs() < 1e-9);
    let (counted, name, evidence) = confidence(Some(12));
    assert!((counted - 0.9).abs() < 1e-9);
    assert_eq!(name, "firmware took the CPU");
    assert!(evidence.ends_with("12 SMIs counted"), "{evidence}");
    let (none, name, _) = confidence(Some(0));
    assert!((none - 0.4).abs() < 1e-9);
    assert_eq!(name, "CPU stood still, without an SMI");
}

#[test]
fn as_many_smis_as_wakes_are_the_firmware_where_no_cpu_worked_on() {
    let judged = |witness, platform, smi_count| {
        stalls(witness, &[APIC], None).run(config_of(|machine| {
            (machine.platform, machine.smi_count) = (platform, smi_count);
        }))
    };
    // An idle CPU is silent by chance, and says nothing alone.
    let outcome = judged(Witness::Idle, Platform::Metal, Some(12));
    let row = only_cause(&outcome, CauseKind::HostOrFirmware);
    assert_eq!(row.rule, RuleId::CountedInterrupts);
    assert!((row.confidence - 0.7).abs() < 1e-9, "{}", row.confidence);
    assert!(outcome.table.sentence.contains("firmware took the CPU"), "{}", outcome.table.sentence);
    assert!(outcome.worst.iter().all(|wake| wake.main == LateCause::HostOrFirmware));
    assert_eq!((row.touched, outcome.table.late), (12, 12));
    // What was decided over all wakes holds for the few that a file keeps.
    for keeps_events in [true, false] {
        let recall = outcome.recall(|_, _| keeps_events, |address| address);
        let few = recall.over(0);
        let plain = config_of(|machine| machine.platform = Platform::Unknown).recalling(few);
        let again = stalls(Witness::Idle, &[APIC], None).run(plain);
        let kept = only_cause(&again, CauseKind::HostOrFirmware);
        assert_eq!((kept.rule, kept.wakes), (RuleId::CountedInterrupts, 12));
    }
    for (witness, platform, smi_count) in [
        (Witness::Idle, Platform::Metal, Some(11)),
        (Witness::Idle, Platform::Metal, None),
        (Witness::Idle, Platform::VirtualMachine, Some(12)),
        (Witness::Busy, Platform::Metal, Some(12)),
    ] {
        let outcome = judged(witness, platform, smi_count);
        assert_eq!(only_cause(&outcome, CauseKind::NoEvent).rule, RuleId::UserStall);
    }
}

#[test]
fn an_idle_cpu_stood_still_where_another_was_silent_too() {
    for (witness, kind, rule) in [
        (Witness::Silent, CauseKind::HostOrFirmware, RuleId::IdleStallConfirmed),
        (Witness::Busy, CauseKind::NoEvent, RuleId::IdleStall),
    ] {
        let outcome = stalls_beside(idle(), witness, &[APIC], None).run(config_of(|machine| {
            (machine.platform, machine.idle_exits_us) = (Platform::Metal, vec![0, 2]);
        }));
        let row = only_cause(&outcome, kind);
        assert_eq!((row.rule, row.time_ns), (rule, 12 * 235 * US));
    }
}

#[test]
fn a_count_of_smis_may_come_at_the_end() {
    let scenario = stalls(Witness::Silent, &[APIC], None);
    let mut blame = Blame::new(config_of(|machine| machine.platform = Platform::Metal));
    scenario.sorted().iter().for_each(|event| blame.push(event));
    blame.set_smi_count(3);
    assert!((blame.finish().table.rows[0].confidence - 0.9).abs() < 1e-9);
}

#[test]
fn what_is_late_may_be_told_at_the_end() {
    let mut scenario = Scenario::new();
    scenario.normals(40);
    for _ in 0..12 {
        for (above, late) in [(hog(), 300 * US), (equal(), 100 * US)] {
            let release = scenario.sleep(above);
            scenario.fire(release + 5 * US).timer_exit(release + 10 * US, 0);
            scenario.switch(release + late, 0, 1, servo());
            scenario.normal();
        }
    }
    let late = LateThreshold::Quantile(0.99);
    let outcome_over = |threshold_ns: u64| {
        let mut blame = Blame::new(BlameConfig { late, ..config() });
        scenario.sorted().iter().for_each(|event| blame.push(event));
        blame.set_threshold(servo().tid, threshold_ns);
        // Nobody's.
        blame.set_threshold(cat().tid, 0);
        let outcome = blame.finish();
        assert_exact(&outcome);
        outcome
    };
    let outcome = outcome_over(200 * US);
    let told_ns = outcome.table.threshold_ns.expect("one thread");
    assert!((200 * US..=213 * US).contains(&told_ns), "{told_ns}");
    assert_eq!(only_cause(&outcome, CauseKind::HigherPriority).wakes, 12);
    let outcome = outcome_over(50 * US);
    let causes = &outcome.table.rows;
    assert_eq!((outcome.table.late, outcome.table.wakes), (24, 88));
    assert_eq!(causes.iter().filter(|row| row.wakes == 12).count(), 2, "{causes:?}");
    assert!(outcome.worst.iter().all(|wake| wake.least_ns() > 50 * US));
    assert_eq!(outcome_over(MS).table.late, 0);
}
