//! `punctual tune --prove --reboot`: tries kernel arguments, one boot a round.

use std::{
    ffi::CString,
    fs::File,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, anyhow, bail, ensure};
use campaign::prove::{Changes, NextBoot, ProveError, ProveHandler, Prover, Search};
use machine::{
    Root, online_cpus,
    tune::{
        self, Lock, NewFile,
        reboot::{self, BootChange, Image},
    },
};
use record::{Proof, State, proof::Candidate};
use rustix::io::Errno;
use sys::kexec;

use super::{
    prove::{Monitor, deliver, measurement, print_start},
    with_sudo_and,
};
use crate::{
    cli::{self, Prove, Tune},
    exit::Usage,
    output::{self, executable},
};

/// The folder of the search, which must survive a reboot.
const FOLDER: &str = "/var/lib/punctual/prove";

/// Shows the plan; with --yes, measures the round of this boot, and starts the next one.
pub fn run(options: &Tune, how: &Prove) -> anyhow::Result<u8> {
    sys::signal::count_termination().context("cannot watch for Ctrl-C")?;
    let root = Root::system();
    let mut search = search(options, how, &root)?;
    let dir = how.dir.clone().unwrap_or_else(|| PathBuf::from(FOLDER));
    let files = tune::search_unit(&command_at_boot(how, &search, &dir)?);
    if !options.yes {
        let proof = match how.resume {
            true => Prover::resume(&search, &dir, &root)?.proof().clone(),
            false => search.preview(&root)?,
        };
        return plan(options, &search, &proof, &dir);
    }
    // Others must not change settings during a round, nor remove the unit before the next boot.
    let lock = Lock::take(&root)?;
    search.plan.tune_lock = Some(lock.clone());
    let prover = match how.resume {
        true => Prover::resume(&search, &dir, &root)?,
        false => {
            try_kexec(&root)?;
            Prover::begin(&search, &dir, output::command_line(), &root)?
        }
    };
    // Also to continue a search that an error has stopped.
    install(&lock, &root, &files)?;
    if !options.output.quiet {
        print_start(prover.proof(), search.around_ns(), &dir);
    }
    let mut monitor = Monitor::new(options.output, search.around_ns());
    let (proof, next) = prover.run(&root, &mut monitor);
    monitor.done(&proof);
    match next {
        Ok(Some(next)) => {
            // A boot that cannot be started leaves the search as it is: it is not tried at each boot.
            start(&next).inspect_err(|_| remove(&lock, &root, &files))?;
            Ok(0)
        }
        Ok(None) if proof.state == State::Complete => {
            remove(&lock, &root, &files);
            deliver(options, &proof, &dir)?;
            print_kept(&root, &search, &proof);
            restart_as_usual()?;
            Ok(0)
        }
        Ok(None) => {
            deliver(options, &proof, &dir)?;
            say!("note: stopped; the unit continues at the next boot; to give up: sudo punctual tune --revert");
            Ok(record::Outcome::Inconclusive.exit_status())
        }
        Err(error) => {
            remove(&lock, &root, &files);
            Err(error.into())
        }
    }
}

