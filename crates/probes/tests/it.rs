//! Whole probes. An allocation in a measuring loop aborts this test binary.

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use probes::{
    ReceiveWait,
    guard::Heartbeat,
    noise::Spin,
    probe_threads::{Wake, Work},
    stream::{
        listener::{Listener, ListenerSettings},
        receive::{DropCounter, Dropped, Receive},
        talker::{Talker, TalkerSettings},
        tracker::Expected,
        transmit::{Transmit, TransmitMode},
    },
    timer::{Core, End, Fraction, Settings, Timer},
};
use record::ClockTie;
use sys::{
    alloc_guard::AllocGuard,
    clock::{Clock, Wait},
    counter::Counter,
    packet::{Poll, Received},
    sched::Policy,
};

#[global_allocator]
static GUARD: AllocGuard = AllocGuard;

fn settings() -> Settings {
    Settings {
        role: "timer".to_owned(),
        has_own_role: false,
        cpu: None,
        policy: Policy::Other,
        clock: Clock::Monotonic,
        wait: Wait::Nanosleep,
        core: Core::Linux,
        period_ns: 200_000,
        fraction: Fraction::default(),
        samples: None,
        threshold_ns: 1_000,
        spikes_kept: record::SPIKES_KEPT,
        stop_on: None,
        spin: None,
    }
}

/// Runs a probe to its end and returns its series.
fn measure(settings: &Settings, duration_ns: i64) -> (record::Series, Option<End>) {
    let heartbeat = Heartbeat::start().expect("a thread");
    let mut timer = Timer::prepare(settings, heartbeat).expect("a thread on this clock");
    let first_ns = settings.clock.now_ns() + 1_000_000;
    timer.start(first_ns, first_ns + duration_ns);
    while !timer.has_ended() {
        std::thread::sleep(Duration::from_millis(5));
        timer.collect();
    }
    timer.collect();
    (timer.series("test"), timer.end())
}

#[test]
fn every_deadline_is_met_or_counted_as_missed() {
    for wait in [Wait::Nanosleep, Wait::Timerfd] {
        let (series, end) = measure(&Settings { wait, ..settings() }, 1_500_000_000);
        assert_eq!(end, Some(End::Planned));
        // Deadlines 0 to 7500; those missed by the last wake-up may be after the end.
        let overrun = series.max_ns.unwrap().cast_unsigned() / series.period_ns;
        assert!(
            (7501..=7501 + overrun).contains(&(series.samples + series.missed)),
            "{} + {}",
            series.samples,
            series.missed
        );
        assert_eq!(series.corrected.total(), series.samples + series.missed);
        assert_eq!(series.raw.total(), series.samples);
        assert_eq!(series.early, 0);
        assert!(series.spikes_total > 0 && series.spikes.len() <= record::SPIKES_KEPT);
        assert_eq!(series.spikes.iter().map(|spike| spike.lateness_ns).max(), series.max_ns);
        assert!(series.maxima.max_ns[0] <= series.max_ns);
        assert!(series.mean_ns.unwrap() >= series.min_ns.unwrap() as f64);
    }
}

#[test]
fn the_run_ends_after_the_number_of_samples() {
    let (series, _) = measure(&Settings { samples: Some(100), ..settings() }, i64::MAX / 2);
    assert_eq!(series.samples, 100);
}

