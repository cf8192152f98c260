//! A copy of what the checks read of a machine, without what identifies it or its user.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Root, facts, findings};

/// The parts of a machine that the checks read, by path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snapshot {
    /// Files with their contents.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Symbolic links with their targets.
    pub links: BTreeMap<String, String>,
    /// Folders without any of these files.
    pub folders: BTreeSet<String>,
}

impl Snapshot {
    /// Runs all checks, and copies what they read. `names` are words to remove beside the host's name, such as that of
    /// the user.
    #[must_use]
    pub fn of(root: &Root, names: &[String]) -> Self {
        let root = root.at_once();
        let machine = facts(&root);
        let _ = findings(&root, &machine, None);
        let seen = root.seen();
        let host = machine.hostname.iter().map(|host| (host.as_str(), "host"));
        let names: Vec<(&str, &str)> = host.chain(names.iter().map(|name| (name.as_str(), "user"))).collect();
        let clean = |bytes: Vec<u8>| match String::from_utf8(bytes) {
            Ok(text) => anonymous(&text, &names).into_bytes(),
            Err(binary) => binary.into_bytes(),
        };
        let files: BTreeMap<String, Vec<u8>> =
            seen.files.into_iter().filter_map(|(path, read)| Some((path, clean(read.ok()?)))).collect();
        let named = seen.folders.into_iter().flat_map(|(folder, names)| {
            let of_folder: Vec<String> = names.iter().map(|name| format!("{folder}/{name}")).collect();
            of_folder.into_iter().chain([folder])
        });
        // Handlers of interrupts and devices are folders. A process that ended meanwhile is none.
        let folders =
            named.chain(seen.existing).filter(|path| !files.contains_key(path) && !seen.links.contains_key(path));
        let folders = folders.filter(|path| root.path(path).is_dir()).collect();
        Self { files, links: seen.links, folders }
    }
}

/// The text without the names, hardware addresses, serial numbers and other identifiers.
fn anonymous(text: &str, names: &[(&str, &str)]) -> String {
    let lines: Vec<String> = text.split('\n').map(|line| of_line(line, names)).collect();
    lines.join("\n")
}

fn of_line(line: &str, names: &[(&str, &str)]) -> String {
    // `Serial : 10000000abcdef` of a Raspberry Pi.
    if let Some((key, _)) = line.split_once(':').filter(|(key, _)| key.trim().eq_ignore_ascii_case("serial")) {
        return format!("{key}: 0");
    }
    let mut out = String::new();
    let mut rest = line;
    // Words keep the colons, dashes and dots of addresses and identifiers.
    while let Some(at) = rest.find(|c: char| is_of_word(c)) {
        let (before, from) = rest.split_at(at);
        let end = from.find(|c: char| !is_of_word(c)).unwrap_or(from.len());
        let (word, after) = from.split_at(end);
        out += before;
        let is_serial = out.trim_end_matches('=').to_ascii_lowercase().ends_with("serial") && out.ends_with('=');
        out += &if is_serial { "0".to_owned() } else { of_word(word, out.ends_with("/home/"), names) };
        rest = after;
    }
    out + rest
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, ':' | '-' | '_' | '.')
}

fn of_word(word: &str, is_home: bool, names: &[(&str, &str)]) -> String {
    if is_home {
        return "user".to_owned();
    }
    if let Some((_, instead)) = names.iter().find(|(name, _)| *name == word) {
        return (*instead).to_owned();
    }
    if identifies(word) { word.replace(|c: char| c.is_ascii_hexdigit(), "0") } else { word.to_owned() }
}

/// True for a hardware address, a UUID or a machine id.
fn identifies(word: &str) -> bool {
    let are_hex = |parts: &[&str], lengths: &[usize]| {
        parts.len() == lengths.len()
            && parts
                .iter()
                .zip(lengths)
                .all(|(part, len)| part.len() == *len && part.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    let by = |separator: char| word.split(separator).collect::<Vec<_>>();
    are_hex(&by(':'), &[2; 6]) || are_hex(&by('-'), &[8, 4, 4, 4, 12]) || are_hex(&[word], &[32])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_identifies_remains() {
        let names = [("studio", "host"), ("alice", "user")];
        for (text, expected) in [
            ("root=UUID=5b8a5f0e-95d7-4a5f-a3f5-0f6d1d0b2b11 ro", "root=UUID=00000000-0000-0000-0000-000000000000 ro"),
            ("smsc95xx.macaddr=DC:A6:32:01:02:03 quiet", "smsc95xx.macaddr=00:00:00:00:00:00 quiet"),
            ("bcm2709.serial=0x1234abcd x", "bcm2709.serial=0 x"),
            ("Serial\t\t: 10000000abcdef12", "Serial\t\t: 0"),
            (
                "systemd.machine_id=0123456789abcdef0123456789abcdef",
                "systemd.machine_id=00000000000000000000000000000000",
            ),
            ("studio\n", "host\n"),
            ("/home/bob/x /srv/alice", "/home/user/x /srv/user"),
            ("(alice@studio) #1 SMP", "(user@host) #1 SMP"),
            ("12:30 alices studios", "12:30 alices studios"),
            ("31: 200 1000 BRCM-PCIe 524288 Edge xhci_hcd", "31: 200 1000 BRCM-PCIe 524288 Edge xhci_hcd"),
        ] {
            assert_eq!(anonymous(text, &names), expected);
        }
    }
}
