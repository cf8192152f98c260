//! What the far end saw, brought into the record of the near one.

use record::{Caveat, ClockRelation, ClockTie, Far, Reason, Record, State, Stream};

use crate::{protocol::Saw, words};

/// Brings it in: what the far machine is and found, its series under its name, what it was refused, and what it cannot tell.
/// `far` is what is known of it from its greeting. Where it told nothing, `saw` has the reason, and the record says that it is
/// not whole.
pub fn bring(record: &mut Record, mut far: Far, saw: Result<Saw, String>) {
    // The asking end knows of no other way to start one.
    for caveat in &mut record.caveats {
        caveat.text =
            caveat.text.replace("start `punctual echo` as root there", "log in there as root, or use --far-sudo");
    }
    match saw {
        Ok(saw) => take_in(record, &mut far, saw),
        Err(why) => {
            record.state = State::Interrupted;
            let text = format!("the far end on {} was lost: {why}; what it saw is not in this record", far.host);
            record.caveats.push(Caveat { kind: "far".to_owned(), text });
            far.lost = Some(why);
        }
    }
    record.far = Some(Box::new(far));
}

fn take_in(record: &mut Record, far: &mut Far, Saw { record: saw, answered, clocks: saw_clocks }: Saw) {
    let host = far.host.clone();
    (far.machine, far.findings, far.answered) = (saw.machine, saw.findings, answered);
    (far.settings, far.shielding) = (saw.settings, saw.shielding);
    far.loads = saw.phases.into_iter().flat_map(|phase| phase.loads).collect();
    let phase = record.phases.first().map(|phase| phase.name.clone()).unwrap_or_default();
    for mut series in saw.series {
        series.host = Some(host.clone());
        series.phase.clone_from(&phase);
        record.series.push(series);
    }
    for reason in saw.validity.reasons {
        add(record, words::reason(&host, reason));
    }
    let told = |caveat: Caveat| Caveat { text: format!("on {host}: {}", words::there(&caveat.text)), ..caveat };
    record.caveats.extend(saw.caveats.into_iter().map(told));
    explain_silence(record, far);
    if let (Some(before), Some(after)) = (&mut far.machine.clocks, &saw_clocks) {
        before.take_in(after);
    }
    tell_ties(record, far);
}

/// What times from one end to the other are worth, after the run: clocks that came loose meanwhile tell none.
fn tell_ties(record: &mut Record, far: &mut Far) {
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
            "the clocks came loose from each other during the run, so no one-way time is told: {}",
            far.clock.words
        );
        record.caveats.push(Caveat { kind: "clock".to_owned(), text });
    }
}

