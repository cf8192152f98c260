//! The threads that answer: one for each connection that has asked, and one that waits for the next.
//!
//! So loading a model keeps no meters waiting, nor does who has stalled, for as long as it likes. A connection's answers go out in
//! the order of its questions anyway, so more threads would only wait for one another.

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

use tiny_http::Request;

use super::{Desk, Page};

/// Threads that stay when there is nothing to answer.
const STAY: usize = 3;

/// The threads, and what they share.
pub struct Crew {
    page: Page,
    desk: Arc<dyn Desk>,
    work: Mutex<Work>,
}

#[derive(Default)]
struct Work {
    /// Threads that wait for a request.
    free: usize,
    /// The connections that are being answered, and what else they have asked meanwhile.
    asked: HashMap<Option<SocketAddr>, VecDeque<Request>>,
}

impl Crew {
    pub fn new(page: Page, desk: Arc<dyn Desk>) -> Arc<Self> {
        Arc::new(Self { page, desk, work: Mutex::default() })
    }

    /// Begins with one thread more.
    ///
    /// # Errors
    /// When the system has no room for it.
    pub fn begin(self: &Arc<Self>) -> io::Result<()> {
        self.work().free += 1;
        let own = self.clone();
        let begun = thread::Builder::new().name("page".to_owned()).spawn(move || own.run());
        if begun.is_err() {
            self.work().free -= 1;
        }
        begun.map(drop)
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(self: &Arc<Self>) {
        loop {
            let Ok(request) = self.page.server.recv() else { continue };
            let connection = request.remote_addr().copied();
            let was_last = {
                let mut work = self.work();
                match work.asked.entry(connection) {
                    Entry::Occupied(mut asked) => {
                        asked.get_mut().push_back(request);
                        continue;
                    }
                    Entry::Vacant(asked) => asked.insert(VecDeque::from([request])),
                };
                work.free -= 1;
                work.free == 0
            };
            if was_last {
                // Where there is no room for another, this one waits again after its answer.
                let _ = self.begin();
            }
            if !self.answer(connection) {
                return;
            }
        }
    }

    /// Answers all that a connection has asked; says whether this thread is to stay.
    fn answer(&self, connection: Option<SocketAddr>) -> bool {
        loop {
            let mut work = self.work();
            let Some(request) = work.asked.get_mut(&connection).and_then(VecDeque::pop_front) else {
                work.asked.remove(&connection);
                let stays = work.free < STAY;
                work.free += usize::from(stays);
                return stays;
            };
            drop(work);
            self.page.answer(request, &*self.desk);
        }
    }
}
