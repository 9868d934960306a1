//! Help for the unit tests of this crate: a directory that goes away, and trees built by code.

use crate::cpulist::CpuList;
use crate::facts::MachineFacts;
use crate::root::Root;
use crate::rules::{CpuScope, Inputs, KnobVerdict, judge};
use crate::settings::KernelSettings;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

static COUNT: AtomicU32 = AtomicU32::new(0);

/// A fresh directory below the system's temporary one, removed when dropped.
pub(crate) struct Tree(PathBuf);

impl Tree {
    pub(crate) fn new() -> Self {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir =
            std::env::temp_dir().join(format!("punctual-host-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    /// A tree with these files.
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let tree = Self::new();
        for (path, text) in files {
            tree.write(path, text);
        }
        tree
    }

    pub(crate) fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.0.join(path.trim_start_matches('/'));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn root(&self) -> Root {
        Root::captured(&self.0).unwrap()
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The verdict on a knob of a machine that has these files, tuned for `cpus`, or for those that
/// would be chosen; `None` where there is none.
pub(crate) fn verdict(
    files: &[(&str, &str)],
    cpus: Option<&str>,
    knob: &str,
) -> Option<KnobVerdict> {
    let tree = Tree::of(files);
    let root = tree.root();
    let (facts, settings) = (MachineFacts::collect(&root), KernelSettings::collect(&root));
    let cpus = cpus.map(|cpus| CpuList::parse(cpus, 63).unwrap());
    let cpus = CpuScope::of(cpus, &facts).cpus;
    let inputs = Inputs { facts: &facts, settings: &settings, cpus: &cpus, workload: None };
    judge(&inputs).into_iter().find(|judged| judged.knob == knob)
}
