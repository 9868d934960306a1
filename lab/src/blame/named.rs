//! The threads that a capture names, and which of them a user means.
//!
//! Pure: events in. A target that the capture does not have is refused, with those that it has.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use punctual_blame::config::FollowedThreads;
use punctual_trace::capture::{CaptureError, CaptureFacts, CaptureFormat, THREAD_NAMES_MAX};
use punctual_trace::event::{ShortName, TaskName, Tid, TraceEvent, TraceKind};

use crate::capture::ThreadTarget;

/// Threads or processes that a refusal names.
const NAMED: usize = 5;

/// The threads of a capture, by number.
#[derive(Clone, Debug, Default)]
pub(super) struct NamedThreads {
    /// The threads, each with the name that it had first.
    tasks: BTreeMap<Tid, TaskName>,
    /// Those that were seen at a real-time priority.
    real_time: BTreeSet<Tid>,
    names: BTreeSet<ShortName>,
}

impl NamedThreads {
    /// Takes in the threads that an event names.
    pub(super) fn see(&mut self, event: &TraceEvent) {
        match &event.kind {
            TraceKind::Switch { previous, next, .. } => {
                self.name(previous);
                self.name(next);
            }
            TraceKind::Waking { task, .. }
            | TraceKind::Migrate { task, .. }
            | TraceKind::Renamed { task } => self.name(task),
            _ => {}
        }
    }

    /// A thread had this name and priority.
    pub(super) fn name(&mut self, task: &TaskName) {
        if self.tasks.len().max(self.names.len()) >= THREAD_NAMES_MAX {
            return;
        }
        self.tasks.entry(task.tid).or_insert(*task);
        self.names.insert(task.name);
        if (-1..100).contains(&task.kernel_priority) {
            self.real_time.insert(task.tid);
        }
    }

    /// The threads, each with the name that it had first, by number.
    pub(super) fn tasks(&self) -> impl Iterator<Item = &TaskName> {
        self.tasks.values()
    }

    /// `servo (7), trace (9)`, and that there are more.
    fn words(&self, tids: &[Tid]) -> String {
        let mut words: Vec<String> = tids.iter().take(NAMED).map(|tid| self.word(*tid)).collect();
        if tids.len() > NAMED {
            words.push(format!("and {} more", tids.len() - NAMED));
        }
        words.join(", ")
    }

    fn word(&self, tid: Tid) -> String {
        match self.tasks.get(&tid) {
            Some(task) if !task.name.as_bytes().is_empty() => format!("{} ({tid})", task.name),
            _ => format!("thread {tid}"),
        }
    }
}

/// The threads of a capture, as far as it names them.
#[derive(Clone, Copy, Debug)]
pub(super) struct CaptureThreads<'a> {
    pub(super) facts: &'a CaptureFacts,
    pub(super) named: &'a NamedThreads,
    /// The threads whose late wakes it has, where it was cut down to these.
    pub(super) kept: Option<&'a [Tid]>,
    /// Threads with their processes, as far as it has them or this program kept them.
    pub(super) processes: &'a BTreeMap<Tid, Tid>,
}

