//! Values of an interface that are set for a run, and put back afterwards, also after a crash.

use std::{
    io, thread,
    time::{Duration, Instant},
};

use record::Setting;
use sys::link::Links;
use thiserror::Error;

use super::{Knob, NicSettings, knob::Value};
use crate::{
    Root,
    hands::Hands,
    journal::{Journal, Purpose, Undo},
    netns,
};

/// Many NICs let the line go when they are set anew; agreeing on a speed takes seconds.
const PATIENCE: Duration = Duration::from_secs(15);

/// Why an interface was not set as asked.
#[derive(Debug, Error)]
pub enum NicHoldError {
    /// This process lacks the right.
    #[error("no right to set {knob} of {interface}: run as root")]
    Forbidden {
        /// The interface.
        interface: String,
        /// The value.
        knob: &'static str,
    },
    /// The driver does not know it.
    #[error("the driver of {interface} has no {knob} that could be set: leave it out")]
    NotSupported {
        /// The interface.
        interface: String,
        /// The value.
        knob: &'static str,
    },
    /// The kernel answered with another error.
    #[error(
        "cannot set {knob} of {interface} to {value} ({source}): `punctual check nic {interface}` tells what it allows"
    )]
    Failed {
        /// The interface.
        interface: String,
        /// What was to be set.
        knob: &'static str,
        /// To what.
        value: String,
        /// What the kernel answered.
        source: io::Error,
    },
}

/// Values held until released or dropped; the journal puts them back after SIGKILL.
#[derive(Debug)]
pub struct NicHold {
    hands: Box<dyn Hands>,
    journal: Journal,
    interface: String,
    held: Vec<Held>,
}

#[derive(Debug)]
struct Held {
    knob: Knob,
    before: Value,
    during: Value,
}

impl NicHold {
    /// Sets what is asked for on an interface of the calling thread's network namespace, and waits until the line is back
    /// where that has let it go.
    ///
    /// # Errors
    /// [`NicHoldError`]; nothing stays changed then.
    pub fn take(root: &Root, interface: &str, settings: &NicSettings) -> Result<Self, NicHoldError> {
        let hold = Self::take_with(Box::new(root.clone()), interface, settings)?;
        hold.wait();
        Ok(hold)
    }

    fn take_with(hands: Box<dyn Hands>, interface: &str, settings: &NicSettings) -> Result<Self, NicHoldError> {
        let refused = |knob: Knob, value: Value, source: io::Error| {
            let (interface, knob) = (interface.to_owned(), knob.name());
            match source.kind() {
                io::ErrorKind::PermissionDenied => NicHoldError::Forbidden { interface, knob },
                io::ErrorKind::Unsupported => NicHoldError::NotSupported { interface, knob },
                _ => NicHoldError::Failed { interface, knob, value: value.to_string(), source },
            }
        };
        let read = |&(knob, during): &(Knob, Value)| {
            let before = hands.nic_value(interface, knob).map_err(|error| refused(knob, during, error))?;
            Ok(Held { knob, before, during })
        };
        let held = settings.0.iter().map(read).collect::<Result<Vec<Held>, NicHoldError>>()?;
        let first = settings.0.first().copied().unwrap_or((Knob::RxUsecs, Value::Number(0)));
        let no_journal = |error| refused(first.0, first.1, io::Error::other(error));
        let mut journal = Journal::begin(hands.root(), Purpose::Nic).map_err(no_journal)?;
        let namespace = netns::here(hands.root());
        let undo = |held: &Held| Undo::Nic {
            namespace: namespace.clone(),
            interface: interface.to_owned(),
            knob: held.knob,
            before: held.before,
            during: held.during,
        };
        journal.promise(held.iter().map(undo)).map_err(no_journal)?;
        // From here on, dropping it restores.
        let hold = Self { hands, journal, interface: interface.to_owned(), held };
        for held in hold.held.iter().filter(|held| held.before != held.during) {
            hold.set(held).map_err(|error| refused(held.knob, held.during, error))?;
        }
        Ok(hold)
    }

    fn set(&self, &Held { knob, before, during: value }: &Held) -> io::Result<()> {
        self.hands.set_nic_value(&self.interface, knob, value)?;
        let taken = self.hands.nic_value(&self.interface, knob)?;
        if taken == value {
            return Ok(());
        }
        // The journal would take a value that it does not know for someone else's.
        let _ = self.hands.set_nic_value(&self.interface, knob, before);
        Err(io::Error::other(format!("the driver made {taken} of it")))
    }

