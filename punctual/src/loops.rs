//! One periodic loop in the caller's own thread: it calls [`Loop::wait`], works, and calls it
//! again.
//!
//! For whoever has one period and one thread. Makes the calling thread a real-time one, finds the
//! quiet phase, lets the wait learn, and then wakes at each release: a cycle that runs over its
//! next release makes that one missed, and the phase stays. Between the first wait and the last
//! nothing is allocated and the kernel is asked for nothing but the time and the sleep; a cycle's
//! counts go into a page and a ring that were made before.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use punctual_core::clock::Clock;
use punctual_core::cycle::{Cycle, Ended, Flow, IntoFlow};
use punctual_core::releases::Releases;
use punctual_core::stats::Counts;
use punctual_core::stop::{StopFlag, StopRequest};
use punctual_core::time::{Instant, Period, Span};
use punctual_core::wait::{Stalls, WaitStatus};
use punctual_engine::clocks::MachineClock;
use punctual_engine::counting::{CycleCounting, StatsPage};
use punctual_engine::duration::span;
use punctual_engine::error::{Error, Kind};
use punctual_engine::file_facts::RunFacts;
use punctual_engine::monitor::{Force, Watchdog, Watched, WatchedLoop};
use punctual_engine::outcome::{End, Stats};
use punctual_engine::quiet::{self, Quiet};
use punctual_engine::recording::LoopRecording;
use punctual_engine::rt_thread::RtThread;
use punctual_engine::safety::{
    Caution, CpuTaken, Demand, Machine, check_demands, check_lead, check_period, is_real_time,
};
use punctual_engine::segmented::{SegmentedLoop, Vitals};
use punctual_engine::session::{Neighbour, ProcessSession, Refusal, ThreadSession};
use punctual_engine::signals::stop_by_signals;
use punctual_engine::wait_policy::{LEAD, LearnPlace, ReadyWait, WaitPolicy, WarmUp};
use punctual_os::affinity;
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::fork::Origin;
use punctual_os::process;
use punctual_os::scheduler::SchedPolicy;

use crate::summary::Summary;

