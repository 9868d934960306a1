//! A loop of 1 kHz for so many seconds, and how it went.
//!
//! `cargo run --release -p punctual --example each_ms -- [SECONDS] [CPU]`, as root for numbers that
//! a real-time loop would get.
#![allow(clippy::disallowed_macros, reason = "a program prints what a library must not")]

use std::error::Error;

use punctual::lone::{Options, Storage};
use punctual::periodic::Period;
use punctual::quantile;
use punctual::session::Process;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let seconds: u64 = args.next().map_or(Ok(10), |text| text.parse())?;
    let process = Process::enter();
    let mut options = Options::new(Period::hz(1_000).ok_or("no such period")?);
    if let Some(cpu) = args.next() {
        options = options.cpu(cpu.parse()?);
    }
    let mut storage = Storage::new();
    let mut each_ms = options.enter(&mut storage)?;
    for refusal in process.refused().iter().chain(each_ms.refused()) {
        eprintln!("refused: {}: {}", refusal.attempt, refusal.errno);
    }
    let view = each_ms.view();
    let mut integral = 0.0;
    while let Some(cycle) = each_ms.wait() {
        // The work of a cycle: dt is longer than the period where releases were missed.
        integral += cycle.dt.as_ns() as f64 / 1e9;
        if cycle.n + 1 >= seconds * 1_000 {
            break;
        }
    }
    let counts = view.counts();
    println!("{} cycles in {integral:.3} s, {} missed", counts.ran, counts.missed);
    for share in [0.5, 0.99, 0.999] {
        let lateness = quantile::of(&view, share).unwrap_or_default();
        println!("late by at most {lateness} in a share of {share}");
    }
    println!("late by at most {} in all of them", counts.max.unwrap_or_default());
    Ok(())
}
