//! Bodies of results of the lab's experiments: one row and one body a kind.
//!
//! Plain data; what an experiment gives is the lab's.

use punctual_lab::accuracy::AccuracyOutcome;
use punctual_lab::blame::Blamed;
use punctual_lab::executive;
use punctual_lab::outside::{RespondOutcome, StimulateOutcome};
use punctual_lab::response::ResponseOutcome;
use punctual_lab::saturation::SaturationOutcome;
use punctual_lab::timer::TimerOutcome;
use punctual_lab::work::WorkOutcome;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::noise::NoiseBody;
use crate::run::Load;
use crate::trials::TrialsBody;

/// The rows: the name that a result has, its variant, its body.
macro_rules! measured {
    ($($name:literal => $variant:ident($body:ident)),* $(,)?) => {
        /// The part of a result that its kind of experiment adds.
        #[derive(Clone, Debug, Serialize, JsonSchema)]
        #[serde(untagged)]
        pub enum Measured {
            $(#[doc = concat!("Of `", $name, "`.")] $variant(Box<$body>)),*
        }

        impl Measured {
            /// The names of all kinds.
            pub const NAMES: &[&str] = &[$($name),*];

            /// The body in a result of this experiment; `None` for one that is not known.
            pub(crate) fn parse(name: &str, text: &str) -> Option<serde_json::Result<Self>> {
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
    "blame" => Blame(BlameBody),
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

/// The body of `measure executive`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ExecutiveBody {
    /// One row per design and number of tasks, warm and cold.
    pub rows: Vec<executive::ExecutiveRow>,
    /// Ratios between the rows.
    pub ratios: Vec<executive::Ratio>,
    /// The overhead of the loop; null if the run was stopped before.
    pub turn: Option<executive::LoopOverhead>,
}

/// The body of `blame`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BlameBody {
    /// The late wakes, with their causes.
    #[serde(flatten)]
    pub blame: Blamed,
    /// Each load's rate, and its processes that ended before their run.
    pub loads: Vec<Load>,
}

/// The body of `measure accuracy`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AccuracyBody {
    /// The errors of each way to wait.
    pub accuracy: AccuracyOutcome,
}

/// The body of `measure saturation`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SaturationBody {
    /// The highest frequencies that are served.
    pub saturation: SaturationOutcome,
}

/// The body of `measure timer`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TimerBody {
    /// The lateness of each path from a timer.
    pub timer: TimerOutcome,
}

/// The body of `measure response`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ResponseBody {
    /// The response of each condition to stimuli.
    pub response: ResponseOutcome,
    /// Each load's rate during the measurement, and its processes that ended before it.
    pub loads: Vec<Load>,
}

/// The body of `measure work`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WorkBody {
    /// The execution times of the work.
    pub work: WorkOutcome,
    /// Each load's rate during the measurement, and its processes that ended before it.
    pub loads: Vec<Load>,
}

/// The cost of recording a sample, in ns, measured before the run, on the CPU and with the policy
/// of its first loop.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Recording {
    /// In a loop that does nothing else.
    pub hot_ns: f64,
    /// In a real cycle, after a sleep of a millisecond, with all caches as the kernel left them.
    pub cold_ns: f64,
}

/// The body of `stimulate`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StimulateBody {
    /// The answers of another machine to the stimuli sent.
    pub stimulate: StimulateOutcome,
}

/// The body of `respond`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RespondBody {
    /// The stimuli of another machine that were answered.
    pub respond: RespondOutcome,
}
