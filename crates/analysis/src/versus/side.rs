//! A side: the conditions and the figures of its rounds, without the records.

use std::collections::{BTreeMap, BTreeSet};

use record::{
    Figures, Histogram, IMPORTED, Maxima, Outcome, Record,
    versus::{Differs, LeftOut, Measure, Side, UnevenGroup},
};

use super::{
    pairs::{self, Pair},
    timeline::Start,
};
use crate::{compare, duration::format_unsigned_ns, float::to_u64};

/// The compared percentiles.
pub const PERCENTILES: [f64; 7] = [50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999];
/// A second, ns.
const SECOND_NS: u64 = 1_000_000_000;
/// The digits of a time of RFC 3339 without its zone.
const TIME: &str = "0000-00-00T00:00:00";
/// A condition that a record does not contain.
pub const UNKNOWN: &str = "unknown";

/// The rounds of a side.
#[derive(Debug, Clone, Default)]
pub struct Records {
    pub(super) side: Side,
    pub(super) groups: Vec<Group>,
    /// The pairs of CPUs of matrices.
    pub(super) pairs: Vec<Pair>,
    /// The values of each condition.
    pub(super) conditions: BTreeMap<&'static str, BTreeSet<String>>,
    /// When and where each record was measured.
    pub(super) starts: Vec<Start>,
}

/// The rounds of a group of threads.
#[derive(Debug, Clone, Default)]
pub struct Group {
    /// Its conditions, without figures.
    pub conditions: Figures,
    /// In the order of the records in the command.
    pub rounds: Vec<Round>,
    /// The samples of all rounds with known values; empty if those of a round are unknown.
    pub histogram: Histogram,
    /// Number of samples above those of the histogram.
    pub beyond: u64,
    /// The largest value of all rounds in each window of their time; empty if unknown.
    pub maxima: Maxima,
    /// True if the figures of a round were published, or are those of another tool.
    pub is_published: bool,
}

/// The figures of a group in one record.
#[derive(Debug, Clone, Default)]
pub struct Round {
    /// When and where it was measured.
    pub(super) start: Start,
    /// Name of the record.
    pub(super) record: String,
    /// Number of samples; `None` if unknown.
    pub samples: Option<u64>,
    pub values: BTreeMap<Measure, f64>,
    /// Those of [`PERCENTILES`], ns; `None` if there are too few samples, or if the samples are unknown.
    pub percentiles: [Option<f64>; PERCENTILES.len()],
    /// All percentiles above this one are larger than the known values; `None` if all values are known.
    pub beyond_from: Option<f64>,
    /// Number of samples of the histogram, and above it.
    pub(super) total: u64,
    /// The figures that the file states more exactly than the cells of its histogram.
    pub(super) stated: Vec<Measure>,
    /// True if the number of samples above the known values is not known, because only a lower bound of the maximum is.
    pub beyond_unknown: bool,
}

impl Records {
    /// Adds a record, which is a round. A run that was not as requested, or that ended early, is left out.
    pub fn add(&mut self, name: String, record: &Record) {
        // Nobody knows this about runs of other tools.
        let obstacle = if record.published.is_none() { record.obstacle() } else { None };
        if let Some(obstacle) = obstacle {
            return self.leave_out(name, obstacle.to_string());
        }
        for caveat in compare::imported_caveats(record) {
            if !self.side.caveats.contains(&caveat) {
                self.side.caveats.push(caveat);
            }
        }
        self.side.records.push(name.clone());
        let outcome = record.verdict.as_ref().map(|verdict| verdict.outcome);
        self.side.passed += u64::from(outcome == Some(Outcome::Pass));
        self.side.judged += u64::from(matches!(outcome, Some(Outcome::Pass | Outcome::Fail)));
        self.side.is_published |= record.published.is_some();
        self.starts.push(start(record));
        for (what, value) in conditions(record) {
            self.conditions.entry(what).or_default().insert(value.unwrap_or_else(|| UNKNOWN.to_owned()));
        }
        pairs::add(&mut self.pairs, record);
        for measured in compare::groups(record) {
            let (conditions, round) = (of_conditions(&measured.figures), Round::of(&measured, &name, record));
            let group = match self.groups.iter_mut().find(|group| group.conditions == conditions) {
                Some(group) => group,
                None => {
                    self.groups.push(Group { conditions, ..Group::default() });
                    // Just pushed.
                    let last = self.groups.len() - 1;
                    &mut self.groups[last]
                }
            };
            group.is_published |= record.published.is_some();
            let is_unknown = !group.rounds.is_empty() && group.histogram.is_empty();
            if measured.histogram.is_empty() {
                (group.histogram, group.beyond) = Default::default();
            } else if !is_unknown {
                group.histogram.merge(&measured.histogram);
                group.beyond = group.beyond.saturating_add(measured.beyond);
            }
            group.maxima.merge(&measured.maxima);
            group.rounds.push(round);
        }
    }

