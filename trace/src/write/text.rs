//! Writes events as ftrace prints them (`trace` of tracefs), times to the nanosecond.
//!
//! For eyes, `grep` and programs that read ftrace's text; `capture::text` reads it again. Each
//! event has its fields as `name=value`, functions by name. The second line has the clock, as
//! `trace_clock` of tracefs names it. An event that ftrace does not have is counted and left out:
//! the end of a page fault. A thread is named where that was seen, else `<...>`. Of a capture that
//! was cut down to late wakes, comments `# window: FROM TO` have the times of which it has every
//! event, ns, and comments `# late: TID over NS` the threads of these wakes.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::capture::{CaptureClock, KeptThread, KeptWakes, KeptWindow, THREAD_NAMES_MAX};
use crate::decode::RECIPES;
use crate::encode::{NamedValue, is_function, named_values};
use crate::event::{CodeAddress, ContextFlags, ShortName, TaskName, Tid, TraceEvent, TraceKind};
use crate::symbols::{CodeSymbol, Symbols};

/// The begin of the line that has the clock.
pub(crate) const CLOCK: &str = "# clock: ";
/// The begin of a line that has a window, `FROM TO`, ns.
pub(crate) const WINDOW: &str = "# window: ";
/// The begin of a line that has a thread of late wakes, `TID over NS`.
pub(crate) const LATE: &str = "# late: ";

/// Writes ftrace's text.
#[derive(Debug)]
pub struct TextWriter<W> {
    out: W,
    symbols: Symbols,
    names: BTreeMap<Tid, ShortName>,
    unwritten: u64,
}

impl<W: Write> TextWriter<W> {
    /// Begins, with the names of functions.
    ///
    /// # Errors
    /// An error of the system while writing.
    pub fn new(mut out: W, clock: &CaptureClock, symbols: Symbols) -> io::Result<Self> {
        let clock = match clock {
            CaptureClock::Monotonic => "mono",
            CaptureClock::MonotonicRaw => "mono_raw",
            CaptureClock::Named(name) => name,
            CaptureClock::Unknown => "unknown",
        };
        let clock = clock.replace(char::is_control, "?");
        writeln!(out, "# tracer: nop\n{CLOCK}{clock}\n#")?;
        writeln!(out, "#           TASK-PID     CPU#  FLAGS TIMESTAMP          EVENT")?;
        Ok(Self { out, symbols, names: BTreeMap::new(), unwritten: 0 })
    }

    /// Takes in the name of a thread.
    pub fn name_thread(&mut self, task: &TaskName) {
        // A name that looks like something else would take the line apart.
        let is_plain = |byte: &u8| byte.is_ascii_graphic() && !b"[](<>)".contains(byte);
        let name = task.name.as_bytes();
        if name.is_empty() || !name.iter().all(is_plain) || name.contains(&b'.') {
            self.names.remove(&task.tid);
        } else if self.names.len() < THREAD_NAMES_MAX || self.names.contains_key(&task.tid) {
            self.names.insert(task.tid, task.name);
        }
    }

    /// Writes the late wakes that the capture was cut down to, before its events.
    ///
    /// # Errors
    /// An error of the system while writing.
    pub fn write_kept(&mut self, kept: &KeptWakes) -> io::Result<()> {
        for KeptWindow { from_ns, to_ns } in kept.windows() {
            writeln!(self.out, "{WINDOW}{from_ns} {to_ns}")?;
        }
        for KeptThread { tid, late_over_ns } in kept.threads() {
            writeln!(self.out, "{LATE}{tid} over {late_over_ns}")?;
        }
        Ok(())
    }

    /// Writes an event.
    ///
    /// # Errors
    /// An error of the system while writing.
    pub fn write(&mut self, event: &TraceEvent) -> io::Result<()> {
        match &event.kind {
            TraceKind::Lost { count } => {
                return writeln!(self.out, "CPU:{} [LOST {count} EVENTS]", event.cpu);
            }
            TraceKind::Switch { previous, next, .. } => {
                self.name_thread(previous);
                self.name_thread(next);
            }
            TraceKind::Waking { task, .. } | TraceKind::Renamed { task } => self.name_thread(task),
            _ => {}
        }
        let Some((place, values)) = named_values(event) else {
            self.unwritten += 1;
            return Ok(());
        };
        let head = self.head(event);
        write!(self.out, "{head} {}:", RECIPES[place].name)?;
        for (key, value) in values {
            match value {
                NamedValue::Text(text) => {
                    write!(self.out, " {key}={}", text.replace(char::is_control, "?"))?;
                }
                NamedValue::Number(number) => match key {
                    "hrtimer" | "csd" => write!(self.out, " {key}={number:#x}")?,
                    _ if is_function(key) => {
                        write!(self.out, " {key}={}", self.function(number))?;
                    }
                    "ret" => {
                        let handled = if number == 0 { "unhandled" } else { "handled" };
                        write!(self.out, " {key}={handled}")?;
                    }
                    // A set of bits.
                    "prev_state" => write!(self.out, " {key}={number}")?,
                    _ => write!(self.out, " {key}={}", number.cast_signed())?,
                },
            }
        }
        self.out.write_all(b"\n")?;
        if !event.chain.is_empty() {
            writeln!(self.out, "{head} kernel_stack: <stack trace >")?;
            for &frame in &event.chain {
                writeln!(self.out, " => {}", self.function(frame))?;
            }
        }
        Ok(())
    }

