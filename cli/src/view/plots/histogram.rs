//! Histograms of lateness: log both ways, in steps, so that a single late cycle is seen next to
//! millions.

use punctual_plot::chart::{Chart, ChartSeries, Mark};

use super::axes::{Axes, Size};
use crate::format;
use crate::pages::{Line, Page, Panel};

/// The chart of a panel.
pub(super) fn chart(page: &Page, axes: &Axes, panel: &Panel, size: Size) -> Chart {
    let series = |line: &Line| {
        let steps = Mark::Steps {
            edges: page.bins.edges_ns.clone(),
            values: page.bins.counts[line.drawn].iter().map(|&count| count as f64).collect(),
        };
        let open = Mark::Spans(beyond(page).into_iter().collect());
        ChartSeries { name: line.name.clone(), ink: line.ink, marks: vec![open, steps] }
    };
    let parts: Vec<String> = panel.lines.iter().map(|line| described(page, line)).collect();
    Chart {
        title: format!("Histogram of lateness: {}", panel.title),
        titled: false,
        description: parts.join(" "),
        size,
        x: axes.bins.clone(),
        y: axes.count.clone(),
        series: panel.lines.iter().map(series).collect(),
    }
}

/// The bin of what is beyond the end of a histogram: from, to, its name.
pub(crate) fn beyond(page: &Page) -> Option<(f64, f64, String)> {
    let name = format!("beyond {}", format::period(page.bins.open_ns?.round() as u64));
    let [.., from, to] = page.bins.edges_ns[..] else { return None };
    Some((from, to, name))
}

fn described(page: &Page, line: &Line) -> String {
    let run = page.run(line);
    let early = match page.bins.not_positive[line.drawn] {
        0 => String::new(),
        early => format!(" {} were early or on time and are not drawn.", format::count(early)),
    };
    let far = match (page.bins.overflow[line.drawn], beyond(page)) {
        (0, _) | (_, None) => String::new(),
        (far, Some((_, _, name))) => {
            format!(" The last bar: {} {name}, with unknown values.", format::count(far))
        }
    };
    let clusters: Vec<String> = run
        .outcome
        .histogram
        .clusters
        .iter()
        .map(|c| format!("{} ({})", format::ns(Some(c.peak_ns)), format::share(c.share)))
        .collect();
    format!(
        "{}: {} releases, half of them at most {} late, the worst {}; {}.{early}{far}",
        line.name,
        format::count(run.outcome.releases()),
        format::ns(run.outcome.lateness_ns.p50),
        format::largest(run.outcome.lateness_ns.max, run.outcome.unknown()),
        match clusters.as_slice() {
            [] => "no separate peaks".to_owned(),
            [one] => format!("one peak, at {one}"),
            several => format!("peaks at {}", several.join(", ")),
        },
    )
}
