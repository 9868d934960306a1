//! Load `cpu`: integer polygons, after the Polygons program of the Windows CE benchmark (Tacke and
//! Ricci, Benchmarking Real-time Determinism in Windows CE, 2002).
//!
//! One canvas a worker; the polygons are the same in every run.

use crate::load::protocol::Setup;
use crate::load::row::{LoadRow, Start};
use crate::load::worker::{Prepared, Work};

/// Its row in the table of loads.
pub(super) const ROW: LoadRow = LoadRow {
    name: "cpu",
    unit: "polygons",
    help: "rasterises integer polygons into a frame buffer",
    args: None,
    workers_max: None,
    start: Start::Own(prepare),
};

/// Numbers that look random and are always the same (Steele, Lea, Flood: SplitMix64, 2014).
pub(super) struct Numbers(u64);

impl Numbers {
    /// A sequence for each seed.
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next one.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Fills a buffer with the next ones.
    pub(super) fn fill(&mut self, buffer: &mut [u8]) {
        for bytes in buffer.chunks_mut(8) {
            bytes.copy_from_slice(&self.next().to_le_bytes()[..bytes.len()]);
        }
    }

    /// The next one in [0, `end`), `end` > 0; its bias is of no matter here.
    pub(super) fn below(&mut self, end: u32) -> u32 {
        (((self.next() >> 32) * u64::from(end)) >> 32) as u32
    }
}

/// A polygon of 3 to 8 corners, up to a quarter of the canvas outside on each side.
fn polygon(numbers: &mut Numbers, corners: &mut [Point; CORNERS_MAX]) -> usize {
    let count = 3 + numbers.below(CORNERS_MAX as u32 - 2) as usize;
    let mut within = |size: i32| {
        let reach = size.cast_unsigned() * 3 / 2;
        numbers.below(reach).cast_signed() - size / 4
    };
    for corner in &mut corners[..count] {
        *corner = Point { x: within(WIDTH), y: within(HEIGHT) };
    }
    count
}

/// Polygons, one after the other, on a canvas of their own.
pub(crate) struct Polygons {
    canvas: Canvas,
    numbers: Numbers,
    corners: [Point; CORNERS_MAX],
}

impl Polygons {
    /// A sequence for each seed.
    pub(crate) fn new(seed: u64) -> Self {
        let corners = [Point::default(); CORNERS_MAX];
        Self { canvas: Canvas::new(), numbers: Numbers::new(seed), corners }
    }

    /// Draws the next one.
    pub(crate) fn draw(&mut self) {
        let count = polygon(&mut self.numbers, &mut self.corners);
        let colour = self.numbers.below(255) as u8 + 1;
        std::hint::black_box(self.canvas.fill(&self.corners[..count], colour));
    }
}

/// Sets it up.
fn prepare(setup: &Setup) -> Result<Prepared, String> {
    let worker = |seed: usize| -> Work {
        Box::new(move |ticket| {
            let mut polygons = Polygons::new(seed as u64);
            while ticket.going() {
                polygons.draw();
                ticket.add(1);
            }
            Ok(())
        })
    };
    Ok(Prepared::new((0..setup.workers).map(worker).collect()))
}

/// Pixels in a row.
const WIDTH: i32 = 640;
/// Rows.
const HEIGHT: i32 = 480;
/// Corners of the largest polygon.
const CORNERS_MAX: usize = 8;
/// Coordinates must be within ± this, so that nothing overflows.
const COORDINATE_MAX: i32 = 1 << 14;

/// A corner, in pixels; whole numbers are the pixels' upper left corners.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Point {
    /// To the right.
    x: i32,
    /// Downwards.
    y: i32,
}

/// A frame buffer of 640 × 480 pixels of 8 bits, and a rasteriser in integers.
///
/// Scan lines with exact crossings and the even-odd rule: a pixel belongs to a polygon when its
/// centre does, and of two polygons that share an edge exactly one has each pixel along it (Foley,
/// van Dam, Feiner, Hughes: Computer Graphics, 2nd ed., 3.6). Nothing is allocated while it fills.
struct Canvas {
    pixels: Vec<u8>,
}

