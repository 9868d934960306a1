//! A report as JSON, and the schema of it.

use anyhow::Result;
use punctual_analysis::plain::{plain_json, plain_spaces};
use punctual_report::Report;
use schemars::schema_for;
use serde::Serialize;

/// Any report as JSON text, with a line end and plain spaces; what steers a reader of the text is
/// escaped in it.
pub(crate) fn of(report: &impl Serialize) -> Result<String> {
    Ok(plain_spaces(&verbatim(report)?))
}

/// As JSON text with every space as it is, for what others wrote: a hard space in the kernel's
/// command line is a mistake that should be seen.
pub(crate) fn verbatim(facts: &impl Serialize) -> Result<String> {
    Ok(plain_json(&serde_json::to_string_pretty(facts)?) + "\n")
}

/// The schema of results, as JSON text.
pub(crate) fn schema() -> Result<String> {
    of(&schema_for!(Report))
}
