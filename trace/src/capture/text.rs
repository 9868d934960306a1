//! Reads events that were printed: `perf script`, `trace` and `trace_pipe` of tracefs, and
//! `trace-cmd report` (with or without `-t`, `-l`, `-R`).
//!
//! All have one event a line: a thread, a CPU, a time and a colon, the event's name and a colon,
//! its fields. Lines that are no event are passed over. Functions have names here, and get numbers
//! in the facts' symbols.

use std::io::BufRead;
use std::mem;

use super::lines::Lines;
use super::{
    CaptureClock, CaptureError, CaptureFacts, CaptureFormat, CaptureReader, KeptThread, KeptWakes,
    KeptWindow,
};
use crate::decode::{FieldValues, PARTS_MAX, RECIPES, Recipe, Shape};
use crate::event::{ContextFlags, ShortName, Tid, TraceEvent, TraceKind, Vector};
use crate::reasons::vector_named;
use crate::symbols::Symbols;
use crate::write::text::{CLOCK, LATE, WINDOW};

/// Longest call chain that is kept: the kernel's own bound, `kernel.perf_event_max_stack`.
const FRAMES_MAX: usize = 127;

/// Most CPUs of a set that is written as hexadecimal digits.
const MASK_DIGITS_MAX: usize = 8192 / 4;

/// Reads printed events.
#[derive(Debug)]
pub struct TextReader<R> {
    lines: Lines<R>,
    /// The last event: its call chain may follow.
    pending: Option<TraceEvent>,
    frames: Vec<u64>,
    /// True where lines of a call chain belong to the pending event.
    is_in_chain: bool,
    last_ns: u64,
    is_done: bool,
    facts: CaptureFacts,
}

impl<R: BufRead> TextReader<R> {
    /// Reads from the beginning of a text.
    #[must_use]
    pub fn new(text: R) -> Self {
        let mut facts = CaptureFacts::new(CaptureFormat::FtraceText);
        facts.set_has_no_context();
        Self {
            lines: Lines::new(text),
            pending: None,
            frames: Vec::new(),
            is_in_chain: false,
            last_ns: 0,
            is_done: false,
            facts,
        }
    }

    /// Takes a line in; gives the event before it, once nothing more can belong to that.
    fn take(&mut self, line: &str) -> Option<TraceEvent> {
        if let Some(frame) = frame(line) {
            if self.is_in_chain && self.frames.len() < FRAMES_MAX {
                let address = match frame {
                    Frame::Named(name) => self.facts.symbols_mut().number(name),
                    Frame::Address(address) => address,
                    Frame::User | Frame::Own => return None,
                };
                self.frames.push(address);
            }
            return None;
        }
        if let Some((cpu, count)) = lost(line) {
            let event = TraceEvent {
                at_ns: self.last_ns,
                cpu,
                tid: 0,
                context: ContextFlags::default(),
                kind: TraceKind::Lost { count },
                chain: Box::default(),
            };
            return self.replace(Some(event));
        }
        if let Some(clock) = line.strip_prefix(CLOCK) {
            self.facts.set_clock(CaptureClock::of_ftrace(clock.trim()));
        }
        if let Some(read) = kept(line, self.facts.kept_mut()) {
            let number = self.lines.number();
            if let Err(why) = read {
                self.facts.refuse(|| format!("line {number}: {why}"));
            }
            return None;
        }
        let Some(head) = Head::parse(line) else {
            self.is_in_chain &= !line.is_empty();
            self.facts.counts_mut().skipped += 1;
            return None;
        };
        if head.event == "kernel_stack" {
            let belongs = |event: &TraceEvent| event.cpu == head.cpu && event.tid == head.tid;
            self.is_in_chain = self.pending.as_ref().is_some_and(belongs);
            return None;
        }
        let given = self.replace(None);
        self.pending = self.event(&head);
        self.is_in_chain = self.pending.is_some();
        given
    }

    /// The pending event with its call chain, and another in its place.
    fn replace(&mut self, next: Option<TraceEvent>) -> Option<TraceEvent> {
        let given = mem::replace(&mut self.pending, next).map(|mut event| {
            if !self.frames.is_empty() {
                self.facts.set_has_chains();
                event.chain = Box::from(&self.frames[..]);
            }
            event
        });
        self.frames.clear();
        self.is_in_chain = false;
        given
    }

