//! `punctual impact stepper`: what a time error costs a stepper motor, and what rate software can
//! step at.
//!
//! NIST, Timing jitter of real-time Linux and its effect on motor control, eq. [4]–[7]; LinuxCNC's
//! StepConf for software stepping.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use punctual_analysis::impact::drives;
use punctual_analysis::impact::step_generation::{DriveTimings, StepGeneration, step_generation};
use punctual_analysis::impact::stepper::{self, Stepper};
use punctual_analysis::quantity::{self, QuantityError};
use punctual_report::{Impact, ImpactBody, Report, Run};

use crate::cli::PROGRAM;
use crate::exit::Exit;
use crate::format;
use crate::output::{self, OutputArgs};
use crate::stored;
use crate::view;

/// `punctual impact stepper`.
#[derive(Debug, Args)]
pub(crate) struct StepperArgs {
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
    /// Share of the available torque that may be lost, for the highest step rate
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

/// Runs the subcommand.
pub(super) fn run(args: &StepperArgs) -> Result<Exit> {
    if args.drives {
        output::page(punctual_document::text::rendered(&view::kinds::impact::drives()))?;
        return Ok(Exit::Fine);
    }
    args.output.spare(args.from.as_deref())?;
    let timed = match (&args.jitter_pp, &args.from) {
        (Some(text), _) => {
            let span = read("--jitter", text, quantity::duration)?.as_ns() as f64;
            // The interval of two pulses is off by no more than the whole range.
            Timed {
                grid_pp: (None, span),
                interval_max_abs: (None, span),
                caution: None,
                started_at: None,
            }
        }
        (None, Some(path)) => Timed::from(path, args.run.as_deref())?,
        (None, None) => bail!("--jitter or --from is needed"),
    };
    let stepper = Stepper {
        holding_torque: needed(
            "--holding-torque",
            args.holding_torque.as_deref(),
            quantity::torque,
        )?,
        available_torque: match &args.available_torque {
            Some(text) => Some(read("--available-torque", text, quantity::torque)?),
            None => None,
        },
        step_angle: needed("--step-angle", args.step_angle.as_deref(), quantity::angle)?,
        speed: needed("--speed", args.speed.as_deref(), quantity::speed)?,
        jitter_pp_ns: timed.grid_pp.1,
        share: read("--share", &args.share, quantity::share)?,
    };
    if stepper.available_torque.is_some_and(|torque| torque > stepper.holding_torque) {
        bail!("--available-torque must not exceed --holding-torque");
    }
    let drive = drive(args)?;
    let steps = step_generation(timed.interval_max_abs.1.ceil() as u64, drive);
    let impact = stepper::Impact { run: timed.grid_pp.0, ..stepper.impact() };
    let steps = StepGeneration { run: timed.interval_max_abs.0, ..steps };
    let body = ImpactBody { impact: Impact::Stepper(impact), step_generation: Some(steps) };
    let mut report = Report::new(PROGRAM, "impact stepper", body);
    report.envelope.warn_of(timed.caution);
    report.envelope.started_at = timed.started_at;
    super::super::write(&report, args.output.open()?)?;
    Ok(Exit::Fine)
}

/// A quantity; a wrong dimension is refused under the option's name.
fn read<T>(option: &str, text: &str, parse: fn(&str) -> Result<T, QuantityError>) -> Result<T> {
    parse(text).map_err(|why| anyhow!("{option}: {why}"))
}

/// As `read`, of what can be left out only with `--drives`.
fn needed<T>(
    option: &str,
    text: Option<&str>,
    parse: fn(&str) -> Result<T, QuantityError>,
) -> Result<T> {
    read(option, text.with_context(|| format!("{option} is needed"))?, parse)
}

/// What the drive needs: as given, else as its row has it, else enough for nearly every drive.
fn drive(args: &StepperArgs) -> Result<DriveTimings> {
    let known = match &args.drive {
        None => DriveTimings::default(),
        Some(name) => drives::find(name)
            .ok_or_else(|| anyhow!("--drive: unknown drive {name:?}; --drives lists them"))?
            .timings(DriveTimings::default()),
    };
    let time = |option: &str, text: &Option<String>, otherwise: u64| -> Result<u64> {
        let Some(text) = text else { return Ok(otherwise) };
        Ok(read(option, text, quantity::duration)?.as_ns().unsigned_abs())
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

/// What a result says of timing: the worst, each with the run that it is of.
struct Timed {
    grid_pp: (Option<String>, f64),
    interval_max_abs: (Option<String>, f64),
    /// Why it may not be what was meant.
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
        let worst = |figure: fn(&Run) -> Option<f64>| {
            let known = runs.iter().filter_map(|run| Some((Some(run.name.clone()), figure(run)?)));
            known.max_by(|a, b| a.1.total_cmp(&b.1))
        };
        let grid_pp = worst(|run| Some(run.outcome.grid.as_ref()?.jitter_pp_ns));
        let interval_max_abs = worst(|run| run.outcome.jitters.interval_max_abs_ns);
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
