//! A screen while loops are measured: how late they wake, so far and over time, as a picture.
//!
//! One row a doubling of the lateness: to the left a strip over time, to the right all so far.
//! Its figures were computed for the progress lines; nothing is taken from the loops.

use std::collections::HashMap;
use std::io::{self, Stdout};

use punctual_analysis::plot::HeatColumn;
use punctual_lab::experiment::{
    ExperimentEvent, ExperimentProgress, LoopSoFar, Observer, RunSoFar,
};
use ratatui::Terminal;
use ratatui::backend::TermionBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};

use crate::format;
use crate::output;
use crate::progress;
use crate::terminal::{Screen, is_there};

/// The least that it is drawn on.
const SMALLEST: (u16, u16) = (40, 10);
/// The letters of a row's lateness, before the strip.
const LABEL: u16 = 8;
/// The letters of a row's bar and count, behind the strip.
const BARS: u16 = 26;
/// Columns of the strip that are kept; then two each become one.
const COLUMNS_MAX: usize = 512;
/// From none to most cycles.
const SHADES: [char; 5] = [' ', '\u{2591}', '\u{2592}', '\u{2593}', '\u{2588}'];
/// The most loops that have a line of figures.
const LOOPS_MAX: usize = 4;

/// A stretch of time of the strip.
#[derive(Clone, Debug)]
struct Stretch {
    /// The condition that ran.
    condition: String,
    /// The cycles of the first loop.
    by_lateness: HeatColumn,
}

/// The picture's figures: of several loops those of the first.
#[derive(Debug, Default)]
struct LivePicture {
    /// The counts of each condition when it was looked at last.
    counted: HashMap<usize, HeatColumn>,
    strip: Vec<Stretch>,
    total: HeatColumn,
    /// The worst of each loop under all conditions so far, ns.
    worst_ns: Vec<f64>,
    period_ns: f64,
    head: String,
    figures: Vec<LoopFigures>,
    has_colours: bool,
}

/// The figures of a loop in a line, from the longest form to the shortest.
#[derive(Debug)]
struct LoopFigures(Vec<String>);

/// The screen, as the observer of an experiment.
pub(crate) struct LiveView {
    picture: LivePicture,
    terminal: Terminal<TermionBackend<Stdout>>,
    /// Put back when this ends.
    screen: Option<Screen>,
}

impl LiveView {
    /// The screen; `None` where there is none to draw on.
    ///
    /// # Errors
    /// The terminal does not become one.
    fn open() -> io::Result<Option<Self>> {
        if !is_there() {
            return Ok(None);
        }
        let screen = Screen::show()?;
        let terminal = screen.terminal()?;
        let picture = LivePicture { has_colours: format::has_colours(), ..LivePicture::default() };
        Ok(Some(Self { picture, terminal, screen: Some(screen) }))
    }
}

impl Observer for LiveView {
    fn event(&mut self, event: &ExperimentEvent<'_>) {
        match *event {
            ExperimentEvent::Progress { progress, condition, is_over, loops } => {
                let condition = match is_over {
                    false => condition.to_owned(),
                    true => format!("measured; causes of {condition}"),
                };
                self.picture.take(progress, &condition, loops);
                let picture = &self.picture;
                // A terminal that is gone costs the picture, not the measurement.
                let _gone = self.terminal.draw(|frame| {
                    picture.draw(frame.area(), frame.buffer_mut());
                });
            }
            ExperimentEvent::Ended => drop(self.screen.take()),
        }
    }
}

