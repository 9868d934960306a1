//! The experiments of punctual, and the loads that they run under. Never prints.
//!
//! [`experiment`]: how every experiment runs. [`accuracy`]: how exactly a wait ends at an instant
//! of the counter. [`others`]: who else used a CPU. [`outside`]: stimuli from another machine, and
//! their answers. [`periodic`]: loops on this machine's clock, idle and under load. [`noise`]: gaps
//! in a thread that spins. [`executive`]: what releasing, dispatching and waiting cost, compared
//! with the ways of others ([`baseline`]). [`blame`]: why wakes were late. [`capture`]: what the
//! kernel tells of a machine meanwhile. [`cost`]: what recording costs. [`inject`]: known
//! disturbances. [`load`]: what makes the machine busy meanwhile. [`processor`]: what a processor
//! counts of itself. [`quiet`]: the phase away from the tick. [`response`]: how fast threads answer
//! a stimulus. [`saturation`]: the highest frequency that they serve. [`tasks`]: the file that
//! names the tasks of a supervisor. [`timer`]: how late timers reach a thread. [`top`]: real-time
//! threads as they run. [`tuning`]: settings changed and put back. [`waits`]: the ways to wait, by
//! name. [`work`]: how long a fixed piece of work takes.
#![forbid(unsafe_code)]

pub mod accuracy;
pub mod baseline;
pub mod blame;
pub mod capture;
pub mod cost;
pub mod executive;
pub mod experiment;
pub mod inject;
pub mod load;
mod lookout;
pub mod noise;
pub mod others;
pub mod outside;
pub mod periodic;
pub mod processor;
pub mod quiet;
pub mod response;
pub mod saturation;
mod serial_line;
mod starvation;
pub mod tasks;
#[cfg(test)]
mod testing;
pub mod timer;
pub mod top;
pub mod tuning;
pub mod waits;
pub mod work;
