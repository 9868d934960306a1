//! Each cause, and both sides of each rule's threshold.

use punctual_blame::blame::Blame;
use punctual_blame::calls::CallNumbers;
use punctual_blame::cause::{CauseKind, LateCause, RuleId};
use punctual_blame::config::{BlameConfig, FollowedThreads, LateThreshold, Platform};
use punctual_blame::counters::{CountedStretch, WakeCounts};
use punctual_blame::keep::LateWake;
use punctual_blame::outcome::BlameOutcome;
use punctual_blame::recall::Recall;
use punctual_blame::symbols::{KernelPlace, SymbolMap};
use punctual_blame::table::CauseRow;
use punctual_blame::timeline::TimelineCounts;
use punctual_trace::event::{ProcessorCounts, ShortName, TaskName, TraceEvent, TraceKind, Vector};

use crate::scenario::{
    APIC, CLOSE, CONSOLE, DEADLINE, MS, PERIOD, Scenario, TICK, TIMER, TIMERFD, UNLOCK, UNTHROTTLE,
    US, WAKEUP, between, cat, config, config_of, disturbed, disturbed_on, equal, hog, idle,
    ktimers, only_cause, run, sender, servo, symbols, task,
};

#[test]
fn who_runs_above_runs_above_however_close_its_events_come() {
    for (step, turns) in [(500, false), (2 * US, false), (2 * US, true), (5 * US, true)] {
        let outcome = disturbed(|scenario| {
            let release = scenario.sleep(hog());
            scenario.fire(release + 5 * US).timer_exit(release + 9 * US, 0);
            let (mut at, mut runner) = (release + 10 * US, hog());
            while at < release + 2 * MS {
                let other = task("other", 205, 3);
                let next = if runner == other { hog() } else { other };
                if turns {
                    scenario.switch(at, 0, 1, next);
                    runner = next;
                } else {
                    let runtime = TraceKind::RunTime { tid: runner.tid, took_ns: step };
                    scenario.event(at, 0, runtime);
                }
                at += step;
            }
            scenario.switch(at, 0, 1, servo());
            scenario.release = release + 2 * PERIOD;
        });
        let above: u64 = outcome
            .table
            .rows
            .iter()
            .filter(|row| row.cause.kind() == CauseKind::HigherPriority)
            .map(|row| row.time_ns)
            .sum();
        assert!(above > 1_980 * US, "{step} {turns}: {}", outcome.table.sentence);
    }
}

#[test]
fn wakes_on_time_are_the_normal_path() {
    let mut scenario = Scenario::new();
    scenario.normals(100);
    let outcome = scenario.run(config());
    assert_eq!((outcome.table.wakes, outcome.table.late), (100, 0));
    assert_eq!(
        outcome.table.sentence,
        "None of the 100 wakes was later than 50 µs; the latest was 14 µs."
    );
    let figures = &outcome.threads[0].figures;
    assert_eq!(
        (figures.period_ns, figures.max.least_ns(), figures.margin_ns),
        (Some(PERIOD), 14_000, 0)
    );
}

#[test]
fn a_thread_above() {
    let outcome = disturbed(|scenario| {
        let release = scenario.sleep(hog());
        scenario.fire(release + 5 * US).timer_exit(release + 10 * US, 0);
        scenario.switch(release + 300 * US, 0, 1, servo());
    });
    let row = only_cause(&outcome, CauseKind::HigherPriority);
    assert_eq!(row.cause, LateCause::HigherPriority { task: hog() });
    assert_eq!(row.time_ns, 12 * 290 * US);
    assert!((row.confidence - 0.99).abs() < 1e-9);
    assert_eq!((row.cpu, row.advice.rule), (Some(0), None));
    assert!(row.advice.text.contains("chrt -f -p 1 200"), "{}", row.advice.text);
    assert_eq!(
        outcome.table.sentence,
        "97 % of the 3.6 ms lost by the 12 wakes later than 50 µs: hog (priority 97, 200) ran \
         above on CPU 0 (in 12 wakes); 3 % the normal path. The worst was 300 µs late, 290 µs of \
         it: hog (priority 97, 200) ran above."
    );
    assert_eq!(outcome.threads[0].figures.ran_before, Some(hog()));
}

#[test]
fn a_thread_of_the_same_priority() {
    let outcome = disturbed(|scenario| {
        let release = scenario.sleep(equal());
        scenario.fire(release + 5 * US).timer_exit(release + 10 * US, 0);
        scenario.switch(release + 200 * US, 0, 1, servo());
    });
    let row = only_cause(&outcome, CauseKind::EqualPriority);
    assert_eq!(row.cause.culprit(), Some(equal()));
}

#[test]
fn a_thread_below_in_a_system_call() {
    let outcome = disturbed(|scenario| {
        let release = scenario.sleep(cat());
        scenario.timer_entry_with(release + 5 * US, 0, &[APIC + 5, 0x5010, CLOSE + 9]);
        scenario.expire(release + 6 * US, 0, TIMER, WAKEUP);
        scenario.wake(release + 7 * US, 0, servo(), 0).timer_exit(release + 10 * US, 0);
        scenario.switch(release + 300 * US, 0, 0, servo());
    });
    let row = only_cause(&outcome, CauseKind::NotPreempted);
    let place = KernelPlace::Syscall(CLOSE);
    assert_eq!(row.cause, LateCause::NotPreempted { task: cat(), place });
    assert_eq!(row.name, "cat (nice 0, 202) was not preempted in close()");
    assert_eq!(row.advice.rule, Some("scheduler.preempt"));
    assert_eq!(outcome.worst[0].chain.as_ref(), [APIC + 5, 0x5010, CLOSE + 9]);
}

#[test]
fn recording_before_a_system_call_is_no_system_call() {
    let names = [(0x6000, "syscall_trace_enter"), (0x7000, "do_syscall_64")];
    let names = names.into_iter().chain([(APIC, "asm_sysvec_apic_timer_interrupt")]);
    let names = names.map(|(address, name)| (address, name.to_owned()));
    let config = BlameConfig { symbols: SymbolMap::new(names), ..config() };
    let outcome = disturbed_on(config, |scenario| {
        let release = scenario.sleep(cat());
        scenario.timer_entry_with(release + 5 * US, 0, &[APIC + 5, 0x6010, 0x7010]);
        scenario.expire(release + 6 * US, 0, TIMER, WAKEUP);
        scenario.wake(release + 7 * US, 0, servo(), 0).timer_exit(release + 10 * US, 0);
        scenario.switch(release + 300 * US, 0, 0, servo());
    });
    let row = only_cause(&outcome, CauseKind::NotPreempted);
    assert_eq!(row.name, "cat (nice 0, 202) was not preempted");
}

#[test]
fn a_recorder_above_an_ordinary_thread_is_told_as_such() {
    let ordinary = TaskName { kernel_priority: 120, ..servo() };
    let recorder = task("punctual-trace", 203, 98);
    let outcome = disturbed(|scenario| {
        let release = scenario.sleep(recorder);
        scenario.timer_entry(release + 5 * US, 0);
        scenario.expire(release + 6 * US, 0, TIMER, WAKEUP);
        scenario.wake(release + 7 * US, 0, ordinary, 0).timer_exit(release + 10 * US, 0);
        scenario.switch(release + 300 * US, 0, 1, ordinary);
    });
    let row = only_cause(&outcome, CauseKind::HigherPriority);
    assert_eq!(row.cause.culprit(), Some(recorder));
    assert!(row.advice.text.contains("price of this recording"), "{}", row.advice.text);
    assert_eq!(row.advice.rule, None);
}

#[test]
fn a_switch_below_three_microseconds_is_the_path() {
    for (length, late) in [(2_999, 0), (3_000, 1)] {
        let mut scenario = Scenario::new();
        scenario.normals(40);
        let release = scenario.sleep(cat());
        scenario.fire(release + 5 * US).timer_exit(release + 10 * US, 0);
        scenario.switch(release + 10 * US + length, 0, 0, servo());
        let outcome = scenario.run(BlameConfig { late: LateThreshold::Above(0), ..config() });
        let kinds = outcome.worst.iter().flat_map(|wake| &wake.parts).map(|part| part.cause.kind());
        assert_eq!(kinds.filter(|kind| *kind == CauseKind::NotPreempted).count(), late);
    }
}

#[test]
fn the_end_of_a_section_with_interrupts_off() {
    let outcome = disturbed(|scenario| {
        let release = scenario.sleep(cat());
        scenario.timer_entry_with(release + 400 * US, 0, &[APIC, UNLOCK + 3, CONSOLE + 601]);
        scenario.expire(release + 401 * US, 0, TIMER, WAKEUP);
        scenario.wake(release + 402 * US, 0, servo(), 0).start(release + 402 * US);
    });
    let row = only_cause(&outcome, CauseKind::InterruptsOff);
    assert_eq!(row.cause, LateCause::InterruptsOff { task: cat(), inside: CONSOLE });
    assert_eq!(row.rule, RuleId::Enabling);
    assert!(row.advice.text.contains("dmesg -n 1"));
    // The usual 5 µs are the path's.
    assert_eq!(row.time_ns, 12 * 395 * US);
}

/// Cycles with gaps in kernel code at the addresses of a list.
fn gaps(addresses: &[u64]) -> BlameOutcome {
    let gaps: Vec<_> = addresses.iter().map(|&address| (cat(), address)).collect();
    gaps_of(&gaps)
}

/// Cycles with gaps in the kernel code of these threads, at these addresses.
fn gaps_of(gaps: &[(TaskName, u64)]) -> BlameOutcome {
    let mut scenario = Scenario::new();
    scenario.normals(40);
    for &(task, address) in gaps {
        let release = scenario.sleep(task);
        scenario.timer_entry_with(release + 400 * US, 0, &[APIC, address, CLOSE]);
        scenario.expire(release + 401 * US, 0, TIMER, WAKEUP);
        scenario.wake(release + 402 * US, 0, servo(), 0).start(release + 402 * US);
        scenario.normal();
    }
    // Enough others that shares count.
    scenario.run(config())
}

#[test]
fn an_address_that_comes_twice_is_interrupts_off() {
    let found = gaps(&[0x5008]);
    assert_eq!(found.table.rows[0].cause.kind(), CauseKind::HostOrInterruptsOff);
    assert!((found.table.rows[0].confidence - 0.4).abs() < 1e-9);
    let found = gaps(&[0x5008, 0x5009]);
    assert_eq!(found.table.rows[0].cause.kind(), CauseKind::HostOrInterruptsOff);
    let found = gaps(&[0x5008, 0x5009, 0x5008]);
    let off = &found.table.rows[0];
    assert_eq!(off.cause, LateCause::InterruptsOff { task: cat(), inside: 0x5000 });
    assert_eq!((off.wakes, off.rule), (2, RuleId::RepeatedAddress));
    assert!((off.confidence - 0.7).abs() < 1e-9);
    assert_eq!(found.table.rows[1].cause.kind(), CauseKind::HostOrInterruptsOff);
    let found = gaps(&[0x5008, 0x5008, 0x5008]);
    assert!((found.table.rows[0].confidence - 0.9).abs() < 1e-9);
    assert!(found.worst.iter().all(|wake| wake.main == found.table.rows[0].group));
}

#[test]
fn an_address_that_comes_again_in_another_thread_leaves_the_first_wake_its_own() {
    let other = task("dog", 206, 120);
    let found = gaps_of(&[(cat(), 0x5008), (other, 0x5008)]);
    let culprits = |wakes: u64| {
        let rows = found.table.rows.iter().filter(move |row| row.wakes == wakes);
        rows.filter_map(|row| row.cause.culprit()).collect::<Vec<_>>()
    };
    let mut named = culprits(1);
    named.sort_by_key(|task| task.tid);
    assert_eq!(named, [cat(), other], "{:#?}", found.table.rows);
    for wake in &found.worst {
        let row = found.table.rows.iter().find(|row| row.group == wake.main).expect("a row");
        assert_eq!((row.wakes, row.rule), (1, RuleId::RepeatedAddress));
        assert!((row.confidence - 0.7).abs() < 1e-9, "{}", row.confidence);
    }
}

#[test]
fn a_program_that_was_interrupted_in_its_own_code_had_interrupts_on() {
    let outcome = disturbed(|scenario| {
        let release = scenario.sleep(cat());
        scenario.timer_entry_with(release + 240 * US, 0, &[APIC]);
        scenario.expire(release + 241 * US, 0, TIMER, WAKEUP);
        scenario.wake(release + 242 * US, 0, servo(), 0).start(release + 242 * US);
    });
    let row = only_cause(&outcome, CauseKind::NoEvent);
    assert_eq!((row.rule, row.name.as_str()), (RuleId::UserStall, "no event in between"));
    assert!((row.confidence - 0.4).abs() < 1e-9);
}

