//! One guest, perhaps with another beside it: boots it, gathers what its tests say, keeps what it brought back.

use std::{fs, io, path::Path, thread};

use anyhow::{Context, Result, anyhow, bail};
use guest::{Card, Event, Guest, GuestError, Image, Initramfs, Link, Model, Outcome, Tree};

use super::{
    build::Kit,
    plan::{Ended, Options},
};
use crate::{
    boots::Boot,
    verdict::{Test, Verdict},
};

/// Runs a boot to its end.
pub(super) fn run(boot: &Boot, tests: &[&str], kit: &Kit, options: &Options) -> Ended {
    if !boot.inside {
        return Ended::Ran(boot.wanted(tests).map(Test::verdict).collect());
    }
    match try_run(boot, kit, options) {
        Ok((near, far)) => near.end(tests.len(), kit, options, far),
        Err(error) => Ended::Failed(Vec::new(), format!("{error:#}")),
    }
}

/// The guest, and the one beside it.
fn try_run<'a>(boot: &'a Boot, kit: &Kit, options: &Options) -> Result<(Ran<'a>, Option<Ran<'a>>)> {
    let image = kit.kernel.image()?;
    let Some((other, initramfs)) = boot.beside.zip(kit.beside.as_ref()) else {
        return Ok((boot_one(boot, inside(boot), &image, &kit.initramfs, options), None));
    };
    let links = boot.cards.iter().map(|_| Link::pair()).collect::<io::Result<Vec<_>>>()?;
    let of = |side: usize| -> Vec<Card> {
        let card = |(&model, link): (&Model, &[Link; 2])| Card { model, link: link[side].clone() };
        boot.cards.iter().zip(&links).map(card).collect()
    };
    thread::scope(|scope| {
        let far = scope.spawn(|| boot_one(other, of(1), &image, initramfs, options));
        let near = boot_one(boot, of(0), &image, &kit.initramfs, options);
        let far = far.join().map_err(|_| anyhow!("what boots the guest beside it panicked"))?;
        Ok((near, Some(far)))
    })
}

/// Two cards of each model, each the other's cable.
fn inside(boot: &Boot) -> Vec<Card> {
    let two = |(number, &model): (usize, &Model)| [0, 1].map(|_| Card { model, link: Link::Internal(number) });
    boot.cards.iter().enumerate().flat_map(two).collect()
}

/// A guest that has run.
struct Ran<'a> {
    boot: &'a Boot,
    verdicts: Vec<Verdict>,
    outcome: Result<Outcome, GuestError>,
}

fn boot_one<'a>(boot: &'a Boot, cards: Vec<Card>, image: &Image, initramfs: &Initramfs, options: &Options) -> Ran<'a> {
    let guest = Guest {
        cpus: boot.cpus,
        time: boot.time,
        append: boot.append.to_owned(),
        cards,
        devices: boot.devices.iter().map(|&word| word.to_owned()).collect(),
        timeout: boot.timeout,
        verbose: options.console,
        ..Guest::default()
    };
    let mut verdicts = Verdicts::default();
    let outcome = guest::run(&guest, image, initramfs, &mut |said| {
        if let Event::Stdout(piece) = said {
            verdicts.read(piece);
        }
        if options.console {
            show(boot.name, said);
        }
    });
    Ran { boot, verdicts: verdicts.read_so_far, outcome }
}

impl Ran<'_> {
    fn end(self, tests: usize, kit: &Kit, options: &Options, beside: Option<Self>) -> Ended {
        let Self { boot, verdicts, outcome } = self;
        match outcome {
            Ok(outcome) => {
                let (boot_s, wall_s) = (outcome.boot.as_secs_f64(), outcome.wall.as_secs_f64());
                println!(
                    "         {:<12} {:<10} {}: {tests} tests, {boot_s:.1} s to boot, {wall_s:.1} s in all",
                    boot.kernel.name, boot.name, kit.kernel.release,
                );
                let kept =
                    options.keep.as_deref().map_or(Ok(()), |folder| keep(&folder.join(boot.name), &outcome.files));
                match kept.and(beside.map_or(Ok(()), |beside| beside.check(options))) {
                    Ok(()) => Ended::Ran(verdicts),
                    Err(error) => Ended::Failed(verdicts, format!("{error:#}")),
                }
            }
            Err(error @ GuestError::NoQemu { .. }) => Ended::Skipped(error.to_string()),
            Err(error) => Ended::Failed(verdicts, error.to_string()),
        }
    }

    /// Of the guest beside the one that is told: whether all its tests have passed.
    fn check(self, options: &Options) -> Result<()> {
        let name = self.boot.name;
        let outcome = self.outcome.with_context(|| name.to_owned())?;
        options.keep.as_deref().map_or(Ok(()), |folder| keep(&folder.join(name), &outcome.files))?;
        for test in self.boot.tests {
            match self.verdicts.iter().find(|verdict| verdict.name == test.name) {
                Some(Verdict { wrong: None, .. }) => {}
                Some(Verdict { wrong: Some(wrong), .. }) => bail!("{name}: {}: {wrong}", test.name),
                None => bail!("{name}: {} told nothing", test.name),
            }
        }
        Ok(())
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

fn show(boot: &str, said: Event) {
    match said {
        Event::Console(line) => eprintln!("{boot}: {line}"),
        Event::Booted(release) => eprintln!("{boot}: booted {release}"),
        Event::Stdout(piece) | Event::Stderr(piece) => {
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