/// The changes to try, and the measurement of a round.
fn search(options: &Tune, how: &Prove, root: &Root) -> anyhow::Result<Search> {
    let is_placed_at_boot =
        |words: &[String]| !words.is_empty() && cli::measurement(words).cpu_mut().is_some_and(|cpu| cpu.is_none());
    if options.cpus.is_none() && is_placed_at_boot(&how.measurement) {
        return Err(Usage(ProveError::NoCpus.to_string()).into());
    }
    let plan = measurement(&how.measurement, options.cpus.as_ref())?;
    let changes = match (how.boots.is_empty(), &plan.cpus) {
        (false, _) => how.boots.clone(),
        (true, Some(cpus)) => reboot::isolation(root, cpus),
        (true, None) => return Err(Usage("name the CPUs to isolate with --cpus LIST".to_owned()).into()),
    };
    let isolates_all =
        how.boots.is_empty() && plan.cpus.as_ref().is_some_and(|cpus| online_cpus(root).difference(cpus).is_empty());
    ensure!(
        !isolates_all,
        Usage("isolating these CPUs would leave no CPU for other work: name fewer with --cpus".to_owned())
    );
    ensure!(
        !changes.is_empty(),
        Usage(
            "this kernel was booted with all arguments that isolate these CPUs: name others with --boot ARGS"
                .to_owned()
        )
    );
    let kernel = match how.resume {
        // The search has its own; the running kernel can be another one, at any place.
        true => PathBuf::new(),
        false => reboot::running_image(root).map_err(|error| anyhow!(error))?.kernel,
    };
    for kernel in changes.iter().filter_map(|change| change.kernel.as_ref()) {
        ensure!(
            kernel.is_file(),
            Usage(format!("there is no kernel {}: give the path of its image", kernel.display()))
        );
    }
    let candidates = changes.iter().map(|change| Candidate {
        id: change.to_string(),
        change: match &change.kernel {
            Some(_) => format!("boots {change}"),
            None => format!("adds the kernel arguments {change}"),
        },
    });
    Ok(Search {
        plan,
        candidates: candidates.collect(),
        changes: Changes::Boots { changes, kernel },
        budget_ns: how.duration,
    })
}

/// The plan, in words.
fn plan(options: &Tune, search: &Search, proof: &Proof, dir: &Path) -> anyhow::Result<u8> {
    if options.output.quiet {
        return Ok(0);
    }
    print_start(proof, search.around_ns(), dir);
    say!("Nothing was changed yet. Each round restarts the machine by kexec; a power cut, or `reboot`, leads back");
    say!("to the usual boot. Close your work: programs are ended.");
    say!("begin   {}", with_sudo_and("--yes")?);
    Ok(0)
}

/// Loads the running kernel for a restart, and unloads it: an error that each round would have comes now.
fn try_kexec(root: &Root) -> anyhow::Result<()> {
    let image = reboot::running_image(root).map_err(|error| anyhow!(error))?;
    load(&NextBoot { image, arguments: reboot::running_arguments(root) })?;
    kexec::unload().context("cannot unload the kernel again")
}

/// Loads the kernel of the next boot.
fn load(next: &NextBoot) -> anyhow::Result<()> {
    let Image { kernel, initrd } = &next.image;
    let open = |path: &Path| File::open(path).with_context(|| format!("cannot read {}", path.display()));
    let arguments = CString::new(next.arguments.as_str()).context("the kernel arguments contain a NUL")?;
    let initrd = initrd.as_deref().map(open).transpose()?;
    kexec::load(&open(kernel)?, initrd.as_ref(), &arguments).map_err(|error| {
        let remedy = match Errno::from_io_error(&error) {
            Some(Errno::NOSYS) => "; it needs a kernel with CONFIG_KEXEC_FILE",
            Some(Errno::PERM) => "; check kernel.kexec_load_disabled, Secure Boot and /sys/kernel/security/lockdown",
            Some(Errno::NOEXEC) => "; the image must be of this architecture",
            _ => "; with Secure Boot, the image must have a signature that the kernel knows",
        };
        anyhow!("cannot load {} for a restart: {error}{remedy}", kernel.display())
    })
}

/// Restarts the machine with the kernel of the next boot.
fn start(next: &NextBoot) -> anyhow::Result<()> {
    load(next)?;
    say!("boot    {} {}", next.image.kernel.display(), next.arguments);
    if is_systemd() {
        // Returns before the restart; the unit is then ended.
        let status = Command::new("systemctl").arg("kexec").status().context("cannot run systemctl kexec")?;
        ensure!(status.success(), "systemctl kexec failed: {status}");
        return Ok(());
    }
    rustix::fs::sync();
    kexec::start().context("cannot restart with the loaded kernel")
}

