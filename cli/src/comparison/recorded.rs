//! A result, as far as a comparison needs it.

use punctual_analysis::compare::series::LatenessSeries;
use punctual_analysis::plain::plain_spaces;
use punctual_analysis::summary::SummaryStats;
use punctual_host::facts::MachineFacts;
pub(crate) use punctual_import::samples::RUNS_MAX;
use serde::{Deserialize, Serialize};

use crate::report::{Report, Session, Setup};

/// A result, as far as a comparison needs it: bounded in size, however long it ran.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Recorded {
    /// Where it was read, or which baseline it is.
    pub(crate) from: String,
    /// The version that measured.
    pub(crate) version: String,
    /// The subcommand that measured.
    pub(crate) experiment: String,
    /// When it started, in UTC (RFC 3339).
    pub(crate) started_at: Option<String>,
    /// Whether it ended before its time.
    pub(crate) incomplete: bool,
    /// The machine, where the data say.
    pub(crate) machine: Option<MachineFacts>,
    /// What the kernel granted, where the data say.
    pub(crate) session: Option<Session>,
    /// What stamps were taken with, where the data say.
    pub(crate) stamps: Option<String>,
    /// Its runs, in their order.
    pub(crate) runs: Vec<RecordedRun>,
}

/// One run of a result.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RecordedRun {
    /// Its name.
    pub(crate) name: String,
    /// How it was set up.
    pub(crate) setup: Setup,
    /// Whether cold cycles were left out.
    pub(crate) cold_left_out: bool,
    /// Cycles that ran and did not fit in the recorder: they are in no count.
    #[serde(default)]
    pub(crate) unrecorded: u64,
    /// Missed releases that `parts` leave out, where they are of wakes alone.
    #[serde(default)]
    pub(crate) left_out: u64,
    /// Lateness of all its releases, as results show it, where it is known.
    #[serde(default)]
    pub(crate) lateness_ns: Option<SummaryStats>,
    /// Of its wakes alone.
    #[serde(default)]
    pub(crate) wakes_ns: Option<SummaryStats>,
    /// What it gave: one series for each load that counts in it.
    pub(crate) parts: Vec<LatenessSeries>,
}

impl RecordedRun {
    /// Whether this is its name. Results of before have hard spaces in names.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        plain_spaces(&self.name) == plain_spaces(name)
    }

    /// Whether the other one holds the very same counts.
    pub(crate) fn is_copy_of(&self, other: &Self) -> bool {
        self.name == other.name && self.parts == other.parts
    }
}

impl Recorded {
    /// A result that was just measured, with the series of its runs that were recorded on the way.
    pub(crate) fn measured(report: &Report, runs: &[RecordedRun], from: &str) -> Self {
        Self { runs: runs.to_vec(), ..Self::head(report, from.to_owned()) }
    }

    /// Everything but the runs.
    pub(super) fn head(report: &Report, from: String) -> Self {
        Self {
            from,
            version: report.envelope.version.clone(),
            experiment: report.envelope.experiment.clone(),
            started_at: report.envelope.started_at.clone(),
            incomplete: report.envelope.incomplete,
            machine: report.envelope.machine.clone(),
            session: report.envelope.session.clone(),
            stamps: report.envelope.clock.as_ref().map(|clock| clock.source.clone()),
            runs: Vec::new(),
        }
    }

    /// The kernel's release, where the data say.
    pub(crate) fn kernel(&self) -> Option<String> {
        self.machine.as_ref().and_then(|facts| facts.kernel.kernel.value().cloned())
    }
}
