//! What results of experiments of the lab have, one body a kind.
//!
//! Plain data; what an experiment gives is the lab's.

use punctual_lab::accuracy::AccuracyOutcome;
use punctual_lab::response::ResponseOutcome;
use punctual_lab::timer::TimerOutcome;
use punctual_lab::work::WorkOutcome;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::run::Load;

/// Of `measure accuracy`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct AccuracyBody {
    /// The errors of each way to wait.
    pub(crate) accuracy: AccuracyOutcome,
}

/// Of `measure timer`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct TimerBody {
    /// How late each path was.
    pub(crate) timer: TimerOutcome,
}

/// Of `measure response`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ResponseBody {
    /// How stimuli were answered.
    pub(crate) response: ResponseOutcome,
    /// What each load did during the measurement.
    pub(crate) loads: Vec<Load>,
}

/// Of `measure work`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct WorkBody {
    /// How long the work took.
    pub(crate) work: WorkOutcome,
    /// What each load did during the measurement.
    pub(crate) loads: Vec<Load>,
}
