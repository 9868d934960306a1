//! The code that runs in the real-time loops of punctual, and nothing else.
//!
//! Nothing here can allocate, lock, do input or output, or be unsafe: `no_std` without `alloc`,
//! `forbid(unsafe_code)`, no dependency (but for [`mod@atomic`], where the processor has no 64-bit
//! atomics). Time is an argument: only a [`clock::Clock`] reads it, only a [`wait::Wait`] sleeps.
//! All of it runs in a simulated clock.
//!
//! The path of a cycle: [`releases`] says when it is due; the [`gate`] of a loop of one period
//! waits for that by a [`wait`], or an [`executive`] runs what is due of many tasks; both speak of
//! it in the nouns of [`cycle`]; [`stats`] count it, and [`ring`] keeps it as a sample.
//! [`mod@file`] is how samples lie on disk afterwards.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod atomic;
pub mod block;
pub mod bucket;
pub mod calendar;
pub mod clock;
pub mod cycle;
pub mod dispatch;
pub mod earliest;
pub mod executive;
pub mod file;
pub mod follow;
pub mod gate;
pub mod ready;
pub mod releases;
pub mod ring;
pub mod sample;
pub mod stats;
pub mod stop;
pub mod table;
#[cfg(test)]
mod testing;
pub mod time;
pub mod wait;
