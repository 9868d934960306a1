//! A periodic experiment that is set up, and its run: threads up, blocks in turn, all put back.
//!
//! For callers: the entrance of this module. Decides nothing about loads (its [`BackgroundLoads`]
//! does) and nothing about numbers.

use std::io::{self, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

use punctual::follow::{FollowedClock, Follower};
use punctual_core::clock::Clock;
use punctual_core::cycle::Ended;
use punctual_core::releases::Releases;
use punctual_core::ring::{Ring, RingView};
use punctual_core::time::{Instant, Span};
use punctual_core::wait::{Learned, PausedSpin, Stalls, WakePlan};
use punctual_engine::clocks::{MachineClock, Reading, StampCost};
use punctual_engine::counting::{Words, ring_of};
use punctual_engine::disturbance::Disturbance;
use punctual_engine::drain::{DrainRequests, Drainage, SampleFile, Sink};
use punctual_engine::monitor::WatchedProgress;
use punctual_engine::rt_thread::run_before;
use punctual_engine::segmented::{SegmentedLoop, Vitals};
use punctual_engine::session::{Refusal, ThreadSession};
use punctual_engine::spawn;
use punctual_engine::wait_policy::{WarmUp, is_learning, strategy};
use punctual_host::counts::StealTicks;
use punctual_host::root::Root;
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::scheduler::{self, SchedPolicy};
use punctual_os::threads::{self, Usage};
use punctual_os::{process, signal};

use super::stop_over::{LateRelease, LateWatch, StopOver, StoppingRecorder};
use super::{
    ConditionBlock, FollowedFigures, KnownWait, LoopsOutcome, Moment, PREPARED, PeriodicPlan,
    RunOutcome, Stream,
};
use crate::experiment::{
    BackgroundLoads, ClockFacts, DatedStop, ExperimentEnd, ExperimentProgress, RingEnds, keep_to,
    usage_since, watchdog,
};
use crate::lookout::Lookout;
use crate::others::{Census, OthersOnCpu, Witness};

/// An experiment that is set up: its clock is calibrated and its grids are fixed.
#[derive(Debug)]
pub struct Prepared {
    plan: PeriodicPlan,
    clock: MachineClock,
    cost: StampCost,
    begun: Reading,
    /// By run.
    grids: Vec<Releases>,
    follower: Option<Follower>,
    storage: Vec<Words>,
    known: Vec<KnownWait>,
    stop_over: Option<StopOver>,
}

impl Prepared {
    /// Calibrates the clock (about 50 ms) and fixes the grids.
    pub fn new(plan: PeriodicPlan) -> Self {
        let mut clock = MachineClock::best();
        let cost = StampCost::measure(&mut clock);
        let begun = Reading::take();
        let now = Instant::from_ns(now_ns(ClockId::Monotonic));
        let grids = grids(&plan, now);
        let storage = plan
            .streams
            .iter()
            .flat_map(|stream| plan.conditions.iter().map(move |_| stream))
            .map(|stream| ring_of(stream.period))
            .collect();
        let (follower, known, stop_over) = (None, Vec::new(), None);
        Self { plan, clock, cost, begun, grids, follower, storage, known, stop_over }
    }

    /// With what earlier runs learned: waits that learn begin with it.
    #[must_use]
    pub fn knowing(self, known: Vec<KnownWait>) -> Self {
        Self { known, ..self }
    }

    /// Ending at the first release that is later than a limit, where there is one.
    #[must_use]
    pub fn stopping_over(self, stop_over: Option<StopOver>) -> Self {
        Self { stop_over, ..self }
    }

    /// On the timescale of a clock that is followed: its grids lie on that one's time, and
    /// what stamps cost is measured through the map.
    #[must_use]
    pub fn following(self, follower: Follower) -> Self {
        let mut clock = follower.over(self.clock.clone());
        let cost = StampCost::measure(&mut clock);
        let grids = grids(&self.plan, clock.wake());
        Self { cost, grids, follower: Some(follower), ..self }
    }

    /// The plan.
    pub fn plan(&self) -> &PeriodicPlan {
        &self.plan
    }

    /// The grid of each run, see [`PeriodicPlan::run_index`].
    pub fn run_grids(&self) -> &[Releases] {
        &self.grids
    }

    /// Cost of a stamp.
    pub fn cost(&self) -> StampCost {
        self.cost
    }

    /// The calibrated clock, another one like it.
    pub fn clock(&self) -> MachineClock {
        self.clock.clone()
    }

    /// The clock that takes stamps: `tsc`, `cntvct` or `vdso`.
    pub fn clock_name(&self) -> &'static str {
        self.clock.name()
    }

    /// The policy that the kernel grants each stream, found out on threads that end at once.
    ///
    /// # Errors
    /// That no thread could be started.
    pub fn granted(&self) -> io::Result<Vec<SchedPolicy>> {
        let granted = |stream: &Stream| {
            // On any CPU: that of the loop may be kept by others.
            let thread = stream.thread.clone().pinned(None);
            let policy = || scheduler::get(0).unwrap_or(SchedPolicy::Other);
            let granted = run_before(&thread, "punctual-policy", PREPARED, policy)?;
            Ok(granted.unwrap_or(SchedPolicy::Other))
        };
        self.plan.streams.iter().map(granted).collect()
    }

    /// Runs the experiment until it ends or `stop` is set; samples go to `sink` and `file`.
    ///
    /// # Errors
    /// That a thread could not be started.
    pub fn run<S: Sink + Send, W: Write + Send>(
        self,
        sink: S,
        file: Option<SampleFile<W>>,
        background: &mut dyn BackgroundLoads,
        stop: &AtomicBool,
    ) -> io::Result<LoopsOutcome<S>> {
        let Self { plan, mut clock, cost, begun, grids, follower, storage, known, stop_over } =
            self;
        let (late, dated) = (LateWatch::new(stop_over, stop), DatedStop::of(stop));
        let followed = follower.as_ref().map(|follower| (follower, Moment::now(follower)));
        // Without it a sleeping loop learns of a stop only at its next wake.
        let _late_stop = signal::catch_interrupt();
        let RingEnds { rings, drains, views } = RingEnds::of(&storage);
        let vitals: Vec<Vitals> = plan.streams.iter().map(|_| Vitals::default()).collect();
        let requests = DrainRequests::default();
        let over = Over { done: AtomicBool::new(false), early: AtomicBool::new(false) };
        let pinned = Mutex::new(Vec::new());
        let context = RunContext {
            plan: &plan,
            known: &known,
            grids: &grids,
            vitals: &vitals,
            clock: &clock,
            follower: follower.as_ref(),
            stop,
            dated: &dated,
            late: &late,
            pinned: &pinned,
        };
        let measured = thread::scope(|scope| -> io::Result<_> {
            // Whatever happens in here, the watchdog ends and no loop goes on.
            let _over = ThreadStopper { over: &over, stop };
            let drains = drains.into_iter().zip(views.iter().copied()).collect();
            let drainage = Drainage::new(drains, sink, file);
            let (handle, drain) =
                drain_thread(scope, &context, drainage, (&requests, &over.early))?;
            watchdog_thread(scope, &context, &over.done)?;
            let threads = StreamThreads::start(scope, &context, rings)?;
            let tallies = threads.run_blocks(&context, &handle, background);
            over.early.store(tallies.end != ExperimentEnd::Finished, Ordering::Release);
            drop(handle);
            let drained = drain.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            // From here on nothing counts: not how it ends either.
            let force = vitals.iter().find_map(|vitals| vitals.watched().ended());
            let by_itself = match (&tallies.end, late.first()) {
                (ExperimentEnd::Stopped, Some(_)) => ExperimentEnd::Late,
                (end, _) => end.clone(),
            };
            let measured = CountedBlocks {
                followed: followed.map(|(follower, began)| FollowedFigures::of(follower, began)),
                end: force.map_or(by_itself, ExperimentEnd::Watchdog),
                late: late.first(),
                tallies,
                drained,
            };
            if measured.end == ExperimentEnd::Finished && !stop.load(Ordering::Relaxed) {
                threads.run_uncounted(&context, background, &measured.tallies.tids);
            }
            Ok(measured)
        })?;
        clock.discipline();
        let CountedBlocks { tallies, drained, followed, end, late } = measured;
        Ok(LoopsOutcome {
            sink: drained.sink,
            runs: tallies.outcomes(&plan, &views),
            refused: tallies.refused,
            clock: ClockFacts::of(&clock, cost, begun.until(&Reading::take())),
            followed,
            disturbances: drained.disturbances,
            file_error: drained.file_error,
            end,
            late,
        })
    }
}

