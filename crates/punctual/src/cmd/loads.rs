//! `punctual loads`, and the hidden command that runs a load in a child process.

use crate::{cli::Load, output};

pub fn list() -> anyhow::Result<u8> {
    output::stdout(|out| {
        for kind in loads::KINDS {
            writeln!(out, "{:<10} {}", kind.name, kind.description)?;
            for (option, meaning) in kind.options {
                writeln!(out, "{:<10}   {option:<20} {meaning}", "")?;
            }
        }
        writeln!(
            out,
            "\nAppend @CPUS to a load to choose its CPUs, e.g. --load switch:10us@0-1. Details: docs/loads.md"
        )
    })?;
    Ok(0)
}

pub fn work(options: &Load) -> anyhow::Result<u8> {
    loads::worker(&options.spec, &options.cpus)?;
    Ok(0)
}
