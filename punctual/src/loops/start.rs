//! How a thread becomes a loop's.
//!
//! Setup only: everything that takes time, memory or the kernel's consent is here.

use punctual_core::clock::Clock;
use punctual_core::gate::Gate;
use punctual_core::releases::Releases;
use punctual_core::time::{Instant, Period, Span};
use punctual_core::wait::adaptive::Target;
use punctual_core::wait::{Adaptive, Strategy};

use super::Loop;
use super::builder::{LoopBuilder, Phase};
use super::control::Control;
use super::handle::LoopHandle;
use super::warm_up::ready;
use crate::checks::{check_demands, check_period};
use crate::clocks::{MachineClock, wake_cost};
use crate::counting::Counting;
use crate::error::{Error, Kind};
use crate::monitor::Watchdog;
use crate::neighbours::Neighbour;
use crate::quiet::{self, Quiet};
use crate::recording::{Facts, Recording};
use crate::rt_thread::RtThread;
use crate::safety::Caution;
use crate::session::{ProcessSession, Refusal, ThreadSession};
use crate::wait_policy::{WaitKind, WaitPolicy};

/// How long gaps are collected to find the kernel's tick: 75 ticks at 250 Hz, 30 at 100 Hz.
pub const LISTEN: Span = Span::from_ms(300);

impl LoopBuilder {
    /// Makes the calling thread a loop's: takes 50 ms for the clock, 300 ms to find a quiet phase,
    /// and what the wait takes to learn: about two seconds by default, three at most. What the
    /// kernel refused is in [`Loop::refused`].
    ///
    /// # Errors
    /// A setting that cannot be; a companion thread that cannot be started, a sample file that
    /// cannot be written; with [`RtThread::strict`] what the kernel refused.
    ///
    /// # Real-time: setup only
    pub fn start(self) -> Result<Loop, Error> {
        let phase = self.phase;
        let clock = |period: Period| {
            let mut clock = MachineClock::best();
            let quiet = match phase {
                Phase::Quiet => quiet::place(&quiet::listen(&mut clock, LISTEN), period),
                _ => None,
            };
            (clock, quiet)
        };
        self.start_with(clock, MachineClock::discipline)
    }

    /// The same on a clock of the caller's: one that is followed
    /// ([`Follower::clock`](crate::follow::Follower::clock)), or that of a simulation. Releases are
    /// on its time. [`Phase::Quiet`] is zero there: the kernel's tick keeps to CLOCK_MONOTONIC,
    /// and a grid that drifts against it passes through it wherever it begins.
    ///
    /// # Errors
    /// As [`LoopBuilder::start`].
    ///
    /// # Real-time: setup only
    pub fn start_on<C: Clock>(self, clock: C) -> Result<Loop<C>, Error> {
        self.start_with(|_| (clock, None), |_| {})
    }

    /// Makes the clock on the thread that is the loop's by then; `discipline` takes in what was
    /// learned of its rate.
    fn start_with<C: Clock>(
        self,
        clock: impl FnOnce(Period) -> (C, Option<Quiet>),
        discipline: impl Fn(&mut C),
    ) -> Result<Loop<C>, Error> {
        self.check()?;
        let Self { period, phase, thread, samples } = self;
        let cautions = check_demands(&[thread.demand(period)])?;
        let process = ProcessSession::ask(thread.lock_memory, thread.hold_idle_states);
        let control = Control::default();
        // Before the session, so that it may run on any CPU that the caller may.
        let watchdog = thread.bound(period).map(|bound| Watchdog::start(&control, bound));
        let watchdog = watchdog.transpose().map_err(Kind::Thread)?;
        let session = ThreadSession::enter(thread.cpu, thread.policy());
        let refused: Vec<Refusal> =
            process.refused().iter().chain(session.refused()).copied().collect();
        if thread.strict && !refused.is_empty() {
            return Err(Kind::Refused(refused).into());
        }
        let (neighbour, beside) = Neighbour::enter(thread.cpu);
        let (mut clock, quiet) = clock(period);
        check_period(period, &mut clock)?;
        let phase_ns = match (phase, quiet) {
            (Phase::At(ns), _) => ns,
            (_, quiet) => quiet.map_or(0, |quiet| quiet.phase_ns),
        };
        let (wait, mut warnings) = ready(&thread.wait, (period, phase_ns), &mut clock, discipline);
        warnings.extend(beside);
        warnings.extend(cautions.iter().map(Caution::to_string));
        let facts = || facts(&thread, period, phase_ns, session.policy());
        let recording = samples.map(|path| Recording::start(path, vec![facts()])).transpose()?;
        let (recording, mut rings) = recording.unzip();
        let observe = Counting::new(rings.as_mut().and_then(Vec::pop));
        let handle = LoopHandle { control, words: observe.stats() };
        let releases = Releases::new(Instant::from_ns(0), period);
        Ok(Loop {
            period,
            phase_ns,
            quiet,
            gate: Gate::new(clock, wait, observe, releases, 0),
            begun: false,
            finished: false,
            first: Instant::from_ns(0),
            handle,
            recording,
            _watchdog: watchdog,
            session,
            process,
            _neighbour: neighbour,
            refused,
            warnings,
        })
    }
}

fn facts(
    thread: &RtThread,
    period: Period,
    phase_ns: u64,
    policy: punctual_os::scheduler::SchedPolicy,
) -> Facts {
    let (name, wait) = ("loop".to_owned(), thread.wait.name());
    Facts { name, cpu: thread.cpu, period, phase_ns, offset_ns: 0, policy, wait }
}

/// The strategy of a wait policy for a loop of this period, on the calling thread; measures what a
/// wake costs where that is needed. And what cannot be kept of it, in words.
///
/// # Real-time: setup only
pub fn strategy<C: Clock>(
    wait: &WaitPolicy,
    period: Period,
    clock: &mut C,
) -> (Strategy, Vec<String>) {
    let WaitKind::Adaptive(budget) = wait.kind else {
        return (wait.kind.strategy(period, || wake_cost(clock)), Vec::new());
    };
    let cost = wake_cost(clock);
    let aim = Target { budget, late: wait.late_share, wake_cost: cost, ..Target::of(period) };
    // A sleep and its wake in each period are the least that waiting takes.
    let least = cost.as_ns() as f64 / period.as_ns_f64();
    let warnings = (least > budget).then(|| {
        format!(
            "waiting takes at least {:.0} % of the CPU, more than its budget of {:.0} %: one sleep \
             and wake take {cost} of each period of {period}",
            least * 100.0,
            budget * 100.0
        )
    });
    let adaptive = Adaptive::new(aim);
    let strategy = Strategy::Adaptive(match &wait.learned {
        Some(learned) => adaptive.resume(learned),
        None => adaptive,
    });
    (strategy, warnings.into_iter().collect())
}
