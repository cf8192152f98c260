//! Logs with a line for each sample: they are read line by line, so that their length does not matter.
//!
//! | log | line |
//! |---|---|
//! | `cyclictest -v` (`src/cyclictest/cyclictest.c`, `print_stat`) | thread, cycle, lateness: `       0:      17:       9` |
//! | trace of the tracer timerlat, also of `rtla timerlat -T` (Documentation/trace/timerlat-tracer.rst) | `<idle>-0 [000] d.h1. 54.029328: #1 context irq timer_latency 932 ns` |

use std::{
    collections::BTreeMap,
    io::{self, BufRead, Read},
};

use record::{Caveat, Figures, Histogram, TIMERLAT_IRQ, TIMERLAT_THREAD, counted, grouped};

use crate::{
    FIGURES_MAX, Imported, Mistake, Unit, another_run, caveat,
    rtla::{KERNEL, TIMERLAT_USER},
};

/// Length of the begin of a file that shows its format, bytes.
pub const HEAD_BYTES: usize = 64 << 10;
/// The longest line, bytes.
const LINE_MAX: u64 = 4096;
/// Values below this are counted in a table, in the unit of the log.
const TABLE: usize = 1 << 16;

/// The kind of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Log {
    /// `cyclictest -v`.
    Cyclictest,
    /// A trace of the tracer timerlat.
    Timerlat,
}

/// A sample of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sample {
    /// Thread or CPU.
    of: u32,
    /// Its population; one for cyclictest.
    context: Context,
    /// Its number, which shows what the log lacks.
    number: u64,
    /// In the unit of the log.
    value: i64,
}

/// The end of a measured time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Context {
    Thread,
    Irq,
    User,
}

impl Log {
    /// The log that begins with this text; `None` if it is none.
    pub fn of(head: &[u8]) -> Option<Self> {
        // The last line can be cut.
        let whole = head.iter().rposition(|&byte| byte == b'\n').map_or(head, |end| &head[..end]);
        let mut lines = whole.split(|&byte| byte == b'\n');
        lines.find_map(|line| [Self::Cyclictest, Self::Timerlat].into_iter().find(|log| log.sample(line).is_some()))
    }

