//! The kernel functions that earlier runs of this boot looked up. Without them, each run would read most of
//! `/proc/kallsyms`, which the kernel takes 30 to 60 ms to write.

use std::{collections::BTreeMap, fmt::Write, path::PathBuf};

use machine::{Root, journal};
use record::file::{read_regular, write_atomic};

/// The file, in the folder of journals.
const FILE: &str = "kernel-functions";
/// The largest file that is read, bytes.
const BYTES_MAX: u64 = 4 << 20;

/// Functions of the kernel itself. Those of modules are not kept, because another module can take their addresses.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// `None` if the functions are not kept.
    file: Option<PathBuf>,
    /// The kernel has other addresses after each boot.
    boot_id: String,
    /// By the first address.
    functions: BTreeMap<u64, Function>,
    /// True if the file does not have all functions.
    changed: bool,
}

#[derive(Debug, PartialEq)]
struct Function {
    /// The first address behind the function.
    end: u64,
    name: String,
}

impl Known {
    /// The functions that earlier runs kept.
    pub fn of_this_boot(root: &Root) -> Self {
        let boot_id = journal::boot_id(root).unwrap_or_default();
        let folder = journal::private_folder(root).ok().filter(|_| !boot_id.is_empty());
        let Some(file) = folder.map(|folder| folder.join(FILE)) else { return Self::default() };
        let bytes = read_regular(&file, BYTES_MAX).unwrap_or_default();
        let functions = parse(&String::from_utf8_lossy(&bytes), &boot_id);
        Self { file: Some(file), boot_id, functions, changed: false }
    }

    /// Name of the function that contains an address.
    pub fn name(&self, address: u64) -> Option<&str> {
        let (_, function) = self.functions.range(..=address).next_back()?;
        (address < function.end).then_some(&function.name)
    }

    /// The first address of a function.
    pub fn address(&self, name: &str) -> Option<u64> {
        self.functions.iter().find(|(_, function)| function.name == name).map(|(&start, _)| start)
    }

    pub fn add(&mut self, start: u64, end: u64, name: &str) {
        self.changed |= self.functions.insert(start, Function { end, name: name.to_owned() }).is_none();
    }

    /// Keeps the functions for later runs.
    pub fn save(&mut self) {
        let Some(file) = self.file.as_ref().filter(|_| self.changed) else { return };
        let mut text = format!("{}\n", self.boot_id);
        for (start, Function { end, name }) in &self.functions {
            let _ = writeln!(text, "{start:x} {end:x} {name}");
        }
        // Without the file, later runs only take longer.
        let _ = write_atomic(file, text.as_bytes());
        self.changed = false;
    }
}

/// Parses the id of the boot, then lines `first-address end name`; no functions if it is another boot.
fn parse(text: &str, boot_id: &str) -> BTreeMap<u64, Function> {
    let function = |line: &str| {
        let mut words = line.split(' ');
        let mut address = || u64::from_str_radix(words.next()?, 16).ok();
        let (start, end) = (address()?, address()?);
        Some((start, Function { end, name: words.next()?.to_owned() }))
    };
    match text.split_once('\n') {
        Some((id, lines)) if id == boot_id => lines.lines().filter_map(function).collect(),
        _ => BTreeMap::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn functions_are_kept_until_the_next_boot() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let boot = |id: &str| {
            let file = folder.path().join("proc/sys/kernel/random/boot_id");
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, format!("{id}\n")).unwrap();
        };
        boot("first");
        let mut known = Known::of_this_boot(&root);
        assert_eq!(known.name(0x8100), None);
        known.add(0x8100, 0x8180, "hrtimer_wakeup");
        known.add(0x8200, 0x8210, "tick_nohz_handler");
        known.save();
        let later = Known::of_this_boot(&root);
        let names = [0x80ff, 0x8100, 0x817f, 0x8180, 0x820f].map(|address| later.name(address));
        assert_eq!(names, [None, Some("hrtimer_wakeup"), Some("hrtimer_wakeup"), None, Some("tick_nohz_handler")]);
        assert_eq!((later.address("tick_nohz_handler"), later.address("tick")), (Some(0x8200), None));
        boot("second");
        assert_eq!(Known::of_this_boot(&root).name(0x8100), None);
    }

    #[test]
    fn a_damaged_file_has_no_functions() {
        for text in ["", "id", "other\n1 2 f", "id\n1 2", "id\n1\n\n x y z\n1 g f", "\0\n"] {
            assert!(parse(text, "id").is_empty(), "{text:?}");
        }
    }
}
