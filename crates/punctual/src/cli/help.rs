//! Layout of help texts: paragraphs are wrapped to the width of the terminal, indented lines are kept.

use clap::{Command, builder::StyledStr};

/// Joins the lines of each paragraph in the help of the command and of all its subcommands.
///
/// The definition uses verbatim doc comments because of the examples, so its texts contain the line breaks of the
/// source.
pub fn flowing(mut command: Command) -> Command {
    if let Some(about) = command.get_about().map(flow) {
        command = command.about(about.trim_end_matches('.').to_owned());
    }
    if let Some(about) = command.get_long_about().map(flow) {
        command = command.long_about(about);
    }
    command.mut_subcommands(flowing)
}

/// Joins the lines of each paragraph.
fn flow(text: &StyledStr) -> String {
    let (mut flowing, mut after_verbatim) = (String::new(), true);
    for line in text.to_string().lines() {
        let is_verbatim = line.is_empty() || line.starts_with(' ');
        if !flowing.is_empty() {
            flowing.push(if is_verbatim || after_verbatim { '\n' } else { ' ' });
        }
        flowing += line;
        after_verbatim = is_verbatim;
    }
    flowing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_lines_of_paragraphs_but_not_of_examples() {
        let text = "One\ntwo.\n\nThree\nfour:\n  a\n  b\nfive\nsix";
        assert_eq!(flow(&text.into()), "One two.\n\nThree four:\n  a\n  b\nfive six");
    }

    #[test]
    fn examples_fit_on_80_columns() {
        let mut left = vec![crate::cli::definition()];
        while let Some(command) = left.pop() {
            let text = command.get_long_about().map(ToString::to_string).unwrap_or_default();
            for line in text.lines().filter(|line| line.starts_with(' ')) {
                assert!(line.chars().count() <= 80, "{}: {line}", command.get_name());
            }
            left.extend(command.get_subcommands().cloned());
        }
    }
}
