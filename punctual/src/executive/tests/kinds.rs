//! Calendars, background work, device triggers, sample files and clocks of one's own.
#![expect(clippy::disallowed_types, reason = "what a test hands to a body may make it wait")]

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use punctual_core::clock::Clock;
use punctual_core::time::{Instant, Span};
use punctual_engine::calendar::Unit;
use punctual_engine::clocks::MachineClock;
use punctual_testkit::skip;

use super::*;

fn us(us: u64) -> Duration {
    Duration::from_micros(us)
}

#[test]
fn units_keep_their_order_and_their_bodies_and_tasks_fit_between() {
    let order = std::sync::Mutex::new(Vec::new());
    let note = |event: &'static str| {
        let order = &order;
        move || order.lock().expect("no panic").push(event)
    };
    let [read, write, task_ran] = [note("read"), note("write"), note("task")];
    let (parts, [cycles, turns]) = (AtomicU64::new(0), [const { AtomicU64::new(0) }; 2]);
    let frame = Period::from_ns(5_000_000).expect("in range");
    let calendar = Calendar::frame(frame)
        .unit(Unit::new("read", us(500)), |_| read())
        .unit(Unit::new("filter 1", us(300)).after("read", us(200)).of("filter"), |cycle| {
            parts.fetch_max(u64::from(cycle.part), Ordering::Relaxed);
            turns.fetch_add(1, Ordering::Relaxed);
            cycles.fetch_add(u64::from(cycle.part == 0), Ordering::Relaxed);
            if cycle.part < 2 { Flow::Break } else { Flow::Continue }
        })
        .unit(Unit::new("write", us(500)).after("filter 1", us(200)), |_| write())
        .part(Unit::new("filter 2", us(300)).after("write", us(200)).of("filter"));
    let beside = task("task", 10_000).budget(us(100));
    let (plan, ids) =
        quick().calendar(calendar).task(beside, |_| task_ran()).build().expect("it fits");
    assert_eq!(ids.len(), 4);
    let names: Vec<_> = plan.layout().into_iter().map(|placed| placed.name).collect();
    assert_eq!(names, ["read", "filter", "write", "task"]);
    let summary = plan.run_for(ms(200)).expect("it starts");
    assert_eq!(summary.end, End::Finished);
    assert!(summary.tasks.iter().all(|task| task.counts.ran > 0), "{summary}");
    assert_eq!(parts.load(Ordering::Relaxed), 2, "it breaks off twice and goes on");
    let names: Vec<&str> = summary.units.iter().map(|unit| unit.name.as_str()).collect();
    assert_eq!(names, ["read", "filter 1", "write", "filter 2"]);
    let ran = |unit: &str| {
        let unit = summary.units.iter().find(|unit_stats| unit_stats.name == unit).expect("there");
        unit.counts.ran
    };
    assert_eq!(ran("filter 1") + ran("filter 2"), turns.load(Ordering::Relaxed));
    assert_eq!(stats(&summary, "filter").counts.ran, cycles.load(Ordering::Relaxed));
    assert!(ran("filter 2") > 0 && ran("read") == stats(&summary, "read").counts.ran);
    assert!(summary.to_string().contains("unit filter 2: "), "{summary}");
    let order: Vec<_> = order.into_inner().expect("no panic");
    let units: Vec<_> = order.iter().filter(|event| **event != "task").collect();
    let reads = units.iter().filter(|event| ***event == "read").count() as u64;
    assert_eq!(reads, stats(&summary, "read").counts.ran);
}

#[test]
fn a_task_with_a_thread_is_released_beside_a_calendar() {
    let calendar = || {
        let frame = Period::from_ns(5_000_000).expect("in range");
        Calendar::frame(frame).unit(Unit::new("unit", us(1_000)).at(us(2_000)), |_| ())
    };
    let own = || task("own", 5_000).placed(Placement::thread(RtThread::any()));
    // With a budget, which is of its own thread, or without; also released within a unit.
    for own in [own(), own().budget(us(4_000)), own().at(us(2_500))] {
        let (plan, _) = quick().calendar(calendar()).task(own, |_| ()).build().expect("it fits");
        let summary = plan.run_for(ms(100)).expect("it starts");
        let [unit, own] = ["unit", "own"].map(|name| stats(&summary, name).counts);
        assert!(own.ran > 0, "{summary}");
        assert_eq!((own.ran + own.missed, unit.ran + unit.missed), (20, 20), "{summary}");
    }
}

