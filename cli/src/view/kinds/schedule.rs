//! Documents of `run --check`: the places of units in their frame, and the phases of tasks.

use std::fmt::Display;

use punctual_document::{Block, Table, numbers, words};
use punctual_engine::calendar::CalendarPlan;
use punctual_engine::process::PlacedTask;

use crate::format;

/// The least width of the name of a unit or task.
const NAME: usize = 12;

/// The releases that the supervisor of a file would make.
pub(crate) struct Schedule<'s> {
    /// Where the grid lies on CLOCK_MONOTONIC; `None` where that is found when it runs.
    pub(crate) phase_ns: Option<u64>,
    pub(crate) calendar: Option<&'s CalendarPlan>,
    /// True where the places were computed, rather than given.
    pub(crate) is_made: bool,
    pub(crate) tasks: &'s [PlacedTask],
}

/// The places, then the tasks, then what a person should know before running it.
pub(crate) fn document(schedule: &Schedule<'_>, cautions: &[impl Display]) -> Vec<Block> {
    let mut blocks = Vec::new();
    if let Some(calendar) = schedule.calendar {
        blocks.push(Block::words(frame(calendar, schedule.is_made)));
        blocks.push(Block::Break);
        blocks.push(places(calendar));
        blocks.push(Block::Break);
    }
    blocks.push(Block::words(grid(schedule)));
    blocks.push(Block::Break);
    blocks.push(tasks(schedule.tasks));
    blocks.extend(cautions.iter().map(|caution| Block::words_at(1, caution.to_string())));
    blocks
}

fn frame(calendar: &CalendarPlan, is_made: bool) -> String {
    let places = calendar.units().len();
    format!(
        "frame of {}: {} {}, {}, {} of the frame in budgets",
        format::period(calendar.frame().as_ns()),
        format::count(places as u64),
        if places == 1 { "place" } else { "places" },
        if is_made { "made to meet all deadlines" } else { "as the file gives them" },
        format::share(calendar.load()),
    )
}

/// A row a place: from when to when, how long that is before its deadline, and how long until the
/// next one begins.
fn places(calendar: &CalendarPlan) -> Block {
    let columns = [
        words("unit").at_least(NAME),
        words("released in"),
        numbers("from").at_least(7),
        numbers("to").at_least(7),
        numbers("deadline"),
        numbers("slack").at_least(7),
        numbers("free after"),
    ];
    let starts: Vec<u64> = calendar.units().map(|(_, place)| place.ready_ns).collect();
    let frame_ns = calendar.frame().as_ns();
    // Behind the last place comes the first one of the next frame.
    let next = starts.iter().skip(1).copied().chain(starts.first().map(|first| frame_ns + first));
    let row = |((unit, place), next_ns): ((&str, &punctual_core::calendar::UnitSlot), u64)| {
        let end_ns = place.ready_ns + place.budget_ns;
        vec![
            unit.to_owned(),
            calendar.name(place.task as usize).to_owned(),
            at(place.ready_ns),
            at(end_ns),
            at(place.deadline_ns),
            at(place.deadline_ns - end_ns),
            at(next_ns - end_ns),
        ]
    };
    let rows = calendar.units().zip(next).map(row).collect();
    Table::new("Places in the frame", columns, rows).bare().into()
}

/// A time that may be nothing, exact.
fn at(ns: u64) -> String {
    if ns == 0 { "0".to_owned() } else { format::period(ns) }
}

fn grid(schedule: &Schedule<'_>) -> String {
    let at = match schedule.phase_ns {
        Some(ns) => format!("at {} of CLOCK_MONOTONIC", at(ns)),
        None => "away from the kernel's tick, where that is found when it runs".to_owned(),
    };
    format!("the grid begins {at}; priorities are SCHED_FIFO")
}

fn tasks(tasks: &[PlacedTask]) -> Block {
    let columns = [
        words("task").at_least(NAME),
        words("released"),
        numbers("period").at_least(9),
        numbers("first at").at_least(9),
        numbers("priority"),
        numbers("CPU"),
    ];
    let row = |task: &PlacedTask| {
        vec![
            task.name.clone(),
            if task.is_unit { "at its places" } else { "evenly" }.to_owned(),
            format::period(task.period.as_ns()),
            at(task.phase_ns),
            task.priority.to_string(),
            task.cpu.map_or_else(|| "any".to_owned(), |cpu| cpu.to_string()),
        ]
    };
    Table::new("Tasks", columns, tasks.iter().map(row).collect()).bare().into()
}
