//! Values of a file of tasks: durations with units, policies, bytes.
//!
//! Pure; the grammar of durations is that of the command line.

use super::GridPhase;
use super::error::{FileError, Text};
use super::keys::{Keys, Word};
use punctual::core::time::Span;
use punctual::core::wait::Spin;
use punctual::os::affinity::CPUS_MAX;
use punctual::periodic::{OnOverrun, Period};
use punctual::process::{Spec, When};
use punctual::wait_policy::Way;
use punctual_analysis::quantity;

/// What a name is.
pub(super) const NAME: &str =
    "no name: letters, digits, '-', '_' and '.', 48 at most, no '.' first";

/// The number of a CPU.
pub(super) fn cpu(keys: &mut Keys<'_, '_>) -> Result<Option<u32>, FileError> {
    let number = keys.number("cpu", 0..=u64::from(CPUS_MAX) - 1)?;
    Ok(number.and_then(|number| number.try_into().ok()))
}

/// A positive duration.
pub(super) fn span(text: &Text<'_>, word: &Word) -> Result<Span, FileError> {
    quantity::duration(word.get_ref()).map_err(|why| text.at(word, &why.to_string()))
}

/// A positive duration, ns.
pub(super) fn ns(text: &Text<'_>, word: &Word) -> Result<u64, FileError> {
    span(text, word).map(|span| span.as_ns().unsigned_abs())
}

/// A duration that may be nothing, ns.
pub(super) fn phase_ns(text: &Text<'_>, word: &Word) -> Result<u64, FileError> {
    if word.get_ref() == "0" { Ok(0) } else { ns(text, word) }
}

/// A period.
pub(super) fn period(text: &Text<'_>, word: &Word) -> Result<Period, FileError> {
    let period = Period::from_ns(ns(text, word)?);
    period.ok_or_else(|| text.at(word, "a period is at most 2^62 ns"))
}

/// `zero`, `quiet` or a duration.
pub(super) fn grid_phase(text: &Text<'_>, word: Option<&Word>) -> Result<GridPhase, FileError> {
    match word {
        None => Ok(GridPhase::At(0)),
        Some(word) if word.get_ref() == "zero" => Ok(GridPhase::At(0)),
        Some(word) if word.get_ref() == "quiet" => Ok(GridPhase::Quiet),
        Some(word) => ns(text, word).map(GridPhase::At),
    }
}

/// A way to wait; a budget is for the adaptive one alone.
pub(super) fn wait(
    text: &Text<'_>,
    word: Option<&Word>,
    budget: Option<&Word>,
) -> Result<Way, FileError> {
    let share = budget
        .map(|word| quantity::share(word.get_ref()).map_err(|why| text.at(word, &why.to_string())))
        .transpose()?
        .map_or(0.1, quantity::Share::as_one);
    let way = match word.map_or("sleep", |word| word.get_ref().as_str()) {
        "sleep" => Way::Sleep,
        "fixed" => Way::Fixed(Spin::FIXED),
        "adaptive" => return Ok(Way::Adaptive(share)),
        _ => {
            let what = "a way to wait is sleep, fixed or adaptive";
            return Err(word.map_or_else(|| FileError::new(None, what), |word| text.at(word, what)));
        }
    };
    match budget {
        Some(budget) => Err(text.at(budget, "a budget is for wait = \"adaptive\"")),
        None => Ok(way),
    }
}

/// What an overrun does.
pub(super) fn overrun(text: &Text<'_>, word: &Word) -> Result<OnOverrun, FileError> {
    let number =
        |most: &str| most.parse().ok().filter(|most: &u32| (1..=Spec::BURST_MAX).contains(most));
    match word.get_ref().as_str() {
        "skip" => Ok(OnOverrun::Skip),
        "delay" => Err(text.at(
            word,
            "a process cannot move its phase, which its supervisor keeps: skip, or \"burst N\"",
        )),
        "terminate" => Ok(OnOverrun::Terminate),
        "stop" => Ok(OnOverrun::Stop),
        "external" => Err(text.at(
            word,
            "a process that its device paces needs no releases: run it beside the supervisor",
        )),
        other => {
            other.strip_prefix("burst ").and_then(number).map(OnOverrun::Burst).ok_or_else(|| {
                text.at(word, "an overrun leads to skip, \"burst N\" (1 to 16), terminate or stop")
            })
        }
    }
}

/// When a process is started again.
pub(super) fn when(text: &Text<'_>, word: &Word) -> Result<When, FileError> {
    match word.get_ref().as_str() {
        "never" => Ok(When::Never),
        "on-failure" => Ok(When::OnFailure),
        "always" => Ok(When::Always),
        _ => Err(text.at(word, "a task is restarted never, on-failure or always")),
    }
}

/// Bytes as pairs of hexadecimal digits, with spaces between as one likes; made up with zeros to a
/// multiple of 8.
pub(super) fn bytes(text: &Text<'_>, word: &Word) -> Result<Vec<u8>, FileError> {
    let refused = || text.at(word, "a safe value is 1 to 4096 bytes as pairs of hex digits");
    let mut digits = word.get_ref().chars().filter(|c| *c != ' ');
    let mut bytes = Vec::new();
    while let Some(high) = digits.next() {
        let low = digits.next().and_then(|c| c.to_digit(16)).ok_or_else(refused)?;
        let high = high.to_digit(16).ok_or_else(refused)?;
        bytes.push((high * 16 + low) as u8);
    }
    if bytes.is_empty() || bytes.len() > 4_096 {
        return Err(refused());
    }
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    Ok(bytes)
}