#[test]
fn without_a_chain_it_is_open_who_it_was() {
    let outcome = disturbed(|scenario| {
        let release = scenario.sleep(cat());
        scenario.fire(release + 240 * US).start(release + 242 * US);
    });
    assert_eq!(only_cause(&outcome, CauseKind::HostOrInterruptsOff).rule, RuleId::UnknownGap);
}

#[test]
fn an_idle_cpu_that_wakes_late() {
    let outcome = disturbed(|scenario| {
        let release = scenario.sleep(idle());
        scenario.event(release - 897 * US, 0, TraceKind::CpuIdle { state: 2 });
        scenario.fire(release + 120 * US).start(release + 122 * US);
    });
    let row = only_cause(&outcome, CauseKind::IdleExit);
    assert_eq!(row.cause, LateCause::IdleExit { state: Some(2) });
    assert_eq!((row.time_ns, row.name.as_str()), (12 * 115 * US, "host woke the idle CPU late"));
    let metal = config_of(|machine| machine.platform = Platform::Metal);
    let outcome = disturbed_on(metal, |scenario| {
        let release = scenario.sleep(idle());
        scenario.fire(release + 120 * US).start(release + 122 * US);
    });
    let row = only_cause(&outcome, CauseKind::IdleExit);
    assert_eq!(row.advice.rule, Some("idle.cpu_dma_latency"));
}

#[test]
fn a_cpu_that_is_idle_for_longer_than_leaving_its_state_takes_stood_still() {
    let of_length = |platform, idle_exits_us: &[u64], late: u64| {
        let machine = config_of(|machine| {
            (machine.platform, machine.idle_exits_us) = (platform, idle_exits_us.to_vec());
        });
        let outcome = disturbed_on(machine, |scenario| {
            let release = scenario.sleep(idle());
            scenario.event(release - 897 * US, 0, TraceKind::CpuIdle { state: 1 });
            scenario.fire(release + late).start(release + late + 2 * US);
            scenario.release += late / MS * PERIOD;
        });
        outcome.table.rows[0].rule
    };
    let states = [0, 2, 400];
    // Twice what the driver says and 100 µs.
    assert_eq!(of_length(Platform::Metal, &states, 100 * US), RuleId::IdleExit);
    assert_eq!(of_length(Platform::Metal, &states, 120 * US), RuleId::IdleStall);
    assert_eq!(of_length(Platform::Metal, &[0, 200], 300 * US), RuleId::IdleExit);
    // The number of the state is beyond those that are known: the deepest.
    assert_eq!(of_length(Platform::Metal, &[400], 700 * US), RuleId::IdleExit);
    // Of unknown states only what none needs, and a host comes back when it likes.
    assert_eq!(of_length(Platform::Metal, &[], 700 * US), RuleId::IdleExit);
    assert_eq!(of_length(Platform::Metal, &[], 12_000 * US), RuleId::IdleStall);
    for platform in [Platform::VirtualMachine, Platform::Unknown] {
        assert_eq!(of_length(platform, &states, 12_000 * US), RuleId::IdleExit);
    }
}

#[test]
fn a_device() {
    let name = ShortName::new(b"virtio3-rx");
    let outcome = disturbed(|scenario| {
        let release = scenario.sleep(idle());
        scenario.event(release - US, 0, TraceKind::IrqEntry { irq: 31, name });
        scenario.event(release + 150 * US, 0, TraceKind::IrqExit { irq: 31, is_handled: None });
        scenario.fire(release + 151 * US).start(release + 153 * US);
    });
    let row = only_cause(&outcome, CauseKind::HardIrq);
    assert_eq!(row.cause, LateCause::HardIrq { irq: 31, name });
    assert!(row.advice.text.contains("/proc/irq/31/smp_affinity_list"));
}

#[test]
fn a_soft_interrupt_with_its_device() {
    let name = ShortName::new(b"virtio3-rx");
    let outcome = disturbed(|scenario| {
        let release = scenario.sleep(idle());
        scenario.event(release - 3 * US, 0, TraceKind::IrqEntry { irq: 31, name });
        scenario.event(release - US, 0, TraceKind::IrqExit { irq: 31, is_handled: None });
        scenario.event(release - 500, 0, TraceKind::SoftirqEntry(3));
        scenario.event(release + 90 * US, 0, TraceKind::SoftirqExit(3));
        scenario.fire(release + 91 * US).start(release + 93 * US);
    });
    let row = only_cause(&outcome, CauseKind::Softirq);
    assert_eq!(row.cause, LateCause::Softirq { number: 3, device: name });
    assert_eq!(row.name, "NET_RX softirq for virtio3-rx");
}

#[test]
fn an_nmi_is_cut_out_of_what_it_interrupted() {
    let outcome = disturbed(|scenario| {
        let release = scenario.sleep(idle());
        scenario.event(release + 104 * US, 0, TraceKind::Nmi { took_ns: 100 * US });
        scenario.fire(release + 105 * US).start(release + 107 * US);
    });
    assert_eq!(only_cause(&outcome, CauseKind::Nmi).time_ns, 12 * 100 * US);
}

fn ipi(scenario: &mut Scenario, at_ns: u64, from: TaskName) {
    // CPU 1 runs the sender.
    scenario.switch(at_ns - 3 * US, 1, 0, from);
    let targets = Box::new([1_u64]);
    scenario.event(at_ns - 2 * US, 1, TraceKind::IpiSend { targets, callback: 0x5000 });
    scenario.event(at_ns, 0, TraceKind::VectorEntry(Vector::CallFunction));
    scenario.event(at_ns + US, 0, TraceKind::VectorExit(Vector::CallFunction));
}

#[test]
fn interrupts_from_other_cpus_are_added_up_by_sender() {
    let outcome = disturbed(|scenario| {
        let release = scenario.sleep(idle());
        for step in 0..6 {
            // Two threads of one process take turns.
            let from = TaskName { tid: 300 + step % 2, ..sender() };
            ipi(scenario, release + u64::from(step) * 14 * US + US, from);
        }
        scenario.fire(release + 80 * US).start(release + 82 * US);
    });
    let row = only_cause(&outcome, CauseKind::Ipi);
    assert_eq!(row.cause.culprit(), Some(TaskName { tid: 0, ..sender() }));
    // Each microsecond of a handler, and the gaps beside: they have no event, and are its price.
    assert!(row.time_ns > 12 * 70 * US, "{row:?}");
    assert!(row.evidence.contains("72 sends recorded"), "{}", row.evidence);
    assert_eq!(outcome.senders[0].sends, 72);
}

#[test]
fn a_gap_beside_an_ipi_is_its_price_only_below_sixty_microseconds() {
    for (gap, kind) in [(59, CauseKind::Ipi), (61, CauseKind::NoEvent)] {
        let outcome = disturbed(|scenario| {
            let release = scenario.sleep(cat());
            ipi(scenario, release - US, sender());
            let entry = release + gap * US;
            scenario.timer_entry_with(entry, 0, &[APIC]);
            scenario.expire(entry + 500, 0, TIMER, WAKEUP);
            scenario.wake(entry + US, 0, servo(), 0).start(entry + US);
        });
        only_cause(&outcome, kind);
    }
}

#[test]
fn an_ipi_beside_a_thread_above_does_not_take_its_time() {
    let outcome = disturbed(|scenario| {
        let release = scenario.sleep(hog());
        scenario.fire(release + 5 * US).timer_exit(release + 10 * US, 0);
        ipi(scenario, release + 55 * US, sender());
        scenario.switch(release + 100 * US, 0, 1, servo());
    });
    assert_eq!(only_cause(&outcome, CauseKind::HigherPriority).time_ns, 12 * 89 * US);
}

#[test]
fn calls_are_paired_with_whoever_asked() {
    let outcome = disturbed(|scenario| {
        let release = scenario.sleep(cat());
        let request = 0xdead_0000 + release;
        scenario.switch(release - 5 * US, 1, 0, sender());
        let queued = TraceKind::CallQueued { target_cpu: 0, request, function: 0x5000 };
        scenario.event(release - 4 * US, 1, queued);
        scenario.switch(release - 3 * US, 1, 0, task("other", 301, 120));
        let targets = Box::new([1_u64]);
        scenario.event(release - 2 * US, 1, TraceKind::IpiSend { targets, callback: 0 });
        scenario.event(release - US, 0, TraceKind::CallEntry { request, function: 0x5000 });
        scenario.event(release + 100 * US, 0, TraceKind::CallExit { request });
        scenario.fire(release + 101 * US).start(release + 103 * US);
    });
    assert_eq!(only_cause(&outcome, CauseKind::Ipi).cause.culprit(), Some(sender()));
}

#[test]
fn timers_of_others_come_first() {
    let outcome = disturbed(|scenario| {
        let release = scenario.sleep(cat());
        for timer in 0..50 {
            scenario.event(
                release - 800 * US + timer,
                0,
                TraceKind::TimerStart {
                    timer: 0x77_0000 + timer * 64,
                    function: WAKEUP,
                    expires_ns: release as i64 - 10,
                    soft_expires_ns: release as i64 - 10,
                },
            );
        }
        scenario.timer_entry(release + 5 * US, 0);
        for timer in 0..50 {
            let at = release + 6 * US + timer * 3 * US;
            scenario.expire(at, 0, 0x77_0000 + timer * 64, WAKEUP);
            let exit = TraceKind::TimerExpireExit { timer: 0x77_0000 + timer * 64 };
            scenario.event(at + 2 * US, 0, exit);
        }
        scenario.expire(release + 156 * US, 0, TIMER, WAKEUP);
        scenario.wake(release + 157 * US, 0, servo(), 0).start(release + 157 * US);
    });
    let row = only_cause(&outcome, CauseKind::OtherTimers);
    assert_eq!(row.cause, LateCause::OtherTimers { function: WAKEUP, armer: cat() });
    // 50 functions of 2 µs, and the microsecond between each two.
    assert_eq!(row.time_ns, 12 * 150 * US);
}

#[test]
fn the_kernels_own_timers_name_nobody() {
    let outcome = disturbed(|scenario| {
        let release = scenario.sleep(cat());
        scenario.timer_entry(release + 5 * US, 0);
        scenario.expire(release + 6 * US, 0, 0x77_0000, TICK);
        scenario.expire(release + 156 * US, 0, TIMER, WAKEUP);
        scenario.wake(release + 157 * US, 0, servo(), 0).start(release + 157 * US);
    });
    let row = only_cause(&outcome, CauseKind::OtherTimers);
    assert_eq!(row.cause, LateCause::OtherTimers { function: TICK, armer: TaskName::default() });
    assert_eq!(row.advice.rule, Some("isolation.nohz_full"));
}

/// The servo sleeps by a timer that the kernel's thread serves; these run one after the other from
/// the timer's interrupt on, each for 50 us, before that thread gets the CPU.
fn served_by_a_thread(scenario: &mut Scenario, before: &[TaskName]) {
    let release = scenario.sleep(idle());
    scenario.timer_entry(release + 5 * US, 0).timer_exit(release + 7 * US, 0);
    let mut at = release + 8 * US;
    for &task in before {
        scenario.switch(at, 0, 0, task);
        at += 50 * US;
    }
    scenario.switch(at, 0, 0, ktimers());
    scenario.serve(at + US);
    scenario.switch(at + 6 * US, 0, 0, servo());
}

#[test]
fn a_thread_above_the_timers_own_keeps_the_timer() {
    let mut scenario = Scenario::new();
    let other = task("other", 204, 60);
    for _ in 0..40 {
        served_by_a_thread(&mut scenario, &[]);
    }
    for _ in 0..12 {
        served_by_a_thread(&mut scenario, &[between(), other, between()]);
    }
    let outcome = scenario.run(config());
    let row = only_cause(&outcome, CauseKind::TimerThread);
    let cause = LateCause::TimerThread { task: between() };
    // A microsecond until that thread serves is usual.
    assert_eq!((row.cause, row.time_ns), (cause, 12 * 99 * US));
    assert_eq!(
        row.cause.name(&symbols()),
        "between (priority 50, 203) ran before the thread that serves its timer"
    );
    let raise = "`chrt -f -p 51 $(pgrep -x ktimers/0)`";
    assert!(row.advice.text.contains(raise), "{}", row.advice.text);
    assert!(row.evidence.contains("between its timer's interrupt and"), "{}", row.evidence);
    let others = outcome.table.rows.iter().find(|row| row.cause.culprit() == Some(other));
    assert_eq!(others.map(|row| row.time_ns), Some(12 * 50 * US));
}

#[test]
fn a_thread_above_the_loop_keeps_it_whoever_serves_its_timer() {
    let above = disturbed(|scenario| served_by_a_thread(scenario, &[hog(), hog()]));
    assert_eq!(only_cause(&above, CauseKind::HigherPriority).cause.culprit(), Some(hog()));
    let equals = disturbed(|scenario| served_by_a_thread(scenario, &[equal(), equal()]));
    assert_eq!(only_cause(&equals, CauseKind::EqualPriority).cause.culprit(), Some(equal()));
}

