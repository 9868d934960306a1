//! The command line's side of an experiment: its words, names and files.
//!
//! How experiments run is `punctual_lab::experiment`; here they get a progress line and become what
//! every result has.

mod choice;
mod claims;
mod destination;
mod follow;
pub(crate) mod launcher;
mod learned;
mod loops;
mod machine;
mod quiet;
mod recorded;
mod runs;
pub(crate) mod words;

use jiff::Timestamp;
use punctual::clocks::PauseTrial;
use punctual_host::facts::MachineFacts;
use punctual_lab::experiment::{
    self as lab, ClockFacts, Experiment, ExperimentEnd, ExperimentError, FinishedExperiment,
    Observer, Setting,
};

use crate::output;
use crate::report::{Choice, Clock, Disturbance, EndedBy, Envelope};

pub(crate) use choice::{one_cpu, pick};
pub(crate) use claims::{announce, plans, reach};
pub(crate) use follow::Target;
pub(crate) use loops::{LoopExperiment, MeasuredLoops};
pub(crate) use machine::{Machine, root};
pub(crate) use quiet::settle;
pub(crate) use recorded::planned;
pub(crate) use runs::{load_deaths, run_name};

/// The priority that a measuring loop asks for: above the kernel's threaded interrupts (50).
pub(crate) const PRIORITY: u8 = 90;

/// Cycles at the start of each block that are marked cold.
pub(crate) const COLD_CYCLES: u32 = 10;

/// Runs an experiment on this machine, of which `here` is known.
///
/// # Errors
/// Why nothing was measured.
pub(crate) fn run<E: Experiment>(
    experiment: E,
    here: &MachineFacts,
    observer: &mut dyn Observer,
) -> Result<FinishedExperiment<E::Outcome>, ExperimentError> {
    // Before anything runs; a plan that is refused says so itself.
    for caution in lab::judge(&experiment.demands(), here).unwrap_or_default() {
        output::message(&words::planned(&caution));
    }
    let launcher = launcher::launcher();
    lab::run(experiment, Setting { here, launcher: &launcher, observer })
}

/// What every result of an experiment has.
pub(crate) fn envelope<T>(
    name: &str,
    machine: &Machine,
    choice: Choice,
    started: Timestamp,
    finished: &FinishedExperiment<T>,
) -> Envelope {
    let disturbance = |(at_ns, what): &(u64, _)| Disturbance {
        at_ns: *at_ns,
        what: punctual::disturbance::Disturbance::to_string(what),
    };
    Envelope {
        started_at: Some(started.to_string()),
        incomplete: finished.end != ExperimentEnd::Finished,
        ended_by: match finished.end {
            ExperimentEnd::Finished => None,
            ExperimentEnd::Stopped => Some(EndedBy::Interrupt),
            ExperimentEnd::Lost => Some(EndedBy::Link),
            ExperimentEnd::Watchdog(_) => Some(EndedBy::Watchdog),
            ExperimentEnd::Load(_) => Some(EndedBy::Load),
        },
        machine: Some(machine.facts.clone()),
        choice: Some(choice),
        clock: Some(clock(&finished.clock)),
        session: Some(words::session(finished, &machine.here)),
        disturbances: finished.disturbances.iter().map(disturbance).collect(),
        warnings: words::warnings(finished, &machine.here)
            .into_iter()
            .chain(machine.changed())
            .collect(),
        ..Envelope::of(name)
    }
}

/// What stamps were taken with.
pub(crate) fn clock(clock: &ClockFacts) -> Clock {
    let (pause, off, lead) = match clock.pauses {
        PauseTrial::Absent => (None, None, None),
        PauseTrial::Off(pause, fault) => (Some(pause), Some(fault.to_string()), None),
        PauseTrial::Used(used) => (Some(used.instruction), None, Some(used.lead)),
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
