//! The observer: an ordinary thread that keeps the frames of a stream with the kernel's stamps.
//!
//! It looks every few milliseconds instead of being woken by each frame, so that the threads that measure are disturbed as
//! little as can be; meanwhile frames wait in the socket's buffer.

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

/// How often it looks.
const EVERY: Duration = Duration::from_millis(10);
/// Longest frame that is kept whole, bytes; of a longer one its begin.
const LONGEST: usize = 2048;
/// Where the VLAN tag stands in a frame, behind the addresses.
const TAG_AT: usize = 12;
/// The most favoured: loads on every CPU must not keep the observer from its buffer.
const NICENESS: i32 = -20;

/// What frames are kept in.
pub trait Keep: fmt::Debug + Send + 'static {
    /// Keeps a frame that the kernel saw at `at_ns` since 1970: its bytes, of `length` on the wire.
    ///
    /// # Errors
    /// What the system said; nothing more is kept then.
    fn keep(&mut self, at_ns: u64, frame: &[u8], length: usize) -> io::Result<()>;

    /// Ends it; `dropped` frames found no room in the socket's buffer.
    ///
    /// # Errors
    /// What the system said.
    fn end(&mut self, dropped: u64) -> io::Result<()>;
}

/// An observer, with its thread.
#[derive(Debug)]
pub struct Observer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<()>>>,
    failure: Option<io::Error>,
}

impl Observer {
    /// Makes the thread, which keeps from now on what the receiver gets of the stream `stream_id`; of all where it is not
    /// known.
    ///
    /// # Errors
    /// When no thread can be made.
    pub fn start(receiver: FrameReceiver, keep: impl Keep, stream_id: Option<u64>) -> Result<Self, TimerError> {
        let stop = Arc::new(AtomicBool::new(false));
        let drops = receiver.drops().map_err(TimerError::Spawn)?;
        let mut observing = Observing { receiver, drops, keep, stream_id, stop: stop.clone() };
        let thread = std::thread::Builder::new()
            .name("observer".to_owned())
            .spawn(move || observing.run())
            .map_err(TimerError::Spawn)?;
        Ok(Self { stop, thread: Some(thread), failure: None })
    }

    /// Has the thread keep what waits, and end. Afterwards there is nothing to do.
    pub fn finish(&mut self) {
        self.stop.store(true, Relaxed);
        let Some(thread) = self.thread.take() else { return };
        self.failure = thread.join().unwrap_or_else(|_| Err(io::Error::other("its thread broke off"))).err();
    }

    /// What there is to say of a capture that could not be kept to its end.
    #[must_use]
    pub fn caveat(&self) -> Option<Caveat> {
        let why = self.failure.as_ref()?;
        let text =
            format!("the capture ended before the stream, because: {why}; what it tells is of the frames before");
        Some(Caveat { kind: "capture".to_owned(), text })
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.finish();
    }
}

struct Observing<K> {
    receiver: FrameReceiver,
    drops: FrameDrops,
    keep: K,
    stream_id: Option<u64>,
    stop: Arc<AtomicBool>,
}

impl<K: Keep> Observing<K> {
    fn run(&mut self) -> io::Result<()> {
        // Where the right is missing it does what it can.
        let _ = sched::set_niceness(NICENESS);
        let kept = self.observe();
        // What was dropped is told of a file that is not whole, too.
        let ended = self.keep.end(self.drops.dropped().unwrap_or_default());
        kept.and(ended)
    }

    fn observe(&mut self) -> io::Result<()> {
        let mut frame = [0; TAG + LONGEST];
        loop {
            // What waits when it is to end is kept all the same.
            let stopped = self.stop.load(Relaxed);
            while let Some(received) = self.receiver.receive(&mut frame[TAG..], Poll::Spin)? {
                self.take_in(&mut frame, &received)?;
            }
            if stopped {
                return Ok(());
            }
            std::thread::sleep(EVERY);
        }
    }

    /// Keeps a frame that lies behind room for its VLAN tag.
    fn take_in(&mut self, frame: &mut [u8; TAG + LONGEST], received: &Received) -> io::Result<()> {
        let end = TAG + received.length.min(LONGEST);
        let begin = match received.tci {
            // The kernel took it out.
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
        if self.stream_id.is_some_and(|wanted| stream_id() != Some(wanted)) {
            return Ok(());
        }
        // The kernel stamps every frame once it was asked to; those that were under way before have come now.
        let at_ns = received.stamp_ns.unwrap_or_else(|| Clock::Realtime.now_ns());
        self.keep.keep(at_ns.max(0) as u64, frame, length)
    }
}
