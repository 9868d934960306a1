//! A setting that cannot be is named when an executive is built.

use std::slice;
use std::time::Duration;

use punctual_engine::calendar::Unit;
use punctual_testkit::skip;

use super::*;

fn go(_: &mut Cycle<'_>) {}

fn refused(builder: ExecutiveBuilder<'_>) -> String {
    builder.build().expect_err("refused").to_string()
}

#[test]
fn what_cannot_be_is_refused() {
    let cpus = cpus();
    let big = |name: &str| task(name, 1_000).budget(Duration::from_micros(900));
    assert!(refused(quick().task(big("a"), go).task(big("b"), go)).contains("1.800"));
    if let [one, two] = cpus[..] {
        let fits = quick().cpus([one, two]).task(big("a"), go).task(big("b"), go).build();
        let cpus: Vec<_> = fits.expect("one each").0.layout().iter().map(|at| at.cpu).collect();
        assert_eq!(cpus, [Some(one), Some(two)]);
        let same = quick().cpus([one, two]).task(big("a"), go).task(big("a"), go);
        assert!(refused(same).contains("\"a\""));
    }
    let one = || quick().task(task("a", 1_000), go);
    for priority in [0, 99, 255] {
        let message = refused(one().thread(sleeping().fifo(priority)));
        assert!(
            message.contains("from 1 to 98") && message.contains(&priority.to_string()),
            "{message}"
        );
    }
    assert!(one().thread(sleeping().fifo(1)).build().is_ok());
    assert!(one().thread(sleeping().fifo(98)).build().is_ok());
    for share in [0.0, -0.5, 1.01, f64::NAN] {
        let message = refused(one().fill(share));
        assert!(message.contains(&share.to_string()), "{message}");
    }
    let twice = quick().cpus([cpus[0], cpus[0]]).task(task("a", 1_000), go);
    assert!(refused(twice).contains(&format!("CPU {}", cpus[0])));
    assert!(refused(quick()).contains("no task was given"));
    assert!(refused(one().cpus([])).contains("no CPU was given"));
    let frame = || Calendar::frame(Period::from_ns(4_000_000).expect("in range"));
    let twice = one().calendar(frame()).calendar(frame());
    assert!(refused(twice).contains("a second was given"), "it would replace the first");
    let twice = one().idle(Duration::from_micros(10), || ()).idle(Duration::from_micros(20), || ());
    assert!(refused(twice).contains("`idle` was called twice"), "it would replace the first");
    let never = big("c").deadline(Duration::from_micros(400));
    let message = refused(quick().task(never, go));
    assert!(message.contains("deadline of 400 µs (got 900 µs)"), "{message}");
    assert!(refused(one().idle(Duration::ZERO, || ())).contains("got 0 ns"));
    let overfull = refused(one().task(big("b"), go).task(big("c"), go));
    assert!(overfull.contains("\"b\" 900 µs of 1.00 ms, \"c\" 900 µs of 1.00 ms"), "{overfull}");
    assert!(one().allow_overload().task(big("b"), go).task(big("c"), go).build().is_ok());
}

#[test]
fn budgets_that_are_too_much_beside_a_calendar_name_the_cpu() {
    let cpu = cpus()[0];
    let frame = Calendar::frame(Period::from_ns(2_000_000).expect("in range"));
    let calendar = frame.unit(Unit::new("unit", Duration::from_micros(1_600)), go);
    let beside = task("a", 1_000).budget(Duration::from_micros(300));
    let executive = quick().thread(sleeping().pinned(Some(cpu))).calendar(calendar);
    let message = refused(executive.task(beside, go));
    assert!(message.contains(&format!("add up to 1.100 of CPU {cpu}: at most 1")), "{message}");
}

/// A task of 1 kHz beside one of 10 Hz that takes 20 ms.
fn beside_long<'env>(fast: Task, placement: Placement, thread: RtThread) -> ExecutiveBuilder<'env> {
    let plan = task("plan", 100_000).budget(ms(20)).placed(placement);
    quick().thread(thread).task(fast, go).task(plan, go)
}

#[test]
fn a_long_body_that_keeps_a_short_period_waiting_is_warned_of() {
    let inline = Placement::inline;
    let warnings =
        |fast: Task, placement| run(beside_long(fast, placement, sleeping()), 20).warnings;
    let warned = |warnings: &[String]| {
        let names_plan = |warning: &&String| warning.contains("\"plan\"");
        warnings.iter().filter(names_plan).cloned().collect::<Vec<String>>()
    };
    let servo = || task("servo", 1_000);
    // With a budget or without one, at phases that were chosen or that are fixed.
    for fast in [servo(), servo().budget(Duration::from_micros(100)), servo().at(ms(0))] {
        let [warning] = &warned(&warnings(fast, inline()))[..] else { panic!("one warning") };
        for part in ["\"servo\" (1.00 ms)", "may wait 20.0 ms", "up to 20 of"] {
            assert!(warning.contains(part), "{part:?} in {warning}");
        }
    }
    // Also before it runs.
    let (built, _) = beside_long(servo(), inline(), sleeping()).build().expect("a warning");
    let [before] = &warned(built.warnings())[..] else { panic!("one warning") };
    assert_eq!(warned(&built.run_for(ms(5)).expect("it starts").warnings), slice::from_ref(before));
    let apart = Placement::thread(RtThread::any());
    assert_eq!(warned(&warnings(servo(), apart)), [""; 0]);
    assert_eq!(warned(&warnings(task("servo", 20_000), inline())), [""; 0]);
}

#[test]
fn strict_refuses_only_what_no_phases_help() {
    let strict = || sleeping().strict();
    let build = |fast: Task| beside_long(fast, Placement::inline(), strict()).build();
    let message = build(task("servo", 1_000)).expect_err("refused").to_string();
    assert!(message.contains("\"servo\"") && message.contains("\"plan\""), "{message}");
    // A release comes into the 10 ms of the other in which it is too late, or need not.
    let near = |period_us| task("servo", period_us).deadline(ms(10));
    assert!(build(near(9_999)).is_err());
    assert!(build(near(10_000)).is_ok());
    let allowed = beside_long(near(1_000), Placement::inline(), strict()).allow_overload();
    assert!(allowed.build().is_ok());
}

#[test]
fn an_overfull_cpu_is_named() {
    let cpus = cpus();
    let last = *cpus.last().expect("one at least");
    let big = |name: &str| task(name, 1_000).budget(Duration::from_micros(900));
    let on_last_cpu = |name: &str| big(name).placed(Placement::cpu(last));
    let apart = big("b").placed(Placement::thread(RtThread::cpu(last)));
    let pinned = || quick().thread(sleeping().pinned(Some(last)));
    let main = || quick().cpus([cpus[0]]).task(task("a", 1_000), go);
    let (plan, _) = main().task(on_last_cpu("b"), go).build().expect("fine");
    let added = plan.run_with(ms(60_000), |handle| {
        let why = handle.add(on_last_cpu("c"), go).expect_err("refused");
        handle.stop();
        why.to_string()
    });
    for message in [
        refused(pinned().task(big("a"), go).task(big("b"), go)),
        refused(pinned().task(big("a"), go).task(apart.clone(), go)),
        refused(quick().cpus([last]).task(big("a"), go).task(apart, go)),
        refused(main().task(on_last_cpu("b"), go).task(on_last_cpu("c"), go)),
        added.expect("it starts").0,
    ] {
        assert!(message.contains(&format!("1.800 of CPU {last}: at most 1")), "{message}");
    }
    let anywhere = refused(quick().task(big("a"), go).task(big("b"), go));
    assert!(anywhere.contains("1.800 of a CPU: at most 1"), "{anywhere}");
}

#[test]
fn an_overfull_cpu_is_named_whatever_fills_it() {
    let [one, two] = cpus()[..] else { return };
    let us = Duration::from_micros;
    let takes = |name: &str, budget_us| task(name, 1_000).budget(us(budget_us));
    let on = |cpu| Placement::thread(RtThread::cpu(cpu).wait(WaitPolicy::sleep()));
    let full = |message: String, load: &str, cpu| {
        assert!(message.contains(&format!("{load} of CPU {cpu}: at most 1")), "{message}");
    };
    // A loop's task and a thread, on another CPU than the main loop's.
    let second = takes("a", 900).placed(Placement::cpu(two));
    let thread = takes("b", 900).placed(on(two));
    let both = || quick().cpus([one, two]).task(second.clone(), go).task(thread.clone(), go);
    full(refused(both()), "1.800", two);
    assert!(both().allow_overload().build().is_ok());
    // The units of a calendar and a thread.
    let frame = Calendar::frame(Period::from_ns(4_000_000).expect("in range"));
    let calendar = frame.unit(Unit::new("unit", ms(2)), go);
    let pinned = || quick().thread(sleeping().pinned(Some(one)));
    let beside = takes("c", 800).placed(on(one));
    full(refused(pinned().calendar(calendar).task(beside, go)), "1.300", one);
    // A process.
    let process = Process::command(["/bin/true"]).cpu(one);
    let beside = pinned().task(takes("a", 500), go).external(takes("d", 600), process);
    full(refused(beside), "1.100", one);
    // While it runs, in the loop and in a thread.
    let running = pinned().task(takes("a", 200), go).task(takes("e", 700).placed(on(one)), go);
    let (plan, _) = running.build().expect("fine");
    let added = plan.run_with(ms(60_000), |handle| {
        let inline = handle.add(takes("f", 700), go).expect_err("refused").to_string();
        let apart = handle.add(takes("g", 700).placed(on(one)), go).expect_err("refused");
        let other = handle.add(takes("h", 700).placed(on(two)), go);
        handle.stop();
        (inline, apart.to_string(), other.is_ok())
    });
    let (inline, apart, is_other_fine) = added.expect("it starts").0;
    full(inline, "1.600", one);
    full(apart, "1.600", one);
    assert!(is_other_fine);
}

#[test]
fn budgets_of_threads_that_run_anywhere_have_all_cpus() {
    let any = || Placement::thread(RtThread::any());
    let takes = |name: &str| task(name, 1_000).budget(Duration::from_micros(600)).placed(any());
    let allowed = affinity::get(0).expect("own").count() as usize;
    let many =
        |tasks: usize| (0..tasks).fold(quick(), |all, n| all.task(takes(&n.to_string()), go));
    assert!(many(allowed).build().is_ok());
    let message = refused(many(2 * allowed));
    assert!(message.contains(&format!("at most {allowed} is possible")), "{message}");
}

#[test]
fn tasks_that_follow_one_another_stay_together_beside_tasks_with_a_place() {
    let [one, two] = cpus()[..] else { return };
    let us = Duration::from_micros;
    let takes = |name: &str, budget_us| task(name, 1_000).budget(us(budget_us));
    let placed = |builder: ExecutiveBuilder<'_>| {
        let layout = builder.build().expect("fine").0.layout();
        let cpu = |name: &str| layout.iter().find(|at| at.name == name).and_then(|at| at.cpu);
        [cpu("a"), cpu("b")]
    };
    let fixed = || quick().cpus([one, two]).task(takes("x", 600).placed(Placement::cpu(one)), go);
    let follows = || takes("b", 200).after("a", us(100));
    // In either order; and with one of them that has a place.
    let orders = [
        fixed().task(follows(), go).task(takes("a", 300), go),
        fixed().task(takes("a", 300), go).task(follows(), go),
        fixed().task(takes("a", 300), go).task(follows().placed(Placement::cpu(two)), go),
    ];
    for builder in orders {
        assert_eq!(placed(builder), [Some(two); 2]);
    }
    // A thread fills its CPU too, and is no task of its loop.
    let thread =
        |name, budget_us| takes(name, budget_us).placed(Placement::thread(RtThread::cpu(one)));
    let beside = || quick().cpus([one, two]).task(thread("t", 600), go);
    assert_eq!(placed(beside().task(takes("a", 300), go).task(follows(), go)), [Some(two); 2]);
    let light = quick().cpus([one, two]).task(thread("t", 1), go);
    assert_eq!(placed(light.task(takes("a", 3), go).task(takes("b", 3), go)), [Some(two); 2]);
    // One that follows a thread's task is the main loop's, which releases that.
    let last = quick().cpus([two, one]).task(thread("t", 10), go);
    let after = last.task(takes("a", 100), go).task(takes("b", 100).after("t", us(50)), go);
    assert_eq!(placed(after)[1], Some(two));
    // While it runs; the last one would have room beside the thread.
    let builder = || quick().cpus([one, two]);
    for (plan, budget_us) in [
        (beside().task(takes("a", 100), go), 500),
        (builder().task(thread("t", 700), go).task(takes("a", 3), go), 200),
        (builder().task(thread("t", 700), go), 200),
    ] {
        let (plan, _) = plan.build().expect("fine");
        let added = plan.run_with(ms(60_000), |handle| {
            let id = handle.add(takes("b", budget_us), go).expect("it fits on the other");
            handle.stop();
            handle.placed(id).expect("there").and_then(|at| at.cpu)
        });
        assert_eq!(added.expect("it starts").0, Some(two));
    }
}

