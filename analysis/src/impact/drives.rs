//! Timings that stepper drives need, as LinuxCNC's users collected them.
//!
//! Facts of LinuxCNC's documentation (docs/src/integrator/stepper-timing.adoc): name, step time,
//! step space, direction hold, direction setup. Where that table has no number, this one has none
//! either. Data, and how to find a row.

use super::step_generation::DriveTimings;

/// A drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drive {
    /// Its identifier on the command line.
    pub id: &'static str,
    /// Maker and model.
    pub name: &'static str,
    /// True where LinuxCNC's table has it as confirmed.
    pub confirmed: bool,
    /// Step time, step space, direction hold, direction setup, ns; `None` where the table has no
    /// number.
    pub needs_ns: [Option<u64>; 4],
}

impl Drive {
    /// Its timings; those that the table has not are `otherwise`.
    pub fn timings(&self, otherwise: DriveTimings) -> DriveTimings {
        let [step_time, step_space, dir_hold, dir_setup] = self.needs_ns;
        DriveTimings {
            step_time_ns: step_time.unwrap_or(otherwise.step_time_ns),
            step_space_ns: step_space.unwrap_or(otherwise.step_space_ns),
            dir_hold_ns: dir_hold.unwrap_or(otherwise.dir_hold_ns),
            dir_setup_ns: dir_setup.unwrap_or(otherwise.dir_setup_ns),
        }
    }
}

/// The drive of that id, in any case.
pub fn find(id: &str) -> Option<&'static Drive> {
    DRIVES.iter().find(|drive| drive.id.eq_ignore_ascii_case(id.trim()))
}

/// The drives whose id is most like this one, in the order of the table: those with the same
/// letters and digits, else those that begin so, else those that have it, else those of the same
/// maker; none where no drive is.
pub fn like(id: &str) -> Vec<&'static Drive> {
    let letters = |text: &str| -> String {
        let letters = text.chars().filter(char::is_ascii_alphanumeric);
        letters.map(|letter| letter.to_ascii_lowercase()).collect()
    };
    let wanted = letters(id);
    let maker: String = wanted.chars().take_while(char::is_ascii_alphabetic).collect();
    let is_like: [&dyn Fn(&str) -> bool; 4] = [
        &|known| known == wanted,
        &|known| known.starts_with(&wanted),
        &|known| known.contains(&wanted),
        &|known| maker.len() >= MAKER_LETTERS && known.starts_with(&maker),
    ];
    let found = |is_like: &dyn Fn(&str) -> bool| -> Vec<&'static Drive> {
        DRIVES.iter().filter(|drive| is_like(&letters(drive.id))).collect()
    };
    let each = is_like.into_iter().filter(|_| !wanted.is_empty()).map(found);
    each.into_iter().find(|drives| !drives.is_empty()).unwrap_or_default()
}

/// Fewer letters than these name no maker.
const MAKER_LETTERS: usize = 3;

/// The table has no number.
const UNKNOWN: u64 = u64::MAX;

const fn drive(id: &'static str, name: &'static str, confirmed: bool, needs_ns: [u64; 4]) -> Drive {
    let [step_time, step_space, dir_hold, dir_setup] = needs_ns;
    let needs_ns = [known(step_time), known(step_space), known(dir_hold), known(dir_setup)];
    Drive { id, name, confirmed, needs_ns }
}

const fn known(ns: u64) -> Option<u64> {
    if ns == UNKNOWN { None } else { Some(ns) }
}

