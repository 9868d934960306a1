//! The results of one run, as plain data.
//!
//! For the report (the JSON keys are those of the schema) and for limits and verdicts, which need
//! the parts that JSON leaves out. Holds; computes nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::WorstRelease;
use super::requested::{self, RequestedTails};
use crate::claim::Claim;
use crate::claim::ask::{Ask, ClaimEvent};
use crate::claim::dependence::Tails;
use crate::claim::judge::EventCount;
use crate::gridfit::{Grid, Line};
use crate::histogram::Histogram;
use crate::histogram::HistogramView;
use crate::imported::{Imported, ImportedQuantity};
use crate::jitters::Jitters;
use crate::summary::{Distribution, SummaryStats};

/// The figures of one run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunFigures {
    /// Recorded cycles, cold ones included; 0 for imported data without a count.
    pub cycles: u64,
    /// Recorded cycles that were flagged cold.
    pub cold: u64,
    /// Largest lateness among the cold cycles, whether they count or are left out; null without
    /// any.
    pub cold_max_ns: Option<f64>,
    /// Releases that never ran; null for data that do not record it.
    pub missed: Option<u64>,
    /// Missed releases known only to be at least a period late: no wake followed, or cycles went
    /// unrecorded among them.
    #[serde(default)]
    pub censored: u64,
    /// Cycles that ran but did not fit in the recorder.
    pub unrecorded: u64,
    /// Lateness of all releases: wake − release of those that ran; of those that were missed until
    /// the first wake after them, and a period at least. Where `censored` or `unrecorded` is not 0
    /// quantiles take those for the latest of all, and `max` is a lower bound. Data that know no
    /// releases have that of their wakes.
    pub lateness_ns: SummaryStats,
    /// Lateness of wakes alone, as programs report it that know no releases.
    #[serde(default)]
    pub wakes: Wakes,
    /// wake − previous wake − period.
    pub interval_ns: SummaryStats,
    /// finish − release; null when not recorded.
    pub response_ns: Option<SummaryStats>,
    /// finish − start; null when not recorded.
    pub execution_ns: Option<SummaryStats>,
    /// The least-squares grid; null without a period or with fewer than two cycles.
    pub grid: Option<Grid>,
    /// Every measure that goes by that name.
    pub jitters: Jitters,
    /// Lateness, for people; for imported data, whatever they hold.
    pub histogram: HistogramView,
    /// What the run supports.
    pub claims: Vec<Claim>,
    /// The latest releases, latest first.
    pub worst: Vec<WorstRelease>,
    /// What another program's data hold and what they do not record; null for the project's own.
    #[serde(default)]
    pub imported: Option<Imported>,
    /// The line behind `grid`, for a second pass over instants.
    #[serde(skip)]
    pub line: Option<Line>,
    /// Events other than lateness that the requested claims are about.
    #[serde(skip)]
    pub requested: RequestedTails,
    /// Exceedances of every watched threshold.
    #[serde(skip)]
    pub tails: Tails,
    /// Lateness in full resolution.
    #[serde(skip)]
    pub lateness: Histogram,
}

/// Lateness of the cycles that ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Wakes {
    /// Releases that these numbers leave out, missed or unrecorded; null for data that do not
    /// record it.
    pub left_out: Option<u64>,
    /// The nine numbers.
    #[serde(flatten)]
    pub stats: SummaryStats,
}

impl Wakes {
    /// Of a distribution of wakes.
    pub(crate) fn of(wakes: &Distribution, left_out: Option<u64>) -> Self {
        Self { left_out, stats: wakes.stats() }
    }
}

impl RunFigures {
    /// Releases that the figures of lateness are of: those that ran, those that were missed and
    /// those that went unrecorded. Cold ones that are left out are not among them.
    pub fn releases(&self) -> u64 {
        let view = &self.histogram;
        let known = view.buckets.iter().map(|bucket| bucket.2);
        known.fold(view.overflow, u64::saturating_add).saturating_add(self.unknown())
    }

    /// Releases whose lateness is not known, which may have been later than all others.
    pub fn unknown(&self) -> u64 {
        self.censored.saturating_add(self.unrecorded)
    }

    /// What was counted of the event of a claim: exactly for a threshold that was watched, else
    /// between the two nearest that were.
    ///
    /// # Errors
    /// In one line, why the data do not show it.
    pub fn counted(&self, ask: &Ask) -> Result<EventCount, String> {
        if let (Some(imported), ClaimEvent::Interval { .. }) = (&self.imported, ask.event())
            && imported.holds == ImportedQuantity::Interval
            && self.cycles == 0
        {
            let program = &imported.program;
            return Err(format!(
                "{program} records how large intervals were, not how many there were"
            ));
        }
        let of = (self.lateness.count(), self.cycles, self.unrecorded);
        requested::counted(ask, &self.tails, of, &self.requested)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Recording, RecordingConfig};
    use punctual_core::sample::Sample;
    use punctual_core::time::{Period, Span};

    fn keys(value: &serde_json::Value) -> Vec<&str> {
        value
            .as_object()
            .map(|object| object.keys().map(String::as_str).collect())
            .unwrap_or_default()
    }

    #[test]
    fn the_keys_are_those_of_the_schema() {
        let period = Period::from_ns(1_000_000);
        let mut recording =
            Recording::new(RecordingConfig { period, ..RecordingConfig::default() });
        for cycle in 0..3_000 {
            let lateness = Span::from_ns(5_000 + (cycle * 7_919 % 1_000) as i64);
            recording.push(&Sample { cycle, lateness, ..Sample::default() });
        }
        let json = serde_json::to_value(recording.finish(0)).unwrap();
        let of_run = ["cycles", "missed", "unrecorded", "lateness_ns", "interval_ns", "grid"];
        let more = ["response_ns", "execution_ns", "histogram", "claims", "worst"];
        for key in of_run.iter().chain(&more) {
            assert!(json.get(key).is_some(), "{key}");
        }
        assert!(json.get("tails").is_none() && json.get("lateness").is_none());
        let mut stats = ["min", "mean", "stddev", "p50", "p90", "p99", "p99_9", "p99_99", "max"];
        stats.sort_unstable();
        assert_eq!(keys(&json["lateness_ns"]), stats);
        assert!(json["lateness_ns"]["p99_99"].is_null() && json["response_ns"].is_null());
        for key in ["period_ns", "drift_ppb", "phase_ns", "jitter_pp_ns", "rms_ns"] {
            assert!(json["grid"][key].is_number(), "{key}");
        }
        assert!(json["histogram"]["buckets"][0][2].is_u64());
        assert_eq!(json["histogram"]["unit_ns"], 1);
        let claim = ["alone", "bound_ns", "conditions", "confidence", "given", "level"];
        assert_eq!(keys(&json["claims"][0])[..6], claim);
        assert_eq!(keys(&json["claims"][0])[6..], ["n", "p", "statement"]);
        assert_eq!(json["claims"][0]["level"], "L0");
        assert_eq!(keys(&json["worst"][0]), ["at_ns", "cause", "cycle", "kind", "lateness_ns"]);
        assert_eq!(json["wakes"]["left_out"], 0);
        assert_eq!(json["wakes"]["p99"], json["lateness_ns"]["p99"]);
    }
}
