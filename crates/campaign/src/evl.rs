//! Runs whose measuring threads are scheduled by the EVL core.

use std::borrow::Cow;

use machine::{Root, evl_cpus, usable_cpus};
use record::{Caveat, Record, grouped};
use sys::evl::{self, EvlError};

use crate::{error::RunError, phase::PhaseRun, plan::Plan, validity};

/// Returns the plan with the defaults of the EVL core: its CPUs are measured unless the plan names others. Fails before
/// anything is started if the core is not available.
pub fn with_defaults<'a>(plan: &'a Plan, root: &Root) -> Result<Cow<'a, Plan>, RunError> {
    if !plan.core.use_evl() {
        return Ok(Cow::Borrowed(plan));
    }
    evl::level()?;
    // A core that does not report its CPUs refuses threads on other CPUs itself.
    let Some(own) = evl_cpus(root) else { return Ok(Cow::Borrowed(plan)) };
    match &plan.cpus {
        Some(cpus) => match usable_cpus(root, Some(cpus))?.difference(&own).iter().next() {
            Some(other) => Err(EvlError::OtherCpu(other).into()),
            None => Ok(Cow::Borrowed(plan)),
        },
        None => {
            let cpus = usable_cpus(root, None)?.intersection(&own);
            Ok(Cow::Owned(Plan { cpus: Some(cpus), ..plan.clone() }))
        }
    }
}

/// Kind of the caveat that out-of-band wake-ups were early.
const EARLY: &str = "evl.early";

/// The caveat of a kernel with the Cobalt core, whose threads are not measured; `None` without it.
pub fn cobalt_caveat(record: &Record) -> Option<Caveat> {
    let version = record.machine.cobalt.as_ref()?;
    let text = format!(
        "this kernel has the Cobalt core of Xenomai 3 ({version}), which was not measured: the threads of this run were \
         in-band, where Cobalt threads can delay them"
    );
    Some(Caveat { kind: "xenomai.cobalt".to_owned(), text })
}

/// Makes the record invalid for each thread that fell back to Linux.
pub fn judge(record: &mut Record, run: &PhaseRun) {
    for timer in run.timers.iter().filter(|timer| timer.in_band() > 0) {
        let times = match timer.in_band() {
            1 => "once".to_owned(),
            times => format!("{} times", grouped(times)),
        };
        let text = format!(
            "the thread of {} fell back from the EVL core to Linux {times} while it measured, so the figures include \
             Linux",
            timer.place()
        );
        let remedy = "keep signals and debuggers away from the run (strace, gdb, Ctrl-Z); `sudo dmesg | grep -i evl` \
            may show the cause";
        validity::add(record, "evl.in_band", text, remedy);
    }
    let early: u64 = record.series.iter().filter(|series| series.evl.is_some()).map(|series| series.early).sum();
    if early > 0 && !record.caveats.iter().any(|caveat| caveat.kind == EARLY) {
        let gravity = record.machine.evl_gravity.as_deref().unwrap_or("unknown");
        let text = format!(
            "threads of the EVL core woke before their deadline: the gravity ({gravity}) is too large; `punctual evl \
             gravity` calibrates it"
        );
        record.caveats.push(Caveat { kind: EARLY.to_owned(), text });
    }
}
