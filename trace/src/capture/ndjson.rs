//! Reads NDJSON of this program: `write::ndjson` says how it looks.

use std::io::BufRead;

use serde::Deserialize;
use serde_json::Value;

use super::lines::Lines;
use super::{
    CaptureClock, CaptureError, CaptureFacts, CaptureFormat, CaptureReader, KeptThread, KeptWindow,
};
use crate::decode::RECIPES;
use crate::encode::shape_of;
use crate::event::{CodeAddress, ContextFlags, TaskName, TraceEvent, TraceKind};
use crate::symbols::Symbols;
use crate::write::ndjson::{FORM, FUNCTION_KEYS};

/// Any line.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    punctual_trace: Option<u32>,
    clock: Option<String>,
    thread: Option<TaskName>,
    /// The process of that thread.
    pid: Option<u32>,
    window: Option<KeptWindow>,
    late: Option<KeptThread>,
    ts_ns: Option<u64>,
    #[serde(default)]
    cpu: u32,
    #[serde(default)]
    tid: u32,
    #[serde(default)]
    flags: u8,
    #[serde(default)]
    preempt: u8,
    event: Option<Value>,
    #[serde(default)]
    chain: Vec<String>,
}

/// Reads NDJSON of this program.
#[derive(Debug)]
pub struct NdjsonReader<R> {
    lines: Lines<R>,
    last_ns: u64,
    facts: CaptureFacts,
}

impl<R: BufRead> NdjsonReader<R> {
    /// Reads the first line.
    ///
    /// # Errors
    /// A text that is none, or of a later form.
    pub fn open(text: R) -> Result<Self, CaptureError> {
        let mut lines = Lines::new(text);
        let _whole = lines.next()?;
        let first: Option<Line> = serde_json::from_str(&lines.line()).ok();
        let form = first.as_ref().and_then(|line| line.punctual_trace);
        let Some(form) = form else {
            let why = "no NDJSON of this program: its first line has no \"punctual_trace\"";
            return Err(CaptureError::damaged(0, why));
        };
        if form != FORM {
            return Err(CaptureError::Unsupported {
                form: format!("NDJSON of form {form}, where form {FORM} is read").into_boxed_str(),
                way_out: "read it with the version that wrote it",
            });
        }
        let mut facts = CaptureFacts::new(CaptureFormat::Ndjson);
        facts.set_clock(match first.and_then(|line| line.clock).as_deref() {
            Some("monotonic") => CaptureClock::Monotonic,
            Some("monotonic_raw") => CaptureClock::MonotonicRaw,
            Some("unknown") | None => CaptureClock::Unknown,
            Some(name) => CaptureClock::named(name),
        });
        Ok(Self { lines, last_ns: 0, facts })
    }

    /// An event, if the line is one.
    fn event(&mut self, line: &str) -> Result<Option<TraceEvent>, String> {
        let line: Line = serde_json::from_str(line).map_err(|why| why.to_string())?;
        if let Some(task) = line.thread {
            self.facts.name_thread(task);
            if let Some(pid) = line.pid {
                self.facts.see_process(task.tid, pid);
            }
            return Ok(None);
        }
        if let Some(window) = line.window {
            return self.facts.kept_mut().add_window(window).map(|()| None).map_err(str::to_owned);
        }
        if let Some(thread) = line.late {
            return self.facts.kept_mut().add_thread(thread).map(|()| None).map_err(str::to_owned);
        }
        let (Some(at_ns), Some(mut event)) = (line.ts_ns, line.event) else {
            return Err("neither a thread nor `ts_ns` with `event`".to_owned());
        };
        let fields = event.as_object_mut().and_then(|kinds| kinds.values_mut().next());
        if let Some(Value::Object(fields)) = fields {
            for key in FUNCTION_KEYS {
                if let Some(Value::String(name)) = fields.get_mut(key) {
                    *name = format!("{:#x}", address(name, self.facts.symbols_mut()));
                }
            }
        }
        let kind: TraceKind = serde_json::from_value(event).map_err(|why| why.to_string())?;
        let symbols = self.facts.symbols_mut();
        let chain: Box<[_]> = line.chain.iter().map(|name| address(name, symbols)).collect();
        if !chain.is_empty() {
            self.facts.set_has_chains();
        }
        if let Some(shape) = shape_of(&kind) {
            for (place, _) in RECIPES.iter().enumerate().filter(|(_, row)| row.shape == shape) {
                self.facts.record_place(place);
            }
        }
        let context = ContextFlags { flags: line.flags, preempt_depth: line.preempt };
        Ok(Some(TraceEvent { at_ns, cpu: line.cpu, tid: line.tid, context, kind, chain }))
    }
}

