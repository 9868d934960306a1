//! EtherCAT with distributed clocks: whether the master's frame arrives in time for SYNC0.
//!
//! The frame is sent at the master's wake and must have passed all slaves before SYNC0, which is
//! `shift` later: J ≤ shift − frame time − propagation − copying (OST, Open Source EtherCAT wiki,
//! on bus shift and master shift). With *master shift* the slaves' clock leads and only a late
//! frame matters: the *largest lateness*. With *bus shift* the slaves follow the master, so that
//! its *peak-to-peak* about the grid is that of SYNC0 too.

use punctual_core::time::Span;

use super::timing::{Lack, Timing};
use super::{Application, Assess, Formula, Model};
use super::{MaybeZero, Parameter, Value, Values};

const SOURCE: &str = "J ≤ shift − frame − propagation − copy (OST EtherCAT wiki)";

const MODE: Parameter<SyncMode> = Parameter::or("master-shift", "mode", "Which clock leads");
const SHIFT: Parameter<Span> =
    Parameter::required("shift", "From the master's release to SYNC0: 300us");
const FRAME: Parameter<Span> = Parameter::required("frame", "Time of the frame on the wire: 120us");
const PROPAGATION: Parameter<MaybeZero> = Parameter::optional(
    "propagation",
    "Propagation delay of the frame through all slaves [default: none]",
);
const COPY: Parameter<MaybeZero> =
    Parameter::optional("copy", "Time of the slaves to copy their outputs [default: none]");
const SYNC_ALLOWED: Parameter<Span> =
    Parameter::optional("sync-allowed", "With bus-shift: how much SYNC0 may move, peak to peak");

/// Its row in the table of models.
pub(super) const MODEL: Model = Model {
    name: "ethercat",
    about: "Whether EtherCAT frames are sent in time for SYNC0",
    formulas: &[Formula {
        subject: "",
        formula: "J ≤ shift − frame − propagation − copy; with bus shift, SYNC0 moves as the \
                  master does",
        decides: "largest lateness; with bus shift, peak-to-peak too",
        source: "OST EtherCAT wiki",
    }],
    parameters: &[&MODE, &SHIFT, &FRAME, &PROPAGATION, &COPY, &SYNC_ALLOWED],
    build,
};

fn build(values: &Values) -> Result<Box<dyn Assess>, String> {
    let sync_allowed_ns = SYNC_ALLOWED.find(values)?.map(|span| span.as_ns().unsigned_abs());
    let mode = match (MODE.value(values)?, sync_allowed_ns) {
        (SyncMode::Bus, sync_allowed_ns) => Mode::BusShift { sync_allowed_ns },
        (SyncMode::Master, None) => Mode::MasterShift,
        (SyncMode::Master, Some(_)) => {
            return Err("--sync-allowed needs --mode bus-shift".to_owned());
        }
    };
    Ok(Box::new(Ethercat {
        mode,
        shift_ns: SHIFT.ns(values)?,
        frame_ns: FRAME.ns(values)?,
        propagation_ns: PROPAGATION.ns(values)?,
        copy_ns: COPY.ns(values)?,
    }))
}

/// Which clock leads, as it is written.
enum SyncMode {
    Master,
    Bus,
}

impl Value for SyncMode {
    const NAME: &'static str = "MODE";
    const EXAMPLE: &'static str = "bus-shift";
    const CHOICES: &'static [(&'static str, &'static str)] = &[
        ("master-shift", "A slave's: only late frames matter"),
        ("bus-shift", "The master's: SYNC0 moves with its frames"),
    ];

    fn read(text: &str) -> Result<Self, String> {
        match text {
            "master-shift" => Ok(Self::Master),
            "bus-shift" => Ok(Self::Bus),
            mode => Err(format!("{mode} is not a mode; expected master-shift or bus-shift")),
        }
    }
}

/// Which clock leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// A slave's; the master shifts itself to it.
    MasterShift,
    /// The master's; the bus is shifted to it. With what SYNC0 may move peak to peak, ns.
    BusShift {
        /// `None`: not judged.
        sync_allowed_ns: Option<u64>,
    },
}

