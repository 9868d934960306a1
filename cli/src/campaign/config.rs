//! The options that a campaign keeps, and the configuration that they come to.

use std::collections::BTreeMap;

use anyhow::{Context, Error, Result, anyhow, bail};
use clap::ValueEnum;
use punctual_analysis::campaign::different;
use punctual_analysis::claim::ask::Ask;
use punctual_analysis::limit::MetricLimit;
use punctual_core::time::Span;
use punctual_core::wait::adaptive::Target;
use punctual_lab::load::Loads;
use punctual_lab::periodic::WaitKind;
use punctual_report::{self as report, QuestionSpec, UndecidedAs};

use crate::args::{CpusArgs, PeriodsArgs, PolicyName, ReportArgs, UndecidedArgs, WaitName};
use crate::experiment::choices::{LoopChoices, wait_kind};
use crate::parse::{self, Phase};
use crate::question::{self, QuestionArgs};

/// The longest value that a campaign keeps, in characters.
const VALUE_MAX: usize = 400;

/// Options that decide how loops run: with other ones it is another measurement.
const DECIDING: [&str; 9] =
    ["cpu", "every", "keep-cold", "load", "period", "phase", "policy", "priority", "wait"];

/// The options that a campaign keeps from session to session.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct CampaignArgs {
    /// How long to measure, in all batches of all boots together [default: no end]
    #[arg(long, short, allow_hyphen_values = true, value_parser = parse::duration)]
    duration: Option<parse::Duration>,
    #[command(flatten)]
    cpus: CpusArgs,
    #[command(flatten)]
    periods: PeriodsArgs,
    #[command(flatten)]
    question: QuestionArgs,
    /// The scheduling policy to request [default: fifo]
    #[arg(long, value_enum)]
    policy: Option<PolicyName>,
    /// The priority to request, as the kernel counts: 98 is the highest [default: 90]
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=98))]
    priority: Option<u8>,
    /// How to wait for a release [default: sleep]
    #[arg(long, value_enum)]
    wait: Option<WaitName>,
    /// Offset of the grid from multiples of the period on CLOCK_MONOTONIC: zero or a duration
    /// [default: zero]
    #[arg(long, allow_hyphen_values = true)]
    phase: Option<Phase>,
    /// Loads to run during the measurement, as for 'measure periodic'; loads in turn all run within
    /// each batch [default: none]
    #[arg(long, value_parser = parse::loads)]
    load: Option<Loads>,
    /// Length of a batch; each ends with a printed line and a new result.json [default: 1h]
    #[arg(long, allow_hyphen_values = true, value_parser = parse::duration)]
    every: Option<parse::Duration>,
    /// Fail (exit 1) unless this limit holds for the whole campaign: 'p99.9<50us', 'max<1ms',
    /// 'missed<1'; checked each time the state is saved, and reported as soon as it cannot hold any
    /// more; may be given again
    #[arg(
        long = "limit",
        value_name = "LIMIT",
        allow_hyphen_values = true,
        value_parser = limit
    )]
    limits: Vec<MetricLimit>,
    /// Fail unless the campaign shows this claim (exit 1 where it is shown to be false, else what
    /// --undecided says): 'p(lateness>50us)<1e-6'; its bounds stay valid however often it is
    /// checked; may be given again
    #[arg(
        long = "claim",
        value_name = "CLAIM",
        allow_hyphen_values = true,
        value_parser = ask
    )]
    claims: Vec<Ask>,
    /// Fail (exit 1) also where a claim holds only if late releases come alone
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    undecided: UndecidedArgs,
    /// Print everything: the machine, all measures, what can be claimed
    #[arg(long, short)]
    verbose: bool,
    /// Include the cold cycles at the start of each block, which are left out by default
    #[arg(long)]
    keep_cold: bool,
}

impl CampaignArgs {
    /// Returns true where everything is shown.
    pub(crate) fn is_verbose(&self) -> bool {
        self.verbose
    }
}

/// A campaign fits no grid: none lasts over boots.
fn limit(text: &str) -> Result<MetricLimit, String> {
    use punctual_analysis::limit::Metric::{JitterPp, JitterRms};
    let limit = parse::limit(text)?;
    match limit.metric() {
        JitterPp | JitterRms => Err(format!(
            "{limit}: a campaign has no fitted grid, because no grid lasts over a reboot; \
             'punctual measure periodic' has one"
        )),
        _ => Ok(limit),
    }
}

fn ask(text: &str) -> Result<Ask, String> {
    Ask::parse(text).map_err(|why| why.to_string())
}

