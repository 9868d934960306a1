//! The table of `top` as words: which columns, how wide, in which order the rows.
//!
//! Pure: from a frame, for the screen and for plain text. Names are made plain here.

use punctual_blame::outcome::LatenessBounds;
use punctual_lab::top::{TopFrame, TopThread};
use punctual_trace::event::Tid;
use ratatui::text::Span;

use crate::format;

/// The least columns for the cause, which hold a name; where there are less, it is left out.
const CAUSE_LEAST: usize = 12;
/// The most columns of the cause for which others are left out.
const CAUSE_WANTED: usize = 40;
/// From so many columns on the cause is told in words, not by a name.
const CAUSE_WORDS: usize = 24;
/// The most columns of a name: 15 bytes, of which each may be escaped.
const NAME_MOST: usize = 20;

/// The column that rows are sorted by, the most first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TopOrder {
    #[default]
    Max,
    Late,
    NewLate,
    P99,
    P50,
    Wakes,
    Priority,
    Name,
    Tid,
}

impl TopOrder {
    const ALL: [Self; 9] = [
        Self::Max,
        Self::Late,
        Self::NewLate,
        Self::P99,
        Self::P50,
        Self::Wakes,
        Self::Priority,
        Self::Name,
        Self::Tid,
    ];

    /// The one behind it, after the last the first.
    pub(super) fn next(self) -> Self {
        let behind = Self::ALL.iter().skip_while(|order| **order != self).nth(1);
        behind.copied().unwrap_or_default()
    }

    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Max => "max",
            Self::Late => "late",
            Self::NewLate => "new late",
            Self::P99 => "p99",
            Self::P50 => "p50",
            Self::Wakes => "wakes",
            Self::Priority => "priority",
            Self::Name => "name",
            Self::Tid => "tid",
        }
    }

    fn sort(self, threads: &mut [&TopThread]) {
        let most_first = |key: fn(&TopThread) -> u64| {
            move |thread: &&TopThread| (std::cmp::Reverse(key(thread)), thread.figures.task.tid)
        };
        match self {
            Self::Max => {
                let worst_ns = |thread: &TopThread| thread.figures.worst_so_far().least_ns();
                threads.sort_by_key(most_first(worst_ns));
            }
            Self::Late => threads.sort_by_key(most_first(|thread| thread.figures.late)),
            Self::NewLate => threads.sort_by_key(most_first(|thread| thread.new_late)),
            Self::P99 => threads.sort_by_key(most_first(|thread| thread.figures.p99.least_ns())),
            Self::P50 => threads.sort_by_key(most_first(|thread| thread.figures.p50.least_ns())),
            Self::Wakes => threads.sort_by_key(most_first(|thread| thread.figures.wakes)),
            Self::Priority => threads.sort_by_key(|thread| {
                (thread.figures.task.kernel_priority, thread.figures.task.tid)
            }),
            Self::Name => threads.sort_by_key(|thread| (name(thread), thread.figures.task.tid)),
            Self::Tid => threads.sort_by_key(|thread| thread.figures.task.tid),
        }
    }
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TopColumn {
    Tid,
    Thread,
    Priority,
    Cpu,
    Period,
    Wakes,
    NewWakes,
    P50,
    P99,
    Max,
    Late,
    NewLate,
    Cause,
}

/// In this order they stand.
const COLUMNS: [TopColumn; 13] = [
    TopColumn::Tid,
    TopColumn::Thread,
    TopColumn::Priority,
    TopColumn::Cpu,
    TopColumn::Period,
    TopColumn::Wakes,
    TopColumn::NewWakes,
    TopColumn::P50,
    TopColumn::P99,
    TopColumn::Max,
    TopColumn::Late,
    TopColumn::NewLate,
    TopColumn::Cause,
];

/// In this order they go where there is no room: how late each thread is stays longest, and those
/// before the cause go for it to be read.
const DROPPED: [TopColumn; 11] = [
    TopColumn::NewWakes,
    TopColumn::NewLate,
    TopColumn::Wakes,
    TopColumn::P50,
    TopColumn::Period,
    TopColumn::Cpu,
    TopColumn::Cause,
    TopColumn::Priority,
    TopColumn::P99,
    TopColumn::Late,
    TopColumn::Tid,
];

