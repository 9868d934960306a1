//! The lines on standard error while an experiment runs: time left, the figures of each loop so
//! far, the claim that is farthest from being shown.
//!
//! On a terminal they are written over; elsewhere they come every ten seconds. Never on standard
//! output.

use std::io::{self, IsTerminal, Write};

use punctual_analysis::claim::rounded_up;
use punctual_core::time::Span;
use punctual_lab::experiment::{
    ExperimentEvent, ExperimentProgress, LoopSoFar, Observer, RunSoFar, Standing,
};

use crate::format;
use crate::output;

/// The progress lines, as the observer of an experiment.
#[derive(Debug)]
pub(crate) struct Line {
    terminal: bool,
    /// True where nothing is shown.
    is_silent: bool,
    /// Lines that stand on the terminal.
    shown: usize,
    /// Time left at which the next lines are due, off a terminal.
    next: Span,
}

const EVERY: Span = Span::from_ms(10_000);

/// The most loops that have a line of their own: a terminal holds more, a person reads no more.
const LOOPS_MAX: usize = 8;

impl Line {
    /// Nothing is shown yet.
    pub(crate) fn new() -> Self {
        // A terminal that knows no escapes gets lines, as a file does.
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        Self {
            terminal: io::stderr().is_terminal() && !dumb,
            is_silent: false,
            shown: 0,
            next: Span::from_ns(i64::MAX),
        }
    }

    /// Nothing is shown yet; with `quiet` only on a terminal, where nothing of it stays.
    pub(crate) fn of(quiet: bool) -> Self {
        let line = Self::new();
        Self { is_silent: quiet && !line.terminal, ..line }
    }

    /// Shows how far the experiment is; `condition` names what runs.
    fn show(&mut self, progress: &ExperimentProgress, condition: &str, loops: &[LoopSoFar]) {
        if self.is_silent {
            return;
        }
        let lines = lines(progress, condition, loops);
        let lines: Vec<String> =
            lines.iter().map(|line| output::spaced(format::plain(line), true)).collect();
        // A standard error that is gone costs the lines, not the measurement.
        let _gone = if self.terminal {
            // What does not fit is cut: a line that wraps could not be written over.
            let columns = format::columns(&io::stderr());
            let lines: Vec<String> = lines.iter().map(|line| cut(line, columns)).collect();
            let text = format!("{}\x1b[?7l{}\x1b[?7h", over(self.shown), lines.join("\r\n"));
            self.shown = lines.len();
            write!(io::stderr(), "{text}").and_then(|()| io::stderr().flush())
        } else if progress.left <= self.next {
            self.next = Span::from_ns(progress.left.as_ns() - EVERY.as_ns());
            let text = output::spaced(lines.join("\n"), io::stderr().is_terminal());
            writeln!(io::stderr(), "{text}")
        } else {
            Ok(())
        };
    }

    /// Takes the lines away.
    fn clear(&mut self) {
        if self.shown > 0 {
            let text = over(self.shown);
            self.shown = 0;
            let _gone = write!(io::stderr(), "{text}").and_then(|()| io::stderr().flush());
        }
    }
}

impl Observer for Line {
    fn event(&mut self, event: &ExperimentEvent<'_>) {
        match *event {
            ExperimentEvent::Progress { progress, condition, is_over: false, loops } => {
                self.show(progress, condition, loops);
            }
            ExperimentEvent::Progress { progress, condition, is_over: true, loops } => {
                self.show(progress, &format!("measured · causes of {condition}"), loops);
            }
            ExperimentEvent::Ended => self.clear(),
        }
    }
}

/// A line, cut behind the last word or comma that fits where it has more letters than columns.
pub(crate) fn cut(line: &str, columns: usize) -> String {
    let Some((end, _)) = line.char_indices().nth(columns) else { return line.to_owned() };
    // One column is that of the mark.
    let Some((last, _)) = line[..end].char_indices().next_back() else { return String::new() };
    let is_gap = |c: char| matches!(c, ' ' | ',');
    let kept = match line[last..].starts_with(is_gap) {
        true => last,
        false => line[..last].rfind(is_gap).map_or(0, |at| at + 1),
    };
    format!("{}…", &line[..kept])
}

