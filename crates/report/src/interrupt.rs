//! Interrupts as text and figures for terminal and HTML.

use analysis::format_ns;
use record::{Interrupts, Series, Zero, counted, grouped};

use crate::{
    blame::unsigned,
    round_trip::{of_series, of_times},
};

/// The source and its device.
pub fn title(interrupts: &Interrupts) -> String {
    format!("Interrupts of {} ({})", interrupts.source, interrupts.device)
}

/// The way from the interrupt to the wake-up and its parts, each with the figures of [`TIMES`](crate::round_trip::TIMES).
pub fn times(series: &Series, interrupts: &Interrupts) -> Vec<(&'static str, [String; 6])> {
    let text = |ns: Option<i64>| ns.map_or_else(|| "-".to_owned(), format_ns);
    let parts = [("to the kernel", &interrupts.to_kernel), ("kernel to thread", &interrupts.to_thread)];
    let parts = parts.into_iter().filter_map(|(name, times)| Some((name, of_times(times.as_ref()?).map(text))));
    [(way(interrupts.zero), of_series(series).map(text))].into_iter().chain(parts).collect()
}

/// The name of the time that the series contains.
fn way(zero: Zero) -> &'static str {
    if zero.is_in_kernel() { "kernel to thread" } else { "interrupt to thread" }
}

/// Counts of interrupts by outcome: name, count, and true if a count above 0 is bad news.
pub fn outcomes(series: &Series, interrupts: &Interrupts) -> [(&'static str, u64, bool); 5] {
    [
        ("interrupts", series.samples, false),
        ("merged", series.missed, true),
        ("lost", interrupts.lost, true),
        ("edges without", interrupts.unanswered, true),
        ("spurious", interrupts.spurious, true),
    ]
}

/// The clock that gave the time of each interrupt, its resolution and its error.
pub fn remarks(interrupts: &Interrupts) -> String {
    let resolution = interrupts.resolution_ns.map_or_else(String::new, |ns| format!(", resolution {}", unsigned(ns)));
    let at_most = interrupts.max_uncertainty_ns.map_or_else(String::new, |ns| format!(", at most {}", unsigned(ns)));
    let converted = interrupts
        .uncertainty_ns
        .map_or_else(String::new, |ns| format!(", converted to the clock within {} (median{at_most})", unsigned(ns)));
    let driven = interrupts.driven_by.as_ref().map_or_else(String::new, |line| format!("; edges made on {line}"));
    let handler = if interrupts.zero.is_in_kernel() { "; the time until that handler ran is not known" } else { "" };
    format!("times begin at {}{resolution}{converted}{driven}{handler}", interrupts.zero.in_words())
}

/// The answer: `The thread woke at most 85.2 us after the interrupt of hpet (10,000 interrupts, 2 lost).`
pub fn sentence(series: &Series, interrupts: &Interrupts) -> String {
    let Interrupts { source, zero, .. } = interrupts;
    let Some(max_ns) = series.max_ns else { return format!("No interrupt came from {source}.") };
    let gone = series.absent();
    let all = series.samples.saturating_add(gone);
    let after = if zero.is_in_kernel() { "after the kernel's stamp" } else { "after the interrupt" };
    let lost = match gone {
        0 => "none lost".to_owned(),
        gone => format!("{} lost", grouped(gone)),
    };
    format!(
        "The thread woke at most {} {after} of {source} ({}, {lost}).",
        format_ns(max_ns),
        counted(all, "interrupt")
    )
}
