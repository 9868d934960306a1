//! What tests of several experiments use.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use punctual_host::facts::MachineFacts;
use punctual_host::root::Root;

/// A machine that has these files alone, removed when dropped.
pub(crate) struct Tree(PathBuf);

impl Tree {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        static TREES: AtomicU32 = AtomicU32::new(0);
        let number = TREES.fetch_add(1, Ordering::Relaxed);
        let name = format!("punctual-lab-{}-{number}", std::process::id());
        let tree = Self(std::env::temp_dir().join(name));
        std::fs::create_dir_all(&tree.0).expect("writable");
        for (path, text) in files {
            let path = tree.0.join(path);
            std::fs::create_dir_all(path.parent().expect("it has one")).expect("writable");
            std::fs::write(path, text).expect("writable");
        }
        tree
    }

    pub(crate) fn root(&self) -> Root {
        Root::captured(&self.0).expect("readable")
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).expect("it was made here");
    }
}

/// The captured guest: two CPUs, throttling at 95 %; or without throttling.
pub(crate) fn guest(runtime_us: i64) -> MachineFacts {
    let tree = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/machines/firecracker-guest-2cpu");
    let mut facts = MachineFacts::collect(&Root::captured(tree).expect("a fixture"));
    let fact = facts.limits.rt_throttling.clone();
    facts.limits.rt_throttling = fact.map(|mut throttling| {
        throttling.runtime_us = runtime_us;
        throttling
    });
    facts
}
