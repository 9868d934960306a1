//! `punctual report RESULT…`: one page of one, two or many results, and its plots as files.
//!
//! Reads results and the samples beside them, or samples alone; measures nothing. Writes one file
//! of HTML, and with `--plots` an SVG and a PNG of each plot.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use punctual_analysis::plain::steers;
use punctual_plot::{png, svg};

use crate::output::{self, Dir, Opened};
use crate::pages::{Page, RESULTS_MAX};
use crate::stored::{self, PAGE, RESULT, SAMPLES, Stored};
use crate::subcommand::{Execute, Exit};
use crate::{format, recorded, view};

/// `punctual report`.
#[derive(Debug, clap::Args)]
pub(super) struct ReportPageArgs {
    /// Results: a directory of 'punctual check', a result as JSON, a sample file, or a directory of
    /// such directories; two results are shown side by side
    #[arg(required = true, value_name = "RESULT")]
    results: Vec<PathBuf>,
    /// Write the page to FILE [default: report.html next to the one RESULT, else here]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write each plot also as an SVG and a PNG file into DIR, which is created if necessary
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
}

impl Execute for ReportPageArgs {
    fn execute(&self) -> Result<Exit> {
        let found = found(&self.results)?;
        let read = found.stored.iter().map(|stored| stored.path.as_path());
        output::spare("--output", self.output.as_deref(), read)?;
        let plots = self.plots.as_deref().map(Dir::make).transpose()?;
        let out = match &self.output {
            Some(path) => Opened::at(path)?,
            None => Opened::chosen(&Dir::open(&found.default_dir)?, PAGE)?,
        };
        let links = links(&found.stored, out.path());
        let page = Page::of(found.stored, links)?;
        out.write(|file| Ok(file.write_all(view::html(&page).as_bytes())?))?;
        let shown = |path: &Path| format::plain(&path.display().to_string()) + "\n";
        let mut lines = shown(out.path());
        if let Some(dir) = &plots {
            for file in write_plots(&page, dir)? {
                lines += &shown(&file);
            }
        }
        let _closed = output::page(&lines);
        Ok(Exit::Fine)
    }
}

/// The most bytes of all results of a page together: they are held at once, several times as big.
const BYTES_MAX: u64 = 128 << 20;

/// The results that were found.
struct Found {
    /// The results, those of a directory by name.
    stored: Vec<Stored>,
    /// Where the page goes without --output.
    default_dir: PathBuf,
}

/// Reads every result that `paths` name.
fn found(paths: &[PathBuf]) -> Result<Found> {
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
    let stored = files.iter().map(|file| read(file)).collect::<Result<Vec<_>>>()?;
    let default_dir = match paths {
        [path] if path.is_dir() => path.clone(),
        [path] => path.parent().map(Path::to_owned).unwrap_or_default(),
        _ => PathBuf::new(),
    };
    Ok(Found { stored, default_dir })
}

/// Reads a result, or makes one of a sample file.
fn read(path: &Path) -> Result<Stored> {
    if path.is_dir() || !stored::is_samples(path)? {
        return stored::read(path);
    }
    let report = recorded::of_sample_file(path)?;
    Ok(Stored { path: path.to_owned(), report, samples: Some(path.to_owned()) })
}

/// The results at `path`: itself, the one in it, or those in the directories in it.
fn results(path: &Path) -> Result<Vec<PathBuf>> {
    let shown = path.display();
    let kind = fs::metadata(path).with_context(|| format!("cannot read {shown}"))?;
    if !kind.is_dir() || path.join(RESULT).is_file() {
        return Ok(vec![path.to_owned()]);
    }
    // A run that was killed has left its samples alone.
    let samples = path.join(SAMPLES);
    if samples.is_file() {
        return Ok(vec![samples]);
    }
    let inside = stored::results_in(path, RESULTS_MAX)?;
    if inside.len() > RESULTS_MAX {
        bail!("{shown}: more than {RESULTS_MAX} results for one page");
    }
    if inside.is_empty() {
        bail!("{shown}: no {RESULT} in it, nor in the directories in it");
    }
    Ok(inside)
}

/// The length of the result at `path`; one that cannot be read is refused when it is. Samples are
/// read in a pass, and not held.
fn bytes(path: &Path) -> u64 {
    let file = if path.is_dir() { path.join(RESULT) } else { path.to_owned() };
    if file.is_file() && matches!(stored::is_samples(&file), Ok(true)) {
        return 0;
    }
    fs::metadata(file).map_or(0, |kind| kind.len())
}

/// Links from a page at `out` to the pages beside results, where these are and lie below it.
fn links(stored: &[Stored], out: &Path) -> Vec<Option<String>> {
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

/// Writes the plots of a page; the files that there are now.
fn write_plots(page: &Page, dir: &Dir) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for (id, mut chart) in view::figures(page) {
        chart.titled = true;
        let scene = chart.scene();
        let png = png::file(&scene).with_context(|| id.clone())?;
        for (ending, bytes) in [("svg", svg::file(&scene, steers).into_bytes()), ("png", png)] {
            files.push(Opened::replace(dir, &format!("{id}.{ending}"), bytes)?);
        }
    }
    Ok(files)
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