#[test]
fn a_host_that_stops_the_timers_thread_is_not_its_way() {
    let outcome = disturbed(|scenario| {
        let release = scenario.sleep(idle());
        // The other CPU records something all along, until both stand still.
        for step in 0..20 {
            let at = release - 850 * US + step * 40 * US;
            scenario.event(at, 1, TraceKind::SoftirqEntry(9));
            scenario.event(at + US, 1, TraceKind::SoftirqExit(9));
        }
        scenario.timer_entry(release + 5 * US, 0).timer_exit(release + 7 * US, 0);
        scenario.switch(release + 8 * US, 0, 0, ktimers());
        let ran_ns = TraceKind::RunTime { tid: ktimers().tid, took_ns: 2 * US };
        scenario.event(release + 900 * US, 0, ran_ns);
        scenario.serve(release + 901 * US);
        scenario.switch(release + 906 * US, 0, 0, servo());
    });
    let normal = outcome.worst[0].parts.iter().filter(|part| part.cause == LateCause::NormalPath);
    let normal_ns: u64 = normal.map(|part| part.length_ns()).sum();
    assert!(normal_ns < 50 * US, "{normal_ns}: {}", outcome.table.sentence);
}

#[test]
fn a_timer_of_the_interrupts_own_is_served_by_nobody() {
    let outcome = disturbed(|scenario| {
        let ksoftirqd = task("ksoftirqd/0", 21, 120);
        let release = scenario.sleep(cat());
        scenario.switch(release + 60 * US, 0, 0, ksoftirqd);
        // Without an event of the interrupt itself.
        scenario.expire(release + 120 * US, 0, TIMER, WAKEUP);
        scenario.wake(release + 121 * US, 0, servo(), 0);
        scenario.event(release + 122 * US, 0, TraceKind::TimerExpireExit { timer: TIMER });
        scenario.switch(release + 123 * US, 0, 0, servo());
    });
    let kinds: Vec<CauseKind> =
        outcome.worst[0].parts.iter().map(|part| part.cause.kind()).collect();
    assert!(!kinds.contains(&CauseKind::TimerThread), "{kinds:?}");
    assert!(!kinds.contains(&CauseKind::NotPreempted), "{kinds:?}");
}

#[test]
fn a_timers_thread_that_is_preempted_while_it_serves_goes_on() {
    let outcome = disturbed(|scenario| {
        let release = scenario.sleep(idle());
        scenario.timer_entry(release + 5 * US, 0).timer_exit(release + 7 * US, 0);
        scenario.switch(release + 8 * US, 0, 0, ktimers());
        scenario.event(release + 9 * US, 0, TraceKind::SoftirqEntry(8));
        scenario.timer_entry(release + 10 * US, 0).timer_exit(release + 12 * US, 0);
        scenario.is_soft = true;
        scenario.switch(release + 13 * US, 0, 256, between());
        scenario.is_soft = false;
        scenario.switch(release + 113 * US, 0, 0, ktimers());
        scenario.is_soft = true;
        scenario.go_on_serving(release + 114 * US);
        scenario.is_soft = false;
        scenario.switch(release + 118 * US, 0, 0, servo());
    });
    assert_eq!(only_cause(&outcome, CauseKind::TimerThread).time_ns, 12 * 100 * US);
    let TimelineCounts { unclosed, unopened, .. } = outcome.counts.timeline;
    assert_eq!((unclosed, unopened), (0, 0));
}

#[test]
fn who_runs_before_a_timers_thread_that_is_on_its_way_keeps_it_from_the_release_on() {
    let outcome = disturbed(|scenario| {
        let release = scenario.sleep(between());
        scenario.switch(release + 100 * US, 0, 0, ktimers());
        scenario.timer_entry(release + 104 * US, 0).timer_exit(release + 106 * US, 0);
        scenario.serve(release + 107 * US);
        scenario.switch(release + 112 * US, 0, 0, servo());
    });
    // What is usual until the interrupt comes is not its.
    assert_eq!(only_cause(&outcome, CauseKind::TimerThread).time_ns, 12 * 95 * US);
}

#[test]
fn a_timers_thread_waits_for_one_below_that_is_not_preempted() {
    let outcome = disturbed(|scenario| served_by_a_thread(scenario, &[cat(), cat()]));
    let row = only_cause(&outcome, CauseKind::NotPreempted);
    assert_eq!((row.cause.culprit(), row.time_ns), (Some(cat()), 12 * 100 * US));
}

#[test]
fn who_runs_until_the_interrupt_has_not_kept_the_timers_thread() {
    let outcome = disturbed(|scenario| {
        let release = scenario.sleep(hog());
        scenario.timer_entry(release + 105 * US, 0).timer_exit(release + 107 * US, 0);
        scenario.switch(release + 108 * US, 0, 0, ktimers());
        scenario.serve(release + 109 * US);
        scenario.switch(release + 114 * US, 0, 0, servo());
    });
    let kinds = outcome.worst[0].parts.iter().map(|part| part.cause.kind());
    assert!(kinds.clone().all(|kind| kind != CauseKind::TimerThread));
    assert!(kinds.clone().any(|kind| kind == CauseKind::HostOrInterruptsOff));
}

#[test]
fn a_timer_interrupt_that_stands_still() {
    for (longer, kind) in [(9, None), (50, Some(CauseKind::NoEvent))] {
        let mut scenario = Scenario::new();
        scenario.normals(40);
        for _ in 0..12 {
            let release = scenario.sleep(idle());
            scenario.timer_entry(release + 5 * US, 0);
            let at = release + 6 * US + longer * US;
            scenario.expire(at, 0, TIMER, WAKEUP);
            scenario.wake(at + US, 0, servo(), 0).start(at + US);
            scenario.normal();
        }
        let outcome = scenario.run(config());
        let found = outcome.table.rows.first().map(|row| row.cause.kind());
        assert_eq!(found, kind, "{}", outcome.table.sentence);
    }
}

#[test]
fn a_timer_interrupt_does_not_stand_still_while_nothing_is_known_of_it() {
    let mut scenario = Scenario::new();
    let release = scenario.sleep(hog());
    scenario.timer_entry(release + 5 * US, 0);
    scenario.expire(release + 25 * US, 0, TIMER, WAKEUP);
    scenario.wake(release + 26 * US, 0, servo(), 0).timer_exit(release + 30 * US, 0);
    scenario.switch(release + 300 * US, 0, 1, servo());
    scenario.arm(release + 310 * US, 0, release + 500 * MS);
    // When it ran is only bounded, so that nothing is learnt of it.
    let mut events = scenario.sorted();
    events.retain(|event| event.at_ns < release || !matches!(event.kind, TraceKind::Switch { .. }));
    let late = LateThreshold::Above(10 * US);
    let outcome = run(&events, BlameConfig { late, ..config() });
    let rules: Vec<_> = outcome.worst[0].parts.iter().map(|part| part.rule).collect();
    assert!(rules.contains(&RuleId::TimerInterrupt), "{rules:?}");
    assert!(!rules.contains(&RuleId::TimerStall), "{rules:?}");
}

#[test]
fn its_own_timers_function_that_stands_still() {
    for (longer, kind) in [(9, None), (50, Some(CauseKind::NoEvent))] {
        let mut scenario = Scenario::new();
        scenario.normals(40);
        for _ in 0..12 {
            let release = scenario.sleep(idle());
            // The thread is awake, and the next timer is being programmed.
            scenario.fire(release + 5 * US).start(release + 6 * US + longer * US);
            scenario.normal();
        }
        let outcome = scenario.run(config());
        let row = outcome.table.rows.first();
        assert_eq!(row.map(|row| row.cause.kind()), kind, "{}", outcome.table.sentence);
        let rules = outcome.worst.iter().map(|wake| {
            wake.parts.iter().filter(|part| part.rule == RuleId::CallbackStall).count()
        });
        assert!(rules.into_iter().all(|count| count == 1));
    }
}

#[test]
fn throttling_is_seen_by_the_timer_that_ends_it() {
    for (before, kind) in [(250, CauseKind::Throttled), (400, CauseKind::FairServer)] {
        let outcome = disturbed(|scenario| {
            let release = scenario.sleep(idle());
            scenario.fire(release + 5 * US).timer_exit(release + 10 * US, 0);
            // The scheduler looks, and takes a thread below.
            scenario.switch(release + 20 * US, 0, 0, cat());
            let end = release + 800 * US;
            scenario.timer_entry(end - before * US, 1);
            scenario.expire(end - before * US + 300, 1, 0x88_0000, UNTHROTTLE);
            scenario.timer_exit(end - before * US + 600, 1);
            scenario.switch(end, 0, 0, servo());
        });
        let row = only_cause(&outcome, kind);
        assert_eq!(row.cause.culprit(), Some(cat()));
    }
}

#[test]
fn a_kernel_without_a_fair_server_throttles() {
    let old = config_of(|machine| machine.kernel = Some((6, 11)));
    for (kernel, kind) in [(old, CauseKind::Throttled), (config(), CauseKind::FairServer)] {
        let outcome = disturbed_on(kernel, |scenario| {
            let release = scenario.sleep(idle());
            scenario.fire(release + 5 * US).timer_exit(release + 10 * US, 0);
            scenario.switch(release + 20 * US, 0, 0, cat());
            scenario.switch(release + 500 * US, 0, 0, servo());
        });
        let row = only_cause(&outcome, kind);
        assert!((row.confidence - 0.4).abs() < 1e-9);
    }
}

#[test]
fn idle_although_a_thread_is_ready_is_throttling() {
    let outcome = disturbed(|scenario| {
        let release = scenario.sleep(hog());
        scenario.fire(release + 5 * US).timer_exit(release + 10 * US, 0);
        scenario.switch(release + 20 * US, 0, 1, idle());
        scenario.switch(release + 500 * US, 0, 0, servo());
    });
    only_cause(&outcome, CauseKind::Throttled);
}

#[test]
fn a_choice_within_three_microseconds_of_the_wake_means_nothing() {
    let outcome = disturbed(|scenario| {
        // Another CPU wakes it while this one is about to idle.
        let release = scenario.sleep(cat());
        scenario.timer_entry(release + 5 * US, 1);
        scenario.expire(release + 5_500, 1, TIMER, WAKEUP);
        scenario.wake(release + 6 * US, 1, servo(), 0).timer_exit(release + 6_500, 1);
        scenario.switch(release + 8 * US, 0, 1, idle());
        scenario.switch(release + 200 * US, 0, 0, servo());
    });
    assert_eq!((outcome.table.late, outcome.table.rows[0].cause), (12, LateCause::Migration));
    let is_throttled = |row: &CauseRow| row.cause.kind() == CauseKind::Throttled;
    assert!(!outcome.table.rows.iter().any(is_throttled), "{}", outcome.table.sentence);
}

#[test]
fn a_scheduler_that_is_not_asked_passed_the_thread_over() {
    for (is_asked, kind) in [(true, CauseKind::NotPreempted), (false, CauseKind::FairServer)] {
        let outcome = disturbed(|scenario| {
            let release = scenario.sleep(cat());
            scenario.fire(release + 5 * US).timer_exit(release + 10 * US, 0);
            scenario.resched[0] = is_asked;
            let start = TraceKind::TimerStart {
                timer: 0x99_0000,
                function: TICK,
                expires_ns: i64::MAX / 4,
                soft_expires_ns: i64::MAX / 4,
            };
            scenario.event(release + 200 * US, 0, start);
            scenario.switch(release + 400 * US, 0, 0, servo());
        });
        let row = only_cause(&outcome, kind);
        assert!(row.time_ns > 12 * 380 * US, "{row:?}");
    }
}

#[test]
fn a_timer_that_finds_nobody_asked_shows_that_the_thread_was_passed_over() {
    let judged = |is_asked: bool, entry_us: u64| {
        disturbed(|scenario| {
            let release = scenario.sleep(cat());
            scenario.fire(release + 5 * US).timer_exit(release + 10 * US, 0);
            // What computes and nothing else shows itself by no event of its own.
            scenario.resched[0] = is_asked;
            scenario.timer_entry(release + entry_us * US, 0);
            scenario.timer_exit(release + (entry_us + 2) * US, 0);
            scenario.resched[0] = true;
            scenario.switch(release + 400 * US, 0, 0, servo());
        })
    };
    only_cause(&judged(true, 200), CauseKind::NotPreempted);
    let outcome = judged(false, 200);
    let row = only_cause(&outcome, CauseKind::FairServer);
    assert!(row.time_ns > 12 * 380 * US, "{row:?}");
    // Just behind the waking the request may not have arrived.
    only_cause(&judged(false, 40), CauseKind::NotPreempted);
}

#[test]
fn a_stop_by_a_signal_names_its_sender() {
    stopped_by_a_signal(|scenario, at| scenario.fire(at).timer_exit(at + 5 * US, 0));
    // From 7.1 on the kernel does not start a timer that has expired.
    stopped_by_a_signal(|scenario, at| {
        scenario.event(at, 0, TraceKind::TimerStartExpired { timer: TIMER })
    });
}