/// A periodic loop on the thread that started it. It stays there (`!Send`, for which a compiler
/// names `*const ()`): start it in the thread that is to loop, and give its [`Loop::handle`] away.
///
/// One thread runs one loop at a time. Of two that are waited for in turns, or one within a cycle
/// of the other, each misses the releases that pass while the other waits or works, its watchdog
/// stops it where that lasts, and the thread has the CPU and the policy of the one that was started
/// last. The summary of the one that began later warns of it. Several rates in one thread are tasks
/// of an [`Executive`](crate::Executive).
///
/// A child that fork(2) makes of its process has the memory, not the threads, and SCHED_OTHER:
/// there [`Loop::wait`] gives `None`, [`Loop::finish`] says [`End::Forked`], and the drop does
/// nothing.
///
/// ```
/// use punctual::{Loop, Period};
/// # use punctual::{Phase, RtThread, WaitPolicy};
///
/// let each_ms = Loop::builder(Period::hz(1_000).expect("in range"));
/// # // What the defaults take half a second to find out.
/// # let thread = RtThread::any().wait(WaitPolicy::sleep());
/// # let each_ms = each_ms.phase(Phase::Zero).thread(thread);
/// let mut each_ms = each_ms.start()?;
/// while let Some(cycle) = each_ms.wait() {
///     // The work of a cycle, for cycle.dt since the last one.
///     if cycle.n >= 20 {
///         break;
///     }
/// }
/// println!("{}", each_ms.finish());
/// # Ok::<(), punctual::Error>(())
/// ```
///
/// On the time of TAI, a PTP clock or a bus ([`crate::follow`]), by the clock that it is given:
///
/// ```
/// use punctual::follow::{Follow, Reference};
/// use punctual::{Loop, Period};
/// # use punctual::{RtThread, WaitPolicy};
///
/// let follower = Follow::new(Reference::Tai).start()?;
/// let each_ms = Loop::builder(Period::hz(1_000).expect("in range"));
/// # let each_ms = each_ms.thread(RtThread::any().wait(WaitPolicy::sleep()));
/// let mut each_ms = each_ms.start_on(follower.clock())?;
/// let cycle = each_ms.wait().expect("it is not stopped");
/// assert_eq!(cycle.release.as_ns() % 1_000_000, 0, "a whole millisecond of TAI");
/// # Ok::<(), punctual::Error>(())
/// ```
///
/// Another thread cannot have it, for the CPU and the policy are those of its own; give it a
/// [`Loop::handle`]:
///
/// ```compile_fail,E0277
/// # use punctual::{Loop, Period};
/// let mut each_ms = Loop::builder(Period::hz(1_000).expect("in range")).start()?;
/// std::thread::spawn(move || each_ms.wait()); // `StaysInItsThread` cannot be sent
/// # Ok::<(), punctual::Error>(())
/// ```
#[derive(Debug)]
pub struct Loop<C: Clock = MachineClock> {
    period: Period,
    phase_ns: u64,
    quiet: Option<Quiet>,
    segments: SegmentedLoop<C, CycleCounting>,
    /// True where its time was up ([`Loop::run_for`]).
    finished: bool,
    /// The instant of its release 0; none before the first wait.
    first: Option<Instant>,
    /// The CPU time of its thread then.
    began: CpuTime,
    /// The instant at which a wait found it at its end, ns on CLOCK_MONOTONIC; none before.
    ended_ns: Option<u64>,
    /// True where another loop of its thread ran then.
    is_second: bool,
    handle: LoopHandle,
    // In the order in which they end.
    recording: Option<LoopRecording>,
    _watchdog: Option<Watchdog>,
    session: ThreadSession,
    process: ProcessSession,
    _neighbour: Neighbour,
    refused: Vec<Refusal>,
    warnings: Vec<String>,
    wait_policy: WaitPolicy,
}

impl Loop {
    /// A builder of a loop of this period, at a quiet phase, with the defaults of [`RtThread`].
    ///
    /// # Real-time: setup only
    pub fn builder(period: Period) -> LoopBuilder {
        LoopBuilder::new(period)
    }
}

