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
//! | [`launch`] | sending frames with launch times |
//! | [`listener`] | the receiving thread |
//! | [`receive`] | how frames are received |
//! | [`tracker`] | the counting of received frames, without a socket |
//! | `numbers` | detection of lost, duplicate and reordered frames by their numbers |
//! | [`observer`] | an ordinary thread that captures the frames with their timestamps |
//! | [`remote`] | a talker on another machine, and its end |
//! | `identity` | addresses and ids as text |

mod identity;
pub mod launch;
pub mod listener;
mod numbers;
pub mod observer;
pub mod receive;
pub mod remote;
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
    talker: Option<Talker>,
    talk: Option<Talk<Box<dyn Transmit>>>,
    listener: Option<Listener>,
    observer: Option<Observer>,
    monitor: Option<Box<dyn Monitor>>,
    _network: Box<dyn Any>,
}

impl Stream {
    /// Creates a stream that this machine sends, receives, or both. `network`, e.g. a pair of namespaces, is kept alive
    /// until the end.
    #[must_use]
    pub fn new(
        talker: Option<(Talker, Talk<Box<dyn Transmit>>)>,
        listener: Option<Listener>,
        network: impl Any,
    ) -> Self {
        let (talker, talk) = talker.unzip();
        Self { talker, talk, listener, observer: None, monitor: None, _network: Box::new(network) }
    }

    /// Adds an observer that captures the stream.
    #[must_use]
    pub fn with_observer(self, observer: Option<Observer>) -> Self {
        Self { observer, ..self }
    }

    /// Adds a monitor of a condition of the stream.
    #[must_use]
    pub fn with_monitor(self, monitor: Option<Box<dyn Monitor>>) -> Self {
        Self { monitor, ..self }
    }
}

/// A monitor of a condition that the stream needs, such as a synchronised clock.
pub trait Monitor: std::fmt::Debug {
    /// Ends the monitor. Called once, at the end of the stream.
    fn finish(&mut self);

    /// Returns a caveat if the condition did not hold all the time.
    fn caveat(&self) -> Option<Caveat>;
}

impl ProbeThreads for Stream {
    fn work(&mut self, _index: usize) -> Option<Box<dyn Work>> {
        self.talk.take().map(|talk| Box::new(talk) as Box<dyn Work>)
    }

    fn threads(&self) -> Vec<ThreadInfo<'_>> {
        self.listener.iter().map(Listener::thread_info).collect()
    }

    fn collect(&mut self) {
        if let Some(talker) = &mut self.talker {
            talker.collect();
        }
        if let Some(listener) = &mut self.listener {
            listener.collect();
        }
    }

    fn has_ended(&self) -> bool {
        // A talker ends with the timers, and then the listener ends too.
        self.talker.is_some() || self.listener.as_ref().is_none_or(Listener::has_ended)
    }

    fn finish(&mut self) {
        let sent = self.talker.as_ref().map(Talker::frames_of_each).unwrap_or_default();
        if let Some(listener) = &mut self.listener {
            listener.finish(&sent);
        }
        if let Some(observer) = &mut self.observer {
            observer.finish();
        }
        if let Some(monitor) = &mut self.monitor {
            monitor.finish();
        }
    }

    fn gone(&self) -> Option<String> {
        self.talker.as_ref().map_or_else(|| self.listener.as_ref()?.gone(), Talker::gone)
    }

    fn count_overdue(&mut self, _index: usize, overdue: Overdue) {
        if let Some(talker) = &mut self.talker {
            talker.overdue_slots = overdue.deadlines;
        }
    }

    fn add_to(&self, _index: usize, series: &mut Series) {
        if let Some(talker) = &self.talker {
            series.notes.extend(talker.notes());
            series.kind = SeriesKind::Stream(record::Stream::Talker(Box::new(talker.to_record())));
        }
    }

    fn series(&self, phase: &str) -> Vec<Series> {
        self.listener.iter().map(|listener| listener.series(phase)).collect()
    }

    fn reasons(&self) -> Vec<Reason> {
        Vec::new()
    }

    fn caveats(&self) -> Vec<Caveat> {
        let of_monitor = self.monitor.iter().filter_map(|monitor| monitor.caveat());
        self.observer.iter().filter_map(Observer::caveat).chain(of_monitor).collect()
    }
}
