//! The figures of AnT's and Maruti's papers and the histograms of LinuxCNC's, drawn from what was
//! measured.
//!
//! Picks points; measures nothing.

use punctual_analysis::histogram::display::HistogramView;
use punctual_analysis::plot::bins::bins;
use punctual_lab::accuracy::{AccuracyOutcome, AccuracyRow};
use punctual_lab::executive::{ExecutiveOutcome, ExecutiveRow, RegistrationRow};
use punctual_lab::timer::{TimerOutcome, TimerRow};

use crate::report::reproduced::PaperFigure;

/// The designs that AnT's figures compare; the last is not in the paper.
const DESIGNS: [&str; 3] = ["art-linux", "ant", "punctual"];

/// A figure of costs: its name, what it shows, the cost in µs.
type Costs<'c> = (&'c str, &'c str, fn(&ExecutiveRow) -> f64);

/// Histograms of lateness, each with its name, in the same bins.
pub(super) fn histograms(figure: PaperFigure, of: &[(&str, &HistogramView)]) -> PaperFigure {
    let views: Vec<&HistogramView> = of.iter().map(|(_, view)| *view).collect();
    let bins = bins(&views, &[]);
    let edges_us: Vec<f64> = bins.edges_ns.iter().map(|ns| ns / 1e3).collect();
    of.iter().zip(&bins.counts).fold(figure, |figure, ((name, _), counts)| {
        figure.steps(&format!("here: {name}"), &edges_us, counts)
    })
}

/// AnT's figure 2, with what its table 2 says of the same distribution.
pub(super) fn distribution(of: Option<&HistogramView>) -> PaperFigure {
    let (x, y) = ("from the timer interrupt to the process, µs (log)", "wakes, of 100");
    let figure = PaperFigure::new("ant.fig2", "time from timer interrupt to process", x, y);
    let published = [(2.57, "minimum"), (2.84, "average"), (5.47, "maximum")];
    let here = of.map(|of| ("a wake after its release", of));
    histograms(figure.log([true, false]), here.as_slice())
        .points("published in table 2", published.map(|(us, name)| ([us, 0.0], name)))
}

/// AnT's figures 3 and 9 to 12. `errors` has periods in ms and errors of the mean interval in µs.
pub(super) fn ant(
    errors: Vec<[f64; 2]>,
    executive: Option<&ExecutiveOutcome>,
    registration: &[RegistrationRow],
) -> Vec<PaperFigure> {
    let error = "error of the mean interval, µs";
    let fig3 = PaperFigure::new("ant.fig3", "error of the interval", "period, ms", error)
        .line("formula: 0.4 % of the period", vec![[0.0, 0.0], [10.0, 40.0]])
        .points("published", [([1.0, 4.0], "4 µs")])
        .points("here", errors.into_iter().map(|at| (at, "")));
    let costs: [Costs<'_>; 2] = [
        ("ant.fig9", "processing time of release", |row| row.release_ns / 1e3),
        ("ant.fig10", "processing time of wait", |row| row.wait_ns / 1e3),
    ];
    let rows = executive.map_or(&[][..], |of| &of.rows);
    let cost = |(id, what, value): Costs<'_>| {
        let figure = PaperFigure::new(id, what, "tasks", "µs");
        DESIGNS.iter().fold(figure, |figure, design| {
            let own = rows.iter().filter(|row| row.design == *design && !row.cold);
            let mut points: Vec<[f64; 2]> = own.map(|row| [row.n as f64, value(row)]).collect();
            points.sort_by(|a, b| a[0].total_cmp(&b[0]));
            figure.line(&format!("here: {design}"), points)
        })
    };
    let released = |(id, designs): (&str, &[&str])| {
        let figure = PaperFigure::new(id, "tasks released at a tick", "tick of 100", "tasks");
        designs.iter().fold(figure, |figure, design| {
            let row = registration.iter().find(|row| row.design == *design);
            let of = row.map_or(&[][..], |row| &row.released);
            let points = of.iter().enumerate().map(|(at, of)| [at as f64, *of as f64]);
            figure.line(&format!("here: {design}"), points.collect())
        })
    };
    let ticks: [(&str, &[&str]); 2] =
        [("ant.fig11", &["ant", "punctual"]), ("ant.fig12", &["art-linux"])];
    let costs = costs.into_iter().map(cost);
    std::iter::once(fig3).chain(costs).chain(ticks.into_iter().map(released)).collect()
}

/// A way to wait as one of Maruti's figures has it: exit, code, cache.
type ExitChoice<'e> = (&'e str, Option<&'e str>, &'e str);

