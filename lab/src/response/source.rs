//! Sources of stimuli: one row a source, and its two ends.
//!
//! Help texts, errors and the documentation's table follow the rows. A source that this machine
//! cannot have is refused with the reason. A new source that has a device is its file here, with
//! its row and its [`Device`].

mod gpio;
mod modem;
mod parport;
mod serial;
mod udp;

use std::fmt;
use std::io::{self, ErrorKind};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

use punctual_core::time::Span;
use punctual_os::descriptor::Descriptor;
use punctual_os::futex::{self, Scope};
use punctual_os::{Errno, events};

/// Every source; those that need no device first.
pub static SOURCES: [SourceRow; 10] = [
    EVENTFD,
    FUTEX,
    TIMERFD,
    udp::ROW,
    PTY,
    udp::CABLE,
    serial::ROW,
    modem::ROW,
    gpio::ROW,
    parport::ROW,
];

/// A source that is there.
#[derive(Debug)]
pub(crate) enum Source {
    Futex(AtomicU64),
    Eventfd(Descriptor),
    Timerfd(Descriptor),
    Pty(Descriptor, Descriptor),
    Device(Box<dyn Device>),
}

/// A source in a file of its own.
pub(crate) trait Device: fmt::Debug + Send + Sync {
    /// Raises stimulus `number`, from 1 on.
    ///
    /// # Errors
    /// It is gone.
    fn raise(&self, number: u64) -> io::Result<()>;

    /// Waits for a stimulus after number `seen`; `None` where a signal or a limit of time ended the
    /// wait.
    ///
    /// # Errors
    /// It is gone.
    fn wait(&self, seen: u64) -> io::Result<Option<Stimulus>>;

    /// Ends a wait of the thread that answers, where a signal does not.
    fn end_wait(&self) {}

    /// As [`Source::stamps_within`].
    ///
    /// # Errors
    /// Why the stamps are no times on CLOCK_MONOTONIC.
    fn stamps_within(&self) -> Result<Option<Span>, String> {
        Ok(None)
    }
}

/// The stimulus that a wait found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stimulus {
    /// The latest stimulus, from 1 on. One that was waited for before: this event is no stimulus.
    pub(super) number: u64,
    /// The kernel's stamp of the event, ns on CLOCK_MONOTONIC.
    pub(super) kernel_ns: Option<u64>,
}

impl Stimulus {
    const fn numbered(number: u64) -> Self {
        Self { number, kernel_ns: None }
    }
}

impl Source {
    /// By how much the kernel's stamps since it was opened may be off CLOCK_MONOTONIC; `None` where
    /// they are on it, or there are none.
    ///
    /// # Errors
    /// Why they are no times on that clock.
    pub(super) fn stamps_within(&self) -> Result<Option<Span>, String> {
        match self {
            Self::Device(device) => device.stamps_within(),
            _ => Ok(None),
        }
    }

    /// Raises stimulus `number`, from 1 on. The kernel raises those of a timer.
    ///
    /// # Errors
    /// The source is gone.
    pub(super) fn raise(&self, number: u64) -> io::Result<()> {
        match self {
            Self::Futex(word) => {
                word.store(number, Ordering::Release);
                futex::wake(word, 1, Scope::Process).map(drop).map_err(io_error)
            }
            Self::Eventfd(counter) => events::add(counter, 1).map_err(io_error),
            Self::Timerfd(_) => Ok(()),
            Self::Pty(near, _) => events::write(near, &[0x55]).map(drop).map_err(io_error),
            Self::Device(device) => device.raise(number),
        }
    }

