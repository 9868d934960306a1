//! A run of an executive on the calling thread: session, clock and wait, then the loop.
//!
//! For executives and calendars. Everything before the loop is setup; in the loop the caller's
//! functions are called, and pages written.

use std::sync::Arc;

use punctual::clocks::MachineClock;
use punctual::core::clock::Clock;
use punctual::core::executive::Ended;
use punctual::core::executive::cancel::Cancelling;
use punctual::core::executive::many::Many;
use punctual::core::time::{Instant, Span};
use punctual::core::wait::{Strategy, Wait};
use punctual::loops::{Control, Watchdog, strategy, warm_up};
use punctual::periodic::Period;
use punctual::session::Thread;

use crate::border::Failure;
use crate::calls::{Calls, Keeps};
use crate::cancels::Cancels;
use crate::looped::listed;
use crate::options::Options;
use crate::room::{Kept, Room};
use crate::wait_info::WaitInfo;
use punctual::session::Process as ProcessSession;

/// From the end of setup to the first release, at least.
const LEAD: Span = Span::from_ms(1);

/// The loop that is run.
pub(crate) type Loop<'r> = Many<MachineClock, Strategy, Cancelling<'r, Calls>, Keeps<'r>>;

/// When a run begins and ends, and where release 0 of phase 0 is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    pub(crate) epoch: Instant,
    pub(crate) from: Instant,
    pub(crate) end: Instant,
}

/// What the last run left to be asked for.
#[derive(Default)]
pub(crate) struct Told {
    /// What the kernel refused.
    pub(crate) refused: String,
    /// How its wait ended.
    pub(crate) info: Option<WaitInfo>,
}

/// What is run, and for how long.
pub(crate) struct Run<'r> {
    pub(crate) options: &'r Options,
    /// What the wait adapts to.
    pub(crate) period: Period,
    pub(crate) duration_ns: u64,
    pub(crate) remote: &'r Control,
    /// Whether there is a task that is to be terminated.
    pub(crate) terminates: bool,
    /// By rank.
    pub(crate) calls: Calls,
    /// By rank.
    pub(crate) rooms: Vec<Arc<Room>>,
    /// Told by who cancels; shared with who may start one later.
    pub(crate) cancels: &'r Cancels,
}

impl Run<'_> {
    /// Runs what `obey` does with the loop, and says how that ended.
    pub(crate) fn go(
        self,
        told: &mut Told,
        obey: impl FnOnce(&mut Loop<'_>, Stretch) -> Result<Ended, Failure>,
    ) -> Result<Ended, Failure> {
        let (memory, idle) = (self.options.lock_memory != 0, self.options.hold_idle_states != 0);
        let session = ProcessSession::ask(memory, idle);
        let refused = session.refused().to_vec();
        let remote = self.remote;
        let ended = self.with(refused, told, obey);
        remote.disarm();
        ended
    }

    fn with(
        self,
        mut refused: Vec<punctual::session::Refusal>,
        told: &mut Told,
        obey: impl FnOnce(&mut Loop<'_>, Stretch) -> Result<Ended, Failure>,
    ) -> Result<Ended, Failure> {
        let Self { options, period, remote, .. } = self;
        let (epoch_ns, waiting) = options.of_executive(period)?;
        // Before the session, so that they may run on any CPU that the caller may.
        let guard = self.watchdog()?;
        if self.terminates {
            self.cancels.start(options)?;
        }
        let session = Thread::enter(options.cpu()?, options.policy()?);
        refused.extend_from_slice(session.refused());
        told.refused = listed(&refused);
        if options.strict != 0 && !refused.is_empty() {
            return Err(Failure::new(libc::EACCES, told.refused.clone()));
        }
        let mut clock = MachineClock::best();
        let (mut wait, _) = strategy(&waiting, period, &mut clock);
        if options.rehearse != 0 {
            warm_up(&mut wait, &mut clock, period, 0);
            clock.discipline();
        }
        let from = clock.now() + LEAD;
        let observe = Keeps { pages: self.rooms.iter().map(Kept::new).collect(), remote };
        let tasks = Cancelling { tasks: self.calls, token: self.cancels.token() };
        let mut many = Many { clock, wait, tasks, observe };
        let end = match self.duration_ns {
            0 => Instant::from_ns(u64::MAX),
            ns => Instant::from_ns(from.as_ns().saturating_add(ns)),
        };
        remote.arm();
        let ended = obey(&mut many, Stretch { epoch: Instant::from_ns(epoch_ns), from, end });
        remote.disarm();
        drop(guard);
        told.info = Some(info(epoch_ns, &session, &many.wait));
        judge(remote, ended?, many.tasks.tasks.said)
    }

    fn watchdog(&self) -> Result<Option<Watchdog>, Failure> {
        let bound = Span::from_ns(i64::try_from(self.options.watchdog_ns).unwrap_or(i64::MAX));
        let start = || Watchdog::start(self.remote, bound);
        let no_thread = |why| no_thread("the watchdog", &why);
        (self.options.watchdog_ns > 0).then(start).transpose().map_err(no_thread)
    }
}

pub(crate) fn no_thread(what: &str, why: &std::io::Error) -> Failure {
    Failure::new(libc::EAGAIN, format!("no thread for {what}: {why}"))
}

fn info(epoch_ns: u64, session: &Thread, wait: &Strategy) -> WaitInfo {
    WaitInfo::of(epoch_ns, None, session.policy(), Wait::<MachineClock>::status(wait))
}

/// What the end of a run is to its caller.
fn judge(remote: &Control, ended: Ended, said: std::ffi::c_int) -> Result<Ended, Failure> {
    if said < 0 {
        // The task's own errno.
        return Err(Failure::bare(said.saturating_neg()));
    }
    if remote.forced().is_some() {
        return Err(Failure::new(libc::ETIMEDOUT, "the watchdog ended the executive"));
    }
    Ok(ended)
}

/// A plan's storage is made for it.
pub(crate) fn too_small() -> Failure {
    Failure::new(libc::ENOTRECOVERABLE, "a plan's storage is too small")
}

/// An overrun of a task that stops everything.
pub(crate) fn overran(name: &str) -> Failure {
    Failure::new(libc::ETIME, format!("task {name:?} overran, and stops everything"))
}
