//! Which program wrote a file, told by what stands at its beginning.
//!
//! Looks at bytes; reads nothing. Names of files say nothing here.

use super::jitterdebugger::is_samples;

/// How much of a file is looked at.
pub const HEAD_BYTES: usize = 1 << 16;

/// A format of another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// JSON of rt-tests (cyclictest, oslat) and of jitterdebugger.
    Threads,
    /// cyclictest -h: a histogram in text.
    CyclictestHistogram,
    /// cyclictest -v: every value in text.
    CyclictestVerbose,
    /// jitterdebugger -s: every value in binary records.
    JitterdebuggerSamples,
    /// rtla timerlat hist and rtla osnoise hist.
    Rtla,
    /// stress-ng --cyclic.
    StressNg,
    /// latmus -g of EVL and Xenomai 4.
    Latmus,
    /// `latency -h` of Xenomai 3.
    XenomaiText,
    /// `latency -g` of Xenomai 3.
    XenomaiGnuplot,
    /// halcmd show pin of LinuxCNC's latencybins.
    Latencybins,
    /// latency-histogram --nox of LinuxCNC.
    LatencyHistogram,
    /// A log of HdrHistogram, V2.
    HdrLog,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Threads,
        Self::CyclictestHistogram,
        Self::CyclictestVerbose,
        Self::JitterdebuggerSamples,
        Self::Rtla,
        Self::StressNg,
        Self::Latmus,
        Self::XenomaiText,
        Self::XenomaiGnuplot,
        Self::Latencybins,
        Self::LatencyHistogram,
        Self::HdrLog,
    ];
}

/// The format of a file that begins with `head` (its first [`HEAD_BYTES`], or all of it); `None`
/// for one that no program known here writes.
pub fn detect(head: &[u8]) -> Option<Format> {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    if head.trim_ascii_start().starts_with(b"{") {
        return Some(Format::Threads);
    }
    // The head may end inside of a letter; bytes that are no text make none of what is looked for.
    let text = String::from_utf8_lossy(head);
    let by_line = || text.lines().map(str::trim_end).find_map(of_line);
    by_line().or_else(|| is_samples(head).then_some(Format::JitterdebuggerSamples))
}

/// The format that one line gives away.
fn of_line(line: &str) -> Option<Format> {
    let starts = |prefix| line.starts_with(prefix);
    if starts("# RTLA timerlat histogram") || starts("# RTLA osnoise histogram") {
        Some(Format::Rtla)
    } else if line == "# Histogram" {
        Some(Format::CyclictestHistogram)
    } else if starts("# sampling period: ") {
        Some(Format::Latmus)
    } else if line.contains("----lat min|") {
        Some(if starts("#") { Format::XenomaiGnuplot } else { Format::XenomaiText })
    } else if starts("== Sampling period:") || starts("HSD|") || starts("RTS|") {
        Some(Format::XenomaiText)
    } else if line.contains("cyclic: sched SCHED_") {
        Some(Format::StressNg)
    } else if starts("#[") && line.contains("log format version")
        || starts("\"StartTimestamp\",\"Interval_Length\"")
        || line.contains(",HISTF")
    {
        Some(Format::HdrLog)
    } else if starts("Component Pins:") {
        Some(Format::Latencybins)
    } else if line.contains(" us max:") && line.contains(" us sdev:") {
        Some(Format::LatencyHistogram)
    } else if super::cyclictest::verbose_line(line).is_some()
        || (starts("Thread ") && line.contains(" Interval: "))
    {
        Some(Format::CyclictestVerbose)
    } else {
        None
    }
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
        let of = |text: &str| detect(text.as_bytes());
        assert_eq!(of("# x\r\n# Histogram\r\n"), Some(Format::CyclictestHistogram));
        assert_eq!(
            of("policy: fifo\n       0:       1:      12\n"),
            Some(Format::CyclictestVerbose)
        );
        assert_eq!(of(" {\"version\": 3"), Some(Format::Threads));
        assert_eq!(of("== Sampling period: 100 us\n"), Some(Format::XenomaiText));
    }
}