#[test]
fn a_calendar_needs_one_body_for_each_task() {
    let frame = Period::from_ns(5_000_000).expect("in range");
    let build = |calendar| match quick().calendar(calendar).build() {
        Ok(_) => String::new(),
        Err(why) => why.to_string(),
    };
    let none = Calendar::frame(frame).part(Unit::new("a", us(10)));
    assert!(build(none).contains("no unit of the calendar brings a body for task \"a\""));
    let two = Calendar::frame(frame)
        .unit(Unit::new("a 1", us(10)).of("a"), |_| ())
        .unit(Unit::new("a 2", us(10)).at(us(50)).of("a"), |_| ());
    assert!(build(two).contains("two units of task \"a\" bring a body"));
    let overlap = Calendar::frame(frame)
        .unit(Unit::new("a", us(10)), |_| ())
        .unit(Unit::new("b", us(10)).at(us(9)), |_| ());
    assert!(build(overlap).contains("overlap"));
    let no_budget = quick()
        .calendar(Calendar::frame(frame).unit(Unit::new("a", us(10)), |_| ()))
        .task(task("t", 5_000), |_| ());
    let message = no_budget.build().expect_err("refused").to_string();
    assert!(message.contains("\"t\" has no budget"), "{message}");
}

#[test]
fn background_work_runs_where_nothing_is_due() {
    let (slices, ran) = (AtomicU64::new(0), AtomicU64::new(0));
    let executive = quick()
        .task(task("a", 5_000), |_| {
            ran.fetch_add(1, Ordering::Relaxed);
        })
        .idle(us(50), || {
            let n = slices.fetch_add(1, Ordering::Relaxed);
            // Three at a time.
            if n % 3 == 2 { Flow::Break } else { Flow::Continue }
        });
    let summary = run(executive, 100);
    let (idle, over) = summary.idle_slices;
    assert!(idle > 0 && idle == slices.load(Ordering::Relaxed));
    assert!(over <= idle);
    assert_eq!(stats(&summary, "a").counts.ran, ran.load(Ordering::Relaxed));
    let ends = quick().task(task("a", 5_000), |_| ()).idle(us(50), || Flow::Stop);
    assert_eq!(run(ends, 60_000).end, End::Stopped);
}

#[test]
fn background_work_that_panics_is_the_end_of_all_and_named() {
    let own = task("own", 1_000).placed(Placement::thread(RtThread::any()));
    let panics = quick().task(task("a", 5_000), |_| ()).task(own, |_| ());
    let summary = run(panics.idle(us(50), || -> Flow { panic!("by design") }), 60_000);
    let text = "by design".to_owned();
    assert_eq!(summary.end, End::Panicked { task: "background work".to_owned(), text });
}

#[test]
fn a_clock_that_panics_while_tasks_run_leaves_no_thread_waiting() {
    /// The machine's clock, until it is to fail in the thread that began with it.
    #[derive(Clone, Debug)]
    struct Fails<'a>(MachineClock, &'a AtomicBool, i32);
    impl Clock for Fails<'_> {
        fn now(&mut self) -> Instant {
            let is_main = punctual_os::process::tid() == self.2;
            assert!(!(is_main && self.1.load(Ordering::Relaxed)), "by design");
            self.0.now()
        }
        fn poll(&mut self) -> Instant {
            self.0.poll()
        }
        fn sleep_until(&mut self, at: Instant) {
            self.0.sleep_until(at);
        }
        fn wake(&mut self) -> Instant {
            self.0.wake()
        }
        fn relax(&mut self) {
            self.0.relax();
        }
    }
    let fails = AtomicBool::new(false);
    let own = task("own", 1_000).placed(Placement::thread(RtThread::any()));
    let clock = Fails(MachineClock::best(), &fails, punctual_os::process::tid());
    let executive = Executive::builder().thread(sleeping()).clock(clock);
    let (plan, _) = executive
        .task(task("a", 1_000), |_| fails.store(true, Ordering::Relaxed))
        .task(own, |_| ())
        .build()
        .expect("fine");
    let run = std::panic::AssertUnwindSafe(|| plan.run_for(ms(60_000)));
    assert!(std::panic::catch_unwind(run).is_err(), "the caller learns of it");
}