/// What is there when the last block that counts is over.
struct CountedBlocks<S> {
    tallies: Tallies,
    drained: Drained<S>,
    followed: Option<FollowedFigures>,
    end: ExperimentEnd,
    late: Option<LateRelease>,
}

/// The grid of each run, from `now` on.
fn grids(plan: &PeriodicPlan, now: Instant) -> Vec<Releases> {
    let grid = |(stream, condition)| {
        let phase_ns = plan.phase_ns(stream, condition);
        Releases::aligned(now, stream.period, phase_ns)
    };
    let conditions = 0..plan.conditions.len();
    let of_stream = |stream| conditions.clone().map(move |condition| (stream, condition));
    plan.streams.iter().flat_map(of_stream).map(grid).collect()
}

/// The end of the experiment, for the threads next to it.
struct Over {
    done: AtomicBool,
    /// Before its time.
    early: AtomicBool,
}

/// Ends the threads next to the coordinator when it leaves, by whichever way.
struct ThreadStopper<'a> {
    over: &'a Over,
    stop: &'a AtomicBool,
}

impl Drop for ThreadStopper<'_> {
    fn drop(&mut self) {
        self.over.done.store(true, Ordering::Release);
        // On the regular way all loops are over; on any other they have to end now.
        if thread::panicking() {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

/// Time between two looks at the streams while they run: a hog of some 50 ms is seen, for 20 µs a
/// look.
const LOOK: Duration = Duration::from_millis(20);
/// Looks from one report of progress to the next.
const LOOKS_EACH_SURVEY: u64 = 5;

/// The data that all threads of an experiment share.
#[derive(Clone, Copy)]
struct RunContext<'a> {
    plan: &'a PeriodicPlan,
    known: &'a [KnownWait],
    grids: &'a [Releases],
    /// By stream.
    vitals: &'a [Vitals],
    clock: &'a MachineClock,
    follower: Option<&'a Follower>,
    stop: &'a AtomicBool,
    /// The same, with the instant at which the watchdog set it.
    dated: &'a DatedStop<'a>,
    late: &'a LateWatch<'a>,
    /// Threads and the CPUs that they were pinned to, once they are.
    pinned: &'a Mutex<Vec<(i32, u32)>>,
}

/// The streams' threads, as the coordinator talks to them.
struct StreamThreads {
    orders: Vec<Sender<Order>>,
    answers: Receiver<Answer>,
}

/// Blocks that run one after the other.
struct Sequence<'a> {
    blocks: &'a [ConditionBlock],
    /// True where their cycles count.
    counts: bool,
}

