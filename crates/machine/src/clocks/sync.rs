//! The synchronisation of this machine's clock over PTP: waits for it, and watches it during a run.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use record::{Clocks, PtpPort};

use super::read;
use crate::Root;

/// Time between two checks.
const EVERY: Duration = Duration::from_millis(200);

/// Why the system clock is further than `limit_ns` from PTP time; `None` if it is not. Two offsets count: that of ptp4l
/// from its master, and that of the system clock from the hardware clock that ptp4l sets. Slots and presentation times
/// are on CLOCK_TAI, so the kernel's TAI offset must be the time by which PTP time is ahead of the system clock.
#[must_use]
pub fn why_not_synchronised(clocks: Option<&Clocks>, limit_ns: u64) -> Option<String> {
    let Some(ptp) = clocks.and_then(|clocks| clocks.ptp.as_ref()) else {
        let why = clocks.into_iter().flat_map(|clocks| &clocks.unknown).find(|why| why.contains("ptp4l"));
        return Some(why.cloned().unwrap_or_else(|| "ptp4l does not run".to_owned()));
    };
    if !ptp.is_synchronised() {
        return Some(format!("ptp4l has no master: {}", ptp.ports_in_words()));
    }
    if ptp.offset_ns > limit_ns {
        return Some(format!("ptp4l is {} ns from its master", ptp.offset_ns));
    }
    let Some(tai_offset_s) = clocks.and_then(|clocks| Some(clocks.kernel.as_ref()?.tai_offset_s)) else {
        return Some("the kernel's TAI offset could not be read".to_owned());
    };
    let is_used = |port: &&PtpPort| ["SLAVE", "MASTER", "GRAND_MASTER"].contains(&port.state.as_str());
    let used: Vec<&PtpPort> = ptp.ports.iter().filter(is_used).collect();
    let Some(device) = used.iter().find_map(|port| port.clock.as_ref()) else {
        if used.iter().any(|port| port.stamps_in_hardware != Some(false)) {
            return Some("ptp4l does not report which hardware clock it sets".to_owned());
        }
        // With timestamps of the kernel, ptp4l sets the system clock itself: to UTC if PTP time is TAI, otherwise to PTP
        // time.
        let ptp_ahead_s = if ptp.is_tai { i64::from(ptp.utc_offset_s) } else { 0 };
        return (tai_offset_s != ptp_ahead_s).then(|| wrong_tai_offset(tai_offset_s, ptp_ahead_s));
    };
    let clock = clocks?.hardware.iter().find(|clock| clock.device == *device);
    match clock.and_then(|clock| clock.ahead.as_ref()) {
        None => Some(format!("/dev/{device} cannot be compared with the system clock")),
        Some(ahead) if ahead.apart_ns > limit_ns.saturating_add(ahead.window_ns / 2) => {
            Some(format!("the system clock is {} ns from /dev/{device}, which phc2sys should prevent", ahead.apart_ns))
        }
        Some(ahead) if ahead.seconds != tai_offset_s => Some(wrong_tai_offset(tai_offset_s, ahead.seconds)),
        Some(_) => None,
    }
}

/// The reason for a TAI offset of the kernel that differs from PTP time minus the system clock.
fn wrong_tai_offset(tai_offset_s: i64, ptp_ahead_s: i64) -> String {
    format!(
        "PTP time is {ptp_ahead_s} s ahead of the system clock, but the kernel's TAI offset is {tai_offset_s} s: phc2sys, \
         or chrony with leapsectz, sets it"
    )
}

/// Waits until the system clock is within `limit_ns` of PTP time.
///
/// # Errors
/// The last reason, if this takes longer than `timeout` or `is_interrupted` returns true.
pub fn wait(root: &Root, limit_ns: u64, timeout: Duration, is_interrupted: impl Fn() -> bool) -> Result<(), String> {
    let began = Instant::now();
    loop {
        let Some(why) = why_not_synchronised(read(root).as_ref(), limit_ns) else { return Ok(()) };
        if began.elapsed() >= timeout || is_interrupted() {
            return Err(why);
        }
        thread::sleep(EVERY);
    }
}

/// The losses of synchronisation that a [`SyncWatch`] saw.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Losses {
    /// Number of times that it was lost.
    pub times: u64,
    /// Time without synchronisation, ns, as far as the checks show: it is checked about five times a second.
    pub lost_ns: u64,
    /// The first reason.
    pub first: String,
}

/// An ordinary thread that checks the synchronisation during a run.
#[derive(Debug)]
pub struct SyncWatch {
    /// Dropping it ends the thread.
    stop: Sender<()>,
    thread: JoinHandle<Losses>,
}

impl SyncWatch {
    /// Starts the thread. `is_lost` is true while the system clock is further than `limit_ns` from PTP time.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(root: &Root, limit_ns: u64, is_lost: Arc<AtomicBool>) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let root = root.clone();
        let watch = move || {
            let mut losses = Losses::default();
            let mut checked = Instant::now();
            loop {
                let ended = stopped.recv_timeout(EVERY) != Err(RecvTimeoutError::Timeout);
                let why = why_not_synchronised(read(&root).as_ref(), limit_ns);
                let was_lost = is_lost.swap(why.is_some(), Relaxed);
                let since = std::mem::replace(&mut checked, Instant::now());
                if was_lost {
                    let lost_ns = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
                    losses.lost_ns = losses.lost_ns.saturating_add(lost_ns);
                }
                if let Some(why) = why.filter(|_| !was_lost) {
                    losses.times += 1;
                    if losses.first.is_empty() {
                        losses.first = why;
                    }
                }
                if ended {
                    return losses;
                }
            }
        };
        let thread = thread::Builder::new().name("sync".to_owned()).stack_size(256 << 10).spawn(watch)?;
        Ok(Self { stop, thread })
    }

    /// Checks a last time, and returns the losses; `None` if the thread panicked.
    #[must_use]
    pub fn finish(self) -> Option<Losses> {
        drop(self.stop);
        self.thread.join().ok()
    }
}

