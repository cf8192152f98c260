//! `punctual profiles`: uses with their limits and the source of each limit.

use analysis::{
    Judges, Profile,
    duration::{format_ns, format_unsigned_ns},
};
use report::terminal::{entry, width};

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
                let limit = format!("{} {}; {}", format_ns(profile.limit_ns), kind(&profile), profile.meaning);
                let sources =
                    profile.sources.iter().map(|source| ("  source", format!("{} ({})", source.what, source.r#where)));
                let facts = [
                    ("  period", format_unsigned_ns(profile.period_ns)),
                    ("  limit", limit),
                    ("  stalls", format!("at most {}", profile.tolerates)),
                ];
                facts
                    .into_iter()
                    .chain(sources)
                    .try_for_each(|(name, text)| write!(out, "{}", entry(name, 11, &text, width())))
            })?;
        }
        None => output::stdout(|out| {
            if options.json {
                return writeln!(out, "{}", output::json(&serde_json::json!(analysis::profiles())));
            }
            for profile in analysis::profiles() {
                let (period, limit) = (format_unsigned_ns(profile.period_ns), format_ns(profile.limit_ns));
                let Profile { name, title, .. } = profile;
                let text = format!("every {period}, at most {limit} {}: {title}", kind(profile));
                write!(out, "{}", entry(name, 25, &text, width()))?;
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
