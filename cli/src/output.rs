//! Where results go: checked before anything is measured, written at the end.
//!
//! For all subcommands, and the only module of the program that writes files. `opened` has files
//! that the user names, `dir` those whose names the program chooses; both are `pending` until they
//! are complete. Never reads a result.

mod dir;
mod journal;
mod opened;
mod streams;
mod tree;

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use punctual_document::{Block, markdown, text};

use crate::format::Styled;
use crate::stored::{LOCK, RESULT, SAMPLES, STATES};

pub(crate) use dir::{Dir, Trust, state_dir};
pub(crate) use journal::{JournalFile, JournalName, SettingsLock, SettingsOwner};
pub(crate) use opened::Opened;
pub(crate) use streams::{data, line, message, page, show, spaced};
pub(crate) use tree::{BootFiles, TreeFiles};

/// Where one form of a result goes, opened.
#[derive(Debug)]
pub(crate) enum OutputTarget {
    /// Nowhere.
    None,
    /// To standard output, and nothing else goes there.
    Stdout,
    /// Into this file.
    File(Opened),
}

impl OutputTarget {
    /// Opens what an option names: a file, or standard output by `-`.
    fn open(to: Option<&Path>) -> Result<Self> {
        match to {
            None => Ok(Self::None),
            Some(path) if path == Path::new("-") => Ok(Self::Stdout),
            Some(path) => Ok(Self::File(Opened::at(path)?)),
        }
    }

    /// Writes `text` where it goes to a file, and gives it back where it goes to standard output.
    fn keep(self, text: impl FnOnce() -> String) -> (Option<String>, Result<()>) {
        match self {
            Self::None => (None, Ok(())),
            Self::Stdout => (Some(text()), Ok(())),
            Self::File(opened) => {
                let text = text();
                (None, opened.write(|file| Ok(file.write_all(text.as_bytes())?)))
            }
        }
    }

    /// Writes a document as Markdown here, and as text to standard output unless the Markdown is
    /// there. The text is shown also where the file could not be written.
    pub(crate) fn write(self, heading: &str, blocks: &[Block]) -> Result<()> {
        let outputs = Outputs { json: Self::None, markdown: self, junit: Self::None };
        outputs.write_document("", heading, blocks)
    }
}

/// The option of every command that shows something.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct MarkdownArgs {
    /// Write the result as Markdown, for an issue tracker, to FILE; '-' writes Markdown to standard
    /// output and nothing else
    #[arg(long, value_name = "FILE|-")]
    markdown: Option<PathBuf>,
}

impl MarkdownArgs {
    /// Opens what it names, which is no file of a captured tree.
    pub(crate) fn open(&self, tree: Option<&Path>) -> Result<OutputTarget> {
        spare_tree("--markdown", self.path(), tree)?;
        OutputTarget::open(self.path())
    }

    /// As [`spare`]: refuses an input.
    pub(crate) fn spare(&self, input: &Path) -> Result<()> {
        spare("--markdown", self.path(), [input])
    }

    fn path(&self) -> Option<&Path> {
        self.markdown.as_deref()
    }
}

/// Options of every command that shows a result.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct OutputArgs {
    /// Write the result as JSON to FILE; '-' writes JSON to standard output and nothing else
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
    #[command(flatten)]
    markdown: MarkdownArgs,
    /// Of commands that judge: see [`JudgedOutputArgs`].
    #[arg(skip)]
    junit: Option<PathBuf>,
}

/// Options of every command that shows a result and judges it.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct JudgedOutputArgs {
    #[command(flatten)]
    shown: OutputArgs,
    /// Write what was judged as JUnit XML, for a build server, to FILE; '-' writes it to standard
    /// output and nothing else. Each limit, claim, answer and comparison is a test case: 'failure'
    /// where the exit status is 1 for it, 'error' where it is not decided (3), 'skipped' where it
    /// does not count (--undecided pass, or an answer without --gate)
    #[arg(long, value_name = "FILE|-")]
    junit: Option<PathBuf>,
}

impl JudgedOutputArgs {
    /// All of them.
    pub(crate) fn all(&self) -> OutputArgs {
        OutputArgs { junit: self.junit.clone(), ..self.shown.clone() }
    }
}