fn stopped_by_a_signal(expire: impl Fn(&mut Scenario, u64) -> &mut Scenario) {
    let outcome = disturbed(|scenario| {
        let release = scenario.sleep(idle());
        scenario.switch(release - 500 * US, 1, 0, task("bash", 400, 120));
        scenario.event(release - 450 * US, 1, TraceKind::Signal { number: 19, task: servo() });
        scenario.wake(release - 449 * US, 1, servo(), 0);
        scenario.switch(release - 440 * US, 0, 0, servo());
        scenario.switch(release - 430 * US, 0, 8, idle());
        scenario.wake(release + 250 * US, 1, servo(), 0);
        scenario.switch(release + 255 * US, 0, 0, servo());
        // The sleep goes on, and its expiry has passed.
        scenario.arm(release + 256 * US, 0, release);
        expire(scenario, release + 257 * US);
    });
    let row = only_cause(&outcome, CauseKind::Stopped);
    assert_eq!(row.cause.culprit().map(|task| task.tid), Some(400));
    assert_eq!(row.time_ns, 12 * 250 * US);
}

#[test]
fn a_file_descriptor_whose_timer_had_expired_releases_nobody() {
    let mut scenario = Scenario::new();
    scenario.normals(40);
    let at = scenario.events.iter().map(|event| event.at_ns).max().expect("events") + 50 * US;
    let timer = TIMER + 64;
    let start = TraceKind::TimerStart {
        timer,
        function: TIMERFD,
        expires_ns: (at - 20 * MS) as i64,
        soft_expires_ns: (at - 20 * MS) as i64,
    };
    scenario.event(at, 0, start);
    scenario.event(at + US, 0, TraceKind::TimerStartExpired { timer });
    scenario.release += PERIOD;
    scenario.normals(3);
    let outcome = scenario.run(config());
    assert_eq!((outcome.table.wakes, outcome.table.late), (43, 0), "{}", outcome.table.sentence);
}

fn overrun(scenario: &mut Scenario, with: impl Fn(&mut Scenario, u64, u64)) {
    // It starts on time, but works until 300 µs behind its next release.
    scenario.normal();
    let release = scenario.release;
    with(scenario, release - 980 * US, release + 300 * US);
    scenario.arm(release + 300 * US, 0, release);
    scenario.release += PERIOD;
    scenario.fire(release + 301 * US).timer_exit(release + 306 * US, 0);
}

#[test]
fn its_own_work_past_the_release() {
    let outcome = disturbed(|scenario| overrun(scenario, |_, _, _| {}));
    let row = only_cause(&outcome, CauseKind::OwnCode);
    assert_eq!(row.time_ns, 12 * 300 * US);
}

/// A signal stops it, or a thread above takes its CPU, on its way out of the call that it slept in,
/// or later.
#[test]
fn a_release_is_answered_in_its_own_code_and_not_before() {
    #[derive(Clone, Copy, PartialEq)]
    enum Way {
        WithinTheCall,
        BehindIt,
        InItsCode,
        InterruptedInItsCode,
    }
    let left = |way: Way, state: u64| {
        let outcome = disturbed(|scenario| {
            let last = scenario.events.last().map_or(0, |event| event.at_ns);
            scenario.event(last + US, 0, TraceKind::SyscallEntry { number: 230 });
            let release = scenario.sleep(idle());
            scenario.fire(release + 5 * US).start(release + 6 * US);
            let at = release + 14 * US;
            scenario.resched[0] = state == 0 && way == Way::BehindIt;
            if way != Way::WithinTheCall {
                scenario.event(at + 2 * US, 0, TraceKind::SyscallExit { number: 230 });
            }
            scenario.resched[0] = false;
            match way {
                Way::InItsCode => {
                    scenario.event(at + 3 * US, 0, TraceKind::SyscallEntry { number: 1 });
                    scenario.event(at + 4 * US, 0, TraceKind::SyscallExit { number: 1 });
                }
                Way::InterruptedInItsCode => {
                    let entry = TraceKind::VectorEntry(Vector::Reschedule);
                    scenario.event(at + 4 * US, 0, entry);
                    scenario.event(at + 5 * US, 0, TraceKind::VectorExit(Vector::Reschedule));
                }
                Way::WithinTheCall | Way::BehindIt => {}
            }
            let next = if state == 0 { hog() } else { idle() };
            scenario.switch(at + 6 * US, 0, state, next);
            if state != 0 {
                scenario.wake(at + 3 * MS, 1, servo(), 0);
            }
            scenario.switch(at + 3 * MS + 5 * US, 0, 1, servo());
            if way == Way::WithinTheCall {
                scenario.event(at + 3 * MS + 6 * US, 0, TraceKind::SyscallExit { number: 230 });
            }
            scenario.release += 2 * PERIOD;
        });
        let is_its = |row: &&CauseRow| {
            matches!(row.cause.kind(), CauseKind::Stopped | CauseKind::HigherPriority)
        };
        let wakes: u64 = outcome.table.rows.iter().filter(is_its).map(|row| row.wakes).sum();
        assert_eq!(outcome.table.wakes, 64, "{}", outcome.table.sentence);
        (wakes, outcome.table.worst.least_ns() > 3 * MS)
    };
    for (state, way, is_late) in [
        (0, Way::WithinTheCall, true),
        (4, Way::WithinTheCall, true),
        (0, Way::BehindIt, true),
        (4, Way::BehindIt, true),
        (0, Way::InItsCode, false),
        (4, Way::InItsCode, false),
        (0, Way::InterruptedInItsCode, false),
        (4, Way::InterruptedInItsCode, false),
    ] {
        let expected = if is_late { (12, true) } else { (0, false) };
        assert_eq!(left(way, state), expected, "state {state}, way {}", way as u8);
    }
}

#[test]
fn a_thread_that_computes_on_is_judged_long_before_it_calls_the_kernel_again() {
    let mut scenario = Scenario::new();
    scenario.normal();
    scenario.event(scenario.release - PERIOD + MS, 0, TraceKind::SyscallEntry { number: 230 });
    let release = scenario.sleep(idle());
    scenario.fire(release + 5 * US).start(release + 6 * US);
    scenario.event(release + 20 * US, 0, TraceKind::SyscallExit { number: 230 });
    for tick in 1..10 {
        scenario.timer_entry(release + tick * 400 * US, 0);
        scenario.timer_exit(release + tick * 400 * US + 2 * US, 0);
    }
    let mut blame = Blame::new(config());
    let mut judged_ns = Vec::new();
    for event in &scenario.sorted() {
        blame.push(event);
        let judged = std::iter::from_fn(|| blame.take_finished());
        judged_ns.extend(judged.map(|wake| (wake.release_ns, wake.seen_ns)));
    }
    assert_eq!(judged_ns.last(), Some(&(release, release + 1_200 * US)));
}

/// A signal that stops it comes just before its release and wakes it: its sleep ends by its timer
/// all the same.
#[test]
fn a_sleep_that_a_signal_interrupts_at_the_release_is_late_by_the_stop() {
    let stopped = |runs_before_us: u64, stops: bool| {
        let outcome = disturbed(|scenario| {
            let last = scenario.events.last().map_or(0, |event| event.at_ns);
            scenario.event(last + US, 0, TraceKind::SyscallEntry { number: 230 });
            let before = if runs_before_us > 20 { cat() } else { idle() };
            let release = scenario.sleep(before);
            scenario.wake(release - 20 * US, 1, servo(), 0);
            let run = release + 20 * US - runs_before_us * US;
            let expiry = release + 10 * US;
            let expire = |scenario: &mut Scenario| {
                scenario.timer_entry(expiry, 0);
                scenario.expire(expiry + US, 0, TIMER, WAKEUP).timer_exit(expiry + 3 * US, 0);
            };
            match run < expiry {
                true => expire(scenario.switch(run, 0, 0, servo())),
                false => {
                    expire(scenario);
                    scenario.switch(run, 0, 0, servo());
                }
            }
            scenario.event(release + 30 * US, 0, TraceKind::SyscallExit { number: 230 });
            if stops {
                scenario.switch(release + 36 * US, 0, 4, idle());
                scenario.wake(release + 3 * MS, 1, servo(), 0);
                scenario.switch(release + 3 * MS + 5 * US, 0, 0, servo());
                scenario.release += 2 * PERIOD;
            }
        });
        assert_eq!(outcome.table.wakes, 64, "{}", outcome.table.sentence);
        let is_its = |row: &&CauseRow| row.cause.kind() == CauseKind::Stopped;
        let row = outcome.table.rows.iter().find(is_its);
        (outcome.table.late, row.map(|row| row.time_ns / 12 / US))
    };
    // The timer expires while it runs in its sleep, and while it waits for its CPU.
    for runs_before_us in [25, 0] {
        assert_eq!(stopped(runs_before_us, false), (0, None), "{runs_before_us}");
        let (late, stopped_us) = stopped(runs_before_us, true);
        assert_eq!((late, stopped_us), (12, Some(2_964)), "{runs_before_us}");
    }
}

#[test]
fn its_work_in_short_stretches_is_no_normal_path_also_where_its_memory_is_short() {
    for pieces in [64, 2_048] {
        let mut config = config();
        config.bounds.pieces = pieces;
        let outcome = disturbed_on(config, |scenario| {
            overrun(scenario, |scenario, _, to| {
                for number in (1..=48).rev() {
                    let from = to - number * 6 * US;
                    scenario.switch(from, 0, 0, hog()).switch(from + 4 * US, 0, 1, servo());
                }
            });
        });
        let time_us = |kind: CauseKind| {
            let rows = outcome.table.rows.iter().filter(|row| row.cause.kind() == kind);
            rows.map(|row| row.time_ns).sum::<u64>() / 12 / US
        };
        let found = [CauseKind::OwnCode, CauseKind::HigherPriority].map(time_us);
        assert_eq!(found, [108, 192], "{pieces}: {}", outcome.table.sentence);
    }
}

#[test]
fn a_thread_without_work_that_runs_past_its_release_may_have_stood_still() {
    let config = BlameConfig { workless: vec![servo().tid], ..config() };
    let outcome = disturbed_on(config, |scenario| overrun(scenario, |_, _, _| {}));
    let row = only_cause(&outcome, CauseKind::NoEvent);
    assert_eq!((row.time_ns, row.rule, row.confidence), (12 * 300 * US, RuleId::OwnGap, 0.4));
    assert!(row.evidence.contains("has nothing to do in its cycles"), "{}", row.evidence);
}

#[test]
fn its_own_work_that_the_host_held_up_is_the_hosts() {
    let missing = |missing_ns: u64| {
        disturbed(|scenario| {
            overrun(scenario, |scenario, from, to| {
                // Booked when it began, and before it sleeps again.
                scenario.event(from, 0, TraceKind::RunTime { tid: servo().tid, took_ns: 0 });
                let took_ns = to - US - from - missing_ns;
                scenario.event(to - US, 0, TraceKind::RunTime { tid: servo().tid, took_ns });
            });
        })
    };
    // Half of the 1 279 µs that were booked at once.
    let outcome = missing(640 * US);
    let row = only_cause(&outcome, CauseKind::HostOrFirmware);
    assert_eq!((row.rule, row.wakes), (RuleId::OwnStall, 12));
    let shown = "more than half of its CPU time is missing, in 12 wakes; CPU time is missing in 12 \
                 of 12 stretches";
    assert!(row.evidence.contains(shown), "{}", row.evidence);
    only_cause(&missing(639 * US), CauseKind::OwnCode);
}

#[test]
fn its_own_system_call_and_its_own_faults() {
    let outcome = disturbed(|scenario| {
        overrun(scenario, |scenario, from, to| {
            scenario.event(from, 0, TraceKind::SyscallEntry { number: 11 });
            scenario.event(to - US, 0, TraceKind::SyscallExit { number: 11 });
        });
    });
    let row = only_cause(&outcome, CauseKind::OwnSyscall);
    assert_eq!(row.cause, LateCause::OwnSyscall { number: 11 });
    let outcome = disturbed(|scenario| {
        overrun(scenario, |scenario, from, to| {
            scenario.event(from, 0, TraceKind::PageFaultEntry);
            scenario.event(to - US, 0, TraceKind::PageFaultExit);
        });
    });
    let row = only_cause(&outcome, CauseKind::OwnFault);
    assert!(row.advice.text.contains("mlockall"));
}

/// Cycles at 3.2 GHz, then such whose timer function takes so long at this frequency. Changes are
/// recorded by the other CPU.
fn slowed(khz: u32, function_ns: u64) -> (BlameOutcome, Scenario) {
    let mut scenario = Scenario::new();
    let frequency = |khz| TraceKind::Frequency { cpu: 0, khz };
    scenario.event(9 * MS, 1, frequency(3_200_000));
    scenario.normals(40);
    for _ in 0..12 {
        let release = scenario.sleep(idle());
        scenario.event(release - 100 * US, 1, frequency(khz));
        scenario.fire(release + 5 * US).timer_exit(release + 6 * US + function_ns, 0);
        scenario.switch(release + 7 * US + function_ns, 0, 0, servo());
        scenario.event(release + 8 * US + function_ns, 1, frequency(3_200_000));
        scenario.normal();
    }
    (scenario.run(BlameConfig { late: LateThreshold::Above(20 * US), ..config() }), scenario)
}

