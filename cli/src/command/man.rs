//! `punctual man DIR`: the man pages, made from the definition of the command line.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_mangen::Man;

use crate::cli::Cli;
use crate::exit::Exit;
use crate::output::Dir;

/// `punctual man`.
#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// The directory to write into; it is created if necessary
    dir: PathBuf,
}

/// Runs the subcommand.
pub(crate) fn run(args: &ManArgs) -> Result<Exit> {
    let dir = Dir::make(&args.dir)?;
    // As `clap_mangen::generate_to` prepares it, which follows links.
    let mut all = Cli::command().disable_help_subcommand(true).version(env!("CARGO_PKG_VERSION"));
    all.build();
    pages(all, &dir)?;
    Ok(Exit::Fine)
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
    dir.replace(&page.get_filename(), text)
}