impl Canvas {
    /// All pixels 0.
    fn new() -> Self {
        Self { pixels: vec![0; (WIDTH * HEIGHT) as usize] }
    }

    /// Fills a polygon of 3 to [`CORNERS_MAX`] corners and gives the number of its pixels on the
    /// canvas; with other numbers of corners, or one beyond [`COORDINATE_MAX`], it fills nothing.
    fn fill(&mut self, corners: &[Point], colour: u8) -> u32 {
        let far = |p: &Point| p.x.abs() > COORDINATE_MAX || p.y.abs() > COORDINATE_MAX;
        if !(3..=CORNERS_MAX).contains(&corners.len()) || corners.iter().any(far) {
            return 0;
        }
        let top = corners.iter().map(|p| p.y).min().unwrap_or(0).max(0);
        let bottom = corners.iter().map(|p| p.y).max().unwrap_or(0).min(HEIGHT);
        let mut filled = 0;
        for y in top..bottom {
            let mut crossings = [0; CORNERS_MAX];
            let count = cross(corners, y, &mut crossings);
            crossings[..count].sort_unstable();
            for span in crossings[..count].chunks_exact(2) {
                filled += self.fill_span(y, span[0], span[1], colour);
            }
        }
        filled
    }

    fn fill_span(&mut self, y: i32, from: i32, to: i32, colour: u8) -> u32 {
        let (from, to) = (from.clamp(0, WIDTH), to.clamp(0, WIDTH));
        let row = (y * WIDTH) as usize;
        self.pixels[row + from as usize..row + to as usize].fill(colour);
        (to - from).cast_unsigned()
    }

    /// The colour of a pixel on the canvas.
    #[cfg(test)]
    fn pixel(&self, x: i32, y: i32) -> u8 {
        self.pixels[(y * WIDTH + x) as usize]
    }
}

/// The first pixel right of each edge that the centre line of row `y` crosses. An edge has its
/// upper end but not its lower one; since corners are whole and centres are not, neither is met.
fn cross(corners: &[Point], y: i32, crossings: &mut [i32; CORNERS_MAX]) -> usize {
    let mut count = 0;
    let mut from = corners[corners.len() - 1];
    for &to in corners {
        let (upper, lower) = if from.y <= to.y { (from, to) } else { (to, from) };
        if upper.y <= y && y < lower.y {
            // The centre line is at y + 1/2: with h the height and twice the distance from the
            // upper end, x = upper.x + dx·d/(2h); a pixel is right of it when its centre is.
            let height = i64::from(lower.y - upper.y);
            let dx = i64::from(lower.x - upper.x);
            let distance = i64::from(2 * (y - upper.y) + 1);
            let centre = 2 * height * i64::from(upper.x) + dx * distance - height;
            crossings[count] = div_ceil(centre, 2 * height) as i32;
            count += 1;
        }
        from = to;
    }
    count
}

