//! `punctual evl`: calibrates the EVL core.

use std::fmt::Write;

use analysis::{float::to_i64, format_ns, format_unsigned_ns};
use anyhow::Context as _;
use campaign::gravity::{self, Calibration, CalibrationError, Context, ContextResult, GravityPlan, Step};
use machine::Root;
use record::grouped;

use crate::{
    cli::{Evl, EvlContext, EvlGravity},
    exit::Usage,
    output,
};

/// Rows of the curve of a user thread.
const CURVE_ROWS: usize = 9;
/// Exit status if the gravity in force makes wake-ups early.
const EARLY: u8 = 2;
const FILE: &str = "/sys/devices/virtual/clock/monotonic/gravity";

pub fn run(what: &Evl) -> anyhow::Result<u8> {
    let Evl::Gravity(options) = what;
    sys::signal::count_termination().context("cannot watch for Ctrl-C")?;
    let result = gravity::calibrate(&plan(options), &Root::system()).map_err(|error| match error {
        CalibrationError::Period(_) => Usage(error.to_string()).into(),
        error => anyhow::Error::from(error),
    })?;
    output::stdout(|out| match (options.output.json, options.output.quiet) {
        (true, _) => writeln!(out, "{}", output::json(&serde_json::json!(result))),
        (false, true) => writeln!(out, "{}", headline(&result)),
        (false, false) => write!(out, "{}", text(&result)),
    })?;
    Ok(if result.is_early_now() && !(result.is_set && result.before != result.found) { EARLY } else { 0 })
}

fn plan(options: &EvlGravity) -> GravityPlan {
    let requested =
        |context: &Context| options.contexts.iter().any(|wanted: &EvlContext| Context::from(*wanted) == *context);
    let contexts = Context::ALL.into_iter().filter(|context| options.contexts.is_empty() || requested(context));
    GravityPlan { contexts: contexts.collect(), cpu: options.cpu, period_ns: options.period, set: options.set }
}

/// The answer in one line.
fn headline(result: &Calibration) -> String {
    let Calibration { before, found, .. } = result;
    match (result.is_set, before == found) {
        (_, true) if result.is_early_now() => format!(
            "The gravity {before} is at its limit: {}, and none when it was verified. Run again on an idle machine.",
            result.now.as_ref().map_or_else(String::new, early)
        ),
        (true, false) => format!("Gravity set to {found} (before: {before})."),
        (true, true) => format!("The gravity {found} fits and was kept."),
        (false, true) => format!("The gravity {before} fits."),
        (false, false) => match &result.now {
            Some(now) if now.is_early() => {
                format!("The gravity {before} is too large: {}. {found} fits.", early(now))
            }
            _ => format!("{found} fits better than the gravity {before}."),
        },
    }
}

/// The early wake-ups: `41 of 2,000 wake-ups were early, by up to 350 ns`.
fn early(step: &Step) -> String {
    let of = step.samples.map_or_else(String::new, |samples| format!(" of {}", grouped(samples)));
    let count = step.early.map_or_else(|| "some".to_owned(), grouped);
    format!("{count}{of} wake-ups were early, by up to {}", format_ns(-step.min_ns))
}

/// The whole result in at most 20 lines.
fn text(result: &Calibration) -> String {
    let mut text = headline(result) + "\n";
    let period = format_unsigned_ns(result.period_ns);
    let _ = writeln!(text, "  measured on CPU {}, every {period}", result.cpu);
    for context in result.contexts.iter().filter(|context| context.context != Context::User) {
        let _ = writeln!(text, "  {:<8} {}", context.context.name(), in_kernel(context));
    }
    for context in result.contexts.iter().filter(|context| context.context == Context::User) {
        let _ = writeln!(text, "  user     {}", found(context));
        let _ =
            writeln!(text, "  {:>10} {:>10} {:>10} {:>10} {:>8}", "gravity", "least late", "mean", "worst", "early");
        for step in thinned(&context.curve, context.found_ns) {
            let mark = if Some(step.gravity_ns) == context.found_ns { "  fits" } else { "" };
            let _ = writeln!(
                text,
                "  {:>10} {:>10} {:>10} {:>10} {:>8}{mark}",
                format_unsigned_ns(step.gravity_ns),
                format_ns(step.min_ns),
                format_ns(to_i64(step.mean_ns)),
                step.max_ns.map_or_else(|| "-".to_owned(), format_ns),
                step.early.map_or_else(|| "-".to_owned(), grouped)
            );
        }
    }
    let _ = match (result.is_set, result.before == result.found) {
        (true, _) => writeln!(
            text,
            "  until the next boot; undo: sudo punctual restore; at boot: echo \"{}\" > {FILE}",
            result.found
        ),
        (false, true) => Ok(()),
        (false, false) => writeln!(text, "  not changed; set it: sudo punctual evl gravity --set"),
    };
    text
}

