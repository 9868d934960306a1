//! `check --for`: what loops are used for, one row a use.
//!
//! A use is its row here: its name, periods, deadline, load and words. Decides nothing.

use punctual_analysis::quantity;
use punctual_analysis::verdict::{Deadline, Requirement};
use punctual_core::time::Span;

use crate::parse::{self, Duration};

/// What a loop is for.
#[derive(Debug)]
pub(super) struct Use {
    /// As `--for` names it.
    name: &'static str,
    /// The option as it is written.
    pub(super) option: &'static str,
    /// What it measures, as a clause.
    help: &'static str,
    /// The loops that run at once, ns.
    periods_ns: &'static [i64],
    /// What they have to keep.
    pub(super) requirement: Requirement,
    /// The load beside them; `None` for each that `check` knows, in turn.
    pub(super) load: Option<&'static str>,
    /// The loop in words: "A loop".
    pub(super) purpose: &'static str,
    /// What its loops are called, by period in ns, where they have names of their own.
    pub(super) labels: &'static [(u64, &'static str)],
    /// Whether software stepping is asked about.
    pub(super) stepping: bool,
}

const fn within(ns: i64, p: f64) -> Requirement {
    Requirement { deadline: Deadline::Ns(ns), p }
}

/// Every use.
static USES: [Use; 5] = [
    Use {
        name: "linuxcnc",
        option: " --for linuxcnc",
        // LinuxCNC's latency-test runs these two; up to 50 µs it recommends software stepping.
        help: "base and servo thread, 25us and 1ms, and whether software can make the steps",
        periods_ns: &[25_000, 1_000_000],
        requirement: within(50_000, 1e-4),
        load: Some("linuxcnc"),
        purpose: "LinuxCNC threads",
        labels: &[(25_000, "base thread, 25 µs"), (1_000_000, "servo thread, 1 ms")],
        stepping: true,
    },
    Use {
        name: "audio",
        option: " --for audio",
        help: "64 frames at 48 kHz, half of the time left to compute them",
        periods_ns: &[1_333_333],
        requirement: within(667_000, 1e-4),
        load: None,
        purpose: "64 frames at 48 kHz",
        labels: &[],
        stepping: false,
    },
    Use {
        name: "ros",
        option: " --for ros",
        help: "a robot's control loop, 1ms, late by 100us at most",
        periods_ns: &[1_000_000],
        requirement: within(100_000, 1e-4),
        load: None,
        purpose: "A robot's control loop",
        labels: &[],
        stepping: false,
    },
    Use {
        name: "plc",
        option: " --for plc",
        help: "a task of a programmable controller, 10ms, late by 1ms at most",
        periods_ns: &[10_000_000],
        requirement: within(1_000_000, 1e-3),
        load: None,
        purpose: "A PLC task",
        labels: &[],
        stepping: false,
    },
    Use {
        name: "ptp",
        option: " --for ptp",
        // Class A of IEEE 802.1BA: one frame in each 125 µs.
        help: "a TSN sender of class A, 125us, half of the interval left to send",
        periods_ns: &[125_000],
        requirement: within(62_500, 1e-4),
        load: None,
        purpose: "A TSN sender of class A",
        labels: &[],
        stepping: false,
    },
];

/// What `--for` asks for.
#[derive(Clone, Debug)]
pub(crate) enum Purpose {
    /// A row of the table.
    Use(usize),
    /// A loop of this period.
    Period(Duration),
}

impl Purpose {
    /// Its row, where it has one.
    pub(super) fn of_use(&self) -> Option<&'static Use> {
        match self {
            Self::Use(at) => USES.get(*at),
            Self::Period(_) => None,
        }
    }

    /// The periods to run at once.
    pub(super) fn periods(&self) -> Vec<Duration> {
        match self {
            Self::Use(at) => {
                USES[*at].periods_ns.iter().map(|&ns| Duration(Span::from_ns(ns))).collect()
            }
            Self::Period(period) => vec![*period],
        }
    }
}

fn names() -> String {
    USES.iter().map(|of| of.name).collect::<Vec<_>>().join(", ")
}

/// `audio`, `1kHz` or `500us`.
pub(super) fn parse(text: &str) -> Result<Purpose, String> {
    if let Some(at) = USES.iter().position(|of| of.name == text) {
        return Ok(Purpose::Use(at));
    }
    if let Ok(rate) = quantity::rate(text) {
        let ns = (1e9 / rate.as_hz()).round();
        let fits = (1.0..=9.2e18).contains(&ns);
        let period = fits.then(|| Purpose::Period(Duration(Span::from_ns(ns as i64))));
        return period.ok_or_else(|| format!("{text} has no period that can be measured"));
    }
    parse::period(text).map(Purpose::Period).map_err(|_| {
        format!("accepted are {}, a rate such as 1kHz and a period such as 500us", names())
    })
}

/// What `--for` takes, in a line.
pub(super) fn help() -> String {
    format!("What the loop is for: {}; or a rate, such as 1kHz", names())
}

/// The same, with what each measures.
pub(super) fn long_help() -> String {
    let each = USES.iter().map(|of| format!("\n- {}: {}", of.name, of.help));
    help() + "\n" + &each.collect::<String>()
}

#[cfg(test)]
mod tests {
    use punctual_lab::load::LoadSpec;

    use super::*;

    #[test]
    fn each_row_is_what_its_option_asks_for_and_has_loads_that_exist() {
        for (at, of) in USES.iter().enumerate() {
            assert_eq!(of.option, format!(" --for {}", of.name));
            assert!(matches!(parse(of.name), Ok(Purpose::Use(found)) if found == at));
            assert!(of.load.is_none_or(|load| LoadSpec::parse_list(load).is_ok()), "{}", of.name);
            assert!(!of.help.ends_with('.') && !of.periods_ns.is_empty(), "{}", of.name);
        }
    }

    #[test]
    fn a_rate_or_a_period_is_a_purpose_and_anything_else_is_refused() {
        let ns = |text| parse(text).expect("a purpose").periods()[0].0.as_ns();
        assert_eq!((ns("1kHz"), ns("500us"), ns("3Hz")), (1_000_000, 500_000, 333_333_333));
        let why = parse("cnc").expect_err("unknown");
        assert!(why.contains("linuxcnc, audio") && why.contains("1kHz"), "{why}");
    }
}
