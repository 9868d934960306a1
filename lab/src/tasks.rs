//! The file that names the tasks of a supervisor: TOML in, what the process module of the engine
//! takes out.
//!
//! For `punctual run`; what a file says of a calendar is in `calendar`. Pure: opens nothing, starts
//! nothing. Every key is known or refused, every duration has its unit, and what is refused says
//! where it stands.

mod calendar;

use std::collections::HashSet;
use std::fmt;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use punctual::RtThread;
use punctual_analysis::quantity;
use punctual_core::time::{Instant, Span};
use punctual_engine::periodic::{OnOverrun, Period, Task};
use punctual_engine::process::{Restart, Spec, Supervisor, Surroundings, is_name};
use punctual_engine::wait_policy::WaitKind;
use punctual_os::affinity::CPUS_MAX;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::waits::WAITS;
use calendar::UnitEntry;

pub use calendar::FileCalendar;

/// The most tasks of one supervisor: each takes two descriptors and a thread's worth of memory.
pub const TASKS_MAX: usize = 256;

/// The contents of a file of tasks.
#[derive(Clone, Debug)]
pub struct TaskFile {
    /// The supervisor's name; `None`: nobody can join.
    pub name: Option<String>,
    /// The thread of the supervisor's executive: its CPU, which is also that of tasks that name
    /// none, its priority, and its wait for releases.
    pub thread: RtThread,
    /// The phase of the grid.
    pub phase: GridPhase,
    /// True where budgets may take more than a CPU together.
    pub overload: bool,
    /// The frame and its units, whose processes are among the tasks.
    pub calendar: Option<FileCalendar>,
    /// The tasks, in the order of the file, those of the calendar last.
    pub tasks: Vec<FileTask>,
}

/// The keys of the table `[supervisor]`.
const HEAD: &str = "the keys of [supervisor] are name, cpu, priority, wait, budget, phase, \
                    overload";

impl TaskFile {
    /// Reads `bytes`.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong, with its line and column.
    pub fn parse(bytes: &[u8]) -> Result<Self, TaskFileError> {
        let text = Text::of(bytes)?;
        let mut file = Keys::of(&text)?;
        let mut head = file.table("supervisor")?;
        let calendar = file.some_table("calendar")?;
        let (tasks, units) = (file.tables("task")?, file.tables("unit")?);
        file.end("a file has [supervisor], [calendar], [[task]] and [[unit]]")?;
        let name = head.word("name")?;
        if let Some(name) = name.as_ref().filter(|name| !is_name(name.get_ref())) {
            return Err(text.at(name, NAME));
        }
        let cpu = cpu(&mut head)?;
        let priority =
            head.number("priority", 2..=98)?.and_then(|number| u8::try_from(number).ok());
        let wait = wait(&text, head.word("wait")?.as_ref(), head.word("budget")?.as_ref())?;
        let phase = grid_phase(&text, head.word("phase")?.as_ref())?;
        let overload = head.flag("overload")?;
        head.end(HEAD)?;
        if tasks.is_empty() && units.is_empty() && calendar.is_none() {
            let why = "there is no [[task]], and no [calendar] with a [[unit]]";
            return Err(TaskFileError::new(None, why));
        }
        let supervisor = priority.unwrap_or(Supervisor::PRIORITY);
        let tasks: Vec<Entry> = tasks
            .into_iter()
            .map(|keys| Entry::of(&text, keys, supervisor))
            .collect::<Result<_, _>>()?;
        let mut named: Vec<FileTask> =
            tasks.iter().map(|task| task.named(&text)).collect::<Result<_, _>>()?;
        let (calendar, units) = FileCalendar::of(&text, calendar, units, supervisor)?.unzip();
        let units: Vec<UnitEntry> = units.unwrap_or_default();
        let processes = tasks.len() + units.iter().filter(|unit| unit.has_process()).count();
        if processes > TASKS_MAX {
            let why = format!(
                "at most {TASKS_MAX} tasks and units with a process are accepted (got {processes})"
            );
            return Err(TaskFileError::new(None, &why));
        }
        let mut names = HashSet::new();
        for name in tasks.iter().map(|task| &task.name).chain(units.iter().map(UnitEntry::name)) {
            if !names.insert(name.get_ref()) {
                return Err(text.at(name, "another task or unit has this name"));
            }
        }
        if let Some(calendar) = &calendar {
            named.extend(FileCalendar::processes(calendar, &text, &units)?);
        }
        let name = name.map(Spanned::into_inner);
        let thread = RtThread::any().pinned(cpu).fifo(supervisor).wait(wait);
        Ok(Self { name, thread, phase, overload, calendar, tasks: named })
    }

    /// The supervisor that the file describes, its grid at `phase_ns`, without its calendar
    /// ([`FileCalendar::plan`]); not yet checked as a whole.
    pub fn supervisor(&self, phase_ns: u64) -> Supervisor {
        let mut supervisor =
            Supervisor::new().epoch(Instant::from_ns(phase_ns)).thread(self.thread.clone());
        if let Some(name) = &self.name {
            supervisor = supervisor.name(name.clone());
        }
        if self.overload {
            supervisor = supervisor.allow_overload();
        }
        self.tasks.iter().fold(supervisor, |supervisor, task| supervisor.task(task.spec.clone()))
    }