impl<C: Clock> Loop<C> {
    /// Waits for the next release to come and returns its cycle; `None` once the loop was stopped.
    /// After a stall the oldest release runs; other releases that passed since the last cycle are
    /// missed, and counted.
    ///
    /// The first call fixes which release is the first, one that is still to come, and the watchdog
    /// looks from there on, as it did in the setup. A cycle is counted at the beginning of the next
    /// wait, so that readers are a cycle behind. Between the end of the sleep and the return stand
    /// its stamp, the clock's new anchor, the spin where the wait has one, a look at the stop, what
    /// was missed, and the watchdog's heartbeat.
    ///
    /// # Real-time: in loop, waits
    #[inline]
    pub fn wait(&mut self) -> Option<Cycle<'static>> {
        if self.first.is_none() {
            self.begin();
        }
        let shared = &*self.handle.shared;
        if shared.is_forked() {
            self.segments.finish(&shared.stop);
            return None;
        }
        let cycle = self.segments.wait(&shared.stop, &shared.vitals);
        cycle.map_err(|ended| self.note_end(ended)).ok()
    }

    /// A wait found it at its end.
    #[cold]
    fn note_end(&mut self, ended: Ended) {
        self.finished = ended == Ended::Finished;
        // Its CPU time would take a system call, of which a wait makes none but its sleep.
        self.ended_ns.get_or_insert_with(|| now_ns(ClockId::Monotonic));
    }

    /// Runs `body` in each cycle for `duration`, from its first release on where nothing has run
    /// yet, or until it is stopped; [`Flow::Stop`] from the body stops it. Ends the loop as
    /// [`Loop::finish`] does.
    ///
    /// A panic of the body ends the loop in order and goes on in the caller.
    ///
    /// # Real-time: setup only
    pub fn run_for<R: IntoFlow>(
        mut self,
        duration: Duration,
        mut body: impl FnMut(&mut Cycle<'_>) -> R,
    ) -> Summary {
        let from = match self.first {
            Some(_) => self.segments.clock().now(),
            None => self.begin(),
        };
        self.segments.end_at(from + span(duration));
        while let Some(mut cycle) = self.wait() {
            if body(&mut cycle).into_flow() == Flow::Stop {
                break;
            }
        }
        self.finish()
    }

    /// Fixes the first release, which it returns, and arms the watchdog, at the first wait.
    #[cold]
    fn begin(&mut self) -> Instant {
        self.handle.shared.watched().arm(process::tid());
        self.began = CpuTime::now();
        self.handle.shared.has_begun.store(true, Ordering::Relaxed);
        self.is_second = THREADS_LOOPS.with_borrow(|loops| {
            loops.iter().any(|other| !Arc::ptr_eq(other, &self.handle.shared) && other.runs())
        });
        let now = self.segments.clock().poll();
        let releases = Releases::aligned(now + LEAD, self.period, self.phase_ns);
        let first = releases.first();
        self.first = Some(first);
        self.segments.begin_on(releases, 0);
        if let Some(recording) = &self.recording {
            recording.begin(first);
        }
        first
    }

    /// Counts the cycle that runs now, as if it were over: for whoever reads the counts in the
    /// loop's own thread.
    ///
    /// # Real-time: in loop
    pub fn count(&mut self) {
        self.segments.count();
    }

    /// A handle for other threads, which outlives the loop: stop it, read what it did so far.
    ///
    /// # Real-time: setup only
    pub fn handle(&self) -> LoopHandle {
        self.handle.clone()
    }

    /// Ends the loop: counts its last cycle, ends the watchdog, and stops its handles.
    fn end(&mut self) {
        // A body that panicked has run its cycle too.
        self.segments.finish(&self.handle.shared.stop);
        self.handle.shared.watched().disarm();
        self.handle.stop();
        // A thread that ends has none.
        let _left = THREADS_LOOPS.try_with(|loops| {
            loops.borrow_mut().retain(|own| !Arc::ptr_eq(own, &self.handle.shared));
        });
    }

    /// What throttling did to its thread up to its end, a sentence.
    fn throttled(&self) -> Option<String> {
        self.first.filter(|_| is_real_time(self.policy()))?;
        let now = CpuTime::now();
        // What its thread computes behind its end counts too: at most all of the time.
        let ended = CpuTime { at_ns: self.ended_ns.unwrap_or(now.at_ns), ..now };
        let (share, ran) = ended.share_since(self.began);
        let taken = CpuTaken {
            cpu: affinity::current_cpu(),
            share,
            period: Some(self.period),
            throttling: Machine::here().throttling,
        };
        taken.stopped(ran, &self.handle.counts())
    }

    /// Ends the loop: everything is put back and its sample file is complete. Gives a summary of
    /// what it did. Releases between its last wait and this call are missed: where other work comes
    /// first, stop it by [`Loop::handle`] before that.
    ///
    /// # Real-time: setup only
    pub fn finish(mut self) -> Summary {
        self.end();
        let end = match self.handle.forced() {
            _ if self.handle.shared.is_forked() => End::Forked,
            Some(force) => force.into(),
            None if self.finished => End::Finished,
            None => End::Stopped,
        };
        let throttled = self.throttled();
        let samples = self.recording.take().and_then(LoopRecording::finish);
        let (policy, wait) = (self.policy(), self.wait_status());
        let (quiet, moves) = (self.quiet(), self.moves());
        let moved: Vec<Quiet> = self.segments.places().copied().collect();
        let met = self.segments.met().map(|tick| quiet::met_words(&tick));
        let Self { refused, warnings, handle, .. } = &mut self;
        let (refused, mut warnings) = (std::mem::take(refused), std::mem::take(warnings));
        let tasks = vec![handle.stats()];
        warnings.extend(moved.windows(2).map(|pair| quiet::moved_words(&pair[0], &pair[1])));
        // Its setup may have said so.
        warnings.extend(met.filter(|words| !warnings.contains(words)));
        warnings.extend(self.wait_policy.out_of_reach(&wait));
        warnings.extend(throttled);
        warnings.extend(self.is_second.then(|| SECOND.to_owned()));
        Summary {
            end,
            tasks,
            units: Vec::new(),
            policy,
            refused,
            warnings,
            samples,
            idle_slices: (0, 0),
            epoch: self.first.unwrap_or(Instant::from_ns(0)),
            quiet,
            moves,
            wait,
            processes: Vec::new(),
        }
    }

    /// The offset of its releases from multiples of the period on its clock, ns: that of the next
    /// one where they were moved away from the kernel's tick ([`Phase::Quiet`]).
    ///
    /// # Real-time: in loop
    pub fn phase_ns(&self) -> u64 {
        self.segments.places().last().map_or(self.phase_ns, |quiet| quiet.phase_ns)
    }

    /// The quiet phase that it took; `None` where none was requested, or the period meets the tick
    /// at any phase.
    ///
    /// # Real-time: in loop
    pub fn quiet(&self) -> Option<Quiet> {
        self.segments.places().last().copied().or(self.quiet)
    }

    /// Times that its releases were moved away from the kernel's tick, which they met while it ran.
    ///
    /// # Real-time: in loop
    pub fn moves(&self) -> u64 {
        self.segments.places().count().saturating_sub(1) as u64
    }

    /// The state of its wait at present, with its knowledge of this machine.
    ///
    /// # Real-time: in loop
    pub fn wait_status(&self) -> WaitStatus {
        self.segments.wait_status()
    }

    /// The policy that its thread has now: the watchdog may have taken it away. In a child that
    /// fork(2) made that of the calling thread.
    ///
    /// # Real-time: in loop
    pub fn policy(&self) -> SchedPolicy {
        let of_caller = || punctual_os::scheduler::get(0).unwrap_or(SchedPolicy::Other);
        match self.handle.forced() {
            None if !self.handle.shared.is_forked() => self.session.policy(),
            _ => of_caller(),
        }
    }

    /// The settings that the kernel refused its thread and its process; the loop runs without them.
    ///
    /// # Real-time: setup only
    pub fn refused(&self) -> &[Refusal] {
        &self.refused
    }

    /// The settings that cannot be kept on this machine, and risks: a sentence each.
    ///
    /// # Real-time: setup only
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns true where all memory of its process is kept in RAM while the loop lives.
    ///
    /// # Real-time: setup only
    pub fn memory_locked(&self) -> bool {
        self.process.memory_locked()
    }
}

