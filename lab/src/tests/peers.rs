//! Compares results with those of other tools in the same guest.

use std::fs;

use anyhow::{Context, Result, ensure};

use crate::inside::{expect, measure, median, read, run, write};

/// Agrees with the median of cyclictest within 20 % plus 3 us.
pub fn cyclictest_agrees() -> Result<()> {
    // cyclictest keeps the CPUs awake by default, so punctual does the same.
    let record = measure(0, "with-cyclictest", "--cpus 0 --samples 3000 --hold-cpu-awake --blame=off")?;
    let our_us = record.series[0].raw.percentile(50.0).context("no samples")? as f64 / 1e3;
    let output = expect(0, &run("cyclictest -q -m -t1 -p90 -i1000 -l3000 -h1000 -a0")?)?;
    let their_us = histogram_median(&output).with_context(|| format!("no histogram in {output}"))?;
    let tolerance_us = their_us * 0.2 + 3.0;
    ensure!((our_us - their_us).abs() <= tolerance_us, "median: punctual {our_us} us, cyclictest {their_us} us");
    Ok(())
}

/// The median of a histogram with lines `us count`. A bucket covers one microsecond.
fn histogram_median(text: &str) -> Option<f64> {
    let rows: Vec<(u64, u64)> = text
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
        })
        .collect();
    let total: u64 = rows.iter().map(|(_, count)| count).sum();
    let mut seen = 0;
    let middle = rows.iter().find(|(_, count)| {
        seen += count;
        seen * 2 >= total
    })?;
    Some(middle.0 as f64 + 0.5)
}

const TRACING: &str = "/sys/kernel/tracing";

/// Agrees with the kernel's timerlat tracer, which has a shorter path but traces meanwhile: median within 30 % plus 3
/// us, maximum within a factor of three.
pub fn timerlat_agrees() -> Result<()> {
    let theirs = timerlat()?;
    let record = measure(0, "with-timerlat", "--cpus 0 --samples 3000 --policy fifo:95 --blame=off")?;
    let series = &record.series[0];
    let ours_ns = series.raw.percentile(50.0).context("no samples")?;
    let theirs_ns = median(&theirs);
    let tolerance_ns = theirs_ns * 3 / 10 + 3_000;
    ensure!((ours_ns - theirs_ns).abs() <= tolerance_ns, "median: punctual {ours_ns} ns, timerlat {theirs_ns} ns");
    let (ours_ns, theirs_ns) = (series.max_ns.unwrap_or(0), theirs.iter().copied().max().unwrap_or(0));
    let close = |a: i64, b: i64| a <= 3 * b + 10_000;
    ensure!(
        close(ours_ns, theirs_ns) && close(theirs_ns, ours_ns),
        "max: punctual {ours_ns} ns, timerlat {theirs_ns} ns"
    );
    Ok(())
}

/// The thread latencies that timerlat reported in three seconds, ns.
fn timerlat() -> Result<Vec<i64>> {
    let file = |name: &str| format!("{TRACING}/{name}");
    ensure!(read(&file("available_tracers"))?.contains("timerlat"), "this kernel has no timerlat tracer");
    write(&file("osnoise/timerlat_period_us"), "1000")?;
    write(&file("buffer_size_kb"), "4096")?;
    write(&file("current_tracer"), "timerlat")?;
    std::thread::sleep(std::time::Duration::from_secs(3));
    write(&file("tracing_on"), "0")?;
    let trace = fs::read_to_string(file("trace"));
    write(&file("current_tracer"), "nop")?;
    write(&file("tracing_on"), "1")?;
    // Example line: `... #3012 context thread timer_latency 11672 ns`.
    let latency =
        |line: &str| line.split_once("context thread timer_latency")?.1.split_whitespace().next()?.parse().ok();
    let latencies: Vec<i64> = trace?.lines().filter_map(latency).collect();
    ensure!(latencies.len() > 2_000, "timerlat reported only {} wake-ups", latencies.len());
    Ok(latencies)
}

#[cfg(test)]
mod tests {
    #[test]
    fn median_is_the_middle_of_its_bucket() {
        let output =
            "# /dev/cpu_dma_latency set to 0us\n000012 000010\n000013 000020\n000014 000005\n# Total: 000000035\n";
        assert_eq!(super::histogram_median(output), Some(13.5));
        assert_eq!(super::histogram_median("# nothing"), None);
    }
}
