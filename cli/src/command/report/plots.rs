//! `--plots DIR`: each plot of the page as an SVG and a PNG file, for papers and issues.

use std::path::PathBuf;

use anyhow::{Context, Result};
use punctual_plot::{png, svg};

use crate::output::Dir;
use crate::pages::Page;
use crate::view::plots::{self, Axes, Kind};

/// Writes them all; which files there are now.
pub(super) fn write(page: &Page, dir: &Dir) -> Result<Vec<PathBuf>> {
    let axes = Axes::of(page);
    let mut files = Vec::new();
    for kind in Kind::ALL {
        for mut plot in plots::of(page, &axes, kind).into_iter().flatten() {
            plot.chart.titled = true;
            let scene = plot.chart.scene();
            let png = png::file(&scene).with_context(|| plot.id.clone())?;
            for (ending, bytes) in [("svg", svg::file(&scene).into_bytes()), ("png", png)] {
                files.push(dir.replace(&format!("{}.{ending}", plot.id), bytes)?);
            }
        }
    }
    Ok(files)
}
