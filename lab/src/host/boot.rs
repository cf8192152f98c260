//! Boots one guest and its peer, if any; collects the results and stores the returned files.

use std::{
    fs, io,
    path::{Component, Path},
    thread,
};

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
        Ok((near, far)) => near.finish(tests.len(), kit, options, far),
        Err(error) => Ended::Failed(Vec::new(), format!("{error:#}")),
    }
}

/// Boots the guest and its peer.
fn try_run<'a>(boot: &'a Boot, kit: &Kit, options: &Options) -> Result<(EndedGuest<'a>, Option<EndedGuest<'a>>)> {
    let image = kit.kernel.image()?;
    let Some((peer, initramfs)) = boot.peer.zip(kit.peer.as_ref()) else {
        return Ok((boot_one(boot, connected_cards(boot), &image, &kit.initramfs, options), None));
    };
    let links = boot.cards.iter().map(|_| Link::pair()).collect::<io::Result<Vec<_>>>()?;
    let of = |side: usize| -> Vec<Card> {
        let card = |(&model, link): (&Model, &[Link; 2])| Card { model, link: link[side].clone() };
        boot.cards.iter().zip(&links).map(card).collect()
    };
    thread::scope(|scope| {
        let far = scope.spawn(|| boot_one(peer, of(1), &image, initramfs, options));
        let near = boot_one(boot, of(0), &image, &kit.initramfs, options);
        let far = far.join().map_err(|_| anyhow!("the thread of the peer guest panicked"))?;
        Ok((near, Some(far)))
    })
}

/// Two connected cards of each model.
fn connected_cards(boot: &Boot) -> Vec<Card> {
    let two = |(number, &model): (usize, &Model)| [0, 1].map(|_| Card { model, link: Link::Internal(number) });
    boot.cards.iter().enumerate().flat_map(two).collect()
}

/// A guest that has ended.
struct EndedGuest<'a> {
    boot: &'a Boot,
    verdicts: Vec<Verdict>,
    outcome: Result<Outcome, GuestError>,
}

fn boot_one<'a>(
    boot: &'a Boot,
    cards: Vec<Card>,
    image: &Image,
    initramfs: &Initramfs,
    options: &Options,
) -> EndedGuest<'a> {
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
    let outcome = guest::run(&guest, image, initramfs, &mut |event| {
        if let Event::Stdout(piece) = event {
            verdicts.read(piece);
        }
        if options.console {
            show(boot.name, event);
        }
    });
    EndedGuest { boot, verdicts: verdicts.complete, outcome }
}

impl EndedGuest<'_> {
    fn finish(self, tests: usize, kit: &Kit, options: &Options, peer: Option<Self>) -> Ended {
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
                match kept.and(peer.map_or(Ok(()), |peer| peer.check(options))) {
                    Ok(()) => Ended::Ran(verdicts),
                    Err(error) => Ended::Failed(verdicts, format!("{error:#}")),
                }
            }
            Err(error @ GuestError::NoQemu { .. }) => Ended::Skipped(error.to_string()),
            Err(error) => Ended::Failed(verdicts, error.to_string()),
        }
    }

    /// Checks that all tests of a peer guest have passed.
    fn check(self, options: &Options) -> Result<()> {
        let name = self.boot.name;
        let outcome = self.outcome.with_context(|| name.to_owned())?;
        options.keep.as_deref().map_or(Ok(()), |folder| keep(&folder.join(name), &outcome.files))?;
        for test in self.boot.tests {
            match self.verdicts.iter().find(|verdict| verdict.name == test.name) {
                Some(Verdict { wrong: None, .. }) => {}
                Some(Verdict { wrong: Some(wrong), .. }) => bail!("{name}: {}: {wrong}", test.name),
                None => bail!("{name}: {} has no result", test.name),
            }
        }
        Ok(())
    }
}

/// Collects verdicts from the output of the tests.
#[derive(Default)]
struct Verdicts {
    line: Vec<u8>,
    complete: Vec<Verdict>,
}

impl Verdicts {
    fn read(&mut self, piece: &[u8]) {
        for &byte in piece {
            if byte == b'\n' {
                self.complete.extend(Verdict::parse(&String::from_utf8_lossy(&self.line)));
                self.line.clear();
            } else {
                self.line.push(byte);
            }
        }
    }
}

fn show(boot: &str, event: Event) {
    match event {
        Event::Console(line) => eprintln!("{boot}: {line}"),
        Event::Booted(release) => eprintln!("{boot}: booted {release}"),
        Event::Stdout(piece) | Event::Stderr(piece) => {
            String::from_utf8_lossy(piece).lines().for_each(|line| eprintln!("{boot}> {line}"));
        }
    }
}

fn keep(folder: &Path, files: &Tree) -> Result<()> {
    for (name, bytes) in files.files() {
        // A name such as `../a` would be outside the folder.
        let is_below = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        anyhow::ensure!(is_below, "the guest returned a file with the name {name:?}");
        let path = folder.join(name);
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
        fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
