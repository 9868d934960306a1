//! Why a wake was late: the timeline of each CPU, an account of every nanosecond from the release
//! to the first instruction, and named causes.
//!
//! Pure: events in, an account out. Opens no file, reads no clock. Memory is bounded from the
//! beginning, whatever the length of the capture ([`config::BlameBounds`]); what does not fit is
//! counted ([`outcome::BlameCounts`]).
//!
//! | module | what it holds |
//! |---|---|
//! | [`blame`] | events in, outcome out: [`blame::Blame`] |
//! | [`config`], `machine` | who is followed, what is late, bounds; the machine, who ran at first |
//! | [`symbols`], [`calls`] | names of kernel addresses and system calls; what a call chain shows |
//! | [`timeline`] | what a CPU did when |
//! | `ring`, `spread` | records kept while there is room; how figures lie |
//! | `timers`, `senders` | what is programmed, who interrupts whom |
//! | `tasks`, [`programs`], [`culprits`] | who is who, and whose; the threads behind a cause |
//! | `followed`, `thread`, `figures` | the threads that are followed; what is learnt of each |
//! | [`past`], `pace` | what such a thread did, in pieces; its period and margin |
//! | [`wake`], [`release`], `begin` | a wait cut out, or summed up |
//! | `facts`, `normal` | what a wake is judged by beside its events; what is usual |
//! | [`counters`] | what a processor counted around a wake |
//! | [`stall`], `frequency` | the host or interrupts off; a CPU that is slower than usual |
//! | `rules`, `account`, [`part`], [`cause`] | each stretch to a cause, exactly |
//! | `ledger`, `addresses`, [`keep`], `court` | sums of all wakes, the worst ones whole |
//! | [`unseen`] | wakes across which events were lost |
//! | [`recall`] | what a capture of late wakes alone needs beside its events |
//! | [`table`], [`share`], [`advice`], [`outcome`] | causes with shares, evidence, and what to do |
//!
//! ```
//! use punctual_blame::blame::Blame;
//! use punctual_blame::config::{BlameConfig, LateThreshold};
//!
//! let config = BlameConfig { late: LateThreshold::Above(20_000), ..BlameConfig::default() };
//! let blame = Blame::new(config);
//! // For each event: blame.push(&event);
//! assert!(blame.finish().table.sentence.starts_with("No wake was seen: "));
//! ```
#![forbid(unsafe_code)]

mod account;
mod addresses;
pub mod advice;
mod begin;
pub mod blame;
pub mod calls;
pub mod cause;
pub mod config;
pub mod counters;
mod court;
pub mod culprits;
mod facts;
mod figures;
mod followed;
mod frequency;
pub mod keep;
mod ledger;
mod machine;
mod normal;
pub mod outcome;
mod pace;
pub mod part;
mod passed;
pub mod past;
mod path;
pub mod programs;
pub mod recall;
pub mod release;
mod ring;
mod rules;
pub mod senders;
pub mod share;
mod spread;
pub mod stall;
pub mod symbols;
pub mod table;
mod tasks;
mod thread;
pub mod timeline;
mod timers;
pub mod unseen;
pub mod wake;
