//! The table of the ways to wait: what `--wait` takes, and what each needs.
//!
//! A new kind of wait is its row here; help, errors and the rows of `measure wait` come from it.

use punctual_core::time::{Period, Span};
use punctual_core::wait::Spin;
use punctual_engine::wait_policy::WaitKind;

/// One kind of wait.
pub struct WaitRow {
    /// As `--wait` names it.
    pub name: &'static str,
    /// Its description, in a line.
    pub help: &'static str,
    /// True where it takes a margin.
    pub has_margin: bool,
    make: fn(Option<Span>, f64) -> WaitKind,
}

/// The short sleep of `hop`, and its margin where none is given.
pub const HOP: Span = Span::from_us(100);
const HOP_MARGIN: Span = Span::from_us(20);

/// Every kind of wait.
pub static WAITS: [WaitRow; 6] = [
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
        name: "hop",
        help: "A long sleep, one of 100 µs until --margin (20 µs) before the release, then spin",
        has_margin: true,
        make: |margin, _| WaitKind::Hop(HOP, margin.unwrap_or(HOP_MARGIN)),
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

/// The ways of a sweep, for a loop of this period: one sleep and a hop with margins from 10 µs up,
/// NIST's at its best interval, and all of [`WAITS`]; none whose sleeps are half of the period.
pub fn sweep(period_ns: u64, budget: f64) -> Vec<WaitKind> {
    let fits = |ns: i64| ns.unsigned_abs() < period_ns / 2;
    let spans = |us: &[i64]| us.iter().map(|us| Span::from_us(*us)).collect::<Vec<_>>();
    let margins = spans(&[10, 20, 40, 60, 90, 125, 200]);
    let once = margins.iter().filter(|margin| fits(margin.as_ns()));
    let mut kinds: Vec<WaitKind> = once.map(|margin| WaitKind::Fixed(*margin)).collect();
    for hop in spans(&[50, 100, 200]) {
        let pairs = spans(&[10, 20, 40, 60]).into_iter().map(|margin| (hop, margin));
        let fit = pairs.filter(|(hop, margin)| fits(hop.as_ns() + margin.as_ns()));
        kinds.extend(fit.map(|(hop, margin)| WaitKind::Hop(hop, margin)));
    }
    for row in &WAITS {
        let kind = row.kind(None, budget);
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds
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
