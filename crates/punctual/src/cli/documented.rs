//! Every command in the documentation is one that this program accepts.

mod commands;

use clap::error::ErrorKind;

use self::commands::{Documented, commands, documents, is_prefix, words};

/// Words of the documentation that stand for a value, with such a value.
const PLACEHOLDERS: [(&str, &str); 11] = [
    ("LAST", "last.punctual.json"),
    ("PID", "4711"),
    ("$PID", "4711"),
    ("$(pidof jackd)", "4711"),
    ("N", "1"),
    ("LIST", "0"),
    ("TIME", "1ms"),
    ("FILE", "file"),
    ("HOST", "host"),
    ("...", ""),
    ("…", ""),
];

/// True if a command has too few arguments.
fn lacks_arguments(kind: ErrorKind) -> bool {
    use ErrorKind::{DisplayHelpOnMissingArgumentOrSubcommand, MissingRequiredArgument, MissingSubcommand};
    matches!(kind, DisplayHelpOnMissingArgumentOrSubcommand | MissingRequiredArgument | MissingSubcommand)
}

/// Parses the first command of a line of shell as the program does. Help is accepted, too.
pub fn accept(line: &str) -> Result<(), clap::Error> {
    let value = |word: String| {
        let known = PLACEHOLDERS.iter().find(|(placeholder, _)| *placeholder == word);
        known.map_or(word, |(_, value)| (*value).to_owned())
    };
    let words = words(line).into_iter().skip_while(|word| is_prefix(word)).map(value).filter(|word| !word.is_empty());
    match super::definition().try_get_matches_from(super::joined(words.map(Into::into))) {
        // A folder without records.
        Err(error) if error.to_string().contains("there is no record of yours") => Ok(()),
        Err(error) if error.use_stderr() => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

#[test]
fn commands_of_the_documentation_are_accepted() {
    let mut count = 0;
    let mut refused = Vec::new();
    for Documented { place, line, is_mention } in documents().iter().flat_map(|path| commands(path)) {
        count += 1;
        match accept(&line) {
            Err(error) if !(is_mention && lacks_arguments(error.kind())) => {
                refused.push(format!("{place}: {line}\n    {}", error.to_string().lines().next().unwrap_or_default()));
            }
            Ok(()) | Err(_) => {}
        }
    }
    assert!(refused.is_empty(), "{} of {count} commands:\n{}", refused.len(), refused.join("\n"));
    assert!(count > 100, "only {count} commands were found");
}

#[test]
fn words_end_before_the_shell_goes_on() {
    let split = |line| words(line).join("|");
    assert_eq!(split("sudo punctual measure timer 2> log # comment"), "sudo|punctual|measure|timer");
    assert_eq!(split("punctual run 'my file' --x=\"a b\" | jq ."), "punctual|run|my file|--x=a b");
}
