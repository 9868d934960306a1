//! The pages of `impact`: what lateness does to an application.

use punctual_analysis::impact::application::{Application, Figure, Suits};
use punctual_analysis::impact::drives::DRIVES;
use punctual_analysis::impact::stepper;

use crate::format;
use crate::report::{Impact, ImpactBody};

/// The page.
pub(super) fn page(body: &ImpactBody) -> String {
    let mut page = match &body.impact {
        Impact::Stepper(impact) => stepper(impact),
        Impact::Application(impact) => application(impact),
    };
    if let Some(steps) = &body.step_generation {
        page += &(format::wrap(&steps.statement, 2) + "\n");
        page += &steps.run.as_deref().map_or_else(String::new, of_run);
    }
    page
}

/// The run that the lines before it are of.
fn of_run(run: &str) -> String {
    format!("  of the run \"{}\"\n", format::plain(run))
}

fn stepper(impact: &stepper::Impact) -> String {
    let mut page = format::wrap(&impact.statement, 2) + "\n";
    page += &format!(
        "  time error (peak-to-peak)      {:>12}\n\
         \x20 step rate                      {:>12} steps/s\n\
         \x20 torque lost                    {:>12.4} Nm\n\
         \x20   of the holding torque        {:>12.2} %\n\
         \x20   of the torque available      {:>12.2} %   (available {:.4} Nm)\n",
        format::ns(Some(impact.jitter_pp_ns)),
        format::rate(impact.step_rate_hz),
        impact.torque_lost_nm,
        impact.torque_lost_ratio * 100.0,
        impact.share_of_available * 100.0,
        impact.available_torque_nm,
    );
    if let Some(rate) = impact.max_step_rate_hz {
        page += &format!(
            "  highest step rate for {:4}     {:>12} steps/s\n",
            format::share(impact.share),
            format::rate(rate)
        );
    }
    page + &impact.run.as_deref().map_or_else(String::new, of_run)
}

fn application(impact: &Application) -> String {
    let answer = match impact.answer {
        Some(Suits::Yes) => "yes: ",
        Some(Suits::No) => "no: ",
        Some(Suits::Unknown) => "unknown, the recording is too short: ",
        None => "",
    };
    let mut page = format::wrap(&format!("{answer}{}", impact.statement), 2) + "\n";
    for figure in &impact.figures {
        page += &format!("  {:30} {:>14}\n", format::plain(&figure.name), value(figure));
    }
    if let Some(margin) = impact.margin {
        page += &format!("  {:30} {:>12.1} %\n", "margin left", margin * 100.0);
    }
    for (at, basis) in impact.basis.iter().enumerate() {
        let rests = if at == 0 { "  rests on " } else { "  and on   " };
        page += &(format::wrap(&format!("{rests}{}", basis.words()), 11) + "\n");
    }
    page += &impact.run.as_deref().map_or_else(String::new, of_run);
    page + &format::wrap(&format!("  by {}", impact.source), 5) + "\n"
}

/// A number with its unit; times in the unit that fits.
fn value(figure: &Figure) -> String {
    match (figure.value, figure.unit.as_str()) {
        (None, _) => "-".to_owned(),
        // What does not fit in 292 years is not shown as if it did.
        (Some(ns), "ns") if ns.abs() < 9e18 => format::ns(Some(ns)),
        (Some(value), "1") => format!("{value:.2e}"),
        (Some(value), unit) if value != 0.0 && !(1e-3..1e6).contains(&value.abs()) => {
            format!("{value:.3e} {unit}")
        }
        (Some(value), unit) => format!("{value:.3} {unit}"),
    }
}

/// The drives that `--drive` knows.
pub(crate) fn drives() -> String {
    let head = ["drive", "step time", "step space", "dir hold", "dir setup"];
    let [id, rest @ ..] = head;
    let mut page = format!("{id:28}");
    rest.iter().for_each(|name| page += &format!(" {name:>10}"));
    page += "\n";
    for drive in &DRIVES {
        page += &format!("{:28}", drive.id);
        for ns in drive.needs_ns {
            page +=
                &format!(" {:>10}", ns.map_or("?".to_owned(), |ns| format::ns(Some(ns as f64))));
        }
        page += if drive.confirmed { "\n" } else { "   not confirmed\n" };
    }
    page + "From LinuxCNC's documentation (stepper-timing); prefer the data sheet of the drive.\n"
}
