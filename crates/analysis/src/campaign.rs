//! The table of a campaign: what was measured and what disturbed it down the side, what one can choose across, and the
//! recommendation that follows.

use record::{Campaign, Outcome, ScenarioEntry, ScenarioResult};

use crate::format_ns;

/// The table: rows are probe and load, columns are placement and settings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CampaignTable {
    /// Names of the rows.
    pub rows: Vec<String>,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// By row, then column; `None` where the campaign has no such scenario.
    pub cells: Vec<Vec<Option<CampaignCell>>>,
    /// Row and column of the best cell; absent with fewer than two that have run, as the next.
    pub best: Option<(usize, usize)>,
    /// Row and column of the worst cell.
    pub worst: Option<(usize, usize)>,
}

/// One cell: a scenario in all its repeats.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CampaignCell {
    /// One entry a role, worst of the repeats.
    pub roles: Vec<RoleCell>,
    /// How bad each repeat that has run was: the largest lateness, as a multiple of the period where there is one.
    pub badness: Vec<f64>,
    /// Repeats that the plan has.
    pub repeats: usize,
    /// Whether what was asked for is what ran, each time.
    pub valid: bool,
    /// The worst verdict of the repeats; absent without a profile.
    pub outcome: Option<Outcome>,
    /// The heaviest culprit of the worst repeat.
    pub culprit: Option<String>,
    /// Why a repeat could not run.
    pub error: Option<String>,
}

/// What one role saw in a cell.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RoleCell {
    /// The role.
    pub role: String,
    /// Largest median of the repeats, ns.
    pub p50_ns: Option<i64>,
    /// Largest lateness of all repeats, ns.
    pub max_ns: Option<i64>,
    /// Largest lateness of the best repeat, ns.
    pub least_max_ns: Option<i64>,
    /// Deadlines missed in all repeats.
    pub missed: u64,
    /// Largest jitter of all repeats, ns.
    pub jitter_ns: u64,
    /// Wake-ups in all repeats.
    pub samples: u64,
}

impl CampaignCell {
    /// The worst repeat; `None` before one has run.
    #[must_use]
    pub fn worst(&self) -> Option<f64> {
        self.badness.iter().copied().reduce(f64::max)
    }

    fn take_in(&mut self, entry: &ScenarioEntry) {
        self.repeats += 1;
        self.error = self.error.take().or_else(|| entry.error.clone());
        let Some(result) = &entry.result else { return };
        let bad = badness(result);
        if self.worst().is_none_or(|worst| bad > worst) {
            self.culprit.clone_from(&result.culprit);
        }
        self.valid &= result.valid;
        self.outcome = [self.outcome, result.outcome].into_iter().flatten().max_by_key(|&outcome| weight(outcome));
        self.badness.push(bad);
        for of in &result.roles {
            let at = self.roles.iter().position(|cell| cell.role == of.role).unwrap_or_else(|| {
                self.roles.push(RoleCell { role: of.role.clone(), ..RoleCell::default() });
                self.roles.len() - 1
            });
            let cell = &mut self.roles[at];
            cell.p50_ns = cell.p50_ns.max(of.p50_ns);
            cell.least_max_ns = [cell.least_max_ns, of.max_ns].into_iter().flatten().min();
            cell.max_ns = cell.max_ns.max(of.max_ns);
            cell.missed += of.missed;
            cell.samples += of.samples;
            cell.jitter_ns = cell.jitter_ns.max(of.jitter_ns);
        }
    }
}

/// The heavier outcome stands for several.
fn weight(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Pass => 0,
        Outcome::Inconclusive => 1,
        Outcome::Invalid => 2,
        Outcome::Fail => 3,
    }
}

/// How bad a run was: the largest lateness, as a multiple of the period where there is one, of the worst role.
fn badness(result: &ScenarioResult) -> f64 {
    let of_role = |role: &record::RoleResult| role.max_ns.unwrap_or(0) as f64 / role.period_ns.max(1) as f64;
    result.roles.iter().map(of_role).fold(0.0, f64::max)
}

/// A part of a scenario, by its name.
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
        // With nothing that varies, the more telling part stands for all.
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
            .take_in(entry);
    }
    mark(&mut table);
    table
}

fn index_of(names: &mut Vec<String>, name: String) -> usize {
    names.iter().position(|known| *known == name).unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    })
}

fn mark(table: &mut CampaignTable) {
    let ran = table.cells.iter().enumerate().flat_map(|(row, cells)| {
        let bad = |cell: &Option<CampaignCell>| cell.as_ref().filter(|cell| cell.valid).and_then(CampaignCell::worst);
        cells.iter().enumerate().filter_map(move |(column, cell)| Some(((row, column), bad(cell)?)))
    });
    let ran: Vec<_> = ran.collect();
    if ran.len() > 1 {
        table.best = ran.iter().min_by(|a, b| a.1.total_cmp(&b.1)).map(|&(at, _)| at);
        table.worst = ran.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|&(at, _)| at);
    }
}

/// Which column to choose, and how sure that is.
#[derive(Debug, Clone, PartialEq)]
pub struct Recommendation {
    /// The column; `None` where the figures do not tell the best two apart.
    pub column: Option<usize>,
    /// In one or two sentences.
    pub text: String,
}

