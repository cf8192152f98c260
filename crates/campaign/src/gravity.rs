//! Calibrates the gravity of the EVL core's clock, as `latmus -t` of libevl does.
//!
//! | context | method |
//! |---|---|
//! | user thread | measured here, with one gravity after the other |
//! | interrupt handler, kernel thread | calibrated by the core's driver `/dev/latmus`; its steps are read from the kernel log |

mod curve;
mod kernel_log;

use std::{io, thread, time::Duration};

use analysis::format_unsigned_ns;
use machine::{AwakeHold, CpuList, Gravity, GravityError, GravityHold, Root, evl_cpus, keep_gravity};
use probes::{
    guard::Heartbeat,
    timer::{Core, Fraction, Settings, Timer, TimerError},
};
use serde::Serialize;
use sys::{
    clock::{Clock, Wait},
    evl::{self, EvlError, KernelContext, Latmus},
    sched::{self, Policy},
};
use thiserror::Error;

use curve::{Bench, VERIFIED_WAKE_UPS, calibrate_user, lower_until_none_is_early};
pub use curve::{Step, USER_STEP_NS};
use kernel_log::KernelLog;

use crate::probe::choose_cpu;

/// Priority of the measuring threads; that of latmus.
const PRIORITY: u8 = 98;
/// Time between a start and the first deadline, ns.
const LEAD_NS: i64 = 10_000_000;

/// Contexts with a gravity of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Context {
    /// An interrupt handler.
    Irq,
    /// A kernel thread.
    Kernel,
    /// A user thread.
    User,
}

impl Context {
    /// All contexts in the order of calibration.
    pub const ALL: [Self; 3] = [Self::Irq, Self::Kernel, Self::User];

    /// Its name: `irq`, `kernel`, `user`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Irq => "irq",
            Self::Kernel => "kernel",
            Self::User => "user",
        }
    }

    /// Its value in a gravity, ns.
    #[must_use]
    pub fn of(self, gravity: Gravity) -> u64 {
        match self {
            Self::Irq => gravity.irq_ns,
            Self::Kernel => gravity.kernel_ns,
            Self::User => gravity.user_ns,
        }
    }

    fn set(self, gravity: &mut Gravity, ns: u64) {
        *match self {
            Self::Irq => &mut gravity.irq_ns,
            Self::Kernel => &mut gravity.kernel_ns,
            Self::User => &mut gravity.user_ns,
        } = ns;
    }
}

/// Options of a calibration.
#[derive(Debug, Clone)]
pub struct GravityPlan {
    /// Contexts to calibrate.
    pub contexts: Vec<Context>,
    /// CPU to measure; `None` for the best one of the core.
    pub cpu: Option<u32>,
    /// Time between two deadlines, ns; at most 10 ms.
    pub period_ns: u64,
    /// True to set the result.
    pub set: bool,
}

/// The result of a calibration.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calibration {
    /// The measured CPU.
    pub cpu: u32,
    /// Time between two deadlines, ns.
    pub period_ns: u64,
    /// The gravity before, as the kernel writes it.
    pub before: String,
    /// The calibrated gravity. Contexts that were not calibrated keep their value.
    pub found: String,
    /// Wake-ups of a user thread with the gravity from before; absent without the user context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<Step>,
    /// Each context.
    pub contexts: Vec<ContextResult>,
    /// True if the calibrated gravity was set.
    pub is_set: bool,
}

impl Calibration {
    /// True if user threads woke before their deadline with the gravity from before.
    #[must_use]
    pub fn is_early_now(&self) -> bool {
        self.now.as_ref().is_some_and(Step::is_early)
    }
}

/// The result for a context.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ContextResult {
    /// The context.
    pub context: Context,
    /// The calibrated gravity, ns; absent if it was not calibrated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found_ns: Option<u64>,
    /// Lateness for each gravity, the smallest gravity first; empty if the kernel log did not contain it.
    pub curve: Vec<Step>,
    /// The reason why it was not calibrated; absent if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
}

