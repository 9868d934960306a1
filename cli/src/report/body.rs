//! What each kind of result has: one variant a kind.
//!
//! Plain data. Which kind a result is follows from its `experiment`; keys of other kinds, which
//! results of earlier versions have as null or empty, are passed over.

use punctual_analysis::campaign::{BatchRow, Boot, CampaignEvent, Outlier, Setup};
use punctual_analysis::compare::{self, Family, RunComparison};
use punctual_analysis::impact::step_generation::StepGeneration;
use punctual_analysis::impact::{Application, stepper};
use punctual_host::CpuList;
use punctual_host::rules::KnobVerdict;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::follow::Follow;
use super::headline::Headline;
use super::judge::PlannedRun;
use super::measured::{Measured, Recording};
use super::reproduced::ReproduceBody;
use super::run::{LoadRow, Run};
use super::strategies::{FrontComparison, StrategyRow};
use super::supervised::Supervised;
use super::verdict::Verdict;

/// What one kind of result has.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Body {
    /// Of `check`.
    Check(CheckBody),
    /// Of `measure periodic`.
    Periodic(PeriodicBody),
    /// Of `measure wait`.
    Wait(WaitBody),
    /// Of the other experiments of the lab.
    Measured(Measured),
    /// Of `reproduce`.
    Reproduce(ReproduceBody),
    /// Of `soak`.
    Soak(SoakBody),
    /// Of `run`.
    Run(RunBody),
    /// Of `compare`.
    Compare(CompareBody),
    /// Of `tune check`.
    Tune(TuneBody),
    /// Of `impact`.
    Impact(ImpactBody),
    /// Of `analyse`: recorded data.
    Recorded(Judged),
}

/// Runs, and verdicts for applications.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Judged {
    /// One for each loop and condition.
    pub(crate) runs: Vec<Run>,
    /// Verdicts: which applications it is good enough for.
    pub(crate) verdicts: Vec<Verdict>,
    /// The first lines: what was measured, in counts; null in results of before, and where the runs
    /// are not judged.
    #[serde(default)]
    pub(crate) headline: Option<Headline>,
}

/// Loops that were measured.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct LoopsBody {
    /// The runs.
    #[serde(flatten)]
    pub(crate) judged: Judged,
    /// How the grids followed another clock; null where they are on CLOCK_MONOTONIC.
    #[serde(default)]
    pub(crate) follow: Option<Follow>,
    /// What recording a sample cost; null when nothing was measured.
    pub(crate) recording: Option<Recording>,
    /// What each claim needs, for each run, as it was reported before the start.
    #[serde(default)]
    pub(crate) plans: Vec<PlannedRun>,
}

/// Of `check`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct CheckBody {
    /// The loop.
    #[serde(flatten)]
    pub(crate) loops: LoopsBody,
    /// One row per load, with the same cycles as the run "under load".
    pub(crate) rows: Vec<LoadRow>,
    /// Compared with a baseline; null unless requested.
    pub(crate) compare: Option<Comparison>,
}

/// Of `measure periodic`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct PeriodicBody {
    /// The loops.
    #[serde(flatten)]
    pub(crate) loops: LoopsBody,
    /// Compared with a baseline; null unless requested.
    pub(crate) compare: Option<Comparison>,
}

/// Of `measure wait`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct WaitBody {
    /// The loop.
    #[serde(flatten)]
    pub(crate) loops: LoopsBody,
    /// One row per wait policy, with the same figures as in `runs`.
    #[serde(default)]
    pub(crate) strategies: Vec<StrategyRow>,
    /// Of a sweep: the learned wait held against other ways, in turns that did not choose them.
    #[serde(default)]
    pub(crate) front: Vec<FrontComparison>,
    /// The way to wait that these figures recommend; null where they do not tell.
    #[serde(default)]
    pub(crate) recommendation: Option<String>,
    /// Why they do not tell, and what run may; null where they do.
    #[serde(default)]
    pub(crate) undecided: Option<String>,
}

impl WaitBody {
    /// What it comes to, in a sentence: the way to use, or why none is recommended.
    pub(crate) fn advice(&self) -> Option<String> {
        let used = self.recommendation.as_ref().map(|text| format!("Use {text}."));
        used.or_else(|| self.undecided.as_ref().map(|text| format!("Undecided: {text}")))
    }
}

/// Of `soak`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct SoakBody {
    /// One run for each loop and setup.
    #[serde(flatten)]
    pub(crate) judged: Judged,
    /// Boots, batches and what else a campaign keeps.
    pub(crate) campaign: Campaign,
}

