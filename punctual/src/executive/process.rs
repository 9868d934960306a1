//! A task of an executive that is a process, in the settings of its owner.
//!
//! For builders. Plain data; the build of the executive refuses what cannot be.

use std::ffi::OsString;
use std::time::Duration;

use punctual_engine::duration::span;
use punctual_engine::error::{Error, ExecutiveError};
use punctual_engine::process::{Restart, Spec, Supervisor, Surroundings};
use punctual_engine::rt_thread::RtThread;
use punctual_engine::task::Task;
use punctual_os::scheduler::SchedPolicy;

/// A process that does the work of a task: started by the executive, or one that joins it.
#[derive(Clone, Debug)]
pub struct Process {
    command: Vec<OsString>,
    /// Its CPU and its priority.
    thread: RtThread,
    register_within: Option<Duration>,
    restart: Restart,
    safe: Vec<u8>,
    surroundings: Surroundings,
}

impl Process {
    /// The process of this program and its arguments, which the executive starts; it comes by
    /// [`Registration::from_env`](crate::Registration::from_env).
    ///
    /// # Real-time: setup only
    pub fn command<S: Into<OsString>>(words: impl IntoIterator<Item = S>) -> Self {
        Self { command: words.into_iter().map(Into::into).collect(), ..Self::joining() }
    }

    /// A process that was started by hand and joins an executive of a name
    /// ([`ExecutiveBuilder::name`](crate::ExecutiveBuilder::name)) by
    /// [`Registration::join`](crate::Registration::join).
    ///
    /// # Real-time: setup only
    pub fn joining() -> Self {
        Self {
            command: Vec::new(),
            thread: RtThread::any(),
            register_within: None,
            restart: Restart::default(),
            safe: Vec::new(),
            surroundings: Surroundings::default(),
        }
    }

    /// Sets the CPU that its thread is pinned to [default: that of the executive].
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn cpu(mut self, cpu: u32) -> Self {
        self.thread = self.thread.pinned(Some(cpu));
        self
    }

    /// Sets the SCHED_FIFO priority of its thread, below the executive's [default: by the order of
    /// the tasks].
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn fifo(mut self, priority: u8) -> Self {
        self.thread = self.thread.fifo(priority);
        self
    }

    /// Sets the time within which it must register, above 0 [default: 5 s].
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn register_within(mut self, limit: Duration) -> Self {
        self.register_within = Some(limit);
        self
    }

    /// Sets whether it is started again when it ends [default: never].
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn restart(mut self, restart: Restart) -> Self {
        self.restart = restart;
        self
    }

    /// Sets its output while it gives none: a multiple of 8 bytes, at most 4096.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn safe_value(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.safe = bytes.into();
        self
    }

    /// Sets its surroundings: user, group, environment, capabilities, directory, umask [default: as
    /// the executive's process]. Only for one that the executive starts.
    ///
    /// # Real-time: setup only
    #[must_use]
    pub fn surroundings(mut self, surroundings: Surroundings) -> Self {
        self.surroundings = surroundings;
        self
    }

    /// The task as its supervisor has it.
    fn spec(self, task: Task) -> Spec {
        let Self { command, thread, register_within, restart, safe, surroundings } = self;
        let register_within = register_within.map_or(Spec::REGISTER_WITHIN, span);
        Spec { thread, register_within, restart, safe, surroundings, ..Spec::new(task, command) }
    }
}

/// The supervisor of the tasks that are processes.
pub(super) fn supervised(
    processes: Vec<(usize, Task, Process)>,
    name: Option<String>,
    main: &RtThread,
    is_machine: bool,
) -> Result<Option<(Supervisor, Vec<usize>)>, Error> {
    if processes.is_empty() {
        return Ok(None);
    }
    if !is_machine {
        return Err(ExecutiveError::ProcessClock.into());
    }
    let mut supervisor = Supervisor::new().allow_overload();
    // Below the executive's own loop.
    let priority = match main.policy() {
        SchedPolicy::Fifo(n) | SchedPolicy::RoundRobin(n) => n.saturating_sub(1).max(2),
        _ => Supervisor::PRIORITY,
    };
    supervisor = supervisor.thread(main.clone().fifo(priority));
    if let Some(name) = name {
        supervisor = supervisor.name(name);
    }
    let mut entries = Vec::new();
    for (entry, task, process) in processes {
        entries.push(entry);
        supervisor = supervisor.task(process.spec(task));
    }
    supervisor.check()?;
    Ok(Some((supervisor, entries)))
}