impl LivePicture {
    /// Takes in what is known now.
    fn take(&mut self, progress: &ExperimentProgress, condition: &str, loops: &[LoopSoFar]) {
        let left = format::long(progress.left.as_ns() as f64);
        self.head = format!("{left} left \u{b7} {condition}");
        let names = progress::names(loops);
        self.worst_ns.resize(loops.len().max(self.worst_ns.len()), 0.0);
        for (worst_ns, so_far) in self.worst_ns.iter_mut().zip(loops) {
            let run = so_far.run.as_ref();
            *worst_ns = worst_ns.max(run.and_then(|run| run.lateness_ns.max).unwrap_or(0.0));
        }
        let shown = names.iter().zip(loops).zip(&self.worst_ns).take(LOOPS_MAX);
        let figures = shown.map(|((name, so_far), &worst_ns)| {
            LoopFigures::of(name, so_far.run.as_ref(), worst_ns)
        });
        self.figures = figures.collect();
        let Some(first) = loops.first() else { return };
        self.period_ns = first.period.as_ns() as f64;
        let Some(run) = &first.run else { return };
        let before = self.counted.entry(progress.condition).or_default();
        let since = run.by_lateness.since(before);
        if since.cells().next().is_none() {
            return;
        }
        *before = run.by_lateness.clone();
        self.total.add(&since);
        self.strip.push(Stretch { condition: condition.to_owned(), by_lateness: since });
        if self.strip.len() > COLUMNS_MAX {
            self.strip = joined(&self.strip, 2);
        }
    }

    fn draw(&self, area: Rect, buffer: &mut Buffer) {
        let (width, height) = (area.width, area.height);
        let mut write = |x: u16, y: u16, text: &str, style: Style| {
            if x < width && y < height {
                let room = usize::from(width - x);
                let text = output::spaced(progress::cut(&format::plain(text), room), true);
                buffer.set_stringn(area.x + x, area.y + y, text, room, style);
            }
        };
        write(0, 0, &self.head, Style::new());
        for (line, figures) in (1..).zip(&self.figures) {
            write(0, line, figures.within(usize::from(width)), Style::new());
        }
        if width < SMALLEST.0 || height < SMALLEST.1 {
            return;
        }
        let top = u16::try_from(self.figures.len()).unwrap_or(u16::MAX) + 2;
        let rows = self.rows(usize::from(height.saturating_sub(top + 2)));
        let strip_width = width - LABEL - BARS;
        let columns = self.strip.len().div_ceil(usize::from(strip_width)).max(1);
        let strip = joined(&self.strip, columns);
        let most = rows.iter().flat_map(|row| strip.iter().map(|at| row.count(&at.by_lateness)));
        let most = most.max().unwrap_or(0);
        let most_of_all = rows.iter().map(|row| row.count(&self.total)).max().unwrap_or(0);
        write(0, top - 1, "late by", Style::new());
        let headings = ["how often, over time", "over time", ""];
        write(LABEL, top - 1, longest(&headings, usize::from(strip_width)), Style::new());
        write(width - BARS + 1, top - 1, "cycles in all", Style::new());
        for (y, row) in (top..).zip(&rows) {
            let style = self.style(row);
            write(0, y, &format!("{:>7}", format::ns(Some(row.from_ns))), Style::new());
            let shades: String =
                strip.iter().map(|at| shade(row.count(&at.by_lateness), most)).collect();
            write(LABEL, y, &shades, style);
            let count = row.count(&self.total);
            let shown = if count == 0 { String::new() } else { format::count(count) };
            let digits = u16::try_from(shown.chars().count()).unwrap_or(u16::MAX);
            let room = (BARS - 2).saturating_sub(digits).min(12);
            let bar = "\u{2588}".repeat(scaled(count, most_of_all, usize::from(room)));
            write(width - BARS + 1, y, &bar, style);
            write(width.saturating_sub(digits), y, &shown, style);
        }
        let below = top + u16::try_from(rows.len()).unwrap_or(0);
        let mut x = LABEL;
        for stretch in strip.chunk_by(|one, next| one.condition == next.condition) {
            let columns = u16::try_from(stretch.len()).unwrap_or(u16::MAX);
            let is_last = usize::from(x - LABEL) + stretch.len() == strip.len();
            // Behind the last one there is nothing; the others end before the next mark.
            let room = usize::from(if is_last { width - x } else { columns }) - 1;
            let name = progress::cut(&stretch[0].condition, room);
            write(x, below, &format!("|{name}"), Style::new());
            x = x.saturating_add(columns);
        }
        let every =
            if self.strip.is_empty() { "the first figures come soon" } else { "time \u{2192}" };
        let ends = "^C ends it, with results";
        let last = [format!("{every}   {ends}"), ends.to_owned()];
        write(LABEL, below + 1, longest(&last, usize::from(width - LABEL)), Style::new());
    }

