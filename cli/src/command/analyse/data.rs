//! RecordedData data that were read: their runs, and what every result has.

use crate::report::{Envelope, Judged, Report, Run};

/// RecordedData data, not judged yet.
pub(in crate::command) struct RecordedData {
    /// What every result has.
    pub(in crate::command) envelope: Envelope,
    /// The runs.
    pub(in crate::command) runs: Vec<Run>,
}

impl RecordedData {
    /// Nothing is read yet.
    pub(super) fn new() -> Self {
        Self { envelope: Envelope::of("analyse"), runs: Vec::new() }
    }

    /// As a report without verdicts.
    pub(in crate::command) fn into_report(self) -> Report {
        let judged = Judged { runs: self.runs, ..Judged::default() };
        Report { envelope: self.envelope, body: judged.into() }
    }
}
