//! Prints how often requested claims come out yes, falsely yes, yes if late cycles come alone,
//! undecided, no and falsely no, on simulated series.
//!
//! `cargo run --release -p punctual-analysis --example claims_simulated [SERIES [CYCLES]]`: so many
//! series of each kind (400), of so many cycles (20 000). Each is judged by a claim at 0.98 of its
//! true share, which is false, at 1.02 of it and at twice it, which are true. Kinds with a * were
//! not used while the limits were chosen. Judges nothing.

#[path = "../tests/series/mod.rs"]
mod series;

use punctual_analysis::claim::judge::Holds;
use series::{LATE_KINDS, LateKind};

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|argument| argument.parse::<u64>().ok());
    let count = numbers.next().unwrap_or(400);
    let cycles = numbers.next().unwrap_or(20_000);
    println!(
        "{count} series of {cycles} cycles of each kind, claims at 0.98, 1.02 and 2 of the truth"
    );
    println!(
        "{:24} {:>6} | {:>9} {:>8} {:>9} {:>6} | {:>8} | {:>6} {:>8} {:>9} {:>6}",
        "kind",
        "share",
        "false yes",
        "if alone",
        "undecided",
        "no",
        "false no",
        "yes",
        "if alone",
        "undecided",
        "no"
    );
    for kind in &LATE_KINDS {
        let [below, near, above] =
            [0.98, 1.02, 2.0].map(|factor| outcomes(kind, cycles, factor, count));
        let star = if kind.tuned { "" } else { " *" };
        let shown =
            |counts: [u64; 4]| counts.map(|n| format!("{:.1} %", 100.0 * n as f64 / count as f64));
        let ([a, b, c, d], [e, f, g, h]) = (shown(below), shown(above));
        let [.., refuted] = shown(near);
        let name = format!("{}{star}", kind.name);
        let false_claim = format!("{a:>9} {b:>8} {c:>9} {d:>6}");
        let true_claim = format!("{e:>6} {f:>8} {g:>9} {h:>6}");
        println!("{name:24} {:>6} | {false_claim} | {refuted:>8} | {true_claim}", kind.p);
    }
}

/// Series that gave each answer: yes, if alone, undecided, no.
fn outcomes(kind: &LateKind, cycles: u64, factor: f64, count: u64) -> [u64; 4] {
    let mut outcomes = [0; 4];
    for seed in 1..=count {
        let at = match kind.judged(cycles, factor, seed << 20).holds {
            Holds::Yes => 0,
            Holds::IfAlone => 1,
            Holds::Undecided => 2,
            Holds::No => 3,
        };
        outcomes[at] += 1;
    }
    outcomes
}
