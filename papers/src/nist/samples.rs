//! Consecutive samples of a loop about their own grid: figures 1, 2 and 6.

use punctual_analysis::gridfit::GridFit;
use punctual_analysis::histogram::clusters::{Cluster, clusters};
use punctual_analysis::interval::Interval;
use punctual_analysis::quantile::Probability;
use punctual_analysis::scatter::Scatter;
use punctual_core::time::Period;

use super::PERIOD_NS;
use crate::bench::MeasuredLoop;
use crate::figure::Drawing;

/// The samples of figures 1 and 6, and of figure 2.
pub(super) const FEW: usize = 100;
pub(super) const MANY: usize = 10_000;
/// Samples that are drawn as one in figure 2: their least, median and largest.
const JOINED: usize = 40;
/// Columns of figure 1b, and how far beyond 95 % they go, of what lies below it: a stall would
/// leave nothing to see of the rest.
const COLUMNS: usize = 32;
const BEYOND: f64 = 0.5;

/// So many consecutive samples, about the grid that fits them best.
#[derive(Clone, Debug)]
pub(super) struct Samples {
    /// How far each is above the earliest one, ns.
    above_ns: Vec<i64>,
    scatter: Scatter,
}

impl Samples {
    /// The first `count` samples of a run; `None` where it has fewer.
    pub(super) fn of(run: Option<&MeasuredLoop>, count: usize) -> Option<Self> {
        let samples = run?.first.get(..count)?;
        let mut fit = GridFit::new(Period::from_ns(PERIOD_NS)?);
        samples.iter().for_each(|sample| fit.push(sample.cycle, sample.lateness.as_ns()));
        let (_, line) = fit.finish()?;
        let above = |sample: &punctual_core::sample::Sample| {
            line.above_earliest_ns(sample.cycle, sample.lateness.as_ns())
        };
        let above_ns: Vec<i64> = samples.iter().map(above).collect();
        let scatter = Scatter::of_series(above_ns.iter().copied())?;
        Some(Self { above_ns, scatter })
    }

    /// Their range about the grid, which one stall makes, µs.
    pub(super) fn range_us(&self) -> f64 {
        self.scatter.range() / 1e3
    }

    /// 99 % less the least, µs.
    pub(super) fn at_99_us(&self) -> Option<f64> {
        self.scatter.to_p99().map(|spread: Interval| spread.value / 1e3)
    }

    /// How much later the first one is than the median of all, µs: code that is in no cache yet.
    pub(super) fn first_us(&self) -> Option<f64> {
        Some((*self.above_ns.first()? as f64 - self.scatter.p50?.value) / 1e3)
    }

    /// Each, over its number from 1 on, µs.
    fn points(&self) -> Vec<[f64; 2]> {
        let point = |(at, ns): (usize, &i64)| [at as f64 + 1.0, *ns as f64 / 1e3];
        self.above_ns.iter().enumerate().map(point).collect()
    }

    /// The clusters that they fall into.
    fn clusters(&self) -> Vec<Cluster> {
        let mut histogram = punctual_analysis::histogram::Histogram::new();
        self.above_ns.iter().for_each(|ns| histogram.push(*ns));
        clusters(&histogram)
    }

    /// Figure 1b: counts in columns of one width.
    fn columns(&self) -> (Vec<f64>, Vec<u64>, usize) {
        let mut sorted = self.above_ns.clone();
        sorted.sort_unstable();
        let rank = Probability::P95.rank(sorted.len() as u64) as usize;
        let most = sorted[rank.saturating_sub(1)] as f64 * (1.0 + BEYOND);
        let width = (most / COLUMNS as f64).max(1.0);
        let edges = (0..=COLUMNS).map(|edge| edge as f64 * width / 1e3).collect();
        let mut counts = vec![0; COLUMNS];
        let mut beyond = 0;
        for ns in sorted {
            match counts.get_mut((ns as f64 / width) as usize) {
                Some(count) => *count += 1,
                None => beyond += 1,
            }
        }
        (edges, counts, beyond)
    }
}

/// About the fitted grid: how far above the earliest.
const DEVIATION: &str = "above the earliest, µs";

/// Figures 1a and 1b.
pub(super) fn few(samples: &Samples) -> [Drawing; 2] {
    let points = samples.points();
    let first = points.first().map(|at| (*at, "first"));
    let title = "deviations of 100 consecutive samples";
    let plot = Drawing::new("nist.fig1a", title, "sample", DEVIATION)
        .line("here: 100 samples, uncompensated", points.clone())
        .points("here: the first, whose code is in no cache yet", first);
    let (edges, counts, beyond) = samples.columns();
    let name = match beyond {
        0 => "here: the same samples".to_owned(),
        more => format!("here: the same samples ({more} beyond)"),
    };
    let highest = counts.iter().max().copied().unwrap_or(0) as f64;
    let last = edges.last().copied().unwrap_or(0.0);
    let clusters = samples.clusters();
    // One alone is all of them, and says nothing.
    let several = clusters.iter().filter(|_| clusters.len() > 1);
    let peaks = several.filter_map(|cluster| {
        let us = cluster.peak_ns / 1e3;
        (us <= last).then(|| ([us, highest], format!("{:.0} %", cluster.share * 100.0)))
    });
    let peaks: Vec<([f64; 2], String)> = peaks.collect();
    let histogram =
        Drawing::new("nist.fig1b", "histogram of the same samples", DEVIATION, "samples")
            .steps(&name, &edges, &counts)
            .points(
                "here: clusters, with their share",
                peaks.iter().map(|(at, share)| (*at, &**share)),
            );
    [plot, histogram]
}

