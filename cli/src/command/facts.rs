//! `punctual facts`: what is known of a machine, each thing with its origin.
//!
//! And `punctual capture OUT`: those facts as plain files, without secrets, for `--root OUT`
//! elsewhere. Reads, prints, changes nothing.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use punctual_document::{Block, Frame, Table, words};
use punctual_host::capture::capture;
use punctual_host::facts::MachineFacts;
use punctual_host::scrub::Scrub;
use serde_json::Value;

use crate::args::RootArgs;
use crate::output::{self, Dir, OutputArgs};
use crate::subcommand::{Execute, Exit};
use crate::{format, view};

/// `punctual facts`.
#[derive(Debug, clap::Args)]
pub(super) struct FactsArgs {
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    root: RootArgs,
}

impl Execute for FactsArgs {
    fn execute(&self) -> Result<Exit> {
        self.output.spare_tree(self.root.path())?;
        let outputs = self.output.open()?;
        let facts = MachineFacts::collect(&self.root.open()?);
        let shown = document(&serde_json::to_value(&facts)?);
        outputs.write_document(&view::json_verbatim(&facts)?, "punctual facts", &[shown])?;
        Ok(Exit::Fine)
    }
}

/// The least width of a fact's name.
const NAME: usize = 24;

/// Each fact: its name, its value or why there is none, where it was read.
fn document(facts: &Value) -> Block {
    let (mut rows, mut lines) = (Vec::new(), Vec::new());
    for (name, fact) in facts.as_object().into_iter().flatten() {
        let text = |key: &str| fact.get(key).and_then(Value::as_str).unwrap_or_default();
        let value = match fact.get("value") {
            Some(Value::String(value)) if value.is_empty() => "none".to_owned(),
            Some(Value::String(value)) => value.clone(),
            Some(Value::Null) | None if text("why").is_empty() => "absent".to_owned(),
            Some(Value::Null) | None => format!("unreadable: {}", text("why")),
            Some(value) => value.to_string(),
        };
        lines.push(vec![name.clone(), value.clone()]);
        lines.push(vec![String::new(), format!("  {}", text("origin"))]);
        rows.push(vec![name.clone(), value, text("origin").to_owned()]);
    }
    let columns = [words("").at_least(NAME), words("")];
    let table = Table::new("", ["fact", "value", "from"].map(words), rows);
    table.brief(Frame::Lines { has_heads: false }, columns, lines).into()
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
