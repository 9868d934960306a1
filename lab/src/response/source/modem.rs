//! Changes of a serial line's CTS that is connected to its RTS.
//!
//! By a plug, or within the UART. The line is put back; after a `kill -9` it stays raw, and in loop
//! mode where that was used.

use std::io;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use punctual_engine::spawn;
use punctual_os::serial::{self, CTS, RTS};
use punctual_os::{Errno, process, signal};

use super::serial::PlugLine;
use super::{Device, Opening, Source, SourceRow, Stimulus, io_error, latest};

pub(super) const ROW: SourceRow = SourceRow {
    name: "modem",
    device: Some("PATH"),
    help: "a change of CTS on a serial line whose RTS is connected to it: by a plug, else in the \
           UART's loop mode",
    path: "serial driver, wire, modem status interrupt of the UART, TIOCMIWAIT and TIOCGICOUNT",
    by_kernel: false,
    check: |_| Ok(()),
    open,
};

/// Time that CTS may take to follow RTS.
const PATIENCE: Duration = Duration::from_millis(500);
/// Changes made to see that interrupts report it, and the time of each.
const TRIES: u64 = 10;
const STEP: Duration = Duration::from_millis(50);
/// Time between two looks at the line.
const LOOK: Duration = Duration::from_millis(1);

fn open(path: &str) -> Opening {
    let plug = PlugLine::open(path, serial::speeds().next().unwrap_or_default())?;
    let lines = serial::modem_lines(plug.line()).map_err(|why| match why {
        Errno::NOTTY | Errno::INVAL => "its driver has no modem lines".to_owned(),
        _ => io_error(why).to_string(),
    })?;
    let taken = serial::cts_changes(plug.line()).map_err(|why| match why {
        Errno::NOTTY | Errno::INVAL => "its driver does not count changes of CTS".to_owned(),
        _ => io_error(why).to_string(),
    })?;
    let mut modem = ModemLoop {
        plug,
        base: lines & !RTS,
        raised: AtomicU64::new(0),
        first: taken,
        taken: AtomicU32::new(taken),
    };
    let note = modem.connect()?;
    Ok((Source::Device(Box::new(modem)), note))
}

/// A line whose CTS follows its RTS.
#[derive(Debug)]
struct ModemLoop {
    plug: PlugLine,
    /// The other modem lines.
    base: i32,
    /// The latest stimulus.
    raised: AtomicU64,
    /// The changes of CTS before the first stimulus, and those that were taken.
    first: u32,
    taken: AtomicU32,
}

impl ModemLoop {
    /// Sees that CTS follows RTS and that the driver notices.
    fn connect(&mut self) -> Result<Option<String>, String> {
        let failed = |why: Errno| io_error(why).to_string();
        let note = if self.follows().map_err(failed)? {
            None
        } else {
            self.plug.close_loop().map_err(|why| missing(&format!("has no loop mode ({why})")))?;
            self.base |= serial::LOOP;
            if !self.follows().map_err(failed)? {
                return Err(missing("has a loop mode that does not connect them"));
            }
            Some("in the UART's loop mode: CTS did not follow by a plug".to_owned())
        };
        if !self.reports()? {
            return Err(format!(
                "CTS follows RTS{}, but no interrupt reports {TRIES} changes",
                if note.is_some() { " in the UART's loop mode" } else { "" },
            ));
        }
        self.drive(0).map_err(failed)?;
        let is_low = || Ok(serial::modem_lines(self.plug.line())? & CTS == 0);
        within(PATIENCE, is_low).map_err(failed)?;
        self.first = serial::cts_changes(self.plug.line()).map_err(failed)?;
        self.taken.store(self.first, Ordering::Relaxed);
        Ok(note)
    }

