//! What `measure executive` gives: what each design costs, how they stand to each other, a turn.

use punctual_lab::executive::{ExecutiveRow, LoopOverhead, Ratio};

use super::{Part, Shown};
use crate::format;
use crate::report::ExecutiveBody;

/// The tables.
pub(super) fn shown(body: &ExecutiveBody) -> Shown {
    let heads =
        ["design", ">tasks", "caches", ">release", ">dispatch", ">wait", ">cycle", ">floor", ">n"];
    let rows = body.rows.iter().map(row).collect();
    let mut parts = vec![Part::table("What each design costs", &heads, rows)];
    if !body.ratios.is_empty() {
        let heads = ["time relative to punctual", ">as measured", ">less the floor"];
        let rows = body.ratios.iter().map(ratio).collect();
        parts.push(Part::table("The designs compared", &heads, rows));
    }
    parts.extend(body.turn.as_ref().map(|of| Part::Words(turn(of))));
    Shown { id: "executive", heading: "What an executive costs", parts }
}

fn row(row: &ExecutiveRow) -> Vec<String> {
    let times = [row.release_ns, row.dispatch_ns, row.wait_ns, row.cycle_ns, row.floor_ns];
    let mut cells = vec![
        row.design.clone(),
        format::count(row.n as u64),
        if row.cold { "cold" } else { "warm" }.to_owned(),
    ];
    cells.extend(times.map(|ns| format::ns(Some(ns))));
    cells.push(format::count(row.cycles as u64));
    cells
}

/// What a ratio is of.
pub(crate) fn name(ratio: &Ratio) -> String {
    match ratio.design.as_str() {
        "punctual" => format!(
            "{} of {} against {}",
            ratio.what,
            format::count(ratio.n as u64),
            format::count(ratio.n_punctual as u64)
        ),
        design => format!("{} of {}, {design}", ratio.what, format::count(ratio.n as u64)),
    }
}

fn ratio(ratio: &Ratio) -> Vec<String> {
    vec![
        name(ratio),
        format::rate(ratio.raw),
        ratio.less_floor.map_or_else(|| "-".to_owned(), format::rate),
    ]
}

/// What a turn of the loop costs, in a sentence.
pub(crate) fn turn(turn: &LoopOverhead) -> String {
    format!(
        "loop overhead with one task and adaptive wait, {}: adds {} to the bare wait ({} instead \
         of {}, median of {} cycles)",
        format::period(turn.period_ns),
        format::ns(Some(turn.adds_ns)),
        format::ns(Some(turn.executive_ns)),
        format::ns(Some(turn.bare_ns)),
        format::count(turn.cycles as u64),
    )
}
