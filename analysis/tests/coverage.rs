//! The claims hold as often as they say: simulated series whose truth is known.
//!
//! Independent cycles, slowly wandering ones (an autoregressive series) and stalls in bursts; each
//! many times over, from fixed seeds. A 95 % claim must be true in at least 95 % of them.

use punctual_analysis::claim::anytime;
use punctual_analysis::claim::bound::{p_lower_at, p_upper, p_upper_at, quantile_ranks};
use punctual_analysis::claim::dependence::{Exceedances, Tails};
use punctual_analysis::quantile::Probability;

/// Splitmix64.
struct Random(u64);

impl Random {
    /// Uniform in (0, 1).
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((z ^ (z >> 31)) >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let angle = 2.0 * std::f64::consts::PI * self.uniform();
        (-2.0 * self.uniform().ln()).sqrt() * angle.cos()
    }
}

/// Lateness of n cycles, ns, in a stationary series.
type Series = fn(&mut Random, usize) -> Vec<i64>;

/// 5 µs · exp(normal), independent.
fn independent(random: &mut Random, n: usize) -> Vec<i64> {
    (0..n).map(|_| (5_000.0 * random.normal().exp()) as i64).collect()
}

/// One distribution, each cycle correlated with the one before.
fn wandering(random: &mut Random, n: usize) -> Vec<i64> {
    const MEMORY: f64 = 0.8;
    let mut level = random.normal();
    let mut next = || {
        level = MEMORY * level + (1.0 - MEMORY * MEMORY).sqrt() * random.normal();
        (5_000.0 * level.exp()) as i64
    };
    (0..n).map(|_| next()).collect()
}

/// A body of 4 to 6 µs, and bursts of 100 to 200 µs: one in 400 cycles begins one, mean length 6.
fn bursts(random: &mut Random, n: usize) -> Vec<i64> {
    let mut late = random.uniform() < BURST_SHARE;
    let mut next = || {
        late = if late { random.uniform() >= 1.0 / 6.0 } else { random.uniform() < 1.0 / 400.0 };
        let (from, width) = if late { (100_001.0, 100_000.0) } else { (4_000.0, 2_000.0) };
        (from + width * random.uniform()) as i64
    };
    (0..n).map(|_| next()).collect()
}

const BURST_SHARE: f64 = 6.0 / 406.0;

/// One simulated series, in order of time and of size.
struct Run {
    tails: Tails,
    sorted: Vec<i64>,
}

fn run(mut latenesses: Vec<i64>) -> Run {
    let mut exceedances = Exceedances::new(0, &[]);
    latenesses.iter().for_each(|&ns| exceedances.push(ns, 0, 0));
    latenesses.sort_unstable();
    Run { tails: exceedances.finish(0), sorted: latenesses }
}

const SERIES: usize = 400;

/// The share of simulated series for which `holds` is true.
fn coverage(series: Series, n: usize, holds: impl Fn(&Run) -> bool) -> f64 {
    let simulated = |seed: u64| run(series(&mut Random(seed << 32), n));
    let held = (1..=SERIES as u64).filter(|&seed| holds(&simulated(seed))).count();
    held as f64 / SERIES as f64
}

#[test]
fn the_bound_of_a_probability_holds() {
    // 1 − Φ(ln(t / 5 µs)) for t = 10, 20, 50 and 100 µs.
    let lognormal =
        [(10_000, 0.244_1), (20_000, 0.082_8), (50_000, 0.010_65), (100_000, 0.001_369)];
    for (name, series) in [("independent", independent as Series), ("wandering", wandering)] {
        for (threshold_ns, p) in lognormal {
            for n in [300, 3_000] {
                let share = coverage(series, n, |o| o.tails.p_upper(threshold_ns).unwrap() >= p);
                println!("{name} p_upper {threshold_ns} n {n}: {share}");
                assert!(share >= 0.95, "{name} {threshold_ns} {n}: {share}");
            }
        }
    }
    // Long enough that some burst is seen: what never showed cannot be known to come in bursts.
    for n in [3_000, 20_000] {
        let share = coverage(bursts, n, |o| o.tails.p_upper(100_000).unwrap() >= BURST_SHARE);
        println!("bursts n {n}: {share}");
        assert!(share >= 0.95, "bursts {n}: {share}");
    }
}

/// (lower, upper) bounds of P(lateness > threshold), 95 % each: for this n, and for any look.
fn bounds(tails: &Tails, threshold_ns: i64) -> [(f64, f64); 2] {
    let (k, n) = (tails.exceedances(threshold_ns).unwrap(), tails.n());
    let theta = tails.theta_at(threshold_ns);
    let at = |bound: fn(f64, f64, f64, f64) -> f64| bound(k as f64, n as f64, theta, 0.95);
    let any = |bound: fn(u64, u64, f64, f64) -> f64| bound(k, n, theta, 0.95);
    [
        (at(p_lower_at), at(p_upper_at)),
        (any(anytime::p_lower_dependent), any(anytime::p_upper_dependent)),
    ]
}

