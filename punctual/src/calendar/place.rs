//! Where each unit has its place: those after others follow them.
//!
//! For the builder. Pure.

use std::collections::HashMap;

use super::error::{CalendarError, UnitPlace};
use super::unit::{Place, Unit};

/// When each unit is ready, ns after the start of the frame.
pub(super) fn of(
    units: &[Unit],
    names: &HashMap<&str, usize>,
    frame_ns: u64,
) -> Result<Vec<u64>, CalendarError> {
    let mut ready: Vec<Option<u64>> = vec![None; units.len()];
    let mut chain = Vec::new();
    for first in 0..units.len() {
        let mut at = first;
        // Down to one whose place is known, then back up.
        let mut end_ns = loop {
            if let Some(ready_ns) = ready[at] {
                break ready_ns.saturating_add(units[at].budget_ns);
            }
            chain.push(at);
            match &units[at].place {
                Place::At(_) => break 0,
                Place::After(..) if chain.len() > units.len() => {
                    return Err(CalendarError::Circle(units[first].name.clone()));
                }
                Place::After(of, _) => {
                    let unknown = || CalendarError::Unknown(units[at].name.clone(), of.clone());
                    at = *names.get(of.as_str()).ok_or_else(unknown)?;
                }
            }
        };
        while let Some(index) = chain.pop() {
            let ready_ns = match units[index].place {
                Place::At(ready_ns) => ready_ns,
                Place::After(_, gap_ns) => end_ns.saturating_add(gap_ns),
            };
            ready[index] = Some(ready_ns);
            end_ns = ready_ns.saturating_add(units[index].budget_ns);
        }
    }
    let ready: Vec<u64> = ready.into_iter().flatten().collect();
    for (unit, &from_ns) in units.iter().zip(&ready) {
        let placed = placed(unit, from_ns);
        if placed.to_ns > frame_ns {
            return Err(CalendarError::Outside(placed, frame_ns));
        }
    }
    Ok(ready)
}

/// A unit and its place.
pub(super) fn placed(unit: &Unit, from_ns: u64) -> UnitPlace {
    let to_ns = from_ns.saturating_add(unit.budget_ns);
    UnitPlace { name: unit.name.clone(), from_ns, to_ns }
}
