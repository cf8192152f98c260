//! `punctual profiles`: uses with their limits and the source of each limit.

use analysis::{
    Judges, Profile,
    duration::{format_ns, format_unsigned_ns},
};

use crate::{cli::Profiles, exit::Usage, output};

pub fn run(options: &Profiles) -> anyhow::Result<u8> {
    match &options.name {
        Some(name) => {
            let profile = analysis::find_profile(name).map_err(|error| Usage(error.to_string()))?;
            output::stdout(|out| {
                if options.json {
                    return writeln!(out, "{}", output::json(&serde_json::json!(profile)));
                }
                writeln!(out, "{}: {}", profile.name, profile.title)?;
                writeln!(out, "  period   {}", format_unsigned_ns(profile.period_ns))?;
                writeln!(out, "  limit    {} {}; {}", format_ns(profile.limit_ns), kind(&profile), profile.meaning)?;
                writeln!(out, "  stalls   at most {}", profile.tolerates)?;
                profile
                    .sources
                    .iter()
                    .try_for_each(|source| writeln!(out, "  source   {} ({})", source.what, source.r#where))
            })?;
        }
        None => output::stdout(|out| {
            if options.json {
                return writeln!(out, "{}", output::json(&serde_json::json!(analysis::profiles())));
            }
            for profile in analysis::profiles() {
                let (period, limit) = (format_unsigned_ns(profile.period_ns), format_ns(profile.limit_ns));
                let Profile { name, title, .. } = profile;
                writeln!(out, "{name:<24} every {period:>8}, at most {limit:>8} {:<10}  {title}", kind(profile))?;
            }
            Ok(())
        })?,
    }
    Ok(0)
}

/// The quantity that the profile limits.
fn kind(profile: &Profile) -> &'static str {
    match profile.judges {
        Judges::WakeUps => "late",
        Judges::RoundTrips => "round trip",
    }
}