/// All drives, in the order of LinuxCNC's table.
pub static DRIVES: [Drive; 57] = [
    drive("blue-board-tb6560", "Blue board TB6560", true, [150_000, 150_000, 150_000, 150_000]),
    drive("gecko-201", "Gecko 201", true, [500, 4_000, 20_000, 1_000]),
    drive("gecko-202", "Gecko 202", true, [500, 4_500, 20_000, 1_000]),
    drive("gecko-203v", "Gecko 203v", true, [1_000, 2_000, 200, 200]),
    drive("gecko-201x", "Gecko 201x", true, [500, 3_000, 20_000, 1_000]),
    drive("gecko-212", "Gecko 212", true, [500, 4_000, 20_000, 1_000]),
    drive("gecko-213v", "Gecko 213v", true, [2_000, 1_000, 200, 200]),
    drive("gecko-320", "Gecko 320", true, [3_500, 500, 200, 200]),
    drive("gecko-320x", "Gecko 320x", true, [1_000, 2_500, 200, 200]),
    drive(
        "granite-devices-vsd-e-xe-evolution",
        "Granite Devices VSD-E/XE Evolution",
        true,
        [125, 125, 125, 125],
    ),
    drive(
        "granite-devices-vsd-e-xe-dualdc",
        "Granite Devices VSD-E/XE DualDC",
        true,
        [150, 1_850, 150, 800],
    ),
    drive("jvl-smd41", "JVL SMD41", true, [500, 500, 2_500, 2_500]),
    drive("jvl-smd42", "JVL SMD42", true, [500, 500, 2_500, 2_500]),
    drive("linistepper-rulms1", "Linistepper RULMS1", true, [30_000, 100_000, 4_000, 4_000]),
    drive("linistepper-thb6064", "Linistepper THB6064", true, [2_300, 2_300, 4_600, 1_000]),
    drive("motion-control-msd542", "Motion Control MSD542", false, [1_500, 2_000, 2_000, 2_000]),
    drive("parker-oem750", "Parker OEM750", true, [200, 300, 0, 200_000]),
    drive("st-l297", "ST L297", true, [UNKNOWN, 500, 4_000, 1_000]),
    drive("xylotex-xs-3525-8s-3", "Xylotex XS-3525/8S-3", true, [2_000, 1_000, 200, 200]),
    drive("xylotex-xs-3525-8s-4", "Xylotex XS-3525/8S-4", true, [1_000, 1_000, 200, 200]),
    drive(
        "lin-engineering-silverpak-17d-de",
        "Lin Engineering Silverpak 17D/DE",
        true,
        [20_000, 20_000, 200, 200],
    ),
    drive(
        "hobbycnc-pro-chopper-board",
        "Hobbycnc Pro Chopper Board",
        true,
        [2_000, 2_000, 2_000, 2_000],
    ),
    drive("routout-2.5-a", "Routout 2.5 A", false, [200, 1_000, 1_000, UNKNOWN]),
    drive("ims-im483", "IMS IM483", false, [1_000, 1_000, 1_000, 1_000]),
    drive("keling-4030", "Keling 4030", true, [5_000, 5_000, 20_000, 20_000]),
    drive("keling-6852", "Keling 6852", true, [1_750, 1_750, 10_000, 10_000]),
    drive("sherline-8760", "Sherline 8760", true, [1_000, 6_000, 24_000, 24_000]),
    drive("lewetz-step3s", "Lewetz Step3S", true, [6_000, 15_000, UNKNOWN, 5_000]),
    drive("parker-zeta-4", "Parker Zeta 4", false, [200, 200, 200, 200]),
    drive("cncdrive-dugong", "cncdrive Dugong", true, [1_000, 2_500, 1_000, 1_000]),
    drive("cncdrive-dg2s-08020", "cncdrive DG2S-08020", true, [1_000, 2_500, 1_000, 1_000]),
    drive("wantai-dq542ma", "Wantai DQ542MA", true, [5_050, 5_050, 500, 500]),
    drive("leadshine-dm422", "Leadshine DM422", true, [7_500, 7_500, 20_000, 5_000]),
    drive("leadshine-dm556", "Leadshine DM556", true, [2_500, 2_500, 10_000, 5_000]),
    drive("leadshine-dm856", "Leadshine DM856", true, [2_500, 2_500, 10_000, 5_000]),
    drive("leadshine-dm870", "Leadshine DM870", true, [2_500, 2_500, 10_000, 5_000]),
    drive("leadshine-dm1182", "Leadshine DM1182", true, [2_500, 2_500, 10_000, 5_000]),
    drive("leadshine-em402", "Leadshine EM402", true, [10_000, 2_500, 10_000, 5_000]),
    drive("leadshine-em503", "Leadshine EM503", true, [2_500, 2_500, 10_000, 5_000]),
    drive("leadshine-em705", "Leadshine EM705", true, [2_500, 2_500, 10_000, 5_000]),
    drive("leadshine-em806", "Leadshine EM806", true, [2_500, 2_500, 10_000, 5_000]),
    drive("leadshine-m415b", "Leadshine M415B", true, [1_500, 1_500, 8_000, 5_000]),
    drive("leadshine-m542", "Leadshine M542", true, [1_500, 1_500, 8_000, 5_000]),
    drive("leadshine-m752", "Leadshine M752", true, [1_500, 1_500, 8_000, 5_000]),
    drive("leadshine-m880a", "Leadshine M880A", true, [1_500, 1_500, 8_000, 5_000]),
    drive("leadshine-m860h", "Leadshine M860H", true, [1_500, 1_500, 8_000, 5_000]),
    drive("leadshine-dcs303", "Leadshine DCS303", true, [2_500, 2_500, 10_000, 5_000]),
    drive("leadshine-dcs810", "Leadshine DCS810", true, [2_500, 2_500, 10_000, 5_000]),
    drive("leadshine-dcs810s", "Leadshine DCS810S", true, [1_000, 1_000, 7_000, 5_000]),
    drive("leadshine-acs306", "Leadshine ACS306", true, [2_500, 2_500, 10_000, 5_000]),
    drive("leadshine-acs606", "Leadshine ACS606", true, [850, 850, 6_700, 5_000]),
    drive("leadshine-acs806", "Leadshine ACS806", true, [850, 850, 6_700, 5_000]),
    drive(
        "stepperonline-dm860t-v1.0",
        "StepperOnline DM860T v1.0",
        true,
        [5_000, 5_000, 5_000, 5_000],
    ),
    drive(
        "stepperonline-dm860t-v3.0",
        "StepperOnline DM860T v3.0",
        true,
        [5_000, 5_000, 5_000, 5_000],
    ),
    drive("pololu-a4988", "Pololu A4988", true, [1_000, 1_000, 200, 200]),
    drive("pololu-drv8825", "Pololu DRV8825", true, [1_900, 1_900, 650, 650]),
    drive("cnc4you-cw5045", "cnc4you CW5045", true, [2_000, 8_000, 5_000, 5_000]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_drive_is_found_by_an_id_of_its_own() {
        for (at, drive) in DRIVES.iter().enumerate() {
            assert_eq!(find(drive.id), Some(drive), "{}", drive.id);
            assert!(
                DRIVES[..at].iter().all(|earlier| earlier.id != drive.id),
                "{} twice",
                drive.id
            );
            let sound = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || ".-".contains(c);
            assert!(drive.id.chars().all(sound), "{}", drive.id);
        }
        assert_eq!(find("GECKO-201 ").map(|drive| drive.name), Some("Gecko 201"));
        assert_eq!(find("no-such-drive"), None);
    }

    #[test]
    fn an_id_that_is_nearly_one_leads_to_it() {
        let ids = |id: &str| -> Vec<&str> { like(id).iter().map(|drive| drive.id).collect() };
        for nearly in ["gecko201", "GECKO_201", " gecko 201"] {
            assert_eq!(ids(nearly), ["gecko-201"], "{nearly}");
        }
        assert_eq!(ids("dm860t-v1"), ["stepperonline-dm860t-v1.0"]);
        assert!(ids("gecko-999").contains(&"gecko-201"), "of the same maker");
        assert!(ids("gecko").len() > 2 && ids("no-such").is_empty() && ids("-").is_empty());
    }

    #[test]
    fn what_nobody_noted_is_taken_from_elsewhere() {
        let timings = find("st-l297").unwrap().timings(DriveTimings::default());
        assert_eq!((timings.step_time_ns, timings.step_space_ns), (5_000, 500));
        let gecko = find("gecko-203v").unwrap().timings(DriveTimings::default());
        assert_eq!((gecko.step_time_ns, gecko.step_space_ns), (1_000, 2_000));
        assert_eq!((gecko.dir_hold_ns, gecko.dir_setup_ns), (200, 200));
    }
}
