//! The checkpointer of a campaign: saves it, checks its limits, reports what happens.
//!
//! A thread of its own, on the housekeeping CPUs. A disk that cannot be written ends nothing: it is
//! reported once, the campaign goes on in memory, and each time it is tried again.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use punctual_analysis::plain::plain;
use punctual_engine::spawn;
use punctual_os::affinity::{self, CpuMask};
use punctual_os::signal;

use super::CampaignConfig;
use super::directory::Directory;
use super::limits;
use super::pages::{self, Here};
use super::{Shared, unix_s};
use crate::output;
use crate::stored::RESULT;
use crate::view;

/// The most limits and claims that are reported as broken.
const BROKEN_MAX: usize = 64;

/// The campaign, its directory, and its limits and claims.
pub(crate) struct Checkpointer<'a> {
    shared: &'a Shared,
    config: &'a CampaignConfig,
    directory: Mutex<Directory>,
    /// Whether the last save failed.
    failing: AtomicBool,
    /// Whether the last result could not be written.
    unwritten: AtomicBool,
    stop_on_fail: bool,
    /// Whether standard output is the JSON's.
    aside: bool,
}

impl<'a> Checkpointer<'a> {
    pub(crate) fn new(
        shared: &'a Shared,
        config: &'a CampaignConfig,
        directory: Directory,
        stop_on_fail: bool,
        aside: bool,
    ) -> Self {
        let directory = Mutex::new(directory);
        let (failing, unwritten) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { shared, config, directory, failing, unwritten, stop_on_fail, aside }
    }

    pub(crate) fn shared(&self) -> &'a Shared {
        self.shared
    }

    pub(crate) fn config(&self) -> &'a CampaignConfig {
        self.config
    }

    /// Whether nothing was recorded yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.shared.lock().campaign.rows().is_empty()
    }

    /// Prints one line where lines go. A closed output is no error.
    pub(crate) fn print(&self, line: &str) {
        if self.aside {
            output::line(line);
        } else {
            let _nobody = output::page(&(plain(line) + "\n"));
        }
    }

    /// Prints what happened, and keeps it.
    pub(crate) fn note(&self, what: &str) {
        let mut live = self.shared.lock();
        live.campaign.note(unix_s(), what);
        let name = live.campaign.name.clone();
        drop(live);
        let now =
            jiff::Timestamp::from_second(unix_s()).map_or_else(|_| "-".into(), |t| t.to_string());
        self.print(&format!("{now} {name}: {what}"));
    }

    /// Checks the limits, and saves.
    pub(crate) fn checkpoint(&self) {
        let mut campaign = self.shared.snapshot();
        for why in limits::broken(&campaign, self.config) {
            // The figure in it moves: what is before it names the limit and the run.
            let which = |text: &str| text.split(": ").take(2).collect::<Vec<_>>().join(": ");
            let known = campaign.broken.iter().any(|broken| which(broken) == which(&why));
            if known || campaign.broken.len() >= BROKEN_MAX {
                continue;
            }
            let why = plain(&why);
            self.note(&format!("broken for good: {why}"));
            campaign.broken.push(why.clone());
            self.shared.lock().campaign.broken.push(why);
        }
        if self.stop_on_fail && !campaign.broken.is_empty() {
            signal::stop_flag().store(true, Ordering::Relaxed);
        }
        let saved = self.directory().save(&campaign);
        match saved {
            Ok(()) if self.failing.swap(false, Ordering::Relaxed) => {
                self.note("the state can be saved again");
            }
            Ok(()) => {}
            Err(why) => {
                if !self.failing.swap(true, Ordering::Relaxed) {
                    self.note(&format!(
                        "cannot save the state: {why:#}; measuring continues in memory, and \
                         saving will be retried"
                    ));
                }
            }
        }
    }

    /// What is not on the disk as it is now.
    pub(crate) fn unsaved(&self) -> Option<&'static str> {
        let failed = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        let state = failed(&self.failing).then_some("the state");
        state.or(failed(&self.unwritten).then_some(RESULT))
    }

    fn directory(&self) -> std::sync::MutexGuard<'_, Directory> {
        self.directory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the campaign as a result, for other subcommands. Where the state cannot be saved
    /// either, that is reported already.
    pub(crate) fn write_result(&self, here: &Here) {
        let report = pages::report(&self.shared.snapshot(), self.config, here);
        let dir = self.directory().dir().clone();
        let written = view::json(&report).and_then(|json| dir.replace(RESULT, json));
        let before = self.unwritten.swap(written.is_err(), Ordering::Relaxed);
        if let Err(why) = written
            && !before
            && self.unsaved() == Some(RESULT)
        {
            self.note(&format!("{why:#}; retrying after the next batch"));
        }
    }

    /// Saves every so often, and with the result whenever a batch is over, until the channel's
    /// other end is gone. A disk may take its time: the loops do not wait for it.
    pub(crate) fn start<'scope, 'env>(
        &'scope self,
        scope: &'scope Scope<'scope, 'env>,
        housekeeping: &[u32],
        every: Duration,
        batches: mpsc::Receiver<Here>,
    ) -> io::Result<ScopedJoinHandle<'scope, ()>> {
        let housekeeping = housekeeping.to_vec();
        spawn::scoped(scope, "punctual-save", move || {
            let mut mask = CpuMask::EMPTY;
            housekeeping.iter().for_each(|&cpu| mask.insert(cpu));
            if !housekeeping.is_empty() {
                // Where that is refused it runs where it may.
                let _anywhere = affinity::set(0, &mask);
            }
            loop {
                match batches.recv_timeout(every) {
                    Ok(here) => {
                        self.checkpoint();
                        self.write_result(&here);
                    }
                    Err(mpsc::RecvTimeoutError::Timeout) => self.checkpoint(),
                    Err(mpsc::RecvTimeoutError::Disconnected) => break,
                }
            }
        })
    }
}
