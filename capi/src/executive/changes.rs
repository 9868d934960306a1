//! What changes an executive: tasks and units come and go, before it runs and meanwhile.
//!
//! Setup, one call at a time. A loop takes a change in its own time; readers read meanwhile.

use std::sync::MutexGuard;

use punctual::{ErrorKind, TaskId};

use super::object::{Executive, Registry, busy, pause};
use super::specs::{Spec, Specs, body};
use crate::errors;
use crate::ffi::Failure;
use crate::task::TaskSpec;

impl Executive {
    /// Changes what does not run.
    pub(super) fn change(
        &self,
        change: impl FnOnce(&mut Specs) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.changes.with(|()| {
            let mut registry = self.registry();
            if registry.running { Err(busy()) } else { registry.change(change) }
        })
    }

    /// One more task or unit; its index. A task may come while it runs.
    pub(super) fn add(&self, spec: &Spec) -> Result<u32, Failure> {
        self.changes.with(|()| {
            loop {
                let mut registry = self.registry();
                let index = registry.specs.next()?;
                let add = |specs: &mut Specs| {
                    specs.all.push(Some(spec.clone()));
                    Ok(())
                };
                let Some(run) = registry.live() else {
                    registry.change(add)?;
                    return Ok(index);
                };
                let Spec::Task(task @ TaskSpec { trigger: None, .. }) = spec else {
                    return Err(busy());
                };
                let change = || {
                    let callback = body(task.body, &run.outcome);
                    run.handle.add(task.task(run.wait), callback).map(Some)
                };
                let taken = |registry: &mut Registry, id| {
                    registry.specs.all.push(Some(spec.clone()));
                    if let Some(run) = &mut registry.run {
                        run.ids.push(id);
                    }
                };
                if self.change_live(registry, change, taken)? {
                    return Ok(index);
                }
            }
        })
    }

    /// One task or unit less. A task may go while it runs.
    pub(super) fn remove(&self, index: u32) -> Result<(), Failure> {
        self.changes.with(|()| {
            loop {
                let mut registry = self.registry();
                registry.specs.get(index)?;
                let remove = |specs: &mut Specs| {
                    specs.all[index as usize] = None;
                    Ok(())
                };
                let Some(run) = registry.live() else { return registry.change(remove) };
                let id = run.ids.get(index as usize).copied().flatten();
                let id = id.ok_or(Failure::bare(libc::ENOENT))?;
                let change = || run.handle.remove(id).map(|_| None);
                let taken = |registry: &mut Registry, _| {
                    registry.specs.all[index as usize] = None;
                };
                if self.change_live(registry, change, taken)? {
                    return Ok(());
                }
            }
        })
    }

    /// Hands a change to the run, and keeps what it has changed; false where that has not begun or
    /// is over: there may be another one by then.
    fn change_live(
        &self,
        mut registry: MutexGuard<'_, Registry>,
        change: impl FnOnce() -> Result<Option<TaskId>, punctual::Error>,
        taken: impl FnOnce(&mut Registry, Option<TaskId>),
    ) -> Result<bool, Failure> {
        /// Over on every way out, a panic's too.
        struct UnderWay<'e>(&'e Executive);
        impl Drop for UnderWay<'_> {
            fn drop(&mut self) {
                self.0.registry().changing = false;
            }
        }
        registry.changing = true;
        // The loop answers in its own time; readers read meanwhile.
        drop(registry);
        let under_way = UnderWay(self);
        match change() {
            Ok(id) => {
                let mut registry = self.registry();
                taken(&mut registry, id);
                registry.lay_out_anew();
                Ok(true)
            }
            Err(why) if why.kind() == ErrorKind::NotRunning => {
                drop(under_way);
                pause();
                Ok(false)
            }
            Err(why) => Err(errors::failure(&why)),
        }
    }
}