    /// The programs that measured, without their versions.
    pub(super) fn tools(&self) -> BTreeSet<&str> {
        let tools = self.conditions.get("tool").into_iter().flatten();
        tools.map(|tool| tool.split(' ').next().unwrap_or_default()).collect()
    }

    /// The side for the document.
    pub(super) fn to_side(&self) -> Side {
        Side { uneven: self.uneven(), ..self.side.clone() }
    }

    /// The groups that only some of the records have, with these records in their order.
    pub(super) fn uneven(&self) -> Vec<UnevenGroup> {
        let of = |group: &Group| {
            let has = |name: &&String| group.rounds.iter().any(|round| round.record == **name);
            let records: Vec<String> = self.side.records.iter().filter(has).cloned().collect();
            let is_uneven = records.len() < self.side.records.len();
            is_uneven.then(|| UnevenGroup { group: full_name(&group.conditions), records })
        };
        self.groups.iter().filter_map(of).collect()
    }

    /// Names a record that is left out, and why.
    pub fn leave_out(&mut self, record: String, why: String) {
        self.side.left_out.push(LeftOut { record, why });
    }

    /// Number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.side.records.len()
    }

    /// True without any record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.side.records.is_empty()
    }
}

impl Group {
    /// When and where the rounds were measured.
    pub fn starts(&self) -> Vec<&Start> {
        self.rounds.iter().map(|round| &round.start).collect()
    }

    /// The resolution of a figure, ns: the width of the cells of a published histogram that it is an end of, or 1 us if all
    /// values are whole ones. 0 if it is fine.
    pub fn resolution_ns(&self, measure: Measure) -> f64 {
        const US: f64 = 1_000.0;
        if !self.is_published {
            return 0.0;
        }
        let values = || self.rounds.iter().filter_map(|round| round.values.get(&measure).copied());
        let whole = if values().all(|value| value % US == 0.0) { US } else { 0.0 };
        let is_stated = self.rounds.iter().any(|round| round.stated.contains(&measure));
        let width = self.histogram.cell_width_ns().filter(|_| percent(measure).is_some() && !is_stated);
        width.map_or(whole, |ns| whole.max(ns as f64))
    }
}

impl Round {
    fn of(measured: &compare::Group, name: &str, record: &Record) -> Self {
        let compare::Group { figures, histogram, beyond, unknown, lost, .. } = measured;
        let total = histogram.total().saturating_add(*beyond).saturating_add(*unknown);
        let most_ns = figures.max_ns.unwrap_or(i64::MAX);
        // Values of a histogram are the upper ends of its cells, which can be above the exact maximum.
        let percentile = |percent: f64| {
            let above = above(total, percent);
            let known = (above > 0).then(|| histogram.nth(total - above)).flatten();
            known.map(|ns| ns.min(most_ns) as f64)
        };
        let time = |ns: Option<i64>| ns.map(|ns| ns as f64);
        let absent = figures.missed.map(|missed| missed.saturating_add(*lost));
        let counted = figures.samples.map(|samples| samples.saturating_add(*unknown));
        let missed = counted.zip(absent).filter(|(samples, absent)| samples + absent > 0);
        let (median, is_stated_median) = more_exact(percentile(50.0), time(figures.p50_ns));
        let (p99, is_stated_p99) = more_exact(percentile(99.0), time(figures.p99_ns));
        let stated = [(Measure::Median, is_stated_median), (Measure::P99, is_stated_p99)];
        let values = [
            (Measure::Median, median),
            (Measure::P99, p99),
            (Measure::P999, percentile(99.9)),
            (Measure::P9999, percentile(99.99)),
            (Measure::Max, time(figures.max_ns)),
            (Measure::Jitter, figures.jitter_ns.filter(|_| has_jitter(figures)).map(|ns| ns as f64)),
            (Measure::Missed, missed.map(|(samples, absent)| absent as f64 / (samples + absent) as f64)),
        ];
        Self {
            start: start(record),
            record: name.to_owned(),
            samples: figures.samples,
            values: values.into_iter().filter_map(|(measure, value)| Some((measure, value?))).collect(),
            percentiles: PERCENTILES.map(percentile),
            total,
            stated: stated.into_iter().filter_map(|(measure, is_stated)| is_stated.then_some(measure)).collect(),
            beyond_from: (*beyond > 0 && *unknown == 0).then(|| 100.0 * histogram.total() as f64 / total as f64),
            beyond_unknown: *beyond == 0 && figures.max_ns.is_none() && figures.max_above_ns.is_some(),
        }
    }

