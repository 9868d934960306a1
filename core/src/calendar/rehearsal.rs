//! A calendar of one unit, to rehearse a turn of the loop on.
//!
//! For the loop while it has time in hand. On the stack, done with when the turn is over; what the
//! real units are about is never touched.

use super::{Calendar, Progress, State, Unit};
use crate::table::OnOverrun;
use crate::time::{Instant, Period};

/// Long enough that nothing is late in it.
const FRAME_NS: u64 = 1 << 40;
const FRAME: Period = match Period::from_ns(FRAME_NS) {
    Some(frame) => frame,
    None => panic!(),
};

const UNITS: &[Unit] = &[Unit {
    ready_ns: 0,
    budget_ns: FRAME_NS,
    deadline_ns: FRAME_NS,
    start_ns: FRAME_NS,
    task: 0,
}];
const TASKS: &[OnOverrun] = &[OnOverrun::Skip];

/// Lends a calendar whose unit is due at `now`, and its state.
///
/// # Real-time: in loop
#[inline]
pub fn rehearse(now: Instant, turn: impl FnOnce(&Calendar<'_>, &mut State<'_>)) {
    let calendar =
        Calendar { epoch: now, frame: FRAME, frame_ns: FRAME_NS, units: UNITS, tasks: TASKS };
    if let Some(mut state) = State::begin(&calendar, &mut [Progress::default()], now) {
        turn(&calendar, &mut state);
    }
}
