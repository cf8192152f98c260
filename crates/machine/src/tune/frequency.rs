//! Frequencies of CPUs: `1000MHz`, `1.5GHz`, or `min` and `max` of the CPU; and governors.

use super::{
    Context, WhyNot, Write,
    old_value::OldValue,
    writes::{each, no_device},
};
use crate::cpus;

/// Old values of frequencies, kHz: up to 100 GHz.
pub(super) const KHZ: OldValue = OldValue::Number(1, 100_000_000);

/// A frequency in kHz, the unit of cpufreq.
///
/// # Errors
/// The text is no frequency.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to 1e8 is checked before")]
fn parse_khz(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, f64); 3] = [("GHz", 1e6), ("MHz", 1e3), ("kHz", 1.0)];
    let lower = text.to_ascii_lowercase();
    let found = UNITS.iter().find_map(|(unit, khz)| Some((lower.strip_suffix(&unit.to_ascii_lowercase())?, khz)));
    let khz = found.and_then(|(number, khz)| Some(number.trim().parse::<f64>().ok()? * khz));
    // 100 GHz is more than any CPU has.
    match khz.filter(|khz| (1.0..1e8).contains(khz)) {
        Some(khz) => Ok(khz.round() as u64),
        None => Err(format!("`{text}` is not a frequency: use e.g. 1000MHz, 1.5GHz, min or max")),
    }
}

/// A frequency in MHz: `1000MHz`.
pub(super) fn in_mhz(khz: u64) -> String {
    match khz % 1000 {
        0 => format!("{}MHz", khz / 1000),
        _ => format!("{khz}kHz"),
    }
}

pub(super) fn governor(context: &Context<'_>, value: Option<&str>) -> Result<Vec<Write>, WhyNot> {
    let leads = policies(context);
    // Another governor replaces one that keeps a low frequency, and `cpu.max_freq` lifts a limit, unless the kernel keeps it.
    let is_raised = |lead: u32| {
        let limit = context.root.number(&cpufreq(lead, "scaling_max_freq"));
        let reached = if context.lifts_limits { cpus::highest_khz(context.root, lead) } else { limit };
        cpus::constant_khz(context.root, lead).or(limit) < reached
    };
    let has_fixed = |lead: &u32| cpus::has_fixed_frequency(context.root, *lead) != Some(false) && !is_raised(*lead);
    if !context.is_named && !leads.is_empty() && leads.iter().all(has_fixed) {
        let is_narrowed = context.cpus != context.online;
        let of_cpus = if is_narrowed { format!(" of {}", context.cpus.in_words()) } else { String::new() };
        let reason = format!("the frequency{of_cpus} is fixed: its limits are equal, or its governor keeps it");
        return Err(WhyNot::NoEffect(reason));
    }
    let wanted = offered(context, value, "performance", "scaling_available_governors")?;
    let scaled = leads.into_iter().filter(|lead| context.is_named || !has_fixed(lead));
    each(context, scaled.map(|lead| cpufreq(lead, "scaling_governor")).collect(), &wanted)
}

fn cpufreq(cpu: u32, name: &str) -> String {
    format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/{name}")
}

/// The first CPU of each group of CPUs that share a frequency.
fn policies(context: &Context<'_>) -> Vec<u32> {
    let mut leads: Vec<u32> = Vec::new();
    let mut known: Vec<u32> = Vec::new();
    for cpu in &context.cpus {
        if !known.contains(&cpu) {
            leads.push(cpu);
            let related = context.root.read(&cpufreq(cpu, "related_cpus")).unwrap_or_default();
            known.extend(related.split_whitespace().filter_map(|cpu| cpu.parse::<u32>().ok()));
        }
    }
    leads
}

pub(super) fn policy_files(context: &Context<'_>, name: &str) -> Vec<String> {
    policies(context).into_iter().map(|lead| cpufreq(lead, name)).collect()
}

