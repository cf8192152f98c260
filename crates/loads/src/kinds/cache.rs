//! Reads and writes a buffer larger than every cache, so that the next thread finds none of its data in the caches.

use std::hint::black_box;

use machine::{CpuList, Root, topology::largest_cache_bytes};

use super::{
    kind::{Kind, LoadKind, Plan},
    memory::{not_enough, usable_bytes},
};
use crate::{
    LoadError, SpecError,
    options::{Options, join, size},
    units::show_size,
};

/// Words of one block, 64 KiB.
const BLOCK: usize = (64 << 10) / size_of::<u64>();
/// Assumed size where the kernel does not know the caches, e.g. on some ARM boards; theirs have at most 16 MiB.
const UNKNOWN_CACHE: u64 = 16 << 20;

/// Reads and writes a buffer larger than the caches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cache {
    /// Bytes per thread.
    pub size: Option<u64>,
}

impl LoadKind for Cache {
    const KIND: Kind = Kind {
        name: "cache",
        description: "reads and writes that evict every cache level",
        options: &[("size=BYTES", "buffer of each thread, 64K to 64G (default: twice the largest cache)")],
    };

    fn parse(options: &str) -> Result<Self, SpecError> {
        let mut options = Options::new(Self::KIND.name, options);
        let load = Self { size: options.value("size", size(64 << 10..=64 << 30))? };
        options.finish(load)
    }

    fn options(&self) -> String {
        join([self.size.map(|size| format!("size={}", show_size(size)))])
    }

    fn plan(&self, cpus: &CpuList) -> Result<Plan, LoadError> {
        plan(self.size, cpus)
    }

    fn is_busy(&self) -> bool {
        true
    }

    #[cfg(test)]
    fn examples() -> Vec<(&'static str, Self)> {
        vec![("", Self { size: None }), ("size=64M", Self { size: Some(64 << 20) })]
    }

    #[cfg(test)]
    fn any() -> proptest::strategy::BoxedStrategy<Self> {
        use proptest::{option, prelude::*};

        option::of((64u64 << 10)..=(64 << 30)).prop_map(|size| Self { size }).boxed()
    }
}

fn plan(size: Option<u64>, cpus: &CpuList) -> Result<Plan, LoadError> {
    let root = Root::system();
    let threads = cpus.len() as u64;
    let usable = usable_bytes(&root);
    let cache = largest_cache_bytes(&root).unwrap_or(UNKNOWN_CACHE);
    let bytes = match size {
        Some(size) if size.saturating_mul(threads) > usable => {
            return Err(not_enough(Cache::KIND.name, size.saturating_mul(threads), usable));
        }
        Some(size) => size,
        None => (2 * cache).min(usable / threads).max(64 << 10),
    };
    let words = usize::try_from(bytes).unwrap_or(usize::MAX) / size_of::<u64>();
    let mut plan = Plan::each_cpu("blocks of 64 KiB read or written", cpus, move |meter| {
        let mut buffer = vec![0u64; words];
        let mut pass = 0u64;
        while meter.running() {
            pass += 1;
            for block in buffer.chunks_mut(BLOCK) {
                stream(block, pass);
                meter.add(1);
                if !meter.running() {
                    break;
                }
            }
        }
        Ok(())
    });
    if bytes.saturating_mul(threads) < cache {
        let (bytes, cache) = (show_size(bytes), show_size(cache));
        plan.note = Some(format!("{bytes} per thread do not fill the largest cache ({cache})"));
    }
    Ok(plan)
}

/// Writes the block on odd passes and reads it on even ones.
fn stream(block: &mut [u64], pass: u64) {
    if pass % 2 == 1 {
        block.fill(pass);
        black_box(block);
    } else {
        black_box(block.iter().fold(0u64, |sum, word| sum.wrapping_add(*word)));
    }
}
