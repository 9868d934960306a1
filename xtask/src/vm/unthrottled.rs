//! The guests of `measure saturation --unsafe-no-throttle`, which never runs anywhere else.
//!
//! One kernel has throttling alone, the other one a fair server too. Whatever ends the measurement
//! or the process that puts the settings back, they are as before.

use super::guest::Console;
use super::judge::{has, only, same};
use super::programs::Program;
use super::{Root, Scenario};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "death",
    what: "real-time throttling switched off and put back, also after kill -9",
    system: Root::Memory { guests: &[("6.1", &[]), ("6.12", &[])], drivers: &[] },
    append: "",
    programs: &[Program::Command],
    outside: &[],
    steps: &[STEPS],
    judge,
};

/// `within COMMAND` waits for a minute until it succeeds.
const STEPS: &str = "mount -t debugfs debugfs /sys/kernel/debug
chmod 1777 /tmp
server=/sys/kernel/debug/sched/fair_server/cpu1/runtime
throttle() { cat /proc/sys/kernel/sched_rt_runtime_us; [ ! -e $server ] || cat $server; }
was=$(throttle)
on() { [ \"$(throttle)\" = \"$was\" ]; }
off() {
  [ $(cat /proc/sys/kernel/sched_rt_runtime_us) = -1 ] &&
    { [ ! -e $server ] || [ $(cat $server) = 0 ]; }
}
within() { for second in $(seq 60); do \"$@\" && return 0; sleep 1; done; return 1; }
saturation='punctual measure saturation --cpu 1 --stimulus-cpu 0 --unsafe-no-throttle'
step before throttle
step death $saturation --duration 40s --json -
step after throttle
$saturation --duration 10min >/tmp/tool 2>&1 & tool=$!
step off within off
kill -9 $tool
step on within on
step killed throttle
$saturation --duration 1min >/tmp/tool 2>&1 & tool=$!
step off-again within off
for process in /proc/[0-9]*; do
  grep -q __unthrottle $process/cmdline && kill -9 ${process#/proc/}
done
step on-again within on
step orphan wait $tool
step told cat /tmp/tool
step status punctual tune status
step user su -s /bin/sh user -c \"$saturation --duration 10s --state /tmp\"
step last throttle
";

/// What the frequencies were means nothing under emulation.
fn judge(consoles: &[Console]) -> Result<(), String> {
    let console = only(consoles)?;
    for step in ["death", "off", "on", "off-again", "on-again", "status"] {
        console.ok(step)?;
    }
    let before = console.ok("before")?;
    for step in ["after", "killed", "last"] {
        same(&format!("settings before and {step}"), before, console.ok(step)?)?;
    }
    let result = console.result("death")?;
    let of = &result["saturation"];
    let trials = of["trials"].as_array().map_or(&[][..], Vec::as_slice);
    let long = trials.iter().filter(|trial| trial["ns"] == 2_500_000_000_u64);
    let left: Vec<f64> = long.filter_map(|trial| trial["background_share"].as_f64()).collect();
    println!("  left for the background in trials of 2.5 s: {left:.2?}");
    if of["unthrottled"] != true || left.is_empty() {
        return Err(format!("death: no trial without throttling: {of}"));
    }
    has("death", &result["warnings"].to_string(), "real-time throttling")?;
    has("status", console.ok("status")?, "nothing is applied")?;
    has("told", console.ok("told")?, "the process that puts throttling back was killed")?;
    for (step, why) in [("orphan", ""), ("user", "is not permitted")] {
        let (code, output) = console.step(step)?;
        has(step, output, why)?;
        if code != 2 {
            return Err(format!("{step} exited with {code} instead of 2"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(killed: &str, share: &str) -> Console {
        let step = |name: &str, output: &str, code: u8| {
            format!("step: {name}\n{output}\nended: {name} {code}\n")
        };
        let result = format!(
            "{{\"warnings\":[\"real-time throttling was off\"],\"saturation\":{{\"unthrottled\":\
             true,\"trials\":[{{\"ns\":2500000000,\"background_share\":{share}}}]}}}}"
        );
        let settings =
            [("before", "950000"), ("after", "950000"), ("killed", killed), ("last", "950000")];
        let fine = ["off", "on", "off-again", "on-again"].map(|name| step(name, "", 0)).concat();
        let settings = settings.map(|(name, value)| step(name, value, 0)).concat();
        let told = "the process that puts throttling back was killed; 0 settings";
        Console(
            [
                settings,
                fine,
                step("death", &result, 0),
                step("status", "nothing is applied", 0),
                step("told", told, 0),
                step("orphan", "", 2),
                step("user", "SCHED_FIFO 99, which is not permitted", 2),
            ]
            .concat(),
        )
    }

    #[test]
    fn settings_that_stay_off_are_found() {
        assert_eq!(judge(&[printed("950000", "0.5")]), Ok(()));
        assert!(judge(&[printed("-1", "0.5")]).is_err_and(|why| why.contains("killed")));
        assert!(judge(&[printed("950000", "null")]).is_err());
        assert!(judge(&[Console(String::new())]).is_err());
    }
}
