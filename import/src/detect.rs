//! Which format a file is in, by what stands at its beginning.
//!
//! Looks at bytes; reads nothing. Names of files do not count.

use super::format::{Format, Sniff};
use super::formats;

/// How much of a file is looked at.
pub const HEAD_BYTES: usize = 1 << 16;

/// The format of a file that begins with `head` (its first [`HEAD_BYTES`], or all of it); `None`
/// for one that no program known here writes.
pub fn detect(head: &[u8]) -> Option<&'static Format> {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    // The head may end inside of a letter; bytes that are no text make none of what is looked for.
    let text = String::from_utf8_lossy(head);
    let by_head = of(|sniff| matches!(sniff, Sniff::Head(is) if is(head)));
    let by_line = |line: &str| of(|sniff| matches!(sniff, Sniff::Line(is) if is(line)));
    by_head.or_else(|| text.lines().map(str::trim_end).find_map(by_line))
}

fn of(claims: impl Fn(&Sniff) -> bool) -> Option<&'static Format> {
    formats::ALL.iter().find(|format| claims(&format.sniff))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_writes_is_nothing() {
        for bytes in [&b""[..], b"lateness\n7\n", b"1,2\n", b"\0\0\0\0", b"PUNCTUAL", b"\xff\xfe"] {
            assert_eq!(detect(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn a_line_gives_the_program_away_wherever_it_stands() {
        let of = |text: &str| detect(text.as_bytes()).map(|format| format.name);
        assert_eq!(of("# x\r\n# Histogram\r\n"), Some("cyclictest_histogram"));
        let verbose = "policy: fifo\n       0:       1:      12\n";
        assert_eq!(of(verbose), Some("cyclictest_verbose"));
        assert_eq!(of(" {\"version\": 3"), Some("threads"));
        assert_eq!(of("== Sampling period: 100 us\n"), Some("xenomai_text"));
    }

    /// The rows of the table may stand in any order: of the files that programs really wrote none
    /// is claimed by two of them.
    #[test]
    fn no_file_is_claimed_twice() {
        let peers = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/peers");
        let mut files = 0;
        for program in std::fs::read_dir(peers).expect("readable").flatten() {
            for file in std::fs::read_dir(program.path()).into_iter().flatten().flatten() {
                if file.file_name().to_string_lossy().ends_with(".golden.json") {
                    continue;
                }
                let bytes = std::fs::read(file.path()).expect("readable");
                let text = String::from_utf8_lossy(&bytes);
                let claims = |format: &&Format| match &format.sniff {
                    Sniff::Head(is) => is(&bytes),
                    Sniff::Line(is) => text.lines().map(str::trim_end).any(is),
                };
                let claimed: Vec<_> = formats::ALL.iter().filter(claims).collect();
                assert_eq!(claimed.len(), 1, "{}: {claimed:?}", file.path().display());
                files += 1;
            }
        }
        assert!(files > formats::ALL.len(), "{files}");
    }
}
