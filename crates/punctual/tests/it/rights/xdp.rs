//! Streams over AF_XDP: every frame is counted, other sockets get their frames, and the XDP program is removed.

use std::{
    net::UdpSocket,
    time::{Duration, Instant},
};

use frames::{Payload, ethernet};
use machine::veth::{VethEnd, VethPair};
use stalls::{Stall, repeat_if_stalled};
use sys::{
    link::Links,
    netlink::{Request, Socket},
    packet::{FrameReceiver, FrameSender, Poll, RawSender},
    xdp::{Copying, Hook, Step, XdpReceiver, XdpSender},
};

use super::stream::{assert_all_frames_counted, inside, listener, stream_from, talker};
use crate::harness::{Scratch, Started, alone, signal, wait_until};

#[test]
fn sent_frames_are_received_or_counted_as_lost() {
    let _alone = alone();
    for (options, from) in [
        ("--mode xdp --receive xdp --wakeup-offset 30us", "xdp copy native"),
        ("--mode xdp --receive xdp-generic --spin --class B --format 61883-6", "xdp copy generic"),
        ("--mode send --receive xdp --spin", "xdp copy native"),
        ("--mode xdp --receive socket", "socket"),
    ] {
        // The thread that collects the frames of the listener is an ordinary one.
        repeat_if_stalled(Stall::Ordinary(Duration::from_millis(50)), || count_frames(options, from));
    }
}

fn count_frames(options: &str, from: &str) {
    let scratch = Scratch::new();
    let run = format!("measure stream --self {options} --quiet --record a --duration 1s --blame=off");
    scratch.run(&run).expect_status(0);
    let record = scratch.record();
    assert_all_frames_counted(&record);
    let ((_, sender), (series, heard)) = (talker(&record), listener(&record));
    assert_eq!(heard.from, from, "{options}");
    let is_xdp = from != "socket";
    assert_eq!((heard.lost_in_socket.is_some(), heard.lost_in_ring.is_some()), (!is_xdp, is_xdp), "{options}");
    assert!(series.notes.is_empty(), "{:?}", series.notes);
    // The cable refuses frames that it has no space for, so frames are lost only in the ring or in the socket.
    assert_eq!(heard.lost, heard.lost_in_ring.or(heard.lost_in_socket).unwrap(), "{options}: {heard:?}");
    if options.contains("--mode xdp") {
        assert_eq!((sender.mode.as_str(), sender.zero_copy), ("xdp", Some(false)));
    } else {
        assert_eq!(sender.zero_copy, None);
    }
    let validator = jsonschema::validator_for(&record::json_schema()).unwrap();
    assert!(validator.is_valid(&serde_json::to_value(&record).unwrap()), "{options}");
    let shown = scratch.run("show --full a.punctual.json").expect_status(0).stdout();
    assert_eq!(shown.contains("between two frames, as stamped"), !is_xdp, "{shown}");
    assert!(!is_xdp || shown.contains(&format!("by {from}")), "{shown}");
}

#[test]
fn zero_copy_is_refused_on_a_virtual_cable() {
    for options in ["--mode xdp-zerocopy", "--receive xdp-zerocopy"] {
        let scratch = Scratch::new();
        let run = scratch.run(&format!("measure stream --self {options} --quiet --duration 1s --no-record"));
        let stderr = run.expect_status(1).stderr();
        assert!(
            stderr.contains("does not support zero-copy") && stderr.contains("use xdp instead of xdp-zerocopy"),
            "{stderr}"
        );
    }
}

/// True if an XDP program is attached to the interface (IFLA_XDP, IFLA_XDP_ATTACHED of `if_link.h`).
pub fn has_program(end: &VethEnd) -> bool {
    let ask = || {
        let answer = Socket::route().unwrap().ask(&Links::question(&end.interface)).unwrap();
        let messages = answer.messages().unwrap();
        let (_, attributes) = messages[0].with_header::<16>().unwrap();
        attributes.nested(43).and_then(|xdp| xdp.u8(2)).expect("the kind of the attached program")
    };
    end.namespace.run(ask).unwrap() != 0
}

/// Starts a listener in the far end and waits until its program is attached.
fn start_listener(ends: &VethPair, scratch: &Scratch) -> Started {
    assert!(!has_program(&ends.far));
    let child = inside(&ends.far, scratch, "measure stream listen far --receive xdp --quiet --record a --blame=off");
    wait_until("the program is attached", || has_program(&ends.far));
    child
}

#[test]
fn the_program_is_detached_when_the_process_ends() {
    let _alone = alone();
    let ends = VethPair::create().expect("the right to make namespaces: run as root");
    // Nobody sends a frame, so the run is invalid.
    for (how, status) in [("INT", Some(4)), ("KILL", None)] {
        let scratch = Scratch::new();
        let mut child = start_listener(&ends, &scratch);
        wait_until("the record exists", || scratch.record_path().exists());
        signal(&child, how);
        assert_eq!(child.wait().unwrap().code(), status, "{how}");
        assert!(!has_program(&ends.far), "after SIG{how}");
    }
    assert!(!has_program(&ends.near));
}

