//! Export of records to the formats of other tools. The suffix of the file chooses the format.

mod case;
mod hlog;
mod junit;
mod lava;
mod markdown;
mod prometheus;
mod sarif;
mod table;

use std::path::Path;

use record::{Campaign, Finding, Machine, Record, Versus, export, file, versus::Across};

use crate::html;

/// A format of an exported file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The record itself.
    Json,
    /// The buckets of the histograms.
    Csv,
    /// Percentiles as text, for plotters of `HdrHistogram`.
    Hgrm,
    /// Histograms as an `HdrHistogram` interval log.
    Hlog,
    /// The report.
    Html,
    /// A comment on a pull request.
    Markdown,
    /// Test results for Jenkins, GitLab and others.
    JUnit,
    /// Test results for LAVA.
    Lava,
    /// Metrics for Prometheus, through the textfile collector of `node_exporter`.
    Prometheus,
    /// Findings for code scanners.
    Sarif,
    /// A table for a paper.
    Latex,
}

impl Format {
    /// The formats of a record.
    pub const OF_RECORDS: [Self; 11] = [
        Self::Json,
        Self::Csv,
        Self::Hgrm,
        Self::Hlog,
        Self::Html,
        Self::Markdown,
        Self::JUnit,
        Self::Lava,
        Self::Prometheus,
        Self::Sarif,
        Self::Latex,
    ];
    /// The formats of a campaign.
    pub const OF_CAMPAIGNS: [Self; 3] = [Self::Html, Self::Markdown, Self::JUnit];
    /// The formats of a comparison of two sides, or across the values of a condition.
    pub const OF_VERSUS: [Self; 5] = [Self::Json, Self::Csv, Self::Html, Self::Markdown, Self::Latex];
    /// The formats of the findings about a machine.
    pub const OF_FINDINGS: [Self; 2] = [Self::Html, Self::Sarif];

    /// Returns the suffix of its files, without a dot.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Hgrm => "hgrm",
            Self::Hlog => "hlog",
            Self::Html => "html",
            Self::Markdown => "md",
            Self::JUnit => "xml",
            Self::Lava => "lava",
            Self::Prometheus => "prom",
            Self::Sarif => "sarif",
            Self::Latex => "tex",
        }
    }

    /// Finds the format of a file among these.
    ///
    /// # Errors
    /// A sentence with all suffixes, if the file has none of them.
    pub fn of(path: &Path, formats: &[Self]) -> Result<Self, String> {
        let suffix = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let found = formats.iter().copied().find(|format| format.suffix() == suffix);
        found.ok_or_else(|| {
            let suffixes: Vec<String> = formats.iter().map(|format| format!(".{}", format.suffix())).collect();
            let list = match &suffixes[..] {
                [all @ .., last] if !all.is_empty() => format!("{} or {last}", all.join(", ")),
                one => one.concat(),
            };
            format!("cannot export to {}: its name must end in {list}", path.display())
        })
    }

    /// Writes a record in this format.
    #[must_use]
    pub fn record(self, record: &Record) -> Vec<u8> {
        let with_series = record.with_published_series();
        match self {
            Self::Json => file::to_json(record),
            Self::Csv => export::csv(&with_series).into_bytes(),
            Self::Hgrm => format!("#[{}]\n{}", case::title(record), export::hgrm(&with_series)).into_bytes(),
            Self::Hlog => hlog::hlog(&with_series).into_bytes(),
            Self::Html => html::render(record).into_bytes(),
            Self::Markdown => markdown::record(&with_series).into_bytes(),
            Self::JUnit => junit::record(record).into_bytes(),
            Self::Lava => lava::lava(&with_series).into_bytes(),
            Self::Prometheus => prometheus::prometheus(&with_series).into_bytes(),
            Self::Sarif => sarif::record(record).into_bytes(),
            Self::Latex => table::latex_of_record(record).into_bytes(),
        }
    }

    /// Writes a campaign in this format; `None` if the format is not one of [`OF_CAMPAIGNS`](Self::OF_CAMPAIGNS).
    #[must_use]
    pub fn campaign(self, campaign: &Campaign) -> Option<Vec<u8>> {
        match self {
            Self::Html => Some(html::render_campaign(campaign).into_bytes()),
            Self::Markdown => Some(markdown::campaign(campaign).into_bytes()),
            Self::JUnit => Some(junit::campaign(campaign).into_bytes()),
            Self::Json
            | Self::Csv
            | Self::Hgrm
            | Self::Hlog
            | Self::Lava
            | Self::Prometheus
            | Self::Sarif
            | Self::Latex => None,
        }
    }

    /// Writes the findings about a machine in this format; `None` if the format is not one of
    /// [`OF_FINDINGS`](Self::OF_FINDINGS).
    #[must_use]
    pub fn findings(self, machine: &Machine, findings: &[Finding]) -> Option<Vec<u8>> {
        match self {
            Self::Html => Some(html::render_machine(machine, findings).into_bytes()),
            Self::Sarif => Some(sarif::findings(machine, findings).into_bytes()),
            Self::Json
            | Self::Csv
            | Self::Hgrm
            | Self::Hlog
            | Self::Markdown
            | Self::JUnit
            | Self::Lava
            | Self::Prometheus
            | Self::Latex => None,
        }
    }

    /// Writes a comparison in this format, with the command that repeats it; `None` if the format is not one of
    /// [`OF_VERSUS`](Self::OF_VERSUS).
    #[must_use]
    pub fn versus(self, versus: &Versus, command: &[String]) -> Option<Vec<u8>> {
        match self {
            Self::Json => Some(file::versus_to_json(versus)),
            Self::Csv => Some(table::csv(versus).into_bytes()),
            Self::Html => Some(html::render_versus(versus, command).into_bytes()),
            Self::Markdown => Some(table::markdown(versus).into_bytes()),
            Self::Latex => Some(table::latex(versus).into_bytes()),
            Self::Hgrm | Self::Hlog | Self::JUnit | Self::Lava | Self::Prometheus | Self::Sarif => None,
        }
    }

    /// Writes a comparison across the values of a condition in this format; `None` if the format is not one of
    /// [`OF_VERSUS`](Self::OF_VERSUS).
    #[must_use]
    pub fn across(self, across: &Across, command: &[String]) -> Option<Vec<u8>> {
        match self {
            Self::Json => Some(file::across_to_json(across)),
            Self::Csv => Some(table::across_csv(across).into_bytes()),
            Self::Html => Some(html::render_across(across, command).into_bytes()),
            Self::Markdown => Some(table::across_markdown(across).into_bytes()),
            Self::Latex => Some(table::across_latex(across).into_bytes()),
            Self::Hgrm | Self::Hlog | Self::JUnit | Self::Lava | Self::Prometheus | Self::Sarif => None,
        }
    }
}
