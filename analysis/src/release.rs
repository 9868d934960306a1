//! How late a release was, whether it ran or was missed: the one definition.
//!
//! Release r is due at t(r); S(r) is the first wake at or after t(r); T is the period.
//!
//! | the release | its lateness |
//! |---|---|
//! | ran | wake − t(r) |
//! | missed | max(S(r) − t(r), T) |
//! | censored: missed, and the run ended before S(r) | T at least, and no more is known |
//!
//! After a stall in the wait S(r) of the missed releases is the late wake itself, so that the first
//! of them is almost as late as the release that ran. After a body that ran too long it is the wake
//! that came next. Everything here that counts lateness goes through [`Walk`] and [`ReleaseGap`]:
//! sums, quantiles, exceedances, series for comparisons. Reads no clock and no file.

mod ends;
mod gap;
mod lateness;
#[cfg(test)]
pub(crate) mod model;
mod walk;

pub(crate) use ends::Ends;
pub use ends::Trailing;
pub use gap::{Falling, ReleaseGap};
pub(crate) use lateness::{Lateness, Releases};
pub use walk::{StartPlacement, Walk, WalkStep};
