//! One guest: a kernel, what it boots into, and what came out of its serial console.
//!
//! The console goes to a file, which is read once the guest has ended; a guest that hangs is
//! ended. The first process runs the steps of a script, each between two lines that
//! [`Console`] finds again.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::system::System;
use crate::{process, root};

/// What the first process does before the steps: mounts and drivers. Nothing is mounted on /tmp:
/// the command under test lies there when the clone does, and the root is in memory anyway.
const BEFORE: &str = "#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp /run /root /etc
/bin/busybox mount -t proc proc /proc
/bin/busybox --install -s /bin
export PATH=/bin HOME=/root
echo 'root:x:0:0:root:/root:/bin/sh' >/etc/passwd
echo 'user:x:1000:1000::/:/bin/sh' >>/etc/passwd
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /sys/fs/cgroup /dev/shm /dev/pts
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tmpfs tmpfs /dev/shm
mount -t devpts devpts /dev/pts
ip link set lo up
for driver in /drivers/*; do [ -e $driver ] && insmod $driver; done
";

/// Functions of the shell: `step` runs a command between two lines, `snapshot` prints the settings
/// that a plan may change, `groups` the control groups, `files` and `cmdline` what the boot loader
/// reads; `killed` ends `punctual isolate` in the middle; /tmp/inside, isolated, shows where it
/// runs.
pub(crate) const FUNCTIONS: &str = "step() {
  name=$1; shift; echo \"step: $name\"; \"$@\" 2>&1; echo \"ended: $name $?\"
}
snapshot() {
  for file in /proc/sys/vm/* /proc/sys/kernel/*watchdog* /proc/sys/kernel/sched* \\
    /proc/sys/kernel/timer_migration /proc/sys/kernel/numa_balancing /proc/irq/*/smp_affinity \\
    /proc/irq/default_smp_affinity /sys/devices/virtual/workqueue/cpumask \\
    /sys/devices/virtual/workqueue/*/cpumask /sys/kernel/mm/transparent_hugepage/* \\
    /sys/kernel/rcu_* /sys/devices/system/cpu/cpu*/power/pm_qos_resume_latency_us \\
    /sys/devices/system/machinecheck/machinecheck*/check_interval; do
    [ -f $file ] && [ -r $file ] && echo $file $(cat $file 2>&1)
  done
}
groups() { ls -d /sys/fs/cgroup/punctual* 2>/dev/null; cat /sys/fs/cgroup/cgroup.subtree_control; }
killed() {
  punctual isolate --cpus 1 -- sleep 60 &
  for second in $(seq 60); do [ -d /sys/fs/cgroup/punctual.isolated ] && break; sleep 1; done
  sleep 2; kill -9 $!; wait $!; punctual tune revert
}
files() { sha256sum /etc/default/grub /boot/grub/grub.cfg; ls -A /etc/default /etc/default/grub.d; }
cmdline() {
  sed -n 's/^[[:space:]]*linux[[:space:]]*[^[:space:]]*//p' /boot/grub/grub.cfg | head -n 1
}
cat >/tmp/inside <<'END'
#!/bin/sh
cat /proc/self/cgroup
grep Cpus_allowed_list /proc/self/status
cat /sys/fs/cgroup/punctual.isolated/cpuset.cpus.partition
cut -d' ' -f40 /proc/self/stat
exit 7
END
chmod +x /tmp/inside
";

/// A program that talks to the guest: over its third serial port, and over its network card, whose
/// UDP port [`GUEST_PORT`] is `port` of the loopback interface here.
pub(crate) struct Outside<'a> {
    pub program: &'a Path,
    /// Each run's name and arguments; `SERIAL` and `UDP` stand for the links to the guest.
    pub runs: &'a [(&'a str, &'a str)],
    pub port: u16,
}

/// The port that the guest listens on.
const GUEST_PORT: u16 = 7_000;

/// How a device names the end that connects RTS to CTS.
const PLUG: &str = "chardev=plug";

/// How a device names one end of a cable; the other one is `netdev=far`.
const CABLE: &str = "netdev=near";

