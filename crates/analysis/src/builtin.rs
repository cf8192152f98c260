//! The profiles that ship with punctual: the files of `profiles/`, in the binary.

use std::{cmp::Reverse, sync::LazyLock};

use crate::profile::{Profile, parse};

macro_rules! files {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!("../../../profiles/", $name, ".toml")))),*]
    };
}

/// Name and text of each file.
const FILES: [(&str, &str); 30] = files!(
    "audio-44k1-128"
    "audio-44k1-16"
    "audio-44k1-256"
    "audio-44k1-32"
    "audio-44k1-64"
    "audio-48k-128"
    "audio-48k-16"
    "audio-48k-256"
    "audio-48k-32"
    "audio-48k-64"
    "audio-96k-128"
    "audio-96k-16"
    "audio-96k-256"
    "audio-96k-32"
    "audio-96k-64"
    "avb-class-a"
    "avb-class-b"
    "cnc-base-100us"
    "cnc-base-25us"
    "cnc-servo-1ms"
    "control-100hz"
    "control-10khz"
    "control-1khz"
    "control-4khz"
    "ethercat-1ms"
    "ethercat-250us"
    "ethercat-500us"
    "hifi-streamer"
    "milan"
    "udp-control-1ms"
);

static PROFILES: LazyLock<Vec<Profile>> = LazyLock::new(|| {
    let read = |(name, text): (&str, &str)| {
        parse(name, text).unwrap_or_else(|(line, message)| panic!("profiles/{name}.toml, line {line}: {message}"))
    };
    let mut profiles: Vec<_> = FILES.map(read).into();
    profiles.sort_by_key(|profile| (Reverse(profile.limit_ns), Reverse(profile.period_ns), profile.name.clone()));
    profiles
});

/// The built-in profiles, from the least to the most demanding: by falling limit, then by falling period.
#[must_use]
pub fn builtin() -> &'static [Profile] {
    &PROFILES
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;
    use crate::format_ns;

    /// Also shows that the panic above cannot happen in a build that passed its tests.
    #[test]
    fn every_file_is_listed_and_parses() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../profiles");
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let on_disk: BTreeSet<_> = names.filter_map(|name| name.strip_suffix(".toml").map(str::to_owned)).collect();
        let listed: BTreeSet<_> = builtin().iter().map(|profile| profile.name.clone()).collect();
        assert_eq!(on_disk, listed);
    }

    #[test]
    fn every_profile_says_where_its_limit_comes_from() {
        for profile in builtin() {
            assert!(profile.sources.iter().any(|source| source.what.contains("limit") || source.what.contains("us")));
            assert!(profile.title.is_ascii() && profile.meaning.is_ascii(), "{}", profile.name);
        }
    }

    #[test]
    fn they_are_sorted_and_the_ladder_fits_a_screen() {
        assert!(builtin().is_sorted_by(|a, b| a.limit_ns >= b.limit_ns));
        let rungs = builtin().iter().filter(|profile| profile.ladder).count();
        assert!((8..=12).contains(&rungs), "{rungs}");
    }

    #[test]
    fn the_figures_of_the_sources_stand_in_the_profiles() {
        let figures = |name: &str| {
            let profile = builtin().iter().find(|profile| profile.name == name).unwrap();
            (profile.period_ns, profile.limit_ns, profile.excellent_ns)
        };
        assert_eq!(figures("avb-class-a"), (125_000, 50_000, Some(10_000)));
        assert_eq!(figures("udp-control-1ms"), (1_000_000, 1_000_000, None));
        assert_eq!(figures("avb-class-b"), (250_000, 50_000, Some(10_000)));
        assert_eq!(figures("cnc-base-25us"), (25_000, 20_000, Some(15_000)));
        assert_eq!(figures("audio-48k-64"), (1_333_333, 666_666, Some(133_333)));
        assert_eq!(figures("audio-44k1-16"), (362_812, 181_406, Some(36_281)));
    }

    #[test]
    fn the_table_in_the_docs_is_the_profiles() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/profiles.md");
        let docs = fs::read_to_string(docs).unwrap();
        let rows: Vec<_> =
            docs.lines().filter(|line| line.starts_with("| `") && line.matches('|').count() == 7).collect();
        assert_eq!(rows.len(), builtin().len());
        for (row, profile) in rows.into_iter().zip(builtin()) {
            let Profile { name, period_ns, limit_ns, excellent_ns, samples_needed, .. } = profile;
            let (period, limit) = (format_ns(*period_ns as i64), format_ns(*limit_ns));
            let excellent = excellent_ns.map(format_ns).unwrap_or_default();
            let expected = format!("| `{name}` | {period} | {limit} | {excellent} | {samples_needed} |");
            assert!(row.starts_with(&expected), "docs/profiles.md has\n{row}\nand should have\n{expected}");
        }
    }
}