    fn event(&mut self, head: &Head<'_>) -> Option<TraceEvent> {
        if head.system.is_some() {
            self.facts.set_format(CaptureFormat::PerfScript);
        }
        if head.context.is_some() {
            self.facts.set_has_context();
        }
        if let Some(pid) = head.pid {
            self.facts.see_process(head.tid, pid);
        }
        self.facts.see_time_step(head.step_ns);
        let is_it = |recipe: &Recipe| {
            recipe.name == head.event && head.system.is_none_or(|system| system == recipe.system)
        };
        let Some(place) = RECIPES.iter().position(is_it) else {
            self.facts.counts_mut().skipped += 1;
            return None;
        };
        let recipe = &RECIPES[place];
        if self.facts.is_duplicate_waking(recipe) {
            self.facts.counts_mut().skipped += 1;
            return None;
        }
        let parts = TextParts::parse(recipe, head.fields, self.facts.symbols_mut());
        let Some(kind) = recipe.shape.event(&parts) else {
            let number = self.lines.number();
            self.facts.refuse(|| format!("line {number}: no {} in it", recipe.name));
            return None;
        };
        if recipe.shape == Shape::TimerStart && parts.number(3).is_none() {
            self.facts.set_has_no_slack();
        }
        self.facts.record_place(place);
        if head.at_ns < self.last_ns {
            self.facts.counts_mut().out_of_order += 1;
        }
        self.last_ns = self.last_ns.max(head.at_ns);
        Some(TraceEvent {
            at_ns: head.at_ns,
            cpu: head.cpu,
            tid: head.tid,
            context: head.context.unwrap_or_default(),
            kind,
            chain: Box::default(),
        })
    }
}

impl<R: BufRead> CaptureReader for TextReader<R> {
    fn next_event(&mut self) -> Result<Option<TraceEvent>, CaptureError> {
        while !self.is_done {
            let given = match self.lines.next()? {
                None => {
                    self.is_done = true;
                    self.replace(None)
                }
                Some(true) => {
                    let line = self.lines.line();
                    self.take(&line)
                }
                Some(false) => {
                    let number = self.lines.number();
                    self.facts.refuse(|| format!("line {number}: longer than 65536 bytes"));
                    None
                }
            };
            if let Some(event) = given {
                self.facts.give(&event);
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    fn facts(&self) -> &CaptureFacts {
        &self.facts
    }
}

/// The text of which a line is an event, that of perf or of ftrace, or that of this program by the
/// line of its clock, behind which many comments may stand; `None` for any other line.
pub(super) fn format_of_line(line: &str) -> Option<CaptureFormat> {
    if line.starts_with(CLOCK) {
        return Some(CaptureFormat::FtraceText);
    }
    let head = Head::parse(line)?;
    let is_perf = head.system.is_some();
    Some(if is_perf { CaptureFormat::PerfScript } else { CaptureFormat::FtraceText })
}

/// The text of ftrace in place of an event and its fields, before a call chain.
const STACK: &str = "<stack trace";

/// The parts of a line before an event's fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Head<'a> {
    tid: Tid,
    /// Its process, where it stands there.
    pid: Option<Tid>,
    cpu: u32,
    context: Option<ContextFlags>,
    at_ns: u64,
    /// 1000 of a time with six digits.
    step_ns: u64,
    system: Option<&'a str>,
    event: &'a str,
    fields: &'a str,
}

impl<'a> Head<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        if line.starts_with('#') {
            return None;
        }
        let (before, time, behind) = split_at_time(line)?;
        let (at_ns, step_ns) = parse_time(time)?;
        let place = Placed::parse(before.trim())?;
        let mut rest = behind.trim_start();
        let mut word = rest.split_whitespace().next()?;
        // The period of a sample may stand before its event.
        if word.bytes().all(|byte| byte.is_ascii_digit()) {
            rest = rest[word.len()..].trim_start();
            word = rest.split_whitespace().next()?;
        }
        if rest.starts_with(STACK) {
            word = "kernel_stack:";
            rest = word;
        }
        let fields = &rest[word.len()..];
        let word = word.strip_suffix(':')?;
        let (system, event) = match word.split_once(':') {
            Some((system, event)) => (Some(system), event),
            None => (None, word),
        };
        Some(Self {
            tid: place.tid,
            pid: place.pid,
            cpu: place.cpu,
            context: place.context,
            at_ns,
            step_ns,
            system,
            event,
            fields: fields.trim(),
        })
    }
}

/// Splits a line at its first word `SECONDS.DIGITS:`, which is given without the colon.
fn split_at_time(line: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    loop {
        let start = from + line[from..].find(|letter: char| !letter.is_whitespace())?;
        let word = line[start..].split_whitespace().next()?;
        if let Some(time) = word.strip_suffix(':')
            && time.contains('.')
            && time.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        {
            return Some((&line[..start], time, &line[start + word.len()..]));
        }
        from = start + word.len();
    }
}

