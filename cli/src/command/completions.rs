//! `punctual completions SHELL`: what a shell completes, made from the definition of the command
//! line.
//!
//! Prints to standard output; writes no file.

use anyhow::Result;
use clap::CommandFactory;
use clap_complete::{Shell as Made, generate};

use crate::cli::Cli;
use crate::exit::Exit;
use crate::output;

/// `punctual completions`.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// A shell that has completions.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Runs the subcommand.
pub(crate) fn run(args: CompletionsArgs) -> Result<Exit> {
    let shell = match args.shell {
        Shell::Bash => Made::Bash,
        Shell::Zsh => Made::Zsh,
        Shell::Fish => Made::Fish,
    };
    let mut text = Vec::new();
    generate(shell, &mut Cli::command(), "punctual", &mut text);
    output::show(&*String::from_utf8_lossy(&text))?;
    Ok(Exit::Fine)
}
