//! Parses rtla's analysis of the latency at which it stopped.
//!
//! Source: tools/tracing/rtla/src/timerlat_aa.c of Linux 6.12.

use anyhow::{Context, Result};

/// A part of the latency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// The timer interrupt was late.
    HandlerDelay,
    /// The timer interrupt was late, and another, unnamed interrupt was running at the deadline.
    EarlierInterrupt,
    /// The timer interrupt itself.
    TimerInterrupt,
    /// The thread that had the CPU when the timer interrupt occurred.
    Blocking(String),
    /// A later interrupt.
    Interrupt(String),
    /// A later softirq.
    Softirq(String),
    /// Another thread, later.
    Thread(String),
}

/// The start of a heading line; the following lines contain the details.
const HEADINGS: [&str; 8] = [
    "Previous IRQ interference:",
    "IRQ handler delay:",
    "Timerlat IRQ duration:",
    "Blocking thread:",
    "IRQ interference",
    "Softirq interference",
    "Thread interference",
    "Thread latency:",
];

/// The analysis of one latency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Analysis {
    /// The parts with their times, ns. They need not add up to the total.
    pub parts: Vec<(Part, u64)>,
    /// The total latency, ns.
    pub total_ns: u64,
}

impl Analysis {
    /// Parses the output of rtla.
    pub fn parse(output: &str) -> Result<Self> {
        let begin =
            output.find("hit stop tracing, analyzing it").with_context(|| format!("no analysis in {output}"))?;
        let mut parts: Vec<(Part, u64)> = Vec::new();
        let (mut heading, mut earlier) = ("", false);
        for line in output[begin..].lines() {
            let Some(ns) = time_ns(line) else { continue };
            let words = line.trim();
            let named = |part: fn(String) -> Part| words.rsplit_once(':').map(|(name, _)| part(name.to_owned()));
            let new_heading = HEADINGS.into_iter().find(|heading| words.starts_with(heading));
            heading = new_heading.unwrap_or(heading);
            earlier |= heading == "Previous IRQ interference:";
            let part = match (new_heading, heading) {
                (Some(_), "IRQ handler delay:") if earlier => Some(Part::EarlierInterrupt),
                (Some(_), "IRQ handler delay:") => Some(Part::HandlerDelay),
                (Some(_), "Timerlat IRQ duration:") => Some(Part::TimerInterrupt),
                (Some(_), "Thread latency:") => return Ok(Self { parts, total_ns: ns }),
                (None, "Blocking thread:") => named(Part::Blocking),
                (None, "IRQ interference") => named(Part::Interrupt),
                (None, "Softirq interference") => named(Part::Softirq),
                (None, "Thread interference") => named(Part::Thread),
                _ => None,
            };
            if let Some(part) = part {
                match parts.iter_mut().find(|(known, _)| *known == part) {
                    Some((_, sum_ns)) => *sum_ns += ns,
                    None => parts.push((part, ns)),
                }
            }
        }
        anyhow::bail!("no thread latency in {output}")
    }

    /// The largest part.
    pub fn largest(&self) -> (Part, u64) {
        let largest = self.parts.iter().max_by_key(|(_, ns)| *ns);
        largest.cloned().unwrap_or((Part::HandlerDelay, 0))
    }
}

/// The time in a line such as `... 357.36 us ...`, ns.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "latencies are 0 to some seconds")]
fn time_ns(line: &str) -> Option<u64> {
    let (before, _) = line.split_once(" us")?;
    let us: f64 = before.rsplit([' ', '\t']).next()?.parse().ok()?;
    Some((us * 1000.0).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_parts_with_names_and_times() {
        let output = "rtla timerlat hit stop tracing\n## CPU 0 hit stop tracing, analyzing it ##\n\
            \x20 IRQ handler delay:\t\t(exit from idle)\t     3.79 us (0.96 %)\n\
            \x20 IRQ latency:\t\t\t\t\t\t     4.60 us\n\
            \x20 Timerlat IRQ duration:\t\t\t\t     9.59 us (2.52 %)\n\
            \x20 Blocking thread:\t\t\t\t\t   357.36 us (91.00 %)\n\
            \t                    hold:208      \t\t   357.36 us\n\
            \x20   Blocking thread stack trace\n\t\t-> timerlat_irq\n\
            \x20 IRQ interference\t\t\t\t\t    20.50 us (5.00 %)\n\
            \t             local_timer:236\t\t\t    10.25 us\n\
            \t             local_timer:236\t\t\t    10.25 us\n\
            ---\n\x20 Thread latency:\t\t\t\t\t   392.00 us (100%)\n\nMax timerlat IRQ latency from idle: 3.79 us in cpu 0\n";
        let analysis = Analysis::parse(output).unwrap();
        assert_eq!(analysis.total_ns, 392_000);
        assert_eq!(analysis.largest(), (Part::Blocking("hold".to_owned()), 357_360));
        assert!(analysis.parts.contains(&(Part::Interrupt("local_timer".to_owned()), 20_500)));
        assert!(analysis.parts.contains(&(Part::HandlerDelay, 3_790)));
        assert!(Analysis::parse("rtla timerlat: 0 samples").is_err());
    }

    #[test]
    fn distinguishes_an_earlier_interrupt() {
        let output = "hit stop tracing, analyzing it\n  Previous IRQ interference:\t\t\t up to    900.00 us\n\
            \x20 IRQ handler delay:\t\t                \t   700.00 us (90.00 %)\n\x20 Thread latency:\t 777.00 us (100%)\n";
        assert_eq!(Analysis::parse(output).unwrap().largest(), (Part::EarlierInterrupt, 700_000));
    }
}
