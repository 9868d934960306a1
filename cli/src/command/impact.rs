//! `punctual impact MODEL`: what lateness does to an application, in the unit of its user's work.
//!
//! The formulas are `punctual_analysis::impact`; this takes the timing from a result, or by hand,
//! and of the runs under load the one that is worst for the application. `stepper` has a page of
//! its own: NIST, Timing jitter of real-time Linux and its effect on motor control, eq. [4]–[7],
//! and LinuxCNC's StepConf for software stepping.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgGroup, ArgMatches, Args, Command, Error, FromArgMatches, Subcommand};
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
use crate::{format, question, stored, view, writing};

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

/// The answer of a model for the run that is worst for it. A run that lacks something is passed
/// over unless all do.
fn worst(stored: &Stored, name: Option<&str>, model: &dyn Assess) -> Result<Application> {
    let (mut idle, mut loaded, mut lacks) = (None::<Application>, None::<Application>, None);
    for run in judged(stored, name)? {
        match model.impact(&Timing::of(&run.outcome, run.setup.period_ns)) {
            Ok(mut impact) => {
                impact.statement = format!("{}, by the run \"{}\"", impact.statement, run.name);
                impact.run = Some(run.name.clone());
                let needed = impact.duration_needed_ns.map(|ns| Longer::of(stored, run, ns));
                impact.duration_needed_ns = needed.as_ref().map(|longer| longer.length_ns);
                impact.command = needed.and_then(|longer| longer.command);
                let so_far = if run.setup.load.is_empty() { &mut idle } else { &mut loaded };
                if so_far.as_ref().is_none_or(|so_far| impact.is_worse_than(so_far)) {
                    *so_far = Some(impact);
                }
            }
            Err(lack) => lacks = Some((&run.name, lack)),
        }
    }
    match (idle, loaded, lacks) {
        (Some(idle), Some(loaded), _) => Ok(idle.with_load(loaded)),
        (Some(only), None, _) | (None, Some(only), _) => Ok(only),
        (None, None, Some((run, lack))) => {
            bail!("{}: run {run:?}: {lack}", stored.path.display())
        }
        (None, None, None) => bail!("{}: no runs in this result", stored.path.display()),
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
            let loops = loop_options(stored, period_ns);
            let cpu = setup.cpu.map_or_else(String::new, |cpu| format!(" --cpu {cpu}"));
            format!("punctual {measure}{loops}{cpu}{load} -d {length}")
        });
        Self { length_ns, command }
    }
}

