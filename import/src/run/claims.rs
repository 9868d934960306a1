//! What another program's numbers support: claims of level L0 to L2 that name the missing evidence.
//!
//! For [`super::finish`]. A claim beyond the end of the file's histogram is refused.

use punctual_core::time::Span;

use punctual_analysis::claim::bound::{CONFIDENCE, p_upper, quantile_ranks};
use punctual_analysis::claim::dependence::Tails;
use punctual_analysis::claim::{Claim, Level, rounded_up};
use punctual_analysis::histogram::Histogram;
use punctual_analysis::imported::Imported;
use punctual_analysis::quantile::Probability;

/// Exceedances up to this share of the values make a tail worth a claim.
const TAIL_SHARE: f64 = 0.1;

/// What claims are made from.
pub(super) struct Evidence<'a> {
    pub(super) imported: &'a Imported,
    pub(super) tails: &'a Tails,
    /// Values at the upper end of their bucket.
    pub(super) upper: &'a Histogram,
    pub(super) n: u64,
    pub(super) width_ns: Option<i64>,
    pub(super) widest_ns: i64,
    /// What is beyond the histogram is at least this, ns.
    pub(super) end_ns: Option<i64>,
    pub(super) ordered: bool,
}

/// All claims, in rising level.
pub(super) fn claims(evidence: &Evidence<'_>) -> Vec<Claim> {
    let Some(max_ns) = evidence.imported.values_ns.max else { return Vec::new() };
    let mut claims = vec![evidence.largest(max_ns)];
    if evidence.n > 0 {
        claims.push(evidence.none_above(max_ns));
        claims.extend(evidence.thresholds(max_ns));
        let summary = Probability::SUMMARY.into_iter().enumerate();
        claims.extend(summary.filter_map(|(at, p)| evidence.quantile(at, p)));
    }
    claims
}

fn shown(ns: f64) -> Span {
    Span::from_ns(ns.round() as i64)
}