/// Of `run`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct RunBody {
    /// What happened to the tasks.
    pub(crate) supervised: Supervised,
}

/// Of `compare`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct CompareBody {
    /// Results compared with each other.
    pub(crate) compare: Comparison,
}

/// Of `tune check`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct TuneBody {
    /// The CPUs that were judged, as the kernel lists them.
    pub(crate) cpus: CpuList,
    /// Why these: "as requested", "isolated", "last allowed, none isolated".
    pub(crate) why: String,
    /// One for each setting, the most urgent first.
    pub(crate) verdicts: Vec<KnobVerdict>,
}

impl Body {
    /// The body in a result of this experiment; `None` for one that is not known.
    pub(super) fn parse(experiment: &str, text: &str) -> Option<serde_json::Result<Self>> {
        /// A kind of body from the result's text.
        fn read<'t, T: Deserialize<'t> + Into<Body>>(text: &'t str) -> serde_json::Result<Body> {
            serde_json::from_str::<T>(text).map(Into::into)
        }
        Some(match experiment {
            "check" => read::<CheckBody>(text),
            "measure periodic" => read::<PeriodicBody>(text),
            "measure wait" => read::<WaitBody>(text),
            "reproduce" => read::<ReproduceBody>(text),
            "soak" => read::<SoakBody>(text),
            "run" => read::<RunBody>(text),
            "tune check" => read::<TuneBody>(text),
            "compare" => read::<CompareBody>(text),
            "analyse" => read::<Judged>(text),
            other if other.starts_with("impact ") => read::<ImpactBody>(text),
            other => return Some(Measured::parse(other, text)?.map(Self::Measured)),
        })
    }

    /// Its loops, where some were measured.
    pub(crate) fn loops(&self) -> Option<&LoopsBody> {
        match self {
            Self::Check(check) => Some(&check.loops),
            Self::Periodic(measured) => Some(&measured.loops),
            Self::Wait(waits) => Some(&waits.loops),
            _ => None,
        }
    }

    /// Its runs and what they say, where it has any.
    fn judged(&self) -> Option<&Judged> {
        match self {
            Self::Soak(soaked) => Some(&soaked.judged),
            Self::Recorded(judged) => Some(judged),
            other => other.loops().map(|loops| &loops.judged),
        }
    }

    /// Its runs; none for a kind that has no such thing.
    pub(crate) fn runs(&self) -> &[Run] {
        match self {
            Self::Reproduce(papers) => &papers.runs,
            other => other.judged().map_or(&[], |judged| &judged.runs),
        }
    }

    /// What its runs say of applications.
    pub(crate) fn verdicts(&self) -> &[Verdict] {
        self.judged().map_or(&[], |judged| &judged.verdicts)
    }

    /// Its first lines.
    pub(crate) fn headline(&self) -> Option<&Headline> {
        self.judged().and_then(|judged| judged.headline.as_ref())
    }

    /// The rows of `measure wait`.
    pub(crate) fn strategies(&self) -> &[StrategyRow] {
        if let Self::Wait(waits) = self { &waits.strategies } else { &[] }
    }

    /// What its claims take.
    pub(crate) fn plans(&self) -> &[PlannedRun] {
        self.loops().map_or(&[], |loops| &loops.plans)
    }

    /// The rows of `check`.
    pub(crate) fn load_rows(&self) -> &[LoadRow] {
        if let Self::Check(check) = self { &check.rows } else { &[] }
    }

    /// What it is compared with.
    pub(crate) fn compare(&self) -> Option<&Comparison> {
        match self {
            Self::Check(check) => check.compare.as_ref(),
            Self::Periodic(measured) => measured.compare.as_ref(),
            Self::Compare(compared) => Some(&compared.compare),
            _ => None,
        }
    }

    /// Puts what it is compared with in its place, where the kind has one.
    pub(crate) fn set_compare(&mut self, comparison: Comparison) {
        match self {
            Self::Check(check) => check.compare = Some(comparison),
            Self::Periodic(measured) => measured.compare = Some(comparison),
            _ => {}
        }
    }
}

/// Each kind is the body of its variant.
macro_rules! kinds {
    ($($kind:ident => $variant:ident),* $(,)?) => {
        $(impl From<$kind> for Body {
            fn from(kind: $kind) -> Self {
                Self::$variant(kind)
            }
        })*
    };
}

