//! Differences in the conditions of two measurements, as text.

use record::{Figures, grouped};

use super::nearest::bare;
use crate::{float::to_u64, format_unsigned_ns};

/// From this ratio of sample counts on, the difference is noted, because more samples find larger maxima.
const MANY_TIMES: f64 = 10.0;

/// All known differences, and unknown conditions on the other side.
pub(super) fn differences(ours: &Figures, theirs: &Figures) -> Vec<String> {
    [
        period(ours, theirs),
        loads(ours, theirs),
        role(ours, theirs),
        isolated(ours, theirs),
        together(ours, theirs),
        policy(ours, theirs),
        samples(ours, theirs),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn period(ours: &Figures, theirs: &Figures) -> Option<String> {
    let time = format_unsigned_ns;
    match (ours.period_ns, theirs.period_ns) {
        (ours, theirs) if ours == theirs => None,
        (Some(ours), Some(theirs)) => Some(format!("their period is {}, yours {}", time(theirs), time(ours))),
        (Some(ours), None) => Some(format!("their period is unknown, yours is {}", time(ours))),
        (None, _) => None,
    }
}

fn loads(ours: &Figures, theirs: &Figures) -> Option<String> {
    let under = |figures: &Figures| match &figures.loads {
        Some(loads) if loads.is_empty() => "at rest".to_owned(),
        Some(loads) => format!("under {}", loads.join(", ")),
        None if figures.said.is_empty() => "under unknown load".to_owned(),
        None => format!("with {}", figures.said),
    };
    let sorted = |figures: &Figures| {
        let mut loads: Option<Vec<String>> =
            figures.loads.as_ref().map(|all| all.iter().map(|l| bare(l).to_owned()).collect());
        loads.iter_mut().for_each(|loads| loads.sort());
        loads
    };
    (sorted(ours) != sorted(theirs)).then(|| format!("theirs {}, yours {}", under(theirs), under(ours)))
}

fn role(ours: &Figures, theirs: &Figures) -> Option<String> {
    let name = |role: &str| if role.is_empty() { "the only one".to_owned() } else { role.to_owned() };
    (ours.role != theirs.role).then(|| format!("their thread is {}, yours {}", name(&theirs.role), name(&ours.role)))
}

fn isolated(ours: &Figures, theirs: &Figures) -> Option<String> {
    let kind = |isolated: bool| if isolated { "isolated" } else { "ordinary" };
    match (ours.isolated, theirs.isolated) {
        (Some(ours), Some(theirs)) if ours != theirs => {
            Some(format!("theirs on an {} CPU, yours on an {} one", kind(theirs), kind(ours)))
        }
        _ => None,
    }
}

fn together(ours: &Figures, theirs: &Figures) -> Option<String> {
    let place = |together: bool| if together { "on one CPU" } else { "on separate CPUs" };
    match (ours.together, theirs.together) {
        (Some(ours), Some(theirs)) if ours != theirs => {
            Some(format!("their threads {}, yours {}", place(theirs), place(ours)))
        }
        _ => None,
    }
}

fn policy(ours: &Figures, theirs: &Figures) -> Option<String> {
    let known = !ours.policy.is_empty() && !theirs.policy.is_empty();
    (known && ours.policy != theirs.policy).then(|| format!("their policy is {}, yours {}", theirs.policy, ours.policy))
}

fn samples(ours: &Figures, theirs: &Figures) -> Option<String> {
    let times = |ratio: f64| grouped(to_u64(ratio.round()));
    let (ours, theirs) = (ours.samples? as f64, theirs.samples? as f64);
    if theirs >= ours * MANY_TIMES {
        Some(format!("they have {} times as many samples, which find larger maxima", times(theirs / ours)))
    } else if ours >= theirs * MANY_TIMES {
        Some(format!("yours has {} times as many samples, which find larger maxima", times(ours / theirs)))
    } else {
        None
    }
}
