//! How the steps went, as a table that ends with the sum of all tests.
//!
//! Plain data and its view; runs nothing.

use std::fmt;
use std::time::Duration;

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
    /// What it lacked.
    pub(crate) what: String,
    /// Whether all of that is devices, which no installation brings.
    pub(crate) device: bool,
}

/// How all steps went.
#[derive(Default)]
pub(crate) struct Report {
    steps: Vec<(&'static str, Result<(), String>, Duration)>,
    counts: Counts,
    skips: Vec<Skip>,
    failures: Vec<String>,
}

impl Report {
    /// Adds a step.
    pub(crate) fn add(&mut self, name: &'static str, outcome: Result<(), String>, took: Duration) {
        self.steps.push((name, outcome, took));
    }

    /// Sets what the tests counted, and what the failed ones printed.
    pub(crate) fn count(&mut self, counts: Counts, skips: Vec<Skip>, failures: Vec<String>) {
        (self.counts, self.skips, self.failures) = (counts, skips, failures);
    }

    /// Adds a step that did not run, for want of `what`.
    pub(crate) fn skip(&mut self, step: &str, what: &str) {
        self.counts.skipped += 1;
        let (test, what) = (format!("the step {step}"), what.to_owned());
        self.skips.push(Skip { test, what, device: false });
    }

    /// Steps that failed.
    pub(crate) fn failed(&self) -> usize {
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
        for Skip { test, what, .. } in &self.skips {
            writeln!(f, "SKIPPED {test}: {what}")?;
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
        let skip = Skip { test: "a::b".to_owned(), what: "root".to_owned(), device: false };
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
