//! The thread on which all contenders that are crates run, in blocks, and its watchdog.
//!
//! One thread on one CPU under one policy, so that none has what another has not. Runs orders and
//! answers them; decides nothing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use punctual_analysis::histogram::Histogram;
use punctual_core::clock::Clock;
use punctual_core::cycle::{Job, Missed, Observe, Overruns};
use punctual_core::gate::Gate;
use punctual_core::releases::Releases;
use punctual_core::sample::{Beginning, Flags, Sample};
use punctual_core::time::{Instant, Span};
use punctual_core::wait::{Adaptive, Wait};
use punctual_engine::clocks::{MachineClock, wake_cost};
use punctual_engine::monitor::{Watched, WatchedProgress, watch};
use punctual_engine::session::{Refusal, ThreadSession};
use punctual_engine::wait_policy::strategy_of;
use punctual_os::affinity::{self, CpuMask};
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::process;
use punctual_os::scheduler::{self, SchedPolicy};

use crate::block::Block;
use crate::contender::Contender;
use crate::crates::{Any, Interval, Plain, SpinSleep, Std};

/// The priority that all have, as `punctual measure` does.
pub(crate) const PRIORITY: u8 = 90;
/// From an order to the first release.
const LEAD: Span = Span::from_ms(1);
/// Cycles at the start of each block that are not counted.
const COLD: u32 = 10;
/// A loop that gets nowhere for so long is ended.
const BOUND: Span = Span::from_ms(2_000);

/// Where and on which grid all run.
#[derive(Clone, Debug)]
pub(crate) struct RunContext {
    /// The CPU of the loops.
    pub(crate) cpu: u32,
    /// Another one for the watchdog, where there is one.
    pub(crate) helper: Option<u32>,
    /// The releases.
    pub(crate) grid: Releases,
    /// What stamps.
    pub(crate) clock: MachineClock,
}

impl RunContext {
    /// The policy to ask for.
    pub(crate) const POLICY: SchedPolicy = SchedPolicy::Fifo(PRIORITY);
}

/// An order: which contender, and for how long.
struct Order(usize, Span);

/// The runner as its owner sees it.
pub(crate) struct Runner {
    orders: Sender<Order>,
    blocks: Receiver<Block>,
    /// What the kernel refused, and the policy that was granted.
    pub(crate) refused: Vec<Refusal>,
    /// The policy that the thread has.
    pub(crate) policy: SchedPolicy,
}

impl Runner {
    /// Lets contender `which` (its place among those that the runner was set for) run for `length`.
    ///
    /// # Errors
    /// The thread is gone, or the watchdog ended its loop.
    pub(crate) fn block(&self, which: usize, length: Span) -> Result<Block, String> {
        let gone = || "the thread of the loops ended".to_owned();
        self.orders.send(Order(which, length)).map_err(|_| gone())?;
        self.blocks.recv().map_err(|_| gone())
    }
}

/// Sets the runner for `contenders`, of which none is a program, and lets `play` use it.
///
/// # Errors
/// What `play` says, or that the watchdog ended a loop.
pub(crate) fn with<T>(
    context: &RunContext,
    contenders: &[Contender],
    play: impl FnOnce(&Runner) -> Result<T, String>,
) -> Result<T, String> {
    let (watched, stop, done) =
        (Watched::default(), AtomicBool::new(false), AtomicBool::new(false));
    let result = thread::scope(|scope| {
        let _over = Over { done: &done, stop: &stop };
        let (orders, orders_there) = channel();
        let (blocks_there, blocks) = channel();
        let (ready_there, ready) = channel();
        scope.spawn(|| guard(context, &watched, &stop, &done));
        let performer =
            Performer { context: context.clone(), contenders, watched: &watched, stop: &stop };
        scope.spawn(move || performer.run(&ready_there, &orders_there, &blocks_there));
        let (policy, refused) =
            ready.recv().map_err(|_| "the loops could not be set up".to_owned())??;
        play(&Runner { orders, blocks, refused, policy })
    });
    match watched.ended() {
        Some(force) => Err(format!("the watchdog ended a loop ({force:?})")),
        None => result,
    }
}

/// Ends the watchdog, and any loop, when the runner is left by whichever way.
struct Over<'a> {
    done: &'a AtomicBool,
    stop: &'a AtomicBool,
}

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.done.store(true, Ordering::Release);
    }
}

/// The watchdog, above the loops where permitted and beside them where there is another CPU.
fn guard(context: &RunContext, watched: &Watched, stop: &AtomicBool, done: &AtomicBool) {
    if let Some(helper) = context.helper {
        let _anywhere = affinity::set(0, &CpuMask::one(helper));
    }
    let _as_it_is = scheduler::set(0, SchedPolicy::Fifo(99));
    let charge = WatchedProgress { watched, progress: || watched.beats(), bound: BOUND };
    watch(&[charge], stop, done);
}

/// The thread of the loops.
struct Performer<'a> {
    context: RunContext,
    contenders: &'a [Contender],
    watched: &'a Watched,
    stop: &'a AtomicBool,
}

/// What the thread says once it is set up: its policy and what it was refused, or why it is not.
type Ready = Result<(SchedPolicy, Vec<Refusal>), String>;

