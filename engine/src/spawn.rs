//! The one place where this project starts threads: named, and an error in words where the
//! kernel refuses one. The same words for processes.
//!
//! For everything that needs a thread. `std::thread::spawn` and `Scope::spawn` panic where none can
//! be had, and leave behind what was changed before. Decides nothing: what is to be put back the
//! caller puts back.

use std::fmt;
use std::io;
use std::process::{Child, Command};
use std::thread::{self, Builder, JoinHandle, Scope, ScopedJoinHandle};

use punctual_os::Errno;
use punctual_os::fork::Origin;

/// Starts a thread that may outlive its caller. The kernel shows the first 15 bytes of `name`.
///
/// # Errors
/// The kernel refused it; [`errno`] is its number, and nothing of `run` was run.
///
/// # Real-time: setup only
pub fn plain<R: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> R + Send + 'static,
) -> io::Result<JoinHandle<R>> {
    builder(name).spawn(boxed(run)).map_err(|why| refused("thread", name, why))
}

/// As [`plain`], with so much stack.
///
/// # Errors
/// As [`plain`].
///
/// # Real-time: setup only
pub fn with_stack<R: Send + 'static>(
    name: &str,
    bytes: usize,
    run: impl FnOnce() -> R + Send + 'static,
) -> io::Result<JoinHandle<R>> {
    let started = builder(name).stack_size(bytes).spawn(boxed(run));
    started.map_err(|why| refused("thread", name, why))
}

/// Starts a thread of a scope, as [`plain`] does. The scope's end waits for the threads that were
/// started before one was refused: they must learn that they are to end.
///
/// # Errors
/// As [`plain`].
///
/// # Real-time: setup only
pub fn scoped<'scope, R: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    run: impl FnOnce() -> R + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, R>> {
    builder(name).spawn_scoped(scope, boxed(run)).map_err(|why| refused("thread", name, why))
}

/// What a thread runs, behind one type for all that answer alike: the standard library compiles
/// some thousand lines of its own for each type that it starts.
fn boxed<'run, R>(run: impl FnOnce() -> R + Send + 'run) -> Box<dyn FnOnce() -> R + Send + 'run> {
    Box::new(run)
}

/// A thread that the process which started it joins. A child that fork(2) made has none of its
/// parent's threads: there this is empty.
#[derive(Debug)]
pub struct OwnThread<R> {
    thread: Option<JoinHandle<R>>,
    origin: Origin,
}

impl<R> OwnThread<R> {
    /// A thread of the calling process.
    ///
    /// # Real-time: setup only
    pub fn new(thread: JoinHandle<R>) -> Self {
        Self { thread: Some(thread), origin: Origin::here() }
    }

    /// Returns true where the calling process is the one that has it.
    ///
    /// # Real-time: setup only
    pub fn is_here(&self) -> bool {
        self.origin.is_here()
    }

    /// Ends its wait, where it is parked.
    ///
    /// # Real-time: setup only
    pub fn unpark(&self) {
        self.thread.iter().for_each(|thread| thread.thread().unpark());
    }

    /// Waits for its end; `None` where that was done before, and in a child.
    ///
    /// # Real-time: setup only
    pub fn join(&mut self) -> Option<thread::Result<R>> {
        let thread = self.thread.take()?;
        if self.origin.is_here() {
            return Some(thread.join());
        }
        // Neither joined nor detached: there is no such thread here.
        std::mem::forget(thread);
        None
    }
}

impl<R> Drop for OwnThread<R> {
    /// Detaches a thread that was not joined: it goes on.
    fn drop(&mut self) {
        if !self.origin.is_here() {
            std::mem::forget(self.thread.take());
        }
    }
}

/// Starts a process.
///
/// # Errors
/// As the standard library says it; where a limit is reached, with the words of [`plain`].
///
/// # Real-time: setup only
pub fn process(command: &mut Command) -> io::Result<Child> {
    command.spawn().map_err(|why| match why.raw_os_error() {
        Some(number) if number == Errno::AGAIN.0 => {
            refused("process", &command.get_program().to_string_lossy(), why)
        }
        _ => why,
    })
}

/// The kernel's error number in an error of this module, or of a system call.
///
/// # Real-time: setup only
pub fn errno(why: &io::Error) -> Option<i32> {
    let inner = why.get_ref().and_then(|inner| inner.downcast_ref::<NotStarted>());
    inner.map_or(why, |inner| &inner.why).raw_os_error()
}

/// The standard library panics at a name with a zero byte.
fn builder(name: &str) -> Builder {
    Builder::new().name(name.replace('\0', ""))
}

fn refused(kind: &'static str, name: &str, why: io::Error) -> io::Error {
    io::Error::new(why.kind(), NotStarted { kind, name: name.to_owned(), why })
}

/// A thread or a process that could not be started.
#[derive(Debug)]
struct NotStarted {
    kind: &'static str,
    name: String,
    why: io::Error,
}

impl fmt::Display for NotStarted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, name, why } = self;
        write!(f, "cannot start {kind} {name:?}: {why}")?;
        if why.raw_os_error() == Some(Errno::AGAIN.0) {
            f.write_str(
                "; a limit on threads or memory is reached: raise pids.max of its control group, \
                 RLIMIT_NPROC of its user (ulimit -u) or the limit on memory, or end other \
                 processes",
            )?;
        }
        Ok(())
    }
}

// No source: the sentence has its words already.
impl std::error::Error for NotStarted {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_its_name_and_gives_its_result() {
        let name = || thread::current().name().map(str::to_owned);
        let own = plain("punctual-own", name).expect("there are threads").join();
        assert_eq!(own.expect("no panic").as_deref(), Some("punctual-own"));
        let within = thread::scope(|scope| {
            scoped(scope, "with\0zero", name).expect("there are threads").join()
        });
        assert_eq!(within.expect("no panic").as_deref(), Some("withzero"));
    }

    #[test]
    fn a_refusal_names_the_thread_the_limits_and_the_way_out() {
        let why = refused("thread", "punctual-watch", io::Error::from_raw_os_error(Errno::AGAIN.0));
        assert_eq!((errno(&why), why.kind()), (Some(Errno::AGAIN.0), io::ErrorKind::WouldBlock));
        let words = why.to_string();
        for part in
            ["thread \"punctual-watch\"", "os error 11", "pids.max", "RLIMIT_NPROC", "raise"]
        {
            assert!(words.contains(part), "{part}: {words}");
        }
        let forbidden =
            refused("thread", "punctual-watch", io::Error::from_raw_os_error(Errno::PERM.0));
        assert!(!forbidden.to_string().contains("pids.max"));
        assert_eq!(errno(&io::Error::from_raw_os_error(5)), Some(5));
    }
}
