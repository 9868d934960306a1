//! punctual for C and C++: the border behind `include/punctual.h`.
//!
//! Each exported function is one entry: it goes through [`border::enter`], which no panic leaves,
//! looks at its arguments there, and calls what `punctual` has. 0 or a negative errno comes back.
//! Nothing is decided here that Rust callers would miss: what a loop is stands in `punctual`.
//! Memory that C hands in is read and written in [`mod@border`] and [`mod@record`] alone; beside
//! these, unsafe code is what a loop borrows of itself, what one thread alone may touch, the call
//! of a task, the cycle that it runs, and the page that a loop holds a share in.
//!
//! The documentation of the functions, their real-time labels and their units are those of the
//! header, and the tests hold both to the same list.

#[cfg(panic = "abort")]
compile_error!("a panic must become an error at the border: build with panic = \"unwind\"");

mod border;
mod calendar;
mod calls;
mod cancels;
mod clock;
mod errors;
mod looped;
mod options;
mod owned;
mod periodic;
mod process;
mod record;
mod room;
mod run;
mod stats;
mod task;
mod turn;
mod wait_info;
mod watch;
mod workers;
