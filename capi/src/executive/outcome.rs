//! What a run leaves: what its functions returned, and what C asks for when it is over.
//!
//! While it runs its bodies write one word of it, once; the rest is setup's.

use std::ffi::c_int;
#[expect(clippy::disallowed_types, reason = "filled by setup before the loop begins")]
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

use punctual::{End, Flow, StopHandle, Summary};

use crate::errors;
use crate::ffi::Failure;
use crate::single_loop::listed;
use crate::wait_info::WaitInfo;

/// What the functions of a run returned, as far as it ends the run.
#[derive(Debug, Default)]
#[expect(clippy::disallowed_types, reason = "filled by setup before the loop begins")]
pub(super) struct Outcome {
    /// The first one; 0 for none.
    answer: AtomicI32,
    stop: OnceLock<StopHandle>,
}

impl Outcome {
    /// What stops the run.
    pub(super) fn stopped_by(&self, stop: &StopHandle) {
        let _first = self.stop.set(stop.clone());
    }

    /// What a function returned; and what follows.
    pub(super) fn keep(&self, (flow, answer): (Flow, c_int)) -> Flow {
        if flow == Flow::Stop {
            let ordering = Ordering::Relaxed;
            let _later = self.answer.compare_exchange(0, answer, ordering, ordering);
        }
        flow
    }

    /// Whether a trigger has another cycle; one that fails ends the run.
    pub(super) fn triggered(&self, answer: c_int) -> bool {
        if answer < 0 {
            self.keep((Flow::Stop, answer));
            if let Some(stop) = self.stop.get() {
                stop.stop();
            }
        }
        answer > 0
    }

    /// What the end of the run is to its caller.
    pub(super) fn judge(&self, summary: Summary) -> Result<(), Failure> {
        let answer = self.answer.load(Ordering::Relaxed);
        if answer < 0 {
            // The task's own errno.
            return Err(Failure::bare(answer.saturating_neg()));
        }
        summary.ok().map(drop).map_err(|why| errors::failure(&why))
    }
}

/// The last run, for who asks afterwards.
#[derive(Debug)]
pub(super) struct Last {
    /// How its wait ended.
    pub(super) info: WaitInfo,
    /// What the kernel refused.
    pub(super) refused: String,
    /// As text.
    pub(super) summary: String,
}

impl Last {
    pub(super) fn of(summary: &Summary) -> Self {
        let Summary { epoch, quiet, policy, wait, refused, .. } = summary;
        let mut text = summary.to_string();
        if let End::Panicked { .. } = summary.end {
            text.push_str(" (a fault of libpunctual's own)");
        }
        Self {
            info: WaitInfo::of(epoch.as_ns(), *quiet, *policy, *wait),
            refused: listed(refused),
            summary: text,
        }
    }
}
