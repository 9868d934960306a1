//! Run a periodic loop on Linux and know, of every cycle, how late it was.
//!
//! What people depend on: the hot room (`core`) brought to the machine. [`clocks`] reads the best
//! clock that the kernel trusts, [`session`] makes the calling thread a real-time one and says what
//! was refused, [`drain`] takes samples away and writes them to a file that survives a kill,
//! [`watchdog`] ends a loop that does not yield, [`disturbance`] notices suspend, clock steps and
//! CPUs that went away. A loop of one period is a [`Loop`],
//! many tasks are [`periodic`]'s.
//!
//! ```
//! use std::sync::atomic::{AtomicBool, AtomicU64};
//! use punctual::core::{gate::Gate, page, releases::Releases, time::*, wait::Sleep};
//!
//! let words: Vec<AtomicU64> = (0..page::WORDS).map(|_| AtomicU64::new(0)).collect();
//! let page = page::Page::new(&words, page::PageKind::Lateness).expect("large enough");
//! let mut clock = punctual::clocks::MachineClock::best();
//! let start = punctual::core::clock::Clock::now(&mut clock);
//! let releases = Releases::aligned(start, Period::hz(1_000).expect("in range"), 0);
//! let end = start + Span::from_ms(20);
//! let mut gate = Gate::new(clock, Sleep, page, releases, 0).until(end);
//! let ended = gate.run(&AtomicBool::new(false));
//! let counts = page::View::open(&words).expect("a page").counts();
//! println!("{ended:?}: {} cycles, {} missed", counts.ran, counts.missed);
//! assert_eq!(counts.ran + counts.missed, releases.at_or_after(end));
//! ```
//!
//! # Real-time
//! Each public function says where it may be called: *setup only*, *in loop*, *in loop, waits* or
//! *reader side*.
#![forbid(unsafe_code)]

pub mod calendar;
pub mod canceller;
pub mod clocks;
pub mod disturbance;
pub mod drain;
mod error;
pub mod executives;
pub mod follow;
pub mod guard;
pub mod handover;
pub mod loops;
pub mod pages;
pub mod periodic;
pub mod posts;
pub mod process;
pub mod quantile;
pub mod quiet;
mod rt_thread;
pub mod session;
mod stage;
mod summary;
pub mod wait_policy;
pub mod watchdog;
pub mod workers;

pub use error::Error;
pub use loops::{Cycle, Loop, LoopBuilder, LoopHandle, LoopPhase};
pub use punctual_core as core;
pub use punctual_core::time::{Instant, Period, Span};
pub use punctual_os as os;
pub use rt_thread::RtThread;
pub use summary::{End, Samples, Stats, Summary};
pub use wait_policy::WaitPolicy;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
