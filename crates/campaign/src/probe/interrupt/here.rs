//! Checks the devices of an interrupt probe, and the CPU for its interrupts, on a machine.

use machine::{Root, online_cpus};

use super::{InterruptProbe, SourceError, SourceName, source::HPET};

impl InterruptProbe {
    /// The devices and CPUs of this probe that are missing on the machine below `root`; each with its key in a campaign file.
    /// A recorded machine has no devices, so only its CPUs count.
    pub(crate) fn problems(&self, root: &Root) -> Vec<(&'static str, SourceError)> {
        let lines = [("drive", self.drive.as_ref()), ("answer", self.judged.as_ref().map(|judged| &judged.answer))];
        let lines = lines.into_iter().filter_map(|(key, line)| Some((key, format!("/dev/{}", line?.chip))));
        let devices = [("source", self.source.device())].into_iter().chain(lines);
        let is_missing = |path: &str| root.is_system() && !root.path(path).exists();
        let missing = devices.filter(|(_, path)| is_missing(path)).map(|(key, path)| {
            let text = format!(
                "this machine has no {path}: write one of the sources that `punctual measure interrupt --list` shows into \
                 the file; `punctual campaigns NAME > FILE` copies that of a built-in campaign"
            );
            (key, SourceError::new(text))
        });
        missing.chain(self.check_irq_cpu(root).err().map(|error| ("irq_cpu", error))).collect()
    }

    /// # Errors
    /// The CPU for the interrupts of the source is not online.
    pub(crate) fn check_irq_cpu(&self, root: &Root) -> Result<(), SourceError> {
        let online = online_cpus(root);
        match self.irq_cpu {
            Some(cpu) if !online.is_empty() && !online.contains(cpu) => Err(SourceError::new(format!(
                "interrupts cannot be served by CPU {cpu}, which is not online: choose one of {}",
                online.in_words()
            ))),
            _ => Ok(()),
        }
    }
}

impl SourceName {
    /// The file of the device.
    fn device(&self) -> String {
        match self {
            Self::Hpet => HPET.to_owned(),
            Self::Gpio(line) => format!("/dev/{}", line.chip),
            Self::Evdev(name) => format!("/dev/input/{name}"),
            Self::Counter(event) => format!("/dev/{}", event.device),
            Self::Ptp(input) => format!("/dev/{}", input.clock),
            Self::Iio(device) => format!("/dev/{}", device.device),
            Self::Uio(device) => format!("/dev/{}", device.device),
            Self::Serial(wired) => format!("/dev/{}", wired.port),
            Self::Pps(name) | Self::Parport(name) | Self::Rtc(name) => format!("/dev/{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_or_cpu_that_is_missing_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        std::fs::create_dir_all(root.path("sys/devices/system/cpu")).unwrap();
        std::fs::write(root.path("sys/devices/system/cpu/online"), "0-1\n").unwrap();
        let probe = |irq_cpu| InterruptProbe { irq_cpu: Some(irq_cpu), ..InterruptProbe::default() };
        assert_eq!(probe(1).problems(&root), [], "a recorded machine has no devices");
        let problems = probe(2).problems(&root);
        assert!(problems[0].0 == "irq_cpu" && problems[0].1.to_string().contains("CPUs 0-1"), "{problems:?}");
        // No machine has so many devices.
        for source in
            ["gpio:999/1", "pps:999", "evdev:999", "rtc:999", "uio:999", "serial:ttyS999", "iio:999", "parport:999"]
        {
            let probe = InterruptProbe {
                source: source.parse().unwrap(),
                drive: "998/1".parse().ok().filter(|_| source.starts_with("gpio")),
                ..InterruptProbe::default()
            };
            let problems = probe.problems(&Root::system());
            assert_eq!(problems[0].0, "source");
            assert!(problems[0].1.to_string().starts_with("this machine has no /dev/"), "{problems:?}");
            assert_eq!(problems.len(), if source.starts_with("gpio") { 2 } else { 1 });
        }
    }
}
