//! Lateness over time: smallest, mean and largest of neighbouring cycles, every outlier, and where
//! releases were missed.

use punctual_plot::chart::{Chart, ChartSeries, Mark};

use super::axes::{Axes, Size};
use super::times::Times;
use crate::format;
use crate::pages::{Line, Loaded, Page, Panel};

/// Bins of a drawing that is not interactive: about two pixels each.
const DRAWN: usize = 400;

/// The chart of a panel.
pub(super) fn chart(page: &Page, axes: &Axes, panel: &Panel, size: Size) -> Chart {
    let series = |line: &Line| {
        let marks = Times::of(page, line).map(|times| marks(&times, page.loaded(line)));
        let marks = marks.unwrap_or_default();
        ChartSeries { name: line.name.clone(), ink: line.ink, marks }
    };
    let part = |line: &Line| {
        let loads = if page.loaded(line).is_empty() { "" } else { " At the top: the load." };
        Times::of(page, line).map(|times| described(&times) + loads).unwrap_or_default()
    };
    Chart {
        title: format!("Lateness over time: {}", panel.title),
        titled: false,
        description: panel.lines.iter().map(part).collect::<Vec<_>>().join(" "),
        size,
        x: axes.time.clone(),
        y: axes.lateness.clone(),
        series: panel.lines.iter().map(series).collect(),
    }
}

fn marks(times: &Times<'_>, loaded: &[Loaded]) -> Vec<Mark> {
    let envelope = times.thinned.envelope.thinned(DRAWN);
    let band = times.placed(&envelope).into_iter().map(|placed| {
        let (at, bin) = placed?;
        Some((at, bin.min_ns as f64, bin.mean_ns(), bin.max_ns as f64))
    });
    let missed = envelope.bins().iter().filter(|bin| bin.missed > 0);
    let missed = missed.map(|bin| times.at_s(bin.first)).collect();
    let dots = times.thinned.outliers.iter();
    let dots = dots.map(|dot| (times.at_s(dot.cycle), dot.lateness_ns as f64)).collect();
    let spans = times.loads(loaded);
    vec![Mark::Spans(spans), Mark::Band(band.collect()), Mark::Dots(dots), Mark::Rug(missed)]
}

/// What is drawn, in words.
pub(crate) fn described(times: &Times<'_>) -> String {
    let thinned = times.thinned;
    let width = match thinned.envelope.width() {
        1 => "Every cycle".to_owned(),
        width => {
            format!("Band: smallest to largest of {} cycles each, line: mean", format::count(width))
        }
    };
    let dots = match (thinned.outlier_above_ns, thinned.outliers.len() as u64) {
        (None, _) => String::new(),
        (Some(above), shown) if shown < thinned.outliers_in_all => format!(
            "; dots: the {} latest of {} cycles later than {} (99.9 % are not)",
            format::count(shown),
            format::count(thinned.outliers_in_all),
            format::ns(Some(above as f64))
        ),
        (Some(above), shown) => format!(
            "; dots: {} later than {} (99.9 % are not)",
            if shown == 1 {
                "the one cycle".to_owned()
            } else {
                format!("all {} cycles", format::count(shown))
            },
            format::ns(Some(above as f64))
        ),
    };
    format!("{width}{dots}; marks at the foot: {} releases.", times.gaps)
}
