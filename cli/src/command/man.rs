//! `punctual man DIR`: the man pages, made from the definition of the command line.

use std::fs;

use anyhow::{Context, Result};
use clap::CommandFactory;

use crate::Exit;
use crate::args::ManArgs;
use crate::cli::Cli;

/// Runs the subcommand.
pub(crate) fn run(args: &ManArgs) -> Result<Exit> {
    let written = fs::create_dir_all(&args.dir)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), &args.dir));
    written.with_context(|| format!("cannot write man pages to {}", args.dir.display()))?;
    Ok(Exit::Fine)
}