/// The escapes that go back to the start of so many lines and clear them.
fn over(shown: usize) -> String {
    format!("\r\x1b[K{}", "\x1b[1A\x1b[K".repeat(shown.saturating_sub(1)))
}

/// The time left, the loops and the claim: one line with one loop, else one for each.
fn lines(progress: &ExperimentProgress, condition: &str, loops: &[LoopSoFar]) -> Vec<String> {
    let begin = format!("{} s left · {condition}", progress.left.as_ns() / 1_000_000_000);
    let mut lines = match loops {
        [] => vec![format!("{begin} · {}", counted(progress))],
        [only] => vec![format!("{begin} · {}", figures(only.run.as_ref()))],
        several => {
            let names = names(several);
            let line = |(name, so_far): (&String, &LoopSoFar)| {
                format!("  {name}: {}", figures(so_far.run.as_ref()))
            };
            let each = names.iter().zip(several).take(LOOPS_MAX).map(line);
            let more = several.len().saturating_sub(LOOPS_MAX);
            let rest = (more > 0).then(|| format!("  and {more} more loops"));
            std::iter::once(begin).chain(each).chain(rest).collect()
        }
    };
    let standings = loops.iter().filter_map(|so_far| so_far.run.as_ref()?.standing.as_ref());
    lines.extend(Standing::farthest(standings).map(standing));
    lines
}

/// The names that tell loops apart: the period, the CPU, or both.
pub(crate) fn names(loops: &[LoopSoFar]) -> Vec<String> {
    let several_cpus = loops.windows(2).any(|pair| pair[0].cpu != pair[1].cpu);
    let several_periods = loops.windows(2).any(|pair| pair[0].period != pair[1].period);
    let name = |so_far: &LoopSoFar| {
        let cpu = so_far.cpu.filter(|_| several_cpus).map(|cpu| format!("CPU {cpu}"));
        let period =
            (several_periods || !several_cpus).then(|| format::period(so_far.period.as_ns()));
        [cpu, period].into_iter().flatten().collect::<Vec<_>>().join(", ")
    };
    let names: Vec<String> = loops.iter().map(name).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    names.into_iter().map(|name| format!("{name:>width$}")).collect()
}

/// The figures of a loop under the condition that runs.
pub(crate) fn figures(run: Option<&RunSoFar>) -> String {
    let Some(RunSoFar { lateness_ns: lateness, missed, .. }) = run else {
        return "no figures yet".to_owned();
    };
    format!(
        "min {} · typical {} · worst {} · missed {}",
        format::ns(lateness.min),
        format::ns(lateness.p50),
        format::ns(lateness.max),
        format::count(*missed)
    )
}

/// The counts of an experiment without loops.
fn counted(progress: &ExperimentProgress) -> String {
    match progress.worst {
        Some(worst) => format!("worst {worst} of {}", format::count(progress.count)),
        None => "no figures yet".to_owned(),
    }
}

