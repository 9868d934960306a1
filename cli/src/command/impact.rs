//! `punctual impact MODEL`: what lateness does to an application, in the unit of its user's work.
//!
//! The formulas are `punctual_analysis::impact`; this takes the timing from a result, or by hand,
//! and of all runs the one that is worst for the application. `stepper` has a page of its own.

pub(crate) mod args;
mod stepper;

use anyhow::{Result, anyhow, bail};
use punctual_analysis::impact::application::{Application, Suits};
use punctual_analysis::impact::model::Assess;
use punctual_analysis::impact::timing::{Lack, Timing};

use crate::exit::Exit;
use crate::report::{Envelope, Impact as Impacted, ImpactBody, Report};
use crate::stored::{self, Stored};
use args::{Impact, ModelArgs};

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