impl<C: Clock> Drop for Loop<C> {
    fn drop(&mut self) {
        self.end();
    }
}

/// The place of releases within their period on CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// Away from the kernel's tick, whose place is measured at the start; where none is found, from
    /// where Linux has it since 6.4. A loop whose releases meet it all the same, as it sees by its
    /// own lateness while its wait learns or later, is moved, and warns: the next release comes up
    /// to a period later, and [`Cycle::dt`] has the difference. One that records samples is moved
    /// before its first release alone. At multiples of the period where the period meets the tick
    /// at any phase.
    #[default]
    Quiet,
    /// At multiples of the period, where separate processes agree on them.
    Zero,
    /// This many nanoseconds after multiples of the period; as much as the period is refused.
    At(u64),
}

/// A loop to be: its period, where its releases lie, how its thread runs, what it records.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a loop begins with `start`"]
pub struct LoopBuilder {
    period: Period,
    phase: Phase,
    thread: RtThread,
    samples: Option<PathBuf>,
    stops_on_signals: bool,
}

impl LoopBuilder {
    /// A loop of this period at a quiet phase, on a thread with the defaults of [`RtThread`].
    fn new(period: Period) -> Self {
        let (phase, thread, samples) = (Phase::Quiet, RtThread::any(), None);
        Self { period, phase, thread, samples, stops_on_signals: false }
    }

