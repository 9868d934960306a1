//! `punctual schema`: the JSON schema of results, made from the types themselves.

use anyhow::Result;

use crate::exit::Exit;
use crate::output::Json;
use crate::view;

/// Runs the subcommand.
pub(crate) fn run() -> Result<Exit> {
    Json::Stdout.write(&view::json::schema()?, "")?;
    Ok(Exit::Fine)
}
