//! CPUs isolated at boot or by a cpuset partition are detected and measured.

use std::{fs, process};

use anyhow::{Result, ensure};

use super::kernel::{finding, machine};
use crate::inside::{expect, measure, punctual, read, write};

fn measured(record: &record::Record) -> Vec<Option<u32>> {
    record.series.iter().map(|series| series.cpu).collect()
}

/// `isolcpus` and `nohz_full` appear in facts and findings, and the CPU is measured by default.
pub fn at_boot() -> Result<()> {
    let machine = machine()?;
    let facts = &machine["machine"];
    ensure!(facts["cpus_isolated"] == "1" && facts["cpus_nohz_full"] == "1", "{facts}");
    ensure!(finding(&machine, "cpu.isolated")?["state"] == "ok", "{}", finding(&machine, "cpu.isolated")?);
    let record = measure(0, "isolated", "--duration 1s")?;
    ensure!(measured(&record) == [Some(0), Some(1)], "measured {:?}", measured(&record));
    ensure!(record.series[1].granted.cpus == "1" && record.series[1].samples > 100, "{:?}", record.series[1].granted);
    Ok(())
}

const GROUP: &str = "/sys/fs/cgroup/realtime";

/// A cgroup of this process with CPU 1 as isolated partition; left and removed on drop.
struct Partition;

impl Partition {
    fn make() -> Result<Self> {
        write("/sys/fs/cgroup/cgroup.subtree_control", "+cpuset")?;
        fs::create_dir(GROUP)?;
        let partition = Self;
        write(&format!("{GROUP}/cpuset.cpus"), "1")?;
        write(&format!("{GROUP}/cpuset.cpus.partition"), "isolated")?;
        let state = read(&format!("{GROUP}/cpuset.cpus.partition"))?;
        ensure!(state == "isolated", "the partition state is `{state}`");
        Ok(partition)
    }
}

impl Drop for Partition {
    fn drop(&mut self) {
        let _ = fs::write("/sys/fs/cgroup/cgroup.procs", process::id().to_string());
        let _ = fs::remove_dir(GROUP);
    }
}

/// The CPU of a cpuset partition counts as isolated. It is measured by members of the cgroup and by no others.
pub fn by_partition() -> Result<()> {
    ensure!(machine()?["machine"]["cpus_isolated"] == "", "a CPU is isolated already");
    let _partition = Partition::make()?;
    let seen = machine()?;
    ensure!(seen["machine"]["cpus_isolated"] == "1", "isolated: {}", seen["machine"]["cpus_isolated"]);
    ensure!(finding(&seen, "cpu.isolated")?["state"] == "ok", "{}", finding(&seen, "cpu.isolated")?);

    let outside = measure(0, "outside", "--samples 50")?;
    ensure!(measured(&outside) == [Some(0)], "from outside: {:?}", measured(&outside));
    let refused = punctual("measure timer --cpus 1 --samples 50 --no-record")?;
    let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
    ensure!(refused.status.code() == Some(1) && stderr.contains("CPU 1 is outside the control group"), "{stderr}");

    write(&format!("{GROUP}/cgroup.procs"), &process::id().to_string())?;
    let inside = measure(0, "inside", "--samples 50")?;
    ensure!(measured(&inside) == [Some(1)], "from inside: {:?}", measured(&inside));
    let refused = punctual("measure timer --cpus 0 --samples 50 --no-record")?;
    let stderr = expect(1, &refused).map(|_| String::from_utf8_lossy(&refused.stderr).into_owned())?;
    ensure!(stderr.contains("the control group /realtime, which allows 1"), "{stderr}");
    Ok(())
}
