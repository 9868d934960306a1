//! The time that a build takes: `cargo bench -p punctual --bench build`.
//!
//! Prints, for sets of periods that are known to be awkward and for a hundred thousand tasks: the
//! median time of a build, the peak, the bytes of the table.

#![expect(clippy::disallowed_macros, reason = "a bench is for a person to read")]

use std::time::Duration;

use punctual_engine::periodic::{Period, Periodic, Task};
use punctual_os::clock::{ClockId, now_ns};

/// Builds of each set.
const TURNS: usize = 11;

fn tasks(periods_ms: &[u64], n: usize, budgets: bool) -> Periodic {
    let task = |at: usize| {
        let ns = periods_ms[at % periods_ms.len()] * 1_000_000;
        let task = Task::every(format!("t{at}"), Period::ratio(ns, 1).expect("in range"));
        if budgets {
            task.budget(Duration::from_nanos(1 + ns / n as u64 / 2 * (1 + at as u64 % 2)))
        } else {
            task
        }
    };
    (0..n).map(task).fold(Periodic::new().tick_ns(1_000_000), Periodic::task)
}

fn main() {
    // Tests build benches too, and run them with this argument.
    let once = std::env::args().any(|arg| arg == "--test");
    let automotive = &[1, 2, 5, 10, 20, 50, 100, 200, 1_000][..];
    let awkward = &[10, 33, 100, 167, 200, 250, 1_000];
    for (name, periods, n) in [
        ("100", &[100][..], 100),
        ("automotive", automotive, 100),
        ("primes to 23", &[3, 7, 11, 13, 17, 19, 23], 100),
        ("10, 33 … 1000", awkward, 100),
        ("automotive", automotive, 100_000),
        ("10, 33 … 1000", awkward, 100_000),
    ] {
        for budgets in [false, true] {
            let tasks_made = tasks(periods, n, budgets);
            let turns = if once { 1 } else { TURNS };
            let mut times: Vec<f64> = (0..turns)
                .map(|_| {
                    let before_ns = now_ns(ClockId::Monotonic);
                    std::hint::black_box(tasks_made.build().expect("a plan"));
                    (now_ns(ClockId::Monotonic) - before_ns) as f64 / 1e6
                })
                .collect();
            times.sort_by(f64::total_cmp);
            let plan = tasks_made.build().expect("a plan");
            let load = plan.peak_load_ns().map_or(String::new(), |ns| format!(", {ns} ns"));
            println!(
                "{name:14} {n:6} tasks: {:9.3} ms, peak {}{load}, table {} bytes",
                times[turns / 2],
                plan.peak(),
                plan.table_bytes(),
            );
        }
    }
}