impl Sequence<'_> {
    fn length(&self) -> Span {
        Span::from_ns(self.blocks.iter().map(|block| block.length.as_ns()).sum())
    }
}

/// The answers of the streams, added up.
struct Tallies {
    /// By run.
    runs: Vec<RunTally>,
    /// By stream.
    policies: Vec<SchedPolicy>,
    refused: Vec<Refusal>,
    /// By stream.
    tids: Vec<i32>,
    end: ExperimentEnd,
}

impl StreamThreads {
    /// Starts a thread for each stream.
    fn start<'scope, 'env: 'scope>(
        scope: &'scope Scope<'scope, 'env>,
        context: &RunContext<'env>,
        rings: Vec<Ring<'env>>,
    ) -> io::Result<Self> {
        let (to_coordinator, answers) = channel();
        let mut rings = rings.into_iter();
        let mut orders = Vec::new();
        let conditions = context.plan.conditions.len();
        for number in 0..context.plan.streams.len() {
            let (give, take) = channel();
            orders.push(give);
            let answers = to_coordinator.clone();
            let worker = Worker { number, context: *context, orders: take, answers };
            let rings = rings.by_ref().take(conditions).collect();
            let clock = context.clock.clone();
            match context.follower {
                None => spawn::scoped(scope, "punctual-loop", move || worker.run(clock, rings))?,
                Some(follower) => {
                    let clock = follower.over(clock);
                    spawn::scoped(scope, "punctual-loop", move || worker.run(clock, rings))?
                }
            };
        }
        Ok(Self { orders, answers })
    }

    /// Waits for all streams to be ready, then runs the blocks of the plan.
    fn run_blocks(
        &self,
        context: &RunContext<'_>,
        drain: &DrainHandle<'_>,
        background: &mut dyn BackgroundLoads,
    ) -> Tallies {
        let streams = context.plan.streams.len();
        let mut tallies = Tallies::new(context.plan, vec![0; streams]);
        for _ in 0..streams {
            match self.answers.recv() {
                Ok(Answer::Gone) | Err(_) => {
                    return Tallies { end: ExperimentEnd::Stopped, ..tallies };
                }
                Ok(answer) => tallies.note(context.plan, answer),
            }
        }
        background.ready(&tallies.tids);
        if let Ok(mut pinned) = context.pinned.lock() {
            *pinned = tallies.pinned(context.plan);
        }
        let sequence = Sequence { blocks: &context.plan.blocks, counts: true };
        self.run_sequence(context, &sequence, background, &mut tallies, &|| drain.flush());
        // Threads may lose their CPUs from here on.
        if let Ok(mut pinned) = context.pinned.lock() {
            pinned.clear();
        }
        drain.flush();
        tallies
    }

    /// Runs what is to run behind the measurement. What comes of it is nobody's.
    fn run_uncounted(
        &self,
        context: &RunContext<'_>,
        background: &mut dyn BackgroundLoads,
        tids: &[i32],
    ) {
        let blocks = background.measured();
        let mut tallies = Tallies::new(context.plan, tids.to_vec());
        let sequence = Sequence { blocks: &blocks, counts: false };
        self.run_sequence(context, &sequence, background, &mut tallies, &|| ());
    }

    /// Runs blocks one after the other, until a load does not start or all is stopped; `flush` is
    /// called behind each.
    fn run_sequence(
        &self,
        context: &RunContext<'_>,
        sequence: &Sequence<'_>,
        background: &mut dyn BackgroundLoads,
        tallies: &mut Tallies,
        flush: &dyn Fn(),
    ) {
        let mut left = sequence.length();
        let root = Root::live();
        for &ConditionBlock { condition, length } in sequence.blocks {
            if let Err(why) = background.begin(condition, length) {
                tallies.end = ExperimentEnd::Load(why);
                break;
            }
            // A load is what is to run there.
            let is_idle = context.plan.conditions[condition].loads.is_empty();
            let census = (is_idle && sequence.counts).then(|| Census::take(&root));
            // What it takes to start a load is no time of the block.
            let begun = Instant::from_ns(now_ns(ClockId::Monotonic));
            let end = begun + left;
            left = Span::from_ns(left.as_ns() - length.as_ns());
            let before = StealTicks::read(&root);
            let counts = sequence.counts;
            let order = Order { condition, begin: begun, end: begun + length, counts };
            for ((orders, vitals), tid) in self.orders.iter().zip(context.vitals).zip(&tallies.tids)
            {
                // Before the thread can: others may keep it from taking its order.
                vitals.watched().arm(*tid);
                // A stream that is gone has panicked; the scope hands that on.
                let _gone = orders.send(order);
            }
            let ended = self.await_block(context, tallies, condition, || {
                background.progress(&progress(condition, end));
            });
            let now = StealTicks::read(&root);
            tallies.steal(context.plan, condition, |cpu| now.since_ns(&before, cpu));
            if let Some(before) = census {
                let wall_ns = now_ns(ClockId::Monotonic).saturating_sub(begun.as_ns());
                let now = Census::take(&root);
                tallies.others(context.plan, condition, |cpu| now.since(&before, cpu, wall_ns));
            }
            background.end(condition);
            flush();
            if ended == Ended::Stopped {
                tallies.end = ExperimentEnd::Stopped;
                break;
            }
        }
    }

    fn await_block(
        &self,
        context: &RunContext<'_>,
        tallies: &mut Tallies,
        condition: usize,
        mut survey: impl FnMut(),
    ) -> Ended {
        let mut ended = Ended::Finished;
        let mut waiting = context.plan.streams.len();
        let (root, mut witness, mut looks) = (Root::live(), Witness::default(), 0_u64);
        while waiting > 0 {
            match self.answers.recv_timeout(LOOK) {
                Ok(Answer::Gone) => return Ended::Stopped,
                Ok(answer) => {
                    if let Answer::Done { ended: Ended::Stopped, .. } = answer {
                        ended = Ended::Stopped;
                    }
                    tallies.note(context.plan, answer);
                    waiting -= 1;
                }
                Err(RecvTimeoutError::Timeout) => {
                    tallies.witness(context.plan, condition, &mut witness, &root);
                    looks += 1;
                    if looks % LOOKS_EACH_SURVEY == 0 {
                        survey();
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Ended::Stopped,
            }
            if context.stop.load(Ordering::Relaxed) {
                // A thread that is not in a sleep, or gone, needs no waking.
                for &tid in &tallies.tids {
                    let _awake = signal::interrupt(tid);
                }
            }
        }
        ended
    }
}

impl Tallies {
    /// Nothing yet, of these threads.
    fn new(plan: &PeriodicPlan, tids: Vec<i32>) -> Self {
        Self {
            runs: vec![RunTally::default(); plan.runs()],
            policies: vec![SchedPolicy::Other; plan.streams.len()],
            refused: Vec::new(),
            tids,
            end: ExperimentEnd::Finished,
        }
    }

    /// The threads that are bound to a CPU, and to which.
    fn pinned(&self, plan: &PeriodicPlan) -> Vec<(i32, u32)> {
        let cpus = plan.streams.iter().map(|stream| stream.thread.pinned_to());
        self.tids.iter().zip(cpus).filter_map(|(&tid, cpu)| Some((tid, cpu?))).collect()
    }

    /// Adds what the host took from each stream's CPU during a block, ns.
    fn steal(
        &mut self,
        plan: &PeriodicPlan,
        condition: usize,
        of_cpu: impl Fn(u32) -> Option<u64>,
    ) {
        for (number, stream) in plan.streams.iter().enumerate() {
            let steal_ns = stream.thread.pinned_to().and_then(&of_cpu);
            let tally = &mut self.runs[plan.run_index(number, condition)];
            let so_far = [tally.steal_ns, steal_ns];
            tally.steal_ns = so_far.into_iter().flatten().reduce(u64::saturating_add);
        }
    }

    /// Adds what else ran on each stream's CPU during a block.
    fn others(
        &mut self,
        plan: &PeriodicPlan,
        condition: usize,
        of_cpu: impl Fn(u32) -> OthersOnCpu,
    ) {
        for (number, stream) in plan.streams.iter().enumerate() {
            let Some(cpu) = stream.thread.pinned_to() else { continue };
            let tally = &mut self.runs[plan.run_index(number, condition)];
            tally.others.get_or_insert_default().add(&of_cpu(cpu));
        }
    }

    /// Looks whether streams wait for their CPU, and adds what has it.
    fn witness(
        &mut self,
        plan: &PeriodicPlan,
        condition: usize,
        witness: &mut Witness,
        root: &Root,
    ) {
        for (number, stream) in plan.streams.iter().enumerate() {
            let Some(cpu) = stream.thread.pinned_to() else { continue };
            if let Some(seen) = witness.look(root, self.tids[number], cpu) {
                let tally = &mut self.runs[plan.run_index(number, condition)];
                tally.kept_waiting.get_or_insert_default().add(&seen);
            }
        }
    }

    /// Takes in the answer of a stream.
    fn note(&mut self, plan: &PeriodicPlan, answer: Answer) {
        match answer {
            Answer::Ready { stream, tid, policy, refused } => {
                self.policies[stream] = policy;
                self.tids[stream] = tid;
                self.refused.extend(refused);
            }
            // Whoever waits for answers looks for this one first.
            Answer::Gone => {}
            Answer::Done { stream, condition, figures, .. } => {
                self.runs[plan.run_index(stream, condition)].figures.add(&figures);
            }
        }
    }

    /// The outcome of each run, with what its ring has of it.
    fn outcomes(&self, plan: &PeriodicPlan, views: &[RingView<'_>]) -> Vec<RunOutcome> {
        let runs = self.runs.iter().zip(views).enumerate();
        let policy = |run: usize| self.policies[run / plan.conditions.len()];
        runs.map(|(run, (tally, view))| tally.outcome(view, policy(run))).collect()
    }
}

/// The time left and the condition; the figures of the loops come from elsewhere.
fn progress(condition: usize, end: Instant) -> ExperimentProgress {
    let left = end - Instant::from_ns(now_ns(ClockId::Monotonic));
    ExperimentProgress { left: left.max(Span::ZERO), condition, worst: None, count: 0 }
}

/// The result of the drain.
struct Drained<S> {
    sink: S,
    file_error: Option<io::Error>,
    disturbances: Vec<(u64, Disturbance)>,
}

/// The coordinator's way to the drain, which ends when this is dropped. It has the rings emptied
/// between two blocks, so that the samples of one reach the sink before those of the next.
struct DrainHandle<'a>(&'a DrainRequests);

impl DrainHandle<'_> {
    /// Has the rings emptied, and waits for it. Returns at once when the drain is gone.
    fn flush(&self) {
        self.0.flush();
    }
}

