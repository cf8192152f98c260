//! `punctual generate`: man pages, shell completions, the table of options and JSON Schemas.

use std::path::Path;

use anyhow::Context;
use clap_mangen::Man;
use record::file;

use crate::{
    cli::{self, Document, Generate},
    output,
};

pub fn run(document: &Generate) -> anyhow::Result<u8> {
    match document {
        Generate::Man { dir } => {
            file::create_folder(dir).with_context(|| format!("cannot create the folder {}", dir.display()))?;
            let mut command = cli::definition().disable_help_subcommand(true);
            command.build();
            write_man_pages(command, dir)?;
        }
        Generate::Completions { shell } => {
            let mut script = Vec::new();
            let is_bash = *shell == clap_complete::Shell::Bash;
            let mut definition = cli::with_names(cli::definition(), is_bash);
            clap_complete::generate(*shell, &mut definition, "punctual", &mut script);
            let script = String::from_utf8(script)?;
            let script = if is_bash { cli::with_files(&script) } else { script };
            output::stdout(|out| out.write_all(script.as_bytes()))?;
        }
        Generate::Options => output::stdout(|out| out.write_all(cli::options_page().as_bytes()))?,
        Generate::Schema { of } => {
            let schema = match of.unwrap_or(Document::Run) {
                Document::Run => record::json_schema(),
                Document::Campaign => record::Campaign::json_schema(),
                Document::Proof => record::Proof::json_schema(),
                Document::Compare => record::Versus::json_schema(),
                Document::Across => record::versus::Across::json_schema(),
            };
            let schema = serde_json::to_string_pretty(&schema)?;
            output::stdout(|out| writeln!(out, "{schema}"))?;
        }
    }
    Ok(0)
}

/// Writes the pages of a command and of its visible subcommands.
fn write_man_pages(command: clap::Command, dir: &Path) -> anyhow::Result<()> {
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        write_man_pages(subcommand.clone(), dir)?;
    }
    let page = Man::new(command);
    let mut text = Vec::new();
    page.render(&mut text)?;
    Ok(file::write_atomic(&dir.join(page.get_filename()), &text)?)
}
