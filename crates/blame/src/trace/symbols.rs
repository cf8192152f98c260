//! Names of kernel functions and strings, by address.

use std::{
    collections::HashMap,
    fs::File,
    io::Read,
    ops::Range,
    sync::{LazyLock, Mutex, MutexGuard},
};

use super::decode::TimerCallbacks;

/// The kernel's functions, from `/proc/kallsyms`.
#[derive(Debug, Clone, Default)]
pub struct Symbols {
    text: String,
    /// Address of each function and the range of its name in the text; sorted by address.
    functions: Vec<(u64, Range<u32>)>,
}

impl Symbols {
    /// Parses lines `address type name [module]`. Skips hidden addresses, which are 0.
    #[must_use]
    pub fn parse(text: String) -> Self {
        let mut symbols = Self { text, functions: Vec::new() };
        symbols.parse_from(0);
        symbols
    }

    /// Parses the text from this position on.
    fn parse_from(&mut self, start: usize) {
        /// Length of an average line of the kernel's file, bytes.
        const LINE_BYTES: usize = 44;
        let (bytes, mut at) = (self.text.as_bytes(), start);
        self.functions.reserve((bytes.len() - start) / LINE_BYTES);
        while at < bytes.len() {
            let (line, name) = scan_line(&bytes[at..]);
            if let Some((address, name)) = name
                && let (Ok(start), Ok(end)) = (u32::try_from(at + name.start), u32::try_from(at + name.end))
            {
                self.functions.push((address, start..end));
            }
            at += line;
        }
        // The kernel lists its own functions in this order, and those of modules behind them.
        self.functions.sort_by_key(|&(address, _)| address);
    }

    /// Name of the function that contains an address; `None` if the address is before the first function.
    #[must_use]
    pub fn name(&self, address: u64) -> Option<&str> {
        let behind = self.functions.partition_point(|&(start, _)| start <= address);
        let (_, name) = self.functions.get(behind.checked_sub(1)?)?;
        self.text.get(name.start as usize..name.end as usize)
    }
}

/// The symbols of the running kernel, read only as far as they are needed: all of them take 30 to 60 ms on a PC, and
/// seconds on a slow CPU.
#[derive(Debug)]
pub struct KernelSymbols<R = File> {
    /// The rest of `/proc/kallsyms`; `None` if everything is read, or nothing can be.
    source: Option<R>,
    /// The start of a line whose end is not read yet.
    cut_line: Vec<u8>,
    symbols: Symbols,
    /// All functions of the kernel itself below this address have been read.
    complete_below: u64,
    /// True until the first line of a module.
    in_kernel: bool,
}

/// Bytes to read at once.
const CHUNK_BYTES: u64 = 256 << 10;

impl KernelSymbols {
    /// The symbols of the running kernel; none if addresses are hidden from this process.
    ///
    /// # Panics
    /// If another thread panicked while it used them.
    pub fn lock() -> MutexGuard<'static, Self> {
        static SYMBOLS: LazyLock<Mutex<KernelSymbols>> =
            LazyLock::new(|| Mutex::new(KernelSymbols::new(File::open("/proc/kallsyms").ok())));
        SYMBOLS.lock().expect("symbols")
    }
}

impl<R: Read> KernelSymbols<R> {
    fn new(source: Option<R>) -> Self {
        let symbols = Symbols::default();
        Self { source, cut_line: Vec::new(), symbols, complete_below: 0, in_kernel: true }
    }

    /// Name of the function that contains an address; `None` if the address is before the first function.
    pub fn name(&mut self, address: u64) -> Option<&str> {
        while !self.is_read(address) {
            self.read_more();
        }
        self.symbols.name(address)
    }

    /// True if nothing that is still unread can contain this address. Modules can be below the kernel.
    fn is_read(&self, address: u64) -> bool {
        let first = self.symbols.functions.first();
        self.source.is_none() || address < self.complete_below && first.is_some_and(|&(start, _)| start <= address)
    }

    /// Address of the kernel's first instruction; 0 if it is hidden.
    pub fn code_start(&mut self) -> u64 {
        self.find(code_start, &0)
    }

    /// Addresses of the callbacks of the timers that end waits.
    pub fn timers(&mut self) -> TimerCallbacks {
        TimerCallbacks { sleep: self.find(sleep_timer, &None), fd: self.find(fd_timer, &None) }
    }

