//! Two columns: a value, and the number of samples with it.

use record::Figures;

use crate::{
    Ending, Format, Imported, Mistake, Unit, caveat,
    cells::{Cells, to_ns, whole},
};

/// The format: numbers separated by spaces, a tab, a comma or a semicolon.
pub struct Columns;

/// Names of a column with numbers of samples.
const COUNTS: [&str; 8] = ["count", "counts", "number", "samples", "frequency", "occurrences", "hits", "n"];
/// Names of a column with the number of all samples up to a value, such as `le` of Prometheus.
const CUMULATIVE: [&str; 5] = ["cumulative", "cumulated", "cum", "cdf", "le"];
/// Names of a column with times, in a comment that has no unit.
const TIMES: [&str; 12] =
    ["latency", "lateness", "value", "values", "time", "times", "jitter", "delay", "duration", "gap", "bin", "bucket"];
/// Names of units in a heading.
const UNITS: [(Unit, [&str; 5]); 4] = [
    (Unit::Ns, ["ns", "nsec", "nsecs", "nanosecond", "nanoseconds"]),
    (Unit::Us, ["us", "usec", "usecs", "microsecond", "microseconds"]),
    (Unit::Ms, ["ms", "msec", "msecs", "millisecond", "milliseconds"]),
    (Unit::S, ["s", "sec", "secs", "second", "seconds"]),
];
/// Names of other units, which cannot be read.
const OTHER_UNITS: [&str; 15] = [
    "m",
    "min",
    "mins",
    "minute",
    "minutes",
    "h",
    "hour",
    "hours",
    "ps",
    "picosecond",
    "picoseconds",
    "cycle",
    "cycles",
    "tick",
    "ticks",
];

impl Format for Columns {
    fn name(&self) -> &'static str {
        "two columns: value, number of samples"
    }

    fn is_it(&self, text: &str) -> bool {
        if wide(text).is_some() {
            return true;
        }
        let has_counts = lines(text).next().is_some_and(|(number, line)| {
            is_heading(line) && Heading::of(number, line).is_ok_and(|heading| heading.separator != ' ')
        });
        let is_pair: Vec<bool> = rows(text).map(|(_, line)| words_of_row(line).is_some()).collect();
        let wrong = is_pair.iter().filter(|is_pair| !**is_pair).count();
        // A row that is wrong has a message with its line, if the others show the format.
        let is_cut =
            || rows(text).last().is_some_and(|(_, line)| line.starts_with(|first: char| first.is_ascii_digit()));
        match wrong {
            0 => !is_pair.is_empty(),
            1 if is_pair.last() == Some(&false) && is_pair.len() > 2 => has_counts || is_cut(),
            _ => has_counts && wrong < is_pair.len(),
        }
    }

    fn ending(&self) -> Ending {
        Ending::Any
    }

    fn read(&self, text: &str, unit: Option<Unit>) -> Result<Imported, Mistake> {
        if let Some((number, line, columns)) = wide(text) {
            let text = format!(
                "{line:?} names {columns} columns: keep the value and one number of samples, in a file for each CPU or thread"
            );
            return Err(Mistake::new(number, text));
        }
        let heading = lines(text).next().filter(|(_, line)| is_heading(line)).or_else(|| commented_heading(text));
        let has_heading = heading.is_some();
        let heading = heading.map(|(number, line)| Heading::of(number, line)).transpose()?.unwrap_or_default();
        let (unit, assumed) = match heading.unit {
            Some(unit) => (unit, None),
            None => {
                let (unit, caveat) = Unit::of(unit, Unit::Us);
                (unit, Some(caveat))
            }
        };
        let mut cells = Cells::default();
        let (mut last_ns, mut falls) = (None, None);
        for (number, line) in rows(text) {
            let wrong = || {
                let unit = unit.name();
                Mistake::new(
                    number,
                    format!("{line:?} must be a value in {unit} and a whole number of samples, such as `12.5,3`"),
                )
            };
            let too_large = |what: &str| Mistake::new(number, format!("{line:?}: {what} too large"));
            let (first, second) = pair(line).ok_or_else(wrong)?;
            let (value, count) = if heading.is_count_first { (second, first) } else { (first, second) };
            let value: f64 = value.parse().map_err(|_| wrong())?;
            let value_ns =
                to_ns(value, unit.ns() as f64).ok_or_else(|| too_large(&format!("the value in {} is", unit.name())))?;
            if let Some(last_ns) = last_ns {
                // Only a heading shows that the column with falling values is that of the times.
                let falls = *falls.get_or_insert(has_heading && value_ns < last_ns);
                if value_ns == last_ns || falls != (value_ns < last_ns) {
                    let side = if falls { "below" } else { "above" };
                    return Err(Mistake::new(number, format!("{line:?} is not {side} the row before it")));
                }
            }
            last_ns = Some(value_ns);
            let is_whole = |count: &str| count.parse().is_ok_and(|count: f64| count >= 0.0 && count.fract() == 0.0);
            let count = match whole(&count) {
                None if is_whole(&count) => return Err(too_large("the number of samples is")),
                count => count.ok_or_else(wrong)?,
            };
            cells.add(value_ns, 1, count).ok_or_else(|| too_large("with it, the number of all samples is"))?;
        }
        let mut imported = Imported::default();
        imported.caveats.extend(assumed);
        if !has_heading {
            let text = "the file has no heading: the first column is read as the value, and the second as its number of samples";
            imported.caveats.push(caveat("columns", text));
        }
        imported.caveats.push(caveat(
            "overflow",
            "the file does not say which times are in a row, nor the maximum: each row counts as its value, and later samples can be \
             missing",
        ));
        let mut figures =
            Figures { probe: record::TIMER.to_owned(), phase: "columns".to_owned(), ..Figures::default() };
        let highest_ns = cells.highest_ns();
        cells.fill(&mut figures)?;
        figures.max_above_ns = highest_ns;
        imported.figures.push(figures);
        Ok(imported)
    }
}

