//! Streams over AF_XDP: every frame is accounted for, nobody else misses any, and no program stays behind.

use std::{
    net::UdpSocket,
    process::Child,
    time::{Duration, Instant},
};

use frames::{Payload, ethernet};
use machine::ends::{End, Ends};
use sys::{
    link::Links,
    netlink::{Request, Socket},
    packet::{FrameReceiver, FrameSender, Poll, RawSender},
    xdp::{Copying, Hook, Step, XdpReceiver, XdpSender},
};

use super::stream::{every_frame_is_accounted_for, inside, listener, stream_from, talker};
use crate::harness::{Scratch, alone, signal, wait_until};

#[test]
fn frames_that_were_sent_came_or_are_counted_as_lost() {
    let _alone = alone();
    for (options, from) in [
        ("--mode xdp --receive xdp --wakeup-offset 30us", "xdp copy native"),
        ("--mode xdp --receive xdp-generic --spin --class B --format 61883-6", "xdp copy generic"),
        ("--mode send --receive xdp --spin", "xdp copy native"),
        ("--mode xdp --receive socket", "socket"),
    ] {
        let scratch = Scratch::new();
        let run = format!("measure stream --self {options} --quiet --record a --duration 1s --blame=off");
        scratch.run(&run).expect_status(0);
        let record = scratch.record();
        every_frame_is_accounted_for(&record);
        let ((_, said), (series, heard)) = (talker(&record), listener(&record));
        assert_eq!(heard.from, from, "{options}");
        let is_xdp = from != "socket";
        assert_eq!((heard.lost_in_socket.is_some(), heard.lost_in_ring.is_some()), (!is_xdp, is_xdp), "{options}");
        assert!(series.notes.is_empty(), "{:?}", series.notes);
        // What the cable has no room for is refused, so there is no other place to be lost at.
        assert_eq!(heard.lost, heard.lost_in_ring.or(heard.lost_in_socket).unwrap(), "{options}: {heard:?}");
        if options.contains("--mode xdp") {
            assert_eq!((said.mode.as_str(), said.zero_copy), ("xdp", Some(false)));
        } else {
            assert_eq!(said.zero_copy, None);
        }
        let validator = jsonschema::validator_for(&record::json_schema()).unwrap();
        assert!(validator.is_valid(&serde_json::to_value(&record).unwrap()), "{options}");
        let shown = scratch.run("show a.punctual.json").expect_status(0).stdout();
        assert_eq!(shown.contains("between two frames as stamped"), !is_xdp, "{shown}");
        assert!(!is_xdp || shown.contains(&format!("by {from}")), "{shown}");
    }
}

#[test]
fn a_virtual_cable_cannot_do_without_copying() {
    for options in ["--mode xdp-zerocopy", "--receive xdp-zerocopy"] {
        let scratch = Scratch::new();
        let run = scratch.run(&format!("measure stream --self {options} --quiet --duration 1s --no-record"));
        let said = run.expect_status(1).stderr();
        assert!(said.contains("copies each frame") && said.contains("use xdp instead of xdp-zerocopy"), "{said}");
    }
}

/// Whether an XDP program is on the interface, as the kernel tells everybody (IFLA_XDP, IFLA_XDP_ATTACHED of `if_link.h`).
fn has_program(end: &End) -> bool {
    let ask = || {
        let answer = Socket::route().unwrap().ask(&Links::question(&end.interface)).unwrap();
        let messages = answer.messages().unwrap();
        let (_, attributes) = messages[0].with_header::<16>().unwrap();
        attributes.nested(43).and_then(|xdp| xdp.u8(2)).expect("what is attached")
    };
    end.namespace.run(ask).unwrap() != 0
}

/// A listener in the far end that has its program on the interface.
fn listening(ends: &Ends, scratch: &Scratch) -> Child {
    assert!(!has_program(&ends.far));
    let child = inside(&ends.far, scratch, "measure stream listen far --receive xdp --quiet --record a --blame=off");
    wait_until("the program is there", || has_program(&ends.far));
    child
}

