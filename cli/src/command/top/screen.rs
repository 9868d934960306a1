//! The screen of `top`: what keys do to it, and what it shows.
//!
//! Pure: a frame and what was chosen into cells of a buffer. Reads no key and writes nothing.

use std::cell::Cell;

use punctual_lab::top::TopFrame;
use punctual_trace::event::Tid;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

use super::table::{TopChoice, TopOrder, TopTable, cut};
use super::why_few;
use crate::format;
use crate::subcommand::Exit;
use crate::terminal::Key;

/// The most letters of a filter.
const FILTER_MOST: usize = 32;
/// Lines above the table, its head among them.
const ABOVE: u16 = 3;
/// From so many lines on the last one says what keys do.
const WITH_HELP: u16 = 8;
/// The keys and their actions.
const HELP: &str =
    "q quit  s sort  / filter  f freeze  r reset  +/- late over  Enter causes  ? help";
/// The keys and their actions while the causes of one thread are shown.
const EXAMINED_HELP: &str = "Esc back  up/down scroll  ? help; all events are recorded meanwhile";
/// The steps of the threshold: 1 µs to 1 s.
const STEPS_NS: [u64; 19] = {
    let mut steps = [1_000_000_000; 19];
    let (mut at, mut decade) = (0, 1_000);
    while at < 18 {
        steps[at] = decade;
        steps[at + 1] = 2 * decade;
        steps[at + 2] = 5 * decade;
        decade *= 10;
        at += 3;
    }
    steps
};

/// The action that a key asks of whoever shows the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TopAct {
    /// Nothing more.
    Show,
    Quit,
    /// All figures anew; later than this, ns, is late then.
    BeginAnew(u64),
    /// The causes of this thread, by all events.
    Examine(Tid),
    /// They are not wanted any more.
    Leave,
}

/// A thread whose causes are shown.
#[derive(Clone, Debug)]
struct TopExamined {
    tid: Tid,
    /// Its causes, as lines: empty before the first interval is over.
    lines: Vec<String>,
}

/// The figures of the screen, with the choices made by keys.
#[derive(Clone, Debug)]
pub(super) struct TopView {
    frame: Option<TopFrame>,
    order: TopOrder,
    filter: String,
    is_typing: bool,
    is_frozen: bool,
    has_help: bool,
    has_colours: bool,
    /// The row that is chosen, by its thread; the first where there is none of it.
    chosen: Option<Tid>,
    examined: Option<TopExamined>,
    /// Lines of causes above the first that is shown.
    scrolled: usize,
    /// The most of them that leave the screen full, as it was drawn last.
    scrolled_most: Cell<usize>,
    late_over_ns: u64,
    /// The threads that are listed, in words.
    listed: String,
}

impl TopView {
    /// Nothing yet.
    pub(super) fn new(late_over_ns: u64, has_colours: bool, listed: String) -> Self {
        Self {
            frame: None,
            order: TopOrder::default(),
            filter: String::new(),
            is_typing: false,
            is_frozen: false,
            has_help: true,
            has_colours,
            chosen: None,
            examined: None,
            scrolled: 0,
            scrolled_most: Cell::new(0),
            late_over_ns,
            listed,
        }
    }

    /// Takes the newest, unless it is frozen.
    pub(super) fn take(&mut self, frame: TopFrame) {
        if !self.is_frozen {
            self.frame = Some(frame);
        }
    }

    /// The exit status where it ends now: a wake that stopped what is shown fails.
    pub(super) fn exit(&self) -> Exit {
        let is_stopped = self.frame.as_ref().is_some_and(|frame| frame.stopped_by.is_some());
        if is_stopped { Exit::Failed } else { Exit::Fine }
    }

