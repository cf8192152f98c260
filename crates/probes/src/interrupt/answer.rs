//! A line whose edges are the questions of an outside judge. The thread answers each at once on an output line.

use std::{io, os::fd::AsFd, sync::Arc};

use record::{Interrupts, Zero};
use sys::{
    clock::Clock,
    interrupt::gpio::{EVENTS_KEPT, Edge, Input, Output},
};

use super::{
    gpio::NotedEdge,
    source::{Found, Source, is_ready, ready},
};
use crate::probe_threads::Pacer;

/// Longest time that questions are answered after the end of the measurement, ns. The judge ends before: after its longest
/// period, or when its histogram is sent.
const AFTER_END_NS: i64 = 20_000_000_000;

/// The line of the questions: an input whose descriptor is ready when an edge has come.
pub trait QuestionLine: AsFd + Send {
    /// Reads the oldest edge.
    ///
    /// # Errors
    /// The error of the kernel, if the line is gone.
    fn read(&mut self) -> io::Result<Edge>;
}

/// The line of the answers.
pub trait AnswerLine: Send {
    /// Sets the line to active or inactive.
    ///
    /// # Errors
    /// The error of the kernel, if the line is gone.
    fn set(&self, active: bool) -> io::Result<()>;

    /// Makes a short pulse, so that the line is inactive before the next question, and each answer has both edges.
    ///
    /// # Errors
    /// The errors of [`set`](Self::set).
    #[inline]
    fn pulse(&self) -> io::Result<()> {
        self.set(true)?;
        self.set(false)
    }
}

impl QuestionLine for Input {
    #[inline]
    fn read(&mut self) -> io::Result<Edge> {
        Self::read(self)
    }
}

impl AnswerLine for Output {
    #[inline]
    fn set(&self, active: bool) -> io::Result<()> {
        Self::set(self, active)
    }
}

/// Answers the edges of a line of questions. All functions run on the measuring thread.
pub trait Answering: Send {
    /// As [`Source::waits_for_ever`], of [`answer_next`](Self::answer_next).
    fn waits_for_ever(&self) -> bool;

    /// Discards the edges from before the start, such as of the idle level of the judge.
    ///
    /// # Errors
    /// The error of the kernel.
    fn start(&mut self) -> io::Result<()>;

    /// Waits for a question, and answers it. Of several edges that wait, one answer is the answer of all.
    ///
    /// # Errors
    /// The error of the kernel, if a line is gone.
    fn answer_next(&mut self) -> io::Result<Option<NotedEdge>>;
}

/// A line of questions and the line of their answers, for a thread of Linux.
#[derive(Debug)]
pub struct InBandAnswers<Q, A> {
    question: Q,
    answer: A,
    /// Number of the last edge.
    last: u32,
    /// When the last answer began, ns on CLOCK_MONOTONIC.
    answered_ns: i64,
    /// True if another edge had come when the last answer had been given: it may be older than that answer.
    has_more: bool,
}

impl<Q: QuestionLine, A: AnswerLine> InBandAnswers<Q, A> {
    /// Answers the edges of `question` on `answer`, which is inactive.
    #[must_use]
    pub fn new(question: Q, answer: A) -> Self {
        Self { question, answer, last: 0, answered_ns: 0, has_more: false }
    }

    #[inline]
    fn give_answer(&mut self, woke_ns: i64) -> io::Result<()> {
        self.answered_ns = woke_ns;
        self.answer.pulse()
    }

    #[inline]
    fn note(&mut self, edge: Edge, woke_ns: i64) -> NotedEdge {
        let lost = u64::from(edge.number.wrapping_sub(self.last).saturating_sub(1));
        self.last = edge.number;
        NotedEdge { stamp_ns: edge.stamp_ns, woke_ns, lost, overrun: false }
    }
}

impl<Q: QuestionLine, A: AnswerLine> Answering for InBandAnswers<Q, A> {
    fn waits_for_ever(&self) -> bool {
        false
    }

    fn start(&mut self) -> io::Result<()> {
        for _ in 0..EVENTS_KEPT {
            if !is_ready(&self.question)? {
                break;
            }
            self.last = self.question.read()?.number;
        }
        Ok(())
    }

    #[inline]
    fn answer_next(&mut self) -> io::Result<Option<NotedEdge>> {
        if std::mem::take(&mut self.has_more) {
            let (woke_ns, edge) = (Clock::Monotonic.now_ns(), self.question.read()?);
            if edge.stamp_ns > self.answered_ns {
                self.give_answer(woke_ns)?;
            }
            self.has_more = is_ready(&self.question)?;
            return Ok(Some(self.note(edge, woke_ns)));
        }
        let Some(woke_ns) = ready(&self.question)? else { return Ok(None) };
        // The answer comes first: everything else takes time that the judge would measure.
        self.give_answer(woke_ns)?;
        let edge = self.question.read()?;
        self.has_more = is_ready(&self.question)?;
        Ok(Some(self.note(edge, woke_ns)))
    }
}

/// A line of questions that is answered.
pub struct AnsweredLine<L> {
    lines: L,
    /// The line of the questions in words.
    device: String,
    judge: Arc<judge::Switch>,
}

impl<L: Answering> AnsweredLine<L> {
    /// Answers the edges that `judge` makes.
    #[must_use]
    pub fn new(lines: L, device: String, judge: Arc<judge::Switch>) -> Self {
        Self { lines, device, judge }
    }

    /// The switch of the judge.
    pub(super) fn switch(&self) -> Arc<judge::Switch> {
        Arc::clone(&self.judge)
    }
}

impl<L: Answering> Source for AnsweredLine<L> {
    fn describe(&self) -> Interrupts {
        Interrupts { device: self.device.clone(), zero: Zero::Handler, resolution_ns: Some(1), ..Interrupts::default() }
    }

    fn keeps_each(&self) -> bool {
        true
    }

    fn waits_for_ever(&self) -> bool {
        self.lines.waits_for_ever()
    }

    fn start(&mut self) -> io::Result<Pacer> {
        self.lines.start()?;
        Ok(Pacer::Irregular)
    }

    #[inline]
    fn wait(&mut self) -> io::Result<Found> {
        match self.lines.answer_next()? {
            Some(edge) => Ok(Found::Interrupt(edge.interrupted())),
            // The judge ends only before the thread if it is gone.
            None if self.judge.is_over() => Err(io::ErrorKind::NotConnected.into()),
            None => Ok(Found::Nothing),
        }
    }

    fn finish(&mut self) -> Option<u64> {
        self.judge.end();
        let until_ns = Clock::Monotonic.now_ns() + AFTER_END_NS;
        let mut answered = 0;
        while !self.judge.is_over() && Clock::Monotonic.now_ns() < until_ns {
            match self.lines.answer_next() {
                Ok(edge) => answered += edge.map_or(0, |edge| 1 + edge.lost),
                // The judge counts the rest as missing.
                Err(_) => break,
            }
        }
        Some(answered)
    }
}

#[cfg(test)]
mod tests;
