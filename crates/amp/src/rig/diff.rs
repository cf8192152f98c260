//! Changing from one rig to another while playing. Parts that both have in common are kept, because a crossfade between
//! two equal signals is louder than either.

use super::{Rig, RigError, loaded::LoadedFile};
use crate::chain::{Change, Exchange};

impl Rig {
    /// The parts to replace when this rig follows another one in a chain of this sample rate, Hz, and notes on parts
    /// that were resampled.
    ///
    /// # Errors
    /// [`RigError::Unplayable`], for the first file that cannot be played at this rate or as requested.
    pub fn diff_from(&self, other: &Self, rate_hz: u32) -> Result<(Exchange, Vec<String>), RigError> {
        let mut notes = Vec::new();
        let mut exchange = Exchange::default();
        for (slot, model) in exchange.models.iter_mut().enumerate() {
            if !plays_on(self.models.get(slot), other.models.get(slot)) {
                *model = Change::Replace(self.amplifier(slot, rate_hz, &mut notes)?);
            }
        }
        let slots = 0..self.irs.len().max(other.irs.len());
        if !slots.into_iter().all(|slot| plays_on(self.irs.get(slot), other.irs.get(slot))) {
            exchange.cabinet = Change::Replace(self.cabinet(rate_hz)?);
        }
        if !plays_on(self.reverb_ir.as_ref(), other.reverb_ir.as_ref()) {
            exchange.reverb_ir = Change::Replace(self.reverb_ir(rate_hz)?);
        }
        Ok((exchange, notes))
    }
}

/// True if the old part can stay.
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

    /// A folder whose files all contain a model that passes the signal through. Records which files are read.
    struct Folder {
        version: u64,
        read: RefCell<Vec<String>>,
    }

    impl Folder {
        fn rig(&self, preset: &str, others: &[&Rig]) -> Rig {
            let spec = Preset::parse(preset).unwrap().into_spec(Path::new(""));
            let read = |path: &Path| {
                self.read.borrow_mut().push(path.display().to_string());
                Ok(WIRE.as_bytes().to_vec())
            };
            let version = |_: &Path| -> Option<Version> { Some((SystemTime::UNIX_EPOCH, self.version)) };
            Rig::load_sharing(spec, others, read, version).unwrap()
        }

        fn read(&self) -> Vec<String> {
            self.read.take()
        }
    }

    /// True for each model that is replaced.
    fn exchanged(new: &Rig, old: &Rig) -> [bool; 2] {
        let (exchange, _) = new.diff_from(old, 48_000).unwrap();
        assert_eq!(exchange.is_empty(), !exchange.models.iter().any(Change::is_replace));
        exchange.models.map(|model| model.is_replace())
    }

    #[test]
    fn only_differing_parts_are_replaced_and_only_changed_files_are_read() {
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

    #[test]
    fn the_response_of_the_reverb_is_replaced_alone() {
        let rig = |preset: &str| {
            let spec = Preset::parse(preset).unwrap().into_spec(Path::new(""));
            Rig::load(spec, |_| Ok(click_wav())).unwrap()
        };
        let (dry, wet) = (rig("[reverb_ir]\nmix = 0.5"), rig("[reverb_ir]\nfile = 'hall.wav'"));
        for (new, old, replaced) in [(&wet, &dry, true), (&dry, &wet, true), (&wet, &wet, false), (&dry, &dry, false)] {
            let (exchange, _) = new.diff_from(old, 48_000).unwrap();
            assert_eq!((exchange.reverb_ir.is_replace(), exchange.cabinet.is_replace()), (replaced, false));
            assert_eq!(exchange.is_empty(), !replaced);
        }
        assert!(wet.parts(48_000).unwrap().0.reverb_ir.is_some() && dry.parts(48_000).unwrap().0.reverb_ir.is_none());
        assert_eq!(wet.paths().collect::<Vec<_>>(), [Path::new("hall.wav")]);
        // A preset that has the same file as its cabinet shares it.
        let spec = Preset::parse("[[ir]]\nfile = 'hall.wav'").unwrap().into_spec(Path::new(""));
        let version = |_: &Path| -> Option<Version> { Some((SystemTime::UNIX_EPOCH, 1)) };
        let both = Rig::load_sharing(spec, &[], |_| Ok(click_wav()), version).unwrap();
        let spec = Preset::parse("[reverb_ir]\nfile = 'hall.wav'").unwrap().into_spec(Path::new(""));
        assert!(Rig::load_sharing(spec, &[&both], |_| panic!("read again"), version).is_ok());
    }

    /// A WAV file of one sample of 16 bits.
    fn click_wav() -> Vec<u8> {
        let mut bytes = b"RIFF\x26\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0".to_vec();
        bytes.extend([48_000_u32, 96_000].map(u32::to_le_bytes).concat());
        bytes.extend(b"\x02\0\x10\0data\x02\0\0\0\0\x40");
        bytes
    }

    /// The output of a chain for a constant input of 1, after all ramps.
    fn played(chain: &mut Chain) -> f32 {
        let (mut left, mut right) = ([0.0; 9600], [0.0; 9600]);
        chain.process(&[1.0; 9600], &mut left, &mut right);
        left[9599]
    }

    #[test]
    fn an_exchange_without_queue_space_changes_nothing() {
        const NEUTRAL: &str = "[output]\ndc_block = false\n[limiter]\non = false\n";
        let rig = |preset: &str| {
            let spec = Preset::parse(&[NEUTRAL, preset].concat()).unwrap().into_spec(Path::new(""));
            let model = |weight: &str| Ok(WIRE.replace("[1]", weight).into_bytes());
            Rig::load(spec, |path| model(if path == Path::new("louder") { "[2]" } else { "[1]" })).unwrap()
        };
        let one = rig("[[model]]\nfile = 'wire'\n");
        let both = rig("[[model]]\nfile = 'louder'\n[[model]]\nfile = 'louder'\n[tone]\non = false\nbass_db = 3\n");
        let between = || both.diff_from(&one, 48_000).unwrap().0;
        let new = || Chain::new(48_000, &one.settings, one.parts(48_000).unwrap().0);

        // A chain that does not run applies nothing. Here the queue has space for one part, but not for two.
        let (mut chain, mut controls) = new();
        (0..15).for_each(|_| controls.swap_cabinet(None).unwrap());
        assert_eq!(controls.exchange(between(), Some(&both.settings)), Err(ControlError::Busy));
        assert_eq!((controls.settings(), played(&mut chain)), (&one.settings, 1.0));
        controls.exchange(between(), Some(&both.settings)).unwrap();
        assert_eq!((controls.settings(), played(&mut chain)), (&both.settings, 4.0));

        // Here it has space for both parts and one of the two settings.
        let (mut chain, mut controls) = new();
        (0..253).for_each(|_| controls.set(Parameter::Bass, 0.0).unwrap());
        assert_eq!(controls.exchange(between(), Some(&both.settings)), Err(ControlError::Busy));
        controls.exchange(between(), None).unwrap();
        assert_eq!((controls.settings(), played(&mut chain)), (&one.settings, 4.0));
    }

    #[test]
    fn a_model_of_unknown_version_is_always_replaced() {
        let load = || {
            let spec = Preset::parse("[[model]]\nfile = 'a'").unwrap().into_spec(Path::new(""));
            Rig::load(spec, |_| Ok(WIRE.as_bytes().to_vec())).unwrap()
        };
        assert_eq!(exchanged(&load(), &load()), [true, false]);
    }
}
