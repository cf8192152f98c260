//! Profiles: the limits of a use, read from TOML.

use record::{Outcome, UseVerdict};
use serde::{Deserialize, Serialize};

use crate::{
    data_file::{Mistake, is_kebab, line_of, parse_toml},
    parse_ns,
    rate::Rate,
};

const SECOND_NS: u64 = 1_000_000_000;

/// The limits of one use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Profile {
    /// File stem, in lower case with hyphens: `avb-class-a`.
    pub name: String,
    /// The value of `--profile` that selects it: its name, or the path of its file.
    #[serde(skip)]
    pub argument: String,
    /// The use as text: `64-frame audio at 48 kHz`.
    pub title: String,
    /// The field of the use: `control`, `audio`, `cnc`, `avb`, `fieldbus`.
    pub group: String,
    /// The time that is limited.
    pub judges: Judges,
    /// Time between two cycles, ns; 1 us to 1 h.
    pub period_ns: u64,
    /// The largest lateness that the use tolerates, ns; above 0 and below the period. For round trips the longest one,
    /// at most the period.
    pub limit_ns: i64,
    /// Lateness below which a machine is excellent for the use, ns; above 0 and below the limit.
    pub excellent_ns: Option<i64>,
    /// How far in the future a presentation time may be when its frame is captured, ns; `None` if the use has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presentation_ns: Option<i64>,
    /// How often the use tolerates a stall: cycles later than the limit; at most one in 2 s and in 2 periods. PASS
    /// shows that it is not more often, on each CPU and under each load.
    pub tolerates: Rate,
    /// True if the use belongs to the short ladder that the terminal shows.
    pub ladder: bool,
    /// The meaning of the limit, in one line.
    pub meaning: String,
    /// The sources of the figures; at least one.
    pub sources: Vec<Source>,
}

impl Profile {
    /// A verdict on the use without figures.
    pub(crate) fn verdict(&self, outcome: Outcome, reason: String) -> UseVerdict {
        UseVerdict {
            profile: self.name.clone(),
            title: self.title.clone(),
            outcome,
            reason,
            period_ns: self.period_ns,
            limit_ns: self.limit_ns,
            tolerates: self.tolerates.to_string(),
            ..UseVerdict::default()
        }
    }
}

/// The time that a limit applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judges {
    /// The lateness of wake-ups, or of a talker's frames.
    #[default]
    WakeUps,
    /// The duration of round trips, from the scheduled send time.
    RoundTrips,
}

/// The source of a figure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// The figure, and the statement about it.
    pub what: String,
    /// Address, or title and place in the document; our own definitions are marked as such.
    pub r#where: String,
}

/// A profile as written in its file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProfileFile {
    title: String,
    group: String,
    #[serde(default)]
    judges: Judges,
    period: Period,
    limit: Bound,
    excellent: Option<Bound>,
    presentation: Option<Presentation>,
    tolerates: Tolerated,
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

/// A duration.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Presentation(u64);

impl TryFrom<String> for Presentation {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        parse_ns(&text).map(Self).map_err(|error| error.to_string())
    }
}

/// A rate such as `1 per hour`.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Tolerated(Rate);

impl TryFrom<String> for Tolerated {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map(Self)
    }
}

/// A limit of lateness: a duration, or a share of the period.
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
            Self::Ns(ns) => ns.cast_signed(),
            Self::Percent(percent) => (period_ns * percent / 100).cast_signed(),
        }
    }
}

/// Reads a profile called `name` from its TOML text.
///
/// # Errors
/// The line, from 1, and its mistake.
pub fn parse(name: &str, text: &str) -> Result<Profile, Mistake> {
    let file: ProfileFile = parse_toml(text).map_err(with_example)?;
    let period_ns = file.period.0;
    let limit_ns = if (1_000..=3_600_000_000_000).contains(&period_ns) { file.limit.of(period_ns) } else { 0 };
    let excellent_ns = file.excellent.as_ref().map(|bound| bound.of(period_ns));
    let profile = Profile {
        name: name.to_owned(),
        argument: name.to_owned(),
        title: file.title,
        group: file.group,
        judges: file.judges,
        period_ns,
        limit_ns,
        excellent_ns,
        presentation_ns: file.presentation.map(|duration| duration.0.cast_signed()),
        tolerates: file.tolerates.0,
        ladder: file.ladder,
        meaning: file.meaning,
        sources: file.sources,
    };
    match check(&profile) {
        Some((key, message)) => Err((line_of(text, key), message.to_owned())),
        None => Ok(profile),
    }
}

/// The required keys, with an example of each.
const EXAMPLES: [(&str, &str); 9] = [
    ("title", "title = \"control at 1 kHz\""),
    ("group", "group = \"control\""),
    ("period", "period = \"1ms\""),
    ("limit", "limit = \"10%\""),
    ("tolerates", "tolerates = \"1 per hour\""),
    ("meaning", "meaning = \"a tenth of the cycle\""),
    ("sources", "sources = [{ what = \"limit of 10 %\", where = \"own definition\" }]"),
    ("what", "what = \"limit of 10 %\""),
    ("where", "where = \"own definition\""),
];

