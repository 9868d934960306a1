//! The line on standard error while an experiment runs: time left, worst so far, how claims stand.
//!
//! On a terminal one line that is written over; elsewhere a line every ten seconds. Never on
//! standard output.

use std::io::{self, IsTerminal, Write};

use punctual_analysis::claim::rounded_up;
use punctual_core::time::Span;
use punctual_lab::experiment::{ExperimentEvent, ExperimentProgress, Observer, Standing};

use crate::format;

/// The progress line, as the observer of an experiment.
#[derive(Debug)]
pub(crate) struct Line {
    terminal: bool,
    shown: bool,
    /// Time left at which the next line is due, off a terminal.
    next: Span,
}

const EVERY: Span = Span::from_ms(10_000);

impl Line {
    /// Nothing is shown yet.
    pub(crate) fn new() -> Self {
        // A terminal that knows no escapes gets lines, as a file does.
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        Self {
            terminal: io::stderr().is_terminal() && !dumb,
            shown: false,
            next: Span::from_ns(i64::MAX),
        }
    }

    /// Shows how far the experiment is; `condition` names what runs.
    fn show(&mut self, progress: &ExperimentProgress, condition: &str, claim: Option<&Standing>) {
        let text = text(progress, condition) + &claim.map(standing).unwrap_or_default();
        let text = format::plain(&text);
        // A standard error that is gone costs the line, not the measurement.
        let _gone = if self.terminal {
            self.shown = true;
            // What does not fit is cut: a line that wraps could not be written over.
            write!(io::stderr(), "\r\x1b[K\x1b[?7l{text}\x1b[?7h")
                .and_then(|()| io::stderr().flush())
        } else if progress.left <= self.next {
            self.next = Span::from_ns(progress.left.as_ns() - EVERY.as_ns());
            writeln!(io::stderr(), "{text}")
        } else {
            Ok(())
        };
    }

    /// Takes the line away.
    fn clear(&mut self) {
        if self.shown {
            self.shown = false;
            let _gone = write!(io::stderr(), "\r\x1b[K").and_then(|()| io::stderr().flush());
        }
    }
}

impl Observer for Line {
    fn event(&mut self, event: &ExperimentEvent<'_>) {
        match *event {
            ExperimentEvent::Progress { progress, condition, standing } => {
                self.show(progress, condition, standing);
            }
            ExperimentEvent::Ended => self.clear(),
        }
    }
}

fn text(progress: &ExperimentProgress, condition: &str) -> String {
    let seconds = progress.left.as_ns() / 1_000_000_000;
    let worst = progress.worst.map_or_else(|| "-".to_owned(), |worst| worst.to_string());
    let missed = match progress.missed {
        0 => String::new(),
        missed => format!(" · {missed} missed"),
    };
    format!("{seconds} s left · {condition} · worst {worst} of {}{missed}", progress.count)
}

/// How a claim stands, by a bound that may be looked at all the time.
fn standing(standing: &Standing) -> String {
    let Standing { ask, p_upper, seen, n, theta } = standing;
    format!(
        " · p({}) ≤ {} ({}, valid at any look, θ {theta:.2}) · {} of {}",
        ask.event(),
        rounded_up(*p_upper),
        ask.shown_confidence(),
        format::count(*seen),
        format::count(*n)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_analysis::claim::ask::Ask;

    #[test]
    fn a_claim_stands_with_its_count_and_its_level() {
        let ask = Ask::parse("p(lateness>50us)<1e-6 @99%").expect("a claim");
        let line = standing(&Standing { ask, p_upper: 3.1e-5, seen: 12, n: 300_000, theta: 0.5 });
        assert_eq!(
            line.replace('\u{a0}', " "),
            " · p(lateness>50us) ≤ 3.1e-5 (99 %, valid at any look, θ 0.50) · 12 of 300 000"
        );
    }

    #[test]
    fn says_what_is_left_and_the_worst_with_its_n() {
        let mut progress = ExperimentProgress {
            left: Span::from_ms(41_900),
            condition: 1,
            worst: Some(Span::from_us(310)),
            count: 18_000,
            missed: 0,
        };
        assert_eq!(text(&progress, "fork"), "41 s left · fork · worst 310 µs of 18000");
        progress.missed = 2;
        progress.worst = None;
        assert_eq!(text(&progress, "idle"), "41 s left · idle · worst - of 18000 · 2 missed");
    }
}
