//! Normal, Student and beta distributions as far as comparisons need them.
//!
//! From the incomplete gamma and beta functions; inverses by bisection. Arithmetic only.

use crate::special::{beta, gamma_upper};

/// Halvings that end at the last bit of a double wherever the root is above 10⁻⁶⁰.
const HALVINGS: usize = 250;

/// P(Z > z) of a standard normal variable.
pub fn normal_above(z: f64) -> f64 {
    // Q(1/2, z²/2) = erfc(|z|/√2).
    let half = 0.5 * gamma_upper(0.5, 0.5 * z * z);
    if z >= 0.0 { half } else { 1.0 - half }
}

/// The z above which a share `p` of a normal distribution lies, p in (0, 1/2].
pub fn normal_quantile_above(p: f64) -> f64 {
    falling_root(40.0, |z| normal_above(z) - p)
}

/// P(T > t) of Student's distribution with `df` degrees of freedom, t ≥ 0; infinitely many are a
/// normal one.
pub fn student_above(t: f64, df: f64) -> f64 {
    if df.is_infinite() {
        return normal_above(t);
    }
    0.5 * beta(df / (df + t * t), 0.5 * df, 0.5)
}

/// The t above which a share `p` of Student's distribution lies, p in (0, 1/2].
pub fn student_quantile_above(p: f64, df: f64) -> f64 {
    let mut high = 40.0;
    while student_above(high, df) > p && high < 1e12 {
        high *= 4.0;
    }
    falling_root(high, |t| student_above(t, df) - p)
}

/// A two-sided p value of the normal distribution as Student's: what was tested with a scale that
/// is an estimate.
pub fn student_p(p: f64, df: f64) -> f64 {
    if df.is_infinite() || p <= 0.0 || p >= 1.0 {
        return p;
    }
    2.0 * student_above(normal_quantile_above(p / 2.0), df)
}

/// The level of the normal distribution that stands for `level` of Student's, one side each: the
/// inverse of [`student_p`].
pub fn student_level(level: f64, df: f64) -> f64 {
    if df.is_infinite() { level } else { normal_above(student_quantile_above(level, df)) }
}

/// The x at which I_x(a, b) = p; 0 for a = 0, 1 for b = 0.
pub fn beta_quantile(p: f64, a: f64, b: f64) -> f64 {
    if a <= 0.0 {
        return 0.0;
    }
    if b <= 0.0 {
        return 1.0;
    }
    falling_root(1.0, |x| p - beta(x, a, b))
}

/// The root in [0, high] of a function that falls from above zero to below it.
fn falling_root(high: f64, f: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0, high);
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if f(middle) > 0.0 { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_quantiles() {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-6 * b.max(1.0), "{a} {b}");
        near(normal_quantile_above(0.025), 1.959_963_985);
        near(normal_above(-1.0), 0.841_344_746);
        near(student_quantile_above(0.025, 1.0), 12.706_204_736);
        near(student_quantile_above(0.025, 10.0), 2.228_138_852);
        near(student_quantile_above(0.025, f64::INFINITY), 1.959_963_985);
        // Clopper and Pearson for 3 of 10 at 95 %.
        near(beta_quantile(0.025, 3.0, 8.0), 0.066_739_511);
        near(beta_quantile(0.975, 4.0, 7.0), 0.652_452_850);
        assert_eq!((beta_quantile(0.025, 0.0, 8.0), beta_quantile(0.975, 4.0, 0.0)), (0.0, 1.0));
    }
}
