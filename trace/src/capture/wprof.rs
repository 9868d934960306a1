//! Reads the NDJSON of wprof (`wprof -J`), as its JSON_SCHEMA.md says, version 3.
//!
//! It has no timers, so no lateness from the expiry on; but who ran, who woke whom, and interrupts.
//! An interrupt is one line with its begin and its end, and becomes two events. Call stacks are
//! passed over. Times are seconds since its session began.

use std::io::BufRead;

use serde::Deserialize;

use super::lines::Lines;
use super::{CaptureClock, CaptureError, CaptureFacts, CaptureFormat, CaptureReader, EVENTS_HELD};
use crate::decode::one_cpu;
use crate::event::{ContextFlags, ShortName, TaskName, Tid, TraceEvent, TraceKind, Vector};
use crate::merge::Merge;

/// The first number of its version that is read.
const MAJOR: &str = "3";

/// A thread; `tid` is missing of an idle one.
#[derive(Deserialize, Default)]
struct Task {
    #[serde(default)]
    tid: Tid,
    #[serde(default)]
    pid: Tid,
    #[serde(default)]
    comm: String,
}

impl Task {
    fn named(&self, kernel_priority: Option<i32>) -> TaskName {
        TaskName {
            tid: self.tid,
            name: ShortName::new(self.comm.as_bytes()),
            kernel_priority: kernel_priority.unwrap_or(TaskName::UNKNOWN_PRIORITY),
        }
    }
}

/// The first line.
#[derive(Deserialize)]
struct Head {
    version: String,
    stack_cnt: u64,
}

/// A line of an event; keys of no interest are passed over.
#[derive(Deserialize)]
struct Line {
    ts: f64,
    t: String,
    #[serde(default)]
    cpu: u32,
    start_ts: Option<f64>,
    task: Option<Task>,
    prev: Option<Task>,
    next: Option<Task>,
    prev_state: Option<String>,
    prev_prio: Option<i32>,
    next_prio: Option<i32>,
    waker: Option<Task>,
    wakee: Option<Task>,
    irq: Option<u32>,
    action: Option<String>,
    kind: Option<String>,
    target_cpu: Option<u32>,
    desc: Option<String>,
}

/// Reads the NDJSON of wprof.
#[derive(Debug)]
pub struct WprofReader<R> {
    lines: Lines<R>,
    /// Lines of call stacks that are still to come.
    stacks: u64,
    merge: Merge,
    is_done: bool,
    facts: CaptureFacts,
}

impl<R: BufRead> WprofReader<R> {
    /// Reads the first line.
    ///
    /// # Errors
    /// A text that is none, or of another version.
    pub fn open(text: R) -> Result<Self, CaptureError> {
        let mut lines = Lines::new(text);
        let _whole = lines.next()?;
        let head: Head = serde_json::from_str(&lines.line())
            .map_err(|why| CaptureError::damaged(0, format!("no first line of wprof: {why}")))?;
        if head.version.split('.').next() != Some(MAJOR) {
            return Err(CaptureError::Unsupported {
                form: format!("wprof's version {:?}, where 3 is read", head.version)
                    .replace(['\n', '\r'], " ")
                    .into_boxed_str(),
                way_out: "replay it with a wprof that writes 3.1",
            });
        }
        let mut facts = CaptureFacts::new(CaptureFormat::Wprof);
        facts.set_clock(CaptureClock::Named(Box::from("time since wprof began")));
        facts.set_has_no_context();
        let merge = Merge::new(EVENTS_HELD);
        Ok(Self { lines, stacks: head.stack_cnt, merge, is_done: false, facts })
    }

