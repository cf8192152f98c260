//! `measure stream`: errors before anything is sent. Sending and receiving needs rights, see `rights/stream.rs`.

use super::harness::Scratch;

#[track_caller]
fn refused(status: i32, options: &str, error: &str) {
    let scratch = Scratch::new();
    let run = scratch.run(&format!("measure stream {options} --duration 1s --quiet --record a"));
    let errors = run.expect_status(status).stderr();
    assert!(errors.contains(error), "{options}: {errors}");
    assert!(!scratch.record_path().exists(), "{options}: nothing was measured");
}

#[test]
fn refuses_interfaces_that_cannot_carry_a_stream() {
    refused(1, "talk no-such-if0", "there is no interface no-such-if0: see `ip link`");
    refused(1, "listen no-such-if0", "there is no interface no-such-if0");
    refused(1, "talk no-such-if0 --wakeup-offset auto", "there is no interface no-such-if0");
    refused(1, "talk lo", "lo is not an Ethernet interface");
    refused(1, "talk ../lo", "there is no interface ../lo");
}

#[test]
fn needs_a_named_interface() {
    refused(64, "", "<SIDE>");
    refused(64, "talk", "`punctual measure stream talk` needs IF: write e.g. `sudo punctual measure stream talk");
    refused(64, "--self talk eth0", "cannot be used with");
}

#[test]
fn refuses_options_of_the_other_end() {
    refused(64, "listen lo --wakeup-offset 8us", "--wakeup-offset applies to the talker only: leave it out");
    refused(64, "listen lo --mode bypass", "--mode applies to the talker");
    refused(64, "listen lo --stamps all", "--stamps applies to the talker");
    refused(64, "listen lo --maap", "--maap applies to the talker");
    refused(64, "talk lo --spin", "--spin applies to the listener");
    refused(64, "talk lo --receive xdp", "--receive applies to the listener");
    refused(64, "talk lo --stream-id 0200000000010000", "--stream-id applies to the listener");
}

#[test]
fn refuses_invalid_values() {
    refused(64, "talk lo --class C", "--class must be A or B (got C)");
    refused(64, "talk lo --mode wire", "--mode must be send, bypass, tx-ring, txtime, xdp or xdp-zerocopy (got wire)");
    refused(64, "listen lo --stream-id 12", "16 hexadecimal digits");
    refused(64, "talk lo --policy deadline:200us/1ms/1ms", "the kernel does not pin deadline threads");
    refused(64, "listen lo --receive xdp --busy-poll 50us", "--busy-poll needs --receive socket");
    refused(64, "listen lo --receive dpdk", "--receive must be socket, xdp, xdp-zerocopy or xdp-generic (got dpdk)");
    refused(64, "listen lo --queue 1", "--queue needs xdp");
    refused(64, "talk lo --stamps receive", "--stamps must be none, all or hardware (got receive)");
    refused(
        64,
        "--self --stamps all --mode tx-ring",
        "frames sent with mode tx-ring have no timestamps: use mode send",
    );
    refused(64, "--self --stamps hardware", "the veth pair of --self has no hardware timestamps: use --stamps all");
    refused(64, "talk lo --period 0s", "must be 1us to 1h");
    refused(64, "talk lo --streams 0", "must be 1 to 64, or a TOML file");
    refused(64, "talk lo --streams 65", "must be 1 to 64, or a TOML file");
    refused(64, "talk lo --streams no.toml", "cannot read no.toml: No such file or directory");
    refused(
        64,
        "talk lo --streams /dev/zero",
        "cannot read /dev/zero: a device, not a regular file, pipe or terminal; name a TOML file",
    );
    refused(64, "talk lo --streams s.toml --period 1ms", "--period does not apply to the streams of s.toml");
    refused(
        64,
        "talk lo --unique-id 65530 --streams 7",
        "7 streams from unique id 65530 on exceed the largest unique id",
    );
    refused(64, "listen lo --streams 8", "--streams applies to the talker");
    refused(64, "talk lo --wakeup-offset kne", "auto or knee");
    refused(64, "--self --mode txtime --wakeup-offset knee", "the talker does not spin: use auto");
}

#[test]
fn launch_times_need_the_tai_clock() {
    refused(64, "--self --mode txtime --clock monotonic", "leave out the clock, or choose tai");
}

#[test]
fn refuses_a_talker_that_would_never_sleep() {
    refused(64, "--self --wakeup-offset 119us", "must leave the talker 5 % of each period to sleep");
    refused(64, "--self --class B --wakeup-offset 240us", "must leave the talker 5 %");
}
