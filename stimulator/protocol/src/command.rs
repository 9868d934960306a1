//! The commands of a person to the board, a line each: `serial 1000 10000`, `edges 1000 10000`.

use core::fmt::{self, Write};

/// The shortest and the longest time from one stimulus to the next, µs.
pub const PERIOD_US: core::ops::RangeInclusive<u32> = 50..=10_000_000;
/// The most stimuli of a session.
pub const STIMULI_MAX: u32 = 1_000_000;
/// The longest line.
const LINE: usize = 64;

/// A session that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// The way of stimuli out and of answers in.
    pub path: Path,
    /// From one stimulus to the next, µs.
    pub period_us: u32,
    /// Number of stimuli, from 1 to [`STIMULI_MAX`].
    pub stimuli: u32,
}

/// The way of stimuli out and of answers in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// Frames over the serial line, to `punctual respond`.
    Serial,
    /// Edges from low to high, each answered by one.
    Edges,
}

/// Why a line is no command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The line is too long.
    Length,
    /// It begins with something else.
    Word,
    /// It has not two numbers behind that, and nothing else.
    Numbers,
    /// This period, µs.
    Period(u32),
    /// So many stimuli.
    Stimuli(u32),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (least, most) = (PERIOD_US.start(), PERIOD_US.end());
        match self {
            Self::Length => write!(f, "a line has at most {LINE} characters"),
            Self::Word => f.write_str(
                "write 'serial PERIOD_US STIMULI' or 'edges PERIOD_US STIMULI': serial 10000 1000",
            ),
            Self::Numbers => f.write_str(
                "two whole numbers belong behind it, the period in us and how many stimuli: \
                 serial 10000 1000",
            ),
            Self::Period(us) => {
                write!(f, "the period must be from {least} to {most} us (got {us})")
            }
            Self::Stimuli(count) => {
                write!(f, "stimuli must be from 1 to {STIMULI_MAX} (got {count})")
            }
        }
    }
}

impl Command {
    /// Reads a line.
    ///
    /// # Errors
    /// The fault of the line, with what is accepted.
    pub fn parse(line: &str) -> Result<Self, Refused> {
        let mut words = line.split_ascii_whitespace();
        let path = match words.next() {
            Some("serial") => Path::Serial,
            Some("edges") => Path::Edges,
            _ => return Err(Refused::Word),
        };
        let mut next = || words.next().and_then(|word| word.parse::<u32>().ok());
        let (Some(period_us), Some(stimuli), None) = (next(), next(), words.next()) else {
            return Err(Refused::Numbers);
        };
        if !PERIOD_US.contains(&period_us) {
            return Err(Refused::Period(period_us));
        }
        if !(1..=STIMULI_MAX).contains(&stimuli) {
            return Err(Refused::Stimuli(stimuli));
        }
        Ok(Self { path, period_us, stimuli })
    }
}

/// Bytes of a console as commands, each at the end of its line.
#[derive(Debug)]
pub struct Console {
    line: [u8; LINE],
    held: usize,
}

impl Default for Console {
    fn default() -> Self {
        Self::new()
    }
}

impl Console {
    /// Nothing yet.
    pub const fn new() -> Self {
        Self { line: [0; LINE], held: 0 }
    }

    /// Takes in a byte; what its line says, where that ends with it. Empty lines say nothing.
    pub fn push(&mut self, byte: u8) -> Option<Result<Command, Refused>> {
        if byte != b'\r' && byte != b'\n' {
            if let Some(place) = self.line.get_mut(self.held) {
                *place = byte;
            }
            self.held = self.held.saturating_add(1).min(LINE + 1);
            return None;
        }
        let held = core::mem::take(&mut self.held);
        match self.line.get(..held) {
            Some([]) => None,
            None => Some(Err(Refused::Length)),
            Some(line) => {
                Some(core::str::from_utf8(line).map_err(|_| Refused::Word).and_then(Command::parse))
            }
        }
    }
}

/// Writes what is wrong with a line, for a person.
///
/// # Errors
/// Those of `to`.
pub fn refuse(to: &mut impl Write, why: Refused) -> fmt::Result {
    write!(to, "error: {why}\r\n")
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::string::{String, ToString};
    use std::vec::Vec;

    use super::*;

    #[test]
    fn each_line_is_a_command_or_says_what_is_accepted() {
        let parse = Command::parse;
        let command = Command { path: Path::Serial, period_us: 1_000, stimuli: 5 };
        assert_eq!(parse("serial 1000 5"), Ok(command));
        assert_eq!(parse(" edges  1000 5 "), Ok(Command { path: Path::Edges, ..command }));
        for (line, words) in [
            ("go 1 2", "write 'serial PERIOD_US STIMULI'"),
            ("serial", "two whole numbers"),
            ("serial 1000", "two whole numbers"),
            ("serial 1000 5 6", "two whole numbers"),
            ("serial -1 5", "two whole numbers"),
            ("serial 49 5", "from 50 to 10000000 us (got 49)"),
            ("edges 1000 0", "from 1 to 1000000 (got 0)"),
            ("edges 1000 1000001", "(got 1000001)"),
        ] {
            let why = parse(line).expect_err(line).to_string();
            assert!(why.contains(words), "{line}: {why}");
        }
    }

    #[test]
    fn lines_come_a_byte_at_a_time_and_none_is_too_long() {
        let mut console = Console::new();
        let mut commands_in = |bytes: &[u8]| -> Vec<Result<Command, Refused>> {
            bytes.iter().filter_map(|byte| console.push(*byte)).collect()
        };
        assert_eq!(commands_in(b"\r\n\nserial 1000 5\r\nedges 50").len(), 1);
        assert_eq!(commands_in(b" 7\n")[0].map(|command| command.stimuli), Ok(7));
        let long: String = "x".repeat(1_000) + "\n";
        assert_eq!(commands_in(long.as_bytes()), [Err(Refused::Length)]);
        assert_eq!(commands_in(b"\xff\n"), [Err(Refused::Word)]);
        let mut text = String::new();
        refuse(&mut text, Refused::Word).expect("memory");
        assert!(text.starts_with("error: write") && text.ends_with("\r\n"));
    }
}
