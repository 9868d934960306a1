//! The hot room of punctual: what a periodic loop runs, and nothing else.
//!
//! Nothing here can allocate, lock, do input or output, or be unsafe: `no_std` without `alloc`,
//! `forbid(unsafe_code)`, no dependency. Time is an argument: only a [`clock::Clock`] reads it,
//! only a [`wait::Wait`] sleeps. All of it runs in a simulated clock.
//!
//! The path of a cycle: [`releases`] says when it is due, [`wait`] waits for that, [`executive`] runs
//! it, [`recorder`] keeps what happened. [`mod@file`] is how it lies on disk afterwards.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod bucket;
pub mod calendar;
pub mod clock;
pub mod dispatch;
pub mod earliest;
pub mod executive;
pub mod file;
pub mod follow;

pub mod page;
pub mod parts;
pub mod ready;
pub mod recorder;
pub mod releases;
pub mod sample;
pub mod seat;
pub mod table;
pub mod time;
pub mod wait;