    /// The share of samples that are as large as the value of this percentile or larger, as a multiple of the share that the
    /// percentile says; `None` without samples.
    pub fn share_from(&self, percent: f64) -> Option<f64> {
        let nominal = (1.0 - percent / 100.0) * (self.total as f64 + 1.0);
        (self.total > 0).then(|| (above(self.total, percent) as f64 + 1.0) / nominal)
    }

    /// True if this percentile is larger than all known values of the round.
    pub fn is_beyond(&self, percent: f64) -> bool {
        self.beyond_from.is_some_and(|known| percent > known)
    }

    /// The figure; infinite if it is larger than all known values. `None` if it is unknown.
    pub fn value(&self, measure: Measure) -> Option<f64> {
        let is_beyond = percent(measure).is_some_and(|percent| self.is_beyond(percent));
        self.values.get(&measure).copied().or(is_beyond.then_some(f64::INFINITY))
    }
}

/// Number of samples above a percentile. Rounds that lack a few samples still have the same number: 1 of 9 990 samples is above
/// p99.99, as of 10 000.
fn above(total: u64, percent: f64) -> u64 {
    const LACKING: f64 = 0.05;
    to_u64((1.0 - percent / 100.0) * total as f64 + LACKING)
}

/// A percentile, and true if it is that which the file states: with a fraction of a microsecond below the end of the cell of its
/// histogram. stress-ng states percentiles of all samples, and prints a histogram with wide cells.
fn more_exact(of_cells: Option<f64>, stated: Option<f64>) -> (Option<f64>, bool) {
    match (of_cells, stated) {
        (Some(end), Some(stated)) if stated < end * 0.998 && stated % 1_000.0 != 0.0 => (Some(stated), true),
        (Some(end), _) => (Some(end), false),
        (None, stated) => (stated, false),
    }
}

/// The percentile that a figure is; `None` for the others.
pub fn percent(measure: Measure) -> Option<f64> {
    match measure {
        Measure::Median => Some(50.0),
        Measure::P99 => Some(99.0),
        Measure::P999 => Some(99.9),
        Measure::P9999 => Some(99.99),
        Measure::Max | Measure::Jitter | Measure::Missed => None,
    }
}

/// True for machine-tool threads, which are judged by their jitter; for others it says the same as the largest lateness.
fn has_jitter(figures: &Figures) -> bool {
    figures.probe == "threads"
}

/// The conditions among the figures.
fn of_conditions(figures: &Figures) -> Figures {
    Figures {
        probe: figures.probe.clone(),
        phase: figures.phase.clone(),
        loads: figures.loads.clone(),
        role: figures.role.clone(),
        from_kernel: figures.from_kernel,
        isolated: figures.isolated,
        together: figures.together,
        policy: figures.policy.clone(),
        period_ns: figures.period_ns,
        ..Figures::default()
    }
}

/// The name of a group with the conditions that distinguish it from others of this name.
pub fn full_name(conditions: &Figures) -> String {
    with_policy_and_period(compare::name_of(conditions), conditions)
}

