//! A profile: the limits of a use, as data.

use std::{fs, io, path::PathBuf};

use serde::{Deserialize, Serialize};

use crate::{builtin, parse_ns};

/// The limits of one use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Profile {
    /// File stem, in lower case with hyphens: `avb-class-a`.
    pub name: String,
    /// The use in plain words: `64-frame audio at 48 kHz`.
    pub title: String,
    /// What it belongs to: `control`, `audio`, `cnc`, `avb`, `fieldbus`.
    pub group: String,
    /// What its limit is about.
    pub judges: Judges,
    /// Time between two cycles, ns; 1 us to 1 h.
    pub period_ns: u64,
    /// Lateness that the use can bear, ns; above 0 and below the period. Of round trips the longest, at most the period.
    pub limit_ns: i64,
    /// Lateness below which the machine is excellent for the use, ns; above 0 and below the limit.
    pub excellent_ns: Option<i64>,
    /// Least number of wake-ups, on each CPU and under each load, before PASS may be said; 1 or more.
    pub samples_needed: u64,
    /// Whether the use stands on the short ladder that the terminal shows.
    pub ladder: bool,
    /// What the limit means, in one line.
    pub meaning: String,
    /// Where the figures come from; at least one.
    pub sources: Vec<Source>,
}

/// What a limit is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judges {
    /// How late a thread woke, or a talker sent.
    #[default]
    WakeUps,
    /// How long a datagram and its answer took, from when it was to be sent.
    RoundTrips,
}

/// Where a figure comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// The figure, and what is said of it.
    pub what: String,
    /// Address, or title and place in the document; our own definitions say so.
    pub r#where: String,
}

/// Why there is no such profile.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// No built-in profile has that name.
    #[error("no profile is called {name:?}, the nearest is {nearest}: list all of them with `punctual profiles`")]
    Unknown {
        /// The name asked for.
        name: String,
        /// The most similar name that exists.
        nearest: String,
    },
    /// The file could not be read.
    #[error("cannot read the profile {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is no profile.
    #[error("{}, line {line}: {message}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong, and how it should be written.
        message: String,
    },
}

/// The built-in profile of that name, or the one in a file when `name_or_path` ends in `.toml`.
///
/// # Errors
/// When no profile has that name, or the file cannot be read or is no profile.
pub fn find_profile(name_or_path: &str) -> Result<Profile, ProfileError> {
    if name_or_path.ends_with(".toml") {
        let path = PathBuf::from(name_or_path);
        let text = fs::read_to_string(&path).map_err(|source| ProfileError::Read { path: path.clone(), source })?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        return parse(&name, &text).map_err(|(line, message)| ProfileError::Invalid { path, line, message });
    }
    let profiles = builtin();
    if let Some(profile) = profiles.iter().find(|profile| profile.name == name_or_path) {
        return Ok(profile.clone());
    }
    let likeness = |profile: &&Profile| strsim::jaro_winkler(&profile.name, &name_or_path.to_lowercase());
    let nearest = profiles.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    let nearest = nearest.map(|profile| profile.name.clone()).unwrap_or_default();
    Err(ProfileError::Unknown { name: name_or_path.to_owned(), nearest })
}

/// A profile as its file is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    title: String,
    group: String,
    #[serde(default)]
    judges: Judges,
    period: Period,
    limit: Bound,
    excellent: Option<Bound>,
    samples_needed: u64,
    #[serde(default)]
    ladder: bool,
    meaning: String,
    sources: Vec<Source>,
}

/// A period: a duration, or `64 frames at 48000 Hz`.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Period(u64);

impl TryFrom<String> for Period {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let Some((frames, rate)) = text.split_once(" frames at ") else {
            return parse_ns(&text).map(Self).map_err(|error| error.to_string());
        };
        let frames: u64 = frames.parse().unwrap_or(0);
        let rate: u64 = rate.strip_suffix(" Hz").and_then(|rate| rate.parse().ok()).unwrap_or(0);
        match (frames, rate) {
            (1..=1_000_000, 1..) => Ok(Self((frames * 1_000_000_000 + rate / 2) / rate)),
            _ => Err(format!("{text:?} is not a number of frames: write for example \"64 frames at 48000 Hz\"")),
        }
    }
}