    /// Waits for a stimulus after number `seen`; `None` where a signal or a limit of time ended
    /// the wait.
    ///
    /// # Errors
    /// The source is gone.
    pub(super) fn wait(&self, seen: u64) -> io::Result<Option<Stimulus>> {
        let counted = |taken: Result<u64, Errno>| match taken {
            Ok(count) => Ok(Some(Stimulus::numbered(seen.saturating_add(count)))),
            Err(Errno::INTR) => Ok(None),
            Err(why) => Err(io_error(why)),
        };
        match self {
            Self::Futex(word) => {
                // The low half alone is compared; runs are far shorter than 2³² stimuli.
                futex::wait(word, seen as u32, Scope::Process);
                let number = word.load(Ordering::Acquire);
                Ok(Some(Stimulus::numbered(number)).filter(|_| number != seen))
            }
            Self::Eventfd(counter) | Self::Timerfd(counter) => counted(events::take(counter)),
            Self::Pty(_, far) => {
                let mut bytes = [0; 64];
                match counted(events::read(far, &mut bytes).map(|count| count as u64)) {
                    Ok(Some(Stimulus { number, .. })) if number == seen => {
                        Err(ErrorKind::UnexpectedEof.into())
                    }
                    found => found,
                }
            }
            Self::Device(device) => device.wait(seen),
        }
    }

    /// Ends a wait of the thread that answers, once or again. A signal ends the waits for devices.
    pub(super) fn end_wait(&self) {
        match self {
            Self::Timerfd(timer) => {
                let _due_at_once = events::arm(timer, 1, 0);
            }
            Self::Device(device) => device.end_wait(),
            _ => {
                // A source that is gone has ended the thread itself.
                let _gone = self.raise(u64::MAX);
            }
        }
    }
}

fn io_error(why: Errno) -> io::Error {
    io::Error::from_raw_os_error(why.0)
}

/// The latest stimulus of these, odd or even: of a source whose stimuli change a level in turn. 0
/// where there was none.
fn latest(odd: bool, raised: u64) -> u64 {
    raised.saturating_sub(u64::from((raised % 2 == 1) != odd))
}

fn is_nothing(why: &io::Error) -> bool {
    matches!(why.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock)
}

/// A source that was opened; with a note where it is not quite what was requested.
type Opening = Result<(Source, Option<String>), String>;

/// One source.
#[derive(Debug)]
pub struct SourceRow {
    /// Its name on the command line.
    pub name: &'static str,
    /// The form of its device's name after a colon; `None` where it has none.
    pub device: Option<&'static str>,
    /// Its description, in a line.
    pub help: &'static str,
    /// The path that a stimulus passes through, and what that leaves out.
    pub path: &'static str,
    /// True where the kernel raises its stimuli, and no thread.
    pub by_kernel: bool,
    /// Checks the name of a device; an error is its fault, in words for the user.
    check: fn(&str) -> Result<(), String>,
    /// Makes it, or opens the device of this name.
    open: fn(&str) -> Opening,
}

impl SourceRow {
    /// Its form on the command line: `eventfd`, `serial:PATH[:BAUD]`.
    pub fn form(&self) -> String {
        self.device.map_or_else(|| self.name.to_owned(), |form| format!("{}:{form}", self.name))
    }
}

/// A source by its name and its device: `eventfd`, `serial:/dev/ttyS1`.
#[derive(Clone, Debug)]
pub struct SourceName {
    row: &'static SourceRow,
    device: String,
}

impl SourceName {
    /// Its row.
    pub const fn row(&self) -> &'static SourceRow {
        self.row
    }

    /// Makes it; with a note where it is not quite what was requested.
    pub(crate) fn open(&self) -> Opening {
        (self.row.open)(&self.device).map_err(|why| format!("source {self}: {why}"))
    }
}

impl Default for SourceName {
    /// The first of the table.
    fn default() -> Self {
        Self { row: &SOURCES[0], device: String::new() }
    }
}

impl fmt::Display for SourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row.name)?;
        if self.row.device.is_some() {
            write!(f, ":{}", self.device)?;
        }
        Ok(())
    }
}

impl FromStr for SourceName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, device) = text.split_once(':').unwrap_or((text, ""));
        let known = || SOURCES.iter().map(SourceRow::form).collect::<Vec<_>>().join(", ");
        let row = SOURCES.iter().find(|row| row.name == name);
        let row = row.ok_or_else(|| format!("unknown source; known are {}", known()))?;
        match row.device {
            None if text == name => {}
            None => return Err(format!("{name} has no device; known are {}", known())),
            Some(_) if device.is_empty() => {
                let (form, help) = (row.form(), row.help);
                return Err(format!(
                    "its device is missing: {form} ({help}); known are {}",
                    known()
                ));
            }
            Some(_) => (row.check)(device).map_err(|why| format!("{}: {why}", row.form()))?,
        }
        Ok(Self { row, device: device.to_owned() })
    }
}

