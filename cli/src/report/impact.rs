//! What lateness does to an application, in a report.
//!
//! Plain data; the arithmetic is `punctual_analysis::impact`'s.

use punctual_analysis::impact::application::Application;
use punctual_analysis::impact::step_generation::StepGeneration;
use punctual_analysis::impact::stepper;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Of `impact`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ImpactBody {
    /// What the lateness does to the application.
    pub(crate) impact: Impact,
    /// The rate that software stepping reaches; null unless requested.
    pub(crate) step_generation: Option<StepGeneration>,
}

/// What the lateness does to an application.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Impact {
    /// Of `impact stepper`.
    Stepper(stepper::Impact),
    /// Of every other application.
    Application(Application),
}

impl Impact {
    /// The result in words.
    pub(crate) fn statement(&self) -> &String {
        match self {
            Self::Stepper(impact) => &impact.statement,
            Self::Application(impact) => &impact.statement,
        }
    }
}