    /// The line of the task of this name, from 1.
    pub fn line(&self, task: &str) -> Option<usize> {
        self.tasks.iter().find(|named| named.spec.task.name() == task).map(|named| named.line)
    }

    /// The shortest period of all tasks.
    pub fn shortest(&self) -> Option<Period> {
        self.tasks.iter().map(|task| task.spec.task.period()).min()
    }
}

/// The fault of a file of tasks, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskFileError {
    /// Line and column, from 1; `None` for the whole.
    place: Option<(usize, usize)>,
    why: String,
}

impl TaskFileError {
    fn new(place: Option<(usize, usize)>, why: &str) -> Self {
        // A parser of others may say it in several lines.
        let words: Vec<&str> = why.split_whitespace().collect();
        Self { place, why: words.join(" ") }
    }
}

impl fmt::Display for TaskFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Some((line, column)) => write!(f, "line {line}, column {column}: {}", self.why),
            None => f.write_str(&self.why),
        }
    }
}

impl std::error::Error for TaskFileError {}

/// The keys of a task.
const ALL: &str = "the keys of [[task]] are name, command, period or hertz, phase, after, \
                   priority, cpu, budget, deadline, start_within, overrun, register_within, \
                   restart, restarts, pause, safe, user, group, env, capabilities, directory, \
                   umask";

/// A task, and where it stands.
#[derive(Clone, Debug)]
pub struct FileTask {
    /// The program, and the way to run it.
    pub spec: Spec,
    /// The line of its name.
    pub line: usize,
    /// The line of its program, or of its name where it has none.
    pub program_line: usize,
}

/// A periodic task as it is written.
#[derive(Debug)]
struct Entry {
    name: Word,
    period: Option<Word>,
    hertz: Option<u64>,
    phase: Option<Word>,
    after: Option<Word>,
    budget: Option<Word>,
    deadline: Option<Word>,
    start_within: Option<Word>,
    overrun: Option<Word>,
    process: ProcessKeys,
}

impl Entry {
    /// A task under a supervisor of this priority.
    fn of(text: &Text<'_>, mut keys: Keys<'_, '_>, supervisor: u8) -> Result<Self, TaskFileError> {
        let nameless = text.within(keys.place(), "the task has no name");
        let process = ProcessKeys::of(text, &mut keys, supervisor)?;
        let entry = Self {
            name: keys.word("name")?.ok_or(nameless)?,
            period: keys.word("period")?,
            hertz: keys.number("hertz", 1..=1_000_000_000)?,
            phase: keys.word("phase")?,
            after: keys.word("after")?,
            budget: keys.word("budget")?,
            deadline: keys.word("deadline")?,
            start_within: keys.word("start_within")?,
            overrun: keys.word("overrun")?,
            process,
        };
        keys.end(ALL)?;
        Ok(entry)
    }

    /// The task.
    fn named(&self, text: &Text<'_>) -> Result<FileTask, TaskFileError> {
        check_name(text, &self.name)?;
        self.process.named(text, &self.name, self.task(text)?)
    }

    fn period_of(&self, text: &Text<'_>) -> Result<Period, TaskFileError> {
        match (&self.period, self.hertz) {
            (Some(word), None) => period(text, word),
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
        if let Some(priority) = self.process.priority {
            task = task.priority(priority);
        }
        if let Some(budget) = &self.budget {
            task = task.budget(Duration::from_nanos(ns(text, budget)?));
        }
        if let Some(deadline) = &self.deadline {
            task = task.deadline(Duration::from_nanos(ns(text, deadline)?));
        }
        if let Some(start) = &self.start_within {
            task = task.start_within(Duration::from_nanos(ns(text, start)?));
        }
        if let Some(word) = &self.overrun {
            task = task.on_overrun(overrun(text, word)?);
        }
        self.at_phase(text, task)
    }

    fn at_phase(&self, text: &Text<'_>, task: Task) -> Result<Task, TaskFileError> {
        let at = self.phase.as_ref().map(|phase| phase_ns(text, phase)).transpose()?;
        match (&self.after, at) {
            (None, None) => Ok(task),
            (None, Some(ns)) => Ok(task.at(Duration::from_nanos(ns))),
            (Some(predecessor), Some(ns)) => {
                Ok(task.after(predecessor.get_ref(), Duration::from_nanos(ns)))
            }
            (Some(predecessor), None) => {
                Err(text.at(predecessor, "after requires the distance as phase = \"…\""))
            }
        }
    }
}

/// Refuses what is no name of a task.
fn check_name(text: &Text<'_>, name: &Word) -> Result<(), TaskFileError> {
    if is_name(name.get_ref()) { Ok(()) } else { Err(text.at(name, NAME)) }
}

/// The keys of a process, of a task or of a unit.
#[derive(Debug)]
struct ProcessKeys {
    command: Option<Spanned<Vec<String>>>,
    priority: Option<u8>,
    cpu: Option<u32>,
    register_within: Option<Word>,
    restart: Option<Word>,
    restarts: Option<u32>,
    pause: Option<Word>,
    safe: Option<Word>,
    surroundings: Surroundings,
    /// The first of the keys of `surroundings`.
    surrounded: Option<Range<usize>>,
    /// The first of all these keys, and its place.
    first: Option<(&'static str, Range<usize>)>,
}

impl ProcessKeys {
    /// The keys.
    const ALL: [&str; 14] = [
        "command",
        "priority",
        "cpu",
        "register_within",
        "restart",
        "restarts",
        "pause",
        "safe",
        "user",
        "group",
        "env",
        "capabilities",
        "directory",
        "umask",
    ];