impl Drop for DrainHandle<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Empties the rings until its handle is gone, and looks at the machine each time.
///
/// Keeps to the housekeeping CPUs.
fn drain_thread<'scope, 'env, S, W>(
    scope: &'scope Scope<'scope, 'env>,
    context: &RunContext<'env>,
    mut drainage: Drainage<'env, S, W>,
    (requests, early): (&'env DrainRequests, &'env AtomicBool),
) -> io::Result<(DrainHandle<'env>, ScopedJoinHandle<'scope, Drained<S>>)>
where
    S: Sink + Send + 'scope,
    W: Write + Send + 'scope,
    'env: 'scope,
{
    let (plan, pinned, vitals) = (context.plan, context.pinned, context.vitals);
    let thread = spawn::scoped(scope, "punctual-drain", move || {
        keep_to(&plan.housekeeping);
        let threads = || pinned.lock().map_or_else(|_| Vec::new(), |pinned| pinned.clone());
        let mut lookout = Lookout::new(&threads());
        // One that the watchdog ends is moved, so that it can end.
        let goes_on = || vitals.iter().all(|vitals| vitals.watched().ended().is_none());
        drainage.run(requests, || lookout.look(&threads(), goes_on));
        let (sink, file_error) = drainage.finish(early.load(Ordering::Acquire));
        Drained { sink, file_error, disturbances: lookout.happened() }
    })?;
    Ok((DrainHandle(requests), thread))
}