    /// Sets the place of its releases within the period [default: [`Phase::Quiet`]].
    ///
    /// # Real-time: setup only
    pub fn phase(mut self, phase: Phase) -> Self {
        self.phase = phase;
        self
    }

    /// Sets the CPU, the policy, the wait and the watchdog of its thread [default:
    /// [`RtThread::any`]].
    ///
    /// # Real-time: setup only
    pub fn thread(mut self, thread: RtThread) -> Self {
        self.thread = thread;
        self
    }

    /// Records the lateness of every cycle in a sample file, which `punctual analyse` reads. A file
    /// of that name stays until the first samples are written, and is replaced then. A companion
    /// thread writes them, so that a kill costs no more than half a second of samples. The file is
    /// not synced: a power cut may cost all of them. Of a loop that is ended in a stall it has how
    /// many releases were missed, and the summary how late they were by then.
    ///
    /// # Real-time: setup only
    pub fn record(mut self, file: impl Into<PathBuf>) -> Self {
        self.samples = Some(file.into());
        self
    }

    /// As [`LoopHandle::stop_on_signals`], from the beginning of its start on: a signal then ends
    /// what is left of the setup, and the first [`Loop::wait`] gives `None`.
    ///
    /// # Real-time: setup only
    pub fn stop_on_signals(mut self) -> Self {
        self.stops_on_signals = true;
        self
    }

    /// Checks its settings, as far as that is possible without trying them: the clock, whose stamps
    /// a period must leave room for, and the sample file are tried by [`LoopBuilder::start`].
    ///
    /// # Errors
    /// The first setting that cannot be.
    ///
    /// # Real-time: setup only
    pub fn check(&self) -> Result<(), Error> {
        match self.phase {
            Phase::At(ns) if ns >= self.period.as_ns() => Err(Kind::Phase(ns, self.period).into()),
            _ => self.thread.check(self.period),
        }
    }

    /// Makes the calling thread a loop's: takes 50 ms for the clock, 90 ms to find a quiet phase
    /// (300 ms where the kernel's tick is hard to see), and a third of a second for the wait to
    /// learn, twice that where its releases met the tick. What the kernel refused is in
    /// [`Loop::refused`]. Where a thread above keeps its CPU for 4 s, the watchdog stops the
    /// loop: then the first [`Loop::wait`] gives `None`.
    ///
    /// A period that leaves no time to sleep (below 5 µs, and below 20 µs on some machines) keeps
    /// a real-time thread on its CPU: throttling (`kernel.sched_rt_runtime_us`) stops it, for 50 ms
    /// of each second where its limits are the defaults; from Linux 6.12 on only where another
    /// thread waits for the CPU. Below 5 µs [`Loop::warnings`] of a pinned loop announce it; what
    /// did happen, at any period, is in the summary alone.
    ///
    /// Threads that it starts from then on inherit its CPU (not its policy) and get what the loop
    /// leaves of it: start them before, or by [`spawn_elsewhere`](crate::spawn_elsewhere).
    ///
    /// # Errors
    /// A setting that cannot be; a companion thread that cannot be started, a sample file that
    /// cannot be written; with [`RtThread::strict`] what the kernel refused; with
    /// [`LoopBuilder::stop_on_signals`] as [`LoopHandle::stop_on_signals`].
    ///
    /// # Real-time: setup only
    pub fn start(self) -> Result<Loop, Error> {
        let phase = self.phase;
        let clock = |period: Period, stop: &AtomicBool| {
            let mut clock = MachineClock::best();
            let quiet = match phase {
                Phase::Quiet => {
                    quiet::place(&quiet::listen(&mut clock, quiet::LISTEN, stop), period)
                }
                _ => None,
            };
            (clock, quiet)
        };
        self.start_with(clock, MachineClock::discipline)
    }

