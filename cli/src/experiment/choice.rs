//! The CPUs to measure: as requested, else as the facts of the machine say.

use anyhow::{Context, Result, bail};
use punctual_host::choose::{check_cpus, choose, parse_cpus};
use punctual_host::cpulist::CpuList;
use punctual_host::facts::MachineFacts;

use crate::report::Choice;

/// The CPUs that `--cpu` names; without it the one that the facts recommend.
pub(crate) fn pick(requested: Option<&str>, here: &MachineFacts) -> Result<(CpuList, Choice)> {
    let Some(text) = requested else {
        let chosen = choose(here);
        let cpus = CpuList::single(chosen.cpu);
        check_cpus(&cpus, here)?;
        let choice = Choice { cpus: cpus.to_string(), why: chosen.why };
        return Ok((cpus, choice));
    };
    let cpus = parse_cpus(text, here).context("--cpu")?;
    let choice = Choice { cpus: cpus.to_string(), why: "as requested".to_owned() };
    Ok((cpus, choice))
}

/// The same for what is done on one CPU alone.
pub(crate) fn one_cpu(
    requested: Option<&str>,
    here: &MachineFacts,
    what: &str,
) -> Result<(u32, Choice)> {
    let (cpus, choice) = pick(requested, here)?;
    match (cpus.first(), cpus.len()) {
        (Some(cpu), 1) => Ok((cpu, choice)),
        _ => bail!("--cpu {}: {what} on one CPU", requested.unwrap_or_default()),
    }
}
