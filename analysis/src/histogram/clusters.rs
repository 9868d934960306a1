//! The modes of a histogram: the clusters of NIST's Figure 1, each the trace of one path through
//! the machine's code.
//!
//! Works in bins of a log-like scale (asinh, which also covers early wakes), smoothed over 15 %, on
//! the count per bin: the modes are those of the logarithmic drawing, where a broad second one is
//! seen behind a narrow first one although each nanosecond of it has fewer values than the tail of
//! the first. Where values lie on both sides of zero it is the density per nanosecond: a bell about
//! zero has one mode, as it has in a linear drawing, and two in a logarithmic one.
//! Accepts a valley between two peaks only when it is deep in proportion *and* beyond what counting
//! noise explains. Few samples therefore give few clusters. Reads a histogram; changes nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Histogram;

/// One mode with what surrounds it, up to the valleys on both sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cluster {
    /// Smallest value in it, ns (bucket resolution).
    pub lower_ns: f64,
    /// Largest value in it, ns (bucket resolution).
    pub upper_ns: f64,
    /// Where it is densest, ns.
    pub peak_ns: f64,
    /// Its share of all values, 0..1.
    pub share: f64,
}

/// Where the scale turns from linear to logarithmic, ns: some clock reads.
const LINEAR_NS: f64 = 64.0;
/// Bins per factor e.
const BINS_PER_E: f64 = 20.0;
/// Half width of the triangular smoothing window, bins.
const WINDOW: usize = 3;
/// A valley is at most this share of the lower of the two peaks next to it.
const VALLEY_SHARE: f64 = 0.7;
/// And lower than it by this many standard deviations of counting noise.
const VALLEY_SIGMAS: f64 = 5.0;
/// Smaller clusters join their neighbour.
const SHARE_MIN: f64 = 1e-3;

/// A bin of the scale.
#[derive(Clone, Copy, Default)]
struct Bin {
    count: f64,
    /// Σ count·value, for where it is densest.
    weight: f64,
    lowest: Option<i64>,
    highest: i64,
    /// What the density is per: its whole nanoseconds, or 1 for the bin itself.
    width: f64,
    /// Smoothed density, and the variance of it.
    smooth: f64,
    noise: f64,
}

/// The clusters in rising order; shares sum to at most 1 (values in the overflow are in none).
pub fn clusters(histogram: &Histogram) -> Vec<Cluster> {
    let mut bins = binned(histogram);
    smooth(&mut bins);
    let mut ends = valleys(&bins);
    let total = histogram.count() as f64;
    drop_small(&bins, &mut ends, total);
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let stops = ends.iter().copied().chain([bins.len()]);
    let range = histogram.min().zip(histogram.max());
    starts
        .zip(stops)
        .filter_map(|(start, stop)| cluster(&bins[start..stop], range?, total))
        .collect()
}

fn place(ns: f64) -> f64 {
    (ns / LINEAR_NS).asinh() * BINS_PER_E
}

/// The bins from the first to the last value, with room for the window at both ends.
fn binned(histogram: &Histogram) -> Vec<Bin> {
    let middle = |b: &super::Bucket| (b.lowest_ns as f64 + b.highest_ns as f64) / 2.0;
    let Some(first) = histogram.buckets().next() else { return Vec::new() };
    let origin = place(middle(&first)).floor() as i64 - WINDOW as i64;
    let mut bins = Vec::new();
    for bucket in histogram.buckets() {
        let value = middle(&bucket);
        // Inside [WINDOW, 1100]: the scale has about 1020 places on both sides of zero together.
        let at = (place(value).floor() as i64 - origin) as usize;
        if at + WINDOW >= bins.len() {
            bins.resize(at + WINDOW + 1, Bin::default());
        }
        let bin = &mut bins[at];
        bin.count += bucket.count as f64;
        bin.weight += bucket.count as f64 * value;
        bin.lowest.get_or_insert(bucket.lowest_ns);
        bin.highest = bucket.highest_ns;
    }
    let early: u64 = histogram.buckets().filter(|b| b.highest_ns < 0).map(|b| b.count).sum();
    // Fewer are no cluster of their own.
    let is_per_ns = early as f64 >= SHARE_MIN * histogram.count() as f64;
    for (at, bin) in bins.iter_mut().enumerate() {
        if !is_per_ns {
            bin.width = 1.0;
            continue;
        }
        let edge = |place: i64| ((place as f64 / BINS_PER_E).sinh() * LINEAR_NS).ceil();
        let place = origin + at as i64;
        bin.width = (edge(place + 1) - edge(place)).max(1.0);
    }
    bins
}

