//! A run of workers: the calling thread becomes their executive's.
//!
//! Everything before the crew runs is setup; what runs then is `punctual`'s, and the caller's
//! functions in their threads.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, Ordering};

use punctual::clocks::MachineClock;
use punctual::core::executive::many::{Cycle, Flow};
use punctual::core::time::{Instant, Span};
use punctual::core::wait::{Strategy, Wait};
use punctual::loops::{strategy, warm_up};
use punctual::os::scheduler::SchedPolicy;
use punctual::session::{Attempt, Thread};
use punctual::workers::{self, Finished, Why};

use super::crew::{Built, Crew, Setup};
use super::outcome::Outcome;
use crate::border::Failure;
use crate::looped::listed;
use crate::options::Options;
use crate::periodic::failure;
use crate::run::overran;
use crate::wait_info::WaitInfo;
use punctual::session::Process as ProcessSession;

impl Crew {
    /// Runs for so long, or until it is stopped.
    pub(super) fn run(&self, options: &Options, duration_ns: u64) -> Result<(), Failure> {
        self.setup.with(|setup| {
            let built = self.built()?;
            if options.watchdog_ns != 0 {
                return Err(Failure::invalid("workers have a watchdog of their own"));
            }
            let (epoch_ns, waiting) = options.of_executive(built.shortest)?;
            let said = AtomicI32::new(0);
            let crew = self.crew(setup, built, &said, (options, epoch_ns))?;
            let (share, session) = enter(setup, options)?;
            let mut clock = MachineClock::best();
            let (mut wait, _) = strategy(&waiting, built.shortest, &mut clock);
            if options.rehearse != 0 {
                warm_up(&mut wait, &mut clock, built.shortest, 0);
            }
            // The crew enters its own, in each of its threads.
            drop(session);
            let Some(stop) = self.stop.begin() else { return Ok(()) };
            let duration = match duration_ns {
                0 => i64::MAX,
                ns => i64::try_from(ns).unwrap_or(i64::MAX),
            };
            let finished = crew.run(&mut wait, Span::from_ns(duration), stop);
            drop(share);
            setup.told.info = Some(info(epoch_ns, finished.policy, &wait));
            setup.outcomes = finished.tasks.iter().map(Outcome::of).collect();
            judge(&finished, said.load(Ordering::Relaxed))
        })
    }

    /// The crew of one run: its bodies are the caller's.
    fn crew<'r>(
        &'r self,
        setup: &Setup,
        built: &Built,
        said: &'r AtomicI32,
        (options, epoch_ns): (&Options, u64),
    ) -> Result<workers::Crew<'r>, Failure> {
        let SchedPolicy::Fifo(priority) = options.policy()? else {
            return Err(Failure::invalid("workers need a priority: from 2 to 98"));
        };
        let all = setup.workers().priority(priority).epoch(Instant::from_ns(epoch_ns));
        let all = match options.cpu()? {
            Some(cpu) => all.cpu(cpu),
            None => all,
        };
        let all = setup.tasks.iter().fold(all, |all, added| {
            let (task, callback) = (added.task.clone(), added.callback);
            let body = move |cycle: &mut Cycle<'_>| {
                let (flow, answer) = callback.flow(cycle);
                if flow == Flow::Stop {
                    first(said, answer);
                }
                flow
            };
            let Some(source) = added.source else { return all.task(task, body) };
            let source = move || match source.wait() {
                answer if answer < 0 => {
                    first(said, answer);
                    self.stop.end();
                    false
                }
                answer => answer > 0,
            };
            all.external(task, source, body)
        });
        let crew = all.build().map_err(|why| failure(&why))?;
        Ok(crew.keep_on(&built.pages))
    }
}

/// Keeps what ended the run: the first of what is said.
fn first(said: &AtomicI32, answer: c_int) {
    let _later = said.compare_exchange(0, answer, Ordering::Relaxed, Ordering::Relaxed);
}

/// What the kernel grants, in this thread before the crew's: refusals are told before anything
/// runs.
fn enter(setup: &mut Setup, options: &Options) -> Result<(ProcessSession, Thread), Failure> {
    let memory = options.lock_memory != 0;
    let share = ProcessSession::ask(memory, options.hold_idle_states != 0);
    let mut refused = share.refused().to_vec();
    if let Some(cpu) = setup.cpu {
        let there = Thread::enter(Some(cpu), SchedPolicy::Other);
        let affinity = there.refused().iter().filter(|r| matches!(r.attempt, Attempt::Affinity(_)));
        refused.extend(affinity.cloned());
    }
    let session = Thread::enter(options.cpu()?, options.policy()?);
    refused.extend_from_slice(session.refused());
    setup.told.refused = listed(&refused);
    if options.strict != 0 && !refused.is_empty() {
        return Err(Failure::new(libc::EACCES, setup.told.refused.clone()));
    }
    Ok((share, session))
}

fn info(epoch_ns: u64, policy: SchedPolicy, wait: &Strategy) -> WaitInfo {
    WaitInfo::of(epoch_ns, None, policy, Wait::<MachineClock>::status(wait))
}

/// What the end of a run is to its caller.
fn judge(finished: &Finished, said: c_int) -> Result<(), Failure> {
    if said < 0 {
        // The task's own errno.
        return Err(Failure::bare(said.saturating_neg()));
    }
    if finished.forced.is_some() {
        return Err(Failure::new(libc::ETIMEDOUT, "the watchdog ended the workers"));
    }
    match &finished.why {
        Why::Overran(name) => Err(overran(name)),
        Why::NoThread(why) => {
            Err(Failure::new(libc::EAGAIN, format!("no thread for a task: {why}")))
        }
        Why::Finished | Why::Stopped => Ok(()),
    }
}
