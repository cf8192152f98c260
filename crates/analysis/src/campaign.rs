//! The table of a campaign, with probes and loads as rows and placements and settings as columns, and the
//! recommendation.

mod recommend;

use record::{Campaign, Measured, Outcome, RoleResult, ScenarioEntry};

pub use crate::badness::Badness;
use crate::badness::{LEAST_PERIODS, beats};
pub use recommend::{Recommendation, exit_status, recommend};

/// The table: rows are probe and load, columns are placement and settings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CampaignTable {
    /// Names of the rows.
    pub rows: Vec<String>,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// By row, then column; `None` if the campaign has no such scenario.
    pub cells: Vec<Vec<Option<CampaignCell>>>,
    /// The best column of each row. `None` if another one is not really different from it: if any of their repeats
    /// overlap, or if there is only one.
    pub best: Vec<Option<usize>>,
    /// The worst column of each row. `None` if it is not really different from the best one, or if it is recommended
    /// because of another row.
    pub worst: Vec<Option<usize>>,
}

/// One cell: a scenario with all its repeats.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CampaignCell {
    /// One entry per role, with the worst of the repeats.
    pub roles: Vec<RoleCell>,
    /// The badness of each repeat that has run, with times relative to the least of each role in the row.
    pub badness: Vec<Badness>,
    /// The number of planned repeats.
    pub repeats: usize,
    /// True if every repeat ran as requested and to its end.
    pub valid: bool,
    /// Why a repeat cannot be compared with others; `None` if all can.
    pub problem: Option<String>,
    /// The worst verdict of the repeats; `None` without a profile.
    pub outcome: Option<Outcome>,
    /// The main culprit of the worst repeat.
    pub culprit: Option<String>,
    /// The reason why a repeat could not run.
    pub error: Option<String>,
}

/// The figures of one role in a cell, the worst of the repeats.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RoleCell {
    /// The role.
    pub role: String,
    /// The meaning of the times.
    pub measured: Measured,
    /// Largest median of the repeats, ns.
    pub p50_ns: Option<i64>,
    /// Largest 99.9th percentile of the repeats, ns.
    pub p99_9_ns: Option<i64>,
    /// Largest time of all repeats, ns.
    pub max_ns: Option<i64>,
    /// Largest time of the best repeat, ns.
    pub least_max_ns: Option<i64>,
    /// Missed deadlines, or slots without a datagram, in all repeats.
    pub missed: u64,
    /// Lost datagrams or frames in all repeats; like `late`, `None` for threads alone.
    pub lost: Option<u64>,
    /// Late frames in all repeats.
    pub late: Option<u64>,
    /// Answers to an outside judge whose time was lost, in all repeats.
    pub unknown: Option<u64>,
    /// Largest jitter of all repeats, ns; `None` if the kind has none.
    pub jitter_ns: Option<u64>,
    /// Wake-ups, round trips or frames in all repeats.
    pub samples: u64,
    /// The badness of the worst repeat, with times relative to the least of this role in the row.
    pub badness: Badness,
    /// The badness of each repeat that has run; the default for a repeat without this role.
    repeats: Vec<Badness>,
}

impl RoleCell {
    /// Adds the result of repeat number `repeat`, counted from 0.
    fn add(&mut self, of: &RoleResult, repeat: usize) {
        self.repeats.resize(repeat + 1, Badness::default());
        self.repeats[repeat] = Badness::of_role(of);
        self.measured = of.measured;
        self.p50_ns = self.p50_ns.max(of.p50_ns);
        self.p99_9_ns = self.p99_9_ns.max(of.p99_9_ns);
        self.least_max_ns = [self.least_max_ns, of.max_ns].into_iter().flatten().min();
        self.max_ns = self.max_ns.max(of.max_ns);
        self.missed += of.missed;
        self.lost = sum(self.lost, of.lost);
        self.late = sum(self.late, of.late);
        self.unknown = sum(self.unknown, of.unknown);
        self.samples += of.samples;
        self.jitter_ns = self.jitter_ns.max(of.jitter_ns);
        self.badness = self.badness.worse(Badness::of_role(of));
    }

