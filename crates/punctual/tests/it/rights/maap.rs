//! MAAP between two network namespaces: another speaker of the test contests the addresses of a talker.

use std::{
    io,
    os::fd::{AsFd, AsRawFd},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use frames::{
    Mac, ethernet,
    maap::{Addresses, DESTINATION, Kind, Message, SUBTYPE},
    parse,
};
use machine::veth::{VethEnd, VethPair};
use record::{Maap, MaapConflict, MaapMessage, MaapResolution, Record};
use sys::packet::{FrameReceiver, Poll, RawSender, Received};

use super::stream::{inside, talker};
use crate::harness::{Scratch, alone};

/// Wins against the address of any interface.
const LOWEST: Mac = [2, 0, 0, 0, 0, 0];

/// The other speaker: it gets each message of the talker, and its answers are sent.
type Other = Box<dyn FnMut(Mac, &Message) -> Vec<(Duration, [u8; 60])> + Send>;

/// The result of a run: the record, the talker's messages, and the destinations of its frames in the order of time.
struct Run {
    record: Record,
    messages: Vec<Message>,
    destinations: Vec<Mac>,
}

impl Run {
    fn maap(&self) -> &Maap {
        talker(&self.record).1.maap.as_ref().expect("the record of MAAP")
    }

    fn caveat(&self) -> Option<&str> {
        let found = self.record.caveats.iter().find(|caveat| caveat.kind == "maap");
        found.map(|caveat| caveat.text.as_str())
    }

    /// The resolution of each conflict, which must all be with this device.
    fn resolutions(&self, source: Mac) -> Vec<(MaapMessage, MaapResolution)> {
        let conflicts = &self.maap().conflicts;
        assert!(conflicts.iter().all(|conflict| conflict.source == text(source)), "{conflicts:?}");
        assert_eq!(self.maap().conflict_count, conflicts.len() as u64);
        conflicts.iter().map(|&MaapConflict { message, resolution, .. }| (message, resolution)).collect()
    }
}

fn text([a, b, c, d, e, f]: Mac) -> String {
    format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
}

fn ends() -> VethPair {
    VethPair::create().expect("the right to make namespaces: run as root")
}

fn say(kind: Kind, requested: Addresses, from: Mac) -> [u8; 60] {
    Message { kind, requested, conflict: None }.frame(DESTINATION, from)
}

/// The next frame. An interface that went down reports that once.
fn received(receiver: &FrameReceiver, frame: &mut [u8]) -> Option<Received> {
    match receiver.receive(frame, Poll::Spin) {
        Err(error) if error.kind() == io::ErrorKind::NetworkDown => None,
        received => received.unwrap(),
    }
}

/// Reads the frames of the talker at this end until `stop`, and lets `other` answer its messages.
fn listen(end: &VethEnd, mut other: Other, stop: Arc<AtomicBool>) -> JoinHandle<(Vec<Message>, Vec<Mac>)> {
    let open = || {
        let messages = FrameReceiver::open_subtype(&end.interface, ethernet::AVTP, SUBTYPE, DESTINATION).unwrap();
        let frames = FrameReceiver::open(&end.interface, ethernet::AVTP, None).unwrap();
        (messages, frames, RawSender::open(&end.interface, 0, false).unwrap())
    };
    let (receiver, streams, sender) = end.namespace.run(open).unwrap();
    thread::spawn(move || {
        let (mut messages, mut destinations, mut answers) = (Vec::new(), Vec::new(), Vec::new());
        let mut frame = [0; 256];
        while !stop.load(Relaxed) {
            while let Some(received) = received(&receiver, &mut frame) {
                let (source, message) = Message::of_frame(&frame[..received.length.min(256)]).expect("a MAAP message");
                messages.push(message);
                answers
                    .extend(other(source, &message).into_iter().map(|(after, frame)| (Instant::now() + after, frame)));
            }
            while let Some(received) = received(&streams, &mut frame) {
                let parsed = parse(&frame[..received.length.min(256)]).expect("a frame");
                if parsed.avtp.is_some() && destinations.last() != Some(&parsed.destination) {
                    destinations.push(parsed.destination);
                }
            }
            let now = Instant::now();
            answers.extract_if(.., |(at, _)| *at <= now).for_each(|(_, frame)| sender.send(&frame).unwrap());
            thread::sleep(Duration::from_millis(2));
        }
        (messages, destinations)
    })
}

const GIVEN: Addresses = Addresses { first: 0x91e0_f000_2001, count: 1 };
/// A file of streams, `s.toml`.
const FILE: &str = "[[stream]]\nname = \"given\"\nperiod = \"1ms\"\ndestination = \"91:e0:f0:00:20:01\"\n\
                    [[stream]]\nname = \"chosen\"\nperiod = \"1ms\"\n";

/// Runs a talker while `other` speaks MAAP at the other end. Returns the run, or the errors if it ended with status 1. The
/// destinations are checked to be empty then.
fn talk(ends: &VethPair, options: &str, other: Other) -> Result<Run, String> {
    let scratch = Scratch::new();
    std::fs::write(scratch.path().join("s.toml"), FILE).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let listening = listen(&ends.far, other, stop.clone());
    let arguments =
        format!("measure stream talk near --maap --wakeup-offset 0us --blame=off --quiet --record a {options}");
    let output = inside(&ends.near, &scratch, &arguments).wait_with_output().unwrap();
    stop.store(true, Relaxed);
    let (messages, destinations) = listening.join().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() == Some(1) {
        assert!(destinations.is_empty() && !scratch.record_path().exists(), "nothing was sent");
        return Err(errors);
    }
    let record = scratch.record();
    // A test that takes the link down makes the run invalid.
    let reasons: Vec<&str> = record.validity.reasons.iter().map(|reason| reason.id.as_str()).collect();
    match output.status.code() {
        Some(4) => assert_eq!(reasons, ["stream.no_carrier"], "{errors}"),
        status => assert_eq!(status, Some(0), "{errors}"),
    }
    Ok(Run { record, messages, destinations })
}

/// Says a frame once, some time after the first ANNOUNCE of addresses that are `about`.
fn after_announcement(
    after: Duration,
    about: impl Fn(Addresses) -> bool + Send + 'static,
    frame: impl Fn(Addresses) -> [u8; 60] + Send + 'static,
) -> Other {
    let mut is_said = false;
    Box::new(move |_, message| {
        if is_said || message.kind != Kind::Announce || !about(message.requested) {
            return Vec::new();
        }
        is_said = true;
        vec![(after, frame(message.requested))]
    })
}

/// Answers each PROBE for addresses of `held`.
fn holder(held: Addresses, own: Mac) -> Other {
    Box::new(move |source, message| match message.requested.common(held) {
        Some(conflict) if message.kind == Kind::Probe => {
            let defend = Message { kind: Kind::Defend, requested: message.requested, conflict: Some(conflict) };
            vec![(Duration::ZERO, defend.frame(source, own))]
        }
        _ => Vec::new(),
    })
}

fn kinds(messages: &[Message]) -> Vec<Kind> {
    messages.iter().map(|message| message.kind).collect()
}

#[test]
fn one_range_is_claimed_for_all_streams() {
    let _alone = alone();
    let ends = ends();
    let run = talk(&ends, "--period 1ms --streams 3 --unique-id 7 --duration 1s", Box::new(|_, _| Vec::new())).unwrap();
    assert_eq!(kinds(&run.messages), [Kind::Probe, Kind::Probe, Kind::Probe, Kind::Announce]);
    let expected = Addresses::preferred(ends.near.mac, 7, 3);
    assert!(run.messages.iter().all(|message| message.requested == expected));
    let [claimed] = &run.maap().claimed[..] else { panic!("{:?}", run.maap()) };
    assert_eq!((claimed.first.clone(), claimed.count, &claimed.lost_at_ns), (text(expected.at(0)), 3, &None));
    assert!(claimed.claimed_at_ns >= 1_500_000_000, "three intervals of at least 500 ms");
    assert_eq!((run.maap().conflict_count, run.caveat()), (0, None));
    let sent: Vec<_> = talker(&run.record).1.streams.iter().map(|stream| stream.destination.clone()).collect();
    assert_eq!(sent, [0, 1, 2].map(|place| text(expected.at(place))));
    assert!(run.destinations.starts_with(&[0, 1, 2].map(|place| expected.at(place))));
}

#[test]
fn a_defended_address_is_left_before_the_first_frame() {
    let _alone = alone();
    let ends = ends();
    let (far, wanted) = (ends.far.mac, Addresses::preferred(ends.near.mac, 0, 3));
    // It has the last of the wanted addresses.
    let held = Addresses { first: wanted.first + 2, count: 1 };
    let run = talk(&ends, "--period 1ms --streams 3 --duration 1s", holder(held, far)).unwrap();
    assert_eq!(run.resolutions(far), [(MaapMessage::Defend, MaapResolution::Left)]);
    let [claimed] = &run.maap().claimed[..] else { panic!("{:?}", run.maap()) };
    let announced = run.messages.last().expect("messages").requested;
    assert_eq!(claimed.first, text(announced.at(0)));
    assert!(announced.are_dynamic() && announced.common(held).is_none(), "{announced:?}");
    assert_eq!(run.messages.iter().filter(|message| message.requested == announced).count(), 4);
    assert!(!run.destinations.is_empty());
    for destination in &run.destinations {
        assert!(Addresses::of(*destination, 1).common(announced).is_some(), "no frame went to {destination:02x?}");
    }
    assert_eq!(run.caveat(), None);
}

#[test]
fn a_claimed_address_is_defended_during_the_run() {
    let _alone = alone();
    let ends = ends();
    let far = ends.far.mac;
    let probe = move |claimed: Addresses| say(Kind::Probe, Addresses { first: claimed.first - 1, count: 2 }, far);
    let other = after_announcement(Duration::from_millis(200), |_| true, probe);
    let run = talk(&ends, "--period 1ms --duration 1s", other).unwrap();
    assert_eq!(run.resolutions(far), [(MaapMessage::Probe, MaapResolution::Defended)]);
    let claimed = Addresses::preferred(ends.near.mac, 0, 1);
    let answer = run.messages.last().expect("messages");
    assert_eq!((answer.kind, answer.conflict), (Kind::Defend, Some(claimed)));
    assert_eq!(answer.requested, Addresses { first: claimed.first - 1, count: 2 });
    assert_eq!((run.destinations.clone(), run.caveat()), (vec![claimed.at(0)], None));
}

#[test]
fn an_address_is_yielded_to_a_lower_speaker_and_another_one_is_claimed() {
    let _alone = alone();
    let ends = ends();
    let announce = |claimed: Addresses| say(Kind::Announce, claimed, LOWEST);
    let other = after_announcement(Duration::from_millis(300), |_| true, announce);
    let run = talk(&ends, "--period 1ms --duration 4s", other).unwrap();
    assert_eq!(run.resolutions(LOWEST), [(MaapMessage::Announce, MaapResolution::Yielded)]);
    let first = Addresses::preferred(ends.near.mac, 0, 1);
    let next = run.messages.last().expect("messages").requested;
    let announce_twice = [Kind::Probe, Kind::Probe, Kind::Probe, Kind::Announce].repeat(2);
    assert_eq!((kinds(&run.messages), next == first), (announce_twice, false));
    let [lost, kept] = &run.maap().claimed[..] else { panic!("{:?}", run.maap()) };
    assert_eq!((&lost.first, lost.lost_to.as_ref()), (&text(first.at(0)), Some(&text(LOWEST))));
    assert_eq!((&kept.first, kept.lost_at_ns), (&text(next.at(0)), None));
    assert!(lost.lost_at_ns.expect("the time of the loss") < kept.claimed_at_ns);
    assert_eq!(run.destinations, [first.at(0), next.at(0)], "the frames move");
    let caveat = run.caveat().expect("a caveat");
    assert!(caveat.contains(&format!("{} was lost to {}", lost.first, text(LOWEST))), "{caveat}");
    assert!(caveat.contains(&format!("until {} was claimed", kept.first)), "{caveat}");
}

#[test]
fn a_given_address_that_another_device_uses_is_an_error() {
    let _alone = alone();
    let ends = ends();
    let errors = talk(&ends, "--streams s.toml --duration 1s", holder(GIVEN, ends.far.mac)).err().expect("an error");
    let expected = format!(
        "{} uses the destination 91:e0:f0:00:20:01, according to MAAP: give the stream another one, or leave it out",
        text(ends.far.mac)
    );
    assert!(errors.contains(&expected), "{errors}");
}

#[test]
fn a_given_address_that_is_lost_remains_the_destination() {
    let _alone = alone();
    let ends = ends();
    let announce = |given: Addresses| say(Kind::Announce, given, LOWEST);
    let other = after_announcement(Duration::from_millis(300), |about| about == GIVEN, announce);
    let run = talk(&ends, "--streams s.toml --duration 1s", other).unwrap();
    assert_eq!(run.resolutions(LOWEST), [(MaapMessage::Announce, MaapResolution::Yielded)]);
    let chosen = Addresses::preferred(ends.near.mac, 1, 1).at(0);
    assert_eq!(run.maap().claimed.len(), 2);
    assert!(!run.destinations.is_empty());
    assert!(run.destinations.iter().all(|to| [GIVEN.at(0), chosen].contains(to)), "{:02x?}", run.destinations);
    let caveat = run.caveat().expect("a caveat");
    assert!(caveat.contains("91:e0:f0:00:20:01 was lost to 02:00:00:00:00:00"), "{caveat}");
    assert!(caveat.ends_with("frames were still sent to it until the end"), "{caveat}");
}

/// Takes the interface of this end down after the first ANNOUNCE and up again, and then answers as `other` of the announced
/// addresses.
fn after_the_link_returned(end: &VethEnd, other: impl Fn(Addresses) -> Other + Send + 'static) -> Other {
    let namespace = format!("--net=/proc/{}/fd/{}", std::process::id(), end.namespace.as_fd().as_raw_fd());
    let set = |state: &str| {
        let mut ip = Command::new("nsenter");
        ip.args([&namespace, "ip", "link", "set", &end.interface, state]);
        ip
    };
    let mut states = [set("down"), set("up")];
    let mut returned: Option<Other> = None;
    Box::new(move |source, message| match &mut returned {
        Some(other) => other(source, message),
        None if message.kind == Kind::Announce => {
            for ip in &mut states {
                assert!(ip.status().expect("nsenter, of util-linux").success());
                thread::sleep(Duration::from_millis(500));
            }
            returned = Some(other(message.requested));
            Vec::new()
        }
        None => Vec::new(),
    })
}

#[test]
fn addresses_that_another_device_claimed_while_the_link_was_down_are_left() {
    let _alone = alone();
    let ends = ends();
    let far = ends.far.mac;
    let other = after_the_link_returned(&ends.far, move |claimed| holder(claimed, far));
    let run = talk(&ends, "--period 1ms --duration 6s", other).unwrap();
    assert_eq!(run.resolutions(far), [(MaapMessage::Defend, MaapResolution::Yielded)]);
    let first = Addresses::preferred(ends.near.mac, 0, 1);
    let [lost, kept] = &run.maap().claimed[..] else { panic!("{:?}", run.maap()) };
    assert_eq!((&lost.first, lost.lost_to.as_ref()), (&text(first.at(0)), Some(&text(far))));
    let next = run.messages.last().expect("messages").requested;
    assert_eq!((&kept.first, kept.lost_at_ns, run.maap().link_returns), (&text(next.at(0)), None, 1));
    assert_eq!(run.destinations, [first.at(0), next.at(0)], "the frames move");
    let caveat = run.caveat().expect("a caveat");
    assert!(caveat.contains(&format!("{} was lost to {}", lost.first, text(far))), "{caveat}");
    assert!(caveat.contains("the link went down and returned 1 time"), "{caveat}");
}

#[test]
fn addresses_that_nobody_claimed_while_the_link_was_down_are_announced_again() {
    let _alone = alone();
    let ends = ends();
    let other = after_the_link_returned(&ends.far, |_| Box::new(|_, _| Vec::new()));
    let run = talk(&ends, "--period 1ms --duration 5s", other).unwrap();
    let claimed = Addresses::preferred(ends.near.mac, 0, 1);
    assert!(run.messages.iter().all(|message| message.requested == claimed), "{:?}", run.messages);
    let announced = run.messages.iter().filter(|message| message.kind == Kind::Announce).count();
    assert_eq!((announced, run.messages.last().map(|message| message.kind)), (2, Some(Kind::Announce)));
    assert_eq!((run.maap().claimed.len(), run.maap().conflict_count, run.maap().link_returns), (1, 0, 1));
    assert_eq!(run.destinations, [claimed.at(0)]);
    let caveat = run.caveat().expect("a caveat");
    assert!(!caveat.contains("was lost") && caveat.contains("the link went down and returned 1 time"), "{caveat}");
}
