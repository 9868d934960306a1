//! Losses of a recording: wakes of which the kernel's events are not there, and how much that is.
//!
//! Such a wake is neither late nor on time: when it was released, and when it ran, was not seen. It
//! is left out of lateness, causes and shares, and counted here.

use serde::{Deserialize, Serialize};

use crate::share::{per_cent, share};

/// From this share of a thread's time on too much is lost to tell causes: what is lost comes where
/// most happens, so that the rest is no fair sample.
const TOO_MUCH: f64 = 0.1;
/// Longer times than these are taken for these, ns: 13 days.
const LONGEST_NS: u64 = 1 << 50;

/// The wakes of a thread, or of several, across which events were lost.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnseenWakes {
    /// Wakes that are left out. Those that lie in a loss as a whole are not known, and not among
    /// them.
    pub wakes: u64,
    /// The time without events on their CPUs, ns: of several threads that of the one with most.
    pub time_ns: u64,
    /// The time that was recorded, ns.
    pub of_ns: u64,
    /// Events that were lost on all CPUs.
    pub events: u64,
    /// Events that came in.
    pub seen_events: u64,
}

impl UnseenWakes {
    /// Adds those of another thread of the same recording.
    pub(crate) fn merge(&mut self, with: Self) {
        self.wakes = self.wakes.saturating_add(with.wakes);
        self.time_ns = self.time_ns.max(with.time_ns);
        self.of_ns = self.of_ns.max(with.of_ns);
        self.events = self.events.max(with.events);
        self.seen_events = self.seen_events.max(with.seen_events);
    }

    /// The same within bounds that sums hold, whoever wrote it.
    pub(crate) fn bounded(self) -> Self {
        let bound = |value: u64| value.min(LONGEST_NS);
        Self {
            wakes: bound(self.wakes),
            time_ns: bound(self.time_ns),
            of_ns: bound(self.of_ns),
            events: bound(self.events),
            seen_events: bound(self.seen_events),
        }
    }

    /// The share of the time that was lost, 0..1.
    #[must_use]
    pub fn share_of_time(&self) -> f64 {
        share(self.time_ns, self.of_ns)
    }

    /// The share of the events that was lost, 0..1.
    #[must_use]
    pub fn share_of_events(&self) -> f64 {
        share(self.events, self.events.saturating_add(self.seen_events))
    }

    /// Returns true where so much was lost that the rest shows no causes: a tenth of the time.
    #[must_use]
    pub fn is_too_much(&self) -> bool {
        self.share_of_time() >= TOO_MUCH
    }

    /// The loss in words; `None` where the time of these threads was seen.
    pub(crate) fn words(&self) -> Option<String> {
        if self.wakes == 0 && self.time_ns == 0 {
            return None;
        }
        let across = match self.wakes {
            // It was lost up to the end.
            0 => String::new(),
            1 => "; 1 wake across that does not count".to_owned(),
            wakes => format!("; {wakes} wakes across that do not count"),
        };
        Some(format!(
            "{} of the time and {} of the events were lost, for the recording could not keep \
             up{across}",
            per_cent(self.share_of_time()),
            per_cent(self.share_of_events()),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_of_the_time_is_too_much() {
        let lost = |time_ns| UnseenWakes { wakes: 3, time_ns, of_ns: 1_000, ..Default::default() };
        assert!(!lost(99).is_too_much() && lost(100).is_too_much());
        assert!(!UnseenWakes::default().is_too_much(), "nothing was recorded");
        assert_eq!(lost(2_000).share_of_time(), 1.0);
    }

    #[test]
    fn what_was_lost_is_told_by_time_and_by_events_and_once_for_several_threads() {
        let one = UnseenWakes { wakes: 1, time_ns: 620, of_ns: 1_000, events: 62, seen_events: 38 };
        let words = one.words().expect("lost");
        assert!(words.starts_with("62 % of the time and 62 % of the events"), "{words}");
        assert!(words.ends_with("1 wake across that does not count"), "{words}");
        let mut both = one;
        both.merge(UnseenWakes { wakes: 2, time_ns: 3, ..one });
        assert_eq!(both, UnseenWakes { wakes: 3, ..one });
        assert_eq!(UnseenWakes { wakes: 0, time_ns: 0, ..one }.words(), None);
        let at_the_end = UnseenWakes { wakes: 0, ..one }.words().expect("lost");
        assert!(at_the_end.ends_with("could not keep up"), "{at_the_end}");
        let little = UnseenWakes { time_ns: 1, ..one }.words().expect("lost");
        assert!(little.starts_with("<1 % of the time"), "{little}");
    }
}
