//! Checks that the CPUs that a file names exist and are allowed, before anything is started.
//!
//! CPUs by trying: a thread moves to each of them once.

use std::collections::BTreeMap;
use std::io;

use punctual::spawn;
use punctual_host::choose::check_cpus;
use punctual_host::cpulist::CpuList;
use punctual_host::facts::MachineFacts;
use punctual_host::root::Root;
use punctual_lab::tasks::TaskFile;
use punctual_os::Errno;
use punctual_os::affinity::{self, CpuMask};

/// Refuses the first CPU that cannot be used, with the place in the file that names it.
pub(super) fn check(tasks: &TaskFile) -> Result<(), String> {
    let named =
        tasks.all.iter().filter_map(|task| Some((task.spec.thread.pinned_to()?, Some(task.line))));
    let all: Vec<(u32, Option<usize>)> =
        tasks.thread.pinned_to().map(|cpu| (cpu, None)).into_iter().chain(named).collect();
    let refused = refused(all.iter().map(|(cpu, _)| *cpu)).map_err(|why| why.to_string())?;
    let Some((cpu, line)) = all.iter().find(|(cpu, _)| refused.contains_key(cpu)) else {
        return Ok(());
    };
    let place = line.map_or("[supervisor]".to_owned(), |line| format!("line {line}"));
    // As `--cpu` says it, where the facts tell more than the kernel's number.
    let facts = MachineFacts::collect(&Root::live());
    let why = check_cpus(&CpuList::single(*cpu), &facts)
        .err()
        .map_or_else(|| refused[cpu].to_string(), |why| why.to_string());
    Err(format!("{place}: cannot run on CPU {cpu}: {why}"))
}

/// The CPUs that the kernel refuses, and why.
fn refused(cpus: impl Iterator<Item = u32> + Send) -> io::Result<BTreeMap<u32, Errno>> {
    let go = |cpu| Some((cpu, affinity::set(0, &CpuMask::one(cpu)).err()?));
    // Its own affinity is gone with the thread.
    std::thread::scope(|scope| {
        let tried = spawn::scoped(scope, "punctual-cpu", || cpus.filter_map(go).collect())?;
        Ok(tried.join().unwrap_or_default())
    })
}