#[test]
fn a_task_that_comes_later_is_warned_of_as_one_that_was_there() {
    let long = |name: &str, takes_ms| task(name, 100_000).budget(ms(takes_ms));
    let (executive, _) = quick().task(task("servo", 1_000), go).build().expect("fine");
    let (added, summary) = executive
        .run_with(ms(60_000), |handle| {
            let short = task("short", 1_000).budget(Duration::from_micros(100));
            let one_by_one = [short, long("plan", 20), long("shorter", 10)];
            let added = one_by_one.map(|task| handle.add(task, go).is_ok());
            handle.stop();
            added
        })
        .expect("it starts");
    assert_eq!(added, [true; 3]);
    let warned = |names: [&str; 2]| {
        let of_both = |warning: &&String| names.iter().all(|name| warning.contains(name));
        summary.warnings.iter().filter(of_both).count()
    };
    // What was said once is not said again: behind another one that is shorter nothing is new.
    assert_eq!((warned(["\"servo\"", "\"plan\""]), warned(["\"short\"", "\"plan\""])), (1, 1));
    assert_eq!(warned(["may wait", ""]), 2, "{summary}");
}

#[test]
fn that_throttling_will_stop_a_task_that_comes_later_is_said() {
    let throttling = punctual_engine::safety::Machine::here().throttling;
    let most = 0.97;
    if !skip::need("real-time throttling", throttling.is_some_and(|limit| limit.is_met_by(most))) {
        return;
    }
    let cpu = cpus()[0];
    let half = task("half", 1_000).budget(Duration::from_micros(500));
    let pinned = quick().thread(sleeping().pinned(Some(cpu))).task(half, go);
    let (executive, _) = pinned.build().expect("fine");
    let own = |takes_us| {
        let own = RtThread::cpu(cpu).wait(WaitPolicy::sleep());
        let own = task(&format!("{takes_us}"), 10_000).placed(Placement::thread(own));
        own.budget(Duration::from_micros(takes_us))
    };
    let ((), summary) = executive
        .run_with(ms(60_000), |handle| {
            handle.add(own(1_000), go).expect("it fits");
            handle.add(own(3_700), go).expect("it fits");
            handle.stop();
        })
        .expect("it starts");
    let named = format!("may take 97 % of CPU {cpu}, of which throttling allows");
    let said = summary.warnings.iter().filter(|warning| warning.contains(&named));
    assert_eq!(said.count(), 1, "{summary}");
}

