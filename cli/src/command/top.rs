//! `punctual top`: the real-time threads of a machine as they run, on a screen or as plain tables.

#[cfg(test)]
mod sample;
mod screen;
mod table;

use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context as _, Result};
use punctual_analysis::plain::plain_lines;
use punctual_core::time::Span;
use punctual_host::root::Root;
use punctual_lab::blame::BlamedRun;
use punctual_lab::capture::{ThreadTarget, find_threads};
use punctual_lab::top::{Top, TopFrame, TopPlan};
use punctual_os::signal;

use crate::experiment::Machine;
use crate::format;
use crate::output;
use crate::parse;
use crate::subcommand::{Execute, Exit};
use crate::terminal::{self, Screen};
use crate::view::kinds::blame;
use screen::{TopAct, TopView};
use table::{TopChoice, TopTable};

/// The shortest and the longest time from one showing to the next.
const INTERVALS: [Span; 2] = [Span::from_ms(100), Span::from_ms(3_600_000)];
/// Between two looks at keys, signals and new figures.
const LOOK: Duration = Duration::from_millis(50);
/// Looks until the screen is drawn anew where nothing happened.
const LOOKS: u32 = 10;
/// Columns of plain text where there is no terminal: everything is told.
const TEXT_COLUMNS: usize = 140;

/// `punctual top`.
#[derive(Debug, clap::Args)]
pub(super) struct TopArgs {
    #[command(flatten)]
    threads: ThreadArgs,
    /// Wakes later than this are late
    #[arg(long, value_name = "TIME", default_value = "100us", value_parser = parse::duration)]
    over: parse::Duration,
    /// Stop at the first wake that is later than this: what was shown then stays
    #[arg(long, value_name = "TIME", value_parser = parse::duration)]
    stop_over: Option<parse::Duration>,
    /// From one showing to the next: 100ms to 1h
    #[arg(long, short, value_name = "TIME", default_value = "1s", value_parser = interval)]
    interval: parse::Duration,
    /// Print so many tables as plain text and exit [default where there is no terminal: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    once: Option<u32>,
}

/// Whose wakes: without one of these, those of each thread that has a real-time policy.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
struct ThreadArgs {
    /// Show the threads that this process has now
    #[arg(long, value_parser = clap::value_parser!(i32).range(1..))]
    pid: Option<i32>,
    /// Show this thread
    #[arg(long, value_parser = clap::value_parser!(i32).range(1..))]
    tid: Option<i32>,
    /// Show each thread, and all threads of each process, that have this name now
    #[arg(long)]
    name: Option<String>,
}

impl ThreadArgs {
    fn target(&self) -> Option<ThreadTarget> {
        ThreadTarget::given(self.pid, self.tid, self.name.as_deref())
    }

    /// The threads that are listed, in words.
    fn listed(&self) -> String {
        match (self.pid, self.tid, &self.name) {
            (Some(pid), ..) => format!("threads of process {pid}"),
            (_, Some(tid), _) => format!("thread {tid}"),
            (_, _, Some(name)) => format!("threads called {}", format::plain(name)),
            (None, None, None) => "threads with a real-time policy".to_owned(),
        }
    }
}

/// The thread that reads the events.
const READER: &str = "punctual-trace";

/// The threads that a table with one that woke, or none, lists, and the event that makes others
/// appear; `None` for more.
fn why_few(frame: &TopFrame, listed: &str) -> Option<String> {
    let woken = frame.threads.iter().filter(|thread| thread.figures.wakes > 0);
    let names: Vec<String> = woken.map(table::name).collect();
    match &names[..] {
        [] => Some(format!("listed: {listed}; none has woken at a release yet")),
        [only] if only == READER => {
            Some(format!("listed: {listed}; none but top's own reader has woken yet"))
        }
        [_] => Some(format!("listed: {listed} that woke; others appear when they wake")),
        [..] => None,
    }
}

