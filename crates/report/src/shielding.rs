//! The shield of a run, in words.

use record::Shielding;

/// What kept other work off the measured CPUs; empty where nothing was asked to.
pub(crate) fn how(shielding: Option<&Shielding>) -> String {
    let Some(shielding) = shielding else { return String::new() };
    let Shielding { cpus, means, tasks_moved, interrupts_moved, .. } = shielding;
    let several = cpus.contains(|c: char| !c.is_ascii_digit());
    let (noun, tasks) = (if several { "CPUs" } else { "CPU" }, counted(*tasks_moved, "task"));
    let interrupts = counted(*interrupts_moved, "interrupt");
    let mut text = format!("{noun} {cpus} by {}; {tasks} and {interrupts} moved off", means.in_words());
    if !shielding.isolated_at_boot.is_empty() {
        text += &format!("; isolated at boot: {}", shielding.isolated_at_boot);
    }
    text
}

/// What stayed there, and what else is to be known, a sentence each.
pub(crate) fn left(shielding: Option<&Shielding>) -> Vec<String> {
    let Some(shielding) = shielding else { return Vec::new() };
    let left = shielding.left.iter().map(record::Left::in_words);
    let put_back = shielding.put_back.iter();
    let changed = put_back.clone().flat_map(|back| &back.changed_since);
    let failed = put_back.flat_map(|back| &back.failed);
    left.chain(shielding.notes.iter().cloned())
        .chain(changed.map(|what| format!("someone else changed it meanwhile, and it was left so: {what}")))
        .chain(failed.map(|what| format!("it could not be put back as it was: {what}")))
        .collect()
}

fn counted(count: u32, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use record::{Left, LeftKind, PutBack, ShieldMeans};

    use super::*;

    #[test]
    fn a_shield_is_told_in_sentences() {
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
            left(Some(&shielding)),
            [
                "1 kernel thread (ksoftirqd/1): the kernel binds each to its CPU",
                "someone else changed it meanwhile, and it was left so: task 7 (sh): CPU 0"
            ]
        );
        assert_eq!(how(None), "");
    }
}
