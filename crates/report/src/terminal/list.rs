//! Entries of a list: a name, and a text that is wrapped to its right.

use textwrap::core::display_width;

/// The name, padded to `column`, and the text, whose other lines begin at the same column. If that column is beyond the
/// middle of the page, the text begins below the name.
#[must_use]
pub fn entry(name: &str, column: usize, text: &str, width: usize) -> String {
    let level = name.len() - name.trim_start().len();
    let is_beside = column <= width / 2 && (display_width(name) < column || name.is_empty());
    let indent = " ".repeat(if is_beside { column } else { level + 4 });
    let first = if is_beside { format!("{name:column$}") } else { indent.clone() };
    let options = textwrap::Options::new(width.max(indent.len() + 8))
        .initial_indent(&first)
        .subsequent_indent(&indent)
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
        .break_words(false);
    let lines: String = textwrap::wrap(text, options).iter().map(|line| format!("{}\n", line.trim_end())).collect();
    if is_beside { lines } else { format!("{name}\n{lines}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_beside_its_name_if_there_is_space() {
        assert_eq!(
            entry("cpu", 8, "busy arithmetic on all CPUs", 24),
            "cpu     busy arithmetic\n        on all CPUs\n"
        );
        assert_eq!(entry("  shell", 14, "run a loop", 24), "  shell\n      run a loop\n");
        assert_eq!(entry("a-long-name", 8, "text", 24), "a-long-name\n    text\n");
    }
}
