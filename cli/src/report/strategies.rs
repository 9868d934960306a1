//! The ways to wait side by side, as rows of a report.
//!
//! Plain data, picked from the runs, and the one way that they recommend.

use punctual_analysis::summary::SummaryStats;
use punctual_lab::waits::HOP;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::run::Run;
use crate::format;

/// One way to wait, on one grid.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StrategyRow {
    /// "sleep", "fixed", "hop", "rearm", "adaptive", "spin".
    pub(crate) name: String,
    /// Its releases: those that ran, and those that were missed.
    #[serde(default)]
    pub(crate) releases: u64,
    /// Those of which only a lower bound of lateness is known: the largest is one then, too.
    #[serde(default)]
    pub(crate) unknown: u64,
    /// Lateness of all its releases.
    pub(crate) lateness_ns: SummaryStats,
    /// CPU time of the loop's thread over wall time, in [0, 1].
    pub(crate) cpu_load: Option<f64>,
    /// Releases that never ran.
    pub(crate) missed: Option<u64>,
    /// Offset of the grid from multiples of the period on CLOCK_MONOTONIC.
    pub(crate) phase_ns: Option<u64>,
    /// The longest sleep; null for one sleep however long.
    pub(crate) hop_ns: Option<u64>,
    /// How long before the release the last sleep ends; null for a wait that does not spin.
    pub(crate) margin_ns: Option<u64>,
    /// How quiet the machine was meanwhile: the 99 % quantile of lateness of a pure spin whose
    /// turns were next to those of this way; null where none could run.
    #[serde(default)]
    pub(crate) quiet_p99_ns: Option<f64>,
    /// Whether no other way here is both cheaper and later than fewer: less CPU, and a lower p99.
    #[serde(default)]
    pub(crate) on_front: bool,
}

impl StrategyRow {
    /// The way with its parameters: "fixed 60 µs", "hop 100 µs 20 µs".
    pub(crate) fn label(&self) -> String {
        let ns = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), format::period);
        match self.name.as_str() {
            "fixed" => format!("fixed {}", ns(self.margin_ns)),
            "hop" => format!("hop {} {}", ns(self.hop_ns), ns(self.margin_ns)),
            other => other.to_owned(),
        }
    }
}

/// A row for each of the first runs: `beside` says of each which run is the spin next to it.
pub(crate) fn of(runs: &[Run], beside: &[Option<usize>]) -> Vec<StrategyRow> {
    let quiet = |run: usize| runs.get(run)?.outcome.lateness_ns.p99;
    let row = |(run, beside): (&Run, &Option<usize>)| StrategyRow {
        name: run.setup.wait.clone().unwrap_or_default(),
        releases: run.outcome.releases(),
        unknown: run.outcome.unknown(),
        lateness_ns: run.outcome.lateness_ns.clone(),
        quiet_p99_ns: beside.and_then(quiet),
        cpu_load: run.cpu_load,
        missed: run.outcome.missed,
        phase_ns: run.setup.phase_ns,
        hop_ns: run.approach.as_ref().and_then(|approach| approach.hop_ns),
        margin_ns: run.approach.as_ref().map(|approach| approach.margin_ns),
        on_front: false,
    };
    let mut rows: Vec<StrategyRow> = runs.iter().zip(beside).map(row).collect();
    let of = |row: &StrategyRow| row.cpu_load.zip(row.lateness_ns.p99);
    let all: Vec<Option<(f64, f64)>> = rows.iter().map(of).collect();
    for (row, own) in rows.iter_mut().zip(&all) {
        let beats = |(cpu, late): (f64, f64)| {
            own.is_some_and(|(own_cpu, own_late)| {
                cpu <= own_cpu && late <= own_late && (cpu, late) != (own_cpu, own_late)
            })
        };
        row.on_front = own.is_some() && !all.iter().flatten().any(|other| beats(*other));
    }
    rows
}

/// The short sleep of `--wait hop`.
const HOP_NS: u64 = HOP.as_ns().unsigned_abs();

/// Ways that are this close to the best are as good as that.
const AS_GOOD: f64 = 1.25;

/// The most of a CPU that a wait may take to be recommended.
const CPU_MAX: f64 = 0.25;

/// Of the ways that leave three quarters of the CPU, the cheapest of those whose latest release in
/// 1000 is about as punctual as that of the best.
pub(crate) fn recommendation(rows: &[StrategyRow]) -> Option<String> {
    // A short sleep of another length is no value of --wait.
    let given = |row: &&StrategyRow| row.name != "hop" || row.hop_ns == Some(HOP_NS);
    let affordable = rows.iter().filter(|row| row.cpu_load.is_some_and(|load| load <= CPU_MAX));
    let affordable = affordable.filter(given);
    let late = |row: &StrategyRow| row.lateness_ns.p99_9;
    let best = affordable.clone().filter_map(late).min_by(f64::total_cmp)?;
    let good = affordable.filter(|row| late(row).is_some_and(|ns| ns <= best * AS_GOOD));
    let row =
        good.min_by(|a, b| a.cpu_load.unwrap_or(1.0).total_cmp(&b.cpu_load.unwrap_or(1.0)))?;
    let margin_ns = row.margin_ns.filter(|_| ["fixed", "hop"].contains(&row.name.as_str()));
    let margin = margin_ns
        .map_or_else(String::new, |ns| format!(" --margin {}", format::period_argument(ns)));
    Some(format!(
        "--wait {}{margin}: 1 release in 1000 later than {}, for {} of the CPU",
        row.name,
        format::ns(row.lateness_ns.p99_9),
        format::share(row.cpu_load.unwrap_or(0.0))
    ))
}