    /// Waits for the line. One that does not come back is what the measurement will tell.
    fn wait(&self) {
        let since = Instant::now();
        let is_back = || match Links::open().and_then(|mut links| links.find(&self.interface)) {
            Ok(link) => !link.is_up || link.is_operational,
            Err(_) => true,
        };
        while !is_back() && since.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Puts everything back, and tells what was set, read back afterwards.
    #[must_use]
    pub fn release(self) -> Vec<Setting> {
        let _ = self.journal.put_back(&*self.hands);
        let setting = |held: &Held| Setting {
            name: format!("{} {}", self.interface, held.knob.name()),
            before: held.before.to_string(),
            during: held.during.to_string(),
            after: self.hands.nic_value(&self.interface, held.knob).ok().map(|value| value.to_string()),
        };
        self.held.iter().map(setting).collect()
    }
}

impl Drop for NicHold {
    fn drop(&mut self) {
        let _ = self.journal.put_back(&*self.hands);
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, rc::Rc};

    use super::*;
    use crate::journal;

    /// A machine with one NIC, whose driver has three values and makes 3 of any delay below that.
    #[derive(Debug)]
    struct Fake {
        _folder: tempfile::TempDir,
        root: Root,
        values: RefCell<Vec<(Knob, Value)>>,
        /// Every change, in its order.
        log: RefCell<Vec<(Knob, Value)>>,
    }

    impl Fake {
        fn new() -> Rc<Self> {
            let folder = tempfile::tempdir().unwrap();
            let root = Root::at(folder.path());
            let values = vec![
                (Knob::RxUsecs, Value::Number(50)),
                (Knob::AdaptiveRx, Value::Switch(true)),
                (Knob::Eee, Value::Switch(true)),
            ];
            Rc::new(Self { _folder: folder, root, values: RefCell::new(values), log: RefCell::default() })
        }

        fn told(&self) -> Vec<String> {
            self.values.borrow().iter().map(|(knob, value)| format!("{} {value}", knob.name())).collect()
        }
    }

    impl Hands for Rc<Fake> {
        fn root(&self) -> &Root {
            &self.root
        }

        fn nic_value(&self, interface: &str, knob: Knob) -> io::Result<Value> {
            if interface != "eth0" {
                return Err(io::ErrorKind::NotFound.into());
            }
            let values = self.values.borrow();
            let value = values.iter().find(|(known, _)| *known == knob).map(|(_, value)| *value);
            value.ok_or_else(|| io::ErrorKind::Unsupported.into())
        }

        fn set_nic_value(&self, interface: &str, knob: Knob, value: Value) -> io::Result<()> {
            self.nic_value(interface, knob)?;
            let value = if (knob, value) == (Knob::RxUsecs, Value::Number(1)) { Value::Number(3) } else { value };
            self.log.borrow_mut().push((knob, value));
            self.values.borrow_mut().iter_mut().filter(|(known, _)| *known == knob).for_each(|(_, old)| *old = value);
            Ok(())
        }
    }

    const AS_FOUND: [&str; 3] = ["rx-usecs 50", "adaptive-rx on", "eee on"];

    fn take(fake: &Rc<Fake>, settings: &str) -> Result<NicHold, NicHoldError> {
        NicHold::take_with(Box::new(Rc::clone(fake)), "eth0", &settings.parse().unwrap())
    }

    #[test]
    fn what_is_set_is_put_back_the_last_first() {
        let fake = Fake::new();
        let hold = take(&fake, "adaptive=off,coalesce=0,eee=on").unwrap();
        assert_eq!(fake.told(), ["rx-usecs 0", "adaptive-rx off", "eee on"]);
        let settings = hold.release();
        assert_eq!(fake.told(), AS_FOUND);
        let knobs: Vec<Knob> = fake.log.borrow().iter().map(|(knob, _)| *knob).collect();
        assert_eq!(knobs, [Knob::AdaptiveRx, Knob::RxUsecs, Knob::RxUsecs, Knob::AdaptiveRx], "EEE was as asked for");
        let told =
            |s: &Setting| [s.name.clone(), s.before.clone(), s.during.clone(), s.after.clone().unwrap()].join(" ");
        assert_eq!(
            settings.iter().map(told).collect::<Vec<_>>(),
            ["eth0 adaptive-rx on off on", "eth0 rx-usecs 50 0 50", "eth0 eee on on on"]
        );
    }

    #[test]
    fn after_a_crash_the_journal_puts_back_what_nobody_changed_since() {
        let fake = Fake::new();
        std::mem::forget(take(&fake, "coalesce=0,eee=off").unwrap());
        fake.set_nic_value("eth0", Knob::RxUsecs, Value::Number(7)).unwrap();
        let restored = journal::restore_with(&fake);
        assert_eq!((restored.len(), restored[0].purpose, restored[0].put_back.settings), (1, Purpose::Nic, 1));
        assert_eq!(restored[0].put_back.changed_since, ["eth0 rx-usecs: 7"], "someone else's since");
        assert_eq!(fake.told(), ["rx-usecs 7", "adaptive-rx on", "eee on"]);
        assert!(journal::restore_with(&fake).is_empty());
    }