    /// A key was pressed.
    pub(super) fn press(&mut self, key: Key) -> TopAct {
        if key == Key::Interrupt {
            return TopAct::Quit;
        }
        if self.examined.is_some() {
            return self.examine_key(key);
        }
        if self.is_typing {
            self.type_key(key);
            return TopAct::Show;
        }
        match key {
            Key::Char('q') | Key::Escape => return TopAct::Quit,
            Key::Char('s') => self.order = self.order.next(),
            Key::Char('/') => self.is_typing = true,
            Key::Char('f') => self.is_frozen = !self.is_frozen,
            Key::Char('?') => self.has_help = !self.has_help,
            Key::Char('r') => return self.begin_anew(self.late_over_ns),
            Key::Char('+' | '=') => return self.begin_anew(self.above()),
            Key::Char('-') => return self.begin_anew(self.below()),
            Key::Enter => return self.examine(),
            Key::Up => self.choose(|row| row.saturating_sub(1)),
            Key::Down => self.choose(|row| row.saturating_add(1)),
            Key::PageUp => self.choose(|row| row.saturating_sub(10)),
            Key::PageDown => self.choose(|row| row.saturating_add(10)),
            Key::Home => self.chosen = None,
            _ => {}
        }
        TopAct::Show
    }

    /// The threads in the order of the rows.
    fn rows(&self) -> Vec<Tid> {
        let choice = TopChoice { order: self.order, filter: &self.filter };
        let table = self.frame.as_ref().map(|frame| TopTable::new(frame, choice, 1));
        table.into_iter().flat_map(|table| table.rows).map(|row| row.tid).collect()
    }

    /// Chooses another row, from where the chosen thread is now.
    fn choose(&mut self, to: impl Fn(usize) -> usize) {
        let rows = self.rows();
        let row = rows.iter().position(|tid| Some(*tid) == self.chosen).unwrap_or(0);
        self.chosen = rows.get(to(row).min(rows.len().saturating_sub(1))).copied();
    }

    fn examine(&mut self) -> TopAct {
        let rows = self.rows();
        let is_there = |tid: &Tid| rows.contains(tid);
        let Some(tid) = self.chosen.filter(is_there).or(rows.first().copied()) else {
            return TopAct::Show;
        };
        self.chosen = Some(tid);
        self.scrolled = 0;
        self.scrolled_most.set(0);
        self.examined = Some(TopExamined { tid, lines: Vec::new() });
        TopAct::Examine(tid)
    }

    /// A key while the causes of one thread are shown.
    fn examine_key(&mut self, key: Key) -> TopAct {
        match key {
            Key::Char('q') | Key::Escape | Key::Enter => {
                self.examined = None;
                return TopAct::Leave;
            }
            Key::Char('?') => self.has_help = !self.has_help,
            Key::Up => self.scroll(-1),
            Key::Down => self.scroll(1),
            Key::PageUp => self.scroll(-10),
            Key::PageDown => self.scroll(10),
            Key::Home => self.scrolled = 0,
            _ => {}
        }
        TopAct::Show
    }

    /// Goes so many lines down, or up, no further than to the last line.
    fn scroll(&mut self, lines: isize) {
        let end = self.scrolled_most.get();
        self.scrolled = self.scrolled.min(end).saturating_add_signed(lines).min(end);
    }

    /// Takes what is known now of the thread whose causes are shown, as lines.
    pub(super) fn take_causes(&mut self, lines: Vec<String>) {
        if let Some(examined) = &mut self.examined {
            examined.lines = lines;
        }
    }

    /// A key while a filter is written.
    fn type_key(&mut self, key: Key) {
        match key {
            Key::Escape => {
                self.filter.clear();
                self.is_typing = false;
            }
            Key::Enter => self.is_typing = false,
            Key::Backspace => {
                self.filter.pop();
            }
            Key::Char(c) if !c.is_control() && self.filter.chars().count() < FILTER_MOST => {
                self.filter.push(c);
            }
            _ => {}
        }
        self.chosen = None;
    }

    fn begin_anew(&mut self, late_over_ns: u64) -> TopAct {
        self.late_over_ns = late_over_ns;
        self.is_frozen = false;
        self.frame = None;
        TopAct::BeginAnew(late_over_ns)
    }

    fn above(&self) -> u64 {
        let above = STEPS_NS.iter().find(|step| **step > self.late_over_ns);
        above.copied().unwrap_or(self.late_over_ns)
    }

