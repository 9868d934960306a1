//! The body of `tune experiment`: the effect of each setting alone.
//!
//! Plain data.

use punctual_analysis::compare::{KindCounts, RateRatio, Verdict, kinds};
use punctual_lab::blame::BlamedCause;
use punctual_lab::tuning::SettingTrial;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::run::{BlameRecording, Run};

/// The body of `tune experiment`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TrialsBody {
    /// The CPU of the loop.
    pub cpu: u32,
    /// Its period, ns.
    pub period_ns: u64,
    /// The loads that ran meanwhile: "none", or as `--load` has them.
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
    /// Settings that somebody else changed meanwhile: path and value at the end, which was left.
    #[serde(default)]
    pub changed: Vec<String>,
    /// The directory of the journals; empty in results of earlier versions.
    #[serde(default)]
    pub state: String,
    /// The recording of causes in the last part that had one, and its price; not there unless
    /// requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blame: Option<BlameRecording>,
    /// The causes of late wakes without any setting, in a sentence; not there where they were not
    /// recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sentence: Option<String>,
}

/// One setting.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TriedSetting {
    /// Its name, as in the verdicts of `tune check`.
    pub knob: String,
    /// The writes of it, a line each: path and value.
    pub writes: Vec<String>,
    /// The writes that the kernel refused, each with the reason.
    pub refused: Vec<String>,
    /// With it (B) and without (A); null where it was not measured.
    pub first: Option<RateRatio>,
    /// With it (B) and without (A) in fresh blocks; null where it did not help in the first.
    pub again: Option<RateRatio>,
    /// The verdict on its effect.
    pub verdict: TrialVerdict,
    /// Causes of late wakes without it (A) and with it (B), the most frequent first; not there
    /// where they were not recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<MovedCause>,
}

/// A cause of late wakes, without a setting and with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MovedCause {
    /// Its kind, in a word.
    pub cause: String,
    /// Name of the thread, interrupt or activity that is the cause; threads without their numbers.
    pub name: String,
    /// Wakes that were late mainly by it, of those that were recorded without the setting (A) and
    /// with it (B): `exceedances_a` of `n_a`. Causes and settings of a result are one family.
    pub rate: RateRatio,
}

impl MovedCause {
    /// In a sentence, where the setting moved it: "half as often".
    pub fn sentence(&self) -> Option<String> {
        let way = match self.rate.verdict {
            Verdict::Better => "rarer",
            Verdict::Worse => "more frequent",
            Verdict::Mixed | Verdict::Undecided => return None,
        };
        let RateRatio { exceedances_a, exceedances_b, n_a, n_b, .. } = self.rate;
        Some(format!(
            "{way}: {} ({exceedances_a} of {n_a} wakes → {exceedances_b} of {n_b})",
            self.name
        ))
    }
}

/// Late wakes with a setting, and without any in the same blocks.
#[derive(Clone, Copy, Debug)]
pub struct CausesPair<'a> {
    /// The run without the setting.
    pub without: &'a Run,
    /// The run with it.
    pub with: &'a Run,
    /// Scatter of counts of late releases, over that of counts of independent ones.
    pub dispersion: f64,
}

/// Causes of each setting that are compared, at most: those of most wakes on both sides together,
/// which says nothing of their ratio.
const CAUSES_MAX: usize = 5;
/// Wakes on both sides together that a cause needs to be compared.
const WAKES_MIN: u64 = 5;

/// The causes of late wakes with and without each setting, by the share of wakes that each makes
/// later than `threshold_ns`: one list for each pair, in its order.
pub fn moved(pairs: &[CausesPair<'_>], threshold_ns: i64) -> Vec<Vec<MovedCause>> {
    let named: Vec<Vec<(CauseName, KindCounts)>> = pairs.iter().map(CausesPair::counts).collect();
    let counts: Vec<KindCounts> = named.iter().flatten().map(|(_, counts)| *counts).collect();
    let mut rates = kinds(&counts, threshold_ns).into_iter();
    let of_pair = |named: Vec<(CauseName, KindCounts)>| {
        let rated = named.into_iter().filter_map(|(name, _)| Some((name, rates.next()??)));
        rated.map(|(CauseName { cause, name }, rate)| MovedCause { cause, name, rate }).collect()
    };
    named.into_iter().map(of_pair).collect()
}

/// The key by which a cause is the same on both sides.
#[derive(Clone, Debug, PartialEq)]
struct CauseName {
    cause: String,
    name: String,
}

impl CauseName {
    /// Results of before have no name without numbers.
    fn of(cause: &BlamedCause) -> Self {
        let name = match cause.family.as_str() {
            "" => without_numbers(&cause.name),
            family => family.to_owned(),
        };
        Self { cause: cause.cause.clone(), name }
    }
}

impl CausesPair<'_> {
    /// Causes with what they count on both sides, the most frequent first.
    fn counts(&self) -> Vec<(CauseName, KindCounts)> {
        let wakes = |run: &Run| run.blame.as_ref().map_or(0, |blame| blame.wakes);
        let releases = [self.without, self.with].map(wakes);
        let mut found: Vec<(CauseName, [u64; 2])> = Vec::new();
        for (side, run) in [self.without, self.with].into_iter().enumerate() {
            for cause in run.causes.iter().filter(|cause| cause.is_named()) {
                let name = CauseName::of(cause);
                match found.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, counts)) => counts[side] += cause.wakes,
                    None => {
                        let mut counts = [0; 2];
                        counts[side] = cause.wakes;
                        found.push((name, counts));
                    }
                }
            }
        }
        found.retain(|(_, counts)| counts.iter().sum::<u64>() >= WAKES_MIN);
        found.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.iter().sum::<u64>()));
        found.truncate(CAUSES_MAX);
        let dispersion = self.dispersion;
        let counted = |(name, of_kind)| (name, KindCounts { of_kind, releases, dispersion });
        found.into_iter().map(counted).collect()
    }
}

