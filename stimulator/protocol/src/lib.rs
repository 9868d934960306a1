//! What a board does that sends stimuli to `punctual respond` over a serial line, or edges over a
//! wire, and stamps the answers: frames, commands, the timing of a session, its figures.
//!
//! Pure: time and bytes are arguments, and nothing is allocated. The frames are those of
//! `lab/src/outside/frame.rs`, which the tests hold against these byte by byte.
#![no_std]
#![forbid(unsafe_code)]

pub mod command;
pub mod figures;
pub mod frame;
pub mod session;