#[test]
fn a_sample_file_takes_its_place_while_tasks_run_at_phase_zero() {
    let path = std::env::temp_dir().join(format!("punctual-zero-{}", std::process::id()));
    let (plan, _) = quick().task(task("a", 1_000), |_| ()).record(&path).build().expect("fine");
    let waits = |handle: &Handle<'_>| {
        let came = (0..2_000).any(|_| {
            let _signal = sleep_until_ns(now_ns(ClockId::Monotonic) + 10_000_000);
            path.exists()
        });
        handle.stop();
        came
    };
    let (came, summary) = plan.run_with(ms(60_000), waits).expect("it starts");
    std::fs::remove_file(&path).expect("written");
    assert!(came && summary.end == End::Stopped, "{summary}");
}

#[test]
fn a_descriptor_triggers_a_cycle_for_what_is_readable() {
    let (mut writer, reader) = UnixStream::pair().expect("sockets");
    let mut from = reader.try_clone().expect("a descriptor");
    let read = AtomicU64::new(0);
    let (plan, _) = quick()
        .triggered(Trigger::fd(reader), Task::named("device"), |_| {
            let mut byte = [0];
            from.read_exact(&mut byte).expect("readable");
            let n = read.fetch_add(1, Ordering::Relaxed) + 1;
            if n == 5 { Flow::Stop } else { Flow::Continue }
        })
        .build()
        .expect("fine");
    let (_, summary) = plan
        .run_with(ms(60_000), |_| writer.write_all(b"12345").expect("open"))
        .expect("it starts");
    assert_eq!((&summary.end, read.load(Ordering::Relaxed)), (&End::Stopped, 5));
}

#[test]
fn a_triggered_task_can_end_itself_and_the_others_go_on() {
    let (cycles, ran) = (AtomicU64::new(0), AtomicU64::new(0));
    let ending = |cycle: &mut Cycle<'_>| {
        cycles.fetch_add(1, Ordering::Relaxed);
        if cycle.n == 2 { Flow::Break } else { Flow::Continue }
    };
    let after = |_: &mut Cycle<'_>| match cycles.load(Ordering::Relaxed) {
        3.. if ran.fetch_add(1, Ordering::Relaxed) == 9 => Flow::Stop,
        _ => Flow::Continue,
    };
    let executive = quick().task(task("a", 1_000), after);
    let executive = executive.triggered(Trigger::wait(|| true), Task::named("device"), ending);
    assert_eq!(run(executive, 60_000).end, End::Stopped);
    assert_eq!((cycles.into_inner(), ran.into_inner()), (3, 10));
}

#[test]
fn a_descriptor_with_an_error_to_be_read_triggers_a_cycle() {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    let nobody = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    socket.connect(nobody.local_addr().expect("its own")).expect("an address");
    socket.set_nonblocking(true).expect("a socket");
    drop(nobody);
    let from = socket.try_clone().expect("a descriptor");
    socket.send(b"x").expect("the error comes later");
    let refused = AtomicBool::new(false);
    let triggered = quick().task(task("a", 1_000), |_| ()).triggered(
        Trigger::fd(socket),
        Task::named("device"),
        |_| {
            let error = from.recv(&mut [0]).expect_err("nobody sends").kind();
            refused.store(error == std::io::ErrorKind::ConnectionRefused, Ordering::Relaxed);
            Flow::Stop
        },
    );
    assert_eq!(run(triggered, 20_000).end, End::Stopped);
    assert!(refused.into_inner());
}

#[test]
fn a_descriptor_that_is_closed_at_its_other_end_triggers_no_more() {
    let (mut writer, reader) = UnixStream::pair().expect("sockets");
    let mut from = reader.try_clone().expect("a descriptor");
    let (cycles, first_dt) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
    let executive = quick().task(task("a", 1_000), |_| ()).triggered(
        Trigger::fd(reader),
        Task::named("device"),
        |cycle| {
            let dt = cycle.dt.as_ns().unsigned_abs();
            first_dt.fetch_min(dt, Ordering::Relaxed);
            assert_eq!(from.read(&mut [0]).expect("readable"), 1);
            cycles.fetch_add(1, Ordering::Relaxed);
        },
    );
    writer.write_all(b"123").expect("open");
    drop(writer);
    let summary = run(executive, 100);
    assert_eq!((&summary.end, cycles.load(Ordering::Relaxed)), (&End::Finished, 3));
    assert_eq!(first_dt.load(Ordering::Relaxed), 0, "of the first cycle nothing is known");
    assert_eq!(stats(&summary, "device").counts.ran, 2, "distances");
}