#[test]
fn a_lower_frequency_is_a_cause_where_it_explains_the_path() {
    // Usually 6 µs.
    let (outcome, scenario) = slowed(800_000, 24 * US);
    let row = only_cause(&outcome, CauseKind::Frequency);
    assert_eq!(row.cause, LateCause::Frequency { usual_khz: 3_200_000, khz: 800_000 });
    assert_eq!(row.name, "the CPU ran at 800 MHz, where 3200 MHz are usual");
    assert_eq!((row.rule, row.confidence), (RuleId::SlowClock, 0.7));
    // What is usual of it stays the normal path.
    assert!((17 * US..=18 * US).contains(&(row.time_ns / 12)), "{}", row.time_ns);
    assert!(row.evidence.contains("3200000 → 800000 kHz, 4.0 times slower"), "{}", row.evidence);
    assert_eq!(row.advice.rule, Some("frequency.governor"));
    let recall = outcome.recall(|_, _| true, |address| address);
    // Whoever reads late wakes alone does not see at which frequency it ran longest.
    let mut late = scenario.clone();
    late.events.retain(|event| event.at_ns > 80 * MS);
    let again = late.run(config().recalling(recall));
    let parts = |outcome: &BlameOutcome| -> Vec<_> {
        outcome.worst.iter().take(5).map(|wake| wake.parts.clone()).collect()
    };
    assert_eq!(parts(&again), parts(&outcome));
}

#[test]
fn a_frequency_that_does_not_explain_it_is_none() {
    // Ten times as long at a quarter of the frequency; as long at the usual one; hardly slower.
    for (khz, function_us) in [(800_000, 60), (3_200_000, 24), (2_900_000, 24), (1_600_000, 24)] {
        let (outcome, _) = slowed(khz, function_us * US);
        let kinds: Vec<_> = outcome.table.rows.iter().map(|row| row.cause.kind()).collect();
        assert!(!kinds.contains(&CauseKind::Frequency), "{khz}: {kinds:?}");
        assert_eq!(only_cause(&outcome, CauseKind::NoEvent).rule, RuleId::CallbackStall);
    }
}

#[test]
fn a_frequency_of_another_cpu_is_none() {
    let outcome = disturbed(|scenario| {
        let frequency = |khz| TraceKind::Frequency { cpu: 1, khz };
        let release = scenario.sleep(idle());
        scenario.event(release - 400 * US, 0, frequency(3_200_000));
        scenario.event(release - 100 * US, 0, frequency(800_000));
        scenario.fire(release + 5 * US).timer_exit(release + 60 * US, 0);
        scenario.switch(release + 61 * US, 0, 0, servo());
    });
    assert!(outcome.table.rows.iter().all(|row| row.cause.kind() != CauseKind::Frequency));
}

#[test]
fn counters_are_those_of_the_wait_and_of_the_cycle_before() {
    let counts = |cycles: u64| {
        let (cycles, instructions) = (Some(cycles), Some(cycles / 2));
        TraceKind::Counters(ProcessorCounts { cycles, instructions, ..Default::default() })
    };
    // With each switch a reading, which comes before it: as many cycles as ns.
    let mut scenario = Scenario::new();
    scenario.normals(40);
    let release = scenario.sleep(hog());
    scenario.fire(release + 5 * US).timer_exit(release + 10 * US, 0);
    scenario.switch(release + 300 * US, 0, 1, servo());
    scenario.normal();
    let mut events = Vec::new();
    for event in scenario.sorted() {
        if let TraceKind::Switch { .. } = event.kind {
            let kind = counts(event.at_ns * 3);
            let read = TraceEvent { kind, context: Default::default(), ..event.clone() };
            events.push(read);
        }
        events.push(event);
    }
    let outcome = run(&events, config());
    let without = scenario.run(config());
    assert_eq!(outcome.table.rows, without.table.rows, "they change no cause");
    let [late] = &outcome.worst[..] else { panic!("{}", outcome.worst.len()) };
    // The servo went to sleep 898 µs before its release, and had run since its last wake.
    let slept = events.iter().rfind(|event| {
        matches!(event.kind, TraceKind::Switch { previous, .. } if previous == servo())
            && event.at_ns < release
    });
    let slept_ns = slept.expect("it sleeps").at_ns;
    let ran_ns = release - PERIOD + 14 * US;
    let cycles = |stretch: Option<CountedStretch>| stretch.and_then(|stretch| stretch.cycles);
    let WakeCounts { wait, cycle } = late.counts();
    assert_eq!(cycles(wait), Some((release + 300 * US - slept_ns) * 3));
    assert_eq!(cycles(cycle), Some((slept_ns - ran_ns) * 3));
    assert_eq!(wait.and_then(|wait| wait.instructions), cycles(wait).map(|cycles| cycles / 2));
    assert_eq!(wait.and_then(|wait| wait.cache_misses), None);
    assert_eq!(without.worst[0].counts(), WakeCounts::default());
    // Whoever reads its events again, without the readings, has them too.
    let recall = outcome.recall(|_, _| true, |address| address);
    let again = scenario.run(config().recalling(recall));
    assert_eq!(again.worst[0].counts(), late.counts());
}

#[test]
fn each_of_its_own_calls_is_a_row_with_its_name() {
    let config = BlameConfig { symbols: symbols().with_calls(Some(CallNumbers::X86)), ..config() };
    let outcome = disturbed_on(config, |scenario| {
        // It sleeps in read() for the most part, then runs write(), and sleeps in fsync().
        overrun(scenario, |scenario, from, to| {
            scenario.event(from, 0, TraceKind::SyscallEntry { number: 0 });
            scenario.switch(from + US, 0, 1, idle());
            scenario.wake(to - 200 * US, 1, servo(), 0);
            scenario.switch(to - 200 * US, 0, 0, servo());
            scenario.event(to - 200 * US, 0, TraceKind::SyscallExit { number: 0 });
            scenario.event(to - 200 * US, 0, TraceKind::SyscallEntry { number: 1 });
            scenario.event(to - 100 * US, 0, TraceKind::SyscallExit { number: 1 });
            scenario.event(to - 100 * US, 0, TraceKind::SyscallEntry { number: 74 });
            scenario.switch(to - 100 * US, 0, 2, idle());
            scenario.wake(to - 10 * US, 1, servo(), 0);
            scenario.switch(to - 9 * US, 0, 0, servo());
            scenario.event(to - 9 * US, 0, TraceKind::SyscallExit { number: 74 });
        });
    });
    let time_us = |name: &str| {
        let row = outcome.table.rows.iter().find(|row| row.name == name);
        row.map(|row| row.time_ns / 12 / US)
    };
    let names: Vec<&str> = outcome.table.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(time_us("its own wait for something else in read()"), Some(100), "{names:?}");
    assert_eq!(time_us("its own write()"), Some(100), "{names:?}");
    assert_eq!(time_us("its own wait for a device or lock in fsync()"), Some(90), "{names:?}");
    assert!(outcome.table.sentence.contains("in read()"), "{}", outcome.table.sentence);
    // Whoever reads it again has the names too.
    let recall = outcome.recall(|_, _| true, |address| address);
    assert!(serde_json::to_string(&recall).expect("plain data").contains("\"calls\":\"x86\""));
}

#[test]
fn a_call_that_only_sleeps_and_runs_on_may_have_stood_still() {
    let config = BlameConfig { symbols: symbols().with_calls(Some(CallNumbers::X86)), ..config() };
    let in_call = |number: u32, call_us: u64| {
        let outcome = disturbed_on(config.clone(), |scenario| {
            overrun(scenario, |scenario, _, to| {
                let from = to - call_us * US;
                scenario.event(from, 0, TraceKind::SyscallEntry { number });
                scenario.event(to, 0, TraceKind::SyscallExit { number });
            });
        });
        let others = [CauseKind::OwnCode, CauseKind::NormalPath];
        let rows = outcome.table.rows.iter();
        let rows = rows.filter(|row| !others.contains(&row.cause.kind()));
        rows.map(|row| (row.cause.kind(), row.rule, row.confidence)).collect::<Vec<_>>()
    };
    let own = (CauseKind::OwnSyscall, RuleId::Own, 0.99);
    let stood_still = (CauseKind::NoEvent, RuleId::SleepCallGap, 0.4);
    // clock_nanosleep, on both sides of the threshold, and write.
    assert_eq!((in_call(230, 200), in_call(230, 49)), (vec![stood_still], vec![own]));
    assert_eq!(in_call(1, 200), [own]);
}

#[test]
fn a_call_without_a_name_keeps_its_number() {
    let wait = LateCause::OwnWait { is_blocked: false, call: Some(7) };
    assert_eq!(wait.name(&symbols()), "its own wait for something else in system call 7");
    let call = LateCause::OwnSyscall { number: 9_999 };
    let named = symbols().with_calls(Some(CallNumbers::Generic));
    assert_eq!(call.name(&named), "its own system call 9999");
}

#[test]
fn a_wait_for_something_else_before_the_timer() {
    for (state, is_blocked) in [(1, false), (2, true)] {
        let outcome = disturbed(|scenario| {
            overrun(scenario, |scenario, from, to| {
                scenario.switch(from, 0, state, idle());
                scenario.wake(to - 10 * US, 1, servo(), 0);
                scenario.switch(to - 9 * US, 0, 0, servo());
            });
        });
        let row = only_cause(&outcome, CauseKind::OwnWait);
        assert_eq!(row.cause, LateCause::OwnWait { is_blocked, call: None });
    }
}

#[test]
fn a_wake_after_a_late_one_follows_it() {
    let outcome = disturbed(|scenario| {
        let release = scenario.sleep(hog());
        scenario.fire(release + 5 * US).timer_exit(release + 10 * US, 0);
        let late = release + PERIOD + 30 * US;
        scenario.switch(late, 0, 1, servo());
        // It works 60 µs, and then its next release has passed by 90 µs.
        let next = scenario.release;
        scenario.release += PERIOD;
        scenario.arm(late + 60 * US, 0, next);
        scenario.fire(late + 61 * US).timer_exit(late + 66 * US, 0);
    });
    let rows = &outcome.table.rows;
    assert_eq!((outcome.table.late, rows[0].cause.kind()), (24, CauseKind::HigherPriority));
    // It is the hog's, who made the wake before late; and so is what of its time lies behind the
    // second release.
    assert!(rows.iter().all(|row| row.cause.kind() != CauseKind::Follows), "{rows:?}");
    assert_eq!((rows[0].wakes, rows[0].name.as_str()), (24, "hog (priority 97, 200) ran above"));
    assert_eq!(rows[0].time_ns, 12 * (PERIOD + 20 * US + 30 * US + 60 * US));
    assert!(rows[0].evidence.contains("in 12 wakes by the wake before"), "{}", rows[0].evidence);
    // The wake itself, as it passed, says by which way.
    let follows = LateCause::Follows { kind: CauseKind::HigherPriority };
    let passed = |wake: &&LateWake| wake.parts.iter().any(|part| part.cause == follows);
    let second = outcome.worst.iter().find(passed).expect("a wake that follows");
    assert_eq!(outcome.main_name(second), "hog (priority 97, 200) ran above");
}

#[test]
fn what_follows_a_wake_without_a_single_cause_stays_what_it_is() {
    let kind = CauseKind::NoSingle;
    let outcome = disturbed(|scenario| {
        let release = scenario.sleep(idle());
        for step in 0..6_u8 {
            let at = release + u64::from(step) * 400 * US + 1;
            scenario.event(at, 0, TraceKind::SoftirqEntry(step));
            scenario.event(at + 400 * US - 2, 0, TraceKind::SoftirqExit(step));
        }
        let late = release + 2_400 * US;
        scenario.fire(late).timer_exit(late + 5 * US, 0);
        scenario.switch(late + 6 * US, 0, 0, servo());
        let next = scenario.release;
        scenario.release += PERIOD;
        scenario.arm(late + 60 * US, 0, next);
        scenario.fire(late + 61 * US).timer_exit(late + 66 * US, 0);
    });
    let row = outcome.table.rows.iter().find(|row| row.cause == LateCause::Follows { kind });
    assert!(row.is_some_and(|row| row.touched == 12), "{}", outcome.table.sentence);
}

#[test]
fn an_overrun_longer_than_the_lateness_before_is_its_own() {
    let outcome = disturbed(|scenario| overrun(scenario, |_, _, _| {}));
    assert!(outcome.table.rows.iter().all(|row| row.cause.kind() != CauseKind::Follows));
}