/// Error: nothing was calibrated. The gravity is as before.
#[derive(Debug, Error)]
pub enum CalibrationError {
    /// The core cannot be used.
    #[error(transparent)]
    Evl(#[from] EvlError),
    /// The kernel has no EVL core.
    #[error(
        "this kernel has no EVL core, whose gravity could be calibrated: boot one built with CONFIG_EVL, see https://v4.xenomai.org"
    )]
    NoCore,
    /// The gravity cannot be changed.
    #[error(transparent)]
    Gravity(#[from] GravityError),
    /// No CPU can be measured.
    #[error(transparent)]
    Cpu(#[from] machine::CpuError),
    /// The thread cannot be started.
    #[error(transparent)]
    Thread(#[from] TimerError),
    /// The period is too long for the number of wake-ups.
    #[error("--period must be 10us to 10ms (got {})", format_unsigned_ns(*.0))]
    Period(u64),
    /// The thread has no real-time policy, or is not pinned.
    #[error("the measuring thread may not run with fifo:{PRIORITY} on CPU {0}: run as root")]
    NotGranted(u32),
    /// The thread was scheduled by Linux for a time.
    #[error("the measuring thread fell back to Linux: keep signals and debuggers away, and run again")]
    FellBack,
    /// The thread did not finish.
    #[error("the measuring thread stopped before its last wake-up: see `sudo dmesg | grep -i evl`")]
    Unfinished,
    /// Threads wake early even if the core does not anticipate.
    #[error("a thread woke {0} ns before its deadline without gravity, so the clock of this kernel is not suitable")]
    EarlyWithoutGravity(u64),
    /// The driver of the core is missing.
    #[error(
        "this kernel has no /dev/latmus, which calibrates irq and kernel: build it with CONFIG_EVL_LATMUS=y, or use --context user"
    )]
    NoDriver,
    /// The result must not be set.
    #[error(
        "the gravity {found} was not set: {early} of {samples} wake-ups of a user thread were early with it; calibrate the \
         user context, too"
    )]
    Early {
        /// The calibrated gravity.
        found: Gravity,
        /// Early wake-ups.
        early: u64,
        /// All wake-ups.
        samples: u64,
    },
    /// The user ended the calibration.
    #[error("the calibration was interrupted; the gravity is as before")]
    Interrupted,
}

/// Calibrates the gravity. The gravity in force changes during the calibration, which delays all threads of the core; at
/// the end it is as before, unless the plan says to set the result.
///
/// # Errors
/// [`CalibrationError`].
pub fn calibrate(plan: &GravityPlan, root: &Root) -> Result<Calibration, CalibrationError> {
    if !(10_000..=10_000_000).contains(&plan.period_ns) {
        return Err(CalibrationError::Period(plan.period_ns));
    }
    evl::level().map_err(|error| match error {
        EvlError::Absent => CalibrationError::NoCore,
        other => other.into(),
    })?;
    let cpu = choose_cpu(root, plan.cpu, None, crate::Cores::Evl)?;
    if let Some(own) = evl_cpus(root)
        && !own.contains(cpu)
    {
        return Err(EvlError::OtherCpu(cpu).into());
    }
    // As latmus does. Without the right, the CPU may sleep, which only makes wake-ups later.
    let _awake = AwakeHold::take(root, &CpuList::from_iter([cpu])).ok();
    let hold = GravityHold::take(root)?;
    let before = hold.before();
    let mut bench = CoreBench { hold, gravity: before, cpu, period_ns: plan.period_ns };
    let mut found = before;
    let mut now = None;
    let mut contexts = Vec::new();
    for &context in &plan.contexts {
        let result = match context {
            Context::User => {
                now = Some(bench.measure(VERIFIED_WAKE_UPS)?);
                let (found_ns, curve) = calibrate_user(&mut bench)?;
                ContextResult { context, found_ns: Some(found_ns), curve, why_not: None }
            }
            Context::Irq => bench.tune(context, KernelContext::Irq, root)?,
            Context::Kernel => bench.tune(context, KernelContext::Thread, root)?,
        };
        result.found_ns.iter().for_each(|&ns| context.set(&mut found, ns));
        contexts.push(result);
    }
    if contexts.iter().all(|context| context.found_ns.is_none()) {
        return Err(CalibrationError::NoDriver);
    }
    // Timers of all contexts share the core's tick, so the gravity is verified as a whole.
    bench.gravity = found;
    if let Some(user) = contexts.iter_mut().find(|result| result.context == Context::User) {
        found.user_ns = lower_until_none_is_early(&mut bench, found.user_ns)?;
        user.found_ns = Some(found.user_ns);
    } else if plan.set {
        bench.set(found.user_ns)?;
        let verified = bench.measure(VERIFIED_WAKE_UPS)?;
        if verified.is_early() {
            let (early, samples) = (verified.early.unwrap_or(1), VERIFIED_WAKE_UPS);
            return Err(CalibrationError::Early { found, early, samples });
        }
    }
    // The gravity is as before from here on, so that the journal of the user's request contains that value.
    drop(bench);
    if plan.set {
        keep_gravity(root, found)?;
    }
    let (before, found) = (before.to_string(), found.to_string());
    Ok(Calibration { cpu, period_ns: plan.period_ns, before, found, now, contexts, is_set: plan.set })
}