/// A name of a group, with its policy and its period.
#[must_use]
pub fn with_policy_and_period(name: String, conditions: &Figures) -> String {
    let period = conditions.period_ns.map(format_unsigned_ns).unwrap_or_default();
    let parts = [name, conditions.policy.clone(), period];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

/// When and where a record was measured.
fn start(record: &Record) -> Start {
    Start {
        at: in_order(&record.started_at),
        host: record.machine.hostname.clone(),
        is_imported: record.published.is_some(),
    }
}

/// A time in UTC, or a local one without a zone, with nine digits of its second. Its order as text is that of time: RFC 3339
/// leaves zeros at the end out. Empty if the text is none.
fn in_order(at: &str) -> String {
    let (time, zone) = at.strip_suffix('Z').map_or((at, ""), |time| (time, "Z"));
    let (second, fraction) = time.split_once('.').unwrap_or((time, ""));
    let is_time = |second: &str| {
        let shape = |(letter, of): (char, char)| if of == '0' { letter.is_ascii_digit() } else { letter == of };
        second.len() == TIME.len() && second.chars().zip(TIME.chars()).all(shape)
    };
    let is_fraction = fraction.len() <= 9 && fraction.bytes().all(|byte| byte.is_ascii_digit());
    if is_time(second) && is_fraction { format!("{second}.{fraction:0<9}{zone}") } else { String::new() }
}

/// The conditions of a record that its groups do not have.
fn conditions(record: &Record) -> Vec<(&'static str, Option<String>)> {
    let (machine, scenario) = (&record.machine, &record.scenario);
    let of_phases_ns = record.phases.iter().map(|phase| phase.duration_ns).sum::<u64>();
    let duration_ns = if of_phases_ns > 0 { of_phases_ns } else { published_duration_ns(record) };
    // Runs of one planned length end some milliseconds apart.
    let rounded_ns = (duration_ns + SECOND_NS / 2) / SECOND_NS * SECOND_NS;
    let duration = (duration_ns > 0).then(|| format_unsigned_ns(rounded_ns.max(SECOND_NS)));
    let asked = |asked: &str| (!asked.is_empty()).then(|| asked.to_owned());
    // Nobody knows this about figures of others.
    let measured = |value: String| record.published.is_none().then_some(value);
    let or_none = |value: String| if value.is_empty() { "none".to_owned() } else { value };
    let idle = if scenario.hold_cpu_awake { "held awake" } else { "as they are" };
    let shielded = record.shielding.as_ref().map_or_else(String::new, |shield| shield.cpus.clone());
    let interrupts = || record.series.iter().filter_map(|series| series.kind.interrupts());
    let sources = joined(interrupts().map(|interrupts| interrupts.source.clone()));
    let zeros = joined(interrupts().map(|interrupts| interrupts.zero.in_words().to_owned()));
    let responses = record.series.iter().filter_map(|series| series.kind.responses());
    let judges = joined(responses.map(|responses| format!("{}, {}", responses.protocol.in_words(), responses.judge)));
    vec![
        ("tool", asked(&tool(record))),
        ("probe", asked(&scenario.probe)),
        ("source", (!sources.is_empty()).then_some(sources)),
        ("times begin at", (!zeros.is_empty()).then_some(zeros)),
        ("judge", (!judges.is_empty()).then_some(judges)),
        ("clock", asked(&scenario.clock)),
        ("wait", asked(&scenario.wait)),
        ("duration", duration),
        ("idle states", measured(idle.to_owned())),
        ("changed settings", measured(or_none(scenario.settings.join(", ")))),
        ("shielded CPUs", measured(or_none(shielded))),
        ("CPUs", published_cpus(record).or_else(|| measured(or_none(measured_cpus(record))))),
        ("host", machine.hostname.clone()),
        ("model", machine.model.clone()),
        ("processor", machine.cpu_model.clone()),
        ("microcode", machine.microcode.clone()),
        ("kernel", machine.kernel.clone()),
        ("preemption", machine.preempt.clone()),
        ("kernel arguments", machine.cmdline.clone()),
        ("kernel configuration", machine.config_digest.clone()),
        ("isolated CPUs", machine.cpus_isolated.clone()),
        ("nohz_full", machine.cpus_nohz_full.clone()),
        ("SMT", machine.smt.clone()),
        ("governor", machine.governor.clone()),
        ("idle driver", machine.idle_states.clone()),
        ("clock source", machine.clocksource.clone()),
        ("RT throttling", machine.rt_throttling.clone()),
        ("hypervisor", machine.hypervisor.clone()),
        ("container", machine.container.clone()),
        ("gravity", machine.evl_gravity.clone()),
    ]
}

/// Different texts in order; empty without any.
fn joined(texts: impl Iterator<Item = String>) -> String {
    texts.collect::<BTreeSet<String>>().into_iter().collect::<Vec<_>>().join("; ")
}

/// Name and version of the tool that measured; that of a publication is in its figures.
fn tool(record: &Record) -> String {
    let is_imported = record.validity.reasons.iter().any(|reason| reason.id == IMPORTED);
    match &record.published {
        Some(published) if !is_imported => {
            let tools: BTreeSet<&str> = published.figures.iter().map(|figures| figures.tool.as_str()).collect();
            tools.into_iter().filter(|tool| !tool.is_empty()).collect::<Vec<_>>().join(", ")
        }
        _ => [&*record.tool.name, &*record.tool.version].join(" ").trim_end().to_owned(),
    }
}

/// The longest time of the figures of others, ns; 0 if they have none.
fn published_duration_ns(record: &Record) -> u64 {
    let figures = record.published.iter().flat_map(|published| &published.figures);
    figures.filter_map(|figures| figures.duration_ns).max().unwrap_or(0)
}

/// The CPUs of the figures of others; `None` if there are none, or if one has no CPU of its own.
fn published_cpus(record: &Record) -> Option<String> {
    let figures = record.published.iter().flat_map(|published| &published.figures);
    let single = figures.filter(|figures| figures.phase != record::ALL_THREADS);
    let cpus: BTreeSet<u32> = single.map(|figures| figures.cpus.parse().ok()).collect::<Option<_>>()?;
    (!cpus.is_empty()).then(|| crate::cpu_list::format(cpus.into_iter().collect()))
}

fn measured_cpus(record: &Record) -> String {
    crate::cpu_list::format(record.probe_series().filter_map(|series| series.cpu).collect())
}

/// The names of conditions.
#[must_use]
pub fn condition_names() -> Vec<&'static str> {
    conditions(&Record::default()).into_iter().map(|(what, _)| what).collect()
}

