//! `punctual baseline`: which baselines are kept, what they are about, one less.

use anyhow::Result;
use punctual_host::baseline::Name;

use crate::comparison::baseline::{BaselinesDir, Store};
use crate::output::{self, MarkdownArgs};
use crate::subcommand::{Execute, Exit};

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
        #[command(flatten)]
        output: MarkdownArgs,
    },
    /// Show a baseline: its machine, the facts that matter, its runs
    Show {
        /// Its name
        name: String,
        #[command(flatten)]
        dir: BaselinesDir,
        #[command(flatten)]
        output: MarkdownArgs,
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
        match &self.command {
            BaselineCommand::List { dir, output } => {
                let store = Store::new(dir)?;
                store.spared_by(output)?;
                output.open(None)?.write("punctual baseline list", &store.list()?)?;
            }
            BaselineCommand::Show { name, dir, output } => {
                let (store, name) = (Store::new(dir)?, Name::parse(name)?);
                store.spared_by(output)?;
                output.open(None)?.write("punctual baseline show", &store.shown(&name)?)?;
            }
            BaselineCommand::Remove { name, dir } => {
                let name = Name::parse(name)?;
                Store::new(dir)?.remove(&name)?;
                output::show(format!("removed {}\n", name.as_str()))?;
            }
        }
        Ok(Exit::Fine)
    }
}
