//! Each slice of a wake-up with its cause.

use std::collections::HashMap;

use record::{Cause, CauseKind, Why};

use super::{
    replay::Moment,
    scene::{Scene, Slice},
    shares::Piece,
    waiter::{At, Spell},
    words::{Words, idle_exit, waiting, why, with_detail},
};
use crate::idle::IN_STATE;

/// The kernel's way from the timer's interrupt to the measuring thread, where nobody keeps the CPU from it: a thread of
/// lower priority, or the idle thread, has the CPU for at most so long before the switch, ns.
const SWITCH_NS: u64 = 15_000;
/// And so long around each interrupt or softirq on the way, ns.
const AROUND_HANDLER_NS: u64 = 1_000;
/// Between two events of that way no more time passes, ns; where it does, something took it that is not traced.
const STEP_NS: u64 = 50_000;
/// Into an interrupt or another thread, and out again, the kernel takes no longer than this, ns.
const INTO_OR_OUT_NS: u64 = 10_000;
/// How a cause says that no event tells of it.
const UNTRACED: &str = "nothing was traced in it";

/// Who has the CPU, in which spell of the measuring thread: the spell, whether its timer is still due, the CPU, and
/// when the thread got it.
type Tenure = (usize, bool, u32, Option<u64>);

/// What passed in a tenure.
#[derive(Debug, Default, Clone, Copy)]
struct Passed {
    /// Time of the thread itself, ns.
    thread_ns: u64,
    /// Interrupts and softirqs on top of it.
    handlers: u64,
}

/// The slices of a scene with their causes.
pub(super) fn pieces(scene: &Scene, slices: &[Slice<'_>], words: &Words<'_>) -> Vec<Piece> {
    let disturbed = slices.iter().filter(|slice| slice.from_ns >= scene.wake.deadline_ns).any(|slice| {
        let on_top = slice.nmi.is_some() || slice.moment.is_some_and(|moment| moment.top.is_some());
        on_top || scene.spells[slice.spell].at != At::Running
    });
    let labels = Labels { scene, words, passed: passed(scene, slices), disturbed };
    let piece = |slice: &Slice<'_>| {
        let cause = if slice.from_ns < scene.wake.deadline_ns { labels.before(slice) } else { labels.late(slice) };
        Piece { from_ns: slice.from_ns, to_ns: slice.to_ns, cause, run: slice.run() }
    };
    slices.iter().map(piece).collect()
}

struct Labels<'a> {
    scene: &'a Scene,
    words: &'a Words<'a>,
    passed: HashMap<Tenure, Passed>,
    /// Something is told to have had the CPU from the deadline on.
    disturbed: bool,
}

