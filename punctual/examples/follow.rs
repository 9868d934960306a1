//! A loop of a millisecond on TAI, or on a PTP clock, for three seconds, and two tasks on the same
//! time: `cargo run --release -p punctual --example follow [-- /dev/ptp0]`.
//!
//! Its releases are at whole milliseconds of that clock, on every machine that follows it too.
#![allow(clippy::disallowed_macros, reason = "a program prints what a library must not")]

use std::time::Duration;

use punctual::follow::{Follow, Reference, Settings};
use punctual::{Executive, Loop, Period, Task};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let reference = match std::env::args().nth(1) {
        Some(device) => Reference::ptp(device)?,
        None => Reference::Tai,
    };
    println!("following {reference:?}");
    let period = Period::hz(1_000).ok_or("no such period")?;
    let settings = Settings::default().with_period_ns(Some(period.as_ns()));
    let follower = Follow::new(reference).settings(settings).start()?;

    let mut each_ms = Loop::builder(period).start_on(follower.clock())?;
    while let Some(cycle) = each_ms.wait() {
        assert_eq!(cycle.release.as_ns() % 1_000_000, 0, "a whole millisecond of it");
        if cycle.n >= 3_000 {
            break;
        }
    }
    println!("{}", each_ms.finish().ok()?);

    let (executive, _ids) = Executive::builder()
        .clock(follower.clock())
        .task(Task::every("fast", period), |_| ())
        .task(Task::every("slow", Period::hz(100).ok_or("no such period")?), |_| ())
        .build()?;
    println!("{}", executive.run_for(Duration::from_secs(2))?.ok()?);
    println!("{:?}", follower.status());
    Ok(())
}
