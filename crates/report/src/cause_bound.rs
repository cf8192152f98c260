//! The bounds of the latency from causes, in words.

use analysis::{format_unsigned_ns, when};
use record::{BoundBasis, BoundRefusal, CauseBound, Culprit, Record, Series, counted};

use crate::{
    blame::{in_short, percent},
    words::capitalized,
};

/// Number of parts that are named.
const PARTS: usize = 6;

/// The sentences about the bounds of all series, and what they do not contain. Nothing for records without bounds.
pub fn sentences(record: &Record) -> Vec<String> {
    let bounded = || record.series.iter().filter_map(|series| Some((series, series.cause_bound.as_ref()?)));
    let mut sentences: Vec<String> = bounded().flat_map(|(series, bound)| of_series(series, bound)).collect();
    let is_weak = |bound: &CauseBound| bound.basis == BoundBasis::WakeUps && bound.bound_ns.is_some();
    if bounded().any(|(_, bound)| is_weak(bound)) {
        sentences.push(
            "These bounds are weaker than those of a kernel that traces every section (CONFIG_PREEMPTIRQ_TRACEPOINTS, with \
             `--blame=deep`): a section with preemption or interrupts off that no wake-up met is not in them."
                .to_owned(),
        );
    }
    let (read_ns, traced_ns) =
        bounded().fold((0, 0), |(read, most), (_, bound)| (read + bound.read_ns, bound.traced_ns.max(most)));
    if traced_ns > 0 {
        sentences.push(format!("Reading the trace for them took {} of one CPU.", percent(read_ns, traced_ns)));
    }
    sentences
}

/// `CPU 1, under load: at most 182 us from causes, if all meet: 120 us thread kworker, with preemption off; 31 us ...`, and the
/// remedy for the first part.
fn of_series(series: &Series, bound: &CauseBound) -> Vec<String> {
    let place = capitalized(&format!("{}, {}", series.place(), when(series)));
    let Some(bound_ns) = bound.bound_ns else {
        let why = bound.refused.map_or("the record does not say why", reason);
        return vec![format!("{place}: no bound from causes, because {why}.")];
    };
    let part = |part: &Culprit| format!("{} {}", format_unsigned_ns(part.ns), in_short(&part.cause));
    let mut parts: Vec<String> = bound.parts.iter().take(PARTS).map(part).collect();
    if let Some(others) = bound.parts.get(PARTS..).filter(|others| !others.is_empty()) {
        let ns = others.iter().map(|part| part.ns).sum();
        parts.push(format!("{} {}", format_unsigned_ns(ns), counted(others.len() as u64, "other part")));
    }
    let sum = format_unsigned_ns(bound_ns);
    let claim = match bound.basis {
        BoundBasis::Sections => format!("at most {sum} from causes"),
        BoundBasis::WakeUps => format!("{sum} from the causes that the wake-ups met"),
    };
    let mut sentences = vec![format!("{place}: {claim}, if all meet: {}.", parts.join("; "))];
    if !bound.remedy.is_empty() {
        sentences.push(format!("To shorten it: {}.", bound.remedy.trim_end_matches('.')));
    }
    sentences
}

/// The reason why there is no bound.
fn reason(refusal: BoundRefusal) -> &'static str {
    match refusal {
        BoundRefusal::NotRealTime => {
            "every thread may delay a thread without a real-time priority: use e.g. `--policy fifo:90`"
        }
        BoundRefusal::LostEvents => "the trace lost events",
        BoundRefusal::TooCostly => {
            "reading all events would take more than a quarter of a CPU: measure fewer CPUs at a time"
        }
        BoundRefusal::PartOfTheTime => "the trace covers only a part of the time",
        BoundRefusal::TooShort => "that takes 1,000 wake-ups and 5 s",
        BoundRefusal::Overload => {
            "interrupts, softirqs and threads of higher priority could keep the CPU busy for longer than 90 ms"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{Cause, CauseKind, Why};

    fn record(bound: CauseBound) -> Record {
        let series = Series {
            phase: "load".into(),
            role: "timer".into(),
            cpu: Some(1),
            cause_bound: Some(bound),
            ..Series::default()
        };
        Record { series: vec![series], ..Record::default() }
    }

    #[test]
    fn names_the_parts_and_what_the_bound_lacks() {
        let part = |ns, kind, name: &str| Culprit { cause: Cause::new(kind, name), ns };
        let mut first = part(120_000, CauseKind::Thread, "kworker");
        first.cause.why = Some(Why::PreemptionOff);
        let bound = CauseBound {
            bound_ns: Some(162_000),
            parts: vec![first, part(31_000, CauseKind::Interrupt, "eth0"), part(11_000, CauseKind::WakeUp, "")],
            remedy: "use a PREEMPT_RT kernel".into(),
            read_ns: 5_000_000,
            traced_ns: 1_000_000_000,
            ..CauseBound::default()
        };
        let all = sentences(&record(bound.clone()));
        assert_eq!(
            all[..2],
            [
                "CPU 1, under load: 162 us from the causes that the wake-ups met, if all meet: 120 us thread kworker, with \
                 preemption off; 31 us interrupt eth0; 11 us the kernel's path to the probe.",
                "To shorten it: use a PREEMPT_RT kernel.",
            ]
        );
        assert!(all[2].contains("weaker") && all[3].ends_with("took 0.5 % of one CPU."), "{all:?}");
        let parts = vec![part(1_000, CauseKind::Softirq, "NET_RX"); 9];
        let strong = CauseBound { basis: BoundBasis::Sections, parts, remedy: String::new(), ..bound };
        let all = sentences(&record(strong));
        assert!(all[0].starts_with("CPU 1, under load: at most 162 us from causes, if all meet: 1 us"), "{all:?}");
        assert!(all.len() == 2 && all[0].ends_with("1 us softirq NET_RX; 3 us 3 other parts."), "{all:?}");
    }

    #[test]
    fn a_refusal_says_why() {
        assert!(sentences(&Record::default()).is_empty());
        for refusal in [
            BoundRefusal::NotRealTime,
            BoundRefusal::LostEvents,
            BoundRefusal::TooCostly,
            BoundRefusal::PartOfTheTime,
            BoundRefusal::TooShort,
            BoundRefusal::Overload,
        ] {
            let all = sentences(&record(CauseBound { refused: Some(refusal), ..CauseBound::default() }));
            assert_eq!(all.len(), 1);
            assert!(all[0].starts_with("CPU 1, under load: no bound from causes, because "), "{all:?}");
        }
    }
}
