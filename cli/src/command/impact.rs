//! `punctual impact MODEL`: what lateness does to an application, in the unit of its user's work.
//!
//! The formulas are `punctual_analysis::impact`; this takes the timing from a result, or by hand,
//! and of the runs under load the one that is worst for the application. `stepper` has a page of
//! its own: NIST, Timing jitter of real-time Linux and its effect on motor control, eq. [4]–[7],
//! and LinuxCNC's StepConf for software stepping.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches, Subcommand};
use punctual_analysis::impact::step_generation::{DriveTimings, StepGeneration, step_generation};
use punctual_analysis::impact::stepper::{self, Stepper};
use punctual_analysis::impact::timing::{Basis, Lack, Suits, Timing};
use punctual_analysis::impact::{
    Application, Assess, Described, MODELS, Model, Presence, Values, drives,
};
use punctual_analysis::plain::shell_word;
use punctual_analysis::quantity::{self, QuantityError, duration};
use punctual_core::time::Span;
use punctual_report::longer::{SPARE, longer_ns, whole_ns};
use punctual_report::{
    About, Body, Envelope, Impact, ImpactBody, Overall, Report, Run, of_first_wait,
};

use crate::args::UndecidedArgs;
use crate::output::{self, OutputArgs};
use crate::program::PROGRAM;
use crate::stored::Stored;
use crate::subcommand::{Execute, Exit};
use crate::{format, stored, view, writing};

/// `punctual impact`.
#[derive(Debug, Args)]
pub(super) struct ImpactArgs {
    #[command(subcommand)]
    application: ImpactCommand,
}

impl Execute for ImpactArgs {
    fn execute(&self) -> Result<Exit> {
        match &self.application {
            ImpactCommand::Stepper(args) => args.execute(),
            ImpactCommand::Model(args) => assess(args),
        }
    }
}

/// Applies a model to the timing, and writes its answer.
fn assess(ModelArgs { model, values, timed }: &ModelArgs) -> Result<Exit> {
    timed.output.spare(timed.from.as_deref())?;
    let mut envelope = Envelope::of(PROGRAM, &format!("impact {}", model.name));
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
    envelope.verdict = verdict(impact.answer, &impact.statement, timed.undecided);
    let body = ImpactBody { impact: Impact::Application(impact), step_generation: None };
    let report = Report { envelope, body: body.into() };
    writing::write(&report, timed.output.open()?)?;
    Ok(Exit::of(&report))
}

/// The verdict of a model's answer.
fn verdict(answer: Option<Suits>, statement: &str, undecided: UndecidedArgs) -> Overall {
    let (mut verdict, about) = (Overall::none(undecided.counts_as()), About::Answer { at: 0 });
    match answer {
        Some(Suits::No) => verdict.fail_about(about, statement.to_owned()),
        Some(Suits::Unknown) => verdict.leave_open(about, statement.to_owned()),
        Some(Suits::Yes) | None => {}
    }
    verdict
}

/// The runs that an answer rests on: that of this name, or those that wait like the first one, as
/// verdicts do. The ways of `measure wait` are all its own.
fn judged<'a>(stored: &'a Stored, name: Option<&str>) -> Result<Vec<&'a Run>> {
    let runs = stored.runs(name)?;
    let is_ways = matches!(stored.report.body, Body::Wait(_));
    let first = of_first_wait(stored.report.body.runs());
    let is_judged = |run: &&Run| first.iter().any(|other| std::ptr::eq(other, *run));
    Ok(match name {
        None if !is_ways => runs.into_iter().filter(is_judged).collect(),
        _ => runs,
    })
}

