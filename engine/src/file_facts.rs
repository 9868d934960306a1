//! The head of a sample file: the facts of the program that writes it and of its runs.
//!
//! For the library's recordings and for the command's. The one writer of that JSON text, by hand,
//! so that the library needs no serializer; `punctual-import` reads it. Opens no file.

use std::fmt::Display;

use punctual_core::time::Period;
use punctual_os::scheduler::SchedPolicy;

/// The facts in the head of a sample file.
#[derive(Clone, Debug)]
pub struct FileFacts {
    /// The program that writes it.
    pub tool: &'static str,
    /// The version of that program.
    pub version: &'static str,
    /// The instant at which the recording began, RFC 3339 in UTC; `None` leaves it out.
    pub started_at: Option<String>,
    /// Facts of the machine, one JSON value; `None` leaves them out.
    pub machine_json: Option<String>,
    /// The question that it is recorded for, one JSON value; `None` leaves it out.
    pub question_json: Option<String>,
    /// The runs, in the order in which blocks of samples name them.
    pub runs: Vec<RunFacts>,
}

/// The facts of one run in the head of a file: a loop, or a task of an executive.
#[derive(Clone, Debug)]
pub struct RunFacts {
    /// Its name.
    pub name: String,
    /// The CPU that it is pinned to; `None` is written as 0.
    pub cpu: Option<u32>,
    /// Its period.
    pub period: Period,
    /// The instant of its release 0, ns; in a [recording](crate::recording::LoopRecording) counted
    /// from the instant that the recording begins with.
    pub epoch_ns: u64,
    /// The offset of its releases from multiples of the period, ns, below the period.
    pub phase_ns: u64,
    /// The policy of its thread.
    pub policy: SchedPolicy,
    /// The name of its wait, as in results.
    pub wait: &'static str,
    /// The facts that only an experiment knows; `None` for a recording of the library.
    pub experiment: Option<ExperimentFacts>,
}

/// The facts of a run that an experiment measured, in the head of a file.
#[derive(Clone, Debug)]
pub struct ExperimentFacts {
    /// The condition under which it ran: "idle", "under disk".
    pub condition: String,
    /// The run in whose figures it counts, with others; `None` where it stands alone.
    pub part_of: Option<String>,
    /// The clock that its releases follow; `None` for CLOCK_MONOTONIC.
    pub follows: Option<String>,
    /// The loads that run at the same time.
    pub load: Vec<String>,
    /// The time that it is to run, ns.
    pub duration_ns: u64,
    /// The cost of a stamp, ns.
    pub floor_ns: f64,
    /// The name of the clock that stamps.
    pub clock: &'static str,
}

impl FileFacts {
    /// The JSON text.
    ///
    /// # Real-time: setup only
    pub fn json(&self) -> String {
        let mut file = Object::new();
        file.text("tool", self.tool);
        file.text("version", self.version);
        file.text_if("started_at", self.started_at.as_deref());
        if let Some(machine) = &self.machine_json {
            file.raw("machine", machine);
        }
        if let Some(question) = &self.question_json {
            file.raw("question", question);
        }
        file.raw("runs", list(self.runs.iter().map(RunFacts::json)));
        file.end()
    }
}

impl RunFacts {
    fn json(&self) -> String {
        let (policy, priority) = (self.policy.name(), self.policy.priority());
        let experiment = self.experiment.as_ref();
        let mut run = Object::new();
        run.text("name", &self.name);
        run.text_if("condition", experiment.map(|facts| facts.condition.as_str()));
        run.text_if("part_of", experiment.and_then(|facts| facts.part_of.as_deref()));
        run.raw("cpu", self.cpu.unwrap_or(0));
        run.raw("period_ns", self.period.as_ns());
        run.raw("epoch_ns", self.epoch_ns);
        run.raw("phase_ns", self.phase_ns);
        run.text_if("follows", experiment.and_then(|facts| facts.follows.as_deref()));
        run.text("policy", policy);
        match priority {
            Some(priority) => run.raw("priority", priority),
            None => run.raw("priority", "null"),
        }
        run.text("wait", self.wait);
        if let Some(facts) = experiment {
            run.raw("load", list(facts.load.iter().map(|load| quoted(load))));
            run.raw("duration_ns", facts.duration_ns);
            match facts.floor_ns.is_finite() {
                true => run.raw("floor_ns", format_args!("{:?}", facts.floor_ns)),
                false => run.raw("floor_ns", "null"),
            }
            run.text("clock", facts.clock);
        }
        run.end()
    }
}

