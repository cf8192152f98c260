//! The steps of a calibration by the kernel, which the driver writes to the kernel log.

use std::{
    fs::{File, OpenOptions},
    io::{Read, Seek, SeekFrom},
    os::unix::fs::OpenOptionsExt,
};

use machine::Root;
use rustix::fs::OFlags;

use super::Step;

/// The largest record of `/dev/kmsg`, bytes.
const RECORD_BYTES: usize = 8192;
/// Records that are read at most, so that a kernel that writes without end does not hold the reader.
const RECORDS_MAX: usize = 10_000;

/// The kernel log from now on; without the right to read it, or without a log, it has no steps.
pub(super) struct KernelLog(Option<File>);

impl KernelLog {
    pub fn at_end(root: &Root) -> Self {
        let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
        let file = OpenOptions::new().read(true).custom_flags(flags).open(root.path("dev/kmsg"));
        Self(file.ok().and_then(|mut file| file.seek(SeekFrom::End(0)).is_ok().then_some(file)))
    }

    /// The steps since the log was opened, the smallest gravity first.
    pub fn steps(&mut self) -> Vec<Step> {
        let Some(file) = &mut self.0 else { return Vec::new() };
        let mut text = String::new();
        let mut record = vec![0; RECORD_BYTES];
        for _ in 0..RECORDS_MAX {
            // The end is EAGAIN. EPIPE means that records were overwritten; the next read goes on after them.
            match file.read(&mut record) {
                Ok(0) => break,
                Ok(length) => {
                    text += &String::from_utf8_lossy(&record[..length]);
                    text.push('\n');
                }
                Err(error) if error.raw_os_error() == Some(rustix::io::Errno::PIPE.raw_os_error()) => {}
                Err(_) => break,
            }
        }
        steps_in(&text)
    }
}

/// The steps in the text of a log. The driver writes the full list once, and then parts of it as it narrows its choice, so
/// each gravity is taken once.
fn steps_in(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for step in text.lines().filter_map(step_in) {
        if !steps.iter().any(|known| known.gravity_ns == step.gravity_ns) {
            steps.push(step);
        }
    }
    steps.sort_by_key(|step| step.gravity_ns);
    steps
}

/// The step in a line such as `EVL: .. S03 pmean=812 stddev=95 minlat=603 gravity=1500`.
fn step_in(line: &str) -> Option<Step> {
    let (_, rest) = line.split_once(".. S")?;
    let value = |name: &str| rest.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let min_ns = value("minlat")?.parse().ok()?;
    let mean_ns = value("pmean")?.parse().ok()?;
    let gravity_ns = value("gravity")?.parse().ok()?;
    // The driver takes 0.5 s for each step, but does not say how many wake-ups it counted.
    Some(Step { gravity_ns, samples: None, early: None, min_ns, mean_ns, max_ns: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_each_step_once_in_the_order_of_the_gravity() {
        let log = "6,900,1,-;EVL: latmus(kthread) calibration scores\n\
             6,901,2,-;EVL: .. S00 pmean=1800 stddev=120 minlat=1400 gravity=0\n\
             6,902,3,-;EVL: .. S01 pmean=1310 stddev=110 minlat=890 gravity=500\n\
             6,903,4,-;usb 1-1: new device\n\
             6,904,5,-;EVL: .. S02 pmean=805 stddev=99 minlat=-20 gravity=1000\n\
             6,905,6,-;EVL: latmus(kthread) pondered mean filter\n\
             6,906,7,-;EVL: .. S02 pmean=805 stddev=99 minlat=-20 gravity=1000\n\
             6,907,8,-;EVL: .. S01 pmean=1310 stddev=110 minlat=890 gravity=500\n";
        let steps = steps_in(log);
        let figures: Vec<(u64, f64, i64)> =
            steps.iter().map(|step| (step.gravity_ns, step.mean_ns, step.min_ns)).collect();
        assert_eq!(figures, [(0, 1800.0, 1400), (500, 1310.0, 890), (1000, 805.0, -20)]);
        assert_eq!(steps_in("6,1,1,-;EVL: .. S00 pmean=x minlat=1 gravity=0\n.. S"), []);
    }

    #[test]
    fn a_machine_without_a_log_has_no_steps() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(KernelLog::at_end(&Root::at(folder.path())).steps(), []);
    }
}