/// The far end was there all the time: where nothing came, something is in the way.
fn explain_silence(record: &mut Record, far: &Far) {
    let host = &far.host;
    if let Some(answered) = &far.answered {
        let address = &answered.address;
        let came = answered.answered + answered.greetings > 0;
        let way = if came { "its answers do not come back" } else { "nothing of ours comes there" };
        for reason in record.validity.reasons.iter_mut().filter(|reason| reason.id == "udp.silent") {
            reason.text = format!("no answer from {address}, though {host} answers there: {way}, as behind a firewall");
            reason.remedy = format!("let UDP through to and from {address}, or choose another network with --to");
        }
    }
    let of_ends = |is: fn(&Stream) -> Option<u64>| record.series.iter().find_map(|s| is(s.kind.stream()?));
    let sent = of_ends(|stream| Some(stream.talker()?.frames)).unwrap_or_default();
    let heard = of_ends(|stream| Some(stream.listener()?.frames));
    if sent > 0 && heard == Some(0) {
        let text = format!("none of {sent} frames came to {host}: its interface is on another cable, or drops them");
        let remedy = format!(
            "name the interface with --far-interface; or, on {host}: sudo ethtool -K INTERFACE rx-vlan-filter off"
        );
        add(record, Reason { id: "stream.silent".to_owned(), text, remedy });
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

    fn listened(frames: u64) -> Saw {
        let listener = Listener { frames, ..Listener::default() };
        let series = Series {
            phase: "listen".to_owned(),
            role: "listener".to_owned(),
            cpu: Some(3),
            kind: SeriesKind::Stream(Stream::Listener(Box::new(listener))),
            ..Series::default()
        };
        Saw { record: Record { series: vec![series], ..Record::default() }, ..Saw::default() }
    }

    #[test]
    fn series_of_the_far_end_carry_its_name() {
        let mut record = near(talker(100));
        bring(&mut record, board_b(ClockRelation::same_host()), Ok(listened(98)));
        let series = &record.series[1];
        assert_eq!((series.host.as_deref(), series.phase.as_str()), (Some("board-b"), "load"));
        assert_eq!(series.place(), "listener on CPU 3 of board-b");
        let far = record.far.unwrap();
        assert_eq!((far.host.as_str(), far.clock.tie, far.lost), ("board-b", ClockTie::SameHost, None));
        assert!(record.validity.valid && record.state == State::Complete);
    }

    #[test]
    fn what_the_far_end_was_refused_makes_the_record_invalid_with_its_name() {
        let mut saw = listened(1);
        let remedy = "leave out --nic";
        let reason = |id: &str| Reason { id: id.to_owned(), text: "refused".to_owned(), remedy: remedy.to_owned() };
        saw.record.validity.reasons = vec![reason("policy.refused"), reason("nic.refused")];
        saw.record.caveats = vec![Caveat { kind: "virtual".to_owned(), text: "stolen".to_owned() }];
        let mut record = near(talker(1));
        bring(&mut record, board_b(ClockRelation::default()), Ok(saw));
        assert!(!record.validity.valid);
        let [policy, nic] = &record.validity.reasons[..] else { panic!("{:?}", record.validity) };
        assert!(policy.text.contains("on board-b: refused") && policy.remedy.contains("root@board-b"));
        assert_eq!(nic.remedy, "leave out --far-nic");
        assert_eq!(record.caveats[0].text, "on board-b: stolen");
    }

    #[test]
    fn a_far_end_that_was_lost_is_told_and_the_rest_kept() {
        let mut record = near(talker(100));
        bring(&mut record, board_b(ClockRelation::default()), Err("the connection ended".to_owned()));
        assert_eq!((record.state, record.series.len()), (State::Interrupted, 1));
        assert_eq!(record.far.unwrap().lost.as_deref(), Some("the connection ended"));
        assert!(record.caveats[0].text.contains("the far end on board-b was lost: the connection ended"));
    }

    #[test]
    fn clocks_that_came_loose_tell_no_one_way_times() {
        let follower = |offset_ns| {
            let port = PtpPort { state: "SLAVE".to_owned(), stamps_in_hardware: Some(false), ..PtpPort::default() };
            let ptp = Ptp { grandmaster: "gm".to_owned(), offset_ns, ports: vec![port], ..Ptp::default() };
            Clocks { ptp: Some(ptp), looks: 1, ..Clocks::default() }
        };
        let machine =
            |boot: &str| Machine { boot_id: Some(boot.to_owned()), clocks: Some(follower(100)), ..Machine::default() };
        for (after, error_ns) in [(follower(700), Some(800)), (Clocks::default(), None)] {
            let mut record = Record { machine: machine("a"), ..near(talker(9)) };
            let mut saw = Saw { clocks: Some(after), ..listened(9) };
            saw.record.machine = machine("b");
            if let Some(listener) = saw.record.series[0].kind.listener_mut() {
                listener.one_way = Some(OneWay::default());
            }
            let clock = ClockRelation::between(&record.machine, &saw.record.machine);
            assert_eq!(clock.error_ns, Some(200));
            bring(&mut record, board_b(clock), Ok(saw));
            let one_way = record.series[1].kind.listener().and_then(|listener| listener.one_way.clone());
            assert_eq!(one_way.and_then(|one_way| one_way.clock.error_ns), error_ns);
            assert_eq!(record.caveats.iter().any(|caveat| caveat.kind == "clock"), error_ns.is_none());
        }
    }

    #[test]
    fn silence_is_told_from_both_ends() {
        let mut record = near(talker(100));
        bring(&mut record, board_b(ClockRelation::default()), Ok(listened(0)));
        assert_eq!(record.validity.reasons[0].id, "stream.silent");
        for (answered, way) in [(0, "nothing of ours comes there"), (7, "its answers do not come back")] {
            let mut record = near(Series::default());
            add(&mut record, Reason { id: "udp.silent".to_owned(), ..Reason::default() });
            let answered = Answered { address: "192.0.2.2:7125".to_owned(), answered, ..Answered::default() };
            let saw = Saw { answered: Some(answered), ..Saw::default() };
            bring(&mut record, board_b(ClockRelation::default()), Ok(saw));
            let reason = &record.validity.reasons[0];
            assert!(reason.text.contains(way) && reason.text.contains("192.0.2.2:7125"), "{}", reason.text);
        }
    }
}
