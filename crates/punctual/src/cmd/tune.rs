//! `punctual tune`: shows the settings of this machine that would change, changes them, and restores them.

mod prove;
mod reboot;

use std::fmt::Write;

use anyhow::{Context, bail, ensure};
use campaign::leftovers;
use machine::{
    Restored, Root,
    init::Init,
    journal,
    tune::{self, AdvisedLine, Boot, Firmware, Kept, KeptFiles, Need, NewFile, NotHere, Plan, Refused, Setting},
};
use serde_json::json;

use crate::{
    cli::Tune,
    exit::Usage,
    output::{self, executable},
};

/// Lines of settings in the short answer, so that it fits on a terminal of 24 lines.
const SETTINGS_SHOWN: usize = 12;
/// Columns of a line.
const COLUMNS: usize = 80;

/// The reason and remedy if files of the kernel are read-only.
const READ_ONLY: &str = "what is not right is read-only, e.g. in a container: run on the host";

/// Everything that `tune` would do, or has done.
struct Tuned {
    plan: Plan,
    boot: Option<Boot>,
    firmware: Option<Firmware>,
    by_hand: Vec<String>,
    files: Vec<NewFile>,
    /// Files that have no effect, with the reason.
    without_effect: Vec<String>,
}

pub fn run(options: &Tune) -> anyhow::Result<u8> {
    let root = output::root(options.root.as_ref())?;
    let is_allowed = !root.is_system() || rustix::process::geteuid().is_root();
    // A search with reboots only shows its plan without --yes.
    let is_searched = options.how.prove && !options.how.reboot;
    if (options.yes || options.revert || is_searched) && !is_allowed {
        bail!("nothing was changed, because this needs root: {}", with_sudo()?);
    }
    if options.revert {
        return revert(options, &root);
    }
    if (options.yes || is_searched) && root.is_system() {
        // Otherwise the values of a killed run would seem to be those of the user.
        leftovers::restore(&root)?.iter().for_each(|restored| say!("note: {}", restored.in_words()));
    }
    if options.how.reboot {
        return reboot::run(options, &options.how);
    }
    if options.how.prove {
        return prove::run(options, &options.how, &need(options)?);
    }
    let tuned = read(options, &root)?;
    if let Some(first) = impossible(&tuned.plan).filter(|_| options.yes) {
        bail!("nothing was changed: {} cannot be changed: {}", first.id, first.reason);
    }
    let (kept, KeptFiles { replaced, failed }) = if options.yes {
        // The files come first: if they cannot be journalled, nothing is changed.
        let files = match tuned.files.is_empty() {
            true => KeptFiles::default(),
            false => tune::keep_files(&root, &tuned.files).context("no setting was changed")?,
        };
        let is_created = files.failed.len() < tuned.files.len();
        let kept = tune::keep(&root, &tuned.plan.changes).with_context(|| match is_created {
            true => format!("files of systemd were created (undo: {}), but no setting was changed", undo(options)),
            false => "nothing was changed".to_owned(),
        })?;
        (Some(kept), files)
    } else {
        (None, KeptFiles::default())
    };
    if options.output.json {
        let Tuned { plan, boot, firmware, by_hand, files, without_effect } = &tuned;
        let (applied, refused) = kept.as_ref().map(|kept| (&kept.applied, &kept.refused)).unzip();
        let json = json!({
            "plan": plan, "boot": boot, "firmware": firmware, "by_hand": by_hand, "files": files,
            "without_effect": without_effect,
            "applied": applied, "refused": refused, "files_failed": failed, "killed_runs": journal::left_behind(&root),
            "damaged_journal": tune::check_journals(&root).err().map(|error| error.to_string()),
        });
        output::stdout(|out| writeln!(out, "{}", output::json(&json)))?;
    } else {
        let text = match &kept {
            Some(kept) => done(&tuned, kept, (&replaced, &failed), &undo(options)),
            None if options.extent.full => leftovers_line(options, &root) + &full(&tuned)?,
            None => leftovers_line(options, &root) + &short(&tuned, tune::in_force(&root), &undo(options))?,
        };
        let text = if options.output.quiet { text.lines().next().unwrap_or_default() } else { text.trim_end() };
        output::stdout(|out| writeln!(out, "{text}"))?;
    }
    let is_refused = match &kept {
        Some(kept) => {
            is_read_only(&tuned.plan) || kept.refused.iter().any(|refused| refused.is_whole && !refused.is_by_drivers)
        }
        None => impossible(&tuned.plan).is_some(),
    };
    Ok(u8::from(is_refused || !failed.is_empty()))
}

