//! `punctual amp bench`.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use amp::file::Options;
use anyhow::{Context, bail};

use super::{
    cost::{Cost, budget_us},
    name_of,
};
use crate::{cli::AmpBench, output};

/// What a folder's models are called.
const EXTENSIONS: [&str; 3] = ["nam", "json", "aidax"];

/// One model's cost.
struct Row {
    name: String,
    sample_rate_hz: f64,
    /// What it is played with.
    instructions: &'static str,
    cost: Cost,
}

pub fn run(options: &AmpBench) -> anyhow::Result<u8> {
    let frames = options.frames as usize;
    let files = files(&options.files)?;
    let width = files.iter().map(|(path, _)| name_of(path).chars().count()).max().unwrap_or_default();
    let mut rows = Vec::new();
    for (path, is_asked_for) in &files {
        match measured(path, frames) {
            Ok(row) => {
                if !options.json {
                    print(&row, frames, width, rows.is_empty())?;
                }
                rows.push(row);
            }
            Err(error) if *is_asked_for => return Err(error),
            Err(error) => say!("note: {error:#}; left out"),
        }
    }
    if rows.is_empty() {
        bail!("none of these models can be played: name another folder, or files");
    }
    if options.json {
        let models: Vec<_> = rows.iter().map(|row| row.as_json(frames)).collect();
        let json = serde_json::json!({ "frames": frames, "models": models });
        output::stdout(|out| writeln!(out, "{json:#}"))?;
    }
    Ok(0)
}

/// Prints a row as soon as it is measured, the first one below the table's head.
fn print(row: &Row, frames: usize, width: usize, is_first: bool) -> anyhow::Result<()> {
    output::stdout(|out| {
        if is_first {
            head(out, frames, width)?;
        }
        writeln!(out, "{}", row.in_words(frames, width))
    })
}

fn head(out: &mut dyn Write, frames: usize, width: usize) -> io::Result<()> {
    writeln!(out, "{frames} frames a block; us a block, shares of a block's time")?;
    let (best, median, share) = ("best us", "median", "share");
    writeln!(
        out,
        "{:<width$}  {best:>9}  {median:>9}  {:>9}  {share:>7}  {:>7}  {:>9}  with",
        "", "p99", "of p99", "real time"
    )
}

/// The files to measure, and whether each was named itself.
fn files(given: &[PathBuf]) -> anyhow::Result<Vec<(PathBuf, bool)>> {
    let mut files = Vec::new();
    for path in given {
        if !path.is_dir() {
            files.push((path.clone(), true));
            continue;
        }
        let what = || format!("cannot read {}", path.display());
        let entries: Result<Vec<PathBuf>, _> =
            fs::read_dir(path).with_context(what)?.map(|entry| entry.map(|entry| entry.path())).collect();
        let is_model = |path: &PathBuf| {
            path.extension().is_some_and(|it| EXTENSIONS.iter().any(|extension| it.eq_ignore_ascii_case(extension)))
        };
        let mut models: Vec<PathBuf> = entries.with_context(what)?.into_iter().filter(is_model).collect();
        if models.is_empty() {
            bail!("{} holds no models (.nam, .json, .aidax): name another folder, or files", path.display());
        }
        models.sort();
        files.extend(models.into_iter().map(|path| (path, false)));
    }
    Ok(files)
}

fn measured(path: &Path, frames: usize) -> anyhow::Result<Row> {
    let file = super::read(path)?;
    let mut model = file.model(Options::default()).with_context(|| path.display().to_string())?;
    let cost = Cost::of(frames, |input, output| model.process(input, output));
    let instructions = model.instructions().name();
    Ok(Row { name: name_of(path), sample_rate_hz: file.sample_rate, instructions, cost })
}

impl Row {
    fn in_words(&self, frames: usize, width: usize) -> String {
        let budget_us = budget_us(frames, self.sample_rate_hz);
        let Self { name, instructions, cost, .. } = self;
        let (best, median, p99) = (cost.best_us(), cost.median_us(), cost.p99_us());
        let share = |us: f64| format!("{:.2} %", us / budget_us * 100.0);
        format!(
            "{name:<width$}  {best:>9.2}  {median:>9.2}  {p99:>9.2}  {:>7}  {:>7}  {:>9}  {instructions}",
            share(median),
            share(p99),
            format!("{:.0}x", budget_us / median)
        )
    }

    fn as_json(&self, frames: usize) -> serde_json::Value {
        let budget_us = budget_us(frames, self.sample_rate_hz);
        let Self { name, sample_rate_hz, instructions, cost } = self;
        serde_json::json!({
            "file": name,
            "sample_rate_hz": sample_rate_hz,
            "instructions": instructions,
            "best_us": cost.best_us(),
            "median_us": cost.median_us(),
            "p99_us": cost.p99_us(),
            "share": cost.median_us() / budget_us,
            "share_p99": cost.p99_us() / budget_us,
            "real_time_factor": budget_us / cost.median_us(),
        })
    }
}
