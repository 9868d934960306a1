//! What a run of the tool found, as plain data: schema 2 of the result files.
//!
//! For the views, which show it and do no arithmetic. The doc comments are the descriptions in
//! `docs/schema-2.json`. All times are in nanoseconds, fractional where that says more; null means
//! that there was too little data to say, or that the machine does not tell.

mod approach;
mod build;
mod campaign;
mod claims;
mod compare;
mod executive;
mod follow;
mod maker;
mod run;
mod session;
pub(crate) mod strategies;
pub(crate) mod supervised;
mod verdict;
mod words;

use punctual_analysis::impact::application::Application;
use punctual_analysis::impact::step_generation::StepGeneration;
use punctual_analysis::impact::stepper;
use punctual_analysis::limit::Judgement;
use punctual_host::facts::Facts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::comparison::RecordedRun;

pub(crate) use approach::Approach;
pub(crate) use build::{
    Context, UNDER_LOAD, clock, duration_ns, from_experiment, judge, run_name, stamps,
};
pub(crate) use campaign::{Campaign, Kept, Late, Maxima};
pub(crate) use claims::{JudgedClaim, PlannedRun};
pub(crate) use compare::{ComparedResult, ComparedSide, Comparison, Difference, Pair};
pub(crate) use executive::{ExecutiveRow, Ratio, Turn};
pub(crate) use follow::Follow;
pub(crate) use maker::loads;
pub(crate) use run::{Load, LoadRow, Row, Run, Setup};
pub(crate) use session::{Refused, Session};
pub(crate) use strategies::StrategyRow;
pub(crate) use supervised::Supervised;
pub(crate) use verdict::of as verdicts;
pub(crate) use words::{granted, session, warnings};

/// The version of this schema.
pub(crate) const SCHEMA: u32 = 2;

/// The result of one run of punctual.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Report {
    /// 1.
    pub(crate) schema: u32,
    /// "punctual".
    pub(crate) tool: String,
    /// The tool's version.
    pub(crate) version: String,
    /// The subcommand: "check", "measure periodic", "analyse", "impact stepper", "compare".
    pub(crate) experiment: String,
    /// When it started, in UTC (RFC 3339); null for data that does not say.
    pub(crate) started_at: Option<String>,
    /// Whether the run ended before its time, or its file did.
    pub(crate) incomplete: bool,
    /// What is known of the machine, each thing with its origin; null for data that does not say.
    pub(crate) machine: Option<Facts>,
    /// Which CPU was measured, and why that one; null when not measuring.
    pub(crate) choice: Option<Choice>,
    /// What stamps were taken with; null when not measuring.
    pub(crate) clock: Option<Clock>,
    /// How the grids followed another clock; null where they are on CLOCK_MONOTONIC.
    #[serde(default)]
    pub(crate) follow: Option<Follow>,
    /// What recording a sample cost; null when not measuring.
    pub(crate) recording: Option<Recording>,
    /// What the kernel granted; null when not measuring.
    pub(crate) session: Option<Session>,
    /// One for each loop and condition.
    pub(crate) runs: Vec<Run>,
    /// Of `check`: one row a load, the same cycles as in the run "under load". Of `measure
    /// executive`: one row a design and number of tasks, warm and cold.
    pub(crate) rows: Vec<Row>,
    /// Of `measure executive`: how the rows stand to each other.
    #[serde(default)]
    pub(crate) ratios: Vec<Ratio>,
    /// Of `measure executive`: what a turn of the loop costs; null otherwise.
    #[serde(default)]
    pub(crate) turn: Option<Turn>,
    /// Of `measure wait`: one row a way to wait, the same figures as in `runs`.
    #[serde(default)]
    pub(crate) strategies: Vec<StrategyRow>,
    /// What it is good for.
    pub(crate) verdicts: Vec<Verdict>,
    /// What the lateness does to an application; null unless asked.
    pub(crate) impact: Option<Impact>,
    /// What rate software can step at; null unless asked.
    pub(crate) step_generation: Option<StepGeneration>,
    /// Of `soak`: boots, stretches and what else a campaign keeps; null otherwise.
    #[serde(default)]
    pub(crate) campaign: Option<Campaign>,
    /// Of `run`: what became of the tasks; null otherwise.
    #[serde(default)]
    pub(crate) supervised: Option<Supervised>,
    /// Results held against each other; null unless asked.
    pub(crate) compare: Option<Comparison>,
    /// What happened to the machine during the run that no sample can tell.
    pub(crate) disturbances: Vec<Disturbance>,
    /// What a reader should know before believing the numbers.
    pub(crate) warnings: Vec<String>,
    /// What each claim takes, for each run, as it was said before the start.
    #[serde(default)]
    pub(crate) plans: Vec<PlannedRun>,
    /// Whether all limits and claims hold.
    pub(crate) verdict: Overall,
    /// The runs as comparisons see them, recorded on the way.
    #[serde(skip)]
    pub(crate) recorded: Vec<RecordedRun>,
    /// Where the samples are, for the views.
    #[serde(skip)]
    pub(crate) results: Option<String>,
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