/// Figure 2.
pub(super) fn many(samples: &Samples) -> Drawing {
    let mut lines = [Vec::new(), Vec::new(), Vec::new()];
    for (at, joined) in samples.above_ns.chunks(JOINED).enumerate() {
        let mut sorted = joined.to_vec();
        sorted.sort_unstable();
        let x = (at * JOINED) as f64 + joined.len() as f64 / 2.0 + 0.5;
        let [Some(least), Some(largest)] = [sorted.first(), sorted.last()] else { continue };
        for (line, ns) in lines.iter_mut().zip([largest, &sorted[sorted.len() / 2], least]) {
            line.push([x, *ns as f64 / 1e3]);
        }
    }
    let figure = Drawing::new(
        "nist.fig2",
        "deviations of 10 000 consecutive samples, 40 as one",
        "sample",
        DEVIATION,
    );
    let names = ["here: largest of 40", "here: median of 40", "here: least of 40"];
    names.into_iter().zip(lines).fold(figure, |figure, (name, line)| figure.line(name, line))
}

/// Figure 6: both overlaid.
pub(super) fn overlaid(plain: &Samples, compensated: &Samples) -> Drawing {
    let title = "uncompensated and compensated, 100 consecutive samples each";
    Drawing::new("nist.fig6", title, "sample", DEVIATION)
        .line("here: uncompensated, as in figure 1a", plain.points())
        .line("here: compensated", compensated.points())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::evenly;

    fn samples(values: &[i64], count: usize) -> Option<Samples> {
        Samples::of(Some(&MeasuredLoop::of_latenesses(values, 0.1, 1)), count)
    }

    #[test]
    fn they_are_exactly_as_many_as_the_paper_has_or_none() {
        let values = evenly(2_000, 3_000, 120, false);
        let found = samples(&values, FEW).expect("120 are enough");
        assert_eq!((found.above_ns.len(), found.scatter.n), (100, 100));
        assert!(samples(&values[..99], FEW).is_none() && Samples::of(None, FEW).is_none());
        // The grid takes a drift off; what is left is above the earliest.
        let drifting: Vec<i64> = (0..100).map(|at| 5_000 + at * 40 + at % 2 * 100).collect();
        let found = samples(&drifting, FEW).expect("a hundred");
        assert!(found.range_us() < 0.105, "{}", found.range_us());
        assert_eq!(found.above_ns.iter().min(), Some(&0));
    }

    #[test]
    fn one_stall_is_the_range_and_leaves_the_figures_readable() {
        let mut values = evenly(2_000, 3_000, FEW, false);
        values[0] = 9_000;
        values[50] = 700_000;
        let found = samples(&values, FEW).expect("a hundred");
        assert!(found.range_us() > 690.0);
        assert!(found.first_us().is_some_and(|us| (4.0..9.0).contains(&us)), "{found:?}");
        let [plot, histogram] = few(&found);
        assert_eq!(plot.series[0].points.len(), FEW);
        assert_eq!(plot.series[1].points.len(), 1);
        let steps = &histogram.series[0];
        assert_eq!(steps.points.len(), COLUMNS + 1);
        assert!(steps.points.last().is_some_and(|at| at[0] < 30.0), "{steps:?}");
        assert!(steps.name.contains("beyond"), "{}", steps.name);
        let counted: f64 = steps.points[..COLUMNS].iter().map(|at| at[1]).sum();
        assert!((97.0..100.0).contains(&counted), "{counted}");
    }

    #[test]
    fn figure_2_has_all_of_them_in_three_lines_and_figure_6_has_both_loops() {
        let values = evenly(2_000, 3_000, MANY, false);
        let consecutive = samples(&values, MANY).expect("enough");
        let figure = many(&consecutive);
        let lengths: Vec<usize> = figure.series.iter().map(|series| series.points.len()).collect();
        assert_eq!(lengths, [MANY / JOINED; 3]);
        for at in 0..MANY / JOINED {
            let y = |line: usize| figure.series[line].points[at][1];
            assert!(y(2) <= y(1) && y(1) <= y(0));
        }
        assert!(
            consecutive.at_99_us().is_some_and(|us| us < consecutive.range_us()),
            "{:?}",
            consecutive.at_99_us()
        );
        let (a, b) = (samples(&values, FEW), samples(&values[200..], FEW));
        let both = overlaid(&a.expect("a hundred"), &b.expect("a hundred"));
        assert_eq!(both.series.len(), 2);
    }
}
