//! The lines of GPIO chips, for a thread of the EVL core. After their start, no function here makes a call of Linux.

use std::io;

use sys::{
    clock::Clock,
    evl::gpio::{EVENTS_KEPT, Input, Output},
};

use super::{
    answer::{AnswerLine, Answering},
    gpio::{LineEdges, NotedEdge},
    shared::check_clock,
};

/// Reads the stamps of an input line.
pub trait Stamps: Send {
    /// Reads the oldest stamp, ns on CLOCK_MONOTONIC; waits for one if there is none.
    ///
    /// # Errors
    /// EINTR if the wait was interrupted, or the error of the kernel.
    fn read(&mut self) -> io::Result<i64>;
}

impl Stamps for Input {
    #[inline]
    fn read(&mut self) -> io::Result<i64> {
        Self::read(self)
    }
}

/// The edges of a line, for a thread of the EVL core.
///
/// The kernel does not number them. Its queue was full if so many edges had come before the thread took the oldest one.
#[derive(Debug)]
pub struct OutOfBandEdges<I> {
    input: I,
    started_ns: i64,
    /// When the thread woke for each of the last edges, ns on CLOCK_MONOTONIC. The oldest one is at `next`.
    woke_ns: [i64; EVENTS_KEPT - 1],
    next: usize,
}

impl<I: Stamps> OutOfBandEdges<I> {
    /// The edges of this line.
    #[must_use]
    pub fn new(input: I) -> Self {
        Self { input, started_ns: 0, woke_ns: [i64::MIN; EVENTS_KEPT - 1], next: 0 }
    }

    /// Notes an edge. Returns true if the queue was full when the thread took the first one that waited in it.
    #[inline]
    fn note(&mut self, stamp_ns: i64, woke_ns: i64) -> bool {
        let oldest_ns = std::mem::replace(&mut self.woke_ns[self.next], woke_ns);
        self.next = (self.next + 1) % self.woke_ns.len();
        stamp_ns <= oldest_ns
    }
}

impl<I: Stamps> LineEdges for OutOfBandEdges<I> {
    fn start(&mut self) -> io::Result<()> {
        // Whether a driver supports reading without a wait is not known, so that old edges are recognised by their stamps.
        self.started_ns = Clock::Monotonic.now_ns();
        Ok(())
    }

    #[inline]
    fn next(&mut self) -> io::Result<Option<NotedEdge>> {
        let stamp_ns = match self.input.read() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(None),
            stamp_ns => stamp_ns?,
        };
        let woke_ns = Clock::Monotonic.now_ns();
        check_clock(stamp_ns, woke_ns)?;
        let overrun = self.note(stamp_ns, woke_ns);
        Ok((stamp_ns >= self.started_ns).then_some(NotedEdge { stamp_ns, woke_ns, lost: 0, overrun }))
    }
}

impl AnswerLine for Output {
    #[inline]
    fn set(&self, active: bool) -> io::Result<()> {
        Self::set(self, active)
    }
}

/// A line of questions and the line of their answers, for a thread of the EVL core.
#[derive(Debug)]
pub struct OutOfBandAnswers<I, A> {
    questions: OutOfBandEdges<I>,
    answer: A,
    /// When the last answer began, ns on CLOCK_MONOTONIC.
    answered_ns: i64,
}

impl<I: Stamps, A: AnswerLine> OutOfBandAnswers<I, A> {
    /// Answers the edges of `question` on `answer`, which is inactive.
    #[must_use]
    pub fn new(question: I, answer: A) -> Self {
        Self { questions: OutOfBandEdges::new(question), answer, answered_ns: i64::MIN }
    }
}

impl<I: Stamps, A: AnswerLine> Answering for OutOfBandAnswers<I, A> {
    fn waits_for_ever(&self) -> bool {
        true
    }

    fn start(&mut self) -> io::Result<()> {
        self.questions.start()
    }

    #[inline]
    fn answer_next(&mut self) -> io::Result<Option<NotedEdge>> {
        let Some(edge) = self.questions.next()? else { return Ok(None) };
        // Of several edges that waited, the first answer is that of all.
        if edge.stamp_ns > self.answered_ns {
            self.answered_ns = edge.woke_ns;
            self.answer.pulse()?;
        }
        Ok(Some(edge))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::VecDeque,
        sync::{Arc, Mutex},
    };

    use rustix::io::Errno;

    use super::*;

    /// A line whose stamps are known; an error without any.
    struct Known(VecDeque<i64>);

    impl Stamps for Known {
        fn read(&mut self) -> io::Result<i64> {
            self.0.pop_front().ok_or_else(|| Errno::INTR.into())
        }
    }

    fn edges(stamps_ns: impl IntoIterator<Item = i64>) -> OutOfBandEdges<Known> {
        OutOfBandEdges::new(Known(stamps_ns.into_iter().collect()))
    }

    #[test]
    fn edges_from_before_the_start_do_not_count() {
        let mut edges = edges([1]);
        edges.start().unwrap();
        let stamp_ns = Clock::Monotonic.now_ns();
        edges.input.0.push_back(stamp_ns);
        assert_eq!(edges.next().unwrap(), None);
        let edge = edges.next().unwrap().unwrap();
        assert_eq!((edge.stamp_ns, edge.lost, edge.overrun), (stamp_ns, 0, false));
        assert_eq!(edges.next().unwrap(), None, "interrupted");
    }

    #[test]
    fn a_stamp_of_another_clock_is_an_error() {
        let error = edges([i64::MAX]).next().unwrap_err();
        assert_eq!(Errno::from_io_error(&error), Some(crate::interrupt::shared::OTHER_CLOCK));
    }

    #[test]
    fn a_full_queue_is_noticed_from_the_stamps() {
        // The thread wakes at 100, and then every 10 ns, for `count` edges that came until then.
        let overruns = |count: i64| {
            let mut edges = edges([]);
            (0..count).filter(|number| edges.note(number + 1, 100 + 10 * number)).count()
        };
        let kept = i64::try_from(EVENTS_KEPT).unwrap();
        assert_eq!((overruns(kept - 1), overruns(kept)), (0, 1));
        // A thread that wakes for each edge, however many there are.
        let mut edges = edges([]);
        assert!((1..1000).all(|number| !edges.note(100 * number, 100 * number + 5)));
    }

    /// Its levels, in order.
    #[derive(Clone, Default)]
    struct Levels(Arc<Mutex<Vec<bool>>>);

    impl AnswerLine for Levels {
        fn set(&self, active: bool) -> io::Result<()> {
            self.0.lock().unwrap().push(active);
            Ok(())
        }
    }

    #[test]
    fn one_pulse_answers_all_edges_that_waited() {
        let (levels, now_ns) = (Levels::default(), Clock::Monotonic.now_ns());
        let mut line = OutOfBandAnswers::new(Known((0..3).map(|ns| now_ns + ns).collect()), levels.clone());
        while Clock::Monotonic.now_ns() < now_ns + 3 {}
        assert!((0..3).all(|_| line.answer_next().unwrap().is_some()));
        assert_eq!(*levels.0.lock().unwrap(), [true, false]);
        line.questions.input.0.push_back(Clock::Monotonic.now_ns());
        assert!(line.answer_next().unwrap().is_some());
        assert_eq!(*levels.0.lock().unwrap(), [true, false, true, false], "a question after the answer");
    }
}