    /// Of a process under a supervisor of this priority.
    fn of(text: &Text<'_>, keys: &mut Keys<'_, '_>, supervisor: u8) -> Result<Self, TaskFileError> {
        let below = 1..=u64::from(supervisor.saturating_sub(1));
        let places = Self::ALL.iter().filter_map(|key| Some((*key, keys.place_of(key)?)));
        let first = places.min_by_key(|(_, place)| place.start);
        let (surroundings, surrounded) = surroundings(text, keys)?;
        Ok(Self {
            surroundings,
            surrounded,
            first,
            command: keys.words("command")?,
            priority: keys.number("priority", below)?.and_then(|number| number.try_into().ok()),
            cpu: cpu(keys)?,
            register_within: keys.word("register_within")?,
            restart: keys.word("restart")?,
            restarts: keys
                .number("restarts", 0..=u32::MAX.into())?
                .and_then(|number| number.try_into().ok()),
            pause: keys.word("pause")?,
            safe: keys.word("safe")?,
        })
    }

    /// The process of this task.
    fn named(&self, text: &Text<'_>, name: &Word, task: Task) -> Result<FileTask, TaskFileError> {
        let command = self.command(text)?;
        let line = text.line(name);
        let program_line = self.command.as_ref().map_or(line, |command| text.line(command));
        let mut spec = Spec::new(task, command);
        spec.thread = RtThread::any().pinned(self.cpu);
        if let Some(priority) = self.priority {
            spec.thread = spec.thread.fifo(priority);
        }
        if let Some(within) = &self.register_within {
            spec.register_within = span(text, within)?;
        }
        if let Some(safe) = &self.safe {
            spec.safe = bytes(text, safe)?;
        }
        spec.restart = self.restart(text)?;
        if let Some(place) = self.surrounded.clone().filter(|_| self.command.is_none()) {
            let why = "user, group, env, capabilities, directory and umask require a command";
            return Err(text.within(place, why));
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

    fn restart(&self, text: &Text<'_>) -> Result<Restart, TaskFileError> {
        let mut policy = match &self.restart {
            Some(when) => restart(text, when)?,
            None => Restart::default(),
        };
        if let Some(most) = self.restarts.filter(|_| policy.most > 0) {
            policy.most = most;
        }
        if let Some(pause) = &self.pause {
            policy.pause = span(text, pause)?;
        }
        Ok(policy)
    }
}

/// The user and directories that the task runs as and in, and where its first such key stands.
fn surroundings(
    text: &Text<'_>,
    keys: &mut Keys<'_, '_>,
) -> Result<(Surroundings, Option<Range<usize>>), TaskFileError> {
    let mut places = Vec::new();
    let mut word = |keys: &mut Keys<'_, '_>, key: &str| {
        let Some(word) = keys.word(key)? else { return Ok(None) };
        places.push(word.span());
        if word.get_ref().is_empty() || word.get_ref().contains('\0') {
            return Err(text.at(&word, &format!("{key} is empty or contains a zero byte")));
        }
        Ok(Some(word))
    };
    let user = word(keys, "user")?;
    let group = word(keys, "group")?;
    let directory = word(keys, "directory")?;
    let umask = word(keys, "umask")?;
    let mode = |digits: &str| u32::from_str_radix(digits, 8).ok().filter(|&mode| mode <= 0o777);
    let umask = umask.map(|word| {
        mode(word.get_ref())
            .ok_or_else(|| text.at(&word, "umask must be at most \"0777\", in octal digits"))
    });
    let capabilities = keys.words("capabilities")?;
    places.extend(capabilities.iter().map(Spanned::span));
    let env = keys.variables("env")?;
    for (name, value) in env.iter().flatten() {
        places.push(name.span());
        let name_is_one = !name.get_ref().is_empty() && !name.get_ref().contains(['=', '\0']);
        if !name_is_one || value.contains('\0') {
            return Err(text.at(name, "env: a name is empty or contains '=', or a zero byte"));
        }
    }
    let mut surroundings = Surroundings::default();
    surroundings.user = user.map(Spanned::into_inner);
    surroundings.group = group.map(Spanned::into_inner);
    surroundings.env = env.map(|variables| {
        let variable = |(name, value): (Word, String)| (name.into_inner().into(), value.into());
        variables.into_iter().map(variable).collect()
    });
    surroundings.capabilities = capabilities.map(Spanned::into_inner);
    surroundings.directory = directory.map(|word| word.into_inner().into());
    surroundings.umask = umask.transpose()?;
    places.sort_by_key(|place| place.start);
    Ok((surroundings, places.into_iter().next()))
}

/// The place of the whole grid on CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GridPhase {
    /// This many ns after its zero.
    At(u64),
    /// Away from the kernel's tick.
    Quiet,
}

/// The error of a name, with what is accepted.
const NAME: &str =
    "invalid name: use at most 48 letters, digits, '-', '_' and '.', with no '.' first";

/// The number of a CPU.
fn cpu(keys: &mut Keys<'_, '_>) -> Result<Option<u32>, TaskFileError> {
    let number = keys.number("cpu", 0..=u64::from(CPUS_MAX) - 1)?;
    Ok(number.and_then(|number| number.try_into().ok()))
}

/// A positive duration.
fn span(text: &Text<'_>, word: &Word) -> Result<Span, TaskFileError> {
    quantity::duration(word.get_ref()).map_err(|why| text.at(word, &why.to_string()))
}

/// A positive duration, ns.
fn ns(text: &Text<'_>, word: &Word) -> Result<u64, TaskFileError> {
    span(text, word).map(|span| span.as_ns().unsigned_abs())
}

/// A duration that may be nothing, ns.
fn phase_ns(text: &Text<'_>, word: &Word) -> Result<u64, TaskFileError> {
    if word.get_ref() == "0" { Ok(0) } else { ns(text, word) }
}

/// A period.
fn period(text: &Text<'_>, word: &Word) -> Result<Period, TaskFileError> {
    let period = Period::from_ns(ns(text, word)?);
    period.ok_or_else(|| text.at(word, "period must be at most 2^62 ns"))
}

/// `zero`, `quiet` or a duration.
fn grid_phase(text: &Text<'_>, word: Option<&Word>) -> Result<GridPhase, TaskFileError> {
    match word {
        None => Ok(GridPhase::At(0)),
        Some(word) if word.get_ref() == "zero" => Ok(GridPhase::At(0)),
        Some(word) if word.get_ref() == "quiet" => Ok(GridPhase::Quiet),
        Some(word) => ns(text, word).map(GridPhase::At),
    }
}

/// A way to wait, by its name in the table of them; only one that learns takes a budget.
fn wait(
    text: &Text<'_>,
    word: Option<&Word>,
    budget: Option<&Word>,
) -> Result<WaitKind, TaskFileError> {
    let share = budget
        .map(|word| quantity::share(word.get_ref()).map_err(|why| text.at(word, &why.to_string())))
        .transpose()?
        .map_or(0.1, quantity::Share::as_one);
    let way = match word {
        None => WaitKind::Sleep,
        Some(word) => {
            let row = WAITS.iter().find(|row| row.name == word.get_ref());
            let names = || WAITS.iter().map(|row| row.name).collect::<Vec<_>>().join(", ");
            let row =
                row.ok_or_else(|| text.at(word, &format!("wait must be one of {}", names())))?;
            row.kind(None, share)
        }
    };
    match (way, budget) {
        (WaitKind::Adaptive(_), _) | (_, None) => Ok(way),
        (_, Some(budget)) => Err(text.at(budget, "budget requires wait = \"adaptive\"")),
    }
}

/// Reads the policy for an overrun.
fn overrun(text: &Text<'_>, word: &Word) -> Result<OnOverrun, TaskFileError> {
    let number =
        |most: &str| most.parse().ok().filter(|most: &u32| (1..=Spec::BURST_MAX).contains(most));
    match word.get_ref().as_str() {
        "skip" => Ok(OnOverrun::Skip),
        "delay" => Err(text.at(
            word,
            "delay would move the phase, which the supervisor of a process fixes: use skip or \
             \"burst N\"",
        )),
        "terminate" => Ok(OnOverrun::Terminate),
        "stop" => Ok(OnOverrun::Stop),
        "external" => Err(text.at(
            word,
            "a process that is paced by a device needs no releases: run it without the supervisor",
        )),
        burst => {
            burst.strip_prefix("burst ").and_then(number).map(OnOverrun::Burst).ok_or_else(|| {
                text.at(word, "overrun must be skip, \"burst N\" (1 to 16), terminate or stop")
            })
        }
    }
}

/// Reads the rule by which a process is started again; its other values are those by default.
fn restart(text: &Text<'_>, word: &Word) -> Result<Restart, TaskFileError> {
    match word.get_ref().as_str() {
        "never" => Ok(Restart::default()),
        "on-failure" => Ok(Restart::ON_FAILURE),
        "always" => Ok(Restart::ALWAYS),
        _ => Err(text.at(word, "restart must be never, on-failure or always")),
    }
}

/// Bytes as pairs of hexadecimal digits, with spaces between as one likes; made up with zeros to a
/// multiple of 8.
fn bytes(text: &Text<'_>, word: &Word) -> Result<Vec<u8>, TaskFileError> {
    let refused = || text.at(word, "safe must be 1 to 4096 bytes as pairs of hex digits");
    let mut bytes = hex(word.get_ref()).ok_or_else(refused)?;
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    Ok(bytes)
}

/// 1 to 4096 bytes as pairs of hexadecimal digits, with any spaces between them.
pub fn hex(text: &str) -> Option<Vec<u8>> {
    let mut digits = text.chars().filter(|c| *c != ' ');
    let mut bytes = Vec::new();
    while let Some(high) = digits.next() {
        let (high, low) = (high.to_digit(16)?, digits.next()?.to_digit(16)?);
        bytes.push((high * 16 + low) as u8);
    }
    (1..=4_096).contains(&bytes.len()).then_some(bytes)
}

/// A text and where it stands.
type Word = Spanned<String>;

/// A table of a file, of which each key is asked for by name and kind.
///
/// It says in the file's words what stands where something else should, and finds the keys that
/// nobody asked for.
#[derive(Debug)]
struct Keys<'t, 'f> {
    text: &'t Text<'f>,
    place: Range<usize>,
    left: DeTable<'f>,
}

impl<'t, 'f> Keys<'t, 'f> {
    /// All of a file.
    fn of(text: &'t Text<'f>) -> Result<Self, TaskFileError> {
        let whole = DeTable::parse(text.as_str()).map_err(|why| text.refused(&why))?;
        Ok(Self { text, place: whole.span(), left: whole.into_inner() })
    }

