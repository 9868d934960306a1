//! Distributions by name: a box each below each other, so that they are compared by eye.
//!
//! For the kinds of results that have quantiles and no samples.

use punctual_analysis::summary::SummaryStats;
use punctual_plot::axis::Axis;
use punctual_plot::chart::{Chart, ChartSeries, Mark, QuantileBox};

use super::{ALONE, ns};
use crate::format;
use crate::pages::{self, Page};

/// The key to boxes of times.
const TIMES: &str = "box: least to 90 %, thick line: median, thin line: to 99.9 % (of few \
                     values to 99 % or the worst), dot: the worst";

/// The share of a name's room that all its boxes take together, in (0, 1).
const ROOM: f64 = 0.8;
/// The height of a box, of what is between two names, and of all around the frame, pixels.
const BOX: f64 = 13.0;
const BETWEEN: f64 = 9.0;
const AROUND: f64 = 116.0;

/// A chart of distributions.
pub(crate) struct Boxes {
    /// The title of the chart.
    pub(crate) title: String,
    /// Its description, in words, for those who do not see it.
    pub(crate) description: String,
    /// The key to its boxes.
    pub(crate) reading: &'static str,
    /// The quantity, with its unit or scale.
    pub(crate) quantity: &'static str,
    /// True for a log scale.
    pub(crate) is_log: bool,
    /// A number of it in words.
    pub(crate) words: fn(f64) -> String,
    /// The names, from top to bottom.
    pub(crate) names: Vec<String>,
    /// The series, each of which has a box of its own at each name.
    pub(crate) series: Vec<BoxSeries>,
    /// A value that stands across all names: its own name, and where it is.
    pub(crate) bound: Option<(&'static str, f64)>,
}

/// One box for each name that has it.
pub(crate) struct BoxSeries {
    /// Its name in the legend.
    pub(crate) name: String,
    /// The boxes, each with the number of its name, counted from 0.
    pub(crate) boxes: Vec<(usize, QuantileBox)>,
}

impl Boxes {
    /// A chart of times, on a log scale.
    pub(crate) fn of_times(title: &str, quantity: &'static str, names: Vec<String>) -> Self {
        Self {
            title: title.to_owned(),
            description: String::new(),
            reading: TIMES,
            quantity,
            is_log: true,
            words: ns,
            names,
            series: Vec::new(),
            bound: None,
        }
    }

