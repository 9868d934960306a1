//! The table of the ways to wait: what `--wait` takes, and what each needs.
//!
//! A new kind of wait is its row here; help, errors and the rows of `measure wait` come from it.

use punctual::wait_policy::WaitKind;
use punctual_core::time::{Period, Span};
use punctual_core::wait::Spin;

/// One kind of wait.
pub struct WaitRow {
    /// As `--wait` names it.
    pub name: &'static str,
    /// What it does, in a line.
    pub help: &'static str,
    /// Whether it takes a margin.
    pub has_margin: bool,
    make: fn(Option<Span>, f64) -> WaitKind,
}

/// Every kind of wait.
pub static WAITS: [WaitRow; 5] = [
    WaitRow {
        name: "sleep",
        help: "An absolute sleep: what a plain loop does",
        has_margin: false,
        make: |_, _| WaitKind::Sleep,
    },
    WaitRow {
        name: "fixed",
        help: "Sleep until --margin before the release, then spin",
        has_margin: true,
        make: |margin, _| WaitKind::Fixed(margin.unwrap_or(Spin::FIXED)),
    },
    WaitRow {
        name: "rearm",
        help: "NIST's re-arming: short sleeps of --margin (default: the cheapest), then spin",
        has_margin: true,
        make: |margin, _| WaitKind::Rearm(margin.and_then(period)),
    },
    WaitRow {
        name: "adaptive",
        help: "Learn how early to wake and whether to sleep in hops, within --budget",
        has_margin: false,
        make: |_, budget| WaitKind::Adaptive(budget),
    },
    WaitRow {
        name: "spin",
        help: "Sleep for a tenth of the period, then spin: the CPU is busy nine tenths of the time",
        has_margin: false,
        make: |_, _| WaitKind::Spin,
    },
];

impl WaitRow {
    /// The kind of wait, with a margin where it takes one, for this share of the CPU where it
    /// learns.
    pub fn kind(&self, margin: Option<Span>, budget: f64) -> WaitKind {
        (self.make)(margin.filter(|_| self.has_margin), budget)
    }
}

/// `None` where the margin is not positive.
fn period(margin: Span) -> Option<Period> {
    u64::try_from(margin.as_ns()).ok().and_then(Period::from_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_has_the_name_of_its_row() {
        let margin = Span::from_us(50);
        for row in &WAITS {
            assert_eq!(row.kind(Some(margin), 0.1).name(), row.name);
            assert!(!row.help.is_empty() && !row.help.ends_with('.'));
            let differs = row.kind(Some(margin), 0.1) != row.kind(None, 0.1);
            assert_eq!(differs, row.has_margin, "{}", row.name);
        }
    }
}
