//! Setting up a measuring thread: requests affinity and policy, and reads back what the kernel granted.

use std::{io, sync::OnceLock};

use sys::{clock::Clock, memory, sched, sched::Policy, signal};

/// Stack of a measuring thread, bytes. It is small, because the memory lock makes all of it resident.
pub const STACK_BYTES: usize = 256 * 1024;
/// Stack that the measuring loop may need, bytes; touched before it starts.
const STACK_TOUCHED: usize = 64 * 1024;

/// The settings that the kernel granted a thread, and those that it refused.
#[derive(Debug, Clone)]
pub struct Grant {
    /// Thread id.
    pub thread_id: u32,
    /// Active policy, read back.
    pub policy: Policy,
    /// CPUs the thread may run on, read back.
    pub cpus: Vec<u32>,
    /// Timer slack, ns.
    pub timer_slack_ns: u64,
    /// Error of the refused policy; `None` if it was granted.
    pub policy_refused: Option<io::ErrorKind>,
    /// Error of the refused pinning; `None` if it was granted.
    pub pin_refused: Option<io::ErrorKind>,
    /// Overhead of a timestamp, ns: median time of reading the clock twice in a row.
    pub floor_ns: u64,
    /// ABI level of the EVL core; `None` for a Linux thread.
    pub evl_level: Option<u32>,
}

/// Policy and CPUs of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scheduling {
    /// Policy.
    pub policy: Policy,
    /// CPUs that the thread may run on.
    pub cpus: Vec<u32>,
}

/// The scheduling of a thread at its end. The thread reads it itself, because nobody can after its end.
#[derive(Debug, Default)]
pub struct AtEnd(OnceLock<Scheduling>);

impl AtEnd {
    /// Reads the scheduling of the calling thread, as its last act.
    pub fn read(&self) {
        if let (Ok(policy), Ok(cpus)) = (sched::policy(), sched::affinity()) {
            // Each thread calls this once.
            let _ = self.0.set(Scheduling { policy, cpus });
        }
    }

    /// The scheduling; `None` until the thread has ended.
    #[must_use]
    pub fn get(&self) -> Option<&Scheduling> {
        self.0.get()
    }
}

/// Pins the calling thread, sets its policy, touches its stack, and blocks signals. `floor_ns` measures the overhead of
/// a timestamp under these settings.
///
/// # Errors
/// If the granted settings cannot be read back. A refused setting is not an error; the returned value contains it.
pub fn set_up(cpu: Option<u32>, policy: Policy, floor_ns: impl FnOnce() -> u64) -> io::Result<Grant> {
    // Signals are for the main thread, which can handle them.
    signal::block_termination_here()?;
    let mut pin_refused = cpu.and_then(|cpu| sched::set_affinity(&[cpu]).err());
    let mut policy_refused = sched::set_policy(policy).err();
    if cpu.is_some() && policy_refused.is_some() && matches!(policy, Policy::Deadline { .. }) {
        // The kernel admits deadline threads for all CPUs together and refuses a pinned one, so the thread is not
        // pinned.
        let all_cpus: Vec<u32> = (0..1024).collect();
        if sched::set_affinity(&all_cpus).is_ok() {
            policy_refused = sched::set_policy(policy).err();
            pin_refused = Some(io::ErrorKind::PermissionDenied.into());
        }
    }
    memory::touch_stack::<STACK_TOUCHED>();
    granted(policy_refused, pin_refused, floor_ns)
}

/// Reads back the settings of the calling thread; the refused ones are given.
///
/// # Errors
/// If the settings cannot be read back.
pub fn granted(
    policy_refused: Option<io::Error>,
    pin_refused: Option<io::Error>,
    floor_ns: impl FnOnce() -> u64,
) -> io::Result<Grant> {
    Ok(Grant {
        thread_id: sched::thread_id(),
        policy: sched::policy()?,
        cpus: sched::affinity()?,
        timer_slack_ns: sched::timer_slack_ns(),
        policy_refused: policy_refused.map(|error| error.kind()),
        pin_refused: pin_refused.map(|error| error.kind()),
        floor_ns: floor_ns(),
        evl_level: None,
    })
}

/// Overhead of a timestamp, ns: the median time of reading the clock twice in a row.
#[must_use]
pub fn floor_ns(clock: Clock) -> u64 {
    let mut gaps: [i64; 1001] = std::array::from_fn(|_| {
        let before = clock.now_ns();
        clock.now_ns() - before
    });
    gaps.sort_unstable();
    gaps[gaps.len() / 2].max(0).cast_unsigned()
}
