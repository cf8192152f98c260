//! A simulated ptp4l that sends recorded responses, and invalid ones.

use std::{
    fs,
    os::unix::net::UnixDatagram,
    path::{Path, PathBuf},
    thread::{self, JoinHandle},
    time::Duration,
};

use record::Ptp;
use tempfile::TempDir;

use super::{
    ClockWatch,
    management::{Address, Contents, DataSet, Response},
    read,
};
use crate::Root;

const SOCKET: &str = "var/run/ptp4l";
const DATA_SET_AT: usize = 52;

/// The recorded responses, each with the name of its data set.
fn recorded(name: &str) -> Vec<(String, Vec<u8>)> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ptp4l").join(name);
    let text = fs::read_to_string(file).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(' '));
    let bytes =
        |hex: &str| (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect();
    lines.map(|(data_set, hex)| (data_set.to_owned(), bytes(hex))).collect()
}

/// A machine with a simulated ptp4l.
struct Fake {
    folder: TempDir,
    thread: Option<JoinHandle<()>>,
}

impl Fake {
    /// Starts it; `responses` makes the responses to a request.
    fn start(mut responses: impl FnMut(&[u8]) -> Vec<Vec<u8>> + Send + 'static) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("var/run")).unwrap();
        let socket = UnixDatagram::bind(folder.path().join(SOCKET)).unwrap();
        let serve = move || {
            let mut request = [0; 200];
            loop {
                let (length, from) = socket.recv_from(&mut request).unwrap();
                if length == 0 {
                    return;
                }
                for response in responses(&request[..length]) {
                    // The client may have closed its socket already.
                    let _ = socket.send_to_addr(&response, &from);
                }
            }
        };
        Self { folder, thread: Some(thread::spawn(serve)) }
    }

    /// A ptp4l that sends recorded responses, only to the requests that the real one accepted.
    fn recorded(name: &str) -> Self {
        let responses = recorded(name);
        Self::start(move |request| response(&responses, request).into_iter().collect())
    }

    fn root(&self) -> Root {
        Root::at(self.folder.path())
    }

    fn ptp(&self) -> Ptp {
        read(&self.root()).unwrap().ptp.unwrap()
    }

    /// The reason why the state of ptp4l is unknown.
    fn reason(&self) -> String {
        let clocks = read(&self.root()).unwrap();
        assert_eq!((clocks.ptp, clocks.unknown.len()), (None, 1));
        clocks.unknown[0].clone()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        let sent = UnixDatagram::unbound().and_then(|us| us.send_to(&[], self.folder.path().join(SOCKET)));
        if sent.is_ok() {
            let _ = self.thread.take().map(JoinHandle::join);
        }
    }
}

/// The recorded response to a request: same kind, domain and data set.
fn response(responses: &[(String, Vec<u8>)], request: &[u8]) -> Option<Vec<u8>> {
    let same = |response: &[u8], at: std::ops::Range<usize>| response[at.clone()] == request[at];
    let fits =
        |response: &[u8]| same(response, 0..1) && same(response, 4..5) && same(response, DATA_SET_AT..DATA_SET_AT + 2);
    responses.iter().find(|(_, response)| fits(response)).map(|(_, response)| response.clone())
}

#[test]
fn reads_a_clock_that_follows_a_grandmaster() {
    let fake = Fake::recorded("slave.txt");
    let ptp = fake.ptp();
    assert_eq!((ptp.domain, ptp.is_gptp, ptp.is_grandmaster, ptp.is_synchronised()), (0, false, false, true));
    assert_eq!(ptp.grandmaster, "5a666e.fffe.d25bdc");
    assert_eq!((ptp.steps, ptp.offset_ns, ptp.path_delay_ns), (1, 254, Some(1860)));
    assert_eq!((ptp.utc_offset_s, ptp.is_tai), (37, false));
    let [port] = ptp.ports.as_slice() else { panic!("{:?}", ptp.ports) };
    assert_eq!((port.number, port.state.as_str(), port.interface.as_deref()), (1, "SLAVE", Some("ve-b")));
    assert_eq!((port.stamps_in_hardware, &port.clock), (Some(false), &None));
    let clocks = read(&fake.root()).unwrap();
    assert_eq!(clocks.to_grandmaster().unwrap().error_ns, 254);
    assert_eq!((clocks.kernel, clocks.unknown), (None, Vec::new()), "a recorded machine has no kernel clock");
}