#[test]
fn a_claim_is_neither_shown_nor_shown_false_wrongly() {
    let truth: [(&str, Series, i64, f64); 3] = [
        ("independent", independent, 50_000, 0.010_65),
        ("wandering", wandering, 50_000, 0.010_65),
        ("bursts", bursts, 100_000, BURST_SHARE),
    ];
    for (name, series, threshold_ns, p) in truth {
        let falsely = |holds: fn((f64, f64), f64) -> bool| {
            1.0 - coverage(series, 5_000, |o| !holds(bounds(&o.tails, threshold_ns)[0], p))
        };
        // Asked with the truth itself, each answer would be wrong.
        let (yes, no) = (falsely(|(_, upper), p| upper < p), falsely(|(lower, _), p| lower >= p));
        println!("{name}: yes {yes}, no {no}");
        assert!(yes <= 0.05 && no <= 0.05, "{name}: yes {yes}, no {no}");
    }
}

#[test]
fn looking_all_the_time_shows_nothing_wrongly_either() {
    // From where some burst was seen nearly always: what never showed cannot be known to come so.
    const FIRST: usize = 3_000;
    const APART: usize = 300;
    let truth: [(&str, Series, i64, f64); 2] =
        [("wandering", wandering, 50_000, 0.010_65), ("bursts", bursts, 100_000, BURST_SHARE)];
    for (name, series, threshold_ns, p) in truth {
        let mut wrong = [0usize; 2];
        for seed in 1..=SERIES as u64 {
            let latenesses = series(&mut Random(seed << 32), 12_000);
            let mut exceedances = Exceedances::new(0, &[]);
            let mut ever = [false; 2];
            for (at, &ns) in latenesses.iter().enumerate() {
                exceedances.push(ns, 0, 0);
                if at < FIRST || at % APART != 0 {
                    continue;
                }
                let [_, (lower, upper)] = bounds(&exceedances.clone().finish(0), threshold_ns);
                ever = [ever[0] || upper < p, ever[1] || lower > p];
            }
            wrong = [wrong[0] + usize::from(ever[0]), wrong[1] + usize::from(ever[1])];
        }
        let [below, above] = wrong.map(|count| count as f64 / SERIES as f64);
        println!("{name}: ever below {below}, ever above {above}");
        // 5 % and what 400 series scatter; the extremal index is an estimate too.
        assert!(below <= 0.07 && above <= 0.07, "{name}: {below} {above}");
    }
}

#[test]
fn the_interval_of_a_quantile_holds() {
    let truth = [
        (Probability::P50, 5_000.0),
        (Probability::P90, 5_000.0 * 1.281_552f64.exp()),
        (Probability::P99, 5_000.0 * 2.326_348f64.exp()),
    ];
    for (name, series) in [("independent", independent as Series), ("wandering", wandering)] {
        for (p, truth) in truth {
            let share = coverage(series, 4_000, |o| {
                let n = o.sorted.len() as u64;
                let of_rank = |rank: u64| o.sorted[rank as usize - 1];
                let (lower, upper) = quantile_ranks(p, n, o.tails.theta_at(of_rank(p.rank(n))));
                lower.is_none_or(|rank| of_rank(rank) as f64 <= truth)
                    && upper.is_none_or(|rank| of_rank(rank) as f64 >= truth)
            });
            println!("{name} {p}: {share}");
            assert!(share >= 0.95, "{name} {p}: {share}");
        }
    }
}

#[test]
fn the_bounds_are_not_vacuous() {
    let mut random = Random(1);
    let claimed = run(independent(&mut random, 20_000)).tails.p_upper(50_000).unwrap();
    assert!(claimed < 1.5 * 0.010_65, "{claimed}");
    let bursty = run(bursts(&mut random, 100_000));
    let theta = bursty.tails.theta_at(100_000);
    assert!((0.1..0.25).contains(&theta), "mean burst of 6: {theta}");
    assert!(bursty.tails.p_upper(100_000).unwrap() < 2.0 * BURST_SHARE);
}

#[test]
fn nothing_above_the_maximum_is_the_rule_of_three() {
    let maximum_holds = |o: &Run| {
        let max = o.sorted[o.sorted.len() - 1];
        let p = p_upper(0, o.tails.n(), o.tails.theta_at(max));
        // P(lateness > bound) of the log-normal, by the tail of the normal distribution.
        let x = (max as f64 / 5_000.0).ln();
        upper_tail(x) <= p
    };
    for (name, series) in [("independent", independent as Series), ("wandering", wandering)] {
        let share = coverage(series, 2_000, maximum_holds);
        println!("{name} max: {share}");
        assert!(share >= 0.95, "{name}: {share}");
    }
}

/// 1 − Φ(x) for x > 1, by its continued fraction.
fn upper_tail(x: f64) -> f64 {
    let fraction = (1..=200).rev().fold(0.0, |below, i| f64::from(i) / (x + below));
    (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() / (x + fraction)
}
