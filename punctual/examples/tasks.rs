//! Three rates in one loop, each with what an overrun of it does, for two seconds:
//! `cargo run --release -p punctual --example tasks`, as root for what a real-time loop gets.
#![allow(clippy::disallowed_macros, reason = "a program prints what a library must not")]

use std::time::Duration;

use punctual::{Error, Executive, Flow, OnOverrun, Period, RtThread, Task};

const fn hz(hertz: u64) -> Period {
    match Period::hz(hertz) {
        Some(period) => period,
        None => panic!("no such period"),
    }
}

fn main() -> Result<(), Error> {
    let us = Duration::from_micros;
    let (mut position, mut target) = (0.0_f64, 0.0_f64);
    let (mut lines, mut plans) = (0_u64, 0_u64);
    let servo = Task::every("servo", hz(1_000)).budget(us(100));
    let plan = Task::every("plan", hz(50)).budget(us(1_000)).on_overrun(OnOverrun::Terminate);
    let log = Task::every("log", hz(10)).budget(us(2_000)).on_overrun(OnOverrun::Burst(3));

    let (executive, _ids) = Executive::builder()
        // What it shares with others is theirs to guard: here each task has its own.
        .task(servo, |cycle| position += 0.25 * cycle.dt.as_secs_f64())
        .task(plan, |cycle| {
            while target < 1e6 && !cycle.cancelled() {
                target += 0.5;
            }
            plans += 1;
        })
        .task(log, |_| {
            lines += 1;
            if lines < 15 { Flow::Continue } else { Flow::Stop }
        })
        .thread(RtThread::any().fifo(80))
        .record("tasks.punctual")
        .build()?;
    println!("{}", executive.run_for(Duration::from_secs(2))?.ok()?);
    println!("at {position:.3} after {lines} lines and {plans} plans");
    Ok(())
}
