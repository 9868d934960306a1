//! Consecutive samples of a loop about their own grid: figures 1, 2 and 6.

use punctual_analysis::gridfit::GridFit;
use punctual_analysis::histogram::clusters::{Cluster, clusters};
use punctual_analysis::interval::Interval;
use punctual_analysis::plain::significant;
use punctual_analysis::quantile::Probability;
use punctual_analysis::scatter::Scatter;
use punctual_core::sample::Sample;
use punctual_core::time::Period;

use super::PERIOD_NS;
use crate::bench::MeasuredLoop;
use crate::figure::Drawing;

/// The samples of figures 1 and 6, and of figure 2.
pub(super) const FEW: usize = 100;
pub(super) const MANY: usize = 10_000;
/// The axis of figure 2 ends at so many times 99 % of its samples: what is beyond is counted.
const AXIS: f64 = 1.5;
/// Columns of figure 1b, and how far beyond 95 % they go, of what lies below it: a stall would
/// leave nothing to see of the rest.
const COLUMNS: usize = 32;
const BEYOND: f64 = 0.5;

/// So many consecutive samples, about the grid that fits them best.
#[derive(Clone, Debug)]
pub(super) struct Samples {
    /// True where the first of them is the loop's first.
    is_from_start: bool,
    /// Releases among them that were missed, so that they have no sample.
    pub(super) missed: u64,
    /// Distance of each above the earliest one, ns; ≥ 0.
    above_ns: Vec<i64>,
    scatter: Scatter,
}

impl Samples {
    /// The first `count` samples of a run that follow each other; where no release in so many was
    /// missed nowhere, those with fewest missed ones among them. `None` where it has fewer.
    pub(super) fn of(run: Option<&MeasuredLoop>, count: usize) -> Option<Self> {
        let first = &run?.first;
        let missed_in = |stretch: &[Sample]| {
            let [first, .., last] = stretch else { return 0 };
            (last.cycle - first.cycle + 1).saturating_sub(stretch.len() as u64)
        };
        let stretches = first.windows(count).enumerate();
        let (missed, begin, samples) =
            stretches.map(|(at, stretch)| (missed_in(stretch), at, stretch)).min_by_key(|a| a.0)?;
        let above_ns = about_grid(samples)?;
        let scatter = Scatter::of_series(above_ns.iter().copied())?;
        Some(Self { is_from_start: begin == 0, missed, above_ns, scatter })
    }

    /// Their range about the grid, which one stall makes, µs.
    pub(super) fn range_us(&self) -> f64 {
        self.scatter.range() / 1e3
    }

    /// 99 % less the least, µs.
    pub(super) fn at_99_us(&self) -> Option<f64> {
        self.scatter.to_p99().map(|spread: Interval| spread.value / 1e3)
    }

    /// Distance of the loop's first one from the median of all, µs, signed; `None` where it is not
    /// among them.
    pub(super) fn first_us(&self) -> Option<f64> {
        let first = *self.above_ns.first().filter(|_| self.is_from_start)?;
        Some((first as f64 - self.scatter.p50?.value) / 1e3)
    }

    /// Returns true where the loop's first one is later than 95 % of all, as where code is in no
    /// cache yet.
    pub(super) fn is_first_late(&self) -> bool {
        let first = self.above_ns.first().filter(|_| self.is_from_start);
        first.is_some_and(|first| *first > self.at(Probability::P95))
    }

    /// A quantile of all, ns.
    fn at(&self, share: Probability) -> i64 {
        let mut sorted = self.above_ns.clone();
        sorted.sort_unstable();
        let rank = share.rank(sorted.len() as u64) as usize;
        sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
    }

    /// Each, over its number from 1 on, µs.
    fn points(&self) -> Vec<[f64; 2]> {
        let point = |(at, ns): (usize, &i64)| [at as f64 + 1.0, *ns as f64 / 1e3];
        self.above_ns.iter().enumerate().map(point).collect()
    }

