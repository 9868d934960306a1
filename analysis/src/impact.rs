//! What a time error does to a machine, in the unit of its user's work.
//!
//! Formulas with their sources; no measuring, no guessing of inputs. Each model takes the statistic
//! that is right for it out of [`timing::Timing`], with the evidence for the number.
//!
//! A new model is a file here, its `mod` line and its row in [`MODELS`]: subcommand, options,
//! `--help`, man page and the table of docs/impact.md come from the row. [`stepper`] is not in the
//! table, because it has figures of its own.

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
mod tests {
    use super::MODELS;
    use super::parameter::{Presence, Values};
    use super::timing::{Bound, Timing};
    use crate::claim::Level;
    use crate::impact::model::{Application, Suits};
    use crate::recording::{Recording, RecordingConfig};
    use punctual_core::sample::{Flags, Sample};
    use punctual_core::time::{Period, Span};

    /// A number by its name.
    pub(super) fn value(impact: &Application, name: &str) -> f64 {
        let figure = impact.figures.iter().find(|figure| figure.name == name);
        figure.and_then(|figure| figure.value).unwrap_or_else(|| panic!("no {name} in {impact:?}"))
    }

    /// A run of 100 000 cycles with that largest lateness and those bounds (lateness, p).
    pub(super) fn run_like(max_ns: f64, bounds: &[(f64, f64)]) -> Timing {
        let bounds = bounds.iter();
        let bound = |&(above_ns, p): &(f64, f64)| Bound { above_ns, p, level: Level::L1 };
        Timing {
            lateness_ns: [Some(0.0), Some(max_ns / 10.0), Some(max_ns)],
            bounds: bounds.map(bound).collect(),
            given: false,
            ..Timing::given(max_ns, Some(100_000))
        }
    }

    #[test]
    fn a_recording_gives_each_statistic_with_its_evidence() {
        let period = Period::from_ns(1_000_000);
        let mut recording =
            Recording::new(RecordingConfig { period, ..RecordingConfig::default() });
        for cycle in 0..10_000u64 {
            let lateness = Span::from_ns(1_000 + (cycle as i64 * 7_919) % 4_001);
            recording.push(&Sample { cycle, lateness, flags: Flags::NONE });
        }
        let timing = Timing::of(&recording.finish(0), Some(1_000_000));
        let largest = timing.largest_lateness().unwrap();
        assert_eq!(
            (largest.value_ns, largest.level, largest.n),
            (5_000.0, Some(Level::L0), Some(10_000))
        );
        let p = largest.p.unwrap();
        assert!((2.9e-4..1e-3).contains(&p), "three over n, over the extremal index: {p}");
        assert!(
            largest.words().starts_with("L0: largest lateness 5.00 µs, observed in 10000 cycles")
        );
        // Claims are made of tails: up to 4 µs only the median is known.
        assert_eq!(timing.p_above(4_000.0).map(|bound| bound.p), Some(0.5));
        assert!(timing.p_above(1e6).unwrap().p <= p);
        assert!(timing.exceeded_by(1e-9).is_none(), "so few cycles say nothing of that");
        assert_eq!(timing.period_ns(None), Ok(1e6));
        assert!(timing.grid_pp().unwrap().value_ns > 3_000.0);
    }

    #[test]
    fn cold_cycles_that_were_left_out_are_not_in_n() {
        let period = Period::from_ns(1_000_000);
        let setup = RecordingConfig { period, leave_out_cold: true, ..RecordingConfig::default() };
        let mut recording = Recording::new(setup);
        for cycle in 0..1_000u64 {
            let flags = if cycle < 10 { Flags::COLD } else { Flags::NONE };
            recording.push(&Sample { cycle, lateness: Span::from_ns(5_000), flags });
        }
        let timing = Timing::of(&recording.finish(0), None);
        assert_eq!(timing.largest_lateness().unwrap().n, Some(990));
        let seen = timing.tail(timing.p_above(1e6).unwrap());
        assert!(seen.words().contains("share of cycles later than 5.00 µs"), "{}", seen.words());
    }

    #[test]
    fn nothing_recorded_lacks_everything_by_name() {
        let timing = Timing::of(&Recording::new(RecordingConfig::default()).finish(0), None);
        assert_eq!(
            timing.grid_pp().unwrap_err().to_string(),
            "the data have no peak-to-peak about the grid"
        );
        assert!(timing.largest_lateness().is_err() && timing.period_ns(None).is_err());
        assert!(timing.p_above(1.0).is_none());
    }

    #[test]
    fn the_worst_is_told_by_answer_then_margin() {
        let of =
            |used: f64| Application::new("x", "y", String::new(), Vec::new()).demand(used, 1.0);
        assert!(of(2.0).is_worse_than(&of(1.5)) && of(0.5).is_worse_than(&of(0.4)));
        let unknown = Application::new("x", "y", String::new(), Vec::new()).unknown();
        assert!(unknown.is_worse_than(&of(0.9)) && of(1.1).is_worse_than(&unknown));
        assert_eq!(of(0.5).demand(0.1, 1.0).margin, Some(0.5), "the tightest decides");
        assert_eq!(of(0.0).demand(1.0, 0.0).answer, Some(Suits::No));
    }

    #[test]
    fn every_model_is_built_from_what_its_row_declares() {
        let timing = Timing { period_ns: Some(1e6), ..Timing::given(15e3, Some(1_000_000)) };
        for (at, model) in MODELS.iter().enumerate() {
            assert!(MODELS[..at].iter().all(|other| other.name != model.name), "{model:?} twice");
            assert!(!model.about.is_empty() && !model.formulas.is_empty(), "{model:?}");
            let (mut needed, mut all) = (Values::default(), Values::default());
            for parameter in model.parameters {
                let name = parameter.name();
                assert!(!parameter.help().is_empty(), "{model:?} --{name}");
                assert_eq!(parameter.check(parameter.example()), Ok(()), "{model:?} --{name}");
                assert!(parameter.choices().iter().all(|(word, _)| parameter.check(word).is_ok()));
                all.set(*parameter, parameter.example());
                if parameter.presence() == Presence::Required {
                    needed.set(*parameter, parameter.example());
                    let why =
                        model.build(&Values::default()).err().expect("a parameter is missing");
                    assert!(why.ends_with(" is required"), "{model:?}: {why}");
                }
            }
            for values in [needed, all] {
                let built = model.build(&values).unwrap_or_else(|why| panic!("{model:?}: {why}"));
                let impact =
                    built.impact(&timing).unwrap_or_else(|lack| panic!("{model:?}: {lack}"));
                assert_eq!(impact.model, model.name);
                assert!(!impact.statement.is_empty() && !impact.figures.is_empty(), "{model:?}");
            }
        }
    }
}
