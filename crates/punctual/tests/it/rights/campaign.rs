//! Campaigns over the network, with both ends in network namespaces.

use std::fs;

use record::{Campaign, Measured, RoleResult, file};

use crate::harness::{Scratch, alone};

/// Runs a campaign file. Its verdicts depend on this machine.
fn run(text: &str) -> (Scratch, Campaign, String) {
    let scratch = Scratch::new();
    fs::write(scratch.path().join("net.toml"), text).unwrap();
    let run = scratch.run("run net.toml --full --dir out");
    assert!([0, 2, 3].contains(&run.0.status.code().unwrap()), "{}{}", run.stdout(), run.stderr());
    let campaign = file::read_campaign(&scratch.path().join("out/campaign.json")).unwrap();
    (scratch, campaign, run.stdout())
}

fn roles(campaign: &Campaign) -> Vec<&Vec<RoleResult>> {
    campaign.scenarios.iter().map(|entry| &entry.result.as_ref().expect("it ran").roles).collect()
}

#[test]
fn round_trips_have_their_lost_datagrams_in_the_table() {
    let _alone = alone();
    let (scratch, campaign, stdout) = run(r#"
        name = "net"
        against = ["cortex-a53-rt"]
        [probe]
        kind = "udp"
        samples = 500
        [[placement]]
        name = "one CPU"
        cpus = "last"
        [[placement]]
        name = "apart"
        cpus = ["last", "first"]
        policy = "fifo:50"
    "#);
    assert_eq!(campaign.scenarios[1].policy, "fifo:50 for sender, fifo:97 for receiver");
    for (entry, roles) in campaign.scenarios.iter().zip(roles(&campaign)) {
        let [sender, trip] = &roles[..] else { panic!("{roles:?}") };
        assert_eq!((sender.measured, trip.measured), (Measured::Lateness, Measured::RoundTrip));
        let record = file::read(&scratch.path().join("out").join(&entry.record)).unwrap();
        let series = &record.series[1];
        let of_record = series.kind.round_trip().unwrap();
        assert_eq!((trip.lost, trip.missed, trip.max_ns), (Some(of_record.lost), series.missed, series.max_ns));
        assert!(trip.p50_ns <= trip.p99_9_ns && trip.p99_9_ns <= trip.max_ns);
        assert_eq!((trip.beside[0].max_ns, sender.beside.len()), (Some(168_000), 0));
    }
    for words in [
        "Longest round trip, from the scheduled send time, by scenario",
        "not sent",
        "99.9 %",
        "Compared with cortex-a53-rt",
    ] {
        assert!(stdout.contains(words), "{words}: {stdout}");
    }
    let html = fs::read_to_string(scratch.path().join("out/campaign.html")).unwrap();
    assert!(html.contains("Longest round trip") && html.contains("<th scope=\"col\">lost</th>"));
}

#[test]
fn each_wakeup_offset_is_a_column_and_auto_is_calibrated_first() {
    let _alone = alone();
    let (scratch, campaign, stdout) = run(r#"
        name = "net"
        [probe]
        kind = "stream"
        period = "1ms"
        wakeup_offset = ["0us", "auto"]
        duration = "500ms"
        blame = "off"
        [placement]
        cpus = "last"
    "#);
    let placements: Vec<&str> = campaign.scenarios.iter().map(|entry| entry.placement.as_str()).collect();
    assert_eq!(placements, ["offset 0us", "offset auto"]);
    let planned_ns: Vec<u64> = campaign.scenarios.iter().map(|entry| entry.planned_ns).collect();
    assert_eq!(planned_ns, [500_000_000, 750_000_000], "250 ms of calibration first");
    for (entry, roles) in campaign.scenarios.iter().zip(roles(&campaign)) {
        let record = file::read(&scratch.path().join("out").join(&entry.record)).unwrap();
        let talker = record.series.iter().find_map(|series| series.kind.stream()?.talker()).unwrap();
        let found = talker.calibration.as_ref().map_or(0, |calibration| calibration.wanted_ns);
        assert_eq!((talker.offset_ns, found > 0), (found, entry.placement == "offset auto"));
        assert!(!talker.curve.is_empty());
        let [talks, listens] = &roles[..] else { panic!("{roles:?}") };
        assert_eq!((talks.late, talks.max_ns), (Some(talker.late), talker.max_delta_ns));
        assert_eq!((talks.measured, listens.measured), (Measured::SendLateness, Measured::FrameGap));
    }
    for words in ["Max delta of the talker", "Frames sent", "Frames received", "late"] {
        assert!(stdout.contains(words), "{words}: {stdout}");
    }
}
