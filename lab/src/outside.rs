//! Stimuli from outside the machine: one machine stimulates and measures, another one responds.
//!
//! For `stimulate` and `respond`. Nothing that the responding machine says is trusted: latencies
//! are taken where the stimuli are sent. Frames carry version, session and number, so that what is
//! lost, late, doubled, replayed or foreign is counted as that. Never prints.

mod decoder;
pub mod frame;
mod link;
mod respond;
mod stimulate;

use punctual_analysis::summary::SummaryStats;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use frame::VERSION;
pub use link::{Link, LinkName};
pub use respond::RespondExperiment;
pub use stimulate::{STIMULI_MAX, StimulateExperiment};

/// The answers of another machine to stimuli of this one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StimulateOutcome {
    /// Where the stimuli went: "udp:192.0.2.7:7000", "serial:/dev/ttyS0".
    pub link: String,
    /// From one stimulus to the next.
    pub period_ns: u64,
    /// The CPU of the thread that sends and receives; null where it was left to the kernel.
    pub cpu: Option<u32>,
    /// This machine alone, before anything else: over its loopback device, or a pseudo-terminal.
    /// Nothing is subtracted for it.
    pub loopback: Loopback,
    /// Stimuli that were sent.
    pub stimuli: u64,
    /// Stimuli that were not sent, because this machine was late by a period or the link was full.
    pub not_sent: u64,
    /// Lateness of the sent stimuli, against their grid.
    pub sent_late_ns: SummaryStats,
    /// Stimuli that were answered.
    pub answered: u64,
    /// Of those, the ones whose answer came when the next stimulus was due, or later.
    pub late: u64,
    /// Stimuli that were sent and not answered.
    pub lost: u64,
    /// From before a stimulus was sent until after its answer was read.
    pub latency_ns: SummaryStats,
    /// Other arrivals.
    pub others: Others,
    /// Why it ended before its time: no responder, another version, the link was lost; null where
    /// it did not.
    pub ended: Option<String>,
}

/// One frame after the other from one end to the other, within one thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Loopback {
    /// Frames.
    pub n: u64,
    /// From before a frame was sent until after it was read.
    pub time_ns: SummaryStats,
}

/// Arrivals that were no stimulus or answer that was due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Others {
    /// Answers to a stimulus that had its answer.
    pub duplicates: u64,
    /// Frames with a number that was passed or not sent yet, or of a session that is over.
    pub replayed: u64,
    /// Bytes that are no frame, damaged frames, and those of another sender or of a session that is
    /// not known.
    pub foreign: u64,
    /// Frames of another version of the protocol.
    pub wrong_version: u64,
}

/// The stimuli of another machine that this one answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RespondOutcome {
    /// Where they came from: "udp:0.0.0.0:7000", "serial:/dev/ttyS0".
    pub link: String,
    /// The CPU of the thread that answers; null where it was left to the kernel.
    pub cpu: Option<u32>,
    /// The policy that it really had: "SCHED_FIFO".
    pub policy: String,
    /// Its priority, as the kernel counts; null for SCHED_OTHER.
    pub priority: Option<u8>,
    /// Sessions that were opened.
    pub sessions: u64,
    /// Stimuli that were answered.
    pub answered: u64,
    /// Numbers that never arrived: stimuli that were lost on the way.
    pub skipped: u64,
    /// Answers that the link did not take.
    pub not_sent: u64,
    /// From after a stimulus was read until after its answer was sent.
    pub answer_ns: SummaryStats,
    /// Other arrivals.
    pub others: Others,
    /// Why it ended before its time: the link was lost; null where it did not.
    pub ended: Option<String>,
}