    fn below(&self) -> u64 {
        let below = STEPS_NS.iter().rev().find(|step| **step < self.late_over_ns);
        below.copied().unwrap_or(self.late_over_ns)
    }

    fn bold(&self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    fn coloured(&self, colour: Color) -> Style {
        if self.has_colours { self.bold().fg(colour) } else { self.bold() }
    }

    /// Shows it, with what a machine has of CPUs.
    pub(super) fn render(&self, cpus: usize, area: Rect, buffer: &mut Buffer) {
        let mut page = Page { area, buffer };
        page.write(0, &header(self.frame.as_ref(), cpus), self.bold());
        if let Some(examined) = &self.examined {
            return self.render_causes(examined, &mut page);
        }
        let (state, style) = match self.frame.as_ref().and_then(|frame| frame.stopped_by) {
            Some((task, late_ns)) => {
                let name = format::plain(&task.name.to_string());
                let late = format::ns(Some(late_ns as f64));
                let text = format!("STOPPED: {name} ({}) was {late} late; r goes on", task.tid);
                (text, self.coloured(Color::Red))
            }
            None => (self.state(), Style::new()),
        };
        page.write(1, &state, style);
        let help_line = u16::from(self.has_help && area.height >= WITH_HELP);
        let room = usize::from(area.height.saturating_sub(ABOVE + help_line));
        let choice = TopChoice { order: self.order, filter: &self.filter };
        let Some(frame) = &self.frame else {
            page.write(ABOVE, "the first figures come after an interval", Style::new());
            self.help(&mut page, help_line);
            return;
        };
        let table = TopTable::new(frame, choice, usize::from(area.width));
        page.write(2, &table.head, Style::new().add_modifier(Modifier::REVERSED));
        let few = match (table.rows.is_empty(), self.filter.is_empty()) {
            (true, false) => Some("no such name".to_owned()),
            _ => why_few(frame, &self.listed),
        };
        if let Some(text) = few.filter(|_| table.rows.len() < room) {
            page.write(ABOVE + u16::try_from(table.rows.len()).unwrap_or(0), &text, Style::new());
        }
        // The chosen row stays in view.
        let chosen = table.rows.iter().position(|row| Some(row.tid) == self.chosen);
        let above = chosen.map_or(0, |chosen| (chosen + 1).saturating_sub(room.max(1)));
        for (row, at) in table.rows.iter().skip(above).take(room).zip(ABOVE..) {
            let is_chosen = chosen.is_some() && Some(row.tid) == self.chosen;
            let mark = if is_chosen { Modifier::UNDERLINED } else { Modifier::empty() };
            let style = match (row.has_stopped, row.is_late, row.has_ended) {
                (true, _, _) => self.coloured(Color::Red),
                (_, true, _) => self.coloured(Color::Yellow),
                (_, _, true) => Style::new().add_modifier(Modifier::DIM),
                _ => Style::new(),
            };
            page.write(at, &row.text, style.add_modifier(mark));
        }
        self.help(&mut page, help_line);
    }

    /// The causes of one thread.
    fn render_causes(&self, examined: &TopExamined, page: &mut Page<'_>) {
        let state = format!("causes of thread {}  {}", examined.tid, late_over(self.late_over_ns));
        page.write(1, &state, Style::new());
        let help_line = u16::from(self.has_help && page.area.height >= WITH_HELP);
        let room = usize::from(page.area.height.saturating_sub(ABOVE + help_line));
        if examined.lines.is_empty() {
            page.write(ABOVE, "the first causes come after an interval", Style::new());
        }
        self.scrolled_most.set(examined.lines.len().saturating_sub(room.max(1)));
        let above = self.scrolled.min(self.scrolled_most.get());
        for (line, at) in examined.lines.iter().skip(above).take(room).zip(ABOVE..) {
            page.write(at, line, Style::new());
        }
        self.help(page, help_line);
    }

    fn help(&self, page: &mut Page<'_>, lines: u16) {
        if lines > 0 {
            let last = page.area.height - 1;
            let help = if self.examined.is_some() { EXAMINED_HELP } else { HELP };
            page.write(last, help, Style::new().add_modifier(Modifier::DIM));
        }
    }

    /// The state of the view: the threshold, the place where late wakes waited, and the choices
    /// made.
    fn state(&self) -> String {
        if self.is_typing {
            return format!("filter: {}_  (Enter keeps it, Esc shows all)", shown(&self.filter));
        }
        let mut parts = vec![late_over(self.late_over_ns)];
        if self.is_frozen {
            parts.insert(0, "FROZEN".to_owned());
        }
        parts.push(format!("by {}", self.order.word()));
        if !self.filter.is_empty() {
            parts.push(format!("only *{}*", shown(&self.filter)));
        }
        parts.extend(self.frame.as_ref().and_then(split));
        parts.extend(self.frame.as_ref().and_then(left_out));
        parts.extend(self.frame.as_ref().and_then(unmatched));
        parts.join("  ")
    }
}

/// The filter as typed, without anything that a terminal would obey.
fn shown(filter: &str) -> String {
    format::plain(filter)
}

/// Where cells go: lines of an area, as far as they are in it.
struct Page<'a> {
    area: Rect,
    buffer: &'a mut Buffer,
}

