//! Values of a file of tasks: durations with units, policies, bytes.
//!
//! Pure; the grammar of durations is that of the command line.

use punctual::periodic::{OnOverrun, Period};
use punctual::process::{Restart, Spec};
use punctual::wait_policy::WaitKind;
use punctual_analysis::quantity;
use punctual_core::time::Span;
use punctual_os::affinity::CPUS_MAX;

use super::error::TaskFileError;
use super::keys::{Keys, Word};
use super::text::Text;
use crate::waits::WAITS;

/// Where the whole grid lies on CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GridPhase {
    /// This many ns after its zero.
    At(u64),
    /// Away from the kernel's tick.
    Quiet,
}

/// What a name is.
pub(super) const NAME: &str =
    "invalid name: use at most 48 letters, digits, '-', '_' and '.', with no '.' first";

/// The number of a CPU.
pub(super) fn cpu(keys: &mut Keys<'_, '_>) -> Result<Option<u32>, TaskFileError> {
    let number = keys.number("cpu", 0..=u64::from(CPUS_MAX) - 1)?;
    Ok(number.and_then(|number| number.try_into().ok()))
}

/// A positive duration.
pub(super) fn span(text: &Text<'_>, word: &Word) -> Result<Span, TaskFileError> {
    quantity::duration(word.get_ref()).map_err(|why| text.at(word, &why.to_string()))
}

/// A positive duration, ns.
pub(super) fn ns(text: &Text<'_>, word: &Word) -> Result<u64, TaskFileError> {
    span(text, word).map(|span| span.as_ns().unsigned_abs())
}

/// A duration that may be nothing, ns.
pub(super) fn phase_ns(text: &Text<'_>, word: &Word) -> Result<u64, TaskFileError> {
    if word.get_ref() == "0" { Ok(0) } else { ns(text, word) }
}

/// A period.
pub(super) fn period(text: &Text<'_>, word: &Word) -> Result<Period, TaskFileError> {
    let period = Period::from_ns(ns(text, word)?);
    period.ok_or_else(|| text.at(word, "period must be at most 2^62 ns"))
}

/// `zero`, `quiet` or a duration.
pub(super) fn grid_phase(text: &Text<'_>, word: Option<&Word>) -> Result<GridPhase, TaskFileError> {
    match word {
        None => Ok(GridPhase::At(0)),
        Some(word) if word.get_ref() == "zero" => Ok(GridPhase::At(0)),
        Some(word) if word.get_ref() == "quiet" => Ok(GridPhase::Quiet),
        Some(word) => ns(text, word).map(GridPhase::At),
    }
}

/// A way to wait, by its name in the table of them; only one that learns takes a budget.
pub(super) fn wait(
    text: &Text<'_>,
    word: Option<&Word>,
    budget: Option<&Word>,
) -> Result<WaitKind, TaskFileError> {
    let share = budget
        .map(|word| quantity::share(word.get_ref()).map_err(|why| text.at(word, &why.to_string())))
        .transpose()?
        .map_or(0.1, quantity::Share::as_one);
    let way = match word {
        None => WaitKind::Sleep,
        Some(word) => {
            let row = WAITS.iter().find(|row| row.name == word.get_ref());
            let names = || WAITS.iter().map(|row| row.name).collect::<Vec<_>>().join(", ");
            let row =
                row.ok_or_else(|| text.at(word, &format!("wait must be one of {}", names())))?;
            row.kind(None, share)
        }
    };
    match (way, budget) {
        (WaitKind::Adaptive(_), _) | (_, None) => Ok(way),
        (_, Some(budget)) => Err(text.at(budget, "budget requires wait = \"adaptive\"")),
    }
}

/// What an overrun does.
pub(super) fn overrun(text: &Text<'_>, word: &Word) -> Result<OnOverrun, TaskFileError> {
    let number =
        |most: &str| most.parse().ok().filter(|most: &u32| (1..=Spec::BURST_MAX).contains(most));
    match word.get_ref().as_str() {
        "skip" => Ok(OnOverrun::Skip),
        "delay" => Err(text.at(
            word,
            "delay would move the phase, which the supervisor of a process fixes: use skip or \
             \"burst N\"",
        )),
        "terminate" => Ok(OnOverrun::Terminate),
        "stop" => Ok(OnOverrun::Stop),
        "external" => Err(text.at(
            word,
            "a process that is paced by a device needs no releases: run it without the supervisor",
        )),
        other => {
            other.strip_prefix("burst ").and_then(number).map(OnOverrun::Burst).ok_or_else(|| {
                text.at(word, "overrun must be skip, \"burst N\" (1 to 16), terminate or stop")
            })
        }
    }
}

/// When a process is started again, and otherwise as by default.
pub(super) fn restart(text: &Text<'_>, word: &Word) -> Result<Restart, TaskFileError> {
    match word.get_ref().as_str() {
        "never" => Ok(Restart::default()),
        "on-failure" => Ok(Restart::ON_FAILURE),
        "always" => Ok(Restart::ALWAYS),
        _ => Err(text.at(word, "restart must be never, on-failure or always")),
    }
}

/// Bytes as pairs of hexadecimal digits, with spaces between as one likes; made up with zeros to a
/// multiple of 8.
pub(super) fn bytes(text: &Text<'_>, word: &Word) -> Result<Vec<u8>, TaskFileError> {
    let refused = || text.at(word, "safe must be 1 to 4096 bytes as pairs of hex digits");
    let mut bytes = hex(word.get_ref()).ok_or_else(refused)?;
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    Ok(bytes)
}

/// 1 to 4096 bytes as pairs of hexadecimal digits, with any spaces between them.
pub fn hex(text: &str) -> Option<Vec<u8>> {
    let mut digits = text.chars().filter(|c| *c != ' ');
    let mut bytes = Vec::new();
    while let Some(high) = digits.next() {
        let (high, low) = (high.to_digit(16)?, digits.next()?.to_digit(16)?);
        bytes.push((high * 16 + low) as u8);
    }
    (1..=4_096).contains(&bytes.len()).then_some(bytes)
}