#[test]
fn dt_is_the_time_between_releases_also_where_the_phase_moves() {
    for placement in [Placement::inline(), Placement::thread(sleeping())] {
        // Below the executive, where it has a thread of its own.
        let placement = match placement {
            own if own != Placement::inline() => {
                Placement::thread(RtThread::any().wait(WaitPolicy::sleep()))
            }
            inline => inline,
        };
        let (mut last, wrong) = (None, AtomicU64::new(0));
        let delays = task("a", 1_000).on_overrun(OnOverrun::Delay).placed(placement);
        let summary = run(
            quick().task(delays, |cycle| {
                if last.is_some_and(|last| cycle.release - last != cycle.dt) {
                    wrong.fetch_add(1, Ordering::Relaxed);
                }
                last = Some(cycle.release);
                if cycle.n % 5 == 0 {
                    sleep_until_ns(now_ns(ClockId::Monotonic) + 3_300_000).expect("no signal");
                }
            }),
            80,
        );
        assert_eq!(wrong.load(Ordering::Relaxed), 0, "{summary}");
        assert!(stats(&summary, "a").counts.over_release > 0, "{summary}");
    }
}

#[test]
fn a_calendar_begins_with_a_whole_frame() {
    let order = std::sync::Mutex::new(Vec::new());
    let frame = Period::from_ns(20_000_000).expect("in range");
    let calendar = Calendar::frame(frame)
        .unit(Unit::new("sense", us(500)), |cycle| {
            order.lock().expect("no panic").push(("sense", cycle.n));
        })
        .unit(Unit::new("act", us(500)).at(ms(15)), |cycle| {
            order.lock().expect("no panic").push(("act", cycle.n));
        });
    let summary = run(quick().calendar(calendar), 100);
    assert_eq!(summary.end, End::Finished);
    let order = order.into_inner().expect("no panic");
    let [sense, act] = ["sense", "act"].map(|name| stats(&summary, name).counts);
    assert!(sense.ran + sense.missed >= act.ran + act.missed, "{summary}");
    // Where the loop itself begins late the first unit has missed its place.
    let first = order.first().map(|first| first.0);
    assert!(first == Some("sense") || sense.missed > 0, "{order:?} {summary}");
}

#[test]
fn a_sample_file_has_a_run_for_each_task() {
    let path = std::env::temp_dir().join(format!("punctual-tasks-{}", std::process::id()));
    let own = task("own \"thread\"", 2_000).placed(Placement::thread(RtThread::any()));
    let executive = quick().task(task("inline", 1_000), |_| ()).task(own, |_| ()).record(&path);
    let summary = run(executive, 100);
    let samples = summary.samples.clone().expect("recorded");
    assert_eq!((samples.failed, samples.unrecorded), (None, 0));
    let ran: u64 = summary.tasks.iter().map(|task| task.counts.ran).sum();
    assert_eq!(samples.written, ran);
    let bytes = std::fs::read(&path).expect("written");
    std::fs::remove_file(&path).expect("ours");
    let text = String::from_utf8_lossy(&bytes);
    assert!(
        text.contains("\"name\":\"inline\"") && text.contains("\"name\":\"own \\\"thread\\\"\"")
    );
}

#[test]
fn releases_are_on_the_clock_that_is_given() {
    /// The machine's clock, an hour ahead.
    #[derive(Clone, Debug)]
    struct Ahead(MachineClock);
    const HOUR: Span = Span::from_ms(3_600_000);
    impl Clock for Ahead {
        fn now(&mut self) -> Instant {
            self.0.now() + HOUR
        }
        fn poll(&mut self) -> Instant {
            self.0.poll() + HOUR
        }
        fn sleep_until(&mut self, at: Instant) {
            self.0.sleep_until(at - HOUR);
        }
        fn wake(&mut self) -> Instant {
            self.0.wake() + HOUR
        }
        fn relax(&mut self) {
            self.0.relax();
        }
    }
    let mut machine = MachineClock::best();
    let earliest = machine.now() + HOUR;
    let first = AtomicU64::new(0);
    let note = |cycle: &mut Cycle<'_>| {
        let _first =
            first.compare_exchange(0, cycle.release.as_ns(), Ordering::Relaxed, Ordering::Relaxed);
    };
    let own = task("own", 1_000).placed(Placement::thread(RtThread::any()));
    let late = task("long", 10_000).on_overrun(OnOverrun::Terminate);
    let executive = Executive::builder()
        .thread(sleeping())
        .clock(Ahead(machine))
        .task(task("a", 1_000), note)
        .task(own, |_| ())
        .task(late, |cycle| assert!(!cycle.cancelled(), "by another clock"));
    let (plan, _) = executive.build().expect("fine");
    let summary = plan.run_for(ms(50)).expect("it starts");
    assert_eq!(summary.end, End::Finished);
    assert!(first.load(Ordering::Relaxed) >= earliest.as_ns());
    assert!(stats(&summary, "own").counts.ran > 0, "{summary}");
}

