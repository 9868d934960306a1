//! The tasks of an executive that have threads of their own.
//!
//! In their loops no system call is made but futex, by one that the executive releases; sleep, by
//! one that waits for itself; and what its device takes, by one that a device triggers.

use std::panic::{AssertUnwindSafe, catch_unwind};

use punctual_core::block::{ClientStep, TaskClient};
use punctual_core::clock::Clock;
use punctual_core::dispatch::TableState;
use punctual_core::executive::Ended;
use punctual_core::executive::cancelling::Cancelling;
use punctual_core::executive::many::{Cycle, Dispatch, Flow, Many};
use punctual_core::executive::paced::{Distances, Paced};
use punctual_core::executive::schedule::Schedule;
use punctual_core::stats::Page;
use punctual_core::stop::StopRequest;
use punctual_core::time::Instant;
use punctual_core::wait::Strategy;
use punctual_os::futex::{self, Scope};
use punctual_os::process;
use punctual_os::scheduler::SchedPolicy;

use super::body::{Body, guarded};
use super::ending::Ending;
use super::pace::Pace;
use super::released::Released;
use super::run::{Run, Times};
use super::slot::Slot;
use super::thread_task::ThreadTask;
use super::trigger::Trigger;
use super::work::Work;
use crate::counting::Counting;
use crate::error::Kind;
use crate::handover::LOOK;
use crate::monitor::Watched;
use crate::periodic::Plan;
use crate::remote::{RemoteOverrun, RemoteTask};
use crate::session::ThreadSession;
use crate::wait_policy::ready;

impl ThreadTask {
    /// Runs it to its end, on the calling thread.
    pub(super) fn run<C: Clock + Clone + Send>(
        &self,
        work: &mut Work<'_>,
        run: &Run<'_, '_, C>,
        released: &Released,
        slot: &Slot<'_>,
    ) {
        let session = ThreadSession::enter(self.cpu, self.policy);
        if slot.late && run.strict && !session.refused().is_empty() {
            return slot.refuse(Kind::Refused(session.refused().to_vec()).into());
        }
        run.refuse(session.refused());
        let Some((mut clock, epoch)) = run.await_settled() else { return };
        if let SchedPolicy::Fifo(_) = session.policy() {
            released.guarded.arm(process::tid());
        }
        let mut wait = None;
        if let Pace::Own(_) = self.pace {
            let period = self.task.period;
            let at = (period, epoch.as_ns() % period.as_ns());
            let (own, warnings) = ready(&self.wait, at, &mut clock, run.discipline);
            run.warn(warnings);
            wait = Some(own);
        }
        run.ready();
        let Some(times) = run.await_go(false, || Instant::from_ns(0)) else { return };
        slot.runs();
        let ending = &run.shared.ending;
        let (body, trigger) = match work {
            Work::Body(body) => (body, None),
            Work::Triggered(trigger, body) => (body, Some(trigger)),
            Work::Process(_) => return,
        };
        let name = &self.task.name;
        let watched = (!matches!(self.pace, Pace::Remote { .. })).then_some(&slot.watched);
        let only = Only { body, name, watched, tid: process::tid(), ending };
        let counting = run.counting(self.entry, epoch);
        match (&self.pace, wait, trigger, counting) {
            (Pace::Own(plan), Some(wait), _, Some(counting)) => {
                let tasks = Cancelling { tasks: only, token: &slot.token };
                own(
                    &mut Many { clock, wait, tasks, observe: counting },
                    plan,
                    (epoch, &times),
                    slot,
                );
            }
            (Pace::Triggered, _, Some(trigger), Some(counting)) => {
                self.triggered(trigger, clock, only, &counting);
            }
            _ => {
                if let Ok(mut client) = TaskClient::open(&released.memory) {
                    client.ask(process::tid().unsigned_abs().into());
                    released_remotely(&mut client, &mut clock, only);
                    client.leave();
                }
            }
        }
        released.guarded.arm(0);
    }