impl Performer<'_> {
    fn run(mut self, ready: &Sender<Ready>, orders: &Receiver<Order>, blocks: &Sender<Block>) {
        let session = ThreadSession::enter(Some(self.context.cpu), RunContext::POLICY);
        let mut waits = match self.waits() {
            Ok(waits) => waits,
            Err(why) => return drop(ready.send(Err(why))),
        };
        // Whoever does not listen any more ends the orders too.
        let _gone = ready.send(Ok((session.policy(), session.refused().to_vec())));
        while let Ok(Order(which, length)) = orders.recv() {
            let Some(wait) = waits.get_mut(which) else { break };
            let block = self.perform(wait, length);
            if blocks.send(block).is_err() {
                break;
            }
        }
    }

    /// How each waits; one that learns has learned.
    fn waits(&mut self) -> Result<Vec<Any>, String> {
        let std = Std::new();
        let period = self.context.grid.period();
        let mut waits = Vec::new();
        for &contender in self.contenders {
            let mut wait = match contender {
                Contender::Ours(way) => {
                    let strategy = strategy_of(way, period, || wake_cost(&mut self.context.clock));
                    Any::Ours(Box::new(strategy))
                }
                Contender::SpinSleep => Any::SpinSleep(SpinSleep(std)),
                Contender::Tokio => {
                    let interval = Interval::new(std, period);
                    Any::Tokio(Box::new(interval.map_err(|why| format!("tokio: {why}"))?))
                }
                Contender::Nanosleep => Any::Nanosleep(Plain),
                Contender::Cyclictest | Contender::LinuxCnc => {
                    return Err(format!("{} does not run in a thread of ours", contender.name()));
                }
            };
            if wait.status().learned.is_some() {
                let _rehearsed = self.perform(&mut wait, Adaptive::calibration(period));
            }
            waits.push(wait);
        }
        Ok(waits)
    }

    fn perform(&mut self, wait: &mut Any, length: Span) -> Block {
        let RunContext { grid, clock, .. } = &mut self.context;
        clock.discipline();
        let now = clock.now();
        let first = grid.at_or_after(now + LEAD);
        let most = length.as_ns().unsigned_abs() / grid.period().as_ns() + 16;
        let kept = Kept::new(usize::try_from(most).unwrap_or(usize::MAX), self.watched);
        let mut gate = Gate::new(clock.clone(), wait, kept, *grid, first).until(now + length);
        let before_ns = now_ns(ClockId::ThreadCpu);
        self.watched.arm(process::tid());
        let _ended = gate.run(self.stop);
        self.watched.disarm();
        let cpu_ns = now_ns(ClockId::ThreadCpu).saturating_sub(before_ns);
        let wall_ns = (clock.now() - now).as_ns().unsigned_abs();
        gate.observe.block(cpu_ns, wall_ns)
    }
}

/// Samples of one block, in memory that is there before it.
struct Kept<'a> {
    samples: Vec<Sample>,
    missed: u64,
    beginning: Beginning,
    watched: &'a Watched,
}

impl<'a> Kept<'a> {
    fn new(most: usize, watched: &'a Watched) -> Self {
        let nothing = Sample { cycle: 0, lateness: Span::ZERO, flags: Flags::NONE };
        // Written once, so that no page is new in the loop.
        let mut samples = vec![nothing; most];
        samples.clear();
        Self { samples, missed: 0, beginning: Beginning::new(COLD), watched }
    }

    fn block(&self, cpu_ns: u64, wall_ns: u64) -> Block {
        let mut lateness_ns = Histogram::new();
        let warm = self.samples.iter().filter(|sample| !sample.flags.has(Flags::COLD));
        warm.for_each(|sample| lateness_ns.push(sample.lateness.as_ns()));
        let cpu_load = (wall_ns > 0).then(|| cpu_ns as f64 / wall_ns as f64);
        Block { lateness_ns, missed: Some(self.missed), cpu_load }
    }
}

impl Observe for Kept<'_> {
    fn ran(&mut self, job: &Job, start: Instant, _: Instant, _: Overruns) {
        self.missed += job.missed;
        // A block has no more releases than there is room for.
        if self.samples.len() < self.samples.capacity() {
            self.samples.push(self.beginning.sample(job, start));
        }
        self.watched.beat();
    }

    fn never_ran(&mut self, _: usize, missed: Missed, _: Instant) {
        self.missed += missed.count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::time::Period;
    use punctual_engine::wait_policy::WaitKind;

    #[test]
    fn each_contender_has_its_turn_and_every_release_is_a_cycle_or_missed() {
        let period = Period::from_ns(1_000_000).expect("positive");
        let cpu = affinity::get(0).expect("own").iter().next().expect("one");
        let now = Instant::from_ns(now_ns(ClockId::Monotonic));
        let context = RunContext {
            cpu,
            helper: None,
            grid: Releases::aligned(now, period, 0),
            clock: MachineClock::best(),
        };
        let contenders = [Contender::Ours(WaitKind::Sleep), Contender::SpinSleep, Contender::Tokio];
        let blocks = with(&context, &contenders, |runner| {
            (0..3)
                .map(|which| runner.block(which, Span::from_ms(100)))
                .collect::<Result<Vec<_>, _>>()
        });
        for block in blocks.expect("all ran") {
            let releases = block.lateness_ns.count() + block.missed.expect("counted");
            // 100 ms, but for the lead and what is cold.
            assert!((80..=100).contains(&releases), "{releases}");
            assert!(block.cpu_load.is_some_and(|load| load > 0.0 && load <= 1.0));
        }
        let program = with(&context, &[Contender::Cyclictest], |_| Ok(()));
        assert!(program.is_err_and(|why| why.contains("cyclictest")));
    }
}
