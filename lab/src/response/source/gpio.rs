//! Edges of a GPIO line that is wired to an output of the same chip.
//!
//! The kernel stamps each edge. Both lines are this process's alone until it is over; the output is
//! left as the chip's driver leaves lines that nobody has.

use std::ffi::CString;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use punctual_os::Errno;
use punctual_os::clock::{ClockId, now_ns};
use punctual_os::descriptor::{self, Descriptor};
use punctual_os::events::{self, Interest};
use punctual_os::gpio::{self, Edge, LineUse};

use super::{Device, Opening, Source, SourceRow, Stimulus, io_error, latest};

pub(super) const ROW: SourceRow = SourceRow {
    name: "gpio",
    device: Some("CHIP:IN:OUT"),
    help: "an edge on line IN of a GPIO chip, such as /dev/gpiochip0, that is wired to its line \
           OUT; each stimulus changes OUT",
    path: "GPIO driver, wire, interrupt of the GPIO chip (the kernel stamps the edge there), event \
           queue of the character device",
    by_kernel: false,
    check: |name| parsed(name).map(drop),
    open,
};

/// Time that the first edges may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// A chip, and its two lines that a wire joins.
#[derive(Debug, PartialEq)]
struct Wiring<'n> {
    path: &'n str,
    /// The numbers of the lines, from 0 on; they differ.
    input: u32,
    output: u32,
}

/// Reads PATH:IN:OUT; an error is its fault, in words for the user.
fn parsed(name: &str) -> Result<Wiring<'_>, String> {
    let mut parts = name.rsplitn(3, ':');
    let (output, input, path) = (parts.next(), parts.next(), parts.next());
    let Some(path) = path.filter(|path| !path.is_empty()) else {
        return Err(format!("{name:?}: a chip and two lines, such as /dev/gpiochip0:17:27"));
    };
    let line = |text: Option<&str>| {
        let text = text.unwrap_or_default();
        text.parse().map_err(|_| format!("{text:?} is not the number of a line: 0 or more"))
    };
    let (input, output) = (line(input)?, line(output)?);
    if input == output {
        return Err(format!("line {input} cannot be wired to itself: two lines"));
    }
    Ok(Wiring { path, input, output })
}

fn open(name: &str) -> Opening {
    let Wiring { path, input, output } = parsed(name)?;
    let file = CString::new(path).map_err(|_| "a path has no zero byte".to_owned())?;
    let chip = descriptor::open_device(&file).map_err(|why| match why {
        Errno::ACCES => format!("{}: it must be readable and writable", io_error(why)),
        _ => io_error(why).to_string(),
    })?;
    let count = gpio::lines(&chip).map_err(|why| match why {
        Errno::NOTTY => format!("{path} is not a GPIO chip"),
        _ => io_error(why).to_string(),
    })?;
    if let Some(line) = [input, output].into_iter().find(|line| *line >= count) {
        let last = count.saturating_sub(1);
        return Err(format!("{path} has no line {line}: its lines are 0 to {last}"));
    }
    // The output first: the input sees no edge of that.
    let output_line = line(&chip, output, LineUse::Output)?;
    let input_line = line(&chip, input, LineUse::Edges)?;
    let raised = AtomicU64::new(0);
    let mut wired = WiredLines { input: input_line, output: output_line, raised, inverts: false };
    wired.connect((input, output))?;
    let note = wired.inverts.then(|| "the wire inverts".to_owned());
    Ok((Source::Device(Box::new(wired)), note))
}

/// One line of the chip.
fn line(chip: &Descriptor, line: u32, line_use: LineUse) -> Result<Descriptor, String> {
    gpio::line(chip, line, line_use).map_err(|why| match (why, line_use) {
        (Errno::BUSY, _) => {
            let name = gpio::consumer(chip, line).unwrap_or_default();
            let name = String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned();
            format!("line {line} is in use by {name:?}")
        }
        (_, LineUse::Output) => format!("line {line} cannot be an output: {}", io_error(why)),
        (_, LineUse::Edges) => format!("line {line} raises no interrupts: {}", io_error(why)),
    })
}

/// An output and an input that are wired.
#[derive(Debug)]
struct WiredLines {
    input: Descriptor,
    output: Descriptor,
    /// The latest stimulus.
    raised: AtomicU64,
    /// True where the input is low while the output is high.
    inverts: bool,
}

impl WiredLines {
    /// Sees that the input follows the output, up and down.
    fn connect(&mut self, (input, output): (u32, u32)) -> Result<(), String> {
        let mut rose = [false; 2];
        for (rose, high) in rose.iter_mut().zip([true, false]) {
            gpio::set(&self.output, high).map_err(|why| io_error(why).to_string())?;
            let edge = self.first_edge()?.ok_or_else(|| {
                let way = if high { "high" } else { "low" };
                format!(
                    "no edge on line {input} within {} s after line {output} was set {way}; \
                     connect these two lines",
                    PATIENCE.as_secs()
                )
            })?;
            *rose = edge.rose;
        }
        self.inverts = !rose[0];
        match rose[0] == rose[1] {
            true => Err(format!("line {input} does not follow line {output}: the same edge twice")),
            false => Ok(()),
        }
    }

    /// The next edge, within some time.
    fn first_edge(&self) -> Result<Option<Edge>, String> {
        let until_ns = now_ns(ClockId::Monotonic) + PATIENCE.as_nanos() as u64;
        let failed = |why: Errno| io_error(why).to_string();
        loop {
            match events::wait_until(&mut [Interest::new(self.input.number())], until_ns) {
                Ok(0) => return Ok(None),
                Ok(_) => return gpio::take_edge(&self.input).map(Some).map_err(failed),
                Err(Errno::INTR) => {}
                Err(why) => return Err(failed(why)),
            }
        }
    }
}

impl Device for WiredLines {
    /// Odd stimuli set the output high.
    fn raise(&self, number: u64) -> io::Result<()> {
        self.raised.store(number, Ordering::Release);
        gpio::set(&self.output, number % 2 == 1).map_err(io_error)
    }

    fn wait(&self, _seen: u64) -> io::Result<Option<Stimulus>> {
        match gpio::take_edge(&self.input) {
            Ok(edge) => {
                let raised = self.raised.load(Ordering::Acquire);
                let number = latest(edge.rose != self.inverts, raised);
                Ok(Some(Stimulus { number, kernel_ns: Some(edge.at_ns) }))
            }
            Err(Errno::INTR) => Ok(None),
            Err(why) => Err(io_error(why)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chips_and_lines_are_named_and_what_is_none_is_refused() {
        let wiring = Wiring { path: "/dev/gpiochip0", input: 17, output: 27 };
        assert_eq!(parsed("/dev/gpiochip0:17:27"), Ok(wiring));
        for name in ["/dev/gpiochip0", "/dev/gpiochip0:1", ":1:2", "/x:a:2", "/x:1:-2", "/x:3:3"] {
            assert!(parsed(name).is_err(), "{name:?}");
        }
        assert!(open("/dev/null:0:1").expect_err("no chip").contains("is not a GPIO chip"));
        assert!(open("/dev/none:0:1").expect_err("absent").contains("No such file"));
    }
}
