//! `punctual baseline`: which baselines are kept, what they are about, one less.

use anyhow::Result;
use punctual_host::baseline::Name;
use serde_json::Value;

use crate::command::Execute;
use crate::comparison::baseline::BaselinesDir;
use crate::comparison::baseline::{Baseline, Store};
use crate::exit::Exit;
use crate::format;
use crate::output;

/// `punctual baseline`.
#[derive(Debug, clap::Args)]
pub(super) struct BaselinesArgs {
    #[command(subcommand)]
    command: BaselineCommand,
}

/// Subcommands about baselines.
#[derive(Debug, clap::Subcommand)]
enum BaselineCommand {
    /// List the saved baselines
    List {
        #[command(flatten)]
        dir: BaselinesDir,
    },
    /// Show a baseline: its machine, the facts that matter, its runs
    Show {
        /// Its name
        name: String,
        #[command(flatten)]
        dir: BaselinesDir,
    },
    /// Remove a baseline
    Remove {
        /// Its name
        name: String,
        #[command(flatten)]
        dir: BaselinesDir,
    },
}

impl Execute for BaselinesArgs {
    fn execute(&self) -> Result<Exit> {
        let page = match &self.command {
            BaselineCommand::List { dir } => list(&Store::new(dir)?)?,
            BaselineCommand::Show { name, dir } => {
                let store = Store::new(dir)?;
                let name = Name::parse(name)?;
                shown(&store.read(&name)?, &store)
            }
            BaselineCommand::Remove { name, dir } => {
                let store = Store::new(dir)?;
                let name = Name::parse(name)?;
                store.remove(&name)?;
                format!("removed {}\n", name.as_str())
            }
        };
        output::show(page)?;
        Ok(Exit::Fine)
    }
}

fn list(store: &Store) -> Result<String> {
    let names = store.names()?;
    if names.is_empty() {
        let dir = format::plain(&store.dir().display().to_string());
        return Ok(format!("no baselines in {dir}\n"));
    }
    let mut page = format!("{:20} {:20} {:24} {:12}\n", "name", "kept at", "kernel", "setup");
    for name in names {
        match store.read(&name) {
            Ok(baseline) => {
                let kernel = baseline.recorded.kernel().unwrap_or_else(|| "unknown".to_owned());
                page += &format!(
                    "{:20} {:20} {:24} {:12}\n",
                    name.as_str(),
                    format::plain(baseline.kept_at.get(..19).unwrap_or(&baseline.kept_at)),
                    format::plain(&kernel),
                    format::plain(baseline.setup_digest.get(..12).unwrap_or_default()),
                );
            }
            Err(why) => {
                page += &format!("{:20} {}\n", name.as_str(), format::plain(&format!("{why:#}")));
            }
        }
    }
    Ok(page)
}

fn shown(baseline: &Baseline, store: &Store) -> String {
    let recorded = &baseline.recorded;
    let mut page = format!(
        "baseline {} · kept at {}\n  {}\n  machine {}\n  setup   {}\n",
        baseline.name.as_str(),
        format::plain(&baseline.kept_at),
        format::plain(&store.path(&baseline.name).display().to_string()),
        format::plain(&baseline.machine_digest),
        format::plain(&baseline.setup_digest),
    );
    // Facts are plain data: they always have a JSON form.
    let facts = serde_json::to_value(recorded.machine()).unwrap_or(Value::Null);
    for name in punctual_host::baseline::MACHINE.iter().chain(punctual_host::baseline::SETUP) {
        let value = match &facts[name]["value"] {
            Value::Null => continue,
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        page += &format!("  {name:24} {}\n", format::plain(&value));
    }
    for run in recorded.runs() {
        let releases: u64 = run.series().iter().map(|series| series.releases()).sum();
        let missed: u64 = run.series().iter().map(|series| series.missed).sum();
        page += &format!(
            "  run {:20} {} releases, {} missed\n",
            format::plain(run.name()),
            format::count(releases),
            format::count(missed)
        );
    }
    page
}
