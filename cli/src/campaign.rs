//! A campaign as a directory keeps it: its options, its states, and what it comes to as a report.
//!
//! `punctual soak` begins campaigns and goes on with them; whoever judges recorded data reads them.

pub(crate) mod config;
pub(crate) mod directory;
pub(crate) mod pages;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use punctual_report::Report;

use crate::args::ReportArgs;
use crate::question::QuestionArgs;
use config::CampaignConfig;
use pages::SessionFacts;

/// The name of a run of a setup, counted from 0, in results: with that of its setup where there are
/// several.
pub(crate) fn run_name(run: &str, setup: usize, setups: usize) -> String {
    if setups > 1 { format!("{run}, {}", setup_name(setup)) } else { run.to_owned() }
}

/// The name of a setup, counted from 0.
pub(crate) fn setup_name(setup: usize) -> String {
    format!("setup {}", setup + 1)
}

/// The report of a campaign as it is on disk, judged by these limits, claims and question; where
/// there are none, by its own.
pub(crate) fn judged(dir: &Path, args: &ReportArgs, question: &QuestionArgs) -> Result<Report> {
    stored(dir, |kept| CampaignConfig::kept(kept, args, question))
}

/// The report of a campaign as it is on disk, with the configuration that `config` makes of the
/// options that it keeps.
pub(crate) fn stored(
    dir: &Path,
    config: impl Fn(&BTreeMap<String, String>) -> Result<CampaignConfig>,
) -> Result<Report> {
    let found = directory::read(dir)?;
    let Some(found) = found else { bail!("{}: no campaign in this directory", dir.display()) };
    let config = config(&found.campaign.requested).with_context(|| dir.display().to_string())?;
    let measured_by = directory::measured_by(dir);
    let known = SessionFacts { measured_by, ..SessionFacts::default() };
    let mut report = pages::report(&found.campaign, &config, &known);
    report.envelope.warn_of(found.trouble);
    Ok(report)
}