/// The measurements on a kernel with the core.
struct CoreBench {
    hold: GravityHold,
    /// The gravity in force.
    gravity: Gravity,
    cpu: u32,
    period_ns: u64,
}

impl Bench for CoreBench {
    fn set(&mut self, user_ns: u64) -> Result<(), CalibrationError> {
        self.gravity.user_ns = user_ns;
        Ok(self.hold.set(self.gravity)?)
    }

    fn measure(&mut self, wake_ups: u64) -> Result<Step, CalibrationError> {
        let settings = Settings {
            role: "gravity".to_owned(),
            has_own_role: false,
            cpu: Some(self.cpu),
            policy: Policy::Fifo(PRIORITY),
            clock: Clock::Monotonic,
            wait: Wait::Nanosleep,
            core: Core::Evl,
            period_ns: self.period_ns,
            fraction: Fraction::default(),
            samples: Some(wake_ups),
            threshold_ns: i64::MAX,
            spikes_kept: 0,
            stop_on: None,
            spin: None,
        };
        let heartbeat = Heartbeat::start().map_err(TimerError::Spawn)?;
        let mut timer = Timer::prepare(&settings, heartbeat)?;
        if timer.grant().policy_refused.is_some() || timer.grant().pin_refused.is_some() {
            return Err(CalibrationError::NotGranted(self.cpu));
        }
        timer.start(Clock::Monotonic.now_ns() + LEAD_NS, i64::MAX / 2);
        while !timer.has_ended() {
            thread::sleep(Duration::from_millis(10));
            timer.collect();
            if sys::signal::termination_requests() > 0 {
                timer.stop();
                timer.wait_for_end(Duration::from_secs(1));
                return Err(CalibrationError::Interrupted);
            }
        }
        timer.collect();
        let series = timer.series("gravity");
        if timer.in_band() > 0 {
            return Err(CalibrationError::FellBack);
        }
        let (Some(min_ns), Some(mean_ns)) = (series.min_ns, series.mean_ns) else {
            return Err(CalibrationError::Unfinished);
        };
        let (samples, early, max_ns) = (Some(series.samples), Some(series.early), series.max_ns);
        Ok(Step { gravity_ns: self.gravity.user_ns, samples, early, min_ns, mean_ns, max_ns })
    }
}

impl CoreBench {
    /// Lets the kernel calibrate a context. The gravity is as before afterwards.
    fn tune(
        &mut self,
        context: Context,
        of_kernel: KernelContext,
        root: &Root,
    ) -> Result<ContextResult, CalibrationError> {
        let without = |why: String| ContextResult { context, found_ns: None, curve: Vec::new(), why_not: Some(why) };
        let latmus = match Latmus::open() {
            Ok(latmus) => latmus,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(without("this kernel has no /dev/latmus (CONFIG_EVL_LATMUS)".to_owned()));
            }
            Err(error) => return Ok(without(format!("/dev/latmus: {error}"))),
        };
        let mut log = KernelLog::at_end(root);
        let (cpu, period_ns) = (self.cpu, self.period_ns);
        // The core schedules only threads that are attached to it.
        let calibrated = thread::scope(|scope| {
            let attached = scope.spawn(move || {
                let granted = sched::set_affinity(&[cpu]).and_then(|()| sched::set_policy(Policy::Fifo(PRIORITY)));
                granted.map_err(|_| CalibrationError::NotGranted(cpu))?;
                let name = format!("gravity.{}", sched::thread_id());
                let thread = evl::Thread::attach(&name, PRIORITY, cpu)?;
                Ok::<_, CalibrationError>(latmus.tune(&thread, of_kernel, cpu, PRIORITY, period_ns))
            });
            attached.join().unwrap_or(Err(CalibrationError::Unfinished))
        });
        // The kernel sets the result itself.
        self.hold.reset()?;
        self.gravity = self.hold.before();
        Ok(match calibrated? {
            Ok(found_ns) => {
                ContextResult { context, found_ns: Some(found_ns.into()), curve: log.steps(), why_not: None }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(CalibrationError::Interrupted),
            Err(error) => without(format!("the kernel could not calibrate it ({error}); `sudo dmesg` may show why")),
        })
    }
}