/// Seconds with six or nine digits, in ns, and the step of such times.
fn parse_time(time: &str) -> Option<(u64, u64)> {
    let (seconds, digits) = time.split_once('.')?;
    let step_ns = match digits.len() {
        6 => 1000,
        9 => 1,
        _ => return None,
    };
    let seconds: u64 = seconds.parse().ok()?;
    let part: u64 = digits.parse().ok()?;
    Some((seconds.checked_mul(1_000_000_000)?.checked_add(part * step_ns)?, step_ns))
}

/// The parts of a line before its time: thread, CPU, context.
struct Placed {
    tid: Tid,
    pid: Option<Tid>,
    cpu: u32,
    context: Option<ContextFlags>,
}

impl Placed {
    fn parse(before: &str) -> Option<Self> {
        let (task, cpu, flags) = match bracketed_cpu(before) {
            Some(found) => found,
            None => {
                // `bash-5523    0d..2.`: the CPU and the flags are one word.
                let (task, word) = before.rsplit_once(char::is_whitespace)?;
                let digits = word.bytes().take_while(u8::is_ascii_digit).count();
                let flags = Some(&word[digits..]).filter(|flags| flags.len() >= 4)?;
                (task, word[..digits].parse().ok()?, flags)
            }
        };
        // `bash-5523  (   5523)`: the process stands in parentheses.
        let (task, group) =
            match task.trim_end().strip_suffix(')').and_then(|task| task.rsplit_once('(')) {
                Some((task, group)) => (task.trim_end(), Some(group)),
                None => (task.trim_end(), None),
            };
        let word = task.rsplit(char::is_whitespace).next()?;
        // `bash-5523` of ftrace, `5523` and `5523/5523` of perf.
        let number = word.rsplit(['-', '/']).next()?;
        // Of ftrace dashes where it is not known.
        let group = group.or_else(|| word.rsplit_once('/').map(|(group, _)| group));
        Some(Self {
            tid: number.parse().ok()?,
            pid: group.and_then(|group| group.trim().parse().ok()),
            cpu,
            context: parse_flags(flags.trim()),
        })
    }
}

/// `bash-5523 [000] d..2.`, in three parts.
fn bracketed_cpu(before: &str) -> Option<(&str, u32, &str)> {
    let (start, end) = (before.rfind('[')?, before.rfind(']')?);
    let cpu = before.get(start + 1..end)?.trim().parse().ok()?;
    Some((&before[..start], cpu, &before[end + 1..]))
}

/// The letters that PREEMPT_RT printed before it was part of Linux (as 6.5-rt does): lazy
/// rescheduling has one of its own, and so has its depth. Other kernels print four or five.
const LETTERS_OF_RT: usize = 7;

/// The letters of ftrace, `kernel/trace/trace_output.c`, `trace_print_lat_fmt`.
fn parse_flags(letters: &str) -> Option<ContextFlags> {
    let has_lazy = letters.chars().count() >= LETTERS_OF_RT;
    let mut letters = letters.chars();
    let interrupts = match letters.next()? {
        'D' => 0x81,
        'd' => 0x01,
        'b' => 0x80,
        _ => 0,
    };
    let resched = match letters.next()? {
        'B' => 0x26,
        'N' => 0x24,
        'L' => 0x22,
        'b' => 0x06,
        'n' => 0x04,
        'l' => 0x02,
        'p' => 0x20,
        _ => 0,
    };
    let lazy = match has_lazy.then(|| letters.next()).flatten() {
        Some('L' | 'l') => 0x02,
        _ => 0,
    };
    let interrupt = match letters.next()? {
        'Z' => 0x48,
        'z' => 0x40,
        'H' => 0x18,
        'h' => 0x08,
        's' => 0x10,
        _ => 0,
    };
    let depth = letters.next()?.to_digit(16).unwrap_or(0);
    let preempt_depth = u8::try_from(depth).unwrap_or(0);
    Some(ContextFlags { flags: interrupts | resched | lazy | interrupt, preempt_depth })
}

/// `CPU:1 [LOST 12 EVENTS]` of ftrace, `CPU:1 [12 EVENTS DROPPED]` of trace-cmd.
fn lost(line: &str) -> Option<(u32, u64)> {
    let (cpu, rest) = line.trim().strip_prefix("CPU:")?.split_once(" [")?;
    let rest = rest.strip_suffix(']')?;
    if !rest.contains("LOST") && !rest.contains("DROPPED") {
        return None;
    }
    let count = rest.split_whitespace().find_map(|word| word.parse().ok()).unwrap_or(0);
    Some((cpu.trim().parse().ok()?, count))
}