/// Watches all streams until `done`.
fn watchdog_thread<'scope, 'env: 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    context: &RunContext<'env>,
    done: &'env AtomicBool,
) -> io::Result<()> {
    let progress = |(stream, vitals): (&Stream, &'env Vitals)| {
        let watched = vitals.watched();
        let bound = stream.thread.bound(stream.period)?;
        Some(WatchedProgress { watched, progress: || watched.beats(), bound })
    };
    let plan = context.plan;
    let loops = plan.streams.iter().zip(context.vitals).filter_map(progress).collect();
    watchdog(scope, &plan.housekeeping, loops, (context.dated, done))
}

/// From the order to the first release: time to get from the order into the loop. Who needs longer,
/// because others have the CPU, is late: no release is left out for it.
const BLOCK_LEAD: Span = Span::from_ms(1);

/// An order to a stream.
#[derive(Clone, Copy, Debug)]
struct Order {
    /// Under which condition, that is into which ring.
    condition: usize,
    /// From when on, on CLOCK_MONOTONIC: when it was given, not when its thread came to it.
    begin: Instant,
    /// Until when, on CLOCK_MONOTONIC.
    end: Instant,
    /// True where its cycles count.
    counts: bool,
}

/// An answer of a stream to its coordinator.
#[derive(Debug)]
enum Answer {
    /// It is set up: its thread, the policy it has, what it was refused.
    Ready { stream: usize, tid: i32, policy: SchedPolicy, refused: Vec<Refusal> },
    /// The thread ends by a panic, which the scope hands on once all have ended.
    Gone,
    /// A segment is over.
    Done { stream: usize, condition: usize, ended: Ended, figures: Box<SegmentFigures> },
}

/// The figures of a segment of a loop, or of several of the same run, apart from what its ring
/// holds.
#[derive(Clone, Debug, Default)]
struct SegmentFigures {
    /// CPU time of the thread, in ns.
    cpu_ns: u64,
    /// Wall time, in ns.
    wall_ns: u64,
    /// Gaps inside spins.
    stalls: Stalls,
    /// Page faults and context switches.
    usage: Usage,
    /// The sleeps before a release and the margin, as the wait had them at the end.
    plan: WakePlan,
    /// The parameters that the wait learned; `None` where it does not learn.
    learned: Option<Learned>,
    /// Time that the processor paused in its spins, from the wait's first on.
    paused: PausedSpin,
    /// True where it began with what an earlier run learned.
    resumed: bool,
}

