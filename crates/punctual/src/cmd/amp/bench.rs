//! `punctual amp bench`.

mod expected;

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use ::play::{
    block_cost::{BlockCost, block_us},
    board::FRAMES,
    library::is_model_file,
};
use amp::file::Options;
use anyhow::{Context, bail};

use super::{file_name, note, read_model};
use crate::{cli::AmpBench, exit::Usage, output};

/// The cost of one model.
struct Row {
    name: String,
    sample_rate_hz: f64,
    /// Name of the instruction set that plays it.
    instructions: &'static str,
    cost: BlockCost,
}

pub fn run(options: &AmpBench) -> anyhow::Result<u8> {
    let frames = options.frames as usize;
    let files = files(&options.files)?;
    if let Some(board) = options.board {
        if !options.frames.is_multiple_of(FRAMES) {
            let text = format!(
                "--frames must be a multiple of {FRAMES} with --board, because instructions were counted in blocks of \
                 {FRAMES} (got {frames}); for other blocks run `punctual amp bench` on the board"
            );
            return Err(Usage(text).into());
        }
        return expected::run(&files, board, options.json);
    }
    let width = width_of(&files);
    let print = |row: &Row, is_first: bool| match options.json {
        true => Ok(()),
        false => print(row, frames, width, is_first),
    };
    let Rows { rows, failed } = for_each(&files, |path| measure(path, frames), print)?;
    if options.json {
        let models: Vec<_> = rows.iter().map(|row| row.to_json(frames)).collect();
        let json = serde_json::json!({ "frames": frames, "models": models });
        output::stdout(|out| writeln!(out, "{}", output::json(&json)))?;
    }
    exit_status(failed, files.len())
}

/// The rows of the files that can be played.
struct Rows<R> {
    rows: Vec<R>,
    /// Number of named files that cannot.
    failed: usize,
}

/// The exit status after all results were printed.
fn exit_status(failed: usize, files: usize) -> anyhow::Result<u8> {
    if failed > 0 {
        bail!("{failed} of {files} files cannot be played, for the reasons above");
    }
    Ok(0)
}

/// The rows of all files, each made by `row` and then given to `print` with true for the first one. Unplayable files are skipped
/// with a note.
fn for_each<R>(
    files: &[(PathBuf, bool)],
    row: impl Fn(&Path) -> anyhow::Result<R>,
    print: impl Fn(&R, bool) -> anyhow::Result<()>,
) -> anyhow::Result<Rows<R>> {
    let (mut rows, mut failed) = (Vec::new(), 0);
    for (path, is_named) in files {
        match row(path) {
            Ok(row) => {
                print(&row, rows.is_empty())?;
                rows.push(row);
            }
            Err(error) if *is_named && files.len() == 1 => return Err(error),
            Err(error) => {
                failed += usize::from(*is_named);
                note(&format!("skipped: {error:#}"));
            }
        }
    }
    if rows.is_empty() {
        bail!("none of these models can be played: choose another folder, or name files");
    }
    Ok(Rows { rows, failed })
}

/// Width of the column of names.
fn width_of(files: &[(PathBuf, bool)]) -> usize {
    files.iter().map(|(path, _)| file_name(path).chars().count()).max().unwrap_or_default()
}

/// Prints a row as soon as it is measured, with the heading before the first one.
fn print(row: &Row, frames: usize, width: usize, is_first: bool) -> anyhow::Result<()> {
    output::stdout(|out| {
        if is_first {
            print_heading(out, frames, width)?;
        }
        writeln!(out, "{}", row.format(frames, width))
    })
}

fn print_heading(out: &mut dyn Write, frames: usize, width: usize) -> io::Result<()> {
    writeln!(out, "blocks of {frames} frames; times in us a block, shares of the duration of a block")?;
    let (best, median, share) = ("best us", "median", "share");
    writeln!(
        out,
        "{:<width$}  {best:>9}  {median:>9}  {:>9}  {share:>7}  {:>7}  {:>9}  with",
        "", "p99", "of p99", "real time"
    )
}

/// The files to measure; true if the file was named itself, false if its folder was.
fn files(paths: &[PathBuf]) -> anyhow::Result<Vec<(PathBuf, bool)>> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            files.extend(models_of(path)?.into_iter().map(|path| (path, false)));
        } else {
            files.push((path.clone(), true));
        }
    }
    Ok(files)
}

/// The models of a folder, in the order of their names.
fn models_of(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).and_then(|entries| entries.collect::<io::Result<Vec<_>>>());
    let entries = entries.with_context(|| format!("cannot read {}", folder.display()))?;
    let mut models: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
    models.retain(|path| is_model_file(path));
    if models.is_empty() {
        bail!("{} has no models (.nam, .json, .aidax): choose another folder, or name files", folder.display());
    }
    models.sort();
    Ok(models)
}

fn measure(path: &Path, frames: usize) -> anyhow::Result<Row> {
    let file = read_model(path)?;
    let mut model = file.model(Options::default()).with_context(|| path.display().to_string())?;
    let cost = BlockCost::measure(frames, |input, output| model.process(input, output));
    super::refuse_muted(path, &model)?;
    let instructions = model.instructions().name();
    Ok(Row { name: file_name(path), sample_rate_hz: file.sample_rate, instructions, cost })
}

impl Row {
    fn format(&self, frames: usize, width: usize) -> String {
        let block_us = block_us(frames, self.sample_rate_hz);
        let Self { name, instructions, cost, .. } = self;
        let (best, median, p99) = (cost.best_us(), cost.median_us(), cost.p99_us());
        let share = |us: f64| format!("{:.2} %", us / block_us * 100.0);
        format!(
            "{name:<width$}  {best:>9.2}  {median:>9.2}  {p99:>9.2}  {:>7}  {:>7}  {:>9}  {instructions}",
            share(median),
            share(p99),
            format!("{:.0}x", block_us / median)
        )
    }

    fn to_json(&self, frames: usize) -> serde_json::Value {
        let block_us = block_us(frames, self.sample_rate_hz);
        let Self { name, sample_rate_hz, instructions, cost } = self;
        serde_json::json!({
            "file": name,
            "sample_rate_hz": sample_rate_hz,
            "instructions": instructions,
            "best_us": cost.best_us(),
            "median_us": cost.median_us(),
            "p99_us": cost.p99_us(),
            "share": cost.median_us() / block_us,
            "share_p99": cost.p99_us() / block_us,
            "real_time_factor": block_us / cost.median_us(),
        })
    }
}