    /// The rows from the latest down, at most so many.
    fn rows(&self, most: usize) -> Vec<LiveRow> {
        let octaves: Vec<i32> =
            self.total.cells().map(|cell| cell.from_ns.log2().floor() as i32).collect();
        let (Some(&low), Some(&high)) = (octaves.iter().min(), octaves.iter().max()) else {
            return Vec::new();
        };
        let count = usize::try_from(high - low + 1).unwrap_or(1);
        let each = i32::try_from(count.div_ceil(most.max(1))).unwrap_or(i32::MAX);
        let mut rows = Vec::new();
        let mut from = low;
        while from <= high {
            rows.push(LiveRow {
                from_ns: f64::from(from).exp2(),
                to_ns: f64::from(from + each).exp2(),
            });
            from += each;
        }
        rows.reverse();
        rows
    }

    /// The colour of a row: red from a period on, yellow from a tenth of it, else cyan.
    fn style(&self, row: &LiveRow) -> Style {
        let colour = match row.from_ns {
            ns if ns >= self.period_ns => Color::Red,
            ns if ns >= self.period_ns / 10.0 => Color::Yellow,
            _ => Color::Cyan,
        };
        if self.has_colours { Style::new().fg(colour) } else { Style::new() }
    }
}

impl LoopFigures {
    /// Under the condition that runs, which the head names, and the worst of all so far.
    fn of(name: &str, run: Option<&RunSoFar>, worst_ns: f64) -> Self {
        let Some(RunSoFar { lateness_ns: lateness, missed, .. }) = run else {
            return Self(vec![format!("{name}: no figures yet")]);
        };
        let typical = format!("typical {}", format::ns(lateness.p50));
        let missed = format!("missed {}", format::count(*missed));
        let [worst, worst_of_all] = [lateness.max, Some(worst_ns)].map(format::ns);
        Self(vec![
            format!(
                "{name}: {typical} \u{b7} {missed} \u{b7} worst {worst}; of all {worst_of_all}"
            ),
            format!("{name}: {typical} \u{b7} {missed} \u{b7} worst of all {worst_of_all}"),
            format!("{name}: {missed} \u{b7} worst of all {worst_of_all}"),
            format!("{name}: worst of all {worst_of_all}"),
        ])
    }

    /// The longest form that fits into so many columns, else the shortest.
    fn within(&self, columns: usize) -> &str {
        longest(&self.0, columns)
    }
}

/// The first of some texts, from the longest to the shortest, that fits into so many columns; else
/// the last.
fn longest<T: AsRef<str>>(texts: &[T], columns: usize) -> &str {
    let fits = |text: &&T| text.as_ref().chars().count() <= columns;
    texts.iter().find(fits).or(texts.last()).map_or("", T::as_ref)
}

/// A row of the picture: latenesses from here to below there.
#[derive(Clone, Copy, Debug)]
struct LiveRow {
    from_ns: f64,
    to_ns: f64,
}

impl LiveRow {
    /// The cycles of a column that lie in it.
    fn count(&self, column: &HeatColumn) -> u64 {
        let within = |from_ns: f64| (self.from_ns..self.to_ns).contains(&from_ns);
        column.cells().filter(|cell| within(cell.from_ns)).map(|cell| cell.count).sum()
    }
}

/// So many stretches each as one, under what ran first in it.
fn joined(strip: &[Stretch], each: usize) -> Vec<Stretch> {
    let join = |some: &[Stretch]| {
        let (first, rest) = some.split_first()?;
        let mut joined = first.clone();
        rest.iter().for_each(|next| joined.by_lateness.add(&next.by_lateness));
        Some(joined)
    };
    strip.chunks(each.max(1)).filter_map(join).collect()
}