impl TopColumn {
    const fn head(self) -> &'static str {
        match self {
            Self::Tid => "TID",
            Self::Thread => "THREAD",
            Self::Priority => "PRIO",
            Self::Cpu => "CPU",
            Self::Period => "PERIOD",
            Self::Wakes => "WAKES",
            Self::NewWakes => "+WAKES",
            Self::P50 => "P50 µs",
            Self::P99 => "P99 µs",
            Self::Max => "MAX µs",
            Self::Late => "LATE",
            Self::NewLate => "+LATE",
            Self::Cause => "MOST OFTEN",
        }
    }

    /// So wide it is at least, that columns stand still while figures grow.
    const fn least(self) -> usize {
        match self {
            Self::Period => 7,
            Self::Wakes | Self::P50 | Self::P99 => 6,
            Self::Max => 7,
            Self::Cause => CAUSE_LEAST,
            _ => 0,
        }
    }

    const fn is_left(self) -> bool {
        matches!(self, Self::Thread | Self::Cause)
    }

    fn cell(self, thread: &TopThread) -> String {
        let figures = &thread.figures;
        match self {
            Self::Tid => figures.task.tid.to_string(),
            Self::Thread => cut(&name(thread), NAME_MOST),
            Self::Priority => thread.priority.to_string(),
            Self::Cpu => figures.cpu.to_string(),
            Self::Period => figures.period_ns.map_or_else(|| "-".to_owned(), period),
            Self::Wakes => count(figures.wakes),
            Self::NewWakes => count(thread.new_wakes),
            Self::P50 | Self::P99 if figures.wakes == 0 => "-".to_owned(),
            Self::P50 => lateness(figures.p50),
            Self::P99 => lateness(figures.p99),
            Self::Max if figures.wakes == 0 && figures.waiting.is_none() => "-".to_owned(),
            Self::Max => lateness(figures.worst_so_far()),
            Self::Late => count(figures.late),
            Self::NewLate => count(thread.new_late),
            Self::Cause => String::new(),
        }
    }
}

/// The name, made plain.
pub(super) fn name(thread: &TopThread) -> String {
    format::plain(&thread.figures.task.name.to_string())
}

/// Columns of a terminal that a text takes.
fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// A text, cut where it is wider than the room.
pub(super) fn cut(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        kept.push(c);
        if width(&kept) + 1 > room {
            kept.pop();
            break;
        }
    }
    if room > 0 {
        kept.push('…');
    }
    kept
}

/// A lateness as far as it is known: `22.1`, `≥22.1`, `≤250.0`; nothing where neither bound says
/// anything.
fn lateness(figure: LatenessBounds) -> String {
    match (figure.known_ns(), figure.least_ns(), figure.most_ns()) {
        (Some(ns), ..) => micros(ns),
        (None, 0, u64::MAX) => "-".to_owned(),
        (None, 0, most_ns) => format!("≤{}", micros(most_ns)),
        (None, least_ns, _) => format!("≥{}", micros(least_ns)),
    }
}

/// A lateness in µs: `22.1`, `1234`, `98.7k`.
fn micros(ns: u64) -> String {
    match ns {
        ..1_000_000 => format!("{:.1}", ns as f64 / 1e3),
        1_000_000..100_000_000 => format!("{:.0}", ns as f64 / 1e3),
        _ => count(ns / 1_000),
    }
}

/// A count in at most five columns.
fn count(value: u64) -> String {
    match value {
        ..100_000 => value.to_string(),
        100_000..1_000_000 => format!("{}k", value / 1_000),
        1_000_000..1_000_000_000 => format!("{:.1}M", value as f64 / 1e6),
        _ => format!("{:.0}G", value as f64 / 1e9),
    }
}

/// A period, as it was measured, in seven columns: `1.000ms`.
fn period(ns: u64) -> String {
    let figures = |value: f64| match value {
        ..9.9995 => format!("{value:.3}"),
        ..99.995 => format!("{value:.2}"),
        _ => format!("{value:.1}"),
    };
    // What would be rounded to 1000 is in the next unit.
    match ns {
        ..999_950 => format!("{}us", figures(ns as f64 / 1e3)),
        999_950..999_950_000 => format!("{}ms", figures(ns as f64 / 1e6)),
        _ => format!("{}s", figures(ns as f64 / 1e9)),
    }
}

/// A row, and what distinguishes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TopRow {
    pub(super) tid: Tid,
    pub(super) text: String,
    /// Late since the showing before, or waiting now.
    pub(super) is_late: bool,
    pub(super) has_ended: bool,
    /// The one that stopped it.
    pub(super) has_stopped: bool,
}

/// The table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TopTable {
    pub(super) head: String,
    pub(super) rows: Vec<TopRow>,
}

/// Which rows, and in which order.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TopChoice<'a> {
    pub(super) order: TopOrder,
    /// Names that have this in them, in capitals or not; all where it is empty.
    pub(super) filter: &'a str,
}

