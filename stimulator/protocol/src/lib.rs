//! The logic of a board that sends stimuli to `punctual respond` over a serial line, or edges over
//! a wire, and stamps the answers: frames, commands, the timing of a session, its figures.
//!
//! Pure: time and bytes are arguments, and nothing is allocated. The frames are the host's own
//! file; its decoder, which allocates, is held against the one here.
#![no_std]
#![forbid(unsafe_code)]

pub mod command;
pub mod figures;
#[path = "../../../lab/src/outside/frame.rs"]
pub mod frame;
pub mod line;
pub mod session;
