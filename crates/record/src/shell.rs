//! Commands to paste.

/// The words as one command that a POSIX shell reads back as exactly these words.
pub fn command<S: AsRef<str>>(words: &[S]) -> String {
    words.iter().map(|word| quoted(word.as_ref())).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
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
}
