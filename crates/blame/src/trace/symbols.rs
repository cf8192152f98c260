//! Names of kernel functions and strings, by address.

mod known;

use std::{
    collections::HashMap,
    fs::File,
    io::Read,
    ops::Range,
    sync::{LazyLock, Mutex, MutexGuard},
};

use machine::Root;

use self::known::Known;
use super::decode::TimerCallbacks;

/// The kernel's functions, from `/proc/kallsyms`.
#[derive(Debug, Clone, Default)]
pub struct Symbols {
    /// The names of all functions, one after another.
    names: String,
    /// Address of each function and the range of its name; sorted by address.
    functions: Vec<(u64, Range<u32>)>,
}

impl Symbols {
    /// Parses lines `address type name [module]`. Skips hidden addresses, which are 0.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut symbols = Self::default();
        symbols.add(text.as_bytes());
        symbols
    }

    /// Parses more lines.
    fn add(&mut self, lines: &[u8]) {
        let (mut at, known) = (0, self.functions.len());
        while at < lines.len() {
            let (line, function) = scan_line(&lines[at..]);
            if let Some((address, name)) = function {
                let start = self.names.len();
                self.names.push_str(&String::from_utf8_lossy(&lines[at + name.start..at + name.end]));
                if let (Ok(start), Ok(end)) = (u32::try_from(start), u32::try_from(self.names.len())) {
                    self.functions.push((address, start..end));
                }
            }
            at += line;
        }
        // The kernel lists its own functions in this order, and those of modules behind them.
        let first_new = known.saturating_sub(1);
        if !self.functions[first_new..].is_sorted_by_key(|&(address, _)| address) {
            self.functions.sort_by_key(|&(address, _)| address);
        }
    }

    /// Name of the function that contains an address; `None` if the address is before the first function.
    #[must_use]
    pub fn name(&self, address: u64) -> Option<&str> {
        let behind = self.behind(address);
        let (_, name) = self.functions.get(behind.checked_sub(1)?)?;
        self.names.get(name.start as usize..name.end as usize)
    }

    /// First address of the function that contains an address, and of the next function; `None` if there is no next one.
    fn range(&self, address: u64) -> Option<(u64, u64)> {
        let behind = self.behind(address);
        let (start, _) = self.functions.get(behind.checked_sub(1)?)?;
        let (end, _) = self.functions.get(behind)?;
        Some((*start, *end))
    }

    /// Index of the first function behind an address.
    fn behind(&self, address: u64) -> usize {
        self.functions.partition_point(|&(start, _)| start <= address)
    }

    /// Address of the kernel's first instruction; 0 if it is hidden. Some records store offsets from it.
    #[must_use]
    pub fn code_start(&self) -> u64 {
        self.address(CODE_START).unwrap_or(0)
    }

    /// Addresses of the callbacks of the timers that end waits; `None` if they are hidden.
    #[must_use]
    pub fn timers(&self) -> TimerCallbacks {
        TimerCallbacks { sleep: self.address(SLEEP_TIMER), fd: self.address(FD_TIMER) }
    }

    fn address(&self, name: &str) -> Option<u64> {
        let is_wanted = |range: &Range<u32>| self.names.get(range.start as usize..range.end as usize) == Some(name);
        self.functions.iter().find(|(_, range)| is_wanted(range)).map(|&(address, _)| address)
    }
}

/// The kernel's first instruction.
const CODE_START: &str = "_stext";
/// The callback that ends a sleep.
const SLEEP_TIMER: &str = "hrtimer_wakeup";
/// The callback of a timerfd.
const FD_TIMER: &str = "timerfd_tmrproc";

/// The symbols of the running kernel, read only as far as they are needed: the kernel takes 30 to 60 ms on a PC to write
/// all of them, and seconds on a slow CPU.
#[derive(Debug)]
pub struct KernelSymbols<R = File> {
    /// The rest of `/proc/kallsyms`; `None` if everything is read, or nothing can be.
    source: Option<R>,
    /// Bytes that are read and not parsed. Between two readings, this is the start of a line without its end.
    chunk: Vec<u8>,
    symbols: Symbols,
    /// The functions that earlier runs looked up, and those of this one.
    known: Known,
    /// All functions of the kernel itself with these addresses have been read.
    complete: Range<u64>,
    /// True until the first line of a module.
    in_kernel: bool,
}