#[test]
fn a_spinning_thread_counts_its_gaps() {
    for (counter, period_ns, runtime_ns) in
        [(Counter::Clock, 50_000_000, 30_000_000), (Counter::Cycles, 10_000_000, 10_000_000)]
    {
        let spin = Some(Spin::new(counter, runtime_ns));
        let settings = Settings { role: "noise".to_owned(), period_ns, spin, ..settings() };
        let (series, end) = measure(&settings, 300_000_000);
        assert_eq!(end, Some(End::Planned));
        let noise = series.kind.noise().unwrap();
        assert!(noise.lost_ns <= noise.observed_ns && noise.iterations > 1000, "{noise:?}");
        // The thread spins up to 0.1 ms longer than the runtime, plus the gap at the end.
        let most_ns = 300_000_000 / period_ns * (runtime_ns + 1_000_000);
        assert!((1..=most_ns).contains(&(noise.observed_ns - noise.lost_ns)), "{noise:?}");
        assert!(noise.threshold_ns >= 3 * series.floor_ns, "{noise:?}");
        assert_eq!((series.samples, series.spikes_total), (series.raw.total(), series.raw.total()));
        assert_eq!((series.missed, series.early, series.jitter_ns), (0, 0, 0));
        assert_eq!(series.corrected, series.raw);
        assert!(series.min_ns.is_none_or(|min_ns| min_ns > noise.threshold_ns.cast_signed()));
        assert_eq!(series.maxima.max_ns.iter().flatten().max().copied(), series.max_ns);
        // Buckets have 3 digits, and the floor comes from other readings than the gaps.
        let sum_ns: i64 = series.raw.iter().map(|(ns, count)| ns * count.cast_signed()).sum();
        let lost_ns = noise.lost_ns + series.samples * series.floor_ns;
        assert!(
            sum_ns.unsigned_abs().abs_diff(lost_ns) <= lost_ns / 500 + series.samples * series.floor_ns,
            "{sum_ns} {lost_ns}"
        );
    }
}

/// Sends each wake-up to the test. The channel is bounded, so that sending does not allocate.
struct Forward(std::sync::mpsc::SyncSender<Wake>);

impl Work for Forward {
    fn at(&mut self, wake: Wake) {
        let _ = self.0.try_send(wake);
    }
}

#[test]
fn work_runs_once_for_each_wake_up() {
    let (sender, receiver) = std::sync::mpsc::sync_channel(1000);
    let settings = Settings { samples: Some(500), ..settings() };
    let heartbeat = Heartbeat::start().expect("a thread");
    let mut timer = Timer::prepare_with(Some(Box::new(Forward(sender))), &settings, heartbeat).expect("a thread");
    timer.start(settings.clock.now_ns() + 1_000_000, i64::MAX / 2);
    let wakes: Vec<Wake> = receiver.iter().collect();
    timer.wait_for_end(Duration::from_secs(5));
    timer.collect();
    let series = timer.series("test");
    assert_eq!((wakes.len() as u64, series.samples), (500, 500));
    assert_eq!(
        wakes.last().map(|wake| wake.slot - 499),
        Some(series.missed - missed_by_last(&wakes, series.period_ns))
    );
    for wake in &wakes {
        assert_eq!(wake.deadline_ns, timer.first_deadline_ns() + (wake.slot * series.period_ns).cast_signed());
    }
    assert_eq!(wakes.iter().map(|wake| wake.woke_ns - wake.deadline_ns).max(), series.max_ns);
}

/// Deadlines that the last wake-up missed. No later wake-up counts them.
fn missed_by_last(wakes: &[Wake], period_ns: u64) -> u64 {
    wakes.last().map_or(0, |wake| (wake.woke_ns - wake.deadline_ns).max(0).cast_unsigned() / period_ns)
}

#[test]
fn a_clock_without_timerfd_is_refused() {
    let settings = Settings { clock: Clock::Tai, wait: Wait::Timerfd, ..settings() };
    let error = Timer::prepare(&settings, Heartbeat::start().expect("a thread")).unwrap_err().to_string();
    assert_eq!(error, "cannot wait on the tai clock with timerfd: use --wait nanosleep");
}

/// Passes frames from a talker to a listener.
#[derive(Debug, Clone)]
struct Wire(Arc<Mutex<VecDeque<[u8; 90]>>>);

impl Transmit for Wire {
    fn send(&mut self, frame: &[u8], _slot_ns: i64) -> io::Result<()> {
        let mut waiting = self.0.lock().expect("no panic");
        // The queue must not grow, because that would allocate.
        if waiting.len() < waiting.capacity() {
            waiting.push_back(frame.try_into().expect("a frame of 90 bytes"));
        }
        Ok(())
    }
}