impl SegmentFigures {
    /// Adds a later segment of the same run. What the wait states is from its first segment on, so
    /// that the later statement replaces the earlier one.
    fn add(&mut self, later: &Self) {
        self.cpu_ns += later.cpu_ns;
        self.wall_ns += later.wall_ns;
        self.stalls.count += later.stalls.count;
        self.stalls.longest = self.stalls.longest.max(later.stalls.longest);
        self.stalls.sum = Span::from_ns(self.stalls.sum.as_ns() + later.stalls.sum.as_ns());
        self.usage.minor_faults += later.usage.minor_faults;
        self.usage.major_faults += later.usage.major_faults;
        self.usage.voluntary_switches += later.usage.voluntary_switches;
        self.usage.involuntary_switches += later.usage.involuntary_switches;
        self.plan = later.plan;
        self.learned = later.learned.or(self.learned);
        self.paused = later.paused;
        self.resumed |= later.resumed;
    }
}

/// The sum of a run's segments, and what else had its CPU meanwhile, as the coordinator saw it.
#[derive(Clone, Debug, Default)]
struct RunTally {
    figures: SegmentFigures,
    /// Time that the host took from the stream's CPU, ns; `None` where that is not known.
    steal_ns: Option<u64>,
    /// The other threads on the stream's CPU, where no load ran.
    others: Option<OthersOnCpu>,
    /// The threads that had it while the stream was seen waiting for it.
    kept_waiting: Option<OthersOnCpu>,
}

impl RunTally {
    /// The outcome of the run, with what its ring has of it and the policy of its thread.
    fn outcome(&self, ring: &RingView<'_>, policy: SchedPolicy) -> RunOutcome {
        let figures = &self.figures;
        RunOutcome {
            cycles: ring.count(),
            missed: ring.missed(),
            unrecorded: ring.unrecorded(),
            stalls: figures.stalls,
            cpu_load: figures.cpu_ns as f64 / (figures.wall_ns.max(1)) as f64,
            wall_ns: figures.wall_ns,
            usage: figures.usage,
            policy,
            approach: figures.plan,
            learned: figures.learned,
            paused: figures.paused,
            resumed: figures.resumed,
            steal_ns: self.steal_ns,
            others: self.others.clone(),
            kept_waiting: self.kept_waiting.clone(),
        }
    }
}

/// The thread of one stream.
///
/// Waits for orders between segments, where it may allocate; inside a segment it is the loop's
/// alone.
struct Worker<'a> {
    /// The number of its stream.
    number: usize,
    context: RunContext<'a>,
    orders: Receiver<Order>,
    answers: Sender<Answer>,
}

/// Reports it when its thread ends by a panic: others wait for its answers.
struct PanicNotice(Sender<Answer>);

impl Drop for PanicNotice {
    fn drop(&mut self) {
        if thread::panicking() {
            let _nobody = self.0.send(Answer::Gone);
        }
    }
}

impl<'a> Worker<'a> {
    /// Carries out orders until there are no more, on the timescale of `clock`, with a ring for
    /// each condition. An answer that nobody waits for any more is dropped.
    fn run<C: Timescale>(self, mut clock: C, rings: Vec<Ring<'a>>) {
        let _notice = PanicNotice(self.answers.clone());
        let RunContext { plan, vitals, dated, .. } = self.context;
        let vitals = &vitals[self.number];
        let thread = &plan.streams[self.number].thread;
        let tid = process::tid();
        // From here on: a thread above it may keep the CPU from its first moment there.
        vitals.watched().arm(tid);
        let session = ThreadSession::enter(thread.pinned_to(), thread.policy());
        let waits = rings.into_iter().enumerate();
        let mut loops: Vec<ConditionLoop<'_, C>> =
            waits.map(|(condition, ring)| self.made(&mut clock, condition, ring)).collect();
        vitals.watched().disarm();
        let _gone = self.answers.send(Answer::Ready {
            stream: self.number,
            tid,
            policy: session.policy(),
            refused: session.refused().to_vec(),
        });
        // Armed again by whoever sends the order.
        while let Ok(order) = self.orders.recv() {
            let Some(ConditionLoop { segments, resumed }) = loops.get_mut(order.condition) else {
                break;
            };
            let (clock, grid) = (segments.clock(), self.grid(order.condition));
            clock.discipline();
            let (begin, end) = (clock.at(order.begin), clock.at(order.end));
            match order.counts {
                true => segments.observer().begin(plan.cold),
                false => segments.observer().begin_uncounted(),
            }
            segments.begin_on(grid, grid.at_or_after(begin + BLOCK_LEAD));
            segments.end_at(end);
            let before = (now_ns(ClockId::ThreadCpu), threads::usage().unwrap_or_default());
            let ended = segments.run(dated, vitals);
            vitals.watched().disarm();
            let status = segments.wait_status();
            let figures = Box::new(SegmentFigures {
                cpu_ns: now_ns(ClockId::ThreadCpu).saturating_sub(before.0),
                wall_ns: u64::try_from((segments.clock().now() - begin).as_ns()).unwrap_or(0),
                stalls: vitals.take_stalls(),
                usage: usage_since(before.1),
                plan: status.plan,
                learned: status.learned,
                paused: status.paused,
                resumed: *resumed,
            });
            let done =
                Answer::Done { stream: self.number, condition: order.condition, ended, figures };
            if self.answers.send(done).is_err() {
                break;
            }
        }
    }

