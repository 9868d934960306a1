//! Cycles that went on past their next release: their thread waited for its CPU, or worked, and
//! answered none of the releases that passed meanwhile. No wake shows those.

use serde::{Deserialize, Serialize};

use crate::account::account;
use crate::cause::LateCause;
use crate::part::WakePart;
use crate::rules::Kernel;
use crate::wake::Wake;

/// Releases of a thread that passed while it still waited for its CPU after an earlier one, or
/// worked: it never waited for them, and no wake shows these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PassedReleases {
    /// Number of such releases.
    pub count: u64,
    /// The longest time from the release before such ones to the next wait, ns.
    pub longest_ns: u64,
    /// The time by which the cycles that let them pass went on past their next release, ns.
    #[serde(default)]
    pub over_ns: u64,
}

impl PassedReleases {
    /// Adds so many, within a stretch of work that long, ns.
    pub(crate) fn add(&mut self, count: u64, stretch_ns: u64) {
        self.count += count;
        self.longest_ns = self.longest_ns.max(stretch_ns);
    }

    pub(crate) fn merge(&mut self, from: Self) {
        self.add(from.count, from.longest_ns);
        self.go_on(from.over_ns);
    }

    /// A cycle that let some of them pass went on for so long, ns.
    pub(crate) const fn go_on(&mut self, over_ns: u64) {
        self.over_ns = self.over_ns.saturating_add(over_ns);
    }

    /// At most so many, and so long, ns: whoever wrote them, sums hold them.
    pub(crate) fn at_most(self, count: u64, longest_ns: u64) -> Self {
        Self {
            count: self.count.min(count),
            longest_ns: self.longest_ns.min(longest_ns),
            over_ns: self.over_ns.min(longest_ns),
        }
    }
}

/// A cycle that went on past its next release, with what made it so long.
#[derive(Debug, Clone)]
pub(crate) struct PassedCycle {
    /// From the release that passed to the end of the cycle, as if its end had answered that.
    wake: Wake,
    /// Parts as long together as that.
    parts: Vec<WakePart>,
}

impl PassedCycle {
    /// Of a cycle from its release to its end, whose next release was at `next_ns`; `None` where it
    /// ended by then.
    ///
    /// What others took of it, or what it had to wait for, comes first: without that it would have
    /// ended so much earlier. Its own work comes next, and the normal way to it last.
    pub(crate) fn new(mut cycle: Wake, next_ns: u64, kernel: Kernel<'_>) -> Option<Self> {
        // What is not recorded of it is a part of its own.
        cycle.activation.is_whole = true;
        let parts: Vec<WakePart> =
            account(&cycle, kernel).into_iter().map(WakePart::before_its_wait).collect();
        let first_ns = parts.first()?.from_ns;
        let passed_ns = next_ns.max(first_ns);
        let over_ns = cycle.run.at_ns.checked_sub(passed_ns).filter(|&over_ns| over_ns > 0)?;
        let (usual, parts): (Vec<WakePart>, Vec<WakePart>) =
            parts.into_iter().partition(|part| part.cause == LateCause::NormalPath);
        let (work, others): (Vec<WakePart>, Vec<WakePart>) = parts.into_iter().partition(is_work);
        let mut left_ns = over_ns;
        let mut parts = Vec::new();
        for group in [others, work, usual] {
            let taken_ns = left_ns.min(time_ns(&group));
            left_ns -= taken_ns;
            parts.extend(scaled(group, taken_ns));
        }
        parts.sort_by_key(|part| part.from_ns);
        cycle.activation.release_ns = passed_ns;
        cycle.run.from_ns = cycle.run.from_ns.max(passed_ns);
        Some(Self { wake: cycle, parts })
    }

    /// The time by which it went on past its next release, ns.
    pub(crate) const fn over_ns(&self) -> u64 {
        self.wake.lateness_ns()
    }

    /// The release that passed and the end of its cycle, as a wake, and the parts of that.
    pub(crate) fn into_parts(self) -> (Wake, Vec<WakePart>) {
        (self.wake, self.parts)
    }
}

/// Returns true for what the thread does itself.
fn is_work(part: &WakePart) -> bool {
    matches!(part.cause, LateCause::OwnCode | LateCause::OwnSyscall { .. })
}

fn time_ns(parts: &[WakePart]) -> u64 {
    parts.iter().map(WakePart::length_ns).sum()
}

/// The same parts, each shorter by the same factor, which together are so long, ns: at most as long
/// as they are. Those of which nothing is left are left out.
fn scaled(parts: Vec<WakePart>, together_ns: u64) -> Vec<WakePart> {
    let whole_ns = time_ns(&parts).max(1);
    let (mut before_ns, mut scaled_ns) = (0_u64, 0_u64);
    let shorter = parts.into_iter().map(|part| {
        before_ns += part.length_ns();
        let product = u128::from(before_ns) * u128::from(together_ns);
        let to_ns = u64::try_from(product / u128::from(whole_ns)).unwrap_or(together_ns);
        let length_ns = to_ns - scaled_ns;
        scaled_ns = to_ns;
        WakePart { to_ns: part.from_ns + length_ns, ..part }
    });
    shorter.filter(|part| part.length_ns() > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::tests::part;
    use proptest::prelude::{ProptestConfig, prop_assert, prop_assert_eq, proptest};

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
        #[test]
        fn shorter_parts_are_as_long_as_wanted(
            lengths in proptest::collection::vec(1u64..1 << 50, 1..60),
            share in 0.0f64..=1.0,
        ) {
            let parts: Vec<WakePart> =
                lengths.iter().map(|&length_ns| part(length_ns, LateCause::Nmi)).collect();
            let together_ns = (time_ns(&parts) as f64 * share) as u64;
            let shorter = scaled(parts.clone(), together_ns);
            prop_assert_eq!(time_ns(&shorter), together_ns.min(time_ns(&parts)));
            prop_assert!(shorter.iter().all(|part| part.length_ns() <= 1 << 50));
        }
    }
}
