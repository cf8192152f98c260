//! Help as it is shown: paragraphs flow to the width of the terminal, lines that are indented stay as they are.

use clap::{Command, builder::StyledStr};

/// The same command with flowing help, as that of all commands below it.
///
/// The definition's texts are taken verbatim, broken where the source is, so that examples keep their lines.
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
    let (mut flowing, mut stood) = (String::new(), true);
    for line in text.to_string().lines() {
        let stands = line.is_empty() || line.starts_with(' ');
        if !flowing.is_empty() {
            flowing.push(if stands || stood { '\n' } else { ' ' });
        }
        flowing += line;
        stood = stands;
    }
    flowing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_flow_and_examples_keep_their_lines() {
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
