//! `punctual profiles`: uses, their limits, and where each limit comes from.

use analysis::duration::format_ns;

use crate::{cli::Profiles, exit::Usage, output};

pub fn run(options: &Profiles) -> anyhow::Result<u8> {
    match &options.name {
        Some(name) => {
            let profile = analysis::find_profile(name).map_err(|error| Usage(error.to_string()))?;
            output::stdout(|out| {
                if options.json {
                    return writeln!(out, "{}", serde_json::json!(profile));
                }
                writeln!(out, "{}: {}", profile.name, profile.title)?;
                writeln!(out, "  period   {}", format_ns(profile.period_ns as i64))?;
                writeln!(out, "  limit    {} late; {}", format_ns(profile.limit_ns), profile.meaning)?;
                writeln!(out, "  samples  {} at least before PASS may be said", profile.samples_needed)?;
                profile
                    .sources
                    .iter()
                    .try_for_each(|source| writeln!(out, "  source   {} ({})", source.what, source.r#where))
            })?;
        }
        None => output::stdout(|out| {
            if options.json {
                return writeln!(out, "{}", serde_json::json!(analysis::builtin()));
            }
            for profile in analysis::builtin() {
                let (period, limit) = (format_ns(profile.period_ns as i64), format_ns(profile.limit_ns));
                writeln!(out, "{:<24} every {period:>8}, at most {limit:>8} late  {}", profile.name, profile.title)?;
            }
            Ok(())
        })?,
    }
    Ok(0)
}
