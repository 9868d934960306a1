//! A report as JSON, and the schema of it.

use anyhow::Result;
use schemars::schema_for;
use serde::Serialize;

use crate::report::Report;

/// Any report as JSON text, with a line end.
pub(crate) fn of(report: &impl Serialize) -> Result<String> {
    Ok(serde_json::to_string_pretty(report)? + "\n")
}

/// The schema of results, as JSON text.
pub(crate) fn schema() -> Result<String> {
    of(&schema_for!(Report))
}