/// The value, or else the default, if each group of CPUs offers this word in its file of that name, or has no such file.
pub(super) fn offered(
    context: &Context<'_>,
    value: Option<&str>,
    default: &str,
    words: &str,
) -> Result<String, WhyNot> {
    let wanted = value.unwrap_or(default);
    for lead in policies(context) {
        if let Some(words) = context.root.read(&cpufreq(lead, words))
            && !words.split_whitespace().any(|word| word == wanted)
        {
            let reason = format!("CPU {lead} does not offer `{wanted}`: it offers {words}");
            // The machine lacks the default; the user did not ask for it.
            return Err(if value.is_some() { WhyNot::Value(reason) } else { WhyNot::Here(reason) });
        }
    }
    Ok(wanted.to_owned())
}

/// These files of each group of CPUs, set to one frequency. To raise it, the highest frequency is set before the lowest
/// one, because the lowest may not be above the highest.
pub(super) fn frequencies(context: &Context<'_>, value: &str, names: &[&str]) -> Result<Vec<Write>, WhyNot> {
    let leads = policies(context);
    // All are read before the first error is returned, so that a snapshot has the files of each CPU.
    let each: Vec<_> = leads.iter().map(|&lead| frequencies_of(context, lead, value, names)).collect();
    let mut writes = Vec::new();
    for own in each {
        writes.extend(own?);
    }
    match leads.first() {
        Some(&lead) if writes.is_empty() => {
            Err(WhyNot::Here(format!("this machine has no /{}", cpufreq(lead, "cpuinfo_max_freq"))))
        }
        None => Err(no_device(context)),
        _ => Ok(writes),
    }
}

/// The writes for the CPUs that share the frequency of `lead`; none if they have no files of frequencies.
fn frequencies_of(context: &Context<'_>, lead: u32, value: &str, names: &[&str]) -> Result<Vec<Write>, WhyNot> {
    let khz = |name: &str| context.root.number::<u64>(&cpufreq(lead, name));
    let limits = ["cpuinfo_min_freq", "cpuinfo_max_freq"].map(|name| cpufreq(lead, name));
    if !limits.iter().any(|path| context.root.exists(path)) {
        return Ok(Vec::new());
    }
    for path in &limits {
        KHZ.read(context, path)?;
    }
    let (Some(lowest), Some(highest)) = (khz("cpuinfo_min_freq"), khz("cpuinfo_max_freq")) else {
        return Ok(Vec::new());
    };
    let to = match value {
        "max" => highest,
        "min" => lowest,
        text => parse_khz(text).map_err(WhyNot::Value)?,
    };
    if !(lowest..=highest).contains(&to) {
        let range = format!("{} to {}", in_mhz(lowest), in_mhz(highest));
        return Err(WhyNot::Value(format!("CPU {lead} has no frequency of {}: use {range}", in_mhz(to))));
    }
    let steps = context.root.read(&cpufreq(lead, "scaling_available_frequencies")).unwrap_or_default();
    let steps: Vec<u64> = steps.split_whitespace().filter_map(|khz| khz.parse().ok()).collect();
    if !steps.is_empty() && !steps.contains(&to) && to != highest {
        let steps = steps.iter().map(|&khz| in_mhz(khz)).collect::<Vec<_>>().join(", ");
        return Err(WhyNot::Value(format!("CPU {lead} has no frequency of {}: it has {steps}", in_mhz(to))));
    }
    let mut own = each(context, names.iter().map(|name| cpufreq(lead, name)).collect(), &to.to_string())?;
    if khz("scaling_max_freq").is_some_and(|now| to > now) {
        // The kernel would keep its own limit, and setting that back would make it the user's.
        let ceiling = cpus::frequency_ceiling(context.root, lead).filter(|_| names.contains(&"scaling_max_freq"));
        if let Some(ceiling) = ceiling {
            return Err(WhyNot::Here(format!("the present limit may be the kernel's: {ceiling}")));
        }
        own.reverse();
    }
    Ok(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_need_a_unit() {
        assert_eq!(parse_khz("1000MHz"), Ok(1_000_000));
        assert_eq!([parse_khz("1.5ghz"), parse_khz("998400 kHz")], [Ok(1_500_000), Ok(998_400)]);
        for text in ["1000", "MHz", "-1MHz", "0MHz", "nanMHz", "infGHz", "1e30GHz", "1000Hz", ""] {
            assert!(parse_khz(text).unwrap_err().contains("1000MHz"), "{text}");
        }
        assert_eq!([in_mhz(800_000), in_mhz(998_400)], ["800MHz", "998400kHz"]);
    }
}