/// Takes in what a line says of the late wakes that the capture was cut down to; `None` for any
/// other line.
fn kept(line: &str, kept: &mut KeptWakes) -> Option<Result<(), &'static str>> {
    let numbers = |text: &str, between: &str| {
        let (first, second) = text.trim().split_once(between)?;
        Some((first.parse().ok()?, second.parse().ok()?))
    };
    if let Some(text) = line.strip_prefix(WINDOW) {
        let Some((from_ns, to_ns)) = numbers(text, " ") else {
            return Some(Err("a window is FROM TO, ns"));
        };
        return Some(kept.add_window(KeptWindow { from_ns, to_ns }));
    }
    let found = numbers(line.strip_prefix(LATE)?, " over ");
    let found =
        found.and_then(|(tid, late_over_ns)| Some((Tid::try_from(tid).ok()?, late_over_ns)));
    Some(match found {
        Some((tid, late_over_ns)) => kept.add_thread(KeptThread { tid, late_over_ns }),
        None => Err("late wakes are those of TID over NS"),
    })
}

/// A line of a call chain.
enum Frame<'a> {
    Named(&'a str),
    Address(u64),
    User,
    Own,
}

/// `ffffffff813b4986 try_to_wake_up+0x1c6 ([kernel.kallsyms])` of perf, ` => function` of ftrace.
fn frame(line: &str) -> Option<Frame<'_>> {
    let trimmed = line.trim_start();
    if let Some(name) = trimmed.strip_prefix("=> ") {
        let name = name.split(" (").next()?.trim();
        // The recorder's own.
        let is_own = name.starts_with("trace_event_") || name.starts_with("__traceiter_");
        return Some(if is_own { Frame::Own } else { Frame::Named(name) });
    }
    if trimmed.len() == line.len() {
        return None;
    }
    let (address, rest) = trimmed.split_once(' ').unwrap_or((trimmed, ""));
    if address.len() < 8 {
        return None;
    }
    let address = u64::from_str_radix(address, 16).ok()?;
    if address >> 63 == 0 {
        return Some(Frame::User);
    }
    let name = rest.split(" (").next()?.trim();
    let is_unknown = name.is_empty() || name.starts_with('[');
    Some(if is_unknown { Frame::Address(address) } else { Frame::Named(name) })
}

/// The fields of one line.
#[derive(Debug, Default)]
struct TextParts {
    numbers: [Option<u64>; PARTS_MAX],
    names: [Option<ShortName>; PARTS_MAX],
    cpus: Option<Box<[u64]>>,
    vector: Option<Vector>,
}

impl FieldValues for TextParts {
    fn number(&self, part: usize) -> Option<u64> {
        *self.numbers.get(part)?
    }

    fn name(&self, part: usize) -> Option<ShortName> {
        *self.names.get(part)?
    }

    fn cpus(&self, _part: usize) -> Option<Box<[u64]>> {
        self.cpus.clone()
    }

    fn vector(&self, _part: usize) -> Option<Vector> {
        self.vector
    }
}

impl TextParts {
    fn parse(recipe: &Recipe, fields: &str, symbols: &mut Symbols) -> Self {
        match recipe.shape {
            Shape::Switch if !fields.contains("prev_pid=") => return Self::of_switch(fields),
            Shape::Waking if !fields.contains("pid=") => return Self::of_waking(fields),
            // `(Rescheduling interrupts)`
            Shape::IpiEntry | Shape::IpiExit => {
                let vector = vector_named(fields.trim_matches(['(', ')']));
                return Self { vector, ..Self::default() };
            }
            _ => {}
        }
        let mut parts = Self::default();
        for (part, field) in recipe.fields.iter().enumerate() {
            let field = field.trim_start_matches('?');
            if field.ends_with("comm") || field == "name" {
                parts.names[part] =
                    text_of(fields, field).map(|name| ShortName::new(name.as_bytes()));
                continue;
            }
            let Some(word) = word_of(fields, field) else { continue };
            match field {
                "cpumask" | "target_cpus" => parts.cpus = parse_cpus(word),
                "prev_state" => parts.numbers[part] = parse_state(word),
                "ret" => parts.numbers[part] = parse_handled(word),
                "function" | "func" | "callback" => {
                    parts.numbers[part] =
                        Some(parse_pointer(word).unwrap_or_else(|| symbols.number(word)));
                }
                // `%p` prints no 0x.
                "hrtimer" | "csd" => {
                    let digits = word.trim_start_matches("0x");
                    parts.numbers[part] =
                        parse_pointer(word).or_else(|| u64::from_str_radix(digits, 16).ok());
                }
                _ => parts.numbers[part] = parse_number(word),
            }
        }
        parts
    }

