//! Serial lines: opened by name, made to pass each byte as it is, put back.
//!
//! For links to another machine. Never waits: what is read and written is there or not
//! ([`crate::events::read`], [`crate::events::write`]).

use core::ffi::{CStr, c_int};

use crate::Errno;
use crate::descriptor::Descriptor;

/// The speeds that every Linux knows, in baud.
const SPEEDS: [(u32, libc::speed_t); 9] = [
    (9_600, libc::B9600),
    (19_200, libc::B19200),
    (38_400, libc::B38400),
    (57_600, libc::B57600),
    (115_200, libc::B115200),
    (230_400, libc::B230400),
    (460_800, libc::B460800),
    (921_600, libc::B921600),
    (1_000_000, libc::B1000000),
];

/// The settings of a line, to be given to [`restore`].
#[derive(Clone, Copy)]
pub struct LineSettings(libc::termios);

impl core::fmt::Debug for LineSettings {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("LineSettings").finish_non_exhaustive()
    }
}

/// The speeds that [`set_raw`] takes, in baud.
///
/// # Real-time: setup only
pub fn speeds() -> impl Iterator<Item = u32> {
    SPEEDS.iter().map(|&(baud, _)| baud)
}

/// `open(path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)`: without waiting for a carrier, and not
/// as the terminal of this process.
///
/// Errors: `EACCES`, `ENOENT`, `EBUSY` where another program has it for itself.
///
/// # Real-time: setup only
pub fn open(path: &CStr) -> Result<Descriptor, Errno> {
    let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_NONBLOCK | libc::O_CLOEXEC;
    // SAFETY: the path ends with a zero and outlives the call.
    let made = unsafe { libc::open(path.as_ptr(), flags) };
    Errno::check(made.into()).map(|made| Descriptor::new(made as c_int))
}

/// `tcgetattr`: its settings.
///
/// Errors: `ENOTTY` for what is no terminal line.
///
/// # Real-time: setup only
pub fn settings(line: &Descriptor) -> Result<LineSettings, Errno> {
    // SAFETY: a termios of zeroes is a valid value; the call writes one.
    let mut settings: libc::termios = unsafe { core::mem::zeroed() };
    // SAFETY: writes one termios, which outlives the call.
    let result = unsafe { libc::tcgetattr(line.number(), &raw mut settings) };
    Errno::check(result.into()).map(|_| LineSettings(settings))
}

/// `cfmakeraw`, `cfsetspeed`, `tcsetattr(TCSANOW)`, `tcflush`: passes each byte as it is, at this
/// speed, and ends when its carrier is lost. What it still had is thrown away.
///
/// Errors: `EINVAL` for a speed that is none of [`speeds`], or that the device cannot have.
///
/// # Real-time: setup only
pub fn set_raw(line: &Descriptor, before: &LineSettings, baud: u32) -> Result<(), Errno> {
    let (_, speed) = SPEEDS.iter().find(|(known, _)| *known == baud).ok_or(Errno::INVAL)?;
    let mut settings = before.0;
    // SAFETY: changes one live termios.
    unsafe { libc::cfmakeraw(&raw mut settings) };
    settings.c_cflag |= libc::CREAD;
    settings.c_cflag &= !libc::CLOCAL;
    // SAFETY: changes one live termios; the speed is one of the kernel's.
    let result = unsafe { libc::cfsetspeed(&raw mut settings, *speed) };
    Errno::check(result.into())?;
    restore(line, &LineSettings(settings))?;
    // SAFETY: takes numbers only.
    let result = unsafe { libc::tcflush(line.number(), libc::TCIOFLUSH) };
    Errno::check(result.into()).map(drop)
}

/// `tcsetattr(TCSANOW)`: these settings.
///
/// # Real-time: setup only
pub fn restore(line: &Descriptor, settings: &LineSettings) -> Result<(), Errno> {
    // SAFETY: reads one live termios.
    let result = unsafe { libc::tcsetattr(line.number(), libc::TCSANOW, &raw const settings.0) };
    Errno::check(result.into()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events;

    #[test]
    fn a_line_is_raw_at_a_known_speed_and_put_back() {
        let (near, far) = events::line().expect("a pseudo-terminal");
        let before = settings(&far).expect("a terminal line");
        assert_eq!(set_raw(&far, &before, 123), Err(Errno::INVAL));
        set_raw(&far, &before, 115_200).expect("raw");
        let speed = settings(&far).expect("a terminal line").0.c_cflag & libc::CBAUD;
        assert_eq!(speed, libc::B115200);
        restore(&far, &before).expect("as it was");
        assert_eq!(settings(&far).expect("a terminal line").0.c_cflag, before.0.c_cflag);
        drop(near);
    }

    #[test]
    fn what_is_no_line_is_refused() {
        let file = open(c"/dev/null").expect("there");
        assert_eq!(settings(&file).expect_err("no terminal"), Errno::NOTTY);
        assert_eq!(open(c"/dev/none/of/these").expect_err("absent"), Errno(libc::ENOENT));
    }
}
