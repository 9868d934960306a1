//! The command line's side of an experiment: its words, names and files.
//!
//! `punctual_lab::experiment` runs experiments; here they get a progress line and an envelope.

pub(crate) mod choices;
pub(crate) mod claims;
pub(crate) mod follow;
mod learned;
pub(crate) mod loops;
pub(crate) mod words;

use std::path::Path;

use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use punctual_blame::config::Platform;
use punctual_engine::clocks::PauseTrial;
use punctual_engine::quiet::Quiet;
use punctual_host::choose::{check_cpus, choose, parse_cpus};
use punctual_host::cpulist::{CpuList, MAX_CPUS};
use punctual_host::facts::{MachineFacts, SmiCount};
use punctual_host::plan;
use punctual_host::root::Root;
use punctual_host::rules::Inputs;
use punctual_host::settings::{KernelSettings, WatchedSettings};
use punctual_lab::blame::RecordedMachine;
use punctual_lab::experiment::{
    self as lab, ClockFacts, Experiment, ExperimentEnd, ExperimentError, FinishedExperiment,
    Observer, Setting,
};
use punctual_lab::load::LoadSpec;
use punctual_lab::periodic::{LibraryLoop, Stream};
use punctual_lab::quiet;
use punctual_os::signal;
use punctual_report::{Choice, Clock, Disturbance, EndedBy, Envelope, Findings, Warning};

use crate::args::root;
use crate::parse::Phase;
use crate::program::{PROGRAM, launcher};
use crate::settings::WorkloadName;
use crate::{format, output};

/// Cycles at the start of each block that are marked cold.
pub(crate) const COLD_CYCLES: u32 = 10;

/// Runs an experiment on this machine, of which `here` is known.
///
/// # Errors
/// Nothing was measured.
pub(crate) fn run<E: Experiment>(
    experiment: E,
    facts: &MachineFacts,
    observer: &mut dyn Observer,
) -> Result<FinishedExperiment<E::Outcome>, ExperimentError> {
    // Before anything runs; a refused plan is an error below.
    for caution in lab::judge(&experiment.demands(), facts).unwrap_or_default() {
        output::message(&words::planned(&caution));
    }
    let launcher = launcher();
    lab::run(experiment, Setting { facts, launcher: &launcher, observer })
}

/// The part that every result of an experiment has.
pub(crate) fn envelope<T>(
    name: &str,
    machine: &Machine,
    choice: Choice,
    started: Timestamp,
    finished: &FinishedExperiment<T>,
) -> Envelope {
    // Where the words name no list, nothing is said of CPUs.
    let measured = CpuList::parse(&choice.cpus, MAX_CPUS - 1).unwrap_or_default();
    let disturbance = |(at_ns, event): &(u64, _)| Disturbance {
        at_ns: *at_ns,
        what: punctual_engine::disturbance::Disturbance::to_string(event),
    };
    Envelope {
        started_at: Some(started.to_string()),
        incomplete: finished.end != ExperimentEnd::Finished,
        ended_by: match finished.end {
            ExperimentEnd::Finished => None,
            ExperimentEnd::Stopped => Some(EndedBy::of_signal(signal::stop_signal())),
            ExperimentEnd::Late => Some(EndedBy::Late),
            ExperimentEnd::Lost => Some(EndedBy::Link),
            ExperimentEnd::Watchdog(_) => Some(EndedBy::Watchdog),
            ExperimentEnd::Load(_) => Some(EndedBy::Load),
        },
        machine: Some(machine.facts.clone()),
        machine_settings: Some(machine.settings.clone()),
        choice: Some(choice),
        clock: Some(clock(&finished.clock)),
        session: Some(words::session(finished, &machine.measuring)),
        disturbances: finished.disturbances.iter().map(disturbance).collect(),
        warnings: words::warnings(finished, &machine.measuring, &measured)
            .into_iter()
            .chain(machine.changed().map(Warning::from))
            .collect(),
        ..Envelope::of(PROGRAM, name)
    }
}

