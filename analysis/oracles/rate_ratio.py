#!/usr/bin/env python3
"""Golden numbers of the exact ratio of two rates, by scipy.

Prints what analysis/oracles/rate_ratio.golden holds:
    python3 rate_ratio.py > rate_ratio.golden
Interval: binomtest(b, a + b).proportion_ci(method="exact"), as a ratio of rates; p: twice the
smaller tail of the binomial distribution, at most 1. Needs scipy.
"""

from scipy.stats import binom, binomtest

CASES = [
    (10, 10, 1000, 1000), (10, 30, 1000, 1000), (30, 10, 1000, 1000), (0, 7, 5000, 5000),
    (7, 0, 5000, 5000), (1, 1, 100, 100), (3, 12, 20000, 35000), (12, 3, 35000, 20000),
    (100, 130, 100000, 100000), (1000, 1100, 1000000, 1000000), (5, 9, 1000, 100000),
    (20000, 20400, 10000000, 10000000),
]

print("# exceedances_a exceedances_b releases_a releases_b alpha lower upper p")
for a, b, n_a, n_b in CASES:
    share = n_b / (n_a + n_b)
    p = min(1.0, 2 * min(binom.sf(b - 1, a + b, share), binom.cdf(b, a + b, share)))
    for alpha in (0.05, 0.05 / 16):
        interval = binomtest(b, a + b).proportion_ci(1 - alpha, method="exact")
        ratio = lambda s: s / (1 - s) * n_a / n_b if s < 1 else float("inf")
        print(a, b, n_a, n_b, repr(alpha), repr(float(ratio(interval.low))),
              repr(float(ratio(interval.high))), repr(float(p)))
