//! Several kernels, or one several times: a record for each boot, and the table of `compare --across kernel`.

use std::path::{Path, PathBuf};

use analysis::versus::LEAST_RATIO;

use super::{boot, has_failed, in_one_line};
use crate::{
    cli::{Color, Lab, OutputOptions},
    cmd::{compare::Values, rounds},
    exit,
    output::{self, RecordFiles},
};

/// Boots each kernel `rounds` times. The kernels alternate, so that a drift of the host is not a difference of kernels.
pub fn run(options: &Lab, kernels: &[PathBuf], rounds: u32) -> anyhow::Result<u8> {
    let folder = match options.record.no_record {
        true => None,
        false => Some(rounds::folder(options.record.record.as_deref(), "kernels")?),
    };
    let (mut values, mut outcomes, mut failed) = (Values::of("kernel"), Vec::new(), 0);
    for round in 1..=rounds {
        for (index, kernel) in kernels.iter().enumerate() {
            let name = record_name(index, kernel, (rounds > 1).then_some(round));
            let path = folder.as_ref().map(|folder| folder.join(&name));
            let files = RecordFiles::choose(path.as_deref(), path.is_none())?;
            match boot(options, kernel, &files) {
                Ok(booted) => {
                    failed += u32::from(has_failed(booted.status));
                    if let Some(record) = &booted.record {
                        outcomes.extend(analysis::outcome(record));
                        values.add(path.map_or(name, |path| path.to_string_lossy().into_owned()), record);
                    }
                }
                Err(error) => {
                    failed += 1;
                    say!("error: {}: {}", kernel.display(), in_one_line(&error));
                }
            }
        }
    }
    if (2..kernels.len()).contains(&values.len()) {
        say!("note: some kernels have the same version: their records share a row");
    }
    print_table(values)?;
    Ok(if failed > 0 { exit::FAILED } else { rounds::worst(&outcomes).exit_status() })
}

/// The name of a record. It has the number of the kernel, because two kernels may have the same file name.
fn record_name(index: usize, kernel: &Path, round: Option<u32>) -> String {
    let kernel = kernel.file_name().unwrap_or_default().to_string_lossy();
    let round = round.map(|round| format!("-{round}")).unwrap_or_default();
    format!("{}-{kernel}{round}.punctual.json", index + 1)
}

/// Prints the figures of each kernel version, if there are several.
fn print_table(values: Values) -> anyhow::Result<()> {
    if values.len() == 0 {
        return Ok(());
    }
    if let Some(kernel) = values.single() {
        say!("note: no table of kernels: all records are of kernel {kernel}");
        return Ok(());
    }
    let across = values.compare(LEAST_RATIO);
    let options = OutputOptions { json: false, quiet: false, color: Color::Auto };
    output::print(options, |style, width| report::terminal::across(&across, false, style, width))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_equal_file_names_have_different_names() {
        let names =
            [(0, "a/bzImage", None), (1, "b/bzImage", None), (0, "a/bzImage", Some(1)), (0, "a/bzImage", Some(2))]
                .map(|(index, kernel, round)| record_name(index, Path::new(kernel), round));
        assert_eq!(
            names,
            [
                "1-bzImage.punctual.json",
                "2-bzImage.punctual.json",
                "1-bzImage-1.punctual.json",
                "1-bzImage-2.punctual.json"
            ]
        );
    }
}
