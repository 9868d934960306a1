//! A wait's knowledge of this machine as bytes that outlive the program, for a start that need not
//! learn first.
//!
//! A wait learns for a third of a second before its first cycle, and goes on for some seconds in
//! the loop, at a price in CPU time. What it learned holds for the same machine, kernel and boot
//! parameters, the same CPU and the same period. [`to_bytes`] makes bytes of it, [`from_bytes`]
//! reads them back; where they lie is the caller's. They are a beginning and no promise: the wait
//! takes a quarter more margin at first, checks them as it goes, and learns anew where they do not
//! hold. Wrong where the next start has other rights or another load: what it then needs to learn,
//! it learns late.
//!
//! An executive's are those of its main loop, for
//! [`Executive::wait_period`](crate::Executive::wait_period).
//!
//! ```
//! use std::time::Duration;
//! use punctual::{Loop, Period, RtThread, WaitPolicy, learned};
//!
//! # let file = std::env::temp_dir().join(format!("punctual-learned-{}", std::process::id()));
//! let period = Period::hz(1_000).expect("in range");
//! let mut wait = WaitPolicy::adaptive();
//! match std::fs::read(&file).map(|bytes| learned::from_bytes(&bytes, period)) {
//!     Ok(Ok(known)) => wait = wait.learned(known),
//!     Ok(Err(why)) => eprintln!("{}: {why}", file.display()),
//!     Err(_) => {} // The first start.
//! }
//! let control_loop = Loop::builder(period).thread(RtThread::any().wait(wait)).start()?;
//! let summary = control_loop.run_for(Duration::from_millis(50), |_| {});
//! if let Some(known) = summary.learned() {
//!     std::fs::write(&file, learned::to_bytes(&known, period))?;
//! }
//! # std::fs::remove_file(&file)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;
use std::fs;

use punctual_core::time::Period;
use punctual_core::wait::{Learned, WakePlan};

/// The length of kept bytes, which [`to_bytes`] makes.
pub const BYTES: usize = 56;

/// The first bytes; the last of them is the version.
const MAGIC: [u8; 8] = *b"punctlr\x01";

/// Makes bytes of a wait's knowledge for loops of this period on this machine: magic and version, a
/// digest of the machine, period, hop and margin in ns, hops, the share of late wakes; a checksum.
/// Little-endian.
///
/// # Real-time: setup only
pub fn to_bytes(learned: &Learned, period: Period) -> [u8; BYTES] {
    encoded(learned, period, machine())
}

fn encoded(learned: &Learned, period: Period, machine: u32) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    let WakePlan { hop_ns, hops, margin_ns, .. } = learned.plan;
    let mut at = 0;
    let mut put = |part: &[u8]| {
        bytes[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    };
    put(&MAGIC);
    put(&machine.to_le_bytes());
    put(&hops.to_le_bytes());
    let words = [period.as_ns(), hop_ns, margin_ns, learned.late.to_bits()];
    words.iter().for_each(|word| put(&word.to_le_bytes()));
    let sum = crc32fast::hash(&bytes[..SUMMED]);
    bytes[SUMMED..SUMMED + 4].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// The bytes that the checksum is of, which follows them; the last four are zero.
const SUMMED: usize = 48;

/// Reads back the knowledge that [`to_bytes`] made bytes of, for loops of this period.
///
/// # Errors
/// They are damaged, of another version, of another machine, kernel or boot parameters, or of
/// another period.
///
/// # Real-time: setup only
pub fn from_bytes(bytes: &[u8], period: Period) -> Result<Learned, FromBytesError> {
    decoded(bytes, period, machine())
}

fn decoded(bytes: &[u8], period: Period, machine: u32) -> Result<Learned, FromBytesError> {
    let bytes: &[u8; BYTES] = bytes.try_into().map_err(|_| FromBytesError::Length(bytes.len()))?;
    if bytes[..7] != MAGIC[..7] {
        return Err(FromBytesError::Damaged);
    }
    if bytes[7] != MAGIC[7] {
        return Err(FromBytesError::Version(bytes[7]));
    }
    let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap_or_default());
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
    if half(SUMMED) != crc32fast::hash(&bytes[..SUMMED]) {
        return Err(FromBytesError::Damaged);
    }
    if half(8) != machine {
        return Err(FromBytesError::Elsewhere);
    }
    let (kept_ns, late) = (word(16), f64::from_bits(word(40)));
    if kept_ns != period.as_ns() {
        return Err(FromBytesError::Period { got_ns: kept_ns, wanted: period });
    }
    if !(0.0..=1.0).contains(&late) {
        return Err(FromBytesError::Damaged);
    }
    Ok(Learned::kept(WakePlan::new(word(24), half(12), word(32)), late))
}

