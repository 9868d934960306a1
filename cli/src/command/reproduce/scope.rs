//! The figures of the paper on Windows CE: polygons, traces of an oscilloscope, frequencies,
//! latencies.
//!
//! Picks points; measures nothing.

use punctual_lab::response::{ResponseRow, StageRow};

use super::wince::{FREQUENCIES, LATENCIES, Measured, POLYGONS, kilohertz};
use crate::report::reproduced::averaged;
use crate::report::reproduced::{PaperFigure, ReproducedRow};

/// What a figure of traces shows: single answers, or the average of all.
#[derive(Clone, Copy)]
enum Shown {
    Single,
    Averaged,
    /// The same, with the earliest and the latest of this system in figure 11.
    BesidePublished(&'static str),
}

/// A figure of traces: its number, what it shows, and the answers of both stages.
type Traces<'m> = (&'static str, &'static str, Shown, [&'m Option<ResponseRow>; 2]);

/// All of them; `rows` are those of figures 8 and 11.
pub(super) fn figures(of: &Measured, rows: &[ReproducedRow]) -> Vec<PaperFigure> {
    let (idle, equal) = (&of.idle, &of.equal);
    let here = [equal, equal];
    // Figures 9 and 10 are of three systems; here one stands for all.
    let traces: [Traces<'_>; 8] = [
        ("5", "single answers, unloaded", Shown::Single, [idle, idle]),
        ("6a", "averaged answers, unloaded", Shown::Averaged, [idle, idle]),
        ("6b", "single answers at equal priority", Shown::Single, [equal, equal]),
        ("6c", "averaged answers at equal priority", Shown::Averaged, [equal, equal]),
        ("7", "averaged answers, loaded", Shown::Averaged, here),
        ("9a", "this system beside CE 2.12, loaded", Shown::BesidePublished("ce212-loaded"), here),
        ("9b", "this system beside CE 3.0, loaded", Shown::BesidePublished("ce30-loaded"), here),
        ("10", "this system beside CE.NET, loaded", Shown::BesidePublished("cenet-loaded"), here),
    ];
    let mut drawn = vec![polygons(of.polygons)];
    drawn.extend(traces.iter().map(trace));
    drawn.push(frequencies(rows));
    drawn.push(latencies(of));
    drawn
}

/// Answers as the oscilloscope shows them.
fn trace((number, what, shown, rows): &Traces<'_>) -> PaperFigure {
    let id = format!("wince.fig{number}");
    let stages = rows.iter().enumerate().filter_map(|(at, row)| {
        let stage = row.as_ref()?.stages.get(at)?;
        Some((format!("stage {}", at + 1), stage))
    });
    match shown {
        Shown::Single => single(&id, what, stages),
        Shown::Averaged => averaged(&id, what, stages),
        Shown::BesidePublished(system) => {
            let figure = averaged(&id, what, stages);
            let cells = LATENCIES.iter().find(|(name, _)| name == system);
            let ends = cells.into_iter().flat_map(|(_, stages)| {
                ["ISR", "APP"].into_iter().zip(stages).flat_map(
                    |(stage, [latest, earliest, ..])| {
                        // Before the earliest none has started; at the latest all have.
                        [(earliest, 0.0, "earliest"), (latest, 1.0, "latest")]
                            .map(|(cell, share, end)| (cell, share, format!("{stage} {end}")))
                    },
                )
            });
            let ends: Vec<([f64; 2], String)> = ends
                .filter_map(|(cell, share, name)| Some(([cell.parse().ok()?, share], name)))
                .collect();
            let published = ends.iter().map(|(at, name)| (*at, name.as_str()));
            figure.points("published in figure 11", published)
        }
    }
}

/// The last single answers, one above the other in the order of time.
fn single<'s>(
    id: &str,
    what: &str,
    stages: impl Iterator<Item = (String, &'s StageRow)>,
) -> PaperFigure {
    let (x, y) = ("µs after the stimulus (log)", "answer, of the last ones");
    let figure = PaperFigure::new(id, what, x, y).log([true, false]);
    stages.fold(figure, |figure, (name, stage)| {
        let single = stage.trace.iter().flat_map(|trace| trace.single_ns.iter().enumerate());
        figure.points(&name, single.map(|(at, ns)| ([*ns as f64 / 1e3, at as f64 + 1.0], "")))
    })
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
    use punctual_lab::response::StageTrace;

    use super::*;

    #[test]
    fn what_is_published_is_drawn_where_nothing_is_measured() {
        let none = Measured { idle: None, equal: None, polygons: None };
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
        for id in ["wince.fig9a", "wince.fig9b", "wince.fig10"] {
            assert_eq!(series(id), [4], "earliest and latest of both stages: {id}");
        }
    }

    #[test]
    fn each_figure_of_traces_has_its_own_id_and_the_answers_that_it_is_of() {
        let stage = |ns: i64| StageRow {
            trace: Some(StageTrace {
                step_ns: 5_000.0,
                started: vec![0.0, 1.0],
                beyond: 0,
                single_ns: vec![ns, ns + 500],
            }),
            ..StageRow::default()
        };
        let row = |ns: i64| {
            Some(ResponseRow { stages: vec![stage(ns), stage(ns + 100)], ..ResponseRow::default() })
        };
        let (idle, equal) = (row(1_000), row(3_000));
        let drawn = figures(&Measured { idle, equal, polygons: None }, &[]);
        let mut ids: Vec<&str> = drawn.iter().map(|figure| figure.id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), drawn.len());
        let series = |id: &str, name: &str| {
            let figure = drawn.iter().find(|figure| figure.id == id).expect("drawn");
            let series = figure.series.iter().filter(|series| series.name == name);
            series.map(|series| series.points.clone()).next().expect("a series")
        };
        assert_eq!(series("wince.fig5", "stage 1"), [[1.0, 1.0], [1.5, 2.0]]);
        assert_eq!(series("wince.fig6b", "stage 2"), [[3.1, 1.0], [3.6, 2.0]]);
        let singles = |id: &str| series(id, "single ones")[0][0];
        let first =
            ["6a", "6c", "7", "9a", "9b", "10"].map(|of| singles(&format!("wince.fig{of}")));
        assert_eq!(first, [1.0, 3.0, 3.0, 3.0, 3.0, 3.0]);
        let published = series("wince.fig9a", "published in figure 11");
        assert_eq!(published, [[3.9, 0.0], [11.0, 1.0], [117.0, 0.0], [201.0, 1.0]]);
    }
}
