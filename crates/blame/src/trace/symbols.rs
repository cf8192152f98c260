//! Names of kernel functions and strings, by address.

use std::{collections::HashMap, fs, ops::Range, sync::OnceLock};

/// The kernel's functions, from `/proc/kallsyms`.
#[derive(Debug, Clone, Default)]
pub struct Symbols {
    text: String,
    /// Address of each function and the range of its name in the text; sorted by address.
    functions: Vec<(u64, Range<u32>)>,
}

impl Symbols {
    /// The functions of the running kernel; empty if addresses are hidden from this process. The first call reads them,
    /// which takes 30 to 60 ms on a PC and seconds on a slow CPU.
    pub fn of_this_kernel() -> &'static Self {
        static READ: OnceLock<Symbols> = OnceLock::new();
        READ.get_or_init(|| Self::parse(fs::read_to_string("/proc/kallsyms").unwrap_or_default()))
    }

    /// Parses lines `address type name [module]`. Skips hidden addresses, which are 0.
    #[must_use]
    pub fn parse(text: String) -> Self {
        /// Length of an average line of the kernel's file, bytes.
        const LINE_BYTES: usize = 44;
        let mut functions = Vec::with_capacity(text.len() / LINE_BYTES);
        let (bytes, mut at) = (text.as_bytes(), 0);
        while at < bytes.len() {
            let (line, name) = scan_line(&bytes[at..]);
            if let Some((address, name)) = name
                && let (Ok(start), Ok(end)) = (u32::try_from(at + name.start), u32::try_from(at + name.end))
            {
                functions.push((address, start..end));
            }
            at += line;
        }
        // The kernel lists its own functions in this order, and those of modules behind them.
        functions.sort_by_key(|&(address, _)| address);
        Self { text, functions }
    }

    /// Name of the function that contains an address; `None` if the address is before the first function.
    #[must_use]
    pub fn name(&self, address: u64) -> Option<&str> {
        let behind = self.functions.partition_point(|&(start, _)| start <= address);
        let (_, name) = self.functions.get(behind.checked_sub(1)?)?;
        self.text.get(name.start as usize..name.end as usize)
    }

    /// Address of the kernel's first instruction; 0 if it is hidden.
    #[must_use]
    pub fn code_start(&self) -> u64 {
        code_start(&self.text)
    }

    /// Address of the callback that ends a sleep; `None` if it is hidden.
    #[must_use]
    pub fn sleep_timer(&self) -> Option<u64> {
        sleep_timer(&self.text)
    }

    /// The parsed text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
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

/// Address of the callback of the timer that ends a sleep (`hrtimer_wakeup`), from the text of `/proc/kallsyms`; `None`
/// if it is hidden.
#[must_use]
pub fn sleep_timer(kallsyms: &str) -> Option<u64> {
    address_before(kallsyms, " hrtimer_wakeup\n").filter(|&address| address != 0)
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
        let symbols = Symbols::parse(text.to_owned());
        assert_eq!((symbols.name(0x8100_0030), symbols.name(0x8100_004f)), (None, Some("last_but_one")));
        assert_eq!(symbols.name(u64::MAX), Some("last"));
    }

    #[test]
    fn ignores_hidden_addresses() {
        let symbols = Symbols::parse("0000000000000000 T _stext\n0000000000000000 T first\n".to_owned());
        assert_eq!((symbols.name(0), symbols.name(u64::MAX), symbols.code_start()), (None, None, 0));
    }

    #[test]
    fn removes_quotes_from_strings() {
        let strings = strings("0xffff800011 : \"Rescheduling interrupts\"\nnonsense\n");
        assert_eq!(strings.get(&0xff_ff80_0011).map(String::as_str), Some("Rescheduling interrupts"));
    }
}
