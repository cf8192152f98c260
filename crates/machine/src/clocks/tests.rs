//! A ptp4l of our own that says what a real one said, and what none should.

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
    ClockWatch, look,
    management::{Address, Answer, DataSet, Told},
};
use crate::Root;

const SOCKET: &str = "var/run/ptp4l";
const ABOUT: usize = 52;

/// The recorded answers, each with the name of what it answers.
fn recorded(name: &str) -> Vec<(String, Vec<u8>)> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ptp4l").join(name);
    let text = fs::read_to_string(file).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(' '));
    let bytes =
        |hex: &str| (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect();
    lines.map(|(about, hex)| (about.to_owned(), bytes(hex))).collect()
}

/// A machine on which something listens where ptp4l does.
struct Fake {
    folder: TempDir,
    thread: Option<JoinHandle<()>>,
}

impl Fake {
    /// `answers` makes the answers to a question.
    fn start(mut answers: impl FnMut(&[u8]) -> Vec<Vec<u8>> + Send + 'static) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("var/run")).unwrap();
        let socket = UnixDatagram::bind(folder.path().join(SOCKET)).unwrap();
        let serve = move || {
            let mut question = [0; 200];
            loop {
                let (length, from) = socket.recv_from(&mut question).unwrap();
                if length == 0 {
                    return;
                }
                for answer in answers(&question[..length]) {
                    // Who has heard enough is gone.
                    let _ = socket.send_to_addr(&answer, &from);
                }
            }
        };
        Self { folder, thread: Some(thread::spawn(serve)) }
    }

    /// One that says what was recorded, and hears only what the real one would.
    fn recorded(name: &str) -> Self {
        let answers = recorded(name);
        Self::start(move |question| answer(&answers, question).into_iter().collect())
    }

    fn root(&self) -> Root {
        Root::at(self.folder.path())
    }

    fn ptp(&self) -> Ptp {
        look(&self.root()).unwrap().ptp.unwrap()
    }

    /// Why nothing is known.
    fn reason(&self) -> String {
        let clocks = look(&self.root()).unwrap();
        assert_eq!((clocks.ptp, clocks.unknown.len()), (None, 1));
        clocks.unknown[0].clone()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        let told = UnixDatagram::unbound().and_then(|us| us.send_to(&[], self.folder.path().join(SOCKET)));
        if told.is_ok() {
            let _ = self.thread.take().map(JoinHandle::join);
        }
    }
}

/// The recorded answer to a question: of the same kind and domain, about the same data set.
fn answer(answers: &[(String, Vec<u8>)], question: &[u8]) -> Option<Vec<u8>> {
    let same = |answer: &[u8], at: std::ops::Range<usize>| answer[at.clone()] == question[at];
    let fits = |answer: &[u8]| same(answer, 0..1) && same(answer, 4..5) && same(answer, ABOUT..ABOUT + 2);
    answers.iter().find(|(_, answer)| fits(answer)).map(|(_, answer)| answer.clone())
}

#[test]
fn one_that_follows_a_grandmaster() {
    let fake = Fake::recorded("slave.txt");
    let ptp = fake.ptp();
    assert_eq!((ptp.domain, ptp.is_gptp, ptp.is_grandmaster, ptp.is_synchronised()), (0, false, false, true));
    assert_eq!(ptp.grandmaster, "5a666e.fffe.d25bdc");
    assert_eq!((ptp.steps, ptp.offset_ns, ptp.path_delay_ns), (1, 254, Some(1860)));
    assert_eq!((ptp.utc_offset_s, ptp.is_tai), (37, false));
    let [port] = ptp.ports.as_slice() else { panic!("{:?}", ptp.ports) };
    assert_eq!((port.number, port.state.as_str(), port.interface.as_deref()), (1, "SLAVE", Some("ve-b")));
    assert_eq!((port.stamps_in_hardware, &port.clock), (Some(false), &None));
    let clocks = look(&fake.root()).unwrap();
    assert_eq!(clocks.to_grandmaster().unwrap().error_ns, 254);
    assert_eq!((clocks.kernel, clocks.unknown), (None, Vec::new()), "another machine's");
}

