//! Merges the results of the far end into the record of the near end.

use campaign::outside;
use judge::Session;
use record::{Caveat, ClockRelation, ClockTie, Far, Reason, Record, Series, State, Stream, grouped};

use crate::{messages, protocol::Results};

/// Merges the far machine's facts, findings, series, refusals and caveats into the record. `far` contains the facts
/// from its greeting. If the results are missing, `results` is the reason and the record is marked as incomplete.
pub fn merge(record: &mut Record, mut far: Far, results: Result<Results, String>) {
    // The caveat assumes a manually started echo server, but here the far end started it.
    for caveat in &mut record.caveats {
        caveat.text =
            caveat.text.replace("start `punctual echo` as root there", "log in there as root, or use --far-sudo");
    }
    match results {
        Ok(results) => merge_results(record, &mut far, results),
        Err(why) => {
            record.state = State::Interrupted;
            let text = format!("the far end on {} was lost: {why}; its results are missing in this record", far.host);
            record.caveats.push(Caveat { kind: "far".to_owned(), text });
            far.lost = Some(why);
        }
    }
    record.far = Some(Box::new(far));
}

/// The record of interrupts that only the machine `host` measured, with the results of an outside judge at this machine.
#[must_use]
pub fn merge_interrupts(mut record: Record, host: &str, judge: Option<Session>) -> Record {
    let reasons = std::mem::take(&mut record.validity.reasons);
    record.validity.reasons = reasons.into_iter().map(|reason| messages::reason(host, reason)).collect();
    for caveat in &mut record.caveats {
        caveat.text = messages::translate(&caveat.text);
    }
    let text = format!("measured at {host}: machine, findings and settings in this record are of that machine");
    record.caveats.insert(0, Caveat { kind: "far".to_owned(), text });
    let Some(judge) = judge else { return record };
    let phase = record.phases.first().map(|phase| phase.name.clone()).unwrap_or_default();
    let cpu = record.series.first().and_then(|series| series.cpu);
    record.series.push(Series { cpu, ..judge.series(&phase) });
    for reason in judge.reasons().into_iter().chain(outside::contradiction(&record, &phase)) {
        add(&mut record, reason);
    }
    record.caveats.extend(judge.caveats());
    if let Some(why) = judge.lost() {
        record.state = State::Interrupted;
        if !record.validity.reasons.iter().any(|reason| reason.text == why) {
            let remedy = "check the connection with the judge, and see `dmesg`".to_owned();
            add(&mut record, Reason { id: "pacer.failed".to_owned(), text: why.clone(), remedy });
        }
        record.caveats.push(Caveat { kind: "judge".to_owned(), text: format!("the judge was lost: {why}") });
    }
    record
}

/// Adds the results of the far end.
fn merge_results(record: &mut Record, far: &mut Far, results: Results) {
    let host = far.host.clone();
    let Results { record: from_far, answered, clocks } = results;
    (far.machine, far.findings, far.answered) = (from_far.machine, from_far.findings, answered);
    (far.settings, far.shielding) = (from_far.settings, from_far.shielding);
    far.loads = from_far.phases.into_iter().flat_map(|phase| phase.loads).collect();
    let phase = record.phases.first().map(|phase| phase.name.clone()).unwrap_or_default();
    for mut series in from_far.series {
        series.host = Some(host.clone());
        series.phase.clone_from(&phase);
        record.series.push(series);
    }
    if from_far.state == State::Interrupted {
        record.state = State::Interrupted;
    }
    if !from_far.validity.valid && from_far.validity.reasons.is_empty() {
        let text = format!("on {host}: the run is invalid, and no reason was given");
        let remedy = "start the same version of punctual on both machines".to_owned();
        add(record, Reason { id: "far.invalid".to_owned(), text, remedy });
    }
    for reason in from_far.validity.reasons {
        add(record, messages::reason(&host, reason));
    }
    let translate =
        |caveat: Caveat| Caveat { text: format!("on {host}: {}", messages::translate(&caveat.text)), ..caveat };
    record.caveats.extend(from_far.caveats.into_iter().map(translate));
    explain_missing_traffic(record, far);
    if let (Some(before), Some(after)) = (&mut far.machine.clocks, &clocks) {
        before.merge(after);
    }
    update_one_way_times(record, far);
}