fn passed(scene: &Scene, slices: &[Slice<'_>]) -> HashMap<Tenure, Passed> {
    let mut all: HashMap<Tenure, Passed> = HashMap::new();
    let mut last = None;
    for slice in slices.iter().filter(|slice| slice.from_ns >= scene.wake.deadline_ns) {
        let Some(moment) = slice.moment else { continue };
        let passed = all.entry(tenure(scene, slice, moment)).or_default();
        let top = moment.top.map(|open| open.id);
        if top.is_some() {
            passed.handlers += u64::from(top != last);
        } else if slice.nmi.is_none() {
            passed.thread_ns += slice.to_ns - slice.from_ns;
        }
        last = top;
    }
    all
}

fn tenure(scene: &Scene, slice: &Slice<'_>, moment: &Moment) -> Tenure {
    (slice.spell, is_due(scene, slice), slice.cpu, moment.switched_ns)
}

/// Whether the measuring thread sleeps until its timer, and the timer's interrupt is not yet taken.
fn is_due(scene: &Scene, slice: &Slice<'_>) -> bool {
    scene.expiries.get(&slice.spell).is_some_and(|expiry| slice.from_ns < expiry.begun_ns)
}

impl Labels<'_> {
    /// Before the deadline: what had the CPU.
    fn before(&self, slice: &Slice<'_>) -> Cause {
        let Some(moment) = slice.moment else { return Cause::default() };
        if let Some(cause) = self.on_top(slice, moment) {
            return cause;
        }
        let mut cause = self.words.thread(CauseKind::Thread, moment.thread);
        if let Some(state) = moment.idle.filter(|idle| idle.left_ns.is_none()).and_then(|idle| idle.state) {
            cause.detail = format!("{IN_STATE}{state}");
        }
        cause
    }

    /// From the deadline on: what kept the CPU from the measuring thread.
    fn late(&self, slice: &Slice<'_>) -> Cause {
        let Some(moment) = slice.moment else {
            let detail = if self.scene.waiter.spins { UNTRACED } else { "no events of that time" };
            return with_detail(CauseKind::Unexplained, detail);
        };
        let spell = &self.scene.spells[slice.spell];
        match spell.at {
            At::Stopped { by } => {
                let sender = by.map(|sent| self.scene.people.thread(sent.by));
                self.words.stopped(by, sender, self.woken_by(spell))
            }
            At::Waiting { fault } => waiting(fault, self.woken_by(spell)),
            At::Asleep => match self.scene.expiries.get(&slice.spell) {
                Some(_) if is_due(self.scene, slice) => self.due(slice, moment),
                Some(expiry) if expiry.by.is_some_and(|by| by.pid == moment.thread.pid) => {
                    self.on_its_way(slice, moment)
                }
                Some(expiry) => {
                    let priority = expiry.by.and_then(|by| by.known).map(|(priority, _)| priority);
                    self.kept(slice, moment, priority.unwrap_or(self.scene.waiter.priority), expiry.begun_ns)
                }
                None if spell.woken.is_some() => waiting(false, self.woken_by(spell)),
                None => self.unknown(slice, moment),
            },
            At::Ready => self.kept(slice, moment, self.scene.waiter.priority, spell.from_ns),
            At::Running if slice.from_ns >= self.scene.wake.woke_ns => {
                self.on_top(slice, moment).unwrap_or_else(|| Cause::new(CauseKind::Work, ""))
            }
            At::Running if slice.from_ns < self.scene.previous_cycle_until_ns => {
                self.on_top(slice, moment).unwrap_or_else(|| self.previous_cycle(moment))
            }
            At::Running if self.scene.waiter.spins => self.on_top(slice, moment).unwrap_or_else(|| self.around(slice)),
            At::Running => self.on_its_way(slice, moment),
            At::Faulting => self.on_top(slice, moment).unwrap_or_else(|| with_detail(CauseKind::PageFault, "minor")),
            At::Unknown => self.unknown(slice, moment),
        }
    }

    /// What runs on top of the thread, if anything does. The contexts that wake the measuring thread are its own way.
    fn on_top(&self, slice: &Slice<'_>, moment: &Moment) -> Option<Cause> {
        if let Some(nmi) = slice.nmi {
            return Some(self.words.nmi(nmi.handler));
        }
        let open = moment.top?;
        Some(match self.scene.own.contains(&(slice.cpu, open.id)) {
            true => self.own_way(slice),
            false => self.words.context(open, moment.thread),
        })
    }

    /// The timer's interrupt is due: another one keeps it waiting, or something that no event tells.
    fn due(&self, slice: &Slice<'_>, moment: &Moment) -> Cause {
        let top = self.on_top(slice, moment).filter(|_| moment.in_interrupt || slice.nmi.is_some());
        if let Some(cause) = top {
            return cause;
        }
        let deadline_ns = self.scene.wake.deadline_ns;
        match moment.idle.filter(|idle| idle.left_ns.is_none_or(|left_ns| left_ns > deadline_ns)) {
            Some(idle) => idle_exit(idle),
            None => self.words.late_interrupt(moment),
        }
    }

    /// The measuring thread, of priority `ours`, could have the CPU since `since_ns`, and does not.
    fn kept(&self, slice: &Slice<'_>, moment: &Moment, ours: i32, since_ns: u64) -> Cause {
        if let Some(cause) = self.on_top(slice, moment) {
            return cause;
        }
        let thread = moment.thread;
        let is_idle = thread.pid == 0;
        let why = why(thread, ours);
        if !is_idle && why != Some(Why::PreemptionOff) {
            return Cause { why, ..self.words.thread(CauseKind::Thread, thread) };
        }
        let passed = self.passed.get(&tenure(self.scene, slice, moment)).copied().unwrap_or_default();
        if passed.thread_ns <= SWITCH_NS + passed.handlers * AROUND_HANDLER_NS {
            return Cause::new(CauseKind::WakeUp, "");
        }
        let sent_after = |at_ns: Option<u64>| at_ns.is_some_and(|at_ns| at_ns >= since_ns);
        let put_to_rest = moment.idle.is_some_and(|idle| sent_after(idle.entered_ns));
        if moment.passed_over || sent_after(moment.switched_ns) || put_to_rest {
            return with_detail(CauseKind::Throttled, format!("{} ran instead", self.words.thread_name(thread)));
        }
        if is_idle { idle_exit(moment.idle.unwrap_or_default()) } else { self.words.preemption_off(moment) }
    }

    /// Nothing keeps the CPU from the measuring thread but what comes on top.
    fn on_its_way(&self, slice: &Slice<'_>, moment: &Moment) -> Cause {
        self.on_top(slice, moment).unwrap_or_else(|| self.own_way(slice))
    }

    fn own_way(&self, slice: &Slice<'_>) -> Cause {
        if slice.to_ns - slice.from_ns > STEP_NS {
            return with_detail(CauseKind::Unexplained, "nothing was traced on the way to the thread");
        }
        Cause::new(CauseKind::WakeUp, "")
    }

    /// A thread that spins has the CPU in a gap: the kernel's way into what is told to have taken it, and out again.
    fn around(&self, slice: &Slice<'_>) -> Cause {
        if !self.disturbed || slice.to_ns - slice.from_ns > INTO_OR_OUT_NS {
            return with_detail(CauseKind::Unexplained, UNTRACED);
        }
        Cause::new(CauseKind::WakeUp, "")
    }

    /// The measuring thread runs, and has not yet gone to sleep for this deadline.
    fn previous_cycle(&self, moment: &Moment) -> Cause {
        let mut cause = self.words.thread(CauseKind::Thread, moment.thread);
        cause.detail = "the thread itself, still at its previous cycle".to_owned();
        cause
    }

    /// It is not known what the measuring thread was at: events are missing, or it was woken from a CPU that was not
    /// looked at. What interrupts did is known all the same.
    fn unknown(&self, slice: &Slice<'_>, moment: &Moment) -> Cause {
        let seen = self.on_top(slice, moment);
        seen.unwrap_or_else(|| with_detail(CauseKind::Unexplained, "no event tells when the thread was woken"))
    }

    /// Who made the measuring thread ready: an interrupt or softirq, or else the thread that had the CPU.
    fn woken_by(&self, spell: &Spell) -> Option<String> {
        let woken = self.scene.woken(spell.woken?)?;
        Some(match woken.stack.last() {
            Some(&open) => self.words.context(open, woken.by).title(),
            None => self.words.thread_name(woken.by),
        })
    }
}