    /// Starts the loop as [`LoopBuilder::start`] does, on a clock of the caller's: one that is
    /// followed ([`Follower::clock`](crate::follow::Follower::clock)), or that of a simulation.
    /// Releases are on its time; a period is at most what is known of its pace ahead
    /// ([`Follow::every`](crate::follow::Follow::every)). [`Phase::Quiet`] is zero there: the
    /// kernel's tick keeps to CLOCK_MONOTONIC, and a grid that drifts against it passes through it
    /// wherever it begins.
    ///
    /// # Errors
    /// As [`LoopBuilder::start`].
    ///
    /// # Real-time: setup only
    pub fn start_on<C: Clock>(self, clock: C) -> Result<Loop<C>, Error> {
        self.start_with(|_, _| (clock, None), |_| {})
    }

    /// Makes the clock on the thread that is the loop's by then; `discipline` takes in what was
    /// learned of its rate.
    fn start_with<C: Clock>(
        self,
        clock: impl FnOnce(Period, &AtomicBool) -> (C, Option<Quiet>),
        discipline: impl Fn(&mut C),
    ) -> Result<Loop<C>, Error> {
        self.check()?;
        let shared = Arc::<LoopShared>::default();
        if self.stops_on_signals {
            shared.stop_on_signals()?;
        }
        let started = self.set_up(Arc::clone(&shared), clock, discipline);
        // A loop that never ran keeps no place among those that signals stop.
        started.inspect_err(|_| shared.request_stop())
    }

    fn set_up<C: Clock>(
        self,
        shared: Arc<LoopShared>,
        clock: impl FnOnce(Period, &AtomicBool) -> (C, Option<Quiet>),
        discipline: impl Fn(&mut C),
    ) -> Result<Loop<C>, Error> {
        let Self { period, phase, thread, samples, .. } = self;
        let cautions = check_demands(&[Demand::waiting(&thread, period)])?;
        let process = ProcessSession::ask(thread.locks_memory(), thread.holds_idle_states());
        // Before the session, so that it may run on any CPU that the caller may.
        let watchdog = thread.bound(period).map(|bound| Watchdog::over(Arc::clone(&shared), bound));
        let watchdog = watchdog.transpose().map_err(Kind::Thread)?;
        let watched = shared.watched();
        // From here on a thread above may keep its CPU.
        let enter = || ThreadSession::enter(thread.pinned_to(), thread.policy());
        let session = watched.in_setup(enter);
        let refused: Vec<Refusal> =
            process.refused().iter().chain(session.refused()).copied().collect();
        if thread.is_strict() && !refused.is_empty() {
            return Err(Kind::Refused(refused).into());
        }
        let (neighbour, beside) = Neighbour::enter(thread.pinned_to());
        let (mut clock, quiet) = watched.in_setup(|| clock(period, shared.stop.flag()));
        check_period(period, &mut clock)?;
        check_lead(period.as_span(), &clock)?;
        let phase_ns = match (phase, quiet) {
            (Phase::At(ns), _) => ns,
            (_, quiet) => quiet.map_or(0, |quiet| quiet.phase_ns),
        };
        let warm_up = WarmUp { watched: Some(watched), ..WarmUp::until(shared.stop.flag()) };
        let place = LearnPlace { period, phase_ns, quiet: quiet.map(|quiet| (quiet, period)) };
        let learn = || warm_up.ready(thread.wait_policy(), place, &mut clock, &discipline);
        let ReadyWait { wait, mut warnings, moved } = watched.in_setup(learn);
        let quiet = moved.or(quiet);
        let phase_ns = moved.map_or(phase_ns, |quiet| quiet.phase_ns);
        warnings.extend(beside);
        warnings.extend(cautions.iter().map(Caution::to_string));
        let facts = || facts(&thread, period, phase_ns, session.policy());
        let recording =
            samples.map(|path| LoopRecording::start(path, vec![facts()])).transpose()?;
        let (recording, mut rings) = recording.unzip();
        let observe = CycleCounting::new(rings.as_mut().and_then(Vec::pop));
        let handle = LoopHandle { shared, page: StatsPage::Own(observe.stats()) };
        THREADS_LOOPS.with_borrow_mut(|loops| loops.push(Arc::clone(&handle.shared)));
        let releases = Releases::new(Instant::from_ns(0), period);
        let segments = SegmentedLoop::new(clock, wait, observe, releases);
        // A sample file says where its releases lie.
        let segments = match quiet.filter(|_| recording.is_none()) {
            Some(place) => segments.staying_quiet(place),
            None => segments,
        };
        Ok(Loop {
            period,
            phase_ns,
            quiet,
            segments,
            finished: false,
            first: None,
            began: CpuTime::default(),
            ended_ns: None,
            is_second: false,
            handle,
            recording,
            _watchdog: watchdog,
            session,
            process,
            _neighbour: neighbour,
            refused,
            warnings,
            wait_policy: *thread.wait_policy(),
        })
    }
}

