//! Tacke and Ricci, *Benchmarking Real-time Determinism in Windows CE*.

use anyhow::Result;
use punctual_core::time::Period;
use punctual_lab::response::{ResponseOutcome, ResponseRow, StageRow};
use punctual_lab::saturation::{SaturationOutcome, TrialRow};
use punctual_os::scheduler::SchedPolicy;

use super::bench::{APP_PRIORITY, Bench};
use super::scope;
use crate::report::reproduced::ReproducedRow;

/// 5 kHz.
const PERIOD_NS: u64 = 200_000;
/// The background load: integer polygons.
const LOAD: &str = "cpu";

/// Figure 3: polygons per second.
pub(super) const POLYGONS: [(&str, &str, &str); 5] = [
    ("ce212", "Graphics Master, CE 2.12", "170"),
    ("ce30", "Graphics Master, CE 3.0", "751"),
    ("cenet", "Graphics Master, CE.NET", "537"),
    ("ce30-qvga", "Graphics Master variation (QVGA), CE 3.0", "980"),
    ("ce30-ipaq", "3630 iPaq (QVGA), CE 3.0", "260"),
];

/// Figure 8: system, MF-ISR, MF-APP, SF.
pub(super) const FREQUENCIES: [(&str, [&str; 3]); 6] = [
    ("ce212", ["20Hz", "19 Hz", ""]),
    ("ce212-loaded", ["20Hz", "19 Hz", "N/A"]),
    ("ce30", ["127 KHz", "28 kHz", ""]),
    ("ce30-loaded", ["127 KHz", "15 kHz", "85 kHz"]),
    ("cenet", ["47 kHz", "6.1 kHz", ""]),
    ("cenet-loaded", ["47 kHz", "6 kHz", "40 kHz"]),
];

/// Figure 11: system, then ISR and APP: maximum, minimum, their difference, latency.
pub(super) const LATENCIES: [(&str, [[&str; 4]; 2]); 6] = [
    ("ce212", [["6", "2.6", "3.4", "3"], ["162", "51", "111", "61"]]),
    ("ce212-loaded", [["11", "3.9", "7.1", "4.8"], ["201", "117", "84", "135"]]),
    ("ce30", [["5.2", "1.4", "3.8", "2.5"], ["17.6", "14.4", "3.2", "21"]]),
    ("ce30-loaded", [["7", "2", "5", "5"], ["133", "16", "117", "71"]]),
    ("cenet", [["5", "2", "3", "3"], ["170", "24", "146", "47"]]),
    ("cenet-loaded", [["12.2", "2.8", "9.4", "6.3"], ["125", "46", "79", "53"]]),
];

/// A figure of a stage, ns.
type Value = fn(&StageRow) -> Option<f64>;

/// What was measured: idle, and with a competitor of equal priority, which is what the paper calls
/// loaded; the polygons of a load of its own.
pub(super) struct Measured {
    pub(super) idle: Option<ResponseRow>,
    pub(super) equal: Option<ResponseRow>,
    pub(super) polygons: Option<f64>,
}

/// Its rows.
pub(super) fn rows(bench: &mut Bench<'_>) -> Result<Vec<ReproducedRow>> {
    let Some(period) = Period::from_ns(PERIOD_NS) else { return Ok(Vec::new()) };
    let fifo = SchedPolicy::Fifo(APP_PRIORITY);
    let plain = bench.response(period, Some(LOAD), (fifo, false, bench.share(0.2)))?;
    let round = SchedPolicy::RoundRobin(APP_PRIORITY);
    let equal = bench.response(period, None, (round, true, bench.share(0.2)))?;
    let row = |of: &Option<(ResponseOutcome, _)>, at: usize| {
        of.as_ref().and_then(|(of, _)| of.rows.get(at).cloned())
    };
    let loads = plain.as_ref().and_then(|(_, loads)| loads.get(1)?.first()?.rate);
    let equal = equal.map(|(of, _)| (of, ()));
    let plain = plain.map(|(of, _)| (of, ()));
    let measured = Measured { idle: row(&plain, 0), equal: row(&equal, 0), polygons: loads };
    let mut rows = polygons(&measured);
    rows.extend(figures(&measured));
    let saturation = bench.saturation(bench.share(0.35))?;
    rows.extend(frequencies(saturation.as_ref(), bench.other_cpu().is_none()));
    rows.extend(latencies(&measured));
    bench.draw(scope::figures(&measured, &rows));
    Ok(rows)
}

