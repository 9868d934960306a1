//! ReadCapture: why wakes were late in a capture of before, and its events in another form.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek, Write};

use punctual_blame::blame::Blame;
use punctual_blame::calls::CallNumbers;
use punctual_blame::config::{BlameConfig, FollowedThreads, LateThreshold};
use punctual_blame::outcome::BlameOutcome;
use punctual_core::time::Span;
use punctual_trace::capture::{self, CaptureClock, KeptWakes, KernelName};
use punctual_trace::event::{TaskName, Tid, TraceEvent};
use punctual_trace::symbols::Symbols;
use punctual_trace::write::CaptureHead;

use super::blamed::Blamed;
use super::kept::{EventFile, EventForm, Note};
use super::named::{CaptureThreads, NamedThreads, ReadCaptureError};
use super::{LATE, map};
use crate::capture::ThreadTarget;

/// A capture that was read.
#[derive(Debug)]
pub struct ReadCapture {
    /// The causes of late wakes, as results have them.
    pub blamed: Blamed,
    /// Evidence that it lacks, a line each.
    pub untold: Vec<String>,
    pub(super) outcome: BlameOutcome,
    clock: CaptureClock,
    symbols: Symbols,
    threads: Vec<TaskName>,
    /// Threads with their processes.
    processes: BTreeMap<Tid, Tid>,
    kernel: KernelName,
    /// The late wakes that it was cut down to.
    kept: KeptWakes,
}

/// Goes through the windows of a capture: what lies between them was not kept.
struct WindowWalk<'a> {
    kept: &'a KeptWakes,
    place: Option<usize>,
}

impl WindowWalk<'_> {
    /// Gives an event to the account. One before its window counts as of its begin: it says what
    /// held then.
    fn push(&mut self, blame: &mut Blame, mut event: TraceEvent) {
        if !self.kept.windows().is_empty() {
            let Some(place) = self.kept.place(event.at_ns) else { return };
            let from_ns = self.kept.windows()[place].from_ns;
            if self.place.replace(place).is_some_and(|before| before != place) {
                blame.resume(from_ns);
            }
            event.at_ns = event.at_ns.max(from_ns);
        }
        blame.push(&event);
    }
}

