//! What a run of the tool found, as plain data: schema 2 of the result files.
//!
//! For the views, which show it and do no arithmetic. The doc comments are the descriptions in
//! `docs/schema-2.json`. All times are in nanoseconds, fractional where that says more; null means
//! that there was too little data to say, or that the machine does not tell.

mod advice;
mod approach;
pub(crate) mod body;
mod campaign;
mod claims;
mod compare;
mod ended;
mod follow;
mod front;
mod headline;
mod impact;
mod judge;
pub(crate) mod measured;
pub(crate) mod reproduced;
mod run;
mod session;
mod strategies;
pub(crate) mod supervised;
pub(crate) mod traces;
pub(crate) mod trials;
mod verdict;

use anyhow::{Context as _, Result, bail};
use punctual_host::facts::MachineFacts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use advice::{Advice, Findings, NOTE_GUEST, NOTE_ORDINARY};
pub(crate) use approach::Approach;
pub(crate) use body::{
    Body, CheckBody, CompareBody, Judged, LoopsBody, PeriodicBody, RunBody, SoakBody, WaitBody,
};
pub(crate) use campaign::{Campaign, Kept, Late, Maxima};
pub(crate) use claims::{PlannedRun, thresholds};
pub(crate) use compare::{ComparedResult, ComparedSide, Comparison, Difference, Pair};
pub(crate) use ended::EndedBy;
pub(crate) use follow::Follow;
pub(crate) use front::{FrontComparison, Swept, compared};
pub(crate) use headline::{Headline, LoopLine, judged, of_first_wait};
pub(crate) use impact::{Impact, ImpactBody};
pub(crate) use judge::{ENDED_EARLY, Overall, judge, open_where_loads_died};
pub(crate) use measured::{ExecutiveBody, Recording};
pub(crate) use punctual_analysis::verdict::Stands;
pub(crate) use run::{Load, LoadRow, Run, Setup, deaths, loads};
pub(crate) use session::{Refused, Session, policy_words};
pub(crate) use strategies::{StrategyRow, WaitAdvice, advice, of as strategies};
pub(crate) use verdict::{Answer, Question, Verdict};

/// The version of this schema.
pub(crate) const SCHEMA: u32 = 2;

/// The result of one run of punctual: what every result has, and what its kind of
/// experiment adds.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Report {
    /// What every result has.
    #[serde(flatten)]
    pub(crate) envelope: Envelope,
    /// What this kind of result has.
    #[serde(flatten)]
    pub(crate) body: Body,
}

/// What every result has, whatever was done.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Envelope {
    /// 2.
    pub(crate) schema: u32,
    /// "punctual".
    pub(crate) tool: String,
    /// The tool's version.
    pub(crate) version: String,
    /// The commit that it was built from, with ", modified" where the sources differed from it;
    /// null in a build for development or from a source package.
    #[serde(default)]
    pub(crate) commit: Option<String>,
    /// The subcommand: "check", "measure periodic", "analyse", "impact stepper", "compare".
    pub(crate) experiment: String,
    /// When it started, in UTC (RFC 3339); null if the data do not record it.
    pub(crate) started_at: Option<String>,
    /// Whether the run ended early, or its file is incomplete.
    pub(crate) incomplete: bool,
    /// What ended an incomplete run before its time; null where it ran to its end, and in results
    /// that do not tell.
    #[serde(default)]
    pub(crate) ended_by: Option<EndedBy>,
    /// The facts of the machine, each with its origin; null if the data do not record it.
    pub(crate) machine: Option<MachineFacts>,
    /// Which CPU was measured, and why that one; null when not measuring.
    pub(crate) choice: Option<Choice>,
    /// The clock of the timestamps; null when not measuring.
    pub(crate) clock: Option<Clock>,
    /// What the kernel granted; null when not measuring.
    pub(crate) session: Option<Session>,
    /// Events on the machine during the run, such as a suspend.
    pub(crate) disturbances: Vec<Disturbance>,
    /// Warnings about the numbers.
    pub(crate) warnings: Vec<String>,
    /// Whether all limits and claims hold.
    pub(crate) verdict: Overall,
}

