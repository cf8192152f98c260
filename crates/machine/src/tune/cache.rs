//! A share of the cache for CPUs for real-time work: a group of the kernel's resctrl file system that only they use, whose
//! cache ways no other CPU fills.

use std::{collections::BTreeMap, io};

use record::PutBack;
use serde::{Deserialize, Serialize};

use super::{Context, Refusal, Target, WhyNot, Write};
use crate::{CpuList, Root, system_ops::SystemOps};

/// The root of the file system. Its files are those of the group of all other CPUs.
const MOUNT: &str = "sys/fs/resctrl";
/// The group that is made.
const GROUP: &str = "sys/fs/resctrl/punctual";
/// Everything that is written.
pub(super) const FILES: &[&str] = &[
    "sys/fs/resctrl/schemata",
    "sys/fs/resctrl/punctual",
    "sys/fs/resctrl/punctual/cpus_list",
    "sys/fs/resctrl/punctual/schemata",
];
/// The value without a group.
const NONE: &str = "none";
/// The caches that can be divided, the best first: the last level is the one that other CPUs fill.
const RESOURCES: [&str; 2] = ["L3", "L2"];

/// The masks of cache ways by cache, as in a line of a `schemata` file: `0=ff;1=f0`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
struct Ways(BTreeMap<u32, u64>);

impl From<Ways> for String {
    fn from(ways: Ways) -> Self {
        ways.in_words()
    }
}

impl TryFrom<String> for Ways {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        Self::of_line(&text).ok_or("not masks of cache ways")
    }
}

impl Ways {
    /// The masks of a resource in the text of a `schemata` file.
    fn of(text: &str, resource: &str) -> Option<Self> {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(resource)?.strip_prefix(':'));
        line.and_then(Self::of_line)
    }

    fn of_line(line: &str) -> Option<Self> {
        let mask = |part: &str| {
            let (cache, mask) = part.split_once('=')?;
            Some((cache.trim().parse().ok()?, u64::from_str_radix(mask.trim(), 16).ok()?))
        };
        line.split(';').map(mask).collect::<Option<_>>().map(Self)
    }

    fn read(root: &Root, group: &str, resource: &str) -> Option<Self> {
        Self::of(&root.read(&format!("{group}/schemata"))?, resource)
    }

    fn in_words(&self) -> String {
        self.0.iter().map(|(cache, mask)| format!("{cache}={mask:x}")).collect::<Vec<_>>().join(";")
    }

    fn write(&self, ops: &dyn SystemOps, group: &str, resource: &str) -> io::Result<()> {
        ops.write(&format!("{group}/schemata"), &format!("{resource}:{}\n", self.in_words()))
    }
}

/// A share of a cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// `L3` or `L2`.
    resource: String,
    /// The CPUs that get the share.
    cpus: CpuList,
    /// Their ways.
    own: Ways,
    /// The ways of all other CPUs.
    rest: Ways,
    /// The ways of all CPUs before.
    whole: Ways,
}