/// A bound of lateness: a duration, or a share of the period.
#[derive(Deserialize)]
#[serde(try_from = "String")]
enum Bound {
    Ns(u64),
    Percent(u64),
}

impl TryFrom<String> for Bound {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let Some(percent) = text.strip_suffix('%') else {
            return parse_ns(&text).map(Self::Ns).map_err(|error| error.to_string());
        };
        match percent.parse() {
            Ok(percent @ 1..=99) => Ok(Self::Percent(percent)),
            _ => Err(format!("{text:?} is not a share of the period: write a whole number of percent, 1% to 99%")),
        }
    }
}

impl Bound {
    fn of(&self, period_ns: u64) -> i64 {
        match self {
            Self::Ns(ns) => *ns as i64,
            Self::Percent(percent) => (period_ns * percent / 100) as i64,
        }
    }
}

/// Reads a profile called `name` from its TOML text.
///
/// # Errors
/// The line, from 1, and what is wrong with it.
pub fn parse(name: &str, text: &str) -> Result<Profile, (usize, String)> {
    let wire: Wire = toml::from_str(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = text.as_bytes()[..offset].iter().filter(|&&byte| byte == b'\n').count() + 1;
        (line, error.message().replace('\n', ", "))
    })?;
    let period_ns = wire.period.0;
    let limit_ns = if (1_000..=3_600_000_000_000).contains(&period_ns) { wire.limit.of(period_ns) } else { 0 };
    let excellent_ns = wire.excellent.as_ref().map(|bound| bound.of(period_ns));
    let profile = Profile {
        name: name.to_owned(),
        title: wire.title,
        group: wire.group,
        judges: wire.judges,
        period_ns,
        limit_ns,
        excellent_ns,
        samples_needed: wire.samples_needed,
        ladder: wire.ladder,
        meaning: wire.meaning,
        sources: wire.sources,
    };
    match check(&profile) {
        Some((key, message)) => Err((line_of(text, key), message.to_owned())),
        None => Ok(profile),
    }
}

