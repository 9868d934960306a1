//! `punctual impact MODEL`: what lateness does to an application, in the unit of its user's work.
//!
//! The formulas are `punctual_analysis::impact`; this takes the timing from a result, or by hand,
//! and of all runs the one that is worst for the application. `stepper` has a page of its own.

pub(crate) mod args;
mod stepper;

use anyhow::{Result, bail};
use punctual::core::time::Span;
use punctual_analysis::impact::application::{Application, Suits};
use punctual_analysis::impact::audio::Audio;
use punctual_analysis::impact::ethercat::{Ethercat, Mode};
use punctual_analysis::impact::pacing::Pacing;
use punctual_analysis::impact::position::Position;
use punctual_analysis::impact::pwm::Pwm;
use punctual_analysis::impact::quadrature::Quadrature;
use punctual_analysis::impact::safety::Safety;
use punctual_analysis::impact::sampling::Sampling;
use punctual_analysis::impact::servo::Servo;
use punctual_analysis::impact::timing::{Lack, Timing};
use punctual_analysis::impact::tsn::Etf;
use punctual_analysis::impact::velocity::Velocity;

use crate::Exit;
use crate::output::Json;
use crate::report::{Envelope, Impact as Impacted, ImpactBody, Report, Run};
use crate::stored::{self, Stored};
use args::{EthercatArgs, Impact, ModeName, TimedArgs};

/// Runs the subcommand.
pub(crate) fn run(model: &Impact) -> Result<Exit> {
    match model {
        Impact::Stepper(args) => stepper::run(args),
        Impact::Servo(args) => {
            let servo = Servo {
                crossover: args.crossover,
                period_ns: args.period.map(ns),
                delay_ns: ns_or_none(args.delay),
                phase_allowed: args.phase_allowed,
                closed_loop: args.closed_loop.clone(),
            };
            tell(&args.timed, "servo", |timing| servo.impact(timing))
        }
        Impact::Sampling(args) => {
            let sampling = Sampling { signal: args.signal, bits: args.bits };
            tell(&args.timed, "sampling", |timing| sampling.impact(timing))
        }
        Impact::Audio(args) => {
            let audio = Audio {
                rate: args.rate,
                frames: args.frames,
                buffers: args.buffers,
                compute_ns: ns_or_none(args.compute),
                wanted_ns: args.wanted.map(ns),
            };
            tell(&args.timed, "audio", |timing| audio.impact(timing))
        }
        Impact::Quadrature(args) => {
            let looks = Quadrature { period_ns: args.period.map(ns), edges: args.edges };
            tell(&args.timed, "quadrature", |timing| looks.impact(timing))
        }
        Impact::Position(args) => {
            let position = Position { speed: args.speed, tolerance: args.tolerance };
            tell(&args.timed, "position", |timing| position.impact(timing))
        }
        Impact::Velocity(args) => {
            let speed = Velocity { period_ns: args.period.map(ns), tolerance: args.tolerance };
            tell(&args.timed, "velocity", |timing| speed.impact(timing))
        }
        _ => run_more(model),
    }
}

/// As `run`, of what is sent, switched or must react.
fn run_more(model: &Impact) -> Result<Exit> {
    match model {
        Impact::Ethercat(args) => {
            let bus = ethercat(args)?;
            tell(&args.timed, "ethercat", |timing| bus.impact(timing))
        }
        Impact::Tsn(args) => {
            let queue = Etf { delta_ns: ns(args.delta), losses: args.losses };
            tell(&args.timed, "tsn", |timing| queue.impact(timing))
        }
        Impact::Pacing(args) => {
            let stream = Pacing { rate: args.rate, buffer: args.buffer };
            tell(&args.timed, "pacing", |timing| stream.impact(timing))
        }
        Impact::Pwm(args) => {
            let pwm = Pwm { pulses: args.pulses, bits: args.bits };
            tell(&args.timed, "pwm", |timing| pwm.impact(timing))
        }
        Impact::Safety(args) => {
            let safety = Safety {
                period_ns: args.period.map(ns),
                compute_ns: ns_or_none(args.compute),
                limit_ns: args.reaction.map(ns),
            };
            tell(&args.timed, "safety", |timing| safety.impact(timing))
        }
        // All others are `run`'s.
        _ => bail!("no such application"),
    }
}

fn ethercat(args: &EthercatArgs) -> Result<Ethercat> {
    let sync_allowed_ns = args.sync_allowed.map(|span| span.as_ns().unsigned_abs());
    let mode = match (args.mode, sync_allowed_ns) {
        (ModeName::BusShift, sync_allowed_ns) => Mode::BusShift { sync_allowed_ns },
        (ModeName::MasterShift, None) => Mode::MasterShift,
        (ModeName::MasterShift, Some(_)) => bail!("--sync-allowed: it goes with --mode bus-shift"),
    };
    Ok(Ethercat {
        mode,
        shift_ns: ns(args.shift),
        frame_ns: ns(args.frame),
        propagation_ns: ns_or_none(args.propagation),
        copy_ns: ns_or_none(args.copy),
    })
}

fn ns(span: Span) -> f64 {
    span.as_ns() as f64
}

fn ns_or_none(span: Option<Span>) -> f64 {
    span.map_or(0.0, ns)
}

/// Applies a model to the timing, and writes what it says.
fn tell(
    args: &TimedArgs,
    model: &str,
    apply: impl Fn(&Timing) -> Result<Application, Lack>,
) -> Result<Exit> {
    let mut envelope = Envelope::of(&format!("impact {model}"));
    let impact = match (&args.from, args.time_error) {
        (Some(path), _) => {
            let stored = stored::read(path)?;
            envelope.started_at.clone_from(&stored.report.envelope.started_at);
            envelope.machine.clone_from(&stored.report.envelope.machine);
            worst(&stored, args.run.as_deref(), apply)?
        }
        (None, Some(span)) => {
            apply(&Timing::given(ns(span), args.cycles)).map_err(|lack| match lack {
                Lack("period") => {
                    anyhow::anyhow!("--period: by hand there is no run to take it from")
                }
                lack => anyhow::anyhow!("--time-error: {lack}"),
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
    super::write(&report, Json::open(args.json.as_deref())?)?;
    Ok(super::exit(&report))
}

/// The runs that a model is applied to: all, or the one that is named.
fn runs<'a>(stored: &'a Stored, name: Option<&str>) -> Result<Vec<&'a Run>> {
    let shown = stored.path.display();
    let all = stored.report.body.runs();
    let runs: Vec<&Run> =
        all.iter().filter(|run| name.is_none_or(|name| name == run.name)).collect();
    match (runs.is_empty(), name) {
        (false, _) => Ok(runs),
        (true, None) => bail!("{shown}: it has no runs"),
        (true, Some(name)) => {
            let names: Vec<String> = all.iter().map(|run| format!("{:?}", run.name)).collect();
            bail!("{shown}: no run {name:?}; there are: {}", names.join(", "))
        }
    }
}

/// What a model says of the run that is worst for it. A run that lacks something is passed over
/// unless all do.
fn worst(
    stored: &Stored,
    name: Option<&str>,
    apply: impl Fn(&Timing) -> Result<Application, Lack>,
) -> Result<Application> {
    let (mut worst, mut lacks) = (None::<Application>, None);
    for run in runs(stored, name)? {
        match apply(&Timing::of(&run.outcome, run.setup.period_ns)) {
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
        (None, None) => bail!("{}: it has no runs", stored.path.display()),
    }
}
