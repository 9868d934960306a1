//! The calendar of a file of tasks: a frame, and units at places in it.
//!
//! `[calendar]` and its `[[unit]]`s, as [`punctual_engine::calendar`] takes them. A unit has a
//! process of its own, or names the unit whose process is released at its place too. Places are
//! made by [`FileCalendar::plan`] alone, which may take seconds; all else here is quick.

use std::collections::HashSet;
use std::time::Duration;

use punctual_engine::calendar::{CalendarBuilder, CalendarPlan, Unit};
use punctual_engine::error::CalendarError;
use punctual_engine::periodic::{OnOverrun, Period, Task};

use super::{
    FileTask, Keys, ProcessKeys, TaskFileError, Text, Word, check_name, ns, period, phase_ns,
};

/// The keys of the table `[calendar]`.
const HEAD: &str = "the keys of [calendar] are frame, scheduled";

/// The keys of a unit.
const ALL: &str = "the keys of [[unit]] are name, task, budget, at, after, gap, every, excludes, \
                   deadline, start_within, overrun, and those of its process: command, priority, \
                   cpu, register_within, restart, restarts, pause, safe, user, group, env, \
                   capabilities, directory, umask";

/// The calendar of a file.
#[derive(Clone, Debug)]
pub struct FileCalendar {
    frame: Period,
    units: Vec<Unit>,
    /// The name of each unit, and its line and column.
    names: Vec<(String, (usize, usize))>,
    is_scheduled: bool,
}

impl FileCalendar {
    /// Of these tables; what the units say of their processes besides. `None` where the file has
    /// neither.
    pub(super) fn of(
        text: &Text<'_>,
        head: Option<Keys<'_, '_>>,
        units: Vec<Keys<'_, '_>>,
        supervisor: u8,
    ) -> Result<Option<(Self, Vec<UnitEntry>)>, TaskFileError> {
        let Some(mut head) = head else {
            let why = "a [[unit]] requires a [calendar] with the frame that it has its place in, \
                       frame = \"…\"";
            return units.first().map_or(Ok(None), |unit| Err(text.within(unit.place(), why)));
        };
        let missing =
            text.within(head.place(), "[calendar] has no frame: give its length, frame = \"4ms\"");
        let frame = period(text, &head.word("frame")?.ok_or(missing)?)?;
        let is_scheduled = head.flag("scheduled")?;
        let place = head.place();
        head.end(HEAD)?;
        if units.is_empty() {
            return Err(text.within(place, "[calendar] has no [[unit]]: give it at least one"));
        }
        let entry = |keys| UnitEntry::of(text, keys, supervisor);
        let entries: Vec<UnitEntry> = units.into_iter().map(entry).collect::<Result<_, _>>()?;
        let unit = |entry: &UnitEntry| entry.unit(text);
        let name = |entry: &UnitEntry| (entry.name.get_ref().clone(), text.place(&entry.name));
        let calendar = Self {
            frame,
            units: entries.iter().map(unit).collect::<Result<_, _>>()?,
            names: entries.iter().map(name).collect(),
            is_scheduled,
        };
        Ok(Some((calendar, entries)))
    }

    /// The processes of its units, each of the period that the frame over its places is.
    pub(super) fn processes(
        &self,
        text: &Text<'_>,
        entries: &[UnitEntry],
    ) -> Result<Vec<FileTask>, TaskFileError> {
        let owners = entries.iter().filter(|entry| entry.has_process());
        let names: HashSet<&str> = owners.clone().map(UnitEntry::owner).collect();
        for entry in entries {
            entry.check_task(text, &names)?;
        }
        let process = |owner: &UnitEntry| {
            let own = entries.iter().filter(|entry| entry.owner() == owner.name.get_ref());
            let mut places = 0;
            for entry in own {
                // What does not divide the frame is refused where places are made.
                let every_ns = entry.every_ns(text)?.unwrap_or(self.frame.as_ns()).max(1);
                places += self.frame.as_ns() / every_ns;
            }
            let period = Period::ratio(self.frame.as_ns(), places.max(1)).unwrap_or(self.frame);
            let mut task = Task::every(owner.name.get_ref().clone(), period);
            let mut policies = entries.iter().filter(|entry| entry.owner() == owner.owner());
            if let Some(word) = policies.find_map(|entry| entry.overrun.as_ref()) {
                task = task.on_overrun(overrun(text, word)?);
            }
            owner.process.named(text, &owner.name, task)
        };
        owners.map(process).collect()
    }

