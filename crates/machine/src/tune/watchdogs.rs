//! The watchdogs for hanging CPUs.

use super::{
    Context, WhyNot, Write,
    away::others,
    old_value::OldValue,
    values::{only_word, switch},
    writes::{each, file},
};
use crate::{CpuList, cpus, facts};

pub(super) const WATCHDOGS: [&str; 2] = ["proc/sys/kernel/nmi_watchdog", "proc/sys/kernel/soft_watchdog"];

/// The reason if the threshold of the watchdogs switches them off, and nobody named the setting.
fn unless_off(context: &Context<'_>) -> Result<(), WhyNot> {
    match !context.is_named && cpus::has_watchdogs_off(context.root) {
        true => Err(WhyNot::NoEffect("no watchdog is on: watchdog_thresh is 0".to_owned())),
        false => Ok(()),
    }
}

pub(super) fn watchdogs(context: &Context<'_>, value: Option<&str>) -> Result<Vec<Write>, WhyNot> {
    unless_off(context)?;
    if !context.is_named
        && let Ok(watched) = cpus::read_list(context.root, cpus::WATCHDOGS)
    {
        let left = context.online.difference(&watched);
        if !context.freed.is_empty() {
            let text = "the watchdogs leave the CPUs for real-time work instead: see kernel.watchdog_cpus";
            return Err(WhyNot::Here(text.to_owned()));
        }
        if !left.is_empty() && !context.is_all_named {
            return Err(WhyNot::NoEffect(format!("the watchdogs leave {} already", left.in_words())));
        }
    }
    let wanted = if switch(value, false)? { "1" } else { "0" };
    let mut paths = WATCHDOGS.map(str::to_owned).to_vec();
    // The file of a kernel without a detector of that kind takes no value.
    paths.retain(|path| !context.root.is_fixed(path));
    each(context, if paths.is_empty() { WATCHDOGS.map(str::to_owned).to_vec() } else { paths }, wanted)
}

pub(super) fn watchdog_cpus(context: &Context<'_>, value: Option<&str>) -> Result<Vec<Write>, WhyNot> {
    const PATH: &str = cpus::WATCHDOGS;
    only_word(value, "away")?;
    unless_off(context)?;
    let others = others(context)?;
    if !context.is_named && WATCHDOGS.iter().all(|path| context.root.number::<u32>(path).is_none_or(|on| on == 0)) {
        return Err(WhyNot::NoEffect("no watchdog is on".to_owned()));
    }
    let from = OldValue::Cpus.read(context, PATH)?;
    let now: CpuList = from.parse().unwrap_or_default();
    // An isolated CPU that is offline now would be interrupted once it is online.
    let away = context.freed.union(&facts::isolated_cpus(context.root));
    let left = now.difference(&away);
    let to = match (left == now, left.is_empty()) {
        (true, _) => from.clone(),
        (false, true) => others.to_string(),
        (false, false) => left.to_string(),
    };
    Ok(vec![file(PATH.to_owned(), from, to)])
}
