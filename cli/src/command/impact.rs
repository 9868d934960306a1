//! `punctual impact MODEL`: what lateness does to an application, in the unit of its user's work.
//!
//! The formulas are `punctual_analysis::impact`; this takes the timing from a result, or by hand,
//! and of all runs the one that is worst for the application. `stepper` has a page of its own.

mod stepper;

use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches, Subcommand};
use punctual_analysis::impact::timing::{Lack, Timing};
use punctual_analysis::impact::{
    Application, Assess, Described, MODELS, Model, Presence, Suits, Values,
};
use punctual_analysis::quantity::duration;
use punctual_core::time::Span;

use crate::exit::Exit;
use crate::output::OutputArgs;
use crate::report::{Envelope, Impact as Impacted, ImpactBody, Report};
use crate::stored::{self, Stored};
use stepper::StepperArgs;

/// Runs the subcommand.
pub(crate) fn run(impact: &Impact) -> Result<Exit> {
    match impact {
        Impact::Stepper(args) => stepper::run(args),
        Impact::Model(args) => assess(args),
    }
}

/// Applies a model to the timing, and writes its answer.
fn assess(ModelArgs { model, values, timed }: &ModelArgs) -> Result<Exit> {
    timed.output.spare(timed.from.as_deref())?;
    let mut envelope = Envelope::of(&format!("impact {}", model.name));
    let model = model.build(values).map_err(anyhow::Error::msg)?;
    let impact = match (&timed.from, timed.time_error) {
        (Some(path), _) => {
            let stored = stored::read(path)?;
            envelope.started_at.clone_from(&stored.report.envelope.started_at);
            envelope.machine.clone_from(&stored.report.envelope.machine);
            worst(&stored, timed.run.as_deref(), model.as_ref())?
        }
        (None, Some(span)) => {
            let timing = Timing::given(span.as_ns() as f64, timed.cycles);
            model.impact(&timing).map_err(|lack| match lack {
                Lack("period") => anyhow!("--period is needed with --time-error"),
                lack => anyhow!("--time-error: {lack}"),
            })?
        }
        (None, None) => bail!("--from or --time-error is needed"),
    };
    let suits = impact.answer;
    if let Some(Suits::No | Suits::Unknown) = suits {
        envelope.verdict.ok = false;
        envelope.verdict.reasons.push(impact.statement.clone());
    }
    let body = ImpactBody { impact: Impacted::Application(impact), step_generation: None };
    let report = Report { envelope, body: body.into() };
    super::write(&report, timed.output.open()?)?;
    Ok(Exit::of(&report))
}

/// The answer of a model for the run that is worst for it. A run that lacks something is passed
/// over unless all do.
fn worst(stored: &Stored, name: Option<&str>, model: &dyn Assess) -> Result<Application> {
    let (mut worst, mut lacks) = (None::<Application>, None);
    for run in stored.runs(name)? {
        match model.impact(&Timing::of(&run.outcome, run.setup.period_ns)) {
            Ok(mut impact) => {
                impact.run = Some(run.name.clone());
                if worst.as_ref().is_none_or(|worst| impact.is_worse_than(worst)) {
                    worst = Some(impact);
                }
            }
            Err(lack) => lacks = Some((&run.name, lack)),
        }
    }
    match (worst, lacks) {
        (Some(worst), _) => Ok(worst),
        (None, Some((run, lack))) => bail!("{}: run {run:?}: {lack}", stored.path.display()),
        (None, None) => bail!("{}: no runs in this result", stored.path.display()),
    }
}

/// The subcommand that is no row of the table.
const STEPPER: &str = "stepper";

/// Applications. Exit 1 if the answer is no, or the recording is too short for an answer.
#[derive(Debug)]
pub(crate) enum Impact {
    /// Torque that a stepper motor loses, and the step rate that software stepping reaches.
    Stepper(Box<StepperArgs>),
    /// A model of the table.
    Model(ModelArgs),
}

/// `punctual impact MODEL`.
#[derive(Debug)]
pub(crate) struct ModelArgs {
    model: &'static Model,
    values: Values,
    timed: TimedArgs,
}

/// Where the timing comes from, and where the result goes.
#[derive(Debug, Args)]
struct TimedArgs {
    /// Take the timing from a result: a directory of 'punctual check', or a result.json. The run
    /// that is worst for this application is used
    #[arg(long, value_name = "RESULT", required_unless_present = "time_error")]
    from: Option<PathBuf>,
    /// Use this run of the result instead of the worst
    #[arg(long, value_name = "NAME", requires = "from")]
    run: Option<String>,
    /// The time error, in place of a result: the statistic that the application depends on
    #[arg(
        long,
        value_name = "TIME",
        allow_hyphen_values = true,
        conflicts_with = "from",
        value_parser = duration
    )]
    time_error: Option<Span>,
    /// The number of cycles of which this time error was the largest
    #[arg(long, value_name = "N", requires = "time_error",
          value_parser = clap::value_parser!(u64).range(1..))]
    cycles: Option<u64>,
    #[command(flatten)]
    output: OutputArgs,
}

impl Subcommand for Impact {
    fn augment_subcommands(command: Command) -> Command {
        let stepper = StepperArgs::augment_args(Command::new(STEPPER)).about(
            "Torque that a stepper motor loses, and the step rate that software stepping \
             reaches",
        );
        let models = MODELS.iter().map(|model| {
            let options = model.parameters.iter().map(|parameter| option(*parameter));
            TimedArgs::augment_args(Command::new(model.name).args(options)).about(model.about)
        });
        command.subcommand(stepper).subcommands(models)
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        name == STEPPER || MODELS.iter().any(|model| model.name == name)
    }
}

impl FromArgMatches for Impact {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let Some((name, matches)) = matches.subcommand() else {
            return Err(Error::new(ErrorKind::MissingSubcommand));
        };
        if name == STEPPER {
            return StepperArgs::from_arg_matches(matches)
                .map(|args| Self::Stepper(Box::new(args)));
        }
        let Some(model) = MODELS.iter().find(|model| model.name == name) else {
            return Err(Error::new(ErrorKind::InvalidSubcommand));
        };
        let mut values = Values::default();
        for parameter in model.parameters {
            if let Some(text) = matches.get_one::<String>(parameter.name()) {
                values.set(*parameter, text);
            }
        }
        let timed = TimedArgs::from_arg_matches(matches)?;
        Ok(Self::Model(ModelArgs { model, values, timed }))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The option of a parameter.
fn option(parameter: &'static dyn Described) -> Arg {
    let option = Arg::new(parameter.name())
        .long(parameter.name())
        .value_name(parameter.value_name())
        .help(parameter.help())
        .allow_hyphen_values(true);
    let option = match parameter.presence() {
        Presence::Required => option.required(true),
        Presence::Optional => option,
        Presence::Default(text) => option.default_value(text),
    };
    if parameter.choices().is_empty() {
        return option
            .value_parser(move |text: &str| parameter.check(text).map(|()| text.to_owned()));
    }
    let choices = parameter.choices().iter();
    let choices = choices.map(|(word, means)| PossibleValue::new(*word).help(*means));
    option.value_parser(PossibleValuesParser::new(choices))
}