    /// The clusters that they fall into.
    pub(super) fn clusters(&self) -> Vec<Cluster> {
        let mut histogram = punctual_analysis::histogram::Histogram::new();
        self.above_ns.iter().for_each(|ns| histogram.push(*ns));
        clusters(&histogram)
    }

    /// Figure 1b.
    fn columns(&self) -> Columns {
        let mut sorted = self.above_ns.clone();
        sorted.sort_unstable();
        let most = self.at(Probability::P95) as f64 * (1.0 + BEYOND);
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
        Columns { edges, counts, beyond }
    }
}

/// Samples by their distance above the earliest, in columns of one width.
struct Columns {
    /// The edges of the columns, µs, one more than there are columns.
    edges: Vec<f64>,
    /// Samples of each column.
    counts: Vec<u64>,
    /// Samples beyond the last edge.
    beyond: usize,
}

/// A sample is a stall where it is so many times as far above the median of all as that is above
/// the earliest.
const STALL: i64 = 5;

/// Distance of each sample above the earliest, about the grid that fits best, ns. Least squares as
/// the paper has it, but a stall has no part in it: one of 400 µs tilts the grid of a hundred
/// samples by 5 µs, fifty times what compensation leaves.
fn about_grid(samples: &[Sample]) -> Option<Vec<i64>> {
    let mut latenesses_ns: Vec<i64> =
        samples.iter().map(|sample| sample.lateness.as_ns()).collect();
    latenesses_ns.sort_unstable();
    let (least, median) = (*latenesses_ns.first()?, latenesses_ns[latenesses_ns.len() / 2]);
    let most = median.saturating_add(median.saturating_sub(least).saturating_mul(STALL));
    let mut fit = GridFit::new(Period::from_ns(PERIOD_NS)?);
    let own = samples.iter().filter(|sample| sample.lateness.as_ns() <= most);
    own.for_each(|sample| fit.push(sample.cycle, sample.lateness.as_ns()));
    let (_, line) = fit.finish()?;
    let above = |sample: &Sample| line.above_earliest_ns(sample.cycle, sample.lateness.as_ns());
    Some(samples.iter().map(above).collect())
}

/// About the fitted grid: how far above the earliest.
const DEVIATION: &str = "above the earliest, µs";

/// Where a cluster lies, in one figure along x and in the other along y: its ends and where it is
/// densest, µs.
fn band_us(cluster: &Cluster) -> [f64; 3] {
    [cluster.lower_ns, cluster.peak_ns, cluster.upper_ns].map(|ns| ns / 1e3)
}

/// A cluster in a legend.
fn cluster_name(clusters: &[Cluster], cluster: &Cluster) -> String {
    match clusters {
        [_] => "here: one cluster, which is all of them".to_owned(),
        _ => format!(
            "here: a cluster of {:.0} % about {:.1} µs",
            cluster.share * 100.0,
            cluster.peak_ns / 1e3
        ),
    }
}

/// Figures 1a and 1b.
pub(super) fn few(samples: &Samples) -> [Drawing; 2] {
    let points = samples.points();
    let first = points.first().filter(|_| samples.is_from_start).map(|at| (*at, "first"));
    let first_name = match samples.is_first_late() {
        true => "here: the first, whose code is in no cache yet",
        false => "here: the first, no later than others",
    };
    let Columns { edges, counts, beyond } = samples.columns();
    let name = match beyond {
        0 => "here: the same samples".to_owned(),
        more => format!("here: the same samples ({more} beyond)"),
    };
    let highest = counts.iter().max().copied().unwrap_or(0) as f64;
    let last_us = edges.last().copied().unwrap_or(0.0);
    let clusters = samples.clusters();
    let shown = || clusters.iter().filter(|cluster| cluster.lower_ns / 1e3 < last_us);
    let title = "deviations of 100 consecutive samples";
    let plot = Drawing::new("nist.fig1a", title, "sample", DEVIATION)
        .line("here: 100 samples, uncompensated", points.clone());
    let ends = [1.0, samples.above_ns.len() as f64];
    // In the same place as beside it, so that a cluster has one colour in both.
    let plot = shown().fold(plot, |plot, cluster| {
        let band = band_us(cluster);
        plot.band(&cluster_name(&clusters, cluster), ends.map(|x| (x, band)))
    });
    let plot = plot.points(first_name, first);
    let histogram =
        Drawing::new("nist.fig1b", "histogram of the same samples", DEVIATION, "samples")
            .steps(&name, &edges, &counts);
    let histogram = shown().fold(histogram, |histogram, cluster| {
        let [low, _, high] = band_us(cluster);
        let column = [low, high.min(last_us)].map(|x| (x, [0.0, highest, highest]));
        histogram.band(&cluster_name(&clusters, cluster), column)
    });
    [plot, histogram]
}

