//! The page of `measure executive`: what each design costs, and how they stand to each other.

use crate::report::{ExecutiveRow, Ratio, Report, Row, Turn};
use crate::view::show;

/// The tables, one for each number of tasks, and the figures.
pub(super) fn of(report: &Report) -> String {
    let rows: Vec<&ExecutiveRow> = report.rows.iter().filter_map(Row::executive).collect();
    let mut page = String::new();
    let mut before = None;
    for row in &rows {
        if before != Some((row.n, row.cold)) {
            before = Some((row.n, row.cold));
            page += &head(row);
        }
        page += &line(row);
    }
    if !report.ratios.is_empty() {
        page += "\n  times as long as punctual's, warm: as measured, and less the floor\n";
    }
    page += &report.ratios.iter().map(ratio).collect::<String>();
    page + &report.turn.as_ref().map(turn).unwrap_or_default()
}

fn head(row: &ExecutiveRow) -> String {
    let tasks = if row.n == 1 { "task" } else { "tasks" };
    let state = if row.cold { "cold" } else { "warm" };
    let name = format!("{} {tasks}, {state}", show::count(row.n as u64));
    let floor = show::ns(Some(row.floor_ns));
    format!(
        "\n  {name:22}{:>10} {:>10} {:>10} {:>10} {:>9}\n",
        "release",
        "dispatch",
        "wait",
        "cycle",
        format!("({floor})"),
    )
}

fn line(row: &ExecutiveRow) -> String {
    format!(
        "    {:20}{:>10} {:>10} {:>10} {:>10} {:>9}\n",
        row.design,
        show::ns(Some(row.release_ns)),
        show::ns(Some(row.dispatch_ns)),
        show::ns(Some(row.wait_ns)),
        show::ns(Some(row.cycle_ns)),
        format!("n {}", show::count(row.cycles as u64)),
    )
}

fn ratio(ratio: &Ratio) -> String {
    let name = match ratio.design.as_str() {
        "punctual" => format!(
            "{} of {} against {}",
            ratio.what,
            show::count(ratio.n as u64),
            show::count(ratio.n_punctual as u64)
        ),
        design => format!("{} of {}, {design}", ratio.what, show::count(ratio.n as u64)),
    };
    let less = ratio.less_floor.map_or_else(|| "-".to_owned(), show::rate);
    let aim = match (ratio.at_least, ratio.at_most) {
        (Some(aim), _) => format!("{} or more", show::rate(aim)),
        (_, Some(aim)) => format!("{} or less", show::rate(aim)),
        _ => "-".to_owned(),
    };
    let reached = if ratio.reached { "reached" } else { "not reached" };
    format!("    {name:34}{:>8} {less:>8}   aim {aim}: {reached}\n", show::rate(ratio.raw))
}

fn turn(turn: &Turn) -> String {
    let text = format!(
        "  one turn of the loop, one task, adaptive wait, {}: adds {} to the bare wait ({} against \
         {}, median of {}); aim {} or less: {}",
        show::period(turn.period_ns),
        show::ns(Some(turn.adds_ns)),
        show::ns(Some(turn.executive_ns)),
        show::ns(Some(turn.bare_ns)),
        show::count(turn.cycles as u64),
        show::ns(Some(turn.at_most_ns)),
        if turn.reached { "reached" } else { "not reached" },
    );
    format!("\n{}\n", show::wrap(&text, 4))
}