/// Updates the clock relation with the state after the run, and removes one-way times if the clocks were not
/// synchronised throughout.
fn update_one_way_times(record: &mut Record, far: &mut Far) {
    if far.clock.tie == ClockTie::Ptp {
        far.clock = ClockRelation::between(&record.machine, &far.machine);
    }
    for series in &mut record.series {
        let Some(listener) = series.kind.listener_mut() else { continue };
        let Some(one_way) = &mut listener.one_way else { continue };
        if far.clock.shows_one_way() {
            one_way.clock.clone_from(&far.clock);
            continue;
        }
        listener.one_way = None;
        (listener.counters.late_timestamp, listener.counters.early_timestamp) = (None, None);
        let text = format!(
            "the clocks lost their synchronisation during the run, so one-way times were removed: {}",
            far.clock.words
        );
        record.caveats.push(Caveat { kind: "clock".to_owned(), text });
    }
}

/// Explains missing traffic. The far end was running, so something on the path blocked the packets.
fn explain_missing_traffic(record: &mut Record, far: &Far) {
    let host = &far.host;
    if let Some(answered) = &far.answered {
        let address = &answered.address;
        let arrived = answered.answered + answered.greetings > 0;
        let cause = if arrived { "its answers do not arrive here" } else { "our datagrams do not arrive there" };
        for reason in record.validity.reasons.iter_mut().filter(|reason| reason.id == "udp.silent") {
            reason.text = format!(
                "no answer from {address}, although {host} answers there: {cause}, possibly because of a firewall"
            );
            reason.remedy = format!("allow UDP to and from {address}, or choose another network with --to");
        }
    }
    let ends = || record.series.iter().filter_map(|series| series.kind.stream());
    let received = ends().filter_map(Stream::listener).map(|listener| listener.frames).reduce(|a, b| a + b);
    // With named streams, each has a listener; otherwise the one of the first stream has.
    let sent: u64 = ends()
        .filter_map(Stream::talker)
        .map(|talker| match talker.streams.iter().any(|stream| !stream.name.is_empty()) {
            true => talker.streams.iter().map(|stream| stream.frames).sum(),
            false => talker.frames,
        })
        .sum();
    if sent > 0 && received == Some(0) {
        let sent = grouped(sent);
        let text = format!("none of {sent} frames arrived at {host}: its interface is on another cable, or drops them");
        let remedy = format!(
            "name the interface with --far-interface; or, on {host}: sudo ethtool -K INTERFACE rx-vlan-filter off"
        );
        // This reason knows both ends.
        record.validity.reasons.retain(|reason| reason.id != "nothing.measured");
        add(record, Reason { id: "stream.silent".to_owned(), text, remedy });
    } else if let Some(received) = received.filter(|received| *received < sent / 2) {
        let text = format!("only {} of {} frames arrived at {host}", grouped(received), grouped(sent));
        let remedy = "look for drops on both ends: ip -s link".to_owned();
        add(record, Reason { id: "little.measured".to_owned(), text, remedy });
    }
}

fn add(record: &mut Record, reason: Reason) {
    record.validity.valid = false;
    record.validity.reasons.push(reason);
}

#[cfg(test)]
mod tests {
    use record::{
        Answered, Clocks, Listener, Machine, OneWay, Phase, Ptp, PtpPort, Series, SeriesKind, Talker, Validity,
    };

    use super::*;

    fn board_b(clock: ClockRelation) -> Far {
        Far { host: "board-b".to_owned(), clock, ..Far::default() }
    }

    fn talker(frames: u64) -> Series {
        let talker = Talker { frames, ..Talker::default() };
        Series { kind: SeriesKind::Stream(Stream::Talker(Box::new(talker))), ..Series::default() }
    }

    fn near(series: Series) -> Record {
        let phases = vec![Phase { name: "load".to_owned(), ..Phase::default() }];
        let validity = Validity { valid: true, ..Validity::default() };
        Record { state: State::Complete, phases, series: vec![series], validity, ..Record::default() }
    }

    fn listened(frames: u64) -> Results {
        let listener = Listener { frames, ..Listener::default() };
        let series = Series {
            phase: "listen".to_owned(),
            role: "listener".to_owned(),
            cpu: Some(3),
            kind: SeriesKind::Stream(Stream::Listener(Box::new(listener))),
            ..Series::default()
        };
        let validity = Validity { valid: true, ..Validity::default() };
        Results { record: Record { series: vec![series], validity, ..Record::default() }, ..Results::default() }
    }

    #[test]
    fn a_run_that_is_invalid_at_the_far_end_is_invalid() {
        let mut record = near(talker(100));
        let mut results = listened(98);
        results.record.validity.valid = false;
        merge(&mut record, board_b(ClockRelation::same_host()), Ok(results));
        assert!(!record.validity.valid);
        assert_eq!(record.validity.reasons[0].text, "on board-b: the run is invalid, and no reason was given");
    }

