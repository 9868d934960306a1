//! The terminal as a screen: raw, another one, and as it was before whatever happens.
//!
//! Reads keys from standard input, writes to standard output. Signals that request an end are only
//! noted by the process; whoever shows something looks at that.

use std::io::{self, IsTerminal, Write, stdout};
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

use ratatui::backend::TermionBackend;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::stdio::stdin;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// Another screen, and no cursor (xterm's control sequences, DECSET 1049 and 25).
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
/// Back.
const LEAVE: &str = "\x1b[0m\x1b[?25h\x1b[?1049l";
/// Bytes of keys that are read at once.
const KEYS: usize = 64;

/// A key, as far as anything has use for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// A letter, or any other sign.
    Char(char),
    Enter,
    Backspace,
    Escape,
    /// Ctrl and C, which a raw terminal does not make a signal of.
    Interrupt,
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
}

/// The settings of the terminal before it became a screen; `None` while it is none.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Returns true where there is a screen to draw on, and keys to read.
pub(crate) fn is_there() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    stdin().is_terminal() && stdout().is_terminal() && !is_dumb
}

/// Returns true where an error shows that the terminal was closed.
pub(crate) fn is_gone(why: &io::Error) -> bool {
    let hung_up = rustix::io::Errno::IO.raw_os_error();
    why.kind() == io::ErrorKind::UnexpectedEof || why.raw_os_error() == Some(hung_up)
}

/// A terminal that is drawn on, until this is dropped.
#[derive(Debug)]
pub(crate) struct Screen(());

impl Screen {
    /// Makes it raw, and shows another screen.
    ///
    /// # Errors
    /// It cannot be had.
    pub(crate) fn enter() -> io::Result<Self> {
        Self::enter_as(Termios::make_raw)
    }

    /// Shows another screen, on which what is typed does not appear and Ctrl-C is the signal that
    /// it always is.
    ///
    /// # Errors
    /// It cannot be had.
    pub(crate) fn show() -> io::Result<Self> {
        Self::enter_as(|termios| termios.local_modes -= LocalModes::ECHO | LocalModes::ICANON)
    }

    fn enter_as(change: impl FnOnce(&mut Termios)) -> io::Result<Self> {
        // What a panic says must be on the screen that stays.
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                leave();
                before(panic);
            }));
        });
        let termios = tcgetattr(stdin())?;
        let mut raw = termios.clone();
        change(&mut raw);
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(termios);
        let screen = Self(());
        tcsetattr(stdin(), OptionalActions::Now, &raw)?;
        stdout().write_all(ENTER.as_bytes())?;
        stdout().flush()?;
        Ok(screen)
    }

    /// The terminal that draws on it.
    pub(crate) fn terminal(&self) -> io::Result<ratatui::Terminal<TermionBackend<io::Stdout>>> {
        ratatui::Terminal::new(TermionBackend::new(stdout()))
    }

    /// The keys that are pressed within a time; none also where a signal came.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(crate) fn keys(&self, wait: Duration) -> io::Result<Vec<Key>> {
        let stdin = stdin();
        let mut sources = [PollFd::new(&stdin, PollFlags::IN)];
        let wait = Timespec {
            tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: wait.subsec_nanos().into(),
        };
        match poll(&mut sources, Some(&wait)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(Vec::new()),
            Ok(_) => {}
            Err(why) => return Err(why.into()),
        }
        // Not by the standard library, which would read more than was asked for.
        let mut bytes = [0; KEYS];
        match rustix::io::read(stdin, &mut bytes) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => Ok(keys(&bytes[..count])),
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => Ok(Vec::new()),
            Err(why) => Err(why.into()),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

/// Puts the terminal back as it was before; does nothing where it is that already.
fn leave() {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(termios) = before {
        // A terminal that is gone needs nothing.
        let _gone = stdout().write_all(LEAVE.as_bytes()).and_then(|()| stdout().flush());
        let _gone = tcsetattr(stdin(), OptionalActions::Now, &termios);
    }
}

