//! `punctual loads`, and the hidden command that is a load's child process.

use crate::{cli::Load, output};

pub fn list() -> anyhow::Result<u8> {
    output::stdout(|out| {
        for kind in loads::KINDS {
            writeln!(out, "{:<10} {}", kind.name, kind.description)?;
            for (option, meaning) in kind.options {
                writeln!(out, "{:<10}   {option:<20} {meaning}", "")?;
            }
        }
        writeln!(out, "\nAny load takes CPUs at its end: --load switch:10us@0-1. Full text: docs/loads.md")
    })?;
    Ok(0)
}

pub fn work(options: &Load) -> anyhow::Result<u8> {
    loads::worker(&options.spec, &options.cpus)?;
    Ok(0)
}
