//! Recommends a column of a campaign's table.

use record::{Campaign, Measured, Outcome, grouped};

use super::{Badness, CampaignCell, CampaignTable, RoleCell};
use crate::{badness::contenders, format_ns};

/// The number of undecided columns that are named; more are counted.
const NAMED: usize = 8;

/// The recommended column and how certain it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Recommendation {
    /// The column; `None` if the figures do not separate it from all others.
    pub column: Option<usize>,
    /// True if at least two columns could be compared.
    pub is_compared: bool,
    /// The recommendation in one or two sentences.
    pub text: String,
}

/// The exit status of a campaign: that of its scenarios; 3 if it compared columns, judged no use and did not decide.
#[must_use]
pub fn exit_status(campaign: &Campaign) -> u8 {
    let is_judged = campaign.scenarios.iter().filter_map(|entry| entry.result.as_ref()).any(|of| of.outcome.is_some());
    let is_undecided = recommend(&super::table(campaign)).is_some_and(|advice| advice.column.is_none());
    match campaign.exit_status() {
        0 if is_undecided && !is_judged => Outcome::Inconclusive.exit_status(),
        status => status,
    }
}

/// Recommends the column whose worst row is best in every repeat: least losses, then fewest late packets, then least
/// lateness. `None` with fewer than two columns. If no column is shown to be better than all others, or fewer than two ran
/// as requested in every row, the text states why there is no recommendation.
#[must_use]
pub fn recommend(table: &CampaignTable) -> Option<Recommendation> {
    let mut columns: Vec<Column> = (0..table.columns.len()).filter_map(|index| Column::of(table, index)).collect();
    columns.sort_by(|a, b| Badness::worst(&a.repeats).compare(&Badness::worst(&b.repeats)));
    if table.columns.len() < 2 {
        return None;
    }
    let [best, next, ..] = &columns[..] else {
        return Some(Recommendation { column: None, is_compared: false, text: why_none(table, &columns) });
    };
    let describe = |column: &Column| {
        let several = column.roles.len() > 1;
        let of_role = |(row, role): &(usize, RoleCell)| {
            let name = if several { format!("{} ", role.role) } else { String::new() };
            format!("{name}{}, with {}", at_worst(role), table.rows[*row])
        };
        let roles: Vec<String> = column.roles.iter().map(of_role).collect();
        format!("{} ({})", table.columns[column.index], roles.join("; "))
    };
    let rounds: Vec<&[Badness]> = columns.iter().map(|column| &*column.repeats).collect();
    let contenders = contenders(&rounds);
    let text = match (&contenders[..], contenders.iter().map(|&index| rounds[index].len()).min()) {
        ([_], Some(repeats)) => format!(
            "{}; then {}. Each of the {repeats} repeats of the first was better than any of the others.",
            describe(best),
            describe(next)
        ),
        (_, Some(2..)) => format!(
            "Undecided between {}, because their repeats overlap: measure longer.",
            listed(&contenders.iter().map(|&index| &*table.columns[columns[index].index]).collect::<Vec<_>>())
        ),
        _ => format!(
            "Undecided, because each scenario ran only once: `repeats = 3` separates a difference from chance. The least \
             bad was {}; then {}.",
            describe(best),
            describe(next)
        ),
    };
    let column = (contenders.len() == 1).then_some(best.index);
    Some(Recommendation { column, is_compared: true, text })
}

/// Names in a sentence, at most [`NAMED`] of them.
fn listed(names: &[&str]) -> String {
    match names.len().saturating_sub(NAMED) {
        0 => names.join("; "),
        more => format!("{}; and {more} more", names[..NAMED].join("; ")),
    }
}