#[test]
fn no_program_outlives_the_process() {
    let _alone = alone();
    let ends = Ends::make().expect("the right to make namespaces: run as root");
    for (how, status) in [("INT", Some(0)), ("KILL", None)] {
        let scratch = Scratch::new();
        let mut child = listening(&ends, &scratch);
        wait_until("its record exists", || scratch.record_path().exists());
        signal(&child, how);
        assert_eq!(child.wait().unwrap().code(), status, "{how}");
        assert!(!has_program(&ends.far), "after SIG{how}");
    }
    assert!(!has_program(&ends.near));
}

fn receiver(ends: &Ends, hook: Hook) -> XdpReceiver {
    let open = || XdpReceiver::open(&ends.far.interface, ethernet::AVTP, 0, Some(hook), Copying::AsOffered);
    ends.far.namespace.run(open).unwrap().expect("AF_XDP: run as root")
}

fn raw_sender(ends: &Ends) -> RawSender {
    ends.near.namespace.run(|| RawSender::open(&ends.near.interface, 3, false)).unwrap().unwrap()
}

/// The next frame, which is under way.
#[track_caller]
fn next<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(since.elapsed() < Duration::from_secs(5), "no frame came");
    }
}

#[test]
fn frames_of_others_go_where_they_always_went() {
    const OTHER: u16 = 0x88b5;
    for hook in [Hook::Native, Hook::Generic] {
        let ends = Ends::make().expect("the right to make namespaces: run as root");
        let socket_for = |ethertype| {
            let open = || FrameReceiver::open(&ends.far.interface, ethertype, None);
            ends.far.namespace.run(open).unwrap().unwrap()
        };
        let (others, streams) = (socket_for(OTHER), socket_for(ethernet::AVTP));
        let mut ours = receiver(&ends, hook);
        let udp = |end: &End| end.namespace.run(|| UdpSocket::bind((end.address, 4711))).unwrap().unwrap();
        let (near, far) = (udp(&ends.near), udp(&ends.far));
        far.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let to_others = || FrameSender::open(&ends.near.interface, OTHER, ends.far.mac);
        let to_others = ends.near.namespace.run(to_others).unwrap().unwrap();
        let stream = stream_from(&ends.near).frame();
        let mut buffer = [0; 256];
        for _ in 0..10 {
            to_others.send(&[7; 60]).unwrap();
            near.send_to(b"on time", (ends.far.address, 4711)).unwrap();
            raw_sender(&ends).send(stream.bytes()).unwrap();
            let other = next(|| others.receive(&mut buffer, Poll::Sleep).unwrap());
            assert_eq!((other.length, &buffer[14..74]), (74, &[7; 60][..]), "{hook:?}");
            assert_eq!(far.recv(&mut buffer).unwrap(), 7, "{hook:?}");
            let came = next(|| ours.receive(&mut buffer, Poll::Sleep).unwrap());
            assert_eq!(&buffer[..came.length], stream.bytes(), "with its VLAN tag, {hook:?}");
            assert_eq!((came.tci, came.stamp_ns), (None, None));
        }
        assert_eq!(ours.receive(&mut buffer, Poll::Look).unwrap(), None, "{hook:?}");
        assert_eq!(streams.receive(&mut buffer, Poll::Look).unwrap(), None, "it is ours alone, {hook:?}");
        drop(ours);
        raw_sender(&ends).send(stream.bytes()).unwrap();
        next(|| streams.receive(&mut buffer, Poll::Sleep).unwrap());
    }
}

#[test]
fn what_the_ring_had_no_room_for_is_counted_exactly() {
    const ROOM: u64 = 8192;
    let ends = Ends::make().expect("the right to make namespaces: run as root");
    let mut ours = receiver(&ends, Hook::Native);
    let drops = ours.drops().unwrap();
    let sender = raw_sender(&ends);
    let mut frame = stream_from(&ends.near).frame();
    let mut sent = 0;
    while sent < ROOM + 500 {
        frame.patch(&Payload { run: 1, seq: sent, scheduled_ns: 0, woke_ns: 0, sent_ns: 0 }, 0);
        // The cable itself is full at times.
        sent += u64::from(sender.send(frame.bytes()).is_ok());
    }
    let mut buffer = [0; 128];
    let mut came = 0;
    wait_until("all are counted", || drops.dropped().unwrap() == 500);
    while ours.receive(&mut buffer, Poll::Look).unwrap().is_some() {
        let seq = frames::parse(&buffer[..90]).and_then(|parsed| parsed.probe).map(|probe| probe.seq);
        assert_eq!(seq, Some(came), "the first ones, in their order");
        came += 1;
    }
    assert_eq!(came, ROOM);
    // There is room again.
    sender.send(frame.bytes()).unwrap();
    next(|| ours.receive(&mut buffer, Poll::Sleep).unwrap());
    assert_eq!(drops.dropped().unwrap(), 500);
}

