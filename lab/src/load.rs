//! Loads: what makes a machine busy while its punctuality is measured.
//!
//! Each load runs in a child process of its own, started through a [`Launcher`] that the caller
//! gives and spoken to over two pipes (`protocol`). [`LOADS`] is the table of them, [`Loads`] reads
//! `--load`, [`RunningLoads`] is the parent's side, [`run_child`] the child's.
//!
//! Rates of different loads are not comparable, and that of one load only on one machine: they show
//! that it ran, and how much it was slowed.
//!
//! What holds for all: never more workers than the CPUs given, at most 256 MiB of memory and 64 MiB
//! of disk a load, a time limit that the kernel enforces too, SCHED_OTHER, and an end with the
//! parent however that ends. Nothing is sent to a machine but this one.

mod bounds;
mod child;
mod error;
mod exec;
mod kinds;
mod launcher;
mod lifecycle;
pub(crate) mod network;
mod observed;
mod part;
mod program;
mod progress;
mod protocol;
mod report;
mod runner;
mod setup;
mod spec;
mod subprocess;
mod supervisor;
mod work;

pub use bounds::{LIMIT_MAX, LoadBounds};
pub use child::run_child;
pub use error::LoadError;
pub(crate) use kinds::Polygons;
pub use kinds::stress_args::StressArgs;
pub use kinds::{LOADS, LoadRow, names};
pub use launcher::{Launcher, Reexec};
pub use protocol::LIMIT;
pub(crate) use report::DEATHS_MAX;
pub use report::{LoadDeath, LoadReport};
pub use runner::RunningLoads;
pub use spec::{LoadSpec, Loads};
pub use supervisor::READY;