impl CaptureThreads<'_> {
    /// The threads of a target.
    ///
    /// # Errors
    /// It has none of them, or does not have the processes of its threads.
    pub(super) fn follow(
        &self,
        target: &ThreadTarget,
    ) -> Result<FollowedThreads, ReadCaptureError> {
        let is_kept = |tid: &Tid| self.kept.is_none_or(|kept| kept.contains(tid));
        match target {
            ThreadTarget::Thread(number) => {
                let tid = number.unsigned_abs();
                let is_known = self.named.tasks.contains_key(&tid) && is_kept(&tid);
                let refused = || ReadCaptureError::Thread { tid, known: self.known() };
                is_known.then_some(FollowedThreads::Threads(vec![tid])).ok_or_else(refused)
            }
            ThreadTarget::Name(name) => {
                let short = ShortName::new(name.as_bytes());
                let is_it =
                    |tid: &&Tid| self.named.tasks.get(*tid).is_some_and(|task| task.name == short);
                let is_known = match self.kept {
                    Some(kept) => kept.iter().any(|tid| is_it(&tid)),
                    None => self.named.names.contains(&short),
                };
                let refused = || {
                    let name = name.replace(char::is_control, "\u{fffd}");
                    ReadCaptureError::Name { name, known: self.known() }
                };
                is_known.then_some(FollowedThreads::Named(short)).ok_or_else(refused)
            }
            ThreadTarget::Process(number) => {
                let pid = number.unsigned_abs();
                let mut tids = self.threads_of(pid)?;
                tids.retain(|tid| is_kept(tid) && self.named.tasks.contains_key(tid));
                if tids.is_empty() {
                    return Err(ReadCaptureError::Process { pid, known: self.known() });
                }
                let is_real_time = |tid: &Tid| self.named.real_time.contains(tid);
                if tids.iter().any(is_real_time) {
                    tids.retain(is_real_time);
                }
                Ok(FollowedThreads::Threads(tids))
            }
        }
    }

    /// The threads of a process.
    fn threads_of(&self, pid: Tid) -> Result<Vec<Tid>, ReadCaptureError> {
        if self.facts.has_processes() {
            return Ok(self.facts.threads_of(pid).collect());
        }
        if self.processes.is_empty() {
            return Err(ReadCaptureError::NoProcesses { pid, format: self.facts.format() });
        }
        let of_pid = self.processes.iter().filter(|(_, known)| **known == pid);
        Ok(of_pid.map(|(tid, _)| *tid).collect())
    }

    /// The threads that can be followed, in words: of what was kept, else those at a real-time
    /// priority.
    fn known(&self) -> String {
        match self.kept {
            Some(kept) => self.named.words(kept),
            None => {
                let real_time: Vec<Tid> = self.named.real_time.iter().copied().collect();
                self.named.words(&real_time)
            }
        }
    }
}

/// The reason for which a capture gives no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadCaptureError {
    /// It cannot be read.
    Capture(CaptureError),
    /// It has no such thread.
    Thread {
        /// Its number.
        tid: Tid,
        /// The threads that can be followed, in words.
        known: String,
    },
    /// It has no thread of this name.
    Name {
        /// The name.
        name: String,
        /// Likewise.
        known: String,
    },
    /// It has no thread of this process.
    Process {
        /// Its number.
        pid: Tid,
        /// Likewise.
        known: String,
    },
    /// It does not have the processes of its threads.
    NoProcesses {
        /// The process of the target.
        pid: Tid,
        /// The format of the capture.
        format: CaptureFormat,
    },
}

impl From<CaptureError> for ReadCaptureError {
    fn from(why: CaptureError) -> Self {
        Self::Capture(why)
    }
}

impl fmt::Display for ReadCaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = match self {
            Self::Capture(why) => return why.fmt(f),
            Self::NoProcesses { pid, format } => {
                return write!(
                    f,
                    "--pid {pid}: it is {}, which does not state here which threads a process has; \
                     --tid N or --name NAME name threads of it",
                    format.name()
                );
            }
            Self::Thread { tid, known } => {
                write!(f, "--tid {tid}: it has no such thread")?;
                known
            }
            Self::Name { name, known } => {
                write!(f, "--name {name}: it has no thread that is called so")?;
                known
            }
            Self::Process { pid, known } => {
                write!(f, "--pid {pid}: it has no thread of that process")?;
                known
            }
        };
        match known.as_str() {
            "" => write!(f, "; it has no real-time thread either, that would be followed without"),
            known => write!(f, "; without that option these are followed: {known}"),
        }
    }
}

impl std::error::Error for ReadCaptureError {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    use punctual_trace::capture::open;