/// Recommends the column whose worst row is best. `None` with fewer than two columns that ran whole.
#[must_use]
pub fn recommend(table: &CampaignTable) -> Option<Recommendation> {
    let mut columns: Vec<Column> = (0..table.columns.len()).filter_map(|index| Column::of(table, index)).collect();
    columns.sort_by(|a, b| a.worst().total_cmp(&b.worst()));
    let [best, next, ..] = &columns[..] else { return None };
    let told = |column: &Column| {
        let (row, max_ns) = column.worst_cell;
        format!("{} ({} at worst, with {})", table.columns[column.index], format_ns(max_ns), table.rows[row])
    };
    let repeats = best.repeats.len().min(next.repeats.len());
    let apart = best.worst() < next.best();
    let text = match (repeats, apart) {
        (_, false) if repeats > 1 => {
            format!("No real difference between {} and {}: their {repeats} repeats overlap.", told(best), told(next))
        }
        (1, _) => format!(
            "{}; then {}. This rests on one repeat: with `repeats = 3` or more the table can tell a difference from chance.",
            told(best),
            told(next)
        ),
        _ => format!(
            "{}; then {}. Each of the {repeats} repeats of the first was better than any of the second.",
            told(best),
            told(next)
        ),
    };
    let column = (apart || repeats == 1).then_some(best.index);
    Some(Recommendation { column, text })
}

/// A column with all rows done.
struct Column {
    index: usize,
    /// By repeat: the badness of the worst row.
    repeats: Vec<f64>,
    /// Row of the worst cell, and its largest lateness, ns.
    worst_cell: (usize, i64),
}

impl Column {
    fn of(table: &CampaignTable, index: usize) -> Option<Self> {
        let cells: Vec<&CampaignCell> = table.cells.iter().map(|row| row[index].as_ref()).collect::<Option<_>>()?;
        if cells.iter().any(|cell| !cell.valid || cell.badness.len() < cell.repeats) {
            return None;
        }
        let repeats = cells.iter().map(|cell| cell.badness.len()).min()?;
        let of_repeat = |repeat: usize| cells.iter().map(|cell| cell.badness[repeat]).fold(0.0, f64::max);
        let bad = |cell: &CampaignCell| cell.worst().unwrap_or(0.0);
        let (row, cell) = cells.iter().enumerate().max_by(|a, b| bad(a.1).total_cmp(&bad(b.1)))?;
        let max_ns = cell.roles.iter().filter_map(|role| role.max_ns).max()?;
        Some(Self { index, repeats: (0..repeats).map(of_repeat).collect(), worst_cell: (row, max_ns) })
    }

    fn worst(&self) -> f64 {
        self.repeats.iter().copied().fold(0.0, f64::max)
    }

    fn best(&self) -> f64 {
        self.repeats.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use record::RoleResult;

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
    fn loads_stand_down_and_placements_across_with_the_best_and_worst_marked() {
        let table = table(&campaign(vec![
            entry("idle", "isolated", 1, Some(5)),
            entry("idle", "ordinary", 1, Some(40)),
            entry("cpu", "isolated", 1, Some(9)),
            entry("cpu", "ordinary", 1, Some(900)),
        ]));
        assert_eq!((table.rows.join(" "), table.columns.join(" ")), ("idle cpu".into(), "isolated ordinary".into()));
        assert_eq!((table.best, table.worst), (Some((0, 0)), Some((1, 1))));
        let advice = recommend(&table).unwrap();
        assert_eq!(advice.column, Some(0));
        assert!(
            advice.text.starts_with("isolated (9 us at worst, with cpu); then ordinary (900 us"),
            "{}",
            advice.text
        );
        assert!(advice.text.contains("one repeat"), "{}", advice.text);
    }

    #[test]
    fn repeats_that_overlap_are_no_difference() {
        let of = |name: &str, values: [i64; 3]| -> Vec<_> {
            values.iter().zip(1..).map(|(&us, repeat)| entry("idle", name, repeat, Some(us))).collect()
        };
        let both = |b: [i64; 3]| table(&campaign([of("a", [10, 12, 30]), of("b", b)].concat()));
        let advice = recommend(&both([20, 25, 40])).unwrap();
        assert_eq!(advice.column, None);
        assert!(advice.text.starts_with("No real difference"), "{}", advice.text);
        assert_eq!(recommend(&both([31, 35, 40])).unwrap().column, Some(0));
    }

    #[test]
    fn what_has_not_run_or_is_not_valid_is_neither_best_nor_recommended() {
        let mut bad = entry("idle", "a", 1, Some(1));
        bad.result.as_mut().unwrap().valid = false;
        let table = table(&campaign(vec![bad, entry("idle", "b", 1, None), entry("idle", "c", 1, Some(7))]));
        assert_eq!((table.best, recommend(&table)), (None, None));
    }

    proptest! {
        #[test]
        fn the_recommended_column_is_never_worse_everywhere(values in prop::collection::vec(1i64..1000, 6)) {
            let names = [("l1", "a"), ("l1", "b"), ("l1", "c"), ("l2", "a"), ("l2", "b"), ("l2", "c")];
            let table = table(&campaign(
                names.iter().zip(&values).map(|(&(load, place), &us)| entry(load, place, 1, Some(us))).collect(),
            ));
            let best = recommend(&table).and_then(|advice| advice.column).unwrap();
            for other in 0..3 {
                prop_assert!(values[best] <= values[other] || values[best + 3] <= values[other + 3]);
            }
        }
    }
}
