//! Ways to keep periodic tasks, as others do it: what the executive's table is compared with.
//!
//! Each is written to be as quick as its design lets it be, in arrays without allocation, and is
//! tested against one slow model: the same releases in the same order. [`ArtLinux`]: the sorted
//! wait queue of differences. [`Ant`]: the six tables of *Sophisticated periodic execution
//! control*. [`Heap`]: a 4-ary heap of releases. [`Wheel`]: a hierarchical timing wheel.
//! [`Punctual`]: the executive's own table, behind the same contract. Reads no clock.

mod ant;
mod art_linux;
mod design;
mod heap;
mod levels;
mod punctual;
mod wheel;

pub use ant::Ant;
pub use art_linux::ArtLinux;
pub use design::{BaselineTask, Design, LEVELS, Visit};
pub use heap::Heap;
pub use punctual::{Punctual, plan};
pub use wheel::Wheel;

#[cfg(test)]
mod tests;
