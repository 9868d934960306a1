//! The parent's side: starts loads, takes their counts, ends them.

use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use punctual::spawn;

use super::bounds::LoadBounds;
use super::error::LoadError;
use super::kinds::{Start, own};
use super::launcher::Launcher;
use super::observed::{self, Shared};
use super::part::{GRACE, Part};
use super::report::{LoadReport, rate_per_s};
use super::setup::Setup;
use super::spec::LoadSpec;
use super::supervisor::{self, Launch};

/// A part as long as it runs.
struct RunningPart {
    name: String,
    unit: &'static str,
    note: Option<String>,
    observed: Shared,
}

/// Loads that run; they end when it is dropped, and with this process in any case.
pub struct RunningLoads {
    parts: Vec<RunningPart>,
    pids: Vec<u32>,
    /// The supervisor ends the loads when this is dropped.
    stop: Option<Sender<()>>,
    supervisor: Option<JoinHandle<()>>,
}

impl RunningLoads {
    /// Starts `specs` together and returns when each is ready, or none of them runs. No spec is
    /// fine: nothing is started then.
    ///
    /// May be called from any thread; the loads inherit neither its policy nor its CPUs. SIGPIPE
    /// must be ignored, as Rust programs have it, since a load may end before it is spoken to.
    ///
    /// # Errors
    /// [`LoadError::Bounds`], [`LoadError::Missing`] and [`LoadError::StressNg`] before anything is
    /// started, [`LoadError::Start`] after.
    pub fn start(
        specs: &[LoadSpec],
        launcher: &dyn Launcher,
        bounds: &LoadBounds,
    ) -> Result<Self, LoadError> {
        bounds.check()?;
        let mut running =
            Self { parts: Vec::new(), pids: Vec::new(), stop: None, supervisor: None };
        let mut launches = Vec::new();
        for spec in specs {
            for part in parts(spec, bounds)? {
                let observed = Shared::default();
                if let Some(setup) = part.setup {
                    let command: Command = launcher.command(&setup.to_args());
                    let (name, observed) = (part.name.clone(), Arc::clone(&observed));
                    let (grace, reports) = (part.grace, own(&setup.name).is_some());
                    launches.push(Launch { name, command, observed, reports, grace });
                }
                let (name, unit, note) = (part.name, part.unit, part.note);
                running.parts.push(RunningPart { name, unit, note, observed });
            }
        }
        if !launches.is_empty() {
            running.supervise(launches)?;
        }
        Ok(running)
    }

    fn supervise(&mut self, launches: Vec<Launch>) -> Result<(), LoadError> {
        let failed = |why: String| LoadError::Start { name: "supervisor".to_owned(), why };
        let (to_supervisor, stop) = channel();
        let (to_us, started) = channel();
        let supervise = move || supervisor::supervise(launches, &to_us, &stop);
        let supervisor = spawn::plain("load-supervisor", supervise);
        let supervisor = supervisor.map_err(|why| failed(why.to_string()))?;
        self.stop = Some(to_supervisor);
        self.supervisor = Some(supervisor);
        let started = started.recv().map_err(|_| failed("its thread ended".to_owned()))?;
        // On an error the drop of `self` waits until the supervisor has ended what did start.
        self.pids = started?;
        Ok(())
    }

    /// The processes of the loads, for whoever traces; each leads a process group.
    pub fn pids(&self) -> &[u32] {
        &self.pids
    }

    /// What the loads did so far.
    pub fn reports(&self) -> Vec<LoadReport> {
        self.parts.iter().flat_map(reports).collect()
    }

    /// Ends the loads, waits until nothing of them is left (a moment for our own, some seconds at
    /// most for stress-ng and glxgears), and gives what they did.
    pub fn stop(mut self) -> Vec<LoadReport> {
        self.end();
        self.reports()
    }

    fn end(&mut self) {
        drop(self.stop.take());
        if let Some(supervisor) = self.supervisor.take() {
            // A supervisor that panicked has ended, and the kernel has ended its loads with it.
            let _ = supervisor.join();
        }
    }
}

impl Drop for RunningLoads {
    fn drop(&mut self) {
        self.end();
    }
}

/// The processes of one load.
fn parts(spec: &LoadSpec, bounds: &LoadBounds) -> Result<Vec<Part>, LoadError> {
    let row = spec.row();
    Ok(match (&row.start, spec.args()) {
        (Start::Own(_), _) => vec![Part {
            name: spec.to_string(),
            setup: Some(Setup::new(row.name, bounds)),
            unit: row.unit,
            note: None,
            grace: GRACE,
        }],
        (Start::Parts(parts), _) => parts(bounds),
        (Start::Program(part), Some(args)) => vec![part(args, bounds)?],
        // A list that was read has them.
        (Start::Program(_), None) => Vec::new(),
    })
}

fn reports(part: &RunningPart) -> Vec<LoadReport> {
    let observed = observed::lock(&part.observed);
    let notes: Vec<&str> = part.note.iter().chain(&observed.notes).map(String::as_str).collect();
    let note = (!notes.is_empty()).then(|| notes.join("; "));
    let report = |rate: Option<f64>, unit: &str| LoadReport {
        name: part.name.clone(),
        rate,
        unit: format!("{unit}/s"),
        note: note.clone(),
        deaths: Vec::new(),
    };
    let rated = observed.counts.iter();
    let rated = rated.map(|of| report(rate_per_s(of.count, of.at_ns), &of.unit));
    let mut reports: Vec<LoadReport> = rated.collect();
    if reports.is_empty() {
        let mut none = report(None, part.unit);
        none.note.get_or_insert_with(|| "no counts yet".to_owned());
        reports.push(none);
    }
    // A process is listed once, however many rates it has.
    reports[0].deaths.clone_from(&observed.deaths);
    reports
}
