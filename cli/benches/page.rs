//! Time that the page of a million cycles takes: `cargo bench -p punctual-cli --bench page [-- N]`.
//!
//! Makes samples up, judges them, makes the page, opens it in headless Chromium and prints what
//! each took. Asserts nothing of it; needs chromium and chromedriver.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use punctual_core::ring::{SplitRing, split, words};
use punctual_core::sample::{Flags, Sample};
use punctual_core::time::Span;
use punctual_engine::drain::{Drainage, SampleFile, Sink};
use punctual_testkit::browser::Browser;

/// Reloads whose first draws are shown.
const LOADS: usize = 5;

struct Nowhere;

impl Sink for Nowhere {
    fn take(&mut self, _: usize, _: &[Sample]) {}
}

fn main() {
    // cargo bench passes --bench along.
    let n_arg = std::env::args().skip(1).find_map(|arg| arg.parse::<u64>().ok());
    let n = n_arg.unwrap_or(1_000_000);
    let dir = std::env::temp_dir().join(format!("punctual-page-{}", std::process::id()));
    fs::create_dir_all(&dir).expect("writable");
    samples(&dir.join("samples.punctual"), n);
    let program = env!("CARGO_BIN_EXE_punctual");
    let timed = |args: &[&str]| {
        let begun = Instant::now();
        let done = Command::new(program).args(args).current_dir(&dir).output().expect("it starts");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        begun.elapsed().as_secs_f64()
    };
    println!("{n} cycles");
    println!(
        "analyse        {:.2} s",
        timed(&["analyse", "samples.punctual", "--json", "result.json"])
    );
    println!("report         {:.2} s", timed(&["report", "."]));
    let page = dir.join("report.html");
    println!("page           {} bytes", fs::metadata(&page).expect("written").len());
    if let Some(browser) = Browser::start("bench-page") {
        browse(&browser, &page);
    }
    fs::remove_dir_all(&dir).expect("made here");
}

fn browse(browser: &Browser, page: &Path) {
    let mut first: Vec<f64> = (0..LOADS)
        .map(|_| {
            browser.open(page);
            let at = browser.run("return Number(document.documentElement.dataset.firstDraw)");
            at.as_f64().expect("it was drawn")
        })
        .collect();
    first.sort_by(f64::total_cmp);
    println!("first draw     {:.0} ms median of {LOADS} (navigation to draw)", first[LOADS / 2]);
    let frames = browser.run_until_called(
        "const done = arguments[0], plot = punctual.plots.find(p => p.chart.kind === 'time'); \
         plot.stage.scrollIntoView({block: 'center'}); \
         const frames = [], works = []; let step = 0, last = 0; \
         function next(now) { if (last) frames.push(now - last); last = now; \
           if (step === 60) { const of = a => { a.sort((x, y) => x - y); \
             return [a[a.length >> 1], a[a.length - 1]]; }; \
             done([of(frames), of(works), plot.drawn]); return; } \
           const begun = performance.now(); \
           if (step < 30) plot.zoom(0.8, 0.02); else plot.zoom(1.25, 0); \
           queueMicrotask(() => works.push(performance.now() - begun)); \
           step++; requestAnimationFrame(next); } \
         requestAnimationFrame(next);",
    );
    let show = |at: &serde_json::Value| at.as_f64().unwrap_or(f64::NAN);
    println!(
        "zoom           median frame {:.1} ms, worst {:.1} ms, of 60 steps; drawing alone {:.1} ms",
        show(&frames[0][0]),
        show(&frames[0][1]),
        show(&frames[1][0])
    );
}

/// A body of 4 to 12 µs with a tail to 1 ms, the same everywhere.
fn samples(path: &Path, n: u64) {
    let info = r#"{"tool":"bench","runs":[{"name":"made up","period_ns":1000000}]}"#;
    let storage: Vec<AtomicU64> = (0..words(1 << 14)).map(|_| AtomicU64::new(0)).collect();
    let SplitRing { ring: mut recorder, drain, view } = split(&storage).expect("room enough");
    let file = File::create(path).expect("writable");
    let file = SampleFile::begin(file, info, 1).expect("writable");
    let mut drainage = Drainage::new(vec![(drain, view)], Nowhere, Some(file));
    let mut state = 1u64;
    for cycle in 0..n {
        // A linear congruential generator (Knuth, MMIX).
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (body, tail) = ((state >> 40) & 0x1fff, (state >> 20) & 0xfffff);
        let rare = (state >> 53).is_multiple_of(1_000);
        let lateness_ns = 4_000 + body + if rare { tail } else { 0 };
        let flags = if cycle == 0 { Flags::FIRST } else { Flags::NONE };
        recorder.push(Sample { cycle, lateness: Span::from_ns(lateness_ns.cast_signed()), flags });
        if cycle % (1 << 14) == (1 << 14) - 1 {
            drainage.empty();
        }
    }
    assert!(drainage.finish(false).1.is_none(), "written");
}
