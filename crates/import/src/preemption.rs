//! The preemption model that the build of a kernel shows (`uname -v`).

/// The model, in the words of punctual's records, by the words of the build. Some words have another meaning in later kernels,
/// so the release counts, too. `None` without a build.
pub fn of_build(build: &str, release: Option<&str>) -> Option<String> {
    /// The first release whose kernels with lazy preemption are also built as PREEMPT.
    const LAZY: (u32, u32) = (6, 13);
    let words: Vec<&str> = build.split_whitespace().collect();
    let has = |word: &str| words.contains(&word);
    let model = match () {
        () if words.is_empty() => return None,
        // The first real-time patches wrote two words.
        () if has("PREEMPT_RT") || words.windows(2).any(|pair| pair == ["PREEMPT", "RT"]) => REAL_TIME,
        () if has("PREEMPT_DYNAMIC") => "dynamic (mode not readable)",
        () if has("PREEMPT") && release.and_then(version) >= Some(LAZY) => "full or lazy",
        () if has("PREEMPT") => "full",
        // Kernels without SMP, and names that are cut, show nothing.
        () if has("SMP") => "none or voluntary",
        () => return None,
    };
    Some(model.to_owned())
}

/// The model of a real-time kernel.
pub const REAL_TIME: &str = "PREEMPT_RT";

/// Major and minor version.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_shows_the_model() {
        for (build, release, expected) in [
            ("#1 SMP PREEMPT_RT Debian 6.12.9-1", "6.12.9", Some("PREEMPT_RT")),
            ("#3 SMP PREEMPT RT Mon", "4.4.1", Some("PREEMPT_RT")),
            ("#1 SMP PREEMPT_DYNAMIC @0", "6.18.44", Some("dynamic (mode not readable)")),
            ("#1 SMP PREEMPT Mon", "6.1.0", Some("full")),
            ("#1 SMP PREEMPT Mon", "6.13.0", Some("full or lazy")),
            ("#1 SMP Debian", "5.10.0", Some("none or voluntary")),
            ("#1", "6.1", None),
            ("", "6.1", None),
        ] {
            assert_eq!(of_build(build, Some(release)).as_deref(), expected, "{build}");
        }
    }
}
