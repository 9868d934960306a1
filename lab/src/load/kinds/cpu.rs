//! Load `cpu`: integer polygons, after the Polygons program of the Windows CE benchmark (Tacke and
//! Ricci, Benchmarking Real-time Determinism in Windows CE, 2002).
//!
//! One canvas a worker; the polygons are the same in every run.

use super::raster::{CORNERS_MAX, Canvas, HEIGHT, Point, WIDTH};
use super::{LoadRow, Start};
use crate::load::child::{Prepared, Work};
use crate::load::protocol::Setup;

/// Its row in the table of loads.
pub(super) const ROW: LoadRow = LoadRow {
    name: "cpu",
    unit: "polygons",
    help: "rasterises integer polygons into a frame buffer",
    args: None,
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

#[cfg(test)]
mod tests {
    use super::*;

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
    }
}
