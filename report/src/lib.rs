//! Results of punctual as plain data: schema 2 of the result files.
//!
//! For views, which show it and do no arithmetic, and for other programs that read results. It is
//! the counterpart of what the experiments give: made once, at the end of a run. The doc comments
//! of what is serialised are the descriptions in `docs/schema-2.json`. All times are in
//! nanoseconds, fractional where that says more; null means that there was too little data to say,
//! or that the machine does not tell. Opens no file and prints nothing.
//!
//! | module | what it has |
//! |---|---|
//! | here | [`Report`]: the envelope of every result, and a [`Body`] for each kind |
//! | [`measured`], [`reproduced`], [`supervised`], [`trials`] | bodies of single kinds |
//! | [`strategies`] | the ways to wait side by side, and which one to use |
//! | [`mod@format`] | numbers, times and counts in words |
#![forbid(unsafe_code)]

mod advice;
mod body;
mod cases;
mod compared;
mod follow;
pub mod format;
pub mod grid;
mod headline;
mod judge;
pub mod longer;
pub mod measured;
pub mod noise;
pub mod reproduced;
mod run;
mod stop_over;
pub mod strategies;
pub mod supervised;
pub mod trials;
mod verdict;
mod words;

use punctual_engine::safety::CpuTaken;
use punctual_host::cpulist::CpuList;
use punctual_host::explain::Explanation;
use punctual_host::facts::MachineFacts;
use punctual_host::settings::WatchedSettings;
use punctual_os::process::EndSignal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use advice::{Advice, Findings};
pub use body::{
    Body, Campaign, CheckBody, CompareBody, Impact, ImpactBody, JudgedProgram, Kept, Late,
    LoopsBody, Maxima, PeriodicBody, RecordedBody, RunBody, SoakBody, TuneBody, WaitBody,
};
pub use cases::{
    CaseFinding, CaseKind, JudgedCase, ONE_AGAINST_ONE, against_words, cases,
    measured as measured_in,
};
pub use compared::{ComparedResult, ComparedSide, Comparison, Difference, Pair};
pub use follow::{Both, Follow, PhaseError};
pub use headline::{Headline, Judged, LoopLine, judged, of_first_wait};
pub use judge::{
    About, JudgedClaim, JudgedLimit, Overall, PlannedRun, Reason, UndecidedAs, judge,
    open_where_loads_died, thresholds,
};
pub use punctual_analysis::verdict::Stands;
pub use run::{
    Approach, BlameRecording, KeptWaiting, Load, LoadDeath, LoadRow, OtherThread, OtherThreads,
    RecordedBehind, Run, RunBlame, RunEvidence, Setup, WorstWake, deaths, loads,
};
pub use stop_over::{StopOver, StoppedBy};
pub use verdict::{Answer, Question, QuestionSpec, Verdict};
pub use words::{Request, Warning, Warnings};

/// The version of this schema.
pub const SCHEMA: u32 = 2;

/// A program that writes results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// Its version: "0.1.0".
    pub version: &'static str,
    /// The commit that it was built from, with ", modified" where the sources differed from it;
    /// `None` where that is not known.
    pub commit: Option<&'static str>,
}

/// The result of one run of punctual: what every result has, and what its kind of
/// experiment adds.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Report {
    /// The part that every kind of result has.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// The part that this kind of result adds.
    #[serde(flatten)]
    pub body: Body,
}

/// The part that every kind of result has.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Envelope {
    /// 2.
    pub schema: u32,
    /// "punctual".
    pub tool: String,
    /// The tool's version.
    pub version: String,
    /// The commit that it was built from, with ", modified" where the sources differed from it;
    /// null in a build for development or from a source package.
    #[serde(default)]
    pub commit: Option<String>,
    /// The subcommand: "check", "measure periodic", "analyse", "impact stepper", "compare".
    pub experiment: String,
    /// The start, in UTC (RFC 3339); null if the data do not record it.
    pub started_at: Option<String>,
    /// True where the run ended early, or its file is incomplete.
    pub incomplete: bool,
    /// The cause of an early end; null where the run ran to its end, and in results that do not
    /// record it.
    #[serde(default)]
    pub ended_by: Option<EndedBy>,
    /// The facts of the machine, each with its origin; null if the data do not record it.
    pub machine: Option<MachineFacts>,
    /// The settings that `tune` looks at, of the machine that measured; null if the data do not
    /// record them. Of a campaign, those before its last batch.
    #[serde(default)]
    pub machine_settings: Option<WatchedSettings>,
    /// The CPUs that were measured, and the reason for these; null when not measuring.
    pub choice: Option<Choice>,
    /// The clock of the timestamps; null when not measuring.
    pub clock: Option<Clock>,
    /// Requests that the kernel granted and refused; null when not measuring.
    pub session: Option<Session>,
    /// Events on the machine during the run, such as a suspend.
    pub disturbances: Vec<Disturbance>,
    /// Warnings about the numbers.
    #[serde(flatten)]
    pub warnings: Warnings,
    /// The judgement over all limits and claims.
    pub verdict: Overall,
}

