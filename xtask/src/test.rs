//! `cargo xtask test [--install]`: everything that must hold, in one command.
//!
//! Runs each step even when an earlier one failed, then prints a table of steps, the tests that
//! were skipped with what they lacked, and as its last line `N passed, N failed, N skipped`.
//! Without `--install` it installs nothing. With `CI=true` in the environment a skip is a failure.

mod packages;
mod suite;

use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::{attack, licences, man, msrv, package, peers, process, generated, root, tidy, vm};

pub(crate) use packages::install_one;
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
    ("schema", |_| generated::run(&[])),
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
        step(&mut report, "python", || packages::install_python(&root));
    }
    for (name, run) in BEFORE {
        step(&mut report, name, || run(&root));
    }
    step_of_tests(&mut report, &root, ci);
    for (name, run) in AFTER {
        match lacking(name).filter(|_| !ci) {
            Some(lack) => report.skip(name, lack),
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
    for manifest in ["fuzz/Cargo.toml", "peers/Cargo.toml"] {
        process::run(&mut process::cargo(root, &["fmt", "--manifest-path", manifest, "--check"]))?;
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

/// Tests by how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Ran and held.
    pub(crate) passed: usize,
    /// Ran and did not hold.
    pub(crate) failed: usize,
    /// Did not run.
    pub(crate) skipped: usize,
}

/// A test that did not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Skip {
    /// The test.
    pub(crate) test: String,
    /// What it lacked, in words.
    pub(crate) lacks: String,
    /// Whether all of that is devices, which no installation brings.
    device: bool,
}

/// How all steps went.
#[derive(Default)]
struct Report {
    steps: Vec<(&'static str, Result<(), String>, Duration)>,
    counts: Counts,
    skips: Vec<Skip>,
    failures: Vec<String>,
}

impl Report {
    /// Adds a step.
    fn add(&mut self, name: &'static str, outcome: Result<(), String>, took: Duration) {
        self.steps.push((name, outcome, took));
    }

    /// Sets what the tests counted, and what the failed ones printed.
    fn count(&mut self, counts: Counts, skips: Vec<Skip>, failures: Vec<String>) {
        (self.counts, self.skips, self.failures) = (counts, skips, failures);
    }

    /// Adds a step that did not run, for want of `what`.
    fn skip(&mut self, step: &str, lacks: &str) {
        self.counts.skipped += 1;
        let (test, lacks) = (format!("the step {step}"), lacks.to_owned());
        self.skips.push(Skip { test, lacks, device: false });
    }

    /// Steps that failed.
    fn failed(&self) -> usize {
        self.steps.iter().filter(|(_, outcome, _)| outcome.is_err()).count()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.failures {
            writeln!(f, "{line}")?;
        }
        for (name, outcome, took) in &self.steps {
            let (word, why) = match outcome {
                Ok(()) => ("pass", ""),
                Err(why) => ("FAIL", why.as_str()),
            };
            let line = format!("{word}  {name:10} {:>6.1} s  {why}", took.as_secs_f64());
            writeln!(f, "{}", line.trim_end())?;
        }
        for Skip { test, lacks, .. } in &self.skips {
            writeln!(f, "SKIPPED {test}: {lacks}")?;
        }
        let Counts { passed, failed, skipped } = self.counts;
        writeln!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_stands_alone_on_the_last_line() {
        let mut report = Report::default();
        report.add("tidy", Ok(()), Duration::from_secs(1));
        report.add("clippy", Err("exit status: 101".to_owned()), Duration::from_secs(2));
        let skip = Skip { test: "a::b".to_owned(), lacks: "root".to_owned(), device: false };
        report.count(
            Counts { passed: 7, failed: 0, skipped: 1 },
            vec![skip],
            vec!["    c::d".to_owned()],
        );
        let shown = report.to_string();
        assert!(
            shown.ends_with("\nSKIPPED a::b: root\n7 passed, 0 failed, 1 skipped\n"),
            "{shown}"
        );
        assert!(shown.starts_with("    c::d\n"), "{shown}");
        assert!(shown.contains("FAIL  clippy") && shown.contains("pass  tidy"), "{shown}");
        assert_eq!(report.failed(), 1);
    }
}
