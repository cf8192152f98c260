//! The observer: an ordinary thread that captures the frames of a stream with the kernel's timestamps.
//!
//! It reads every few milliseconds instead of being woken by each frame, in order to disturb the measuring threads as
//! little as possible. Meanwhile frames wait in the socket's buffer.

use std::{
    fmt, io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::JoinHandle,
    time::Duration,
};

use frames::{
    ethernet::{TAG, VLAN},
    parse,
};
use record::Caveat;
use sys::{
    clock::Clock,
    packet::{FrameDrops, FrameReceiver, Poll, Received},
    sched,
};

use crate::timer::TimerError;

/// Time between two reads.
const READ_INTERVAL: Duration = Duration::from_millis(10);
/// Frames longer than this are truncated, bytes.
const MAX_BYTES: usize = 2048;
/// Offset of the VLAN tag in a frame, after the addresses.
const TAG_AT: usize = 12;
/// The highest priority of an ordinary thread: loads on every CPU must not keep the observer from its buffer.
const NICENESS: i32 = -20;

/// A destination for captured frames.
pub trait FrameSink: fmt::Debug + Send + 'static {
    /// Stores a frame that the kernel saw at `at_ns` since 1970, with a length on the wire of `length`.
    ///
    /// # Errors
    /// The error of the system; nothing more is stored then.
    fn store(&mut self, at_ns: u64, frame: &[u8], length: usize) -> io::Result<()>;

    /// Finishes the capture; `dropped` frames did not fit into the socket's buffer.
    ///
    /// # Errors
    /// The error of the system.
    fn end(&mut self, dropped: u64) -> io::Result<()>;
}

/// An observer with its thread.
#[derive(Debug)]
pub struct Observer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<()>>>,
    failure: Option<io::Error>,
}

impl Observer {
    /// Starts the thread, which stores all received frames of the streams with these ids from now on; frames of all
    /// streams if there are none.
    ///
    /// # Errors
    /// If no thread can be created.
    pub fn start(receiver: FrameReceiver, sink: impl FrameSink, stream_ids: Vec<u64>) -> Result<Self, TimerError> {
        let stop = Arc::new(AtomicBool::new(false));
        let drops = receiver.drops().map_err(TimerError::Spawn)?;
        let mut observer = ObserverLoop { receiver, drops, sink, stream_ids, stop: stop.clone() };
        let thread = std::thread::Builder::new()
            .name("observer".to_owned())
            .spawn(move || observer.run())
            .map_err(TimerError::Spawn)?;
        Ok(Self { stop, thread: Some(thread), failure: None })
    }

    /// Lets the thread store the remaining frames and end. Further calls do nothing.
    pub fn finish(&mut self) {
        self.stop.store(true, Relaxed);
        let Some(thread) = self.thread.take() else { return };
        self.failure = thread.join().unwrap_or_else(|_| Err(io::Error::other("its thread panicked"))).err();
    }

    /// Returns a caveat if the capture ended early.
    #[must_use]
    pub fn caveat(&self) -> Option<Caveat> {
        let why = self.failure.as_ref()?;
        let text = format!("the capture ended before the stream ({why}); its figures are for the frames until then");
        Some(Caveat { kind: "capture".to_owned(), text })
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.finish();
    }
}

struct ObserverLoop<K> {
    receiver: FrameReceiver,
    drops: FrameDrops,
    sink: K,
    stream_ids: Vec<u64>,
    stop: Arc<AtomicBool>,
}

impl<K: FrameSink> ObserverLoop<K> {
    fn run(&mut self) -> io::Result<()> {
        // Without the permission, it captures at normal priority.
        let _ = sched::set_niceness(NICENESS);
        let captured = self.observe();
        // The number of dropped frames is also stored if the capture is incomplete.
        let ended = self.sink.end(self.drops.dropped().unwrap_or_default());
        captured.and(ended)
    }

    fn observe(&mut self) -> io::Result<()> {
        let mut frame = [0; TAG + MAX_BYTES];
        loop {
            // Frames that are already queued are still stored before the end.
            let stopped = self.stop.load(Relaxed);
            while let Some(received) = self.receiver.receive(&mut frame[TAG..], Poll::Spin)? {
                self.store(&mut frame, &received)?;
            }
            if stopped {
                return Ok(());
            }
            std::thread::sleep(READ_INTERVAL);
        }
    }

    /// Stores a frame, which is preceded by space for its VLAN tag.
    fn store(&mut self, frame: &mut [u8; TAG + MAX_BYTES], received: &Received) -> io::Result<()> {
        let end = TAG + received.length.min(MAX_BYTES);
        let begin = match received.tci {
            // The kernel removed the tag from the frame.
            Some(tci) => {
                frame.copy_within(TAG..TAG + TAG_AT, 0);
                frame[TAG_AT..TAG_AT + 2].copy_from_slice(&VLAN.to_be_bytes());
                frame[TAG_AT + 2..TAG_AT + TAG].copy_from_slice(&tci.to_be_bytes());
                0
            }
            None => TAG,
        };
        let (frame, length) = (&frame[begin..end], received.length + TAG - begin);
        let stream_id = || parse(frame)?.avtp.map(|avtp| avtp.stream_id);
        if !self.stream_ids.is_empty() && !stream_id().is_some_and(|id| self.stream_ids.contains(&id)) {
            return Ok(());
        }
        // The kernel stamps every frame after it was asked to; earlier ones have arrived by now.
        let at_ns = received.stamp_ns.unwrap_or_else(|| Clock::Realtime.now_ns());
        self.sink.store(at_ns.max(0).cast_unsigned(), frame, length)
    }
}