/// The set-up of the bus. Times in ns, ≥ 0.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ethercat {
    /// Which clock leads.
    mode: Mode,
    /// From the master's release to SYNC0.
    shift_ns: f64,
    /// Time of the frame on the wire.
    frame_ns: f64,
    /// Way of the frame through all slaves.
    propagation_ns: f64,
    /// Time of the slaves to copy their outputs.
    copy_ns: f64,
}

impl Assess for Ethercat {
    fn impact(&self, timing: &Timing) -> Result<Application, Lack> {
        let largest = timing.largest_lateness()?;
        let allowed_ns = self.shift_ns - self.frame_ns - self.propagation_ns - self.copy_ns;
        let late_ns = largest.value_ns.max(0.0);
        let shown = |ns: f64| Span::from_ns(ns.round() as i64);
        let outcome = if late_ns < allowed_ns { "came in time" } else { "came too late" };
        let statement = format!(
            "frames {outcome}: up to {} late, and {} is allowed before SYNC0",
            shown(late_ns),
            shown(allowed_ns)
        );
        let impact = Application::new("ethercat", SOURCE, statement, vec![largest])
            .figure("shift", self.shift_ns, "ns")
            .figure("lateness allowed", allowed_ns, "ns")
            .figure("send margin", allowed_ns - late_ns, "ns")
            .demand(late_ns, allowed_ns);
        let Mode::BusShift { sync_allowed_ns } = self.mode else { return Ok(impact) };
        let spread = timing.grid_pp()?;
        let sync_ns = spread.value_ns;
        let mut impact = impact.figure("SYNC0 peak to peak", sync_ns, "ns");
        impact.statement += &format!("; SYNC0 itself moves by {}, peak to peak", shown(sync_ns));
        impact.basis.push(spread);
        Ok(match sync_allowed_ns {
            None => impact,
            Some(allowed) => impact
                .figure("SYNC0 peak to peak allowed", allowed as f64, "ns")
                .demand(sync_ns, allowed as f64),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::impact::tests::value;
    use crate::impact::timing::Suits;
    use proptest::prelude::*;

    fn bus(mode: Mode) -> Ethercat {
        // A shift of 30 % of 1 ms, a frame of 1 500 bytes at 100 Mbit/s, 50 slaves of 1 µs.
        Ethercat { mode, shift_ns: 300e3, frame_ns: 120e3, propagation_ns: 50e3, copy_ns: 10e3 }
    }

    #[test]
    fn by_hand() {
        let impact = bus(Mode::MasterShift).impact(&Timing::given(100e3, None)).unwrap();
        assert_eq!(value(&impact, "lateness allowed"), 120e3);
        assert_eq!(value(&impact, "send margin"), 20e3);
        assert_eq!(impact.answer, Some(Suits::Yes));
        assert!((impact.margin.unwrap() - 1.0 / 6.0).abs() < 1e-9);
        let late = bus(Mode::MasterShift).impact(&Timing::given(130e3, None)).unwrap();
        assert_eq!(late.answer, Some(Suits::No));
    }

    #[test]
    fn with_bus_shift_the_master_moves_the_slaves() {
        let strict = Mode::BusShift { sync_allowed_ns: Some(1_000) };
        let timing = Timing::given(100e3, None);
        assert_eq!(bus(strict).impact(&timing).unwrap().answer, Some(Suits::No));
        let loose = Mode::BusShift { sync_allowed_ns: None };
        let impact = bus(loose).impact(&timing).unwrap();
        assert_eq!((impact.answer, impact.basis.len()), (Some(Suits::Yes), 2));
    }

    #[test]
    fn a_shift_that_the_frame_alone_fills_is_no() {
        let full = Ethercat { shift_ns: 100e3, ..bus(Mode::MasterShift) };
        let impact = full.impact(&Timing::given(0.0, None)).unwrap();
        assert_eq!(impact.answer, Some(Suits::No));
    }

    proptest! {
        #[test]
        fn more_time_error_is_never_better(
            shift in 0.0f64..1e12, less in 0.0f64..1e15, more in 0.0f64..1e15,
        ) {
            let bus = Ethercat { shift_ns: shift, ..bus(Mode::MasterShift) };
            let margin = |ns| bus.impact(&Timing::given(ns, None)).unwrap().margin.unwrap();
            prop_assert!(margin(less.min(more)) >= margin(less.max(more)));
        }
    }
}