/// The configuration of a campaign.
#[derive(Clone, Debug)]
pub(crate) struct CampaignConfig {
    cpu: Option<String>,
    period: Vec<parse::Duration>,
    policy: PolicyName,
    priority: u8,
    wait: WaitName,
    phase: Phase,
    load: Loads,
    /// The length of a batch.
    pub(crate) every: Span,
    /// The time to measure in all; `None`: without end.
    pub(crate) duration: Option<Span>,
    /// True where cold cycles count.
    pub(crate) keep_cold: bool,
    /// The limits on all of it.
    pub(crate) limits: Vec<MetricLimit>,
    /// And the claims that it is to show.
    pub(crate) claims: Vec<Ask>,
    /// True where a claim fails that holds only if late releases come alone.
    pub(crate) strict: bool,
    /// The question that it answers beside them.
    pub(crate) question: Option<QuestionSpec>,
    /// True where a "no" to the question fails.
    pub(crate) gate: bool,
    /// The result that judgements which are not decided count as; of this session alone.
    pub(crate) undecided: UndecidedAs,
    /// True where everything is shown; of this session alone.
    pub(crate) verbose: bool,
}

impl CampaignConfig {
    /// The options given now, on top of those that a campaign keeps.
    ///
    /// # Errors
    /// A value that it keeps cannot be read, or one is too long to keep.
    pub(crate) fn of(args: &CampaignArgs, kept: &BTreeMap<String, String>) -> Result<Self> {
        let kept = Kept(kept);
        let requested = &args.periods.period;
        let period = match args.question.periods() {
            None if requested.is_empty() => kept.list("period", "1ms", parse::period)?,
            _ => args.question.periods_to_run(requested).map_err(Error::msg)?,
        };
        let limits = if args.limits.is_empty() {
            kept.list("limit", "", parse::limit)?
        } else {
            args.limits.clone()
        };
        let claims = if args.claims.is_empty() {
            kept.list("claim", "", |text| Ask::parse(text).map_err(|why| why.to_string()))?
        } else {
            args.claims.clone()
        };
        let config = Self {
            cpu: args.cpus.cpu.clone().or_else(|| kept.get("cpu").map(str::to_owned)),
            period,
            policy: kept
                .or(args.policy, "policy", PolicyName::Fifo, |t| PolicyName::from_str(t, false))?,
            priority: kept.or(args.priority, "priority", 90, |text| {
                let number = text.parse().ok().filter(|n| (1..=98).contains(n));
                number.ok_or_else(|| "must be 1 to 98".to_owned())
            })?,
            wait: kept
                .or(args.wait, "wait", WaitName::default(), |t| WaitName::from_str(t, false))?,
            phase: kept.or(args.phase, "phase", Phase::At(0), str::parse)?,
            load: match (&args.load, kept.get("load")) {
                (Some(load), _) => load.clone(),
                (None, text) => parse::loads(text.unwrap_or("none")).map_err(broken("load"))?,
            },
            every: kept.or(args.every, "every", HOUR, parse::duration)?.0,
            duration: match (args.duration, kept.get("duration")) {
                (Some(now), _) => Some(now.0),
                (None, None) => None,
                (None, Some(text)) => Some(parse::duration(text).map_err(broken("duration"))?.0),
            },
            keep_cold: args.keep_cold || kept.get("keep-cold").is_some(),
            limits,
            claims,
            strict: args.strict || kept.get("strict").is_some(),
            question: match args.question.spec() {
                Some(spec) => Some(spec),
                None => kept.spec()?,
            },
            gate: args.question.is_gate() || kept.get("gate").is_some(),
            undecided: args.undecided.counts_as(),
            verbose: args.verbose,
        };
        config.check()?;
        Ok(config)
    }

    /// The configuration that a campaign keeps, with the limits, claims and question of now in the
    /// place of its own where there are any.
    ///
    /// # Errors
    /// A value that it keeps cannot be read.
    pub(crate) fn kept(
        kept: &BTreeMap<String, String>,
        report: &ReportArgs,
        question: &QuestionArgs,
    ) -> Result<Self> {
        let (limits, claims) = (report.limits.clone(), report.claims.clone());
        let args = CampaignArgs {
            limits,
            claims,
            strict: report.strict,
            undecided: report.undecided,
            ..CampaignArgs::default()
        };
        let config = Self::of(&args, kept)?;
        let question_spec = question.spec().or(config.question);
        Ok(Self { question: question_spec, gate: config.gate || question.is_gate(), ..config })
    }

    fn check(&self) -> Result<()> {
        if self.every < EVERY_MIN {
            bail!("--every must be at least {EVERY_MIN}");
        }
        if self.phase == Phase::Quiet {
            bail!("--phase quiet: the quiet phase can differ from boot to boot; give a duration");
        }
        for (name, value) in self.words() {
            if value.chars().count() > VALUE_MAX || value.contains(char::is_control) {
                bail!(
                    "--{name}: must be at most {VALUE_MAX} characters, without control characters"
                );
            }
        }
        Ok(())
    }

