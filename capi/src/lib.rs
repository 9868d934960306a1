//! punctual for C and C++: what is behind `include/punctual.h`.
//!
//! Each exported function is one entry: it goes through [`ffi::enter`], which no panic leaves,
//! looks at its arguments there, and calls what `punctual` has. 0 or a negative errno comes back.
//! Nothing is decided here that Rust callers would miss: a loop is `punctual::Loop`, an executive
//! is `punctual::Executive`, and neither has a loop, a plan or a count of its own here.
//! Memory that C hands in is read and written in [`mod@ffi`], [`mod@record`] and [`mod@options`]
//! alone; beside these, unsafe code is what one thread alone may touch, the call of a task, the
//! cycle that it runs, and the run that a signal handler may stop.
//!
//! The documentation of the functions, their real-time labels and their units are those of the
//! header, and the tests hold both to the same list.

#[cfg(panic = "abort")]
compile_error!("a panic must become an error at the interface: build with panic = \"unwind\"");

mod callback;
mod clock;
mod errors;
mod executive;
mod failure;
mod ffi;
mod follow;
mod learned_bytes;
mod options;
mod process;
mod record;
mod single_loop;
mod stats;
mod task;
mod thread_bound;
mod unit;
mod wait_info;
mod watch;
