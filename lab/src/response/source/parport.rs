//! Interrupts of a parallel port's acknowledge line that is wired to an output of the port.
//!
//! Its control lines are put back when it is over. Nothing else is to be connected: a printer
//! would print.

use std::ffi::CString;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use punctual_os::Errno;
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::descriptor::{self, Descriptor};
use punctual_os::events::{self, Interest};
use punctual_os::parport::{self, INIT, SELECT, STROBE};

use super::{Device, Opening, Source, SourceRow, Stimulus, io_error};

pub(super) const ROW: SourceRow = SourceRow {
    name: "parport",
    device: Some("PATH"),
    help: "an interrupt of a parallel port, such as /dev/parport0, whose nAck (pin 10) is wired \
           to D7 (pin 9) or to nStrobe (pin 1)",
    path: "parallel port driver, wire, interrupt of the port, poll and a second call of ppdev, \
           whose calls exclude one another; nStrobe changes one call after D7",
    by_kernel: false,
    check: |_| Ok(()),
    open,
};

/// Time that the first interrupt may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// The lines between stimuli: nStrobe low. A stimulus lets it rise, and D7 with it: the interrupt
/// comes with the rising edge of nAck.
const REST: u8 = SELECT | INIT | STROBE;
const RAISED: u8 = SELECT | INIT;

fn open(path: &str) -> Opening {
    let file = CString::new(path).map_err(|_| "a path has no zero byte".to_owned())?;
    let failed = |why: Errno| io_error(why).to_string();
    let port = descriptor::open_device(&file).map_err(|why| match why {
        Errno::ACCES => format!("{}: it must be readable and writable", io_error(why)),
        _ => io_error(why).to_string(),
    })?;
    parport::claim(&port).map_err(|why| match why {
        Errno::NOTTY | Errno::INVAL => format!("{path} is not a parallel port of ppdev"),
        _ => format!("{}: another driver or program may have this port", io_error(why)),
    })?;
    let before = parport::control(&port).map_err(failed)?;
    let wired = WiredPort { port, before, raised: AtomicU64::new(0) };
    wired.connect()?;
    Ok((Source::Device(Box::new(wired)), None))
}

/// A port whose output raises its interrupt.
#[derive(Debug)]
struct WiredPort {
    port: Descriptor,
    /// The control lines that it had.
    before: u8,
    /// The latest stimulus.
    raised: AtomicU64,
}

impl WiredPort {
    /// Sees that a stimulus gives an interrupt, and forgets it.
    fn connect(&self) -> Result<(), String> {
        let failed = |why: Errno| io_error(why).to_string();
        self.rest().map_err(failed)?;
        parport::take_interrupts(&self.port).map_err(failed)?;
        self.pulse().map_err(failed)?;
        let until_ns = now_ns(ClockId::Monotonic) + PATIENCE.as_nanos() as u64;
        match self.interrupts(until_ns) {
            Ok(1..) => Ok(()),
            Ok(0) => Err(format!(
                "no interrupt within {} s: connect nAck (pin 10) to D7 (pin 9) or nStrobe (pin \
                 1), and see that the port has an interrupt (parport_pc takes irq=)",
                PATIENCE.as_secs()
            )),
            Err(why) => Err(failed(why)),
        }
    }

    fn rest(&self) -> Result<(), Errno> {
        parport::set_control(&self.port, REST)?;
        parport::set_data(&self.port, 0)
    }

    /// Rises, and rests again.
    fn pulse(&self) -> Result<(), Errno> {
        parport::set_data(&self.port, 0xff)?;
        parport::set_control(&self.port, RAISED)?;
        // An emulated port holds its interrupt until its status is read.
        parport::status(&self.port)?;
        self.rest()
    }

    /// Waits for interrupts until an instant; how many there were, 0 also after a signal.
    fn interrupts(&self, until_ns: u64) -> Result<u32, Errno> {
        match events::wait_until(&mut [Interest::new(self.port.number())], until_ns) {
            Ok(0) | Err(Errno::INTR) => Ok(0),
            Ok(_) => parport::take_interrupts(&self.port),
            Err(why) => Err(why),
        }
    }
}

impl Device for WiredPort {
    fn raise(&self, number: u64) -> io::Result<()> {
        self.raised.store(number, Ordering::Release);
        self.pulse().map_err(io_error)
    }

    fn wait(&self, _seen: u64) -> io::Result<Option<Stimulus>> {
        match self.interrupts(u64::MAX).map_err(io_error)? {
            0 => Ok(None),
            _ => Ok(Some(Stimulus::numbered(self.raised.load(Ordering::Acquire)))),
        }
    }
}

impl Drop for WiredPort {
    fn drop(&mut self) {
        // A port that is gone has no lines.
        let _gone = parport::set_control(&self.port, self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_port_is_refused_with_the_reason() {
        let why = open("/dev/null").expect_err("no port");
        assert!(why.contains("is not a parallel port"), "{why}");
        assert!(open("/dev/none").expect_err("absent").contains("No such file"));
        assert!(open("/dev/\0").expect_err("no path").contains("zero byte"));
    }
}
