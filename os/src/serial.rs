//! Serial lines: made to pass each byte as it is, and put back; the modem lines beside the data.
//!
//! For links to another machine and for experiments. Bytes are read and written by
//! [`crate::events::read`] and [`crate::events::write`]; only [`wait_for_cts`] waits.

use core::ffi::c_int;

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

/// The reaction of a line to the loss of its carrier (DCD).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnCarrierLoss {
    /// It ends.
    Ends,
    /// It goes on: its modem lines mean something else, or are not connected.
    GoesOn,
}

/// `cfmakeraw`, `tcsetattr(TCSANOW)`, `ioctl(TCSETS2)`, `tcflush`: passes each byte as it is, at
/// this speed, without handshake by RTS and CTS. What it still had is thrown away.
///
/// Errors: `EINVAL` for a speed that is none of [`speeds`], or that the device cannot have.
///
/// # Real-time: setup only
pub fn set_raw(
    line: &Descriptor,
    before: &LineSettings,
    baud: u32,
    loss: OnCarrierLoss,
) -> Result<(), Errno> {
    let (_, speed) = SPEEDS.iter().find(|(known, _)| *known == baud).ok_or(Errno::INVAL)?;
    let mut settings = before.0;
    // SAFETY: changes one live termios.
    unsafe { libc::cfmakeraw(&raw mut settings) };
    // What it leaves as whoever had the line before had it: XON and XOFF among the bytes, a second
    // stop bit.
    settings.c_iflag &= !(libc::IXOFF | libc::IXANY);
    settings.c_cflag &= !(libc::CLOCAL | libc::CRTSCTS | libc::CSTOPB);
    settings.c_cflag |= libc::CREAD;
    if loss == OnCarrierLoss::GoesOn {
        settings.c_cflag |= libc::CLOCAL;
    }
    restore(line, &LineSettings(settings))?;
    set_speed(line, *speed)?;
    // SAFETY: takes numbers only.
    let result = unsafe { libc::tcflush(line.number(), libc::TCIOFLUSH) };
    Errno::check(result.into()).map(drop)
}

