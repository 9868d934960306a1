//! The arguments of `punctual impact`: one struct a model, and where the timing comes from.
//!
//! Reads quantities with their units; a wrong dimension is refused under its option's name.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use punctual::core::time::Span;
use punctual_analysis::impact::servo::ClosedLoop;
use punctual_analysis::quantity::{
    Angle, BitRate, Length, LinearSpeed, Rate, Share, Size, angle, bit_rate, duration, length,
    linear_speed, rate, share, size,
};

use super::stepper::StepperArgs;

/// Applications. Exit 1 where the answer is no, or the recording is too short for one.
#[derive(Debug, Subcommand)]
pub(crate) enum Impact {
    /// Torque that a stepper motor loses, and the step rate that software can make
    Stepper(StepperArgs),
    /// Phase that delay costs a control loop, and how much varying delay it bears
    Servo(ServoArgs),
    /// Noise of a signal that is sampled at wrong instants
    Sampling(SamplingArgs),
    /// Time between dropouts of sound
    Audio(AudioArgs),
    /// Edges of an encoder that software can count
    Quadrature(QuadratureArgs),
    /// Position, contour or trigger error of something that moves
    Position(PositionArgs),
    /// Ripple of a speed that is computed with the nominal period
    Velocity(VelocityArgs),
    /// Whether EtherCAT frames are sent in time for SYNC0
    Ethercat(EthercatArgs),
    /// Packets that miss their time in the earliest-txtime-first queue
    Tsn(TsnArgs),
    /// Bursts of a paced stream
    Pacing(PacingArgs),
    /// Effective bits of pulse-width modulation by software
    Pwm(PwmArgs),
    /// Reaction time of a sampled loop, at the worst phase
    Safety(SafetyArgs),
}

/// Where the timing comes from, and where the result goes.
#[derive(Debug, Args)]
pub(crate) struct TimedArgs {
    /// Take it from a result: a directory of 'punctual check', or a result.json. The run that is
    /// worst for this application is taken
    #[arg(long, value_name = "RESULT", required_unless_present = "time_error")]
    pub(crate) from: Option<PathBuf>,
    /// Take that run of the result instead of the worst
    #[arg(long, value_name = "NAME", requires = "from")]
    pub(crate) run: Option<String>,
    /// The time error by hand, in place of a result: whichever statistic the application uses
    #[arg(
        long,
        value_name = "TIME",
        allow_hyphen_values = true,
        conflicts_with = "from",
        value_parser = duration
    )]
    pub(crate) time_error: Option<Span>,
    /// How many cycles that time error was the largest of
    #[arg(long, value_name = "N", requires = "time_error",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) cycles: Option<u64>,
    /// Write the result as JSON to FILE, or to standard output alone for '-'
    #[arg(long, value_name = "FILE|-")]
    pub(crate) json: Option<PathBuf>,
}

/// `punctual impact servo`.
#[derive(Debug, Args)]
pub(crate) struct ServoArgs {
    /// Crossover of the loop: 100Hz
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = rate)]
    pub(crate) crossover: Rate,
    /// Sampling period [default: that of the run]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration)]
    pub(crate) period: Option<Span>,
    /// From sample to actuation without any lateness [default: none]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration)]
    pub(crate) delay: Option<Span>,
    /// Phase that may be lost: 5deg
    #[arg(long, value_name = "ANGLE", allow_hyphen_values = true, value_parser = angle)]
    pub(crate) phase_allowed: Option<Angle>,
    /// The closed loop |T(jω)| by points RATE=MAGNITUDE: '10Hz=1.0,100Hz=0.9' [default: that of
    /// ω_c/(s(1 + s/3ω_c))]
    #[arg(long, value_name = "POINTS", allow_hyphen_values = true, value_parser = closed_loop)]
    pub(crate) closed_loop: Option<ClosedLoop>,
    #[command(flatten)]
    pub(crate) timed: TimedArgs,
}

/// `punctual impact sampling`.
#[derive(Debug, Args)]
pub(crate) struct SamplingArgs {
    /// Highest frequency in the signal: 1kHz
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = rate)]
    pub(crate) signal: Rate,
    /// Bits that are wanted
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) bits: Option<u8>,
    #[command(flatten)]
    pub(crate) timed: TimedArgs,
}

/// `punctual impact audio`.
#[derive(Debug, Args)]
pub(crate) struct AudioArgs {
    /// Frames per second
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = rate,
          default_value = "48kHz")]
    pub(crate) rate: Rate,
    /// Frames in a buffer
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) frames: u32,
    /// Buffers
    #[arg(long, value_name = "N", default_value_t = 2,
          value_parser = clap::value_parser!(u32).range(2..))]
    pub(crate) buffers: u32,
    /// Computing time of a buffer [default: none]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration)]
    pub(crate) compute: Option<Span>,
    /// Mean time between dropouts that is wanted: 1h
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration)]
    pub(crate) wanted: Option<Span>,
    #[command(flatten)]
    pub(crate) timed: TimedArgs,
}

