//! Bodies for what a person writes: limits, claims, durations, quantities, columns, loads.

use punctual_analysis::claim::ask::Ask;
use punctual_analysis::claim::dependence::Separate;
use punctual_analysis::claim::judge::{EventCount, Holds, StoppingRule, judge};
use punctual_analysis::claim::plan::Planned;
use punctual_analysis::limit::MetricLimit;
use punctual_analysis::quantity;
use punctual_analysis::recording::{Recording, RecordingConfig};
use punctual_core::time::Period;
use punctual_import::csv::{ColumnSpec, TimeUnit};
use punctual_lab::load::Loads;

use super::says_why;

/// A column that was read is written and read again as itself.
pub(super) fn column_spec(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match ColumnSpec::parse(&text) {
        Ok(spec) => {
            let unit = match spec.unit() {
                TimeUnit::Ns => "ns",
                TimeUnit::Us => "us",
                TimeUnit::Ms => "ms",
                TimeUnit::S => "s",
            };
            let written = format!("{}:{unit}", spec.name());
            assert_eq!(ColumnSpec::parse(&written).as_ref(), Ok(&spec), "{written:?}");
        }
        Err(error) => says_why(&text, &error),
    }
}

/// A list of loads that was read is shown and read again as itself.
pub(super) fn loads(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match Loads::parse(&text) {
        Ok(loads) => {
            assert_eq!(Loads::parse(&loads.to_string()).as_ref(), Ok(&loads), "{loads}");
            assert!(loads.turns().iter().all(|turn| turn.len() <= 64), "bounded: {loads}");
        }
        Err(error) => says_why(&text, &error),
    }
}

/// A claim that was read is shown and read again as itself, can be planned for, and holds on no
/// more than nothing of nothing.
pub(super) fn claim(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match Ask::parse(&text) {
        Ok(ask) => {
            assert_eq!(Ask::parse(&ask.to_string()).as_ref(), Ok(&ask), "{ask}");
            let planned = Planned::of(&ask, 1.0, 1_000_000, 60_000);
            assert!(planned.needs.is_sorted_by_key(|need| need.n), "{planned:?}");
            for ended in [StoppingRule::AsPlanned, StoppingRule::AtAnyTime] {
                let separate = Separate::Evenly(2.0);
                let (least, most, theta, ordered) = (1, 3, 0.7, true);
                let counted = EventCount { n: 60_000, least, most, theta, separate, ordered };
                let judged = judge(&ask, &Ok(counted), ended, Some(1_000_000));
                says_why("", &judged.reason);
                let nothing = judge(&ask, &Ok(EventCount { n: 0, ..counted }), ended, None);
                assert_eq!(nothing.holds, Holds::Undecided, "{ask} holds without evidence");
            }
        }
        Err(error) => says_why(&text, &error),
    }
}

/// A limit that was read is shown and read again as itself, and says of a run without samples why
/// it holds or does not.
pub(super) fn limit(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match MetricLimit::parse(&text) {
        Ok(limit) => {
            assert_eq!(MetricLimit::parse(&limit.to_string()).as_ref(), Ok(&limit), "{limit}");
            let judgement = limit.judge(&Recording::new(RecordingConfig::default()).finish(0));
            says_why("", &judgement.reason);
            assert!(
                !judgement.ok || judgement.measured.is_some(),
                "{limit} holds without evidence"
            );
        }
        Err(error) => says_why(&text, &error),
    }
}

/// A duration is a positive number of ns, and a period the same one as far as periods go.
pub(super) fn duration(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match quantity::duration(&text) {
        Ok(span) => {
            let ns = span.as_ns();
            assert!(ns > 0, "{ns} ns");
            assert_eq!(quantity::duration(&format!("{ns}ns")).map(|span| span.as_ns()), Ok(ns));
            match quantity::period(&text) {
                Ok(period) => assert_eq!(period.as_ns(), ns.unsigned_abs()),
                Err(error) => {
                    says_why(&text, &error);
                    assert!(ns.unsigned_abs() > Period::MAX_NS, "{error}");
                }
            }
        }
        Err(error) => {
            says_why(&text, &error);
            assert_eq!(quantity::period(&text).map(|period| period.as_ns()), Err(error));
        }
    }
}

/// A quantity has one dimension, and is positive and finite in it.
pub(super) fn quantity(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let read = [
        quantity::duration(&text).map(|span| span.as_ns() as f64),
        quantity::torque(&text).map(quantity::Torque::as_nm),
        quantity::angle(&text).map(quantity::Angle::as_rad),
        quantity::speed(&text).map(quantity::Speed::as_rad_s),
        quantity::rate(&text).map(quantity::Hertz::as_hz),
    ];
    let dimensions = read.iter().filter(|value| value.is_ok()).count();
    assert!(dimensions <= 1, "{dimensions} dimensions: {read:?}");
    for value in read {
        match value {
            Ok(value) => assert!(value > 0.0 && value.is_finite(), "{value}"),
            Err(error) => says_why(&text, &error),
        }
    }
    match quantity::share(&text).map(quantity::Share::as_one) {
        Ok(share) => assert!(share > 0.0 && share <= 1.0, "{share}"),
        Err(error) => says_why(&text, &error),
    }
}
