//! One `[[task]]` of a file.
//!
//! Pure; each key is checked by itself here, and all together by the supervisor.

use std::ops::Range;

use punctual::RtThread;
use punctual::periodic::{Offset, Period, Task};
use punctual::process::{Restart, Spec, Surroundings, is_name};
use toml::Spanned;

use super::error::TaskFileError;
use super::keys::{Keys, Word};
use super::text::Text;
use super::{surroundings, values};

/// The keys of a task.
const ALL: &str = "the keys of [[task]] are name, command, period or hertz, phase, after, \
                   priority, cpu, budget, deadline, start_within, overrun, register_within, \
                   restart, restarts, pause, safe, user, group, env, capabilities, directory, \
                   umask";

/// A task, and where it stands.
#[derive(Clone, Debug)]
pub struct FileTask {
    /// What is run.
    pub spec: Spec,
    /// The line of its name.
    pub line: usize,
    /// The line of its program, or of its name where it has none.
    pub program_line: usize,
}

/// A task as it is written.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: Word,
    command: Option<Spanned<Vec<String>>>,
    period: Option<Word>,
    hertz: Option<u64>,
    phase: Option<Word>,
    after: Option<Word>,
    priority: Option<u8>,
    cpu: Option<u32>,
    budget: Option<Word>,
    deadline: Option<Word>,
    start_within: Option<Word>,
    overrun: Option<Word>,
    register_within: Option<Word>,
    restart: Option<Word>,
    restarts: Option<u32>,
    pause: Option<Word>,
    safe: Option<Word>,
    surroundings: Surroundings,
    /// The first of the keys of `surroundings`.
    surrounded: Option<Range<usize>>,
}

impl Entry {
    /// A task under a supervisor of this priority.
    pub(super) fn of(
        text: &Text<'_>,
        mut keys: Keys<'_, '_>,
        supervisor: u8,
    ) -> Result<Self, TaskFileError> {
        let nameless = text.within(keys.place(), "the task has no name");
        let below = 1..=u64::from(supervisor.saturating_sub(1));
        let (surroundings, surrounded) = surroundings::of(text, &mut keys)?;
        let entry = Self {
            surroundings,
            surrounded,
            name: keys.word("name")?.ok_or(nameless)?,
            command: keys.words("command")?,
            period: keys.word("period")?,
            hertz: keys.number("hertz", 1..=1_000_000_000)?,
            phase: keys.word("phase")?,
            after: keys.word("after")?,
            priority: keys.number("priority", below)?.and_then(|of| of.try_into().ok()),
            cpu: values::cpu(&mut keys)?,
            budget: keys.word("budget")?,
            deadline: keys.word("deadline")?,
            start_within: keys.word("start_within")?,
            overrun: keys.word("overrun")?,
            register_within: keys.word("register_within")?,
            restart: keys.word("restart")?,
            restarts: keys
                .number("restarts", 0..=u32::MAX.into())?
                .and_then(|of| of.try_into().ok()),
            pause: keys.word("pause")?,
            safe: keys.word("safe")?,
        };
        keys.end(ALL)?;
        Ok(entry)
    }
}

impl Entry {
    /// The task.
    pub(super) fn named(&self, text: &Text<'_>) -> Result<FileTask, TaskFileError> {
        if !is_name(self.name.get_ref()) {
            return Err(text.at(&self.name, values::NAME));
        }
        let command = self.command(text)?;
        let line = text.line(&self.name);
        let program_line = self.command.as_ref().map_or(line, |command| text.line(command));
        let mut spec = Spec::new(self.task(text)?, command);
        spec.thread = RtThread::on(self.cpu);
        if let Some(priority) = self.priority {
            spec.thread = spec.thread.fifo(priority);
        }
        if let Some(within) = &self.register_within {
            spec.register_within = values::span(text, within)?;
        }
        if let Some(safe) = &self.safe {
            spec.safe = values::bytes(text, safe)?;
        }
        spec.restart = self.restart(text)?;
        if let Some(place) = self.surrounded.clone().filter(|_| self.command.is_none()) {
            let what = "user, group, env, capabilities, directory and umask require a command";
            return Err(text.within(place, what));
        }
        spec.surroundings = self.surroundings.clone();
        Ok(FileTask { spec, line, program_line })
    }

    fn command(&self, text: &Text<'_>) -> Result<Vec<std::ffi::OsString>, TaskFileError> {
        let Some(command) = &self.command else { return Ok(Vec::new()) };
        let words = command.get_ref();
        if words.first().is_none_or(String::is_empty) {
            return Err(text.at(command, "command names no program"));
        }
        if words.iter().any(|word| word.contains('\0')) {
            return Err(text.at(command, "command contains a zero byte"));
        }
        Ok(words.iter().map(Into::into).collect())
    }

    fn period_of(&self, text: &Text<'_>) -> Result<Period, TaskFileError> {
        match (&self.period, self.hertz) {
            (Some(period), None) => values::period(text, period),
            // Which periods there are was asked of the key.
            (None, Some(hertz)) => {
                Period::hz(hertz).ok_or_else(|| text.at(&self.name, "hertz is out of range"))
            }
            (Some(period), Some(_)) => {
                Err(text.at(period, "give either period or hertz, not both"))
            }
            (None, None) => Err(text.at(&self.name, "the task has neither period nor hertz")),
        }
    }

    fn task(&self, text: &Text<'_>) -> Result<Task, TaskFileError> {
        let mut task = Task::every(self.name.get_ref().clone(), self.period_of(text)?);
        if let Some(priority) = &self.priority {
            task = task.priority(*priority);
        }
        if let Some(budget) = &self.budget {
            task = task.budget_ns(values::ns(text, budget)?);
        }
        if let Some(deadline) = &self.deadline {
            task = task.deadline_ns(values::ns(text, deadline)?);
        }
        if let Some(start) = &self.start_within {
            task = task.start_ns(values::ns(text, start)?);
        }
        if let Some(overrun) = &self.overrun {
            task = task.on_overrun(values::overrun(text, overrun)?);
        }
        Ok(task.phase(self.phase(text)?))
    }

    fn phase(&self, text: &Text<'_>) -> Result<Offset, TaskFileError> {
        let at = self.phase.as_ref().map(|phase| values::phase_ns(text, phase)).transpose()?;
        match (&self.after, at) {
            (None, None) => Ok(Offset::Balanced),
            (None, Some(ns)) => Ok(Offset::At(ns)),
            (Some(of), Some(ns)) => Ok(Offset::After(of.get_ref().clone(), ns)),
            (Some(of), None) => Err(text.at(of, "after requires the distance as phase = \"…\"")),
        }
    }

    fn restart(&self, text: &Text<'_>) -> Result<Restart, TaskFileError> {
        let mut restart = Restart::default();
        if let Some(when) = &self.restart {
            restart = values::restart(text, when)?;
        }
        if let Some(most) = self.restarts.filter(|_| restart.most > 0) {
            restart.most = most;
        }
        if let Some(pause) = &self.pause {
            restart.pause = values::span(text, pause)?;
        }
        Ok(restart)
    }
}
