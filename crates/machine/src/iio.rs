//! Industrial I/O devices with a buffer: `Documentation/ABI/testing/sysfs-bus-iio` of the kernel.

use crate::Root;

/// The folder of all devices and triggers.
const FOLDER: &str = "sys/bus/iio/devices";
/// The time stamp among the elements of a sample.
pub(crate) const STAMP: &str = "timestamp";

/// The folder of a device, `iio:device0`.
pub(crate) fn folder(device: &str) -> String {
    format!("{FOLDER}/{device}")
}

/// The devices whose samples can have a time stamp, with the names that their drivers gave them.
#[must_use]
pub fn devices(root: &Root) -> Vec<(String, String)> {
    let number = |name: &str| name.strip_prefix("iio:device")?.parse::<u32>().ok();
    let mut found: Vec<(u32, String)> =
        root.list(FOLDER).into_iter().filter_map(|name| Some((number(&name)?, name))).collect();
    found.sort_unstable();
    let has_stamp = |name: &String| root.exists(&format!("{}/scan_elements/in_{STAMP}_en", folder(name)));
    let named = |name: String| {
        let of_driver = root.read(&format!("{}/name", folder(&name))).unwrap_or_default();
        (name, of_driver)
    };
    found.into_iter().map(|(_, name)| name).filter(has_stamp).map(named).collect()
}

/// The names of all triggers.
#[must_use]
pub fn triggers(root: &Root) -> Vec<String> {
    let folders = root.list(FOLDER).into_iter().filter(|name| name.starts_with("trigger"));
    let mut names: Vec<String> = folders.filter_map(|name| root.read(&format!("{FOLDER}/{name}/name"))).collect();
    names.sort_unstable();
    names
}

/// An element of a sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Element {
    /// Its name: `voltage0`, `timestamp`.
    pub name: String,
    /// The order of elements in a sample.
    pub index: u32,
    /// Its length in a sample, bytes.
    pub bytes: usize,
    /// True if samples contain it.
    pub is_on: bool,
}

/// The elements of the samples of a device, in their order; `None` if one has an unknown type.
pub(crate) fn elements(root: &Root, device: &str) -> Option<Vec<Element>> {
    let folder = format!("{}/scan_elements", folder(device));
    let files = root.list(&folder);
    let names = files.iter().filter_map(|file| file.strip_prefix("in_")?.strip_suffix("_en"));
    let element = |name: &str| {
        Some(Element {
            name: name.to_owned(),
            index: root.number(&format!("{folder}/in_{name}_index"))?,
            bytes: stored_bytes(&root.read(&format!("{folder}/in_{name}_type"))?)?,
            is_on: root.read(&format!("{folder}/in_{name}_en"))? == "1",
        })
    };
    let mut all: Vec<Element> = names.map(element).collect::<Option<_>>()?;
    all.sort_by_key(|element| element.index);
    Some(all)
}

/// The length of a value of a type such as `le:s12/16>>4` or, for several values, `be:u16/16X3>>0`.
fn stored_bytes(kind: &str) -> Option<usize> {
    let (_, stored) = kind.split_once('/')?;
    let (stored, _) = stored.split_once(">>")?;
    let (bits, repeated) = stored.split_once('X').unwrap_or((stored, "1"));
    let (bits, repeated): (usize, usize) = (bits.parse().ok()?, repeated.parse().ok()?);
    let is_possible = bits > 0 && bits.is_multiple_of(8) && bits <= 256 && (1..=64).contains(&repeated);
    is_possible.then_some(bits / 8 * repeated)
}

/// The length of the samples of a device, and the offset of the time stamp in them, bytes. `None` if they have none, or an
/// element has an unknown type.
#[must_use]
pub fn layout(root: &Root, device: &str) -> Option<(usize, usize)> {
    let (mut at, mut largest, mut stamp_at) = (0_usize, 1, None);
    for element in elements(root, device)?.iter().filter(|element| element.is_on) {
        at = at.next_multiple_of(element.bytes);
        if element.name == STAMP {
            stamp_at = (element.bytes == 8).then_some(at);
        }
        at += element.bytes;
        largest = largest.max(element.bytes);
    }
    Some((at.next_multiple_of(largest), stamp_at?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_aligned_as_the_kernel_does() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let write = |path: &str, text: &str| {
            let path = root.path(&format!("{FOLDER}/{path}"));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let add = |name: &str, index: u32, kind: &str, on: &str| {
            let at = format!("iio:device2/scan_elements/in_{name}");
            write(&format!("{at}_index"), &index.to_string());
            write(&format!("{at}_type"), kind);
            write(&format!("{at}_en"), on);
        };
        write("iio:device10/name", "no buffer\n");
        write("iio:device2/name", "converter\n");
        write("trigger0/name", "converter-dev2\n");
        add("timestamp", 3, "le:s64/64>>0\n", "0\n");
        add("voltage0", 0, "le:s12/16>>4\n", "1\n");
        assert_eq!(layout(&root, "iio:device2"), None, "without the time stamp");
        add("timestamp", 3, "le:s64/64>>0\n", "1\n");
        assert_eq!(layout(&root, "iio:device2"), Some((16, 8)));
        add("voltage1", 1, "le:u24/32>>0\n", "1\n");
        add("accel", 2, "be:s16/16X3>>0\n", "0\n");
        assert_eq!(layout(&root, "iio:device2"), Some((16, 8)), "2 and 4 bytes");
        add("accel", 2, "be:s32/32X4>>0\n", "1\n");
        assert_eq!(layout(&root, "iio:device2"), Some((48, 32)));
        add("accel", 2, "be:s16/3>>0\n", "1\n");
        assert_eq!(layout(&root, "iio:device2"), None, "an unknown type");
        assert_eq!(devices(&root), [("iio:device2".to_owned(), "converter".to_owned())]);
        assert_eq!(triggers(&root), ["converter-dev2"]);
    }
}
