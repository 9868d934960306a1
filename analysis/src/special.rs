//! Incomplete gamma and beta functions, and the distributions made of them: normal, Student, beta.
//!
//! For bounds, comparisons and tests. Series where they converge, continued fractions (Lentz)
//! elsewhere: relative error below 10⁻⁹ in the range that counts of cycles reach (arguments up to
//! 10¹²).

/// Enough for arguments of 10¹²: both expansions need a few times its square root.
const ITERATIONS_MAX: usize = 20_000_000;
const TINY: f64 = 1e-300;

/// ln Γ(x) for x > 0: Lanczos (g = 7, n = 9) below 20, Stirling's series above.
pub(crate) fn ln_gamma(x: f64) -> f64 {
    if x >= 20.0 {
        let inverse = 1.0 / x;
        let square = inverse * inverse;
        let series = inverse
            * (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square / 1680.0)));
        return (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series;
    }
    const LANCZOS: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let t = x + 7.5;
    let sum =
        LANCZOS.iter().enumerate().skip(1).fold(LANCZOS[0], |sum, (i, c)| sum + c / (x + i as f64));
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

/// xᵃ·e⁻ˣ/Γ(a+1), without the cancellation that a large a and x near it would bring.
fn gamma_term(a: f64, x: f64) -> f64 {
    if a < 20.0 {
        return (a * x.ln() - x - ln_gamma(a + 1.0)).exp();
    }
    let offset = (x - a) / a;
    let inverse = 1.0 / a;
    let square = inverse * inverse;
    let stirling = inverse * (1.0 / 12.0 - square * (1.0 / 360.0 - square / 1260.0));
    (a * (offset.ln_1p() - offset) - stirling).exp() / (2.0 * std::f64::consts::PI * a).sqrt()
}

/// Q(a, x) = Γ(a, x)/Γ(a), the upper regularised incomplete gamma function: the probability that a
/// Poisson variable of mean x is below a (a whole). a > 0, x ≥ 0.
pub(crate) fn gamma_upper(a: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 1.0;
    }
    let term = gamma_term(a, x);
    if x < a + 1.0 {
        // P = term·(1 + x/(a+1) + x²/((a+1)(a+2)) + …).
        let (mut sum, mut part) = (1.0, 1.0);
        for i in 1..ITERATIONS_MAX {
            part *= x / (a + i as f64);
            sum += part;
            if part < sum * 1e-16 {
                break;
            }
        }
        return (1.0 - term * sum).clamp(0.0, 1.0);
    }
    let mut b = x + 1.0 - a;
    let (mut c, mut d) = (1.0 / TINY, 1.0 / b);
    let mut h = d;
    for i in 1..ITERATIONS_MAX {
        let i = i as f64;
        let an = -i * (i - a);
        b += 2.0;
        d = away_from_zero(an * d + b);
        c = away_from_zero(b + an / c);
        d = 1.0 / d;
        h *= d * c;
        if (d * c - 1.0).abs() < 1e-15 {
            break;
        }
    }
    (term * a * h).clamp(0.0, 1.0)
}

/// The x at which Q(a, x) = q: the upper bound, at confidence 1 − q, of the mean of a Poisson
/// variable of which a − 1 events were seen. q in (0, 1).
pub(crate) fn gamma_upper_inverse(a: f64, q: f64) -> f64 {
    let mut low = 0.0;
    let mut high = a + 1.0;
    while gamma_upper(a, high) > q {
        low = high;
        high *= 2.0;
    }
    // Bisection: Q falls strictly, and sixty halvings end at the last bit.
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if gamma_upper(a, middle) > q { low = middle } else { high = middle }
    }
    high
}

/// I_x(a, b), the regularised incomplete beta function. a, b > 0, x in [0, 1].
pub(crate) fn beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = beta_term(x, a, b);
    if x < (a + 1.0) / (a + b + 2.0) {
        (front * beta_fraction(x, a, b) / a).clamp(0.0, 1.0)
    } else {
        (1.0 - front * beta_fraction(1.0 - x, b, a) / b).clamp(0.0, 1.0)
    }
}

/// xᵃ(1−x)ᵇ/B(a, b). For large a and b about the mean, so that nothing large cancels.
fn beta_term(x: f64, a: f64, b: f64) -> f64 {
    if a < 20.0 || b < 20.0 {
        let ln_beta = ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b);
        return (a * x.ln() + b * (-x).ln_1p() - ln_beta).exp();
    }
    let n = a + b;
    let mean = a / n;
    let stirling = |z: f64| 1.0 / (12.0 * z) - 1.0 / (360.0 * z * z * z);
    let exponent = a * relative_ln(x, mean) + b * relative_ln(1.0 - x, 1.0 - mean);
    let correction = stirling(n) - stirling(a) - stirling(b);
    (exponent + correction).exp() * (a * b / (2.0 * std::f64::consts::PI * n)).sqrt()
}

/// ln(x/mean), through ln(1 + small).
fn relative_ln(x: f64, mean: f64) -> f64 {
    ((x - mean) / mean).ln_1p()
}