fn found(context: &ContextResult) -> String {
    match (context.found_ns, &context.why_not) {
        (Some(ns), _) => format!("{ns} ns"),
        (None, Some(why)) => format!("not calibrated: {why}"),
        (None, None) => "not calibrated".to_owned(),
    }
}

/// A context that the kernel calibrated, with the ends of its curve.
fn in_kernel(context: &ContextResult) -> String {
    let step = |step: &Step| {
        let mean = format_ns(to_i64(step.mean_ns));
        format!("{mean} late on average with {}", format_unsigned_ns(step.gravity_ns))
    };
    let chosen = context.curve.iter().find(|step| Some(step.gravity_ns) == context.found_ns);
    match (context.curve.first(), chosen) {
        (Some(first), Some(chosen)) if first.gravity_ns != chosen.gravity_ns => {
            format!("{} ({}, {})", found(context), step(first), step(chosen))
        }
        (Some(first), _) => format!("{} ({})", found(context), step(first)),
        (None, _) => found(context),
    }
}

/// At most [`CURVE_ROWS`] steps, with the first, the last and the found one.
fn thinned(curve: &[Step], found_ns: Option<u64>) -> Vec<&Step> {
    let every = curve.len().saturating_sub(1).div_ceil(CURVE_ROWS.saturating_sub(2)).max(1);
    let kept = |(index, step): &(usize, &Step)| {
        index % every == 0 || index + 1 == curve.len() || Some(step.gravity_ns) == found_ns
    };
    curve.iter().enumerate().filter(kept).map(|(_, step)| step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(gravity_ns: u64, min_ns: i64, early: Option<u64>) -> Step {
        let (samples, max_ns) = (early.map(|_| 500), early.map(|_| 9_000));
        Step { gravity_ns, samples, early, min_ns, mean_ns: min_ns as f64 + 600.0, max_ns }
    }

    fn calibration() -> Calibration {
        let user: Vec<Step> =
            (0..40).map(|n| step(n * 500, 19_400 - (n * 500).cast_signed(), Some(u64::from(n == 39)))).collect();
        let kernel = vec![step(0, 1_400, None), step(500, 900, None), step(1_000, 400, None)];
        let of = |context, found_ns, curve, why: Option<&str>| ContextResult {
            context,
            found_ns,
            curve,
            why_not: why.map(str::to_owned),
        };
        Calibration {
            cpu: 2,
            period_ns: 1_000_000,
            before: "0i 3000k 3000u".to_owned(),
            found: "0i 1000k 19000u".to_owned(),
            now: Some(Step { samples: Some(2000), ..step(3_000, -350, Some(41)) }),
            contexts: vec![
                of(Context::Irq, None, Vec::new(), Some("this kernel has no /dev/latmus (CONFIG_EVL_LATMUS)")),
                of(Context::Kernel, Some(1_000), kernel, None),
                of(Context::User, Some(19_000), user, None),
            ],
            is_set: false,
        }
    }

    #[test]
    fn shows_the_curve_in_20_lines() {
        let mut result = calibration();
        let shown = text(&result);
        assert!(shown.lines().count() <= 20, "{shown}");
        assert!(shown.starts_with(
            "The gravity 0i 3000k 3000u is too large: 41 of 2,000 wake-ups were early, by up to 350 ns. 0i 1000k 19000u fits.\n"
        ), "{shown}");
        assert!(shown.contains("  irq      not calibrated: this kernel has no /dev/latmus"), "{shown}");
        assert!(
            shown.contains("  kernel   1000 ns (2 us late on average with 0 ns, 1 us late on average with 1 us)"),
            "{shown}"
        );
        assert!(shown.contains("      19 us     400 ns       1 us       9 us        0  fits\n"), "{shown}");
        assert!(shown.contains("    19.5 us    -100 ns     500 ns       9 us        1\n"), "{shown}");
        assert!(shown.ends_with("  not changed; set it: sudo punctual evl gravity --set\n"), "{shown}");
        let same = Calibration { found: result.before.clone(), ..result.clone() };
        assert!(
            headline(&same).starts_with("The gravity 0i 3000k 3000u is at its limit: 41 of"),
            "{}",
            headline(&same)
        );
        result.is_set = true;
        assert!(text(&result).starts_with("Gravity set to 0i 1000k 19000u (before: 0i 3000k 3000u).\n"));
        assert!(text(&result).lines().count() <= 20);
    }

    #[test]
    fn calibrates_all_contexts_unless_some_are_requested() {
        let options = |contexts| EvlGravity {
            set: false,
            contexts,
            cpu: None,
            period: 1_000_000,
            output: crate::cli::OutputOptions { json: false, quiet: false, color: crate::cli::Color::Auto },
        };
        assert_eq!(plan(&options(Vec::new())).contexts, Context::ALL);
        assert_eq!(plan(&options(vec![EvlContext::User, EvlContext::Irq])).contexts, [Context::Irq, Context::User]);
    }
}
