//! One guest: a kernel with a card, and what its tests said.
//!
//! Its console goes to a file, which is read once it has ended; a guest that hangs is ended.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::system::System;

/// What the first process does: drivers, the tests, off. Nothing is mounted on /tmp: the command
/// under test lies there when the clone does, and the root is in memory anyway.
pub(super) const INIT: &str = "#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp
/bin/busybox mount -t proc proc /proc
/bin/busybox --install -s /bin
export PATH=/bin
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
for driver in /drivers/*; do insmod $driver; done
sleep 1
echo \"clock: $(cat /sys/class/ptp/ptp0/clock_name)\"
for tests in library commands; do
  $tests follow:: --test-threads=1 --nocapture
  echo \"ended: $tests $?\"
done
poweroff -f
";

/// What is loaded, in this order.
pub(super) const DRIVERS: [&str; 4] = [
    "dca/dca",
    "i2c/algos/i2c-algo-bit",
    "net/ethernet/intel/igb/igb",
    "net/ethernet/intel/e1000e/e1000e",
];

/// A guest takes half a minute where nothing else runs.
const PATIENCE: Duration = Duration::from_secs(300);

/// Starts a guest with this card, and judges what it says.
pub(super) fn run(system: &System, image: &Path, card: &str, log: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", log.display());
    let console = File::create(log).map_err(failed)?;
    let errors = console.try_clone().map_err(failed)?;
    let mut qemu = system.program("qemu-system-x86_64");
    for firmware in ["qemu", "seabios"] {
        qemu.arg("-L").arg(system.path("usr/share").join(firmware));
    }
    qemu.arg("-L").arg(system.path("usr/lib/ipxe/qemu"));
    qemu.args(["-accel", "tcg,thread=multi", "-cpu", "max", "-m", "1G", "-smp", "2"]);
    qemu.args(["-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot"]);
    qemu.arg("-kernel").arg(system.kernel()?).arg("-initrd").arg(image);
    qemu.args(["-append", "console=ttyS0 panic=-1 quiet", "-device", card]);
    qemu.stdin(Stdio::null()).stdout(console).stderr(errors);
    println!("ptp: a guest with the card {card}");
    let child = qemu.spawn().map_err(|error| format!("qemu: {error}"))?;
    wait(child)?;
    let said = fs::read(log).map_err(failed)?;
    let said = String::from_utf8_lossy(&said);
    for line in said.lines().filter(|line| line.starts_with("test ")) {
        println!("  {}", line.trim_end());
    }
    judge(&said).map_err(|why| format!("{card}: {why}: {} has all of it", log.display()))
}

fn wait(mut child: Child) -> Result<(), String> {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if child.try_wait().map_err(|error| format!("qemu: {error}"))?.is_some() {
            return Ok(());
        }
        // A look now and then: nothing is timed by it.
        std::thread::sleep(Duration::from_millis(200));
    }
    // Our own child, not waited for yet.
    let _ = child.kill();
    let _ = child.wait();
    Err(format!("the guest was not done after {} s", PATIENCE.as_secs()))
}

/// Whether all tests ended well, with a clock to look at.
fn judge(said: &str) -> Result<(), String> {
    for tests in ["library", "commands"] {
        if !said.lines().any(|line| line.trim_end() == format!("ended: {tests} 0")) {
            return Err(format!("the tests {tests} failed"));
        }
    }
    if said.contains("test result: ok. 0 passed") {
        return Err("no test of that name ran".to_owned());
    }
    match said.lines().find(|line| line.contains("SKIPPED") && line.contains("PTP")) {
        Some(skipped) => Err(format!("no PTP clock: {}", skipped.trim())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_that_failed_or_saw_no_clock_are_told() {
        let fine = "clock: igb\r\ntest a ... ok\r\nended: library 0\r\nended: commands 0\r\n";
        assert_eq!(judge(fine), Ok(()));
        assert!(judge(&fine.replace("commands 0", "commands 101")).is_err());
        assert!(judge("").is_err());
        let none = format!("test result: ok. 0 passed; 0 failed; 130 filtered out\r\n{fine}");
        assert!(judge(&none).is_err());
        let skipped = format!("SKIPPED a::b (c.rs): a PTP clock, /dev/ptp0\n{fine}");
        assert!(judge(&skipped).expect_err("no clock").contains("no PTP clock"));
    }
}
