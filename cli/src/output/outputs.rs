//! Where a result goes besides the page: options, checked before the work, and files, written after
//! it.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;

use super::{Json, distinct, spare, spare_tree};
use crate::format::Styled;

/// Options of every command that shows a result.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct OutputArgs {
    /// Write the result as JSON to FILE; '-' writes JSON to standard output and nothing else
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
}

impl OutputArgs {
    /// Opens what they name.
    ///
    /// # Errors
    /// One cannot be written.
    pub(crate) fn open(&self) -> Result<Outputs> {
        Ok(Outputs { json: Json::open(self.json.as_deref())? })
    }

    /// Each with its option.
    fn named(&self) -> [(&'static str, Option<&Path>); 1] {
        [("--json", self.json.as_deref())]
    }

    /// As [`spare`]: refuses one that is an input.
    pub(crate) fn spare<'a>(&self, inputs: impl IntoIterator<Item = &'a Path>) -> Result<()> {
        let inputs: Vec<&Path> = inputs.into_iter().collect();
        let mut named = self.named().into_iter();
        named.try_for_each(|(option, path)| spare(option, path, inputs.iter().copied()))
    }

    /// As [`spare_tree`]: refuses one that lies in a captured tree.
    pub(crate) fn spare_tree(&self, tree: Option<&Path>) -> Result<()> {
        self.named().into_iter().try_for_each(|(option, path)| spare_tree(option, path, tree))
    }

    /// As [`distinct`]: refuses one that is another output too.
    pub(crate) fn distinct(&self, other: Option<&Path>) -> Result<()> {
        self.named().into_iter().try_for_each(|(option, path)| distinct(option, path, other))
    }

    /// Whether the result goes anywhere but to the page.
    pub(crate) fn are_some(&self) -> bool {
        self.named().iter().any(|(_, path)| path.is_some())
    }
}

/// Where a result goes, opened.
#[derive(Debug)]
pub(crate) struct Outputs {
    json: Json,
}

impl Outputs {
    /// Whether standard output is one of them, and nothing else goes there.
    pub(crate) fn are_on_stdout(&self) -> bool {
        matches!(self.json, Json::Stdout)
    }

    /// Writes a result as `json`, where that is asked for, and its `page` to standard output, unless
    /// it is there.
    ///
    /// # Errors
    /// One of them could not be written; each is tried.
    pub(crate) fn write(self, json: &str, page: impl Into<Styled>) -> Result<()> {
        self.json.write(json, page)
    }
}