/// Bytes to read at once.
const CHUNK_BYTES: u64 = 64 << 10;

impl KernelSymbols {
    /// The symbols of the running kernel; none if addresses are hidden from this process.
    ///
    /// # Panics
    /// If another thread panicked while it used them.
    pub fn lock() -> MutexGuard<'static, Self> {
        SYMBOLS.lock().expect("symbols")
    }

    /// Keeps what this run looked up, for later runs of this boot.
    pub fn save() {
        // After a panic in another thread, the file stays as it was.
        if let Ok(mut symbols) = SYMBOLS.lock() {
            symbols.known.save();
        }
    }
}

static SYMBOLS: LazyLock<Mutex<KernelSymbols>> = LazyLock::new(|| {
    let known = Known::of_this_boot(&Root::system());
    Mutex::new(KernelSymbols::new(File::open("/proc/kallsyms").ok(), known))
});

impl<R: Read> KernelSymbols<R> {
    fn new(source: Option<R>, known: Known) -> Self {
        Self { source, chunk: Vec::new(), symbols: Symbols::default(), known, complete: 0..0, in_kernel: true }
    }

    /// Name of the function that contains an address; `None` if the address is before the first function.
    pub fn name(&mut self, address: u64) -> Option<&str> {
        if self.known.name(address).is_none() {
            while !self.is_read(address) {
                self.read_more();
            }
            self.remember(address);
        }
        self.known.name(address).or_else(|| self.symbols.name(address))
    }

    /// Remembers the function of the kernel itself that contains an address.
    fn remember(&mut self, address: u64) {
        if let (Some((start, end)), Some(name)) = (self.symbols.range(address), self.symbols.name(address))
            && self.complete.contains(&start)
            && end <= self.complete.end
        {
            self.known.add(start, end, name);
        }
    }

    /// True if nothing that is still unread can contain this address. Modules can be below the kernel.
    fn is_read(&self, address: u64) -> bool {
        self.source.is_none() || self.complete.contains(&address)
    }

    /// Address of the kernel's first instruction; 0 if it is hidden.
    pub fn code_start(&mut self) -> u64 {
        self.address(CODE_START).unwrap_or(0)
    }

    /// Addresses of the callbacks of the timers that end waits; `None` if they are hidden.
    pub fn timers(&mut self) -> TimerCallbacks {
        TimerCallbacks { sleep: self.address(SLEEP_TIMER), fd: self.address(FD_TIMER) }
    }

    /// First address of the function of this name.
    fn address(&mut self, name: &str) -> Option<u64> {
        if let Some(address) = self.known.address(name) {
            return Some(address);
        }
        while self.source.is_some() && self.symbols.address(name).is_none() {
            self.read_more();
        }
        let address = self.symbols.address(name)?;
        self.remember(address);
        Some(address)
    }

