//! The bodies of results: one variant for each kind of result.
//!
//! Plain data. A result's `experiment` decides its kind; keys of other kinds, which results of
//! earlier versions have as null or empty, are passed over.

use punctual_analysis::campaign::{BatchRow, Boot, CampaignEvent, Outlier, Setup};
use punctual_analysis::impact::step_generation::StepGeneration;
use punctual_analysis::impact::{Application, stepper};
use punctual_host::CpuList;
use punctual_host::rules::KnobVerdict;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::compared::Comparison;
use crate::follow::Follow;
use crate::grid::{self, FigureGrid, SideFigures};
use crate::headline::{Headline, Judged};
use crate::judge::{About, Overall, PlannedRun};
use crate::measured::{Measured, Recording};
use crate::reproduced::ReproduceBody;
use crate::run::{BlameRecording, LoadRow, Run};
use crate::stop_over::StopOver;
use crate::strategies::{FrontComparison, StrategyRow};
use crate::supervised::Supervised;
use crate::verdict::Verdict;

/// The part of a result that its kind of experiment adds.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Body {
    /// The body of `check`.
    Check(CheckBody),
    /// The body of `measure periodic`.
    Periodic(PeriodicBody),
    /// The body of `measure wait`.
    Wait(WaitBody),
    /// The body of another experiment of the lab.
    Measured(Measured),
    /// The body of `reproduce`.
    Reproduce(ReproduceBody),
    /// The body of `soak`.
    Soak(SoakBody),
    /// The body of `run`.
    Run(RunBody),
    /// The body of `compare`.
    Compare(CompareBody),
    /// The body of `tune check`, and of `sched check`.
    Tune(TuneBody),
    /// The body of `impact`.
    Impact(ImpactBody),
    /// The body of `analyse`: recorded data.
    Recorded(RecordedBody),
}

/// Loops that were measured.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct LoopsBody {
    /// The runs, with their verdicts and first lines.
    #[serde(flatten)]
    pub judged: Judged,
    /// The clock that the grids followed, and their phase error; null where they are on
    /// CLOCK_MONOTONIC.
    #[serde(default)]
    pub follow: Option<Follow>,
    /// The cost of recording a sample; null when nothing was measured.
    pub recording: Option<Recording>,
    /// The cycles that each claim needs, for each run, as reported before the start.
    #[serde(default)]
    pub plans: Vec<PlannedRun>,
    /// The recording of the kernel's events for the causes of late wakes, and its price; not there
    /// where none was to be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blame: Option<BlameRecording>,
    /// The lateness beyond which a release ends the run, and the release that did end it; not there
    /// unless requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_over: Option<StopOver>,
}

/// The body of `check`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct CheckBody {
    /// The loop, its runs and verdicts.
    #[serde(flatten)]
    pub loops: LoopsBody,
    /// One row per load, with the same cycles as the run "under load".
    pub rows: Vec<LoadRow>,
    /// Compared with a baseline; null unless requested.
    pub compare: Option<Comparison>,
}

/// The body of `measure periodic`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PeriodicBody {
    /// The loops, their runs and verdicts.
    #[serde(flatten)]
    pub loops: LoopsBody,
    /// Compared with a baseline; null unless requested.
    pub compare: Option<Comparison>,
}

/// The body of `measure wait`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct WaitBody {
    /// The loop, its runs and verdicts.
    #[serde(flatten)]
    pub loops: LoopsBody,
    /// One row per wait policy, with the same figures as in `runs`.
    #[serde(default)]
    pub strategies: Vec<StrategyRow>,
    /// The learned wait of a sweep held against other ways, in turns that did not choose them.
    #[serde(default)]
    pub front: Vec<FrontComparison>,
    /// The way to wait that these figures recommend; null where they do not tell.
    #[serde(default)]
    pub recommendation: Option<String>,
    /// The reason why they do not tell, and the run that may; null where they do.
    #[serde(default)]
    pub undecided: Option<String>,
    /// The sentence that none of the ways holds the deadline in question; not there where one may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_way: Option<String>,
}

impl WaitBody {
    /// Returns true where a way was swept over its parameters: it has several rows.
    pub fn is_sweep(&self) -> bool {
        let mut rows = self.strategies.iter().enumerate();
        rows.any(|(at, row)| self.strategies[..at].iter().any(|other| other.name == row.name))
    }

    /// Judges by the answer to the deadline: that none of the ways holds it fails, and what is not
    /// known is left open.
    pub fn judge_answer(&self, verdict: &mut Overall) {
        if self.recommendation.is_some() {
            return;
        }
        let none = || "no way to wait was judged".to_owned();
        let answer = self.advice().unwrap_or_else(none);
        match self.no_way {
            Some(_) => verdict.fail_about(About::Answer { at: 0 }, answer),
            None => verdict.leave_open(About::Answer { at: 0 }, answer),
        }
    }