    /// Its name for readers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cyclictest => "cyclictest -v",
            Self::Timerlat => "trace of timerlat",
        }
    }

    fn unit_ns(self, unit: Unit) -> i64 {
        match self {
            Self::Cyclictest => unit.ns(),
            Self::Timerlat => 1,
        }
    }

    /// The sample of a line; `None` if it has none.
    fn sample(self, line: &[u8]) -> Option<Sample> {
        match self {
            Self::Cyclictest => of_cyclictest(line),
            Self::Timerlat => of_timerlat(line),
        }
    }

    /// True for a line that begins like one with a sample.
    fn must_have_sample(self, line: &[u8]) -> bool {
        match self {
            Self::Cyclictest => line.trim_ascii_start().first().is_some_and(u8::is_ascii_digit),
            Self::Timerlat => position(line, b" timer_latency ").is_some(),
        }
    }

    /// True for the line that begins the file of a trace. The numbers of a later run can be larger than those before it.
    fn is_heading(self, line: &[u8]) -> bool {
        self == Self::Timerlat && line.starts_with(b"# tracer: ")
    }

    /// Reads a log in constant memory.
    ///
    /// # Errors
    /// The first line that cannot be read, or the error of the reader.
    pub fn read(self, mut log: impl BufRead, unit: Option<Unit>) -> io::Result<Result<Imported, Mistake>> {
        let (unit, units) = Unit::of(unit, Unit::Us);
        let unit_ns = self.unit_ns(unit);
        let mut threads: BTreeMap<(Context, u32), Thread> = BTreeMap::new();
        let (mut line, mut number, mut lost, mut is_cut) = (Vec::new(), 0_usize, 0_u64, false);
        loop {
            line.clear();
            if log.by_ref().take(LINE_MAX).read_until(b'\n', &mut line)? == 0 {
                break;
            }
            number += 1;
            is_cut = line.last() != Some(&b'\n');
            match self.sample(&line).filter(|_| !is_cut) {
                Some(sample) => {
                    let at = (sample.context, sample.of);
                    if threads.len() == FIGURES_MAX && !threads.contains_key(&at) {
                        let text = format!("more than {} threads", grouped(FIGURES_MAX as u64));
                        return Ok(Err(Mistake::new(number, text)));
                    }
                    let thread = threads.entry(at).or_insert_with(Thread::new);
                    if thread.samples > 0 && sample.number <= thread.last {
                        return Ok(Err(another_run(number)));
                    }
                    if thread.add(sample, unit_ns).is_none() {
                        return Ok(Err(Mistake::new(number, "its value is out of range")));
                    }
                }
                None if self.is_heading(&line) && !threads.is_empty() => return Ok(Err(another_run(number))),
                None if is_cut && log.fill_buf()?.is_empty() => break,
                None if self.must_have_sample(&line) => {
                    let text = String::from_utf8_lossy(&line).trim().to_owned();
                    return Ok(Err(Mistake::new(number, format!("not a sample: {text}"))));
                }
                None => lost = lost.saturating_add(lost_events(&line).unwrap_or(0)),
            }
        }
        let first = match self {
            Self::Cyclictest => units,
            Self::Timerlat => caveat("mixed", KERNEL),
        };
        Ok(Ok(self.imported(threads, unit_ns, first, lost, is_cut)))
    }

    fn imported(
        self,
        threads: BTreeMap<(Context, u32), Thread>,
        unit_ns: i64,
        first: Caveat,
        lost: u64,
        is_cut: bool,
    ) -> Imported {
        let tool = match self {
            Self::Cyclictest => "cyclictest",
            Self::Timerlat => "timerlat",
        };
        let mut imported = Imported { tool: tool.to_owned(), caveats: vec![first], ..Imported::default() };
        for ((context, of), thread) in threads {
            let figures = match self {
                Self::Cyclictest => Figures { phase: format!("thread-{of}"), ..Figures::default() },
                Self::Timerlat => {
                    let role = match context {
                        Context::Irq => TIMERLAT_IRQ,
                        Context::Thread => TIMERLAT_THREAD,
                        Context::User => TIMERLAT_USER,
                    };
                    let (phase, role, cpus) = ("timerlat".to_owned(), role.to_owned(), of.to_string());
                    Figures { phase, role, cpus, ..Figures::default() }
                }
            };
            let who = match self {
                Self::Cyclictest => format!("thread {of}"),
                Self::Timerlat => format!("{} of CPU {of}", figures.role),
            };
            imported.caveats.extend(thread.missing_caveat(&who));
            let figures = Figures { probe: record::TIMER.to_owned(), ..figures };
            imported.figures.push(thread.figures(figures, unit_ns));
        }
        if lost > 0 {
            let are = if lost == 1 { "is" } else { "are" };
            let text = format!("the trace lost {}, which {are} in no figure", counted(lost, "event"));
            imported.caveats.push(caveat("overflow", text));
        }
        if is_cut {
            imported.caveats.push(caveat("cut", "the last line has no end, so its sample is left out"));
        }
        imported
    }
}

/// The samples of a thread.
struct Thread {
    /// Samples with small values, by value.
    table: Vec<u64>,
    /// Samples with other values, ns.
    others: Histogram,
    samples: u64,
    sum: f64,
    min: i64,
    max: i64,
    last: u64,
    /// Numbers that the log lacks.
    missing: u64,
}

impl Thread {
    fn new() -> Self {
        Self {
            table: vec![0; TABLE],
            others: Histogram::default(),
            samples: 0,
            sum: 0.0,
            min: i64::MAX,
            max: i64::MIN,
            last: 0,
            missing: 0,
        }
    }

    /// Adds a sample in this unit; `None` if it is out of range.
    fn add(&mut self, sample: Sample, unit_ns: i64) -> Option<()> {
        let value_ns = sample.value.checked_mul(unit_ns)?;
        if self.samples > 0 {
            self.missing += sample.number - self.last - 1;
        }
        self.last = sample.number;
        self.samples += 1;
        self.sum += sample.value as f64;
        (self.min, self.max) = (self.min.min(sample.value), self.max.max(sample.value));
        match usize::try_from(sample.value).ok().and_then(|value| self.table.get_mut(value)) {
            Some(count) => *count += 1,
            None => self.others.add(value_ns, 1),
        }
        Some(())
    }

    /// The caveat about samples that the log lacks.
    fn missing_caveat(&self, who: &str) -> Option<Caveat> {
        (self.missing > 0).then(|| {
            let text = format!("{who}: the log lacks {} by their numbers", counted(self.missing, "sample"));
            caveat("overflow", text)
        })
    }

    /// The figures with these samples, whose unit this is.
    fn figures(self, conditions: Figures, unit_ns: i64) -> Figures {
        let mut histogram = self.others;
        (0_i64..).zip(&self.table).for_each(|(value, count)| histogram.add(value * unit_ns, *count));
        let percentile = |percent| histogram.percentile(percent).map(|ns| ns.min(self.max * unit_ns));
        Figures {
            samples: Some(self.samples),
            min_ns: Some(self.min * unit_ns),
            mean_ns: Some(self.sum / self.samples as f64 * unit_ns as f64),
            max_ns: Some(self.max * unit_ns),
            p50_ns: percentile(50.0),
            p99_ns: percentile(99.0),
            histogram: Some(histogram),
            ..conditions
        }
    }
}

