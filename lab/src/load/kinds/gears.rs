//! The third part of load `linuxcnc`: glxgears on the screen of `DISPLAY`, so that the graphics
//! hardware takes part; where none is set, or it does not answer, on one that nobody sees (Xvfb).
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
/// The unit of its count.
pub(super) const UNIT: &str = "frames";
/// The programs that it needs: a screen where none is given, and the picture.
const XVFB: &str = "Xvfb";
const GLXGEARS: &str = "glxgears";
/// The key of the line that `-info` makes glxgears write about the renderer.
const RENDERER: &str = "GL_RENDERER";
/// Threads with which Mesa draws when it has no graphics hardware (its own limit is 32).
const THREADS_MAX: usize = 16;
/// Time between two looks for an order.
const LOOK: Duration = Duration::from_millis(50);
/// Xvfb has so long to say its display, and glxgears to say what draws: at the latest with its
/// first frames, after 5 s.
const PATIENCE: Duration = Duration::from_secs(12);
/// Xvfb removes its socket and its lock file when its end is requested, and has so long for it.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// The programs that are not installed; no screen is needed where one is given.
pub(super) fn missing() -> Vec<&'static str> {
    let needed = [given_display().is_none().then_some(XVFB), Some(GLXGEARS)];
    needed.into_iter().flatten().filter(|name| subprocess::find(name).is_none()).collect()
}

/// The display that the environment names.
fn given_display() -> Option<String> {
    std::env::var("DISPLAY").ok().filter(|display| !display.is_empty())
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
    let picture = subprocess::find(GLXGEARS).ok_or("glxgears is not installed")?;
    let start = |display: String| {
        let variables = [
            ("DISPLAY", display),
            ("LP_NUM_THREADS", setup.workers.min(THREADS_MAX).to_string()),
            ("vblank_mode", "0".to_owned()),
        ];
        Program::start(setup, launcher, &picture, &["-info".to_owned()], &variables)
    };
    let hidden = match given_display() {
        None => "DISPLAY names no other".to_owned(),
        Some(display) => {
            let mut gears = start(display.clone())?;
            let drawing = renderer(&mut gears);
            let result = drawing.as_ref().ok().map(|by| {
                let note = format!("glxgears on the screen {display} of DISPLAY, drawn by {by}");
                say(out, &Line::Note(note))?;
                watch(setup, &mut gears, &orders, out)
            });
            gears.end(EndSignal::Kill);
            match (result, drawing) {
                (Some(result), _) => return result,
                (None, why) => format!(
                    "the screen {display} of DISPLAY does not answer ({})",
                    why.err().unwrap_or_default()
                ),
            }
        }
    };
    let screen = subprocess::find(XVFB).ok_or_else(|| {
        format!("{hidden}, and Xvfb is not installed: install it, or unset DISPLAY")
    })?;
    say(out, &Line::Note(format!("glxgears on a hidden screen (Xvfb): {hidden}")))?;
    let args = ["-displayfd", "1", "-screen", "0", "640x480x24", "-nolisten", "tcp"];
    let mut screen = Program::start(setup, launcher, &screen, &args.map(str::to_owned), &[])?;
    let result = display(&mut screen).and_then(|display| {
        set(&socket, Some(PathBuf::from(format!("/tmp/.X11-unix/X{display}"))));
        let mut gears = start(format!(":{display}"))?;
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

/// The name of the renderer that draws the picture, which shows that its screen answers.
///
/// # Errors
/// The last line of glxgears before it ended, or that it wrote none of its renderer in time.
fn renderer(gears: &mut Program) -> Result<String, String> {
    let deadline = Instant::now() + PATIENCE;
    let mut last = String::new();
    while Instant::now() < deadline {
        match gears.line(LOOK) {
            Some(line) => match drawn_by(&line) {
                Some(renderer) => return Ok(renderer.to_owned()),
                None => last = line,
            },
            None if gears.is_over() => return Err(last.trim().to_owned()),
            None => {}
        }
    }
    Err(format!("glxgears did not draw within {} s", PATIENCE.as_secs()))
}

/// Reads `GL_RENDERER   = llvmpipe (LLVM 15.0.6, 256 bits)`.
fn drawn_by(line: &str) -> Option<&str> {
    let (_, renderer) = line.strip_prefix(RENDERER)?.split_once('=')?;
    Some(renderer.trim())
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
    use super::{drawn_by, frames};

    #[test]
    fn what_draws_is_read() {
        let line = "GL_RENDERER   = llvmpipe (LLVM 15.0.6, 256 bits)";
        assert_eq!(drawn_by(line), Some("llvmpipe (LLVM 15.0.6, 256 bits)"));
        for line in ["", "GL_VERSION    = 4.5", "GL_RENDERER", "Error: couldn't open display :9"] {
            assert_eq!(drawn_by(line), None, "{line}");
        }
    }

    #[test]
    fn frames_are_read() {
        assert_eq!(frames("305 frames in 5.0 seconds = 60.976 FPS"), Some((305, 5_000_000_000)));
        for line in
            ["", "frames in 5.0 seconds", "3 frames in x seconds", "3 frames in 0.0 seconds"]
        {
            assert_eq!(frames(line), None, "{line}");
        }
    }
}