/// The fault of kept bytes. Without them the wait learns anew.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FromBytesError {
    /// Their number is this, and not [`BYTES`].
    Length(usize),
    /// Their checksum or a value in them is wrong, or they are no kept bytes.
    Damaged,
    /// Their format has this version, which this library does not read.
    Version(u8),
    /// They were learned on another machine, kernel, or with other boot parameters.
    Elsewhere,
    /// They were learned by a loop of another period.
    Period {
        /// The period for which they were learned, ns.
        got_ns: u64,
        /// The period that was wanted.
        wanted: Period,
    },
}

impl fmt::Display for FromBytesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(got) => write!(f, "what was learned has {BYTES} bytes, and this {got}"),
            Self::Damaged => f.write_str("these bytes are not what a wait learned, or damaged"),
            Self::Version(got) => {
                let read = MAGIC[7];
                write!(f, "what was learned has version {got}, and version {read} is read")
            }
            Self::Elsewhere => f.write_str(
                "this was learned on another machine, kernel, or with other boot parameters",
            ),
            Self::Period { got_ns, wanted } => {
                let wanted_ns = wanted.as_ns();
                write!(f, "this was learned for a period of {got_ns} ns, and not of {wanted_ns} ns")
            }
        }
    }
}

impl std::error::Error for FromBytesError {}

/// A digest of what decides how early a wait must wake: kernel, boot parameters, kind and number of
/// CPUs. Facts that cannot be read count as empty.
fn machine() -> u32 {
    let mut digest = crc32fast::Hasher::new();
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    for path in ["/proc/sys/kernel/osrelease", "/proc/sys/kernel/version", "/proc/cmdline"] {
        digest.update(read(path).as_bytes());
    }
    // Of all the lines only those that stay the same: frequencies do not.
    let is_kind = |line: &&str| {
        ["model name", "CPU part", "processor"]
            .iter()
            .any(|kind| line.split(':').next().is_some_and(|name| name.trim() == *kind))
    };
    let cpus = read("/proc/cpuinfo");
    cpus.lines().filter(is_kind).for_each(|line| digest.update(line.as_bytes()));
    digest.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use punctual_core::wait::adaptive::LearnPhase;

    fn learned(plan: WakePlan, late: f64) -> Learned {
        let mut learned = Learned::kept(plan, late);
        (learned.phase, learned.cycles, learned.cpu) = (LearnPhase::Probing, 90_000, 0.05);
        (learned.reachable, learned.extrapolated, learned.trials_late) = (false, false, 3);
        learned
    }

    fn period() -> Period {
        Period::from_ns(1_000_000).expect("positive")
    }

    #[test]
    fn bytes_of_elsewhere_of_another_period_and_damaged_ones_are_refused_in_words() {
        let plan = WakePlan::new(50_000, 3, 20_000);
        let bytes = to_bytes(&learned(plan, 1e-3), period());
        assert_eq!(from_bytes(&bytes, period()).map(|known| known.plan), Ok(plan));
        let refused = |bytes: &[u8]| from_bytes(bytes, period()).expect_err("refused").to_string();
        assert!(refused(&bytes[1..]).contains("has 56 bytes, and this 55"));
        assert!(refused(&[]).contains("and this 0"));
        for at in 0..SUMMED + 4 {
            let mut damaged = bytes;
            damaged[at] ^= 0x10;
            let why = refused(&damaged);
            assert!(why.contains("damaged") || (at == 7 && why.contains("version 17")), "{why}");
        }
        let elsewhere = encoded(&learned(plan, 1e-3), period(), machine() ^ 1);
        assert!(refused(&elsewhere).contains("another machine"));
        let other = to_bytes(&learned(plan, 1e-3), Period::from_ns(500_000).expect("positive"));
        assert!(refused(&other).contains("500000 ns"), "{}", refused(&other));
        assert_eq!(
            refused(&to_bytes(&learned(plan, f64::NAN), period())),
            FromBytesError::Damaged.to_string()
        );
        assert_eq!(machine(), machine(), "the facts of a digest stay");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            hop_ns: u64, hops: u32, margin_ns: u64, late in 0.0..=1.0, ns in 1..1u64 << 50,
        ) {
            let period = Period::from_ns(ns).expect("positive");
            let kept = learned(WakePlan::new(hop_ns, hops, margin_ns), late);
            let known = from_bytes(&to_bytes(&kept, period), period).expect("the same machine");
            prop_assert_eq!((known.plan, known.late), (kept.plan, kept.late));
            prop_assert_eq!((known.phase, known.cycles), (LearnPhase::Following, 0));
        }

        #[test]
        fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _refused = from_bytes(&bytes, period());
        }
    }
}