#[test]
fn releases_that_meet_the_tick_all_the_same_are_moved_and_it_warns() {
    use punctual_engine::quiet::{Gap, place};

    let (every, length) = (ms(4), Duration::from_micros(17));
    let clock = crate::sim::SimulatedClock::new().stall_every(every, length);
    let late_ns = AtomicU64::new(0);
    let (mut plan, _) = Executive::builder()
        .clock(clock)
        .thread(stops::ordinary(WaitPolicy::adaptive()))
        .task(task("a", 1_000), |cycle| {
            late_ns.fetch_max(cycle.lateness.as_ns().unsigned_abs(), Ordering::Relaxed);
        })
        .build()
        .expect("fine");
    // What comes every 4 ms is taken for the tick: the place half a period from it is the tick's.
    plan.assembly.clocking.quiet_at(|_, period, _| {
        let detected = (0..75).map(|turn| Gap {
            at: Instant::from_ns(turn * 4_000_000 + 437_500),
            length: Span::from_us(3),
        });
        let mut place = place(&detected.collect::<Vec<_>>(), period)?;
        // As if nothing were known of where the kernel has it.
        (place.phase_ns, place.tick_ns, place.tick_phase_ns) = (0, 4_000_000, 437_500);
        Some(place)
    });
    let summary = plan.run_for(ms(100)).expect("it starts");
    let moved = summary.quiet.map(|quiet| (quiet.phase_ns, quiet.clear_ns));
    assert_eq!((moved, summary.epoch.as_ns()), (Some((781_250, 218_750)), 781_250), "{summary}");
    assert_eq!(stats(&summary, "a").counts.ran, 100, "{summary}");
    assert!(late_ns.load(Ordering::Relaxed) < 1_000, "{summary}");
    let words = summary.warnings.join("\n");
    assert!(words.contains(" met what comes every 4.00 ms, as the"), "{words}");
}

#[test]
fn an_only_task_that_meets_the_tick_says_so_whatever_it_waits_by() {
    let fixed = stops::ordinary(WaitPolicy::fixed(Duration::from_micros(50)));
    let ended = |builder: ExecutiveBuilder<'_>| {
        let (every, length) = (ms(4), Duration::from_micros(17));
        let clock = crate::sim::SimulatedClock::new().stall_every(every, length);
        let builder = builder.clock(clock).phase(Phase::Zero).thread(fixed.clone());
        let (plan, _) = builder.build().expect("fine");
        plan.run_for(ms(600)).expect("it starts")
    };
    let alone = ended(Executive::builder().task(task("a", 1_000), |_| ()));
    let words = alone.warnings.join("\n");
    assert!(words.contains("releases meet what comes every 4.00 ms"), "{words}");
    // Two in one loop keep each other waiting: that is no tick.
    let two = Executive::builder().task(task("a", 1_000), |_| ()).task(task("b", 4_000), |_| ());
    assert_eq!(ended(two).warnings, [""; 0]);
}

#[test]
fn releases_that_a_task_without_a_budget_may_have_kept_are_explained() {
    if !skip::need_native("real timing") {
        return;
    }
    let beside = |log: Task| {
        // So long that a busy machine makes no cycle longer.
        let builder = quick().task(task("servo", 1_000).budget(us(900)), |_| ());
        // A body that blocks is what this is about.
        let block = |_: &mut Cycle<'_>| {
            sleep_until_ns(now_ns(ClockId::Monotonic) + 20_000_000).expect("no signal comes");
        };
        run(builder.task(log, block), 150)
    };
    let explains = |summary: &Summary| {
        let names = |words: &&String| words.starts_with("releases of servo were missed");
        summary.warnings.iter().find(names).is_some_and(|words| words.contains(": log, without"))
    };
    let blocked = beside(task("log", 50_000));
    assert!(stats(&blocked, "servo").counts.missed > 10 && explains(&blocked), "{blocked}");
    // By its budget its line shows what it did; in a thread of its own it keeps nobody waiting.
    let judged = beside(task("log", 50_000).budget(us(100)));
    assert!(stats(&judged, "log").counts.over_budget > 0 && !explains(&judged), "{judged}");
    let thread = Placement::thread(sleeping().fifo(70));
    let apart = beside(task("log", 50_000).placed(thread));
    assert!(!explains(&apart), "{apart}");
}
