//! What `punctual run` and `punctual task` take.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::output::OutputArgs;
use crate::parse;

/// `punctual run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The file that names the tasks (TOML, docs/running.md)
    pub(crate) file: PathBuf,
    /// How long to run [default: until Ctrl-C, or until no task is left]
    #[arg(long, allow_hyphen_values = true, value_parser = parse::duration)]
    pub(crate) duration: Option<parse::Duration>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// `punctual task`.
#[derive(Debug, Subcommand)]
pub(crate) enum TaskCommand {
    /// Run a program in any language as the task: one line in per cycle, one line out at its end
    ///
    /// The program prints a line when it is ready. For each release it then reads a line with the
    /// cycle's number, its release (ns of CLOCK_MONOTONIC) and the releases missed since the last
    /// one, and prints a line when the cycle is done: empty, or the task's output as hex digits.
    /// The end of its input is the end of the task
    #[command(after_long_help = "Examples:\n\
                       \x20 command = [\"punctual\", \"task\", \"exec\", \"--\", \
                       \"python3\", \"camera.py\"]")]
    Exec(TaskExecArgs),
}

/// `punctual task exec`.
#[derive(Debug, Args)]
pub(crate) struct TaskExecArgs {
    /// The program and its arguments
    #[arg(required = true, last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}
