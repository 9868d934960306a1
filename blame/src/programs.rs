//! The program of each thread: the process that it belongs to, and whether that is the
//! measurement's own.
//!
//! The recorder brings it; in a capture without it nothing is known, and threads go by their own
//! names.

use punctual_trace::event::{ShortName, Tid};
use serde::{Deserialize, Serialize};

/// Threads whose names and programs are remembered, by number: twice as many as there are numbers
/// where /proc/sys/kernel/pid_max is the usual 32 768, so that none share a place.
pub const THREADS: usize = 1 << 16;

/// The owner of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProgramOwner {
    /// Somebody else's, or not known.
    #[default]
    Stranger,
    /// The measurement itself.
    Measurement,
    /// A load that the measurement runs.
    Load,
}

/// The process that a thread belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadProgram {
    /// Its number, which is that of its first thread.
    pub pid: Tid,
    /// The name of that thread.
    pub name: ShortName,
    /// Its owner.
    pub owner: ProgramOwner,
}

/// The programs of a few threads, by their numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ThreadPrograms(Vec<(Tid, ThreadProgram)>);

impl ThreadPrograms {
    /// The programs of these threads, each once, as far as `find` knows them.
    pub(crate) fn of(
        tids: impl Iterator<Item = Tid>,
        find: impl Fn(Tid) -> Option<ThreadProgram>,
    ) -> Self {
        let mut programs = Self::default();
        for tid in tids {
            if programs.find(tid).is_none()
                && let Some(program) = find(tid)
            {
                programs.0.push((tid, program));
            }
        }
        programs
    }

    /// The program of a thread; `None` where it is not known.
    #[must_use]
    pub fn find(&self, tid: Tid) -> Option<ThreadProgram> {
        self.0.iter().find(|(known, _)| *known == tid).map(|(_, program)| *program)
    }

    /// The owner of a thread; a stranger where its program is not known.
    #[must_use]
    pub fn owner(&self, tid: Tid) -> ProgramOwner {
        self.find(tid).map_or_else(ProgramOwner::default, |program| program.owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_is_there_once_and_the_unknown_not_at_all() {
        let program =
            ThreadProgram { pid: 5, name: ShortName::new(b"rustc"), owner: ProgramOwner::Stranger };
        let known = |tid: Tid| (tid < 10).then_some(program);
        let programs = ThreadPrograms::of([7, 7, 8, 99].into_iter(), known);
        assert_eq!(programs.0.len(), 2);
        assert_eq!((programs.find(8), programs.find(99)), (Some(program), None));
        assert_eq!(programs.owner(99), ProgramOwner::Stranger);
    }
}
