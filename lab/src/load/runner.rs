//! The parent's side: starts loads, hears their counts, ends them.

use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use super::bounds::Bounds;
use super::error::LoadError;
use super::keeper::{self, Order, Shared};
use super::kinds::Start;
use super::launcher::Launcher;
use super::part::{GRACE, Part};
use super::report::{LoadReport, rate_per_s};
use super::setup::Setup;
use super::spec::LoadSpec;

/// A part as long as it runs.
struct Heard {
    name: String,
    unit: &'static str,
    note: Option<String>,
    heard: Shared,
}

/// Loads that run; they end when it is dropped, and with this process in any case.
pub struct Running {
    parts: Vec<Heard>,
    pids: Vec<u32>,
    /// The keeper ends the loads when this is dropped.
    stop: Option<Sender<()>>,
    keeper: Option<JoinHandle<()>>,
}

impl Running {
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
        bounds: &Bounds,
    ) -> Result<Self, LoadError> {
        bounds.check()?;
        let mut running = Self { parts: Vec::new(), pids: Vec::new(), stop: None, keeper: None };
        let mut orders = Vec::new();
        for spec in specs {
            for part in parts(spec, bounds)? {
                let heard = Shared::default();
                if let Some(setup) = part.setup {
                    let command: Command = launcher.command(&setup.to_args());
                    let (name, heard) = (part.name.clone(), Arc::clone(&heard));
                    orders.push(Order { name, command, heard, grace: part.grace });
                }
                let (name, unit, note) = (part.name, part.unit, part.note);
                running.parts.push(Heard { name, unit, note, heard });
            }
        }
        if !orders.is_empty() {
            running.keep(orders)?;
        }
        Ok(running)
    }

    fn keep(&mut self, orders: Vec<Order>) -> Result<(), LoadError> {
        let failed = |why: String| LoadError::Start { name: "keeper".to_owned(), why };
        let (to_keeper, stop) = channel();
        let (to_us, started) = channel();
        let keeper = std::thread::Builder::new()
            .name("load-keeper".to_owned())
            .spawn(move || keeper::keep(orders, &to_us, &stop))
            .map_err(|why| failed(why.to_string()))?;
        self.stop = Some(to_keeper);
        self.keeper = Some(keeper);
        let started = started.recv().map_err(|_| failed("its thread ended".to_owned()))?;
        // On an error the drop of `self` waits until the keeper has ended what did start.
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
        if let Some(keeper) = self.keeper.take() {
            // A keeper that panicked has ended, and the kernel has ended its loads with it.
            let _ = keeper.join();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// The processes of one load.
fn parts(spec: &LoadSpec, bounds: &Bounds) -> Result<Vec<Part>, LoadError> {
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

fn reports(part: &Heard) -> Vec<LoadReport> {
    let heard = keeper::lock(&part.heard);
    let notes: Vec<&str> = part.note.iter().chain(&heard.notes).map(String::as_str).collect();
    let note = (!notes.is_empty()).then(|| notes.join("; "));
    let report = |rate: Option<f64>, unit: &str| LoadReport {
        name: part.name.clone(),
        rate,
        unit: format!("{unit}/s"),
        note: note.clone(),
    };
    if heard.counts.is_empty() {
        let mut none = report(None, part.unit);
        none.note.get_or_insert_with(|| "nothing was counted yet".to_owned());
        return vec![none];
    }
    let rated = heard.counts.iter();
    rated.map(|counted| report(rate_per_s(counted.count, counted.at_ns), &counted.unit)).collect()
}
