//! Writes to files of the kernel, and the reasons why there are none.

use super::{Context, Refusal, Target, WhyNot, Write, values::switch};
use crate::{
    Unreadable,
    kernel::{DEBUGFS, MOUNT_DEBUGFS, lacks_debugfs},
};

/// A write to a file.
pub(super) fn file(path: String, from: String, to: String) -> Write {
    Write { target: Target::File(path), from, to, refusal: Refusal::Failure }
}

/// The same value for each file.
pub(super) fn each(context: &Context<'_>, paths: Vec<String>, to: &str) -> Result<Vec<Write>, WhyNot> {
    each_unless(context, paths, to, |_| false)
}

/// The same value for each file, except for those whose value is good enough. Files that do not exist are left out.
pub(super) fn each_unless(
    context: &Context<'_>,
    paths: Vec<String>,
    to: &str,
    is_good: impl Fn(&str) -> bool,
) -> Result<Vec<Write>, WhyNot> {
    let mut writes = Vec::new();
    let mut absent = None;
    for path in paths {
        match context.root.try_read(&path) {
            Ok(text) => {
                let from = crate::journal::present(&text).to_owned();
                let to = if is_good(&from) { from.clone() } else { to.to_owned() };
                writes.push(file(path, from, to));
            }
            Err(Unreadable::Absent) => absent = absent.or(Some(path)),
            Err(why) => return Err(WhyNot::Here(format!("/{path}: {why}"))),
        }
    }
    match absent {
        _ if !writes.is_empty() => Ok(writes),
        Some(path) => Err(absent_file(context, &path)),
        None => Err(no_device(context)),
    }
}

/// The reason if a file does not exist.
pub(super) fn absent_file(context: &Context<'_>, path: &str) -> WhyNot {
    WhyNot::Here(match path.starts_with(DEBUGFS) && lacks_debugfs(context.root) {
        true => format!("debugfs is not mounted: `{MOUNT_DEBUGFS}`"),
        false => format!("this machine has no /{path}"),
    })
}

/// The reason if there is nothing to change: it cannot be read, or the machine does not have it.
pub(super) fn no_device(context: &Context<'_>) -> WhyNot {
    WhyNot::Here(match context.root.take_unread().first() {
        _ if context.online.is_empty() => UNREAD_CPUS.to_owned(),
        Some(unread) => format!("/{}: {}", unread.path, unread.why),
        None => "this machine has no such device".to_owned(),
    })
}

pub(super) const UNREAD_CPUS: &str = "/sys/devices/system/cpu/online cannot be read, so the CPUs are not known";

/// A file of each CPU whose settings change.
pub(super) fn cpu_files(context: &Context<'_>, pattern: &str) -> Vec<String> {
    context.cpus.iter().map(|cpu| pattern.replace('#', &cpu.to_string())).collect()
}

pub(super) fn sysctl_switch(context: &Context<'_>, value: Option<&str>, path: &str) -> Result<Vec<Write>, WhyNot> {
    each(context, vec![path.to_owned()], if switch(value, false)? { "1" } else { "0" })
}