/// A handle of a loop, for any thread; outlives it.
#[derive(Clone, Debug)]
pub struct LoopHandle {
    shared: Arc<LoopShared>,
    page: StatsPage,
}

impl LoopHandle {
    /// Ends the loop: its wait gives `None`, at once where it spins, within 100 ms where it sleeps,
    /// whatever its period. Stays so. Releases from now on are none of its run: what was
    /// due before and never ran is missed. May be called in a signal handler.
    ///
    /// # Real-time: in loop
    pub fn stop(&self) {
        self.shared.request_stop();
    }

    /// Has SIGINT (Ctrl-C), SIGTERM and SIGHUP stop it, unless SIGHUP is ignored as under nohup(1):
    /// in the handler itself, as [`LoopHandle::stop`] does. Counts, summary and sample file stay
    /// whole. A second signal half a second later, or more, ends the process. Where one came
    /// before, also for another loop, it stops at once. [`LoopBuilder::stop_on_signals`] does so
    /// from the beginning of the start on, which takes half a second.
    ///
    /// The program's own handlers of the three are replaced, for good. A signal handler may run at
    /// any time, so that what the loop shares with its handles, some hundred bytes, is never freed.
    ///
    /// # Errors
    /// 64 loops that run are stopped by signals already.
    ///
    /// # Real-time: setup only
    ///
    /// ```
    /// use punctual::{Loop, Period};
    /// # use punctual::{Phase, RtThread, WaitPolicy};
    ///
    /// let each_ms = Loop::builder(Period::hz(1_000).expect("in range"));
    /// # let thread = RtThread::any().wait(WaitPolicy::sleep());
    /// # let each_ms = each_ms.phase(Phase::Zero).thread(thread);
    /// let mut each_ms = each_ms.start()?;
    /// each_ms.handle().stop_on_signals()?;
    /// while let Some(cycle) = each_ms.wait() {
    ///     // Until Ctrl-C.
    /// #   if cycle.n >= 3 { break; }
    /// }
    /// println!("{}", each_ms.finish());
    /// # Ok::<(), punctual::Error>(())
    /// ```
    pub fn stop_on_signals(&self) -> Result<(), Error> {
        self.shared.stop_on_signals()
    }

    /// Returns true where the loop is to stop, or has ended, or was dropped; true in a child that
    /// fork(2) made.
    ///
    /// # Real-time: in loop
    #[inline]
    pub fn stopped(&self) -> bool {
        self.shared.stop.flag().load(Ordering::Relaxed) || self.shared.is_forked()
    }

    /// The statistics of the loop so far: one cycle behind, for the running one is not over.
    ///
    /// # Real-time: reader side
    pub fn stats(&self) -> Stats {
        self.page.stats("loop")
    }

    /// The counts of the loop so far, which takes no walk through the histogram.
    ///
    /// # Real-time: reader side
    pub fn counts(&self) -> Counts {
        self.page.counts()
    }

