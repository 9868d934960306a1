//! The subcommands, one file each: arguments in, a report out, a view printed, an exit code.

pub(crate) mod analyse;
pub(crate) mod baseline;
pub(crate) mod capture;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod executive;
pub(crate) mod export;
pub(crate) mod facts;
pub(crate) mod impact;
pub(crate) mod load;
pub(crate) mod man;
pub(crate) mod measure;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod soak;
pub(crate) mod wait;

use std::path::Path;

use anyhow::Result;
use punctual::core::time::Span;
use punctual_host::facts::Facts;
use punctual_host::root::Root;

use crate::Exit;
use crate::experiment::claims;
use crate::output::Json;
use crate::report::{PlannedRun, Report};
use crate::view;

/// Where facts are read: this machine, or one that was captured.
fn root(captured: Option<&Path>) -> Result<Root> {
    Ok(match captured {
        None => Root::live(),
        Some(dir) => Root::captured(dir)?,
    })
}

/// What to say of facts that are another machine's.
fn foreign(captured: Option<&Path>) -> Vec<String> {
    captured
        .map(|dir| format!("facts are those of {}, the measurements this machine's", dir.display()))
        .into_iter()
        .collect()
}

/// The facts of the machine that measures, by which its CPUs are chosen, where `facts` may be those
/// of another one.
fn here(facts: &Facts, captured: Option<&Path>) -> Facts {
    if captured.is_some() { Facts::collect(&Root::live()) } else { facts.clone() }
}

/// Shows what claims take, and measures nothing.
fn planned(experiment: &str, plans: Vec<PlannedRun>, duration: Span, json: Json) -> Result<Exit> {
    let mut report = Report::empty(experiment);
    report.plans = plans;
    let reach = |plan: &PlannedRun| claims::reach(plan, duration);
    let reached: Vec<String> = report.plans.iter().map(reach).collect();
    json.write(&view::json::of(&report)?, &view::text::plans(&report, &reached))?;
    Ok(Exit::Fine)
}

/// The exit that the limits and claims ask for.
fn exit(report: &Report) -> Exit {
    if report.verdict.ok { Exit::Fine } else { Exit::Failed }
}

/// The exit that the limits ask for, or what went wrong on the way: said last, after all else was
/// written.
fn exit_after(report: &Report, trouble: Option<anyhow::Error>) -> Result<Exit> {
    trouble.map_or_else(|| Ok(exit(report)), Err)
}
