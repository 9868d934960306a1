//! The file that names the tasks of a supervisor: TOML in, what [`punctual::process`] takes out.
//!
//! For `punctual run`. Pure: opens nothing, starts nothing. Every key is known or refused, every
//! duration has its unit, and what is refused says where it stands.

mod entry;
mod error;
mod values;

use punctual::core::time::{Instant, Period};
use punctual::periodic::Rate;
use punctual::process::{Spec, Supervisor};
use punctual::way::Way;
use serde::Deserialize;
use toml::Spanned;

use entry::Entry;
pub use error::FileError;
use error::Text;

/// The longest file, bytes.
pub const FILE_MAX: usize = 1 << 20;
/// The most tasks of one supervisor: each takes two descriptors and a thread's worth of memory.
pub const TASKS_MAX: usize = 256;

/// Where the whole grid lies on CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GridPhase {
    /// This many ns after its zero.
    At(u64),
    /// Away from the kernel's tick.
    Quiet,
}

/// A task, and where it stands.
#[derive(Clone, Debug)]
pub struct Named {
    /// What is run.
    pub spec: Spec,
    /// The line of its program, or of its name where it has none.
    pub line: usize,
}

/// What a file says.
#[derive(Clone, Debug)]
pub struct Tasks {
    /// The supervisor's name; `None`: nobody can join.
    pub name: Option<String>,
    /// The CPU of the supervisor's executive, and of tasks that name none.
    pub cpu: Option<u32>,
    /// The priority of the executive.
    pub priority: Option<u8>,
    /// How it waits for releases.
    pub wait: Way,
    /// Where the grid lies.
    pub phase: GridPhase,
    /// Whether budgets may ask for more than a CPU.
    pub overload: bool,
    /// The tasks, in the order of the file.
    pub all: Vec<Named>,
}

/// The file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    supervisor: Head,
    #[serde(default, rename = "task")]
    tasks: Vec<Entry>,
}

/// The table `[supervisor]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    name: Option<Spanned<String>>,
    cpu: Option<u32>,
    priority: Option<Spanned<u8>>,
    wait: Option<Spanned<String>>,
    budget: Option<Spanned<String>>,
    phase: Option<Spanned<String>>,
    #[serde(default)]
    overload: bool,
}

impl Tasks {
    /// What `bytes` say.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong, with its line and column.
    pub fn parse(bytes: &[u8]) -> Result<Self, FileError> {
        let text = Text::of(bytes)?;
        let file: File = toml::from_str(text.as_str()).map_err(|why| text.refused(&why))?;
        let head = &file.supervisor;
        let name = head.name.as_ref();
        if let Some(name) = name.filter(|name| !punctual::process::is_name(name.get_ref())) {
            return Err(text.at(name, values::NAME));
        }
        if let Some(priority) = &head.priority
            && !(2..=98).contains(priority.get_ref())
        {
            return Err(text.at(priority, "a supervisor's priority is in [2, 98]"));
        }
        let Some(_) = file.tasks.first() else {
            return Err(FileError::new(None, "there is no [[task]]"));
        };
        if file.tasks.len() > TASKS_MAX {
            return Err(FileError::new(None, &format!("more than {TASKS_MAX} tasks")));
        }
        let all: Vec<Named> =
            file.tasks.iter().map(|task| task.named(&text)).collect::<Result<_, _>>()?;
        for (index, task) in file.tasks.iter().enumerate() {
            let same = |other: &&Entry| other.name.get_ref() == task.name.get_ref();
            if file.tasks[..index].iter().any(|other| same(&other)) {
                return Err(text.at(&task.name, "another task has this name"));
            }
        }
        Ok(Self {
            name: name.map(|name| name.get_ref().clone()),
            cpu: head.cpu,
            priority: head.priority.as_ref().map(|priority| *priority.get_ref()),
            wait: values::wait(&text, head.wait.as_ref(), head.budget.as_ref())?,
            phase: values::grid_phase(&text, head.phase.as_ref())?,
            overload: head.overload,
            all,
        })
    }

    /// The supervisor that the file describes, its grid at `phase_ns`; not yet checked as a whole.
    pub fn supervisor(&self, phase_ns: u64) -> Supervisor {
        let mut supervisor = Supervisor::new().epoch(Instant::from_ns(phase_ns));
        if let Some(name) = &self.name {
            supervisor = supervisor.name(name.clone());
        }
        if let Some(cpu) = self.cpu {
            supervisor = supervisor.cpu(cpu);
        }
        if let Some(priority) = self.priority {
            supervisor = supervisor.priority(priority);
        }
        if self.overload {
            supervisor = supervisor.allow_overload();
        }
        self.all.iter().fold(supervisor, |all, task| all.task(task.spec.clone()))
    }

    /// The shortest period of all tasks.
    pub fn shortest(&self) -> Option<Period> {
        let rates = self.all.iter().map(|task| task.spec.task.rate());
        rates.map(Rate::whole_ns).min().and_then(Period::from_ns)
    }
}

#[cfg(test)]
mod tests;
