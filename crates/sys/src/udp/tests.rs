use super::*;
use crate::clock::Clock;

/// A connected socket and its peer, over loopback.
fn connected_pair() -> (DatagramSocket, DatagramSocket) {
    let far = DatagramSocket::bind(([127, 0, 0, 1], 0).into()).unwrap();
    let near = DatagramSocket::connect(far.local_address().unwrap()).unwrap();
    for socket in [&near, &far] {
        socket.set_receive_timeout(Duration::from_secs(5)).unwrap();
    }
    (near, far)
}

#[test]
fn answers_reach_the_sender() {
    let (near, far) = connected_pair();
    let (mut buffer, mut from) = ([0; 8], Sender::default());
    near.send(b"on time").unwrap();
    let received = far.receive(&mut buffer, &mut from, true).unwrap().unwrap();
    assert_eq!((received.len, &buffer[..7]), (7, b"on time".as_slice()));
    far.answer(b"longer than 8", &from).unwrap();
    let received = near.receive(&mut buffer, &mut from, true).unwrap().unwrap();
    assert_eq!((received.len, received.stamp_ns), (13, None));
    assert_eq!(near.receive(&mut buffer, &mut from, false).unwrap(), None, "nothing more");
}

#[test]
fn time_stamps_are_in_order() {
    let (near, far) = connected_pair();
    near.set_stamps(Stamps::All).unwrap();
    far.set_stamps(Stamps::Receive).unwrap();
    // The kernel enables timestamping with a delay.
    std::thread::sleep(Duration::from_millis(50));
    let (mut buffer, mut from) = ([0; 8], Sender::default());
    for number in 0..3 {
        let before = Clock::Realtime.now_ns();
        near.send(b"on time").unwrap();
        let came = far.receive(&mut buffer, &mut from, true).unwrap().unwrap().stamp_ns.unwrap();
        let Report::Sent(sent) = near.report().unwrap().unwrap() else { panic!("no timestamp") };
        let Stamp::Driver(sent_ns) = sent.stamp else { panic!("{sent:?}") };
        assert_eq!(sent.number, number);
        assert!(before <= sent_ns && sent_ns <= came && came <= Clock::Realtime.now_ns());
        assert_eq!(near.report().unwrap(), None);
    }
    near.set_stamps(Stamps::All).unwrap();
    near.send(b"anew").unwrap();
    assert!(matches!(near.report().unwrap(), Some(Report::Sent(Sent { number: 0, .. }))));
}

/// Loopback has no hardware timestamps, but software ones must still arrive.
#[test]
fn missing_hardware_time_stamps_do_not_affect_others() {
    let (near, far) = connected_pair();
    near.set_stamps(Stamps::Card).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    near.send(b"on time").unwrap();
    let (mut buffer, mut from) = ([0; 8], Sender::default());
    far.receive(&mut buffer, &mut from, true).unwrap().unwrap();
    far.answer(b"on time", &from).unwrap();
    let received = near.receive(&mut buffer, &mut from, true).unwrap().unwrap();
    assert!(received.stamp_ns.is_some() && received.card_ns.is_none(), "{received:?}");
    assert!(matches!(near.report().unwrap(), Some(Report::Sent(Sent { stamp: Stamp::Driver(_), .. }))));
    assert_eq!(near.report().unwrap(), None);
}

#[test]
fn reports_a_missing_peer_and_respects_the_timeout() {
    let (near, far) = connected_pair();
    let address = far.local_address().unwrap();
    drop(far);
    near.send(b"?").unwrap();
    let refused = near.receive(&mut [0; 8], &mut Sender::default(), true).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    near.set_receive_timeout(Duration::from_millis(1)).unwrap();
    assert_eq!(near.receive(&mut [0; 8], &mut Sender::default(), true).unwrap(), None);
    assert!(DatagramSocket::bind(address).is_ok(), "the port is free again");
}

#[test]
fn forbid_fragments_rejects_larger_datagrams() {
    let (near, _far) = connected_pair();
    near.forbid_fragments().unwrap();
    let one_frame = near.one_frame().unwrap();
    near.send(&vec![0; one_frame.min(MAX_PAYLOAD)]).unwrap();
    if one_frame < MAX_PAYLOAD {
        assert_eq!(near.send(&vec![0; one_frame + 1]).unwrap_err().raw_os_error(), Some(libc::EMSGSIZE));
    }
    near.set_busy_poll(0).unwrap();
    assert!(!near.is_polled(), "loopback does not support polling");
}

#[test]
fn icmp_errors_have_words_and_numbers() {
    for (error, text) in [
        (IcmpError { v6: false, kind: 3, code: 1 }, "host unreachable"),
        (IcmpError { v6: true, kind: 1, code: 3 }, "address unreachable"),
        (IcmpError { v6: false, kind: 11, code: 0 }, "time to live exceeded"),
        (IcmpError { v6: true, kind: 200, code: 9 }, "ICMPv6 type 200 code 9"),
    ] {
        assert_eq!(error.to_string(), text);
        assert_eq!(IcmpError::from_number(error.number()), error);
        assert_ne!(error.number(), 0, "0 means no error");
    }
}