/// An address, or the number of a name.
fn address(text: &str, symbols: &mut Symbols) -> CodeAddress {
    let digits = text.strip_prefix("0x").and_then(|text| u64::from_str_radix(text, 16).ok());
    digits.unwrap_or_else(|| symbols.number(text))
}

impl<R: BufRead> CaptureReader for NdjsonReader<R> {
    fn next_event(&mut self) -> Result<Option<TraceEvent>, CaptureError> {
        while let Some(is_whole) = self.lines.next()? {
            let number = self.lines.number();
            let line = self.lines.line();
            if line.trim().is_empty() && is_whole {
                continue;
            }
            let read = if is_whole { self.event(&line) } else { Err("too long".to_owned()) };
            match read {
                Ok(Some(event)) => {
                    if event.at_ns < self.last_ns {
                        self.facts.counts_mut().out_of_order += 1;
                    }
                    self.last_ns = self.last_ns.max(event.at_ns);
                    self.facts.give(&event);
                    return Ok(Some(event));
                }
                Ok(None) => {}
                Err(why) => {
                    let why = why.replace(['\n', '\r'], " ");
                    self.facts.refuse(|| format!("line {number}: {why}"));
                }
            }
        }
        Ok(None)
    }

    fn facts(&self) -> &CaptureFacts {
        &self.facts
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::collection::vec;
    use proptest::prelude::{Strategy, any, prop_assert_eq, proptest};
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    use super::NdjsonReader;
    use crate::capture::{
        CaptureClock, CaptureFacts, CaptureReader, KeptThread, KeptWakes, KeptWindow,
    };
    use crate::encode::tests::tracepoint;
    use crate::event::{
        ContextFlags, ProcessorCounts, ShortName, TaskName, TraceEvent, TraceKind, Vector,
    };
    use crate::symbols::Symbols;
    use crate::write::ndjson::NdjsonWriter;

    fn written(events: &[TraceEvent], symbols: Symbols) -> String {
        let mut writer = NdjsonWriter::new(Vec::new(), &CaptureClock::Monotonic, symbols).unwrap();
        let name = ShortName::new(b"servo");
        let task = TaskName { tid: 7, name, kernel_priority: TaskName::UNKNOWN_PRIORITY };
        writer.name_thread(&task, Some(5)).unwrap();
        for event in events {
            writer.write(event).unwrap();
        }
        String::from_utf8(writer.finish().unwrap()).unwrap()
    }

    fn read(text: &str) -> (Vec<TraceEvent>, CaptureFacts) {
        let mut reader = NdjsonReader::open(text.as_bytes()).unwrap();
        let events = std::iter::from_fn(|| reader.next_event().unwrap()).collect();
        (events, reader.facts().clone())
    }

    #[test]
    fn looks_as_its_documentation_says() {
        let symbols = Symbols::parse(
            b"ffffffff81000000 T hrtimer_wakeup\nffffffffc0a01000 t probe\t[ahci]\n",
        );
        let event = |kind, chain: &[u64]| TraceEvent {
            at_ns: 1000,
            cpu: 1,
            tid: 7,
            context: ContextFlags { flags: 4, preempt_depth: 0 },
            kind,
            chain: Box::from(chain),
        };
        let name = ShortName::new(b"servo");
        let events = [
            event(
                TraceKind::TimerExpireEntry {
                    timer: 0xffff_8886_27c1_c6f8,
                    function: 0xffff_ffff_8100_0000,
                    now_ns: -3,
                },
                &[0xffff_ffff_c0a0_101d, 5],
            ),
            event(
                TraceKind::Waking {
                    task: TaskName { tid: 7, name, kernel_priority: 9 },
                    target_cpu: 1,
                },
                &[],
            ),
            event(TraceKind::VectorEntry(Vector::CallFunctionSingle), &[]),
            event(TraceKind::PageFaultExit, &[]),
        ];
        let text = written(&events, symbols.unwrap());
        let expected = [
            r#"{"clock":"monotonic","punctual_trace":1}"#,
            "\n",
            r#"{"pid":5,"thread":{"name":"servo","tid":7}}"#,
            "\n",
            r#"{"ts_ns":1000,"cpu":1,"tid":7,"flags":4,"event":{"timer_expire_entry":"#,
            r#"{"function":"hrtimer_wakeup","now_ns":-3,"timer":"0xffff888627c1c6f8"}},"#,
            r#""chain":["probe+0x1d [ahci]","0x5"]}"#,
            "\n",
            r#"{"ts_ns":1000,"cpu":1,"tid":7,"flags":4,"event":{"waking":{"target_cpu":1,"#,
            r#""task":{"name":"servo","prio":9,"tid":7}}}}"#,
            "\n",
            r#"{"ts_ns":1000,"cpu":1,"tid":7,"flags":4,"event":"#,
            r#"{"vector_entry":"call_function_single"}}"#,
            "\n",
            r#"{"ts_ns":1000,"cpu":1,"tid":7,"flags":4,"event":"page_fault_exit"}"#,
            "\n",
        ]
        .concat();
        assert_eq!(text, expected);
        let (seen, facts) = read(&text);
        assert_eq!(facts.first_problem(), None);
        assert_eq!(seen[1..], events[1..]);
        let chain = seen[0].chain.iter();
        let names: Vec<_> = chain.map(|&frame| facts.symbols().find(frame)).collect();
        assert_eq!(names[0].unwrap().to_string(), "probe+0x1d [ahci]");
        assert_eq!((names[1], seen[0].chain[1]), (None, 5));
        assert_eq!(facts.threads().len(), 1);
        assert_eq!(facts.threads_of(5).collect::<Vec<_>>(), [7]);
    }

    #[test]
    fn what_it_was_cut_down_to_comes_back() {
        let mut kept = KeptWakes::default();
        kept.add_window(KeptWindow { from_ns: 5, to_ns: 9 }).unwrap();
        kept.add_thread(KeptThread { tid: 7, late_over_ns: 60_000 }).unwrap();
        let clock = &CaptureClock::Monotonic;
        let mut writer = NdjsonWriter::new(Vec::new(), clock, Symbols::default()).unwrap();
        writer.write_kept(&kept).unwrap();
        let text = String::from_utf8(writer.finish().unwrap()).unwrap();
        let lines: Vec<&str> = text.lines().skip(1).collect();
        let window = r#"{"window":{"from_ns":5,"to_ns":9}}"#;
        assert_eq!(lines, [window, r#"{"late":{"late_over_ns":60000,"tid":7}}"#]);
        let (events, facts) = read(&text);
        assert_eq!((events.len(), facts.first_problem(), facts.kept()), (0, None, &kept));
        let (_, facts) = read(&format!("{text}{window}\n"));
        assert_eq!(facts.first_problem(), Some("line 4: windows are not in order and apart"));
    }

    #[test]
    fn what_is_wrong_is_said_by_line() {
        let head = "{\"punctual_trace\":1}\n";
        for (line, problem) in [
            ("{}", "line 2: neither a thread nor `ts_ns` with `event`"),
            ("[]", "line 2: invalid length 0"),
            ("{\"ts_ns\":-1}", "line 2: invalid value: integer `-1`"),
            ("{\"ts_ns\":1,\"event\":\"unknown\"}", "line 2: unknown variant `unknown`"),
            (
                "{\"ts_ns\":1,\"event\":{\"timer_cancel\":{\"timer\":\"5\"}}}",
                "line 2: an address that is no 0x and hexadecimal digits",
            ),
        ] {
            let (events, facts) = read(&format!("{head}{line}\n\n"));
            assert!(events.is_empty());
            let problem_found = facts.first_problem().unwrap();
            assert!(problem_found.starts_with(problem), "{problem_found}");
        }
        let refused = |text: &str| NdjsonReader::open(text.as_bytes()).unwrap_err().to_string();
        assert!(refused("").contains("no NDJSON of this program"));
        assert!(refused("{\"punctual_trace\":2}").contains("form 2"));
    }

    /// The rows of a table in docs/blame.md behind a line: its first code, and the others.
    fn documented(head: &str) -> BTreeMap<String, BTreeSet<String>> {
        let page = include_str!("../../../docs/blame.md");
        let lines = page.lines().skip_while(|line| *line != head).skip(2);
        let codes = |line: &str| -> Vec<String> {
            line.split('`').skip(1).step_by(2).map(str::to_owned).collect()
        };
        let rows = lines.take_while(|line| line.starts_with('|')).map(codes);
        rows.map(|row| (row[0].clone(), row[1..].iter().cloned().collect())).collect()
    }

    #[test]
    fn the_page_has_each_key_of_each_event() {
        let keys = documented("| key | |");
        let mut events = documented("| event | fields |");
        let mut seen = BTreeSet::new();
        let mut kinds: Vec<TraceKind> = {
            let mut runner = TestRunner::deterministic();
            let draw = |_| tracepoint().new_tree(&mut runner).unwrap().current().kind;
            (0..3_000).map(draw).collect()
        };
        let counts = ProcessorCounts {
            cycles: Some(6),
            instructions: Some(5),
            cache_misses: Some(4),
            stalled_cycles: Some(3),
            enabled_ns: Some(2),
            running_ns: Some(1),
        };
        let others =
            [TraceKind::PageFaultExit, TraceKind::Counters(counts), TraceKind::Lost { count: 1 }];
        kinds.extend(others);
        let context = ContextFlags { flags: 4, preempt_depth: 1 };
        let whole = kinds.into_iter().map(|kind| TraceEvent {
            at_ns: 1,
            cpu: 2,
            tid: 3,
            context,
            kind,
            chain: Box::from([1]),
        });
        let whole: Vec<TraceEvent> = whole.collect();
        for line in written(&whole, Symbols::default()).lines().skip(2) {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let line = line.as_object().unwrap();
            assert_eq!(line.keys().collect::<BTreeSet<_>>(), keys.keys().collect(), "all are set");
            let (event, fields) = match &line["event"] {
                serde_json::Value::String(event) => (event, None),
                event => {
                    let mut kinds = event.as_object().unwrap().iter();
                    kinds.next().map(|(event, fields)| (event, Some(fields))).unwrap()
                }
            };
            let named = events.get_mut(event).unwrap_or_else(|| panic!("{event} is not there"));
            match fields {
                Some(serde_json::Value::Object(fields)) => {
                    assert_eq!(fields.keys().cloned().collect::<BTreeSet<_>>(), *named, "{event}");
                }
                Some(serde_json::Value::String(value)) if event == "vector_entry" => {
                    assert!(named.contains(value), "{value}");
                }
                _ => assert!(named.is_empty(), "{event} has no fields"),
            }
            seen.insert(event.clone());
        }
        assert_eq!(seen, events.into_keys().collect(), "the page has events that are none");
    }

    proptest! {
        #[test]
        fn any_events_come_back(events in vec(tracepoint(), 0..20)) {
            let (seen, facts) = read(&written(&events, Symbols::default()));
            prop_assert_eq!(facts.first_problem(), None);
            prop_assert_eq!(seen, events);
        }

        #[test]
        fn any_text_ends(text in any::<String>()) {
            read(&format!("{{\"punctual_trace\":1}}\n{text}"));
        }
    }
}
