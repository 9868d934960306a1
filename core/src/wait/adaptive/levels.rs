//! The approaches that are tried, and what trying them takes.
//!
//! For the learner. Numbers only, independent of measurements.

use crate::time::{Period, Span};

/// The approaches that are tried, by what they usually cost: the length of a short sleep, ns, and
/// how many at the end. First one sleep; then a long one and one hop; then hops all the way.
pub(super) const HOPS: [(u64, u32); LEVELS] = [
    (0, 0),
    (200_000, 1),
    (100_000, 1),
    (400_000, u32::MAX),
    (200_000, u32::MAX),
    (100_000, u32::MAX),
];
/// How many there are.
pub(super) const LEVELS: usize = 6;
/// The first cycles of an approach, after which the machine is as the approach makes it.
pub(super) const SETTLE: u32 = 2;
/// Cycles up to the first trial of another approach.
pub(super) const PROBE_FIRST: u32 = 1 << 10;
/// How long a calibration should take, ns.
const CALIBRATION_NS: u64 = 2_000_000_000;
/// How often each approach sleeps in a period; 0 where its hops are half of it and more.
pub(super) fn sleeps(period_ns: u64) -> [u64; LEVELS] {
    HOPS.map(|(hop_ns, hops)| match period_ns.checked_div(hop_ns) {
        None => 1,
        Some(fit) if fit > 2 => fit.min(u64::from(hops)) + 1,
        Some(_) => 0,
    })
}

/// Samples of each approach in a calibration: two seconds for all of them, within reason; and how
/// many approaches there are.
pub(super) fn samples(period_ns: u64, sleeps: &[u64; LEVELS]) -> (u32, u64) {
    let levels = sleeps.iter().filter(|&&sleeps| sleeps > 0).count().max(1) as u64;
    ((CALIBRATION_NS / period_ns / levels).clamp(50, 400) as u32, levels)
}

/// How long a calibration takes at most.
pub(super) fn calibration(period: Period) -> Span {
    let (samples, levels) = samples(period.as_ns(), &sleeps(period.as_ns()));
    let cycles = u64::from(samples) * levels;
    Span::from_ns(i64::try_from(cycles.saturating_mul(period.as_ns())).unwrap_or(i64::MAX))
}
