//! `--plots DIR`: each plot of the page as an SVG and a PNG file, for papers and issues.

use std::path::PathBuf;

use anyhow::{Context, Result};
use punctual_analysis::plain::steers;
use punctual_plot::{png, svg};

use crate::output::Dir;
use crate::pages::Page;
use crate::view::plots::{self, Axes, Kind};

/// Writes them all; which files there are now.
pub(super) fn write(page: &Page, dir: &Dir) -> Result<Vec<PathBuf>> {
    let axes = Axes::of(page);
    let mut files = Vec::new();
    let of_kind = |kind| plots::of(page, &axes, kind).into_iter().flatten();
    let all = Kind::ALL.into_iter().flat_map(of_kind).map(|plot| (plot.id, plot.chart));
    let fronts = page.results.iter().enumerate().filter_map(|(at, shown)| {
        Some((format!("front-{}", at + 1), plots::front(&shown.report)?))
    });
    for (id, mut chart) in all.chain(fronts) {
        chart.titled = true;
        let scene = chart.scene();
        let png = png::file(&scene).with_context(|| id.clone())?;
        for (ending, bytes) in [("svg", svg::file(&scene, steers).into_bytes()), ("png", png)] {
            files.push(dir.replace(&format!("{id}.{ending}"), bytes)?);
        }
    }
    Ok(files)
}