kinds! {
    CheckBody => Check,
    PeriodicBody => Periodic,
    WaitBody => Wait,
    ReproduceBody => Reproduce,
    SoakBody => Soak,
    RunBody => Run,
    CompareBody => Compare,
    TuneBody => Tune,
    ImpactBody => Impact,
    Judged => Recorded,
}

/// A campaign of `soak`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Campaign {
    /// Its name.
    pub(crate) name: String,
    /// When it began, in seconds since 1970.
    pub(crate) began_unix_s: i64,
    /// How long it was measured in all.
    pub(crate) measured_ns: u64,
    /// How long it is to be measured; null: no end.
    pub(crate) duration_ns: Option<u64>,
    /// The boots, oldest first.
    pub(crate) boots: Vec<Boot>,
    /// How many more there were between those listed.
    pub(crate) boots_unlisted: u64,
    /// The setups, each kept apart from the others.
    pub(crate) setups: Vec<Kept>,
    /// The batches, oldest first; if there were too many, neighbours are merged.
    pub(crate) stretches: Vec<BatchRow>,
    /// The largest lateness of each of many blocks of equal length.
    pub(crate) maxima: Vec<Maxima>,
    /// The latest wakes.
    pub(crate) outliers: Vec<Late>,
    /// What happened, oldest first.
    pub(crate) events: Vec<CampaignEvent>,
    /// How many more there were between those listed.
    pub(crate) events_unlisted: u64,
    /// Limits and claims that were broken for good, in words.
    pub(crate) broken: Vec<String>,
}

/// Batches with one setup.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Kept {
    /// Its digest, as boots name it.
    pub(crate) digest: String,
    /// How long it was measured.
    pub(crate) measured_ns: u64,
    /// What it is.
    #[serde(flatten)]
    pub(crate) setup: Setup,
}

/// Block maxima of one run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Maxima {
    /// The setup, counted from 0.
    pub(crate) setup: usize,
    /// The run of that setup, counted from 0.
    pub(crate) run: usize,
    /// Cycles of each block.
    pub(crate) block_cycles: u64,
    /// Of whole blocks, oldest first.
    pub(crate) largest_ns: Vec<i64>,
}

/// One of the latest wakes.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Late {
    /// The setup, counted from 0.
    pub(crate) setup: usize,
    /// The run of that setup, counted from 0.
    pub(crate) run: usize,
    /// The wake.
    #[serde(flatten)]
    pub(crate) outlier: Outlier,
}

/// Results compared with each other.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Comparison {
    /// The family of all tests of all pairs: verdicts and intervals hold together (Holm).
    pub(crate) family: Family,
    /// The sides; the first is the reference.
    pub(crate) sides: Vec<ComparedSide>,
    /// One for each side after the first.
    pub(crate) pairs: Vec<Pair>,
}

impl Comparison {
    /// Whether a side is worse than the first, at least somewhere.
    pub(crate) fn is_worse(&self) -> bool {
        self.pairs
            .iter()
            .any(|pair| matches!(pair.verdict, compare::Verdict::Worse | compare::Verdict::Mixed))
    }
}

/// One side.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ComparedSide {
    /// "A", "B", "baseline NAME", "this run".
    pub(crate) label: String,
    /// Its results.
    pub(crate) results: Vec<ComparedResult>,
}

/// One result of a side.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ComparedResult {
    /// The file.
    pub(crate) from: String,
    /// The subcommand that measured; "samples" for a sample file alone.
    pub(crate) experiment: String,
    /// When it started, in UTC (RFC 3339).
    pub(crate) started_at: Option<String>,
    /// The kernel's release.
    pub(crate) kernel: Option<String>,
    /// Whether it ended early.
    pub(crate) incomplete: bool,
}

/// A side, compared with the first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Pair {
    /// Label of the first side.
    pub(crate) a: String,
    /// Label of the other.
    pub(crate) b: String,
    /// The verdict over all its runs.
    pub(crate) verdict: compare::Verdict,
    /// Other differences between the two sides.
    pub(crate) differences: Vec<Difference>,
    /// Warnings about the comparison.
    pub(crate) notes: Vec<String>,
    /// Runs that only A has.
    pub(crate) only_in_a: Vec<String>,
    /// Runs that only B has.
    pub(crate) only_in_b: Vec<String>,
    /// The runs that both have.
    pub(crate) runs: Vec<RunComparison>,
}

/// A difference between the two sides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Difference {
    /// The key of a fact, or the name of a part of the setup.
    pub(crate) what: String,
    /// In A.
    pub(crate) a: String,
    /// In B.
    pub(crate) b: String,
}

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