/// `ioctl(TCGETS2)`, `ioctl(TCSETS2)`: this speed both ways.
///
/// By the kernel's own call: `cfsetspeed` has another meaning from glibc 2.42 on, and the version
/// of before that the libc crate names is in no static glibc.
fn set_speed(line: &Descriptor, speed: libc::speed_t) -> Result<(), Errno> {
    // SAFETY: a termios2 of zeroes is a valid value; the call writes one.
    let mut settings: libc::termios2 = unsafe { core::mem::zeroed() };
    // SAFETY: TCGETS2 writes one termios2, which outlives the call.
    let result = unsafe { libc::ioctl(line.number(), libc::TCGETS2, &raw mut settings) };
    Errno::check(result.into())?;
    settings.c_cflag = settings.c_cflag & !(libc::CBAUD | libc::CIBAUD) | speed;
    // SAFETY: TCSETS2 reads one termios2, which outlives the call.
    let result = unsafe { libc::ioctl(line.number(), libc::TCSETS2, &raw const settings) };
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

/// `fcntl(F_SETFL, O_RDWR)`: reads of it wait from now on.
///
/// # Real-time: setup only
pub fn block(line: &Descriptor) -> Result<(), Errno> {
    // SAFETY: takes numbers only.
    let result = unsafe { libc::fcntl(line.number(), libc::F_SETFL, libc::O_RDWR) };
    Errno::check(result.into()).map(drop)
}

/// Request to send: an output.
pub const RTS: c_int = libc::TIOCM_RTS;
/// Clear to send: an input.
pub const CTS: c_int = libc::TIOCM_CTS;
/// A UART whose outputs are connected to its inputs within it.
pub const LOOP: c_int = 0x8000;

/// `ioctl(TIOCMGET)`: the modem lines that are set, [`RTS`], [`CTS`] and others.
///
/// Errors: `ENOTTY` or `EINVAL` where the line has none, `EIO` where the device is gone.
///
/// # Real-time: in loop
pub fn modem_lines(line: &Descriptor) -> Result<c_int, Errno> {
    let mut lines: c_int = 0;
    // SAFETY: TIOCMGET writes one int, which outlives the call.
    let result = unsafe { libc::ioctl(line.number(), libc::TIOCMGET, &raw mut lines) };
    Errno::check(result.into()).map(|_| lines)
}

/// `ioctl(TIOCMSET)`: sets these modem lines, and clears the other outputs.
///
/// Errors: as [`modem_lines`].
///
/// # Real-time: in loop
pub fn set_modem_lines(line: &Descriptor, lines: c_int) -> Result<(), Errno> {
    // SAFETY: TIOCMSET reads one int, which outlives the call.
    let result = unsafe { libc::ioctl(line.number(), libc::TIOCMSET, &raw const lines) };
    Errno::check(result.into()).map(drop)
}

/// `ioctl(TIOCMIWAIT, TIOCM_CTS)`: waits until CTS changes; what changed before the call does not
/// count ([`cts_changes`] does).
///
/// Errors: `EINTR` on a signal; `ENOTTY` or `EINVAL` where the driver cannot, `EIO` where the
/// device is gone.
///
/// # Real-time: in loop, waits
pub fn wait_for_cts(line: &Descriptor) -> Result<(), Errno> {
    // SAFETY: takes numbers only.
    let result = unsafe { libc::ioctl(line.number(), libc::TIOCMIWAIT, CTS) };
    Errno::check(result.into()).map(drop)
}

/// `struct serial_icounter_struct` (Linux, include/uapi/linux/serial.h): what a driver counted.
#[repr(C)]
#[derive(Default)]
struct Counters {
    cts: c_int,
    /// dsr, rng, dcd, rx, tx, frame, overrun, parity, brk, buf_overrun.
    others: [c_int; 10],
    reserved: [c_int; 9],
}

/// `ioctl(TIOCGICOUNT)`: how often CTS changed, modulo 2³².
///
/// Errors: `ENOTTY` or `EINVAL` where the driver counts nothing.
///
/// # Real-time: in loop
pub fn cts_changes(line: &Descriptor) -> Result<u32, Errno> {
    let mut counters = Counters::default();
    // SAFETY: TIOCGICOUNT writes one structure, which outlives the call.
    let result = unsafe { libc::ioctl(line.number(), libc::TIOCGICOUNT, &raw mut counters) };
    Errno::check(result.into()).map(|_| counters.cts.cast_unsigned())
}

#[cfg(test)]
mod tests {
    use core::mem::size_of;

    use super::*;
    use crate::{descriptor, events};

    #[test]
    fn a_line_is_raw_at_a_known_speed_and_put_back() {
        let (near, far) = events::line().expect("a pseudo-terminal");
        let before = settings(&far).expect("a terminal line");
        let ends = OnCarrierLoss::Ends;
        assert_eq!(set_raw(&far, &before, 123, ends), Err(Errno::INVAL));
        set_raw(&far, &before, 115_200, ends).expect("raw");
        let speed = settings(&far).expect("a terminal line").0.c_cflag & libc::CBAUD;
        assert_eq!(speed, libc::B115200);
        let ignores = |line| settings(line).expect("a terminal line").0.c_cflag & libc::CLOCAL != 0;
        assert!(!ignores(&far));
        set_raw(&far, &before, 115_200, OnCarrierLoss::GoesOn).expect("raw");
        assert!(ignores(&far));
        restore(&far, &before).expect("as it was");
        assert_eq!(settings(&far).expect("a terminal line").0.c_cflag, before.0.c_cflag);
        drop(near);
    }

    #[test]
    fn what_is_no_line_is_refused() {
        let file = descriptor::open_device(c"/dev/null").expect("there");
        assert_eq!(settings(&file).expect_err("no terminal"), Errno::NOTTY);
    }

    #[test]
    fn the_counters_are_laid_out_as_the_kernel_does() {
        assert_eq!((size_of::<Counters>(), core::mem::offset_of!(Counters, reserved)), (80, 44));
    }

    #[test]
    fn a_line_without_modem_lines_refuses_what_needs_them() {
        let (near, far) = events::line().expect("a pseudo-terminal");
        // An emulator of user programs may not know a request at all.
        let refused = [Errno::NOTTY, Errno::INVAL, Errno(libc::ENOSYS)];
        for line in [&near, &far] {
            assert!(refused.contains(&modem_lines(line).expect_err("it has none")));
            assert!(refused.contains(&set_modem_lines(line, 0).expect_err("it has none")));
            assert!(refused.contains(&wait_for_cts(line).expect_err("it has none")));
            assert!(refused.contains(&cts_changes(line).expect_err("it counts none")));
        }
        block(&far).expect("its reads wait from now on");
        events::write(&near, &[7]).expect("open");
        let mut byte = [0];
        assert_eq!((events::read(&far, &mut byte), byte), (Ok(1), [7]));
    }
}