/// The answer of a model for the run that is worst for it. Where runs were under load it rests on
/// these, unless one without is shown not to suit: a run that is shorter shows less, and is no
/// worse for that. A run that lacks something is passed over unless all do.
fn worst(stored: &Stored, name: Option<&str>, model: &dyn Assess) -> Result<Application> {
    let (mut worst, mut lacks) = (None::<(bool, Application)>, None);
    let is_worse = |is_loaded: bool, impact: &Application, so_far: &(bool, Application)| {
        let (was_loaded, so_far) = so_far;
        let is_no = |impact: &Application| impact.answer == Some(Suits::No);
        match (is_loaded, *was_loaded) {
            (true, false) => !is_no(so_far) || is_no(impact),
            (false, true) => is_no(impact) && !is_no(so_far),
            _ => impact.is_worse_than(so_far),
        }
    };
    for run in judged(stored, name)? {
        match model.impact(&Timing::of(&run.outcome, run.setup.period_ns)) {
            Ok(mut impact) => {
                impact.statement = format!("{}, by the run \"{}\"", impact.statement, run.name);
                impact.run = Some(run.name.clone());
                let needed = impact.duration_needed_ns.map(|ns| Longer::of(stored, run, ns));
                impact.duration_needed_ns = needed.as_ref().map(|longer| longer.length_ns);
                impact.command = needed.and_then(|longer| longer.command);
                let is_loaded = !run.setup.load.is_empty();
                if worst.as_ref().is_none_or(|so_far| is_worse(is_loaded, &impact, so_far)) {
                    worst = Some((is_loaded, impact));
                }
            }
            Err(lack) => lacks = Some((&run.name, lack)),
        }
    }
    match (worst, lacks) {
        (Some((_, worst)), _) => Ok(worst),
        (None, Some((run, lack))) => bail!("{}: run {run:?}: {lack}", stored.path.display()),
        (None, None) => bail!("{}: no runs in this result", stored.path.display()),
    }
}

/// A longer measurement of a loop.
struct Longer {
    /// Its length, ns.
    length_ns: f64,
    /// The command that measures so long, under the same load; `None` where the run is not one of
    /// this program's, or one whose loads took turns elsewhere than in `check`.
    command: Option<String>,
}

impl Longer {
    /// The measurement in which a loop like that of this run has cycles of so much time, ns.
    fn of(stored: &Stored, run: &Run, needed_ns: f64) -> Self {
        let setup = &run.setup;
        let (mut length_ns, mut load) = (needed_ns * SPARE, String::new());
        let is_check = stored.report.envelope.experiment == "check";
        let measure = match &setup.load[..] {
            [] => Some("measure periodic"),
            // Several of one run of such a measurement ran at once.
            [..] if !is_check || setup.load.len() == 1 => {
                load = format!(" --load {}", shell_word(&setup.load.join(",")));
                let is_own = stored.report.envelope.experiment == "measure periodic";
                (is_own || setup.load.len() == 1).then_some("measure periodic")
            }
            // Its runs take turns: in all it is as much longer.
            [..] => {
                let own_ns = whole_ns(run, [run]);
                if own_ns > 0.0 {
                    length_ns = longer_ns(run, stored.report.body.runs(), needed_ns / own_ns);
                }
                Some("check")
            }
        };
        // Data from elsewhere name no policy.
        let measure = measure.filter(|_| setup.policy.is_some()).zip(setup.period_ns);
        let command = measure.zip(format::argument(length_ns));
        let command = command.map(|((measure, period_ns), length)| {
            let period = format::period_argument(period_ns);
            let cpu = setup.cpu.map_or_else(String::new, |cpu| format!(" --cpu {cpu}"));
            format!("punctual {measure} --period {period}{cpu}{load} -d {length}")
        });
        Self { length_ns, command }
    }
}

/// The subcommand that is no row of the table.
const STEPPER: &str = "stepper";

/// Applications. Exit 1 if the answer is no; 3 if the recording is too short for an answer, or what
/// --undecided says.
#[derive(Debug)]
enum ImpactCommand {
    /// Torque that a stepper motor loses, and the step rate that software stepping reaches.
    Stepper(Box<StepperArgs>),
    /// A model of the table.
    Model(ModelArgs),
}

/// `punctual impact MODEL`.
#[derive(Debug)]
struct ModelArgs {
    model: &'static Model,
    values: Values,
    timed: TimedArgs,
}

