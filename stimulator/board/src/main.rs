//! The firmware: commands from a console, a session over the line or the wire, its figures back.
//!
//! One loop that never waits while a session runs: it takes in what came, asks the clock, and does
//! what the session says. What that is is the protocol's (`punctual-stimulator-protocol`). What the
//! console says meanwhile is dropped: a message takes longer than the line can wait.
#![no_std]
#![no_main]

mod hardware;
mod registers;

use core::fmt::Write as _;
use core::panic::PanicInfo;

use cortex_m_rt::entry;
use hardware::{TICKS_PER_US, Ticks, Uart};
use punctual_stimulator_protocol::command::{Command, Console, Path, refuse};
use punctual_stimulator_protocol::line::LineDecoder;
use punctual_stimulator_protocol::session::{Ending, Session, SessionAct};
use registers::{UART0, UART1};

/// The speed of the line to the machine under test (pins 0 and 1), and of the console (4 and 5).
const LINE_BAUD: u32 = 921_600;
const CONSOLE_BAUD: u32 = 115_200;

/// The board between two sessions, and during one.
struct Stimulator {
    ticks: Ticks,
    line: Uart,
    output: Uart,
    console: Console,
    decoder: LineDecoder,
    session: Option<Session>,
    was_answered: bool,
    /// When the stimulus pin goes low again.
    low_at: Option<u64>,
}

#[entry]
fn main() -> ! {
    hardware::start();
    let mut stimulator = Stimulator {
        ticks: Ticks::start(),
        line: Uart::start(UART0, LINE_BAUD),
        output: Uart::start(UART1, CONSOLE_BAUD),
        console: Console::new(),
        decoder: LineDecoder::new(),
        session: None,
        was_answered: false,
        low_at: None,
    };
    loop {
        stimulator.turn();
    }
}

impl Stimulator {
    /// One look at everything.
    fn turn(&mut self) {
        if let Some(byte) = self.line.read() {
            // Behind the byte: a stamp may be late, never early.
            let now = self.ticks.now();
            self.decoder.push(byte);
            while let Some(received) = self.decoder.take() {
                if let Some(session) =
                    self.session.as_mut().filter(|own| own.path() == Path::Serial)
                {
                    session.receive(received, now);
                }
            }
        }
        let is_answered = hardware::is_answered();
        let now = self.ticks.now();
        if is_answered
            && !self.was_answered
            && let Some(session) = self.session.as_mut().filter(|own| own.path() == Path::Edges)
        {
            session.edge(now);
        }
        self.was_answered = is_answered;
        if self.low_at.is_some_and(|at| now >= at) {
            hardware::stimulate(false);
            self.low_at = None;
        }
        let byte = self.output.read().filter(|_| self.session.is_none());
        if let Some(line) = byte.and_then(|byte| self.console.push(byte)) {
            match line {
                Ok(command) => self.begin(command, now),
                Err(why) => refuse(&mut self.output, why).unwrap_or_default(),
            }
        }
        self.act();
    }

    fn begin(&mut self, command: Command, now: u64) {
        self.session = Some(Session::new(command, hardware::random(), TICKS_PER_US, now));
    }

    fn act(&mut self) {
        let Some(session) = &mut self.session else { return };
        match session.poll(self.ticks.now()) {
            SessionAct::Nothing => {}
            SessionAct::Send(frame) => self.line.write(&frame.to_bytes()),
            SessionAct::Stimulus(frame) if session.path() == Path::Serial => {
                if !self.line.is_idle() {
                    return session.not_sent();
                }
                let bytes = frame.to_bytes();
                session.sent(self.ticks.now());
                self.line.write(&bytes);
            }
            SessionAct::Stimulus(_) => {
                let now = self.ticks.now();
                hardware::stimulate(true);
                session.sent(now);
                // Long enough for any input, and low before the next one.
                self.low_at = Some(now + 20 * u64::from(TICKS_PER_US));
            }
            SessionAct::Over(ending) => self.end(ending),
        }
    }

    fn end(&mut self, ending: Ending) {
        hardware::stimulate(false);
        let Some(session) = self.session.take() else { return };
        let output = &mut self.output;
        // A UART takes all that is written.
        let _written = match ending {
            Ending::Done => session.figures().write(output, TICKS_PER_US),
            Ending::NoResponder => output.write_str(
                "error: no answer; start 'punctual respond serial:PATH --baud 921600' there\r\n",
            ),
            Ending::Version(version) => {
                write!(output, "error: the responder has version {version} of the protocol\r\n")
            }
        };
        // It took longer than the counter goes.
        self.ticks = Ticks::start();
    }
}

/// Nothing can be told any more: the stimulus pin stays low.
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    hardware::stimulate(false);
    loop {}
}
