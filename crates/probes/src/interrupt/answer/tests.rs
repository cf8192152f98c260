//! The measuring thread with lines of software, and a judge of software at a pseudo terminal.

use std::{
    io::{Read, Write},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixStream,
    },
    time::{Duration, Instant},
};

use judge::{
    Lines, Session, SessionSettings,
    simulated::{Outcome, SimulatedBoard},
};
use record::Series;
use sys::{clock::Wait, sched::Policy};

use super::*;
use crate::{
    guard::Heartbeat,
    interrupt::{Interrupt, Settings},
    probe_threads::ProbeThreads,
    timer::{self, Core, Fraction, Timer},
};

const PERIOD_NS: u64 = 2_000_000;

/// An input line: each edge is 12 bytes of a socket.
struct TestInput(UnixStream);

impl AsFd for TestInput {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl QuestionLine for TestInput {
    fn read(&mut self) -> io::Result<Edge> {
        let (mut stamp, mut number) = ([0; 8], [0; 4]);
        self.0.read_exact(&mut stamp)?;
        self.0.read_exact(&mut number)?;
        Ok(Edge { stamp_ns: i64::from_ne_bytes(stamp), number: u32::from_ne_bytes(number) })
    }
}

/// An output line: each level is a byte of a socket.
struct TestOutput(UnixStream);

impl AnswerLine for TestOutput {
    fn set(&self, active: bool) -> io::Result<()> {
        (&self.0).write_all(&[active.into()])
    }
}

/// The other ends of both lines.
struct TestBoard {
    question: UnixStream,
    answer: UnixStream,
    number: u32,
}

impl TestBoard {
    fn edge(&mut self, stamp_ns: i64) {
        self.number += 1;
        let edge = [&stamp_ns.to_ne_bytes()[..], &self.number.to_ne_bytes()].concat();
        self.question.write_all(&edge).unwrap();
    }

    /// Waits until the line becomes active; false if it does not for a long time.
    fn is_answered(&mut self) -> bool {
        loop {
            // The end of the answer before may come separately.
            match self.levels(Duration::from_secs(10)) {
                levels if levels.contains(&1) => return true,
                levels if levels.is_empty() => return false,
                _ => {}
            }
        }
    }