/// Figure 2.
pub(super) fn many(samples: &Samples) -> Drawing {
    let most_us = samples.at(Probability::P99) as f64 * AXIS / 1e3;
    let (shown, beyond): (Vec<[f64; 2]>, Vec<[f64; 2]>) =
        samples.points().into_iter().partition(|at| at[1] <= most_us);
    let largest = beyond.iter().map(|at| at[1]).fold(0.0, f64::max);
    let name = match beyond.len() {
        0 => "here: each sample".to_owned(),
        more => format!("here: each sample ({more} beyond, up to {} µs)", significant(largest)),
    };
    let title = "deviations of 10 000 consecutive samples";
    Drawing::new("nist.fig2", title, "sample", DEVIATION)
        .points(&name, shown.into_iter().map(|at| (at, "")))
        .points("here: beyond the axis", beyond.iter().map(|at| ([at[0], most_us], "")))
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
    use crate::figure::Style;

    fn samples(values: &[i64], count: usize) -> Option<Samples> {
        Samples::of(Some(&MeasuredLoop::of_latenesses(values, 0.1, 1)), count)
    }

    #[test]
    fn one_stall_does_not_tilt_the_grid_of_the_others() {
        let calm = evenly(2_000, 100, 100, false);
        let mut stalled = calm.clone();
        stalled[62] = 400_000;
        let stalled = samples(&stalled, FEW).expect("a hundred");
        // The earliest and the latest of the others lie no farther apart than without it.
        let others = stalled.above_ns.iter().filter(|ns| **ns < 100_000);
        assert!(others.clone().max().is_some_and(|ns| *ns < 150), "{stalled:?}");
        assert_eq!(others.count(), 99);
        assert!(stalled.range_us() > 390.0, "it is part of the range");
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
        let first = plot.series.last().expect("the first");
        assert_eq!(first.points.len(), 1);
        assert!(first.name.contains("in no cache yet"), "{}", first.name);
        let steps = &histogram.series[0];
        assert_eq!(steps.points.len(), COLUMNS + 1);
        assert!(steps.points.last().is_some_and(|at| at[0] < 30.0), "{steps:?}");
        assert!(steps.name.contains("beyond"), "{}", steps.name);
        let counted: f64 = steps.points[..COLUMNS].iter().map(|at| at[1]).sum();
        assert!((97.0..100.0).contains(&counted), "{counted}");
    }

    #[test]
    fn figure_2_has_each_sample_up_to_its_99_percent_and_figure_6_has_both_loops() {
        let mut values = evenly(2_000, 3_000, MANY, false);
        values[5_000] = 900_000;
        let consecutive = samples(&values, MANY).expect("enough");
        let figure = many(&consecutive);
        let [points, beyond] = &figure.series[..] else { panic!("{:?}", figure.series.len()) };
        assert_eq!((points.style, points.points.len()), (Style::Points, MANY - 1));
        // What lies beyond is at the edge, at its own sample.
        assert_eq!((beyond.style, beyond.points.len()), (Style::Points, 1));
        assert!(beyond.points[0][0] == 5_001.0 && beyond.points[0][1] < 10.0, "{beyond:?}");
        assert!(points.points.iter().all(|at| at[1] < 10.0), "the axis is that of the body");
        assert!(points.name.contains("1 beyond, up to 8"), "{}", points.name);
        assert!(
            consecutive.at_99_us().is_some_and(|us| us < consecutive.range_us()),
            "{:?}",
            consecutive.at_99_us()
        );
        let (a, b) = (samples(&values, FEW), samples(&values[200..], FEW));
        let figure = overlaid(&a.expect("a hundred"), &b.expect("a hundred"));
        assert_eq!(figure.series.len(), 2);
    }

    /// A run that missed the releases of `missed`.
    fn with_missed(values: &[i64], missed: &[u64]) -> MeasuredLoop {
        let mut run = MeasuredLoop::of_latenesses(values, 0.1, 1);
        run.first.retain(|sample| !missed.contains(&sample.cycle));
        run
    }

    #[test]
    fn they_follow_each_other_where_so_many_do_and_else_fewest_are_missed() {
        let values = evenly(2_000, 3_000, 300, false);
        let found = |missed: &[u64]| Samples::of(Some(&with_missed(&values, missed)), FEW);
        let whole = found(&[]).expect("enough");
        assert_eq!((whole.missed, whole.is_from_start), (0, true));
        let later = found(&[50]).expect("enough");
        assert_eq!((later.missed, later.is_from_start), (0, false));
        assert_eq!(later.first_us(), None, "the loop's first is not among them");
        assert!(few(&later)[0].series.iter().all(|series| !series.name.contains("first")));
        let broken = found(&[40, 45, 130, 220]).expect("enough");
        assert_eq!((broken.missed, broken.above_ns.len()), (1, FEW));
    }

    #[test]
    fn clusters_are_bands_in_both_figures_and_one_alone_is_named_as_that() {
        let single = samples(&evenly(2_000, 3_000, FEW, false), FEW).expect("a hundred");
        // The earliest is far before all others.
        let at = |at: i64| if at % 2 == 0 { 5_000 } else { 11_000 } + at % 7 * 40;
        let two: Vec<i64> =
            (0..FEW as i64).map(|number| if number == 10 { 2_000 } else { at(number) }).collect();
        let two = samples(&two, FEW).expect("a hundred");
        for (samples, count) in [(&single, 1), (&two, 2)] {
            assert_eq!(samples.clusters().len(), count);
            let places = few(samples).map(|figure| {
                let is_band = |series: &crate::figure::Series| series.style == Style::Band;
                figure.series.iter().position(is_band)
            });
            assert_eq!(places[0], places[1], "one colour in both");
            for figure in few(samples) {
                let bands: Vec<_> =
                    figure.series.iter().filter(|series| series.style == Style::Band).collect();
                assert_eq!(bands.len(), count, "{}", figure.id);
                let is_one = |name: &str| name.contains("one cluster, which is all");
                assert!(bands.iter().all(|band| is_one(&band.name) == (count == 1)));
            }
        }
        let [plot, histogram] = few(&two);
        let band = |figure: &Drawing, axis: usize| {
            let band = figure.series.iter().rfind(|series| series.style == Style::Band);
            let points = &band.expect("a band").points;
            let at = || points.iter().map(|at| at[axis]);
            [at().fold(f64::MAX, f64::min), at().fold(f64::MIN, f64::max)]
        };
        // The later cluster lies along y in one and along x in the other.
        let [low, high] = band(&plot, 1);
        assert!(low > 3.5 && high < 10.0, "{low} {high}");
        assert!((band(&histogram, 0)[0] - low).abs() < 1e-9);
        // The first is in the earlier cluster.
        assert!(!two.is_first_late());
        assert!(plot.series.iter().any(|series| series.name.contains("no later than others")));
    }
}