/// The names of the columns: `latency_us,count`.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Heading {
    /// The sign between the columns.
    separator: char,
    /// The unit of the values, if the heading has it.
    unit: Option<Unit>,
    /// True if the number of samples is the first column.
    is_count_first: bool,
}

impl Heading {
    /// Reads a heading. One of its columns must be the number of samples: a table of times and values has none.
    fn of(number: usize, line: &str) -> Result<Self, Mistake> {
        let separator = [';', ',', '\t'].into_iter().find(|separator| line.contains(*separator)).unwrap_or(' ');
        let (first, second) = line.rsplit_once(separator).unwrap_or((line, ""));
        let (first, second) = (words(first), words(second));
        if is_among(&first, &CUMULATIVE) || is_among(&second, &CUMULATIVE) {
            let text = format!(
                "{line:?} names cumulative counts: give the number of samples of each value, without those below"
            );
            return Err(Mistake::new(number, text));
        }
        let is_count = |name: &[String]| is_among(name, &COUNTS);
        let (value, is_count_first) = match (is_count(&first), is_count(&second)) {
            (_, true) => (first, false),
            (true, false) => (second, true),
            (false, false) => {
                return Err(Mistake::new(
                    number,
                    format!("{line:?} names no number of samples: a histogram needs a column `count`"),
                ));
            }
        };
        let unit = UNITS.iter().find(|(_, names)| is_among(&value, names));
        if let (None, Some(other)) = (unit, value.iter().find(|word| OTHER_UNITS.contains(&word.as_str()))) {
            let text = format!(
                "its heading names `{other}`, which is no unit of a column: convert the times to ns, us, ms or s"
            );
            return Err(Mistake::new(number, text));
        }
        Ok(Self { separator, unit: unit.map(|(unit, _)| *unit), is_count_first })
    }
}

/// The lines except comments and empty ones, with their numbers.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = (1..).zip(text.lines().map(str::trim));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with(['#', ';']))
}