/// Restarts the machine as usual at the end of a search, because it runs with the kernel arguments of the last round.
fn restart_as_usual() -> anyhow::Result<()> {
    match is_systemd() {
        true => {
            say!("note: restarting as usual, without the kernel arguments of the last round");
            let status = Command::new("systemctl").arg("reboot").status().context("cannot run systemctl reboot")?;
            ensure!(status.success(), "systemctl reboot failed: {status}");
        }
        false => say!("note: this kernel still has the arguments of the last round: reboot"),
    }
    Ok(())
}

/// Creates the unit that continues at each boot, unless it is there.
fn install(lock: &Lock, root: &Root, files: &[NewFile]) -> anyhow::Result<()> {
    if files.iter().all(|file| root.read(&file.path).as_deref() == Some(file.text.trim_end())) {
        return Ok(());
    }
    if !is_systemd() {
        let command = files[0].text.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap_or_default();
        say!("note: systemd does not run here: continue after each boot with: {command}");
        return Ok(());
    }
    let kept = lock.keep_files(root, files).context("the unit that continues was not created")?;
    match kept.failed.first() {
        Some(failed) => bail!("the unit that continues was not created: {failed}"),
        None => Ok(()),
    }
}

/// Removes the unit.
fn remove(lock: &Lock, root: &Root, files: &[NewFile]) {
    match lock.remove_files(root, files) {
        Ok(remaining) => remaining.iter().for_each(|text| say!("note: remove {text}")),
        Err(error) => say!("note: the unit was not removed: {error}; remove it with: sudo punctual tune --revert"),
    }
}

fn is_systemd() -> bool {
    Path::new("/run/systemd/system").is_dir()
}

/// The steps for the boot loader that make the kept changes last.
fn print_kept(root: &Root, search: &Search, proof: &Proof) {
    let Changes::Boots { changes, .. } = &search.changes else { return };
    let kept = proof.conclusion.iter().flat_map(|conclusion| &conclusion.kept);
    let kept: Vec<&BootChange> = kept.filter_map(|&index| changes.get(index)).collect();
    if let Some(kernel) = kept.iter().find_map(|change| change.kernel.as_ref()) {
        say!("keep    choose {} in the boot loader", kernel.display());
    }
    let arguments: Vec<String> = kept.iter().flat_map(|change| change.arguments.clone()).collect();
    if !arguments.is_empty() {
        // The rounds had those of the running kernel, too.
        let arguments = tune::with_running_isolation(root, arguments);
        tune::steps_for(root, arguments.join(" ")).steps.iter().for_each(|step| say!("keep    {step}"));
    }
}

/// The command of the unit: it names each change, because the running kernel may have some of them.
fn command_at_boot(how: &Prove, search: &Search, dir: &Path) -> anyhow::Result<String> {
    let dir = std::path::absolute(dir).context("cannot find the folder of the search")?;
    let mut words = vec![executable()?.to_string_lossy().into_owned()];
    words.extend(["tune", "--prove", "--reboot", "--resume", "--yes", "--dir"].map(str::to_owned));
    words.push(dir.to_string_lossy().into_owned());
    words.extend(search.plan.cpus.iter().flat_map(|cpus| ["--cpus".to_owned(), cpus.to_string()]));
    words.extend(search.candidates.iter().flat_map(|candidate| ["--boot".to_owned(), candidate.id.clone()]));
    if !how.measurement.is_empty() {
        words.push("--".to_owned());
        words.extend(how.measurement.iter().cloned());
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./:=,@+-% ".contains(c);
    if let Some(word) = words.iter().find(|word| !word.chars().all(is_plain)) {
        let text = format!("`{word}` cannot be written into a unit of systemd: use letters, digits and _./:=,@+-%");
        return Err(Usage(text).into());
    }
    let quoted = words.iter().map(|word| if word.contains(' ') { format!("\"{word}\"") } else { word.clone() });
    Ok(super::in_unit(&quoted.collect::<Vec<_>>().join(" ")))
}
