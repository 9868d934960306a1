//! Files made from the program itself: `punctual man DIR`, the man pages, and `punctual completions
//! SHELL`, from the definition of the command line; `punctual schema`, from the types of results.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap_complete::{Shell as Made, generate};
use clap_mangen::Man;

use crate::output::{Dir, Opened};
use crate::subcommand::Exit;
use crate::{output, view};

/// `punctual man`.
#[derive(Debug, clap::Args)]
pub(super) struct ManArgs {
    /// The directory to write into; it is created if necessary
    dir: PathBuf,
}

impl ManArgs {
    /// Writes the pages of `program`, the definition of the command line.
    pub(super) fn write(&self, program: clap::Command) -> Result<Exit> {
        let dir = Dir::make(&self.dir)?;
        // As `clap_mangen::generate_to` prepares it, which follows links.
        let mut command = program.disable_help_subcommand(true).version(env!("CARGO_PKG_VERSION"));
        command.build();
        pages(command, &dir)?;
        Ok(Exit::Fine)
    }
}

/// Writes the page of a command and of every one below it.
fn pages(command: clap::Command, dir: &Dir) -> Result<PathBuf> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()).cloned() {
        pages(below, dir)?;
    }
    let page = Man::new(command).source(concat!("punctual ", env!("CARGO_PKG_VERSION")));
    let mut text = Vec::new();
    page.render(&mut text).context("cannot write a man page")?;
    // The generator has one name for whatever stands after the help.
    let own = String::from_utf8_lossy(&text).replace(".SH EXTRA\nExamples:", ".SH EXAMPLES");
    let text = own.replace(".SH EXTRA\nExit status: ", ".SH EXIT STATUS\n").into_bytes();
    Opened::replace(dir, &page.get_filename(), text)
}

/// `punctual completions`.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(super) struct CompletionsArgs {
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

impl CompletionsArgs {
    /// Prints those of `program`, the definition of the command line.
    pub(super) fn print(self, mut program: clap::Command) -> Result<Exit> {
        let shell = match self.shell {
            Shell::Bash => Made::Bash,
            Shell::Zsh => Made::Zsh,
            Shell::Fish => Made::Fish,
        };
        let mut text = Vec::new();
        generate(shell, &mut program, "punctual", &mut text);
        output::data(&String::from_utf8_lossy(&text))?;
        Ok(Exit::Fine)
    }
}

/// Prints the JSON schema of results, made from the types themselves.
pub(super) fn schema() -> Result<Exit> {
    output::data(&view::schema()?)?;
    Ok(Exit::Fine)
}
