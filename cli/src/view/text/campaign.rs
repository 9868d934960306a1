//! What of a page is a campaign's alone: how long, which boots, what happened, the latest wakes.

use crate::report::{Campaign, Report};
use crate::view::show;

/// How many of each are shown; the JSON has all.
const SHOWN: usize = 5;

/// The lines of a campaign; nothing for any other report.
pub(super) fn lines(report: &Report) -> String {
    let Some(campaign) = &report.campaign else { return String::new() };
    let mut page = format!("\n{}\n", head(campaign));
    for boot in last(&campaign.boots) {
        let end = if boot.ended { "" } else { ", not ended by itself" };
        let text = format!(
            "  boot {}: {} to {}, Linux {}, setup {}{end}",
            boot.number,
            at(boot.from_unix_s),
            at(boot.to_unix_s),
            boot.kernel,
            boot.setup
        );
        page += &(show::wrap(&text, 4) + "\n");
    }
    for late in campaign.outliers.iter().take(SHOWN) {
        let text = format!(
            "  late: {} at {} (boot {}, cycle {})",
            show::ns(Some(late.outlier.lateness_ns as f64)),
            at(late.outlier.at_unix_ns / 1_000_000_000),
            late.outlier.boot,
            late.outlier.cycle
        );
        page += &(show::wrap(&text, 4) + "\n");
    }
    for event in last(&campaign.events) {
        let text = format!("  {}: {}", at(event.at_unix_s), event.what);
        page += &(show::wrap(&text, 4) + "\n");
    }
    for broken in &campaign.broken {
        page += &(show::wrap(&format!("  broken for good: {broken}"), 4) + "\n");
    }
    page
}

fn last<T>(all: &[T]) -> &[T] {
    &all[all.len().saturating_sub(SHOWN)..]
}

fn at(unix_s: i64) -> String {
    jiff::Timestamp::from_second(unix_s).map_or_else(|_| "-".to_owned(), |at| at.to_string())
}

fn head(campaign: &Campaign) -> String {
    let boots = campaign.boots.len() as u64 + campaign.boots_unlisted;
    let stretches: u64 = campaign.stretches.iter().map(|row| u64::from(row.stretches)).sum();
    let of = match campaign.duration_ns {
        Some(duration) => format!(" of {}", show::long(duration as f64)),
        None => String::new(),
    };
    format!(
        "Campaign {}: {}{of} measured in {stretches} stretches over {boots} boot{}",
        campaign.name,
        show::long(campaign.measured_ns as f64),
        if boots == 1 { "" } else { "s" }
    )
}
