//! A calendar of one unit: the loop runs a turn on it to warm up.
//!
//! For the loop while it has time in hand. On the stack and dropped after the turn; the state of
//! the real units is never touched.

use super::{UnitSlot, UnitTable};
use crate::table::OnOverrun;
use crate::time::{Instant, Period};

/// Long enough that nothing is late in it.
const FRAME_NS: u64 = 1 << 40;
const FRAME: Period = match Period::from_ns(FRAME_NS) {
    Some(frame) => frame,
    None => panic!(),
};

const UNITS: &[UnitSlot] = &[UnitSlot {
    ready_ns: 0,
    budget_ns: FRAME_NS,
    deadline_ns: FRAME_NS,
    start_ns: FRAME_NS,
    task: 0,
}];
const TASKS: &[OnOverrun] = &[OnOverrun::Skip];

/// The calendar whose one unit is due at `epoch`.
#[inline]
pub(crate) const fn calendar(epoch: Instant) -> UnitTable<'static> {
    UnitTable { epoch, frame: FRAME, frame_ns: FRAME_NS, units: UNITS, tasks: TASKS }
}
