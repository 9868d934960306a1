//! `punctual report RESULT…`: one page of one, two or many results, and its plots as files.
//!
//! Reads results and the samples beside them; measures nothing. Writes one file of HTML, and with
//! `--plots` an SVG and a PNG of each plot.

mod gather;
mod plots;

use std::fs;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::Exit;
use crate::args::ReportPageArgs;
use crate::output;
use crate::pages::Page;
use crate::report::Report;
use crate::view;

/// The page beside a result, or in a directory of them.
const PAGE: &str = "report.html";

/// Runs the subcommand.
pub(crate) fn run(args: &ReportPageArgs) -> Result<Exit> {
    let found = gather::all(&args.results)?;
    let out = args.output.clone().unwrap_or_else(|| found.beside.join(PAGE));
    if found.stored.iter().any(|stored| same(&stored.path, &out)) {
        bail!("--output {}: that is a result", out.display());
    }
    let links = gather::links(&found.stored, &out);
    let page = Page::of(found.stored, links)?;
    output::replace(&out, view::html::page(&page))?;
    let mut said = format!("{}\n", out.display());
    if let Some(dir) = &args.plots {
        for file in plots::write(&page, dir)? {
            said += &format!("{}\n", file.display());
        }
    }
    // Whoever reads has seen enough.
    let _closed = std::io::stdout().write_all(said.as_bytes());
    Ok(Exit::Fine)
}

fn same(a: &Path, b: &Path) -> bool {
    matches!((fs::canonicalize(a), fs::canonicalize(b)), (Ok(a), Ok(b)) if a == b)
}

/// Writes the page of a result that was just measured beside it.
pub(crate) fn beside(results: &Path, samples: &Path, report: &Report) -> Result<()> {
    let out = results.join(PAGE);
    let page = Page::measured(report, samples, results.display().to_string())
        .with_context(|| format!("cannot write {}", out.display()))?;
    output::replace(&out, view::html::page(&page))
}