/// A row of a source without a device.
const fn row(
    name: &'static str,
    (help, path): (&'static str, &'static str),
    open: fn(&str) -> Opening,
) -> SourceRow {
    SourceRow { name, device: None, help, path, by_kernel: false, check: |_| Ok(()), open }
}

const EVENTFD: SourceRow = row(
    "eventfd",
    (
        "a thread on another CPU writes an eventfd",
        "scheduler and inter-processor interrupt; no device",
    ),
    |_| plain(events::counter().map(Source::Eventfd)),
);

const FUTEX: SourceRow = row(
    "futex",
    (
        "a thread on another CPU wakes a futex",
        "scheduler and inter-processor interrupt; no device, no file",
    ),
    |_| Ok((Source::Futex(AtomicU64::new(0)), None)),
);

const TIMERFD: SourceRow = SourceRow {
    by_kernel: true,
    ..row(
        "timerfd",
        (
            "the kernel's timer expires",
            "timer interrupt of the measured CPU; the stimulus is the timer's own expiry",
        ),
        |_| plain(events::timer().map(Source::Timerfd)),
    )
};

const PTY: SourceRow = row(
    "pty",
    (
        "a byte through a pseudo-terminal, as a serial line has it",
        "terminal layer and a kernel worker, which has no real-time priority; no UART",
    ),
    |_| plain(events::line().map(|(near, far)| Source::Pty(near, far))),
);

fn plain(made: Result<Source, Errno>) -> Opening {
    made.map(|source| (source, None)).map_err(|why| io_error(why).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_passes_its_stimuli_in_order() {
        for row in SOURCES.iter().filter(|row| row.device.is_none()) {
            let name: SourceName = row.name.parse().expect(row.name);
            let (source, _) = name.open().expect(row.name);
            if let Source::Timerfd(timer) = &source {
                events::arm(timer, 1, 1_000_000_000_000_000).expect("armed");
            }
            // A signal for another test, or the limit of a socket's patience, ends a wait early.
            let wait = |seen| {
                let found = (0..100).find_map(|_| source.wait(seen).expect(row.name));
                found.map_or(seen, |stimulus| stimulus.number)
            };
            source.raise(1).expect(row.name);
            let first = wait(0);
            assert!(first >= 1, "{}", row.name);
            if !row.by_kernel {
                source.raise(2).expect(row.name);
                source.raise(3).expect(row.name);
                let mut seen = first;
                while seen < 3 {
                    seen = wait(seen);
                }
                assert_eq!(seen, 3, "{}", row.name);
            }
        }
    }

    #[test]
    fn a_change_belongs_to_the_latest_stimulus_of_its_direction() {
        assert_eq!((latest(true, 5), latest(false, 5)), (5, 4));
        assert_eq!((latest(true, 6), latest(false, 6)), (5, 6));
        assert_eq!((latest(false, 1), latest(true, 0), latest(false, 0)), (0, 0, 0));
    }

    #[test]
    fn a_line_whose_other_end_is_closed_is_an_error_and_no_stimulus() {
        let (near, far) = events::line().expect("a pseudo-terminal");
        let unused = events::counter().expect("a descriptor");
        drop(near);
        assert!(Source::Pty(unused, far).wait(0).is_err());
    }

    #[test]
    fn sources_are_named_with_their_devices_and_what_is_none_is_refused() {
        for text in ["eventfd", "serial:/dev/ttyS1", "serial:/dev/ttyS1:9600"] {
            let name: SourceName = text.parse().expect(text);
            assert_eq!(name.to_string(), text);
        }
        assert_eq!(SourceName::default().to_string(), "eventfd");
        for text in ["", "disco", "eventfd:", "eventfd:x", "serial", "serial:", "serial:/x:5"] {
            assert!(text.parse::<SourceName>().is_err(), "{text:?}");
        }
        let why = "serial".parse::<SourceName>().expect_err("no device");
        assert!(why.contains("serial:PATH[:BAUD]"), "{why}");
    }
}