/// A guest to be started.
pub(crate) struct Guest<'a> {
    pub emulator: &'a System,
    pub kernel: &'a Path,
    pub initrd: &'a Path,
    /// Disks: /dev/vda and on.
    pub disks: &'a [&'a Path],
    /// Devices as QEMU names them; `null0` and `null1` are ends of theirs that take everything,
    /// `plug` one that connects RTS to CTS, `near` and `far` those of a cable.
    pub devices: &'a [&'a str],
    /// What runs on this side meanwhile.
    pub outside: Option<&'a Outside<'a>>,
    /// Parameters of the kernel, added to those of the console.
    pub append: &'a str,
    /// A guest that takes longer is ended: one boots in 5 s where nothing else runs.
    pub patience: Duration,
}

/// The first process: mounts, drivers, the lines of `steps`, off.
pub(crate) fn init(steps: &str) -> String {
    format!("{BEFORE}{FUNCTIONS}{steps}\npoweroff -f\n")
}

impl Guest<'_> {
    /// Boots it and returns what came out of its serial ports: the first, with the kernel's
    /// console, is kept in `log`, the second in `log` with the ending `.steps`.
    pub(crate) fn run(&self, log: &Path) -> Result<Console, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", log.display());
        let (first, second) = (File::create(log).map_err(failed)?, log.with_extension("steps"));
        let errors = first.try_clone().map_err(failed)?;
        let mut qemu = self.emulator.program("qemu-system-x86_64");
        qemu.args(["-chardev", "null,id=null0", "-chardev", "null,id=null1"]);
        for firmware in ["qemu", "seabios"] {
            qemu.arg("-L").arg(self.emulator.path("usr/share").join(firmware));
        }
        qemu.arg("-L").arg(self.emulator.path("usr/lib/ipxe/qemu"));
        qemu.args(["-accel", "tcg,thread=multi", "-cpu", "max", "-m", "1G", "-smp", "2"]);
        qemu.args(["-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot"]);
        qemu.arg("-serial").arg(format!("file:{}", second.display()));
        qemu.arg("-kernel").arg(self.kernel).arg("-initrd").arg(self.initrd);
        qemu.arg("-append").arg(format!("console=ttyS0 panic=-1 quiet {}", self.append));
        for disk in self.disks {
            qemu.arg("-drive").arg(format!("file={},format=raw,if=virtio", disk.display()));
        }
        if self.devices.iter().any(|device| device.contains(PLUG)) {
            Self::plug(&mut qemu, log)?;
        }
        if self.devices.iter().any(|device| device.contains(CABLE)) {
            qemu.args(["-netdev", "hubport,hubid=0,id=near", "-netdev", "hubport,hubid=0,id=far"]);
        }
        for device in self.devices {
            qemu.args(["-device", device]);
        }
        let line = log.with_extension("line");
        if let Some(Outside { port, .. }) = self.outside {
            qemu.arg("-chardev").arg(format!("pty,id=line,path={}", line.display()));
            qemu.args(["-serial", "chardev:line", "-device", "e1000e,netdev=net,romfile="]);
            let forward = format!("hostfwd=udp:127.0.0.1:{port}-:{GUEST_PORT}");
            qemu.arg("-netdev").arg(format!("user,id=net,{forward}"));
        }
        qemu.stdin(Stdio::null()).stdout(first).stderr(errors);
        let mut child = qemu.spawn().map_err(|error| format!("qemu: {error}"))?;
        let end = Instant::now() + self.patience;
        let printed = self.outside.map(|outside| outside.run(&line, &mut child, end));
        wait(child, end)?;
        let mut bytes = fs::read(log).map_err(failed)?;
        bytes.extend(fs::read(&second).map_err(failed)?);
        bytes.extend(printed.unwrap_or_default().into_bytes());
        Ok(Console(String::from_utf8_lossy(&bytes).replace('\r', "")))
    }

    /// A pseudo-terminal as the end of a serial port, and a library that answers for its modem
    /// lines.
    fn plug(qemu: &mut Command, log: &Path) -> Result<(), String> {
        let (library, end) = (log.with_extension("so"), log.with_extension("end"));
        if end.is_symlink() {
            // Of a guest that was killed.
            fs::remove_file(&end).map_err(|error| format!("{}: {error}", end.display()))?;
        }
        let mut compiler = Command::new("cc");
        compiler.args(["-Wall", "-Werror", "-shared", "-fPIC", "-o"]).arg(&library);
        process::run(compiler.arg(root::root().join("xtask/src/vm/plug.c")))?;
        qemu.env("LD_PRELOAD", &library);
        qemu.arg("-chardev").arg(format!("pty,id=end,path={}", end.display()));
        qemu.arg("-chardev").arg(format!("serial,id=plug,path={}", end.display()));
        Ok(())
    }
}

