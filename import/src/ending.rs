//! How a sample file could not be opened, and how one ended.
//!
//! Plain data for the reader of sample files; reads nothing.

use punctual_core::file::FILE_VERSION;

use super::samples::RUNS_MAX;

/// Why a file could not be opened as a sample file.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It does not begin as a sample file does.
    #[error("not a sample file of punctual")]
    Foreign,
    /// It has no bytes.
    #[error("the file is empty")]
    Empty,
    /// It ends, or is damaged, before the first block.
    #[error("a punctual sample file with a damaged header: {0}")]
    Damaged(String),
    /// It describes more runs than are read.
    #[error("the file describes {0} runs; at most {RUNS_MAX} are read")]
    Runs(usize),
    /// A later version wrote it.
    #[error("written by a newer punctual (layout {0}); this one reads layout {FILE_VERSION}")]
    Newer(u32),
    /// Reading failed.
    #[error("cannot be read: {0}")]
    Io(#[from] std::io::Error),
}

/// How a file ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileEnding {
    /// With its end block.
    Complete,
    /// With its end block, which marks an early end of the recording.
    Early,
    /// Cut off, as after `kill -9`: all blocks before the cut were read.
    Incomplete,
    /// Everything before the damage was read, nothing after it.
    Damaged {
        /// Offset of the block that is damaged, bytes from the start of the file.
        at_byte: u64,
        /// What is wrong with it.
        why: String,
    },
}