    /// The length of the frame.
    pub fn frame(&self) -> Period {
        self.frame
    }

    /// Returns true where places are made for its units; otherwise they have those that the file
    /// gives.
    pub fn is_scheduled(&self) -> bool {
        self.is_scheduled
    }

    /// Its units at their places.
    ///
    /// # Errors
    ///
    /// The demand that cannot be met, with the line and the column of the unit that it is about,
    /// and the way out.
    pub fn plan(&self) -> Result<CalendarPlan, TaskFileError> {
        let given = self.units.iter().cloned();
        let given = given.fold(CalendarBuilder::new(self.frame), CalendarBuilder::unit);
        let plan = match self.is_scheduled {
            true => given.schedule().and_then(|scheduled| scheduled.build()),
            false => given.build(),
        };
        plan.map_err(|why| self.refused(&why))
    }

    /// A refusal of the calendar's builder, with its place in the file.
    fn refused(&self, why: &CalendarError) -> TaskFileError {
        let place = why.unit().and_then(|unit| self.place(unit));
        let way_out = match why {
            CalendarError::Unscheduled(_) => "; add scheduled = true to [calendar]",
            CalendarError::Outside(..) => "; place it earlier, or give a longer frame",
            CalendarError::Overlap(..) => {
                "; place one of them later, or let it come after the other: after = \"…\""
            }
            CalendarError::Chain { .. } | CalendarError::Demand { .. } => {
                "; give smaller budgets, later deadlines or longer periods"
            }
            _ => "",
        };
        TaskFileError::new(place, &format!("{why}{way_out}"))
    }

    /// Where the unit of this name stands, or the one of which it is a further run: "read 2".
    fn place(&self, unit: &str) -> Option<(usize, usize)> {
        let find = |name: &str| self.names.iter().find(|(unit, _)| unit == name);
        let first_run = unit.rsplit_once(' ').map(|(name, _)| name);
        find(unit).or_else(|| find(first_run?)).map(|(_, place)| *place)
    }
}

/// A unit as it is written.
#[derive(Debug)]
pub(super) struct UnitEntry {
    name: Word,
    task: Option<Word>,
    budget: Word,
    at: Option<Word>,
    after: Option<Word>,
    gap: Option<Word>,
    every: Option<Word>,
    excludes: Vec<String>,
    deadline: Option<Word>,
    start_within: Option<Word>,
    overrun: Option<Word>,
    process: ProcessKeys,
}

impl UnitEntry {
    fn of(text: &Text<'_>, mut keys: Keys<'_, '_>, supervisor: u8) -> Result<Self, TaskFileError> {
        let nameless = text.within(keys.place(), "the unit has no name");
        let process = ProcessKeys::of(text, &mut keys, supervisor)?;
        let name = keys.word("name")?.ok_or(nameless)?;
        check_name(text, &name)?;
        let boundless =
            text.at(&name, "the unit has no budget: give its longest run, budget = \"…\"");
        let entry = Self {
            name,
            task: keys.word("task")?,
            budget: keys.word("budget")?.ok_or(boundless)?,
            at: keys.word("at")?,
            after: keys.word("after")?,
            gap: keys.word("gap")?,
            every: keys.word("every")?,
            excludes: keys.words("excludes")?.map(|words| words.into_inner()).unwrap_or_default(),
            deadline: keys.word("deadline")?,
            start_within: keys.word("start_within")?,
            overrun: keys.word("overrun")?,
            process,
        };
        keys.end(ALL)?;
        Ok(entry)
    }

    /// Returns true where it has a process of its own.
    pub(super) fn has_process(&self) -> bool {
        self.task.is_none()
    }

    /// Its name.
    pub(super) fn name(&self) -> &Word {
        &self.name
    }

    /// The name of the unit whose process it is released in.
    fn owner(&self) -> &str {
        self.task.as_ref().unwrap_or(&self.name).get_ref()
    }

