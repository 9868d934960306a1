//! The page of `measure executive`: what each design costs, and how they stand to each other.

use punctual_lab::executive::{ExecutiveRow, LoopOverhead, Ratio};

use crate::format;
use crate::report::ExecutiveBody;
use crate::view::kinds::executive;

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
        page += "\n  time relative to punctual, warm: as measured, and less the floor\n";
    }
    page += &body.ratios.iter().map(ratio).collect::<String>();
    page + &body.turn.as_ref().map(turn).unwrap_or_default()
}

fn head(row: &ExecutiveRow) -> String {
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

fn line(row: &ExecutiveRow) -> String {
    format!(
        "    {:20}{:>10} {:>10} {:>10} {:>10} {:>9}\n",
        format::plain(&row.design),
        format::ns(Some(row.release_ns)),
        format::ns(Some(row.dispatch_ns)),
        format::ns(Some(row.wait_ns)),
        format::ns(Some(row.cycle_ns)),
        format!("n {}", format::count(row.cycles as u64)),
    )
}

fn ratio(ratio: &Ratio) -> String {
    let name = format::plain(&executive::name(ratio));
    let less = ratio.less_floor.map_or_else(|| "-".to_owned(), format::rate);
    format!("    {name:34}{:>8} {less:>8}\n", format::rate(ratio.raw))
}

fn turn(turn: &LoopOverhead) -> String {
    format!("\n{}\n", format::wrap(&format!("  {}", executive::turn(turn)), 4))
}
