//! A crew at work: threads up, doors open, the executive's loop, everything put back.
//!
//! In the calling thread, which becomes the executive's while it runs.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::Builder;

use punctual_core::clock::Clock;
use punctual_core::dispatch::State;
use punctual_core::executive::Ended;
use punctual_core::executive::many::Many;
use punctual_core::page::Page;
use punctual_core::seat::TaskClient;
use punctual_core::time::{Instant, Span};
use punctual_core::wait::Wait;
use punctual_os::Errno;
use punctual_os::affinity::{self, CpuMask};
use punctual_os::clock::{ClockId, now_ns, sleep_until_ns};
use punctual_os::process;
use punctual_os::scheduler::SchedPolicy;

use super::layout::{Crew, Pace, Placed};
use super::shared::{Shared, posts_of};
use super::{Finished, Why, thread};
use crate::clocks::MachineClock;
use crate::guard::{self, Charge};
use crate::periodic::Plan;
use crate::posts::Posts;
use crate::session::Thread;
use crate::stage::{GUARD, aside, watchdog_bound};
use crate::watchdog::{self, Charge as Loop, Watched};

/// How often a thread that is no loop looks at what it waits for, ns.
const LOOK_NS: u64 = 1_000_000;
/// The only occupant of a worker's seat.
const OCCUPANT: u64 = 1;

/// What all threads share.
#[derive(Debug)]
struct Stage<'s> {
    clock: MachineClock,
    epoch: Instant,
    end: Instant,
    stop: &'s AtomicBool,
    cpus: (Option<u32>, Option<u32>),
    aside: CpuMask,
    ready: AtomicUsize,
    done: AtomicBool,
    beats: AtomicU64,
    watched: Watched,
}

impl Crew<'_> {
    /// Runs all tasks for `duration`, or until `stop` is set or a task stops them; `stop` is set at
    /// the end. In this thread the executive, which waits for releases by `wait`.
    ///
    /// A worker that never returns keeps this from returning: it has lost its policy by then, and
    /// the others have ended.
    ///
    /// # Real-time: setup only
    pub fn run<W: Wait<MachineClock>>(
        self,
        wait: W,
        duration: Span,
        stop: &AtomicBool,
    ) -> Finished {
        let Self { cpu, workers_cpu, priority, epoch, plan, mut tasks, pages } = self;
        let shared: Vec<Shared> = tasks.iter().map(Shared::of).collect();
        let stage = Stage::new((cpu, workers_cpu), epoch, duration, stop);
        let all = posts_of(&tasks, &shared, &pages);
        let mut charges: Vec<Charge<'_>> =
            tasks.iter().zip(&shared).filter_map(|(at, shared)| shared.charge(at)).collect();
        let tasks_of = Posts { all, beats: &stage.beats, stopped_by: None };
        let (ended, policy, mut posts) = std::thread::scope(|scope| {
            let (stage, shared) = (&stage, &shared);
            let (mut beside, mut workers) = (Vec::new(), Vec::new());
            let placed = &mut tasks;
            let started = (|| {
                let guard = move || stage.guard(&mut charges);
                beside.push(Builder::new().spawn_scoped(scope, guard)?);
                if let Some(bound) = watchdog_bound(&plan) {
                    let watch = move || stage.watchdog(bound);
                    beside.push(Builder::new().spawn_scoped(scope, watch)?);
                }
                for (index, (at, shared)) in placed.iter_mut().zip(shared).enumerate() {
                    let page = pages.words(index);
                    let work = move || stage.worker(at, shared, page);
                    workers.push(Builder::new().spawn_scoped(scope, work)?);
                }
                Ok(())
            })();
            let (ended, policy, posts) = match started {
                Ok(()) => {
                    stage.await_all(shared.len());
                    shared.iter().for_each(|shared| shared.door.open(OCCUPANT));
                    let (ended, policy, posts) = stage.executive(&plan, tasks_of, wait, priority);
                    (Ok(ended), policy, posts)
                }
                Err(why) => {
                    stop.store(true, Ordering::Relaxed);
                    (Err(no_thread(&why)), SchedPolicy::Other, tasks_of)
                }
            };
            posts.end();
            // Bodies that panic are caught in their threads.
            workers.into_iter().for_each(|worker| drop(worker.join()));
            stage.done.store(true, Ordering::Release);
            beside.into_iter().for_each(|thread| drop(thread.join()));
            (ended, policy, posts)
        });
        let now = Instant::from_ns(now_ns(ClockId::Monotonic));
        posts.all.iter_mut().for_each(|post| post.close(now));
        let why = why(ended, posts.stopped_by.map(|rank| plan.name(rank)));
        let outcome = |(index, (at, shared)): (usize, (&Placed<'_>, &Shared))| {
            shared.outcome(&at.name, pages.words(index))
        };
        let tasks = tasks.iter().zip(&shared).enumerate().map(outcome).collect();
        Finished { why, forced: stage.watched.ended(), policy, tasks }
    }
}