    /// A lateness that at least `share` of all releases did not exceed, at most 0.8 % too much;
    /// `None` before the first release and for a share outside [0, 1].
    ///
    /// # Real-time: reader side
    pub fn quantile(&self, share: f64) -> Option<Span> {
        self.page.quantile(share)
    }

    /// Gaps inside spins so far, at least a threshold long; each number is whole, and they may be
    /// one cycle apart.
    ///
    /// # Real-time: reader side
    pub fn stalls(&self) -> Stalls {
        self.shared.vitals.stalls()
    }

    /// The way in which the watchdog ended the loop; `None` where it did not.
    ///
    /// # Real-time: reader side
    pub fn forced(&self) -> Option<Force> {
        self.shared.watched().ended()
    }
}

/// The state that a loop shares with its handles: the stop flag, and what it shows while it runs.
/// Atomic numbers alone, for handles, watchdogs and signal handlers.
#[derive(Debug, Default)]
struct LoopShared {
    /// The process that it runs in: a child has neither its watchdog nor its policy.
    origin: Origin,
    stop: StopFlag,
    vitals: Vitals,
    has_begun: AtomicBool,
}

impl LoopShared {
    /// Returns true where this process is a child of the loop's.
    #[inline]
    fn is_forked(&self) -> bool {
        !self.origin.is_here()
    }

    /// Returns true from its first wait on until it is to stop.
    fn runs(&self) -> bool {
        let is_stopped = self.stop.flag().load(Ordering::Relaxed) || self.is_forked();
        self.has_begun.load(Ordering::Relaxed) && !is_stopped
    }

    fn request_stop(&self) {
        self.stop.request(Instant::from_ns(now_ns(ClockId::Monotonic)));
    }

    fn stop_on_signals(self: &Arc<Self>) -> Result<(), Error> {
        let shared: &'static Arc<Self> = Box::leak(Box::new(Arc::clone(self)));
        stop_by_signals([&shared.stop])
    }
}

impl WatchedLoop for LoopShared {
    fn watched(&self) -> &Watched {
        self.vitals.watched()
    }

    fn stop(&self) -> &impl StopRequest {
        &self.stop
    }
}

thread_local! {
    /// The loops of this thread that were started and have not ended.
    static THREADS_LOOPS: RefCell<Vec<Arc<LoopShared>>> = const { RefCell::new(Vec::new()) };
}

/// Of a loop that began while another one of its thread ran.
const SECOND: &str = "another loop of its thread ran when it began: while one waits or works, \
                      releases of the other pass and are missed; give each a thread of its own, or \
                      make them tasks of one Executive";

/// The CPU time that a thread has used by an instant.
#[derive(Clone, Copy, Debug, Default)]
struct CpuTime {
    used_ns: u64,
    /// The instant, on CLOCK_MONOTONIC.
    at_ns: u64,
}

impl CpuTime {
    /// That of the calling thread, now.
    fn now() -> Self {
        Self { used_ns: now_ns(ClockId::ThreadCpu), at_ns: now_ns(ClockId::Monotonic) }
    }

    /// The share of a CPU that the thread has taken since `before`, in [0, 1], and how long ago
    /// that is.
    fn share_since(self, before: Self) -> (f64, Span) {
        let used_ns = self.used_ns.saturating_sub(before.used_ns);
        let ran_ns = self.at_ns.saturating_sub(before.at_ns);
        let share = (used_ns as f64 / ran_ns.max(1) as f64).min(1.0);
        (share, Span::from_ns(ran_ns.cast_signed()))
    }
}

fn facts(thread: &RtThread, period: Period, phase_ns: u64, policy: SchedPolicy) -> RunFacts {
    let (name, wait) = ("loop".to_owned(), thread.wait_policy().name());
    let cpu = thread.pinned_to();
    // Its recording begins with its release 0.
    RunFacts { name, cpu, period, epoch_ns: 0, phase_ns, policy, wait, experiment: None }
}

#[cfg(test)]
mod tests;
