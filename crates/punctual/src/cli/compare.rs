//! Options of `compare`.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum};

use super::{Extent, OutputOptions, show::unit};

/// Options of `compare`.
#[derive(Debug, Args)]
pub struct Compare {
    /// The first side; after `--` comes the second one.
    ///
    /// Records, folders of records, files of other tools, published figures, or LAST. Each record is a round. Two names
    /// without `--` are a side each.
    #[arg(required = true, value_name = "A")]
    pub a: Vec<String>,
    /// The second side; `--` means the same.
    // Another `--` would add to the second side silently.
    #[arg(long = "versus", value_name = "B", num_args = 1.., action = ArgAction::Set)]
    pub b: Vec<String>,
    /// Compare the values of this condition in their order.
    ///
    /// All records are grouped by it: kernel, host, governor, or another condition that `--full` lists. Each value is compared
    /// with the one before it, and the last one with the first.
    #[arg(long, value_name = "CONDITION", conflicts_with = "b")]
    pub across: Option<String>,
    /// Unit of files that state none: ns, us, ms or s.
    ///
    /// Results of cyclictest as text, and tables; without it, us are assumed.
    #[arg(long, value_name = "UNIT", value_parser = unit)]
    pub unit: Option<import::Unit>,
    /// Difference that rounds should show.
    ///
    /// Without a difference, the number of rounds that would show this one is printed.
    #[arg(long, value_name = "PERCENT", default_value = "20%", value_parser = percent)]
    pub least: f64,
    /// Exit with 2 if B is this.
    ///
    /// And with 3 if nothing could be judged.
    #[arg(long, value_name = "RESULT")]
    pub fail_if: Option<FailIf>,
    /// Judge by this profile, not the records'; repeatable.
    #[arg(long = "profile", value_name = "NAME|FILE")]
    pub profiles: Vec<String>,
    /// Write FILE; its suffix is the format; repeatable.
    ///
    /// html with curves, md, tex or csv for the table, json with everything.
    #[arg(long = "export", value_name = "FILE")]
    pub exports: Vec<PathBuf>,
    /// Output on the terminal.
    #[command(flatten)]
    pub output: OutputOptions,
    /// The extent of the printed result.
    #[command(flatten)]
    pub extent: Extent,
}

/// A result that makes the exit status 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailIf {
    /// It is less punctual in a figure.
    Worse,
    /// It is not more punctual.
    NotBetter,
}

/// A share from a percentage, `20%` or `20`: above 0 and at most 1000 %.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end();
    let percent = number.parse::<f64>().ok().filter(|&percent| percent > 5.0 && percent <= 1_000.0);
    let otherwise = || "use a percentage above 5, because smaller differences are not judged, and up to 1000, e.g. 20%";
    percent.map(|percent| percent / 100.0).ok_or_else(|| otherwise().to_owned())
}

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn a_percentage_is_above_5() {
        assert_eq!((percent("20%"), percent("6 %"), percent("150")), (Ok(0.2), Ok(0.06), Ok(1.5)));
        for bad in ["0", "5%", "-5%", "x", "", "%", "nan", "inf", "1001"] {
            assert!(percent(bad).is_err(), "{bad}");
        }
    }
}
