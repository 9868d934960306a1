//! The words of a task's page, shared by who writes and who reads it.
//!
//! A loop holds a share in each page that it writes: tasks come and go while it runs, and their
//! readers may be late.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use punctual::core::dispatch::{Job, Overruns};
use punctual::core::executive::many::Observe;
use punctual::core::page::{self, Page, PageKind, View};
use punctual::core::time::Instant;

/// The words of one page.
#[derive(Debug)]
pub(crate) struct Room(Vec<AtomicU64>);

impl Room {
    /// A page on which nothing was kept yet.
    pub(crate) fn new() -> Arc<Self> {
        let words: Vec<AtomicU64> = (0..page::WORDS).map(|_| AtomicU64::new(0)).collect();
        let _page = Page::new(&words, PageKind::Lateness);
        Arc::new(Self(words))
    }

    /// What is kept on it; `None` in the moment in which a run empties it.
    pub(crate) fn view(&self) -> Option<View<'_>> {
        View::open(&self.0).ok()
    }
}

/// A page as its loop writes it.
#[derive(Debug)]
pub(crate) struct Kept {
    page: Page<'static>,
    /// After the page, which is in it.
    _room: Arc<Room>,
}

impl Kept {
    /// Empties the page and keeps on it.
    pub(crate) fn new(room: &Arc<Room>) -> Option<Self> {
        // SAFETY: the words stay where they are for as long as there is a share in the room, and
        // this holds one; the page never leaves it.
        let words: &'static [AtomicU64] = unsafe { &*std::ptr::from_ref(room.0.as_slice()) };
        Some(Self { page: Page::new(words, PageKind::Lateness)?, _room: Arc::clone(room) })
    }
}

impl Observe for Kept {
    fn ran(&mut self, job: &Job, start: Instant, finish: Instant, overruns: Overruns) {
        self.page.ran(job, start, finish, overruns);
    }
}