impl Outside<'_> {
    /// Runs each in turn, again until it succeeds: the guest may not be up yet. What the last try
    /// of each printed, as steps.
    fn run(&self, line: &Path, guest: &mut Child, end: Instant) -> String {
        let mut printed = String::new();
        for (name, arguments) in self.runs {
            let links = [
                ("SERIAL", format!("serial:{}", line.display())),
                ("UDP", format!("udp:127.0.0.1:{}", self.port)),
            ];
            let arguments = links
                .iter()
                .fold((*arguments).to_owned(), |text, (word, link)| text.replace(word, link));
            let last = loop {
                let mut command = Command::new(self.program);
                command.args(arguments.split(' ')).stdin(Stdio::null());
                let output = command.output();
                let done = output.as_ref().is_ok_and(|output| output.status.success());
                let is_up = matches!(guest.try_wait(), Ok(None)) && Instant::now() < end;
                if done || !is_up {
                    break output;
                }
                // A look now and then, as in `wait`.
                std::thread::sleep(LOOK);
            };
            let (text, code) = last.map_or_else(
                |why| (why.to_string(), -1),
                |output| {
                    let text = [output.stdout, output.stderr].concat();
                    let code = output.status.code().unwrap_or(-1);
                    (String::from_utf8_lossy(&text).into_owned(), code)
                },
            );
            printed += &format!("step: {name}\n{text}\nended: {name} {code}\n");
        }
        printed
    }
}

/// How often a guest is looked at: nothing is timed by it.
const LOOK: Duration = Duration::from_millis(200);

fn wait(mut child: Child, end: Instant) -> Result<(), String> {
    while Instant::now() < end {
        if child.try_wait().map_err(|error| format!("qemu: {error}"))?.is_some() {
            return Ok(());
        }
        // A look now and then.
        std::thread::sleep(LOOK);
    }
    // Our own child, not waited for yet.
    let _ = child.kill();
    let _ = child.wait();
    Err("the guest was not done in time".to_owned())
}

/// What a guest printed.
pub(crate) struct Console(pub String);

impl Console {
    /// How a step ended and what it printed; an error where it did not run to its end.
    pub(crate) fn step(&self, name: &str) -> Result<(i32, &str), String> {
        let Self(text) = self;
        let begin = format!("step: {name}\n");
        let (_, rest) =
            text.split_once(&begin).ok_or_else(|| format!("the step {name} did not begin"))?;
        let end = format!("ended: {name} ");
        let (output, rest) =
            rest.split_once(&end).ok_or_else(|| format!("the step {name} did not end"))?;
        let code = rest.lines().next().unwrap_or_default().trim();
        let code =
            code.parse().map_err(|_| format!("the step {name} ended with {code:?}, no number"))?;
        Ok((code, output))
    }

    /// The output of a step that must exit with 0.
    pub(crate) fn ok(&self, name: &str) -> Result<&str, String> {
        match self.step(name)? {
            (0, output) => Ok(output),
            (code, _) => Err(format!("the step {name} exited with {code}")),
        }
    }

    /// The first JSON object that a step printed.
    pub(crate) fn result(&self, name: &str) -> Result<Value, String> {
        let (_, printed) = self.step(name)?;
        let none = || format!("{name}: no result: {printed}");
        let begin = printed.find('{').ok_or_else(none)?;
        let first = serde_json::Deserializer::from_str(&printed[begin..]).into_iter().next();
        first.ok_or_else(none)?.map_err(|error| format!("{name}: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_found_with_its_code_and_its_output() {
        let console =
            Console("boot\nstep: one\na\nb\nended: one 0\nstep: two\nended: two 3\n".to_owned());
        assert_eq!(console.step("one"), Ok((0, "a\nb\n")));
        assert_eq!(console.ok("one"), Ok("a\nb\n"));
        assert_eq!(console.step("two"), Ok((3, "")));
        assert!(console.ok("two").is_err());
        assert!(console.step("three").is_err());
        let cut = Console("step: one\na\n".to_owned());
        assert!(cut.step("one").expect_err("cut").contains("did not end"));
    }

    #[test]
    fn the_script_ends_by_switching_off() {
        let script = init("step one true");
        assert!(script.starts_with("#!/bin/busybox sh\n"));
        assert!(script.ends_with("step one true\npoweroff -f\n"));
    }
}