    /// Takes a line in; returns false where it is of no interest.
    fn take(&mut self, text: &str) -> Result<bool, String> {
        let line: Line = serde_json::from_str(text).map_err(|why| why.to_string())?;
        let end_ns = nanoseconds(line.ts).ok_or("an impossible time")?;
        let start_ns = line.start_ts.and_then(nanoseconds).filter(|&start_ns| start_ns <= end_ns);
        let missing = |key: &str| format!("{} without {key}", line.t);
        let tasks = [&line.task, &line.prev, &line.next, &line.waker, &line.wakee];
        for task in tasks.into_iter().flatten() {
            self.facts.see_process(task.tid, task.pid);
        }
        let task = line.task.as_ref();
        let tid = task.map_or(0, |task| task.tid);
        match line.t.as_str() {
            "switch" => {
                let previous = line.prev.as_ref().ok_or_else(|| missing("prev"))?;
                let next = line.next.as_ref().ok_or_else(|| missing("next"))?;
                let kind = TraceKind::Switch {
                    previous: previous.named(line.prev_prio),
                    previous_state: state(line.prev_state.as_deref().unwrap_or_default()),
                    next: next.named(line.next_prio),
                };
                self.facts.record("sched", "sched_switch");
                self.put(end_ns, line.cpu, previous.tid, kind);
            }
            "waking" | "wakeup_new" => {
                let waker = line.waker.as_ref().ok_or_else(|| missing("waker"))?;
                let wakee = line.wakee.as_ref().ok_or_else(|| missing("wakee"))?;
                let kind = TraceKind::Waking {
                    task: wakee.named(None),
                    target_cpu: TraceKind::UNKNOWN_CPU,
                };
                self.facts.record("sched", "sched_waking");
                self.put(end_ns, line.cpu, waker.tid, kind);
            }
            "hardirq" => {
                let irq = line.irq.ok_or_else(|| missing("irq"))?;
                let name = ShortName::new(line.action.unwrap_or_default().as_bytes());
                self.facts.record("irq", "irq_handler_entry");
                self.facts.record("irq", "irq_handler_exit");
                if let Some(start_ns) = start_ns {
                    self.put(start_ns, line.cpu, tid, TraceKind::IrqEntry { irq, name });
                }
                self.put(end_ns, line.cpu, tid, TraceKind::IrqExit { irq, is_handled: None });
            }
            "softirq" => {
                let action = line.action.as_deref().unwrap_or_default();
                let vector = softirq(action).ok_or_else(|| missing("a known action"))?;
                self.facts.record("irq", "softirq_entry");
                self.facts.record("irq", "softirq_exit");
                if let Some(start_ns) = start_ns {
                    self.put(start_ns, line.cpu, tid, TraceKind::SoftirqEntry(vector));
                }
                self.put(end_ns, line.cpu, tid, TraceKind::SoftirqExit(vector));
            }
            "ipi" => {
                let kind = line.kind.as_deref().unwrap_or_default();
                let (vector, name) = ipi(kind).ok_or_else(|| missing("a known kind"))?;
                self.facts.record("irq_vectors", &format!("{name}_entry"));
                self.facts.record("irq_vectors", &format!("{name}_exit"));
                if let Some(start_ns) = start_ns {
                    self.put(start_ns, line.cpu, tid, TraceKind::VectorEntry(vector));
                }
                self.put(end_ns, line.cpu, tid, TraceKind::VectorExit(vector));
            }
            "ipi_send" => {
                let targets = line.target_cpu.and_then(one_cpu).unwrap_or_default();
                self.facts.record("ipi", "ipi_send_cpu");
                let kind = TraceKind::IpiSend { targets, callback: 0 };
                self.put(end_ns, line.cpu, tid, kind);
            }
            "wq" => {
                let name = line.desc.as_deref().unwrap_or_default();
                let function = self.facts.symbols_mut().number(name);
                self.facts.record("workqueue", "workqueue_execute_start");
                if let Some(start_ns) = start_ns {
                    self.put(start_ns, line.cpu, tid, TraceKind::WorkStart { function });
                }
            }
            "task_rename" => {
                let task = task.ok_or_else(|| missing("task"))?.named(None);
                self.facts.record("task", "task_rename");
                self.put(end_ns, line.cpu, tid, TraceKind::Renamed { task });
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn put(&mut self, at_ns: u64, cpu: u32, tid: Tid, kind: TraceKind) {
        let context = ContextFlags::default();
        self.merge.push(TraceEvent { at_ns, cpu, tid, context, kind, chain: Box::default() });
    }
}

impl<R: BufRead> CaptureReader for WprofReader<R> {
    fn next_event(&mut self) -> Result<Option<TraceEvent>, CaptureError> {
        loop {
            if let Some(event) = self.merge.pop() {
                self.facts.give(&event);
                self.facts.counts_mut().out_of_order = self.merge.out_of_order();
                return Ok(Some(event));
            }
            if self.is_done {
                return Ok(None);
            }
            let Some(is_whole) = self.lines.next()? else {
                self.is_done = true;
                self.merge.finish();
                continue;
            };
            if self.stacks > 0 {
                self.stacks -= 1;
                self.facts.counts_mut().skipped += 1;
                continue;
            }
            let number = self.lines.number();
            let text = self.lines.line();
            let taken = if is_whole { self.take(&text) } else { Err("too long".to_owned()) };
            match taken {
                Ok(true) => {}
                Ok(false) => self.facts.counts_mut().skipped += 1,
                Err(why) => {
                    let why = why.replace(['\n', '\r'], " ");
                    self.facts.refuse(|| format!("line {number}: {why}"));
                }
            }
        }
    }

    fn facts(&self) -> &CaptureFacts {
        &self.facts
    }
}

/// Seconds, up to 30 years, in ns.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked before")]
fn nanoseconds(seconds: f64) -> Option<u64> {
    (0.0..=1e9).contains(&seconds).then(|| (seconds * 1e9).round() as u64)
}

/// The kernel's bits for the names that wprof has for them.
fn state(name: &str) -> u64 {
    match name {
        "runnable" => 0,
        "preempted" => TraceKind::PREEMPTED,
        "interruptible_sleep" | "freezable" => 0x01,
        "stopped" => 0x04,
        "traced" => 0x08,
        "exit_dead" => 0x10,
        "exit_zombie" | "exit_trace" => 0x20,
        "parked" => 0x40,
        "idle" => 0x80,
        // Asleep, in one way or another.
        _ => 0x02,
    }
}

fn softirq(action: &str) -> Option<u8> {
    const NAMES: [&str; 10] = [
        "hi", "timer", "net-tx", "net-rx", "block", "irq-poll", "tasklet", "sched", "hrtimer",
        "rcu",
    ];
    let action = action.replace('_', "-");
    let place = NAMES.iter().position(|name| *name == action)?;
    u8::try_from(place).ok()
}

/// The vector, and the name of its events; its documentation and its source name them differently.
fn ipi(kind: &str) -> Option<(Vector, &'static str)> {
    match kind {
        "resched" | "reschedule" => Some((Vector::Reschedule, "reschedule")),
        "single" => Some((Vector::CallFunctionSingle, "call_function_single")),
        "multi" => Some((Vector::CallFunction, "call_function")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, proptest};

    use super::{WprofReader, state};
    use crate::capture::{CaptureFacts, CaptureReader, Untold};
    use crate::event::{TraceEvent, TraceKind, Vector};

    const HEAD: &str = r#"{"version":"3.1","dur":1.0,"timer_freq_hz":0,"stack_cnt":1}"#;

    fn read(lines: &str) -> (Vec<TraceEvent>, CaptureFacts) {
        let text = format!("{HEAD}\n{{\"id\":1,\"frames\":[]}}\n{lines}");
        let mut reader = WprofReader::open(text.as_bytes()).unwrap();
        let events = std::iter::from_fn(|| reader.next_event().unwrap()).collect();
        (events, reader.facts().clone())
    }

    /// The examples of its documentation.
    #[test]
    fn its_examples_become_events() {
        let (events, facts) = read(concat!(
            r#"{"ts":0.000234175,"t":"hardirq","task":{"pid":0,"comm":"swapper/187"},"#,
            r#""dur":0.000011568,"start_ts":0.000222607,"cpu":187,"irq":193,"action":"nvme1q30"}"#,
            "\n",
            r#"{"ts":0.000202497,"t":"wq","task":{"tid":2525993,"pid":2525993,"comm":"kworker"},"#,
            r#""dur":0.000084638,"start_ts":0.000117859,"cpu":187,"desc":"btrfs-delalloc"}"#,
            "\n",
            r#"{"ts":0.000297060,"t":"softirq","task":{"pid":0,"comm":"swapper/253"},"#,
            r#""dur":0.000000411,"start_ts":0.000296649,"cpu":253,"action":"rcu"}"#,
            "\n",
            r#"{"ts":0.500100000,"t":"waking","waker":{"tid":9999,"pid":5000,"comm":"scheduler"},"#,
            r#""wakee":{"tid":5678,"pid":5000,"comm":"myapp"},"cpu":7,"waker_stack_id":99}"#,
            "\n",
            r#"{"ts":0.500123456,"t":"switch","prev":{"tid":1234,"pid":1000,"comm":"worker"},"#,
            r#""next":{"tid":5678,"pid":5000,"comm":"myapp"},"cpu":3,"#,
            r#""prev_state":"interruptible_sleep","prev_prio":120,"next_prio":119}"#,
            "\n",
            r#"{"ts":0.6,"t":"ipi","task":{"pid":0,"comm":"swapper/1"},"cpu":1,"kind":"resched"}"#,
            "\n",
            r#"{"ts":0.7,"t":"cuda_sync","task":{"tid":1},"kind":"stream"}"#,
            "\n",
        ));
        assert_eq!(facts.first_problem(), None);
        let seen: Vec<_> = events.iter().map(|event| (event.at_ns, event.cpu, event.tid)).collect();
        assert_eq!(
            seen,
            [
                (117_859, 187, 2_525_993),
                (222_607, 187, 0),
                (234_175, 187, 0),
                (296_649, 253, 0),
                (297_060, 253, 0),
                (500_100_000, 7, 9999),
                (500_123_456, 3, 1234),
                (600_000_000, 1, 0),
            ]
        );
        let TraceKind::WorkStart { function } = events[0].kind else { panic!() };
        assert_eq!(facts.symbols().find(function).unwrap().name, "btrfs-delalloc");
        assert_eq!(events[4].kind, TraceKind::SoftirqExit(9));
        let TraceKind::Waking { task, target_cpu } = events[5].kind else { panic!() };
        assert_eq!((task.tid, target_cpu), (5678, TraceKind::UNKNOWN_CPU));
        let TraceKind::Switch { previous_state, next, .. } = events[6].kind else { panic!() };
        assert_eq!((previous_state, next.tid, next.kernel_priority), (1, 5678, 119));
        assert_eq!(events[7].kind, TraceKind::VectorExit(Vector::Reschedule));
        assert_eq!(facts.counts().skipped, 2);
        assert_eq!(facts.threads_of(5000).collect::<Vec<_>>(), [5678, 9999]);
        let untold: Vec<_> = facts.untold().iter().map(Untold::to_string).collect();
        assert!(untold.iter().any(|untold| untold.contains("no timer:hrtimer_start")));
        assert!(!untold.iter().any(|untold| untold.contains("sched_switch")));
    }

    #[test]
    fn what_is_wrong_is_said_by_line() {
        for (line, problem) in [
            ("x", "line 3: expected value"),
            (r#"{"ts":1}"#, "line 3: missing field `t`"),
            (r#"{"ts":-1,"t":"switch"}"#, "line 3: an impossible time"),
            (r#"{"ts":1,"t":"switch"}"#, "line 3: switch without prev"),
            (r#"{"ts":1,"t":"softirq","action":"x"}"#, "line 3: softirq without a known action"),
        ] {
            let (events, facts) = read(line);
            assert!(events.is_empty());
            assert!(facts.first_problem().unwrap().starts_with(problem), "{facts:?}");
        }
        let refused = |text: &str| WprofReader::open(text.as_bytes()).unwrap_err().to_string();
        assert!(refused("").contains("no first line of wprof"));
        assert!(refused(r#"{"version":"4.0","stack_cnt":0}"#).contains("where 3 is read"));
        assert_eq!((state("rtlock_wait"), state("preempted")), (2, 0x100));
    }

    proptest! {
        #[test]
        fn any_text_ends(text in any::<String>()) {
            read(&text);
        }
    }
}
