//! A report as families of metrics.
//!
//! Names end with their unit, all times are in seconds, as Prometheus has them. Only what the
//! report says: what it leaves out for want of samples is left out here.

use anyhow::Result;
use punctual_analysis::summary::SummaryStats;
use punctual_export::distribution::LatenessHistogram;
use punctual_export::name::plain;
use punctual_export::openmetrics::{Labels, MetricFamily, Points};

use crate::report::{Report, Run};

/// Nanoseconds in a second.
const NS: f64 = 1e9;

/// A value of a run, where it has one.
type Value = fn(&Run) -> Option<f64>;

/// Times of a run that are one number: name, what it is, the number in ns.
const TIMES: [(&str, &str, Value); 6] = [
    ("punctual_period_seconds", "Nominal period of the loop.", |run| {
        run.setup.period_ns.map(|ns| ns as f64)
    }),
    (
        "punctual_lateness_max_seconds",
        "Largest lateness of all releases; a lower bound where some are not known.",
        |run| run.outcome.lateness_ns.max,
    ),
    ("punctual_lateness_min_seconds", "Smallest lateness; negative after an early wake.", |run| {
        run.outcome.lateness_ns.min
    }),
    (
        "punctual_interval_max_abs_seconds",
        "Largest deviation of the time between two wakes from the period.",
        |run| run.outcome.jitters.interval_max_abs_ns,
    ),
    (
        "punctual_grid_pp_seconds",
        "Peak-to-peak deviation of the wakes from the fitted grid.",
        |run| run.outcome.grid.as_ref().map(|grid| grid.jitter_pp_ns),
    ),
    (
        "punctual_grid_rms_seconds",
        "Root mean square deviation of the wakes from the fitted grid.",
        |run| run.outcome.grid.as_ref().map(|grid| grid.rms_ns),
    ),
];

/// Pure numbers of a run: name, what it is, the number.
const NUMBERS: [(&str, &str, Value); 3] = [
    ("punctual_cycles", "Recorded cycles, cold ones included.", |run| {
        Some(run.outcome.cycles as f64)
    }),
    ("punctual_missed_releases", "Releases that never ran.", |run| {
        run.outcome.missed.map(|missed| missed as f64)
    }),
    ("punctual_unrecorded_cycles", "Cycles that ran but did not fit in the recorder.", |run| {
        Some(run.outcome.unrecorded as f64)
    }),
];

/// All that a report says to Prometheus.
pub(super) fn families(report: &Report, shown: &str) -> Result<Vec<MetricFamily>> {
    let of: Vec<(Labels, LatenessHistogram)> = super::tables::distributions(report, shown)?
        .into_iter()
        .map(|of| (labels(&of), of))
        .collect();
    let runs = || of.iter().map(|(labels, _)| labels).zip(report.body.runs());
    let every = |value: &dyn Fn(&Run) -> Option<f64>| {
        let points = runs().filter_map(|(labels, run)| Some((labels.clone(), value(run)?)));
        Points::Gauges(points.collect())
    };
    let mut families = vec![result(report)];
    families.extend(timestamp(report));
    families.push(MetricFamily {
        name: "punctual_run_info",
        unit: "",
        help: "How the run was set up; always 1.",
        points: Points::Gauges(runs().map(|(labels, run)| (setup(labels, run), 1.0)).collect()),
    });
    for (name, help, value) in NUMBERS {
        families.push(MetricFamily { name, unit: "", help, points: every(&value) });
    }
    for (name, help, value) in TIMES {
        let seconds = |run: &Run| value(run).map(|ns| ns / NS);
        families.push(MetricFamily { name, unit: "seconds", help, points: every(&seconds) });
    }
    families.push(MetricFamily {
        name: "punctual_lateness_quantile_seconds",
        unit: "seconds",
        help: "Quantiles of lateness that the number of cycles supports.",
        points: Points::Gauges(
            runs().flat_map(|(labels, run)| quantiles(labels, &run.outcome.lateness_ns)).collect(),
        ),
    });
    families.push(MetricFamily {
        name: "punctual_lateness_seconds",
        unit: "seconds",
        help: "Lateness, wake - release. Early wakes are in the first bucket.",
        points: Points::Histograms(of),
    });
    Ok(families)
}

fn labels(of: &LatenessHistogram) -> Labels {
    let cpu = of.cpu.map(|cpu| ("cpu", cpu.to_string()));
    std::iter::once(("run", of.run.clone())).chain(cpu).collect()
}

/// What was run, where, by what.
fn result(report: &Report) -> MetricFamily {
    let machine = report.envelope.machine.as_ref();
    let kernel = machine.and_then(|facts| facts.kernel.kernel.value().cloned());
    let model = machine.and_then(|facts| facts.cpu.cpu_model.value().cloned());
    let words = [
        ("version", Some(report.envelope.version.clone())),
        ("experiment", Some(report.envelope.experiment.clone())),
        ("kernel", kernel),
        ("cpu_model", model),
        ("incomplete", Some(report.envelope.incomplete.to_string())),
    ];
    let labels = words.into_iter().filter_map(|(name, word)| Some((name, plain(&word?))));
    MetricFamily {
        name: "punctual_result_info",
        unit: "",
        help: "The result that these metrics come from; always 1.",
        points: Points::Gauges(vec![(labels.collect(), 1.0)]),
    }
}

fn timestamp(report: &Report) -> Option<MetricFamily> {
    let at: jiff::Timestamp = report.envelope.started_at.as_deref()?.parse().ok()?;
    Some(MetricFamily {
        name: "punctual_started_timestamp_seconds",
        unit: "seconds",
        help: "Start of the measurement, as Unix time.",
        points: Points::Gauges(vec![(Labels::new(), at.as_millisecond() as f64 / 1e3)]),
    })
}

fn setup(labels: &Labels, run: &Run) -> Labels {
    let setup = &run.setup;
    let load = if setup.load.is_empty() { "none".to_owned() } else { setup.load.join(",") };
    let words = [
        ("policy", setup.policy.clone()),
        ("priority", setup.priority.map(|priority| priority.to_string())),
        ("wait", setup.wait.clone()),
        ("load", Some(load)),
    ];
    let words = words.into_iter().filter_map(|(name, word)| Some((name, plain(&word?))));
    labels.iter().cloned().chain(words).collect()
}

fn quantiles(labels: &Labels, stats: &SummaryStats) -> Vec<(Labels, f64)> {
    let known = [
        ("0.5", stats.p50),
        ("0.9", stats.p90),
        ("0.99", stats.p99),
        ("0.999", stats.p99_9),
        ("0.9999", stats.p99_99),
    ];
    let point = |(p, ns): (&str, Option<f64>)| {
        let mut labels = labels.clone();
        labels.push(("p", p.to_owned()));
        Some((labels, ns? / NS))
    };
    known.into_iter().filter_map(point).collect()
}
