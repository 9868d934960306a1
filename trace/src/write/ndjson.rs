//! Writes events as NDJSON: one JSON object a line, each whole in itself.
//!
//! The first line says what it is, and in which clock: `{"punctual_trace":1,"clock":"monotonic"}`.
//! Lines `{"thread":{"tid":7,"name":"servo"},"pid":5}` say what threads were called when it began,
//! and which process they belong to where that is known. Of a capture that was cut down to late
//! wakes, lines `{"window":{"from_ns":5,"to_ns":9}}` have the times of which it has every event,
//! in their order, and lines `{"late":{"tid":7,"late_over_ns":100000}}` the threads of these wakes.
//! Every other line is an event:
//!
//! - `ts_ns`: when, ns of the clock;
//! - `cpu`, `tid`: where, and which thread the kernel says ran;
//! - `flags`, `preempt`: the context, `common_flags` and the depth to which preemption was off; 0
//!   if missing;
//! - `event`: an object of one key, the kind (`timer_start`, `waking`, `switch` …), whose value has
//!   the fields of [`TraceKind`] under their names; `page_fault_entry` and `page_fault_exit` are a
//!   text alone;
//! - `chain`: the kernel's call chain, innermost first; missing if empty.
//!
//! A thread is `{"tid":7,"name":"servo","prio":9}`, its priority as the kernel counts and missing
//! where unknown. Addresses are text, `"0xffff888627c1c6f8"`; functions are their name with an
//! offset, `"hrtimer_wakeup+0x1d"`, or an address where they have none. `capture::ndjson` reads it.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Value, json};

use crate::capture::{CaptureClock, KeptWakes};
use crate::event::{TaskName, Tid, TraceEvent, TraceKind};
use crate::symbols::Symbols;

/// The number of this form; a form that reads differently gets another.
pub const FORM: u32 = 1;

/// Keys of a kind whose values are functions.
pub(crate) const FUNCTION_KEYS: [&str; 2] = ["function", "callback"];

#[derive(Serialize)]
struct Line<'a> {
    ts_ns: u64,
    cpu: u32,
    tid: u32,
    #[serde(skip_serializing_if = "is_zero")]
    flags: u8,
    #[serde(skip_serializing_if = "is_zero")]
    preempt: u8,
    event: Value,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    chain: &'a [String],
}

// serde asks by reference.
const fn is_zero(number: &u8) -> bool {
    *number == 0
}

/// The name of a clock in the first line.
fn clock_name(clock: &CaptureClock) -> &str {
    match clock {
        CaptureClock::Monotonic => "monotonic",
        CaptureClock::MonotonicRaw => "monotonic_raw",
        CaptureClock::Named(name) => name,
        CaptureClock::Unknown => "unknown",
    }
}

/// Writes NDJSON.
#[derive(Debug)]
pub struct NdjsonWriter<W> {
    out: W,
    symbols: Symbols,
}

impl<W: Write> NdjsonWriter<W> {
    /// Begins, with the names of functions.
    ///
    /// # Errors
    /// An error of the system while writing.
    pub fn new(mut out: W, clock: &CaptureClock, symbols: Symbols) -> io::Result<Self> {
        let head = json!({"punctual_trace": FORM, "clock": clock_name(clock)});
        writeln!(out, "{head}")?;
        Ok(Self { out, symbols })
    }

    /// Writes the name that a thread had when the capture began, and its process where that is
    /// known.
    ///
    /// # Errors
    /// An error of the system while writing.
    pub fn name_thread(&mut self, task: &TaskName, pid: Option<Tid>) -> io::Result<()> {
        match pid {
            Some(pid) => writeln!(self.out, "{}", json!({"thread": task, "pid": pid})),
            None => writeln!(self.out, "{}", json!({"thread": task})),
        }
    }

    /// Writes the late wakes that the capture was cut down to, before its events.
    ///
    /// # Errors
    /// An error of the system while writing.
    pub fn write_kept(&mut self, kept: &KeptWakes) -> io::Result<()> {
        for window in kept.windows() {
            writeln!(self.out, "{}", json!({ "window": window }))?;
        }
        for thread in kept.threads() {
            writeln!(self.out, "{}", json!({ "late": thread }))?;
        }
        Ok(())
    }

    /// Writes an event.
    ///
    /// # Errors
    /// An error of the system while writing.
    pub fn write(&mut self, event: &TraceEvent) -> io::Result<()> {
        let chain: Vec<_> = event.chain.iter().map(|&frame| self.symbols.words(frame)).collect();
        let line = Line {
            ts_ns: event.at_ns,
            cpu: event.cpu,
            tid: event.tid,
            flags: event.context.flags,
            preempt: event.context.preempt_depth,
            event: self.kind(&event.kind)?,
            chain: &chain,
        };
        serde_json::to_writer(&mut self.out, &line)?;
        self.out.write_all(b"\n")
    }

    fn kind(&self, kind: &TraceKind) -> io::Result<Value> {
        let mut value = serde_json::to_value(kind)?;
        let function = match *kind {
            TraceKind::TimerStart { function, .. }
            | TraceKind::TimerExpireEntry { function, .. }
            | TraceKind::IpiSend { callback: function, .. }
            | TraceKind::CallQueued { function, .. }
            | TraceKind::CallEntry { function, .. }
            | TraceKind::WorkStart { function } => function,
            _ => return Ok(value),
        };
        let fields = value.as_object_mut().and_then(|kinds| kinds.values_mut().next());
        if let Some(Value::Object(fields)) = fields {
            for key in FUNCTION_KEYS {
                if let Some(text) = fields.get_mut(key) {
                    *text = Value::String(self.symbols.words(function));
                }
            }
        }
        Ok(value)
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