    /// The cycles that a device triggers.
    fn triggered(
        &self,
        Trigger(wait): &mut Trigger<'_>,
        clock: impl Clock,
        only: Only<'_, '_>,
        counting: &Counting,
    ) {
        let stats = counting.stats();
        let Some(page) = Page::resume(&stats) else { return };
        let (ending, period) = (only.ending, self.task.period);
        let mut paced = Paced {
            clock,
            pacer: || ending.callback(|| wait(ending.stop.flag())),
            tasks: only,
            observe: Distances::new(page),
            period,
            budget_ns: self.task.budget_ns.unwrap_or(u64::MAX),
        };
        if paced.run(ending.stop.flag()) == Ended::Stopped {
            ending.stop();
        }
    }
}

/// The cycles of a task that waits for its releases itself.
fn own<C: Clock>(
    many: &mut Many<C, Strategy, Cancelling<'_, Only<'_, '_>>, Counting>,
    plan: &Plan,
    (epoch, times): (Instant, &Times),
    slot: &Slot<'_>,
) {
    let Only { ending, name, .. } = many.tasks.tasks;
    let from = if slot.late { many.clock.now() } else { times.from };
    let table = plan.table(epoch);
    let mut storage = plan.storage();
    let Some(mut state) = TableState::begin(&table, storage.lend(), from) else { return };
    let schedule = Schedule::of_table(&table, &mut state);
    let mut schedule = schedule.leave_on(&slot.leave, slot.watched.word(), LOOK);
    let ended = many.obey(&mut schedule, times.end, &ending.stop);
    if schedule.left() {
        // It is removed: what it was due for, it missed.
        many.never_ran(&mut Schedule::of_table(&table, &mut state));
    }
    match ended {
        Ended::Stopped => ending.stop(),
        Ended::Overran(_) => ending.overran(name),
        Ended::Finished => {}
    }
}

/// The cycles that the executive releases, until its block is ended; a body that says stop stops
/// all.
///
/// # Real-time: in loop, waits
fn released_remotely(client: &mut TaskClient<'_>, clock: &mut impl Clock, mut only: Only<'_, '_>) {
    loop {
        match client.turn() {
            ClientStep::Ended => return,
            ClientStep::Wait(seen) => futex::wait(client.bell(), seen, Scope::Process),
            ClientStep::Run => {
                let start = clock.wake();
                let flow = only.run(0, &mut client.begin(start));
                client.done(clock.now());
                if flow == Flow::Stop {
                    return only.ending.stop();
                }
            }
        }
    }
}

/// A body behind rank 0, watched while it runs where no server sees that.
struct Only<'b, 'env> {
    body: &'b mut Body<'env>,
    name: &'b str,
    watched: Option<&'b Watched>,
    tid: i32,
    ending: &'b Ending,
}

impl Dispatch for Only<'_, '_> {
    #[inline]
    fn run(&mut self, _: usize, cycle: &mut Cycle<'_>) -> Flow {
        if let Some(watched) = self.watched {
            watched.beat();
            watched.arm(self.tid);
        }
        let flow = guarded(self.body, cycle, || self.name.to_owned(), self.ending);
        if let Some(watched) = self.watched {
            watched.disarm();
        }
        flow
    }
}

/// Runs a task's thread to its end, also where its trigger panics.
pub(super) fn work<C: Clock + Clone + Send>(
    run: &Run<'_, '_, C>,
    (at, of): (usize, &ThreadTask),
    work: &mut Work<'_>,
    released: &Released,
) {
    let slot = &run.shared.threads[at];
    let ran = catch_unwind(AssertUnwindSafe(|| of.run(work, run, released, slot)));
    if ran.is_err() {
        run.shared.ending.panicked(&of.task.name, "while it waited for its trigger");
    }
}

/// Ends the loops of all released tasks and wakes them. One that is to be cancelled at an overrun
/// is cancelled now too, for it may go on until it is.
pub(super) fn end(remotes: &[RemoteTask<'_, Counting>]) {
    for post in remotes {
        if post.on_overrun == RemoteOverrun::Cancel {
            post.server.cancel();
        }
        post.server.end();
        let _woken = futex::wake(post.server.bell(), u32::MAX, post.scope);
    }
}
