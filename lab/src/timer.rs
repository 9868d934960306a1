//! How late a timer's interrupt reaches a thread, with work of several kinds behind it: Maruti's
//! second experiment (*Temporal accuracy on the Pentium Pro*, §5), as user space can see it.
//!
//! For `measure timer`. By absolute sleep, timerfd, POSIX timer, by polling (Maruti's `mdelay`)
//! and by a sleep under SCHED_DEADLINE;
//! a thread without privilege runs NOPs or serialising instructions on the same CPU meanwhile; what
//! each costs stands beside it. Runs two threads, never prints.

mod background;
mod cell;
mod deadline;
mod experiment;
mod outcome;

pub use background::Background;
pub use experiment::{PERIOD_MIN_NS, TimerExperiment};
pub use outcome::{TimerOutcome, TimerRow};
