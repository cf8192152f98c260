//! The profiles of `profiles/`, which are part of the binary, and profiles in files.

use std::{cmp::Reverse, sync::LazyLock};

use crate::{
    data_file::{self, LoadError, parse_all, toml_files},
    profile::{Profile, parse},
};

/// Name and text of each file in `profiles/`.
const FILES: &[(&str, &str)] = toml_files!("profiles":
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
    let mut profiles = parse_all("profiles", FILES, parse);
    profiles.sort_by_key(|profile| (Reverse(profile.limit_ns), Reverse(profile.period_ns), profile.name.clone()));
    profiles
});

/// The built-in profiles, from the least to the most demanding: by falling limit, then by falling period.
#[must_use]
pub fn profiles() -> &'static [Profile] {
    &PROFILES
}

/// The built-in profile of that name, or the one in a file if `name_or_path` ends in `.toml`.
///
/// # Errors
/// If no profile has that name, or the file cannot be read or has mistakes.
pub fn find_profile(name_or_path: &str) -> Result<Profile, LoadError> {
    if name_or_path.ends_with(".toml") {
        let profile = data_file::read("profile", name_or_path, parse)?;
        return Ok(Profile { argument: name_or_path.to_owned(), ..profile });
    }
    let known = profiles().iter().find(|profile| profile.name == name_or_path);
    let names = || profiles().iter().map(|profile| profile.name.as_str());
    known.cloned().ok_or_else(|| data_file::unknown("profile", name_or_path, names(), "*.toml"))
}

/// The profiles with these names, see [`find_profile`].
///
/// # Errors
/// The errors of [`find_profile`]; [`LoadError::SameName`] if two profiles have the same name, because a record stores
/// verdicts by name.
pub fn find_profiles(names_or_paths: &[String]) -> Result<Vec<Profile>, LoadError> {
    let mut found: Vec<Profile> = Vec::new();
    for name_or_path in names_or_paths {
        let profile = find_profile(name_or_path)?;
        if let Some(same) = found.iter().find(|other| other.name == profile.name) {
            let (first, second) = (same.argument.clone(), profile.argument);
            return Err(LoadError::SameName { name: profile.name, first, second });
        }
        found.push(profile);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;
    use crate::{LoadError, format_ns, format_unsigned_ns};

    /// Also ensures that building the profiles cannot panic.
    #[test]
    fn every_file_is_listed_and_parses() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../profiles");
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let on_disk: BTreeSet<_> = names.filter_map(|name| name.strip_suffix(".toml").map(str::to_owned)).collect();
        let listed: BTreeSet<_> = profiles().iter().map(|profile| profile.name.clone()).collect();
        assert_eq!(on_disk, listed);
    }

    #[test]
    fn two_profiles_of_one_name_are_refused() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../profiles/control-1khz.toml"));
        let paths = folders.each_ref().map(|folder| folder.path().join("my-loop.toml").to_str().unwrap().to_owned());
        paths.iter().for_each(|path| fs::write(path, text.as_ref().unwrap()).unwrap());
        let error = find_profiles(&paths).unwrap_err().to_string();
        assert_eq!(
            error,
            format!(
                "two profiles are called my-loop, {} and {}: name each once, or rename one file",
                paths[0], paths[1]
            )
        );
        let twice = ["control-1khz".to_owned(), "control-1khz".to_owned()];
        assert!(matches!(find_profiles(&twice), Err(LoadError::SameName { .. })));
        assert_eq!(find_profiles(&[paths[0].clone(), "control-1khz".to_owned()]).unwrap().len(), 2);
    }

    #[test]
    fn every_profile_has_a_source_for_its_limit() {
        for profile in profiles() {
            assert!(profile.sources.iter().any(|source| source.what.contains("limit") || source.what.contains("us")));
            assert!(profile.title.is_ascii() && profile.meaning.is_ascii(), "{}", profile.name);
        }
    }

    #[test]
    fn profiles_are_sorted_and_the_ladder_fits_a_screen() {
        assert!(profiles().is_sorted_by(|a, b| a.limit_ns >= b.limit_ns));
        let rungs = profiles().iter().filter(|profile| profile.ladder).count();
        assert!((8..=12).contains(&rungs), "{rungs}");
    }

    #[test]
    fn profiles_match_their_sources() {
        let figures = |name: &str| {
            let profile = profiles().iter().find(|profile| profile.name == name).unwrap();
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
    fn the_docs_list_every_profile() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/profiles.md");
        let docs = fs::read_to_string(docs).unwrap();
        let rows: Vec<_> =
            docs.lines().filter(|line| line.starts_with("| `") && line.matches('|').count() == 7).collect();
        assert_eq!(rows.len(), profiles().len());
        for (row, profile) in rows.into_iter().zip(profiles()) {
            let Profile { name, period_ns, limit_ns, excellent_ns, tolerates, .. } = profile;
            let (period, limit) = (format_unsigned_ns(*period_ns), format_ns(*limit_ns));
            let excellent = excellent_ns.map(format_ns).unwrap_or_default();
            let expected = format!("| `{name}` | {period} | {limit} | {excellent} | {tolerates} |");
            assert!(row.starts_with(&expected), "docs/profiles.md contains\n{row}\ninstead of\n{expected}");
        }
    }

    #[test]
    fn suggests_the_nearest_name() {
        let error = find_profile("avb-clas-a").unwrap_err().to_string();
        assert_eq!(
            error,
            "no profile is called \"avb-clas-a\", the nearest is avb-class-a: list them with `punctual profiles`, \
             or name a *.toml file"
        );
        let error = find_profile("nosuch").unwrap_err().to_string();
        assert!(error.starts_with("no profile is called \"nosuch\": list them with `punctual profiles`"), "{error}");
    }

    #[test]
    fn reads_profiles_from_disk() {
        let good = FILES.iter().find(|(name, _)| *name == "control-1khz").unwrap().1;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("my-loop.toml");
        let text_path = path.to_str().unwrap();
        assert!(matches!(find_profile(text_path), Err(LoadError::Read { .. })));
        fs::write(&path, good).unwrap();
        assert_eq!(find_profile(text_path).unwrap().name, "my-loop");
        fs::write(&path, good.replace("1ms", "1")).unwrap();
        let error = find_profile(text_path).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{text_path}, line 3: \"1\" has no unit")), "{error}");
    }
}