/// The least whole number that is not below `a / b`, for `b > 0`.
fn div_ceil(a: i64, b: i64) -> i64 {
    a.div_euclid(b) + i64::from(a.rem_euclid(b) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn polygons_are_the_same_in_every_run_and_fill_the_canvas() {
        let run = || {
            let (mut canvas, mut numbers) = (Canvas::new(), Numbers::new(1));
            let mut corners = [Point::default(); CORNERS_MAX];
            let mut draw = || {
                let count = polygon(&mut numbers, &mut corners);
                canvas.fill(&corners[..count], 1)
            };
            (0..50).map(|_| draw()).collect::<Vec<u32>>()
        };
        let pixels = run();
        assert_eq!(pixels, run());
        assert!(pixels.iter().filter(|&&count| count > 0).count() > 40, "{pixels:?}");
    }

    #[test]
    fn numbers_are_those_of_splitmix64() {
        // The first output for seed 0, as every implementation gives it.
        assert_eq!(Numbers::new(0).next(), 0xe220_a839_7b1d_cdaf);
        let mut numbers = Numbers::new(3);
        assert!((0..1000).all(|_| numbers.below(7) < 7));
        let mut buffer = [0; 11];
        Numbers::new(0).fill(&mut buffer);
        assert_eq!(buffer[..8], 0xe220_a839_7b1d_cdaf_u64.to_le_bytes());
        assert!(buffer[8..].iter().any(|&byte| byte != 0));
    }

    fn points<const N: usize>(corners: [(i32, i32); N]) -> [Point; N] {
        corners.map(|(x, y)| Point { x, y })
    }

    /// The slow model: counts the edges left of, or at, a pixel's centre, in doubled coordinates.
    fn has(corners: &[Point], x: i32, y: i32) -> bool {
        let (cx, cy) = (i64::from(2 * x + 1), i64::from(2 * y + 1));
        let edges = corners.iter().zip(corners.iter().cycle().skip(1));
        let left = edges.filter(|(a, b)| {
            let (a, b) = if a.y <= b.y { (a, b) } else { (b, a) };
            let (ax, ay) = (i64::from(2 * a.x), i64::from(2 * a.y));
            let (bx, by) = (i64::from(2 * b.x), i64::from(2 * b.y));
            ay < cy && cy < by && (bx - ax) * (cy - ay) <= (cx - ax) * (by - ay)
        });
        left.count() % 2 == 1
    }

    #[test]
    fn a_rectangle_has_its_area_and_its_edges() {
        let mut canvas = Canvas::new();
        assert_eq!(canvas.fill(&points([(10, 20), (30, 20), (30, 25), (10, 25)]), 7), 100);
        assert_eq!((canvas.pixel(10, 20), canvas.pixel(29, 24)), (7, 7));
        assert_eq!((canvas.pixel(30, 20), canvas.pixel(10, 25), canvas.pixel(9, 20)), (0, 0, 0));
    }

    #[test]
    fn what_is_outside_is_cut_off() {
        let whole = (WIDTH * HEIGHT).cast_unsigned();
        let far = COORDINATE_MAX;
        let around = points([(-far, -far), (far, -far), (far, far), (-far, far)]);
        assert_eq!(Canvas::new().fill(&around, 1), whole);
        assert_eq!(Canvas::new().fill(&points([(-9, 0), (0, 0), (0, 99)]), 1), 0);
        assert_eq!(Canvas::new().fill(&points([(WIDTH, 0), (WIDTH + 9, 0), (WIDTH, 9)]), 1), 0);
        assert_eq!(Canvas::new().fill(&points([(0, 0), (far + 1, 0), (0, 9)]), 1), 0);
        assert_eq!(Canvas::new().fill(&points([(0, 0), (9, 9)]), 1), 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn pixels_are_those_of_the_slow_model(
            raw in prop::collection::vec((-40..80i32, -40..80i32), 3..=CORNERS_MAX),
        ) {
            let corners: Vec<Point> = raw.into_iter().map(|(x, y)| Point { x, y }).collect();
            let mut canvas = Canvas::new();
            let filled = canvas.fill(&corners, 1);
            let mut expected = 0;
            for y in 0..80 {
                for x in 0..80 {
                    let inside = has(&corners, x, y);
                    expected += u32::from(inside);
                    prop_assert_eq!(canvas.pixel(x, y) == 1, inside, "{} {}", x, y);
                }
            }
            prop_assert_eq!(filled, expected);
        }

        #[test]
        fn triangles_that_share_an_edge_share_no_pixel(x in 0..640i32, y in 0..480i32) {
            let middle = (x, y);
            let around = [(0, 0), (WIDTH, 0), (WIDTH, HEIGHT), (0, HEIGHT)];
            let filled: u32 = (0..4)
                .map(|n| Canvas::new().fill(&points([around[n], around[(n + 1) % 4], middle]), 1))
                .sum();
            prop_assert_eq!(filled, (WIDTH * HEIGHT).cast_unsigned());
        }
    }
}