fn smooth(bins: &mut [Bin]) {
    let total = ((WINDOW + 1) * (WINDOW + 1)) as f64;
    for at in 0..bins.len() {
        let from = at.saturating_sub(WINDOW);
        let to = (at + WINDOW).min(bins.len() - 1);
        let (mut sum, mut noise) = (0.0, 0.0);
        for (i, bin) in bins[from..=to].iter().enumerate() {
            let weight = (WINDOW + 1 - at.abs_diff(from + i)) as f64 / total;
            sum += weight * bin.count / bin.width;
            noise += weight * weight * bin.count / (bin.width * bin.width);
        }
        bins[at].smooth = sum;
        bins[at].noise = noise;
    }
}

/// The bins at which one cluster ends and the next begins: all local minima, less those that are
/// not deep enough, the shallowest first.
fn valleys(bins: &[Bin]) -> Vec<usize> {
    let (mut peaks, mut valleys) = extremes(bins);
    loop {
        let depth = |v: usize| {
            let lower = bins[peaks[v]].smooth.min(bins[peaks[v + 1]].smooth);
            bins[valleys[v]].smooth / lower
        };
        let shallow = (0..valleys.len())
            .filter(|&v| !is_deep(&bins[valleys[v]], &bins[peaks[v]], &bins[peaks[v + 1]]))
            .max_by(|&a, &b| depth(a).total_cmp(&depth(b)));
        let Some(shallow) = shallow else { return valleys };
        valleys.remove(shallow);
        // Of the two peaks, the higher one remains.
        let left_is_lower = bins[peaks[shallow]].smooth < bins[peaks[shallow + 1]].smooth;
        peaks.remove(if left_is_lower { shallow } else { shallow + 1 });
    }
}

/// Alternating peaks and valleys between them, of the smoothed counts.
fn extremes(bins: &[Bin]) -> (Vec<usize>, Vec<usize>) {
    let (mut peaks, mut valleys) = (Vec::new(), Vec::new());
    let mut rising = true;
    let mut best = 0;
    for at in 0..bins.len() {
        let (density, extreme) = (bins[at].smooth, bins[best].smooth);
        if rising && density < extreme {
            peaks.push(best);
            rising = false;
            best = at;
        } else if !rising && density > extreme {
            valleys.push(best);
            rising = true;
            best = at;
        } else if (rising && density > extreme) || (!rising && density < extreme) {
            best = at;
        }
    }
    if rising && !bins.is_empty() {
        peaks.push(best);
    }
    (peaks, valleys)
}

fn is_deep(valley: &Bin, left: &Bin, right: &Bin) -> bool {
    let below = |peak: &Bin| {
        let noise = (valley.noise + peak.noise).sqrt();
        valley.smooth <= VALLEY_SHARE * peak.smooth
            && peak.smooth - valley.smooth > VALLEY_SIGMAS * noise
    };
    below(left) && below(right)
}

/// Joins clusters below the smallest share to their neighbour across the higher valley.
fn drop_small(bins: &[Bin], ends: &mut Vec<usize>, total: f64) {
    loop {
        let mut edges = vec![0];
        edges.extend(ends.iter().copied());
        edges.push(bins.len());
        let count =
            |c: usize| bins[edges[c]..edges[c + 1]].iter().map(|bin| bin.count).sum::<f64>();
        let Some(small) = (0..=ends.len()).find(|&c| count(c) < SHARE_MIN * total) else { return };
        let left = small.checked_sub(1).map(|v| (v, bins[ends[v]].smooth));
        let right = ends.get(small).map(|&end| (small, bins[end].smooth));
        let join = match (left, right) {
            (Some(left), Some(right)) => Some(if left.1 >= right.1 { left } else { right }),
            (left, right) => left.or(right),
        };
        let Some((valley, _)) = join else { return };
        ends.remove(valley);
    }
}