/// The clock that stamps were taken with.
pub(crate) fn clock(clock: &ClockFacts) -> Clock {
    let (pause, off, lead) = match clock.pauses {
        PauseTrial::Absent => (None, None, None),
        PauseTrial::Off(pause, fault) => (Some(pause), Some(fault.to_string()), None),
        PauseTrial::Used(used) => (Some(used.instruction()), None, Some(used.lead())),
    };
    Clock {
        source: clock.name.to_owned(),
        untrusted: clock.untrusted.clone(),
        rate_hz: clock.rate.map(|rate| rate.hz),
        rate_bound_ppb: clock.rate.map(|rate| rate.bound_ppb).filter(|bound| bound.is_finite()),
        slew_ppb: clock.slew.map(|slew| slew.ppb),
        slew_bound_ppb: clock.slew.map(|slew| slew.bound_ppb),
        stamp_ns: clock.cost.now_ns,
        poll_ns: clock.cost.poll_ns,
        wake_ns: clock.cost.wake_ns,
        timed_pause: pause.map(|pause| pause.name().to_owned()),
        timed_pause_off: off,
        timed_pause_lead_ns: lead.map(|lead| lead.as_ns().unsigned_abs()),
    }
}

/// The CPUs that `--cpu` names; without it the one that the facts recommend.
pub(crate) fn pick(requested: Option<&str>, facts: &MachineFacts) -> Result<(CpuList, Choice)> {
    let Some(text) = requested else {
        let chosen = choose(facts);
        let cpus = CpuList::single(chosen.cpu);
        check_cpus(&cpus, facts)?;
        let choice = Choice { cpus: cpus.to_string(), why: chosen.why };
        return Ok((cpus, choice));
    };
    let cpus = parse_cpus(text, facts).context("--cpu")?;
    let choice = Choice { cpus: cpus.to_string(), why: "as requested".to_owned() };
    Ok((cpus, choice))
}

/// The one CPU that `--cpu` names, for what is done on one alone; without it the recommended one.
pub(crate) fn one_cpu(
    requested: Option<&str>,
    facts: &MachineFacts,
    measured: &str,
) -> Result<(u32, Choice)> {
    let (cpus, choice) = pick(requested, facts)?;
    match (cpus.first(), cpus.len()) {
        (Some(cpu), 1) => Ok((cpu, choice)),
        _ => bail!("--cpu {}: {measured} on one CPU", requested.unwrap_or_default()),
    }
}

/// The name of the condition with these loads, in results.
pub(crate) fn condition_name(loads: &[LoadSpec]) -> String {
    let names: Vec<String> = loads.iter().map(ToString::to_string).collect();
    if names.is_empty() { "idle".to_owned() } else { names.join(",") }
}

/// Puts every loop where `phase` says; the notes about it, one for each loop that was put
/// somewhere else than at zero, or could not be.
pub(crate) fn settle(streams: &mut [Stream], phase: Phase) -> Result<Vec<String>> {
    let mut notes = Vec::new();
    if phase != Phase::Quiet {
        return Ok(notes);
    }
    for stream in streams {
        let quiet = find(stream)?;
        stream.phase_ns = quiet.map_or(stream.phase_ns, |quiet| quiet.phase_ns);
        notes.push(words(stream, quiet));
    }
    Ok(notes)
}

/// The loop of the library beside `stream`, where its builder puts it by default: at a quiet phase,
/// whatever that of the others is. And what a reader should know of it.
pub(crate) fn library(name: &str, stream: &Stream, phase: Phase) -> Result<(LibraryLoop, String)> {
    // That of the others is a quiet one, then.
    let is_placed = phase == Phase::Quiet;
    let quiet = if is_placed { None } else { find(stream)? };
    let found_ns = quiet.map_or(0, |quiet| quiet.phase_ns);
    let phase_ns = if is_placed { stream.phase_ns } else { found_ns };
    let placed = if is_placed {
        "as those of the others".to_owned()
    } else if quiet.is_some() {
        format!("away from the tick, at a phase of {}", format::ns(Some(phase_ns as f64)))
    } else {
        "at phase zero, for its period meets the tick at any phase".to_owned()
    };
    let note = format!(
        "\"{name}\" is the loop of punctual::Loop with its defaults; its releases lie {placed}"
    );
    Ok((LibraryLoop { phase_ns }, note))
}