/// A name whose threads have no numbers: "rustc (nice 5, 301) ran" and others of that name are one.
fn without_numbers(name: &str) -> String {
    let mut kept = String::new();
    let mut rest = name;
    while let Some((before, after)) = rest.split_once(", ") {
        let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        kept += before;
        if digits > 0 && after[digits..].starts_with(')') {
            rest = &after[digits..];
        } else {
            kept += ", ";
            rest = after;
        }
    }
    kept + rest
}

/// The verdict on a setting.
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

/// Returns true where the interval of the ratio has no change that matters.
fn is_within(rate: &RateRatio) -> bool {
    rate.lower > 1.0 / MATTERS && rate.upper.is_some_and(|upper| upper < MATTERS)
}

impl TrialVerdict {
    /// The verdict of a trial on a setting that the kernel took.
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
    use punctual_analysis::histogram::ViewBucket;
    use punctual_analysis::recording::{Recording, RecordingConfig};

    use super::*;
    use crate::run::{RunBlame, Setup};

    /// `late` of 100 000 releases above 10 µs without the setting and with it.
    fn found(late: [u64; 2], n: u64) -> TrialVerdict {
        let series = late.map(|late| {
            let buckets = [(0, 1_000, n - late), (50_000, 51_000, late)];
            LatenessSeries::of_buckets(&buckets.map(ViewBucket::from), 0, None)
        });
        let first = exceedances(&[[&series[0], &series[1]]], 10_000).remove(0);
        TrialVerdict::of(&SettingTrial { first, again: None })
    }

    fn run(wakes: u64, causes: &[(&str, &str, u64)]) -> Run {
        let blamed = |(cause, name, wakes): &(&str, &str, u64)| BlamedCause {
            cause: (*cause).to_owned(),
            name: (*name).to_owned(),
            wakes: *wakes,
            confidence: 0.99,
            ..BlamedCause::default()
        };
        let late = causes.iter().map(|(.., wakes)| wakes).sum();
        let blame = RunBlame { wakes, threshold_ns: Some(50_000), late, ..RunBlame::default() };
        let figures = Recording::new(RecordingConfig::default()).finish(0);
        let plain = Run::recorded("none".to_owned(), Setup::default(), figures);
        Run { causes: causes.iter().map(blamed).collect(), blame: Some(blame), ..plain }
    }

    #[test]
    fn what_a_setting_moved_is_told_by_cause_whatever_the_numbers_of_its_threads() {
        let without = run(
            10_000,
            &[
                ("softirq", "RCU softirq", 80),
                ("not-preempted", "rustc (nice 5, 301) was not preempted in write()", 20),
                ("not-preempted", "rustc (nice 5, 302) was not preempted in write()", 20),
                ("host", "host took the CPU", 3),
                ("normal-path", "normal path of this machine", 500),
            ],
        );
        let with = run(
            5_000,
            &[
                ("not-preempted", "rustc (nice 5, 977) was not preempted in write()", 25),
                ("softirq", "RCU softirq", 4),
                ("host", "host took the CPU", 1),
            ],
        );
        let pair = |dispersion| CausesPair { without: &without, with: &with, dispersion };
        let found = moved(&[pair(1.0), pair(40.0)], 50_000);
        let names: Vec<&str> = found[0].iter().map(|cause| cause.name.as_str()).collect();
        assert_eq!(names, ["RCU softirq", "rustc (nice 5) was not preempted in write()"]);
        let sentences: Vec<Option<String>> = found[0].iter().map(MovedCause::sentence).collect();
        let rarer = "rarer: RCU softirq (80 of 10000 wakes → 4 of 5000)";
        assert_eq!(sentences, [Some(rarer.to_owned()), None]);
        assert_eq!(found[1].len(), 2);
        assert!(found[1].iter().all(|cause| cause.sentence().is_none()), "they come in bursts");
        let turned = CausesPair { without: &with, with: &without, dispersion: 1.0 };
        let more = moved(&[turned], 50_000).remove(0).remove(0).sentence().expect("moved");
        assert!(more.starts_with("more frequent: RCU softirq (4 of"), "{more}");
        let nothing = CausesPair { without: &without, with: &run(0, &[]), dispersion: 1.0 };
        assert_eq!(moved(&[nothing], 50_000), [[]], "a side without wakes");
    }

    #[test]
    fn threads_of_one_program_are_one_cause_however_many_there_were() {
        let with_family = |mut run: Run| {
            for cause in &mut run.causes {
                cause.family = "rustc (nice 0) ran above".to_owned();
            }
            run
        };
        let kind = "higher-priority";
        let many = [(kind, "rustc (nice 0, 12 threads of 3 processes) ran above", 40)];
        let one = [(kind, "opt cgu.1 (nice 0, 301) ran above", 9)];
        let [without, with] = [&many, &one].map(|causes| with_family(run(10_000, causes)));
        let pair = CausesPair { without: &without, with: &with, dispersion: 1.0 };
        let found = moved(&[pair], 50_000).remove(0);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].name, "rustc (nice 0) ran above");
    }

    #[test]
    fn names_lose_numbers_of_threads_alone() {
        let same = ["RCU softirq", "hog (priority 97), twice", "a, b (nice 0, x)", "tail, "];
        for name in same {
            assert_eq!(without_numbers(name), name);
        }
        assert_eq!(
            without_numbers("a (nice 0, 12) and b (nice 5, 7)"),
            "a (nice 0) and b (nice 5)"
        );
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