/// The reason why there is no recommendation: for each column, the problem of its first cell that has one.
fn why_none(table: &CampaignTable, complete: &[Column]) -> String {
    let problem = |index: usize| {
        let cells = table.cells.iter().map(|row| row[index].as_ref());
        let problem = cells.filter_map(|cell| cell.map_or(Some("not planned".to_owned()), problem)).next();
        Some(format!("{}: {}", table.columns[index], problem?))
    };
    let problems: Vec<String> = (0..table.columns.len()).filter_map(problem).collect();
    let columns = table.columns.len();
    let ran = match complete.len() {
        0 => "none".to_owned(),
        ran => format!("only {ran}"),
    };
    format!("No recommendation: {ran} of {columns} columns ran as requested in every row. {}.", problems.join("; "))
}

/// Why a cell cannot be compared with others.
fn problem(cell: &CampaignCell) -> Option<String> {
    if let Some(problem) = &cell.problem {
        return Some(problem.clone());
    }
    if !cell.valid {
        return Some("invalid".to_owned());
    }
    (cell.badness.len() < cell.repeats).then(|| if cell.error.is_some() { "failed" } else { "not run" }.to_owned())
}

/// A column in which all rows have run.
struct Column {
    index: usize,
    /// The badness of the worst row, by repeat.
    repeats: Vec<Badness>,
    /// Each role with its counts and largest time in all rows, and the row with that time.
    roles: Vec<(usize, RoleCell)>,
}

impl Column {
    fn of(table: &CampaignTable, index: usize) -> Option<Self> {
        let cells: Vec<&CampaignCell> = table.cells.iter().map(|row| row[index].as_ref()).collect::<Option<_>>()?;
        if cells.iter().any(|cell| !cell.valid || cell.badness.len() < cell.repeats) {
            return None;
        }
        let repeats = cells.iter().map(|cell| cell.badness.len()).min()?;
        let of_repeat =
            |repeat: usize| cells.iter().map(|cell| cell.badness[repeat]).fold(Badness::default(), Badness::worse);
        let mut roles: Vec<(usize, RoleCell)> = Vec::new();
        for (row, cell) in cells.iter().enumerate() {
            for role in cell.roles.iter().filter(|role| role.max_ns.is_some()) {
                match roles.iter_mut().find(|(_, known)| (&known.role, known.measured) == (&role.role, role.measured)) {
                    Some((latest, known)) => {
                        *latest = if role.max_ns > known.max_ns { row } else { *latest };
                        known.add_row(role);
                    }
                    None => roles.push((row, role.clone())),
                }
            }
        }
        (!roles.is_empty()).then(|| Self { index, repeats: (0..repeats).map(of_repeat).collect(), roles })
    }
}

/// The reasons for a cell's badness: losses first, then late packets, then the largest time.
fn at_worst(role: &RoleCell) -> String {
    let max = role.max_ns.map_or_else(String::new, format_ns);
    let some = |count: u64, what: &str| (count > 0).then(|| format!("{} {what}", grouped(count)));
    let (lost, late) = (some(role.lost.unwrap_or(0), "lost"), some(role.late.unwrap_or(0), "late packets"));
    let parts = match role.measured {
        Measured::Lateness => [lost, some(role.missed, "missed"), Some(format!("{max} at worst"))],
        Measured::Gap => return format!("{max} at worst"),
        Measured::Response => {
            let unknown = some(role.unknown.unwrap_or(0), "unknown");
            [some(role.lost.unwrap_or(0), "without an answer"), unknown, Some(format!("{max} at worst"))]
        }
        Measured::RoundTrip => [lost, some(role.missed, "not sent"), Some(format!("{max} at worst"))],
        Measured::SendLateness => [some(role.missed, "missed slots"), late, Some(format!("max delta {max}"))],
        Measured::Completion => {
            let xruns = some(role.late.unwrap_or(0), "xruns");
            [xruns, None, Some(format!("done {max} after the deadline at worst"))]
        }
        Measured::FrameGap => [lost, None, Some(format!("up to {max} between two frames"))],
        Measured::Spacing => {
            let late = role.late.map_or_else(|| Some("lateness not known".to_owned()), |_| late);
            [lost, late, Some(format!("up to {max} between two frames captured"))]
        }
    };
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