    /// The picture; `None` where there is no box.
    pub(crate) fn chart(self) -> Option<Chart> {
        let boxes = || self.series.iter().flat_map(|series| &series.boxes).map(|(_, own)| own);
        let bound = self.bound.iter().map(|(_, at)| *at);
        let shown = |at: &f64| at.is_finite() && (!self.is_log || *at > 0.0);
        let ends = boxes().flat_map(|own| [own.line.0, own.line.1]);
        let far = boxes().filter_map(|own| own.far).filter(|_| self.is_log);
        let marks: Vec<f64> = ends.chain(far).chain(bound).filter(shown).collect();
        let (low, high) =
            (marks.iter().copied().reduce(f64::min)?, marks.iter().copied().reduce(f64::max)?);
        let room = (high - low).max(f64::MIN_POSITIVE) * 0.06;
        let x = match self.is_log {
            true => Axis::log(self.quantity, low * 0.8, high * 1.3, self.words),
            false => Axis::even(self.quantity, low - room, high + room, 8, self.words),
        };
        let beyond = boxes().filter_map(|own| own.far).filter(|far| !x.holds(*far)).count();
        let mut notes = vec![self.reading.to_owned()];
        if beyond > 0 {
            notes.push(format!("the largest of {beyond} boxes lie beyond the scale"));
        }
        let (count, names) = (self.series.len().max(1) as f64, self.names.len() as f64);
        let mut series: Vec<ChartSeries> = self
            .series
            .into_iter()
            .enumerate()
            .map(|(ink, own)| {
                let half = ROOM / 2.0 / count;
                let aside = (ink as f64 + 0.5) / count * ROOM - ROOM / 2.0;
                let placed = own.boxes.into_iter().map(|(at, own)| QuantileBox {
                    place: at as f64 + aside,
                    half: half * 0.85,
                    far: own.far.filter(|far| x.holds(*far)),
                    ..own
                });
                ChartSeries { name: own.name, ink, marks: vec![Mark::Boxes(placed.collect())] }
            })
            .collect();
        if let Some((name, at)) = self.bound {
            let marks = vec![Mark::Line(vec![(at, -0.5), (at, names - 0.5)])];
            series.push(ChartSeries { name: name.to_owned(), ink: series.len(), marks });
        }
        Some(Chart {
            title: self.title,
            titled: false,
            description: self.description,
            size: (ALONE.0, AROUND + names * (count * BOX + BETWEEN)),
            y: Axis::names("", self.names),
            x,
            series,
            notes,
        })
    }
}

/// The most results that are drawn: a chart of more is too high to be looked at.
const RESULTS_DRAWN: usize = 200;

/// Many results, the latest first: each with a box of its last run without load, and of its last
/// one under load. `None` where none has data.
pub(crate) fn of_results(page: &Page) -> Option<Chart> {
    let results = &page.results;
    let order = pages::latest_first(results);
    let drawn = &order[..order.len().min(RESULTS_DRAWN)];
    let names = drawn.iter().map(|&result| results[result].label.clone()).collect();
    let series = |name: &str, loaded: bool| {
        let placed = |(result, run): (usize, usize)| {
            let at = drawn.iter().position(|other| *other == result)?;
            let times = &results[result].report.body.runs()[run].outcome.lateness_ns;
            Some((at, of_times(times)?))
        };
        let boxes = pages::last_runs(results, loaded).into_iter().filter_map(placed).collect();
        BoxSeries { name: name.to_owned(), boxes }
    };
    let series = [series("without load", false), series("under load", true)];
    let left_out = match order.len() - drawn.len() {
        0 => String::new(),
        more => format!(" {} more are in the table.", format::count(more as u64)),
    };
    let description = format!(
        "{} results, those with the latest wakes first: by what one wake in 1000 was later than, \
         then by the worst.{left_out}",
        format::count(order.len() as u64)
    );
    let series = series.into_iter().filter(|series| !series.boxes.is_empty()).collect();
    let title = "Lateness of every result";
    Boxes { description, series, ..Boxes::of_times(title, "lateness (log)", names) }.chart()
}

/// The box of times, as far as their n supports its parts; `None` without any.
pub(crate) fn of_times(times: &SummaryStats) -> Option<QuantileBox> {
    let (least, worst) = (times.min?, times.max?);
    let body = times.p90.unwrap_or(worst);
    let end = times.p99_9.or(times.p99).unwrap_or(worst);
    Some(QuantileBox {
        place: 0.0,
        half: 0.0,
        line: (least, end),
        body: (least, body),
        middle: times.p50.or(times.mean).unwrap_or(body),
        far: (worst > end).then_some(worst),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(values: [f64; 5]) -> SummaryStats {
        let [min, p50, p90, p99_9, max] = values.map(Some);
        SummaryStats { min, p50, p90, p99_9, max, ..SummaryStats::default() }
    }

    fn boxes(rows: &[SummaryStats]) -> Boxes {
        let names = (0..rows.len()).map(|at| format!("name {at}")).collect();
        let own = rows.iter().enumerate().filter_map(|(at, row)| Some((at, of_times(row)?)));
        let series = vec![BoxSeries { name: "late".to_owned(), boxes: own.collect() }];
        Boxes { series, ..Boxes::of_times("Times", "lateness (log)", names) }
    }

    #[test]
    fn a_box_has_the_quantiles_that_n_supports() {
        let known = of_times(&times([1.0, 3.0, 5.0, 9.0, 40.0])).expect("times");
        assert_eq!((known.line, known.body), ((1.0, 9.0), (1.0, 5.0)));
        assert_eq!((known.middle, known.far), (3.0, Some(40.0)));
        let few = SummaryStats { min: Some(2.0), max: Some(7.0), ..SummaryStats::default() };
        let few = of_times(&few).expect("two");
        assert_eq!((few.line, few.body, few.far), ((2.0, 7.0), (2.0, 7.0), None));
        assert_eq!(of_times(&SummaryStats::default()), None);
    }

    #[test]
    fn every_name_has_its_box_and_all_of_it_lies_on_the_scale() {
        let rows = [times([100.0, 200.0, 300.0, 4e3, 5e6]), times([50.0, 60.0, 70.0, 80.0, 90.0])];
        let chart = boxes(&rows).chart().expect("boxes");
        let names: Vec<&str> =
            chart.y.ticks.iter().filter_map(|tick| tick.label.as_deref()).collect();
        assert_eq!(names, ["name 0", "name 1"]);
        let [Mark::Boxes(drawn)] = &chart.series[0].marks[..] else { panic!("boxes") };
        for (at, own) in drawn.iter().enumerate() {
            assert!((own.place - at as f64).abs() < 0.5);
            let ends = [own.line.0, own.line.1, own.body.0, own.body.1, own.middle];
            assert!(ends.into_iter().chain(own.far).all(|at| chart.x.holds(at)), "{own:?}");
        }
        assert_eq!(chart.notes, [TIMES]);
        assert!(
            boxes(&[]).chart().is_none() && boxes(&[SummaryStats::default()]).chart().is_none()
        );
    }

    #[test]
    fn on_an_even_scale_one_stall_leaves_the_boxes_readable_and_is_counted() {
        let rows = [times([1.0, 2.0, 3.0, 4.0, 9e6]), times([1.0, 2.0, 3.0, 4.0, 5.0])];
        let even = Boxes { is_log: false, words: |at| format!("{at}"), ..boxes(&rows) };
        let chart = even.chart().expect("boxes");
        assert!(chart.x.high < 10.0, "{:?}", chart.x);
        assert!(chart.notes.iter().any(|note| note.contains("beyond the scale")), "{chart:?}");
    }
}