/// The options that measure the same loops for the same question: a loop of this period where the
/// result keeps no use, else those of that use, with their periods where they are others than its
/// own.
fn loop_options(stored: &Stored, period_ns: u64) -> String {
    let body = &stored.report.body;
    let spec = body.headline().and_then(|headline| headline.question_spec.clone());
    let spec = spec.unwrap_or_default();
    let options = question::options_of(&spec);
    let mut words = if options.is_empty() { options } else { format!(" {options}") };
    let mut periods_ns = vec![period_ns];
    if spec.purpose.is_some() {
        let usual = question::question(Some(&spec)).labels.iter().map(|(ns, _)| *ns);
        let usual: BTreeSet<u64> = usual.collect();
        let run: BTreeSet<u64> = body.runs().iter().filter_map(|run| run.setup.period_ns).collect();
        // A use whose loops have no names takes its own period alone.
        let is_usual = usual.is_empty() || run == usual;
        periods_ns = if is_usual { Vec::new() } else { run.into_iter().collect() };
    }
    if !periods_ns.is_empty() {
        let periods: Vec<String> = periods_ns.into_iter().map(format::period_argument).collect();
        words += &format!(" --period {}", periods.join(","));
    }
    words
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
#[command(group = ArgGroup::new("timing").required(true).args(["from", "time_error"]))]
struct TimedArgs {
    /// Take the timing from a result: a directory of 'punctual check', or a result.json. Of the
    /// runs under load, where there are any, the one that is worst for this application is used
    #[arg(long, value_name = "RESULT")]
    from: Option<PathBuf>,
    /// Use this run of the result instead of the worst
    #[arg(long, value_name = "NAME", requires = "from")]
    run: Option<String>,
    /// The time error, in place of a result: the statistic that the application depends on
    #[arg(
        long,
        value_name = "TIME",
        allow_hyphen_values = true,
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
#[command(group = ArgGroup::new("timing").required(true).args(["drives", "jitter_pp", "from"]))]
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
    #[arg(long = "jitter", allow_hyphen_values = true, value_name = "TIME")]
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

/// So many drives are named that may have been meant.
const MEANT_MAX: usize = 8;

/// The error about a drive that the table has not, with those that may have been meant.
fn unknown_drive(name: &str) -> anyhow::Error {
    let alike = drives::like(name).into_iter().take(MEANT_MAX);
    let alike: Vec<&str> = alike.map(|drive| drive.id).collect();
    let meant = match alike.as_slice() {
        [] => String::new(),
        [one] => format!(" did you mean {one}?"),
        [..] => format!(" did you mean one of {}?", alike.join(", ")),
    };
    anyhow!("--drive: unknown drive {name:?};{meant} --drives lists all")
}

/// The timings of the drive: as given, else as its row has it, else enough for nearly every drive.
fn drive(args: &StepperArgs) -> Result<DriveTimings> {
    let known = match &args.drive {
        None => DriveTimings::default(),
        Some(name) => {
            drives::find(name).ok_or_else(|| unknown_drive(name))?.timings(DriveTimings::default())
        }
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
    /// period of those that an answer rests on: the base thread makes the steps.
    fn from(path: &Path, name: Option<&str>) -> Result<Self> {
        let stored = stored::read(path)?;
        let mut runs = judged(&stored, name)?;
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

#[cfg(test)]
mod tests {
    use punctual_analysis::recording::{Recording, RecordingConfig};
    use punctual_core::sample::{Flags, Sample};
    use punctual_core::time::Period;
    use punctual_report::QuestionSpec;

    use super::*;
    use crate::stored::tests::checked;

    const LOADS: &[&str] = &["cpu", "disk"];

    #[test]
    fn a_longer_measurement_asks_the_same_question() {
        let command = |runs: &[(&str, u64, &[&str])], spec: QuestionSpec| {
            let stored = checked(runs, Some(spec));
            let run = stored.report.body.runs().last().expect("a run");
            Longer::of(&stored, run, 3_600e9).command.expect("a command of this program")
        };
        let of_use =
            |name: &str| QuestionSpec { purpose: Some(name.to_owned()), ..QuestionSpec::default() };
        let audio = [("idle", 1_333_333, &[][..]), ("under load", 1_333_333, LOADS)];
        let loaded = command(&audio, of_use("audio"));
        assert!(loaded.starts_with("punctual check --for audio --cpu 1 -d "), "{loaded}");
        let idle = command(&audio[..1], of_use("audio"));
        assert!(idle.starts_with("punctual measure periodic --for audio --cpu 1 -d "), "{idle}");
        let threads = |base_ns| [("base", base_ns, LOADS), ("servo", 1_000_000, LOADS)];
        let usual = command(&threads(25_000), of_use("linuxcnc"));
        assert!(usual.starts_with("punctual check --for linuxcnc --cpu 1 -d "), "{usual}");
        let own = command(&threads(50_000), of_use("linuxcnc"));
        assert!(own.contains(" --for linuxcnc --period 50us,1ms --cpu 1 -d "), "{own}");
        let deadline =
            QuestionSpec { deadline_ns: Some(50_000), miss: Some(1e-5), ..QuestionSpec::default() };
        let timed = command(&threads(25_000)[1..], deadline);
        let options = "punctual check --deadline 50us --miss 1e-5 --period 1ms --cpu 1 -d ";
        assert!(timed.starts_with(options), "{timed}");
        let usual = command(&threads(25_000)[1..], QuestionSpec::default());
        assert!(usual.starts_with("punctual check --period 1ms --cpu 1 -d "), "{usual}");
    }

    #[test]
    fn the_smallest_buffer_is_one_that_no_run_had_a_wake_too_late_for() {
        let mut stored =
            checked(&[("idle", 1_000_000, &[]), ("under load", 1_000_000, LOADS)], None);
        let latest = [17_200_000, 8_000_000];
        if let Body::Check(check) = &mut stored.report.body {
            for (run, latest_ns) in check.loops.judged.runs.iter_mut().zip(latest) {
                let period = Period::from_ns(1_000_000);
                let mut recording =
                    Recording::new(RecordingConfig { period, ..RecordingConfig::default() });
                let sample = |cycle| {
                    let ns = if cycle == 5_000 { latest_ns } else { 1_000 };
                    Sample { cycle, lateness: Span::from_ns(ns), flags: Flags::NONE }
                };
                recording.extend(&(0..10_000).map(sample).collect::<Vec<_>>());
                run.outcome = recording.finish(0);
            }
        }
        let model = MODELS.iter().find(|model| model.name == "audio").expect("a model");
        let answer = |options: &[(&str, &str)]| {
            let mut values = Values::default();
            for parameter in model.parameters {
                let given = options.iter().find(|(name, _)| *name == parameter.name());
                match (given, parameter.presence()) {
                    (Some((_, text)), _) => values.set(*parameter, text),
                    (None, Presence::Default(text)) => values.set(*parameter, text),
                    (None, _) => {}
                }
            }
            let model = model.build(&values).expect("a model");
            worst(&stored, None, model.as_ref()).expect("an answer")
        };
        let wanted = ("wanted", "1h");
        for found in [answer(&[wanted]), answer(&[])] {
            let words = "1024 frames is the smallest buffer that no measured wake was too late for";
            assert!(found.statement.contains(words), "{}", found.statement);
            assert_eq!(found.run.as_deref(), Some("idle"));
        }
        // So are both of these, given.
        let [half, all] = ["512", "1024"].map(|frames| answer(&[("frames", frames), wanted]));
        assert_eq!((half.answer, half.run.as_deref()), (Some(Suits::No), Some("idle")));
        assert_eq!(all.answer, Some(Suits::Unknown));
    }

    #[test]
    fn what_gives_the_timing_is_named_in_all_its_ways() {
        let parsed = |words: &[&str]| {
            let command = ImpactArgs::augment_args(Command::new("impact"));
            let words = ["impact"].iter().chain(words);
            command.try_get_matches_from(words).map(drop).map_err(|why| why.to_string())
        };
        let why = parsed(&["stepper"]).expect_err("nothing is given");
        for option in ["--holding-torque", "--jitter", "--from"] {
            assert!(why.contains(option), "{option}: {why}");
        }
        let why = parsed(&["audio"]).expect_err("nothing is given");
        assert!(why.contains("--from") && why.contains("--time-error"), "{why}");
        assert_eq!(parsed(&["stepper", "--drives"]), Ok(()));
        let motor = "stepper --holding-torque 1Nm --step-angle 1.8deg --speed 1rev/s";
        let motor: Vec<&str> = motor.split(' ').collect();
        let with = |more: &[&str]| parsed(&[&motor, more].concat());
        assert_eq!((with(&["--jitter", "1us"]), with(&["--from", "x"])), (Ok(()), Ok(())));
        assert!(with(&["--jitter", "1us", "--from", "x"]).is_err());
        assert!(parsed(&["audio", "--from", "x", "--time-error", "1us"]).is_err());
    }

    #[test]
    fn an_unknown_drive_names_those_that_may_have_been_meant() {
        let why = unknown_drive("gecko201").to_string();
        assert!(why.contains("did you mean gecko-201?") && why.contains("--drives"), "{why}");
        let why = unknown_drive("no-such").to_string();
        assert!(!why.contains("mean") && why.ends_with("; --drives lists all"), "{why}");
        assert!(unknown_drive("leadshine").to_string().matches("leadshine-").count() <= MEANT_MAX);
    }
}
