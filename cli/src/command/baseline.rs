//! `punctual baseline`: which baselines are kept, what they are about, one less.

use anyhow::Result;
use punctual_host::baseline::Name;

use crate::comparison::baseline::{BaselinesDir, Store};
use crate::output;
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
            BaselineCommand::List { dir } => Store::new(dir)?.list()?,
            BaselineCommand::Show { name, dir } => Store::new(dir)?.shown(&Name::parse(name)?)?,
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