/// The steps that a count reaches on a log scale of so many: 1 at least, but 0 for 0.
fn scaled(count: u64, most: u64, steps: usize) -> usize {
    match count {
        0 => 0,
        _ => {
            let share = (count as f64).ln_1p() / (most.max(count) as f64).ln_1p();
            ((share * steps as f64).round() as usize).clamp(1, steps)
        }
    }
}

fn shade(count: u64, most: u64) -> char {
    SHADES[scaled(count, most, SHADES.len() - 1)]
}

/// The observer that shows the progress of an experiment: a screen where that is wanted and there
/// is one, else lines.
///
/// # Errors
/// The terminal does not become a screen.
pub(crate) fn observer(live: bool, quiet: bool) -> io::Result<Box<dyn Observer>> {
    let view = if live { LiveView::open()? } else { None };
    Ok(match view {
        Some(view) => Box::new(view),
        None => Box::new(progress::Line::of(quiet)),
    })
}

#[cfg(test)]
mod tests {
    use punctual_analysis::histogram::Histogram;
    use punctual_analysis::summary::SummaryStats;
    use punctual_core::time::{Period, Span};

    use super::*;

    fn so_far(values: &[i64]) -> Vec<LoopSoFar> {
        let mut histogram = Histogram::new();
        values.iter().for_each(|ns| histogram.push(*ns));
        let by_lateness = HeatColumn::of(&histogram);
        let max = values.iter().max().map(|&ns| ns as f64);
        let lateness_ns = SummaryStats { max, ..SummaryStats::default() };
        let run = RunSoFar {
            lateness_ns,
            by_lateness,
            releases: values.len() as u64,
            ..RunSoFar::default()
        };
        let period = Period::from_ns(1_000_000).expect("positive");
        vec![LoopSoFar { cpu: Some(1), period, run: Some(run) }]
    }

    fn progress(condition: usize) -> ExperimentProgress {
        ExperimentProgress { left: Span::from_ms(9_000), condition, worst: None, count: 0 }
    }

    fn drawn(picture: &LivePicture, width: u16, height: u16) -> Vec<String> {
        let area = Rect::new(0, 0, width, height);
        let mut buffer = Buffer::empty(area);
        picture.draw(area, &mut buffer);
        let line = |y: u16| {
            let cells = (0..width).map(|x| buffer[(x, y)].symbol().to_owned());
            cells.collect::<String>().trim_end().to_owned()
        };
        (0..height).map(line).collect()
    }

    /// Forty looks, of which each fourth saw a wake of 2 ms; then a load, under which all are late.
    fn picture() -> LivePicture {
        let mut picture = LivePicture::default();
        let mut idle = Vec::new();
        for look in 0..40 {
            idle.extend([5_000; 50]);
            if look % 4 == 0 {
                idle.push(2_000_000);
            }
            picture.take(&progress(0), "idle", &so_far(&idle));
            // Nothing new was counted meanwhile.
            picture.take(&progress(0), "idle", &so_far(&idle));
        }
        picture.take(&progress(1), "cpu", &so_far(&[130_000; 50]));
        picture
    }

    #[test]
    fn what_comes_again_is_seen_in_the_strip_and_all_in_the_bars() {
        let lines = drawn(&picture(), 80, 24);
        assert!(lines[0].starts_with("9.0 s left \u{b7} cpu"), "{lines:#?}");
        // The worst of the load that runs is not that of the run.
        let worst = "worst 130 µs; of all 2.00 ms";
        assert!(lines[1].contains(": typical ") && lines[1].ends_with(worst), "{lines:#?}");
        let late = lines.iter().find(|line| line.ends_with(" 10")).expect("ten were late");
        assert!(late.trim_start().starts_with("1.05 ms"), "{lines:#?}");
        let strip = late.chars().skip(usize::from(LABEL)).take(41).enumerate();
        let marks: Vec<usize> = strip.filter(|(_, c)| *c != ' ').map(|(x, _)| x).collect();
        assert_eq!(marks, (0..10).map(|k| 4 * k).collect::<Vec<_>>(), "{lines:#?}");
        let below = lines.iter().find(|line| line.contains("|idle")).expect("what ran");
        assert_eq!(below.find("|cpu"), Some(8 + 40), "{below:?}");
    }

