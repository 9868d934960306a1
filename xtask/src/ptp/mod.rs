//! `cargo xtask ptp [--install]`: the tests of clocks that are followed, beside a PTP clock.
//!
//! Few machines have one. QEMU emulates two network cards that do: igb, whose clock goes as it
//! should, and e1000e, whose clock goes far too fast. A real-time kernel of Debian's is started in
//! QEMU with each of them, under emulation and without any right, and runs the tests. QEMU and the
//! kernel are kept below `target/ptp` (made once, about 340 MB); nothing is installed but, with
//! `--install`, mmdebstrap. What a guest said is in `target/ptp/DEVICE.log`.

mod archive;
mod guest;
mod programs;
mod system;

use std::fs;
use std::path::Path;

use crate::root;
use archive::Archive;
use system::System;

/// Cards whose drivers bring a PTP clock along.
const CARDS: [&str; 2] = ["igb", "e1000e"];

/// Runs the subcommand.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    match args {
        [] => {}
        [flag] if flag == "--install" => crate::test::install_one("mmdebstrap")?,
        _ => return Err("its one argument is --install".to_owned()),
    }
    let clone = root::root();
    let kept = clone.join("target/ptp");
    let system = System::make(&kept.join("system"))?;
    let image = kept.join("guest");
    let bytes = image_of(&clone, &system)?;
    fs::write(&image, bytes).map_err(|error| format!("{}: {error}", image.display()))?;
    for card in CARDS {
        guest::run(&system, &image, card, &kept.join(format!("{card}.log")))?;
    }
    println!("ptp: the tests hold beside {}", CARDS.join(" and "));
    Ok(())
}

/// What the guest boots into: the tests, what they load, the drivers, and who starts them all.
fn image_of(clone: &Path, system: &System) -> Result<Vec<u8>, String> {
    let mut archive = Archive::default();
    archive.add("/init", guest::INIT.as_bytes());
    archive.add("/bin/busybox", &system.read("usr/bin/busybox")?);
    for (number, driver) in guest::DRIVERS.iter().enumerate() {
        archive.add(&format!("/drivers/{number}.ko"), &system.driver(driver)?);
    }
    let programs = programs::build(clone)?;
    for (path, file) in programs.files()? {
        let bytes = fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        archive.add(&path, &bytes);
    }
    Ok(archive.end())
}
