//! What `punctual run` takes.

use std::path::PathBuf;

use clap::Args;

use crate::parse;

/// `punctual run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The file that names the tasks (TOML, docs/running.md)
    pub(crate) file: PathBuf,
    /// How long to run [default: until Ctrl-C, or until no task is left]
    #[arg(long, allow_hyphen_values = true, value_parser = parse::duration)]
    pub(crate) duration: Option<parse::Duration>,
    /// Write the result as JSON to FILE; '-' writes JSON to standard output and nothing else
    #[arg(long, value_name = "FILE|-")]
    pub(crate) json: Option<PathBuf>,
}