    #[test]
    fn what_was_set_in_another_network_namespace_is_put_back_there_alone() {
        let fake = Fake::new();
        let be_in = |file: &str, name: &str| {
            let path = fake.root.path(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let _ = std::fs::remove_file(&path);
            std::os::unix::fs::symlink(name, path).unwrap();
        };
        be_in("proc/thread-self/ns/net", "net:[7]");
        std::mem::forget(take(&fake, "eee=off").unwrap());
        be_in("proc/thread-self/ns/net", "net:[1]");
        be_in("proc/1/ns/net", "net:[1]");
        be_in("proc/30/ns/net", "net:[7]");
        let told = journal::restore_with(&fake).remove(0).put_back;
        assert_eq!(told.settings, 0);
        assert!(told.failed[0].contains("sudo nsenter --net=/proc/30/ns/net punctual restore"), "{:?}", told.failed);
        assert_eq!(fake.told()[2], "eee off", "an interface of the same name");

        be_in("proc/thread-self/ns/net", "net:[7]");
        assert_eq!(journal::restore_with(&fake)[0].put_back.settings, 1);
        assert_eq!(fake.told(), AS_FOUND);

        std::mem::forget(take(&fake, "eee=off").unwrap());
        be_in("proc/thread-self/ns/net", "net:[1]");
        std::fs::remove_file(fake.root.path("proc/30/ns/net")).unwrap();
        let told = journal::restore_with(&fake).remove(0).put_back;
        assert_eq!(told.changed_since, ["eth0 eee: its network namespace is gone"]);
        assert!(journal::restore_with(&fake).is_empty());
    }

    #[test]
    fn a_card_that_was_made_to_stamp_is_put_back_after_a_crash() {
        let fake = Fake::new();
        *fake.values.borrow_mut() = vec![(Knob::TxType, Value::Number(0)), (Knob::RxFilter, Value::Number(12))];
        let hold = NicHold::take_with(Box::new(Rc::clone(&fake)), "eth0", &NicSettings::stamps()).unwrap();
        assert_eq!(fake.told(), ["tx-type 1", "rx-filter 1"]);
        std::mem::forget(hold);
        assert_eq!(journal::restore_with(&fake)[0].put_back.settings, 2);
        assert_eq!(fake.told(), ["tx-type 0", "rx-filter 12"]);
    }

    #[test]
    fn what_is_refused_leaves_nothing_changed() {
        let fake = Fake::new();
        let refused = |settings| take(&fake, settings).unwrap_err().to_string();
        assert_eq!(refused("eee=off,gro=off"), "the driver of eth0 has no gro that could be set: leave it out");
        let words = refused("eee=off,coalesce=1");
        assert!(words.starts_with("cannot set rx-usecs of eth0 to 1 (the driver made 3 of it)"), "{words}");
        assert_eq!(fake.told(), AS_FOUND);
        assert!(journal::restore_with(&fake).is_empty());
    }
}

/// Tests that need root.
#[cfg(test)]
mod rights {
    use super::*;
    use crate::{
        ends::Ends,
        nic::{Answers, NoStamps, can_stamp},
    };

    #[test]
    fn the_kernel_takes_values_and_gives_them_back() {
        let ends = Ends::make().unwrap();
        ends.near
            .namespace
            .run(|| {
                let now = || Knob::Tso.read("near").unwrap();
                let settings: NicSettings = "tso=off,gro=on".parse().unwrap();
                assert_eq!(now(), Value::Switch(true));
                let hold = NicHold::take(&Root::system(), "near", &settings).unwrap();
                assert_eq!((now(), Knob::Gro.read("near").unwrap()), (Value::Switch(false), Value::Switch(true)));
                let settings = hold.release();
                assert_eq!(settings[0].after.as_deref(), Some("on"));
                assert_eq!((now(), Knob::Gro.read("near").unwrap()), (Value::Switch(true), Value::Switch(false)));
                let refused = NicHold::take(&Root::system(), "near", &"eee=off".parse().unwrap()).unwrap_err();
                assert!(matches!(refused, NicHoldError::NotSupported { .. }), "{refused}");
                let stamps = NicHold::take(&Root::system(), "near", &NicSettings::stamps()).unwrap_err();
                assert!(matches!(stamps, NicHoldError::NotSupported { .. }), "{stamps}");
                let none = can_stamp(&mut Answers::of(&Root::system()), "near").unwrap_err();
                assert!(matches!(none, NoStamps::NotInHardware { .. }), "{none}");
                assert_eq!(Knob::Tso.read("other").unwrap_err().kind(), io::ErrorKind::NotFound);
            })
            .unwrap();
    }
}