impl Page<'_> {
    fn write(&mut self, line: u16, text: &str, style: Style) {
        let Rect { x, y, width, height } = self.area;
        if line < height {
            let text = cut(text, usize::from(width));
            self.buffer.set_stringn(x, y + line, text, usize::from(width), style);
        }
    }
}

/// The first line: how many, at what price.
pub(super) fn header(frame: Option<&TopFrame>, cpus: usize) -> String {
    let several = |count: usize, name: &str| {
        let plural = if count == 1 { "" } else { "s" };
        format!("{count} {name}{plural}")
    };
    let cpus = several(cpus, "CPU");
    let Some(frame) = frame else { return format!("punctual top  {cpus}") };
    let threads = frame.threads.iter().filter(|thread| !thread.figures.has_ended).count();
    format!(
        "punctual top  {cpus}  {}  {:.0} events/s, {} lost  own CPU {:.1} %",
        several(threads, "thread"),
        frame.events_per_s,
        frame.lost,
        frame.own_cpu_share * 100.0,
    )
}

/// The threshold, in words: "late: over 50 µs".
pub(super) fn late_over(ns: u64) -> String {
    format!("late: over {}", format::period(ns))
}

/// Where the time of late wakes went, in all threads together.
pub(super) fn split(frame: &TopFrame) -> Option<String> {
    let sum = |part: fn(&punctual_lab::top::TopThread) -> u64| {
        frame.threads.iter().map(|thread| part(thread) as f64).sum::<f64>()
    };
    let delivery = sum(|thread| thread.figures.delivery_ns);
    let whole = delivery + sum(|thread| thread.figures.ready_ns);
    (whole > 0.0).then(|| {
        let timer = (delivery / whole * 100.0).round();
        format!("timer late {timer:.0} %, waited for CPU {:.0} %", 100.0 - timer)
    })
}

/// The note that threads are left out for lack of room; `None` where none is.
pub(super) fn left_out(frame: &TopFrame) -> Option<String> {
    (frame.unfollowed > 0).then(|| "too many threads, r begins anew".to_owned())
}

