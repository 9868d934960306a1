//! What a time error does to a machine, in the unit of its user's work.
//!
//! Formulas with their sources; no measuring, no guessing of inputs. Each model takes the statistic
//! that is right for it out of [`timing::Timing`], with the evidence for the number.
//!
//! A new model is a file here, its `mod` line and its row in [`MODELS`]: subcommand, options,
//! `--help`, man page and the table of docs/impact.md come from the row. [`stepper`] is not in the
//! table, because it has figures of its own.

pub mod application;
mod audio;
pub mod drives;
mod ethercat;
pub mod model;
mod pacing;
pub mod parameter;
mod position;
mod pwm;
mod quadrature;
mod safety;
mod sampling;
mod servo;
pub mod step_generation;
pub mod stepper;
pub mod timing;
mod tsn;
mod velocity;

use model::{Formula, Model};

/// Every model, in the order of `--help` and of the documentation.
pub static MODELS: &[Model] = &[
    Model {
        name: "servo",
        about: "Phase that delay costs a control loop, and how much varying delay it tolerates",
        formulas: &[
            Formula {
                of: "phase",
                formula: "360°·f_c·(h/2 + delay + mean lateness)",
                decides: "mean lateness: a loop filters what varies",
                source: "Åström, Wittenmark, Computer-Controlled Systems",
            },
            Formula {
                of: "stability",
                formula: "delays that vary within [0, J] are tolerated if J < min \
                         1/(ω\\|T(jω)\\|); \
                          J_max = 1/ω_c for ω_c/(s(1 + s/3ω_c))",
                decides: "largest lateness (its range, for a loop given by points): the bound is \
                          for the worst case",
                source: "Kao, Lincoln, Automatica 40 (2004); Cervin et al., RTCSA 2004",
            },
        ],
        parameters: servo::PARAMETERS,
        build: servo::build,
    },
    Model {
        name: "sampling",
        about: "Signal-to-noise ratio of a signal that is sampled at varying instants",
        formulas: &[Formula {
            of: "",
            formula: "SNR = −20·log₁₀(2πfσ) dB; N bits need σ ≤ 1/(2πf·2^N·√1.5)",
            decides: "rms about the grid: noise power; delay and drift add none",
            source: "Analog Devices MT-007, AN-501",
        }],
        parameters: sampling::PARAMETERS,
        build: sampling::build,
    },
    Model {
        name: "audio",
        about: "Mean time between audio dropouts (xruns)",
        formulas: &[Formula {
            of: "",
            formula: "slack = (n − 1)·B/f_s − C; time between dropouts = B/(f_s·P(lateness > \
                      slack))",
            decides: "tail at the slack, as an upper bound; three over n where none was that late",
            source: "by definition",
        }],
        parameters: audio::PARAMETERS,
        build: audio::build,
    },
    Model {
        name: "quadrature",
        about: "Edges of an encoder that software can count",
        formulas: &[Formula {
            of: "",
            formula: "f ≤ 1/(P + J)",
            decides: "largest interval: the longest wait from look to look, missed releases \
                      included",
            source: "by definition",
        }],
        parameters: quadrature::PARAMETERS,
        build: quadrature::build,
    },
    Model {
        name: "position",
        about: "Position, contour or trigger error of something that moves",
        formulas: &[Formula {
            of: "",
            formula: "error = v·J",
            decides: "peak-to-peak about the grid: a constant delay is calibrated away",
            source: "by definition",
        }],
        parameters: position::PARAMETERS,
        build: position::build,
    },
    Model {
        name: "velocity",
        about: "Ripple of a speed that is computed with the nominal period",
        formulas: &[Formula {
            of: "",
            formula: "δv/v = δt/h",
            decides: "largest \\|interval\\|; its standard deviation is the usual ripple",
            source: "by definition",
        }],
        parameters: velocity::PARAMETERS,
        build: velocity::build,
    },
    Model {
        name: "ethercat",
        about: "Whether EtherCAT frames are sent in time for SYNC0",
        formulas: &[Formula {
            of: "",
            formula: "J ≤ shift − frame − propagation − copy; with bus shift, SYNC0 moves as the \
                      master does",
            decides: "largest lateness; with bus shift, peak-to-peak too",
            source: "OST EtherCAT wiki",
        }],
        parameters: ethercat::PARAMETERS,
        build: ethercat::build,
    },
    Model {
        name: "tsn",
        about: "Packets that miss their time in the earliest-txtime-first queue",
        formulas: &[Formula {
            of: "",
            formula: "P(drop) = P(lateness > delta); delta ≥ Q(1 − p)",
            decides: "tail at delta, as an upper bound",
            source: "tc-etf(8)",
        }],
        parameters: tsn::PARAMETERS,
        build: tsn::build,
    },
    Model {
        name: "pacing",
        about: "Bursts of a paced stream",
        formulas: &[Formula {
            of: "",
            formula: "burst = rate·J",
            decides: "largest interval: what accumulates meanwhile",
            source: "by definition",
        }],
        parameters: pacing::PARAMETERS,
        build: pacing::build,
    },
    Model {
        name: "pwm",
        about: "Effective bits of pulse-width modulation by software",
        formulas: &[Formula {
            of: "",
            formula: "effective bits log₂(T/J)",
            decides: "peak-to-peak about the grid: both edges move in it",
            source: "by definition",
        }],
        parameters: pwm::PARAMETERS,
        build: pwm::build,
    },
    Model {
        name: "safety",
        about: "Reaction time of a sampled loop, at the worst phase",
        formulas: &[Formula {
            of: "",
            formula: "reaction ≤ 2P + C + L",
            decides: "largest lateness, or the largest interval where releases were missed",
            source: "by definition",
        }],
        parameters: safety::PARAMETERS,
        build: safety::build,
    },
];

#[cfg(test)]
mod tests;
