//! Who sits on a seat, as the supervising thread has it: started, known, closed out.
//!
//! Programs are started here and nowhere else. Decides nothing: that is [`super::super::life`].

use std::ffi::c_int;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};

use punctual_core::seat::look;
use punctual_core::time::Instant;
use punctual_os::descriptor::Descriptor;
use punctual_os::scheduler::Policy;
use punctual_os::{Errno, pidfd};

use super::super::life::{Exit, Life};
use super::super::{SEAT_VARIABLE, TASK_VARIABLE};
use super::event::What;
use super::seat::Seat;

/// Who sits on a seat, as the supervising thread has it.
#[derive(Debug)]
pub(super) struct Occupant {
    pub(super) life: Life,
    /// Of the last one; each has its own.
    pub(super) number: u64,
    pub(super) child: Option<Child>,
    pub(super) pidfd: Option<Descriptor>,
    pub(super) pid: i32,
    pub(super) connection: Option<UnixStream>,
    /// Known without looking: it could not be started.
    pub(super) ended: Option<Exit>,
    pub(super) policy: Option<Policy>,
    pub(super) starts: u64,
    pub(super) registered: u64,
    pub(super) terminated: u64,
    pub(super) failed: bool,
    pub(super) exit: Option<Exit>,
}

impl Occupant {
    pub(super) fn new(seat: &Seat, now: Instant) -> Self {
        let spec = &seat.spec;
        let policy = (spec.task.policy, seat.silent_after);
        let program = !spec.command.is_empty();
        Self {
            life: Life::new(program, policy, spec.register_within, spec.restart, now),
            number: 0,
            child: None,
            pidfd: None,
            pid: 0,
            connection: None,
            ended: None,
            policy: None,
            starts: 0,
            registered: 0,
            terminated: 0,
            failed: false,
            exit: None,
        }
    }
}

impl Occupant {
    /// How the process ended, if it did.
    pub(super) fn has_ended(&mut self) -> Option<Exit> {
        if self.ended.is_some() {
            return self.ended;
        }
        if let Some(child) = &mut self.child {
            return match child.try_wait() {
                Ok(status) => status.map(exit_of),
                Err(_) => Some(Exit::Unknown),
            };
        }
        let pidfd = self.pidfd.as_ref()?;
        (pidfd::has_ended(pidfd) != Ok(false)).then_some(Exit::Unknown)
    }

    /// What tells that the process has ended, while that is not known.
    pub(super) fn descriptor(&self) -> Option<c_int> {
        self.pidfd.as_ref().map(Descriptor::number)
    }

    /// Starts the program of a seat that is clear.
    pub(super) fn start(&mut self, seat: &Seat) -> What {
        self.number += 1;
        self.starts += 1;
        self.ended = None;
        match spawn(seat).and_then(|child| {
            let pidfd = pidfd::open(child.id().cast_signed());
            let errno = |why: Errno| std::io::Error::from_raw_os_error(why.0);
            // A child that was not waited for keeps its number.
            Ok((child, pidfd.map_err(errno)?))
        }) {
            Ok((child, pidfd)) => {
                self.pid = child.id().cast_signed();
                let what = What::Started(child.id());
                (self.child, self.pidfd) = (Some(child), Some(pidfd));
                what
            }
            Err(why) => {
                let exit = Exit::NotStarted(why.raw_os_error().unwrap_or(0));
                self.ended = Some(exit);
                What::Ended(exit)
            }
        }
    }

    /// Closes the door and takes the guard away; the thread that sat there.
    pub(super) fn close(&self, seat: &Seat) -> Option<i32> {
        seat.door.close(self.number);
        seat.guarded.arm(0);
        let told = look(seat.memory.mapping.words()).map_or(0, |seen| seen.thread);
        own_thread(self.pid, told)
    }
}

fn exit_of(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Status(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Unknown,
    }
}

/// A thread by the number that a task told, where it really is one of its process.
pub(super) fn own_thread(pid: i32, told: u64) -> Option<i32> {
    let thread = i32::try_from(told).ok().filter(|&thread| thread > 0)?;
    std::fs::exists(format!("/proc/{pid}/task/{thread}")).ok()?.then_some(thread)
}

/// Starts a task's program: in a process group of its own, so that a terminal's Ctrl-C meets the
/// supervisor alone; what it prints goes to standard error, so that a report stays alone.
fn spawn(seat: &Seat) -> std::io::Result<Child> {
    let errno = |why: Errno| std::io::Error::from_raw_os_error(why.0);
    let [program, arguments @ ..] = &seat.spec.command[..] else {
        return Err(std::io::ErrorKind::NotFound.into());
    };
    // Only this thread starts programs, so that no other one inherits it.
    let inherited = seat.memory.inheritable().map_err(errno)?;
    Command::new(program)
        .args(arguments)
        .env(SEAT_VARIABLE, inherited.number().to_string())
        .env(TASK_VARIABLE, &seat.spec.task.name)
        .stdin(Stdio::null())
        .stdout(std::io::stderr().as_fd().try_clone_to_owned()?)
        .process_group(0)
        .spawn()
}