/// A duration within [`INTERVALS`].
fn interval(text: &str) -> Result<parse::Duration, String> {
    let interval = parse::duration(text)?;
    let [least, most] = INTERVALS;
    if (least..=most).contains(&interval.0) {
        Ok(interval)
    } else {
        Err("an interval is 100ms to 1h".to_owned())
    }
}

fn ns(duration: parse::Duration) -> u64 {
    duration.0.as_ns().unsigned_abs()
}

impl Execute for TopArgs {
    fn execute(&self) -> Result<Exit> {
        let machine = Machine::of(None)?;
        let target = self.threads.target();
        let threads = target.map(|target| find_threads(&Root::live(), &target)).transpose()?;
        let plan = TopPlan {
            threads,
            late_over_ns: ns(self.over),
            stop_over_ns: self.stop_over.map(ns),
            interval: self.interval.0,
            machine: machine.recorded(),
        };
        signal::catch_stop().context("cannot catch SIGINT")?;
        let top = Top::start(&plan)?;
        let cpus = machine.measuring.cpu.online_cpus.value().map_or(0, |cpus| cpus.iter().count());
        let listed = self.threads.listed();
        match self.once {
            None if terminal::is_there() => {
                let view = TopView::new(ns(self.over), format::has_colours(), listed);
                on_screen(top, view, cpus)
            }
            once => as_text(top, once.unwrap_or(1), cpus, &listed),
        }
    }
}

fn is_over() -> bool {
    signal::stop_flag().load(Ordering::Relaxed)
}

/// Until a key or a signal ends it. It fails where a wake stopped it, and it was not begun anew.
fn on_screen(mut top: Top, mut view: TopView, cpus: usize) -> Result<Exit> {
    let screen = Screen::enter().context("cannot have the terminal")?;
    let mut terminal = screen.terminal().context("cannot draw on the terminal")?;
    let mut looks_left = 0_u32;
    while !is_over() {
        // Also without news: the size may have changed.
        if looks_left == 0 {
            match terminal.draw(|page| view.render(cpus, page.area(), page.buffer_mut())) {
                Err(why) if terminal::is_gone(&why) => return Ok(view.exit()),
                drawn => {
                    let _shown = drawn.context("cannot draw on the terminal")?;
                }
            }
            looks_left = LOOKS;
        }
        looks_left -= 1;
        match screen.keys(LOOK) {
            // It was closed; the signal that says so may come after.
            Err(why) if terminal::is_gone(&why) => return Ok(view.exit()),
            keys => {
                for key in keys.context("cannot read keys")? {
                    looks_left = 0;
                    match view.press(key) {
                        TopAct::Show => {}
                        TopAct::Quit => return Ok(view.exit()),
                        TopAct::BeginAnew(late_over_ns) => top.begin_anew(late_over_ns),
                        TopAct::Examine(tid) => {
                            // The table goes on, whatever forbids more events.
                            if let Err(why) = top.examine(tid) {
                                view.take_causes(vec![format::plain(&why.to_string())]);
                            }
                        }
                        TopAct::Leave => top.leave(),
                    }
                }
            }
        }
        if let Some(frame) = top.next(Duration::ZERO)? {
            view.take(frame);
            looks_left = 0;
        }
        if let Some(run) = top.examined() {
            view.take_causes(causes(&run));
            looks_left = 0;
        }
    }
    Ok(view.exit())
}

/// The causes of a thread's late wakes, as lines.
fn causes(run: &BlamedRun) -> Vec<String> {
    let text = punctual_document::text::rendered(&blame::thread(run));
    let lines = text.written(false, plain_lines);
    lines.lines().map(str::to_owned).collect()
}

/// So many tables; it fails where a wake stopped it.
fn as_text(mut top: Top, count: u32, cpus: usize, listed: &str) -> Result<Exit> {
    let mut shown = 0;
    while shown < count && !is_over() {
        let Some(frame) = top.next(LOOK)? else { continue };
        let gap = if shown > 0 { "\n" } else { "" };
        output::show(format!("{gap}{}", text(&frame, cpus, listed)))?;
        shown += 1;
        if frame.stopped_by.is_some() {
            return Ok(Exit::Failed);
        }
    }
    Ok(Exit::Fine)
}

