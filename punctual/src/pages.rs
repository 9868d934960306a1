//! Pages of several tasks in memory of their own, read from any thread while the tasks run.
//!
//! For executives of this process. Where other processes are to read them, the pages lie in shared
//! memory instead (see [`crate::os::mapping`]).

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use punctual_core::dispatch::{Job, Overruns};
use punctual_core::executive::many::Observe;
use punctual_core::page::{self, Missed, Page, PageKind, View};
use punctual_core::time::Instant;

/// The words of a page, which its writer and its readers hold.
type Words = Arc<[AtomicU64]>;

/// The pages of several tasks, in the order in which the tasks were given.
#[derive(Clone, Debug)]
pub struct Pages {
    all: Arc<Vec<(String, Words)>>,
}

impl Pages {
    /// Pages to come of tasks of these names.
    pub(crate) fn new(names: impl Iterator<Item = String>) -> Self {
        Self { all: Arc::new(names.map(|name| (name, blank())).collect()) }
    }

    /// Pages of tasks of these names, of which some go on with the page that they have here.
    pub(crate) fn after(&self, names: impl Iterator<Item = (String, bool)>) -> Self {
        let here: HashMap<&str, &Words> =
            self.all.iter().map(|(name, words)| (name.as_str(), words)).collect();
        let of = |(name, goes_on): (String, bool)| {
            let words = here.get(name.as_str()).filter(|_| goes_on).map(|words| Arc::clone(words));
            (name, words.unwrap_or_else(begun))
        };
        Self { all: Arc::new(names.map(of).collect()) }
    }

    /// Names and pages; a page is there once its task runs.
    ///
    /// # Real-time: reader side
    pub fn iter(&self) -> impl Iterator<Item = (&str, Option<View<'_>>)> {
        self.all.iter().map(|(name, words)| (name.as_str(), View::open(words).ok()))
    }

    /// The words of one.
    pub(crate) fn words(&self, task: usize) -> &[AtomicU64] {
        &self.all[task].1
    }

    /// Makes all pages empty.
    pub(crate) fn begin(&self) {
        for (_, words) in self.all.iter() {
            let _page = Page::new(words, PageKind::Lateness);
        }
    }

    /// Whoever writes them: by rank, if they were given by rank.
    pub(crate) fn writers(&self) -> Writers {
        Writers { all: self.all.iter().map(|(_, words)| Arc::clone(words)).collect() }
    }
}

fn blank() -> Words {
    (0..page::WORDS).map(|_| AtomicU64::new(0)).collect()
}

/// A page on which nothing was kept yet.
fn begun() -> Words {
    let words = blank();
    let _page = Page::new(&words, PageKind::Lateness);
    words
}

/// The writers' ends of pages, by rank. They may be exchanged for others while a loop runs: what a
/// writer knows is on its page.
#[derive(Clone, Debug)]
pub(crate) struct Writers {
    all: Vec<Words>,
}

impl Observe for Writers {
    #[inline]
    fn ran(&mut self, job: &Job, start: Instant, finish: Instant, overruns: Overruns) {
        if let Some(mut page) = self.all.get(job.rank).and_then(|words| Page::resume(words)) {
            page.ran(job, start, finish, overruns);
        }
    }

    fn never_ran(&mut self, rank: usize, missed: Missed, end: Instant) {
        if let Some(mut page) = self.all.get(rank).and_then(|words| Page::resume(words)) {
            page.end(missed, end);
        }
    }
}

impl Writers {
    /// What is on the page of this rank.
    pub(crate) fn counts(&self, rank: usize) -> Option<page::Counts> {
        View::open(self.all.get(rank)?).ok().map(|view| view.counts())
    }
}