    /// The place of the table in the text, bytes.
    fn place(&self) -> Range<usize> {
        self.place.clone()
    }

    fn take(&mut self, key: &str) -> Option<Spanned<DeValue<'f>>> {
        self.left.remove(key)
    }

    fn wrong(&self, key: &str, wanted: &str, value: &Spanned<DeValue<'_>>) -> TaskFileError {
        let is = kind(value.get_ref());
        self.text.within(value.span(), &format!("{key} must be {wanted} (got {is})"))
    }

    /// A text.
    fn word(&mut self, key: &str) -> Result<Option<Word>, TaskFileError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        match value.get_ref().as_str() {
            Some(word) => Ok(Some(Spanned::new(value.span(), word.to_owned()))),
            None => Err(self.wrong(key, "a string", &value)),
        }
    }

    /// Texts in brackets.
    fn words(&mut self, key: &str) -> Result<Option<Spanned<Vec<String>>>, TaskFileError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let wanted = "an array of strings";
        let Some(list) = value.get_ref().as_array() else {
            return Err(self.wrong(key, wanted, &value));
        };
        let word = |value: &Spanned<DeValue<'_>>| match value.get_ref().as_str() {
            Some(word) => Ok(word.to_owned()),
            None => Err(self.wrong(&format!("each element of {key}"), "a string", value)),
        };
        let words = list.iter().map(word).collect::<Result<_, _>>()?;
        Ok(Some(Spanned::new(value.span(), words)))
    }

    /// A whole number within a range.
    fn number(
        &mut self,
        key: &str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>, TaskFileError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let (least, most) = (range.start(), range.end());
        let wanted = format!("an integer in [{least}, {most}]");
        let Some(number) = value.get_ref().as_integer() else {
            return Err(self.wrong(key, &wanted, &value));
        };
        // What does not fit is out of any range here.
        let is = u64::from_str_radix(number.as_str(), number.radix()).ok();
        match is.filter(|is| range.contains(is)) {
            Some(is) => Ok(Some(is)),
            None => {
                let why = format!("{key} must be {wanted} (got {number})");
                Err(self.text.within(value.span(), &why))
            }
        }
    }

    /// Yes or no; no where it is not said.
    fn flag(&mut self, key: &str) -> Result<bool, TaskFileError> {
        let Some(value) = self.take(key) else { return Ok(false) };
        value.get_ref().as_bool().ok_or_else(|| self.wrong(key, "a boolean", &value))
    }

    /// A table of texts, in the order of their names; `None` where there is none.
    fn variables(&mut self, key: &str) -> Result<Option<Vec<(Word, String)>>, TaskFileError> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let wanted = "a table of strings, written { NAME = \"value\" }";
        let Some(table) = value.get_ref().as_table() else {
            return Err(self.wrong(key, wanted, &value));
        };
        let variable = |(name, value): (&Spanned<DeString<'_>>, &Spanned<DeValue<'_>>)| {
            let name = Spanned::new(name.span(), name.get_ref().to_string());
            match value.get_ref().as_str() {
                Some(word) => Ok((name, word.to_owned())),
                None => Err(self.wrong(&format!("each value of {key}"), "a string", value)),
            }
        };
        table.iter().map(variable).collect::<Result<_, _>>().map(Some)
    }

    /// The place of a key's value in the text, bytes; `None` where it is not there.
    fn place_of(&self, key: &str) -> Option<Range<usize>> {
        self.left.get(key).map(Spanned::span)
    }

    /// A table, written `[key]`; `None` where there is none.
    fn some_table(&mut self, key: &str) -> Result<Option<Self>, TaskFileError> {
        if self.place_of(key).is_none() {
            return Ok(None);
        }
        self.table(key).map(Some)
    }

    /// A table, written `[key]`; empty where there is none.
    fn table(&mut self, key: &str) -> Result<Self, TaskFileError> {
        let text = self.text;
        let Some(value) = self.take(key) else {
            return Ok(Self { text, place: 0..0, left: DeTable::new() });
        };
        self.as_table(value, key, || format!("one table, written [{key}]"))
    }

    /// All tables that are written `[[key]]`, in their order.
    fn tables(&mut self, key: &str) -> Result<Vec<Self>, TaskFileError> {
        let Some(value) = self.take(key) else { return Ok(Vec::new()) };
        let wanted = || format!("a table, written [[{key}]]");
        let each = format!("each {key}");
        let place = value.span();
        match value.into_inner() {
            DeValue::Array(list) => {
                list.into_iter().map(|value| self.as_table(value, &each, wanted)).collect()
            }
            DeValue::Table(_) => {
                let why = format!("{each} must be {} (got a table in single brackets)", wanted());
                Err(self.text.within(place, &why))
            }
            found => Err(self.wrong(&each, &wanted(), &Spanned::new(place, found))),
        }
    }

    fn as_table(
        &self,
        value: Spanned<DeValue<'f>>,
        key: &str,
        wanted: impl Fn() -> String,
    ) -> Result<Self, TaskFileError> {
        let place = value.span();
        match value.into_inner() {
            DeValue::Table(left) => Ok(Self { text: self.text, place, left }),
            found => Err(self.wrong(key, &wanted(), &Spanned::new(place, found))),
        }
    }

    /// Nobody asks for more: refuses the first key that was not asked for.
    fn end(self, known: &str) -> Result<(), TaskFileError> {
        let first = self.left.keys().min_by_key(|key| key.span().start);
        first.map_or(Ok(()), |key| {
            let why = format!("unknown key {}: {known}", quoted(key.get_ref()));
            Err(self.text.within(key.span(), &why))
        })
    }
}

