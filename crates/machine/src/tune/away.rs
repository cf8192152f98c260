//! Other work leaves the CPUs for real-time work.

use super::{
    Context, WhyNot, Write,
    values::only_word,
    writes::{UNREAD_CPUS, file},
};
use crate::{CpuList, Unreadable, facts, shield};

/// The CPUs for other work.
pub(super) fn others(context: &Context<'_>) -> Result<CpuList, WhyNot> {
    match context.freed.is_empty() {
        true if context.online.is_empty() => Err(WhyNot::Here(UNREAD_CPUS.to_owned())),
        true if context.online.len() < 2 => Err(WhyNot::Here("there is no other CPU".to_owned())),
        true if context.is_all_named => {
            Err(WhyNot::Here("no CPU would remain for other work: name fewer with --cpus".to_owned()))
        }
        true => Err(WhyNot::Here("no CPU is set apart for real-time work: name some with --cpus".to_owned())),
        false => Ok(context.online.difference(&context.freed)),
    }
}

/// A mask without the CPUs for real-time work.
pub(super) fn away(context: &Context<'_>, value: Option<&str>, path: &str) -> Result<Vec<Write>, WhyNot> {
    only_word(value, "away")?;
    let others = others(context)?;
    let from = match context.root.try_read(path) {
        Ok(from) => from,
        Err(Unreadable::Absent) => return Err(WhyNot::Here(format!("this machine has no /{path}"))),
        Err(why) => return Err(WhyNot::Here(format!("/{path}: {why}"))),
    };
    let isolated = facts::isolated_cpus(context.root);
    match shield::mask_without(&from, &context.freed, &others, &isolated) {
        Some(to) => Ok(vec![file(path.to_owned(), from, to)]),
        None => Err(WhyNot::Here(format!("/{path} is not a mask of CPUs"))),
    }
}
