//! The page of `impact stepper`.

use crate::report::Report;
use crate::view::show;

/// The page.
pub(crate) fn page(report: &Report) -> String {
    let mut page = String::new();
    if let Some(impact) = &report.impact {
        page += &(show::wrap(&impact.statement, 2) + "\n");
        page += &format!(
            "  time error (peak-to-peak)      {:>12}\n\
             \x20 step rate                      {:>12} steps/s\n\
             \x20 torque lost                    {:>12.4} Nm\n\
             \x20   of the holding torque        {:>12.2} %\n\
             \x20   of the torque available      {:>12.2} %   (available {:.4} Nm)\n",
            show::ns(Some(impact.jitter_pp_ns)),
            show::rate(impact.step_rate_hz),
            impact.torque_lost_nm,
            impact.torque_lost_ratio * 100.0,
            impact.share_of_available * 100.0,
            impact.available_torque_nm,
        );
        if let Some(rate) = impact.max_step_rate_hz {
            page += &format!(
                "  highest step rate for {:4}     {:>12} steps/s\n",
                show::share(impact.share),
                show::rate(rate)
            );
        }
    }
    if let Some(steps) = &report.step_generation {
        page += &(show::wrap(&steps.statement, 2) + "\n");
    }
    page
}