/// The CPU that was measured.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    /// The CPUs, as the kernel lists them.
    pub cpus: String,
    /// The reason for it: "isolated", "last allowed, none isolated", "as requested".
    pub why: String,
}

/// The clock of the timestamps.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Clock {
    /// "tsc", "cntvct" or "vdso".
    pub source: String,
    /// The reason why it is not the processor's counter; null where that is used.
    pub untrusted: Option<String>,
    /// The counter's ticks in a second of CLOCK_MONOTONIC.
    pub rate_hz: Option<f64>,
    /// The rate is off by at most this, relative, in parts per billion.
    pub rate_bound_ppb: Option<f64>,
    /// The rate of CLOCK_MONOTONIC, on which releases are unless they follow another clock,
    /// relative to CLOCK_MONOTONIC_RAW over the whole run, in parts per billion: how much NTP
    /// slewed it.
    pub slew_ppb: Option<f64>,
    /// The slew is off by at most this, in parts per billion.
    pub slew_bound_ppb: Option<f64>,
    /// Cost of a stamp, undisturbed: the floor under every number here.
    pub stamp_ns: f64,
    /// Cost of a look at the clock in a spin.
    pub poll_ns: f64,
    /// Cost of the stamp at a wake, which anchors the counter too.
    pub wake_ns: f64,
    /// The processor's timed pause: "TPAUSE C0.2", "TPAUSE C0.1", "MWAITX", "WFET"; null where it
    /// has none.
    #[serde(default)]
    pub timed_pause: Option<String>,
    /// The reason why spins do not use it; null where they do.
    #[serde(default)]
    pub timed_pause_off: Option<String>,
    /// Time before its instant at which a pause is to end, in ns: 99 of 100 pauses came back no
    /// later than this.
    #[serde(default)]
    pub timed_pause_lead_ns: Option<u64>,
}

impl Clock {
    /// The rate by which NTP slewed CLOCK_MONOTONIC, in words; `None` where that is not known.
    pub fn slew_words(&self) -> Option<String> {
        let (ppb, bound) = self.slew_ppb.zip(self.slew_bound_ppb)?;
        let ppb = format::whole(ppb);
        Some(format!("CLOCK_MONOTONIC slewed by {ppb} ppb (± {bound:.0})"))
    }

    /// The way of spins to pass their time, in words; `None` where the processor has no timed
    /// pause.
    pub fn pause_words(&self) -> Option<String> {
        let name = self.timed_pause.as_ref()?;
        Some(match &self.timed_pause_off {
            Some(why) => format!("spins poll, without {name}: {why}"),
            None => format!("spins pause by {name} and poll at the end"),
        })
    }
}

/// An event on the machine during the run, such as a suspend.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Disturbance {
    /// The instant at which it was seen, on CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// The event, in words.
    pub what: String,
}

impl Envelope {
    /// The envelope of a result of `experiment`, written by `program`, of which nothing is known
    /// yet.
    pub fn of(program: Program, experiment: &str) -> Self {
        Self {
            schema: SCHEMA,
            tool: "punctual".to_owned(),
            version: program.version.to_owned(),
            commit: program.commit.map(str::to_owned),
            experiment: experiment.to_owned(),
            started_at: None,
            incomplete: false,
            ended_by: None,
            machine: None,
            machine_settings: None,
            choice: None,
            clock: None,
            session: None,
            disturbances: Vec::new(),
            warnings: Warnings::default(),
            verdict: Overall::none(UndecidedAs::Itself),
        }
    }

    /// The time at which it began, to the second: "2026-11-22 21:41:07 UTC"; as it was written
    /// where that is not in UTC, and `None` where it is not known.
    pub fn started(&self) -> Option<String> {
        let at = self.started_at.as_deref()?;
        Some(match (at.get(..19), at.ends_with('Z')) {
            (Some(second), true) => second.replace('T', " ") + " UTC",
            _ => at.to_owned(),
        })
    }

    /// Returns true where a signal interrupted it: that alone explains what it lacks.
    pub fn is_interrupted(&self) -> bool {
        matches!(self.ended_by, Some(EndedBy::Interrupt | EndedBy::Terminate | EndedBy::HangUp))
    }

    /// Marks it as incomplete, by this where no cause is known.
    pub fn end_early(&mut self, cause: EndedBy) {
        self.incomplete = true;
        self.ended_by.get_or_insert(cause);
    }

