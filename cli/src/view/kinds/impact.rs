//! Documents of `impact`: the effects of lateness on an application.

use punctual_analysis::impact::drives::DRIVES;
use punctual_analysis::impact::step_generation::StepGeneration;
use punctual_analysis::impact::timing::Basis;
use punctual_analysis::impact::timing::Suits;
use punctual_analysis::impact::{Application, Figure, stepper};
use punctual_document::{
    Block, Column, Frame, Item, Items, ItemsKind, Section, Table, numbers, words,
};
use punctual_report::{Impact, ImpactBody, longer};

use crate::format;

/// The answer, its figures, and what it rests on.
pub(super) fn document(body: &ImpactBody) -> Vec<Block> {
    let mut blocks = vec![Block::words(answered(&body.impact))];
    blocks.extend(shown(body).blocks);
    blocks
}

/// The figures of the answer, and what it rests on.
pub(super) fn shown(body: &ImpactBody) -> Section {
    let mut blocks = match &body.impact {
        Impact::Stepper(impact) => stepper(impact),
        Impact::Application(impact) => application(impact),
    };
    if let (Impact::Stepper(motor), Some(steps)) = (&body.impact, &body.step_generation) {
        blocks.push(Block::words(&steps.statement));
        if steps.run != motor.run {
            blocks.extend(steps.run.as_deref().map(of_run));
        }
        blocks.extend(motor.max_step_rate_hz.map(|rate| lower(rate, motor.share, steps)));
    }
    Section { id: "impact", heading: "Figures", blocks }
}

/// The statement, behind its answer.
pub(in crate::view) fn answered(impact: &Impact) -> String {
    let answer = match impact {
        Impact::Stepper(impact) => answer(impact.answer).to_owned(),
        Impact::Application(impact) => {
            too_short(impact).unwrap_or_else(|| answer(impact.answer).to_owned())
        }
    };
    format!("{answer}{}", impact.statement())
}

/// Which of the two limits of the step rate holds.
fn lower(motor_hz: f64, share: f64, steps: &StepGeneration) -> Block {
    let (motor, software) = (format::rate(motor_hz), format::rate(steps.max_step_rate_hz));
    let share = format::share(share);
    let holds = if motor_hz < steps.max_step_rate_hz { "the motor's" } else { "the software's" };
    Block::words(format!(
        "two limits, and the lower one holds, {holds}: the motor keeps all but {share} of its \
         torque up to {motor} steps/s, software makes up to {software} steps/s"
    ))
}

/// The run that the lines before it are of.
fn of_run(run: &str) -> Block {
    Block::words_at(1, format!("of the run \"{run}\""))
}

/// Figures with their names, which the statement before them explains.
fn figures(rows: Vec<Vec<String>>, widths: [usize; 2]) -> Block {
    let columns = [words("figure"), numbers("value"), words("unit")];
    let columns: Vec<Column> = match rows.iter().any(|row| !row[2].is_empty()) {
        true => columns.into(),
        false => columns[..2].into(),
    };
    let rows: Vec<Vec<String>> =
        rows.into_iter().map(|row| row.into_iter().take(columns.len()).collect()).collect();
    let wide = columns.iter().cloned().zip(widths.into_iter().chain([0]));
    let wide: Vec<Column> = wide.map(|(column, width)| column.at_least(width)).collect();
    Table::new("Figures of the answer", columns, rows.clone())
        .brief(Frame::Headless, wide, rows)
        .into()
}

/// The answer of a recording that is too short, before its statement: the time that was measured,
/// and the shortest that would show it. `None` where that is not so, or these are not known.
fn too_short(impact: &Application) -> Option<String> {
    let needed_ns = impact.duration_needed_ns.filter(|_| impact.answer == Some(Suits::Unknown))?;
    let measured = impact.figures.iter().find(|figure| figure.name == "time measured")?;
    let (measured, needed) = (format::long(measured.value?), format::long(needed_ns));
    Some(format!("unknown, {measured} measured are too short, and {needed} are needed: "))
}

/// The answer, before its statement.
const fn answer(suits: Option<Suits>) -> &'static str {
    match suits {
        Some(Suits::Yes) => "yes: ",
        Some(Suits::No) => "no: ",
        Some(Suits::Unknown) => "unknown, the recording is too short: ",
        None => "",
    }
}

/// The runs that the result rests on; `None` where there are none.
fn basis(basis: &[Basis]) -> Option<Block> {
    let rows = basis.iter().enumerate().map(|(at, basis)| {
        let label = if at == 0 { "rests on" } else { "and on" };
        Item::new(label, basis.words())
    });
    (!basis.is_empty()).then(|| Items::new(ItemsKind::Plain, rows.collect::<Vec<Item>>()).into())
}