/// A JSON object that is being written.
struct Object(String);

impl Object {
    fn new() -> Self {
        Self(String::new())
    }

    /// One more key, with a value that is JSON already.
    fn raw(&mut self, key: &str, value: impl Display) {
        let before = if self.0.is_empty() { '{' } else { ',' };
        self.0.push_str(&format!("{before}\"{key}\":{value}"));
    }

    fn text(&mut self, key: &str, text: &str) {
        self.raw(key, quoted(text));
    }

    fn text_if(&mut self, key: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(key, text);
        }
    }

    fn end(self) -> String {
        self.0 + "}"
    }
}

/// A JSON array of values that are JSON already.
fn list(values: impl Iterator<Item = String>) -> String {
    format!("[{}]", values.collect::<Vec<_>>().join(","))
}

/// A text as JSON has it.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_any_characters_is_one_text() {
        assert_eq!(quoted("servo"), "\"servo\"");
        assert_eq!(quoted("a\"b\\c\nd"), "\"a\\\"b\\\\c\\u000ad\"");
    }

    #[test]
    fn a_file_says_what_is_known_and_leaves_out_what_is_not() {
        let run = RunFacts {
            name: "loop".to_owned(),
            cpu: None,
            period: Period::hz(1_000).expect("in range"),
            epoch_ns: 7,
            phase_ns: 3,
            policy: SchedPolicy::Fifo(90),
            wait: "sleep",
            experiment: None,
        };
        let facts = ExperimentFacts {
            condition: "idle".to_owned(),
            part_of: None,
            follows: Some("/dev/ptp0".to_owned()),
            load: vec!["cpu".to_owned(), "disk=2".to_owned()],
            duration_ns: 5,
            floor_ns: 12.0,
            clock: "tsc",
        };
        let measured =
            RunFacts { policy: SchedPolicy::Other, experiment: Some(facts), ..run.clone() };
        let file = FileFacts {
            tool: "t",
            version: "1",
            started_at: None,
            machine_json: Some("{\"a\":1}".to_owned()),
            question_json: Some("{\"miss\":0.1}".to_owned()),
            runs: vec![run, measured],
        };
        let measured_common = "\"name\":\"loop\",\"condition\":\"idle\",\"cpu\":0,\
                               \"period_ns\":1000000,\"epoch_ns\":7,\"phase_ns\":3";
        let common =
            "\"name\":\"loop\",\"cpu\":0,\"period_ns\":1000000,\"epoch_ns\":7,\"phase_ns\":3";
        assert_eq!(
            file.json(),
            format!(
                "{{\"tool\":\"t\",\"version\":\"1\",\"machine\":{{\"a\":1}},\
                 \"question\":{{\"miss\":0.1}},\"runs\":[\
                 {{{common},\"policy\":\"SCHED_FIFO\",\"priority\":90,\"wait\":\"sleep\"}},\
                 {{{measured_common},\"follows\":\"/dev/ptp0\",\"policy\":\"SCHED_OTHER\",\
                 \"priority\":null,\"wait\":\"sleep\",\"load\":[\"cpu\",\"disk=2\"],\
                 \"duration_ns\":5,\"floor_ns\":12.0,\"clock\":\"tsc\"}}]}}"
            )
        );
    }
}