    /// Returns true where each way was judged by a deadline.
    pub fn has_deadline(&self) -> bool {
        self.strategies.iter().any(|row| row.held.is_some())
    }

    /// The result in a sentence: the way to use, or why none is recommended.
    pub fn advice(&self) -> Option<String> {
        let used = self.recommendation.as_ref().map(|text| format!("Use {text}."));
        let open = || self.undecided.as_ref().map(|text| format!("Undecided: {text}"));
        used.or_else(open).or_else(|| self.no_way.as_ref().map(|text| format!("No: {text}.")))
    }
}

/// The body of `analyse`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct RecordedBody {
    /// The runs, with their verdicts and first lines.
    #[serde(flatten)]
    pub judged: Judged,
    /// The recording of the kernel's events while these runs were measured, as their result has it;
    /// not there where none was to be made, and without a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blame: Option<BlameRecording>,
    /// The comparison with a baseline; not there unless requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compare: Option<Comparison>,
}

impl From<Judged> for Body {
    fn from(judged: Judged) -> Self {
        Self::Recorded(RecordedBody { judged, ..RecordedBody::default() })
    }
}

/// The body of `soak`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SoakBody {
    /// One run for each loop and setup.
    #[serde(flatten)]
    pub judged: Judged,
    /// Boots, batches and what else a campaign keeps.
    pub campaign: Campaign,
}

/// The body of `run`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunBody {
    /// The tasks and the thread that released them, with their counts.
    pub supervised: Supervised,
}

/// The body of `compare`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CompareBody {
    /// Results compared with each other.
    pub compare: Comparison,
}

/// A program that was judged as it ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JudgedProgram {
    /// Its process id.
    pub pid: i32,
    /// The name of its process.
    pub name: String,
    /// Its threads.
    pub threads: u64,
    /// Time for which it was watched, in ns.
    pub watched_ns: u64,
}

/// The body of `tune check`, and of `sched check`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TuneBody {
    /// The CPUs that were judged, as the kernel lists them.
    pub cpus: CpuList,
    /// The reason for these: "as requested", "isolated", "last allowed, none isolated".
    pub why: String,
    /// The workload that they were judged for, as `--for` names it; not there where none was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// The program that was judged on them; not there of the machine itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<JudgedProgram>,
    /// One for each setting, the most urgent first.
    pub verdicts: Vec<KnobVerdict>,
}

impl Body {
    /// Returns true where results of this kind stand side by side on a grid of their figures.
    pub fn has_grid(&self) -> bool {
        self.on_grid().is_some()
    }

    /// The grid of results of this experiment, the first of which is what others are held against;
    /// `None` where one of them has no figures for it.
    pub fn grid(experiment: &str, bodies: &[&Self]) -> Option<FigureGrid> {
        let sides = bodies.iter().map(|body| body.on_grid()).collect::<Option<_>>()?;
        Some(FigureGrid::of(experiment, sides))
    }

    /// The figures and claims that a result of a kind that has a grid puts there; `None` of the
    /// other kinds.
    fn on_grid(&self) -> Option<SideFigures> {
        let figures = match self {
            Self::Measured(Measured::Response(body)) => grid::of_response(&body.response),
            Self::Measured(Measured::Saturation(body)) => grid::of_saturation(&body.saturation),
            Self::Measured(Measured::Accuracy(body)) => grid::of_accuracy(&body.accuracy),
            Self::Measured(Measured::Executive(body)) => grid::of_executive(body),
            Self::Reproduce(body) => return Some(body.on_grid()),
            _ => return None,
        };
        Some(SideFigures { figures, claims: Vec::new() })
    }