fn find(stream: &Stream) -> Result<Option<Quiet>> {
    Ok(quiet::find(&stream.thread, stream.period)?)
}

/// Where a loop was put, and why. What listening found need not be this kernel's own tick: a host's
/// comes through, and so does a steady loop of others.
fn words(stream: &Stream, quiet: Option<Quiet>) -> String {
    let cpu =
        stream.thread.pinned_to().map_or_else(|| "a CPU".to_owned(), |cpu| format!("CPU {cpu}"));
    let period = format::period(stream.period.as_ns());
    match quiet {
        Some(quiet) if !quiet.is_detected() => format!(
            "quiet phase: no tick of {cpu} was detected; releases every {period} are placed {} \
             away from where Linux has it since 6.4",
            format::ns(Some(quiet.clear_ns as f64))
        ),
        Some(quiet) => format!(
            "quiet phase: {cpu} is interrupted every {}, as by a tick (the kernel's, its host's, \
             or a loop's); releases every {period} are placed {} away from that",
            format::period(quiet.tick_ns),
            format::ns(Some(quiet.clear_ns as f64))
        ),
        None => format!(
            "no quiet phase: releases every {period} meet the tick of {cpu} at any phase, so they \
             stay at phase zero"
        ),
    }
}

/// The machine that measures, and the one that the result names: usually one.
pub(crate) struct Machine {
    /// Where facts are read.
    pub(crate) root: Root,
    /// The facts of the machine that the result names.
    pub(crate) facts: MachineFacts,
    /// The facts of the machine that measures, by which CPUs are chosen.
    pub(crate) measuring: MachineFacts,
    /// Its settings before anything is measured.
    settings: WatchedSettings,
    /// Says so where they are two.
    pub(crate) foreign: Option<String>,
}

impl Machine {
    /// This machine; with `captured`, the one whose facts are there.
    ///
    /// # Errors
    /// A captured machine cannot be read.
    pub(crate) fn of(captured: Option<&Path>) -> Result<Self> {
        let root = root(captured)?;
        let facts = MachineFacts::collect(&root);
        let measuring =
            if captured.is_some() { MachineFacts::collect(&Root::live()) } else { facts.clone() };
        let foreign = captured.map(|dir| {
            format!("the facts come from {}, the measurements from this machine", dir.display())
        });
        let settings = WatchedSettings::read(&Root::live());
        Ok(Self { root, facts, measuring, settings, foreign })
    }

    /// Facts that attribution needs of the machine that measures: platform, kernel, SMI counter.
    pub(crate) fn recorded(&self) -> RecordedMachine {
        let platform = match self.measuring.virtualization.virtualization.value() {
            None => Platform::Unknown,
            Some(_) if self.measuring.virtualization.is_guest() => Platform::VirtualMachine,
            Some(_) => Platform::Metal,
        };
        let kernel = KernelSettings::collect(&Root::live()).release;
        RecordedMachine { platform, kernel, smi_cpu: SmiCount::cpu(&self.measuring) }
    }

    /// The findings of the rules about tuning on a CPU, for a loop of this purpose.
    pub(crate) fn findings(&self, cpu: u32, purpose: Option<&str>) -> Findings {
        let workload = purpose.and_then(WorkloadName::of_purpose);
        let cpus = CpuList::single(cpu);
        let settings = KernelSettings::collect(&self.root);
        let inputs = Inputs {
            facts: &self.facts,
            settings: &settings,
            cpus: &cpus,
            workload: workload.map(Into::into),
        };
        let named = purpose.filter(|_| workload.is_some()).map(ToOwned::to_owned);
        let verdicts = plan::verdicts(&inputs, &self.root);
        Findings { cpus: cpus.to_string(), workload: named, verdicts }
    }

    /// The warning that settings of the machine that measures changed meanwhile; `None` where none
    /// did.
    fn changed(&self) -> Option<String> {
        words::changed(&self.settings.changed(&WatchedSettings::read(&Root::live())))
    }
}