#[test]
fn its_grandmaster() {
    let ptp = Fake::recorded("master.txt").ptp();
    assert_eq!((ptp.is_grandmaster, ptp.is_synchronised(), ptp.steps), (true, true, 0));
    assert_eq!((ptp.grandmaster.as_str(), ptp.offset_ns, ptp.path_delay_ns), ("5a666e.fffe.d25bdc", 0, None));
    assert_eq!(ptp.ports_in_words(), "port 1 (ve-a) is MASTER");
}

#[test]
fn one_of_gptp_that_does_not_follow_yet() {
    let clocks = look(&Fake::recorded("gptp.txt").root()).unwrap();
    assert!(clocks.ptp.as_ref().unwrap().is_gptp);
    assert_eq!(clocks.to_grandmaster().unwrap_err(), "ptp4l follows nobody: port 1 (ve-b) is UNCALIBRATED");
}

#[test]
fn the_interface_tells_the_clock() {
    let fake = Fake::recorded("slave.txt");
    let clock = fake.folder.path().join("sys/class/net/ve-b/device/ptp/ptp3");
    fs::create_dir_all(&clock).unwrap();
    assert_eq!(fake.ptp().ports[0].clock.as_deref(), Some("ptp3"));
    fs::create_dir_all(clock.with_file_name("ptp4")).unwrap();
    assert_eq!(fake.ptp().ports[0].clock, None, "which of two is not known");
}

#[test]
fn who_says_nothing_is_unknown() {
    let silent = Fake::start(|_| Vec::new());
    assert!(silent.reason().starts_with("ptp4l did not answer over /var/run/ptp4l"), "{}", silent.reason());
}

#[test]
fn what_is_left_out_is_unknown() {
    let answers = recorded("slave.txt");
    let partly = Fake::start(move |question| {
        let answer = answer(&answers, question).filter(|_| question[ABOUT..ABOUT + 2] != [0x20, 0x01]);
        answer.into_iter().collect()
    });
    assert_eq!(partly.reason(), "ptp4l did not tell its Current data set over /var/run/ptp4l");
}

/// Each answer behind all its beginnings and all that differ from it in one byte; only the data that they carry may differ.
#[test]
fn nonsense_before_each_answer_is_survived() {
    let answers = recorded("slave.txt");
    let hostile = Fake::start(move |question| {
        let Some(answer) = answer(&answers, question) else { return vec![vec![0xff; 1500]] };
        let cut = (0..answer.len()).step_by(7).map(|length| answer[..length].to_vec());
        cut.chain([vec![0; 100], answer.clone()]).collect()
    });
    assert_eq!(hostile.ptp(), Fake::recorded("slave.txt").ptp());
}

#[test]
fn no_socket_and_a_dead_one_are_no_ptp4l() {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::at(folder.path());
    assert_eq!(look(&root), None);
    fs::create_dir_all(folder.path().join("var/run")).unwrap();
    drop(UnixDatagram::bind(folder.path().join(SOCKET)).unwrap());
    assert!(folder.path().join(SOCKET).exists());
    assert_eq!(look(&root), None);
}

#[test]
fn a_recorded_clock_is_known_by_name_alone() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| {
        let file: PathBuf = folder.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    put("sys/class/ptp/ptp0/clock_name", "igc\n");
    put("proc/812/comm", "phc2sys\n");
    let clocks = look(&Root::at(folder.path())).unwrap();
    assert_eq!((clocks.hardware[0].name.as_deref(), &clocks.hardware[0].ahead), (Some("igc"), &None));
    assert_eq!(clocks.programs, ["phc2sys"]);
    assert_eq!(clocks.unknown, ["/dev/ptp0 of a recorded machine cannot be read"]);
}

#[test]
fn the_recorded_answers_say_what_pmc_printed() {
    for (name, is_gptp) in [("slave.txt", false), ("master.txt", false), ("gptp.txt", true)] {
        for (about, bytes) in recorded(name) {
            let answer = Answer::read(&bytes).unwrap();
            assert_eq!((format!("{:?}", answer.about), answer.address), (about, Address { domain: 0, is_gptp }));
        }
    }
    let of_gptp = recorded("gptp.txt");
    let told = |at: usize| Answer::read(&of_gptp[at].1).unwrap().told;
    assert_eq!(told(1), Told::Current { steps: 1, offset_ns: 221, path_delay_ns: 0 });
    assert_eq!(told(4), Told::Port { number: 1, state: 8, peer_delay_ns: 1094 });
}

