use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use super::*;
use crate::{
    latmon::{Bulk, encode_cells},
    simulated::{Outcome, SimulatedBoard},
};

const PERIOD_NS: u64 = 1_000_000;

fn open(address: &str) -> Result<Session, JudgeError> {
    let lines = Lines { question: "line 17".to_owned(), answer: "line 27".to_owned() };
    Session::open(SessionSettings { address: address.parse().unwrap(), period_ns: PERIOD_NS, cpu: None, lines })
}

/// Lets the judge ask until `is_done`, and ends it.
fn run(session: &mut Session, is_done: impl Fn(&Responses) -> bool) -> Series {
    let switch = session.switch();
    switch.begin();
    let latest = Instant::now() + Duration::from_secs(20);
    while !switch.is_over() && !is_done(session.series("").kind.responses().unwrap()) {
        assert!(Instant::now() < latest, "{:?}", session.series("").kind);
        std::thread::sleep(Duration::from_millis(5));
    }
    session.finish();
    session.series("rest")
}

/// A judge with these outcomes, which then asks nothing more.
fn board(outcomes: Vec<Outcome>) -> SimulatedBoard {
    let mut outcomes = outcomes.into_iter();
    SimulatedBoard::start(move |_| outcomes.next().unwrap_or(Outcome::Pause)).unwrap()
}

#[test]
fn answers_and_misses_of_a_serial_line_come_out_exactly() {
    use Outcome::{Answer, AnswerAndSpurious, Damaged, LostAnswer, LostMiss, Miss};
    let board = board(vec![
        Answer(7),
        Miss,
        AnswerAndSpurious(12_501),
        LostAnswer(3),
        LostMiss,
        Damaged(7),
        Answer(130_000),
        Miss,
        Answer(9),
    ]);
    let mut session = open(board.path()).unwrap();
    let series = run(&mut session, |responses| responses.answered + responses.missed + responses.without_time >= 9);
    let responses = series.kind.responses().unwrap();
    assert_eq!(session.lost(), None);
    assert_eq!(responses.exact, [(56, 2), (72, 1), (100_008, 1), (1_040_000, 1)]);
    assert_eq!((responses.questions, responses.answered, responses.missed), (9, 6, 3));
    assert_eq!((responses.late, responses.spurious, responses.without_time), (1, 1, 1));
    assert_eq!((responses.damaged_bytes, responses.complete), (4, true));
    assert_eq!((series.samples, series.min_ns, series.max_ns), (5, Some(56), Some(1_040_000)));
    assert_eq!((responses.resolution_ns, responses.random_ns), (8, 125_000));
    assert!(session.reasons().is_empty());
    let caveats = session.caveats();
    let lost = "lost on the serial line of the judge: 1 result; use a longer --period, or a faster line";
    assert!(caveats.iter().any(|caveat| caveat.text == lost), "{caveats:?}");
}

#[test]
fn a_line_can_be_used_again_after_a_run() {
    let board = SimulatedBoard::start(Outcome::Answer).unwrap();
    for _ in 0..2 {
        let mut session = open(board.path()).unwrap();
        let series = run(&mut session, |responses| responses.answered > 20);
        assert_eq!((session.lost(), series.min_ns), (None, Some(8)));
    }
    // A program that is killed leaves its run.
    let mut left = Board::open(board.path(), 115_200, "judge").unwrap();
    let settings = Settings::with_period(PERIOD_NS, Level::High).unwrap();
    left.configure(&settings).unwrap();
    left.start(&settings).unwrap();
    drop(left);
    let mut session = open(board.path()).unwrap();
    let series = run(&mut session, |responses| responses.answered > 20);
    assert_eq!((session.lost(), series.min_ns), (None, Some(8)), "no result of the other run");
}

#[test]
fn no_answer_at_all_makes_a_run_invalid() {
    let board = SimulatedBoard::start(|_| Outcome::Miss).unwrap();
    let mut session = open(board.path()).unwrap();
    let series = run(&mut session, |responses| responses.missed >= 10);
    let [reason] = &session.reasons()[..] else { panic!("{:?}", session.reasons()) };
    assert_eq!((series.samples, reason.id.as_str()), (0, "judge.no_answer"));
    assert!(reason.text.contains("questions reached the judge /dev/pts/"), "{}", reason.text);
    assert!(reason.remedy.contains("line 17") && reason.remedy.contains("line 27"), "{}", reason.remedy);
}

