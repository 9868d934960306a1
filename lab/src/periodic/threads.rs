//! The streams' threads as the coordinator sees them: orders out, answers in, block by block.
//!
//! For `prepared`. Looks at progress; decides nothing about loads or numbers.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::Scope;
use std::time::Duration;

use punctual::session::Refusal;
use punctual::spawn;
use punctual_core::executive::Ended;
use punctual_core::ring::Ring;
use punctual_core::time::{Instant, Span};
use punctual_host::root::Root;
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::scheduler::SchedPolicy;
use punctual_os::signal;

use super::context::RunContext;
use super::drain::DrainHandle;
use super::plan::PeriodicPlan;
use super::stream::{Answer, Order, Tally, Worker};
use crate::experiment::{BackgroundLoads, ExperimentEnd, ExperimentProgress, StealTicks};

/// The streams' threads, as the coordinator talks to them.
pub(super) struct StreamThreads {
    orders: Vec<Sender<Order>>,
    answers: Receiver<Answer>,
}

/// What the streams answered, added up.
pub(super) struct Tallies {
    pub(super) runs: Vec<Tally>,
    pub(super) policies: Vec<SchedPolicy>,
    pub(super) refused: Vec<Refusal>,
    tids: Vec<i32>,
    pub(super) end: ExperimentEnd,
}

impl StreamThreads {
    /// Starts a thread for each stream.
    pub(super) fn start<'scope, 'env: 'scope>(
        scope: &'scope Scope<'scope, 'env>,
        context: &RunContext<'env>,
        rings: Vec<Ring<'env>>,
    ) -> io::Result<Self> {
        let (to_coordinator, answers) = channel();
        let mut rings = rings.into_iter();
        let mut orders = Vec::new();
        for (number, stream) in context.plan.streams.iter().enumerate() {
            let (give, take) = channel();
            orders.push(give);
            let worker = Worker {
                number,
                stream,
                grid: context.grids[number],
                cold: context.plan.cold,
                waits: (0..context.plan.conditions.len())
                    .map(|condition| context.plan.wait(stream, condition))
                    .collect(),
                known: context.known,
                rings: rings.by_ref().take(context.plan.conditions.len()).collect(),
                watched: &context.watched[number],
                stop: context.stop,
                orders: take,
                answers: to_coordinator.clone(),
            };
            let clock = context.clock.clone();
            match context.follower {
                None => spawn::scoped(scope, "punctual-loop", move || worker.run(clock))?,
                Some(follower) => {
                    let clock = follower.over(clock);
                    spawn::scoped(scope, "punctual-loop", move || worker.run(clock))?
                }
            };
        }
        Ok(Self { orders, answers })
    }

    /// Waits for all streams to be ready, then runs the blocks.
    pub(super) fn run_blocks(
        self,
        context: &RunContext<'_>,
        drain: &DrainHandle,
        background: &mut dyn BackgroundLoads,
    ) -> Tallies {
        let streams = context.plan.streams.len();
        let mut tallies = Tallies {
            runs: vec![Tally::default(); context.plan.runs()],
            policies: vec![SchedPolicy::Other; streams],
            refused: Vec::new(),
            tids: vec![0; streams],
            end: ExperimentEnd::Finished,
        };
        for _ in 0..streams {
            match self.answers.recv() {
                Ok(Answer::Gone) | Err(_) => {
                    return Tallies { end: ExperimentEnd::Stopped, ..tallies };
                }
                Ok(answer) => tallies.note(context.plan, answer),
            }
        }
        if let Ok(mut pinned) = context.pinned.lock() {
            *pinned = tallies.pinned(context.plan);
        }
        let mut left = context.plan.length();
        let root = Root::live();
        for block in &context.plan.blocks {
            if let Err(why) = background.begin(block.condition, block.length) {
                tallies.end = ExperimentEnd::Load(why);
                break;
            }
            // What it takes to start a load is no time of the block.
            let begun = Instant::from_ns(now_ns(ClockId::Monotonic));
            let end = begun + left;
            left = Span::from_ns(left.as_ns() - block.length.as_ns());
            let before = StealTicks::read(&root);
            let order = Order { condition: block.condition, end: begun + block.length };
            for orders in &self.orders {
                // A stream that is gone has panicked; the scope hands that on.
                let _gone = orders.send(order);
            }
            let ended = self.await_block(context, &mut tallies, || {
                background.progress(&progress(block.condition, end));
            });
            tallies.steal(context.plan, block.condition, &StealTicks::read(&root), &before);
            background.end(block.condition);
            drain.flush();
            if ended == Ended::Stopped {
                tallies.end = ExperimentEnd::Stopped;
                break;
            }
        }
        // From here on the threads end, and lose their CPUs as they should.
        if let Ok(mut pinned) = context.pinned.lock() {
            pinned.clear();
        }
        drain.flush();
        tallies
    }

    fn await_block(
        &self,
        context: &RunContext<'_>,
        tallies: &mut Tallies,
        mut survey: impl FnMut(),
    ) -> Ended {
        let mut ended = Ended::Finished;
        let mut waiting = context.plan.streams.len();
        while waiting > 0 {
            match self.answers.recv_timeout(Duration::from_millis(100)) {
                Ok(Answer::Gone) => return Ended::Stopped,
                Ok(answer) => {
                    if let Answer::Done { ended: Ended::Stopped, .. } = answer {
                        ended = Ended::Stopped;
                    }
                    tallies.note(context.plan, answer);
                    waiting -= 1;
                }
                Err(RecvTimeoutError::Timeout) => survey(),
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
    /// The threads that are bound to a CPU, and to which.
    fn pinned(&self, plan: &PeriodicPlan) -> Vec<(i32, u32)> {
        let cpus = plan.streams.iter().map(|stream| stream.thread.pinned_to());
        self.tids.iter().zip(cpus).filter_map(|(&tid, cpu)| Some((tid, cpu?))).collect()
    }

    /// Adds what the host took from each stream's CPU during a block.
    fn steal(
        &mut self,
        plan: &PeriodicPlan,
        condition: usize,
        now: &StealTicks,
        before: &StealTicks,
    ) {
        for (number, stream) in plan.streams.iter().enumerate() {
            let steal_ns = stream.thread.pinned_to().and_then(|cpu| now.since_ns(before, cpu));
            let tally = &mut self.runs[plan.run(number, condition)];
            let so_far = [tally.steal_ns, steal_ns];
            tally.steal_ns = so_far.into_iter().flatten().reduce(u64::saturating_add);
        }
    }

    fn note(&mut self, plan: &PeriodicPlan, answer: Answer) {
        match answer {
            Answer::Ready { stream, tid, policy, refused } => {
                self.policies[stream] = policy;
                self.tids[stream] = tid;
                self.refused.extend(refused);
            }
            // Whoever waits for answers looks for this one first.
            Answer::Gone => {}
            Answer::Done { stream, condition, tally, .. } => {
                self.runs[plan.run(stream, condition)].add(&tally);
            }
        }
    }
}

/// How far it is; the figures of the loops come from elsewhere.
fn progress(condition: usize, end: Instant) -> ExperimentProgress {
    let left = end - Instant::from_ns(now_ns(ClockId::Monotonic));
    ExperimentProgress { left: left.max(Span::ZERO), condition, worst: None, count: 0 }
}
