//! The results that a command line names: files, directories of one run, directories of many.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::PAGE;
use crate::pages::RESULTS_MAX;
use crate::stored::{self, RESULT, Stored};

/// The most bytes of all results of a page together: they are held at once, several times as big.
const BYTES_MAX: u64 = 128 << 20;

/// What was found.
pub(super) struct Found {
    /// The results, those of a directory by name.
    pub(super) stored: Vec<Stored>,
    /// Where the page goes without --output.
    pub(super) default_dir: PathBuf,
}

/// Reads every result that `paths` name.
pub(super) fn all(paths: &[PathBuf]) -> Result<Found> {
    let mut files = Vec::new();
    for path in paths {
        files.extend(results(path)?);
        if files.len() > RESULTS_MAX {
            bail!("{}: more than {RESULTS_MAX} results for one page", path.display());
        }
    }
    let bytes = files.iter().map(|file| bytes(file)).fold(0, u64::saturating_add);
    if bytes > BYTES_MAX {
        bail!("{} results of {} MiB: more than a page takes", files.len(), bytes >> 20);
    }
    let stored = files.iter().map(|file| stored::read(file)).collect::<Result<Vec<_>>>()?;
    let default_dir = match paths {
        [one] if one.is_dir() => one.clone(),
        [one] => one.parent().map(Path::to_owned).unwrap_or_default(),
        _ => PathBuf::new(),
    };
    Ok(Found { stored, default_dir })
}

/// The results at `path`: itself, the one in it, or those in the directories in it.
fn results(path: &Path) -> Result<Vec<PathBuf>> {
    let shown = path.display();
    let kind = fs::metadata(path).with_context(|| format!("cannot read {shown}"))?;
    if !kind.is_dir() || path.join(RESULT).is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut inside = Vec::new();
    for entry in fs::read_dir(path).with_context(|| format!("cannot read {shown}"))? {
        let dir = entry.with_context(|| format!("cannot read {shown}"))?.path();
        if dir.join(RESULT).is_file() {
            inside.push(dir);
        }
        if inside.len() > RESULTS_MAX {
            bail!("{shown}: more than {RESULTS_MAX} results for one page");
        }
    }
    if inside.is_empty() {
        bail!("{shown}: no {RESULT} in it, nor in the directories in it");
    }
    inside.sort();
    Ok(inside)
}

/// How long the result at `path` is; what cannot be read is refused when it is.
fn bytes(path: &Path) -> u64 {
    let file = if path.is_dir() { path.join(RESULT) } else { path.to_owned() };
    fs::metadata(file).map_or(0, |kind| kind.len())
}

/// Links from a page at `out` to the pages beside results, where these are and lie below it.
pub(super) fn links(stored: &[Stored], out: &Path) -> Vec<Option<String>> {
    let from = out.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(from) = fs::canonicalize(from) else { return vec![None; stored.len()] };
    let link = |stored: &Stored| {
        let page = fs::canonicalize(stored.path.with_file_name(PAGE)).ok()?;
        let relative = page.strip_prefix(&from).ok()?;
        let parts: Option<Vec<String>> =
            relative.iter().map(|part| part.to_str().map(encoded)).collect();
        let parts = parts?;
        // A page does not link to itself.
        (parts.len() > 1).then(|| format!("./{}", parts.join("/")))
    };
    stored.iter().map(link).collect()
}

/// A part of a path as it stands in a link (RFC 3986: unreserved characters as they are).
fn encoded(part: &str) -> String {
    let mut text = String::new();
    for byte in part.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(byte as char);
        } else {
            text += &format!("%{byte:02X}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_encoded() {
        assert_eq!(encoded("2026-11-21T20-01"), "2026-11-21T20-01");
        assert_eq!(encoded("a \"<µ"), "a%20%22%3C%C2%B5");
    }
}
