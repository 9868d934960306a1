//! Where results go: opened before anything is measured, written at the end.
//!
//! For all subcommands. An output that cannot be written is found out here, before the work.

mod opened;
mod whole;

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

pub(crate) use opened::Opened;
pub(crate) use whole::{replace, whole};

/// One line on standard error, whatever the text holds. A standard error that is gone is nobody's
/// loss.
pub(crate) fn complain(text: &str) {
    let line: String = text.chars().flat_map(plain).collect();
    let _gone = writeln!(io::stderr(), "punctual: {line}");
}

/// One line on standard error of what was done beside the result.
pub(crate) fn say(text: &str) {
    complain(text);
}

/// A character as it is, or escaped where it would steer a terminal or break the line.
fn plain(c: char) -> impl Iterator<Item = char> {
    let (kept, escaped) =
        if c.is_control() { (None, Some(c.escape_default())) } else { (Some(c), None) };
    kept.into_iter().chain(escaped.into_iter().flatten())
}

/// Where the JSON goes, opened.
#[derive(Debug)]
pub(crate) enum Json {
    /// Nowhere.
    None,
    /// To standard output, and nothing else goes there.
    Stdout,
    /// Into this file.
    File(Opened),
}

impl Json {
    /// Opens what `--json` names.
    pub(crate) fn open(to: Option<&Path>) -> Result<Self> {
        match to {
            None => Ok(Self::None),
            Some(path) if path == Path::new("-") => Ok(Self::Stdout),
            Some(path) => Ok(Self::File(Opened::at(path)?)),
        }
    }

    /// Writes `json`, and `text` to standard output unless the JSON is there.
    pub(crate) fn write(self, json: &str, text: &str) -> Result<()> {
        let mut kept = Ok(());
        let stdout = match self {
            Self::None => text,
            Self::Stdout => json,
            Self::File(opened) => {
                kept = write(opened, json);
                text
            }
        };
        // The page is shown also where the file could not be written.
        let shown =
            match io::stdout().write_all(stdout.as_bytes()).and_then(|()| io::stdout().flush()) {
                // Whoever reads has seen enough.
                Err(why) if why.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                other => other.context("cannot write to standard output"),
            };
        kept.and(shown)
    }
}

/// Fills a file; what of it could be written stays.
fn write(opened: Opened, text: &str) -> Result<()> {
    let mut file = opened.begin()?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.flush());
    let written = written.with_context(|| format!("cannot write {}", opened.path().display()));
    opened.keep();
    written
}

/// Refuses a file that is to be written and is another one of the same command too.
pub(crate) fn distinct(json: Option<&Path>, other: Option<&Path>) -> Result<()> {
    let (Some(json), Some(other)) = (json, other) else { return Ok(()) };
    let identity = |path: &Path| {
        let meta = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        Some((meta.dev(), meta.ino()))
    };
    let same = match (identity(json), identity(other)) {
        (Some(json), Some(other)) => json == other,
        (None, None) => json == other && json != Path::new("-"),
        _ => false,
    };
    if same {
        bail!("--json {}: the same file is used for something else already", json.display());
    }
    Ok(())
}

/// The directory of one run: `DIR/2026-11-21T20-01`, with seconds, then a number, where that is
/// there already. Two runs that start at once get two directories.
pub(crate) fn results_dir(under: &Path, started: jiff::Timestamp) -> Result<PathBuf> {
    fs::create_dir_all(under).with_context(|| format!("cannot make {}", under.display()))?;
    let text = started.to_string();
    let minute = text.get(..16).unwrap_or(&text).replace(':', "-");
    let second = text.get(..19).unwrap_or(&text).replace(':', "-");
    let numbered = (2..100).map(|n| format!("{second}-{n}"));
    for name in [minute, second.clone()].into_iter().chain(numbered) {
        let dir = under.join(name);
        match fs::create_dir(&dir) {
            Ok(()) => return Ok(dir),
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {}
            Err(why) => return Err(why).with_context(|| format!("cannot make {}", dir.display())),
        }
    }
    bail!("{} is full of runs of this second", under.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_cannot_steer_the_terminal() {
        let shown: String = "a\n\u{1b}[2J µ".chars().flat_map(plain).collect();
        assert_eq!(shown, "a\\n\\u{1b}[2J µ");
    }

    #[test]
    fn each_run_gets_a_directory_of_its_own() {
        let under = std::env::temp_dir().join(format!("punctual-output-{}", std::process::id()));
        let started: jiff::Timestamp = "2026-11-21T20:01:07.5Z".parse().expect("a timestamp");
        let made: Vec<_> =
            (0..3).map(|_| results_dir(&under, started).expect("writable")).collect();
        let names: Vec<_> =
            made.iter().map(|dir| dir.file_name().expect("named").to_string_lossy()).collect();
        assert_eq!(names, ["2026-11-21T20-01", "2026-11-21T20-01-07", "2026-11-21T20-01-07-2"]);
        fs::remove_dir_all(&under).expect("it was made here");
    }
}
