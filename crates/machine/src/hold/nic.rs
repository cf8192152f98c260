//! Changes settings of an interface for a run, and undoes them afterwards, also after a crash.

use std::{io, rc::Rc, time::Duration};

use record::Setting;
use thiserror::Error;

use super::SettingsWatch;
use crate::{
    Root,
    journal::{Journal, JournalError, Purpose, Undo},
    netns,
    nic::{NicSettings, Parameter, Value, wait_for_link},
    system_ops::SystemOps,
};

/// Time limit for the link to come back: many NICs reset the link when a setting changes, and autonegotiation takes
/// seconds.
const LINK_TIMEOUT: Duration = Duration::from_secs(15);

/// Error: a setting could not be changed.
#[derive(Debug, Error)]
pub enum NicHoldError {
    /// This process lacks the right.
    #[error("no right to set {parameter} of {interface}: run as root")]
    Forbidden {
        /// The interface.
        interface: String,
        /// The setting.
        parameter: &'static str,
    },
    /// The driver does not support the setting.
    #[error("the driver of {interface} cannot change {parameter}: leave it out")]
    NotSupported {
        /// The interface.
        interface: String,
        /// The setting.
        parameter: &'static str,
    },
    /// The journal could not be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The kernel returned another error.
    #[error(
        "cannot set {parameter} of {interface} to {value} ({source}): `punctual check nic {interface}` shows its settings"
    )]
    Failed {
        /// The interface.
        interface: String,
        /// The setting.
        parameter: &'static str,
        /// The requested value.
        value: String,
        /// The kernel's error.
        source: io::Error,
    },
}

/// Changed settings, until released or dropped; after SIGKILL the journal undoes them.
#[derive(Debug)]
pub struct NicHold {
    journal: Journal,
    interface: String,
    held: Vec<Held>,
}

#[derive(Debug)]
struct Held {
    parameter: Parameter,
    before: Value,
    during: Value,
}

impl NicHold {
    /// Changes settings of an interface in the calling thread's network namespace, and waits for the link if the change
    /// reset it.
    ///
    /// # Errors
    /// [`NicHoldError`]; nothing stays changed then.
    pub fn take(root: &Root, interface: &str, settings: &NicSettings) -> Result<Self, NicHoldError> {
        let hold = Self::take_with(Rc::new(root.clone()), interface, settings)?;
        hold.wait_for_link();
        Ok(hold)
    }

    fn take_with(ops: Rc<dyn SystemOps>, interface: &str, settings: &NicSettings) -> Result<Self, NicHoldError> {
        let refused = |parameter: Parameter, value: Value, source: io::Error| {
            let (interface, parameter) = (interface.to_owned(), parameter.name());
            match source.kind() {
                io::ErrorKind::PermissionDenied => NicHoldError::Forbidden { interface, parameter },
                io::ErrorKind::Unsupported => NicHoldError::NotSupported { interface, parameter },
                _ => NicHoldError::Failed { interface, parameter, value: value.to_string(), source },
            }
        };
        let read = |&(parameter, during): &(Parameter, Value)| {
            let before = ops.nic_parameter(interface, parameter).map_err(|error| refused(parameter, during, error))?;
            Ok(Held { parameter, before, during })
        };
        let held = settings.iter().map(read).collect::<Result<Vec<Held>, NicHoldError>>()?;
        let mut journal = Journal::begin(ops, Purpose::Nic)?;
        let namespace = netns::current(journal.ops().root());
        let undo = |held: &Held| Undo::Nic {
            namespace: namespace.clone(),
            interface: interface.to_owned(),
            parameter: held.parameter,
            before: held.before,
            during: held.during,
        };
        journal.record(held.iter().map(undo))?;
        let hold = Self { journal, interface: interface.to_owned(), held };
        for held in hold.held.iter().filter(|held| held.before != held.during) {
            hold.set(held).map_err(|error| refused(held.parameter, held.during, error))?;
        }
        Ok(hold)
    }

    fn set(&self, &Held { parameter, before, during: value }: &Held) -> io::Result<()> {
        let ops = self.journal.ops();
        ops.set_nic_parameter(&self.interface, parameter, value)?;
        let taken = ops.nic_parameter(&self.interface, parameter)?;
        if taken == value {
            return Ok(());
        }
        // The journal would take a value that it did not record for a change by others.
        let _ = ops.set_nic_parameter(&self.interface, parameter, before);
        Err(io::Error::other(format!("the driver set {taken} instead")))
    }

    /// Waits for the link. If it stays down, the measurement will show it.
    fn wait_for_link(&self) {
        let _ = wait_for_link(&self.interface, LINK_TIMEOUT, |link| !link.is_up || link.is_operational);
    }

    /// Begins to watch for changes by others.
    #[must_use]
    pub fn watch(&self) -> SettingsWatch {
        SettingsWatch::start(&self.journal)
    }