#[test]
fn strict_refuses_a_task_that_comes_later_and_that_no_phases_help() {
    if !skip::need("root", skip::is_root()) {
        return;
    }
    let built = quick().thread(sleeping().strict()).task(task("servo", 1_000), go).build();
    let (why, summary) = built
        .expect("fine")
        .0
        .run_with(ms(60_000), |handle| {
            let long = task("plan", 100_000).budget(ms(20));
            let why = handle.add(long, go).expect_err("refused").to_string();
            assert!(handle.add(task("plan", 100_000), go).is_ok(), "nothing was changed");
            handle.stop();
            why
        })
        .expect("it starts");
    for part in ["\"servo\"", "\"plan\"", "without `strict` this is a warning"] {
        assert!(why.contains(part), "{part:?} in {why}");
    }
    assert_eq!(summary.tasks.len(), 2);
}

#[test]
fn a_cpu_that_is_not_there_is_refused_everywhere() {
    let nowhere = affinity::CPUS_MAX - 1;
    let named = format!("cannot run on CPU {nowhere}");
    let thread = sleeping().pinned(Some(nowhere));
    let own = || Placement::thread(RtThread::cpu(nowhere));
    for message in [
        refused(quick().thread(thread.clone()).task(task("a", 1_000), go)),
        refused(quick().cpus([nowhere]).task(task("a", 1_000), go)),
    ] {
        assert!(message.starts_with(&named), "{message}");
    }
    let of_task = format!("task \"far\" {named}");
    let device = || Trigger::wait(|| false);
    let main = || quick().task(task("a", 1_000), go);
    let (plan, _) = main().build().expect("fine");
    let added = plan.run_with(ms(60_000), |handle| {
        let why = handle.add(task("far", 1_000).placed(own()), go).expect_err("refused");
        handle.stop();
        why.to_string()
    });
    for message in [
        refused(main().task(task("far", 1_000).placed(Placement::cpu(nowhere)), go)),
        refused(main().task(task("far", 1_000).placed(own()), go)),
        refused(main().triggered(device(), Task::named("far").placed(own()), go)),
        added.expect("it starts").0,
    ] {
        assert!(message.starts_with(&of_task), "{message}");
    }
    let control_loop = crate::Loop::builder(task("a", 1_000).period()).thread(thread);
    assert!(control_loop.check().expect_err("refused").to_string().contains(&named));
}

