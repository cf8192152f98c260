//! The periods for the INI file of `LinuxCNC`, as lines to paste.

use analysis::linuxcnc::{BASE_JITTER_MAX_NS, SERVO_JITTER_MAX_NS, periods};
use record::Record;

use super::page::Page;
use crate::blame::unsigned;

/// The section of the INI file with both periods, below a heading.
pub(super) fn section(page: &mut Page, record: &Record) {
    let Some([base, servo]) = lines(record) else { return };
    page.heading("Periods for LinuxCNC, section [EMCMOT] of the INI file");
    page.of_file(&base);
    page.of_file(&servo);
}

/// Both lines without a heading.
pub(super) fn brief(page: &mut Page, record: &Record) {
    lines(record).iter().flatten().for_each(|line| page.of_file(line));
}

/// A line for each period. Without a period it is a comment of the INI file with the reason.
fn lines(record: &Record) -> Option<[String; 2]> {
    let periods = periods(record)?;
    let line = |key: &str, period_ns: Option<u64>, jitter_ns: u64, most_ns: u64, what: &str| match period_ns {
        Some(ns) => format!("{key} = {ns}"),
        None => format!("# no {key}: max jitter {} is above {}, {what}", unsigned(jitter_ns), unsigned(most_ns)),
    };
    let software = "too much to generate steps in software";
    let at_all = "too much for a hardware card, too";
    Some([
        line("BASE_PERIOD", periods.base_ns, periods.base_jitter_ns, BASE_JITTER_MAX_NS, software),
        line("SERVO_PERIOD", periods.servo_ns, periods.servo_jitter_ns, SERVO_JITTER_MAX_NS, at_all),
    ])
}
