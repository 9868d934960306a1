//! The parts of which the loops and executives of `punctual` are made.
//!
//! For `punctual` itself, which re-exports what is stable of it, for the command, the C library and
//! the experiments of this project, and for tools that go below `punctual`. All of it is public and
//! documented; **nothing of it is promised**: any release may change or remove any item. Write
//! programs against `punctual`.
//!
//! | part | modules |
//! |---|---|
//! | how a thread runs | [`rt_thread`], [`session`], [`safety`] |
//! | time | [`clocks`], [`follow`], [`wait_policy`], [`quiet`], [`disturbance`] |
//! | what runs | [`segmented`], [`task`], [`periodic`], [`calendar`], [`pack`],
//! | | [`budgets`], [`handover`], [`release_span`] |
//! | what watches | [`monitor`] |
//! | what is kept | [`counting`], [`recording`], [`file_facts`],
//! | | [`drain`], [`outcome`] |
//! | tasks elsewhere | [`remote`], [`process`] |
//! | files, threads, durations, signals | [`named`], [`spawn`], [`duration`], [`signals`] |
//! | what was wrong | [`error`] |
//!
//! # Real-time
//! Each public function says where it may be called: *setup only*, *in loop*, *in loop, waits* or
//! *reader side*.
#![forbid(unsafe_code)]

pub mod budgets;
pub mod calendar;
pub mod clocks;
pub mod comb;
pub mod counting;
pub mod disturbance;
pub mod drain;
pub mod duration;
pub mod error;
pub mod file_facts;
pub mod follow;
pub mod handover;
pub mod monitor;
pub mod named;
mod offline;
pub mod outcome;
pub mod pack;
pub mod periodic;
pub mod process;
pub mod quiet;
pub mod recording;
pub mod release_span;
pub mod remote;
pub mod rt_thread;
pub mod safety;
pub mod segmented;
pub mod session;
pub mod signals;
pub mod spawn;
pub mod task;
pub mod wait_policy;
