//! Output that a person sees in a terminal: the progress line, and Ctrl-C that keeps what there is.
//!
//! In tmux, with real keys.

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::{Dir, PROGRAM, json, run, stderr};
use punctual_testkit::skip;

/// A tmux server of a test's own, which goes away with it.
pub(crate) struct Terminal {
    socket: String,
}

impl Terminal {
    /// A shell that waits for a line, on a screen of that many columns and rows.
    pub(crate) fn start(dir: &Dir, columns: u32, rows: u32) -> Self {
        let terminal = Self { socket: dir.path("socket").to_string_lossy().into_owned() };
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let shell = ["new-session", "-d", "-x", &columns, "-y", &rows, "env", "PS1=ready$ ", "sh"];
        assert!(terminal.tmux(&shell).status.success());
        terminal.until("ready$");
        terminal
    }

    /// Types a line, and Enter.
    pub(crate) fn type_in(&self, line: &str) {
        self.tmux(&["send-keys", "-l", line]);
        self.tmux(&["send-keys", "Enter"]);
    }

    pub(crate) fn tmux(&self, args: &[&str]) -> Output {
        let mut command = Command::new("tmux");
        command.args(["-f", "/dev/null", "-S", &self.socket]).args(args);
        command.output().expect("tmux starts")
    }

    /// Waits, at most 60 s, for `text` on the screen or in the lines that have left it, and gives
    /// both.
    fn until(&self, text: &str) -> String {
        self.captured(&["capture-pane", "-p", "-S", "-200"], text)
    }

    /// Waits, at most 60 s, for a screen that has `text`, and gives it.
    pub(crate) fn screen_until(&self, text: &str) -> String {
        self.captured(&["capture-pane", "-p"], text)
    }

    fn captured(&self, capture: &[&str], text: &str) -> String {
        let begun = Instant::now();
        loop {
            let out = self.tmux(capture);
            let screen = String::from_utf8_lossy(&out.stdout).into_owned();
            if screen.contains(text) {
                return screen;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "no {text:?} in:\n{screen}");
            // Polling a screen: there is nothing to wait on.
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

#[test]
fn shows_what_is_left_and_ends_on_ctrl_c_with_what_there_is() {
    if !skip::need_program("tmux") {
        return;
    }
    let dir = Dir::new("terminal");
    let terminal = Terminal::start(&dir, 90, 50);
    let line = format!("{PROGRAM} measure periodic --duration 1h; echo status $?");
    terminal.type_in(&line);
    let screen = terminal.until("s left · idle · min");
    assert_eq!(screen.matches("s left").count(), 1, "written over:\n{screen}");
    terminal.tmux(&["send-keys", "C-c"]);
    let screen = terminal.until("status 130");
    assert!(screen.contains("incomplete") && screen.contains("lateness"), "{screen}");
    assert!(!screen.contains("s left ·"), "the progress line is gone:\n{screen}");
}

#[test]
fn live_it_is_a_picture_and_leaves_no_trace() {
    if !skip::need_program("tmux") {
        return;
    }
    let dir = Dir::new("terminal-live");
    let terminal = Terminal::start(&dir, 80, 24);
    let program = format!("{PROGRAM} measure periodic -d 1h --live");
    terminal.type_in(&format!(
        "cd {}; stty -g > before; {program}; echo status $?; stty -g | cmp - before",
        dir.0.display()
    ));
    let screen = terminal.until("^C ends it, with results");
    assert!(!screen.contains("ready$"), "a screen of its own:\n{screen}");
    let screen = terminal.until("|idle");
    assert!(screen.contains("typical") && screen.contains('\u{2588}'), "{screen}");
    terminal.tmux(&["send-keys", "C-c"]);
    let screen = terminal.until("status 130");
    assert!(screen.contains("ready$") && screen.contains("lateness"), "{screen}");
    assert!(!screen.contains("|idle") && !screen.contains("EOF"), "{screen}");
    // Where there is no terminal, lines.
    let out = run(["measure", "periodic", "-d", "300ms", "--live", "--json", "-"]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    assert!(json(&out)["runs"][0]["cycles"].as_u64() > Some(0));
}

#[test]
fn a_claim_stands_in_the_line_and_does_not_wrap_it() {
    if !skip::need_program("tmux") {
        return;
    }
    let dir = Dir::new("terminal-claim");
    let terminal = Terminal::start(&dir, 110, 50);
    let line = format!(
        "clear; {PROGRAM} measure periodic --duration 1h --claim 'p(missed)<1e-2'; echo status $?"
    );
    terminal.type_in(&line);
    let screen = terminal.until("claim p(missed): ≤ ");
    assert_eq!(screen.matches("s left").count(), 1, "written over:\n{screen}");
    assert_eq!(screen.matches("claim p").count(), 1, "written over:\n{screen}");
    assert!(screen.contains("(95 %, valid at any look), "), "{screen}");
    terminal.tmux(&["send-keys", "C-c"]);
    let screen = terminal.until("status ");
    let words: Vec<&str> = screen.split_whitespace().collect();
    assert!(words.join(" ").contains("by the wider bound"), "{screen}");
}

#[test]
fn the_answer_of_check_fits_sixty_columns() {
    if !skip::need_program("tmux") {
        return;
    }
    let dir = Dir::new("terminal-60");
    let terminal = Terminal::start(&dir, 60, 50);
    let results = dir.path("results").to_string_lossy().into_owned();
    let line =
        format!("clear; {PROGRAM} check -d 1s --for linuxcnc --results {results}; echo status $?");
    terminal.type_in(&line);
    terminal.until("status 0");
    // Lines that the terminal has broken are whole again.
    let screen = terminal.tmux(&["capture-pane", "-p", "-J", "-S", "-200"]);
    let screen = String::from_utf8_lossy(&screen.stdout).into_owned();
    let answer = screen.lines().skip_while(|line| !line.starts_with("base thread, 25 µs on"));
    let answer: Vec<&str> = answer.take_while(|line| !line.starts_with("status")).collect();
    assert!(answer.len() > 15, "{screen}");
    for line in answer {
        // Paths are as long as they are.
        let has_path = line.contains(PROGRAM) || line.contains(&results);
        assert!(has_path || line.trim_end().chars().count() <= 60, "{line:?} in:\n{screen}");
    }
}