/// The purpose of the plan.
fn need(options: &Tune) -> anyhow::Result<Need> {
    let profile = match &options.profile {
        Some(time) if analysis::duration::parse_ns(time).is_ok() => {
            let text = format!("--for names a profile: the time of a search is `tune --prove --duration {time}`");
            return Err(Usage(text).into());
        }
        Some(name) => Some(analysis::find_profile(name).map_err(|error| Usage(error.to_string()))?),
        None => None,
    };
    Ok(Need {
        cpus: options.cpus.clone(),
        set: options.settings.clone(),
        only: options.only.clone(),
        without: options.without.clone(),
        limit_ns: profile.and_then(|profile| u64::try_from(profile.limit_ns).ok()),
    })
}

/// Reads this machine. Changes nothing.
fn read(options: &Tune, root: &Root) -> anyhow::Result<Tuned> {
    let plan = tune::plan(root, &need(options)?).map_err(|error| Usage(error.to_string()))?;
    let cpus = options.cpus.clone().unwrap_or_else(|| machine::isolated_cpus(root));
    let mut files: Vec<NewFile> =
        options.service.iter().map(|service| tune::drop_in(service, options.cpus.as_ref())).collect();
    let is_systemd = Init::of(root) == Init::Systemd;
    ensure!(
        is_systemd || options.service.is_none(),
        Usage(format!(
            "services are started by {} here, and --service is for systemd: leave it out",
            Init::of(root).name()
        ))
    );
    if options.persist {
        let place = match is_systemd && !root.is_system() {
            true => format!("there is no systemd in {}", root.path("").display().to_string().trim_end_matches('/')),
            false => "this machine does not run systemd".to_owned(),
        };
        ensure!(Init::has_systemd(root), Usage(format!("{place}, whose unit tunes at each boot: leave out --persist")));
        files.extend(tune::unit(root, &command_at_boot()?));
    }
    let (boot, firmware) = (tune::boot(root, &cpus), tune::firmware(root, &plan));
    let without_effect = options.service.iter().filter_map(|service| tune::without_effect(root, service)).collect();
    Ok(Tuned { plan, boot, firmware, by_hand: tune::by_hand(root, &cpus), files, without_effect })
}

fn revert(options: &Tune, root: &Root) -> anyhow::Result<u8> {
    let restored = tune::revert(root)?;
    output::stdout(|out| {
        if options.output.json {
            return writeln!(out, "{}", output::json(&json!({ "restored": restored })));
        }
        if restored.is_empty() {
            return writeln!(out, "nothing to revert");
        }
        restored.iter().try_for_each(|restored| writeln!(out, "{}", restored.in_words()))
    })?;
    Ok(u8::from(restored.iter().any(|Restored { put_back, .. }| !put_back.failed.is_empty())))
}

/// The answer on one screen.
fn short(tuned: &Tuned, in_force: usize, undo: &str) -> anyhow::Result<String> {
    let Tuned { plan, boot, firmware, by_hand, files, without_effect } = tuned;
    let mut text = String::new();
    for not in plan.not_here.iter().filter(|not| not.is_named) {
        let _ = writeln!(text, "{} cannot be changed: {}", not.id, not.reason);
    }
    text += &match plan.changes.len() {
        0 if is_read_only(plan) => format!("No setting would change: {READ_ONLY}\n"),
        0 => "No setting would change.\n".to_owned(),
        1 => "1 setting would change. Nothing was changed yet. Risk and source: --full\n".to_owned(),
        count => format!("{count} settings would change. Nothing was changed yet. Risks and sources: --full\n"),
    };
    text += &lines(&plan.changes);
    let counts = [
        ("already right", plan.right.len()),
        ("not possible here", plan.not_here.len()),
        ("only on request", plan.on_request.len()),
    ];
    let counts = counts.iter().filter(|(_, count)| *count > 0).map(|(name, count)| format!("{name}: {count}"));
    let counts = counts.collect::<Vec<_>>().join(", ");
    if !counts.is_empty() {
        let _ = writeln!(text, "Others: {counts}.");
    }
    if boot.is_some() || firmware.is_some() || !by_hand.is_empty() {
        text += "Further steps by hand, e.g. kernel arguments: --full\n";
    }
    for file in files {
        let _ = writeln!(text, "  creates /{}", file.path);
    }
    without_effect.iter().for_each(|why| text += &format!("  but {why}\n"));
    if in_force > 0 {
        let values = record::counted(in_force as u64, "value");
        let _ = writeln!(text, "An earlier tune is in force ({values}): {undo}");
    }
    if can_apply(tuned) {
        let _ = writeln!(text, "apply  {}   # until --revert or a reboot", with_sudo_and("--yes")?);
    }
    let _ = writeln!(text, "more   {}", with_option("--full"));
    Ok(text)
}

/// The first setting that the user named and that cannot be changed here, so that --yes changes nothing.
fn impossible(plan: &Plan) -> Option<&NotHere> {
    plan.not_here.iter().find(|not| not.is_named)
}

