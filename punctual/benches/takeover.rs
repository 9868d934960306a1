//! The time that a task's output outlives its process: `cargo bench -p punctual --bench takeover`.
//!
//! Kills a task with SIGKILL, again and again, and looks when the kernel says that it is gone and
//! when the safe value stands in its output. The supervisor starts it again each time. This program
//! is its own task.

#![expect(clippy::disallowed_macros, reason = "a bench is for a person to read")]

use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

use punctual::RtThread;
use punctual_core::block::Source;
use punctual_core::wait::{Sleep, Strategy};
use punctual_engine::periodic::{Period, Task};
use punctual_engine::process::{
    EventKind, Registration, Restart, Spec, Stop, Supervisor, TASK_VARIABLE, Watch,
};
use punctual_os::affinity::{self, CpuMask};
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual_os::{pidfd, process};

/// Ends of the task.
const TURNS: usize = 200;
/// The task's period, ns.
const PERIOD_NS: u64 = 2_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    if std::env::var_os(TASK_VARIABLE).is_some() {
        return obey();
    }
    // Tests build benches too, and run them with this argument.
    let turns = if std::env::args().any(|arg| arg == "--test") { 1 } else { TURNS };
    let cpu = affinity::get(0).map_err(|why| why.to_string())?.iter().last().unwrap_or(0);
    let name = format!("takeover-{}", std::process::id());
    let task = Task::every("task", Period::ratio(PERIOD_NS, 1).ok_or("no such period")?);
    let mut spec = Spec::new(task, vec![std::env::current_exe()?.into()]);
    spec.restart = Restart::ALWAYS.most(u32::MAX).pause(Duration::ZERO);
    spec.safe = vec![0xff; 8];
    let ready = Supervisor::new().name(&name).thread(RtThread::cpu(cpu)).task(spec).build()?;
    let (stop, pid) = (AtomicBool::new(false), AtomicI32::new(0));
    let turned = std::thread::scope(|scope| {
        let killer = scope.spawn(|| {
            // Beside the task, so that it takes no time from who is to be quick.
            let _where_it_may = affinity::set(0, &CpuMask::one(cpu));
            let turned = (0..turns).map(|_| turn(&name, &pid)).collect::<Result<Vec<_>, _>>();
            stop.store(true, Ordering::Relaxed);
            turned
        });
        ready.run(Strategy::Sleep(Sleep), None, Stop::new(&stop), &mut |event| {
            if let EventKind::Started(started) = event.kind {
                pid.store(started.cast_signed(), Ordering::Release);
            }
        })?;
        killer.join().map_err(|_| "it panicked")?.map_err(Box::<dyn Error>::from)
    })?;
    let show = |label: &str, column: &dyn Fn(&(f64, f64)) -> f64| {
        let mut times: Vec<f64> = turned.iter().map(column).collect();
        times.sort_by(f64::total_cmp);
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
        let (half, nine, worst) = (at(0.5), at(0.9), at(1.0));
        let n = times.len();
        println!("{label}: half within {half:.3} ms, 9 of 10 within {nine:.3}, all {n} {worst:.3}");
    };
    show("from the kill to the end of the process", &|turn| turn.0);
    show("from the kill to the safe value", &|turn| turn.1);
    show("from the end to the safe value", &|turn| turn.1 - turn.0);
    Ok(())
}

/// The task: gives something out in each cycle.
fn obey() -> Result<(), Box<dyn Error>> {
    let mut task = Registration::from_env(None)?;
    while let Ok(cycle) = task.wait() {
        let n = cycle.n;
        task.commit(&n.to_ne_bytes());
    }
    Ok(())
}

fn pause_ns(ns: u64) {
    // A signal that cuts this short costs nothing.
    let _interrupted = sleep_until_ns(now_ns(ClockId::Monotonic) + ns);
}

/// Kills the task once it gives something out; ms to its end, and to the safe value.
fn turn(name: &str, pid: &AtomicI32) -> Result<(f64, f64), String> {
    let watch = loop {
        match Watch::open(name, "task") {
            Ok(watch) => break watch,
            Err(_) => pause_ns(1_000_000),
        }
    };
    let mut bytes = [0; 8];
    while watch.output(&mut bytes) != Some(Source::Task) {
        pause_ns(1_000_000);
    }
    // At any time of its period, and of a look of the supervisor's.
    pause_ns(now_ns(ClockId::Monotonic) % 9_999_991);
    let supervisor = pidfd::open(pid.load(Ordering::Acquire)).map_err(|why| why.to_string())?;
    let before_ns = now_ns(ClockId::Monotonic);
    let passed = || (now_ns(ClockId::Monotonic) - before_ns) as f64 / 1e6;
    pidfd::end(&supervisor, process::EndSignal::Kill).map_err(|why| why.to_string())?;
    let mut gone = None;
    loop {
        let is_safe = watch.output(&mut bytes) == Some(Source::Safe);
        if gone.is_none() && pidfd::has_ended(&supervisor) == Ok(true) {
            gone = Some(passed());
        }
        if is_safe {
            let safe = passed();
            return Ok((gone.unwrap_or(safe).min(safe), safe));
        }
    }
}