/// The value of the condition with this name; `unknown` if the record does not contain it.
#[must_use]
pub fn condition(record: &Record, what: &str) -> String {
    let found = conditions(record).into_iter().find(|(name, _)| *name == what);
    found.and_then(|(_, value)| value).unwrap_or_else(|| UNKNOWN.to_owned())
}

/// Conditions in which the sides differ, or which vary within a side.
pub fn differs(a: &Records, b: &Records) -> Vec<Differs> {
    let values = |records: &Records, what: &str| -> Vec<String> {
        records.conditions.get(what).into_iter().flatten().cloned().collect()
    };
    let of = |what: &&'static str| {
        let (a, b) = (values(a, what), values(b, what));
        let is_same = a == b && a.len() == 1;
        (!is_same).then(|| Differs { what: (*what).to_owned(), a, b })
    };
    // In the order of `conditions`.
    condition_names().iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use record::{State, Validity};

    use super::*;

    #[test]
    fn the_tool_of_a_publication_is_that_of_its_figures() {
        let reference = crate::find_reference("vim3l-evl").unwrap();
        assert!(condition(&reference, "tool").starts_with("latmus, "), "{}", condition(&reference, "tool"));
        let measured = record::Tool { name: "punctual".to_owned(), version: "1".to_owned() };
        assert_eq!(condition(&Record { tool: measured, ..Record::default() }, "tool"), "punctual 1");
    }

    #[test]
    fn figures_of_others_have_a_duration_and_cpus() {
        let figures = |cpus: &str, duration_ns| Figures {
            cpus: cpus.to_owned(),
            duration_ns: Some(duration_ns),
            ..Figures::default()
        };
        let of = |figures: Vec<Figures>| Record {
            published: Some(record::Published { figures, ..record::Published::default() }),
            ..Record::default()
        };
        let two = of(vec![figures("3", 600_000_000_000), figures("0", 599_000_000_000)]);
        assert_eq!([condition(&two, "duration"), condition(&two, "CPUs")], ["600 s", "0,3"]);
        let unpinned = of(vec![figures("3", 1_000_000_000), figures("", 1_000_000_000)]);
        assert_eq!(condition(&unpinned, "CPUs"), UNKNOWN);
    }

    #[test]
    fn times_with_fewer_digits_keep_their_order() {
        let mut side = Records::default();
        let measured = |at: &str| Record {
            started_at: at.to_owned(),
            state: State::Complete,
            validity: Validity { valid: true, ..Validity::default() },
            ..Record::default()
        };
        for at in ["2026-11-27T13:23:18.62Z", "2026-11-27T13:23:18.625Z", "2026-11-27T13:23:19Z"] {
            side.add(String::new(), &measured(at));
        }
        let starts: Vec<&str> = side.starts.iter().map(|start| start.at.as_str()).collect();
        assert!(starts.is_sorted(), "{starts:?}");
    }

    #[test]
    fn a_time_that_cannot_be_ordered_is_none() {
        assert_eq!(in_order("2021-12-22T10:55:45.5"), "2021-12-22T10:55:45.500000000");
        for at in [
            "",
            "Z",
            "2021-12-22",
            "Sat, 21 Nov 2026 03:00:01 +0000",
            "2026-11-27T13:23:18+01:00",
            "2026-11-27 13:23:18Z",
        ] {
            assert_eq!(in_order(at), "", "{at}");
        }
    }
}