/// The wanted share, `percent` of each cache that the CPUs for real-time work use.
pub(super) fn find(context: &Context<'_>, percent: u32) -> Result<Vec<Write>, WhyNot> {
    let root = context.root;
    let here = |reason: &str| WhyNot::Here(reason.to_owned());
    let Some(schemata) = root.read(&format!("{MOUNT}/schemata")) else {
        return Err(here(match root.exists(MOUNT) {
            true => {
                "the caches cannot be seen: `sudo mount -t resctrl resctrl /sys/fs/resctrl`, if the CPU can reserve cache"
            }
            false => "the kernel or the CPU cannot reserve cache: see `punctual check --explain cpu.resctrl`",
        }));
    };
    let found = RESOURCES.iter().find_map(|resource| Some((*resource, Ways::of(&schemata, resource)?)));
    let Some((resource, now)) = found else {
        return Err(here(match schemata.contains("CODE:") {
            true => "code and data have caches of their own (CDP): mount resctrl without it",
            false => "the CPU can reserve memory bandwidth only",
        }));
    };
    let others: Vec<String> = root.list(MOUNT).into_iter().filter(|name| is_foreign_group(root, name)).collect();
    if !others.is_empty() {
        return Err(WhyNot::Here(format!("the cache is divided already: see /{MOUNT}/{}", others.join(", "))));
    }
    let info = |name: &str| root.read(&format!("{MOUNT}/info/{resource}/{name}"));
    let mask = |name: &str| info(name).and_then(|text| u64::from_str_radix(&text, 16).ok());
    let (Some(all), Some(least)) = (mask("cbm_mask"), info("min_cbm_bits").and_then(|text| text.parse::<u32>().ok()))
    else {
        return Err(WhyNot::Here(format!("/{MOUNT}/info/{resource} is not readable")));
    };
    let Some(own) = own_ways(all, least, mask("shareable_bits").unwrap_or(0), percent) else {
        return Err(here("the cache has too few ways to divide"));
    };
    let caches: Vec<u32> = context.freed.iter().filter_map(|cpu| cache_of(root, cpu, resource)).collect();
    if caches.len() < context.freed.iter().count() || !caches.iter().all(|cache| now.0.contains_key(cache)) {
        return Err(WhyNot::Here(format!("the {resource} cache of a CPU for real-time work is not known")));
    }
    let divided = |own: u64| Ways(now.0.keys().map(|id| (*id, if caches.contains(id) { own } else { all })).collect());
    let share = Share {
        resource: resource.to_owned(),
        cpus: context.freed.clone(),
        own: divided(own),
        rest: divided(all & !own),
        whole: divided(all),
    };
    let (from, to) = (share.value(root), share.in_words());
    if from != NONE && from != to {
        return Err(here("there is another share: `sudo punctual tune --revert` removes it, if it is ours"));
    }
    Ok(vec![Write { target: Target::Cache(share), from, to, refusal: Refusal::Failure }])
}

/// True for a folder of the file system that is another group, or one below which there can be groups of monitors.
fn is_foreign_group(root: &Root, name: &str) -> bool {
    format!("{MOUNT}/{name}") != GROUP && root.exists(&format!("{MOUNT}/{name}/schemata"))
}

/// The cache of a CPU, by the number that a `schemata` file uses.
fn cache_of(root: &Root, cpu: u32, resource: &str) -> Option<u32> {
    let folder = format!("sys/devices/system/cpu/cpu{cpu}/cache");
    let level = resource.strip_prefix('L')?;
    let is_it = |name: &&String| root.read(&format!("{folder}/{name}/level")).as_deref() == Some(level);
    let name = root.list(&folder).into_iter().find(|name| is_it(&name))?;
    root.number(&format!("{folder}/{name}/id"))
}

/// Adjacent ways, `percent` of `all`. Both sides get at least `least`. The side without ways that devices fill
/// (`shared`) is preferred. `None` if there are too few.
fn own_ways(all: u64, least: u32, shared: u64, percent: u32) -> Option<u64> {
    let (count, least) = (all.count_ones(), least.max(1));
    let most = count.checked_sub(least).filter(|most| *most >= least)?;
    let ways = (count * percent / 100).clamp(least, most);
    let low = ((1u64 << ways) - 1) << all.trailing_zeros();
    let high = low << (count - ways);
    let devices = |side: u64| (side & shared).count_ones();
    Some(if devices(high) < devices(low) { high } else { low })
}

impl Share {
    /// The value if the share is in force.
    pub(super) fn in_words(&self) -> String {
        format!("{} {} for {}", self.resource, self.own.in_words(), self.cpus.in_words())
    }

