//! Streams through a buffer larger than every cache, so that whoever wakes up next finds none of its own data there.

use std::hint::black_box;

use machine::{CpuList, Root, topology::largest_cache_bytes};

use super::{Plan, memory::usable_bytes};
use crate::{LoadError, units::show_size};

/// Words of one block, 64 KiB.
const BLOCK: usize = (64 << 10) / size_of::<u64>();
/// Where the kernel does not know the caches, as on some ARM boards, whose caches are not larger than 16 MiB.
const UNKNOWN_CACHE: u64 = 16 << 20;

pub(super) fn plan(size: Option<u64>, cpus: &CpuList) -> Result<Plan, LoadError> {
    let root = Root::system();
    let threads = cpus.len() as u64;
    let usable = usable_bytes(&root);
    let cache = largest_cache_bytes(&root).unwrap_or(UNKNOWN_CACHE);
    let bytes = match size {
        Some(size) if size.saturating_mul(threads) > usable => {
            return Err(LoadError::Memory { load: "cache", needed: size.saturating_mul(threads), usable });
        }
        Some(size) => size,
        None => (2 * cache).min(usable / threads).max(64 << 10),
    };
    let mut plan = Plan::each_cpu("times 64 KiB streamed", cpus, move |meter| {
        let mut buffer = vec![0u64; bytes as usize / size_of::<u64>()];
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
        plan.note = Some(format!("{bytes} a thread do not fill the largest cache of {cache}"));
    }
    Ok(plan)
}

/// Writes the block on every other pass, and reads it on the passes between.
fn stream(block: &mut [u64], pass: u64) {
    if pass % 2 == 1 {
        block.fill(pass);
        black_box(block);
    } else {
        black_box(block.iter().fold(0u64, |sum, word| sum.wrapping_add(*word)));
    }
}
