//! Units at fixed places of a frame, and periodic tasks where they fit in between, for two seconds:
//! `cargo run --release -p punctual --example calendar`.
//!
//! Read, control and write keep their places in a frame of a millisecond; a filter of two units
//! breaks off and goes on; a log and a watch run between them.
#![allow(clippy::disallowed_macros, reason = "a program prints what a library must not")]

use std::cell::Cell;
use std::time::Duration;

use punctual::{Calendar, Executive, Flow, Period, Task, Unit};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let us = Duration::from_micros;
    let hz = |hertz| Period::hz(hertz).ok_or("no such period");
    let work = |sum: &Cell<f64>| {
        (0..200).for_each(|k| sum.set((sum.get() + f64::from(k)).sqrt()));
    };
    let [a, b, c, d, e, f] = std::array::from_fn(|_| Cell::new(0.0));
    let unit = |name: &str| Unit::new(name, us(60)).deadline(us(150));

    let calendar = Calendar::frame(hz(1_000)?)
        .unit(unit("read"), move |_| work(&a))
        .unit(unit("control").after("read", us(40)), move |_| work(&b))
        .unit(unit("filter 1").after("control", us(40)).of("filter"), move |cycle| {
            work(&c);
            // Done after three units, one and a half frames.
            if cycle.part < 2 { Flow::Break } else { Flow::Continue }
        })
        .unit(unit("write").after("filter 1", us(100)), move |_| work(&d))
        .part(unit("filter 2").after("write", us(100)).of("filter"));
    let (executive, _ids) = Executive::builder()
        .calendar(calendar)
        .task(Task::every("watch", hz(300)?).budget(us(30)), move |_| work(&e))
        .task(Task::every("log", hz(70)?).budget(us(200)), move |_| work(&f))
        .build()?;
    for placed in executive.layout() {
        println!("{:8} {:?} after the start of its period", placed.name, placed.phase);
    }
    println!("{}", executive.run_for(Duration::from_secs(2))?.ok()?);
    Ok(())
}