/// A cell of figure 8 in kHz; `None` where it has no number.
pub(super) fn kilohertz(cell: &str) -> Option<f64> {
    let text = cell.to_ascii_lowercase();
    let (text, times) = match text.strip_suffix("khz") {
        Some(text) => (text, 1.0),
        None => (text.strip_suffix("hz")?, 1e-3),
    };
    text.trim().parse::<f64>().ok().map(|value| value * times)
}

fn polygons(measured: &Measured) -> Vec<ReproducedRow> {
    let row = |(key, what, published): (&str, &str, &str)| {
        ReproducedRow::new(format!("wince.fig3.{key}"), what, "polygons/s", published)
            .measured(measured.polygons)
            .note("other polygons (640 × 480, 3 to 8 corners), all CPUs, while stimuli come")
    };
    POLYGONS.into_iter().map(row).collect()
}

/// A figure of a stage, µs.
fn stage(of: &Option<ResponseRow>, at: usize, ns: Value) -> Option<f64> {
    ns(of.as_ref()?.stages.get(at)?).map(|ns| ns / 1e3)
}

/// Figures 5 to 7, 9 and 10.
fn figures(of: &Measured) -> Vec<ReproducedRow> {
    let new = |id: &str, what: &str, published: &str, value: Option<f64>| {
        ReproducedRow::new(format!("wince.{id}"), what, "µs", published).measured(value)
    };
    let p50: Value = |stage| stage.start_ns.p50;
    let range: Value = |stage| stage.response_range_ns;
    let latest: Value = |stage| stage.start_ns.max;
    let done: Value = |stage| stage.complete_ns.max;
    let shortest: Value = |stage| stage.start_ns.min;
    let thread = "an interrupt handler there; here a thread, SCHED_FIFO 90";
    let equal = "three figures are numbered 6; here round-robin with a thread that computes 14 ms \
                 of each 20 ms";
    let one = "this one system stands for the paper's three";
    vec![
        new("fig5.isr", "start of the interrupt's stage, unloaded", "2.5", stage(&of.idle, 0, p50))
            .note(thread),
        new("fig5.app", "start of the application's, unloaded", "16", stage(&of.idle, 1, p50))
            .note("figure 11 has 21 for the same"),
        new("fig6a.isr", "range of the starts, unloaded", "2.5", stage(&of.idle, 0, range))
            .note("\"95% or more\" of averages of 128 there; here largest minus smallest of all"),
        new(
            "fig6b.app",
            "latest start at equal priority, loaded",
            "133",
            stage(&of.equal, 1, latest),
        )
        .note(equal),
        new("fig6c.app", "usual start at equal priority, loaded", "15", stage(&of.equal, 1, p50))
            .note("peaks at 15 and 30 µs there")
            .note(equal),
        new(
            "fig7.isr",
            "latest completion, interrupt's stage, loaded",
            "50",
            stage(&of.equal, 0, done),
        )
        .note(equal),
        new(
            "fig7.app",
            "latest completion, application's, loaded",
            "125",
            stage(&of.equal, 1, done),
        )
        .note("below the latest start of figure 11, 133: one of them is wrong")
        .note(equal),
        new("fig9a.app", "CE 2.12: latest start, loaded", "201", stage(&of.equal, 1, latest))
            .note("two figures are numbered 9; the plot has no number, figure 11 has")
            .note(one),
        new("fig9b.app", "CE 3.0: earliest start, loaded", "10", stage(&of.equal, 1, shortest))
            .note("\"10 µs after interrupt\" is below figure 11's minimum, 16")
            .note(one),
        new("fig10.app", "CE.NET: latest start, loaded", "125", stage(&of.equal, 1, latest))
            .note("a plot without numbers: figure 11's")
            .note(one),
    ]
}