/// The wakes that no figure has, and whose most of them are.
pub(super) fn unmatched(frame: &TopFrame) -> Option<String> {
    let count = frame.threads.iter().map(|thread| thread.figures.unmatched).sum::<u64>();
    let most = frame.threads.iter().max_by_key(|thread| thread.figures.unmatched)?;
    (count > 0).then(|| {
        let plural = if count == 1 { "" } else { "s" };
        let (most, tid) = (&most.figures, most.figures.task.tid);
        let name = format::plain(&most.task.name.to_string());
        format!(
            "not counted: {count} wake{plural} of no known release, {} of {name} ({tid})",
            most.unmatched
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::sample::{frame, thread};
    use super::*;
    use punctual_lab::top::TopThread;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    /// The lines of a screen of this size.
    fn drawn(view: &TopView, (columns, lines): (u16, u16)) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(columns, lines)).expect("it fits");
        terminal
            .draw(|page| view.render(2, page.area(), page.buffer_mut()))
            .expect("it cannot fail");
        let buffer = terminal.backend().buffer();
        let line = |y| (0..columns).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..lines).map(|y| line(y).trim_end().to_owned()).collect()
    }

    fn new(late_over_ns: u64, has_colours: bool) -> TopView {
        TopView::new(late_over_ns, has_colours, "threads with a real-time policy".to_owned())
    }

    fn view(threads: Vec<TopThread>) -> TopView {
        let mut view = new(100_000, true);
        view.take(frame(threads));
        view
    }

    fn many(count: u32) -> Vec<TopThread> {
        (1..=count).map(|tid| thread(tid, format!("t{tid}").as_bytes())).collect()
    }

    const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (40, 10)];

    #[test]
    fn a_screen_of_eighty_columns_has_the_answer() {
        let lines = drawn(&view(vec![thread(14_417, b"servo_1k")]), (80, 24));
        assert_eq!(
            lines[0],
            "punctual top  2 CPUs  1 thread  26583 events/s, 0 lost  own CPU 0.3 %"
        );
        let state = "late: over 100 µs  by max  timer late 48 %, waited for CPU 52 %";
        assert_eq!(lines[1], state);
        assert!(lines[2].ends_with("LATE MOST OFTEN"), "{}", lines[2]);
        let why = "35 zz_hog97 (priority 97, 9) ran above";
        assert!(lines[3].contains("servo_1k") && lines[3].ends_with(why), "{}", lines[3]);
        let listed =
            "listed: threads with a real-time policy that woke; others appear when they wake";
        assert_eq!(lines[4], listed);
        assert_eq!(lines[23], HELP);
    }

    #[test]
    fn every_size_shows_none_and_many_threads() {
        for size in SIZES {
            let none = drawn(&view(Vec::new()), size);
            assert!(none[3].starts_with("listed: threads with a real-time "), "{none:?}");
            let nothing = drawn(&new(100_000, false), size);
            assert!(nothing[0].starts_with("punctual top"), "{nothing:?}");
            let lines = drawn(&view(many(200)), size);
            assert!(lines[3].contains("t200"), "the worst first: {lines:?}");
            let rows = lines.iter().filter(|line| line.contains(" t1") || line.contains(" t2"));
            assert!(rows.count() >= usize::from(size.1) / 2 - 2, "{lines:?}");
        }
        for size in [(1, 1), (7, 3), (300, 2), (16, 4)] {
            drawn(&view(many(200)), size);
        }
    }

    #[test]
    fn hostile_names_stay_in_their_cells() {
        let names: [&[u8]; 3] = [b"\x1b[2J\x1b]0;x\x07", "学学学学学".as_bytes(), b"\xe2\x80\xae"];
        for (size, name) in SIZES.iter().flat_map(|size| names.map(|name| (*size, name))) {
            let view = view(vec![thread(7, name)]);
            let text = drawn(&view, size).join("");
            assert!(!text.chars().any(char::is_control), "{text:?}");
            assert!(!text.contains('\u{202e}'), "{text:?}");
        }
    }

    #[test]
    fn keys_do_what_the_help_says() {
        let mut view = view(many(200));
        assert_eq!(view.press(Key::Char('s')), TopAct::Show);
        assert!(drawn(&view, (80, 24))[1].contains("by late"));
        view.press(Key::Char('?'));
        assert_ne!(drawn(&view, (80, 24))[23], HELP);
        view.press(Key::Char('f'));
        view.take(frame(Vec::new()));
        let lines = drawn(&view, (80, 24));
        assert!(lines[1].starts_with("FROZEN") && lines[3].contains('t'), "{lines:?}");
        for key in [Key::Char('/'), Key::Char('t'), Key::Char('7'), Key::Char('q')] {
            assert_eq!(view.press(key), TopAct::Show);
        }
        assert!(drawn(&view, (80, 24))[1].starts_with("filter: t7q_"));
        view.press(Key::Backspace);
        view.press(Key::Enter);
        let lines = drawn(&view, (80, 24));
        assert!(lines[1].contains("only *t7*") && lines[3].contains(" t7 "), "{lines:?}");
        view.press(Key::Char('/'));
        view.press(Key::Escape);
        assert!(!drawn(&view, (80, 24))[1].contains("only"));
        assert_eq!(view.press(Key::Char('r')), TopAct::BeginAnew(100_000));
        assert_eq!(view.press(Key::Char('+')), TopAct::BeginAnew(200_000));
        assert_eq!(view.press(Key::Char('-')), TopAct::BeginAnew(100_000));
        let ends = [Key::Char('q'), Key::Escape, Key::Interrupt].map(|key| view.press(key));
        assert_eq!(ends, [TopAct::Quit; 3]);
    }

    #[test]
    fn the_threshold_moves_between_its_ends() {
        let mut view = new(30_000, true);
        assert_eq!(view.press(Key::Char('-')), TopAct::BeginAnew(20_000));
        for _ in 0..40 {
            view.press(Key::Char('-'));
        }
        assert_eq!(view.late_over_ns, 1_000);
        for _ in 0..40 {
            view.press(Key::Char('+'));
        }
        assert_eq!(view.late_over_ns, 1_000_000_000);
    }

    #[test]
    fn the_chosen_row_stays_in_view() {
        let mut view = view(many(50));
        for _ in 0..100 {
            view.press(Key::PageDown);
        }
        let lines = drawn(&view, (80, 24));
        assert!(lines[22].contains(" t1 "), "{lines:?}");
        view.press(Key::Home);
        assert!(drawn(&view, (80, 24))[3].contains(" t50"));
    }

    #[test]
    fn the_causes_of_the_chosen_thread_are_asked_for_shown_and_left() {
        let mut view = view(many(5));
        view.press(Key::Down);
        assert_eq!(view.press(Key::Enter), TopAct::Examine(4), "behind the worst, t5");
        let lines = drawn(&view, (80, 24));
        assert!(lines[1].starts_with("causes of thread 4"), "{lines:?}");
        assert!(lines[3].starts_with("the first causes come"), "{lines:?}");
        assert_eq!(lines[23], EXAMINED_HELP);
        view.take_causes((0..50).map(|line| format!("line {line}")).collect());
        assert_eq!(drawn(&view, (80, 24))[3], "line 0");
        for _ in 0..100 {
            assert_eq!(view.press(Key::PageDown), TopAct::Show);
        }
        assert_eq!(drawn(&view, (80, 24))[22], "line 49");
        // Beyond the end there is nothing to come back from.
        view.press(Key::Up);
        assert_eq!(drawn(&view, (80, 24))[22], "line 48");
        assert_eq!(view.press(Key::Escape), TopAct::Leave);
        assert!(drawn(&view, (80, 24))[3].contains(" t5"), "the table again");
        view.take_causes(vec!["too late".to_owned()]);
        assert!(!drawn(&view, (80, 24)).join("").contains("too late"));
    }

    #[test]
    fn without_a_thread_there_are_no_causes() {
        assert_eq!(new(100_000, false).press(Key::Enter), TopAct::Show);
        assert_eq!(view(Vec::new()).press(Key::Enter), TopAct::Show);
    }

    #[test]
    fn what_stopped_it_is_named() {
        let worst = thread(600, b"servo");
        let task = worst.figures.task;
        let mut view = new(100_000, false);
        view.take(TopFrame { stopped_by: Some((task, 600_000)), ..frame(vec![worst]) });
        assert_eq!(view.exit(), Exit::Failed);
        let lines = drawn(&view, (80, 24));
        assert!(lines[1].starts_with("STOPPED: servo (600) was 600 µs late"), "{}", lines[1]);
        view.press(Key::Char('r'));
        assert_eq!(view.exit(), Exit::Fine, "it goes on");
    }

    #[test]
    fn a_filter_has_an_end() {
        let mut view = view(many(3));
        view.press(Key::Char('/'));
        for _ in 0..100 {
            view.press(Key::Char('x'));
        }
        assert_eq!(view.filter.chars().count(), FILTER_MOST);
        assert!(drawn(&view, (40, 10))[3].starts_with("no such name"));
    }
}