/// `%8d:%8lu:%8ld`, and `SMI:%8ld` with `--smi`. The width distinguishes it from a time of day.
fn of_cyclictest(line: &[u8]) -> Option<Sample> {
    const WIDTH: usize = 8;
    let (thread, rest) = line.split_at_checked(WIDTH)?;
    let (thread, []) = number(thread)? else { return None };
    let after = rest.strip_prefix(b":")?;
    let (cycle, rest) = number(after)?;
    let value = rest.strip_prefix(b":")?;
    if after.len() - rest.len() < WIDTH || value.trim_ascii_end().len() < WIDTH {
        return None;
    }
    let value = value.trim_ascii_start();
    let (digits, sign) = value.strip_prefix(b"-").map_or((value, 1), |digits| (digits, -1));
    let (value, rest) = number(digits)?;
    let rest = rest.trim_ascii();
    let is_end = rest.is_empty() || rest.starts_with(b"SMI");
    let value = i64::try_from(value).ok()?.checked_mul(sign)?;
    let of = u32::try_from(thread).ok()?;
    is_end.then_some(Sample { of, context: Context::Thread, number: cycle, value })
}

fn of_timerlat(line: &[u8]) -> Option<Sample> {
    let found = position(line, b" timer_latency ")?;
    let (before, after) = (&line[..found], &line[found + b" timer_latency ".len()..]);
    let (value, rest) = number(after)?;
    if !rest.trim_ascii_start().starts_with(b"ns") {
        return None;
    }
    let mut words = before.rsplit(|&byte| byte == b' ').filter(|word| !word.is_empty());
    let context = match words.next()? {
        b"irq" => Context::Irq,
        b"thread" => Context::Thread,
        b"user" | b"user-ret" => Context::User,
        _ => return None,
    };
    let mut words = words.skip_while(|word| !word.starts_with(b"#"));
    let (number_of, _) = number(words.next()?.strip_prefix(b"#")?)?;
    let cpu = words.find_map(|word| word.strip_prefix(b"[")?.strip_suffix(b"]"))?;
    let (cpu, rest) = number(cpu)?;
    let (of, value) = (u32::try_from(cpu).ok()?, i64::try_from(value).ok()?);
    rest.is_empty().then_some(Sample { of, context, number: number_of, value })
}

/// The events that the kernel names as lost: `CPU:3 [LOST 1234 EVENTS]`.
fn lost_events(line: &[u8]) -> Option<u64> {
    let at = position(line, b"[LOST ")?;
    number(&line[at + b"[LOST ".len()..]).map(|(lost, _)| lost)
}

/// The number at the begin, after white space, and the rest.
fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let text = text.trim_ascii_start();
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at(digits);
    let add = |sum: u64, digit: &u8| sum.checked_mul(10)?.checked_add(u64::from(digit - b'0'));
    let value = digits.iter().try_fold(0, add)?;
    (!digits.is_empty()).then_some((value, rest))
}

