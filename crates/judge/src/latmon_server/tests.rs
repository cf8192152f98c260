use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use super::*;
use crate::{
    latmon::Message,
    latmon_client::LatmonClient,
    simulated::{Outcome, SimulatedBoard},
};

/// A server with a judge of software, and its events.
struct Serving {
    address: SocketAddr,
    shall_end: Arc<AtomicBool>,
    events: Arc<Mutex<Vec<Event>>>,
    thread: Option<std::thread::JoinHandle<Result<(), JudgeError>>>,
    _board: SimulatedBoard,
}

impl Serving {
    fn start(ask: impl FnMut(u32) -> Outcome + Send + 'static) -> Self {
        let simulated = SimulatedBoard::start(ask).unwrap();
        let board = Board::open(simulated.path(), 115_200, simulated.path()).unwrap();
        let mut server = LatmonServer::bind("127.0.0.1:0".parse().unwrap(), board).unwrap();
        let address = server.address().unwrap();
        let shall_end = Arc::new(AtomicBool::new(false));
        let events = Arc::new(Mutex::new(Vec::new()));
        let (ends, reported) = (Arc::clone(&shall_end), Arc::clone(&events));
        let serve = move || server.serve(&|| ends.load(Relaxed), &mut |event| reported.lock().unwrap().push(event));
        Self { address, shall_end, events, thread: Some(std::thread::spawn(serve)), _board: simulated }
    }

    fn client(&self) -> LatmonClient {
        LatmonClient::connect("127.0.0.1", self.address.port(), "latmon").unwrap()
    }

    fn end(self) -> Vec<Event> {
        let (result, events) = self.finish();
        result.unwrap();
        events
    }

    fn finish(mut self) -> (Result<(), JudgeError>, Vec<Event>) {
        self.shall_end.store(true, Relaxed);
        let result = self.thread.take().unwrap().join().unwrap();
        let events = self.events.lock().unwrap();
        (result, events.clone())
    }

    /// Waits until an event of this kind.
    fn wait_for(&self, is_it: impl Fn(&Event) -> bool) -> Event {
        let latest = Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(event) = self.events.lock().unwrap().iter().find(|event| is_it(event)) {
                return event.clone();
            }
            assert!(Instant::now() < latest, "{:?}", self.events);
            std::thread::sleep(CHECK);
        }
    }
}

/// The messages up to the first that `is_last`.
fn messages(client: &mut LatmonClient, is_last: impl Fn(&Message) -> bool) -> Vec<Message> {
    let (mut all, latest) = (Vec::new(), Instant::now() + Duration::from_secs(20));
    while !all.iter().any(&is_last) {
        assert!(Instant::now() < latest, "{all:?}");
        all.extend(client.messages(CHECK).unwrap());
    }
    all
}

#[test]
fn our_client_gets_the_answers_of_our_server_exactly() {
    let outcomes = [Outcome::Answer(5_000), Outcome::Miss, Outcome::Answer(5_001), Outcome::Answer(1_000)];
    let mut outcomes = outcomes.into_iter().chain([Outcome::LostAnswer(1), Outcome::Answer(150_000)]);
    let serving = Serving::start(move |_| outcomes.next().unwrap_or(Outcome::Pause));
    let mut client = serving.client();
    client.start(Request { period_us: 1000, cells: 100 }).unwrap();
    let mut all = messages(&mut client, |message| matches!(message, Message::Bulk(bulk) if bulk.samples > 0));
    client.stop().unwrap();
    all.extend(messages(&mut client, |message| matches!(message, Message::Cells(_))));
    let bulks = all.iter().filter_map(|message| match message {
        Message::Bulk(bulk) => Some(bulk),
        Message::Cells(_) | Message::Contradiction(_) => None,
    });
    let (samples, sum_ns, overruns) = bulks.fold((0, 0, 0), |(samples, sum_ns, overruns), bulk| {
        (samples + bulk.samples, sum_ns + bulk.sum_ns, overruns + bulk.overruns)
    });
    assert_eq!((samples, sum_ns), (4, 40_000 + 40_008 + 8_000 + 1_200_000));
    assert_eq!(overruns, 3, "a miss, a lost result, and an answer after more than a period");
    let Some(Message::Cells(cells)) = all.last() else { panic!("{all:?}") };
    let filled: Vec<(usize, u64)> = cells.iter().copied().enumerate().filter(|(_, count)| *count > 0).collect();
    assert_eq!(filled, [(8, 1), (40, 2), (99, 1)]);
    drop(client);
    let events = serving.end();
    let ended = Totals { answered: 4, missed: 1, lost: 1, spurious: 0, clamped: 1, max_ns: 1_200_000 };
    assert!(
        events.contains(&Event::Ended(ended)) && events.contains(&Event::Started { period_us: 1000 }),
        "{events:?}"
    );
}

#[test]
fn one_client_follows_another_and_a_wrong_request_is_refused() {
    let serving = Serving::start(Outcome::Answer);
    let mut wrong = serving.client();
    wrong.start(Request { period_us: 10, cells: 100 }).unwrap();
    let closed = wrong.messages(Duration::from_secs(10)).unwrap_err().to_string();
    assert!(closed.contains("closed the connection"), "{closed}");
    // A client that disconnects during its run leaves the judge for the next one.
    for _ in 0..2 {
        let mut client = serving.client();
        client.start(Request { period_us: 1000, cells: 0 }).unwrap();
        let all = messages(&mut client, |message| matches!(message, Message::Bulk(_)));
        assert!(matches!(all[0], Message::Bulk(Bulk { min_ns: 8, overruns: 0, .. })), "{all:?}");
    }
    let events = serving.end();
    let refused =
        events.iter().any(|event| matches!(event, Event::Refused(text) if text.contains("a period of 10 us")));
    assert!(refused, "{events:?}");
}

#[test]
fn a_client_that_disconnects_gets_its_totals_printed() {
    let serving = Serving::start(|question| if question > 20 { Outcome::Pause } else { Outcome::Miss });
    let mut client = serving.client();
    client.start(Request { period_us: 1000, cells: 100 }).unwrap();
    // No bulk comes without an answer.
    std::thread::sleep(Duration::from_millis(500));
    drop(client);
    let ended = serving.wait_for(|event| matches!(event, Event::Ended(_)));
    assert_eq!(ended, Event::Ended(Totals { missed: 20, ..Totals::default() }));
    serving.end();
}

#[test]
fn contradictions_end_the_server() {
    for (lie, expected) in [
        (Outcome::Repeat(7), "sent a frame with an earlier number"),
        (Outcome::LateAfter(7), "sent a late answer after 56 ns"),
        (Outcome::NoTotals, "sent totals that contradict its results"),
    ] {
        let serving = Serving::start(move |question| match question {
            1..=5 => Outcome::Answer(7),
            6 => lie,
            _ => Outcome::Pause,
        });
        let mut client = serving.client();
        client.start(Request { period_us: 1000, cells: 100 }).unwrap();
        std::thread::sleep(Duration::from_millis(500));
        drop(client);
        serving.wait_for(|event| matches!(event, Event::Ended(_)));
        let (result, _) = serving.finish();
        let error = result.unwrap_err().to_string();
        assert!(error.starts_with("the judge at /dev/pts/") && error.contains(expected), "{error}");
    }
}
