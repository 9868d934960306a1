//! Durations of the standard library as this one counts time: in nanoseconds, saturating.
//!
//! For builders, which take [`Duration`]. Pure.

use std::time::Duration;

use punctual_core::time::Span;

/// A duration in nanoseconds, saturating after 584 years.
///
/// # Real-time: setup only
pub fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A duration as a span, saturating after 292 years.
///
/// # Real-time: setup only
pub fn span(duration: Duration) -> Span {
    Span::from_ns(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
}