#[test]
fn what_has_no_releases_is_late_for_none() {
    let refused = |task: Task| refused(quick().triggered(Trigger::wait(|| false), task, go));
    for (task, why) in [
        (task("a", 1).on_overrun(OnOverrun::Burst(2)), "catch up"),
        (task("a", 1).on_overrun(OnOverrun::Delay), "phase"),
        (task("a", 1).on_overrun(OnOverrun::Terminate), "no release"),
        (task("a", 1).on_overrun(OnOverrun::Stop), "no release"),
        (task("a", 1).at(Duration::ZERO), "no phase"),
        (task("a", 1).deadline(Duration::from_nanos(5)), "late"),
    ] {
        let message = refused(task);
        assert!(message.contains(why) && message.contains("\"a\""), "{why:?} in {message:?}");
    }
    assert!(refused(Task::named("")).contains("name"));
}

#[test]
fn names_and_periods_are_looked_at_wherever_a_task_runs() {
    let own = || Placement::thread(RtThread::any());
    let twice = quick().task(task("a", 1).placed(own()), go);
    let twice = twice.triggered(Trigger::wait(|| false), Task::named("a"), go);
    assert!(refused(twice).contains("two tasks"));
    let message = refused(quick().task(Task::named("a"), go));
    assert!(message.contains("\"a\" has no period"), "{message}");
    let above = RtThread::any().fifo(80);
    let message = refused(quick().task(task("a", 1_000).placed(Placement::thread(above)), go));
    assert!(message.contains("below the executive's 80 (got 80)"), "{message}");
    let low = quick().thread(sleeping().fifo(1)).task(task("a", 1_000).placed(own()), go);
    assert!(refused(low).contains("below the executive's 1"));
    let processes = quick().external(task("a b", 1_000), Process::joining());
    assert!(refused(processes).contains("\"a b\""));
}

