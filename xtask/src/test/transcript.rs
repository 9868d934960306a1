//! What `cargo test` prints: whole in a file, on the screen a line or two a test program.
//!
//! More than a thousand tests pass, and some of them start programs that panic on purpose: shown
//! on the screen, that would hide what failed. Writes one file.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Lines before the end of a test program that did not end by itself.
const LAST: usize = 60;

/// The output of all test programs.
pub(crate) struct Transcript {
    path: PathBuf,
    kept: Mutex<Kept>,
}

struct Kept {
    file: File,
    last: VecDeque<String>,
}

impl Transcript {
    /// Writes to the new file `path`.
    pub(crate) fn create(path: &Path) -> Result<Self, String> {
        let file = File::create(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let kept = Mutex::new(Kept { file, last: VecDeque::new() });
        Ok(Self { path: path.to_owned(), kept })
    }

    /// Where all of it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads `output` to its end and gives each line to `each`.
    pub(crate) fn read(&self, output: impl Read, mut each: impl FnMut(&str)) -> Result<(), String> {
        for line in BufReader::new(output).split(b'\n') {
            let line = line.map_err(|error| format!("cargo test: {error}"))?;
            let line = String::from_utf8_lossy(&line);
            let mut kept = self.kept.lock().map_err(|_| "cargo test: a reader panicked")?;
            // A full disk must not stop the counting: who writes would wait for a reader.
            let _ = writeln!(kept.file, "{line}");
            if kept.last.len() == LAST {
                kept.last.pop_front();
            }
            kept.last.push_back(line.clone().into_owned());
            if is_shown(&line) {
                println!("{line}");
            }
            if was_killed(&line) {
                println!("the last {} lines before:", kept.last.len());
                kept.last.drain(..).for_each(|line| println!("| {line}"));
            }
            drop(kept);
            each(&line);
        }
        Ok(())
    }
}

/// Whether a line stands on the screen too: which program runs, and how it ended.
fn is_shown(line: &str) -> bool {
    let starts = ["     Running ", "   Doc-tests ", "test result: ", "error: "];
    starts.iter().any(|start| line.starts_with(start)) || line.ends_with(" ... FAILED")
}

/// Whether cargo says that a test program was ended by a signal: its failures were never printed.
fn was_killed(line: &str) -> bool {
    line.contains("process didn't exit successfully") && line.contains("(signal: ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_in_the_file_and_each_line_is_read() {
        let path = std::env::temp_dir().join(format!("punctual-transcript-{}", std::process::id()));
        let transcript = Transcript::create(&path).unwrap();
        let mut lines = Vec::new();
        transcript
            .read(&b"test a ... ok\n\xff\nlast"[..], |line| lines.push(line.to_owned()))
            .unwrap();
        assert_eq!(lines, ["test a ... ok", "\u{fffd}", "last"]);
        let whole = std::fs::read_to_string(transcript.path()).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(whole, "test a ... ok\n\u{fffd}\nlast\n");
    }

    #[test]
    fn passing_tests_are_not_shown() {
        assert!(!is_shown("test a ... ok"));
        assert!(!is_shown("thread 'a' (1) panicked at a.rs:1:2:"));
        for line in ["test a ... FAILED", "test result: ok. 1 passed", "     Running tests/a.rs"] {
            assert!(is_shown(line), "{line}");
        }
    }

    #[test]
    fn a_signal_is_told_from_a_failure() {
        assert!(was_killed("  process didn't exit successfully: `/a` (signal: 6, SIGABRT: …)"));
        assert!(!was_killed("  process didn't exit successfully: `/a` (exit status: 101)"));
    }
}
