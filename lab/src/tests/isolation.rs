//! CPUs that are set apart, at boot or by a cpuset partition, are recognised and measured.

use std::{fs, process};

use anyhow::{Result, ensure};

use super::kernel::{finding, machine};
use crate::inside::{expect, measure, punctual, read, write};

fn measured(record: &record::Record) -> Vec<Option<u32>> {
    record.series.iter().map(|series| series.cpu).collect()
}

/// `isolcpus`, `nohz_full`: seen in the facts and the findings, and measured without being asked for.
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

/// A group of this process, with CPU 1 for itself; left and removed when dropped.
struct Partition;

impl Partition {
    fn make() -> Result<Self> {
        write("/sys/fs/cgroup/cgroup.subtree_control", "+cpuset")?;
        fs::create_dir(GROUP)?;
        let partition = Self;
        write(&format!("{GROUP}/cpuset.cpus"), "1")?;
        write(&format!("{GROUP}/cpuset.cpus.partition"), "isolated")?;
        let state = read(&format!("{GROUP}/cpuset.cpus.partition"))?;
        ensure!(state == "isolated", "the kernel made it `{state}`");
        Ok(partition)
    }
}

impl Drop for Partition {
    fn drop(&mut self) {
        let _ = fs::write("/sys/fs/cgroup/cgroup.procs", process::id().to_string());
        let _ = fs::remove_dir(GROUP);
    }
}

/// A cpuset partition: its CPU counts as isolated, and is measured by who is in the group and by nobody else.
pub fn by_partition() -> Result<()> {
    ensure!(machine()?["machine"]["cpus_isolated"] == "", "something is isolated before");
    let _partition = Partition::make()?;
    let seen = machine()?;
    ensure!(seen["machine"]["cpus_isolated"] == "1", "isolated: {}", seen["machine"]["cpus_isolated"]);
    ensure!(finding(&seen, "cpu.isolated")?["state"] == "ok", "{}", finding(&seen, "cpu.isolated")?);

    let outside = measure(0, "outside", "--samples 50")?;
    ensure!(measured(&outside) == [Some(0)], "from outside: {:?}", measured(&outside));
    let refused = punctual("measure timer --cpus 1 --samples 50 --no-record")?;
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    ensure!(refused.status.code() == Some(1) && said.contains("CPU 1 is outside the control group"), "{said}");

    write(&format!("{GROUP}/cgroup.procs"), &process::id().to_string())?;
    let inside = measure(0, "inside", "--samples 50")?;
    ensure!(measured(&inside) == [Some(1)], "from inside: {:?}", measured(&inside));
    let refused = punctual("measure timer --cpus 0 --samples 50 --no-record")?;
    let said = expect(1, &refused).map(|_| String::from_utf8_lossy(&refused.stderr).into_owned())?;
    ensure!(said.contains("the control group /realtime, which allows 1"), "{said}");
    Ok(())
}
