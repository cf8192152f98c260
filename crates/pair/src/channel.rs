//! One end of the connection: lines out, lines in, and whether the other end is still there.

use std::{
    io::{self, BufRead, Read, Write},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use crate::protocol::{Says, line, parse};

/// How often each end says that it is there: seldom, since the connection may go over the network that is measured.
const ALIVE_EVERY: Duration = Duration::from_secs(5);
/// Silence for so long is that of a machine, or a network, that is no more.
const SILENCE: Duration = Duration::from_secs(30);
/// Longest line, bytes.
const LINE_MAX: u64 = 256 << 20;

/// One end of the connection, which hears `In`.
#[derive(Debug)]
pub struct Channel<In> {
    heard: Receiver<In>,
    shared: Arc<Shared>,
    /// Dropped, it ends the thread that says that this end is there.
    _pulse: Sender<()>,
}

/// What both threads and the user of a channel share.
struct Shared {
    out: Mutex<Option<Box<dyn Write + Send>>>,
    last: Mutex<Instant>,
    lost: Mutex<Option<String>>,
    on_lost: Box<dyn Fn() + Send + Sync>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("lost", &self.lost).finish_non_exhaustive()
    }
}

impl<In: Says> Channel<In> {
    /// Reads and writes from now on. `on_lost` is called once, when the other end is gone or cannot be understood.
    ///
    /// # Errors
    /// When no thread can be made.
    pub fn open<Out: Says>(
        input: impl BufRead + Send + 'static,
        output: impl Write + Send + 'static,
        on_lost: impl Fn() + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            out: Mutex::new(Some(Box::new(output))),
            last: Mutex::new(Instant::now()),
            lost: Mutex::new(None),
            on_lost: Box::new(on_lost),
        });
        let (tell, heard) = mpsc::channel();
        let (pulse, stop) = mpsc::channel();
        let spawn = |name: &str, run: Box<dyn FnOnce() + Send>| {
            thread::Builder::new().name(name.to_owned()).stack_size(256 << 10).spawn(run)
        };
        let of_reader = Arc::clone(&shared);
        spawn("hear", Box::new(move || of_reader.hear(input, &tell)))?;
        let of_pulse = Arc::clone(&shared);
        spawn("pulse", Box::new(move || of_pulse.pulse::<Out>(&stop)))?;
        Ok(Self { heard, shared, _pulse: pulse })
    }

    /// Says something. An end that is gone is told by [`hear`](Self::hear).
    pub fn say<Out: Says>(&self, said: &Out) {
        self.shared.write(&line(said));
    }

    /// The next that the other end says; `None` where it said nothing for `patience`.
    ///
    /// # Errors
    /// Why it will say nothing any more.
    pub fn hear(&self, patience: Duration) -> Result<Option<In>, String> {
        match self.heard.recv_timeout(patience) {
            Ok(said) => Ok(Some(said)),
            Err(RecvTimeoutError::Timeout) => self.shared.why_lost().map_or(Ok(None), Err),
            Err(RecvTimeoutError::Disconnected) => {
                Err(self.shared.why_lost().unwrap_or_else(|| "the connection ended".to_owned()))
            }
        }
    }

    /// Closes what this end writes: the other end hears the end of it.
    pub fn close(&self) {
        drop(lock(&self.shared.out).take());
    }
}

impl Shared {
    fn write(&self, line: &[u8]) {
        if let Some(out) = lock(&self.out).as_mut() {
            // A reader that is gone shows on the other way, too.
            let _ = out.write_all(line).and_then(|()| out.flush());
        }
    }

    fn hear<In: Says>(&self, mut input: impl BufRead, tell: &Sender<In>) {
        let mut line = Vec::new();
        loop {
            line.clear();
            match (&mut input).take(LINE_MAX).read_until(b'\n', &mut line) {
                Ok(0) => return self.lose("the connection ended"),
                Ok(_) => {}
                Err(error) => return self.lose(&format!("the connection failed: {error}")),
            }
            *lock(&self.last) = Instant::now();
            match parse::<In>(&line) {
                Ok(Some(said)) if said.is_alive() => {}
                Ok(Some(said)) => drop(tell.send(said)),
                Ok(None) => {}
                Err(error) => return self.lose(&format!("it said what this version does not understand ({error})")),
            }
        }
    }

    fn pulse<Out: Says>(&self, stop: &Receiver<()>) {
        while stop.recv_timeout(ALIVE_EVERY) == Err(RecvTimeoutError::Timeout) {
            self.write(&line(&Out::alive()));
            if lock(&self.last).elapsed() > SILENCE {
                return self.lose(&format!("not a word for {} s", SILENCE.as_secs()));
            }
        }
    }

    /// Says once that the other end is gone.
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

/// What a thread that panicked left is whole: each is written at once.
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

    const PATIENCE: Duration = Duration::from_secs(10);

    #[test]
    fn what_one_says_the_other_hears_until_it_closes() {
        let (near_in, far_out) = io::pipe().unwrap();
        let (far_in, near_out) = io::pipe().unwrap();
        let lost = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&lost);
        let near: Channel<ToNear> = Channel::open::<ToFar>(BufReader::new(near_in), near_out, || {}).unwrap();
        let on_lost = move || {
            count.fetch_add(1, SeqCst);
        };
        let far: Channel<ToFar> = Channel::open::<ToNear>(BufReader::new(far_in), far_out, on_lost).unwrap();
        near.say(&ToFar::Clock);
        near.say(&ToFar::Alive);
        near.say(&ToFar::End { sent: None });
        assert_eq!(far.hear(PATIENCE), Ok(Some(ToFar::Clock)));
        assert_eq!(far.hear(PATIENCE), Ok(Some(ToFar::End { sent: None })));
        far.say(&ToNear::Clock(7));
        assert_eq!(near.hear(PATIENCE), Ok(Some(ToNear::Clock(7))));
        assert_eq!(near.hear(Duration::from_millis(1)), Ok(None));
        assert_eq!(lost.load(SeqCst), 0);
        near.close();
        assert_eq!(far.hear(PATIENCE), Err("the connection ended".to_owned()));
        assert_eq!(lost.load(SeqCst), 1);
    }

    #[test]
    fn noise_is_passed_over_and_another_version_is_not() {
        let open = |text: &'static str| -> Channel<ToNear> {
            Channel::open::<ToFar>(text.as_bytes(), io::sink(), || {}).unwrap()
        };
        assert_eq!(open("Welcome!\n\n{\"clock\":3}\n").hear(PATIENCE), Ok(Some(ToNear::Clock(3))));
        let error = open("{\"clock\":\"noon\"}\n").hear(PATIENCE).unwrap_err();
        assert!(error.starts_with("it said what this version does not understand"), "{error}");
    }
}
