//! What results of experiments of the lab have: one row and one body a kind.
//!
//! Plain data; what an experiment gives is the lab's.

use punctual_lab::accuracy::AccuracyOutcome;
use punctual_lab::executive;
use punctual_lab::noise::NoiseOutcome;
use punctual_lab::outside::{RespondOutcome, StimulateOutcome};
use punctual_lab::response::ResponseOutcome;
use punctual_lab::saturation::SaturationOutcome;
use punctual_lab::timer::TimerOutcome;
use punctual_lab::work::WorkOutcome;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::run::Load;
use super::trials::TrialsBody;

/// The rows: the name that a result has, its variant, its body.
macro_rules! measured {
    ($($name:literal => $variant:ident($body:ident)),* $(,)?) => {
        /// What one kind of result has.
        #[derive(Clone, Debug, Serialize, JsonSchema)]
        #[serde(untagged)]
        pub(crate) enum Measured {
            $(#[doc = concat!("Of `", $name, "`.")] $variant(Box<$body>)),*
        }

        impl Measured {
            /// The names of all kinds.
            #[cfg(test)]
            pub(crate) const NAMES: &[&str] = &[$($name),*];

            /// The body in a result of this experiment; `None` for one that is not known.
            pub(super) fn parse(name: &str, text: &str) -> Option<serde_json::Result<Self>> {
                Some(match name {
                    $($name => serde_json::from_str::<$body>(text).map(Into::into),)*
                    _ => return None,
                })
            }
        }

        $(impl From<$body> for Measured {
            fn from(body: $body) -> Self {
                Self::$variant(Box::new(body))
            }
        })*
    };
}

measured! {
    "measure executive" => Executive(ExecutiveBody),
    "measure noise" => Noise(NoiseBody),
    "measure accuracy" => Accuracy(AccuracyBody),
    "measure timer" => Timer(TimerBody),
    "measure work" => Work(WorkBody),
    "measure saturation" => Saturation(SaturationBody),
    "measure response" => Response(ResponseBody),
    "stimulate" => Stimulate(StimulateBody),
    "respond" => Respond(RespondBody),
    "tune experiment" => Trials(TrialsBody),
}

/// Of `measure executive`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ExecutiveBody {
    /// One row per design and number of tasks, warm and cold.
    pub(crate) rows: Vec<executive::ExecutiveRow>,
    /// Ratios between the rows.
    pub(crate) ratios: Vec<executive::Ratio>,
    /// The overhead of the loop; null if the run was stopped before.
    pub(crate) turn: Option<executive::LoopOverhead>,
}

/// Of gaps in a spin.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct NoiseBody {
    /// What took CPUs away.
    pub(crate) noise: NoiseOutcome,
    /// What each load did during the measurement.
    pub(crate) loads: Vec<Load>,
}

/// Of `measure accuracy`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct AccuracyBody {
    /// The errors of each way to wait.
    pub(crate) accuracy: AccuracyOutcome,
}

/// Of `measure saturation`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct SaturationBody {
    /// The highest frequencies that are served.
    pub(crate) saturation: SaturationOutcome,
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

/// What recording a sample cost, measured before the run, on the CPU and with the policy of its
/// first loop.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Recording {
    /// In a loop that does nothing else.
    pub(crate) hot_ns: f64,
    /// In a real cycle, after a sleep of a millisecond, with all caches as the kernel left them.
    pub(crate) cold_ns: f64,
}

/// Of `stimulate`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StimulateBody {
    /// How another machine answered.
    pub(crate) stimulate: StimulateOutcome,
}

/// Of `respond`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct RespondBody {
    /// The stimuli of another machine that were answered.
    pub(crate) respond: RespondOutcome,
}