#[test]
fn a_judge_that_is_unplugged_keeps_what_it_measured() {
    // A terminal that loses its other end drops what the program has not read yet: unplug when it has read everything.
    let has_read = Arc::new(AtomicBool::new(false));
    let may_unplug = Arc::clone(&has_read);
    let board = SimulatedBoard::start(move |question| match question {
        1..=5 => Outcome::Answer(1),
        _ if may_unplug.load(Relaxed) => Outcome::Unplug,
        _ => Outcome::Pause,
    })
    .unwrap();
    let mut session = open(board.path()).unwrap();
    let switch = session.switch();
    let series = run(&mut session, |responses| {
        has_read.store(responses.answered == 5, Relaxed);
        false
    });
    let lost = session.lost().unwrap();
    assert!(switch.is_over() && lost.contains("is gone: "), "{lost}");
    let responses = series.kind.responses().unwrap();
    assert_eq!((series.samples, responses.answered, responses.complete), (5, 5, false));
}

#[test]
fn errors_name_the_judge_and_a_remedy() {
    let error = |address: &str| open(address).map(drop).unwrap_err().to_string();
    let missing = error("/dev/ttyNONE7");
    assert!(
        missing.starts_with("cannot open the judge at /dev/ttyNONE7: No such file") && missing.contains("/dev/ttyUSB*")
    );
    assert!(error("/dev/null").starts_with("cannot set /dev/null to 1000000 bit/s: "), "{}", error("/dev/null"));
    let board = SimulatedBoard::start(|_| Outcome::Pause).unwrap();
    let _first = open(board.path()).unwrap();
    let busy = error(board.path());
    assert!(
        busy.contains("busy") && busy.ends_with("end the program that uses the line, such as a terminal"),
        "{busy}"
    );
    // A port without a listener.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let refused = error(&port.to_string());
    assert!(refused.starts_with(&format!("cannot reach latmon at {port}: Connection refused")), "{refused}");
}

/// A latmon of software: expects a request, sends messages, expects a stop, sends more.
fn latmon(before: Vec<u8>, after: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 8];
        stream.read_exact(&mut request).unwrap();
        assert_eq!(request, [0, 0, 3, 232, 0, 0, 3, 232], "1000 us, 1000 cells");
        stream.write_all(&before).unwrap();
        stream.read_exact(&mut request).unwrap();
        assert_eq!(request, [0; 8]);
        stream.write_all(&after).unwrap();
        let _ = stream.read(&mut request);
    });
    address
}

fn bulk(samples: u32, time_ns: u32, overruns: u32) -> Bulk {
    Bulk { sum_ns: u64::from(samples) * u64::from(time_ns), min_ns: time_ns, max_ns: time_ns, overruns, samples }
}

#[test]
fn answers_and_overruns_of_latmon_come_out_exactly() {
    let before = [bulk(500, 41_500, 0).encode(), bulk(398, 50_001, 2).encode()].concat();
    let mut cells = vec![0; 1000];
    (cells[41], cells[50]) = (500, 398);
    let after = [&bulk(0, 0, 1).encode()[..], &encode_cells(&cells)].concat();
    let mut session = open(&latmon(before, after)).unwrap();
    let series = run(&mut session, |responses| responses.answered >= 898);
    let responses = series.kind.responses().unwrap();
    assert_eq!(session.lost(), None);
    // All came at once: there was no time to wait for an answer.
    let overruns = (responses.missed, responses.possibly_missed, responses.overruns);
    assert_eq!((responses.answered, overruns), (898, (0, 3, Some(3))));
    assert_eq!((series.samples, series.min_ns, series.max_ns), (898, Some(41_500), Some(50_001)));
    assert_eq!(responses.cells.iter().sum::<u64>(), 898);
    assert!(responses.complete && responses.resolution_ns == 1000 && session.reasons().is_empty());
    let flaw = "latmon counted 3 overruns: none of them is known to be a question without an answer";
    let caveats = session.caveats();
    assert!(caveats.iter().any(|caveat| caveat.text == flaw), "{caveats:?}");
}

