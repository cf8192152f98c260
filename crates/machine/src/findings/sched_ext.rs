//! A scheduler of ordinary threads that a program has loaded into the kernel (sched_ext).

use record::Finding;

use super::{CheckContext, Explain, evidence, not_applicable, ok, unknown, warn, without};
use crate::{Root, Unreadable, tasks};

pub(super) const ID: &str = "kernel.sched_ext";
const STATE: &str = "sys/kernel/sched_ext/state";
/// The name that the loaded scheduler gives itself.
const NAME: &str = "sys/kernel/sched_ext/root/ops";
/// `scx_enable_state_str` in kernel/sched/ext.c; kernels before 6.14 have `prepping`, too.
const STATES: [&str; 5] = ["enabling", "enabled", "disabling", "disabled", "prepping"];
/// Programs that load such a scheduler have this at the start of their names (<https://github.com/sched-ext/scx>).
const PROGRAM: &str = "scx_";
/// The service that starts them.
const SERVICE: &str = "scx_loader";

/// True if such a scheduler is loaded, as far as it can be read.
pub(super) fn is_loaded(root: &Root) -> bool {
    root.word(STATE).is_ok_and(|state| state == "enabled")
}

pub(super) fn check(context: &CheckContext) -> Finding {
    let state = match context.root.text_if(STATE, |state| STATES.contains(&state)) {
        Ok(state) => state,
        Err(Unreadable::Absent) if context.root.exists("sys/kernel") => {
            let title = "this kernel takes no scheduler from a program (CONFIG_SCHED_CLASS_EXT)";
            return not_applicable(ID, title, without(STATE, Unreadable::Absent));
        }
        Err(why) => return unknown(ID, "state of sched_ext not readable", without(STATE, why)),
    };
    let read = evidence(STATE, &state);
    if state == "disabled" {
        return ok(ID, "the kernel's own scheduler runs ordinary threads", read);
    }
    let name = context.root.word(NAME).ok();
    let read = name.as_ref().map_or(read.clone(), |name| format!("{read}, {}", evidence(NAME, name)));
    let title = match &name {
        Some(name) => format!("a program schedules ordinary threads: {name} (sched_ext)"),
        None => "a program schedules ordinary threads (sched_ext)".to_owned(),
    };
    let is_loader = |name: &str| name.starts_with(PROGRAM) && name != SERVICE;
    let loader = tasks::processes(context.root).into_iter().find(|(_, name)| is_loader(name));
    let remedy = match loader {
        Some((process, name)) => format!("end {name}, and the kernel's own scheduler returns: sudo kill {process}"),
        None => "end the program that loaded it, and the kernel's own scheduler returns".to_owned(),
    };
    warn(ID, title, read)
        .because(
            "Real-time threads (SCHED_FIFO, SCHED_RR) still run first. All others wait as long as that program decides, and results differ from those without it.",
            remedy,
        )
        .until_boot()
}
