//! Frequencies: `1000MHz`, `1.5GHz`, or `min` and `max` of the CPU.

/// A frequency in kHz, the unit of cpufreq.
///
/// # Errors
/// The text is no frequency.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to 1e8 is checked before")]
pub(super) fn parse_khz(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, f64); 3] = [("GHz", 1e6), ("MHz", 1e3), ("kHz", 1.0)];
    let lower = text.to_ascii_lowercase();
    let found = UNITS.iter().find_map(|(unit, khz)| Some((lower.strip_suffix(&unit.to_ascii_lowercase())?, khz)));
    let khz = found.and_then(|(number, khz)| Some(number.trim().parse::<f64>().ok()? * khz));
    // 100 GHz is more than any CPU has.
    match khz.filter(|khz| (1.0..1e8).contains(khz)) {
        Some(khz) => Ok(khz.round() as u64),
        None => Err(format!("`{text}` is not a frequency: use e.g. 1000MHz, 1.5GHz, min or max")),
    }
}

/// A frequency in MHz: `1000MHz`.
pub(super) fn in_mhz(khz: u64) -> String {
    match khz % 1000 {
        0 => format!("{}MHz", khz / 1000),
        _ => format!("{khz}kHz"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_need_a_unit() {
        assert_eq!(parse_khz("1000MHz"), Ok(1_000_000));
        assert_eq!([parse_khz("1.5ghz"), parse_khz("998400 kHz")], [Ok(1_500_000), Ok(998_400)]);
        for text in ["1000", "MHz", "-1MHz", "0MHz", "nanMHz", "infGHz", "1e30GHz", "1000Hz", ""] {
            assert!(parse_khz(text).unwrap_err().contains("1000MHz"), "{text}");
        }
        assert_eq!([in_mhz(800_000), in_mhz(998_400)], ["800MHz", "998400kHz"]);
    }
}