impl Evidence<'_> {
    fn conditions(&self) -> String {
        let theta = if self.ordered {
            "dependence from the order of the values"
        } else {
            "values treated as independent, because the file does not record their order"
        };
        let lost = match self.tails.unrecorded() {
            0 => String::new(),
            lost => format!("; {lost} more went unrecorded and may have any value"),
        };
        format!("as printed by {}; {theta}{lost}", self.imported.program)
    }

    /// Values, with those that went unrecorded.
    fn all(&self) -> u64 {
        self.n.saturating_add(self.tails.unrecorded())
    }

    fn claim(&self, level: Level, statement: String) -> Claim {
        Claim {
            level,
            statement,
            p: None,
            bound_ns: None,
            confidence: (level != Level::L0).then_some(CONFIDENCE),
            n: self.n,
            given: true,
            conditions: self.conditions(),
            alone: false,
        }
    }

    fn largest(&self, max_ns: f64) -> Claim {
        let many = self.imported.holds.many();
        let conditions =
            format!("as printed by {}; an observation, not a bound", self.imported.program);
        if self.n == 0 {
            let statement = format!(
                "the largest was {}; the number of {many} is \
                                    unknown",
                shown(max_ns)
            );
            return Claim { given: false, conditions, ..self.claim(Level::L0, statement) };
        }
        let statement = format!("the largest of {} {many} was {}", self.n, shown(max_ns));
        Claim { bound_ns: Some(max_ns), conditions, ..self.claim(Level::L0, statement) }
    }

    /// No value was above the maximum, rounding included.
    fn none_above(&self, max_ns: f64) -> Claim {
        let bound_ns = max_ns + self.imported.rounding_ns;
        let unrecorded = self.tails.unrecorded();
        let p = p_upper(unrecorded, self.all(), self.theta(bound_ns));
        match unrecorded {
            0 => self.probability(bound_ns, (p, true), "none"),
            lost => self.probability(bound_ns, (p, true), &format!("at most {lost}")),
        }
    }

    /// Of values whose order is not known only those that went unrecorded are a cluster.
    fn theta(&self, ns: f64) -> f64 {
        if self.ordered || self.tails.unrecorded() > 0 {
            self.tails.theta_at(ns as i64)
        } else {
            1.0
        }
    }

    /// A claim of a bound that may hold only if such values come alone.
    fn probability(&self, bound_ns: f64, (p, alone): (f64, bool), count: &str) -> Claim {
        let holds = self.imported.holds;
        let statement = format!(
            "{} {} in at most {} of all {}{} ({count} of {} were)",
            holds.above(),
            shown(bound_ns),
            rounded_up(p),
            holds.many(),
            if alone { ", if they come alone" } else { "" },
            self.all()
        );
        let claim = self.claim(Level::L1, statement);
        Claim { p: Some(p), bound_ns: Some(bound_ns), alone, ..claim }
    }

    /// The thresholds that lie in the tail. From the end of the histogram to the maximum there is
    /// one, exceeded at most by what is beyond the end; how far that lies is refused.
    fn thresholds(&self, max_ns: f64) -> Vec<Claim> {
        let most_ns = max_ns + self.imported.rounding_ns;
        let mut claims = Vec::new();
        for tail in self.tails.tails().iter().filter(|tail| tail.requested) {
            let ns = tail.threshold_ns as f64;
            let exceedances = self.tails.exceedances(tail.threshold_ns).unwrap_or(self.n);
            if ns >= most_ns {
                break;
            }
            if exceedances as f64 > TAIL_SHARE * self.n as f64 {
                continue;
            }
            let shown = self.tails.counted(tail.threshold_ns).theta_shown();
            let p = p_upper(exceedances, self.all(), shown.unwrap_or_else(|| self.theta(ns)));
            let count = format!("at most {exceedances}");
            claims.push(self.probability(ns, (p, shown.is_none()), &count));
            let end_ns = self.end_ns.filter(|_| self.imported.overflow > 0);
            if self.imported.overflow > 0 && end_ns.is_none_or(|end_ns| tail.threshold_ns >= end_ns)
            {
                claims.push(self.beyond());
                break;
            }
        }
        claims
    }

    /// How far the values beyond the histogram lie is not known.
    fn beyond(&self) -> Claim {
        let end = match self.imported.limit_ns {
            Some(limit_ns) => format!("{}, the end of the histogram", shown(limit_ns as f64)),
            None => "the histogram".to_owned(),
        };
        let statement = format!(
            "{} of {} values are beyond {end}; how far each is, the file does not record",
            self.imported.overflow, self.n
        );
        let bound_ns = self.imported.limit_ns.map(|ns| ns as f64);
        Claim { given: false, bound_ns, ..self.claim(Level::L1, statement) }
    }

    /// The interval of one quantile: from the lower end of the lower bucket to the upper end of the
    /// upper one.
    fn quantile(&self, at: usize, p: Probability) -> Option<Claim> {
        if !p.is_supported(self.n) {
            return None;
        }
        let placed = self.n - self.imported.overflow.min(self.n);
        let (lower, upper) = quantile_ranks(p, self.all(), self.theta(self.imported.rounding_ns));
        // Those that went unrecorded are the smallest at the lower end, the largest at the upper.
        let lower = lower.and_then(|rank| rank.checked_sub(self.tails.unrecorded()));
        let percent = p.to_string();
        let percent = percent.trim_start_matches('p');
        let printed = self.imported.values_ns.quantiles()[at];
        let lower = lower.filter(|&rank| rank <= placed);
        let Some(lower) = lower.and_then(|rank| self.lower_end(rank)) else {
            // Only a number that the program printed itself; it has no interval.
            let lost = self.tails.unrecorded();
            let statement = match printed {
                Some(ns) if lost > 0 => format!(
                    "the {percent} % quantile of these {} was {}; {lost} more went unrecorded, \
                     too many for an interval",
                    self.n,
                    shown(ns)
                ),
                Some(ns) => format!(
                    "the {percent} % quantile of these {} was {}; there is no interval, because \
                    the histogram of the file does not reach it",
                    self.n,
                    shown(ns)
                ),
                None => format!("the {percent} % quantile is beyond the histogram of the file"),
            };
            let claim = self.claim(Level::L2, statement);
            return Some(Claim { given: false, p: Some(p.share()), ..claim });
        };
        let upper = upper.filter(|&rank| rank <= placed);
        let upper = upper.and_then(|rank| self.upper.order_statistic(rank));
        let statement = match upper {
            Some(upper) => format!(
                "the {percent} % quantile lies from {} to {}",
                shown(lower),
                shown(upper as f64)
            ),
            None => format!(
                "the {percent} % quantile is at least {}; the data have no upper end",
                shown(lower)
            ),
        };
        let claim = self.claim(Level::L2, statement);
        Some(Claim { p: Some(p.share()), bound_ns: upper.map(|ns| ns as f64), ..claim })
    }

    fn lower_end(&self, rank: u64) -> Option<f64> {
        let floor = self.upper.order_statistic_floor(rank)? as f64;
        Some(match self.width_ns {
            Some(width_ns) => floor - (width_ns.max(self.widest_ns) - 1) as f64,
            // Buckets that grow with the value are at most a tenth of it wide.
            None => floor - (floor.abs() / 10.0).max(self.widest_ns as f64),
        })
    }
}
