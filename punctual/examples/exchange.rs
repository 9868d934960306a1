//! Data between a fast loop, a slow task and a thread that watches both:
//! `cargo run --release -p punctual --example exchange`.
//!
//! The vision task gives the servo its target, and the servo gives the watcher its state: of both
//! the latest value counts, and older ones are overwritten. The watcher gives the servo commands,
//! of which each counts: they wait in a queue. Nobody waits for anybody, and nothing is allocated.
#![allow(clippy::disallowed_macros, reason = "a program prints what a library must not")]

use std::time::Duration;

use punctual::{Executive, Period, Placement, RtThread, Span, Task, now, wait_until};
use rtrb::RingBuffer;
use triple_buffer::triple_buffer;

/// The state of the servo as the watcher reads it: all of it from one cycle.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    position: f64,
    target: f64,
    /// Targets of the vision task that were there in time to be followed.
    targets: u64,
    /// Commands that were obeyed.
    obeyed: u64,
}

/// The watcher's commands to the servo.
#[derive(Clone, Copy, Debug)]
enum Command {
    Gain(f64),
    Home,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let period = |hertz| Period::hz(hertz).ok_or("no such period");
    let (mut seen, mut target) = triple_buffer(&0.0_f64);
    let (mut shown, mut state) = triple_buffer(&State::default());
    let (mut commands, mut inbox) = RingBuffer::new(16);

    let servo = Task::every("servo", period(1_000)?).budget(Duration::from_micros(100));
    let vision = Task::every("vision", period(30)?).placed(Placement::thread(RtThread::any()));
    let (mut own, mut gain) = (State::default(), 10.0);
    let (executive, _ids) = Executive::builder()
        .task(servo, move |cycle| {
            // As many as the queue holds, so that a cycle has an end.
            for command in (0..16).map_while(|_| inbox.pop().ok()) {
                match command {
                    Command::Gain(new) => gain = new,
                    Command::Home => own.position = 0.0,
                }
                own.obeyed += 1;
            }
            own.targets += u64::from(target.update());
            own.target = *target.output_buffer();
            own.position += gain * (own.target - own.position) * cycle.dt.as_secs_f64();
            shown.write(own);
        })
        .task(vision, move |cycle| seen.write((cycle.n as f64 * 0.1).sin()))
        .build()?;

    let (last, summary) = executive.run_with(Duration::from_secs(20), |handle| {
        let mut sent = 0;
        for command in [Command::Gain(20.0), Command::Home, Command::Gain(5.0)] {
            // One that finds the queue full is refused here, at once.
            sent += u64::from(commands.push(command).is_ok());
        }
        let mut last = *state.read();
        while !handle.stopped() && (last.obeyed < sent || last.targets < 30) {
            wait_until(now() + Span::from_ms(10), Span::ZERO);
            last = *state.read();
        }
        handle.stop();
        last
    })?;
    println!("{}", summary.ok()?);
    println!("{} commands obeyed, {} targets followed", last.obeyed, last.targets);
    println!("at {:.3}, on the way to {:.3}", last.position, last.target);
    Ok(())
}