#[test]
fn slack_is_what_lies_between_the_two_expiries() {
    let outcome = disturbed(|scenario| {
        let release = scenario.release;
        scenario.release += PERIOD;
        scenario.arm_with_slack(release - 900 * US, 0, release, 60 * US);
        scenario.switch(release - 898 * US, 0, 1, idle());
        scenario.fire(release + 62 * US).start(release + 63 * US);
    });
    let row = only_cause(&outcome, CauseKind::TimerSlack);
    assert_eq!(row.time_ns, 12 * 60 * US);
}

#[test]
fn an_ordinary_thread_waits_for_its_turn() {
    let mut scenario = Scenario::new();
    let ordinary = TaskName { kernel_priority: 120, ..servo() };
    for cycle in 0..52_u64 {
        let release = scenario.sleep(if cycle < 40 { idle() } else { cat() });
        scenario.timer_entry(release + 5 * US, 0);
        scenario.expire(release + 5_500, 0, TIMER, WAKEUP);
        scenario.wake(release + 6 * US, 0, ordinary, 0).timer_exit(release + 10 * US, 0);
        let run = if cycle < 40 { 11 * US } else { 211 * US };
        scenario.switch(release + run, 0, 0, ordinary);
    }
    let outcome = scenario.run(config());
    let row = only_cause(&outcome, CauseKind::FairShare);
    assert_eq!(row.cause.culprit(), Some(cat()));
}

#[test]
fn several_small_causes_are_no_single_one() {
    let outcome = disturbed(|scenario| {
        let release = scenario.sleep(idle());
        for step in 0..6_u8 {
            let at = release + u64::from(step) * 10 * US + 1;
            scenario.event(at, 0, TraceKind::SoftirqEntry(step));
            scenario.event(at + 10 * US - 2, 0, TraceKind::SoftirqExit(step));
        }
        scenario.fire(release + 61 * US).start(release + 63 * US);
    });
    assert_eq!(outcome.table.late, 12);
    let row = outcome.table.rows.iter().find(|row| row.cause == LateCause::NoSingle);
    assert_eq!(row.map(|row| row.wakes), Some(12));
    assert!(outcome.table.sentence.contains("no single cause"), "{}", outcome.table.sentence);
}

#[test]
fn a_thread_that_moves_while_it_is_ready() {
    let outcome = disturbed(|scenario| {
        let release = scenario.sleep(hog());
        scenario.switch(release - 700 * US, 1, 0, equal());
        scenario.fire(release + 5 * US).timer_exit(release + 10 * US, 0);
        let moved = TraceKind::Migrate { task: servo(), from_cpu: 0, to_cpu: 1 };
        scenario.event(release + 60 * US, 1, moved);
        scenario.switch(release + 260 * US, 1, 1, servo());
        // Back home for the next cycle.
        scenario.switch(release + 270 * US, 1, 0, idle());
        let home = TraceKind::Migrate { task: servo(), from_cpu: 1, to_cpu: 0 };
        scenario.event(release + 271 * US, 1, home);
        scenario.switch(release + 272 * US, 0, 1, servo());
    });
    let row = only_cause(&outcome, CauseKind::EqualPriority);
    assert_eq!((row.time_ns, row.cpu), (12 * 200 * US, Some(1)));
    let hogs = outcome.table.rows.iter().find(|row| row.cause.culprit() == Some(hog()));
    assert_eq!(hogs.map(|row| (row.wakes, row.time_ns)), Some((0, 12 * 50 * US)));
}

#[test]
fn a_thread_that_was_passed_over_waits_anew_where_it_is_moved_to() {
    let outcome = disturbed(|scenario| {
        let release = scenario.sleep(idle());
        scenario.fire(release + 5 * US).timer_exit(release + 10 * US, 0);
        // Throttled on its timer's CPU.
        scenario.switch(release + 11 * US, 0, 0, cat());
        let moved = TraceKind::Migrate { task: servo(), from_cpu: 0, to_cpu: 1 };
        scenario.event(release + 31 * US, 1, moved);
        scenario.event(release + 145 * US, 1, TraceKind::VectorEntry(Vector::Reschedule));
        scenario.event(release + 148 * US, 1, TraceKind::VectorExit(Vector::Reschedule));
        scenario.switch(release + 160 * US, 1, 0, servo());
        scenario.switch(release + 270 * US, 1, 0, idle());
        let home = TraceKind::Migrate { task: servo(), from_cpu: 1, to_cpu: 0 };
        scenario.event(release + 271 * US, 1, home);
        scenario.switch(release + 272 * US, 0, 1, servo());
    });
    only_cause(&outcome, CauseKind::Migration);
    let kinds = [CauseKind::Throttled, CauseKind::FairServer];
    let throttled = outcome.worst[0].parts.iter().filter(|part| kinds.contains(&part.cause.kind()));
    let cpus: Vec<u32> = throttled.map(|part| part.cpu).collect();
    assert!(!cpus.is_empty() && cpus.iter().all(|&cpu| cpu == 0), "{cpus:?}");
}

#[test]
fn what_runs_until_the_interrupt_of_a_move_comes_has_not_kept_it() {
    let below = task("below", 300, 98);
    let parts = |came: u64| {
        let outcome = woken_elsewhere(config(), 260 * US, |scenario, release| {
            scenario.switch(release - 500 * US, 1, 0, below);
            scenario.timer_entry(release + 20 * US, 1).timer_exit(release + 30 * US, 1);
            reschedule(scenario, release + came);
        });
        let kinds = outcome.worst[0].parts.iter().map(|part| part.cause.kind());
        kinds.filter(|&kind| kind != CauseKind::NormalPath).collect::<Vec<_>>()
    };
    assert_eq!(parts(40 * US).first(), Some(&CauseKind::Migration));
    // It takes no longer than that: the one that ran on was in its way.
    assert_eq!(parts(240 * US).first(), Some(&CauseKind::NotPreempted));
}

#[test]
fn a_thread_that_has_not_arrived_is_not_passed_over() {
    let throttled = |outcome: &BlameOutcome| -> u64 {
        let kinds = [CauseKind::Throttled, CauseKind::FairServer];
        let parts = outcome.worst[0].parts.iter();
        parts.filter(|part| kinds.contains(&part.cause.kind())).map(|part| part.length_ns()).sum()
    };
    let below = task("below", 300, 98);
    let before = woken_elsewhere(config(), 260 * US, |scenario, release| {
        scenario.switch(release + 20 * US, 1, 1, below);
        reschedule(scenario, release + 250 * US);
    });
    assert_eq!(throttled(&before), 0, "{}", before.table.sentence);
    only_cause(&before, CauseKind::NotPreempted);
    // Where it has, and the CPU runs the other one all the same, it is.
    let behind = woken_elsewhere(config(), 260 * US, |scenario, release| {
        reschedule(scenario, release + 20 * US);
        scenario.switch(release + 30 * US, 1, 1, below);
    });
    assert_eq!(throttled(&behind), 230 * US, "{}", behind.table.sentence);
    only_cause(&behind, CauseKind::Throttled);
    // From then on: who ran there before was not chosen over it.
    let read = TraceKind::SyscallEntry { number: 0 };
    let since = woken_elsewhere(config(), 360 * US, |scenario, release| {
        scenario.switch(release - 500 * US, 1, 0, below);
        reschedule(scenario, release + 100 * US);
        scenario.event(release + 120 * US, 1, read.clone());
    });
    assert_eq!(throttled(&since), 257 * US, "{}", since.table.sentence);
    // Not where interrupts are off, so that one from another CPU may wait.
    let deaf = woken_elsewhere(config(), 3 * MS, |scenario, release| {
        scenario.switch(release - 500 * US, 1, 0, below);
        scenario.event(release + 1_500 * US, 1, read.clone()).interrupts_off();
        reschedule(scenario, release + 2_980 * US);
    });
    assert_eq!(throttled(&deaf), 0, "{}", deaf.table.sentence);
    // A function that the CPU calls itself brings nothing.
    let own = TraceKind::CallEntry { request: 0, function: 7 };
    let called = woken_elsewhere(config(), 360 * US, |scenario, release| {
        scenario.event(release + 20 * US, 1, own.clone());
        scenario.event(release + 21 * US, 1, TraceKind::CallExit { request: 0 });
        scenario.switch(release + 40 * US, 1, 1, below);
        reschedule(scenario, release + 350 * US);
    });
    assert_eq!(throttled(&called), 0, "{}", called.table.sentence);
    // And where nothing shows it for a millisecond.
    let unseen = woken_elsewhere(config(), 3 * MS, |scenario, release| {
        scenario.switch(release + 1_100 * US, 1, 1, below);
    });
    assert_eq!(throttled(&unseen), 1_900 * US, "{}", unseen.table.sentence);
}

#[test]
fn the_first_wakes_are_no_measure_where_they_are_late() {
    for late in [LateThreshold::Above(50 * US), LateThreshold::Quantile(0.9)] {
        let mut scenario = Scenario::new();
        for _ in 0..3 {
            scenario.wake_elsewhere(600 * US, |scenario, release| {
                reschedule(scenario, release + 580 * US);
            });
        }
        scenario.normals(40);
        let outcome = scenario.run(BlameConfig { late, ..config() });
        let causes: Vec<_> = outcome.worst.iter().map(|wake| wake.main.kind()).collect();
        assert!(causes.iter().take(3).all(|&kind| kind == CauseKind::Migration), "{causes:?}");
    }
}

fn woken_elsewhere(
    config: BlameConfig,
    late_ns: u64,
    rest: impl Fn(&mut Scenario, u64),
) -> BlameOutcome {
    disturbed_on(config, |scenario| scenario.wake_elsewhere(late_ns, &rest))
}

/// The interrupt that brings a waking to CPU 1.
fn reschedule(scenario: &mut Scenario, at_ns: u64) {
    scenario.event(at_ns, 1, TraceKind::VectorEntry(Vector::Reschedule));
    scenario.event(at_ns + 3 * US, 1, TraceKind::VectorExit(Vector::Reschedule));
}

/// As on AArch64.
#[test]
fn a_timer_whose_interrupt_has_a_handler_is_the_timer() {
    let mut scenario = Scenario::new();
    scenario.normals(40);
    for _ in 0..12 {
        let release = scenario.sleep(idle());
        scenario.timer_entry(release + 5 * US, 0);
        scenario.expire(release + 6 * US, 0, 0x77_0000, TICK);
        scenario.expire(release + 156 * US, 0, TIMER, WAKEUP);
        scenario.wake(release + 157 * US, 0, servo(), 0).start(release + 157 * US);
    }
    let events = scenario.sorted();
    let name = ShortName::new(b"arch_timer");
    let handled = events.iter().map(|event| {
        let kind = match event.kind {
            TraceKind::VectorEntry(Vector::LocalTimer) => TraceKind::IrqEntry { irq: 11, name },
            TraceKind::VectorExit(Vector::LocalTimer) => {
                TraceKind::IrqExit { irq: 11, is_handled: None }
            }
            ref kind => kind.clone(),
        };
        TraceEvent { kind, ..event.clone() }
    });
    let handled: Vec<TraceEvent> = handled.collect();
    assert_ne!(handled, events);
    let [direct, seen] = [&events, &handled].map(|events| run(events, config()));
    only_cause(&seen, CauseKind::OtherTimers);
    assert_eq!(seen.table.rows, direct.table.rows);
    assert_eq!(seen.worst, direct.worst);
}

/// As on AArch64, where that interrupt has a handler around it.
#[test]
fn the_handler_around_an_interrupt_from_another_cpu_changes_nothing() {
    let name = ShortName::new(b"IPI");
    let below = task("below", 300, 98);
    let parts = |runner: TaskName, handler: Option<ShortName>| {
        let outcome = woken_elsewhere(config(), 260 * US, |scenario, release| {
            let came = release + 40 * US;
            scenario.switch(release - 500 * US, 1, 0, runner);
            if let Some(name) = handler {
                scenario.event(came - US, 1, TraceKind::IrqEntry { irq: 1, name });
            }
            reschedule(scenario, came);
            if handler.is_some() {
                scenario.event(came + 4 * US, 1, TraceKind::IrqExit { irq: 1, is_handled: None });
            }
        });
        let parts = outcome.worst[0].parts.iter();
        parts.map(|part| (part.from_ns, part.to_ns, part.cause)).collect::<Vec<_>>()
    };
    for runner in [idle(), below] {
        let without = parts(runner, None);
        assert!(without.iter().any(|(.., cause)| *cause == LateCause::Migration), "{without:?}");
        assert_eq!(parts(runner, Some(name)), without);
        // That of a device stays.
        assert_ne!(parts(runner, Some(ShortName::new(b"eth0"))), without);
    }
}