    /// The grid of its loop under a condition.
    fn grid(&self, condition: usize) -> Releases {
        self.context.grids[self.context.plan.run_index(self.number, condition)]
    }

    /// The loop under a condition, ready: a wait that learns has learned.
    fn made<C: Timescale>(
        &self,
        clock: &mut C,
        condition: usize,
        ring: Ring<'a>,
    ) -> ConditionLoop<'a, C> {
        let RunContext { plan, vitals, stop, known, late, .. } = self.context;
        let (stream, watched) = (&plan.streams[self.number], vitals[self.number].watched());
        let mut policy = plan.policy(stream, condition);
        let known = super::plan::known(known, stream, plan.wait(stream, condition));
        if let Some(known) = known {
            policy = policy.learned(known);
        }
        let (mut wait, _warnings) = strategy(&policy, stream.period, clock);
        // What does not fit is not gone on from.
        let learns = is_learning(&wait);
        if learns {
            let warm_up = WarmUp {
                longest: plan.warm_up_max(stream, condition),
                stop,
                watched: Some(watched),
            };
            clock.discipline();
            // A stop is seen by the first order too.
            warm_up.learn(&mut wait, clock, (stream.period, plan.phase_ns(stream, condition)));
        }
        let observe = StoppingRecorder::new(ring, late, (self.number, condition));
        let segments = SegmentedLoop::new(clock.clone(), wait, observe, self.grid(condition));
        ConditionLoop { segments, resumed: known.is_some() && !learns }
    }
}

/// The loop of a stream under one condition.
struct ConditionLoop<'a, C> {
    segments: SegmentedLoop<C, StoppingRecorder<'a>>,
    /// True where its wait goes on from what was learned before.
    resumed: bool,
}

/// The clock of a loop. All its instants are on one timescale, which is the grid's.
trait Timescale: Clock + Clone + Send {
    /// Takes in what was learned of its rate since it was last used. Between segments.
    fn discipline(&mut self);

    /// An instant of CLOCK_MONOTONIC on this timescale, by what is known of it now.
    fn at(&self, monotonic: Instant) -> Instant;
}

impl Timescale for MachineClock {
    fn discipline(&mut self) {
        Self::discipline(self);
    }

    fn at(&self, monotonic: Instant) -> Instant {
        monotonic
    }
}

impl Timescale for FollowedClock {
    fn discipline(&mut self) {
        self.clock_mut().discipline();
        // A wake takes the latest map, which may have been bent while no loop ran.
        self.wake();
    }

    fn at(&self, monotonic: Instant) -> Instant {
        self.map().grid(monotonic)
    }
}

#[cfg(test)]
mod tests {
    use punctual::RtThread;
    use punctual_core::time::Period;

    use super::*;
    use crate::periodic::{Condition, LibraryLoop, WaitKind};

    /// A loop on CPU 3 and one on any, under two conditions.
    fn plan() -> PeriodicPlan {
        let stream = |thread: RtThread, period_ns, phase_ns| Stream {
            thread: thread.wait(WaitKind::Sleep),
            period: Period::from_ns(period_ns).expect("positive"),
            phase_ns,
        };
        let condition = |name: &str| Condition {
            name: name.to_owned(),
            wait: None,
            library: None,
            loads: Vec::new(),
        };
        PeriodicPlan {
            streams: vec![
                stream(RtThread::cpu(3), 1_000_000, 7),
                stream(RtThread::any(), 250_000, 0),
            ],
            conditions: ["idle", "cpu"].map(condition).into(),
            blocks: Vec::new(),
            housekeeping: Vec::new(),
            cold: 0,
        }
    }

    /// The figures of a segment in which the loop ran for so long, with a stall as long as that.
    fn segment(cpu_ns: u64) -> SegmentFigures {
        let stall = Span::from_ns(cpu_ns.cast_signed());
        SegmentFigures {
            cpu_ns,
            wall_ns: 1_000,
            stalls: Stalls::new(1, stall, stall),
            usage: Usage { minor_faults: 1, voluntary_switches: cpu_ns, ..Usage::default() },
            plan: WakePlan::new(0, 0, cpu_ns),
            ..SegmentFigures::default()
        }
    }

    fn done(stream: usize, condition: usize, ended: Ended, cpu_ns: u64) -> Answer {
        Answer::Done { stream, condition, ended, figures: Box::new(segment(cpu_ns)) }
    }

    #[test]
    fn segments_of_a_run_add_up_but_for_what_its_wait_states() {
        let mut sum = SegmentFigures { resumed: true, ..segment(300) };
        let mut later = segment(100);
        later.paused.paused = Span::from_ns(5);
        sum.add(&later);
        assert_eq!((sum.cpu_ns, sum.wall_ns, sum.resumed), (400, 2_000, true));
        assert_eq!(sum.stalls, Stalls::new(2, Span::from_ns(300), Span::from_ns(400)));
        assert_eq!((sum.usage.minor_faults, sum.usage.voluntary_switches), (2, 400));
        assert_eq!((sum.plan.margin_ns, sum.paused), (100, later.paused));
    }

