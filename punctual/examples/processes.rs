//! Two tasks that are processes, and one that is not, for two seconds:
//! `cargo build --release -p punctual --examples`, then `target/release/examples/processes`.
//!
//! `sense` measures and `act` acts on it 300 µs later, each a program of its own beside this one
//! (`sense.rs`, `act.rs`); a broken one is started again and leaves the others alone.
#![allow(clippy::disallowed_macros, reason = "a program prints what a library must not")]

use std::time::Duration;

use punctual::{Executive, Period, Process, Restart, Task};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let us = Duration::from_micros;
    let beside = std::env::current_exe()?;
    let program = |name: &str| [beside.with_file_name(name)];
    let again = Restart::ON_FAILURE;
    let period = Period::hz(500).ok_or("no such period")?;
    let sense = Task::every("sense", period).budget(us(200));
    let act = Task::every("act", period).budget(us(200)).after("sense", us(300));

    let mut beats = 0_u64;
    let (executive, _ids) = Executive::builder()
        .external(sense, Process::command(program("sense")).restart(again).safe_value([0; 8]))
        .external(act, Process::command(program("act")).restart(again).safe_value([0; 8]))
        .task(Task::every("beat", Period::hz(10).ok_or("no such period")?), |_| beats += 1)
        // By this name `act` finds what `sense` gives out.
        .name("cell")
        .build()?;
    let summary = executive.run_for(Duration::from_secs(2))?.ok()?;
    println!("{summary}");
    for process in &summary.processes {
        println!("{}: started {} times, {:?}", process.name, process.starts, process.exit);
    }
    println!("{beats} beats");
    Ok(())
}
