//! `cargo xtask test [--install]`: everything that must hold, in one command.
//!
//! Runs each step even when an earlier one failed, then prints a table of steps, the tests that
//! were skipped with what they lacked, and as its last line `N passed, N failed, N skipped`.
//! Without `--install` it installs nothing. With `CI=true` in the environment a skip is a failure.

mod packages;
mod python;
mod report;
mod suite;
mod transcript;

use std::path::Path;
use std::time::Instant;

use crate::{attack, licences, man, msrv, package, peers, process, root, schema, tidy, vm};
pub(crate) use packages::install_one;
use report::Report;
pub(crate) use report::{Counts, Skip};
pub(crate) use suite::{Outcome, count, judge};

/// A step that counts no tests.
type Step = fn(&Path) -> Result<(), String>;

/// Steps before the tests: the quick ones first, then the one that the tests' build follows.
const BEFORE: &[(&str, Step)] = &[
    ("format", format),
    ("tidy", |_| tidy::run(&[])),
    ("licences", |_| licences::run(&[])),
    ("msrv", |_| msrv::run(&[])),
    ("clippy", clippy),
];

/// Steps after the tests, which use what they built.
const AFTER: &[(&str, Step)] = &[
    ("attack", |_| attack::run(&[])),
    ("schema", |_| schema::run(&[])),
    ("man", |_| man::run(&[])),
    ("doc", doc),
    ("package", |_| package::run(&[])),
    ("peers", peers::check),
    ("vm", |_| vm::run(&[])),
];

/// Runs all steps.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let install = match args {
        [] => false,
        [flag] if flag == "--install" => true,
        _ => return Err(format!("test takes [--install], got {args:?}")),
    };
    let root = root::root();
    let ci = process::in_ci();
    let mut report = Report::default();
    if install {
        step(&mut report, "packages", packages::install);
        step(&mut report, "python", || python::install(&root));
    }
    for (name, run) in BEFORE {
        step(&mut report, name, || run(&root));
    }
    step_of_tests(&mut report, &root, ci);
    for (name, run) in AFTER {
        match lacking(name).filter(|_| !ci) {
            Some(what) => report.skip(name, what),
            None => step(&mut report, name, || run(&root)),
        }
    }
    print!("\n{report}");
    match report.failed() {
        0 => Ok(()),
        count => Err(format!("{count} steps failed")),
    }
}

/// What a step needs and this machine has not.
fn lacking(name: &str) -> Option<&'static str> {
    (name == "vm").then(vm::lacking).flatten()
}

/// Runs one step and keeps how it went.
fn step(report: &mut Report, name: &'static str, run: impl FnOnce() -> Result<(), String>) {
    println!("\n==> {name}");
    let start = Instant::now();
    let outcome = run();
    if let Err(error) = &outcome {
        println!("{name}: {error}");
    }
    report.add(name, outcome, start.elapsed());
}

/// The step that counts.
fn step_of_tests(report: &mut Report, root: &Path, ci: bool) {
    let mut ran = None;
    step(report, "tests", || {
        let outcome = ran.insert(suite::run(root)?);
        judge(outcome, ci)
    });
    if let Some(Outcome { counts, skips, failures, .. }) = ran {
        report.count(counts, skips, failures);
    }
}

fn format(root: &Path) -> Result<(), String> {
    process::run(&mut process::cargo(root, &["fmt", "--all", "--check"]))?;
    for other in ["fuzz/Cargo.toml", "peers/Cargo.toml"] {
        process::run(&mut process::cargo(root, &["fmt", "--manifest-path", other, "--check"]))?;
    }
    Ok(())
}

fn clippy(root: &Path) -> Result<(), String> {
    let args = ["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
    process::run(&mut process::cargo(root, &args))
}

fn doc(root: &Path) -> Result<(), String> {
    let mut cargo = process::cargo(root, &["doc", "--workspace", "--no-deps", "--locked"]);
    process::run(cargo.env("RUSTDOCFLAGS", "-D warnings"))
}
