//! The arguments of `punctual impact`: a subcommand for each model, made from its row in
//! `punctual_analysis::impact`, and where the timing comes from.
//!
//! Reads quantities with their units; a wrong dimension is refused under its option's name.

use crate::output::OutputArgs;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches, Subcommand};
use punctual_analysis::impact::MODELS;
use punctual_analysis::impact::model::Model;
use punctual_analysis::impact::parameter::{Described, Presence, Values};
use punctual_analysis::quantity::duration;
use punctual_core::time::Span;

use super::stepper::StepperArgs;

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
    pub(crate) model: &'static Model,
    pub(crate) values: Values,
    pub(crate) timed: TimedArgs,
}

/// Where the timing comes from, and where the result goes.
#[derive(Debug, Args)]
pub(crate) struct TimedArgs {
    /// Take the timing from a result: a directory of 'punctual check', or a result.json. The run
    /// that is worst for this application is used
    #[arg(long, value_name = "RESULT", required_unless_present = "time_error")]
    pub(crate) from: Option<PathBuf>,
    /// Use this run of the result instead of the worst
    #[arg(long, value_name = "NAME", requires = "from")]
    pub(crate) run: Option<String>,
    /// The time error, in place of a result: the statistic that the application depends on
    #[arg(
        long,
        value_name = "TIME",
        allow_hyphen_values = true,
        conflicts_with = "from",
        value_parser = duration
    )]
    pub(crate) time_error: Option<Span>,
    /// The number of cycles of which this time error was the largest
    #[arg(long, value_name = "N", requires = "time_error",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) cycles: Option<u64>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
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
