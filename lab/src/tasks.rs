//! The file that names the tasks of a supervisor: TOML in, what [`punctual::process`] takes out.
//!
//! For `punctual run`. Pure: opens nothing, starts nothing. Every key is known or refused, every
//! duration has its unit, and what is refused says where it stands.

mod entry;
mod error;
mod keys;
mod surroundings;
mod text;
mod values;

use punctual::RtThread;
use punctual::process::{Supervisor, is_name};
use punctual_core::time::{Instant, Period};
use toml::Spanned;

use entry::Entry;
pub use entry::FileTask;
pub use error::TaskFileError;
use keys::Keys;
pub use text::FILE_MAX;
use text::Text;
pub use values::{GridPhase, hex};

/// The most tasks of one supervisor: each takes two descriptors and a thread's worth of memory.
pub const TASKS_MAX: usize = 256;

/// What a file says.
#[derive(Clone, Debug)]
pub struct TaskFile {
    /// The supervisor's name; `None`: nobody can join.
    pub name: Option<String>,
    /// How the supervisor's executive runs: its CPU, which is also that of tasks that name none,
    /// its priority, and how it waits for releases.
    pub thread: RtThread,
    /// Where the grid lies.
    pub phase: GridPhase,
    /// Whether budgets may ask for more than a CPU.
    pub overload: bool,
    /// The tasks, in the order of the file.
    pub all: Vec<FileTask>,
}

/// The keys of the table `[supervisor]`.
const HEAD: &str = "the keys of [supervisor] are name, cpu, priority, wait, budget, phase, \
                    overload";

impl TaskFile {
    /// What `bytes` say.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong, with its line and column.
    pub fn parse(bytes: &[u8]) -> Result<Self, TaskFileError> {
        let text = Text::of(bytes)?;
        let mut file = Keys::of(&text)?;
        let mut head = file.table("supervisor")?;
        let tasks = file.tables("task")?;
        file.end("a file has [supervisor] and [[task]]")?;
        let name = head.word("name")?;
        if let Some(name) = name.as_ref().filter(|name| !is_name(name.get_ref())) {
            return Err(text.at(name, values::NAME));
        }
        let cpu = values::cpu(&mut head)?;
        let priority = head.number("priority", 2..=98)?.and_then(|of| u8::try_from(of).ok());
        let wait = values::wait(&text, head.word("wait")?.as_ref(), head.word("budget")?.as_ref())?;
        let phase = values::grid_phase(&text, head.word("phase")?.as_ref())?;
        let overload = head.flag("overload")?;
        head.end(HEAD)?;
        let Some(_) = tasks.first() else {
            return Err(TaskFileError::new(None, "there is no [[task]]"));
        };
        if tasks.len() > TASKS_MAX {
            return Err(TaskFileError::new(
                None,
                &format!("at most {TASKS_MAX} tasks are accepted"),
            ));
        }
        let supervisor = priority.unwrap_or(Supervisor::PRIORITY);
        let tasks: Vec<Entry> = tasks
            .into_iter()
            .map(|keys| Entry::of(&text, keys, supervisor))
            .collect::<Result<_, _>>()?;
        let all: Vec<FileTask> =
            tasks.iter().map(|task| task.named(&text)).collect::<Result<_, _>>()?;
        for (index, task) in tasks.iter().enumerate() {
            let same = |other: &&Entry| other.name.get_ref() == task.name.get_ref();
            if tasks[..index].iter().any(|other| same(&other)) {
                return Err(text.at(&task.name, "another task has this name"));
            }
        }
        let name = name.map(Spanned::into_inner);
        let thread = RtThread::on(cpu).fifo(supervisor).with_wait(wait);
        Ok(Self { name, thread, phase, overload, all })
    }

    /// The supervisor that the file describes, its grid at `phase_ns`; not yet checked as a whole.
    pub fn supervisor(&self, phase_ns: u64) -> Supervisor {
        let mut supervisor =
            Supervisor::new().epoch(Instant::from_ns(phase_ns)).thread(self.thread.clone());
        if let Some(name) = &self.name {
            supervisor = supervisor.name(name.clone());
        }
        if self.overload {
            supervisor = supervisor.allow_overload();
        }
        self.all.iter().fold(supervisor, |all, task| all.task(task.spec.clone()))
    }

    /// The line of the task of this name, from 1.
    pub fn line(&self, task: &str) -> Option<usize> {
        self.all.iter().find(|named| named.spec.task.name() == task).map(|named| named.line)
    }

    /// The shortest period of all tasks.
    pub fn shortest(&self) -> Option<Period> {
        self.all.iter().map(|task| task.spec.task.period()).min()
    }
}

#[cfg(test)]
mod tests;
