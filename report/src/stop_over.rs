//! The release that may end a run before its time, as `--stop-over` asks.
//!
//! Plain data and its sentence.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::format;

/// The demand that a run ends at the first release that is later than a limit, and the release that
/// did end it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StopOver {
    /// Later than this, ns.
    pub above_ns: u64,
    /// The release that ended it; null where none was later.
    pub stopped_by: Option<StoppedBy>,
}

/// The release that ended a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StoppedBy {
    /// The run's name; of several loads that count as one, with the load that ran.
    pub run: String,
    /// Its number, as sample files count.
    pub cycle: u64,
    /// The instant at which it was due, in ns on the clock of its grid: CLOCK_MONOTONIC, unless
    /// that follows another.
    pub release_ns: u64,
    /// Its lateness, in ns.
    pub lateness_ns: u64,
    /// The time at which that was seen, in UTC (RFC 3339).
    pub at: String,
}

impl StopOver {
    /// The demand, in words.
    pub fn demand(&self) -> String {
        format!("no release later than {} (--stop-over)", shown(self.above_ns))
    }

    /// The reason why the run ended before its time; `None` where it did not end for this.
    pub fn sentence(&self) -> Option<String> {
        let StoppedBy { run, cycle, lateness_ns, at, .. } = self.stopped_by.as_ref()?;
        Some(format!(
            "ended by release {} of \"{run}\" (its number in the samples, cold ones counted), \
             which was {} late, at {at}: later than {} (--stop-over)",
            format::count(*cycle),
            shown(*lateness_ns),
            shown(self.above_ns),
        ))
    }
}

fn shown(ns: u64) -> String {
    format::ns(Some(ns as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_names_the_release_its_lateness_its_time_and_the_limit() {
        let mut stop = StopOver { above_ns: 500_000, stopped_by: None };
        assert_eq!(stop.sentence(), None);
        assert!(stop.demand().starts_with("no release later than 500"));
        stop.stopped_by = Some(StoppedBy {
            run: "idle".to_owned(),
            cycle: 4_711,
            release_ns: 5_000_000_000,
            lateness_ns: 812_000,
            at: "2026-11-21T20:01:07.123Z".to_owned(),
        });
        let words = stop.sentence().expect("one ended it").replace('\u{a0}', " ");
        assert_eq!(
            words,
            "ended by release 4 711 of \"idle\" (its number in the samples, cold ones counted), \
             which was 812 µs late, at 2026-11-21T20:01:07.123Z: later than 500 µs (--stop-over)"
        );
    }
}
