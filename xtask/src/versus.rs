//! `cargo xtask versus [BLOCKS] [SECONDS]` and `cargo xtask peers [OPTION…]`: punctual against
//! others.
//!
//! `peers` holds its ways to wait against other crates and programs, in turns on one CPU. `versus`
//! runs `punctual measure periodic` and Debian's cyclictest in
//! alternating blocks, on the same CPU, period (1 ms), policy and priority.
//!
//! Prints medians over the blocks; asserts nothing, as no figure of a machine is right or wrong.
//! cyclictest starts its grid wherever it is started, so punctual runs twice: on multiples of
//! CLOCK_MONOTONIC (its default, which meets the kernel's tick) and off them.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::{process, workspace};

/// Blocks and seconds a block when none are given.
const DEFAULTS: (u32, u32) = (10, 10);
/// Bounds that keep it below three hours.
const MOST: (u32, u32) = (100, 30);

/// Median, 99 % quantile and largest lateness of one block, ns, with its cycles.
struct Block {
    cycles: u64,
    p50_ns: f64,
    p99_ns: f64,
    max_ns: f64,
}

/// Runs the comparison; needs root for SCHED_FIFO, and cyclictest (Debian: rt-tests).
pub(crate) fn versus(args: &[String]) -> Result<(), String> {
    let number = |at: usize, default: u32, most: u32| match args.get(at).map(|arg| arg.parse()) {
        None => Ok(default),
        Some(Ok(number)) if (1..=most).contains(&number) => Ok(number),
        Some(_) => Err(format!("a number from 1 to {most} is needed, not {:?}", args[at])),
    };
    let blocks = number(0, DEFAULTS.0, MOST.0)?;
    let seconds = number(1, DEFAULTS.1, MOST.1)?;
    let root = workspace::root();
    process::run(&mut process::cargo(&root, &["build", "--release", "--locked"]))?;
    let mut found = [Vec::new(), Vec::new(), Vec::new()];
    for block in 1..=blocks {
        found[0].push(punctual(&root, seconds, "zero")?);
        found[1].push(cyclictest(&root, seconds)?);
        found[2].push(punctual(&root, seconds, "300us")?);
        println!("versus: block {block} of {blocks}");
    }
    let names = ["punctual, phase zero", "cyclictest", "punctual, phase 300us"];
    println!("\n{:24}{:>12}{:>12}{:>12}{:>10}", "medians over blocks", "p50", "p99", "max", "n");
    for (name, blocks) in names.iter().zip(&found) {
        let median = |value: fn(&Block) -> f64| median(blocks.iter().map(value).collect()) / 1e3;
        let n: u64 = blocks.iter().map(|block| block.cycles).sum();
        println!(
            "{name:24}{:>9.2} µs{:>9.2} µs{:>9.2} µs{n:>10}",
            median(|block| block.p50_ns),
            median(|block| block.p99_ns),
            median(|block| block.max_ns)
        );
    }
    Ok(())
}

/// The CPU that all measure: the second, where most machines have little else to do.
const CPU: &str = "1";
const PRIORITY: &str = "90";

fn punctual(root: &Path, seconds: u32, phase: &str) -> Result<Block, String> {
    let mut command = Command::new(root.join("target/release/punctual"));
    command.args(["measure", "periodic", "--json", "-", "--period", "1ms", "--keep-cold"]);
    command.args(["--cpu", CPU, "--priority", PRIORITY, "--phase", phase]);
    command.arg("--duration").arg(format!("{seconds}s"));
    let result = json(&mut command)?;
    let run = &result["runs"][0];
    let number = |key: &str| run["lateness_ns"][key].as_f64().ok_or("no lateness".to_owned());
    Ok(Block {
        cycles: run["cycles"].as_u64().unwrap_or(0),
        p50_ns: number("p50")?,
        p99_ns: number("p99")?,
        max_ns: number("max")?,
    })
}