#[test]
fn reads_a_grandmaster() {
    let ptp = Fake::recorded("master.txt").ptp();
    assert_eq!((ptp.is_grandmaster, ptp.is_synchronised(), ptp.steps), (true, true, 0));
    assert_eq!((ptp.grandmaster.as_str(), ptp.offset_ns, ptp.path_delay_ns), ("5a666e.fffe.d25bdc", 0, None));
    assert_eq!(ptp.ports_in_words(), "port 1 (ve-a) is MASTER");
}

#[test]
fn reads_a_gptp_clock_that_is_not_synchronised_yet() {
    let clocks = read(&Fake::recorded("gptp.txt").root()).unwrap();
    assert!(clocks.ptp.as_ref().unwrap().is_gptp);
    assert_eq!(clocks.to_grandmaster().unwrap_err(), "ptp4l follows no master: port 1 (ve-b) is UNCALIBRATED");
}

#[test]
fn finds_the_clock_of_the_interface() {
    let fake = Fake::recorded("slave.txt");
    let clock = fake.folder.path().join("sys/class/net/ve-b/device/ptp/ptp3");
    fs::create_dir_all(&clock).unwrap();
    assert_eq!(fake.ptp().ports[0].clock.as_deref(), Some("ptp3"));
    fs::create_dir_all(clock.with_file_name("ptp4")).unwrap();
    assert_eq!(fake.ptp().ports[0].clock, None, "with two clocks the right one is unknown");
}

#[test]
fn reports_a_ptp4l_that_does_not_answer() {
    let silent = Fake::start(|_| Vec::new());
    assert!(silent.reason().starts_with("ptp4l did not answer over /var/run/ptp4l"), "{}", silent.reason());
}

#[test]
fn reports_a_missing_data_set() {
    let responses = recorded("slave.txt");
    let partly = Fake::start(move |request| {
        let response = response(&responses, request).filter(|_| request[DATA_SET_AT..DATA_SET_AT + 2] != [0x20, 0x01]);
        response.into_iter().collect()
    });
    assert_eq!(partly.reason(), "ptp4l did not send its Current data set over /var/run/ptp4l");
}

/// Each response follows truncated copies of itself; the result must not change.
#[test]
fn ignores_invalid_responses() {
    let responses = recorded("slave.txt");
    let server = Fake::start(move |request| {
        let Some(response) = response(&responses, request) else { return vec![vec![0xff; 1500]] };
        let cut = (0..response.len()).step_by(7).map(|length| response[..length].to_vec());
        cut.chain([vec![0; 100], response.clone()]).collect()
    });
    assert_eq!(server.ptp(), Fake::recorded("slave.txt").ptp());
}

#[test]
fn reports_nothing_without_a_running_ptp4l() {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::at(folder.path());
    assert_eq!(read(&root), None);
    fs::create_dir_all(folder.path().join("var/run")).unwrap();
    drop(UnixDatagram::bind(folder.path().join(SOCKET)).unwrap());
    assert!(folder.path().join(SOCKET).exists());
    assert_eq!(read(&root), None);
}

#[test]
fn reads_only_the_name_of_a_recorded_clock() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| {
        let file: PathBuf = folder.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    put("sys/class/ptp/ptp0/clock_name", "igc\n");
    put("proc/812/comm", "phc2sys\n");
    let clocks = read(&Root::at(folder.path())).unwrap();
    assert_eq!((clocks.hardware[0].name.as_deref(), &clocks.hardware[0].ahead), (Some("igc"), &None));
    assert_eq!(clocks.programs, ["phc2sys"]);
    assert_eq!(clocks.unknown, ["/dev/ptp0 of a recorded machine cannot be read"]);
}

