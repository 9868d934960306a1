//! The guest of `measure response` with devices: GPIO lines, serial and modem lines, parallel port,
//! two network devices that are joined.
//!
//! gpio-sim has no wires: a loop of the shell copies its output line to its input. The parallel
//! port of QEMU raises its interrupt when nStrobe rises, and its UART has a loop mode for bytes;
//! a plug for the modem lines is `plug.c`.

use serde_json::Value;

use super::programs::Program;
use super::{Console, Root, Scenario, first_console, has};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "sources",
    summary: "stimuli by GPIO, serial and modem lines, a parallel port and a cable of the guest",
    system: Root::Memory {
        guests: &[(
            "7.2",
            &[
                "isa-parallel,chardev=null0",
                "isa-serial,chardev=null1,index=2",
                "isa-serial,chardev=plug,index=3",
                "e1000e,netdev=near,romfile=",
                "e1000e,netdev=far,romfile=",
            ],
        )],
        drivers: &[
            "fs/configfs/configfs",
            "drivers/gpio/gpio-sim",
            "drivers/parport/parport",
            "drivers/parport/parport_pc",
            "drivers/char/ppdev",
            "drivers/net/ethernet/intel/e1000e/e1000e",
        ],
    },
    append: "isolcpus=1",
    programs: &[Program::Command],
    steps: &[STEPS],
    judge,
    ..Scenario::DEFAULT
};

/// `wire N` is the wire; after N changes it takes the chip away.
const STEPS: &str = "mount -t configfs configfs /sys/kernel/config
chmod 755 /sys/kernel/config
sim=/sys/kernel/config/gpio-sim/wired
mkdir -p $sim/bank
echo 4 >$sim/bank/num_lines
mkdir -p $sim/bank/line3/hog
echo led >$sim/bank/line3/hog/name
echo output-high >$sim/bank/line3/hog/direction
echo 1 >$sim/live
chip=$(cat $sim/bank/chip_name)
lines=/sys/devices/platform/gpio-sim.0/$chip
wire() {
  left=$1 was=0
  while [ $left -gt 0 ] && read now <$lines/sim_gpio2/value; do
    [ $now = $was ] && continue
    [ $now = 1 ] && echo pull-up >$lines/sim_gpio1/pull || echo pull-down >$lines/sim_gpio1/pull
    was=$now left=$((left - 1))
  done
  echo 0 >$sim/live
}
response() {
  punctual measure response --cpu 1 --stimulus-cpu 0 --period 100ms --duration $2 \\
    --source $1 --json -
}
step serial response serial:/dev/ttyS2 3s
step modem response modem:/dev/ttyS3 3s
step silent response modem:/dev/ttyS2 3s
step parport response parport:/dev/parport0 3s
step portless response parport:/dev/parport1 3s
step unwired response gpio:/dev/$chip:1:2 3s
step lines response gpio:/dev/$chip:1:4 3s
step busy response gpio:/dev/$chip:1:3 3s
step user su -s /bin/sh user -c \"punctual measure response --source gpio:/dev/$chip:1:2\"
wire 1000000 & plug=$!
step gpio response gpio:/dev/$chip:1:2 3s
kill $plug
wire 20 &
step gone response gpio:/dev/$chip:1:2 10min
step absent response gpio:/dev/$chip:1:2 3s
step cable response cable:eth0:eth1 3s
response cable:eth0:eth1 10min >/dev/null 2>&1 & run=$!
lent() { [ ! -d /sys/class/net/eth0 ] && [ ! -d /sys/class/net/eth1 ]; }
for second in $(seq 60); do lent && break; sleep 1; done
sleep 2
step lent lent
kill -9 $run $(pidof punctual)
back() { [ -d /sys/class/net/eth0 ] && [ -d /sys/class/net/eth1 ]; }
for second in $(seq 60); do back && break; sleep 1; done
step back back
step again response cable:eth0:eth1 3s
for second in $(seq 60); do back && break; sleep 1; done
ip link set eth0 up
step taken response cable:eth0:eth1 3s
step virtual response cable:lo:eth1 3s
";

