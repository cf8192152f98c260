//! Commands to paste.

/// The words as one command that a POSIX shell reads back as exactly these words.
pub fn command<S: AsRef<str>>(words: &[S]) -> String {
    words.iter().map(|word| quoted(word.as_ref())).collect::<Vec<_>>().join(" ")
}

/// The command of a run with `options`, which replace its own and come before a `--`. An option with an empty value is
/// removed. The command starts with `punctual`, without the path of the binary.
pub fn with_options(words: &[String], options: &[(&str, &str)]) -> String {
    let is_option = |word: &str| options.iter().any(|(option, _)| *option == word);
    let is_both =
        |word: &str| options.iter().any(|(option, _)| word.split_once('=').is_some_and(|(o, _)| o == *option));
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let mut kept = vec!["punctual"];
    let mut old = words[..end].iter().skip(1).map(String::as_str);
    while let Some(word) = old.next() {
        match word {
            _ if is_option(word) => drop(old.next()),
            _ if is_both(word) => {}
            _ => kept.push(word),
        }
    }
    kept.extend(options.iter().filter(|(_, value)| !value.is_empty()).flat_map(|&(option, value)| [option, value]));
    kept.extend(words[end..].iter().map(String::as_str));
    command(&kept)
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// The remedy for a run that was too short for its period: ten periods, and at least 10 s.
#[must_use]
pub fn run_longer(period_ns: u64) -> String {
    let seconds = period_ns.saturating_mul(10).div_ceil(1_000_000_000).max(10);
    format!("run longer, e.g. --duration {seconds}s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_reads_the_words_back() {
        let words = ["punctual", "a b", "it's", "", "$(id)", "~", "x\ny", "--period=1ms"].map(str::to_owned);
        let script = format!("printf '%s\\0' {}", command(&words));
        let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), words.clone().map(|word| word + "\0").concat());
        assert_eq!(command(&words[..1]), "punctual");
    }

    #[test]
    fn replaces_options_before_the_command_of_a_program() {
        let words = "/usr/bin/punctual measure process --period 1ms --duration=2s -- ./a --duration 3s";
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        assert_eq!(
            with_options(&words, &[("--duration", "9s"), ("--period", "2ms")]),
            "punctual measure process --duration 9s --period 2ms -- ./a --duration 3s"
        );
        assert_eq!(with_options(&words[..4], &[("--period", "")]), "punctual measure process");
    }
}
