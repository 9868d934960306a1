//! `punctual impact stepper`: what a time error costs a stepper motor, and what rate software can
//! step at.
//!
//! NIST, Timing jitter of real-time Linux and its effect on motor control, eq. [4]–[7]; LinuxCNC's
//! StepConf for software stepping.

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use punctual_analysis::impact::step_generation::{DriveTimings, step_generation};
use punctual_analysis::impact::stepper::Stepper;
use punctual_analysis::quantity::{self, QuantityError};

use crate::Exit;
use crate::args::StepperArgs;
use crate::output::Json;
use crate::report::Report;
use crate::stored;
use crate::view;

/// Runs the subcommand.
pub(crate) fn run(args: &StepperArgs) -> Result<Exit> {
    let timed = match (&args.jitter_pp, &args.from) {
        (Some(text), _) => {
            let span = read("--jitter", text, quantity::duration)?.as_ns() as f64;
            // The interval of two pulses is off by no more than the whole range.
            Timed { grid_pp_ns: span, interval_max_abs_ns: span, started_at: None }
        }
        (None, Some(path)) => Timed::from(path)?,
        (None, None) => bail!("--jitter or --from is needed"),
    };
    let stepper = Stepper {
        holding_torque: read("--holding-torque", &args.holding_torque, quantity::torque)?,
        available_torque: match &args.available_torque {
            Some(text) => Some(read("--available-torque", text, quantity::torque)?),
            None => None,
        },
        step_angle: read("--step-angle", &args.step_angle, quantity::angle)?,
        speed: read("--speed", &args.speed, quantity::speed)?,
        jitter_pp_ns: timed.grid_pp_ns,
        share: read("--share", &args.share, quantity::share)?,
    };
    if stepper.available_torque.is_some_and(|torque| torque > stepper.holding_torque) {
        bail!("--available-torque: no motor has more than its holding torque while it turns");
    }
    let drive = DriveTimings {
        step_time_ns: time("--step-time", &args.step_time)?,
        step_space_ns: time("--step-space", &args.step_space)?,
        dir_hold_ns: time("--dir-hold", &args.dir_hold)?,
        dir_setup_ns: time("--dir-setup", &args.dir_setup)?,
    };
    let mut report = Report::empty("impact stepper");
    report.started_at = timed.started_at;
    report.impact = Some(stepper.impact());
    report.step_generation = Some(step_generation(timed.interval_max_abs_ns.ceil() as u64, drive));
    let json = Json::open(args.json.as_deref())?;
    json.write(&view::json::of(&report)?, &view::text::impact(&report))?;
    Ok(Exit::Fine)
}

/// A quantity; a wrong dimension is refused under the option's name.
fn read<T>(option: &str, text: &str, parse: fn(&str) -> Result<T, QuantityError>) -> Result<T> {
    parse(text).map_err(|why| anyhow!("{option}: {why}"))
}

fn time(option: &str, text: &str) -> Result<u64> {
    Ok(read(option, text, quantity::duration)?.as_ns().unsigned_abs())
}

/// What a result says of timing: the worst of all its runs.
struct Timed {
    grid_pp_ns: f64,
    interval_max_abs_ns: f64,
    started_at: Option<String>,
}

impl Timed {
    /// Reads a result, or the one in a directory.
    fn from(path: &Path) -> Result<Self> {
        let stored = stored::read(path)?;
        let runs = stored.report.runs.iter().map(|run| &run.outcome);
        let worst = |values: &mut dyn Iterator<Item = f64>| values.max_by(f64::total_cmp);
        let grid_pp_ns =
            worst(&mut runs.clone().filter_map(|run| Some(run.grid.as_ref()?.jitter_pp_ns)));
        let interval = worst(&mut runs.filter_map(|run| run.jitters.interval_max_abs_ns));
        match (grid_pp_ns, interval) {
            (Some(grid_pp_ns), Some(interval_max_abs_ns)) => {
                Ok(Self { grid_pp_ns, interval_max_abs_ns, started_at: stored.report.started_at })
            }
            _ => bail!("{}: it has no run with a fitted grid", stored.path.display()),
        }
    }
}
