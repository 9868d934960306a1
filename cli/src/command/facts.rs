//! `punctual facts`: what is known of a machine, each thing with its origin.
//!
//! And `punctual capture OUT`: those facts as plain files, without secrets, for `--root OUT`
//! elsewhere. Reads, prints, changes nothing.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use punctual_host::capture::capture;
use punctual_host::facts::MachineFacts;
use punctual_host::scrub::Scrub;
use serde_json::Value;

use crate::args::RootArgs;
use crate::output::{self, Dir, OutputTarget};
use crate::subcommand::{Execute, Exit};
use crate::{format, view};

/// `punctual facts`.
#[derive(Debug, clap::Args)]
pub(super) struct FactsArgs {
    /// Write the facts as JSON to FILE; '-' writes JSON to standard output and nothing else
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
    #[command(flatten)]
    root: RootArgs,
}

impl Execute for FactsArgs {
    fn execute(&self) -> Result<Exit> {
        output::spare_tree("--json", self.json.as_deref(), self.root.path())?;
        let json = OutputTarget::open(self.json.as_deref())?;
        let facts = MachineFacts::collect(&self.root.open()?);
        let text = view::json_verbatim(&facts)?;
        json.write(&text, page(&serde_json::to_value(&facts)?))?;
        Ok(Exit::Fine)
    }
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

/// `punctual capture`.
#[derive(Debug, clap::Args)]
pub(super) struct CaptureArgs {
    /// The directory to write, new or empty
    out: PathBuf,
    #[command(flatten)]
    root: RootArgs,
}

/// Environment variables that name a user.
const USERS: [&str; 3] = ["USER", "LOGNAME", "SUDO_USER"];

impl Execute for CaptureArgs {
    fn execute(&self) -> Result<Exit> {
        let root = self.root.open()?;
        let mut scrub = Scrub::of(&root);
        for user in USERS.iter().filter_map(|name| std::env::var(name).ok()) {
            scrub = scrub.user(&user);
        }
        let out = Dir::make(&self.out)?;
        let shown = self.out.display();
        if let Some(name) = out.first_name(&[]).with_context(|| format!("cannot read {shown}"))? {
            bail!("{shown}: not empty (it contains {name}); name a new or empty directory");
        }
        let captured = capture(root, &scrub, |path, bytes| {
            let written = out.create(path, bytes);
            written.with_context(|| format!("cannot write {}", self.out.join(path).display()))
        })?;
        let line = format!(
            "{} files in {}; its MANIFEST lists {} absent and {} unreadable files. Check the files \
         before you send them: names that no rule covers may remain.\n",
            captured.files,
            format::plain(&self.out.display().to_string()),
            captured.absent,
            captured.unreadable,
        );
        output::show(line)?;
        Ok(Exit::Fine)
    }
}