    /// Returns true where CTS goes up and down with RTS.
    fn follows(&self) -> Result<bool, Errno> {
        for number in [1, 0] {
            self.drive(number)?;
            let is = |lines: i32| (lines & CTS != 0) == (number == 1);
            if !within(PATIENCE, || serial::modem_lines(self.plug.line()).map(is))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns true where changes of CTS are counted without a look at the line. Drivers have these
    /// interrupts only while a thread waits for them, or from then on.
    fn reports(&self) -> Result<bool, String> {
        let line = self.plug.line();
        let failed = |why: Errno| io_error(why).to_string();
        signal::catch_interrupt().map_err(failed)?;
        let waiting = AtomicI32::new(0);
        thread::scope(|scope| {
            let waiter = spawn::scoped(scope, "punctual-cts", || {
                waiting.store(process::tid(), Ordering::Release);
                serial::wait_for_cts(line)
            });
            let waiter = waiter.map_err(|why| why.to_string())?;
            let tried = || {
                let before = serial::cts_changes(line)?;
                for number in 1..=TRIES {
                    self.drive(number)?;
                    if within(STEP, || Ok(serial::cts_changes(line)? != before))? {
                        return Ok(true);
                    }
                }
                Ok(false)
            };
            let reports = tried().map_err(failed);
            while !waiter.is_finished() {
                let _gone = signal::interrupt(waiting.load(Ordering::Acquire));
                // Until it is gone, however long a look takes.
                thread::sleep(LOOK);
            }
            match waiter.join() {
                Ok(Ok(()) | Err(Errno::INTR)) => reports,
                Ok(Err(why)) => Err(format!("its driver cannot wait for CTS: {}", io_error(why))),
                Err(why) => std::panic::resume_unwind(why),
            }
        })
    }

    /// Odd stimuli set RTS.
    fn drive(&self, number: u64) -> Result<(), Errno> {
        let lines = if number % 2 == 1 { self.base | RTS } else { self.base };
        serial::set_modem_lines(self.plug.line(), lines)
    }
}

impl Device for ModemLoop {
    fn raise(&self, number: u64) -> io::Result<()> {
        self.raised.store(number, Ordering::Release);
        self.drive(number).map_err(io_error)
    }

    /// A change between the count and the wait is found with the next one.
    fn wait(&self, _seen: u64) -> io::Result<Option<Stimulus>> {
        let taken = self.taken.load(Ordering::Relaxed);
        let mut changes = serial::cts_changes(self.plug.line()).map_err(io_error)?;
        if changes == taken {
            match serial::wait_for_cts(self.plug.line()) {
                Ok(()) => changes = serial::cts_changes(self.plug.line()).map_err(io_error)?,
                Err(Errno::INTR) => return Ok(None),
                Err(why) => return Err(io_error(why)),
            }
        }
        self.taken.store(changes, Ordering::Relaxed);
        let is_odd = changes.wrapping_sub(self.first) % 2 == 1;
        Ok(Some(Stimulus::numbered(latest(is_odd, self.raised.load(Ordering::Acquire)))))
    }
}

fn missing(loop_mode: &str) -> String {
    format!(
        "CTS did not follow RTS within {} ms, and the UART {loop_mode}; connect RTS to CTS (pins 7 \
         and 8 of a 9-pin connector)",
        PATIENCE.as_millis()
    )
}

/// Returns true once `is` does, false where it does not within `patience`.
fn within(patience: Duration, mut is: impl FnMut() -> Result<bool, Errno>) -> Result<bool, Errno> {
    let end = Instant::now() + patience;
    loop {
        if is()? {
            return Ok(true);
        }
        if Instant::now() >= end {
            return Ok(false);
        }
        // A look now and then: nothing is timed by it.
        thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use punctual_os::events;

    use super::*;

    #[test]
    fn a_line_without_modem_lines_is_refused_with_the_reason() {
        let (_near, far) = events::line().expect("a pseudo-terminal");
        let path = fs::read_link(format!("/proc/self/fd/{}", far.number())).expect("it is open");
        let why = open(&path.to_string_lossy()).expect_err("it has none");
        assert!(why.contains("no modem lines"), "{why}");
        assert!(open("/dev/null").expect_err("no line").contains("not a serial line"));
        assert!(missing("has no loop mode").contains("pins 7 and 8"));
    }

    #[test]
    fn what_never_comes_is_waited_for_no_longer_than_that() {
        let mut looks = 0;
        let third = within(PATIENCE, || {
            looks += 1;
            Ok(looks == 3)
        });
        assert_eq!(third, Ok(true));
        assert_eq!(within(LOOK, || Ok(false)), Ok(false));
        assert_eq!(within(LOOK, || Err(Errno::NODEV)), Err(Errno::NODEV));
    }
}