#[test]
fn a_wake_on_another_cpu_than_its_timers_is_a_move() {
    let outcome = woken_elsewhere(config(), 150 * US, |scenario, release| {
        reschedule(scenario, release + 130 * US);
    });
    let row = only_cause(&outcome, CauseKind::Migration);
    assert_eq!((row.rule, row.cpu, row.advice.rule), (RuleId::Migration, Some(1), None));
    assert!(row.advice.text.contains("Pin the thread"), "{}", row.advice.text);
    let moved = outcome.worst[0].parts.iter().filter(|part| part.cause == LateCause::Migration);
    let time_ns: u64 = moved.map(|part| part.length_ns()).sum();
    assert!(time_ns > 130 * US && time_ns <= 142 * US, "{time_ns}");
}

#[test]
fn who_runs_on_the_other_cpu_keeps_its_time() {
    let outcome = woken_elsewhere(config(), 260 * US, |scenario, release| {
        scenario.switch(release + 20 * US, 1, 0, hog());
        // Of somebody else, though for this CPU alone.
        let vector = Vector::CallFunctionSingle;
        scenario.event(release + 100 * US, 1, TraceKind::VectorEntry(vector));
        scenario.event(release + 140 * US, 1, TraceKind::VectorExit(vector));
        scenario.switch(release + 259 * US, 1, 1, idle());
    });
    let row = only_cause(&outcome, CauseKind::HigherPriority);
    assert_eq!(row.time_ns, 12 * 199 * US);
    let ipi = outcome.table.rows.iter().find(|row| row.cause.kind() == CauseKind::Ipi);
    assert_eq!(ipi.map(|row| row.time_ns), Some(12 * 40 * US));
}

#[test]
fn a_cpu_that_stands_still_behind_a_move_is_no_move() {
    let outcome = woken_elsewhere(config(), 4 * MS, |_, _| {});
    only_cause(&outcome, CauseKind::IdleExit);
    let metal = config_of(|machine| {
        (machine.platform, machine.idle_exits_us) = (Platform::Metal, vec![0, 2]);
    });
    let outcome = woken_elsewhere(metal, 400 * US, |_, _| {});
    only_cause(&outcome, CauseKind::NoEvent);
}

#[test]
fn a_slower_cpu_behind_a_move_is_the_frequency() {
    let frequency = |khz| TraceKind::Frequency { cpu: 1, khz };
    let mut scenario = Scenario::new();
    scenario.event(MS, 1, frequency(3_200_000));
    // Its timer is always on the other CPU: 22 µs until that has left its idle state.
    (0..40).for_each(|_| scenario.wake_elsewhere(30 * US, |_, _| {}));
    for _ in 0..12 {
        scenario.wake_elsewhere(92 * US, |scenario, release| {
            scenario.event(release - 400 * US, 1, frequency(800_000));
        });
        let release = scenario.release;
        scenario.event(release - 960 * US, 1, frequency(3_200_000));
    }
    let row_of = |outcome: &BlameOutcome| outcome.table.rows[0].cause.kind();
    let outcome = scenario.run(config());
    assert_eq!(row_of(&outcome), CauseKind::Frequency, "{}", outcome.table.sentence);
}

#[test]
fn a_cpu_that_is_chosen_for_a_thread_that_another_wakes_is_no_move() {
    let mut scenario = Scenario::new();
    for cycle in 0..52_u64 {
        let at = scenario.release;
        scenario.release += MS;
        let late_ns = if cycle < 40 { 6 * US } else { 96 * US };
        scenario.switch(at - 10 * US, 0, 0, cat());
        scenario.wake(at, 0, servo(), 0);
        let moved = TraceKind::Migrate { task: servo(), from_cpu: 0, to_cpu: 1 };
        scenario.event(at + 1, 0, moved).switch(at + US, 0, 1, idle());
        scenario.switch(at + late_ns, 1, 0, servo()).switch(at + 150 * US, 1, 1, idle());
    }
    let outcome = scenario.run(config());
    only_cause(&outcome, CauseKind::IdleExit);
}

#[test]
fn a_deadline_thread_is_released_without_a_waking() {
    let thread = TaskName { kernel_priority: -1, ..servo() };
    let mut scenario = Scenario::new();
    scenario.switch(9 * MS, 0, 0, thread);
    for cycle in 0..52_u64 {
        let release = scenario.release;
        scenario.release += PERIOD;
        let start = TraceKind::TimerStart {
            timer: 0x55_0000,
            function: DEADLINE,
            expires_ns: release as i64,
            soft_expires_ns: release as i64,
        };
        scenario.event(release - 900 * US, 0, start);
        // It yields, and looks ready.
        scenario.switch(release - 899 * US, 0, 0, task("stop", 500, -1));
        scenario.timer_entry(release + 5 * US, 0);
        scenario.expire(release + 6 * US, 0, 0x55_0000, DEADLINE);
        scenario.timer_exit(release + 9 * US, 0);
        let run = if cycle < 40 { 10 * US } else { 110 * US };
        scenario.switch(release + run, 0, 1, thread);
    }
    let outcome = scenario.run(config());
    assert_eq!(outcome.table.wakes, 52);
    only_cause(&outcome, CauseKind::EqualPriority);
}

#[test]
fn a_thread_that_an_interrupt_wakes_has_the_interrupts_entry_as_release() {
    let name = ShortName::new(b"can0");
    let mut scenario = Scenario::new();
    for cycle in 0..52_u64 {
        let at = scenario.release;
        scenario.release += MS;
        scenario.switch(at - 500 * US, 0, 1, idle());
        scenario.event(at, 0, TraceKind::IrqEntry { irq: 12, name });
        scenario.wake(at + 3 * US, 0, servo(), 0);
        scenario.event(at + 4 * US, 0, TraceKind::IrqExit { irq: 12, is_handled: None });
        if cycle >= 40 {
            scenario.event(at + 4_500, 0, TraceKind::SoftirqEntry(9));
            scenario.event(at + 94 * US, 0, TraceKind::SoftirqExit(9));
        }
        let run = if cycle < 40 { 6 * US } else { 96 * US };
        scenario.switch(at + run, 0, 0, servo());
    }
    let outcome = scenario.run(config());
    assert_eq!(outcome.table.wakes, 52);
    let row = only_cause(&outcome, CauseKind::Softirq);
    assert_eq!(row.cause, LateCause::Softirq { number: 9, device: name });
    assert_eq!(outcome.worst[0].release_ns % MS, 0);
    let off = BlameConfig { event_driven: false, ..config() };
    assert_eq!(scenario.run(off).table.wakes, 0);
}

#[test]
fn a_thread_behind_an_interrupts_thread_has_the_same_release() {
    let mut scenario = Scenario::new();
    let irq_thread = task("irq/12-can0", 600, 49);
    for _ in 0..30 {
        let at = scenario.release;
        scenario.release += MS;
        scenario.switch(at - 500 * US, 0, 1, idle());
        scenario.event(at, 0, TraceKind::IrqEntry { irq: 12, name: ShortName::new(b"can0") });
        scenario.wake(at + US, 0, irq_thread, 0);
        scenario.event(at + 2 * US, 0, TraceKind::IrqExit { irq: 12, is_handled: None });
        scenario.switch(at + 3 * US, 0, 0, irq_thread);
        scenario.wake(at + 10 * US, 0, servo(), 0);
        scenario.switch(at + 12 * US, 0, 1, servo());
    }
    let outcome = scenario.run(config());
    assert_eq!((outcome.table.wakes, outcome.table.worst.least_ns()), (30, 12 * US));
}

#[test]
fn a_thread_that_another_wakes_is_released_by_that() {
    let mut scenario = Scenario::new();
    for cycle in 0..52_u64 {
        let at = scenario.release;
        scenario.release += MS;
        let is_late = cycle >= 40;
        scenario.switch(at - 500 * US, 0, 1, if is_late { hog() } else { idle() });
        scenario.switch(at - 10 * US, 1, 0, cat());
        scenario.wake(at, 1, servo(), 0);
        scenario.switch(at + US, 1, 1, idle());
        scenario.switch(at + if is_late { 96 * US } else { 6 * US }, 0, 1, servo());
    }
    let outcome = scenario.run(config());
    assert_eq!((outcome.table.wakes, outcome.table.worst.least_ns()), (52, 96 * US));
    let row = only_cause(&outcome, CauseKind::HigherPriority);
    assert_eq!(row.cause.culprit(), Some(hog()));
    assert!(outcome.worst.iter().all(|wake| wake.release_ns % MS == 0));
    let off = BlameConfig { event_driven: false, ..config() };
    assert_eq!(scenario.run(off).table.wakes, 0);
}

#[test]
fn a_thread_that_another_wakes_on_its_way_to_sleep_is_counted_and_in_no_figure() {
    let mut scenario = Scenario::new();
    for cycle in 0..52_u64 {
        let at = scenario.release;
        scenario.release += MS;
        // The last ones are preempted, and still on the run queue: on their way to which sleep?
        let (state, next) = if cycle < 40 { (1, idle()) } else { (0x100, hog()) };
        scenario.switch(at - 500 * US, 0, state, next);
        scenario.switch(at - 10 * US, 1, 0, cat());
        scenario.wake(at, 1, servo(), 0);
        scenario.switch(at + US, 1, 1, idle());
        scenario.switch(at + if cycle < 40 { 6 * US } else { 96 * US }, 0, 1, servo());
    }
    let outcome = scenario.run(config());
    assert_eq!((outcome.table.wakes, outcome.threads[0].figures.unmatched), (40, 12));
}

#[test]
fn a_waker_that_works_on_above_its_thread_is_not_to_be_lowered() {
    let mut scenario = Scenario::new();
    for cycle in 0..52_u64 {
        let at = scenario.release;
        scenario.release += MS;
        scenario.switch(at - 500 * US, 0, 1, idle());
        scenario.switch(at - 10 * US, 0, 0, hog());
        scenario.wake(at, 0, servo(), 0);
        scenario.switch(at + if cycle < 40 { 6 * US } else { 96 * US }, 0, 1, servo());
    }
    let outcome = scenario.run(config());
    assert_eq!((outcome.table.wakes, outcome.table.worst.least_ns()), (52, 96 * US));
    let row = only_cause(&outcome, CauseKind::HigherPriority);
    assert_eq!((row.cause.culprit(), row.advice.rule), (Some(hog()), None));
    assert!(row.advice.text.contains("wakes the late thread and works on"), "{}", row.advice.text);
}

#[test]
fn the_interrupt_by_which_a_waking_reaches_its_cpu_is_nobodys_fault() {
    for (before, kind) in [(idle(), CauseKind::IdleExit), (cat(), CauseKind::HostOrInterruptsOff)] {
        let mut scenario = Scenario::new();
        for cycle in 0..52_u64 {
            let at = scenario.release;
            scenario.release += MS;
            let gap = if cycle < 40 { 3 * US } else { 100 * US };
            scenario.switch(at - 500 * US, 0, 1, before);
            scenario.switch(at - 10 * US, 1, 0, sender());
            scenario.wake(at, 1, servo(), 0);
            let targets = Box::new([1]);
            scenario.event(at + US, 1, TraceKind::IpiSend { targets, callback: 0 });
            scenario.switch(at + 2 * US, 1, 1, idle());
            scenario.event(at + gap, 0, TraceKind::VectorEntry(Vector::Reschedule));
            scenario.event(at + gap + US, 0, TraceKind::VectorExit(Vector::Reschedule));
            scenario.switch(at + gap + 2 * US, 0, 0, servo());
        }
        let outcome = scenario.run(config());
        assert_eq!((outcome.table.wakes, outcome.table.worst.least_ns()), (52, 102 * US));
        only_cause(&outcome, kind);
    }
}

#[test]
fn what_a_waker_interrupts_for_beside_its_waking_is_an_interrupt_of_its() {
    let mut scenario = Scenario::new();
    for cycle in 0..52_u64 {
        let at = scenario.release;
        scenario.release += MS;
        scenario.switch(at - 500 * US, 0, 1, idle());
        scenario.switch(at - 10 * US, 1, 0, sender());
        scenario.wake(at, 1, servo(), 0);
        let targets = Box::new([1]);
        scenario.event(at + US, 1, TraceKind::IpiSend { targets, callback: 0 });
        scenario.switch(at + 2 * US, 1, 1, idle());
        scenario.event(at + 3 * US, 0, TraceKind::VectorEntry(Vector::Reschedule));
        scenario.event(at + 4 * US, 0, TraceKind::VectorExit(Vector::Reschedule));
        let length = if cycle < 40 { US } else { 300 * US };
        scenario.event(at + 5 * US, 0, TraceKind::VectorEntry(Vector::CallFunction));
        scenario.event(at + 5 * US + length, 0, TraceKind::VectorExit(Vector::CallFunction));
        scenario.switch(at + 7 * US + length, 0, 0, servo());
    }
    let outcome = scenario.run(config());
    assert_eq!(outcome.table.wakes, 52);
    assert_eq!(only_cause(&outcome, CauseKind::Ipi).cause.culprit(), Some(sender()));
}

