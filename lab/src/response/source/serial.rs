//! A byte on a serial line whose output is connected to its input.
//!
//! By a plug, or within the UART. Puts the line back as it was; after a `kill -9` it stays raw, and
//! in loop mode where that was used.

use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use punctual_os::Errno;
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::descriptor::Descriptor;
use punctual_os::events::{self, Interest};
use punctual_os::serial::{self, OnCarrierLoss};

use super::{Device, Opening, Source, SourceRow, Stimulus, io_error};
use crate::serial_line::SerialLine;

pub(super) const ROW: SourceRow = SourceRow {
    name: "serial",
    device: Some("PATH[:BAUD]"),
    help: "a byte on a serial line whose output is connected to its input: by a plug from TX to \
           RX, else in the UART's loop mode; 115200 baud without BAUD",
    path: "serial driver, the byte's time on the wire (10 bits), the UART's receive interrupt, \
           which may wait for more bytes for as long as 4 take, terminal layer",
    by_kernel: false,
    check: |device| parsed(device).map(drop),
    open,
};

/// The speed that is not named, baud.
const BAUD: u32 = 115_200;
/// Time that the first byte may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// Path and speed.
fn parsed(device: &str) -> Result<(&str, u32), String> {
    let speed = device.rsplit_once(':').filter(|(_, end)| end.bytes().all(|c| c.is_ascii_digit()));
    let Some((path, baud)) = speed else { return Ok((device, BAUD)) };
    match baud.parse().ok().filter(|baud| serial::speeds().any(|known| known == *baud)) {
        Some(baud) => Ok((path, baud)),
        None => {
            let known: Vec<String> = serial::speeds().map(|baud| baud.to_string()).collect();
            Err(format!("{baud} baud: one of {}", known.join(", ")))
        }
    }
}

fn open(device: &str) -> Opening {
    let (path, baud) = parsed(device)?;
    let connected = SerialLoop { plug: PlugLine::open(path, baud)?, raised: AtomicU64::new(0) };
    let note = connected.connect()?;
    serial::block(connected.plug.line()).map_err(|why| io_error(why).to_string())?;
    Ok((Source::Device(Box::new(connected)), note))
}

/// A line whose outputs are connected to its inputs, by a plug or within the UART.
#[derive(Debug)]
pub(super) struct PlugLine {
    line: SerialLine,
    /// The modem lines that it had; `None` where it has none.
    lines: Option<i32>,
}

impl PlugLine {
    pub(super) fn open(path: &str, baud: u32) -> Result<Self, String> {
        let line = SerialLine::open(path, baud, OnCarrierLoss::GoesOn)?;
        let lines = serial::modem_lines(line.descriptor()).ok();
        Ok(Self { line, lines })
    }

    pub(super) fn line(&self) -> &Descriptor {
        self.line.descriptor()
    }

    /// Connects them within the UART.
    pub(super) fn close_loop(&self) -> Result<(), Errno> {
        let lines = serial::modem_lines(self.line())?;
        serial::set_modem_lines(self.line(), lines | serial::LOOP)
    }
}

impl Drop for PlugLine {
    fn drop(&mut self) {
        if let Some(lines) = self.lines {
            // A line that is gone has no modem lines.
            let _gone = serial::set_modem_lines(self.line(), lines);
        }
    }
}

/// A line that receives what it sends.
#[derive(Debug)]
struct SerialLoop {
    plug: PlugLine,
    /// The latest stimulus.
    raised: AtomicU64,
}

impl SerialLoop {
    /// Sees that bytes come back: through a plug, else in loop mode, which the note says.
    fn connect(&self) -> Result<Option<String>, String> {
        if self.comes_back()? {
            return Ok(None);
        }
        let why = match self.plug.close_loop() {
            Ok(()) if self.comes_back()? => {
                return Ok(Some("in the UART's loop mode: no byte came back by a plug".to_owned()));
            }
            Ok(()) => "nor did it in the UART's loop mode".to_owned(),
            Err(why) => format!("the driver has no loop mode ({why})"),
        };
        Err(format!(
            "a byte that was sent did not come back within {} s, and {why}; connect TX to RX \
             (pins 2 and 3 of a 9-pin connector)",
            PATIENCE.as_secs()
        ))
    }

