//! `punctual check`: the settings of the whole machine.

use std::time::Duration;

use analysis::{Judges, Profile, format_ns, nearest};
use machine::{Check, InterruptWatch, PUNCTUAL};
use record::{Finding, FindingState, Machine, Outcome, Record, TIMER, USE_MEASURED};
use report::{export::Format, terminal::CheckCommands};
use serde_json::{Value, json};

use super::status;
use crate::{
    cli::CheckMachine,
    exit::Usage,
    last::newest_record,
    output::{self, Export, command_of},
};

/// Findings that matter to the users of a sound card only.
const SOUND: &str = "sound.";

pub fn run(options: &CheckMachine) -> anyhow::Result<u8> {
    let exports = Export::among(&options.exports, &Format::OF_FINDINGS)?;
    let profile = match &options.profile {
        Some(name) => Some(analysis::find_profile(name).map_err(|error| Usage(error.to_string()))?),
        None => None,
    };
    let root = output::root(options.root.as_ref())?.at_once();
    let mut watched = root.is_system().then(|| InterruptWatch::begin(&root)).flatten();
    let machine = ::machine::facts(&root);
    let limit_ns = profile.as_ref().and_then(|profile| u64::try_from(profile.limit_ns).ok());
    if let Some(watched) = &mut watched {
        watched.finish(&root, options.storm_window.map(Duration::from_nanos));
    }
    let mut findings = ::machine::findings(&root, &machine, limit_ns, watched.as_ref());
    if let Some(profile) = &profile {
        judge_for(&mut findings, profile, &machine);
    }
    let this_binary = record::shell::command(&[output::executable()?.to_string_lossy()]);
    for finding in &mut findings {
        finding.remedy = finding.remedy.replace(PUNCTUAL, &this_binary);
    }
    if let Some(id) = &options.explain {
        findings.retain(|finding| finding.id == *id);
        let Some(finding) = findings.first() else { return Err(unknown_id(id).into()) };
        explain(options, finding)?;
        return Ok(status(&findings, options.fail_on));
    }
    for export in &exports {
        if let Some(bytes) = export.format().findings(&machine, &findings) {
            export.write_bytes(&bytes)?;
        }
    }
    output::print_exports(options.output, &exports);
    if options.output.json {
        let findings: Vec<Value> = findings.iter().map(with_source).collect();
        let json = json!({ "machine": machine, "findings": findings });
        output::stdout(|out| writeln!(out, "{}", output::json(&json)))?;
    } else if !exports.is_empty() {
        // As for a record, exports replace the text.
    } else if options.output.quiet {
        output::print(options.output, |style, width| report::terminal::machine_headline(&findings, style, width))?;
    } else if options.extent.full {
        output::print(options.output, |style, width| report::terminal::findings(&findings, style, width))?;
    } else {
        let commands = commands(options);
        output::print(options.output, |style, width| {
            report::terminal::findings_answer(&findings, &commands, style, width)
        })?;
    }
    Ok(status(&findings, options.fail_on))
}

/// The commands that say more about this check.
fn commands(options: &CheckMachine) -> CheckCommands {
    let root = options.root.as_ref().map(|root| root.to_string_lossy());
    let named = [("--for", options.profile.as_deref()), ("--root", root.as_deref())];
    let command = command_of(&["punctual", "check"], &named);
    CheckCommands { explain: format!("{command} --explain"), full: format!("{command} --full") }
}

fn explain(options: &CheckMachine, finding: &Finding) -> anyhow::Result<()> {
    if options.output.json {
        return output::stdout(|out| writeln!(out, "{}", output::json(&with_source(finding))));
    }
    let (subject, source) = match check_of(&finding.id) {
        Some(check) => (check.subject, check.source),
        None => ("whether this kernel held the limit in the newest record here", "the record"),
    };
    output::print(options.output, |style, width| {
        report::terminal::finding_explained(finding, subject, source, style, width)
    })?;
    Ok(())
}

fn check_of(id: &str) -> Option<&'static Check> {
    ::machine::checks().find(|check| check.id == id)
}

/// The finding with what was checked, and the source of the reason.
fn with_source(finding: &Finding) -> Value {
    let mut value = json!(finding);
    if let Some(check) = check_of(&finding.id) {
        value["subject"] = json!(check.subject);
        value["source"] = json!(check.source);
    }
    value
}

