//! An example task, as a process of its own: it "measures" something each cycle and gives it out.
//!
//! `punctual run punctual/examples/cell.toml` starts it; by hand it says why it cannot run. It
//! prints nothing in its loop: what it did, its supervisor knows.

use punctual::Registration;

fn main() -> Result<(), punctual::Error> {
    // Whatever this process was started as.
    let mut task = Registration::from_env(None)?;
    let mut angle = 0.0f64;
    while let Ok(cycle) = task.wait() {
        // A cycle that was missed is time that passed all the same: dt knows.
        let dt_s = cycle.dt.as_secs_f64();
        angle = (angle + dt_s * std::f64::consts::TAU).rem_euclid(std::f64::consts::TAU);
        // 8 bytes that others see whole, never half.
        task.commit(&angle.sin().to_ne_bytes());
    }
    // The supervisor has ended this task's loop; the safe value takes over.
    task.unregister();
    Ok(())
}
