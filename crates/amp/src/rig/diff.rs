//! From one rig to another while it plays: what both have in common goes on, because the fade between two that are alike is
//! louder than either.

use super::{Rig, RigError, loaded::LoadedFile};
use crate::chain::{Change, Exchange};

impl Rig {
    /// What has to be exchanged where this one is to play instead of another, in a chain of this rate, Hz; and in words what is
    /// not played as it was made.
    ///
    /// # Errors
    /// [`RigError::Unplayable`], with the first file that cannot be played at this rate, or not as it was chosen.
    pub fn diff_from(&self, other: &Self, rate_hz: u32) -> Result<(Exchange, Vec<String>), RigError> {
        let mut notes = Vec::new();
        let mut exchange = Exchange::default();
        for (place, model) in exchange.models.iter_mut().enumerate() {
            if !plays_on(self.models.get(place), other.models.get(place)) {
                *model = Change::Replace(self.amplifier(place, rate_hz, &mut notes)?);
            }
        }
        let places = 0..self.irs.len().max(other.irs.len());
        if !places.into_iter().all(|place| plays_on(self.irs.get(place), other.irs.get(place))) {
            exchange.cabinet = Change::Replace(self.cabinet(rate_hz)?);
        }
        Ok((exchange, notes))
    }
}

fn plays_on<F, P: PartialEq>(new: Option<&LoadedFile<F, P>>, old: Option<&LoadedFile<F, P>>) -> bool {
    match (new, old) {
        (Some(new), Some(old)) => new.is_same_as(old),
        (new, old) => new.is_none() && old.is_none(),
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, path::Path, time::SystemTime};

    use super::*;
    use crate::{Chain, Parameter, Preset, chain::ControlError, rig::Version};

    const WIRE: &str = r#"{"version": "0.5.4", "architecture": "Linear", "sample_rate": 48000,
        "config": {"receptive_field": 1, "bias": false}, "weights": [1]}"#;

    /// Files that all hold a wire, of a version that a test changes; it tells which were read.
    struct Folder {
        version: u64,
        read: RefCell<Vec<String>>,
    }

    impl Folder {
        fn rig(&self, preset: &str, others: &[&Rig]) -> Rig {
            let chosen = Preset::parse(preset).unwrap().chosen(Path::new(""));
            let read = |path: &Path| {
                self.read.borrow_mut().push(path.display().to_string());
                Ok(WIRE.as_bytes().to_vec())
            };
            let version = |_: &Path| -> Option<Version> { Some((SystemTime::UNIX_EPOCH, self.version)) };
            Rig::load_beside(chosen, others, read, version).unwrap()
        }

        fn read(&self) -> Vec<String> {
            self.read.take()
        }
    }

    /// Which places are exchanged.
    fn exchanged(new: &Rig, old: &Rig) -> [bool; 2] {
        let (exchange, _) = new.diff_from(old, 48_000).unwrap();
        assert_eq!(exchange.is_empty(), !exchange.models.iter().any(Change::is_replace));
        exchange.models.map(|model| model.is_replace())
    }

    #[test]
    fn only_what_differs_is_exchanged_and_only_what_has_changed_is_read() {
        let mut folder = Folder { version: 1, read: RefCell::default() };
        let (a, b) = ("[[model]]\nfile = 'a'\n", "[[model]]\nfile = 'b'\n");
        let both = folder.rig(&[a, b].concat(), &[]);
        assert_eq!(folder.read(), ["a", "b"]);

        let turned = folder.rig(&[a, b, "[tone]\nbass_db = 3\n[amp]\nrouting = 'parallel'"].concat(), &[&both]);
        assert_eq!((folder.read(), exchanged(&turned, &both)), (vec![], [false; 2]));
        let first = folder.rig(a, &[&both]);
        assert_eq!((folder.read(), exchanged(&first, &both)), (vec![], [false, true]));
        let swapped = folder.rig(&[b, a].concat(), &[&both]);
        assert_eq!((folder.read(), exchanged(&swapped, &both)), (vec![], [true; 2]));

        folder.version = 2;
        let again = folder.rig(a, &[&both, &first]);
        assert_eq!((folder.read(), exchanged(&again, &first)), (vec!["a".to_owned()], [true, false]));
    }

    /// What a chain makes of 1 in the end.
    fn played(chain: &mut Chain) -> f32 {
        let (mut left, mut right) = ([0.0; 9600], [0.0; 9600]);
        chain.process(&[1.0; 9600], &mut left, &mut right);
        left[9599]
    }

    #[test]
    fn what_there_is_no_room_for_changes_nothing() {
        const NEUTRAL: &str = "[output]\ndc_block = false\n[limiter]\non = false\n";
        let rig = |preset: &str| {
            let chosen = Preset::parse(&[NEUTRAL, preset].concat()).unwrap().chosen(Path::new(""));
            let model = |weight: &str| Ok(WIRE.replace("[1]", weight).into_bytes());
            Rig::load(chosen, |path| model(if path == Path::new("louder") { "[2]" } else { "[1]" })).unwrap()
        };
        let one = rig("[[model]]\nfile = 'wire'\n");
        let both = rig("[[model]]\nfile = 'louder'\n[[model]]\nfile = 'louder'\n[tone]\non = false\nbass_db = 3\n");
        let between = || both.diff_from(&one, 48_000).unwrap().0;
        let new = || Chain::new(48_000, &one.settings, one.parts(48_000).unwrap().0);

        // A chain that does not run takes nothing. Here there is room for one more part, and not for two.
        let (mut chain, mut controls) = new();
        (0..15).for_each(|_| controls.swap_cabinet(None).unwrap());
        assert_eq!(controls.exchange(between(), Some(&both.settings)), Err(ControlError::Busy));
        assert_eq!((controls.settings(), played(&mut chain)), (&one.settings, 1.0));
        controls.exchange(between(), Some(&both.settings)).unwrap();
        assert_eq!((controls.settings(), played(&mut chain)), (&both.settings, 4.0));

        // Here for both parts and one of the two settings.
        let (mut chain, mut controls) = new();
        (0..253).for_each(|_| controls.set(Parameter::Bass, 0.0).unwrap());
        assert_eq!(controls.exchange(between(), Some(&both.settings)), Err(ControlError::Busy));
        controls.exchange(between(), None).unwrap();
        assert_eq!((controls.settings(), played(&mut chain)), (&one.settings, 4.0));
    }

    #[test]
    fn a_model_without_versions_is_another_each_time() {
        let load = || {
            let chosen = Preset::parse("[[model]]\nfile = 'a'").unwrap().chosen(Path::new(""));
            Rig::load(chosen, |_| Ok(WIRE.as_bytes().to_vec())).unwrap()
        };
        assert_eq!(exchanged(&load(), &load()), [true, false]);
    }
}