    /// The levels that came within `timeout`.
    fn levels(&mut self, timeout: Duration) -> Vec<u8> {
        let mut levels = [0; 64];
        self.answer.set_read_timeout(Some(timeout)).unwrap();
        let received = self.answer.read(&mut levels).unwrap_or(0);
        levels[..received].to_vec()
    }
}

fn lines() -> (TestInput, TestOutput, TestBoard) {
    let (question, input) = UnixStream::pair().unwrap();
    let (answer, output) = UnixStream::pair().unwrap();
    (TestInput(input), TestOutput(output), TestBoard { question, answer, number: 0 })
}

#[test]
fn an_answer_comes_first_and_is_one_pulse() {
    let (input, output, mut board) = lines();
    let mut line = AnsweredLine::new(InBandAnswers::new(input, output), "line".to_owned(), Arc::default());
    board.edge(1);
    line.start().unwrap();
    board.edge(Clock::Monotonic.now_ns());
    let Found::Interrupt(interrupted) = line.wait().unwrap() else { panic!("no interrupt") };
    assert_eq!((interrupted.lost, board.levels(Duration::from_secs(1))), (0, vec![1, 0]));
    // Three edges before the thread woke are one question for the judge: the last one.
    let now_ns = Clock::Monotonic.now_ns();
    (0..3).for_each(|ns| board.edge(now_ns + ns));
    let all: Vec<Found> = (0..4).map(|_| line.wait().unwrap()).collect();
    let count = all.iter().filter(|found| matches!(found, Found::Interrupt(_))).count();
    assert_eq!((count, all[3], board.levels(Duration::from_secs(1))), (3, Found::Nothing, vec![1, 0]));
}

#[test]
fn edges_that_come_after_an_answer_are_answered_again() {
    let (input, output, mut board) = lines();
    let mut line = AnsweredLine::new(InBandAnswers::new(input, output), "line".to_owned(), Arc::default());
    board.edge(Clock::Monotonic.now_ns());
    // A question that is asked while the first one is being answered.
    board.edge(i64::MAX);
    let all: Vec<Found> = (0..2).map(|_| line.wait().unwrap()).collect();
    assert!(all.iter().all(|found| matches!(found, Found::Interrupt(_))));
    assert_eq!(board.levels(Duration::from_secs(1)), [1, 0, 1, 0]);
}

#[test]
fn questions_after_the_end_are_answered_and_counted() {
    let (input, output, mut board) = lines();
    let judge = Arc::new(judge::Switch::default());
    let mut line = AnsweredLine::new(InBandAnswers::new(input, output), "line".to_owned(), Arc::clone(&judge));
    (0..3).for_each(|_| board.edge(Clock::Monotonic.now_ns()));
    let asked = std::thread::spawn(move || {
        let is_answered = board.is_answered();
        std::thread::sleep(Duration::from_millis(100));
        judge.set_over();
        is_answered
    });
    assert_eq!(line.finish(), Some(3));
    assert!(asked.join().unwrap());
}

#[test]
fn a_judge_that_contradicts_itself_is_the_only_reason() {
    let (interrupt, _) = measure(|_, _| Outcome::LateAfter(7), 1_000_000);
    let reasons = interrupt.reasons();
    assert!(
        matches!(&reasons[..], [reason] if reason.id == "judge.protocol"),
        "not that no interrupt came: {reasons:?}"
    );
}

/// Lets the judge of software ask `questions` times, and measures.
fn measure(
    mut outcome: impl FnMut(u32, &mut TestBoard) -> Outcome + Send + 'static,
    questions: u64,
) -> (Interrupt, Vec<Series>) {
    let (input, output, mut board) = lines();
    let simulated = SimulatedBoard::start(move |question| match u64::from(question) > questions {
        true => Outcome::Pause,
        false => outcome(question, &mut board),
    });
    let simulated = simulated.unwrap();
    let settings = SessionSettings {
        address: simulated.path().parse().unwrap(),
        period_ns: PERIOD_NS,
        cpu: None,
        lines: Lines::default(),
    };
    let session = Session::open(settings).unwrap();
    let source = AnsweredLine::new(InBandAnswers::new(input, output), "line".to_owned(), session.switch());
    let settings =
        Settings { name: "gpio:gpiochip0/1".to_owned(), if_silent: "connect it".to_owned(), period_ns: PERIOD_NS };
    let mut interrupt = Interrupt::with_judge(source, settings, Some(session));
    let settings = timer::Settings {
        role: "interrupt".to_owned(),
        has_own_role: true,
        cpu: None,
        policy: Policy::Other,
        clock: Clock::Monotonic,
        wait: Wait::Nanosleep,
        core: Core::Linux,
        period_ns: PERIOD_NS,
        fraction: Fraction::default(),
        samples: None,
        threshold_ns: i64::MAX,
        spikes_kept: 3,
        stop_on: None,
        spin: None,
    };
    let mut timer = Timer::prepare_with(interrupt.work(0), &settings, Heartbeat::start().unwrap()).unwrap();
    timer.start(Clock::Monotonic.now_ns(), i64::MAX / 2);
    let latest = Instant::now() + Duration::from_secs(30);
    let is_done = |interrupt: &Interrupt| {
        let series = interrupt.series("rest");
        let responses = series[0].kind.responses().unwrap();
        responses.questions >= questions || interrupt.gone().is_some()
    };
    while !is_done(&interrupt) {
        assert!(Instant::now() < latest, "{:?}", interrupt.series("rest")[0].kind);
        std::thread::sleep(Duration::from_millis(5));
        timer.collect();
    }
    timer.stop();
    timer.wait_for_end(Duration::from_secs(10));
    interrupt.finish();
    timer.collect();
    let mut series = timer.series("rest");
    interrupt.add_to(0, &mut series);
    let of_judge = interrupt.series("rest");
    (interrupt, [vec![series], of_judge].concat())
}

#[test]
fn the_judge_gets_an_answer_to_each_question_and_its_times_come_out_exactly() {
    // The judge of software says how long an answer took if there was one; it asks no question each fifth time.
    let ask = |question: u32, board: &mut TestBoard| {
        if question.is_multiple_of(5) {
            return Outcome::Miss;
        }
        board.edge(Clock::Monotonic.now_ns());
        if board.is_answered() { Outcome::Answer(1000 + question % 3) } else { Outcome::Miss }
    };
    let (interrupt, series) = measure(ask, 50);
    let responses = series[1].kind.responses().unwrap();
    assert_eq!((responses.questions, responses.answered, responses.missed), (50, 40, 10));
    let count_of = |rest| (1..=50).filter(|question| question % 5 != 0 && question % 3 == rest).count() as u64;
    assert_eq!(responses.exact, [(8000, count_of(0)), (8008, count_of(1)), (8016, count_of(2))]);
    assert_eq!((series[1].samples, series[1].max_ns, responses.complete), (40, Some(8016), true));
    // The thread's own series has the way from the stamp to the thread, of each edge.
    let interrupts = series[0].kind.interrupts().unwrap();
    assert_eq!((series[0].samples, interrupts.lost, interrupts.zero), (40, 0, Zero::Handler));
    assert_eq!(interrupts.after_end, Some(0));
    assert!(interrupt.reasons().is_empty() && interrupt.gone().is_none(), "{:?}", interrupt.reasons());
}

#[test]
fn a_judge_that_is_unplugged_ends_the_run() {
    let ask = |question: u32, board: &mut TestBoard| {
        board.edge(Clock::Monotonic.now_ns());
        assert!(board.is_answered());
        if question > 20 { Outcome::Unplug } else { Outcome::Answer(7) }
    };
    let (interrupt, series) = measure(ask, 1_000_000);
    let gone = interrupt.gone().unwrap();
    assert!(gone.starts_with("the judge at /dev/pts/") && gone.contains("is gone: "), "{gone}");
    assert_eq!(series[1].samples, 20, "the results before that are kept");
}
