//! Whatever comes in: no panic, and parts that add up.

use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest};
use punctual_blame::config::{BlameBounds, BlameConfig, FollowedThreads, LateThreshold};
use punctual_trace::event::{ContextFlags, TaskName, TraceEvent, TraceKind, Vector};

use crate::scenario::{
    DEADLINE, PERIOD, Scenario, TICK, UNTHROTTLE, US, WAKEUP, cat, config, equal, hog, idle, run,
    servo, with_cpu_time,
};

/// A stretch of ordinary life with a bit of everything.
fn life() -> Vec<TraceEvent> {
    let mut scenario = Scenario::new();
    for cycle in 0..30_u64 {
        match cycle % 6 {
            0 => {
                let release = scenario.sleep(hog());
                scenario.fire(release + 5 * US).timer_exit(release + 10 * US, 0);
                scenario.switch(release + 300 * US, 0, 1, servo());
            }
            1 => {
                let release = scenario.sleep(cat());
                scenario.event(release + US, 0, TraceKind::SoftirqEntry(3));
                scenario.event(release + 30 * US, 0, TraceKind::Nmi { took_ns: 9 * US });
                scenario.event(release + 60 * US, 0, TraceKind::SoftirqExit(3));
                scenario.fire(release + 61 * US).start(release + 62 * US);
            }
            2 => {
                let release = scenario.release;
                scenario.arm(release + 200 * US, 0, release);
                scenario.release += PERIOD;
                scenario.fire(release + 201 * US).timer_exit(release + 206 * US, 0);
            }
            3 => {
                let release = scenario.sleep(equal());
                scenario.event(release - US, 0, TraceKind::Lost { count: 3 });
                scenario.fire(release + 5 * US).timer_exit(release + 10 * US, 0);
                let moved = TraceKind::Migrate { task: servo(), from_cpu: 0, to_cpu: 1 };
                scenario.event(release + 60 * US, 1, moved);
                scenario.switch(release + 90 * US, 1, 0, servo());
                scenario.switch(release + 95 * US, 1, 0, idle());
                scenario.switch(release + 97 * US, 0, 0, servo());
            }
            4 => {
                let release = scenario.sleep(idle());
                scenario.wake(release - 20 * US, 1, servo(), 0);
                scenario.switch(release - 10 * US, 0, 0, servo());
                scenario.switch(release - 5 * US, 0, 4, idle());
                scenario.wake(release + 400 * US, 1, servo(), 0);
                scenario.switch(release + 410 * US, 0, 0, servo());
                scenario.arm(release + 411 * US, 0, release);
                scenario.fire(release + 412 * US).timer_exit(release + 420 * US, 0);
            }
            _ => {
                scenario.normal();
            }
        }
    }
    scenario.sorted()
}

fn tiny() -> BlameConfig {
    let bounds = BlameBounds {
        cpus: 3,
        segments: 8,
        chains: 2,
        threads: 2,
        pieces: 5,
        causes: 6,
        worst: 5,
        reservoir: 4,
    };
    let late = LateThreshold::Above(0);
    BlameConfig { follow: FollowedThreads::RealTime, late, bounds, ..config() }
}

fn configs() -> [BlameConfig; 3] {
    let quantile = BlameConfig { late: LateThreshold::Quantile(0.5), ..config() };
    [tiny(), BlameConfig { late: LateThreshold::Above(0), ..config() }, quantile]
}

#[test]
fn every_prefix_adds_up() {
    let events = life();
    for end in 0..events.len() {
        run(&events[..end], tiny());
    }
    configs().into_iter().for_each(|config| {
        run(&events, config);
    });
}

fn any_task() -> impl Strategy<Value = TaskName> {
    prop_oneof![Just(servo()), Just(hog()), Just(cat()), Just(idle()), Just(equal())]
}

fn any_vector() -> impl Strategy<Value = Vector> {
    prop_oneof![
        Just(Vector::LocalTimer),
        Just(Vector::LocalTimer),
        Just(Vector::Reschedule),
        Just(Vector::CallFunction),
        Just(Vector::CallFunctionSingle),
        Just(Vector::IrqWork),
        Just(Vector::Platform),
        Just(Vector::OtherCpu),
    ]
}

fn any_function() -> impl Strategy<Value = u64> {
    prop_oneof![Just(WAKEUP), Just(TICK), Just(UNTHROTTLE), Just(DEADLINE), Just(0), any::<u64>()]
}

fn any_instant() -> impl Strategy<Value = i64> {
    prop_oneof![8 => 0i64..3_000, 1 => any::<i64>()]
}