/// The state of a claim, by a bound that may be looked at all the time.
fn standing(standing: &Standing) -> String {
    let Standing { ask, p_upper, seen, n, .. } = standing;
    format!(
        "  claim p({}): ≤ {} ({}, valid at any look), {} of {}",
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
    use punctual_analysis::plot::HeatColumn;
    use punctual_analysis::summary::SummaryStats;
    use punctual_core::time::Period;

    fn progress() -> ExperimentProgress {
        let (left, worst) = (Span::from_ms(41_900), Some(Span::from_us(310)));
        ExperimentProgress { left, condition: 1, worst, count: 18_000 }
    }

    fn loops(periods_us: &[u64], cpus: &[u32], standing: Option<Standing>) -> Vec<LoopSoFar> {
        let loop_of = |us: &u64, cpu: &u32| LoopSoFar {
            cpu: Some(*cpu),
            period: Period::from_ns(us * 1_000).expect("positive"),
            run: Some(RunSoFar {
                lateness_ns: SummaryStats {
                    min: Some(3_200.0),
                    p50: Some(4_100.0),
                    max: Some(310_000.0),
                    ..SummaryStats::default()
                },
                releases: 18_000,
                missed: 2,
                by_lateness: HeatColumn::default(),
                standing: standing.clone(),
            }),
        };
        cpus.iter().flat_map(|cpu| periods_us.iter().map(move |us| loop_of(us, cpu))).collect()
    }

    fn shown(loops: &[LoopSoFar]) -> Vec<String> {
        let lines = lines(&progress(), "fork", loops);
        lines.iter().map(|line| line.replace('\u{a0}', " ")).collect()
    }

    const FIGURES: &str = "min 3.20 µs · typical 4.10 µs · worst 310 µs · missed 2";

    #[test]
    fn a_claim_stands_with_its_count_and_its_level() {
        let ask = Ask::parse("p(lateness>50us)<1e-6 @99%").expect("a claim");
        let standing = Standing { ask, p_upper: 3.1e-5, seen: 12, n: 300_000, theta: 0.5 };
        let lines = shown(&loops(&[1_000], &[1], Some(standing)));
        assert_eq!(
            lines[1],
            "  claim p(lateness>50us): ≤ 3.1e-5 (99 %, valid at any look), 12 of 300 000"
        );
    }

    #[test]
    fn one_loop_is_one_line_and_several_are_told_apart() {
        assert_eq!(shown(&loops(&[1_000], &[1], None)), [format!("41 s left · fork · {FIGURES}")]);
        let expected = [
            "41 s left · fork".to_owned(),
            format!("  25 µs: {FIGURES}"),
            format!("   1 ms: {FIGURES}"),
        ];
        assert_eq!(shown(&loops(&[25, 1_000], &[1], None)), expected);
        let lines = shown(&loops(&[1_000], &[0, 1], None));
        assert_eq!(lines[1], format!("  CPU 0: {FIGURES}"));
        let many: Vec<u32> = (0..12).collect();
        let lines = shown(&loops(&[250, 1_000], &many, None));
        assert_eq!((lines.len(), lines[9].as_str()), (10, "  and 16 more loops"));
        assert!(lines[1].trim_start().starts_with("CPU 0, 250 µs: "), "{}", lines[1]);
        assert!(lines.iter().all(|line| line.chars().count() <= 90), "{lines:?}");
    }

    #[test]
    fn without_loops_and_without_samples_that_is_shown() {
        assert_eq!(shown(&[]), ["41 s left · fork · worst 310 µs of 18 000"]);
        let mut none = loops(&[1_000], &[1], None);
        none[0].run = None;
        assert_eq!(shown(&none), ["41 s left · fork · no figures yet"]);
    }

    #[test]
    fn what_has_no_room_is_cut() {
        assert_eq!(cut("typical 4.10 µs", 15), "typical 4.10 µs");
        assert_eq!(cut("typical 4.10 µs", 14), "typical 4.10 …");
        // A word is there as a whole or not at all, and a load of several is a word.
        assert_eq!(cut("typical 4.10 µs", 13), "typical 4.10…");
        assert_eq!(cut("typical 4.10 µs", 12), "typical …");
        assert_eq!(cut("cpu,memory,fork", 12), "cpu,memory,…");
        assert_eq!(cut("cpu,memory,fork", 11), "cpu,memory…");
        assert_eq!([cut("typical", 3), cut("typical", 1), cut("typical", 0)], ["…", "…", ""]);
        let one = shown(&loops(&[1_000], &[1], None));
        assert!(one[0].chars().count() <= 80, "{}", one[0]);
    }

    #[test]
    fn lines_are_written_over_from_the_last_to_the_first() {
        assert_eq!(over(0), "\r\x1b[K");
        assert_eq!(over(1), "\r\x1b[K");
        assert_eq!(over(3), "\r\x1b[K\x1b[1A\x1b[K\x1b[1A\x1b[K");
    }
}
