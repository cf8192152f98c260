//! One end of the connection: sends and receives lines, and detects whether the other end is alive.

use std::{
    io::{self, BufRead, Read, Write},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
        mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender, TrySendError},
    },
    thread,
    time::{Duration, Instant},
};

use crate::protocol::{Message, line, parse};

/// Interval of keep-alive messages. It is long because the connection may share the measured network.
const ALIVE_INTERVAL: Duration = Duration::from_secs(5);
/// After this time without a message, the other end is considered lost.
const ALIVE_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest line, bytes. The results of a far end, its longest message, take at most a few MB.
const LINE_MAX: u64 = 8 << 20;
/// Longest line before the first message, the greeting, bytes.
const GREETING_MAX: u64 = 256 << 10;
/// Messages that may wait. Each end answers requests, so more than a few were not asked for.
const QUEUE_MAX: usize = 64;
/// Length of the messages that may wait, bytes.
const QUEUE_BYTES_MAX: usize = 8 << 20;

/// One end of the connection. It receives messages of type `In`.
#[derive(Debug)]
pub struct Channel<In> {
    /// Messages, each with its length.
    received: Receiver<(In, usize)>,
    shared: Arc<Shared>,
    /// Dropping it ends the keep-alive thread.
    _pulse: Sender<()>,
}

/// State shared by the channel's threads and its user.
struct Shared {
    out: Mutex<Option<Box<dyn Write + Send>>>,
    last: Mutex<Instant>,
    lost: Mutex<Option<String>>,
    /// Length of the messages that wait, bytes.
    waiting_bytes: AtomicUsize,
    on_lost: Box<dyn Fn() + Send + Sync>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("lost", &self.lost).finish_non_exhaustive()
    }
}

impl<In: Message> Channel<In> {
    /// Starts the threads. `on_lost` is called once, when the other end is lost or sends invalid messages.
    ///
    /// # Errors
    /// If a thread cannot be created.
    pub fn open<Out: Message>(
        input: impl BufRead + Send + 'static,
        output: impl Write + Send + 'static,
        on_lost: impl Fn() + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            out: Mutex::new(Some(Box::new(output))),
            last: Mutex::new(Instant::now()),
            lost: Mutex::new(None),
            waiting_bytes: AtomicUsize::new(0),
            on_lost: Box::new(on_lost),
        });
        let (sender, received) = mpsc::sync_channel(QUEUE_MAX);
        let (pulse, stop) = mpsc::channel();
        let spawn = |name: &str, run: Box<dyn FnOnce() + Send>| {
            thread::Builder::new().name(name.to_owned()).stack_size(256 << 10).spawn(run)
        };
        let for_reader = Arc::clone(&shared);
        spawn("receive", Box::new(move || for_reader.receive(input, &sender)))?;
        let for_pulse = Arc::clone(&shared);
        spawn("keep-alive", Box::new(move || for_pulse.send_alive::<Out>(&stop)))?;
        Ok(Self { received, shared, _pulse: pulse })
    }

    /// Sends a message. If the other end is lost, [`receive`](Self::receive) reports it.
    pub fn send<Out: Message>(&self, message: &Out) {
        self.shared.write(&line(message));
    }

    /// The next message; `None` if none arrives within `timeout`.
    ///
    /// # Errors
    /// The reason why no more messages will arrive.
    pub fn receive(&self, timeout: Duration) -> Result<Option<In>, String> {
        match self.received.recv_timeout(timeout) {
            Ok((message, length)) => {
                self.shared.waiting_bytes.fetch_sub(length, Relaxed);
                Ok(Some(message))
            }
            Err(RecvTimeoutError::Timeout) => self.shared.why_lost().map_or(Ok(None), Err),
            Err(RecvTimeoutError::Disconnected) => {
                Err(self.shared.why_lost().unwrap_or_else(|| "the connection ended".to_owned()))
            }
        }
    }

    /// Closes the output, so that the other end sees the end of the connection.
    pub fn close(&self) {
        drop(lock(&self.shared.out).take());
    }
}

impl Shared {
    fn write(&self, line: &[u8]) {
        if let Some(out) = lock(&self.out).as_mut() {
            // Write errors are ignored, because the reading thread detects a lost connection.
            let _ = out.write_all(line).and_then(|()| out.flush());
        }
    }

    fn receive<In: Message>(&self, mut input: impl BufRead, sender: &SyncSender<(In, usize)>) {
        let mut line = Vec::new();
        let mut line_max = GREETING_MAX;
        loop {
            line.clear();
            match (&mut input).take(line_max).read_until(b'\n', &mut line) {
                Ok(0) => return self.lose("the connection ended"),
                Ok(_) if line.len() as u64 == line_max => {
                    return self.lose(&format!("it sent a line of more than {} KiB", line_max >> 10));
                }
                Ok(_) => {}
                Err(error) => return self.lose(&format!("the connection failed: {error}")),
            }
            *lock(&self.last) = Instant::now();
            match parse::<In>(&line) {
                Ok(Some(message)) if message.is_alive() => {}
                Ok(Some(message)) => {
                    line_max = LINE_MAX;
                    let waiting = self.waiting_bytes.fetch_add(line.len(), Relaxed) + line.len();
                    match sender.try_send((message, line.len())) {
                        Ok(()) if waiting <= QUEUE_BYTES_MAX => {}
                        // The user of a channel may be gone.
                        Err(TrySendError::Disconnected(_)) => {}
                        Ok(()) | Err(TrySendError::Full(_)) => {
                            return self.lose("it sent many unrequested messages");
                        }
                    }
                }
                Ok(None) => {}
                Err(error) => return self.lose(&format!("it sent an invalid message ({error})")),
            }
        }
    }