    #[test]
    fn the_least_goes_first_where_columns_are_few_and_no_word_is_cut() {
        let mut picture = LivePicture::default();
        let loads = "cpu,cache,memory,fork,disk,net,timer,syscall";
        for (at, condition) in
            ["idle", loads, "idle", &format!("measured; causes of {loads}")].into_iter().enumerate()
        {
            let mut several = so_far(&vec![130_000; 50 + 50 * at]);
            several.extend(so_far(&[21_600_000; 50]));
            several[1].cpu = Some(127);
            for so_far in &mut several {
                so_far.run.as_mut().expect("figures").missed = 12_345_678;
            }
            picture.take(&progress(at), condition, &several);
        }
        let whole = drawn(&picture, 300, 24);
        let is_gap = |c: char| c == ' ' || c == ',';
        let words: Vec<&str> = whole.iter().flat_map(|line| line.split(is_gap)).collect();
        let known = |word: &str| {
            let is_picture = word.chars().all(|c| SHADES.contains(&c));
            let word = word.trim_end_matches('\u{2026}');
            // A condition that has no room under the strip leaves its mark.
            is_picture || ["", "|", "of", "worst"].contains(&word) || words.contains(&word)
        };
        for width in 20..=100 {
            let lines = drawn(&picture, width, 24);
            for word in lines.iter().flat_map(|line| line.split(is_gap)) {
                assert!(known(word), "{word:?} at {width}: {lines:#?}");
            }
            assert!(
                width < 40 || lines[2].contains("worst of all") || lines[2].contains("; of all")
            );
            assert!(width < 80 || lines[0].ends_with("syscall"), "{lines:#?}");
            let missed = format!(" missed {} ", format::count(12_345_678));
            assert!(width < 80 || lines[2].contains(&missed), "{lines:#?}");
        }
    }

    #[test]
    fn a_count_of_ten_digits_is_whole() {
        let mut picture = picture();
        for _ in 0..30 {
            let so_many = picture.total.clone();
            picture.total.add(&so_many);
        }
        let most = picture.total.cells().map(|cell| cell.count).max().expect("some");
        assert!(most > 1_000_000_000, "{most}");
        let lines = drawn(&picture, 80, 24);
        let count = format::count(most);
        assert!(lines.iter().any(|line| line.ends_with(&count)), "{count}: {lines:#?}");
    }

    #[test]
    fn every_size_is_drawn_and_a_strip_without_end_stays_short() {
        let mut picture = picture();
        for (width, height) in [(1, 1), (39, 9), (40, 10), (80, 24), (200, 60), (300, 3)] {
            assert_eq!(drawn(&picture, width, height).len(), usize::from(height));
        }
        let mut values = vec![1_000; 5];
        for _ in 0..2_000 {
            values.push(1_000);
            picture.take(&progress(2), "disk", &so_far(&values));
        }
        assert!(picture.strip.len() <= COLUMNS_MAX);
        let count: u64 =
            picture.strip.iter().flat_map(|at| at.by_lateness.cells()).map(|c| c.count).sum();
        assert_eq!(count, 40 * 50 + 10 + 50 + 2_005);
        let few = drawn(&picture, 80, 12);
        assert!(few.iter().any(|line| line.contains("\u{2588}")), "{few:#?}");
    }

    #[test]
    fn a_scale_has_room_for_one_and_for_most() {
        assert_eq!([0, 1, 1_000_000].map(|count| scaled(count, 1_000_000, 12)), [0, 1, 12]);
        assert_eq!((shade(0, 9), shade(9, 9)), (' ', '\u{2588}'));
    }
}