fn receiver(ends: &VethPair, hook: Hook) -> XdpReceiver {
    let open = || XdpReceiver::open(&ends.far.interface, ethernet::AVTP, 0, Some(hook), Copying::AsOffered);
    ends.far.namespace.run(open).unwrap().expect("AF_XDP: run as root")
}

fn raw_sender(ends: &VethPair) -> RawSender {
    ends.near.namespace.run(|| RawSender::open(&ends.near.interface, 3, false)).unwrap().unwrap()
}

/// Waits for the next frame.
#[track_caller]
fn next<T>(mut receive: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(frame) = receive() {
            return frame;
        }
        assert!(since.elapsed() < Duration::from_secs(5), "no frame came");
    }
}

#[test]
fn other_frames_still_reach_their_sockets() {
    const OTHER: u16 = 0x88b5;
    for hook in [Hook::Native, Hook::Generic] {
        let ends = VethPair::create().expect("the right to make namespaces: run as root");
        let socket_for = |ethertype| {
            let open = || FrameReceiver::open(&ends.far.interface, ethertype, None);
            ends.far.namespace.run(open).unwrap().unwrap()
        };
        let (others, streams) = (socket_for(OTHER), socket_for(ethernet::AVTP));
        let mut ours = receiver(&ends, hook);
        let udp = |end: &VethEnd| end.namespace.run(|| UdpSocket::bind((end.address, 4711))).unwrap().unwrap();
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
        assert_eq!(ours.receive(&mut buffer, Poll::Spin).unwrap(), None, "{hook:?}");
        assert_eq!(streams.receive(&mut buffer, Poll::Spin).unwrap(), None, "the frame went to AF_XDP only, {hook:?}");
        drop(ours);
        raw_sender(&ends).send(stream.bytes()).unwrap();
        next(|| streams.receive(&mut buffer, Poll::Sleep).unwrap());
    }
}

#[test]
fn frames_dropped_by_a_full_ring_are_counted_exactly() {
    const CAPACITY: u64 = 8192;
    let ends = VethPair::create().expect("the right to make namespaces: run as root");
    let mut ours = receiver(&ends, Hook::Native);
    let drops = ours.drops().unwrap();
    let sender = raw_sender(&ends);
    let mut frame = stream_from(&ends.near).frame();
    let mut sent = 0;
    while sent < CAPACITY + 500 {
        frame.patch(&Payload { run: 1, seq: sent, scheduled_ns: 0, woke_ns: 0, sent_ns: 0 }, 0);
        // The cable refuses a frame while it is full.
        sent += u64::from(sender.send(frame.bytes()).is_ok());
    }
    let mut buffer = [0; 128];
    let mut received = 0;
    wait_until("all dropped frames are counted", || drops.dropped().unwrap() == 500);
    while ours.receive(&mut buffer, Poll::Spin).unwrap().is_some() {
        let seq = frames::parse(&buffer[..90]).and_then(|parsed| parsed.probe).map(|probe| probe.seq);
        assert_eq!(seq, Some(received), "the first frames, in order");
        received += 1;
    }
    assert_eq!(received, CAPACITY);
    // The ring has space again.
    sender.send(frame.bytes()).unwrap();
    next(|| ours.receive(&mut buffer, Poll::Sleep).unwrap());
    assert_eq!(drops.dropped().unwrap(), 500);
}

/// Sets an interface up or down (`RTM_NEWLINK`, `IFF_UP`). If one end is down, the other has no carrier.
fn set_up(end: &VethEnd, is_up: bool) {
    let mut header = [0; 16];
    header[4..8].copy_from_slice(&end.index.to_ne_bytes());
    header[8..12].copy_from_slice(&u32::from(is_up).to_ne_bytes());
    header[12..16].copy_from_slice(&1_u32.to_ne_bytes());
    let change = || Socket::route().unwrap().ask(&Request::change(16, 0).header(&header)).unwrap().messages().map(drop);
    end.namespace.run(change).unwrap().unwrap();
}

#[test]
fn refused_frames_are_not_sent_later() {
    let ends = VethPair::create().expect("the right to make namespaces: run as root");
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
    wait_until("the cable has a carrier", has_carrier);
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
fn a_used_queue_is_refused_and_free_after_its_use() {
    let ends = VethPair::create().expect("the right to make namespaces: run as root");
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
        open(0).expect("the queue is free, perhaps after a moment");
    }
    let _receiver = receiver(&ends, Hook::Native);
    let second = || XdpReceiver::open(&ends.far.interface, ethernet::AVTP, 0, None, Copying::AsOffered);
    let second = ends.far.namespace.run(second).unwrap().unwrap_err();
    assert_eq!(second.step, Step::Attach);
}
