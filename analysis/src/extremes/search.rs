//! Finding the largest value of a function of one or a few variables, without derivatives.
//!
//! For the fits. Golden section after a look along a grid; Nelder and Mead, "A simplex method for
//! function minimization" (Computer Journal 7, 1965). Deterministic.

const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// The place in [from, to] where `f` is largest, and the value: the best of `steps` + 1 places
/// evenly apart, then golden section between its neighbours. `f` may be −∞ where it is not defined;
/// `None` where it is nowhere.
pub(super) fn largest(
    from: f64,
    to: f64,
    steps: u32,
    halvings: u32,
    f: impl Fn(f64) -> f64,
) -> Option<(f64, f64)> {
    let step = (to - from) / f64::from(steps);
    let place = |i: u32| from + step * f64::from(i);
    let (mut best, mut value) = (0, f64::NEG_INFINITY);
    for i in 0..=steps {
        let found = f(place(i));
        if found > value {
            (best, value) = (i, found);
        }
    }
    if value == f64::NEG_INFINITY {
        return None;
    }
    let (mut low, mut high) = (place(best.saturating_sub(1)), place((best + 1).min(steps)));
    let (mut a, mut b) = (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
    let (mut at_a, mut at_b) = (f(a), f(b));
    for _ in 0..halvings {
        if at_a >= at_b {
            (high, b, at_b) = (b, a, at_a);
            a = high - GOLDEN * (high - low);
            at_a = f(a);
        } else {
            (low, a, at_a) = (a, b, at_b);
            b = low + GOLDEN * (high - low);
            at_b = f(b);
        }
    }
    let found = [(a, at_a), (b, at_b), (place(best), value)];
    found.into_iter().max_by(|x, y| x.1.total_cmp(&y.1))
}

/// The place near `start` where `f` of three variables is largest, and the value, by at most
/// `rounds` moves of a simplex of the given size.
pub(super) fn largest_of_three(
    start: [f64; 3],
    size: [f64; 3],
    rounds: u32,
    f: impl Fn(&[f64; 3]) -> f64,
) -> ([f64; 3], f64) {
    let corner = |at: [f64; 3]| (at, f(&at));
    let mut simplex = [corner(start); 4];
    for i in 0..3 {
        let mut at = start;
        at[i] += size[i];
        simplex[i + 1] = corner(at);
    }
    for _ in 0..rounds {
        simplex.sort_by(|x, y| y.1.total_cmp(&x.1));
        if simplex[0].1 - simplex[3].1 < 1e-10 {
            break;
        }
        let middle = [0, 1, 2].map(|i| simplex[..3].iter().map(|c| c.0[i]).sum::<f64>() / 3.0);
        let along =
            |by: f64| corner([0, 1, 2].map(|i| middle[i] + by * (simplex[3].0[i] - middle[i])));
        let reflected = along(-1.0);
        let tried = if reflected.1 > simplex[0].1 {
            let further = along(-2.0);
            if further.1 > reflected.1 { further } else { reflected }
        } else if reflected.1 > simplex[2].1 {
            reflected
        } else {
            along(if reflected.1 > simplex[3].1 { -0.5 } else { 0.5 })
        };
        if tried.1 > simplex[3].1 {
            simplex[3] = tried;
        } else {
            let best = simplex[0].0;
            for kept in &mut simplex[1..] {
                *kept = corner([0, 1, 2].map(|i| 0.5 * (best[i] + kept.0[i])));
            }
        }
    }
    simplex.sort_by(|x, y| y.1.total_cmp(&x.1));
    simplex[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_top_also_at_an_end_and_beside_holes() {
        let (at, value) = largest(-3.0, 5.0, 10, 60, |x| -(x - 1.3f64).powi(2)).unwrap();
        assert!((at - 1.3).abs() < 1e-6 && value > -1e-10);
        let (at, _) = largest(0.0, 2.0, 7, 60, |x| x).unwrap();
        assert!((at - 2.0).abs() < 1e-6);
        let holed = |x: f64| if x < 0.5 { f64::NEG_INFINITY } else { -x };
        assert!((largest(-1.0, 2.0, 9, 60, holed).unwrap().0 - 0.5).abs() < 0.02);
        assert_eq!(largest(0.0, 1.0, 5, 5, |_| f64::NEG_INFINITY), None);
    }

    #[test]
    fn the_simplex_climbs_a_curved_ridge() {
        let ridge = |x: &[f64; 3]| {
            -(1.0 - x[0]).powi(2) - 20.0 * (x[1] - x[0] * x[0]).powi(2) - (x[2] + 2.0).powi(2)
        };
        let (at, _) = largest_of_three([-1.0, 1.0, 0.0], [0.5; 3], 2_000, ridge);
        assert!(at.iter().zip([1.0, 1.0, -2.0]).all(|(a, b)| (a - b).abs() < 1e-3), "{at:?}");
    }
}