/// The CPU that was measured.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Choice {
    /// The CPUs, as the kernel lists them.
    pub(crate) cpus: String,
    /// Why: "isolated", "last allowed, none isolated", "as asked".
    pub(crate) why: String,
}

/// What stamps were taken with.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Clock {
    /// "tsc", "cntvct" or "vdso".
    pub(crate) source: String,
    /// Why not the processor's counter; null where it is used.
    pub(crate) untrusted: Option<String>,
    /// The counter's ticks in a second of CLOCK_MONOTONIC.
    pub(crate) rate_hz: Option<f64>,
    /// The rate is off by at most this, relative, in parts per billion.
    pub(crate) rate_bound_ppb: Option<f64>,
    /// CLOCK_MONOTONIC, on which releases are where they follow no other clock, against
    /// CLOCK_MONOTONIC_RAW over the whole run, in parts per billion: how much NTP steered it.
    pub(crate) slew_ppb: Option<f64>,
    /// The slew is off by at most this, in parts per billion.
    pub(crate) slew_bound_ppb: Option<f64>,
    /// Median cost of a stamp: the floor under every number here.
    pub(crate) stamp_ns: f64,
    /// Median cost of a look at the clock in a spin.
    pub(crate) poll_ns: f64,
    /// Median cost of the stamp at a wake, which anchors the counter too.
    pub(crate) wake_ns: f64,
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

/// What happened to the machine.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Disturbance {
    /// When it was seen, on CLOCK_MONOTONIC.
    pub(crate) at_ns: u64,
    /// What, in words.
    pub(crate) what: String,
}

/// What a machine is good for, in the unit of one application.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Verdict {
    /// "loop", "software stepping", "stepper", "rarer events".
    pub(crate) application: String,
    /// "yes", "no" or "unknown".
    pub(crate) answer: Answer,
    /// In a sentence.
    pub(crate) statement: String,
    /// For "loop": the shortest period that holds.
    pub(crate) period_ns: Option<f64>,
    /// For "loop" and steps: the highest rate that holds.
    pub(crate) rate_hz: Option<f64>,
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Answer {
    /// It is good for that.
    Yes,
    /// It is not.
    No,
    /// This run cannot tell.
    Unknown,
}

/// Whether all limits and claims hold.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Overall {
    /// True when every limit and claim holds for every run, and when none was given.
    pub(crate) ok: bool,
    /// One for each limit and run.
    pub(crate) limits: Vec<JudgedLimit>,
    /// One for each claim that was asked and run.
    #[serde(default)]
    pub(crate) claims: Vec<JudgedClaim>,
    /// Why not, one line each.
    pub(crate) reasons: Vec<String>,
}

/// A limit, judged on one run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct JudgedLimit {
    /// The run's name.
    pub(crate) run: String,
    /// The judgement.
    #[serde(flatten)]
    pub(crate) judgement: Judgement,
}

impl Report {
    /// A report of `experiment` in which nothing is known yet.
    pub(crate) fn empty(experiment: &str) -> Self {
        Self {
            schema: SCHEMA,
            tool: "punctual".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            experiment: experiment.to_owned(),
            started_at: None,
            incomplete: false,
            machine: None,
            choice: None,
            clock: None,
            follow: None,
            recording: None,
            session: None,
            runs: Vec::new(),
            rows: Vec::new(),
            ratios: Vec::new(),
            turn: None,
            strategies: Vec::new(),
            verdicts: Vec::new(),
            impact: None,
            step_generation: None,
            campaign: None,
            supervised: None,
            compare: None,
            disturbances: Vec::new(),
            warnings: Vec::new(),
            plans: Vec::new(),
            verdict: Overall { ok: true, ..Overall::default() },
            recorded: Vec::new(),
            results: None,
        }
    }
}