    /// Returns true where a byte that is sent comes back.
    fn comes_back(&self) -> Result<bool, String> {
        const BYTE: u8 = 0xa5;
        let line = self.plug.line();
        let failed = |why: Errno| io_error(why).to_string();
        events::write(line, &[BYTE]).map_err(failed)?;
        let until_ns = now_ns(ClockId::Monotonic) + PATIENCE.as_nanos() as u64;
        while now_ns(ClockId::Monotonic) < until_ns {
            match events::wait_until(&mut [Interest::new(line.number())], until_ns) {
                Ok(0) | Err(Errno::INTR) => continue,
                Ok(_) => {}
                Err(why) => return Err(failed(why)),
            }
            let mut bytes = [0; 64];
            match events::read(line, &mut bytes) {
                Ok(0) => return Err(ended().to_string()),
                Ok(count) if bytes[..count].contains(&BYTE) => return Ok(true),
                Ok(_) | Err(Errno::INTR) => {}
                Err(why) => return Err(failed(why)),
            }
        }
        Ok(false)
    }
}

impl Device for SerialLoop {
    fn raise(&self, number: u64) -> io::Result<()> {
        self.raised.store(number, Ordering::Release);
        events::write(self.plug.line(), &[number as u8]).map(drop).map_err(lost)
    }

    fn wait(&self, seen: u64) -> io::Result<Option<Stimulus>> {
        let mut bytes = [0; 64];
        match events::read(self.plug.line(), &mut bytes) {
            Ok(0) => Err(ended()),
            Ok(count) => {
                let raised = self.raised.load(Ordering::Acquire);
                let numbers = bytes[..count].iter().map(|byte| numbered(*byte, raised));
                Ok(Some(Stimulus::numbered(numbers.max().unwrap_or(seen))))
            }
            Err(Errno::INTR) => Ok(None),
            Err(why) => Err(lost(why)),
        }
    }
}

/// The latest stimulus that was sent as this byte; 0 where none was. Bytes that were lost between
/// two do not shift the numbers.
fn numbered(byte: u8, raised: u64) -> u64 {
    raised.saturating_sub((raised as u8).wrapping_sub(byte).into())
}

/// EIO: the other end of a line is closed, or its device is gone.
fn lost(why: Errno) -> io::Error {
    if why == Errno(5) { ended() } else { io_error(why) }
}

fn ended() -> io::Error {
    io::Error::new(ErrorKind::UnexpectedEof, "the line was closed, or its device removed")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::thread;

    use super::*;

    /// A pseudo-terminal with a plug that sends back what it gets, and is pulled at this byte; the
    /// end that keeps its name until it is opened.
    fn plugged(last: u8) -> (String, Descriptor) {
        let (near, far) = events::line().expect("a pseudo-terminal");
        let path = fs::read_link(format!("/proc/self/fd/{}", far.number())).expect("it is open");
        thread::spawn(move || {
            let mut bytes = [0; 16];
            while let Ok(count) = events::read(&near, &mut bytes)
                && !bytes[..count].contains(&last)
            {
                events::write(&near, &bytes[..count]).expect("it is open");
            }
        });
        (path.to_string_lossy().into_owned(), far)
    }

    #[test]
    fn bytes_are_numbered_whatever_was_lost() {
        assert_eq!((numbered(3, 3), numbered(3, 5), numbered(9, 5)), (3, 3, 0));
        assert_eq!((numbered(255, 256), numbered(0, 256), numbered(1, 600)), (255, 256, 513));
    }

    #[test]
    fn a_plugged_line_passes_its_stimuli_until_the_plug_is_pulled() {
        let (path, far) = plugged(3);
        let (source, note) = open(&format!("{path}:9600")).expect("it is plugged");
        drop(far);
        assert_eq!(note, None);
        source.raise(1).expect("open");
        assert_eq!(source.wait(0).expect("open"), Some(Stimulus::numbered(1)));
        source.raise(2).expect("open");
        assert_eq!(source.wait(1).expect("open"), Some(Stimulus::numbered(2)));
        source.raise(3).expect("open");
        let why = source.wait(2).expect_err("the other end is closed");
        assert!(why.to_string().contains("closed"), "{why}");
    }

    #[test]
    fn a_line_that_cannot_be_a_source_is_refused_with_what_is_missing() {
        let (_near, far) = events::line().expect("a pseudo-terminal");
        let path = fs::read_link(format!("/proc/self/fd/{}", far.number())).expect("it is open");
        let path = path.to_string_lossy();
        let why = open(&path).expect_err("no plug");
        assert!(why.contains("did not come back") && why.contains("TX to RX"), "{why}");
        assert!(why.contains("no loop mode"), "{why}");
        assert!(open("/dev/null").expect_err("no line").contains("not a serial line"));
        assert!(open("/dev/none").expect_err("absent").contains("No such file"));
        let (path, _far) = plugged(3);
        let (_first, _) = open(&path).expect("it is plugged");
        assert!(open(&path).expect_err("in use").contains("another program has this line"));
    }
}
