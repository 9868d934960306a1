//! Prints how often claims of level L3 are given, refused, and true, on simulated series.
//!
//! `cargo run --release -p punctual-analysis --example extremes_rates [SERIES [CYCLES …]]`: so many
//! series of each kind (1000), of so many cycles (100 000). With `critical` before that, what the
//! statistics of the tests exceed instead; a word that is no number picks the stationary kinds that
//! have it in their names, alone. Judges nothing.

#[path = "../tests/series/mod.rs"]
mod series;

use std::collections::BTreeMap;

use punctual_analysis::extremes::battery::Test;
use punctual_analysis::extremes::{Tail, TailRefusal, tests};
use series::{CHANGES, DEPENDENT, MIXTURES};
use series::{Kind, Make, UNIT_NS, simulated};
use series::{PARENTS, Parent};

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let critical = arguments.first().is_some_and(|first| first == "critical");
    if critical {
        arguments.remove(0);
    }
    let mut numbers = arguments.iter().filter_map(|argument| argument.parse::<u64>().ok());
    let count = numbers.next().unwrap_or(1_000);
    let lengths: Vec<u64> = numbers.collect();
    let word = arguments.iter().find(|argument| argument.parse::<u64>().is_err());
    let picked = |parent: &&Parent| word.is_none_or(|word| parent.name.contains(word));
    let lengths = if lengths.is_empty() { vec![100_000] } else { lengths };
    for n in lengths {
        println!("\n{count} series of {n} cycles each");
        for parent in PARENTS.iter().filter(picked) {
            if critical { quantiles(parent, n, count) } else { coverage(parent, n, count) }
        }
        if !critical && word.is_none() {
            refusals("change", &CHANGES, n, count);
            refusals("dependence", &DEPENDENT, n, count);
            refusals("mixture", &MIXTURES, n, count);
        }
    }
}

/// Given, and of the given intervals at 0, 1 and 2 decades beyond 1/n how many hold the truth.
fn coverage(parent: &Parent, n: u64, count: u64) {
    let mut given = [0u64; 3];
    let mut held = [0u64; 3];
    let mut widths = [0.0f64; 3];
    for seed in 0..count {
        let Ok(tail) = Tail::accepted(&simulated(parent.make, n, seed), 0) else { continue };
        for (decades, held) in held.iter_mut().enumerate() {
            let p = 10f64.powi(-(decades as i32)) / n as f64;
            let truth = (parent.exceeded_with)(p) * UNIT_NS;
            let Ok(found) = tail.at(p) else { continue };
            given[decades] += 1;
            *held += u64::from((found.value_ns.lower..=found.value_ns.upper).contains(&truth));
            widths[decades] += (found.value_ns.upper - found.value_ns.estimate) / truth;
        }
    }
    let share = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
    print!("{:22} given {:5.1} %   true", parent.name, share(given[2], count));
    for decades in 0..3 {
        let (given, held) = (given[decades], held[decades]);
        let above = 100.0 * widths[decades] / given as f64;
        print!("  {:5.1} % (upper +{above:.0} %)", share(held, given));
    }
    println!();
}

/// Refused, and by which tests.
fn refusals(group: &str, kinds: &[Kind], n: u64, count: u64) {
    for kind in kinds {
        let mut refused = 0u64;
        let mut by: BTreeMap<String, u64> = BTreeMap::new();
        for seed in 0..count {
            if let Err(refusal) = outcome(kind.make, n, seed) {
                refused += 1;
                *by.entry(reason(&refusal)).or_default() += 1;
            }
        }
        let by: Vec<String> = by.iter().map(|(name, count)| format!("{name} {count}")).collect();
        let share = 100.0 * refused as f64 / count as f64;
        println!("{group:10} {:32} refused {share:5.1} %   {}", kind.name, by.join(", "));
    }
}

fn outcome(make: Make, n: u64, seed: u64) -> Result<(), TailRefusal> {
    let tail = Tail::accepted(&simulated(make, n, seed), 0)?;
    tail.at(0.01 / n as f64).map(|_| ())
}

fn reason(refusal: &TailRefusal) -> String {
    match refusal {
        TailRefusal::Failed(Test { about, name, .. }) => format!("{about}: {name}"),
        refused => format!("{refused:?}"),
    }
}

/// Prints the value that each statistic exceeds in 1 % and in 0.5 % of stationary independent
/// series.
fn quantiles(parent: &Parent, n: u64, count: u64) {
    let mut by: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for seed in 0..count {
        for test in tests(&simulated(parent.make, n, seed)) {
            by.entry(test.fails_when).or_default().push(test.statistic / test.limit);
        }
    }
    println!("{}: statistic over its limit, exceeded in 1 % and 0.5 %", parent.name);
    for (name, mut ratios) in by {
        ratios.sort_by(f64::total_cmp);
        let at = |permille: usize| ratios[(ratios.len() * permille / 1_000).min(ratios.len() - 1)];
        println!("    {:5.2} {:5.2}  {name}", at(990), at(995));
    }
}
