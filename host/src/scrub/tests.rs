//! What goes, what stays, and that nothing of a secret is left.

use super::*;
use crate::testing::Tree;
use proptest::prelude::*;

fn scrub() -> Scrub {
    Scrub::new().host("Anvil.example.org").user("alice").user("Alice Liddell")
}

#[test]
fn addresses_and_identifiers_go() {
    let zeros = "00000000-0000-0000-0000-000000000000";
    for (text, shown) in [
        ("at 10.1.2.3.", "at 192.0.2.1."),
        ("10.1.2.3:8080/x", "192.0.2.1:8080/x"),
        ("de:ad:be:ef:00:01", "02:00:00:00:00:00"),
        ("enxdeadbeef0001-rx-0", "enx020000000000-rx-0"),
        ("renxdeadbeef0001 enxdeadbeef", "renxdeadbeef0001 enxdeadbeef"),
        ("BOOTIF=01-de-ad-be-ef-00-01", "BOOTIF=01-02-00-00-00-00-00"),
        ("[fe80::1234]:80", "[2001:db8::1]:80"),
        ("2001:470:1:2:3:4:5:6", "2001:db8::1"),
        ("x 4c1a5c3e-0001-4a3b-9c8d-0123456789ab", &format!("x {zeros}")),
        ("luks-4C1A5C3E-0001-4A3B-9C8D-0123456789AB", &format!("luks-{zeros}")),
        ("/docker/0123456789abcdef0123456789abcdef", &format!("/docker/{}", "0".repeat(32))),
    ] {
        assert_eq!(scrub().text(text), shown, "{text}");
    }
}

#[test]
fn names_go_as_whole_words() {
    for (text, shown) in [
        ("anvil", "host"),
        ("ANVIL-root", "host-root"),
        ("anvil.example.org", "host"),
        ("/user.slice/alice@tty1", "/user.slice/user@tty1"),
        ("alice liddell!", "user!"),
        ("anvils malice alice2", "anvils malice alice2"),
    ] {
        assert_eq!(scrub().text(text), shown, "{text}");
    }
}

#[test]
fn what_tells_nothing_stays() {
    for text in [
        "0::/",
        "0.0.0.0 127.0.0.1 ::1",
        "0000:00:1f.2",
        "12:34:56",
        "6.18.44-rc1 1.2.3",
        "3:cpuset:/",
        "0-3,5",
        "999.1.1.1",
        "000001fffeffffff",
    ] {
        assert_eq!(scrub().text(text), text);
    }
    assert_eq!(scrub().path("5.15.167.4-microsoft"), "5.15.167.4-microsoft");
    assert_eq!(
        Scrub::new().user("root").host("localhost").text("root localhost"),
        "root localhost"
    );
}

#[test]
fn command_lines_keep_what_tunes() {
    let kept = "BOOT_IMAGE=/boot/vmlinuz-6.12 root=/dev/sda1 isolcpus=domain,2-3 quiet \
        preempt=full \
                rootflags=subvol=@ a=\"b c\"\n";
    assert_eq!(scrub().command_line(kept), kept);
    for (text, shown) in [
        ("root=UUID=1234-abcd", "root=UUID=0000-0000"),
        ("root=PARTUUID=deadbeef-02", "root=PARTUUID=00000000-00"),
        ("root=/dev/mapper/anvil--vg-root", "root=/dev/mapper/removed"),
        ("resume=/dev/disk/by-id/ata-SERIAL123", "resume=/dev/disk/by-id/removed"),
        ("ip=10.0.0.2::10.0.0.1:255.0.0.0:box:eth0", "ip=removed"),
        ("nfsroot=10.0.0.1:/srv", "nfsroot=removed"),
        ("rd.luks.uuid=luks-12ab", "rd.luks.uuid=luks-0000"),
        (
            "rd.md.uuid=12345678:12345678:12345678:12345678",
            "rd.md.uuid=00000000:00000000:00000000:00000000",
        ),
        ("inst.ks=http://box/ks", "inst.ks=removed"),
        ("systemd.set_credential=a:b", "systemd.set_credential=removed"),
        ("x=bob@box", "x=removed"),
        ("systemd.hostname=box", "systemd.hostname=removed"),
        ("quiet -- --token abc", "quiet --"),
        ("net.ifnames=1 ip=enxdeadbeef0001:dhcp", "net.ifnames=1 ip=removed"),
        ("rd.neednet=1 x=enxdeadbeef0001", "rd.neednet=1 x=enx020000000000"),
        (
            "rd.luks.name=4c1a5c3e-0001-4a3b-9c8d-0123456789ab=alices_disk",
            "rd.luks.name=00000000-0000-0000-0000-000000000000=removed",
        ),
        ("cifsroot=//fileserver/share,user=x", "cifsroot=removed"),
        ("root=fileserver:/srv/nfs", "root=removed"),
        (
            "wpa=hunter2 wifikey=x apitoken=y mypasswd=z",
            "wpa=removed wifikey=removed apitoken=removed mypasswd=removed",
        ),
        ("iommu.passthrough=1 vconsole.keymap=de", "iommu.passthrough=1 vconsole.keymap=de"),
        ("iommu=pt module.x_bypass=1 blkdev=8:1", "iommu=pt module.x_bypass=1 blkdev=8:1"),
    ] {
        assert_eq!(scrub().command_line(text).trim_end(), shown, "{text}");
    }
}

#[test]
fn names_come_from_the_machine() {
    let tree = Tree::of(&[
        ("/proc/sys/kernel/hostname", "anvil\n"),
        (
            "/etc/passwd",
            "root:x:0:0:root:/root:/bin/sh\nal:x:1000:1000:Al Ice,,,:/home/alf:/bin/sh\nbad\n",
        ),
    ]);
    let scrub = Scrub::of(&tree.root());
    assert_eq!(scrub.text("anvil root al alf Al Ice"), "host root user user user");
}

proptest! {
    #[test]
    fn twice_is_once(
        // What is taken out, names and words, apart from each other.
        text in "(([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{2}(:[0-9a-f]{2}){5}|\
                 [0-9]{1,3}(\\.[0-9]{1,3}){3}|fe80::[1-9a-f]{1,4}|[0-9a-f]{30,40}|alice|anvil|\
                 ip|root=UUID|[a-z]{1,5})[ =/,@_é]){0,8}"
    ) {
        let once = scrub().text(&text);
        prop_assert_eq!(scrub().text(&once), once);
        let line = scrub().command_line(&text);
        prop_assert_eq!(scrub().command_line(&line), line);
    }

    #[test]
    fn any_text_is_survived(text in ".*") {
        let _ = (scrub().text(&text), scrub().path(&text), scrub().command_line(&text));
    }

    #[test]
    fn no_secret_is_left(
        before in "[ =/,\\[(]", after in "[ /,\\])]",
        octets in proptest::array::uniform6(16u8..=255),
        words in proptest::array::uniform8(16u16..),
    ) {
        let [a, b, c, d, e, f] = octets;
        let ipv6 = words.map(|word| format!("{word:x}")).join(":");
        let secrets = [
            format!("{a}.{b}.{c}.{d}"),
            format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}"),
            format!("{a:02X}-{b:02X}-{c:02X}-{d:02X}-{e:02X}-{f:02X}"),
            ipv6,
        ];
        // 127.x.x.x is everybody's.
        prop_assume!(a != 127);
        for secret in secrets {
            let shown = scrub().text(&format!("x{before}{secret}{after}y"));
            prop_assert!(!shown.contains(&secret), "{}", shown);
            prop_assert!(shown.starts_with('x') && shown.ends_with('y'));
        }
    }
}