    /// The words of each option, as a campaign keeps them.
    pub(crate) fn words(&self) -> BTreeMap<String, String> {
        let ns = |span: Span| format!("{}ns", span.as_ns());
        let joined = |texts: Vec<String>| (!texts.is_empty()).then(|| texts.join(","));
        let limits = joined(self.limits.iter().map(ToString::to_string).collect());
        let claims = joined(self.claims.iter().map(ToString::to_string).collect());
        let periods = joined(self.period.iter().map(|period| ns(period.0)).collect());
        let spec = self.question.as_ref();
        let phase = match self.phase {
            Phase::At(0) => "zero".to_owned(),
            Phase::At(ns) => format!("{ns}ns"),
            Phase::Quiet => "quiet".to_owned(),
        };
        let words = [
            ("cpu", self.cpu.clone()),
            ("period", periods),
            ("policy", word(self.policy)),
            ("priority", Some(self.priority.to_string())),
            ("wait", word(self.wait)),
            ("phase", Some(phase)),
            ("load", Some(self.load.to_string())),
            ("every", Some(ns(self.every))),
            ("duration", self.duration.map(ns)),
            ("keep-cold", self.keep_cold.then(|| "yes".to_owned())),
            ("limit", limits),
            ("claim", claims),
            ("strict", self.strict.then(|| "yes".to_owned())),
            ("for", spec.and_then(|spec| spec.purpose.clone())),
            ("deadline", spec.and_then(|spec| spec.deadline_ns).map(|ns| format!("{ns}ns"))),
            ("miss", spec.and_then(|spec| spec.miss).map(|miss| miss.to_string())),
            ("gate", self.gate.then(|| "yes".to_owned())),
        ];
        let given = words.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        given.collect()
    }

    /// The options that decide how loops run and are not as `kept`, in words.
    pub(crate) fn changes(&self, kept: &BTreeMap<String, String>) -> Vec<String> {
        let deciding = |words: &BTreeMap<String, String>| -> BTreeMap<String, String> {
            let owned = |(name, value): (&String, &String)| (name.clone(), value.clone());
            words.iter().filter(|(name, _)| DECIDING.contains(&name.as_str())).map(owned).collect()
        };
        different(&deciding(kept), &deciding(&self.words()))
    }

    /// The latenesses that limits, claims and the question are about, ns.
    pub(crate) fn thresholds_ns(&self) -> Vec<i64> {
        let mut thresholds = report::thresholds(&self.limits, &self.claims);
        let requirement = question::question(self.question.as_ref()).requirement;
        let periods = self.period.iter().map(|period| period.0.as_ns().unsigned_abs());
        thresholds.extend(periods.map(|ns| requirement.deadline_ns(ns)));
        thresholds
    }

    /// The time that is left to measure once this much is, ns: 0 where the rest is not worth a
    /// cycle; `None` without an end.
    pub(crate) fn left_ns(&self, measured_ns: u64) -> Option<u64> {
        let periods = self.period.iter().map(|period| period.0.as_ns().unsigned_abs());
        let least = periods.max().unwrap_or(0).saturating_add(10_000_000);
        let left = self.duration?.as_ns().unsigned_abs().saturating_sub(measured_ns);
        Some(if measured_ns > 0 && left < least { 0 } else { left })
    }

    /// The loops, for a batch of this length.
    pub(crate) fn loops(&self, length: Span) -> LoopChoices<'_> {
        LoopChoices {
            cpu: self.cpu.as_deref(),
            period: &self.period,
            duration: length,
            policy: self.policy,
            priority: self.priority,
            wait: wait_kind(self.wait, None, Target::BUDGET).unwrap_or(WaitKind::Sleep),
            phase: self.phase,
            load: &self.load,
        }
    }
}

const HOUR: parse::Duration = parse::Duration(Span::from_ms(3_600_000));

/// The shortest batch: each begins and ends a thread, and calibrates the clock.
const EVERY_MIN: Span = Span::from_ms(1_000);

fn word(value: impl ValueEnum) -> Option<String> {
    value.to_possible_value().map(|value| value.get_name().to_owned())
}

fn broken(name: &str) -> impl Fn(String) -> Error {
    move |why| anyhow!("--{name} as stored in the campaign: {why}")
}

/// Reads the options that a campaign keeps.
struct Kept<'a>(&'a BTreeMap<String, String>);

impl Kept<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The question that is kept.
    fn spec(&self) -> Result<Option<QuestionSpec>> {
        let deadline = self.get("deadline").map(parse::duration).transpose();
        let miss = self.get("miss").map(parse::share).transpose();
        let spec = QuestionSpec {
            purpose: self.get("for").map(str::to_owned),
            deadline_ns: deadline.map_err(broken("deadline"))?.map(|deadline| deadline.0.as_ns()),
            miss: miss.map_err(broken("miss"))?,
        };
        Ok((spec != QuestionSpec::default()).then_some(spec))
    }

    /// The value that is given, else the one that is kept, else the default.
    fn or<T>(
        &self,
        given: Option<T>,
        name: &str,
        otherwise: T,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T> {
        match (given, self.get(name)) {
            (Some(given), _) => Ok(given),
            (None, Some(text)) => parse(text).map_err(broken(name)),
            (None, None) => Ok(otherwise),
        }
    }

    fn list<T>(
        &self,
        name: &str,
        otherwise: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Vec<T>> {
        let text = self.get(name).unwrap_or(otherwise);
        let parts = text.split(',').filter(|part| !part.is_empty());
        parts.map(parse).collect::<Result<_, _>>().map_err(broken(name)).context("resume")
    }
}
