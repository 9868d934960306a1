//! The ends of the rings of an experiment, one ring for each thread or run.

use std::ops::Deref;
use std::sync::atomic::AtomicU64;

use punctual_core::ring::{Drain, Ring, RingView, split};

/// The ends of rings, each list in the order of the rings.
pub(crate) struct RingEnds<'a> {
    pub(crate) rings: Vec<Ring<'a>>,
    pub(crate) drains: Vec<Drain<'a>>,
    pub(crate) views: Vec<RingView<'a>>,
}

impl<'a> RingEnds<'a> {
    /// The ends of a ring in each memory of `storage`, which are emptied.
    ///
    /// # Panics
    /// A memory is too small for a ring: it is made by [`punctual_core::ring::words`].
    pub(crate) fn of(storage: &'a [impl Deref<Target = [AtomicU64]>]) -> Self {
        let (mut rings, mut drains, mut views) = (Vec::new(), Vec::new(), Vec::new());
        for words in storage {
            let (ring, drain, view) = split(words).expect("memory for a ring");
            rings.push(ring);
            drains.push(drain);
            views.push(view);
        }
        Self { rings, drains, views }
    }
}