/// `punctual impact quadrature`.
#[derive(Debug, Args)]
pub(crate) struct QuadratureArgs {
    /// Period of the looks [default: that of the run]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration)]
    pub(crate) period: Option<Span>,
    /// Edges per second that must be counted: 20kHz
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = rate)]
    pub(crate) edges: Option<Rate>,
    #[command(flatten)]
    pub(crate) timed: TimedArgs,
}

/// `punctual impact position`.
#[derive(Debug, Args)]
pub(crate) struct PositionArgs {
    /// How fast it moves: 10m/min
    #[arg(long, value_name = "SPEED", allow_hyphen_values = true, value_parser = linear_speed)]
    pub(crate) speed: LinearSpeed,
    /// Error that may be: 10um
    #[arg(long, value_name = "LENGTH", allow_hyphen_values = true, value_parser = length)]
    pub(crate) tolerance: Option<Length>,
    #[command(flatten)]
    pub(crate) timed: TimedArgs,
}

/// `punctual impact velocity`.
#[derive(Debug, Args)]
pub(crate) struct VelocityArgs {
    /// Nominal period [default: that of the run]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration)]
    pub(crate) period: Option<Span>,
    /// Ripple that may be: 5%
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true, value_parser = share)]
    pub(crate) tolerance: Option<Share>,
    #[command(flatten)]
    pub(crate) timed: TimedArgs,
}

/// Which clock leads an EtherCAT bus.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ModeName {
    /// A slave's: only late frames matter
    MasterShift,
    /// The master's: SYNC0 moves as it does
    BusShift,
}

/// `punctual impact ethercat`.
#[derive(Debug, Args)]
pub(crate) struct EthercatArgs {
    /// Which clock leads
    #[arg(long, value_enum, default_value = "master-shift")]
    pub(crate) mode: ModeName,
    /// From the master's release to SYNC0: 300us
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration)]
    pub(crate) shift: Span,
    /// Time of the frame on the wire: 120us
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration)]
    pub(crate) frame: Span,
    /// Way of the frame through all slaves [default: none]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration)]
    pub(crate) propagation: Option<Span>,
    /// Time of the slaves to copy their outputs [default: none]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration)]
    pub(crate) copy: Option<Span>,
    /// With bus-shift: how much SYNC0 may move, peak to peak
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration)]
    pub(crate) sync_allowed: Option<Span>,
    #[command(flatten)]
    pub(crate) timed: TimedArgs,
}

/// `punctual impact tsn`.
#[derive(Debug, Args)]
pub(crate) struct TsnArgs {
    /// How long before its time a packet is handed over: 300us
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration)]
    pub(crate) delta: Span,
    /// Share of packets that may be lost: 1ppm
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true, value_parser = share)]
    pub(crate) losses: Option<Share>,
    #[command(flatten)]
    pub(crate) timed: TimedArgs,
}

/// `punctual impact pacing`.
#[derive(Debug, Args)]
pub(crate) struct PacingArgs {
    /// Rate of the stream: 1Gbit/s
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = bit_rate)]
    pub(crate) rate: BitRate,
    /// Buffer that there is: 8KiB
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = size)]
    pub(crate) buffer: Option<Size>,
    #[command(flatten)]
    pub(crate) timed: TimedArgs,
}

/// `punctual impact pwm`.
#[derive(Debug, Args)]
pub(crate) struct PwmArgs {
    /// Pulses per second: 1kHz
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = rate)]
    pub(crate) pulses: Rate,
    /// Bits that are wanted
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) bits: Option<u8>,
    #[command(flatten)]
    pub(crate) timed: TimedArgs,
}

/// `punctual impact safety`.
#[derive(Debug, Args)]
pub(crate) struct SafetyArgs {
    /// Period of the loop [default: that of the run]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration)]
    pub(crate) period: Option<Span>,
    /// Computing time [default: none]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration)]
    pub(crate) compute: Option<Span>,
    /// Reaction that is demanded: 5ms
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration)]
    pub(crate) reaction: Option<Span>,
    #[command(flatten)]
    pub(crate) timed: TimedArgs,
}

/// `10Hz=1.0,100Hz=0.9`.
fn closed_loop(text: &str) -> Result<ClosedLoop, String> {
    let point = |point: &str| {
        let (hz, magnitude) =
            point.split_once('=').ok_or(format!("{point} is no RATE=MAGNITUDE"))?;
        let magnitude: f64 =
            magnitude.trim().parse().map_err(|_| format!("{magnitude} is no magnitude"))?;
        Ok::<_, String>((rate(hz).map_err(|why| why.to_string())?, magnitude))
    };
    let points: Vec<_> = text.split(',').map(point).collect::<Result<_, _>>()?;
    ClosedLoop::of(points).ok_or("a magnitude is positive and finite".to_owned())
}
