//! Stimuli from outside the machine: one machine stimulates and measures, another one responds.
//!
//! For `stimulate` and `respond`. Nothing that the responding machine says is trusted: latencies
//! are taken where the stimuli are sent. Frames carry version, session and number, so that what is
//! lost, late, doubled, replayed or foreign is counted as that. Never prints.

mod answers;
mod frame;
mod link;
mod outcome;
mod respond;
mod stimulate;

pub use frame::VERSION;
pub use link::{Link, LinkName};
pub use outcome::{Loopback, Others, RespondOutcome, StimulateOutcome};
pub use respond::RespondExperiment;
pub use stimulate::{STIMULI_MAX, StimulateExperiment};
