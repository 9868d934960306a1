//! A fast loop and a task that takes long, each in a thread of its own on its own terms, for two
//! seconds: `cargo run --release -p punctual --example threads`.
//!
//! The vision task takes longer than the servo can wait: the kernel preempts it by priority. A
//! socket triggers a third task, and what is left of the time goes to background work.
#![allow(clippy::disallowed_macros, reason = "a program prints what a library must not")]

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use punctual::{Executive, Period, Placement, RtThread, Task, Trigger};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (ms, us) = (Duration::from_millis, Duration::from_micros);
    let period = |hertz| Period::hz(hertz).ok_or("no such period");
    let (found, received, idle) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let (mut sensor, device) = UnixStream::pair()?;
    let mut from = device.try_clone()?;

    let servo = Task::every("servo", period(1_000)?).budget(us(50));
    let vision = Task::every("vision", period(30)?).placed(Placement::thread(RtThread::any()));
    let (executive, ids) = Executive::builder()
        .task(servo, |cycle| {
            if cycle.missed > 0 {
                // Hold the outputs, say: dt tells how long it was.
            }
        })
        .task(vision, |_| {
            let work: f64 = (0..200_000).map(f64::from).map(f64::sqrt).sum();
            found.fetch_add(u64::from(work > 0.0), Relaxed);
        })
        .triggered(Trigger::fd(device), Task::named("sensor"), |_| {
            let mut byte = [0];
            if from.read_exact(&mut byte).is_ok() {
                received.fetch_add(1, Relaxed);
            }
        })
        .idle(us(50), || {
            idle.fetch_add(1, Relaxed);
        })
        .build()?;
    let (sent, summary) = executive.run_with(ms(2_000), |handle| {
        let mut sent = 0;
        while !handle.stopped() && sent < 10 {
            sent += sensor.write(b"x").unwrap_or(0);
        }
        println!("so far: {}", handle.task(ids[0]).expect("its own"));
        sent
    })?;
    println!("{}", summary.ok()?);
    println!("{sent} sent, {received:?} received; {found:?} frames, {idle:?} slices of idle work");
    Ok(())
}