/// A frame as lines.
fn text(frame: &TopFrame, cpus: usize, listed: &str) -> String {
    let mut state = vec![screen::late_over(frame.late_over_ns)];
    state.extend(screen::split(frame));
    state.extend(screen::left_out(frame));
    state.extend(screen::unmatched(frame));
    state.extend(frame.stopped_by.map(|(task, late_ns)| {
        let late = format::ns(Some(late_ns as f64));
        format!("stopped: {} ({}) was {late} late", format::plain(&task.name.to_string()), task.tid)
    }));
    let table = TopTable::new(frame, TopChoice::default(), TEXT_COLUMNS);
    let rows = table.rows.iter().map(|row| row.text.as_str());
    let header = screen::header(Some(frame), cpus);
    let state = state.join("  ");
    let few = why_few(frame, listed);
    let lines = [header.as_str(), &state, &table.head].into_iter().chain(rows);
    let lines: Vec<&str> = lines.chain(few.as_deref()).collect();
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_have_two_ends() {
        assert_eq!(interval("100ms").map(ns), Ok(100_000_000));
        assert_eq!(interval("1h").map(ns), Ok(3_600_000_000_000));
        for wrong in ["99ms", "2h", "1", "fast"] {
            assert!(interval(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_table_of_one_thread_says_what_it_lists() {
        let options = |pid, tid, name: Option<&str>| {
            ThreadArgs { pid, tid, name: name.map(str::to_owned) }.listed()
        };
        let listed = options(None, None, None);
        let last = |names: &[&[u8]], listed: &str| {
            let threads = (7..).zip(names).map(|(tid, name)| sample::thread(tid, name)).collect();
            let text = text(&sample::frame(threads), 2, listed);
            text.lines().last().expect("lines").to_owned()
        };
        let one = "listed: threads with a real-time policy that woke; others appear when they wake";
        assert_eq!(last(&[b"servo"], &listed), one);
        assert!(last(&[b"punctual-trace"], &listed).contains("top's own"));
        assert!(last(&[], &listed).contains("none has woken"));
        assert!(!last(&[b"servo", b"plc"], &listed).contains("listed"));
        assert_eq!(options(Some(12), None, None), "threads of process 12");
        assert_eq!(options(None, Some(12), None), "thread 12");
        assert_eq!(options(None, None, Some("ja\x1bckd")), "threads called ja\\u{1b}ckd");
    }

    #[test]
    fn wakes_that_no_figure_has_are_told() {
        let shown = |unmatched: [u64; 2]| {
            let mut threads = vec![sample::thread(7, b"servo"), sample::thread(8, b"ja\x1bck")];
            threads
                .iter_mut()
                .zip(unmatched)
                .for_each(|(thread, count)| thread.figures.unmatched = count);
            text(&sample::frame(threads), 2, "threads")
        };
        assert!(!shown([0, 0]).contains("not counted"));
        let line = "not counted: 12 wakes of no known release, 9 of ja\\u{1b}ck (8)";
        assert!(shown([3, 9]).contains(line), "{}", shown([3, 9]));
        assert!(shown([1, 0]).contains("not counted: 1 wake of no known release, 1 of servo (7)"));
    }

    #[test]
    fn plain_text_has_every_column_and_no_escape() {
        let threads = vec![sample::thread(300, b"servo"), sample::thread(7, b"\x1b[2J")];
        let text = text(&sample::frame(threads), 2, "threads");
        assert!(!text.contains('\x1b'), "{text:?}");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5);
        assert!(lines[2].contains("+WAKES") && lines[3].contains("1.000ms"), "{text}");
        assert!(lines[3].ends_with("zz_hog97 (priority 97, 9) ran above"), "{text}");
    }
}