/// The keys in what a terminal sent (ECMA-48, 5.4; xterm's function keys). What is none is left
/// out; an escape alone is one. By hand: termion's parser panics where a sequence is cut off.
fn keys(bytes: &[u8]) -> Vec<Key> {
    let text = String::from_utf8_lossy(bytes);
    let mut rest = text.chars().peekable();
    let mut keys = Vec::new();
    while let Some(c) = rest.next() {
        let key = match c {
            '\x1b' if rest.peek().is_none() => Some(Key::Escape),
            // With others before it this is a key with Alt, or one that has no letter.
            '\x1b' => match rest.next() {
                Some('[' | 'O') => {
                    let mut code = String::new();
                    for c in rest.by_ref() {
                        code.push(c);
                        if matches!(c, '\x40'..='\x7e') {
                            break;
                        }
                    }
                    sequence(&code)
                }
                _ => None,
            },
            '\x03' => Some(Key::Interrupt),
            '\r' | '\n' => Some(Key::Enter),
            '\x7f' | '\x08' => Some(Key::Backspace),
            c if c.is_control() || c == char::REPLACEMENT_CHARACTER => None,
            c => Some(Key::Char(c)),
        };
        keys.extend(key);
    }
    keys
}

/// The key of a control sequence, without what begins it.
fn sequence(code: &str) -> Option<Key> {
    match code {
        "A" => Some(Key::Up),
        "B" => Some(Key::Down),
        "H" | "1~" | "7~" => Some(Key::Home),
        "5~" => Some(Key::PageUp),
        "6~" => Some(Key::PageDown),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use punctual_testkit::skip;

    use super::*;

    #[test]
    fn what_a_terminal_sends_becomes_keys() {
        assert_eq!(keys(b"q"), [Key::Char('q')]);
        assert_eq!(keys(b"\x1b"), [Key::Escape]);
        assert_eq!(keys(b"\x03"), [Key::Interrupt]);
        assert_eq!(keys(b"\x1b[A\x1bOBs"), [Key::Up, Key::Down, Key::Char('s')]);
        assert_eq!(keys(b"\x1b[5~\x1b[6~\x1b[H"), [Key::PageUp, Key::PageDown, Key::Home]);
        let typed = [Key::Char('/'), Key::Char('ö'), Key::Enter, Key::Backspace];
        assert_eq!(keys("/ö\r\x7f".as_bytes()), typed);
        // A mouse, Alt and q, a sequence that is cut off, a letter that is: no key, least of all q.
        for none in [&b"\x1b[<0;3;5M"[..], b"\x1bq", b"\x1b[", b"\x1b[1;5", b"\xc3", b"\x01", b""] {
            assert_eq!(keys(none), [], "{none:?}");
        }
    }

    #[test]
    fn no_bytes_are_a_panic() {
        for first in 0..=255_u8 {
            for second in 0..=255_u8 {
                for bytes in [[0x1b, first, second], [0x1b, b'[', first], [first, second, 0x1b]] {
                    assert!(keys(&bytes).len() <= bytes.len());
                }
            }
        }
    }

    #[test]
    fn a_panic_leaves_the_terminal_as_it_was_and_is_read_there() {
        const CHILD: &str = "PUNCTUAL_TEST_PANICS";
        if std::env::var_os(CHILD).is_some() {
            let modes = || {
                let termios = tcgetattr(stdin()).expect("a terminal");
                (termios.input_modes, termios.output_modes, termios.local_modes)
            };
            let before = modes();
            let ended = std::panic::catch_unwind(|| {
                let _screen = Screen::enter().expect("a terminal");
                assert_ne!(modes(), before, "raw");
                panic!("on purpose");
            });
            assert!(ended.is_err());
            assert_eq!(modes(), before, "as it was");
            println!("restored");
            return;
        }
        if !skip::need_program("script") {
            return;
        }
        // With a terminal of its own (script(1)).
        let test = "a_panic_leaves_the_terminal_as_it_was_and_is_read_there";
        let program = std::env::current_exe().expect("this test");
        let test = format!("terminal::tests::{test}");
        let line = format!("'{}' --exact {test} --nocapture", program.display());
        let mut child = std::process::Command::new("script");
        child.args(["-q", "-e", "-c", &line, "/dev/null"]).env(CHILD, "1");
        let out = child.stdin(std::process::Stdio::null()).output().expect("it starts");
        let text = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success(), "{text}");
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part:?}: {text:?}"));
        assert!(at(ENTER) < at(LEAVE) && at(LEAVE) < at("on purpose"), "{text:?}");
        assert!(at("on purpose") < at("restored"), "{text:?}");
        assert_eq!(text.matches(LEAVE).count(), 1, "once: {text:?}");
    }
}