    /// A unit of another one's process names one that has a process, and says nothing of it.
    fn check_task(&self, text: &Text<'_>, owners: &HashSet<&str>) -> Result<(), TaskFileError> {
        let Some(task) = &self.task else { return Ok(()) };
        if !owners.contains(task.get_ref().as_str()) {
            let why = format!(
                "task must name a unit that has a process of its own, without a key task (got \
                 {:?})",
                task.get_ref()
            );
            return Err(text.at(task, &why));
        }
        match &self.process.first {
            None => Ok(()),
            Some((key, place)) => {
                let why = format!(
                    "{key} is said of the process, which is that of unit {:?}: move it there, or \
                     leave out task",
                    task.get_ref()
                );
                Err(text.within(place.clone(), &why))
            }
        }
    }

    /// Its period, ns; `None` for the frame.
    fn every_ns(&self, text: &Text<'_>) -> Result<Option<u64>, TaskFileError> {
        self.every.as_ref().map(|word| ns(text, word)).transpose()
    }

    /// The unit.
    fn unit(&self, text: &Text<'_>) -> Result<Unit, TaskFileError> {
        let duration = |word: &Word| ns(text, word).map(Duration::from_nanos);
        let from_zero = |word: &Word| phase_ns(text, word).map(Duration::from_nanos);
        let mut unit = Unit::new(self.name.get_ref().clone(), duration(&self.budget)?);
        if let Some(task) = &self.task {
            unit = unit.of(task.get_ref().clone());
        }
        unit = match (&self.at, &self.after, &self.gap) {
            (None, None, None) => unit,
            (Some(at), None, None) => unit.at(from_zero(at)?),
            (None, Some(after), gap) => {
                let gap = gap.as_ref().map_or(Ok(Duration::ZERO), from_zero)?;
                unit.after(after.get_ref().clone(), gap)
            }
            (Some(at), Some(_), _) => {
                return Err(text.at(at, "give either at or after, not both"));
            }
            (_, None, Some(gap)) => {
                let why = "gap is the time since the unit that this one is after: give after = \
                           \"…\" too";
                return Err(text.at(gap, why));
            }
        };
        if let Some(every) = &self.every {
            unit = unit.every(duration(every)?);
        }
        if let Some(deadline) = &self.deadline {
            unit = unit.deadline(duration(deadline)?);
        }
        if let Some(start) = &self.start_within {
            unit = unit.start_within(duration(start)?);
        }
        if let Some(word) = &self.overrun {
            unit = unit.on_overrun(overrun(text, word)?);
        }
        Ok(self.excludes.iter().cloned().fold(unit, Unit::excludes))
    }
}

/// Reads the policy for a time-out.
fn overrun(text: &Text<'_>, word: &Word) -> Result<OnOverrun, TaskFileError> {
    match word.get_ref().as_str() {
        "skip" => Ok(OnOverrun::Skip),
        "terminate" => Ok(OnOverrun::Terminate),
        "stop" => Ok(OnOverrun::Stop),
        unknown => {
            let why = format!(
                "overrun of a unit must be skip, terminate or stop, as its place does not move \
                 (got {unknown:?})"
            );
            Err(text.at(word, &why))
        }
    }
}

#[cfg(test)]
mod tests {
    use punctual_engine::process::PlacedTask;

    use super::super::TaskFile;
    use super::*;

    const WHOLE: &str = r#"
    [calendar]
    frame = "4ms"
    scheduled = true

    [[unit]]
    name = "read"
    command = ["./read"]
    budget = "100us"
    every = "1ms"
    deadline = "300us"
    start_within = "50us"
    overrun = "terminate"
    restart = "on-failure"

    [[unit]]
    name = "control"
    command = ["./control"]
    budget = "300us"
    every = "1ms"
    after = "read"
    gap = "50us"

    [[unit]]
    name = "log"
    budget = "250us"
    at = "2ms"
    excludes = ["plot"]
    priority = 7

    [[unit]]
    name = "sync"
    task = "log"
    budget = "10us"
    after = "log"

    [[unit]]
    name = "plot"
    budget = "20us"

    [[task]]
    name = "slow"
    period = "10ms"
    "#;

    fn planned(file: &str) -> Result<(TaskFile, CalendarPlan), String> {
        let tasks = TaskFile::parse(file.as_bytes()).map_err(|why| why.to_string())?;
        let plan = tasks.calendar.as_ref().expect("a calendar").plan();
        let plan = plan.map_err(|why| why.to_string())?;
        Ok((tasks, plan))
    }