    /// Undoes all changes. Returns each setting with its values before, during and after.
    #[must_use]
    pub fn release(mut self) -> Vec<Setting> {
        self.journal.restore();
        let setting = |held: &Held| Setting {
            name: format!("{} {}", self.interface, held.parameter.name()),
            before: held.before.to_string(),
            during: held.during.to_string(),
            after: self
                .journal
                .ops()
                .nic_parameter(&self.interface, held.parameter)
                .ok()
                .map(|value| value.to_string()),
        };
        self.held.iter().map(setting).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::journal;

    /// A machine with one NIC, whose driver has three settings and turns a delay of 1 into 3.
    #[derive(Debug)]
    struct Fake {
        _folder: tempfile::TempDir,
        root: Root,
        values: RefCell<Vec<(Parameter, Value)>>,
        /// Every change, in order.
        log: RefCell<Vec<(Parameter, Value)>>,
    }

    impl Fake {
        fn new() -> Rc<Self> {
            let folder = tempfile::tempdir().unwrap();
            let root = Root::at(folder.path());
            let values = vec![
                (Parameter::RxUsecs, Value::Number(50)),
                (Parameter::AdaptiveRx, Value::Switch(true)),
                (Parameter::Eee, Value::Switch(true)),
            ];
            Rc::new(Self { _folder: folder, root, values: RefCell::new(values), log: RefCell::default() })
        }

        fn values(&self) -> Vec<String> {
            self.values.borrow().iter().map(|(parameter, value)| format!("{} {value}", parameter.name())).collect()
        }
    }

    impl SystemOps for Fake {
        fn root(&self) -> &Root {
            &self.root
        }

        fn nic_parameter(&self, interface: &str, parameter: Parameter) -> io::Result<Value> {
            if interface != "eth0" {
                return Err(io::ErrorKind::NotFound.into());
            }
            let values = self.values.borrow();
            let value = values.iter().find(|(known, _)| *known == parameter).map(|(_, value)| *value);
            value.ok_or_else(|| io::ErrorKind::Unsupported.into())
        }

        fn set_nic_parameter(&self, interface: &str, parameter: Parameter, value: Value) -> io::Result<()> {
            self.nic_parameter(interface, parameter)?;
            let value =
                if (parameter, value) == (Parameter::RxUsecs, Value::Number(1)) { Value::Number(3) } else { value };
            self.log.borrow_mut().push((parameter, value));
            self.values
                .borrow_mut()
                .iter_mut()
                .filter(|(known, _)| *known == parameter)
                .for_each(|(_, old)| *old = value);
            Ok(())
        }
    }

    const INITIAL: [&str; 3] = ["rx-usecs 50", "adaptive-rx on", "eee on"];

    fn take(fake: &Rc<Fake>, settings: &str) -> Result<NicHold, NicHoldError> {
        NicHold::take_with(Rc::<Fake>::clone(fake), "eth0", &settings.parse().unwrap())
    }

    #[test]
    fn restores_settings_in_reverse_order() {
        let fake = Fake::new();
        let hold = take(&fake, "adaptive=off,coalesce=0,eee=on").unwrap();
        assert_eq!(fake.values(), ["rx-usecs 0", "adaptive-rx off", "eee on"]);
        let settings = hold.release();
        assert_eq!(fake.values(), INITIAL);
        let parameters: Vec<Parameter> = fake.log.borrow().iter().map(|(parameter, _)| *parameter).collect();
        assert_eq!(
            parameters,
            [Parameter::AdaptiveRx, Parameter::RxUsecs, Parameter::RxUsecs, Parameter::AdaptiveRx],
            "EEE had the requested value"
        );
        let describe =
            |s: &Setting| [s.name.clone(), s.before.clone(), s.during.clone(), s.after.clone().unwrap()].join(" ");
        assert_eq!(
            settings.iter().map(describe).collect::<Vec<_>>(),
            ["eth0 adaptive-rx on off on", "eth0 rx-usecs 50 0 50", "eth0 eee on on on"]
        );
    }

    #[test]
    fn a_change_by_others_is_seen() {
        let fake = Fake::new();
        let hold = take(&fake, "coalesce=0,eee=on").unwrap();
        let mut watch = hold.watch();
        assert_eq!(watch.check(), [] as [&str; 0]);
        fake.set_nic_parameter("eth0", Parameter::RxUsecs, Value::Number(7)).unwrap();
        fake.set_nic_parameter("eth0", Parameter::Eee, Value::Switch(false)).unwrap();
        let changes =
            ["somebody changed rx-usecs of eth0 from `0` to `7`", "somebody changed eee of eth0 from `on` to `off`"];
        assert_eq!(watch.check(), changes);
    }

    #[test]
    fn journal_restores_after_a_crash_what_others_did_not_change() {
        let fake = Fake::new();
        std::mem::forget(take(&fake, "coalesce=0,eee=off").unwrap());
        fake.set_nic_parameter("eth0", Parameter::RxUsecs, Value::Number(7)).unwrap();
        let restored = journal::restore_with(&*fake).unwrap();
        assert_eq!((restored.len(), restored[0].purpose, restored[0].put_back.settings), (1, Purpose::Nic, 1));
        assert_eq!(restored[0].put_back.changed_since, ["eth0 rx-usecs: 7"], "changed by others since");
        assert_eq!(fake.values(), ["rx-usecs 7", "adaptive-rx on", "eee on"]);
        assert!(journal::restore_with(&*fake).unwrap().is_empty());
    }

    #[test]
    fn settings_are_restored_only_in_their_network_namespace() {
        let fake = Fake::new();
        let set_namespace = |file: &str, name: &str| {
            let path = fake.root.path(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let _ = std::fs::remove_file(&path);
            std::os::unix::fs::symlink(name, path).unwrap();
        };
        set_namespace("proc/thread-self/ns/net", "net:[7]");
        std::mem::forget(take(&fake, "eee=off").unwrap());
        set_namespace("proc/thread-self/ns/net", "net:[1]");
        set_namespace("proc/1/ns/net", "net:[1]");
        set_namespace("proc/30/ns/net", "net:[7]");
        let restored = journal::restore_with(&*fake).unwrap().remove(0).put_back;
        assert_eq!(restored.settings, 0);
        assert!(
            restored.failed[0].contains("sudo nsenter --net=/proc/30/ns/net punctual restore"),
            "{:?}",
            restored.failed
        );
        assert_eq!(fake.values()[2], "eee off", "another interface of the same name");

        set_namespace("proc/thread-self/ns/net", "net:[7]");
        assert_eq!(journal::restore_with(&*fake).unwrap()[0].put_back.settings, 1);
        assert_eq!(fake.values(), INITIAL);

        std::mem::forget(take(&fake, "eee=off").unwrap());
        set_namespace("proc/thread-self/ns/net", "net:[1]");
        std::fs::remove_file(fake.root.path("proc/30/ns/net")).unwrap();
        let restored = journal::restore_with(&*fake).unwrap().remove(0).put_back;
        assert_eq!(restored.changed_since, ["eth0 eee: its network namespace no longer exists"]);
        assert!(journal::restore_with(&*fake).unwrap().is_empty());
    }

    #[test]
    fn journal_restores_time_stamping_after_a_crash() {
        let fake = Fake::new();
        *fake.values.borrow_mut() =
            vec![(Parameter::TxType, Value::Number(0)), (Parameter::RxFilter, Value::Number(12))];
        let hold = NicHold::take_with(Rc::<Fake>::clone(&fake), "eth0", &NicSettings::stamps()).unwrap();
        assert_eq!(fake.values(), ["tx-type 1", "rx-filter 1"]);
        std::mem::forget(hold);
        assert_eq!(journal::restore_with(&*fake).unwrap()[0].put_back.settings, 2);
        assert_eq!(fake.values(), ["tx-type 0", "rx-filter 12"]);
    }

    #[test]
    fn refused_setting_leaves_nothing_changed() {
        let fake = Fake::new();
        let refused = |settings| take(&fake, settings).unwrap_err().to_string();
        assert_eq!(refused("eee=off,gro=off"), "the driver of eth0 cannot change gro: leave it out");
        assert_eq!(refused("eee=off,tx-frames=1"), "the driver of eth0 cannot change tx-frames: leave it out");
        let message = refused("eee=off,coalesce=1");
        assert!(message.starts_with("cannot set rx-usecs of eth0 to 1 (the driver set 3 instead)"), "{message}");
        assert_eq!(fake.values(), INITIAL);
        assert!(journal::restore_with(&*fake).unwrap().is_empty());
    }
}

/// Tests that need root.
#[cfg(test)]
mod rights {
    use super::*;
    use crate::{
        nic::{Answers, NoStamps, can_stamp},
        veth::VethPair,
    };

    #[test]
    fn changes_and_restores_settings_of_the_kernel() {
        let pair = VethPair::create().unwrap();
        pair.near
            .namespace
            .run(|| {
                let now = || Parameter::Tso.read("near").unwrap();
                let settings: NicSettings = "tso=off,gro=on".parse().unwrap();
                assert_eq!(now(), Value::Switch(true));
                let hold = NicHold::take(&Root::system(), "near", &settings).unwrap();
                assert_eq!((now(), Parameter::Gro.read("near").unwrap()), (Value::Switch(false), Value::Switch(true)));
                let settings = hold.release();
                assert_eq!(settings[0].after.as_deref(), Some("on"));
                assert_eq!((now(), Parameter::Gro.read("near").unwrap()), (Value::Switch(true), Value::Switch(false)));
                let refused = NicHold::take(&Root::system(), "near", &"eee=off".parse().unwrap()).unwrap_err();
                assert!(matches!(refused, NicHoldError::NotSupported { .. }), "{refused}");
                let stamps = NicHold::take(&Root::system(), "near", &NicSettings::stamps()).unwrap_err();
                assert!(matches!(stamps, NicHoldError::NotSupported { .. }), "{stamps}");
                let none = can_stamp(&mut Answers::of(&Root::system()), "near").unwrap_err();
                assert!(matches!(none, NoStamps::NotInHardware { .. }), "{none}");
                assert_eq!(Parameter::Tso.read("other").unwrap_err().kind(), io::ErrorKind::NotFound);
            })
            .unwrap();
    }
}
