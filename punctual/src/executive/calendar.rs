//! A calendar as its owner describes it: units at fixed places of a frame, each with its body.
//!
//! For builders. Which place is free, and what fits, is checked when the executive is built.

use std::fmt;
use std::time::Duration;

use punctual_core::cycle::{Cycle, Flow};
use punctual_core::time::{Period, Span};
use punctual_engine::calendar::Unit;
use punctual_engine::rt_thread::span;

use super::lane::{Body, boxed};

/// Units at fixed places of a frame that comes round for ever: for whoever knows at which instant
/// each piece of work has to begin (Maruti, *Temporal accuracy on the Pentium Pro*, §6.1).
///
/// A task with several units may break its work off at the end of one ([`Flow::Break`]) and go on
/// in the next. A unit that runs longer than its budget is counted as the culprit, and has its
/// cancel token set where its task is to be terminated; the next unit starts late, which is counted
/// too.
pub struct Calendar<'env> {
    pub(super) frame: Period,
    pub(super) units: Vec<Unit>,
    /// Of which task, and its body.
    pub(super) bodies: Vec<(String, Body<'env>)>,
    pub(super) gap: Option<Span>,
}

impl fmt::Debug for Calendar<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calendar").field("frame", &self.frame).field("units", &self.units).finish()
    }
}

impl<'env> Calendar<'env> {
    /// A frame of this length, a whole number of nanoseconds, without units.
    ///
    /// # Real-time: setup only
    pub fn frame(frame: Period) -> Self {
        Self { frame, units: Vec::new(), bodies: Vec::new(), gap: None }
    }

    /// One more unit, and the body of its task.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn unit<R: Into<Flow>>(
        mut self,
        unit: Unit,
        body: impl FnMut(&mut Cycle<'_>) -> R + Send + 'env,
    ) -> Self {
        self.bodies.push((unit.task().to_owned(), boxed(body)));
        self.units.push(unit);
        self
    }

    /// One more unit of a task whose body another unit has ([`Unit::of`]).
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn part(mut self, unit: Unit) -> Self {
        self.units.push(unit);
        self
    }

    /// Sets how long before each unit no periodic task runs: what one turn of the loop and the
    /// start of a wait take [default: 2 µs].
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn gap(mut self, gap: Duration) -> Self {
        self.gap = Some(span(gap));
        self
    }
}