    /// Searches the text, and reads on as long as the answer is `missing`.
    fn find<T: PartialEq>(&mut self, search: fn(&str) -> T, missing: &T) -> T {
        let mut searched = 0;
        loop {
            let found = search(&self.symbols.text[searched..]);
            if found != *missing || self.source.is_none() {
                return found;
            }
            // Whole lines are appended, so no line is cut between two searches.
            searched = self.symbols.text.len();
            self.read_more();
        }
    }

    /// The whole text of `/proc/kallsyms`.
    pub fn text(&mut self) -> &str {
        while self.source.is_some() {
            self.read_more();
        }
        &self.symbols.text
    }

    /// Reads and parses the next lines.
    fn read_more(&mut self) {
        let Some(source) = &mut self.source else { return };
        let start = self.symbols.text.len();
        let length = match source.take(CHUNK_BYTES).read_to_end(&mut self.cut_line) {
            Ok(1..) => self.cut_line.iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1),
            Ok(0) | Err(_) => {
                self.source = None;
                self.cut_line.len()
            }
        };
        let lines: Vec<u8> = self.cut_line.drain(..length).collect();
        self.symbols.text.push_str(&String::from_utf8_lossy(&lines));
        self.symbols.parse_from(start);
        // The lines of modules end with the module's name.
        self.in_kernel &= !lines.contains(&b'\t');
        if self.in_kernel {
            self.complete_below = self.symbols.functions.last().map_or(0, |&(address, _)| address);
        }
    }
}

/// Scans the first line of `bytes`: its length with the line end, and if it describes a function with a known address,
/// that address and the range of its name. Words are not split off first, because the kernel has 100 000 such lines.
fn scan_line(bytes: &[u8]) -> (usize, Option<(u64, Range<usize>)>) {
    let mut at = 0;
    let mut address = 0_u64;
    while let Some(digit) = bytes.get(at).and_then(|&byte| char::from(byte).to_digit(16)) {
        address = address << 4 | u64::from(digit);
        at += 1;
    }
    let is_function = matches!(bytes.get(at..), Some([b' ', b't' | b'T' | b'w' | b'W', b' ', ..]));
    let start = at + 3;
    let name = bytes.get(start..).filter(|_| is_function).unwrap_or_default();
    let end = start + name.iter().take_while(|byte| !byte.is_ascii_whitespace()).count();
    let rest = if is_function { end } else { at };
    let line = bytes[rest..].iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |count| rest + count + 1);
    let is_known = is_function && address != 0 && at <= 16 && end > start;
    (line, is_known.then_some((address, start..end)))
}

/// Address of the kernel's first instruction (`_stext`) in the text of `/proc/kallsyms`; 0 if it is hidden. Some
/// records store offsets from it.
#[must_use]
pub fn code_start(kallsyms: &str) -> u64 {
    address_before(kallsyms, " _stext\n").unwrap_or(0)
}

/// Addresses of the callbacks of the timers that end waits, from the text of `/proc/kallsyms`.
#[must_use]
pub fn timers(kallsyms: &str) -> TimerCallbacks {
    TimerCallbacks { sleep: sleep_timer(kallsyms), fd: fd_timer(kallsyms) }
}

/// The callback that ends a sleep; `None` if it is hidden.
fn sleep_timer(kallsyms: &str) -> Option<u64> {
    address_before(kallsyms, " hrtimer_wakeup\n").filter(|&address| address != 0)
}

/// The callback of a timerfd; `None` if it is hidden.
fn fd_timer(kallsyms: &str) -> Option<u64> {
    address_before(kallsyms, " timerfd_tmrproc\n").filter(|&address| address != 0)
}

/// The address in the line that ends with `end`.
fn address_before(kallsyms: &str, end: &str) -> Option<u64> {
    let (before, _) = kallsyms.split_once(end)?;
    let line = before.rsplit('\n').next()?;
    u64::from_str_radix(line.split(' ').next()?, 16).ok()
}

