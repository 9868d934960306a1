//! Checks a campaign that was read back, and cleans the text that is kept in one.

use std::collections::BTreeMap;

use super::{Campaign, Pool, RUNS_MAX, RunSetup, Setup, TOTALS_MAX, Total};
use crate::plain::steers;

/// The longest text in a campaign, in characters; what is longer is cut.
const TEXT_MAX: usize = 400;

/// The most names, loads or broken limits of a campaign.
const LIST_MAX: usize = 64;

/// Text as a campaign keeps it: without what steers a reader, and not too long.
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if steers(c) { ' ' } else { c }).take(TEXT_MAX).collect()
}

fn map(texts: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    texts.iter().take(LIST_MAX).map(|(name, value)| (plain(name), plain(value))).collect()
}

fn list(texts: &[String]) -> Vec<String> {
    texts.iter().take(LIST_MAX).map(|text| plain(text)).collect()
}

impl Setup {
    /// The same, as a campaign keeps it.
    pub(super) fn fitted(&self) -> Self {
        let run = |run: &RunSetup| RunSetup {
            name: plain(&run.name),
            policy: plain(&run.policy),
            wait: plain(&run.wait),
            load: list(&run.load),
            ..run.clone()
        };
        Self { runs: self.runs.iter().map(run).collect(), facts: map(&self.facts) }
    }
}

impl Campaign {
    /// The same with the texts cleaned that the public fields allow to set: what is written can be
    /// read again.
    pub(super) fn fitted(&self) -> Self {
        Self {
            name: plain(&self.name),
            requested: map(&self.requested),
            machine: map(&self.machine),
            broken: list(&self.broken),
            ..self.clone()
        }
    }

    /// Whether those texts are clean.
    pub(super) fn has_fit_texts(&self) -> bool {
        let texts = [&self.requested, &self.machine];
        plain(&self.name) == self.name
            && texts.into_iter().all(|texts| map(texts) == *texts)
            && list(&self.broken) == self.broken
    }

    /// Whether it is consistent: lists within their limits, sums that agree, no text with control
    /// characters.
    pub(super) fn is_sound(&self) -> bool {
        let totals: usize = self.pools.iter().map(|pool| pool.totals.len()).sum();
        let text = |text: &str| plain(text) == text;
        let pool = |pool: &Pool| {
            pool.setup.runs.len() == pool.totals.len()
                && pool.totals.len() <= RUNS_MAX
                && pool.measured_ns <= 1 << 62
                && pool.setup.fitted() == pool.setup
                && pool.totals.iter().all(Total::is_sound)
        };
        totals <= TOTALS_MAX
            && self.has_fit_texts()
            && self.pools.len() <= TOTALS_MAX
            && self.pools.iter().all(pool)
            && self.boots.is_sound(|boot| text(&boot.id) && text(&boot.kernel) && text(&boot.setup))
            && self.events.is_sound(|event| text(&event.what))
            && self.rows.is_sound(|at| self.pools.get(at).map_or(0, |pool| pool.totals.len()))
    }
}