/// Maruti's figures 3 to 8: the error over the offset of the target.
pub(super) fn waits(of: &AccuracyOutcome, [plain, fenced]: [&str; 2]) -> Vec<PaperFigure> {
    let figures: [(&str, &str, ExitChoice<'_>); 6] = [
        ("maruti.fig3", "error of the loop over the offset", (plain, Some("aligned"), "warm")),
        ("maruti.fig4", "the same with cold code", (plain, Some("aligned"), "cold code")),
        ("maruti.fig5", "the same with a slower read", (fenced, Some("aligned"), "warm")),
        ("maruti.fig6", "the same with code not aligned", (plain, Some("split"), "warm")),
        ("maruti.fig7", "error without correction", ("plain", None, "warm")),
        ("maruti.fig8", "error with a computed delay", ("corrected", None, "warm")),
    ];
    let figure = |(id, what, way): (&str, &str, ExitChoice<'_>)| {
        let points = row(of, way).map(curve).unwrap_or_default();
        PaperFigure::new(id, what, "offset of the target, ticks", "error, ticks")
            .line("here: median at each offset", points)
    };
    figures.into_iter().map(figure).collect()
}

/// The row of a way to wait; those that enter late are left aside where the cache is warm.
pub(super) fn row<'o>(
    of: &'o AccuracyOutcome,
    (exit, code, cache): ExitChoice<'_>,
) -> Option<&'o AccuracyRow> {
    of.rows.iter().find(|row| {
        row.exit == exit
            && row.code.as_deref() == code
            && row.cache == cache
            && (cache != "warm" || row.lead_ticks > 0.0)
    })
}

fn curve(row: &AccuracyRow) -> Vec<[f64; 2]> {
    let at = |(offset, error): (usize, &Option<f64>)| {
        error.map(|error| [row.lead_ticks + offset as f64, error])
    };
    row.curve.iter().enumerate().filter_map(at).collect()
}

/// Maruti's figures 9 and 10: how late timers are, as a curve of quantiles.
pub(super) fn timers(of: &TimerOutcome) -> Vec<PaperFigure> {
    let figures = [
        ("maruti.fig9", "timer interrupts, CPUID behind", "cpuid"),
        ("maruti.fig10", "timer interrupts, NOPs behind", "nop"),
    ];
    let figure = |(id, what, behind): (&str, &str, &str)| {
        let figure = PaperFigure::new(id, what, "1 in … is later (log)", "lateness, ns (log)");
        let periods = [("here: each 100 µs", 100_000), ("here: each 15 µs", 15_000)];
        periods.into_iter().fold(figure.log([true; 2]), |figure, (name, period_ns)| {
            let is = |row: &&TimerRow| {
                row.path == "sleep"
                    && row.store == "array"
                    && row.background == behind
                    && row.period_ns == period_ns
            };
            figure.line(name, of.rows.iter().find(is).map(quantiles).unwrap_or_default())
        })
    };
    figures.into_iter().map(figure).collect()
}

/// How late the latest of so many wakes was, ns.
pub(super) fn quantiles(row: &TimerRow) -> Vec<[f64; 2]> {
    let ns = &row.lateness_ns;
    let all = [
        (1.0, ns.min),
        (2.0, ns.p50),
        (10.0, ns.p90),
        (100.0, ns.p99),
        (1e3, ns.p99_9),
        (row.n as f64, ns.max),
    ];
    all.into_iter().filter_map(|(one_in, ns)| Some([one_in, ns?])).collect()
}

#[cfg(test)]
mod tests {
    use punctual_analysis::histogram::Histogram;

    use super::*;

    fn view(values: &[i64]) -> HistogramView {
        let mut histogram = Histogram::new();
        values.iter().for_each(|ns| histogram.push(*ns));
        HistogramView::of(&histogram)
    }

    #[test]
    fn histograms_have_the_same_bins_and_all_that_was_counted() {
        let (idle, loaded) = (view(&[2_000, 2_000, 5_000]), view(&[90_000, 4_000, 2_100]));
        let figure = PaperFigure::new("a.fig1", "times", "µs", "wakes");
        let drawn = histograms(figure.clone(), &[("idle", &idle), ("loaded", &loaded)]);
        let edges = |at: usize| drawn.series[at].points.iter().map(|at| at[0]).collect::<Vec<_>>();
        assert_eq!(edges(0), edges(1));
        assert!(edges(0)[0] <= 2.0 && edges(0).last().is_some_and(|us| *us > 90.0));
        for series in &drawn.series {
            let columns = &series.points[..series.points.len() - 1];
            assert_eq!(columns.iter().map(|at| at[1]).sum::<f64>(), 3.0, "{series:?}");
        }
        assert!(histograms(figure, &[("none", &view(&[]))]).series.is_empty());
    }

    #[test]
    fn figure_2_has_the_published_ends_beside_what_was_measured() {
        let drawn = distribution(Some(&view(&[3_000, 4_000])));
        assert_eq!(drawn.series.len(), 2);
        assert_eq!(drawn.series[1].points, [[2.57, 0.0], [2.84, 0.0], [5.47, 0.0]]);
        assert_eq!(distribution(None).series.len(), 1, "published alone");
    }
}
