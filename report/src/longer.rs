//! The length of a measurement that would decide what a run leaves open: one reckoning and one
//! wording for answers, claims, models and ways to wait.
//!
//! A forecast: it holds where late cycles go on as they were.

use crate::format;
use crate::run::Run;

/// Time to measure over the time of the cycles that are needed: spare for cold cycles, loads that
/// start late and blocks that do not come out even.
pub const SPARE: f64 = 1.1;

/// Time that a run was measured, in ns; 0 where the data do not tell.
fn measured_ns(run: &Run) -> f64 {
    match (run.setup.duration_ns, run.setup.period_ns) {
        (Some(ns), _) => ns as f64,
        (None, Some(period)) => run.outcome.releases() as f64 * period as f64,
        (None, None) => 0.0,
    }
}

/// Length of the whole measurement of a loop, in ns: of all these runs of its CPU and period, which
/// took turns.
pub fn whole_ns<'a>(of_loop: &Run, runs: impl IntoIterator<Item = &'a Run>) -> f64 {
    let id = |run: &Run| (run.setup.cpu, run.setup.period_ns);
    let same = runs.into_iter().filter(|run| id(run) == id(of_loop));
    same.map(measured_ns).sum()
}

/// Length of a whole measurement, in ns, of which a run as long as this one's share has `times` its
/// cycles.
pub fn longer_ns<'a>(of_loop: &Run, runs: impl IntoIterator<Item = &'a Run>, times: f64) -> f64 {
    whole_ns(of_loop, runs) * times * SPARE
}

/// That length in words; of 0, which is none, without one.
pub fn words(ns: f64) -> String {
    if ns > 0.0 { format!("measure {}", format::long(ns)) } else { "measure longer".to_owned() }
}

/// A measurement of so many cycles in words, where their time is not known.
pub fn words_of_cycles(needed: u64) -> String {
    format!("measure at least {} cycles", format::count(needed))
}

#[cfg(test)]
mod tests {
    use punctual_analysis::recording::{Recording, RecordingConfig};

    use super::*;
    use crate::run::Setup;

    #[test]
    fn a_run_that_took_turns_takes_as_much_longer_as_its_share_is_smaller() {
        let run = |cpu, duration_ns| {
            let setup = Setup {
                cpu: Some(cpu),
                period_ns: Some(1_000_000),
                duration_ns: Some(duration_ns),
                ..Setup::default()
            };
            let figures = Recording::new(RecordingConfig::default()).finish(0);
            Run::recorded("idle".to_owned(), setup, figures)
        };
        let runs = [run(1, 10_000_000_000), run(1, 30_000_000_000), run(2, 90_000_000_000)];
        // Twice its cycles: 80 s in all, and spare.
        let ns = longer_ns(&runs[0], &runs, 2.0);
        assert!((ns - 88e9).abs() < 1.0, "{ns}");
        assert_eq!(words(ns).replace('\u{a0}', " "), "measure 88 s");
    }

    #[test]
    fn without_a_period_no_time_is_known_and_none_is_shown() {
        let figures = Recording::new(RecordingConfig::default()).finish(0);
        let runs = [Run::recorded("file".to_owned(), Setup::default(), figures)];
        assert_eq!(words(longer_ns(&runs[0], &runs, 2.0)), "measure longer");
        assert_eq!(words_of_cycles(2_996), "measure at least 2\u{a0}996 cycles");
    }
}
