//! Remedies split into advice and commands to paste.

use record::Account;

/// Splits a remedy into advice and the command at its end; either can be empty.
///
/// A command is the text between backticks at the end, after a colon or "with", or the whole remedy if it starts with a
/// known program. Commands within a sentence stay there.
pub(crate) fn advice_and_command(remedy: &str) -> (&str, &str) {
    if is_command(remedy) {
        return ("", remedy);
    }
    let quoted = remedy.trim_end_matches('.').strip_suffix('`').and_then(|rest| rest.rsplit_once('`'));
    match quoted {
        // A single word is not a command to paste, e.g. `sudo` or a kernel argument.
        Some((before, command)) if command.contains(' ') && announces(before.trim_end()) => {
            (before.trim_end(), command)
        }
        _ => (remedy, ""),
    }
}

fn announces(text: &str) -> bool {
    text.ends_with(':') || text.ends_with(" with")
}

/// The remedy of each account. A repeated remedy refers to the account that has it first.
pub(crate) fn of_accounts(accounts: &[&Account]) -> Vec<String> {
    let advice = |(n, account): (usize, &&Account)| {
        let shown = accounts[..n].iter().find(|above| !account.remedy.is_empty() && above.remedy == account.remedy);
        shown.map_or_else(|| account.remedy.clone(), |above| format!("as above, for {}", above.cause.title()))
    };
    accounts.iter().enumerate().map(advice).collect()
}

/// True if a remedy is a shell command, judged by its first word, whose path does not count.
pub(crate) fn is_command(remedy: &str) -> bool {
    let first_word = remedy.split(' ').next().unwrap_or_default();
    let program = first_word.rsplit('/').next().unwrap_or_default();
    ["echo", "punctual", "sudo", "taskset", "ulimit"].contains(&program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separates_commands_from_advice() {
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
