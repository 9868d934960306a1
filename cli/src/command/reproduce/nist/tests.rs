//! What the rows of NIST's paper are made from.

use punctual_analysis::recording::{Recording, RecordingConfig};
use punctual_analysis::summary::SummaryStats;
use punctual_core::sample::Sample;

use super::torques::{MOTORS, torques};
use super::*;
use crate::report::{Approach, Setup};

#[test]
fn the_formulas_give_what_the_paper_prints_where_it_is_right() {
    let rows = loading(None, &[]);
    let value = |id: &str| rows.iter().find(|row| row.id == id).and_then(|row| row.formula);
    assert_eq!(value("nist.eq2"), Some(50.0));
    assert!(value("nist.eq3").is_some_and(|of| (of - 19.0).abs() < 1e-9));
    assert!(value("nist.eq1").is_some_and(|of| (of - 19.0).abs() < 1e-9));
    for motor in &MOTORS {
        for row in torques(motor, [None, None]) {
            let published: f64 = row.published.trim_end_matches('%').parse().expect("a number");
            let off = published / row.formula.expect("equation 7") - 1.0;
            let bounds = if row.id.contains(".Tu") { 0.05..0.13 } else { -0.03..0.03 };
            assert!(bounds.contains(&off), "{}: {off}", row.id);
        }
    }
}

/// A run of these latenesses.
fn run(latenesses_ns: &[i64], cpu_load: f64, hop_ns: u64) -> Run {
    let mut recording = Recording::new(RecordingConfig::default());
    for (cycle, &ns) in (0..).zip(latenesses_ns) {
        let lateness = Span::from_ns(ns);
        recording.push(&Sample { cycle, lateness, ..Sample::default() });
    }
    let approach = Approach {
        hop_ns: Some(hop_ns),
        hops: None,
        margin_ns: 2_000,
        late_share: None,
        trials_late: None,
        reachable: None,
        extrapolated: None,
        resumed: None,
        paused_share: None,
    };
    let run = Run::recorded("rearm".to_owned(), Setup::default(), recording.finish(0));
    Run { cpu_load: Some(cpu_load), approach: Some(approach), ..run }
}

#[test]
fn a_load_stands_beside_the_interval_that_it_was_measured_at() {
    let rearm = run(&[5, 6, 7], 0.267, 86_800);
    let rows = loading(Some(&rearm), &[[25.0, 44.0], [50.0, 34.4], [75.0, 28.0]]);
    let row = |id: &str| rows.iter().find(|row| row.id == id).expect("a row");
    assert_eq!(row("nist.eq1").measured, Some(34.4));
    let own = row("nist.eq1.own");
    assert!(own.what.contains("86.8 µs for S = 15.1 µs"), "{own:?}");
    assert!(own.measured.is_some_and(|of| (of - 26.7).abs() < 1e-9), "{own:?}");
    assert!(own.formula.is_some_and(|of| (of - 31.7).abs() < 0.05), "{own:?}");
    assert_eq!(row("nist.eq2").measured, Some(86.8));
    assert_eq!(loading(Some(&rearm), &[])[0].measured, None);
}

#[test]
fn one_stall_reverses_the_range_of_figure_6_and_not_its_spreads() {
    let idle: Vec<i64> = (0..2_000).map(|at| 20_000 + at % 1_000 * 10).collect();
    let mut rearm: Vec<i64> = (0..2_000).map(|at| 5 + at % 100).collect();
    rearm[1_234] = 400_000;
    let rows = compensation(Some(&run(&idle, 0.1, 1)), Some(&run(&rearm, 0.1, 1)));
    let us = |id: &str| {
        let row = rows.iter().find(|row| row.id == format!("nist.fig6.{id}")).expect("a row");
        row.measured.unwrap_or_else(|| panic!("{row:?}"))
    };
    for key in ["p99", "p90"] {
        let [plain, with] =
            ["uncompensated", "compensated"].map(|side| us(&format!("{side}.{key}")));
        assert!(plain > 8.0 && with < 0.11, "{key}: {plain} {with}");
    }
    assert!(us("factor") > 80.0);
}

#[test]
fn figure_5_has_the_curve_its_minimum_and_what_was_measured() {
    let figure = load_figure(vec![[50.0, 31.0]]);
    let points: Vec<usize> = figure.series.iter().map(|of| of.points.len()).collect();
    assert_eq!(points, [56, 1, 1]);
    let least = figure.series[0].points.iter().min_by(|a, b| a[1].total_cmp(&b[1]));
    let [at, share] = *least.expect("a curve");
    assert!((at - 50.0).abs() < 1e-9 && (share - 19.0).abs() < 1e-9, "{at} {share}");
}

#[test]
fn a_refused_scheduler_is_no_measurement_and_the_other_is_one() {
    let lateness_ns = SummaryStats {
        min: Some(2_000.0),
        p50: Some(5_000.0),
        max: Some(12_000.0),
        ..SummaryStats::default()
    };
    let row = |path: &str, store: &str| TimerRow {
        path: path.to_owned(),
        store: store.to_owned(),
        period_ns: 500_000,
        background: "none".to_owned(),
        n: 40,
        missed: 0,
        lateness_ns: lateness_ns.clone(),
        cpu_share: None,
    };
    let rows = vec![row("sleep", "array"), row("sleep", "hot")];
    let (cpu, policy) = (1, "SCHED_FIFO".to_owned());
    let mut of = TimerOutcome { cpu, policy, priority: Some(90), rows, deadline_refused: Some(1) };
    for loading in &LOADINGS {
        let [fifo, deadline] = ranges(loading, Some(&of));
        assert_eq!((fifo.measured, deadline.measured), (Some(10.0), None));
        assert_eq!(fifo.what.replace("FIFO", "DEADLINE"), deadline.what);
        assert!(fifo.note.contains("40 wakes") && !fifo.note.contains("errno"), "{fifo:?}");
        assert!(deadline.note.contains("not measured: "), "{deadline:?}");
        assert!(deadline.note.contains("errno 1"), "{deadline:?}");
    }
    of.rows.push(row("deadline", "array"));
    let [fifo, deadline] = ranges(&LOADINGS[0], Some(&of));
    assert_eq!(fifo.measured, deadline.measured);
    let figure = loadings_figure(&[Some(&of), None, None]);
    let names: Vec<&str> = figure.series.iter().map(|of| of.name.as_str()).collect();
    let both = ["SCHED_FIFO", "SCHED_DEADLINE"].map(|of| format!("here: {of}, normal"));
    assert_eq!(names, both);
    assert_eq!(figure.series[0].points, [[1.0, 2e3], [2.0, 5e3], [40.0, 12e3]]);
}

#[test]
fn the_schematic_says_what_stands_for_it() {
    let row = schematic();
    assert_eq!((row.id.as_str(), row.measured), ("nist.fig4", None));
    assert!(row.note.contains("schematic") && row.note.contains("--wait rearm"), "{row:?}");
}

#[test]
fn a_large_error_of_today_loses_all_torque_and_no_more() {
    let rows = torques(&MOTORS[0], [Some(8_000.0), Some(0.1)]);
    assert_eq!(rows[0].measured, Some(23.0));
}
