//! `punctual tune --prove --reboot` across real boots. It runs on the host, which boots one guest for each restart: a guest
//! has no disk, so the host carries the search and the unit of systemd from boot to boot. `systemctl` is a stand-in, and the
//! kernel is loaded for kexec, but not started by it.

use std::fs;

use anyhow::{Context, Result, bail, ensure};
use guest::{Event, Guest, Image, Initramfs, Tree, debian};
use record::{
    Proof, State, file,
    proof::{Judgement, Round},
};

use crate::programs::program;

const BEGIN: &str = "punctual tune --prove --reboot --yes --cpus 0 --boot highres=on --duration 3h -- timer --period 1ms \
                     --samples 300";
/// Runs the unit of the search as systemd does, or begins the search; `$1` is the command that begins it. What must survive
/// the restart is returned.
const SCRIPT: &str = r#"
mkdir -p /run/systemd/system /etc/systemd/system /var/lib/punctual
unit=/etc/systemd/system/punctual-prove.service
if [ -f $unit ]; then
    while read -r line; do case $line in ExecStart=*) command=${line#ExecStart=};; esac; done < $unit
else
    command=$1
fi
eval "$command"
status=$?
mkdir -p /out/etc /out/var
cp -r /etc/systemd /out/etc
cp -r /var/lib /out/var
exit $status
"#;
/// The document of the search.
const PROOF: &str = "var/lib/punctual/prove/proof.json";
const UNIT: &str = "etc/systemd/system/punctual-prove.service";
/// Rounds that are really booted at the begin; the others are copies of them, except for the last block.
const BOOTED: usize = 8;

/// The kernel of this machine with its clock ticks only (`highres=off`) is the starting point, and `highres=on` the change to
/// try. A power cut in the second block repeats that block. At the end the change is kept, and the unit is gone.
pub fn a_search_goes_through_its_boots() -> Result<()> {
    let machine = Machine::new()?;
    let mut disk = Tree::default();
    let mut arguments = String::new();
    let mut has_cut = false;
    for boot in 0..40 {
        let ended = machine.boot(&disk, &arguments).with_context(|| format!("boot {boot} with `{arguments}`"))?;
        disk = ended.disk;
        let mut proof = read(&disk)?;
        if proof.state == State::Complete {
            ensure!(ended.restarts.as_deref() == Some("reboot"), "{:?}: {}", ended.restarts, ended.output);
            ensure!(has_cut, "the power cut did not come");
            return check(&proof, &disk, &ended.output);
        }
        ensure!(ended.restarts.as_deref() == Some("kexec"), "{:?}: {}", ended.restarts, ended.output);
        ensure!(disk.contains(UNIT), "there is no unit: {}", ended.output);
        arguments = ended.arguments;
        let rounds = proof.rounds.len();
        if rounds == 6 && !has_cut {
            // The machine comes back with its usual arguments.
            (has_cut, arguments) = (true, String::new());
        } else if rounds == BOOTED {
            copy_rounds(&mut proof)?;
            disk.file(PROOF, file::proof_to_json(&proof));
            // The next boot is for another round than the one that was requested, as after a power cut.
            arguments = String::new();
        }
    }
    bail!("the search did not end: {:?}", read(&disk)?.state)
}

/// The kept change, the rounds, and the printed result.
fn check(proof: &Proof, disk: &Tree, output: &str) -> Result<()> {
    let conclusion = proof.conclusion.as_ref().context("no conclusion")?;
    ensure!(conclusion.kept == [0] && conclusion.effects[0].judgement == Judgement::Helps, "{conclusion:?}");
    ensure!(conclusion.effects[1].judgement == Judgement::NoDifference, "{conclusion:?}");
    let max = |with: bool| {
        let rounds = proof.rounds.iter().filter(move |round| round.applied.contains(&0) == with);
        rounds.map(|round| round.figures[&record::proof::Figure::Max])
    };
    let (worst_with, best_without) = (max(true).fold(0.0, f64::max), max(false).fold(f64::MAX, f64::min));
    ensure!(worst_with < best_without, "each boot without ticks only is better: {worst_with} to {best_without}");
    ensure!(!disk.contains(UNIT), "the unit is still there");
    let keep = "add to the kernel's arguments in your boot loader, in place of highres=off: highres=on";
    ensure!(output.contains(keep), "{output}");
    Ok(())
}

/// Adds rounds up to the last block, with the figures of booted rounds with the same changes.
fn copy_rounds(proof: &mut Proof) -> Result<()> {
    let booted: Vec<Round> = proof.rounds.clone();
    let last = (proof.blocks as usize - 1) * 4;
    while proof.rounds.len() < last {
        let next = analysis::prove::advance(proof).context("the search ended before its last block")?;
        let place = proof.rounds.len() % booted.len();
        let mut order = booted.iter().cycle().skip(place).take(booted.len());
        let same = order.find(|round| round.applied.contains(&0) == next.applied.contains(&0));
        let same = same.context("no booted round has the same changes")?.clone();
        let (compares, applied, is_with) = (next.compares, next.applied, next.is_with);
        proof.rounds.push(Round { block: next.block, compares, applied, is_with, ..same });
    }
    Ok(())
}

fn read(disk: &Tree) -> Result<Proof> {
    let bytes = disk.read(PROOF).context("no document of the search")?;
    file::parse_proof(bytes).map_err(anyhow::Error::msg)
}

/// A machine that is restarted.
struct Machine {
    image: Image,
    initramfs: Initramfs,
}

/// A boot that has ended.
struct Ended {
    disk: Tree,
    /// The argument of `systemctl`.
    restarts: Option<String>,
    /// The kernel arguments of the next boot that the guest's own ones lack.
    arguments: String,
    output: String,
}

impl Machine {
    fn new() -> Result<Self> {
        let kernel = debian::RT_6_12.cached().context("the kernel is not cached")?;
        let mut initramfs = Initramfs::new(kernel.flavour.arch, &program(kernel.flavour.arch, "punctual")?)?;
        for (name, package) in [("sh", "dash"), ("mkdir", "coreutils"), ("cp", "coreutils")] {
            initramfs.host_program(name, package)?;
        }
        initramfs.script("bin/systemctl", "#!/bin/sh\necho \"restarts: $1\"\n");
        initramfs.file(&format!("boot/vmlinuz-{}", kernel.release), fs::read(kernel.packed_image())?);
        initramfs.command(["/bin/sh", "-c", SCRIPT, "sh", BEGIN]);
        Ok(Self { image: kernel.image()?, initramfs })
    }

    /// Boots with this content of the disk.
    fn boot(&self, disk: &Tree, arguments: &str) -> Result<Ended> {
        let mut initramfs = self.initramfs.clone();
        disk.files().for_each(|(path, bytes)| initramfs.file(path, bytes));
        let mut output = String::new();
        let append = format!("highres=off {arguments}");
        let guest = Guest { append, ..Guest::default() };
        let outcome = guest::run(&guest, &self.image, &initramfs, &mut |event| {
            if let Event::Stdout(piece) | Event::Stderr(piece) = event {
                output += &String::from_utf8_lossy(piece);
            }
        })?;
        ensure!(outcome.status == 0, "exit status {}: {output}", outcome.status);
        let mut disk = Tree::default();
        // The lock of the search is left out: the guest returns files without their modes.
        let is_kept = |path: &str| (path.starts_with("etc/") || path.starts_with("var/")) && !path.ends_with(".lock");
        outcome.files.files().filter(|(path, _)| is_kept(path)).for_each(|(path, bytes)| disk.file(path, bytes));
        let line = |start: &str| output.lines().find_map(|line| line.trim().strip_prefix(start).map(str::to_owned));
        let restarts = line("restarts: ");
        let requested = line("boot    ").unwrap_or_default();
        let own = |word: &&str| word.starts_with("highres=") || word.starts_with("punctual.round=");
        let arguments = requested.split(' ').filter(own).collect::<Vec<_>>().join(" ");
        Ok(Ended { disk, restarts, arguments, output })
    }
}
