//! The part of a document that only a campaign has: its time, boots, events and latest wakes.

use std::collections::BTreeMap;

use punctual_document::Block;
use punctual_report::Campaign;

use crate::format;

/// The most boots, events or wakes that are shown; the JSON has all.
const SHOWN: usize = 5;

/// The sentences of a campaign.
pub(super) fn blocks(campaign: &Campaign) -> Vec<Block> {
    let mut blocks = vec![Block::Break, Block::words(head(campaign))];
    let mut add = |text: String| blocks.push(Block::words_at(1, text));
    for boot in last(&campaign.boots) {
        let end = if boot.ended { "" } else { ", did not end normally" };
        let text = format!(
            "boot {}: {} to {}, Linux {}, setup {}{end}",
            boot.number,
            at(boot.from_unix_s),
            at(boot.to_unix_s),
            boot.kernel,
            boot.setup
        );
        add(text);
    }
    for late in campaign.outliers.iter().take(SHOWN) {
        let text = format!(
            "late: {} at {} (boot {}, cycle {})",
            format::ns(Some(late.outlier.lateness_ns as f64)),
            at(late.outlier.at_unix_ns / 1_000_000_000),
            late.outlier.boot,
            late.outlier.cycle
        );
        add(text);
    }
    for event in last(&campaign.events) {
        let text = format!("{}: {}", at(event.at_unix_s), event.what);
        add(text);
    }
    for broken in &campaign.broken {
        add(format!("broken for good: {broken}"));
    }
    blocks
}

fn last<T>(rows: &[T]) -> &[T] {
    &rows[rows.len().saturating_sub(SHOWN)..]
}

/// An instant in UTC (RFC 3339), to the second.
pub(crate) fn at(unix_s: i64) -> String {
    jiff::Timestamp::from_second(unix_s).map_or_else(|_| "-".to_owned(), |at| at.to_string())
}

fn head(campaign: &Campaign) -> String {
    let boots = campaign.boots.len() as u64 + campaign.boots_unlisted;
    let batches = batches(campaign);
    let planned = match campaign.duration_ns {
        Some(duration) => format!(" of {}", format::long(duration as f64)),
        None => String::new(),
    };
    format!(
        "Campaign {}: {}{planned} measured in {batches} batch{} over {boots} boot{}",
        campaign.name,
        format::long(campaign.measured_ns as f64),
        if batches == 1 { "" } else { "es" },
        if boots == 1 { "" } else { "s" }
    )
}

/// The number of batches: each has a row for each run in which something was recorded.
fn batches(campaign: &Campaign) -> u64 {
    let mut of_runs: BTreeMap<(usize, usize), u64> = BTreeMap::new();
    for row in &campaign.stretches {
        *of_runs.entry((row.setup, row.run)).or_default() += u64::from(row.batches);
    }
    let mut of_setups: BTreeMap<usize, u64> = BTreeMap::new();
    for ((setup, _), count) in of_runs {
        let most = of_setups.entry(setup).or_default();
        *most = count.max(*most);
    }
    of_setups.values().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_of_several_runs_is_one() {
        let row = |(setup, run, stretches)| punctual_analysis::campaign::BatchRow {
            setup,
            run,
            batches: stretches,
            ..Default::default()
        };
        let rows = [(0, 0, 3), (0, 1, 3), (0, 0, 1), (1, 0, 2), (1, 1, 1)];
        let campaign = Campaign {
            name: "night".to_owned(),
            began_unix_s: 0,
            measured_ns: 1_000_000_000,
            duration_ns: None,
            boots: Vec::new(),
            boots_unlisted: 1,
            setups: Vec::new(),
            stretches: rows.map(row).to_vec(),
            maxima: Vec::new(),
            outliers: Vec::new(),
            events: Vec::new(),
            events_unlisted: 0,
            broken: Vec::new(),
        };
        assert_eq!(head(&campaign), "Campaign night: 1.0 s measured in 6 batches over 1 boot");
    }
}