    /// The body in a result of this experiment; `None` for one that is not known.
    pub(crate) fn parse(experiment: &str, text: &str) -> Option<serde_json::Result<Self>> {
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
            "tune check" | "sched check" => read::<TuneBody>(text),
            "compare" => read::<CompareBody>(text),
            "analyse" => read::<RecordedBody>(text),
            impact if impact.starts_with("impact ") => read::<ImpactBody>(text),
            _ => return Some(Measured::parse(experiment, text)?.map(Self::Measured)),
        })
    }

    /// Its loops, where some were measured.
    pub fn loops(&self) -> Option<&LoopsBody> {
        match self {
            Self::Check(check) => Some(&check.loops),
            Self::Periodic(measured) => Some(&measured.loops),
            Self::Wait(waits) => Some(&waits.loops),
            _ => None,
        }
    }

    /// The recording of the kernel's events beside its runs, where one was to be made.
    pub fn blame_recording(&self) -> Option<&BlameRecording> {
        match self {
            Self::Recorded(recorded) => recorded.blame.as_ref(),
            _ => self.loops()?.blame.as_ref(),
        }
    }

    /// Its runs and what they say, where it has any.
    fn judged(&self) -> Option<&Judged> {
        match self {
            Self::Soak(soaked) => Some(&soaked.judged),
            Self::Recorded(recorded) => Some(&recorded.judged),
            _ => self.loops().map(|loops| &loops.judged),
        }
    }

    /// Its runs; none for a kind that has no such thing.
    pub fn runs(&self) -> &[Run] {
        match self {
            Self::Reproduce(papers) => &papers.runs,
            _ => self.judged().map_or(&[], |judged| &judged.runs),
        }
    }

    /// The answers of its runs for applications; none for a kind without runs that are judged.
    pub fn verdicts(&self) -> &[Verdict] {
        self.judged().map_or(&[], |judged| &judged.verdicts)
    }

    /// Its first lines.
    pub fn headline(&self) -> Option<&Headline> {
        self.judged().and_then(|judged| judged.headline.as_ref())
    }

    /// The rows of `measure wait`.
    pub fn strategies(&self) -> &[StrategyRow] {
        if let Self::Wait(waits) = self { &waits.strategies } else { &[] }
    }

    /// The cycles that its claims need; none for a kind without loops.
    pub fn plans(&self) -> &[PlannedRun] {
        self.loops().map_or(&[], |loops| &loops.plans)
    }

    /// The rows of `check`.
    pub fn load_rows(&self) -> &[LoadRow] {
        if let Self::Check(check) = self { &check.rows } else { &[] }
    }

    /// Its comparison with other results; `None` where none was made.
    pub fn compare(&self) -> Option<&Comparison> {
        match self {
            Self::Check(check) => check.compare.as_ref(),
            Self::Periodic(measured) => measured.compare.as_ref(),
            Self::Compare(compared) => Some(&compared.compare),
            Self::Reproduce(papers) => papers.beside.as_ref(),
            Self::Recorded(recorded) => recorded.compare.as_ref(),
            _ => None,
        }
    }

    /// Sets its comparison with other results, where the kind has one.
    pub fn set_compare(&mut self, comparison: Comparison) {
        match self {
            Self::Check(check) => check.compare = Some(comparison),
            Self::Periodic(measured) => measured.compare = Some(comparison),
            Self::Reproduce(papers) => papers.beside = Some(comparison),
            Self::Recorded(recorded) => recorded.compare = Some(comparison),
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
    RecordedBody => Recorded,
}

/// A campaign of `soak`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Campaign {
    /// Its name.
    pub name: String,
    /// The instant at which it began, in seconds since 1970.
    pub began_unix_s: i64,
    /// Time measured in all, in ns.
    pub measured_ns: u64,
    /// Time to be measured in all, in ns; null: no end.
    pub duration_ns: Option<u64>,
    /// The boots, oldest first.
    pub boots: Vec<Boot>,
    /// Further boots between those listed.
    pub boots_unlisted: u64,
    /// The setups, each kept apart from the others.
    pub setups: Vec<Kept>,
    /// The batches, oldest first; if there were too many, neighbours are merged.
    pub stretches: Vec<BatchRow>,
    /// The largest lateness of each of many blocks of equal length.
    pub maxima: Vec<Maxima>,
    /// The latest wakes.
    pub outliers: Vec<Late>,
    /// Events of the campaign, oldest first.
    pub events: Vec<CampaignEvent>,
    /// Further events between those listed.
    pub events_unlisted: u64,
    /// Limits and claims that were broken for good, in words.
    pub broken: Vec<String>,
}

/// Batches with one setup.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Kept {
    /// Its digest, as boots name it.
    pub digest: String,
    /// Time measured with this setup, in ns.
    pub measured_ns: u64,
    /// The loops, policy, loads, kernel and settings.
    #[serde(flatten)]
    pub setup: Setup,
}

/// Block maxima of one run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Maxima {
    /// The setup, counted from 0.
    pub setup: usize,
    /// The run of that setup, counted from 0.
    pub run: usize,
    /// Cycles of each block.
    pub block_cycles: u64,
    /// The largest lateness of each whole block, in ns, oldest first.
    pub largest_ns: Vec<i64>,
}

/// One of the latest wakes.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Late {
    /// The setup, counted from 0.
    pub setup: usize,
    /// The run of that setup, counted from 0.
    pub run: usize,
    /// The wake, with its lateness.
    #[serde(flatten)]
    pub outlier: Outlier,
}

/// The body of `impact`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ImpactBody {
    /// The effects of the lateness on the application.
    pub impact: Impact,
    /// The rate that software stepping reaches; null unless requested.
    pub step_generation: Option<StepGeneration>,
}

/// The effects of a loop's lateness on an application.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Impact {
    /// The effects on a stepper motor, of `impact stepper`.
    Stepper(stepper::Impact),
    /// The effects on any other application.
    Application(Application),
}

impl Impact {
    /// The result in words.
    pub fn statement(&self) -> &String {
        match self {
            Self::Stepper(impact) => &impact.statement,
            Self::Application(impact) => &impact.statement,
        }
    }
}
