//! The part of a document that only a campaign has: its time, boots, events and latest wakes.

use std::collections::BTreeMap;

use punctual_analysis::campaign::Boot;
use punctual_document::Block;
use punctual_report::{Campaign, Late};

use crate::{campaign, format};

/// The most boots, events or wakes that are shown; the JSON has all.
const SHOWN: usize = 5;

/// The sentences of a campaign.
pub(super) fn blocks(campaign: &Campaign) -> Vec<Block> {
    let mut blocks = vec![Block::Break, Block::words(head(campaign))];
    let mut add = |text: String| blocks.push(Block::words_at(1, text));
    for boot in last(&campaign.boots) {
        let end = if boot.ended { "" } else { ", did not end normally" };
        let text = format!(
            "boot {}: {} to {}, Linux {}, {}{end}",
            boot.number,
            at(boot.from_unix_s),
            at(boot.to_unix_s),
            boot.kernel,
            setup_of(campaign, boot)
        );
        add(text);
    }
    // Of each run they are the latest, the latest first; here of all runs together.
    let mut latest: Vec<&Late> = campaign.outliers.iter().collect();
    latest.sort_by_key(|late| std::cmp::Reverse(late.outlier.lateness_ns));
    let is_one = campaign.setups.iter().map(|kept| kept.setup.runs.len()).sum::<usize>() == 1;
    for late in latest.into_iter().take(SHOWN) {
        let run = run_name(campaign, (late.setup, late.run));
        let run = if is_one { String::new() } else { format!("{run}, ") };
        let text = format!(
            "late: {} at {} ({run}boot {}, cycle {})",
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

/// The name of a run of a setup, as that of the run in the result.
pub(crate) fn run_name(campaign: &Campaign, (setup, run): (usize, usize)) -> String {
    let kept = campaign.setups.get(setup);
    let name = kept.and_then(|kept| kept.setup.runs.get(run)).map(|run| run.name.clone());
    let name = name.unwrap_or_else(|| format!("run {}", run + 1));
    campaign::run_name(&name, setup, campaign.setups.len())
}

/// The setup of a boot: its name as runs have it, and its digest.
pub(crate) fn setup_of(campaign: &Campaign, boot: &Boot) -> String {
    match campaign.setups.iter().position(|kept| kept.digest == boot.setup) {
        Some(setup) => format!("{} ({})", campaign::setup_name(setup), boot.setup),
        // It ended before its first batch.
        None if boot.setup.is_empty() => "no setup".to_owned(),
        None => format!("setup {}", boot.setup),
    }
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
    let planned = match campaign.duration_ns {
        Some(duration) => format!(" of {}", format::long(duration as f64)),
        None => String::new(),
    };
    format!(
        "Campaign {}: {}{planned} measured in {} over {boots} boot{}",
        campaign.name,
        format::long(campaign.measured_ns as f64),
        batches_words(campaign),
        if boots == 1 { "" } else { "s" }
    )
}

/// The number of batches, in words.
pub(crate) fn batches_words(campaign: &Campaign) -> String {
    match batches(campaign) {
        1 => "1 batch".to_owned(),
        batches => format!("{} batches", format::count(batches)),
    }
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

    fn campaign(rows: &[(usize, usize, u32)]) -> Campaign {
        let row = |&(setup, run, batches): &(usize, usize, u32)| {
            punctual_analysis::campaign::BatchRow { setup, run, batches, ..Default::default() }
        };
        Campaign {
            name: "night".to_owned(),
            began_unix_s: 0,
            measured_ns: 1_000_000_000,
            duration_ns: None,
            boots: Vec::new(),
            boots_unlisted: 1,
            setups: Vec::new(),
            stretches: rows.iter().map(row).collect(),
            maxima: Vec::new(),
            outliers: Vec::new(),
            events: Vec::new(),
            events_unlisted: 0,
            broken: Vec::new(),
        }
    }

    #[test]
    fn a_batch_of_several_runs_is_one() {
        let campaign = campaign(&[(0, 0, 3), (0, 1, 3), (0, 0, 1), (1, 0, 2), (1, 1, 1)]);
        assert_eq!(head(&campaign), "Campaign night: 1.0 s measured in 6 batches over 1 boot");
    }

    /// Runs and charts have the number of a setup, events and the JSON its digest.
    #[test]
    fn a_boot_has_both_names_of_its_setup() {
        let kept = |digest: &str| punctual_report::Kept {
            digest: digest.to_owned(),
            measured_ns: 1,
            setup: Default::default(),
        };
        let boot = |number: u32, setup: &str| Boot {
            number,
            setup: setup.to_owned(),
            kernel: "6.1".to_owned(),
            ended: true,
            ..Boot::default()
        };
        let mut campaign = campaign(&[]);
        campaign.setups = ["aa", "bb"].map(kept).into();
        campaign.boots = vec![boot(1, "bb"), boot(2, "")];
        let text = format!("{:?}", blocks(&campaign));
        assert!(text.contains("Linux 6.1, setup 2 (bb)\""), "{text}");
        assert!(text.contains("Linux 6.1, no setup\""), "{text}");
        assert_eq!(run_name(&campaign, (1, 0)), "run 1, setup 2");
    }

    #[test]
    fn the_latest_of_all_runs_are_shown_each_with_its_run() {
        let late = |run: usize, lateness_ns: i64| Late {
            setup: 0,
            run,
            outlier: serde_json::from_value(serde_json::json!({
                "lateness_ns": lateness_ns, "at_unix_ns": 0, "at_ns": 0, "cycle": 7, "boot": 1
            }))
            .expect("a wake"),
        };
        let mut campaign = campaign(&[(0, 0, 1), (0, 1, 1)]);
        // Of each run the latest first.
        campaign.outliers = (0..9).map(|at| late(0, 9_000 - at)).collect();
        campaign.outliers.extend([late(1, 5_000_000), late(1, 100)]);
        let shown: Vec<String> = blocks(&campaign)
            .into_iter()
            .filter_map(
                |block| if let Block::Words(words) = block { Some(words.text) } else { None },
            )
            .filter(|text| text.starts_with("late: "))
            .collect();
        assert_eq!(shown.len(), SHOWN);
        let first = "late: 5.00 ms at 1970-01-01T00:00:00Z (run 2, boot 1, cycle 7)";
        assert_eq!(shown[0], first);
        assert!(shown[1].starts_with("late: 9.00 µs at ") && shown[1].contains("(run 1, "));
    }
}