fn position(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<Imported, Mistake> {
        Log::of(text.as_bytes()).expect("a log").read(text.as_bytes(), None).unwrap()
    }

    #[test]
    fn a_verbose_log_of_cyclictest_has_each_sample() {
        let text = "# /dev/cpu_dma_latency set to 0us\npolicy: fifo: loadavg: 0.1\n       0:       0:       7\n       1:       0:      -2\n\
                    \x20      0:       1:      90 SMI:       0\n       0:       4:  100000\n       1:       1:       3\n       0:       5:       1";
        let imported = read(text).unwrap();
        let [first, second] = &imported.figures[..] else { panic!("{imported:?}") };
        assert_eq!((first.samples, first.min_ns, first.max_ns), (Some(3), Some(7_000), Some(100_000_000)));
        assert!((first.mean_ns.unwrap() - 100_097_000.0 / 3.0).abs() < 1.0);
        assert_eq!((second.samples, second.min_ns, second.max_ns), (Some(2), Some(-2_000), Some(3_000)));
        assert_eq!(first.histogram.as_ref().unwrap().total(), 3);
        let caveats: Vec<&str> = imported.caveats.iter().map(|caveat| &*caveat.text).collect();
        assert_eq!(
            caveats[1..],
            [
                "thread 0: the log lacks 2 samples by their numbers",
                "the last line has no end, so its sample is left out"
            ]
        );
    }

    #[test]
    fn a_trace_of_timerlat_has_a_population_for_each_context() {
        let text = "# tracer: timerlat\n\
                    <idle>-0       [000] d.h1.    54.029328: #1     context    irq timer_latency       932 ns\n\
                    <...>-867     [000] .....    54.029339: #1     context thread timer_latency     11700 ns\n\
                    CPU:1 [LOST 42 EVENTS]\n\
                    a [x] b-7     [001] dNh1.    54.029346: #7     context    irq timer_latency      2833 ns\n\
                    <idle>-0      [001] d.h1.    54.030346: #9     context    irq timer_latency       820 ns\n\
                    <...>-867     [000] .....    54.030346: #1     context user-ret timer_latency 12345 ns\n\
                    <...>-868     [001] .....    54.030347: irq_handler_entry: irq=1\n";
        let imported = read(text).unwrap();
        let figures: Vec<_> =
            imported.figures.iter().map(|of| (&*of.role, &*of.cpus, of.samples.unwrap(), of.max_ns.unwrap())).collect();
        let expected = [
            (TIMERLAT_THREAD, "0", 1, 11_700),
            (TIMERLAT_IRQ, "0", 1, 932),
            (TIMERLAT_IRQ, "1", 2, 2_833),
            (TIMERLAT_USER, "0", 1, 12_345),
        ];
        assert_eq!(figures, expected);
        let caveats: Vec<&str> = imported.caveats.iter().map(|caveat| &*caveat.text).collect();
        assert_eq!(
            caveats[1..],
            [
                "timerlat/irq of CPU 1: the log lacks 1 sample by their numbers",
                "the trace lost 42 events, which are in no figure"
            ]
        );
    }

    #[test]
    fn a_log_of_several_runs_is_refused() {
        let of = |first: u64| {
            let line = |number: u64| format!("<idle>-0 [000] d.h1. 54.0: #{number} context irq timer_latency 932 ns\n");
            format!("# tracer: timerlat\n#\n{}{}", line(first), line(first + 1))
        };
        assert!(read(&of(1)).is_ok());
        let without_heading = [of(1), of(1).lines().skip(2).map(|line| format!("{line}\n")).collect()].concat();
        for (text, line) in [(of(1) + &of(1), 5), (of(1) + &of(9), 5), (without_heading, 5)] {
            let mistake = read(&text).unwrap_err();
            assert_eq!((mistake.line, &*mistake.text), (line, "another run begins here: split the file into its runs"));
        }
    }

    #[test]
    fn a_damaged_line_is_named() {
        let of = |line: &str| read(&format!("       0:       0:       7\n{line}\n       0:       1:       7\n"));
        for line in [
            "       0:       1",
            "       0:       1:       x",
            "1",
            "       0:       1: 99999999999999999999",
            "0:1:2 3",
        ] {
            assert_eq!(of(line).unwrap_err().line, 2, "{line}");
        }
        for line in ["", "# comment", "WARN: stat"] {
            assert!(of(line).is_ok(), "{line}");
        }
        let trace = "<idle>-0 [000] d.h1. 54.0: #1 context irq timer_latency 932 ns\n<idle>-0 d.h1. 54.0: #1 context irq timer_latency 9 ns\n";
        assert_eq!(read(trace).unwrap_err().line, 2);
    }

    #[test]
    fn other_texts_are_no_logs() {
        for text in [
            "",
            "0: 1\n",
            "10 20\n",
            "12:30:45.5\n",
            "12:30:45\n",
            "T: 0 ( 1234) P:80 I:1000 C: 9 Min: 1 Act: 2 Avg: 3 Max: 4\n",
        ] {
            assert_eq!(Log::of(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(line in ".{0,60}", at in 0_usize..80, with in any::<u8>()) {
            for (log, text) in [
                (Log::Cyclictest, format!("       0:       0:       7\n{line}\n       0:       1:       9\n")),
                (Log::Timerlat, format!("a-1 [0] d. 5.0: #1 context irq timer_latency 9 ns\n{line} timer_latency 1 ns\n")),
            ] {
                let mut bytes = text.into_bytes();
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = with;
                }
                let _ = Log::of(&bytes);
                let read = log.read(&*bytes, None).unwrap();
                prop_assert!(read.is_err() || read.is_ok_and(|imported| !imported.caveats.is_empty()));
            }
        }
    }

    #[test]
    fn a_file_without_lines_takes_no_memory() {
        let endless = io::repeat(b'7').take(1 << 30);
        let head = b"       0:       0:       7\n";
        let log = io::BufReader::new(head.chain(endless));
        assert_eq!(Log::Cyclictest.read(log, None).unwrap().unwrap_err().line, 2);
    }
}
