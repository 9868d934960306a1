//! The convex hull of points that come in rising x, in integers.
//!
//! The largest deviation from *any* line is at a vertex of the hull, so the hull gives the exact
//! extremes about a line that is known only at the end (monotone chain). Cross products are exact:
//! x < 2⁶⁰ and |y| ≤ 2⁶³ stay below 2¹²⁶. Points are looked at in blocks, because a cheap test
//! shows that most of a block cannot be on the hull. Each half holds at most [`VERTICES_MAX`]
//! vertices.

/// Integer points of a smooth curve need more vertices than this only when the curve bends
/// steadily, to the nanosecond, over some 10¹⁰ points.
const VERTICES_MAX: usize = 1 << 16;
/// Points in a block.
const BLOCK: usize = 256;

/// A point.
#[derive(Clone, Copy, Debug)]
struct Point {
    x: u64,
    y: i64,
}

impl Point {
    /// !y = −y − 1 mirrors without overflow at i64::MIN.
    fn mirrored(self) -> Self {
        Self { x: self.x, y: !self.y }
    }
}

/// The smallest and the largest residual about a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extremes {
    pub lowest: i128,
    pub highest: i128,
}

/// Both halves of the hull.
#[derive(Clone, Debug, Default)]
pub(super) struct Hull {
    block: Vec<Point>,
    upper: Half,
    /// Of the mirrored points, so that the code is the same.
    lower: Half,
}

impl Hull {
    /// Takes in a point; x must not decrease.
    #[inline]
    pub(super) fn push(&mut self, x: u64, y: i64) {
        self.block.push(Point { x, y });
        if self.block.len() == BLOCK {
            self.take_block();
        }
    }

    /// Takes in neighbouring points, the first at x; at most a block of them.
    #[inline]
    pub(super) fn extend(&mut self, x: u64, ys: &[i64]) {
        self.take_block();
        self.upper.take(ys.len(), |at| Point { x: x + at as u64, y: ys[at] });
        self.lower.take(ys.len(), |at| Point { x: x + at as u64, y: !ys[at] });
    }

    fn take_block(&mut self) {
        let block = &self.block;
        self.upper.take(block.len(), |at| block[at]);
        self.lower.take(block.len(), |at| block[at].mirrored());
        self.block.clear();
    }

    /// True while no vertex was ever dropped.
    pub(super) fn is_exact(&self) -> bool {
        !self.upper.thinned && !self.lower.thinned
    }

    /// The extremes of y − slope·x over all points, y and slope scaled by 2^bits; `None` without
    /// points or on overflow.
    pub(super) fn extremes_about(&self, slope: i128, bits: u32) -> Option<Extremes> {
        let upper = self.upper.vertices.iter().copied();
        let lower = self.lower.vertices.iter().map(|vertex| vertex.mirrored());
        let mut extremes: Option<Extremes> = None;
        for point in upper.chain(lower).chain(self.block.iter().copied()) {
            let level = i128::from(point.y) << bits;
            let residual = level.checked_sub(slope.checked_mul(i128::from(point.x))?)?;
            let so_far = extremes.unwrap_or(Extremes { lowest: residual, highest: residual });
            extremes = Some(Extremes {
                lowest: so_far.lowest.min(residual),
                highest: so_far.highest.max(residual),
            });
        }
        extremes
    }
}

/// The upper half of a hull.
#[derive(Clone, Debug, Default)]
struct Half {
    vertices: Vec<Point>,
    thinned: bool,
}

impl Half {
    /// Takes in a block of `len` points. Left of its highest point only new records can be on the
    /// hull: any other point lies under the chord from an earlier, no lower one to the highest.
    /// Right of it, the same read backwards.
    #[inline]
    fn take(&mut self, len: usize, point: impl Fn(usize) -> Point) {
        if len == 0 {
            return;
        }
        let (mut top, mut highest) = (0, i64::MIN);
        for at in 0..len {
            let y = point(at).y;
            if y > highest {
                (top, highest) = (at, y);
            }
        }
        let mut record = i64::MIN;
        for at in 0..=top {
            let point = point(at);
            if point.y > record || at == 0 {
                record = point.y;
                self.push(point);
            }
        }
        let mut kept = [0u16; BLOCK];
        let (mut many, mut record) = (0, i64::MIN);
        for at in (top + 1..len).rev() {
            let y = point(at).y;
            if y > record || at + 1 == len {
                record = y;
                kept[many] = at as u16;
                many += 1;
            }
        }
        kept[..many].iter().rev().for_each(|&at| self.push(point(usize::from(at))));
    }

    fn push(&mut self, point: Point) {
        if let Some(last) = self.vertices.last()
            && last.x == point.x
        {
            if last.y >= point.y {
                return;
            }
            self.vertices.pop();
        }
        while let [.., a, b] = self.vertices[..] {
            if turns_right(a, b, point) {
                break;
            }
            self.vertices.pop();
        }
        if self.vertices.len() == VERTICES_MAX {
            self.thin();
        }
        self.vertices.push(point);
    }

    /// Drops every second vertex: bounded memory before exactness.
    #[cold]
    fn thin(&mut self) {
        let mut keep = false;
        self.vertices.retain(|_| {
            keep = !keep;
            keep
        });
        self.thinned = true;
    }
}

/// True where b stays above the chord from a to c, so that it belongs to the upper half.
#[inline]
fn turns_right(a: Point, b: Point, c: Point) -> bool {
    let (ab_x, bc_x) = (b.x - a.x, c.x - b.x);
    let ab_y = i128::from(b.y) - i128::from(a.y);
    let bc_y = i128::from(c.y) - i128::from(b.y);
    ab_y * i128::from(bc_x) > bc_y * i128::from(ab_x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn thinning_bounds_the_memory_and_is_reported() {
        let mut hull = Hull::default();
        for x in 0..100_000u64 {
            let from_middle = x as i64 - 50_000;
            hull.push(x, -from_middle * from_middle);
        }
        assert!(hull.upper.vertices.len() <= VERTICES_MAX);
        assert!(!hull.is_exact());
    }

    #[test]
    fn noise_needs_few_vertices() {
        let mut hull = Hull::default();
        let mut state = 1u64;
        for x in 0..100_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            hull.push(x, (state >> 40) as i64);
        }
        assert!(hull.upper.vertices.len() < 200 && hull.lower.vertices.len() < 200);
        assert!(hull.is_exact());
    }

    proptest! {
        #[test]
        fn extremes_agree_with_all_points(
            steps in prop::collection::vec(
                (0u64..4, prop_oneof![-9i64..9, -9_000i64..9_000, any::<i64>()]),
                1..1_200,
            ),
            drift in -1_000i64..1_000,
            slope in -1i128 << 50..1i128 << 50,
        ) {
            let mut hull = Hull::default();
            let mut x = 0;
            let mut residuals = Vec::new();
            for (step, y) in steps {
                x += step;
                let y = y.saturating_add(drift * x as i64);
                hull.push(x, y);
                residuals.push((i128::from(y) << 40) - slope * i128::from(x));
            }
            residuals.sort_unstable();
            let (lowest, highest) = (residuals[0], residuals[residuals.len() - 1]);
            prop_assert_eq!(hull.extremes_about(slope, 40), Some(Extremes { lowest, highest }));
        }
    }
}