fn cluster(bins: &[Bin], (min, max): (i64, i64), total: f64) -> Option<Cluster> {
    let lower = bins.iter().find_map(|bin| bin.lowest)?;
    let upper = bins.iter().rev().find(|bin| bin.lowest.is_some())?.highest;
    let count: f64 = bins.iter().map(|bin| bin.count).sum();
    let densest =
        bins.iter().filter(|bin| bin.count > 0.0).max_by(|a, b| a.smooth.total_cmp(&b.smooth))?;
    Some(Cluster {
        lower_ns: lower.max(min) as f64,
        upper_ns: upper.min(max) as f64,
        peak_ns: (densest.weight / densest.count).clamp(min as f64, max as f64),
        share: count / total,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Splitmix64 as a stream of uniform numbers in (0, 1).
    struct Random(u64);

    impl Random {
        fn uniform(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64 + 1e-17
        }

        fn normal(&mut self) -> f64 {
            let angle = 2.0 * std::f64::consts::PI * self.uniform();
            (-2.0 * self.uniform().ln()).sqrt() * angle.cos()
        }
    }

    fn found(n: usize, mut value: impl FnMut(&mut Random) -> f64, seed: u64) -> Vec<Cluster> {
        let mut random = Random(seed);
        let mut histogram = Histogram::new();
        (0..n).for_each(|_| histogram.push(value(&mut random) as i64));
        let found = clusters(&histogram);
        let shares: f64 = found.iter().map(|cluster| cluster.share).sum();
        assert!(shares <= 1.0 + 1e-9, "{shares}");
        assert!(found.windows(2).all(|pair| pair[0].upper_ns < pair[1].lower_ns));
        assert!(found.iter().all(|c| c.lower_ns <= c.peak_ns && c.peak_ns <= c.upper_ns));
        found
    }

    #[test]
    fn two_and_three_modes_are_found_with_their_shares() {
        for seed in 0..5 {
            let two = found(
                20_000,
                |r| {
                    if r.uniform() < 0.87 {
                        4_100.0 * (0.06 * r.normal()).exp()
                    } else {
                        11_000.0 * (0.08 * r.normal()).exp()
                    }
                },
                seed,
            );
            assert_eq!(two.len(), 2, "{two:?}");
            assert!(
                (two[0].peak_ns - 4_100.0).abs() < 300.0
                    && (two[1].peak_ns - 11_000.0).abs() < 900.0
            );
            assert!((two[0].share - 0.87).abs() < 0.02);
            let three = found(
                20_000,
                |r| {
                    let mode = [1_000.0, 1_800.0, 40_000.0][(r.uniform() * 3.0) as usize];
                    mode * (0.05 * r.normal()).exp()
                },
                seed,
            );
            assert_eq!(three.len(), 3, "{three:?}");
        }
    }

    #[test]
    fn a_broad_second_mode_behind_a_narrow_one_is_found() {
        for seed in 0..5 {
            for (n, background) in [(1_000, 0.0), (20_000, 0.05), (100_000, 0.1)] {
                // A program that has the CPU for 3 ms keeps a wake for what is left of them, on a
                // machine that is late by every amount besides.
                let found = found(
                    n,
                    |r| match r.uniform() {
                        u if u < background => 20_000.0 * 200f64.powf(r.uniform()),
                        u if u < 0.6 => 26_700.0 * (0.15 * r.normal()).exp(),
                        _ => 26_700.0 + 3_000_000.0 * r.uniform(),
                    },
                    seed,
                );
                let [first, second] = &found[..] else { panic!("{n} {background}: {found:?}") };
                assert!((24_000.0..29_000.0).contains(&first.peak_ns), "{found:?}");
                assert!((1_500_000.0..3_100_000.0).contains(&second.peak_ns), "{found:?}");
                assert!((second.share - 0.4).abs() < 0.1, "{found:?}");
            }
            // And in the order of 60 % at 5 µs, 40 % at 27 µs, with a spread of a third.
            let near = found(
                20_000,
                |r| {
                    let (mode, spread) =
                        if r.uniform() < 0.6 { (5_000.0, 0.3) } else { (27_000.0, 0.1) };
                    mode * (spread * r.normal()).exp()
                },
                seed,
            );
            assert_eq!(near.len(), 2, "{near:?}");
        }
    }

    #[test]
    fn one_mode_is_one_cluster_at_any_n_and_seed() {
        for n in [1, 2, 50, 1_000, 30_000] {
            for seed in 0..8 {
                let lognormal = found(n, |r| 7_600.0 * (0.5 * r.normal()).exp(), seed);
                assert_eq!(lognormal.len(), 1, "lognormal {n} {seed}: {lognormal:?}");
                assert_eq!(
                    found(n, |r| 1_000.0 + 9_000.0 * r.uniform(), seed).len(),
                    1,
                    "uniform {n} {seed}"
                );
                assert_eq!(found(n, |r| 300.0 * r.normal(), seed).len(), 1, "normal {n} {seed}");
                assert_eq!(
                    found(n, |r| 72.0 + 10.0 * r.normal(), seed).len(),
                    1,
                    "floor {n} {seed}"
                );
                assert_eq!(found(n, |_| 7_609.0, seed).len(), 1, "constant {n}");
            }
        }
        assert!(clusters(&Histogram::new()).is_empty());
    }

    #[test]
    fn a_few_outliers_are_no_cluster_of_their_own() {
        let with_outliers = found(
            100_000,
            |r| {
                if r.uniform() < 0.0003 { 900_000.0 } else { 5_000.0 * (0.2 * r.normal()).exp() }
            },
            3,
        );
        assert_eq!(with_outliers.len(), 1);
        assert!(with_outliers[0].upper_ns >= 900_000.0);
    }

    #[test]
    fn early_wakes_can_be_a_mode_too() {
        let found = found(
            10_000,
            |r| {
                let middle = if r.uniform() < 0.5 { -2_000.0 } else { 3_000.0 };
                middle + 100.0 * r.normal()
            },
            1,
        );
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].peak_ns < 0.0);
    }
}