    /// Adds the counts of this role in another row, and its largest time.
    fn add_row(&mut self, of: &Self) {
        self.max_ns = self.max_ns.max(of.max_ns);
        self.missed += of.missed;
        self.lost = sum(self.lost, of.lost);
        self.late = sum(self.late, of.late);
        self.unknown = sum(self.unknown, of.unknown);
    }
}

/// The sum of the known values; `None` if both are unknown.
fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    [a, b].into_iter().flatten().reduce(|a, b| a + b)
}

impl CampaignTable {
    /// The roles of all cells, ordered by what they measure, then by first appearance.
    #[must_use]
    pub fn roles(&self) -> Vec<(&str, Measured)> {
        let mut roles: Vec<(&str, Measured)> = Vec::new();
        for of in self.cells.iter().flatten().flatten().flat_map(|cell| &cell.roles) {
            if !roles.iter().any(|(known, _)| *known == of.role) {
                roles.push((&of.role, of.measured));
            }
        }
        roles.sort_by_key(|(_, measured)| *measured);
        roles
    }
}

impl CampaignCell {
    /// The worst repeat; `None` if none has run.
    #[must_use]
    pub fn worst(&self) -> Option<Badness> {
        self.badness.iter().copied().reduce(Badness::worse)
    }

    fn add(&mut self, entry: &ScenarioEntry) {
        self.repeats += 1;
        self.error = self.error.take().or_else(|| entry.error.clone());
        let Some(result) = &entry.result else { return };
        let (repeat, bad) = (self.badness.len(), Badness::of(result));
        if self.worst().is_none_or(|worst| bad.compare(&worst).is_gt()) {
            self.culprit.clone_from(&result.culprit);
        }
        self.valid &= result.valid && result.problem.is_none();
        self.problem = self.problem.take().or_else(|| result.problem.clone());
        self.outcome = [self.outcome, result.outcome].into_iter().flatten().max_by_key(|&outcome| severity(outcome));
        self.badness.push(bad);
        for of in &result.roles {
            let at = self.roles.iter().position(|cell| cell.role == of.role).unwrap_or_else(|| {
                self.roles.push(RoleCell { role: of.role.clone(), ..RoleCell::default() });
                self.roles.len() - 1
            });
            self.roles[at].add(of, repeat);
        }
    }

    /// Makes the times of each role relative to its least time in the row, so that a role with a long period counts as
    /// much as one with a short period.
    fn compare_with(&mut self, least: &[(String, f64)]) {
        for role in &mut self.roles {
            let least = least.iter().find(|(name, _)| *name == role.role).map_or(1.0, |&(_, least)| least);
            role.badness = role.badness.relative_to(least);
            role.repeats.iter_mut().for_each(|repeat| *repeat = repeat.relative_to(least));
        }
        for (repeat, badness) in self.badness.iter_mut().enumerate() {
            let of_role = |role: &RoleCell| role.repeats.get(repeat).copied().unwrap_or_default();
            *badness = self.roles.iter().map(of_role).fold(Badness::default(), Badness::worse);
        }
    }
}

/// The least time of each role in the valid cells of a row.
fn least_of_roles(row: &[Option<CampaignCell>]) -> Vec<(String, f64)> {
    let mut least: Vec<(String, f64)> = Vec::new();
    for role in row.iter().flatten().filter(|cell| cell.valid).flat_map(|cell| &cell.roles) {
        let periods = role.badness.periods.max(LEAST_PERIODS);
        match least.iter_mut().find(|(name, _)| *name == role.role) {
            Some((_, known)) => *known = known.min(periods),
            None => least.push((role.role.clone(), periods)),
        }
    }
    least
}

