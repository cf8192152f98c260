use std::cell::RefCell;

use super::*;
use crate::journal;

/// A machine with one device and two triggers.
#[derive(Debug)]
struct Fake {
    _folder: tempfile::TempDir,
    root: Root,
    log: RefCell<Vec<String>>,
}

const AT: &str = "sys/bus/iio/devices/iio:device0";

impl Fake {
    fn new() -> Rc<Self> {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        let fake = Rc::new(Self { _folder: folder, root, log: RefCell::default() });
        for (file, text) in [
            ("name", "converter"),
            ("current_timestamp_clock", "realtime"),
            ("trigger/current_trigger", ""),
            ("buffer/enable", "0"),
            ("buffer/length", "2"),
            ("buffer/watermark", "2"),
            ("scan_elements/in_timestamp_en", "0"),
            ("scan_elements/in_timestamp_index", "2"),
            ("scan_elements/in_timestamp_type", "le:s64/64>>0"),
            ("scan_elements/in_voltage0_en", "0"),
            ("scan_elements/in_voltage0_index", "0"),
            ("scan_elements/in_voltage0_type", "le:s12/16>>0"),
            ("../trigger0/name", "timer"),
            ("../trigger1/name", "converter-dev0"),
        ] {
            let path = fake.root.path(&format!("{AT}/{file}"));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, format!("{text}\n")).unwrap();
        }
        fake
    }

    fn set(&self, file: &str, text: &str) {
        std::fs::write(self.root.path(&format!("{AT}/{file}")), text).unwrap();
    }

    fn values(&self) -> Vec<String> {
        let files = [
            "trigger/current_trigger",
            "current_timestamp_clock",
            "scan_elements/in_timestamp_en",
            "scan_elements/in_voltage0_en",
            "buffer/length",
            "buffer/watermark",
            "buffer/enable",
        ];
        files.into_iter().filter_map(|file| self.root.read(&format!("{AT}/{file}"))).collect()
    }
}

impl SystemOps for Fake {
    fn root(&self) -> &Root {
        &self.root
    }

    fn write(&self, path: &str, text: &str) -> io::Result<()> {
        let file = path.strip_prefix(AT).unwrap().trim_start_matches('/');
        if file == "buffer/enable"
            && text == "1"
            && self.root.read(&format!("{AT}/trigger/current_trigger")).unwrap().is_empty()
        {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.log.borrow_mut().push(format!("{file} {}", text.trim()));
        self.set(file, text);
        Ok(())
    }
}

const INITIAL: [&str; 7] = ["", "realtime", "0", "0", "2", "2", "0"];

fn take(fake: &Rc<Fake>, trigger: Option<&str>) -> Result<SamplesHold, SamplesError> {
    take_device(fake, "iio:device0", trigger)
}

fn take_device(fake: &Rc<Fake>, device: &str, trigger: Option<&str>) -> Result<SamplesHold, SamplesError> {
    let ops: Rc<dyn SystemOps> = Rc::<Fake>::clone(fake);
    SamplesHold::take_with(&ops, device, trigger)
}

#[test]
fn settings_are_put_back_in_reverse_order() {
    let fake = Fake::new();
    let hold = take(&fake, Some("timer")).unwrap();
    assert_eq!(fake.values(), ["timer", "monotonic", "1", "1", "128", "1", "1"]);
    let settings = hold.release();
    assert_eq!(fake.values(), INITIAL);
    assert_eq!(settings.len(), 7);
    assert_eq!(settings[1].after.as_deref(), Some("realtime"));
    let log = fake.log.borrow();
    assert_eq!(
        log[7..],
        [
            "buffer/enable 0",
            "buffer/watermark 2",
            "buffer/length 2",
            "scan_elements/in_voltage0_en 0",
            "scan_elements/in_timestamp_en 0",
            "current_timestamp_clock realtime",
            "trigger/current_trigger ",
        ]
    );
}

#[test]
fn the_journal_puts_settings_back_after_a_crash() {
    let fake = Fake::new();
    fake.set("trigger/current_trigger", "converter-dev0\n");
    std::mem::forget(take(&fake, None).unwrap());
    assert_eq!(fake.values(), ["converter-dev0", "monotonic", "1", "1", "128", "1", "1"]);
    let restored = journal::restore_with(&*fake).unwrap();
    assert_eq!((restored.len(), restored[0].purpose, restored[0].put_back.settings), (1, Purpose::Samples, 6));
    assert_eq!(fake.values(), ["converter-dev0", "realtime", "0", "0", "2", "2", "0"]);
}

#[test]
fn unusable_devices_are_left_alone() {
    let fake = Fake::new();
    let error = |trigger| take(&fake, trigger).map(drop).unwrap_err().to_string();
    assert_eq!(error(Some("clock")), "no trigger `clock`: this machine has converter-dev0, timer");
    assert!(error(None).contains("iio:device0 has no trigger: choose one with iio:N/TRIGGER"), "{}", error(None));
    assert_eq!(fake.values(), INITIAL);
    fake.set("buffer/enable", "1\n");
    assert!(error(Some("timer")).contains("iio:device0 is in use (its buffer is enabled)"));
    std::fs::remove_file(fake.root.path(&format!("{AT}/scan_elements/in_timestamp_en"))).unwrap();
    assert!(error(Some("timer")).contains("has no buffer whose samples have a time stamp"));
    let absent = take_device(&fake, "iio:device7", None).unwrap_err().to_string();
    assert_eq!(absent, "no iio:device7: this machine has no device with a buffer");
    assert!(journal::restore_with(&*fake).unwrap().is_empty());
}
