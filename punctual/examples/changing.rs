//! Tasks that come and go beside one that keeps every release:
//! `cargo run --release -p punctual --example changing`.
#![allow(clippy::disallowed_macros, reason = "a program prints what a library must not")]

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use punctual::{Executive, Period, Task};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hz = |hertz| Period::hz(hertz).ok_or("no such period");
    let (probes, mut lost) = (AtomicU64::new(0), 0);
    let mut next = None;
    let servo = Task::every("servo", hz(1_000)?);
    let (executive, _ids) = Executive::builder()
        .task(servo, |cycle| {
            lost += u64::from(next.is_some_and(|next| next != cycle.n - cycle.missed));
            next = Some(cycle.n + 1);
        })
        .build()?;
    let (done, summary) = executive.run_with(Duration::from_secs(20), |handle| {
        let mut removed = Vec::new();
        for hertz in [500, 250, 125] {
            let task = Task::every("probe", Period::hz(hertz).expect("in range"));
            let id = handle.add(task, |_| {
                probes.fetch_add(1, Relaxed);
            })?;
            while handle.counts(id)?.ran < 20 && !handle.stopped() {
                std::thread::yield_now();
            }
            removed.push(handle.remove(id)?);
        }
        handle.stop();
        Ok::<_, punctual::Error>(removed)
    })?;
    done?.iter().for_each(|probe| println!("removed: {probe}"));
    println!("{}\n{probes:?} cycles of probes, {lost} releases of the servo lost", summary.ok()?);
    Ok(())
}