#[test]
fn a_message_that_cannot_be_right_is_not_in_the_record() {
    let before = [bulk(500, 41_500, 0).encode(), bulk(398, 50_001, u32::MAX).encode()].concat();
    let mut session = open(&latmon(before, Vec::new())).unwrap();
    let series = run(&mut session, |_| false);
    let responses = series.kind.responses().unwrap();
    assert_eq!((responses.answered, responses.questions, responses.overruns), (500, 500, Some(0)));
    assert_eq!(session.reasons()[0].id, "judge.protocol");
}

#[test]
fn overruns_without_missing_answers_are_not_said_to_be_missing() {
    for (overruns, missed, expected) in [
        (36, 0, "latmon counted 36 overruns: none of them is known to be a question without an answer"),
        (1, 1, "latmon counted 1 overrun: 1 question had no answer, and is missing from its histogram"),
    ] {
        assert_eq!(overruns_in_words(overruns, missed), expected);
    }
}

#[test]
fn a_connection_that_is_lost_keeps_the_times_of_latmon() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let serve = move || -> TcpStream {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 8]).unwrap();
        stream.write_all(&bulk(1000, 41_500, 0).encode()).unwrap();
        stream
    };
    let server = std::thread::spawn(serve);
    let mut session = open(&address).unwrap();
    session.switch().begin();
    drop(server.join().unwrap());
    let series = run(&mut session, |_| false);
    let responses = series.kind.responses().unwrap();
    assert_eq!((responses.answered, series.max_ns, series.samples), (1000, Some(41_500), 0), "there is no histogram");
    assert!(!responses.complete && session.lost().unwrap().contains("closed the connection"), "{:?}", session.lost());
}

/// The reason of a run with this latmon, which sends a bulk of 500 answers first.
fn reason_after(first: Bulk, after: Vec<u8>) -> (String, String) {
    let mut session = open(&latmon(first.encode().to_vec(), after)).unwrap();
    run(&mut session, |responses| responses.answered > 0);
    let reasons = session.reasons();
    let [reason] = &reasons[..] else { panic!("{reasons:?} {:?}", session.lost()) };
    (reason.id.clone(), reason.text.clone())
}

#[test]
fn a_histogram_that_contradicts_the_statistics_makes_a_run_invalid() {
    let with = |cells: &[(usize, u32)]| {
        let mut all = vec![0; 1000];
        cells.iter().for_each(|&(cell, count)| all[cell] = count);
        [&bulk(0, 0, 0).encode()[..], &encode_cells(&all)].concat()
    };
    for cells in [&[][..], &[(41, 5000)], &[(91, 500)], &[(41, 499)], &[(41, 500), (5, u32::MAX)]] {
        let (id, text) = reason_after(bulk(500, 41_500, 0), with(cells));
        assert!(id == "judge.protocol" && text.contains("sent a histogram that contradicts its statistics"), "{text}");
    }
}

#[test]
fn more_answers_than_periods_make_a_run_invalid() {
    for first in [bulk(500_000, 41_500, 0), bulk(500, 41_500, u32::MAX)] {
        let (id, text) = reason_after(first, Vec::new());
        assert!(id == "judge.protocol" && text.contains("but a question takes 1,000 us or more"), "{text}");
    }
}

#[test]
fn a_judge_that_contradicts_itself_makes_a_run_invalid() {
    for lie in [Outcome::Repeat(7), Outcome::LateAfter(7), Outcome::NoTotals] {
        let board = board(vec![Outcome::Answer(7), Outcome::Answer(7), lie, Outcome::Answer(7)]);
        let mut session = open(board.path()).unwrap();
        run(&mut session, |responses| responses.answered >= 4);
        let reasons = session.reasons();
        assert!(matches!(&reasons[..], [reason] if reason.id == "judge.protocol"), "{lie:?}: {reasons:?}");
    }
}