    /// Adds a warning.
    pub fn warn(&mut self, warning: impl Into<Warning>) {
        self.warnings.push(warning.into());
    }

    /// Adds warnings.
    pub fn warn_of(&mut self, warnings: impl IntoIterator<Item: Into<Warning>>) {
        self.warnings.extend(warnings.into_iter().map(Into::into));
    }

    /// Puts warnings before those that it has.
    pub fn warn_first(&mut self, warnings: impl IntoIterator<Item: Into<Warning>>) {
        self.warnings.put_first(warnings.into_iter().map(Into::into));
    }

    /// Takes in what a further measurement of the same result says.
    pub fn take_in(&mut self, next: Self) {
        self.incomplete |= next.incomplete;
        self.ended_by = self.ended_by.or(next.ended_by);
        self.disturbances.extend(next.disturbances);
        for warning in next.warnings.iter() {
            if !self.warnings.contains(warning) {
                self.warnings.push(warning.clone());
            }
        }
    }
}

impl Report {
    /// A report of `experiment`, written by `program`, of which nothing but its body is known.
    pub fn new(program: Program, experiment: &str, body: impl Into<Body>) -> Self {
        Self { envelope: Envelope::of(program, experiment), body: body.into() }
    }

    /// A report from its JSON; the error has line and column.
    ///
    /// # Errors
    /// Text that is no result, and a result of an experiment that is not known here.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let envelope: Envelope = serde_json::from_str(text)?;
        let Some(body) = Body::parse(&envelope.experiment, text) else {
            return Err(ParseError::Unknown(envelope.experiment));
        };
        Ok(Self { envelope, body: body? })
    }
}

/// The reason why a text is no result.
#[derive(Debug, Error)]
pub enum ParseError {
    /// It is no JSON, or lacks what a result of its kind has.
    #[error("result is corrupt")]
    Corrupt(#[from] serde_json::Error),
    /// It is of another experiment than those of this version.
    #[error("unknown experiment {0:?}: a newer version of punctual may know it")]
    Unknown(String),
}

/// Requests that the kernel granted, and those that it refused.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    /// True where all memory was locked.
    pub memory_locked: bool,
    /// True where deep idle states were held off by /dev/cpu_dma_latency.
    pub idle_states_held: bool,
    /// Refused requests, each with the reason and the consequence.
    pub refused: Vec<Refused>,
    /// CPUs of which real-time loops left little to others; not there where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restless: Vec<RestlessCpu>,
    /// The CPUs that loads could run on; not there where none were to run, and in results of
    /// before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_cpus: Option<CpuList>,
}

/// A CPU that real-time loops left to others for less of its time than a loop that spins must.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RestlessCpu {
    /// The CPU's number.
    pub cpu: u32,
    /// The CPU time of the loops over wall time, in [0, 1].
    pub share: f64,
    /// The share that real-time tasks may use of it before throttling stops them; null where
    /// nothing is known that limits them.
    pub real_time_share: Option<f64>,
}

impl RestlessCpu {
    /// The CPU of which real-time loops took this share; `None` where they left enough to others.
    pub fn of(taken: &CpuTaken) -> Option<Self> {
        let CpuTaken { cpu, share, throttling, .. } = *taken;
        let real_time_share = throttling.map(|throttling| throttling.share);
        taken.is_restless().then_some(Self { cpu, share, real_time_share })
    }
}

impl Session {
    /// The locking of memory and the holding off of idle states, each in two or three words.
    pub fn granted_words(&self) -> [String; 2] {
        let locked = if self.memory_locked { "memory locked" } else { "memory not locked" };
        let held =
            if self.idle_states_held { "idle states held off" } else { "idle states not held off" };
        [locked, held].map(str::to_owned)
    }
}

/// A request that the kernel refused.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Refused {
    /// The request.
    #[serde(flatten)]
    pub attempt: Request,
    /// The error: a symbol of errno(3).
    pub errno: String,
    /// The consequence of going on without it, in a few words.
    #[serde(default)]
    pub price: String,
    /// The reason, the remedy, the consequence.
    #[serde(flatten)]
    pub explanation: Explanation,
}

/// The cause that ended a run before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EndedBy {
    /// SIGINT: Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGHUP: a terminal that closed.
    HangUp,
    /// The watchdog, which stopped a loop.
    Watchdog,
    /// A release that was later than `--stop-over` allows.
    Late,
    /// A load that could not be started.
    Load,
    /// The link to another machine or the source of stimuli, which was lost.
    Link,
    /// A task: it overran, or none was left.
    Task,
    /// A limit of a campaign, which was broken.
    Limit,
    /// Nothing: the campaign goes on.
    Continues,
    /// The recording: its file says that it ended early.
    Recording,
    /// The file of samples, which is cut off or damaged.
    File,
}