impl OutputArgs {
    /// Opens what they name.
    ///
    /// # Errors
    /// Two are one file or standard output, or one cannot be written.
    pub(crate) fn open(&self) -> Result<Outputs> {
        let named = self.named();
        let to_stdout = named.iter().filter(|(_, path)| *path == Some(Path::new("-")));
        let to_stdout: Vec<String> = to_stdout.map(|(option, _)| format!("{option} -")).collect();
        if to_stdout.len() > 1 {
            bail!("{}: standard output takes one of them; name a file", to_stdout.join(" and "));
        }
        for (at, (_, used)) in named.iter().enumerate() {
            named[at + 1..].iter().try_for_each(|(option, path)| distinct(option, *path, *used))?;
        }
        let [json, markdown, junit] = named.map(|(_, path)| OutputTarget::open(path));
        Ok(Outputs { json: json?, markdown: markdown?, junit: junit? })
    }

    /// Each with its option.
    fn named(&self) -> [(&'static str, Option<&Path>); 3] {
        [
            ("--json", self.json.as_deref()),
            ("--markdown", self.markdown.path()),
            ("--junit", self.junit.as_deref()),
        ]
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
    pub(crate) fn distinct(&self, used: Option<&Path>) -> Result<()> {
        self.named().into_iter().try_for_each(|(option, path)| distinct(option, path, used))
    }

    /// Returns true where the result goes anywhere but to the page.
    pub(crate) fn are_some(&self) -> bool {
        self.named().iter().any(|(_, path)| path.is_some())
    }
}

/// Where a result goes, opened.
#[derive(Debug)]
pub(crate) struct Outputs {
    json: OutputTarget,
    markdown: OutputTarget,
    junit: OutputTarget,
}

/// The forms of a result that may be written, each made where it is.
pub(crate) struct ResultForms<'a> {
    /// For programs; it is always made.
    pub(crate) json: &'a str,
    /// For an issue tracker.
    pub(crate) markdown: &'a dyn Fn() -> String,
    /// For a build server.
    pub(crate) junit: &'a dyn Fn() -> String,
}

impl Outputs {
    /// Returns true where standard output is one of them, and nothing else goes there.
    pub(crate) fn are_on_stdout(&self) -> bool {
        let targets = [&self.json, &self.markdown, &self.junit];
        targets.iter().any(|target| matches!(target, OutputTarget::Stdout))
    }

    /// Writes a result in each form that is requested, and its `page` to standard output, unless
    /// one of them is there.
    ///
    /// # Errors
    /// One of them could not be written; each is tried.
    pub(crate) fn write(self, forms: &ResultForms<'_>, page: impl Into<Styled>) -> Result<()> {
        let (json, json_kept) = self.json.keep(|| forms.json.to_owned());
        let (markdown, markdown_kept) = self.markdown.keep(forms.markdown);
        let (junit, junit_kept) = self.junit.keep(forms.junit);
        let shown = match json.or(markdown).or(junit) {
            Some(text) => data(&text),
            None => show(page),
        };
        json_kept.and(markdown_kept).and(junit_kept).and(shown)
    }

    /// As [`Outputs::write`], of a document that judges nothing.
    ///
    /// # Errors
    /// One of them could not be written; each is tried.
    pub(crate) fn write_document(self, json: &str, heading: &str, blocks: &[Block]) -> Result<()> {
        self.write_beside(json, heading, blocks, text::rendered(blocks))
    }

    /// As [`Outputs::write_document`], with another `page` than the document's text.
    ///
    /// # Errors
    /// One of them could not be written; each is tried.
    pub(crate) fn write_beside(
        self,
        json: &str,
        heading: &str,
        blocks: &[Block],
        page: impl Into<Styled>,
    ) -> Result<()> {
        let markdown = || markdown::headed(heading, blocks);
        self.write(&ResultForms { json, markdown: &markdown, junit: &String::new }, page)
    }
}

/// The directory of one run: `DIR/2026-11-21T20-01`, with seconds, then a number, where that is
/// there already. Two runs that start at once get two directories.
pub(crate) fn results_dir(under: &Path, started: jiff::Timestamp) -> Result<Dir> {
    let under = Dir::make(under)?;
    let text = started.to_string();
    let minute = text.get(..16).unwrap_or(&text).replace(':', "-");
    let second = text.get(..19).unwrap_or(&text).replace(':', "-");
    let numbered = (2..100).map(|n| format!("{second}-{n}"));
    for name in [minute, second.clone()].into_iter().chain(numbered) {
        match under.make_new(&name) {
            Ok(dir) => return Ok(dir),
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {}
            Err(why) => {
                let shown = under.path().join(name);
                return Err(why).with_context(|| format!("cannot make {}", shown.display()));
            }
        }
    }
    bail!("cannot create a unique result directory in {}", under.path().display())
}

/// Refuses the output that `option` names where it is one of the inputs, or a file of the program's
/// in an input that is a directory, or beside one that is a result.
pub(crate) fn spare<'a>(
    option: &str,
    output: Option<&Path>,
    inputs: impl IntoIterator<Item = &'a Path>,
) -> Result<()> {
    let Some(output) = output else { return Ok(()) };
    for input in inputs {
        let is_read = |read: &PathBuf| read.exists() && same(output, read);
        if let Some(read) = read_of(input).into_iter().find(is_read) {
            bail!(
                "{option} {}: would overwrite an input ({}): name another file",
                output.display(),
                read.display()
            );
        }
    }
    Ok(())
}