    #[test]
    fn a_whole_calendar_is_what_it_says_and_goes_with_its_tasks() {
        let (file, plan) = planned(WHOLE).expect("fine");
        assert_eq!(plan.units().len(), 4 + 4 + 3);
        let names: Vec<&str> = file.tasks.iter().map(|task| task.spec.task.name()).collect();
        assert_eq!(names, ["slow", "read", "control", "log", "plot"]);
        let spec = |name: &str| {
            let found = file.tasks.iter().find(|task| task.spec.task.name() == name);
            &found.expect("one of them").spec
        };
        assert_eq!(spec("read").task.overrun_policy(), OnOverrun::Terminate);
        assert_eq!(spec("log").task.period(), Period::from_ns(2_000_000).expect("in range"));
        let supervisor = file.supervisor(0).calendar(plan.clone());
        let layout = supervisor.layout().expect("they go together");
        let at = |name: &str| -> &PlacedTask {
            layout.iter().find(|task| task.name == name).expect("placed")
        };
        assert_eq!((at("read").priority, at("log").priority, at("slow").priority), (79, 7, 78));
        assert_eq!((at("read").is_unit, at("slow").is_unit), (true, false));
        let read: Vec<u64> = plan
            .units()
            .filter(|(unit, _)| unit.starts_with("read"))
            .map(|(_, place)| place.ready_ns)
            .collect();
        assert!(
            (0..4).zip(&read).all(|(k, ns)| (k * 1_000_000..=k * 1_000_000 + 200_000).contains(ns))
        );
    }

    #[test]
    fn places_can_be_given_by_hand() {
        let file = "[calendar]\nframe = \"2ms\"\n\
                    [[unit]]\nname = \"a\"\nbudget = \"100us\"\nat = \"500us\"\n\
                    [[unit]]\nname = \"b\"\nbudget = \"100us\"\nafter = \"a\"\ngap = \"1ms\"\n";
        let (tasks, plan) = planned(file).expect("apart");
        let places: Vec<_> = plan.units().map(|(unit, place)| (unit, place.ready_ns)).collect();
        assert_eq!(places, [("a", 500_000), ("b", 1_600_000)]);
        assert_eq!(tasks.shortest().map(Period::as_ns), Some(2_000_000));
        assert!(!tasks.calendar.expect("one").is_scheduled());
    }

    #[test]
    fn each_wrong_key_or_value_is_said_with_its_place_and_the_way_out() {
        let head = "[calendar]\nframe = \"4ms\"\n";
        let unit = |more: &str| {
            format!("{head}[[unit]]\nname = \"a\"\nbudget = \"1ms\"\ncommand = [\"x\"]\n{more}\n")
        };
        let second = |more: &str| unit("") + &format!("[[unit]]\nname = \"b\"\n{more}\n");
        for (file, words) in [
            ("[[unit]]\nname = \"a\"".to_owned(), "line 1, column 1: a [[unit]] requires"),
            ("[calendar]".to_owned(), "line 1, column 1: [calendar] has no frame"),
            (head.to_owned(), "line 1, column 1: [calendar] has no [[unit]]"),
            (head.replace("4ms", "4"), "line 2, column 9"),
            ("[calendar]\nframe = 4".to_owned(), "frame must be a string (got an integer)"),
            ("[[calendar]]".to_owned(), "calendar must be one table, written [calendar]"),
            (format!("{head}colour = 1"), "line 3, column 1: unknown key \"colour\": the keys of"),
            (format!("{head}scheduled = \"yes\""), "scheduled must be a boolean (got a string)"),
            (format!("{head}[unit]"), "each unit must be a table, written [[unit]]"),
            (format!("{head}[[unit]]"), "line 3, column 1: the unit has no name"),
            (format!("{head}[[unit]]\nname = \"a b\""), "line 4, column 8: invalid name"),
            (format!("{head}[[unit]]\nname = \"a\""), "line 4, column 8: the unit has no budget"),
            (unit("period = \"1ms\""), "line 7, column 1: unknown key \"period\": the keys of"),
            (unit("budget = \"2ms\""), "line 7"),
            (unit("at = \"1\""), "line 7, column 6"),
            (unit("at = \"1ms\"\nafter = \"b\""), "line 7, column 6: give either at or after"),
            (unit("gap = \"1ms\""), "line 7, column 7: gap is the time since the unit"),
            (unit("every = \"0ms\""), "line 7, column 9"),
            (unit("excludes = \"b\""), "excludes must be an array of strings (got a string)"),
            (unit("overrun = \"burst 2\""), "must be skip, terminate or stop, as its place does"),
            (unit("overrun = \"delay\""), "(got \"delay\")"),
            (unit("priority = 80"), "line 7, column 12: priority must be an integer in [1, 79]"),
            (second("budget = \"1ms\"\ntask = \"c\""), "line 11, column 8: task must name a unit"),
            (
                second("budget = \"1ms\"\ntask = \"a\"\ncpu = 0\nsafe = \"00\""),
                "line 12, column 7: cpu is said of the process, which is that of unit \"a\"",
            ),
            (second("budget = \"1ms\"").replace("\"b\"", "\"a\""), "another task or unit has this"),
            (
                unit("") + "[[task]]\nname = \"a\"\nperiod = \"1ms\"",
                "another task or unit has this name",
            ),
        ] {
            let why = TaskFile::parse(file.as_bytes()).expect_err(&file).to_string();
            assert!(why.contains(words), "{words:?} in {why:?}");
            assert!(!why.contains('\n'), "{why:?}");
        }
    }

