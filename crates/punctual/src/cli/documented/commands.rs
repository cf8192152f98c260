//! The commands in README.md and docs/. Two tests use them: one parses all of them, one runs those that it can.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// A command of a document.
pub struct Documented {
    /// File and line.
    pub place: String,
    /// The line of shell.
    pub line: String,
    /// True in a sentence, which may only name a command.
    pub is_mention: bool,
}

/// The documents of the project.
pub fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = vec![root.join("README.md")];
    all.extend(fs::read_dir(root.join("docs")).unwrap().flatten().map(|entry| entry.path()));
    all.retain(|path| path.extension().is_some_and(|ending| ending == "md"));
    all.sort();
    all
}

/// The commands in the code of a document. In a block, a line that ends with a backslash continues in the next one.
pub fn commands(path: &Path) -> Vec<Documented> {
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

pub fn is_prefix(word: &str) -> bool {
    let is_setting =
        word.split_once('=').is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_uppercase() || c == '_'));
    matches!(word, "sudo" | "-E") || is_setting
}

/// The words of the first command of a line of shell, without its comment, its pipe and its redirections.
pub fn words(line: &str) -> Vec<String> {
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
