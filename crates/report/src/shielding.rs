//! The shield of a run as text.

use record::{LeftKind, Shielding, counted};

/// The means that kept other work off the measured CPUs; empty without a shield.
pub(crate) fn how(shielding: Option<&Shielding>) -> String {
    let Some(shielding) = shielding else { return String::new() };
    let Shielding { cpus, means, tasks_moved, interrupts_moved, .. } = shielding;
    let several = cpus.contains(|c: char| !c.is_ascii_digit());
    let (noun, tasks) = (if several { "CPUs" } else { "CPU" }, counted(u64::from(*tasks_moved), "task"));
    let interrupts = counted(u64::from(*interrupts_moved), "interrupt");
    let mut text = format!("{noun} {cpus} by {}; {tasks} and {interrupts} moved off", means.in_words());
    if !shielding.isolated_at_boot.is_empty() {
        text += &format!("; isolated at boot: {}", shielding.isolated_at_boot);
    }
    text
}

/// Work that stayed on the shielded CPUs, notes, and problems when undoing the shield: one sentence each.
pub(crate) fn remaining(shielding: Option<&Shielding>) -> Vec<String> {
    let Some(shielding) = shielding else { return Vec::new() };
    let stayed = shielding.left.iter().map(record::Left::in_words);
    let struck = shielding.struck.iter().flatten().map(|strikes| format!("struck by {}", strikes.in_words()));
    let has_immovable = shielding.left.iter().any(|left| left.kind == LeftKind::Interrupts && !left.no_right);
    let is_quiet = has_immovable && shielding.struck.as_ref().is_some_and(Vec::is_empty);
    let quiet = is_quiet.then(|| "no interrupt that could not be moved occurred there during the run".to_owned());
    let put_back = shielding.put_back.iter();
    let changed = put_back.clone().flat_map(|back| &back.changed_since);
    let failed = put_back.flat_map(|back| &back.failed);
    stayed
        .chain(struck)
        .chain(quiet)
        .chain(shielding.notes.iter().cloned())
        .chain(changed.map(|what| format!("changed by someone else meanwhile, so not restored: {what}")))
        .chain(failed.map(|what| format!("could not be restored: {what}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use record::{Left, LeftKind, PutBack, ShieldMeans, Strikes};

    use super::*;

    #[test]
    fn describes_a_shield() {
        let left_there = Left {
            kind: LeftKind::KernelThreads,
            count: 1,
            names: vec!["ksoftirqd/1".into()],
            why: "the kernel binds each to its CPU".into(),
            no_right: false,
        };
        let shielding = Shielding {
            cpus: "1".into(),
            means: ShieldMeans::IsolatedPartition,
            tasks_moved: 82,
            interrupts_moved: 1,
            left: vec![left_there],
            put_back: Some(PutBack { changed_since: vec!["task 7 (sh): CPU 0".into()], ..PutBack::default() }),
            ..Shielding::default()
        };
        assert_eq!(how(Some(&shielding)), "CPU 1 by an isolated cpuset partition; 82 tasks and 1 interrupt moved off");
        assert_eq!(
            remaining(Some(&shielding)),
            [
                "1 kernel thread (ksoftirqd/1): the kernel binds each to its CPU",
                "changed by someone else meanwhile, so not restored: task 7 (sh): CPU 0"
            ]
        );
        assert_eq!(how(None), "");
    }

    #[test]
    fn tells_whether_interrupts_struck() {
        let left = Left { kind: LeftKind::Interrupts, count: 1, names: vec!["36 disk".into()], ..Left::default() };
        let mut shielding = Shielding { left: vec![left], ..Shielding::default() };
        let last = |shielding: &Shielding| remaining(Some(shielding)).pop().unwrap();
        assert_eq!(last(&shielding), "1 interrupt (36 disk): ", "not counted");
        shielding.struck = Some(Vec::new());
        assert_eq!(last(&shielding), "no interrupt that could not be moved occurred there during the run");
        shielding.struck = Some(vec![Strikes { interrupt: 36, name: "disk".into(), count: 12 }]);
        assert_eq!(last(&shielding), "struck by interrupt 36 (disk) 12 times");
    }
}