#[test]
fn a_change_beside_a_start_that_fails_is_refused() {
    let short = Task::every("short", Period::from_ns(1).expect("in range"));
    let (plan, _) = quick().task(short, go).build().expect("so far");
    let change = |handle: &Handle<'_>| {
        let why = handle.add(task("added", 1_000), go).expect_err("nothing runs");
        assert!(why.to_string().contains("run"), "{why}");
    };
    let why = plan.run_with(ms(60_000), change).expect_err("refused").to_string();
    assert!(why.contains("at least 4 of the clock's stamps"), "{why}");
}

#[test]
fn a_period_that_the_clock_fills_is_refused_before_anything_runs() {
    for placement in [Placement::inline(), Placement::thread(RtThread::any())] {
        let ran = AtomicBool::new(false);
        let short = Task::every("short", Period::from_ns(1).expect("in range")).placed(placement);
        let executive = quick().task(task("other", 1_000), |_| ran.store(true, Ordering::Relaxed));
        let (plan, _) =
            executive.task(short, |_| ran.store(true, Ordering::Relaxed)).build().expect("so far");
        let why = plan.run_for(ms(50)).expect_err("refused").to_string();
        assert!(why.contains("at least 4 of the clock's stamps") && why.contains("1 ns"), "{why}");
        assert!(!ran.into_inner());
    }
}