/// That stimuli of each source were answered by both stages, that what is missing was named, and
/// that a chip that was removed left what there was. When they were answered means nothing here.
fn judge(consoles: &[Console]) -> Result<(), String> {
    let console = first_console(consoles)?;
    let cable = "over a cable from eth0 to eth1";
    for (step, note) in [
        ("serial", "loop mode"),
        ("modem", ""),
        ("parport", ""),
        ("gpio", ""),
        ("cable", cable),
        ("again", cable),
    ] {
        console.ok(step)?;
        let row = answered(console, step, note)?;
        if !row["lost"].is_null() {
            return Err(format!("{step}: the source was lost: {}", row["lost"]));
        }
        let stamp = row["kernel_ns"]["min"].as_f64();
        if ["gpio", "cable", "again"].contains(&step) != stamp.is_some_and(|ns| ns > 0.0) {
            return Err(format!("{step}: the kernel's stamps: {}", row["kernel_ns"]));
        }
    }
    for (step, why) in [
        ("silent", "in the UART's loop mode, but no interrupt reports"),
        ("portless", "No such file"),
        ("unwired", "no edge on line 1 within 1 s after line 2 was set high"),
        ("lines", "has no line 4: its lines are 0 to 3"),
        ("busy", "line 3 is in use by \"led\""),
        ("user", "it must be readable and writable"),
        ("gone", "the source was lost"),
        ("absent", "No such file"),
        ("taken", "eth0 is in use"),
        ("virtual", "lo is a virtual device"),
    ] {
        let (code, output) = console.step(step)?;
        has(step, output, why)?;
        if code != 2 {
            return Err(format!("{step} exited with {code} instead of 2"));
        }
    }
    console.ok("lent").and(console.ok("back"))?;
    let row = answered(console, "gone", "")?;
    has("gone", row["lost"].as_str().unwrap_or_default(), "No such device")
}

/// The only row of a result whose stimuli both stages answered.
fn answered(console: &Console, step: &str, note: &str) -> Result<Value, String> {
    let mut response = console.result(step)?["response"].take();
    has(step, response["note"].as_str().unwrap_or_default(), note)?;
    let row = response["rows"][0].take();
    let counts: Vec<u64> =
        (0..2).filter_map(|stage| row["stages"][stage]["answered"].as_u64()).collect();
    println!("  {step}: {} stimuli, answered {counts:?}", row["stimuli"]);
    match counts.len() == 2 && counts.iter().all(|count| *count > 0) {
        true => Ok(row),
        false => Err(format!("{step}: stimuli without answers: {row}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text that a guest prints whose sources have as many answers.
    fn printed(answers: u32, kernel: &str) -> Console {
        let step = |name: &str, output: &str, code: u8| {
            format!("step: {name}\n{output}\nended: {name} {code}\n")
        };
        let row = |kernel: &str, lost: &str| {
            let stage = format!("{{\"answered\":{answers}}}");
            format!(
                "{{\"response\":{{\"note\":\"loop mode, over a cable from eth0 to eth1\",\
                 \"rows\":[{{\"stimuli\":30,\
                 \"kernel_ns\":{kernel},\"stages\":[{stage},{stage}],\"lost\":{lost}}}]}}}}"
            )
        };
        let fine =
            ["serial", "modem", "parport"].map(|name| step(name, &row("null", "null"), 0)).concat();
        let refused = [
            ("silent", "CTS follows RTS in the UART's loop mode, but no interrupt reports it"),
            ("portless", "No such file"),
            ("unwired", "no edge on line 1 within 1 s after line 2 was set high"),
            ("lines", "/dev/gpiochip0 has no line 4: its lines are 0 to 3"),
            ("busy", "line 3 is in use by \"led\""),
            ("user", "it must be readable and writable"),
            ("absent", "No such file"),
            ("taken", "eth0 is in use: switch it off"),
            ("virtual", "lo is a virtual device"),
        ];
        let refused = refused.map(|(name, why)| step(name, why, 2)).concat();
        let gone = row(kernel, "\"No such device\"") + "\nthe source was lost";
        let stamped = ["gpio", "cable", "again"].map(|name| step(name, &row(kernel, "null"), 0));
        let gpio = stamped.concat() + &step("lent", "", 0) + &step("back", "", 0);
        Console(fine + &refused + &gpio + &step("gone", &gone, 2))
    }

    #[test]
    fn sources_without_answers_or_stamps_are_found() {
        assert_eq!(judge(&[printed(30, "{\"min\":500.0}")]), Ok(()));
        assert!(judge(&[printed(0, "{\"min\":500.0}")]).is_err());
        assert!(judge(&[printed(30, "null")]).is_err_and(|why| why.contains("gpio")));
        assert!(judge(&[Console(String::new())]).is_err());
    }
}
