//! Formatting of figures, and text as HTML.

use analysis::float::{to_u64, to_usize};
use askama::filters::{Escaper, Html};
use record::grouped;

/// Labels of a lateness axis: whole numbers with their unit.
pub fn tick_ns(ns: f64) -> String {
    let (size, unit) =
        [(1e9, "s"), (1e6, "ms"), (1e3, "us")].into_iter().find(|(s, _)| ns >= *s).unwrap_or((1.0, "ns"));
    format!("{} {unit}", grouped(to_u64((ns / size).round())))
}

/// Labels of a count axis: `1,000`, `100 M`.
pub fn tick_count(count: f64) -> String {
    let (size, unit) =
        [(1e12, " T"), (1e9, " G"), (1e6, " M")].into_iter().find(|(s, _)| count >= *s).unwrap_or((1.0, ""));
    format!("{}{unit}", grouped(to_u64((count / size).round())))
}

/// Labels of a time axis, from seconds: `0`, `200 ms`, `30 s`, `5 min`, `6 h`, `2 d`.
pub fn clock(seconds: f64) -> String {
    let sizes = [(86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms")];
    match sizes.into_iter().find(|(size, _)| seconds >= size * 0.999_999) {
        Some((size, unit)) => format!("{} {unit}", (seconds / size * 100.0).round() / 100.0),
        None => "0".to_owned(),
    }
}

/// A percentile from its number of nines, `-log10(1 - p)`: `50 %`, `99.9 %`.
pub fn percent(nines: f64) -> String {
    let digits = to_usize(nines.ceil()).saturating_sub(2);
    let mut out = format!("{:.*}", digits.min(16), 100.0 - 100.0 * 10f64.powf(-nines));
    out.push_str(" %");
    out
}

/// Escapes text for HTML, including attributes.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // Writing to a string does not fail.
    let _ = Html.write_escaped_str(&mut out, text);
    out
}

/// A command as HTML, in which the name of an option is not broken after its hyphens. Its text remains the same, so that
/// it can be copied.
pub fn command(text: &str) -> String {
    /// The longest name, characters: a longer one must be broken to fit the page.
    const LONGEST: usize = 30;
    let word = |word: &str| {
        let end = word.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(word.len());
        match word.split_at(end) {
            (name, rest) if name.starts_with('-') && (2..=LONGEST).contains(&name.chars().count()) => {
                format!("<span class=\"option\">{}</span>{}", escape(name), escape(rest))
            }
            _ => escape(word),
        }
    };
    text.split_inclusive(char::is_whitespace).map(word).collect()
}

/// Text with commands between backticks as HTML with `<code>` elements.
pub fn with_code(text: &str) -> String {
    let mut pieces: Vec<&str> = text.split('`').collect();
    // A backtick without a partner is kept as a character.
    let lone = if pieces.len().is_multiple_of(2) { pieces.pop() } else { None };
    let marked = pieces.iter().enumerate().map(|(i, piece)| match i % 2 {
        0 => escape(piece),
        _ => format!("<code>{}</code>", command(piece)),
    });
    marked.chain(lone.map(|piece| format!("`{}", escape(piece)))).collect()
}

/// One quantity as a share of another: `187 %`; a dash if the whole is 0.
pub fn percent_of(part: u64, whole: u64) -> String {
    if whole == 0 { "-".to_owned() } else { format!("{:.0} %", part as f64 * 100.0 / whole as f64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_labels_are_whole_numbers() {
        let texts = [100.0, 2e3, 5e5, 1e6, 1e9, 1e13].map(tick_ns);
        assert_eq!(texts, ["100 ns", "2 us", "500 us", "1 ms", "1 s", "10,000 s"]);
        assert_eq!(
            [0.0, 0.2, 30.0, 90.0, 21600.0, 172_800.0].map(clock),
            ["0", "200 ms", "30 s", "1.5 min", "6 h", "2 d"]
        );
    }

    #[test]
    fn count_labels_are_short() {
        let texts = [1.0, 2e4, 1e6, 5e8, 1e10, 1e19].map(tick_count);
        assert_eq!(texts, ["1", "20,000", "1 M", "500 M", "10 G", "10,000,000 T"]);
    }

    #[test]
    fn formats_percentiles_by_nines() {
        let texts = [0.0, 2f64.log10(), 1.0, 2.0, 3.0, 5.0].map(percent);
        assert_eq!(texts, ["0 %", "50 %", "90 %", "99 %", "99.9 %", "99.999 %"]);
    }

    #[test]
    fn marks_commands_as_code() {
        assert_eq!(with_code("run `a <b>` & wait"), "run <code>a &#60;b&#62;</code> &#38; wait");
        assert_eq!(with_code("a ` alone `b` c"), "a <code> alone </code>b` c");
        assert_eq!(with_code(""), "");
    }

    #[test]
    fn keeps_options_in_one_line() {
        assert_eq!(
            command("a --cell-duration=2s \\\n  -n 3 - x-y"),
            "a <span class=\"option\">--cell-duration</span>=2s \\\n  <span class=\"option\">-n</span> 3 - x-y"
        );
        let long = format!("--{}", "-<".repeat(20));
        assert_eq!(command(&long), escape(&long));
        assert_eq!(with_code("`--load cpu`"), "<code><span class=\"option\">--load</span> cpu</code>");
    }

    #[test]
    fn escapes_html() {
        let escaped = escape("\"><script>'&");
        assert!(!escaped.contains(['<', '>', '"', '\'']), "{escaped}");
    }
}
