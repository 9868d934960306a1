//! `punctual report RESULT…`: one page of one, two or many results, and its plots as files.
//!
//! Reads results and the samples beside them; measures nothing. Writes one file of HTML, and with
//! `--plots` an SVG and a PNG of each plot.

mod gather;
mod plots;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::args::ReportPageArgs;
use crate::exit::Exit;
use crate::format;
use crate::output::{self, Dir, Opened};
use crate::pages::Page;
use crate::report::Report;
use crate::view;

/// The page beside a result, or in a directory of them.
const PAGE: &str = "report.html";

/// Runs the subcommand.
pub(crate) fn run(args: &ReportPageArgs) -> Result<Exit> {
    let found = gather::all(&args.results)?;
    let read = found.stored.iter().map(|stored| stored.path.as_path());
    output::spare("--output", args.output.as_deref(), read)?;
    let plots = args.plots.as_deref().map(Dir::make).transpose()?;
    let out = match &args.output {
        Some(path) => Opened::at(path)?,
        None => Dir::open(&found.default_dir)?.opened(PAGE)?,
    };
    let links = gather::links(&found.stored, out.path());
    let page = Page::of(found.stored, links)?;
    out.write(|file| Ok(file.write_all(view::html::page(&page).as_bytes())?))?;
    let shown = |path: &Path| format::plain(&path.display().to_string()) + "\n";
    let mut said = shown(out.path());
    if let Some(dir) = &plots {
        for file in plots::write(&page, dir)? {
            said += &shown(&file);
        }
    }
    let _closed = output::page(&said);
    Ok(Exit::Fine)
}

/// Writes the page of a result that was just measured beside it.
pub(crate) fn write_to(results: &Dir, report: &Report) -> Result<PathBuf> {
    let page = Page::measured(report, results)
        .with_context(|| format!("cannot write {}", results.path().join(PAGE).display()))?;
    results.replace(PAGE, view::html::page(&page))
}
