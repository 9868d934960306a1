//! What the threads of one worker share: its own, the executive's and the guard's.
//!
//! For a crew at work. Nothing here changes but atomics.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use punctual_core::page::{Page, View};
use punctual_core::seat::{TaskGate, TaskServer, words};
use punctual_os::futex::Scope;
use punctual_os::scheduler::SchedPolicy;

use super::layout::{Pace, Placed};
use super::{Outcome, thread};
use crate::guard::{Charge, Guarded};
use crate::pages::Pages;
use crate::posts::{Post, Told};

/// What the threads of one worker share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) memory: Vec<AtomicU64>,
    pub(super) door: TaskGate,
    pub(super) told: Told,
    pub(super) guarded: Guarded,
    pub(super) panicked: AtomicBool,
    /// The priority that the thread got; 0 for SCHED_OTHER.
    pub(super) priority: AtomicUsize,
}

impl Shared {
    pub(super) fn of(at: &Placed<'_>) -> Self {
        let words = if matches!(at.pace, Pace::Posted { .. }) { words(0) } else { 0 };
        let memory = (0..words).map(|_| AtomicU64::new(0)).collect();
        Self { memory, ..Self::default() }
    }

    /// The worker as its guard sees it.
    pub(super) fn charge(&self, at: &Placed<'_>) -> Option<Charge<'_>> {
        let Pace::Posted { terms, grace, .. } = &at.pace else { return None };
        let policy = SchedPolicy::Fifo(at.priority);
        Some(Charge::new(&self.memory, terms.releases, *grace, policy, &self.guarded))
    }

    pub(super) fn outcome(&self, name: &str, page: &[AtomicU64]) -> Outcome {
        let priority = u8::try_from(self.priority.load(Ordering::Relaxed)).unwrap_or(0);
        Outcome {
            name: name.to_owned(),
            policy: if priority == 0 { SchedPolicy::Other } else { SchedPolicy::Fifo(priority) },
            counts: View::open(page).map(|page| page.counts()).unwrap_or_default(),
            overran: self.told.overran(),
            demoted: (self.guarded.demotions(), self.guarded.restored()),
            panicked: self.panicked.load(Ordering::Relaxed),
        }
    }
}

/// The posts, by rank.
pub(super) fn posts_of<'a>(
    tasks: &[Placed<'_>],
    shared: &'a [Shared],
    pages: &'a Pages,
) -> Vec<Post<'a>> {
    let mut all: Vec<(usize, Post<'a>)> = Vec::new();
    for (index, (at, shared)) in tasks.iter().zip(shared).enumerate() {
        let Pace::Posted { rank, terms, on_overrun, .. } = &at.pace else { continue };
        let releaser = TaskServer::new(&shared.memory, *terms).expect("made for these terms");
        let page = Page::new(pages.words(index), thread::kind(false)).expect("made for a page");
        let post = Post {
            releaser,
            page,
            door: &shared.door,
            told: &shared.told,
            limits: at.limits,
            on_overrun: *on_overrun,
            scope: Scope::Process,
        };
        all.push((*rank, post));
    }
    all.sort_by_key(|(rank, _)| *rank);
    all.into_iter().map(|(_, post)| post).collect()
}
