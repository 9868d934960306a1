//! `punctual facts`: what is known of a machine, each thing with its origin.
//!
//! Reads, prints, changes nothing.

use std::path::PathBuf;

use anyhow::Result;
use punctual_host::facts::MachineFacts;
use serde_json::Value;

use crate::args::RootArgs;
use crate::exit::Exit;
use crate::output::{self, OutputTarget};
use crate::{format, view};

/// `punctual facts`.
#[derive(Debug, clap::Args)]
pub(crate) struct FactsArgs {
    /// Write the facts as JSON to FILE; '-' writes JSON to standard output and nothing else
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
    #[command(flatten)]
    root: RootArgs,
}

/// Runs the subcommand.
pub(crate) fn run(args: &FactsArgs) -> Result<Exit> {
    output::spare_tree("--json", args.json.as_deref(), args.root.root.as_deref())?;
    let json = OutputTarget::open(args.json.as_deref())?;
    let facts = MachineFacts::collect(&super::root(args.root.root.as_deref())?);
    let text = view::json_verbatim(&facts)?;
    json.write(&text, page(&serde_json::to_value(&facts)?))?;
    Ok(Exit::Fine)
}

/// One fact a line: its name, its value or why there is none, where it was read.
fn page(facts: &Value) -> String {
    let mut page = String::new();
    for (name, fact) in facts.as_object().into_iter().flatten() {
        let text = |key: &str| fact.get(key).and_then(Value::as_str).unwrap_or_default();
        let value = match fact.get("value") {
            Some(Value::String(value)) if value.is_empty() => "none".to_owned(),
            Some(Value::String(value)) => value.clone(),
            Some(Value::Null) | None if text("why").is_empty() => "absent".to_owned(),
            Some(Value::Null) | None => format!("unreadable: {}", text("why")),
            Some(value) => value.to_string(),
        };
        let (value, origin) = (format::plain(&value), format::plain(text("origin")));
        page += &format!("{name:24} {value}\n{:24}   {origin}\n", "");
    }
    page
}
