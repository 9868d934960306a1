//! The figures of the paper on Windows CE: polygons, traces of an oscilloscope, frequencies,
//! latencies.
//!
//! Picks points; measures nothing.

use punctual_lab::response::{ResponseRow, StageRow};

use super::wince::{FREQUENCIES, LATENCIES, Measured, POLYGONS, kilohertz};
use crate::report::reproduced::{PaperFigure, ReproducedRow};
use crate::report::traces::averaged;

/// All of them; `rows` are those of figures 8 and 11.
pub(super) fn figures(of: &Measured, rows: &[ReproducedRow]) -> Vec<PaperFigure> {
    let stage = |row: &'_ Option<ResponseRow>, at: usize| -> Option<StageRow> {
        row.as_ref()?.stages.get(at).cloned()
    };
    let (idle, loaded, equal) = (&of.idle, &of.loaded, &of.equal);
    let isr = "stage 1";
    let app = "stage 2";
    // Figures 9 and 10 are of three systems; here is one.
    let traces = [
        ("wince.fig5", "averaged traces, unloaded", [stage(idle, 0), stage(idle, 1)]),
        ("wince.fig6", "averaged traces at equal priority", [stage(equal, 0), stage(equal, 1)]),
        ("wince.fig7", "averaged traces, loaded", [stage(loaded, 0), stage(loaded, 1)]),
        ("wince.fig9", "overall performance, loaded", [stage(loaded, 0), stage(equal, 1)]),
    ];
    let trace = |(id, what, [first, second]): (&str, &str, [Option<StageRow>; 2])| {
        let named = |name: &str, row: &'_ Option<StageRow>| Some((name.to_owned(), row.clone()?));
        let both = [named(isr, &first), named(app, &second)];
        averaged(id, what, both.iter().flatten().map(|(name, row)| (name.clone(), row)))
    };
    let mut drawn = vec![polygons(of.polygons)];
    drawn.extend(traces.into_iter().map(trace));
    drawn.push(frequencies(rows));
    drawn.push(latencies(of));
    drawn
}

/// Figure 3.
fn polygons(here: Option<f64>) -> PaperFigure {
    let published = POLYGONS
        .iter()
        .enumerate()
        .filter_map(|(at, (key, _, text))| Some(([at as f64 + 1.0, text.parse().ok()?], *key)));
    let x = "system, in the order of the figure";
    PaperFigure::new("wince.fig3", "polygons per second", x, "polygons/s (log)")
        .log([false, true])
        .points("published", published)
        .points("here", here.map(|rate| ([POLYGONS.len() as f64 + 1.0, rate], "here")))
}

/// Figure 8: published against measured, at equal x.
fn frequencies(rows: &[ReproducedRow]) -> PaperFigure {
    let (mut published, mut here) = (Vec::new(), Vec::new());
    for (at, (system, cells)) in FREQUENCIES.iter().enumerate() {
        for (key, cell) in ["mf-isr", "mf-app", "sf"].iter().zip(cells) {
            let x = at as f64 + 1.0;
            published.extend(kilohertz(cell).map(|khz| ([x, khz], format!("{system} {key}"))));
            let id = format!("wince.fig8.{system}.{key}");
            let row = rows.iter().find(|row| row.id == id);
            here.extend(row.and_then(|row| row.measured).map(|khz| ([x + 0.3, khz], "")));
        }
    }
    let what = "first frequency that loses, and where the background stops";
    PaperFigure::new("wince.fig8", what, "system, in the order of the figure", "kHz (log)")
        .log([false, true])
        .points("published", published.iter().map(|(at, label)| (*at, label.as_str())))
        .points("here", here)
}

/// Figure 11: from the earliest to the latest start, published and here.
fn latencies(of: &Measured) -> PaperFigure {
    let what = "earliest, mean and latest start of the application";
    let figure = PaperFigure::new("wince.fig11", what, "system", "µs (log)").log([false, true]);
    let published = LATENCIES.iter().enumerate().flat_map(|(at, (system, [_, app]))| {
        let [latest, earliest, _, mean] = app.map(|cell| cell.parse::<f64>().ok());
        let x = at as f64 + 1.0;
        let values = [(latest, *system), (earliest, ""), (mean, "")];
        values.into_iter().filter_map(move |(us, label)| Some(([x, us?], label)))
    });
    let here = [(&of.idle, "here, unloaded"), (&of.equal, "here, loaded")];
    let here = here.into_iter().enumerate().flat_map(|(at, (row, label))| {
        let ns = row.as_ref().and_then(|row| row.stages.get(1)).map(|stage| &stage.start_ns);
        let x = (LATENCIES.len() + 1 + at) as f64;
        let values = ns.map(|ns| [(ns.max, label), (ns.min, ""), (ns.mean, "")]);
        let point = move |(ns, label): (Option<f64>, _)| Some(([x, ns? / 1e3], label));
        values.into_iter().flatten().filter_map(point)
    });
    figure.points("published", published).points("here", here)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_published_is_drawn_where_nothing_is_measured() {
        let none = Measured { idle: None, loaded: None, equal: None, polygons: None };
        let drawn = figures(&none, &[]);
        let series = |id: &str| {
            let figure = drawn.iter().find(|figure| figure.id == id).expect("drawn");
            figure.series.iter().map(|series| series.points.len()).collect::<Vec<_>>()
        };
        assert_eq!(series("wince.fig3"), [POLYGONS.len()]);
        assert_eq!(series("wince.fig11"), [3 * LATENCIES.len()]);
        // Three cells are empty, one is "N/A".
        assert_eq!(series("wince.fig8"), [3 * FREQUENCIES.len() - 4]);
        assert!(series("wince.fig5").is_empty());
    }
}
