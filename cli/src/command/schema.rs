//! `punctual schema`: the JSON schema of results, made from the types themselves.

use anyhow::Result;

use crate::exit::Exit;
use crate::output;
use crate::view;

/// Runs the subcommand.
pub(crate) fn run() -> Result<Exit> {
    output::show(view::schema()?)?;
    Ok(Exit::Fine)
}
