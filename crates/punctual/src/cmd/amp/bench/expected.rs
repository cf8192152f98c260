//! `punctual amp bench --board`: the expected cost of models on another machine.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use ::play::board::{Board, FRAMES};
use amp::{
    file::Options,
    work::{NEON_ERROR, Work},
};
use anyhow::Context;
use record::grouped;

use super::{Rows, exit_status, for_each, width_of};
use crate::{
    cmd::amp::{file_name, read_model},
    output,
};

/// The expected cost of one model.
struct Row {
    name: String,
    sample_rate_hz: f64,
    work: Work,
    /// Lowest and highest expected share of the core.
    shares: [f64; 2],
}

/// Prints the expected cost of the models.
pub fn run(files: &[(PathBuf, bool)], board: Board, is_json: bool) -> anyhow::Result<u8> {
    let Rows { rows, failed } = for_each(files, |path| Row::new(path, board), |_, _| Ok(()))?;
    if is_json {
        let models: Vec<_> = rows.iter().map(Row::to_json).collect();
        let Board { core, clock_mhz } = board;
        let json = serde_json::json!({
            "frames": FRAMES,
            "core": core.name,
            "clock_mhz": clock_mhz,
            "instructions_a_cycle": core.instructions_a_cycle,
            "is_estimate": true,
            "models": models,
        });
        output::stdout(|out| writeln!(out, "{}", output::json(&json)))?;
        return exit_status(failed, files.len());
    }
    output::stdout(|out| {
        print_heading(out, board, width_of(files))?;
        for row in &rows {
            writeln!(out, "{}", row.format(width_of(files)))?;
        }
        writeln!(out, "{}", certainty(&rows))
    })?;
    exit_status(failed, files.len())
}

fn print_heading(out: &mut dyn Write, Board { core, clock_mhz }: Board, width: usize) -> io::Result<()> {
    let [slow, fast] = core.instructions_a_cycle;
    writeln!(
        out,
        "expected on one core {} at {clock_mhz} MHz with {slow} to {fast} instructions a cycle, in blocks of {FRAMES} frames",
        core.name
    )?;
    writeln!(out, "{:<width$}  {:>18}  {:>17}  {:>14}", "", "instructions/frame", "share of the core", "real time")
}

/// The lines about the errors of the figures.
fn certainty(rows: &[Row]) -> String {
    let percent = NEON_ERROR * 100.0;
    let uncounted = match rows.iter().any(|row| !row.work.is_counted) {
        true => "; ? marks other kinds of models, whose error is unknown",
        false => "",
    };
    format!(
        "instructions: estimated, within {percent:.0} % of counts in an emulator{uncounted}\n\
         instructions a cycle: not measured on a board; for a measurement run `punctual amp bench` on the board"
    )
}

impl Row {
    fn new(path: &Path, board: Board) -> anyhow::Result<Self> {
        let file = read_model(path)?;
        let model = file.model(Options::default()).with_context(|| path.display().to_string())?;
        let work = model.work();
        let shares = board.shares(work.neon_instructions, file.sample_rate);
        Ok(Self { name: file_name(path), sample_rate_hz: file.sample_rate, work, shares })
    }

    fn format(&self, width: usize) -> String {
        let Self { name, work, shares: [low, high], .. } = self;
        let mark = if work.is_counted { ' ' } else { '?' };
        let count = grouped(whole(work.neon_instructions));
        let shares = format!("{} to {} %", short(low * 100.0), short(high * 100.0));
        let factors = format!("{}x to {}x", short(1.0 / high), short(1.0 / low));
        format!("{name:<width$}  {count:>17}{mark}  {shares:>17}  {factors:>14}")
    }

    fn to_json(&self) -> serde_json::Value {
        let Self { name, sample_rate_hz, work, shares: [low, high] } = self;
        serde_json::json!({
            "file": name,
            "sample_rate_hz": sample_rate_hz,
            "instructions_a_frame": work.neon_instructions,
            "instructions_error": work.is_counted.then_some(NEON_ERROR),
            "share_low": low,
            "share_high": high,
            "real_time_factor_low": 1.0 / high,
            "real_time_factor_high": 1.0 / low,
        })
    }
}

/// A number with about two digits; more would be misleading.
fn short(x: f64) -> String {
    if x < 10.0 { format!("{x:.1}") } else { format!("{x:.0}") }
}

/// The nearest whole number of instructions.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive and far below 2^53")]
fn whole(instructions: f64) -> u64 {
    instructions.round() as u64
}