#[test]
fn parses_recorded_responses() {
    for (name, is_gptp) in [("slave.txt", false), ("master.txt", false), ("gptp.txt", true)] {
        for (data_set, bytes) in recorded(name) {
            let response = Response::read(&bytes).unwrap();
            assert_eq!(
                (format!("{:?}", response.data_set), response.address),
                (data_set, Address { domain: 0, is_gptp })
            );
        }
    }
    let of_gptp = recorded("gptp.txt");
    let contents = |at: usize| Response::read(&of_gptp[at].1).unwrap().contents;
    assert_eq!(contents(1), Contents::Current { steps: 1, offset_ns: 221, path_delay_ns: 0 });
    assert_eq!(contents(4), Contents::Port { number: 1, state: 8, peer_delay_ns: 1094 });
}

#[test]
fn rejects_truncated_responses() {
    for (data_set, bytes) in recorded("slave.txt") {
        for length in 0..bytes.len() {
            assert_eq!(Response::read(&bytes[..length]), None, "{data_set} of {length}");
        }
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << bit;
                let _ = Response::read(&changed);
            }
        }
    }
}

/// Every byte of a request, computed by hand from the standard.
#[test]
fn request_has_the_layout_of_the_standard() {
    let request = Address { domain: 24, is_gptp: true }.request(DataSet::Parent);
    let mut expected = vec![0x1d, 2, 0, 54, 24];
    expected.resize(30, 0);
    expected.extend([0x20, 0x02, 4, 0x7f]);
    expected.extend([0xff; 10]);
    expected.extend([0, 0, 0, 0]);
    expected.extend([0, 1, 0, 2, 0x20, 0x02]);
    assert_eq!(request, expected);
}

#[test]
fn offset_is_rounded_away_from_zero_and_an_error_is_a_refusal() {
    let (_, mut bytes) = recorded("slave.txt").swap_remove(1);
    let with = |bytes: &mut Vec<u8>, scaled: i64| {
        bytes[56..64].copy_from_slice(&scaled.to_be_bytes());
        match Response::read(bytes).unwrap().contents {
            Contents::Current { offset_ns, .. } => offset_ns,
            contents => panic!("{contents:?}"),
        }
    };
    assert_eq!((with(&mut bytes, 1), with(&mut bytes, -1), with(&mut bytes, -65536)), (1, -1, -1));
    assert_eq!(with(&mut bytes, i64::MIN), -(1 << 47));
    // An error TLV, recorded for a data set that this version does not know, changed to one of ours.
    bytes.truncate(48);
    bytes.extend([0, 2, 0, 8, 0, 2, 0x20, 0x01, 0, 0, 0, 0]);
    bytes[3] = 60;
    assert_eq!(Response::read(&bytes).unwrap().contents, Contents::Refused);
}

/// The offset is 9 us in one reading, and 254 ns in all others.
#[test]
fn keeps_the_worst_reading_of_a_run() {
    let responses = recorded("slave.txt");
    let mut readings = 0;
    let fake = Fake::start(move |request| {
        let mut response = response(&responses, request);
        if request[DATA_SET_AT..DATA_SET_AT + 2] == [0x20, 0x01] {
            readings += 1;
            if let (3, Some(response)) = (readings, &mut response) {
                // IEEE 1588 15.5.3.4.1: two bytes of steps, then the offset, ns times 65536.
                response[DATA_SET_AT + 4..DATA_SET_AT + 12].copy_from_slice(&(9000_i64 << 16).to_be_bytes());
            }
        }
        response.into_iter().collect()
    });
    let first = read(&fake.root()).unwrap();
    assert_eq!(first.ptp.as_ref().unwrap().offset_ns, 254);
    let watch = ClockWatch::start(&fake.root(), first, Duration::from_millis(10)).unwrap();
    thread::sleep(Duration::from_millis(200));
    let seen = watch.finish().unwrap();
    assert!(seen.looks > 3, "{seen:?}");
    assert_eq!((seen.ptp.as_ref().unwrap().offset_ns, seen.to_grandmaster().unwrap().error_ns), (9000, 9000));
}

#[test]
fn reports_a_ptp4l_that_ends_during_a_run() {
    let fake = Fake::recorded("slave.txt");
    let watch = ClockWatch::start(&fake.root(), read(&fake.root()).unwrap(), Duration::from_secs(60)).unwrap();
    fs::remove_file(fake.folder.path().join(SOCKET)).unwrap();
    assert_eq!(watch.finish().unwrap().to_grandmaster().unwrap_err(), "ptp4l no longer answers");
}