/// Parses `printk_formats`, lines `0xADDRESS : "text"`: the strings that records store only by address.
#[must_use]
pub fn strings(printk_formats: &str) -> HashMap<u64, String> {
    let string = |line: &str| {
        let (address, text) = line.split_once(" : ")?;
        let address = u64::from_str_radix(address.trim().trim_start_matches("0x"), 16).ok()?;
        Some((address, text.trim().trim_matches('"').to_owned()))
    };
    printk_formats.lines().filter_map(string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_belongs_to_the_function_that_starts_before_it() {
        let symbols = Symbols::parse(
            "ffffffff81000000 T _stext\nffffffff81000400 t second\t[module]\nffffffff81000200 W first\n\
             ffffffff82000000 D some_data\nnonsense\n"
                .to_owned(),
        );
        assert_eq!(code_start(&symbols.text), 0xffff_ffff_8100_0000);
        assert_eq!(symbols.name(0xffff_ffff_8100_0200), Some("first"));
        assert_eq!(symbols.name(0xffff_ffff_8100_03ff), Some("first"));
        assert_eq!(symbols.name(0xffff_ffff_8300_0000), Some("second"));
        assert_eq!(symbols.name(0xffff), None);
    }

    #[test]
    fn damaged_lines_are_skipped_and_the_next_ones_read() {
        let text = "\n \nffffffff81000000\nffffffff81000010 t\nffffffff81000020 t \n\
                    ffffffffffffffff81000030 t long\n81000040 w last_but_one\t[m]\n81000050 T last";
        let symbols = Symbols::parse(text.to_owned());
        assert_eq!((symbols.name(0x8100_0030), symbols.name(0x8100_004f)), (None, Some("last_but_one")));
        assert_eq!(symbols.name(u64::MAX), Some("last"));
    }

    #[test]
    fn ignores_hidden_addresses() {
        let symbols = Symbols::parse("0000000000000000 T _stext\n0000000000000000 T first\n".to_owned());
        assert_eq!((symbols.name(0), symbols.name(u64::MAX), code_start(&symbols.text)), (None, None, 0));
    }

    /// A kernel with functions every 16 bytes, and modules above and below.
    fn kernel() -> String {
        let functions =
            (0..40_000_u64).map(|number| format!("{:016x} t function{number}\n", 0x8000_0000 + number * 16));
        let modules = "0000000090000000 t high\t[a]\n0000000070000000 t low\t[b]\n00000000a0000000 t highest\t[c]\n";
        functions.collect::<String>() + modules
    }

    #[test]
    fn reads_only_as_far_as_needed() {
        let text = kernel();
        let whole = Symbols::parse(text.clone());
        let mut symbols = KernelSymbols::new(Some(text.as_bytes()));
        assert_eq!(symbols.name(0x8000_0101), Some("function16"));
        let read = symbols.symbols.text.len();
        assert!(read as u64 <= CHUNK_BYTES && symbols.source.is_some() && !symbols.cut_line.is_empty());
        assert_eq!(symbols.name(0x8000_0011), Some("function1"));
        assert_eq!(symbols.symbols.text.len(), read);
        for address in [0x8004_0000, 0x8000_0000, 0x9000_0001, 0x7000_0000, 0xa000_0000, 0x6000_0000, 0x8009_c3ff] {
            assert_eq!(symbols.name(address), whole.name(address), "{address:x}");
        }
        assert_eq!(symbols.text(), text);
        assert!(symbols.source.is_none());
        let mut modules_first = KernelSymbols::new(Some(text.as_bytes()));
        assert_eq!(modules_first.name(0x7000_0004), Some("low"), "not yet read at first");
    }

    #[test]
    fn finds_single_symbols_in_later_chunks() {
        let text =
            kernel().replace("function30000\n", "hrtimer_wakeup\n").replace("function31000\n", "timerfd_tmrproc\n");
        let mut symbols = KernelSymbols::new(Some(text.as_bytes()));
        let callbacks = TimerCallbacks { sleep: Some(0x8000_0000 + 30_000 * 16), fd: Some(0x8000_0000 + 31_000 * 16) };
        assert_eq!(symbols.timers(), callbacks);
        assert!(symbols.source.is_some());
        assert_eq!(symbols.timers(), callbacks, "found again");
        assert_eq!(symbols.code_start(), 0);
        assert!(symbols.source.is_none());
        let mut none = KernelSymbols::<&[u8]>::new(None);
        assert_eq!((none.timers(), none.text().len()), (TimerCallbacks::default(), 0));
        assert_eq!(none.name(7), None);
    }

    #[test]
    fn removes_quotes_from_strings() {
        let strings = strings("0xffff800011 : \"Rescheduling interrupts\"\nnonsense\n");
        assert_eq!(strings.get(&0xff_ff80_0011).map(String::as_str), Some("Rescheduling interrupts"));
    }
}