impl TopTable {
    /// The table of a frame in so many columns.
    pub(super) fn new(frame: &TopFrame, choice: TopChoice<'_>, columns: usize) -> Self {
        let sought = choice.filter.to_lowercase();
        let is_sought = |thread: &&TopThread| name(thread).to_lowercase().contains(&sought);
        let mut threads: Vec<&TopThread> = frame.threads.iter().filter(is_sought).collect();
        choice.order.sort(&mut threads);
        let widths = widths(&threads, columns);
        let heads: Vec<String> = widths.iter().map(|(column, _)| column.head().into()).collect();
        let rows = threads.iter().map(|thread| {
            let cells = widths.iter().map(|&(column, room)| match column {
                TopColumn::Cause => cause(thread, room),
                _ => column.cell(thread),
            });
            TopRow {
                tid: thread.figures.task.tid,
                text: line(&widths, cells),
                is_late: thread.new_late > 0 || thread.is_waiting(),
                has_ended: thread.figures.has_ended,
                has_stopped: frame.stopped_by.is_some_and(|(task, _)| task == thread.figures.task),
            }
        });
        Self { head: line(&widths, heads.into_iter()), rows: rows.collect() }
    }
}

/// The columns for which there is room, and how wide each is.
fn widths(threads: &[&TopThread], room: usize) -> Vec<(TopColumn, usize)> {
    let wide = |column: TopColumn| {
        let cells = threads.iter().map(|thread| width(&column.cell(thread)));
        (column, cells.max().unwrap_or(0).max(width(column.head())).max(column.least()))
    };
    let mut widths: Vec<(TopColumn, usize)> = COLUMNS.into_iter().map(wide).collect();
    let taken = |widths: &[(TopColumn, usize)]| {
        widths.iter().map(|(_, wide)| wide + 1).sum::<usize>().saturating_sub(1)
    };
    let words = threads.iter().map(|thread| width(&cause(thread, CAUSE_WANTED)));
    let wanted = words.max().unwrap_or(0).saturating_sub(CAUSE_LEAST);
    for dropped in DROPPED {
        let has_cause = widths.last().is_some_and(|(column, _)| *column == TopColumn::Cause);
        let is_for_it = has_cause && dropped != TopColumn::Cause;
        if taken(&widths) + if is_for_it { wanted } else { 0 } <= room {
            break;
        }
        widths.retain(|(column, _)| *column != dropped);
    }
    let left = room.saturating_sub(taken(&widths));
    if let Some((TopColumn::Cause, wide)) = widths.last_mut() {
        *wide += left;
    }
    widths
}

fn line(widths: &[(TopColumn, usize)], cells: impl Iterator<Item = String>) -> String {
    let mut line = String::new();
    for (&(column, room), cell) in widths.iter().zip(cells) {
        if !line.is_empty() {
            line.push(' ');
        }
        let cell = cut(&cell, room);
        let pad = " ".repeat(room - width(&cell).min(room));
        line += &if column.is_left() { cell + &pad } else { pad + &cell };
    }
    line.truncate(line.trim_end().len());
    line
}

fn cause(thread: &TopThread, room: usize) -> String {
    let Some(cause) = &thread.cause else {
        return if thread.figures.has_ended { "(ended)".to_owned() } else { String::new() };
    };
    let text = if room < CAUSE_WORDS { cause.short() } else { thread.why.clone() };
    cut(&format::plain(&text), room)
}

#[cfg(test)]
mod tests {
    use punctual_blame::outcome::WaitingNow;
    use punctual_lab::top::TopCause;

    use super::super::sample::{frame, thread};
    use super::*;

    fn tids(order: TopOrder, filter: &str) -> Vec<String> {
        let mut late = thread(300, b"servo");
        late.figures.late = 99;
        late.figures.task.kernel_priority = 50;
        let threads = vec![thread(500, b"Audio"), late, thread(900, b"plc")];
        let table = TopTable::new(&frame(threads), TopChoice { order, filter }, 140);
        let tid = |row: &TopRow| row.text.split_whitespace().next().unwrap_or_default().to_owned();
        table.rows.iter().map(tid).collect()
    }

    #[test]
    fn rows_stand_in_the_order_that_was_chosen() {
        assert_eq!(tids(TopOrder::Max, ""), ["900", "500", "300"]);
        assert_eq!(tids(TopOrder::Late, ""), ["300", "500", "900"]);
        assert_eq!(tids(TopOrder::Priority, ""), ["500", "900", "300"]);
        assert_eq!(tids(TopOrder::Name, ""), ["500", "900", "300"]);
        assert_eq!(tids(TopOrder::Max, "AU"), ["500"]);
        assert!(tids(TopOrder::Max, "nobody").is_empty());
        let mut order = TopOrder::default();
        for expected in TopOrder::ALL {
            assert_eq!(order, expected);
            order = order.next();
        }
        assert_eq!(order, TopOrder::default(), "round");
    }

