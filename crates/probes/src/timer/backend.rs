//! The scheduler of a measuring thread: Linux or the EVL core.

use std::io;

use sys::{clock::Sleeper, evl, sched, usage::ThreadUsage};

use super::settings::{Core, Settings, TimerError};

/// The calling thread as seen by its scheduler.
pub enum ThreadBackend {
    Linux(Sleeper),
    Evl {
        thread: evl::Thread,
        /// Switches to in-band scheduling before it started to measure.
        in_band_before: u32,
    },
}

impl ThreadBackend {
    /// Attaches the calling thread, which has its affinity and policy already.
    pub fn attach(settings: &Settings) -> Result<Self, TimerError> {
        match settings.core {
            Core::Linux => Sleeper::new(settings.clock, settings.wait)
                .map(Self::Linux)
                .map_err(|_| TimerError::Wait(settings.clock, settings.wait)),
            Core::Evl => {
                let cpu = settings.cpu.unwrap_or_else(sched::current_cpu);
                let priority = settings.policy.priority().unwrap_or(1);
                let role: String = settings.role.chars().filter(char::is_ascii_alphanumeric).collect();
                let thread = evl::Thread::attach(&format!("{role}.{}", sched::thread_id()), priority, cpu)?;
                Ok(Self::Evl { thread, in_band_before: 0 })
            }
        }
    }

    /// ABI level of the EVL core; `None` with Linux.
    pub fn evl_level(&self) -> Option<u32> {
        match self {
            Self::Linux(_) => None,
            Self::Evl { thread, .. } => Some(thread.level()),
        }
    }

    /// Ends a wait of the thread that it makes out-of-band; `None` with Linux, whose waits a signal ends.
    pub fn waker(&self) -> io::Result<Option<evl::Waker>> {
        match self {
            Self::Linux(_) => Ok(None),
            Self::Evl { thread, .. } => thread.waker().map(Some),
        }
    }

    /// Must be called right before the thread starts to measure: from here on it is out-of-band.
    pub fn begin(&mut self) -> io::Result<()> {
        if let Self::Evl { thread, in_band_before } = self {
            *in_band_before = thread.state()?.in_band;
        }
        Ok(())
    }

    #[inline]
    pub fn sleep_until(&self, deadline_ns: i64) -> io::Result<()> {
        match self {
            Self::Linux(sleeper) => sleeper.sleep_until(deadline_ns),
            Self::Evl { thread, .. } => thread.sleep_until(deadline_ns),
        }
    }

    /// The current CPU of the thread. For an EVL thread it is not read from Linux, because that would switch the thread
    /// in-band.
    pub fn cpu(&self) -> u32 {
        match self {
            Self::Linux(_) => sched::current_cpu(),
            Self::Evl { thread, .. } => thread.state().map_or(u32::MAX, |state| state.cpu),
        }
    }

    /// CPU time and sleeps of the thread so far, as counted by its scheduler.
    pub fn usage(&self) -> ThreadUsage {
        match self {
            Self::Linux(_) => ThreadUsage::so_far(),
            Self::Evl { thread, .. } => thread.state().map_or_else(
                |_| ThreadUsage::default(),
                |state| ThreadUsage { cpu_time_ns: state.cpu_time_ns, sleeps: state.switches.into() },
            ),
        }
    }

    /// Switches to in-band scheduling since the thread started to measure; 0 with Linux.
    pub fn in_band(&self) -> io::Result<u32> {
        match self {
            Self::Linux(_) => Ok(0),
            Self::Evl { thread, in_band_before } => Ok(thread.state()?.in_band.wrapping_sub(*in_band_before)),
        }
    }
}
