//! How a wait that spins came to its releases, and how it left its spins.
//!
//! For `report`. Plain data, made from what the experiment says.

use punctual_core::wait::spin_exit::{Trial, Uncorrected};
use punctual_lab::periodic::RunOutcome;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a wait that spins approaches its releases.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Approach {
    /// The length of a short sleep; null for a single sleep of any length.
    pub(crate) hop_ns: Option<u64>,
    /// How many short sleeps end the wait, after a long one; null where all are short.
    #[serde(default)]
    pub(crate) hops: Option<u32>,
    /// How long before the release the last sleep ends.
    pub(crate) margin_ns: u64,
    /// Whether the spin's exit is corrected by a computed delay: tried before the run, and kept
    /// only where it was sharper than polling.
    #[serde(default)]
    pub(crate) exit_corrected: bool,
    /// The result of trying to correct it; null if it was not tried.
    #[serde(default)]
    pub(crate) exit: Option<ExitTrial>,
    /// Of an adaptive wait: the share of late wakes since its last calibration.
    pub(crate) late_share: Option<f64>,
    /// Of an adaptive wait: whether its target is within its budget on this machine.
    pub(crate) reachable: Option<bool>,
    /// Of an adaptive wait: whether the margin is extrapolated beyond the data.
    pub(crate) extrapolated: Option<bool>,
}

/// A corrected exit of spins, compared with polling before the run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ExitTrial {
    /// `corrected`; or polling is kept: `no_gain`, or `unsteady` where polls or the delay were not
    /// of one length and nothing could be computed.
    pub(crate) verdict: String,
    /// The spread of exits by polling, p5 to p95; null where nothing was tried out.
    pub(crate) polled_ns: Option<f64>,
    /// The same of corrected ones.
    pub(crate) corrected_ns: Option<f64>,
}

impl Approach {
    pub(crate) fn of(run: &RunOutcome) -> Self {
        let learned = run.learned.as_ref();
        Self {
            hop_ns: Some(run.approach.hop_ns).filter(|&ns| ns > 0),
            hops: Some(run.approach.hops).filter(|&hops| hops > 0 && hops < u32::MAX),
            margin_ns: run.approach.margin_ns,
            exit_corrected: run.approach.corrected,
            exit: run.exit.as_ref().map(ExitTrial::of),
            late_share: learned.map(|learned| learned.late),
            reachable: learned.map(|learned| learned.reachable),
            extrapolated: learned.map(|learned| learned.extrapolated),
        }
    }
}

impl ExitTrial {
    fn of(trial: &Trial) -> Self {
        let (verdict, spreads_ns) = match trial {
            Ok(exit) => ("corrected", Some(exit.spreads_ns())),
            Err(Uncorrected::NoGain { plain_ns, corrected_ns }) => {
                ("no_gain", Some((*plain_ns, *corrected_ns)))
            }
            Err(Uncorrected::Unsteady) => ("unsteady", None),
        };
        let (polled_ns, corrected_ns) = spreads_ns.unzip();
        Self { verdict: verdict.to_owned(), polled_ns, corrected_ns }
    }
}