/// The order of outcomes of repeats. Unlike for uses, a failure is worse than an invalid run.
fn severity(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Pass => 0,
        Outcome::Inconclusive => 1,
        Outcome::Invalid => 2,
        Outcome::Fail => 3,
    }
}

/// A property of a scenario, by name.
type Axis = fn(&ScenarioEntry) -> &str;

/// The table of a campaign, as far as it has run.
#[must_use]
pub fn table(campaign: &Campaign) -> CampaignTable {
    let varies = |axis: Axis| {
        let mut names = campaign.scenarios.iter().map(axis);
        let first = names.next();
        names.any(|name| Some(name) != first)
    };
    let name = |entry: &ScenarioEntry, axes: [(Axis, bool); 2]| {
        let parts: Vec<&str> = axes.iter().filter(|(_, varies)| *varies).map(|(axis, _)| axis(entry)).collect();
        // If nothing varies, the second property is the more useful name.
        if parts.is_empty() { axes[1].0(entry).to_owned() } else { parts.join(", ") }
    };
    let with_varies = |axes: [Axis; 2]| axes.map(|axis| (axis, varies(axis)));
    let down = with_varies([|entry| &entry.probe, |entry| &entry.load]);
    let across = with_varies([|entry| &entry.settings, |entry| &entry.placement]);
    let mut table = CampaignTable::default();
    for entry in &campaign.scenarios {
        let row = index_of(&mut table.rows, name(entry, down));
        let column = index_of(&mut table.columns, name(entry, across));
        table.cells.resize_with(table.rows.len(), Vec::new);
        let columns = table.columns.len();
        table.cells.iter_mut().for_each(|row| row.resize(columns, None));
        table.cells[row][column]
            .get_or_insert_with(|| CampaignCell { valid: true, ..CampaignCell::default() })
            .add(entry);
    }
    for row in &mut table.cells {
        let least = least_of_roles(row);
        row.iter_mut().flatten().for_each(|cell| cell.compare_with(&least));
    }
    let recommended = recommend(&table).and_then(|advice| advice.column);
    let marks: Vec<_> = table.cells.iter().map(|row| marks(row, recommended)).collect();
    (table.best, table.worst) = marks.into_iter().unzip();
    table
}

fn index_of(names: &mut Vec<String>, name: String) -> usize {
    names.iter().position(|known| *known == name).unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    })
}

