//! A published matrix in a reference file: the jitter of two threads for each pair of CPUs.

use record::{Cell, CellThread, Figures, NOLOAD};
use serde::Deserialize;

use crate::parse_ns;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Matrix {
    /// Short name of the load.
    phase: String,
    /// The load in our syntax, or [`NOLOAD`].
    load: String,
    /// The load in the source's words.
    #[serde(default)]
    said: String,
    /// The thread whose CPU selects the line, from CPU 0.
    row: Thread,
    /// The thread whose CPU selects the column, from CPU 0.
    column: Thread,
    /// The roles before and after the slash in a cell.
    order: [String; 2],
    duration_ns: Option<u64>,
    #[serde(default)]
    tool: String,
    /// One line per row, with cells separated by spaces.
    jitter_us: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Thread {
    role: String,
    period_ns: u64,
}

impl Matrix {
    /// The cells. Only place, period and jitter of their threads are known.
    pub(super) fn cells(&self) -> Result<Vec<Cell>, String> {
        for role in [&self.row.role, &self.column.role] {
            if !self.order.contains(role) {
                return Err(format!("order must contain {role:?}, e.g. order = [\"servo\", \"base\"]"));
            }
        }
        let lines = self.jitter_us.lines().filter(|line| !line.trim().is_empty());
        let mut cells = Vec::new();
        for (row_cpu, line) in (0..).zip(lines) {
            for (column_cpu, text) in (0..).zip(line.split_whitespace()) {
                let threads =
                    vec![self.thread(&self.row, row_cpu, text)?, self.thread(&self.column, column_cpu, text)?];
                let invalid = Some("published elsewhere, with jitter as its only figure".to_owned());
                cells.push(Cell { load: self.load.clone(), threads, invalid, ..Cell::default() });
            }
        }
        Ok(cells)
    }

    fn thread(&self, of: &Thread, cpu: u32, text: &str) -> Result<CellThread, String> {
        let (first, second) =
            text.split_once('/').ok_or_else(|| format!("{text:?} is not a cell: write e.g. 7.7/7.5"))?;
        let jitter_us = if self.order[0] == of.role { first } else { second };
        let jitter_ns = parse_ns(&format!("{jitter_us}us")).map_err(|error| error.to_string())?;
        let (role, period_ns) = (of.role.clone(), of.period_ns);
        Ok(CellThread { role, cpu, period_ns, jitter_ns, ..CellThread::default() })
    }

    /// The worst jitter of each thread, on a shared CPU and on separate CPUs.
    pub(super) fn figures(&self, cells: &[Cell]) -> Vec<Figures> {
        let mut all = Vec::new();
        for together in [true, false] {
            for thread in [&self.row, &self.column] {
                let of_kind = cells.iter().filter(|cell| (cell.threads[0].cpu == cell.threads[1].cpu) == together);
                let of_thread = of_kind.flat_map(|cell| &cell.threads).filter(|of| of.role == thread.role);
                let jitters: Vec<u64> = of_thread.map(|of| of.jitter_ns).collect();
                let Some(&worst) = jitters.iter().max() else { continue };
                let place = if together { "both threads on one CPU" } else { "threads on separate CPUs" };
                all.push(Figures {
                    probe: "threads".to_owned(),
                    phase: self.phase.clone(),
                    said: self.said.clone(),
                    loads: Some(if self.load == NOLOAD { Vec::new() } else { vec![self.load.clone()] }),
                    role: thread.role.clone(),
                    together: Some(together),
                    tool: self.tool.clone(),
                    period_ns: Some(thread.period_ns),
                    duration_ns: self.duration_ns,
                    jitter_ns: Some(worst),
                    note: format!("the worst of {} pairs with {place}", jitters.len()),
                    ..Figures::default()
                });
            }
        }
        all
    }
}
