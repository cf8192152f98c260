//! Comparison with cyclictest.

use stalls::{Stall, repeat_if_stalled};
use std::{collections::BTreeMap, process::Command, time::Duration};

use crate::harness::{Scratch, alone, last_cpu};

/// The median lateness from the histogram of cyclictest, us.
fn cyclictest_median_us(cpu: u32) -> f64 {
    let output = Command::new("cyclictest")
        .args(["-q", "-m", "-t1", "-p90", "-i1000", "-l1500", "-h2000", &format!("-a{cpu}")])
        .output()
        .expect("cyclictest is missing: sudo apt-get install rt-tests");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let rows: BTreeMap<u64, u64> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            Some((line.split_whitespace().next()?.parse().ok()?, line.split_whitespace().nth(1)?.parse().ok()?))
        })
        .collect();
    let total: u64 = rows.values().sum();
    assert!(total > 1000, "{text}");
    let mut seen = 0;
    // A row counts the values from its number up to the next number.
    let median = rows.iter().find(|(_, count)| {
        seen += **count;
        seen * 2 >= total
    });
    median.map(|(us, _)| *us as f64 + 0.5).expect("a median")
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
fn medians_agree_with_cyclictest() {
    let _alone = alone();
    repeat_if_stalled(Stall::Realtime(Duration::from_micros(500)), compare_medians);
}

fn compare_medians() {
    let cpu = last_cpu();
    let mut punctual_us = Vec::new();
    let mut cyclictest_us = Vec::new();
    for _ in 0..5 {
        // cyclictest keeps the CPUs awake by default, so punctual does the same.
        let scratch = Scratch::new();
        let options = format!(
            "measure timer --quiet --record a --cpus {cpu} --policy fifo:90 --period 1ms --samples 1500 --hold-cpu-awake"
        );
        scratch.run(&options).expect_status(0);
        punctual_us.push(scratch.record().series[0].raw.percentile(50.0).unwrap() as f64 / 1e3);
        cyclictest_us.push(cyclictest_median_us(cpu));
    }
    let (punctual_us, cyclictest_us) = (median(punctual_us), median(cyclictest_us));
    let (low, high) = (cyclictest_us * 0.6 - 2.0, cyclictest_us * 1.5 + 2.0);
    assert!((low..high).contains(&punctual_us), "punctual {punctual_us} us, cyclictest {cyclictest_us} us");
}
