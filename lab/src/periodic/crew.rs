//! The streams' threads as the coordinator sees them: orders out, answers in, block by block.
//!
//! For `prepared`. Looks at progress; decides nothing about loads or numbers.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, Scope};
use std::time::Duration;

use punctual::core::executive::Ended;
use punctual::core::recorder::{Recorder, View};
use punctual::core::time::{Instant, Span};
use punctual::os::clock::{ClockId, now_ns};
use punctual::os::scheduler::Policy;
use punctual::os::signal;
use punctual::session::Refusal;

use super::beside::Bell;
use super::plan::Plan;
use super::site::Site;
use super::stream::{Answer, Order, Tally, Worker};
use crate::experiment::{Background, End, Progress};

/// The streams' threads, as the coordinator talks to them.
pub(super) struct Crew {
    orders: Vec<Sender<Order>>,
    answers: Receiver<Answer>,
}

/// What the streams answered, added up.
pub(super) struct Tallies {
    pub(super) runs: Vec<Tally>,
    pub(super) policies: Vec<Policy>,
    pub(super) refused: Vec<Refusal>,
    tids: Vec<i32>,
    pub(super) end: End,
}

impl Crew {
    /// Starts a thread for each stream.
    pub(super) fn start<'scope, 'env: 'scope>(
        scope: &'scope Scope<'scope, 'env>,
        site: &Site<'env>,
        recorders: Vec<Recorder<'env>>,
    ) -> io::Result<Self> {
        let (to_coordinator, answers) = channel();
        let mut recorders = recorders.into_iter();
        let mut orders = Vec::new();
        for (number, stream) in site.plan.streams.iter().enumerate() {
            let (give, take) = channel();
            orders.push(give);
            let worker = Worker {
                number,
                stream,
                grid: site.grids[number],
                cold: site.plan.cold,
                waits: (0..site.plan.conditions.len())
                    .map(|condition| site.plan.wait(stream, condition))
                    .collect(),
                recorders: recorders.by_ref().take(site.plan.conditions.len()).collect(),
                watched: &site.watched[number],
                stop: site.stop,
                orders: take,
                answers: to_coordinator.clone(),
            };
            let clock = site.clock.clone();
            match site.follower {
                None => Builder::new().spawn_scoped(scope, move || worker.run(clock))?,
                Some(follower) => {
                    let clock = follower.clock(clock);
                    Builder::new().spawn_scoped(scope, move || worker.run(clock))?
                }
            };
        }
        Ok(Self { orders, answers })
    }

    /// Waits for all streams to be ready, then runs the blocks.
    pub(super) fn conduct(
        self,
        site: &Site<'_>,
        views: &[View<'_>],
        bell: &Bell,
        background: &mut dyn Background,
    ) -> Tallies {
        let streams = site.plan.streams.len();
        let mut tallies = Tallies {
            runs: vec![Tally::default(); site.plan.runs()],
            policies: vec![Policy::Other; streams],
            refused: Vec::new(),
            tids: vec![0; streams],
            end: End::Finished,
        };
        for _ in 0..streams {
            match self.answers.recv() {
                Ok(Answer::Gone) | Err(_) => return Tallies { end: End::Stopped, ..tallies },
                Ok(answer) => tallies.note(site.plan, answer),
            }
        }
        if let Ok(mut pinned) = site.pinned.lock() {
            let cpus = site.plan.streams.iter().map(|stream| stream.cpu);
            *pinned =
                tallies.tids.iter().zip(cpus).filter_map(|(&t, cpu)| Some((t, cpu?))).collect();
        }
        let mut edge = Instant::from_ns(now_ns(ClockId::Monotonic));
        let end = edge + site.plan.length();
        for block in &site.plan.blocks {
            edge = edge + block.length;
            if let Err(why) = background.begin(block.condition, block.length) {
                tallies.end = End::Load(why);
                break;
            }
            for orders in &self.orders {
                // A stream that is gone has panicked; the scope hands that on.
                let _gone = orders.send(Order { condition: block.condition, end: edge });
            }
            let ended = self.await_block(site, &mut tallies, || {
                background.progress(&survey(views, block.condition, end));
            });
            background.end(block.condition);
            bell.ring();
            if ended == Ended::Stopped {
                tallies.end = End::Stopped;
                break;
            }
        }
        // From here on the threads end, and lose their CPUs as they should.
        if let Ok(mut pinned) = site.pinned.lock() {
            pinned.clear();
        }
        bell.ring();
        tallies
    }

    fn await_block(
        &self,
        site: &Site<'_>,
        tallies: &mut Tallies,
        mut survey: impl FnMut(),
    ) -> Ended {
        let mut ended = Ended::Finished;
        let mut waiting = site.plan.streams.len();
        while waiting > 0 {
            match self.answers.recv_timeout(Duration::from_millis(100)) {
                Ok(Answer::Gone) => return Ended::Stopped,
                Ok(answer) => {
                    if let Answer::Done { ended: Ended::Stopped, .. } = answer {
                        ended = Ended::Stopped;
                    }
                    tallies.note(site.plan, answer);
                    waiting -= 1;
                }
                Err(RecvTimeoutError::Timeout) => survey(),
                Err(RecvTimeoutError::Disconnected) => return Ended::Stopped,
            }
            if site.stop.load(Ordering::Relaxed) {
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
    fn note(&mut self, plan: &Plan, answer: Answer) {
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

fn survey(views: &[View<'_>], condition: usize, end: Instant) -> Progress {
    let left = end - Instant::from_ns(now_ns(ClockId::Monotonic));
    Progress {
        left: left.max(Span::ZERO),
        condition,
        worst: views.iter().filter_map(View::max).max(),
        count: views.iter().map(View::count).sum(),
        missed: views.iter().map(View::missed).sum(),
    }
}