    /// Two threads of process 5, of which one has a real-time priority, and one of process 9.
    fn text(has_processes: bool) -> String {
        let thread = |tid: Tid, name: &str, pid: Tid| match has_processes {
            true => format!("{{\"thread\":{{\"tid\":{tid},\"name\":\"{name}\"}},\"pid\":{pid}}}\n"),
            false => String::new(),
        };
        let switch = |at: u64, from: (Tid, &str, i32), to: (Tid, &str, i32)| {
            let task = |(tid, name, prio): (Tid, &str, i32)| {
                format!("{{\"tid\":{tid},\"name\":\"{name}\",\"prio\":{prio}}}")
            };
            format!(
                "{{\"ts_ns\":{at},\"cpu\":0,\"tid\":{},\"event\":{{\"switch\":{{\"previous\":{},\
                 \"previous_state\":1,\"next\":{}}}}}}}\n",
                from.0,
                task(from),
                task(to)
            )
        };
        let (servo, main, other) = ((7, "servo", 9), (5, "main", 120), (9, "other", 20));
        [
            "{\"punctual_trace\":1,\"clock\":\"monotonic\"}\n".to_owned(),
            thread(7, "servo", 5) + &thread(5, "main", 5) + &thread(9, "other", 9),
            switch(1_000, servo, main) + &switch(2_000, main, other) + &switch(3_000, other, servo),
        ]
        .concat()
    }

    fn follow(
        target: &ThreadTarget,
        has_processes: bool,
        kept: Option<&[Tid]>,
    ) -> Result<FollowedThreads, String> {
        let mut reader = open(Cursor::new(text(has_processes))).expect("NDJSON");
        let mut named = NamedThreads::default();
        while let Some(event) = reader.next_event().expect("whole") {
            named.see(&event);
        }
        let facts = reader.facts();
        assert_eq!(facts.first_problem(), None);
        let processes = &facts.processes().collect();
        let threads = CaptureThreads { facts, named: &named, kept, processes };
        threads.follow(target).map_err(|why| why.to_string())
    }

    #[test]
    fn a_process_is_its_real_time_threads_or_all_where_there_are_none() {
        let threads = |tids: &[Tid]| Ok(FollowedThreads::Threads(tids.to_vec()));
        let process = |pid| follow(&ThreadTarget::Process(pid), true, None);
        assert_eq!((process(5), process(9)), (threads(&[7]), threads(&[9])));
        let ordinary = follow(&ThreadTarget::Process(5), true, Some(&[5]));
        assert_eq!(ordinary, threads(&[5]), "the other has no late wake that was kept");
        let name = ShortName::new(b"main");
        let named = follow(&ThreadTarget::Name("main".to_owned()), false, None);
        assert_eq!(named, Ok(FollowedThreads::Named(name)));
        assert_eq!(follow(&ThreadTarget::Thread(5), false, None), threads(&[5]));
    }

    #[test]
    fn what_it_does_not_have_or_say_is_refused_with_what_it_does() {
        let refused = |target, has_processes, kept| {
            follow(&target, has_processes, kept).expect_err("it has none")
        };
        assert_eq!(
            refused(ThreadTarget::Process(5), false, None),
            "--pid 5: it is punctual NDJSON, which does not state here which threads a process \
             has; --tid N or --name NAME name threads of it"
        );
        assert_eq!(
            refused(ThreadTarget::Process(77), true, None),
            "--pid 77: it has no thread of that process; without that option these are followed: \
             servo (7), other (9)"
        );
        let thread = refused(ThreadTarget::Thread(6), false, None);
        assert!(thread.starts_with("--tid 6: it has no such thread; without"), "{thread}");
        let kept = refused(ThreadTarget::Thread(9), true, Some(&[7]));
        assert!(kept.ends_with("these are followed: servo (7)"), "{kept}");
        let name = refused(ThreadTarget::Name("a\nb".to_owned()), true, None);
        assert!(
            name.starts_with("--name a\u{fffd}b: it has no thread that is called so"),
            "{name}"
        );
    }
}
