//! The start of a load's process: this program again, with other words.
//!
//! For the parent's side, and for a load that starts programs of its own.

use std::path::PathBuf;
use std::process::Command;

/// Starts this program, or one like it, so that it calls [`run_child`](super::run_child) with the
/// arguments.
///
/// The command must become that process itself: no shell or wrapper may stay in between, because a
/// child refuses to run when its parent is not the process that requested it.
pub trait Launcher {
    /// A command that ends up in [`run_child`](super::run_child) with exactly `args`.
    fn command(&self, args: &[String]) -> Command;
}

/// Starts the running program again, with words of its own before the load's arguments.
#[derive(Clone, Debug)]
pub struct Reexec {
    program: PathBuf,
    before: Vec<String>,
}

impl Reexec {
    /// `before` is what selects the hidden subcommand, for instance `__load`.
    pub fn new(before: &[&str]) -> Self {
        // A program that was replaced since it started has no path any more, but is still open.
        let program = std::env::current_exe()
            .ok()
            .filter(|path| path.exists())
            .unwrap_or_else(|| PathBuf::from("/proc/self/exe"));
        Self { program, before: before.iter().map(|&word| word.to_owned()).collect() }
    }
}

impl Launcher for Reexec {
    fn command(&self, args: &[String]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.before).args(args);
        command
    }
}
