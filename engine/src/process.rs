//! Tasks as processes of their own: a supervisor releases them, sees them, ends them and starts
//! them again; a broken one leaves the others undisturbed.
//!
//! For programs that may be broken, in any language, and for the only true termination that Linux
//! has. Not a protection against code that is not trusted: a task is a process of the supervisor's
//! user, unless its [`Surroundings`] give it another, and can do what that user may do
//! (docs/running.md says what).
//! A process says three things (AnT, *Sophisticated periodic execution control*, §2): register
//! ([`Registration::from_env`] where a [`Supervisor`] started it, [`Registration::join`] where it
//! was started by hand), wait ([`Registration::wait`]), unregister. It shares one block
//! ([`punctual_core::block`]) with its supervisor, over memory that is handed to it, and nothing
//! else; it is released by futex. What it gives out ([`Registration::commit`]) others read whole
//! ([`Watch`]); when its process is gone, the safe value takes over.
//!
//! A process that a supervisor started ends with it, by the kernel where the supervisor is killed,
//! and takes along what it started; no thread keeps a real-time policy that nobody watches.
//!
//! Processes of the same user, or of root, may come. Such a process could harm its supervisor in
//! other ways; the checks here are against broken ones. A process that unregisters and lives on
//! keeps its memory, and could write into the block of its successor.

mod error;
mod lifecycle;
mod listener;
mod name;
mod registration;
mod request;
mod shared_memory;
mod spec;
mod supervisor;
mod watch;

pub use error::{SetupError, TaskError};
pub use lifecycle::{Cause, ProcessEnd, Restart};
pub use name::{NAME_MAX, is_name};
pub use registration::Registration;
pub use request::{DIR_VARIABLE, LINE_MAX, Request, answer, answered, directory, socket};
pub use shared_memory::SharedMemory;
pub use spec::{Spec, Surroundings};
pub use supervisor::{
    Event, EventKind, Figures, Finished, Over, PlacedTask, Ready, Stop, Supervisor, TaskOutcome,
    program,
};
pub use watch::Watch;

/// Names the descriptor of the task block, in the environment of a started process.
pub const BLOCK_VARIABLE: &str = "PUNCTUAL_BLOCK";
/// Names the task, in the environment of a started process.
pub const TASK_VARIABLE: &str = "PUNCTUAL_TASK";

/// Names the supervisor's process, in the environment of a started process.
pub const SUPERVISOR_VARIABLE: &str = "PUNCTUAL_SUPERVISOR";
