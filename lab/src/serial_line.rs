//! A serial line of this process alone: opened by name, raw, and put back when it is dropped.
//!
//! For links to another machine and for sources of stimuli. After a `kill -9` the line stays raw.

use std::ffi::CString;
use std::io;

use punctual_os::descriptor::{self, Descriptor};
use punctual_os::serial::{self, LineSettings, OnCarrierLoss};
use punctual_os::{Errno, events, file};

/// A line that is open.
#[derive(Debug)]
pub(crate) struct SerialLine {
    line: Descriptor,
    /// Its settings before, to be put back; `None` where nobody had it before.
    before: Option<LineSettings>,
}

impl SerialLine {
    /// Opens `path`; reads and writes of it do not wait.
    ///
    /// # Errors
    /// Why it cannot be had, with what is accepted.
    pub(crate) fn open(path: &str, baud: u32, loss: OnCarrierLoss) -> Result<Self, String> {
        let by_error = |why: Errno| io::Error::from_raw_os_error(why.0).to_string();
        if !serial::speeds().any(|known| known == baud) {
            let known: Vec<String> = serial::speeds().map(|baud| baud.to_string()).collect();
            return Err(format!("{baud} baud: one of {}", known.join(", ")));
        }
        let name = CString::new(path).map_err(|_| "a path has no zero byte")?;
        let line = descriptor::open_device(&name).map_err(by_error)?;
        match serial::settings(&line) {
            Err(Errno::NOTTY) => Err("is not a serial line".to_owned()),
            Err(why) => Err(by_error(why)),
            Ok(_) if !file::try_lock(line.number()).map_err(by_error)? => {
                Err("another program has this line".to_owned())
            }
            Ok(before) => {
                serial::set_raw(&line, &before, baud, loss).map_err(by_error)?;
                Ok(Self { line, before: Some(before) })
            }
        }
    }

    /// Two ends within this machine: a pseudo-terminal.
    ///
    /// # Errors
    /// The machine has no more of them.
    pub(crate) fn pair() -> io::Result<(Self, Self)> {
        let by_number = |why: Errno| io::Error::from_raw_os_error(why.0);
        let (near, far) = events::line().map_err(by_number)?;
        Ok((Self { line: near, before: None }, Self { line: far, before: None }))
    }

    /// The descriptor to read and write it by.
    pub(crate) fn descriptor(&self) -> &Descriptor {
        &self.line
    }
}

impl Drop for SerialLine {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // A line that is gone has no settings.
            let _gone = serial::restore(&self.line, before);
        }
    }
}
