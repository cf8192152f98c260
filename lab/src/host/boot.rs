//! One guest: boots it, gathers what its tests say, keeps what it brought back.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use lab::{Guest, LabError, Said, Tree};

use super::{Ended, Options, build::Kit};
use crate::{
    boots::Boot,
    inside::{Test, Verdict},
};

/// Runs a boot to its end.
pub fn run(boot: &Boot, tests: &[&str], kit: &Kit, options: &Options) -> Ended {
    if !boot.inside {
        return Ended::Ran(boot.wanted(tests).map(Test::verdict).collect());
    }
    let guest = Guest {
        cpus: boot.cpus,
        time: boot.time,
        append: boot.append.to_owned(),
        devices: boot.devices.iter().map(|&word| word.to_owned()).collect(),
        timeout: boot.timeout,
        verbose: options.console,
        ..Guest::default()
    };
    let image = match kit.kernel.image() {
        Ok(image) => image,
        Err(error) => return Ended::Failed(Vec::new(), error.to_string()),
    };
    let mut verdicts = Verdicts::default();
    let outcome = lab::run(&guest, &image, &kit.initramfs, &mut |said| {
        if let Said::Out(piece) = said {
            verdicts.read(piece);
        }
        if options.console {
            show(boot.name, said);
        }
    });
    let verdicts = verdicts.read_so_far;
    match outcome {
        Ok(outcome) => {
            let (boot_s, wall_s) = (outcome.boot.as_secs_f64(), outcome.wall.as_secs_f64());
            println!(
                "         {:<12} {:<10} {}: {} tests, {boot_s:.1} s to boot, {wall_s:.1} s in all",
                boot.kernel.name,
                boot.name,
                kit.kernel.release,
                tests.len()
            );
            match options.keep.as_deref().map_or(Ok(()), |folder| keep(&folder.join(boot.name), &outcome.files)) {
                Ok(()) => Ended::Ran(verdicts),
                Err(error) => Ended::Failed(verdicts, format!("{error:#}")),
            }
        }
        Err(error @ LabError::NoQemu { .. }) => Ended::Skipped(error.to_string()),
        Err(error) => Ended::Failed(verdicts, error.to_string()),
    }
}

/// What the tests said, out of the pieces in which it came.
#[derive(Default)]
struct Verdicts {
    line: Vec<u8>,
    read_so_far: Vec<Verdict>,
}

impl Verdicts {
    fn read(&mut self, piece: &[u8]) {
        for &byte in piece {
            if byte == b'\n' {
                self.read_so_far.extend(Verdict::parse(&String::from_utf8_lossy(&self.line)));
                self.line.clear();
            } else {
                self.line.push(byte);
            }
        }
    }
}

fn show(boot: &str, said: Said) {
    match said {
        Said::Console(line) => eprintln!("{boot}: {line}"),
        Said::Booted(release) => eprintln!("{boot}: booted {release}"),
        Said::Out(piece) | Said::Err(piece) => {
            String::from_utf8_lossy(piece).lines().for_each(|line| eprintln!("{boot}> {line}"));
        }
    }
}

fn keep(folder: &Path, files: &Tree) -> Result<()> {
    for (name, bytes) in files.files() {
        let path = folder.join(name);
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
        fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