/// A key as it may be shown: a foreign one may hold anything.
fn quoted(key: &str) -> String {
    let shown: String = key.chars().take(48).collect();
    format!("{shown:?}")
}

/// The kind of a value, in words for the user.
fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a datetime",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}

/// The longest file, bytes.
pub const FILE_MAX: usize = 1 << 20;

/// A file's text, by which places are found.
#[derive(Debug)]
struct Text<'t>(&'t str);

impl<'t> Text<'t> {
    fn of(bytes: &'t [u8]) -> Result<Self, TaskFileError> {
        if bytes.len() > FILE_MAX {
            return Err(TaskFileError::new(None, "the file is larger than 1 MiB"));
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Self(text)),
            Err(why) => {
                let valid = bytes.get(..why.valid_up_to()).unwrap_or_default();
                let place = place(&String::from_utf8_lossy(valid), valid.len());
                Err(TaskFileError::new(Some(place), "no UTF-8"))
            }
        }
    }

    fn as_str(&self) -> &'t str {
        self.0
    }

    /// The line and the column of a value, from 1.
    fn place<T>(&self, value: &Spanned<T>) -> (usize, usize) {
        place(self.0, value.span().start)
    }

    /// The line of a value, from 1.
    fn line<T>(&self, value: &Spanned<T>) -> usize {
        place(self.0, value.span().start).0
    }

    /// A value that is refused.
    fn at<T>(&self, value: &Spanned<T>, why: &str) -> TaskFileError {
        self.within(value.span(), why)
    }

    /// Something at a place that is refused.
    fn within(&self, span: Range<usize>, why: &str) -> TaskFileError {
        TaskFileError::new(Some(place(self.0, span.start)), why)
    }

    /// An error of the TOML parser, with its place.
    fn refused(&self, why: &toml::de::Error) -> TaskFileError {
        match why.span() {
            Some(span) => self.within(span, why.message()),
            None => TaskFileError::new(None, why.message()),
        }
    }
}

