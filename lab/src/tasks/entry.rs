//! One `[[task]]` of a file.
//!
//! Pure; each key is checked by itself here, and all together by the supervisor.

use punctual::periodic::{Phase, Rate, Task};
use punctual::process::{Restart, Spec, is_name};
use serde::Deserialize;
use toml::Spanned;

use super::Named;
use super::error::{FileError, Text};
use super::values;

/// A task as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    pub(super) name: Spanned<String>,
    command: Option<Spanned<Vec<String>>>,
    period: Option<Spanned<String>>,
    hertz: Option<Spanned<u64>>,
    phase: Option<Spanned<String>>,
    after: Option<Spanned<String>>,
    priority: Option<Spanned<u8>>,
    cpu: Option<u32>,
    budget: Option<Spanned<String>>,
    deadline: Option<Spanned<String>>,
    start_within: Option<Spanned<String>>,
    overrun: Option<Spanned<String>>,
    register_within: Option<Spanned<String>>,
    restart: Option<Spanned<String>>,
    restarts: Option<u32>,
    pause: Option<Spanned<String>>,
    safe: Option<Spanned<String>>,
}

impl Entry {
    /// The task.
    pub(super) fn named(&self, text: &Text<'_>) -> Result<Named, FileError> {
        if !is_name(self.name.get_ref()) {
            return Err(text.at(&self.name, values::NAME));
        }
        let command = self.command(text)?;
        let line = match &self.command {
            Some(command) => text.line(command),
            None => text.line(&self.name),
        };
        let mut spec = Spec::new(self.task(text)?, command);
        spec.cpu = self.cpu;
        if let Some(priority) = &self.priority {
            spec.fifo = Some(*priority.get_ref());
        }
        if let Some(within) = &self.register_within {
            spec.register_within = values::span(text, within)?;
        }
        if let Some(safe) = &self.safe {
            spec.safe = values::bytes(text, safe)?;
        }
        spec.restart = self.restart(text)?;
        Ok(Named { spec, line })
    }

    fn command(&self, text: &Text<'_>) -> Result<Vec<std::ffi::OsString>, FileError> {
        let Some(command) = &self.command else { return Ok(Vec::new()) };
        let words = command.get_ref();
        if words.first().is_none_or(String::is_empty) {
            return Err(text.at(command, "a command without a program"));
        }
        if words.iter().any(|word| word.contains('\0')) {
            return Err(text.at(command, "a word of a command holds a zero byte"));
        }
        Ok(words.iter().map(Into::into).collect())
    }

    fn rate(&self, text: &Text<'_>) -> Result<Rate, FileError> {
        match (&self.period, &self.hertz) {
            (Some(period), None) => values::period(text, period),
            (None, Some(hertz)) => Rate::hertz(*hertz.get_ref())
                .ok_or_else(|| text.at(hertz, "a rate is in [1, 1000000000] Hz")),
            (Some(_), Some(hertz)) => Err(text.at(hertz, "either a period or a rate, not both")),
            (None, None) => Err(text.at(&self.name, "neither a period nor a rate in hertz")),
        }
    }

    fn task(&self, text: &Text<'_>) -> Result<Task, FileError> {
        let mut task = Task::new(self.name.get_ref().clone(), self.rate(text)?);
        if let Some(priority) = &self.priority {
            task = task.priority(*priority.get_ref());
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
            task = task.policy(values::overrun(text, overrun)?);
        }
        Ok(task.phase(self.phase(text)?))
    }

    fn phase(&self, text: &Text<'_>) -> Result<Phase, FileError> {
        let at = self.phase.as_ref().map(|phase| values::phase_ns(text, phase)).transpose()?;
        match (&self.after, at) {
            (None, None) => Ok(Phase::Balanced),
            (None, Some(ns)) => Ok(Phase::At(ns)),
            (Some(of), Some(ns)) => Ok(Phase::After(of.get_ref().clone(), ns)),
            (Some(of), None) => {
                Err(text.at(of, "after which time? give the distance as phase = \"…\""))
            }
        }
    }

    fn restart(&self, text: &Text<'_>) -> Result<Restart, FileError> {
        let mut restart = Restart::default();
        if let Some(when) = &self.restart {
            restart.when = values::when(text, when)?;
        }
        if let Some(most) = self.restarts {
            restart.most = most;
        }
        if let Some(pause) = &self.pause {
            restart.pause = values::span(text, pause)?;
        }
        Ok(restart)
    }
}
