//! Whether a campaign that was read back can be; and text that is fit to be kept in one.

use std::collections::BTreeMap;

use super::{Campaign, Pool, RUNS_MAX, RunSetup, TOTALS_MAX, Total};

/// The longest text in a campaign, in characters; what is longer is cut.
const TEXT_MAX: usize = 400;

/// Text without what would steer a terminal, and not too long.
pub(super) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(TEXT_MAX).collect()
}

impl Campaign {
    /// Whether all of it can be: lists within their limits, sums that agree, no text that could
    /// steer a terminal.
    pub(super) fn is_sound(&self) -> bool {
        let totals: usize = self.pools.iter().map(|pool| pool.totals.len()).sum();
        let text = |text: &str| plain(text) == text;
        let texts = |map: &BTreeMap<String, String>| {
            map.len() <= 64 && map.iter().all(|(name, value)| text(name) && text(value))
        };
        let run = |run: &RunSetup| {
            text(&run.name)
                && text(&run.policy)
                && text(&run.wait)
                && run.load.len() <= 64
                && run.load.iter().all(|load| text(load))
        };
        let pool = |pool: &Pool| {
            pool.setup.runs.len() == pool.totals.len()
                && pool.totals.len() <= RUNS_MAX
                && pool.measured_ns <= 1 << 62
                && texts(&pool.setup.facts)
                && pool.setup.runs.iter().all(run)
                && pool.totals.iter().all(Total::is_sound)
        };
        totals <= TOTALS_MAX
            && text(&self.name)
            && texts(&self.asked)
            && texts(&self.machine)
            && self.broken.len() <= 64
            && self.broken.iter().all(|broken| text(broken))
            && self.pools.len() <= TOTALS_MAX
            && self.pools.iter().all(pool)
            && self.boots.is_sound(|boot| text(&boot.id) && text(&boot.kernel) && text(&boot.setup))
            && self.events.is_sound(|event| text(&event.what))
            && self.rows.is_sound(|at| self.pools.get(at).map_or(0, |pool| pool.totals.len()))
    }
}
