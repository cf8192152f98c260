use super::*;
use crate::clock::Clock;

/// A socket with an answering one, over loopback.
fn two() -> (DatagramSocket, DatagramSocket) {
    let far = DatagramSocket::bind(([127, 0, 0, 1], 0).into()).unwrap();
    let near = DatagramSocket::connect(far.local_address().unwrap()).unwrap();
    for socket in [&near, &far] {
        socket.set_patience(Duration::from_secs(5)).unwrap();
    }
    (near, far)
}

#[test]
fn what_is_sent_comes_back_to_who_sent_it() {
    let (near, far) = two();
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
fn the_kernel_tells_when_it_had_each() {
    let (near, far) = two();
    near.set_stamps(Stamps::All).unwrap();
    far.set_stamps(Stamps::Receive).unwrap();
    // The kernel begins to stamp a moment after it was asked to.
    std::thread::sleep(Duration::from_millis(50));
    let (mut buffer, mut from) = ([0; 8], Sender::default());
    for number in 0..3 {
        let before = Clock::Realtime.now_ns();
        near.send(b"on time").unwrap();
        let came = far.receive(&mut buffer, &mut from, true).unwrap().unwrap().stamp_ns.unwrap();
        let sent = near.sent().unwrap().unwrap();
        let Stamp::Driver(sent_ns) = sent.stamp else { panic!("{sent:?}") };
        assert_eq!(sent.number, number);
        assert!(before <= sent_ns && sent_ns <= came && came <= Clock::Realtime.now_ns());
        assert_eq!(near.sent().unwrap(), None);
    }
    near.set_stamps(Stamps::All).unwrap();
    near.send(b"anew").unwrap();
    assert_eq!(near.sent().unwrap().unwrap().number, 0);
}

/// Loopback has no card, so what was asked for is missing, and nothing else is.
#[test]
fn a_card_that_does_not_stamp_changes_nothing() {
    let (near, far) = two();
    near.set_stamps(Stamps::Card).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    near.send(b"on time").unwrap();
    let (mut buffer, mut from) = ([0; 8], Sender::default());
    far.receive(&mut buffer, &mut from, true).unwrap().unwrap();
    far.answer(b"on time", &from).unwrap();
    let received = near.receive(&mut buffer, &mut from, true).unwrap().unwrap();
    assert!(received.stamp_ns.is_some() && received.card_ns.is_none(), "{received:?}");
    assert!(matches!(near.sent().unwrap().unwrap().stamp, Stamp::Driver(_)));
    assert_eq!(near.sent().unwrap(), None);
}

#[test]
fn nobody_there_is_told_and_nothing_is_waited_for() {
    let (near, far) = two();
    let address = far.local_address().unwrap();
    drop(far);
    near.send(b"?").unwrap();
    let refused = near.receive(&mut [0; 8], &mut Sender::default(), true).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    near.set_patience(Duration::from_millis(1)).unwrap();
    assert_eq!(near.receive(&mut [0; 8], &mut Sender::default(), true).unwrap(), None);
    assert!(DatagramSocket::bind(address).is_ok(), "the port is free again");
}

#[test]
fn what_needs_two_frames_is_refused_where_that_was_asked_for() {
    let (near, _far) = two();
    near.forbid_fragments().unwrap();
    let one_frame = near.one_frame().unwrap();
    near.send(&vec![0; one_frame.min(MAX_PAYLOAD)]).unwrap();
    if one_frame < MAX_PAYLOAD {
        assert_eq!(near.send(&vec![0; one_frame + 1]).unwrap_err().raw_os_error(), Some(libc::EMSGSIZE));
    }
    near.set_busy_poll(0).unwrap();
    assert!(!near.is_polled(), "loopback has no queue");
}