    /// Reads and parses the next lines.
    fn read_more(&mut self) {
        let Some(source) = &mut self.source else { return };
        let length = match source.take(CHUNK_BYTES).read_to_end(&mut self.chunk) {
            Ok(1..) => self.chunk.iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1),
            Ok(0) | Err(_) => {
                self.source = None;
                self.chunk.len()
            }
        };
        let lines = &self.chunk[..length];
        self.symbols.add(lines);
        // The lines of modules end with the module's name.
        self.in_kernel &= !lines.contains(&b'\t');
        self.chunk.drain(..length);
        if let ([(first, _), .., (last, _)], true) = (&self.symbols.functions[..], self.in_kernel) {
            self.complete = *first..*last;
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
             ffffffff82000000 D some_data\nnonsense\n",
        );
        assert_eq!(symbols.code_start(), 0xffff_ffff_8100_0000);
        assert_eq!(symbols.name(0xffff_ffff_8100_0200), Some("first"));
        assert_eq!(symbols.name(0xffff_ffff_8100_03ff), Some("first"));
        assert_eq!(symbols.name(0xffff_ffff_8300_0000), Some("second"));
        assert_eq!(symbols.name(0xffff), None);
    }

    #[test]
    fn damaged_lines_are_skipped_and_the_next_ones_read() {
        let text = "\n \nffffffff81000000\nffffffff81000010 t\nffffffff81000020 t \n\
                    ffffffffffffffff81000030 t long\n81000040 w last_but_one\t[m]\n81000050 T last";
        let symbols = Symbols::parse(text);
        assert_eq!((symbols.name(0x8100_0030), symbols.name(0x8100_004f)), (None, Some("last_but_one")));
        assert_eq!(symbols.name(u64::MAX), Some("last"));
    }

    #[test]
    fn ignores_hidden_addresses() {
        let symbols = Symbols::parse("0000000000000000 T _stext\n0000000000000000 T first\n");
        assert_eq!((symbols.name(0), symbols.name(u64::MAX), symbols.code_start()), (None, None, 0));
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
        let whole = Symbols::parse(&text);
        let mut symbols = KernelSymbols::new(Some(text.as_bytes()), Known::default());
        assert_eq!(symbols.name(0x8000_0101), Some("function16"));
        let read = symbols.symbols.functions.len();
        assert!(read as u64 <= CHUNK_BYTES / 16 && symbols.source.is_some() && !symbols.chunk.is_empty());
        assert_eq!(symbols.name(0x8000_0011), Some("function1"));
        assert_eq!(symbols.symbols.functions.len(), read);
        for address in [0x8004_0000, 0x8000_0000, 0x9000_0001, 0x7000_0000, 0xa000_0000, 0x6000_0000, 0x8009_c3ff] {
            assert_eq!(symbols.name(address), whole.name(address), "{address:x}");
        }
        assert!(symbols.source.is_none());
        let mut modules_first = KernelSymbols::new(Some(text.as_bytes()), Known::default());
        assert_eq!(modules_first.name(0x7000_0004), Some("low"), "not yet read at first");
    }

    #[test]
    fn finds_single_symbols_in_later_chunks() {
        let text =
            kernel().replace("function30000\n", "hrtimer_wakeup\n").replace("function31000\n", "timerfd_tmrproc\n");
        let mut symbols = KernelSymbols::new(Some(text.as_bytes()), Known::default());
        let callbacks = TimerCallbacks { sleep: Some(0x8000_0000 + 30_000 * 16), fd: Some(0x8000_0000 + 31_000 * 16) };
        assert_eq!(symbols.timers(), callbacks);
        assert!(symbols.source.is_some());
        assert_eq!(symbols.timers(), callbacks, "found again");
        assert_eq!(symbols.code_start(), 0);
        assert!(symbols.source.is_none());
        let mut none = KernelSymbols::<&[u8]>::new(None, Known::default());
        assert_eq!(none.timers(), TimerCallbacks::default());
        assert_eq!(none.name(7), None);
    }

    #[test]
    fn remembers_functions_of_the_kernel_but_not_of_modules() {
        let text = kernel().replace("function30000\n", "hrtimer_wakeup\n");
        let mut symbols = KernelSymbols::new(Some(text.as_bytes()), Known::default());
        assert_eq!(symbols.timers().sleep, Some(0x8000_0000 + 30_000 * 16));
        let asked = [0x8000_0101, 0x9000_0001, 0x7000_0000, 0x8000_0000 + 39_999 * 16 + 1];
        let names = asked.map(|address| symbols.name(address).map(str::to_owned));
        let mut later = KernelSymbols { known: symbols.known, ..KernelSymbols::<&[u8]>::new(None, Known::default()) };
        assert_eq!(later.name(0x8000_010f), names[0].as_deref());
        assert_eq!(later.name(0x8000_0110), None, "the next function was not asked for");
        assert_eq!(later.timers().sleep, Some(0x8000_0000 + 30_000 * 16));
        // The last function of the kernel may be longer than its last line shows.
        for address in &asked[1..] {
            assert_eq!(later.name(*address), None, "{address:x}");
        }
    }

    #[test]
    fn removes_quotes_from_strings() {
        let strings = strings("0xffff800011 : \"Rescheduling interrupts\"\nnonsense\n");
        assert_eq!(strings.get(&0xff_ff80_0011).map(String::as_str), Some("Rescheduling interrupts"));
    }
}
