//! Remedies as they are shown: advice in words, and commands to paste.

use record::Account;

/// A remedy as advice and the command that it ends with; either may be empty.
///
/// A command is what stands between backticks at the end, behind a colon or a "with", or the whole remedy where it begins
/// as a command does. Commands in the middle of a sentence stay there.
pub(crate) fn advice_and_command(remedy: &str) -> (&str, &str) {
    if is_command(remedy) {
        return ("", remedy);
    }
    let quoted = remedy.trim_end_matches('.').strip_suffix('`').and_then(|rest| rest.rsplit_once('`'));
    match quoted {
        // One word is no command to paste: `sudo`, or a kernel argument.
        Some((before, command)) if command.contains(' ') && announces(before.trim_end()) => {
            (before.trim_end(), command)
        }
        _ => (remedy, ""),
    }
}

fn announces(text: &str) -> bool {
    text.ends_with(':') || text.ends_with(" with")
}

/// What to do about each account of a ledger; what was said above is named and not said again.
pub(crate) fn of_accounts(accounts: &[&Account]) -> Vec<String> {
    let advice = |(n, account): (usize, &&Account)| {
        let said = accounts[..n].iter().find(|above| !account.remedy.is_empty() && above.remedy == account.remedy);
        said.map_or_else(|| account.remedy.clone(), |above| format!("as above, for {}", above.cause.title()))
    };
    accounts.iter().enumerate().map(advice).collect()
}

/// Whether a remedy is for the shell, told by its first word, or advice in words.
pub(crate) fn is_command(remedy: &str) -> bool {
    ["echo", "punctual", "sudo", "taskset", "ulimit"].contains(&remedy.split(' ').next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_from_advice() {
        for (remedy, parts) in [
            ("", ("", "")),
            ("sudo swapoff -a", ("", "sudo swapoff -a")),
            ("Boot with preempt=full.", ("Boot with preempt=full.", "")),
            ("Move it away: `echo 0 | sudo tee /x`.", ("Move it away:", "echo 0 | sudo tee /x")),
            ("Set `nohlt` or boot `a` again.", ("Set `nohlt` or boot `a` again.", "")),
            ("Run as root, with `sudo`.", ("Run as root, with `sudo`.", "")),
            ("mount it with `sudo mount x`", ("mount it with", "sudo mount x")),
            ("use another, `sudo a b`", ("use another, `sudo a b`", "")),
            ("a lone ` stays", ("a lone ` stays", "")),
        ] {
            assert_eq!(advice_and_command(remedy), parts);
        }
    }
}
