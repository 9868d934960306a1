//! Where results go: checked before anything is measured, written at the end.
//!
//! For all subcommands, and the only module of the program that writes files. `opened` has files
//! that the user names, `dir` those whose names the program chooses; both are `pending` until they
//! are complete. Never reads a result.

mod dir;
mod journal;
mod opened;
mod outputs;
mod pending;
mod settings_lock;
#[cfg(test)]
mod testing;
mod tree;
mod trust;

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use punctual_analysis::plain::{plain, plain_lines, plain_spaces};

use crate::format::{self, Styled};
use crate::stored::{LOCK, RESULT, SAMPLES, STATES};

pub(crate) use dir::Dir;
pub(crate) use journal::{JournalFile, JournalName};
pub(crate) use opened::Opened;
pub(crate) use outputs::{OutputArgs, Outputs};
pub(crate) use punctual_engine::drain::GrowingFile;
pub(crate) use settings_lock::SettingsLock;
pub(crate) use tree::TreeFiles;
pub(crate) use tree::{BootFiles, TREE};
pub(crate) use trust::Trust;

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
    pub(crate) fn open(to: Option<&Path>) -> Result<Self> {
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

    /// Writes `json` here, and `text` to standard output unless the JSON is there. The page is
    /// shown also where the file could not be written.
    pub(crate) fn write(self, json: &str, text: impl Into<Styled>) -> Result<()> {
        let (json, kept) = self.keep(|| json.to_owned());
        let stdout = json.map_or_else(|| text.into(), Styled::from);
        kept.and(show(stdout))
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

/// The directory of what lasts from one run to the next: what XDG_STATE_HOME names, else
/// `machines`, else the user's. A relative path counts as none (XDG Base Directory Specification).
pub(crate) fn state_dir(machines: Option<PathBuf>) -> Option<PathBuf> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let users = || absolute("HOME").map(|home| home.join(".local/state"));
    absolute("XDG_STATE_HOME").or(machines).or_else(users)
}

/// Writes one line to standard error, whatever the text holds. Where standard error is closed, the
/// line is dropped.
pub(crate) fn message(text: &str) {
    line(&format!("punctual: {text}"));
}

/// As [`message`], without the name of the program.
pub(crate) fn line(text: &str) {
    let _closed = writeln!(io::stderr(), "{}", spaced(plain(text), io::stderr().is_terminal()));
}

/// `text` for a terminal, or with plain spaces for whoever searches it.
pub(crate) fn spaced(text: String, to_terminal: bool) -> String {
    if to_terminal { text } else { plain_spaces(&text) }
}

/// Writes a page of lines to standard output.
///
/// # Errors
/// It cannot be written; a reader that has seen enough is none.
pub(crate) fn page(text: impl Into<Styled>) -> io::Result<()> {
    let to_terminal = io::stdout().is_terminal();
    let plain = |text: &str| spaced(plain_lines(text), to_terminal);
    let text = text.into().written(format::has_colours(), plain);
    match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        Err(why) if why.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Writes a page of lines to standard output, as the end of a command.
///
/// # Errors
/// It cannot be written, in words.
pub(crate) fn show(text: impl Into<Styled>) -> Result<()> {
    page(text).context("cannot write to standard output")
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
pub(crate) fn distinct(option: &str, output: Option<&Path>, other: Option<&Path>) -> Result<()> {
    let (Some(output), Some(other)) = (output, other) else { return Ok(()) };
    if output != Path::new("-") && same(output, other) {
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

/// Whether two names mean one regular file, or would.
fn same(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| fs::metadata(path).map(|meta| (meta.dev(), meta.ino()));
    let is_file = |path: &Path| fs::metadata(path).map_or(true, |meta| meta.is_file());
    match (identity(one), identity(other)) {
        (Ok(a), Ok(b)) => a == b && is_file(one),
        (Err(_), Err(_)) => {
            let around = (identity(parent(one)).ok(), identity(parent(other)).ok());
            around.0.is_some() && around.0 == around.1 && one.file_name() == other.file_name()
        }
        _ => false,
    }
}

/// The directory that a file is in, or would be.
fn parent(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        fs::remove_dir_all(&under).expect("it was made here");
    }
}
