//! Where a result goes besides the page: options, checked before the work, and files, written after
//! it.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;

use super::{OutputTarget, distinct, show, spare, spare_tree};
use crate::format::Styled;

/// Options of every command that shows a result.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct OutputArgs {
    /// Write the result as JSON to FILE; '-' writes JSON to standard output and nothing else
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
    /// Write the result as Markdown, for an issue tracker, to FILE; '-' writes Markdown to standard
    /// output and nothing else
    #[arg(long, value_name = "FILE|-")]
    markdown: Option<PathBuf>,
}

impl OutputArgs {
    /// Opens what they name.
    ///
    /// # Errors
    /// Both are one file or standard output, or one cannot be written.
    pub(crate) fn open(&self) -> Result<Outputs> {
        let [json, markdown] = [&self.json, &self.markdown].map(Option::as_deref);
        if [json, markdown].iter().all(|path| *path == Some(Path::new("-"))) {
            bail!("--json - and --markdown -: standard output takes one of them; name a file");
        }
        distinct("--markdown", markdown, json)?;
        Ok(Outputs { json: OutputTarget::open(json)?, markdown: OutputTarget::open(markdown)? })
    }

    /// Each with its option.
    fn named(&self) -> [(&'static str, Option<&Path>); 2] {
        [("--json", self.json.as_deref()), ("--markdown", self.markdown.as_deref())]
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
    json: OutputTarget,
    markdown: OutputTarget,
}

impl Outputs {
    /// Whether standard output is one of them, and nothing else goes there.
    pub(crate) fn are_on_stdout(&self) -> bool {
        matches!(self.json, OutputTarget::Stdout) || matches!(self.markdown, OutputTarget::Stdout)
    }

    /// Writes a result as `json` and as `markdown`, where that is requested, and its `page` to
    /// standard output, unless one of them is there.
    ///
    /// # Errors
    /// One of them could not be written; each is tried.
    pub(crate) fn write(
        self,
        json: &str,
        markdown: impl FnOnce() -> String,
        page: impl Into<Styled>,
    ) -> Result<()> {
        let (json, json_kept) = self.json.keep(|| json.to_owned());
        let (markdown, markdown_kept) = self.markdown.keep(markdown);
        let stdout = json.or(markdown).map_or_else(|| page.into(), Styled::from);
        let shown = show(stdout);
        json_kept.and(markdown_kept).and(shown)
    }
}