    #[test]
    fn far_series_have_the_host_name() {
        let mut record = near(talker(100));
        merge(&mut record, board_b(ClockRelation::same_host()), Ok(listened(98)));
        let series = &record.series[1];
        assert_eq!((series.host.as_deref(), series.phase.as_str()), (Some("board-b"), "load"));
        assert_eq!(series.place(), "listener on CPU 3 of board-b");
        let far = record.far.unwrap();
        assert_eq!((far.host.as_str(), far.clock.tie, far.lost), ("board-b", ClockTie::SameHost, None));
        assert!(record.validity.valid && record.state == State::Complete);
    }

    #[test]
    fn far_refusals_invalidate_the_record() {
        let mut results = listened(1);
        let remedy = "leave out --nic";
        let reason = |id: &str| Reason { id: id.to_owned(), text: "refused".to_owned(), remedy: remedy.to_owned() };
        results.record.validity.reasons = vec![reason("policy.refused"), reason("nic.refused")];
        results.record.caveats = vec![Caveat { kind: "virtual".to_owned(), text: "stolen".to_owned() }];
        let mut record = near(talker(1));
        merge(&mut record, board_b(ClockRelation::default()), Ok(results));
        assert!(!record.validity.valid);
        let [policy, nic] = &record.validity.reasons[..] else { panic!("{:?}", record.validity) };
        assert!(policy.text.contains("on board-b: refused") && policy.remedy.contains("root@board-b"));
        assert_eq!(nic.remedy, "leave out --far-nic");
        assert_eq!(record.caveats[0].text, "on board-b: stolen");
    }

    #[test]
    fn keeps_the_record_if_the_far_end_is_lost() {
        let mut record = near(talker(100));
        merge(&mut record, board_b(ClockRelation::default()), Err("the connection ended".to_owned()));
        assert_eq!((record.state, record.series.len()), (State::Interrupted, 1));
        assert_eq!(record.far.unwrap().lost.as_deref(), Some("the connection ended"));
        assert!(record.caveats[0].text.contains("the far end on board-b was lost: the connection ended"));
    }

    #[test]
    fn removes_one_way_times_of_unsynchronised_clocks() {
        let follower = |offset_ns| {
            let port = PtpPort { state: "SLAVE".to_owned(), stamps_in_hardware: Some(false), ..PtpPort::default() };
            let ptp = Ptp { grandmaster: "gm".to_owned(), offset_ns, ports: vec![port], ..Ptp::default() };
            Clocks { ptp: Some(ptp), looks: 1, ..Clocks::default() }
        };
        let machine =
            |boot: &str| Machine { boot_id: Some(boot.to_owned()), clocks: Some(follower(100)), ..Machine::default() };
        for (after, error_ns) in [(follower(700), Some(800)), (Clocks::default(), None)] {
            let mut record = Record { machine: machine("a"), ..near(talker(9)) };
            let mut results = Results { clocks: Some(after), ..listened(9) };
            results.record.machine = machine("b");
            if let Some(listener) = results.record.series[0].kind.listener_mut() {
                listener.one_way = Some(OneWay::default());
            }
            let clock = ClockRelation::between(&record.machine, &results.record.machine);
            assert_eq!(clock.error_ns, Some(200));
            merge(&mut record, board_b(clock), Ok(results));
            let one_way = record.series[1].kind.listener().and_then(|listener| listener.one_way.clone());
            assert_eq!(one_way.and_then(|one_way| one_way.clock.error_ns), error_ns);
            assert_eq!(record.caveats.iter().any(|caveat| caveat.kind == "clock"), error_ns.is_none());
        }
    }

    #[test]
    fn explains_missing_traffic_in_both_directions() {
        let mut record = near(talker(100));
        merge(&mut record, board_b(ClockRelation::default()), Ok(listened(0)));
        assert_eq!(record.validity.reasons[0].id, "stream.silent");
        for (answered, cause) in [(0, "our datagrams do not arrive there"), (7, "its answers do not arrive here")] {
            let mut record = near(Series::default());
            add(&mut record, Reason { id: "udp.silent".to_owned(), ..Reason::default() });
            let answered = Answered { address: "192.0.2.2:7125".to_owned(), answered, ..Answered::default() };
            let results = Results { answered: Some(answered), ..listened(0) };
            merge(&mut record, board_b(ClockRelation::default()), Ok(results));
            let reason = &record.validity.reasons[0];
            assert!(reason.text.contains(cause) && reason.text.contains("192.0.2.2:7125"), "{}", reason.text);
        }
    }
}
