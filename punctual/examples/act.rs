//! An example task, as a process of its own: it reads what `sense` gives out, and acts on it.
//!
//! `punctual run punctual/examples/cell.toml` starts it, 300 µs after `sense`. It reads the other
//! task's output by the supervisor's name; when `sense` is gone it sees the safe value, and knows
//! that it is one.

use punctual::{Registration, Source, Watch};

fn main() -> Result<(), punctual::Error> {
    let mut task = Registration::from_env(None)?;
    let sense = Watch::open("cell", "sense")?;
    let mut drive = 0.0f64;
    while let Ok(cycle) = task.wait() {
        let mut bytes = [0; 8];
        match sense.output(&mut bytes) {
            Some(Source::Task) => drive = 0.9 * drive + 0.1 * f64::from_ne_bytes(bytes),
            // Nobody measures: come to rest.
            Some(Source::Safe) | None => drive *= 0.5,
        }
        if cycle.cancelled() {
            drive = 0.0;
        }
        task.commit(&drive.to_ne_bytes());
    }
    Ok(())
}