/// Line and column of a byte, from 1.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |rest| rest.chars().count()) + 1;
    (line, column)
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual::Restart;
    use punctual_core::time::Span;
    use punctual_engine::periodic::OnOverrun;
    use punctual_engine::wait_policy::WaitKind;

    use crate::waits::WAITS;

    const WHOLE: &str = r#"
    [supervisor]
    name = "cell"
    cpu = 1
    priority = 70
    wait = "adaptive"
    budget = "5%"
    phase = "50us"

    [[task]]
    name = "sense"
    command = ["./sense", "--fast"]
    period = "1ms"
    phase = "100us"
    priority = 60
    cpu = 1
    budget = "200us"
    deadline = "500us"
    start_within = "50us"
    overrun = "terminate"
    register_within = "2s"
    restart = "on-failure"
    restarts = 3
    pause = "50ms"
    safe = "00 ff"

    [[task]]
    name = "act"
    period = "1ms"
    after = "sense"
    phase = "300us"
    priority = 50
    overrun = "burst 2"
    "#;

    #[test]
    fn a_whole_file_is_what_it_says() {
        let file = TaskFile::parse(WHOLE.as_bytes()).expect("fine");
        let thread = RtThread::cpu(1).fifo(70).wait(WaitKind::Adaptive(0.05));
        assert_eq!((file.name.as_deref(), &file.thread), (Some("cell"), &thread));
        assert_eq!(file.phase, GridPhase::At(50_000));
        let [sense, act] = &file.tasks[..] else { panic!("two") };
        assert_eq!((sense.line, sense.program_line), (11, 12));
        assert_eq!((act.line, act.program_line), (28, 28));
        assert_eq!(sense.spec.command, ["./sense", "--fast"]);
        assert_eq!(sense.spec.thread, RtThread::cpu(1).fifo(60));
        assert_eq!(sense.spec.safe, [0, 0xff, 0, 0, 0, 0, 0, 0]);
        assert_eq!(sense.spec.register_within, Span::from_ms(2_000));
        let restart = Restart::ON_FAILURE.most(3).pause(Duration::from_millis(50));
        assert_eq!(sense.spec.restart, restart);
        assert_eq!(sense.spec.task.overrun_policy(), OnOverrun::Terminate);
        assert_eq!(act.spec.task.overrun_policy(), OnOverrun::Burst(2));
        assert!(act.spec.command.is_empty());
        assert_eq!(file.shortest().map(Period::as_ns), Some(1_000_000));
        let supervisor = TaskFile { name: None, ..file }.supervisor(50_000);
        let ready = supervisor.build().expect("fine");
        assert_eq!((ready.plan().name(0), ready.plan().phase_ns(0)), ("sense", 100_000));
        assert_eq!((ready.plan().name(1), ready.plan().phase_ns(1)), ("act", 400_000));
        assert_eq!(ready.priorities().collect::<Vec<u8>>(), [60, 50]);
    }

    #[test]
    fn the_least_that_is_needed_is_a_name_and_a_period() {
        let file = TaskFile::parse(b"[[task]]\nname = \"a\"\nhertz = 3\n").expect("fine");
        assert_eq!(
            (file.thread.wait_kind(), file.phase, file.name),
            (WaitKind::Sleep, GridPhase::At(0), None)
        );
        assert_eq!(file.tasks[0].spec.task.period().den(), 3);
    }

    #[test]
    fn every_wait_of_the_table_can_be_named() {
        for row in &WAITS {
            let file = format!(
                "[supervisor]\nwait = \"{}\"\n[[task]]\nname = \"a\"\nhertz = 3\n",
                row.name
            );
            let tasks = TaskFile::parse(file.as_bytes()).expect("fine");
            assert_eq!(tasks.thread.wait_kind(), row.kind(None, 0.1));
        }
    }

    #[test]
    fn what_is_wrong_is_said_in_a_line_with_its_place() {
        let with = |line: &str| format!("[[task]]\nname = \"a\"\nperiod = \"1ms\"\n{line}\n");
        let head = |line: &str| format!("[supervisor]\n{line}\n{}", with(""));
        for (file, place, words) in [
            (String::new(), "", "no [[task]], and no [calendar]"),
            ("[[task]]\nname = ".to_owned(), "line 2", ""),
            ("[[task]]\nperiod = \"1ms\"".to_owned(), "line 1", "name"),
            ("[[task]]\nname = \"a\"".to_owned(), "line 2", "neither"),
            (
                "[[task]]\nname = \"a/b\"\nperiod = \"1ms\"".to_owned(),
                "line 2, column 8",
                "invalid name",
            ),
            ("[[task]]\nname = \"a\"\nperiod = \"0ms\"".to_owned(), "line 3, column 10", ""),
            ("[[task]]\nname = \"a\"\nperiod = \"1\"".to_owned(), "line 3", "unit"),
            ("[[task]]\nname = \"a\"\nperiod = 1".to_owned(), "line 3", "a string"),
            ("[[task]]\nname = \"a\"\nhertz = 0".to_owned(), "line 3", "[1, 1000000000] (got 0)"),
            (with("hertz = 5"), "line 3, column 10", "not both"),
            (with("colour = \"red\""), "line 4", "colour"),
            (with("period = \"1ms\""), "line 4", "duplicate"),
            (with("command = []"), "line 4", "program"),
            (with("command = [\"a\\u0000\"]"), "line 4", "zero byte"),
            (with("overrun = \"eat\""), "line 4", "skip"),
            (with("overrun = \"burst 0\""), "line 4", "burst"),
            (with("overrun = \"external\""), "line 4", "device"),
            (with("restart = \"maybe\""), "line 4", "on-failure"),
            (with("after = \"b\""), "line 4", "distance"),
            (with("safe = \"0\""), "line 4", "hex"),
            (with("safe = \"\""), "line 4", "hex"),
            (with("safe = \"é0\""), "line 4", "hex"),
            (with("priority = 300"), "line 4, column 12", "[1, 79] (got 300)"),
            (with("priority = 80"), "line 4", "[1, 79] (got 80)"),
            (with("priority = 0"), "line 4", "[1, 79] (got 0)"),
            (with("priority = -3"), "line 4", "[1, 79] (got -3)"),
            (with("priority = 0xff_ff_ff_ff_ff_ff_ff_ff_ff"), "line 4", "[1, 79]"),
            (with("cpu = 8192"), "line 4", "[0, 8191]"),
            (with("restarts = 4294967296"), "line 4", "[0, 4294967295]"),
            (with("overrun = \"delay\""), "line 4", "phase"),
            (with("overrun = \"burst 17\""), "line 4", "16"),
            (with("pause = \"-1ms\""), "line 4", ""),
            (with("[[task]]\nname = \"a\"\nperiod = \"1ms\""), "line 5", "another task or unit"),
            (head("name = \"../x\""), "line 2", "invalid name"),
            (head("priority = 99"), "line 2, column 12", "[2, 98] (got 99)"),
            (head("priority = 1"), "line 2", "[2, 98]"),
            (head("priority = 5") + "priority = 5", "line 7", "[1, 4] (got 5)"),
            (head("wait = \"hope\""), "line 2", "adaptive"),
            (head("budget = \"5%\""), "line 2", "adaptive"),
            (head("phase = \"5\""), "line 2", "unit"),
            (head("nmae = \"x\""), "line 2", "nmae"),
        ] {
            let why = TaskFile::parse(file.as_bytes()).expect_err(&file).to_string();
            assert!(why.contains(place) && why.contains(words), "{place:?} {words:?} in {why:?}");
            assert!(!why.contains('\n'), "{why:?}");
        }
        let why = TaskFile::parse(b"a = 1\n\xff").expect_err("no text").to_string();
        assert!(why.contains("line 2, column 1") && why.contains("UTF-8"), "{why}");
        assert!(TaskFile::parse(&vec![b' '; FILE_MAX + 1]).is_err());
    }

    #[test]
    fn what_has_another_shape_is_told_in_the_words_of_the_file() {
        let with = |line: &str| format!("[[task]]\nname = \"a\"\nperiod = \"1ms\"\n{line}\n");
        let head = |line: &str| format!("[supervisor]\n{line}\n{}", with(""));
        let tasks = "each task must be a table, written [[task]]";
        let single = "supervisor must be one table, written [supervisor]";
        for (file, place, why, not) in [
            ("task = 5".to_owned(), (1, 8), tasks, "an integer"),
            ("[task]".to_owned(), (1, 1), tasks, "a table in single brackets"),
            ("task = [5]".to_owned(), (1, 9), tasks, "an integer"),
            ("[[supervisor]]".to_owned(), (1, 1), single, "an array"),
            ("supervisor = 1.5".to_owned(), (1, 14), single, "a float"),
            (with("command = \"./a\""), (4, 11), "command must be an array of strings", "a string"),
            (
                with("command = [\"./a\", 5]"),
                (4, 19),
                "each element of command must be a string",
                "an integer",
            ),
            (with("budget = 2024-01-01"), (4, 10), "budget must be a string", "a datetime"),
            (with("safe = [0]"), (4, 8), "safe must be a string", "an array"),
            (with("cpu = \"1\""), (4, 7), "cpu must be an integer in [0, 8191]", "a string"),
            (with("cpu = {}"), (4, 7), "cpu must be an integer in [0, 8191]", "a table"),
            (head("overload = 1"), (2, 12), "overload must be a boolean", "an integer"),
            (head("wait = true"), (2, 8), "wait must be a string", "a boolean"),
        ] {
            let is = TaskFile::parse(file.as_bytes()).expect_err(&file).to_string();
            let (line, column) = place;
            assert_eq!(is, format!("line {line}, column {column}: {why} (got {not})"), "{file}");
        }
        let refused = |file: &str| TaskFile::parse(file.as_bytes()).expect_err(file).to_string();
        let why = refused("[tasks]");
        let known = "a file has [supervisor], [calendar], [[task]] and [[unit]]";
        assert_eq!(why, format!("line 1, column 2: unknown key \"tasks\": {known}"));
        // Of two keys that nobody knows the first in the file, and nothing that a terminal obeys.
        let why = refused(&with("z = 1\n\"b\\u001b[2J\" = 1"));
        assert!(why.starts_with("line 4, column 1: unknown key \"z\""), "{why}");
        let why = refused(&with("\"b\\u001b[2J\" = 1"));
        assert!(why.contains("\\u{1b}") && !why.contains('\u{1b}'), "{why}");
    }

    #[test]
    fn no_more_tasks_than_a_supervisor_has_and_no_longer_periods() {
        let many = |n: usize| -> String {
            let task = |at| format!("[[task]]\nname = \"t{at}\"\nperiod = \"1s\"\n");
            (0..n).map(task).collect()
        };
        assert_eq!(
            TaskFile::parse(many(TASKS_MAX).as_bytes()).expect("fits").tasks.len(),
            TASKS_MAX
        );
        let why =
            TaskFile::parse(many(TASKS_MAX + 1).as_bytes()).expect_err("too many").to_string();
        assert_eq!(why, "at most 256 tasks and units with a process are accepted (got 257)");
        let period = |ns: u64| format!("[[task]]\nname = \"a\"\nperiod = \"{ns}ns\"\n");
        assert!(TaskFile::parse(period(1 << 62).as_bytes()).is_ok());
        let why =
            TaskFile::parse(period((1 << 62) + 1).as_bytes()).expect_err("too long").to_string();
        assert_eq!(why, "line 3, column 10: period must be at most 2^62 ns");
    }

    #[test]
    fn what_a_process_runs_as_and_in_is_written_as_systemd_names_it() {
        let file = |keys: &str| {
            let head = "[[task]]\nname = \"a\"\nperiod = \"1ms\"\n";
            TaskFile::parse(format!("{head}{keys}\n").as_bytes())
        };
        let given = file(
            "command = [\"x\"]\nuser = \"nobody\"\ngroup = \"7\"\numask = \"027\"\n\
             capabilities = [\"CAP_NET_RAW\"]\ndirectory = \"/tmp\"\n\
             env = { A = \"1\", B = \"\" }",
        );
        let given = given.expect("fine").tasks[0].spec.surroundings.clone();
        assert_eq!((given.user.as_deref(), given.group.as_deref()), (Some("nobody"), Some("7")));
        assert_eq!((given.umask, given.directory), (Some(0o27), Some("/tmp".into())));
        assert_eq!(given.capabilities, Some(vec!["CAP_NET_RAW".to_owned()]));
        let env = [("A", "1"), ("B", "")].map(|(name, value)| (name.into(), value.into()));
        assert_eq!(given.env, Some(env.to_vec()));
        for (keys, words) in [
            ("command = [\"x\"]\numask = \"1000\"", "line 5, column 9: umask must be"),
            ("command = [\"x\"]\numask = \"9\"", "umask must be"),
            ("command = [\"x\"]\nuser = \"\"", "user is empty"),
            ("command = [\"x\"]\nenv = \"A=1\"", "env must be a table of strings"),
            ("command = [\"x\"]\nenv = { A = 1 }", "each value of env must be a string"),
            ("command = [\"x\"]\nenv = { \"A=B\" = \"1\" }", "contains '='"),
            ("user = \"nobody\"", "require a command"),
        ] {
            let why = file(keys).expect_err("refused").to_string();
            assert!(why.contains(words), "{keys}: {why}");
        }
    }
}
