//! Run periodic work on Linux with the least lateness that the machine allows, and know how late
//! every cycle was.
//!
//! | I have | then | example |
//! |---|---|---|
//! | one loop, in a thread of mine | [`Loop`]: `wait()` and work, or `run_for()` | `loop.rs` |
//! | tasks of several rates | [`Executive`] and its [`Task`]s | `tasks.rs` |
//! | tasks on several CPUs | [`ExecutiveBuilder::cpus`], [`Placement::cpu`] | `threads.rs` |
//! | a task that takes long | [`Placement::thread`]: a thread of its own | `threads.rs` |
//! | a device that says when | [`ExecutiveBuilder::triggered`] by a [`Trigger`] | `threads.rs` |
//! | work for what time is left | [`ExecutiveBuilder::idle`] | `threads.rs` |
//! | work at fixed places of a frame | [`Calendar`] and its [`Unit`]s | `calendar.rs` |
//! | one instant to wait for | [`wait_until`], and [`now`] | |
//! | tasks that come and go | [`Handle::add`], [`Handle::remove`] | `changing.rs` |
//! | releases on TAI, PTP or a bus | [`follow`], [`ExecutiveBuilder::clock`] | `follow.rs` |
//! | a controller to test, or what jitter costs it | [`sim`]: simulated time | `replay.rs` |
//! | data for other threads, and from them | docs/sharing.md: what costs how much | `exchange.rs` |
//! | a log from within a loop | a queue and an ordinary thread | `logger.rs` |
//! | tasks in other programs | [`Process`], and [`Registration`] on their side | `processes.rs` |
//!
//! One loop:
//!
//! ```
//! use punctual::{Loop, Period, RtThread};
//!
//! const EACH_MS: Period = match Period::hz(1_000) {
//!     Some(period) => period,
//!     None => panic!("1000 Hz is a period"),
//! };
//! let mut each_ms = Loop::builder(EACH_MS).thread(RtThread::any()).start()?;
//! while let Some(cycle) = each_ms.wait() {
//!     // The work of a cycle, for cycle.dt since the last one.
//!     if cycle.n >= 100 {
//!         break;
//!     }
//! }
//! println!("{}", each_ms.finish().ok()?);
//! # Ok::<(), punctual::Error>(())
//! ```
//!
//! Many tasks:
//!
//! ```
//! use std::time::Duration;
//! use punctual::{Executive, OnOverrun, Period, Task};
//!
//! let hz = |hertz| Period::hz(hertz).expect("in range");
//! let servo = Task::every("servo", hz(1_000)).budget(Duration::from_micros(200));
//! let log = Task::every("log", hz(10)).on_overrun(OnOverrun::Burst(3));
//! let (executive, _ids) = Executive::builder()
//!     .task(servo, |cycle| {
//!         // cycle.dt since its last cycle, cycle.missed releases in between.
//!         let _dt = cycle.dt;
//!     })
//!     .task(log, |_| println!("still here"))
//!     .build()?;
//! println!("{}", executive.run_for(Duration::from_millis(200))?.ok()?);
//! # Ok::<(), punctual::Error>(())
//! ```
//!
//! Both run with the same defaults, which [`RtThread`] changes: `SCHED_FIFO` 90, memory locked,
//! CPUs kept out of deep idle states, releases away from the kernel's tick ([`Phase::Quiet`]), a
//! wait that learns this machine ([`WaitPolicy`]), a watchdog, and statistics of every release. A
//! setting that the kernel refuses is left out and listed in the [`Summary`], or is an error
//! ([`RtThread::strict`]). Settings that could take the machine away are refused: a period that the
//! clock's stamps would fill, and threads that leave others no CPU while real-time throttling is
//! off. `record` writes every cycle to a file, which `punctual analyse` reads.
//!
//! A cycle that still runs at its next release makes that one missed, and the phase stays;
//! [`OnOverrun`] says what else can be. After a stall the oldest release runs, with all its
//! lateness.
//!
//! # Real-time
//! Each public function says where it may be called: *setup only* (before or after a loop: it
//! allocates, takes time, makes system calls), *in loop* (allocates nothing, makes no system call),
//! *in loop, waits* (the same, and sleeps), *reader side* (from any thread at any time: it disturbs
//! no loop, and may allocate).
#![forbid(unsafe_code)]

mod executive;
pub mod learned;
mod loops;
pub mod sim;
mod summary;

pub use executive::{
    Calendar, Executive, ExecutiveBuilder, Handle, Placed, Process, Running, StopHandle, TaskId,
    Trigger,
};
pub use loops::{Loop, LoopBuilder, LoopHandle, Phase};
pub use punctual_core::block::{Places, Source, Terms};
pub use punctual_core::clock::Clock;
pub use punctual_core::cycle::{Cycle, Flow, IntoFlow};
pub use punctual_core::releases::Releases;
pub use punctual_core::stats::{Counts, PageError, PageKind, View};
pub use punctual_core::table::OnOverrun;
pub use punctual_core::time::{Instant, NegativeSpan, NoPeriod, Period, Span};
pub use punctual_core::wait::adaptive::LearnPhase;
pub use punctual_core::wait::{Learned, PausedSpin, Stalls, WaitStatus, WakePlan};
pub use punctual_engine::calendar::Unit;
pub use punctual_engine::clocks::{MachineClock, monotonic_now as now};
pub use punctual_engine::error::{Error, ErrorKind};
pub use punctual_engine::follow;
pub use punctual_engine::monitor::Force;
pub use punctual_engine::outcome::{End, Samples, Stats};
pub use punctual_engine::periodic::Response;
pub use punctual_engine::process::{
    Figures, ProcessEnd, Registration, Restart, Surroundings, TaskOutcome, Watch,
};
pub use punctual_engine::quiet::Quiet;
pub use punctual_engine::rt_thread::{RtThread, spawn_elsewhere};
pub use punctual_engine::session::{Attempt, Refusal};
pub use punctual_engine::task::{Offset, Place, Placement, Task};
pub use punctual_engine::wait_policy::{WaitKind, WaitPolicy};
pub use punctual_os::Errno;
pub use punctual_os::pi_mutex::{PiGuard, PiMutex};
pub use punctual_os::scheduler::SchedPolicy;
pub use summary::{Failed, Summary};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Waits for one instant on CLOCK_MONOTONIC ([`now`]), as Maruti's `mdelay`: sleeps until `margin`
/// before it, then spins. Without a margin it only sleeps, and is as late as the kernel wakes it;
/// with one that reaches back to now or beyond it only spins. Returns at once when the instant has
/// passed, and never before it, also where signals are handled. It learns nothing and nobody stops
/// it: for a period a [`Loop`] is better.
///
/// # Real-time: in loop, waits
///
/// ```
/// use punctual::{Span, now, wait_until};
///
/// let at = now() + Span::from_us(500);
/// wait_until(at, Span::from_us(50));
/// assert!(now() >= at);
/// ```
pub fn wait_until(at: Instant, margin: Span) {
    // EINTR is all that ends it early.
    while punctual_engine::clocks::wait_until(at, margin).is_err() {}
}