    /// `bash:5523 [120] R ==> rcu_preempt:15 [120]`, as trace-cmd prints it.
    fn of_switch(fields: &str) -> Self {
        let mut parts = Self::default();
        if let Some((previous, next)) = fields.split_once(" ==> ") {
            let state = parts.take_task([0, 1, 2], previous);
            parts.numbers[3] = state.and_then(|state| parse_state(state.trim()));
            parts.take_task([4, 5, 6], next);
        }
        parts
    }

    /// `bash:5523 [120] success=1 CPU:001`, as older ones print it.
    fn of_waking(fields: &str) -> Self {
        let mut parts = Self::default();
        let rest = parts.take_task([0, 1, 2], fields);
        let cpu = rest.and_then(|rest| rest.split_once("CPU:"));
        parts.numbers[3] = cpu.and_then(|(_, cpu)| parse_number(cpu.trim()));
        parts
    }

    /// `NAME:NUMBER [PRIORITY]`; gives what is behind it.
    fn take_task<'a>(
        &mut self,
        [name, tid, priority]: [usize; 3],
        text: &'a str,
    ) -> Option<&'a str> {
        let (task, rest) = text.split_once(" [")?;
        let (comm, number) = task.rsplit_once(':')?;
        let (level, rest) = rest.split_once(']')?;
        self.names[name] = Some(ShortName::new(comm.trim_start().as_bytes()));
        self.numbers[tid] = parse_number(number);
        self.numbers[priority] = parse_number(level);
        Some(rest)
    }
}

/// The text from a field's value on: behind `FIELD=`, `FIELD: ` or `FIELD `; of a system call's
/// number behind `NR `.
fn value_of<'a>(fields: &'a str, field: &str) -> Option<&'a str> {
    for separator in ["=", ": ", " "] {
        for (at, _) in fields.match_indices(field) {
            let is_word = at == 0 || fields[..at].ends_with([' ', '(', ',']);
            if let Some(value) = fields[at + field.len()..].strip_prefix(separator)
                && is_word
            {
                return Some(value);
            }
        }
    }
    if field == "id" { fields.strip_prefix("NR ") } else { None }
}

/// A value that is one word.
fn word_of<'a>(fields: &'a str, field: &str) -> Option<&'a str> {
    let value = value_of(fields, field)?;
    let word = value.split_whitespace().next()?;
    Some(word.trim_end_matches(','))
}

/// A value that may have spaces: it ends before the next `WORD=`.
fn text_of<'a>(fields: &'a str, field: &str) -> Option<&'a str> {
    let value = value_of(fields, field)?;
    let next = value.match_indices(' ').find(|&(at, _)| {
        let rest = &value[at + 1..];
        let name = rest.find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
        name.is_some_and(|end| end > 0 && rest[end..].starts_with('=')) || rest.starts_with("==>")
    });
    Some(next.map_or(value, |(at, _)| &value[..at]))
}

/// `(nil)`, or hexadecimal digits behind 0x.
fn parse_pointer(word: &str) -> Option<u64> {
    if word == "(nil)" {
        return Some(0);
    }
    u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()
}

fn parse_number(word: &str) -> Option<u64> {
    if let Some(digits) = word.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok();
    }
    let unsigned = word.parse().ok();
    unsigned.or_else(|| word.parse::<i64>().ok().map(i64::cast_unsigned))
}

/// What a handler of interrupts answered: a number, or the kernel's words.
fn parse_handled(word: &str) -> Option<u64> {
    match word {
        "handled" => Some(1),
        "unhandled" => Some(0),
        _ => parse_number(word),
    }
}

/// A thread's state: a number, or the kernel's letters, `R+` and `D|K`.
fn parse_state(word: &str) -> Option<u64> {
    if word.starts_with(|letter: char| letter.is_ascii_digit()) {
        return parse_number(word);
    }
    let (letters, is_preempted) = match word.strip_suffix('+') {
        Some(letters) => (letters, true),
        None => (word, false),
    };
    let mut state = if is_preempted { TraceKind::PREEMPTED } else { 0 };
    for letter in letters.chars() {
        state |= match letter {
            'R' | '|' => 0,
            'S' => 0x01,
            'D' => 0x02,
            'T' => 0x04,
            't' => 0x08,
            'X' => 0x10,
            'Z' => 0x20,
            'P' => 0x40,
            'I' => 0x80,
            // Others, such as K and W of older kernels, are asleep too.
            letter if letter.is_ascii_alphabetic() => 0x02,
            _ => return None,
        };
    }
    Some(state)
}

