//! `cargo xtask fuzz [--install] [SECONDS] [TARGET…]`: looks for inputs that break a parser.
//!
//! Runs cargo-fuzz on the nightly toolchain, each parser of fuzz/corpus (or those named) for
//! SECONDS, within 2 GiB of memory: one program, which calls the parser that PUNCTUAL_PARSER
//! names. What it finds interesting is kept in fuzz/target/found; only what a person picks becomes
//! a seed in fuzz/corpus, which `cargo test` replays on stable. A crash stays in fuzz/artifacts.
//! With `--install`, cargo-fuzz is installed first.

use std::path::Path;
use std::process::Command;

use crate::{process, workspace};

/// Seconds a target when none are given.
const SECONDS: u64 = 600;
/// Memory that a target may take, in MiB: a parser that takes more is a finding.
const MEMORY_MIB: u64 = 2_048;
/// Seconds that one input may take: more is a finding.
const INPUT_SECONDS: u64 = 10;
/// Bytes of the longest input tried.
const INPUT_BYTES: u64 = 65_536;

/// The options that the arguments give.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    install: bool,
    seconds: u64,
    targets: Vec<String>,
}

/// Fuzzes; fails when a target failed, after the others had their turn.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let root = workspace::root();
    let options = parse(args, &targets(&root)?)?;
    if options.install {
        process::run(&mut process::cargo(&root, &["install", "cargo-fuzz", "--locked"]))?;
    }
    present(&root)?;
    let mut failed = Vec::new();
    for target in &options.targets {
        println!("fuzz: {target} for {} s", options.seconds);
        if let Err(error) = fuzz(&root, target, options.seconds) {
            println!("fuzz: {error}");
            failed.push(target.as_str());
        }
    }
    println!("fuzz: {} targets, {} failed", options.targets.len(), failed.len());
    if failed.is_empty() { Ok(()) } else { Err(failed.join(", ")) }
}

/// The parsers that there are, sorted: each has its folder of seeds.
fn targets(root: &Path) -> Result<Vec<String>, String> {
    let folder = root.join("fuzz/corpus");
    let entries =
        std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let names = entries.filter_map(Result::ok).map(|entry| entry.file_name());
    let mut targets: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    targets.sort();
    Ok(targets)
}

fn parse(args: &[String], known: &[String]) -> Result<Options, String> {
    let mut options = Options { install: false, seconds: SECONDS, targets: Vec::new() };
    for arg in args {
        if arg == "--install" {
            options.install = true;
        } else if let Ok(seconds) = arg.parse() {
            options.seconds = seconds;
        } else if known.contains(arg) {
            options.targets.push(arg.clone());
        } else {
            return Err(format!("no target {arg:?}; there are: {}", known.join(", ")));
        }
    }
    // libFuzzer takes 0 to mean for ever.
    if options.seconds == 0 {
        return Err("0 seconds would never end".to_owned());
    }
    if options.targets.is_empty() {
        options.targets = known.to_vec();
    }
    Ok(options)
}

/// The workspace of the fuzz target.
pub(crate) const MANIFEST: &str = "fuzz/Cargo.toml";

/// Checks that the fuzz target compiles, for which stable is enough. Beside the workspace's own
/// checks, so that what both depend on is not checked twice.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    let args = ["check", "--locked", "--manifest-path", MANIFEST, "--target-dir", "target"];
    let mut cargo = process::cargo(root, &args);
    // libFuzzer's C++ takes longer than the rest, and nothing is linked with it.
    process::run(cargo.env("CUSTOM_LIBFUZZER_PATH", root.join("target/libfuzzer.a")))
}

/// Checks that the tools for fuzzing are there; the error says how to get them.
fn present(root: &Path) -> Result<(), String> {
    if !process::on_path("cargo-fuzz") {
        return Err("cargo-fuzz is not installed; `cargo xtask fuzz --install` does it".to_owned());
    }
    let nightly = Command::new("cargo").args(["+nightly", "--version"]).current_dir(root).output();
    if nightly.is_ok_and(|output| output.status.success()) {
        Ok(())
    } else {
        Err("no nightly toolchain (`rustup toolchain install nightly`); cargo-fuzz needs one"
            .to_owned())
    }
}

fn fuzz(root: &Path, target: &str, seconds: u64) -> Result<(), String> {
    let (found, broke) =
        (format!("fuzz/target/found/{target}"), format!("fuzz/artifacts/{target}/"));
    for folder in [&found, &broke] {
        std::fs::create_dir_all(root.join(folder)).map_err(|error| format!("{folder}: {error}"))?;
    }
    // The cargo that runs this is stable; `cargo` on the path is the one that takes `+nightly`.
    let mut command = Command::new("cargo");
    command
        .args(["+nightly", "fuzz", "run", "--fuzz-dir", "fuzz", "parser"])
        .args([&found, &format!("fuzz/corpus/{target}")])
        .arg("--")
        .arg(format!("-artifact_prefix={broke}"))
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-rss_limit_mb={MEMORY_MIB}"))
        .arg(format!("-timeout={INPUT_SECONDS}"))
        .arg(format!("-max_len={INPUT_BYTES}"))
        .arg("-print_final_stats=1")
        .env("PUNCTUAL_PARSER", target)
        .env_remove("RUSTUP_TOOLCHAIN")
        .current_dir(root);
    process::run(&mut command).map_err(|error| format!("{target} failed: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(args: &[&str]) -> Result<Options, String> {
        let own = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        parse(&own(args), &own(&["csv", "limit"]))
    }

    #[test]
    fn without_names_all_targets_have_their_turn() {
        let options = parsed(&[]).unwrap();
        assert_eq!((options.seconds, options.targets.len(), options.install), (SECONDS, 2, false));
    }

    #[test]
    fn seconds_and_names_come_in_any_order() {
        let options = parsed(&["csv", "20", "--install"]).unwrap();
        assert_eq!((options.seconds, options.install), (20, true));
        assert_eq!(options.targets, ["csv"]);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert!(parsed(&["cvs"]).unwrap_err().contains("csv, limit"));
        assert!(parsed(&["0"]).is_err());
    }
}
