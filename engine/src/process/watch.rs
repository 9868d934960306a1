//! A task of a running supervisor, read from another process: its page and its outputs.
//!
//! For displays, loggers and whatever drives actuators by a task's outputs. The memory is mapped
//! for reading alone; nothing here disturbs anybody.

use std::os::fd::AsRawFd;

use punctual_core::block::{OUTPUT_WORDS_MAX, Outputs, Source, TaskClient, Terms};
use punctual_core::stats::View;
use punctual_os::descriptor::Descriptor;
use punctual_os::mapping::{Access, Mapping};
use punctual_os::{Errno, pidfd, socket};

use super::TaskError;
use super::request::{Request, ask};
use crate::error::Error;

/// A task as others see it.
#[derive(Debug)]
pub struct Watch {
    block: Mapping,
    page: Mapping,
    terms: Terms,
    supervisor: Descriptor,
}

impl Watch {
    /// The task of this name, of the running supervisor of that name.
    ///
    /// # Errors
    ///
    /// There is no such supervisor or task, or it is another user's.
    ///
    /// # Real-time: setup only
    pub fn open(supervisor: &str, task: &str) -> Result<Self, Error> {
        let (connection, descriptors) = ask(supervisor, &Request::Watch(task.to_owned()))?;
        let socket = connection.as_raw_fd();
        let process = socket::peer_pidfd(socket).or_else(|Errno(_)| {
            // An older kernel: by number. It answered just now.
            pidfd::open(socket::peer(socket)?.pid)
        });
        let gone = |why: Errno| std::io::Error::from_raw_os_error(why.0);
        let process =
            process.map_err(|why| TaskError::Supervisor(supervisor.to_owned(), gone(why)))?;
        let [Some(block), Some(page)] = descriptors else {
            return Err(TaskError::Refused("no memory came".to_owned()).into());
        };
        let map = |descriptor: &Descriptor| {
            Mapping::of(descriptor.number(), None, Access::Read).map_err(TaskError::Memory)
        };
        let (block, page) = (map(&block)?, map(&page)?);
        let terms = *TaskClient::open(block.words()).map_err(TaskError::Block)?.terms();
        View::open(page.words()).map_err(TaskError::Page)?;
        Ok(Self { block, page, terms, supervisor: process })
    }

    /// Returns true where the supervisor still runs. Once it does not, nobody releases the task,
    /// counts its cycles or writes its safe value: an output that is the task's own then stays for
    /// ever.
    ///
    /// # Real-time: reader side
    pub fn is_supervised(&self) -> bool {
        pidfd::has_ended(&self.supervisor) == Ok(false)
    }

    /// The terms of its releases: period, burst and output.
    ///
    /// # Real-time: reader side
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Its page; `None` once something that is no page stands there.
    ///
    /// # Real-time: reader side
    pub fn page(&self) -> Option<View<'_>> {
        View::open(self.page.words()).ok()
    }

    /// Its committed output, as many bytes as `bytes` has, and whose it is; `None` when the task
    /// commits faster than this can read.
    ///
    /// # Real-time: reader side
    pub fn output(&self, bytes: &mut [u8]) -> Option<Source> {
        let outputs = Outputs::of(self.block.words(), self.terms.output_words)?;
        let mut words = [0u64; OUTPUT_WORDS_MAX];
        let source = outputs.read(&mut words[..self.terms.output_words])?;
        for (bytes, word) in bytes.chunks_mut(8).zip(words) {
            let whole = word.to_ne_bytes();
            bytes.copy_from_slice(&whole[..bytes.len()]);
        }
        Some(source)
    }
}
