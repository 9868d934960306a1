//! The page of `measure executive`: what each design costs, and how they stand to each other.

use punctual_lab::executive::{Ratio, Row, Turn};

use crate::format;
use crate::report::ExecutiveBody;

/// The tables, one for each number of tasks, and the figures.
pub(super) fn of(body: &ExecutiveBody) -> String {
    let mut page = String::new();
    let mut before = None;
    for row in &body.rows {
        if before != Some((row.n, row.cold)) {
            before = Some((row.n, row.cold));
            page += &head(row);
        }
        page += &line(row);
    }
    if !body.ratios.is_empty() {
        page += "\n  times as long as punctual's, warm: as measured, and less the floor\n";
    }
    page += &body.ratios.iter().map(ratio).collect::<String>();
    page + &body.turn.as_ref().map(turn).unwrap_or_default()
}

fn head(row: &Row) -> String {
    let tasks = if row.n == 1 { "task" } else { "tasks" };
    let state = if row.cold { "cold" } else { "warm" };
    let name = format!("{} {tasks}, {state}", format::count(row.n as u64));
    let floor = format::ns(Some(row.floor_ns));
    format!(
        "\n  {name:22}{:>10} {:>10} {:>10} {:>10} {:>9}\n",
        "release",
        "dispatch",
        "wait",
        "cycle",
        format!("({floor})"),
    )
}

fn line(row: &Row) -> String {
    format!(
        "    {:20}{:>10} {:>10} {:>10} {:>10} {:>9}\n",
        row.design,
        format::ns(Some(row.release_ns)),
        format::ns(Some(row.dispatch_ns)),
        format::ns(Some(row.wait_ns)),
        format::ns(Some(row.cycle_ns)),
        format!("n {}", format::count(row.cycles as u64)),
    )
}

fn ratio(ratio: &Ratio) -> String {
    let name = match ratio.design.as_str() {
        "punctual" => format!(
            "{} of {} against {}",
            ratio.what,
            format::count(ratio.n as u64),
            format::count(ratio.n_punctual as u64)
        ),
        design => format!("{} of {}, {design}", ratio.what, format::count(ratio.n as u64)),
    };
    let less = ratio.less_floor.map_or_else(|| "-".to_owned(), format::rate);
    let aim = match (ratio.at_least, ratio.at_most) {
        (Some(aim), _) => format!("{} or more", format::rate(aim)),
        (_, Some(aim)) => format!("{} or less", format::rate(aim)),
        _ => "-".to_owned(),
    };
    let reached = if ratio.reached { "reached" } else { "not reached" };
    format!("    {name:34}{:>8} {less:>8}   aim {aim}: {reached}\n", format::rate(ratio.raw))
}

fn turn(turn: &Turn) -> String {
    let text = format!(
        "  one turn of the loop, one task, adaptive wait, {}: adds {} to the bare wait ({} against \
         {}, median of {}); aim {} or less: {}",
        format::period(turn.period_ns),
        format::ns(Some(turn.adds_ns)),
        format::ns(Some(turn.executive_ns)),
        format::ns(Some(turn.bare_ns)),
        format::count(turn.cycles as u64),
        format::ns(Some(turn.at_most_ns)),
        if turn.reached { "reached" } else { "not reached" },
    );
    format!("\n{}\n", format::wrap(&text, 4))
}