    #[test]
    fn an_answer_counts_in_the_run_of_its_stream_and_condition() {
        let plan = plan();
        let mut tallies = Tallies::new(&plan, vec![0; 2]);
        let policy = SchedPolicy::Fifo(9);
        tallies.note(&plan, Answer::Ready { stream: 1, tid: 42, policy, refused: Vec::new() });
        for cpu_ns in [500, 100] {
            tallies.note(&plan, done(1, 0, Ended::Finished, cpu_ns));
        }
        let storage: Vec<Words> =
            (0..plan.runs()).map(|_| ring_of(plan.streams[0].period)).collect();
        let RingEnds { mut rings, views, .. } = RingEnds::of(&storage);
        rings[2].miss(3);
        let outcomes = tallies.outcomes(&plan, &views);
        let loads: Vec<f64> = outcomes.iter().map(|run| run.cpu_load).collect();
        assert_eq!(loads, [0.0, 0.0, 0.3, 0.0]);
        let policies: Vec<SchedPolicy> = outcomes.iter().map(|run| run.policy).collect();
        assert_eq!(policies, [SchedPolicy::Other, SchedPolicy::Other, policy, policy]);
        assert_eq!((outcomes[2].missed, outcomes[3].missed), (3, 0));
        assert_eq!(tallies.tids, [0, 42]);
        // Only the first loop is bound to a CPU.
        assert_eq!(tallies.pinned(&plan), [(0, 3)]);
    }

    #[test]
    fn what_had_a_cpu_counts_for_the_loop_that_is_bound_to_it() {
        let plan = plan();
        let mut tallies = Tallies::new(&plan, vec![0; 2]);
        tallies.steal(&plan, 1, |_| None);
        assert!(tallies.runs.iter().all(|run| run.steal_ns.is_none()));
        for steal_ns in [Some(20), None, Some(u64::MAX)] {
            tallies.steal(&plan, 1, |cpu| steal_ns.filter(|_| cpu == 3));
        }
        let others = |run_ns| OthersOnCpu { wall_ns: 100, run_ns, threads: Vec::new() };
        for run_ns in [30, 40] {
            tallies.others(&plan, 1, |_| others(run_ns));
        }
        let run = plan.run_index(0, 1);
        assert_eq!(tallies.runs[run].steal_ns, Some(u64::MAX), "more than can be counted");
        let seen = tallies.runs[run].others.as_ref().map(|others| (others.wall_ns, others.run_ns));
        assert_eq!(seen, Some((200, 70)));
        let rest = tallies.runs.iter().enumerate().filter(|(other, _)| *other != run);
        assert!(rest.into_iter().all(|(_, run)| run.steal_ns.is_none() && run.others.is_none()));
    }

    #[test]
    fn each_run_has_a_grid_at_the_phase_of_its_loop() {
        let mut plan = plan();
        plan.conditions[1].library = Some(LibraryLoop { phase_ns: 11 });
        let now = Instant::from_ns(5_000_000_123);
        let first_ns = grids(&plan, now).into_iter().map(|grid| {
            let release = grid.at_or_after(now);
            grid.release(release).as_ns() % 250_000
        });
        assert_eq!(first_ns.collect::<Vec<_>>(), [7, 11, 0, 11]);
    }

    #[test]
    fn a_block_is_over_with_the_last_answer_or_the_first_loop_that_is_gone() {
        let (plan, stop, pinned) = (plan(), AtomicBool::new(false), Mutex::new(Vec::new()));
        let (late, dated) = (LateWatch::new(None, &stop), DatedStop::of(&stop));
        let clock = MachineClock::best();
        let context = RunContext {
            plan: &plan,
            known: &[],
            grids: &[],
            vitals: &[],
            clock: &clock,
            follower: None,
            stop: &stop,
            dated: &dated,
            late: &late,
            pinned: &pinned,
        };
        let ended = |answers: Vec<Answer>| {
            let (give, answers_of_loops) = channel();
            answers.into_iter().for_each(|answer| give.send(answer).expect("received"));
            let threads = StreamThreads { orders: Vec::new(), answers: answers_of_loops };
            let mut tallies = Tallies::new(&plan, vec![0; 2]);
            let ended = threads.await_block(&context, &mut tallies, 0, || ());
            let answered = tallies.runs.iter().filter(|run| run.figures.wall_ns > 0).count();
            (ended, answered)
        };
        let finished = |stream| done(stream, 0, Ended::Finished, 1);
        assert_eq!(ended(vec![finished(0), finished(1)]), (Ended::Finished, 2));
        let stopped = done(0, 0, Ended::Stopped, 1);
        assert_eq!(ended(vec![stopped, finished(1)]), (Ended::Stopped, 2), "all have answered");
        assert_eq!(ended(vec![Answer::Gone, finished(1)]), (Ended::Stopped, 0));
    }
}
