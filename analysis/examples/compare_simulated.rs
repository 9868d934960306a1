//! The rate at which comparisons of simulated runs find differences that are there, and that are
//! not.
//!
//! `cargo run --release -p punctual-analysis --example compare_simulated [PAIRS [N]]`. Independent
//! cycles, bursts, slow wander; equal runs, a ratio of 3, and what a ratio of 2 needs.

use punctual_analysis::compare::series::{Builder, LatenessSeries};
use punctual_analysis::compare::{Part, RunComparison, Runs, Verdict, compare};
use punctual_analysis::rng::Rng;
use punctual_core::sample::Sample;
use punctual_core::time::Span;

/// A way in which the cycles of a run depend on each other.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    /// Mean length of a burst, releases.
    burst: f64,
    /// Share of the last level that the next one keeps, and how much levels matter.
    memory: f64,
    wander: f64,
}

const KINDS: [Kind; 4] = [
    Kind { name: "independent", burst: 1.0, memory: 0.0, wander: 0.0 },
    Kind { name: "bursts of 6", burst: 6.0, memory: 0.0, wander: 0.0 },
    Kind { name: "autoregressive 0.9", burst: 1.0, memory: 0.9, wander: 0.5 },
    Kind { name: "slow wander (2000) ", burst: 3.0, memory: 0.9995, wander: 0.3 },
];

/// A share `rate` of the releases is in bursts later than 100 µs.
fn run(rng: &mut Rng, kind: Kind, n: u64, rate: f64) -> LatenessSeries {
    let mut builder = Builder::new(1_000_000, true);
    let (mut late, mut level) = (false, rng.normal());
    for cycle in 0..n {
        level = kind.memory * level + (1.0 - kind.memory * kind.memory).sqrt() * rng.normal();
        let drift = (kind.wander * level).exp();
        let begin = rate / kind.burst * drift;
        late = if late { rng.uniform() >= 1.0 / kind.burst } else { rng.uniform() < begin };
        let ns = if late {
            100_000.0 * (1.0 + rng.exponential())
        } else {
            5_000.0 * drift * (1.0 + 0.1 * rng.exponential())
        };
        builder.push(&Sample { cycle, lateness: Span::from_ns(ns as i64), ..Sample::default() });
    }
    builder.finish(0)
}

fn pair(rng: &mut Rng, kind: Kind, n: [u64; 2], rate: [f64; 2]) -> RunComparison {
    let [a, b] = [0, 1].map(|side| run(rng, kind, n[side], rate[side]));
    let [a, b] = [&a, &b].map(|series| [Part { result: 0, series }]);
    let runs = Runs { name: "x", sides: [&a, &b], ..Runs::default() };
    compare(&[runs]).0.remove(0)
}

fn share(pairs: u32, mut found: impl FnMut() -> bool) -> f64 {
    (0..pairs).filter(|_| found()).count() as f64 / f64::from(pairs)
}

fn main() {
    let pairs = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(200);
    for kind in KINDS {
        for n in sizes() {
            let mut rng = Rng::new(n);
            let (mut rates, mut quantiles) = (0, 0);
            let false_alarms = share(pairs, || {
                let compared = pair(&mut rng, kind, [n, n], [0.005, 0.005]);
                let is_found = |verdict: Verdict| verdict != Verdict::Undecided;
                rates += u32::from(compared.rates.iter().any(|r| is_found(r.verdict)));
                quantiles += u32::from(compared.quantiles.iter().any(|q| is_found(q.verdict)));
                is_found(compared.verdict)
            });
            let power = share(pairs, || {
                pair(&mut rng, kind, [n, n], [0.005, 0.015]).verdict == Verdict::Worse
            });
            println!(
                "{:20} n {n:6}: equal differ {:.3} (rates {rates}, quantiles {quantiles}), \
                 a ratio of 3 {power:.3}",
                kind.name, false_alarms
            );
        }
        if sizes().len() > 1 {
            needed(kind, pairs);
        }
    }
}

/// Releases of a run: all sizes, or the one that is the second argument.
fn sizes() -> Vec<u64> {
    let requested = std::env::args().nth(2).and_then(|n| n.parse().ok());
    requested.map_or_else(|| vec![6_000, 60_000], |n| vec![n])
}

/// Prints the share in which the cycles given as needed for a ratio of 2 find it; 0.8 is right.
fn needed(kind: Kind, pairs: u32) {
    let mut rng = Rng::new(9);
    let n = 10_000;
    let mut needed: Vec<u64> = (0..pairs)
        .filter_map(|_| {
            let compared = pair(&mut rng, kind, [n, n], [0.002, 0.002]);
            let tail = compared.rates.iter().find(|rate| rate.threshold_ns > 20_000.0)?;
            tail.more_cycles.map(|more| n + more)
        })
        .collect();
    needed.sort_unstable();
    let Some(&median) = needed.get(needed.len() / 2) else { return };
    for times in [0.5, 1.0, 2.0] {
        let n = (median as f64 * times) as u64;
        // A rate 4/3 and 2/3 of the mean: a ratio of 2.
        let found = share(pairs / 2, || {
            let compared = pair(&mut rng, kind, [n, n], [0.002 / 1.5, 0.004 / 1.5]);
            compared
                .rates
                .iter()
                .any(|rate| rate.threshold_ns > 20_000.0 && rate.verdict == Verdict::Worse)
        });
        println!("    needed {median}; with {times} of it found {found:.2}");
    }
    let at = |share: f64| needed[((needed.len() - 1) as f64 * share) as usize];
    println!("    needed, 10 % to 90 %: {} to {}", at(0.1), at(0.9));
}