    /// The present value.
    pub(crate) fn value(&self, root: &Root) -> String {
        let default = Ways::read(root, MOUNT, &self.resource);
        let words = |ways: &Option<Ways>| ways.as_ref().map_or_else(|| "unknown".to_owned(), Ways::in_words);
        if !root.exists(GROUP) {
            return if default.as_ref() == Some(&self.whole) { NONE.to_owned() } else { words(&default) };
        }
        let own = Ways::read(root, GROUP, &self.resource);
        let cpus = group_cpus(root);
        let is_ours = own.as_ref() == Some(&self.own) && default.as_ref() == Some(&self.rest);
        if is_ours && cpus.as_ref() == Some(&self.cpus) {
            return self.in_words();
        }
        format!("{} for {}, {}", words(&own), cpus.unwrap_or_default().in_words(), words(&default))
    }

    /// Makes the group. The other CPUs lose its ways.
    pub(super) fn take(&self, ops: &dyn SystemOps) -> io::Result<()> {
        ops.make_group(GROUP)?;
        ops.write(&format!("{GROUP}/cpus_list"), &format!("{}\n", self.cpus))?;
        self.own.write(ops, GROUP, &self.resource)?;
        self.rest.write(ops, MOUNT, &self.resource)
    }

    /// Removes the group, and returns its ways, unless others have changed them since.
    pub(crate) fn put_back(&self, ops: &dyn SystemOps, result: &mut PutBack) {
        let root = ops.root();
        let mut done = |changed: io::Result<()>, path: &str| match changed {
            Ok(()) => result.settings += 1,
            Err(error) => result.failed.push(format!("/{path}: {error}")),
        };
        match Ways::read(root, MOUNT, &self.resource) {
            Some(now) if now == self.rest => done(self.whole.write(ops, MOUNT, &self.resource), MOUNT),
            Some(now) if now == self.whole => {}
            Some(now) => result.changed_since.push(format!("/{MOUNT}/schemata: {}", now.in_words())),
            // Unmounted: the kernel has removed all groups.
            None => return,
        }
        match group_cpus(root) {
            Some(cpus) if cpus != self.cpus && !cpus.is_empty() => {
                result.changed_since.push(format!("/{GROUP}/cpus_list: {cpus}"));
            }
            // A crash can have left it without CPUs.
            _ if root.exists(GROUP) => {
                if let Err(error) = ops.remove_group(GROUP) {
                    result.failed.push(format!("/{GROUP}: {error}"));
                }
            }
            _ => {}
        }
    }

    /// True if it names a cache: a journal cannot make punctual write anything else.
    pub(crate) fn is_ours(&self) -> bool {
        RESOURCES.contains(&&*self.resource)
    }
}

/// The CPUs of the group; `None` if they cannot be read.
fn group_cpus(root: &Root) -> Option<CpuList> {
    let text = root.read(&format!("{GROUP}/cpus_list"))?;
    if text.is_empty() { Some(CpuList::new()) } else { text.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_masks_of_a_resource() {
        let text = "    MB:0=100;1=100\n    L3:0=7ff;1=0f0\n  L3CODE:0=1";
        assert_eq!(Ways::of(text, "L3").unwrap().in_words(), "0=7ff;1=f0");
        assert_eq!(Ways::of(text, "L2"), None);
        assert_eq!(Ways::of("L3:0=xyz", "L3"), None);
        assert_eq!(Ways::of("L3:", "L3"), None);
    }

    #[test]
    fn both_sides_get_adjacent_ways() {
        for (all, least, shared, percent, own) in [
            (0x7ff, 1, 0, 50, Some(0x1f)),
            // Devices fill the lowest ways.
            (0x7ff, 1, 0x3, 50, Some(0x7c0)),
            (0x7ff, 1, 0x600, 50, Some(0x1f)),
            (0xf, 2, 0, 1, Some(0x3)),
            (0xf, 2, 0, 99, Some(0x3)),
            (0x7, 2, 0, 50, None),
            (0x1, 1, 0, 50, None),
            (0, 1, 0, 50, None),
        ] {
            assert_eq!(own_ways(all, least, shared, percent), own, "{all:x} {least} {shared:x} {percent}");
        }
    }
}
