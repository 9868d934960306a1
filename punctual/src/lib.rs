//! Run a periodic loop on Linux and know, of every cycle, how late it was.
//!
//! What people depend on: the hot room (`core`) brought to the machine. [`clocks`] reads the best
//! clock that the kernel trusts, [`session`] makes the calling thread a real-time one and says what
//! was refused, [`drain`] takes samples away and writes them to a file that survives a kill,
//! [`watchdog`] ends a loop that does not yield, [`disturbance`] notices suspend, clock steps and
//! CPUs that went away. A loop of one period is [`lone`]'s, one of many tasks [`periodic`]'s.
//!
//! ```
//! use std::sync::atomic::{AtomicBool, AtomicU64};
//! use punctual::core::{executive::{Executive, Segment}, grid::Grid, recorder, time::*,
//! wait::Sleep};
//!
//! let storage: Vec<AtomicU64> = (0..recorder::words(4096)).map(|_| AtomicU64::new(0)).collect();
//! let (record, _drain, view) = recorder::split(&storage).expect("large enough");
//! let mut clock = punctual::clocks::MachineClock::best();
//! let start = punctual::core::clock::Clock::now(&mut clock);
//! let grid = Grid::aligned(start, Period::from_ns(1_000_000).expect("positive"), 0);
//! let segment = Segment { grid, first: 0, end: start + Span::from_ms(20), cold: 0 };
//! let mut executive = Executive { clock, wait: Sleep, record };
//! let ended = executive.run(&segment, &AtomicBool::new(false));
//! println!("{ended:?}: {} cycles, {} missed", view.count(), view.missed());
//! assert_eq!(view.count() + view.missed(), grid.cycle_at(segment.end));
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
pub mod executives;
pub mod follow;
pub mod guard;
pub mod handover;
pub mod lone;
pub mod pages;
pub mod periodic;
pub mod posts;
pub mod process;
pub mod quantile;
pub mod quiet;
pub mod session;
mod stage;
pub mod watchdog;
pub mod way;
pub mod workers;

pub use punctual_core as core;
pub use punctual_os as os;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