/// Where the timing comes from, and where the result goes.
#[derive(Debug, Args)]
struct TimedArgs {
    /// Take the timing from a result: a directory of 'punctual check', or a result.json. Of the
    /// runs under load, where there are any, the one that is worst for this application is used
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
    undecided: UndecidedArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Subcommand for ImpactCommand {
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

impl FromArgMatches for ImpactCommand {
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

/// `punctual impact stepper`.
#[derive(Debug, Args)]
struct StepperArgs {
    /// Print the drives that --drive knows, and nothing else
    #[arg(long, exclusive = true)]
    drives: bool,
    /// Holding torque of the motor: 23ozin, 0.16Nm
    #[arg(
        long,
        allow_hyphen_values = true,
        value_name = "TORQUE",
        required_unless_present = "drives"
    )]
    holding_torque: Option<String>,
    /// Angle of a step: 1.8deg, 0.0314rad
    #[arg(
        long,
        allow_hyphen_values = true,
        value_name = "ANGLE",
        required_unless_present = "drives"
    )]
    step_angle: Option<String>,
    /// Speed of the motor: 15rev/s, 900rpm, 94rad/s
    #[arg(
        long,
        allow_hyphen_values = true,
        value_name = "SPEED",
        required_unless_present = "drives"
    )]
    speed: Option<String>,
    /// Peak-to-peak deviation of the pulses from the fitted grid
    #[arg(
        long = "jitter",
        allow_hyphen_values = true,
        value_name = "TIME",
        conflicts_with = "from",
        required_unless_present_any = ["from", "drives"]
    )]
    jitter_pp: Option<String>,
    /// Take that deviation from a result: a directory of 'punctual check', or a result.json
    #[arg(long, value_name = "RESULT")]
    from: Option<PathBuf>,
    /// Use this run of the result instead of the worst of the shortest period, the base thread
    #[arg(long, value_name = "NAME", requires = "from")]
    run: Option<String>,
    /// Torque that the motor has at that speed [default: half of the holding torque]
    #[arg(long, allow_hyphen_values = true, value_name = "TORQUE")]
    available_torque: Option<String>,
    /// Share of the available torque that may be lost
    #[arg(long, allow_hyphen_values = true, value_name = "SHARE", default_value = "10%")]
    share: String,
    /// The drive, by its name in --drives, for its timings of software stepping
    #[arg(long, value_name = "NAME")]
    drive: Option<String>,
    /// Step pulse length of the drive, for software stepping [default: the drive's,
    /// or 5us]
    #[arg(long, allow_hyphen_values = true, value_name = "TIME")]
    step_time: Option<String>,
    /// Time between step pulses that the drive needs [default: the drive's,
    /// or 5us]
    #[arg(long, allow_hyphen_values = true, value_name = "TIME")]
    step_space: Option<String>,
    /// Time that the direction must be stable before a step [default: the drive's, or 20us]
    #[arg(long, allow_hyphen_values = true, value_name = "TIME")]
    dir_setup: Option<String>,
    /// Time that the direction must be stable after a step [default: the drive's, or 20us]
    #[arg(long, allow_hyphen_values = true, value_name = "TIME")]
    dir_hold: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
}

impl Execute for StepperArgs {
    fn execute(&self) -> Result<Exit> {
        if self.drives {
            output::page(punctual_document::text::rendered(&view::kinds::impact::drives()))?;
            return Ok(Exit::Fine);
        }
        self.output.spare(self.from.as_deref())?;
        let timed = match (&self.jitter_pp, &self.from) {
            (Some(text), _) => {
                let span = read("--jitter", text, duration)?.as_ns() as f64;
                let given = Timing::given(span, None).grid_pp()?;
                // The interval of two pulses is off by no more than the whole range.
                Timed {
                    grid_pp: (None, given),
                    interval_max_abs: (None, span),
                    caution: None,
                    started_at: None,
                }
            }
            (None, Some(path)) => Timed::from(path, self.run.as_deref())?,
            (None, None) => bail!("--jitter or --from is needed"),
        };
        let stepper = Stepper {
            holding_torque: needed(
                "--holding-torque",
                self.holding_torque.as_deref(),
                quantity::torque,
            )?,
            available_torque: match &self.available_torque {
                Some(text) => Some(read("--available-torque", text, quantity::torque)?),
                None => None,
            },
            step_angle: needed("--step-angle", self.step_angle.as_deref(), quantity::angle)?,
            speed: needed("--speed", self.speed.as_deref(), quantity::speed)?,
            jitter_pp: timed.grid_pp.1,
            share: read("--share", &self.share, quantity::share)?,
        };
        if stepper.available_torque.is_some_and(|torque| torque > stepper.holding_torque) {
            bail!("--available-torque must not exceed --holding-torque");
        }
        let drive = drive(self)?;
        let steps = step_generation(timed.interval_max_abs.1.ceil() as u64, drive);
        let impact = stepper.impact().with_steps_of(&steps);
        let impact = stepper::Impact { run: timed.grid_pp.0, ..impact };
        let steps = StepGeneration { run: timed.interval_max_abs.0, ..steps };
        let verdict = verdict(impact.answer, &impact.statement, UndecidedArgs::default());
        let body = ImpactBody { impact: Impact::Stepper(impact), step_generation: Some(steps) };
        let mut report = Report::new(PROGRAM, "impact stepper", body);
        report.envelope.verdict = verdict;
        report.envelope.warn_of(timed.caution);
        report.envelope.started_at = timed.started_at;
        writing::write(&report, self.output.open()?)?;
        Ok(Exit::of(&report))
    }
}