/// A set of CPUs: groups of eight hexadecimal digits, the highest first, or ranges `0-3,5`.
fn parse_cpus(word: &str) -> Option<Box<[u64]>> {
    if word.contains('-') {
        return None;
    }
    let digits: Vec<u32> = word
        .bytes()
        .rev()
        .filter(|&byte| byte != b',')
        .map(|byte| char::from(byte).to_digit(16))
        .collect::<Option<_>>()?;
    if digits.is_empty() || digits.len() > MASK_DIGITS_MAX {
        return None;
    }
    let words = digits
        .chunks(16)
        .map(|digits| digits.iter().rev().fold(0, |word, &digit| word << 4 | u64::from(digit)));
    Some(words.collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, proptest};

    use super::{Head, TextReader, parse_cpus, parse_flags, parse_state, split_at_time};
    use crate::capture::{CaptureFormat, CaptureReader, Untold};
    use crate::event::{ContextFlags, ShortName, TaskName, TraceEvent, TraceKind, Vector};

    fn read(text: &str) -> (Vec<TraceEvent>, TextReader<&[u8]>) {
        let mut reader = TextReader::new(text.as_bytes());
        let events = std::iter::from_fn(|| reader.next_event().unwrap()).collect();
        (events, reader)
    }

    fn kinds(text: &str) -> Vec<TraceKind> {
        read(text).0.into_iter().map(|event| event.kind).collect()
    }

    fn task(tid: u32, name: &str, kernel_priority: i32) -> TaskName {
        TaskName { tid, name: ShortName::new(name.as_bytes()), kernel_priority }
    }

    #[test]
    fn each_way_to_print_a_head() {
        let usual = "sched_waking: comm=x pid=1 prio=2 target_cpu=003";
        for (line, pid, tid, cpu, flags, at_ns, step_ns) in [
            (
                " bash-5523 [000] d..2. 35045.704093: ",
                None,
                5523,
                0,
                Some((1, 2)),
                35_045_704_093_000,
                1000,
            ),
            (
                " a b-c-7   [012] dNs3. 1.000000001: ",
                None,
                7,
                12,
                Some((0x35, 3)),
                1_000_000_001,
                1,
            ),
            ("p1: bash-5523    1d..2. 0.500000: ", None, 5523, 1, Some((1, 2)), 500_000_000, 1000),
            (
                "bash-5523 (   5520) [001] ..... 1.000000: ",
                Some(5520),
                5523,
                1,
                Some((0, 0)),
                1_000_000_000,
                1000,
            ),
            (
                "bash-5523 (-------) [001] ..... 1.000000: ",
                None,
                5523,
                1,
                Some((0, 0)),
                1_000_000_000,
                1000,
            ),
            // Linux 6.5-rt.
            (
                "stress-n-232 [000] dn.h413 1.000000: ",
                None,
                232,
                0,
                Some((0x0d, 4)),
                1_000_000_000,
                1000,
            ),
            (
                "swapper/0-1       [002] ..L.1..     0.831928: ",
                None,
                1,
                2,
                Some((0x02, 1)),
                831_928_000,
                1000,
            ),
            ("<idle>-0 [001] 1.000000: ", None, 0, 1, None, 1_000_000_000, 1000),
            (" perf  7056/7057  [000] 1.000000000: ", Some(7056), 7057, 0, None, 1_000_000_000, 1),
            (
                " Web Content  7056 [000] 1.000000:   1 sched:",
                None,
                7056,
                0,
                None,
                1_000_000_000,
                1000,
            ),
        ] {
            let line = format!("{line}{usual}");
            let head = Head::parse(&line).unwrap();
            let context = flags.map(|(flags, preempt_depth)| ContextFlags { flags, preempt_depth });
            assert_eq!(
                (head.pid, head.tid, head.cpu, head.context, head.at_ns, head.step_ns),
                (pid, tid, cpu, context, at_ns, step_ns),
                "{line}"
            );
            assert_eq!((head.event, head.fields), ("sched_waking", &usual[14..]), "{line}");
        }
    }

    #[test]
    fn what_is_no_event_is_passed_over() {
        for line in [
            "",
            "# tracer: nop",
            "cpus=2",
            "bash-5523 [000] d..2. 35045.704093: no event",
            "bash-5523 [000] d..2. 35045.70409: sched_waking: x",
            "bash [000] 1.000000: sched_waking: x",
            "bash-5523 1.000000: sched_waking: x",
            "1.000000: sched_waking: x",
        ] {
            assert_eq!(Head::parse(line), None, "{line}");
        }
        assert_eq!(split_at_time("a 1.5: b 2.5: c"), Some(("a ", "1.5", " b 2.5: c")));
    }

    #[test]
    fn each_event_as_it_is_printed() {
        let head = "bash-5 [000] d..2. 1.000000: ";
        let kind = |fields: &str| {
            let mut kinds = kinds(&format!("{head}{fields}\n"));
            assert_eq!(kinds.len(), 1, "{fields}");
            kinds.remove(0)
        };
        let name = 1 << 48;
        assert_eq!(
            kind(
                "hrtimer_start: hrtimer=00000000d60db520 function=hrtimer_wakeup expires=-3 \
                  softexpires=4 mode=ABS was_armed=0"
            ),
            TraceKind::TimerStart {
                timer: 0xd60d_b520,
                function: name,
                expires_ns: -3,
                soft_expires_ns: 4
            }
        );
        assert_eq!(
            kind("hrtimer_expire_entry: hrtimer=0xffff888627c1c6f8 now=35 function=f/0x0"),
            TraceKind::TimerExpireEntry {
                timer: 0xffff_8886_27c1_c6f8,
                function: name,
                now_ns: 35
            }
        );
        let (a, b) = (task(5, "Web Content", 120), task(15, "rcu", -1));
        for fields in [
            "prev_comm=Web Content prev_pid=5 prev_prio=120 prev_state=R+ ==> next_comm=rcu \
             next_pid=15 next_prio=-1",
            "Web Content:5 [120] R+ ==> rcu:15 [-1]",
            "prev_comm=Web Content prev_pid=5 prev_prio=120 prev_state=256 next_comm=rcu \
             next_pid=15 next_prio=-1",
        ] {
            assert_eq!(
                kind(&format!("sched_switch: {fields}")),
                TraceKind::Switch { previous: a, previous_state: 0x100, next: b }
            );
        }
        for fields in ["comm=rcu pid=15 prio=-1 success=1 target_cpu=003", "rcu:15 [-1] CPU:003"] {
            let waking = TraceKind::Waking { task: b, target_cpu: 3 };
            assert_eq!(kind(&format!("sched_waking: {fields}")), waking);
        }
        assert_eq!(kind("softirq_entry: vec=7 [action=SCHED]"), TraceKind::SoftirqEntry(7));
        assert_eq!(
            kind("irq_handler_entry: irq=24 name=virtio3-rx"),
            TraceKind::IrqEntry { irq: 24, name: ShortName::new(b"virtio3-rx") }
        );
        assert_eq!(
            kind("ipi_send_cpu: cpu=1 callsite=ttwu+0x1d/0x40 callback=0x0"),
            TraceKind::IpiSend { targets: Box::from([2]), callback: 0 }
        );
        assert_eq!(
            kind("ipi_send_cpumask: cpumask=1,00000000,00000005 callsite=a+0x1 callback=f+0x2/0x3"),
            TraceKind::IpiSend { targets: Box::from([5, 1]), callback: name + 2 }
        );
        assert_eq!(
            kind("csd_function_entry: func=do_sync_core, csd=(nil)"),
            TraceKind::CallEntry { request: 0, function: name }
        );
        assert_eq!(
            kind("nmi_handler: perf_event_nmi_handler() delta_ns: 1234 handled: 1"),
            TraceKind::Nmi { took_ns: 1234 }
        );
        assert_eq!(kind("sys_enter: NR 230 (1, 2, 3)"), TraceKind::SyscallEntry { number: 230 });
        assert_eq!(kind("sys_exit: NR 230 = -4"), TraceKind::SyscallExit { number: 230 });
        assert_eq!(
            kind("workqueue_execute_start: work struct 00000000a: function vmstat_update"),
            TraceKind::WorkStart { function: name }
        );
        assert_eq!(
            kind("task_rename: pid=9 oldcomm=bash newcomm=the loop oom_score_adj=0"),
            TraceKind::Renamed { task: task(9, "the loop", TaskName::UNKNOWN_PRIORITY) }
        );
        assert_eq!(
            kind("local_timer_entry: vector=236").clone(),
            kinds(&format!("{head}local_timer_entry: vector=236"))[0]
        );
    }

    #[test]
    fn an_interrupt_from_another_cpu_is_printed_with_its_reason() {
        let text = "<idle>-0     [001] dnh1.     3.887693: ipi_entry: (Rescheduling interrupts)\n\
            <idle>-0     [001] dNh1.     3.887695: ipi_exit: (Rescheduling interrupts)\n\
            swapper     0 [001]     3.887696195: ipi:ipi_entry: (Function call interrupts)\n\
            swapper     0 [001]     3.887696195: ipi:ipi_exit: (0xffff94d498d22280)\n\
            <idle>-0     [001] dnh1.     3.887698: ipi_entry:       reason=0xffff94d498d22268\n";
        assert_eq!(
            kinds(text),
            [
                TraceKind::VectorEntry(Vector::Reschedule),
                TraceKind::VectorExit(Vector::Reschedule),
                TraceKind::VectorEntry(Vector::CallFunctionSingle),
                TraceKind::VectorExit(Vector::OtherCpu),
                TraceKind::VectorEntry(Vector::OtherCpu),
            ]
        );
    }

    #[test]
    fn damage_is_counted_and_named() {
        let text = "a-5 [000] ..... 1.000000: sched_waking: comm=x pid=1\n\
                    a-5 [000] ..... 1.000000: softirq_exit: vec=1 [action=TIMER]\n";
        let (events, reader) = read(text);
        assert_eq!(events.len(), 1);
        assert_eq!(reader.facts().counts().undecodable, 1);
        assert_eq!(reader.facts().first_problem(), Some("line 1: no sched_waking in it"));
        assert_eq!(reader.facts().counts().events, 1);
    }

    #[test]
    fn call_chains_belong_to_the_event_before() {
        let text = "p 5 [000] 1.000000001: sched:sched_waking: comm=x pid=1 prio=2 target_cpu=0\n\
            \tffffffff813b4986 try_to_wake_up+0x3b6 ([kernel.kallsyms])\n\
            \tffffffff813b0000 [unknown] ([kernel.kallsyms])\n\
            \t    7fb8a910c137 [unknown] (/lib/x.so)\n\
            \n\
            \tffffffff813b0001 stray\n\
            p 5 [000] 1.000000002: irq:softirq_exit: vec=1 [action=TIMER]\n";
        let (events, reader) = read(text);
        assert_eq!(*events[0].chain, [(1 << 48) + 0x3b6, 0xffff_ffff_813b_0000]);
        assert!(events[1].chain.is_empty());
        assert_eq!(reader.facts().format(), CaptureFormat::PerfScript);
        let untold = reader.facts().untold();
        assert!(untold.contains(&Untold::Context) && !untold.contains(&Untold::Chains));
        let text = "a-5 [000] ..... 1.000000: softirq_exit: vec=1 [action=TIMER]\n\
            a-5 [000] d..2. 1.000000: <stack trace>\n\
            \u{20}=> trace_event_raw_event_softirq\n => handle_softirqs\n => irq_exit\n\
            a-5 [000] ..... 1.000000: softirq_exit: vec=2 [action=TIMER]\n\
            a-5 [001] d..2. 1.000000: <stack trace>\n => another\n";
        let (events, reader) = read(text);
        assert_eq!(*events[0].chain, [1 << 48, (1 << 48) + (1 << 16)]);
        assert!(events[1].chain.is_empty());
        assert_eq!(reader.facts().format(), CaptureFormat::FtraceText);
    }

    #[test]
    fn what_was_lost_is_an_event() {
        let text = "a-5 [000] ..... 1.000000: softirq_exit: vec=1 [action=TIMER]\n\
                    CPU:1 [LOST 12 EVENTS]\nCPU:0 [3 EVENTS DROPPED]\nCPU:0 [other]\n";
        let (events, reader) = read(text);
        let lost: Vec<_> =
            events[1..].iter().map(|event| (event.cpu, event.kind.clone())).collect();
        assert_eq!(lost, [(1, TraceKind::Lost { count: 12 }), (0, TraceKind::Lost { count: 3 })]);
        assert_eq!((events[1].at_ns, reader.facts().counts().lost), (1_000_000_000, 15));
    }

    #[test]
    fn wakeups_count_only_where_wakings_are_missing() {
        let wakeup = "a-5 [000] ..... 1.000000: sched_wakeup: comm=x pid=1 prio=2 target_cpu=000\n";
        let waking = wakeup.replace("wakeup", "waking");
        assert_eq!(kinds(&wakeup.repeat(2)).len(), 2);
        assert_eq!(kinds(&format!("{waking}{wakeup}")).len(), 1);
    }

    #[test]
    fn small_parts() {
        let flags = |letters: &str| parse_flags(letters).map(|context| context.flags);
        assert_eq!(flags("DBZ3"), Some(0x81 | 0x26 | 0x48));
        assert_eq!(flags("bnH."), Some(0x80 | 0x04 | 0x18));
        assert_eq!(flags(".p"), None);
        assert_eq!(parse_state("D|Z"), Some(0x22));
        assert_eq!(parse_state("S+"), Some(0x101));
        assert_eq!(parse_state("?"), None);
        assert_eq!(parse_cpus("0-3"), None);
        assert_eq!(parse_cpus(&"f".repeat(4000)), None);
        assert_eq!(parse_cpus("80000000,00000000"), Some(Box::from([1 << 63])));
    }

    proptest! {
        #[test]
        fn any_text_ends(text in any::<String>(), fields in "[a-z_=:0-9 +|>\\[\\]]{0,80}") {
            read(&text);
            for recipe in crate::decode::RECIPES {
                read(&format!("a-5 [000] d..2. 1.000000: {}: {fields}\n{text}", recipe.name));
            }
        }
    }
}