#[test]
fn a_cut_answer_is_none() {
    for (about, bytes) in recorded("slave.txt") {
        for length in 0..bytes.len() {
            assert_eq!(Answer::read(&bytes[..length]), None, "{about} of {length}");
        }
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << bit;
                let _ = Answer::read(&changed);
            }
        }
    }
}

/// The byte at each place of a question worked out by hand from the standard.
#[test]
fn a_question_is_laid_out_as_the_standard_says() {
    let question = Address { domain: 24, is_gptp: true }.question(DataSet::Parent);
    let mut expected = vec![0x1d, 2, 0, 54, 24];
    expected.resize(30, 0);
    expected.extend([0x20, 0x02, 4, 0x7f]);
    expected.extend([0xff; 10]);
    expected.extend([0, 0, 0, 0]);
    expected.extend([0, 1, 0, 2, 0x20, 0x02]);
    assert_eq!(question, expected);
}

#[test]
fn a_distance_is_rounded_away_from_zero_and_an_error_is_a_refusal() {
    let (_, mut bytes) = recorded("slave.txt").swap_remove(1);
    let with = |bytes: &mut Vec<u8>, scaled: i64| {
        bytes[56..64].copy_from_slice(&scaled.to_be_bytes());
        match Answer::read(bytes).unwrap().told {
            Told::Current { offset_ns, .. } => offset_ns,
            told => panic!("{told:?}"),
        }
    };
    assert_eq!((with(&mut bytes, 1), with(&mut bytes, -1), with(&mut bytes, -65536)), (1, -1, -1));
    assert_eq!(with(&mut bytes, i64::MIN), -(1 << 47));
    // An error status, which was recorded as an answer about a data set that this version does not know, for ours.
    bytes.truncate(48);
    bytes.extend([0, 2, 0, 8, 0, 2, 0x20, 0x01, 0, 0, 0, 0]);
    bytes[3] = 60;
    assert_eq!(Answer::read(&bytes).unwrap().told, Told::Refused);
}

/// Once it was 9 us away in between, and before and after 254 ns.
#[test]
fn the_worst_of_all_looks_of_a_run_is_kept() {
    let answers = recorded("slave.txt");
    let mut looks = 0;
    let fake = Fake::start(move |question| {
        let mut answer = answer(&answers, question);
        if question[ABOUT..ABOUT + 2] == [0x20, 0x01] {
            looks += 1;
            if let (3, Some(answer)) = (looks, &mut answer) {
                // IEEE 1588 15.5.3.4.1: steps of 2 bytes, and then the offset, ns times 65536.
                answer[ABOUT + 4..ABOUT + 12].copy_from_slice(&(9000_i64 << 16).to_be_bytes());
            }
        }
        answer.into_iter().collect()
    });
    let first = look(&fake.root()).unwrap();
    assert_eq!(first.ptp.as_ref().unwrap().offset_ns, 254);
    let watch = ClockWatch::start(&fake.root(), first, Duration::from_millis(10)).unwrap();
    thread::sleep(Duration::from_millis(200));
    let seen = watch.finish().unwrap();
    assert!(seen.looks > 3, "{seen:?}");
    assert_eq!((seen.ptp.as_ref().unwrap().offset_ns, seen.to_grandmaster().unwrap().error_ns), (9000, 9000));
}

#[test]
fn a_ptp4l_that_ends_during_a_run_is_told() {
    let fake = Fake::recorded("slave.txt");
    let watch = ClockWatch::start(&fake.root(), look(&fake.root()).unwrap(), Duration::from_secs(60)).unwrap();
    fs::remove_file(fake.folder.path().join(SOCKET)).unwrap();
    assert_eq!(watch.finish().unwrap().to_grandmaster().unwrap_err(), "ptp4l no longer answers");
}
