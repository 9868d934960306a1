//! The third part of load `linuxcnc`: glxgears on a screen that nobody sees (Xvfb).
//!
//! Both are somebody else's programs, used when installed. glxgears says its frames every 5 s, so a
//! shorter run has no rate, and says so. Nothing of them is left, but for a socket of Xvfb in
//! /tmp/.X11-unix when this very process is killed.

use std::io::Write;
use std::path::PathBuf;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use punctual_os::process::EndSignal;

use crate::load::launcher::Launcher;
use crate::load::orders::{self, Stop};
use crate::load::protocol::{LIMIT, Line, Setup, say};
use crate::load::subprocess::{self, Program};

/// The name of this part among the loads' processes.
pub(in crate::load) const NAME: &str = "gears";
/// What it counts.
pub(super) const UNIT: &str = "frames";
/// What it needs: the screen and the picture.
const PROGRAMS: [&str; 2] = ["Xvfb", "glxgears"];
/// Threads with which Mesa draws when it has no graphics hardware (its own limit is 32).
const THREADS_MAX: usize = 16;
/// How often it looks for an order.
const LOOK: Duration = Duration::from_millis(50);
/// Xvfb has so long to say its display.
const PATIENCE: Duration = Duration::from_secs(12);
/// Xvfb removes its socket and its lock file when its end is requested, and has so long for it.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// The programs that are not installed.
pub(super) fn missing() -> Vec<&'static str> {
    PROGRAMS.into_iter().filter(|name| subprocess::find(name).is_none()).collect()
}

/// Reads `305 frames in 5.0 seconds = 60.976 FPS` as frames and ns.
fn frames(line: &str) -> Option<(u64, u64)> {
    let (count, rest) = line.trim().split_once(" frames in ")?;
    let (seconds, _) = rest.split_once(" seconds")?;
    let seconds: f64 = seconds.parse().ok()?;
    let sound = seconds.is_finite() && seconds > 0.0;
    sound.then_some((count.parse().ok()?, (seconds * 1e9) as u64))
}

/// The socket of a display (X(7)), while Xvfb has one.
type Socket = Arc<Mutex<Option<PathBuf>>>;

fn set(socket: &Socket, path: Option<PathBuf>) -> Option<PathBuf> {
    std::mem::replace(&mut *socket.lock().unwrap_or_else(PoisonError::into_inner), path)
}

/// Runs both until an order or the limit.
///
/// # Errors
/// When one cannot be started.
pub(in crate::load) fn run(
    setup: &Setup,
    launcher: &dyn Launcher,
    out: &mut dyn Write,
) -> Result<(), String> {
    let socket = Socket::default();
    let left = Arc::clone(&socket);
    // When the parent has gone Xvfb is killed, and cannot remove its socket itself.
    let orders = orders::listen(move || {
        if let Some(path) = set(&left, None) {
            let _ = std::fs::remove_file(path);
        }
    })?;
    let [screen, picture] = PROGRAMS.map(subprocess::find);
    let (screen, picture) = screen.zip(picture).ok_or("Xvfb or glxgears is not installed")?;
    let args = ["-displayfd", "1", "-screen", "0", "640x480x24", "-nolisten", "tcp"];
    let mut screen = Program::start(setup, launcher, &screen, &args.map(str::to_owned), &[])?;
    let result = display(&mut screen).and_then(|display| {
        set(&socket, Some(PathBuf::from(format!("/tmp/.X11-unix/X{display}"))));
        let variables = [
            ("DISPLAY", format!(":{display}")),
            ("LP_NUM_THREADS", setup.workers.min(THREADS_MAX).to_string()),
            ("vblank_mode", "0".to_owned()),
        ];
        let mut gears = Program::start(setup, launcher, &picture, &[], &variables)?;
        let result = watch(setup, &mut gears, &orders, out);
        gears.end(EndSignal::Kill);
        result
    });
    close(&mut screen);
    if screen.is_over() {
        // It has removed the socket itself; the name may be another's from now on.
        set(&socket, None);
    }
    result
}

/// The display's number, which is the first line of digits that Xvfb writes.
fn display(screen: &mut Program) -> Result<u32, String> {
    let deadline = Instant::now() + PATIENCE;
    let mut last = String::new();
    while Instant::now() < deadline {
        match screen.line(LOOK) {
            Some(line) => match line.trim().parse() {
                Ok(display) => return Ok(display),
                Err(_) => last = line,
            },
            None if screen.is_over() => return Err(format!("Xvfb ended: {last}")),
            None => {}
        }
    }
    let wrote = if last.is_empty() { String::new() } else { format!(", but {last}") };
    Err(format!("Xvfb did not print its display within {} s{wrote}", PATIENCE.as_secs()))
}

/// Passes frames on until an order, the limit or the end of the picture.
fn watch(
    setup: &Setup,
    gears: &mut Program,
    orders: &Receiver<Stop>,
    out: &mut dyn Write,
) -> Result<(), String> {
    say(out, &Line::Ready)?;
    let limit = Instant::now() + setup.limit;
    let (mut count, mut at_ns) = (0u64, 0u64);
    let mut last = String::new();
    while !orders::stop_requested(orders, LOOK) {
        if Instant::now() >= limit {
            say(out, &Line::Note(LIMIT.to_owned()))?;
            break;
        }
        while let Some(line) = gears.line(Duration::ZERO) {
            if let Some((more, ns)) = frames(&line) {
                count = count.saturating_add(more);
                at_ns = at_ns.saturating_add(ns);
                say(out, &Line::Count { count, at_ns, unit: UNIT.to_owned() })?;
            }
            last = line;
        }
        if gears.is_over() {
            return say(out, &Line::Note(format!("glxgears ended: {last}")));
        }
    }
    if at_ns == 0 {
        let note = "glxgears ran for less than the 5 s after which it counts frames".to_owned();
        say(out, &Line::Note(note))?;
    }
    Ok(())
}

/// Lets Xvfb tidy up.
fn close(screen: &mut Program) {
    screen.end(EndSignal::Terminate);
    let deadline = Instant::now() + GRACE;
    while !screen.is_over() && Instant::now() < deadline {
        let _ = screen.line(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::frames;

    #[test]
    fn frames_are_read() {
        assert_eq!(frames("305 frames in 5.0 seconds = 60.976 FPS"), Some((305, 5_000_000_000)));
        for other in
            ["", "frames in 5.0 seconds", "3 frames in x seconds", "3 frames in 0.0 seconds"]
        {
            assert_eq!(frames(other), None, "{other}");
        }
    }
}
