//! One row of the table of loads: its name, what it counts, what it does, how it starts.

use super::stress_args::StressArgs;
use crate::load::bounds::LoadBounds;
use crate::load::error::LoadError;
use crate::load::part::Part;
use crate::load::setup::Setup;
use crate::load::work::Prepared;

/// A load.
pub struct LoadRow {
    /// As `--load` names it.
    pub name: &'static str,
    /// What it counts: its rate is so many a second.
    pub unit: &'static str,
    /// What it does, in a line.
    pub help: &'static str,
    /// What follows its name after a colon, where something must.
    pub args: Option<&'static str>,
    /// How it starts.
    pub(in crate::load) start: Start,
}

/// Sets a load up in its own process.
pub(in crate::load) type Prepare = fn(&Setup) -> Result<Prepared, String>;

/// How a load starts.
pub(in crate::load) enum Start {
    /// As a process of ours, which sets this up and works. Those need nothing installed, and are
    /// what `all` stands for.
    Own(Prepare),
    /// As several processes.
    Parts(fn(&LoadBounds) -> Vec<Part>),
    /// As another program, with arguments.
    Program(fn(&StressArgs, &LoadBounds) -> Result<Part, LoadError>),
}