impl EndedBy {
    /// The signal of this number, which requested the end; SIGINT where none is known.
    pub fn of_signal(number: Option<i32>) -> Self {
        match number {
            Some(number) if number == EndSignal::Terminate as i32 => Self::Terminate,
            Some(number) if number == EndSignal::HangUp as i32 => Self::HangUp,
            _ => Self::Interrupt,
        }
    }

    /// The cause in words, in which causes that are not known are named as possible.
    fn cause(cause: Option<Self>) -> &'static str {
        match cause {
            Some(Self::Interrupt) => "interrupted (SIGINT)",
            Some(Self::Terminate) => "ended by SIGTERM",
            Some(Self::HangUp) => "ended by SIGHUP",
            Some(Self::Watchdog) => "the watchdog ended the run",
            Some(Self::Late) => "a release was later than --stop-over allows",
            Some(Self::Load) => "a load could not be started",
            Some(Self::Link) => "the link or the source of stimuli was lost",
            Some(Self::Task) => "its tasks ended it",
            Some(Self::Limit) => "a broken limit ended the campaign",
            Some(Self::Continues) => "the campaign is not over",
            Some(Self::Recording) => "the recording ended early",
            Some(Self::File) => "its file is cut off or damaged",
            None => "the run ended early or its file is cut off",
        }
    }

    /// Words that a result is incomplete, with the cause.
    pub fn brief(cause: Option<Self>) -> String {
        format!("incomplete: {}", Self::cause(cause))
    }

    /// The same, with what the figures are.
    pub fn words(cause: Option<Self>) -> String {
        let brief = Self::brief(cause);
        // The figures of a run that was measured are whole all the same.
        if cause == Some(Self::File) { brief } else { brief + "; these are the results so far" }
    }
}

#[cfg(test)]
mod tests {
    use punctual_core::time::Period;
    use punctual_engine::safety::Throttling;

    use super::*;

    #[test]
    fn an_interruption_is_nothing_else_and_other_causes_are_none() {
        let interrupted = EndedBy::words(Some(EndedBy::Interrupt));
        assert_eq!(interrupted, "incomplete: interrupted (SIGINT); these are the results so far");
        for (signal, words) in [
            (EndSignal::Interrupt, "interrupted (SIGINT)"),
            (EndSignal::Terminate, "ended by SIGTERM"),
            (EndSignal::HangUp, "ended by SIGHUP"),
        ] {
            let cause = EndedBy::of_signal(Some(signal as i32));
            assert_eq!(EndedBy::brief(Some(cause)), format!("incomplete: {words}"));
            let mut envelope = Envelope::of(Program { version: "1", commit: None }, "check");
            envelope.end_early(cause);
            assert!(envelope.is_interrupted(), "{cause:?}");
        }
        assert_eq!(EndedBy::brief(Some(EndedBy::File)), EndedBy::words(Some(EndedBy::File)));
        let json = serde_json::to_string(&EndedBy::Interrupt).expect("a word");
        assert_eq!(json, "\"interrupt\"");
        for cause in [None, Some(EndedBy::File), Some(EndedBy::Watchdog), Some(EndedBy::Link)] {
            let words = EndedBy::words(cause);
            assert!(words.starts_with("incomplete: ") && !words.contains("interrupt"), "{words}");
        }
    }

    #[test]
    fn a_cpu_of_which_little_was_left_is_data_and_one_that_was_left_enough_is_not_there() {
        let throttling = Throttling::of(950_000, 1_000_000);
        let took = CpuTaken { cpu: 1, share: 0.84, period: Period::from_ns(10_000), throttling };
        let restless =
            |taken: CpuTaken| -> Vec<RestlessCpu> { RestlessCpu::of(&taken).into_iter().collect() };
        let session = |restless| {
            let (memory_locked, idle_states_held, refused) = (true, true, Vec::new());
            let load_cpus = None;
            let session = Session { memory_locked, idle_states_held, refused, restless, load_cpus };
            serde_json::to_value(session).expect("plain data")
        };
        let json = session(restless(took));
        let expected = serde_json::json!({ "cpu": 1, "share": 0.84, "real_time_share": 0.95 });
        assert_eq!(json["restless"][0], expected);
        let unlimited = session(restless(CpuTaken { throttling: None, ..took }));
        assert!(unlimited["restless"][0]["real_time_share"].is_null(), "{unlimited}");
        let json = session(restless(CpuTaken { share: 0.4, ..took }));
        assert_eq!(json.get("restless"), None);
        let read: Session = serde_json::from_value(json).expect("as in results of before");
        assert_eq!((read.restless, read.load_cpus), (Vec::new(), None));
    }
}