fn is_heading(line: &str) -> bool {
    line.starts_with(|first: char| first.is_alphabetic() || first == '"') && words_of_row(line).is_none()
}

/// The first comment before the rows that names two columns: `numpy.savetxt(header="latency_ns,count")` writes such a comment.
/// Other comments are sentences.
fn commented_heading(text: &str) -> Option<(usize, &str)> {
    let (first_row, _) = rows(text).next()?;
    let comments = (1..first_row).zip(text.lines().map(str::trim));
    let comments = comments.filter_map(|(number, line)| Some((number, line.strip_prefix(['#', ';'])?.trim())));
    comments.filter(|(_, line)| is_heading(line)).find(|(_, line)| names_columns(line))
}

/// True for a line with two names of columns: the number of samples, and a time by its unit or its name.
fn names_columns(line: &str) -> bool {
    let parts: Vec<&str> = match [';', ',', '\t'].into_iter().find(|separator| line.contains(*separator)) {
        Some(separator) => line.split(separator).collect(),
        None => line.split_whitespace().collect(),
    };
    let [first, second] = parts[..] else { return false };
    let has_number = |part: &str| part.split_whitespace().any(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    if has_number(first) || has_number(second) {
        return false;
    }
    let (first, second) = (words(first), words(second));
    // `number of samples`; `latency (us)`.
    let is_count = |name: &[String]| name.len() <= 3 && (is_among(name, &COUNTS) || is_among(name, &CUMULATIVE));
    let has_unit = |name: &[String]| UNITS.iter().any(|(_, names)| is_among(name, names));
    let is_time =
        |name: &[String]| name.len() <= 2 && (has_unit(name) || is_among(name, &OTHER_UNITS) || is_among(name, &TIMES));
    is_count(&second) && is_time(&first) || is_count(&first) && is_time(&second)
}

/// The words of the name of a column in small letters.
fn words(name: &str) -> Vec<String> {
    let name = name.to_lowercase().replace(['µ', 'μ'], "u");
    name.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn is_among(words: &[String], names: &[&str]) -> bool {
    words.iter().any(|word| names.contains(&word.as_str()))
}

/// The heading of a histogram with more than two columns, such as one with cumulative counts or with a number for each CPU: its
/// line, and the number of its columns.
fn wide(text: &str) -> Option<(usize, &str, usize)> {
    let (number, heading) = lines(text).next().filter(|(_, line)| is_heading(line))?;
    let separator = [';', ',', '\t'].into_iter().find(|separator| heading.contains(*separator))?;
    let names: Vec<Vec<String>> = heading.split(separator).map(words).collect();
    let is_count = |name: &Vec<String>| is_among(name, &COUNTS) || is_among(name, &CUMULATIVE);
    let is_time = |name: &Vec<String>| {
        is_among(name, &TIMES) || is_among(name, &OTHER_UNITS) || UNITS.iter().any(|(_, units)| is_among(name, units))
    };
    let has_cpus = names.iter().filter(|name| name[..] == ["cpu"]).count() > 1;
    let has_both =
        (names.iter().any(is_count) || has_cpus) && names.iter().any(|name| is_time(name) && !is_count(name));
    if names.len() <= 2 || !has_both {
        return None;
    }
    let (_, row) = rows(text).next()?;
    let row: Vec<&str> = row.split(separator).map(|field| field.trim().trim_matches('"')).collect();
    let is_number = |field: &str| field.replace(',', ".").parse::<f64>().is_ok();
    let numbers = row.iter().filter(|field| is_number(field)).count();
    (row.len() == names.len() && numbers >= 2).then_some((number, heading, names.len()))
}

/// The lines without a heading.
fn rows(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut lines = lines(text).peekable();
    let _heading = lines.next_if(|(_, line)| is_heading(line));
    lines
}

/// Both numbers of a row.
fn pair(line: &str) -> Option<(String, String)> {
    let is_finite = |text: &String| text.parse::<f64>().is_ok_and(f64::is_finite);
    words_of_row(line).filter(|(first, second)| is_finite(first) && is_finite(second))
}

/// Both numbers of a row, also `nan` and `inf`, which can be in quotes. Between semicolons or tabs, a comma is the decimal sign.
fn words_of_row(line: &str) -> Option<(String, String)> {
    let strong = [';', '\t'].into_iter().find(|separator| line.contains(*separator));
    let (first, second) = match strong {
        Some(separator) => line.split_once(separator)?,
        None => line.split_once([' ', ','])?,
    };
    let second = second.trim_matches([' ', '\t', ',', ';']);
    let number = |text: &str| {
        let text = text.trim().trim_matches('"');
        let text = if strong.is_some() { text.replace(',', ".") } else { text.to_owned() };
        text.parse::<f64>().is_ok().then_some(text)
    };
    Some((number(first)?, number(second)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(Option<i64>, Option<u64>), String> {
        if !Columns.is_it(text) {
            return Err("another format".to_owned());
        }
        let read = Columns.read(text, None).map_err(|mistake| format!("line {}: {}", mistake.line, mistake.text))?;
        let figures = &read.figures[0];
        Ok((figures.histogram.as_ref().and_then(|histogram| Some(histogram.iter().next_back()?.0)), figures.samples))
    }

    #[test]
    fn headings_have_all_names_of_units() {
        for (heading, expected_ns) in [
            ("latency (s),count", 7_000_000_000),
            ("latency_s,count", 7_000_000_000),
            ("seconds,count", 7_000_000_000),
            ("latency [sec],count", 7_000_000_000),
            ("time_msec,count", 7_000_000),
            ("latency (µs),count", 7_000),
            ("latency,count", 7_000),
            ("ns,count", 7),
        ] {
            let (last_ns, samples) = read(&format!("{heading}\n1,5\n7,2\n")).unwrap();
            // Large values of a histogram are less than 0.1 % above the exact ones.
            assert!(
                last_ns.is_some_and(|ns| (expected_ns..=expected_ns + expected_ns / 1_000).contains(&ns)),
                "{heading}"
            );
            assert_eq!(samples, Some(7));
        }
        for unit in ["min", "m", "minutes", "hours", "ps", "cycles"] {
            let error = read(&format!("latency_{unit},count\n1,5\n")).unwrap_err();
            assert!(error.starts_with(&format!("line 1: its heading names `{unit}`, which is no unit")), "{error}");
        }
    }

    /// `numpy.savetxt` writes the heading as a comment, and whole numbers in its format of all numbers.
    #[test]
    fn a_heading_can_be_a_comment() {
        for (text, expected) in [
            ("# latency_ns,count\n1000,5\n1500,7\n", (1_500, 12)),
            ("# latency_ns count\n1000 5\n1500 7\n", (1_500, 12)),
            ("# of board 3\n# count,latency_us\n5,1\n10,2\n", (2_000, 15)),
            ("#latency_ns count\n1.000e+03 5.000000000000000000e+00\n1.500e+03 7.0\n", (1_500, 12)),
            // Sentences.
            ("# Number of samples, each a value\n1,5\n2,7\n", (2_000, 12)),
            ("# Took 10 minutes, 5 samples\n1,5\n2,7\n", (2_000, 12)),
            ("# samples of a board in ns\n1,5\n2,7\n", (2_000, 12)),
        ] {
            assert_eq!(read(text), Ok((Some(expected.0), Some(expected.1))), "{text}");
        }
        let falling = "# count,latency_us\n5,100\n50,20\n500,10\n900,7\n";
        assert_eq!(read(falling).unwrap().1, Some(1_455));
        let error = read(&falling.replace("900,7", "900,11")).unwrap_err();
        assert!(error.ends_with("\"900,11\" is not below the row before it"), "{error}");
        let error = read("# latency_min,count\n1,5\n").unwrap_err();
        assert!(error.starts_with("line 1: its heading names `min`, which is no unit"), "{error}");
        assert!(read("# latency_us,cumulative\n1,5\n").unwrap_err().contains("names cumulative counts"));
    }

    #[test]
    fn a_wrong_row_has_a_message_with_its_line() {
        for text in [
            "latency_us,count\n1,5\n2,10\n3,",
            "1,5\n2,10\n3,",
            "latency_us,count\n1,5\nx,10\n3,4\n",
            "latency_us,count\n1,5\n2,1.5\n3,4\n",
            "latency_us,count\n1,5\n2,4\nnan,4\n",
            "latency_us,count\n1,5\n2,4\nx,4\n",
            "1,5\ninf,3\n9,4\n",
            "nan,5\n2,3\n9,4\n",
            "\"NaN\"\t5\n2\t3\n9\t4\n",
        ] {
            let error = read(text).unwrap_err();
            assert!(
                error.ends_with("must be a value in microseconds and a whole number of samples, such as `12.5,3`"),
                "{text}: {error}"
            );
        }
        let seconds = read("latency_s,count\n1,5\n2,1.5\n3,4\n").unwrap_err();
        assert!(seconds.contains(" must be a value in seconds and "), "{seconds}");
        assert!(read("latency_us,count\n1,5\n2,10\n3,").unwrap_err().starts_with("line 4: \"3,\""));
        for text in ["a,count\nb,c\n", "the count, of samples\nwas 3\n", "1,5\nthe end\n", "1 2 3\n4 5 6\n"] {
            assert_eq!(read(text).unwrap_err(), "another format", "{text}");
        }
    }

    #[test]
    fn a_number_that_is_too_large_is_called_so() {
        for (row, expected) in [
            ("2,18446744073709551616", "line 3: \"2,18446744073709551616\": the number of samples is too large"),
            ("2,1e30", "line 3: \"2,1e30\": the number of samples is too large"),
            (
                "2,18446744073709551615",
                "line 3: \"2,18446744073709551615\": with it, the number of all samples is too large",
            ),
            ("1e10,3", "line 3: \"1e10,3\": the value in seconds is too large"),
        ] {
            assert_eq!(read(&format!("latency_s,count\n1,5\n{row}\n")).unwrap_err(), expected);
        }
    }

    #[test]
    fn more_than_two_columns_have_a_reason() {
        for (heading, row, columns) in [
            ("latency_ns;count;cum", "1000;5;5", 3),
            ("latency_us,count_cpu0,count_cpu1", "1,5,6", 3),
            ("us,cpu0,cpu1,cpu2", "1,5,6,7", 4),
            ("bin\tlatency (us)\tsamples", "1\t2,5\t7", 3),
            ("cpu,latency_us,count", "all,2,7", 3),
        ] {
            let error = read(&format!("# of board 3\n{heading}\n{row}\n")).unwrap_err();
            let expected = "keep the value and one number of samples, in a file for each CPU or thread";
            assert_eq!(error, format!("line 2: {heading:?} names {columns} columns: {expected}"));
        }
        for other in
            ["time_s,cpu,latency_us\n1,0,5\n", "cpu,min_us,max_us\n0,1,2\n", "a value,its count,is this\nno,text,row\n"]
        {
            assert_eq!(read(other).unwrap_err(), "another format", "{other}");
        }
    }

    #[test]
    fn spreadsheets_write_quotes_and_their_own_decimal_sign() {
        assert_eq!(read("\"latency_us\",\"count\"\n\"1\",\"5\"\n\"2\",\"6\"\n"), Ok((Some(2_000), Some(11))));
        assert_eq!(read("latency (us);count\n0,5;10\n1,5;20\n"), Ok((Some(1_500), Some(30))));
        assert_eq!(read("count;latency (us)\n5;0,5\n10;1,25\n"), Ok((Some(1_250), Some(15))));
        assert_eq!(read("0.5\t10\n1.5\t20\n"), Ok((Some(1_500), Some(30))));
        assert_eq!(read("1, 5\n2, 6\n"), Ok((Some(2_000), Some(11))));
    }
}