/// The CPU that was measured.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Choice {
    /// The CPUs, as the kernel lists them.
    pub(crate) cpus: String,
    /// Why: "isolated", "last allowed, none isolated", "as requested".
    pub(crate) why: String,
}

/// The clock of the timestamps.
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
    /// The rate of CLOCK_MONOTONIC, on which releases are unless they follow another clock,
    /// relative to CLOCK_MONOTONIC_RAW over the whole run, in parts per billion: how much NTP
    /// slewed it.
    pub(crate) slew_ppb: Option<f64>,
    /// The slew is off by at most this, in parts per billion.
    pub(crate) slew_bound_ppb: Option<f64>,
    /// Cost of a stamp, undisturbed: the floor under every number here.
    pub(crate) stamp_ns: f64,
    /// Cost of a look at the clock in a spin.
    pub(crate) poll_ns: f64,
    /// Cost of the stamp at a wake, which anchors the counter too.
    pub(crate) wake_ns: f64,
    /// The processor's timed pause: "TPAUSE C0.2", "TPAUSE C0.1", "MWAITX", "WFET"; null where it
    /// has none.
    #[serde(default)]
    pub(crate) timed_pause: Option<String>,
    /// Why spins do not use it; null where they do.
    #[serde(default)]
    pub(crate) timed_pause_off: Option<String>,
    /// How long before its instant a pause is to end: but for 1 in 100 it came back that late.
    #[serde(default)]
    pub(crate) timed_pause_lead_ns: Option<u64>,
}

impl Clock {
    /// Whether spins pause the processor, in words; `None` where it has no such instruction.
    pub(crate) fn pause_words(&self) -> Option<String> {
        let name = self.timed_pause.as_ref()?;
        Some(match &self.timed_pause_off {
            Some(why) => format!("spins poll, without {name}: {why}"),
            None => format!("spins pause by {name} and poll at the end"),
        })
    }
}

/// What happened to the machine.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Disturbance {
    /// When it was seen, on CLOCK_MONOTONIC.
    pub(crate) at_ns: u64,
    /// What, in words.
    pub(crate) what: String,
}

impl Envelope {
    /// Of a result of `experiment` of which nothing is known yet.
    pub(crate) fn of(experiment: &str) -> Self {
        Self {
            schema: SCHEMA,
            tool: "punctual".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: Some(env!("PUNCTUAL_COMMIT")).filter(|id| !id.is_empty()).map(str::to_owned),
            experiment: experiment.to_owned(),
            started_at: None,
            incomplete: false,
            ended_by: None,
            machine: None,
            choice: None,
            clock: None,
            session: None,
            disturbances: Vec::new(),
            warnings: Vec::new(),
            verdict: Overall { ok: true, ..Overall::default() },
        }
    }

    /// Whether it was interrupted: what it lacks is explained by that alone.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.ended_by == Some(EndedBy::Interrupt)
    }

    /// Marks it as incomplete, by this where no cause is known.
    pub(crate) fn end_early(&mut self, cause: EndedBy) {
        self.incomplete = true;
        self.ended_by.get_or_insert(cause);
    }

    /// Takes in what a further measurement of the same result says.
    pub(crate) fn take_in(&mut self, next: Self) {
        self.incomplete |= next.incomplete;
        self.ended_by = self.ended_by.or(next.ended_by);
        self.disturbances.extend(next.disturbances);
        for warning in next.warnings {
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
    }
}

impl Report {
    /// A report of `experiment` of which nothing but its body is known.
    pub(crate) fn new(experiment: &str, body: impl Into<Body>) -> Self {
        Self { envelope: Envelope::of(experiment), body: body.into() }
    }

    /// A report from its JSON; the error has line and column.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let damaged = "result is corrupt";
        let envelope: Envelope = serde_json::from_str(text).context(damaged)?;
        let Some(body) = Body::parse(&envelope.experiment, text) else {
            bail!(
                "unknown experiment {:?}: a newer version of punctual may know it",
                envelope.experiment
            );
        };
        Ok(Self { envelope, body: body.context(damaged)? })
    }
}