impl ReadCapture {
    /// Why wakes were late in a capture, which is read twice: names of functions may stand anywhere
    /// in it. Without `target` and `late`, those of the recording where it says them, else
    /// real-time threads and the latest hundredth.
    ///
    /// # Errors
    /// It cannot be read, has no such thread, or does not say which threads a process has.
    pub fn read<R: Read + Seek>(
        file: &mut R,
        target: Option<&ThreadTarget>,
        late: Option<LateThreshold>,
    ) -> Result<Self, ReadCaptureError> {
        let mut reader = capture::open(&mut *file)?;
        let mut named = NamedThreads::default();
        while let Some(event) = reader.next_event()? {
            named.see(&event);
        }
        let facts = reader.facts();
        facts.threads().iter().for_each(|task| named.name(task));
        let mut untold: Vec<String> = facts.untold().iter().map(ToString::to_string).collect();
        let (symbols, clock) = (facts.symbols().clone(), facts.clock().clone());
        let threads = facts.threads().to_vec();
        let note = facts.note().map(Note::read).transpose();
        let kernel = facts.kernel().clone();
        let machine = kernel.machine.as_deref().and_then(CallNumbers::of_machine);
        let note = note.unwrap_or_else(|why| {
            untold.push(format!("what was known beside its events cannot be used: {why}"));
            None
        });
        let (recalled, processes, kept) = match note {
            Some((recall, processes, kept)) => (Some(recall), processes, kept),
            None => (None, facts.processes().collect(), facts.kept().clone()),
        };
        let kept_tids: Vec<Tid> = kept.threads().iter().map(|thread| thread.tid).collect();
        let kept_tids = Some(kept_tids).filter(|tids| recalled.is_some() || !tids.is_empty());
        let follow = match (target, kept_tids) {
            (Some(target), kept) => {
                let kept = kept.as_deref();
                CaptureThreads { facts, named: &named, kept, processes: &processes }
                    .follow(target)?
            }
            (None, Some(kept)) => FollowedThreads::Threads(kept),
            (None, None) => FollowedThreads::RealTime,
        };
        drop(reader);
        let is_recalled = recalled.is_some();
        // Where the wakes are known that it has, their events alone are looked at.
        let cut = if is_recalled { KeptWakes::default() } else { kept.clone() };
        let config = BlameConfig {
            follow,
            late: late.unwrap_or(LATE),
            is_cut: !cut.windows().is_empty(),
            symbols: map(&symbols).with_calls(machine),
            event_driven: true,
            is_clock_foreign: clock != CaptureClock::Monotonic,
            ..BlameConfig::default()
        };
        if !cut.windows().is_empty() {
            let text = "it has what happened around late wakes alone: medians and shares are of \
                        that, what --keep DIR keeps has those of the recording";
            untold.insert(0, text.to_owned());
        }
        let kept_over_ns = kept.threads().iter().map(|thread| thread.late_over_ns).max();
        let over_ns = match late {
            Some(LateThreshold::Above(over_ns)) => {
                if let Some(kept_ns) = kept_over_ns.filter(|kept_ns| *kept_ns > over_ns) {
                    let kept = Span::from_ns(i64::try_from(kept_ns).unwrap_or(i64::MAX));
                    let text = format!("it has wakes later than {kept} alone, and none below");
                    untold.insert(0, text);
                }
                over_ns
            }
            Some(LateThreshold::Quantile(_)) if kept_over_ns.is_some() => {
                let text = "it has late wakes alone, which are no share of all: those that \
                            were late when it was recorded are taken";
                untold.insert(0, text.to_owned());
                0
            }
            Some(LateThreshold::Quantile(_)) | None => 0,
        };
        let over: Vec<(Tid, u64)> =
            cut.threads().iter().map(|kept| (kept.tid, kept.late_over_ns.max(over_ns))).collect();
        let least_ns = over.iter().map(|(_, over_ns)| *over_ns).min();
        let config = match (recalled, least_ns) {
            (Some(recall), _) => config.recalling(recall.over(over_ns)),
            (None, Some(least_ns)) => {
                BlameConfig { late: LateThreshold::Above(least_ns), ..config }
            }
            (None, None) => config,
        };
        let mut blame = Blame::new(config);
        let mut reader = capture::open(&mut *file)?;
        let mut walk = WindowWalk { kept: &cut, place: None };
        while let Some(event) = reader.next_event()? {
            walk.push(&mut blame, event);
        }
        // One that is the configuration's own is not rounded.
        for (tid, over_ns) in over.into_iter().filter(|(_, over_ns)| Some(*over_ns) != least_ns) {
            blame.set_threshold(tid, over_ns);
        }
        let outcome = blame.finish();
        let blamed = Blamed::new(&outcome, None, None);
        drop(reader);
        Ok(Self { blamed, untold, outcome, clock, symbols, threads, processes, kernel, kept })
    }

    /// Writes all of its events in another form, from the file that it was read from, and returns
    /// the number of those that the form has no place for.
    ///
    /// # Errors
    /// It cannot be read again, or the system refuses to write.
    pub fn write<R: Read + Seek, W: Write>(
        &self,
        file: &mut R,
        form: EventForm,
        out: W,
    ) -> io::Result<u64> {
        let head = CaptureHead {
            clock: &self.clock,
            kernel: &self.kernel,
            symbols: self.symbols.clone(),
            kept: &self.kept,
        };
        let mut writer = EventFile::begin(form, out, head)?;
        writer.name_threads(&self.threads, |tid| self.processes.get(&tid).copied())?;
        let mut reader = capture::open(&mut *file).map_err(io::Error::other)?;
        while let Some(event) = reader.next_event().map_err(io::Error::other)? {
            writer.write(&event)?;
        }
        writer.finish(&self.outcome)
    }
}