impl<'s> Stage<'s> {
    fn new(
        cpus: (Option<u32>, Option<u32>),
        epoch: Instant,
        duration: Span,
        stop: &'s AtomicBool,
    ) -> Self {
        let mut clock = MachineClock::best();
        let end = clock.now() + duration;
        Self {
            clock,
            epoch,
            end,
            stop,
            cpus,
            aside: aside(&[cpus.0, cpus.1].into_iter().flatten().collect::<Vec<u32>>()),
            ready: AtomicUsize::new(0),
            done: AtomicBool::new(false),
            beats: AtomicU64::new(0),
            watched: Watched::default(),
        }
    }

    fn guard(&self, charges: &mut [Charge<'_>]) {
        // Where it may not go aside it stays: its priority is above theirs.
        let _beside_them = affinity::set(0, &self.aside);
        let _session = Thread::enter(None, GUARD);
        guard::watch(charges, &self.done, || ());
    }

    fn watchdog(&self, bound: Span) {
        let _beside_them = affinity::set(0, &self.aside);
        let _session = Thread::enter(None, GUARD);
        let progress = || self.beats.load(Ordering::Relaxed);
        let charge = Loop { watched: &self.watched, progress, bound };
        watchdog::watch(&[charge], self.stop, &self.done);
    }

    /// One worker, from its session to its end.
    fn worker(&self, at: &mut Placed<'_>, shared: &Shared, page: &[AtomicU64]) {
        let session = Thread::enter(self.cpus.1, SchedPolicy::Fifo(at.priority));
        if let SchedPolicy::Fifo(priority) = session.policy() {
            shared.priority.store(priority.into(), Ordering::Relaxed);
            shared.guarded.arm(process::tid());
        }
        self.ready.fetch_add(1, Ordering::Release);
        if thread::caught(|| self.work(at, shared, page)) {
            shared.panicked.store(true, Ordering::Relaxed);
        }
        shared.guarded.arm(0);
        if let Ok(mut sitter) = TaskClient::open(&shared.memory) {
            sitter.leave();
        }
    }

    fn work(&self, at: &mut Placed<'_>, shared: &Shared, page: &[AtomicU64]) {
        let (clock, body, end) = (&self.clock, &mut at.body, (self.end, self.stop));
        let new_page = |is_external| Page::new(page, thread::kind(is_external));
        match &mut at.pace {
            Pace::Posted { .. } => {
                let Ok(mut sitter) = TaskClient::open(&shared.memory) else { return };
                sitter.ask(process::tid().unsigned_abs().into());
                thread::posted(&mut sitter, &mut clock.clone(), body, self.stop);
            }
            Pace::Own(plan) => {
                let Some(page) = new_page(false) else { return };
                thread::own(plan, self.epoch, clock, body, page, end);
            }
            Pace::Device { source, period_ns } => {
                let Some(page) = new_page(true) else { return };
                let pace = (source, *period_ns);
                thread::device(pace, clock, body, page, (&at.limits, self.stop));
            }
        }
    }

    /// Until all threads are there.
    fn await_all(&self, n: usize) {
        while self.ready.load(Ordering::Acquire) < n {
            pause();
        }
    }

    /// The executive, until all is to end.
    fn executive<'p, W: Wait<MachineClock>>(
        &self,
        plan: &Plan,
        tasks: Posts<'p>,
        wait: W,
        priority: u8,
    ) -> (Ended, SchedPolicy, Posts<'p>) {
        let mut many = Many { clock: self.clock.clone(), wait, tasks, observe: () };
        let table = plan.table(self.epoch);
        let mut storage = plan.storage();
        let from = many.clock.now();
        let state = State::begin(&table, storage.lend(), from);
        let session = Thread::enter(self.cpus.0, SchedPolicy::Fifo(priority));
        self.watched.arm(process::tid());
        let ended = state
            .map_or(Ended::Finished, |mut state| many.run(&table, &mut state, self.end, self.stop));
        self.watched.disarm();
        let policy = session.policy();
        drop(session);
        if ended == Ended::Finished {
            // Those that wait for themselves may have a last release.
            while now_ns(ClockId::Monotonic) < self.end.as_ns()
                && !self.stop.load(Ordering::Relaxed)
            {
                pause();
            }
        }
        self.stop.store(true, Ordering::Relaxed);
        (ended, policy, many.tasks)
    }
}

/// Why it all ended; `culprit` is the task that stopped it.
fn why(ended: Result<Ended, Errno>, culprit: Option<&str>) -> Why {
    match (ended, culprit) {
        (Err(why), _) => Why::NoThread(why),
        (_, Some(name)) => Why::Overran(name.to_owned()),
        (Ok(Ended::Finished), None) => Why::Finished,
        (Ok(Ended::Stopped | Ended::Overran(_)), None) => Why::Stopped,
    }
}

/// Why a thread could not be started.
fn no_thread(why: &std::io::Error) -> Errno {
    why.raw_os_error().map_or(Errno::NOMEM, Errno)
}

/// A look later.
fn pause() {
    // A signal that cuts this short costs an extra look.
    let _interrupted = sleep_until_ns(now_ns(ClockId::Monotonic) + LOOK_NS);
}