/// A quantity; a wrong dimension is refused under the option's name.
fn read<T>(option: &str, text: &str, parse: fn(&str) -> Result<T, QuantityError>) -> Result<T> {
    parse(text).map_err(|why| anyhow!("{option}: {why}"))
}

/// Reads a quantity as `read` does, which can be left out only with `--drives`.
fn needed<T>(
    option: &str,
    text: Option<&str>,
    parse: fn(&str) -> Result<T, QuantityError>,
) -> Result<T> {
    read(option, text.with_context(|| format!("{option} is needed"))?, parse)
}

/// The timings of the drive: as given, else as its row has it, else enough for nearly every drive.
fn drive(args: &StepperArgs) -> Result<DriveTimings> {
    let known = match &args.drive {
        None => DriveTimings::default(),
        Some(name) => drives::find(name)
            .ok_or_else(|| anyhow!("--drive: unknown drive {name:?}; --drives lists them"))?
            .timings(DriveTimings::default()),
    };
    let time = |option: &str, text: &Option<String>, otherwise: u64| -> Result<u64> {
        let Some(text) = text else { return Ok(otherwise) };
        Ok(read(option, text, duration)?.as_ns().unsigned_abs())
    };
    Ok(DriveTimings {
        step_time_ns: time("--step-time", &args.step_time, known.step_time_ns)?,
        step_space_ns: time("--step-space", &args.step_space, known.step_space_ns)?,
        dir_hold_ns: time("--dir-hold", &args.dir_hold, known.dir_hold_ns)?,
        dir_setup_ns: time("--dir-setup", &args.dir_setup, known.dir_setup_ns)?,
    })
}

/// The longest period of a base thread, which makes steps in software: LinuxCNC's are 20 to 100 µs.
const BASE_PERIOD_MAX_NS: u64 = 200_000;

/// The timing of a result: the worst, each with the run that it is of.
struct Timed {
    grid_pp: (Option<String>, Basis),
    interval_max_abs: (Option<String>, f64),
    /// The warning that it may not be what was meant.
    caution: Option<String>,
    started_at: Option<String>,
}

impl Timed {
    /// Reads a result, or the one in a directory; of the run `name`, or the worst of the shortest
    /// period: the base thread makes the steps.
    fn from(path: &Path, name: Option<&str>) -> Result<Self> {
        let stored = stored::read(path)?;
        let mut runs = stored.runs(name)?;
        let shortest = runs.iter().filter_map(|run| run.setup.period_ns).min();
        runs.retain(|run| run.setup.period_ns == shortest);
        let named = |run: &Run| Some(run.name.clone());
        let grid_pp = runs.iter().filter_map(|run| {
            let timing = Timing::of(&run.outcome, run.setup.period_ns);
            Some((named(run), timing.grid_pp().ok()?))
        });
        let grid_pp = grid_pp.max_by(|a, b| a.1.value_ns.total_cmp(&b.1.value_ns));
        let interval_max_abs = runs
            .iter()
            .filter_map(|run| Some((named(run), run.outcome.jitters.interval_max_abs_ns?)));
        let interval_max_abs = interval_max_abs.max_by(|a, b| a.1.total_cmp(&b.1));
        let (Some(grid_pp), Some(interval_max_abs)) = (grid_pp, interval_max_abs) else {
            bail!("{}: no run has a fitted grid", stored.path.display());
        };
        let caution = shortest.filter(|&ns| ns > BASE_PERIOD_MAX_NS).map(|ns| {
            format!(
                "a loop of {} is a servo thread, and steps are made in a base thread: 'punctual \
                 check --for linuxcnc' measures both",
                format::period(ns)
            )
        });
        let started_at = stored.report.envelope.started_at;
        Ok(Self { grid_pp, interval_max_abs, caution, started_at })
    }
}