fn beta_fraction(x: f64, a: f64, b: f64) -> f64 {
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut h = d;
    for m in 1..ITERATIONS_MAX {
        let m = m as f64;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / away_from_zero(1.0 + even * d);
        c = away_from_zero(1.0 + even / c);
        h *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / away_from_zero(1.0 + odd * d);
        c = away_from_zero(1.0 + odd / c);
        h *= d * c;
        if (d * c - 1.0).abs() < 1e-15 {
            break;
        }
    }
    h
}

fn away_from_zero(value: f64) -> f64 {
    if value.abs() < TINY { TINY } else { value }
}

/// Halvings that end at the last bit of a double wherever the root is above 10⁻⁶⁰.
const HALVINGS: usize = 250;

/// P(Z > z) of a standard normal variable.
fn normal_above(z: f64) -> f64 {
    // Q(1/2, z²/2) = erfc(|z|/√2).
    let half = 0.5 * gamma_upper(0.5, 0.5 * z * z);
    if z >= 0.0 { half } else { 1.0 - half }
}

/// The z above which a share `p` of a normal distribution lies, p in (0, 1/2].
pub(crate) fn normal_quantile_above(p: f64) -> f64 {
    falling_root(40.0, |z| normal_above(z) - p)
}

/// P(T > t) of Student's distribution with `df` degrees of freedom, t ≥ 0; infinitely many are a
/// normal one.
pub(crate) fn student_above(t: f64, df: f64) -> f64 {
    if df.is_infinite() {
        return normal_above(t);
    }
    0.5 * beta(df / (df + t * t), 0.5 * df, 0.5)
}

/// The t above which a share `p` of Student's distribution lies, p in (0, 1/2].
pub(crate) fn student_quantile_above(p: f64, df: f64) -> f64 {
    let mut high = 40.0;
    while student_above(high, df) > p && high < 1e12 {
        high *= 4.0;
    }
    falling_root(high, |t| student_above(t, df) - p)
}

/// A two-sided p value of the normal distribution as Student's: what was tested with a scale that
/// is an estimate.
pub(crate) fn student_p(p: f64, df: f64) -> f64 {
    if df.is_infinite() || p <= 0.0 || p >= 1.0 {
        return p;
    }
    2.0 * student_above(normal_quantile_above(p / 2.0), df)
}

/// The level of the normal distribution that stands for `level` of Student's, one side each: the
/// inverse of [`student_p`].
pub(crate) fn student_level(level: f64, df: f64) -> f64 {
    if df.is_infinite() { level } else { normal_above(student_quantile_above(level, df)) }
}

/// The x at which I_x(a, b) = p; 0 for a = 0, 1 for b = 0.
pub(crate) fn beta_quantile(p: f64, a: f64, b: f64) -> f64 {
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

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * b.abs().max(1e-12)
    }

    #[test]
    fn ln_gamma_of_factorials_and_halves() {
        let mut factorial = 1.0f64;
        for n in 1..40 {
            assert!(near(ln_gamma(f64::from(n)).exp(), factorial), "{n}");
            factorial *= f64::from(n);
        }
        assert!(near(ln_gamma(0.5), std::f64::consts::PI.sqrt().ln()));
    }

    #[test]
    fn gamma_is_the_poisson_sum() {
        for (k, mean) in [(0u32, 0.1f64), (3, 2.5), (10, 16.96), (30, 25.0), (100, 130.0)] {
            let mut term = (-mean).exp();
            let mut sum = term;
            for i in 1..=k {
                term *= mean / f64::from(i);
                sum += term;
            }
            assert!(near(gamma_upper(f64::from(k) + 1.0, mean), sum), "{k} {mean}");
        }
    }

    #[test]
    fn beta_is_the_binomial_sum() {
        for (n, k, p) in [(10u32, 3u32, 0.2f64), (100, 95, 0.9), (1_000, 480, 0.5), (50, 0, 0.01)] {
            // P(X ≤ k) = I_{1−p}(n − k, k + 1).
            let mut term = (1.0 - p).powi(n as i32);
            let mut sum = term;
            for i in 1..=k {
                term *= f64::from(n - i + 1) / f64::from(i) * p / (1.0 - p);
                sum += term;
            }
            let by_beta = beta(1.0 - p, f64::from(n - k), f64::from(k) + 1.0);
            assert!(near(by_beta, sum), "{n} {k} {p}: {by_beta} {sum}");
        }
    }

    #[test]
    fn large_arguments_stay_sound() {
        // At the median both are ½ up to a term of order 1/√a.
        for a in [1e3, 1e6, 1e9] {
            assert!((gamma_upper(a, a) - 0.5).abs() < 0.2 / f64::sqrt(a), "{a}");
            assert!((beta(0.5, a, a) - 0.5).abs() < 1e-9, "{a}");
        }
        // One standard deviation above the mean of 10⁹ events: the normal distribution's tail.
        let a = 1e9f64;
        assert!((gamma_upper(a, a + a.sqrt()) - 0.158_655_254).abs() < 1e-4);
    }

    #[test]
    fn the_inverse_inverts() {
        for a in [1.0, 1.5, 7.0, 123.4, 1e5] {
            for q in [0.5, 0.05, 1e-4] {
                assert!(near(gamma_upper(a, gamma_upper_inverse(a, q)), q), "{a} {q}");
            }
        }
    }

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