/// True if --yes would change something.
fn can_apply(Tuned { plan, files, .. }: &Tuned) -> bool {
    impossible(plan).is_none() && !(plan.changes.is_empty() && files.is_empty())
}

/// True if a setting would change, but is read-only here.
fn is_read_only(plan: &Plan) -> bool {
    plan.not_here.iter().any(|not| not.is_read_only)
}

/// One line for each setting.
fn lines(settings: &[Setting]) -> String {
    let mut text = String::new();
    for setting in settings.iter().take(SETTINGS_SHOWN) {
        let (from, to) = values(setting);
        let line = format!("  {:<22} {:<24} {}", setting.id, format!("{from} -> {to}"), setting.effect);
        // Long values leave no room: the effect is on a line of its own.
        let line = match line.chars().count() > COLUMNS {
            true => format!("  {:<22} {from} -> {to}\n{:50}{}", setting.id, "", setting.effect),
            false => line,
        };
        let _ = writeln!(text, "{line}");
        if let Some(note) = &setting.note {
            let _ = writeln!(text, "    but {note}");
        }
    }
    if settings.len() > SETTINGS_SHOWN {
        let _ = writeln!(text, "  and {} more", settings.len() - SETTINGS_SHOWN);
    }
    text
}

fn values(setting: &Setting) -> (String, String) {
    let changes: Vec<_> = setting.changes().collect();
    (Setting::values(&changes, |write| &write.from), Setting::values(&changes, |write| &write.to))
}

/// Everything about each setting.
fn full(tuned: &Tuned) -> anyhow::Result<String> {
    let Tuned { plan, boot, firmware, by_hand, files, without_effect } = tuned;
    let mut text = String::new();
    for setting in &plan.changes {
        let _ = writeln!(text, "{}: {}", setting.id, setting.name);
        for write in setting.changes() {
            let [from, to] = [&write.from, &write.to].map(|value| write.target.in_words(value));
            let _ = writeln!(text, "  {}: {from} -> {to}", write.target);
        }
        let Setting { effect, risk, source, .. } = setting;
        let _ = writeln!(text, "  effect  {effect}\n  risk    {risk}\n  lasts   until --revert or the next boot");
        let _ = writeln!(text, "  source  {source}");
        if let Some(note) = &setting.note {
            let _ = writeln!(text, "  note    {note}");
        }
    }
    if !plan.right.is_empty() {
        text += "Already right:\n";
    }
    for setting in &plan.right {
        let writes: Vec<_> = setting.writes.iter().collect();
        let _ = writeln!(text, "  {:<23} {}", setting.id, Setting::values(&writes, |write| &write.from));
    }
    if !plan.not_here.is_empty() {
        text += "Not possible here:\n";
    }
    for not in &plan.not_here {
        let _ = writeln!(text, "  {:<23} {}", not.id, not.reason);
    }
    if !plan.on_request.is_empty() {
        text += "Only on request, with --setting ID=VALUE:\n";
    }
    for request in &plan.on_request {
        let _ = writeln!(
            text,
            "  {:<23} {}\n    values  {}\n    risk    {}",
            request.id, request.name, request.values, request.risk
        );
    }
    for file in files {
        let _ = writeln!(text, "Creates /{}:", file.path);
        file.text.lines().for_each(|line| text += &format!("  {line}\n"));
    }
    without_effect.iter().for_each(|why| text += &format!("But {why}\n"));
    if let Some(boot) = boot {
        let loader = boot.loader.unwrap_or("unknown boot loader");
        let _ = writeln!(text, "Kernel arguments ({loader}), which tune never writes:");
        boot.steps.iter().for_each(|step| text += &format!("  {step}\n"));
    }
    if let Some(Firmware { path, lines }) = firmware {
        let path = path.map_or("config.txt of the boot partition".to_owned(), |path| format!("/{path}"));
        let _ = writeln!(text, "Add to {path}, below a line [all], which tune never writes:");
        for AdvisedLine { line, effect, risk, source } in lines {
            let _ = writeln!(text, "  {line}\n    effect  {effect}\n    risk    {risk}\n    source  {source}");
        }
        text += "  reboot; `punctual check` shows if they took effect\n";
    }
    if !by_hand.is_empty() {
        text += "By hand:\n";
        by_hand.iter().for_each(|step| text += &format!("  {step}\n"));
    }
    if can_apply(tuned) {
        let _ = writeln!(text, "apply  {}", with_sudo_and("--yes")?);
    }
    Ok(text)
}