    #[test]
    fn what_no_place_meets_is_said_with_the_line_of_its_unit_and_the_way_out() {
        let head = "[calendar]\nframe = \"4ms\"\n";
        let made = "[calendar]\nframe = \"4ms\"\nscheduled = true\n";
        let unit = |name: &str, more: &str| format!("[[unit]]\nname = \"{name}\"\n{more}\n");
        let ms = |name: &str| unit(name, "budget = \"1ms\"");
        for (file, words) in [
            (
                format!("{head}{}{}", ms("a"), ms("b")),
                "line 7, column 8: unit \"a\" at 0 to 1000000 ns and unit \"b\" at 0 to 1000000 ns \
                 overlap; place one of them later",
            ),
            (
                format!("{head}{}", unit("a", "budget = \"1ms\"\nat = \"3.5ms\"")),
                "line 4, column 8: unit \"a\" at 3500000 to 4500000 ns must lie within the frame \
                 of 4000000 ns; place it earlier",
            ),
            (
                format!("{head}{}", unit("a", "budget = \"1ms\"\nevery = \"2ms\"")),
                "must be scheduled; add scheduled = true to [calendar]",
            ),
            (
                format!("{made}{}", unit("a", "budget = \"1ms\"\nevery = \"3ms\"")),
                "line 5, column 8: unit \"a\": its period must divide the frame of 4000000 ns",
            ),
            (
                format!("{made}{}", unit("a", "budget = \"1ms\"\nafter = \"b\"")),
                "unit \"a\" is after \"b\", and no unit has that name",
            ),
            (
                format!("{made}{}", unit("a", "budget = \"1ms\"\nexcludes = [\"b\"]")),
                "unit \"a\" excludes task \"b\", and no unit is of that task",
            ),
            (
                format!("{made}{}", unit("a", "budget = \"1ms\"\ndeadline = \"0.5ms\"")),
                "deadline must be from its budget of 1000000 ns to 4000000 ns",
            ),
            (
                format!(
                    "{made}{}{}",
                    unit("a", "budget = \"1ms\"\nevery = \"2ms\"\ndeadline = \"1ms\""),
                    unit("b", "budget = \"1.5ms\"")
                ),
                "by their deadlines unit",
            ),
            (
                format!(
                    "{made}{}{}",
                    unit("a", "budget = \"3ms\""),
                    unit("b", "budget = \"2ms\"\nafter = \"a\"")
                ),
                "one after the other take 5.00 ms, and have 4.00 ms; give smaller budgets",
            ),
            (
                format!("{made}{}{}", unit("a", "budget = \"3ms\""), unit("b", "budget = \"2ms\"")),
                "are ready and due from 0 ns to 4.00 ms of the frame",
            ),
        ] {
            let why = planned(&file).map(drop).expect_err(&file);
            assert!(why.contains(words), "{words:?} in {why:?}");
        }
    }
}