fn unknown_id(id: &str) -> Usage {
    if id.trim().is_empty() {
        return Usage("--explain needs the id of a finding: `punctual check --full` lists all".to_owned());
    }
    if id.starts_with("nic.") {
        return Usage(format!("{id}: findings of a network card are in `punctual check nic INTERFACE --full`"));
    }
    let meant = match nearest(id, ::machine::checks().map(|check| check.id)) {
        Some(known) => format!("did you mean {known}?"),
        None => "`punctual check --full` lists all".to_owned(),
    };
    Usage(format!("there is no finding {id}: {meant}"))
}

/// Adds whether this kernel held the limit of the use in the newest record here, and sets aside what does not matter to
/// the use.
fn judge_for(findings: &mut Vec<Finding>, profile: &Profile, machine: &Machine) {
    let (measured, has_load) = measured(profile, machine);
    // A machine at rest says little about the delays of a kernel.
    if measured.state == FindingState::Ok
        && has_load
        && let Some(preempt) = findings.iter_mut().find(|finding| finding.id == "kernel.preempt")
        && preempt.state != FindingState::Ok
    {
        *preempt = Finding {
            id: preempt.id.clone(),
            state: FindingState::Ok,
            title: format!("no real-time kernel needed for {}: {}", profile.name, measured.title),
            evidence: format!("{}, {}", preempt.evidence, measured.evidence),
            ..Finding::default()
        };
    }
    if profile.group != "audio" {
        for finding in findings.iter_mut().filter(|finding| finding.id.starts_with(SOUND)) {
            *finding = Finding {
                id: finding.id.clone(),
                state: FindingState::NotApplicable,
                title: format!("{} uses no sound card", profile.name),
                evidence: finding.evidence.clone(),
                ..Finding::default()
            };
        }
    }
    findings.insert(0, measured);
}

/// The verdict of the newest record here about the use, if this machine made it with this kernel, and whether a load ran
/// meanwhile.
fn measured(profile: &Profile, machine: &Machine) -> (Finding, bool) {
    let finding = |state, title: String, evidence: String| Finding {
        id: USE_MEASURED.to_owned(),
        state,
        title,
        evidence,
        ..Finding::default()
    };
    let (about, measurement) = match profile.judges {
        Judges::WakeUps => ("`measure timer`", "measure timer"),
        Judges::RoundTrips => ("round trips", "measure udp HOST"),
    };
    let measure = format!("{PUNCTUAL} {measurement} --duration 1m --load cpu --profile {}", profile.argument);
    let unmeasured = |evidence: String| {
        let title = format!("not measured for {} with this kernel", profile.name);
        let unknown = Finding {
            why: "Settings do not show how late a machine is.".to_owned(),
            remedy: format!("sudo {measure}"),
            ..finding(FindingState::Unknown, title, evidence)
        };
        (unknown, false)
    };
    let Ok(path) = newest_record() else {
        return unmeasured("/proc/sys/kernel/osrelease: no record in this folder".to_owned());
    };
    let Ok(record) = record::file::read(&path) else { return unmeasured(format!("{}: not readable", path.display())) };
    let Record { machine: then, .. } = &record;
    if (&then.hostname, &then.kernel, &then.kernel_build) != (&machine.hostname, &machine.kernel, &machine.kernel_build)
    {
        return unmeasured(format!("{}: of another machine or kernel", path.display()));
    }
    let is_about_use = match profile.judges {
        Judges::WakeUps => record.scenario.probe == TIMER,
        Judges::RoundTrips => record.series.iter().any(|series| series.kind.round_trip().is_some()),
    };
    if !is_about_use {
        return unmeasured(format!("{}: not of {about}", path.display()));
    }
    let has_load = record.phases.iter().any(|phase| !phase.loads.is_empty());
    let verdict = analysis::judge(&record, profile);
    let limit = format_ns(profile.limit_ns);
    let evidence = format!("{}: {}", path.display(), verdict.reason);
    let found = match verdict.outcome {
        Outcome::Pass => {
            let rest = if has_load { "" } else { ", at rest only" };
            finding(FindingState::Ok, format!("this kernel held {limit} in the newest record{rest}"), evidence)
        }
        Outcome::Fail => Finding {
            why: verdict.reason,
            remedy: format!("punctual blame {}", record::shell::command(&[path.to_string_lossy()])),
            ..finding(FindingState::Fail, format!("this kernel did not hold {limit} in the newest record"), evidence)
        },
        _ => return unmeasured(evidence),
    };
    (found, has_load)
}