fn cyclictest(root: &Path, seconds: u32) -> Result<Block, String> {
    let file = root.join("target/cyclictest.json");
    let mut command = Command::new("cyclictest");
    command.args(["-t1", "-a", CPU, "-p", PRIORITY, "-i1000", "-m", "-q", "-N", "-h", "5000000"]);
    command.arg(format!("-D{seconds}")).arg(format!("--json={}", file.display()));
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    let status = status.map_err(|why| format!("cyclictest (Debian: rt-tests): {why}"))?;
    if !status.success() {
        return Err(format!("cyclictest: {status}"));
    }
    let text = std::fs::read_to_string(&file).map_err(|why| format!("cyclictest: {why}"))?;
    let result: Value = serde_json::from_str(&text).map_err(|why| format!("cyclictest: {why}"))?;
    histogram(&result["thread"]["0"])
}

/// The numbers of one thread's histogram in cyclictest's JSON. What lies beyond the histogram is
/// above all of it.
fn histogram(thread: &Value) -> Result<Block, String> {
    let buckets = thread["histogram"].as_object().ok_or("cyclictest: no histogram")?;
    let mut counts: Vec<(u64, u64)> =
        buckets.iter().filter_map(|(ns, n)| Some((ns.parse().ok()?, n.as_u64()?))).collect();
    counts.sort_unstable();
    let cycles = thread["cycles"].as_u64().ok_or("cyclictest: no cycles")?;
    let max_ns = thread["max"].as_f64().ok_or("cyclictest: no max")?;
    let quantile = |p: f64| {
        let rank = (p * cycles as f64).ceil() as u64;
        let mut seen = 0;
        let reached = counts.iter().find(|(_, n)| {
            seen += n;
            seen >= rank
        });
        reached.map_or(max_ns, |&(ns, _)| ns as f64)
    };
    Ok(Block { cycles, p50_ns: quantile(0.5), p99_ns: quantile(0.99), max_ns })
}

fn json(command: &mut Command) -> Result<Value, String> {
    let out = command.stderr(Stdio::inherit()).output().map_err(|why| why.to_string())?;
    serde_json::from_slice(&out.stdout).map_err(|why| format!("{command:?}: {why}"))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        0 => (values[middle - 1] + values[middle]) / 2.0,
        _ => values[middle],
    }
}

/// The workspace of `peers`.
pub(crate) const MANIFEST: &str = "peers/Cargo.toml";

/// Builds it and runs it.
///
/// Its workspace is one of its own, so that what it compares with is no dependency of ours; the
/// options go to it as they are (`--help` lists them). docs/peers.md says what is compared with
/// what.
pub(crate) fn peers(args: &[String]) -> Result<(), String> {
    let root = workspace::root();
    let build = ["build", "--release", "--locked", "--manifest-path", MANIFEST];
    process::run(&mut process::cargo(&root, &build))?;
    process::run(Command::new(root.join("peers/target/release/punctual-peers")).args(args))
}

/// Builds it and runs its tests.
pub(crate) fn check_peers(root: &Path) -> Result<(), String> {
    let test = ["test", "--locked", "--manifest-path", MANIFEST];
    process::run(&mut process::cargo(root, &test))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_cyclictest_writes_and_counts_what_lies_beyond() {
        let thread = serde_json::json!({
            "histogram": {"900": 1, "1000": 97, "5000": 1}, "cycles": 100, "max": 7_000_000
        });
        let block = histogram(&thread).expect("well formed");
        assert_eq!((block.p50_ns, block.p99_ns, block.max_ns), (1_000.0, 5_000.0, 7e6));
        let beyond = serde_json::json!({"histogram": {"900": 1}, "cycles": 100, "max": 9});
        assert_eq!(histogram(&beyond).expect("well formed").p50_ns, 9.0);
        assert!(histogram(&serde_json::json!({})).is_err());
        assert_eq!((median(vec![3.0, 1.0, 2.0]), median(vec![4.0, 1.0])), (2.0, 2.5));
    }
}
