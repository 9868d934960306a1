//! What `tune experiment` found: the effect of each setting alone.
//!
//! Plain data.

use punctual_analysis::compare::{RateRatio, Verdict};
use punctual_lab::tuning::SettingTrial;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Of `tune experiment`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TrialsBody {
    /// The CPU of the loop.
    pub cpu: u32,
    /// Its period, ns.
    pub period_ns: u64,
    /// What ran meanwhile: "none", or loads as `--load` has them.
    pub load: String,
    /// The quantile whose value without any setting is the threshold, in (0, 1); null where the
    /// threshold was given.
    pub quantile: Option<f64>,
    /// Releases that are later than this are counted, ns.
    pub threshold_ns: i64,
    /// The probability that no setting that does nothing is taken for one that helps.
    pub confidence: f64,
    /// One for each setting of the plan, in its order.
    pub settings: Vec<TriedSetting>,
    /// All that help at once (B) and none (A); null where fewer than two do.
    pub together: Option<RateRatio>,
    /// The settings that stay applied.
    pub kept: Vec<String>,
    /// What somebody else changed meanwhile: path and value at the end, which was left.
    #[serde(default)]
    pub changed: Vec<String>,
    /// The directory of the journals; empty in results of earlier versions.
    #[serde(default)]
    pub state: String,
}

/// One setting.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TriedSetting {
    /// Its name, as in the verdicts of `tune check`.
    pub knob: String,
    /// What was written, a line each: path and value.
    pub writes: Vec<String>,
    /// What the kernel refused of it, and why.
    pub refused: Vec<String>,
    /// With it (B) and without (A); null where it was not measured.
    pub first: Option<RateRatio>,
    /// With it (B) and without (A) in fresh blocks; null where it did not help in the first.
    pub again: Option<RateRatio>,
    /// What that says.
    pub verdict: TrialVerdict,
}

/// What became of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TrialVerdict {
    /// Fewer releases were later, both times.
    Helps,
    /// Fewer the first time; not significantly the second time.
    NotConfirmed,
    /// No effect that matters: a change of the share by [`MATTERS`] would have been seen.
    NoEffect,
    /// No significant difference, and there may be one that matters.
    Undecided,
    /// More releases were later.
    Harms,
    /// The kernel refused it.
    Refused,
    /// The run ended before, or had no time for it.
    NotTried,
    /// Somebody else changed it meanwhile.
    Void,
}

/// A setting that makes late releases so many times rarer or more frequent matters.
pub const MATTERS: f64 = 1.5;

/// Whether the interval of the ratio has no change that matters.
fn is_within(rate: &RateRatio) -> bool {
    rate.lower > 1.0 / MATTERS && rate.upper.is_some_and(|upper| upper < MATTERS)
}

impl TrialVerdict {
    /// What a trial says of a setting that the kernel took.
    pub fn of(trial: &SettingTrial) -> Self {
        match (&trial.first, &trial.again) {
            (None, _) => Self::NotTried,
            _ if trial.helps() => Self::Helps,
            (Some(first), again) => match first.verdict {
                Verdict::Worse => Self::Harms,
                Verdict::Better if again.is_some() => Self::NotConfirmed,
                Verdict::Better => Self::NotTried,
                _ if is_within(first) => Self::NoEffect,
                _ => Self::Undecided,
            },
        }
    }

    /// Its word in a table.
    pub fn word(self) -> &'static str {
        match self {
            Self::Helps => "helps",
            Self::NotConfirmed => "not confirmed",
            Self::NoEffect => "no effect",
            Self::Undecided => "undecided",
            Self::Harms => "harms",
            Self::Refused => "refused",
            Self::NotTried => "not tried",
            Self::Void => "void",
        }
    }
}

#[cfg(test)]
mod tests {
    use punctual_analysis::compare::exceedances;
    use punctual_analysis::compare::series::LatenessSeries;

    use super::*;

    /// `late` of 100 000 releases above 10 µs without the setting and with it.
    fn found(late: [u64; 2], n: u64) -> TrialVerdict {
        let series = late.map(|late| {
            LatenessSeries::of_buckets(&[(0, 1_000, n - late), (50_000, 51_000, late)], 0, None)
        });
        let first = exceedances(&[[&series[0], &series[1]]], 10_000).remove(0);
        TrialVerdict::of(&SettingTrial { first, again: None })
    }

    #[test]
    fn what_could_have_an_effect_is_undecided_and_what_has_none_is_told() {
        assert_eq!(found([1_000, 1_020], 100_000), TrialVerdict::NoEffect);
        assert_eq!(found([1_000, 2_000], 100_000), TrialVerdict::Harms);
        // A ratio of 0.29 from 0.00 to 3.8 and its like.
        assert_eq!(found([7, 2], 100_000), TrialVerdict::Undecided);
        assert_eq!(found([7, 7], 100_000), TrialVerdict::Undecided);
        assert_eq!(found([0, 0], 100_000), TrialVerdict::Undecided);
        // Found the first time, and not held against fresh blocks.
        assert_eq!(found([1_000, 500], 100_000), TrialVerdict::NotTried);
    }
}