fn any_kind() -> impl Strategy<Value = TraceKind> {
    let state = prop_oneof![Just(0), Just(1), Just(2), Just(4), Just(8), Just(0x10), Just(0x100)];
    let [name, handler] = [&b"dev"[..], b"IPI"].map(punctual_trace::event::ShortName::new);
    prop_oneof![
        (0u64..4, any_function(), any_instant(), any_instant()).prop_map(
            |(timer, function, expires_ns, soft_expires_ns)| TraceKind::TimerStart {
                timer,
                function,
                expires_ns,
                soft_expires_ns,
            }
        ),
        (0u64..4).prop_map(|timer| TraceKind::TimerCancel { timer }),
        (0u64..4, any_function(), any_instant()).prop_map(|(timer, function, now_ns)| {
            TraceKind::TimerExpireEntry { timer, function, now_ns }
        }),
        (0u64..4).prop_map(|timer| TraceKind::TimerExpireExit { timer }),
        (any_task(), 0u32..5).prop_map(|(task, target_cpu)| TraceKind::Waking { task, target_cpu }),
        (any_task(), state, any_task()).prop_map(|(previous, previous_state, next)| {
            TraceKind::Switch { previous, previous_state, next }
        }),
        (any_task(), 0u32..4, 0u32..9).prop_map(|(task, from_cpu, to_cpu)| TraceKind::Migrate {
            task,
            from_cpu,
            to_cpu
        }),
        any_vector().prop_map(TraceKind::VectorEntry),
        any_vector().prop_map(TraceKind::VectorExit),
        (0u32..3).prop_map(move |irq| TraceKind::IrqEntry { irq, name }),
        (0u32..3).prop_map(move |irq| TraceKind::IrqEntry { irq, name: handler }),
        (0u32..3).prop_map(|irq| TraceKind::IrqExit { irq, is_handled: None }),
        any::<u8>().prop_map(TraceKind::SoftirqEntry),
        (0u8..10).prop_map(TraceKind::SoftirqExit),
        any::<[u64; 2]>()
            .prop_map(|mask| TraceKind::IpiSend { targets: Box::new(mask), callback: 7 }),
        (0u32..4, 0u64..3).prop_map(|(target_cpu, request)| TraceKind::CallQueued {
            target_cpu,
            request,
            function: 1
        }),
        (0u64..3).prop_map(|request| TraceKind::CallEntry { request, function: 2 }),
        (0u64..3).prop_map(|request| TraceKind::CallExit { request }),
        prop_oneof![0u64..2_000, any::<u64>()].prop_map(|took_ns| TraceKind::Nmi { took_ns }),
        (any_task(), 17u8..23).prop_map(|(task, number)| TraceKind::Signal { number, task }),
        Just(TraceKind::PageFaultEntry),
        Just(TraceKind::PageFaultExit),
        (0u32..400).prop_map(|number| TraceKind::SyscallEntry { number }),
        (0u32..400).prop_map(|number| TraceKind::SyscallExit { number }),
        (any_task(), any::<u64>())
            .prop_map(|(task, took_ns)| TraceKind::RunTime { tid: task.tid, took_ns }),
        (any_task(), any::<i32>()).prop_map(|(task, to_kernel_priority)| {
            TraceKind::PriorityLent { task, to_kernel_priority }
        }),
        any_task().prop_map(|task| TraceKind::Renamed { task }),
        any::<u64>().prop_map(|function| TraceKind::WorkStart { function }),
        any::<u32>().prop_map(|state| TraceKind::CpuIdle { state }),
        (any::<u32>(), 0..4_u32).prop_map(|(khz, cpu)| TraceKind::Frequency { khz, cpu }),
        any::<u64>().prop_map(|count| TraceKind::Lost { count }),
    ]
}

fn any_event() -> impl Strategy<Value = TraceEvent> {
    let at = prop_oneof![20 => 0u64..3_000, 1 => any::<u64>()];
    let chain = proptest::collection::vec(any_function(), 0..20);
    (at, 0u32..4, any_task(), any::<u8>(), any_kind(), chain).prop_map(
        |(at_ns, cpu, task, flags, kind, chain)| TraceEvent {
            at_ns,
            cpu,
            tid: task.tid,
            context: ContextFlags { flags, preempt_depth: 0 },
            kind,
            chain: chain.into(),
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_events_add_up(
        mut events in proptest::collection::vec(any_event(), 0..400),
        is_sorted in any::<bool>(),
    ) {
        if is_sorted {
            events.sort_by_key(|event| event.at_ns);
        }
        configs().into_iter().for_each(|config| {
            run(&events, config);
        });
    }

    #[test]
    fn life_with_events_lost_twice_and_moved_adds_up(
        damage in proptest::collection::vec((any::<u16>(), 0u8..4), 0..60),
        has_silent_idle in any::<bool>(),
    ) {
        let mut events = life();
        if has_silent_idle {
            events = with_cpu_time(events);
            events.retain(|event| event.tid != 0);
        }
        for (place, kind) in damage {
            let place = usize::from(place) % events.len();
            match kind {
                0 => {
                    events.remove(place);
                }
                1 => {
                    let twin = events[place].clone();
                    events.insert(place, twin);
                }
                2 => {
                    let other = (place * 7 + 3) % events.len();
                    events.swap(place, other);
                }
                _ => events[place].cpu ^= 1,
            }
        }
        configs().into_iter().for_each(|config| {
            run(&events, config);
        });
    }
}