fn stepper(impact: &stepper::Impact) -> Vec<Block> {
    let row = |name: &str, value: String, unit: &str| vec![name.to_owned(), value, unit.to_owned()];
    let percent = |ratio: f64| format!("{:.2}", ratio * 100.0);
    let available = format!("%   (available {:.4} Nm)", impact.available_torque_nm);
    let mut rows = vec![
        row("time error (peak-to-peak)", format::ns(Some(impact.jitter_pp_ns)), ""),
        row("step rate", format::rate(impact.step_rate_hz), "steps/s"),
        row("torque lost", format!("{:.4}", impact.torque_lost_nm), "Nm"),
        row("  of the holding torque", percent(impact.torque_lost_ratio), "%"),
        row("  of the torque available", percent(impact.share_of_available), &available),
    ];
    if let Some(rate) = impact.max_step_rate_hz {
        let name = format!("highest step rate for {:4}", format::share(impact.share));
        rows.push(row(&name, format::rate(rate), "steps/s"));
    }
    let mut blocks = vec![figures(rows, [30, 11])];
    blocks.extend(basis(&impact.basis));
    blocks.extend(impact.run.as_deref().map(of_run));
    blocks
}

fn application(impact: &Application) -> Vec<Block> {
    let mut blocks = Vec::new();
    if let (Some(Suits::Unknown), Some(needed_ns)) = (impact.answer, impact.duration_needed_ns) {
        let text = format!("not shown yet; {}", longer::words(needed_ns));
        blocks.push(Block::words_at(1, text));
        let command = impact.command.as_ref();
        blocks
            .extend(command.map(|command| Block::words_at(1, format!("measure with: {command}"))));
    }
    let row = |name: &str, value: String| vec![name.to_owned(), value, String::new()];
    let mut rows: Vec<_> =
        impact.figures.iter().map(|figure| row(&figure.name, value(figure))).collect();
    rows.extend(impact.margin.map(|left| match left {
        // Nothing is allowed, so that no share of it is used.
        left if left <= f64::MIN => row("margin left", "none".to_owned()),
        // Beyond twice what is allowed a percentage says nothing.
        left if left < -1.0 => {
            row("used", format!("{} times what is allowed", format::rate(1.0 - left)))
        }
        left => row("margin left", format!("{:.1} %", left * 100.0)),
    }));
    if !rows.is_empty() {
        blocks.push(figures(rows, [30, 13]));
    }
    blocks.extend(basis(&impact.basis));
    blocks.push(Block::words_at(1, format!("by {}", impact.source)));
    blocks
}

/// A number with its unit; times in the unit that fits.
fn value(figure: &Figure) -> String {
    match (figure.value, figure.unit.as_str()) {
        (None, _) => "-".to_owned(),
        // What does not fit in 292 years is not shown as if it did.
        (Some(ns), "ns") if ns.abs() < 9e18 => format::ns(Some(ns)),
        (Some(value), "frames") => format!("{value:.0} frames"),
        (Some(share), "1") if share.abs() >= 1e-3 => format!("{:.1} %", share * 100.0),
        (Some(share), "1") => format!("{share:.2e}"),
        (Some(value), unit) if value != 0.0 && !(1e-3..1e6).contains(&value.abs()) => {
            format!("{value:.3e} {unit}")
        }
        (Some(value), unit) => format!("{value:.3} {unit}"),
    }
}

/// The drives that `--drive` knows.
pub(crate) fn drives() -> Vec<Block> {
    let columns = [
        words("drive").at_least(28),
        numbers("step time"),
        numbers("step space"),
        numbers("dir hold"),
        numbers("dir setup"),
        words(""),
    ];
    let row = |drive: &punctual_analysis::impact::drives::Drive| {
        let time = |ns: Option<u64>| ns.map_or("?".to_owned(), |ns| format::ns(Some(ns as f64)));
        let mut cells = vec![drive.id.to_owned()];
        cells.extend(drive.needs_ns.map(time));
        cells.push(if drive.confirmed { "" } else { "not confirmed" }.to_owned());
        cells
    };
    let rows = DRIVES.iter().map(row).collect();
    let source =
        "From LinuxCNC's documentation (stepper-timing); prefer the data sheet of the drive.";
    vec![Table::new("", columns, rows).bare().into(), Block::words(source)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_percentages_as_long_as_these_have_figures() {
        let shown = |value: f64| {
            let figure = Figure { name: String::new(), value: Some(value), unit: "1".to_owned() };
            super::value(&figure)
        };
        assert_eq!(
            [0.497, 0.003_09, 0.001, 2.5e-5].map(shown),
            ["49.7 %", "0.3 %", "0.1 %", "2.50e-5"]
        );
    }
}