    fn send_alive<Out: Message>(&self, stop: &Receiver<()>) {
        while stop.recv_timeout(ALIVE_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            self.write(&line(&Out::alive()));
            if lock(&self.last).elapsed() > ALIVE_TIMEOUT {
                return self.lose(&format!("no message for {} s", ALIVE_TIMEOUT.as_secs()));
            }
        }
    }

    /// Records the reason and calls `on_lost`, once.
    fn lose(&self, why: &str) {
        let first = lock(&self.lost).replace(why.to_owned()).is_none();
        if first {
            (self.on_lost)();
        }
    }

    fn why_lost(&self) -> Option<String> {
        lock(&self.lost).clone()
    }
}

/// Ignores poisoning: each value is written in one step, so a panicked thread cannot leave it inconsistent.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::{
        io::BufReader,
        sync::atomic::{AtomicU32, Ordering::SeqCst},
    };

    use super::*;
    use crate::protocol::{ToFar, ToNear};

    const TIMEOUT: Duration = Duration::from_secs(10);

    #[test]
    fn delivers_messages_until_closed() {
        let (near_in, far_out) = io::pipe().unwrap();
        let (far_in, near_out) = io::pipe().unwrap();
        let lost = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&lost);
        let near: Channel<ToNear> = Channel::open::<ToFar>(BufReader::new(near_in), near_out, || {}).unwrap();
        let on_lost = move || {
            count.fetch_add(1, SeqCst);
        };
        let far: Channel<ToFar> = Channel::open::<ToNear>(BufReader::new(far_in), far_out, on_lost).unwrap();
        near.send(&ToFar::Clock);
        near.send(&ToFar::Alive);
        near.send(&ToFar::End { sent: Vec::new() });
        assert_eq!(far.receive(TIMEOUT), Ok(Some(ToFar::Clock)));
        assert_eq!(far.receive(TIMEOUT), Ok(Some(ToFar::End { sent: Vec::new() })));
        far.send(&ToNear::Clock(7));
        assert_eq!(near.receive(TIMEOUT), Ok(Some(ToNear::Clock(7))));
        assert_eq!(near.receive(Duration::from_millis(1)), Ok(None));
        assert_eq!(lost.load(SeqCst), 0);
        near.close();
        assert_eq!(far.receive(TIMEOUT), Err("the connection ended".to_owned()));
        assert_eq!(lost.load(SeqCst), 1);
    }

    #[test]
    fn ignores_shell_output_and_rejects_invalid_messages() {
        let open = |text: &'static str| -> Channel<ToNear> {
            Channel::open::<ToFar>(text.as_bytes(), io::sink(), || {}).unwrap()
        };
        assert_eq!(open("Welcome!\n\n{\"clock\":3}\n").receive(TIMEOUT), Ok(Some(ToNear::Clock(3))));
        let error = open("{\"clock\":\"noon\"}\n").receive(TIMEOUT).unwrap_err();
        assert!(error.starts_with("it sent an invalid message"), "{error}");
    }

    #[test]
    fn an_endless_line_and_endless_messages_end_the_connection() {
        let lost = |input: Box<dyn BufRead + Send>| {
            let (sender, ended) = mpsc::channel();
            let on_lost = move || sender.send(()).unwrap();
            let channel: Channel<ToNear> = Channel::open::<ToFar>(input, io::sink(), on_lost).unwrap();
            ended.recv_timeout(Duration::from_secs(60)).unwrap();
            channel.shared.why_lost().unwrap()
        };
        let zeroes = BufReader::new(io::repeat(0));
        assert_eq!(lost(Box::new(zeroes)), "it sent a line of more than 256 KiB");
        let greeted = BufReader::new(io::Cursor::new("{\"clock\":3}\n").chain(io::repeat(0)));
        assert_eq!(lost(Box::new(greeted)), "it sent a line of more than 8192 KiB");
        let clocks = io::Cursor::new("{\"clock\":3}\n".repeat(1000));
        assert_eq!(lost(Box::new(clocks)), "it sent many unrequested messages");
        let failed = format!("{{\"failed\":\"{}\"}}\n", "x".repeat(3 << 20));
        let long = io::Cursor::new(format!("{{\"clock\":3}}\n{}", failed.repeat(3)));
        assert_eq!(lost(Box::new(long)), "it sent many unrequested messages");
    }
}