impl Receive for Wire {
    fn receive(&mut self, frame: &mut [u8], poll: Poll) -> io::Result<Option<Received>> {
        let Some(next) = self.0.lock().expect("no panic").pop_front() else {
            if poll == Poll::Sleep {
                std::thread::sleep(Duration::from_millis(1));
            }
            return Ok(None);
        };
        // Without the VLAN tag, as the kernel delivers frames.
        frame[..12].copy_from_slice(&next[..12]);
        frame[12..86].copy_from_slice(&next[16..]);
        let tci = Some(u16::from_be_bytes([next[14], next[15]]));
        Ok(Some(Received { length: 86, tci, stamp_ns: Some(Clock::Realtime.now_ns()) }))
    }

    fn drops(&self) -> io::Result<Box<dyn DropCounter>> {
        Ok(Box::new(NoDrops))
    }
}

#[derive(Debug)]
struct NoDrops;

impl DropCounter for NoDrops {
    fn dropped(&mut self) -> io::Result<Dropped> {
        Ok(Dropped::InSocket(0))
    }
}

#[test]
fn no_loop_of_a_stream_allocates_and_every_frame_arrives() {
    let wire = Wire(Arc::new(Mutex::new(VecDeque::with_capacity(10_000))));
    let source = [2, 0, 0, 0, 0, 1];
    let talker_settings = TalkerSettings {
        streams: vec![frames::Stream {
            source,
            destination: frames::ethernet::multicast_of(source, 0),
            tci: frames::Class::A.tci(),
            stream_id: frames::stream_id(source, 0),
            format: frames::Format::Aaf,
            channels: frames::template::STEREO,
            samples: 6,
        }],
        run: 1,
        names: Vec::new(),
        interface: "wire".to_owned(),
        mode: TransmitMode::Send,
        own_listener: true,
        period_ns: 200_000,
        offset_ns: 50_000,
        transit_ns: 2_000_000,
        clock: Clock::Monotonic,
    };
    let listener_settings = ListenerSettings {
        named: Vec::new(),
        expected: Expected {
            stream_id: None,
            period_ns: 200_000,
            transit_ns: 2_000_000,
            tie: ClockTie::SameHost,
            whole: true,
        },
        interface: "wire".to_owned(),
        wait: ReceiveWait::Spin,
        from: "wire".to_owned(),
        notes: Vec::new(),
        cpu: None,
        policy: Policy::Other,
        clock: Clock::Monotonic,
        talker: None,
    };
    let mut listener = Listener::start(&listener_settings, wire.clone()).expect("a thread");
    let (talker, talk) = Talker::new(&talker_settings, wire.clone());
    let heartbeat = Heartbeat::start().expect("a thread");
    let timer_settings = Settings { role: "talker".to_owned(), has_own_role: true, samples: Some(2000), ..settings() };
    let mut timer = Timer::prepare_with(Some(Box::new(talk)), &timer_settings, heartbeat).expect("a thread");
    timer.start(timer_settings.clock.now_ns() + 1_000_000, i64::MAX / 2);
    while !timer.has_ended() {
        std::thread::sleep(Duration::from_millis(5));
        timer.collect();
        listener.collect();
    }
    // The listener may be behind, because its thread is an ordinary one.
    while !wire.0.lock().expect("no panic").is_empty() {
        std::thread::sleep(Duration::from_millis(5));
        listener.collect();
    }
    listener.finish(&talker.frames_of_each());
    let (sent, heard) = (talker.to_record(), listener.series("test").remove(0));
    let heard = heard.kind.listener().expect("a listener's series");
    // A wake-up in a slot that already has its frame sends none.
    assert!((1..=2000).contains(&sent.frames), "{sent:?}");
    assert_eq!((heard.frames, heard.lost, heard.duplicates, heard.reordered), (sent.frames, 0, 0, 0));
    assert_eq!((heard.identity.pcp, heard.identity.frame_bytes), (Some(3), 90));
    assert_eq!(heard.read_delay.total(), sent.frames);
}