/// Sets the far end up or down, without which the near end has no carrier (`RTM_NEWLINK`, `IFF_UP`).
fn set_up(end: &End, is_up: bool) {
    let mut header = [0; 16];
    header[4..8].copy_from_slice(&end.index.to_ne_bytes());
    header[8..12].copy_from_slice(&u32::from(is_up).to_ne_bytes());
    header[12..16].copy_from_slice(&1_u32.to_ne_bytes());
    let change = || Socket::route().unwrap().ask(&Request::change(16, 0).header(&header)).unwrap().messages().map(drop);
    end.namespace.run(change).unwrap().unwrap();
}

#[test]
fn what_was_refused_does_not_come_later() {
    let ends = Ends::make().expect("the right to make namespaces: run as root");
    let mut ours = receiver(&ends, Hook::Native);
    let open = || XdpSender::open(&ends.near.interface, 0, Copying::AsOffered);
    let mut sender = ends.near.namespace.run(open).unwrap().expect("AF_XDP: run as root");
    let mut frame = stream_from(&ends.near).frame();
    let mut send = |numbers: std::ops::Range<u64>| {
        let mut taken = |seq: &u64| {
            frame.patch(&Payload { run: 1, seq: *seq, scheduled_ns: 0, woke_ns: 0, sent_ns: 0 }, 0);
            sender.send(frame.bytes()).is_ok()
        };
        numbers.filter(|seq| taken(seq)).collect::<Vec<u64>>()
    };
    let mut sent = send(0..10);
    set_up(&ends.far, false);
    assert!(send(10..310).is_empty(), "there is no carrier");
    set_up(&ends.far, true);
    let has_carrier =
        || ends.near.namespace.run(|| Links::open().unwrap().find("near").unwrap().is_operational).unwrap();
    wait_until("the cable is whole again", has_carrier);
    sent.extend(send(310..410));
    assert!(sent.len() >= 100, "{sent:?}");
    let mut buffer = [0; 128];
    for seq in sent {
        next(|| ours.receive(&mut buffer, Poll::Sleep).unwrap());
        assert_eq!(frames::parse(&buffer[..90]).and_then(|parsed| parsed.probe).map(|probe| probe.seq), Some(seq));
    }
    assert_eq!(ours.receive(&mut buffer, Poll::Sleep).unwrap(), None);
}

#[test]
fn what_is_taken_is_told_and_is_free_again_at_once() {
    let ends = Ends::make().expect("the right to make namespaces: run as root");
    let open = |queue| {
        let open = || XdpSender::open(&ends.far.interface, queue, Copying::AsOffered);
        ends.far.namespace.run(open).unwrap()
    };
    let first = open(0).expect("AF_XDP: run as root");
    assert!(!first.is_zero_copy());
    let taken = open(0).unwrap_err();
    assert_eq!((taken.step, taken.source.raw_os_error()), (Step::Bind, Some(16)), "EBUSY");
    let missing = open(9).unwrap_err();
    assert_eq!((missing.step, missing.source.raw_os_error()), (Step::Bind, Some(22)), "EINVAL");
    for _ in 0..3 {
        drop(open(0));
    }
    drop(first);
    for _ in 0..5 {
        open(0).expect("the kernel lets go of the queue a little later");
    }
    let _here = receiver(&ends, Hook::Native);
    let second = || XdpReceiver::open(&ends.far.interface, ethernet::AVTP, 0, None, Copying::AsOffered);
    let second = ends.far.namespace.run(second).unwrap().unwrap_err();
    assert_eq!(second.step, Step::Attach);
}