/// The first thing that makes no sense: its key and what is wrong.
fn check(profile: &Profile) -> Option<(&'static str, &'static str)> {
    let Profile { name, judges, period_ns, limit_ns, excellent_ns, .. } = profile;
    let kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let blank = |text: &str| text.trim().is_empty() || text.contains('\n');
    let unsourced = |source: &Source| blank(&source.what) || blank(&source.r#where);
    let rules = [
        (name.is_empty() || !name.chars().all(kebab), "title", "the file's name must be lower case with hyphens"),
        (blank(&profile.title), "title", "title must be one line of plain words"),
        (blank(&profile.group), "group", "group must be one word, for example control"),
        (!(1_000..=3_600_000_000_000).contains(period_ns), "period", "period must be 1us to 1h"),
        (*limit_ns <= 0, "limit", "limit must be above 0"),
        (
            *judges == Judges::WakeUps && *limit_ns >= *period_ns as i64,
            "limit",
            "limit must be below the period: a cycle as late as that is lost",
        ),
        (
            *limit_ns > *period_ns as i64,
            "limit",
            "limit must be at most the period: an answer must be there for the next cycle",
        ),
        (excellent_ns.is_some_and(|ns| ns <= 0), "excellent", "excellent must be above 0"),
        (excellent_ns.is_some_and(|ns| ns >= *limit_ns), "excellent", "excellent must be below limit"),
        (profile.samples_needed == 0, "samples_needed", "samples_needed must be 1 or more"),
        (blank(&profile.meaning), "meaning", "meaning must say in one line what the limit means"),
        (
            profile.sources.is_empty(),
            "sources",
            "sources must hold at least one entry: where does the limit come from?",
        ),
        (profile.sources.iter().any(unsourced), "[[sources]]", "each source needs a `what` and a `where` of one line"),
    ];
    rules.into_iter().find(|(wrong, ..)| *wrong).map(|(_, key, message)| (key, message))
}

fn line_of(text: &str, key: &str) -> usize {
    text.lines().position(|line| line.trim_start().starts_with(key)).map_or(1, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"title = "my loop"
group = "control"
period = "1ms"
limit = "10%"
excellent = "20us"
samples_needed = 10000
meaning = "a tenth of the cycle"

[[sources]]
what = "10 %"
where = "own definition"
"#;

    #[test]
    fn a_profile_is_read_with_its_units() {
        let profile = parse("my-loop", GOOD).unwrap();
        assert_eq!((profile.period_ns, profile.limit_ns, profile.excellent_ns), (1_000_000, 100_000, Some(20_000)));
        assert!(!profile.ladder && profile.judges == Judges::WakeUps);
        let trips = parse("a", &GOOD.replace("\"10%\"", "\"1ms\"\njudges = \"round-trips\"")).unwrap();
        assert_eq!((trips.judges, trips.limit_ns), (Judges::RoundTrips, 1_000_000));
        let audio = parse("a", &GOOD.replace("\"1ms\"", "\"64 frames at 48000 Hz\"")).unwrap();
        assert_eq!((audio.period_ns, audio.limit_ns), (1_333_333, 133_333));
    }

    #[test]
    fn each_mistake_names_its_line() {
        for (from, to, line, message) in [
            ("\"1ms\"", "\"1\"", 3, "\"1\" has no unit: write for example 1us, 1ms or 1s"),
            ("\"1ms\"", "\"64 frames at 0 Hz\"", 3, "is not a number of frames"),
            ("\"1ms\"", "\"2h\"", 3, "period must be 1us to 1h"),
            ("\"1ms\"", "\"292000d\"", 3, "too long"),
            ("\"10%\"", "\"100%\"", 4, "is not a share of the period"),
            ("\"10%\"", "\"1ms\"", 4, "limit must be below the period"),
            ("\"10%\"", "\"0s\"", 4, "limit must be above 0"),
            ("\"10%\"", "\"1001us\"\njudges = \"round-trips\"", 4, "limit must be at most the period"),
            ("group =", "judges = \"round-trip\"\ngroup =", 2, "unknown variant `round-trip`"),
            ("\"20us\"", "\"100us\"", 5, "excellent must be below limit"),
            ("10000", "0", 6, "samples_needed must be 1 or more"),
            ("10000", "-1", 6, "invalid value"),
            ("meaning =", "meening =", 7, "unknown field `meening`"),
            ("\"my loop\"", "\"\"", 1, "title must be"),
            ("what = \"10 %\"", "what = \"\"", 9, "each source needs"),
            ("title = ", "title ", 1, ""),
        ] {
            let (found_line, found) = parse("my-loop", &GOOD.replace(from, to)).unwrap_err();
            assert!(found.contains(message) && !found.contains('\n'), "{to}: {found}");
            assert_eq!(found_line, line, "{to}: {found}");
        }
        let without_sources = GOOD.split("[[sources]]").next().unwrap();
        assert!(parse("a", without_sources).unwrap_err().1.contains("missing field `sources`"));
        assert!(parse("My Loop", GOOD).unwrap_err().1.contains("lower case"));
    }

    #[test]
    fn an_unknown_name_gets_the_nearest_one() {
        let error = find_profile("avb-clas-a").unwrap_err().to_string();
        assert_eq!(
            error,
            "no profile is called \"avb-clas-a\", the nearest is avb-class-a: list all of them with `punctual profiles`"
        );
    }

    #[test]
    fn a_path_is_read_from_disk() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("my-loop.toml");
        let text_path = path.to_str().unwrap();
        assert!(matches!(find_profile(text_path), Err(ProfileError::Read { .. })));
        fs::write(&path, GOOD).unwrap();
        assert_eq!(find_profile(text_path).unwrap().name, "my-loop");
        fs::write(&path, GOOD.replace("1ms", "1")).unwrap();
        let error = find_profile(text_path).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{text_path}, line 3: \"1\" has no unit")), "{error}");
    }
}
