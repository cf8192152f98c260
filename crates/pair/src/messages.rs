//! Adapts messages of the far end for users of the near end, where its options have other names.

use record::{Reason, visible::one_line};

/// Replacements: the text in messages of the far end, and the text for users of the near end.
const REPLACEMENTS: [(&str, &str); 10] = [
    ("run as root", "log in there as root, or use --far-sudo"),
    ("start as root (sudo)", "log in there as root, or use --far-sudo"),
    // Also matches --load-cpus.
    (" --load", " --far-load"),
    (" --shield", " --far-shield"),
    (" --hold-cpu-awake", " --far-hold-cpu-awake"),
    (" --nic", " --far-nic"),
    (" --irq-priority", " --far-irq-priority"),
    (" --receive", " --far-receive"),
    (" --queue", " --far-queue"),
    (": measure by sockets, without xdp", ": leave out xdp at the far end"),
];

/// Reasons that disappear with root privileges on the far machine.
const NEEDS_ROOT: [&str; 4] = ["policy.refused", "memory.not_locked", "cpu.not_pinned", "shield.incomplete"];

/// Translates a message of the far end.
#[must_use]
pub fn translate(text: &str) -> String {
    REPLACEMENTS.iter().fold(one_line(text), |text, (from, to)| text.replace(from, to))
}

/// Translates a reason of the machine `host`.
#[must_use]
pub fn reason(host: &str, reason: Reason) -> Reason {
    let remedy = match NEEDS_ROOT.contains(&reason.id.as_str()) {
        true => format!("start it as root there: punctual pair root@{host} ..., or use --far-sudo"),
        false => translate(&reason.remedy),
    };
    Reason { text: format!("on {host}: {}", translate(&reason.text)), remedy, ..reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn translates_remedies() {
        for (text, expected) in [
            ("run as root, or leave out --nic", "log in there as root, or use --far-sudo, or leave out --far-nic"),
            ("CPUs with --load-cpus LIST or --load cpu@1", "CPUs with --far-load-cpus LIST or --far-load cpu@1"),
            ("name another with --queue", "name another with --far-queue"),
            ("see there, or leave out --irq-priority", "see there, or leave out --far-irq-priority"),
            ("cannot bind: measure by sockets, without xdp", "cannot bind: leave out xdp at the far end"),
            ("use a shorter period", "use a shorter period"),
        ] {
            assert_eq!(translate(text), expected);
        }
    }
}
