//! What the far end says of itself, in the words of those who read it at the near end.

use record::Reason;

/// What is said where it happens, and what to do about it from here: options of the far end have names of their own.
const THERE: [(&str, &str); 9] = [
    ("run as root", "log in there as root, or use --far-sudo"),
    ("start as root (sudo)", "log in there as root, or use --far-sudo"),
    // With --load-cpus.
    (" --load", " --far-load"),
    (" --shield", " --far-shield"),
    (" --hold-cpu-awake", " --far-hold-cpu-awake"),
    (" --nic", " --far-nic"),
    (" --irq-priority", " --far-irq-priority"),
    (" --receive", " --far-receive"),
    (" --queue", " --far-queue"),
];

/// Reasons that more rights on the far machine would remove.
const OF_RIGHTS: [&str; 4] = ["policy.refused", "memory.not_locked", "cpu.not_pinned", "shield.incomplete"];

/// A sentence of the far end.
#[must_use]
pub fn there(text: &str) -> String {
    THERE.iter().fold(text.to_owned(), |text, (here, there)| text.replace(here, there))
}

/// A reason of the machine called `host`.
#[must_use]
pub fn reason(host: &str, reason: Reason) -> Reason {
    let remedy = match OF_RIGHTS.contains(&reason.id.as_str()) {
        true => format!("start it there as root: punctual pair root@{host} ..., or with --far-sudo"),
        false => there(&reason.remedy),
    };
    Reason { text: format!("on {host}: {}", there(&reason.text)), remedy, ..reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remedies_are_to_be_used_from_here() {
        for (here, from_here) in [
            ("run as root, or leave out --nic", "log in there as root, or use --far-sudo, or leave out --far-nic"),
            ("CPUs with --load-cpus LIST or --load cpu@1", "CPUs with --far-load-cpus LIST or --far-load cpu@1"),
            ("name another with --queue", "name another with --far-queue"),
            ("see there, or leave out --irq-priority", "see there, or leave out --far-irq-priority"),
            ("use a shorter period", "use a shorter period"),
        ] {
            assert_eq!(there(here), from_here);
        }
    }
}