/// The answer after the changes.
fn done(tuned: &Tuned, kept: &Kept, (replaced, failed): (&[String], &[String]), undo: &str) -> String {
    let Kept { applied, refused } = kept;
    let mut text = match applied.len() {
        0 if refused.is_empty() && is_read_only(&tuned.plan) => format!("No setting was changed: {READ_ONLY}\n"),
        0 => "No setting was changed.\n".to_owned(),
        1 => "Changed 1 setting.\n".to_owned(),
        count => format!("Changed {count} settings.\n"),
    };
    text += &lines(applied);
    for not in tuned.plan.not_here.iter().filter(|not| not.is_read_only && !applied.is_empty()) {
        let _ = writeln!(text, "  not changed: {}: {}", not.id, not.reason);
    }
    for Refused { id, reason, is_whole, .. } in refused {
        let part = if *is_whole { "" } else { "a part of " };
        let _ = writeln!(text, "  not changed: {part}{id}: {reason}");
    }
    let is_failed = |file: &&NewFile| failed.iter().any(|text| text.starts_with(&format!("/{}:", file.path)));
    let created: Vec<&NewFile> = tuned.files.iter().filter(|file| !is_failed(file)).collect();
    for file in &created {
        let word = if replaced.contains(&file.path) { "replaced" } else { "created" };
        let _ = writeln!(text, "  {word} /{}", file.path);
    }
    tuned.without_effect.iter().for_each(|why| text += &format!("  but {why}\n"));
    failed.iter().for_each(|text_of_one| text += &format!("  not created: {text_of_one}\n"));
    if !created.is_empty() {
        text += "next   sudo systemctl daemon-reload, then restart the services concerned\n";
    }
    if !applied.is_empty() || !created.is_empty() {
        let _ = writeln!(text, "undo   {undo}");
    }
    text
}

/// A line about earlier changes that remain. The plan cannot distinguish their values from the user's own.
fn leftovers_line(options: &Tune, root: &Root) -> String {
    if let Err(damaged) = tune::check_journals(root) {
        return format!("--yes would refuse: {damaged}\n");
    }
    let processes = journal::left_behind(root);
    let Some(first) = processes.first() else { return String::new() };
    let runs = match processes.len() {
        1 => format!("Process {first} was killed and its changes remain"),
        count => format!("{count} processes were killed and their changes remain"),
    };
    let remedy = if root.is_system() { "sudo punctual restore".to_owned() } else { undo(options) };
    format!("{runs}, as if they were yours: {remedy}\n")
}

/// The command that undoes the changes.
fn undo(options: &Tune) -> String {
    let folder = options.root.as_ref().map(|folder| folder.to_string_lossy());
    let of_root = folder.iter().flat_map(|folder| ["--root", folder]);
    let words: Vec<&str> = ["sudo", "punctual", "tune"].into_iter().chain(of_root).chain(["--revert"]).collect();
    record::shell::command(&words)
}

/// The command of the unit: this one without --persist and --root.
fn command_at_boot() -> anyhow::Result<String> {
    let executable = executable()?.to_string_lossy().into_owned();
    let mut words = vec![executable];
    let mut given = output::command_line().into_iter().skip(1);
    while let Some(word) = given.next() {
        match word.as_str() {
            "--persist" => {}
            // The unit runs on the machine itself.
            "--root" => drop(given.next()),
            word if word.starts_with("--root=") => {}
            _ => words.push(word),
        }
    }
    // Other characters have a meaning in units of systemd.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./:=,@+-%".contains(c);
    for word in &words {
        ensure!(
            word.chars().all(is_plain),
            Usage(format!(
                "`{word}` cannot be written into a unit of systemd: use a path and values without blanks and quotes"
            ))
        );
        let is_relative_file = word.ends_with(".toml") && !word.contains("/") || word.starts_with("./");
        ensure!(!is_relative_file, Usage(format!("the unit needs the whole path of {word}")));
    }
    Ok(in_unit(&words.join(" ")))
}

/// The text in a unit of systemd, which replaces other words that begin with `%` (systemd.unit(5), Specifiers).
fn in_unit(text: &str) -> String {
    text.replace('%', "%%")
}

fn with_sudo() -> anyhow::Result<String> {
    let executable = executable()?.to_string_lossy().into_owned();
    let words = output::command_line().into_iter().skip(1);
    let words: Vec<String> = ["sudo".to_owned(), executable].into_iter().chain(words).collect();
    Ok(record::shell::command(&words.iter().map(String::as_str).collect::<Vec<_>>()))
}

/// This command with another option, without --full.
fn with_option(option: &str) -> String {
    let given = output::command_line().into_iter().skip(1).filter(|word| word != "--full");
    let mut words: Vec<String> = ["punctual".to_owned()].into_iter().chain(given).collect();
    // The words after `--` are those of a measurement.
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    words.insert(end, option.to_owned());
    record::shell::command(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

fn with_sudo_and(option: &str) -> anyhow::Result<String> {
    Ok(format!("sudo {}", with_option(option)))
}
