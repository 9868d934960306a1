//! Disturbs a loop: `inject KIND TID [TIMES [EVERY_US LENGTH_US]]`, as root; `inject` alone names
//! the kinds.
//!
//! The loop is a thread of another program, pinned to a CPU or at least on one at this moment.
//! Printed is the log: the thread that disturbed, then a line an interval: start and end in ns of
//! CLOCK_MONOTONIC, and the CPU. SIGINT, SIGTERM and SIGHUP end it behind the disturbance that goes
//! on, with the log of those that were done, and the loop is as it was before.

use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

use punctual_host::root::Root;
use punctual_lab::capture::{ThreadTarget, find_threads};
use punctual_lab::inject::{Injection, InjectionPlan, RunningInjection, Victim};
use punctual_os::{affinity, signal};

/// Time between two looks at a signal.
const LOOK: Duration = Duration::from_millis(10);

fn run() -> Result<(), String> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [kind, tid, rest @ ..] = words.as_slice() else {
        for kind in Injection::ALL {
            println!("{}", kind.name());
        }
        return Ok(());
    };
    let kind = Injection::find(kind).ok_or_else(|| format!("{kind}: no such kind"))?;
    let tid: i32 = tid.parse().map_err(|_| format!("{tid}: the number of a thread"))?;
    let number = |place: usize, otherwise: u32| {
        let word = rest.get(place);
        word.map_or(Ok(otherwise), |word| word.parse().map_err(|_| format!("{word}: no number")))
    };
    let times = number(0, 100)?;
    let every = Duration::from_micros(number(1, 5_100)?.into());
    let is_long = matches!(kind, Injection::Stop | Injection::Throttling);
    let length = number(2, if is_long { 2_000 } else { 300 })?;
    let length = Duration::from_micros(length.into());
    let found = find_threads(&Root::live(), &ThreadTarget::Thread(tid));
    let found = found.map_err(|why| why.to_string())?;
    let thread = found.first().ok_or("it is gone")?;
    let own = affinity::get(0).map_err(|why| why.to_string())?;
    let &cpu = thread.cpus.first().ok_or("the kernel does not tell its CPUs")?;
    let other_cpu = own.iter().find(|&allowed| allowed != cpu).ok_or("there is no other CPU")?;
    let priority = thread.policy.map_or(1, |policy| policy.priority.clamp(1, 97));
    let priority = u8::try_from(priority).unwrap_or(1);
    let victim = Victim { cpu, other_cpu, priority, pid: thread.pid, tid };
    let plan = InjectionPlan::new(kind, victim, times, (every, length));
    let plan = plan.map_err(|why| why.to_string())?;
    signal::catch_stop().map_err(|why| format!("SIGINT cannot be caught: {why}"))?;
    // A second signal does not leave behind what the first one puts back.
    let _hold = signal::Hold::begin();
    let running = RunningInjection::start(plan).map_err(|why| why.to_string())?;
    while !running.is_over() && !signal::stop_flag().load(Ordering::Relaxed) {
        std::thread::sleep(LOOK);
    }
    let log = running.end().map_err(|why| why.to_string())?;
    println!("{} {} {}", log.name, log.tid, log.failed);
    for interval in log.intervals {
        println!("{} {} {}", interval.start_ns, interval.end_ns, interval.cpu);
    }
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("inject: {why}");
            ExitCode::FAILURE
        }
    }
}