/// Figure 8: the first frequency that loses, and the one at which the background dies; `alone`: on
/// a machine of one CPU.
fn frequencies(of: Option<&SaturationOutcome>, alone: bool) -> Vec<ReproducedRow> {
    let first_loss = |condition: &str, stage: u32| {
        let rows = of.map_or(&[][..], |of| &of.rows);
        let row = rows.iter().find(|row| row.condition == condition && row.stage == stage);
        row.and_then(|row| row.first_loss_hz)
    };
    let background = of.and_then(|of| of.background.as_ref());
    let mut rows = Vec::new();
    for (system, cells) in FREQUENCIES {
        let condition = if system.ends_with("loaded") { "loaded" } else { "unloaded" };
        for (key, published) in ["mf-isr", "mf-app", "sf"].into_iter().zip(cells) {
            if published.is_empty() {
                continue;
            }
            let (what, hz) = match key {
                "sf" => ("frequency at which polygons stop", background.and_then(|of| of.sf10_hz)),
                "mf-isr" => ("first frequency that loses pulses, ISR", first_loss(condition, 1)),
                _ => ("first frequency that loses pulses, APP", first_loss(condition, 2)),
            };
            let id = format!("wince.fig8.{system}.{key}");
            let row = ReproducedRow::new(id, &format!("{what}, {system}"), "kHz", published);
            let one_cpu = || alone.then(|| "not measured: it takes a second CPU".to_owned());
            let khz = hz.map(|hz| hz / 1e3);
            let row = match not_reached(of, condition, key == "sf").or_else(one_cpu) {
                Some(why) => row.measured_or(khz, &why),
                None => row.measured(khz),
            };
            let row = if key == "sf" {
                row.note("here where less than a tenth is left: the kernel guarantees a floor")
            } else {
                row.note("any loss in a trial: an extreme value where the host stalls a machine")
            };
            rows.push(match (system, key) {
                (_, "mf-app") if system.starts_with("ce30") => row.note(
                    "28 to 15 kHz is -46 %, not \"more than 50%\"; MF-ISR is defined twice, the \
                     second is MF-APP",
                ),
                (_, "mf-app") => row.note("defined there as a second MF-ISR"),
                _ => row,
            });
        }
    }
    rows
}

/// Why no frequency of the trials was the one of figure 8: none of them had that effect; `None`
/// where nothing was tried.
fn not_reached(
    of: Option<&SaturationOutcome>,
    condition: &str,
    beside_background: bool,
) -> Option<String> {
    let trials = of.map_or(&[][..], |of| &of.trials);
    let counts = |trial: &&TrialRow| match beside_background {
        true => trial.background_share.is_some(),
        false => trial.condition == condition && !trial.generator_limited,
    };
    let tried = trials.iter().filter(counts);
    let highest = tried.max_by(|a, b| a.hz.total_cmp(&b.hz))?;
    let up_to = format!("not measured: not reached up to {:.3} kHz", highest.hz / 1e3);
    Some(match highest.background_share.filter(|_| beside_background) {
        Some(left) => format!("{up_to}, which left {:.0} %", left * 100.0),
        None => up_to,
    })
}

