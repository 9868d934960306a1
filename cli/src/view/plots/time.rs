//! Lateness over time: smallest, mean and largest of neighbouring cycles, every outlier, and where
//! releases were missed.

use punctual_analysis::plot::envelope::{Envelope, Stretch};
use punctual_analysis::plot::thinned::Thinned;
use punctual_plot::chart::{Chart, Mark, Series};

use super::axes::Axes;
use crate::format;
use crate::pages::{Line, Page, Panel};

/// Stretches of a drawing that is not interactive: about two pixels each.
const DRAWN: usize = 400;

/// A time series with its cycles as seconds from the first release.
pub(crate) struct Times<'a> {
    /// The series.
    pub(crate) thinned: &'a Thinned,
    /// What a release without a sample was.
    pub(crate) gaps: &'static str,
    period_s: f64,
}

/// A stretch in seconds: its middle, and its stretch.
type Placed<'a> = (f64, &'a Stretch);

impl<'a> Times<'a> {
    /// The time series of a line; `None` without samples.
    pub(crate) fn of(page: &'a Page, line: &Line) -> Option<Self> {
        let run = page.run(line);
        let period_s = run.setup.period_ns? as f64 / 1e9;
        let gaps = if run.outcome.unrecorded > 0 { "missed or unrecorded" } else { "missed" };
        Some(Self { thinned: page.series(line)?, gaps, period_s })
    }

    /// When a cycle was released.
    pub(crate) fn at_s(&self, cycle: u64) -> f64 {
        cycle as f64 * self.period_s
    }

    /// The width of a stretch.
    pub(crate) fn width_s(&self, envelope: &Envelope) -> f64 {
        envelope.width() as f64 * self.period_s
    }

    /// Stretches with their middles; `None` where the loop did not run in between.
    pub(crate) fn placed<'e>(&self, envelope: &'e Envelope) -> Vec<Option<Placed<'e>>> {
        let mut placed: Vec<Option<Placed<'e>>> = Vec::new();
        let mut next = None;
        for stretch in envelope.stretches() {
            let far = envelope.width().saturating_mul(2).max(8);
            if next.is_some_and(|next: u64| stretch.first > next.saturating_add(far)) {
                placed.push(None);
            }
            let middle = self.at_s(stretch.first) + self.width_s(envelope) / 2.0;
            placed.push(Some((middle, stretch)));
            next = stretch.first.checked_add(envelope.width());
        }
        placed
    }

    pub(super) fn end_s(&self) -> f64 {
        let envelope = &self.thinned.envelope;
        let last = envelope.stretches().last().map_or(0, |stretch| stretch.first);
        self.at_s(last) + self.width_s(envelope)
    }

    pub(super) fn lowest_ns(&self) -> f64 {
        let all = self.thinned.envelope.stretches().iter().map(|stretch| stretch.min_ns as f64);
        all.filter(|ns| *ns > 0.0).fold(f64::INFINITY, f64::min)
    }

    pub(super) fn highest_ns(&self) -> f64 {
        let all = self.thinned.envelope.stretches().iter().map(|stretch| stretch.max_ns as f64);
        all.fold(1.0, f64::max)
    }
}

/// The chart of a panel.
pub(super) fn chart(page: &Page, axes: &Axes, panel: &Panel) -> Chart {
    let series = |line: &Line| {
        let marks = Times::of(page, line).map(|times| marks(&times)).unwrap_or_default();
        Series { name: line.name.clone(), ink: line.ink, marks }
    };
    let part = |line: &Line| Times::of(page, line).map(|times| said(&times)).unwrap_or_default();
    Chart {
        title: format!("Lateness over time: {}", panel.title),
        titled: false,
        description: panel.lines.iter().map(part).collect::<Vec<_>>().join(" "),
        size: super::ALONE,
        x: axes.time.clone(),
        y: axes.lateness.clone(),
        series: panel.lines.iter().map(series).collect(),
    }
}

fn marks(times: &Times<'_>) -> Vec<Mark> {
    let envelope = times.thinned.envelope.thinned(DRAWN);
    let band = times.placed(&envelope).into_iter().map(|placed| {
        let (at, stretch) = placed?;
        Some((at, stretch.min_ns as f64, stretch.mean_ns(), stretch.max_ns as f64))
    });
    let missed = envelope.stretches().iter().filter(|stretch| stretch.missed > 0);
    let missed = missed.map(|stretch| times.at_s(stretch.first)).collect();
    let dots = times.thinned.outliers.iter();
    let dots = dots.map(|dot| (times.at_s(dot.cycle), dot.lateness_ns as f64)).collect();
    vec![Mark::Band(band.collect()), Mark::Dots(dots), Mark::Rug(missed)]
}

/// What is drawn, in words.
pub(crate) fn said(times: &Times<'_>) -> String {
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
            "; dots: all {} cycles later than {} (99.9 % are not)",
            format::count(shown),
            format::ns(Some(above as f64))
        ),
    };
    format!("{width}{dots}; marks at the foot: {} releases.", times.gaps)
}