/// Refuses the output that `option` names where it lies in a captured tree.
pub(crate) fn spare_tree(option: &str, output: Option<&Path>, tree: Option<&Path>) -> Result<()> {
    let (Some(output), Some(tree)) = (output, tree) else { return Ok(()) };
    let Ok(tree) = fs::canonicalize(tree) else { return Ok(()) };
    let inside = |path: &Path| fs::canonicalize(path).is_ok_and(|path| path.starts_with(&tree));
    if inside(output) || inside(parent(output)) {
        bail!(
            "{option} {}: is inside the captured tree {}: name a file elsewhere",
            output.display(),
            tree.display()
        );
    }
    Ok(())
}

/// Refuses the output that `option` names where it is another output of the same command too.
pub(crate) fn distinct(option: &str, output: Option<&Path>, used: Option<&Path>) -> Result<()> {
    let (Some(output), Some(used)) = (output, used) else { return Ok(()) };
    if output != Path::new("-") && same(output, used) {
        bail!("{option} {}: this file is already used for another output", output.display());
    }
    Ok(())
}

/// Files that a command may read which is given `input`.
fn read_of(input: &Path) -> Vec<PathBuf> {
    if input == Path::new("-") {
        return vec!["/dev/stdin".into()];
    }
    if input.is_dir() {
        let names = [RESULT, SAMPLES, LOCK].into_iter().chain(STATES);
        return names.map(|name| input.join(name)).collect();
    }
    vec![input.to_owned(), input.with_file_name(SAMPLES)]
}

/// Returns true where two names mean one regular file, or would.
fn same(first: &Path, second: &Path) -> bool {
    let identity = |path: &Path| fs::metadata(path).map(|meta| (meta.dev(), meta.ino()));
    let is_file = |path: &Path| fs::metadata(path).map_or(true, |meta| meta.is_file());
    match (identity(first), identity(second)) {
        (Ok(a), Ok(b)) => a == b && is_file(first),
        (Err(_), Err(_)) => {
            let around = (identity(parent(first)).ok(), identity(parent(second)).ok());
            around.0.is_some() && around.0 == around.1 && first.file_name() == second.file_name()
        }
        _ => false,
    }
}

/// The directory that a file is in, or would be.
fn parent(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A directory of a test's own, which goes away with it.
#[cfg(test)]
struct Scratch(PathBuf);

#[cfg(test)]
impl Scratch {
    /// A new one; `name` is unique among the tests.
    fn new(name: &str) -> Self {
        let name = format!("punctual-output-{name}-{}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        fs::create_dir_all(&dir).expect("writable");
        Self(dir)
    }

    /// A path in it.
    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// It, open.
    fn dir(&self) -> Dir {
        Dir::of_named(&self.0).expect("a directory")
    }

    /// The names in it, sorted.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("readable").flatten();
        let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        let mut names: Vec<String> = entries.map(name).collect();
        names.sort();
        names
    }
}

#[cfg(test)]
impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left in the temporary directory harms nobody.
        let _left = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stored::LATEST;

    #[test]
    fn each_run_gets_a_directory_of_its_own() {
        let under = std::env::temp_dir().join(format!("punctual-output-{}", std::process::id()));
        let started: jiff::Timestamp = "2026-11-21T20:01:07.5Z".parse().expect("a timestamp");
        let made: Vec<_> =
            (0..3).map(|_| results_dir(&under, started).expect("writable")).collect();
        let names: Vec<_> = made
            .iter()
            .map(|dir| dir.path().file_name().expect("named").to_string_lossy())
            .collect();
        assert_eq!(names, ["2026-11-21T20-01", "2026-11-21T20-01-07", "2026-11-21T20-01-07-2"]);
        made[1].be_latest();
        made[2].be_latest();
        let latest = fs::read_link(under.join(LATEST)).expect("a link");
        assert_eq!(latest, Path::new("2026-11-21T20-01-07-2"));
        // What a user put there stays.
        fs::remove_file(under.join(LATEST)).expect("a link");
        fs::write(under.join(LATEST), "mine").expect("writable");
        made[0].be_latest();
        assert_eq!(fs::read_to_string(under.join(LATEST)).expect("there"), "mine");
        fs::remove_dir_all(&under).expect("it was made here");
    }
}