/// Figure 11.
fn latencies(of: &Measured) -> Vec<ReproducedRow> {
    let values: [(&str, Value); 4] = [
        ("max", |stage| stage.start_ns.max),
        ("min", |stage| stage.start_ns.min),
        ("jitter", |stage| stage.response_range_ns),
        ("latency", |stage| stage.start_ns.mean),
    ];
    let mut rows = Vec::new();
    for (system, stages) in LATENCIES {
        let source = if system.ends_with("loaded") { &of.equal } else { &of.idle };
        for (at, (name, cells)) in ["isr", "app"].into_iter().zip(stages).enumerate() {
            for ((key, ns), published) in values.into_iter().zip(cells) {
                let id = format!("wince.fig11.{system}.{name}.{key}");
                let what = format!("start of {name}, {key}, {system}");
                let row = ReproducedRow::new(id, &what, "µs", published)
                    .measured(stage(source, at, ns))
                    .note("the table's heading has ms: it is µs");
                rows.push(match (system, name, key) {
                    ("ce30", "app", "latency") => row.note("above its own maximum, 17.6"),
                    _ => row,
                });
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_an_id_of_its_own_and_a_reason_where_nothing_is_measured() {
        let none = Measured { idle: None, equal: None, polygons: None };
        let parts = [polygons(&none), figures(&none), frequencies(None, false), latencies(&none)];
        let rows: Vec<ReproducedRow> = parts.into_iter().flatten().collect();
        let mut ids: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), rows.len());
        assert!(rows.iter().all(|row| row.measured.is_none() && !row.note.is_empty()));
        let of = |row: &&ReproducedRow| {
            ["wince.fig9", "wince.fig10"].iter().any(|figure| row.id.starts_with(figure))
        };
        assert_eq!(rows.iter().filter(of).count(), 3);
        assert!(rows.iter().filter(of).all(|row| row.note.contains("one system stands for")));
    }

    #[test]
    fn what_is_called_loaded_is_one_condition_in_rows_and_figures() {
        let stage = |ns: f64| {
            let ns = punctual_analysis::summary::SummaryStats {
                min: Some(ns),
                mean: Some(ns),
                p50: Some(ns),
                max: Some(ns),
                ..Default::default()
            };
            StageRow { start_ns: ns.clone(), complete_ns: ns, ..StageRow::default() }
        };
        let row =
            |ns| Some(ResponseRow { stages: vec![stage(ns), stage(ns)], ..ResponseRow::default() });
        let of = Measured { idle: row(1_000.0), equal: row(7_000.0), polygons: None };
        let rows = [figures(&of), latencies(&of)].concat();
        let ranges =
            |row: &&ReproducedRow| row.id.starts_with("wince.fig6a") || row.id.ends_with("jitter");
        for row in rows.iter().filter(|row| !ranges(row)) {
            let loaded = row.what.contains("loaded") && !row.what.contains("unloaded");
            assert_eq!(row.measured, Some(if loaded { 7.0 } else { 1.0 }), "{row:?}");
        }
    }

    #[test]
    fn a_frequency_that_no_trial_reached_is_explained_by_what_was_tried() {
        let trial = |condition: &str, hz, generator_limited, background_share| TrialRow {
            condition: condition.to_owned(),
            hz,
            generator_limited,
            background_share,
            ..TrialRow::default()
        };
        let of = SaturationOutcome {
            source: "eventfd".to_owned(),
            cpu: 1,
            stimulus_cpu: 0,
            trial_ns: 1_000_000_000,
            unthrottled: false,
            highest_hz: 5e4,
            rows: Vec::new(),
            trials: vec![
                trial("unloaded", 2e4, false, None),
                trial("unloaded", 4e4, true, None),
                trial("loaded", 3e4, false, Some(0.62)),
            ],
            background: None,
            lost: None,
        };
        let rows = frequencies(Some(&of), false);
        let says = |id: &str, tried: &str| {
            let row = rows.iter().find(|row| row.id == id).expect("a row");
            assert!(row.measured.is_none() && row.note.contains(tried), "{}", row.note);
        };
        says(
            "wince.fig8.cenet-loaded.sf",
            "not measured: not reached up to 30.000 kHz, which left 62 %",
        );
        // Not what the generator could not raise.
        says("wince.fig8.cenet.mf-isr", "not reached up to 20.000 kHz");
        says("wince.fig8.cenet-loaded.mf-app", "not reached up to 30.000 kHz");
        let alone = frequencies(None, true);
        assert!(alone.iter().all(|row| row.note.contains("it takes a second CPU")), "{alone:?}");
    }

    #[test]
    fn the_jitter_of_figure_11_is_its_maximum_less_its_minimum_to_the_digits_printed() {
        for (system, stages) in LATENCIES {
            for cells in stages {
                let [max, min, range, _] = cells.map(|cell| cell.parse::<f64>().expect("a number"));
                assert!((max - min - range).abs() < 0.051, "{system}: {cells:?}");
            }
        }
    }
}
