//! `punctual generate`: man pages, shell completions and JSON Schemas.

use std::fs;

use anyhow::Context;

use crate::{
    cli::{self, Document, Generate},
    output,
};

pub fn run(document: &Generate) -> anyhow::Result<u8> {
    match document {
        Generate::Man { dir } => {
            fs::create_dir_all(dir).with_context(|| format!("cannot create the folder {}", dir.display()))?;
            clap_mangen::generate_to(cli::definition(), dir)
                .with_context(|| format!("cannot write man pages to {}", dir.display()))?;
        }
        Generate::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut cli::definition(), "punctual", &mut script);
            output::stdout(|out| out.write_all(&script))?;
        }
        Generate::Schema { of } => {
            let schema = match of {
                Document::Run => record::json_schema(),
                Document::Campaign => record::Campaign::json_schema(),
            };
            let schema = serde_json::to_string_pretty(&schema)?;
            output::stdout(|out| writeln!(out, "{schema}"))?;
        }
    }
    Ok(0)
}