#[test]
fn who_has_a_timer_is_not_released_by_the_end_of_a_lock() {
    let mut scenario = Scenario::new();
    for _ in 0..40 {
        scenario.normal();
        // It waits for a lock in the middle of its cycle.
        let at = scenario.release - PERIOD + 100 * US;
        scenario.switch(at, 0, 1, idle());
        scenario.switch(at + US, 1, 0, cat());
        scenario.wake(at + 60 * US, 1, servo(), 0);
        scenario.switch(at + 61 * US, 1, 1, idle());
        scenario.switch(at + 200 * US, 0, 0, servo());
    }
    let outcome = scenario.run(config());
    assert_eq!(outcome.table.wakes, 40);
    assert!(outcome.table.worst.least_ns() < 50 * US, "{}", outcome.table.worst.least_ns());
}

#[test]
fn a_thread_that_sleeps_early_and_spins_is_late_only_beyond_its_margin() {
    let late = LateThreshold::Above(20 * US);
    let config = || BlameConfig { late, ..config() };
    let lateness = |cycle: u64| 14 * US + cycle * 7_919 % (80 * US);
    // It programs its timer 1.1 ms after each release, however late it woke.
    let mut spins = Scenario::new();
    for cycle in 0..300 {
        let release = spins.release;
        spins.release += PERIOD;
        spins.arm(release - 900 * US, 0, release).switch(release - 898 * US, 0, 1, idle());
        let run = release + lateness(cycle);
        spins.fire(run - 9 * US).start(run - 8 * US);
    }
    let outcome = spins.run(config());
    let margin = outcome.threads[0].figures.margin_ns;
    assert!((90 * US..=94 * US).contains(&margin), "{margin}");
    assert!(outcome.table.threshold_ns.is_some_and(|threshold| threshold >= margin + 20 * US));
    assert_eq!(outcome.table.late, 0, "{}", outcome.table.sentence);
    // This one as long after its wake.
    let mut works = Scenario::new();
    for cycle in 0..300 {
        let release = works.release;
        works.release += PERIOD;
        works.switch(release - 500 * US, 0, 1, idle());
        let run = release + lateness(cycle);
        works.fire(run - 9 * US).start(run - 8 * US);
        works.arm(run + 100 * US, 0, works.release);
    }
    let outcome = works.run(config());
    assert_eq!(outcome.threads[0].figures.margin_ns, 0);
    assert!(outcome.table.late > 200);
}

#[test]
fn a_quantile_is_a_threshold_too() {
    let mut scenario = Scenario::new();
    for cycle in 0..1_000 {
        if cycle % 100 == 99 {
            let release = scenario.sleep(hog());
            scenario.fire(release + 5 * US).timer_exit(release + 10 * US, 0);
            scenario.switch(release + 300 * US, 0, 1, servo());
        } else {
            scenario.normal();
        }
    }
    let late = LateThreshold::quantile(0.95).expect("a share");
    let outcome = scenario.run(BlameConfig { late, ..config() });
    assert_eq!(outcome.table.late, 10);
    assert!(outcome.table.threshold_ns.is_some_and(|threshold| threshold < 16 * US));
    assert_eq!(outcome.table.rows[0].cause.kind(), CauseKind::HigherPriority);
    assert_eq!((outcome.worst.len(), outcome.sample.len()), (10, 0));
}

#[test]
fn several_threads_have_tables_of_their_own_and_one_together() {
    let mut scenario = Scenario::new();
    scenario.normals(40);
    for _ in 0..12 {
        let release = scenario.sleep(hog());
        scenario.fire(release + 5 * US).timer_exit(release + 10 * US, 0);
        scenario.switch(release + 300 * US, 0, 1, servo());
    }
    let everyone = BlameConfig { follow: FollowedThreads::RealTime, ..config() };
    let outcome = scenario.run(everyone);
    assert_eq!(outcome.threads.len(), 1, "the hog was never released by anything");
    assert_eq!(outcome.table.rows, outcome.threads[0].table.rows);
    let named = FollowedThreads::Named(ShortName::new(b"servo"));
    let by_name = BlameConfig { follow: named, ..config() };
    assert_eq!(scenario.run(by_name).table, outcome.table);
}

#[test]
fn releases_that_pass_while_another_has_the_cpu_are_counted_too() {
    let mut scenario = Scenario::new();
    scenario.normals(70);
    let release = scenario.sleep(hog());
    scenario.fire(release + 5 * US).timer_exit(release + 10 * US, 0);
    scenario.switch(release + 5 * MS, 0, 1, servo());
    // It makes up for the two between at once, and sleeps up to the one after them.
    scenario.release = release + 3 * PERIOD;
    scenario.normals(5);
    let outcome = scenario.run(config());
    let busy = outcome.threads[0].busy;
    assert_eq!((busy.count, outcome.table.late), (2, 1), "{}", outcome.table.sentence);
    assert!((5 * MS..6 * MS).contains(&busy.longest_ns), "{busy:?}");
    // They have the cause of the late wake before them.
    let kinds: Vec<_> = outcome.table.passed.iter().map(|row| row.cause.kind()).collect();
    assert_eq!(kinds, [CauseKind::HigherPriority], "{}", outcome.table.sentence);
}

#[test]
fn releases_that_a_thread_works_through_are_counted_though_no_wake_shows_them() {
    let skipping = |works: bool| {
        let mut scenario = Scenario::new();
        for _ in 0..70 {
            scenario.normal();
        }
        let answered = scenario.release - PERIOD;
        if works {
            let until = answered + 5 * MS;
            scenario.timer_entry(until, 0).timer_exit(until + 2 * US, 0);
        }
        // The two between are skipped.
        scenario.release = answered + 3 * PERIOD;
        for _ in 0..5 {
            scenario.normal();
        }
        scenario.run(config())
    };
    let outcome = skipping(true);
    let busy = outcome.threads[0].busy;
    assert_eq!(busy.count, 2, "{}", outcome.table.sentence);
    assert!((5 * MS..5 * MS + 200 * US).contains(&busy.longest_ns), "{busy:?}");
    let first = "2 of 77 releases passed while it waited for its CPU or worked, up to 5.1 ms";
    assert!(outcome.table.sentence.starts_with(first), "{}", outcome.table.sentence);
    let slept = skipping(false);
    assert_eq!(slept.threads[0].busy.count, 0, "it slept through them: {}", slept.table.sentence);
}

/// The servo answers a release, does what `work` says up to so long behind that, and skips the
/// releases that passed meanwhile, which are two.
fn skipping_after(work: impl Fn(&mut Scenario, u64) -> u64) -> (BlameOutcome, Recall) {
    let mut scenario = Scenario::new();
    for _ in 0..3 {
        scenario.normals(70);
        let answered = scenario.release - PERIOD;
        let until_ns = work(&mut scenario, answered);
        assert!((answered + 4 * MS..answered + 5 * MS).contains(&until_ns), "two have passed");
        scenario.timer_entry(until_ns, 0).timer_exit(until_ns + 2 * US, 0);
        scenario.release = answered + 3 * PERIOD;
    }
    scenario.normals(5);
    let outcome = scenario.run(config());
    assert_eq!(outcome.threads[0].busy.count, 6, "{}", outcome.table.sentence);
    let recall = outcome.recall(|_, _| true, |address| address);
    (outcome, recall)
}

#[test]
fn what_let_releases_pass_in_the_middle_of_a_cycle_is_named() {
    // A hog that ends before the next release makes the cycle go on past it; and what is preempted
    // in its own fault, or waits for something else, names that.
    let hog_for = |from_us: u64, for_us: u64| {
        move |scenario: &mut Scenario, answered: u64| {
            let from = answered + from_us * US;
            scenario.switch(from, 0, 0, hog()).switch(from + for_us * US, 0, 1, servo());
            answered + 4_500 * US
        }
    };
    let faults = |scenario: &mut Scenario, answered: u64| {
        // Each as short as a switch.
        for from_us in (100..4_400).step_by(4) {
            scenario.event(answered + from_us * US, 0, TraceKind::PageFaultEntry);
            scenario.event(answered + (from_us + 3) * US, 0, TraceKind::PageFaultExit);
        }
        answered + 4_500 * US
    };
    let waits = |scenario: &mut Scenario, answered: u64| {
        scenario.event(answered + 100 * US, 0, TraceKind::SyscallEntry { number: 1 });
        scenario.switch(answered + 101 * US, 0, 1, idle());
        scenario.wake(answered + 4_200 * US, 0, servo(), 0);
        scenario.switch(answered + 4_202 * US, 0, 0, servo());
        scenario.event(answered + 4_203 * US, 0, TraceKind::SyscallExit { number: 1 });
        answered + 4_500 * US
    };
    type Work<'a> = &'a dyn Fn(&mut Scenario, u64) -> u64;
    let cases: [(CauseKind, &str, Work<'_>); 6] = [
        // 2.604 ms beyond the release: the timer is programmed 102 us behind the end.
        (CauseKind::HigherPriority, "hog", &hog_for(200, 4_000)),
        (CauseKind::HigherPriority, "hog", &hog_for(200, 1_500)),
        (CauseKind::OwnCode, "its own code", &hog_for(200, 500)),
        (CauseKind::OwnCode, "its own code", &|_, answered| answered + 4_500 * US),
        (CauseKind::OwnFault, "its own page faults", &faults),
        (CauseKind::OwnWait, "its own wait", &waits),
    ];
    for (kind, name, work) in cases {
        let (outcome, recall) = skipping_after(work);
        let first = &outcome.table.passed[0];
        assert_eq!(first.cause.kind(), kind, "{}", outcome.table.sentence);
        assert_eq!((first.touched, outcome.table.late), (3, 0));
        let is_usual = |row: &CauseRow| row.cause.kind() == CauseKind::NormalPath;
        assert!(!outcome.table.passed.iter().any(is_usual), "{}", outcome.table.sentence);
        let together: u64 = outcome.table.passed.iter().map(|row| row.time_ns).sum();
        assert_eq!(together, 3 * (2_500 + 104) * US, "{kind:?}");
        let words = "Of the 7.81 ms by which its cycles went on too long: ";
        assert!(outcome.table.sentence.contains(words), "{}", outcome.table.sentence);
        assert!(first.name.contains(name), "{}", first.name);
        assert!(first.evidence.contains("3 cycles"), "{}", first.evidence);
        let again = run(&[], config().recalling(recall));
        assert_eq!(again.threads[0].busy, outcome.threads[0].busy);
        let times = |outcome: &BlameOutcome| -> Vec<(LateCause, u64)> {
            outcome.table.passed.iter().map(|row| (row.cause, row.time_ns)).collect()
        };
        assert_eq!(times(&again), times(&outcome));
    }
    // Without the hog it would have ended so much earlier; the rest is its own work.
    let (outcome, _) = skipping_after(hog_for(200, 1_500));
    let times: Vec<u64> = outcome.table.passed.iter().map(|row| row.time_ns).collect();
    assert_eq!(times, [3 * 1_500 * US, 3 * 1_104 * US]);
    let (outcome, _) = skipping_after(hog_for(200, 4_000));
    assert_eq!(outcome.table.passed.len(), 1, "it would have ended before the release");
}

#[test]
fn a_long_cycle_that_is_no_longer_whole_names_what_made_it_long() {
    for (cycles, bursts) in [(1, 600), (3, 600), (1, 6)] {
        let mut scenario = Scenario::new();
        for _ in 0..cycles {
            scenario.normals(70);
            let answered = scenario.release - PERIOD;
            for burst in 0..bursts {
                let from = answered + (100 + burst * 4_000 / bursts) * US;
                scenario.switch(from, 0, 0, hog());
                scenario.switch(from + 3_600 * US / bursts, 0, 1, servo());
            }
            scenario.release = answered + 3 * PERIOD;
        }
        scenario.normals(5);
        let mut config = config();
        config.bounds.pieces = 64;
        let outcome = scenario.run(config);
        let [first, ..] = &outcome.table.passed[..] else { panic!("{}", outcome.table.sentence) };
        assert_eq!(first.cause.kind(), CauseKind::HigherPriority, "{}", outcome.table.sentence);
        assert!(first.share_of_time > 0.85, "{bursts}: {}", outcome.table.sentence);
    }
}

#[test]
fn what_is_later_than_the_period_is_late_whatever_the_share() {
    let mut scenario = Scenario::new();
    for _ in 0..70 {
        scenario.normal();
    }
    for number in 0..7 {
        scenario.sleep(hog());
        let release = scenario.release - PERIOD;
        // One of them by no more than the width of a bucket.
        let late_ns = if number == 3 { PERIOD } else { 3 * MS };
        scenario.fire(release + late_ns).start(release + late_ns);
        scenario.release = release + 3 * PERIOD;
    }
    let late = LateThreshold::Quantile(0.99);
    let outcome = scenario.run(BlameConfig { late, ..config() });
    let (threshold_ns, late) = (outcome.table.threshold_ns.expect("one"), outcome.table.late);
    assert!((PERIOD - PERIOD / 15..=PERIOD).contains(&threshold_ns), "{threshold_ns}");
    assert_eq!(late, 7, "{}", outcome.table.sentence);
}