    /// Events that ftrace has no form for.
    #[must_use]
    pub const fn unwritten(&self) -> u64 {
        self.unwritten
    }

    fn head(&self, event: &TraceEvent) -> String {
        let (seconds, rest_ns) = (event.at_ns / 1_000_000_000, event.at_ns % 1_000_000_000);
        let name = match self.names.get(&event.tid) {
            _ if event.tid == 0 => "<idle>".to_owned(),
            Some(name) => name.to_string(),
            None => "<...>".to_owned(),
        };
        let flags = letters(event.context);
        format!("{name:>16}-{:<7} [{:03}] {flags}. {seconds}.{rest_ns:09}:", event.tid, event.cpu)
    }

    fn function(&self, address: CodeAddress) -> String {
        match self.symbols.find(address) {
            None => format!("{address:#x}"),
            Some(symbol) => CodeSymbol { module: None, ..symbol }.to_string(),
        }
    }

    /// Ends, and gives back what was written to.
    ///
    /// # Errors
    /// An error of the system while writing.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

/// The letters of a context, `kernel/trace/trace_output.c`, `trace_print_lat_fmt`.
fn letters(context: ContextFlags) -> String {
    let flags = context.flags;
    let interrupts = match flags & 0x81 {
        0x81 => 'D',
        0x01 => 'd',
        0x80 => 'b',
        _ => '.',
    };
    let resched = match flags & 0x26 {
        0x26 => 'B',
        0x24 => 'N',
        0x22 => 'L',
        0x06 => 'b',
        0x04 => 'n',
        0x02 => 'l',
        0x20 => 'p',
        _ => '.',
    };
    let interrupt = match flags & 0x58 {
        bits if bits & 0x48 == 0x48 => 'Z',
        bits if bits & 0x40 != 0 => 'z',
        0x18 => 'H',
        0x08 => 'h',
        0x10 => 's',
        _ => '.',
    };
    let depth = match context.preempt_depth {
        0 => '.',
        depth => char::from_digit(u32::from(depth.min(15)), 16).unwrap_or('f'),
    };
    [interrupts, resched, interrupt, depth].into_iter().collect()
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::TextWriter;
    use crate::capture::text::TextReader;
    use crate::capture::{
        CaptureClock, CaptureFacts, CaptureFormat, CaptureReader, KeptThread, KeptWakes,
        KeptWindow, detect,
    };
    use crate::encode::tests::tracepoint;
    use crate::event::{ContextFlags, ShortName, TaskName, TraceEvent, TraceKind};
    use crate::symbols::Symbols;

    const KALLSYMS: &[u8] = b"ffffffff81000000 T hrtimer_wakeup\nffffffff81000100 t do_idle\n";

    fn written(events: &[TraceEvent]) -> String {
        let symbols = Symbols::parse(KALLSYMS).unwrap();
        let mut writer = TextWriter::new(Vec::new(), &CaptureClock::Monotonic, symbols).unwrap();
        events.iter().for_each(|event| writer.write(event).unwrap());
        String::from_utf8(writer.finish().unwrap()).unwrap()
    }

    fn read(text: &str) -> (Vec<TraceEvent>, CaptureFacts) {
        let mut reader = TextReader::new(text.as_bytes());
        let events = std::iter::from_fn(|| reader.next_event().unwrap()).collect();
        (events, reader.facts().clone())
    }

    fn event(at_ns: u64, kind: TraceKind, chain: &[u64]) -> TraceEvent {
        let context = ContextFlags { flags: 0x0d, preempt_depth: 2 };
        TraceEvent { at_ns, cpu: 1, tid: 7, context, kind, chain: Box::from(chain) }
    }

    fn task(tid: u32, name: &str) -> TaskName {
        TaskName { tid, name: ShortName::new(name.as_bytes()), kernel_priority: 9 }
    }

    #[test]
    fn what_it_was_cut_down_to_comes_back_or_is_refused() {
        let mut kept = KeptWakes::default();
        for from_ns in [5, 700] {
            kept.add_window(KeptWindow { from_ns, to_ns: from_ns + 9 }).unwrap();
        }
        kept.add_thread(KeptThread { tid: 7, late_over_ns: 60_000 }).unwrap();
        let mut writer =
            TextWriter::new(Vec::new(), &CaptureClock::Monotonic, Symbols::default()).unwrap();
        writer.write_kept(&kept).unwrap();
        let text = String::from_utf8(writer.finish().unwrap()).unwrap();
        assert!(text.ends_with("# window: 5 14\n# window: 700 709\n# late: 7 over 60000\n"));
        assert_eq!(detect(text.as_bytes()), Some(CaptureFormat::FtraceText), "without an event");
        let (events, facts) = read(&text);
        assert_eq!((events.len(), facts.first_problem(), facts.kept()), (0, None, &kept));
        for wrong in ["# window: 5", "# window: 9 5", "# window: 700 800", "# late: 7", "# late: x"]
        {
            let (_, facts) = read(&format!("{text}{wrong}\n"));
            assert_eq!(facts.kept(), &kept, "{wrong}");
            assert!(facts.first_problem().unwrap().starts_with("line 8: "), "{wrong}");
        }
    }

    #[test]
    fn it_looks_as_that_of_the_kernel_and_comes_back() {
        let switch = TraceKind::Switch {
            previous: task(7, "servo"),
            previous_state: 1,
            next: task(9, "a b [1]"),
        };
        let timer = TraceKind::TimerStart {
            timer: 0xffff_8880_0000_1000,
            function: 0xffff_ffff_8100_0000,
            expires_ns: 5,
            soft_expires_ns: -5,
        };
        let events = [
            event(1_000_000_001, switch, &[]),
            event(1_000_000_002, timer, &[0xffff_ffff_8100_0110]),
        ];
        let text = written(&events);
        let lines: Vec<&str> = text.lines().skip(4).collect();
        assert_eq!(
            lines,
            [
                "           servo-7       [001] dnh2. 1.000000001: sched_switch: \
                 prev_comm=servo prev_pid=7 prev_prio=9 prev_state=1 next_comm=a b [1] next_pid=9 \
                 next_prio=9",
                "           servo-7       [001] dnh2. 1.000000002: hrtimer_start: \
                 hrtimer=0xffff888000001000 function=hrtimer_wakeup expires=5 softexpires=-5",
                "           servo-7       [001] dnh2. 1.000000002: kernel_stack: <stack trace >",
                " => do_idle+0x10",
            ]
        );
        let head = detect(text.as_bytes());
        assert_eq!(head, Some(CaptureFormat::FtraceText));
        let (seen, facts) = read(&text);
        assert_eq!(facts.clock(), &CaptureClock::Monotonic);
        assert_eq!((facts.time_step_ns(), facts.first_problem()), (1, None));
        assert_eq!(seen[0], events[0]);
        let name = facts.symbols().find(seen[1].chain[0]).unwrap();
        assert_eq!(name.to_string(), "do_idle+0x10");
    }

    #[test]
    fn what_is_lost_is_said_and_what_has_no_form_is_counted() {
        let lost = event(5, TraceKind::Lost { count: 12 }, &[]);
        let (seen, facts) = read(&written(&[event(5, TraceKind::PageFaultEntry, &[]), lost]));
        assert_eq!((seen.len(), facts.counts().lost), (2, 12));
        let clock = CaptureClock::Named("x\ny".into());
        let mut writer = TextWriter::new(Vec::new(), &clock, Symbols::default()).unwrap();
        writer.write(&event(5, TraceKind::PageFaultExit, &[])).unwrap();
        assert_eq!(writer.unwritten(), 1);
        let text = String::from_utf8(writer.finish().unwrap()).unwrap();
        assert!(text.contains("# clock: x?y\n"), "{text}");
    }

    proptest! {
        /// Names that a thread may have could be read as something else: ftrace's text has that
        /// too. Here they are plain.
        #[test]
        fn any_events_come_back(mut events in vec(tracepoint(), 0..40)) {
            for (number, event) in events.iter_mut().enumerate() {
                event.at_ns = number as u64 * 1_234_567_891;
                event.context.flags &= 0x07;
                let plain = ShortName::new(b"plain-name");
                match &mut event.kind {
                    TraceKind::Switch { previous, next, .. } => {
                        (previous.name, next.name) = (plain, plain);
                    }
                    TraceKind::Waking { task, .. }
                    | TraceKind::Migrate { task, .. }
                    | TraceKind::Signal { task, .. }
                    | TraceKind::Renamed { task }
                    | TraceKind::PriorityLent { task, .. } => task.name = plain,
                    TraceKind::IrqEntry { name, .. } => *name = plain,
                    _ => {}
                }
            }
            let (seen, facts) = read(&written(&events));
            prop_assert_eq!(facts.first_problem(), None);
            prop_assert_eq!(seen, events);
        }
    }
}