    #[test]
    fn a_figure_that_is_only_bounded_is_no_measurement() {
        let mut blind = thread(300, b"servo");
        blind.figures.p50 = LatenessBounds::new(0, 250_000);
        blind.figures.p99 = LatenessBounds::new(12_000, 250_000);
        let row = TopTable::new(&frame(vec![blind]), TopChoice::default(), 120).rows;
        let cells: Vec<&str> = row[0].text.split_whitespace().collect();
        assert!(cells.windows(3).any(|three| three == ["≤250.0", "≥12.0", "300.0"]), "{cells:?}");
    }

    #[test]
    fn a_thread_that_waits_is_as_late_as_it_waited() {
        let mut waits = thread(300, b"servo");
        let runner = waits.figures.ran_before.expect("the hog");
        let waiting = WaitingNow { for_ns: 2_310_000_000, runner };
        waits.figures.waiting = Some(waiting);
        waits.cause = Some(TopCause::Waits(waiting));
        let threads = vec![thread(500, b"plc"), waits.clone()];
        let rows = TopTable::new(&frame(threads), TopChoice::default(), 120).rows;
        assert!(rows[0].is_late && !rows[1].is_late);
        assert!(rows[0].text.contains("servo") && rows[0].text.contains("≥2.3M"), "{rows:?}");
        waits.figures.wakes = 0;
        let rows = TopTable::new(&frame(vec![waits]), TopChoice::default(), 120).rows;
        assert!(rows[0].text.contains("≥2.3M"), "{rows:?}");
    }

    #[test]
    fn columns_go_where_there_is_no_room_and_lateness_stays() {
        let frame = frame(vec![thread(14_417, b"servo_1k")]);
        let table = |columns| TopTable::new(&frame, TopChoice::default(), columns);
        let wide = table(120);
        assert!(wide.head.contains("+LATE") && wide.rows[0].text.ends_with("ran above"));
        let usual = table(80);
        let why = "zz_hog97 (priority 97, 9) ran above";
        assert!(
            usual.head.ends_with("MOST OFTEN") && usual.rows[0].text.ends_with(why),
            "{usual:?}"
        );
        let kept = "TID THREAD PRIO CPU P99 µs MAX µs LATE MOST OFTEN";
        assert_eq!(usual.head.split_whitespace().collect::<Vec<_>>().join(" "), kept);
        let narrow = table(40);
        let kept: Vec<&str> = narrow.head.split_whitespace().collect();
        assert_eq!(kept.join(" "), "TID THREAD PRIO P99 µs MAX µs LATE");
        for columns in 0..200 {
            let table = table(columns);
            let widest = width(&table.head).max(width(&table.rows[0].text));
            // The name and the worst are shown in any case.
            assert!(widest <= columns.max(16), "{columns}: {table:?}");
        }
    }

    #[test]
    fn hostile_names_steer_nothing() {
        let names: [&[u8]; 4] = [b"\x1b[2J\x1b]0;x\x07", "学学学学学".as_bytes(), b"\xff\xfe", b""];
        for name in names {
            let frame = frame(vec![thread(7, name)]);
            for columns in [40, 80, 140] {
                let table = TopTable::new(&frame, TopChoice::default(), columns);
                let text = &table.rows[0].text;
                assert!(!text.chars().any(char::is_control), "{text:?}");
                assert!(width(text) <= columns, "{text:?}");
            }
        }
    }

    #[test]
    fn figures_are_short() {
        let shown = [22_140, 999_940, 1_234_567, 98_765_432, 123_456_789].map(micros);
        assert_eq!(shown, ["22.1", "999.9", "1235", "98765", "123k"]);
        assert_eq!([7, 99_999, 123_456, 12_345_678].map(count), ["7", "99999", "123k", "12.3M"]);
        let periods = [250_000, 999_949, 999_950, 12_500_000, 2_000_000_000].map(period);
        assert_eq!(periods, ["250.0us", "999.9us", "1.000ms", "12.50ms", "2.000s"]);
    }

    #[test]
    fn text_is_cut_to_columns() {
        assert_eq!([4, 3, 2, 1, 0].map(|room| cut("abcd", room)), ["abcd", "ab…", "a…", "…", ""]);
        assert_eq!(cut("学学学", 5), "学学…");
    }
}
