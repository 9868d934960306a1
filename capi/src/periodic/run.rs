//! A run of an executive on the calling thread: session, clock and wait, then the loop.
//!
//! Everything before the loop is setup; in the loop the caller's functions are called, and pages
//! written.

use std::ffi::c_int;

use punctual::clocks::MachineClock;
use punctual::core::clock::Clock;
use punctual::core::dispatch::{Job, Overruns, State};
use punctual::core::executive::Ended;
use punctual::core::executive::many::{self, Dispatch, Flow, Many, Observe};
use punctual::core::page::{Kind, Page};
use punctual::core::time::{Instant, Span};
use punctual::core::wait::{Strategy, Wait};
use punctual::lone::{Guard, Remote, rehearse};
use punctual::session::Thread;

use super::executive::{Built, Executive, Setup};
use crate::border::Failure;
use crate::looped::listed;
use crate::options::Options;
use crate::shares::Share;
use crate::stats::Cycle;
use crate::task::Callback;
use crate::wait_info::WaitInfo;

/// From the end of setup to the first release, at least.
const LEAD: Span = Span::from_ms(1);

/// Calls the body of the task that is to run.
struct Calls<'b> {
    callbacks: &'b [Callback],
    /// What the last one said that ended the run.
    said: c_int,
}

impl Dispatch for Calls<'_> {
    fn run(&mut self, rank: usize, cycle: &mut many::Cycle<'_>) -> Flow {
        let Some(callback) = self.callbacks.get(rank) else { return Flow::Stop };
        match callback.call(&Cycle::of(cycle)) {
            0 => Flow::Continue,
            said => {
                self.said = said;
                Flow::Stop
            }
        }
    }
}

/// Writes the page of each task, and shows the watchdog that the loop gets on.
struct Keeps<'b> {
    pages: Vec<Page<'b>>,
    remote: &'b Remote,
}

impl Observe for Keeps<'_> {
    fn ran(&mut self, job: &Job, start: Instant, finish: Instant, overruns: Overruns) {
        (&mut self.pages[..]).ran(job, start, finish, overruns);
        self.remote.beat();
    }
}

impl Executive {
    /// Runs for so long, or until it is stopped.
    pub(super) fn run(&self, options: &Options, duration_ns: u64) -> Result<(), Failure> {
        self.setup.with(|setup| {
            let built = self.built()?;
            let (share, refused) =
                Share::take(options.lock_memory != 0, options.hold_idle_states != 0);
            let ran = run(setup, built, &self.remote, options, refused, duration_ns);
            self.remote.disarm();
            drop(share);
            ran
        })
    }
}

fn run(
    setup: &mut Setup,
    built: &Built,
    remote: &Remote,
    options: &Options,
    mut refused: Vec<punctual::session::Refusal>,
    duration_ns: u64,
) -> Result<(), Failure> {
    let (epoch_ns, waiting) = options.of_executive(built.shortest)?;
    let bound = Span::from_ns(i64::try_from(options.watchdog_ns).unwrap_or(i64::MAX));
    // Before the session, so that it may run on any CPU that the caller may.
    let guard = (options.watchdog_ns > 0)
        .then(|| Guard::start(remote, bound))
        .transpose()
        .map_err(|why| Failure::new(libc::EAGAIN, format!("no thread for the watchdog: {why}")))?;
    let session = Thread::enter(options.cpu()?, options.policy()?);
    refused.extend_from_slice(session.refused());
    setup.refused = listed(&refused);
    if options.strict != 0 && !refused.is_empty() {
        return Err(Failure::new(libc::EACCES, setup.refused.clone()));
    }
    let mut clock = MachineClock::best();
    let mut wait = waiting.strategy(&mut clock);
    if options.rehearse != 0 {
        rehearse(&mut wait, &mut clock, built.shortest, 0);
        clock.discipline();
    }
    let table = built.plan.table(Instant::from_ns(epoch_ns));
    let mut storage = built.plan.storage();
    let from = clock.now() + LEAD;
    let mut state = State::begin(&table, storage.lend(), from)
        .ok_or_else(|| Failure::new(libc::ENOTRECOVERABLE, "a plan's storage is too small"))?;
    let pages = built.pages.iter().filter_map(|words| Page::new(words, Kind::Lateness)).collect();
    let tasks = Calls { callbacks: &built.callbacks, said: 0 };
    let mut executive = Many { clock, wait, tasks, observe: Keeps { pages, remote } };
    let end = match duration_ns {
        0 => Instant::from_ns(u64::MAX),
        ns => Instant::from_ns(from.as_ns().saturating_add(ns)),
    };
    remote.arm();
    let ended = executive.run(&table, &mut state, end, remote.flag());
    remote.disarm();
    drop(guard);
    setup.info = Some(info(epoch_ns, &session, &executive.wait));
    judge(built, remote, ended, executive.tasks.said)
}

fn info(epoch_ns: u64, session: &Thread, wait: &Strategy) -> WaitInfo {
    let approach = Wait::<MachineClock>::approach(wait);
    let learned = Wait::<MachineClock>::learned(wait);
    WaitInfo::of(epoch_ns, None, session.policy(), approach, learned)
}

/// What the end of a run is to its caller.
fn judge(built: &Built, remote: &Remote, ended: Ended, said: c_int) -> Result<(), Failure> {
    if said < 0 {
        // The task's own errno.
        return Err(Failure::bare(said.saturating_neg()));
    }
    if remote.forced().is_some() {
        return Err(Failure::new(libc::ETIMEDOUT, "the watchdog ended the executive"));
    }
    match ended {
        Ended::Overran(rank) => {
            let name = built.plan.name(rank);
            Err(Failure::new(libc::ETIME, format!("task {name:?} overran, and stops everything")))
        }
        Ended::Finished | Ended::Stopped => Ok(()),
    }
}