#[cfg(test)]
mod tests {
    use record::{Ahead, HardwareClock, KernelClock, Ptp};

    use super::*;

    fn clocks(state: &str, offset_ns: u64, ahead_ns: Option<i64>) -> Clocks {
        let port = PtpPort { state: state.to_owned(), clock: Some("ptp0".to_owned()), ..PtpPort::default() };
        let ahead = ahead_ns.map(|ns| Ahead::of(ns, 400));
        let clock = HardwareClock { device: "ptp0".to_owned(), ahead, ..HardwareClock::default() };
        let ptp = Ptp { offset_ns, ports: vec![port], utc_offset_s: 37, is_tai: true, ..Ptp::default() };
        let kernel = KernelClock { tai_offset_s: 37, ..KernelClock::default() };
        Clocks { kernel: Some(kernel), ptp: Some(ptp), hardware: vec![clock], ..Clocks::default() }
    }

    /// The clocks of a machine whose ptp4l reports no hardware clock.
    fn of_system(stamps_in_hardware: Option<bool>) -> Clocks {
        let mut clocks = clocks("SLAVE", 0, None);
        let ports = clocks.ptp.iter_mut().flat_map(|ptp| &mut ptp.ports);
        ports.for_each(|port| (port.clock, port.stamps_in_hardware) = (None, stamps_in_hardware));
        clocks
    }

    #[test]
    fn both_offsets_and_the_state_count() {
        let why = |clocks: Clocks| why_not_synchronised(Some(&clocks), 1_000).unwrap_or_default();
        assert_eq!(why(clocks("SLAVE", 1_000, Some(37_000_001_200))), "", "half the reading time is no error");
        assert!(why(clocks("SLAVE", 1_001, Some(0))).contains("1001 ns from its master"));
        assert!(why(clocks("UNCALIBRATED", 0, Some(0))).contains("no master"));
        assert!(why(clocks("SLAVE", 0, Some(37_000_001_201))).contains("1201 ns from /dev/ptp0"));
        assert!(why(clocks("SLAVE", 0, None)).contains("cannot be compared"));
        let kernel_stamps = Clocks { hardware: Vec::new(), ..clocks("SLAVE", 0, None) };
        assert!(why(kernel_stamps).contains("cannot be compared"));
        for unknown in [None, Some(true)] {
            assert_eq!(why(of_system(unknown)), "ptp4l does not report which hardware clock it sets");
        }
        assert_eq!(why_not_synchronised(None, 1_000).as_deref(), Some("ptp4l does not run"));
    }

    #[test]
    fn clock_tai_must_be_ptp_time() {
        const SET: &str = "phc2sys, or chrony with leapsectz, sets it";
        let why = |mut clocks: Clocks, tai_offset_s: i64, is_tai: bool| {
            clocks.kernel.iter_mut().for_each(|kernel| kernel.tai_offset_s = tai_offset_s);
            clocks.ptp.iter_mut().for_each(|ptp| ptp.is_tai = is_tai);
            why_not_synchronised(Some(&clocks), 1_000).unwrap_or_default()
        };
        let wrong = |ahead_s: i64, tai_offset_s: i64| {
            let ahead = format!("PTP time is {ahead_s} s ahead of the system clock");
            format!("{ahead}, but the kernel's TAI offset is {tai_offset_s} s: {SET}")
        };
        let by_card = |ahead_s: i64| clocks("SLAVE", 0, Some(ahead_s * 1_000_000_000));
        for is_tai in [true, false] {
            assert_eq!(why(by_card(37), 37, is_tai), "");
            assert_eq!(why(by_card(0), 0, is_tai), "");
            assert_eq!(why(by_card(37), 0, is_tai), wrong(37, 0));
            assert_eq!(why(by_card(0), 37, is_tai), wrong(0, 37));
        }
        let by_kernel = || of_system(Some(false));
        assert_eq!((why(by_kernel(), 37, true), why(by_kernel(), 0, false)), (String::new(), String::new()));
        assert_eq!((why(by_kernel(), 0, true), why(by_kernel(), 37, false)), (wrong(37, 0), wrong(0, 37)));
        let unread = Clocks { kernel: None, ..clocks("SLAVE", 0, Some(0)) };
        assert!(why_not_synchronised(Some(&unread), 1_000).is_some_and(|why| why.contains("could not be read")));
    }

    #[test]
    fn a_machine_without_ptp_is_never_synchronised() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let why = wait(&root, 1_000, Duration::ZERO, || false).unwrap_err();
        assert_eq!(why, "ptp4l does not run");
        assert!(wait(&root, 1_000, Duration::from_secs(3600), || true).is_err(), "interrupted");
        let is_lost = Arc::new(AtomicBool::new(false));
        let losses = SyncWatch::start(&root, 1_000, is_lost.clone()).unwrap().finish().unwrap();
        assert!(is_lost.load(Relaxed));
        assert_eq!((losses.times, losses.first.as_str()), (1, "ptp4l does not run"));
    }
}
