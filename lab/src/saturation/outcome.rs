//! What the saturation experiment gives: plain data, as results hold it.
//!
//! The doc comments are the descriptions in the schema of results.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The highest frequencies that are served, and what is left for others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SaturationOutcome {
    /// Where stimuli came from, as for `measure response`: "eventfd", "serial:/dev/ttyS1".
    pub source: String,
    /// The CPU of both stages and of the background.
    pub cpu: u32,
    /// The CPU that raised stimuli, by polling the clock.
    pub stimulus_cpu: u32,
    /// How long a trial of the search is.
    pub trial_ns: u64,
    /// Whether real-time throttling and the fair server of `cpu` were off.
    #[serde(default)]
    pub unthrottled: bool,
    /// The highest frequency that the search may try.
    pub highest_hz: f64,
    /// One for each condition, stage and goal.
    pub rows: Vec<SaturationRow>,
    /// Every trial, in the order of time.
    pub trials: Vec<TrialRow>,
    /// What was left for the background; null where that was not measured.
    pub background: Option<BackgroundRow>,
    /// Why it ended before its time: the source was lost; null where it did not.
    pub lost: Option<String>,
}

/// The highest frequency of one stage whose loss stays within a goal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SaturationRow {
    /// "unloaded", or "loaded": with the background.
    pub condition: String,
    /// 1 or 2.
    pub stage: u32,
    /// The share of stimuli that may be lost: 0, 0.0001, 0.01.
    pub goal: f64,
    /// MF: the highest frequency that is a lower bound by RFC 9971, 3 trials deciding by majority,
    /// and 3 more confirming it where the search ended; null where even the lowest frequency loses
    /// more.
    pub pass_hz: Option<f64>,
    /// The lowest frequency that is an upper bound; null where none was found.
    pub fail_hz: Option<f64>,
    /// The lowest frequency at which any stimulus was lost in a trial; null where none was.
    pub first_loss_hz: Option<f64>,
    /// Stimuli of the trials at `pass_hz`: none lost among n supports a share of 3/n at 95 %.
    pub stimuli: u64,
    /// How the search ended.
    pub end: SearchEnd,
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SearchEnd {
    /// `pass_hz` and `fail_hz` are neighbours, 2.5 % apart.
    Found,
    /// The highest frequency that could be raised was served: the generator is the limit.
    GeneratorLimited,
    /// The lowest frequency was not served.
    BelowLowest,
    /// Time was over, or it was stopped, with frequencies undecided: all that is known is that MF
    /// lies between `pass_hz` and `fail_hz`, or beyond the one of them that there is.
    Unfinished,
}

/// One trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialRow {
    /// "unloaded" or "loaded".
    pub condition: String,
    /// The frequency.
    pub hz: f64,
    /// Stimuli that were raised.
    pub stimuli: u64,
    /// Stimuli that were not, because the generator was late by a period.
    pub not_raised: u64,
    /// The share that each stage did not serve: its answer was not complete when the next stimulus
    /// was due, or there was none.
    pub loss: Vec<f64>,
    /// Whether the generator did not keep the frequency: such a trial decides nothing.
    pub generator_limited: bool,
    /// How long it was; 0 in results of before, where it was `trial_ns`.
    #[serde(default)]
    pub ns: u64,
    /// The background's rate from the first stimulus to the last over its own without stimuli; null
    /// without a background.
    pub background_share: Option<f64>,
}

/// What stimuli take from a thread without privilege on the same CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BackgroundRow {
    /// Its polygons per second without stimuli.
    pub rate: f64,
    /// SF50: the lowest frequency tried that left less than half of that; null where none did.
    pub sf50_hz: Option<f64>,
    /// SF10: the same for a tenth.
    pub sf10_hz: Option<f64>,
    /// SF: the lowest frequency tried at which it finished not one polygon from the first stimulus
    /// to the last; null where none did. Trials shorter than a second do not show what throttling
    /// and the fair server leave it in the long run: only `--unsafe-no-throttle` shows its death.
    #[serde(default)]
    pub dead_hz: Option<f64>,
    /// The least share that any trial left.
    pub least_share: Option<f64>,
    /// What a stimulus costs: the slope of the share taken over the frequency, through zero, in
    /// trials that left half or more.
    pub cost_ns: Option<f64>,
    /// The frequency at which nothing would be left by that cost.
    pub predicted_hz: Option<f64>,
}
