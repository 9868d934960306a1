//! A loop that logs and waits for nobody: `cargo run --release -p punctual --example logger`.
//!
//! The loop puts numbers into a queue that was made before; an ordinary thread makes text of them
//! and prints it. What finds the queue full is dropped, and counted. Ctrl-C ends it early.
#![allow(clippy::disallowed_macros, reason = "a program prints what a library must not")]

use std::fmt;

use punctual::{Loop, Period, Span, now, spawn_elsewhere, wait_until};
use rtrb::{Consumer, RingBuffer};

const EACH_MS: Period = match Period::hz(1_000) {
    Some(period) => period,
    None => panic!("1000 Hz is a period"),
};

/// An entry of the loop's log, in numbers: text takes an allocation.
#[derive(Clone, Copy, Debug)]
enum Entry {
    Missed { n: u64, releases: u64 },
    Position { n: u64, position: f64, lateness: Span },
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missed { n, releases } => write!(f, "{n:5}: {releases} releases missed before"),
            Self::Position { n, position, lateness } => {
                write!(f, "{n:5}: at {position:.3}, {lateness} late")
            }
        }
    }
}

/// Prints until the loop has dropped its end of the queue; gives the number of lines.
fn print(mut entries: Consumer<Entry>) -> u64 {
    let mut lines = 0;
    loop {
        // Looked at first: what was put in before the end is still there.
        let is_over = entries.is_abandoned();
        while let Ok(entry) = entries.pop() {
            println!("{entry}");
            lines += 1;
        }
        if is_over {
            return lines;
        }
        wait_until(now() + Span::from_ms(20), Span::ZERO);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut log, entries) = RingBuffer::new(1_024);
    let printer = spawn_elsewhere("printer", move || print(entries))?;
    let mut each_ms = Loop::builder(EACH_MS).start()?;
    each_ms.handle().stop_on_signals()?;
    let (mut position, mut dropped) = (0.0, 0_u64);
    while let Some(cycle) = each_ms.wait() {
        position += 0.25 * cycle.dt.as_secs_f64();
        let (n, lateness) = (cycle.n, cycle.lateness);
        if cycle.missed > 0 {
            let entry = Entry::Missed { n, releases: cycle.missed };
            dropped += u64::from(log.push(entry).is_err());
        }
        if n % 100 == 0 {
            dropped += u64::from(log.push(Entry::Position { n, position, lateness }).is_err());
        }
        if n >= 2_000 {
            break;
        }
    }
    let summary = each_ms.finish();
    drop(log);
    let lines = printer.join().map_err(|_| "the printer panicked")?;
    println!("{lines} lines printed, {dropped} dropped\n{}", summary.ok()?);
    Ok(())
}
