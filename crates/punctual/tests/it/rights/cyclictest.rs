//! Beside cyclictest: where it is right both agree, and where it is not a test shows it.

use std::{collections::BTreeMap, process::Command};

use crate::harness::{Scratch, alone, last_cpu};

/// Median lateness by cyclictest, us, from its histogram.
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
    // A row holds the values from its number up to the next.
    let median = rows.iter().find(|(_, count)| {
        seen += **count;
        seen * 2 >= total
    });
    median.map(|(us, _)| *us as f64 + 0.5).expect("a median")
}

/// The middle one.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
fn medians_agree_with_cyclictest() {
    let _alone = alone();
    let cpu = last_cpu();
    let mut ours_us = Vec::new();
    let mut theirs_us = Vec::new();
    for _ in 0..5 {
        // cyclictest holds the CPUs awake unless told otherwise, so punctual does here.
        let scratch = Scratch::new();
        let options = format!(
            "measure timer --quiet --record a --cpus {cpu} --policy fifo:90 --period 1ms --samples 1500 --hold-cpu-awake"
        );
        scratch.run(&options).expect_status(0);
        ours_us.push(scratch.record().series[0].raw.percentile(50.0).unwrap() as f64 / 1e3);
        theirs_us.push(cyclictest_median_us(cpu));
    }
    let (ours_us, theirs_us) = (median(ours_us), median(theirs_us));
    let (low, high) = (theirs_us * 0.6 - 2.0, theirs_us * 1.5 + 2.0);
    assert!((low..high).contains(&ours_us), "punctual {ours_us} us, cyclictest {theirs_us} us");
}
