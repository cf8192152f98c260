//! The stream probe: a talker that sends a frame of an AVB stream in each slot, and a listener that counts their
//! arrival.
//!
//! Slots are one period apart. The talker is a timer whose deadlines are some time before the slots: it wakes, spins
//! until its slot starts, and sends. **Send lateness** is the time from the start of the slot to the last reading of
//! the clock before sending.
//!
//! | module | contents |
//! |---|---|
//! | [`talker`] | the work at each deadline, and its counters |
//! | [`transmit`] | how frames are sent |
//! | [`reports`] | the kernel's timestamps of sent frames, and its reports of dropped ones |
//! | [`listener`] | the receiving thread |
//! | [`receive`] | how frames are received |
//! | [`tracker`] | the counting of received frames, without a socket |
//! | `search` | the choice of the stream to follow |
//! | `numbers` | detection of lost, duplicate and reordered frames by their numbers |
//! | [`observer`] | an ordinary thread that captures the frames with their timestamps |
//! | [`maap`] | claims and defends the destination addresses of a talker |
//! | [`remote`] | a talker on another machine, and its end |
//! | `identity` | addresses and ids as text |

mod identity;
pub mod listener;
pub mod maap;
mod numbers;
pub mod observer;
pub mod receive;
pub mod remote;
pub mod reports;
mod search;
pub mod talker;
pub mod tracker;
pub mod transmit;

use std::any::Any;

use record::{Caveat, Reason, Series, SeriesKind};

use crate::probe_threads::{Overdue, ProbeThreads, ThreadInfo, Work};
use listener::Listener;
use observer::Observer;
use talker::{Talk, Talker};
use transmit::Transmit;

/// One or both ends of a stream.
#[derive(Debug)]
pub struct Stream {
    /// The talkers, one for each timer.
    talkers: Vec<Talker>,
    /// The work of each timer, until the timer takes it.
    work: Vec<Option<Talk<Box<dyn Transmit>>>>,
    listener: Option<Listener>,
    observer: Option<Observer>,
    monitors: Vec<Box<dyn Monitor>>,
    _network: Box<dyn Any>,
}

impl Stream {
    /// Creates streams that this machine sends, receives, or both. Each timer has one talker. `network`, e.g. a pair of
    /// namespaces, is kept alive until the end.
    #[must_use]
    pub fn new(talkers: Vec<(Talker, Talk<Box<dyn Transmit>>)>, listener: Option<Listener>, network: impl Any) -> Self {
        let (talkers, work) = talkers.into_iter().map(|(talker, talk)| (talker, Some(talk))).unzip();
        Self { talkers, work, listener, observer: None, monitors: Vec::new(), _network: Box::new(network) }
    }

    /// Adds an observer that captures the stream.
    #[must_use]
    pub fn with_observer(self, observer: Option<Observer>) -> Self {
        Self { observer, ..self }
    }

    /// Adds monitors of conditions of the stream.
    #[must_use]
    pub fn with_monitors(self, monitors: Vec<Box<dyn Monitor>>) -> Self {
        Self { monitors, ..self }
    }
}

/// A monitor of a condition that the stream needs, such as a synchronised clock or an address of its own.
pub trait Monitor: std::fmt::Debug {
    /// Ends the monitor. Called once, at the end of the stream.
    fn finish(&mut self);

    /// Returns a caveat if the condition did not hold all the time.
    fn caveat(&self) -> Option<Caveat>;

    /// Returns the reason if the run is invalid without the condition.
    fn reason(&self) -> Option<Reason> {
        None
    }

    /// Adds the figures of the monitor to the record of the first talker; does nothing if there are none.
    fn add_to(&self, talker: &mut record::Talker);
}

impl ProbeThreads for Stream {
    fn work(&mut self, index: usize) -> Option<Box<dyn Work>> {
        self.work.get_mut(index)?.take().map(|talk| Box::new(talk) as Box<dyn Work>)
    }

    fn threads(&self) -> Vec<ThreadInfo<'_>> {
        self.listener.iter().map(Listener::thread_info).collect()
    }

    fn collect(&mut self) {
        self.talkers.iter_mut().for_each(Talker::collect);
        if let Some(listener) = &mut self.listener {
            listener.collect();
        }
    }

    fn awaits_first(&self) -> bool {
        self.listener.as_ref().is_some_and(Listener::awaits_first)
    }

    fn has_ended(&self) -> bool {
        // A talker ends with the timers, and then the listener ends too.
        !self.talkers.is_empty() || self.listener.as_ref().is_none_or(Listener::has_ended)
    }

    fn finish(&mut self) {
        let sent: Vec<_> = self.talkers.iter().flat_map(Talker::frames_of_each).collect();
        if let Some(listener) = &mut self.listener {
            listener.finish(&sent);
        }
        self.talkers.iter_mut().for_each(Talker::finish);
        if let Some(observer) = &mut self.observer {
            observer.finish();
        }
        self.monitors.iter_mut().for_each(|monitor| monitor.finish());
    }

    fn gone(&self) -> Option<String> {
        if self.talkers.is_empty() {
            return self.listener.as_ref()?.gone();
        }
        self.talkers.iter().find_map(Talker::gone)
    }

    fn count_overdue(&mut self, index: usize, overdue: Overdue) {
        if let Some(talker) = self.talkers.get_mut(index) {
            talker.overdue_slots = overdue.deadlines;
        }
    }

    fn add_to(&self, index: usize, series: &mut Series) {
        if let Some(talker) = self.talkers.get(index) {
            series.notes.extend(talker.notes());
            let mut recorded = talker.to_record();
            if index == 0 {
                self.monitors.iter().for_each(|monitor| monitor.add_to(&mut recorded));
            }
            series.kind = SeriesKind::Stream(record::Stream::Talker(Box::new(recorded)));
        }
    }

    fn series(&self, phase: &str) -> Vec<Series> {
        self.listener.iter().flat_map(|listener| listener.series(phase)).collect()
    }

    fn reasons(&self) -> Vec<Reason> {
        // A talker here sends with the listener's period.
        let alone = self.listener.iter().filter(|_| self.talkers.is_empty());
        let of_monitors = self.monitors.iter().filter_map(|monitor| monitor.reason());
        alone.flat_map(Listener::reasons).chain(of_monitors).collect()
    }

    fn caveats(&self) -> Vec<Caveat> {
        let of_monitor = self.monitors.iter().filter_map(|monitor| monitor.caveat());
        self.observer.iter().filter_map(Observer::caveat).chain(of_monitor).collect()
    }
}
