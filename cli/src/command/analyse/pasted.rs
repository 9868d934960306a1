//! Text that was copied from a terminal, a forum or a mail: indented, quoted, with its prompt line.
//!
//! For `analyse`. Takes off what was put before each line; never touches what a line says.

use punctual_import::formats::{Format, HEAD_BYTES, detect};

/// The file that a whole text was copied from, and its format; `None` for text that is no such
/// thing, or too long to have been copied.
pub(super) fn read(head: &[u8]) -> Option<(&'static Format, String)> {
    if head.len() >= HEAD_BYTES {
        return None;
    }
    let text = plain(&String::from_utf8_lossy(head));
    detect(text.as_bytes()).map(|format| (format, text))
}

/// Whether it is what `cyclictest -q` prints without a histogram.
pub(super) fn is_summary(head: &[u8]) -> bool {
    let text = plain(&String::from_utf8_lossy(head));
    text.lines().any(|line| {
        line.starts_with("T:") && ["Min:", "Avg:", "Max:"].iter().all(|word| line.contains(word))
    })
}

/// Each line without the marks of a quotation before it, and without what all lines are indented
/// by; without lines of a prompt.
fn plain(text: &str) -> String {
    let unquoted: Vec<&str> = text.lines().map(unquoted).filter(|line| !is_prompt(line)).collect();
    let indent = |line: &&str| line.len() - line.trim_start_matches(' ').len();
    let filled = unquoted.iter().filter(|line| !line.trim().is_empty());
    let least = filled.map(indent).min().unwrap_or(0);
    unquoted.iter().map(|line| line.get(least..).unwrap_or_default().to_owned() + "\n").collect()
}

fn unquoted(line: &str) -> &str {
    let mut line = line;
    while let Some(rest) = line.trim_start_matches(' ').strip_prefix('>') {
        line = rest.strip_prefix(' ').unwrap_or(rest);
    }
    line
}

/// A command behind the prompt of a shell: `$ cyclictest …`, `user@host:~# cyclictest …`.
fn is_prompt(line: &str) -> bool {
    let line = line.trim_start();
    let behind = line.split_once("$ ").or_else(|| line.split_once("# "));
    behind.is_some_and(|(before, _)| {
        (before.is_empty() && line.starts_with('$')) || before.contains('@')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HISTOGRAM: &str = "# /dev/cpu_dma_latency set to 0us\n# Histogram\n000001 000005\n\
                             000002 000007\n# Total: 000000012\n";

    #[test]
    fn what_was_pasted_is_the_file_that_it_came_from() {
        let before = |mark: &str| {
            let lines = HISTOGRAM.lines().map(|line| format!("{mark}{line}\n"));
            lines.collect::<String>()
        };
        for mark in ["", "    ", "> ", ">> ", "> > ", "  > "] {
            let text = format!("{mark}user@host:~$ cyclictest -h 500 -q\n{}", before(mark));
            let (format, text) = read(text.as_bytes()).expect("recognised");
            assert_eq!(
                (format.name, text.as_str()),
                ("cyclictest_histogram", HISTOGRAM),
                "{mark:?}"
            );
        }
        assert!(read(b"hello\n").is_none());
    }

    #[test]
    fn a_summary_is_known_for_one() {
        let line =
            "T: 0 ( 1234) P:80 I:1000 C:  10000 Min:      3 Act:    5 Avg:    6 Max:      40";
        assert!(is_summary(line.as_bytes()) && is_summary(format!("> {line}\n").as_bytes()));
        assert!(!is_summary(HISTOGRAM.as_bytes()));
    }
}
