//! Every command in the documentation is one that this program accepts.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::error::ErrorKind;

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

/// A command of a document.
struct Documented {
    place: String,
    line: String,
    /// True in a sentence, which may only name a command.
    is_mention: bool,
}

/// The documents of the project.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = vec![root.join("README.md")];
    all.extend(fs::read_dir(root.join("docs")).unwrap().flatten().map(|entry| entry.path()));
    all.retain(|path| path.extension().is_some_and(|ending| ending == "md"));
    all.sort();
    all
}

/// The commands in the code of a document. In a block, a line that ends with a backslash continues in the next one.
fn commands(path: &Path) -> Vec<Documented> {
    let text = fs::read_to_string(path).unwrap();
    let (mut all, mut in_block, mut begun) = (Vec::new(), false, String::new());
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
            continue;
        }
        let line = line.trim().trim_start_matches("$ ");
        let is_first = begun.is_empty() && starts_command(line);
        let place = format!("{}:{}", path.file_name().unwrap().to_string_lossy(), index + 1);
        if !in_block {
            let spans = line.split('`').skip(1).step_by(2).filter(|span| starts_command(span) && span.contains(' '));
            all.extend(spans.map(|span| Documented {
                place: place.clone(),
                line: span.replace("\\|", "|"),
                is_mention: true,
            }));
        }
        if !in_block || begun.is_empty() && !is_first {
            continue;
        }
        match line.strip_suffix('\\') {
            Some(part) => begun += part,
            None => all.push(Documented { place, line: std::mem::take(&mut begun) + line, is_mention: false }),
        }
    }
    all
}

/// True if the first word of the line, after sudo and settings of the environment, is punctual.
fn starts_command(line: &str) -> bool {
    line.split(' ').find(|word| !is_prefix(word)) == Some("punctual")
}

fn is_prefix(word: &str) -> bool {
    let is_setting =
        word.split_once('=').is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_uppercase() || c == '_'));
    matches!(word, "sudo" | "-E") || is_setting
}

/// The words of the first command of a line of shell, without its comment, its pipe and its redirections.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (c, quote) {
            (_, Some(open)) if c == open => quote = None,
            ('\'' | '"', None) => (quote, word) = (Some(c), Some(word.take().unwrap_or_default())),
            (' ', None) => words.extend(word.take()),
            ('#', None) if word.is_none() => break,
            ('|' | ';' | '>' | '<' | '&', None) => {
                // The number of a redirected stream.
                word.take_if(|word| c == '>' && word.parse::<u8>().is_ok());
                break;
            }
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// True if a command has too few arguments.
fn lacks_arguments(kind: ErrorKind) -> bool {
    use ErrorKind::{DisplayHelpOnMissingArgumentOrSubcommand, MissingRequiredArgument, MissingSubcommand};
    matches!(kind, DisplayHelpOnMissingArgumentOrSubcommand | MissingRequiredArgument | MissingSubcommand)
}

#[test]
fn commands_of_the_documentation_are_accepted() {
    let mut count = 0;
    let mut refused = Vec::new();
    for Documented { place, line, is_mention } in documents().iter().flat_map(|path| commands(path)) {
        let words = words(&line);
        let value = |word: String| {
            let known = PLACEHOLDERS.iter().find(|(placeholder, _)| *placeholder == word);
            known.map_or(word, |(_, value)| (*value).to_owned())
        };
        let words = words.into_iter().skip_while(|word| is_prefix(word)).map(value).filter(|word| !word.is_empty());
        count += 1;
        match super::definition().try_get_matches_from(super::joined(words.map(Into::into))) {
            // A folder without records.
            Err(error) if error.to_string().contains("there is no record of yours") => {}
            Err(error) if is_mention && lacks_arguments(error.kind()) => {}
            Err(error) if error.use_stderr() => {
                refused.push(format!("{place}: {line}\n    {}", error.to_string().lines().next().unwrap_or_default()));
            }
            Ok(_) | Err(_) => {}
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