/// The mistake; if a key is missing, with an example of it.
fn with_example((line, message): Mistake) -> Mistake {
    let key = message.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`'));
    let example = EXAMPLES.iter().find(|(name, _)| Some(*name) == key);
    (line, example.map_or(message.clone(), |(_, example)| format!("{message}: add e.g. `{example}`")))
}

/// The first mistake, with its key.
fn check(profile: &Profile) -> Option<(&'static str, &'static str)> {
    let Profile { name, judges, period_ns, limit_ns, excellent_ns, tolerates, .. } = profile;
    // Late cycles less than a second or a period apart are one stall.
    let stall_ns = SECOND_NS.max(*period_ns);
    let blank = |text: &str| text.trim().is_empty() || text.contains('\n');
    let unsourced = |source: &Source| blank(&source.what) || blank(&source.r#where);
    let rules = [
        (!is_kebab(name), "title", "the file's name must be lower case with hyphens"),
        (blank(&profile.title), "title", "title must be one line of text"),
        (blank(&profile.group), "group", "group must be one word, for example control"),
        (!(1_000..=3_600_000_000_000).contains(period_ns), "period", "period must be 1us to 1h"),
        (*limit_ns <= 0, "limit", "limit must be above 0"),
        (
            *judges == Judges::WakeUps && *limit_ns >= period_ns.cast_signed(),
            "limit",
            "limit must be below the period, because a cycle that late is lost",
        ),
        (
            *limit_ns > period_ns.cast_signed(),
            "limit",
            "limit must be at most the period, because the next cycle needs the answer",
        ),
        (excellent_ns.is_some_and(|ns| ns <= 0), "excellent", "excellent must be above 0"),
        (excellent_ns.is_some_and(|ns| ns >= *limit_ns), "excellent", "excellent must be below limit"),
        (profile.presentation_ns.is_some_and(|ns| ns <= 0), "presentation", "presentation must be above 0"),
        (
            tolerates.in_ns(2.0 * stall_ns as f64) > 1.0,
            "tolerates",
            "tolerates must be at most one stall in 2 s and in 2 periods, because late cycles within a second or a \
             period count as one stall",
        ),
        (blank(&profile.meaning), "meaning", "meaning must explain the limit in one line"),
        (profile.sources.is_empty(), "sources", "sources must contain at least one entry with the source of the limit"),
        (profile.sources.iter().any(unsourced), "[[sources]]", "each source needs a `what` and a `where` of one line"),
    ];
    rules.into_iter().find(|(wrong, ..)| *wrong).map(|(_, key, message)| (key, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"title = "my loop"
group = "control"
period = "1ms"
limit = "10%"
excellent = "20us"
tolerates = "1 per hour"
meaning = "a tenth of the cycle"

[[sources]]
what = "10 %"
where = "own definition"
"#;

    #[test]
    fn reads_a_profile_with_units() {
        let profile = parse("my-loop", GOOD).unwrap();
        assert_eq!((profile.period_ns, profile.limit_ns, profile.excellent_ns), (1_000_000, 100_000, Some(20_000)));
        assert!(!profile.ladder && profile.judges == Judges::WakeUps);
        let trips = parse("a", &GOOD.replace("\"10%\"", "\"1ms\"\njudges = \"round-trips\"")).unwrap();
        assert_eq!((trips.judges, trips.limit_ns), (Judges::RoundTrips, 1_000_000));
        let audio = parse("a", &GOOD.replace("\"1ms\"", "\"64 frames at 48000 Hz\"")).unwrap();
        assert_eq!((audio.period_ns, audio.limit_ns), (1_333_333, 133_333));
    }

    #[test]
    fn reports_the_line_of_each_mistake() {
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
            ("tolerates =", "presentation = \"0s\"\ntolerates =", 6, "presentation must be above 0"),
            ("1 per hour", "0 per hour", 6, "no run can show a rate of \"0 per hour\""),
            ("1 per hour", "2 per second", 6, "tolerates must be at most one stall in 2 s and in 2 periods"),
            ("1 per hour", "31 per minute", 6, "tolerates must be at most one stall in 2 s and in 2 periods"),
            ("1 per hour", "hourly", 6, "is not a rate: write a whole number per second"),
            ("tolerates =", "samples_needed =", 6, "unknown field `samples_needed`"),
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
        let missing =
            "missing field `sources`: add e.g. `sources = [{ what = \"limit of 10 %\", where = \"own definition\" }]`";
        assert_eq!(parse("a", without_sources).unwrap_err().1, missing);
        for (key, example) in EXAMPLES {
            let is_of_key = |line: &&str| line.starts_with(&format!("{key} ="));
            let without: Vec<&str> = GOOD.lines().filter(|line| !is_of_key(line)).collect();
            let message = parse("a", &without.join("\n")).err().map(|(_, message)| message);
            // The examples are correct.
            let corrected = GOOD.lines().map(|line| if is_of_key(&line) { example } else { line });
            assert!(parse("a", &corrected.collect::<Vec<_>>().join("\n")).is_ok(), "{example}");
            let expected = format!("missing field `{key}`: add e.g. `{example}`");
            assert!(key == "sources" || message == Some(expected), "{key}");
        }
        let with_list = EXAMPLES[6].1.to_owned() + "\n" + without_sources;
        assert_eq!(parse("a", &with_list).unwrap().sources[0].r#where, "own definition");
        assert!(parse("My Loop", GOOD).unwrap_err().1.contains("lower case"));
    }
}
