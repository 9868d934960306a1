//! A grid that follows another clock: AnT's open problem of two clocks that drift apart.
//!
//! For executives whose releases lie on the timescale of a PTP clock, of TAI or of a bus. Another
//! thread reads that clock; a [`Servo`] makes a [`Map`] of the readings, which bends by no more
//! than a limit and never jumps; [`Shared`] hands it to the loop, and [`Following`] is a clock that
//! runs on it, so that executives need no change. Nothing here waits.

mod clock;
mod last;
mod map;
mod servo;
mod shared;

pub use clock::Following;
pub use last::Last;
pub use map::{Map, PPB};
pub use servo::{ClockReading, Servo, ServoEvent, ServoStatus, Settings, WINDOW};
pub use shared::{MapView, Shared};

#[cfg(test)]
mod tests;
