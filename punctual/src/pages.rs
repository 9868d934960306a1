//! Pages of several tasks in memory of their own, read from any thread while the tasks run.
//!
//! For executives of this process. Where other processes are to read them, the pages lie in shared
//! memory instead (see [`crate::os::mapping`]).

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use punctual_core::page::{self, View};

/// The pages of several tasks, in the order in which the tasks were given.
#[derive(Clone, Debug)]
pub struct Pages {
    all: Arc<Vec<(String, Vec<AtomicU64>)>>,
}

impl Pages {
    /// Pages to come of tasks of these names.
    pub(crate) fn new(names: impl Iterator<Item = String>) -> Self {
        let words = || (0..page::WORDS).map(|_| AtomicU64::new(0)).collect();
        Self { all: Arc::new(names.map(|name| (name, words())).collect()) }
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
}