/// The best and the worst column of a row, see [`CampaignTable`].
fn marks(row: &[Option<CampaignCell>], recommended: Option<usize>) -> (Option<usize>, Option<usize>) {
    let ran = row.iter().enumerate().filter_map(|(column, cell)| {
        let cell = cell.as_ref().filter(|cell| cell.valid)?;
        Some((column, cell, cell.worst()?))
    });
    let ran: Vec<_> = ran.collect();
    let (Some(least), Some(most)) =
        (ran.iter().min_by(|a, b| a.2.compare(&b.2)), ran.iter().max_by(|a, b| a.2.compare(&b.2)))
    else {
        return (None, None);
    };
    let is_alone =
        ran.len() > 1 && ran.iter().all(|other| other.0 == least.0 || beats(&least.1.badness, &other.1.badness));
    let is_worst = beats(&least.1.badness, &most.1.badness) && recommended != Some(most.0);
    (is_alone.then_some(least.0), is_worst.then_some(most.0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use record::ScenarioResult;

    use super::*;

    fn entry(load: &str, placement: &str, repeat: u32, max_us: Option<i64>) -> ScenarioEntry {
        let roles = |max_us: i64| {
            let max_ns = Some(max_us * 1000);
            vec![RoleResult { role: "timer".to_owned(), period_ns: 1_000_000, max_ns, ..RoleResult::default() }]
        };
        ScenarioEntry {
            probe: "cyclic".to_owned(),
            load: load.to_owned(),
            placement: placement.to_owned(),
            settings: "as found".to_owned(),
            repeat,
            result: max_us.map(|max_us| ScenarioResult { valid: true, roles: roles(max_us), ..Default::default() }),
            ..ScenarioEntry::default()
        }
    }

    fn campaign(scenarios: Vec<ScenarioEntry>) -> Campaign {
        Campaign { scenarios, ..Campaign::default() }
    }

    #[test]
    fn shows_loads_as_rows_and_placements_as_columns() {
        let repeat = |repeat: u32| {
            [
                entry("idle", "isolated", repeat, Some(5)),
                entry("idle", "ordinary", repeat, Some(40)),
                entry("cpu", "isolated", repeat, Some(9)),
                entry("cpu", "ordinary", repeat, Some(900)),
            ]
        };
        let once = table(&campaign(repeat(1).into()));
        let table = table(&campaign([repeat(1), repeat(2)].concat()));
        assert_eq!((table.rows.join(" "), table.columns.join(" ")), ("idle cpu".into(), "isolated ordinary".into()));
        assert_eq!((&table.best[..], &table.worst[..]), (&[Some(0); 2][..], &[Some(1); 2][..]));
        let advice = recommend(&table).unwrap();
        assert_eq!(advice.column, Some(0));
        assert!(
            advice.text.starts_with("isolated (9 us at worst, with cpu); then ordinary (900 us"),
            "{}",
            advice.text
        );
        assert_eq!((&once.best[..], &once.worst[..]), (&[None; 2][..], &[None; 2][..]), "by chance");
        let advice = recommend(&once).unwrap();
        assert_eq!(advice.column, None);
        let expected = "Undecided, because each scenario ran only once: `repeats = 3` separates a difference from \
                        chance. The least bad was isolated (9 us at worst, with cpu); then ordinary (900 us";
        assert!(advice.text.starts_with(expected), "{}", advice.text);
    }

    #[test]
    fn the_recommendation_names_the_largest_time_of_all_rows() {
        let table = table(&campaign(vec![
            entry("idle", "a", 1, Some(3000)),
            entry("idle", "b", 1, Some(4000)),
            entry("cpu", "a", 1, Some(278)),
            entry("cpu", "b", 1, Some(100)),
        ]));
        let advice = recommend(&table).unwrap();
        assert!(
            advice.text.ends_with(" b (4 ms at worst, with idle); then a (3 ms at worst, with idle)."),
            "{}",
            advice.text
        );
    }

    #[test]
    fn an_undecided_comparison_is_inconclusive_unless_profiles_judged() {
        let mut of = campaign([1, 2].map(|repeat| entry("idle", "a", repeat, Some(10))).to_vec());
        assert_eq!(exit_status(&of), 0, "nothing to compare");
        of.scenarios.extend([1, 2].map(|repeat| entry("idle", "b", repeat, Some(99))));
        assert_eq!(exit_status(&of), 0, "decided");
        for (entry, max_us) in of.scenarios.iter_mut().zip([10, 99, 10, 99]) {
            entry.result.as_mut().unwrap().roles[0].max_ns = Some(max_us * 1000);
        }
        assert_eq!(exit_status(&of), 3, "overlapping repeats");
        for entry in &mut of.scenarios {
            entry.result.as_mut().unwrap().outcome = Some(Outcome::Pass);
        }
        assert_eq!(exit_status(&of), 0, "judged");
    }

    #[test]
    fn overlapping_repeats_are_no_difference() {
        let of = |name: &str, values: [i64; 3]| -> Vec<_> {
            values.iter().zip(1..).map(|(&us, repeat)| entry("idle", name, repeat, Some(us))).collect()
        };
        let both = |b: [i64; 3]| table(&campaign([of("a", [10, 12, 30]), of("b", b)].concat()));
        let overlapping = both([20, 25, 40]);
        assert_eq!((&overlapping.best, &overlapping.worst), (&vec![None], &vec![None]), "no real difference");
        let advice = recommend(&overlapping).unwrap();
        assert_eq!(advice.column, None);
        assert_eq!(advice.text, "Undecided between a; b, because their repeats overlap: measure longer.");
        assert_eq!(recommend(&both([31, 35, 40])).unwrap().column, Some(0));
    }

    #[test]
    fn ignores_invalid_and_missing_scenarios() {
        let mut bad = entry("idle", "a", 1, Some(1));
        bad.result.as_mut().unwrap().valid = false;
        let table = table(&campaign(vec![bad, entry("idle", "b", 1, None), entry("idle", "c", 1, Some(7))]));
        assert_eq!((&table.best[..], &table.worst[..]), (&[None][..], &[None][..]));
        let advice = recommend(&table).unwrap();
        assert_eq!(
            (advice.column, advice.text.as_str()),
            (None, "No recommendation: only 1 of 3 columns ran as requested in every row. a: invalid; b: not run.")
        );
    }

    #[test]
    fn a_campaign_without_a_complete_column_says_none() {
        let entries = ["a", "b"].map(|name| entry("idle", name, 1, None));
        let advice = recommend(&table(&campaign(entries.to_vec()))).unwrap();
        assert_eq!(
            advice.text,
            "No recommendation: none of 2 columns ran as requested in every row. a: not run; b: not run."
        );
    }

    #[test]
    fn cells_that_ended_early_or_lost_their_load_are_not_compared() {
        let with = |problem: &str, us| {
            let mut entry = entry("idle", problem, 1, Some(us));
            entry.result.as_mut().unwrap().problem = (problem != "good").then(|| problem.to_owned());
            entry
        };
        let table = table(&campaign(vec![
            with("the load cpu did not run to its end", 1),
            with("good", 7),
            with("the run ended early, in the phase `idle`", 900),
        ]));
        assert_eq!((table.best[0], table.worst[0]), (None, None));
        let advice = recommend(&table).unwrap();
        assert!(advice.column.is_none() && advice.text.contains("only 1 of 3 columns"), "{}", advice.text);
        assert!(advice.text.contains(": the load cpu did not run to its end;"), "{}", advice.text);
    }

    #[test]
    fn all_roles_count_whatever_their_periods() {
        let of = |placement: &str, base_us: i64, servo_us: i64| {
            let role = |role: &str, period_ns, us: i64| RoleResult {
                role: role.to_owned(),
                period_ns,
                max_ns: Some(us * 1000),
                ..RoleResult::default()
            };
            let roles = vec![role("base", 25_000, base_us), role("servo", 1_000_000, servo_us)];
            let result = ScenarioResult { valid: true, roles, ..Default::default() };
            ScenarioEntry { result: Some(result), ..entry("idle", placement, 1, None) }
        };
        let repeat = || [of("0-1", 6, 200), of("1-0", 8, 20), of("1-1", 15, 90)];
        let table = table(&campaign([repeat(), repeat()].concat()));
        let advice = recommend(&table).unwrap();
        assert_eq!((advice.column, table.best[0], table.worst[0]), (Some(1), Some(1), Some(0)));
        assert!(
            advice.text.starts_with("1-0 (base 8 us at worst, with idle; servo 20 us at worst, with idle)"),
            "{}",
            advice.text
        );
    }

    proptest! {
        #[test]
        fn never_recommends_a_column_that_is_worse_everywhere(values in prop::collection::vec(1i64..1000, 6)) {
            let names = [("l1", "a"), ("l1", "b"), ("l1", "c"), ("l2", "a"), ("l2", "b"), ("l2", "c")];
            let repeat = |repeat: u32| {
                let all = names.iter().zip(&values);
                all.map(move |(&(load, place), &us)| entry(load, place, repeat, Some(us))).collect::<Vec<_>>()
            };
            let table = table(&campaign([repeat(1), repeat(2)].concat()));
            if let Some(best) = recommend(&table).and_then(|advice| advice.column) {
                for other in 0..3 {
                    prop_assert!(values[best] <= values[other] || values[best + 3] <= values[other + 3]);
                }
                prop_assert!(table.worst.iter().all(|&worst| worst != Some(best)));
            }
        }
    }
}
