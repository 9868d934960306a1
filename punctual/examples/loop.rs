//! A loop of 1 kHz: `cargo run --release -p punctual --example loop`, as root for what a real-time
//! loop gets. Then `punctual analyse loop.punctual`.
#![allow(clippy::disallowed_macros, reason = "a program prints what a library must not")]

use punctual::{Error, Loop, Period, RtThread};

const EACH_MS: Period = match Period::hz(1_000) {
    Some(period) => period,
    None => panic!("1000 Hz is a period"),
};

fn main() -> Result<(), Error> {
    let thread = RtThread::any().fifo(80);
    let mut each_ms = Loop::builder(EACH_MS).thread(thread).record("loop.punctual").start()?;
    let mut position = 0.0;
    while let Some(cycle) = each_ms.wait() {
        // The work of a cycle: dt is longer than the period where releases were missed.
        position += 0.25 * cycle.dt.as_secs_f64();
        if cycle.n >= 5_000 {
            break;
        }
    }
    println!("at {position:.3} after 5 s");
    println!("{}", each_ms.finish().ok()?);
    Ok(())
}
